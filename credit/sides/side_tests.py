"""The statistics of one metric on two sides: paired within shared tasks, where there are any."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from credit.metrics.trace_metrics import PARTS
from credit.reports.tasks import mean_over_tasks
from credit.reports.trace_numbers import TraceMetric, is_amount
from credit.sides.asked_metrics import FIRST
from credit.sides.comparable_traces import of_told_tasks, refusals
from credit.sides.side_rows import Needed, SideDifference, SideRatio
from graphs.dealing import Dealt, dealt, flipped
from graphs.task_means import (
    LEAST_OF_ANY,
    LEAST_TASKS,
    LEVEL,
    ROUNDING,
    alike,
    as_tested,
    difference_interval,
    mean_interval,
    shift_interval,
    signed_ranks,
)

__all__ = ["compare_metric", "means_by_task"]

MANY_MORE = 1.5
"""Times the traces a task from which a side's amounts have geometric means over the traces of each task."""


def compare_metric(
    name: str, metric: TraceMetric, side: np.ndarray, task: np.ndarray, untold: np.ndarray | None = None
) -> SideDifference | None:
    """One metric; None where a side has no number of a known task."""
    from scipy.special import stdtrit  # comes with JAX; slow to import

    measured, means = metric.value, []
    untold = np.zeros(len(side), bool) if untold is None else untold
    metric = of_told_tasks(metric, untold)
    value = metric.value
    for one in (0, 1):
        rows = np.flatnonzero(np.isfinite(value) & (side == one))
        means.append((*means_by_task(value, rows, task), len(rows)))
    (tasks, first, before), (others, second, after) = means
    if not (before and after):
        return None
    shared, i, j = np.intersect1d(tasks, others, return_indices=True)
    paired = len(shared) > 0
    error, freedom, test, differing, change, by_dealing = 0.0, 0.0, Dealt(1.0, 1.0), None, 0.0, 0.0
    as_ratio, ends = is_amount(name), (math.nan, math.nan)
    if paired:
        first, second = first[i], second[j]
        kept = np.isfinite(value) & np.isin(task, shared) & (side >= 0)
        before, after = (int((kept & (side == one)).sum()) for one in (0, 1))
        differs = ~alike(first, second)
        differing = int(np.count_nonzero(differs))
        sides = [np.flatnonzero(kept & (side == one)) for one in (0, 1)]
        uneven = bool((_sizes(sides[0], task) != _sizes(sides[1], task)).any())
        apart = second - first
        if as_ratio:
            x, y = _logarithms(value, sides, task)
            as_ratio = bool(np.isfinite(np.concatenate([x, y])[np.tile(differs, 2)]).all())
        apart = y[differs] - x[differs] if as_ratio else np.where(differs, apart, 0.0)
        if differing >= LEAST_TASKS:
            error, freedom = _spread(apart) / len(apart) ** 0.5, len(apart) - 1.0
            test = flipped(signed_ranks(apart.round(12)) if as_ratio else apart)
            if uneven:  # differences lean to one side then, whatever the sides do: of 8 rare failures and 1, to -1
                amounts = _over_tasks(value[kept], task[kept]) if as_ratio else value[kept]
                by_trace = _dealt_within(amounts, side[kept], task[kept])
                test = Dealt(max(test.p, by_trace.p), max(test.least, by_trace.least))
                by_dealing = _dealing_error(amounts, side[kept], task[kept]) * len(shared) / len(apart)
            change = float(apart.mean())
            if as_ratio:
                change, ends = shift_interval(apart)
                half = (ends[1] - ends[0]) / 2
                error = half / float(stdtrit(freedom, 1 - LEVEL / 2)) if half > ROUNDING else error  # most are alike
            elif not is_amount(name) or len(apart) >= LEAST_OF_ANY:  # log-normal amounts, 0 in 60 %: 8 tasks held 85 %
                ends = mean_interval(apart)
        elif differing:
            test = _of_few(value[kept], side[kept], task[kept], apart)
    elif min(len(first), len(second)) >= LEAST_TASKS:
        both = np.concatenate([first, second])
        if _spread(both) > 0:
            sides = [np.flatnonzero(np.isfinite(value) & (side == one)) for one in (0, 1)]
            if as_ratio:
                logs = np.concatenate(_logarithms(value, sides, task))
                as_ratio = bool(np.isfinite(logs).all())
                both = logs - logs.mean() if as_ratio else both  # a unit changes nothing
            x, y = both[: len(first)], both[len(first) :]
            parts = [_spread(part) ** 2 / len(part) for part in (x, y)]
            error = sum(parts) ** 0.5
            squares = sum(part**2 / (len(of) - 1) for part, of in zip(parts, (x, y), strict=True))
            freedom = sum(parts) ** 2 / squares if squares > 0 else 0.0
            test = dealt(both, np.arange(len(both)) < len(first), np.zeros(len(both)))
            change, ends = float(y.mean() - x.mean()), difference_interval(x, y)
    before_mean, after_mean = float(first.mean()), float(second.mean())
    difference = 0.0 if alike(before_mean, after_mean) else after_mean - before_mean
    low, high, p, seen, ratio, needed = None, None, test.p, None, None, None
    if error > 0:
        p = p if paired else max(p, _by_student(change, error, freedom))
        needed = Needed(error, freedom, by_dealing, 0.0 if math.isnan(ends[0]) else (ends[1] - ends[0]) / 2)
        seen = needed.seen(1)
    p = p if test.least < LEVEL else math.nan
    ends, as_found = as_tested(ends, p), ends
    moved = not math.isnan(ends[0]) and ends != as_found
    if as_ratio and not math.isnan(ends[0]):
        times, least, most = (math.exp(end) for end in (change, *ends))
        ratio = SideRatio(times, least, most, None if seen is None else math.exp(seen))
    has_zeros = error > 0 and math.isnan(ends[0]) and is_amount(name) and not as_ratio
    if as_ratio:
        seen = None
    elif error > 0 and not math.isnan(ends[0]):
        low, high = (max(ends[0], -1.0), min(ends[1], 1.0)) if name in PARTS else ends
    else:
        seen = None
    numbers = (low, high, None if math.isnan(p) else p, test.least if test.least < 1 else None, seen)
    compared = len(shared) if paired else len(np.union1d(tasks, others))
    asked = side >= 0
    if paired:  # a task of one side is not compared, whatever its numbers
        asked &= np.isin(task, np.intersect1d(task[side == 0], task[side == 1])) | untold
    counts = compared, (before, after), paired, differing, refusals(metric, asked)
    first_rows, second_rows = asked & (side == 0), asked & (side == 1)
    every, lacks = (int(first_rows.sum()), int(second_rows.sum())), ~np.isfinite(value)
    lacking = int((first_rows & lacks).sum()), int((second_rows & lacks).sum())
    found = SideDifference(name, before_mean, after_mean, difference, *numbers, *counts, every, lacking, ratio)
    found = dataclasses.replace(found, untold=(int((first_rows & untold).sum()), int((second_rows & untold).sum())))

    def of_both(each: np.ndarray) -> tuple[float, float]:
        first, second = (
            mean_over_tasks(each, rows & np.isfinite(each), task, untold) for rows in (first_rows, second_rows)
        )
        return first, second

    if name == "ended_early" and any(found.untold):
        found = dataclasses.replace(found, least_rest=of_both(measured), most_rest=of_both(measured))
    if name in FIRST and any(lacking):
        outcomes = value[(side >= 0) & ~lacks]
        rest_of = (0.0, 1.0) if name == "success" else (outcomes.min(), outcomes.max())
        rest = [of_both(np.where(lacks, end, value)) for end in rest_of]
        found = dataclasses.replace(found, least_rest=rest[0], most_rest=rest[1])
        if needed is not None and found.seen is not None:
            # A difference is diluted by the part that is missing, and moved by what fills that.
            part = sum(of_both(1.0 - lacks)) / 2
            least, most = sorted((after - before) / part for before, after in rest)
            needed = dataclasses.replace(needed, turns=max(difference - least, most - difference))
            found = dataclasses.replace(found, seen=needed.seen(1))
    return dataclasses.replace(found, needed=needed, has_zeros=has_zeros, moved=moved)


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


def _of_few(value: np.ndarray, side: np.ndarray, task: np.ndarray, apart: np.ndarray) -> Dealt:
    """The test where few tasks differ: by task where `LEAST_TASKS` vary, else by trace, with as many on each side.

    Which one does not depend on the side of a trace within its task.

    Args:
      value, side, task: of each trace that is compared: [n].
      apart: the difference of each task: [tasks].
    """
    if np.count_nonzero(_varies(value, task)[0]) >= LEAST_TASKS:
        return flipped(apart)
    if min(np.count_nonzero(side == one) for one in (0, 1)) < LEAST_TASKS:
        return Dealt(1.0, 1.0)
    return _dealt_within(value, side, task)


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
