"""Outcomes of single agents, and whether a log's outcomes are of these: a property of the log, not of one trace."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

import numpy as np

from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["adds_outcomes", "are_odd", "has_agent_outcomes", "odd_traces", "of_agents", "remedy_channel", "said_of_odd"]


def of_agents(traces: Traces) -> np.ndarray:
    """The real traces in which an agent has an outcome of its own (`agent_reward`): bool."""
    found = np.zeros(traces.sizes.traces, bool)
    if "agent_reward" in traces.evidence:
        found[np.asarray(traces.graph.trace_ids)[traces.evidence["agent_reward"].rows]] = True
    return found


def adds_outcomes(traces: Traces) -> bool:
    """Whether any trace has both an outcome and those of its agents."""
    return bool(np.isfinite(np.asarray(traces.reward)[: traces.sizes.traces][of_agents(traces)]).any())


def are_odd(alone: int, both: int, scored: int) -> bool:
    """Whether traces with outcomes of agents alone are exceptions: more traces have an outcome, and none has both.

    Args:
      alone: how many traces have outcomes of agents and none of the trace.
      both: how many have both.
      scored: how many have an outcome of the trace.

    Examples:
      >>> are_odd(1, 0, 58), are_odd(3, 0, 3), are_odd(1, 1, 58)
      (True, False, False)
    """
    return not both and 0 < alone < scored


def odd_traces(traces: Traces) -> np.ndarray:
    """The real traces with outcomes of agents alone in a log of outcomes of traces, where they have none: bool."""
    own, scored = of_agents(traces), np.isfinite(np.asarray(traces.reward)[: traces.sizes.traces])
    alone = own & ~scored
    odd = are_odd(int(alone.sum()), int(np.sum(own & scored)), int(scored.sum()))
    return alone if odd else np.zeros_like(alone)


def has_agent_outcomes(traces: Traces) -> bool:
    """Whether the outcomes of the log are of agents: those of some traces are, and these are not odd."""
    return bool(of_agents(traces).any()) and not odd_traces(traces).any()


def remedy_channel(traces: Traces, odd: np.ndarray) -> str:
    """The reward that most traces have, among those of all odd ones; "" where there is none."""
    rows = {name: traces.evidence[f"rewards.{name}"].rows for name in traces.reward_channels}
    shared = [name for name, has in rows.items() if np.isin(np.flatnonzero(odd), has).all()]
    return max(shared, key=lambda name: (len(rows[name]), name.endswith(".reward")), default="")


def said_of_odd(odd: Mapping[str, str], traces: int) -> str:
    """How many traces are odd, the first, and what to do; "" where none is.

    Args:
      odd: of each odd trace the reward that could be the outcome of all, as of `remedy_channel`.
      traces: how many the log has.

    Examples:
      >>> said_of_odd({"e7": "planner.reward"}, 59)
      '1 of 59 traces has outcomes of agents alone, and most have one of the trace: left out, with no advantage and in \
no baseline: e7; --reward-channel planner.reward makes that reward the outcome of all, --evidence agent_reward of \
`credit assign` compares agents of one name'
    """
    if not odd:
        return ""
    first, channel = next(iter(odd.items()))
    have = "has" if len(odd) == 1 else "have"
    more = f", … and {len(odd) - 1} more" if len(odd) > 1 else ""
    remedy = f"--reward-channel {quote(channel)} makes that reward the outcome of all" if channel else "state one"
    return (
        f"{len(odd)} of {counted(traces, 'trace')} {have} outcomes of agents alone, and most have one of the trace: "
        f"left out, with no advantage and in no baseline: {first}{more}; {remedy}, --evidence agent_reward of `credit "
        "assign` compares agents of one name"
    )
