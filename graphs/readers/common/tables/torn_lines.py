"""Lines of JSON that have lost their beginning or what is within: what they state may be gone, whatever is left.

A file system fills what a crash did not write with zeros, a disk may have ones there, and a copy that goes on behind
the wrong byte cuts a line's head. A line of another program, such as "12:00 INFO saved {...}", has lost nothing.
"""

from __future__ import annotations

__all__ = ["is_torn"]

_FILLS = (b"\0", b"\xff\xff")  # neither stands in a text


def is_torn(text: bytes) -> bool:
    """Whether a line that is no JSON has lost bytes before its end.

    It holds a zero, or a run of ones; or it begins within an object, so that more are closed than opened; or it is no
    text.

    Examples:
      >>> is_torn(b'"t1", "name": "reward"}'), is_torn(b'{"id": "\\0\\0\\0"}'), is_torn(b'INFO saved {"a": 1}')
      (True, True, False)

    Args:
      text: the line.
    """
    if any(fill in text for fill in _FILLS):
        return True
    if text.lstrip().startswith(b"{"):
        return False  # cut at its end, or glued to another
    return text.count(b"}") > text.count(b"{") or not _is_text(text)


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
