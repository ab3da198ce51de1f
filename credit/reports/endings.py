"""Traces that end before their work is done, as far as the log tells: in a call without a result, or at a limit."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.reports.tool_calls import ToolCalls
from graphs.event_types import EventType
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.record import AT_LIMIT

__all__ = ["Ending", "endings"]


@dataclasses.dataclass(frozen=True)
class Ending:
    """One way in which traces end early.

    Attributes:
      words: how many traces end so, of how many, and what it may mean, with the first of them.
      traces: how many end so.
      trace, event: the first of them, and where.
    """

    words: str
    traces: int
    trace: str
    event: str


def endings(traces: Traces, calls: ToolCalls | None = None) -> tuple[Ending, ...]:
    """How traces end early; none where no trace does, or where the log does not tell.

    A trace ends in a call without a result if no action comes after the call. Formats whose calls never have a result
    in these logs state none.

    Args:
      traces: what was read.
      calls: its tool calls, where they are known already.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> endings(rows.traces)
      ()
    """
    calls = calls or ToolCalls(traces)
    graph, n = traces.graph, traces.sizes
    trace, kind = np.asarray(graph.trace_ids)[: n.events], np.asarray(graph.event_type)
    formats = traces.traces["format"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    open_, last = kind[: n.events] == int(EventType.TOOL_CALL), np.full(n.traces, -1)
    open_[calls.calls] = False
    acts = np.flatnonzero(np.asarray(graph.action_mask)[: n.events])
    np.maximum.at(last, trace[acts], acts)
    rows = calls.rows[open_[calls.rows]]
    rows = rows[(rows >= last[trace[rows]]) & np.isin(formats, formats[trace[calls.calls]])[trace[rows]]]
    told = traces.evidence.get(f"metrics.{AT_LIMIT}")
    limited = np.zeros(0, np.int64) if told is None else last[np.flatnonzero(told.array[: n.traces] > 0)]
    found = (
        (rows, ("ends", "end"), "in a tool call without a result: the run was cut short, or the call ended it"),
        (limited[limited >= 0], ("stops", "stop"), "at a limit of tokens, turns, time or money, as the log says"),
    )
    return tuple(
        _ending(traces, rows, verbs[len(np.unique(trace[rows])) > 1], how) for rows, verbs, how in found if len(rows)
    )


def _ending(traces: Traces, rows: np.ndarray, verb: str, how: str) -> Ending:
    trace = np.asarray(traces.graph.trace_ids)
    count, first = len(np.unique(trace[rows])), int(rows[0])
    tool, event = traces.events["tool"][first].as_py(), traces.events["event"][first].as_py()
    name = traces.traces["trace"][int(trace[first])].as_py()
    place = f"{event}{f' of {tool}' if tool else ''}, trace {name}"
    words = f"{count} of {counted(traces.sizes.traces, 'trace')} {verb} {how}. The first: {place}"
    return Ending(words, count, name, event)
