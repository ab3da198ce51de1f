"""Times in another unit than their format's, of no clock, and of ends: information, since each may be meant so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from graphs.errors import Problem
from graphs.traces.part import Heading

__all__ = ["CLOSE", "LONGEST", "ROUNDING", "begins_of_ends", "time_notes", "units_of_seconds"]

_LATEST = 1e11  # seconds since 1970: in the year 5138, and of the clocks of today in milliseconds in 1973
LONGEST = 1e8
"""Seconds between two times of one clock in a trace, at most: three years."""
_TODAY = (1.4e9, 2.1e9)  # seconds since 1970: from 2014 to 2036
_RUN = 1e6  # seconds between the times of one trace of today, by which those of a clock that starts at 0 are told apart
_SCALES = (1e3, 1e6, 1e9)


CLOSE, ROUNDING = 0.02, 0.002
"""Part of what an event took, and seconds, by which its begin and the end before it may differ."""
_LEAST_PAIRS, _MOST, _SOME = 20, 0.9, 0.1
"""Pairs of events that follow one another; parts of them that fit ends, and that would overlap as begins."""


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
    apart = ~late & (last - first > LONGEST)
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


def begins_of_ends(
    headings: Sequence[Heading], times: np.ndarray, counts: np.ndarray, seconds: np.ndarray
) -> tuple[np.ndarray, list[Problem]]:
    """The times with begins in place of ends, in formats whose events with seconds state ends; and a note for each.

    Where each event begins as the one before ends, the time from one to the next is what the later took, if these are
    ends, and what the earlier took, if they are begins. Calls at once are neither.

    Args:
      headings, times, counts: as of `time_notes`.
      seconds: what each event took [E], NaN where absent.
    """
    rows = np.flatnonzero(np.isfinite(times) & (seconds > 0))
    formats, of = np.unique([heading.format for heading in headings], return_inverse=True)
    trace = np.repeat(np.arange(len(counts)), counts)[rows]
    gap, took = np.diff(times[rows]), seconds[rows].astype(np.float64)
    pairs = np.diff(trace) == 0
    late = pairs & (np.abs(gap - took[1:]) <= np.maximum(CLOSE * took[1:], ROUNDING))
    overlap = late & (took[:-1] > gap * (1 + CLOSE) + ROUNDING)
    total, fit, crossed = (np.bincount(of[trace[1:]], rows_, len(formats)) for rows_ in (pairs, late, overlap))
    found, notes = times.copy(), []
    for number in np.flatnonzero((total >= _LEAST_PAIRS) & (fit >= _MOST * total) & (crossed >= _SOME * total)):
        ends = rows[of[trace] == number]
        found[ends] = np.maximum(times[ends] - seconds[ends], 0.0)
        heading = headings[int(trace[np.flatnonzero(overlap & (of[trace[1:]] == number))[0]])]
        shown = f"the end of rows with `seconds`: {int(fit[number])} of {int(total[number])} follow the one before "
        shown += "after what they took"
        expected = "the begin of these: it is read as `time` − `seconds`"
        notes.append(Problem("times-of-ends", heading.file, heading.line, "time", shown, expected, heading.trace_id))
    return found, notes


_UNITS = ("milliseconds", "microseconds", "nanoseconds")
_LEAST_TOOK = 100  # seconds on average, below which an agent may well do as much at once
_IDLE = 30  # an agent's next event begins after so many times what one takes, at most, in the median


def units_of_seconds(
    headings: Sequence[Heading], times: np.ndarray, counts: np.ndarray, seconds: np.ndarray, agents: np.ndarray
) -> Iterator[Problem]:
    """A note for each format whose events mostly last beyond their agent's last begin, and in another unit to its next.

    Args:
      headings, times, counts: as of `time_notes`.
      seconds: what each event took [E], NaN where absent.
      agents: the agent instance of each event [E].
    """
    rows = np.flatnonzero(np.isfinite(times) & (seconds > 0))
    if len(rows) < _LEAST_PAIRS:
        return
    rows = rows[np.lexsort((times[rows], agents[rows]))]
    follows = np.diff(agents[rows]) == 0
    last = times[rows[np.append(~follows, True)]][np.cumsum(~follows) - ~follows][follows]
    rows, gaps = rows[:-1][follows], np.diff(times[rows])[follows]
    took = seconds[rows].astype(np.float64)
    formats, of = np.unique([heading.format for heading in headings], return_inverse=True)
    trace = np.repeat(np.arange(len(counts)), counts)[rows]
    for number, name in enumerate(formats.tolist()):
        own = of[trace] == number
        beyond = times[rows] + took > last
        if own.sum() < _LEAST_PAIRS or took[own].mean() < _LEAST_TOOK or beyond[own].mean() <= 0.5:
            continue
        for scale, unit in zip(_SCALES, _UNITS, strict=True):
            serial = gaps[own] >= took[own] / scale * (1 - CLOSE) - ROUNDING
            if serial.mean() >= _MOST and np.median(took[own] / np.maximum(gaps[own], ROUNDING)) >= scale / _IDLE:
                row = np.flatnonzero(own & beyond)[0]
                heading = headings[int(trace[row])]
                value = f"{took[row]:g}, and its agent's next event begins after {gaps[row]:.3g} s"
                expected = f"seconds: these seem to be {unit}"
                expected += f", which --columns seconds=COLUMN/{scale:.0f} divides" if name == "table" else ""
                place = "time-unit", heading.file, heading.line, "seconds", value, expected, heading.trace_id
                yield Problem(*place, count=len(np.unique(trace[own & beyond])))
                break
