"""Rows of a trainer's table that cannot be read, and the traces that they are of, or may be: these may lack actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from graphs.errors import Problem
from graphs.readers.common.tables.beginnings import Beginnings
from graphs.readers.common.tables.rows import LostRow
from graphs.traces.record import TraceRecord

__all__ = ["LostTableRows"]


class LostTableRows:
    """The unreadable rows of one table."""

    def __init__(self) -> None:
        self._mentions: dict[str, Problem] = {}
        self._begins = Beginnings()

    def add(self, row: LostRow) -> None:
        """Note a row."""
        self._mentions |= dict.fromkeys(row.mentions, row.problem)
        for text in row.begins:
            self._begins.note(text, row.problem)

    def judged(self, traces: Iterable[TraceRecord]) -> list[TraceRecord | Problem]:
        """The traces, and in place of one that a row may be of, its problem."""
        return [self._judge(trace) for trace in traces]

    def _judge(self, trace: TraceRecord) -> TraceRecord | Problem:
        name = trace.trace_id
        problem = self._mentions.get(name) or self._begins.of(name)
        if problem is None:
            return trace
        expected = "a readable row: without it this trace may lack events or rewards"
        return dataclasses.replace(problem, kind="lost-row", expected=expected, trace=name)
