"""The blocks of docs/trainers.md run: alone, or with a stub of the one symbol of a trainer that they import."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trainers.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(defines: str, monkeypatch: pytest.MonkeyPatch, **modules: Any) -> dict[str, Any]:
    """Execute the one block that defines a name; `modules` are stubs by dotted name, with __ for dots."""
    (block,) = [body for body in BLOCKS if defines in body]
    for dotted, module in modules.items():
        parts = dotted.split("__")
        for i in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
        monkeypatch.setitem(sys.modules, ".".join(parts), module)
    namespace: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), namespace)
    return namespace


def registry() -> tuple[Callable[[str], Callable[..., Any]], dict[str, Callable[..., Any]]]:
    known: dict[str, Callable[..., Any]] = {}

    def register(name: str) -> Callable[..., Any]:
        return lambda fn: known.setdefault(name, fn)

    return register, known


def leave_one_out(scores: list[float], groups: list[int]) -> list[float]:
    result = []
    for i, (score, group) in enumerate(zip(scores, groups, strict=True)):
        others = [s for j, (s, g) in enumerate(zip(scores, groups, strict=True)) if g == group and j != i]
        result.append(score - sum(others) / len(others))
    return result


def test_every_block_is_tested() -> None:
    names = ["def row_advantages", '"credit_rloo"', "def team_advantage", "class CreditGRPOTrainer", "def advantages"]
    for body in BLOCKS:
        assert any(name in body for name in names), body


def test_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    row_advantages = run("def row_advantages", monkeypatch)["row_advantages"]
    uid, traj = ["q", "q", "q", "q"], ["a", "b", "a", "b"]
    advantage, valid = row_advantages(uid, traj, ["S", "S", "V", "V"], [1.0, 0, 1, 0], events=8, traces=4, agents=8)
    scale = np.sqrt(0.5) + 1e-6
    assert advantage == pytest.approx([0.5 / scale, -0.5 / scale, 0.5 / scale, -0.5 / scale])
    assert valid.all()


def test_verl_estimator(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    register, known = registry()
    stub = types.SimpleNamespace(register_adv_est=register)
    run("import register_adv_est", monkeypatch, verl__trainer__ppo__core_algos=stub)
    rewards, mask = torch.zeros(4, 3), torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]])
    rewards[[0, 1, 2, 3], [2, 1, 0, 2]] = torch.tensor([1.0, 0.0, 3.0, 2.0])
    advantages, returns = known["credit_rloo"](
        token_level_rewards=rewards, response_mask=mask, config=None, index=np.array(["p", "p", "q", "q"], object)
    )
    expected = torch.tensor(leave_one_out([1, 0, 3, 2], [0, 0, 1, 1]))[:, None] * mask
    assert torch.equal(advantages, expected) and torch.equal(returns, expected)
    assert advantages.dtype == rewards.dtype


def test_verl_team(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    team_advantage = run("def team_advantage", monkeypatch)["team_advantage"]
    outcome = torch.tensor([1.0, 0.0, 1.0, 0.0])
    data = types.SimpleNamespace(
        batch={"token_level_rewards": outcome[:, None] * torch.tensor([[0.0, 1.0]]), "response_mask": torch.ones(4, 2)},
        non_tensor_batch={
            "uid": np.array(["q"] * 4, object),
            "traj_uid": np.array(["a", "b", "a", "b"], object),
            "agent_id": np.array(["S", "S", "V", "V"], object),
        },
    )
    assert team_advantage(data, events=8, traces=4, agents=8) is data
    scale = 0.5**0.5 + 1e-6
    expected = torch.tensor([0.5, -0.5, 0.5, -0.5])[:, None].expand(4, 2) / scale
    assert torch.allclose(data.batch["advantages"], expected)
    data.batch["token_level_rewards"][2, 0] = -0.1
    with pytest.raises(credit.CreditError, match=r"'reward'.*event_reward=.*rows 0, 2"):
        team_advantage(data, events=8, traces=4, agents=8)


def test_trl(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    rewards = torch.tensor([[1.0, 0.5], [0.0, 0.0], [torch.nan, torch.nan], [2.0, torch.nan], [1.0, 0.0], [0.0, 1.0]])

    class GRPOTrainer:
        """What the block relies on: two processes of three rows each, this one the second."""

        num_generations = num_generations_eval = 3
        reward_weights = torch.tensor([1.0, 2.0])
        model = types.SimpleNamespace(training=True)
        accelerator = types.SimpleNamespace(process_index=1)

        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, ids: Any) -> Any:
            return rewards

        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            self._calculate_rewards(inputs, None, None, None)
            return {"advantages": torch.zeros(3, dtype=torch.float64), "prompt_ids": "kept"}

    trainer = run("class CreditGRPOTrainer", monkeypatch, trl=types.SimpleNamespace(GRPOTrainer=GRPOTrainer))
    trainer = trainer["CreditGRPOTrainer"]()
    output = trainer._generate_and_score_completions([])
    assert output["prompt_ids"] == "kept" and output["advantages"].dtype == torch.float64
    assert output["advantages"].tolist() == leave_one_out([2.0, 1.0, 2.0], [0, 0, 0])
    trainer.accelerator.process_index = 0
    # Row 2 is scored by nobody: no advantage, and no part in the others' baseline.
    assert trainer._generate_and_score_completions([])["advantages"].tolist() == [2.0, -2.0, 0.0]


def test_tunix(monkeypatch: pytest.MonkeyPatch) -> None:
    register, known = registry()
    stub = types.SimpleNamespace(function_registry=types.SimpleNamespace(register_advantage_estimator=register))
    run("register_advantage_estimator", monkeypatch, tunix__rl=stub)
    scores = [1.0, 0.0, 3.0, 2.0, 2.0, 5.0]
    advantages = known["credit_rloo"](rewards=np.array(scores), num_generations=3)
    assert np.asarray(advantages).tolist() == pytest.approx(leave_one_out(scores, [0, 0, 0, 1, 1, 1]))


def test_inside_a_jitted_step(monkeypatch: pytest.MonkeyPatch) -> None:
    advantages = run("def advantages", monkeypatch)["advantages"]
    graph, reward, rows = credit.from_columns(group=[0, 0], trace=[1, 0], reward=[1.0, 0.0], events=8)
    result = np.asarray(advantages(graph, reward, rows.event))
    assert result == pytest.approx(np.array([0.5, -0.5]) / (np.sqrt(0.5) + 1e-6))
