"""What squared deviations leave for the others when one sample is taken out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["squares_of_others"]


def squares_of_others(squares: jax.Array, apart: jax.Array, n: jax.Array) -> jax.Array:
    """The squared deviations of the other n − 1 samples from their own mean: float, at each sample.

        Σ_{j ≠ i} (x_j − m_{−i})² = Σ_j (x_j − m)² − (x_i − m)² n / (n − 1)

    A difference below rounding is 0. Squares that single precision does not hold, of deviations beyond 1e19 or below
    1e-19, are infinite: they would be 0, and a number of unknown error would be certain.

    Args:
      squares: float, Σ_j (x_j − m)² of the n samples.
      apart: float, x_i − m.
      n: float, how many samples there are.

    Examples:
      >>> squares_of_others(jnp.float32(2.0), jnp.float32(1.0), jnp.float32(3.0)).tolist()  # of 0, 1 and 2, without 2
      0.5
    """
    number = np.finfo(squares.dtype)
    several = n > 1
    own = jnp.where(several, apart * apart * n / jnp.where(several, n - 1, 1), 0)
    left = squares - own
    left = jnp.where(left > 8 * number.eps * squares, left, 0)
    lost = ~jnp.isfinite(squares) | ((squares < number.tiny / number.eps) & (jnp.abs(apart) > 0))
    return jnp.where(lost, jnp.inf, left)
