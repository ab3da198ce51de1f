"""Places of values in a JSON file: line and byte offset of documents and of the elements of a list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import content, decode
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS, not_utf8
from graphs.reading.source import COMPRESSIONS, Lost, Source

__all__ = [
    "Document",
    "Place",
    "Places",
    "before_damage",
    "behind",
    "documents",
    "line_document",
    "stem",
]

_RAW = msgspec.json.Decoder(msgspec.Raw)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_LENIENT = json.JSONDecoder(parse_int=float, strict=False)  # an integer of thousands of digits is no error of syntax
_BLANKS = re.compile(r"[ \t\r\n]*")
_OBJECT = re.compile(rb"^\{", re.MULTILINE)  # the start of an indented object, whose other lines begin with blanks


class Place(NamedTuple):
    """Place of a record: file, line (from 1; 0 if unknown) and offset in bytes (-1 if unknown)."""

    file: str
    line: int
    offset: int

    @property
    def number(self) -> int:
        """The record's number within its file, for ids: its line, but elements of a list on one line have several."""
        return self.line

    @property
    def field(self) -> str:
        """The record as a field of its file, for errors: "[3]" for an element of a list; "" elsewhere."""
        return ""


class _ElementPlace(Place):
    """Place of an element of a list."""

    at = of_element = 0

    @property
    def field(self) -> str:
        return f"[{self.at}]"

    @property
    def number(self) -> int:
        return self.of_element


class Document(NamedTuple):
    """One JSON value of a file, and its place."""

    raw: bytes
    place: Place


class Places:
    """Line and byte offset of the elements of a JSON list, asked for in order."""

    def __init__(self, data: bytes, start: int = 0, line: int = 1) -> None:
        self.data, self.end, self.counted, self.line = data, start, start, line

    def of(self, element: msgspec.Raw | bytes) -> tuple[int, int]:
        """(line from 1, offset); only blanks, a comma or the list's bracket stand before it, so a search finds it."""
        text = bytes(element)
        start = self.data.find(text, self.end)
        self.line += self.data.count(b"\n", self.counted, start)
        self.counted, self.end = start, start + len(text)
        return self.line, start


def stem(name: str, *more: str) -> str:
    """The file's name without folders and without the suffixes of compression, of JSON, and `more`."""
    base = re.split(r"[\\/]", name)[-1]
    for suffix in (*COMPRESSIONS, ".jsonl", ".ndjson", ".json", *more):
        base = base.removesuffix(suffix)
    return base


def documents(source: Source) -> Iterator[Document]:
    """The JSON values of a file: elements of a list, lines, one value, or indented objects in a row.

    A value that cannot be read is noted in `source.lost`, and the other values follow. What follows the end of no
    element of a list, and a single value that is no JSON, is one lost record.
    """
    try:
        data = content(source)
    except TraceError as error:
        # A file that cannot be decompressed to its end may show whose records it holds.
        source.lost[0] = Lost(error.problem, source.beginning() if error.problem.kind == "unreadable" else b"")
        return
    lines = source.lines()
    first = next(lines, None)
    if first is None and not data.strip():
        source.lost[0] = Lost(Problem("empty-file", source.name, 0, "content", "empty", "at least one trace"))
    elif first is None:
        return  # every line exceeds a limit, which `lines` has noted
    elif first[2].startswith(b"["):
        yield from _elements(source, data)
    elif _is_json(first[2]) or _second_line_stands_alone(lines):
        before = 0
        for start, window in source.windows():
            are_whole = _are_values(window)
            for number, offset, text in source.lines_within(window, before, start):
                if are_whole:
                    yield Document(text, Place(source.name, number, offset))
                elif (document := line_document(source, number, offset, text)) is not None:
                    yield document
            before += window.count(b"\n") + 1
    else:
        problem = _problem(source, data, 1)
        start = len(data) - len(data.lstrip())
        starts = [match.start() for match in _OBJECT.finditer(data)] if problem is not None else []
        if problem is None:
            yield Document(data.strip(), Place(source.name, first[0], start))
        elif len(starts) > 1:
            yield from _objects(source, data, starts)
        else:
            source.lost[start] = Lost(problem, data)


def line_document(source: Source, number: int, offset: int, text: bytes) -> Document | None:
    """The JSON value of a line; None for a line that cannot be read, which is noted in `source.lost`."""
    problem = _problem(source, text, number)
    if problem is None:
        return Document(text, Place(source.name, number, offset))
    source.lost[offset] = Lost(problem, text, is_unfinished=source.data.find(b"\n", offset) < 0)
    return None


def _objects(source: Source, data: bytes, starts: list[int]) -> Iterator[Document]:
    """Pretty-printed objects in a row, as console exporters write, by the offsets at which they start."""
    if data[: starts[0]].strip():  # what a cut left of an object
        starts.insert(0, 0)
    line = 1
    for start, end, counted in zip(starts, [*starts[1:], len(data)], [0, *starts], strict=False):
        line += data.count(b"\n", counted, start)
        text = data[start:end].strip()
        problem = source.limits.refuse_record(text, source.name, line) or _problem(source, text, line)
        if problem is None:
            yield Document(text, Place(source.name, line, start))
        else:
            source.lost[start] = Lost(problem, text)


def _elements(source: Source, data: bytes) -> Iterator[Document]:
    try:
        elements: list[msgspec.Raw] | list[bytes] = decode(_LIST, data, file=source.name, line=1)
        wrong = None
    except TraceError as error:
        elements, wrong = before_damage(data), error.problem
    if not elements and wrong is None:
        source.lost[0] = Lost(Problem("empty-trace", source.name, 1, "content", "[]", "at least one trace"))
    places, number = Places(data), 0
    for at, element in enumerate(map(bytes, elements)):
        place = _ElementPlace(source.name, *places.of(element))
        place.at, place.of_element = at, max(number + 1, place.line)
        number = place.of_element
        problem = None if is_utf8(element) else not_utf8(element, source.name, place.line)
        if wrong is not None:
            problem = _problem(source, element, place.line, place.field)
        if problem is None:
            yield Document(element, place)
        else:
            source.lost[place.offset] = Lost(problem, element)
    if wrong is not None and (wrong := behind(wrong, data, places.end, places.line)) is not None:
        source.lost[places.end] = Lost(wrong, data[places.end :])  # it is no beginning of a record: it may hold several


def behind(wrong: Problem, data: bytes, end: int, line: int) -> Problem | None:
    """What is wrong behind the last of the elements of `before_damage`; None where the list ends there.

    Args:
      wrong: about the whole list.
      data, end, line: the list, and where its last element ends.
    """
    if data[end:].strip(b" \t\r\n") == b"]":
        return None
    rest = data[end:].lstrip(b", \t\r\n")
    try:
        decode(_RAW, rest, file=wrong.file, line=line + data.count(b"\n", end, len(data) - len(rest)))
    except TraceError as error:
        return error.problem if end and wrong.kind == "non-finite" else wrong
    return wrong


def before_damage(data: bytes) -> list[bytes]:
    """The elements of a list that is no JSON, up to one without an end; NaN, or control characters, do not hide it."""
    text = data.decode("latin-1")  # a character for each byte, and those of JSON's syntax are the same
    at, elements = text.index("[") + 1, list[bytes]()
    try:
        while True:
            start = _BLANKS.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            _, end = _LENIENT.raw_decode(text, start)
            elements.append(data[start:end])
            at = _BLANKS.match(text, end).end() + 1  # type: ignore[union-attr]
            if text[at - 1 : at] != ",":
                return elements
    except (ValueError, RecursionError):
        return elements


def _are_values(lines: bytes) -> bool:
    """Whether each line that is not blank is a JSON value in UTF-8, looked at together; False tells nothing."""
    try:
        values = _RAW.decode_lines(lines)
    except JSON_ERRORS:
        return False
    # A value begins at the first letter behind the last one, so values as long as their lines are those lines.
    lengths = [len(text) for text in map(bytes.strip, lines.split(b"\n")) if text]
    return lengths == list(map(len, values)) and is_utf8(lines)


def _is_json(text: bytes) -> bool:
    try:
        _RAW.decode(text)
    except JSON_ERRORS:
        return False
    return True


def _second_line_stands_alone(lines: Iterator[tuple[int, int, bytes]]) -> bool:
    """Whether the next line is an object of its own: then the first one, no JSON, is a bad line and no beginning."""
    second = next(lines, None)
    return second is not None and second[2].startswith(b"{") and _is_json(second[2])


def _problem(source: Source, text: bytes, line: int, field: str = "") -> Problem | None:
    try:
        decode(_RAW, text, file=source.name, line=line, field=field)
    except TraceError as error:
        return error.problem
    return None if is_utf8(text) else not_utf8(text, source.name, line)
