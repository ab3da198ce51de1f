"""Shared baselines: every event of a trace gets the trace's own outcome, compared with other traces of its task.

The field says "GRPO" for at least seven functions. `grpo` without a prefix is the formula of the paper with every
constant an argument; what released trainers compute has their names, in `estimators.baselines.trainers`.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_reward, finish
from estimators.group import Singleton, group_relative, members, statistics
from estimators.options import checked_options
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, safe_sqrt

__all__ = [
    "dr_grpo",
    "grpo",
    "pass_at_k",
    "reinforce_batch",
    "remax",
    "rloo",
]


@checked_options
def grpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    eps: float | Array = 1e-6,
    ddof: int | Array = 1,
    singleton: Singleton = "refuse",
) -> Credit:
    """Group-relative advantage: the trace's return against its group's mean, divided by the group's spread.

    A_i = (R_i − μ) / (sd + eps), with R_i = reward + Σ event_reward, μ and sd over the n traces of the group (each
    trace once, however many events it has). Every action of the trace receives A_i. Biased for the policy gradient: the
    mean contains R_i (a factor (n − 1)/n), and dividing by sd weighs tasks by their spread. Invariant under shifting
    and, up to eps, under scaling the reward. Not a partition of the reward.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where it has none.
      event_reward: float [E], rewards at single events, or None.
      eps: added to the standard deviation.
      ddof: 1 for the unbiased variance, 0 for the population's.
      singleton: what a group of one gets: "refuse" (invalid), "zero" or "raw".

    Returns:
      `Credit` at level "trace", estimand "total".

    Reference: Shao et al. 2024, arXiv:2402.03300 (outcome supervision). The paper divides by the standard deviation
    without an eps; what released code adds is under that code's name.
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        baseline="mean",
        scale="std",
        eps=eps,
        ddof=ddof,
        singleton=singleton,
        source="grpo",
    )


@checked_options
def dr_grpo(
    graph: EventGraph, reward: Array, *, event_reward: Array | None = None, singleton: Singleton = "refuse"
) -> Credit:
    """GRPO without the division: A_i = R_i − μ.

    Equals (n − 1)/n times `rloo`, hence unbiased for the policy gradient up to that factor.

    Args and returns as in `grpo`. Reference: Liu et al. 2025, arXiv:2503.20783 ("GRPO done right").
    """
    return group_relative(
        graph, reward, event_reward=event_reward, baseline="mean", singleton=singleton, source="dr_grpo"
    )


@checked_options
def rloo(
    graph: EventGraph, reward: Array, *, event_reward: Array | None = None, singleton: Singleton = "refuse"
) -> Credit:
    """Leave-one-out baseline: the trace's return against the mean of the others of its group.

    A_i = R_i − (Σ_j R_j − R_i) / (n − 1). Unbiased for the policy gradient: the baseline does not depend on trace i.

    Args and returns as in `grpo`. Reference: Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740.

    Example:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.rloo(graph, reward).advantage).tolist()
      [1.0, -0.5, -0.5]
    """
    return group_relative(
        graph, reward, event_reward=event_reward, baseline="leave_one_out", singleton=singleton, source="rloo"
    )


@jax.jit
def remax(graph: EventGraph, reward: Array, *, greedy_reward: Array, event_reward: Array | None = None) -> Credit:
    """The trace's return minus the reward of a separate greedy run on the same task: A_i = R_i − R_greedy.

    Unbiased for the policy gradient, since the greedy run does not depend on the sampled one; needs no group.

    Args:
      greedy_reward: float [T], reward of the greedy run for each trace; NaN where there was none (those are invalid).
      graph, reward, event_reward: as in `grpo`.

    Reference: Li et al. 2023, arXiv:2310.10505; verl `compute_remax_outcome_advantage`, golden `verl_remax` (the
    token-level form is `estimators.tokens.rows.remax`).
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    greedy, there = check_reward(graph, greedy_reward)
    x, b = m.score[m.of_event], greedy[m.of_event]
    reason = jnp.where(there[m.of_event], Reason.VALID, Reason.NO_EVIDENCE)
    return finish(
        graph,
        credit=x,
        baseline=b,
        scale=jnp.ones_like(x),
        stderr=jnp.full_like(x, jnp.inf),
        reason=jnp.where(m.member_mask[m.of_event], reason, Reason.NO_REWARD),
        unit="trace",
        estimand="total",
        source="remax",
        centred=False,
        own_outcome=True,
    )


@checked_options
def reinforce_batch(
    graph: EventGraph, reward: Array, *, event_reward: Array | None = None, singleton: Singleton = "refuse"
) -> Credit:
    """One baseline for the whole batch: the trace's return against the mean of all other traces, whatever their task.

    A_i = R_i − (Σ_j R_j − R_i) / (N − 1) over the batch. Unbiased, but differences between tasks stay in it as noise.
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        baseline="leave_one_out",
        over="batch",
        singleton=singleton,
        source="reinforce_batch",
    )


@checked_options
@functools.partial(jax.jit, static_argnames=("singleton",))
def pass_at_k(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    eps: float | Array = 1e-6,
    ddof: int | Array = 1,
    singleton: Singleton = "refuse",
) -> Credit:
    """Only the best trace of a group is rewarded, by its lead over the second best: (R_max − R_second) / (sd + eps).

    The other traces of the group get 0, and so does everyone in a tie for the best. Not centred: rewards only.

    Args and returns as in `grpo`.
    Reference: verl `compute_grpo_passk_outcome_advantage`, golden `drmas_passk`. The released code writes the number to
    the first row of the best trace only, since it has dropped the others; here every action of that trace gets it.
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    num = m.score.shape[0]
    n, _, squares = statistics(m)
    deviation = safe_sqrt(safe_divide(squares, n - ddof)) + eps

    order = jnp.lexsort((-m.score, m.key, ~m.member_mask))  # members by group, the best first
    group, ranked = m.key[order], m.score[order]
    leads = jnp.concatenate([jnp.ones(1, bool), group[1:] != group[:-1]]) & m.member_mask[order]
    second = jnp.concatenate([ranked[1:], ranked[:1]])
    best = jnp.zeros(num, bool).at[order].set(leads)
    runner_up = jnp.zeros_like(m.score).at[order].set(jnp.where(leads & (n[group] > 1), second, ranked))

    key, mine = m.key[m.of_event], m.of_event
    x = m.score[mine]
    alone = n[key] < 2
    reason = jnp.where(m.member_mask[mine], Reason.VALID, Reason.NO_REWARD)
    subtracted = jnp.where(best[mine], runner_up[mine], x)
    if singleton == "refuse":
        reason = jnp.where(m.member_mask[mine] & alone, Reason.SINGLETON, reason)
    elif singleton == "raw":
        subtracted = jnp.where(alone, jnp.zeros_like(x), subtracted)
    elif singleton != "zero":
        raise ValueError(f"singleton is {singleton!r}; expected 'refuse', 'zero' or 'raw'")
    reason = jnp.where(m.member_mask[mine] & m.shared_mask[mine], Reason.SHARED_PREFIX, reason)
    scale = jnp.where(alone | (deviation[key] <= 0), jnp.ones_like(x), deviation[key])
    return finish(
        graph,
        credit=x,
        baseline=subtracted,
        scale=scale,
        stderr=jnp.full_like(x, jnp.inf),
        reason=reason,
        unit="trace",
        estimand="score",
        source="pass_at_k",
        centred=False,
        own_outcome=True,
    )
