"""Whether tasks that have traces of two kinds are compared alone, or others with them.

Kinds are sides, or failed and succeeded traces. A task of both is compared with itself, whatever its difficulty. A few
of them say nothing, though: beside 130 tickets of one release each, 4 of both made success rise where it fell.
"""

from __future__ import annotations

import numpy as np

from graphs.task_means import LEAST_OF_BOTH

__all__ = ["compared_alone", "tasks_alone"]

MOST = 1 / 3
"""The part of all traces from which these tasks are compared alone, however few."""


def compared_alone(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether tasks with traces of both kinds are compared alone.

    They are where they have `MOST` of the traces, or tell as much as `LEAST_OF_BOTH` pairs, of which n and m traces are
    2 n m / (n + m).

    Args:
      first, second: how many traces of each kind a task has: int [tasks].

    Reference: Cochran 1954, Some methods for strengthening the common χ² tests.

    Examples:
      >>> compared_alone(np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 1]))
      True
      >>> compared_alone(np.repeat([1, 0], [22, 18]), np.repeat([0, 1], [18, 22]))
      False
    """
    both = (first > 0) & (second > 0)
    pairs = float((2 * first * second / np.maximum(first + second, 1)).sum())
    some = float((first + second)[both].sum()) >= MOST * float((first + second).sum())
    return bool(both.any() and (some or pairs >= LEAST_OF_BOTH))


def tasks_alone(side: np.ndarray, task: np.ndarray) -> np.ndarray:
    """The tasks of both sides, where these are compared alone; else none.

    Args:
      side: 0 or 1 of each trace, -1 for none, or without a number: int [traces].
      task: of each trace: int [traces].

    Examples:
      >>> tasks_alone(np.array([0, 1, 1]), np.array([7, 7, 8])).tolist()
      [7]
    """
    tasks, of = np.unique(task, return_inverse=True)
    first, second = (np.bincount(of[side == one], minlength=len(tasks)) for one in (0, 1))
    both = (first > 0) & (second > 0)
    return tasks[both & compared_alone(first, second)]
