"""Hints for a table whose columns have other names: which column may mean what, as text for `--columns`."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from graphs.reading.keys import opening
from graphs.reading.tables.columns_by_values import constant_within, first_rows, id_of_traces, outcome_in_words
from graphs.reading.tables.csv_rows import other_separator
from graphs.reading.tables.likely_columns import likely_column
from graphs.text import excerpt, printable

__all__ = [
    "INDEX", "columns_option", "is_no_log", "listed_names", "proposal", "proposes", "table_without",
]  # fmt: skip

_EXPORTS = {
    "calls of W&B Weave": frozenset({"op_name", "trace_id", "parent_id"}),
    "spans of Braintrust": frozenset({"root_span_id", "span_id", "span_parents"}),
}
"""Tables that services export, by columns: their rows are parts of traces, and no actions."""
_NO_LOGS = (
    ("prices", "--prices", {"model", "input", "output"}, {"cached_input", "cache_write", "tool", "call"}),
    ("prices", "--prices", {"tool", "call"}, {"model", "input", "output", "cached_input", "cache_write"}),
    ("tasks", "--groups", {"trace", "group"}, set[str]()),
    ("sides", "--sides", {"trace", "side"}, set[str]()),
)
"""Tables that options read: what they hold, the option, their columns, and others that they may have."""
_NO_LOG = ", which is no log"
INDEX = frozenset({"", "Unnamed: 0", "__index_level_0__"})
"""Names under which pandas writes the numbers of its rows, which say nothing."""
_IN = "in --columns"
_PLACEHOLDER = "NAME"
_MOST_NAMED = 20
_MOST_ROWS = 1000  # whose keys are looked at
_LONGEST_NAME = 60  # of a column; what is longer is a text


def columns_option(column_of: Mapping[str, str], stated: Mapping[str, str] | None = None) -> str:
    """The option that names columns, as it is typed, behind those that are stated; NAME for one that is not known.

    Examples:
      >>> columns_option({"trace": "rollout", "reward": ""}, {"tool": ""})
      '--columns tool=,trace=rollout,reward=NAME'
    """
    named = [f"{ours}={printable(theirs, _LONGEST_NAME)}" for ours, theirs in (stated or {}).items()]
    named += [f"{ours}={printable(theirs, _LONGEST_NAME) or _PLACEHOLDER}" for ours, theirs in column_of.items()]
    return f"--columns {shlex.quote(','.join(named))}"


def proposal(column_of: Mapping[str, str], stated: Mapping[str, str]) -> str:
    """What a mapping lacks, as what is typed without one, or is added to one.

    Examples:
      >>> proposal({"turn": "round"}, {}), proposal({"turn": "round"}, {"trace": "run"}), proposal({}, {"trace": "run"})
      ('--columns turn=round', 'turn=round in --columns', '--columns')
    """
    option, _, pairs = columns_option(column_of).partition(" ")
    return f"{pairs} {_IN}" if column_of and stated else f"{option} {pairs}" if column_of else option


def proposes(words: str) -> bool:
    """Whether words hold a `proposal` that names a column."""
    return f" {_IN}" in words or " or --columns " in words


def listed_names(names: Collection[str]) -> str:
    """Names of columns in a row, cut where they are many or long."""
    shown = [printable(name, _LONGEST_NAME) for name in list(names)[:_MOST_NAMED]]
    return ", ".join(shown) + (", …" if len(names) > _MOST_NAMED else "")


def table_without(head: bytes, known: Mapping[str, Collection[str]]) -> tuple[str, str] | None:
    """What a table of unrecognised columns is and what it lacks, by its first lines; None for what is no such table.

    Args:
      head: the beginning of the file.
      known: our names of columns, and the names under which they are found.
    """
    lines = [line for line in head.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not lines or lines[0].lstrip().startswith(("[", "<")):
        return None
    if lines[0].lstrip().startswith("{"):
        separator, names = ",", _keys_of_rows(lines)
    else:
        separator = other_separator(lines[0]) or ","
        names, more = (
            [cell.strip().strip('"') for cell in line.split(separator)] for line in (lines[0], lines[:2][-1])
        )
        names = names if len(more) >= len(names) else []
    for what, columns in _EXPORTS.items():
        if columns <= set(names):
            return f"a table of {what}", "the same as JSON or JSON lines, in which the service exports them, too"
    for of, option, must, may in _NO_LOGS:
        if must <= set(names) <= must | may:
            return f"a table of {of}{_NO_LOG}", f"{option} FILE, which reads it, or another folder"
    in_any_case = {name for listed in known.values() for name in listed}
    if len(names) < 2 or any(len(name) > _LONGEST_NAME for name in names):
        return None
    if not any(name.lower() in in_any_case for name in names):
        return None
    column_of = {ours: name for ours in known for name in known[ours] if name in names}
    lacks = [f"commas between the cells, not {separator!r}"] if separator != "," else []
    kinds = ("trace",) if {"event_reward", "agent_reward"} & column_of.keys() else ("trace", "reward")
    missing = [ours for ours in kinds if ours not in column_of]
    if missing:
        cells = first_rows(lines) if separator == "," and lines[0][:1] != "{" else {}
        lacks.append(_naming(missing, names, column_of, known, cells))
    return (f"a table with the columns {excerpt(listed_names(names))}", "; ".join(lacks)) if lacks else None


def is_no_log(what: str) -> bool:
    """Whether `table_without` says of a table that an option reads it: in a folder of logs it is no fault."""
    return what.endswith(_NO_LOG)


def _keys_of_rows(lines: list[str]) -> list[str]:
    """The keys of rows of JSON lines, the first's values being texts and numbers; none of other objects."""
    first, *others = (opening.__wrapped__(line.encode()) for line in lines[:_MOST_ROWS])
    is_row = others and first.scalars == set(first.keys) and not others[0].scalars.isdisjoint(first.keys)
    return list(dict.fromkeys(key for row in (first, *others) for key in row.keys)) if is_row else []


def _naming(
    missing: list[str],
    names: list[str],
    found: Mapping[str, str],
    known: Mapping[str, Collection[str]],
    cells: Mapping[str, list[str]],
) -> str:
    """The missing columns, and how to name what has them; group and agent too, if a column seems to have them.

    Where no name tells, the first rows may: `cells` by column, none where they are not read.
    """
    wanted = {ours: likely_column(ours, names, found.values()) for ours in missing}
    if "trace" in wanted:
        wanted["trace"] = wanted["trace"] or id_of_traces(cells, found.values())
    trace = wanted.get("trace") or found.get("trace", "")
    within = constant_within(cells, trace)
    if wanted.get("reward") == "":
        wanted["reward"] = outcome_in_words(cells, within)
    for ours in ("event_reward", "group", "agent"):
        of = [name for name in names if name in within] if ours == "group" and cells else names
        likely = likely_column(ours, of, [*found.values(), *wanted.values()])
        if likely and ours not in found:
            wanted[ours] = likely
    kinds = " and ".join(f"a column for the {ours} ({', '.join(known[ours])})" for ours in missing)
    alone = missing == ["reward"] and not wanted["reward"]
    without = "; --format table reads it without, and --rewards FILE joins outcomes" if alone else ""
    return f"{kinds}, or {columns_option(wanted)} to name {'it' if len(wanted) == 1 else 'them'}{without}"
