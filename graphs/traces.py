"""Traces: the host side of a batch. Strings, places in files, evidence, and what was refused, beside the arrays.

`assemble` turns the records that readers yield into one `Traces`. Text lives in Arrow tables, one row an event, an
agent instance or a trace, in the order of the arrays; nothing keeps a Python object per event.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from graphs.errors import CreditError, NothingReadError, Problem, TraceError
from graphs.event_graph import EdgeType, EventGraph, EventType
from graphs.limits import DEFAULT, Limits
from graphs.padding import Sizes, bucket, pad, pad_array
from graphs.record import Agent, TraceRecord, check
from graphs.schema import EVENT_EVIDENCE, TEXT_COLUMNS, TRACE_EVIDENCE

__all__ = ["Evidence", "Traces", "assemble", "derive_turns"]


class Evidence(NamedTuple):
    """One evidence key as a padded array [E] or [T]; `mask` is True where the log had it, `values` 0 elsewhere."""

    values: np.ndarray
    mask: np.ndarray


@dataclasses.dataclass(frozen=True)
class Traces:
    """A batch of traces: arrays for methods, tables for people.

    Attributes:
      graph: the padded `EventGraph`, NumPy arrays.
      reward: float32 [T], the outcome of each trace; NaN where the log has none (such a trace gets no credit and enters
        no baseline), 0 in padding.
      evidence: by name, as in `graphs.schema`, and "rewards.CHANNEL", "costs.NAME", "metrics.NAME" per trace.
      events: Arrow table, a row for each real event: event (id), file, line, offset, time, and the text columns.
      agents: Arrow table, a row for each agent instance: agent (id), name, role, and the rows of its parent and trace.
      traces: Arrow table, a row for each trace: trace (id), group (id), format, file, line, topology, system.
      problems: what was refused or did not fit, and why. A refused trace is not in the batch; kinds such as
        "unmatched-row" and "foreign-key" concern something smaller than a trace.
      ignored: files of a folder that were passed over, because their names are not those of logs.
    """

    graph: EventGraph
    reward: np.ndarray
    evidence: Mapping[str, Evidence]
    events: pa.Table
    agents: pa.Table
    traces: pa.Table
    problems: tuple[Problem, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def sizes(self) -> Sizes:
        """Real numbers of events, edges, agents and traces."""
        edges = int(np.sum(self.graph.edge_mask))
        return Sizes(self.events.num_rows, edges, self.agents.num_rows, self.traces.num_rows)

    def index(self, trace: int | str) -> int:
        """The row of a trace given by its id, or by its row, which is checked.

        Raises:
          CreditError: there is none.
        """
        if isinstance(trace, str):
            rows = np.flatnonzero(np.asarray(self.traces["trace"]) == trace)
            if len(rows) == 0:
                raise CreditError(f"trace is {trace!r}; expected the id of one of the {self.traces.num_rows} traces")
            return int(rows[0])
        if not 0 <= trace < self.traces.num_rows:
            raise CreditError(f"trace is {trace}; expected 0 to {self.traces.num_rows - 1}, or the id of a trace")
        return trace

    def raw(self, event: int) -> bytes:
        """The log's own record of an event, read again from its file: the JSON value or the line that starts there.

        In formats whose record is a whole trace (native, one trace a line) that is the trace's record.

        Raises:
          CreditError: the batch was read from standard input or a format without text, or the file has changed.
        """
        from graphs.readers.source import Source  # readers import this module

        file, offset = self.events["file"][event].as_py(), self.events["offset"][event].as_py()
        path = Path(file)
        if not path.is_file() or offset is None or offset < 0:
            raise CreditError(f"event {event} has no record to read again: it came from {file!r}")
        data = Source(file, path).data[offset:]
        line = data.split(b"\n", 1)[0].strip()
        try:
            text = data.decode()
            _, end = json.JSONDecoder().raw_decode(text)
        except ValueError:  # not JSON (a row of a CSV file), or no longer what was read
            return line
        return text[:end].encode()

    def __repr__(self) -> str:
        n = self.sizes
        groups = len(set(self.traces["group"].to_pylist()))
        return (
            f"Traces({n.traces} traces in {groups} groups, {n.events} events, {n.agents} agents, "
            f"{len(self.problems)} problems)"
        )


def assemble(
    items: Iterable[TraceRecord | Problem],
    *,
    reward: str = "team",
    to: Sizes | None = None,
    ignored: Iterable[str] = (),
    limits: Limits = DEFAULT,
) -> Traces:
    """Check records and join them into one batch; a trace that is refused leaves the others untouched.

    Args:
      items: records, and the problems that readers met, in order.
      reward: the reward channel that is the outcome.
      to: sizes to pad to; by default `graphs.padding.bucket` of what was read.
      ignored: names of files that were passed over.
      limits: how many events and edges a trace may have.

    Raises:
      NothingReadError: no trace is usable; carries the problems.
      CapacityError: the batch does not fit `to`.
    """
    problems: list[Problem] = []
    batch = _Batch()
    seen: dict[str, TraceRecord] = {}
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
            continue
        try:
            _check_size(item, limits)
            record = check(item)
            if record.trace_id in seen:
                first = seen[record.trace_id]
                expected = f"an id that no other trace has (also {first.file}:{first.line})"
                record.refuse("duplicate-trace", "trace_id", record.trace_id, expected)
        except TraceError as error:
            problems.append(error.problem)
            continue
        seen[record.trace_id] = dataclasses.replace(record, **_EMPTY)  # only its place is needed from here on
        batch.add(record)
    if not seen:
        raise NothingReadError("no trace could be read", tuple(problems))
    return batch.finish(reward, to, tuple(problems), tuple(ignored))


def _check_size(record: TraceRecord, limits: Limits) -> None:
    for field, found, most in (
        ("events", len(record.ids), limits.events),
        ("edges", len(record.senders), limits.edges),
    ):
        if found > most:
            record.refuse("too-many", field, found, f"at most {most} {field} in a trace")


_EMPTY: dict[str, Any] = {
    name: []
    for name in (
        "ids", "types", "agents", "actions", "times", "lines", "offsets", "files", "turns",
        "senders", "receivers", "edge_types",
    )
} | {"columns": {}, "instances": {}}  # fmt: skip


class _Vocabulary(dict[str, int]):
    """Strings to dense ids, in order of first appearance."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


class _Batch:
    """Growing columns of a batch; one small array per trace and column, joined at the end."""

    def __init__(self) -> None:
        self.arrays: dict[str, list[np.ndarray]] = {}
        self.text: dict[str, list[pa.Array]] = {}
        self.names, self.roles, self.groups = _Vocabulary(), _Vocabulary(), _Vocabulary()
        self.ids: dict[str, _Vocabulary] = {}
        self.event_columns: dict[str, list[tuple[int, np.ndarray, np.ndarray]]] = {}
        self.trace_columns: dict[str, list[tuple[int, float]]] = {}
        self.num = Sizes(0, 0, 0, 0)
        self.turns = 0

    def _append(self, **arrays: np.ndarray) -> None:
        for name, array in arrays.items():
            self.arrays.setdefault(name, []).append(array)

    def _append_text(self, **columns: tuple[list[Any] | pa.Array, pa.DataType]) -> None:
        for name, (values, kind) in columns.items():
            column = values if isinstance(values, pa.Array) else pa.array(values, kind)
            self.text.setdefault(name, []).append(column)

    def add(self, record: TraceRecord) -> None:
        n, k = len(record.ids), len(record.senders)
        instances = dict(record.instances)
        for agent_id in dict.fromkeys(record.agents):
            if agent_id not in instances:
                instances[agent_id] = Agent()
        index = {agent_id: i for i, agent_id in enumerate(instances)}
        agent_of_event = np.fromiter(map(index.__getitem__, record.agents), np.int32, n)
        senders, receivers = np.array(record.senders, np.int32), np.array(record.receivers, np.int32)
        edge_type = np.array(record.edge_types, np.int32)
        types = np.array(record.types, np.int32)
        times = np.array(record.times, np.float64)
        if record.turns:
            labels = _Vocabulary()
            turns = np.fromiter(
                (labels[f"{a}\0{t}"] for a, t in zip(record.agents, record.turns, strict=True)), np.int32
            )
        else:
            turns = derive_turns(types, agent_of_event, senders, receivers, edge_type)
        known = times[np.isfinite(times)]
        self._append(
            event_type=types,
            action_mask=np.array(record.actions, bool),
            time=_seconds(times, known[0] if len(known) else 0.0),
            trace_ids=np.full(n, self.num.traces, np.int32),
            agent_ids=agent_of_event + np.int32(self.num.agents),
            turn_ids=turns + np.int32(self.turns),
            senders=senders + np.int32(self.num.events),
            receivers=receivers + np.int32(self.num.events),
            edge_type=edge_type,
            agent_name_ids=np.fromiter(
                (self.names[agent.name or agent_id] for agent_id, agent in instances.items()), np.int32
            ),
            agent_role_ids=np.fromiter(
                (self.roles[agent.role or agent.name or agent_id] for agent_id, agent in instances.items()),
                np.int32,
            ),
            agent_parent=np.fromiter(
                (index[agent.parent or agent_id] + self.num.agents for agent_id, agent in instances.items()),
                np.int32,
            ),
            agent_trace=np.full(len(instances), self.num.traces, np.int32),
            group_ids=np.array([self.groups[record.group_id]], np.int32),
        )
        self._add_text(record, instances, times)
        self._add_evidence(record)
        self.turns += int(turns.max()) + 1
        self.num = Sizes(self.num.events + n, self.num.edges + k, self.num.agents + len(instances), self.num.traces + 1)

    def _add_text(self, record: TraceRecord, instances: dict[str, Agent], times: np.ndarray) -> None:
        n = len(record.ids)
        string = pa.string()
        self._append_text(
            event=(record.ids, string),
            event_file=(record.files or pa.repeat(pa.scalar(record.file, string), n), string),
            event_line=(record.lines, pa.int32()),
            event_offset=(record.offsets, pa.int64()),
            agent=(list(instances), string),
            trace=([record.trace_id], string),
            group=([record.group_id], string),
            format=([record.format], string),
            file=([record.file], string),
            line=([record.line], pa.int32()),
            offset=([record.offset], pa.int64()),
            topology=([record.topology or None], string),
            system=([record.system or None], string),
        )
        self.text.setdefault("event_time", []).append(pa.array(times, from_pandas=True))
        for name in TEXT_COLUMNS:
            self._append_text(**{name: (_filled(record.columns.get(name), n, string), string)})
        self._append_text(trusted=(_filled(record.columns.get("trusted"), n, pa.bool_()), pa.bool_()))

    def _add_evidence(self, record: TraceRecord) -> None:
        for name, key in EVENT_EVIDENCE.items():
            column = record.columns.get(name)
            if not column:
                continue
            if key.kind == "id":
                mask = np.fromiter((v is not None for v in column), bool, len(column))
                vocabulary = self.ids.setdefault(name, _Vocabulary())
                values = np.fromiter((0 if v is None else vocabulary[str(v)] for v in column), np.float64, len(column))
            else:
                values = np.array(column, np.float64)  # None becomes NaN
                mask = np.isfinite(values)
            self.event_columns.setdefault(name, []).append((self.num.events, np.where(mask, values, 0), mask))
        for family, amounts in (
            ("rewards.", record.rewards),
            ("costs.", record.costs),
            ("metrics.", record.metrics),
            ("", {name: v for name, v in record.evidence.items() if name in TRACE_EVIDENCE}),
        ):
            for name, amount in amounts.items():
                self.trace_columns.setdefault(family + name, []).append((self.num.traces, amount))

    def finish(self, channel: str, to: Sizes | None, problems: tuple[Problem, ...], ignored: tuple[str, ...]) -> Traces:
        to = bucket(self.num) if to is None else to
        joined = {name: np.concatenate(parts) for name, parts in self.arrays.items()}
        graph = pad(
            EventGraph(
                event_mask=np.ones(self.num.events, bool),
                edge_mask=np.ones(self.num.edges, bool),
                agent_mask=np.ones(self.num.agents, bool),
                trace_mask=np.ones(self.num.traces, bool),
                **joined,
            ),
            to,
        )
        evidence = self._finish_evidence(to)
        outcome = evidence.get(f"rewards.{channel}")
        reward = np.full(self.num.traces, np.nan, np.float32)
        if outcome is not None:
            reward = np.where(outcome.mask, outcome.values, np.nan)[: self.num.traces].astype(np.float32)
        return Traces(
            graph=graph,
            reward=pad_array(reward, to.traces),
            evidence=evidence,
            events=self._table(
                event="event", file="event_file", line="event_line", offset="event_offset", time="event_time",
                trusted="trusted", **{name: name for name in TEXT_COLUMNS},
            ),
            agents=self._agents(joined),
            traces=self._table(
                trace="trace", group="group", format="format", file="file", line="line", offset="offset",
                topology="topology", system="system",
            ),
            problems=problems,
            ignored=ignored,
        )  # fmt: skip

    def _table(self, **columns: str) -> pa.Table:
        return pa.table({name: pa.chunked_array(self.text[key]).combine_chunks() for name, key in columns.items()})

    def _agents(self, joined: dict[str, np.ndarray]) -> pa.Table:
        return pa.table(
            {
                "agent": pa.chunked_array(self.text["agent"]).combine_chunks(),
                "name": pa.array(list(self.names)).take(pa.array(joined["agent_name_ids"])),
                "role": pa.array(list(self.roles)).take(pa.array(joined["agent_role_ids"])),
                "parent": joined["agent_parent"],
                "trace": joined["agent_trace"],
            }
        )

    def _finish_evidence(self, to: Sizes) -> dict[str, Evidence]:
        evidence: dict[str, Evidence] = {}
        for name, parts in self.event_columns.items():
            kind = EVENT_EVIDENCE[name].kind
            dtype = np.float32 if kind == "float" else np.int32
            values, mask = np.zeros(to.events, dtype), np.zeros(to.events, bool)
            for start, part, there in parts:
                values[start : start + len(part)] = part
                mask[start : start + len(part)] = there
            evidence[name] = Evidence(values, mask)
        for name, pairs in self.trace_columns.items():
            amounts, mask = np.zeros(to.traces, np.float64), np.zeros(to.traces, bool)
            for row, amount in pairs:
                amounts[row], mask[row] = amount, True
            evidence[name] = Evidence(amounts, mask)
        return evidence


def _filled(column: list[Any] | None, n: int, kind: pa.DataType) -> list[Any] | pa.Array:
    """A column of n entries, null where the record has none."""
    if not column:
        return pa.nulls(n, kind)
    return column if len(column) == n else column + [None] * (n - len(column))


def _seconds(times: np.ndarray, start: float) -> np.ndarray:
    """Time since `start` as float32; a number of a log that is beyond float32 becomes the largest there is."""
    largest = np.finfo(np.float32).max
    return np.clip(times - start, -largest, largest).astype(np.float32)


def derive_turns(
    types: np.ndarray, agents: np.ndarray, senders: np.ndarray, receivers: np.ndarray, edge_type: np.ndarray
) -> np.ndarray:
    """Turn of each event of one trace, dense from 0, numbered by first event.

    An agent's turn begins with its first event, with an event that another agent's event led to (it was activated), and
    after it returned (it had handed over). Edges that only tell time activate nobody.
    """
    n = len(types)
    activated = np.zeros(n, bool)
    cross = (agents[senders] != agents[receivers]) & (edge_type != EdgeType.TEMPORAL)
    activated[receivers[cross]] = True
    order = np.argsort(agents, kind="stable")
    mine = agents[order]
    begins = np.ones(n, bool)
    same = mine[1:] == mine[:-1]
    begins[1:] = ~same | activated[order][1:] | (types[order][:-1] == EventType.RETURN)
    run = np.empty(n, np.int64)
    run[order] = np.cumsum(begins) - 1
    _, first, dense = np.unique(run, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype=np.int32)
    return rank[dense]
