"""MAGRPO: joint turns of a team against the other joint turns drawn in the same place. Two codes bear the name.

`magrpo` is the authors' (CoMLRL): a tree of joint turns, discounted returns, no standard deviation. `c3_magrpo` is the
baseline of that name in C3: whole traces of a task, divided by their spread. They are different algorithms.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.counterfactual.replays import event_ids, ids_by_group, replay_tree
from estimators.group import Singleton, group_relative
from estimators.members import Over, members, row_scores, statistics
from estimators.options import checked_options
from estimators.relative_mean import mean_from_first, relative_to_first
from estimators.sequence.chains import chains
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.keys import By, key_of
from graphs.levels import pair_ids
from graphs.segment import safe_divide, segment_count, segment_first, segment_mean, segment_sum

__all__ = ["c3_magrpo", "magrpo"]


@checked_options
@functools.partial(jax.jit, static_argnames=("baseline", "joint_mode"))
def magrpo(
    graph: EventGraph,
    reward: Array,
    *,
    context: Array,
    node: Array,
    event_reward: Array | None = None,
    discount: float | Array = 0.9,
    baseline: Literal["mean", "leave_one_out", "max", "none", "raw"] = "mean",
    joint_mode: Literal["aligned", "cross"] = "aligned",
    completion: Array | None = None,
) -> Credit:
    """MAGRPO (CoMLRL): the return of a joint turn against the other joint turns drawn in the same place.

        G(ν) = r(ν) + γ · mean over the joint turns ν' that follow of G(ν')        A = G(ν) − b

    Over the K joint turns of a context, b is their mean ("mean", the default there), the mean of the others
    ("leave_one_out"; "rloo" there), the greatest ("max") or 0 ("none", and "raw" as there: "raw" also answers where a
    context has one joint turn, "none" refuses it). All agents of a joint turn get the same number. No division.

    With `joint_mode` "cross", the N agents' K completions of a context are combined into K^N joint turns. A completion
    then stands for all those that contain it, and is compared with the other completions of its agent, by name:

        G(c) = Σ_{ν contains c} G(ν)        A = G(c) − b,   b over the K completions

    It is their sum, not their mean, as in the code: A grows with K^(N−1), and with it the step that a learner takes.

    Args:
      graph: the batch.
      reward: float [T]; the traces are the leaves of the tree, and the outcome arrives with the last joint turn of its
        trace.
      context, node: int [E], any ids: `context` is the place in the tree, the same at the actions of all agents of a
        joint turn, `node` the draw, one for the turn or one for each agent; -1 where the log has none.
      event_reward: float [E], rewards at events; r(ν) is their sum over the joint turn, up to the next one. NaN counts
        as 0.
      discount: γ.
      baseline, joint_mode: as above.
      completion: int [E], any ids of what each agent contributed, -1 where the log has none; for "cross" alone.

    Returns:
      `Credit` at level "event", estimand "score"; `stderr` infinite. A context with one joint turn, or an agent with
      one completion, is refused; so is, with "cross", an agent whose completions stand in different numbers of joint
      turns, because combinations are missing and sums of unlike numbers of returns cannot be compared.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.
      CreditError: "cross" without `completion`, or `completion` without "cross".

    Reference: CoMLRL `magrpo.py` at 1665784, function bodies executed, golden `comlrl_magrpo`, `joint_mode="aligned"`;
    "cross" was read there, not executed. The code takes "crossed" for "cross" when it combines completions but not when
    it sums, and so leaves K^N returns to K completions: that spelling is refused here.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0], evidence={"context": ["q", "q"], "node": ["x", "y"]})
      >>> tree = {name: rows.evidence[name] for name in ("context", "node")}
      >>> rows.gather(credit.magrpo(graph, reward, **tree).advantage).tolist()
      [0.5, -0.5]
    """
    if joint_mode not in ("aligned", "cross"):
        raise CreditError(f"joint_mode is {joint_mode!r}; expected 'aligned' or 'cross'")
    if joint_mode == "aligned" and completion is not None:
        raise CreditError("completion is given, but joint_mode is 'aligned'; expected 'cross'")
    outcome, scored = check_reward(graph, reward, event_reward)
    n, trace, real = graph.num_events, jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    context, node = ids_by_group(graph, "context", context), ids_by_group(graph, "node", node)
    acts = real & graph.trained_mask & scored[trace] & (node >= 0) & (context >= 0)
    tree = replay_tree(graph, acts, context, node, outcome.dtype)
    to_go = _returns(graph, outcome, tree.row, event_reward, discount)
    # Relative to one return of the context, so that equal returns differ by exactly 0.
    reference, relative = tree.relative(to_go)
    value, at = tree.values(relative), reference[tree.context_of]

    if joint_mode == "aligned":
        one_mask, rivals, of_event = tree.node_mask, tree.context_of, tree.node
        even = jnp.ones(n, bool)
    elif completion is None:
        raise CreditError("joint_mode is 'cross', which needs completion: int [E], ids of what each agent contributed")
    else:
        chosen = event_ids(graph, "completion", completion)
        acts = acts & (chosen >= 0)
        name = jnp.asarray(graph.agent_name_ids)[graph.agent_ids]
        value, at, one_mask, rivals, of_event, even = _completions(
            value, at, tree.node, tree.context, name, jnp.maximum(chosen, 0), acts
        )

    k = segment_count(rivals, n, one_mask, value.dtype)[rivals]
    against = jnp.zeros_like(at)
    if baseline not in ("none", "raw"):
        against = at + _against(value, rivals, one_mask, baseline)
    enough = 1 if baseline == "raw" else 2
    reason = jnp.where(
        k[of_event] < enough, Reason.NO_SIBLING, jnp.where(even[of_event], Reason.VALID, Reason.NO_EVIDENCE)
    )
    reason = jnp.where(tree.unclear[tree.context], Reason.CONTEXTS_DIFFER, reason)
    missing = jnp.where(scored[trace], Reason.NO_EVIDENCE, Reason.NO_REWARD)
    return finish(
        graph,
        credit=(at + value)[of_event],
        baseline=against[of_event],
        scale=jnp.ones_like(value),
        stderr=jnp.full_like(value, jnp.inf),
        reason=jnp.where(acts, reason, missing),
        unit="event",
        estimand="score",
        source="magrpo",
        centred=baseline == "leave_one_out",
        own_outcome=True,
    )


def _returns(
    graph: EventGraph, outcome: jax.Array, leads: jax.Array, event_reward: Array | None, discount: float | Array
) -> jax.Array:
    """The discounted return of each joint turn within its own trace, at its first action: float [E]."""
    trace, path = jnp.asarray(graph.trace_ids), chains(graph, leads)
    earned = jnp.where(path.last, outcome[trace], jnp.zeros_like(outcome[trace]))
    if event_reward is not None:
        step = check_event_array(graph, "event_reward", event_reward)[0].astype(earned.dtype)
        earned = earned + path.gathered(step, jnp.asarray(graph.event_mask))
    return path.backward_alike(jnp.ones_like(earned) * discount, earned)


def _against(value: jax.Array, rivals: jax.Array, one_mask: jax.Array, baseline: str) -> jax.Array:
    """What each of E alternatives is compared with, float [E]: those with one `rivals` id are rivals."""
    n = value.shape[0]
    # Relative to one rival, so that equal ones differ by exactly 0.
    first, relative = relative_to_first(value, rivals, n, one_mask)
    reference = first[rivals]
    if baseline == "max":
        filled = jnp.where(one_mask, relative, -jnp.inf)
        greatest = jax.ops.segment_max(filled, rivals, num_segments=n)[rivals]
        return reference + jnp.where(one_mask, greatest, 0)
    mean = segment_mean(relative, rivals, n, one_mask)[rivals]
    if baseline == "mean":
        return reference + mean
    if baseline != "leave_one_out":
        raise CreditError(f"baseline is {baseline!r}; expected 'mean', 'leave_one_out', 'max', 'none' or 'raw'")
    k = segment_count(rivals, n, one_mask, value.dtype)[rivals]
    return reference + mean - safe_divide(relative - mean, k - 1)


def _completions(
    value: jax.Array,
    at: jax.Array,
    node: jax.Array,
    context: jax.Array,
    name: jax.Array,
    chosen: jax.Array,
    acts: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Completions as alternatives of their agents: sums of returns, which exist, their rivals' id, and whether evenly.

    `value` is of joint turns [E], relative to `at` [E]; `node`, `context`, `name` and `chosen` are of events [E].
    Returns float [E] of completions, the sums of both; bool and int32 [E] of completions; int32 [E], the completion of
    each event; bool [E], of completions, whether those of the agent in the context stand in equally many joint turns.
    """
    n = acts.shape[0]
    place = jnp.arange(n, dtype=jnp.int32)
    who = pair_ids(context, name, acts, n)
    of_event = pair_ids(who, chosen, acts, n)
    within = pair_ids(of_event, node, acts, n)  # a joint turn may be met in several traces, and counts once
    once = acts & (place == segment_first(within, n, acts)[within])
    one_mask = segment_count(of_event, n, acts) > 0
    rivals = who[segment_first(of_event, n, acts)]
    size = segment_count(of_event, n, once, jnp.int32)
    least = jax.ops.segment_min(jnp.where(one_mask, size, n), rivals, num_segments=n)
    most = jax.ops.segment_max(jnp.where(one_mask, size, 0), rivals, num_segments=n)
    total = segment_sum(value[node], of_event, n, once)
    at = at[node][segment_first(of_event, n, once)] * size.astype(at.dtype)
    return total, at, one_mask, rivals, of_event, (least == most)[rivals]


@checked_options
@functools.partial(jax.jit, static_argnames=("baseline", "normalise", "over", "singleton"))
def c3_magrpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    by: By = None,
    baseline: Literal["mean", "leave_one_out"] = "mean",
    normalise: bool = True,
    over: Over = "group",
    eps: float | Array = 1e-8,
    singleton: Singleton = "zero",
    leaf: Array | None = None,
) -> Credit:
    """MAGRPO as C3 runs it as a baseline: traces of a task against each other, divided by their spread.

        A_i = (R_i − b) / sqrt(v + eps)

    b is the mean over the group or over the others, v the population variance (ddof 0).

    Biased for the policy gradient. Replays of one trace count as one sample, and traces without an independent one are
    refused (`estimators.clusters`).

    With n samples in the group, no |A| exceeds √(n − 1) with the mean, or n/√(n − 1) with the mean of the others,
    however little the rewards differ. Only `singleton="raw"` has no bound: it gives 10,000 R.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0. The code
        takes the reward of a trace's last role as R_i.
      by: the key, as of `grpo`: None compares traces ("joint_action", the default there); "agent_name" or "role_name"
        compares rows of one name on one task ("per_role").
      baseline: "leave_one_out" is called "rloo" there; its mean is over the others, its spread over all.
      normalise: whether to divide.
      eps: added to the variance.
      over: "batch" is the code without group ids.
      singleton: a group of one. "zero" is what the code gives with "mean"; "raw" what it gives with "leave_one_out",
        where dividing by sqrt(0 + eps) makes R into 10,000 R.
      leaf: bool [E], the rows at the leaves of the code's tree. R_i is then the mean over these rows of outcome plus
        own event reward, and over all rows of a trace that has no leaf, as the code's joint-action path has it. For
        `by=None` only.

    Returns:
      `Credit`; level "trace", estimand "total", or level "event", estimand "scale" where rows are compared by name.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: C3 `c3/algorithms/magrpo.py` and `experience_maker.py` at 628185b, executed, goldens `c3_magrpo` and
    `c3_magrpo_joint_action`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.c3_magrpo(graph, reward).advantage).tolist()
      [1.4142, -0.7071, -0.7071]
    """
    by = key_of(by)
    population: Literal["trace", "row"] = "trace" if by.level == "trace" else "row"
    if leaf is not None:
        if population == "row":
            raise CreditError(f"leaf is given, and rows are compared {by!r}; expected by=None, which compares traces")
        reward, event_reward = _leaf_means(graph, reward, event_reward, jnp.asarray(leaf)), None
    plain = group_relative(
        graph,
        reward,
        event_reward=event_reward,
        baseline=baseline,
        by=by,
        population=population,
        over=over,
        singleton=singleton,
        source="c3_magrpo",
    )
    if not normalise:
        return plain
    m = members(graph, reward, event_reward, by=by, population=population, aggregate="sum", over=over)
    n, _, squares = statistics(m)
    spread = jnp.sqrt(safe_divide(squares, n) + eps)[m.key][m.of_event]
    lost = plain.valid & ~jnp.isfinite(spread)  # the squares overflow, and any number over it would be 0
    zero = jnp.zeros_like(spread)
    return dataclasses.replace(
        plain,
        credit=jnp.where(lost, zero, plain.credit),
        baseline=jnp.where(lost, zero, plain.baseline),
        stderr=jnp.where(lost, zero, plain.stderr),
        scale=jnp.where(plain.valid & ~lost, spread, jnp.ones_like(spread)),
        reason=jnp.where(lost, np.int8(Reason.OUT_OF_RANGE), plain.reason),
    )


def _leaf_means(graph: EventGraph, reward: Array, event_reward: Array | None, leaf: jax.Array) -> jax.Array:
    """The mean score of the leaf rows of each trace, of all its rows where none is a leaf: float [T], NaN without."""
    if leaf.dtype != jnp.bool_ or leaf.shape != (graph.num_events,):
        raise CreditError(f"leaf is {leaf.dtype} {leaf.shape}; expected bool ({graph.num_events},), one for each event")
    score, row_mask = row_scores(graph, reward, event_reward)
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    has_leaf = segment_count(trace, num, row_mask & leaf) > 0
    used_mask = row_mask & (leaf | ~has_leaf[trace])
    mean = mean_from_first(score, trace, num, used_mask)
    return jnp.where(segment_count(trace, num, used_mask) > 0, mean, jnp.nan)
