"""slime's own samples and its normalisation of rewards, from its source at 624b824."""

from __future__ import annotations

import ast
import functools
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("slime", reason="slime has no release; put its source at 624b824 on PYTHONPATH")

import slime
import torch
from slime.rollout._fanout_test_helpers import grpo_normalize_by_group_index
from slime.utils.ppo_utils import get_grpo_returns
from slime.utils.types import Sample
from timing import compare

from credit.integrations import MissingColumnWarning
from credit.integrations.slime import CreditPostProcess
from graphs.errors import CreditError

TOLERANCE = 2e-6


def settings(**given: Any) -> Any:
    base = {"advantage_estimator": "grpo", "reward_key": None, "rewards_normalization": True}
    return SimpleNamespace(**base | {"grpo_std_normalization": True} | given)


@functools.cache
def of_slime() -> Any:
    """`_post_process_rewards` of slime's `RolloutManager`, whose module needs SGLang: the function from its source."""
    source = (Path(inspect.getfile(slime.utils.types)).parents[1] / "ray" / "rollout.py").read_text()
    (function,) = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "_post_process_rewards"
    ]
    scope: dict[str, Any] = {"torch": torch, "Sample": Sample}
    exec(compile(ast.Module([function], []), "rollout.py", "exec"), scope)
    return scope["_post_process_rewards"]


def processed(args: Any, samples: list[Any], post_process: Any = None) -> tuple[list[Any], list[float]]:
    """As slime calls it: its own normalisation, or the function of --custom-reward-post-process-path."""
    answer: tuple[list[Any], list[float]] = of_slime()(
        SimpleNamespace(args=args, custom_reward_post_process_func=post_process), samples
    )
    return answer


def samples_of(rewards: np.ndarray, each: int) -> list[Any]:
    return [Sample(group_index=i // each, index=i, reward=float(r), response_length=2) for i, r in enumerate(rewards)]


@pytest.mark.parametrize("by_std", [True, False])
def test_slimes_own_normalisation_is_reproduced(by_std: bool) -> None:
    samples = samples_of(np.random.default_rng(1).normal(size=48), 8)
    args = settings(n_samples_per_prompt=8, rollout_batch_size=6, grpo_std_normalization=by_std)
    raw, want = processed(args, samples)
    kept, got = processed(args, samples, CreditPostProcess("grpo" if by_std else "dr_grpo"))
    assert kept == raw and np.abs(np.array(got) - want).max() <= TOLERANCE
    tokens = get_grpo_returns(torch.tensor(got), [torch.zeros(3) for _ in got])
    assert all((row == value).all() for row, value in zip(tokens, torch.tensor(got), strict=True))


def test_groups_of_several_sizes_are_slimes_by_index() -> None:
    samples = samples_of(np.random.default_rng(2).normal(size=20), 6)
    _, want = grpo_normalize_by_group_index(settings(), samples)
    _, got = processed(settings(), samples, CreditPostProcess("grpo"))
    assert np.abs(np.array(got) - want).max() <= TOLERANCE


def test_samples_of_one_rollout_count_once() -> None:
    """The second rollout wrote three samples; slime's own mean would count it three times."""
    rows = [(0, 1.0), (1, 0.0), (1, 0.0), (1, 0.0), (2, 0.5)]
    samples = [
        Sample(group_index=0, index=i, rollout_id=rollout, reward=reward, weight_versions=[str(3 + rollout % 2)])
        for i, (rollout, reward) in enumerate(rows)
    ]
    post_process = CreditPostProcess("dr_grpo")
    _, got = processed(settings(), samples, post_process)
    assert got == [0.5, -0.5, -0.5, -0.5, 0.0]
    assert post_process.metrics["credit/traces"] == 3 and post_process.metrics["credit/groups_of_several_versions"] == 1
    samples[4].reward = None
    raw, got = processed(settings(), samples, post_process)
    assert raw[4] is None and got == [0.5, -0.5, -0.5, -0.5, 0.0]


def test_a_team_is_told_by_metadata() -> None:
    """Rewards of their own: solvers 1 and 0, checkers .5 and 1."""
    rows = [(0, "solver", 1.0), (0, "checker", 0.5), (1, "solver", 0.0), (1, "checker", 1.0)]
    samples = [
        Sample(group_index=0, index=i, rollout_id=rollout, reward=reward, metadata={"agent": agent})
        for i, (rollout, agent, reward) in enumerate(rows)
    ]
    ours = functools.partial(CreditPostProcess, "rloo", by="task,agent", population="agent")
    assert processed(settings(), samples, ours())[1] == [1, -0.5, -1, 0.5]
    with pytest.raises(CreditError, match="trace '0' has different values"):
        processed(settings(), samples, CreditPostProcess("dr_mas"))
    del samples[3].metadata["agent"]
    with pytest.raises(CreditError, match="'agent' is in some rows only, and not in row 3: the rollout function"):
        processed(settings(), samples, ours())
    with pytest.warns(MissingColumnWarning, match="needs the column 'agent'.*into the metadata of every Sample"):
        processed(settings(), samples_of(np.ones(4), 2), CreditPostProcess("dr_mas"))


def test_what_would_make_other_numbers_is_refused() -> None:
    samples, post_process = samples_of(np.ones(2), 2), CreditPostProcess("rloo")
    with pytest.raises(CreditError, match="--advantage-estimator is 'ppo', which takes these numbers for rewards"):
        processed(settings(advantage_estimator="ppo"), samples, post_process)
    samples[1].group_index = None
    with pytest.raises(CreditError, match="sample 1 has no group_index"):
        processed(settings(), samples, post_process)


def test_a_renamed_method_of_samples_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Sample, "get_reward_value")
    with pytest.raises(CreditError, match="Sample has no get_reward_value"):
        CreditPostProcess("rloo")


def test_overhead_beside_slimes_own() -> None:
    draw, args, post_process = np.random.default_rng(4), settings(), CreditPostProcess("grpo", rows=1024)
    batch = functools.cache(lambda rows: samples_of(draw.normal(size=rows), 8))
    compare(
        "slime",
        batch,
        lambda samples: post_process(args, samples)[1],
        lambda samples: grpo_normalize_by_group_index(args, samples)[1],
        post_process._credit,
        ran="`RolloutManager` from its source, on its samples",
    )
