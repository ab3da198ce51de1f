"""Metrics by trace, group, model, system, topology or length: means over tasks, with intervals."""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Literal

import numpy as np

from credit.reports.tasks import UNTOLD, mean_over_tasks, task_ids
from credit.reports.trace_numbers import TraceMetric, is_amount, of_untold_tasks
from graphs.errors import CreditError
from graphs.structure.host_ids import rows_of_each
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.task_means import LEAST_TASKS, mean_of_tasks, median_interval
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models

__all__ = ["UNITS", "MetricMean", "MetricMedian", "MetricUnit", "metric_means", "units_of"]

MetricUnit = Literal["all", "trace", "group", "model", "system", "topology", "length"]
OF_UNTOLD = f"of some, {UNTOLD}"
LENGTHS = 4
"""Parts that `metrics --by length` divides traces into: of as many each, for parts by tens had nearly all in one."""
UNITS: tuple[MetricUnit, ...] = ("all", "trace", "group", "model", "system", "topology", "length")


@dataclasses.dataclass(frozen=True)
class MetricMedian:
    """The median over tasks, with its 95 % interval (`graphs.task_means.median_interval`)."""

    median: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class MetricMean:
    """One metric of one unit.

    Attributes:
      unit: its name.
      metric: a name of `METRICS`.
      mean: over tasks, of means over their traces; None where no trace has a number.
      low, high: 95 % interval of the mean over tasks; None of `AMOUNTS`, and where `without` says why there is none.
      traces, tasks: how many have a number.
      without: why there is no interval, neither of the mean nor of the median; "" where there is one.
      refused: for each reason why traces have no number, how many.
      median: of `AMOUNTS`, which have it in place of an interval of the mean; None of others and of few tasks.
    """

    unit: str
    metric: str
    mean: float | None
    low: float | None
    high: float | None
    traces: int
    tasks: int
    without: str
    refused: dict[str, int]
    median: MetricMedian | None = None


def metric_means(traces: Traces, metrics: dict[str, TraceMetric], by: MetricUnit = "all") -> list[MetricMean]:
    """Means of metrics by unit: each task gives the mean over its traces, and the mean is over tasks.

    A task is what the log calls one, whatever model acted. Tasks count as independent; within a task nothing is
    assumed. Runs of `untold_tasks` count in the mean as if they were spread over the tasks, which has no interval then.

    Args:
      traces: what was read.
      metrics: of `trace_metrics` on these traces.
      by: what units are. "length" is by the number of actions, in up to `LENGTHS` parts of about as many traces.

    Raises:
      CreditError: `by` is something else.

    Examples:
      >>> import credit
      >>> from credit.metrics.trace_metrics import trace_metrics
      >>> _, _, rows = credit.from_columns(group=["q", "q", "r"], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> metric_means(rows.traces, trace_metrics(rows.traces))[0].mean
      0.25
    """
    if by not in UNITS:
        raise CreditError(f"by is {by!r}; expected one of {', '.join(UNITS)}")
    task, untold = task_ids(traces), of_untold_tasks(traces, metrics)
    names, unit = units_of(traces, by)
    means = []
    for name, rows in zip(names, rows_of_each(unit), strict=True):
        told = ~untold[rows] | untold[rows].all()
        of_all = np.unique(task[rows], return_inverse=True)[1]
        for metric, found in metrics.items():
            value = found.value[rows]
            known = np.isfinite(value)
            some = known & told
            of_task = of_all if some.all() else np.unique(task[rows][some], return_inverse=True)[1]
            numbers = np.bincount(of_task, value[some]) / np.bincount(of_task) if some.any() else np.zeros(0)
            single = metric == "success" and len(numbers) == some.sum() and bool(np.isin(numbers, (0, 1)).all())
            interval, without = mean_of_tasks(numbers, single=single)
            if metric == "success":  # a weighted part of few may lie beyond
                interval = interval._replace(mean=min(max(interval.mean, 0.0), 1.0))
            if (known & ~told).any():
                spread = mean_over_tasks(value, known, task[rows], ~told)
                interval, without = interval._replace(mean=spread, low=math.nan, high=math.nan), OF_UNTOLD
            median = None
            if is_amount(metric):
                interval, without = interval._replace(low=math.nan, high=math.nan), ""
                if len(numbers) >= LEAST_TASKS:  # of tasks that are known
                    median = MetricMedian(float(np.median(numbers)), *median_interval(numbers))
                else:
                    without = f"of an amount, fewer than {LEAST_TASKS} tasks"
            reasons = (found.reasons[row] for row in rows[~known].tolist())
            refused = collections.Counter(filter(None, reasons))
            mean, low, high = (None if math.isnan(number) else number for number in interval[:3])
            counts = int(known.sum()), len(numbers)
            means.append(MetricMean(name, metric, mean, low, high, *counts, without, dict(refused), median))
    return means


def _of_lengths(traces: Traces) -> tuple[list[str], np.ndarray]:
    """Parts of traces by their number of actions, divided at its quantiles: their names, and the part of each trace."""
    n, m = traces.sizes.events, traces.sizes.traces
    trace = np.asarray(traces.graph.trace_ids)[:n]
    actions = np.bincount(trace[np.asarray(traces.graph.action_mask)[:n]], minlength=m)
    most = np.unique(np.quantile(actions, np.arange(1, LENGTHS + 1) / LENGTHS, method="inverted_cdf"))
    part = np.searchsorted(most, actions)
    ends = [(int(actions[part == one].min()), int(end)) for one, end in enumerate(most)]
    names = [counted(end, "action") if first == end else f"{first:,} to {end:,} actions" for first, end in ends]
    return names, part


def _models(traces: Traces) -> list[str]:
    """The model of each trace: that of its calls where it states none, their names joined where they have several."""
    names, model = event_models(traces)
    of_calls: dict[int, set[str]] = {}
    for trace, one in set(zip(np.asarray(traces.graph.trace_ids)[: len(model)].tolist(), model.tolist(), strict=True)):
        of_calls.setdefault(trace, set()).add(names[one])
    stated = traces.traces["model"].to_pylist()
    return [name or " + ".join(sorted(of_calls.get(row, set()) - {""})) for row, name in enumerate(stated)]


def units_of(traces: Traces, by: MetricUnit) -> tuple[list[str], np.ndarray]:
    """Names of units, and the unit of each trace.

    Args:
      traces: a batch.
      by: what a unit is.
    """
    m = traces.sizes.traces
    if by == "all":
        return ["all"], np.zeros(m, np.int64)
    if by == "trace":
        return traces.traces["trace"].to_pylist(), np.arange(m)
    if by == "length":
        return _of_lengths(traces)
    if by == "topology":
        codes, unit = np.unique(topology(traces.graph, traces.agents["role"].to_pylist())[:m], return_inverse=True)
        return [TOPOLOGIES[code] for code in codes.tolist()], unit
    texts = [text or "unknown" for text in (_models(traces) if by == "model" else traces.traces[by].to_pylist())]
    number: dict[str, int] = {}
    unit = np.array([number.setdefault(text, len(number)) for text in texts], np.int64)
    return list(number), unit
