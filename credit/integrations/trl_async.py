"""TRL's asynchronous trainer with advantages of this library, computed where TRL computes its own: beside the rollouts.

    trainer = CreditAsyncGRPOTrainer(..., credit="rloo")     # in place of AsyncGRPOTrainer(...)

Written against TRL 1.16.0, of which it uses private names of `trl.experimental.async_grpo`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from trl.experimental.async_grpo import AsyncGRPOTrainer
from trl.experimental.async_grpo.async_rollout_worker import AsyncRolloutWorker, TrainingSequence, _AsyncRolloutLoop

from credit.hooks import require_hooks, with_globals
from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit

__all__ = ["CreditAsyncGRPOTrainer", "CreditAsyncRolloutWorker"]

TRAINER, HOOKS = "TRL 1.16.0", {_AsyncRolloutLoop: ("_score_group", "_push_metrics")}
NOTHING = TrainingSequence(input_ids=[], completion_mask=[], old_log_probs=[], rollout_id="")


def _made(credit: str | Callable[..., Any], options: Mapping[str, Any]) -> TrainerCredit:
    return TrainerCredit(RowAdvantages(credit, **options), trainer=TRAINER, hooks=HOOKS, part="one group")


class _CreditLoop(_AsyncRolloutLoop):
    """TRL's loop of rollouts, which runs in a separate process. A prompt's conversations are a group, each a trace."""

    def __init__(self, *, credit: str | Callable[..., Any], options: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._credit = _made(credit, options)
        self._credit.rows.warmup(self.num_generations)

    async def _score_group(self, group: Any) -> list[Any]:
        # TRL makes a sample of each sequence. One that stands for a conversation without any tells what that earned.
        sequences = [rows or [NOTHING] for rows in group.completions_sequences]
        samples = await super()._score_group(dataclasses.replace(group, completions_sequences=sequences))
        of_sample = np.repeat(np.arange(len(sequences)), [len(rows) for rows in sequences])
        first = np.flatnonzero(np.diff(of_sample, prepend=-1))
        result = self._credit(
            group=np.zeros(len(sequences), np.int64),
            reward=np.array([samples[place].metrics["reward"] for place in first], np.float64),
            policy_version=[group.model_version] * len(sequences),
            trained_version=self.model_version,  # at the scoring; the group may wait for its step
        )
        for sample, conversation in zip(samples, of_sample, strict=True):
            sample.advantage = float(result.advantages[conversation])
        self._push_metrics(result.metrics)
        return [sample for sample in samples if len(sample.input_ids)]


class CreditAsyncRolloutWorker(AsyncRolloutWorker):
    """TRL's worker, whose groups get advantages of this library; for `AsyncGRPOTrainer(rollout_worker=...)`.

    Args:
      credit: a method by name, or a function that a spawned process can import.
      options: keyword arguments of the method.
      kwargs: TRL's.

    Raises:
      CreditError: as `TrainerCredit`; TRL has no `_loop_cls`, by which the process takes this library's loop.
    """

    _loop_cls = _CreditLoop

    def __init__(
        self, *, credit: str | Callable[..., Any] = "rloo", options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        require_hooks(TRAINER, {AsyncRolloutWorker: ("_loop_cls", "start")})
        _made(credit, options or {})  # refused here, not there
        super().__init__(credit=credit, options=dict(options or {}), **kwargs)


class CreditAsyncGRPOTrainer(AsyncGRPOTrainer):
    """TRL's asynchronous trainer, with credit by any method; TRL's own groups, versions and importance ratios.

    A group is the conversations of one prompt, sampled under one version at their start, and whole before it is scored.

    Args:
      credit: a method by name, or a function that a spawned process can import.
      options: keyword arguments of the method.
      args, kwargs: TRL's.
    """

    def __init__(
        self,
        *args: Any,
        credit: str | Callable[..., Any] = "rloo",
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        worker = functools.partial(CreditAsyncRolloutWorker, credit=credit, options=options)
        with_globals(AsyncGRPOTrainer.__init__, AsyncRolloutWorker=worker)(self, *args, **kwargs)
