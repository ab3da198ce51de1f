"""AReaL: its PPO actor with advantages of this library.

    areal.trainer.ppo.actor.PPOActor = CreditPPOActor     # before the trainer is made, in each training process

Written against AReaL 1.0.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from areal.trainer.ppo.actor import PPOActor
from areal.utils import stats_tracker

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from graphs.errors import CreditError

__all__ = ["CreditPPOActor"]

WRITE = "the workflow returns it beside input_ids, a number for each row, under this name"


class CreditPPOActor(PPOActor):
    """What a grouped rollout returned is a group, and each row of it a trace, or a row of the trace that it names.

    A workflow returns tensors [rows] beside AReaL's: `trace`, and those of `TrainerCredit.columns_of`. The outcome is
    AReaL's reward after its bias, scale, clip, norm and penalties. AReaL computes advantages in each process; it never
    divides what one rollout returned, so that groups are whole where each was one rollout of `gconfig.n_samples`.

    Attributes:
      credit: a method by name, or a function; set on the class or in a subclass.
      options: keyword arguments of `RowAdvantages`, the method's and `watch`.
      credit_metrics: those of the last batch, also among AReaL's.

    Raises:
      CreditError: a KL penalty in the reward, or `adv_norm`, which these advantages would leave out.
    """

    credit: ClassVar[Any] = "rloo"
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, config: Any, engine: Any) -> None:
        super().__init__(config, engine)
        if abs(self.kl_ctl) > 0 or self.adv_norm is not None:
            raise CreditError(
                f"kl_ctl is {self.kl_ctl} and adv_norm is {config.adv_norm}; expected 0 and null: advantages of this "
                "library have neither a KL penalty in the reward nor a norm over tokens"
            )
        hooks = {PPOActor: ("compute_advantages", "ppo_update")}
        rows = RowAdvantages(self.credit, **self.options)
        several = torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
        part = "the rollouts of one process" if several else None
        self._credit = TrainerCredit(rows, trainer="AReaL 1.0.4", hooks=hooks, columns=WRITE, part=part)

    @property
    def credit_metrics(self) -> Mapping[str, float]:
        return self._credit.metrics

    def compute_advantages(self, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """AReaL's, with `advantages` and `returns` of this library.

        Raises:
          CreditError: each rollout returned one row, so that groups are divided over rollouts, and over ranks.
        """
        sizes = [len(rollout["input_ids"]) for rollout in data]
        if len(data) > 1 and max(sizes) == 1:
            raise CreditError(
                f"each of the {len(data)} rollouts of this rank holds one row, so that rows of one task may be on "
                "other ranks; expected a whole group from each, as gconfig.n_samples makes them"
            )
        rollout = np.repeat(np.arange(len(data)), sizes)
        labels = self._credit.columns_of(data)  # one mapping a rollout; AReaL refuses other keys in another
        evidence = {name: _joined(parts) for name, parts in labels.pop("evidence").items()}
        columns: dict[str, Any] = {name: _joined(parts) for name, parts in labels.items()}
        trace = _joined([part.get("trace", torch.arange(size)) for part, size in zip(data, sizes, strict=True)])
        version = [number for part in data for number in _versions(part)] if data and "versions" in data[0] else None
        data = super().compute_advantages(data)
        result = self._credit(
            group=rollout,
            trace=[f"{number}/{row}" for number, row in zip(rollout.tolist(), trace.tolist(), strict=True)],
            reward=[reward for part in data for reward in part["tot_rewards"].sum(-1).tolist()],
            policy_version=version,
            trained_version=None if version is None else self.engine.get_version(),
            evidence=evidence,
            **columns,
        )
        for part, values in zip(data, np.split(result.advantages, np.cumsum(sizes)[:-1]), strict=True):
            number = torch.from_numpy(np.ascontiguousarray(values)).to(part["loss_mask"].device)
            part["advantages"] = torch.where(part["loss_mask"] > 0, number[:, None], 0.0)
            part["returns"] = part["advantages"].clone()
        stats_tracker.scalar(**result.metrics)
        return data

    def ppo_update(self, data: list[dict[str, Any]]) -> None:
        self._credit.check_ran()
        super().ppo_update(data)


def _joined(parts: list[torch.Tensor]) -> np.ndarray:
    return np.concatenate([part.detach().cpu().numpy() for part in parts])


def _versions(rollout: Mapping[str, Any]) -> list[float]:
    """The version of the weights that began each row of a rollout, of AReaL's for each token; NaN without any."""
    wrote = rollout["loss_mask"] > 0
    begun = torch.where(wrote, rollout["versions"].double(), torch.inf).amin(-1)
    numbers: list[float] = begun.masked_fill(~wrote.any(-1), torch.nan).tolist()
    return numbers
