"""Rows of a trainer's table that cannot be read, and the traces that they are of, or may be: these may lack actions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

from graphs.errors import Problem
from graphs.reading.source import Source
from graphs.reading.tables.beginnings import Beginnings
from graphs.reading.tables.csv_rows import csv_header
from graphs.reading.tables.early_cuts import EarlyCuts
from graphs.reading.tables.edges import Edges
from graphs.reading.tables.rows import LostRow
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
        self._source, self._column = source, column
        self._early_cuts = EarlyCuts(source, (column,))
        self._mentions: dict[str, Problem] = {}
        self._begins = Beginnings()
        self._edges = Edges()
        self._glued: list[tuple[str, str, Problem]] = []  # what is the id of a row alone, and of the one glued to it
        self._any: Problem | None = None
        self._again: set[str] = set()  # ids of rows that are glued to an early one: such a trace has this row, too

    @functools.cached_property
    def _header(self) -> list[str]:
        return csv_header(self._source)

    def add(self, row: LostRow) -> None:
        """Note a row."""
        self._mentions |= dict.fromkeys(row.mentions, row.problem)
        for text in row.begins:
            self._begins.note(text, row.problem)
        if row.cells:
            self._edges.note(row.cells, row.problem)
            place, more = self._header.index(self._column), len(row.cells) - len(self._header)
            if 0 < more <= place:  # else a row that was cut before another was cut behind its id
                self._again.add(row.cells[place + more])
                self._glued.append((row.cells[place], row.cells[place + more], row.problem))
        is_early = self._early_cuts.has(row)
        if is_early and not row.cells and self._early_cuts.is_glued(row):
            self._again |= row.mentions
        if is_early and self._any is None:
            self._any = row.problem

    def judged(self, traces: Iterable[TraceRecord]) -> list[TraceRecord | Problem]:
        """The traces, and in place of one that a row may be of, its problem."""
        traces = list(traces)
        anyone = self._of_anyone({trace.trace_id for trace in traces})
        if not any(len(trace.ids) > 1 or trace.trace_id in self._again for trace in traces):
            anyone = None
        return [self._judge(trace, anyone) for trace in traces]

    def _of_anyone(self, known: set[str]) -> Problem | None:
        """The first row that may be of any trace."""
        if self._any is not None:
            return self._any
        early = (problem for alone, behind, problem in self._glued if alone not in known or behind in known)
        return next(early, None)

    def _judge(self, trace: TraceRecord, anyone: Problem | None) -> TraceRecord | Problem:
        name = trace.trace_id
        problem = self._mentions.get(name) or self._begins.of(name) or self._edges.of(name) or anyone
        if problem is None:
            return trace
        expected = "a readable row: without it this trace may lack events or rewards"
        return dataclasses.replace(problem, kind="lost-row", expected=expected, trace=name)
