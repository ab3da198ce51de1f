"""How much of the reward a ledger explains, out of sample: from what was known before the outcome, with its error.

`coverage` counts everything that the entries account for, a trace's own outcome included: the last entry of a return
is R less the value before it, so a chain of returns accounts for everything, whatever its values are. Here only cells
that hold nothing of their own trace's outcome count, against the mean of the other traces of the group, b:

    explained = 1 − Var(R − expected − Σ known cells) / Var(R − b)

which is below 0 where the entries are worse than none. Its error is that of leaving out one group at a time; groups
that hold replays of one trace are left out together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from estimators.clusters import independent_groups
from graphs.event_graph import Array, EventGraph

__all__ = ["Explained", "explained"]


class Explained(NamedTuple):
    """A share of variance and its standard error; NaN where there is none."""

    share: float
    stderr: float


def explained(
    graph: EventGraph,
    cells: Array,
    known_before: Array | None,
    total: np.ndarray,
    expected: np.ndarray,
    scored: np.ndarray,
) -> Explained:
    """The share of the variance of the reward within groups that was known before the outcome.

    Args:
      graph: uses trace, group and cluster ids.
      cells: float [E, C], the entries.
      known_before: bool [E, C], cells that hold nothing of their own trace's outcome; None: nothing can be said.
      total: float64 [T], the rewards.
      expected: float64 [T], what was expected at the start, from other traces.
      scored: bool [T], the traces that count. In groups of one, b is the mean of all other traces.

    Returns:
      `Explained`; `stderr` is the jackknife's over groups, joined where they share replays; NaN with fewer than two.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, _ = credit.from_columns(group=[0, 0, 1, 1], trace=[0, 1, 2, 3], reward=[1.0, 0.0, 2.0, 1.0])
      >>> cells = np.zeros((graph.num_events, 1))
      >>> cells[:4, 0] = [1, -1, 0.5, -0.5]
      >>> total, scored = np.asarray(reward, np.float64), np.asarray(graph.trace_mask)
      >>> expected = np.zeros_like(total)
      >>> expected[:4] = [0, 1, 1, 2]
      >>> print(explained(graph, cells, np.ones_like(cells, bool), total, expected, scored))
      Explained(share=0.875, stderr=0.125)
    """
    if known_before is None or not scored.any():
        return Explained(math.nan, math.nan)
    known = np.where(np.asarray(known_before), np.asarray(cells, np.float64), 0).sum(axis=1)
    by_trace = np.bincount(np.asarray(graph.trace_ids), known, graph.num_traces)
    group = np.unique(np.asarray(graph.group_ids)[scored], return_inverse=True)[1]
    target, left = _beside_others(total[scored], group), (total - expected - by_trace)[scored]
    size = max(float(np.abs(target).max()), float(np.abs(left).max()))
    if not size > 0:
        return Explained(math.nan, math.nan)
    target, left = (target - target.mean()) / size, (left - left.mean()) / size
    sample = np.unique(np.asarray(independent_groups(graph))[scored], return_inverse=True)[1]
    sums = np.stack([np.bincount(sample, x) for x in (np.ones_like(target), target, target**2, left, left**2)])
    whole = _share(sums.sum(axis=1)[:, None])[0]
    others = _share(sums.sum(axis=1)[:, None] - sums)
    count = len(others)
    if count < 2 or not np.isfinite(others).all():
        return Explained(float(whole), math.nan)
    return Explained(float(whole), float(np.sqrt((count - 1) / count * np.sum((others - others.mean()) ** 2))))


def _beside_others(reward: np.ndarray, group: np.ndarray) -> np.ndarray:
    """R less the mean of the other traces of its group, or of the batch in a group of one; 0 of a lone trace."""
    count = np.bincount(group)[group]
    mean = (np.bincount(group, reward)[group] - reward) / np.maximum(count - 1, 1)
    whole = (reward.sum() - reward) / max(len(reward) - 1, 1)
    return np.where(count > 1, reward - mean, reward - whole if len(reward) > 1 else 0.0)


def _share(sums: np.ndarray) -> np.ndarray:
    """1 − Var(left) / Var(target) from counts, sums and sums of squares [5, N]."""
    n = np.maximum(sums[0], 1)
    variance = sums[2] / n - (sums[1] / n) ** 2
    rest = sums[4] / n - (sums[3] / n) ** 2
    return np.where(variance > 1e-12, 1 - rest / np.where(variance > 1e-12, variance, 1), np.nan)
