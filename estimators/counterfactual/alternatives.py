"""The draws of a context: which alternatives a policy chose in one situation, and how they weigh for another policy.

π_b drew the alternatives of a context and each was continued to an outcome; the question is asked for the target policy
π_e. The weight w = π_e(a) / π_b(a) corrects the draw of this one decision, and only that: what follows is taken as it
was continued. Weights of whole traces would multiply, and their effective sample size falls geometrically in the number
of decisions: after some hundred of them nothing is left.

That π_e may choose what π_b could not, no weight shows, since what is never drawn has none, and the effective sample
size stays large; so support is checked on its own.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Reason, check_event_array, check_reward
from estimators.counterfactual.replays import ReplayTree, replay_tree
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, segment_count, segment_first, segment_mean, segment_sum

__all__ = ["Drawn", "Draws", "drawn"]

Draws = Literal["trace", "node"]

ROUNDING = 1e-3
"""Logged probabilities carry rounding of their own: they agree if they differ by no more."""


class Drawn(NamedTuple):
    """The draws of every context; arrays [E], by event, node or context.

    Attributes:
      tree: contexts and nodes.
      there: by event, bool, whether it stands for a draw.
      at: by event, the event that stands for its draw.
      outcome: by event, that of its draw, relative to `reference`, so that equal outcomes differ by exactly 0.
      trace_outcome: by event, that of its trace, relative to `reference`.
      weight: by event, w of its draw.
      target: by event, π_e of its draw.
      own: by node, its value, relative to `reference`.
      reference: by context, an outcome in it.
      drawn: by context, the number of draws.
      ess: by context, (Σ w)² / Σ w².
      covered: by context, the part of π_e on alternatives that π_b could draw, as far as the log shows it.
      reason: by context, what forbids an answer, or VALID.
    """

    tree: ReplayTree
    there: jax.Array
    at: jax.Array
    outcome: jax.Array
    trace_outcome: jax.Array
    weight: jax.Array
    target: jax.Array
    own: jax.Array
    reference: jax.Array
    drawn: jax.Array
    ess: jax.Array
    covered: jax.Array
    reason: jax.Array

    def refusal(self, known: jax.Array, min_ess: float | Array, min_ess_fraction: float | Array) -> jax.Array:
        """By context, a `Reason`: what forbids an answer, given where the model of the outcomes is known."""
        enough = (self.ess >= min_ess) & (self.ess >= min_ess_fraction * self.drawn)
        reason = jnp.where((self.reason == Reason.VALID) & ~enough, Reason.LOW_ESS, self.reason)
        return jnp.where(~known | (self.drawn < 1), Reason.NO_EVIDENCE, reason)


def drawn(
    graph: EventGraph,
    reward: Array,
    context: Array,
    node: Array,
    propensity: Array,
    target_propensity: Array,
    target_support: Array | None,
    draws: Draws,
    unseen: float | Array,
) -> Drawn:
    """Find the draws, weigh them, and see what forbids an answer.

    Arguments as in `estimators.counterfactual.offpolicy`.
    """
    outcome, scored = check_reward(graph, reward)
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    tree = replay_tree(graph, scored[trace], context, node, outcome.dtype)
    row, of, at = tree.row, tree.context, tree.node
    first = segment_first(of, n, row)
    reference = outcome[trace][first]
    relative = jnp.where(row, outcome[trace] - reference[of], jnp.zeros_like(reference))
    if draws == "trace":
        there, drawn_at, value = row, jnp.arange(n, dtype=jnp.int32), relative
        own = segment_mean(relative, at, n, row)
    elif draws == "node":
        there, drawn_at = row & (tree.first[at] == jnp.arange(n)), tree.first[at]
        own = tree.values(relative)
        value = own[at]
    else:
        raise ValueError(f"draws is {draws!r}; expected 'trace' or 'node'")

    behaviour, has_behaviour = check_event_array(graph, "propensity", propensity)
    target, has_target = check_event_array(graph, "target_propensity", target_propensity)
    behaviour, target = behaviour.astype(relative.dtype), target.astype(relative.dtype)
    overlap = has_behaviour & (behaviour > 0) & (behaviour < 1)
    has_target = has_target & (target >= 0) & (target <= 1)
    usable = row & overlap & has_target
    target = jnp.where(usable, target, jnp.zeros_like(target))
    weight = jnp.where(usable, target / jnp.where(usable, behaviour, 1), jnp.zeros_like(target))
    count = segment_count(of, n, there, weight.dtype)
    ess = safe_divide(segment_sum(weight, of, n, there) ** 2, segment_sum(weight**2, of, n, there))

    def somewhere(wrong: jax.Array) -> jax.Array:
        return segment_count(of, n, row & wrong) > 0

    seen = segment_sum(target[tree.first], tree.context_of, n, tree.there)
    acted = segment_sum(behaviour[tree.first], tree.context_of, n, tree.there)
    covered = seen
    if target_support is not None:
        support, logged = check_event_array(graph, "target_support", target_support)
        least = jax.ops.segment_min(jnp.where(row & logged, support, jnp.inf), of, num_segments=n)
        covered = jnp.where(jnp.isfinite(least), least.astype(seen.dtype), seen)
    unequal = jnp.abs(behaviour - behaviour[tree.first][at]) > ROUNDING
    unequal = unequal | (jnp.abs(target - target[tree.first][at]) > ROUNDING)
    over = (seen > 1 + ROUNDING) | (acted > 1 + ROUNDING)
    reason = jnp.where(covered < 1 - unseen - ROUNDING, Reason.NO_SUPPORT, Reason.VALID)
    reason = jnp.where(segment_count(tree.context_of, n, tree.there) < 2, Reason.NO_SIBLING, reason)
    reason = jnp.where(somewhere(unequal) | over, Reason.CONTRADICTION, reason)
    reason = jnp.where(tree.mixed, Reason.CONTEXTS_DIFFER, reason)
    reason = jnp.where(somewhere(~overlap), Reason.NO_OVERLAP, reason)
    reason = jnp.where(somewhere(~has_target), Reason.NO_EVIDENCE, reason)
    return Drawn(tree, there, drawn_at, value, relative, weight, target, own, reference, count, ess, covered, reason)
