"""Traces of a team under its policy, as an event graph, with their exact values.

Legend: n traces, K kinds, D decisions, C choices, R decisive decisions, E = n D events.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.training.learning_tasks import LearningTask
from graphs.event_graph import EventGraph, EventType
from graphs.segment import computed_once

__all__ = [
    "BERNOULLI",
    "Luck",
    "Rollout",
    "decision_graph",
    "draw_luck",
    "draw_rewards",
    "draw_rollout",
    "drawn_outcome",
    "exact_return",
    "prefix_values",
]

BERNOULLI = -1.0
"""A `noise` that stands for rewards of 0 or 1, so that both kinds of rewards share a compiled function."""


class Rollout(NamedTuple):
    """Traces of one step, with the true values of their decisions.

    Attributes:
      task: the task that they belong to.
      graph: the batch: E events, the taken ones first. Agent 0 decides, the others send messages.
      reward: float32 [n].
      order: int32 [E], trace × D + decision of each event; None where all decisions are taken: event e is number e.
      kind: int32 [n].
      choice: int32 [n, D], also at decisions that were not reached.
      taken: bool [n, D], decisions that were reached.
      logits: float32 [K, D, C], of the policy that acted.
      value: float32 [E], the exact expected reward before each event.
      increments: float32 [E], what each event's choice changed in it, exactly; centred under the policy.
    """

    task: LearningTask
    graph: EventGraph
    reward: jax.Array
    order: jax.Array | None
    kind: jax.Array
    choice: jax.Array
    taken: jax.Array
    logits: jax.Array
    value: jax.Array
    increments: jax.Array

    def of_events(self, table: jax.Array) -> jax.Array:
        """From an array over traces and decisions, [n, D, ...], to one over events, [E, ...]."""
        flat = table.reshape(-1, *table.shape[2:])
        return flat if self.order is None else flat[self.order]

    def of_decisions(self, events: jax.Array) -> jax.Array:
        """From an array over events, [E], to one over traces and decisions, [n, D]; 0 at decisions not reached."""
        if self.order is not None:
            events = jnp.zeros(self.taken.size, events.dtype).at[self.order].set(events)
        return jnp.where(self.taken, events.reshape(self.taken.shape), 0)


def exact_return(task: LearningTask, logits: jax.Array) -> jax.Array:
    """J, the expected return of a policy, by summing over all choices; differentiable.

    Examples:
      >>> import jax.numpy as jnp
      >>> from credit.bench.training.learning_tasks import learning_task
      >>> float(exact_return(learning_task("pivotal"), jnp.zeros((1, 12, 2))))
      0.50

    Args:
      task: K kinds, equally likely.
      logits: float [K, D, C].

    Returns:
      float [].
    """
    return prefix_values(task, logits)[0].mean()


def prefix_values(task: LearningTask, logits: jax.Array) -> list[jax.Array]:
    """Expected reward given the kind and the first r decisive choices, for r from 0 to R: [K], [K, C], [K, C, C] …

    Args:
      task: K kinds.
      logits: float [K, D, C].
    """
    policy = jax.nn.softmax(logits)
    values = [jnp.asarray(task.reward, jnp.float32)]
    for r in reversed(range(len(task.decisive))):
        chances = policy[:, task.decisive[r]]
        chances = chances.reshape(task.kinds, *(1,) * r, task.choices)
        values.append(jnp.sum(values[-1] * chances, axis=-1))
    return values[::-1]


def draw_rewards(task: LearningTask, kind: jax.Array, choice: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Run the team with these choices: rewards [...] and the decisions that are reached [..., D].

    Args:
      task: K kinds.
      kind: int [...].
      choice: int [..., D].
      key: draws what is random in the reward.
    """
    return drawn_outcome(task, kind, tuple(choice[..., d] for d in task.decisive), draw_luck(key, kind.shape))


class Luck(NamedTuple):
    """The random part of the reward of each run.

    Attributes:
      uniform: float32, for rewards of 0 or 1.
      normal: float32, of the same shape, for other rewards.
      radius: float32, the length of three further normal numbers: normal over it is Student's t with three degrees of
        freedom, and variance 1.
    """

    uniform: jax.Array
    normal: jax.Array
    radius: jax.Array


def draw_luck(key: jax.Array, shape: tuple[int, ...]) -> Luck:
    """The luck of runs.

    Args:
      key: of the luck.
      shape: of the runs.
    """
    success, normal = jax.random.split(key)
    further = jax.random.normal(jax.random.fold_in(normal, 1), (3, *shape))
    radius = jnp.sqrt(jnp.sum(further**2, axis=0))
    return Luck(jax.random.uniform(success, shape), jax.random.normal(normal, shape), radius)


def drawn_outcome(
    task: LearningTask, kind: jax.Array, choices: tuple[jax.Array, ...], luck: Luck
) -> tuple[jax.Array, jax.Array]:
    """The rewards of runs [...] and the decisions that they reach [..., D].

    Args:
      task: K kinds.
      kind: int [...].
      choices: R arrays, int [...], at the decisive decisions.
      luck: of each run.
    """
    expected = jnp.asarray(task.reward, jnp.float32)[(kind, *choices)]
    everything = jnp.ones((*kind.shape, task.decisions), bool)
    taken = everything if task.taken is None else jnp.asarray(task.taken)[choices]
    noise = BERNOULLI if task.noise is None else task.noise
    binary = (luck.uniform < expected).astype(jnp.float32)
    spread = luck.normal / luck.radius if task.heavy else luck.normal
    return jnp.where(jnp.less(noise, 0), binary, expected + noise * spread), taken


def draw_rollout(task: LearningTask, logits: jax.Array, groups: int, group_size: int, key: jax.Array) -> Rollout:
    """Draw the traces of one step; the kind of group g is g modulo K.

    Args:
      task: K kinds.
      logits: float32 [K, D, C].
      groups: of the step.
      group_size: traces of a group.
      key: of the choices and the luck.
    """
    choose, luck = jax.random.split(key)
    kind = jnp.repeat(jnp.arange(groups, dtype=jnp.int32) % task.kinds, group_size)
    choice = jax.random.categorical(choose, logits[kind])
    reward, taken = draw_rewards(task, kind, choice, luck)
    reward = computed_once(reward)  # or XLA draws it anew at each event
    decisive = tuple(choice[:, d] for d in task.decisive)
    values = prefix_values(task, logits)
    along = jnp.stack([v[(kind, *decisive[:r])] for r, v in enumerate(values)], axis=1)  # [n, R + 1]
    before = np.searchsorted(task.decisive, np.arange(task.decisions))  # decisive decisions before each
    changes = np.isin(np.arange(task.decisions), task.decisive).astype(np.int64)
    order = None if task.taken is None else jnp.argsort(~taken.ravel(), stable=True)
    value = _columns_at(along, before)
    increments = _columns_at(along, before + changes) - value

    def of_events(table: jax.Array) -> jax.Array:
        return table.ravel() if order is None else table.ravel()[order]

    graph = decision_graph(task.agents, groups, group_size, of_events(taken), order)
    return Rollout(task, graph, reward, order, kind, choice, taken, logits, of_events(value), of_events(increments))


def _columns_at(table: jax.Array, columns: np.ndarray) -> jax.Array:
    """`table[:, columns]`, by a product of zeros and ones: on a CPU, XLA looks up numbers one at a time."""
    chosen = np.arange(table.shape[1])[:, None] == columns[None]
    return jnp.matmul(table, chosen.astype(np.float32), precision="highest")


def decision_graph(
    agents: tuple[int, ...], groups: int, group_size: int, real: jax.Array, order: jax.Array | None
) -> EventGraph:
    """The batch whose events are the decisions taken, in order; no edges.

    Args:
      agents: D numbers, the agent that takes each decision.
      groups: of the step.
      group_size: traces of a group.
      real: bool [E], False at padding.
      order: int [E], trace × D + decision of each event; None where all are taken.
    """
    n, size, team = groups * group_size, len(agents), max(agents) + 1
    number_of_event = jnp.arange(n * size) if order is None else order
    trace, decision = number_of_event // size, number_of_event % size
    agent = trace * team + jnp.asarray(agents)[decision]
    number = np.arange(n * team, dtype=np.int32)
    none = np.zeros(0, np.int32)
    leads = np.asarray(agents) == 0
    kinds_of_event = jnp.asarray(np.where(leads, int(EventType.ORCHESTRATOR_DECISION), int(EventType.MESSAGE)))

    def fit(values: jax.Array) -> jax.Array:
        return jnp.where(real, values, 0).astype(jnp.int32)

    return EventGraph(
        event_type=fit(kinds_of_event[decision]),
        action_mask=real,
        event_mask=real,
        time=jnp.full(real.shape, jnp.nan, jnp.float32),
        trace_ids=fit(trace),
        agent_ids=fit(agent),
        turn_ids=fit(jnp.arange(len(real))),
        senders=none,
        receivers=none,
        edge_type=none,
        edge_mask=np.zeros(0, bool),
        agent_name_ids=number % team,
        agent_role_ids=number % team,
        agent_parent=number - number % team,
        agent_trace=number // team,
        agent_mask=np.ones(n * team, bool),
        group_ids=np.repeat(np.arange(groups, dtype=np.int32), group_size),
        trace_mask=np.ones(n, bool),
    )
