"""Tables of outcomes beside logs. Their rows look like traces, and are none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from graphs.errors import Problem, TraceError
from graphs.formats.table.columns import KNOWN, TEXTS
from graphs.formats.table.hints import INDEX
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.tables.rows import PARQUET, column_names
from graphs.text import excerpt

__all__ = ["may_state_outcomes", "outcomes_problem", "refuse_outcome_tables", "states_outcomes"]

Verdict = str | Problem | None
_HEAD = 1 << 16  # bytes that tell the columns of a table
_TRACE, _REWARD = frozenset(KNOWN["trace"]), frozenset(KNOWN["reward"])
_OUTCOMES = _TRACE | _REWARD | INDEX
_SAYS_NOTHING_OF_WORK = ("trace", "reward", "id", "time", "status", "system", "topology", "task_kind")
_WORK = frozenset(name for ours, names in KNOWN.items() if ours not in _SAYS_NOTHING_OF_WORK for name in names)
"""Columns that say who did what, or in which task."""


def refuse_outcome_tables(verdicts: Sequence[tuple[Source, Verdict]]) -> list[tuple[Source, Verdict]]:
    """Sources with their formats; in place of the format of a table of outcomes beside logs, a problem.

    Files of another format are logs, and so are tables that state more than outcomes. If all files are tables of
    outcomes, they are the log. So is a table that the caller named.
    """
    columns = {id(source): _columns(source) for source, verdict in verdicts if verdict == "table"}
    is_other = any(isinstance(verdict, str) and verdict != "table" for _, verdict in verdicts)
    if not (is_other or any(map(_says_more, columns.values()))):
        return list(verdicts)
    judged: list[tuple[Source, Verdict]] = []
    for source, verdict in verdicts:
        may_be = verdict == "table" and source.path is not None and not source.is_named
        problem = _problem(source, columns[id(source)]) if may_be else None
        judged.append((source, problem or verdict))
    return judged


def states_outcomes(source: Source) -> bool:
    """Whether a file's columns are those of a table of outcomes alone."""
    return _are_outcomes(_columns(source))


def may_state_outcomes(source: Source) -> bool:
    """Whether a file's columns state outcomes and nothing about work. Its ids may tell what further columns mean."""
    first = _columns(source)
    if _says_more(first) or not TEXTS.isdisjoint(map(str.lower, first)):
        return False
    try:
        names = column_names(source)  # a row of JSON lines may have columns that the first one lacks
    except (TraceError, OSError):  # its reader says why
        return False
    finally:
        source.release()
    says_nothing = not _says_more(names) and TEXTS.isdisjoint(map(str.lower, names))
    return says_nothing and not _TRACE.isdisjoint(names) and not _REWARD.isdisjoint(names)


def outcomes_problem(source: Source, names: Collection[str], shown: str) -> Problem:
    """The problem of a table of outcomes in a folder of logs; `shown` is the evidence for it."""
    is_ready = "reward" in names and not {"trace", "trace_id"}.isdisjoint(names)
    renamed = "" if is_ready else " once its columns are called trace and reward"
    expected = f"--rewards FILE, which reads it{renamed}; or its name beside the folder's, to read its rows as traces"
    return Problem("outcomes-among-logs", source.name, 0, "content", shown, expected)


def _are_outcomes(names: Collection[str]) -> bool:
    """Whether the columns are a trace and its outcome alone: no other says who did what, or in which task."""
    said = [name for name in names if name.strip() not in INDEX]
    return len(said) == 2 and not _TRACE.isdisjoint(said) and not _REWARD.isdisjoint(said)


def _says_more(names: Iterable[str]) -> bool:
    """Whether a column says who did what, or in which task."""
    return not _WORK.isdisjoint(names)


def _problem(source: Source, names: Collection[str]) -> Problem | None:
    """The problem of a table in a folder of logs; None if it states more than outcomes."""
    if not _are_outcomes(names):
        return None
    return outcomes_problem(source, names, f"the columns {excerpt(', '.join(names))} alone, in a folder of logs")


def _columns(source: Source) -> list[str]:
    """The names of a table's columns. Those of the first row are enough if they show that it is no table of outcomes.

    Empty if the table cannot be read; its reader says why.
    """
    try:
        head = source.head(_HEAD).lstrip()
        if not head.startswith(PARQUET):
            first = _first_names(head)
            if not _OUTCOMES.issuperset(first):
                return first
        return column_names(source)
    except (TraceError, OSError):
        return []
    finally:
        source.release()


def _first_names(head: bytes) -> list[str]:
    if head.startswith(b"{"):
        return list(opening(head).keys)
    line = head.partition(b"\n")[0].strip()
    return [cell.strip().strip('"') for cell in line.decode("utf-8", "replace").split(",")]
