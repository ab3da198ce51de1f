"""Files of one JSON object that holds a list of runs, as results of tau2-bench: a fault in one run loses no other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import content, decode
from graphs.reading.documents import Document, Place, Places, before_damage, behind
from graphs.reading.json_problems import untyped
from graphs.reading.source import Source

__all__ = ["object_with_list", "without_list"]

T = TypeVar("T")
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_BLANKS = " \t\r\n"


def object_with_list(
    source: Source, decoder: msgspec.json.Decoder[T], key: str
) -> tuple[T, Iterator[Document | Problem]]:
    """The object of a file, and the elements of the list that it holds; what is lost of these is a `Problem`.

    Args:
      source: the file.
      decoder: of the object; the list is a field of its own name that is left undecoded.
      key: of the list.

    Raises:
      TraceError: the object is wrong but for its list, or has a wrong value there. Numbers that are not finite outside
        of the list are null, and one is named.
    """
    data = content(source)
    try:
        whole = decode(decoder, data, file=source.name, line=1)
    except TraceError as error:
        wrong, start = error.problem, _list_at(data, key)
        if wrong.kind not in ("bad-json", "non-finite") or start < 0:
            raise
    else:
        value = bytes(getattr(whole, key))
        if value in (b"", b"null"):
            return whole, iter(())
        listed = decode(_LIST, value, file=source.name, line=1, field=key)
        return whole, _placed(source, data, list(map(bytes, listed)), max(data.find(value), 0))
    elements = before_damage(data[start:])
    text, is_whole = _around(data, start, elements)
    try:
        whole = decode(decoder, text, file=source.name, line=1)
        outside = None
    except TraceError as error:
        outside, stated = error.problem, untyped(text)
        if not isinstance(stated, dict):
            raise
        whole = decode(decoder, msgspec.json.encode(stated), file=source.name, line=1)
    return whole, _placed(source, data, elements, start, None if is_whole else wrong, outside)


def without_list(data: bytes, key: str) -> bytes:
    """The object with an empty list at a key, so that it can be decoded though the list is damaged."""
    start = _list_at(data, key)
    return data if start < 0 else _around(data, start, before_damage(data[start:]))[0]


def _around(data: bytes, start: int, elements: Sequence[bytes]) -> tuple[bytes, bool]:
    """The object with an empty list, and whether it goes on behind the list to its end."""
    end = start + 1
    for element in elements:
        end = data.index(element, end) + len(element)
    rest = data[end:].strip()
    whole = data[:start] + b"[]" + rest[1:]
    if rest.startswith(b"]") and isinstance(untyped(whole), dict):
        return whole, True
    return data[:start] + b"[]}", False


def _placed(
    source: Source,
    data: bytes,
    elements: Sequence[bytes],
    start: int,
    cut: Problem | None = None,
    outside: Problem | None = None,
) -> Iterator[Document | Problem]:
    places = Places(data, start, 1 + data.count(b"\n", 0, start))
    for element in elements:
        yield Document(element, Place(source.name, *places.of(element)))
    if cut is not None:
        yield behind(cut, data, places.end, places.line) or cut
    if outside is not None:
        yield outside


def _list_at(data: bytes, key: str) -> int:
    """Where the list of a key begins in an object that may be no JSON; -1 where there is none."""
    text, decoder = data.decode("latin-1"), json.JSONDecoder(parse_int=float, strict=False)
    at = len(text) - len(text.lstrip(_BLANKS))
    try:
        while text[at] in "{,":
            name, at = decoder.raw_decode(text, _behind(text, at + 1))
            at = _behind(text, at)
            if text[at] != ":":
                return -1
            at = _behind(text, at + 1)
            if name == key:
                return at if text[at] == "[" else -1
            at = _behind(text, decoder.raw_decode(text, at)[1])
    except (ValueError, IndexError, RecursionError):  # damaged before the list: the caller names the decoder's fault
        return -1
    return -1


def _behind(text: str, at: int) -> int:
    """The next character from a place on that is no blank."""
    while text[at] in _BLANKS:
        at += 1
    return at
