"""A baseline that follows the reward over time: an exponential moving average of the traces that came before."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, finish
from estimators.group import members
from graphs.event_graph import Array, EventGraph

__all__ = ["moving_average", "moving_average_state"]


@jax.jit
def moving_average(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    decay: float | Array = 0.95,
    initial: float | Array = 0.0,
) -> Credit:
    """The trace's return minus the moving average of the returns of the traces before it, in the order of the batch.

    b_0 = initial, b_{i+1} = decay b_i + (1 − decay) R_i, A_i = R_i − b_i. Unbiased for the policy gradient, since b_i
    depends on earlier traces only; needs no group. Its scope is the sequence: the order of traces matters, so log them
    in order of completion. Traces without reward are passed over.

    Args:
      decay: how much of the old average stays, in [0, 1].
      initial: b_0, the state that `moving_average_state` returned for the batch before.
      graph, reward, event_reward: as in `estimators.grpo`.

    Returns:
      `Credit` at level "trace", estimand "total"; `stderr` is infinite, since the baseline is no mean of a group.
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    before, _ = _averages(m.score, m.there, decay, initial)
    x, b = m.score[m.of_event], before[m.of_event]
    return finish(
        graph,
        credit=x,
        baseline=b,
        scale=jnp.ones_like(x),
        stderr=jnp.full_like(x, jnp.inf),
        reason=jnp.where(m.there[m.of_event], Reason.VALID, Reason.NO_REWARD),
        unit="trace",
        estimand="total",
        source="moving_average",
        centred=False,
        own_outcome=True,
    )


@jax.jit
def moving_average_state(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    decay: float | Array = 0.95,
    initial: float | Array = 0.0,
) -> jax.Array:
    """The moving average after the last trace of the batch: `initial` for the next one."""
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    return _averages(m.score, m.there, decay, initial)[1]


def _averages(
    score: jax.Array, there: jax.Array, decay: float | Array, initial: float | Array
) -> tuple[jax.Array, jax.Array]:
    """Average before each trace, and after the last: a linear recurrence, as an associative scan."""
    factor = jnp.where(there, jnp.asarray(decay, score.dtype), jnp.ones_like(score))
    addend = jnp.where(there, (1 - jnp.asarray(decay, score.dtype)) * score, jnp.zeros_like(score))

    def compose(first: tuple[jax.Array, jax.Array], second: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return first[0] * second[0], second[0] * first[1] + second[1]

    slope, offset = jax.lax.associative_scan(compose, (factor, addend))
    start = jnp.asarray(initial, score.dtype)
    after = slope * start + offset
    return jnp.concatenate([start[None], after[:-1]]), after[-1]
