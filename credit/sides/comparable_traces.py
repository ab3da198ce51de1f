"""Which traces have a number that the other side's may be compared with."""

from __future__ import annotations

import collections
from collections.abc import Mapping

import numpy as np

from credit.metrics.trace_costs import SILENT, UNCOUNTED, UNPRICED, UNSTATED_COST
from credit.reports.chosen_numbers import NO_ARGUMENTS, are_chosen
from credit.reports.endings import ended_early
from credit.reports.missing_lines import lacking_traces
from credit.reports.tasks import UNTOLD
from credit.reports.trace_numbers import TraceMetric, of_untold_tasks
from credit.reports.uncounted_calls import OF_TOOL_CALLS
from credit.sides.asked_metrics import FIRST
from graphs.compared_alone import tasks_alone
from graphs.traces.batch import Traces

__all__ = [
    "EARLY",
    "of_like_parts",
    "of_told_tasks",
    "of_unchosen",
    "of_whole_runs",
    "refusals",
    "untold_runs",
]

UNPAID = (UNCOUNTED, OF_TOOL_CALLS, SILENT, UNPRICED, UNSTATED_COST)
"""How the reasons begin why a trace has no cost: a price or a count is missing, and not a part of the trace."""
LIKE = 0.8
"""The part of one side's traces with a cost over that of the other, below which costs are not compared. Calls that fail
without a count are a few of each side; a price that is missing takes most of one."""
EARLY = "the trace ends early, as others do that lack lines"
"""Why one is left out of a comparison of whole traces."""


def untold_runs(traces: Traces, metrics: Mapping[str, TraceMetric], side: np.ndarray) -> np.ndarray:
    """The runs of `untold_tasks`, where each side has others, too: bool [traces]."""
    found = of_untold_tasks(traces, metrics) & (side >= 0)
    return found if all(((side == one) & ~found).any() for one in (0, 1)) else np.zeros_like(found)


def of_told_tasks(metric: TraceMetric, untold: np.ndarray) -> TraceMetric:
    """The metric without the runs of `untold_tasks`."""
    if not untold.any():
        return metric
    reasons = [UNTOLD if of and not why else why for of, why in zip(untold, metric.reasons, strict=True)]
    return TraceMetric(np.where(untold, np.nan, metric.value), reasons)


def refusals(metric: TraceMetric, rows: np.ndarray) -> dict[str, int]:
    """The reasons of these traces that have no number, the most frequent first, and how many each has."""
    lacking = np.flatnonzero(rows & ~np.isfinite(metric.value))
    return dict(collections.Counter(metric.reasons[row] for row in lacking).most_common())


def of_whole_runs(traces: Traces, measured: dict[str, TraceMetric], kept: np.ndarray) -> dict[str, TraceMetric]:
    """The same metrics, without traces that end early where some of those compared have no number and lack lines.

    A run that is killed lacks lines in one format and keeps a partial sum in another one. So sums of killed runs would
    be on one side alone. How runs end, and what they earn, is told of all.
    """
    lacking, found = lacking_traces(traces) & kept, dict(measured)
    if not lacking.any():
        return found
    early, _ = ended_early(traces)
    for name in measured.keys() - {*FIRST, "ended_early"}:
        value, reasons = measured[name]
        known = np.isfinite(value)
        if not known[lacking].all():
            out = early & known
            why = [EARLY if left else reason for left, reason in zip(out, reasons, strict=True)]
            found[name] = TraceMetric(np.where(out, np.nan, value), why)
    return found


def of_like_parts(measured: dict[str, TraceMetric], side: np.ndarray) -> dict[str, TraceMetric]:
    """The same metrics, without costs on the side where fewer traces have one, below `LIKE`, for want of a price or a
    count: a table that lacks the price of a model leaves the runs that were killed before its first call.
    """
    found = dict(measured)
    for name, metric in measured.items():
        unpaid = np.array([reason.startswith(UNPAID) for reason in metric.reasons]) & ~np.isfinite(metric.value)
        paid = [1 - float(unpaid[side == one].mean()) for one in (0, 1)]
        if min(paid) < LIKE * max(paid):
            fewer = side == int(paid[1] < paid[0])
            (reason, _), *_ = collections.Counter(np.array(metric.reasons)[fewer & unpaid].tolist()).most_common(1)
            out = fewer & np.isfinite(metric.value)
            why = [reason if left else own for left, own in zip(out, metric.reasons, strict=True)]
            found[name] = TraceMetric(np.where(out, np.nan, metric.value), why)
    return found


def of_unchosen(measured: dict[str, TraceMetric], side: np.ndarray, task: np.ndarray) -> dict[str, TraceMetric]:
    """The same metrics, without those that traces lack for want of arguments, on one side more than by chance, as
    `are_chosen` has it.
    """
    found, kept = dict(measured), side >= 0
    shared = tasks_alone(side, task)
    asked, stratum = kept & (np.isin(task, shared) | (len(shared) == 0)), task if len(shared) else np.zeros_like(task)
    for name, metric in measured.items():
        lost = np.array(metric.reasons) == NO_ARGUMENTS
        known = np.isfinite(metric.value)
        if (lost & asked).any() and are_chosen(known, side == 1, stratum, np.zeros_like(task), asked & (known | lost)):
            why = [NO_ARGUMENTS if of else own for of, own in zip(known & kept, metric.reasons, strict=True)]
            found[name] = TraceMetric(np.where(kept, np.nan, metric.value), why)
    return found
