"""Which tool, or which agent's model, most of the wall clock goes into, and how long one call of it takes."""

from __future__ import annotations

import numpy as np

from credit.reports.call_seconds import CallSeconds, calls_of_models, calls_of_tools
from credit.reports.durations import Durations, busy_seconds
from credit.reports.tool_calls import ToolCalls
from graphs.text import amount, counted, percent, printable
from graphs.traces.batch import Traces

__all__ = ["where_time_goes"]

MOST = 1 / 2
"""Part of the wall clock from which a tool is named, whatever others take."""
PART, LEAST, SLOWER = 1 / 3, 0.05, 3
"""What is so many times as slow as others is named if it takes this part of the wall clock where it is called, and of
all traces the least part. It is so by its median; or by its mean and the slowest tenth of its calls, as one slow call
alone moves a mean."""


def where_time_goes(traces: Traces, calls: ToolCalls, found: Durations) -> str:
    """The tool, and the agent's model, of the largest part of the wall clock; "" where none takes much of it.

    Args:
      traces: what was read.
      calls: of these.
      found: of these.
    """
    if not np.nansum(found.wall) > 0:
        return ""
    n = traces.sizes.events
    action = np.asarray(traces.graph.action_mask)[:n]
    lasting, own = np.where(action, -1, np.arange(n)), np.arange(n)  # an action's seconds are its model's
    lasting[calls.results] = calls.calls
    tools = _largest(traces, calls_of_tools(traces, calls, found), lasting, found, "calls of {}", "other tools", MOST)
    models = calls_of_models(traces, found)
    told = _largest(traces, models, own, found, "model calls of {}", "other agents", np.inf)
    return "; ".join(filter(None, (tools, told)))


def _largest(
    traces: Traces, calls: CallSeconds, event_of: np.ndarray, found: Durations, what: str, others: str, most: float
) -> str:
    """The first by its part of the wall clock that is to be named, in words.

    Args:
      traces, found: as above.
      calls: of tools, or of models.
      event_of: the call of each event that belongs to one, -1 for none: int [events].
      what, others: what they are called.
      most: part from which one is named in any case.
    """
    trace, wall = np.asarray(traces.graph.trace_ids)[: len(event_of)], np.nan_to_num(found.wall)
    name_of = np.full(len(event_of) + 1, -1)
    name_of[calls.rows] = calls.whose
    known = np.isfinite(found.begun) & np.isfinite(found.end) & (wall > 0)[trace]
    rows = np.flatnonzero((name_of[event_of] >= 0) & known)
    pairs, pair = np.unique(name_of[event_of[rows]] * np.int64(len(wall)) + trace[rows], return_inverse=True)
    name, of = pairs // len(wall), pairs % len(wall)
    busy = np.minimum(busy_seconds(pair, found.begun[rows], found.end[rows], len(pairs)), wall[of])
    sums, within, many = (
        np.bincount(name, each, len(calls.names)) for each in (busy, np.where(busy > 0, wall[of], 0.0), busy > 0)
    )
    parts = sums / wall.sum()
    for number in np.argsort(-parts, kind="stable").tolist():
        part, there = float(parts[number]), float(sums[number] / (within[number] or 1.0))
        if part < LEAST:
            break
        own, rest = (calls.seconds[of] for of in (calls.whose == number, calls.whose != number))
        rest = rest if len(rest) else np.zeros(1)
        median, mean, slow = ((float(of(own)), float(of(rest))) for of in (np.median, np.mean, _of_tenth))
        by_median, by_mean, by_tenth = (its >= SLOWER * usual > 0 for its, usual in (median, mean, slow))
        if part <= most and not ((by_median or (by_mean and by_tenth)) and there >= PART):
            continue
        words = f"{percent(part)} of the wall clock goes into {what.format(printable(calls.names[number], 60))}"
        if percent(there) != percent(part):
            words += f", {percent(there)} in the {counted(int(many[number]), 'trace')} with one"
        which, (its, usual) = ("mean", mean) if by_mean and by_tenth and not by_median else ("median", median)
        beside = f"; {others} {amount(usual, 2)}" if usual else ""
        tenth = f"; one call in ten took over {amount(slow[0], 2)}" if which == "mean" else ""
        return f"{words}: {amount(its, 2)} seconds a call ({which}{beside}){tenth}"
    return ""


def _of_tenth(seconds: np.ndarray) -> float:
    """What the slowest tenth of calls takes at least."""
    return float(np.quantile(seconds, 0.9))
