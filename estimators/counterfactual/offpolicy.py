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
from estimators.counterfactual.alternatives import Alternatives, Drawn, Refusals, drawn
from estimators.counterfactual.empirical_likelihood import influence_interval, limits, stratified_interval
from estimators.counterfactual.policy_estimates import Estimate, Evaluation, estimate
from estimators.counterfactual.replays import ids_by_group, leaf_returns
from estimators.options import checked_options
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_sum

__all__ = ["INTERVAL_ESS", "PolicyValue", "off_policy", "policy_value"]

INTERVAL_ESS = 50.0
"""With fewer effective draws than this no interval is given."""

FARTHEST = 1.5
"""Weight of the possible draw that no log shows, in mean weights of a draw from π_e, Σw² / Σw."""


MOSTLY = 0.5
"""Part of π_e on drawn alternatives from which on the alternatives count as a finite set, each a stratum."""


class Sample(NamedTuple):
    """The draws behind a `PolicyValue`, for its intervals; arrays [E], by draw or by context.

    Attributes:
      where: by draw, bool, the draws that count.
      outcome, share, influence: by draw, float: y relative to `reference`, π_e, and its part in the estimate.
      stratum, context: by draw, int32.
      strata: by context, bool, whether the alternatives drawn are all, so that each is a stratum.
      centre: by context, float, the estimate relative to `reference`.
      reference: by context, float.
      farthest: by context, two floats, how far below and above the estimate a possible draw's part lies.
      unsure: by context, float, a variance that no draw shows.
    """

    where: jax.Array
    outcome: jax.Array
    share: jax.Array
    influence: jax.Array
    stratum: jax.Array
    context: jax.Array
    strata: jax.Array
    centre: jax.Array
    reference: jax.Array
    farthest: tuple[jax.Array, jax.Array]
    unsure: jax.Array


class PolicyValue(NamedTuple):
    """The value of each context under the target policy; arrays [E], one entry for each context id.

    Attributes:
      value: float, V in units of reward; 0 where refused.
      stderr: float, its standard error in units of reward; infinite where refused.
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
        """The lower and the upper end of an empirical-likelihood interval for V, float [E] each; infinite where
        refused.

        The interval holds the values that some reweighting of the draws attains without making them much less likely.
        It is asymmetric where outcomes are. With "doubly_robust", no logged model, and half of π_e or more on
        alternatives that were drawn, each alternative is a stratum (`estimators.counterfactual.empirical_likelihood`).
        Else the draws' parts in the estimate are reweighted. Measured coverage: docs/off-policy.md.

        Args:
          level: the probability with which the interval is to cover V.
        """
        low, high = _interval(self, jnp.asarray(level, self.value.dtype))
        return low, high


@jax.jit
def _interval(result: PolicyValue, level: jax.Array) -> tuple[jax.Array, jax.Array]:
    s = result.sample
    limit = limits(level, s.influence, s.stratum, s.context, s.where, s.strata)
    by_strata = stratified_interval(s.outcome, s.share, s.stratum, s.context, s.where, limit)
    reach = influence_interval(s.influence, s.farthest, s.context, s.where, limit)
    ends = []
    for sign, end, far in zip((-1.0, 1.0), by_strata, reach, strict=True):
        by_parts = s.centre + sign * safe_sqrt(far**2 + limit * s.unsure)
        finite = s.reference + jnp.where(s.strata, end, by_parts)
        ends.append(jnp.where(result.valid, finite, sign * jnp.inf))
    return ends[0], ends[1]


@checked_options
def policy_value(
    graph: EventGraph,
    reward: Array,
    logged: Alternatives,
    *,
    event_reward: Array | None = None,
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
    that rests on the model, times the model's root mean squared residual, is added in quadrature.

    Refusals, by `Reason`, for a context:

        NO_EVIDENCE      a target probability or a model value is missing
        CONTEXTS_DIFFER  a node occurs under two contexts, or a context in two groups
        CONTRADICTION    probabilities of one alternative differ, those of a context sum to more than 1, a node has two
                         alternatives, or the mean weight differs from 1 by more than its error although all of π_e was
                         drawn
        NO_OVERLAP       a propensity is missing, 0 or 1
        NO_SIBLING       one alternative
        NO_SUPPORT       part of π_e is not covered: by `target_support`, or by a mean weight below 1 by more than its
                         error; or one more draw, from the alternatives without a draw, would leave too few effective
        LOW_ESS          fewer effective draws than `evaluation.refusals` asks for
        TOO_FEW          all outcomes are equal, which gives no error

    Args:
      graph: uses the ids of traces and groups, and the masks.
      reward: float [T], the outcome of each trace in units of reward; NaN where unknown.
      logged: arrays [E], what was chosen among which alternatives, with what probabilities.
      event_reward: float [E], rewards at single events, which count as part of the outcome, or None. NaN counts as 0.
      evaluation: the estimator, τ, and the limits of LOW_ESS and NO_SUPPORT. Without limits, 50
        effective draws are asked for, which intervals need.

    Returns:
      `PolicyValue`, arrays [E] by context id.

    Raises:
      CreditError: wrong dtypes or shapes, at trace time; `q_value` without `target_value`; a context of E or more in an
        array of NumPy. Elsewhere such a context has no place in the result.

    Reference: Swaminathan and Joachims 2015 (SNIPS); Dudík, Langford and Li 2011, arXiv:1103.4601; Wang, Agarwal and
    Dudík 2017, arXiv:1612.01205 (SWITCH).

    Examples:
      >>> import numpy as np
      >>> from estimators import Alternatives
      >>> from graphs.worlds.siblings import overlapping_world
      >>> graph, reward, evidence = overlapping_world(1).sample(np.random.default_rng(0), contexts=1, draws=300)
      >>> result = policy_value(graph, reward, Alternatives(**evidence))
      >>> low, high = result.interval()
      >>> bool(result.valid[0]), bool(low[0] < result.value[0] < high[0])
      (True, True)
    """
    if isinstance(logged.context, np.ndarray) and logged.context.size and logged.context.max() >= graph.num_events:
        place, room = int(np.argmax(logged.context)), graph.num_events
        given = f"context is {logged.context[place]} at event {place}"
        raise CreditError(f"policy_value: {given}; expected an id below {room}, the place of its value, or -1")
    result: PolicyValue = _policy_value(graph, reward, logged, event_reward, evaluation)
    return result


@jax.jit
def _policy_value(
    graph: EventGraph, reward: Array, logged: Alternatives, event_reward: Array | None, evaluation: Evaluation
) -> PolicyValue:
    refusals = evaluation.refusals or Refusals(min_ess=INTERVAL_ESS)
    d = drawn(graph, leaf_returns(graph, reward, event_reward), logged, refusals.unseen)
    e = estimate(graph, d, logged, evaluation)
    afresh = segment_count(d.tree.context, graph.num_events, d.tree.row, d.draws.dtype) <= d.draws  # no draw replayed
    strata = (d.seen >= MOSTLY) & (evaluation.estimator == "doubly_robust") & afresh
    strata = strata & (logged.q_value is None)
    sample = _sample(d, e, strata)
    reason = d.refusal(e.known, refusals)
    reason = jnp.where((reason == Reason.VALID) & ~(e.stderr > 0), Reason.TOO_FEW, reason)
    valid = reason == Reason.VALID
    return PolicyValue(
        value=jnp.where(valid, d.reference + e.value, jnp.zeros_like(e.value)),
        stderr=jnp.where(valid, e.stderr, jnp.full_like(e.value, jnp.inf)),
        ess=d.ess,
        draws=d.draws,
        covered=d.covered,
        reason=reason.astype(jnp.int8),
        sample=sample,
    )


def _sample(d: Drawn, e: Estimate, strata: jax.Array) -> Sample:
    n, of, where = d.draw_mask.shape[0], d.tree.context, d.draw_mask
    weight = FARTHEST * safe_divide(segment_sum(d.weight**2, of, n, where), segment_sum(d.weight, of, n, where))
    low = jax.ops.segment_min(jnp.where(where, d.outcome, jnp.inf), of, num_segments=n)
    high = jax.ops.segment_max(jnp.where(where, d.outcome, -jnp.inf), of, num_segments=n)
    farthest = (
        weight * jnp.where(d.draws > 0, jnp.maximum(e.value - low, 0), 0),
        weight * jnp.where(d.draws > 0, jnp.maximum(high - e.value, 0), 0),
    )
    return Sample(
        where,
        d.outcome,
        d.target,
        e.influence,
        d.tree.node,
        of,
        jnp.broadcast_to(strata, (n,)),
        e.value,
        d.reference,
        farthest,
        e.unsure,
    )


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
      it is infinite for a single replay, and below 50 effective draws. Refusals are those of `policy_value`, except
      TOO_FEW; an event is also invalid, with LOW_ESS, where "snips" would compare it with siblings that π_e never
      chooses.

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
    reason = jnp.where(d.tree.row, jnp.where(lone, Reason.LOW_ESS, reason), Reason.NO_EVIDENCE)
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
