"""Whether rows of traces tell in which order they were: what trainers and sorting leave of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from graphs.traces.batch import Traces
from graphs.traces.spans_at_once import moments

__all__ = ["actions_beside", "are_scattered", "order_to_state", "stated_order", "tied_traces", "untold_agents"]

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


def stated_order(traces: Traces) -> np.ndarray:
    """Whether the list of each trace is its order, 1, or none, 0, as a native log may state: NaN where it does not."""
    told: np.ndarray = traces.traces["told_order"].cast(pa.float64()).to_numpy().copy()
    return told


def order_to_state(traces: Traces) -> np.ndarray:
    """What a native log is to say of the order of each trace: float [T], NaN where it may leave that to edges.

    Other formats list events in the order in which they were: in a native log, edges tell it, or the trace says so. It
    does not where a note or the times of a trace leave the order open.
    """
    told, formats = stated_order(traces), traces.traces["format"].to_numpy(zero_copy_only=False)
    other, of_tables = ~np.isin(formats, ("native", "")), formats == "table"
    trace = np.asarray(traces.graph.trace_ids)
    told[trace[actions_beside(traces, other, np.zeros_like(other))[1]]] = 1
    told[tied_traces(traces, other, np.zeros_like(other))] = np.nan
    notes = {note.kind for note in traces.problems}
    told[of_tables & ("turns-by-agent" in notes)] = np.nan
    told[tied_traces(traces, np.zeros_like(other), of_tables)] = 0
    told[of_tables & ("scattered-rows" in notes)] = 0
    return told


def tied_traces(traces: Traces, of_agents: np.ndarray, of_names: np.ndarray) -> np.ndarray:
    """The traces that have actions at one time beside each other: rows of tables, and spans but native ones.

    Equal times alone tell it in tables: clocks of other logs are coarse, and their lists in order.

    Args: as of `actions_beside`.
    """
    n, before, after = traces.sizes.events, *actions_beside(traces, of_agents, of_names)
    if not len(after):
        return np.zeros(0, np.int64)
    of_tables = traces.traces["format"].to_numpy(zero_copy_only=False) == "table"
    trace = np.asarray(traces.graph.trace_ids)[:n]
    took = traces.evidence["seconds"].array[:n] if "seconds" in traces.evidence else np.full(n, np.nan)
    times = traces.events["time"].to_numpy().astype(np.float64)
    at = moments(traces.graph, np.where(of_tables[trace] | (took > 0), times, np.nan), took, of_tables)
    return np.unique(trace[after[(at[before] == at[after]) & (at[after] >= 0)]])


def actions_beside(traces: Traces, of_agents: np.ndarray, of_names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The actions beside which another stands, without a common context, and that one.

    Args:
      traces: what was read.
      of_agents: bool [T], whether neighbours of two agents count.
      of_names: bool [T], whether neighbours of one agent in one turn count.
    """
    graph, n = traces.graph, traces.sizes.events
    trace, agent = (np.asarray(ids)[:n].astype(np.int64) for ids in (graph.trace_ids, graph.agent_ids))
    acts = np.flatnonzero(np.asarray(graph.action_mask)[:n])
    before, after = acts[:-1], acts[1:]
    turn = np.asarray(graph.turn_ids)[:n]
    of, same = trace[after], agent[before] == agent[after]
    apart = np.where(same, of_names[of] & (turn[before] == turn[after]), of_agents[of]) & (trace[before] == of)
    if "context" in traces.evidence:
        context = traces.evidence["context"].array
        apart &= (context[before] != context[after]) | (context[after] < 0)
    return before[apart], after[apart]
