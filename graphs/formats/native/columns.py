"""Native traces as a `Part`, many traces at once and no Python object an event.

`columns` computes for a batch what `graphs.formats.native.from_wire`, `graphs.traces.record.check` and
`graphs.traces.record_parts.part_of` compute for one trace after another. Where a trace is not plain (something in it is
wrong, or its events must be put into another order), it says so, and the trace takes that slower way, which names
every fault.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphs.event_types import ACTION_TYPES, EdgeType, EventType
from graphs.formats.native.structs import Edges, Events
from graphs.formats.native.wire import COUNTS, IDS, NARROW, Trace, version_known
from graphs.traces.limits import Limits
from graphs.traces.missing_names import no_ids
from graphs.traces.part import EVENT_TEXT, Heading, Part, derive_turns, first_of_each, present
from graphs.traces.record import LARGEST_FLOAT, NEVER_NEGATIVE, fitting
from graphs.traces.schema import EVENT_EVIDENCE
from graphs.traces.token_lists import gather_tokens, impossible_sums, with_counts
from graphs.traces.tokens import TOKEN_COLUMNS
from graphs.traces.turn_gaps import TURN, turn_numbers

__all__ = ["Decoded", "columns"]

_ZEROS = (0.0,) * len(NEVER_NEGATIVE)
_IS_ACTION = np.array([kind in ACTION_TYPES for kind in sorted(EventType)])


class Decoded(NamedTuple):
    """A trace without its events and edges, and the place of its record."""

    trace: Trace
    file: str
    line: int
    offset: int


def columns(traces: Sequence[Decoded], events: Events, edges: Edges, limits: Limits) -> tuple[Part, np.ndarray]:
    """The columns of all `traces`, and bool [t], which of them are plain.

    Entries of a trace that is not plain have no meaning.
    """
    wires = [decoded.trace for decoded in traces]
    counts, types, field = events.counts, events.types, events.fields
    plain = events.sound & edges.sound & (counts > 0) & (counts <= limits.events) & (edges.counts <= limits.edges)
    plain &= np.array([_plain_document(wire) for wire in wires])
    trace_of = np.repeat(np.arange(len(wires)), counts)
    forward = _Forward(edges, plain)
    if "t" in field:
        plain[trace_of[field["t"] < 0]] = False  # a date before 1970
    for name in COUNTS:
        if name in field:
            plain[trace_of[np.floor(field[name]) < field[name]]] = False
    for name, (least, most, _) in NARROW.items():
        if name in field:
            plain[trace_of[(field[name] < least) | (field[name] > most)]] = False
    for name in IDS & field.keys():
        plain[trace_of[pc.is_in(field[name], pa.array(no_ids(name), pa.string())).to_numpy(zero_copy_only=False)]] = (
            False
        )
    team = _Team(wires, field, types, trace_of, forward, plain)
    if events.turns is None:
        turns = derive_turns(types, team.agents, forward.senders, forward.receivers, forward.types)
    else:
        turns = _stated_turns(events.turns, team.agents, trace_of, plain)
    actions = _IS_ACTION[types]
    if "action" in field:
        actions = np.where(_valid(field["action"]), _bools(field["action"]), actions)
    if "agent_reward" in field:
        plain[trace_of[_differing(field["agent_reward"], team.agents)]] = False
    tokens = None
    if any(name in field for name in TOKEN_COLUMNS):
        tokens, sound = gather_tokens(field, actions)
        plain[trace_of[~sound]] = False
        if len(impossible := impossible_sums(tokens)) and tokens is not None:
            plain[trace_of[tokens.events[impossible]]] = False
    evidence = {name: _evidence(key.kind, field[name]) for name, key in EVENT_EVIDENCE.items() if name in field}
    if events.turns is not None:
        evidence[TURN] = turn_numbers(events.turns)
    part = Part(
        headings=[_heading(decoded) for decoded in traces],
        event_ends=np.cumsum(counts),
        edge_ends=forward.ends,
        agent_ends=np.searchsorted(team.trace_of, np.arange(1, len(wires) + 1)),
        types=types,
        agents=team.agents,
        turns=turns,
        actions=actions,
        times=field["t"] if "t" in field else np.full(len(types), math.nan),
        senders=forward.senders,
        receivers=forward.receivers,
        edge_types=forward.types,
        agent_ids=team.ids,
        agent_names=team.names,
        agent_roles=team.roles,
        parents=team.parents,
        text={"event": field["id"]} | {name: field[name] for name in EVENT_TEXT if name in field},
        evidence={
            name: column for name, column in with_counts(evidence, tokens, actions).items() if present(column).any()
        },
        places=_places(traces, trace_of),
        tokens=tokens,
    )
    return part, plain


def _places(traces: Sequence[Decoded], trace_of: np.ndarray) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """File, line and offset of each event, where the traces are of several files."""
    if len({decoded.file for decoded in traces}) < 2:
        return None
    files = pa.array([decoded.file for decoded in traces], pa.string())
    lines = np.array([decoded.line for decoded in traces], np.int32)
    offsets = np.array([decoded.offset for decoded in traces], np.int64)
    return files.take(pa.array(trace_of)), pa.array(lines[trace_of]), pa.array(offsets[trace_of])


def _plain_document(wire: Trace) -> bool:
    """Whether nothing is wrong with what a trace has once."""
    return (
        version_known(wire.schema_version)
        and not (wire.rewards and max(map(abs, wire.rewards.values())) > LARGEST_FLOAT)
        and not (wire.costs and min(map(wire.costs.get, NEVER_NEGATIVE, _ZEROS)) < 0)
        and not (wire.evidence and not all(itertools.starmap(fitting, wire.evidence.items())))
        and not (wire.agents and len({agent.id for agent in wire.agents}) < len(wire.agents))
    )


def _heading(decoded: Decoded) -> Heading:
    wire, file, line, offset = decoded
    return Heading(
        wire.trace_id,
        wire.group or wire.task_id,
        file,
        line,
        offset,
        "native",
        wire.topology or "",
        wire.system or "",
        wire.model or "",
        wire.rewards or {},
        wire.costs or {},
        wire.metrics or {},
        wire.evidence or {},
        task_kind=wire.task_kind or "",
        told_order=wire.told_order,
    )


class _Forward:
    """The edges of traces whose edges all join two events and run forward; the other traces are not plain."""

    def __init__(self, edges: Edges, plain: np.ndarray) -> None:
        of_edge = np.repeat(np.arange(len(plain)), edges.counts)
        senders, receivers, types = edges.senders, edges.receivers, edges.types
        plain[of_edge[(senders < 0) | (receivers < 0)]] = False
        if not plain.all():  # an edge without an end must not seem to be one of another trace
            kept = plain[of_edge]
            senders, receivers, types, of_edge = senders[kept], receivers[kept], types[kept], of_edge[kept]
        plain[of_edge[senders >= receivers]] = False
        self.senders, self.receivers, self.types = senders, receivers, types
        self.ends = np.cumsum(np.bincount(of_edge, minlength=len(plain)))


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
        field: dict[str, Any],
        types: np.ndarray,
        trace_of: np.ndarray,
        edges: _Forward,
        plain: np.ndarray,
    ) -> None:
        n = len(types)
        spawns = np.flatnonzero(types == EventType.SPAWN)
        spawns = spawns[_filled(field["to"].take(pa.array(spawns)))] if "to" in field and len(spawns) else spawns[:0]
        targets = field["to"].take(pa.array(spawns)) if len(spawns) else pa.array([], pa.string())
        listed = [(i, agent) for i, wire in enumerate(wires) for agent in wire.agents or ()]
        listed_in = np.array([i for i, _ in listed], np.int64)
        listed_agents = pa.array([(agent.id, agent.name, agent.role, agent.parent) for _, agent in listed], _AGENT)

        words = pa.concat_arrays(
            [field["agent"], targets, listed_agents.field(0), listed_agents.field(3)]
        ).dictionary_encode()
        codes = words.indices.fill_null(0).to_numpy().astype(np.int64)
        # An instance is a pair of a trace and an id; its key is trace × (number of ids) + id.
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

        agents, target, listing = self.agents, self._find(target_key), self._find(listed_key)
        first = first_of_each(agents, np.arange(n), count)
        first_spawn = first_of_each(target, spawns, count)
        early = (first >= 0) & (first < first_spawn)
        plain[self.trace_of[early]] = False

        # A spawn edge to an instance's first event names its parent, unless a spawn or `agents` does.
        sender, receiver = self._first_spawn_edges(edges, first)
        parents = first_of_each(agents[receiver], agents[sender], count)
        by_spawn = first_of_each(target, agents[spawns], count)
        parents = np.where(by_spawn >= 0, by_spawn, parents)
        with_parent = np.flatnonzero(_filled(listed_agents.field(3)))
        if len(with_parent):
            stated = pc.index_in(pa.array(parent_key[with_parent]), self._keys)
            known = _valid(stated)
            plain[listed_in[with_parent[~known]]] = False
            parents[listing[with_parent[known]]] = stated.drop_null().to_numpy()
        self.parents = np.where(parents >= 0, parents, np.arange(count)).astype(np.int32)
        plain[self.trace_of[~_rooted(self.parents)]] = False

        without_target = (types[sender] == EventType.SPAWN) & ~np.isin(sender, spawns)
        by_edge = first_of_each(agents[receiver[without_target]], sender[without_target], count)
        role = self._role_events(field, types, moved.events, np.where(first_spawn >= 0, first_spawn, by_edge))
        name = np.full(count, -1, np.int64)
        if "agent_name" in field:
            rows = np.flatnonzero(_filled(field["agent_name"]))
            name = first_of_each(agents[rows], rows, count)
        entry = first_of_each(listing, np.arange(len(listed)), count)
        self.names = pc.coalesce(
            _take(listed_agents.field(1), entry), _take(field.get("agent_name", field["agent"]), name), self.ids
        )
        self.roles = pc.coalesce(
            _take(listed_agents.field(2), entry), _take(field.get("role", field["agent"]), role), self.names
        )

    def _number(
        self, event_key: np.ndarray, spawns: np.ndarray, target: np.ndarray, listed: np.ndarray, begin: np.ndarray
    ) -> None:
        """Instances in order of appearance: those of `agents`, then of each event its agent and whom it spawns."""
        if not len(target) and not len(listed):
            encoded = pa.array(event_key).dictionary_encode()
            self.agents = encoded.indices.to_numpy().astype(np.int32)
        else:
            earlier = np.concatenate([spawns + 1, begin])
            sequence = np.insert(event_key, earlier, np.concatenate([target, listed]))
            encoded = pa.array(sequence).dictionary_encode()
            shift = np.cumsum(np.bincount(earlier, minlength=len(event_key) + 1))[: len(event_key)]
            self.agents = encoded.indices.to_numpy()[np.arange(len(event_key)) + shift].astype(np.int32)
        self._keys = encoded.dictionary

    def _first_spawn_edges(self, edges: _Forward, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Senders and receivers of the spawn edges from another instance to the first event of one."""
        rows = np.flatnonzero(edges.types == EdgeType.SPAWN)
        sender, receiver = edges.senders[rows], edges.receivers[rows]
        owner = self.agents[receiver]
        to_first = (self.agents[sender] != owner) & (first[owner] == receiver)
        return sender[to_first], receiver[to_first]

    def _role_events(
        self, field: dict[str, Any], types: np.ndarray, moved: np.ndarray, spawn: np.ndarray
    ) -> np.ndarray:
        """The event that states the role of each instance: one of its own that is no spawn, else its spawn; -1 if none.

        Args:
          field: the columns of the events.
          types: of each event.
          moved: events that were logged under another name.
          spawn: the event that spawned each instance, or -1.
        """
        if "role" not in field:
            return np.full(len(spawn), -1, np.int64)
        has = _filled(field["role"])
        named = has & (types != EventType.SPAWN)
        named[moved] = False
        rows = np.flatnonzero(named)
        by_event = first_of_each(self.agents[rows], rows, len(spawn))
        by_spawn = np.where((spawn >= 0) & has[spawn], spawn, -1)
        return np.where(by_event >= 0, by_event, by_spawn)

    def _find(self, keys: np.ndarray) -> np.ndarray:
        return pc.index_in(pa.array(keys), self._keys).to_numpy() if len(keys) else np.zeros(0, np.int32)


class _Moved(NamedTuple):
    """Tool results that were logged under a tool's name, and the calls whose agents they belong to."""

    events: np.ndarray
    calls: np.ndarray


def _moved(
    field: dict[str, Any],
    types: np.ndarray,
    trace_of: np.ndarray,
    edges: _Forward,
    agent_key: np.ndarray,
    others: np.ndarray,
    listed: np.ndarray,
) -> _Moved:
    """What `graphs.formats.native.agents.owners` finds in one trace, for all traces.

    Args:
      field, types, trace_of: of the events.
      edges: those of plain traces.
      agent_key: the instance under which each event was logged.
      others: instances that are spawned or listed, and need no event of their own.
      listed: instances that a trace lists.
    """
    results = np.flatnonzero(types == EventType.TOOL_RESULT)
    nobody = _Moved(results[:0], results[:0])
    if not len(results):
        return nobody
    result_key = agent_key[results]
    known = pa.array(np.concatenate([agent_key[types != EventType.TOOL_RESULT], others]))
    suspect = ~_bools(pc.is_in(pa.array(result_key), known))
    if "tool" in field:
        rows = pa.array(results)
        same = pc.equal(field["agent"].take(rows), field["tool"].take(rows)).fill_null(False)
        suspect |= _bools(same)
    suspect &= ~np.isin(result_key, listed)
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
    answered = suspects[call_of[suspects] >= 0]
    return _Moved(answered, call_of[answered])


_AGENT = pa.struct([("id", pa.string()), ("name", pa.string()), ("role", pa.string()), ("parent", pa.string())])


def _rooted(parents: np.ndarray) -> np.ndarray:
    """Whether the ancestors of each instance end at a root, that is, its own parent."""
    if np.all(parents <= np.arange(len(parents))):
        return np.ones(len(parents), bool)  # every parent comes before its children
    top = parents
    for _ in range(len(parents).bit_length()):  # each time twice as many generations up
        top = top[top]
    rooted: np.ndarray = parents[top] == top
    return rooted


def _stated_turns(labels: pa.Array, agents: np.ndarray, trace_of: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """Turns by their labels, numbered by first event."""
    plain[trace_of[~_valid(labels)]] = False  # some turns are a fault; without any, the other way derives them
    codes = labels.fill_null("").dictionary_encode()
    key = agents.astype(np.int64) * len(codes.dictionary) + codes.indices.to_numpy()
    turns: np.ndarray = pa.array(key).dictionary_encode().indices.to_numpy().astype(np.int32)
    return turns


def _differing(amounts: np.ndarray, agents: np.ndarray) -> np.ndarray:
    """The events that state another number than the first event of their agent instance that states one."""
    stated = np.flatnonzero(~np.isnan(amounts))
    first = first_of_each(agents[stated], amounts[stated], int(agents.max()) + 1, absent=0.0)
    differing: np.ndarray = stated[np.abs(amounts[stated] - first[agents[stated]]) > 0]
    return differing


def _evidence(kind: str, column: pa.Array | np.ndarray) -> np.ndarray | pa.Array:
    if kind == "id":
        return column
    if kind == "count":
        return np.where(np.isnan(column), -1, column).astype(np.int32)
    return column.astype(np.float32)


def _bools(column: pa.Array) -> np.ndarray:
    values: np.ndarray = column.fill_null(False).to_numpy(zero_copy_only=False)
    return values


def _valid(column: pa.Array) -> np.ndarray:
    valid: np.ndarray = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _filled(column: pa.Array) -> np.ndarray:
    """Where a text is neither null nor empty."""
    return _bools(pc.greater(pc.binary_length(column), 0))


def _take(column: pa.Array, rows: np.ndarray) -> pa.Array:
    """Texts by row; null for row -1 and for an empty text."""
    taken = column.take(pa.array(rows, mask=rows < 0))
    return pc.if_else(pc.equal(taken, ""), None, taken)
