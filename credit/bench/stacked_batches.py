"""Many sampled batches in one set of arrays: those that a method takes, with a leading axis of batches.

Letters of shapes, padding included: D batches, T traces in a batch, M decisions in a trace, E = T M events in a batch;
of a world, N traces that are possible, S states, C choices.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection

import jax
import numpy as np

from credit.bench.enumeration import DECISIONS, Draws
from graphs.errors import CreditError
from graphs.event_graph import AGENT_FIELDS, EDGE_FIELDS, EVENT_FIELDS, EventGraph
from graphs.worlds.micro.orchestration import Micro

__all__ = ["AGENTS", "Batches", "critic_error", "stack"]

AGENTS = 4
"""Room for the agents of a trace; with `DECISIONS`, one size for all worlds."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batches:
    """D batches. In each, the events of one trace follow those of another as in a log, and padding comes last.

    Attributes:
      graph, reward, event_reward: what a method takes.
      returns: float64 [D, T], the outcome of each trace plus all its event rewards.
      evidence: arrays by name, of events [D, E] or traces [D, T]; `stack` lists the names.
      state, choice: int [D, E], the world's state before each decision, and what was chosen there; -1 in padding.
      weight: float64 [D, E], how much each decision counts in the batch's estimate of the gradient.
    """

    graph: EventGraph
    reward: np.ndarray
    returns: np.ndarray
    event_reward: np.ndarray
    evidence: dict[str, np.ndarray]
    state: np.ndarray
    choice: np.ndarray
    weight: np.ndarray


def critic_error(world: Micro) -> np.ndarray:
    """The error that a bad critic adds to Q(h, a): float64 [S, C], half as large as the spread of Q.

    It differs from state to state and from choice to choice.
    """
    s, c = np.indices(world.q.shape)
    result: np.ndarray = 0.5 * float(np.std(world.q)) * np.sin(1.0 + 1.9 * s + 2.3 * c)
    return result


def stack(draws: Draws, wanted: Collection[str] = ()) -> Batches:
    """The draws as batches, each of one task.

    Args:
      draws: sampled traces. Evidence that the way of sampling gives (`draws.evidence`) goes before that listed here.
      wanted: names of evidence.

    Evidence of events:

        value, q_value, propensity         the true V(h), Q(h, a) and π(a | h)
        expected_return                    V(h) plus what was earned before h
        wrong_value, wrong_q_value,        the same of a bad critic (`critic_error`)
          wrong_expected_return
        target_value, target_propensity,   V, π and support of the policy that is judged: the one that acted
          target_support
        anchor                             one id for all histories that look alike to the decider
        history, context                   one id for each history; traces that reach it count as drawn there
        node, alternative                  one id for each history and choice
        stage, env_step                    the stage of a decision, and its number
        block, tokens                      0, and 1, for every decision
        mark                               the increment of a decision, as a judge would state it
        counterfactual_reward              the expected return if choice 0 replaces the decision, and the rest runs anew
        value_high, segment                V(h), and the stage of the decision
        hindsight_log_prob                 log P(a | h, R): of a choice, by one who knows the trace's return
        self_rating                        the decider's share of the credit (R > 0) or the blame, as it is:
                                           of the sums of increments of that sign, by agent; 1/N if none is
        solo_return                        the expected return of a team without its lead, at the first decision

    Evidence of traces: `greedy_reward`, the expected outcome of the greedy policy.

    Raises:
      CreditError: a name that no world has.
    """
    world, absent = draws.world, len(draws.world.ends)
    members = np.where(draws.members < 0, absent, draws.members)
    graph, row = _graph(draws, members)
    state = row(_padded(world.state)[members], -1)
    choice = row(_padded(world.choice)[members], -1)
    member_mask = draws.members >= 0
    tables = _tables(world)

    def evidence(name: str) -> np.ndarray:
        if name in draws.evidence:
            values = draws.evidence[name]
            fill = np.nan if values.dtype.kind == "f" else -1
            packed = values if values.ndim == 2 else row(values, fill)
            return packed if packed.dtype.kind == "f" else packed.astype(np.int32)
        if name in tables:
            table = tables[name]
            fill = np.nan if table.dtype.kind == "f" else -1
            return np.where(state < 0, fill, table[state, choice]).astype(table.dtype)
        if name == "greedy_reward":
            return np.full(members.shape, _expected(world.greedy()))
        if name in _OF_TRACES:
            return row(_OF_TRACES[name](world)[members], np.nan)
        if name in ("context", "history"):
            return _first(state, state >= 0)
        if name == "anchor":
            return _first(world.anchors[state], state >= 0)
        if name in ("node", "alternative"):
            return _first(state * world.policy.shape[1] + choice, state >= 0)
        raise CreditError(f"no world has evidence {name!r}; add a setting for the method, or a reason for no score")

    return Batches(
        graph=graph,
        reward=np.where(member_mask, np.append(world.outcomes, 0.0)[members], np.nan),
        returns=np.where(member_mask, np.append(world.total, 0.0)[members], np.nan),
        event_reward=row(_padded(world.step_rewards, 0.0)[members]),
        evidence={name: evidence(name) for name in wanted},
        state=state,
        choice=choice,
        weight=row(draws.weight),
    )


def _graph(draws: Draws, members: np.ndarray) -> tuple[EventGraph, _Packer]:
    """The traces of each batch as one graph, and the packer that lays decisions [D, T, M] out as events [D, E]."""
    d, t = members.shape
    templates = _templates(draws.world)
    columns = {name: values[members] for name, values in templates.items()}

    def begins(mask: np.ndarray) -> np.ndarray:
        """How many rows stand before each trace, [D, T, 1]."""
        count = mask.sum(2)
        result: np.ndarray = (np.cumsum(count, 1) - count)[:, :, None]
        return result

    events, agents = begins(columns["event_mask"]), begins(columns["agent_mask"])
    turns = np.where(columns["event_mask"], columns["turn_ids"] + 1, 0).max(2)
    shift = {
        "agent_ids": agents,
        "agent_parent": agents,
        "senders": events,
        "receivers": events,
        "turn_ids": (np.cumsum(turns, 1) - turns)[:, :, None],
        "trace_ids": np.arange(t)[None, :, None],
        "agent_trace": np.arange(t)[None, :, None],
    }
    packers = {
        **dict.fromkeys(EVENT_FIELDS, _Packer(columns["event_mask"])),
        **dict.fromkeys(EDGE_FIELDS, _Packer(columns["edge_mask"])),
        **dict.fromkeys(AGENT_FIELDS, _Packer(columns["agent_mask"])),
    }
    fields = {name: packer(columns[name] + shift.get(name, 0) if name in shift else columns[name])
              for name, packer in packers.items()}  # fmt: skip
    fields = {name: values.astype(templates[name].dtype) for name, values in fields.items()}
    graph = EventGraph(
        **fields,
        group_ids=np.zeros((d, t), np.int32),
        trace_mask=draws.members >= 0,
        cluster_ids=draws.cluster_ids,
    )
    return graph, packers["event_mask"]


class _Packer:
    """Moves the real rows of the traces of a batch together, padding to the end: [D, T, X] to [D, T X]."""

    def __init__(self, mask: np.ndarray) -> None:
        flat = mask.reshape(len(mask), -1)
        self.order = np.argsort(~flat, axis=1, kind="stable")
        self.real = np.take_along_axis(flat, self.order, axis=1)

    def __call__(self, values: np.ndarray, fill: float = 0) -> np.ndarray:
        packed = np.take_along_axis(values.reshape(len(values), -1), self.order, axis=1)
        return np.where(self.real, packed, np.asarray(fill, packed.dtype))


def _first(ids: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The position of the first event of a batch with the same id, [D, E]: ids within [0, E); -1 elsewhere."""
    same = (ids[:, :, None] == ids[:, None, :]) & where[:, None, :]
    return np.where(where, np.argmax(same, axis=2), -1).astype(np.int32)


def _padded(values: np.ndarray, fill: float = -1) -> np.ndarray:
    """An array [N, decisions of the world] as [N + 1, M]; the last row stands for an absent trace."""
    out = np.full((len(values) + 1, DECISIONS), fill, values.dtype)
    out[:-1, : values.shape[1]] = values
    return out


def _expected(lottery: tuple[tuple[float, float], ...]) -> float:
    return sum(p * reward for p, reward in lottery)


@functools.cache
def _templates(world: Micro) -> dict[str, np.ndarray]:
    """The graph's fields of each possible trace, [N + 1, X], with ids from 0; the last row stands for no trace."""
    graph = jax.tree.map(np.asarray, world.batch().graph)
    owner = {
        **dict.fromkeys(EVENT_FIELDS, np.where(graph.event_mask, graph.trace_ids, -1)),
        **dict.fromkeys(EDGE_FIELDS, np.where(graph.edge_mask, graph.trace_ids[graph.senders], -1)),
        **dict.fromkeys(AGENT_FIELDS, np.where(graph.agent_mask, graph.agent_trace, -1)),
    }
    room = {name: DECISIONS for name in EVENT_FIELDS} | {name: DECISIONS - 1 for name in EDGE_FIELDS}
    room |= {name: AGENTS for name in AGENT_FIELDS}
    out = {name: np.zeros((len(world.ends) + 1, room[name]), getattr(graph, name).dtype) for name in owner}
    for name, of in owner.items():
        for trace in range(len(world.ends)):
            values = getattr(graph, name)[of == trace]
            # The batch numbers events, agents and turns through all traces; a template begins at 0.
            first = {
                "agent_ids": np.argmax(owner["agent_mask"] == trace),
                "agent_parent": np.argmax(owner["agent_mask"] == trace),
                "senders": np.argmax(owner["event_mask"] == trace),
                "receivers": np.argmax(owner["event_mask"] == trace),
                "turn_ids": graph.turn_ids[owner["event_mask"] == trace].min(),
                "trace_ids": trace,
                "agent_trace": trace,
            }.get(name)
            out[name][trace, : len(values)] = values if first is None else values - first
    return out


def _tables(world: Micro) -> dict[str, np.ndarray]:
    """Evidence that a state and a choice determine: arrays [S, C] by name."""
    decisions = list(world.states.values())
    wrong = world.q + critic_error(world)
    past = np.array([sum(world.earned(h[: i + 1]) for i in range(len(h))) for h in world.states])

    def of_state(values: object, dtype: type = np.int32) -> np.ndarray:
        return np.broadcast_to(np.asarray(values, dtype)[:, None], world.q.shape)

    return {
        "value": of_state(world.v, np.float64),
        "value_high": of_state(world.v, np.float64),
        "q_value": world.q,
        "propensity": world.policy,
        "expected_return": of_state(past + world.v, np.float64),
        "wrong_expected_return": of_state(past + np.sum(world.policy * wrong, axis=1), np.float64),
        "target_value": of_state(world.v, np.float64),
        "target_propensity": world.policy,
        "target_support": np.ones(world.q.shape),
        "wrong_value": of_state(np.sum(world.policy * wrong, axis=1), np.float64),
        "wrong_q_value": wrong,
        "mark": np.clip(world.increments, -1, 1),
        "stage": of_state([d.stage for d in decisions]),
        "segment": of_state([d.stage for d in decisions]),
        "env_step": of_state([len(h) for h in world.states]),
        "block": of_state(np.zeros(len(decisions))),
        "tokens": of_state(np.ones(len(decisions))),
    }


@functools.cache
def _reruns(world: Micro) -> np.ndarray:
    """For each possible trace and decision, the expected return if choice 0 replaces the decision: [N + 1, M]."""
    out = np.full((len(world.ends) + 1, DECISIONS), np.nan)
    for trace, (end, _, _) in enumerate(world.ends):
        out[trace, : len(end)] = [_expected(world.rest((*end[:cut], 0))) for cut in range(len(end))]
    return out


@functools.cache
def _hindsight(world: Micro) -> np.ndarray:
    """The log-probability of each choice of each possible trace given its history and the trace's return: [N + 1, M].

    By Bayes' rule it is that of the traces with this return that make the choice, among those that share the history.
    """
    out = np.full((len(world.ends) + 1, DECISIONS), np.nan)
    chance = world.probabilities()
    for trace, (end, _, _) in enumerate(world.ends):
        alike = np.abs(world.total - world.total[trace]) < 1e-9
        mass = [
            chance @ (alike & [other[:cut] == end[:cut] for other, _, _ in world.ends]) for cut in range(len(end) + 1)
        ]
        out[trace, : len(end)] = np.diff(np.log(mass))
    return out


@functools.cache
def _ratings(world: Micro) -> np.ndarray:
    """The true share of the decider of each decision of each possible trace in credit or blame: [N + 1, M]."""
    out = np.full((len(world.ends) + 1, DECISIONS), np.nan)
    deciders = [decision.agent for decision in world.states.values()]
    for trace, (end, _, _) in enumerate(world.ends):
        steps = list(zip(world.state[trace, : len(end)], end, strict=True))
        sign = 1 if world.total[trace] > 0 else -1
        amount = dict.fromkeys((deciders[s] for s, _ in steps), 0.0)
        for s, choice in steps:
            amount[deciders[s]] += sign * float(world.increments[s, choice])
        amount = {agent: max(of, 0.0) for agent, of in amount.items()}
        total = sum(amount.values())
        share = {agent: of / total if total > 1e-12 else 1 / len(amount) for agent, of in amount.items()}
        out[trace, : len(end)] = [share[deciders[s]] for s, _ in steps]
    return out


def _solo(world: Micro) -> np.ndarray:
    """The expected return without the lead at the first decision of each possible trace: [N + 1, M]."""
    out = np.full((len(world.ends) + 1, DECISIONS), np.nan)
    out[:-1, 0] = _expected(world.without(world.agents[0]))
    return out


_OF_TRACES: dict[str, Callable[[Micro], np.ndarray]] = {
    "counterfactual_reward": _reruns,
    "hindsight_log_prob": _hindsight,
    "self_rating": _ratings,
    "solo_return": _solo,
}
"""Evidence of decisions that a whole trace determines, by name: functions of the world, [N + 1, M]."""
