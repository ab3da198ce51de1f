"""Reductions over segments under a mask.

Every function takes `where`, True for members. It selects with `where` and never multiplies by it, so NaN or infinity
outside the mask cannot reach the result or a gradient. An empty segment reduces to 0. Ids lie in [0, num_segments) even
where `where` is False, and need not be sorted.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from graphs.event_graph import Array

__all__ = [
    "computed_once",
    "safe_divide",
    "safe_sqrt",
    "segment_count",
    "segment_first",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "segment_sum_squares",
]


SLOTS = 8
"""Partial counts of a segment. Additions to one number wait for each other, and members often follow one another."""

BLOCK = 256
"""Members in a row of which a GPU makes one number before it touches their segment: all that touch a number wait."""


def computed_once(table: jax.Array) -> jax.Array:
    """The same numbers, computed before they are looked up: what a scatter writes is no part of another loop.

    XLA would compute an entry of a short table anew at each of the many events that look it up.

    Examples:
      >>> import jax.numpy as jnp
      >>> computed_once(jnp.array([1.0, jnp.nan])).tolist()
      [1.0, nan]
    """
    places = jnp.arange(len(table))
    return jnp.zeros_like(table).at[places].set(table, unique_indices=True, indices_are_sorted=True)


def _add(values: Array, ids: Array, num_segments: int) -> jax.Array:
    if not _in_blocks(ids):
        return jax.ops.segment_sum(values, ids, num_segments=num_segments)
    first, alike, others = _blocks(ids, num_segments)
    blocks = values[: alike.size].reshape(*alike.shape, *values.shape[1:])
    chosen = alike.reshape(*alike.shape, *([1] * (values.ndim - 1)))
    sums = jnp.sum(jnp.where(chosen, blocks, jnp.zeros_like(blocks)), axis=1, dtype=values.dtype)
    return jax.ops.segment_sum(sums, first, num_segments=num_segments).at[others].add(values, mode="drop")


def _least(values: Array, ids: Array, num_segments: int) -> jax.Array:
    if not _in_blocks(ids):
        return jax.ops.segment_min(values, ids, num_segments=num_segments)
    first, alike, others = _blocks(ids, num_segments)
    blocks = values[: alike.size].reshape(alike.shape)
    least = jnp.min(jnp.where(alike, blocks, np.iinfo(values.dtype).max), axis=1)
    return jax.ops.segment_min(least, first, num_segments=num_segments).at[others].min(values, mode="drop")


def _in_blocks(ids: Array) -> bool:
    """Whether the default device is a GPU and there is something to gain. Both ways are right on any device."""
    return jax.default_backend() == "gpu" and ids.shape[0] >= 2 * BLOCK


def _blocks(ids: Array, num_segments: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Segment of each block [B]; who has it, [B, BLOCK]; the segments [M] of all who have not, others out of range."""
    whole = ids.shape[0] // BLOCK * BLOCK
    ids = jnp.asarray(ids).astype(jnp.int32)  # ids of 8 bits could not hold `num_segments`
    first = ids[:whole:BLOCK]
    alike = ids[:whole].reshape(-1, BLOCK) == first[:, None]
    return first, alike, jnp.concatenate([jnp.where(alike.ravel(), num_segments, ids[:whole]), ids[whole:]])


def segment_sum(values: Array, ids: Array, num_segments: int, where: Array | None = None) -> jax.Array:
    """Sum of the members of each segment: [num_segments, ...]; 0 where there are none.

    Args:
      values: float [M] or [M, ...].
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members, or None for all; other entries do not affect the result.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import segment_sum
      >>> values, ids, where = jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0, 0, 1]), jnp.array([True, True, False])
      >>> segment_sum(values, ids, 2, where).tolist()
      [4.0, 0.0]
    """
    if where is not None:
        values = jnp.where(where, values, jnp.zeros_like(values))
    return _add(jnp.asarray(values), ids, num_segments)


def segment_count(ids: Array, num_segments: int, where: Array, dtype: jax.typing.DTypeLike = jnp.float32) -> jax.Array:
    """Number of members of each segment: [num_segments] of `dtype`, a float by default because it is often a divisor.

    Args:
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members; other entries do not affect the result.
      dtype: dtype of the result.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import segment_count
      >>> values, ids, where = jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0, 0, 1]), jnp.array([True, True, False])
      >>> segment_count(ids, 2, where).tolist()
      [2.0, 0.0]
    """
    marked, size = jnp.asarray(where).astype(dtype), ids.shape[0]
    if size < 2 * SLOTS * num_segments:
        return jax.ops.segment_sum(marked, ids, num_segments=num_segments)
    slot = jnp.arange(size, dtype=jnp.int32) % SLOTS  # counts are exact in any order, sums would not be
    wide = jnp.asarray(ids).astype(jnp.int32)  # ids of 8 bits would overflow, and those of 64 bits take no int32
    partial = jax.ops.segment_sum(marked, wide * SLOTS + slot, num_segments=num_segments * SLOTS)
    return jnp.sum(partial.reshape(num_segments, SLOTS), axis=1, dtype=dtype)


def segment_mean(values: Array, ids: Array, num_segments: int, where: Array) -> jax.Array:
    """Mean of the members of each segment: float [num_segments]; 0 where there are none.

    Args:
      values: float [M].
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members; other entries do not affect the result.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import segment_mean
      >>> values, ids, where = jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0, 0, 1]), jnp.array([True, True, False])
      >>> segment_mean(values, ids, 2, where).tolist()
      [2.0, 0.0]
    """
    total = segment_sum(values, ids, num_segments, where)
    return safe_divide(total, segment_count(ids, num_segments, where, values.dtype))


def segment_sum_squares(values: Array, centre: Array, ids: Array, num_segments: int, where: Array) -> jax.Array:
    """Sum of squared deviations of the members of each segment from its centre: float [num_segments].

    This is the second pass of a two-pass variance. The one-pass form E[x²] − E[x]² loses every digit in float32 for
    rewards near 1e4 with a spread of 1.

    Args:
      values: float [M].
      centre: float [num_segments], the mean of each segment.
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members; other entries do not affect the result.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import segment_sum_squares
      >>> values, ids, where = jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0, 0, 1]), jnp.array([True, True, False])
      >>> segment_sum_squares(values, jnp.array([2.0, 0.0]), ids, 2, where).tolist()
      [2.0, 0.0]
    """
    deviation = jnp.where(where, values - centre[ids], jnp.zeros_like(values))
    return _add(deviation * deviation, ids, num_segments)


def segment_min(values: Array, ids: Array, num_segments: int, where: Array, empty: int) -> jax.Array:
    """Smallest member of each segment of an integer array: int [num_segments]; `empty` where there are none.

    Args:
      values: int [M].
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members; other entries do not affect the result.
      empty: the result for a segment without members.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import segment_min
      >>> values, ids, where = jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0, 0, 1]), jnp.array([True, True, False])
      >>> segment_min(jnp.array([4, 2, 9]), ids, 2, where, empty=-1).tolist()
      [2, -1]
    """
    filled = jnp.where(where, values, np.iinfo(values.dtype).max)
    least = _least(filled, ids, num_segments)
    return jnp.where(segment_count(ids, num_segments, where) > 0, least, empty)


def segment_first(ids: Array, num_segments: int, where: Array) -> jax.Array:
    """Position of the first member of each segment: int32 [num_segments]; 0 where there are none.

    Args:
      ids: int [M] in [0, num_segments), in any order.
      num_segments: how many segments there are.
      where: bool [M], the members; other entries do not affect the result.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import segment_first
      >>> values, ids, where = jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0, 0, 1]), jnp.array([True, True, False])
      >>> segment_first(ids, 2, where).tolist()
      [0, 0]
    """
    size = ids.shape[0]
    places = jnp.where(where, jnp.arange(size, dtype=jnp.int32), size)
    first = _least(places, ids, num_segments)
    return jnp.where(first < size, first, 0)  # `segment_min` counts members, too: one more scatter


def safe_divide(numerator: Array, denominator: Array) -> jax.Array:
    """Quotient, and 0 where the denominator is not positive. Gradients are finite everywhere.

    Args:
      numerator, denominator: float, of shapes that broadcast.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import safe_divide
      >>> safe_divide(jnp.array([1.0, 1.0]), jnp.array([2.0, 0.0])).tolist()
      [0.5, 0.0]
    """
    positive = denominator > 0
    return jnp.where(positive, numerator / jnp.where(positive, denominator, 1), 0)


def safe_sqrt(x: Array) -> jax.Array:
    """Square root, and 0 with gradient 0 at and below 0. The plain square root has an infinite slope at 0.

    Args:
      x: float, any shape.

    Examples:
      >>> import jax.numpy as jnp
      >>> from graphs.segment import safe_sqrt
      >>> safe_sqrt(jnp.array([4.0, 0.0, -1.0])).tolist()
      [2.0, 0.0, 0.0]
    """
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), 0)
