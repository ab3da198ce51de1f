"""In which conditions a method has the larger number and in which the smaller, and where the two are furthest apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from credit.cli.benchmarks.measured import EQUAL, Measured, condition, shared_conditions

__all__ = ["OTHER_RATES", "BothWays", "both_ways"]

RATIOS = {"variance", "relative", "error", "snr"}
"""Quantities whose scale is that of the condition, so that ratios compare conditions."""
TEST = {"train": "p < 0.05"}
"""What decides a difference, where that is not its interval."""
CHOSEN = ", which its interval does not allow for"
"""Behind the largest difference: that it was chosen."""
APART, OTHER_RATES = "‡", "†"
"""Marks of differences that draws, or rates, may have made."""


class BothWays(NamedTuple):
    """Where a method is furthest from another one, either way.

    Attributes:
      most: the number of the condition where they are furthest apart, a decided difference before others.
      less: the difference there; None without one.
      other_less: that of the condition at the other end; None without one.
      says: sentences on both ends and on the directions; none where there is one condition or no difference.
      are_equal: whether they are equal in all conditions.
    """

    most: Measured
    less: Measured | None
    other_less: Measured | None
    says: list[str]
    are_equal: bool


def both_ways(numbers: Sequence[Measured], firsts: Sequence[Measured], differences: Sequence[Measured]) -> BothWays:
    """Compare a method with another one over conditions.

    A ratio compares conditions for `RATIOS`, if all numbers are positive, else a difference.

    Args:
      numbers: of the method, a condition each.
      firsts: of the other one, in the same order.
      differences: of the two, where there are any.

    Examples:
      >>> ours = [Measured("a", "error", value, world=world) for value, world in ((72.0, "big"), (5.0, "small"))]
      >>> base = [one._replace(method="b", value=value) for one, value in zip(ours, (80.0, 4.0))]
      >>> found = both_ways(ours, base, [])
      >>> found.most.world, found.says[1]
      ('small', 'a has the larger number in 1 and the smaller in 1 of 2 conditions')
    """
    less = {_place(n): n for n in differences if APART not in n.mark}
    pairs = [(_own(number, first, less), first.value) for number, first in zip(numbers, firsts, strict=True)]
    by_ratio = numbers[0].quantity in RATIOS and min(map(min, pairs)) > 1e-9
    gaps = [round(math.log(own / first) if by_ratio else own - first, 9) for own, first in pairs]
    decided = [bool(gap) and _is_decided(less.get(_place(n))) for n, gap in zip(numbers, gaps, strict=True)]
    at = max(range(len(gaps)), key=lambda i: (decided[i], abs(gaps[i])))
    most, gap = numbers[at], gaps[at]
    if len(numbers) < 2 or not gap:
        return BothWays(most, less.get(_place(most)), None, [], not gap)
    back = [-math.copysign(1, gap) * one for one in gaps]
    end = max((i for i in range(len(gaps)) if i != at), key=lambda i: (decided[i] and back[i] > 0, back[i]))
    other, other_less = numbers[end], less.get(_place(numbers[end]))
    sides = [[i for i, one in enumerate(gaps) if one * sign > 0] for sign in (1, -1)]
    counts = f"{most.method} has the larger number in {len(sides[0])} and the smaller in {len(sides[1])} of "
    counts += f"{len(gaps)} conditions"
    equal = len(gaps) - sum(map(len, sides))
    counts += f", equal in {equal}" * bool(equal)
    if differences:
        larger, smaller = (sum(decided[i] for i in side) for side in sides)
        counts += f", decided in {larger} and {smaller} ({TEST.get(most.bench, 'interval without 0')})"
    of = f"{len(gaps)} conditions" if all(decided) or not any(decided) else "those decided"
    far = f"the {'ratio is furthest from 1' if by_ratio else 'difference is largest'} there"
    here = less.get(_place(most))
    chosen = CHOSEN * (here is not None and bool(here.confidence) and not math.isnan(here.low))
    there = condition(other, shared_conditions(numbers), others=True)
    values = " and ".join(f"{_bare(n)} for {n.method}" for n in (other, firsts[end]))
    told = f"it is {values}"
    if other_less is not None and other_less.shown != EQUAL:
        apart = f"{_bare(other_less)}{', of unlike rates' * (OTHER_RATES in other_less.mark)}"
        told = f"{told}, the difference {apart}" if by_ratio else f"the difference is {apart}"
    says = [f"Of {of} {far}{chosen}", counts, f"At the other end, {there}, {told}"]
    return BothWays(most, here, other_less, says, False)


def _bare(number: Measured) -> str:
    return number._replace(mark="").cell


def _own(number: Measured, first: Measured, less: Mapping[tuple[object, ...], Measured]) -> float:
    """The number of a method, on the samples of its difference from the other one where there is one."""
    difference = less.get(_place(number))
    if difference is None:
        return number.value
    return first.value + difference.value * (difference.shown != EQUAL)


def _is_decided(difference: Measured | None) -> bool:
    if difference is None:
        return False
    return "*" in difference.mark if difference.bench in TEST else difference.low > 0 or difference.high < 0


def _place(number: Measured) -> tuple[object, ...]:
    return number.settings, number.world, number.group_size, number.length
