"""How numbers of two sides are written in sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from graphs.text import apart, rounds_away

__all__ = ["MOST_NAMED", "MOST_TOLD", "MOST_WORDS", "first_to_second", "grouped", "sentences", "short", "signed",
           "up_to"]  # fmt: skip

NAME = re.compile(r"[^\W\d_]\S*[\d_.]\S")
"""A first word that is a name, not the word of a sentence."""

MOST_TOLD = 5
"""Models, or agents, that a sentence on a change names."""
MOST_NAMED = 2
"""Kinds of tasks, and agents of one side alone, that are named."""
MOST_WORDS = 25
"""Words of the answer to what changed."""


def up_to(names: Sequence[str], most: int = MOST_NAMED) -> list[str]:
    """The first names, and "…" for others."""
    return [*names[:most], *["…"] * (len(names) > most)]


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The second texts of pairs by the first."""
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return found


def sentences(*texts: str) -> list[str]:
    """Texts with a full stop and, unless they begin with a name such as v3.1, a capital; without empty ones."""
    return [f"{text if NAME.match(text) else text[0].upper() + text[1:]}." for text in texts if text]


def signed(value: float, whole: float | None = None) -> str:
    """A difference with its sign, to the last place of the whole that it is a part of, where that is given.

    Examples:
      >>> signed(-0.0000879), signed(-0.0000879, 0.00645), signed(-7.46, 797.0)
      ('-0.0000879', '-0.00009', '-7')
    """
    if whole:
        value = round(value, max(0, 2 - math.floor(math.log10(abs(whole)))))
    return f"{'+' if value > 0 else ''}{short(value)}"


def first_to_second(first: float, second: float) -> str:
    """Both numbers, with as many digits as tell them apart, unless three round that away."""
    if rounds_away(second - first, max(abs(first), abs(second))):
        return f"{short(first)} to {short(first)}"
    return " to ".join(apart((first, second), short, 3))


def short(value: float, digits: int = 3) -> str:
    """A number with so many digits, and those before its point."""
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return np.format_float_positional(float(f"{value:z.{digits}g}"), trim="-")
