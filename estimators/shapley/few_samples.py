"""What few samples say of an error: Student's t, and how large an error can be that they do not show."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from estimators.shapley.plan import Plan
from graphs.event_graph import Array
from graphs.segment import safe_divide

__all__ = ["least_of_two_values", "mean_and_variance", "student"]

STEPS = 0.4  # of the mean square of y over the pairs, the least where values are two: votes of 8 units are covered


def student(freedom: jax.Array) -> jax.Array:
    """The 97.5 % point of Student's t over that of the normal distribution, by Cornish and Fisher's series.

    Standard errors times it hold 95 % of the errors within ± 1.96 of them. Below two degrees of freedom it is that of
    two.
    """
    f = 1 / jnp.maximum(freedom, 2)
    return 1 + 1.2104 * f + 1.4402 * f**2 + 1.3038 * f**3


def mean_and_variance(x: jax.Array, mask: jax.Array, unit: Array) -> tuple[jax.Array, jax.Array]:
    """Mean over m masked rows, and the squared error of that mean: float [N], [N].

        error² = t² max(pooled / m, (d / (m + 2))²)

    Variances are pooled over units: each has two more samples of the spread of the average unit, and t is Student's
    for m + 1 degrees of freedom. Rows that agree are no evidence that the next one does. By Laplace's rule of
    succession it differs with probability 1 / (m + 2); d is the largest number in `x`. The error is infinite from one
    row, and where all rows are 0, which tells no d.
    """
    count = mask.sum().astype(x.dtype)
    mean = safe_divide(jnp.where(mask[:, None], x, 0).sum(0), count)
    squares = jnp.where(mask[:, None], (x - mean[None]) ** 2, 0).sum(0)
    own = safe_divide(squares, count - 1)
    mean_own = safe_divide(jnp.where(unit, own, 0).sum(), jnp.asarray(unit).sum().astype(x.dtype))
    pooled = (own * (count - 1) + mean_own * 2) / (count + 1)
    largest = jnp.where(mask[:, None] & jnp.asarray(unit)[None], jnp.abs(x), 0).max()
    variance = jnp.maximum(pooled / jnp.maximum(count, 1), (largest / (count + 2)) ** 2) * student(count + 1) ** 2
    return mean, jnp.where((count > 1) & (largest > 0), variance, jnp.inf)


def least_of_two_values(plan: Plan, v: jax.Array, y: jax.Array, n: jax.Array, pairs: jax.Array) -> jax.Array:
    """The least squared error of a share where all values are one of two, and 0 where they are not: float [].

    0.4 Σ y² / M² of M pairs, times the part of all pairs that was not taken. Infinite where all values are equal and
    pairs are left: nothing then tells how far others differ.
    """
    used = jnp.asarray(plan.row_mask)
    low, high = jnp.where(used, v, jnp.inf).min(), jnp.where(used, v, -jnp.inf).max()
    near = 64 * float(np.finfo(v.dtype).eps) * jnp.maximum(jnp.abs(low), jnp.abs(high))
    two = jnp.all(~used | (v <= low + near) | (v >= high - near))
    untaken = jnp.maximum(1 - pairs / (2 ** (n - 1) - 1), 0)
    least = jnp.where(high - low <= near, jnp.inf, STEPS * (y**2).sum() / pairs**2)
    return jnp.where(two & (untaken > 0), least * jnp.where(untaken > 0, untaken, 1), 0)
