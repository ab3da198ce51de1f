"""Random choices at some places of a large table, without drawing the rest of it.

JAX's generator numbers the entries of an array: entry i of a draw with a key is a function of the key and i. So single
entries can be computed, and equal those of `jax.random.categorical` for the whole table.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32

from graphs.errors import CreditError

__all__ = ["categorical_at"]


def categorical_at(key: jax.Array, logits: jax.Array, places: jax.Array, rows: int) -> jax.Array:
    """Choices drawn by a policy, int32 [...], by Gumbel noise: `categorical(key, table of all logits)` at these places.

    Examples:
      >>> import jax, jax.numpy as jnp
      >>> key, table = jax.random.key(0), jnp.zeros((1000, 3))
      >>> places = jnp.array([7, 500])
      >>> bool((categorical_at(key, table[places], places, 1000) == jax.random.categorical(key, table)[places]).all())
      True

    Args:
      key: of the whole table, of JAX's default generator.
      logits: float32 [..., C], at the places.
      places: int32 [...], numbers of rows of the table.
      rows: of the table.

    Raises:
      CreditError: the table has 2³¹ rows or 2³² entries, which 32 bits cannot number: draws would repeat.
    """
    choices = logits.shape[-1]
    if rows >= 2**31 or rows * choices >= 2**32:
        raise CreditError(f"the table of draws has {rows} rows of {choices}; expected fewer than 2³¹ rows, 2³² entries")
    number = jax.lax.broadcasted_iota(jnp.uint32, logits.shape, logits.ndim - 1)
    entry = places[..., None].astype(jnp.uint32) * np.uint32(choices) + number
    high, low = jnp.split(threefry_2x32(jax.random.key_data(key), jnp.stack([jnp.zeros_like(entry), entry]).ravel()), 2)
    bits = (high ^ low).reshape(entry.shape)
    tiny = np.finfo(np.float32).tiny
    mantissa = jax.lax.bitcast_convert_type((bits >> 9) | np.float32(1).view(np.uint32), jnp.float32)
    uniform = jnp.maximum(tiny, (mantissa - 1) * (1 - tiny) + tiny)
    return jnp.argmax(logits - jnp.log(-jnp.log(uniform)), axis=-1).astype(jnp.int32)
