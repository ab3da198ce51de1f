"""Cholesky factors of several matrices at once, in XLA's own operations.

LAPACK spreads a factorisation over threads that wait for one another. On cores that other work shares, one of 256 rows
took 47 ms of the processor with two threads and 0.4 with one, and several side by side can wait forever (jaxlib 0.10.2,
two cores). A training step cannot ask for one thread, so columns are found one by one. They stand in `PANELS` panels,
and those of a wide panel in panels again.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["cholesky", "lower_inverse"]

PANELS, LEAST, WIDEST = 8, 32, 64
"""How many panels, their least width, and the widest whose columns are found one by one."""


def cholesky(matrix: jax.Array) -> jax.Array:
    """L with L Lᵀ = A, lower triangular.

    Time is O(K F³), as that of LAPACK.

    Args:
      matrix: float [K, F, F], symmetric, or its first columns, [K, F, B]. Where one is not positive definite, its
        factor has NaN.

    Examples:
      >>> import jax.numpy as jnp
      >>> cholesky(jnp.array([[[4.0, 2.0], [2.0, 2.0]]])).tolist()
      [[[2.0, 0.0], [1.0, 1.0]]]
    """
    columns: list[jax.Array] = []
    width = max(LEAST, -(-matrix.shape[2] // PANELS))
    for start in range(0, matrix.shape[2], width):
        panel = matrix[:, start:, start : start + width]
        if columns:
            before = jnp.concatenate([c[:, start:] for c in columns], axis=2)
            found = jnp.einsum("kfg,khg->kfh", before, before[:, : panel.shape[2]], precision="highest")
            panel = panel - found
        # A panel is factored in the same way: a loop over the columns of a wide one would write all of it each time.
        factor = _panel(panel) if width <= WIDEST else cholesky(panel)
        columns.append(jnp.pad(factor, ((0, 0), (start, 0), (0, 0))))
    return jnp.concatenate(columns, axis=2)


def _panel(panel: jax.Array) -> jax.Array:
    """The first columns of a factor, [K, H, B], from those of the matrix."""
    # Of a signed number XLA asks in each step whether it counts from the end.
    place, row = (jnp.arange(panel.shape[axis], dtype=jnp.uint32) for axis in (2, 1))

    def column(j: jax.Array, panel: jax.Array) -> jax.Array:
        own = jnp.where(place < j, jax.lax.dynamic_index_in_dim(panel, j, 1, keepdims=False), 0)
        rest = jax.lax.dynamic_index_in_dim(panel, j, 2, keepdims=False)
        rest = rest - jnp.einsum("khb,kb->kh", panel, own, precision="highest")
        top = jax.lax.dynamic_index_in_dim(rest, j, 1)
        found = jnp.where(row >= j, rest / jnp.sqrt(top), 0)
        longer: jax.Array = jax.lax.dynamic_update_index_in_dim(panel, found, j, 2)
        return longer

    factor: jax.Array = jax.lax.fori_loop(jnp.uint32(0), jnp.uint32(panel.shape[2]), column, panel)
    return factor


def lower_inverse(lower: jax.Array) -> jax.Array:
    """L⁻¹ of a lower triangular matrix with a diagonal without 0.

    Blocks on the diagonal are inverted all at once, and rows of blocks follow from those above.

    Args:
      lower: float [F, F], 0 above the diagonal.

    Examples:
      >>> import jax.numpy as jnp
      >>> lower_inverse(jnp.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
      [[0.5, 0.0], [-0.5, 1.0]]
    """
    size = len(lower)
    count = -(-size // WIDEST)
    width = -(-size // count)
    more = count * width - size
    lower = jnp.pad(lower, ((0, more), (0, more))) + jnp.diag(jnp.arange(count * width) >= size).astype(lower.dtype)
    starts = range(0, count * width, width)
    own = _block_inverses(jnp.stack([lower[i : i + width, i : i + width] for i in starts]))
    found = own[0]
    for i, start in list(enumerate(starts))[1:]:
        left = jnp.matmul(lower[start : start + width, :start], found, precision="highest")
        left = -jnp.matmul(own[i], left, precision="highest")
        above = jnp.pad(found, ((0, 0), (0, width)))
        found = jnp.concatenate([above, jnp.concatenate([left, own[i]], axis=1)])
    return found[:size, :size]


def _block_inverses(lower: jax.Array) -> jax.Array:
    """L⁻¹ of several lower triangular matrices, row by row: [K, B, B]."""
    one = jnp.eye(lower.shape[1], dtype=lower.dtype)
    place = jnp.arange(lower.shape[1], dtype=jnp.uint32)

    def row(j: jax.Array, found: jax.Array) -> jax.Array:
        own = jax.lax.dynamic_index_in_dim(lower, j, 1, keepdims=False)
        before = jnp.where(place < j, own, 0)
        rest = jax.lax.dynamic_index_in_dim(one, j, 0) - jnp.einsum("kb,kbh->kh", before, found, precision="highest")
        next_row = rest / jax.lax.dynamic_index_in_dim(own, j, 1)
        longer: jax.Array = jax.lax.dynamic_update_index_in_dim(found, next_row, j, 1)
        return longer

    inverses: jax.Array = jax.lax.fori_loop(jnp.uint32(0), jnp.uint32(lower.shape[1]), row, jnp.zeros_like(lower))
    return inverses
