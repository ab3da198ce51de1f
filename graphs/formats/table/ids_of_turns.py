"""Ids of events that begin again in each turn of a trace: joined to the turn, they are its own."""

from __future__ import annotations

from collections.abc import Sequence

from graphs.errors import Problem
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["join_to_turns", "repeated_id"]


def join_to_turns(traces: Sequence[TraceRecord]) -> None:
    """Make the ids of a table `TURN/ID`, if those of some trace repeat and are told apart by its turns.

    Args:
      traces: of one table, whose ids are written.
    """
    of_turns = [trace for trace in traces if trace.turns]
    if any(_repeats(trace.ids) and not _repeats(_joined(trace)) for trace in of_turns):
        for trace in of_turns:
            trace.ids = _joined(trace)


def repeated_id(trace: TraceRecord, column: str) -> Problem | None:
    """The problem of a trace without turns in which an id stands twice; None of others, which `check` looks at.

    Args:
      trace: of a table.
      column: that of the ids.
    """
    if trace.turns or not _repeats(trace.ids):
        return None
    seen: dict[str, int] = {}
    again = next(row for row, name in enumerate(trace.ids) if seen.setdefault(name, row) != row)
    name = trace.ids[again]
    expected = (
        f"an id that no other event of the trace has (also event {seen[name]}). Ids that begin again in each step of a "
        "run are joined to it by --columns turn=COLUMN; where ids of traces begin again in each step of training, join "
        "these to it in the table, as in 3-0"
    )
    return Problem("duplicate-id", trace.file, trace.lines[again], column, excerpt(name), expected, trace.trace_id)


def _repeats(ids: Sequence[str]) -> bool:
    return len({*ids}) < len(ids)


def _joined(trace: TraceRecord) -> list[str]:
    return [f"{turn}/{name}" for turn, name in zip(trace.turns, trace.ids, strict=True)]
