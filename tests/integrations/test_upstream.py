"""The patches of docs/upstream on the installed sources of TRL and verl: what a subclass or an estimator gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason="TRL is not installed here; `make integrations` runs this")
pytest.importorskip("verl", reason="verl is not installed here; `make integrations` runs this")

import torch
import trl.trainer.grpo_trainer
import verl.trainer.ppo.ray_trainer
from sources import patched
from test_trl import batch_of, build, first_token
from verl import DataProto
from verl.trainer.ppo import core_algos

from credit.integrations import RowAdvantages
from credit.integrations.trl import CreditGRPOTrainer


def test_trls_hook_gives_what_the_class_overrides_for(tmp_path: Path) -> None:
    source = patched(trl.trainer.grpo_trainer, tmp_path / "trl")

    class Small(source.GRPOTrainer):  # type: ignore[misc,name-defined]
        def _transform_advantages(self, advantages: Any, rewards_per_func: Any, inputs: Any) -> Any:
            row = np.arange(len(advantages))
            reward = rewards_per_func.nansum(dim=1)
            return RowAdvantages("rloo")(group=row // self.num_generations, reward=reward).advantages

    small = build(Small, tmp_path / "small", rewards=first_token)
    want = batch_of(build(CreditGRPOTrainer, tmp_path / "ours", rewards=first_token, credit="rloo"))["advantages"]
    got = batch_of(small)["advantages"]
    assert got.abs().max() > 0.1 and torch.allclose(got, want, atol=2e-6)
    assert list(small._logs["advantages"]) == got.tolist()


def test_verls_estimators_see_the_ids_of_rows(tmp_path: Path) -> None:
    source, seen = patched(verl.trainer.ppo.ray_trainer, tmp_path), []

    @core_algos.register_adv_est("upstream_trial")
    def trial(token_level_rewards: Any, response_mask: Any, non_tensor_batch: Any, meta_info: Any, **_: Any) -> Any:
        seen.append(non_tensor_batch["agent_id"].tolist())
        meta_info["metrics"] = 1.0
        return token_level_rewards, token_level_rewards

    ids = {name: np.array(["a", "b"], object) for name in ("uid", "agent_id")}
    rewards = torch.ones(2, 3)
    data = DataProto.from_dict(
        tensors={"token_level_rewards": rewards, "response_mask": torch.ones(2, 3)}, non_tensors=ids, meta_info={}
    )
    result = source.compute_advantage(data, "upstream_trial", config=None)
    assert seen == [["a", "b"]] and result.meta_info["metrics"] == 1 and result.batch["advantages"].equal(rewards)
