"""Batches that try a method's laws: ragged ones with every awkward case, and regular ones where nothing is missing.

Arrays only, nothing is read. Content is drawn, shapes are fixed, so that a method compiles once for all of them.
Rewards are multiples of 1/16, so that float32 sums of them are exact and a tie is a tie in every order of summation.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import jax
import numpy as np

from graphs.event_graph import EdgeType, EventGraph, EventType
from graphs.padding import Sizes, pad, pad_array, sizes
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = [
    "BETWEEN",
    "LEAST",
    "MOST",
    "ONE_FOR",
    "SIZES",
    "Batch",
    "Needs",
    "draw_rewards",
    "elsewhere",
    "follows",
    "padded",
    "ragged",
    "rearranged",
    "regular",
    "uneven",
]

Needs = Mapping[str, Literal["event", "trace"]]

SIZES = Sizes(events=256, edges=320, agents=96, traces=32)
"""Room of every batch: each axis has padding, and no two axes have one length."""

LEAST, MOST = 4, 15
"""Traces of a group that a batch may have: four, where a method needs no more."""

_NAMES = (("planner", 0), ("solver", 1), ("critic", 1))  # agent name, role
ONE_FOR = {"solo_reward": "trace_ids"} | dict.fromkeys(
    ("share", "agent_reward", "format_score", "self_rating", "block"), "agent_ids"
)
"""Evidence that is one number for each trace or agent instance."""
_CHOSEN = frozenset(("node", "alternative"))  # evidence whose ids are those of a replay tree
_TIED, BETWEEN, _LONELY, _IDLE = 1, 3, 4, 5
"""Groups of a ragged batch: with equal rewards; with one reward missing, between others; with one member; and so on."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """A graph with rewards and evidence, as NumPy arrays. `evidence` is by name, for each event or trace."""

    graph: EventGraph
    reward: np.ndarray
    event_reward: np.ndarray
    evidence: dict[str, np.ndarray]


def ragged(seed: int, needs: Needs, size: int = LEAST) -> Batch:
    """Groups of size + 1, 3, 1, size, 2, 3 and 2 traces of 1 to 10 events; unpadded.

    Group 1 has equal rewards of 0.1 and no event rewards; one trace of group 3 and one of group 4 have no reward, which
    leaves group 4 with one member; one trace of group 5 has an outcome and not a single action; some agents never act,
    two instances may share a name, tool results and effects are no actions, some evidence is missing.
    """
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(7), (size + 1, 3, 1, size, 2, 3, 2))
    traces = [_random_trace(rng) for _ in groups]
    first = np.searchsorted(groups, np.arange(7))
    traces[first[_IDLE]] = [(agent, EventType.TOOL_RESULT, False) for agent, _, _ in traces[first[_IDLE]]]
    graph = _graph(traces, groups, rng, idle_agents=True)
    reward = draw_rewards(graph, rng)
    reward[groups == _TIED] = np.float32(0.1)
    reward[[first[BETWEEN], first[_LONELY]]] = np.nan
    step = rng.choice([0, 0, 0, -0.25, -0.125, 0.25], graph.num_events).astype(np.float32)
    step[groups[graph.trace_ids] == _TIED] = 0
    return Batch(graph, reward, step, _evidence(graph, needs, rng, missing=0.1))


def regular(seed: int, needs: Needs, *, even: bool = True, groups: Sequence[int] = (LEAST,) * 4) -> Batch:
    """Groups of so many traces, in each of which two agents act twice; distinct rewards, all evidence; unpadded.

    Where the evidence is a replay tree they act once, so that each context has two alternatives: four leaves a group.
    If not `even`, the last of a group is the only one of its alternative, and the others are replays of the other one.
    """
    rng = np.random.default_rng(seed)
    of_group = np.repeat(np.arange(len(groups)), groups)
    acting = (0, 1) if needs.keys() & _CHOSEN else (0, 1, 0, 1)
    graph = _graph([[(agent, EventType.MESSAGE, True) for agent in acting] for _ in of_group], of_group, rng)
    step = rng.choice([0, -0.25, 0.25], graph.num_events).astype(np.float32)
    reward = draw_rewards(graph, rng)
    return Batch(graph, reward, step, _evidence(graph, needs, rng, missing=0.0, even=even))


def uneven(seed: int, needs: Needs, size: int = LEAST) -> Batch:
    """Two groups with `size` traces for each unit, but other traces for each; all evidence; unpadded.

    Each trace lacks one of four agents, and every third has one round of the others, not two.
    """
    rng = np.random.default_rng(seed)
    count = -(-3 * size // 2)
    acting = [[agent for agent in range(4) if agent != i % 4] * (1 if i % 3 == 0 else 2) for i in range(count)]
    groups = np.repeat(np.arange(2), count)
    graph = _graph([[(agent, EventType.MESSAGE, True) for agent in agents] for agents in acting * 2], groups, rng)
    step = rng.choice([0, -0.25, 0.25], graph.num_events).astype(np.float32)
    return Batch(graph, draw_rewards(graph, rng), step, _evidence(graph, needs, rng, missing=0.0))


def draw_rewards(graph: EventGraph, rng: np.random.Generator) -> np.ndarray:
    """One multiple of 1/16 in [-1, 3) for each trace, no two of them equal: float32 [T]."""
    return (rng.permutation(64)[: graph.num_traces] / 16 - 1).astype(np.float32)


def elsewhere(batch: Batch, needs: Needs, outside: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, Batch]]:
    """Batches with more and more changes in the traces `outside`, bool [T], each with the name of the last change.

    New numbers lie in wider intervals than those of a batch, so that the largest and the least change, too. Absent
    evidence stays absent. Ids stay, and so do probabilities, which would contradict each other.
    """
    events = outside[batch.graph.trace_ids]
    fresh = np.where(np.isnan(batch.reward), np.nan, draw_rewards(batch.graph, rng))
    batch = dataclasses.replace(batch, reward=np.where(outside, fresh, batch.reward).astype(np.float32))
    yield "rewards", batch
    step = (rng.integers(-16, 17, len(events)) / 16).astype(np.float32)
    batch = dataclasses.replace(batch, event_reward=np.where(events, step, batch.event_reward))
    yield "event rewards", batch
    lost = outside & (rng.random(len(outside)) < 1 / 3)
    batch = dataclasses.replace(batch, reward=np.where(lost, np.nan, batch.reward).astype(np.float32))
    yield "outcomes, some of which are now missing,", batch
    evidence = dict(batch.evidence)
    for name, level in needs.items():
        values = evidence[name]
        if _is_free(name):
            floats = values.dtype.kind == "f"
            drawn = rng.integers(1, 16, len(values)) / 16 if floats else rng.integers(1, 31, len(values))
            if name in ONE_FOR:
                drawn = drawn[getattr(batch.graph, ONE_FOR[name]) % len(values)]
            changed_mask = (events if level == "event" else outside) & (np.isfinite(values) if floats else values >= 0)
            evidence[name] = np.where(changed_mask, drawn, values).astype(values.dtype)
    yield "evidence", dataclasses.replace(batch, evidence=evidence)


def _is_free(name: str) -> bool:
    """Whether evidence is of numbers that may be any, unlike ids, and probabilities of the same choice."""
    key = EVENT_EVIDENCE.get(name) or TRACE_EVIDENCE.get(name)
    return (key is None or key.kind != "id") and name not in ("propensity", "target_propensity")


class Change(NamedTuple):
    """Something else that followed an action: another batch.

    Attributes:
      batch: the batch with the change.
      what: what changed, in words.
      upstream: bool [E], the events of its trace that it may have followed from.
      rise: by how much a reward rose; 0 where the change is of evidence.
      of_outcome: whether the outcome of the trace changed.
    """

    batch: Batch
    what: str
    upstream: np.ndarray
    rise: float = 0.0
    of_outcome: bool = False


def follows(batch: Batch, needs: Needs, rewarded: bool) -> Iterator[Change]:
    """Changes of the outcome of each trace of group 0, of what its agents got, and of what followed its events.

    Args:
      rewarded: whether rewards at events count.
    """
    trace, place = batch.graph.trace_ids, np.arange(batch.graph.num_events)
    later = [name for name, level in needs.items() if level == "event" and name not in ONE_FOR and _is_free(name)]
    for number in np.flatnonzero(batch.graph.group_ids == 0):
        own = trace == number
        for rise in (8.0, -8.0):

            def risen(values: np.ndarray, where: np.ndarray, rise: float = rise) -> np.ndarray:
                return np.where(where, values + np.float32(rise), values)

            reward = risen(batch.reward, np.arange(len(batch.reward)) == number)
            yield Change(dataclasses.replace(batch, reward=reward), "the outcome of its trace", own, rise, True)
            for agent in np.unique(batch.graph.agent_ids[own]) if "agent_reward" in needs else ():
                paid = risen(batch.evidence["agent_reward"], batch.graph.agent_ids == agent)
                paid_batch = dataclasses.replace(batch, evidence={**batch.evidence, "agent_reward": paid})
                yield Change(paid_batch, "an agent's outcome in its trace", own)
            for event in np.flatnonzero(own):
                if rewarded:
                    step = risen(batch.event_reward, place == event)
                    what = f"the event reward of event {event} of its trace"
                    yield Change(dataclasses.replace(batch, event_reward=step), what, own & (place <= event), rise)
                for name in later:
                    values = batch.evidence[name]
                    end = values.max() if rise > 0 else values.min()
                    evidence = {**batch.evidence, name: np.where(place == event, end, values)}
                    what = f"{name!r} of event {event}, a later one of its trace,"
                    yield Change(dataclasses.replace(batch, evidence=evidence), what, own & (place < event))


def padded(batch: Batch, to: Sizes, poison: bool = False) -> Batch:
    """The batch in arrays of the sizes `to`; with `poison`, floats in the padding are NaN and infinite, not 0."""
    real = sizes(batch.graph)
    graph = pad(batch.graph, to)
    bad = np.array([np.nan, np.inf, -np.inf], np.float32)

    def fit(values: np.ndarray, room: int, need: int, absent: float = 0) -> np.ndarray:
        out = pad_array(values, room, absent)
        if poison and np.issubdtype(out.dtype, np.floating):
            out[need:] = np.resize(bad, room - need)
        return out

    evidence = {
        name: fit(values, to.events, real.events, _absent(values))
        if len(values) == real.events
        else fit(values, to.traces, real.traces, _absent(values))
        for name, values in batch.evidence.items()
    }
    if poison:
        graph = dataclasses.replace(graph, time=fit(graph.time[: real.events], to.events, real.events))
    reward = fit(batch.reward, to.traces, real.traces)
    return Batch(graph, reward, fit(batch.event_reward, to.events, real.events), evidence)


def rearranged(batch: Batch, order: np.ndarray, rng: np.random.Generator) -> tuple[Batch, np.ndarray]:
    """The traces `order` in that order, with agents, names, roles and groups renumbered; and the old event of each new.

    Traces that `order` leaves out are gone, with their events, edges and agents. Takes and gives an unpadded batch.
    """
    graph = batch.graph
    events = np.concatenate([np.flatnonzero(graph.trace_ids == t) for t in order])
    agents = rng.permutation(np.flatnonzero(np.isin(graph.agent_trace, order)))
    edges = np.flatnonzero(np.isin(graph.trace_ids[graph.senders], order))
    new_event = _inverse(events, graph.num_events)
    new_agent = _inverse(agents, graph.num_agents)
    new_trace = _inverse(order, graph.num_traces)

    def renumber(ids: np.ndarray) -> np.ndarray:
        distinct, dense = np.unique(ids, return_inverse=True)
        return rng.permutation(len(distinct))[dense].astype(np.int32)

    _, turns = np.unique(graph.turn_ids[events], return_inverse=True)
    fields = {
        **{name: getattr(graph, name)[events] for name in ("event_type", "action_mask", "event_mask", "time")},
        **{name: getattr(graph, name)[edges] for name in ("edge_type", "edge_mask")},
        "trace_ids": new_trace[graph.trace_ids[events]],
        "agent_ids": new_agent[graph.agent_ids[events]],
        "turn_ids": turns.astype(np.int32),
        "senders": new_event[graph.senders[edges]],
        "receivers": new_event[graph.receivers[edges]],
        "agent_name_ids": renumber(graph.agent_name_ids[agents]),
        "agent_role_ids": renumber(graph.agent_role_ids[agents]),
        "agent_parent": new_agent[graph.agent_parent[agents]],
        "agent_trace": new_trace[graph.agent_trace[agents]],
        "agent_mask": graph.agent_mask[agents],
        "group_ids": renumber(graph.group_ids[order]),
        "trace_mask": graph.trace_mask[order],
    }
    evidence = {
        name: values[events] if len(values) == graph.num_events else values[order]
        for name, values in batch.evidence.items()
    }
    moved = Batch(EventGraph(**fields), batch.reward[order], batch.event_reward[events], evidence)
    return moved, events


def _inverse(kept: np.ndarray, length: int) -> np.ndarray:
    out = np.zeros(length, np.int32)
    out[kept] = np.arange(len(kept), dtype=np.int32)
    return out


def _random_trace(rng: np.random.Generator) -> list[tuple[int, EventType, bool]]:
    """Calls of agents (instances 0 to 3), some with a tool call as their effect and its result."""
    events: list[tuple[int, EventType, bool]] = []
    for agent in rng.integers(0, 4, rng.integers(1, 5)):
        events.append((int(agent), EventType.MESSAGE, True))
        if rng.random() < 0.4:
            events += [(int(agent), EventType.TOOL_CALL, False), (int(agent), EventType.TOOL_RESULT, False)]
    return events[:10]


def _graph(
    traces: list[list[tuple[int, EventType, bool]]],
    groups: np.ndarray,
    rng: np.random.Generator,
    idle_agents: bool = False,
) -> EventGraph:
    """Traces as a graph: each event caused by the one before it; instance 0 spawned the others."""
    events = [(trace, *event) for trace, content in enumerate(traces) for event in content]
    n = len(events)
    present = {(trace, agent) for trace, agent, _, _ in events} | {(trace, 0) for trace in range(len(traces))}
    if idle_agents:
        present |= {(int(trace), 2) for trace in rng.choice(len(traces), 4)}
    instances = sorted(present)
    index = {key: i for i, key in enumerate(instances)}
    # Instance 3 has the name of instance 1: two solvers in one trace are one unit of a name.
    names = np.array([(0, 1, 2, 1)[agent] for _, agent in instances], np.int32)
    trace_ids = np.array([trace for trace, *_ in events], np.int32)
    agent_ids = np.array([index[trace, agent] for trace, agent, _, _ in events], np.int32)
    inside = [(a, b) for a, b in itertools.pairwise(range(n)) if trace_ids[a] == trace_ids[b]]
    begins = np.array([True, *(agent_ids[1:] != agent_ids[:-1])])
    return EventGraph(
        event_type=np.array([int(kind) for _, _, kind, _ in events], np.int32),
        action_mask=np.array([action for *_, action in events], bool),
        event_mask=np.ones(n, bool),
        time=rng.normal(size=n).astype(np.float32),
        trace_ids=trace_ids,
        agent_ids=agent_ids,
        turn_ids=(np.cumsum(begins) - 1).astype(np.int32),
        senders=np.array([a for a, _ in inside], np.int32),
        receivers=np.array([b for _, b in inside], np.int32),
        edge_type=np.full(len(inside), int(EdgeType.TEMPORAL), np.int32),
        edge_mask=np.ones(len(inside), bool),
        agent_name_ids=names,
        agent_role_ids=np.array([_NAMES[name][1] for name in names], np.int32),
        agent_parent=np.array([index[trace, 0] for trace, _ in instances], np.int32),
        agent_trace=np.array([trace for trace, _ in instances], np.int32),
        agent_mask=np.ones(len(instances), bool),
        group_ids=groups.astype(np.int32),
        trace_mask=np.ones(len(traces), bool),
    )


def _evidence(
    graph: EventGraph, needs: Needs, rng: np.random.Generator, missing: float, even: bool = True
) -> dict[str, np.ndarray]:
    """Plausible evidence, a part of it absent: floats in (0, 1), counts from 1 to 20, ids shared within a group.

    Log-probabilities are in (-1, 0). `block` is shared by groups; what is one number for a trace or an agent is
    constant within it. Where `node` or `alternative` is asked for, it is with `context` a replay tree, and propensities
    are probabilities of its alternatives.
    """
    drawn: dict[str, np.ndarray] = {}
    for name, level in needs.items():
        length = graph.num_events if level == "event" else graph.num_traces
        key = EVENT_EVIDENCE.get(name) or TRACE_EVIDENCE.get(name)
        kind = "float" if key is None else key.kind
        if kind == "float":
            values = rng.integers(2, 15, length).astype(np.float32) / 16
            values = -values if key is not None and key.within.most < 1 else values  # of a log-probability
        elif kind == "count":
            values = rng.integers(1, 21, length).astype(np.int32)
        else:
            groups = graph.group_ids[graph.trace_ids] if level == "event" else graph.group_ids
            apart = np.zeros_like(groups) if name == "block" else groups  # a trainer's block mixes tasks
            values = (3 * apart + rng.integers(0, 3, length)).astype(np.int32)
        if name in ONE_FOR:
            values = values[getattr(graph, ONE_FOR[name]) % length]
        values[rng.random(length) < missing] = _absent(values)
        drawn[name] = values
    for name in needs.keys() & _CHOSEN:
        context, drawn[name] = _replay_tree(graph, rng, missing, even)
        drawn["context"] = context
        for chance in drawn.keys() & {"propensity", "target_propensity"}:
            policy = _policy(context, drawn[name], np.random.default_rng(len(chance)))
            drawn[chance] = np.where(np.isnan(drawn[chance]), np.nan, policy).astype(np.float32)
    return drawn


def _replay_tree(
    graph: EventGraph, rng: np.random.Generator, missing: float, even: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Contexts and nodes as if the traces of a group were replays of its first: two alternatives a context.

    The i-th trace of a group takes the alternatives that the binary digits of i name, the lowest first; if not `even`,
    those of 1 for the last trace, and of 0 for the others. Absence goes by trace: one that was no replay has neither.
    """
    context, node = (np.full(graph.num_events, -1, np.int32) for _ in range(2))
    ids: dict[tuple[int, ...], int] = {}
    met: dict[int, int] = {}
    last = np.bincount(graph.group_ids) - 1
    for trace, group in enumerate(graph.group_ids.tolist()):
        met[group] = met.get(group, -1) + 1
        leaf = met[group] if even else int(met[group] == last[group])
        if rng.random() < missing:
            continue
        path: tuple[int, ...] = (group,)
        for event in np.flatnonzero((graph.trace_ids == trace) & graph.action_mask):
            context[event] = ids.setdefault(path, len(ids))
            path, leaf = (*path, leaf % 2), leaf // 2
            node[event] = ids.setdefault(path, len(ids))
    return context, node


def _policy(context: np.ndarray, node: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Probabilities of the chosen alternatives: those of a context's two sum to 1; NaN off the tree."""
    first = {c: int(node[context == c].min()) for c in np.unique(context[context >= 0]).tolist()}
    chance = rng.integers(4, 13, len(context) + 1) / 16
    pairs = zip(context.tolist(), node.tolist(), strict=True)
    return np.array([np.nan if c < 0 else chance[c] if first[c] == v else 1 - chance[c] for c, v in pairs])


def _absent(values: np.ndarray) -> float:
    """The value of missing evidence: NaN, or -1 in counts and ids."""
    return np.nan if np.issubdtype(values.dtype, np.floating) else -1
