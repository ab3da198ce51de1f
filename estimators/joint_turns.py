"""Decisions of a trace: its actions in one context are one draw, a joint turn where there are several of them.

What is drawn in a context is drawn by a trace. So the siblings of a draw are draws of other traces, and the actions of
a joint turn are no siblings of each other: all of them share the trace's outcome. They may share one node, or have
nodes of their own, as agents have that act side by side from one prefix. Either way the least node stands for all.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from graphs.event_graph import EventGraph
from graphs.levels import pair_ids
from graphs.segment import segment_count, segment_first, segment_min
from graphs.stable_order import stable_order

__all__ = ["JointTurns", "joint_turns"]


class JointTurns(NamedTuple):
    """The decision of each action; arrays [E].

    Attributes:
      lead: int32, the first action of the decision; the event itself where it is in none.
      node: int32, the draw: the least node of the decision.
      unclear: bool, actions whose decision is no single draw, so that it has no siblings. One of its nodes is in
        another draw, too, as where agents share a draw in part of the traces; or an agent came back to the context
        after a decision in another one.
    """

    lead: jax.Array
    node: jax.Array
    unclear: jax.Array


def joint_turns(graph: EventGraph, row: jax.Array, context: jax.Array, node: jax.Array, first: jax.Array) -> JointTurns:
    """The decisions of the actions `row`, bool [E], by ids of contexts and nodes in [0, E), int32 [E].

    Args:
      graph: the batch.
      row, context, node: as above.
      first: int32 [E], the first of these actions in each context.

    Examples:
      >>> import credit
      >>> graph, _, rows = credit.from_columns(group=["q"] * 4, trace=list("aabb"), reward=[1.0] * 4)
      >>> none, place = jnp.zeros(graph.num_events, jnp.int32), jnp.arange(graph.num_events, dtype=jnp.int32)
      >>> rows.gather(joint_turns(graph, jnp.asarray(graph.event_mask), none, place, none).lead).tolist()
      [0, 0, 2, 2]
    """
    n, trace = row.shape[0], jnp.asarray(graph.trace_ids)
    place = jnp.arange(n, dtype=jnp.int32)
    # A context that has one place in all its traces has one action in each.
    at = place - segment_first(trace, graph.num_traces, graph.event_mask)[trace]
    single = jnp.all(~row | (at == at[first[context]]))
    found: JointTurns = jax.lax.cond(
        single,
        lambda: JointTurns(place, node, jnp.zeros(n, bool)),
        lambda: _drawn(graph, row, *_leads(trace, row, context, first), node),
    )
    return found


def _leads(trace: jax.Array, row: jax.Array, context: jax.Array, first: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first action of each one's decision, int32 [E], and whether some decision may be parted by another one.

    None is if each context has the same number of others before it wherever it occurs. Otherwise pairs of a context and
    a trace are numbered.
    """
    n = row.shape[0]
    place = jnp.arange(n, dtype=jnp.int32)
    latest = jax.lax.cummax(jnp.where(row, place, -1))
    before = jnp.concatenate([jnp.full(1, -1, jnp.int32), latest[:-1]])
    goes_on = row & (before >= 0) & (trace[before] == trace) & (context[before] == context)
    begins = row & ~goes_on
    begun = jnp.cumsum(begins.astype(jnp.int32), dtype=jnp.int32)
    number = begun - begun[segment_first(trace, n, row)][trace]
    parted = jnp.any(row & (number != number[first[context]]))

    def together() -> jax.Array:
        return jnp.where(row, jnp.maximum(jax.lax.cummax(jnp.where(begins, place, -1)), 0), place)

    def by_pairs() -> jax.Array:
        pair = pair_ids(context, trace, row, n)
        return jnp.where(row, segment_first(pair, n, row)[pair], place)

    lead: jax.Array = jax.lax.cond(parted, by_pairs, together)
    return lead, parted


def _drawn(graph: EventGraph, row: jax.Array, lead: jax.Array, parted: jax.Array, node: jax.Array) -> JointTurns:
    """Decisions by their leads, some of several actions: the draw of each, and whether it is one."""
    n = row.shape[0]
    least = jnp.where(row, segment_min(node, lead, n, row, empty=0)[lead], node)
    several = jnp.any(node != least) | (parted & jnp.any(lead != jnp.arange(n, dtype=jnp.int32)))
    unclear: jax.Array = jax.lax.cond(
        several, lambda: row & _unclear(graph, row, lead, node, least), lambda: jnp.zeros(n, bool)
    )
    return JointTurns(lead, least, unclear)


def _unclear(graph: EventGraph, row: jax.Array, lead: jax.Array, node: jax.Array, least: jax.Array) -> jax.Array:
    n, agent = row.shape[0], jnp.asarray(graph.agent_ids)
    first = segment_first(node, n, row)
    elsewhere = segment_count(node, n, row & (least != least[first][node])) > 0
    # To compile a sort takes longer than all else here.
    second = jnp.stack([node, agent])
    of_node, of_agent = jax.lax.map(lambda ids: pair_ids(lead, ids, row), second)
    # Each draw has the same nodes in all its traces.
    place = jnp.arange(n, dtype=jnp.int32)
    stated = segment_count(lead, n, row & (segment_first(of_node, n, row)[of_node] == place), jnp.int32)
    nodes = segment_count(least, n, row & (first[node] == place), jnp.int32)
    # An agent comes back to a context if it decided in another one between two of its actions there.
    order = stable_order(agent, ~row)  # the actions of each agent in their order
    goes_on = (agent[order][1:] == agent[order][:-1]) & (lead[order][1:] == lead[order][:-1])
    begins = jnp.zeros(n, bool).at[order].set(jnp.concatenate([jnp.ones(1, bool), ~goes_on]))
    returns = segment_count(of_agent, n, row & begins, jnp.int32) > 1
    return elsewhere[node] | (stated[lead] < nodes[least]) | returns[of_agent]
