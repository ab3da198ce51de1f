"""Prefixes G_{<=t} of a trace, single traces of a batch, and packing of batches with gaps.

The set of agents grows along a trace: at event t only the agents spawned by then exist. A critic, a replay or a
counterfactual at t may use this prefix and nothing later.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import AGENT_FIELDS, EDGE_FIELDS, EVENT_FIELDS, EdgeType, EventGraph, EventType
from graphs.structure.forest import real_edges, spawn_forest

__all__ = ["agent_births", "pack", "prefix", "select_trace"]


def agent_births(graph: EventGraph) -> np.ndarray:
    """Position of the event from which each agent instance exists: int32 [A], 0 in padding.

    A root exists from the first event of its trace. Any other instance exists from the earliest of: a spawn that led to
    one of its events (an event of type `spawn`, or an edge of type `spawn`, from another instance), its own first
    event, and the births of the instances it spawned. An instance that the log declares without spawn or event has no
    known date, and exists from the last event of its trace.
    """
    mask, events = np.asarray(graph.agent_mask), np.flatnonzero(np.asarray(graph.event_mask))
    agent_ids, agent_trace = np.asarray(graph.agent_ids), np.asarray(graph.agent_trace)
    first = np.full(graph.num_traces, graph.num_events, np.int64)
    last = np.zeros(graph.num_traces, np.int64)
    np.minimum.at(first, np.asarray(graph.trace_ids)[events], events)
    np.maximum.at(last, np.asarray(graph.trace_ids)[events], events)

    birth = last[agent_trace]
    np.minimum.at(birth, agent_ids[events], events)
    senders, receivers = real_edges(graph)
    spawns = np.asarray(graph.edge_type)[np.asarray(graph.edge_mask)] == EdgeType.SPAWN
    spawns |= np.asarray(graph.event_type)[senders] == EventType.SPAWN
    spawns &= agent_ids[senders] != agent_ids[receivers]
    np.minimum.at(birth, agent_ids[receivers[spawns]], senders[spawns])

    forest = spawn_forest(graph)
    for level in forest.levels()[:0:-1]:
        np.minimum.at(birth, np.asarray(graph.agent_parent)[level], birth[level])
    birth = np.where(forest.is_root, np.minimum(birth, first[agent_trace]), birth)
    return np.where(mask, birth, 0).astype(np.int32)


def prefix(graph: EventGraph, trace: int, t: int) -> EventGraph:
    """One trace up to and including its event t (0 is its first): an `EventGraph` of the same shapes.

    Rows keep their positions, so that evidence arrays of the batch still line up. All other rows become padding, with
    id 0 and mask False. Where `trace` is not the first, real rows therefore do not come first. `pad`, `unpad` and
    `validate` expect them first; `pack` moves them there.

    Args:
      graph: a batch.
      trace: index of a trace.
      t: in [0, number of events of the trace).

    Raises:
      CreditError: the trace does not exist, or has no event t.
    """
    _check_trace(graph, trace)
    positions = np.flatnonzero(np.asarray(graph.event_mask) & (np.asarray(graph.trace_ids) == trace))
    if not 0 <= t < len(positions):
        raise CreditError(f"t is {t}; expected 0 to {len(positions) - 1}, an event of trace {trace}")
    events = np.zeros(graph.num_events, bool)
    events[positions[: t + 1]] = True
    agents = np.asarray(graph.agent_mask) & (np.asarray(graph.agent_trace) == trace)
    agents &= agent_births(graph) <= positions[t]
    return _keep(graph, events, agents, trace)


def select_trace(graph: EventGraph, trace: int) -> EventGraph:
    """One trace with all its declared agents, in the shapes of the batch; rows keep their positions.

    Raises:
      CreditError: the trace does not exist.
    """
    _check_trace(graph, trace)
    events = np.asarray(graph.event_mask) & (np.asarray(graph.trace_ids) == trace)
    agents = np.asarray(graph.agent_mask) & (np.asarray(graph.agent_trace) == trace)
    return _keep(graph, events, agents, trace)


def pack(graph: EventGraph) -> EventGraph:
    """The same content with real rows first on each axis and ids renumbered accordingly; shapes are kept.

    Names, roles and groups keep their ids, which are labels and not positions. Turns are renumbered from 0, in order of
    their first events.
    """
    masks = {name: np.asarray(getattr(graph, name)) for name in ("event_mask", "edge_mask", "agent_mask", "trace_mask")}
    place = {name: np.where(mask, np.cumsum(mask) - 1, 0).astype(np.int32) for name, mask in masks.items()}
    points_at = {
        "senders": "event_mask",
        "receivers": "event_mask",
        "trace_ids": "trace_mask",
        "agent_trace": "trace_mask",
        "agent_ids": "agent_mask",
        "agent_parent": "agent_mask",
    }
    of_events = [name for name in ("trainable_mask", "joint_mask") if getattr(graph, name) is not None]
    axes = (
        ("event_mask", (*EVENT_FIELDS, *of_events)),
        ("edge_mask", EDGE_FIELDS),
        ("agent_mask", AGENT_FIELDS),
        ("trace_mask", ("group_ids", "trace_mask", *(() if graph.cluster_ids is None else ("cluster_ids",)))),
    )
    arrays = {}
    for mask_name, fields in axes:
        mask = masks[mask_name]
        for field in fields:
            values = np.asarray(getattr(graph, field))
            kept = values[mask]
            if field in points_at:
                kept = place[points_at[field]][kept]
            elif field in ("turn_ids", "cluster_ids"):
                kept = _dense(kept)
            moved = np.full(len(values), np.nan if field == "time" else 0, values.dtype)
            moved[: len(kept)] = kept
            arrays[field] = moved
    return EventGraph(**arrays)


def _dense(ids: np.ndarray) -> np.ndarray:
    """Ids renumbered from 0 in order of first appearance."""
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(first), ids.dtype)
    rank[np.argsort(first)] = np.arange(len(first), dtype=ids.dtype)
    return rank[inverse]


def _check_trace(graph: EventGraph, trace: int) -> None:
    trace_mask = np.asarray(graph.trace_mask)
    if not 0 <= trace < len(trace_mask) or not trace_mask[trace]:
        raise CreditError(f"trace is {trace}; expected the index of a real trace, 0 to {int(trace_mask.sum()) - 1}")


def _keep(graph: EventGraph, events: np.ndarray, agents: np.ndarray, trace: int) -> EventGraph:
    """The rows of the masks and the edges between kept events; all other rows become padding in place."""
    edges = np.asarray(graph.edge_mask) & events[np.asarray(graph.senders)] & events[np.asarray(graph.receivers)]
    traces = np.arange(graph.num_traces) == trace
    rows = {
        **dict.fromkeys(EVENT_FIELDS, events),
        **dict.fromkeys(EDGE_FIELDS, edges),
        **dict.fromkeys(AGENT_FIELDS, agents),
        **dict.fromkeys(("group_ids", "trace_mask", "cluster_ids"), traces),
        **dict.fromkeys(("trainable_mask", "joint_mask"), events),
    }
    arrays = {}
    for name, kept in rows.items():
        if getattr(graph, name) is None:  # no replays, frozen agents, or rewards of joint turns
            continue
        values = np.asarray(getattr(graph, name))
        fill = np.asarray(np.nan if name == "time" else 0).astype(values.dtype)
        arrays[name] = np.where(kept, values, fill)
    return dataclasses.replace(graph, **arrays)
