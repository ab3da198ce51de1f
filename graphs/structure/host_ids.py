"""Ids on the host: which there are, the rows of each, their neighbours, and places among their like.

One sort or one table does it: to search all rows for each id would take quadratic time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["among", "by_id", "consecutive", "distinct", "earlier_of_each", "ranked", "rows_of_each"]

DENSE = 4  # a table of all possible integers is faster than a sort while it is not longer than so many times N


def among(codes: np.ndarray, few: Iterable[int]) -> np.ndarray:
    """Whether each integer is one of a few: bool [N]. `np.isin` takes ten times as long.

    Examples:
      >>> among(np.array([5, 2, 7]), (5, 7)).tolist()
      [True, False, True]
    """
    found = np.zeros(codes.shape, bool)
    for code in few:
        found |= codes == int(code)
    return found


def by_id(*ids: np.ndarray) -> np.ndarray:
    """The rows by the first id, then by the next one, and rows whose ids are equal as they are: int64 [N].

    Examples:
      >>> by_id(np.array([5, 2, 5])).tolist(), by_id(np.array([5, 2, 5]), np.array([1, 1, 0])).tolist()
      ([1, 0, 2], [1, 2, 0])
    """
    order = np.arange(len(ids[0]))
    for column in reversed(ids):
        of = column[order]
        few = of.min(initial=0) >= 0 and of.max(initial=0) <= np.iinfo(np.uint16).max  # NumPy sorts 16 bits by radix
        order = order[np.argsort(of.astype(np.uint16) if few else of, kind="stable")]
    return order


def consecutive(ids: np.ndarray, order: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The earlier and the later row of each two consecutive rows of an id, by id.

    Args:
      ids: int [N].
      order: the rows, those of an id beside each other; by default each as they are.

    Examples:
      >>> earlier, later = consecutive(np.array([5, 2, 5, 5]))
      >>> earlier.tolist(), later.tolist()
      ([0, 2], [2, 3])
    """
    order = by_id(ids) if order is None else order
    ordered = ids[order]
    same = ordered[1:] == ordered[:-1]
    return order[:-1][same], order[1:][same]


def distinct(values: np.ndarray) -> np.ndarray:
    """The distinct integers of one axis, ascending: by a table up to the largest where that is short, else by one sort.

    `np.unique` puts integers into a table of hashes, which leaves the cache: 30 times as long for ten times as many.

    Examples:
      >>> distinct(np.array([5, 2, 5])).tolist(), distinct(np.array([2**40, -1])).tolist()
      ([2, 5], [-1, 1099511627776])
    """
    if len(values) and values.min() >= 0 and values.max() < DENSE * len(values):
        met = np.zeros(int(values.max()) + 1, bool)
        met[values] = True
        return np.flatnonzero(met).astype(values.dtype)
    ordered = np.sort(values)
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def rows_of_each(ids: np.ndarray) -> list[np.ndarray]:
    """For each id from 0 to the largest, the rows that have it, ascending; none where there are no rows.

    Examples:
      >>> [rows.tolist() for rows in rows_of_each(np.array([2, 0, 2]))]
      [[1], [], [0, 2]]
      >>> rows_of_each(np.zeros(0, np.int64))
      []

    Args:
      ids: int [N], 0 or more.
    """
    sizes = np.bincount(ids)
    return np.split(by_id(ids), np.cumsum(sizes)[:-1]) if len(sizes) else []


def earlier_of_each(ids: np.ndarray) -> np.ndarray:
    """For each row, how many earlier rows have its id: int64 [N].

    Examples:
      >>> earlier_of_each(np.array([7, 2, 7, 7])).tolist()
      [0, 0, 1, 2]
    """
    order = by_id(ids)
    ordered = ids[order]
    new = np.ones(len(ids), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    found = np.empty(len(ids), np.int64)
    found[order] = np.arange(len(ids)) - starts[np.cumsum(new) - 1]
    return found


def ranked(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts in order, and the place of each text among them: int64 [N].

    Examples:
      >>> names, place = ranked(["b", "a", "b"])
      >>> names, place.tolist()
      (['a', 'b'], [1, 0, 1])
    """
    names = sorted(set(texts))
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[text] for text in texts], np.int64)
