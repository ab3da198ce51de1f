"""Walks along the edges of a batch: which events have a path from some events, and how heavy paths are."""

from __future__ import annotations

import functools

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = ["EdgeOrder"]


class EdgeOrder:
    """Edges, for any number of walks.

    Every edge runs forward in position. So a walk in the order of the causes has settled an event before it comes to
    the event's own edges. Sorting takes O(K log K), a walk O(E + K). The sorted lists take about 70 bytes an edge.

    Args:
      senders, receivers: the edges, int [K] without padding.

    Raises:
      CreditError: an edge does not run forward, as one of every cycle.
    """

    def __init__(self, senders: np.ndarray, receivers: np.ndarray) -> None:
        back = np.flatnonzero(receivers <= senders)
        if len(back):
            event = int(receivers[back[0]])
            raise CreditError(f"edges form a cycle on the way to event {event}; expected every edge to run forward")
        self.senders, self.receivers = senders, receivers

    @functools.cached_property
    def _in_order(self) -> tuple[list[int], list[int]]:
        """Causes and their effects, in the order of the causes."""
        order = np.argsort(self.senders, kind="stable")  # the quickest where edges are almost in order
        # Loops over Python's numbers are ten times as fast as over NumPy's scalars.
        return self.senders[order].tolist(), self.receivers[order].tolist()

    def longest(self, weight: Array) -> tuple[np.ndarray, np.ndarray]:
        """Greatest weight of a path that ends at each event, with and without the event itself: [E], [E].

            before(e) = max(0, max over causes c of total(c))
            total(e)  = before(e) + weight(e)

        Args:
          weight: int or float [E], 0 or more.

        Examples:
          >>> total, before = EdgeOrder(np.array([0, 1]), np.array([2, 2])).longest(np.array([1, 5, 1]))
          >>> total.tolist(), before.tolist()
          ([1, 5, 6], [0, 0, 5])
        """
        weight = np.asarray(weight)
        # Python's numbers of the same precision are several times as fast; others round as NumPy's scalars do.
        exact = weight.dtype in (np.int64, np.float64)
        reached, added = (x.tolist() if exact else list(x) for x in (np.zeros(1, weight.dtype), weight))
        reached *= len(weight)
        for cause, effect in zip(*self._in_order, strict=True):
            far = reached[cause] + added[cause]
            if far > reached[effect]:  # a call of `max` takes as long as the rest of the loop
                reached[effect] = far
        previous = np.fromiter(reached, weight.dtype, len(reached))
        return previous + weight, previous

    def reachable(self, start: np.ndarray, *, backward: bool = False, ends: np.ndarray | None = None) -> np.ndarray:
        """Events with a path from one of the events `start`, those included: bool [E].

        Args:
          start: bool [E].
          backward: the events with a path to one of them instead.
          ends: bool [E], events at which paths end: one may be reached, and nothing is reached through it.

        Examples:
          >>> edges = EdgeOrder(np.array([0, 1, 2]), np.array([1, 3, 3]))
          >>> edges.reachable(np.array([True, False, False, False])).tolist()
          [True, True, False, True]
          >>> edges.reachable(np.array([False, False, True, False]), backward=True).tolist()
          [False, False, True, False]
          >>> first, second = np.array([True, False, False, False]), np.array([False, True, False, False])
          >>> edges.reachable(first, ends=second).tolist()
          [True, True, False, False]
        """
        from scipy.sparse import csr_array  # comes with JAX; slow to import
        from scipy.sparse.csgraph import breadth_first_order

        tails, heads = (self.receivers, self.senders) if backward else (self.senders, self.receivers)
        if ends is not None:
            goes_on = ~np.asarray(ends)[tails]
            tails, heads = tails[goes_on], heads[goes_on]
        # One node more, which leads to every start.
        n, first = len(start), np.flatnonzero(start)
        nodes = np.append(tails, np.full(len(first), n)), np.append(heads, first)
        edges = csr_array((np.ones(len(nodes[0])), nodes), shape=(n + 1, n + 1))
        reached = np.zeros(n + 1, bool)
        reached[breadth_first_order(edges, n, return_predecessors=False)] = True
        return reached[:n]

    def spread(self, bits: list[int]) -> None:
        """Add to the bits of each event, in place, those of all events with a path to it: many `reachable` in one walk.

        Args:
          bits: a number for each event, whose bits mark the starts.

        Examples:
          >>> bits = [1, 2, 0, 0]
          >>> EdgeOrder(np.array([0, 1, 2]), np.array([2, 2, 3])).spread(bits)
          >>> bits
          [1, 2, 3, 3]
        """
        for cause, effect in zip(*self._in_order, strict=True):
            if bits[cause]:
                bits[effect] |= bits[cause]
