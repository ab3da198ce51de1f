"""Shared baselines as trainers compute them: one function for each released form of "GRPO" and RLOO.

Each is `estimators.group_relative` with that code's constants. They differ in what a sample is, in the eps beside the
standard deviation and in what becomes of a group of one; `docs/methods.md` has them in one table.
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


def verl_grpo(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """GRPO as verl computes it: every row is a sample, ddof 1, eps 1e-6, a group of one keeps its raw reward.

    A row's score is the trace's reward plus its own event reward. Traces with more rows weigh more.

    Differs from `grpo`: population, and the group of one: A = R / (1 + 1e-6), not a refusal.
    Reference: verl `compute_grpo_outcome_advantage` (checked through Dr. MAS' superset and Agent Lightning).
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


def verl_rloo(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """RLOO as verl computes it: every row is a sample, a group of one keeps its raw reward.

    A = (R_i − μ) n / (n − 1), which is R_i minus the mean of the other rows.
    Reference: verl `compute_rloo_outcome_advantage`.
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


def trl_grpo(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """GRPO with TRL's constants: ddof 1, eps 1e-4, a group of one gets 0.

    Reference: TRL `GRPOTrainer`, group scaling (read in the source at f2cd577, not executed here).
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


def openrlhf_group_norm(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """GRPO with OpenRLHF's constants: ddof 1, eps 1e-9; a group of one is refused, as its assertion does.

    Reference: OpenRLHF `group_norm` (read in the source at 3c3be62, not executed here).
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
    """GRPO as slime post-processes rewards: subtract the mean, then divide by (sd with ddof 1) + 1e-6; alone gives 0.

    slime groups by position in blocks of `n_samples_per_prompt`; here the group ids say who belongs together. When the
    number of samples is not blocks × block size, the released code takes the whole batch as one group:
    `uneven_as_one_group=True` reproduces that.

    Reference: slime `RolloutManager._post_process_rewards`, used by MrlX (M-GRPO); executed, golden
    `slime_grpo_used_by_MrlX`.
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

    The released code raises where the rows of a rollout differ in reward; here the first row's score stands for it.

    Reference: `compute_rollout_level_advantage`; executed, golden `agl_rollout_level`. The loss weights that go with
    it are `estimators.tokens.rows.per_rollout_mean`.
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


def agent_lightning_rows(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """Agent Lightning before v1.0, and without its rollout-level switch: `verl_grpo` over all rows.

    Long rollouts weigh more. Reference: golden `agl_rollout_level`, output `row_level_adv`.
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
