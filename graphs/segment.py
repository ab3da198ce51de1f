"""Reductions over segments under a mask: the one place that knows how masks enter a sum.

Every function takes `where`, True for members, and applies it by selection, never by multiplication, so that NaN or
infinity outside the mask cannot reach the result or a gradient. An empty segment reduces to 0. Ids lie in
[0, num_segments) also where `where` is False, and need not be sorted.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from graphs.event_graph import Array

__all__ = [
    "safe_divide",
    "safe_sqrt",
    "segment_count",
    "segment_first",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "segment_sum_squares",
]


def segment_sum(values: Array, ids: Array, num_segments: int, where: Array | None = None) -> jax.Array:
    """Sum of `values` in each segment: float [M] or [M, ...] to [num_segments, ...]."""
    if where is not None:
        values = jnp.where(where, values, jnp.zeros_like(values))
    return jax.ops.segment_sum(values, ids, num_segments=num_segments)


def segment_count(ids: Array, num_segments: int, where: Array, dtype: jax.typing.DTypeLike = jnp.float32) -> jax.Array:
    """Number of members in each segment, as `dtype`, since it is nearly always divided by."""
    return jax.ops.segment_sum(where.astype(dtype), ids, num_segments=num_segments)


def segment_mean(values: Array, ids: Array, num_segments: int, where: Array) -> jax.Array:
    """Mean of the members of each segment; 0 where there are none."""
    total = segment_sum(values, ids, num_segments, where)
    return safe_divide(total, segment_count(ids, num_segments, where, values.dtype))


def segment_sum_squares(values: Array, centre: Array, ids: Array, num_segments: int, where: Array) -> jax.Array:
    """Sum of squared deviations from `centre` [num_segments]: the second pass of a two-pass variance.

    Two passes, because E[x²] − E[x]² cancels: rewards near 1e4 with a spread of 1 would lose every digit in float32.
    """
    deviation = jnp.where(where, values - centre[ids], jnp.zeros_like(values))
    return jax.ops.segment_sum(deviation * deviation, ids, num_segments=num_segments)


def segment_min(values: Array, ids: Array, num_segments: int, where: Array, empty: int) -> jax.Array:
    """Smallest member of each segment of an integer array; `empty` where there are none."""
    filled = jnp.where(where, values, jnp.iinfo(values.dtype).max)
    least = jax.ops.segment_min(filled, ids, num_segments=num_segments)
    return jnp.where(segment_count(ids, num_segments, where) > 0, least, empty)


def segment_first(ids: Array, num_segments: int, where: Array) -> jax.Array:
    """Position of the first member of each segment, int32 [num_segments]; 0 where there are none."""
    return segment_min(jnp.arange(ids.shape[0], dtype=jnp.int32), ids, num_segments, where, empty=0)


def safe_divide(numerator: Array, denominator: Array) -> jax.Array:
    """Quotient, and 0 where the denominator is not positive; gradients are finite there too."""
    positive = denominator > 0
    return jnp.where(positive, numerator / jnp.where(positive, denominator, 1), 0)


def safe_sqrt(x: Array) -> jax.Array:
    """Square root, and 0 with gradient 0 at and below 0, where the plain one has an infinite slope (a tie)."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), 0)
