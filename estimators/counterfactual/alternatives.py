"""The draws of a context: which alternatives a policy chose in one situation, and how they weigh for another policy.

π_b drew the alternatives of a context, and each was continued to an outcome. The question is asked for the target
policy π_e. The weight w = π_e(a) / π_b(a) corrects the draw of this one decision, and only that; what follows is taken
as it was continued. Weights of whole traces would multiply, and their effective sample size falls geometrically in the
number of decisions.

Two checks look at what the weights of the draws cannot show: an alternative that is never drawn has no weight, and the
effective sample size stays large. The mean weight is compared with 1. And the effective sample size is computed as if
one more draw had been made, from the alternatives that were not drawn.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Reason, check_event_array, check_reward
from estimators.compared_ids import numbered
from estimators.counterfactual.replays import ReplayTree, event_ids, ids_below, replay_tree
from estimators.options import BOUNDS, refuse_option
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_mean, segment_sum
from graphs.traces.schema import ROUNDING as OF_PROBABILITIES

__all__ = ["Alternatives", "Drawn", "Refusals", "drawn"]

ROUNDING = 1e-3
"""Logged probabilities carry rounding errors: they agree if they differ by no more than this."""

DEVIATIONS = 3.0
"""Standard errors by which the mean weight may differ from 1."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Alternatives:
    """Logged choices among alternatives in one situation; arrays [E], one entry for each event.

    Attributes:
      context: int, the frozen context of the decision, an id in [0, E); -1 where the log has none.
      alternative: int, what was chosen in the context, any id; draws that chose alike share it. -1 where the log has
        none.
      propensity: float, π_b of the chosen alternative; one behaviour policy for each context. NaN where unknown.
      target_propensity: float, π_e of the chosen alternative; 0 is allowed. NaN where unknown.
      target_support: float, the mass of π_e on all alternatives that π_b could draw: 1 where π_b was sampled without
        truncation. None or NaN where unknown; then the alternatives that were drawn must hold nearly all of π_e.
      q_value: float, a model's value of the chosen alternative; comes with `target_value`.
      target_value: float, the same model's mean over all alternatives under π_e.
      node: int, the draw, any id: traces that share one are replays of one draw, which counts once. -1 or None: every
        trace drew afresh.

    Examples:
      >>> import numpy as np
      >>> from estimators import Alternatives
      >>> logged = Alternatives(
      ...     context=np.array([0, 0]),
      ...     alternative=np.array([0, 1]),
      ...     propensity=np.array([0.5, 0.5], np.float32),
      ...     target_propensity=np.array([0.9, 0.1], np.float32),
      ... )
      >>> logged.target_support is None
      True
    """

    context: Array
    alternative: Array
    propensity: Array
    target_propensity: Array
    target_support: Array | None = None
    q_value: Array | None = None
    target_value: Array | None = None
    node: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alternative", numbered(self.alternative))
        object.__setattr__(self, "node", numbered(self.node))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Refusals:
    """When a context gets no answer: limits of the effective sample size and of the support.

    Attributes:
      min_ess: smallest effective sample size (Σ w)² / Σ w², in draws.
      min_ess_fraction: smallest effective sample size as a part of the draws, from 0 to 1.
      unseen: largest part of π_e that π_b need not be able to draw, from 0 to 1.

    Raises:
      CreditError: a limit outside its bound.

    Examples:
      >>> from estimators import Refusals
      >>> Refusals(min_ess=20).unseen
      0.01
    """

    min_ess: float | Array = 1.0
    min_ess_fraction: float | Array = 0.1
    unseen: float | Array = 0.01

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            # jit rebuilds the class around tracers, and around other leaves where it compares structures
            known = isinstance(value, int | float | str | None) and not isinstance(value, bool)
            if known and not BOUNDS[field.name].holds(value):
                refuse_option("Refusals", field.name, value, BOUNDS[field.name].words)


class Drawn(NamedTuple):
    """The draws of every context; arrays [E], by event, alternative or context.

    Attributes:
      tree: contexts and alternatives; its nodes are alternatives.
      draw_mask: by event, bool, whether it stands for a draw.
      draw: by event, the event that stands for its draw.
      outcome: by event, that of its draw, relative to `reference`, so that equal outcomes differ by exactly 0.
      trace_outcome: by event, that of its trace, relative to `reference`.
      weight: by event, w of its draw.
      target: by event, π_e of its draw.
      own: by alternative, its value, relative to `reference`.
      reference: by context, an outcome in it.
      draws: by context, float, the number of draws.
      ess: by context, (Σ w)² / Σ w².
      ess_with_one_more: by context, the same with one more draw, from the alternatives that were not drawn.
      seen: by context, the part of π_e on alternatives that were drawn.
      covered: by context, the part of π_e on alternatives that π_b could draw, as far as the log shows it.
      reason: by context, what forbids an answer, or VALID.
    """

    tree: ReplayTree
    draw_mask: jax.Array
    draw: jax.Array
    outcome: jax.Array
    trace_outcome: jax.Array
    weight: jax.Array
    target: jax.Array
    own: jax.Array
    reference: jax.Array
    draws: jax.Array
    ess: jax.Array
    ess_with_one_more: jax.Array
    seen: jax.Array
    covered: jax.Array
    reason: jax.Array

    def refusal(self, known: jax.Array, limits: Refusals) -> jax.Array:
        """By context, a `Reason`: what forbids an answer, given where the model of the outcomes is known."""
        least = jnp.maximum(limits.min_ess, limits.min_ess_fraction * self.draws)
        reason = jnp.where((self.reason == Reason.VALID) & (self.ess < least), Reason.LOW_ESS, self.reason)
        hidden = (reason == Reason.VALID) & (self.ess_with_one_more < least)
        reason = jnp.where(hidden, Reason.NO_SUPPORT, reason)
        return jnp.where(~known | (self.draws < 1), Reason.NO_EVIDENCE, reason)


class _Probabilities(NamedTuple):
    """Logged probabilities by event, 0 where unusable, and which of them are usable."""

    behaviour: jax.Array
    target: jax.Array
    overlap: jax.Array
    has_target: jax.Array


def drawn(graph: EventGraph, reward: Array, logged: Alternatives, unseen: float | Array) -> Drawn:
    """Find the draws, weigh them, and see what forbids an answer.

    Traces of one `node` are replays of one draw, whose outcome is the node's value (`ReplayTree.values`).

    Args:
      graph: uses the ids of traces and groups, and the masks.
      reward: float [T], NaN where unknown.
      logged: arrays [E].
      unseen: the largest part of π_e that π_b need not be able to draw.

    Raises:
      CreditError: wrong dtypes or shapes, at trace time.
    """
    outcome, scored = check_reward(graph, reward)
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    named = _of_context(graph, logged)
    tree = replay_tree(graph, scored[trace], logged.context, named, outcome.dtype)
    row, of, at = tree.row, tree.context, tree.node
    reference, relative = tree.relative(outcome[trace])
    place = jnp.arange(n, dtype=jnp.int32)
    draw_mask, draw, value, mixed, split = row, tree.lead, relative, tree.mixed, tree.member & (named != at)
    if logged.node is not None:
        node = event_ids(graph, "node", logged.node)
        # An event without a node is a draw by itself. Together these are E ids or fewer.
        node = jnp.where(node < 0, n + place, ids_below(n, node, node >= 0))
        replayed = replay_tree(graph, tree.member, of, ids_below(n, node, tree.member), outcome.dtype)
        draw, value = replayed.first[replayed.node], replayed.values(relative)[replayed.node]
        draw_mask, mixed = row & (draw == place), mixed | replayed.unclear
        split = split | (tree.member & (at[draw] != at))
    own = segment_mean(value, at, n, draw_mask)

    p = _probabilities(graph, logged, tree.member, relative.dtype)
    weight = jnp.where(p.overlap & row, p.target / jnp.where(p.overlap & row, p.behaviour, 1), jnp.zeros_like(p.target))
    count = segment_count(of, n, draw_mask, weight.dtype)
    ess = safe_divide(segment_sum(weight, of, n, draw_mask) ** 2, segment_sum(weight**2, of, n, draw_mask))
    seen = segment_sum(p.target[tree.first], tree.context_of, n, tree.node_mask)
    covered = _covered(graph, tree, seen, logged.target_support)
    reason = _unsupported(tree, draw_mask, weight, count, seen, covered, unseen)
    acted = segment_sum(p.behaviour[tree.first], tree.context_of, n, tree.node_mask)
    one_more = _ess_with_one_more(tree, draw_mask, weight, seen, acted, unseen)
    over = (seen > 1 + ROUNDING) | (acted > 1 + ROUNDING) | (segment_count(of, n, split) > 0)
    for name, values in (("q_value", logged.q_value), ("target_value", logged.target_value)):
        if values is not None:
            over |= tree.disagree(*check_event_array(graph, name, values))
    reason = _inconsistent(tree, p, over, mixed, reason)
    return Drawn(
        tree,
        draw_mask,
        draw,
        value,
        relative,
        weight,
        p.target,
        own,
        reference,
        count,
        ess,
        one_more,
        seen,
        covered,
        reason,
    )


def _of_context(graph: EventGraph, logged: Alternatives) -> jax.Array:
    """The alternatives as ids of one context each, int32 [E]: two contexts may have alternatives of one name."""
    n, context = graph.num_events, event_ids(graph, "context", logged.context)
    named = event_ids(graph, "alternative", logged.alternative)
    row = jnp.asarray(graph.event_mask) & (context >= 0) & (named >= 0)
    ids = ids_below(n, named, row)
    elsewhere = jnp.any(row & (context[segment_first(ids, n, row)][ids] != context))
    apart: jax.Array = jax.lax.cond(elsewhere, lambda: pair_ids(context, ids, row), lambda: ids)
    return jnp.where(row, apart, -1)


def _probabilities(graph: EventGraph, logged: Alternatives, row: jax.Array, dtype: jnp.dtype) -> _Probabilities:
    behaviour, has_behaviour = check_event_array(graph, "propensity", logged.propensity)
    target, has_target = check_event_array(graph, "target_propensity", logged.target_propensity)
    behaviour, target = behaviour.astype(dtype), target.astype(dtype)
    overlap = has_behaviour & (behaviour > 0) & (behaviour < 1)
    has_target = has_target & (target >= 0) & (target <= 1)
    return _Probabilities(
        behaviour, jnp.where(row & overlap & has_target, target, jnp.zeros_like(target)), overlap, has_target
    )


def _covered(graph: EventGraph, tree: ReplayTree, seen: jax.Array, target_support: Array | None) -> jax.Array:
    """The least logged support of each context; what was drawn where none is logged, or more than a mass can be."""
    if target_support is None:
        return seen
    support, logged = check_event_array(graph, "target_support", target_support)
    logged &= support <= 1 + OF_PROBABILITIES
    least = jax.ops.segment_min(
        jnp.where(tree.member & logged, support, jnp.inf), tree.context, num_segments=graph.num_events
    )
    return jnp.where(jnp.isfinite(least), least.astype(seen.dtype), seen)


def _unsupported(
    tree: ReplayTree,
    draw_mask: jax.Array,
    weight: jax.Array,
    count: jax.Array,
    seen: jax.Array,
    covered: jax.Array,
    unseen: float | Array,
) -> jax.Array:
    """By context, NO_SUPPORT or CONTRADICTION where the draws show that the target is not covered, else VALID.

    E[w] = 1 if π_b can draw all of π_e. A mean weight below 1 by more than its error shows that heavy alternatives were
    not drawn. Where all of π_e was drawn, or where the mean is above 1, it shows that the logged probabilities are not
    those of the draws.
    """
    n, of = draw_mask.shape[0], tree.context
    mean = safe_divide(segment_sum(weight, of, n, draw_mask), count)
    error = safe_divide(safe_sqrt(segment_sum(weight**2, of, n, draw_mask)), count)
    complete = seen >= 1 - unseen - ROUNDING
    low, high = (sign * (mean - 1) > unseen + ROUNDING + DEVIATIONS * error for sign in (-1, 1))
    reason = jnp.where((count > 0) & (high | (low & complete)), Reason.CONTRADICTION, Reason.VALID)
    return jnp.where((low & ~complete) | (covered < 1 - unseen - ROUNDING), Reason.NO_SUPPORT, reason)


def _ess_with_one_more(
    tree: ReplayTree, draw_mask: jax.Array, weight: jax.Array, seen: jax.Array, acted: jax.Array, unseen: float | Array
) -> jax.Array:
    """Effective sample size by context, if one more draw had come from the alternatives that were not drawn.

    Such a draw has the weight (1 − Σ π_e) / (1 − Σ π_b) on average, with sums over the alternatives drawn. Infinite
    where the alternatives drawn hold all but `unseen` of π_e.
    """
    n, of = draw_mask.shape[0], tree.context
    missing = seen < 1 - unseen - ROUNDING
    heavy = jnp.where(missing, (1 - seen) / jnp.maximum(1 - acted, 1e-6), jnp.zeros_like(seen))
    total = segment_sum(weight, of, n, draw_mask) + heavy
    squares = segment_sum(weight**2, of, n, draw_mask) + heavy**2
    return jnp.where(missing, safe_divide(total**2, squares), jnp.inf)


def _inconsistent(
    tree: ReplayTree, p: _Probabilities, over: jax.Array, mixed: jax.Array, reason: jax.Array
) -> jax.Array:
    """The reason by context, with what makes a context no situation in which one policy drew alternatives."""
    n, of, at = tree.row.shape[0], tree.context, tree.node

    def somewhere(wrong: jax.Array) -> jax.Array:
        return segment_count(of, n, tree.member & wrong) > 0

    unequal = jnp.abs(p.behaviour - p.behaviour[tree.first][at]) > ROUNDING
    unequal = unequal | (jnp.abs(p.target - p.target[tree.first][at]) > ROUNDING)
    reason = jnp.where(segment_count(tree.context_of, n, tree.node_mask) < 2, Reason.NO_SIBLING, reason)
    reason = jnp.where(somewhere(unequal) | over, Reason.CONTRADICTION, reason)
    reason = jnp.where(mixed, Reason.CONTEXTS_DIFFER, reason)
    reason = jnp.where(somewhere(~p.overlap), Reason.NO_OVERLAP, reason)
    return jnp.where(somewhere(~p.has_target), Reason.NO_EVIDENCE, reason)
