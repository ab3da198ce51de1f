"""Where joint turns end, by which they are told apart in compiled functions; `graphs.joint_rewards` finds them."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from graphs.event_graph import EventGraph

__all__ = ["ends_of_turns", "nearest"]


def nearest(chain: jax.Array, flagged: jax.Array) -> jax.Array:
    """The first flagged place of the chain, from each place on: int32 [N]; N where there is none.

    Args:
      chain: int32 [N], ids that lie side by side.
      flagged: bool [N].

    Examples:
      >>> nearest(jnp.array([0, 0, 1]), jnp.array([False, True, False])).tolist()
      [1, 1, 3]
    """
    n = flagged.shape[0]
    place = jnp.where(flagged, jnp.arange(n, dtype=jnp.int32), n)
    found = jax.lax.cummin(place, reverse=True)
    same = chain.at[found].get(mode="fill", fill_value=-1) == chain
    return jnp.where(same, found, n)


def ends_of_turns(graph: EventGraph) -> jax.Array:
    """The last event of each event's joint turn, int32 [E], by which the turn is told; the event itself outside of any.

    Examples:
      >>> import credit
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a"] * 3, agent=["x", "y", "z"], reward=[1.0] * 3, evidence={"context": [*"qqr"]})
      >>> rows.gather(ends_of_turns(graph)).tolist()
      [1, 1, 2]
    """
    n = graph.num_events
    place = jnp.arange(n, dtype=jnp.int32)
    if graph.joint_mask is None:
        return place
    ends = nearest(jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask) & ~jnp.asarray(graph.joint_mask))
    return jnp.where(ends < n, ends, place)  # a prefix may end within the turn
