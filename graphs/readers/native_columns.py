"""Decoded native traces as columns, many traces at once and no Python object an event.

`columns` computes for a batch what `graphs.readers.native.from_wire`, `graphs.record.check` and `graphs.part.part_of`
compute for one trace after another. Where a trace is not plain (something in it is wrong, or its events must be put
into another order), it says so, and the trace takes that slower way, which names every fault.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphs.event_types import ACTION_TYPES, EdgeType, EventType
from graphs.limits import Limits
from graphs.part import EVENT_TEXT, Heading, Part, derive_turns, first_of_each
from graphs.readers.native_wire import COUNTS, EDGE_CODES, EVENT_CODES, NEVER_NEGATIVE, Trace, version_known
from graphs.record import LARGEST_FLOAT
from graphs.schema import EVENT_EVIDENCE

__all__ = ["Decoded", "columns"]

_IS_ACTION = np.array([kind in ACTION_TYPES for kind in sorted(EventType)])
_EVENT_NAMES = pa.array(sorted(EVENT_CODES, key=EVENT_CODES.__getitem__))
_TYPES: dict[str, pa.DataType] = (
    {name: pa.string() for name in ("id", "type", "agent", "role", "agent_name")}
    | EVENT_TEXT
    | {"t": pa.float64(), "action": pa.bool_()}
    | {name: pa.string() if key.kind == "id" else pa.float64() for name, key in EVENT_EVIDENCE.items()}
)
"""Arrow's types of the keys of an event; `turn` has none, since it may be a text or a number."""


class Decoded(NamedTuple):
    """A decoded trace, where its record starts, and the record itself, for errors."""

    trace: Trace
    line: int
    offset: int
    data: bytes


def columns(traces: Sequence[Decoded], file: str, limits: Limits) -> tuple[Part, np.ndarray]:
    """The columns of all `traces`, whose events are of one struct, and bool [t], which of them are plain.

    What the part holds of a trace that is not plain has no meaning.
    """
    wires = [decoded.trace for decoded in traces]
    events = list(itertools.chain.from_iterable(wire.events for wire in wires))
    counts = np.array([len(wire.events) for wire in wires])
    plain = (counts > 0) & (counts <= limits.events) & np.array([_plain_document(wire) for wire in wires])
    if not plain.any() or not events:
        return _nothing(), np.zeros(len(wires), bool)
    ends = np.cumsum(counts)
    field = _fields(events)
    trace_of = np.repeat(np.arange(len(wires)), counts)
    edges = _Edges(wires, field["id"], trace_of, limits, plain)
    types = pc.index_in(field["type"], _EVENT_NAMES).to_numpy().astype(np.int32)
    for name in COUNTS:
        if name in field:
            amounts = _floats(field[name])
            plain[trace_of[np.floor(amounts) < amounts]] = False
    team = _Team(wires, field, types, trace_of, edges, plain)
    turns = _stated_turns(events, team.agents, trace_of, plain) if hasattr(events[0], "turn") else None
    if turns is None:
        turns = derive_turns(types, team.agents, edges.senders, edges.receivers, edges.types)
    actions = _IS_ACTION[types]
    if "action" in field:
        actions = np.where(_valid(field["action"]), _bools(field["action"]), actions)
    part = Part(
        headings=[_heading(decoded, file) for decoded in traces],
        event_ends=ends,
        edge_ends=edges.ends,
        agent_ends=np.searchsorted(team.trace_of, np.arange(1, len(wires) + 1)),
        types=types,
        agents=team.agents,
        turns=turns,
        actions=actions,
        times=_floats(field["t"]) if "t" in field else np.full(len(types), math.nan),
        senders=edges.senders,
        receivers=edges.receivers,
        edge_types=edges.types,
        agent_ids=team.ids,
        agent_names=team.names,
        agent_roles=team.roles,
        parents=team.parents,
        text={"event": field["id"]} | {name: field[name] for name in EVENT_TEXT if name in field},
        evidence={
            name: _evidence(key.kind, field[name])
            for name, key in EVENT_EVIDENCE.items()
            if name in field and field[name].null_count < len(types)
        },
    )
    return part, plain


def _plain_document(wire: Trace) -> bool:
    """Whether nothing is wrong with what a trace has once."""
    listed = wire.agents or ()
    return (
        version_known(wire.schema_version)
        and all(abs(amount) <= LARGEST_FLOAT for amount in (wire.rewards or {}).values())
        and not (wire.costs and any(wire.costs.get(name, 0.0) < 0 for name in NEVER_NEGATIVE))
        and len({agent.id for agent in listed}) == len(listed)
    )


def _heading(decoded: Decoded, file: str) -> Heading:
    wire, line, offset, _ = decoded
    return Heading(
        wire.trace_id,
        wire.group or wire.task_id,
        file,
        line,
        offset,
        "native",
        wire.topology or "",
        wire.system or "",
        wire.rewards or {},
        wire.costs or {},
        wire.metrics or {},
        wire.evidence or {},
    )


def _nothing() -> Part:
    none, text = np.zeros(0, np.int32), pa.array([], pa.string())
    return Part(
        [], none, none, none, none, none, none, none, none, none, none, none, text, text, text, none, {}, {}
    )  # fmt: skip


def _fields(events: list[msgspec.Struct]) -> dict[str, pa.Array]:
    """Every field of the events' struct as one Arrow array, by its name in a file, but for `turn`."""
    kind = type(events[0])
    names = {name: field for name, field in zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)}
    if names.pop("turn", None) is None:
        rows = list(map(msgspec.structs.astuple, events))
    else:
        rows = list(map(attrgetter(*names.values()), events))
    table = pa.array(rows, pa.struct([(name, _TYPES[name]) for name in names]))
    return {name: table.field(i) for i, name in enumerate(names)}


class _Edges:
    """Edges of all traces by position of their ends; a trace with an edge that does not run forward is not plain."""

    def __init__(
        self, wires: Sequence[Trace], ids: pa.Array, trace_of: np.ndarray, limits: Limits, plain: np.ndarray
    ) -> None:
        counts = np.array([len(wire.edges or ()) for wire in wires])
        plain &= counts <= limits.edges
        edges = list(itertools.chain.from_iterable(wire.edges for wire in wires if wire.edges))
        codes = bytes(map(EDGE_CODES.__getitem__, map(attrgetter("type"), edges)))
        types = np.frombuffer(codes, np.uint8).astype(np.int32)
        ends = [pa.array(list(map(attrgetter(end), edges)), pa.string()) for end in ("src", "dst")]
        words = pa.concat_arrays([ids, *ends]).dictionary_encode()
        of_edge = np.repeat(np.arange(len(wires)), counts)
        keys = words.indices.to_numpy() + np.concatenate([trace_of, of_edge, of_edge]) * len(words.dictionary)
        n = len(trace_of)
        found = pc.index_in(pa.array(keys), pa.array(keys[:n])).fill_null(-1).to_numpy()
        places, senders, receivers = np.split(found, [n, n + len(edges)])
        plain[trace_of[places != np.arange(n)]] = False  # an id of two events
        plain[of_edge[(senders < 0) | (receivers < 0)]] = False
        if not plain.all():  # an edge without an end must not seem to be one of another trace
            kept = plain[of_edge]
            senders, receivers, types, of_edge = senders[kept], receivers[kept], types[kept], of_edge[kept]
        plain[of_edge[senders >= receivers]] = False
        self.senders, self.receivers, self.types = senders, receivers, types
        self.ends = np.cumsum(np.bincount(of_edge, minlength=len(wires)))


class _Team:
    """The agent instances of all traces, and whose each event is; `docs/formats/native.md` says how they are found.

    Attributes:
      agents: int32 [e], the instance of each event.
      trace_of: int64 [a].
      ids, names, roles: Arrow strings [a].
      parents: int32 [a].
    """

    def __init__(
        self,
        wires: Sequence[Trace],
        field: dict[str, pa.Array],
        types: np.ndarray,
        trace_of: np.ndarray,
        edges: _Edges,
        plain: np.ndarray,
    ) -> None:
        n = len(types)
        spawns = np.flatnonzero(types == EventType.SPAWN)
        spawns = spawns[_filled(field["to"].take(pa.array(spawns)))] if "to" in field and len(spawns) else spawns[:0]
        targets = field["to"].take(pa.array(spawns)) if len(spawns) else pa.array([], pa.string())
        listed = [(i, agent) for i, wire in enumerate(wires) for agent in wire.agents or ()]
        listed_in = np.array([i for i, _ in listed], np.int64)
        given = pa.array([(agent.id, agent.name, agent.role, agent.parent) for _, agent in listed], _AGENT)

        words = pa.concat_arrays([field["agent"], targets, given.field(0), given.field(3)]).dictionary_encode()
        codes = words.indices.fill_null(0).to_numpy().astype(np.int64)
        self._room = len(words.dictionary) + 1
        event_key, target_key, listed_key, parent_key = np.split(codes, np.cumsum([n, len(spawns), len(listed)]))
        event_key = event_key + trace_of * self._room
        target_key = target_key + trace_of[spawns] * self._room
        listed_key, parent_key = listed_key + listed_in * self._room, parent_key + listed_in * self._room

        moved = _moved(field, types, trace_of, edges, event_key, np.concatenate([target_key, listed_key]), listed_key)
        if len(moved.events):
            event_key[moved.events] = event_key[moved.calls]
        self._number(event_key, spawns, target_key, listed_key, np.searchsorted(trace_of, listed_in))
        keys = self._keys.to_numpy()
        self.trace_of, count = keys // self._room, len(keys)
        self.ids = words.dictionary.take(pa.array(keys % self._room))

        agents, target, own = self.agents, self._find(target_key), self._find(listed_key)
        first = first_of_each(agents, np.arange(n), count)
        first_spawn = first_of_each(target, spawns, count)
        early = (first >= 0) & (first < first_spawn)
        plain[self.trace_of[early]] = False

        # A spawn edge to an instance's first event says who made it, unless a spawn or `agents` does.
        made = np.flatnonzero(edges.types == EdgeType.SPAWN)
        sender, receiver = edges.senders[made], edges.receivers[made]
        made = (agents[sender] != agents[receiver]) & (first[agents[receiver]] == receiver)
        sender, receiver = sender[made], receiver[made]
        parents = first_of_each(agents[receiver], agents[sender], count)
        by_spawn = first_of_each(target, agents[spawns], count)
        parents = np.where(by_spawn >= 0, by_spawn, parents)
        with_parent = np.flatnonzero(_filled(given.field(3)))
        if len(with_parent):
            stated = pc.index_in(pa.array(parent_key[with_parent]), self._keys)
            known = _valid(stated)
            plain[listed_in[with_parent[~known]]] = False
            parents[own[with_parent[known]]] = stated.drop_null().to_numpy()
        self.parents = np.where(parents >= 0, parents, np.arange(count)).astype(np.int32)
        plain[self.trace_of[~_rooted(self.parents)]] = False

        # Roles: of an event of its own that is no spawn, else of the spawn, or of a spawn without `to` by its edge.
        role = np.full(count, -1, np.int64)
        if "role" in field:
            has = _filled(field["role"])
            named = has & (types != EventType.SPAWN)
            named[moved.events] = False
            rows = np.flatnonzero(named)
            untargeted = types[sender] == EventType.SPAWN
            untargeted &= ~np.isin(sender, spawns)
            role = first_of_each(agents[receiver[untargeted]], sender[untargeted], count)
            role = np.where(first_spawn >= 0, first_spawn, role)
            role = np.where((role >= 0) & has[role], role, -1)
            by_event = first_of_each(agents[rows], rows, count)
            role = np.where(by_event >= 0, by_event, role)
        name = np.full(count, -1, np.int64)
        if "agent_name" in field:
            rows = np.flatnonzero(_filled(field["agent_name"]))
            name = first_of_each(agents[rows], rows, count)
        entry = first_of_each(own, np.arange(len(listed)), count)
        self.names = pc.coalesce(
            _take(given.field(1), entry), _take(field.get("agent_name", field["agent"]), name), self.ids
        )
        self.roles = pc.coalesce(
            _take(given.field(2), entry), _take(field.get("role", field["agent"]), role), self.names
        )

    def _number(
        self, event_key: np.ndarray, spawns: np.ndarray, target: np.ndarray, listed: np.ndarray, begin: np.ndarray
    ) -> None:
        """Instances in order of appearance: those of `agents`, then of each event its agent and whom it spawns."""
        if not len(target) and not len(listed):
            encoded = pa.array(event_key).dictionary_encode()
            self.agents = encoded.indices.to_numpy().astype(np.int32)
        else:
            before = np.concatenate([spawns + 1, begin])
            sequence = np.insert(event_key, before, np.concatenate([target, listed]))
            encoded = pa.array(sequence).dictionary_encode()
            shift = np.cumsum(np.bincount(before, minlength=len(event_key) + 1))[: len(event_key)]
            self.agents = encoded.indices.to_numpy()[np.arange(len(event_key)) + shift].astype(np.int32)
        self._keys = encoded.dictionary

    def _find(self, keys: np.ndarray) -> np.ndarray:
        return pc.index_in(pa.array(keys), self._keys).to_numpy() if len(keys) else np.zeros(0, np.int32)


class _Moved(NamedTuple):
    """Tool results that were logged under a tool's name, and the calls whose agents they belong to."""

    events: np.ndarray
    calls: np.ndarray


def _moved(
    field: dict[str, pa.Array],
    types: np.ndarray,
    trace_of: np.ndarray,
    edges: _Edges,
    agent_key: np.ndarray,
    others: np.ndarray,
    listed: np.ndarray,
) -> _Moved:
    """As `graphs.readers.native_agents.owners`, for all traces; `others` are keys of instances that no event shows."""
    results = np.flatnonzero(types == EventType.TOOL_RESULT)
    nobody = _Moved(results[:0], results[:0])
    if not len(results):
        return nobody
    mine = agent_key[results]
    suspect = ~np.isin(mine, np.concatenate([agent_key[types != EventType.TOOL_RESULT], others]))
    if "tool" in field:
        rows = pa.array(results)
        same = pc.equal(field["agent"].take(rows), field["tool"].take(rows)).fill_null(False)
        suspect |= _bools(same)
    suspect &= ~np.isin(mine, listed)
    if not suspect.any():
        return nobody
    suspects = results[suspect]
    is_suspect = np.zeros(len(types), bool)
    is_suspect[suspects] = True
    answers = is_suspect[edges.receivers] & (types[edges.senders] == EventType.TOOL_CALL)
    call_of = first_of_each(edges.receivers[answers], edges.senders[answers], len(types))
    rows = np.flatnonzero(is_suspect | (types == EventType.TOOL_CALL))
    agents = field["agent"].take(pa.array(rows)).to_pylist()
    tools = field["tool"].take(pa.array(rows)).to_pylist() if "tool" in field else [None] * len(rows)
    latest: dict[tuple[int, str | None], int] = {}
    for row, trace, agent, tool in zip(rows.tolist(), trace_of[rows].tolist(), agents, tools, strict=True):
        if not is_suspect[row]:
            latest[trace, tool] = row
        elif call_of[row] < 0:
            call_of[row] = latest.get((trace, tool or agent), latest.get((trace, agent), -1))
    found = suspects[call_of[suspects] >= 0]
    return _Moved(found, call_of[found])


_AGENT = pa.struct([("id", pa.string()), ("name", pa.string()), ("role", pa.string()), ("parent", pa.string())])


def _rooted(parents: np.ndarray) -> np.ndarray:
    """Whether the ancestors of each instance end at a root, that is, its own parent."""
    if np.all(parents <= np.arange(len(parents))):
        return np.ones(len(parents), bool)  # every parent comes before its children
    top = parents
    for _ in range(len(parents).bit_length()):
        top = top[top]
    return parents[top] == top


def _stated_turns(
    events: list[msgspec.Struct], agents: np.ndarray, trace_of: np.ndarray, plain: np.ndarray
) -> np.ndarray | None:
    """Turns by their labels, numbered by first event; None if no event of a plain trace has one."""
    labels = [event.turn for event in events]  # type: ignore[attr-defined]
    stated = np.array([label is not None for label in labels])
    if not stated.any():
        return None
    broken = np.array([isinstance(label, float) and not label.is_integer() for label in labels])
    every = np.ones(len(plain), bool)
    every[trace_of[~stated]] = False
    plain[~every] = False  # traces without turns derive theirs, those with some are wrong
    plain[trace_of[broken]] = False
    texts = ["" if label is None else str(int(label) if isinstance(label, float) else label) for label in labels]
    codes = pa.array(texts).dictionary_encode()
    key = agents.astype(np.int64) * len(codes.dictionary) + codes.indices.to_numpy()
    return pa.array(key).dictionary_encode().indices.to_numpy().astype(np.int32)


def _evidence(kind: str, column: pa.Array) -> np.ndarray | pa.Array:
    if kind == "id":
        return column
    if kind == "count":
        return column.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return _floats(column).astype(np.float32)


def _floats(column: pa.Array) -> np.ndarray:
    """Numbers, NaN where null."""
    return column.to_numpy(zero_copy_only=False)


def _bools(column: pa.Array) -> np.ndarray:
    return column.fill_null(False).to_numpy(zero_copy_only=False)


def _valid(column: pa.Array) -> np.ndarray:
    return column.is_valid().to_numpy(zero_copy_only=False)


def _filled(column: pa.Array) -> np.ndarray:
    """Where a text is neither null nor empty."""
    return _bools(pc.greater(pc.binary_length(column), 0))


def _take(column: pa.Array, rows: np.ndarray) -> pa.Array:
    """Texts by row; null for row -1 and for an empty text."""
    taken = column.take(pa.array(rows, mask=rows < 0))
    return pc.if_else(pc.equal(taken, ""), None, taken)
