"""Ranks with ties, and correlations that say when they are not defined."""

from __future__ import annotations

import numpy as np

__all__ = ["correlation", "mean_ranks"]


def mean_ranks(x: np.ndarray, key: np.ndarray | None = None) -> np.ndarray:
    """Rank of each number from 0, within its key where one is given; equal numbers share the mean of theirs: [N].

    Examples:
      >>> import numpy as np
      >>> mean_ranks(np.array([3.0, 1.0, 3.0])).tolist()
      [1.5, 0.0, 1.5]
    """
    order = np.argsort(x, kind="stable") if key is None else np.lexsort((x, key))
    key = np.zeros(len(x), np.int64) if key is None else key
    first_of_key = np.maximum.accumulate(np.where(np.diff(key[order], prepend=-1) != 0, np.arange(len(x)), 0))
    new = np.ones(len(x), bool)
    new[1:] = (np.diff(x[order]) > 0) | (np.diff(key[order]) != 0)
    tie = np.cumsum(new) - 1
    mean = np.bincount(tie, np.arange(len(x)) - first_of_key) / np.maximum(np.bincount(tie), 1)
    ranks = np.empty(len(x))
    ranks[order] = mean[tie]
    return ranks


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation; of ranks, Spearman's. NaN where one of the two does not vary."""
    if len(x) < 2 or not (np.ptp(x) > 0 and np.ptp(y) > 0):
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))
