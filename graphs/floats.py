"""The float type that estimators compute in."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from graphs.event_graph import Array

__all__ = ["at_least_float32"]


def at_least_float32(values: Array) -> jax.Array:
    """An array in its own float type where that has 32 bits or more, and in float32 otherwise.

    Half precision is too coarse for the small differences in advantages. Integers become float32.

    Examples:
      >>> at_least_float32(jnp.zeros(2, jnp.bfloat16)).dtype
      dtype('float32')
    """
    array = jnp.asarray(values)
    wide = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize >= 4
    return array if wide else array.astype(jnp.float32)
