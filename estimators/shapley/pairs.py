"""Shapley values by regression on terms whose Shapley values are known.

Shapley's weighting of coalitions makes a least-squares fit of v on the indicators x_i = [i in S] return Shapley values
(Charnes et al. 1988). Three facts make a good estimator of it:

1. With all pairs (S, complement) evaluated, y(S) = (v(S) − v(N∖S)) / 2 is fitted: terms of two units are then linear in
   x and cost nothing.
2. Any further regressor may be added if its own Shapley values are known: the residual is orthogonal to x under the
   Shapley weights, so its Shapley values tend to 0 whatever the regressor does. It only takes variance away.
3. Much of the spread of real games is of three kinds, so these are the regressors, with z_i = x_i − s/n, u = 2s/n − 1:
     functions of the size, odd in u        worth the same to each unit: nothing after efficiency
     z_i p_k(u), p_k even, of mean 0 over sizes     what a unit adds depends on how many are there; Shapley value 0
     [i and all its ancestors in S]         work along a spawn chain; 1/depth to each member of the chain

No unit is treated apart and no coalition is refitted, so one jitted solve of [N (1 + k) + B] equations does it all.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from estimators.shapley.few_samples import least_of_two_values, student
from estimators.shapley.plan import SIZE_TERMS, Plan
from graphs.errors import CreditError
from graphs.event_graph import Array
from graphs.segment import safe_divide

__all__ = ["solve_pairs"]


def solve_pairs(
    plan: Plan, v: jax.Array, total: jax.Array, *, above: Array | None, degrees: tuple[int, ...]
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Shares that sum to `total`, their variances and degrees of freedom, and the variance of one value about the fit.

    For each k in `degrees` the regression is solved with p_1, ..., p_k; the degree with the least mean estimated
    variance, times Student's t squared, is taken. Variances are heteroscedasticity-consistent with each residual
    divided by √(1 − h) (HC2), about the mean of each size, since the numbers per size are fixed, times the fraction of
    a size's pairs that were not taken where pairs are distinct. The degrees of freedom of Σ_p c_p² e_p² / (1 − h_p) are
    (Σ c²)² / Σ c⁴/(1 − h): pairs less regressors in a balanced design. Noisy values that fit exactly show no noise:
    their variance is infinite.

    Args:
      plan: a plan of method "pairs".
      v: float [C], 0 in padding.
      total: v(N) − v(∅).
      above: bool [N, N], row i marks unit i and its ancestors: adds the chains of a spawn forest as regressors.
      degrees: at most 2 each. A degree for which pairs are fewer than 1.5 times the regressors is not taken.

    Returns:
      float [N], [N], [N], [].
    """
    if not degrees or not all(0 <= k <= 2 for k in degrees):
        raise CreditError(f"degrees is {degrees}; expected one or more of 0, 1, 2")
    fits = [_fit(plan, v, total, above, k) for k in degrees]
    share, variance, freedom, noise = (jnp.stack(part) for part in zip(*fits, strict=True))
    mean = jnp.where(jnp.asarray(plan.unit_mask)[None], variance * student(freedom) ** 2, 0).sum(1)
    best = jnp.argmin(jnp.where(jnp.isnan(mean), jnp.inf, mean))
    return share[best], variance[best], freedom[best], noise[best]


def _fit(
    plan: Plan, v: jax.Array, total: jax.Array, above: Array | None, degree: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    dtype = v.dtype
    unit = jnp.asarray(plan.unit_mask)
    n = unit.sum().astype(dtype)
    pair, size_terms = jnp.asarray(plan.sample_mask), jnp.asarray(plan.size_terms, dtype)
    inside = jnp.asarray(plan.coalitions)[plan.samples[:, 0]]
    size = inside.sum(1).astype(dtype)
    u = 2 * size / n - 1
    weight, rest = _weights(plan, size, n, pair)

    y = (v[plan.samples[:, 0]] - v[plan.samples[:, 1]]) / 2 - u / 2 * total
    z = jnp.where(unit[None], inside.astype(dtype) - (size / n)[:, None], 0)
    blocks = [z] + [z * p[:, None] for p in even_polynomials(u, n, plan.coalitions.shape[1], degree)]
    to_share = [jnp.eye(z.shape[1], dtype=dtype)] + [jnp.zeros((z.shape[1],) * 2, dtype)] * degree
    if above is not None:
        chains, chain_shares = _chains(jnp.asarray(above, dtype), inside, unit, u)
        blocks.append(chains)
        to_share.append(chain_shares)
    blocks.append(odd_hats(u, size_terms))
    to_share.append(jnp.zeros((SIZE_TERMS, z.shape[1]), dtype))
    x = jnp.concatenate(blocks, 1)
    x = jnp.where(pair[:, None], x, 0)
    read = jnp.concatenate(to_share)
    read = jnp.where(unit[None], read - jnp.where(unit[None], read, 0).sum(1, keepdims=True) / n, 0)  # efficiency

    root = jnp.sqrt(weight)[:, None]
    scaled = x * root
    length = jnp.sqrt((scaled**2).sum(0))
    length = jnp.where(length > 0, length, 1)
    scaled = scaled / length[None]
    gram = scaled.T @ scaled
    regressors = n * (1 + degree + (above is not None)) + size_terms
    # A penalty at the level of rounding, which grows with the number of regressors: collinear ones share their weight.
    gram = gram + jnp.diag(jnp.full(x.shape[1], 4 * float(np.finfo(dtype).eps), dtype) * jnp.maximum(regressors, 4))
    # z sums to 0 over units: a constant over them is not identified, nor needed. Fix it.
    constant = jnp.where(
        jnp.arange(x.shape[1]) < z.shape[1], jnp.pad(unit.astype(dtype), (0, x.shape[1] - z.shape[1])) / jnp.sqrt(n), 0
    )
    for k in range(1 + degree):
        one = jnp.roll(constant, k * z.shape[1]) * length
        one = one / jnp.maximum(jnp.sqrt((one**2).sum()), 1e-30)
        gram = gram + one[:, None] * one[None, :]
    factor = jax.scipy.linalg.cho_factor(gram)
    solve = jax.scipy.linalg.cho_solve
    coefficients = solve(factor, scaled.T @ (root[:, 0] * y))
    residual = y - (x / length[None]) @ coefficients
    share = total / n + (coefficients / length) @ read

    onto = scaled @ solve(factor, jnp.eye(x.shape[1], dtype=dtype))
    leverage = jnp.clip((onto * scaled).sum(1), 0, 1 - 1e-3)
    influence = onto @ (read / length[:, None])
    error = root[:, 0] * residual / jnp.sqrt(1 - leverage)
    fits = jnp.abs(residual) <= 256 * float(np.finfo(dtype).eps) * jnp.abs(v).max()
    variance = _within_sizes(jnp.where(fits, 0, error)[:, None] * influence, size, n, rest, pair)
    pairs = pair.sum().astype(dtype)
    unseen = jnp.asarray(jnp.inf, dtype) if plan.noisy else least_of_two_values(plan, v, y + u / 2 * total, n, pairs)
    no_error = jnp.all(fits | ~pair)
    variance = jnp.where(no_error, unseen, variance)
    squares = jnp.where(pair[:, None], weight[:, None] * influence**2, 0)
    freedom = safe_divide(squares.sum(0) ** 2, (squares**2 / (1 - leverage)[:, None]).sum(0))
    freedom = jnp.where(no_error, jnp.inf, freedom)
    enough = (pairs >= 1.5 * regressors) | (pairs * 2 >= 2 ** jnp.minimum(n, 30) - 2)
    noise = 2 * jnp.where(pair, residual**2 / (1 - leverage), 0).sum() / jnp.maximum(pairs, 1)
    return jnp.where(unit, share, 0), jnp.where(enough, variance, jnp.inf), freedom, noise


def _chains(chain: jax.Array, inside: jax.Array, unit: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Regressors of the chains of a spawn forest, float [M, N], and each chain's share to its units, float [N, N]."""
    depth = jnp.maximum(chain.sum(1), 1)
    whole = (~inside).astype(chain.dtype) @ chain.T < 0.5
    whole_other = inside.astype(chain.dtype) @ chain.T < 0.5
    below = unit & (depth > 1)  # the chain of a root is its indicator, which is a regressor already
    regressors = jnp.where(
        below[None], (whole.astype(chain.dtype) - whole_other.astype(chain.dtype)) / 2 - u[:, None] / 2, 0
    )
    return regressors, jnp.where(below[:, None], chain / depth[:, None], 0)


def _weights(plan: Plan, size: jax.Array, n: jax.Array, pair: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weight of each pair, and the fraction of the pairs of its size that were not taken: float [M], [M].

    Each size s weighs 1/(s(n − s)) in all, shared equally by the coalitions of that size that were evaluated, however
    many they are: so a plan needs no law, and coalitions of logs can be used.
    """
    s = jnp.minimum(size, n - size)
    small = s.astype(jnp.int32)
    count = (
        jnp.zeros(plan.coalitions.shape[1] + 1, size.dtype).at[jnp.where(pair, small, 0)].add(pair.astype(size.dtype))
    )
    here = jnp.maximum(count[small], 1)
    halves = 2 * small == n.astype(jnp.int32)  # a complement has the same size: one side
    weight = jnp.where(pair, jnp.where(halves, 1, 2) / (jnp.maximum(size * (n - size), 1) * here), 0)
    if not plan.distinct:
        return weight, jnp.ones_like(weight)
    log_choose = jax.lax.lgamma(n + 1) - jax.lax.lgamma(s + 1) - jax.lax.lgamma(n - s + 1)
    existing = jnp.exp(jnp.minimum(log_choose, 60.0)) / jnp.where(halves, 2, 1)
    return weight, jnp.clip(1 - here / existing, 0, 1).astype(size.dtype)


def _within_sizes(a: jax.Array, size: jax.Array, n: jax.Array, rest: jax.Array, pair: jax.Array) -> jax.Array:
    """Variance of Σ_p a_p where the number of pairs of each size is fixed: float [M, N] to [N].

    Σ over sizes of c/(c − 1) Σ_p rest_p (a_p − mean of the size)², c pairs of that size; a lone pair counts a_p².
    """
    room = a.shape[1] + 1
    small = jnp.where(pair, jnp.minimum(size, n - size).astype(jnp.int32), 0)
    count = jnp.zeros(room, a.dtype).at[small].add(pair.astype(a.dtype))
    mean = jnp.zeros((room, a.shape[1]), a.dtype).at[small].add(jnp.where(pair[:, None], a, 0))
    mean = mean / jnp.maximum(count, 1)[:, None]
    several = count[small] > 1
    apart = jnp.where(several[:, None], a - mean[small], a) ** 2
    factor = jnp.where(several, count[small] / jnp.maximum(count[small] - 1, 1), 1) * rest
    return jnp.where(pair[:, None], apart * factor[:, None], 0).sum(0)


def even_polynomials(u: jax.Array, n: jax.Array, room: int, degree: int) -> list[jax.Array]:
    """p_1 ~ u², p_2 ~ u⁴, orthogonal to 1 and to each other over the sizes 1 to n − 1, of unit variance there."""
    sizes = jnp.arange(room + 1, dtype=u.dtype)
    inner = (sizes > 0) & (sizes < n)
    grid = 2 * sizes / n - 1

    def mean(a: jax.Array) -> jax.Array:
        return jnp.where(inner, a, 0).sum() / jnp.maximum(n - 1, 1)

    on_grid: list[jax.Array] = []
    out: list[jax.Array] = []
    for k in range(1, degree + 1):
        a, b = grid ** (2 * k), u ** (2 * k)
        centre = mean(a)
        a, b = a - centre, b - centre
        for earlier, at in zip(on_grid, out, strict=True):
            slope = mean(a * earlier)
            a, b = a - slope * earlier, b - slope * at
        sd = jnp.sqrt(mean(a * a))
        sd = jnp.where(sd > 1e-6, sd, jnp.inf)  # fewer sizes than polynomials: the regressor is 0
        on_grid.append(a / sd)
        out.append(b / sd)
    return out


def odd_hats(u: jax.Array, terms: jax.Array) -> jax.Array:
    """Piecewise linear functions of |u| with `terms` knots in [0, 1), times the sign of u: float [M, SIZE_TERMS]."""
    knot = jnp.arange(SIZE_TERMS, dtype=u.dtype)[None]
    hat = jnp.maximum(0, 1 - jnp.abs(jnp.abs(u)[:, None] * terms - knot))
    return jnp.where(knot < terms, jnp.sign(u)[:, None] * hat, 0)
