"""Rounds in which agents act at once, where the order of their rows moves the numbers of a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from credit.methods.method_row import Method
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["rounds_of_agents", "rounds_of_log", "said_of_rounds"]


def rounds_of_agents(trace: np.ndarray, agent: np.ndarray, at: np.ndarray) -> int:
    """How many rounds of a trace have actions of several agents.

    Args:
      trace, agent: int [N], of each action.
      at: int [N], alike at the actions of a round of a trace; negative where none is stated.

    Examples:
      >>> rounds_of_agents(np.array([0, 0, 0]), np.array([0, 1, 0]), np.array([5, 5, 6]))
      1
    """
    visits = np.unique(np.stack([trace, at, agent])[:, at >= 0], axis=1)
    _, agents = np.unique(visits[:2], axis=1, return_counts=True)
    return int(np.count_nonzero(agents > 1))


def rounds_of_log(traces: Traces, method: Method, options: Mapping[str, Any]) -> int:
    """The rounds by the contexts of a log; 0 for a method whose numbers their order does not move."""
    if "context" not in traces.evidence or not method.reads_rounds(options, traces.evidence):
        return 0
    graph, at = traces.graph, np.asarray(traces.evidence["context"].array)
    acts = np.flatnonzero(np.asarray(graph.action_mask) & np.asarray(graph.event_mask))
    return rounds_of_agents(np.asarray(graph.trace_ids)[acts], np.asarray(graph.agent_ids)[acts], at[acts])


def said_of_rounds(rounds: int) -> str:
    """What follows the method's name where there are some."""
    return (
        f"reads which action comes next, and in {counted(rounds, 'round')} several agents act at once: the order of "
        "their rows, by their names or as logged, may change the numbers; expected one action a round, or options that "
        "do not read it, as gae with lambda_=1 and discount=1, or along='agent'"
    )
