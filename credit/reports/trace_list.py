"""The traces of a batch as rows: group, reward, sizes, tokens and errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from credit.reports.durations import begins, date_text
from credit.reports.event_errors import error_mask, status_mask
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.missing_lines import lacking_traces
from credit.reports.of_batch import kept
from credit.reports.outside_team import outside_team
from credit.reports.trace_numbers import TeamFacts
from graphs.errors import CreditError, expect
from graphs.event_types import EventType
from graphs.formats import STATES_ERRORS
from graphs.structure.host_ids import among
from graphs.text import near_names
from graphs.traces.batch import Traces
from graphs.traces.record import is_cut

__all__ = ["actions_with_tokens", "counted_tokens", "has_statuses", "trace_rows"]

_OF_TOOLS = (EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.SPAWN, EventType.RETURN)


@kept
def has_statuses(traces: Traces) -> np.ndarray:
    """Whether the number of errors of a trace is known: bool [traces].

    It is where the format states errors (`STATES_ERRORS`), or where an event of any trace of the format has a status
    other than that of a cut answer: mini-swe-agent states them, SWE-agent does not, and native logs may. Where the
    format has statuses of what went well, too, a system without any states none, if it has such events: of tools, or
    others.
    """
    n = traces.sizes.events
    formats, systems = (traces.traces[name].combine_chunks().fill_null("") for name in ("format", "system"))
    trace, tools = np.asarray(traces.graph.trace_ids)[:n], among(np.asarray(traces.graph.event_type)[:n], _OF_TOOLS)
    format_, system = (of.dictionary_encode().indices.to_numpy(zero_copy_only=False) for of in (formats, systems))
    log, states = format_ * np.int64(len(system) + 1) + system, np.isin(formats.to_pylist(), [*STATES_ERRORS])
    with_status = status_mask(traces, lambda word: not is_cut(word))
    fine, of = with_status & ~error_mask(traces), format_[trace] * 2 + tools
    silent = np.isin(log, log[trace[np.isin(of, of[fine])]]) & ~np.isin(log, log[trace[with_status]])
    found: np.ndarray = states | (np.isin(format_, format_[trace[with_status]]) & ~silent)
    return found


def counted_tokens(traces: Traces) -> np.ndarray:
    """Whether the log has the number of tokens that the team generated at each real event: bool [real events].

    Args:
      traces: a batch.
    """
    tokens = traces.evidence.get("tokens")
    n = traces.sizes.events
    known: np.ndarray = np.zeros(n, bool) if tokens is None else tokens.mask[:n] & ~outside_team(traces)
    return known


def actions_with_tokens(traces: Traces) -> np.ndarray:
    """Whether each real event is an action whose number of tokens is known: bool [real events].

    The log has it, or it is one of `failed_model_calls` and the log has those of others: it generated none. Sums over
    actions of which it is False are lower bounds.

    Args:
      traces: a batch.
    """
    counted = counted_tokens(traces)
    known = counted | failed_model_calls(traces) if counted.any() else counted
    actions: np.ndarray = known & np.asarray(traces.graph.action_mask)[: traces.sizes.events]
    return actions


def trace_rows(traces: Traces, group: str | None = None) -> list[dict[str, Any]]:
    """One row a trace: trace, group, system, reward, sizes, tokens, begin, wall_clock, errors, format, file, line.

    `tokens` is the sum over the events whose count the log has; `actions_with_tokens` counts those of that function.
    `errors` counts a call and its result once, and is None where the format states no status. `agents` are instances
    with an action. Where a trace `lacks_lines`, these are lower bounds (`lacking_events`).

    Args:
      traces: what was read.
      group: only the traces of this group.

    Returns:
      Rows in the order of the batch; `system` is the harness, None where the log states none; `begin` is the date of
      the first event in UTC, None where it has none; `wall_clock` is in seconds, without waits for a person, real or
      simulated, None where the trace has no seconds; `reward` is None where the log has no outcome, `tokens` where it
      states none, `errors` where no trace of the format states a status.

    Raises:
      CreditError: no such group.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> [row["reward"] for row in trace_rows(rows.traces)]
      [1.0, 0.0, 0.5]
    """
    expect("traces", traces, Traces, "what credit.read returns")
    graph, n = traces.graph, traces.sizes
    of_event = np.asarray(graph.trace_ids)[: n.events]
    action = np.asarray(graph.action_mask)[: n.events]
    facts = TeamFacts.of(traces)
    counts = {
        "events": np.bincount(of_event, minlength=n.traces),
        "actions": np.bincount(of_event[action], minlength=n.traces),
        "agents": facts.counts.members,
        "errors": np.bincount(of_event[facts.calls.counted], minlength=n.traces),
    }
    tokens = traces.evidence.get("tokens")
    stated = counted_tokens(traces)
    counts["actions_with_tokens"] = np.bincount(of_event[actions_with_tokens(traces)], minlength=n.traces)
    amounts = np.zeros(0) if tokens is None else tokens.array[: n.events][stated]
    spent = np.bincount(of_event[stated], amounts, minlength=n.traces)
    states = has_statuses(traces)
    has_tokens = np.bincount(of_event[stated], minlength=n.traces) > 0
    reward, wall, lacking = np.asarray(traces.reward)[: n.traces], facts.durations.wall, lacking_traces(traces)
    begin = begins(traces)
    rows = [
        {
            "trace": row["trace"],
            "group": row["group"],
            "system": row["system"],
            "reward": float(reward[i]) if np.isfinite(reward[i]) else None,
            **{name: int(count[i]) for name, count in counts.items()},
            "errors": int(counts["errors"][i]) if states[i] else None,
            "tokens": int(spent[i]) if has_tokens[i] else None,
            "begin": date_text(begin[i]) if np.isfinite(begin[i]) else None,
            "wall_clock": float(wall[i]) if np.isfinite(wall[i]) else None,
            "lacks_lines": bool(lacking[i]),
            "format": row["format"],
            "file": row["file"],
            "line": row["line"],
        }
        for i, row in enumerate(traces.traces.to_pylist())
    ]
    if group is None:
        return rows
    groups = {row["group"] for row in rows}
    if group not in groups:
        raise CreditError(f"No group {group!r}. {near_names(group, groups)}")
    return [row for row in rows if row["group"] == group]
