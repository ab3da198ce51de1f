"""The order of events whose clocks and tree disagree, for all such traces of a log at once.

`topological_order` takes one event after another. Of short traces there are many, so here the n-th events of all of
them are taken together: what precedes what is a table, and an event whose row is empty may be taken.
"""

from __future__ import annotations

import numpy as np

from graphs.traces.record_checks import topological_order

__all__ = ["STUCK", "in_turns"]

STUCK = -1
"""What stands for the events of a trace that its pairs keep in a circle."""

_ROOM = 1 << 22  # bytes of the tables that are made at once
_FEW = 16  # traces below which taking one event after another is faster


def in_turns(sizes: np.ndarray, of: np.ndarray, pairs: np.ndarray) -> list[np.ndarray]:
    """For each trace the order in which `topological_order` takes its events, `STUCK` for those that it does not take.

    Args:
      sizes: how many events each trace has, above 0.
      of: the trace of each pair, ascending.
      pairs: [n, 2], events of which the first comes before the second, counted from 0 in each trace.
    """
    turns: list[np.ndarray] = [np.zeros(0, np.int64)] * len(sizes)
    by_size = np.argsort(sizes, kind="stable")
    start = 0
    while start < len(by_size):
        together = _together(sizes[by_size[start:]])
        members = by_size[start : start + together]
        start += together
        taken = _taken(sizes[members], *_pairs_of(members, of, pairs)) if together >= _FEW else None
        for i, one in enumerate(members.tolist()):
            if taken is None:
                _, own = _pairs_of(members[i : i + 1], of, pairs)
                known = topological_order(int(sizes[one]), own.tolist())
                turns[one] = np.array([*known, *[STUCK] * (int(sizes[one]) - len(known))], np.int64)
            else:
                turns[one] = taken[i, : sizes[one]]
    return turns


def _together(sizes: np.ndarray) -> int:
    """How many of the first traces, of ascending sizes, have tables that fit the room; at least one."""
    fits = np.arange(1, len(sizes) + 1) * sizes.astype(np.int64) ** 2 <= _ROOM
    return max(1, int(np.argmin(fits)) if not fits.all() else len(sizes))


def _pairs_of(members: np.ndarray, of: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of some traces, and for each the place of its trace among them."""
    first, last = np.searchsorted(of, members), np.searchsorted(of, members, side="right")
    counts = last - first
    which = np.repeat(np.arange(len(members)), counts)
    rows = np.arange(len(which)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    return which, pairs[rows]


def _taken(sizes: np.ndarray, of: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """[traces, longest], the events of each trace in the order in which they are taken; `STUCK` behind the last."""
    longest = int(sizes.max())
    before = np.zeros((len(sizes), longest, longest), bool)
    before[of, pairs[:, 0], pairs[:, 1]] = True
    waiting = before.sum(1, dtype=np.int32)  # for how many others an event waits
    waiting[np.arange(longest) >= sizes[:, None]] = STUCK
    taken = np.full((len(sizes), longest), STUCK, np.int64)
    rows = np.arange(len(sizes))
    for turn in range(longest):
        ready = waiting == 0
        number = ready.argmax(1)
        chosen = ready[np.arange(len(rows)), number]
        if not chosen.all():
            rows, number, waiting = rows[chosen], number[chosen], waiting[chosen]
            if not len(rows):
                break
        taken[rows, turn] = number
        waiting[np.arange(len(rows)), number] = STUCK
        waiting -= before[rows, number]
    return taken
