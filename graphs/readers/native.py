"""The native format: the survey's orchestration-trace JSON and its extension. `docs/formats/native.md` is the map.

A file holds one trace, a JSON list of traces, or one trace a line. Each is decoded into typed structs
(`graphs.readers.native_wire`), which become the columns of a `TraceRecord` at once.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import ACTION_TYPES, EventType
from graphs.part import Part
from graphs.readers import native_slim
from graphs.readers.json_problems import JSON_ERRORS, json_problem, untyped
from graphs.readers.keys import Opening, opening
from graphs.readers.native_agents import find_agents, owners
from graphs.readers.native_columns import Decoded, columns
from graphs.readers.native_wire import (
    COUNTS,
    EDGE_CODES,
    EVENT_CODES,
    EXTENSION_KEYS,
    NEVER_NEGATIVE,
    TOP_LEVEL_EXTENSION,
    Trace,
    version_known,
)
from graphs.readers.source import Source, unreadable
from graphs.record import TraceRecord
from graphs.schema import EVENT_EVIDENCE, SCHEMA_VERSION, TEXT_COLUMNS

__all__ = ["Piece", "from_wire", "pieces", "read", "read_pieces", "sniff"]

_IS_ACTION = [kind in ACTION_TYPES for kind in sorted(EventType)]
_KEPT = (*TEXT_COLUMNS, "trusted", *EVENT_EVIDENCE)
_TOP_LEVEL = frozenset(Trace.__struct_encode_fields__)
_LINES_TO_LOOK_AT = 20
BATCH_BYTES = 2 << 20
"""Text whose traces become columns at once: enough that calls of NumPy do not count, little enough for the caches."""
_SHORT_HEAD = 2048
NEXT_OBJECT = re.compile(rb"\}\s*\{")
"""Where two objects stand side by side, no document goes over both: they are lines."""
_SRC, _DST, _TYPE = attrgetter("src"), attrgetter("dst"), attrgetter("type")


def sniff(head: bytes) -> bool:
    """Whether the content is a trace of this format, a list of them, or lines of them, by its first keys.

    The first line may be broken: the lines behind it are looked at too.
    """
    if b'"events"' not in head and not (b'"trace_id"' in head and b'"task_id"' in head):
        return False  # for speed: most files are not ours
    head = head.lstrip()
    if head.startswith(b"["):
        return _is_ours(head[1:].lstrip())
    starts, at = [0], head.find(b"\n{")
    while at >= 0 and len(starts) < _LINES_TO_LOOK_AT:
        starts.append(at + 1)
        at = head.find(b"\n{", at + 1)
    return any(_is_ours(head[start:]) for start in starts)


def _is_ours(head: bytes) -> bool:
    if len(head) > _SHORT_HEAD and b'"events"' in head[:_SHORT_HEAD] and _has_our_events(opening(head[:_SHORT_HEAD])):
        return True  # for speed: more of it would show more keys, not fewer
    seen = opening(head)
    if _has_our_events(seen):
        return True
    keys = set(seen.keys)
    return {"trace_id", "task_id"} <= keys and "events" not in keys and not seen.complete and keys <= _TOP_LEVEL


def _has_our_events(seen: Opening) -> bool:
    ids = {"trace_id", "task_id"}.intersection(seen.keys)
    event = seen.first.get("events", frozenset())
    return "events" in seen.keys and (
        len(ids) == 2 or {"type", "agent"} <= event or (bool(ids) and len(event & {"id", "t", "type", "agent"}) > 1)
    )


def read(sources: Sequence[Source]) -> Iterator[Part | TraceRecord | Problem]:
    """The traces of all sources; a trace that cannot be decoded is a `Problem` and harms no other."""
    decoder = native_slim.SlimDecoder()
    for source in sources:
        try:
            found = pieces(source)
        except OSError as error:
            yield unreadable(source, error)
            continue
        yield from read_pieces(source, found, decoder)
        source.release()


def read_pieces(
    source: Source, found: Iterable[Piece | Problem], decoder: native_slim.SlimDecoder
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


def _decode(source: Source, decoder: native_slim.SlimDecoder, line: int, offset: int, data: bytes) -> Decoded | Problem:
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
    part, plain = columns(batch, source.name, source.limits)
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


Piece = tuple[int, int, bytes]
"""Line, offset and JSON of a record."""


def pieces(source: Source) -> Iterable[Piece | Problem]:
    """The record of each trace of a source.

    Raises:
      OSError: it cannot be read.
    """
    data = source.data
    text = data.strip()
    if not text:
        return [Problem("empty-file", source.name, 0, "content", "empty", "at least one trace")]
    start = len(data) - len(data.lstrip())
    whole = (1 + data.count(b"\n", 0, start), start, text)
    if text.startswith(b"["):
        return _elements(source.name, *whole)
    end = text.find(b"\n")
    if end < 0:
        return [whole]
    if NEXT_OBJECT.match(text, end - 1):
        return source.unchecked_lines()
    if _is_json(text[:end]) or (not _is_json(text) and any(_is_json(line) for _, _, line in source.unchecked_lines())):
        return source.unchecked_lines()
    return [whole]


def _is_json(data: bytes) -> bool:
    try:
        return bytes(msgspec.json.decode(data, type=msgspec.Raw)).startswith(b"{")
    except JSON_ERRORS:
        return False


def _elements(file: str, line: int, offset: int, text: bytes) -> Iterator[Piece | Problem]:
    try:
        elements = msgspec.json.decode(text, type=list[msgspec.Raw])
    except JSON_ERRORS as error:
        yield json_problem(error, text, file, line)
        return
    if not elements:
        yield Problem("empty-file", file, line, "content", "[]", "at least one trace")
    at = 1
    for element in elements:
        piece = bytes(element)
        found = text.index(piece, at)  # between two elements there are only blanks and a comma
        line += text.count(b"\n", at, found)
        yield line, offset + found, piece
        line += piece.count(b"\n")
        at = found + len(piece)


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
        built = _decode(source, native_slim.SlimDecoder(), line, offset, json.dumps(document).encode())
        if isinstance(built, Problem):
            problem = built
            continue
        try:
            return [*foreign, from_wire(built.trace, source.name, line, offset)]
        except TraceError as error:
            problem = error.problem


def _concerns_extension(problem: Problem) -> bool:
    return problem.field.startswith("events[") and problem.field.rpartition(".")[2] in EXTENSION_KEYS


def from_wire(trace: Trace, file: str, line: int, offset: int) -> TraceRecord:
    """The columns of a decoded trace.

    Raises:
      TraceError: kinds "unknown-version", "dangling-edge", "duplicate-agent", "mixed-turns", "bad-type",
        "out-of-range".
    """
    n = len(trace.events)
    columns = native_slim.columns(trace)
    absent: list[None] = [None] * n
    record = TraceRecord(
        trace.trace_id,
        trace.group or trace.task_id,
        file,
        line,
        offset,
        "native",
        lines=[line] * n,
        offsets=[offset] * n,
    )
    _check_document(trace, record)
    if not n:
        return record  # `graphs.record.check` refuses it
    record.ids = columns["id"]
    record.types = list(map(EVENT_CODES.__getitem__, columns["type"]))
    if "t" in columns:
        record.times = [math.nan if t is None else t for t in columns["t"]]
    else:
        record.times = [math.nan] * n
    record.columns = {name: columns[name] for name in _KEPT if name in columns and columns[name].count(None) < n}
    _check_counts(record)
    record.actions = list(map(_IS_ACTION.__getitem__, record.types))
    if "action" in columns:
        record.actions = [
            chosen if stated is None else stated
            for chosen, stated in zip(record.actions, columns["action"], strict=True)
        ]
    record.turns = _turns(record, columns.get("turn", absent))
    if trace.edges:
        _set_edges(record, trace)
    tools, targets = columns.get("tool", absent), columns.get("to", absent)
    record.agents, moved = owners(trace, record, columns["agent"], tools, targets)
    roles: Sequence[str | None] = columns.get("role", absent)
    if moved:
        roles = [None if i in moved else role for i, role in enumerate(roles)]  # the role was the tool's
    record.instances = find_agents(trace, record, roles, targets, columns.get("agent_name", absent))
    return record


def _check_document(trace: Trace, record: TraceRecord) -> None:
    if not version_known(trace.schema_version):
        expected = f"a version like {SCHEMA_VERSION}"
        record.refuse("unknown-version", "schema_version", trace.schema_version, expected)
    record.rewards, record.evidence = trace.rewards or {}, trace.evidence or {}
    record.costs, record.metrics = trace.costs or {}, trace.metrics or {}
    record.topology, record.system = trace.topology or "", trace.system or ""
    for name in NEVER_NEGATIVE:
        if record.costs.get(name, 0.0) < 0:
            record.refuse("out-of-range", f"costs.{name}", record.costs[name], "a number, 0 or more")
    listed = [agent.id for agent in trace.agents or ()]
    if len(set(listed)) < len(listed):
        twice = next(name for i, name in enumerate(listed) if name in listed[:i])
        record.refuse("duplicate-agent", "agents", twice, "each agent once")


def _check_counts(record: TraceRecord) -> None:
    for name in COUNTS:
        for position, amount in enumerate(record.columns.get(name, ())):
            if amount is not None and not amount.is_integer():
                record.refuse("bad-type", f"events[{position}].{name}", amount, "an integer", position)


def _turns(record: TraceRecord, turns: Sequence[Any]) -> list[Any]:
    missing = turns.count(None)
    if missing == len(turns):
        return []
    for position, turn in enumerate(turns):
        if isinstance(turn, float) and not turn.is_integer():
            record.refuse("bad-type", f"events[{position}].turn", turn, "a text or an integer", position)
    if missing:
        position = turns.index(None)
        record.refuse("mixed-turns", f"events[{position}].turn", None, "a turn at every event or at none", position)
    return [int(turn) if isinstance(turn, float) else turn for turn in turns]


def _set_edges(record: TraceRecord, trace: Trace) -> None:
    index = dict(zip(record.ids, range(len(record.ids)), strict=True))
    if len(index) < len(record.ids):
        return  # an edge could mean either event; `graphs.record.check` refuses the trace
    edges = trace.edges or []
    try:
        record.senders = list(map(index.__getitem__, map(_SRC, edges)))
        record.receivers = list(map(index.__getitem__, map(_DST, edges)))
    except KeyError:
        for i, edge in enumerate(edges):
            for end, event_id in (("src", edge.src), ("dst", edge.dst)):
                if event_id not in index:
                    record.refuse("dangling-edge", f"edges[{i}].{end}", event_id, "the id of an event of this trace")
    record.edge_types = list(map(EDGE_CODES.__getitem__, map(_TYPE, edges)))
