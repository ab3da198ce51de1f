"""TRL 1.16.0's asynchronous trainer: its own scoring of a group, and the worker and process that it would start.

Training needs a server of vLLM, and a GPU; what runs here is the advantage path, on TRL's own types.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason="TRL is not installed here; `make integrations` runs this")
worker_module = pytest.importorskip("trl.experimental.async_grpo.async_rollout_worker")

from accelerate.state import PartialState  # noqa: E402
from timing import compare  # noqa: E402
from trl.experimental.async_grpo import async_grpo_trainer  # noqa: E402

from credit.integrations import trl_async  # noqa: E402
from credit.integrations.trl_async import CreditAsyncGRPOTrainer, CreditAsyncRolloutWorker  # noqa: E402
from graphs.errors import CreditError  # noqa: E402

Loop = worker_module._AsyncRolloutLoop
PartialState()  # TRL's process makes it before it logs


def loop_of(kind: Any, rewards: list[float | None], monkeypatch: pytest.MonkeyPatch, **named: Any) -> Any:
    """A loop without its server: what `_score_group` reads, and where metrics go."""

    def init(self: Any, **_: Any) -> None:
        self.reward_funcs, self.reward_func_names = [lambda **_: rewards], ["fixed"]
        self._env_reward_types, self._provides_rollout_reward, self.num_generations = [], False, len(rewards)
        self.pushed: list[dict[str, float]] = []
        self._model_version_value = SimpleNamespace(value=5)

    monkeypatch.setattr(Loop, "__init__", init)
    monkeypatch.setattr(Loop, "_push_metrics", lambda self, values: self.pushed.append(values))
    return kind(**named)


def group_of(count: int, empty: int | None = None) -> Any:
    """Conversations of one and two training rows in turn, and one without any."""

    def rows(i: int) -> list[Any]:
        made = worker_module.TrainingSequence([1, 2, 3], [0, 1, 1], [0.0, -1.0, -1.0], f"c{i}")
        return [] if i == empty else [made] * (1 + i % 2)

    return worker_module.RolloutGroup(
        prompts=[[]] * count,
        reward_kwargs={},
        completions=[[]] * count,
        completions_ids=[[2, 3]] * count,
        completions_sequences=[rows(i) for i in range(count)],
        tool_call_counts=[0] * count,
        tool_failure_counts=[0] * count,
        model_version=3,
        group_id=0,
        env_rewards=[None] * count,
        rollout_rewards=[None] * count,
    )


def scored(loop: Any, group: Any) -> np.ndarray:
    return np.array([sample.advantage for sample in asyncio.run(loop._score_group(group))])


@pytest.mark.parametrize("empty", [None, 2])
def test_trls_own_formula_and_another(empty: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation without a training row counts in the mean, as TRL's; one that nothing scored gets 0."""
    rewards = [*np.random.default_rng(2).normal(size=7).tolist(), None]
    want = scored(loop_of(Loop, rewards, monkeypatch), group_of(8, empty))
    own = {"credit": "grpo", "options": {"ddof": 0, "eps": 1e-8}}
    ours = loop_of(trl_async._CreditLoop, rewards, monkeypatch, **own)
    got = scored(ours, group_of(8, empty))
    assert len(got) == 12 - (empty is not None) and np.abs(want).max() > 1
    assert np.abs(got - want).max() <= 2e-6 and (got[-2:] == 0).all()
    # The group is of version 3, and 5 is trained: its age was 0, and its gradient called unbiased.
    assert ours.pushed[-1]["credit/policy_age"] == 2 and "credit/condition/unbiased" not in ours.pushed[-1]
    assert ours.pushed[-1]["credit/compilations"] == 0
    rloo = scored(loop_of(trl_async._CreditLoop, [1.0, 0.0, 0.5], monkeypatch, credit="rloo", options={}), group_of(3))
    assert rloo.tolist() == [0.75, -0.75, -0.75, 0]


def test_overhead_beside_trls_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call scores one group, here of as many conversations as there are rows."""
    draw, rewards = np.random.default_rng(4), list[float | None]([0.0] * 8)
    theirs = loop_of(Loop, rewards, monkeypatch)
    ours = loop_of(trl_async._CreditLoop, rewards, monkeypatch, credit="grpo", options={"ddof": 0, "eps": 1e-8})

    def batch(rows: int) -> Any:
        rewards[:] = draw.normal(size=rows).tolist()
        return group_of(rows)

    ours._credit.rows.warmup(1024)
    compare("TRL, asynchronous", batch, lambda group: scored(ours, group), lambda group: scored(theirs, group),
            ours._credit, ran="its loop's step of scores, on its groups")  # fmt: skip


def test_the_trainer_makes_the_worker_and_the_worker_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    monkeypatch.setattr(worker_module, "is_vllm_available", lambda: True)
    worker = CreditAsyncRolloutWorker(credit="grpo", options={"ddof": 0})
    assert worker._loop_cls is trl_async._CreditLoop and worker._loop_kwargs["options"] == {"ddof": 0}

    def init(self: Any, **kwargs: Any) -> None:
        made["worker"] = AsyncRolloutWorker(**kwargs)  # noqa: F821 - the global of TRL's module that it uses

    monkeypatch.setattr(async_grpo_trainer.AsyncGRPOTrainer, "__init__", init)
    CreditAsyncGRPOTrainer(credit="dr_grpo", num_generations=4)
    assert type(made["worker"]) is CreditAsyncRolloutWorker and made["worker"]._loop_kwargs["credit"] == "dr_grpo"


def test_trls_trainer_makes_its_worker_by_that_name() -> None:
    assert "AsyncRolloutWorker" in async_grpo_trainer.AsyncGRPOTrainer.__init__.__code__.co_names
    assert issubclass(CreditAsyncRolloutWorker._loop_cls, worker_module.AsyncRolloutWorker._loop_cls)


def test_what_cannot_work_is_refused_before_a_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CreditError, match=r"'gae' needs value, which TRL 1.16.0 does not pass"):
        CreditAsyncRolloutWorker(credit="gae")
    with pytest.warns(UserWarning, match="'reinforce_pp' compares over the batch, and TRL 1.16.0 asks for one group"):
        monkeypatch.setattr(worker_module.AsyncRolloutWorker, "__init__", lambda self, **kwargs: None)
        CreditAsyncRolloutWorker(credit="reinforce_pp")
    monkeypatch.delattr(Loop, "_score_group")
    with pytest.raises(CreditError, match="_AsyncRolloutLoop has no _score_group"):
        CreditAsyncRolloutWorker(credit="rloo")
    monkeypatch.setattr(async_grpo_trainer.AsyncGRPOTrainer, "__init__", lambda self: SimpleNamespace())
    with pytest.raises(CreditError, match="does not call AsyncRolloutWorker"):
        CreditAsyncGRPOTrainer()
