"""What a row of a table of rewards or groups may hold, and what is wrong with one."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from graphs.errors import Problem, TraceError
from graphs.reading.tables.ids import WRITTEN_EXACTLY, id_text, is_inexact
from graphs.reading.tables.likely_columns import likely_column, likely_columns, snake_case
from graphs.reading.tables.rows import number
from graphs.text import excerpt, printable
from graphs.traces.missing_names import is_missing_name
from graphs.traces.record import FLOAT_RANGE, LARGEST_FLOAT

__all__ = [
    "OF_LABELS",
    "OF_TASKS",
    "RATER",
    "REWARDS",
    "TASK_KIND",
    "TRACE",
    "ambiguous",
    "check_columns",
    "column_of_traces",
    "columns_of_rewards",
    "contradictory",
    "ids_of",
    "near_columns",
    "odd_kind",
    "plain",
    "unread_columns",
    "unread_names",
    "unusable",
]

TRACE = ("trace", "trace_id")
"""Names of the column of traces."""

TASK_KIND = "task_kind"
"""The column of kinds of tasks, beside groups."""

OF_TASKS = {TASK_KIND: "what kind of task it is", "system": "which system or version ran it"}
"""These columns of a table of groups, and what they say of a trace."""

REWARDS = "rewards."
"""What the columns of several rewards begin with, in a table of them as in one of events."""

RATER = "rater"
"""The column that names the person who gave an outcome."""

OF_LABELS = (RATER, "note")
"""Columns in which `credit label` keeps who gave an outcome, and why."""


_MOST_RENAMED = 8  # columns that are named where none is likely
_OF_TRACES = re.compile(r"(?:trace|traj|trajectory|rollout|episode|conversation|session|run)[_ ]?(?:u?id|uuid|name)?")
"""Names of a column of traces, in small letters, that no id has: a table may lack its header."""


def near_columns(field: str, columns: Collection[str]) -> dict[str, str]:
    """Our names of a table's columns by those of its own, where only one column each may be ours; empty elsewhere."""
    ids = column_of_traces(columns)
    values = [field] if _states(field, columns) else likely_columns(field, columns, (ids, *OF_TASKS))
    if not ids or len(values) != 1:
        return {}
    return {name: ours for name, ours in ((ids, TRACE[0]), (values[0], field)) if name not in (*TRACE, ours)}


def column_of_traces(columns: Iterable[str]) -> str:
    """The only column that may have the ids of traces; "" where none or several may."""
    names = [*columns]
    ids = [name for name in names if name in TRACE] or [one for one in names if _OF_TRACES.fullmatch(snake_case(one))]
    return ids[0] if len(ids) == 1 else ""


def columns_of_rewards(channel: str, name: str, columns: Iterable[str]) -> tuple[str, list[str]]:
    """The column of the outcome, "" without one, and those of other rewards.

    Raises:
      TraceError: "bad-header", of two columns of the outcome.
    """
    names = list(dict.fromkeys(columns))
    own, several = f"{REWARDS}{channel}", [column for column in names if column.startswith(REWARDS)]
    if own in several and "reward" in names:
        expected = f"one column of the reward {channel!r}, `reward` or `{own}`"
        raise TraceError(Problem("bad-header", name, 1, "columns", excerpt(", ".join(names)), expected))
    main = own if own in several else "reward" if "reward" in names or not several else ""
    return main, [column for column in several if column != own]


def _states(field: str, columns: Iterable[str]) -> bool:
    return any(column == field or (field == "reward" and column.startswith(REWARDS)) for column in columns)


def check_columns(field: str, name: str, columns: Collection[str]) -> None:
    """Refuse a table without a column that it must have.

    Raises:
      TraceError: "bad-header".
    """
    lacks = [*([] if set(TRACE) & set(columns) else ["trace"]), *([] if _states(field, columns) else [field])]
    if not lacks:
        return
    likely = {ours: likely_column(ours, columns, (*TRACE, field)) for ours in lacks}
    rest = unread_names(columns, (*TRACE, field, *OF_TASKS, *OF_LABELS, *likely.values()))
    named = []
    for ours, theirs in likely.items():
        any_of = rest[:_MOST_RENAMED] if ours != "group" else []  # another column is as likely a kind or a system
        found = [f"`{printable(one, 60)}`" for one in ([theirs] if theirs else any_of)]
        which = f"one of {', '.join(found)}" if len(found) > 1 else "".join(found)
        rest_too = f", others to `{REWARDS}NAME`" * (ours == "reward" and len(found) > 1)
        named += [f"{which} to `{ours}`{rest_too}"] if found else []
    expected = f"columns `trace` and `{field}`, which --columns does not name (it is for logs)"
    if field == "group":
        told = [f"`{column}` ({meaning})" for column, meaning in OF_TASKS.items()]
        expected = f"columns `trace` and any of `group` (the task, which other traces share), {' and '.join(told)}"
        expected += ", or `group` and the others alone"
    expected += f": rename {' and '.join(named)}" if named else ""
    raise TraceError(Problem("bad-header", name, 1, "columns", excerpt(", ".join(columns)), expected))


def unread_names(columns: Iterable[str], read: Collection[str]) -> list[str]:
    """The columns that are not read, without those of an index, which have no name of their own."""
    return [column for column in columns if column and column not in read and "Unnamed" not in column]


def unread_columns(name: str, columns: Collection[str]) -> Iterator[Problem]:
    """Information: columns of a table of rewards that nothing reads, as a judge's. Those of an index have no name."""
    own = [column for column in columns if column.startswith(REWARDS)]
    unread = unread_names(columns, (*TRACE, *OF_LABELS, "reward", "group", *own))
    if unread:
        expected = "`trace`, `reward` and, as for a judge's verdicts, `rewards.NAME`: the others are not read"
        yield Problem("unread-columns", name, 1, "columns", excerpt(", ".join(unread)), expected, about="reward")


def plain(value: Any) -> Any:
    """A scalar of NumPy as that of Python, which a table would hold: means of arrays come as NumPy's."""
    if isinstance(value, np.floating):
        return float(value)  # a long one has itself as its item
    return value.item() if isinstance(value, np.generic) else value


def ids_of(row: Mapping[str, Any]) -> list[str]:
    """The ids of traces that a row states, in each column that may have one."""
    return [id_text(row[name]) for name in TRACE if row.get(name) is not None]


def contradictory(row: Mapping[str, Any]) -> tuple[str, str, object, str] | None:
    """The fault of a row that names two traces, one in each column of traces; None without."""
    ids = ids_of(row)
    if len(set(ids)) < 2:
        return None
    return "ambiguous-row", TRACE[1], ids[1], f"the trace of column `{TRACE[0]}`, here {excerpt(ids[0])}"


def ambiguous(
    field: str, trace: str, known: Collection[str], spoilt: Collection[str]
) -> tuple[str, str, object, str] | None:
    """The fault of a second row of a trace; None for the first row."""
    is_known = trace in known or trace in spoilt
    return ("ambiguous-row", "trace", trace, f"one row with a {field} for each trace") if is_known else None


def odd_kind(value: Any, column: str = TASK_KIND) -> tuple[str, str, object, str] | None:
    """The fault of a cell of kinds of tasks, or of another column `OF_TASKS`, as of `unusable`; None without one."""
    is_odd = isinstance(value, bool | list | dict)
    return ("bad-type", column, value, f"a text or a number: {OF_TASKS[column]}") if is_odd else None


def unusable(field: str, value: Any, expected: str = "a finite number") -> tuple[str, str, object, str] | None:
    """The fault of a cell: kind, field, value and expectation of a `Problem`; None if it has none."""
    if value is None and field == "group":
        return "bad-row", field, value, "the id of a group: without it the trace is left out"
    if value is None:
        return "bad-row", field, value, "a finite number: without it the trace has no outcome"
    if field == "group":
        if isinstance(value, bool | list | dict) or value != value:
            return "bad-type", field, value, "a text or a number: the id of a group"
        if is_inexact(value):
            return "bad-type", field, value, WRITTEN_EXACTLY
        if is_missing_name(str(value)):  # it would be the group of every row without one
            return "missing-field", field, value, "the name of a group"
        return ("empty-id", field, value, "the id of a group") if not str(value).strip() else None
    amount = number(value)
    if amount is None or not math.isfinite(amount):
        return "non-finite-reward", field, value, expected
    if abs(amount) > LARGEST_FLOAT:
        return "out-of-range", field, value, FLOAT_RANGE
    return None
