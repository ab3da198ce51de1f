"""Means over clusters, such as tasks, with 95 % intervals: every printed interval of such a mean is made here.

A cluster gives one number, whatever the number of its traces and their lengths: the longest session would otherwise
define a mean over actions. Clusters are independent of each other; within a cluster nothing is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from graphs.dealing import flipped

__all__ = [
    "LEAST_OF_ANY",
    "LEAST_OF_BOTH",
    "LEAST_OF_RATIO",
    "LEAST_TASKS",
    "LEVEL",
    "ROUNDING",
    "TaskMean",
    "alike",
    "as_tested",
    "chance_above",
    "chance_interval",
    "chances_interval",
    "difference_interval",
    "fact_of",
    "holm",
    "mean_interval",
    "mean_of_tasks",
    "median_interval",
    "part_over_tasks",
    "ratio_interval",
    "shift_interval",
    "signed_ranks",
    "task_mean",
    "trials_over_tasks",
]

LEVEL = 0.05
"""Of the p-value below which a difference stands out."""

LEAST_TASKS = 8
"""Clusters that say something, for an interval. Three coin flips agree in a quarter of cases, and the interval of three
equal numbers leaves out every other number."""

LEAST_OF_BOTH = 32
"""Clusters of two kinds together for an interval of a chance: of 8 and 8 to 12 and 12 it held 98 to 99 %."""

LEAST_OF_ANY, LEAST_EACH_SIDE = 40, 3
"""Clusters for an interval of a metric of any distribution and, unless all numbers are 0 or 1, clusters above and below
the mean. A larger least number would state more intervals of rare numbers only where the mean is overestimated, and so
would a least number of 1s, or of clusters that have most of the variance: those are few where a rare large one was
seen, and many where it was missed."""

LEAST_OF_RATIO = 12
"""Clusters for an interval of a ratio of sums, of 0 or more (`ratio_interval`)."""

ROUNDING = 4 * float(np.finfo(np.float32).eps)
"""Part of the largest number below which numbers of single precision count as equal."""


def alike(first: np.ndarray | float, second: np.ndarray | float) -> np.ndarray:
    """Whether numbers differ by no more than single precision rounds."""
    return np.asarray(np.abs(np.subtract(second, first)) <= ROUNDING * np.maximum(np.abs(first), np.abs(second)))


class TaskMean(NamedTuple):
    """A mean over clusters.

    Attributes:
      mean: of the numbers of clusters; NaN without any.
      low, high: its 95 % interval; NaN where none is stated.
      p: of the two-sided test against the number that says nothing; NaN where there is none.
    """

    mean: float
    low: float
    high: float
    p: float


def task_mean(values: np.ndarray, nothing: float = 0.0) -> TaskMean:
    """The mean of one number a cluster, with `mean_interval`, `as_tested`.

    Its p-value is that of the sign-flip test (`graphs.dealing`). There is neither with fewer than `LEAST_TASKS`
    clusters that differ from `nothing`. Where all are equal there is a p-value without an interval.

    Args:
      values: float [G], finite.
      nothing: the number of a cluster that says nothing, such as one in which no trace differs.

    Reference: Fisher 1935, The Design of Experiments.

    Examples:
      >>> task_mean(np.arange(10.0) - 3)
      TaskMean(mean=1.5, low=-0.6658..., high=3.6658..., p=0.1835...)
      >>> task_mean(np.ones(9))
      TaskMean(mean=1.0, low=nan, high=nan, p=0.00390625)
      >>> task_mean(np.array([1.0, 2.0, 3.0]))
      TaskMean(mean=2.0, low=nan, high=nan, p=nan)
    """
    count = len(values)
    mean = float(np.mean(values)) if count else float("nan")
    if np.count_nonzero(values != nothing) < LEAST_TASKS:
        return TaskMean(mean, float("nan"), float("nan"), float("nan"))
    p = flipped(values - nothing).p
    return TaskMean(mean, *as_tested(mean_interval(values, nothing), p, nothing), p)


def as_tested(interval: tuple[float, float], p: float, nothing: float = 0.0) -> tuple[float, float]:
    """An interval that holds `nothing` wherever the test beside it, not corrected, does not reject that.

    Without, Student's interval of differences that are mostly alike left 0 out where the exact test did not, in a tenth
    of such tables. It only grows, so that it holds the truth no less often.

    Args:
      interval: of 95 %; NaN where there is none.
      p: of the test; NaN where it could not reject, whatever came out.
      nothing: the number that says that nothing differs.

    Examples:
      >>> as_tested((0.02, 0.4), 0.0625), as_tested((0.02, 0.4), 0.04)
      ((0.0, 0.4), (0.02, 0.4))
    """
    low, high = interval
    return (low, high) if p < LEVEL or math.isnan(low) else (min(low, nothing), max(high, nothing))


def mean_interval(values: np.ndarray, nothing: float = 0.0) -> tuple[float, float]:
    """The 95 % interval of a mean of one number a cluster; NaN where all are equal.

    It is m ± t_{0.975, G−1} s / √G, s the standard deviation of G clusters. Where all numbers lie on one side of
    `nothing` and their tail points away from it, Hall's interval corrects for the skewness: Student's of 60 numbers
    that are log-normal in a fifth of clusters and 0 in others held 88 %. Where the tail points to it, Student's stands:
    to correct for one small number beside eight large ones moved an end by seven standard errors.

    Two numbers, one on each side, are coins with Jeffreys' interval (`_of_coins`). Of more, on both sides, it reaches
    over Student's and that with the first term of the correction, m + s / √G (± t + g (1 + 2 t²) / (6 √G)), g the
    skewness: Student's of 8 to 20 skewed ones whose mean is `nothing` held 86 to 92 %, this one 91 to 95 %. Hall's, as
    a whole, held 94 to 97 %, and where 18 of 20 tasks rose by 1 and 2 fell by it, it held 0.

    Args:
      values: float [G], finite.
      nothing: the number of a cluster that says nothing; NaN for Student's interval.

    Reference: Student 1908; Hall 1983, Inverting an Edgeworth expansion; Hall 1992, On the removal of skewness by
    transformation.
    """
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return math.nan, math.nan
    tail = float(np.mean((values - np.mean(values)) ** 3))
    if (values.min() >= nothing and tail > 0) or (values.max() <= nothing and tail < 0):
        return _of_skewed(values)
    mean, stderr, count = float(np.mean(values)), float(values.std(ddof=1)) / len(values) ** 0.5, len(values)
    low, high = _around(mean, stderr, count - 1)
    if not values.min() < nothing < values.max():
        return low, high
    least, most = float(values.min()), float(values.max())
    if np.isin(values, (least, most)).all():
        low, high = _of_coins((values == most) * 1.0)
        return least + (most - least) * low, least + (most - least) * high
    quantile = (high - mean) / stderr
    moved = _skewness(values) / (6 * count**0.5) * (1 + 2 * quantile**2) * stderr
    return low + min(moved, 0.0), high + max(moved, 0.0)


def _are_coins(values: np.ndarray) -> bool:
    return bool(np.isin(values, (0, 1)).all())


def _of_parts(values: np.ndarray) -> tuple[float, float]:
    """The interval of a mean of numbers from 0 to 1, whose tail points away from the end that most are near."""
    if _are_coins(values):
        return _of_coins(values)
    return mean_interval(values, float(np.mean(values) >= 0.5))


def _of_coins(values: np.ndarray) -> tuple[float, float]:
    """`_of_chance` of numbers that are 0 or 1."""
    return _of_chance(int(np.count_nonzero(values)), int(np.count_nonzero(values == 0)))


def _of_chance(ones: float, zeros: float) -> tuple[float, float]:
    """Quantiles of Jeffreys' posterior of a chance, Beta(k + ½, n − k + ½), of n trials of which k gave 1.

    Where all are equal the interval holds that end.

    Reference: Brown, Cai and DasGupta 2001.
    """
    from scipy.special import betaincinv  # comes with JAX; slow to import

    low, high = (float(betaincinv(ones + 0.5, zeros + 0.5, part)) for part in (0.025, 0.975))
    return low if ones else 0.0, high if zeros else 1.0


def part_over_tasks(some: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, float, float]:
    """What each task adds to the error of a part, the part, and how many independent traces tell as much.

    Args:
      some: of each task, how many traces have something: [tasks].
      size: how many it has.

    Examples:
      >>> _, part, many = part_over_tasks(np.array([2.0, 0, 2, 0, 2, 0, 0, 2]), np.full(8, 2))
      >>> part, round(many, 1)
      (0.5, 8.0)
    """
    n, clusters = float(size.sum()), int(np.count_nonzero(size))
    part, most = float(some.sum()) / n, float(np.sum(size**2)) / n
    off = (some - part * size) / n
    variance, alone = clusters / max(clusters - 1, 1) * float(off @ off), part * (1 - part) / n
    return off, part, n / (min(max(variance / alone, 1.0), most) if alone > 0 else most)


def chance_interval(some: np.ndarray, task: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the chance that a run has something; NaN where runs are of fewer than `LEAST_TASKS` tasks.

    It is Jeffreys' (`_of_chance`) of as many trials as tell as much (`trials_over_tasks`). Of 8 to 80 tasks with 1 to 6
    runs, alike in all, half or none, it held 95 to 97 % of chances of 5 to 95 %.

    Args:
      some: whether a run has it: bool [n].
      task: of each: int [n].

    Reference: Brown, Cai and DasGupta 2001; Kish 1965, Survey Sampling.

    Examples:
      >>> low, high = chance_interval(np.arange(30) < 16, np.arange(30))
      >>> round(low, 2), round(high, 2)
      (0.36, 0.7)
    """
    if len(np.unique(task)) < LEAST_TASKS:
        return math.nan, math.nan
    part, many = trials_over_tasks(some, task)
    return _of_chance(part * many, (1 - part) * many)


def trials_over_tasks(some: np.ndarray, task: np.ndarray) -> tuple[float, float]:
    """The part of runs that have something, and how many independent ones tell as much, one at least.

    These are `part_over_tasks`, fewer by Student's quantile where tasks have several runs: how alike these are is not
    known from few tasks. Without, intervals of runs that are alike in all tasks held 93 %.

    Args:
      some: whether a run has it: bool [n].
      task: of each: int [n].

    Examples:
      >>> trials_over_tasks(np.arange(8) < 4, np.arange(8))
      (0.5, 8.0)
    """
    from scipy.special import ndtri, stdtrit  # comes with JAX; slow to import

    of = np.unique(task, return_inverse=True)[1]
    size = np.bincount(of)
    _, part, many = part_over_tasks(np.bincount(of, some), size)
    if size.max() > 1:
        many *= (float(ndtri(0.975)) / float(stdtrit(max(len(size) - 1, 1), 0.975))) ** 2
    return part, max(many, 1.0)


def chances_interval(means: Sequence[float], trials: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the second of two chances less the first, as `difference_interval` has it.

    Args:
      means: the part of trials that gave 1, of both.
      trials: how many there were, not necessarily whole.

    Examples:
      >>> low, high = chances_interval([0.0, 0.05], [20, 200])
      >>> round(low, 3), round(high, 3)
      (-0.069, 0.087)
    """
    each = [_of_chance(mean * many, (1 - mean) * many) for mean, many in zip(means, trials, strict=True)]
    return _of_both(means[0], each[0], means[1], each[1])


def _of_both(one: float, its: tuple[float, float], other: float, others: tuple[float, float]) -> tuple[float, float]:
    """The interval of `other` less `one` of the intervals of both."""
    (low, high), (lower, higher), apart = its, others, other - one
    return apart - math.hypot(other - lower, high - one), apart + math.hypot(higher - other, one - low)


def difference_interval(first: np.ndarray, second: np.ndarray, *, unit: bool = False) -> tuple[float, float]:
    """The 95 % interval of the mean of `second` less that of `first`, one number each of independent clusters.

    It is Welch's, d ± t e with d = m₂ − m₁ and e² = s₁² / n₁ + s₂² / n₂, and reaches over that with the first term of a
    correction for skewness, d + e (± t + (g₂ s₂³ / n₂² − g₁ s₁³ / n₁²) (1 + 2 t²) / (6 e³)), as `mean_interval` does.
    To join intervals of both means held 98 to 99.8 % of successes of 8 to 20 tasks of 1 to 4 runs a side, and found a
    change from 0.5 to 0.9 in 54 % of pairs of 20 tasks, now 93 %.

    A kind whose numbers are all 0 or 1, as where a rare one was not seen, has the spread that a chance may have. With
    intervals l₁ to u₁ and l₂ to u₂ of the means it reaches from d − √((m₂ − l₂)² + (u₁ − m₁)²) to
    d + √((u₂ − m₂)² + (m₁ − l₁)²). Welch's of 20 and 200 chances of 5 % held 63 %. There is none, and NaN, where other
    numbers of a kind are equal, and of amounts with a `unit`, as money is, whose 1 is no end.

    Reference: Welch 1947; Zhou and Dinh 2005, Nonparametric confidence intervals for the one- and two-sample problems;
    Newcombe 1998; Zou and Donner 2008, Construction of confidence limits about effect measures.

    Examples:
      >>> low, high = difference_interval(np.zeros(20), np.array([1.0] * 10 + [0.0] * 190))
      >>> round(low, 3), round(high, 3)
      (-0.069, 0.087)
    """
    apart, kinds = float(np.mean(second) - np.mean(first)), (first, second)
    parts = not unit and min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) <= 1
    if parts and any(map(_are_coins, kinds)):
        return _of_both(float(np.mean(first)), _of_parts(first), float(np.mean(second)), _of_parts(second))
    if any(np.ptp(kind) <= ROUNDING * np.abs(kind).max() for kind in kinds):
        return math.nan, math.nan
    squares = [float(kind.var(ddof=1)) / len(kind) for kind in kinds]
    error = sum(squares) ** 0.5
    degrees = error**4 / sum(square**2 / (len(kind) - 1) for square, kind in zip(squares, kinds, strict=True))
    low, high = _around(apart, error, degrees)
    tails = [_skewness(kind) * square**1.5 / len(kind) ** 0.5 for square, kind in zip(squares, kinds, strict=True)]
    moved = (tails[1] - tails[0]) / error**2 * (1 + 2 * ((high - apart) / error) ** 2) / 6
    return low + min(moved, 0.0), high + max(moved, 0.0)


def ratio_interval(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of a ratio of sums, of what clusters add to each; NaN where there is none.

    It is that of the mean of pseudo-values of its logarithm, G l − (G − 1) l₋ᵢ with l₋ᵢ that without cluster i, by
    `mean_interval` with their skewness on the side of their tail. Of log-normal costs of 12 to 100 tasks with 1 to 6
    runs, of which 17 to 86 % succeed, it held 88 to 99 %, without the skewness 84 to 99 %. There is none of fewer than
    `LEAST_OF_RATIO` clusters, or where fewer than `LEAST_TASKS` add to `below`.

    Args:
      above, below: float [G], 0 or more, but for what a weighted success takes away from `below`.

    Reference: Tukey 1958, Bias and confidence in not-quite large samples; Fieller 1954.

    Examples:
      >>> low, high = ratio_interval(np.arange(1.0, 41), np.ones(40))
      >>> round(low, 1), round(high, 1)  # of 20.5
      (17.1, 24.6)
    """
    count = len(above)
    if count < LEAST_OF_RATIO or np.count_nonzero(below) < LEAST_TASKS or not above.sum() > above.max():
        return math.nan, math.nan
    if not below.sum() > below.max():
        return math.nan, math.nan
    whole = math.log(above.sum() / below.sum())
    without = np.log((above.sum() - above) / (below.sum() - below))
    values = count * whole - (count - 1) * without
    low, high = mean_interval(values - values.mean(), 0.0)
    return math.exp(whole + low), math.exp(whole + high)


def mean_of_tasks(numbers: np.ndarray, *, single: bool = False) -> tuple[TaskMean, str]:
    """The mean of one number a task with its interval, and why there is none: "" where there is one.

    Numbers that are 0 or 1 have that of a chance (`_of_coins`), others `mean_interval`, and those from 0 to 1 end
    there. Nothing is tested: p is NaN.

    Args:
      numbers: float [G].
      single: whether each is of one trial, 0 or 1 whatever came out: `LEAST_TASKS` have an interval then.

    Examples:
      >>> found, _ = mean_of_tasks(np.array([1.0] + [0.0] * 39))
      >>> round(found.low, 4), round(found.high, 4)
      (0.0027, 0.1109)
    """
    mean = float(np.mean(numbers)) if len(numbers) else math.nan
    least = LEAST_TASKS if single else LEAST_OF_ANY
    if len(numbers) < least:
        return TaskMean(mean, *(math.nan,) * 3), f"fewer than {least} tasks"
    margin = 8 * np.finfo(np.float64).eps * np.abs(numbers)  # rounding of the mean
    sides = np.sum(numbers > mean + margin), np.sum(numbers < mean - margin)
    if single or (min(sides) > 0 and _are_coins(numbers)):
        return TaskMean(mean, *_of_coins(numbers), math.nan), ""
    if min(sides) < LEAST_EACH_SIDE:
        words = f"fewer than {LEAST_EACH_SIDE} tasks above the mean, or below it"
        return TaskMean(mean, *(math.nan,) * 3), words
    if numbers.min() >= 0 and numbers.max() <= 1:
        low, high = _of_parts(numbers)
        return TaskMean(mean, max(low, 0.0), min(high, 1.0), math.nan), ""
    return TaskMean(mean, *mean_interval(numbers), math.nan), ""


def _of_skewed(numbers: np.ndarray) -> tuple[float, float]:
    """Student's interval of a mean with Hall's correction for skewness.

    With a = g / (6 √n) and g the skewness, t is mapped to t + 2 a t² + (4/3) a² t³ + a, which is nearly symmetric, and
    the ends are those at Student's quantiles. Without it, the intervals of 40 log-normal numbers held 89 %.
    """
    from scipy.special import stdtrit  # comes with JAX; slow to import

    n = len(numbers)
    a = _skewness(numbers) / (6 * n**0.5)
    above = float(stdtrit(n - 1, 0.975))
    low, high = (
        (float(np.cbrt(1 + 6 * a * (y - a))) - 1) / (2 * a) if abs(a) > 1e-6 else y  # else rounding
        for y in (above, -above)
    )
    mean, stderr = float(np.mean(numbers)), float(numbers.std(ddof=1)) / n**0.5
    return mean - low * stderr, mean - high * stderr


def _skewness(numbers: np.ndarray) -> float:
    """The adjusted skewness of three numbers or more, not all equal."""
    n, off = len(numbers), numbers - np.mean(numbers)
    return float(np.mean((off / numbers.std()) ** 3) * (n * (n - 1)) ** 0.5 / (n - 2))


def chance_above(first: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """The chance that the number of a cluster of one kind is above that of the other, ties half, and its interval.

    With `U_i` the share of the other kind's numbers below `first_i` and `V_j` the share of `first` above `other_j`, the
    chance c is the mean of U, and of V, and its variance s²_U / n + s²_V / m, with Welch's degrees of freedom. The
    interval is Student's of ln c / (1 − c): that of c itself held 83 % of a chance of 92 % of 8 against 40 clusters.
    There is none, and NaN, with fewer than `LEAST_TASKS` clusters of a kind or `LEAST_OF_BOTH` of both, or where U or V
    are all equal: what that kind adds to the variance is then not known, and of 20 against 200 clusters of which 2 %
    have 1 and others 0 the interval held 65 %.

    Args:
      first, other: float [n] and [m], one number a cluster.

    Reference: Brunner and Munzel 2000.

    Examples:
      >>> chance_above(np.arange(20.0) + 2, np.arange(20.0))
      (0.595, 0.4..., 0.7...)
    """
    count, others = len(first), len(other)
    if not (count and others):
        return (float("nan"),) * 3
    below, above = _placements(first, other), 1 - _placements(other, first)
    mean = float(below.mean())
    few = min(count, others) < LEAST_TASKS or count + others < LEAST_OF_BOTH
    if few or not (np.ptp(below) > 0 and np.ptp(above) > 0):
        return mean, float("nan"), float("nan")
    one, two = float(below.var(ddof=1)) / count, float(above.var(ddof=1)) / others
    degrees = (one + two) ** 2 / (one**2 / (count - 1) + two**2 / (others - 1))
    rest = mean * (1 - mean)
    low, high = _around(math.log(mean / (1 - mean)), (one + two) ** 0.5 / rest, degrees)
    return mean, math.exp(-math.log1p(math.exp(-low))), math.exp(-math.log1p(math.exp(-high)))


def _placements(numbers: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The share of `among` below each number, ties half."""
    ordered = np.sort(among)
    twice = np.searchsorted(ordered, numbers, "left") + np.searchsorted(ordered, numbers, "right")
    return np.asarray(twice / (2 * len(among)))


def _around(mean: float, stderr: float, degrees: float) -> tuple[float, float]:
    """Student's interval."""
    from scipy.special import stdtrit  # comes with JAX; slow to import

    half = float(stdtrit(degrees, 0.975)) * stderr
    return mean - half, mean + half


def median_interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """A 95 % interval of the median of what the values are drawn from, between two of the values in order.

    From the d-th least to the d-th largest of n values, the interval holds the median with probability
    1 − 2 P(B ≤ d − 1), B binomial (n, 1/2), whatever the distribution. Between the two nearest d it is interpolated.
    Five values hold it in 94 %, equal ones in more. Fewer have no interval: NaN.

    Args:
      values: [n], in any order; infinite ones are the largest.

    Reference: Hettmansperger and Sheather 1986.

    Examples:
      >>> median_interval([4.0, 2.0, 3.0, 1.0, float("inf")])
      (1.0, inf)
      >>> median_interval([1.0, 2.0])
      (nan, nan)
    """
    from scipy.special import bdtr

    x = np.sort(np.asarray(values, np.float64))
    n = len(x)
    if n < 5:
        return float("nan"), float("nan")
    holds = [1 - 2 * float(bdtr(d, n, 0.5)) for d in range((n + 1) // 2)]
    d = max([k for k, chance in enumerate(holds) if chance >= 0.95], default=0)  # counted from 0
    past = (holds[d] - 0.95) / (holds[d] - holds[d + 1]) if holds[d] >= 0.95 else 0.0
    part = (n - d - 1) * past / (d + 1 + (n - 2 * d - 2) * past)
    return _between(x[d], x[d + 1], part), _between(x[n - 1 - d], x[n - 2 - d], part)


def _between(outer: float, inner: float, part: float) -> float:
    return float(outer + part * (inner - outer)) if np.isfinite([outer, inner]).all() else float(outer)


def shift_interval(values: np.ndarray) -> tuple[float, tuple[float, float]]:
    """The median of the means of two of these numbers, one of them with itself, too, and its 95 % interval.

    One number that is far off moves it little, as it does a median. Of normal numbers its variance is a twentieth more
    than a mean's, and a median's is half more. The interval leaves 0 out where the test of `signed_ranks` has a p
    below 0.05.

    Args:
      values: [n], 6 or more.

    Reference: Hodges and Lehmann 1963, Estimates of location based on rank tests; Tukey 1949.

    Examples:
      >>> middle, (low, high) = shift_interval(np.array([1.0, 2, 3, 4, 5, 6, 7, 100]))
      >>> round(middle, 6), round(low, 6), round(high, 6)
      (4.5, 2.0, 52.5)
    """
    from scipy.special import ndtri  # comes with JAX; slow to import

    x, n = np.sort(values), len(values)
    every, spread = n * (n + 1) / 2, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    out = max(math.floor(every / 2 + float(ndtri(0.025)) * spread - 0.5), 0)  # means that lie beyond each end
    below = np.array([out, (every - 1) // 2, every // 2, every - 1 - out])  # how many lie below what is sought
    low, high = np.full(4, x[0]), np.full(4, x[-1])
    for _ in range(60):
        middle = (low + high) / 2
        pairs = np.searchsorted(x, 2 * middle[:, None] - x, "right").sum(axis=1)
        enough = (pairs + np.searchsorted(x, middle, "right")) / 2 > below
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return float(high[1] + high[2]) / 2, (float(high[0]), float(high[3]))


def signed_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks of absolute numbers from 1, equal ones with the mean of theirs, with the signs of the numbers.

    Reference: Wilcoxon 1945, Individual comparisons by ranking methods.

    Examples:
      >>> signed_ranks(np.array([-3.0, 1.0, 3.0])).tolist()
      [-2.5, 1.0, 2.5]
    """
    size, ordered = np.abs(values), np.sort(np.abs(values))
    twice: np.ndarray = np.searchsorted(ordered, size, "left") + np.searchsorted(ordered, size, "right") + 1
    return np.asarray(np.sign(values) * twice / 2)


def holm(
    p_values: Sequence[float], facts: Sequence[Hashable] | None = None, least: Sequence[float] | None = None
) -> list[float]:
    """P-values corrected by Holm's method: one below a level is so with a chance of the level if no effect is there.

    Each is multiplied by the number of tests left whose least p is no larger: no other test can give so small a one.

    Args:
      p_values: uncorrected; NaN is no test, and stays.
      facts: what each test is about. Tests of one fact are one test, and have one p-value. None where all differ.
      least: the least p that each test could have given, whatever came out; None for 0.

    Reference: Holm 1979; Tarone 1990; Hommel and Krummenauer 1998.

    Examples:
      >>> holm([0.01, float("nan"), 0.5, 0.02])
      [0.03, nan, 0.5, 0.04]
      >>> holm([0.01, 0.01, 0.5, 0.02], ["agents", "agents", "errors", "loops"])
      [0.03, 0.03, 0.5, 0.04]
      >>> holm([0.01, 0.04, 0.5], least=[0.001, 0.03, 0.03])
      [0.01, 0.08, 0.5]
    """
    facts = range(len(p_values)) if facts is None else facts
    first = {fact: i for i, fact in reversed([*enumerate(facts)])}
    left = sorted((i for i in first.values() if p_values[i] == p_values[i]), key=lambda i: p_values[i])
    corrected, worst = list(map(float, p_values)), 0.0
    for rank, i in enumerate(left):
        as_small = sum(not least or least[j] <= p_values[i] * (1 + 1e-9) for j in left[rank:])
        worst = max(worst, min(1.0, p_values[i] * as_small))
        corrected[i] = worst
    return [corrected[first[fact]] for fact in facts]


def fact_of(values: np.ndarray) -> bytes:
    """A key that numbers share which are a function of one another, on a straight line: no test tells these apart.

    In a team of two, of which one always acts, the number of agents and whether the other one acts are one fact.

    Args:
      values: a number of each member, NaN where it has none; not all alike.

    Examples:
      >>> agents, acts = np.array([1, 2, 2, np.nan]), np.array([0, 1, 1, np.nan])
      >>> fact_of(agents) == fact_of(acts) == fact_of(-acts), fact_of(acts) == fact_of(acts[::-1])
      (True, False)
    """
    known = np.isfinite(values)
    low, high = values[known].min(), values[known].max()
    # Rounded, since amounts of money are sums that differ in the last digits.
    up, down = (np.round(part[known] / (high - low), 9).tobytes() for part in (values - low, high - values))
    return bytes(known.tobytes() + min(up, down))
