"""Walks along the edges of a batch: which events have a path from some events, and how heavy paths are."""

from __future__ import annotations

import functools

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import Array
from graphs.structure.host_ids import by_id

__all__ = ["EdgeOrder"]

COMPILED = 1 << 14
"""Edges from which a walk is compiled. Python takes a few milliseconds for fewer, and a compilation a hundred."""


class EdgeOrder:
    """Edges, for any number of walks.

    Every edge runs forward in position. So a walk in the order of the causes has settled an event before it comes to
    the event's own edges. Sorting takes O(K log K), a walk O(E + K). From `COMPILED` edges on walks are compiled, for
    the processor: an edge then takes 5 to 10 ns, a tenth of what Python takes.

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
    def _forward(self) -> _Steps:
        """Causes and their effects, in the order of the causes."""
        order = by_id(self.senders)
        return _Steps(self.senders[order], self.receivers[order])

    @functools.cached_property
    def _backward(self) -> _Steps:
        """Effects and their causes, in the order in which a walk backward settles the effects."""
        return _Steps(self._forward.heads[::-1], self._forward.tails[::-1])

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
        previous = self._forward.walked(np.zeros_like(weight), weight)
        return previous + weight, previous

    def latest(self, time: np.ndarray) -> np.ndarray:
        """The greatest number of each event and of all events with a path to it: [E].

        Examples:
          >>> EdgeOrder(np.array([0, 1]), np.array([2, 2])).latest(np.array([1.0, 5.0, 2.0])).tolist()
          [1.0, 5.0, 5.0]
        """
        return self._forward.walked(time, np.zeros_like(time))

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
        steps = self._backward if backward else self._forward
        if ends is not None:
            goes_on = ~np.asarray(ends)[steps.tails]
            steps = _Steps(steps.tails[goes_on], steps.heads[goes_on])
        return steps.walked(np.asarray(start), None)

    def spread(self, bits: np.ndarray) -> np.ndarray:
        """The bits of each event and of all events with a path to it: as many `reachable` as there are bits, in one
        walk.

        Args:
          bits: uint64 [E].

        Returns:
          uint64 [E].

        Examples:
          >>> edges = EdgeOrder(np.array([0, 1, 2]), np.array([2, 2, 3]))
          >>> edges.spread(np.array([1, 2, 0, 0], np.uint64)).tolist()
          [1, 2, 3, 3]
        """
        return self._forward.walked(bits, None)


class _Steps:
    """Edges in the order of a walk, from tails to heads: int [K] each."""

    def __init__(self, tails: np.ndarray, heads: np.ndarray) -> None:
        self.tails, self.heads = tails, heads

    @functools.cached_property
    def _listed(self) -> tuple[list[int], list[int]]:
        return self.tails.tolist(), self.heads.tolist()

    @functools.cached_property
    def _compiled(self) -> tuple[np.ndarray, np.ndarray]:
        return _padded(self.tails.astype(np.int32)), _padded(self.heads.astype(np.int32))

    def walked(self, start: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """What each event holds after a walk: the greatest sum, or without `weight` the bits, that reach it."""
        if len(self.tails) >= COMPILED:
            from graphs.structure.compiled_walk import on_processor, walk  # only here: few commands need JAX

            with on_processor() as has_one:
                if has_one:
                    numbers = (_padded(start), None if weight is None else _padded(weight))
                    return np.asarray(walk(np.int32(len(self.tails)), *self._compiled, *numbers))[: len(start)]
        # Loops over Python's numbers are ten times as fast as over NumPy's scalars; those of less precision round.
        exact = start.dtype in (np.int64, np.float64, np.uint64, np.bool_)
        held = start.tolist() if exact else list(start)
        steps = zip(*self._listed, strict=True)
        if weight is None:
            for tail, head in steps:
                if held[tail]:
                    held[head] |= held[tail]
            return np.fromiter(held, start.dtype, len(held))
        added = weight.tolist() if exact else list(weight)
        for tail, head in steps:
            far = held[tail] + added[tail]
            if far > held[head]:  # a call of `max` takes as long as the rest of the loop
                held[head] = far
        return np.fromiter(held, start.dtype, len(held))


def _padded(x: np.ndarray) -> np.ndarray:
    """With zeros up to a power of two, so that one compiled walk serves many batches."""
    whole = np.zeros(1 << len(x).bit_length(), x.dtype)
    whole[: len(x)] = x
    return whole
