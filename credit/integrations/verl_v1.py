"""verl's v1 trainers with advantages of this library; importing this module registers them."""

from __future__ import annotations

import functools
from typing import Any

import transfer_queue as tq
from verl.trainer.ppo.v1 import (
    PPOTrainerColocateAsync,
    PPOTrainerSeparateAsync,
    PPOTrainerSync,
    register_trainer,
)

from credit.hooks import with_globals
from credit.integrations.trainer_credit import TrainerCredit
from credit.integrations.verl_sessions import PREFIX, method_options, session_advantage

__all__ = ["CreditPPOTrainerColocateAsync", "CreditPPOTrainerSeparateAsync", "CreditPPOTrainerSync"]

HOOKS = ("on_train_begin", "_compute_advantage", "_update_actor")
WRITE = "the agent loop writes it into extra_fields of every AgentLoopOutput, under this name"


class _Credit:
    """What is added to a v1 trainer: `_compute_advantage` knows sessions and what the agent loop wrote."""

    def __init__(self, config: Any) -> None:
        # verl compares its mode with "sync" in many places; the prefix has done its work by choosing this class.
        config.trainer.v1.trainer_mode = config.trainer.v1.trainer_mode.removeprefix(PREFIX)
        super().__init__(config)  # type: ignore[call-arg]
        if self._has_credit():
            self._credit  # noqa: B018 - made now, so that what cannot work is refused before the first rollout

    def _has_credit(self) -> bool:
        return str(self.config.algorithm.adv_estimator).startswith(PREFIX)  # type: ignore[attr-defined]

    @functools.cached_property
    def _credit(self) -> TrainerCredit:
        algorithm = self.config.algorithm  # type: ignore[attr-defined]
        name = str(algorithm.adv_estimator).removeprefix(PREFIX)
        rows = self.make_advantages(name, dict(method_options(name, algorithm)))
        kinds = (PPOTrainerSync, PPOTrainerColocateAsync, PPOTrainerSeparateAsync)
        hooks = {kind: HOOKS for kind in kinds if isinstance(self, kind)}
        return TrainerCredit(rows, trainer="verl 0.9.1", hooks=hooks, columns=WRITE, evidence=True)

    def on_train_begin(self) -> None:
        """Compile before the first step."""
        super().on_train_begin()  # type: ignore[misc]
        config = self.config  # type: ignore[attr-defined]
        if self._has_credit() and not self._credit.rows.needs:
            rows = config.data.train_batch_size * config.actor_rollout_ref.rollout.n
            self._credit.rows.warmup(rows)
            if config.algorithm.use_kl_in_reward and self._credit.rows.accepts("event_reward"):  # a penalty, once not 0
                self._credit.rows.warmup(rows, event_reward=True)

    def make_advantages(self, name: str, options: dict[str, Any]) -> Any:
        """A `RowAdvantages`; a subclass may return a `credit.ray.RemoteRowAdvantages`."""
        from credit.integrations.rows.row_advantages import RowAdvantages

        return RowAdvantages(name, **options)

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        of_verl = super()._compute_advantage  # type: ignore[misc]
        if not self._has_credit():
            return of_verl(batch, metrics)
        fetched = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
        extra_fields = list(fetched["extra_fields"]) if "extra_fields" in set(fetched.keys()) else None
        padding = [bool(tag.get("is_padding", False)) for tag in batch.tags]
        steps = [tag.get("min_global_steps") for tag in batch.tags]  # the weights that began each trajectory
        version, trained = None, None
        if known := [step for step in steps if step is not None]:
            # Weights are those after the last step, as verl counts staleness. What its `skip` replays states this one.
            version, trained = steps, max(self.global_steps - 1, *known)  # type: ignore[attr-defined]

        def of_sessions(data: Any, batch_keys: list[str], **_: Any) -> Any:
            metrics.update(session_advantage(self._credit, data, batch_keys, extra_fields, padding, version, trained))
            return data

        step = with_globals(of_verl.__func__, compute_advantage_for_multi_trajectories=of_sessions)
        return step(self, batch, metrics)

    def _update_actor(self, *args: Any, **kwargs: Any) -> Any:
        if self._has_credit():
            self._credit.check_ran()
        return super()._update_actor(*args, **kwargs)  # type: ignore[misc]


@register_trainer("credit_sync")
class CreditPPOTrainerSync(_Credit, PPOTrainerSync):
    """`PPOTrainerSync` with advantages of this library."""


@register_trainer("credit_colocate_async")
class CreditPPOTrainerColocateAsync(_Credit, PPOTrainerColocateAsync):
    """`PPOTrainerColocateAsync` with advantages of this library."""


@register_trainer("credit_separate_async")
class CreditPPOTrainerSeparateAsync(_Credit, PPOTrainerSeparateAsync):
    """`PPOTrainerSeparateAsync` with advantages of this library."""
