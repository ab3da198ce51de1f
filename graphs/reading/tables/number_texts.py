"""Numbers that some rows of JSON write as texts and others as numbers, which is said once: two programs wrote them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

from graphs.errors import Problem
from graphs.reading.tables.rows import Row, number
from graphs.text import counted, excerpt

__all__ = ["NumberTexts"]


class NumberTexts:
    """The texts among the numbers of some columns of one table, row after row.

    Args:
      names: of the columns.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._counts = {name: [0, 0] for name in names}  # of numbers, and of texts that write one
        self._first: dict[str, tuple[int, Any]] = {}

    def add(self, line: int, row: Row) -> None:
        """Take in a row."""
        for name, counts in self._counts.items():
            cell = row.get(name)
            if isinstance(cell, int | float):
                counts[0] += 1
            elif isinstance(cell, str) and (amount := number(cell)) is not None and math.isfinite(amount):
                counts[1] += 1
                self._first.setdefault(name, (line, cell))

    def notes(self, file: str, about: str = "") -> Iterator[Problem]:
        """A note for each column that has both."""
        for name, (line, cell) in self._first.items():
            numbers, texts = self._counts[name]
            if numbers:
                shown = f"the text {excerpt(cell)}"
                expected = f"a number, as in {counted(numbers, 'row')}: so {counted(texts, 'text')} count"
                yield Problem("number-as-text", file, line, name, shown, expected, about=about, count=texts)
