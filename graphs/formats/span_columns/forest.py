"""The span trees of all traces of a log at once, and which traces no rule of `otlp.tree` changes.

A trace is *plain* here if its spans make trees that are not very deep, with one missing parent at most, and if every
span is what it says it is: no judge, guardrail or plan, no call within a call, nothing within a tool, no run that calls
itself an agent, no agent that holds nothing but one other.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

__all__ = ["AGENT", "CALL", "NOWHERE", "OTHER", "RULED", "TOOL", "Forest", "grow"]

AGENT, CALL, TOOL, OTHER, RULED = range(5)
"""Kinds of spans; `RULED` are those that only `otlp.tree` settles."""

NOWHERE = -1
"""The row of no span."""

_DEEPEST = 64
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclasses.dataclass
class Forest:
    """Spans by row; rows of other spans are `NOWHERE` where there is none.

    Attributes:
      plain: by trace, whether the trace is plain; of others the rest says nothing.
      owner: the nearest enclosing agent.
      opener, closer: the nearest enclosing span whose begin, and whose end, is an event.
      opens, closes: whether the span's own begin and end are events.
      place: in the order of the trees, parents before children, siblings as in the log.
      root: whether the span has no parent in the log.
    """

    plain: np.ndarray
    owner: np.ndarray
    opener: np.ndarray
    closer: np.ndarray
    opens: np.ndarray
    closes: np.ndarray
    place: np.ndarray
    root: np.ndarray


def grow(
    trace: np.ndarray, own: np.ndarray, parent_id: np.ndarray, kind: np.ndarray, named: np.ndarray, traces: int
) -> Forest:
    """The trees of spans.

    Args:
      trace, own, parent_id: of each span, in the order of the log; a `parent_id` of 0 is none.
      kind: one of the five.
      named: for an agent, whether an attribute names it.
      traces: how many there are.
    """
    plain = np.ones(traces, bool)
    parent = _parents(trace, own, parent_id, plain)
    levels = _levels(parent, trace, plain)
    n = len(trace)
    owner, above, opener, closer = (np.full(n, NOWHERE, np.int64) for _ in range(4))
    for rows in levels:
        up = parent[rows]
        owner[rows] = np.where(kind[up] == AGENT, up, owner[up])
        above[rows] = np.where(kind[up] != OTHER, up, above[up])
    owned = (kind == AGENT) & (owner >= 0)
    opens, closes = owned | (kind == CALL) | (kind == TOOL), owned | (kind == TOOL)
    for rows in levels:
        up = above[rows]
        for nearest, having in ((opener, opens), (closer, closes)):
            nearest[rows] = np.where(up < 0, NOWHERE, np.where(having[up], up, nearest[up]))
    root = parent < 0
    _refuse_ruled(trace, kind, named, parent, above, plain)
    _refuse_orphans(trace, parent_id, np.flatnonzero(root), plain)
    return Forest(plain, owner, opener, closer, opens, closes, _tree_order(parent, trace, levels), root)


def _parents(trace: np.ndarray, own: np.ndarray, parent_id: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """The row of each span's parent. Traces with two spans of one id, or whose keys collide, are not plain."""
    salt = (trace.astype(np.uint64) + np.uint64(1)) * _MIX
    keys = own ^ salt
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    plain[trace[order[twice]]] = plain[trace[order[twice + 1]]] = False
    sought = parent_id ^ salt
    at = np.minimum(np.searchsorted(ordered, sought), len(ordered) - 1)
    row = order[at]
    met = (ordered[at] == sought) & (parent_id != 0)
    wrong = met & ((own[row] != parent_id) | (trace[row] != trace))
    plain[trace[wrong]] = False
    return np.where(met & ~wrong, row, NOWHERE)


def _levels(parent: np.ndarray, trace: np.ndarray, plain: np.ndarray) -> list[np.ndarray]:
    """Rows of the spans with 1, 2, ... spans above them. Traces with more, or with a circle, are not plain."""
    depth = np.zeros(len(parent), np.int64)
    rows, up = np.flatnonzero(parent >= 0), parent[parent >= 0]
    for level in range(1, _DEEPEST + 1):
        if not len(rows):
            break
        depth[rows] = level
        up = parent[up]
        rows, up = rows[up >= 0], up[up >= 0]
    plain[trace[rows]] = False
    order = np.argsort(depth, kind="stable")
    ends = np.cumsum(np.bincount(depth))
    return [order[start:end] for start, end in itertools.pairwise(ends) if start < end]


def _refuse_ruled(
    trace: np.ndarray, kind: np.ndarray, named: np.ndarray, parent: np.ndarray, above: np.ndarray, plain: np.ndarray
) -> None:
    plain[trace[kind == RULED]] = False
    plain[trace[(parent >= 0) & (kind[parent] == TOOL)]] = False
    plain[trace[(parent < 0) & (kind == AGENT) & ~named]] = False
    within = (above >= 0) & (kind != OTHER)
    plain[trace[within & (kind == CALL) & (kind[above] == CALL)]] = False
    held = np.bincount(above[within], minlength=len(kind))
    plain[trace[within & (kind == AGENT) & (kind[above] == AGENT) & (held[above] == 1)]] = False


def _refuse_orphans(trace: np.ndarray, parent_id: np.ndarray, roots: np.ndarray, plain: np.ndarray) -> None:
    """Traces with roots below different missing parents are not plain."""
    roots = roots[np.argsort(trace[roots], kind="stable")]
    before, after = roots[:-1], roots[1:]
    plain[trace[after[(trace[before] == trace[after]) & (parent_id[before] != parent_id[after])]]] = False


def _tree_order(parent: np.ndarray, trace: np.ndarray, levels: list[np.ndarray]) -> np.ndarray:
    """The place of each span where spans of a trace stand together, parents before children, siblings as in the log."""
    size = np.ones(len(parent), np.int64)
    for rows in reversed(levels):
        np.add.at(size, parent[rows], size[rows])
    place = np.zeros(len(parent), np.int64)
    roots = np.flatnonzero(parent < 0)
    roots = roots[np.argsort(trace[roots], kind="stable")]
    place[roots] = np.cumsum(size[roots]) - size[roots]
    for rows in levels:
        rows = rows[np.argsort(parent[rows], kind="stable")]
        up = parent[rows]
        before = np.cumsum(size[rows]) - size[rows]
        first = np.r_[True, up[1:] != up[:-1]]
        place[rows] = place[up] + 1 + before - np.repeat(before[first], np.diff(np.flatnonzero(first), append=len(up)))
    return place
