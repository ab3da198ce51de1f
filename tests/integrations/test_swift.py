"""ms-swift's own step of advantages from its source, version 4.6.0; the module needs another TRL than the one here."""

from __future__ import annotations

import functools
import importlib
from collections import defaultdict
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from sources import definitions, modules, source_of
from timing import compare

torch = pytest.importorskip("torch", reason="PyTorch is not installed here; `make integrations` runs this")
SWIFT = source_of("swift", "ms-swift is not installed here; `make integrations` runs this")

from graphs.errors import CreditError  # noqa: E402


@functools.cache
def of_swift() -> Any:
    """A trainer of ms-swift's own step, and what it reads of the trainer; one process gathers nothing."""
    nanstd = definitions(SWIFT / "utils" / "torch_utils.py", "nanstd", {"torch": torch})
    scope = {"torch": torch, "dataclass": lambda kind: kind, "gather_object": lambda labels: labels, **nanstd}
    names = "compute_advantages compute_advantages_dynamic compute_reward_metrics"
    scope["RewardMetrics"] = type("RewardMetrics", (SimpleNamespace,), {})
    scope |= definitions(SWIFT / "rl_core" / "advantage.py", names, scope)
    step = definitions(SWIFT / "rlhf_trainers" / "grpo_trainer.py", "_compute_advantages _get_last_indices", scope)

    class GRPOTrainer:
        def __init__(self, **settings: Any) -> None:
            base: dict[str, Any] = dict(
                scale_rewards="group", kl_in_reward=False, beta=0.0, num_generations=8, num_generations_eval=8,
                dynamic_num_samples=False, advantage_estimator="grpo", reward_weights=torch.ones(1),
                reward_func_names=["score"], model=SimpleNamespace(training=True),
                _metrics={mode: defaultdict(list) for mode in ("train", "eval")},
                accelerator=SimpleNamespace(device=torch.device('cpu')), _logs={"rewards": defaultdict(list)},
            )  # fmt: skip
            vars(self).update(base | settings)

        def compute_loss(self) -> str:
            return "a loss"

        _compute_advantages = step["_compute_advantages"]
        _get_last_indices = step["_get_last_indices"]

    return GRPOTrainer


class Sample(NamedTuple):
    prompt_id: str
    request_id: str
    rollout_infos: dict[str, Any]


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Any:
    modules(monkeypatch, "swift.rlhf_trainers.grpo_trainer", GRPOTrainer=of_swift())
    monkeypatch.delitem(importlib.sys.modules, "credit.integrations.swift", raising=False)  # type: ignore[attr-defined]
    return importlib.import_module("credit.integrations.swift").CreditGRPOTrainer


def kind(trainer: Any, credit: str, **options: Any) -> Any:
    return type("Ours", (trainer,), {"credit": credit, "options": options})


def samples_of(count: int, **infos: Any) -> list[Sample]:
    return [Sample(f"p{i // 8}", f"r{i}", dict(infos)) for i in range(count)]


@pytest.mark.parametrize(
    ("estimator", "credit", "scale"),
    [("grpo", "trl_grpo", "group"), ("rloo", "rloo", "none"), ("grpo", "dr_grpo", "none")],
)
def test_swifts_own_are_reproduced(trainer: Any, estimator: str, credit: str, scale: str) -> None:
    reward = torch.tensor(np.random.default_rng(0).normal(size=(48, 1)), dtype=torch.float32)
    theirs = of_swift()(advantage_estimator=estimator, scale_rewards=scale)
    want = theirs._compute_advantages(samples_of(48), reward, [])
    ours = kind(trainer, credit)(scale_rewards=scale)
    got = ours._compute_advantages(samples_of(48), reward, [])
    assert (got - want).abs().max() <= 2e-6 and want.abs().max() > 1
    assert ours._metrics["train"]["reward"] == theirs._metrics["train"]["reward"]
    assert ours._metrics["train"]["credit/groups_that_teach"] == [1] and ours.compute_loss() == "a loss"


def test_samples_of_a_request_are_its_agents(trainer: Any) -> None:
    """Requests of one to three samples: ms-swift's own numbers, then one agent beside another."""
    draw = np.random.default_rng(1)
    number = draw.integers(1, 4, 16)
    rows = [Sample(f"p{r // 8}", f"r{r}", {"agent": "ab"[t % 2]}) for r in range(16) for t in range(number[r])]
    reward = torch.tensor(np.repeat(draw.normal(size=16), number)[:, None], dtype=torch.float32)
    settings: dict[str, Any] = {"dynamic_num_samples": True, "scale_rewards": "none"}
    want = of_swift()(**settings)._compute_advantages(rows, reward, [])
    assert (kind(trainer, "dr_grpo")(**settings)._compute_advantages(rows, reward, []) - want).abs().max() <= 2e-6
    team = kind(trainer, "dr_mas")(**settings)
    got = team._compute_advantages(rows, reward, []).numpy()
    first = np.flatnonzero([row.prompt_id == "p0" and row.rollout_infos["agent"] == "b" for row in rows])
    expected = reward.numpy()[first, 0]
    assert got[first] == pytest.approx(expected - expected.mean(), abs=2e-6)
    del rows[2].rollout_infos["agent"]
    with pytest.raises(CreditError, match="'agent' is in some rows only, and not in row 2: the multi-turn scheduler"):
        team._compute_advantages(rows, reward, [])


def test_what_no_function_scored_enters_no_baseline(trainer: Any) -> None:
    reward = torch.tensor([[1.0], [0.0], [float("nan")]])
    ours = kind(trainer, "rloo")(num_generations=3, scale_rewards="none")
    assert ours._compute_advantages(samples_of(3), reward, []).tolist() == [1, -1, 0]


def test_what_would_make_other_numbers_is_refused(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CreditError, match="scale_rewards is 'batch'"):
        trainer(scale_rewards="batch")
    with pytest.raises(CreditError, match="kl_in_reward is on"):
        trainer(kl_in_reward=True, beta=0.1)
    with pytest.raises(CreditError, match="never asked 'grpo' for advantages"):
        trainer().compute_loss()
    monkeypatch.delattr(of_swift(), "_compute_advantages")
    with pytest.raises(CreditError, match="GRPOTrainer has no _compute_advantages"):
        trainer()


def test_overhead_beside_swifts_own(trainer: Any) -> None:
    draw, ours, theirs = np.random.default_rng(4), kind(trainer, "trl_grpo", rows=1024)(), of_swift()()
    data = functools.cache(lambda n: (samples_of(n), torch.tensor(draw.normal(size=(n, 1)), dtype=torch.float32)))
    compare(
        "ms-swift",
        data,
        lambda batch: ours._compute_advantages(*batch, []),
        lambda batch: theirs._compute_advantages(*batch, []),
        ours._credit,
        ran="`_compute_advantages` from its source",
    )
