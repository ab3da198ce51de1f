"""The encoding of text: whether it is UTF-8, and UTF-16 or UTF-32 by first bytes, so that the error names it."""

from __future__ import annotations

import codecs
from string import printable

from graphs.errors import Problem
from graphs.text import excerpt

__all__ = ["is_utf8", "wide_encoding", "wide_text"]

_MARKS = (  # the longer first: UTF-32's mark begins with that of UTF-16
    (b"\xff\xfe\x00\x00", "UTF-32LE"),
    (b"\x00\x00\xfe\xff", "UTF-32BE"),
    (b"\xff\xfe", "UTF-16LE"),
    (b"\xfe\xff", "UTF-16BE"),
)
_LOOKED_AT = 8  # bytes: two characters of UTF-32
_WITHOUT_MARK = (("UTF-16LE", 2, 0), ("UTF-16BE", 2, 1), ("UTF-32LE", 4, 0), ("UTF-32BE", 4, 3))
"""For each encoding, the number of bytes of a character, and the index of the nonzero byte in plain text."""


_BLOCK = 1 << 20  # bytes that are decoded at once


def is_utf8(text: bytes) -> bool:
    """Whether all of a text is UTF-8; a decoder of JSON does not look at keys and texts that it skips."""
    if text.isascii():
        return True
    if len(text) <= _BLOCK:
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
        return True
    decoder, view = codecs.getincrementaldecoder("utf-8")(), memoryview(text)
    try:
        for start in range(0, len(text), _BLOCK):
            decoder.decode(view[start : start + _BLOCK], start + _BLOCK >= len(text))
    except UnicodeDecodeError:
        return False
    return True


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 by byte order mark, or by the zeros of the plain characters that logs begin with; else None."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    for name, width, place in _WITHOUT_MARK:
        start = head[: min(len(head) // width * width, _LOOKED_AT)]
        zeros = [byte for position, byte in enumerate(start) if position % width != place]
        if start and not any(zeros) and all(byte < 128 and chr(byte) in printable for byte in start[place::width]):
            return name
    return None


def wide_text(file: str, head: bytes) -> Problem | None:
    """The problem of a file that begins with `head`, if it is text in UTF-16 or UTF-32."""
    name = wide_encoding(head)
    if name is None:
        return None
    expected = f"text in UTF-8; convert it, as by `iconv -f {name} -t UTF-8`"
    return Problem("not-utf-8", file, 0, "encoding", f"{name}, by its first bytes {excerpt(head[:8])}", expected)
