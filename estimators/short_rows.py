"""Sums and look-ups along rows of a few numbers, such as the alternatives of a decision.

On a CPU, XLA reduces and gathers along a short last axis by a loop for each row: 60 µs for the sums of 12,800 rows of
two numbers, against 7 µs for adding two columns.
"""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp

__all__ = ["at_column", "every_column", "sum_of_columns"]

FEW = 8
"""Columns that are taken one by one; more of them would make programs long."""


def sum_of_columns(table: jax.Array) -> jax.Array:
    """The sum of each row: float [N] of float [N, J].

    Examples:
      >>> sum_of_columns(jnp.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
      [3.0, 7.0]
    """
    width = table.shape[1]
    total: jax.Array = functools.reduce(operator.add, table.T) if 0 < width <= FEW else jnp.sum(table, axis=1)
    return total


def every_column(table: jax.Array) -> jax.Array:
    """Whether all of each row is True: bool [N] of bool [N, J].

    Examples:
      >>> every_column(jnp.array([[True, False], [True, True]])).tolist()
      [False, True]
    """
    width = table.shape[1]
    every: jax.Array = functools.reduce(operator.and_, table.T) if 0 < width <= FEW else jnp.all(table, axis=1)
    return every


def at_column(table: jax.Array, column: jax.Array) -> jax.Array:
    """The number of each row at a column of its own: [N] of [N, J] and int [N] in [0, J).

    Examples:
      >>> at_column(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1, 0])).tolist()
      [2.0, 3.0]
    """
    if not 0 < table.shape[1] <= FEW:
        values: jax.Array = jnp.take_along_axis(table, column[:, None], axis=1)[:, 0]
        return values
    own = table[:, 0]
    for j in range(1, table.shape[1]):
        own = jnp.where(column == j, table[:, j], own)
    return own
