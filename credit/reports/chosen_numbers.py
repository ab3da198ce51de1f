"""Numbers that traces lack by what they would be, so that those that have one are a choice.

Where a log keeps arguments of calls out, calls of one tool in a row may be a loop, and a call that succeeded after one
that failed may be the same. Traces without such calls have a number, which is 0.
"""

from __future__ import annotations

import numpy as np

from credit.reports.trace_numbers import TraceMetric
from graphs.dealing import dealt
from graphs.distinct_columns import distinct_columns
from graphs.task_means import LEVEL
from graphs.traces.batch import Traces

__all__ = ["LACK", "NO_ARGUMENTS", "are_chosen", "of_known_logs"]

LACK = 0.1
"""Part of the traces that may lack a number that others have, of a log or of a kind of a task, if it is told."""
NO_ARGUMENTS = "the log has no arguments of calls"


def are_chosen(used: np.ndarray, second: np.ndarray, stratum: np.ndarray, cell: np.ndarray, asked: np.ndarray) -> bool:
    """Whether those that have a number may be a choice by what it is: more than `LACK` of a kind lack it in cells where
    others have it, or one kind more than the other beyond chance.

    A cell, of one task and format, in which no trace has it makes no choice among its traces.

    Args:
      used: which traces have the number: bool [n].
      second: of which of two kinds each is: bool [n].
      stratum: within which kinds are compared, as tasks: int [n].
      cell: of each: int [n].
      asked: which ones are compared: bool [n].
    """
    rows = asked & (np.bincount(cell, used & asked) > 0)[cell]
    lost, bad = ~used[rows], second[rows]
    if any(kind.any() and lost[kind].mean() > LACK for kind in (bad, ~bad)):
        return True
    return bool(lost.any()) and dealt(lost.astype(np.float64), bad, stratum[rows]).p < LEVEL


def of_known_logs(traces: Traces, metric: TraceMetric) -> TraceMetric:
    """The metric without traces of a format and a system of which more than `LACK` lack it for want of arguments.

    Args:
      traces: what was read.
      metric: of every trace.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> of_known_logs(rows.traces, TraceMetric(np.array([0, 0, np.nan]), ["", "", NO_ARGUMENTS])).reasons
      ['the log has no arguments of calls', 'the log has no arguments of calls', 'the log has no arguments of calls']
    """
    lost, known = np.array(metric.reasons) == NO_ARGUMENTS, np.isfinite(metric.value)
    names = np.array([[name or "" for name in traces.traces[of].to_pylist()] for of in ("format", "system")], str)
    log = distinct_columns(*names).of
    out = known & (np.bincount(log, lost) > LACK * np.bincount(log, lost | known))[log]
    reasons = [NO_ARGUMENTS if left else why for left, why in zip(out, metric.reasons, strict=True)]
    return TraceMetric(np.where(out, np.nan, metric.value), reasons)
