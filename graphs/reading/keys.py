"""Keys of a JSON object, by the beginning of its text for the detection of formats."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

import msgspec

from graphs.reading.decode import content
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source

__all__ = ["Opening", "has_key", "opening", "opening_of"]

_QUOTED = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+'  # without its last quote
# A string that does not end within the head goes to its end: trying again behind each of its quotes would be quadratic.
_STRING = _QUOTED + rb'(?:"|\\?\Z)'
_OBJECT_BEGINS = re.compile(rb"\s*+\{")
_PLAIN = rb'[^"{}\[\]]*+'
_FLAT = _PLAIN + rb"(?:" + _STRING + _PLAIN + rb")*+"
_BRACKET = re.compile(_FLAT + rb"(?P<bracket>[{}\[\]])", re.DOTALL)
"""Up to the next bracket in no string."""
# Turns are not possessive here and below: Python 3.11.2 stays where a possessive turn failed, as inside an object.
_PASSING = re.compile(
    _FLAT + rb"(?:(?:\{" + _FLAT + rb"\}|\[" + _FLAT + rb"\])" + _FLAT + rb")*(?P<bracket>[{}\[\]])", re.DOTALL
)
"""The same, past objects and lists that hold none."""
_MEMBER = re.compile(
    rb'(?:[^"{}\[\]]++|' + _STRING + rb"(?!\s*+:))*(?:(?P<key>" + _QUOTED + rb'")\s*+:\s*+|(?P<bracket>[{}\[\]]))',
    re.DOTALL,
)
"""Up to the next bracket in no string, or to the value behind the next key."""
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_LIMIT = 20_000  # brackets and keys; a format shows itself long before
_HEAD = 1 << 16  # bytes; a value or blanks may be longer, and hide the keys behind them


class Opening(NamedTuple):
    """The keys visible in the head of an object.

    Attributes:
      keys: top-level keys, in order.
      first: by top-level key, the keys of the object with which its list begins; other keys have none.
      strings: top-level keys whose value is a string, number, true, false or null.
      complete: whether the object ended within the head.
    """

    keys: tuple[str, ...]
    first: dict[str, frozenset[str]]
    scalars: frozenset[str]
    complete: bool


def has_key(text: bytes, key: str) -> bool:
    """Whether a text is an object that has this key itself, wherever else in it the word may stand."""
    try:
        return f'"{key}"'.encode() in text and key in _OBJECT.decode(text)
    except JSON_ERRORS:
        return False


@functools.lru_cache(maxsize=2)  # every reader asks of the same head
def opening(head: bytes) -> Opening:
    """The top-level keys of the object that `head` begins with; nothing where it begins with something else.

    An object that is not whole, or not JSON, gives whatever keys it shows.
    """
    for whole in dict.fromkeys(
        (head.partition(b"\n")[0], head)
    ):  # for speed: most logs have an object a line, or are small
        try:
            return _decoded(whole)
        except JSON_ERRORS:
            continue
    return _by_token(head)


def opening_of(source: Source) -> Opening:
    """The top-level keys of the object that a file begins with, also those behind blanks or a value longer than a head.

    Raises:
      TraceError: kind "unreadable", the file cannot be opened or decompressed.
    """
    try:
        head = source.head(_HEAD)
    except OSError:
        head = content(source)  # which names the fault
    shown = opening(head)
    if shown.complete or len(head) < _HEAD:
        return shown
    return opening.__wrapped__(content(source).lstrip())  # a cache would keep the content in memory


def _decoded(text: bytes) -> Opening:
    values = _OBJECT.decode(text)
    kinds = {key: bytes(memoryview(value)[:1]) for key, value in values.items()}
    first = {}
    for key in (key for key, kind in kinds.items() if kind == b"["):
        head = next((item for item in _LIST.decode(values[key]) if bytes(memoryview(item)[:1]) == b"{"), None)
        if head is not None:
            first[key] = frozenset(_OBJECT.decode(head))
    scalars = frozenset(key for key, kind in kinds.items() if kind not in b"[{")
    return Opening(tuple(values), {key: names for key, names in first.items() if names}, scalars, True)


def _by_token(head: bytes) -> Opening:
    """The same, knowing strings from structure and nothing more.

    Keys are looked for where they are wanted alone: elsewhere each step goes on to the next bracket.
    """
    keys: list[str] = []
    first: dict[str, set[str]] = {}
    scalars: set[str] = set()
    path: list[bytes] = []  # open brackets
    counted = 0  # objects met in the list that is the value of the last top-level key
    start = _OBJECT_BEGINS.match(head)
    if start is not None:
        path, position = [b"{"], start.end()
    for _ in range(_LIMIT if path else 0):
        in_first = len(path) == 3 and path[1] == b"[" and counted == 1
        passing = _BRACKET if len(path) == 2 and not counted else _PASSING
        match = (_MEMBER if in_first or len(path) == 1 else passing).match(head, position)
        if match is None:
            break
        position, bracket = match.end(), match["bracket"]
        if bracket is None:
            name = match["key"][1:-1].decode("utf-8", "replace")
            if in_first:
                first.setdefault(keys[-1] if keys else "", set()).add(name)
                continue
            keys.append(name)
            counted = 0
            if head[position : position + 1] not in b"{[]}":
                scalars.add(name)
        elif bracket in b"{[":
            path.append(bracket)
            counted += len(path) == 3 and bracket == b"{" and path[1] == b"["
        else:
            path.pop()
            if not path:
                break
    complete = start is not None and not path
    return Opening(tuple(keys), {key: frozenset(names) for key, names in first.items()}, frozenset(scalars), complete)
