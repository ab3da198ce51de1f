"""Where the spans of a dump stand: a list, an object a line, pretty-printed objects in a row, or inside a wrapper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from graphs.errors import Problem
from graphs.readers.common.json_problems import JSON_ERRORS, json_problem
from graphs.readers.common.repeated_keys import repeated_anywhere, repeated_where_read
from graphs.readers.common.source import Source
from graphs.readers.tracing.otlp.wire import Attributes, Place
from graphs.readers.tracing.span_dumps.mlflow import of_mlflow_assessments
from graphs.readers.tracing.span_dumps.spans import WRAPPERS, Batch, Dumped, bare_span

__all__ = ["dumped_spans", "in_batches"]

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_START = re.compile(rb"^\{", re.MULTILINE)
_Envelope = dict[str, msgspec.Raw]
_DEPTH = 4  # wrappers within wrappers


_BATCH = 2048  # spans


def dumped_spans(source: Source) -> Iterator[Batch | Problem]:
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
            yield problem
        else:
            yield from in_batches(_unwrapped(whole, Place(source.name, 1, 0), {}, data), source.name)
        return
    batch = Batch(source.name)
    for line, start, text in _pieces(source, data):
        span = bare_span(text)
        if span is not None:
            batch.spans.append(span)
            batch.lines.append(line)
            batch.offsets.append(start)
            if len(batch.spans) >= _BATCH:
                yield batch
                batch = Batch(source.name)
        else:
            yield batch
            batch = Batch(source.name)
            yield from in_batches(_unwrapped(text, Place(source.name, line, start), {}, text), source.name)
    yield batch


def in_batches(items: Iterable[Dumped | Problem], file: str) -> Iterator[Batch | Problem]:
    """Spans of a file together, up to a number; problems between them."""
    batch = Batch(file)
    for item in items:
        if isinstance(item, Problem) or len(batch.spans) >= _BATCH:
            yield batch
            batch = Batch(file)
        if isinstance(item, Problem):
            yield item
        else:
            batch.append(item)
    yield batch


def _is_one_value(data: bytes) -> bool:
    try:
        _OBJECT.decode(data)
    except JSON_ERRORS:
        return False
    return True


def _pieces(source: Source, data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Lines; or, where the first line is not whole, the objects that begin in the first column of a line."""
    first = next(source.lines(), None)
    starts = [match.start() for match in _START.finditer(data)] if first and not _is_one_value(first[2]) else []
    return _objects(source, data, starts) if starts else source.lines()


def _objects(source: Source, data: bytes, starts: list[int]) -> Iterator[tuple[int, int, bytes]]:
    """Objects that begin at these bytes."""
    number, counted = 1, 0
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        number += data.count(b"\n", counted, start)
        counted, text = start, data[start:end].strip()
        problem = source.limits.refuse_record(text, source.name, number)
        if problem is None:
            yield number, start, text
        else:
            source.refused[number] = problem


def _unwrapped(text: bytes, place: Place, extra: Attributes, within: bytes) -> Iterator[Dumped | Problem]:
    """The spans in a value, which may be a span, a list, or an object that holds lists of spans."""
    waiting: list[tuple[bytes, int, int, Attributes]] = [(text, 0, 0, extra)]  # value, offset within, depth, extra
    cursor, counted, line = 0, 0, place.line
    while waiting:
        value, _, depth, given = waiting.pop()
        try:
            if value.startswith(b"["):
                elements = _LIST.decode(value)
                waiting += [(bytes(element), 0, depth, given) for element in reversed(elements)]
                continue
            members = _OBJECT.decode(value)
        except JSON_ERRORS as error:
            yield json_problem(error, value, place.file, place.line)
            continue
        # In the order of the file, so that each span is found behind the one before.
        holders = [key for key, held in members.items() if key in WRAPPERS and bytes(held)[:1] in (b"[", b"{")]
        if holders and depth < _DEPTH and not ({"attributes", "span_id", "context"} <= members.keys()):
            twice = repeated_where_read(_Envelope, value) or repeated_anywhere(bytes(members.get("info", b"")))
            if twice is not None:
                expected = "each key once in an object"
                yield Problem("repeated-key", place.file, place.line, twice, "stated twice", expected)
                continue
            try:
                info = _ANY.decode(members.get("info", b"null"))
            except JSON_ERRORS as error:  # bytes that are no text
                yield json_problem(error, bytes(members["info"]), place.file, place.line)
                continue
            given = given | of_mlflow_assessments(info)
            waiting += [(bytes(members[key]), 0, depth + 1, given) for key in reversed(holders)]
            continue
        start = within.find(value, cursor)
        if start < 0:
            start = max(within.find(value), 0)
        else:
            line += within.count(b"\n", counted, start)
            cursor, counted = start + len(value), start
        yield Dumped(value, place.file, line, place.offset + start, dict(given) or None)
        given.clear()  # the trace's assessments are stated once, at its first span
