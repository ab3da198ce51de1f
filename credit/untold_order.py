"""Whether a log tells which of several agents acted first, or leaves that to the order of its rows or its list."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from credit.methods.method_row import Method
from graphs.structure.edge_order import EdgeOrder
from graphs.structure.forest import dependencies
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.told_order import actions_beside, stated_order, tied_traces

__all__ = ["UNTOLD", "reads_untold", "said_of_order", "traces_untold", "untold_traces"]

UNTOLD = ("of untold order", "at one time", "turns-by-agent", "scattered-rows")
"""What leaves open who was first: in native logs, by times and spans, and in tables by their notes."""


def traces_untold(
    traces: Traces, method: Method, options: Mapping[str, Any], given: Collection[str]
) -> collections.Counter[str]:
    """How many traces leave to their order what a method reads of it, by `UNTOLD`.

    Args:
      traces: what was read.
      method, options, given: which order is read: as of `Method.reads_order`.
    """
    reads = {
        "turns-by-agent": method.reads_order(options, given, of_agents=True),
        "scattered-rows": method.reads_order(options, given),
    }
    found = collections.Counter[str]()
    for note in traces.problems:
        found[note.kind] += note.count if reads.get(note.kind) else 0
    formats = traces.traces["format"].to_numpy(zero_copy_only=False)
    of_tables = (formats == "table") & reads["scattered-rows"]
    tied = tied_traces(traces, (formats != "native") & reads["turns-by-agent"], of_tables)
    found["at one time"] = len(tied)
    found["scattered-rows"] += int(np.count_nonzero(stated_order(traces) == 0)) if reads["scattered-rows"] else 0
    found["of untold order"] = untold_traces(traces, method, options, given)
    return found


def untold_traces(traces: Traces, method: Method, options: Mapping[str, Any], given: Collection[str]) -> int:
    """How many native traces leave to the order of their list what a method reads: who of several agents was first.

    An action is known to come after the one before it in the list if the trace states a `told_order`, a path of edges
    leads to it, over events of one agent, too, or both share a context, as in a joint turn. Times are no order: an
    action may end late that began first.

    Args: as of `traces_untold`.
    """
    native = traces.traces["format"].to_numpy(zero_copy_only=False) == "native"
    native &= np.isnan(stated_order(traces))
    if not native.any() or not method.reads_order(options, given, of_agents=True):
        return 0
    n = traces.sizes.events
    before, after = actions_beside(traces, native, np.zeros(len(native), bool))
    if not len(after):
        return 0
    edges = dependencies(traces.graph)
    place = np.where(np.asarray(traces.graph.action_mask)[:n], np.arange(1, n + 1), 0)
    reaches = EdgeOrder(*edges).latest(place)
    latest = np.zeros(n, np.int64)
    np.maximum.at(latest, edges[1], reaches[edges[0]])
    return len(np.unique(np.asarray(traces.graph.trace_ids)[after[latest[after] != before + 1]]))


def reads_untold(method: str, counts: Mapping[str, int]) -> str:
    """That a method reads an order which a log leaves untold, where `traces_untold` counts some; else ""."""
    said = said_of_order(counts)
    return said and f"{method} reads the order of {'rows' if counts['scattered-rows'] else 'agents'}, and {said}"


def said_of_order(counts: Mapping[str, int]) -> str:
    """What follows where `traces_untold` counts some; "" where it counts none."""
    untold, tied, by_agent, scattered = (counts.get(kind, 0) for kind in UNTOLD)
    context = "one context where agents act at once"
    of_list = (
        f"in {counted(untold, 'trace')} no edges tell which of several agents acted first, and the order of the list, "
        "maybe that in which they ended, is taken; expected an edge to each action from what it followed, and "
        f"{context}, or told_order true in the trace"
    )
    of_file = (
        f"in {counted(tied, 'trace')} several actions have one time or overlap, and the order of the log, maybe that "
        f"in which they ended, is taken; expected times apart, or {context}"
    )
    of_turns = (
        f"in {counted(by_agent, 'trace')} neither a time nor a turn that rises along the trace is read, to tell which "
        "of several agents acted first; expected times, or turns numbered along the trace"
    )
    of_rows = (
        f"in {counted(scattered, 'trace')} rows are scattered over the file, without time or numbered turn, and its "
        "order is taken; expected the rows of a trace together in their order, or times"
    )
    said = zip((untold, tied, by_agent, scattered), (of_list, of_file, of_turns, of_rows), strict=True)
    return "; ".join(text for count, text in said if count)
