"""Cells of a table as values of the types that events need; None for a cell of another type."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from graphs.event_types import STATED_TOPOLOGIES
from graphs.formats.native.wire import LogProb, SumOfSquares, TokenId
from graphs.json_errors import JSON_ERRORS
from graphs.reading.tables.ids import WRITTEN_EXACTLY, id_text, is_inexact
from graphs.reading.tables.rows import number
from graphs.reading.times import seconds
from graphs.traces.missing_names import is_missing_name, no_ids
from graphs.traces.record import LARGEST_COUNT
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TRACE_EVIDENCE
from graphs.traces.statuses import says_fine

__all__ = [
    "EVIDENCE",
    "LISTS",
    "MOMENT",
    "OF_TRACE",
    "REWARD",
    "TEXT",
    "TRUTH",
    "failed",
    "moment",
    "says_why",
    "truth",
]


_UTC = re.compile(r" UTC$")
"""How BigQuery ends a time."""


def moment(value: Any) -> float | None:
    """A cell as a time in seconds, 0 or later, of a date with its time those since 1970; None for anything else.

    Examples:
      >>> moment("2.5"), moment("1970-01-01 00:01:00 UTC"), moment("1970-01-01 00:01"), moment("noon"), moment(-1)
      (2.5, 60.0, 60.0, None, None)
    """
    time = number(value)
    if time is None and isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(_UTC.sub("+00:00", value.strip()))
        except ValueError:
            return None
    if isinstance(value, datetime.datetime):
        time = seconds(value)
    return time if time is not None and math.isfinite(time) and time >= 0 else None


MOMENT: tuple[Callable[[Any], Any], str] = (moment, "a finite number, 0 or more, or as 2026-01-31T12:00:00Z")
"""How cells of times are read, and what is expected of them."""


def truth(value: Any) -> bool | None:
    """A cell as true or false, which tables also write as 1 and 0; None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    amount = number(value)
    return bool(amount) if amount in (0, 1) else None


TRUTH: tuple[Callable[[Any], Any], str] = (truth, "true, false, 1 or 0")
"""How cells of truth values are read, and what is expected of them."""


def failed(value: Any) -> bool:
    """Whether a cell of errors says that its row failed: true, or anything but what says that nothing went wrong.

    Examples:
      >>> [failed(cell) for cell in ("Timeout after 30 s", {"code": 7}, True, "", "None", "no error", 0, None)]
      [True, True, True, False, False, False, False, False]
    """
    if (stated := truth(value)) is not None:
        return stated
    text = "" if not value or value != value else str(value).strip()
    return bool(text) and not is_missing_name(text) and not says_fine(text)


def says_why(value: Any) -> bool:
    """Whether a cell of errors says why its row failed, and more than that it did.

    Examples:
      >>> [says_why(cell) for cell in ("no such file", "timeout", "FAILED", True, "")]
      [True, True, False, False, False]
    """
    return failed(value) and truth(value) is None and str(value).strip().lower() not in _VERDICTS


_VERDICTS = frozenset({"error", "err", "exception", "fail", "failed", "failure"})


def _text(value: Any) -> str | None:
    return None if isinstance(value, bool | list | dict) else id_text(value)


def _name(value: Any) -> str | None:
    """A name, and no prompt: each task would be one of its own."""
    text = _text(value)
    return text if text is not None and len(text) <= LONGEST_ID and "\n" not in text else None


LONGEST_ID = 200
"""Characters of an id or a name; a longer text is what a model reads or writes."""
TEXT: tuple[Callable[[Any], Any], str] = (_text, "a text, or --columns {0}= to leave the column out")
OF_TRACE: dict[str, tuple[Callable[[Any], Any], str]] = {
    name: (read, f"{expected}, or --columns {{0}}= to leave the column out")
    for name, read, expected in (
        ("system", _name, f"a name of the harness, {LONGEST_ID} characters at most"),
        ("task_kind", _name, f"a name of the kind of task, {LONGEST_ID} characters at most"),
        (
            "topology",
            lambda value: value if value in STATED_TOPOLOGIES else None,
            f"one of {', '.join(STATED_TOPOLOGIES)}",
        ),
    )
}
"""How cells of texts, and of what a trace states once, are read, and what is expected, with the column's name."""


def _count(value: Any) -> float | None:
    count = number(value)
    return count if count is not None and count.is_integer() and 0 <= count <= LARGEST_COUNT else None


def _flag(value: Any) -> float | None:
    flag = truth(value)
    return None if flag is None else float(flag)


def _ids(key: str) -> Callable[[Any], str | None]:
    absent = no_ids(key)

    def convert(value: Any) -> str | None:
        text = id_text(value)
        return None if text in absent or is_inexact(value) else text

    return convert


def _reward(value: Any) -> float | None:
    """A number; a truth is 1 or 0, as in every format."""
    amount = number(value)
    return _flag(value) if amount is None else amount


REWARD: tuple[Callable[[Any], Any], str] = (_reward, "a number, or true or false for 1 and 0")
"""How cells of rewards are read, and what is expected of them."""

_NUMBERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "float": (number, "a number"),
    "count": (_count, f"an integer from 0 to {LARGEST_COUNT}"),
    "flag": (_flag, TRUTH[1]),
}

EVIDENCE: dict[str, tuple[Callable[[Any], Any], str]] = {
    name: (_ids(name), f"{WRITTEN_EXACTLY}, or an empty cell")
    if key.kind == "id"
    else REWARD
    if name.endswith("reward")
    else _NUMBERS["flag" if name in FLAGS else key.kind]
    for name, key in {**EVENT_EVIDENCE, **TRACE_EVIDENCE}.items()
}
"""For each key of evidence how its cells are read, and what is expected of them."""


def _list_of(kind: Any) -> Callable[[Any], list[Any] | None]:
    """A list of a type, from a list or, in CSV, from its JSON text; 0 and 1 are truth values."""

    def convert(value: Any) -> list[Any] | None:
        try:
            listed: list[Any] = (
                msgspec.json.decode(value, type=list[kind], strict=False)
                if isinstance(value, str)
                else msgspec.convert(value, list[kind], strict=False)
            )
        except JSON_ERRORS:
            return None
        return listed

    return convert


LISTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "token_ids": (_list_of(TokenId), f"a list of integers from 0 to {LARGEST_COUNT}"),
    "token_mask": (_list_of(bool), "a list of truth values"),
    "token_log_probs": (_list_of(LogProb), "a list of numbers, 0 or less"),
    "token_sums_of_squares": (_list_of(SumOfSquares), "a list of numbers from 0 to 1"),
}
