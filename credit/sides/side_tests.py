"""The statistics of one metric on two sides: paired within shared tasks, where there are any."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from credit.metrics.trace_metrics import PARTS
from credit.reports.tasks import mean_over_tasks
from credit.reports.trace_numbers import STATED_COST, TraceMetric, is_amount
from credit.sides.asked_metrics import FIRST, OF_COSTS
from credit.sides.comparable_traces import of_told_tasks, refusals
from credit.sides.side_rows import Needed, SideDifference, SideRatio
from credit.sides.side_weights import compared_in
from graphs.dealing import Dealt, dealt, flipped
from graphs.kind_means import held_to_strata, stratum_shares
from graphs.task_means import (
    LEAST_OF_ANY,
    LEAST_TASKS,
    LEVEL,
    ROUNDING,
    alike,
    as_tested,
    mean_interval,
    shift_interval,
    signed_ranks,
)

__all__ = ["compare_metric", "means_by_task"]

MANY_MORE = 1.5
"""Times the traces a task from which a side's amounts have geometric means over the traces of each task."""


class _Change(NamedTuple):
    """What the tasks say of a metric on two sides.

    Attributes:
      test: that the sides are alike, over tasks.
      as_ratio: whether all that follows is of logarithms.
      size, error, freedom: of the change: its mean or its middle, its standard error, and that of Student's.
      by_dealing: as `Needed.dealt`.
      ends: of its interval; NaN without one.
      here: of pairs, the test over the runs of each task alone, which says nothing of other tasks.
    """

    test: Dealt
    as_ratio: bool
    size: float = 0.0
    error: float = 0.0
    freedom: float = 0.0
    by_dealing: float = 0.0
    ends: tuple[float, float] = (math.nan, math.nan)
    here: Dealt = Dealt(1.0, 1.0)


def compare_metric(
    name: str,
    metric: TraceMetric,
    side: np.ndarray,
    task: np.ndarray,
    kind: np.ndarray | None,
    untold: np.ndarray | None = None,
) -> SideDifference | None:
    """One metric, within `kind` where too few tasks are on both sides (`compared_in`); None where a side has no number
    of a known task. Within what is one of these kinds, or may differ by them, there is no `kind`.
    """
    measured = metric.value
    untold = np.zeros(len(side), bool) if untold is None else untold
    kind = np.zeros(len(side), int) if kind is None else kind
    metric = of_told_tasks(metric, untold)
    value = metric.value
    known = np.where(np.isfinite(value), side, -1)
    if not all((known == one).any() for one in (0, 1)):
        return None
    kept, stratum = compared_in(known, task, kind)
    (tasks, first), (others, second) = (
        means_by_task(value, np.flatnonzero(kept & (side == one)), task) for one in (0, 1)
    )
    paired = np.array_equal(tasks, others)
    differs = ~alike(first, second) if paired else np.zeros(0, bool)
    if paired:
        found = _of_pairs(name, value[kept], side[kept], task[kept], first, second)
    else:
        found = _of_others(name, value[kept], side[kept], task[kept], first, second, stratum[kept])
    before, after = _means(value, np.where(kept, side, -1), task, stratum, untold)
    difference = 0.0 if alike(before, after) else after - before
    p, needed = found.test.p, None
    has_interval = not math.isnan(found.ends[0])
    if found.error > 0:
        p = p if paired else max(p, _by_student(found.size, found.error, found.freedom))
        half = (found.ends[1] - found.ends[0]) / 2 if has_interval else 0.0
        needed = Needed(found.error, found.freedom, found.by_dealing, half)
    p = p if found.test.least < LEVEL else math.nan
    ends = as_tested(found.ends, p)
    low, high, seen, ratio = None, None, None, None
    if has_interval and found.as_ratio:
        times, least, most = (math.exp(end) for end in (found.size, *ends))
        ratio = SideRatio(times, least, most, None if needed is None else math.exp(needed.seen(1)))
    elif has_interval and needed is not None:
        low, high = (max(ends[0], -1.0), min(ends[1], 1.0)) if name in PARTS else ends
        seen = needed.seen(1)
    # A task, or a kind of tasks, of one side is not compared, whatever its numbers.
    asked = (compared_in(side, task if paired else np.arange(len(side)), kind)[0] | untold) & (side >= 0)

    def of_each(rows: np.ndarray) -> tuple[int, int]:
        return int((rows & (side == 0)).sum()), int((rows & (side == 1)).sum())

    row = SideDifference(
        name,
        before,
        after,
        difference,
        low,
        high,
        None if math.isnan(p) else p,
        found.test.least if found.test.least < 1 else None,
        seen,
        tasks=len(np.union1d(tasks, others)),
        traces=of_each(kept),
        paired=paired,
        differing=int(np.count_nonzero(differs)) if paired else None,
        rose=int(np.count_nonzero(differs & (second > first))) if paired else None,
        refused=refusals(metric, asked),
        asked=of_each(asked),
        lacking=of_each(asked & ~np.isfinite(value)),
        ratio=ratio,
        needed=needed,
        moved=has_interval and ends != found.ends,
        no_interval="has zeros" * (found.error > 0 and not has_interval and is_amount(name) and not found.as_ratio),
        untold=of_each(asked & untold),
        here=found.here.p if found.here.least < LEVEL else None,
        within=0 if stratum is not kind or np.ptp(kind) == 0 else len(np.unique(stratum[kept])),
        shared=0 if paired else len(np.intersect1d(tasks, others)),
    )
    some = value[known >= 0]
    ends_of = (0.0, 1.0) if name == "success" else (float(some.min()), float(some.max()))
    return _with_rest(row, measured, value, np.where(asked, side, -1), task, stratum, untold, ends_of)


def _with_rest(
    row: SideDifference,
    measured: np.ndarray,
    value: np.ndarray,
    asked: np.ndarray,
    task: np.ndarray,
    stratum: np.ndarray,
    untold: np.ndarray,
    ends: tuple[float, float],
) -> SideDifference:
    """The row with both means whatever the traces had that lack an outcome, or that are of no known task.

    Args:
      row: one metric.
      measured: of each trace, those of no known task among them.
      value: without these.
      asked: the side of each trace, -1 of one that is not compared.
      task, stratum: of each trace.
      untold: whether it is of no known task.
      ends: the least outcome, and the greatest.
    """

    def of_both(each: np.ndarray) -> tuple[float, float]:
        return _means(each, np.where(np.isfinite(each), asked, -1), task, stratum, untold)

    if row.metric == "ended_early" and any(row.untold):
        row = dataclasses.replace(row, least_rest=of_both(measured), most_rest=of_both(measured))
    if row.metric not in FIRST or not any(row.lacking):
        return row
    lacks = ~np.isfinite(value)
    rest = [of_both(np.where(lacks, end, value)) for end in ends]
    row = dataclasses.replace(row, least_rest=rest[0], most_rest=rest[1])
    if row.needed is None or row.seen is None:
        return row
    # A difference is diluted by the part that is missing, and moved by what fills that.
    part = sum(of_both(1.0 - lacks)) / 2
    least, most = sorted((after - before) / part for before, after in rest)
    needed = dataclasses.replace(row.needed, turns=max(row.difference - least, most - row.difference))
    return dataclasses.replace(row, needed=needed, seen=needed.seen(1))


def _means(
    value: np.ndarray, side: np.ndarray, task: np.ndarray, stratum: np.ndarray, untold: np.ndarray
) -> tuple[float, float]:
    """Both means over tasks, with the same part of each stratum."""
    parts = [[(side == one) & (stratum == number) for number in np.unique(stratum[side >= 0])] for one in (0, 1)]
    share = stratum_shares(np.array([[len(np.unique(task[rows])) for rows in of] for of in parts]))
    first, second = (
        sum(
            part * mean_over_tasks(value, rows, task, untold)
            for part, rows in zip(share.tolist(), of, strict=True)
            if part
        )
        for of in parts
    )
    return first, second


def _of_pairs(
    name: str, value: np.ndarray, side: np.ndarray, task: np.ndarray, first: np.ndarray, second: np.ndarray
) -> _Change:
    """Of traces of tasks that both sides have, and the means of these tasks."""
    from scipy.special import stdtrit  # comes with JAX; slow to import

    differs, as_ratio = ~alike(first, second), is_amount(name)
    sides = [np.flatnonzero(side == one) for one in (0, 1)]
    apart = np.where(differs, second - first, 0.0)
    if as_ratio:
        x, y = _logarithms(value, sides, task)
        as_ratio = bool(np.isfinite(np.concatenate([x, y])[np.tile(differs, 2)]).all())
        apart = y[differs] - x[differs] if as_ratio else apart
    if not differs.any():
        return _Change(Dealt(1.0, 1.0), as_ratio)
    if min(map(len, sides)) < LEAST_TASKS:
        return _Change(Dealt(1.0, 1.0), as_ratio)
    amounts = _over_tasks(value, task) if as_ratio else value
    test, here = flipped(signed_ranks(apart.round(12)) if as_ratio else apart), _dealt_within(amounts, side, task)
    even = not (_sizes(sides[0], task) != _sizes(sides[1], task)).any()
    if not even:  # differences lean to one side then, whatever the sides do: of 8 rare failures and 1, to -1
        test = Dealt(max(test.p, here.p), max(test.least, here.least))
    if np.count_nonzero(differs) < LEAST_TASKS:
        return _Change(test, as_ratio, here=here)
    freedom, ends, error = len(apart) - 1.0, (math.nan, math.nan), _spread(apart) / len(apart) ** 0.5
    by_dealing = 0.0 if even else _dealing_error(amounts, side, task) * len(first) / len(apart)
    size = float(apart.mean())
    if as_ratio:
        size, ends = shift_interval(apart)
        half = (ends[1] - ends[0]) / 2
        error = half / float(stdtrit(freedom, 1 - LEVEL / 2)) if half > ROUNDING else error  # most are alike
    elif not is_amount(name) or len(apart) >= LEAST_OF_ANY:  # log-normal amounts, 0 in 60 %: 8 tasks held 85 %
        ends = mean_interval(apart)
    return _Change(test, as_ratio, size, error, freedom, by_dealing, ends, here)


def _of_others(
    name: str,
    value: np.ndarray,
    side: np.ndarray,
    task: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    stratum: np.ndarray,
) -> _Change:
    """Of traces of tasks of which no side has those of the other, and the means of these tasks, within strata."""
    as_ratio, both = is_amount(name), np.concatenate([first, second])
    if min(len(first), len(second)) < LEAST_TASKS or not _spread(both) > 0:
        return _Change(Dealt(1.0, 1.0), as_ratio)
    sides = [np.flatnonzero(side == one) for one in (0, 1)]
    if as_ratio:
        logs = np.concatenate(_logarithms(value, sides, task))
        as_ratio = bool(np.isfinite(logs).all())
        both = logs - logs.mean() if as_ratio else both  # a unit changes nothing
    of = np.concatenate([stratum[rows[np.unique(task[rows], return_index=True)[1]]] for rows in sides])
    is_second = np.arange(len(both)) >= len(first)
    unit = name in OF_COSTS or name.startswith(STATED_COST)
    x, y, *ends = held_to_strata(both, is_second, of, unit=unit)
    parts = [_spread(part) ** 2 / len(part) for part in (x, y)]
    squares = sum(part**2 / (len(of) - 1) for part, of in zip(parts, (x, y), strict=True))
    return _Change(
        test=dealt(both, is_second, of),
        as_ratio=as_ratio,
        size=float(y.mean() - x.mean()),
        error=sum(parts) ** 0.5,
        freedom=sum(parts) ** 2 / squares if squares > 0 else 0.0,
        ends=(ends[0], ends[1]),
    )


def means_by_task(value: np.ndarray, rows: np.ndarray, task: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tasks of these traces, and the mean of each."""
    tasks, inverse = np.unique(task[rows], return_inverse=True)
    return tasks, np.bincount(inverse, value[rows]) / np.bincount(inverse)


def _sizes(rows: np.ndarray, task: np.ndarray) -> np.ndarray:
    """How many of these traces each of their tasks has."""
    return np.unique(task[rows], return_counts=True)[1]


def _logarithms(value: np.ndarray, sides: Sequence[np.ndarray], task: np.ndarray) -> list[np.ndarray]:
    """Of each side's traces the logarithm of each task's mean; not finite where it has none.

    Where tasks of one side have many more traces, the mean of logarithms: the logarithm of a mean rises with their
    number, by half the variance of logarithms at most.
    """
    many = [float(_sizes(rows, task).mean()) for rows in sides]
    with np.errstate(divide="ignore", invalid="ignore"):
        if max(many) > MANY_MORE * min(many):
            return [means_by_task(np.log(value), rows, task)[1] for rows in sides]
        return [np.log(means_by_task(value, rows, task)[1]) for rows in sides]


def _over_tasks(value: np.ndarray, task: np.ndarray) -> np.ndarray:
    """Numbers over the mean of their task, so that large tasks count as small ones do; 0 in a task of zeros."""
    mean = means_by_task(value, np.arange(len(value)), task)[1][np.unique(task, return_inverse=True)[1]]
    scaled: np.ndarray = value / np.where(mean == 0, 1.0, mean)
    return scaled


def _dealt_within(value: np.ndarray, side: np.ndarray, task: np.ndarray) -> Dealt:
    """The test of the sum of tasks' differences: traces might have been dealt otherwise within their task."""
    varies, low, of = _varies(value, task)
    second = side == 1
    # A task's difference is a sum over the traces of its second side, up to what no dealing changes.
    weight = 1 / np.bincount(of, second) + 1 / np.bincount(of, ~second)
    return dealt(np.where(varies[of], value - low[of], 0.0) * weight[of], second, of)


def _dealing_error(value: np.ndarray, side: np.ndarray, task: np.ndarray) -> float:
    """The standard deviation of the mean of tasks' differences over such dealings as `_dealt_within` has."""
    _, of = np.unique(task, return_inverse=True)
    second, size = np.bincount(of, side == 1), np.bincount(of)
    first = size - second
    squares = np.bincount(of, (value - (np.bincount(of, value) / size)[of]) ** 2)
    weight = (1 / first + 1 / second) ** 2 * first * second / (size * (size - 1))
    return math.sqrt(float((weight * squares).sum())) / len(size)


def _varies(value: np.ndarray, task: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each task's numbers vary, and the least: [tasks]; and the place of each trace's task there: int [n]."""
    _, of = np.unique(task, return_inverse=True)
    low, high = np.full(of.max() + 1, np.inf), np.full(of.max() + 1, -np.inf)
    np.minimum.at(low, of, value)
    np.maximum.at(high, of, value)
    return ~alike(low, high), low, of


def _spread(values: np.ndarray) -> float:
    """The standard deviation, 0 where all values are alike."""
    return 0.0 if alike(values.min(), values.max()) else float(values.std(ddof=1))


def _by_student(difference: float, error: float, freedom: float) -> float:
    """Student's p-value."""
    from scipy.special import stdtr  # comes with JAX; slow to import

    return 2 * float(stdtr(freedom, -abs(difference) / error))
