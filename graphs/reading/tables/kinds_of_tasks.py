"""A table of groups, or of traces, and `task_kind`: of what kind each task is, where the log states the tasks."""

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
    REWARDS,
    TASK_KIND,
    TRACE,
    column_of_traces,
    odd_kind,
    unread_names,
    unusable,
)
from graphs.reading.tables.likely_columns import likely_column
from graphs.text import excerpt, printable
from graphs.traces.missing_names import is_missing_name

__all__ = ["KindsOfTasks", "column_of_kinds"]


def column_of_kinds(columns: Collection[str]) -> tuple[str, str]:
    """The column of groups or traces that stands beside one of kinds of tasks and of rewards alone, and which it is.

    Two empty texts of other tables.

    Examples:
      >>> column_of_kinds(["task_id", "task_kind"]), column_of_kinds(["trace", "group", "task_kind"])
      (('task_id', 'group'), ('', ''))
      >>> column_of_kinds(["run_id", "task_kind", "reward"])
      ('run_id', 'trace')
    """
    others = [one for one in unread_names(columns, (TASK_KIND, "reward", *OF_LABELS)) if not one.startswith(REWARDS)]
    if TASK_KIND not in columns or len(others) != 1:
        return "", ""
    if trace := column_of_traces(others):
        return trace, TRACE[0]
    group = others[0] if others[0] == "group" else likely_column("group", others)
    return group, "group" if group else ""


@dataclasses.dataclass
class KindsOfTasks:
    """The kinds that a table states, "" of a group or trace for which it states several.

    Attributes:
      name: of the table.
      column: its column of groups or traces.
      by: which of the two, "group" or "trace".
      kinds: by the ids in that column.
      lines: where each of these first stands.
      met: those of the log.
      is_empty: whether it has no row.
    """

    name: str = ""
    column: str = "group"
    by: str = "group"
    kinds: dict[str, str] = dataclasses.field(default_factory=dict)
    lines: dict[str, int] = dataclasses.field(default_factory=dict)
    met: set[str] = dataclasses.field(default_factory=set)
    is_empty: bool = True

    def fill(self, rows: Iterable[tuple[int, Mapping[str, Any] | Lost]]) -> Iterator[Problem]:
        """Take in rows, each with its line, and yield what is wrong with them, or read under another name."""
        if self.column not in (self.by, *TRACE):
            expected = f"columns `{self.by}` and `{TASK_KIND}`: `{printable(self.column, 60)}` is read as `{self.by}`"
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
        if stated is None and self.by != "group":
            return "bad-row", self.column, None, "the id of the trace whose kind the row states"
        if problem := (self.by == "group" and unusable("group", stated)) or odd_kind(cell):
            return problem
        if cell is None or is_missing_name(kind := id_text(cell).strip()):
            return None
        name = id_text(stated)
        self.lines.setdefault(name, line)
        first = self.kinds.setdefault(name, kind)
        if first == kind:
            return None
        self.kinds[name] = ""
        return "ambiguous-row", TASK_KIND, kind, f"one kind for each {self.by}: row {self.lines[name]} states another"

    def of(self, trace: str, group: str, otherwise: str) -> str:
        """The kind of a trace of the log and a group; `otherwise` where the table has none."""
        name = group if self.by == "group" else trace
        self.met.add(name)
        return self.kinds.get(name, otherwise)

    def unmatched(self, refused: Collection[str]) -> Iterator[Problem]:
        """Problems of groups that no trace has, and of traces that were neither read nor refused."""
        known = self.met if self.by == "group" else self.met.union(refused)
        for name, line in self.lines.items():
            if name not in known:
                expected = f"the id of a {self.by} that was read, whose kind the row states"
                yield Problem("unmatched-row", self.name, line, self.column, excerpt(name), expected, about="group")
