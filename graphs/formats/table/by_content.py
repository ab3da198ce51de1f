"""Columns under names that may mean several things: what their numbers say, a step of training or an order of rows.

A `step` is that of training where each trace has one, and an action's where it differs between the rows of a trace.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from graphs.formats.table.cells import EVIDENCE, moment
from graphs.reading.tables.likely_columns import snake_case
from graphs.reading.tables.rows import Row

__all__ = ["ColumnsByContent"]

_LIKE = {
    re.compile(r"(?:^|_)(?:global|train|training|policy|trainer)_?(?:step|version|iteration)"): ("policy_version",),
    re.compile(r"^(?:step|iteration)$"): ("policy_version", "turn"),
    re.compile(
        r"^t(?:ime)?$|(?:^|_)(?:timestamp|ts|date_?time|(?:start|end|begin|created|finished)(?:ed)?_?(?:time|at))$"
    ): ("time",),
    re.compile(r"(?:^|_)(?:turn|step|round|seq|sequence|position)(?:_?(?:id|idx|index|no|num|number))?$"): ("turn",),
}
"""Words in names of columns, and our columns that they may be: the first if traces have one number, else the last."""
_version = EVIDENCE["policy_version"][0]


class ColumnsByContent:
    """What the columns of a table hold that no name tells, row after row.

    Attributes:
      names: of those that nothing reads, the columns that may be a version of the policy, a time or a turn.
    """

    def __init__(self, names: Iterable[str], read: Collection[str], told: Collection[str]) -> None:
        """Look at columns.

        Args:
          names: of the table.
          read: those of them that are read.
          told: our names of columns that the table has, or that the user leaves out.
        """
        like = {name: [ours for words, ours in _LIKE.items() if words.search(snake_case(name))] for name in names}
        may_be = {name: [one for one in ours[0] if one not in told] for name, ours in like.items() if ours}
        self._may_be = {name: ours for name, ours in may_be.items() if ours and name not in read}
        self.names = [*self._may_be]
        self._of_trace: dict[tuple[str, str], float] = {}
        self._varies: set[str] = set()  # between rows of a trace
        self._counts = {*self.names}  # whose numbers may be versions
        self._parts: set[str] = set()  # in which ids of traces begin again

    def add(self, trace: str, row: Row) -> None:
        """Take in a row of a trace."""
        for name in self.names:
            number = moment(row.get(name))
            if number is None:  # a text, or nothing: no column of ours
                self.names = [other for other in self.names if other != name]
                continue
            if self._of_trace.setdefault((name, trace), number) != number:
                self._varies.add(name)
            if _version(number) is None:
                self._counts.discard(name)

    def part(self, trace: str, row: Row) -> str:
        """The first column in which a row differs from its trace's first, whose id may be that of another trace."""
        numbers = {name: moment(row.get(name)) for name in self.names}
        apart = [name for name in numbers if self._of_trace.get((name, trace), numbers[name]) != numbers[name]]
        self._parts.update(apart)
        return next(iter(apart), "")

    def version(self) -> str:
        """The first column with one version of the policy for each trace; "" where there is none."""
        alike = self._counts - self._varies
        return next((name for name in self.names if name in alike and "policy_version" in self._may_be[name]), "")

    def of_traces(self, name: str) -> dict[str, float]:
        """The number of each trace in a column."""
        return {trace: number for (column, trace), number in self._of_trace.items() if column == name}

    def likely(self) -> dict[str, str]:
        """Our name to the first column that may be it, of those whose numbers differ between the rows of a trace."""
        varying = [name for name in self.names if name in self._varies - self._parts]
        return {self._may_be[name][-1]: name for name in reversed(varying)}
