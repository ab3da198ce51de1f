"""How much of the reward a ledger explains, out of sample: from what was known before the outcome, with its error.

`coverage` counts everything that the entries account for, a trace's own outcome included: the last entry of a return
is R less the value before it, so a chain of returns accounts for everything, whatever its values are. Here only cells
that hold nothing of their own trace's outcome count:

    explained = 1 − mean (R − V − Σ known cells)² / mean of half the squared differences to others' rewards
    explained = 1 − Var(R − b − Σ known cells) / Var(R − b)       without `expected`

V is `expected`, and b the mean of the other traces of the group. Half the mean squared difference in a group of K is
its variance by K − 1. b has noise that V has not: against Var(R − b), V = 0.5 explained 1 / K of fair coins. Entries
of 0 explain 0, with V the mean, and what is worse explains less. With V, a trace alone in its group does not count.

Replays share choices: means over others leave those of the trace out, and count others as one sample. Where a group has
no other sample, b is the mean of the other samples of the batch. The error is that of leaving out one group at a time;
groups that hold replays of one trace are left out together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from estimators.clusters import independent_groups
from graphs.event_graph import Array, EventGraph

__all__ = ["Explained", "explained"]

ROUNDING = 1e-12
"""Of the largest reward, up to which a difference in double precision is rounding."""


class Explained(NamedTuple):
    """A share of variance and its standard error; NaN where there is none."""

    share: float
    stderr: float


def explained(
    graph: EventGraph,
    cells: Array,
    known_before: Array | None,
    total: np.ndarray,
    expected: np.ndarray | None,
    scored: np.ndarray,
) -> Explained:
    """The share of the variance of the reward within groups that was known before the outcome.

    Args:
      graph: uses trace, group and cluster ids, and which traces have an action in training.
      cells: float [E, C], the entries.
      known_before: bool [E, C], cells that hold nothing of their own trace's outcome; None: nothing can be said.
      total: float64 [T], the rewards.
      expected: float64 [T], V, which must not depend on the trace's own outcome; None: nobody stated it.
      scored: bool [T], the traces that count.

    Returns:
      `Explained`; `stderr` is the jackknife's over groups, joined where they share replays; NaN with fewer than two.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, _ = credit.from_columns(group=[0, 0, 1, 1], trace=[0, 1, 2, 3], reward=[1.0, 0.0, 2.0, 1.0])
      >>> cells = np.zeros((graph.num_events, 1))
      >>> cells[:4, 0] = [1, -1, 0.5, -0.5]
      >>> total, scored = np.asarray(reward, np.float64), np.asarray(graph.trace_mask)
      >>> print(explained(graph, cells, np.ones_like(cells, bool), total, None, scored))
      Explained(share=0.875, stderr=0.125)
    """
    if known_before is None or not scored.any():
        return Explained(math.nan, math.nan)
    known = np.where(np.asarray(known_before), np.asarray(cells, np.float64), 0).sum(axis=1)
    by_trace = np.bincount(np.asarray(graph.trace_ids), known, graph.num_traces)
    if expected is None:
        difference = total - _baseline(graph, total, scored)
        kept, left = scored, difference - by_trace
        target, left = (x - x[kept].mean() for x in (difference, left))
    else:
        target = np.sqrt(_half_squared_difference(graph, total, scored))
        kept, left = scored & np.isfinite(target), total - expected - by_trace
    target, left = target[kept], left[kept]
    size = max(float(np.abs(target).max(initial=0)), float(np.abs(left).max(initial=0)))
    if not size > ROUNDING * float(np.abs(total[scored]).max()):
        return Explained(math.nan, math.nan)
    target, left = target / size, left / size
    shift = (target, left) if expected is None else (np.zeros_like(target),) * 2
    sample = np.unique(np.asarray(independent_groups(graph))[kept], return_inverse=True)[1]
    sums = np.stack([np.bincount(sample, x) for x in (np.ones_like(target), shift[0], target**2, shift[1], left**2)])
    whole = _share(sums.sum(axis=1)[:, None])[0]
    others = _share(sums.sum(axis=1)[:, None] - sums)
    count = len(others)
    if count < 2 or not np.isfinite(others).all():
        return Explained(float(whole), math.nan)
    return Explained(float(whole), float(np.sqrt((count - 1) / count * np.sum((others - others.mean()) ** 2))))


def _baseline(graph: EventGraph, reward: np.ndarray, scored: np.ndarray) -> np.ndarray:
    """The mean reward of the other samples of each trace's group, of the batch where it has none, else its own: [T]."""
    cluster, counts = _samples(graph, scored)
    of_group = _over_samples(np.asarray(graph.group_ids).astype(np.int64), cluster, reward, counts)
    of_batch = _over_samples(np.zeros(len(reward), np.int64), cluster, reward, counts)
    mean: np.ndarray = np.where(np.isnan(of_group), of_batch, of_group)
    mean = np.where(np.isnan(mean), reward, mean)
    return mean


def _half_squared_difference(graph: EventGraph, reward: np.ndarray, scored: np.ndarray) -> np.ndarray:
    """Half the mean of (R − R')² over rewards R' of the other samples of the group; NaN where there is none: [T]."""
    cluster, counts = _samples(graph, scored)
    group = np.asarray(graph.group_ids).astype(np.int64)
    size = np.maximum(np.bincount(group[counts], minlength=len(group)), 1)
    centred = np.where(scored, reward - (np.bincount(group[counts], reward[counts], len(group)) / size)[group], 0)
    first, second = (_over_samples(group, cluster, x, counts) for x in (centred, centred**2))
    half: np.ndarray = np.maximum((centred - first) ** 2 + second - first**2, 0) / 2
    return half


def _samples(graph: EventGraph, scored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cluster of replays of each trace, which is one sample, and which traces count: int64 [T], bool [T].

    Those count in which somebody in training acted.
    """
    num = graph.num_traces
    cluster = np.arange(num) if graph.cluster_ids is None else np.asarray(graph.cluster_ids).astype(np.int64)
    actions = np.asarray(graph.event_mask) & np.asarray(graph.trained_mask)
    return cluster, scored & (np.bincount(np.asarray(graph.trace_ids)[actions], minlength=num) > 0)


def _over_samples(key: np.ndarray, cluster: np.ndarray, reward: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The mean over the samples of a trace's key but its own; NaN where there is none: [T]."""
    _, first, sample = np.unique(key * len(key) + cluster, return_index=True, return_inverse=True)
    size = np.bincount(sample[counts], minlength=len(first))
    # Relative to one reward of the key, so that equal rewards differ from their mean by exactly 0.
    reference = np.zeros(len(key))
    reference[key[counts][::-1]] = reward[counts][::-1]
    relative = (reward - reference[key])[counts]
    mean = np.bincount(sample[counts], relative, len(first)) / np.maximum(size, 1)
    samples = np.bincount(key[first], size > 0)[key] - (size > 0)[sample]
    total = np.bincount(key[first], mean)[key] - mean[sample]
    apart = np.divide(total, samples, out=np.full(len(key), np.nan), where=samples > 0)
    mean_of_others: np.ndarray = reference[key] + apart
    return mean_of_others


def _share(sums: np.ndarray) -> np.ndarray:
    """1 − Var(left) / Var(target) from counts, sums and sums of squares [5, N]."""
    n = np.maximum(sums[0], 1)
    variance = sums[2] / n - (sums[1] / n) ** 2
    rest = sums[4] / n - (sums[3] / n) ** 2
    return np.where(variance > 1e-12, 1 - rest / np.where(variance > 1e-12, variance, 1), np.nan)
