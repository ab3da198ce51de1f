"""Rewards of joint turns: what agents earned that acted at once is the turn's, whichever of its rows states it."""

from __future__ import annotations

import dataclasses

import numpy as np

from graphs.errors import expect
from graphs.event_graph import Array, EventGraph

__all__ = ["at_turn_ends", "turn_ends", "with_joint_rewards"]


def with_joint_rewards(graph: EventGraph, context: Array | None, place: Array | None = None) -> EventGraph:
    """The graph with `joint_mask`; on the host.

    A trace's actions in one context, or of several agents at one place, are a joint turn: one place in the order,
    whichever of its rows stands first. A reward that stands before its last action would be no later reward of the
    agents behind it, and what they did would have no part in it. A context to which an agent came back after a decision
    in another one is none.

    Args:
      graph: the batch, padded or not.
      context: int [E], ids of any range, -1 where the log has none; None where no event has one.
      place: int [E], a number for each place in a trace, -1 where none is stated; None where none is.

    Returns:
      The graph with `joint_mask` bool [E]; None where there are no joint turns.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("aabb"), agent=["x", "y"] * 2, reward=[0.0] * 4, event_reward=[1.0, 0, 0, 0],
      ...     evidence={"context": ["q"] * 4})
      >>> rows.gather(credit.discounted_return(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [1.0, 1.0, 0.0, 0.0]
    """
    expect("graph", graph, EventGraph, "an EventGraph, such as traces.graph")
    joint_mask = np.zeros(graph.num_events, bool)
    if context is not None:
        joint_mask |= _before_the_last(graph, np.asarray(context), 1)
    if place is not None:
        joint_mask |= _before_the_last(graph, np.asarray(place), 2)
    return dataclasses.replace(graph, joint_mask=joint_mask if joint_mask.any() else None)


def _before_the_last(graph: EventGraph, decision: np.ndarray, least: int) -> np.ndarray:
    """Whether an event stands in a joint turn before its last action: bool [E].

    Args:
      decision: int [E], ids of decisions, -1 for none.
      least: how many agents make one; several rows of one agent at one place are not at once.
    """
    n = graph.num_events
    acts = np.flatnonzero(np.asarray(graph.event_mask) & np.asarray(graph.action_mask) & (decision >= 0))
    trace, agent = np.asarray(graph.trace_ids)[acts].astype(np.int64), np.asarray(graph.agent_ids)[acts]
    codes = np.unique(decision[acts], return_inverse=True)[1]
    turn = np.unique(trace * (n + 1) + codes, return_inverse=True)[1]
    number = int(turn.max(initial=-1)) + 1
    first, last = np.full(number, n), np.full(number, -1)
    np.minimum.at(first, turn, acts)
    np.maximum.at(last, turn, acts)
    order = np.argsort(agent, kind="stable")  # the actions of each agent in their order
    pair = agent[order].astype(np.int64) * (number + 1) + turn[order]
    begins = np.concatenate([np.ones(min(1, len(pair)), bool), pair[1:] != pair[:-1]])
    visits, times = np.unique(pair[begins], return_counts=True)
    joint = np.isin(np.arange(number), visits[times > 1] % (number + 1), invert=True)
    joint &= np.bincount(visits % (number + 1), minlength=number)[:number] >= least
    bounds = np.zeros(n + 1, np.int64)
    np.add.at(bounds, first[joint], 1)
    np.add.at(bounds, last[joint], -1)
    within: np.ndarray = np.cumsum(bounds)[:n] > 0
    return within


def turn_ends(graph: EventGraph) -> np.ndarray:
    """`graphs.turn_ends.ends_of_turns` on the host: int [E]."""
    place, trace = np.arange(graph.num_events), np.asarray(graph.trace_ids)
    if graph.joint_mask is None:
        return place
    stops = np.asarray(graph.event_mask) & ~np.asarray(graph.joint_mask)
    ends = np.minimum.accumulate(np.where(stops, place, len(place))[::-1])[::-1]
    within = ends < len(place)
    within &= trace[np.where(within, ends, 0)] == trace  # a prefix may end within the turn
    at: np.ndarray = np.where(within, ends, place)
    return at


def at_turn_ends(graph: EventGraph, step: np.ndarray) -> np.ndarray:
    """Rewards [E] where they are earned, those of a joint turn at its last action; on the host, in their own precision.

    `estimators.sequence.chains.rewards_of_turns` is the same for methods.

    Examples:
      >>> import credit
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 2, trace=["a"] * 2, agent=["x", "y"], reward=[0.0] * 2, event_reward=[1.0, 0.5],
      ...     evidence={"context": ["q"] * 2})
      >>> at_turn_ends(graph, rows.event_reward)[:2].tolist()
      [0.0, 1.5]
    """
    if graph.joint_mask is None:
        return step
    earned: np.ndarray = np.bincount(turn_ends(graph), np.nan_to_num(step), len(step)).astype(step.dtype)
    return earned
