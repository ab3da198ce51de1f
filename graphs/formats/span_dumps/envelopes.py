"""Where the spans of a dump stand: a list, an object a line, pretty-printed objects in a row, or inside a wrapper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from graphs.errors import Problem
from graphs.formats.otlp.wire import Attributes, Place
from graphs.formats.span_dumps.bare_spans import WRAPPERS, Bare, bare_span, bare_spans, one_a_line
from graphs.formats.span_dumps.dump_types import Batch, Dumped
from graphs.formats.span_dumps.mlflow import of_mlflow_assessments
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS, json_problem, not_utf8
from graphs.reading.repeated_keys import repeated_anywhere, repeated_where_read
from graphs.reading.source import Lost, Source
from graphs.traces.limits import Limits

__all__ = ["dumped_spans", "in_batches"]

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_START = re.compile(rb"^\{", re.MULTILINE)
_Envelope = dict[str, msgspec.Raw]
_Piece = tuple[int, int, bytes]  # line, offset, content
_DEPTH = 4  # wrappers within wrappers
_BATCH = 2048  # spans
_WINDOW = 1 << 19  # bytes of text that are decoded at once: what is made of them stays in the processor's cache


def dumped_spans(source: Source) -> Iterator[Batch | Problem | Lost]:
    """The spans of a file, as they stand in it.

    A line that is no JSON is a problem, and so is a pretty-printed object in a row of them.

    Raises:
      OSError: it cannot be read.
    """
    data = source.data
    first = data.lstrip()[:1]
    if first == b"[" or _is_one_value(data):
        whole = data.strip()
        problem = source.limits.refuse_record(whole, source.name, 1)
        if problem is not None:
            yield Lost(problem, whole)
        else:
            yield from in_batches(_unwrapped(whole, Place(source.name, 1, 0), data, source.limits), source.name)
        return
    line = next(source.lines(), None)
    starts = [match.start() for match in _START.finditer(data)] if line and not _is_one_value(line[2]) else []
    if starts and (before := data[: starts[0]]).strip():  # an object that is indented, or what a cut left of one
        starts.insert(0, len(before) - len(before.lstrip()))
    yield from _in_a_row(source, data, starts) if starts else _by_line(source)


def in_batches(items: Iterable[Dumped | Batch | Problem | Lost], file: str) -> Iterator[Batch | Problem | Lost]:
    """Spans of a file together, up to a number; batches and problems between them."""
    batch = Batch(file)
    for item in items:
        if not isinstance(item, Dumped) or len(batch.spans) >= _BATCH:
            yield batch
            batch = Batch(file)
        if isinstance(item, Dumped):
            batch.append(item)
        else:
            yield item
    yield batch


def _is_one_value(data: bytes) -> bool:
    try:
        _OBJECT.decode(data)
    except JSON_ERRORS:
        return False
    return True


def _by_line(source: Source) -> Iterator[Batch | Problem | Lost]:
    """Spans that stand one a line."""
    number = 0
    for start, text in source.windows(_WINDOW):
        lines, bare = one_a_line(text), None
        if lines is not None:
            bare = bare_spans(text, lines[1], source.limits)
        if lines is not None and bare is not None:
            numbers = np.arange(number + 1, number + 1 + len(bare.spans))
            yield Batch(source.name, bare.spans, numbers, start + lines[0], bare.flat)
            bare.spans.clear()  # the next take their memory, which is in the processor's cache
        else:
            yield from _one_by_one(source, source.lines_within(text, number, start))
        number += len(lines[0]) if lines is not None else text.count(b"\n") + 1


def _in_a_row(source: Source, data: bytes, starts: list[int]) -> Iterator[Batch | Problem | Lost]:
    """Objects that begin at these bytes, each over several lines."""
    for pieces in _windows(_objects(source, data, starts)):
        texts = [text for _, _, text in pieces]
        bare = _joined(texts, source.limits) if all(text.endswith(b"}") for text in texts) else None
        if bare is None:
            yield from _one_by_one(source, pieces)
        else:
            lines, starts_of, _ = zip(*pieces, strict=True)
            yield Batch(source.name, bare.spans, lines, starts_of, bare.flat)


def _objects(source: Source, data: bytes, starts: list[int]) -> Iterator[_Piece]:
    """The pieces of a file that begin at these bytes and are within the limits."""
    number, counted = 1, 0
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        number += data.count(b"\n", counted, start)
        counted, text = start, data[start:end].strip()
        problem = source.limits.refuse_record(text, source.name, number)
        if problem is None:
            yield number, start, text
        else:
            source.lost[start] = Lost(problem, text)


def _windows(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces together that have about as many bytes as are decoded at once."""
    window: list[_Piece] = []
    size = 0
    for piece in pieces:
        window.append(piece)
        size += len(piece[2])
        if size >= _WINDOW:
            yield window
            window, size = [], 0
    if window:
        yield window


def _one_by_one(source: Source, pieces: Iterable[_Piece]) -> Iterator[Batch | Problem | Lost]:
    """Pieces of which not each is a span that stands alone."""
    batch = Batch(source.name)
    for line, start, text in pieces:
        span = bare_span(text)
        if span is not None:
            batch.append(Dumped(span, source.name, line, start))
        else:
            yield batch
            batch = Batch(source.name)
            yield from in_batches(_unwrapped(text, Place(source.name, line, start), text, source.limits), source.name)
    yield batch


class _Found:
    """Places of values within a text, each behind the one before."""

    def __init__(self, within: bytes, place: Place) -> None:
        self._within, self._place = within, place
        self._cursor, self._counted, self._line = 0, 0, place.line

    def next(self, value: bytes) -> tuple[int, int]:
        """The line and the offset of the next value."""
        start = self._within.find(value, self._cursor)
        if start < 0:
            start = max(self._within.find(value), 0)
        else:
            self._line += self._within.count(b"\n", self._counted, start)
            self._cursor, self._counted = start + len(value), start
        return self._line, self._place.offset + start


def _joined(texts: list[bytes], limits: Limits) -> Bare | None:
    """The spans of texts of one JSON value each."""
    return bare_spans(b"\n".join(texts), np.cumsum([len(text) + 1 for text in texts]) - 1, limits)


def _unwrapped(text: bytes, place: Place, within: bytes, limits: Limits) -> Iterator[Dumped | Batch | Problem | Lost]:
    """The spans in a value, which may be a span, a list, or an object that holds lists of spans."""
    inner = _Found(within, place)
    waiting: list[tuple[bytes | list[bytes], int, Attributes]] = [(text, 0, {})]  # value or values, depth, extra
    while waiting:
        value, depth, given = waiting.pop()
        if isinstance(value, list):
            bare = _joined(value, limits) if not given else None
            if bare is None:
                waiting += [(element, depth, given) for element in reversed(value)]
            else:
                lines, offsets = zip(*map(inner.next, value), strict=True)
                yield Batch(place.file, bare.spans, lines, offsets, bare.flat)
            continue
        try:
            if value.startswith(b"["):
                waiting += [(elements, depth, given) for elements in reversed(_cut(_LIST.decode(value)))]
                continue
            members = _OBJECT.decode(value)
        except JSON_ERRORS as error:
            yield Lost(json_problem(error, value, place.file, place.line), value)
            continue
        if not is_utf8(value):
            yield Lost(not_utf8(value, place.file, inner.next(value)[0]), value)
            continue
        # In the order of the file, so that each span is found behind the one before.
        holders = [key for key, held in members.items() if key in WRAPPERS and bytes(held)[:1] in (b"[", b"{")]
        if holders and depth < _DEPTH and not ({"attributes", "span_id", "context"} <= members.keys()):
            twice = repeated_where_read(_Envelope, value) or repeated_anywhere(bytes(members.get("info", b"")))
            if twice is not None:
                expected = "each key once in an object"
                problem = Problem("repeated-key", place.file, place.line, twice, "stated twice", expected)
                yield Lost(problem, value)
                continue
            try:
                info = _ANY.decode(members.get("info", b"null"))
            except JSON_ERRORS as error:  # bytes that are no text
                yield Lost(json_problem(error, bytes(members["info"]), place.file, place.line), value)
                continue
            given = given | of_mlflow_assessments(info)
            waiting += [(bytes(members[key]), depth + 1, given) for key in reversed(holders)]
            continue
        line, offset = inner.next(value)
        yield Dumped(value, place.file, line, offset, dict(given) or None)
        given.clear()  # the trace's assessments are stated once, at its first span


def _cut(elements: list[msgspec.Raw]) -> list[list[bytes]]:
    """Elements together that have about as many bytes as are decoded at once."""
    return [[text for _, _, text in window] for window in _windows((0, 0, bytes(element)) for element in elements)]
