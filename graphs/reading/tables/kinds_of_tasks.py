"""A table of groups and `task_kind` alone, which states of what kind each task is."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from graphs.errors import Problem
from graphs.reading.source import Lost
from graphs.reading.tables.csv_rows import is_header
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.join_rows import TASK_KIND, TRACE, odd_kind, unread_names, unusable
from graphs.reading.tables.likely_columns import likely_column
from graphs.text import excerpt, printable
from graphs.traces.missing_names import is_missing_name

__all__ = ["KindsOfTasks", "groups_of_kinds"]


def groups_of_kinds(columns: Collection[str]) -> str:
    """The column of groups that alone stands beside one of kinds of tasks; "" of other tables.

    Examples:
      >>> groups_of_kinds(["task_id", "task_kind"]), groups_of_kinds(["trace", "group", "task_kind"])
      ('task_id', '')
    """
    others = unread_names(columns, (TASK_KIND,))
    if TASK_KIND not in columns or len(others) != 1:
        return ""
    return others[0] if others[0] == "group" else likely_column("group", others, TRACE)


@dataclasses.dataclass
class KindsOfTasks:
    """The kinds that a table states, "" of a group for which it states several.

    Attributes:
      name: of the table.
      column: its column of groups.
      of_group: kinds by the ids of groups.
      lines: where each group first stands.
      met: groups of the log.
      is_empty: whether it has no row.
    """

    name: str = ""
    column: str = "group"
    of_group: dict[str, str] = dataclasses.field(default_factory=dict)
    lines: dict[str, int] = dataclasses.field(default_factory=dict)
    met: set[str] = dataclasses.field(default_factory=set)
    is_empty: bool = True

    def fill(self, rows: Iterable[tuple[int, Mapping[str, Any] | Lost]]) -> Iterator[Problem]:
        """Take in rows, each with its line, and yield what is wrong with them, or read under another name."""
        if self.column != "group":
            expected = f"columns `group` and `{TASK_KIND}`: `{printable(self.column, 60)}` is read as `group`"
            yield Problem("near-columns", self.name, 1, "columns", excerpt(self.column), expected, about="group")
        for line, row in rows:
            self.is_empty = False
            if isinstance(row, Lost):
                yield dataclasses.replace(row.problem, about="group")
            elif not is_header(row) and (problem := self._add(line, row)) is not None:
                kind, field, value, expected = problem
                yield Problem(kind, self.name, line, field, excerpt(value), expected, about="group")

    def _add(self, line: int, row: Mapping[str, Any]) -> tuple[str, str, object, str] | None:
        """The fault of a row: kind, field, value and expectation of a `Problem`; None if it has none."""
        stated, cell = row.get(self.column), row.get(TASK_KIND)
        if problem := unusable("group", stated) or odd_kind(cell):
            return problem
        if cell is None or is_missing_name(kind := id_text(cell).strip()):
            return None
        group = id_text(stated)
        self.lines.setdefault(group, line)
        first = self.of_group.setdefault(group, kind)
        if first == kind:
            return None
        self.of_group[group] = ""
        return "ambiguous-row", TASK_KIND, kind, f"one kind for each group: row {self.lines[group]} states another"

    def of(self, group: str, otherwise: str) -> str:
        """The kind of a group of the log; `otherwise` where the table has none."""
        self.met.add(group)
        return self.of_group.get(group, otherwise)

    def unmatched(self) -> Iterator[Problem]:
        """Problems of groups that no trace has."""
        for group, line in self.lines.items():
            if group not in self.met:
                expected = "the id of a group that was read, whose kind the row states"
                yield Problem("unmatched-row", self.name, line, self.column, excerpt(group), expected, about="group")
