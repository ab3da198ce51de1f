"""AReaL's own actor from its source, version 1.0.4; its module needs Numba and an engine."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import logging
import runpy
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sources import definitions, modules, source_of
from timing import compare

torch = pytest.importorskip("torch", reason="PyTorch is not installed here; `make integrations` runs this")
AREAL = source_of("areal", "AReaL is not installed here; `make integrations` runs this")

from credit.integrations import MissingColumnWarning  # noqa: E402
from graphs.errors import CreditError  # noqa: E402


@functools.cache
def of_areal() -> Any:
    """Its actor with its own batching and norms; what times and logs it is left out."""
    decorated = lambda *words, **named: lambda method: method  # noqa: E731
    scope: dict[str, Any] = {"torch": torch, "np": np, "dist": torch.distributed, "dataclass": dataclasses.dataclass}
    constants = runpy.run_path(str(AREAL / "utils" / "constants.py"))
    scope |= {name: value for name, value in constants.items() if name.isupper()}
    scope |= {"functools": functools, "F": torch.nn.functional, "trace_perf": decorated}
    scope |= {"logger": logging.getLogger("areal"), "stats_tracker": SimpleNamespace(scope_func_wrapper=decorated)}
    names = """batched_call concat_batch split_batch TrajBatchMeta concat_padded_tensors split_and_unpad_tensor
        _pad_cat_dim0 _unpad_splits is_multi_modal_key get_batch_size Normalization KLEstimator"""
    scope |= definitions(AREAL / "utils" / "data.py", names, scope)
    return definitions(AREAL / "trainer" / "ppo" / "actor.py", "PPOActor", scope)["PPOActor"]


def config(**settings: Any) -> Any:
    base: dict[str, Any] = dict(
        reward_bias=0.0, reward_scaling=1.0, reward_clip=20.0, kl_ctl=0.0, kl_estimator="k1", adv_norm=None,
        reward_norm=None, discount=1.0, gae_lambda=1.0, mask_no_eos_with_zero=False, temperature=1.0,
        m2_threshold=None, use_decoupled_loss=True, recompute_logprob=True, rejection_sampling=None,
        prox_logp_method="recompute", eps_clip=0.2, overlong_reward_penalty=False,
    )  # fmt: skip
    return SimpleNamespace(**base | settings)


def norm(size: int) -> Any:
    levels = {"mean_level": "group", "mean_leave1out": True, "std_level": None, "std_unbiased": True}
    return SimpleNamespace(group_size=size, eps=1e-5, **levels)


def rollouts(rewards: np.ndarray, **columns: list[int]) -> list[dict[str, Any]]:
    """Rollouts [tasks, samples] of other lengths; the policy wrote the last two tokens of four or five."""
    made = []
    for task, row in enumerate(rewards):
        size, length = len(row), 4 + task % 2
        shape = (size, length)
        loss = torch.zeros(shape)
        loss[:, -2:] = 1
        made.append(
            {"input_ids": torch.ones(shape, dtype=torch.int64), "attention_mask": torch.ones(shape, dtype=torch.bool),
             "loss_mask": loss, "logprobs": torch.zeros(shape), "rewards": torch.tensor(row, dtype=torch.float32)}
            | {name: torch.tensor(values) for name, values in columns.items()}
        )  # fmt: skip
    return made


def written(data: list[dict[str, Any]]) -> np.ndarray:
    """The number of each row, which is on what the policy wrote and nowhere else."""
    answers = []
    for part in data:
        for row, mask in zip(part["advantages"], part["loss_mask"] > 0, strict=True):
            assert len(set(row[mask].tolist())) == 1 and mask.sum() == 2
            answers.append(float(row[mask][0]))
    return np.array(answers)


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch) -> Any:
    modules(monkeypatch, "areal.trainer.ppo.actor", PPOActor=of_areal())
    logged: list[dict[str, float]] = []
    modules(monkeypatch, "areal.utils.stats_tracker", scalar=lambda **metrics: logged.append(metrics))
    monkeypatch.setattr(sys.modules["areal.utils"], "stats_tracker", sys.modules["areal.utils.stats_tracker"], False)
    monkeypatch.delitem(sys.modules, "credit.integrations.areal", raising=False)
    kind = importlib.import_module("credit.integrations.areal").CreditPPOActor
    kind.logged = logged

    def make(credit: str = "rloo", settings: dict[str, Any] | None = None, **options: Any) -> Any:
        return type("Ours", (kind,), {"credit": credit, "options": options})(config(**settings or {}), None)

    return make


def test_areals_own_is_reproduced(actor: Any) -> None:
    rewards = np.random.default_rng(0).normal(size=(6, 4))
    want = of_areal()(config(reward_norm=norm(4)), None).compute_advantages(rollouts(rewards))
    ours = actor("rloo")
    got = ours.compute_advantages(rollouts(rewards))
    assert np.abs(written(got) - written(want)).max() <= 2e-6 and np.abs(written(want)).max() > 1
    assert [set(part) for part in got] == [set(part) for part in want]
    assert ours.logged[0]["credit/groups"] == 6 and ours.credit_metrics["credit/traces"] == 24


def test_rows_of_a_team_have_their_agents_own(actor: Any) -> None:
    """Two runs of a team of two; each row is one answer, and the second agent's reward is the run's too."""
    data = rollouts(np.array([[1.0, 1.0, 0.0, 0.0]]), trace=[0, 0, 1, 1], agent=[0, 1, 0, 1])
    assert written(actor("dr_grpo", by="task,agent").compute_advantages(data)).tolist() == [0.5, 0.5, -0.5, -0.5]
    data = rollouts(np.array([[1.0, 1.0, 0.0, 0.0]]), trace=[0, 0, 1, 1], agent=[0, 1, 0, 1])
    ours = actor("rloo")
    ours.compute_advantages(data)
    assert ours.credit_metrics["credit/traces"] == 2 and ours.credit_metrics["credit/agents"] == 2


def test_columns_of_a_workflow_are_read_or_named(actor: Any) -> None:
    """Frozen agents were trained, and rewards of events under another name left out, without a word."""
    with pytest.warns(MissingColumnWarning, match="'event_rewards', .* did you mean 'event_reward'"):
        actor("rloo").compute_advantages(rollouts(np.array([[1.0, 0.0]]), event_rewards=[0, 1]))
    frozen = rollouts(np.array([[1.0, 1.0, 0.0, 0.0]]), trace=[0, 0, 1, 1], agent=[0, 1, 0, 1], trainable=[1, 0, 1, 0])
    assert written(actor("rloo").compute_advantages(frozen)).tolist() == [1, 0, -1, 0]


def test_rows_carry_the_version_that_began_them(actor: Any) -> None:
    """AReaL states a version for each token, -1 for prompts: rows begun under 3 and 5, and one that went on under 6."""
    data = rollouts(np.array([[1.0, 0.0, 0.5]]))
    data[0]["versions"] = torch.tensor([[-1, -1, 3, 3], [-1, -1, 5, 5], [-1, -1, 5, 6]], dtype=torch.int32)
    ours = actor("rloo")
    ours.engine = SimpleNamespace(get_version=lambda: 7)
    assert written(ours.compute_advantages(data)).tolist() == [0.75, -0.75, 0]
    ages = {name: ours.credit_metrics[f"credit/{name}"] for name in ("policy_age", "groups_of_several_versions")}
    assert ages == {"policy_age": 4, "groups_of_several_versions": 1}


def test_groups_that_may_be_on_other_ranks_are_refused(actor: Any) -> None:
    with pytest.raises(CreditError, match=r"each of the 3 rollouts of this rank holds one row.*may be on other ranks"):
        actor().compute_advantages(rollouts(np.ones((3, 1))))


def test_what_would_be_left_out_is_refused(actor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CreditError, match=r"kl_ctl is 0\.1"):
        actor(settings={"kl_ctl": 0.1})
    with pytest.raises(CreditError, match="never asked 'rloo' for advantages"):
        actor().ppo_update([])
    monkeypatch.delattr(of_areal(), "compute_advantages")
    with pytest.raises(CreditError, match="PPOActor has no compute_advantages"):
        actor()


def test_overhead_beside_areals_own(actor: Any) -> None:
    draw, ours = np.random.default_rng(4), actor("rloo", rows=1024)
    theirs = of_areal()(config(reward_norm=norm(8)), None)
    compare(
        "AReaL",
        functools.cache(lambda rows: rollouts(draw.normal(size=(rows // 8, 8)))),
        ours.compute_advantages,
        theirs.compute_advantages,
        ours._credit,
        ran="`PPOActor` from its source",
        numbers=lambda _, data: written(data),
    )
