"""What a success cost, and what failed traces did, also where a verdict decides which traces have an outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credit.metrics.event_costs import Prices
from credit.metrics.failed_costs import FailedCost, failed_cost
from credit.metrics.success_costs import SuccessCost, success_costs
from credit.metrics.trace_costs import costs_of_traces
from credit.metrics.trace_metrics import success_of_traces
from credit.reports.deciding_verdict import deciding_verdict
from credit.reports.trace_numbers import TraceMetric
from credit.sides.weighted_outcomes import weighted_outcomes
from graphs.traces.batch import Traces

__all__ = ["lost_to_failures", "paid_by_unit", "paid_for_success"]


def paid_for_success(
    traces: Traces, prices: Prices | None = None, success_at: float | None = None
) -> list[SuccessCost]:
    """What a success cost, over all traces: `paid_by_unit` of one unit. Nothing where no trace has a success or money.

    Args:
      traces: what was read.
      prices: of models and tools.
      success_at: as of `MetricOptions`.
    """
    success = success_of_traces(traces, success_at)
    if not np.nansum(success.value):
        return []
    metrics = {"success": success} | costs_of_traces(traces, prices)
    return paid_by_unit(traces, metrics, ["all"], np.zeros(traces.sizes.traces, np.int64), prices)


def paid_by_unit(
    traces: Traces,
    metrics: dict[str, TraceMetric],
    names: Sequence[str],
    unit: np.ndarray,
    prices: Prices | None = None,
) -> list[SuccessCost]:
    """`success_costs`, with the successes of all traces that have the verdict which decides who has an outcome.

    Of those with an outcome alone, 1.35 times as much was told where people look mostly at what a judge rejects.

    Args:
      traces, metrics, names, unit, prices: as of `success_costs`.
    """
    outcomes = weighted_outcomes(traces, metrics["success"], unit)
    metrics = metrics | {"success": outcomes.metric}
    return success_costs(traces, metrics, names, unit, prices, **outcomes.of_costs())


def lost_to_failures(
    traces: Traces, prices: Prices | None = None, success_at: float | None = None
) -> FailedCost | None:
    """`failed_cost`; None, too, where a verdict decides which traces have an outcome: failed ones have more of them.

    Args:
      traces, prices, success_at: as of `failed_cost`.
    """
    known = np.isfinite(np.asarray(traces.reward, np.float64)[: traces.sizes.traces])
    return failed_cost(traces, prices, success_at) if known.all() or deciding_verdict(traces) is None else None
