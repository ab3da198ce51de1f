"""Process marks: a judge's verdict on single actions, beside the outcome of the whole."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from estimators.base import Credit, check_event_array, finish
from estimators.group import group_relative
from estimators.options import checked_options
from graphs.event_graph import Array, EventGraph

__all__ = ["foldgrpo"]


@checked_options
@jax.jit
def foldgrpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    low: float | Array = 0.0,
    high: float | Array = 1.0,
    eps: float | Array = 1e-6,
    ddof: int | Array = 1,
) -> Credit:
    """FoldGRPO (Context-Folding): the outcome, moved by the action's own mark, against the group's outcomes.

    A = (clip(R_i + q, low, high) − μ) / (sd + eps) at an action with mark q, and (R_i − μ) / (sd + eps) at one without;
    μ and sd are over the outcomes R of the group's traces, each once. A mark can take an action down to a failure or up
    to a success, never beyond. Marks enter no statistic, so they are no part of a return: they are not summed.

    Args:
      graph: the batch.
      reward: float [T], the outcome, between `low` and `high`; NaN where there is none.
      event_reward: float [E], the marks: −1 at the branch that left its scope, say; 0 or NaN where nothing was judged.
      low, high: the range of outcomes.
      eps, ddof: as in `estimators.grpo`. A group of one is refused.

    Returns:
      `Credit` at level "event", estimand "score"; `stderr` is that of the mean.

    Reference: Context-Folding, as its formula is quoted in a pull request of SkyRL; golden `foldgrpo_fork`, output
    `paper_formula_clip(R+Q,0,1)_example_NOT_from_code`. Another form circulates as code:
    `estimators.baselines.released.foldgrpo_fork`.
    """
    plain = group_relative(graph, reward, scale="std", eps=eps, ddof=ddof, singleton="refuse", source="foldgrpo")
    amount = plain.credit
    if event_reward is not None:
        mark = check_event_array(graph, "event_reward", event_reward)[0].astype(amount.dtype)
        amount = jnp.where(jnp.abs(mark) > 0, jnp.clip(amount + mark, low, high), amount)
    return finish(
        graph,
        credit=amount,
        baseline=plain.baseline,
        scale=plain.scale,
        stderr=plain.stderr,
        reason=plain.reason,
        unit="event",
        estimand="score",
        source="foldgrpo",
        centred=False,
        own_outcome=True,
    )
