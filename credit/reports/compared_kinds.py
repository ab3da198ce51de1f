"""Failed against succeeded traces in one number, within tasks that have both, or else between tasks.

Between tasks nothing is compared where there are sides: a task of one side would stand against one of the other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from credit.reports.judged_traces import JudgedTraces, enough_within
from credit.reports.ranks import mean_ranks
from credit.reports.tasks import task_ids
from graphs.dealing import dealt
from graphs.task_means import LEAST_TASKS, LEVEL, as_tested, chance_above, task_mean
from graphs.traces.batch import Traces

__all__ = ["ComparedKinds", "compared_kinds"]


class ComparedKinds(NamedTuple):
    """Which traces are compared, and within what.

    Attributes:
      failed, told: of the traces with an outcome, whether each failed, and whether it is of either kind.
      unit: the group or task of each, within which the kinds are compared.
      task: the task of each.
      kept: whether it is compared.
      within: whether traces of one unit are compared; otherwise tasks of one kind are.
    """

    failed: np.ndarray
    told: np.ndarray
    unit: np.ndarray
    task: np.ndarray
    kept: np.ndarray
    within: bool

    def test(self, value: np.ndarray) -> tuple[float, float, float, float, float, int]:
        """The chance that a failed one has more, its interval, p, the least p, and how many tasks that rests on.

        Args:
          value: of each trace with an outcome; NaN where it has none.
        """
        rows = np.isfinite(value) & self.kept
        return _compared(value[rows], self.failed[rows], self.unit[rows], self.task[rows], self.within)


def compared_kinds(traces: Traces, judged: JudgedTraces) -> ComparedKinds:
    """Which of `judged.rows` are compared.

    Examples:
      >>> import credit
      >>> from credit.reports.judged_traces import judged_traces
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> compared_kinds(rows.traces, judged_traces(rows.traces)).test(np.array([1.0, 2.0, 1.0]))[0]
      1.0
    """
    scored = judged.rows
    failed, told = judged.failed[scored], (judged.failed | judged.succeeded)[scored]
    _, task = np.unique(task_ids(traces)[scored], return_inverse=True)
    within, unit = judged.unit is not None, judged.stratum if judged.unit is None else judged.unit
    both = (np.bincount(unit, told & failed) > 0) & (np.bincount(unit, told & ~failed) > 0)
    kept = both[unit]
    if judged.unit is None:
        alone = np.unique(task[~kept & failed]), np.unique(task[~kept & ~failed])
        within = judged.sided or (bool(kept.any()) and min(map(len, alone)) < LEAST_TASKS)
        kept = kept if within else ~kept
    return ComparedKinds(failed, told, unit, task, kept, within)


def _compared(
    value: np.ndarray, failed: np.ndarray, unit: np.ndarray, task: np.ndarray, within: bool
) -> tuple[float, float, float, float, float, int]:
    nan = math.nan
    if not within:  # a task becomes one number, and all tasks one stratum
        _, task = np.unique(task, return_inverse=True)
        size = np.maximum(np.bincount(task), 1)
        value, failed = np.bincount(task, value) / size, np.bincount(task, failed) > 0
        chance, low, high = chance_above(value[failed], value[~failed])
        enough, tasks = min(int(failed.sum()), int((~failed).sum())) >= LEAST_TASKS, len(value)
        unit = np.zeros(tasks, np.int64)
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    n, m = np.bincount(unit, failed), np.bincount(unit, ~failed)
    usable = (n > 0) & (m > 0)  # a group may lack the number in all traces of a kind
    pairs, rank = np.where(usable, n * m, 1), mean_ranks(value, unit)
    if within:
        above = ((np.bincount(unit, rank * failed) - n * (n - 1) / 2) / pairs)[usable]
        _, of = np.unique(task[first][usable], return_inverse=True)
        groups = np.bincount(of)
        pairs[usable] = pairs[usable] * groups[of]  # a task counts once, however many groups it has
        above = np.bincount(of, above, len(groups)) / groups
        chance, low, high, _ = task_mean(above, 0.5)
        enough, tasks = enough_within(n[usable], m[usable]), int(np.count_nonzero(above != 0.5))
    if not enough:
        return chance, nan, nan, nan, nan, tasks
    p, least = dealt(rank / pairs[unit], failed, unit)
    p = p if least < LEVEL else nan
    low, high = as_tested((low, high), p, 0.5)
    return chance, max(low, 0.0), min(high, 1.0), p, least, tasks
