"""What a `*` marks: a test beyond chance, and an interval that says the same, in every table of differences."""

from __future__ import annotations

from graphs.task_means import LEVEL

__all__ = ["beyond_chance", "starred"]


def beyond_chance(p: float | None, low: float | None, high: float | None, nothing: float = 0.0) -> bool:
    """Whether p is below 0.05, and the interval, where there is one, leaves out `nothing`.

    An interval that leaves `nothing` out beside a greater p has one that was corrected (`graphs.task_means.as_tested`).
    One that holds it beside a smaller p is Student's, which may be the wider where few differ. So both must say it, and
    that is never found more often than by the test alone.

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


def starred(rows: str) -> tuple[str, str]:
    """The term `*` of a table (`credit.cli.shared.answers.explain`).

    Args:
      rows: those for which its tests are corrected, in words.

    Examples:
      >>> starred("all rows")
      ('*', '* beyond chance: p < 0.05, corrected for all rows')
    """
    return "*", f"* beyond chance: p < {LEVEL:g}, corrected for {rows}"
