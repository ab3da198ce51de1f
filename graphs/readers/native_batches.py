"""Records of the native format as columns, batch by batch: each by the quickest way that takes it.

Compiled loops, where they are wanted, take plain text (`graphs.readers.native_scan`); typed structs take everything
that the format allows (`graphs.readers.native_structs`); and a trace in which something is wrong or out of order goes
through a `TraceRecord` alone (`graphs.readers.native_records`), which names its fault.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator

import numpy as np

from graphs.errors import Problem, TraceError
from graphs.part import Part
from graphs.readers.json_problems import JSON_ERRORS, json_problem, untyped
from graphs.readers.native_columns import Decoded, columns
from graphs.readers.native_records import from_wire
from graphs.readers.native_slim import SlimDecoder
from graphs.readers.native_structs import edges_of, events_of
from graphs.readers.native_wire import DECODER, EXTENSION_KEYS, TOP_LEVEL_EXTENSION, Trace
from graphs.readers.source import Source
from graphs.record import TraceRecord

__all__ = ["Piece", "read_compiled", "read_pieces"]

BATCH_BYTES = 2 << 20
"""Text whose traces become columns at once: enough that calls of NumPy do not count, little enough for the caches."""

Piece = tuple[int, int, bytes]
"""Line, offset and JSON of a record."""

_NOTHING = Trace("-", "-", [])


def read_compiled(
    source: Source, found: Iterable[Piece | Problem], decoder: SlimDecoder
) -> Iterator[Part | TraceRecord | Problem]:
    """What `read_pieces` gives, by compiled loops as far as these go."""
    batch: list[Piece] = []
    size = 0
    for piece in found:
        if isinstance(piece, Problem) or source.limits.refuse_size(piece[2], source.name, piece[0]) is not None:
            yield from _scanned(source, batch, decoder)
            yield from read_pieces(source, [piece], decoder)
            batch, size = [], 0
            continue
        if size + len(piece[2]) > BATCH_BYTES:
            yield from _scanned(source, batch, decoder)
            batch, size = [], 0
        batch.append(piece)
        size += len(piece[2])
    yield from _scanned(source, batch, decoder)


def _scanned(source: Source, batch: list[Piece], decoder: SlimDecoder) -> Iterator[Part | TraceRecord | Problem]:
    """A batch of records as parts; those that are not plain by `read_pieces`, between them."""
    if not batch:
        return
    from graphs.readers.native_scan import MOST_TEXT, NEVER_DEEPER, scan_traces  # loads a compiler

    limits = source.limits
    records = [data for _, _, data in batch]
    fits = limits.depth >= NEVER_DEEPER and sum(map(len, records)) <= MOST_TEXT
    scanned = scan_traces(records) if fits else None
    if scanned is None:
        yield from read_pieces(source, batch, decoder)
        return
    decoded = [
        _heading(source, *piece, header) if count else Decoded(_NOTHING, *piece)
        for piece, header, count in zip(batch, scanned.headers, scanned.events.counts.tolist(), strict=True)
    ]
    part, plain = columns(decoded, scanned.events, scanned.edges, source.name, limits)
    plain &= np.array([of.trace is not _NOTHING for of in decoded])
    for is_plain, run in itertools.groupby(range(len(batch)), plain.__getitem__):
        rows = list(run)
        if is_plain:
            yield part.slice(rows[0], rows[-1] + 1)
        else:
            yield from read_pieces(source, batch[rows[0] : rows[-1] + 1], decoder)


def _heading(source: Source, line: int, offset: int, data: bytes, header: bytes) -> Decoded:
    """A record with its header decoded; `_NOTHING` where that nests too deep or cannot be decoded."""
    trace = _NOTHING
    if source.limits.refuse_depth(header, source.name, line) is None:
        with contextlib.suppress(*JSON_ERRORS):  # `read_pieces` says what is wrong
            trace = DECODER.decode(header)
    return Decoded(trace, line, offset, data)


def read_pieces(
    source: Source, found: Iterable[Piece | Problem], decoder: SlimDecoder
) -> Iterator[Part | TraceRecord | Problem]:
    """The traces of some records of a source, and the problems, in their order."""
    batch: list[Decoded] = []
    size = 0
    for piece in found:
        item = piece if isinstance(piece, Problem) else _decode(source, decoder, *piece)
        if batch and (isinstance(item, Problem) or size > BATCH_BYTES or type(item.trace) is not type(batch[-1].trace)):
            yield from _built(source, batch)
            batch, size = [], 0
        if not isinstance(item, Problem):
            batch.append(item)
            size += len(item.data)
        elif isinstance(piece, Problem):
            yield item
        else:
            yield from _without_foreign_keys(item, source, *piece)
    yield from _built(source, batch)


def _decode(source: Source, decoder: SlimDecoder, line: int, offset: int, data: bytes) -> Decoded | Problem:
    refused = source.limits.refuse_size(data, source.name, line)
    if refused is not None:
        return refused
    try:
        trace = decoder.decode(data)
    except JSON_ERRORS as error:
        return json_problem(error, data, source.name, line)
    known = len(trace.events) + len(trace.edges or ()) + len(trace.agents or ())  # objects at a known depth
    return source.limits.refuse_depth(data, source.name, line, known) or Decoded(trace, line, offset, data)


def _built(source: Source, batch: list[Decoded]) -> Iterator[Part | TraceRecord | Problem]:
    """A batch as parts; traces that are not plain, one by one between them, as records or problems."""
    if not batch:
        return
    traces = [decoded.trace for decoded in batch]
    plain = np.zeros(len(batch), bool)
    if any(trace.events for trace in traces):
        events = events_of(traces)
        edges = edges_of(traces, events.fields["id"], events.counts)
        part, plain = columns(batch, events, edges, source.name, source.limits)
    for is_plain, run in itertools.groupby(range(len(batch)), plain.__getitem__):
        rows = list(run)
        if is_plain:
            yield part.slice(rows[0], rows[-1] + 1)
            continue
        for row in rows:
            trace, line, offset, data = batch[row]
            try:
                yield from_wire(trace, source.name, line, offset)
            except TraceError as error:
                yield from _without_foreign_keys(error.problem, source, line, offset, data)


def _without_foreign_keys(
    problem: Problem, source: Source, line: int, offset: int, data: bytes
) -> list[TraceRecord | Problem]:
    """A trace in the survey's own form, read without the event keys that only look like the extension's.

    The survey lets an event have any further key with any value: there, a text under "value" is not wrong, it is
    another thing. Such a key is left out of the whole trace, and a problem says so. Where something else is wrong, the
    problem remains and the trace does not.
    """
    document = untyped(data) if _concerns_extension(problem) else None
    if not isinstance(document, dict) or any(key in document for key in TOP_LEVEL_EXTENSION):
        return [problem]
    foreign: list[TraceRecord | Problem] = []
    while True:
        if not _concerns_extension(problem):
            return [problem]
        key = problem.field.rpartition(".")[2]
        expected = f"{problem.expected}; {key!r} is left out of this trace"
        foreign.append(dataclasses.replace(problem, kind="foreign-key", expected=expected))
        for event in document["events"]:
            if isinstance(event, dict):
                event.pop(key, None)
        built = _decode(source, SlimDecoder(), line, offset, json.dumps(document).encode())
        if isinstance(built, Problem):
            problem = built
            continue
        try:
            return [*foreign, from_wire(built.trace, source.name, line, offset)]
        except TraceError as error:
            problem = error.problem


def _concerns_extension(problem: Problem) -> bool:
    return problem.field.startswith("events[") and problem.field.rpartition(".")[2] in EXTENSION_KEYS
