"""Regions of circumstances in which a critic's increments mean different things, found on the tasks that it knows.

Within a region, the slope of R − V̂(G<e) on the increments D̂_e is 1 if they are right, and 0 if the events do nothing.
A region is cut in two where the slopes of the halves differ most, by `DIFFERENCE` standard errors or more. The cuts
come from the tasks that the critic was fitted on, so tests of the regions on other tasks are honest.

Reference: Athey and Imbens 2016, PNAS 113, 7353 (trees for effects that differ, judged on other data).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from estimators.critic.signs.circumstances import CIRCUMSTANCES

__all__ = ["Region", "regions"]

DIFFERENCE = 3.5
"""Standard errors by which two slopes differ at a cut; of the largest of some hundred that are looked at."""
LEAST_TRACES = 30
"""Traces with decided events on each side of a cut."""
DEPTH = 3
QUANTILES = np.arange(0.05, 0.96, 0.05)
GAPS = 8
"""The widest gaps between values that are looked at beside the quantiles; a gap parts what a mistake set apart."""


class Region(NamedTuple):
    """Events of a type under some circumstances.

    Attributes:
      kind: the type's number, an `EventType`.
      above, to: the bounds of each number of `CIRCUMSTANCES`: above < number ≤ to; infinite where there is none.
    """

    kind: int
    above: tuple[float, ...]
    to: tuple[float, ...]

    @classmethod
    def of_type(cls, kind: int) -> Region:
        """All events of a type."""
        every = (math.inf,) * len(CIRCUMSTANCES)
        return cls(kind, tuple(-end for end in every), every)

    def holds(self, kind: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Which events are in it: bool [E], from their types and `circumstances`."""
        inside: np.ndarray = kind == self.kind
        for above, to, number in zip(self.above, self.to, numbers, strict=True):
            inside = inside & (number > above) & (number <= to)
        return inside

    def words(self) -> str:
        """Its bounds in words; empty for all events of a type."""
        bounds = [*zip(CIRCUMSTANCES, self.above, strict=True), *zip(CIRCUMSTANCES, self.to, strict=True)]
        words = ["above"] * len(CIRCUMSTANCES) + ["at most"] * len(CIRCUMSTANCES)
        finite = [(name, word, end) for (name, end), word in zip(bounds, words, strict=True) if math.isfinite(end)]
        return " and ".join(f"{name} {word} {end:.3g}" for name, word, end in finite)


def regions(
    kind: int, amount: np.ndarray, rest: np.ndarray, numbers: np.ndarray, trace: np.ndarray
) -> tuple[Region, ...]:
    """The regions of one type, disjoint, that hold all its events.

    Args:
      kind: the type.
      amount: float [n], increments of its decided events in traces that the critic was fitted on.
      rest: float [n], R − V̂(G<e) of these.
      numbers: float [4, n], their `circumstances`.
      trace: int [n].
    """
    _, trace = np.unique(trace, return_inverse=True)
    return tuple(_cut(Region.of_type(kind), amount, rest, numbers, trace, DEPTH))


def _cut(
    region: Region, amount: np.ndarray, rest: np.ndarray, numbers: np.ndarray, trace: np.ndarray, depth: int
) -> list[Region]:
    """The region, or the regions of its halves."""
    best, where = DIFFERENCE, None
    for axis, number in enumerate(numbers) if depth and len(amount) else ():
        for end in _ends(number):
            low = number <= end
            if min(np.count_nonzero(np.bincount(trace[side])) for side in (low, ~low)) < LEAST_TRACES:
                continue
            (b, variance), (c, other) = (_slope(amount[side], rest[side], trace[side]) for side in (low, ~low))
            apart = abs(b - c) / math.sqrt(variance + other) if variance + other > 0 else 0.0
            if apart > best:
                # Between two values that occur: the last digit of a value does not decide on which side it is.
                best, where = apart, (axis, float(number[low].max() + number[~low].min()) / 2)
    if where is None:
        return [region]
    axis, end = where
    above, to = list(region.above), list(region.to)
    above[axis] = to[axis] = end
    low = numbers[axis] <= end
    halves = ((region._replace(to=tuple(to)), low), (region._replace(above=tuple(above)), ~low))
    return [
        leaf
        for half, side in halves
        for leaf in _cut(half, amount[side], rest[side], numbers[:, side], trace[side], depth - 1)
    ]


def _ends(number: np.ndarray) -> np.ndarray:
    """Values after which to cut: quantiles, and those before the widest gaps of the inner nine tenths."""
    ordered = np.sort(number)
    edge = len(ordered) // 20
    inner = ordered[edge : len(ordered) - edge]
    gaps = np.argsort(np.diff(inner))[-GAPS:]
    return np.unique(np.concatenate([np.quantile(number, QUANTILES, method="lower"), inner[gaps]]))


def _slope(amount: np.ndarray, rest: np.ndarray, trace: np.ndarray) -> tuple[float, float]:
    """Slope of the rest of the reward on increments, through 0, and its variance over traces."""
    square = float(amount @ amount)
    if square <= 0:
        return 0.0, math.inf
    slope = float(amount @ rest) / square
    return slope, float(np.sum(np.bincount(trace, amount * (rest - slope * amount)) ** 2)) / square**2
