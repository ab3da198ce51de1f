"""ms-swift: its GRPO trainer with advantages of this library.

    # my_credit.py, and --external_plugins my_credit.py
    CreditGRPOTrainer.credit = "dr_mas"
    TrainerFactory.TRAINER_MAPPING["grpo"] = "credit.integrations.swift.CreditGRPOTrainer"

Written against ms-swift 4.6.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from accelerate.utils import gather_object
from swift.rlhf_trainers.grpo_trainer import GRPOTrainer

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from graphs.errors import CreditError

__all__ = ["CreditGRPOTrainer"]

WRITE = "the multi-turn scheduler writes it into rollout_infos of every sample, under this name"


class CreditGRPOTrainer(GRPOTrainer):
    """A sample is a row; a request that has several samples is a trace, and a prompt is a group.

    What `rollout_infos` hold under the names of `TrainerCredit.columns_of` are columns; without a `turn`, each sample
    of a request is one. `scale_rewards="none"` leaves out the method's scale. A sample that no reward function scored
    gets 0 and enters no baseline. Everything else is ms-swift's; its Megatron trainer is another class.

    Attributes:
      credit: a method by name, or a function; set on the class or in a subclass.
      options: keyword arguments of `RowAdvantages`, the method's and `watch`.

    Raises:
      CreditError: `scale_rewards` is "batch" or "gdpo"; the KL penalty is in the reward, which these advantages omit.
    """

    credit: ClassVar[Any] = "grpo"
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.scale_rewards not in ("group", "none"):
            raise CreditError(f"scale_rewards is {self.scale_rewards!r}; expected 'group', the method's own, or 'none'")
        if self.kl_in_reward and abs(self.beta) > 0:
            raise CreditError("kl_in_reward is on, and these advantages would omit the penalty; use the KL loss")
        rows = RowAdvantages(self.credit, scaled=self.scale_rewards == "group", **self.options)
        hooks = {GRPOTrainer: ("_compute_advantages", "compute_loss")}
        self._credit = TrainerCredit(rows, trainer="ms-swift 4.6.0", hooks=hooks, columns=WRITE, evidence=True)

    def _compute_advantages(self, samples: Any, rewards_per_func: Any, batch_encoded_inputs: Any) -> Any:
        super()._compute_advantages(samples, rewards_per_func, batch_encoded_inputs)  # for what it logs
        mode = "train" if self.model.training else "eval"
        reward = (rewards_per_func * self.reward_weights).nansum(dim=1)
        reward[rewards_per_func.isnan().all(dim=1)] = torch.nan
        columns = self._credit.columns_of(gather_object([sample.rollout_infos for sample in samples]))
        if self.dynamic_num_samples:
            columns |= {"trace": gather_object([sample.request_id for sample in samples])}
            columns.setdefault("turn", torch.arange(len(reward)))
            group = gather_object([sample.prompt_id for sample in samples])
        else:
            group = torch.arange(len(reward)) // (
                self.num_generations if mode == "train" else self.num_generations_eval
            )
        result = self._credit(group=group, reward=reward, agent_reward=reward, learns=mode == "train", **columns)
        for name, value in result.metrics.items():
            self._metrics[mode][name].append(value)
        return result.advantages

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        self._credit.check_ran()
        return super().compute_loss(*args, **kwargs)
