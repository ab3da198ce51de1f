"""Traces whose numbers of turns skip one, or start later, while those of other traces do not: rows may be lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from graphs.traces.part import ABSENT_COUNT

__all__ = ["TURN", "TURN_GAP", "turn_gaps", "turn_numbers"]

TURN = "number of turn"
"""The column of a part that has them."""
TURN_GAP = "turn-gap"
"""The kind of the note on a trace without a turn that others have."""

WHOLE = 2
"""How many traces without a gap stand beside one with a gap, where it is one: turns may be numbered so."""
SELDOM = 1 / 8
"""Up to which part of the turns have several agents, where turns are no rounds."""
FEWER, MORE = 4, 20
"""How many times fewer, or more, rounds without an agent than expected are no chance."""


def turn_numbers(labels: pa.Array) -> np.ndarray:
    """The number of each turn, `ABSENT_COUNT` where its label is no integer: int32 [e].

    Args:
      labels: integers or texts, null where there is none.

    Examples:
      >>> turn_numbers(pa.array(["0", "10", "b", None, "1e3", "-2"])).tolist()
      [0, 10, -1, -1, -1, -1]
    """
    coded = labels if pa.types.is_dictionary(labels.type) else labels.dictionary_encode()
    words = coded.dictionary.cast(pa.string()).to_pylist()
    numbers = [int(word) if word.isascii() and word.isdecimal() and len(word) < 10 else ABSENT_COUNT for word in words]
    codes = coded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    of_labels: np.ndarray = np.array([*numbers, ABSENT_COUNT], np.int32)[codes]
    return of_labels


def turn_gaps(trace: np.ndarray, agent: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row behind a gap of each trace that has one, and the turn before it, -1 of one at its start: int [n].

    None where gaps are many, as those of turns that are numbered over a batch or count what is not logged; nor where
    agents act in rounds, and are out of so many that all may have been out of one.

    Args:
      trace: int [N], of each row.
      agent: int [N], a number for the name of its agent.
      turn: int [N], the number of its turn, below 0 where it has none.

    Examples:
      >>> trace, turn = np.repeat([0, 1, 2], [4, 4, 3]), np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 3])
      >>> [places.tolist() for places in turn_gaps(trace, 0 * trace, turn)]
      [[10], [1]]
      >>> [places.tolist() for places in turn_gaps(trace, 0 * trace, 2 * turn)]  # every second turn is another's
      [[], []]
    """
    none = np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.flatnonzero(~np.isin(trace, trace[turn < 0]))
    if not len(at):
        return none
    most = np.int64(turn.max()) + 1
    key, first = np.unique(trace[at] * most + turn[at], return_index=True)
    of, number = np.divmod(key, most)
    begins = np.append(True, of[1:] != of[:-1])
    before = np.append(-1, number[:-1])
    skips = ~begins & (number - before > 1)
    late = begins & (number > number[begins].min())
    gapped = len(np.unique(of[skips]))
    found = skips & (np.count_nonzero(np.bincount(of) > 1) >= (1 + WHOLE) * gapped)
    found |= late & (np.count_nonzero(begins) >= (1 + WHOLE) * np.count_nonzero(late))
    _, once = np.unique(of[found], return_index=True)
    if not len(once) or _by_chance(trace[at], agent[at], turn[at], len(np.unique(of[skips | late]))):
        return none
    row = np.flatnonzero(found)[once]
    return at[first[row]], np.where(begins[row], -1, before[row])


def _by_chance(trace: np.ndarray, agent: np.ndarray, turn: np.ndarray, gaps: int) -> bool:
    """Whether about as many rounds as have gaps would be without an agent, if each were out of them by itself."""
    acts = np.unique(np.stack([trace, turn, agent]), axis=1)
    rounds, agents = np.unique(acts[:2], axis=1, return_counts=True)
    if np.count_nonzero(agents > 1) <= SELDOM * rounds.shape[1]:  # a turn is one agent's
        return False
    (of, name), times = np.unique(acts[[0, 2]], axis=1, return_counts=True)
    _, member = np.unique(of, return_inverse=True)
    length = np.bincount(np.unique(rounds[0], return_inverse=True)[1])
    _, name = np.unique(name, return_inverse=True)
    out = 1 - np.bincount(name, times) / np.bincount(name, length[member])
    empty = np.ones(len(length))
    np.multiply.at(empty, member, out[name])
    expected = float(empty @ length)
    return expected / FEWER <= gaps <= MORE * expected
