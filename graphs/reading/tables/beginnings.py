"""Ids of which a cut line or row has the beginning, looked up for whole ids: a search, however long they are."""

from __future__ import annotations

import bisect
import functools

from graphs.errors import Problem

__all__ = ["Beginnings"]


class Beginnings:
    """Beginnings of ids, each with the first problem of what was cut there; all are noted before one is looked up."""

    def __init__(self) -> None:
        self._noted: dict[str, Problem] = {}

    def __bool__(self) -> bool:
        return bool(self._noted)

    def note(self, text: str, problem: Problem) -> None:
        """Take a beginning in."""
        self._noted.setdefault(text, problem)
        self.__dict__.pop("_shortest", None)

    def of(self, name: str) -> Problem | None:
        """The problem of a beginning of an id."""
        at = bisect.bisect_right(self._shortest, name) - 1
        return self._noted[self._shortest[at]] if at >= 0 and name.startswith(self._shortest[at]) else None

    @functools.cached_property
    def _shortest(self) -> list[str]:
        """Sorted, without those that begin with another: of the others at most one, the next, can begin an id."""
        kept: list[str] = []
        for text in sorted(self._noted):
            if not kept or not text.startswith(kept[-1]):
                kept.append(text)
        return kept
