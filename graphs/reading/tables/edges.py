"""Cells of rows that cannot be read, looked up for the ids with which they begin or end: a search, however many.

A writer that is stopped within a row and appends the next one on the same line glues two cells to one.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable

from graphs.errors import Problem

__all__ = ["Edges"]


class Edges:
    """Texts of cells, each with the first problem of its row; all are noted before an id is looked up."""

    def __init__(self) -> None:
        self._noted: dict[str, Problem] = {}

    def __bool__(self) -> bool:
        return bool(self._noted)

    def note(self, cells: Iterable[str], problem: Problem) -> None:
        """Take the cells of a row in."""
        for cell in cells:
            self._noted.setdefault(cell, problem)
        self.__dict__.pop("_forwards", None)
        self.__dict__.pop("_backwards", None)

    def texts(self) -> list[str]:
        """What was noted, sorted."""
        return sorted(self._noted)

    def of(self, name: str) -> Problem | None:
        """The problem of a cell that begins or ends with an id."""
        if not name:
            return None
        cell = _first_with(self._forwards, name)
        if cell is None:
            backwards = _first_with(self._backwards, name[::-1])
            cell = None if backwards is None else backwards[::-1]
        return None if cell is None else self._noted[cell]

    @functools.cached_property
    def _forwards(self) -> list[str]:
        return sorted(self._noted)

    @functools.cached_property
    def _backwards(self) -> list[str]:
        return sorted(cell[::-1] for cell in self._noted)


def _first_with(texts: list[str], start: str) -> str | None:
    """The first of sorted texts that begins so: no text is between it and its beginning."""
    at = bisect.bisect_left(texts, start)
    return texts[at] if at < len(texts) and texts[at].startswith(start) else None
