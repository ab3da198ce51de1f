"""What a success cost: over all traces with an outcome, also those whose cost is known in part."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from credit.metrics.event_costs import Prices, event_costs, is_priced, token_counts, whole_costs
from credit.reports.missing_lines import lacking_traces
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import TraceMetric
from credit.reports.unread_outcomes import leave_rate_open, refused_outcomes
from graphs.task_means import ratio_interval
from graphs.text import amount, apart, at_least, counted
from graphs.traces.batch import Traces

__all__ = ["SuccessCost", "known_costs", "success_costs", "success_line"]


@dataclasses.dataclass(frozen=True)
class SuccessCost:
    """What the successes of one unit cost.

    Attributes:
      unit: its name.
      metric: "money" or "logged_money", as of `costs_of_traces`.
      cost: of all its traces with an outcome, over how many of them succeeded, or with `weights` the weighted sum
        of the one over that of the other; None without a success.
      whole: whether all these costs are known; else `cost` is a lower bound.
      traces: with an outcome.
      unscored: traces without one.
      low, high: 95 % interval of `cost` over tasks (`ratio_interval`); None where there is none.
      lost: what these cost.
      lost_whole: whether all of that is known; else `lost` is a lower bound.
      weighted: the verdict by which successes are those of all traces, which count as `traces` then; else "".
      selected: whether a verdict decided which traces have an outcome, and too few are known to weight by it.
    """

    unit: str
    metric: str
    cost: float | None
    whole: bool
    traces: int
    unscored: int
    lost: float
    lost_whole: bool
    low: float | None = None
    high: float | None = None
    weighted: str = ""
    selected: bool = False


def success_costs(
    traces: Traces,
    metrics: dict[str, TraceMetric],
    names: Sequence[str],
    unit: np.ndarray,
    prices: Prices | None = None,
    weights: np.ndarray | None = None,
    *,
    weighted: str = "",
    selected: bool = False,
) -> list[SuccessCost]:
    """What a success cost in each unit, where there is money: a ratio of sums.

    A run that was killed is a failure that cost something, and often lacks the count of its last call. So traces whose
    cost is not known count with what is known of it. Nothing is told of money by prices unless `is_priced`, and nothing
    where many outcomes were refused, which may be successes.

    Args:
      traces: what was read.
      metrics: with "success" and costs, as of `with_costs`.
      names: of the units.
      unit: of each trace, -1 for none: int [traces].
      prices: of models and tools.
      weights: of each trace, so that units with another mix of tasks can be compared; traces with an outcome and a
        weight of 0 are left out. None where each counts as one.
      weighted: the verdict by which "success" is that of all traces (`weighted_outcomes`).
      selected: as of `SuccessCost`: there are no intervals then.

    Examples:
      >>> import credit
      >>> from credit.reports.trace_numbers import numbered
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> metrics = {"success": numbered(np.array([1.0, 0.0])), "logged_money": numbered(np.array([2.0, np.nan]))}
      >>> success_line(success_costs(rows.traces, metrics, ["all"], np.zeros(2, int)))
      'logged cost of a success: ≥ 2'
    """
    if leave_rate_open(len(refused_outcomes(traces)), int(np.isfinite(metrics["success"].value).sum())):
        return []
    won, task = metrics["success"].value, task_ids(traces)
    found, each = [], np.ones(len(won)) if weights is None else weights
    untold = "" if prices is None or is_priced(traces, prices) else "money"
    for metric in ("money", "logged_money"):
        if metric not in metrics or metric == untold:
            continue
        least, whole_ones = known_costs(traces, metric, prices)
        amount = np.where(np.isfinite(metrics[metric].value), metrics[metric].value, least)
        known = np.isfinite(metrics[metric].value) | whole_ones
        for number, name in enumerate(names):
            of, scored = unit == number, np.isfinite(won)
            rows, others = of & scored & (each > 0), of & ~scored
            whole, lost = bool(known[rows].all()), (float(amount[others].sum()), bool(known[others].all()))
            place = np.unique(task[rows], return_inverse=True)[1]
            paid, wins = (np.bincount(place, (each * of_trace)[rows]) for of_trace in (amount, won))
            cost = float(paid.sum() / wins.sum()) if wins.sum() > 0 else None
            ends = ratio_interval(paid, wins) if whole and not selected else (math.nan, math.nan)
            low, high = (None, None) if math.isnan(ends[0]) else ends
            many = int(rows.sum()), int(others.sum())
            found.append(SuccessCost(name, metric, cost, whole, *many, *lost, low, high, weighted, selected))
    return found


def known_costs(traces: Traces, metric: str, prices: Prices | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What is known of the cost of each trace, float64 [traces], and whether that is all of it, bool [traces].

    Args:
      traces: what was read.
      metric: "money", "logged_money" or "tokens".
      prices: of models and tools, for "money".
    """
    trace, m = np.asarray(traces.graph.trace_ids)[: traces.sizes.events], traces.sizes.traces
    if metric == "money":
        costs = event_costs(traces, prices)
        every, least = costs.money, costs.least["money"]
    else:
        every, least = (token_counts(traces, metric.removeprefix("logged_"), hidden=hidden) for hidden in (True, False))
    amount = np.bincount(trace, np.where(np.isnan(every), np.nan_to_num(least), every), m)
    whole = (np.bincount(trace, np.isnan(every), m) == 0) & ~lacking_traces(traces)
    stated = whole_costs(traces).get("money") if metric == "logged_money" else None
    if stated is not None:
        whole |= np.isfinite(stated)
        amount = np.where(np.isfinite(stated), stated, amount)
    return amount, whole


def success_line(
    costs: Sequence[SuccessCost],
    shared: int | None = None,
    others: Sequence[SuccessCost] = (),
    *,
    within: bool = False,
) -> str:
    """What a success cost in each unit, in words, and what traces without an outcome cost; "" where no unit has both.

    Args:
      costs: of `success_costs`.
      shared: of how many tasks, which all units have, 0 for all tasks, with weights; None without them.
      others: the same of traces without an outcome in other tasks.
      within: whether weights hold units to kinds of tasks.
    """
    words = {"money": "money for a success", "logged_money": "logged cost of a success"}
    parts, without, alone = [], [], len({one.unit for one in costs}) == 1
    weighted = next((one.weighted for one in costs), "")
    missing = f"a verdict of {weighted}" if weighted else "an outcome"
    for metric, what in words.items():
        of = [one for one in costs if one.metric == metric and one.traces]
        if any(one.cost for one in of):
            each = [_told(one, alone=True) if alone else f"{one.unit} {_told(one)}" for one in of]
            parts.append(f"{what}: {', '.join(each)}")
            for one in (one for one in (*costs, *others) if one.metric == metric and one.lost):
                where, whose = "in other tasks, " * (one in others), "" if alone else f" of {one.unit}"
                lost = at_least(amount(one.lost, 4), not one.lost_whole)
                without.append(f"{where}{counted(one.unscored, 'trace')}{whose} without {missing} cost {lost}")
    of_tasks = f"the {counted(shared, 'task')} with outcomes on both sides" if shared else "all tasks with an outcome"
    if weighted:
        of_tasks = f"the {counted(shared, 'task')} of both sides" if shared else "all tasks"
    over = "" if shared is None else f", by means over {of_tasks}{', within kinds of task' * within}"
    over += f", successes weighted by {weighted}" * bool(weighted)
    over += ", of the traces with an outcome" * any(one.selected for one in costs)
    some = any(one.low is not None for one in costs if one.cost and one.traces)
    spread = " (95 % intervals)" if some and not alone else ""
    return "; ".join([f"{'; '.join(parts)}{over}{spread}", *without]) if parts else ""


def _told(one: SuccessCost, *, alone: bool = False) -> str:
    """What a success cost, or cost at least; "not known" where nothing of it is, "no success" where there is none."""
    if one.cost is None:
        return "no success"
    if one.low is not None and one.high is not None:
        cost, low, high = apart((one.cost, one.low, one.high), amount, 3)
        return f"{cost} ({'95 % interval ' * alone}{low} to {high})"
    return at_least(amount(one.cost, 4), not one.whole) if one.cost or one.whole else "not known"
