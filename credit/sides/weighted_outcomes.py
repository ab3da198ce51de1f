"""Outcomes of two sides, weighted by the verdict that decided which traces people looked at.

A judge that changed then changes which failures have an outcome: of 31 logs alike in failures five were "better".

Reference: Begg and Greenes 1983, Assessment of diagnostic tests when disease verification is subject to selection bias.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from credit.reports.deciding_verdict import deciding_verdict, on_part
from credit.reports.prevalence import of_all
from credit.reports.trace_numbers import TraceMetric, numbered
from credit.sides.side_rows import SideDifference
from graphs.traces.batch import Traces

__all__ = ["WeightedOutcomes", "weighted_by_unit", "weighted_outcomes"]


class WeightedOutcomes(NamedTuple):
    """Outcomes by which sides are compared.

    Attributes:
      metric: a number of each trace, of `of_all` where a verdict decides which have an outcome.
      verdict: its name; "" where none does, or too few of it have an outcome on a side.
      refused: why sides are not compared then; "" elsewhere.
      on: on how many traces it is (`on_part`).
    """

    metric: TraceMetric
    verdict: str = ""
    refused: str = ""
    on: str = ""

    def of_costs(self) -> dict[str, Any]:
        """What `success_costs` is to be told of them."""
        return {"weighted": self.verdict, "selected": bool(self.refused)}

    @property
    def compared(self) -> TraceMetric:
        """The metric by which sides are compared: no number where that is refused."""
        if not self.refused:
            return self.metric
        every = np.ones(len(self.metric.value), bool)
        return numbered(np.full(len(every), np.nan), (every, self.refused))

    def told_of(self, row: SideDifference) -> SideDifference:
        """The row of these outcomes, with the verdict that weights it.

        Args:
          row: of them.
        """
        row = dataclasses.replace(row, weighted=f"{self.verdict}{self.on}")
        if self.verdict and row.metric == "success":  # weighted parts of few may lie beyond
            first, second = np.clip((row.first, row.second), 0, 1).tolist()
            row = dataclasses.replace(row, first=first, second=second)
        return row


def weighted_outcomes(traces: Traces, outcome: TraceMetric, side: np.ndarray) -> WeightedOutcomes:
    """The outcomes of all traces with the verdict that decides which have one (`deciding_verdict`), weighted by it in
    each side; else themselves.

    Args:
      traces: what was read, with these outcomes.
      outcome: of each trace.
      side: 0 or 1 of each trace, -1 for none: int [traces].
    """
    known = np.isfinite(outcome.value)
    if known.all() or (found := deciding_verdict(traces)) is None:
        return WeightedOutcomes(outcome)
    name, passes = found
    if (value := of_all(outcome.value, passes, side)) is None:
        few = [says for says, of in (("rejects", passes == 0), ("passes", passes == 1))
               if of_all(outcome.value, np.where(of, passes, np.nan), side) is None]  # fmt: skip
        return WeightedOutcomes(
            outcome, refused=f"{_differ(name)}, and on one side too few that it {' or '.join(few)} have one"
        )
    return WeightedOutcomes(numbered(value, (np.isnan(value), f"{name} says nothing of it")), name, on=on_part(passes))


def weighted_by_unit(traces: Traces, outcome: TraceMetric, unit: np.ndarray) -> WeightedOutcomes:
    """The same within each unit, as systems are; no numbers of one in which too few of a verdict have an outcome.

    Args:
      traces, outcome: as of `weighted_outcomes`.
      unit: of each trace: int [traces].
    """
    if np.isfinite(outcome.value).all() or (found := deciding_verdict(traces)) is None:
        return WeightedOutcomes(outcome)
    name, passes = found
    value = np.full(len(unit), np.nan)
    for of in (unit == one for one in np.unique(unit)):
        if (weighted := of_all(outcome.value, passes, np.where(of, 0, -1))) is not None:
            value[of] = weighted[of]
    untold, few = f"{name} says nothing of it", f"{_differ(name)}, and too few of one verdict have one"
    return WeightedOutcomes(numbered(value, (np.isnan(passes), untold), (np.isnan(value), few)), name)


def _differ(name: str) -> str:
    return f"traces with an outcome differ from others in what {name} passes"
