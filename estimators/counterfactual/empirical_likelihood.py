"""Empirical-likelihood intervals for a value under another policy, for many contexts at once.

An empirical-likelihood interval holds every mean that some reweighting of the draws attains without making the draws
much less likely: −2 Σ log(k pᵢ) ≤ c. Its shape follows the draws, so that rare successes get the asymmetric interval
that mean ± t · stderr lacks. Outcomes that no draw had are possible, too: both ends of a range that the user states.

References: Owen 2001, *Empirical Likelihood*, sections 2 and 4; Zhong and Rao 2000, Biometrika 87, 929 (strata);
Karampatziakis, Langford and Mineiro 2020, arXiv:1906.03323 (off-policy means, with the ends of the range as possible
outcomes); Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2022, arXiv:2210.10768 (both ends as lower limits of
variables that are not negative, which needs no limit of the weights).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from graphs.event_graph import Array
from graphs.segment import safe_divide, segment_count, segment_sum

__all__ = ["least_mean", "limits"]

OUTER, INNER = 26, 6
"""Halvings of the bracket of a multiplier, and Newton steps of a stratum, to float32's precision."""

NOUGHT = 1e-7
"""Parts of the largest that float32 does not tell from 0 count as 0, which lowers the limit."""


def limits(level: float | Array, part: Array, stratum: Array, context: Array, where: Array) -> jax.Array:
    """The limit c of −2 Σ log(k_s p_sᵢ) for an interval of probability `level`, float [E] by context.

        c = χ²₁(level) (1 + ½ Σψ⁴ / (Σψ²)² − ⅓ (Σψ³)² / (Σψ²)³ + Σ_s r_s (1 − r_s) / k_s),    ψ = (x − x̄_s) / k_s

    The first terms are the Bartlett correction for the tails of the draws (DiCiccio, Hall and Romano 1991, Annals of
    Statistics 19, 1053), with sums in place of moments. The last is for strata of few draws: a share r_s of the
    variance is estimated about the mean of only k_s draws, which makes it too small by r_s / k_s.

    Args:
      level: from 0 to 1.
      part: float [E], x of each draw.
      stratum, context: int32 [E] in [0, E), of each draw; a stratum lies in one context.
      where: bool [E], the draws.
    """
    n = part.shape[0]
    size = segment_count(stratum, n, where, part.dtype)[stratum]
    mean = safe_divide(segment_sum(part, stratum, n, where)[stratum], size)
    psi = jnp.where(where, safe_divide(part - mean, size), 0)
    largest = jax.ops.segment_max(jnp.abs(psi), context, num_segments=n)
    psi = safe_divide(psi, largest[context])  # powers of small numbers would underflow
    squares = segment_sum(psi**2, context, n, where)
    tails = safe_divide(segment_sum(psi**4, context, n, where), squares**2) / 2
    tails = tails - safe_divide(segment_sum(psi**3, context, n, where) ** 2, squares**3) / 3
    ratio = safe_divide(segment_sum(psi**2, stratum, n, where)[stratum], squares[context])
    few = segment_sum(safe_divide(ratio * (1 - ratio), size**2), context, n, where)  # each stratum once, over its draws
    return ndtri(0.5 + 0.5 * jnp.asarray(level, part.dtype)) ** 2 * (1 + tails + few)


def least_mean(part: Array, stratum: Array, context: Array, where: Array, limit: Array) -> jax.Array:
    """The lower limit of a sum over strata of means of variables that are not negative: float [E] by context.

    It is the least Σ_s Σᵢ p_sᵢ x_sᵢ over weights p_sᵢ ≥ 0 that sum to at most 1 in each stratum, with
    −2 Σ log(k_s p_sᵢ) ≤ c over the draws. What is missing to 1 lies on x = 0, which is possible even if no draw had it.

    Args:
      part: float [E], x of each draw, 0 or more.
      stratum, context: int32 [E] in [0, E), of each draw; a stratum lies in one context.
      where: bool [E], the draws.
      limit: float [E], c of each context.
    """
    n = part.shape[0]
    largest = jax.ops.segment_max(jnp.where(where, part, 0), context, num_segments=n)
    x = safe_divide(jnp.where(where, part, jnp.zeros_like(part)), largest[context])
    x = jnp.where(x < NOUGHT, 0, x)  # squares of weights would overflow, and powers of small numbers underflow
    size = segment_count(stratum, n, where, x.dtype)
    ties = segment_count(stratum, n, where & (x <= 0), x.dtype)
    tiny = 1e-19  # below the reciprocal of any sum that float32 holds

    def weights(multiplier: jax.Array) -> jax.Array:
        """p = 1 / (ν_s + λ x), with ν_s ≥ 0 such that they sum to at most 1."""
        slope = multiplier[context] * x

        def step(_: int, nu: jax.Array) -> jax.Array:
            p = 1 / jnp.maximum(nu[stratum] + slope, tiny)
            total, squares = segment_sum(p, stratum, n, where), segment_sum(p**2, stratum, n, where)
            return jnp.maximum(nu + safe_divide(total * (total - 1), squares), ties)

        farthest = jax.ops.segment_max(jnp.where(where, slope, 0), stratum, num_segments=n)
        nu = jax.lax.fori_loop(0, INNER, step, jnp.maximum(size - farthest, ties))
        return 1 / jnp.maximum(nu[stratum] + slope, tiny)

    def halve(_: int, bracket: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        least, most = bracket
        middle = (least + most) / 2
        ratio = -2 * segment_sum(jnp.log(size[stratum] * weights(jnp.exp(middle))), context, n, where)
        over = ratio > limit  # both the likelihood and the mean fall with the multiplier
        return jnp.where(over, least, middle), jnp.where(over, middle, most)

    ends = jnp.full(n, -9.0, x.dtype), jnp.full(n, 18.0, x.dtype)
    multiplier, _ = jax.lax.fori_loop(0, OUTER, halve, ends)
    return jnp.where(largest > 0, largest, 0) * segment_sum(weights(jnp.exp(multiplier)) * x, context, n, where)
