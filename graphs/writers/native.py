"""Writer of the native format, one trace per line. `docs/formats/native.md` describes the format.

A trace that the survey's own form can represent is written in that form. Other content (agents, turns, actions,
evidence) is written in the keys of the extension, and the line then has `schema_version`.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np
import zstandard

from graphs.atomic import atomic_write
from graphs.errors import CreditError
from graphs.event_graph import ACTION_TYPES, EdgeType, EventType
from graphs.event_types import STATED_TOPOLOGIES
from graphs.floats import shortest
from graphs.formats.native.records import from_wire
from graphs.formats.native.wire import DECODER, EXTENSION_KEYS
from graphs.logs.collector_pause import collector_paused
from graphs.text import excerpt
from graphs.traces.batch import Traces
from graphs.traces.evidence import numbers_of_traces
from graphs.traces.record import TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE, SCHEMA_VERSION, TEXT_COLUMNS, TRACE_EVIDENCE
from graphs.traces.told_order import order_to_state
from graphs.writers.batch_arrays import BatchArrays

__all__ = ["lines", "write"]

_EVENT_NAMES = {int(kind): kind.name.lower() for kind in EventType}
_EDGE_NAMES = {int(kind): kind.name.lower() for kind in EdgeType}
BLOCK = 65_536  # events whose columns are listed at once: slices of tables for each small trace took half of the time
_SURVEY_COSTS = {"tokens", "wall_clock_s"}


def write(traces: Traces, path: str | Path, texts: Mapping[str, Sequence[str | None]] | None = None) -> None:
    """Write a batch as JSON lines, whole or not at all, and compressed if the name ends in `.gz` or `.zst`.

    Reading the file gives the same arrays, evidence, strings and tables, except for places in files; ids of turns and
    of evidence are renumbered by first appearance, and traces of other formats state `told_order`. All
    reward channels are written. A reward that equals none of them is written as the channel "team".

    Args:
      traces: a batch.
      path: of the file.
      texts: what events say, a text or None for each event of the batch by the key under which it is written.

    Raises:
      CreditError: the format cannot represent the batch: a negative time, an unknown topology, an empty id; or the
        reward equals no channel, and a different channel "team" exists.
      OSError: the file cannot be written.
    """
    with collector_paused(), atomic_write(path) as file, _compressed(file, Path(path).suffix) as stream:
        for line in lines(traces, texts):
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


def lines(traces: Traces, texts: Mapping[str, Sequence[str | None]] | None = None) -> Iterator[bytes]:
    """Each trace of a batch as a JSON object in the native format.

    Args:
      traces: a batch.
      texts: as of `write`.
    """
    arrays, total = BatchArrays.of(traces), traces.sizes.traces
    team, numbers, told = _team(traces), _numbers(traces), order_to_state(traces)
    last = 0
    while last < total:
        first = last
        last = max(first + 1, int(np.searchsorted(arrays.events, arrays.events[first] + BLOCK, side="right")) - 1)
        start, first_agent = int(arrays.events[first]), int(arrays.agents[first])
        stop = int(arrays.events[last])
        columns = _columns(traces, arrays, start, stop)
        columns |= {key: list(column[start:stop]) for key, column in (texts or {}).items()}
        listed = traces.agents.slice(first_agent, int(arrays.agents[last]) - first_agent).to_pylist()
        for trace, row in enumerate(traces.traces.slice(first, last - first).to_pylist(), first):
            here, behind = (int(i) - start for i in arrays.events[trace : trace + 2])
            of_trace = {name: column[here:behind] for name, column in columns.items()}
            low, high = (int(i) for i in arrays.agents[trace : trace + 2])
            agents = _agents(listed[low - first_agent : high - first_agent], low)
            about = {key: numbers[key][trace] for key in numbers}
            if team is not None and not np.isnan(team[trace]):
                about["rewards"]["team"] = float(team[trace])
            row["told_order"] = None if np.isnan(told[trace]) else bool(told[trace])
            yield _line(row, of_trace, agents, about, arrays, trace)


def _line(
    row: Mapping[str, Any],
    columns: dict[str, list[Any]],
    agents: list[dict[str, str]],
    about: Mapping[str, dict[str, float]],
    arrays: BatchArrays,
    trace: int,
) -> bytes:
    start, stop = arrays.events[trace : trace + 2]
    edges = slice(*arrays.edges[trace : trace + 2])
    names = [agent["id"] for agent in agents]
    first_agent = int(arrays.agents[trace])
    owners = [names[i - first_agent] for i in arrays.agent_of[start:stop].tolist()]
    events = _events(columns, owners, {agent["id"]: agent["role"] for agent in agents})
    document: dict[str, Any] = {"trace_id": row["trace"], "task_id": row["task"]}
    document |= {key: row[key] for key in ("system", "model", "topology", "task_kind") if row[key]}
    document |= {"told_order": row["told_order"]} if row["told_order"] is not None else {}
    if document.get("topology", STATED_TOPOLOGIES[0]) not in STATED_TOPOLOGIES:
        expected = ", ".join(STATED_TOPOLOGIES)
        raise CreditError(f"trace {row['trace']!r}: topology is {excerpt(row['topology'])}; expected one of {expected}")
    document["events"] = events
    ids = columns["id"]
    document["edges"] = [
        {"src": ids[s - start], "dst": ids[r - start], "type": _EDGE_NAMES[k]}
        for s, r, k in zip(
            arrays.senders[edges].tolist(),
            arrays.receivers[edges].tolist(),
            arrays.edge_type[edges].tolist(),
            strict=True,
        )
    ]
    document |= {key: about[key] for key in ("rewards", "costs")}
    document |= {key: about[key] for key in ("metrics", "evidence") if about[key]}
    if arrays.turns_stated[trace]:
        turns = arrays.turns[start:stop]
        for event, turn in zip(events, (turns - turns.min()).tolist(), strict=True):
            event["turn"] = turn
    if not _is_understood(document, agents, owners):
        document["agents"] = agents
    if _needs_extension(document):
        document = {"schema_version": SCHEMA_VERSION} | document
    return msgspec.json.encode(document)


def _columns(traces: Traces, arrays: BatchArrays, start: int, stop: int) -> dict[str, list[Any]]:
    """Columns of the events of several traces; of optional ones, "to" and those that hold something."""
    table = traces.events.slice(start, stop - start)
    times = table["time"].to_pylist()
    negative = next((t for t in times if t is not None and t < 0), None)
    if negative is not None:
        event = times.index(negative)
        trace = int(np.searchsorted(arrays.events, start + event, side="right")) - 1
        named = f"trace {traces.traces['trace'][trace].as_py()!r}: event {table['event'][event].as_py()!r}"
        raise CreditError(f"{named} has time {negative}; expected 0 or more")
    types, actions = (x[start:stop].tolist() for x in (arrays.types, arrays.actions))
    columns: dict[str, list[Any]] = {
        "id": table["event"].to_pylist(),
        "t": times,
        "type": [_EVENT_NAMES[code] for code in types],
        "agent": [None] * (stop - start),  # `_events` fills in these two
        "role": [None] * (stop - start),
    }
    optional: dict[str, list[Any]] = {name: table[name].to_pylist() for name in (*TEXT_COLUMNS, "trusted")}
    asked = zip(optional["model"], optional["requested_model"], strict=True)
    optional["model"] = [model and ("" if model == name else model) for model, name in asked]  # "": no answer's name
    optional["action"] = [
        None if action == (code in ACTION_TYPES) else action for action, code in zip(actions, types, strict=True)
    ]
    for name, key in EVENT_EVIDENCE.items():
        if name in traces.evidence:
            values = traces.evidence[name].listed(start, stop)
            optional[name] = [str(v) if key.kind == "id" and v is not None else v for v in values]
    if traces.tokens is not None:
        optional |= traces.tokens.listed(start, stop)
    present = {name for name, column in optional.items() if any(v is not None for v in column)} | {"to"}
    return columns | {name: column for name, column in optional.items() if name in present}


def _events(columns: dict[str, list[Any]], owners: list[str], roles: dict[str, str]) -> list[dict[str, Any]]:
    """Events as JSON objects; absent values, defaults, and roles that equal the agent's id are left out."""
    spawn = _EVENT_NAMES[EventType.SPAWN]
    whose = (
        child if kind == spawn else owner
        for owner, child, kind in zip(owners, columns["to"], columns["type"], strict=True)
    )
    role = [None if who is None or roles.get(who) == who else roles.get(who) for who in whose]
    every = columns | {"agent": owners, "role": role}
    return [
        {name: value for name, value in zip(every, values, strict=True) if value is not None}
        for values in zip(*every.values(), strict=True)
    ]


def _agents(rows: list[dict[str, Any]], start: int) -> list[dict[str, str]]:
    """Every agent instance of one trace, with its name, role and parent; a root is its own parent."""
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
    return shortest(reward)


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
    if (
        not document.keys().isdisjoint(("agents", "evidence", "model", "told_order"))
        or not document["costs"].keys() >= _SURVEY_COSTS
    ):
        return True
    return any("t" not in e or e["type"] == "stop" or not EXTENSION_KEYS.isdisjoint(e) for e in document["events"])
