"""Writer of OTLP JSON: `spans.jsonl` and `logs.jsonl`, which OpenTelemetry tools accept and `credit` reads back.

`docs/formats/otlp.md` has the mapping. Agents, model calls, tool calls, parents, times and tokens follow the
OpenTelemetry GenAI conventions, and rewards are `gen_ai.evaluation.result` records. Marks, which are attributes with
the prefix `orchestration_credit.`, have the remaining content. A tool that ignores marks reads the same agents, calls,
tokens and rewards.

A trace with the mark `version` is stated: it has an event exactly where a mark `event.id` or `end.id` is, and no rule
of the reader changes what a span is. Beside the marks that users may set, it has these:

- the first span: `version`, `trace.id` where the trace's id is no OTLP id, `edges` = `stated` where edges are links
- an agent span: `agent.id`, `agent.index` (its place among the trace's agents)
- a span's event: `event.id`, `event.index` (its position), `event.turn`; where the reader would take something else,
  `event.type`, `.action`, `.agent`, `.time` (seconds), `.to`, `.tool` and so on; `end.*` for the closing event
- a span event named `orchestration_credit.event`: an event that no convention knows, with `event.*`
- a link: one edge, with `edge.index`, `.type`, `.from` and `.to` (event ids), where the reader would draw others
- an evaluation: `channel` where the name would mean another; `event.id` where the span would lead to another event
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from graphs.atomic import atomic_folder, atomic_write
from graphs.errors import CreditError, TraceError
from graphs.event_graph import EdgeType, EventType
from graphs.floats import shortest
from graphs.formats.otlp.evaluations import STEP
from graphs.formats.otlp.spans import log_evaluation, otlp_span
from graphs.formats.otlp.traces import build
from graphs.formats.otlp.wire import WireLog, WireSpan
from graphs.logs.collector_pause import collector_paused
from graphs.reading.documents import Place
from graphs.traces.batch import Traces
from graphs.traces.evidence import numbers_of_traces
from graphs.traces.record import Agent, TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE, TEXT_COLUMNS, TRACE_EVIDENCE
from graphs.writers.otlp_trace import (
    Event,
    TraceToWrite,
    Written,
    attribute,
    hex_trace_id,
    state_edges,
    write_trace,
)

__all__ = ["write"]

_WIRE = msgspec.json.Decoder(WireSpan)
_LOG = msgspec.json.Decoder(WireLog)


def write(traces: Traces, folder: str | Path) -> None:
    """Write `folder/spans.jsonl` and `folder/logs.jsonl`, with one export request per line and trace, in batch order.

    Reading the folder gives the same arrays, rewards and evidence, bit for bit; each trace is read back before it is
    written. Files, lines, problems and the strings of evidence of kind "id" are lost (equal ids stay equal). The folder
    is created if it does not exist. Both files are written whole or not at all.

    Args:
      traces: a batch.
      folder: for the two files.

    Raises:
      CreditError: OTLP cannot represent a value; the message names it, and nothing is written.
      OSError: the folder cannot be written to.
    """
    _check(traces)
    scope = {"name": "orchestration_credit"}
    resource = {"attributes": [attribute("service.name", "orchestration_credit")]}
    with (
        collector_paused(),
        atomic_folder(folder) as new,
        atomic_write(new / "spans.jsonl") as spans,
        atomic_write(new / "logs.jsonl") as logs,
    ):
        for trace in _traces_to_write(traces):
            written = _written(trace)
            of_spans = {"resource": resource, "scopeSpans": [{"scope": scope, "spans": written.spans}]}
            of_logs = {"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": written.logs}]}
            for file, request in ((spans, {"resourceSpans": [of_spans]}), (logs, {"resourceLogs": [of_logs]})):
                file.write(msgspec.json.encode(request))
                file.write(b"\n")


def _check(traces: Traces) -> None:
    """Refuse unknown evidence, numbers that are not finite, and trace ids that coincide in OTLP."""
    for name, evidence in traces.evidence.items():
        key = EVENT_EVIDENCE.get(name) or TRACE_EVIDENCE.get(name)
        if key is None and not name.startswith(("rewards.", "costs.", "metrics.")):
            known = ", ".join([*EVENT_EVIDENCE, *TRACE_EVIDENCE])
            raise CreditError(
                f"evidence {name!r} has no place in OTLP; expected rewards.*, costs.*, metrics.*, {known}"
            )
        values = evidence.amounts
        if not np.all(np.isfinite(values)):
            raise CreditError(f"evidence {name!r} has a value that is not finite; expected numbers")
    ids: dict[str, str] = {}
    for trace_id in traces.traces["trace"].to_pylist():
        other = ids.setdefault(hex_trace_id(trace_id), trace_id)
        if other is not trace_id:
            raise CreditError(f"traces {other!r} and {trace_id!r} would have one OTLP trace id; expected different ids")


def _team(traces: Traces) -> dict[int, float]:
    """Rewards by trace that must be written as the channel "team"; empty if the reward equals a channel of the batch.

    Raises:
      CreditError: the reward equals no channel, and a channel "team" exists.
    """
    n = traces.traces.num_rows
    reward = np.asarray(traces.reward[:n])
    stated = np.count_nonzero(~np.isnan(reward))
    for name, evidence in traces.evidence.items():
        if not name.startswith("rewards.") or len(evidence.rows) != stated:
            continue
        if np.array_equal(evidence.array[:n].astype(np.float32), reward, equal_nan=True):
            return {}
    if "rewards.team" in traces.evidence and not np.all(np.isnan(reward)):
        raise CreditError("the reward equals no channel of the batch; expected no other channel 'team'")
    return {t: float(amount) for t, amount in enumerate(shortest(reward)) if not np.isnan(amount)}


def _traces_to_write(traces: Traces) -> Iterator[TraceToWrite]:
    graph, n = traces.graph, traces.sizes
    starts = np.searchsorted(np.asarray(graph.trace_ids[: n.events]), np.arange(n.traces + 1))
    senders, receivers = np.asarray(graph.senders[: n.edges]), np.asarray(graph.receivers[: n.edges])
    edge_trace = np.asarray(graph.trace_ids)[senders]
    edges_of = np.argsort(edge_trace, kind="stable")
    edge_starts = np.searchsorted(edge_trace[edges_of], np.arange(n.traces + 1))
    agent_trace = np.asarray(graph.agent_trace[: n.agents])
    agents_of = np.argsort(agent_trace, kind="stable")
    agent_starts = np.searchsorted(agent_trace[agents_of], np.arange(n.traces + 1))
    team, numbers = _team(traces), _numbers(traces)
    for t in range(n.traces):
        start, stop = int(starts[t]), int(starts[t + 1])
        row = traces.traces.slice(t, 1).to_pylist()[0]
        edges = edges_of[edge_starts[t] : edge_starts[t + 1]]
        rewards = {
            name.removeprefix("rewards."): amount for name, amount in numbers[t].items() if name.startswith("rewards.")
        }
        yield TraceToWrite(
            id=row["trace"],
            group=row["task"],
            topology=row["topology"] or "",
            system=row["system"] or "",
            task_kind=row["task_kind"] or "",
            model=row["model"] or "",
            instances=_instances(traces, agents_of[agent_starts[t] : agent_starts[t + 1]]),
            events=_events(traces, start, stop),
            edges=[
                (int(s) - start, int(r) - start, EdgeType(int(k)))
                for s, r, k in zip(senders[edges], receivers[edges], graph.edge_type[edges], strict=True)
            ],
            rewards=rewards | ({"team": team[t]} if t in team else {}),
            numbers={name: v for name, v in numbers[t].items() if not name.startswith("rewards.")},
        )


def _numbers(traces: Traces) -> list[dict[str, float]]:
    """The numbers of each trace: "rewards.CHANNEL", "costs.NAME", "metrics.NAME", "evidence.KEY"."""
    names = [name for name in traces.evidence if name not in EVENT_EVIDENCE]
    return [
        {f"evidence.{name}" if name in TRACE_EVIDENCE else name: amount for name, amount in stated.items()}
        for stated in numbers_of_traces(traces.evidence, names, traces.sizes.traces)
    ]


def _instances(traces: Traces, rows: np.ndarray) -> dict[str, Agent]:
    table = traces.agents.take(rows).to_pylist()
    ids = {int(row): agent["agent"] for row, agent in zip(rows, table, strict=True)}
    return {
        agent["agent"]: Agent(
            name=agent["name"],
            role=agent["role"],
            parent="" if agent["parent"] == row else ids[agent["parent"]],
        )
        for row, agent in zip(rows, table, strict=True)
    }


def _events(traces: Traces, start: int, stop: int) -> list[Event]:
    graph, table = traces.graph, traces.events.slice(start, stop - start)
    agents = traces.agents["agent"].take(np.asarray(graph.agent_ids[start:stop])).to_pylist()
    types, actions, turns = (
        np.asarray(ids[start:stop]) for ids in (graph.event_type, graph.action_mask, graph.turn_ids)
    )
    turns = turns - turns.min(initial=np.iinfo(turns.dtype).max)
    times = [np.nan if time is None else time for time in table["time"].to_pylist()]
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in (*TEXT_COLUMNS, "trusted")}
    for name, key in EVENT_EVIDENCE.items():
        if name in traces.evidence:
            kept = traces.evidence[name].listed(start, stop)
            columns[name] = [str(v) if key.kind == "id" and v is not None else v for v in kept]
    return [
        Event(
            id=event_id,
            type=EventType(kind),
            agent=agents[i],
            action=action,
            turn=turn,
            time=times[i],
            values={name: column[i] for name, column in columns.items() if column[i] is not None},
        )
        for i, (event_id, kind, action, turn) in enumerate(
            zip(table["event"].to_pylist(), types.tolist(), actions.tolist(), turns.tolist(), strict=True)
        )
    ]


def _written(trace: TraceToWrite) -> Written:
    """The spans and log records of a trace. Edges are written only if the reader would derive others.

    Raises:
      CreditError: reading the result does not give the same trace.
    """
    written = write_trace(trace)
    record = _read_back(trace, written)
    if _edges(record) != trace.edges:
        state_edges(written, trace)
        record = _read_back(trace, written)
    pairs: dict[str, tuple[list[Any] | str, list[Any] | str]] = {
        "group": (record.group_id, trace.group),
        "agents": (list(record.instances.items()), list(trace.instances.items())),
        "event ids": (record.ids, [event.id for event in trace.events]),
        "event types": (record.types, [event.type for event in trace.events]),
        "agents of events": (record.agents, [event.agent for event in trace.events]),
        "actions": (record.actions, [event.action for event in trace.events]),
        "times": (list(map(repr, record.times)), [repr(float(event.time)) for event in trace.events]),
        "edges": (_edges(record), trace.edges),
        "rewards": (sorted(record.rewards.items()), sorted(trace.rewards.items())),
        "event rewards": (_event_rewards(record), [event.values.get(STEP) for event in trace.events]),
    }
    lost = [name for name, (read, given) in pairs.items() if read != given]
    if lost:
        raise CreditError(f"trace {trace.id!r} cannot be written as OTLP: its {', '.join(lost)} would read otherwise")
    return written


def _edges(record: TraceRecord) -> list[tuple[int, int, EdgeType]]:
    return [(s, r, EdgeType(k)) for s, r, k in zip(record.senders, record.receivers, record.edge_types, strict=True)]


def _event_rewards(record: TraceRecord) -> list[float | None]:
    stated = record.columns.get(STEP, [])
    return [*stated, *[None] * (len(record.ids) - len(stated))]


def _read_back(trace: TraceToWrite, written: Written) -> TraceRecord:
    place, trace_id = Place("<written>", 0, 0), hex_trace_id(trace.id)
    wires = (_WIRE.decode(msgspec.json.encode(span)) for span in written.spans)  # one at a time: a trace may be large
    try:
        spans = [otlp_span(wire, {}, place, trace_id) for wire in wires]
        logs = (_LOG.decode(msgspec.json.encode(log)) for log in written.logs)
        evaluations = [log_evaluation(log, place, trace_id) for log in logs]
        record = build(trace_id, spans, [evaluation for evaluation in evaluations if evaluation is not None])
    except TraceError as error:
        raise CreditError(f"trace {trace.id!r} cannot be written as OTLP: {error}") from error
    for agent in record.instances.values():
        agent.role = agent.role or agent.name
    return record
