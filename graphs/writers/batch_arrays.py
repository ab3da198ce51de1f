"""The arrays of a batch as a writer of one trace after another takes them."""

from __future__ import annotations

import dataclasses

import numpy as np

from graphs.errors import CreditError
from graphs.traces.batch import Traces
from graphs.traces.part import derive_turns

__all__ = ["BatchArrays"]


@dataclasses.dataclass
class BatchArrays:
    """Arrays of a batch without padding, edges in the order of the traces, and where each trace begins.

    Attributes:
      events, agents, edges: bounds [T + 1] of each trace's rows; those of edges are of `senders` and so on.
      senders, receivers, edge_type: real edges, in the order of the traces.
      agent_of, types, actions, turns: of each event.
      turns_stated: whether a reader would derive other turns than a trace's, bool [T].
    """

    events: np.ndarray
    agents: np.ndarray
    edges: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    edge_type: np.ndarray
    agent_of: np.ndarray
    types: np.ndarray
    actions: np.ndarray
    turns: np.ndarray
    turns_stated: np.ndarray

    @classmethod
    def of(cls, traces: Traces) -> BatchArrays:
        graph, n = traces.graph, traces.sizes
        traces_and_end = np.arange(n.traces + 1)
        trace_ids, agent_of, turns, types, actions = (
            np.asarray(x)[: n.events]
            for x in (graph.trace_ids, graph.agent_ids, graph.turn_ids, graph.event_type, graph.action_mask)
        )
        edges = np.flatnonzero(np.asarray(graph.edge_mask))
        edges = edges[np.argsort(trace_ids[np.asarray(graph.senders)[edges]], kind="stable")]
        senders, receivers, edge_type = (
            np.asarray(x)[edges] for x in (graph.senders, graph.receivers, graph.edge_type)
        )
        agent_trace = np.asarray(graph.agent_trace)[: n.agents]
        if np.any(np.diff(agent_trace) < 0):
            raise CreditError(
                "the agent instances of a trace are not contiguous; expected them in the order of the traces"
            )
        events = np.searchsorted(trace_ids, traces_and_end)
        derived = derive_turns(types, agent_of, senders, receivers, edge_type)
        first = events[:-1][trace_ids]
        differs = derived - derived[first] != turns - turns[first]
        return cls(
            events,
            np.searchsorted(agent_trace, traces_and_end),
            np.searchsorted(trace_ids[senders], traces_and_end),
            senders,
            receivers,
            edge_type,
            agent_of,
            types,
            actions,
            turns,
            np.bincount(trace_ids[differs], minlength=n.traces) > 0,
        )
