"""Lines of JSON that have lost their beginning or what is within: what they state may be gone, whatever is left.

A file system fills what a crash did not write with zeros, a disk may have ones there, and a copy that goes on behind
the wrong byte cuts a line's head. A line of another program, such as "12:00 INFO saved {...}", has lost nothing.
"""

from __future__ import annotations

import re

from graphs.reading.encodings import is_utf8

__all__ = ["is_torn"]

_LONGEST_CHARACTER = 4  # bytes
_RUN = re.compile(rb"[\x80-\xff]{2}")
"""What covers the end of a line, with its quotes and braces, is a run; a letter of another encoding stands alone."""


def is_torn(text: bytes) -> bool:
    """Whether a line that is no JSON has lost bytes before its end.

    It holds a zero; or it is no text, but for a last character that is cut, with a run of bytes that are none alone; or
    it begins within an object, so that more are closed than opened.

    Examples:
      >>> is_torn(b'"t1", "name": "reward"}'), is_torn(b'{"id": "\\0\\0\\0"}'), is_torn(b'INFO saved {"a": 1}')
      (True, True, False)

    Args:
      text: the line.
    """
    if b"\0" in text:
        return True
    is_line = text.lstrip().startswith(b"{")  # whole but for a fill, cut at its end, or glued to another
    if not any(is_utf8(text[: len(text) - cut]) for cut in range(_LONGEST_CHARACTER)):
        return not is_line or _RUN.search(text) is not None
    return not is_line and text.count(b"}") > text.count(b"{")
