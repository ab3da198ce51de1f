"""Counterfactual messages: sibling alternatives to an action under the same context, with their outcomes.

What is logged, and the tree it makes, is described in `estimators.counterfactual.replays`.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.counterfactual.replays import ReplayTree, ids_by_group, later_kin, leaf_returns, replay_tree
from estimators.options import checked_options
from estimators.relative_mean import mean_from_first, relative_to_first
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import (
    safe_divide,
    safe_sqrt,
    segment_count,
    segment_mean,
    segment_sum,
    segment_sum_squares,
)

__all__ = ["Variant", "c3"]

Variant = Literal["reward_only", "value_only", "value_assisted"]


@checked_options
@functools.partial(jax.jit, static_argnames=("variant", "baseline", "own_outcome", "normalise"))
def c3(
    graph: EventGraph,
    reward: Array,
    *,
    context: Array,
    node: Array,
    q_value: Array | None = None,
    event_reward: Array | None = None,
    variant: Variant = "reward_only",
    baseline: Literal["leave_one_out", "mean"] = "leave_one_out",
    mix: float | Array = 1.0,
    own_outcome: bool = True,
    normalise: bool = False,
) -> Credit:
    """The value of the chosen alternative against its siblings in the same context.

    With V(ν) the value of node ν (the mean of its children's values, at a leaf reward + Σ event_reward) and J
    alternatives in its context, B(V) is the mean of the siblings' values: of the J − 1 others ("leave_one_out") or of
    all J ("mean").

        reward_only      A = V(ν) − B(V)
        value_only       A = q(ν) − B(q)
        value_assisted   A = V(ν) − [(1 − mix) B(V) + mix B(q)]

    With alternatives drawn from the policy under one frozen context, "reward_only" with "leave_one_out" has mean Q(h,
    a) − V(h): the increment of the decision, unbiased. Nested fan-outs need the mean of child means used here; a mean
    over pooled leaves would weigh alternatives by how often they were replayed. Events of a context with one
    alternative are invalid; no other baseline replaces the siblings. Events are also invalid if a node is logged under
    two contexts, because these are not siblings, and so are those above them. The actions of a trace in one context are
    a joint turn, whether they have one node or nodes of their own: each gets the credit of the turn. Siblings are of
    one group: the same ids in another one are another context.

    Args:
      graph: the traces are the leaves; each action of a trace that was decided in a context gets credit.
      reward: float [T], the outcome of each trace in units of reward; NaN where unknown.
      context, node: int [E], any ids, -1 where the log has none.
      q_value: float [E], a critic's value of the chosen alternative; needed by the value variants.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      variant, baseline, mix: as above.
      own_outcome: False leaves the event's own trace out of V(ν), with all that share a later choice with it, and
        renormalises the rest. Control variates for other decisions of this trace need this. It needs "reward_only" with
        "leave_one_out": B(V) of "mean" holds the own outcome, too. A context in which an alternative has no other
        replay is then invalid as a whole: whether a decision has a claim must not depend on what it chose, such as to
        stop, after which nothing fans out.
      normalise: `credit` is A itself, `baseline` its mean over the context's nodes, and `scale` is
        max(sqrt(v + 1e-8), 1e-8), with v their population variance. Then "leave_one_out" and "mean" give the same
        numbers for "reward_only", since they differ by the factor J/(J − 1) only; with two alternatives A is ±1.

    Returns:
      `Credit` at level "event", estimand "increment" ("score" for the value variants, whose q is not an outcome), with
      stderr² = v_own Σ w² + v_siblings / (J − 1) over the replays of the node, whose weights w in its value are
      1/k without nested fan-outs; infinite with a single replay.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: C3, `c3/credit/c3/provider.py` at 628185b; goldens `c3_provider`, `c3_baselines`. The released default is
    variant="value_assisted", mix=1, normalise=True; its headline is "reward_only" with leave-one-out. The code falls
    back to another method when a group has one member or there is no critic; this one refuses.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(
      ...     group=["g"] * 8, trace=list("abcdefgh"), reward=[1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], events=8
      ... )
      >>> context = np.zeros(8, np.int32)  # one situation, two alternatives with four replays each
      >>> node = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int32)
      >>> result = credit.c3(graph, reward, context=context, node=node)
      >>> [round(float(a), 2) for a in result.advantage[:4]]
      [0.75, 0.75, -0.75, -0.75]
    """
    outcome, scored = check_reward(graph, leaf_returns(graph, reward, event_reward))
    trace = jnp.asarray(graph.trace_ids)
    context, node = ids_by_group(graph, "context", context), ids_by_group(graph, "node", node)
    tree = replay_tree(graph, scored[trace], context, node, outcome.dtype)
    # Relative to one outcome of the context, so that equal outcomes differ by exactly 0.
    reference, outcome = tree.relative(outcome[trace])
    at, value = reference[tree.context_of], tree.values(outcome)
    n = graph.num_events
    j = segment_count(tree.context_of, n, tree.node_mask, value.dtype)
    if variant not in ("reward_only", "value_only", "value_assisted"):
        raise CreditError(f"variant is {variant!r}; expected 'reward_only', 'value_only' or 'value_assisted'")
    if variant == "reward_only":
        own, against, known, disagree = value, _baseline(tree, value, baseline), tree.member, jnp.zeros(n, bool)
    elif q_value is None:
        raise CreditError(f"variant {variant!r} needs q_value, a critic's value of each alternative")
    else:
        q, has_q = check_event_array(graph, "q_value", q_value)
        disagree = tree.disagree(q, has_q)
        q, missing = q[tree.first].astype(value.dtype), tree.node_mask & ~has_q[tree.first]
        known = tree.member & (segment_count(tree.context_of, n, missing) == 0)[tree.context]
        critic = _baseline(tree, q, baseline)
        if variant == "value_only":
            own, against, at = q, critic, jnp.zeros_like(q)
        else:
            own, against = value, (1 - mix) * _baseline(tree, value, baseline) + mix * (critic - at)
    scale = jnp.ones_like(own)
    if normalise:
        own, at = own - against, jnp.zeros_like(own)
        against, scale = _centre_and_scale(tree, own, j)

    replays = segment_count(tree.node, n, tree.row, own.dtype)
    credit = own[tree.node]
    reason = _reason(tree, known, disagree, j)
    if not own_outcome:
        if normalise or variant != "reward_only" or baseline != "leave_one_out":  # others hold the own outcome
            given = f"variant={variant!r}, baseline={baseline!r} and normalise={normalise}"
            expected = "variant='reward_only', baseline='leave_one_out' and normalise=False"
            raise CreditError(f"own_outcome=False comes with {given}; expected {expected}")
        kin = later_kin(graph, tree)
        single = replays[tree.node] <= segment_count(kin, 2 * n, tree.row, own.dtype)[kin]
        credit = _without_own(tree, credit, outcome, kin, single)[tree.lead]
        # All of a context or none: whether a choice has a claim must not depend on which it was.
        lacking = segment_count(tree.context, n, tree.row & single)[tree.context] > 0
        reason = jnp.where((reason == Reason.VALID) & lacking, Reason.ONE_REPLAY, reason)
    return finish(
        graph,
        credit=at[tree.node] + credit,
        baseline=(at + against)[tree.node],
        scale=scale[tree.node],
        stderr=_stderr(tree, value, outcome, replays, j)[tree.node],
        reason=reason,
        unit="event",
        estimand="increment" if variant == "reward_only" else "score",
        source="c3",
        centred=variant == "reward_only",
        own_outcome=own_outcome,
        repeats=tree.repeats,
    )


def _baseline(tree: ReplayTree, values: jax.Array, kind: str) -> jax.Array:
    """What each node is compared with: float [E] of nodes."""
    n = values.shape[0]
    # Relative to one sibling, so that equal siblings differ by exactly 0.
    first, relative = relative_to_first(values, tree.context_of, n, tree.node_mask)
    reference = first[tree.context_of]
    mean = segment_mean(relative, tree.context_of, n, tree.node_mask)[tree.context_of]
    if kind == "mean":
        return reference + mean
    if kind != "leave_one_out":
        raise CreditError(f"baseline is {kind!r}; expected 'leave_one_out' or 'mean'")
    j = segment_count(tree.context_of, n, tree.node_mask, values.dtype)[tree.context_of]
    return reference + mean - safe_divide(relative - mean, j - 1)


def _without_own(
    tree: ReplayTree, value: jax.Array, outcome: jax.Array, kin: jax.Array, single: jax.Array
) -> jax.Array:
    """The value of each event's node without the event's own trace and its `kin`, float [E]; unchanged where `single`.

    Traces that share a later choice with the event's own depend on that choice, as its own outcome does.
    """
    num = 2 * len(kin)
    apart = segment_sum(tree.weight * (outcome - value), kin, num, tree.row)[kin]
    weight = segment_sum(tree.weight, kin, num, tree.row)[kin]
    return value - jnp.where(single, 0, safe_divide(apart, 1 - weight))


def _centre_and_scale(tree: ReplayTree, values: jax.Array, j: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean over the nodes of a context, and max(sqrt(variance + 1e-8), 1e-8), at each node: float [E] both."""
    n = values.shape[0]
    centre = mean_from_first(values, tree.context_of, n, tree.node_mask)
    squares = segment_sum_squares(values, centre, tree.context_of, n, tree.node_mask)
    scale = jnp.maximum(jnp.sqrt(safe_divide(squares, j) + 1e-8), 1e-8)
    return centre[tree.context_of], scale[tree.context_of]


def _reason(tree: ReplayTree, known: jax.Array, disagree: jax.Array, j: jax.Array) -> jax.Array:
    """Why each event has no answer by its context, int [E].

    `known`, bool [E], says by event whether all evidence is there, `disagree` by context whether some differs within a
    joint turn.
    """
    reason = jnp.where(tree.member & known, Reason.VALID, Reason.NO_EVIDENCE)
    reason = jnp.where(tree.member & disagree[tree.context], Reason.CONTRADICTION, reason)
    reason = jnp.where(tree.member & (j[tree.context] < 2), Reason.NO_SIBLING, reason)
    return jnp.where(tree.member & tree.unclear[tree.context], Reason.CONTEXTS_DIFFER, reason)


def _stderr(tree: ReplayTree, value: jax.Array, outcome: jax.Array, replays: jax.Array, j: jax.Array) -> jax.Array:
    """Standard error of a node's value against its siblings', from the spread of its replays and of its siblings."""
    n = replays.shape[0]
    enough = (replays > 1) & (j[tree.context_of] > 1)

    def errors() -> jax.Array:
        deviation = jnp.where(tree.row, outcome - value[tree.node], jnp.zeros_like(outcome))
        # Leaves of nested fan-outs have unequal weights w: Σ w² d² / (1 − Σ w²), or Σ d² / k (k − 1) where all are 1/k.
        squared = segment_sum(tree.weight**2, tree.node, n, tree.row)
        own = safe_divide(segment_sum((tree.weight * deviation) ** 2, tree.node, n, tree.row), 1 - squared)
        centre = segment_mean(value, tree.context_of, n, tree.node_mask)
        squares = segment_sum_squares(value, centre, tree.context_of, n, tree.node_mask)
        siblings = safe_divide(squares, (j - 1) ** 2)[tree.context_of]
        return jnp.where(enough, safe_sqrt(own + siblings), jnp.inf)

    # Many batches have one replay of each node.
    stderr: jax.Array = jax.lax.cond(jnp.any(enough), errors, lambda: jnp.full_like(value, jnp.inf))
    return stderr
