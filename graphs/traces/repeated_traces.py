"""Traces that a log or a batch has again under another id, as of a step that was read twice: each then counts twice.

Outcomes of a few kinds are equal by chance. So traces count as copies only by numbers that hardly come twice, and where
those of a whole part stand again: of all, of a group, or of a file.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from graphs.event_graph import EventGraph
from graphs.traces.repeated_rows import APART

__all__ = ["contents", "repeated_traces"]

NEARLY = 7 / 8
"""The part of the unlike traces from which on unlike numbers tell them apart."""

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, as hashes multiply with


def repeated_traces(
    graph: EventGraph,
    outcome: np.ndarray,
    stated: Iterable[np.ndarray],
    measured: Iterable[np.ndarray],
    file: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Traces that equal an earlier one of their group in all numbers, and which: int [n] each.

    An outcome of up to two decimals may be that of another trace, and is not measured.

    Args:
      graph: of the batch, the events of a trace beside each other.
      outcome: float [T], without padding.
      stated: numbers of events, [E] each.
      measured: of these, what hardly comes twice, NaN or the count -1 where there is none.
      file: int [T], of each trace; None where there are no files.
    """
    outcome = np.asarray(outcome, np.float64)
    events, n = int(np.count_nonzero(graph.event_mask)), len(outcome)
    trace, names = np.asarray(graph.trace_ids)[:events], np.asarray(graph.agent_name_ids)
    first = np.searchsorted(trace, np.arange(n))
    place = np.arange(events) - first[trace]
    known = [np.asarray(column)[:events] for column in measured]
    fine = np.abs(outcome - np.round(outcome, 2)) > 1e-6
    has_numbers = fine
    for column in known:
        is_known = np.isfinite(column) & ((column.dtype.kind == "f") | (column >= 0))
        has_numbers = has_numbers | (np.bincount(trace[is_known], minlength=n) > 0)
    numbers = contents(np.where(fine, outcome, 0.0), _of_traces(contents(place, *known), trace, n))
    kinds = 2 * np.asarray(graph.event_type)[:events] + np.asarray(graph.action_mask)[:events]
    rows = contents(place, kinds, names[np.asarray(graph.agent_ids)[:events]],
                    *(np.asarray(column)[:events] for column in stated))  # fmt: skip
    group = np.asarray(graph.group_ids)[:n]
    group = np.where(np.bincount(group)[group] > 1, group, -1)  # one of its own tells nothing
    content = contents(group, outcome, _of_traces(rows, trace, n))
    asked = np.flatnonzero(has_numbers)
    _, unlike, which = np.unique(content[asked], return_index=True, return_inverse=True)
    again = unlike[which] < np.arange(len(asked))
    if len(np.unique(numbers[asked][unlike])) >= NEARLY * len(unlike) and again.any():
        whole = np.zeros(len(asked), bool)
        for part in (0 * group, group, *([] if file is None else [file])):
            ids = np.unique(part[asked], return_inverse=True)[1]
            whole |= _copied(which, again, ids)[ids]
        again &= whole
    else:
        again[:] = False
    return asked[again], asked[unlike[which[again]]]


def _copied(which: np.ndarray, again: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Whether the traces of each part stand equally often, more than once, or all before it: bool [parts]."""
    found = np.zeros(int(part.max()) + 1, bool)
    order = np.argsort(part, kind="stable")
    for of, members in enumerate(np.split(order, np.flatnonzero(np.diff(part[order])) + 1)):
        unlike, often = np.unique(which[members], return_counts=True)
        times = int(np.gcd.reduce(often))
        is_whole = times > 1 or again[members].all()
        found[of] = is_whole and len(unlike) >= max(APART, NEARLY * len(members) / times)
    return found


def _of_traces(rows: np.ndarray, trace: np.ndarray, n: int) -> np.ndarray:
    """A number for the rows of each trace, which tell their places: uint64 [T]."""
    total = np.zeros(n, np.uint64)
    np.add.at(total, trace, rows)
    return total


def contents(first: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """A number for the cells of each row, alike where all are: uint64 [N]."""
    content = np.zeros(len(first), np.uint64)
    for column in (first, *columns):
        cells = column if column.dtype == np.uint64 else column.astype(np.float64).view(np.uint64)
        content = (content * _ODD ^ cells) * _ODD
        content ^= content >> np.uint64(29)
    return content
