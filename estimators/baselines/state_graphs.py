"""States that traces of a task share: histories of observations, values of states, distances to success.

A state is the observation that an action answered (`anchor`, an id), and the next state of an action is the anchor of
the trace's next action. Without a critic, what traces of the task met after a state says what it was worth.
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish_score
from estimators.baselines.anchors import step_returns
from estimators.clusters import clusters_of
from estimators.compared_ids import before_compiling, numbered
from estimators.counterfactual.replays import event_ids, ids_below
from estimators.members import Members, statistics
from estimators.options import checked_options
from estimators.sequence.chains import Chains, chains
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt

__all__ = ["g2po", "graph_gpo", "hgpo"]


class _Steps(NamedTuple):
    """The actions of scored traces as steps from state to state; [E] each.

    Attributes:
      outcome: float, the outcome of the event's trace.
      row: bool, the actions.
      path: the chains of actions along traces.
      key: int32, the first action of the task, the key of comparisons within the task.
      here: int32 in [0, E), the state of the task that the action answered, where `known`.
      known: bool, rows with a state.
    """

    outcome: jax.Array
    row: jax.Array
    path: Chains
    key: jax.Array
    here: jax.Array
    known: jax.Array


def _steps(graph: EventGraph, reward: Array, anchor: Array, event_reward: Array | None = None) -> _Steps:
    outcome, scored = check_reward(graph, reward, event_reward)
    trace = jnp.asarray(graph.trace_ids)
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    observed = event_ids(graph, "anchor", anchor)
    known = row & (observed >= 0)
    group = ids_below(graph.num_events, jnp.asarray(graph.group_ids)[trace], row)
    here = pair_ids(group, ids_below(graph.num_events, observed, known), known, graph.num_events)
    return _Steps(outcome[trace], row, chains(graph, row), group, here, known)


def _z(
    graph: EventGraph,
    values: jax.Array,
    key: jax.Array,
    where: jax.Array,
    *,
    divided: bool,
    ddof: int = 1,
    eps: float = 1e-6,
    alone: Literal["zero", "raw"] = "zero",
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Values against the mean of their key, over its spread if `divided`; bool masks: comparable, with replays only."""
    shared = clusters_of(graph, jnp.asarray(graph.trace_ids), key, where, several=True, dtype=values.dtype)
    m = Members(jnp.where(where, values, 0), key, where, jnp.arange(len(key), dtype=jnp.int32), shared)
    n, mean, squares = (each[key] for each in statistics(m))
    apart = values - mean
    if divided:
        apart = safe_divide(apart, safe_sqrt(safe_divide(squares, n - ddof)) + eps)
    compared = where & (n >= 2)
    other = jnp.zeros_like(values) if alone == "zero" else values
    return jnp.where(compared, apart, jnp.where(where, other, 0)), compared, m.shared_mask


@checked_options
@before_compiling(anchor=numbered, env_step=numbered)
@functools.partial(jax.jit, static_argnames=("history", "scale", "skip_zeros"))
def hgpo(
    graph: EventGraph,
    reward: Array,
    *,
    anchor: Array,
    event_reward: Array | None = None,
    env_step: Array | None = None,
    env_reward: Array | None = None,
    history: int = 2,
    discount: float | Array = 1.0,
    alpha: float | Array = 1.0,
    scale: Literal["std", "none"] = "std",
    skip_zeros: bool = True,
    eps: float | Array = 1e-6,
) -> Credit:
    """HGPO: a step against the steps that answered the same last k observations, for k = 1 to K + 1, averaged.

        A = Σ_k w_k (G − μ_k) / (s_k + eps)        w_k = (k + 1)^alpha / (Σ_k (k + 1)^alpha + 1e-6)

    G is the return from the environment step on (`estimators.baselines.anchors.step_returns`); μ_k and s_k (ddof 0) are
    over the steps of the task whose last k anchors are the same, K = history. A level counts where the step has k
    anchors and another step has the same ones. The code also drops a level whose term is exactly 0: a step that is
    exactly average there takes the other levels' terms whole, so that its weights depend on outcomes; `skip_zeros` set
    to False averages the 0 in. A step that is alone at all levels gets 0. There is no term of the whole trace.

    Biased for the policy gradient: each mean holds the step's own return. Replays of one trace count as one sample, and
    steps that replays of their trace alone share are refused (`estimators.clusters`).

    With scale "std" and at most m steps at an anchor, no |A| exceeds √(m − 1), however little returns differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      anchor: int [E], ids of observations, any numbers; -1 where the log has none, and the action is invalid.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      env_step, env_reward, discount: of the return, as for `gigpo`. The paper's γ is 0.95; equal outcomes
        at different distances from the end are only then different.
      history: K, how many earlier observations are compared.
      alpha: the greater, the more the long histories weigh.
      scale: "none" does not divide ("mean_norm").
      skip_zeros: whether a level with a term of 0 has no weight.
      eps: added to the standard deviations.

    Returns:
      `Credit` at level "event", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: IGRPO repository, `recipe/hgpo/core_hgpo.py` `hgpo_advantage_estimate` at 65707c6 (Apache-2.0), executed,
    golden `hgpo`, without its option `base_group`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0], evidence={"anchor": ["x", "x", "y"]})
      >>> rows.gather(credit.hgpo(graph, reward, anchor=rows.evidence["anchor"]).advantage).tolist()
      [1.0, -1.0, 0.0]
    """
    steps = _steps(graph, reward, anchor, event_reward)
    to_go, known = step_returns(
        graph, reward, event_reward=event_reward, env_step=env_step, env_reward=env_reward, discount=discount
    )
    known = known & steps.known
    to_go = to_go.astype(steps.outcome.dtype)
    n, trace = len(known), jnp.asarray(graph.trace_ids)
    latest = jax.lax.cummax(jnp.where(steps.row, jnp.arange(n, dtype=jnp.int32), -1))
    before = jnp.concatenate([jnp.full(1, -1, jnp.int32), latest[:-1]])
    goes_on = (before >= 0) & (trace[before] == trace)
    same, there = steps.here, known  # of the last k observations: an id, and whether the step has as many
    total, weights = jnp.zeros_like(to_go), jnp.zeros_like(to_go)
    replays_only, compared_once = jnp.zeros_like(known), jnp.zeros_like(known)
    for k in range(1, history + 2):
        if k > 1:
            there = known & goes_on & there[before]
            same = pair_ids(same[before], steps.here, there, n)
        z, compared, shared = _z(graph, to_go, same, there, divided=scale == "std", ddof=0, eps=eps)
        counts = compared & (jnp.abs(z) > 0) if skip_zeros else compared
        weight = jnp.where(counts, jnp.power(jnp.asarray(k + 1, to_go.dtype), alpha), 0)
        total, weights = total + weight * z, weights + weight
        replays_only, compared_once = replays_only | (there & shared), compared_once | compared
    reason = jnp.where(replays_only & ~compared_once, Reason.SHARED_PREFIX, Reason.VALID)
    reason = jnp.where(known, reason, jnp.where(steps.row, Reason.NO_EVIDENCE, Reason.NO_REWARD))
    return finish_score(graph, total / (weights + 1e-6), reason, "event", "hgpo")


@checked_options
@before_compiling(anchor=numbered)
@functools.partial(jax.jit, static_argnames=("scale",))
def g2po(
    graph: EventGraph,
    reward: Array,
    *,
    anchor: Array,
    event_reward: Array | None = None,
    is_valid: Array | None = None,
    discount: float | Array = 0.95,
    weight: float | Array = 1.0,
    success: float | Array = 1.0,
    penalty: float | Array = 0.1,
    scale: Literal["none", "std"] = "none",
) -> Credit:
    """G2PO: the trace against its task, plus the next state against those reached from the same state, plus progress.

        V(s) = mean of γ^(L − t) R over all visits of s in the task: step t from 0 of a trace of L actions, outcome R
        A = z_task(R) + w (z_state(V(next) − penalty · invalid) + z_task(V(next) − V(here)))

    z is the difference to the mean over the actions of the task, or over those at the same state; with scale "std" it
    is divided by the standard deviation (ddof 1) + 1e-6. Behind the last action V is `success` if the trace reached
    it, else 0. A state that was met once gives 0 in the second term. A trace with more actions weighs more, and V holds
    the trace's own outcome: biased for the policy gradient.

    Without scale and with outcomes between 0 and `success`, no |A| exceeds max(1 + 9/4 w, 3 w) `success` + w `penalty`:
    at the released outcomes of 0 and 10, where it reached 21 in three traces, that is 32.6.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      anchor: int [E], ids of observations; -1 where the log has none, and the action and the one before are invalid.
      event_reward: not used.
      is_valid: float [E], 0 where the action was not understood by the environment; None: all are valid.
      discount, weight, penalty: γ, w and the penalty of an invalid action, in units of the outcome.
      success: the outcome that counts as success; the code's is 10.
      scale: "none" ("mean_norm", the default there) or "std".

    Returns:
      `Credit` at level "event", estimand "score". Replays count as one sample in z, and every visit counts in V.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: G2PO `g2po/core_g2po.py` at b8ffaf5 (Apache-2.0), executed, golden `g2po`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0], evidence={"anchor": ["x", "x", "y"]})
      >>> rows.gather(credit.g2po(graph, reward, anchor=rows.evidence["anchor"], discount=1.0).advantage).tolist()
      [1.667, -1.333, -0.333]
    """
    del event_reward
    steps = _steps(graph, reward, anchor)
    n = len(steps.row)
    left = steps.path.backward_alike(jnp.ones_like(steps.outcome), jnp.ones_like(steps.outcome))  # L − t
    places = jnp.arange(n, dtype=jnp.int32)
    seen = jnp.power(jnp.asarray(discount, steps.outcome.dtype), left) * steps.outcome
    seen = jnp.zeros_like(seen).at[places].set(seen)  # computed once, see `graph_gpo`
    value = statistics(Members(jnp.where(steps.known, seen, 0), steps.here, steps.known, places))[1][steps.here]
    reached = jnp.where(steps.outcome >= success * (1 - 1e-6), success * jnp.ones_like(value), 0)
    ahead = jnp.where(steps.path.last, reached, steps.path.following(jnp.where(steps.known, value, 0)))
    known = steps.known & (steps.path.last | (steps.path.following(steps.known.astype(jnp.int32)) > 0))
    wrong = jnp.zeros_like(value)
    if is_valid is not None:
        stated, mask = check_event_array(graph, "is_valid", is_valid)
        wrong = jnp.where(mask & (stated < 0.5), penalty * jnp.ones_like(value), 0)
    divided = scale == "std"
    whole, _, shared = _z(graph, steps.outcome, steps.key, steps.row, divided=divided, alone="raw")
    state = _z(graph, ahead - wrong, steps.here, known, divided=divided)[0]
    progress = _z(graph, ahead - value, steps.key, known, divided=divided)[0]
    reason = jnp.where(shared, Reason.SHARED_PREFIX, Reason.VALID)
    reason = jnp.where(known, reason, jnp.where(steps.row, Reason.NO_EVIDENCE, Reason.NO_REWARD))
    return finish_score(graph, whole + weight * (state + progress), reason, "event", "g2po")


@checked_options
@before_compiling(anchor=numbered, next_anchor=numbered)
@functools.partial(jax.jit, static_argnames=("relative",))
def graph_gpo(
    graph: EventGraph,
    reward: Array,
    *,
    anchor: Array,
    event_reward: Array | None = None,
    next_anchor: Array | None = None,
    discount: float | Array = 0.1,
    success: float | Array = 1.0,
    relative: bool = False,
) -> Credit:
    """GraphGPO: the trace against its task, plus how near an action came to success in the graph of the task's states.

        A = z_task(R) + z_state(γ^d(next))        relative: γ^(d(next) − d(here) + 1)

    The graph has an edge from each state to the next one in every trace of the task, and from the last state of a
    successful trace to success; d is the length of the shortest path to success, and one more than the longest such
    path where there is none. z is over the actions of the task, or at the same state (0 for a state that was met once):
    the difference to the mean over the standard deviation (ddof 1) + 1e-6. Without a successful trace in the task all
    d are equal. Own outcomes make the graph: biased for the policy gradient. A trace with more actions weighs more.

    With n actions in the task and m at the state, no |A| exceeds (n − 1)/√n + (m − 1)/√m.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      anchor: int [E], ids of observations; -1 where the log has none, and the action is invalid.
      event_reward: not used.
      next_anchor: int [E], the id of the observation that followed, of the same kind as `anchor`; None: that of the
        trace's next action. -1 where the log has none. The last action of a failed trace needs it to lead anywhere.
      discount: γ; 0.1 in the code.
      success: a trace with this outcome or more succeeded.
      relative: as above; the code's `normalize_distance`.

    Returns:
      `Credit` at level "event", estimand "score". Replays count as one sample in z, and all of them are in the graph.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: arXiv:2605.26684; verl-agent `recipe/GraphGPO/core_graph.py` in its copy zzj1111/alfworldauto at 37aec78
    (Apache-2.0), executed, golden `graph_gpo`. There any reward above 0 is a success.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "b", "b"], reward=[1.0, 0.0, 0.0], evidence={"anchor": ["x", "x", "y"]})
      >>> rows.gather(credit.graph_gpo(graph, reward, anchor=rows.evidence["anchor"]).advantage).tolist()
      [1.8618, -1.2845, -0.5773]
    """
    del event_reward
    steps = _steps(graph, reward, anchor)
    n, last = len(steps.row), steps.path.last
    follows = steps.path.following(steps.here)
    has_next = steps.path.following(steps.known.astype(jnp.int32)) > 0
    known = steps.known & (last | has_next)
    if next_anchor is not None:
        # Numbered together with the anchors: twice the room.
        both = jnp.concatenate([event_ids(graph, "anchor", anchor), event_ids(graph, "next_anchor", next_anchor)])
        tasks, real = jnp.concatenate([steps.key] * 2), jnp.concatenate([steps.known, steps.row]) & (both >= 0)
        ids = pair_ids(tasks, both, real)
        first = jnp.zeros(2 * n, jnp.int32).at[ids[:n]].max(jnp.where(steps.known, steps.here + 1, 0))
        met = real[n:] & (first[ids[n:]] > 0)
        follows = jnp.where(met, first[ids[n:]] - 1, follows)
        has_next = jnp.where(real[n:], met, has_next & ~last)
        known = steps.known & (last | real[n:] | has_next)
    succeeded = steps.outcome >= success * (1 - 1e-6)
    goal, edge = known & last & succeeded, known & has_next & ~(last & succeeded)
    far = jnp.asarray(n + 1, jnp.int32)
    start = jnp.full(n, far).at[jnp.where(goal, steps.here, n)].min(1, mode="drop")

    def relax(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        distance, _ = state
        nearer = distance.at[jnp.where(edge, steps.here, n)].min(distance[follows] + 1, mode="drop")
        return nearer, jnp.any(nearer < distance)

    distance, _ = jax.lax.while_loop(lambda state: state[1], relax, (start, jnp.any(goal)))
    found = jnp.where(steps.known & (distance[steps.here] < far), distance[steps.here], 0)
    longest = jax.ops.segment_max(jnp.where(steps.row, found, 0), steps.key, num_segments=n)[steps.key]
    here = jnp.where(distance[steps.here] < far, distance[steps.here], longest + 1)
    ahead = jnp.where(has_next, jnp.where(distance[follows] < far, distance[follows], longest + 1), longest + 1)
    ahead = jnp.where(goal, 0, ahead)
    steps_left = (ahead - here + 1 if relative else ahead).astype(steps.outcome.dtype)
    # What a scatter writes is computed once: recomputed beside a difference, equal numbers differ in their last bits.
    places = jnp.arange(n, dtype=jnp.int32)
    near = jnp.power(jnp.asarray(discount, steps.outcome.dtype), steps_left)
    near = jnp.zeros_like(near).at[places].set(10 * near)
    whole, _, shared = _z(graph, steps.outcome, steps.key, steps.row, divided=True, alone="raw")
    state = _z(graph, near, steps.here, known, divided=True)[0]
    reason = jnp.where(shared, Reason.SHARED_PREFIX, Reason.VALID)
    reason = jnp.where(known, reason, jnp.where(steps.row, Reason.NO_EVIDENCE, Reason.NO_REWARD))
    return finish_score(graph, whole + state, reason, "event", "graph_gpo")
