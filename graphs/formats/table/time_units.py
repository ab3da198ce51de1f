"""The unit of a table's times: seconds, unless a mapping as `seconds=took/1000` or the column's own name says else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from graphs.errors import Problem
from graphs.reading.tables.likely_columns import snake_case
from graphs.reading.tables.rows import Row, number
from graphs.text import excerpt

__all__ = ["UNIT_NAME", "TimeUnits", "without_unit"]

_TIMES = ("time", "end", "seconds")
_STATED = re.compile(r"(?P<column>.+)/(?P<divisor>1(?:000){0,3})")
_UNITS = {
    "milliseconds": (1000, r"ms|msecs?|millis|millisecs?|milliseconds?"),
    "microseconds": (1000**2, r"us|usecs?|micros|microsecs?|microseconds?"),
    "nanoseconds": (1000**3, r"ns|nsecs?|nanos|nanosecs?|nanoseconds?"),
}
UNIT_NAME = "|".join(words for _, words in _UNITS.values())
"""How names of columns end in a unit below the second, as a pattern."""


def without_unit(ours: str, theirs: str, names: Collection[str]) -> str:
    """The column that a mapping names, without the divisor behind it.

    Examples:
      >>> without_unit("seconds", "took/1000", ["took"]), without_unit("tool", "took/1000", ["took"])
      ('took', 'took/1000')
    """
    stated = _STATED.fullmatch(theirs) if ours in _TIMES and theirs not in names else None
    return stated["column"] if stated else theirs


class TimeUnits:
    """The columns of one table whose times are in another unit than seconds.

    Args:
      columns: as the user maps them.
      column_of: our names to the table's.
    """

    def __init__(self, columns: Mapping[str, str], column_of: Mapping[str, str]) -> None:
        self._divisors: dict[str, int] = {}
        self._named: dict[str, tuple[str, str]] = {}  # column and unit where the name alone says so
        self._met: set[str] = set()
        for ours in _TIMES:
            theirs = column_of.get(ours, "")
            stated = _STATED.fullmatch(columns.get(ours, "")) if columns.get(ours, theirs) != theirs else None
            if stated:
                self._divisors[ours] = int(stated["divisor"])
            for unit, (divisor, words) in _UNITS.items() if not stated else ():
                if re.search(rf"(?:^|[^a-z])(?:{words})\W*$", snake_case(theirs)):
                    self._divisors[ours], self._named[ours] = divisor, (theirs, unit)

    def in_seconds(self, value: Row) -> None:
        """Divide the numbers of a row, by our names; dates are of no unit."""
        for ours, divisor in self._divisors.items():
            if (amount := number(value.get(ours))) is not None:
                value[ours] = amount / divisor
                self._met.add(ours)

    def notes(self, file: str) -> Iterator[Problem]:
        """A note for each column whose name alone says its unit."""
        for ours in (ours for ours in self._named if ours in self._met):
            name, unit = self._named[ours]
            expected = (
                f"seconds: its numbers are divided by {self._divisors[ours]:,}; --columns {ours}={name}/1 keeps them"
            )
            yield Problem("time-unit", file, 1, ours, f"column {excerpt(name)}, by its name in {unit}", expected)
