"""Structure of event graphs: the spawn forest, order and levels, ancestors and descendants.

All functions run in NumPy on the host, over the whole padded batch at once. Every edge runs forward in position, so
position is a topological order. Paths are found in one pass over the edges. Results are padded like the graph; padded
rows are 0 or False.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EventGraph
from graphs.structure.edge_order import EdgeOrder
from graphs.structure.host_ids import consecutive, rows_of_each

__all__ = ["Forest", "ancestors", "dependencies", "descendants", "real_edges", "spawn_forest", "topological_levels"]


class Forest(NamedTuple):
    """The spawn forest over agent instances: one tree for each root.

    Attributes:
      is_root: bool [A], True for a real instance that no instance spawned (it is its own parent).
      root: int32 [A], the root of the instance's tree; itself for a root.
      depth: int32 [A], number of spawns between the root and the instance; 0 for a root.
      fan_out: int32 [A], number of instances that the instance spawned.
      starts: int32 [A + 1], start of an instance's children in `order`.
      order: int32 [number of real instances that are not roots], children of instance 0, then of instance 1, ...
    """

    is_root: np.ndarray
    root: np.ndarray
    depth: np.ndarray
    fan_out: np.ndarray
    starts: np.ndarray
    order: np.ndarray

    def children(self, agent: int) -> np.ndarray:
        """The instances that `agent` spawned, in order of their ids: int32 [fan_out[agent]]."""
        return self.order[self.starts[agent] : self.starts[agent + 1]]

    def levels(self) -> list[np.ndarray]:
        """The real instances of each depth, roots first; a search for each depth takes the square of a chain."""
        real = np.sort(np.concatenate([np.flatnonzero(self.is_root), self.order]))
        depth = self.depth[real]
        return [real[rows] for rows in rows_of_each(depth)]


def spawn_forest(graph: EventGraph) -> Forest:
    """The spawn forest of the batch, with roots, depths, fan-outs and children.

    Let p(a) be the parent of a. Instance a is a root iff p(a) = a. depth(a) = 0 for a root, and 1 + depth(p(a)) for
    other instances. Depths come from pointer doubling: after k rounds the pointer of an instance is at its 2^k-th
    ancestor, so a chain of 4,000 takes 12 rounds.

    Raises:
      CreditError: parents form a cycle.
    """
    mask = np.asarray(graph.agent_mask)
    here = np.arange(len(mask), dtype=np.int32)
    parent = np.where(mask, np.asarray(graph.agent_parent), here)
    is_root = mask & (parent == here)
    jump, depth = parent, (parent != here).astype(np.int32)
    for _ in range(max(1, len(mask)).bit_length() + 1):
        further = jump[jump]
        depth = depth + depth[jump]
        if np.array_equal(further, jump):
            break  # every pointer is at its root, or on a cycle
        jump = further
    if (parent[jump] != jump).any():
        cyclic = int(np.flatnonzero(parent[jump] != jump)[0])
        raise CreditError(f"agent_parent of instance {cyclic} leads into a cycle; expected a spawn forest")
    spawned = np.flatnonzero(mask & ~is_root)
    fan_out = np.bincount(parent[spawned], minlength=len(mask)).astype(np.int32)
    return Forest(
        is_root=is_root,
        root=np.where(mask, jump, 0).astype(np.int32),
        depth=depth,
        fan_out=fan_out,
        starts=np.concatenate([[0], np.cumsum(fan_out)]).astype(np.int32),
        order=spawned[np.argsort(parent[spawned], kind="stable")].astype(np.int32),
    )


def topological_levels(graph: EventGraph) -> np.ndarray:
    """Level of each event: the number of edges on the longest path that ends at it, int32 [E].

    level(e) = 0 without a cause, else 1 + max over causes c of level(c). Events of one level do not depend on each
    other. A topological order is the position itself.
    """
    senders, receivers = real_edges(graph)
    real = np.asarray(graph.event_mask)
    counted, _ = EdgeOrder(senders, receivers).longest(np.ones(len(real), np.int64))
    return np.where(real, counted - 1, 0).astype(np.int32)


def descendants(graph: EventGraph, event: int) -> np.ndarray:
    """The effects of `event` over any number of edges, without itself: bool [E].

    Raises:
      CreditError: `event` is not the position of a real event.
    """
    return _reach(graph, event, forward=True)


def ancestors(graph: EventGraph, event: int) -> np.ndarray:
    """The causes of `event` over any number of edges, without itself: bool [E].

    Raises:
      CreditError: `event` is not the position of a real event.
    """
    return _reach(graph, event, forward=False)


def real_edges(graph: EventGraph) -> tuple[np.ndarray, np.ndarray]:
    """Senders and receivers without padding: int64 [number of real edges] each."""
    edge_mask = np.asarray(graph.edge_mask)
    senders, receivers = np.asarray(graph.senders)[edge_mask], np.asarray(graph.receivers)[edge_mask]
    return senders.astype(np.int64), receivers.astype(np.int64)


def dependencies(graph: EventGraph) -> tuple[np.ndarray, np.ndarray]:
    """Senders and receivers of the edges and of what each instance keeps: int64 each, as of `EdgeOrder`.

    An event depends on its causes, and on the event before it of its own instance, whose context an agent keeps.
    """
    senders, receivers = real_edges(graph)
    before, after = consecutive(np.asarray(graph.agent_ids)[: np.count_nonzero(graph.event_mask)])
    return np.concatenate([senders, before]), np.concatenate([receivers, after])


def _reach(graph: EventGraph, event: int, *, forward: bool) -> np.ndarray:
    real = np.asarray(graph.event_mask)
    if not 0 <= event < len(real) or not real[event]:
        raise CreditError(f"event is {event}; expected the position of a real event, 0 to {int(real.sum()) - 1}")
    senders, receivers = real_edges(graph)
    near, far = (senders, receivers) if forward else (receivers, senders)
    trace_ids = np.asarray(graph.trace_ids)
    within = trace_ids[senders] == trace_ids[event]
    starts, ends = _by_sender(near[within], far[within], len(real))
    first, to = starts.tolist(), ends.tolist()
    reached, stack = {event}, [event]
    while stack:
        here = stack.pop()
        for target in to[first[here] : first[here + 1]]:
            if target not in reached:
                reached.add(target)
                stack.append(target)
    visited = np.zeros(len(real), bool)
    visited[list(reached - {event})] = True
    return visited


def _by_sender(senders: np.ndarray, receivers: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the receivers of each sender begin, [num + 1], and the receivers in that order, [K]."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(senders, minlength=num))])
    return starts, receivers[np.argsort(senders, kind="stable")]
