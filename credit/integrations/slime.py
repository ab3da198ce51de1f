"""slime: credit in the place of slime's normalisation of rewards.

    # my_credit.py, and --custom-reward-post-process-path my_credit.post_process --advantage-estimator grpo
    post_process = CreditPostProcess("dr_mas")

Written against slime's source at 624b824.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from slime.utils.types import Sample

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from graphs.errors import CreditError

__all__ = ["CreditPostProcess"]

ESTIMATORS = ("grpo", "gspo", "cispo")
"""Those of `--advantage-estimator` that copy the number of a sample to its tokens."""

WRITE = "the rollout function writes it into the metadata of every Sample, under this name"


class CreditPostProcess:
    """A function of slime's `--custom-reward-post-process-path`: advantages of all samples of a rollout step.

    A sample is a row. Its `rollout_id` is the trace, without one the sample itself. Its `group_index` is the task.
    What its `metadata` hold under the names of `TrainerCredit.columns_of` are columns.
    A method that pays agents (`RowAdvantages.pays_agents`) reads a sample's reward as its agent's: samples of one agent
    must agree. The others read it as the rollout's: all samples of a rollout must agree. A sample whose reward is None
    gets 0.

    Args:
      credit: a method by name, or a function.
      options: keyword arguments of `RowAdvantages`, the method's and `watch`.

    Attributes:
      metrics: those of the last step.

    Raises:
      CreditError: no such method or option.
    """

    def __init__(self, credit: str | Callable[..., Any], **options: Any) -> None:
        self._credit = TrainerCredit(
            RowAdvantages(credit, **options),
            trainer="slime's source at 624b824",
            hooks={Sample: ("get_reward_value",)},
            columns=WRITE,
            evidence=True,
        )

    @property
    def metrics(self) -> dict[str, float]:
        return self._credit.metrics

    def __call__(self, args: Any, samples: Sequence[Any]) -> tuple[list[Any], list[float]]:
        """The rewards of samples, and the numbers in their place.

        Raises:
          CreditError: slime's estimator would make other numbers of these; samples without a group; a column in some
            samples only.
        """
        if args.advantage_estimator not in ESTIMATORS:
            raise CreditError(
                f"--advantage-estimator is {args.advantage_estimator!r}, which takes these numbers for rewards; "
                f"expected one of {', '.join(ESTIMATORS)}, which copy them to the tokens"
            )
        group = [sample.group_index for sample in samples]
        if None in group:
            raise CreditError(f"sample {group.index(None)} has no group_index, which says whom it is compared with")
        raw = [None if sample.reward is None else sample.get_reward_value(args) for sample in samples]
        reward = np.array([np.nan if value is None else value for value in raw], np.float64)
        result = self._credit(
            group=group,
            trace=[f"single {i}" if s.rollout_id is None else str(s.rollout_id) for i, s in enumerate(samples)],
            reward=reward,
            agent_reward=reward,
            policy_version=[_version(sample) for sample in samples],
            **self._credit.columns_of([sample.metadata for sample in samples]),
        )
        numbers: list[float] = result.advantages.tolist()
        return raw, numbers


def _version(sample: Any) -> float:
    """The version of the weights that wrote the end of a sample; NaN where it states none, or no number."""
    last = sample.weight_versions[-1] if sample.weight_versions else ""
    return float(last) if last.isdecimal() else np.nan
