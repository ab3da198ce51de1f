"""The order in which a sort puts integers, by sorting single numbers of 64 bits."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from graphs.event_graph import Array

__all__ = ["stable_order"]

ROOM = 64
"""Bits of a number that a pass sorts: those of the places, and above them those of the keys that fit."""


@functools.partial(jax.jit, inline=True)
def stable_order(*keys: Array) -> jax.Array:
    """The places of M items in the order of their keys, the last key first, equal ones in their order: int32 [M].

    The same as `jnp.lexsort(keys)`. XLA sorts single numbers several times as fast as numbers together with their
    places. A pass therefore sorts numbers of 64 bits, also where JAX has no others of them. They hold the place, above
    it the first key, above that the next one, as many as fit. Bits that all values of a key lack take no room, and keys
    that are in order take no pass.

    Args:
      *keys: int32 or bool [M] each; others are compared whole.

    Examples:
      >>> import jax.numpy as jnp
      >>> stable_order(jnp.array([0, 1, 0]), jnp.array([5, 5, -5])).tolist()
      [2, 0, 1]
    """
    num, narrow = keys[0].shape[0], all(key.dtype in (jnp.bool_, jnp.int32) for key in map(jnp.asarray, keys))
    if not num or not narrow:
        return jnp.lexsort(keys).astype(jnp.int32)
    # Differences to the least value are the key's order as unsigned numbers, also where they overflow int32.
    columns = [jnp.asarray(key).astype(jnp.int32) for key in keys]
    above = [jax.lax.bitcast_convert_type(column - jnp.min(column), jnp.uint32) for column in columns]
    bits = [32 - jax.lax.clz(jnp.max(column)).astype(jnp.int32) for column in above]
    rises = jnp.ones(num - 1, bool)
    for column in above:
        rises = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & rises)

    def sort_what_fits(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        done, order = state
        shift = jnp.full((), max(num - 1, 1).bit_length(), jnp.int32)
        with jax.enable_x64(True):
            packed = jax.lax.iota(jnp.uint64, num)
        for k, (column, width) in enumerate(zip(above, bits, strict=True)):
            fits = (done == k) & (shift + width <= ROOM)
            with jax.enable_x64(True):
                moved = jnp.where(fits, column[order], jnp.uint32(0)).astype(jnp.uint64) << shift.astype(jnp.uint64)
                packed = packed | moved
            done, shift = done + fits.astype(jnp.int32), shift + jnp.where(fits, width, 0)
        with jax.enable_x64(True):
            place = jax.lax.sort(packed, is_stable=False) & jnp.uint64(2 ** max(num - 1, 1).bit_length() - 1)
            return done, order[place.astype(jnp.int32)]

    start = jnp.where(jnp.all(rises), len(keys), 0), jnp.arange(num, dtype=jnp.int32)
    return jax.lax.while_loop(lambda state: state[0] < len(keys), sort_what_fits, start)[1]
