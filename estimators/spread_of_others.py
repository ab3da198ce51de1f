"""Squared deviations of the other samples, once one sample is taken out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["infinite_if_lost", "squares_of_others"]


def squares_of_others(squares: jax.Array, apart: jax.Array, n: jax.Array, differ: jax.Array) -> jax.Array:
    """The squared deviations of the other n − 1 samples from their own mean: float, at each sample.

        Σ_{j ≠ i} (x_j − m_{−i})² = Σ_j (x_j − m)² − (x_i − m)² n / (n − 1)

    A difference below rounding is 0. Squares that single precision cannot hold are infinite (`infinite_if_lost`).

    Args:
      squares: float, Σ_j (x_j − m)² of the n samples.
      apart: float, x_i − m.
      n: float, how many samples there are.
      differ: bool, whether one of them deviates from another.

    Examples:
      >>> squares_of_others(jnp.float32(2.0), jnp.float32(1.0), jnp.float32(3.0), True).tolist()  # 0, 1; not 2
      0.5
    """
    several = n > 1
    own = jnp.where(several, apart * apart * n / jnp.where(several, n - 1, 1), 0)
    left = squares - own
    left = jnp.where(left > 8 * np.finfo(squares.dtype).eps * squares, left, 0)
    return jnp.where(jnp.isfinite(infinite_if_lost(squares, differ)), left, jnp.inf)


def infinite_if_lost(squares: jax.Array, differ: jax.Array) -> jax.Array:
    """Sums of squared deviations; infinite where samples differ and single precision cannot hold their squares.

    The square of a deviation below 1e-19 is 0 in single precision, which would state an error of 0. The square of one
    beyond 1e19 is infinite already.

    Args:
      squares: float.
      differ: bool, whether one of the samples deviates from another.

    Examples:
      >>> infinite_if_lost(jnp.array([0.0, 0.0, 2.0]), jnp.array([True, False, True])).tolist()
      [inf, 0.0, 2.0]
    """
    number = np.finfo(squares.dtype)
    return jnp.where(differ & (squares < number.tiny / number.eps), jnp.inf, squares)
