"""Problems in bounded memory: the first faults of one kind in one file are listed, and the others are counted."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator

from graphs.errors import Problem

__all__ = ["MOST_LISTED", "OF_BATCHES", "ProblemLog", "count_kinds"]

MOST_LISTED = 1000
"""Problems of one kind in one file that are listed one by one."""

OF_BATCHES = frozenset(
    {"agent-twice", "group-over-files", "look-alike-ids", "outcome-again", "rewards-at-one-time", "several-versions",
     "some-without-event-reward", "some-without-group", "turn-gap"}
)  # fmt: skip
"""Kinds of notes on a batch. Where it is read in parts, each part may have the same."""


class ProblemLog:
    """Problems in the order of reading.

    The first `MOST_LISTED` of each kind in a file are kept. One further problem stands for the rest, and its `count` is
    their number. This bounds memory, because a small file can hold a million faults.

    Examples:
      >>> log = ProblemLog(Problem("bad-json", "x.jsonl", line, "content", "{", "JSON") for line in range(1, 2001))
      >>> len(list(log)), list(log)[-1].count, log.total
      (1001, 1000, 2000)
    """

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self._listed: list[Problem] = []
        self._met: dict[tuple[str, str], int] = {}
        self._more: dict[tuple[str, str, str], tuple[Problem, int]] = {}
        self._notes: dict[tuple[str, str, str], int] = {}  # of parts -> the place of the first of its kind
        self.extend(problems)

    def append(self, problem: Problem) -> None:
        """Add a problem, or one that stands for several."""
        key = problem.file, problem.kind
        met = self._met.get(key, 0)
        self._met[key] = met + problem.count
        if met < MOST_LISTED and problem.count == 1:
            self._listed.append(problem)
            return
        more = *key, problem.about
        first, count = self._more.get(more, (problem, 0))
        self._more[more] = first, count + problem.count

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems in their order."""
        for problem in problems:
            self.append(problem)

    def add_part(self, problems: Iterable[Problem]) -> None:
        """Add those of a part of the batch. The first of equal notes on parts stands for all, and shows its numbers.

        Args:
          problems: of a part.
        """
        for problem in problems:
            if problem.kind not in OF_BATCHES:
                self.append(problem)
                continue
            key = problem.kind, problem.field, problem.expected
            if key in self._notes:
                first = self._listed[self._notes[key]]
                self._listed[self._notes[key]] = dataclasses.replace(first, count=first.count + problem.count)
            else:
                self._notes[key] = len(self._listed)
                self._listed.append(problem)
            met = problem.file, problem.kind
            self._met[met] = self._met.get(met, 0) + problem.count

    @property
    def total(self) -> int:
        """Number of faults, listed or counted."""
        return sum(self._met.values())

    def __iter__(self) -> Iterator[Problem]:
        yield from self._listed
        for first, count in self._more.values():
            yield dataclasses.replace(first, count=count)

    def __len__(self) -> int:
        return len(self._listed) + len(self._more)


def count_kinds(problems: Iterable[Problem]) -> dict[str, int]:
    """How many problems there are of each kind, most frequent first."""
    kinds: collections.Counter[str] = collections.Counter()
    for problem in problems:
        kinds[problem.kind] += problem.count
    return dict(kinds.most_common())
