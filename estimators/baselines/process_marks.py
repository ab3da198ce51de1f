"""Process marks: a judge's verdict on single actions, beside the outcome of the whole."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.group import beyond_members, group_relative
from estimators.members import members, statistics
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

        A = (clip(R_i + q, low, high) − μ) / (sd + eps)        at an action with mark q
        A = (R_i − μ) / (sd + eps)                             at one without

    μ and sd are over the outcomes R of the group's traces, each once. A mark can take an action down to a failure or up
    to a success, never beyond. Marks enter no statistic, so they are no part of a return and are not summed. Biased for
    the policy gradient. Replays of one trace count as one sample, and traces without an independent one are refused
    (`estimators.clusters`).

    With n traces in the group, no |A| exceeds √n. Marks are not among the numbers that sd is taken from, so a spread
    near 0 would give mark / eps: a marked action whose |A| would exceed √n is refused (NO_DIVISOR). With outcomes 0 and
    1 that both occur, low 0 and high 1, none is refused. The refusal looks at outcomes, so answers are a selection. In
    five small worlds with two and three traces a group, 61 to 92 % of decisions are answered, and the bias of their
    gradient is 0.09 to 4.2 of the exact one's length, where that of `grpo`, which refuses nothing, is 0.15 to 2.6
    (docs/bias.md).

    Args:
      graph: the batch.
      reward: float [T], the outcome, between `low` and `high`; NaN where a trace has none.
      event_reward: float [E], the marks q, such as −1 at a branch that left its scope; 0 where nothing was judged.
        NaN counts as 0.
      low, high: the range of outcomes.
      eps: added to the standard deviation.
      ddof: 1 divides the squares by n − 1, 0 by n. A group of one is refused.

    Returns:
      `Credit` at level "event", estimand "score"; `stderr` is that of the mean.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Context-Folding, as its formula is quoted in a pull request of SkyRL; golden `foldgrpo_fork`, output
    `paper_formula_clip(R+Q,0,1)_example_NOT_from_code`. Another form circulates as code:
    `estimators.baselines.released.foldgrpo_fork`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "c"], reward=[1.0, 1.0, 0.0, 0.0], event_reward=[0, -1, 0, 0])
      >>> rows.gather(credit.foldgrpo(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [1.1547, -0.5773, -0.5773, -0.5773]
    """
    reward = jnp.where(check_reward(graph, reward, event_reward)[1], reward, jnp.nan)
    plain = group_relative(graph, reward, scale="std", eps=eps, ddof=ddof, singleton="refuse", source="foldgrpo")
    amount, reason = plain.credit, plain.reason
    if event_reward is not None:
        mark = check_event_array(graph, "event_reward", event_reward)[0].astype(amount.dtype)
        marked = jnp.abs(mark) > 0
        amount = jnp.where(marked, jnp.clip(amount + mark, low, high), amount)
        m = members(graph, reward, None, by=None, population="trace", aggregate="sum")
        n = statistics(m)[0][m.key[m.of_event]]
        beyond = beyond_members(m, n, amount - plain.baseline, plain.scale)
        reason = jnp.where(marked & plain.valid & beyond, Reason.NO_DIVISOR, reason)
    return finish(
        graph,
        credit=amount,
        baseline=plain.baseline,
        scale=plain.scale,
        stderr=plain.stderr,
        reason=reason,
        unit="event",
        estimand="score",
        source="foldgrpo",
        centred=False,
        own_outcome=True,
    )
