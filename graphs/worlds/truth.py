"""True increments of a world's events, by dynamic programming over the score."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from graphs.event_graph import Array
from graphs.worlds.team import Episodes, Layout, Outcome, Policy, decision_order, decisions_taken, log_entries

__all__ = ["Truth", "increments"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Truth:
    """True increments, in the order of the log: R = expected + Σ increments + outcome.

    Attributes:
      expected: float [n], V0 = E[R | task].
      increments: float [n, V], E[R | log through the event] - E[R | log before it]; exactly 0 where no policy chose.
      values: float [n, V], E[R | log before the event].
      outcome: float [n], R - E[R | whole log]: luck.
      event_mask: bool [n, V], True for the events that the trace has; they come first in each row.
    """

    expected: Array
    increments: Array
    values: Array
    outcome: Array
    event_mask: Array

    def flat(self, length: int | None = None) -> np.ndarray:
        """Increments of the real events in the order of a batch, float [E]; padded with 0 to `length` if given."""
        flat = np.asarray(self.increments)[np.asarray(self.event_mask)]
        return flat if length is None else np.pad(flat, (0, length - len(flat)))


@functools.partial(jax.jit, static_argnums=0)
def increments(layout: Layout, policy: Policy, outcome: Outcome, episodes: Episodes) -> Truth:
    """The truth about every trace, in JAX's default precision."""
    return jax.vmap(functools.partial(_truth, layout, policy, outcome, _expected(layout, policy, outcome)))(episodes)


def _expected(layout: Layout, policy: Policy, outcome: Outcome) -> jax.Array:
    """V0 of each task, float [K]: the mean over plans and team sizes of the value after the plan."""
    dtype = jnp.result_type(float)
    choices = ((0, policy.good.shape[0]), (0, 2), (1, layout.workers + 1))
    task, plan, size = jnp.meshgrid(*(jnp.arange(a, b, dtype=jnp.int32) for a, b in choices), indexing="ij")

    def after(task: Array, plan: Array, size: Array) -> jax.Array:
        taken = decisions_taken(layout, size).at[0].set(False)
        score = layout.weights[0] * plan - layout.worker_cost * size
        probability = jnp.where(taken, policy.good[task, plan], 0)
        value = _values(
            layout, outcome, probability, jnp.arange(layout.decisions, dtype=jnp.int32), jnp.zeros_like(taken), score
        )[0]
        p = policy.good[task, 0, 0]
        result: jax.Array = value * jnp.where(plan == 1, p, 1 - p) * policy.size[size - 1]
        return result

    terms = jax.vmap(jax.vmap(jax.vmap(after)))(task, plan, size)
    return jnp.sum(terms, axis=(1, 2)).astype(dtype)


def _values(layout: Layout, outcome: Outcome, probability: Array, order: Array, good: Array, start: Array) -> jax.Array:
    """E[R] before each decision and after the last, in `order`: float [S + 1].

    Backwards over the decisions, on the grid of all scores z: U_S(z) = outcome.mean(z) and
    U_i(z) = U_{i+1}(z) + p_i (U_{i+1}(z + w_i) - U_{i+1}(z)); the value before decision i is U_i at the score so far.
    In this form a decision of weight 0, or of probability 0, changes U by exactly nothing.

    Args:
      probability: float [S] by slot, 0 for decisions that are not taken.
      order: int [S], slots in log order.
      good: bool [S] by slot.
      start: score before the first decision.
    """
    low, high = layout.scores
    grid = jnp.arange(low, high + 1, dtype=jnp.int32)
    p, w = probability[order], jnp.asarray(layout.weights, jnp.int32)[order]
    gained = jnp.cumsum(jnp.where(good[order], w, 0), dtype=jnp.int32)
    score = start + jnp.concatenate([jnp.zeros(1, jnp.int32), gained])
    last = outcome.mean(grid).astype(jnp.result_type(float))

    def before(value: jax.Array, step: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        probability, weight, score = step
        # A score beyond the grid is clipped to it; none that the trace can still reach lies there.
        moved = value[jnp.clip(jnp.arange(len(grid), dtype=jnp.int32) + weight, 0, len(grid) - 1)]
        value = value + probability * (moved - value)
        return value, value[score - low]

    _, values = jax.lax.scan(before, last, (p, w, score[:-1]), reverse=True)
    return jnp.concatenate([values, last[score[-1:] - low]])


def _truth(layout: Layout, policy: Policy, outcome: Outcome, expected: Array, one: Episodes) -> Truth:
    order = decision_order(one)
    probability = jnp.where(one.active, policy.good[one.task, one.good[0].astype(jnp.int32)], 0)
    values = _values(layout, outcome, probability, order, one.good, -layout.worker_cost * one.size)
    # The plan also chose the team size, so before it the value is a mixture, not what the recursion over one team says.
    values = values.at[0].set(expected[one.task])
    by_slot = jnp.zeros(layout.decisions, values.dtype).at[order].set(jnp.diff(values))
    slots, _, mask = log_entries(layout, one)
    decision = jnp.array([s.decision for s in layout.slots])[slots]
    chosen = mask & (decision >= 0)
    count = chosen.astype(jnp.int32)
    done = jnp.cumsum(count, dtype=jnp.int32) - count
    return Truth(
        expected=values[0],
        increments=jnp.where(chosen, by_slot[decision], 0),
        values=jnp.where(mask, values[done], 0),
        outcome=one.reward.astype(values.dtype) - values[-1],
        event_mask=mask,
    )
