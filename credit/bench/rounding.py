"""How benchmarks write their numbers: one that is no 0 and no 1 is not rounded to one."""

from __future__ import annotations

import math

__all__ = ["EXACT", "rounded"]

EXACT = 1e-9
"""What rounding leaves of an exact 0 or 1 in double precision."""


def rounded(value: float, form: str = ".3g", *, exact: float = EXACT, ends: tuple[float, ...] = (0.0, 1.0)) -> str:
    """A number by a format, with as many more digits as tell it from the ends of a scale; "undefined" if it is NaN.

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
    return next(more for digits in range(1, 17) if abs(float(more := format(value, f"{sign}.{digits}f"))) not in ends)
