"""Traces that end before their work is done, as far as the log tells: in an open call, at a limit or in an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from credit.reports.tool_calls import ToolCalls
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.record import AT_LIMIT, CUT_SHORT, IN_ERROR

__all__ = ["CUT", "FAILED", "LIMITED", "UNENDED", "UNKNOWN_END", "Ending", "ended_early", "endings", "ends"]

CUT, LIMITED = "traces that end in a call without a result", "traces that stop at a limit"
FAILED = "traces that end in an error of the run"
UNENDED = "traces that lack spans above others"
"""Ways to end early, as numbers of a trace that are 0 or 1."""

UNKNOWN_END = "the trace ends early, so the log does not tell what its end would have used"
"""Why a trace has no number of what reaches its end."""

_SAID = {
    CUT: (("ends", "end"), "in a tool call without a result: the run was cut short, or the call ended it"),
    LIMITED: (("stops", "stop"), "at a limit of tokens, turns, time or money, as the log says"),
    UNENDED: (("lacks", "lack"), "spans above others, as the root: probably cut short, since no open span is exported"),
    FAILED: (("ends", "end"), "in an error of the API, the environment or the harness, as the log says"),
}


@dataclasses.dataclass(frozen=True)
class Ending:
    """One way in which traces end early.

    Attributes:
      words: how many traces end so, of how many, and what it may mean, with the first of them.
      traces: how many end so.
      failed, succeeded: of these; None where no outcomes tell failed from succeeded traces.
      trace, event: the first of them, and where.
    """

    words: str
    traces: int
    failed: int | None
    succeeded: int | None
    trace: str
    event: str


def endings(traces: Traces, calls: ToolCalls | None = None, succeeded: np.ndarray | None = None) -> tuple[Ending, ...]:
    """How traces end early; none where no trace does, or where the log does not tell.

    Args:
      traces: what was read.
      calls: its tool calls, where they are known already.
      succeeded: 1 or 0 [traces], NaN without an outcome; None where no outcomes tell failed from succeeded traces.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> endings(rows.traces)
      ()
    """
    found = []
    for what, at, _ in ends(traces, calls or ToolCalls(traces)):
        rows = at[at >= 0]
        if not len(rows):
            continue
        verbs, how = _SAID[what]
        count, first, sides = len(rows), int(rows[0]), ""
        failed = passed = None
        if succeeded is not None:
            (failed, of_failed), (passed, of_passed) = (
                (int(np.sum(kind & (at >= 0))), int(kind.sum())) for kind in (succeeded == 0, succeeded == 1)
            )
            sides = f". These are {failed} of {of_failed} failed ones and {passed} of {of_passed} succeeded ones"
        tool, event = traces.events["tool"][first].as_py(), traces.events["event"][first].as_py()
        name = traces.traces["trace"][int(traces.graph.trace_ids[first])].as_py()
        place = f"{event}{f' of {tool}' if tool else ''}, trace {name}"
        words = (
            f"{count} of {counted(traces.sizes.traces, 'trace')} {verbs[count > 1]} {how}{sides}. The first: {place}"
        )
        found.append(Ending(words, count, failed, passed, name, event))
    return tuple(found)


def ended_early(traces: Traces, calls: ToolCalls | None = None) -> np.ndarray:
    """Whether a real trace ends early, in any of the ways of `ends`: bool [number of real traces].

    Args:
      traces: what was read.
      calls: its tool calls, where they are known already.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> ended_early(rows.traces).tolist()
      [False]
    """
    early: np.ndarray = np.any([at >= 0 for _, at, _ in ends(traces, calls or ToolCalls(traces))], axis=0)
    return early


def ends(traces: Traces, calls: ToolCalls) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Ways to end early, with the event at which each trace does, -1 where none, and whether its format tells.

    A trace ends in a call without a result if neither a person's answer to the call nor an action comes after it. A
    format tells of such ends where calls have results in these logs, and of others where the log states one.
    """
    graph, n = traces.graph, traces.sizes
    trace = np.asarray(graph.trace_ids)[: n.events]
    formats = traces.traces["format"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    last = np.full(n.traces, -1)
    acts = np.flatnonzero(np.asarray(graph.action_mask)[: n.events])
    np.maximum.at(last, trace[acts], acts)
    tells = np.isin(formats, formats[trace[calls.calls]])
    rows = np.flatnonzero(calls.open)
    rows = rows[rows >= last[trace[rows]]][::-1]
    at = np.full(n.traces, -1)
    at[trace[rows]] = rows  # the first of a trace
    yield CUT, at, tells
    final = np.searchsorted(trace, np.arange(n.traces), side="right") - 1
    for what, metric in ((LIMITED, AT_LIMIT), (UNENDED, CUT_SHORT), (FAILED, IN_ERROR)):
        told = traces.evidence.get(f"metrics.{metric}")
        has = np.zeros(n.traces, bool) if told is None else told.array[: n.traces] > 0
        yield what, np.where(has, np.where(last >= 0, last, final), -1), np.isin(formats, formats[has])
