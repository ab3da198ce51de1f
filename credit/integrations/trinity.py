"""Trinity-RFT: an advantage function with advantages of this library, named in the configuration.

    algorithm:
      algorithm_type: multi_step_grpo     # or another whose advantages are computed in the pipeline
      advantage_fn: credit.integrations.trinity.CreditAdvantage
      advantage_fn_args: {credit: dr_mas}

Written against Trinity-RFT 0.6.0.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
from trinity.algorithm.advantage_fn.advantage_fn import AdvantageFn
from trinity.buffer.operators import ExperienceOperator

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from graphs.errors import CreditError

__all__ = ["CreditAdvantage"]

WRITE = "the workflow writes it into info of every Experience, under this name"
HOOKS = {AdvantageFn: ("compute_in_trainer",)}  # the others are abstract there: Python refuses a class that lacks one


class CreditAdvantage(AdvantageFn, ExperienceOperator):
    """An experience is a row, its run a trace, its task in the batch a group; `eid.step` tells order and turn.

    The outcome of a run is the reward of its last step, as in Trinity's `step_wise_grpo`. What `info` holds under the
    names of `TrainerCredit.columns_of` are columns. A method that pays agents gets the reward of each experience as
    its agent's. A run whose reward is None gets 0 and enters no baseline.

    Args:
      credit: a method by name.
      options: keyword arguments of `RowAdvantages`, the method's and `watch`.

    Raises:
      CreditError: no such method or option.
    """

    def __init__(self, credit: str = "rloo", **options: Any) -> None:
        rows = RowAdvantages(credit, **options)
        self._credit = TrainerCredit(rows, trainer="Trinity-RFT 0.6.0", hooks=HOOKS, columns=WRITE, evidence=True)

    def __call__(self, exps: Any, **_: Any) -> tuple[Any, dict[str, float]]:
        """As `process`; Trinity's trainers call it, with batches whose rows name no runs.

        Raises:
          CreditError: always, but for a list of experiences.
        """
        if isinstance(exps, list):
            return self.process(exps)
        raise CreditError(
            f"Trinity's trainer passes a {type(exps).__name__}, which names no runs; set algorithm_type to one that "
            "computes advantages in the pipeline, such as multi_step_grpo"
        )

    def process(self, exps: list[Any]) -> tuple[list[Any], dict[str, float]]:
        """Write `advantages` and `returns` of each experience; the metrics are those of the credit.

        Raises:
          CreditError: two experiences are one step of one run by one agent; a column in some experiences only.
        """
        runs = [exp.eid.rid for exp in exps]
        step = np.array([exp.eid.step for exp in exps], np.int64)
        columns = self._credit.columns_of([exp.info for exp in exps])
        places = Counter(zip(runs, step.tolist(), columns.get("agent", runs), strict=True))
        if several := [place for place, count in places.items() if count > 1]:
            run, number, _ = several[0]
            raise CreditError(
                f"{places[several[0]]} experiences of run {run!r} are its step {number}; expected another eid.step, or "
                "eid.run, in each"
            )
        of_rows = np.array([np.nan if exp.reward is None else exp.reward for exp in exps], np.float64)
        last = {runs[row]: row for row in np.argsort(step, kind="stable").tolist()}
        result = self._credit(
            group=[exp.eid.tid for exp in exps],
            trace=runs,
            order=step,
            reward=of_rows[[last[run] for run in runs]],
            agent_reward=of_rows,
            policy_version=[exp.info.get("model_version") for exp in exps],
            **{"turn": step, **columns},
        )
        # Two tensors for each experience, as Trinity's own functions make: 6 of the 10 ms that 1,024 of them take.
        zero = torch.zeros(())  # made once: a number of Python's becomes a tensor at each call
        for exp, value in zip(exps, torch.from_numpy(result.advantages).unbind(), strict=True):
            exp.advantages = torch.where(exp.action_mask.bool(), value, zero)
            exp.returns = exp.advantages.clone()
        return exps, result.metrics

    @classmethod
    def default_args(cls) -> dict[str, Any]:
        """Trinity's defaults of `advantage_fn_args`."""
        return {"credit": "rloo"}

    @classmethod
    def compute_in_trainer(cls) -> bool:
        """False: the pipeline computes it, where experiences know their runs."""
        return False
