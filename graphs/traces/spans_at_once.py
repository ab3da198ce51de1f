"""Which actions of a trace were at one time: their begins are equal, or one began long before another ended."""

from __future__ import annotations

import numpy as np

from graphs.event_graph import EventGraph
from graphs.traces.clock_units import CLOSE, ROUNDING

__all__ = ["moments"]

_DIGITS = 6  # of microseconds, the finest that logs state


def moments(graph: EventGraph, times: np.ndarray, took: np.ndarray, of_tables: np.ndarray) -> np.ndarray:
    """A number for each stretch of actions at one time, -1 for other events and those without a time: int [E].

    The span of an agent rightly contains those of agents that it spawned. Spans overlap only by more than the clock's
    digits and the slack of `clock_units` leave open. Of an action, the one before and the one that ends last are looked
    at.

    Args:
      graph: the batch, padded.
      times: float64 [E], begins as the log states them.
      took: seconds of each event [E], NaN where the log states none.
      of_tables: bool [T], where spans of one agent name may be those of several instances.

    Examples:
      >>> import credit
      >>> graph = credit.from_columns(group=[0] * 3, trace=["a"] * 3, agent=["x", "y", "x"], reward=[1.0] * 3)[0]
      >>> begins, took = np.array([0.0, 0.25, 2.0]), np.array([1.5, 1.75, 1.0])
      >>> moments(graph, begins, took, np.array([True]))[:3].tolist()
      [0, 0, 1]
    """
    n = len(times)
    real = np.flatnonzero(np.asarray(graph.event_mask)[:n] & np.asarray(graph.action_mask)[:n] & np.isfinite(times))
    trace, begin = np.asarray(graph.trace_ids)[real], times[real]
    agent, parent = np.asarray(graph.agent_ids)[real], np.asarray(graph.agent_parent)
    own = np.nan_to_num(took[real].astype(np.float64))
    slack = CLOSE * own + ROUNDING + _unit(trace, begin, 0.0) + _unit(trace, own, np.spacing(took[real]))
    end = begin + own - slack
    before = np.arange(len(real)) - 1
    follows = np.diff(trace, prepend=-1) == 0
    together = follows & (begin == begin[before])
    for earlier in (before, _ending_last(trace, end)):
        overlap = follows & (np.minimum(end, end[earlier]) > np.maximum(begin, begin[earlier]))
        at = np.flatnonzero(overlap)
        one = agent[at] == agent[earlier[at]]
        apart = np.where(one, of_tables[trace[at]], ~_spawned(parent, agent[at], agent[earlier[at]]))
        together[at[apart]] = True
    found = np.full(graph.num_events, -1)
    found[real] = np.cumsum(~together) - 1
    return found


def _ending_last(trace: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The place of the action before each in its trace that ends last; where there is none, any."""
    rank = np.empty(len(end), np.int64)
    by_end = np.lexsort((end, trace))  # a later trace ranks above all of an earlier one
    rank[by_end] = np.arange(len(end))
    return by_end[np.maximum.accumulate(rank)[np.arange(len(end)) - 1]]


def _unit(trace: np.ndarray, numbers: np.ndarray, left: np.ndarray | float) -> np.ndarray:
    """The unit of the last digit that a trace's numbers have, at each of them.

    Args:
      left: what their type leaves beside what float64 does.
    """
    unit = np.full(trace.max(initial=-1) + 1, 10.0**-_DIGITS)
    rounding = np.nan_to_num(left) + 2 * np.spacing(np.abs(numbers))
    for digits in range(_DIGITS - 1, -1, -1):
        odd = np.abs(numbers * 10.0**digits - np.round(numbers * 10.0**digits)) > rounding * 10.0**digits
        unit[np.bincount(trace, odd, len(unit)) == 0] = 10.0**-digits
    of_each: np.ndarray = unit[trace]
    return of_each


def _spawned(parent: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether one agent of a pair is an ancestor of the other: bool [pairs]."""
    found = np.zeros(len(one), bool)
    for low, high in ((one, other), (other, one)):
        while (parent[low] != low).any():
            low = parent[low]
            found |= low == high
    return found
