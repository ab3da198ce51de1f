"""Cholesky factors of several matrices at once, in XLA's own operations.

LAPACK spreads a factorisation over threads that wait for one another. On cores that other work shares, one of 256 rows
took 47 ms of the processor with two threads and 0.4 with one, and several side by side can wait forever (jaxlib 0.10.2,
two cores). A training step cannot ask for one thread, so columns are found one by one. They stand in `PANELS` panels,
and those of a wide panel in panels again. Other functions take LAPACK, since this compiles for seconds.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["cholesky"]

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
