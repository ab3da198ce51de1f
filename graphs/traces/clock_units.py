"""Times in another unit than their format's, and of no clock: information, since each may be meant so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from graphs.errors import Problem
from graphs.traces.part import Heading

__all__ = ["time_notes"]

_LATEST = 1e11  # seconds since 1970: in the year 5138, and of the clocks of today in milliseconds in 1973
_LONGEST = 1e8  # seconds between two times of a trace: three years
_TODAY = (1.4e9, 2.1e9)  # seconds since 1970: from 2014 to 2036
_RUN = 1e6  # seconds between the times of one trace of today, by which those of a clock that starts at 0 are told apart
_SCALES = (1e3, 1e6, 1e9)


_CLOSE, _ROUNDING = 0.02, 0.002
"""Part of what an event took, and seconds, by which its begin and the end before it may differ."""
_LEAST_PAIRS, _MOST, _SOME = 20, 0.9, 0.1
"""Pairs of events that follow one another; parts of them that fit ends, and that would overlap as begins."""


def time_notes(
    headings: Sequence[Heading], times: np.ndarray, counts: np.ndarray, seconds: np.ndarray | None = None
) -> Iterator[Problem]:
    """A note for each way in which times cannot be seconds of one clock, at the first trace of each.

    Args:
      headings: of the traces [T].
      times: float64 [E], trace by trace, NaN where absent.
      counts: events of each trace [T].
      seconds: what each event took [E], NaN where absent; None where no event has any.
    """
    traces = np.flatnonzero(counts)
    if not len(traces):
        return
    starts = (np.cumsum(counts) - counts)[traces]
    first, last = np.fmin.reduceat(times, starts), np.fmax.reduceat(times, starts)
    late = last > _LATEST
    found = [
        (
            late,
            last,
            "seconds since 1970: if these are milliseconds or less, all durations are too long by 1,000 or more",
        )
    ]
    apart = ~late & (last - first > _LONGEST)
    found.append(
        (apart, first, "times of one unit and one clock: another of the trace is years later, so durations are wrong")
    )
    for scale in _SCALES:
        is_today = (_TODAY[0] < first * scale) & (first * scale < _TODAY[1])
        small = is_today & (first < last) & ((last - first) * scale < _RUN)
        expected = (
            f"the unit of the format: these are times of today divided by {scale:,.0f}, and all durations too short"
        )
        found.append((small, first, expected))
    for of, shown, expected in found:
        if of.any():
            at = int(np.argmax(of))
            heading = headings[traces[at]]
            value, count = str(float(shown[at])), int(of.sum())
            yield Problem(
                "time-unit", heading.file, heading.line, "time", value, expected, heading.trace_id, count=count
            )
    if seconds is not None:
        yield from _ends(headings, times, counts, seconds)


def _ends(headings: Sequence[Heading], times: np.ndarray, counts: np.ndarray, seconds: np.ndarray) -> Iterator[Problem]:
    """A note on times that are the ends of events with seconds, of which the begins are expected.

    Where each event begins as the one before ends, the time from one to the next is what the later took, if these are
    ends, and what the earlier took, if they are begins. Calls at once are neither.
    """
    rows = np.flatnonzero(np.isfinite(times) & (seconds > 0))
    trace = np.repeat(np.arange(len(counts)), counts)[rows]
    gap, took = np.diff(times[rows]), seconds[rows].astype(np.float64)
    pairs = np.diff(trace) == 0
    late = pairs & (np.abs(gap - took[1:]) <= np.maximum(_CLOSE * took[1:], _ROUNDING))
    overlap = late & (took[:-1] > gap * (1 + _CLOSE) + _ROUNDING)
    total = int(pairs.sum())
    if total < _LEAST_PAIRS or late.sum() < _MOST * total or overlap.sum() < _SOME * total:
        return
    heading = headings[int(trace[np.flatnonzero(overlap)[0]])]
    shown = f"the end of rows with `seconds`: {int(late.sum())} of {total} follow the one before after what they took"
    expected = "the begin of these, or no `seconds`: durations and wall clock are wrong"
    yield Problem("times-of-ends", heading.file, heading.line, "time", shown, expected, heading.trace_id)
