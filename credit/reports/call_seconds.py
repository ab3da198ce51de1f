"""How long each call of a tool took, and each call of an agent's model."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.reports.durations import Durations
from credit.reports.outside_team import outside_team
from credit.reports.tool_calls import ToolCalls
from graphs.structure.host_ids import ranked
from graphs.traces.batch import Traces

__all__ = ["CallSeconds", "calls_of_models", "calls_of_tools"]


@dataclasses.dataclass(frozen=True)
class CallSeconds:
    """Calls whose seconds are known.

    Attributes:
      rows: their events: int [calls].
      seconds: that each took: float64 [calls].
      names: of tools, or of agents.
      whose: which of these each is of, -1 for none: int [calls].
    """

    rows: np.ndarray
    seconds: np.ndarray
    names: list[str]
    whose: np.ndarray


def calls_of_tools(traces: Traces, calls: ToolCalls, found: Durations) -> CallSeconds:
    """Calls of tools, each with what its results took. Of an action the own seconds are those in which its model wrote.

    Args:
      traces: what was read.
      calls: of these.
      found: of these.

    Examples:
      >>> from credit.reports.trace_numbers import TeamFacts
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()})
      >>> for time, kind in enumerate((3, 4, 5)):  # a message, a call and its result
      ...     tool = "web" if kind > 3 else None
      ...     _ = record.event(f"e{time}", kind, "a", action=kind == 3, time=3.5 * time, tool=tool)
      >>> record.edge(0, 1, 3)
      >>> record.edge(1, 2, 3)
      >>> traces = assemble([record])
      >>> calls_of_tools(traces, ToolCalls(traces), TeamFacts(traces).durations).seconds.tolist()
      [3.5]
    """
    n, rows = traces.sizes.events, np.unique(calls.rows)
    action = np.asarray(traces.graph.action_mask)[:n]
    own = np.where(action, 0.0, found.event)
    of_results = np.bincount(calls.calls, found.event[calls.results], n)  # NaN where that of one is not known
    seconds = (own + of_results)[rows]
    ended = np.bincount(calls.calls, minlength=n)[rows] > 0
    kept = np.isfinite(seconds) & (ended | (seconds > 0))
    names, tool = ranked([name or "" for name in traces.events["tool"].take(rows).to_pylist()])
    whose = np.where(np.array(names)[tool] == "", -1, tool) if names else tool
    return CallSeconds(rows[kept], seconds[kept], names, whose[kept])


def calls_of_models(traces: Traces, found: Durations) -> CallSeconds:
    """The team's actions, by agent, that took any time: the log has no begin of the first one where it took none.

    Args:
      traces: what was read.
      found: of these.
    """
    n = traces.sizes.events
    action = np.asarray(traces.graph.action_mask)[:n] & ~outside_team(traces)
    rows = np.flatnonzero(action & (found.event > 0))
    names, name = ranked(traces.agents["name"].to_pylist())
    return CallSeconds(rows, found.event[rows], names, name[np.asarray(traces.graph.agent_ids)[rows]])
