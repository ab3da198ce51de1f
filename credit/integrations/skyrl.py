"""SkyRL: methods as advantage estimators, and a trainer that distinguishes the steps and agents of a trajectory.

    import credit.integrations.skyrl      # then trainer.algorithm.advantage_estimator=credit_rloo

Importing registers `credit_NAME` for each method that needs no evidence. SkyRL calls an estimator with one row a
trajectory and copies its number to all steps. `CreditRayPPOTrainer` gives each step, or each agent, its own instead.
Written against SkyRL 0.3.0.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from skyrl.backends.skyrl_train.utils.ppo_utils import AdvantageEstimatorRegistry
from skyrl.train.trainer import RayPPOTrainer

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.methods.registry import METHODS

__all__ = ["CreditRayPPOTrainer", "register", "row_estimator"]

PREFIX = "credit_"
COLUMNS = ("agent", "turn")
"""Keys of the generator's `env_metrics`, one mapping a row, that become columns."""


def register() -> None:
    """Add `credit_NAME` to SkyRL's registry for each method that needs no evidence; again is no error."""
    known = set(AdvantageEstimatorRegistry.list_available())
    for name, method in METHODS.items():
        if PREFIX + name not in known and not method.needs:
            AdvantageEstimatorRegistry.register(PREFIX + name, functools.partial(row_estimator, name))


def row_estimator(
    method: str, token_level_rewards: torch.Tensor, response_mask: torch.Tensor, index: Any, **_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """An estimator as SkyRL calls it: each row is a trajectory, its task is its `index`."""
    result = _advantages(method)(group=index, reward=token_level_rewards.sum(dim=-1), mask=response_mask)
    return result.advantages, result.advantages


@functools.lru_cache(maxsize=16)
def _advantages(method: str) -> RowAdvantages:
    return RowAdvantages(method)


class CreditRayPPOTrainer(RayPPOTrainer):
    """SkyRL's trainer; with `credit_*` and step-wise trajectories, each step is a row with an advantage of its own.

    The outcome of a trajectory is what its last step earned, as in SkyRL. Where the generator's `env_metrics` name the
    "agent" of a step, or its "turn", they become columns; without a "turn", each step is a turn. Rows that SkyRL adds
    to fill the batch get 0 and enter no statistics. Everything else is SkyRL's.

    Attributes:
      options: keyword arguments of `RowAdvantages`, the method's and `watch`; set on the class or in a subclass.
    """

    options: ClassVar[Mapping[str, Any]] = {}
    _credit: Any = None

    def make_advantages(self, name: str, options: dict[str, Any]) -> Any:
        """A `RowAdvantages`; a subclass may return a `credit.ray.RemoteRowAdvantages`."""
        return RowAdvantages(name, **options)

    def convert_to_training_input(self, generator_output: Any, uids: list[str]) -> Any:
        batch = super().convert_to_training_input(generator_output, uids)
        rows = generator_output.get("env_metrics") or []
        for name in COLUMNS:
            if rows and all(name in row for row in rows):
                batch.metadata[f"{PREFIX}{name}"] = [row[name] for row in rows]
        return batch

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def compute_advantages_and_returns(self, data: Any) -> Any:
        name = str(self.cfg.trainer.algorithm.advantage_estimator)
        if not name.startswith(PREFIX) or not self.cfg.generator.step_wise_trajectories:
            return super().compute_advantages_and_returns(data)
        rewards = data["rewards"].sum(dim=-1)
        last = np.asarray(data.metadata["is_last_step"], bool)
        trace = np.concatenate([[0], np.cumsum(last)[:-1]])
        real = np.arange(len(last)) < len(last) - data.metadata.get("pad_size", 0)
        outcome = rewards[torch.from_numpy(np.flatnonzero(last))][torch.from_numpy(trace)]
        first = np.flatnonzero(np.concatenate([[True], last[:-1]]))
        columns: dict[str, Any] = {"turn": np.arange(len(last)) - first[trace]}
        for column in COLUMNS:
            given = data.metadata.get(f"{PREFIX}{column}")
            if given is not None:
                columns[column] = list(given) + [given[0]] * (len(last) - len(given))
        if self._credit is None:
            self._credit = self.make_advantages(name.removeprefix(PREFIX), dict(self.options))
        result = self._credit(
            group=data.metadata["uids"],
            trace=trace,
            reward=outcome,
            where=real,
            mask=data["response_mask"],
            **columns,
        )
        data["advantages"] = data["returns"] = result.advantages
        written = data["response_mask"].bool() & torch.from_numpy(real)[:, None]
        answered = result.advantages[written]
        average = {
            "avg_final_rewards": rewards[torch.from_numpy(last & real)].mean().item(),
            "avg_advantages": answered.mean().item(),
            "avg_advantages_abs": answered.abs().mean().item(),
        }
        data.metadata.setdefault("metrics", {}).update(
            average, avg_response_length=data.metadata["avg_response_length"]
        )
        self.all_metrics.update(
            {
                "loss/avg_final_rewards": average["avg_final_rewards"],
                "loss/avg_raw_advantages": average["avg_advantages"],
                "loss/avg_raw_advantages_abs": average["avg_advantages_abs"],
                **result.metrics,
            }
        )
        return data


register()
