"""Sampled batches stacked: the arrays that a method takes, with a leading axis of batches.

Legend: D batches, T traces of a batch, M decisions of a trace, E = T M events of a batch, padding included.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection

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
    """Batches of traces, one after another as in a log, padded at the end.

    Attributes:
      graph, reward, event_reward: as a method takes them; `returns` is the outcome together with all event rewards.
      evidence: by name, per event or per trace; see `stack`.
      state, choice: int [D, E], numbers of the world's state and of the choice made there; -1 in padding.
      weight: float64 [D, E], of each decision in the batch's estimate of the gradient.
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
    """The error that a bad critic adds to Q(h, a), float64 [S, C]: uneven, and half as large as the spread of Q."""
    s, c = np.indices(world.q.shape)
    result: np.ndarray = 0.5 * float(np.std(world.q)) * np.sin(1.0 + 1.9 * s + 2.3 * c)
    return result


def stack(draws: Draws, wanted: Collection[str] = ()) -> Batches:
    """The draws as batches of one task each, with the evidence named in `wanted`.

    Evidence per event: the true `value`, `q_value` and `propensity`; `expected_return`, the value with what was earned
    before; `wrong_value`, `wrong_q_value` and `wrong_expected_return`, those of a bad critic; `target_value`,
    `target_propensity` and `target_support`, where the policy that acted is the one judged; `anchor`, what the decider
    sees, and `history`, all that happened; `context`, where traces that came to one history count as drawn there, with
    `node` and `alternative`, both what was chosen; `stage`; `env_step`, the number of the decision; `block` and
    `tokens`, one for all; `mark`, the increment as a judge's verdict; `counterfactual_reward`, the expected return
    where the decision is replaced by choice 0 and what comes later is run again. Per trace: `greedy_reward`, expected.
    What the way of sampling gives takes their place.
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
        if name == "counterfactual_reward":
            return row(_reruns(world)[members], np.nan)
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
    """The traces of each batch as one graph, and what packs the decisions of its traces into its events."""
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
    """[N, M of the world] as [N + 1, M], the last row for a trace that is not there."""
    out = np.full((len(values) + 1, DECISIONS), fill, values.dtype)
    out[:-1, : values.shape[1]] = values
    return out


def _expected(lottery: tuple[tuple[float, float], ...]) -> float:
    return sum(p * reward for p, reward in lottery)


@functools.cache
def _templates(world: Micro) -> dict[str, np.ndarray]:
    """Fields of each trace by itself, [N + 1, X], ids counted from its own first; the last row is no trace."""
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
    """Evidence that follows from the state and the choice, [S, C]."""
    decisions = list(world.states.values())
    wrong = world.q + critic_error(world)
    past = np.array([sum(world.earned(h[: i + 1]) for i in range(len(h))) for h in world.states])

    def of_state(values: object, dtype: type = np.int32) -> np.ndarray:
        return np.broadcast_to(np.asarray(values, dtype)[:, None], world.q.shape)

    return {
        "value": of_state(world.v, np.float64),
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
        "env_step": of_state([len(h) for h in world.states]),
        "block": of_state(np.zeros(len(decisions))),
        "tokens": of_state(np.ones(len(decisions))),
    }


@functools.cache
def _reruns(world: Micro) -> np.ndarray:
    """Expected returns where a decision is replaced, [N + 1, M]."""
    out = np.full((len(world.ends) + 1, DECISIONS), np.nan)
    for trace, (end, _, _) in enumerate(world.ends):
        out[trace, : len(end)] = [_expected(world.rest((*end[:cut], 0))) for cut in range(len(end))]
    return out
