"""What a log states that a model call cost, in money."""

from __future__ import annotations

import math
from typing import Any

from graphs.traces.record import LARGEST_FLOAT

__all__ = ["stated_money"]


def stated_money(*values: Any) -> float | None:
    """The first value that is an amount above 0: a number, or the text of one, as decimals are written.

    Programs write 0 for a model whose price they do not know, so 0 states nothing.

    Examples:
      >>> stated_money(None, 0, "0.000234"), stated_money("free")
      (0.000234, None)
    """
    for value in values:
        if value is None:
            continue
        try:
            amount = 0.0 if isinstance(value, bool) or not isinstance(value, int | float | str) else float(value)
        except (OverflowError, ValueError):
            continue
        if math.isfinite(amount) and 0 < amount <= LARGEST_FLOAT:
            return amount
    return None
