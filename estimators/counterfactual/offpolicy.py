"""Off-policy counterfactual messages: siblings under one frozen context, drawn from another policy than the one judged.

What a context is worth to the target policy π_e is V = Σ_a π_e(a) Q(a), over its alternatives a. The log has draws of
π_b instead, with their weights w = π_e(a) / π_b(a) (`estimators.counterfactual.alternatives`). A log can fail to hold
the answer, and every failure has its own reason: `policy_value` lists them.
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from estimators.base import Credit, Reason, check_event_array, finish
from estimators.counterfactual.alternatives import Drawn, Draws, drawn
from estimators.options import checked_options
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_mean, segment_sum

__all__ = ["INTERVAL_ESS", "Estimator", "PolicyValue", "off_policy", "policy_value"]

Estimator = Literal["snips", "doubly_robust", "switch"]

INTERVAL_ESS = 50.0
"""Fewer effective draws than this give no normal interval."""


class PolicyValue(NamedTuple):
    """What a context is worth to the target policy; arrays [E], one entry for each context id.

    Attributes:
      value: V; 0 where refused.
      stderr: its standard error; infinite where refused.
      freedom: degrees of freedom of that error, which few draws with large weights leave uncertain.
      ess: effective sample size (Σ w)² / Σ w² of the draws.
      draws: how many there are.
      covered: the part of π_e on alternatives that π_b could draw, as far as the log shows it.
      reason: int8, a `Reason` code; 0 means valid.
    """

    value: jax.Array
    stderr: jax.Array
    freedom: jax.Array
    ess: jax.Array
    draws: jax.Array
    covered: jax.Array
    reason: jax.Array

    @property
    def valid(self) -> jax.Array:
        """bool [E], False where there is no answer; `reason` says why."""
        return self.reason == Reason.VALID

    def interval(self, level: float | Array = 0.95) -> tuple[jax.Array, jax.Array]:
        """The lower and the upper end of an interval that covers V with probability `level`; infinite where refused.

        value ± t stderr, with the quantile t of Student's distribution with `freedom` (expanded in its inverse).
        """
        z = ndtri(0.5 + 0.5 * jnp.asarray(level, self.value.dtype))
        tail = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        inverse = safe_divide(jnp.ones_like(self.freedom), self.freedom)
        reach = self.stderr * (z + inverse * (tail[0] + inverse * (tail[1] + inverse * tail[2])))
        return self.value - reach, self.value + reach


@checked_options
@functools.partial(jax.jit, static_argnames=("estimator", "draws"))
def policy_value(
    graph: EventGraph,
    reward: Array,
    *,
    context: Array,
    node: Array,
    propensity: Array,
    target_propensity: Array,
    target_support: Array | None = None,
    q_value: Array | None = None,
    target_value: Array | None = None,
    estimator: Estimator = "doubly_robust",
    draws: Draws = "trace",
    threshold: float | Array | None = None,
    min_ess: float | Array = INTERVAL_ESS,
    min_ess_fraction: float | Array = 0.1,
    unseen: float | Array = 0.01,
) -> PolicyValue:
    """What each context is worth to the target policy, V = Σ_a π_e(a) Q(a), from draws of another policy.

    With n draws of weight w_i = π_e(a_i) / π_b(a_i), and a model m of the outcomes with V_m = Σ_a π_e(a) m(a):

        "snips"          Σ w_i R_i / Σ w_i                       bias O(1/ESS); no model
        "doubly_robust"  mean of V_m + w_i (R_i − m(a_i))         unbiased, whatever the model
        "switch"         without the second part where w_i > τ    less variance, biased by the model's error there

    The model is `q_value` with `target_value`, if logged. Otherwise it is the mean outcome of the *other* draws of the
    alternative, and for one that nobody else drew, the others' SNIPS: no draw is judged by a model that has seen it.
    With that model "switch" concerns alternatives drawn once only, since the others are their own model.

    The error is that of a mean of independent draws (a jackknife for "snips"); its degrees of freedom follow from how
    heavy the tails of the draws' parts in it are, 2n / (kurtosis − 1). For "switch", the share of the weight that rests
    on the model, times the model's root mean squared residual, is added in quadrature: its interval covers while the
    model is no worse there than elsewhere.

    Refused, by `Reason`: NO_EVIDENCE, a target probability or a model value is missing; CONTEXTS_DIFFER, a node occurs
    under two contexts, or a context in two tasks; CONTRADICTION, probabilities of one node differ, or those of a
    context sum to more than 1; NO_OVERLAP, a propensity is missing, 0 or 1; NO_SIBLING, one alternative; NO_SUPPORT;
    LOW_ESS.

    Args:
      graph, reward, context, node: as in `estimators.c3`.
      propensity: float [E], π_b of the chosen alternative; one behaviour policy a context.
      target_propensity: float [E], π_e of the chosen alternative; 0 is allowed.
      target_support: float [E], the target's mass on all alternatives that π_b could draw; 1 where π_b was sampled
        without truncation. Where it is absent, the alternatives that were drawn must hold all but `unseen` of π_e.
      q_value: float [E], a model's value of the chosen alternative; comes with `target_value`.
      target_value: float [E], that model's mean over all alternatives under π_e.
      estimator: as above.
      draws: "trace", every trace drew its alternative afresh; "node", an alternative was drawn once and then replayed:
        its traces are one draw, with the node's value (`estimators.counterfactual.replays`).
      threshold: τ. Default: the square root of the number of draws.
      min_ess, min_ess_fraction: the smallest effective sample size, in draws and as a part of the draws.
      unseen: the largest part of π_e that need not be covered.

    Raises:
      TypeError, ValueError: wrong dtypes, shapes or options, at trace time; `q_value` without `target_value`.

    Reference: Swaminathan and Joachims 2015 (SNIPS); Dudík, Langford and Li 2011, arXiv:1103.4601; Wang, Agarwal and
    Dudík 2017, arXiv:1612.01205 (SWITCH).
    """
    d = drawn(graph, reward, context, node, propensity, target_propensity, target_support, draws, unseen)
    found, known = _estimate(graph, d, q_value, target_value, estimator, threshold)
    reason = d.refusal(known, min_ess, min_ess_fraction)
    valid = reason == Reason.VALID
    return PolicyValue(
        value=jnp.where(valid, d.reference + found.value, jnp.zeros_like(found.value)),
        stderr=jnp.where(valid, found.stderr, jnp.full_like(found.value, jnp.inf)),
        freedom=found.freedom,
        ess=d.ess,
        draws=d.drawn,
        covered=d.covered,
        reason=reason.astype(jnp.int8),
    )


@checked_options
@functools.partial(jax.jit, static_argnames=("estimator", "draws"))
def off_policy(
    graph: EventGraph,
    reward: Array,
    *,
    context: Array,
    node: Array,
    propensity: Array,
    target_propensity: Array,
    target_support: Array | None = None,
    q_value: Array | None = None,
    target_value: Array | None = None,
    event_reward: Array | None = None,
    estimator: Estimator = "doubly_robust",
    draws: Draws = "trace",
    threshold: float | Array | None = None,
    min_ess: float | Array = 1.0,
    min_ess_fraction: float | Array = 0.1,
    unseen: float | Array = 0.01,
) -> Credit:
    """The value of the chosen alternative against what the context is worth to the target policy: Q(h, a) − V(h).

    `credit` is the mean outcome of the alternative, `baseline` an estimate of V from the siblings without the event's
    own draw: for "snips", and for "doubly_robust" and "switch" with a logged model, the same estimator on the others;
    with the model made of siblings, that model's V_m, fitted on the others. It is the increment of the decision under
    π_e, so its mean is zero under π_e, not under the policy that acted: a policy gradient from it still needs the
    weight π_e / π_b of the event.

    Args:
      event_reward: not used; the outcome of a leaf is its reward.
      min_ess: 1 never refuses: a few siblings make a noisy credit, not a wrong one.
      The rest: as in `policy_value`.

    Returns:
      `Credit` at level "event", estimand "increment". `stderr` counts the outcomes that credit and baseline share; it
      is infinite for a single replay, and below `INTERVAL_ESS` effective draws. An event is invalid, with LOW_ESS,
      where "snips" would compare it with siblings that π_e never chooses.

    Raises and reference: as in `policy_value`.
    """
    del event_reward
    d = drawn(graph, reward, context, node, propensity, target_propensity, target_support, draws, unseen)
    found, known = _estimate(graph, d, q_value, target_value, estimator, threshold)
    of, at, n = d.tree.context, d.tree.node, graph.num_events
    mine = d.at  # the draw that an event belongs to
    replays = segment_count(at, n, d.tree.row, d.outcome.dtype)
    deviation = jnp.where(d.tree.row, d.trace_outcome - d.own[at], jnp.zeros_like(d.outcome))
    own = safe_divide(segment_sum(deviation**2, at, n, d.tree.row), replays * (replays - 1))
    shared = segment_sum(jnp.where(d.there, deviation * found.influence, 0), at, n) if draws == "trace" else 0 * own
    variance = own[at] + found.stderr[of] ** 2 - 2 * safe_divide(shared, replays)[at]
    stated = (replays[at] > 1) & (d.ess[of] >= INTERVAL_ESS)
    reason = d.refusal(known, min_ess, min_ess_fraction)[of]
    untold = (reason == Reason.VALID) & ~found.told[mine]
    reason = jnp.where(d.tree.row, jnp.where(untold, Reason.LOW_ESS, reason), Reason.NO_EVIDENCE)
    return finish(
        graph,
        credit=d.reference[of] + d.own[at],
        baseline=d.reference[of] + found.without[mine],
        scale=jnp.ones_like(d.outcome),
        stderr=jnp.where(stated, safe_sqrt(jnp.where(stated, variance, 0)), jnp.inf),
        reason=reason,
        unit="event",
        estimand="increment",
        source="off_policy",
        centred=False,
        own_outcome=True,
    )


class _Estimate(NamedTuple):
    """V by context, its error, degrees of freedom; by draw, how much it moved V, V without it, and if others tell."""

    value: jax.Array
    stderr: jax.Array
    freedom: jax.Array
    influence: jax.Array
    without: jax.Array
    told: jax.Array


def _estimate(
    graph: EventGraph,
    d: Drawn,
    q_value: Array | None,
    target_value: Array | None,
    estimator: Estimator,
    threshold: float | Array | None,
) -> tuple[_Estimate, jax.Array]:
    """The estimate of each context, and whether its model is known, bool by context."""
    n, of, at, y, w = graph.num_events, d.tree.context, d.tree.node, d.outcome, d.weight

    def total(values: jax.Array) -> jax.Array:
        return segment_sum(values, of, n, d.there)

    def freedom(influence: jax.Array) -> jax.Array:
        squares = influence**2
        kurtosis = safe_divide(d.drawn * total(squares**2), total(squares) ** 2)
        return safe_divide(2 * d.drawn, jnp.maximum(kurtosis - 1, 1e-3))

    known = jnp.ones(n, bool)
    weights, sums = total(w), total(w * y)
    rest = weights[of] - w
    others = safe_divide(sums[of] - w * y, rest)  # SNIPS without the draw
    told = rest > 0
    if estimator == "snips":
        value = safe_divide(sums, weights)
        influence = safe_divide(w * (y - value[of]), rest)
        variance = safe_divide(d.drawn - 1, d.drawn) * total(influence**2)
        return _Estimate(value, safe_sqrt(variance), freedom(influence), influence, others, told), known
    if estimator not in ("doubly_robust", "switch"):
        raise ValueError(f"estimator is {estimator!r}; expected 'snips', 'doubly_robust' or 'switch'")

    others = jnp.where(told, others, safe_divide(total(y)[of] - y, d.drawn[of] - 1))
    if (q_value is None) != (target_value is None):
        raise ValueError("q_value and target_value come together: a model, and its mean under the target policy")
    if q_value is not None and target_value is not None:
        q, has_q = check_event_array(graph, "q_value", q_value)
        mean, has_mean = check_event_array(graph, "target_value", target_value)
        known = segment_count(of, n, d.there & ~(has_q & has_mean)) < 1
        model, expected = (x.astype(y.dtype) - d.reference[of] for x in (q, mean))
        self_taught = jnp.zeros(n, bool)
    else:
        k = segment_count(at, n, d.there, y.dtype)[at]
        average = segment_mean(y, at, n, d.there)
        self_taught = k > 1
        model = jnp.where(self_taught, average[at] - safe_divide(y - average[at], k - 1), others)
        target = d.target[d.tree.first]
        seen = segment_sum(target, d.tree.context_of, n, d.tree.there)
        fitted = segment_sum(target * average, d.tree.context_of, n, d.tree.there)
        # What this draw taught its alternative is taken back; what nobody drew takes the fallback.
        expected = fitted[of] + d.target * (model - average[at]) + (1 - seen[of]) * others
    residual = w * (y - model)
    unsure = jnp.zeros_like(weights)
    if estimator == "switch":
        limit = jnp.sqrt(d.drawn)[of] if threshold is None else threshold
        left_out = d.there & (w > limit) & ~self_taught
        spread = safe_divide(total((y - model) ** 2), d.drawn)
        unsure = jnp.minimum(safe_divide(total(jnp.where(left_out, w, 0)), d.drawn), 1) ** 2 * spread
        residual = jnp.where(left_out, 0, residual)
    score = expected + residual
    value = safe_divide(total(score), d.drawn)
    influence = safe_divide(score - value[of], d.drawn[of])
    if q_value is None:
        # Alternatives drawn k times have the weight π_e / k, whatever their propensity: their error goes by k, too.
        within = safe_divide(d.target, k) * (y - model) * safe_sqrt(safe_divide(k - 1, k))
        between = safe_divide(expected - value[of], d.drawn[of])
        influence = jnp.where(self_taught, within + between, influence)
    variance = safe_divide(d.drawn, d.drawn - 1) * total(influence**2) + unsure
    without = expected if q_value is None else safe_divide(total(score)[of] - score, d.drawn[of] - 1)
    return _Estimate(value, safe_sqrt(variance), freedom(influence), influence, without, jnp.ones(n, bool)), known
