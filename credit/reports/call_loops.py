"""Steps that are repeated in one order, such as the tool calls of an agent: loops."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from graphs.structure.host_ids import by_id

__all__ = ["LONGEST", "LOOP", "PERIOD", "Loop", "Steps", "anew", "covered", "repeated"]

LONGEST = 100_000  # characters of arguments, or of a message, that are compared
LOOP, PERIOD = 3, 5
"""A loop is a step, or up to `PERIOD` steps in one order, that an agent takes `LOOP` times in a row or more. A round of
retries alone, calls made again after they failed, does not count: what fails until it succeeds is no loop. A step is
the calls that one message asks for at once, with their arguments. A call that began after the result of the one before
begins a new step. So does a call that no message asks for. Where agents call each other by turns, each has a loop. Of
steps drawn evenly from m, a part of (1 − 1/m) / m^(2p) begin a loop of p steps by chance: with ten, one in 111 for
p = 1 and one in 11,000 for p = 2."""


@dataclasses.dataclass(frozen=True)
class Loop:
    """Steps that an agent repeats in one order, as `LOOP` has it, or agents that exchange messages (`message_loops`).

    Attributes:
      tools: of the calls of one round; none of messages.
      rows: of the first call of each step, in order.
      period: how many steps a round has.
      again: rows of all calls after the first round.
      agents: names of those who exchange messages; none of calls.
    """

    tools: tuple[str, ...]
    rows: tuple[int, ...]
    period: int
    again: tuple[int, ...]
    agents: tuple[str, ...] = ()

    @property
    def times(self) -> int:
        """How many whole rounds there are."""
        return len(self.rows) // self.period


class Steps:
    """The steps of a batch's tool calls, in order of agents and then of their first calls.

    Args:
      rows: of the calls, in order: int [calls].
      agent: of each call: int [calls].
      message: that asks for it, or its own row: int [calls].
      after: of two calls of one message, given by their rows, whether the second began after the first one's result.

    Attributes:
      rows: of the calls, step by step: int [calls].
      step: of each of them: int [calls].
      begin: of each step, and the end of the last, among them: int [steps + 1].
      agent: of each step: int [steps].
    """

    def __init__(
        self,
        rows: np.ndarray,
        agent: np.ndarray,
        message: np.ndarray,
        after: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> None:
        order = np.argsort(agent * (message.max(initial=0) + np.int64(1)) + message, kind="stable")
        begins = np.ones(len(rows), bool)
        before, here = order[:-1], order[1:]
        begins[1:] = (agent[before] != agent[here]) | (message[before] != message[here])
        within = np.flatnonzero(~begins)  # calls of the message of the one before
        begins[within] = after(rows[order[within - 1]], rows[order[within]])
        # Messages may ask for calls in another order than they were written in.
        first = order[begins]
        place = np.empty(len(first), np.int64)
        place[np.argsort(agent[first] * np.int64(len(rows)) + first)] = np.arange(len(first))
        step = place[np.cumsum(begins) - 1]
        by_step = np.argsort(step, kind="stable")
        order, self.step = order[by_step], step[by_step]
        self.rows = rows[order]
        self.begin = np.searchsorted(self.step, np.arange(len(first) + 1))
        self.agent = agent[order[self.begin[:-1]]]

    def keys(self, values: np.ndarray) -> np.ndarray:
        """An integer for each step, equal where an agent's steps have one set of values: int [steps].

        Args:
          values: of each call, in the order of `rows`; negative where it is unknown: int [calls].

        Returns:
          The keys. A step with an unknown value has a negative key that no other step has.
        """
        count = len(self.agent)
        order = by_id(self.step, values)
        value, step = values[order], self.step[order]
        differs = np.append(True, (value[1:] != value[:-1]) | (step[1:] != step[:-1]))[: len(value)]
        value, step = value[differs], step[differs]
        begin = np.searchsorted(step, np.arange(count + 1))
        keys = value[begin[:-1]].astype(np.int64)
        sets: dict[bytes, int] = {}
        for at in np.flatnonzero(np.diff(begin) > 1).tolist():
            keys[at] = value.max() + 1 + sets.setdefault(value[begin[at] : begin[at + 1]].tobytes(), len(sets))
        keys += self.agent * (keys.max(initial=0) + np.int64(1))
        unknown = value[begin[:-1]] < 0  # the least of each
        return np.where(unknown, -1 - np.arange(count), keys)


def covered(found: np.ndarray, count: int, *, later: bool = False) -> np.ndarray:
    """Which of `count` keys are in a stretch of `repeated`, or in a later round than the first of one: bool [count].

    Examples:
      >>> import numpy as np
      >>> covered(np.array([[1, 4, 1]]), 5, later=True).tolist()
      [False, False, True, True, False]
    """
    start, stop, period = found.T
    change = np.zeros(count + 1, np.int64)  # stretches may overlap
    np.add.at(change, start + period if later else start, 1)
    np.add.at(change, stop, -1)
    within: np.ndarray = np.cumsum(change[:count]) > 0
    return within


def anew(found: np.ndarray, retried: np.ndarray) -> np.ndarray:
    """Which stretches of `repeated` have `LOOP` rounds, without later ones of retries alone: bool [found].

    Args:
      found: of `repeated`: int [found, 3].
      retried: whether all calls of a step are retries: bool [steps].

    Examples:
      >>> import numpy as np
      >>> anew(np.array([[0, 3, 1], [3, 7, 1]]), np.array([False, True, True, True, True, False, False])).tolist()
      [False, True]
    """
    before = np.append(0, np.cumsum(retried))  # of each step
    rounds = np.zeros(len(found), np.int64)
    for i, (start, stop, period) in enumerate(found.tolist()):
        begins = np.arange(start + period, stop - period + 1, period)
        rounds[i] = 1 + np.count_nonzero(before[begins + period] - before[begins] < period)
    enough: np.ndarray = rounds >= LOOP
    return enough


def repeated(keys: np.ndarray) -> np.ndarray:
    """Stretches in which each key is the one before it by a period, over `LOOP` periods or more.

    Args:
      keys: one integer each: int [keys].

    Returns:
      The start, stop and period of each, in order of starts, then periods: int [found, 3].

    Examples:
      >>> import numpy as np
      >>> [repeated(np.array(list(map(ord, text)))).tolist() for text in ("xababab", "aaaa", "abab")]
      [[[1, 7, 2]], [[0, 4, 1]], []]
    """
    found: list[np.ndarray] = []
    for period in range(1, PERIOD + 1):
        same = np.concatenate([[False], keys[period:] == keys[:-period], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        start, stop = edges[::2], edges[1::2] + period
        whole = stop - start >= LOOP * period
        for other in found:  # a stretch of a shorter period has the longer one, too
            last = np.searchsorted(other[:, 0], start, "right") - 1  # stops are in the order of starts
            whole &= ~((last >= 0) & (np.append(other[:, 1], -1)[last] >= stop))
        found.append(np.stack([start, stop, np.full(len(start), period)], axis=1)[whole])
    every = np.concatenate(found)
    return every[np.lexsort([every[:, 2], every[:, 0]])]
