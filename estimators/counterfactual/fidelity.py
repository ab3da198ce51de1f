"""Measures of counterfactual credit: its fidelity, and the influence of a message on later events.

They compare alternatives of contexts, not traces: arrays over alternatives [N], or over their replays.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from estimators.relative_mean import mean_from_first, relative_to_first
from graphs.event_graph import Array
from graphs.floats import at_least_float32
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_sum

__all__ = ["influence", "rank_correlation", "weighted_leave_one_out"]


@jax.jit
def weighted_leave_one_out(
    values: Array, weights: Array, context: Array | None = None, where: Array | None = None
) -> jax.Array:
    """Each alternative's value against the mean of the others of its context, weighted by their replays: float [N].

    A_j = v_j − (Σ_k w_k v_k − w_j v_j) / (Σ_k w_k − w_j); 0 where no other one has weight. `estimators.c3` weighs
    alternatives equally instead, as the training code does; both are unbiased where replays do not depend on outcomes.

    Args:
      values, weights: float [N], mean outcome of each alternative and the number of its replays.
      context: int [N] in [0, N), alternatives of one context are compared. Default: all are of one.
      where: bool [N], alternatives that count. Default: all.

    Reference: C3 `c3/analysis/metrics.py` at 628185b, executed, golden `c3_analysis_metrics`.

    Examples:
      >>> import jax.numpy as jnp
      >>> weighted_leave_one_out(jnp.array([1.0, 0.0, 0.5]), jnp.array([1.0, 1.0, 3.0])).tolist()
      [0.625, -0.625, 0.0]
    """
    v, w, of, mask = _alternatives(values, weights, context, where)
    num = v.shape[0]
    rest = segment_sum(w, of, num, mask)[of] - w
    v = relative_to_first(v, of, num, mask)[1]  # equal values differ by exactly 0
    others = safe_divide(segment_sum(w * v, of, num, mask)[of] - w * v, rest)
    return jnp.where(mask & (rest > 0), v - others, jnp.zeros_like(v))


@jax.jit
def rank_correlation(x: Array, y: Array, where: Array | None = None) -> jax.Array:
    """Spearman's correlation of two numbers per alternative, ties at their average rank; 0 where one is constant.

    C3 calls it fidelity, x being the credit and y what replays say it should be: their mean outcome minus that of the
    context.

    Args:
      x, y: float [N].
      where: bool [N], entries that count. Default: all.

    Reference: C3 `c3/analysis/metrics.py` at 628185b, executed, golden `c3_analysis_metrics`.

    Examples:
      >>> import jax.numpy as jnp
      >>> round(float(rank_correlation(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 4.0, 9.0]))), 3)
      1.0
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    mask = jnp.ones(x.shape, bool) if where is None else jnp.asarray(where)
    a, b = _ranks(x, mask), _ranks(y, mask)
    zeros = jnp.zeros(x.shape, jnp.int32)
    a, b = (jnp.where(mask, r - mean_from_first(r, zeros, 1, mask)[0], 0) for r in (a, b))
    return safe_divide(jnp.sum(a * b), safe_sqrt(jnp.sum(a * a) * jnp.sum(b * b)))


@jax.jit
def influence(counts: Array, smoothing: float | Array = 1.0) -> jax.Array:
    """The information of the choice among alternatives about the next action, I(alternative; next action) in nats.

    With n_j replays of alternative j, of which n_jy were followed by the action y, and M symbols,

        p(j) = n_j / Σ n      p(y | j) = (n_jy + s) / (n_j + s M)      I = Σ_j p(j) Σ_y p(y | j) log(p(y | j) / p(y))

    Args:
      counts: float or int [J, M], n_jy. C3 keeps the 64 most frequent actions and one symbol for all others: leave that
        column in, also where it is 0.
      smoothing: s.

    Reference: C3 `c3/analysis/metrics.py` at 628185b, executed, golden `c3_analysis_metrics`.

    Examples:
      >>> import jax.numpy as jnp
      >>> same = jnp.array([[5.0, 5.0], [5.0, 5.0]])
      >>> round(abs(float(influence(same))), 3), float(influence(jnp.array([[10.0, 0.0], [0.0, 10.0]]))) > 0.4
      (0.0, True)
    """
    n = jnp.asarray(counts)
    n = at_least_float32(n)
    replays = jnp.sum(n, axis=1)
    alternative = safe_divide(replays, jnp.sum(replays)[None])
    action = safe_divide(n + smoothing, (replays + smoothing * n.shape[1])[:, None])
    marginal = jnp.sum(alternative[:, None] * action, axis=0)[None]
    present = (action > 0) & (marginal > 0)
    ratio = jnp.log(jnp.where(present, action, 1) / jnp.where(present, marginal, 1))
    return jnp.sum(alternative[:, None] * action * ratio)


def _alternatives(
    values: Array, weights: Array, context: Array | None, where: Array | None
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    v, w = jnp.asarray(values), jnp.asarray(weights)
    v = at_least_float32(v)
    mask = jnp.ones(v.shape, bool) if where is None else jnp.asarray(where)
    of = jnp.zeros(v.shape, jnp.int32) if context is None else jnp.asarray(context)
    zero = jnp.zeros_like(v)
    return jnp.where(mask, v, zero), jnp.where(mask, w.astype(v.dtype), zero), of, mask


def _ranks(x: jax.Array, mask: jax.Array) -> jax.Array:
    """1 for the least; equal values share the mean of their ranks."""
    n = x.shape[0]
    order = jnp.lexsort((x, ~mask))
    ranked = x[order]
    new = jnp.concatenate([jnp.zeros(1, bool), ranked[1:] > ranked[:-1]])
    run = jnp.cumsum(new.astype(jnp.int32), dtype=jnp.int32)
    place = jnp.arange(1, n + 1).astype(at_least_float32(x).dtype)
    mean = safe_divide(segment_sum(place, run, n, mask[order]), segment_count(run, n, mask[order], place.dtype))
    return jnp.zeros_like(place).at[order].set(mean[run])
