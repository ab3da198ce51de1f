"""The number that a label of a turn ends in, by which turns have an order."""

from __future__ import annotations

import re

__all__ = ["numbered_turn"]

_ENDS_IN_A_NUMBER = re.compile(r"(.*?)([0-9]{1,15})", re.DOTALL)  # so many digits are exact as floats
_FRACTION = re.compile(r"[0-9][.,]$")


def numbered_turn(label: str) -> tuple[str, int] | None:
    """What stands before the number at the end of a label, and the number; None of a label without an order.

    Labels that begin alike are in the order of their numbers. What is before a number must be empty or have a letter:
    the order of "-1" and "-2" is another. After "1." a number is a fraction or a part of a version.

    Examples:
      >>> [numbered_turn(label) for label in ("9", "step_10", "turn 2", "b", "-1", "t0.25")]
      [('', 9), ('step_', 10), ('turn ', 2), None, None, None]
    """
    found = _ENDS_IN_A_NUMBER.fullmatch(label)
    if found is None:
        return None
    stem = found[1]
    if _FRACTION.search(stem) or (stem and not any(map(str.isalpha, stem))):
        return None
    return stem, int(found[2])
