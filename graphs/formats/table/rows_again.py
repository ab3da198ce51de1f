"""The note that a table has rows again, equal in every column: also in those that nothing else reads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from graphs.errors import Problem
from graphs.reading.source import Source
from graphs.reading.tables.rows import log_rows
from graphs.traces.one_place import copies_in_place, fine_moments, own_places
from graphs.traces.real_numbers import are_real, told_apart
from graphs.traces.record import TraceRecord
from graphs.traces.repeated_rows import MEASURED, REPEATED_ROWS, is_of_rows, repeated_rows
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = ["note_of_copies"]


def note_of_copies(source: Source, traces: Sequence[TraceRecord], *, whole: bool) -> Iterator[Problem]:
    """The note of `copies_in_place` and of `repeated_rows`, if a table without ids of events has some.

    Args:
      source: the table, which is read again where rows seem to be copies.
      traces: of it, with their rows as it has them.
      whole: whether each of its columns was read.
    """
    contents = [_contents(trace) for trace in traces]
    if all(len({*rows}) == len(rows) for rows in contents):
        return
    of_trace = np.repeat(np.arange(len(traces)), [len(rows) for rows in contents])
    instance = _codes((n, name) for n, trace in enumerate(traces) for name in trace.agents)
    lines = np.array([line for trace in traces for line in trace.lines])
    content = _codes(itertools.chain(*contents))
    sure = _pairs(lines, *_surely_again(traces, of_trace, content, lines))
    placed = _pairs(lines, *copies_in_place(of_trace, instance, _places(traces, of_trace), content))
    alike = {*sure, *placed} if whole else _alike(source, {*sure, *placed})
    if copies := dict([*(sure if alike.issuperset(sure) else ()), *(pair for pair in placed if pair in alike)]):
        line, original = next(iter(copies.items()))
        value = f"equal to line {original} in every column"
        expected = "each row once: a copy counts twice; if both are real, each needs an `id`, and two agents two names"
        trace = next(trace.trace_id for trace in traces if line in trace.lines)
        yield Problem(REPEATED_ROWS, source.name, line, "row", value, expected, trace, count=len(copies))


def _surely_again(
    traces: Sequence[TraceRecord], of_trace: np.ndarray, content: np.ndarray, lines: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of `repeated_rows`, or else those of `told_apart`, whatever place they have."""
    columns = [
        [*itertools.chain(*(_measured(trace, name) for trace in traces))]
        for name in (*sorted(MEASURED), *TOKEN_COLUMNS)
    ]
    columns = [column for column in columns if is_of_rows(of_trace, _codes(column))]
    measured = [*zip([None] * len(of_trace), *columns, strict=True)]
    agent = _codes((trace.group_id, name) for trace in traces for name in trace.agents)
    turns = (turn for trace in traces for turn in itertools.zip_longest(trace.turns, _times(trace)))
    turn = np.stack([agent, _codes(turns)], axis=1)
    numbers = _codes(measured)
    has_turns = all(trace.turns for trace in traces)
    again, first = repeated_rows(of_trace, agent, content, numbers, turn, lines, has_turns=has_turns, is_file=True)
    if not len(again):
        real = [[cell if isinstance(cell, float) else math.nan for cell in column] for column in columns]
        cells = np.array(real).reshape(len(columns), len(of_trace))
        places = _codes(zip(of_trace.tolist(), *turn.T.tolist(), strict=True))
        known = np.where(are_real(cells).any(0), numbers, -1)
        again, first = told_apart(places, agent, content, known, has_turns=has_turns)
    return again, first


def _places(traces: Sequence[TraceRecord], of_trace: np.ndarray) -> np.ndarray:
    """`own_places` by contexts, and by times where these are finer than a second."""
    contexts = [(*trace.columns.get("context", ()), *[None] * len(trace.ids))[: len(trace.ids)] for trace in traces]
    stated = list(itertools.chain(*contexts))
    context = np.where([cell is None for cell in stated], -1, _codes(stated))
    times = np.array([time for trace in traces for time in trace.times], np.float64)
    return own_places(of_trace, context, fine_moments(times))


def _pairs(lines: np.ndarray, again: np.ndarray, first: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(lines[again].tolist(), lines[first].tolist(), strict=True))


def _contents(trace: TraceRecord) -> list[tuple[Any, ...]]:
    """All that each row of a trace states of its own."""
    columns: list[Iterable[Any]] = [trace.types, trace.agents, trace.actions, trace.turns, _times(trace)]
    return list(itertools.zip_longest(*columns, *(_cells(trace, name) for name in trace.columns)))


def _measured(trace: TraceRecord, name: str) -> Iterable[Any]:
    """A cell of each row, None where the trace lacks the column or its end."""
    cells = _cells(trace, name) if name in trace.columns else ()
    return (cell for cell, _ in itertools.zip_longest(cells, trace.ids))


def _times(trace: TraceRecord) -> list[float | None]:
    return [None if math.isnan(time) else time for time in trace.times]


def _cells(trace: TraceRecord, name: str) -> Iterable[Any]:
    return map(repr, trace.columns[name]) if name in TOKEN_COLUMNS else trace.columns[name]


def _codes(column: Iterable[Any]) -> np.ndarray:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(cell, len(known)) for cell in column], np.int64)


def _alike(source: Source, copies: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Pairs of lines whose rows are equal in the columns that were not read, too."""
    wanted = {line for pair in copies for line in pair}
    stated = {line: hash(repr(row)) for line, row in log_rows(source, None, None) if line in wanted}
    return {pair for pair in copies if stated.get(pair[0]) == stated.get(pair[1])}
