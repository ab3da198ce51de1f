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
from skyrl.train.fully_async_trainer import FullyAsyncRayPPOTrainer
from skyrl.train.trainer import RayPPOTrainer

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.rows.scale_switch import with_switch
from credit.integrations.trainer_credit import COLUMNS, EVIDENCE, TrainerCredit
from credit.methods.registry import METHODS
from graphs.errors import CreditError

__all__ = ["CreditFullyAsyncRayPPOTrainer", "CreditRayPPOTrainer", "register", "row_estimator"]

TRAINER, PREFIX = "SkyRL 0.3.0", "credit_"
VERSIONS = "credit_versions"
HOOKS = (
    "handle_dynamic_sampling", "postprocess_generator_output", "convert_to_training_input",
    "compute_advantages_and_returns", "train_critic_and_policy",
)  # fmt: skip
WRITE = (
    "the generator must write it into env_metrics of every step (SkyRL's own writes an empty mapping for each but the "
    "last), or of none: docs/trainers.md shows how"
)


def register() -> None:
    """Add `credit_NAME` to SkyRL's registry for each method that needs no evidence; again is no error."""
    known = set(AdvantageEstimatorRegistry.list_available())
    for name, method in METHODS.items():
        if PREFIX + name not in known and not method.needs:
            AdvantageEstimatorRegistry.register(PREFIX + name, functools.partial(row_estimator, name))


def row_estimator(
    method: str,
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any,
    grpo_norm_by_std: bool = True,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """An estimator as SkyRL calls it: each row is a trajectory, its task is its `index`."""
    credit_of = _credit_by_name(method, bool(grpo_norm_by_std))
    result = credit_of(group=index, reward=token_level_rewards.sum(dim=-1), mask=response_mask)
    return result.advantages, result.advantages


@functools.lru_cache(maxsize=16)
def _credit_by_name(method: str, by_std: bool = True) -> TrainerCredit:
    rows = RowAdvantages(method, **with_switch(method, {}, by_std))
    instead = "SkyRL passes its estimators no steps; CreditRayPPOTrainer does"
    return TrainerCredit(rows, trainer=TRAINER, columns=instead)


class CreditRayPPOTrainer(RayPPOTrainer):
    """SkyRL's trainer; with `credit_*` and step-wise trajectories, each step is a row with an advantage of its own.

    The outcome of a trajectory is what its last step earned, as in SkyRL. What the generator's `env_metrics` hold of
    each step under the names of `TrainerCredit.columns_of` becomes a column; without a "turn", each step is a turn.
    Labels in some rows only are refused, as are merged steps of labelled rows and dynamic sampling, which lose the
    labels. Rows that SkyRL adds to fill the batch get 0 and enter no statistics. Everything else is SkyRL's.

    Attributes:
      options: keyword arguments of `RowAdvantages`, the method's and `watch`; set on the class or in a subclass. An
        option `scale` or `scaled` goes before SkyRL's `grpo_norm_by_std`.
    """

    options: ClassVar[Mapping[str, Any]] = {}
    _hooks: ClassVar[Mapping[Any, tuple[str, ...]]] = {RayPPOTrainer: HOOKS}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._tells_steps_apart():
            self._credit  # noqa: B018 - made now, so that what cannot work is refused before the first rollout

    @functools.cached_property
    def _credit(self) -> TrainerCredit:
        algorithm = self.cfg.trainer.algorithm
        name = str(algorithm.advantage_estimator).removeprefix(PREFIX)
        rows = self.make_advantages(name, with_switch(name, self.options, algorithm.grpo_norm_by_std))
        return TrainerCredit(rows, trainer=TRAINER, hooks=self._hooks, columns=WRITE)

    def make_advantages(self, name: str, options: dict[str, Any]) -> Any:
        """A `RowAdvantages`; a subclass may return a `credit.ray.RemoteRowAdvantages`."""
        return RowAdvantages(name, **options)

    def _tells_steps_apart(self) -> bool:
        estimator = str(self.cfg.trainer.algorithm.advantage_estimator)
        return estimator.startswith(PREFIX) and bool(self.cfg.generator.step_wise_trajectories)

    def handle_dynamic_sampling(self, generator_output: Any, uids: list[str]) -> Any:
        if self._tells_steps_apart():
            raise CreditError(
                f"dynamic_sampling.type is {self.cfg.trainer.algorithm.dynamic_sampling.type!r}; with step-wise "
                "trajectories it moves or drops rows without their is_last_step and env_metrics, which then name other "
                "steps; set trainer.algorithm.dynamic_sampling.type=null"
            )
        return super().handle_dynamic_sampling(generator_output, uids)

    def postprocess_generator_output(self, generator_output: Any, uids: list[str], *more: Any, **named: Any) -> Any:
        if self._tells_steps_apart() and self.cfg.generator.merge_stepwise_output:
            labels = self._labels(generator_output, len(generator_output["response_ids"]))
            if labels:
                raise CreditError(
                    f"merge_stepwise_output makes one row of several steps and drops env_metrics, which name the "
                    f"{' and the '.join(labels)} of each; set generator.merge_stepwise_output=false"
                )
        return super().postprocess_generator_output(generator_output, uids, *more, **named)

    def convert_to_training_input(self, generator_output: Any, uids: list[str]) -> Any:
        labels = self._labels(generator_output, len(uids)) if self._tells_steps_apart() else {}
        batch = super().convert_to_training_input(generator_output, uids)
        batch.metadata.update({f"{PREFIX}{name}": labels[name] for name in labels})
        return batch

    def _labels(self, generator_output: Mapping[str, Any], rows: int) -> dict[str, list[Any]]:
        """The columns and the evidence that `env_metrics` hold; none where no row has a label."""
        columns = self._credit.columns_of(generator_output.get("env_metrics") or [], rows)
        return {**columns.pop("evidence"), **columns}

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def compute_advantages_and_returns(self, data: Any) -> Any:
        if not self._tells_steps_apart():
            return super().compute_advantages_and_returns(data)
        rewards = data["rewards"].sum(dim=-1)
        last = np.asarray(data.metadata["is_last_step"], bool)
        trace = np.concatenate([[0], np.cumsum(last)[:-1]])
        real = np.arange(len(last)) < len(last) - data.metadata.get("pad_size", 0)
        outcome = rewards[torch.from_numpy(np.flatnonzero(last))][torch.from_numpy(trace)]
        first = np.flatnonzero(np.concatenate([[True], last[:-1]]))
        columns: dict[str, Any] = {"turn": np.arange(len(last)) - first[trace]}
        labels = {name: data.metadata.get(PREFIX + name) for name in (*COLUMNS, *EVIDENCE)}
        stated = {name: [*some, *some[:1] * (len(last) - len(some))] for name, some in labels.items() if some}
        if evidence := {name: stated.pop(name) for name in EVIDENCE if name in stated}:
            columns["evidence"] = evidence
        columns |= stated
        if versions := data.metadata.get(VERSIONS):
            columns["policy_version"] = [versions.get(uid) for uid in data.metadata["uids"]]
            columns["trained_version"] = self.global_step  # of the step at hand, by which SkyRL counts staleness
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

    def train_critic_and_policy(self, data: Any) -> Any:
        if self._tells_steps_apart():
            self._credit.check_ran()
        return super().train_critic_and_policy(data)


class CreditFullyAsyncRayPPOTrainer(CreditRayPPOTrainer, FullyAsyncRayPPOTrainer):
    """SkyRL's asynchronous trainer, as `CreditRayPPOTrainer`.

    Each of its mini-batches holds whole groups. A group's version is the step at which SkyRL scheduled it.
    """

    _hooks: ClassVar[Mapping[Any, tuple[str, ...]]] = {
        RayPPOTrainer: HOOKS,
        FullyAsyncRayPPOTrainer: ("convert_generation_group_mini_batch_to_training_input",),
    }

    def convert_generation_group_mini_batch_to_training_input(self, groups: list[Any], *args: Any, **named: Any) -> Any:
        batch = super().convert_generation_group_mini_batch_to_training_input(groups, *args, **named)
        batch.metadata[VERSIONS] = {group.uid: group.global_step_when_scheduled for group in groups}
        return batch


register()
