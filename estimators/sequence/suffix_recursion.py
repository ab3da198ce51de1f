"""The recursion y_t = a_t y_{t+1} + b_t over a flat array that holds many sequences one behind another.

The array is cut into blocks of `BLOCK` places. All blocks go through their own places side by side, twice: once for the
product of their factors and for their y with 0 behind them, and once for y itself, with the y of the next block
behind. Between the two, the same recursion over blocks is solved by doubling, which ends with the longest sequence.
Arrays that are padded at the end give the same numbers bit for bit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["recursion_by_blocks", "suffix_recursion"]

Pair = tuple[jax.Array, jax.Array]

BLOCK = 16
"""Places of a block: 8 to 32 were fastest on a CPU, for 12,800 places and for 2,048,000."""


def suffix_recursion(factor: jax.Array, addend: jax.Array) -> jax.Array:
    """y_t = factor_t y_{t+1} + addend_t, with 0 behind the last place: float [N].

    A factor of 0 ends a sequence: nothing passes it, not even infinity or NaN. Derivatives solve the transposed
    recursion and do not go through the steps.

    Examples:
      >>> suffix_recursion(jnp.array([0.5, 0.5, 0.0, 0.5]), jnp.array([1.0, 1.0, 1.0, jnp.inf])).tolist()
      [1.75, 1.5, 1.0, inf]

    Args:
      factor, addend: float [N], of one dtype.
    """
    y: jax.Array = jax.lax.custom_linear_solve(
        lambda y: y - _passed(factor, jnp.concatenate([y[1:], jnp.zeros_like(y[:1])])),
        addend,
        solve=lambda _, b: recursion_by_blocks(factor, b),
        transpose_solve=lambda _, b: jnp.flip(recursion_by_blocks(jnp.flip(jnp.roll(factor, 1)), jnp.flip(b))),
    )
    return y


def recursion_by_blocks(factor: jax.Array, addend: jax.Array) -> jax.Array:
    """`suffix_recursion` for floats or integers: [N]. Its derivatives go through its steps.

    Examples:
      >>> recursion_by_blocks(jnp.array([1, 1, 0, 1]), jnp.array([0, 0, 3, 4])).tolist()
      [3, 3, 3, 4]

    Args:
      factor, addend: [N], of one dtype.
    """
    n = addend.shape[0]
    blocks = -(-n // BLOCK)

    def side_by_side(values: jax.Array) -> jax.Array:
        return jnp.pad(values, (0, blocks * BLOCK - n)).reshape(blocks, BLOCK).T

    def total(behind: Pair, place: Pair) -> tuple[Pair, None]:
        (product, y), (a, b) = behind, place
        return (a * product, b + _passed(a, y)), None

    def value(y: jax.Array, place: Pair) -> tuple[jax.Array, jax.Array]:
        a, b = place
        y = b + _passed(a, y)
        return y, y

    places = side_by_side(factor), side_by_side(addend)
    nothing = jnp.ones_like(places[0][0]), jnp.zeros_like(places[1][0])
    (product, alone), _ = jax.lax.scan(total, nothing, places, reverse=True)
    first = _by_doubling(product, alone)
    behind = jnp.concatenate([first[1:], jnp.zeros_like(first[:1])])
    y = jax.lax.scan(value, behind, places, reverse=True)[1]
    return y.T.reshape(-1)[:n]


def _by_doubling(factor: jax.Array, addend: jax.Array) -> jax.Array:
    """The recursion in steps that double the places that each y takes in, until no product of factors is left."""
    n = addend.shape[0]

    def ahead(values: jax.Array, span: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice(jnp.concatenate([values, jnp.zeros_like(values)]), (span,), (n,))

    def double(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        a, y, span = state
        return a * ahead(a, span), y + _passed(a, ahead(y, span)), 2 * span

    state = factor, addend, jnp.ones((), jnp.int32)
    return jax.lax.while_loop(lambda s: (s[2] < n) & jnp.any(_open(s[0])), double, state)[1]


def _open(factor: jax.Array) -> jax.Array:
    """Whether a factor lets anything pass."""
    return ~(jnp.abs(factor) <= 0)  # true for NaN


def _passed(factor: jax.Array, y: jax.Array) -> jax.Array:
    """factor · y, and 0 for a factor of 0, whatever y is."""
    return jnp.where(_open(factor), factor * y, jnp.zeros_like(y))
