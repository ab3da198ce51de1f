"""How numbers of two sides are written in sentences."""

from __future__ import annotations

import numpy as np

from graphs.text import apart

__all__ = ["MOST_TOLD", "first_to_second", "short", "signed"]

MOST_TOLD = 5
"""Models, or agents, that a sentence on a change names."""


def signed(value: float) -> str:
    """A difference, with its sign."""
    return f"{'+' if value > 0 else ''}{short(value)}"


def first_to_second(first: float, second: float) -> str:
    """Both numbers, with as many digits as tell them apart."""
    return " to ".join(apart((first, second), short, 3))


def short(value: float, digits: int = 3) -> str:
    """A number with so many digits, and those before its point."""
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return np.format_float_positional(float(f"{value:z.{digits}g}"), trim="-")
