"""Copies that real numbers tell: where no two others are equal, a few traces at the end, or rows of a turn, are.

A number counts as real that is no fraction of 1000 and has more than 12 bits: rewards of few kinds, rounded ones and
those of half precision are equal by chance. A policy may write a text again, and the same text is paid the same. So it
counts how often others of the same task and agent are equal, and in which order copies stand.
"""

from __future__ import annotations

import math

import numpy as np

from graphs.traces.repeated_rows import CHANCE, Pairs

__all__ = ["SURELY", "are_real", "ending_again", "told_apart"]

SURELY = 1 / 256
"""As many equal ones in this order, or among as many unlike ones, are less likely by chance."""

LEAST = 4
"""How many traces are not one that was written again."""

_BITS, _PARTS = 2.0**12, 1000
_APART = 50  # pairs of rows of which none is equal, where the turn of each tells it apart


def are_real(numbers: np.ndarray) -> np.ndarray:
    """Whether each number is of a continuum: bool.

    Examples:
      >>> are_real(np.array([0.123, 0.5, 2.0**-7, np.nan, 0.12345678, 1 / 3])).tolist()
      [False, False, False, False, True, True]
    """
    known = np.where(np.isfinite(numbers), numbers, 0.0).astype(np.float64)
    parts, bits = known * _PARTS, np.frexp(known)[0] * _BITS
    off = np.maximum(1e-6, 2.0**-22 * np.abs(known)) * _PARTS
    real: np.ndarray = (np.abs(parts - np.round(parts)) > off) & (bits != np.round(bits))
    return real


def ending_again(content: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Traces at the end that are earlier ones of their task again, where none before is; and which: int [n] each.

    A policy that hardly varies writes texts again anywhere among the samples of a task. The chance is that of as many
    equal ones in this order: those of each task in any order of its samples, and these tasks among all. It needs no
    part of the traces to be rare.

    Args:
      content: int [T], alike where all numbers of two traces are.
      group: int [T], the task of each. Copies may have groups of their own.

    Examples:
      >>> group = np.append(np.repeat(np.arange(8), 4), [2, 2, 2, 2])
      >>> copy, original = ending_again(np.append(np.arange(32), [8, 9, 10, 11]), group)
      >>> copy.tolist(), original.tolist()
      ([32, 33, 34, 35], [8, 9, 10, 11])
      >>> ending_again(np.append(np.arange(32), [8, 8, 8, 8]), group)[0].tolist()  # one text again and again
      []
    """
    nothing = group[:0]
    _, first, which = np.unique(content, return_index=True, return_inverse=True)
    original = first[which]
    copies = np.flatnonzero(original < np.arange(len(content)))
    begin = len(content) - len(copies)
    if len(copies) < LEAST or begin < LEAST or copies[0] != begin:
        return nothing, nothing
    original = original[copies]
    own = ~np.isin(group[copies], group[:begin])
    task = group[original]
    if (task != group[copies])[~own].any() or len(np.unique(group[copies])) != len(np.unique(task)):
        return nothing, nothing
    tasks = np.unique(task)
    chance = -_log_ways(len(np.unique(group[:begin])), len(tasks))
    for one in tasks:
        of = original[task == one]
        unlike, again = int(np.count_nonzero(group[:begin] == one)), len(of)
        often = 1 + np.unique(of, return_counts=True)[1]
        chance += np.log(often).sum() - _log_ways(unlike + again, again)
        chance -= math.lgamma(again + 1) if (np.diff(of) > 0).all() else 0.0
    return (copies, original) if chance <= math.log(SURELY) else (nothing, nothing)


def _log_ways(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def told_apart(
    cell: np.ndarray, peer: np.ndarray, content: np.ndarray, numbers: np.ndarray, *, has_turns: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that equal an earlier one in their place, where real numbers tell all others apart, and which: int [n] each.

    The chance that two calls in one place are equal is taken for that of two calls of an agent on a task. Where turns
    tell all other rows apart, one that stands again is enough.

    Args:
      cell: int [N], the place of each row: its agent in a trace, and its turn.
      peer: int [N], the task of each row and the name of its agent.
      content: int [N], alike where all columns of two rows are.
      numbers: int [N], alike where the numbers that were measured of two rows are; -1 where none is real.
      has_turns: whether the turn of each row is stated.

    Examples:
      >>> cell, number = np.append(np.arange(64), 0), np.append(np.arange(64), 0)
      >>> told_apart(cell, cell // 16, number, number, has_turns=True)[0].tolist()
      [64]
      >>> told_apart(cell, cell // 16, number, number // 2, has_turns=True)[0].tolist()  # others are equal, too
      []
    """
    real = np.flatnonzero(numbers >= 0)
    _, unlike, alike = np.unique(content[real], return_index=True, return_inverse=True)
    _, own = np.unique(cell[real], return_inverse=True)
    in_place = own * len(unlike) + alike  # those of a copied trace are in no place of the first
    _, first, which, times = np.unique(in_place, return_index=True, return_inverse=True, return_counts=True)
    twice = np.bincount(alike[first[times > 1]], minlength=len(unlike)) > 0
    unlike = real[unlike]
    pairs = Pairs.of(cell[unlike], peer[unlike], numbers[unlike], twice)
    apart = has_turns and not pairs.here.any() and not pairs.equal.any() and pairs.compared.sum() >= _APART
    if not pairs.twice.any() or not (apart or pairs.log_chance <= math.log(CHANCE)):
        return real[:0], real[:0]
    again = np.flatnonzero(first[which] < np.arange(len(real)))
    return real[again], real[first[which[again]]]
