"""Shares from evaluated coalitions: one door for every plan, and the kernels for enumerations and walks."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from estimators.shapley.few_samples import mean_and_variance, student
from estimators.shapley.interactions import solve_interactions
from estimators.shapley.pairs import solve_pairs
from estimators.shapley.plan import Plan
from estimators.shapley.unit_shares import Shares
from graphs.errors import CreditError
from graphs.event_graph import Array
from graphs.floats import floating
from graphs.segment import safe_divide, safe_sqrt

__all__ = ["mean_of_marginals", "relative_values", "solve"]


def solve(
    plan: Plan,
    values: Array,
    *,
    empty: Array | None = None,
    full: Array | None = None,
    noise: Array | float = 0.0,
    above: Array | None = None,
    degrees: tuple[int, ...] = (0, 1),
    interactions: bool = False,
) -> Shares:
    """Shapley values of the game whose coalitions were evaluated, with standard errors.

        φ_i = Σ_{S without i} |S|! (n − |S| − 1)! / n! (v(S + i) − v(S))

    Args:
      plan: what was evaluated.
      values: float [C], the value of each row of `plan.coalitions`; padding may hold anything. A value that is not
        finite means "not evaluated" and makes all shares NaN, because the affected units are unknown. Pass values that
        differ by little for their size as a NumPy array of float64: `relative_values` keeps their differences.
      empty, full: v(∅) and v(N) where known, for example the realised reward: shares are then conditional on it, and
        the noise of the endpoints does not enter.
      noise: standard error of the values, one number or float [C]. Used by "exact" only, whose values do not repeat.
        The total has the noise of the endpoints that are not given.
      above: bool [N, N], "pairs" only: row i marks unit i and its ancestors in the spawn forest. See `solve_pairs`.
      degrees: "pairs" only: see `solve_pairs`.
      interactions: "pairs" only, values without noise: fits interactions too, see `solve_interactions`; then `degrees`
        and `above` are not used, and shares are not linear in `values`.

    Returns:
      `Shares`.

    Raises:
      CreditError: wrong dtypes or shapes, or `interactions` for values that repeat differently, at trace time.

    Examples:
      >>> import jax.numpy as jnp
      >>> from estimators.shapley import plan_exact
      >>> shares = solve(plan_exact(2), jnp.array([0.0, 0.5, 0.25, 1.0]))  # v of {}, {0}, {1}, {0, 1}
      >>> shares.share.tolist(), float(shares.total)
      ([0.625, 0.375], 1.0)
    """
    values, empty, full = relative_values(plan, values, empty, full)
    shares: Shares = _solve(plan, values, empty, full, noise, above, degrees=degrees, interactions=interactions)
    return shares


def relative_values(
    plan: Plan, values: Array, empty: Array | None, full: Array | None
) -> tuple[Array, Array | None, Array | None]:
    """Values less their mean, and both endpoints less the same: a constant changes no share.

    It is taken away on the host in double precision, where it hides no difference as it does in single precision.
    Arrays of JAX, and of NumPy in single precision, have lost what they lose and stay as they are; so do values of
    which the difference would be no float32.

    Args:
      plan: one plan, or several with a leading axis.
      values: float [..., C].
      empty, full: float [...], v(∅) and v(N), or None.

    Examples:
      >>> import numpy as np
      >>> from estimators.shapley import plan_exact
      >>> values, empty, _ = relative_values(plan_exact(1), np.array([1e12, 1e12 + 1]), np.float64(1e12), None)
      >>> values.tolist(), float(empty)
      ([-0.5, 0.5], -0.5)
    """
    if any(isinstance(array, jax.core.Tracer) for array in (values, plan.row_mask, empty, full)):
        return values, empty, full
    if not isinstance(values, jax.Array):
        values = np.asarray(values)
    used = np.asarray(plan.row_mask)
    if isinstance(values, jax.Array) or values.dtype != np.float64 or values.shape != used.shape:
        return values, empty, full
    used = used & np.isfinite(values)
    with np.errstate(over="ignore", invalid="ignore"):
        level = np.where(used, values, 0).sum(-1) / np.maximum(used.sum(-1), 1)
        moved = values - level[..., None]
        low, high = (None if end is None else np.asarray(end, np.float64) - level for end in (empty, full))
        sizes = [np.abs(x).max(initial=0) for x in (moved[used], low, high) if x is not None]
    fits = bool(np.all(np.array(sizes) <= np.finfo(np.float32).max))
    return (moved, low, high) if fits else (values, empty, full)


@functools.partial(jax.jit, static_argnames=("degrees", "interactions"))
def _solve(
    plan: Plan,
    values: Array,
    empty: Array | None,
    full: Array | None,
    noise: Array | float,
    above: Array | None,
    *,
    degrees: tuple[int, ...],
    interactions: bool,
) -> Shares:
    values = floating("values", values)
    if values.shape != plan.row_mask.shape:
        raise CreditError(f"values has shape {values.shape}; expected {plan.row_mask.shape}, one for each coalition")
    if interactions and plan.method == "pairs" and plan.noisy:
        raise CreditError("interactions are fitted to values without noise; expected a plan made with noisy=False")
    missing = jnp.any(plan.row_mask & ~jnp.isfinite(values))
    v = jnp.where(plan.row_mask & jnp.isfinite(values), values, 0)
    unit = jnp.asarray(plan.unit_mask)
    units = unit.sum(dtype=jnp.int32)
    ends = tuple(None if known is None else jnp.asarray(known, v.dtype) for known in (empty, full))
    down, up = _powers_of_two(plan, v, ends)
    v, (empty, full) = v * down, (None if known is None else known * down for known in ends)
    low, low_var, low_repeats = _endpoint(plan, v, empty, at=0)
    high, high_var, high_repeats = _endpoint(plan, v, full, at=units)
    missing |= ~jnp.isfinite(low) | ~jnp.isfinite(high)  # an endpoint neither given nor evaluated
    total_variance = jnp.zeros_like(low)
    if plan.method == "exact":
        of_row = _noise_of_rows(plan, units, empty is not None, full is not None, jnp.asarray(noise, v.dtype) * down)
        share, variance = _enumeration(plan, v, low, high, of_row)
        outer = (_size(plan) == 0) | (_size(plan) == units)
        total_variance = jnp.where(outer, of_row**2, 0).sum()
    elif plan.method == "walks":
        v = jnp.where(_size(plan) == 0, low, jnp.where(_size(plan) == units, high, v))
        share, variance = _walks(plan, v)
    elif interactions:
        share, variance = solve_interactions(plan, v, high - low)
        missing |= ~jnp.all(jnp.isfinite(share) & ~jnp.isnan(variance))
    else:
        share, variance, freedom, noise_of_value = solve_pairs(plan, v, high - low, above=above, degrees=degrees)
        share_of_end = 1 / jnp.maximum(units, 1).astype(v.dtype) ** 2
        ends_variance, unsure = jnp.zeros_like(low), safe_divide(variance**2, freedom)
        for end_variance, repeats in ((low_var, low_repeats), (high_var, high_repeats)):
            of_end = _with_two_more(end_variance, repeats, noise_of_value) * share_of_end
            ends_variance, unsure = ends_variance + of_end, unsure + of_end**2 / (repeats + 1)
        variance = variance + ends_variance
        # Satterthwaite's degrees of freedom of a sum of variances.
        known = jnp.isfinite(variance) & (unsure > 0)
        variance = variance * student(jnp.where(known, safe_divide(variance**2, unsure), jnp.inf)) ** 2
        # The noise of a single noisy endpoint is unknown; take that of the other values.
        low_var = jnp.where(jnp.isnan(low_var), noise_of_value, low_var)
        high_var = jnp.where(jnp.isnan(high_var), noise_of_value, high_var)
        missing |= ~jnp.all(jnp.isfinite(share) & ~jnp.isnan(variance))  # a regression that the pairs do not determine
        total_variance = low_var + high_var
    nan = jnp.asarray(jnp.nan, v.dtype)
    return Shares(
        share=jnp.where(unit, jnp.where(missing, nan, share * up), 0),
        stderr=jnp.where(unit, jnp.where(missing, jnp.inf, safe_sqrt(variance) * up), 0),
        unit_mask=unit,
        total=jnp.where(missing, nan, (high - low) * up),
        total_stderr=jnp.where(missing, jnp.inf, safe_sqrt(total_variance) * up),
        evaluations=jnp.asarray(plan.row_mask).sum(dtype=jnp.int32),
    )


def mean_of_marginals(marginals: Array, *, antithetic: bool) -> tuple[jax.Array, jax.Array]:
    """Mean over orders of what each unit added, and the squared error of that mean: float [W, N] to [N], [N].

    With `antithetic` rows 2k and 2k + 1 are one sample. The error is that of `mean_and_variance`, infinite from one
    sample. For simulators that can tell what each unit adds along an order without a list of coalitions.

    Args:
      marginals: of each order and unit.
      antithetic: whether each order comes with its reverse.

    Examples:
      >>> import jax.numpy as jnp
      >>> mean, square = mean_of_marginals(jnp.array([[1.0, 0.0], [0.0, 1.0]]), antithetic=False)
      >>> mean.tolist(), square.round(2).tolist()
      ([0.5, 0.5], [0.65, 0.65])
    """
    if antithetic:
        marginals = marginals.reshape(-1, 2, marginals.shape[-1]).mean(1)
    return mean_and_variance(marginals, jnp.ones(marginals.shape[0], bool), jnp.ones(marginals.shape[1], bool))


def _powers_of_two(plan: Plan, v: jax.Array, ends: tuple[jax.Array | None, ...]) -> tuple[jax.Array, jax.Array]:
    """2⁻ᵏ and 2ᵏ, with which the spread of the values is between 1/2 and 1, and 1 where there is none.

    The kernels square variances, and single precision holds no fourth power of 1e12 or of 1e-12. A power of two changes
    no digit. It is bounded by the exponents of normal floats, which processors do not flush to 0.
    """
    used = jnp.asarray(plan.row_mask)
    known = [end for end in ends if end is not None]
    most = jnp.stack([jnp.where(used, v, -jnp.inf).max(), *known]).max() / 2
    least = jnp.stack([jnp.where(used, v, jnp.inf).min(), *known]).min() / 2
    spread = jax.lax.stop_gradient(most - least)
    info = np.finfo(v.dtype)
    exponent = jnp.where(jnp.isfinite(spread) & (spread > 0), jnp.frexp(spread)[1] + 1, 0)
    exponent = jnp.clip(exponent, 8 - info.maxexp, info.maxexp - 8)
    one = jnp.ones((), v.dtype)
    return jnp.ldexp(one, -exponent), jnp.ldexp(one, exponent)


def _size(plan: Plan) -> jax.Array:
    return jnp.asarray(plan.coalitions).sum(1, dtype=jnp.int32)


def _endpoint(
    plan: Plan, v: jax.Array, known: Array | None, *, at: Array | int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean of the rows of an endpoint, its variance, and how many noisy rows there are.

    The variance is NaN from a single noisy row, and 0 where the endpoint is known or not noisy.
    """
    if known is not None:
        return jnp.asarray(known, v.dtype), jnp.zeros((), v.dtype), jnp.zeros((), v.dtype)
    here = jnp.asarray(plan.row_mask) & (_size(plan) == at)
    count = here.sum().astype(v.dtype)
    mean = safe_divide(jnp.where(here, v, 0).sum(), count)
    squares = jnp.where(here, (v - mean) ** 2, 0).sum()
    once = jnp.asarray(jnp.nan if plan.noisy else 0.0, v.dtype)
    variance = jnp.where(count > 1, safe_divide(squares, count * (count - 1)), once)
    repeats = count if plan.noisy else jnp.zeros_like(count)
    return jnp.where(count > 0, mean, jnp.nan), jnp.where(count > 0, variance, jnp.inf), repeats


def _with_two_more(variance: jax.Array, repeats: jax.Array, noise: jax.Array) -> jax.Array:
    """Variance of the mean of an endpoint as if two more of its values had the noise of the others: few that agree
    show none.
    """
    squares = jnp.where(repeats > 1, variance * repeats * (repeats - 1), 0) + 2 * noise
    return jnp.where(repeats > 0, safe_divide(squares, repeats * (repeats + 1)), 0)


def _noise_of_rows(plan: Plan, units: jax.Array, low_given: bool, high_given: bool, noise: jax.Array) -> jax.Array:
    """The standard error of each row as it is used, float [C]: 0 in padding, and at an endpoint that is given."""
    used = jnp.asarray(plan.row_mask)
    if low_given:
        used = used & (_size(plan) > 0)
    if high_given:
        used = used & (_size(plan) < units)
    stated = jnp.where(noise >= 0, noise, jnp.inf)  # NaN and numbers below 0 are no standard errors
    return jnp.where(used & (noise != 0), stated, jnp.zeros_like(noise))


def _enumeration(
    plan: Plan, v: jax.Array, low: jax.Array, high: jax.Array, noise: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Σ_S c_i(S) v(S), c_i = 1/(s C(n, s)) for i in S, −1/((n − s) C(n, s)) else; variance Σ σ_S² c_i(S)².

    Values are taken relative to v(∅), which changes no share, so that those of a game of equal values are exactly 0.
    """
    units, size = jnp.asarray(plan.unit_mask).sum(dtype=jnp.int32), _size(plan)
    v = jnp.where(size == 0, low, jnp.where(size == units, high, v)) - low
    n, s = units.astype(v.dtype), jnp.arange(plan.coalitions.shape[1] + 1, dtype=v.dtype)
    ratio = jnp.concatenate([jnp.ones(1, v.dtype), (n - s[1:] + 1) / s[1:]])
    choose = jnp.where(s <= n, jnp.cumprod(jnp.where(s <= n, ratio, 1)), 1)
    joins = jnp.where(s > 0, 1 / (jnp.maximum(s, 1) * choose), 0)[size]
    lacks = jnp.where(s < n, 1 / (jnp.maximum(n - s, 1) * choose), 0)[size]
    c = jnp.where(plan.coalitions, joins[:, None], -lacks[:, None])
    c = jnp.where(jnp.asarray(plan.row_mask)[:, None], c, 0)
    return v @ c, noise**2 @ (c**2)


def _walks(plan: Plan, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    along = v[plan.samples]
    added = jnp.take_along_axis(jnp.diff(along, axis=1), jnp.asarray(plan.ranks), axis=1)
    mask = jnp.asarray(plan.sample_mask)
    if plan.antithetic:
        added = added.reshape(-1, 2, added.shape[1]).mean(1)
        mask = mask.reshape(-1, 2).all(1)
    return mean_and_variance(added, mask, plan.unit_mask)
