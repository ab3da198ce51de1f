"""Places of values in a JSON file: line and byte offset of documents and of the elements of a list."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import content, decode
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS, not_utf8
from graphs.reading.source import COMPRESSIONS, Source

__all__ = [
    "Document",
    "Lost",
    "Place",
    "Places",
    "documents",
    "documents_or_lost",
    "line_document",
    "refused_lines",
    "stem",
]

_RAW = msgspec.json.Decoder(msgspec.Raw)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


class Place(NamedTuple):
    """Place of a record: file, line (from 1; 0 if unknown) and offset in bytes (-1 if unknown)."""

    file: str
    line: int
    offset: int


class Document(NamedTuple):
    """One JSON value of a file, and its place."""

    raw: bytes
    place: Place


class Lost(NamedTuple):
    """What a file has in place of values: the problem, and the text that is none: a line, or the file's content."""

    problem: Problem
    text: bytes = b""


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


def documents(source: Source) -> Iterator[Document | Problem]:
    """The JSON values of a file: the elements of a list, the lines of a JSON lines file, or one value.

    A bad line is one problem, and the other lines are read. A list or single value that is not JSON is one problem.
    """
    for item in documents_or_lost(source):
        yield item.problem if isinstance(item, Lost) else item


def documents_or_lost(source: Source) -> Iterator[Document | Lost]:
    """As `documents`, with the text of what cannot be read: for readers whose traces are spread over lines.

    Lines that pass the limits are not among them; `refused_lines` has them.
    """
    try:
        data = content(source)
    except TraceError as error:
        yield Lost(error.problem)
        return
    lines = source.lines()
    first = next(lines, None)
    if first is None and data.strip():
        return  # all lines exceed a limit; the source has the problems
    if first is None:
        yield Lost(Problem("empty-file", source.name, 0, "content", "empty", "at least one trace"))
    elif first[2].startswith(b"["):
        yield from _elements(source, data)
    elif _is_json(first[2]) or _second_line_stands_alone(lines):
        for number, offset, text in source.lines():
            document = line_document(source, number, offset, text)
            yield Lost(document, text) if isinstance(document, Problem) else document
    else:
        problem = _problem(source, data, 1)
        start = len(data) - len(data.lstrip())
        whole = Document(data.strip(), Place(source.name, first[0], start))
        yield whole if problem is None else Lost(problem, data)


def refused_lines(source: Source) -> Iterator[Lost]:
    """The lines that `documents` left out because they pass the limits; who reads the source yields their problems."""
    if source.refused:
        for number, _, text in source.unchecked_lines():
            if number in source.refused:
                yield Lost(source.refused[number], text)


def lost_row(problem: Problem, trace: str, lacks: str) -> Problem:
    """The problem of a trace that something which cannot be read is part of, or may be; `lacks` is what it may be."""
    expected = f"a readable line: without it the trace may lack {lacks}"
    return dataclasses.replace(problem, kind="lost-row", expected=expected, trace=trace)


def line_document(source: Source, number: int, offset: int, text: bytes) -> Document | Problem:
    """The JSON value that a line of a file is, or the problem of a line that is no JSON."""
    problem = _problem(source, text, number)
    return Document(text, Place(source.name, number, offset)) if problem is None else problem


def _elements(source: Source, data: bytes) -> Iterator[Document | Lost]:
    try:
        elements = decode(_LIST, data, file=source.name, line=1)
    except TraceError as error:
        yield Lost(error.problem, data)
        return
    if not elements:
        yield Lost(Problem("empty-trace", source.name, 1, "content", "[]", "at least one trace"))
    places = Places(data)
    for element in map(bytes, elements):
        place = Place(source.name, *places.of(element))
        whole = is_utf8(element)
        yield Document(element, place) if whole else Lost(not_utf8(element, source.name, place.line), element)


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


def _problem(source: Source, text: bytes, line: int) -> Problem | None:
    try:
        decode(_RAW, text, file=source.name, line=line)
    except TraceError as error:
        return error.problem
    return None if is_utf8(text) else not_utf8(text, source.name, line)
