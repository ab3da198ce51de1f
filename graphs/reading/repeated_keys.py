"""Keys that stand twice in one JSON object: a decoder keeps the last value and drops the other without a word.

Each pair of an object has a colon outside its key and its value. A text with more colons than what a decoder kept of it
has a pair that was dropped. Decoding and encoding to count is a small part of reading. Only a text that may repeat a
key is parsed again, with Python's parser, which shows every pair.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import msgspec.inspect as kinds
import numpy as np

from graphs.reading.json_problems import JSON_ERRORS
from graphs.text import printable

__all__ = ["keeps_all_pairs", "may_repeat", "members_of_lines", "repeated_anywhere", "repeated_where_read"]

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_ESCAPED = b"\\u003"  # as a key may begin to write a colon
_encode = msgspec.json.Encoder().encode
_COLON = ord(":")
_LONG = 1 << 12  # bytes from which NumPy is faster
_FEW = 1 << 16  # bytes that are decoded in less time than their objects are gone through one by one
_AT_ONCE = 1 << 20  # bytes that are decoded at once, for Python's objects take many times as much
_CUTS = 8  # containers within each other that are cut into their members, each of which is copied


def repeated_anywhere(text: bytes) -> str | None:
    """The path of a key that stands twice in one object of a text, however deep; None without one.

    Of a text over a megabyte, the key alone. `text` is JSON that a decoder has taken.
    """
    return _exactly(text) if _any_object_repeats(text, _CUTS) else None


def repeated_where_read(kind: Any, text: bytes) -> str | None:
    """The path of a key that stands twice in an object that a decoder of `kind` reads; None without one.

    What the type leaves as raw JSON is left out: it is looked at where it is decoded. `text` is what the decoder has
    taken.
    """
    if len(text) <= _FEW and not _any_object_repeats(text, 0):  # for speed
        return None
    read = _read(kind)
    return None if read is None else _twice(read, text, "")


def keeps_all_pairs(text: bytes, decoded: Any) -> bool:
    """Whether what was decoded of a text has all its pairs; False, too, where that is not certain."""
    if b"\\" in text and _ESCAPED in text:  # the first is found faster
        return False
    try:
        return _colons(_encode(decoded)) == _colons(text)
    except (*JSON_ERRORS, OverflowError):  # a number beyond the range, half of a pair
        return False


def _colons(text: bytes) -> int:
    return text.count(b":") if len(text) < _LONG else int(np.count_nonzero(np.frombuffer(text, np.uint8) == _COLON))


def may_repeat(text: bytes) -> bool:
    """Whether an object may state one of its own keys twice; always true where it does."""
    members = _members(text)
    return not _consists_of([members], text) and _drops_a_pair(members, text)


def members_of_lines(text: bytes, lines: int) -> list[dict[str, msgspec.Raw]] | None:
    """The members of each of so many lines; None where it is not certain that each is an object without a key twice."""
    try:
        objects = _MEMBERS.decode_lines(text)
    except JSON_ERRORS:
        return None
    return objects if len(objects) == lines and _consists_of(objects, text) else None


def _consists_of(objects: Iterable[dict[str, msgspec.Raw]], text: bytes) -> bool:
    """Whether a text is objects of these members, one a line, spaced as Python's encoder or msgspec's does.

    Writing them again takes a third of the time of counting colons. Where a pair was dropped, the text is longer.
    """
    after_key = text.find(b'"', 2) + 1  # in the first of them
    colon, comma = (b'": ', b", ") if text[after_key : after_key + 2] == b": " else (b'":', b",")
    first, other = _Written(b"}\n{", colon), _Written(comma, colon)
    parts: list[bytes | msgspec.Raw] = []
    for members in objects:
        keys = first
        for key, value in members.items():
            parts += (keys[key], value)
            keys = other
    parts[:1] = [bytes(part).removeprefix(b"}\n") for part in parts[:1]]
    parts.append(b"}")
    return b"".join(parts) == text


class _Written(dict[str, bytes]):
    """Keys as they are written between values."""

    def __init__(self, before: bytes, after: bytes) -> None:
        super().__init__()
        self._before, self._after = before, after

    def __missing__(self, key: str) -> bytes:
        written = self[key] = self._before + b'"' + key.encode(errors="replace") + self._after
        return written


def _any_object_repeats(text: bytes, cuts: int) -> bool:
    """Whether an object, however deep in a text, may state a key twice; always true where one does."""
    start = _start(text)
    if start not in (b"{", b"["):
        return False
    if len(text) > _AT_ONCE and cuts:
        values = _ELEMENTS.decode(text) if start == b"[" else _members(text)
        if isinstance(values, dict):
            if _drops_a_pair(values, text):
                return True
            values = list(values.values())
        return any(_any_object_repeats(batch, cuts - 1) for batch in _batches(values))
    try:
        return not keeps_all_pairs(text, _ANYTHING.decode(text))
    except JSON_ERRORS:  # in what no decoder reads
        return True


def _batches(values: Iterable[msgspec.Raw]) -> Iterator[bytes]:
    """Values as lists of at most `_AT_ONCE` bytes; one that is longer by itself."""
    batch: list[bytes] = []
    size = 2
    for value in map(bytes, values):
        if len(value) + 2 > _AT_ONCE:
            yield value
            continue
        if size + len(value) + 1 > _AT_ONCE:
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 2
        batch.append(value)
        size += len(value) + 1
    yield b"[" + b",".join(batch) + b"]"


def _members(text: bytes) -> dict[str, msgspec.Raw]:
    """The members of an object, by key; a decoder that skips a key does not look whether it is UTF-8."""
    try:
        return _MEMBERS.decode(text)
    except UnicodeDecodeError:
        return _MEMBERS.decode(text.decode("utf-8", "replace"))


def _drops_a_pair(members: dict[str, msgspec.Raw], text: bytes) -> bool:
    """Whether an object may have more pairs than members; always true where it has."""
    kept = sum(1 + key.count(":") + bytes(value).count(b":") for key, value in members.items())
    return text.count(b":") != kept or (b"\\" in text and _ESCAPED in text)  # the first is found faster


def _start(text: bytes) -> bytes:
    return text[:1] if text[:1] in (b"{", b"[") else text.lstrip()[:1]


class _Pairs(list[tuple[str, Any]]):
    """The pairs of an object, those with a repeated key included."""


class _FoundError(Exception):
    """A repeated key."""


def _exactly(text: bytes) -> str | None:
    """A repeated key of a text that may have one."""
    try:
        if len(text) <= _AT_ONCE:
            return _path(_pairs(text, _Pairs))
        _pairs(text, _raise_for_repeated)
    except _FoundError as found:
        return str(found)
    except (ValueError, RecursionError):  # nested deeper than Python's stack
        return "content"
    return None


def _pairs(text: bytes, hook: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    """What Python's parser makes of a text; bytes that are no UTF-8 are named where they are decoded."""
    readable = text.decode("utf-8", "replace")
    return json.loads(readable, object_pairs_hook=hook, parse_int=str, parse_float=str, strict=False)


def _raise_for_repeated(pairs: list[tuple[str, Any]]) -> None:
    """Nothing is kept of an object without a repeated key."""
    if len(dict(pairs)) < len(pairs):
        raise _FoundError(printable(_first_twice([key for key, _ in pairs]) or "", 200))


def _first_twice(keys: list[str], read: frozenset[str] | None = None) -> str | None:
    return next((k for k, n in collections.Counter(keys).items() if n > 1 and (read is None or k in read)), None)


def _path(document: Any) -> str | None:
    waiting = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _Pairs):
            twice = _first_twice([key for key, _ in value])
            if twice is not None:
                return _joined(path, twice)
            waiting += [(_joined(path, key), one) for key, one in reversed(value)]
        elif isinstance(value, list):
            waiting += [(f"{path}[{i}]", value[i]) for i in range(len(value) - 1, -1, -1)]
    return None


def _joined(path: str, key: str) -> str:
    return f"{path}.{printable(key, 200)}" if path else printable(key, 200)


@dataclasses.dataclass
class _Read:
    """What is read of a JSON value: of an object, of a list, or of either.

    Attributes:
      anything: whether the value is read whatever it is.
      keys: the keys of an object that are read; None for all.
      inner: what is read of the members of an object, by key.
      other: what is read of its other members.
      element: what is read of the elements of a list.
    """

    anything: bool = False
    keys: frozenset[str] | None = None
    inner: dict[str, _Read] = dataclasses.field(default_factory=dict)
    other: _Read | None = None
    element: _Read | None = None


def _twice(read: _Read, text: bytes, path: str) -> str | None:
    start = _start(text)
    if read.anything:
        key = repeated_anywhere(text)
        return None if key is None else _joined(path, key)
    if start == b"[" and read.element is not None:
        elements = enumerate(_ELEMENTS.decode(text))
        return next(filter(None, (_twice(read.element, bytes(e), f"{path}[{i}]") for i, e in elements)), None)
    if start != b"{" or (read.keys is not None and not read.keys):
        return None
    members = _members(text)
    if _drops_a_pair(members, text):
        try:
            keys = _pairs(text, _keys)
        except (ValueError, RecursionError):
            return _joined(path, "content")
        twice = _first_twice(keys, read.keys)
        if twice is not None:
            return _joined(path, twice)
    for name, value in members.items():
        part = read.inner.get(name, read.other)
        key = None if part is None else _twice(part, bytes(value), _joined(path, name))
        if key is not None:
            return key
    return None


def _keys(pairs: list[tuple[str, Any]]) -> list[str]:
    return [key for key, _ in pairs]


@functools.cache
def _read(kind: Any) -> _Read | None:
    return _of_type(kinds.type_info(kind))


def _of_type(kind: kinds.Type) -> _Read | None:
    """What is read of a value of a type; None for one that has no objects. Types of logs do not hold themselves."""
    if isinstance(kind, kinds.AnyType):
        return _Read(anything=True)
    if isinstance(kind, kinds.DictType):
        return _Read(other=_of_type(kind.value_type))
    if isinstance(kind, kinds.ListType):
        element = _of_type(kind.item_type)
        return None if element is None else _Read(keys=frozenset(), element=element)
    if isinstance(kind, kinds.StructType):
        inner = {field.encode_name: _of_type(field.type) for field in kind.fields}
        return _Read(keys=frozenset(inner), inner={name: part for name, part in inner.items() if part is not None})
    if isinstance(kind, kinds.UnionType):
        parts = [part for part in map(_of_type, kind.types) if part is not None]
        objects = next((part for part in parts if part.element is None), None)
        element = next((part.element for part in parts if part.element is not None), None)
        if objects is not None:
            return dataclasses.replace(objects, element=element)
        return parts[0] if parts else None
    return None
