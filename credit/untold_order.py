"""Whether a log tells which of several agents acted first, or leaves that to the order of its rows or its list."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from credit.methods.method_row import Method
from graphs.structure.edge_order import EdgeOrder
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.spans_at_once import moments

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
    found["at one time"] = _tied_traces(traces, method, options, given)
    found["of untold order"] = untold_traces(traces, method, options, given)
    return found


def _tied_traces(traces: Traces, method: Method, options: Mapping[str, Any], given: Collection[str]) -> int:
    """How many traces have actions at one time whose order a method reads: rows of tables, and spans but native ones.

    Those are of several agents, in tables of one name, too. Equal times alone tell it in tables: clocks of other logs
    are coarse, and their lists in order.

    Args: as of `traces_untold`.
    """
    graph, n = traces.graph, traces.sizes.events
    formats = traces.traces["format"].to_numpy(zero_copy_only=False)
    reads, of_agents = (method.reads_order(options, given, of_agents=of) for of in (False, True))
    of_tables, trace = formats == "table", np.asarray(graph.trace_ids)[:n]
    before, after = _beside(traces, (formats != "native") & of_agents, of_tables & reads)
    if not len(after):
        return 0
    took = traces.evidence["seconds"].array[:n] if "seconds" in traces.evidence else np.full(n, np.nan)
    times = traces.events["time"].to_numpy().astype(np.float64)
    at = moments(graph, np.where(of_tables[trace] | (took > 0), times, np.nan), took, of_tables)
    return len(np.unique(trace[after[(at[before] == at[after]) & (at[after] >= 0)]]))


def untold_traces(traces: Traces, method: Method, options: Mapping[str, Any], given: Collection[str]) -> int:
    """How many native traces leave to the order of their list what a method reads: who of several agents was first.

    An action is known to come after the one before it in the list if a path of edges leads to it, over events of one
    agent, too, or if both share a context, as in a joint turn. Times are no order: an action may end late that began
    first.

    Args: as of `traces_untold`.
    """
    formats = traces.traces["format"].to_numpy(zero_copy_only=False)
    if not (formats == "native").any() or not method.reads_order(options, given, of_agents=True):
        return 0
    from credit.metrics.event_influence import dependencies  # it loads JAX, and `validate` does not

    n = traces.sizes.events
    before, after = _beside(traces, formats == "native", np.zeros(len(formats), bool))
    if not len(after):
        return 0
    edges = dependencies(traces)
    place = np.where(np.asarray(traces.graph.action_mask)[:n], np.arange(1, n + 1), 0)
    reaches = EdgeOrder(*edges).latest(place)
    latest = np.zeros(n, np.int64)
    np.maximum.at(latest, edges[1], reaches[edges[0]])
    return len(np.unique(np.asarray(traces.graph.trace_ids)[after[latest[after] != before + 1]]))


def _beside(traces: Traces, of_agents: np.ndarray, of_names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The actions beside which another stands, without a common context, and that one.

    Args:
      traces: what was read.
      of_agents: bool [T], whether neighbours of two agents count.
      of_names: bool [T], whether neighbours of one agent in one turn count.
    """
    graph, n = traces.graph, traces.sizes.events
    trace, agent = (np.asarray(ids)[:n].astype(np.int64) for ids in (graph.trace_ids, graph.agent_ids))
    acts = np.flatnonzero(np.asarray(graph.action_mask)[:n])
    before, after = acts[:-1], acts[1:]
    turn = np.asarray(graph.turn_ids)[:n]
    of, same = trace[after], agent[before] == agent[after]
    apart = np.where(same, of_names[of] & (turn[before] == turn[after]), of_agents[of]) & (trace[before] == of)
    if "context" in traces.evidence:
        context = traces.evidence["context"].array
        apart &= (context[before] != context[after]) | (context[after] < 0)
    return before[apart], after[apart]


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
        f"{context}"
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
