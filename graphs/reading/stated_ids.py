"""The ids of traces that a record states at the format's own keys, in a text that may be cut or no JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["TraceKeys", "folded", "stated_ids"]

# A string, and whether a colon follows it; one without its last quote goes to the end. Or a bracket.
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*+)(?:(")\s*+(:)?+|\\?\Z)|([\[{])|[\]}]', re.DOTALL)


class TraceKeys(NamedTuple):
    """Where the records of a format state their trace.

    Attributes:
      keys: keys whose value is the id of a trace.
      within: keys of the objects and lists that may hold a record; elsewhere such a key is content.
    """

    keys: tuple[str, ...] = ()
    within: tuple[str, ...] = ()


def stated_ids(text: bytes, of: TraceKeys) -> Iterator[str]:
    r"""The whole ids at the keys of a format, one by one; none that is cut, or written with escapes or in base64.

    Examples:
      >>> keys = TraceKeys(("traceId",), ("spans",))
      >>> list(stated_ids(b'{"spans": [{"traceId": "a", "note": "\\"traceId\\": \\"x\\""}, {"traceId": "b', keys))
      ['a']
      >>> list(stated_ids(b'{"input": {"traceId": "of the task"}, "traceId": "a"', keys))
      ['a']
    """
    wanted, allowed = ({key.encode() for key in keys} for keys in of)
    if not any(b'"' + key + b'"' in text for key in wanted):
        return
    around: list[bytes] = []  # the keys of the open objects and lists, b"" for elements
    key = b""
    for match in _TOKEN.finditer(text):
        string, ended, colon, opens = match.groups()
        if opens is not None:
            around.append(key)
            key = b""
        elif string is None:
            key = b""
            if around:
                around.pop()
        elif colon is not None:
            key = string
        else:
            is_whole = ended is not None and string and b"\\" not in string and not string.endswith(b"=")
            if is_whole and key in wanted and all(not name or name in allowed for name in around):
                yield string.decode("utf-8", "replace")
            key = b""


def folded(trace: str) -> str:
    """An id without what writers of one id differ in: letters' size, dashes of a UUID, a prefix of hexadecimal digits.

    Examples:
      >>> folded("0xAB"), folded("tr-ab"), folded("a-b")
      ('ab', 'ab', 'ab')
    """
    return trace.lower().removeprefix("0x").removeprefix("tr-").replace("-", "")
