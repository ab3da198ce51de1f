"""What is said of the order of a table's rows: what was put in order, what contradicts it, and what tells none."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from graphs.errors import Problem
from graphs.formats.table.hints import columns_option
from graphs.formats.table.stated_order import numbers_of_turns
from graphs.text import excerpt
from graphs.traces.record import TraceRecord
from graphs.traces.told_order import are_scattered, untold_agents
from graphs.traces.turn_numbers import numbered_turn

__all__ = ["notes_of_order"]


def notes_of_order(
    traces: Sequence[TraceRecord], column_of: Mapping[str, str], unread: Mapping[str, str]
) -> Iterator[Problem]:
    """Notes on the order of the rows of one table, each with the first place and the number of traces.

    Args:
      traces: of the table, `in_stated_order`.
      column_of: our columns to the table's.
      unread: columns that nothing reads, by our names of what they may be.
    """
    moved = [trace for trace in traces if not _rises(trace.lines)]
    if moved:
        trace = moved[0]
        row = next(row for row, (a, b) in enumerate(itertools.pairwise(trace.lines)) if b < a)
        field, shown = (
            ("turn", trace.turns[row]) if math.isnan(trace.times[row]) else ("time", f"{trace.times[row]:.15g}")
        )
        expected = f"rows in their order: they were put in that of their {field}s"
        shown = f"{excerpt(shown)} behind a later one"
        yield _of_traces("sorted-rows", trace, trace.lines[row], column_of[field], shown, expected, len(moved))
    fallen = [fall for trace in traces if (fall := _out_of_order(trace, column_of)) is not None]
    if fallen:
        yield dataclasses.replace(fallen[0], count=len(fallen))
    untold = [trace for trace in traces if len(trace.ids) > 1 and not _rises(trace.times)]
    of_trace = np.repeat(np.arange(len(traces)), [len(trace.ids) for trace in traces])
    lines = np.array([line for trace in traces for line in trace.lines])
    scattered = untold and are_scattered(of_trace[np.argsort(lines, kind="stable")])
    turns = {id(trace): numbers_of_turns(trace.turns) or [math.nan] * len(trace.ids) for trace in untold}
    unnumbered = {place for place, numbers in turns.items() if math.isnan(numbers[0])}
    if scattered:  # turns of one agent tell its order, or fall, which is said above
        behind = [
            (trace, 0)
            for trace in untold
            if len(trace.instances) > 1
            and _lacks_time(trace)
            and not _rises(turns[id(trace)], trace)
            and id(trace) not in unnumbered
        ]
    else:
        behind = [*_by_agent(untold, turns), *_put_beside(moved, turns)]
    orders = {ours: unread[ours] for ours in ("time", "turn") if ours in unread}
    named = f", as {columns_option(orders)} may read" if orders else ""
    if behind:
        trace, row = behind[0]
        field, cells = ("turn", trace.turns) if trace.turns else ("agent", trace.agents)
        place = trace.lines[row], column_of.get(field, field), excerpt(cells[row])
        expected = f"a time, or turns numbered along the trace{named}, of a pipeline too: "
        expected += "who of several agents acted first is not told"
        yield _of_traces("turns-by-agent", trace, *place, expected, len(behind))
    untold = [trace for trace in untold if id(trace) in unnumbered and _lacks_time(trace)]
    if scattered and untold:
        expected = (
            f"a trace's rows together in their order, a time, or numbered turns{named}: the order of the file is taken"
        )
        place = untold[0].lines[0], column_of["trace"], excerpt(untold[0].trace_id)
        yield _of_traces("scattered-rows", untold[0], *place, expected, len(untold))


def _of_traces(kind: str, trace: TraceRecord, line: int, field: str, shown: str, expected: str, count: int) -> Problem:
    return Problem(kind, trace.file, line, field, shown, expected, trace.trace_id, count=count)


def _by_agent(traces: Sequence[TraceRecord], turns: Mapping[int, Sequence[float]]) -> list[tuple[TraceRecord, int]]:
    """The first row of each trace of which `untold_agents` are, but of those that share a context."""
    ids: dict[tuple[int, str], int] = {}
    sizes = [len(trace.ids) for trace in traces]
    of_trace = np.repeat(np.arange(len(traces)), sizes)
    agent = np.array([ids.setdefault((n, name), len(ids)) for n, trace in enumerate(traces) for name in trace.agents])
    turn = np.array([number for trace in traces for number in turns[id(trace)]], np.float64)
    first: dict[int, int] = {}
    begins = np.cumsum([0, *sizes])
    for row in untold_agents(of_trace, agent, turn).tolist():
        n = int(of_trace[row])
        at = row - int(begins[n])
        if not traces[n].times[at] > traces[n].times[at - 1] and not _at_once(traces[n], at):
            first.setdefault(n, at)
    return [(traces[n], at) for n, at in first.items()]


def _put_beside(
    moved: Sequence[TraceRecord], turns: Mapping[int, Sequence[float]]
) -> Iterator[tuple[TraceRecord, int]]:
    """The first row of each trace that stands where it does by a turn that another agent's row has, too."""
    for trace in moved:
        numbers = turns.get(id(trace), ())
        alike = (row for row in range(1, len(numbers)) if numbers[row] == numbers[row - 1])
        if row := next((row for row in alike if not _at_once(trace, row)), 0):
            yield trace, row


def _at_once(trace: TraceRecord, row: int) -> bool:
    """Whether a row shares its context with the one before."""
    context = trace.columns.get("context", ())[row - 1 : row + 1]  # a column may end early
    return len(context) > 1 and context[0] is not None and context[0] == context[1]


def _lacks_time(trace: TraceRecord) -> bool:
    return any(map(math.isnan, trace.times))


def _rises(numbers: Sequence[float], of: TraceRecord | None = None) -> bool:
    """Whether each number is above the one before; of a trace, alike where both rows act at once."""
    pairs = enumerate(itertools.pairwise(numbers), 1)
    return all(b > a or (of is not None and a == b and _at_once(of, row)) for row, (a, b) in pairs)


def _out_of_order(trace: TraceRecord, column_of: Mapping[str, str]) -> Problem | None:
    """The first row whose time, or turn of its agent, is below an earlier one's; None where none is.

    Methods read rows in the order of the file, whatever the row says: `turn_baseline` was wrong without a word.
    """
    last: dict[tuple[str, ...], tuple[float, str]] = {}
    for row, (time, agent) in enumerate(zip(trace.times, trace.agents, strict=True)):
        stated: list[tuple[tuple[str, ...], float, str]] = (
            [] if math.isnan(time) else [(("time",), time, f"{time:.15g}")]
        )
        if trace.turns and (turn := numbered_turn(trace.turns[row])) is not None:
            stated.append((("turn", agent, turn[0]), turn[1], excerpt(trace.turns[row])))
        for key, value, shown in stated:
            before, earlier = last.get(key, (value, shown))
            if value < before:
                expected = f"rows in their order, since methods read them so: an earlier row has {earlier}"
                return Problem(
                    "unordered-rows", trace.file, trace.lines[row], column_of[key[0]], shown, expected, trace.trace_id
                )
            last[key] = value, shown
    return None
