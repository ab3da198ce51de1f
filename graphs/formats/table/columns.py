"""Which columns of a table have what: as the user says, else by the names that trainers give them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphs.errors import Problem, TraceError
from graphs.formats.native.wire import EVENT_FIELDS, FLAT_FIELDS
from graphs.formats.table.hints import columns_option, listed_names
from graphs.formats.table.time_units import without_unit
from graphs.reading.near_misses import resemblance_of_columns
from graphs.reading.source import Source
from graphs.reading.tables.likely_columns import likely_column
from graphs.reading.tables.rows import PARQUET, column_names, nested_names
from graphs.reading.text_keys import FAILED, is_text_key, text_key
from graphs.text import excerpt, near_names
from graphs.traces.schema import TRACE_EVIDENCE

__all__ = ["FAMILIES", "KNOWN", "TEXTS", "find_columns", "is_named", "text_columns"]

_NAMES: dict[str, tuple[str, ...]] = {
    "trace": ("trace", "trace_id", "traj_uid", "traj_id", "trajectory_id", "rollout_id"),
    "group": ("group", "group_id", "uid", "task_id", "data_id", "prompt_id"),
    "agent": ("agent", "agent_id", "agent_name"),
    "agent_name": ("agent_name",),
    "role": ("role", "role_name"),
    "model": ("model", "model_name"),
    "reward": ("reward", "score"),
    "turn": ("turn", "turn_id", "turn_in_trace"),
    "type": ("type", "event_type"),
    "id": ("id", "event_id"),
    "time": ("time", "t"),
    "end": (),  # as `columns` says alone: elsewhere it may be anything, as whether an episode ended
    "token_ids": ("token_ids", "response_ids", "completion_ids"),
    "token_mask": ("token_mask", "response_mask"),
    "token_log_probs": ("token_log_probs", "rollout_log_probs", "old_log_probs"),
    "token_sums_of_squares": ("token_sums_of_squares", "sum_pi_squared"),
}
_NATIVE = (*EVENT_FIELDS, *FLAT_FIELDS, *TRACE_EVIDENCE)
KNOWN: dict[str, tuple[str, ...]] = _NAMES | {
    name: (name,) for name in _NATIVE if not any(name in names for names in _NAMES.values())
}
"""Our columns, and the names under which they are found where `columns` does not say; our own name goes first. A row is
an event of the native format beside its trace: what these have, a table has, under the same names."""
FAMILIES = ("rewards", "costs", "metrics")
"""What a native trace has by name: a column such as `costs.money` has one of them (`is_named`)."""
_TELLING = ("group", "reward", "agent", "role", "model", "turn", "type", "action", "event_reward")
"""Columns without which other numbers come out: one that is only spelt otherwise is not passed over."""
_JOINTS = re.compile(r"[\s_.-]+")
TEXTS = frozenset(
    {"answer", "completion", "content", "generation", "input", "message", "output", "prompt", "question", "response",
     "solution", "text"}
)  # fmt: skip
"""Columns of texts, which are no ids: a trace that is named by one must have one row."""


def _plain(name: str) -> str:
    """A name without what spellings differ in: capitals, blanks, and what joins words."""
    return _JOINTS.sub("", name).lower()


def is_named(ours: str) -> bool:
    """Whether a column of ours is one of `FAMILIES`, as `costs.money` is.

    Examples:
      >>> [is_named(name) for name in ("costs.money", "costs.", "money")]
      [True, False, False]
    """
    family, _, name = ours.partition(".")
    return family in FAMILIES and bool(name)


def text_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Of `columns` those of texts, which the reader leaves in the file and `Traces.text_columns` keeps the names of;
    the status, behind whose word may stand one; and those that are called as a text is and are none, as an outcome in
    `result`.

    Examples:
      >>> text_columns({"trace": "run", "arguments": "tool_params", "reward": "result"})
      {'arguments': 'tool_params', 'reward': 'result'}
    """
    others = {ours: theirs for ours, theirs in columns.items() if ours not in KNOWN and not is_named(ours)}
    texts = {text_key(ours): theirs for ours, theirs in others.items() if is_text_key(ours)}
    read = {ours: theirs for ours, theirs in columns.items() if ours not in others and theirs}
    return texts | {ours: theirs for ours, theirs in read.items() if ours == "status" or is_text_key(theirs)}


def find_columns(source: Source, columns: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Our name to the table's, for the columns that are there; and the names of all columns of the table.

    Raises:
      TraceError: "missing-column", for one that was asked for or for the trace; "ambiguous-column".
    """
    names = column_names(source)
    column_of: dict[str, str] = {}
    for ours, theirs in columns.items():
        if not theirs:  # "tool=" leaves a column out
            continue
        theirs = without_unit(ours, theirs, names)
        if theirs not in names:
            near = near_names(theirs, names)
            hint = f". {near}" if near.startswith("Did") else ""
            expected = f"a column that the table has: {listed_names(names)}{hint}"
            raise TraceError(Problem("missing-column", source.name, 1, ours, f"column {theirs!r}", expected))
        column_of[ours] = theirs
    taken = {theirs for ours, theirs in column_of.items() if ours not in ("key", "own_number")}  # of no other meaning
    read = {ours: theirs for ours, theirs in column_of.items() if ours in KNOWN or is_named(ours)}
    others = {text_key(ours): theirs for ours, theirs in column_of.items() if ours not in read}
    column_of = read | {ours: theirs for ours, theirs in others.items() if ours in FAILED}  # others are texts
    told = {*columns, *(["reward"] if "rewards.team" in columns else [])}
    for ours, known in KNOWN.items():
        candidates = [name for name in known if name in names and name not in taken]
        if ours in told or not candidates:
            continue
        if len(candidates) > 1 and candidates[0] != ours:
            expected = f"one column for {ours!r}: {columns_option({ours: candidates[0]}, columns)} chooses"
            raise TraceError(Problem("ambiguous-column", source.name, 1, ours, excerpt(candidates), expected))
        column_of[ours] = candidates[0]
        taken.add(candidates[0])
    families = (name for name in names if is_named(name) and name not in columns and name not in taken)
    column_of |= {name: name for name in families if not (name == "rewards.team" and "reward" in column_of)}
    for ours in _TELLING:
        if ours in told:
            continue
        first = KNOWN[ours]
        if ours in column_of:  # a name that goes before the one that is there
            first = first[: first.index(column_of[ours])]
        spelt = {_plain(name): name for name in first}
        alike = [name for name in names if name not in (*taken, *column_of.values()) and _plain(name) in spelt]
        if alike:
            named = columns_option({ours: alike[0]}, columns)
            expected = f"{spelt[_plain(alike[0])]!r}, or {named}: names count as they are written"
            raise TraceError(Problem("bad-header", source.name, 1, "columns", excerpt(alike[0]), expected))
    if "trace" not in column_of:
        named = columns_option({"trace": likely_column("trace", names, column_of.values())}, columns)
        expected = f"a column for the trace: one of {', '.join(KNOWN['trace'])}, or {named} to name it"
        near = resemblance_of_columns(nested_names(source)) if source.data.startswith(PARQUET) else ""
        expected += f"; or {near}" if near else ""
        raise TraceError(Problem("missing-column", source.name, 1, "trace", excerpt(names), expected))
    return column_of, names
