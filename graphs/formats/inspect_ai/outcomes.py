"""Scores of Inspect as numbers.

As Inspect converts them: "C" is 1, "P" 0.5, "I" and "N" 0; yes and true 1, no and false 0, in any case; numbers, and
texts that are numbers, as they are. Where Inspect would warn and take 0, there is no number here.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["channels", "number"]

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def number(value: Any) -> float | None:
    """A scalar score as a number; None if it is none."""
    if isinstance(value, str):
        if value in _LETTERS or value.lower() in _WORDS:
            return _LETTERS.get(value, _WORDS.get(value.lower()))
    elif not isinstance(value, int | float):
        return None
    try:
        score = float(value)
    except (ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


def channels(name: str, value: Any) -> dict[str, float | None]:
    """A scorer's reward channels: NAME of a scalar, NAME.KEY or NAME.INDEX of the parts of a dict or list."""
    if isinstance(value, dict):
        return {f"{name}.{key}": number(part) for key, part in value.items()}
    if isinstance(value, list):
        return {f"{name}.{index}": number(part) for index, part in enumerate(value)}
    return {name: number(value)}
