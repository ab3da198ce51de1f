"""rLLM's own registry, types and step of advantages, from its source at 9beb6e0."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rllm", reason="rLLM has no release of this source; put it at 9beb6e0 on PYTHONPATH")

from rllm.trainer.algorithms import advantage as of_rllm
from rllm.trainer.algorithms.config import AlgorithmConfig
from rllm.types import Step, Trajectory, TrajectoryGroup
from timing import compare

from credit.integrations import rllm as rllm_integration
from credit.integrations.rllm import credit_metrics, estimator
from graphs.errors import CreditError


def groups_of(rewards: dict[str, np.ndarray], steps: int = 2) -> list[Any]:
    """Groups by "task:role", a trajectory for each reward."""
    return [
        TrajectoryGroup(
            trajectories=[
                Trajectory(reward=float(reward), steps=[Step(response_ids=[1, 2]) for _ in range(steps)])
                for reward in row
            ],
            group_id=name,
            weight_version=number,
        )
        for number, (name, row) in enumerate(rewards.items())
    ]


def numbers(groups: list[Any], estimators: dict[str, str], by_std: bool = True) -> np.ndarray:
    """What rLLM's step writes into the steps of each trajectory."""
    config = AlgorithmConfig(estimator_map=dict(estimators), norm_adv_by_std_in_grpo=by_std)
    of_rllm.collect_reward_and_advantage_from_trajectory_groups(groups, config)
    written = [[step.advantage for step in traj.steps] for group in groups for traj in group.trajectories]
    assert all(len(set(row)) == 1 for row in written)
    return np.array([row[0] for row in written])


def roles(draw: np.random.Generator, tasks: int = 6, each: int = 5) -> dict[str, np.ndarray]:
    return {f"t{task}:{role}": draw.normal(size=each) for task in range(tasks) for role in ("solver", "judge")}


@pytest.mark.parametrize(
    ("theirs", "method", "options", "by_std"),
    [
        ("grpo", "grpo", {"ddof": 0}, True),
        ("grpo", "grpo", {"ddof": 0}, False),
        ("rloo", "rloo", {}, True),
        ("reinforce_plus_plus_baseline", "rllm_reinforce_pp", {}, True),
    ],
)
def test_rllms_own_estimators_are_reproduced(theirs: str, method: str, options: dict[str, Any], by_std: bool) -> None:
    rewards = roles(np.random.default_rng(2))
    want = numbers(groups_of(rewards), dict.fromkeys(("solver", "judge"), theirs), by_std)
    got = numbers(groups_of(rewards), dict.fromkeys(("solver", "judge"), estimator(method, **options)), by_std)
    assert np.abs(got - want).max() <= 2e-6 and np.abs(want).max() > 1


def test_each_role_has_an_estimator_of_its_own() -> None:
    """Self-play beside a group's mean; what SPIRAL carries lasts from step to step, for its role alone."""
    names = {"solver": estimator("rloo"), "judge": estimator("spiral_rae", decay=0.5)}
    first = {"t:solver": np.array([1.0, 0.0]), "t:judge": np.array([1.0, 1.0])}
    assert numbers(groups_of(first), names).tolist() == [1, -1, 1, 0.5]
    assert numbers(groups_of(first), names).tolist() == [1, -1, 0.25, 0.125]
    assert numbers(groups_of({"t:other": np.array([1.0])}), {"other": names["judge"]}).tolist() == [1]
    assert credit_metrics("solver")["credit/groups_that_teach"] == 1
    assert credit_metrics("judge")["credit/policy_age"] == 0
    with pytest.raises(CreditError, match="no estimator of this library was asked for the role 'critic'"):
        credit_metrics("critic")


def test_what_cannot_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CreditError, match="'gae' needs value, which rLLM's source at 9beb6e0 does not pass"):
        estimator("gae")
    registered = of_rllm.get_rllm_adv_estimator(estimator("rloo"))
    with pytest.raises(CreditError, match="rLLM passes no traj_groups"):
        registered(rewards=[np.ones(2)], algorithm_config=AlgorithmConfig())
    monkeypatch.delattr(rllm_integration.of_rllm, "register_rllm_adv_estimator")
    with pytest.raises(CreditError, match="has no register_rllm_adv_estimator"):
        estimator("rloo")


def test_overhead_beside_rllms_own() -> None:
    draw = np.random.default_rng(4)
    name, config = estimator("grpo", ddof=0), AlgorithmConfig()

    @functools.cache
    def batch(rows: int) -> list[Any]:
        return groups_of({f"t{i}:solver": draw.normal(size=8) for i in range(rows // 8)}, steps=1)

    seen = SimpleNamespace(compilations=0)

    def call(estimator_name: str, groups: list[Any]) -> list[np.ndarray]:
        rewards = [np.array([traj.reward for traj in group.trajectories]) for group in groups]
        fn = of_rllm.get_rllm_adv_estimator(estimator_name)
        advantages: list[np.ndarray] = fn(rewards=rewards, algorithm_config=config, traj_groups=groups)[0]
        return advantages

    def ours(groups: list[Any]) -> list[np.ndarray]:
        advantages = call(name, groups)
        seen.compilations += int(credit_metrics("solver")["credit/compilations"])
        return advantages

    compare("rLLM", batch, ours, lambda groups: call("grpo", groups), seen, trainer="rLLM's source at 9beb6e0",
            hooks={of_rllm: ("register_rllm_adv_estimator",)}, ran="its step of advantages, on its trajectories",
            numbers=lambda _, advantages: np.concatenate(advantages))  # fmt: skip
