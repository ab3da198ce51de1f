"""Logs of a world of independent decisions, as arrays, for measuring signal to noise.

    R = Σ_t x_t + ε,    x_t = ±s with equal chances

A *full* log has every decision as an action. A *thin* log has one action for each agent, which stands for all of that
agent's decisions. Their sum is one binomial draw, and `count` is their number. A method that gives all actions of an
agent one number gives the same on a thin log as on the full one, at a cost that does not grow with T. A test compares
the two.

Every log is padded to `ROOM` events, agents and traces, so a method compiles once for all T.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from credit.bench.snr_theory import Setting
from graphs.event_graph import EventGraph, EventType
from graphs.padding import Sizes, pad, pad_array

__all__ = ["ROOM", "Log", "draw_log", "fitted", "plain_graph"]

ROOM = 1 << 15  # larger logs cost more memory a draw, smaller ones more calls


@dataclasses.dataclass(frozen=True)
class Log:
    """A batch of traces in groups of K, padded: E = A = T = `ROOM`.

    Attributes:
      graph: all events are actions; no edges.
      traces: how many are real.
      part: float32 [E], at the last action of each agent what the agent's part earned, noise included; else 0. These
        sum to the outcome.
      reward: float32 [T].
      count: [E], decisions that an action stands for; 0 in padding.
      signed: [E], Σ x_t / s over them.
    """

    graph: EventGraph
    traces: int
    part: np.ndarray
    reward: np.ndarray
    count: np.ndarray
    signed: np.ndarray


@functools.lru_cache(maxsize=4)
def plain_graph(traces: int, agents: int, actions: int, group: int) -> EventGraph:
    """Traces of `agents` agents, each of which acts `actions` times in a row; no edges."""
    events, instances = traces * agents * actions, traces * agents
    agent = np.repeat(np.arange(instances, dtype=np.int32), actions)
    names = np.tile(np.arange(agents, dtype=np.int32), traces)
    none = np.zeros(8, np.int32)
    graph = EventGraph(
        event_type=np.full(events, int(EventType.MESSAGE), np.int32),
        action_mask=np.ones(events, bool),
        event_mask=np.ones(events, bool),
        time=np.full(events, np.nan, np.float32),
        trace_ids=(agent // agents).astype(np.int32),
        agent_ids=agent,
        turn_ids=agent,
        senders=none,
        receivers=none,
        edge_type=none,
        edge_mask=none.astype(bool),
        agent_name_ids=names,
        agent_role_ids=names,
        agent_parent=np.arange(instances, dtype=np.int32),
        agent_trace=np.repeat(np.arange(traces, dtype=np.int32), agents),
        agent_mask=np.ones(instances, bool),
        group_ids=(np.arange(traces) // group).astype(np.int32),
        trace_mask=np.ones(traces, bool),
    )
    return pad(graph, Sizes(events=ROOM, edges=8, agents=ROOM, traces=ROOM))


def fitted(values: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    """Values of real events or traces, padded."""
    return pad_array(values.astype(dtype).ravel(), ROOM)


def draw_log(
    rng: np.random.Generator,
    w: Setting,
    length: int,
    traces: int,
    *,
    agents: int = 1,
    full: bool,
    slope: float | None = None,
) -> Log:
    """A log of `traces` traces of `length` decisions, equally many for each agent.

    With `slope` β the outcome is a success with probability σ(β Σ x_t), without noise of its own.
    """
    each = length // agents
    actions = each if full else 1
    signed: np.ndarray
    if full:
        signed = 2.0 * rng.integers(0, 2, (traces, agents, each), dtype=np.int8) - 1
    else:
        signed = 2.0 * rng.binomial(each, 0.5, (traces, agents, 1)) - each
    count = np.full(traces * agents * actions, each / actions)
    earned = w.signal * signed.sum(axis=2)
    if slope is None:
        earned = earned + w.noise / np.sqrt(agents) * rng.standard_normal((traces, agents))
        reward = earned.sum(axis=1)
    else:
        chance = 1 / (1 + np.exp(-slope * earned.sum(axis=1)))
        reward = (rng.random(traces) < chance).astype(np.float64)
        earned = np.concatenate([np.zeros((traces, agents - 1)), reward[:, None]], axis=1)
    part = np.zeros((traces, agents, actions))
    part[:, :, -1] = earned
    graph = plain_graph(traces, agents, actions, w.group)
    return Log(graph, traces, fitted(part), fitted(reward), pad_array(count, ROOM), pad_array(signed.ravel(), ROOM))
