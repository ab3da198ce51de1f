"""Columns under names that may mean several things: what their numbers say, a step of training or an order of rows.

A `step` is that of training where each trace has one, and an action's where it differs between the rows of a trace.
A trace may go on under a later policy. Where it begins again in each step, at the turn of its first row or with another
reward, its id is that of several traces.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from graphs.formats.table.cells import EVIDENCE, moment
from graphs.reading.tables.likely_columns import snake_case
from graphs.reading.tables.rows import Row

__all__ = ["BEGIN", "ColumnsByContent"]

_SUFFIX = r"(?:ed)?(?:_?(?:time|at|ts|timestamp))?$"
BEGIN = re.compile(rf"(?:^|_)(?:start|begin){_SUFFIX}|(?:^|_)created_?(?:time|at)$")
"""Words in the name of a column, in small letters, that says when a row began."""

_LIKE = {
    re.compile(r"(?:^|_)(?:global|train|training|policy|trainer)_?(?:step|version|iteration)"): ("policy_version",),
    re.compile(r"^(?:step|iteration)$"): ("policy_version", "turn"),
    re.compile(
        rf"^t(?:ime)?$|(?:^|_)(?:timestamp|ts|date_?time|(?:end(?:ed)?|finished)_?(?:time|at))$|^end$|{BEGIN.pattern}"
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

    def __init__(self, names: Iterable[str], read: Collection[str], told: Collection[str], version: str = "") -> None:
        """Look at columns.

        Args:
          names: of the table.
          read: those of them that are read.
          told: our names of columns that the table has, or that the user leaves out.
          version: the column that is read as the version of the policy, if one is.
        """
        like = {name: [ours for words, ours in _LIKE.items() if words.search(snake_case(name))] for name in names}
        may_be = {name: [one for one in ours[0] if one not in told] for name, ours in like.items() if ours}
        self._may_be = {name: ours for name, ours in may_be.items() if ours and name not in read}
        self._may_be |= {version: ["policy_version"]} if version else {}
        self._of_training = {name for name in self._may_be if name == version or like[name][0] == ("policy_version",)}
        self.names = [*self._may_be]
        self._of_trace: dict[tuple[str, str], float] = {}
        self._varies: dict[str, dict[str, int]] = {}  # a column -> traces in which it differs, and the line that tells
        self._begins: dict[str, tuple[str, str]] = {}  # the agent and turn of a trace's first row
        self._again: dict[str, set[str]] = {}  # a column -> traces whose first row's turn has several numbers
        self._left: set[str] = set()  # traces in which that agent had another turn
        self._counts = {*self.names}  # whose numbers may be versions
        self._parts: set[str] = set()  # in which ids of traces begin again
        of_turns = (name for name, ours in self._may_be.items() if ours[-1] == "turn")
        self._apart: dict[str, set[tuple[str, float]]] = {name: set() for name in of_turns}  # while all rows differ

    def add(self, trace: str, row: Row, line: int = 0, agent: str = "", turn: str | None = None) -> None:
        """Take in a row of a trace, of an agent in a turn, if that is stated."""
        begins = None if turn is None else self._begins.setdefault(trace, (agent, turn))
        if begins is not None and agent == begins[0] and turn != begins[1]:
            self._left.add(trace)
        for name in self.names:
            number = moment(row.get(name))
            if number is None:  # a text, or nothing: no column of ours
                self.names = [other for other in self.names if other != name]
                continue
            if self._of_trace.setdefault((name, trace), number) != number:
                self._varies.setdefault(name, {}).setdefault(trace, line)
                if begins == (agent, turn) and (name in self._of_training or trace in self._left):
                    self._again.setdefault(name, set()).add(trace)
            if _version(number) is None:
                self._counts.discard(name)
            if (trace, number) in self._apart.get(name, ()):
                del self._apart[name]
            elif name in self._apart:
                self._apart[name].add((trace, number))

    def part(self, trace: str, row: Row) -> str:
        """The first column in which a row differs from its trace's first, whose id may be that of another trace."""
        numbers = {name: moment(row.get(name)) for name in self.names}
        apart = [name for name in numbers if self._of_trace.get((name, trace), numbers[name]) != numbers[name]]
        self._parts.update(apart)
        return next(iter(apart), "")

    def version(self) -> str:
        """The first column with one version of the policy for each trace; "" where there is none."""
        alike = self._counts - self._varies.keys()
        return next((name for name in self.names if name in alike and "policy_version" in self._may_be[name]), "")

    def reused(self) -> tuple[str, dict[str, int]]:
        """The first column in each number of which ids of traces begin again, and those, with their first such line.

        Most of those in which it differs do, or rewards say so.
        """
        self._parts |= {name for name, traces in self._again.items() if 2 * len(traces) >= len(self._varies[name])}
        of_versions = [name for name in self.names if "policy_version" in self._may_be[name] and name in self._parts]
        return next(((name, self._varies.get(name, {})) for name in of_versions), ("", {}))

    def several(self) -> tuple[str, dict[str, int]]:
        """The first column of steps of training that differs within traces, which may be reused ids, and those."""
        of_training = [name for name in self.names if name in self._of_training & self._varies.keys() - self._parts]
        return next(((name, self._varies[name]) for name in of_training), ("", {}))

    def of_traces(self, name: str) -> dict[str, float]:
        """The number of each trace in a column."""
        return {trace: number for (column, trace), number in self._of_trace.items() if column == name}

    def likely(self) -> dict[str, str]:
        """Our name to the first column that may be it, of those whose numbers differ between the rows of a trace."""
        varying = [name for name in self.names if name in self._varies.keys() - self._parts]
        return {self._may_be[name][-1]: name for name in reversed(varying)}

    def is_turn(self, name: str, of_tools: bool) -> bool:
        """Whether the numbers of a column may be those of turns, and not merely of all rows of a trace or of the log.

        Args:
          name: of the column, one of `likely`.
          of_tools: whether some rows are no calls of a model, each of which may be a turn of its own.
        """
        apart = self._apart.get(name, set())
        several = len({trace for trace, _ in apart}) > 1
        is_of_log = several and len({number for _, number in apart}) == len(apart)
        return not apart or not (of_tools or is_of_log)
