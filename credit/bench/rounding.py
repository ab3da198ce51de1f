"""How benchmarks write their numbers: one that is no 0 and no 1 is not rounded to one, and none has many digits."""

from __future__ import annotations

import math

from graphs.task_means import ROUNDING

__all__ = ["EXACT", "are_equal", "rounded"]

EXACT = 1e-9
"""What rounding leaves of an exact 0 or 1 in double precision."""


MOST = 4
"""Digits behind the point of a number near 1."""


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
