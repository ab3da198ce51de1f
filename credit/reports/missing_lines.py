"""Whose lines a log is known to lack, so that counts of them are lower bounds."""

from __future__ import annotations

import numpy as np

from graphs.traces.batch import Traces
from graphs.traces.record import LOST_PARTS

__all__ = ["LACKING", "lacking_events", "lacking_traces", "silent_agents"]

LACKING = "the log lacks lines of the trace"
"""Why a trace has no number that can be compared."""


def silent_agents(traces: Traces) -> np.ndarray:
    """Whether an instance was spawned and has no action: what it did is not in the log. bool [A]."""
    graph, n = traces.graph, traces.sizes.events
    parent = np.asarray(graph.agent_parent)
    silent: np.ndarray = parent != np.arange(len(parent))
    silent[np.asarray(graph.agent_ids)[np.flatnonzero(np.asarray(graph.action_mask)[:n])]] = False
    return silent


def lacking_events(traces: Traces) -> np.ndarray:
    """Whether lines are missing of the agent of each real event: bool [number of real events].

    A trace states how many parts it is read without (`LOST_PARTS`). Each part belongs to one of its `silent_agents`.
    Where parts are more than these, any agent of the trace may lack lines. Every count over such events is a lower
    bound.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["x"], reward=[1.0])
      >>> lacking_events(rows.traces).tolist()
      [False]
    """
    graph, n, m = traces.graph, traces.sizes.events, traces.sizes.traces
    lost = traces.evidence.get(f"metrics.{LOST_PARTS}")
    if lost is None:
        return np.zeros(n, bool)
    agent, trace, parts = np.asarray(graph.agent_ids)[:n], np.asarray(graph.trace_ids)[:n], lost.array[:m]
    silent = silent_agents(traces)[agent]
    shown = np.bincount(np.asarray(graph.agent_trace)[np.unique(agent[silent])], minlength=m)
    lacking: np.ndarray = (parts > 0)[trace] & (silent | (parts > shown)[trace])
    return lacking


def lacking_traces(traces: Traces) -> np.ndarray:
    """Whether a real trace lacks lines: bool [number of real traces]."""
    lost, m = traces.evidence.get(f"metrics.{LOST_PARTS}"), traces.sizes.traces
    lacking: np.ndarray = np.zeros(m, bool) if lost is None else lost.array[:m] > 0
    return lacking
