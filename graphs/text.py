"""Text for people: counts in words, excerpts of values, and log text made safe to print."""

from __future__ import annotations

__all__ = ["counted", "excerpt", "printable"]


REPLACEMENT = "\ufffd"


def printable(text: str, limit: int | None = None) -> str:
    """One line of text without any character that acts instead of being seen.

    White space of every kind (line ends, tabs, Unicode separators) becomes a plain space; control characters, the
    escape character that begins terminal sequences, invisible and bidirectional format characters, surrogates and
    unassigned code points become U+FFFD each, so that two different names do not come to look the same by losing
    what cannot be seen. Markup characters ("[", "$") are kept: whoever renders passes text as text, not as markup.

    Args:
      text: any string.
      limit: greatest length of the result; what is cut off is replaced by "…".
    """
    if limit is not None and len(text) > limit:
        text = text[: max(0, limit - 1)] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else REPLACEMENT for c in text)


def counted(count: int, noun: str) -> str:
    """A number and its noun, which takes an s where it is not 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def excerpt(value: object, limit: int = 60) -> str:
    """A short printable form of an offending value, for `Problem.value`."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
