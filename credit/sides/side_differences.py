"""Differences of all metrics between two sides, corrected for how many are tested."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import TraceMetric
from credit.sides.asked_metrics import FIRST, OF_HEAD
from credit.sides.comparable_traces import refusals, untold_runs
from credit.sides.side_rows import SideDifference, corrected_rows
from credit.sides.side_tests import compare_metric
from graphs.task_means import fact_of
from graphs.traces.batch import Traces

__all__ = ["Uncompared", "side_differences", "uncompared"]


@dataclasses.dataclass(frozen=True)
class Uncompared:
    """A metric without a difference.

    Attributes:
      metric: its name.
      sides: those where no trace has a number, 0 and 1.
      reason: why most traces of these have none.
    """

    metric: str
    sides: tuple[int, ...]
    reason: str


def side_differences(traces: Traces, metrics: dict[str, TraceMetric], side: np.ndarray) -> list[SideDifference]:
    """Differences of metrics between two sides, second − first, with intervals over tasks.

    Where any tasks have traces of both sides, each gives the difference of its two means: paired, so that hard tasks
    weigh on both sides alike, and other tasks are left out. Without shared tasks each side's tasks give one number
    each, and they are compared within the kinds that both sides have, so that a side is not better or cheaper for
    easier tasks (`graphs.kind_means`). Runs of `untold_tasks` are in no task. Intervals are those of
    `graphs.task_means`, from `LEAST_TASKS` tasks that differ on. P-values are those of differences with the other sign,
    or of tasks on the other side, by chance (`graphs.dealing`). From `LEAST_TASKS` traces on each side pairs have a
    second test, `here`: traces might have been dealt otherwise among the sides of their task, as of failed and
    succeeded ones (`outcome_differences`). It tells what chance did in these tasks, and nothing of others. Where tasks
    have more traces on one side, differences lean even where sides are alike: then the larger p of both counts as p.
    Metrics that are one another on a straight line are one test, of the first. An outcome that some traces lack does
    not stand out where its difference would end or turn if these had the least, or the greatest, of the others.
    Of unpaired tasks Welch's counts where it is above that, since sides may differ in spread alone. Of `AMOUNTS` all
    this is of logarithms, of pairs by their signed ranks, and their ratios have the intervals, unless a task that
    differs has 0 on one side: then pairs of fewer than `LEAST_OF_ANY` tasks have none. Those of log-normal amounts, of
    which 10 to 60 % are 0 on one side, held 92 to 97 %.

    Args:
      traces: what was read.
      metrics: of `trace_metrics` on these traces.
      side: 0 or 1 of each trace, -1 for none: int [traces].

    Reference: Student 1908; Fisher 1935, The Design of Experiments; Welch 1947.

    Examples:
      >>> from credit.metrics.trace_metrics import trace_metrics
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> side_differences(rows.traces, trace_metrics(rows.traces), np.array([0, 1]))[0].difference
      -1.0
    """
    task, (_, kind), asked, untold = task_ids(traces), task_kinds(traces), side >= 0, untold_runs(traces, metrics, side)
    found = [compare_metric(name, metric, side, task, kind, untold) for name, metric in metrics.items()]
    known = [one for one in found if one is not None]
    family = [0 if one.metric in FIRST else 1 if one.metric in OF_HEAD else 2 + one.is_other for one in known]
    facts = [
        one.metric if one.p is None and one.here is None else fact_of(metrics[one.metric].value[asked]) for one in known
    ]
    order = sorted(range(len(known)), key=lambda i: (family[i], i))
    first, rows = {facts[i]: i for i in reversed(order)}, [*known]
    for part in set(family):
        some = [i for i in order if family[first[facts[i]]] == part]
        for i, row in zip(some, corrected_rows([known[i] for i in some], [facts[i] for i in some]), strict=True):
            rows[i] = row
    same = ["" if first[fact] == i else known[first[fact]].metric for i, fact in enumerate(facts)]
    return [dataclasses.replace(row, same_as=of) for row, of in zip(rows, same, strict=True)]


def uncompared(metrics: dict[str, TraceMetric], side: np.ndarray) -> list[Uncompared]:
    """The metrics that `side_differences` leaves out, since no trace of a side has a number.

    Args:
      metrics: as of `side_differences`.
      side: likewise.

    Examples:
      >>> from credit.reports.trace_numbers import numbered
      >>> uncompared({"success": numbered(np.ones(2), (np.array([True, False]), "no outcome"))}, np.array([0, 1]))
      [Uncompared(metric='success', sides=(0,), reason='no outcome')]
    """
    found = []
    for name, metric in metrics.items():
        lacking = tuple(one for one in (0, 1) if not np.isfinite(metric.value[side == one]).any())
        if lacking:
            found.append(Uncompared(name, lacking, next(iter(refusals(metric, np.isin(side, lacking))))))
    return found
