"""What a `*` marks: a test beyond chance, and an interval that says the same, in every table of differences."""

from __future__ import annotations

__all__ = ["LEVEL", "beyond_chance"]

LEVEL = 0.05
"""Of the p-value below which a difference stands out."""


def beyond_chance(p: float | None, low: float | None, high: float | None, nothing: float = 0.0) -> bool:
    """Whether p is below 0.05, and the interval, where there is one, leaves out `nothing`.

    Numbers of a permutation test and Student's interval may disagree where few differ, so both must say it. That is
    never found more often than by the test alone.

    Args:
      p: of the test, corrected; None or NaN without one.
      low, high: of the interval; None or NaN without one.
      nothing: the number that says that nothing differs.

    Examples:
      >>> beyond_chance(0.01, -0.5, 2.0), beyond_chance(0.01, 0.5, 2.0), beyond_chance(0.01, None, None)
      (False, True, True)
    """
    held = low is not None and high is not None and low <= nothing <= high
    return p is not None and p < LEVEL and not held
