"""verl 0.9.1 for real: time beside its own estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

verl = pytest.importorskip("verl", reason="verl is not installed here; `make integrations` runs this")
tq = pytest.importorskip("transfer_queue", reason="TransferQueue is not installed here")

import torch  # noqa: E402
from timing import compare  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.trainer.ppo import core_algos  # noqa: E402
from verl.trainer.ppo.v1 import PPOTrainerSync  # noqa: E402
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories  # noqa: E402

from credit.integrations import RowAdvantages, TrainerCredit  # noqa: E402
from credit.integrations import verl as verl_integration  # noqa: E402
from credit.integrations.verl_sessions import session_advantage  # noqa: E402
from credit.integrations.verl_v1 import HOOKS  # noqa: E402


def test_overhead_beside_verls_own() -> None:
    """At 1,024 rows of 64 tokens, by name as verl calls it; and no compilation while sizes vary."""
    advantages = verl_integration._credit_of("verl_grpo", ()).rows
    advantages.warmup(1024)
    ours_of_verl = core_algos.get_adv_estimator_fn("credit_verl_grpo")

    def batch(rows: int) -> dict[str, Any]:
        uid = np.array([f"{i // 8:08x}-uid" for i in range(rows)], dtype=object)
        rewards = torch.nn.functional.pad(torch.randn(rows, 1), (63, 0))
        return {"token_level_rewards": rewards, "response_mask": torch.ones(rows, 64, dtype=torch.int64), "index": uid}

    def ours(given: dict[str, Any]) -> Any:
        return ours_of_verl(**given)[0]

    def theirs(given: dict[str, Any]) -> Any:
        given["token_level_rewards"] = given["token_level_rewards"].clone()
        return core_algos.compute_grpo_outcome_advantage(**given)[0]

    compare("verl, estimator by name", batch, ours, theirs, advantages, trainer="verl 0.9.1", ran="its registry")


def test_overhead_of_sessions_beside_verls_own() -> None:
    """What the v1 trainer calls, on sessions of two outputs: 512 sessions in groups of four."""
    rows = RowAdvantages("agent_lightning", rows=1024)
    rows.warmup()
    credit_of = TrainerCredit(rows, trainer="verl 0.9.1", hooks={PPOTrainerSync: HOOKS}, evidence=True)

    def batch(rows: int) -> tuple[DataProto, list[str]]:
        uid = np.array([f"{i // 8:08x}-uid" for i in range(rows)], dtype=object)
        keys = [f"{uid[i]}_{i // 2}_{i % 2}" for i in range(rows)]
        rewards = torch.nn.functional.pad(torch.randn(rows // 2, 1).repeat_interleave(2, 0), (63, 0))
        tensors = {"token_level_rewards": rewards, "token_level_scores": rewards.clone()}
        tensors["response_mask"] = torch.ones(rows, 64, dtype=torch.int64)
        return DataProto.from_dict(tensors=tensors, non_tensors={"uid": uid}, meta_info={}), keys

    def ours(given: tuple[DataProto, list[str]]) -> Any:
        data, keys = given
        session_advantage(credit_of, data, keys, None, [False] * len(keys))
        return data.batch["advantages"]

    def theirs(given: tuple[DataProto, list[str]]) -> Any:
        data, keys = given
        grpo = core_algos.AdvantageEstimator.GRPO
        return compute_advantage_for_multi_trajectories(data, keys, grpo, config=None).batch["advantages"]

    ran = "its trainers on a TransferQueue, up to the update"
    compare("verl, sessions of v1", batch, ours, theirs, credit_of, ran=ran)
