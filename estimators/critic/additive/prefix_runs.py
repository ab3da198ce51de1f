"""Further runs from prefixes, as outcomes that an additive critic is fitted to."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from estimators.critic.additive.additive_columns import events_of, sums_by_place
from estimators.critic.additive.posterior import Outcomes
from estimators.critic.data import CriticData

__all__ = ["Prefixes", "outcomes_of_runs", "prefix_columns", "prefixes_with_runs"]

MOST_NUMBERS = 10_000_000
"""Sums by place that are held at a time, before those without a weight are dropped."""


class Prefixes(NamedTuple):
    """Prefixes that runs were made from.

    Attributes:
      first: int64 [K], the first event of the trace, in the corpus.
      length: int64 [K], events of the prefix, 0 or more.
      runs: float64 [K], number of runs.
      mean: float64 [K], their mean outcome.
    """

    first: np.ndarray
    length: np.ndarray
    runs: np.ndarray
    mean: np.ndarray


def prefixes_with_runs(corpus: CriticData, traces: np.ndarray) -> Prefixes:
    """The prefixes of some traces that runs were made from."""
    event, trace = events_of(corpus, traces)
    ran = corpus.runs[event] > 0
    event, first = event[ran], corpus.start[:-1][traces[trace[ran]]]
    return Prefixes(
        first, event - first, corpus.runs[event].astype(np.float64), corpus.run_mean[event].astype(np.float64)
    )


def prefix_columns(
    x: np.ndarray, keys: np.ndarray, prefixes: Prefixes, places: list[np.ndarray], varies: list[np.ndarray]
) -> np.ndarray:
    """Sums of x over the events of each prefix, in the columns that `levels_of` gave whole traces: float64 [K, C].

    Args:
      x: float64 [E, J], numbers of all events of the corpus.
      keys: int64 [4, E], their places.
      prefixes: K of them.
      places, varies: as `levels_of` returns them.
    """
    widest = max((kept.size for kept in varies), default=1)
    size = max(1, MOST_NUMBERS // max(widest, 1))
    out = np.empty((len(prefixes.length), int(sum(kept.sum() for kept in varies))))
    for begin in range(0, len(out), size):
        first, length = prefixes.first[begin : begin + size], prefixes.length[begin : begin + size]
        row = np.repeat(np.arange(len(length)), length)
        event = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length) + first[row]
        sums = [
            sums_by_place(x[event], key[event], own, row, len(length))[:, kept]
            for key, own, kept in zip(keys, places, varies, strict=False)
        ]
        out[begin : begin + size] = np.concatenate(sums, axis=1)
    return out


def outcomes_of_runs(sums: np.ndarray, prefixes: Prefixes, ahead: np.ndarray, head: str, noise: float) -> Outcomes:
    """Rows for the runs of each prefix.

    Args:
      sums: float64 [K, C], from `prefix_columns`.
      prefixes: K of them.
      ahead: float64 [K], v: the variance of what is still to come after each.
      head: "bernoulli" or "value".
      noise: σ², the variance of an outcome given its trace, for head "value".
    """
    if head == "value":
        return Outcomes(sums, np.ones(len(sums)), prefixes.mean, prefixes.runs * noise / (noise + ahead))
    shrink = 1 / np.sqrt(1 + math.pi / 8 * ahead)
    return Outcomes(sums * shrink[:, None], shrink, prefixes.mean, prefixes.runs)
