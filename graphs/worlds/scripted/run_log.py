"""The log of a scripted team, as records of a reader and as arrays.

Time stamps increase strictly and are multiples of 1/512 s, for the reason in `graphs.worlds.planned.episode_log`. Each
event takes 1 to 64 ticks. Tokens and durations come from the trace's own seed.
"""

from __future__ import annotations

from typing import Protocol

import jax
import numpy as np

from graphs.event_graph import EventGraph, EventType
from graphs.traces.part import derive_turns
from graphs.traces.record import Agent, TraceRecord
from graphs.worlds.planned.episode_log import BEGIN, TICK
from graphs.worlds.scripted.runs import Runs
from graphs.worlds.scripted.script import Script
from graphs.worlds.truth import Truth

__all__ = ["graph", "records"]


class LoggedTeam(Protocol):
    """The input of a scripted team's log: its script, its chances [K, D], and which events happened."""

    @property
    def script(self) -> Script: ...

    @property
    def chance(self) -> np.ndarray: ...

    def present(self, runs: Runs) -> np.ndarray: ...


def records(world: LoggedTeam, runs: Runs, truth: Truth | None = None) -> list[TraceRecord]:
    """One record a trace, in order.

    Evidence: the propensity of every choice that was not certain, tokens of each action, the group's greedy reward, and
    with `truth` the true value before each event. Costs: tokens and wall-clock time.
    """
    runs = jax.tree.map(np.asarray, runs)  # reading single elements of JAX arrays is slow
    present, chance = world.present(runs), world.chance
    return [
        _record(world, runs, i, present[i], chance[int(runs.task[i])], None if truth is None else truth.values[i])
        for i in range(len(present))
    ]


def _record(
    world: LoggedTeam, runs: Runs, i: int, present: np.ndarray, chance: np.ndarray, values: np.ndarray | None
) -> TraceRecord:
    script = world.script
    number, group = int(runs.trace[i]), int(runs.group[i])
    record = TraceRecord(f"trace-{number:06d}", f"group-{group:06d}", file="world", format="world")
    present_mask = _present_agents(world, np.asarray(runs.choice[i])[None])[0]
    for a in np.flatnonzero(present_mask):
        parent = int(script.parent[a])
        record.instances[script.names[a]] = Agent(
            script.names[a], script.roles[a], "" if parent == a else script.names[parent]
        )
    events = np.flatnonzero(present)
    ticks, tokens = _drawn(script.types, runs.seed[i])
    clock = np.cumsum(np.where(present, ticks, 0))
    begin = BEGIN + 3600.0 * number
    choice = np.asarray(runs.choice[i])
    decision = script.decision[events]
    given = np.where(choice, chance, 1 - chance)[np.maximum(decision, 0)]
    choosing = (decision >= 0) & (chance[np.maximum(decision, 0)] < 1)

    record.ids = [f"e{j}" for j in range(len(events))]
    record.types = script.types[events].tolist()
    record.agents = [script.names[a] for a in script.agents[events]]
    record.actions = (decision >= 0).tolist()
    record.times = (begin + clock[events] * TICK).tolist()
    record.lines, record.offsets = [0] * len(events), [0] * len(events)
    to = [script.names[t] if t >= 0 else None for t in script.to[events]]
    record.columns = {
        "from": [record.agents[j] if t is not None else None for j, t in enumerate(to)],
        "to": to,
        "tool": [script.tools[v] for v in events],
        "propensity": [float(p) if c else None for p, c in zip(given, choosing, strict=True)],
        "tokens": [int(t) if d >= 0 else None for t, d in zip(tokens[events], decision, strict=True)],
    }
    if values is not None:
        record.columns["value"] = values[: len(events)].tolist()
    senders, receivers, kinds = _present_edges(world, present)
    record.senders, record.receivers, record.edge_types = senders.tolist(), receivers.tolist(), kinds.tolist()
    record.topology, record.system = script.topology, "simulated"
    record.rewards["team"] = float(runs.reward[i])
    record.evidence["greedy_reward"] = float(runs.greedy_reward[i])
    record.costs["tokens"] = float(tokens[events][decision >= 0].sum())
    record.costs["wall_clock_s"] = float(clock[events[-1]] * TICK)
    return record


def _drawn(types: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ticks that each event of the script takes, and tokens that it would generate."""
    rng = np.random.default_rng(int(seed))
    tools = types == EventType.TOOL_RESULT
    return rng.integers(1, 65, len(types)) * np.where(tools, 8, 1), rng.integers(20, 400, len(types))


def _present_agents(world: LoggedTeam, choice: np.ndarray) -> np.ndarray:
    """Agents that each trace has: bool [n, A]."""
    on = world.script.agent_on
    result: np.ndarray = (on < 0) | choice[:, np.maximum(on, 0)]
    return result


def _present_edges(world: LoggedTeam, present: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges between events of one trace, as positions in its log, and their types."""
    script = world.script
    kept = present[script.senders] & present[script.receivers]
    place = np.cumsum(present) - 1
    return place[script.senders[kept]], place[script.receivers[kept]], script.edge_types[kept]


def graph(world: LoggedTeam, runs: Runs) -> EventGraph:
    """The event graph of all traces: unpadded NumPy arrays."""
    script, choice = world.script, np.asarray(runs.choice)
    present = world.present(runs)
    n = len(present)
    agents = _present_agents(world, choice)
    rows, events = np.nonzero(present)
    owner, member = np.nonzero(agents)
    place = np.cumsum(present).reshape(present.shape) - 1  # of each event in the batch
    seat = np.cumsum(agents).reshape(agents.shape) - 1
    # Traces that spawned the same waves have the same turns and edges.
    waves, pattern = np.unique(choice[:, script.optional], axis=0, return_inverse=True)
    turns, edges = [], []
    for p in range(len(waves)):
        one = present[np.argmax(pattern == p)]
        s, r, kinds = _present_edges(world, one)
        turns.append(derive_turns(script.types[one], script.agents[one], s, r, kinds))
        edges.append((s, r, kinds))
    counts = np.array([t.max() + 1 for t in turns])[pattern]
    first_turn, first_event = np.cumsum(counts) - counts, place[:, 0]
    ticks = np.stack([_drawn(script.types, seed)[0] for seed in np.asarray(runs.seed)])
    clock = np.cumsum(np.where(present, ticks, 0), axis=1)
    begin = np.take_along_axis(clock, np.argmax(present, axis=1)[:, None], axis=1)
    senders, receivers = (
        np.concatenate([edges[p][side] + first_event[i] for i, p in enumerate(pattern)]) for side in (0, 1)
    )
    return EventGraph(
        event_type=script.types[events],
        action_mask=script.decision[events] >= 0,
        event_mask=np.ones(len(events), bool),
        time=((clock - begin) * TICK)[rows, events].astype(np.float32),
        trace_ids=rows.astype(np.int32),
        agent_ids=seat[rows, script.agents[events]].astype(np.int32),
        turn_ids=np.concatenate([turns[p] + first_turn[i] for i, p in enumerate(pattern)]).astype(np.int32),
        senders=senders.astype(np.int32),
        receivers=receivers.astype(np.int32),
        edge_type=np.concatenate([edges[p][2] for p in pattern]),
        edge_mask=np.ones(len(senders), bool),
        agent_name_ids=_by_appearance(member),
        agent_role_ids=_by_appearance(_numbers(script.roles)[member]),
        agent_parent=seat[owner, script.parent[member]].astype(np.int32),
        agent_trace=owner.astype(np.int32),
        agent_mask=np.ones(len(owner), bool),
        group_ids=_by_appearance(np.asarray(runs.group)),
        trace_mask=np.ones(n, bool),
    )


def _numbers(names: tuple[str, ...]) -> np.ndarray:
    return np.unique(np.array(names), return_inverse=True)[1]


def _by_appearance(ids: np.ndarray) -> np.ndarray:
    """Ids renumbered in the order in which they first appear: int32."""
    _, first, dense = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[dense]
