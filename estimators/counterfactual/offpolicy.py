"""Off-policy counterfactual messages: siblings under one frozen context, drawn from another policy than the one judged.

What a context is worth to the target policy π_e is V = Σ_a π_e(a) Q(a), over its alternatives a. The log has draws of
π_b instead, with their weights w = π_e(a) / π_b(a) (`estimators.counterfactual.alternatives`). A log can fail to hold
the answer, and every failure has its own reason: `policy_value` lists them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, finish
from estimators.counterfactual.alternatives import DEVIATIONS, ROUNDING, Alternatives, Drawn, Refusals, drawn
from estimators.counterfactual.empirical_likelihood import least_mean, limits
from estimators.counterfactual.policy_estimates import Estimate, Evaluation, estimate
from estimators.counterfactual.replays import ids_by_group, leaf_returns
from estimators.options import checked_options, refuse_option
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_sum

__all__ = ["INTERVAL_ESS", "PolicyValue", "off_policy", "policy_value"]

INTERVAL_ESS = 50.0
"""With fewer effective draws than this no interval is given."""

EXPECTED = 5.0
"""Draws of an alternative that π_b makes on average, from which on it is a stratum of its own.

By its propensity, not by its count: a count would select draws, so that those of a stratum were no longer a sample."""


class Sample(NamedTuple):
    """The draws behind a `PolicyValue`, for its intervals; arrays [E], by draw or by context.

    Attributes:
      where: by draw, bool, the draws that count.
      outcome: by draw, float, y relative to `reference`.
      share: by draw, float: V is the sum over strata of the mean of share · y, if every stratum is drawn.
      stratum, context: by draw, int32.
      reference: by context, float.
      outcome_range: the least and the greatest possible outcome, or None.
    """

    where: jax.Array
    outcome: jax.Array
    share: jax.Array
    stratum: jax.Array
    context: jax.Array
    reference: jax.Array
    outcome_range: tuple[jax.Array, jax.Array] | None


class PolicyValue(NamedTuple):
    """The value of each context under the target policy; arrays [E], one entry for each context id.

    Attributes:
      value: float, V in units of reward; NaN where refused.
      stderr: float, its standard error in units of reward; infinite where refused, and where no draw differs from the
        others in its outcome, so that the draws show no error. Answers with a finite error are a selection by outcome.
      ess: float, effective sample size (Σ w)² / Σ w² of the draws.
      draws: float, the number of draws.
      covered: float, the part of π_e on alternatives that π_b could draw, as far as the log shows it.
      reason: int8, a `Reason` code; 0 means valid.
      sample: the draws, which `interval` needs.
    """

    value: jax.Array
    stderr: jax.Array
    ess: jax.Array
    draws: jax.Array
    covered: jax.Array
    reason: jax.Array
    sample: Sample

    @property
    def valid(self) -> jax.Array:
        """bool [E], False where there is no answer; `reason` says why."""
        return self.reason == Reason.VALID

    def interval(self, level: float | Array = 0.95) -> tuple[jax.Array, jax.Array]:
        """The lower and the upper end of an interval for V, float [E] each; infinite where refused.

        Both ends are lower limits of means that are not negative, of V − low and of high − V, with low and high the
        range of outcomes (`estimators.counterfactual.empirical_likelihood`). An outcome that no draw had, and an
        alternative that was never drawn, can be anything in that range. The interval is one of V: it does not depend on
        the estimator or its model. Where outcomes are rare, or the range is wider than the outcomes, it covers more
        often than `level`. Measured coverage: docs/off-policy.md.

        Args:
          level: the probability with which the interval is to cover V.

        Raises:
          CreditError: `policy_value` had no `outcome_range`. The draws do not show how large an outcome can be that
            none of them had.
        """
        if self.sample.outcome_range is None:
            raise CreditError(
                "interval: the range of outcomes is unknown; expected policy_value(..., outcome_range=(low, high)), "
                "the least and the greatest outcome that is possible, such as (0, 1)"
            )
        low, high = _interval(self, jnp.asarray(level, self.value.dtype))
        return low, high


@jax.jit
def _interval(result: PolicyValue, level: jax.Array) -> tuple[jax.Array, jax.Array]:
    s = result.sample
    assert s.outcome_range is not None
    least, most = (end.astype(s.outcome.dtype) for end in s.outcome_range)
    outcome = s.outcome + s.reference[s.context]

    def above(distance: jax.Array) -> jax.Array:
        draws = s.share * jnp.maximum(distance, 0), s.stratum, s.context, s.where
        return least_mean(*draws, limits(level, *draws))

    low, high = least + above(outcome - least), most - above(most - outcome)
    return jnp.where(result.valid, low, -jnp.inf), jnp.where(result.valid, high, jnp.inf)


@checked_options
def policy_value(
    graph: EventGraph,
    reward: Array,
    logged: Alternatives,
    *,
    event_reward: Array | None = None,
    outcome_range: tuple[float, float] | None = None,
    evaluation: Evaluation = Evaluation(),  # noqa: B008 - frozen
) -> PolicyValue:
    """The value of each context under the target policy, V = Σ_a π_e(a) Q(a), from draws of another policy.

    With n draws of weight w_i = π_e(a_i) / π_b(a_i), and a model m of the outcomes with V_m = Σ_a π_e(a) m(a):

        "snips"          Σ w_i R_i / Σ w_i                       bias O(1/ESS); no model
        "doubly_robust"  mean of V_m + w_i (R_i − m(a_i))         unbiased before refusals, whatever the model
        "switch"         without the second part where w_i > τ    less variance, biased by the model's error there

    The model is `logged.q_value` with `logged.target_value`, if given. Otherwise it is the mean outcome of the *other*
    draws of the alternative, and for an alternative without other draws the SNIPS estimate of the other draws. So no
    draw is judged by a model that has seen it. With that model, "switch" concerns alternatives drawn once only.

    `stderr` is that of a mean of independent draws (a jackknife for "snips"). For "switch", the share of the weight
    that rests on the model, times the model's root mean squared residual, is added in quadrature; with an
    `outcome_range`, so is half the range times the part of π_e that no draw stands for.

    Refusals look at weights, counts and probabilities, not at outcomes, but draws of large weight are refused more
    often. So the answers of draws that are refused often are biased towards what the other draws show. Measured in
    parts of the range, with free text whose weights are e^{N(−σ²/2, σ²)}: below 0.002 where 95 % or more of the
    contexts are answered, 0.007 at 80 %, 0.01 to 0.03 at 9 to 14 % (`benchmarks/off_policy_coverage.py`).
    Intervals allow for it: what the weights lack to 1 may have any outcome in the range.

    Refusals, by `Reason`, for a context:

        NO_EVIDENCE      a target probability or a model value is missing
        CONTEXTS_DIFFER  a node occurs under two contexts, a context in two groups, or a joint turn shares its draw in
                         some traces only
        CONTRADICTION    probabilities of one alternative differ, those of a context sum to more than 1, a node has two
                         alternatives, or the mean weight differs from 1 by more than its error although all of π_e was
                         drawn; all contexts, where an outcome lies outside `outcome_range`
        NO_OVERLAP       a propensity is missing, 0 or 1
        NO_SIBLING       one alternative
        NO_SUPPORT       part of π_e is not covered: by `target_support`, or by a mean weight below 1 by more than its
                         error; or one more draw, from the alternatives without a draw, would leave too few effective;
                         or, without `outcome_range`, no draw stands for more than `unseen` of π_e
        LOW_ESS          fewer effective draws than `evaluation.refusals` asks for

    Args:
      graph: uses the ids of traces and groups, and the masks.
      reward: float [T], the outcome of each trace in units of reward; NaN where unknown.
      logged: arrays [E], what was chosen among which alternatives, with what probabilities.
      event_reward: float [E], rewards at single events, which count as part of the outcome, or None. NaN counts as 0.
      outcome_range: the least and the greatest outcome that is possible, such as (0, 1), which `interval` needs. It is
        what the task allows, not what the log shows: where no draw had the great prize, the log does not show it.
      evaluation: the estimator, τ, and the limits of LOW_ESS and NO_SUPPORT. Without limits, 50
        effective draws are asked for, which intervals need.

    Returns:
      `PolicyValue`, arrays [E] by context id.

    Raises:
      CreditError: wrong dtypes or shapes, at trace time; `q_value` without `target_value`; a context of E or more in an
        array of NumPy, elsewhere such a context has no place in the result; `outcome_range` is not two finite numbers,
        the lesser first.

    Reference: Swaminathan and Joachims 2015 (SNIPS); Dudík, Langford and Li 2011, arXiv:1103.4601; Wang, Agarwal and
    Dudík 2017, arXiv:1612.01205 (SWITCH).

    Examples:
      >>> import numpy as np
      >>> from estimators import Alternatives
      >>> from graphs.worlds.siblings import overlapping_world
      >>> graph, reward, evidence = overlapping_world(1).sample(np.random.default_rng(0), contexts=1, draws=300)
      >>> result = policy_value(graph, reward, Alternatives(**evidence), outcome_range=(0, 1))
      >>> low, high = result.interval()
      >>> bool(result.valid[0]), bool(low[0] < result.value[0] < high[0])
      (True, True)
    """
    if isinstance(logged.context, np.ndarray) and logged.context.size and logged.context.max() >= graph.num_events:
        place, room = int(np.argmax(logged.context)), graph.num_events
        given = f"context is {logged.context[place]} at event {place}"
        raise CreditError(f"policy_value: {given}; expected an id below {room}, the place of its value, or -1")
    ends = None
    if outcome_range is not None:
        low, high = outcome_range
        if not -np.inf < low < high < np.inf:
            expected = "two finite numbers, the least and the greatest possible outcome"
            refuse_option("policy_value", "outcome_range", outcome_range, expected)
        ends = jnp.asarray(low, jnp.float32), jnp.asarray(high, jnp.float32)
    result: PolicyValue = _policy_value(graph, reward, logged, event_reward, ends, evaluation)
    return result


@jax.jit
def _policy_value(
    graph: EventGraph,
    reward: Array,
    logged: Alternatives,
    event_reward: Array | None,
    outcome_range: tuple[jax.Array, jax.Array] | None,
    evaluation: Evaluation,
) -> PolicyValue:
    refusals = evaluation.refusals or Refusals(min_ess=INTERVAL_ESS)
    d = drawn(graph, leaf_returns(graph, reward, event_reward), logged, refusals.unseen)
    e = estimate(graph, d, logged, evaluation)
    stratum, share, hidden = _strata(d)
    reason, stderr = d.refusal(e.known, refusals), jnp.where(e.stderr > 0, e.stderr, jnp.inf)
    if outcome_range is None:
        lacks = (reason == Reason.VALID) & (hidden > refusals.unseen + ROUNDING)
        reason = jnp.where(lacks, Reason.NO_SUPPORT, reason)
    else:
        least, most = (end.astype(stderr.dtype) for end in outcome_range)
        stderr = safe_sqrt(stderr**2 + (hidden * (most - least) / 2) ** 2)
        outcome = d.outcome + d.reference[d.tree.context]
        slack = ROUNDING * (most - least)
        # All contexts or none: to refuse only those where it shows would select by outcome.
        outside = jnp.any(d.draw_mask & ((outcome < least - slack) | (outcome > most + slack)))
        reason = jnp.where(outside & (reason == Reason.VALID), Reason.CONTRADICTION, reason)
    valid = reason == Reason.VALID
    return PolicyValue(
        value=jnp.where(valid, d.reference + e.value, jnp.nan),
        stderr=jnp.where(valid, stderr, jnp.full_like(e.value, jnp.inf)),
        ess=d.ess,
        draws=d.draws,
        covered=d.covered,
        reason=reason.astype(jnp.int8),
        sample=Sample(d.draw_mask, d.outcome, share, stratum, d.tree.context, d.reference, outcome_range),
    )


def _strata(d: Drawn) -> tuple[jax.Array, jax.Array, jax.Array]:
    """By draw, its stratum and its share of V there; by context, the part of π_e that no draw stands for.

    An alternative that π_b draws often enough is a stratum with share π_e. All others of the context, drawn or not, are
    one stratum, whose draws are a sample of π_b restricted to it: their share is w times the mass of π_b there. Their
    mean share is the part of π_e that they stand for.
    """
    n, of, at, where = d.draw_mask.shape[0], d.tree.context, d.tree.node, d.draw_mask
    behaviour = safe_divide(d.target, d.weight)
    common = where & (behaviour * d.draws[of] >= EXPECTED)
    first = where & (d.tree.first[at] == jnp.arange(n))
    rare = where & ~common
    acted, sought = (segment_sum(p, of, n, first & common) for p in (behaviour, d.target))
    mass = jnp.maximum(1 - acted, segment_sum(behaviour, of, n, first & rare))
    count = segment_count(of, n, rare, d.weight.dtype)
    stratum = jnp.where(common, at, jax.ops.segment_min(jnp.where(rare, at, n), of, num_segments=n)[of])
    share = jnp.where(common, d.target, d.weight * mass[of])
    found = safe_divide(segment_sum(share, of, n, rare), count)
    error = safe_divide(safe_sqrt(segment_sum(share**2, of, n, rare)), count)
    # Refusals by effective draws answer more often where rare alternatives were drawn too often for their weight.
    over = jnp.where(sought > 0, jnp.maximum(safe_divide(found, jnp.maximum(1 - sought, ROUNDING)), 1), 1)
    share = jnp.where(common, share, share / over[of])
    hidden = jnp.where(d.draws > 0, jnp.maximum(1 - sought - found - DEVIATIONS * error, 0), 0)
    return jnp.where(where, stratum, 0), share, hidden


@checked_options
@jax.jit
def off_policy(
    graph: EventGraph,
    reward: Array,
    *,
    context: Array,
    alternative: Array,
    propensity: Array,
    target_propensity: Array,
    target_support: Array | None = None,
    q_value: Array | None = None,
    target_value: Array | None = None,
    node: Array | None = None,
    event_reward: Array | None = None,
    evaluation: Evaluation = Evaluation(),  # noqa: B008 - frozen
) -> Credit:
    """The value of the chosen alternative minus the value of the context under the target policy: Q(h, a) − V(h).

    `credit` is the mean outcome of the alternative. `baseline` is an estimate of V = Σ_a π_e(a) Q(a) from the siblings
    without the event's own draw, by the estimators of `policy_value`:

        "snips"          Σ w_i R_i / Σ w_i over the other draws
        "doubly_robust"  with a logged model m, the mean of V_m + w_i (R_i − m(a_i)) over the other draws; without one,
                         V_m of the model that the other draws give
        "switch"         the same, without the correction where w_i > τ

    It is the increment of the decision under π_e. So its mean is zero under π_e, not under the policy that acted, and a
    policy gradient from it still needs the weight π_e / π_b of the event.

    Refusals select: which events are answered depends on the draws, though not on outcomes. With independent traces in
    groups of two and three, 27 to 60 % of decisions are answered in five small worlds; the bias of their gradient is
    0.14 to 0.63 of the exact one's length, and its cosine 0.90 to 0.99 (docs/bias.md).

    The actions of a trace in one context are one draw, a joint turn, and each gets its number. They must state one
    alternative, with the probabilities of the joint choice.

    Evidence is passed by name, as to every method of `credit.METHODS`; `estimators.Alternatives` documents it.

    Args:
      graph: uses the ids of traces and groups, and the masks.
      reward: float [T], the outcome of each trace in units of reward; NaN where unknown.
      context, alternative: int [E], the frozen context and what was chosen in it, any ids; -1 where the log has none.
      propensity, target_propensity: float [E], π_b and π_e of the chosen alternative.
      target_support: float [E], the mass of π_e on all alternatives that π_b could draw.
      q_value, target_value: float [E], a model's value of the alternative, and its mean under π_e; both or neither.
      node: int [E], the draw: traces that share one are replays of one draw. None: every trace drew afresh.
      event_reward: float [E], rewards at single events, which count as part of the outcome, or None. NaN counts as 0.
      evaluation: the estimator, τ, and the limits of LOW_ESS and NO_SUPPORT. Without limits, a
        tenth of the draws must be effective, since few siblings make a noisy credit, not a wrong one.

    Returns:
      `Credit` [E] at level "event", estimand "increment". `stderr` counts the outcomes that credit and baseline share;
      it is infinite for a single replay, and below 50 effective draws. Refusals are those that `policy_value` without a
      range has, but part of π_e may lack a draw. An event is also invalid, with LOW_ESS, where "snips" would compare it
      with siblings that π_e never chooses.

    Raises:
      CreditError: wrong dtypes or shapes, at trace time; `q_value` without `target_value`.

    Reference: Swaminathan and Joachims 2015 (SNIPS); Dudík, Langford and Li 2011, arXiv:1103.4601; Wang, Agarwal and
    Dudík 2017, arXiv:1612.01205 (SWITCH).

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(
      ...     group=["g"] * 8, trace=list("abcdefgh"), reward=[1.0, 0.0] * 4, events=8)
      >>> result = off_policy(
      ...     graph,
      ...     reward,
      ...     context=np.zeros(8, np.int32),
      ...     alternative=np.array([0, 1] * 4, np.int32),
      ...     propensity=np.full(8, 0.5, np.float32),
      ...     target_propensity=np.array([0.8, 0.2] * 4, np.float32),
      ... )
      >>> [round(float(a), 2) for a in result.advantage[:2]]
      [0.2, -0.8]
    """
    context, alternative = ids_by_group(graph, "context", context), ids_by_group(graph, "alternative", alternative)
    node = None if node is None else ids_by_group(graph, "node", node)
    logged = Alternatives(
        context, alternative, propensity, target_propensity, target_support, q_value, target_value, node
    )
    refusals = evaluation.refusals or Refusals()
    d = drawn(graph, leaf_returns(graph, reward, event_reward), logged, refusals.unseen)
    e = estimate(graph, d, logged, evaluation)
    of, draw = d.tree.context, d.draw
    reason = d.refusal(e.known, refusals)[of]
    lone = (reason == Reason.VALID) & ~e.has_others[draw]
    reason = jnp.where(d.tree.member, jnp.where(lone, Reason.LOW_ESS, reason), Reason.NO_EVIDENCE)
    return finish(
        graph,
        credit=d.reference[of] + d.own[d.tree.node],
        baseline=d.reference[of] + e.without[draw],
        scale=jnp.ones_like(d.outcome),
        stderr=_stderr(d, e),
        reason=reason,
        unit="event",
        estimand="increment",
        source="off_policy",
        centred=False,
        own_outcome=True,
        repeats=d.tree.repeats,
    )


def _stderr(d: Drawn, e: Estimate) -> jax.Array:
    """Standard error of an alternative against its context, by event; their shared outcomes are counted once."""
    n, of, at, row = d.draw_mask.shape[0], d.tree.context, d.tree.node, d.tree.row
    replays = segment_count(at, n, row, d.outcome.dtype)
    deviation = jnp.where(row, d.trace_outcome - d.own[at], jnp.zeros_like(d.outcome))
    own = safe_divide(segment_sum(deviation**2, at, n, row), replays * (replays - 1))
    shared = segment_sum(jnp.where(d.draw_mask, (d.outcome - d.own[at]) * e.influence, 0), at, n)
    variance = own[at] + e.stderr[of] ** 2 - 2 * safe_divide(shared, replays)[at]
    stated = (replays[at] > 1) & (d.ess[of] >= INTERVAL_ESS)
    return jnp.where(stated, safe_sqrt(jnp.where(stated, variance, 0)), jnp.inf)
