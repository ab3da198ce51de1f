"""Writer of the native format, one trace per line. `docs/formats/native.md` describes the format.

A trace that the survey's own form can represent is written in that form. Other content (agents, turns, actions,
evidence) is written in the keys of the extension, and the line then has `schema_version`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np
import zstandard

from graphs.atomic import atomic_write
from graphs.errors import CreditError
from graphs.event_graph import ACTION_TYPES, EdgeType, EventType
from graphs.readers.native.records import from_wire
from graphs.readers.native.wire import DECODER, EXTENSION_KEYS, TOPOLOGIES
from graphs.text import excerpt
from graphs.traces.batch import Traces
from graphs.traces.evidence import numbers_of_traces
from graphs.traces.part import derive_turns
from graphs.traces.record import TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE, SCHEMA_VERSION, TEXT_COLUMNS, TRACE_EVIDENCE

__all__ = ["lines", "write"]

_EVENT_NAMES = {int(kind): kind.name.lower() for kind in EventType}
_EDGE_NAMES = {int(kind): kind.name.lower() for kind in EdgeType}
_SURVEY_COSTS = {"tokens", "wall_clock_s"}


def write(traces: Traces, path: str | Path) -> None:
    """Write a batch as JSON lines, whole or not at all, and compressed if the name ends in `.gz` or `.zst`.

    Reading the file gives the same arrays, evidence, strings and tables, except for places in files; ids of turns and
    of evidence are renumbered by first appearance. All reward channels are written. A reward that equals none of them
    is written as the channel "team".

    Raises:
      CreditError: the format cannot represent the batch: a negative time, an unknown topology, an empty id; or the
        reward equals no channel, and a different channel "team" exists.
      OSError: the file cannot be written.
    """
    with atomic_write(path) as file, _compressed(file, Path(path).suffix) as stream:
        for line in lines(traces):
            stream.write(line)
            stream.write(b"\n")


@contextlib.contextmanager
def _compressed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream:  # equal content, equal bytes
            yield cast(BinaryIO, stream)
    elif suffix == ".zst":
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as stream:
            yield cast(BinaryIO, stream)
    else:
        yield file


@dataclasses.dataclass
class _Slices:
    """Bounds [T + 1] of the rows of each trace's events, agents and edges, and the order of the edges."""

    events: np.ndarray
    agents: np.ndarray
    edges: np.ndarray
    edge_order: np.ndarray


def lines(traces: Traces) -> Iterator[bytes]:
    """Each trace of a batch as a JSON object in the native format."""
    graph = traces.graph
    n = traces.sizes
    traces_and_end = np.arange(n.traces + 1)
    edge_rows = np.flatnonzero(np.asarray(graph.edge_mask))
    trace_of_edge = np.asarray(graph.trace_ids)[np.asarray(graph.senders)[edge_rows]]
    order = np.argsort(trace_of_edge, kind="stable")
    agent_trace = np.asarray(graph.agent_trace)[: n.agents]
    if np.any(np.diff(agent_trace) < 0):
        raise CreditError("the agent instances of a trace are not contiguous; expected them in the order of the traces")
    slices = _Slices(
        np.searchsorted(np.asarray(graph.trace_ids)[: n.events], traces_and_end),
        np.searchsorted(agent_trace, traces_and_end),
        np.searchsorted(trace_of_edge[order], traces_and_end),
        edge_rows[order],
    )
    team, amounts = _team(traces), _numbers(traces)
    for trace in range(n.traces):
        yield _line(traces, trace, slices, team, amounts)


def _line(
    traces: Traces,
    trace: int,
    slices: _Slices,
    team: np.ndarray | None,
    numbers: Mapping[str, list[dict[str, float]]],
) -> bytes:
    graph = traces.graph
    start, stop = (int(i) for i in slices.events[trace : trace + 2])
    first_agent, last_agent = (int(i) for i in slices.agents[trace : trace + 2])
    edges = slices.edge_order[slices.edges[trace] : slices.edges[trace + 1]]
    agents = _agents(traces, first_agent, last_agent)
    own_agent = np.asarray(graph.agent_ids)[start:stop] - first_agent
    row = traces.traces.slice(trace, 1).to_pylist()[0]
    owners = [agents[i]["id"] for i in own_agent]
    events = _events(traces, start, stop, owners, {agent["id"]: agent["role"] for agent in agents})
    senders, receivers = np.asarray(graph.senders)[edges] - start, np.asarray(graph.receivers)[edges] - start
    edge_type = np.asarray(graph.edge_type)[edges]
    document: dict[str, Any] = {"trace_id": row["trace"], "task_id": row["task"]}
    document |= {key: row[key] for key in ("system", "model", "topology") if row[key]}
    if document.get("topology", TOPOLOGIES[0]) not in TOPOLOGIES:
        expected = ", ".join(TOPOLOGIES)
        raise CreditError(f"trace {row['trace']!r}: topology is {excerpt(row['topology'])}; expected one of {expected}")
    document["events"] = events
    document["edges"] = [
        {"src": events[s]["id"], "dst": events[r]["id"], "type": _EDGE_NAMES[k]}
        for s, r, k in zip(senders.tolist(), receivers.tolist(), edge_type.tolist(), strict=True)
    ]
    document["rewards"] = numbers["rewards"][trace]
    if team is not None and not np.isnan(team[trace]):
        document["rewards"]["team"] = float(team[trace])
    document["costs"] = numbers["costs"][trace]
    document |= {key: numbers[key][trace] for key in ("metrics", "evidence") if numbers[key][trace]}
    turns = np.asarray(graph.turn_ids)[start:stop]
    types = np.asarray(graph.event_type)[start:stop]
    derived = derive_turns(types, own_agent, senders, receivers, edge_type)
    if not np.array_equal(derived, turns - turns[0]):
        for event, turn in zip(events, turns.tolist(), strict=True):
            event["turn"] = turn - int(turns.min())
    if not _is_understood(document, agents, owners):
        document["agents"] = agents
    if _needs_extension(document):
        document = {"schema_version": SCHEMA_VERSION} | document
    return msgspec.json.encode(document)


def _events(traces: Traces, start: int, stop: int, owners: list[str], roles: dict[str, str]) -> list[dict[str, Any]]:
    """Events as JSON objects; absent values, defaults, and roles that equal the agent's id are left out."""
    table = traces.events.slice(start, stop - start)
    types = np.asarray(traces.graph.event_type)[start:stop].tolist()
    actions = np.asarray(traces.graph.action_mask)[start:stop].tolist()
    times = table["time"].to_pylist()
    negative = next((t for t in times if t is not None and t < 0), None)
    if negative is not None:
        raise CreditError(f"event {table['event'][times.index(negative)]} has time {negative}; expected 0 or more")
    columns: dict[str, list[Any]] = {
        "id": table["event"].to_pylist(),
        "t": times,
        "type": [_EVENT_NAMES[code] for code in types],
        "agent": owners,
        "role": [
            None if whose is None or roles.get(whose) == whose else roles.get(whose)
            for whose in (
                child if code == EventType.SPAWN else owner
                for owner, child, code in zip(owners, table["to"].to_pylist(), types, strict=True)
            )
        ],
        **{name: table[name].to_pylist() for name in (*TEXT_COLUMNS, "trusted")},
        "action": [
            None if action == (code in ACTION_TYPES) else action for action, code in zip(actions, types, strict=True)
        ],
    }
    for name, key in EVENT_EVIDENCE.items():
        if name in traces.evidence:
            values = traces.evidence[name].listed(start, stop)
            columns[name] = [str(v) if key.kind == "id" and v is not None else v for v in values]
    if traces.tokens is not None:
        columns |= traces.tokens.listed(start, stop)
    present = {name: column for name, column in columns.items() if any(v is not None for v in column)}
    return [
        {name: value for name, value in zip(present, values, strict=True) if value is not None}
        for values in zip(*present.values(), strict=True)
    ]


def _agents(traces: Traces, start: int, stop: int) -> list[dict[str, str]]:
    """Every agent instance of one trace, with its name, role and parent; a root is its own parent."""
    rows = traces.agents.slice(start, stop - start).to_pylist()
    return [
        {
            "id": row["agent"],
            "name": row["name"],
            "role": row["role"],
            "parent": rows[row["parent"] - start]["agent"],
        }
        for row in rows
    ]


def _numbers(traces: Traces) -> dict[str, list[dict[str, float]]]:
    """Numbers of traces by key of the document ("rewards", "costs", "metrics", "evidence"), a dictionary per trace."""
    families: dict[str, list[dict[str, float]]] = {}
    for family in ("rewards", "costs", "metrics", "evidence"):
        prefix = "" if family == "evidence" else f"{family}."
        names = [n for n in traces.evidence if (n.startswith(prefix) if prefix else n in TRACE_EVIDENCE)]
        stated = numbers_of_traces(traces.evidence, names, traces.sizes.traces)
        families[family] = [{name.removeprefix(prefix): v for name, v in one.items()} for one in stated]
    return families


def _team(traces: Traces) -> np.ndarray | None:
    """The reward [T] if it must be written as the channel "team"; None if it equals a channel of the batch.

    Raises:
      CreditError: the reward equals no channel, and a channel "team" exists.
    """
    reward = np.asarray(traces.reward)
    stated = np.count_nonzero(~np.isnan(reward[: traces.sizes.traces]))
    for name, evidence in traces.evidence.items():
        if name.startswith("rewards.") and len(evidence.rows) == stated:
            channel = evidence.array.astype(np.float32)
            if np.array_equal(channel[: traces.sizes.traces], reward[: traces.sizes.traces], equal_nan=True):
                return None
    if np.all(np.isnan(reward[: traces.sizes.traces])):
        return None
    if "rewards.team" in traces.evidence:
        raise CreditError("the reward equals no channel of the batch; expected no other channel 'team'")
    return reward


def _is_understood(document: Mapping[str, Any], agents: list[dict[str, str]], owners: list[str]) -> bool:
    """Whether a reader derives the same agents in the same order from a document without `agents`."""
    try:
        trace = DECODER.decode(msgspec.json.encode(document))
    except msgspec.ValidationError as error:
        raise CreditError(f"trace {document['trace_id']!r} cannot be written: {error}") from error
    record = from_wire(trace, "", 0, 0)
    return record.agents == owners and _resolved(record) == agents


def _resolved(record: TraceRecord) -> list[dict[str, str]]:
    return [
        {
            "id": agent_id,
            "name": agent.name or agent_id,
            "role": agent.role or agent.name or agent_id,
            "parent": agent.parent or agent_id,
        }
        for agent_id, agent in record.instances.items()
    ]


def _needs_extension(document: Mapping[str, Any]) -> bool:
    if not document.keys().isdisjoint(("agents", "evidence", "model")) or not document["costs"].keys() >= _SURVEY_COSTS:
        return True
    return any("t" not in e or e["type"] == "stop" or not EXTENSION_KEYS.isdisjoint(e) for e in document["events"])
