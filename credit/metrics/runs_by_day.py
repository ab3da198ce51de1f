"""Runs, failures and cost of each day, or of each hour of a short log."""

from __future__ import annotations

import dataclasses
import datetime

import numpy as np

from credit.metrics.counted_runs import counted_runs
from credit.metrics.event_costs import Prices
from credit.reports.deciding_verdict import deciding_verdict
from credit.reports.durations import begins
from credit.reports.judged_traces import judged_traces
from credit.reports.verdict_channels import of_one_source
from graphs.traces.batch import Traces

__all__ = ["Period", "RunsByDay", "runs_by_day"]

HOUR, DAY = 3600, 86400
SHORT = 2 * DAY
"""Seconds that a log spans whose hours are told."""


@dataclasses.dataclass(frozen=True)
class Period:
    """A day, or an hour, in which some run began.

    Attributes:
      begin: when, in UTC.
      traces: that began in it.
      failed, known: how many of these failed, of how many with an outcome.
      cost: of these traces; None where none is known. A lower bound unless `whole`.
    """

    begin: str
    traces: int
    failed: int
    known: int
    cost: float | None
    whole: bool


@dataclasses.dataclass(frozen=True)
class RunsByDay:
    """Periods in their order, none without a run.

    Attributes:
      unit: "day" or "hour".
      kinds: what failed and succeeded traces are called.
      paid_in: what the cost is known in, in words; "" of none.
      undated: traces of which the log states no date.
      verdict: that which decides who has an outcome; "" where none does.
    """

    periods: tuple[Period, ...]
    unit: str
    kinds: tuple[str, str]
    paid_in: str
    undated: int
    verdict: str = ""


def runs_by_day(traces: Traces, success_at: float | None = None, prices: Prices | None = None) -> RunsByDay:
    """Count the runs that began in each day, in UTC, or in each hour where all began within `SHORT`.

    Args:
      traces: what was read.
      success_at: as of `judged_traces`.
      prices: of models and tools.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> runs_by_day(rows.traces).periods, runs_by_day(rows.traces).undated
      ((), 2)
    """
    traces = of_one_source(traces)
    begin, judged = begins(traces), judged_traces(traces, success_at)
    dated = np.flatnonzero(np.isfinite(begin))
    step = HOUR if len(dated) and np.ptp(begin[dated]) <= SHORT else DAY
    moments, of = np.unique(begin[dated] // step, return_inverse=True)
    place = np.full(len(begin), len(moments))
    place[dated] = of
    counted, paid_in = counted_runs(traces, place, len(moments), judged, prices)
    dates = (datetime.datetime.fromtimestamp(moment * step, datetime.UTC) for moment in moments.tolist())
    begun = (f"{at:%Y-%m-%d %H:00}"[: None if step == HOUR else 10] for at in dates)
    periods = tuple(Period(at, *one) for at, one in zip(begun, counted, strict=True))
    name = "hour" if step == HOUR else "day"
    verdict, _ = deciding_verdict(traces) or ("", None)
    return RunsByDay(periods, name, judged.kinds, paid_in, len(begin) - len(dated), verdict)
