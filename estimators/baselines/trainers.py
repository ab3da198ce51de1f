"""Shared baselines as trainers compute them: one function for each released form of "GRPO" and RLOO.

Each is `estimators.group_relative` with that code's constants. They differ in what a sample is, in the eps beside the
standard deviation and in what becomes of a group of one; `docs/data/methods.csv` has them in one table.
"""

from __future__ import annotations

from typing import Literal

from estimators.base import Credit
from estimators.group import group_relative
from estimators.options import checked_options
from graphs.event_graph import Array, EventGraph

__all__ = [
    "agent_lightning",
    "agent_lightning_rows",
    "openrlhf_group_norm",
    "slime_grpo",
    "trl_grpo",
    "verl_grpo",
    "verl_rloo",
]


@checked_options
def verl_grpo(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """GRPO as verl computes it: every row is a sample.

        A_i = (R_i − μ) / (sd + 1e-6)        ddof 1

    R_i = reward + event_reward of row i; μ and sd are over all rows of the task. A trace with more rows weighs more. A
    group of one row keeps its raw reward. Biased for the policy gradient. Replays of one trace count as one sample, and
    traces without an independent one are refused (`estimators.clusters`).

    With n rows in the task, no |A| exceeds (n − 1)/√n, however little the rewards differ; a task of one row has no
    bound but its reward.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Returns:
      `Credit` at level "event", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: verl `compute_grpo_outcome_advantage`; executed in Dr. MAS (19c632b) and MATPO (3c41d62), golden
    `drmas_grpo` (`by=None, population="row"`).

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.verl_grpo(graph, reward).advantage).tolist()
      [1.1547, -0.5773, -0.5773]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        baseline="mean",
        scale="std",
        population="row",
        eps=1e-6,
        ddof=1,
        singleton="raw",
        source="verl_grpo",
    )


@checked_options
def verl_rloo(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """RLOO as verl computes it: every row is a sample.

        A_i = (R_i − μ) n / (n − 1)

    R_i = reward + event_reward of row i; the result is R_i minus the mean of the other rows of the task. The other rows
    of the same trace are among them. A group of one row keeps its raw reward. Biased for the policy gradient. Replays
    of one trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Returns:
      `Credit` at level "event", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: verl `compute_rloo_outcome_advantage`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.verl_rloo(graph, reward).advantage).tolist()
      [1.0, -0.5, -0.5]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        baseline="leave_one_out",
        population="row",
        singleton="raw",
        source="verl_rloo",
    )


@checked_options
def trl_grpo(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """GRPO with TRL's constants; a group of one gets 0.

        A_i = (R_i − μ) / (sd + 1e-4)        ddof 1

    R_i = reward + Σ event_reward; μ and sd are over the traces of the group. Biased for the policy gradient. Replays of
    one trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With n traces in the group, no |A| exceeds (n − 1)/√n, however little the rewards differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Returns:
      `Credit` at level "trace", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: TRL `GRPOTrainer`, group scaling, read in the source at f2cd577, not executed here.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.trl_grpo(graph, reward).advantage).tolist()
      [1.1545, -0.5773, -0.5773]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale="std",
        eps=1e-4,
        ddof=1,
        singleton="zero",
        source="trl_grpo",
    )


@checked_options
def openrlhf_group_norm(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """GRPO with OpenRLHF's constants; a group of one is refused.

        A_i = (R_i − μ) / (sd + 1e-9)        ddof 1

    R_i = reward + Σ event_reward; μ and sd are over the traces of the group. Biased for the policy gradient. Replays of
    one trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With n traces in the group, no |A| exceeds (n − 1)/√n, however little the rewards differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Returns:
      `Credit` at level "trace", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: OpenRLHF `group_norm`, read in the source at 3c3be62, not executed here; its assertion refuses a group of
    one.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.openrlhf_group_norm(graph, reward).advantage).tolist()
      [1.1547, -0.5774, -0.5774]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale="std",
        eps=1e-9,
        ddof=1,
        singleton="refuse",
        source="openrlhf_group_norm",
    )


@checked_options
def slime_grpo(
    graph: EventGraph, reward: Array, *, event_reward: Array | None = None, uneven_as_one_group: bool = False
) -> Credit:
    """GRPO as slime post-processes rewards; a group of one gets 0.

        A_i = (R_i − μ) / (sd + 1e-6)        ddof 1

    R_i = reward + Σ event_reward; μ and sd are over the traces of the group. slime forms groups by position, in blocks
    of `n_samples_per_prompt`; here the group ids form them. Biased for the policy gradient. Replays of one trace count
    as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With n traces in the group, no |A| exceeds (n − 1)/√n, however little the rewards differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      uneven_as_one_group: take the whole batch as one group, as the released code does where the number of samples is
        not blocks × block size.

    Returns:
      `Credit` at level "trace", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: slime `RolloutManager._post_process_rewards`, used by MrlX (M-GRPO), at 624b824; executed, golden
    `slime_grpo_used_by_MrlX`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.slime_grpo(graph, reward).advantage).tolist()
      [1.1547, -0.5773, -0.5773]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale="std",
        eps=1e-6,
        ddof=1,
        singleton="zero",
        over="batch" if uneven_as_one_group else "group",
        source="slime_grpo",
    )


@checked_options
def agent_lightning(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    scale: Literal["std", "none"] = "std",
) -> Credit:
    """Agent Lightning's rollout-level advantage: verl's GRPO over one row a rollout, copied to all its rows.

        A_i = (R_i − μ) / (sd + 1e-6)        ddof 1

    R_i = reward + event_reward of the first row of trace i, μ and sd over the traces of the group; a group of one keeps
    its raw reward. The released code raises where the rows of a rollout differ in reward; here the first row stands for
    them. Biased for the policy gradient. Replays of one trace count as one sample, and traces without an independent
    one are refused (`estimators.clusters`).

    With n traces in the group and scale "std", no |A| exceeds (n − 1)/√n, however little the rewards differ; a group of
    one has no bound but its reward.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      scale: "none" leaves out the division (`norm_adv_by_std_in_grpo=False`).

    Returns:
      `Credit` at level "trace", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Agent Lightning `compute_rollout_level_advantage` at c632d8d; executed, golden `agl_rollout_level`. The
    loss weights that go with it are `estimators.tokens.rows.per_rollout_mean`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.agent_lightning(graph, reward).advantage).tolist()
      [1.1547, -0.5773, -0.5773]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale=scale,
        aggregate="first",
        eps=1e-6,
        ddof=1,
        singleton="raw",
        source="agent_lightning",
    )


@checked_options
def agent_lightning_rows(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """Agent Lightning before v1.0, and without its rollout-level switch: `verl_grpo` over all rows.

        A_i = (R_i − μ) / (sd + 1e-6)        ddof 1

    R_i = reward + event_reward of row i, μ and sd over all rows of the task. Long rollouts weigh more. Biased for the
    policy gradient. Replays of one trace count as one sample, and traces without an independent one are refused
    (`estimators.clusters`).

    With n rows in the task, no |A| exceeds (n − 1)/√n, however little the rewards differ; a task of one row has no
    bound but its reward.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Returns:
      `Credit` at level "event", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: golden `agl_rollout_level`, output `row_level_adv`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.agent_lightning_rows(graph, reward).advantage).tolist()
      [1.1547, -0.5773, -0.5773]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale="std",
        population="row",
        eps=1e-6,
        ddof=1,
        singleton="raw",
        source="agent_lightning_rows",
    )
