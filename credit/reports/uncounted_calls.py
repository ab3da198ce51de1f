"""Actions without a count of tokens, and why: tool calls and spawns that model calls may have made, failed calls."""

from __future__ import annotations

import numpy as np

from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.outside_team import outside_team
from credit.reports.trace_list import counted_tokens
from graphs.event_types import EventType
from graphs.structure.host_ids import among
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["OF_TOOL_CALLS", "failed_without_count", "said_of_tool_calls", "uncounted_tool_calls"]

_REMEDY = '"action", a key or column, as false if a model call made'
OF_TOOL_CALLS = f"a tool call or a spawn is an action without a count of tokens ({_REMEDY} it)"
"""Why such a trace has no sum of tokens."""
_BY_TYPE = frozenset({"native", "table"})
"""Formats in which an event is an action by its type, where the log does not say."""


def uncounted_tool_calls(traces: Traces, *kinds: EventType) -> np.ndarray:
    """The calls of tools, and spawns, that are actions without a count of tokens, where other actions of the trace have
    one.

    bool [events]; none in formats whose readers know model calls.

    Args:
      traces: what was read.
      *kinds: of events; both, where none is named.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", format="native", instances={"a": Agent()})
      >>> _ = record.event("x", 3, "a", action=True, tokens=9), record.event("y", 4, "a", action=True)
      >>> uncounted_tool_calls(assemble([record])).tolist()
      [False, True]
    """
    graph, n, m = traces.graph, traces.sizes.events, traces.sizes.traces
    trace, action, known = np.asarray(graph.trace_ids)[:n], np.asarray(graph.action_mask)[:n], counted_tokens(traces)
    by_type = np.array([name in _BY_TYPE for name in traces.traces["format"].to_pylist()], bool)
    counts = by_type & (np.bincount(trace[action & known], minlength=m) > 0)
    called = among(np.asarray(graph.event_type)[:n], kinds or (EventType.TOOL_CALL, EventType.SPAWN))
    found: np.ndarray = called & action & ~known & counts[trace]
    return found


def said_of_tool_calls(tools: int, spawns: int) -> str:
    """What to do about so many of them; "" of none."""
    said = [counted(count, noun) for count, noun in ((tools, "tool call"), (spawns, "spawn")) if count]
    verb, them = ("is an action", "it") if tools + spawns == 1 else ("are actions", "them")
    return f"{' and '.join(said)} {verb} without a count of tokens: state {_REMEDY} {them}" if said else ""


def failed_without_count(traces: Traces) -> str:
    """How many of the team's model calls without a count of tokens failed, and what they count as; "" of none.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> failed_without_count(rows.traces)
      ''
    """
    tokens = traces.evidence.get("tokens")
    if tokens is None or not tokens.mask.any():
        return ""
    n = traces.sizes.events
    bare = np.asarray(traces.graph.action_mask)[:n] & ~tokens.mask[:n] & ~outside_team(traces)
    failed, every = int(np.sum(bare & failed_model_calls(traces))), int(bare.sum())
    if not failed:
        return ""
    verb = "counts" if failed == 1 else "count"
    return (
        f"{failed} of {counted(every, 'call')} without a count of tokens failed and {verb} as 0 tokens; "
        "a provider may have billed those that timed out"
    )
