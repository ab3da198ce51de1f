"""Clusters of traces that share a choice: replays of one trace, and siblings that branch from one prefix.

A team that runs again from a frozen context produces several traces with one beginning. Their outcomes all depend on
the choices of that beginning, so none of them is an independent sample for the baseline of another. `with_clusters`
detects such traces by ids in the log (`graphs.traces.schema`) and stores them in `EventGraph.cluster_ids`, which every
group-relative method uses.

Two traces share a choice if

    node              an action of each has the same `node` id, or
    context           an action of each has the same `context` id, and in one of them another decision precedes it, or
    sibling_parent    the same, with the `sibling_parent` id.

The actions of a trace with one context are one decision, a joint turn where there are several of them. So siblings at
the first decision of their traces share only the task. Where every trace of a context has an earlier action,
and each of these has a node or an alternative, the context is no link: independent traces may reach one context by
equal choices. An action with an `alternative` and no node is a draw of its own, unless a `sibling_parent` says that it
was continued from. Sharing is transitive: a cluster is a connected component of these links. A cluster may span groups,
as replays under another task do. Where it would join two traces of one group that share nothing in that group, the
traces of this cluster are linked within their groups only.

A node is one draw, so what its traces state of it must agree. A log that names alternatives by `node`, as this library
once asked of logs for `credit.off_policy`, would turn independent traces into replays. It is refused where that shows.
So is a context whose traces drew for themselves at the decision before it, unless they state one alternative there: the
log does not show that they share a prefix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from graphs.distinct_columns import distinct_columns
from graphs.errors import CreditError, expect
from graphs.event_graph import Array, EventGraph

__all__ = ["CHANCES", "CHOICES", "first_of_decision", "replays_elsewhere", "with_clusters", "without_independent"]

CHOICES = ("context", "node", "sibling_parent", "alternative")
"""Evidence of choices, by which traces are replays."""

CHANCES = ("propensity", "target_propensity")
"""Evidence of a draw that all its replays share."""


def with_clusters(
    graph: EventGraph,
    *,
    context: Array | None = None,
    node: Array | None = None,
    sibling_parent: Array | None = None,
    alternative: Array | None = None,
    stated: Mapping[str, Array] | None = None,
    names: Sequence[str] | None = None,
) -> EventGraph:
    """The graph with `cluster_ids` from the ids of a replay tree; on the host, O(E log T).

    Args:
      graph: the batch, padded or not.
      context, node, sibling_parent, alternative: int [E], ids of any range, -1 where the log has none; None where no
        event has one.
      stated: float [E] by name, `propensity` and `target_propensity` of the log, which nodes are checked against.
      names: of the traces, for errors; by default their rows.

    Returns:
      The graph with `cluster_ids` int32 [T], the row of the first trace of each trace's cluster, 0 in padding; None
      where no two traces share a choice.

    Raises:
      CreditError: ids are not integers [E], traces that share a node are not continued from one draw, or traces that
        share a context drew before it and are not known to have chosen alike.

    Example: three siblings that branch after their first action, and one trace of its own.
      Examples:
        >>> import credit, numpy as np
        >>> columns = {"context": [None, "c", None, "c", None, "c", None, None],
        ...            "node": [None, "x", None, "y", None, "z", None, None]}
        >>> graph, _, _ = credit.from_columns(group=[0] * 8, trace=list("aabbccdd"), reward=[1.0] * 8, evidence=columns)
        >>> np.asarray(graph.cluster_ids)[:4].tolist()
        [0, 0, 0, 3]
    """
    expect("graph", graph, EventGraph, "an EventGraph, such as traces.graph")
    if node is None and context is None and sibling_parent is None:
        return dataclasses.replace(graph, cluster_ids=None)
    trace = np.asarray(graph.trace_ids)
    action_mask = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    begin = first_of_decision(trace, action_mask, [context, sibling_parent, node])
    later_mask = action_mask & (_before_in_trace(graph, action_mask)[begin] > 0)
    told = [np.asarray(ids) >= 0 for ids in (node, alternative) if ids is not None and np.shape(ids) == trace.shape]
    drawn_mask = np.zeros(len(trace), bool)  # later actions of which all earlier ones have a node or an alternative
    if told:
        drawn_mask = later_mask & (_before_in_trace(graph, action_mask & ~np.any(told, axis=0))[begin] == 0)

    links: list[tuple[np.ndarray, np.ndarray]] = []
    wide_links: list[tuple[np.ndarray, np.ndarray]] = []
    group = np.asarray(graph.group_ids)
    for name, ids in (("node", node), ("context", context), ("sibling_parent", sibling_parent)):
        if ids is None:
            continue
        ids = np.asarray(ids)
        if not np.issubdtype(ids.dtype, np.integer) or ids.shape != (graph.num_events,):
            expected = f"integers ({graph.num_events},), -1 where the log has none"
            raise CreditError(f"{name} is {ids.dtype} {ids.shape}; expected {expected}")
        row_mask = action_mask & (ids >= 0)
        _, dense = np.unique(np.where(row_mask, ids, -1), return_inverse=True)
        within = dense * graph.num_traces + group[trace]
        for pairs, of_link in ((links, within), (wide_links, dense)):
            linked = row_mask
            if name != "node":
                linked = linked & np.isin(of_link, of_link[row_mask & later_mask])
            if name == "context":
                linked = linked & np.isin(of_link, of_link[row_mask & ~drawn_mask])
            pairs.append((trace[linked], np.unique(of_link[linked], return_inverse=True)[1]))
    if node is not None:
        facts = {"context": context, "alternative": alternative} | dict(stated or {})
        _check_draws(graph, np.asarray(node), begin, {k: v for k, v in facts.items() if v is not None}, names)
    if context is not None and told:
        _check_prefixes(graph, context, node, alternative, begin, names)
    cluster = _across(_components(graph.num_traces, links), _components(graph.num_traces, wide_links), group)
    trace_mask = np.asarray(graph.trace_mask)
    alone = bool((cluster[trace_mask] == np.flatnonzero(trace_mask)).all())
    cluster_ids = None if alone else np.where(trace_mask, cluster, 0).astype(np.int32)
    return dataclasses.replace(graph, cluster_ids=cluster_ids)


def first_of_decision(trace: np.ndarray, action_mask: np.ndarray, named: Sequence[Array | None]) -> np.ndarray:
    """The first action of the decision that each action is part of, itself where no id says so: int [E].

    Args:
      trace: int [E].
      action_mask: bool [E].
      named: ids [E] or None, which actions of one decision share; of several the first that an action has.

    Examples:
      >>> import numpy as np
      >>> context = np.array([-1, 7, 7, 7])
      >>> first_of_decision(np.array([0, 0, 0, 1]), np.ones(4, bool), [context]).tolist()
      [0, 1, 1, 3]
      >>> parent = np.array([5, 5, 5, -1])  # which an action that has a context is not judged by
      >>> first_of_decision(np.array([0, 0, 0, 1]), np.ones(4, bool), [context, parent]).tolist()
      [0, 1, 1, 3]
    """
    place = np.arange(len(trace))
    begin = place.copy()
    open_mask = np.array(action_mask, bool)  # actions that no id has named
    for ids in named:
        if ids is not None and np.shape(ids) == trace.shape:
            rows = np.flatnonzero(open_mask & (np.asarray(ids) >= 0))
            open_mask[rows] = False
            _, dense = np.unique(np.asarray(ids)[rows], return_inverse=True)
            pairs = dense * np.int64(len(trace)) + trace[rows]  # one integer each: they sort faster
            _, first, decision = np.unique(pairs, return_index=True, return_inverse=True)
            begin[rows] = rows[first[decision]]
    return begin


def _check_draws(
    graph: EventGraph,
    node: np.ndarray,
    begin: np.ndarray,
    facts: Mapping[str, Array],
    names: Sequence[str] | None,
) -> None:
    """Refuse nodes that are shared by traces which did not continue from one draw.

    Args:
      graph: the batch.
      node: int [E].
      begin: int [E], the first action of each one's decision.
      facts: what the log states of a draw, [E] by name: ids, -1 where it has none, and numbers, NaN where it has none.
      names: of the traces.

    Raises:
      CreditError: what two traces state of one node differs; or a node of several traces has a `target_propensity` and
        no `alternative`, as where `node` is what was chosen and each trace drew afresh.
    """
    trace, group = np.asarray(graph.trace_ids), np.asarray(graph.group_ids)
    rows = np.flatnonzero(np.asarray(graph.event_mask) & np.asarray(graph.action_mask) & (node >= 0))
    dense = distinct_columns(group[trace[rows]], node[rows]).of
    agent = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)]
    # The least node of the last decision that began before each one's own.
    least = np.full(len(trace), len(rows))
    np.minimum.at(least, begin[rows], dense)
    before, same = _row_before(rows, begin, trace)
    earlier = np.where(same, least[begin[rows[before]]], -1)
    # Several actions may be one joint turn, in any order: one of the same agent stands for it in each trace.
    order = np.lexsort([rows, agent[rows], dense, trace[rows]])
    first = distinct_columns(trace[rows][order], dense[order]).first
    chosen_rows = np.sort(order[first])
    rows, dense, earlier = rows[chosen_rows], dense[chosen_rows], earlier[chosen_rows]
    _, lead = np.unique(dense, return_index=True)
    other = lead[dense]  # the first trace of the node
    kinds = {"type": np.asarray(graph.event_type), "agent": agent}
    columns = {name: np.asarray(values)[rows] for name, values in (kinds | dict(facts)).items()}
    columns["node before it"] = earlier
    for name, values in columns.items():
        known = np.isfinite(values) & (values >= 0)
        apart = known & known[other] & ~np.isclose(values, values[other], rtol=0, atol=1e-3)
        _refuse_draw(apart, rows[other], rows, trace, names, f"but state different values of {name!r} there")
    target, chosen = columns.get("target_propensity"), columns.get("alternative")
    if target is not None:
        judged = np.isfinite(target) & (other != np.arange(len(rows)))
        judged &= True if chosen is None else chosen < 0
        why = "and the log states 'target_propensity' but no 'alternative'"
        _refuse_draw(judged, rows[other], rows, trace, names, why)


def _check_prefixes(
    graph: EventGraph,
    context: np.ndarray,
    node: np.ndarray | None,
    alternative: np.ndarray | None,
    begin: np.ndarray,
    names: Sequence[str] | None,
) -> None:
    """Refuse contexts whose traces drew for themselves at the decision before it, unless they are known to agree.

    Nodes tell draws apart. Where a log states no node, each alternative was drawn by itself. Choices are alike where
    all agents state theirs, in one context. A decision is not compared where an action has neither: it may be frozen.
    Contexts of agents that acted side by side stand in any order, so either may be the last one.

    Args:
      graph: the batch.
      context, node, alternative: int [E], -1 where the log has none; None where no event has one.
      begin: int [E], the first action of each one's decision.
      names: of the traces.

    Raises:
      CreditError: there is such a context.
    """
    trace, n = np.asarray(graph.trace_ids).astype(np.int64), graph.num_events
    rows = np.flatnonzero(np.asarray(graph.event_mask) & np.asarray(graph.action_mask))
    node, chosen = (np.full(n, -1) if ids is None else np.asarray(ids) for ids in (node, alternative))
    drawn, told = np.ones((2, n), bool)  # of decisions, at their first actions
    drawn[begin[rows[(chosen[rows] < 0) & (node[rows] < 0)]]] = False
    told[begin[rows[chosen[rows] < 0]]] = False
    draw, known = n + np.arange(n), rows[node[rows] >= 0]
    np.minimum.at(draw, begin[known], np.unique(node[known], return_inverse=True)[1])
    # The agents of a joint turn stand in any order: what they chose is compared by its extremes and its sum.
    agent = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)][rows].astype(np.int64)
    made = agent * (chosen[rows].max(initial=0) + 1) + chosen[rows]
    said = np.stack([np.full(n, made.max(initial=0)), *np.zeros((2, n), np.int64)])
    for reduced, extent in zip((np.minimum, np.maximum, np.add), said, strict=True):
        reduced.at(extent, begin[rows], made)

    place = _places(rows, np.asarray(context), trace)
    before, same = _row_before(rows, begin, trace)
    later = np.flatnonzero(same & (begin[rows] == rows) & (place[rows] >= 0))
    second, earlier = rows[later], begin[rows[before[later]]]
    wide = np.int64(2 * n + 1)  # pairs are one integer each: they sort faster
    here = np.asarray(graph.group_ids)[trace[second]] * wide + place[second]
    _, here, shared = np.unique(here, return_inverse=True, return_counts=True)
    kept = drawn[earlier] & (shared[here] > 1)
    second, earlier, here = second[kept], earlier[kept], here[kept]
    _, pair = np.unique(here * wide + place[earlier], return_inverse=True)
    # Of the traces of one draw, one that states its choice.
    of_draw, first = np.unique((pair * wide + draw[earlier]) * 2 + ~told[earlier], return_index=True)
    first = first[np.diff(of_draw // 2, prepend=-1) > 0]
    second, earlier, here, pair = (ids[first] for ids in (second, earlier, here, pair))

    at = np.arange(len(pair))
    _, lead, number = np.unique(pair, return_index=True, return_counts=True)
    other = np.where(lead[pair] == at, at + (number[pair] > 1), lead[pair])
    untold = ~told[earlier] & (other != at)
    apart = (said[:, earlier] != said[:, earlier[other]]).any(axis=0)
    _, begins, number = np.unique(here, return_index=True, return_inverse=True)
    first_of = begins[number]
    elsewhere = (np.asarray(context)[np.stack([earlier, earlier[first_of]])] >= 0).all(axis=0)
    elsewhere &= ~_precedes(earlier, second[first_of], place, begin, rows, trace)
    elsewhere &= ~_precedes(earlier[first_of], second, place, begin, rows, trace)
    for wrong, beside, why in (
        (untold, other, "drew for themselves at the decision before it and do not all state an 'alternative' there"),
        (apart, other, "state different agents or values of 'alternative' at the decision before it"),
        (elsewhere, first_of, "drew in different contexts at the decision before it"),
    ):
        if wrong.any():
            found = int(np.argmax(wrong))
            one, two = sorted((int(second[found]), int(second[beside[found]])))
            raise CreditError(
                f"{_pair(one, two, trace, names)} share a 'context', but {why}; expected a context in several traces "
                "only where all before it is equal. Give what followed each alternative a 'context' of its own. Where "
                "they chose alike, give the decision one 'context' and 'alternative'; to replays, one 'node', too"
            )


def _places(rows: np.ndarray, context: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Where each of the actions `rows` was chosen: int [E], -1 elsewhere, and where no context of its trace follows.

    Equal in one context. An action without a context stands so many actions before the next one of its trace.
    """
    place, named = np.full(len(trace), -1), context[rows] >= 0
    at, bare = np.flatnonzero(named), np.flatnonzero(~named)
    known, place[rows[at]] = np.unique(context[rows[at]], return_inverse=True)
    until = np.searchsorted(at, bare)
    bare, until = bare[until < len(at)], at[until[until < len(at)]]
    same = trace[rows[bare]] == trace[rows[until]]
    bare, until = bare[same], until[same]
    _, number = np.unique(place[rows[until]] * (len(rows) + 1) + until - bare, return_inverse=True)
    place[rows[bare]] = len(known) + number
    return place


def _precedes(
    one: np.ndarray, other: np.ndarray, place: np.ndarray, begin: np.ndarray, rows: np.ndarray, trace: np.ndarray
) -> np.ndarray:
    """Whether the trace of each action `other` has a decision in the place of `one` before it: bool [N]."""
    decisions = rows[(begin[rows] == rows) & (place[rows] >= 0)]
    codes = place[decisions] * len(trace) + trace[decisions]
    order = np.argsort(codes, kind="stable")
    wanted = place[one] * len(trace) + trace[other]
    found = np.searchsorted(codes, wanted, sorter=order)
    at = decisions[order[np.minimum(found, len(order) - 1)]]
    result: np.ndarray = (found < len(order)) & (place[at] == place[one]) & (trace[at] == trace[other]) & (at < other)
    return result


def _row_before(rows: np.ndarray, begin: np.ndarray, trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of the row before each one's decision, int [N], and whether it is of the same trace, bool [N]."""
    before = np.searchsorted(rows, begin[rows]) - 1
    return before, (before >= 0) & (trace[rows[before]] == trace[rows])


def _pair(first: int, second: int, trace: np.ndarray, names: Sequence[str] | None) -> str:
    """The traces of two events, in words."""
    shown = [str(row) if names is None else repr(names[row]) for row in (int(trace[first]), int(trace[second]))]
    return f"traces {' and '.join(shown)}"


def _refuse_draw(
    wrong: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    trace: np.ndarray,
    names: Sequence[str] | None,
    why: str,
) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        raise CreditError(
            f"{_pair(first[at], second[at], trace, names)} share a 'node', {why}; expected a node in several traces "
            "only where they continued from one draw. If each trace drew for itself, log what it chose as "
            "'alternative' in place of 'node'. If they are replays, log both"
        )


def _before_in_trace(graph: EventGraph, mask: np.ndarray) -> np.ndarray:
    """How many events of the mask precede each event in its trace: int [E]."""
    trace = np.asarray(graph.trace_ids)
    count = np.cumsum(mask) - mask
    first = np.flatnonzero(np.asarray(graph.event_mask))
    first = first[np.diff(trace[first], prepend=-1) != 0]
    at_start = np.zeros(graph.num_traces, count.dtype)
    at_start[trace[first]] = count[first]
    counted: np.ndarray = count - at_start[trace]
    return counted


def without_independent(key: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Samples that share a choice with all others of their key, so that none of these is a baseline for them: bool [N].

    Args:
      key: int [N], from 0, what is compared, such as groups.
      cluster: int [N], of `EventGraph.cluster_ids`.

    Examples:
      >>> import numpy as np
      >>> without_independent(np.array([0, 0, 1, 1]), np.array([5, 5, 5, 6])).tolist()
      [True, True, False, False]
    """
    pairs = distinct_columns(key, cluster).columns
    alone: np.ndarray = np.bincount(pairs[0])[key] < 2
    return alone


def replays_elsewhere(graph: EventGraph, scored: Array) -> np.ndarray:
    """Traces that share a choice with a trace of another group, and have no independent trace in their own.

    A method that compares the traces of a group gives them no number, but gives the other trace one. So a trace's own
    choices may decide whether it gets a number: docs/bias.md has the bias. The same ids may also
    have been counted afresh in each group; a log cannot tell the two apart.

    Args:
      graph: the batch, on the host.
      scored: bool [T], traces that have a reward. Those without an action are compared with none and count for none.

    Returns:
      int [N, 2], each such trace, and the first trace of another group that shares a choice with it and is compared
      with an independent one.

    Example: a trace of task q with an independent one beside it, and a replay of it under a task of its own.
      Examples:
        >>> import credit, numpy as np
        >>> columns = {"context": [None, "c", None, None, None, "c"]}
        >>> graph, reward, _ = credit.from_columns(
        ...     group=list("qqqqrr"), trace=list("aabbcc"), reward=[1.0] * 6, evidence=columns)
        >>> replays_elsewhere(graph, np.isfinite(reward)).tolist()
        [[2, 0]]
    """
    if graph.cluster_ids is None:
        return np.zeros((0, 2), np.int64)
    acts = np.zeros(graph.num_traces, bool)
    acts[np.asarray(graph.trace_ids)[np.asarray(graph.event_mask) & np.asarray(graph.action_mask)]] = True
    trace = np.flatnonzero(np.asarray(graph.trace_mask) & np.asarray(scored) & acts)
    group, cluster = np.asarray(graph.group_ids)[trace], np.asarray(graph.cluster_ids)[trace]
    alone = without_independent(group, cluster)
    compared = np.full(graph.num_traces, -1)
    compared[cluster[~alone][::-1]] = trace[~alone][::-1]  # the first one of each cluster is written last
    pairs_elsewhere = np.stack([trace[alone], compared[cluster[alone]]], axis=1)
    return pairs_elsewhere[pairs_elsewhere[:, 1] >= 0]


def _across(own: np.ndarray, wide: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The clusters `wide`, over all groups, where they join no two clusters of one group; `own` elsewhere. All int [T].

    Traces of one group share a choice by the ids of that group alone: who is whose replay does not depend on the other
    groups of a batch. Ids that say otherwise by way of another group are counted afresh in each.
    """
    lead = own == np.arange(len(own))  # one trace of each cluster within a group
    _, pair = np.unique(wide * np.int64(len(own)) + group, return_inverse=True)
    joined = np.bincount(pair, lead)[pair] > 1
    chosen: np.ndarray = np.where(np.isin(wide, wide[joined]), own, wide)
    return chosen


def _components(num: int, links: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The least member of each trace's component, int [T]. A link joins all traces in which it occurs."""
    label = np.arange(num)
    while True:
        least = label.copy()
        for trace, link in links:
            if len(link):
                of_link = np.full(int(link.max()) + 1, num)
                np.minimum.at(of_link, link, least[trace])
                np.minimum.at(least, trace, of_link[link])
        least = least[least]
        if (least == label).all():
            return label
        label = least
