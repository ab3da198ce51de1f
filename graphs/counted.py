"""How many of a thing, in words: "1 group", "2 groups"."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str) -> str:
    """A number and its noun, which takes an s where it is not 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
