"""Columns under other names than ours whose every cell is one of ours: what a note proposes, and nothing reads.

A name alone proposes none: `kind` may hold anything, and is that of a type where each cell names one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from graphs.formats.native.misspelt import count_key, nearest_key
from graphs.formats.native.wire import EVENT_CODES
from graphs.formats.table.by_content import BEGIN
from graphs.formats.table.cells import (
    EVIDENCE,
    LISTS,
    LONGEST_ID,
    MOMENT,
    REWARD,
    TEXT,
    TRUTH,
    failed,
    moment,
    says_why,
)
from graphs.formats.table.columns import KNOWN
from graphs.formats.table.time_units import UNIT_NAME
from graphs.reading.tables.likely_columns import snake_case
from graphs.reading.tables.rows import Row, number
from graphs.traces.statuses import says_error, says_fine

__all__ = ["NearNames"]

_NEAR = {
    "type": re.compile(r"^(?:event_?|step_?|span_?)?kind$|^(?:step|record|message|span)_?type$|^event(?:_?name)?$"),
    "tool": re.compile(r"^(?:tool|function)_?name$|^tool_?(?:used|called)$"),
    "status": re.compile(r"(?:^|_)(?:status|state)$"),
    "error": re.compile(
        r"(?:^|_)(?:error|err|exception|failure)(?:_?(?:message|msg|text|reason))?$|^(?:is_error|failed)$"
    ),
    "seconds": re.compile(rf"(?:^|_)(?:dur|duration|latency|elapsed|took)_?(?:in_?)?(?:s|secs?|seconds|{UNIT_NAME})$"),
    "end": re.compile(r"^end$|(?:^|_)(?:end|finish|complet)(?:ed)?_?(?:time|at|ts|timestamp)$"),
}
"""Words in names of columns, in small letters, by our column. A duration is one where its name has its unit."""
_LONGEST = 1e6  # seconds that an event takes: more are those of another unit


def _is_error(cell: Any) -> bool | None:
    """Whether a cell may say why its row failed; None for a number, which may be anything."""
    return None if number(cell) is not None and not isinstance(cell, bool) else failed(cell)


def _name(cell: Any) -> str | None:
    text = TEXT[0](cell)
    return text if text is not None and len(text) <= LONGEST_ID else None


_CELLS: dict[str, Callable[[Any], Any]] = {
    **{name: to for name, (to, _) in {**EVIDENCE, **LISTS}.items()},
    **dict.fromkeys(("action", "stop", "trusted"), TRUTH[0]),
    "reward": REWARD[0],
    "time": MOMENT[0],
    "end": MOMENT[0],
    "type": lambda cell: EVENT_CODES.get(cell) if isinstance(cell, str) else None,
    "status": lambda cell: cell if isinstance(cell, str) and (says_error(cell) or says_fine(cell)) else None,
    "error": _is_error,
    "tool": _name,
}
"""How a cell of our columns is read; None for one of another type. Those that are not here are texts."""


class NearNames:
    """The columns of one table that may be ours under other names, row after row."""

    def __init__(self, names: Iterable[str], told: Collection[str], time: str = "") -> None:
        """Look at columns.

        Args:
          names: of the table, those that nothing reads.
          told: our names of columns that the table has, or that the user leaves out.
          time: the column that is read as the time.
        """
        names = list(names)
        known = tuple(ours for ours in KNOWN if ours not in {*told, "event_reward", "end"})
        left = {*_NEAR} - {*told, *(["end"] if "seconds" in told else [])}
        self._states = says_why if "status" in told else failed
        self._may_be: dict[str, str] = {}
        for name in names:
            words = snake_case(name)
            like = next((ours for ours, pattern in _NEAR.items() if ours in left and pattern.search(words)), "")
            counted = count_key(name)
            if ours := like or (counted if counted in known else "") or nearest_key(name, known):
                self._may_be[name] = ours
        begins = [time] if time else [name for name in names if "time" not in told and BEGIN.search(snake_case(name))]
        ends = [name for name, ours in self._may_be.items() if ours == "end"]
        self._span = (begins[0], ends[0]) if begins and ends else ()
        self._took = 0.0
        self._stated: set[str] = set()
        self.names = list(dict.fromkeys((*self._may_be, *self._span)))

    def add(self, row: Row) -> None:
        """Take in a row."""
        for name, ours in list(self._may_be.items()):
            cell = row.get(name)
            if cell is None or cell == "" or cell != cell:
                continue
            if _CELLS.get(ours, TEXT[0])(cell) is None:
                del self._may_be[name]
            elif ours != "error" or self._states(cell):
                self._stated.add(name)
        if self._span:
            begin, end = (moment(row.get(name)) for name in self._span)
            took = math.nan if begin is None or end is None else end - begin
            self._span = self._span if 0 <= took <= _LONGEST else ()
            self._took += took

    def likely(self) -> dict[str, str]:
        """Our name to the first column whose cells are such, of those that state any; `end` beside its `time`."""
        found = {ours: name for name, ours in reversed(self._may_be.items()) if name in self._stated and ours != "end"}
        return found | (dict(zip(("time", "end"), self._span, strict=True)) if self._span and self._took else {})
