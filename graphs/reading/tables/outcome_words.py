"""Outcomes that a table writes as words: pairs such as pass and fail, what a table may mix, and "cannot tell"."""

from __future__ import annotations

import math
from collections.abc import Iterator

from graphs.errors import Problem
from graphs.reading.tables.rows import number
from graphs.text import counted, excerpt

__all__ = ["CANNOT_TELL", "OUTCOME_CELL", "WORDS", "OutcomeWords"]

CANNOT_TELL = "cannot tell"
"""What a person says who looked at a trace and gives it no outcome."""

PAIRS = (
    ("true", "false"),
    ("pass", "fail"),
    ("passed", "failed"),
    ("yes", "no"),
    ("success", "failure"),
    ("succeeded", "failed"),
    ("correct", "incorrect"),
    ("resolved", "unresolved"),
    ("solved", "unsolved"),
)
"""What is read as 1, and what as 0, in capitals or not."""
_MEANING = {word: (pair, 1.0 - side) for pair in reversed(PAIRS) for side, word in enumerate(pair)}
WORDS = f"a word of {', '.join('/'.join(pair) for pair in PAIRS)}"
OUTCOME_CELL = (
    f"a finite number, or {WORDS}: 0 states that a run failed, as one "
    f"that was killed may have, and {CANNOT_TELL!r} leaves that of the log"
)
"""What a cell of outcomes may be."""


class OutcomeWords:
    """The rows of one table whose outcome is a word, and whether it has outcomes as numbers.

    A table has one kind of outcome. Where it has several, a word may mean anything, and no row with a word is read.

    Args:
      unit: what has one outcome.
    """

    def __init__(self, unit: str = "row") -> None:
        self._unit = unit
        self.rows: dict[str, tuple[int, str]] = {}  # by trace: line and word
        self.untold: dict[str, int] = {}  # lines that say `CANNOT_TELL`, by trace
        self._has_numbers = False

    def as_number(self, trace: str, line: int, value: object) -> object:
        """The number of a word of a known pair, None for `CANNOT_TELL`; another value as it is."""
        word = str(value).strip().lower()
        if word == CANNOT_TELL:
            self.untold.setdefault(trace, line)
            return None
        if word not in _MEANING:
            amount = number(value)
            self._has_numbers |= amount is not None and math.isfinite(amount)
            return value
        self.rows.setdefault(trace, (line, word))
        return _MEANING[word][1]

    def problems(self, name: str) -> Iterator[Problem]:
        """Of one pair what is read as 1, as information; of a mixture each row with a word, which is a fault.

        Rows that say `CANNOT_TELL` are counted, as information.
        """
        words = {word for _, word in self.rows.values()}
        whole = [pair for pair in PAIRS if words and words.issubset(pair)]  # "failed" is in two
        pairs = whole[:1] or sorted({_MEANING[word][0] for word in words})
        if len(pairs) + self._has_numbers > 1:
            kinds = [f"{one} or {zero}" for one, zero in pairs] + ["numbers"] * self._has_numbers
            expected = f"one kind of outcome in a table: this one has {', and '.join(kinds)}"
            for trace, (line, word) in self.rows.items():
                yield Problem("mixed-outcomes", name, line, "reward", excerpt(word), expected, trace, about="reward")
        elif pairs:
            (pair,) = pairs
            ones = sum(word == pair[0] for _, word in self.rows.values())
            (line, word), *_ = self.rows.values()
            expected = f"a number: {pair[0]} is read as 1 ({counted(ones, self._unit)}) and {pair[1]} as 0"
            expected += f" ({counted(len(self.rows) - ones, self._unit)})"
            yield Problem("worded-outcomes", name, line, "reward", excerpt(word), expected, about="reward")
        if self.untold:
            line = next(iter(self.untold.values()))
            without = counted(len(self.untold), "row")
            expected = f"an outcome, where one can be told: {without} without, whose traces keep the log's, if any"
            yield Problem("untold-outcomes", name, line, "reward", excerpt(CANNOT_TELL), expected, about="reward")
