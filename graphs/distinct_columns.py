"""Distinct columns of a table: `np.unique` with `axis=1` compares them as records, which takes ten times as long."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["DistinctColumns", "distinct_columns"]


class DistinctColumns(NamedTuple):
    """Columns that differ, ordered by their first row, then by the next.

    Attributes:
      columns: these: [rows, distinct].
      first: where the first one equal to each stands: int [distinct].
      of: which of them each column equals: int [n].
      counts: how many equal each: int [distinct].
    """

    columns: np.ndarray
    first: np.ndarray
    of: np.ndarray
    counts: np.ndarray


def distinct_columns(*rows: np.ndarray) -> DistinctColumns:
    """The distinct columns of a table.

    Args:
      rows: of the table, without NaN: [n] each.

    Examples:
      >>> found = distinct_columns(np.array([1, 0, 1, 0]), np.array([5, 7, 5, 6]))
      >>> found.columns.tolist(), found.of.tolist(), found.first.tolist(), found.counts.tolist()
      ([[0, 0, 1], [6, 7, 5]], [2, 1, 2, 0], [3, 1, 0], [1, 1, 2])
    """
    order = np.lexsort(rows[::-1])
    table = np.stack([row[order] for row in rows])
    new = np.ones(len(order), bool)
    new[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    begin, of = np.flatnonzero(new), np.empty(len(order), np.int64)
    of[order] = np.cumsum(new) - 1
    return DistinctColumns(table[:, begin], order[begin], of, np.diff(begin, append=len(order)))
