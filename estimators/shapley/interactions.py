"""Shapley values by regression on interactions, each shrunk as far as the evaluations say: empirical Bayes.

Write a coalition as signs z_i = ±1. The half difference y(S) = (v(S) − v(N∖S))/2 is a sum of odd terms
β_T Π_{i in T} z_i, and φ_i = Σ_{T with i} 2 β_T/|T|. Single units have a flat prior. Terms of three and five units are
too many to fit one by one. As a Gaussian process they cost one M × M matrix, since their kernel is an elementary
symmetric polynomial of the products z_i z'_i. Six parts have a normal prior, and its variance is fitted:

    triples, quintuples            variance θ_k Π_{i in T} a_i / e_k(a): units that interact much have a large a_i
    functions of the size          worth the same to each unit: nothing after efficiency
    slopes z_i p_1(u), z_i p_2(u)  Shapley value 0, see `pairs`
    the rest                       independent between coalitions, variance ∝ √(s(n − s))

The law of the sizes times the inverse variance of the rest is Shapley's weight 1/(s(n − s)). So what the terms cannot
express is orthogonal to the single units in the limit, and the shares are right for any game. The rest is part of the
game: its values at evaluated coalitions enter the shares with Shapley's coefficients, so all pairs give exact shares.
With fewer pairs the shares are biased towards what the prior expects.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from estimators.cholesky import cholesky, lower_inverse
from estimators.shapley.few_samples import least_of_two_values, student
from estimators.shapley.pairs import even_polynomials, odd_hats
from estimators.shapley.plan import SIZE_TERMS, Plan
from graphs.segment import safe_divide

__all__ = ["solve_interactions"]

ROUNDS = 4  # of the fit of prior variances; the error of shares no longer falls after four
PSEUDO = 0.15  # terms of a unit that the prior a_i = 1 counts as, where units differ by a relative variance of 1
NARROWEST = 0.85  # leave-one-out errors narrow the posterior variance to this part at most: they are few


def solve_interactions(plan: Plan, v: jax.Array, total: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Shares that sum to `total` and their variances: [N], [N].

    The variance is that of the posterior, times the ratio of squared leave-one-out errors to what the model expects of
    them, weighted as each share uses the pairs. It is widened as Student's t is for the degrees of freedom of that
    ratio, since prior variances are fitted, not known. They are the number of pairs that the ratio averages, times 2/(κ
    − 1) for errors of kurtosis κ: where few pairs have most of the error, as in games of a maximum, the ratio is known
    less well. In a game of two values (success or failure) it is at least 0.4 Σ y² / M² of M pairs, times the part of
    all pairs that was not taken: normal terms do not expect its steps.

    Args:
      plan: a plan of method "pairs" of values without noise.
      v: float [C], 0 in padding.
      total: v(N) − v(∅).
    """
    dtype = v.dtype
    eps = float(np.finfo(dtype).eps)
    unit, pair = jnp.asarray(plan.unit_mask), jnp.asarray(plan.sample_mask)
    n, pairs = unit.sum().astype(dtype), pair.sum().astype(dtype)
    row = jnp.append(pair, True)  # the whole team is the last row: it is known without error
    inside = jnp.asarray(plan.coalitions)[plan.samples[:, 0]]
    size = jnp.append(inside.sum(1).astype(dtype), n)
    z = jnp.where(unit[None], 2 * jnp.concatenate([inside, unit[None]]).astype(dtype) - 1, 0)
    z = jnp.where(row[:, None], z, 0)
    y = jnp.append((v[plan.samples[:, 0]] - v[plan.samples[:, 1]]) / 2, total / 2)
    y = jnp.where(row, y, 0)

    # Least squares on single units first: what is left sets the scale of all variances, and keeps single precision.
    gram = z.T @ z
    gram = gram + jnp.diag(jnp.where(unit, 4 * eps * pairs, 1))
    first = jnp.linalg.solve(gram, z.T @ y)
    left = y - z @ first
    nothing = jnp.abs(left).max() <= 256 * eps * jnp.abs(v).max()
    scale = jnp.where(nothing, 1, (left**2).sum() / (pairs + 1))

    rough = jnp.sqrt(jnp.maximum(size * (n - size), 0))
    rough = jnp.where(row, rough / jnp.maximum(jnp.where(row, rough, 0).sum() / pairs, 1e-30), 1)
    features = _features(z, size, n, pairs, row)
    least = scale * (1e-9 if dtype == jnp.float64 else 2e-5)

    rows = _Rows(z, rough, row, tuple(features))

    def better(i: int, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        """One step of MacKay's: each variance times its terms' squares over what the posterior expects of them."""
        theta, a, strength = state
        at = _posterior(rows, theta, a, least, unit)
        alpha = at.precision @ left
        found = [alpha @ k @ alpha for k in at.kernels] + [((f.T @ alpha) ** 2).sum() for f in rows.features]
        expected = [(at.precision * k).sum() for k in at.kernels]
        expected += [((at.precision @ f) * f).sum() for f in rows.features]
        found.append((alpha**2 * jnp.where(rows.row, rows.rough, 0)).sum())
        expected.append((jnp.diag(at.precision) * jnp.where(rows.row, rows.rough, 0)).sum())
        factor = jnp.clip(safe_divide(jnp.stack(found), jnp.stack(expected)), 0.02, 50)
        per_unit = safe_divide(theta[0], at.norm[0])
        mine = per_unit * _triples_of_units(alpha[:, None] * alpha[None], rows.z, a)
        usual = per_unit * _triples_of_units(at.precision, rows.z, a)
        strength = jnp.where(i == 0, _strength(mine, unit, n), strength)
        a = jnp.clip((a * mine + strength) / (jnp.maximum(usual, 0) + strength), a / 20, a * 20)
        a = jnp.where(unit, a / (jnp.where(unit, a, 0).sum() / n), 0)
        a = jnp.where(unit, jnp.maximum(a, 1e-3), 0)
        return jnp.clip(theta * factor, 1e-7 * scale, 50 * scale), a, strength

    start = scale * jnp.asarray([0.4, 0.2, 0.1, 0.1, 0.1, 0.2], dtype), unit.astype(dtype), jnp.ones((), dtype)
    theta, a, _ = jax.lax.fori_loop(0, ROUNDS, better, start)
    at = _posterior(rows, theta, a, least, unit)
    p, inverse, onto, of_single, norm = at.precision, at.inverse, at.onto, at.of_single, at.norm
    alpha = p @ left

    # Covariance of each share with each row, and the prior variance of the share: of the terms and of the rest.
    threes, fives = _shares_of_terms(z, a)
    of_terms = [safe_divide(theta[j], norm[j]) * x for j, x in enumerate((threes, fives))]
    prior = 2 / 3 * of_terms[0][:, -1] + 2 / 5 * of_terms[1][:, -1]
    shapley, rest = _shares_of_rest(z, size, n, rough, row, unit)
    covariance = of_terms[0] + of_terms[1] + theta[-1] * shapley * jnp.where(row, rough, 0)[None]
    prior = prior + theta[-1] * rest
    two = 2 * jnp.diag(unit.astype(dtype))
    share = covariance @ alpha + 2 * (first + of_single @ (onto.T @ left))
    share = jnp.where(unit, share + (total - jnp.where(unit, share, 0).sum()) / n, 0)
    beside = two - covariance @ onto
    variance = prior - ((covariance @ inverse) * covariance).sum(1) + ((beside @ of_single) * beside).sum(1)

    use = (covariance @ p + 2 * of_single @ onto.T)[:, :-1]
    spread = jnp.where(pair, jnp.maximum(jnp.diag(p)[:-1], eps / scale), 1)
    part = jnp.where(pair[None], use**2 / spread[None], 0)
    ratio = jnp.where(pair, alpha[:-1] ** 2 / spread, 0)
    variance = jnp.maximum(variance, 0) * _widening(part, ratio, pairs)
    variance = jnp.maximum(jnp.where(nothing, 0, variance), least_of_two_values(plan, v, y[:-1], n, pairs))
    return share, jnp.where(unit & (pairs >= 1.5 * n), variance, jnp.where(unit, jnp.inf, 0))


def _widening(part: jax.Array, ratio: jax.Array, pairs: jax.Array) -> jax.Array:
    """What the posterior variance of each share is multiplied by, float [N].

    Args:
      part: float [N, M], the weight of each pair in each share; 0 in padding.
      ratio: float [M], squared leave-one-out errors over what the model expects of them; 0 in padding.
      pairs: the number of pairs without padding.
    """
    freedom = safe_divide(part.sum(1) ** 2, (part**2).sum(1))
    usual = ratio.sum() / pairs
    wider = (freedom * safe_divide((part * ratio[None]).sum(1), part.sum(1)) + 2 * usual) / (freedom + 2)
    kurtosis = safe_divide((ratio**2).sum() / pairs, usual**2)
    freedom = freedom * jnp.minimum(2 / jnp.maximum(kurtosis - 1, 1e-3), 2)
    return jnp.maximum(wider, NARROWEST) * student(freedom) ** 2


@dataclasses.dataclass(frozen=True)
class _Rows:
    """What the covariance of rows is made of: signs [M, N], the scale of the rest [M], the mask [M], features."""

    z: jax.Array
    rough: jax.Array
    row: jax.Array
    features: tuple[jax.Array, ...]


@dataclasses.dataclass(frozen=True)
class _Posterior:
    """K⁻¹, K⁻¹ Z, (Zᵀ K⁻¹ Z)⁻¹, and `precision`, which is K⁻¹ with the single units projected out."""

    precision: jax.Array
    inverse: jax.Array
    onto: jax.Array
    of_single: jax.Array
    norm: jax.Array
    kernels: tuple[jax.Array, jax.Array]


def _posterior(rows: _Rows, theta: jax.Array, a: jax.Array, least: jax.Array, unit: jax.Array) -> _Posterior:
    kernels, norm = _kernels(rows.z, a, rows.row)
    k = theta[0] * kernels[0] + theta[1] * kernels[1]
    for variance, f in zip(theta[2:-1], rows.features, strict=True):
        k = k + variance * f @ f.T
    k = k + jnp.diag(jnp.where(rows.row, theta[-1] * rows.rough + least, 1))
    half = lower_inverse(cholesky(k[None])[0])
    inverse = half.T @ half
    onto = inverse @ rows.z
    inner = rows.z.T @ onto
    slack = 4 * float(np.finfo(k.dtype).eps) * jnp.trace(inner) / unit.sum().astype(k.dtype)
    inner = inner + jnp.diag(jnp.where(unit, slack, 1))
    of_single = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(inner), jnp.eye(len(unit), dtype=k.dtype))
    return _Posterior(inverse - onto @ of_single @ onto.T, inverse, onto, of_single, norm, kernels)


def _strength(mine: jax.Array, unit: jax.Array, n: jax.Array) -> jax.Array:
    """How many terms of an average unit are added to those of each unit when its a_i is fitted.

    From how much the squares of the units' triples differ when all a_i are 1: where all triples have the same
    variance their relative variance between units was 0.5/n in simulations; what exceeds it is due to the units.
    """
    mean = jnp.where(unit, mine, 0).sum() / n
    differ = jnp.where(unit, (safe_divide(mine, mean) - 1) ** 2, 0).sum() / n
    return PSEUDO / jnp.maximum(differ - 0.5 / n, 1e-3)


def _features(z: jax.Array, size: jax.Array, n: jax.Array, pairs: jax.Array, row: jax.Array) -> list[jax.Array]:
    """Functions of the size, and the slopes of two degrees: each float [M + 1, ...] of mean squared length 1."""
    u = 2 * size / n - 1
    inner = row & (size < n)
    terms = jnp.minimum(jnp.minimum(SIZE_TERMS, n // 2), jnp.maximum(2, pairs // 10))
    apart = jnp.where(z != 0, z - u[:, None], 0)
    parts = [odd_hats(u, terms)] + [apart * p[:, None] for p in even_polynomials(u, n, z.shape[1], 2)]
    parts = [jnp.where(inner[:, None], f, 0) for f in parts]
    return [f * jax.lax.rsqrt(jnp.maximum((f**2).sum() / pairs, 1e-12)) for f in parts]


def _kernels(z: jax.Array, a: jax.Array, row: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """e_3 and e_5 of the products a_i z_i z'_i by Newton's identities, over their values e_3(a), e_5(a): and these."""
    both = row[:, None] & row[None]
    odd = {k: (z * a[None] ** k) @ z.T for k in (1, 3, 5)}
    even = {k: (a**k).sum() for k in (2, 4)}  # (z_i z'_i)² = 1
    e1 = odd[1]
    e2 = (e1 * odd[1] - even[2]) / 2
    e3 = (e2 * odd[1] - e1 * even[2] + odd[3]) / 3
    e4 = (e3 * odd[1] - e2 * even[2] + e1 * odd[3] - even[4]) / 4
    e5 = (e4 * odd[1] - e3 * even[2] + e2 * odd[3] - e1 * even[4] + odd[5]) / 5
    norm = jnp.maximum(jnp.stack([e3[-1, -1], e5[-1, -1]]), 0)
    norm = jnp.where(norm > 1e-6, norm, 0)  # fewer than three or five units
    three, five = (jnp.where(both, safe_divide(e, norm[j]), 0) for j, e in enumerate((e3, e5)))
    return (three, five), norm


def _triples_of_units(m: jax.Array, z: jax.Array, a: jax.Array) -> jax.Array:
    """Σ_{S,S'} m(S, S') Σ over the triples with unit i of Π a z z': float [N], for each unit."""
    e1 = (z * a[None]) @ z.T
    squares = (a**2).sum()
    alone = (z * (m @ z)).sum(0)
    without = (z * ((m * e1**2) @ z)).sum(0) - 2 * a * (m * e1).sum() + a**2 * alone
    return a * (without - (squares - a**2) * alone) / 2


def _shares_of_terms(z: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Covariance of shares with rows for triples and quintuples of unit scale: (2/k) a_i z_i e_{k−1} without i."""
    w = z * a[None]
    power = [(w**k).sum(1, keepdims=True) - w**k for k in (1, 2, 3, 4)]
    e1 = power[0]
    e2 = (e1 * power[0] - power[1]) / 2
    e3 = (e2 * power[0] - e1 * power[1] + power[2]) / 3
    e4 = (e3 * power[0] - e2 * power[1] + e1 * power[2] - power[3]) / 4
    return 2 / 3 * (w * e2).T, 2 / 5 * (w * e4).T


def _shares_of_rest(
    z: jax.Array, size: jax.Array, n: jax.Array, rough: jax.Array, row: jax.Array, unit: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Shapley's coefficients of y at each row, float [N, M + 1], and Σ over all pairs of their squares times `rough`.

    A coalition of size s counts 2/(s C(n, s)) for a member and −2/((n − s) C(n, s)) for another.
    """

    def log_choose(s: jax.Array) -> jax.Array:
        out: jax.Array = jax.lax.lgamma(n + 1) - jax.lax.lgamma(s + 1) - jax.lax.lgamma(n - s + 1)
        return out

    here = row & (size < n) & (size > 0)
    s = jnp.where(here, size, 1)
    few = jnp.exp(-log_choose(s))
    joins, lacks = 2 * few / s, 2 * few / jnp.maximum(n - s, 1)
    shapley = jnp.where(here[:, None] & unit[None], jnp.where(z > 0, joins[:, None], -lacks[:, None]), 0).T
    grid = jnp.arange(z.shape[1] + 1, dtype=z.dtype)
    inner = (grid > 0) & (grid < n)
    g = jnp.where(inner, grid, 1)
    unit_rough = jnp.sqrt(g * jnp.maximum(n - g, 1))
    unit_rough = unit_rough * safe_divide(
        jnp.where(here, rough, 0).sum(), jnp.where(here, jnp.sqrt(s * (n - s)), 0).sum()
    )
    every = jnp.where(inner, unit_rough * (1 / g + 1 / jnp.maximum(n - g, 1)) * jnp.exp(-log_choose(g)), 0).sum()
    return shapley, 2 / n * every
