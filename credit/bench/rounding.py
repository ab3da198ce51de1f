"""How benchmarks write their numbers: one that is no 0 and no 1 is not rounded to one, and none has many digits.

The numbers of a column of a table have one number of decimals, `decimals`, with which `fixed` writes each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from graphs.task_means import ROUNDING

__all__ = ["EXACT", "are_equal", "decimals", "fixed", "rounded"]

EXACT = 1e-9
"""What rounding leaves of an exact 0 or 1 in double precision."""


MOST = 4
"""Digits behind the point of a number near 1."""


TINY, HUGE = 1e-4, 1e6
"""Sizes beyond which a number is written as a power of ten, and its column takes no decimals from it."""


def are_equal(difference: float, low: float, high: float) -> bool:
    """Whether single precision cannot tell two numbers apart, nor the ends of the interval of their difference.

    Args:
      difference: of the two.
      low, high: the ends, NaN where it has no interval.

    Examples:
      >>> are_equal(1e-8, math.nan, math.nan), are_equal(1e-8, -0.1, 0.1), are_equal(math.nan, math.nan, math.nan)
      (True, False, False)
    """
    return abs(difference) < ROUNDING and not any(abs(end) >= ROUNDING for end in (low, high))


def rounded(value: float, form: str = ".3g", *, exact: float = EXACT, ends: tuple[float, ...] = (0.0, 1.0)) -> str:
    """A number by a format, with a digit or two more where that tells it from the ends of a scale.

    One that is nearer to an end is written as a bound, such as "> 0.9999"; NaN is "undefined".

    Args:
      value: to be written.
      form: a format, such as ".3g" or "+.3f".
      exact: how far from an end still is the end: what computing leaves.
      ends: sizes that mean something else than those beside them.

    Examples:
      >>> rounded(0.99964), rounded(1 - 1e-12), rounded(0.99964, ".5f")
      ('0.9996', '1', '0.99964')
      >>> rounded(0.0002, "+.3f"), rounded(-1e-12, ".3f"), rounded(99.98, ends=(0, 100)), rounded(math.nan)
      ('+0.0002', '0.000', '99.98', 'undefined')
      >>> rounded(0.999996), rounded(1.00002), rounded(-0.999996, "+.3f"), rounded(99.99999, ends=(0, 100))
      ('> 0.9999', '< 1.0001', '< -0.9999', '> 99.99')
    """
    if math.isnan(value):
        return "undefined"
    for end in ends:
        if abs(abs(value) - end) <= exact:
            return format(math.copysign(end, value) if end else 0.0, form)
    text = format(value, form)
    if abs(float(text)) not in ends:
        return text
    sign = "+" if "+" in form else ""
    if not float(text):
        return format(value, f"{sign}.1g")
    places = MOST - round(math.log10(abs(float(text))))
    near = next(
        (more for digits in range(1, places + 1) if abs(float(more := f"{value:{sign}.{digits}f}")) not in ends), ""
    )
    if near:
        return near
    inside = abs(value) < abs(float(text))
    bound = math.copysign(abs(float(text)) + (-1 if inside else 1) * 10.0**-places, value)
    return f"{'>' if inside == (value > 0) else '<'} {bound:{sign}.{places}f}"


def decimals(values: Iterable[float], halves: Iterable[float] = ()) -> int | None:
    """How many decimals the numbers of a column have; None where each has its own.

    Where they have intervals the first digit of the narrowest decides, and up to three decimals a fourth digit of the
    largest number; else a third digit of the smallest number, and beyond three decimals one of the largest, without
    decimals that are 0 throughout. The largest has no more than five digits.

    Args:
      values: of the column, NaN where there is none.
      halves: half widths of their intervals.

    Examples:
      >>> decimals([39.0, 29.2]), decimals([0.5, 1 / 3, 1.28]), decimals([0, 1, 12]), decimals([0.0042, 0.00031])
      (1, 3, 0, 5)
      >>> decimals([0.231, 0.227], [0.013, 0.009]), decimals([-0.0058, 0.0002], [0.001, 0.0004]), decimals([2e-5])
      (3, 4, None)
    """
    sizes = [abs(value) for value in values if TINY <= abs(value) < HUGE]
    if not sizes:
        return None
    known = [half for half in halves if TINY <= half < HUGE]
    few, many = (max(0, _places(digits, max(sizes))) for digits in (3, 5))
    if known:
        return min(max(_places(1, min(known)), min(3, few + 1)), many)
    most = max(0, min(_places(3, min(sizes)), max(3, few), many))
    return max(len(f"{size:.{most}f}".partition(".")[2].rstrip("0")) for size in sizes)


def _places(digits: int, size: float) -> int:
    """The decimals with which a number of this size has so many digits."""
    return digits - 1 - math.floor(math.log10(size))


def fixed(
    value: float,
    places: int | None,
    sign: str = "",
    *,
    exact: float = EXACT,
    ends: tuple[float, ...] = (0.0, 1.0),
) -> str:
    """A number of a column by `rounded`; one that is an end of a scale has no decimals, which says that it is exact.

    Args:
      value: to be written.
      places: of `decimals`.
      sign: "+" to write that too.
      exact, ends: of `rounded`.

    Examples:
      >>> fixed(39.0, 1), fixed(0.82, 3), fixed(1.0, 3), fixed(0.0, 3), fixed(0.00002, 3), fixed(0.99964, 3)
      ('39.0', '0.820', '1', '0', '2e-05', '0.9996')
    """
    whole = any(abs(abs(value) - end) <= exact for end in ends)
    own = places is None or abs(value) >= HUGE
    return rounded(value, f"{sign}.{3 if own else 0 if whole else places}{'g' if own else 'f'}", exact=exact, ends=ends)
