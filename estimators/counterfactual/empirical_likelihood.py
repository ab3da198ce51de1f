"""Empirical-likelihood intervals for a mean over draws, for many contexts at once.

An empirical-likelihood interval holds every mean that some reweighting of the draws attains without making the draws
much less likely: −2 Σ log(k pᵢ) ≤ c. Its shape follows the draws, so that rare successes and heavy tails get the
asymmetric interval that mean ± t · stderr lacks. Two forms are here:

* `stratified_interval`: draws of alternatives whose probabilities are known. Each alternative is a stratum.
* `influence_interval`: draws whose parts in an estimate are known (its influences), whatever the estimate.

References: Owen 2001, *Empirical Likelihood*, sections 2 and 4; Zhong and Rao 2000, Biometrika 87, 929 (strata); Jing,
Yuan and Zhou 2009, JASA 104, 1224 (influences of a jackknife); Karampatziakis, Langford and Mineiro 2020,
arXiv:1906.03323 (off-policy means, with the ends of the reward's range as possible outcomes).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from graphs.event_graph import Array
from graphs.segment import safe_divide, segment_count, segment_sum

__all__ = ["influence_interval", "limits", "stratified_interval"]

OUTER, INNER = 26, 6
"""Halvings of the bracket of a multiplier, and Newton steps of a stratum, to float32's precision."""


def limits(
    level: float | Array, influence: Array, stratum: Array, context: Array, where: Array, strata: Array
) -> jax.Array:
    """The limit c of −2 Σ log(k pᵢ) for an interval of probability `level`, float [E] by context.

        c = χ²₁(level) (1 + ½ Σψ⁴ / (Σψ²)² − ⅓ (Σψ³)² / (Σψ²)³ + Σ_a r_a (1 − r_a) / k_a)

    The first two terms are the Bartlett correction for the tails of the draws (DiCiccio, Hall and Romano 1991, Annals
    of Statistics 19, 1053), with sums over influences in place of moments. The last is added where alternatives are
    strata: a share r_a of the variance is estimated about the mean of only k_a draws, which makes it too small by r_a /
      k_a.

    Args:
      level: from 0 to 1.
      influence: float [E], ψ of each draw.
      stratum, context: int32 [E] in [0, E), of each draw.
      where: bool [E], the draws.
      strata: bool [E], by context: whether alternatives are strata.
    """
    n = influence.shape[0]
    psi = jnp.where(where, influence, jnp.zeros_like(influence))
    largest = jax.ops.segment_max(jnp.abs(psi), context, num_segments=n)
    psi = safe_divide(psi, largest[context])  # powers of small numbers would underflow
    squares = segment_sum(psi**2, context, n, where)
    tails = safe_divide(segment_sum(psi**4, context, n, where), squares**2) / 2
    tails = tails - safe_divide(segment_sum(psi**3, context, n, where) ** 2, squares**3) / 3
    part = safe_divide(segment_sum(psi**2, stratum, n, where)[stratum], squares[context])
    size = segment_count(stratum, n, where, psi.dtype)[stratum]
    few = segment_sum(safe_divide(part * (1 - part), size**2), context, n, where)  # each stratum once, over its draws
    quantile = ndtri(0.5 + 0.5 * jnp.asarray(level, psi.dtype)) ** 2
    return quantile * (1 + tails + jnp.where(strata, few, jnp.zeros_like(few)))


def stratified_interval(
    outcome: Array, share: Array, stratum: Array, context: Array, where: Array, limit: Array
) -> tuple[jax.Array, jax.Array]:
    """Both ends of an interval for Σ_a π(a) Q(a), with one stratum of draws for each alternative a.

    The ends are the extremes of Σ_a π(a) Σᵢ p_aᵢ y_aᵢ over weights p_aᵢ ≥ 0 that sum to 1 in each stratum, with
    −2 Σ log(k_a p_aᵢ) ≤ c over the draws. The least and the greatest outcome of the context are possible outcomes of
    every alternative, also where it never had them: an alternative with three failures can still succeed. What π puts
    on alternatives without draws is taken at these extremes too.

    Args:
      outcome: float [E], y of each draw.
      share: float [E], π of the draw's alternative; equal within a stratum.
      stratum, context: int32 [E] in [0, E), of each draw; a stratum lies in one context.
      where: bool [E], the draws.
      limit: float [E], c of each context.

    Returns:
      float [E] by context; both ends are equal where all outcomes are, 0 where there are no draws.
    """
    n = outcome.shape[0]
    y = jnp.where(where, outcome, jnp.zeros_like(outcome))
    high = jax.ops.segment_max(jnp.where(where, y, -jnp.inf), context, num_segments=n)
    low = jax.ops.segment_min(jnp.where(where, y, jnp.inf), context, num_segments=n)
    empty = ~(jnp.isfinite(high) & jnp.isfinite(low))
    high, low = jnp.where(empty, 0, high), jnp.where(empty, 0, low)
    width = high - low
    pi = jnp.where(where, share, jnp.zeros_like(share))
    above = safe_divide(high[context] - y, width[context])
    below = safe_divide(y - low[context], width[context])
    least = low + width * _least_mean(below, pi, stratum, context, where, limit)
    most = high - width * _least_mean(above, pi, stratum, context, where, limit)
    return least, most


def _least_mean(
    distance: jax.Array, pi: jax.Array, stratum: Array, context: Array, where: Array, limit: Array
) -> jax.Array:
    """Least Σ_a π(a) Σᵢ p_aᵢ dᵢ within the limit, for distances in [0, 1] from an outcome that all may have: [E].

    The weights are p_aᵢ = 1 / (ν_a + λ π(a) dᵢ), with ν_a ≥ 0 such that they sum to at most 1; what is missing to 1
    lies on the outcome at distance 0. The multiplier λ is found by bisection, since both sums are monotone in it.
    """
    n = distance.shape[0]
    size = segment_count(stratum, n, where, distance.dtype)
    ties = segment_count(stratum, n, where & (distance <= 0), distance.dtype)
    tiny = 1e-19  # below the reciprocal of any sum that float32 holds

    def weights(multiplier: jax.Array) -> jax.Array:
        slope = multiplier[context] * pi * distance

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
        over = ratio > limit
        return jnp.where(over, least, middle), jnp.where(over, middle, most)

    ends = jnp.full(n, -9.0, distance.dtype), jnp.full(n, 18.0, distance.dtype)
    multiplier, _ = jax.lax.fori_loop(0, OUTER, halve, ends)
    return segment_sum(pi * weights(jnp.exp(multiplier)) * distance, context, n, where)


def influence_interval(
    influence: Array, farthest: tuple[Array, Array], context: Array, where: Array, limit: Array
) -> tuple[jax.Array, jax.Array]:
    """How far an estimate reaches down and up, if it is to first order a sum of parts of independent draws.

    The parts ψᵢ, which sum to about 0, are reweighted: n Σ pᵢ ψᵢ with −2 Σ log(n pᵢ) ≤ c. One more draw is possible
      that
    the log has not: the one that would lie farthest out.

    Args:
      influence: float [E], ψ of each draw.
      farthest: float [E] each, by context: how far below and above the estimate n ψ of a possible draw lies, not
        negative.
      context: int32 [E] in [0, E), of each draw.
      where: bool [E], the draws.
      limit: float [E], c of each context.

    Returns:
      float [E] each, by context: the reach down and up, not negative.
    """
    n = influence.shape[0]
    count = segment_count(context, n, where, influence.dtype)
    unbiased = safe_divide(count, jnp.sqrt(jnp.maximum(count - 1, 1))) * jnp.sqrt(jnp.maximum(count, 1))
    part = jnp.where(where, influence, jnp.zeros_like(influence)) * unbiased[context]
    down, up = (
        _reach(sign * part, end, count, context, where, limit) for sign, end in zip((-1.0, 1.0), farthest, strict=True)
    )
    return down, up


def _reach(
    part: jax.Array, farthest: Array, count: jax.Array, context: Array, where: Array, limit: jax.Array
) -> jax.Array:
    """Largest Σ pᵢ xᵢ within the limit, where mass may also lie on `farthest`: [E] by context.

    With no mass there, pᵢ ∝ 1 / (1 − t xᵢ) with t below 1 / farthest, found by bisection. Else pᵢ = 1 / (l (f − xᵢ)),
    with l from the limit in closed form, and the rest of the mass lies at f.
    """
    n = part.shape[0]
    end = jnp.maximum(jax.ops.segment_max(jnp.where(where, part, 0), context, num_segments=n) * 1.0001, farthest)
    x = safe_divide(part, end[context])

    def weights(tilt: jax.Array) -> jax.Array:
        p = jnp.where(where, 1 / (1 - tilt[context] * x), 0)
        return safe_divide(p, segment_sum(p, context, n)[context])

    def halve(_: int, bracket: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        least, most = bracket
        middle = (least + most) / 2
        p = weights(-jnp.expm1(-middle))
        ratio = -2 * segment_sum(jnp.log(jnp.where(where, count[context] * p, 1)), context, n, where)
        over = ratio > limit
        return jnp.where(over, least, middle), jnp.where(over, middle, most)

    tilt, _ = jax.lax.fori_loop(0, OUTER, halve, (jnp.zeros(n, part.dtype), jnp.full(n, 16.0, part.dtype)))
    inside = segment_sum(weights(-jnp.expm1(-tilt)) * x, context, n, where)

    logs = segment_sum(jnp.log(jnp.where(where, 1 - x, 1) / jnp.maximum(count, 1)[context]), context, n, where)
    scale = jnp.exp(safe_divide(limit / 2 - logs, count))
    p = jnp.where(where, 1 / (scale[context] * jnp.where(where, 1 - x, 1)), 0)
    rest = 1 - segment_sum(p, context, n)
    outside = segment_sum(p * x, context, n) + rest
    return end * jnp.where(rest > 0, outside, inside)
