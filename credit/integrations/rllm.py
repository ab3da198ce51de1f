"""rLLM: methods as advantage estimators, another for each role if you like.

    AgentTrainer(..., traj_group_adv_estimator_map={"solver": estimator("rloo"), "judge": estimator("grpo")})

Written against rLLM's source at 9beb6e0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rllm.trainer.algorithms import advantage as of_rllm

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.rows.scale_switch import with_switch
from credit.integrations.trainer_credit import TrainerCredit, estimator_name
from graphs.errors import CreditError

__all__ = ["credit_metrics", "estimator"]

ROLES = "rLLM passes an estimator the trajectories of one role, each a row with its role as the agent"

_METRICS: dict[str, dict[str, float]] = {}  # by role, as rLLM keeps its registry: for the life of the process


def estimator(method: str, **options: Any) -> str:
    """Register a method as an advantage estimator of rLLM and return its name, "credit_METHOD" and its options.

    rLLM calls it once for each role of a step, with the rewards of that role's trajectories in their groups, and copies
    a trajectory's number to all its steps. So a trajectory is a trace of one row, and methods that compare turns have
    nothing to compare. `norm_adv_by_std_in_grpo=False` leaves out the division by a group's spread. What a method
    carries from step to step is kept for each role.

    Args:
      method: a name in `credit.METHODS` that needs no evidence.
      options: keyword arguments of the method.

    Raises:
      CreditError: no such method or option, or the method needs evidence, which rLLM does not pass.
    """
    words: dict[str, Any] = {"trainer": "rLLM's source at 9beb6e0", "columns": ROLES}
    words["hooks"] = {of_rllm: ("register_rllm_adv_estimator",)}
    of_scale = {
        scaled: TrainerCredit(RowAdvantages(method, **with_switch(method, options, scaled)), **words)
        for scaled in (True, False)
    }
    states: dict[str, Any] = {}

    def credit_estimator(
        rewards: list[np.ndarray], algorithm_config: Any, traj_groups: Any = None, **_: Any
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        if traj_groups is None:
            raise CreditError("rLLM passes no traj_groups, which name the role; expected its source at 9beb6e0")
        role = traj_groups[0].group_role if traj_groups else ""
        sizes = [len(group) for group in rewards]
        credit_of = of_scale[bool(algorithm_config.norm_adv_by_std_in_grpo)]
        credit_of.rows.state = states.get(role)
        result = credit_of(
            group=np.repeat(np.arange(len(sizes)), sizes),
            agent=[group.group_role for group, size in zip(traj_groups, sizes, strict=True) for _ in range(size)],
            reward=np.concatenate([np.asarray(group, np.float64) for group in rewards] or [np.zeros(0)]),
            policy_version=np.repeat([group.weight_version for group in traj_groups], sizes),
        )
        states[role], _METRICS[role] = credit_of.rows.state, result.metrics
        advantages = np.split(np.asarray(result.advantages), np.cumsum(sizes)[:-1])
        return advantages, advantages

    name = estimator_name(method, options)
    of_rllm.register_rllm_adv_estimator(name)(credit_estimator)
    return name


def credit_metrics(role: str) -> Mapping[str, float]:
    """The metrics of the last step of a role.

    Raises:
      CreditError: no estimator of this library was asked for that role.
    """
    if role not in _METRICS:
        raise CreditError(
            f"no estimator of this library was asked for the role {role!r}; expected one of {[*_METRICS]}"
        )
    return _METRICS[role]
