"""How often chance alone gives a sum as far off as the one seen: kinds dealt at random among the members of a stratum.

Kinds are sides, or failed and succeeded traces. Nothing is assumed of the numbers, so that a perfect separation of few
tasks gets its own probability.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

__all__ = ["Dealt", "dealt", "flipped"]

GRID = 4096
"""Steps between the least and the largest sum. Scores are rounded to them, and the test of rounded scores is exact."""

PARTS = 12
"""Parts of the least difference of scores: those that are whole numbers of one are not rounded to `GRID`.

Mean ranks of ties are halves. Rounded, sums that are equal differed, and p was 0.22 where it is 0.34.
"""

WORK = 10_000_000
"""Additions of an exact test. Beyond them members are so many that their sum is near enough to normal."""


class Dealt(NamedTuple):
    """A test.

    Attributes:
      p: two-sided: twice the chance of a sum at least as far off, at most 1.
      least: the smallest p that any choice of members would give.
    """

    p: float
    least: float


def dealt(scores: np.ndarray, chosen: np.ndarray, stratum: np.ndarray) -> Dealt:
    """The permutation test of the sum of the chosen members' scores: each stratum chooses as many, at random.

    It is exact while that takes few steps. Beyond, the sum is taken as normal, half a step of the scores nearer to its
    mean, which is Yates's correction.

    Args:
      scores: float [n], finite.
      chosen: whether a member is of the one kind: bool [n].
      stratum: the members among which kinds are dealt: int [n].

    Reference: Fisher 1935, The Design of Experiments; Pitman 1937.

    Examples:
      >>> dealt(np.array([0, 1] * 9), np.array([False, True] * 9), np.repeat(np.arange(9), 2))  # 9 pairs: 2 / 2⁹
      Dealt(p=0.00390625, least=0.00390625)
      >>> dealt(np.arange(5), np.arange(5) > 2, np.zeros(5))  # one of 10 choices, twice
      Dealt(p=0.2, least=0.2)
    """
    order = np.lexsort((scores, stratum))
    of = _numbered(stratum[order])
    score, chosen = np.asarray(scores, np.float64)[order], np.asarray(chosen, bool)[order]
    size, many = np.bincount(of), np.bincount(of, chosen).astype(np.int64)
    begin = np.cumsum(size) - size
    varies = ((many > 0) & (many < size) & (score[begin + size - 1] > score[begin]))[of]
    if not varies.any():
        return Dealt(1.0, 1.0)
    kept = np.flatnonzero(varies)
    rank, score, chosen = kept - begin[of[kept]], (score - score[begin][of])[kept], chosen[kept]
    size_of, many_of = size[of[kept]], many[of[kept]]
    of = _numbered(of[kept])
    ends = [float(score[rank < many_of].sum()), float(score[rank >= size_of - many_of].sum())]
    gaps = np.diff(score)[np.diff(of) == 0]
    step = float(gaps[gaps > 0].min())
    parts_of_step = np.arange(1, PARTS + 1)
    in_parts = parts_of_step[:, None] * (score / step)
    whole = np.all(np.abs(in_parts - np.rint(in_parts)) < 1e-6, axis=1)
    whole &= parts_of_step * (ends[1] - ends[0]) <= GRID * step
    counts = in_parts[whole.argmax()] if whole.any() else score * (GRID / (ends[1] - ends[0]))
    count = np.rint(counts).astype(np.int64)
    numbers, begins = count.tolist(), [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(count)]
    parts = (tuple(numbers[a:b]) for a, b in itertools.pairwise(begins))
    strata = collections.Counter(zip(many_of[rank == 0].tolist(), parts, strict=True))
    if len(count) > WORK // GRID or _work(strata) > WORK:
        return _normal(score, float(score[chosen].sum()), ends, step, of, many_of[rank == 0])
    chance = np.ones(1)
    for (k, part), n in strata.items():
        one = _sums(part, k)
        for _ in range(n):
            chance = _added(chance, one)
    seen, possible = int(count[chosen].sum()), np.flatnonzero(chance)
    p = 2 * min(float(chance[: seen + 1].sum()), float(chance[seen:].sum()), 0.5)
    return Dealt(p, min(2 * float(chance[possible[[0, -1]]].min()), 1.0))


def flipped(values: np.ndarray) -> Dealt:
    """The sign-flip test of a mean of differences of 0: each of them might as well have had the other sign.

    Args:
      values: float [n].

    Examples:
      >>> flipped(np.array([1.0] * 30 + [0.0])).p == 2 / 2**30
      True
    """
    scores, chosen = np.stack([np.zeros(len(values)), values]), np.repeat([[False], [True]], len(values), axis=1)
    stratum = np.broadcast_to(np.arange(len(values)), scores.shape)
    return dealt(scores.ravel(), chosen.ravel(), stratum.ravel())


def _numbered(ids: np.ndarray) -> np.ndarray:
    """The number of each among distinct ones, which are in order."""
    return np.cumsum(np.append(False, ids[1:] != ids[:-1])[: len(ids)])


def _work(strata: Mapping[tuple[int, tuple[int, ...]], int]) -> int:
    """Additions that the chances of all sums take."""
    work, length = 0, 1
    for (many, part), times in strata.items():
        top = int(sum(part[-many:]))
        work += len(part) * many * top + times * min(math.comb(len(part), many), top, length) * (length + top)
        length += times * top
    return work


@functools.lru_cache(maxsize=1024)  # one call in twelve has new counts
def _sums(part: tuple[int, ...], many: int) -> np.ndarray:
    """The chance of each sum of `many` of these counts, chosen at random: float [greatest sum + 1]."""
    ways = np.zeros((many + 1, sum(part[-many:]) + 1))
    ways[0, 0] = 1
    for i, number in enumerate(part):
        most, least = min(i + 1, many), max(1, many - len(part) + i + 1)  # chosen so far, if the rest can make it many
        ways[least : most + 1, number:] += ways[least - 1 : most, : ways.shape[1] - number].copy()
    chances = np.asarray(ways[many] / math.comb(len(part), many))
    chances.flags.writeable = False  # shared by all who ask
    return chances


def _added(chance: np.ndarray, one: np.ndarray) -> np.ndarray:
    """The chances of sums of two independent counts."""
    numbers = one.nonzero()[0]
    if 2 * len(numbers) >= len(one):
        return np.convolve(chance, one)
    if len(numbers) > np.count_nonzero(chance):
        chance, one, numbers = one, chance, chance.nonzero()[0]
    total = np.zeros(len(chance) + len(one) - 1)
    for number, part in zip(numbers.tolist(), one[numbers].tolist(), strict=True):
        total[number : number + len(chance)] += part * chance
    return total


def _normal(score: np.ndarray, seen: float, ends: list[float], step: float, of: np.ndarray, many: np.ndarray) -> Dealt:
    """The same by the mean and the variance of the sum."""
    from scipy.special import ndtr  # comes with JAX; slow to import

    size = np.bincount(of)
    mean = np.bincount(of, score) / size
    squares = np.bincount(of, (score - mean[of]) ** 2)
    middle, spread = (
        float((many * mean).sum()),
        float(np.sum(many * (size - many) / (size * (size - 1)) * squares)) ** 0.5,
    )
    p, *least = (2 * float(ndtr(-max(abs(s - middle) - step / 2, 0.0) / spread)) for s in (seen, *ends))
    return Dealt(p, min(least))
