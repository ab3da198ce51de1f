"""Difference rewards: the reward of a trace minus that of a re-run with one decision replaced."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, finish
from estimators.members import members
from estimators.options import checked_options
from graphs.event_graph import Array, EventGraph

__all__ = ["difference_reward"]


@checked_options
@jax.jit
def difference_reward(
    graph: EventGraph, reward: Array, *, counterfactual_reward: Array, event_reward: Array | None = None
) -> Credit:
    """The trace's return minus its return with this one decision replaced.

        A_e = R − R(e replaced by a fixed action)

    Unbiased for the policy gradient if the replacement does not depend on the choice (stay idle, say nothing) and the
    policy runs everything after it again. The second return is then a baseline: it depends on the events before e only.
    If later actions are kept, it depends on e through them, and the gradient is biased. Removing an agent from a
    finished transcript is an example. It is an effect against one alternative, not an increment: the numbers of a trace
    do not add up to anything, and an AND of three decisions pays the reward three times.

    Args:
      graph: uses the ids of traces and the masks.
      reward: float [T], the outcome of each trace in units of reward; NaN where unknown.
      counterfactual_reward: float [E], the return of the trace in which the event's decision is replaced, event rewards
        included, from one run or the mean of several; NaN where none was made.
      event_reward: float [E], added up in the return R. NaN counts as 0.

    Returns:
      `Credit` at level "event", estimand "effect"; `stderr` infinite, since single runs show no spread.

    Raises:
      CreditError: wrong shapes or dtypes.

    Reference: Wolpert and Tumer 2002 (difference rewards, the "wonderful life" utility). No code for LLM teams.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(group=["g"] * 8, trace=["t"] * 8, reward=[1.0] * 8, events=8)
      >>> without = np.array([0.25] + [np.nan] * 7, np.float32)  # one decision was replaced and the rest run again
      >>> result = credit.difference_reward(graph, reward, counterfactual_reward=without)
      >>> float(result.advantage[0]), result.valid[:2].tolist()
      (0.75, [True, False])
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    other, has_other = check_event_array(graph, "counterfactual_reward", counterfactual_reward)
    x = m.score[m.of_event]
    return finish(
        graph,
        credit=x,
        baseline=other.astype(x.dtype),
        scale=jnp.ones_like(x),
        stderr=jnp.full_like(x, jnp.inf),
        reason=jnp.where(
            m.member_mask[m.of_event], jnp.where(has_other, Reason.VALID, Reason.NO_EVIDENCE), Reason.NO_REWARD
        ),
        unit="event",
        estimand="effect",
        source="difference_reward",
        centred=False,
        own_outcome=True,
    )
