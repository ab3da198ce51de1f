"""The return of each trace, and which differences of returns methods see."""

from __future__ import annotations

import numpy as np

from graphs.traces.batch import Traces

__all__ = ["distinguishable", "returns"]


def returns(traces: Traces) -> np.ndarray:
    """The return of each real trace, outcome plus its rewards at events; NaN where there is no outcome: float64."""
    n = traces.sizes
    total = np.asarray(traces.reward[: n.traces], np.float64).copy()
    step = traces.evidence.get("event_reward")
    if step is not None:
        trace = np.asarray(traces.graph.trace_ids[: n.events])
        total += np.bincount(trace, np.where(step.mask, step.array, 0)[: n.events], n.traces)
    return total


def distinguishable(values: np.ndarray, key: np.ndarray, keys: int) -> tuple[np.ndarray, np.ndarray]:
    """The greatest number of each key, and whether methods, which compute in single precision, see any difference.

    XLA takes numbers below the least normal one for 0, differences included.
    """
    smallest = np.finfo(np.float32).tiny
    with np.errstate(over="ignore", invalid="ignore"):  # returns beyond single precision are alike: no method takes any
        single = values.astype(np.float32)
        single[np.abs(single) < smallest] = 0
        most, least = np.full(keys, -np.inf, np.float32), np.full(keys, np.inf, np.float32)
        np.maximum.at(most, key, single)
        np.minimum.at(least, key, single)
        return most, most - least >= smallest
