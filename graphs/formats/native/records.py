"""One decoded native trace as a `TraceRecord`; faults are named."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from graphs.event_types import ACTION_TYPES, EventType
from graphs.formats.native import slim as native_slim
from graphs.formats.native.agents import find_agents, owners
from graphs.formats.native.wire import COUNTS, EDGE_CODES, EVENT_CODES, Trace, version_known
from graphs.traces.record import Agent, TraceRecord, check_evidence
from graphs.traces.schema import EVENT_EVIDENCE, SCHEMA_VERSION, TEXT_COLUMNS
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = ["from_wire"]

_IS_ACTION = [kind in ACTION_TYPES for kind in sorted(EventType)]
_KEPT = (*TEXT_COLUMNS, "trusted", *EVENT_EVIDENCE, *TOKEN_COLUMNS)
_SRC, _DST, _TYPE = attrgetter("src"), attrgetter("dst"), attrgetter("type")


def from_wire(trace: Trace, file: str, line: int, offset: int) -> TraceRecord:
    """The columns of a decoded trace.

    Raises:
      TraceError: kinds "unknown-version", "dangling-edge", "duplicate-agent", "mixed-turns", "bad-type",
        "out-of-range".
    """
    n = len(trace.events)
    columns = native_slim.columns(trace.events)
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
        return record  # `graphs.traces.record.check` refuses it
    record.ids = columns["id"]
    record.types = list(map(EVENT_CODES.__getitem__, columns["type"]))
    for position, stops in enumerate(columns.get("stop", ())):
        if stops and record.types[position] == EventType.ORCHESTRATOR_DECISION:
            record.types[position] = int(EventType.STOP)
    if "t" in columns:
        record.times = [math.nan if t is None else t for t in columns["t"]]
    else:
        record.times = [math.nan] * n
    record.columns = {name: columns[name] for name in _KEPT if name in columns and columns[name].count(None) < n}
    _check_counts(record)
    check_evidence(record)
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
    listed = {agent.id: Agent(agent.name or "", agent.role or "", agent.parent or "") for agent in trace.agents or ()}
    record.agents, moved = owners(listed.keys(), record, columns["agent"], tools, targets)
    roles: Sequence[str | None] = columns.get("role", absent)
    if moved:
        roles = [
            None if i in moved else role for i, role in enumerate(roles)
        ]  # the role that such an event states is the tool's
    record.instances = find_agents(listed, record, roles, targets, columns.get("agent_name", absent))
    return record


def _check_document(trace: Trace, record: TraceRecord) -> None:
    if not version_known(trace.schema_version):
        expected = f"a version like {SCHEMA_VERSION}"
        record.refuse("unknown-version", "schema_version", trace.schema_version, expected)
    record.rewards, record.evidence = trace.rewards or {}, trace.evidence or {}
    record.costs, record.metrics = trace.costs or {}, trace.metrics or {}
    record.topology, record.system, record.model = trace.topology or "", trace.system or "", trace.model or ""
    record.task_kind, record.told_order = trace.task_kind or "", trace.told_order
    listed = [agent.id for agent in trace.agents or ()]
    if len(set(listed)) < len(listed):
        twice = collections.Counter(listed).most_common(1)[0][0]
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
        return  # an edge could mean either event; `graphs.traces.record.check` refuses the trace
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
