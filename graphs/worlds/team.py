"""The team of a world: its outcome, its decisions and their weights, its policy, and draws from it.

Sampling, truth and logs share these definitions. Legend: n traces, K tasks, N workers at most, C calls
a worker, S = N C + 3 decisions at most, V log entries at most.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from graphs.event_graph import Array, EventType

__all__ = [
    "Additive",
    "Bernoulli",
    "Episodes",
    "HeavyTailed",
    "Layout",
    "Outcome",
    "Pivotal",
    "Policy",
    "Slot",
    "decision_order",
    "decisions_taken",
    "final_score",
    "log_entries",
    "log_order",
]


class Additive(NamedTuple):
    """The outcome is the score times `scale`, plus Gaussian noise: luck that no event of the log explains."""

    scale: float = 1.0
    noise: float = 1.0

    def mean(self, score: Array) -> jax.Array:
        """Expected outcome given the final score."""
        return jnp.asarray(self.scale * score.astype(float))

    def draw(self, key: jax.Array, score: Array) -> jax.Array:
        """An outcome given the final score, float32."""
        noise = self.noise * jax.random.normal(key, dtype=jnp.float32)
        return (self.mean(score).astype(noise.dtype) + noise).astype(jnp.float32)


class HeavyTailed(Additive):
    """The same with noise of Student's t with three degrees of freedom: a variance of 3 `noise`², no fourth moment."""

    __slots__ = ()

    def draw(self, key: jax.Array, score: Array) -> jax.Array:
        """An outcome given the final score, float32."""
        noise = self.noise * jax.random.t(key, 3.0, dtype=jnp.float32)
        return (self.mean(score).astype(noise.dtype) + noise).astype(jnp.float32)


class Bernoulli(NamedTuple):
    """The outcome is 1 with probability sigmoid(slope (score − centre)), else 0."""

    slope: float = 0.8
    centre: float = 5.0

    def mean(self, score: Array) -> jax.Array:
        """Probability of success given the final score."""
        return jax.nn.sigmoid(self.slope * (score.astype(float) - self.centre))

    def draw(self, key: jax.Array, score: Array) -> jax.Array:
        """An outcome given the final score, float32."""
        return _coin(key, self.mean(score))


class Pivotal(NamedTuple):
    """One message decides: the outcome is 1 with probability `good` or `bad`, as the first worker's answer was.

    All other decisions have weight 0; they matter only as far as the pivotal call's probability depends on them.
    """

    good: float = 1.0
    bad: float = 0.0

    def mean(self, score: Array) -> jax.Array:
        """Probability of success given the final score, which is 1 or 0."""
        return jnp.where(score > 0, self.good, self.bad)

    def draw(self, key: jax.Array, score: Array) -> jax.Array:
        """An outcome given the final score, float32."""
        return _coin(key, self.mean(score))


Outcome = Additive | Bernoulli | Pivotal

_LATEST = 2**31 - 1  # a tick after all others


def _coin(key: jax.Array, probability: Array) -> jax.Array:
    result: jax.Array = (jax.random.uniform(key, dtype=jnp.float32) < jnp.float32(probability)).astype(jnp.float32)
    return result


class Slot(NamedTuple):
    """An entry that a log can have: who, what, when relative to a decision, and which decision it is, if any.

    `worker` is -1 for the lead. The entry is in the log if the decision `owner` was taken (and, for a message, if one
    was sent), at the tick of the decision `anchor` plus `offset`. `decision` is -1 for what is not a decision.
    """

    type: EventType
    worker: int
    owner: int
    anchor: int
    offset: int
    decision: int


@dataclasses.dataclass(frozen=True)
class Layout:
    """The fixed parts of a team; hashable, so that kernels compile once for each.

    Decisions have slots: 0 is the plan, 1 + w C + c is call c of worker w, S - 2 the aggregation, S - 1 the stop.

    Attributes:
      workers: N, the largest team.
      calls: C, calls of each worker; the last one is its answer.
      group_size: traces of one task that form a group.
      weights: what each decision adds to the score if it is good, [S].
      worker_cost: what each worker takes from the score.
    """

    workers: int
    calls: int
    group_size: int
    weights: tuple[int, ...]
    worker_cost: int

    @property
    def decisions(self) -> int:
        """S."""
        return self.workers * self.calls + 3

    @property
    def unit(self) -> int:
        """Ticks in a unit of time: agents have different remainders, so no two entries share a tick."""
        return 1 << self.workers.bit_length()

    @property
    def scores(self) -> tuple[int, int]:
        """Smallest and largest score that any trace can reach or pass through."""
        spent = (0, -self.worker_cost * self.workers)
        return min(spent) + sum(min(w, 0) for w in self.weights), max(spent) + sum(max(w, 0) for w in self.weights)

    def call(self, worker: int, call: int) -> int:
        """The slot of a worker's call."""
        return 1 + worker * self.calls + call

    @functools.cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Every entry that a log can have, V of them."""
        return tuple(self._slots())

    def _slots(self) -> Iterator[Slot]:
        yield Slot(EventType.ORCHESTRATOR_DECISION, -1, 0, 0, 0, 0)
        for w in range(self.workers):
            yield Slot(EventType.SPAWN, -1, self.call(w, 0), 0, (1 + w) * self.unit, -1)
        for w in range(self.workers):
            for c in range(self.calls):
                own = self.call(w, c)
                yield Slot(EventType.MESSAGE, w, own, own, 0, own)
                if c < self.calls - 1:
                    yield Slot(EventType.MESSAGE, w, own, own, self.unit, -1)
                    yield Slot(EventType.TOOL_CALL, w, own, own, 2 * self.unit, -1)
                    yield Slot(EventType.TOOL_RESULT, w, own, own + 1, -self.unit, -1)
            yield Slot(EventType.RETURN, w, own, own, self.unit, -1)
        for kind, own in ((EventType.AGGREGATE, self.decisions - 2), (EventType.STOP, self.decisions - 1)):
            yield Slot(kind, -1, own, own, 0, own)


class Policy(NamedTuple):
    """Probabilities of the team's choices. `good` at slot 0 does not depend on the plan, being the plan's own.

    Attributes:
      size: float [N], of spawning 1 to N workers.
      good: float [K, 2, S], of a good decision, given the task and whether the plan was bad (0) or good (1).
      chatter: probability that a call which is not the last sends a message to another worker.
    """

    size: Array
    good: Array
    chatter: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Episodes:
    """The draws: one row a trace.

    Attributes:
      trace, group, task: int32 [n]; trace i belongs to group i // group_size, which has task group % K.
      size: int32 [n], workers spawned.
      good: bool [n, S], quality of each decision; False where it was not taken.
      active: bool [n, S], which decisions were taken.
      tick: int32 [n, S], when; distinct among those taken.
      recipient: int32 [n, S], worker that the call sent a message to; -1 for none.
      tokens: int32 [n, S], tokens generated.
      score: int32 [n], the final score.
      reward: float32 [n], the outcome R.
      greedy_reward: float32 [n], outcome of a run of the group's task in which every choice was the likeliest.
    """

    trace: Array
    group: Array
    task: Array
    size: Array
    good: Array
    active: Array
    tick: Array
    recipient: Array
    tokens: Array
    score: Array
    reward: Array
    greedy_reward: Array


def decisions_taken(layout: Layout, size: Array) -> jax.Array:
    """Decisions of a team of `size` workers: bool [S]."""
    worker = (np.arange(layout.decisions, dtype=np.int32) - 1) // layout.calls
    worker[[0, -2, -1]] = -1
    result: jax.Array = jnp.asarray(worker) < size
    return result


def final_score(layout: Layout, size: Array, good: Array) -> jax.Array:
    """The score of one trace: the weights of its good decisions, less what its workers cost; int32 []."""
    weights = jnp.asarray(layout.weights, jnp.int32)
    result: jax.Array = jnp.sum(jnp.where(good, weights, 0), dtype=jnp.int32) - layout.worker_cost * size
    return result


def decision_order(one: Episodes) -> jax.Array:
    """Slots of one trace's decisions in log order, int32 [S]; those not taken come last."""
    return jnp.argsort(jnp.where(one.active, one.tick, _LATEST)).astype(jnp.int32)


@functools.partial(jax.jit, static_argnums=0)
def log_order(layout: Layout, episodes: Episodes) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Log entries of every trace in order: slot, tick and mask, each [n, V]; those it has come first."""
    return jax.vmap(functools.partial(log_entries, layout))(episodes)


def log_entries(layout: Layout, one: Episodes) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Log entries of one trace in order: slot, tick and mask, each [V]."""
    owner, anchor, offset = (jnp.array([getattr(s, f) for s in layout.slots]) for f in ("owner", "anchor", "offset"))
    is_message = jnp.array([s.type == EventType.MESSAGE and s.decision < 0 for s in layout.slots])
    entry_mask = one.active[owner] & (~is_message | (one.recipient[owner] >= 0))
    tick = one.tick[anchor] + offset.astype(jnp.int32)
    order = jnp.argsort(jnp.where(entry_mask, tick, _LATEST)).astype(jnp.int32)
    return order, tick[order], entry_mask[order]
