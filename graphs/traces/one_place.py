"""Rows at the place of an earlier one of their agent: copies, or calls of several agents of one name.

No agent acts twice at one moment, from one context, at one place of the order. Two rows of it there are one row twice,
or those of two agents.
"""

from __future__ import annotations

import numpy as np

from graphs.event_graph import EventGraph, EventType
from graphs.traces.repeated_traces import contents

__all__ = ["again_in_place", "calls_in_place", "copies_in_place", "fine_moments", "own_places"]


_FEW = 4  # times as many equal as unlike rows at one place are copies


def fine_moments(times: np.ndarray) -> np.ndarray:
    """A number for the time of each row, -1 where it has none, and for all where none is finer than a second: int [N].

    Examples:
      >>> fine_moments(np.array([2.5, 2.5, np.nan])).tolist(), fine_moments(np.array([2.0, 2.0])).tolist()
      ([0, 0, -1], [-1, -1])
    """
    known = np.isfinite(times)
    codes = np.where(known, np.unique(times, return_inverse=True)[1], -1)
    return codes if (times[known] % 1).any() else np.full(len(times), -1)


def own_places(trace: np.ndarray, *stated: np.ndarray) -> np.ndarray:
    """The place that each row states by all these columns, -1 where none does: int [N].

    A column tells nothing where it is alike in all rows of each trace, as the time of a whole run is.

    Args:
      trace: int [N], the trace of each row.
      *stated: int [N] each, such as ids of contexts or moments; -1 where a row has none.

    Examples:
      >>> trace, context = np.array([0, 0, 0, 1]), np.array([4, 4, -1, 5])
      >>> place = own_places(trace, context)
      >>> bool(place[0] == place[1] != place[3]), int(place[2]), own_places(trace, trace).tolist()
      (True, -1, [-1, -1, -1, -1])
    """
    traces = len(np.unique(trace))
    of_rows = [column for column in stated if len(np.unique(contents(trace, column))) > traces]
    if not of_rows:
        return np.full(len(trace), -1)
    codes = np.unique(contents(*of_rows), return_inverse=True)[1]
    return np.where(np.max(of_rows, axis=0) >= 0, codes, -1)


def again_in_place(agent: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Whether the row before of the same agent is at the same place: bool [N]. It may come back to one that it left.

    Args:
      agent: int [N], the agent of each row; one of another trace is another.
      place: int [N], -1 where none is stated.

    Examples:
      >>> again_in_place(np.array([0, 0, 1, 0, 0]), np.array([3, 3, 3, -1, 3])).tolist()
      [False, True, False, False, False]
    """
    again = np.zeros(len(agent), bool)
    order = np.argsort(agent, kind="stable")
    who, where = agent[order], place[order]
    again[order[1:]] = (who[1:] == who[:-1]) & (where[1:] == where[:-1]) & (where[1:] >= 0)
    return again


def calls_in_place(graph: EventGraph, place: np.ndarray) -> np.ndarray:
    """The actions of which the agent's action before is at the same place: int [n]. Tools and spawns are a call's own.

    Args:
      graph: the batch.
      place: int [N], of the first N events, -1 where none is stated.
    """
    acts = (np.asarray(graph.action_mask) & np.asarray(graph.event_mask))[: len(place)]
    calls = np.flatnonzero(acts & ~np.isin(np.asarray(graph.event_type)[: len(place)], _OF_CALLS))
    twice: np.ndarray = calls[again_in_place(np.asarray(graph.agent_ids)[calls], place[calls])]
    return twice


_OF_CALLS = (EventType.TOOL_CALL, EventType.SPAWN, EventType.DESPAWN)


def copies_in_place(
    trace: np.ndarray, agent: np.ndarray, place: np.ndarray, content: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that equal an earlier one of their trace in every column, their place too, and which: int [n] each.

    None where some rows differ from an earlier one of their agent at one place, a fourth of the equal ones or more:
    there several act under one name, and may do the same.

    Args:
      trace, agent: int [N], of each row; an agent of another trace is another.
      place: int [N], of `own_places`.
      content: int [N], alike where all columns of two rows are.

    Examples:
      >>> agent, content = np.zeros(4, int), np.array([5, 5, 6, 7])
      >>> copies_in_place(agent, agent, np.array([0, 0, 1, 2]), content)[0].tolist()
      [1]
      >>> copies_in_place(agent, agent, np.array([0, 0, 1, 1]), content)[0].tolist()
      []
    """
    _, first, which = np.unique(contents(trace, content), return_index=True, return_inverse=True)
    again = np.flatnonzero((first[which] < np.arange(len(trace))) & (place >= 0))
    unlike = np.sort(first)
    if _FEW * np.count_nonzero(again_in_place(agent[unlike], place[unlike])) >= len(again):
        again = again[:0]
    return again, first[which[again]]
