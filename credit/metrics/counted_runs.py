"""Runs, failures and cost of parts of the traces, such as days or kinds of task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credit.metrics.event_costs import Prices
from credit.metrics.part_costs import COST_WORDS, part_costs, unit_paid
from credit.reports.judged_traces import JudgedTraces
from graphs.traces.batch import Traces

__all__ = ["CountedRuns", "counted_runs"]


class CountedRuns(NamedTuple):
    """The runs of one part.

    Attributes:
      traces: how many.
      failed, known: how many of these failed, of how many with an outcome.
      cost: of these traces; None where none is known. A lower bound unless `whole`.
    """

    traces: int
    failed: int
    known: int
    cost: float | None
    whole: bool


def counted_runs(
    traces: Traces, part: np.ndarray, number: int, judged: JudgedTraces, prices: Prices | None = None
) -> tuple[list[CountedRuns], str]:
    """The runs of each part, and what their cost is known in, in words; "" of none.

    Args:
      traces: what was read.
      part: of each trace, `number` for none: int [T].
      number: of parts.
      judged: `judged_traces` of these.
      prices: of models and tools.

    Examples:
      >>> import credit
      >>> from credit.reports.judged_traces import judged_traces
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> counted_runs(rows.traces, np.array([0, 0, 1]), 1, judged_traces(rows.traces))
      ([CountedRuns(traces=2, failed=1, known=2, cost=None, whole=False)], '')
    """
    costs = part_costs(traces, part[np.asarray(traces.graph.trace_ids)[: traces.sizes.events]], number, prices)
    unit, found = unit_paid(costs), []
    for i, (cost, _) in enumerate(costs):
        its = part == i
        failed, succeeded = (int((its & kind).sum()) for kind in (judged.failed, judged.succeeded))
        paid = (cost[unit].total, cost[unit].missing == 0) if unit else (None, False)
        found.append(CountedRuns(int(its.sum()), failed, failed + succeeded, *paid))
    return found, COST_WORDS.get(unit, "")
