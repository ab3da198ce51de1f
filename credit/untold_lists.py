"""Whether a native log tells which of several agents acted first, or leaves that to the order of its list."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from credit.methods.method_row import Method
from credit.untold_order import beside, untold_rows
from graphs.structure.edge_order import EdgeOrder
from graphs.traces.batch import Traces

__all__ = ["traces_untold", "untold_traces"]


def traces_untold(
    traces: Traces, method: Method, options: Mapping[str, Any], given: Collection[str]
) -> collections.Counter[str]:
    """How many traces leave to their order what a method reads of it, by `UNTOLD`.

    Args: as of `untold_traces`.
    """
    found = untold_rows(traces, method, options, given)
    found["of untold order"] = untold_traces(traces, method, options, given)
    return found


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

    n = traces.sizes.events
    before, after = beside(traces, formats == "native")
    if not len(after):
        return 0
    edges = dependencies(traces)
    place = np.where(np.asarray(traces.graph.action_mask)[:n], np.arange(1, n + 1), 0)
    reaches = EdgeOrder(*edges).latest(place)
    latest = np.zeros(n, np.int64)
    np.maximum.at(latest, edges[1], reaches[edges[0]])
    return len(np.unique(np.asarray(traces.graph.trace_ids)[after[latest[after] != before + 1]]))
