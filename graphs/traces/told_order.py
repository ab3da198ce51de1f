"""Whether rows of traces tell in which order they were: what trainers and sorting leave of it."""

from __future__ import annotations

import numpy as np

__all__ = ["are_scattered", "untold_agents"]

SORTED = 8
"""How many traces without turns tell that rows are sorted by agent: each by itself may be one handed on."""

NEARLY = 7 / 8
"""The part of the traces that can tell it from which on they do."""


def untold_agents(trace: np.ndarray, agent: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The rows before which an agent acted of whom nothing tells that it did: int [N].

    Rows that are sorted by trace, agent and turn stand so: each agent's side by side, and the turn falls or stays at
    the next agent. Where rows of an agent stand apart in any trace, nobody sorted them by agent. Without turns, rows
    that stand by agent may have been so: they count as sorted where `SORTED` traces tell it, and nearly no other.

    Args:
      trace: int [N], of each row, those of a trace beside each other.
      agent: int [N], its agent, no two traces have one.
      turn: float [N], the number of its turn, NaN where it has none.

    Examples:
      >>> trace, agent = np.zeros(4, int), np.array([0, 0, 1, 1])
      >>> untold_agents(trace, agent, np.array([0.0, 1.0, 0.0, 1.0])).tolist()
      [2]
      >>> untold_agents(trace, agent, np.array([0.0, 1.0, 2.0, 3.0])).tolist()  # numbered along the trace
      []
      >>> untold_agents(trace, np.array([0, 1, 0, 1]), np.array([0.0, 0.0, 1.0, 1.0])).tolist()
      []
    """
    beside, other = trace[1:] == trace[:-1], agent[1:] != agent[:-1]
    if len(trace) and np.isnan(turn).all():
        return np.flatnonzero(beside & other & _by_agent(trace, agent)[1:]) + 1
    stretches = len(trace) - np.count_nonzero(beside & ~other)
    if stretches > len(np.unique(agent)):
        return np.zeros(0, np.int64)
    return np.flatnonzero(beside & other & (turn[1:] <= turn[:-1])) + 1


def _by_agent(trace: np.ndarray, agent: np.ndarray) -> np.ndarray:
    """Whether each row is of a trace whose rows stand by agent, as nearly all that can tell it do; bool [N].

    A trace can in which two agents or more have two rows or more.
    """
    _, of_trace = np.unique(trace, return_inverse=True)
    _, first, sizes = np.unique(agent, return_index=True, return_counts=True)
    begins = np.diff(agent, prepend=agent[0] - 1) != 0
    stands = np.bincount(of_trace, begins) == np.bincount(of_trace[first])
    tells = np.bincount(of_trace[first], sizes > 1, len(stands)) > 1
    enough = np.count_nonzero(stands & tells) >= max(SORTED, NEARLY * np.count_nonzero(tells))
    found: np.ndarray = stands[of_trace] & enough
    return found


def are_scattered(trace: np.ndarray) -> bool:
    """Whether rows are shuffled: those of a trace stand neither together nor round by round with those of others.

    Args:
      trace: int [N], of each row in the order of the file.

    Examples:
      >>> are_scattered(np.array([0, 0, 1, 1])), are_scattered(np.array([0, 1, 0, 1, 0]))
      (False, False)
      >>> are_scattered(np.array([0, 1, 0, 1, 0, 2, 1, 2]))
      True
    """
    begins = np.flatnonzero(np.diff(trace, prepend=-1))
    of = trace[begins]
    order = np.argsort(of, kind="stable")
    _, first, sizes = np.unique(of[order], return_index=True, return_counts=True)
    visit = np.empty(len(of), np.int64)  # how many stretches of its trace stand before each
    visit[order] = np.arange(len(of)) - np.repeat(first, sizes)
    return bool(((visit[1:] < visit[:-1]) & (visit[1:] > 0)).any())
