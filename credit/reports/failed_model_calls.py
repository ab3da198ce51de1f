"""Model calls that failed, as at a rate limit: without a count, they count as 0 tokens."""

from __future__ import annotations

import numpy as np

from credit.reports.event_errors import error_mask
from credit.reports.of_batch import kept
from graphs.event_graph import EventType
from graphs.structure.forest import real_edges
from graphs.structure.host_ids import among
from graphs.traces.batch import Traces

__all__ = ["failed_model_calls"]

_CALLED = (EventType.TOOL_CALL, EventType.SPAWN)


@kept
def failed_model_calls(traces: Traces) -> np.ndarray:
    """Whether a real event is a model call that failed and asked for nothing: bool [events].

    It is an action, no call of a tool and no spawn, whose status the log calls an error, and which led to neither.
    Providers count no tokens of a call that they refuse. One that timed out may have been counted all the same.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()})
      >>> _ = [record.event(f"e{i}", 3, "a", action=True, status=status) for i, status in enumerate(("error", None))]
      >>> failed_model_calls(assemble([record])).tolist()
      [True, False]
    """
    graph, n = traces.graph, traces.sizes.events
    called = among(np.asarray(graph.event_type)[:n], _CALLED)
    failed: np.ndarray = np.asarray(graph.action_mask)[:n] & error_mask(traces) & ~called
    if failed.any():
        senders, receivers = real_edges(graph)
        failed[senders[called[receivers]]] = False
    return failed
