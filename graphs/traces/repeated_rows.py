"""Rows that a trace has again, as of a table that was joined with itself: what they earned counts twice.

Calls may be equal: where no column tells them apart, or a policy says the same again. So rows count as copies only
where every row of the table stands again, or a whole stretch of a trace behind it, with numbers that were measured of
each row and hardly come twice; with turns, wherever enough rows do. Without such numbers, they do where every row
stands as often, and apart from itself: agents make two calls in each turn, and return to no turn that they have left.
So they do where a whole file follows itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["APART", "CHANCE", "MEASURED", "REPEATED_ROWS", "Pairs", "apart", "is_of_rows", "repeated_rows"]

REPEATED_ROWS = "repeated-rows"
"""The kind of the note that a table has rows again."""

MEASURED = frozenset(
    {"event_reward", "value", "q_value", "tokens", "input_tokens", "cached_tokens", "seconds", "money", "propensity",
     "hindsight_log_prob"}
)  # fmt: skip
"""Evidence that is measured of each row: not of its step, agent or trace, whose other rows have the same."""

STRETCH = 4
"""From how many unlike rows of a trace on, each as often as the others, they are a stretch."""

APART = 8
"""How many rows of several traces stand again, behind another turn, in one, or behind all, where these are copies."""

CHANCE = 1e-4
"""As many equal rows by chance are less likely."""


def repeated_rows(
    trace: np.ndarray,
    agent: np.ndarray,
    content: np.ndarray,
    measured: np.ndarray,
    turn: np.ndarray | None = None,
    place: np.ndarray | None = None,
    *,
    has_turns: bool = False,
    is_file: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that equal an earlier one, and which; none where no row is surely a copy, but may be another event.

    Those that stand least often are first: others may be equal by chance, too.

    The chance that a second call has the numbers of the first is taken for the share of the unlike rows that have them:
    of that task and agent, or of the trace, whichever is more. Within turns it is that of `Pairs`.

    Args:
      trace, agent: int [N], the trace of each row, those of a trace beside each other, and its task and agent.
      content: int [N], alike where all columns of two rows are.
      measured: int [N], alike where the numbers are that were measured of two rows.
      turn: int [N, 2], the instance of the agent of each row, and its turn. Default: one.
      place: int [N], where each row stands among those of the log. Default: as here.
      has_turns: whether the turn of each row is stated, so that equal ones are of one.
      is_file: whether the rows are a file's, whose whole may follow itself. In a batch each trace's next call may.

    Examples:
      >>> trace, agent = np.zeros(8, int), np.zeros(8, int)
      >>> row = np.array([0, 1, 2, 3, 4, 1, 2, 3])
      >>> repeated_rows(trace, agent, row, row)[0].tolist()  # three may be equal by chance
      []
      >>> row = np.repeat(np.arange(6), 2)
      >>> again, first = repeated_rows(np.zeros(12, int), np.zeros(12, int), row, row)
      >>> again.tolist(), first.tolist()
      ([1, 3, 5, 7, 9, 11], [0, 2, 4, 6, 8, 10])
      >>> repeated_rows(np.zeros(12, int), np.zeros(12, int), row, 0 * row)[0].tolist()  # nothing measured
      []
      >>> twice, turn = np.tile(np.arange(5), 4), np.zeros((20, 2), int)
      >>> trace, turn[:, 1] = np.repeat([0, 1], 10), twice
      >>> len(repeated_rows(trace, 0 * twice, twice, 0 * twice, turn)[0])  # of 5 turns and again 5, each is a copy
      10
    """
    _, first, which, times = np.unique(
        _pairs(trace, content), return_index=True, return_inverse=True, return_counts=True
    )
    unlike = np.sort(first)
    often, of = times[which[unlike]], trace[unlike]
    run = np.cumsum((np.diff(of, prepend=-1) != 0) | (np.diff(often, prepend=0) != 0)) - 1
    starts, sizes = np.unique(run, return_index=True, return_counts=True)[1:]
    copied = often[starts] > 1
    ends = unlike[starts + sizes - 1]
    is_later = first[which] < np.arange(len(trace))
    begins = np.full(len(starts), len(trace))
    np.minimum.at(begins, run[np.searchsorted(unlike, first[which[is_later]])], np.flatnonzero(is_later))
    alone = np.isin(of[starts], np.flatnonzero(np.bincount(of[starts][copied], minlength=1) == 1))
    kept = (copied & alone & (((sizes >= STRETCH) & (ends < begins)) | copied.all()))[run]
    place = np.arange(len(trace)) if place is None else place
    again = np.flatnonzero(is_later)
    again = again[np.lexsort((place[again], times[which[again]]))]
    follows = is_file and _follows_itself(trace, which[np.argsort(place)], times)
    if follows or (turn is not None and _all_again(trace, turn, place, first, which, times)):
        return again, first[which[again]]
    chance = np.log(np.maximum(_share(agent[unlike], measured[unlike]), _share(of, measured[unlike], alone=0.0)))
    in_turns = False
    if has_turns and turn is not None and len(again) >= APART:
        cell = _pairs(_pairs(trace, turn[:, 0]), turn[:, 1])
        in_turns = Pairs.of(cell[unlike], agent[unlike], measured[unlike], often > 1).log_chance <= np.log(CHANCE)
    again = again if in_turns or chance[kept].sum() <= np.log(CHANCE) else again[:0]
    return again, first[which[again]]


def _follows_itself(trace: np.ndarray, rows: np.ndarray, times: np.ndarray) -> bool:
    """Whether a table of several traces is another one twice or more, one behind the other.

    Args:
      trace: int [N], as of `repeated_rows`.
      rows: int [N], the unlike row that each row of the table is, in its order.
      times: of each unlike row, how often it stands.
    """
    most = int(np.gcd.reduce(times))
    parts = [n for n in range(2, most + 1) if most % n == 0 and len(rows) // n >= APART]
    again = any((rows.reshape(n, -1) == rows[: len(rows) // n]).all() for n in parts)
    return again and int(trace.max()) > int(trace.min())


def _all_again(
    trace: np.ndarray, turn: np.ndarray, place: np.ndarray, first: np.ndarray, which: np.ndarray, times: np.ndarray
) -> bool:
    """Whether each row stands equally often, and apart from itself.

    Args:
      trace, turn, place: as of `repeated_rows`.
      first, times: of each unlike row, where it stands first and how often.
      which: int [N], the unlike row that each is.
    """
    if len(times) < APART or int(np.gcd.reduce(times)) == 1:
        return False
    _, own = np.unique(_pairs(trace, turn[:, 0]), return_inverse=True)
    turns = _pairs(own, turn[:, 1])
    is_apart = apart(own, turns, place, first, which)
    has_several = np.bincount(own[np.unique(turns, return_index=True)[1]]) > 1
    enough = np.count_nonzero(is_apart) >= max(APART, np.count_nonzero(has_several[own[first]]) / 4)
    return bool(enough and len(np.unique(trace[first[is_apart]])) > 1)


def is_of_rows(trace: np.ndarray, numbers: np.ndarray) -> bool:
    """Whether a column tells rows of a trace apart: False where each has one number, and most have several rows.

    Args:
      trace, numbers: [N], of each row.

    Examples:
      >>> trace = np.array([0, 0, 1, 1])
      >>> is_of_rows(trace, np.array([0.3, 0.3, 0.5, 0.5])), is_of_rows(trace, np.array([0.3, 0.4, 0.5, 0.5]))
      (False, True)
    """
    sizes = np.unique(trace, return_counts=True)[1]
    few = 2 * np.count_nonzero(sizes > 1) <= len(sizes)
    return bool(few or len(np.unique(_pairs(trace, numbers))) > len(sizes))


def apart(own: np.ndarray, turn: np.ndarray, place: np.ndarray, first: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Whether each unlike row stands in several stays of its agent in its turn, which was left between: bool.

    Args:
      own, turn, place: int [N], the agent of each row, its turn, and where it stands.
      first: where each unlike row stands first.
      which: int [N], the unlike row that each is.
    """
    order = np.lexsort((place, own))
    stay = np.empty_like(order)  # of an agent in a turn, until its next one
    stay[order] = np.cumsum((np.diff(turn[order], prepend=-1) != 0) | (np.diff(own[order], prepend=-1) != 0))
    begins, ends = stay[first], stay[first]
    np.minimum.at(begins, which, stay)
    np.maximum.at(ends, which, stay)
    is_apart: np.ndarray = begins < ends
    return is_apart


class Pairs(NamedTuple):
    """Pairs of unlike rows of each peer, such as an agent's on a task: int [peers].

    Attributes:
      here: that stand in one place, as a turn.
      compared: all.
      equal: of these, those of equal numbers.
      twice: rows that stand again in their place.
    """

    here: np.ndarray
    compared: np.ndarray
    equal: np.ndarray
    twice: np.ndarray

    @classmethod
    def of(cls, place: np.ndarray, peer: np.ndarray, numbers: np.ndarray, twice: np.ndarray) -> Pairs:
        """Of unlike rows.

        Args:
          place, peer, numbers: int [N]; a place is of one peer.
          twice: bool [N].

        Examples:
          >>> Pairs.of(np.array([0, 0, 1]), np.zeros(3, int), np.array([5, 6, 6]), np.array([True, False, False]))
          Pairs(here=array([1]), compared=array([3]), equal=array([1]), twice=array([1]))
        """
        _, of, size = np.unique(peer, return_inverse=True, return_counts=True)
        pairs = []
        for ids in (_pairs(of, place), _pairs(of, numbers)):
            _, first, often = np.unique(ids, return_index=True, return_counts=True)
            pairs.append(np.bincount(of[first], often * (often - 1) // 2, len(size)).astype(int))
        return cls(pairs[0], size * (size - 1) // 2, pairs[1], np.bincount(of[twice], minlength=len(size)))

    @property
    def log_chance(self) -> float:
        """The log of no less than the chance that as many rows stand again, as calls that happen to be equal.

        Calls in one place are taken to be equal as often as pairs of their peer, and three more of all pairs, are.
        """
        places, twice = self.here + self.twice, int(self.twice.sum())
        expected = (places * self.equal / np.maximum(self.compared, 1)).sum() + places.sum() * 3 / (
            self.compared.sum() + 3
        )
        return float(twice - expected - twice * np.log(twice / expected)) if twice > expected else 0.0


def _pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A number for each pair of ids: int [N]."""
    _, left = np.unique(one, return_inverse=True)
    ids, right = np.unique(other, return_inverse=True)
    pairs: np.ndarray = left.astype(np.int64) * len(ids) + right
    return pairs


def _share(of: np.ndarray, numbers: np.ndarray, alone: float = 1.0) -> np.ndarray:
    """Of the rows alike in `of`, the share with the numbers of each row: [N]; `alone` for one that has no others."""
    _, group, size = np.unique(of, return_inverse=True, return_counts=True)
    _, pair, alike = np.unique(_pairs(of, numbers), return_inverse=True, return_counts=True)
    share: np.ndarray = np.where(size[group] == 1, alone, alike[pair] / size[group])
    return share
