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


def time_notes(headings: Sequence[Heading], times: np.ndarray, counts: np.ndarray) -> Iterator[Problem]:
    """A note for each way in which times cannot be seconds of one clock, at the first trace of each.

    Args:
      headings: of the traces [T].
      times: float64 [E], trace by trace, NaN where absent.
      counts: events of each trace [T].
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
