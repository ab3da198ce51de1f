"""Claims as increments: conversion to one scale, and the average of several claims on one action.

The increment of an action is D = E[R | log through it] − E[R | log before it]. Increments of a trace add up: R is what
was expected at the start, plus all increments, plus what no event explains. So they are what composition adds, and any
other estimand is converted exactly or refused by name:

    increment   as it is
    return      A_t of an estimator with state values (GAE, R − V): δ_t = A_t − λ A_{t+1}, undiscounted and over the
                actions of the whole trace: what is between two actions of one agent is also others' work
    contrast    with the policy-weighted mean of all other alternatives: times (1 − π)
    effect      a contrast with one fixed alternative, or with none: refused
    total       R − b, one number for all actions: how much there is to divide, nothing about shares: refused
    scale       a normaliser's factor: applied after composition: refused
    share       of a coalition game: a ledger of its own: refused
    score       a judge's number, no unit: refused
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, check_event_array, finish
from estimators.composition.votes import NO_ERRORS, Errors, votes
from estimators.kept_functions import kept_compiled
from estimators.relative_mean import ALIKE
from estimators.sequence.chains import chains, several_at_once, values_of_turns
from graphs.errors import CreditError, expect
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, safe_sqrt

__all__ = ["JOINT", "Combined", "NotComposableError", "as_increment", "combine", "states_twice"]

_WHY = {
    "effect": "no propensity makes what one other choice would have brought the mean over all of them; of a contrast "
    "with the policy-weighted mean of all other alternatives, state estimand 'contrast'",
    "total": "that is an amount to divide; it does not divide it",
    "scale": "a normaliser is a factor, applied after composition",
    "share": "shares of a coalition game make a ledger of their own (rule 'shares')",
    "score": "a score has no unit of reward until it is calibrated on other tasks",
}


JOINT = "each action of a joint turn has the increment of the whole turn, and a sum over the trace would count it again"
"""Why a credit with joint turns is no claim."""


class NotComposableError(CreditError):
    """A credit cannot become a claim on increments. `source` names it."""

    def __init__(self, source: str, estimand: str, why: str) -> None:
        article = "an" if estimand[0] in "aeiou" else "a"
        super().__init__(f"{source!r} estimates {article} {estimand} and cannot be a claim on increments: {why}")
        self.source, self.estimand = source, estimand


def as_increment(graph: EventGraph, credit: Credit, *, propensity: Array | None = None) -> Credit:
    """A result converted to a claim on increments, D_e = E[R | log through e] − E[R | log before e].

        increment   as it is
        return      δ_t = A_t − λ A_{t+1} over the actions of the trace that are in training
        contrast    (1 − π) times the contrast with the policy-weighted mean of all other alternatives

    Args:
      graph: the batch.
      credit: a method's result. The `recursion` of a return states how it was computed.
      propensity: for a contrast, float [E], the probability π with which the action was chosen. Where it is missing, 0
        or 1, there was no alternative to compare with and the claim is invalid.

    Returns:
      `Credit` of estimand "increment", at level "event" if it was converted. Of a return that states the errors of its
      values, `stderr` is that of their difference; else infinite.

    Raises:
      NotComposableError: there is no exact conversion. The message states the reason.

    Source: the telescoping sum of a return; docs/ledger.md.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=[0, 0], reward=[1.0, 1.0])
      >>> value = np.full(graph.num_events, np.nan, np.float32)
      >>> value[rows.event] = [0.25, 0.75]
      >>> result = credit.gae(graph, reward, value=value, lambda_=1.0)
      >>> print(rows.gather(result.advantage), rows.gather(as_increment(graph, result).credit))
      [0.75 0.25] [0.5  0.25]
    """
    expect("graph", graph, EventGraph, "an EventGraph, such as traces.graph")
    expect("credit", credit, Credit, "what a method returns")
    if credit.estimand in ("increment", "contrast") and states_twice(graph, credit):
        raise NotComposableError(credit.source, credit.estimand, JOINT)
    if credit.estimand == "increment":
        return credit
    if credit.estimand == "return":
        increment: Credit = _from_return(graph, credit, _lambda(credit))
        return increment
    if credit.estimand == "contrast":
        if propensity is None:
            why = "it needs the propensity of the chosen action (evidence `propensity`)"
            raise NotComposableError(credit.source, "contrast", why)
        increment = _from_contrast(graph, credit, propensity)
        return increment
    raise NotComposableError(credit.source, credit.estimand, _WHY[credit.estimand])


def states_twice(graph: EventGraph, credit: Credit) -> bool | jax.Array:
    """Whether actions of a joint turn have the turn's number each; a traced bool while JAX traces.

    The method says so by `repeats`, or all claims on actions of one turn are alike, and some are not 0: a critic of the
    turn's context was logged at each of its actions. Numbers of their own are alike in some turns only.
    """
    twice: jax.Array | bool = False
    if credit.repeats is not None:
        twice = jnp.any(jnp.asarray(credit.valid) & credit.repeats)
    if graph.joint_mask is not None:
        twice = twice | _alike_in_turns(graph, credit)
    return twice if isinstance(twice, jax.core.Tracer) else bool(twice)


@jax.jit
def _alike_in_turns(graph: EventGraph, credit: Credit) -> jax.Array:
    """Whether the claims on neighbours in a joint turn are alike, all of them, and some are not 0."""
    path = chains(graph, jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask))
    both = credit.valid & path.following(credit.valid) & jnp.asarray(graph.joint_mask)
    amount, baseline = jnp.asarray(credit.credit), jnp.asarray(credit.baseline)
    apart = jnp.zeros_like(both)
    for values in (amount - baseline, baseline):
        apart |= jnp.abs(values - path.following(values)) > ALIKE * jnp.abs(values)
    counts = jnp.abs(amount - baseline) > ALIKE * jnp.abs(amount)
    return jnp.any(both & counts) & ~jnp.any(both & apart)


def _lambda(credit: Credit) -> Array | float:
    """The λ of a return that is taken apart by the next action of its trace.

    Raises:
      NotComposableError: it is discounted, does not run along the trace, or does not say how it was computed.
    """
    how = credit.recursion
    if how is None:
        raise NotComposableError(
            credit.source,
            "return",
            "it has no values of states, or does not say with what λ and discount it was computed",
        )
    discount = np.asarray(how.discount)
    if (discount != 1).any():
        why = f"increments of a return discounted by {float(discount.min()):g} do not add up to the reward"
        raise NotComposableError(credit.source, "return", why)
    if how.along != "trace":
        path = "the causal graph" if how.along == "causal" else f"the actions of each {how.along}"
        why = f"it runs along {path}, and what is between two of its actions is others' work, too"
        raise NotComposableError(credit.source, "return", why)
    return how.lambda_


@kept_compiled
@jax.jit
def _from_return(graph: EventGraph, credit: Credit, lambda_: float | Array) -> Credit:
    """δ_t = A_t − λ A_{t+1}; invalid where the next action's A is, and in a joint turn of several agents.

    What such a turn brought is the difference of A from its first action to the one behind it, and says nothing of each
    action. The value of the state that an action led to is the mean of those that the turn's actions state.

    Where the return states the values that it rests on, these take the place of its baseline, and the error of δ_t is
    sqrt(s_t² + s_{t+1}²), at the last action sqrt(s_t² + spread_t²), since the outcome is one draw. Values of one group
    share their samples, which makes their difference more certain than that.
    """
    # As the methods have it: what a frozen agent does between two actions is the environment's.
    row = jnp.asarray(graph.event_mask) & graph.trained_mask
    actions, at_once = chains(graph, row), several_at_once(graph, row)
    amount, valid = jnp.asarray(credit.credit) - jnp.asarray(credit.baseline), credit.valid
    stderr = jnp.full_like(amount, jnp.inf)
    values = None if credit.recursion is None else credit.recursion.values
    value = jnp.asarray(credit.baseline)
    if values is not None:
        known = jnp.isfinite(values.value)
        valid = valid & known
        value = jnp.where(known, values.value, 0)
        amount = jnp.where(valid, credit.credit - value, 0)
        own = jnp.where(known, values.stderr, 0) ** 2
        after = jnp.where(actions.last, jnp.where(known, values.spread, 0) ** 2, actions.following(own))
        stderr = safe_sqrt(own + after)
    of_state, stated = values_of_turns(graph, at_once, value, valid)
    amount = amount - lambda_ * actions.following(amount) + actions.following(of_state - value)
    broken = actions.following(~stated)
    reason = jnp.where(credit.valid & (~valid | broken), Reason.NO_EVIDENCE, credit.reason)
    reason = jnp.where(credit.valid & at_once, Reason.AT_ONCE, reason)
    return _increment(graph, credit, amount, stderr, reason, actions.last if credit.own_outcome else False)


@kept_compiled
@jax.jit
def _from_contrast(graph: EventGraph, credit: Credit, propensity: Array) -> Credit:
    """(1 − π) (Q(a) − Q(others)) = Q(a) − V, on the deciding event."""
    pi, given = check_event_array(graph, "propensity", propensity)
    overlap = given & (pi > 0) & (pi < 1)
    amount = (1 - pi) * (jnp.asarray(credit.credit) - jnp.asarray(credit.baseline))
    reason = jnp.where(credit.valid & ~overlap, Reason.NO_OVERLAP, credit.reason)
    own = credit.own_outcome if credit.outcome_mask is None else credit.outcome_mask
    return _increment(graph, credit, amount, (1 - pi) * credit.stderr, reason, own)


def _increment(
    graph: EventGraph, credit: Credit, amount: jax.Array, stderr: jax.Array, reason: jax.Array, own: bool | Array
) -> Credit:
    increment = finish(
        graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=stderr,
        reason=reason,
        unit="event",
        estimand="increment",
        source=credit.source,
        centred=credit.centred,
        own_outcome=own,
    )
    return dataclasses.replace(increment, batch=credit.batch)  # whose fingerprint takes a while to compile


class Combined(NamedTuple):
    """Claims of several sources on the same events as one.

    Attributes:
      amount: float [E], the average claim; 0 where there is no claim.
      parts: float [S, E], what each source brought to it: weight times claim.
      stderr: float [E]; infinite where no source states an error.
      claim_mask: bool [E], events with at least one valid claim.
      weight: float [S, E], the weight of each source in the average; sums to 1 over the sources that claim.
      chi_squared: float [S, S], mean of (c_s − c_t)² / (s_s² + s_t²) over events that both claim with stated errors: 1
        where errors are honest and independent, above 2 where they are too small or the claims mean different things,
        below 0.5 where the sources share rollouts; NaN where they do not meet.
      sources: names, in the order of S.
    """

    amount: jax.Array
    parts: jax.Array
    stderr: jax.Array
    claim_mask: jax.Array
    weight: jax.Array
    chi_squared: jax.Array
    sources: tuple[str, ...]


def combine(claims: Sequence[Credit], errors: Errors = NO_ERRORS) -> Combined:
    """Average the claims on each event, one vote a source; never add them. The first step of rule "increments".

    Two claims of one event's increment estimate the same number: adding them would pay it twice. Claims of one source
    share their errors, so they are averaged first and count once. Sources are weighted by 1/stderr² on events where all
    of them state an error, and equally elsewhere; a source declared exact settles the events where it states 0. An
    error estimated from the very outcomes that it weighs biases the average: state errors from numbers of replays or
    from held-out traces.

    Args:
      claims: increments of events, one or more.
      errors: what errors of 0 mean; without it they are unknown errors.

    Raises:
      NotComposableError: a claim is no increment; see `as_increment`.

    Examples:
      >>> import credit, numpy as np
      >>> graph, _, rows = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
      >>> def claim(source, amount, stderr):
      ...     flat = np.full(graph.num_events, amount, np.float32)
      ...     return credit.claim(graph, flat, estimand="increment", source=source, stderr=stderr)
      >>> print(rows.gather(combine([claim("a", 1.0, 0.5), claim("b", 0.0, 1.0)]).amount))
      [0.8 0.8]
    """
    for claim in claims:
        if claim.estimand != "increment":
            raise NotComposableError(claim.source, claim.estimand, "convert it with `as_increment` first")
    by_source = votes(claims, errors, zeros=True)
    parts, stderr, claim_mask, weight, chi_squared = _average(
        by_source.amount, by_source.variance, by_source.claim_mask
    )
    return Combined(jnp.sum(parts, axis=0), parts, stderr, claim_mask, weight, chi_squared, by_source.sources)


@kept_compiled
@jax.jit
def _average(
    amount: jax.Array, variance: jax.Array, claim_mask: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    stated = claim_mask & jnp.isfinite(variance)
    exact = stated & (variance <= 0)
    settled = jnp.any(exact, axis=0)[None]
    all_stated = jnp.all(stated | ~claim_mask, axis=0)[None]
    # Relative to the least variance: 1 / 1e38 is no normal number, and the claim would weigh 0.
    weighed = stated & ~exact
    least = jnp.min(jnp.where(weighed, variance, jnp.inf), axis=0, initial=jnp.inf)[None]
    precision = jnp.where(weighed, least / jnp.where(weighed, variance, 1), 0)
    equal = jnp.where(claim_mask, 1, 0).astype(variance.dtype)
    weight = jnp.where(settled, jnp.where(exact, equal, 0), jnp.where(all_stated, precision, equal))
    weight = safe_divide(weight, jnp.sum(weight, axis=0)[None])
    parts = weight * jnp.where(claim_mask, amount, 0)
    spread = safe_sqrt(jnp.sum(weight**2 * jnp.where(stated, variance, 0), axis=0))
    any_claim = jnp.any(claim_mask, axis=0)
    known = (settled | all_stated)[0]
    stderr = jnp.where(any_claim & known, spread, jnp.where(any_claim, jnp.inf, 0))
    return parts, stderr, any_claim, weight, agreement(amount, variance, claim_mask)


def agreement(amount: jax.Array, variance: jax.Array, claim_mask: jax.Array) -> jax.Array:
    """χ² of each pair of sources, [S, S]: mean of (c_s − c_t)² / (s_s² + s_t²) where both claim; NaN where none."""
    stated = claim_mask & jnp.isfinite(variance)
    rows = []
    for s in range(amount.shape[0]):  # a pair at a time: [S, S, E] would be the largest array of the ledger
        for t in range(amount.shape[0]):
            error = variance[s] + variance[t]
            both = stated[s] & stated[t] & (error > 0) & jnp.isfinite(error)
            gap = jnp.where(both, (amount[s] - amount[t]) ** 2 / jnp.where(both, error, 1), 0)
            count = jnp.sum(both, dtype=gap.dtype)
            rows.append(jnp.where(count > 0, jnp.sum(gap) / jnp.where(count > 0, count, 1), jnp.nan))
    return jnp.stack(rows).reshape(amount.shape[0], amount.shape[0])
