"""Results of a plan: rewards, failures and means."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["Results"]


@dataclasses.dataclass(frozen=True)
class Results:
    """Results of a plan so far.

    Attributes:
      rewards: by job, the rewards of its runs by run number.
      failed: by job, numbers of runs that failed at every attempt.
      strayed: jobs whose prefix did not reproduce, with the reason; their outcomes are no evidence.
      job_tokens: by job, tokens spent, as far as the driver said.
      alternatives: by job, what was chosen at the decision by run number; "" where the driver did not report it.
    """

    rewards: tuple[dict[int, float], ...]
    failed: tuple[frozenset[int], ...]
    strayed: Mapping[int, str]
    job_tokens: tuple[int, ...]
    alternatives: tuple[dict[int, str], ...]

    @property
    def done(self) -> int:
        """Runs with an outcome."""
        return sum(map(len, self.rewards))

    @property
    def tokens(self) -> int:
        """Tokens spent in all, as far as the driver said."""
        return sum(self.job_tokens)

    def scored(self, failed_reward: float) -> Results:
        """The results with this reward for each run that failed.

        A failure is not a low outcome: it may be of the network or of the driver. Use this only where failing is part
        of what the team does.
        """
        rewards = tuple(
            by_run | dict.fromkeys(failed, failed_reward)
            for by_run, failed in zip(self.rewards, self.failed, strict=True)
        )
        return dataclasses.replace(self, rewards=rewards, failed=tuple(frozenset() for _ in self.failed))

    def outcomes(self) -> list[np.ndarray]:
        """By job, the rewards of its runs, float64 [n]; none where the prefix did not reproduce."""
        return [
            np.array(list(by_run.values()) if job not in self.strayed else [], np.float64)
            for job, by_run in enumerate(self.rewards)
        ]

    def mean_and_spread(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By job: mean reward (NaN without runs), standard deviation (NaN below two runs) and number of runs.

        A job whose prefix did not reproduce has no runs. `stated_stderr` has the standard errors of the means.
        """
        columns = []
        for y in self.outcomes():
            spread = float(y.std(ddof=1)) if len(y) > 1 else math.nan
            columns.append((float(y.mean()) if len(y) else math.nan, spread, len(y)))
        table = np.array(columns, np.float64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2].astype(np.int64)

    def shrunk_spread(self, tasks: Sequence[str]) -> np.ndarray:
        """Standard deviation of the outcomes of each job, float64 [J], its variance averaged with that of its task.

        The spread of few runs is uncertain, and 0 where outcomes happen to agree.

            σ² = ((n − 1) s² + k m) / (n − 1 + k),      k = 2 / τ², at least 2

        s² is the variance of the job's n outcomes. m is the mean of s² over the jobs of its task, averaged with the
        mean over all jobs, which has the weight of two runs. τ² is the variance of s² / m over all jobs, less
        2 / (n − 1), the variance that normal outcomes give. Jobs of a task whose runs show no difference get one
        spread. It is 1 if no job has two runs.

        Args:
          tasks: the task of each job; rewards of one task have one scale.
        """
        _, deviation, runs = self.mean_and_spread()
        variance = np.where(runs > 1, deviation**2, 0.0)
        weight = np.maximum(runs - 1, 0)
        if not weight.sum():
            return np.ones(len(runs))
        mean = float((variance * weight).sum() / weight.sum())
        if mean <= 0:
            return np.zeros(len(runs))
        some = weight > 0
        task = np.unique(np.array(tasks), return_inverse=True)[1]
        squares, runs_of = np.bincount(task, variance * weight), np.bincount(task, weight)
        middle = ((squares + 2 * mean) / (runs_of + 2))[task]
        own_middle = (squares / np.maximum(runs_of, 1))[task]
        alike = some & (own_middle > 0)
        free = int(alike.sum()) - len(np.unique(task[alike]))  # one mean of each task is estimated
        vary = float(((variance[alike] / own_middle[alike] - 1) ** 2).sum()) / max(free, 1)
        between = vary - float(np.mean(2 / weight[alike]))
        prior = max(2 / max(between, 1e-6), 2.0)
        spread: np.ndarray = np.sqrt((variance * weight + prior * middle) / (weight + prior))
        return spread
