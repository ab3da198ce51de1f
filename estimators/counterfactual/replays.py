"""The replay tree: traces that share their beginnings, because a team was re-run from frozen contexts.

Alternatives are sampled from the policy at one decision, each is continued to the end one or more times, and later
decisions may fan out again. Logged, this is a set of traces. Two ids per event describe it:

    context   events with one context chose among alternatives in one situation: they are siblings
    node      events with one node are one and the same choice, met in several traces: its replays

A trace is a path through this tree, its outcome the reward of a leaf. Nothing else about the tree is stored. The
actions of a trace in one context are one decision, a joint turn (`estimators.joint_turns`): the siblings of a draw are
draws of other traces.

Siblings answer one task under one policy: an id that occurs in several groups is another context, or node, in each
(`ids_by_group`).

Independent traces may reach one situation by chance, as `credit siblings` finds. Their earlier choices then have nodes
of their own, and the context hangs below each of them with the alternatives that came from there.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import check_event_array, check_reward
from estimators.compared_ids import before_compiling, numbered
from estimators.joint_turns import joint_turns
from estimators.relative_mean import ALIKE, relative_to_first
from estimators.sequence.chains import chains
from graphs.errors import ArrayTypeError
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, segment_count, segment_first, segment_sum
from graphs.stable_order import stable_order

__all__ = [
    "ReplayTree",
    "event_ids",
    "ids_below",
    "ids_by_group",
    "later_kin",
    "leaf_returns",
    "replay_tree",
    "subtree_values",
]


class ReplayTree(NamedTuple):
    """The tree; nodes and contexts are segments [E], since there are no more of them than events.

    Attributes:
      member: bool [E], events on a path: actions of the traces asked for that have a context and a node.
      row: bool [E], one member of each decision of a trace, its first.
      lead: int32 [E], the `row` of each member; of other events the event itself.
      node, context: int32 [E], of events; the members of a joint turn have one node.
      weight: float [E], the share of the row's trace in the value of its node; sums to 1 over the rows of a node.
      first: int32 [E], a row of each node.
      node_mask: bool [E], True for nodes that exist.
      context_of: int32 [E], of nodes.
      mixed: bool [E], contexts with a node that is logged under another context, too, with traces of two groups, or
        with an unclear joint turn: no siblings of one situation.
      unclear: bool [E], these and all contexts above one of them, whose nodes have no value.
    """

    member: jax.Array
    row: jax.Array
    lead: jax.Array
    node: jax.Array
    context: jax.Array
    weight: jax.Array
    first: jax.Array
    node_mask: jax.Array
    context_of: jax.Array
    mixed: jax.Array
    unclear: jax.Array

    def values(self, outcome: jax.Array) -> jax.Array:
        """The value of each node from a number per row, such as the outcome of its trace: float [E].

        The mean over the node's children of their values; a trace that ends in the node is a child.
        """
        return segment_sum(self.weight * outcome, self.node, self.node.shape[0], self.row)

    def relative(self, outcome: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The number of one row of each context, and what each row has more than its context's: [E], [E].

        The shares of a node's traces sum to 1 but for rounding. The `values` of these differences are exactly 0 where
        the outcomes of the context are equal, however often each alternative was replayed.
        """
        return relative_to_first(outcome, self.context, self.node.shape[0], self.row)

    @property
    def repeats(self) -> jax.Array:
        """bool [E], the members behind the first one of their decision, which have its number once more."""
        return self.member & ~self.row

    def disagree(self, values: jax.Array, stated: jax.Array) -> jax.Array:
        """Contexts with a joint turn whose members do not state one number, or that only some state: bool [E].

        Args:
          values: float [E].
          stated: bool [E], where there is one.
        """
        lead = self.lead
        apart = jnp.abs(values - values[lead]) > ALIKE * jnp.maximum(1, jnp.abs(values))
        wrong = self.member & (apart | (stated != stated[lead]))
        return segment_count(self.context, len(values), wrong) > 0


def replay_tree(
    graph: EventGraph, where: Array, context: Array, node: Array, dtype: jax.typing.DTypeLike = jnp.float32
) -> ReplayTree:
    """The tree of the actions among `where`, bool [E], by ids in [0, E); an action with another one is not on it.

    The children of a node are the contexts that follow it and the traces that end in it; the children of a context are
    its alternatives. The actions of a trace in one context are one step of its path. The share of a trace in a node's
    value is thus a product of 1/(number of children) along the rest of its path, a backward recursion.

    Raises:
      ArrayTypeError: `context` or `node` are not integers [E].
    """
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    context, node = event_ids(graph, "context", context), event_ids(graph, "node", node)
    row = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask) & where
    member = row & (context >= 0) & (context < n) & (node >= 0) & (node < n)
    context, node = jnp.where(member, context, 0), jnp.where(member, node, 0)
    first_of = segment_first(context, n, member)
    turns = joint_turns(graph, member, context, node, first_of)
    node, row = turns.node, member & (turns.lead == jnp.arange(n, dtype=jnp.int32))
    first, node_mask = segment_first(node, n, row), segment_count(node, n, row) > 0
    context_of = context[first]

    path = chains(graph, row)
    above = _previous_row(node, row, trace)
    branch = _first_below(above, context, row, first_of)  # a context below one node; most contexts have one branch
    alternatives = segment_count(branch[first], n, node_mask, dtype)
    leads = jnp.arange(n, dtype=branch.dtype) == branch
    below = segment_count(jnp.where(above >= 0, above, 0), n, row & leads & (above >= 0), dtype)
    ends = segment_count(node, n, path.last, dtype)
    among_siblings = safe_divide(jnp.ones_like(alternatives), alternatives)[branch]
    among_children = safe_divide(jnp.ones_like(below), below + ends)[node]
    share = path.backward(among_siblings * among_children, jnp.zeros_like(among_children), end=1.0)
    weight = jnp.where(row, safe_divide(share, among_siblings), jnp.zeros_like(share))
    wrong = _other_task(graph, row, context, first_of) | (member & turns.unclear)
    mixed = _mixed(row, node, context, context_of, wrong)
    above = jax.lax.cond(
        jnp.any(mixed),
        lambda: segment_count(context, n, path.reaches(mixed[context])) > 0,
        lambda: mixed,
    )
    return ReplayTree(member, row, turns.lead, node, context, weight, first, node_mask, context_of, mixed, above)


def leaf_returns(graph: EventGraph, reward: Array, event_reward: Array | None) -> jax.Array:
    """The return of each leaf, its outcome plus all rewards at its events: float [T], NaN where it has no outcome.

    Siblings of one prefix share what was earned in it, so that it leaves their difference. Where independent traces met
    in one situation, it is noise there.

    Args:
      graph: the batch.
      reward: float [T], the outcome of each trace; NaN where unknown.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0], event_reward=[0.25, 0.5])
      >>> leaf_returns(graph, reward, rows.event_reward)[:1].tolist()
      [1.75]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    if event_reward is not None:
        step, real = check_event_array(graph, "event_reward", event_reward)
        outcome = outcome + segment_sum(step.astype(outcome.dtype), graph.trace_ids, graph.num_traces, real)
    return jnp.where(scored, outcome, jnp.nan)


def later_kin(graph: EventGraph, tree: ReplayTree) -> jax.Array:
    """One id for the rows of a node whose traces share a choice after it: int32 [E] in [0, 2E); itself where none do.

    Those are the traces that pass through the node of the trace's next decision in a context; or through that context,
    if the trace made choices of its own between the two.

    Args:
      graph: the batch.
      tree: of this batch.
    """
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    path = chains(graph, tree.row)
    above = _previous_row(tree.node, tree.row, trace)
    own = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask) & ~tree.member
    acted = jnp.cumsum(own.astype(jnp.int32))
    between = path.following(acted) - acted > 0
    context, node = (
        path.following(_first_below(above, ids, tree.row, segment_first(ids, n, tree.row)))
        for ids in (tree.context, tree.node)
    )
    place = jnp.arange(n, dtype=jnp.int32)  # ids of traces that share nothing later lie behind those of groups
    return jnp.where(path.last | ~tree.row, n + place, jnp.where(between, context, node))


def _first_below(above: jax.Array, context: jax.Array, row: jax.Array, first_of: jax.Array) -> jax.Array:
    """The first event with the same node above and the same context, or node, of each event: int32 [E].

    `first_of`, int32 [E], is the first row of each context or node.
    """
    place = jnp.arange(row.shape[0], dtype=jnp.int32)
    first = first_of[context]
    several = jnp.any(row & (above[first] != above))

    def by_sorting() -> jax.Array:
        order = stable_order(context, jnp.where(row, above, len(place)))  # by place in both
        same = row[order][1:] & row[order][:-1]
        same = same & (above[order][1:] == above[order][:-1]) & (context[order][1:] == context[order][:-1])
        start = jnp.concatenate([jnp.ones(1, bool), ~same])
        leader = order[jax.lax.cummax(jnp.where(start, place, 0))]
        return jnp.zeros_like(place).at[order].set(leader)

    # Most batches have one node above each context, and need no sorting.
    leader: jax.Array = jax.lax.cond(several, by_sorting, lambda: jnp.where(row, first, place))
    return leader


def _other_task(graph: EventGraph, row: jax.Array, context: jax.Array, first_of: jax.Array) -> jax.Array:
    """Events of another group than the first of their context: bool [E]."""
    group = jnp.asarray(graph.group_ids)[graph.trace_ids]
    return row & (group != group[first_of][context])


def _mixed(row: jax.Array, node: jax.Array, context: jax.Array, context_of: jax.Array, wrong: jax.Array) -> jax.Array:
    """Contexts whose events do not belong together, among them those of events that are `wrong`: bool [E]."""
    n = row.shape[0]
    elsewhere = row & (context_of[node] != context)

    def contexts() -> jax.Array:
        number = segment_count(context, n, elsewhere | wrong) + segment_count(context_of[node], n, elsewhere)
        return number > 0

    mixed: jax.Array = jax.lax.cond(jnp.any(elsewhere | wrong), contexts, lambda: jnp.zeros(n, bool))
    return mixed


def ids_by_group(graph: EventGraph, name: str, ids: Array) -> jax.Array:
    """Ids of contexts or nodes in [0, E), each of one group: int32 [E], -1 where absent.

    They are renumbered where one occurs in several groups or is E or more. Ids of a group keep their order. All stay as
    they are elsewhere.

    Raises:
      ArrayTypeError: not integers, or not one for each event.

    Examples:
      >>> import credit, numpy as np
      >>> graph, _, _ = credit.from_columns(group=[0, 0, 1, 1], trace=list("abcd"), reward=[1.0] * 4, events=4)
      >>> ids_by_group(graph, "context", np.array([0, 1, 0, -1])).tolist()
      [0, 1, 2, -1]
      >>> ids_by_group(graph, "context", np.array([3, 3, 0, 0])).tolist()
      [3, 3, 0, 0]
      >>> ids_by_group(graph, "context", np.array([70, 0, 80, -1])).tolist()
      [1, 0, 2, -1]
    """
    own, n = event_ids(graph, name, ids), graph.num_events
    group = jnp.asarray(graph.group_ids)[graph.trace_ids]
    row = jnp.asarray(graph.event_mask) & (own >= 0)
    at = jnp.where(row, own, 0)
    shared = jnp.any(row & ((at >= n) | (group != group[segment_first(at, n, row)][at])))
    keyed: jax.Array = jax.lax.cond(shared, lambda: pair_ids(group, at, row), lambda: at.astype(jnp.int32))
    return jnp.where(row, keyed, -1)


def ids_below(num: int, ids: jax.Array, where: jax.Array) -> jax.Array:
    """Ids in [0, num), int32 [E], 0 outside `where`: as they are, or numbered in their order where one is not below.

    Args:
      num: at least E.
      ids: int32 [E], 0 or more where `where`.
      where: bool [E].

    Examples:
      >>> ids_below(3, jnp.array([70, -1, 7]), jnp.array([True, False, True])).tolist()
      [1, 0, 0]
    """
    at = jnp.where(where, ids, 0)
    below: jax.Array = jax.lax.cond(
        jnp.any(at >= num), lambda: pair_ids(jnp.zeros_like(at), at, where), lambda: at.astype(jnp.int32)
    )
    return below


def event_ids(graph: EventGraph, name: str, ids: Array) -> jax.Array:
    """Evidence of kind "id" or "count" as int32 [E], -1 where absent.

    Raises:
      ArrayTypeError: not integers, or not one for each event.
    """
    ids = jnp.asarray(ids)
    if not jnp.issubdtype(ids.dtype, jnp.integer) or ids.shape != (graph.num_events,):
        actual = f"{ids.dtype} {ids.shape}"
        raise ArrayTypeError(f"{name} is {actual}; expected integers ({graph.num_events},), -1 where the log has none")
    integers: jax.Array = ids.astype(jnp.int32)
    return integers


def _previous_row(node: jax.Array, row: jax.Array, trace: jax.Array) -> jax.Array:
    """The node of the row before, in the same trace; -1 at the first."""
    place = jnp.arange(node.shape[0], dtype=jnp.int32)
    latest = jax.lax.cummax(jnp.where(row, place, -1))
    before = jnp.concatenate([jnp.full(1, -1, jnp.int32), latest[:-1]])
    same = (before >= 0) & (trace[before] == trace)
    return jnp.where(same, node[before], -1)


@before_compiling(context=numbered, node=numbered)
@jax.jit
def subtree_values(
    graph: EventGraph, reward: Array, *, context: Array, node: Array, event_reward: Array | None = None
) -> jax.Array:
    """MALT's value of each action in a replay tree: the mean over its children of theirs, at a leaf the return; [E].

    NaN at events that are on no path: no action, no context or node, no outcome; and where the tree is unclear from
    there on, as where a node is logged under two contexts. MALT takes siblings whose values lie on different sides of
    0.5 as pairs for preference learning, and has no policy-gradient advantage; against its siblings the same value is
    `estimators.c3`.

    Args:
      graph: the traces are the leaves of the tree.
      reward: float [T], the outcome of each trace in units of reward; NaN where unknown.
      context, node: int [E], the frozen context of a decision and the alternative chosen in it, any ids; -1 where the
        log has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Raises:
      CreditError: wrong dtypes or shapes, at trace time.

    Reference: MALT, from second-hand descriptions: V(refine) = r, V(verify) = mean over its refinements, V(generate) =
    mean over its verifications.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(
      ...     group=["g"] * 8, trace=list("abcdefgh"), reward=[1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], events=8
      ... )
      >>> context = np.zeros(8, np.int32)  # one situation, two alternatives with four replays each
      >>> node = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int32)
      >>> [round(float(v), 2) for v in subtree_values(graph, reward, context=context, node=node)[:4]]
      [0.75, 0.75, 0.0, 0.0]
    """
    outcome, scored = check_reward(graph, leaf_returns(graph, reward, event_reward))
    trace = jnp.asarray(graph.trace_ids)
    context, node = ids_by_group(graph, "context", context), ids_by_group(graph, "node", node)
    tree = replay_tree(graph, scored[trace], context, node, outcome.dtype)
    reference, relative = tree.relative(outcome[trace])
    known = tree.member & ~tree.unclear[tree.context]
    return jnp.where(known, reference[tree.context] + tree.values(relative)[tree.node], jnp.nan)
