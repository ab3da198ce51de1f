"""When events begin and end among those of their trace: by their times, and by their place in the log without these.

Formats write one run in different orders: by time, or each agent's events together. So what was at once, first or last
is asked of this clock, and never of rows.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from credit.reports.durations import Durations, durations
from credit.reports.event_facts import EventFacts

__all__ = ["Clock", "TimedFacts", "clock", "first_of_each", "last_of_each"]

SAME = 1e-5
"""Seconds within which moments are one. Logs round to a microsecond, and sums of seconds since 1970 to less."""


class Clock(NamedTuple):
    """The moments of events, numbered in their order over the batch, trace after trace: int64 [events] each.

    Attributes:
      begin: when what the event took began (`durations`).
      at: its time.
      end: when it ended.
      done: when it and all of its causes had ended.
    """

    begin: np.ndarray
    at: np.ndarray
    end: np.ndarray
    done: np.ndarray


def clock(facts: EventFacts, seconds: Durations) -> Clock:
    """The moments of a batch.

    A trace has them by its times if it has durations. An event is then no earlier than its causes, whatever clocks of
    two machines say. In other traces no two events share a moment, and the log's order is theirs.

    Args:
      facts: of the batch.
      seconds: its `durations`.

    Examples:
      >>> from credit.reports.durations import durations
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()}, rewards={"team": 1.0})
      >>> _ = [record.event(name, 3, "a", action=True, time=time) for name, time in (("x", 2.5), ("y", 0.0))]
      >>> facts = EventFacts(assemble([record]))
      >>> clock(facts, durations(facts)).at.tolist()
      [1, 0]
    """
    trace = facts.trace
    timed = (np.array(seconds.reasons, object) == "")[trace].astype(bool)
    # From the first time of the trace on: what is left has more digits.
    first = facts.of_traces(np.fmin, seconds.time, np.inf)[trace]
    at = np.arange(len(trace), dtype=np.float64)
    at[timed] = (seconds.time - first)[timed]
    senders, receivers = facts.edges
    if np.any(at[receivers] < at[senders] - SAME):
        at = facts.logged.latest(at)
    begin, end = at.copy(), at.copy()
    begin[timed] -= (seconds.time - seconds.begun)[timed]
    end[timed] += (seconds.end - seconds.time)[timed]
    moments = np.empty((len(at), 3), np.complex128)  # NumPy orders complex numbers by the real part, then by the other
    moments.real, moments.imag = trace[:, None], np.stack([begin, at, end], axis=1)
    order = np.argsort(moments, axis=None, kind="stable")  # fast where most are in order
    ordered = moments.ravel()[order]
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(ordered.real) > 0) | (np.diff(ordered.imag) > SAME)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    first, middle, last = np.ascontiguousarray(number.reshape(-1, 3).T)
    waits = np.any(last[receivers] < last[senders])
    return Clock(first, middle, last, facts.logged.latest(last) if waits else last)


def last_of_each(ids: np.ndarray, rows: np.ndarray, moment: np.ndarray, count: int) -> np.ndarray:
    """The event of each id with the greatest moment, of equal ones the last of `rows`; -1 without one: int64 [count].

    Args:
      ids, moment: of each event.
      rows: the events that count.
      count: of ids.

    Examples:
      >>> last_of_each(np.array([0, 0, 1]), np.array([0, 1]), np.array([5, 3, 9]), 2).tolist()
      [0, -1]
    """
    order = rows[np.argsort(moment[rows], kind="stable")]
    last = np.full(count, -1)
    last[ids[order]] = order  # the last assignment counts
    return last


class TimedFacts(EventFacts):
    """The events of a batch and their times.

    Args:
      traces: what was read.
    """

    @functools.cached_property
    def durations(self) -> Durations:
        """How long each event took."""
        return durations(self)

    @functools.cached_property
    def clock(self) -> Clock:
        """When each event begins and ends among those of its trace."""
        return clock(self, self.durations)


def first_of_each(ids: np.ndarray, rows: np.ndarray, moment: np.ndarray, count: int) -> np.ndarray:
    """The event of each id with the least moment, of equal ones the first of `rows`; as `last_of_each`.

    Examples:
      >>> first_of_each(np.array([0, 0, 1]), np.array([0, 1]), np.array([5, 3, 9]), 2).tolist()
      [1, -1]
    """
    return last_of_each(ids, rows[::-1], -moment, count)
