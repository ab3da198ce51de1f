"""Means that are taken relative to a member, so that equal members deviate from their mean by exactly 0."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from graphs.event_graph import Array
from graphs.segment import segment_count, segment_first, segment_mean

__all__ = ["mean_from_first", "relative_to_first", "stated_once"]

ALIKE = 1e-4
"""Of its size, by how much copies of a number may differ: solvers and half precision round."""


def relative_to_first(values: jax.Array, ids: Array, num_segments: int, where: Array) -> tuple[jax.Array, jax.Array]:
    """The first member of each segment, float [num_segments], and each value less that of its segment, float [M].

    A plain float mean of seven times 100.1 is not 100.1. A division of that rounding by a spread of its own size would
    give numbers near 1 to members that are equal.

    Args:
      values: float [M].
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members; the others are 0.

    Examples:
      >>> first, apart = relative_to_first(jnp.array([5.0, 7.0]), jnp.array([0, 0]), 1, jnp.array([True, True]))
      >>> first.tolist(), apart.tolist()
      ([5.0], [0.0, 2.0])
    """
    first = values[segment_first(ids, num_segments, where)]
    return first, jnp.where(where, values - first[ids], jnp.zeros_like(values))


def mean_from_first(values: jax.Array, ids: Array, num_segments: int, where: Array) -> jax.Array:
    """The mean of each segment: float [num_segments]; 0 where there are none. Of equal members it is their number.

    Args:
      values: float [M].
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members; other entries do not affect the result.

    Examples:
      >>> values = jnp.full(7, 100.1)
      >>> bool(mean_from_first(values, jnp.zeros(7, int), 1, jnp.ones(7, bool))[0] == values[0])
      True
    """
    first, apart = relative_to_first(values, ids, num_segments, where)
    mean = first + segment_mean(apart, ids, num_segments, where)
    return jnp.where(segment_count(ids, num_segments, where) > 0, mean, jnp.zeros_like(mean))


def stated_once(
    values: jax.Array, ids: Array, num_segments: int, where: Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What each segment states as one number of its own, whether it states any, and whether it states several.

    Args:
      values: float or int [M].
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members that state it.

    Returns:
      The first of the segment's numbers, bool and bool: [num_segments] each.

    Examples:
      >>> values, ids = jnp.array([1.0, 1.0, 1.0, 3.0]), jnp.array([0, 0, 1, 1])
      >>> number, known, several = stated_once(values, ids, 3, jnp.ones(4, bool))
      >>> known.tolist(), several.tolist()
      ([True, True, False], [False, True, False])
    """
    first, apart = relative_to_first(values, ids, num_segments, where)
    room = ALIKE * jnp.abs(first)[ids] if jnp.issubdtype(values.dtype, jnp.floating) else 0
    several = segment_count(ids, num_segments, where & (jnp.abs(apart) > room)) > 0
    return first, segment_count(ids, num_segments, where) > 0, several
