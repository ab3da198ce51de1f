"""The events of a batch as arrays, their causes, and walks along these."""

from __future__ import annotations

import functools

import numpy as np

from credit.reports.of_batch import OfBatch
from credit.reports.tool_calls import ToolCalls
from graphs.structure.edge_order import EdgeOrder
from graphs.structure.forest import real_edges
from graphs.structure.host_ids import consecutive
from graphs.traces.batch import Traces

__all__ = ["EventFacts"]


class EventFacts(OfBatch):
    """Arrays of the real events of a batch. Each fact is worked out once, when it is first asked for.

    Args:
      traces: what was read.

    Attributes:
      agent, trace, kind, action: instance, trace, type, and whether it is an action: [events] each.
    """

    def __init__(self, traces: Traces) -> None:
        super().__init__(traces)
        graph, n = traces.graph, traces.sizes.events
        # In the width of indices: NumPy converts others each time.
        self.agent, self.trace = (np.asarray(ids)[:n].astype(np.intp) for ids in (graph.agent_ids, graph.trace_ids))
        self.action, self.kind = np.asarray(graph.action_mask)[:n], np.asarray(graph.event_type)[:n]

    @functools.cached_property
    def calls(self) -> ToolCalls:
        """The tool calls of the team."""
        return ToolCalls.of(self.traces)

    @functools.cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Senders and receivers of the logged edges, int [K] each."""
        return real_edges(self.traces.graph)

    @functools.cached_property
    def causes(self) -> tuple[np.ndarray, np.ndarray]:
        """The causes of events, and their effects: the logged edges, and the previous event of an instance where none
        comes from the instance.

        A log may state edges between agents only. The steps of one agent would then all seem to run at once. Where an
        edge comes from the event's own instance, as from the decision that calls two tools, the log states the order
        itself. Every pair runs forward in position.
        """
        senders, receivers = self.edges
        before, after = consecutive(self.agent)
        unordered = np.ones(len(self.agent), bool)
        unordered[receivers[np.flatnonzero(self.agent[senders] == self.agent[receivers])]] = False
        added = np.flatnonzero(unordered[after])
        if not len(added):
            return self.edges
        return np.concatenate([senders, before[added]]), np.concatenate([receivers, after[added]])

    @functools.cached_property
    def order(self) -> EdgeOrder:
        """The causes in the order in which paths are walked."""
        return EdgeOrder(*self.causes)

    @functools.cached_property
    def logged(self) -> EdgeOrder:
        """The logged edges in that order."""
        return self.order if self.causes is self.edges else EdgeOrder(*self.edges)

    @functools.cached_property
    def _first(self) -> np.ndarray:
        """The first event of each trace; events of a trace stand together."""
        new = np.ones(len(self.trace), bool)
        new[1:] = self.trace[1:] != self.trace[:-1]
        return np.flatnonzero(new)

    def of_traces(self, least: np.ufunc, value: np.ndarray, none: float) -> np.ndarray:
        """The least or the greatest, by `np.fmin` and its like, of numbers of the events of each trace: [traces]."""
        found = np.full(self.traces.sizes.traces, none, value.dtype)
        rows = self.trace[self._first]
        found[rows] = least(found[rows], least.reduceat(value, self._first))
        return found

    def greatest(self, value: np.ndarray) -> np.ndarray:
        """The greatest of numbers of events, 0 or more, in each trace: [traces]."""
        return self.of_traces(np.maximum, value, 0)
