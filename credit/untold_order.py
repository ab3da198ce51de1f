"""Whether a native log tells which of several agents acted first, or leaves that to the order of its list."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from credit.methods.method_row import Method
from graphs.structure.edge_order import EdgeOrder
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["said_of_order", "untold_traces"]


def untold_traces(traces: Traces, method: Method, options: Mapping[str, Any], given: Collection[str]) -> int:
    """How many native traces leave to the order of their list what a method reads: who of several agents was first.

    An action is known to come after the one before it in the list if a path of edges leads to it, over events of one
    agent, too, or if both share a context, as in a joint turn. Times are no order: an action may end late that began
    first.

    Args:
      traces: what was read.
      method, options, given: which order is read: as of `Method.reads_order`.
    """
    formats = traces.traces["format"].to_numpy(zero_copy_only=False)
    if not (formats == "native").any() or not method.reads_order(options, given, of_agents=True):
        return 0
    from credit.metrics.event_influence import dependencies  # it loads JAX, and `validate` does not

    graph, n = traces.graph, traces.sizes.events
    trace, agent = (np.asarray(ids)[:n].astype(np.int64) for ids in (graph.trace_ids, graph.agent_ids))
    acts = np.flatnonzero(np.asarray(graph.action_mask)[:n])
    before, after = acts[:-1], acts[1:]
    apart = (trace[before] == trace[after]) & (agent[before] != agent[after]) & (formats == "native")[trace[after]]
    before, after = before[apart], after[apart]
    if "context" in traces.evidence:
        context = traces.evidence["context"].array
        apart = (context[before] != context[after]) | (context[after] < 0)
        before, after = before[apart], after[apart]
    if not len(after):
        return 0
    edges = dependencies(traces)
    place = np.zeros(n, np.int64)
    place[acts] = acts + 1
    reaches = EdgeOrder(*edges).latest(place)
    latest = np.zeros(n, np.int64)
    np.maximum.at(latest, edges[1], reaches[edges[0]])
    return len(np.unique(trace[after[latest[after] != before + 1]]))


def said_of_order(count: int) -> str:
    """What follows where `untold_traces` counts some; "" where it counts none."""
    if not count:
        return ""
    return (
        f"in {counted(count, 'trace')} no edges tell which of several agents acted first, and the order of the list, "
        "maybe that in which they ended, is taken; expected an edge to each action from what it followed, and one "
        "context where agents act at once"
    )
