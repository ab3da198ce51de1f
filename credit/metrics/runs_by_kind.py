"""Runs, failures and cost of each kind of task."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credit.metrics.counted_runs import counted_runs
from credit.metrics.event_costs import Prices
from credit.reports.judged_traces import judged_traces
from credit.reports.part_rates import part_rates
from credit.reports.task_kinds import every_kind
from credit.reports.tasks import task_ids
from credit.reports.unlike_kinds import unlike_kinds
from credit.reports.verdict_channels import of_one_source
from graphs.task_means import chance_interval
from graphs.traces.batch import Traces

__all__ = ["KindRuns", "RunsByKind", "runs_by_kind"]


@dataclasses.dataclass(frozen=True)
class KindRuns:
    """The runs of a kind of task.

    Attributes:
      kind: its name; "" of tasks without one.
      traces: how many runs.
      failed, known: how many of these failed, of how many with an outcome.
      rate: the part of all that failed, where a verdict decides who has an outcome (`part_rates`); None elsewhere.
      low, high: the 95 % interval of that chance; None where runs are of fewer than `LEAST_TASKS` tasks.
      cost: of these traces; None where none is known. A lower bound unless `whole`.
    """

    kind: str
    traces: int
    failed: int
    known: int
    rate: float | None
    low: float | None
    high: float | None
    cost: float | None
    whole: bool


@dataclasses.dataclass(frozen=True)
class RunsByKind:
    """Kinds of task, those of most tasks first; none where the log tells no kinds apart.

    Attributes:
      failing: what failed traces are called.
      paid_in: what the cost is known in, in words; "" of none.
      verdict: that which decides who has an outcome; "" where none does.
      unlike: which fail more often than the others, or less, beyond chance (`unlike_kinds`), in words; "" of none.
    """

    kinds: tuple[KindRuns, ...]
    failing: str
    paid_in: str
    verdict: str = ""
    unlike: str = ""


def runs_by_kind(traces: Traces, success_at: float | None = None, prices: Prices | None = None) -> RunsByKind:
    """Count the runs of each kind of task.

    Args:
      traces: what was read.
      success_at: as of `judged_traces`.
      prices: of models and tools.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> runs_by_kind(rows.traces).kinds
      ()
    """
    traces = of_one_source(traces)
    (names, kind), judged, task = every_kind(traces), judged_traces(traces, success_at), task_ids(traces)
    of, found = np.where(kind < 0, len(names), kind), []
    counted, paid_in = counted_runs(traces, of, len(names) + 1, judged, prices)
    weighted = part_rates(traces, judged, of, len(names) + 1)
    for i, (name, one) in enumerate(zip([*names, ""], counted, strict=True)):
        if not names or not one.traces:
            continue
        known = (of == i) & (judged.failed | judged.succeeded)
        ends = (math.nan, math.nan) if judged.of_task else chance_interval(judged.failed[known], task[known])
        rate, low, high = math.nan, *ends
        if weighted is not None:
            rate, low, high = (math.nan,) * 3 if (of_all := weighted.rates[i]) is None else of_all[:3]
        rate_, low_, high_ = (None if math.isnan(number) else number for number in (rate, low, high))
        found.append(KindRuns(name, one.traces, one.failed, one.known, rate_, low_, high_, one.cost, one.whole))
    unlike = unlike_kinds(traces, judged, names, kind).told
    return RunsByKind(tuple(found), judged.kinds[0], paid_in, weighted.verdict if weighted else "", unlike)
