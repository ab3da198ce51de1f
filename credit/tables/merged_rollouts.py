"""Traces that seem to be several rollouts under one id: turns of their agents begin again, unlike in other traces."""

from __future__ import annotations

from typing import Any

import numpy as np

from credit.tables.batch_rows import Rows
from credit.tables.row_order import numbers_of_turns
from graphs.structure.host_ids import consecutive
from graphs.text import counted

__all__ = ["merged_rollouts", "said_of_merged"]

WHOLE = 2
"""How many traces of several turns, in which none falls, stand beside one that begins again."""


def merged_rollouts(trace: np.ndarray, agent: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The rows at which a trace begins again, as where two rollouts have one id: int [n], none where turns often fall.

    The first agent is back at its first turn there, and turns of agents fall only over such rows.

    Args:
      trace: int [N], of each row as they were passed.
      agent: int [N], no two traces have one.
      turn: int [N], its number.

    Examples:
      >>> trace, turn = np.repeat(np.arange(4), [3, 3, 3, 6]), np.tile([0, 1, 2], 5)
      >>> merged_rollouts(trace, trace, turn).tolist()
      [12]
      >>> merged_rollouts(trace // 3, trace // 3, turn).tolist()  # every trace begins again
      []
    """
    _, first, of = np.unique(trace, return_index=True, return_inverse=True)
    start = first[of]
    earlier, later = consecutive(agent)
    falls = turn[later] < turn[earlier]
    begins = (agent[later] == agent[start[later]]) & (turn[later] == turn[start[later]])
    again = np.zeros(len(trace), bool)
    again[later[begins & (turn[later] <= turn[earlier])]] = True
    order = np.argsort(of, kind="stable")
    part = np.empty(len(trace), np.int64)  # how often its trace began again up to each row
    part[order] = np.cumsum(again[order])
    wrong = falls & (part[later] == part[earlier])
    again &= np.isin(part, 1 + part[earlier[falls & ~wrong]])  # else an agent's next call in its first turn
    fallen, several = (len(np.unique(of[later[rows]])) for rows in (falls, turn[later] != turn[earlier]))
    if several < (1 + WHOLE) * fallen:
        return np.flatnonzero(again)[:0]
    return np.flatnonzero(again & ~np.isin(of, of[later[wrong]]))


def said_of_merged(rows: Rows, turn: Any, passed: np.ndarray | None = None) -> str:
    """`merged_rollouts` of a batch in words; "" of none.

    Args:
      rows: of the batch.
      turn: the column, or None.
      passed: where each row of the batch stood among those that the caller passed. Default: there.
    """
    if (at := numbers_of_turns(rows, turn)) is None:
        return ""
    graph, entered = rows.names.graph, len(rows.event)
    stood = rows.names.rows if passed is None else passed[rows.names.rows]
    order = np.argsort(stood)
    trace, agent = (np.asarray(ids)[:entered][order] for ids in (graph.trace_ids, graph.agent_ids))
    again = merged_rollouts(trace, agent, at[order])
    if not len(again):
        return ""
    traces = counted(len(np.unique(trace[again])), "trace")
    return (
        f"{traces} in which turns begin again, unlike in others (row {stood[order][again[0]]}), as those of several "
        "rollouts under one id: give each rollout its own trace, or each agent an instance="
    )
