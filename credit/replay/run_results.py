"""What came of a plan: rewards, failures, and the means that they give."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

__all__ = ["Results"]


@dataclasses.dataclass(frozen=True)
class Results:
    """What came of a plan so far.

    Attributes:
      rewards: by job, the rewards of its runs by run number.
      failed: by job, numbers of runs that failed at every attempt.
      strayed: jobs whose prefix did not reproduce; their outcomes are no evidence.
      tokens: tokens spent, as far as the driver said.
    """

    rewards: tuple[dict[int, float], ...]
    failed: tuple[frozenset[int], ...]
    strayed: frozenset[int]
    tokens: int

    @property
    def done(self) -> int:
        """Runs with an outcome."""
        return sum(map(len, self.rewards))

    def mean_and_stderr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By job: mean reward (NaN without runs), standard error (infinite below two runs) and number of runs.

        A job whose prefix did not reproduce has no runs.
        """
        columns = []
        for job, by_run in enumerate(self.rewards):
            y = np.array(list(by_run.values()) if job not in self.strayed else [], np.float64)
            stderr = float(y.std(ddof=1) / math.sqrt(len(y))) if len(y) > 1 else math.inf
            columns.append((float(y.mean()) if len(y) else math.nan, stderr, len(y)))
        table = np.array(columns, np.float64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2].astype(np.int64)
