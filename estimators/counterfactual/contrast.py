"""A decision against its alternative, from logs in which the policy took each of them with a known probability.

Spawn or not, stop or go on: after one prefix only one of the two happens, so the effect of a single decision is never
seen. Its mean over prefixes is, if the policy took either side with a probability that was logged. Everything here is
an array over decisions [N]; nothing knows about graphs, so that critics, worlds and readers can share it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Reason
from estimators.compared_ids import before_compiling, beyond, numbered
from estimators.relative_mean import mean_from_first
from graphs.errors import ArrayTypeError, CreditError
from graphs.event_graph import Array
from graphs.floats import floating
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_sum

__all__ = ["Contrast", "doubly_robust_contrast", "effective_size"]


class Contrast(NamedTuple):
    """The mean effect of a decision, and whether the log can tell it; arrays [S], one entry a segment.

    Attributes:
      effect: in units of the outcome; NaN where refused.
      stderr: its standard error; infinite where refused.
      ess: effective sample size of the smaller arm, n² / Σ 1 / propensity over all n decisions, however they fell.
      decisions: how many there are.
      reason: int8, a `Reason` code; 0 means valid.
      score: float [N], the contribution φ of each decision, whose mean is `effect`; NaN where refused, and at what is
        no decision.
    """

    effect: jax.Array
    stderr: jax.Array
    ess: jax.Array
    decisions: jax.Array
    reason: jax.Array
    score: jax.Array

    @property
    def valid(self) -> jax.Array:
        """bool [S], False where there is no answer; `reason` says why."""
        return self.reason == Reason.VALID


@before_compiling(cluster_ids=functools.partial(numbered, absent=False), segment_ids=beyond)
@functools.partial(jax.jit, static_argnames=("num_segments",))
def doubly_robust_contrast(
    outcome: Array,
    treated: Array,
    propensity: Array,
    value_treated: Array,
    value_control: Array,
    *,
    control: Array | None = None,
    propensity_control: Array | None = None,
    where: Array | None = None,
    segment_ids: Array | None = None,
    num_segments: int = 1,
    cluster_ids: Array | None = None,
    min_ess: float | Array = 50.0,
    min_ess_fraction: float | Array = 0.1,
) -> Contrast:
    """Mean of Q(h, treated) − Q(h, control) over the prefixes h at which the decision was made (AIPW).

        φ = m₁ − m₀ + 1[treated] (R − m₁) / π₁ − 1[control] (R − m₀) / π₀        effect = mean φ

    Unbiased before refusals, whatever the model m, since π₁ and π₀ are the policy's own; the better m, the smaller the
    error, down to the bound of every such estimator where m = Q. With m = 0 it is inverse propensity weighting. m must
    not have been fitted on the decision's own trace (cross-fit it), or the standard error is too small.

    An average over prefixes is an average over *these* prefixes. So one decision with a propensity of 0, 1 or none
    makes its whole segment refuse: leaving it out would answer for other prefixes, where the effect may have the other
    sign. Propensities must come from the policy; estimated ones cannot tell a policy that never had a choice.

    LOW_ESS looks at the propensities of all decisions, not at how they fell: so it does not select. An effective size
    of the decisions that fell one way is large where a rare side was never taken. A refusal by it left a bias of −0.18
    on an effect of 0.28 (300 decisions, of which a fifth has an effect of 0.6 and a propensity of 0.01 or 0.02).

    Args:
      outcome: float [N], R of the decision's trace.
      treated: bool [N], True where the decision fell that way (spawned, stopped).
      propensity: float [N], π₁, the probability of that at this prefix, whatever was then done; NaN where unknown.
      value_treated, value_control: float [N], m₁ and m₀, a model's R after either decision at this prefix.
      control: bool [N], True where the decision fell the other way. Default: wherever it is not `treated`.
      propensity_control: float [N], π₀, needed if there are further alternatives. Default: 1 − π₁.
      where: bool [N], which entries are decisions; what lies elsewhere is inert. Default: all.
      segment_ids, num_segments: int [N] in [0, num_segments): one answer for each segment. Default: one for all.
      cluster_ids: int [N], equal where decisions share their outcome, as those of one trace do; the standard error is
        then over clusters. Default: decisions are independent.
      min_ess: smallest effective sample size of either arm. Below some 50 a normal interval does not cover.
      min_ess_fraction: smallest effective size as a part of the decisions that the arm has on average.

    Returns:
      `Contrast`. Reasons: NO_EVIDENCE for an empty segment, an unknown outcome or model value; NO_OVERLAP; TOO_FEW
      where an arm is empty or there is one cluster; LOW_ESS.

    Raises:
      CreditError: dtypes or shapes, at trace time; exactly one of `control` and `propensity_control`.

    Reference: Robins, Rotnitzky and Zhao 1994; Dudík, Langford and Li 2011, arXiv:1103.4601.

    Examples:
      >>> import jax.numpy as jnp
      >>> outcome = jnp.array([1.0, 0.0] * 100)
      >>> spawned = jnp.array([True, False] * 100)
      >>> half, no_model = jnp.full(200, 0.5), jnp.zeros(200)
      >>> contrast = doubly_robust_contrast(outcome, spawned, half, no_model, no_model)
      >>> float(contrast.effect[0]), bool(contrast.valid[0])
      (1.0, True)
    """
    n = jnp.shape(outcome)[0]
    y = _floats("outcome", outcome, n)
    m1, m0 = _floats("value_treated", value_treated, n), _floats("value_control", value_control, n)
    p1 = _floats("propensity", propensity, n)
    took = _mask("treated", treated, n)
    if (control is None) != (propensity_control is None):
        raise CreditError("pass both control and propensity_control, or neither (two alternatives: π₀ = 1 − π₁)")
    left = ~took if control is None else _mask("control", control, n)
    p0 = 1 - p1 if propensity_control is None else _floats("propensity_control", propensity_control, n)
    decision_mask = jnp.ones(n, bool) if where is None else _mask("where", where, n)
    took, left = took & decision_mask, left & decision_mask
    segment = jnp.zeros(n, jnp.int32) if segment_ids is None else jnp.asarray(segment_ids)

    overlap = (p1 > 0) & (p1 < 1) & (p0 > 0) & (p0 < 1) & (p1 + p0 <= 1 + 1e-5)
    known = jnp.isfinite(m1) & jnp.isfinite(m0) & (jnp.isfinite(y) | ~(took | left))
    usable = decision_mask & overlap & known
    y, m1, m0 = (jnp.where(usable, x, jnp.zeros_like(x)) for x in (y, m1, m0))
    # m1 − m0 + (a/p1)(y − m1) − ((1 − a)/p0)(y − m0): right on average if the values or the propensities are right.
    inverse = jnp.where(took, 1 / jnp.where(usable, p1, 1), 1 / jnp.where(usable, p0, 1))
    residual = jnp.where(took, y - m1, jnp.where(left, m0 - y, jnp.zeros_like(y)))
    score = jnp.where(usable, m1 - m0 + residual * inverse, jnp.zeros_like(y))

    count = segment_count(segment, num_segments, decision_mask, y.dtype)
    effect = mean_from_first(score, segment, num_segments, decision_mask)
    clusters, squares = _between_clusters(score - effect[segment], segment, num_segments, cluster_ids, decision_mask)
    stderr = safe_sqrt(safe_divide(squares * safe_divide(clusters, clusters - 1), count**2))

    arms = [effective_size(chance, usable, segment, num_segments) for chance in (p1, p0)]
    size, effective = jnp.stack([mean for mean, _ in arms]), jnp.stack([ess for _, ess in arms])
    enough = jnp.all((effective >= min_ess) & (effective >= min_ess_fraction * size), axis=0)
    empty = jnp.any(jnp.stack([segment_count(segment, num_segments, arm) < 1 for arm in (took, left)]), axis=0)

    reason = jnp.where(enough, Reason.VALID, Reason.LOW_ESS)
    reason = jnp.where(empty | (clusters < 2), Reason.TOO_FEW, reason)
    reason = jnp.where(segment_count(segment, num_segments, decision_mask & ~overlap) > 0, Reason.NO_OVERLAP, reason)
    lacks = (segment_count(segment, num_segments, decision_mask & ~known) > 0) | (count < 1)
    reason = jnp.where(lacks, Reason.NO_EVIDENCE, reason).astype(jnp.int8)
    valid = reason == Reason.VALID
    return Contrast(
        effect=jnp.where(valid, effect, jnp.nan),
        stderr=jnp.where(valid, stderr, jnp.full_like(stderr, jnp.inf)),
        ess=jnp.min(effective, axis=0),
        decisions=count,
        reason=reason,
        score=jnp.where(decision_mask & valid[segment], score, jnp.nan),
    )


def _between_clusters(
    deviation: jax.Array, segment: jax.Array, num_segments: int, cluster_ids: Array | None, decision_mask: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The number of clusters of each segment and the sum of the squares of their summed deviations: float [S], [S]."""
    n = deviation.shape[0]
    if cluster_ids is None:
        cluster, of_cluster, is_cluster = jnp.arange(n, dtype=jnp.int32), segment, decision_mask
    else:
        cluster = pair_ids(segment, jnp.asarray(cluster_ids), decision_mask)
        of_cluster = segment[segment_first(cluster, n, decision_mask)]
        is_cluster = segment_count(cluster, n, decision_mask) > 0
    summed = segment_sum(deviation, cluster, n, decision_mask)
    clusters = segment_count(of_cluster, num_segments, is_cluster, deviation.dtype)
    return clusters, segment_sum(summed**2, of_cluster, num_segments, is_cluster)


def effective_size(
    chance: jax.Array, where: jax.Array, segment: jax.Array, num_segments: int
) -> tuple[jax.Array, jax.Array]:
    """The decisions that an arm has on average, and the effective size of their inverse propensities: float [S] both.

    For (Σ u)² / Σ u² with u = 1 / propensity, both sums at their means: n² / Σ 1 / propensity over all n decisions.

    Args:
      chance: float [N], the propensity of the arm.
      where: bool [N], decisions to count, whose propensity is above 0.
      segment, num_segments: int [N] in [0, num_segments).

    Examples:
      >>> import jax.numpy as jnp
      >>> mean, ess = effective_size(jnp.full(8, 0.25), jnp.ones(8, bool), jnp.zeros(8, int), 1)
      >>> mean.tolist(), ess.tolist()
      ([2.0], [2.0])
    """
    usable = jnp.where(where, chance, jnp.ones_like(chance))
    count = segment_count(segment, num_segments, where, chance.dtype)
    return (
        segment_sum(chance, segment, num_segments, where),
        safe_divide(count**2, segment_sum(1 / usable, segment, num_segments, where)),
    )


def _floats(name: str, values: Array, n: int) -> jax.Array:
    floats: jax.Array = floating(name, values)
    if floats.shape != (n,):
        raise CreditError(f"{name} has shape {floats.shape}; expected ({n},), one entry for each decision")
    return floats


def _mask(name: str, values: Array, n: int) -> jax.Array:
    mask: jax.Array = jnp.asarray(values)
    if mask.dtype != jnp.bool_ or mask.shape != (n,):
        raise ArrayTypeError(f"{name} is {mask.dtype} {mask.shape}; expected bool ({n},)")
    return mask
