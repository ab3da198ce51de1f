"""How much each trace counts where two sides are compared: both get one mix of tasks, or of kinds of tasks."""

from __future__ import annotations

import numpy as np

from graphs.compared_alone import tasks_alone
from graphs.kind_means import stratum_shares

__all__ = ["compared_in", "side_weights"]


def compared_in(side: np.ndarray, task: np.ndarray, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which traces are compared, bool [traces], and the kind of tasks that each is compared within, int [traces].

    Tasks that both sides have are compared with themselves, whatever their kind (`tasks_alone`). Where these are none,
    or too few, tasks are compared within the kinds that both sides have; where there are none of these either, all with
    all.

    Args:
      side: 0 or 1 of each trace, -1 for none, or without a number: int [traces].
      task: of each trace: int [traces].
      kind: of each trace, one of a task (`credit.reports.task_kinds`): int [traces].

    Examples:
      >>> side, kind = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])
      >>> [one.tolist() for one in compared_in(side, np.array([1, 2, 3, 4]), kind)]
      [[True, False, True, True], [0, 1, 0, 0]]
      >>> [one.tolist() for one in compared_in(side, np.array([1, 2, 2, 4]), kind)]
      [[False, True, True, False], [0, 0, 0, 0]]
    """
    all_alike = np.zeros(len(side), int)
    kinds = np.intersect1d(kind[side == 0], kind[side == 1])
    for both, of, stratum in ((tasks_alone(side, task), task, all_alike), (kinds, kind, kind)):
        if len(both):
            return (side >= 0) & np.isin(of, both), stratum
    return side >= 0, all_alike


def side_weights(value: np.ndarray, side: np.ndarray, task: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """How much each trace counts in the means of two sides that `side_differences` compares: float [2, traces].

    Args:
      value: of each trace, NaN where it is not known: float [traces].
      side, task, kind: as of `compared_in`.
    """
    known = np.where(np.isfinite(value), side, -1)
    kept, stratum = compared_in(known, task, kind)
    return _task_weights(np.where(kept, known, -1), task, stratum)


def _task_weights(side: np.ndarray, task: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """The same of traces that are compared in known strata.

    Tasks of a stratum count alike on a side, and strata have their `stratum_shares` on both.

    Args:
      side: 0 or 1 of each trace, -1 for one that is not compared: int [traces].
      task: of each trace: int [traces].
      stratum: of each trace, one of a task: int [traces].
    """
    _, of = np.unique(stratum, return_inverse=True)
    count, weights = np.zeros((2, of.max() + 1)), np.zeros((2, len(side)))
    for one in (0, 1):
        rows = np.flatnonzero(side == one)
        _, place, run, runs = np.unique(task[rows], return_index=True, return_inverse=True, return_counts=True)
        count[one] = np.bincount(of[rows[place]], minlength=count.shape[1])
        weights[one, rows] = 1 / runs[run]
    scaled: np.ndarray = weights * (stratum_shares(count) / np.maximum(count, 1))[:, of]
    return scaled
