"""Bounds of costs of two sides where some traces lack a part."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.metrics.event_costs import Prices, event_costs
from credit.metrics.success_costs import known_costs
from credit.metrics.trace_costs import IDLE
from credit.reports.tasks import mean_over_tasks, task_ids
from credit.reports.trace_numbers import TeamFacts, TraceMetric
from credit.sides.comparable_traces import untold_runs
from graphs.traces.batch import Traces

__all__ = ["SideBound", "bounds_of_sides"]

SUMMED = ("errors", "tokens", "input_tokens", "money", "logged_money", "tool_calls")
"""Sums over events, of which a part may be known."""


@dataclasses.dataclass(frozen=True)
class SideBound:
    """A cost that some traces do not have as a whole: what is known of it, over all traces.

    Attributes:
      metric: its name.
      first, second: means over tasks, of means over their traces, of the known part.
      whole: of each side, whether that is all of it.
      tasks: of both sides.
    """

    metric: str
    first: float
    second: float
    whole: tuple[bool, bool]
    tasks: int


def bounds_of_sides(
    traces: Traces,
    metrics: dict[str, TraceMetric],
    side: np.ndarray,
    prices: Prices | None = None,
) -> list[SideBound]:
    """What is known of errors, tokens, money and calls where some traces lack a part, and something is on both sides.

    `side_differences` compares only traces that lack nothing, and these may be the small ones. Nor does it compare runs
    of `untold_tasks`, with which early ends have a bound, too.

    Args:
      traces: what was read.
      metrics: as of `side_differences`.
      side: likewise.
      prices: of models and tools.

    Examples:
      >>> from credit.metrics.trace_costs import costs_of_traces
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> records = [TraceRecord(name, "q", "log.jsonl", instances={"a": Agent()}) for name in ("s", "t")]
      >>> _ = [record.event(f"e{i}", 3, "a", action=True, tokens=count)
      ...      for record in records for i, count in enumerate((5, None))]
      >>> traces, side = assemble(records), np.array([0, 1])
      >>> bounds_of_sides(traces, costs_of_traces(traces), side)
      [SideBound(metric='tokens', first=5.0, second=5.0, whole=(False, False), tasks=1)]
    """
    of_side = [side == one for one in (0, 1)]
    task, untold, found = task_ids(traces), untold_runs(traces, metrics, side), []
    of_any = bool(untold.any())
    known_of = {
        name: np.isfinite(metric.value) | (np.array(metric.reasons) == IDLE) for name, metric in metrics.items()
    }
    names = [name for name in SUMMED if name in metrics and (of_any or not known_of[name][side >= 0].all())]
    names += ["ended_early"] if of_any and "ended_early" in metrics else []
    if not names:
        return []
    facts = TeamFacts.of(traces)
    costs, trace = event_costs(traces, prices), np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    tasks = len(np.unique(task[(side >= 0) & ~untold]))
    for name in names:
        known = known_of[name]
        if name == "ended_early":
            amount = np.nan_to_num(metrics[name].value)
        elif name == "logged_money":
            amount, _ = known_costs(traces, name)
        else:
            cost = facts.calls.counted.astype(np.float64) if name == "errors" else getattr(costs, name)
            least = np.where(np.isnan(cost), costs.least.get(name, 0.0), cost)
            amount = np.bincount(trace, least, traces.sizes.traces)
        whole = tuple(bool(known[rows].all()) for rows in of_side)
        means = [mean_over_tasks(amount, rows, task, untold) for rows in of_side]
        if all(mean or all_ for mean, all_ in zip(means, whole, strict=True)):
            found.append(SideBound(name, means[0], means[1], (whole[0], whole[1]), tasks))
    return found
