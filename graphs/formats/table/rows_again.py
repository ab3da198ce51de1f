"""The note that a table has rows again, equal in every column: also in those that nothing else reads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from graphs.errors import Problem
from graphs.reading.source import Source
from graphs.reading.tables.rows import log_rows
from graphs.traces.real_numbers import are_real, told_apart
from graphs.traces.record import TraceRecord
from graphs.traces.repeated_rows import MEASURED, REPEATED_ROWS, repeated_rows
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = ["note_of_copies"]


def note_of_copies(source: Source, traces: Sequence[TraceRecord], *, whole: bool) -> Iterator[Problem]:
    """The note of `repeated_rows`, if a table without ids of events has some.

    Args:
      source: the table, which is read again where rows seem to be copies.
      traces: of it, with their rows as it has them.
      whole: whether each of its columns was read.
    """
    contents = [_contents(trace) for trace in traces]
    if all(len({*rows}) == len(rows) for rows in contents):
        return
    clock = any(time % 1 for trace in traces for time in trace.times if not math.isnan(time))  # or a number of steps
    measured = [row for trace in traces for row in _measured(trace, clock)]
    of_trace = np.repeat(np.arange(len(traces)), [len(rows) for rows in contents])
    agent = _codes((trace.group_id, name) for trace in traces for name in trace.agents)
    turns = (turn for trace in traces for turn in itertools.zip_longest(trace.turns, _times(trace)))
    turn = np.stack([agent, _codes(turns)], axis=1)
    lines = np.array([line for trace in traces for line in trace.lines])
    content, numbers = _codes(itertools.chain(*contents)), _codes(measured)
    has_turns = all(trace.turns for trace in traces)
    again, first = repeated_rows(of_trace, agent, content, numbers, turn, lines, has_turns=has_turns, is_file=True)
    if not len(again):
        columns = itertools.zip_longest(*measured)  # a trace may lack some
        cells = np.array([[cell if isinstance(cell, float) else math.nan for cell in column] for column in columns])
        places = _codes(zip(of_trace.tolist(), *turn.T.tolist(), strict=True))
        real = np.where(are_real(cells).any(0), numbers, -1)
        again, first = told_apart(places, agent, content, real, has_turns=has_turns)
    copies = [(int(lines[copy]), int(lines[row])) for copy, row in zip(again.tolist(), first.tolist(), strict=True)]
    if copies and (whole or _alike(source, copies)):
        line, original = copies[0]
        value = f"equal to line {original} in every column"
        expected = "each row once: a copy counts twice; if both are real, each needs an `id`"
        yield Problem(REPEATED_ROWS, source.name, line, "row", value, expected, count=len(copies))


def _contents(trace: TraceRecord) -> list[tuple[Any, ...]]:
    """All that each row of a trace states of its own."""
    columns: list[Iterable[Any]] = [trace.types, trace.agents, trace.actions, trace.turns, _times(trace)]
    return list(itertools.zip_longest(*columns, *(_cells(trace, name) for name in trace.columns)))


def _measured(trace: TraceRecord, clock: bool) -> list[tuple[Any, ...]]:
    names = [name for name in trace.columns if name in MEASURED or name in TOKEN_COLUMNS]
    times = _times(trace) if clock else [None] * len(trace.ids)
    return list(itertools.zip_longest(times, *(_cells(trace, name) for name in names)))


def _times(trace: TraceRecord) -> list[float | None]:
    return [None if math.isnan(time) else time for time in trace.times]


def _cells(trace: TraceRecord, name: str) -> Iterable[Any]:
    return map(repr, trace.columns[name]) if name in TOKEN_COLUMNS else trace.columns[name]


def _codes(column: Iterable[Any]) -> np.ndarray:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(cell, len(known)) for cell in column], np.int64)


def _alike(source: Source, copies: Sequence[tuple[int, int]]) -> bool:
    """Whether rows of these lines are equal in the columns that were not read, too."""
    wanted = {line for pair in copies for line in pair}
    stated = {line: hash(repr(row)) for line, row in log_rows(source, None, None) if line in wanted}
    return all(stated.get(copy) == stated.get(row) for copy, row in copies)
