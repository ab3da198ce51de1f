"""Records of the native format as columns, batch by batch.

Typed structs take everything that the format allows (`graphs.formats.native.structs`), and a batch of them becomes
columns at once (`graphs.formats.native.columns`). A trace in which something is wrong or out of order goes through a
`TraceRecord` alone (`graphs.formats.native.records`), which names its fault.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from graphs.errors import Problem, TraceError
from graphs.formats.native.columns import Decoded, columns
from graphs.formats.native.records import from_wire
from graphs.formats.native.slim import SlimDecoder, shallow_brackets
from graphs.formats.native.structs import edges_of, events_of
from graphs.formats.native.wire import DECODER, EXTENSION_KEYS, TOP_LEVEL_EXTENSION, Trace, clocks_apart, state_numbers
from graphs.problem_log import MOST_LISTED
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS, brief_kind, json_problem, not_utf8, untyped
from graphs.reading.null_and_truth import decoded, without_nan
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.limits import brackets
from graphs.traces.part import Part
from graphs.traces.record import ONE_ZONE, TraceRecord

__all__ = ["BATCH_BYTES", "Faults", "Record", "read_records"]

BATCH_BYTES = 2 << 20
"""Text whose traces become columns at once: enough that calls of NumPy do not count, little enough for the caches."""


_HEADING = frozenset({"trace_id", "task_id", "group", "system", "rewards", "metrics"})
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Faults:
    """Records that cannot be decoded: after `MOST_LISTED` of a file they are counted, by kind, and not described.

    And one note for the evidence of each file that is NaN, which is none.
    """

    def __init__(self) -> None:
        self._met: collections.Counter[str] = collections.Counter()
        self._counted: dict[tuple[str, str], tuple[Problem, int]] = {}

    def counts(self, error: Exception, record: Record) -> bool:
        """Note a fault; True where it is only counted."""
        file = record.source.name
        self._met[file] += 1
        if self._met[file] <= MOST_LISTED:
            return False
        kind = brief_kind(error)
        first, number = self._counted.get((file, kind), (None, 0))
        if first is None:
            first = Problem(kind, file, record.line, "content", excerpt(record.data[:60]), "a valid record")
        self._counted[file, kind] = first, number + 1
        return True

    def note_nan(self, record: Record, trace: str, keys: Sequence[str]) -> None:
        """Note evidence that is NaN in a record that was decoded without it."""
        expected = "a number, or null for none, as which it is read"
        note = Problem("nan-evidence", record.source.name, record.line, keys[0], "NaN", expected, trace)
        first, number = self._counted.get((note.file, note.kind), (note, 0))
        self._counted[note.file, note.kind] = first, number + len(keys)

    def counted(self) -> list[Problem]:
        """One problem for what was only counted, of each file and kind."""
        return [dataclasses.replace(first, count=number) for first, number in self._counted.values()]


class Record(NamedTuple):
    """The JSON of a trace, and where it stands."""

    source: Source
    line: int
    offset: int
    data: bytes


def read_records(items: Iterable[Record | Problem], decoder: SlimDecoder) -> Iterator[Part | TraceRecord | Problem]:
    """The traces of records, and the problems, in their order; records of several files are put into one part."""
    faults = Faults()
    batch: list[tuple[Record, Trace]] = []
    size = 0
    for record in items:
        item = record if isinstance(record, Problem) else _decode(record, decoder, faults)
        if item is None:
            continue
        # Structs with other fields cannot become columns together.
        if batch and (isinstance(item, Problem) or size > BATCH_BYTES or type(item) is not type(batch[-1][1])):
            yield from _built(batch)
            batch, size = [], 0
        if isinstance(record, Problem):
            yield record
        elif isinstance(item, Problem):
            yield from _without_foreign_keys(item, record)
        else:
            batch.append((record, item))
            size += len(record.data)
    yield from _built(batch)
    yield from faults.counted()


def _decode(record: Record, decoder: SlimDecoder, faults: Faults | None = None) -> Trace | Problem | None:
    """The trace of a record, or what is wrong; None where `faults` only counts it."""
    source, line, _, data = record
    refused = source.limits.refuse_size(data, source.name, line)
    if refused is not None:
        return refused
    try:
        trace = decoded(decoder, data)
    except JSON_ERRORS as error:
        stated, keys = without_nan(data)
        if keys:
            item = _decode(record._replace(data=stated), decoder, faults)
            if faults is not None and item is not None and not isinstance(item, Problem):
                faults.note_nan(record, item.trace_id, keys)
            return item
        if faults is not None and faults.counts(error, record):
            return None
        return json_problem(error, data, source.name, line)
    if not is_utf8(data):
        return not_utf8(data, source.name, line)
    state_numbers(trace)
    if (stray := clocks_apart(trace.events)) is not None:
        shown = excerpt(str(trace.events[stray].t))
        return Problem("mixed-zones", source.name, line, f"events[{stray}].t", shown, ONE_ZONE, trace.trace_id)
    # Measuring the depth takes longer than decoding. It is not needed if few brackets remain, once those of listed
    # objects (their depth is known) and of values with few brackets are taken off.
    known, most = len(trace.events) + len(trace.edges or ()) + len(trace.agents or ()), source.limits.depth
    if brackets(data) - known <= most:
        return trace
    return source.limits.refuse_depth(data, source.name, line, known + shallow_brackets(trace, most)) or trace


def _built(batch: list[tuple[Record, Trace]]) -> Iterator[Part | TraceRecord | Problem]:
    """A batch as parts; traces that are not plain, one by one between them, as records or problems."""
    if not batch:
        return
    traces = [trace for _, trace in batch]
    plain = np.zeros(len(batch), bool)
    events = events_of(traces) if any(trace.events for trace in traces) else None
    if events is not None:
        edges = edges_of(traces)
        decoded = [Decoded(trace, record.source.name, record.line, record.offset) for record, trace in batch]
        part, plain = columns(decoded, events, edges, batch[0][0].source.limits)
    for is_plain, run in itertools.groupby(range(len(batch)), plain.__getitem__):
        rows = list(run)
        if is_plain:
            yield part.slice(rows[0], rows[-1] + 1)
            continue
        for row in rows:
            record, trace = batch[row]
            try:
                yield from_wire(trace, record.source.name, record.line, record.offset)
            except TraceError as error:
                yield from _without_foreign_keys(error.problem, record)


def _without_foreign_keys(problem: Problem, record: Record) -> list[TraceRecord | Problem]:
    """A trace in the survey's own form, read without the event keys that only look like the extension's.

    The survey lets an event have any further key with any value: there, a text under "value" is not wrong, it is
    another thing. Such a key is left out of the whole trace, and a problem says so. Where something else is wrong, the
    problem remains and the trace does not.
    """
    document = untyped(record.data) if _concerns_extension(problem) else None
    if not isinstance(document, dict) or any(key in document for key in TOP_LEVEL_EXTENSION):
        return [problem, *_unread(problem, record)]
    foreign: list[TraceRecord | Problem] = []
    while True:
        if not _concerns_extension(problem):
            return [problem, *_unread(problem, record)]
        key = _key_of_event(problem)
        expected = f"{problem.expected}; {key!r} is left out of this trace"
        foreign.append(dataclasses.replace(problem, kind="foreign-key", expected=expected))
        for event in document["events"]:
            if isinstance(event, dict):
                event.pop(key, None)
        trace = _decode(record._replace(data=json.dumps(document).encode()), SlimDecoder())
        if trace is None or isinstance(trace, Problem):
            problem = trace or problem
            continue
        try:
            return [*foreign, from_wire(trace, record.source.name, record.line, record.offset)]
        except TraceError as error:
            problem = error.problem


def _unread(problem: Problem, record: Record) -> Iterator[TraceRecord]:
    """What counts of a refused trace, where it can be decoded without events: its system and its outcomes."""
    for kept in (_HEADING, _HEADING - {"rewards"}) if problem.trace else ():
        with contextlib.suppress(TraceError, *JSON_ERRORS):
            stated = {name: value for name, value in _MEMBERS.decode(record.data).items() if name in kept}
            trace = decoded(DECODER, msgspec.json.encode({**stated, "events": []}))
            state_numbers(trace)
            yield from_wire(trace, record.source.name, record.line, record.offset).without_events()
            return


def _concerns_extension(problem: Problem) -> bool:
    return problem.field.startswith("events[") and _key_of_event(problem) in EXTENSION_KEYS


def _key_of_event(problem: Problem) -> str:
    """The key of an event that a problem names: "token_ids" for `events[0].token_ids[2]`."""
    return problem.field.rpartition(".")[2].partition("[")[0]
