"""Records as parts of a batch: the columns of many traces at once, because most of the time goes to calls, not data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from graphs.traces.cache_conventions import shown_beside
from graphs.traces.part import ABSENT_COUNT, EVENT_TEXT, Heading, Part, derive_turns
from graphs.traces.record import Agent, TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE
from graphs.traces.token_lists import gather_tokens, with_counts
from graphs.traces.tokens import TOKEN_COLUMNS, Tokens
from graphs.traces.turn_gaps import TURN, turn_numbers

__all__ = ["joined", "part_of"]


def joined(records: Sequence[TraceRecord]) -> TraceRecord:
    """Traces behind each other as one record: columns of events and edges, whose positions stay those of the traces."""
    counts = [len(record.ids) for record in records]
    names = {name for record in records for name, column in record.columns.items() if column}
    lists: dict[str, Any] = {name: _joined(records, name) for name in _JOINED}
    return TraceRecord("", "", "", columns={name: _column(records, name, counts) for name in names}, **lists)


def part_of(records: Sequence[TraceRecord], whole: TraceRecord | None = None) -> Part:
    """Checked records (`graphs.traces.record.check`) as one part, in their order.

    Instances without an entry in `instances` follow those with one, in the order of their events. The default of a name
    is the instance's id, and the default of a role is the name. Either all records have labels of turns, or none has.

    Args:
      records: at least one.
      whole: the records, `joined`, where they are at hand.
    """
    whole = joined(records) if whole is None else whole
    counts = [len(record.ids) for record in records]
    event_starts = [0, *itertools.accumulate(counts)]
    agents: list[int] = []
    instances: list[tuple[str, Agent]] = []
    parents: list[int] = []
    agent_ends: list[int] = []
    for record in records:
        agents_of_record = dict(record.instances)
        for agent_id in record.agents:
            if agent_id not in agents_of_record:
                agents_of_record[agent_id] = Agent()
        index = dict(zip(agents_of_record, range(len(instances), len(instances) + len(agents_of_record)), strict=True))
        agents += map(index.__getitem__, record.agents)
        parents += [index[agent.parent or name] for name, agent in agents_of_record.items()]
        instances += agents_of_record.items()
        agent_ends.append(len(instances))
    shifts = np.repeat(event_starts[:-1], [len(record.senders) for record in records]).astype(np.int32)
    senders, receivers = np.array(whole.senders, np.int32) + shifts, np.array(whole.receivers, np.int32) + shifts
    types, edge_types = np.array(whole.types, np.int32), np.array(whole.edge_types, np.int32)
    owner = np.array(agents, np.int32)
    numbers: dict[str, np.ndarray] = {}
    if records[0].turns:
        labels: dict[tuple[int, str], int] = {}
        words = list(map(str, _joined(records, "turns")))
        numbers[TURN] = turn_numbers(pa.array(words, pa.string()))
        pairs = zip(agents, words, strict=True)
        turns = np.fromiter((labels.setdefault(pair, len(labels)) for pair in pairs), np.int32, len(types))
    else:
        turns = derive_turns(types, owner, senders, receivers, edge_types)
    columns, actions = whole.columns, np.array(whole.actions, bool)
    tokens = _tokens(columns, actions)
    evidence = {name: _evidence(key.kind, columns[name]) for name, key in EVENT_EVIDENCE.items() if name in columns}
    evidence |= shown_beside(columns.get("input_tokens", ())) | numbers
    return Part(
        headings=[_heading(record) for record in records],
        event_ends=np.array(event_starts[1:]),
        edge_ends=np.cumsum([len(record.senders) for record in records]),
        agent_ends=np.array(agent_ends),
        types=types,
        agents=owner,
        turns=turns,
        actions=actions,
        times=np.array(whole.times, np.float64),
        senders=senders,
        receivers=receivers,
        edge_types=edge_types,
        agent_ids=pa.array([name for name, _ in instances], pa.string()),
        agent_names=pa.array([agent.name or name for name, agent in instances], pa.string()),
        agent_roles=pa.array([agent.role or agent.name or name for name, agent in instances], pa.string()),
        parents=np.array(parents, np.int32),
        text={"event": pa.array(whole.ids, pa.string())}
        | {name: pa.array(columns[name], EVENT_TEXT[name]) for name in EVENT_TEXT if name in columns},
        evidence=with_counts(evidence, tokens, actions),
        places=_places(records, counts),
        tokens=tokens,
    )


_JOINED = ("ids", "types", "actions", "times", "senders", "receivers", "edge_types")


def _joined(records: Sequence[TraceRecord], name: str) -> list[Any]:
    return list(itertools.chain.from_iterable(getattr(record, name) for record in records))


def _column(records: Sequence[TraceRecord], name: str, counts: Sequence[int]) -> list[Any]:
    """A column of all records, None where absent."""
    out: list[Any] = []
    for record, count in zip(records, counts, strict=True):
        values = record.columns.get(name, ())
        out += values
        out += [None] * (count - len(values))
    return out


def _heading(record: TraceRecord) -> Heading:
    return Heading(
        record.trace_id,
        record.group_id,
        record.file,
        record.line,
        record.offset,
        record.format,
        record.topology,
        record.system,
        record.model,
        record.rewards,
        record.costs,
        record.metrics,
        record.evidence,
        record.run,
        record.task_kind,
        record.sole,
        record.told_order,
    )


def _places(records: Sequence[TraceRecord], counts: Sequence[int]) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """File, line and offset of each event; None where they are those of its trace, and all traces are of one file."""
    if len({record.file for record in records}) == 1 and not any(
        record.files or set(record.lines) != {record.line} or set(record.offsets) != {record.offset}
        for record in records
    ):
        return None
    files: list[str] = []
    for record, count in zip(records, counts, strict=True):
        files += record.files or [record.file] * count
    lines, offsets = _joined(records, "lines"), _joined(records, "offsets")
    return pa.array(files, pa.string()), pa.array(lines, pa.int32()), pa.array(offsets, pa.int64())


def _tokens(columns: dict[str, list[Any]], actions: np.ndarray) -> Tokens | None:
    lists = {name: columns[name] for name in TOKEN_COLUMNS if name in columns}
    return gather_tokens(lists, actions)[0] if lists else None


def _evidence(kind: str, column: list[Any]) -> np.ndarray | pa.Array:
    if kind == "id":
        return pa.array([None if value is None else str(value) for value in column], pa.string())
    values = np.array(column, np.float64)  # None becomes NaN
    known = np.isfinite(values)
    if kind == "count":
        return np.where(known, values, ABSENT_COUNT).astype(np.int32)
    return np.where(known, values, np.nan).astype(np.float32)
