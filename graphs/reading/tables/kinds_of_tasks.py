"""A table of traces, or of groups, and `task_kind` or `system`, which leaves the tasks as the log has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from graphs.errors import Problem
from graphs.reading.source import Lost
from graphs.reading.tables.csv_rows import is_header
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.join_rows import (
    OF_LABELS,
    OF_TASKS,
    REWARDS,
    TRACE,
    column_of_traces,
    odd_kind,
    unread_names,
    unusable,
)
from graphs.reading.tables.likely_columns import likely_columns
from graphs.text import excerpt, printable
from graphs.traces.missing_names import is_missing_name

__all__ = ["KindsOfTasks", "column_of_kinds"]


def column_of_kinds(columns: Collection[str]) -> tuple[str, str]:
    """The column of traces or of groups, one of the two, that stands beside some of `OF_TASKS`, and which it is.

    Two empty texts of other tables.

    Examples:
      >>> column_of_kinds(["task_id", "task_kind"]), column_of_kinds(["trace", "group", "task_kind"])
      (('task_id', 'group'), ('', ''))
      >>> column_of_kinds(["run_id", "task_kind", "reward"])
      ('run_id', 'trace')
    """
    others = [one for one in unread_names(columns, (*OF_TASKS, "reward", *OF_LABELS)) if not one.startswith(REWARDS)]
    trace = column_of_traces(others)
    groups = likely_columns("group", others, (trace,))
    if not {*columns} & {*OF_TASKS} or (trace and groups) or not (trace or groups == others):
        return "", ""
    return (trace, TRACE[0]) if trace else (groups[0], "group")


@dataclasses.dataclass
class KindsOfTasks:
    """What a table states of `OF_TASKS`, "" of a group or trace for which it states several.

    Attributes:
      name: of the table.
      column: its column of groups or traces.
      by: which of the two, "group" or "trace".
      stated: by the column that states it, and the ids in that of groups or traces.
      lines: where each of these first stands.
      met: those of the log.
      is_empty: whether it has no row.
    """

    name: str = ""
    column: str = "group"
    by: str = "group"
    stated: dict[str, dict[str, str]] = dataclasses.field(default_factory=lambda: {name: {} for name in OF_TASKS})
    lines: dict[str, int] = dataclasses.field(default_factory=dict)
    met: set[str] = dataclasses.field(default_factory=set)
    is_empty: bool = True

    def fill(self, rows: Iterable[tuple[int, Mapping[str, Any] | Lost]]) -> Iterator[Problem]:
        """Take in rows, each with its line, and yield what is wrong with them, or read under another name."""
        if self.column not in (self.by, *TRACE):
            expected = f"column `{self.by}`: `{printable(self.column, 60)}` is read as `{self.by}`"
            yield Problem("near-columns", self.name, 1, "columns", excerpt(self.column), expected, about="group")
        columns: dict[str, None] = {}  # an ordered set
        for line, row in rows:
            self.is_empty = False
            if isinstance(row, Lost):
                yield dataclasses.replace(row.problem, about="group")
            elif not is_header(row):
                columns |= dict.fromkeys(row)
                if (problem := self._add(line, row)) is not None:
                    kind, field, value, expected = problem
                    yield Problem(kind, self.name, line, field, excerpt(value), expected, about="group")
        read = (self.column, *OF_TASKS, *OF_LABELS, "reward")
        if unread := [one for one in unread_names(columns, read) if not one.startswith(REWARDS)]:
            expected = f"`{self.by}`, {' and '.join(f'`{one}`' for one in OF_TASKS)}: the others are not read"
            yield Problem(
                "unread-columns", self.name, 1, "columns", excerpt(", ".join(unread)), expected, about="group"
            )

    def _add(self, line: int, row: Mapping[str, Any]) -> tuple[str, str, object, str] | None:
        """The fault of a row: kind, field, value and expectation of a `Problem`; None if it has none."""
        id_, cells = row.get(self.column), {column: row.get(column) for column in OF_TASKS}
        if id_ is None and self.by != "group":
            return "bad-row", self.column, None, "the id of the trace that the row is about"
        problems = [(self.by == "group" and unusable("group", id_)) or None]
        problems += [odd_kind(cell, column) for column, cell in cells.items()]
        if problem := next(filter(None, problems), None):
            return problem
        fault, name = None, id_text(id_)
        for column, cell in cells.items():
            if cell is None or is_missing_name(text := id_text(cell).strip()):
                continue
            self.lines.setdefault(name, line)
            if self.stated[column].setdefault(name, text) != text:
                self.stated[column][name] = ""
                expected = f"one `{column}` for each {self.by}: row {self.lines[name]} states another"
                fault = "ambiguous-row", column, text, expected
        return fault

    def of(self, trace: str, group: str, column: str, otherwise: str) -> str:
        """What a column states of a trace of the log and a group; `otherwise` where the table has none."""
        name = group if self.by == "group" else trace
        self.met.add(name)
        return self.stated[column].get(name, otherwise)

    def unmatched(self, refused: Collection[str]) -> Iterator[Problem]:
        """Problems of groups that no trace has, and of traces that were neither read nor refused."""
        known = self.met if self.by == "group" else self.met.union(refused)
        for name, line in self.lines.items():
            if name not in known:
                expected = f"the id of a {self.by} that was read, which the row is about"
                yield Problem("unmatched-row", self.name, line, self.column, excerpt(name), expected, about="group")
