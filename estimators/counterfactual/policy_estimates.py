"""Estimates of a context's value under a target policy, from weighted draws: SNIPS, doubly robust, SWITCH.

Each estimate comes with the influence of every draw on it, from which errors and intervals follow, and with its value
without each draw, which is that draw's baseline.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from estimators.base import check_event_array
from estimators.counterfactual.alternatives import Alternatives, Drawn, Refusals
from estimators.options import refuse_option
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_mean, segment_sum

__all__ = ["Estimate", "Estimator", "Evaluation", "estimate"]

Estimator = Literal["snips", "doubly_robust", "switch"]


@functools.partial(jax.tree_util.register_dataclass, data_fields=["threshold", "refusals"], meta_fields=["estimator"])
@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How the value of a context under the target policy is estimated from draws of another policy.

    Attributes:
      estimator: "snips", "doubly_robust" or "switch"; `policy_value` has their formulas.
      threshold: τ, the weight above which "switch" leaves out the correction. None: the square root of the number of
        draws.
      refusals: when a context gets no answer. None: the limits of the function that is called.

    Raises:
      CreditError: `estimator` is none of its choices, or `threshold` is NaN.

    Examples:
      >>> from estimators import Evaluation, Refusals
      >>> Evaluation("switch", threshold=3.0, refusals=Refusals(min_ess=20)).threshold
      3.0
    """

    estimator: Estimator = "doubly_robust"
    threshold: float | Array | None = None
    refusals: Refusals | None = None

    def __post_init__(self) -> None:
        if self.estimator not in get_args(Estimator):
            refuse_option("Evaluation", "estimator", self.estimator, " or ".join(map(repr, get_args(Estimator))))
        if isinstance(self.threshold, float) and self.threshold != self.threshold:
            refuse_option("Evaluation", "threshold", self.threshold, "a number")


class Estimate(NamedTuple):
    """An estimate of V in every context; arrays [E], by context or by draw.

    Attributes:
      value: by context, V relative to `Drawn.reference`.
      stderr: by context, its standard error.
      influence: by draw, how much it moved V.
      without: by draw, the estimate without it, relative to `Drawn.reference`.
      has_others: by draw, bool, whether the other draws give an estimate.
      known: by context, bool, whether the model of the outcomes is known.
    """

    value: jax.Array
    stderr: jax.Array
    influence: jax.Array
    without: jax.Array
    has_others: jax.Array
    known: jax.Array


class _Model(NamedTuple):
    """A model of the outcomes, by draw: m(a), its mean under π_e, whether m(a) is a mean of other draws of a, and
    whether it is known."""

    value: jax.Array
    mean: jax.Array
    from_siblings: jax.Array
    known: jax.Array


def estimate(graph: EventGraph, d: Drawn, logged: Alternatives, evaluation: Evaluation) -> Estimate:
    """The estimate of each context.

    Raises:
      CreditError: `q_value` without `target_value`.
    """
    return _snips(d) if evaluation.estimator == "snips" else _doubly_robust(graph, d, logged, evaluation)


def _total(d: Drawn, values: jax.Array) -> jax.Array:
    return segment_sum(values, d.tree.context, d.draw_mask.shape[0], d.draw_mask)


def _snips_without(d: Drawn) -> tuple[jax.Array, jax.Array]:
    """SNIPS without each draw, and the weight of the others."""
    w, y, of = d.weight, d.outcome, d.tree.context
    rest = _total(d, w)[of] - w
    return safe_divide(_total(d, w * y)[of] - w * y, rest), rest


def _snips(d: Drawn) -> Estimate:
    w, y, of = d.weight, d.outcome, d.tree.context
    others, rest = _snips_without(d)
    value = safe_divide(_total(d, w * y), _total(d, w))
    influence = safe_divide(w * (y - value[of]), rest)
    # Each influence leaves its own draw out of the weights already, so that the factor is (n − 1) / n.
    variance = safe_divide(d.draws - 1, d.draws) * _total(d, influence**2)
    return Estimate(value, safe_sqrt(variance), influence, others, rest > 0, jnp.ones(len(w), bool))


def _logged_model(graph: EventGraph, d: Drawn, q_value: Array, target_value: Array) -> _Model:
    q, has_q = check_event_array(graph, "q_value", q_value)
    mean, has_mean = check_event_array(graph, "target_value", target_value)
    n, of = graph.num_events, d.tree.context
    known = segment_count(of, n, d.draw_mask & ~(has_q & has_mean)) < 1
    value, expected = (x.astype(d.outcome.dtype) - d.reference[of] for x in (q, mean))
    return _Model(value, expected, jnp.zeros(n, bool), known)


def _sibling_model(d: Drawn, drawn_here: jax.Array, others: jax.Array) -> _Model:
    """The mean outcome of the *other* draws of an alternative, and `others` for one that has no other draw."""
    y, at, of, n = d.outcome, d.tree.node, d.tree.context, d.outcome.shape[0]
    average = segment_mean(y, at, n, d.draw_mask)
    repeated = drawn_here > 1
    value = jnp.where(repeated, average[at] - safe_divide(y - average[at], drawn_here - 1), others)
    target = d.target[d.tree.first]
    fitted = segment_sum(target * average, d.tree.context_of, n, d.tree.node_mask)
    # The draw's own part in the mean of its alternative is taken out; undrawn alternatives take the fallback.
    mean = fitted[of] + d.target * (value - average[at]) + (1 - d.seen[of]) * others
    return _Model(value, mean, repeated, jnp.ones(n, bool))


def _doubly_robust(graph: EventGraph, d: Drawn, logged: Alternatives, evaluation: Evaluation) -> Estimate:
    if (logged.q_value is None) != (logged.target_value is None):
        raise CreditError("q_value and target_value come together: a model, and its mean under the target policy")
    n, of, y, w = graph.num_events, d.tree.context, d.outcome, d.weight
    others, rest = _snips_without(d)
    others = jnp.where(rest > 0, others, safe_divide(_total(d, y)[of] - y, d.draws[of] - 1))
    drawn_here = segment_count(d.tree.node, n, d.draw_mask, y.dtype)[d.tree.node]
    siblings = logged.q_value is None
    if logged.q_value is not None and logged.target_value is not None:
        model = _logged_model(graph, d, logged.q_value, logged.target_value)
    else:
        model = _sibling_model(d, drawn_here, others)

    residual, squared_bias = w * (y - model.value), jnp.zeros_like(d.draws)
    if evaluation.estimator == "switch":
        limit = jnp.sqrt(d.draws)[of] if evaluation.threshold is None else evaluation.threshold
        left_out = d.draw_mask & (w > limit) & ~model.from_siblings
        spread = safe_divide(_total(d, (y - model.value) ** 2), d.draws)
        share = safe_divide(_total(d, jnp.where(left_out, w, 0)), d.draws)
        squared_bias = jnp.minimum(share, 1) ** 2 * spread
        residual = jnp.where(left_out, 0, residual)
    score = model.mean + residual
    value = safe_divide(_total(d, score), d.draws)
    influence = safe_divide(score - value[of], d.draws[of])
    if siblings:
        # Alternatives drawn k times have the weight π_e / k, whatever their propensity: each draw's error is over k.
        within = safe_divide(d.target, drawn_here) * (y - model.value)
        within = within * safe_sqrt(safe_divide(drawn_here - 1, drawn_here))
        between = safe_divide(model.mean - value[of], d.draws[of])
        influence = jnp.where(model.from_siblings, within + between, influence)
    variance = safe_divide(d.draws, d.draws - 1) * _total(d, influence**2) + squared_bias
    without = model.mean if siblings else safe_divide(_total(d, score)[of] - score, d.draws[of] - 1)
    return Estimate(value, safe_sqrt(variance), influence, without, jnp.ones(n, bool), model.known)
