"""Rows of a trainer's table that cannot be read, and the traces that they are of, or may be: these may lack actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from graphs.errors import Problem
from graphs.readers.common.source import Source
from graphs.readers.common.tables.beginnings import Beginnings
from graphs.readers.common.tables.early_cuts import EarlyCuts
from graphs.readers.common.tables.rows import LostRow
from graphs.traces.record import TraceRecord

__all__ = ["LostTableRows"]


class LostTableRows:
    """The unreadable rows of one table.

    A row that is cut before the id of its trace may be of any trace, where the table has traces of several rows.

    Args:
      source: the table.
      column: the name of its column of traces.
    """

    def __init__(self, source: Source, column: str) -> None:
        self._early_cuts = EarlyCuts(source, (column,))
        self._mentions: dict[str, Problem] = {}
        self._begins = Beginnings()
        self._any: Problem | None = None

    def add(self, row: LostRow) -> None:
        """Note a row."""
        self._mentions |= dict.fromkeys(row.mentions, row.problem)
        for text in row.begins:
            self._begins.note(text, row.problem)
        if self._any is None and self._early_cuts.has(row):
            self._any = row.problem

    def judged(self, traces: Iterable[TraceRecord]) -> list[TraceRecord | Problem]:
        """The traces, and in place of one that a row may be of, its problem."""
        traces = list(traces)
        anyone = self._any if any(len(trace.ids) > 1 for trace in traces) else None
        return [self._judge(trace, anyone) for trace in traces]

    def _judge(self, trace: TraceRecord, anyone: Problem | None) -> TraceRecord | Problem:
        name = trace.trace_id
        problem = self._mentions.get(name) or self._begins.of(name) or anyone
        if problem is None:
            return trace
        expected = "a readable row: without it this trace may lack events or rewards"
        return dataclasses.replace(problem, kind="lost-row", expected=expected, trace=name)
