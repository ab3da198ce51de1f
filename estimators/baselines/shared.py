"""Shared baselines: every event of a trace gets the trace's own outcome, compared with other traces of its task.

The field says "GRPO" for at least seven functions. `grpo` without a prefix is the formula of the paper with every
constant an argument; what released trainers compute has their names, in `estimators.baselines.trainers`.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_reward, finish
from estimators.group import Filters, Singleton, group_relative, settle_alone
from estimators.members import Population, members, statistics
from estimators.options import checked_options
from graphs.event_graph import Array, EventGraph
from graphs.keys import By
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
    agent_reward: Array | None = None,
    by: By = None,
    population: Population = "trace",
    eps: float | Array = 1e-6,
    ddof: int | Array = 1,
    singleton: Singleton = "refuse",
    filters: Filters = "none",
) -> Credit:
    """Group-relative advantage: the trace's return against its group's mean, divided by the group's spread.

        A_i = (R_i − μ) / (sd + eps)

    R_i = reward + Σ event_reward is the return of trace i; μ and sd are the mean and standard deviation over the n
    traces of its group, each trace once. Every action of the trace gets A_i. Biased for the policy gradient: the mean
    contains R_i, which shrinks the gradient by (n − 1)/n, and the division weighs groups by their spread. Unchanged
    when the reward is shifted and, up to eps, when it is scaled. No partition of the reward. Replays of one trace count
    as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With n traces in the group, no |A| exceeds (n − 1)/√n at ddof 1, or √(n − 1) at ddof 0, however little the rewards
    differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      agent_reward: float [E], the outcome of each agent instance's own trace, at one of its events or more, NaN
        elsewhere. For populations "agent" and "row". An agent's outcome is its trace's `reward` plus its
        `agent_reward`; who lacks one has none (`estimators.members.agent_outcomes`). Its return adds the `event_reward`
        of its events. Without `agent_reward` it adds those of all events of the trace.
      by: with whom a trace is compared at each action: names of `graphs.keys.PARTS` by commas or in a tuple, int arrays
        [E] among them. By default with the traces of its task. docs/bias.md says which keys bias the gradient. A
        caller's `jit` keeps 32 bits of an integer: wider ids, such as hashes, go through `graphs.keys.key_of` before.
      population: "trace", a trace is one sample of each of its keys; "agent", each agent instance is; "row", each
        action is, with the outcome plus its own event reward as its score.
      eps: added to the standard deviation, in units of reward.
      ddof: 1 divides the squares by n − 1, 0 by n.
      singleton: what a group of one trace gets: "refuse" makes it invalid, "zero" gives 0, "raw" subtracts nothing.
      filters: "equal" leaves out groups in which all scores are equal (DAPO's filter); "none" keeps them.

    Returns:
      `Credit` at level "trace", estimand "total"; at the level that has one key, estimand "scale", if that is finer.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Shao et al. 2024, arXiv:2402.03300 (outcome supervision). The paper divides by the standard deviation
    without an eps; what released code adds is under that code's name (`verl_grpo`, `trl_grpo`, …).

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.grpo(graph, reward).advantage).tolist()
      [1.1547, -0.5773, -0.5773]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        agent_reward=agent_reward,
        baseline="mean",
        scale="std",
        by=by,
        population=population,
        aggregate="return",
        eps=eps,
        ddof=ddof,
        singleton=singleton,
        filters=filters,
        source="grpo",
    )


@checked_options
def dr_grpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    agent_reward: Array | None = None,
    by: By = None,
    population: Population = "trace",
    singleton: Singleton = "refuse",
    filters: Filters = "none",
) -> Credit:
    """GRPO without the division: the trace's return minus its group's mean.

        A_i = R_i − μ

    R_i = reward + Σ event_reward, μ the mean over the n traces of the group. Equal to (n − 1)/n times `rloo`, so the
    policy gradient is unbiased up to that factor. The paper also removes the division of the loss by the length of a
    trace: that part is in your loss. No partition of the reward. Replays of one trace count as one sample,
    and traces without an independent one are refused (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      agent_reward: float [E], the outcome of each agent instance's own trace, at one of its events or more, NaN
        elsewhere. For populations "agent" and "row". An agent's outcome is its trace's `reward` plus its
        `agent_reward`; who lacks one has none (`estimators.members.agent_outcomes`). Its return adds the `event_reward`
        of its events. Without `agent_reward` it adds those of all events of the trace.
      by: with whom a trace is compared at each action: names of `graphs.keys.PARTS` by commas or in a tuple, int arrays
        [E] among them. By default with the traces of its task. docs/bias.md says which keys bias the gradient. A
        caller's `jit` keeps 32 bits of an integer: wider ids, such as hashes, go through `graphs.keys.key_of` before.
      population: "trace", a trace is one sample of each of its keys; "agent", each agent instance is; "row", each
        action is, with the outcome plus its own event reward as its score.
      singleton: what a group of one trace gets: "refuse" makes it invalid, "zero" gives 0, "raw" subtracts nothing.
      filters: "equal" leaves out groups in which all scores are equal (DAPO's filter); "none" keeps them.

    Returns:
      `Credit` at level "trace", estimand "total", scale 1.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Liu et al. 2025, arXiv:2503.20783 ("GRPO done right").

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.dr_grpo(graph, reward).advantage).tolist()
      [0.667, -0.333, -0.333]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        agent_reward=agent_reward,
        baseline="mean",
        by=by,
        population=population,
        aggregate="return",
        singleton=singleton,
        filters=filters,
        source="dr_grpo",
    )


@checked_options
def rloo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    agent_reward: Array | None = None,
    by: By = None,
    population: Population = "trace",
    singleton: Singleton = "refuse",
    filters: Filters = "none",
) -> Credit:
    """Leave-one-out baseline: the trace's return minus the mean return of the other traces of its group.

        A_i = R_i − (Σ_j R_j − R_i) / (n − 1)

    R_i = reward + Σ event_reward is the return of trace i, and j runs over the n traces of its group that have a reward
    and an action. Every action of the trace gets A_i. Unbiased for the policy gradient, since the baseline does not
    depend on trace i. No partition of the reward. With replays the baseline is the mean over the other clusters of the
    group, each weighing as much as one trace, and a trace without an independent one is refused
    (`estimators.clusters`). Replays that stand under another task than their trace bias it (docs/bias.md). The 0 that
    `singleton="zero"` gives to a group of one is biased.

    Args:
      graph: the batch, of `credit.read` or `credit.from_columns`, padded to E events and T traces.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      agent_reward: float [E], the outcome of each agent instance's own trace, at one of its events or more, NaN
        elsewhere. For populations "agent" and "row". An agent's outcome is its trace's `reward` plus its
        `agent_reward`; who lacks one has none (`estimators.members.agent_outcomes`). Its return adds the `event_reward`
        of its events. Without `agent_reward` it adds those of all events of the trace.
      by: with whom a trace is compared at each action: names of `graphs.keys.PARTS` by commas or in a tuple, int arrays
        [E] among them. By default with the traces of its task. docs/bias.md says which keys bias the gradient. A
        caller's `jit` keeps 32 bits of an integer: wider ids, such as hashes, go through `graphs.keys.key_of` before.
      population: "trace", a trace is one sample of each of its keys; "agent", each agent instance is; "row", each
        action is, with the outcome plus its own event reward as its score.
      singleton: what a group of one trace gets: "refuse" makes it invalid, "zero" gives 0, "raw" subtracts nothing.
      filters: "equal" leaves out groups in which all scores are equal (DAPO's filter); "none" keeps them.

    Returns:
      `Credit` [E] at level "trace", estimand "total": `credit` is R_i, `baseline` the mean, `scale` 1, and `stderr` the
      spread of the other returns over √(n − 1), infinite for two traces. `valid` is False where `reason` says why.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Kool, van Hoof and Welling 2019, "Buy 4 REINFORCE samples, get a baseline for free!"; Ahmadian et al.
    2024, arXiv:2402.14740.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.rloo(graph, reward).advantage).tolist()
      [1.0, -0.5, -0.5]
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 1], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> rows.gather(credit.rloo(graph, reward).valid).tolist()  # nothing to compare the third with
      [True, True, False]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        agent_reward=agent_reward,
        baseline="leave_one_out",
        by=by,
        population=population,
        aggregate="return",
        singleton=singleton,
        filters=filters,
        source="rloo",
    )


@checked_options
@jax.jit
def remax(graph: EventGraph, reward: Array, *, greedy_reward: Array, event_reward: Array | None = None) -> Credit:
    """The trace's return minus the reward of a separate greedy run on the same task.

        A_i = R_i − R_greedy

    Unbiased for the policy gradient, since the greedy run does not depend on the sampled one; needs no group.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      greedy_reward: float [T], reward of the greedy run for each trace; NaN where there was none, and the trace is
        invalid.

    Returns:
      `Credit` at level "trace", estimand "total"; `stderr` infinite.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Li et al. 2023, arXiv:2310.10505; verl `compute_remax_outcome_advantage`, golden `verl_remax`. The form
    over tokens is `estimators.tokens.rows.remax`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> greedy = (0.25 + 0 * reward).astype("float32")
      >>> rows.gather(credit.remax(graph, reward, greedy_reward=greedy).advantage).tolist()
      [0.75, -0.25, -0.25]
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    greedy, greedy_mask = check_reward(graph, greedy_reward)
    x, b = m.score[m.of_event], greedy[m.of_event]
    reason = jnp.where(greedy_mask[m.of_event], Reason.VALID, Reason.NO_EVIDENCE)
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
    """One baseline for the whole batch: the trace's return minus the mean of all other traces, of any task.

        A_i = R_i − (Σ_j R_j − R_i) / (N − 1)        over the N traces of the batch

    Unbiased for the policy gradient. Differences between tasks stay in it as noise. Replays of one trace count as one
    sample, and traces without an independent one are refused (`estimators.clusters`). The 0 that `singleton="zero"`
    gives to a batch of one is biased.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      singleton: what a group of one trace gets: "refuse" makes it invalid, "zero" gives 0, "raw" subtracts nothing.

    Returns:
      `Credit` at level "trace", estimand "total", scale 1. Its scope is the batch.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Williams 1992, with a leave-one-out mean.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 1, 2], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.reinforce_batch(graph, reward).advantage).tolist()
      [1.0, -0.5, -0.5]
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
    """Only the best trace of a group is rewarded, by its lead over the second.

        A_best = (R_best − R_second) / (sd + eps)

    The other traces of the group get 0, and so do all traces in a tie for the best. Biased for the policy gradient.
    Replays of one trace count as one sample, the second is no replay of the best, and traces without an independent one
    are refused (`estimators.clusters`).

    With n traces in the group, no A exceeds √n at ddof 1, or n/√(n − 1) at ddof 0, however little the rewards differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      eps: added to the standard deviation.
      ddof: 1 divides the squares by n − 1, 0 by n.
      singleton: what a group of one trace gets: "refuse" makes it invalid, "zero" gives 0, "raw" subtracts nothing.

    Returns:
      `Credit` at level "trace", estimand "score"; `stderr` infinite.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: verl `compute_grpo_passk_outcome_advantage`, golden `drmas_passk`. The released code writes the number to
    the first row of the best trace only; here every action of that trace gets it.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.pass_at_k(graph, reward).advantage).tolist()
      [1.732, 0.0, 0.0]
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
    if m.clusters is not None:  # the second is no replay of the best
        pair = m.clusters.pair
        pair_of_best = jax.ops.segment_max(jnp.where(best, pair, -1), m.key, num)
        others = m.member_mask & (pair != pair_of_best[m.key])
        highest = jax.ops.segment_max(jnp.where(others, m.score, -jnp.inf), m.key, num)[m.key]
        runner_up = jnp.where(jnp.isfinite(highest), highest, m.score)

    key, at = m.key[m.of_event], m.of_event
    x = m.score[at]
    alone = n[key] < 2
    subtracted = jnp.where(best[at], runner_up[at], x)
    subtracted, reason = settle_alone(m, m.member_mask[at], alone, x, subtracted, singleton)
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
