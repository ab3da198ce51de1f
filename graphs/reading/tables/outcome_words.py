"""Outcomes that a table writes as words: pairs such as pass and fail, what a table may mix, and "cannot tell"."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from graphs.errors import CreditError, Problem, expect
from graphs.reading.tables.rows import number
from graphs.text import counted, excerpt

__all__ = ["CANNOT_TELL", "MEANING_OPTION", "OUTCOME_CELL", "WORDS", "OutcomeWords", "check_meanings"]

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
    ("up", "down"),
    ("thumbs_up", "thumbs_down"),
    ("thumbs up", "thumbs down"),
    ("👍", "👎"),
    ("like", "dislike"),
    ("positive", "negative"),
    ("good", "bad"),
)
"""What is read as 1, and what as 0, in capitals or not."""
_MEANING = {word: (pair, 1 - side) for pair in reversed(PAIRS) for side, word in enumerate(pair)}
_NOT = re.compile(r"(?:not[ _-]?|(?:un|non|in)-?)(.+)")
WORDS = f"a word of {', '.join('/'.join(pair) for pair in PAIRS)}, or not one, as not solved"
MEANING_OPTION = "--outcomes WORD=NUMBER,... (in Python outcomes={WORD: NUMBER}) states what others mean"
"""How a user says what further words mean."""
OUTCOME_CELL = (
    f"a finite number, or {WORDS}: 0 states that a run failed, as one "
    f"that was killed may have, and {CANNOT_TELL!r} leaves that of the log; {MEANING_OPTION}"
)
"""What a cell of outcomes may be."""


def _known(word: str) -> tuple[tuple[str, str], int] | None:
    """The pair of a word in small letters, and its number; a negation is the other side of what it negates.

    Examples:
      >>> [_known(word) for word in ("unresolved", "not solved", "un-failed", "not escalated")]
      [(('resolved', 'unresolved'), 0), (('solved', 'unsolved'), 0), (('passed', 'failed'), 1), None]
    """
    negation = None if word in _MEANING else _NOT.fullmatch(word)
    found = _MEANING.get(negation[1] if negation else word)
    return (found[0], 1 - found[1]) if found and negation else found


class OutcomeWords:
    """The outcomes of one table, or of one channel of logs, that are words, and whether there are numbers.

    Each has one kind of outcome. Where there are several, a word may mean anything, and none is read. Words that the
    user declared mean what he says, beside any others.

    Args:
      unit: what has one outcome.
      declared: what words mean, by the word in small letters.
    """

    def __init__(self, unit: str = "row", declared: Mapping[str, float] | None = None) -> None:
        self._unit, self._declared = unit, declared or {}
        self.rows: dict[str, tuple[str, int, str]] = {}  # by trace: file, line and word
        self.untold: dict[str, tuple[str, int]] = {}  # file and line of those that say `CANNOT_TELL`, by trace
        self._counts: dict[str, int] = {}  # of declared words
        self._words: dict[str, str] = {}  # by trace, those with a number
        self._first: tuple[str, int, str] = ("", 0, "")  # declared word
        self.has_numbers = False

    def as_number(self, trace: str, place: tuple[str, int], value: object) -> object:
        """The number of a word of a known pair, None for `CANNOT_TELL`; another value as it is."""
        word = str(value).strip().lower()
        if word in self._declared:
            self._first = self._first if self._counts else (*place, word)
            self._counts[word] = self._counts.get(word, 0) + 1
            self._words[trace] = word
            return self._declared[word]
        if word == CANNOT_TELL:
            self.untold.setdefault(trace, place)
            return None
        known = _known(word)
        if known is None:
            amount = number(value)
            self.has_numbers |= amount is not None and math.isfinite(amount)
            return value
        self.rows.setdefault(trace, (*place, word))
        self._words[trace] = word
        return float(known[1])

    def meaning(self, value: str) -> float | str | None:
        """The number of a word, None for `CANNOT_TELL`; the word where it has no meaning."""
        word = value.strip().lower()
        known = _known(word)
        meant = None if word == CANNOT_TELL else float(known[1]) if known else value
        return self._declared.get(word, meant)

    def is_declared(self, value: str) -> bool:
        """Whether the user says what a word means."""
        return value.strip().lower() in self._declared

    @property
    def kept(self) -> dict[str, str]:
        """By trace its word, where they say more than two numbers do."""
        return self._words if len(set(self._words.values())) > 2 else {}

    @property
    def is_told(self) -> bool:
        """Whether some word has a meaning."""
        return bool(self.rows or self.untold or self._counts)

    def problems(self, field: str = "reward") -> Iterator[Problem]:
        """Of one pair what is read as 1, as information; of a mixture each row with a word, which is a fault.

        Rows that say `CANNOT_TELL` are counted, as information.
        """
        words = {word: known for *_, word in self.rows.values() if (known := _known(word))}
        sides = {word if word in _MEANING else pair[1 - side] for word, (pair, side) in words.items()}
        whole = [pair for pair in PAIRS if sides and sides.issubset(pair)]  # "failed" is in two
        pairs = whole[:1] or sorted({pair for pair, _ in words.values()})
        told = [f"{word} is read as {self._declared[word]:g} ({counted(count, self._unit)})"
                for word, count in self._counts.items()]  # fmt: skip
        place = self._first
        if len(pairs) + self.has_numbers > 1:
            kinds = [f"{one} or {zero}" for one, zero in pairs] + ["numbers"] * self.has_numbers
            expected = f"one kind of outcome in a table or score: this one has {', and '.join(kinds)}; {MEANING_OPTION}"
            for trace, (name, line, word) in self.rows.items():
                yield Problem("mixed-outcomes", name, line, field, excerpt(word), expected, trace, about="reward")
        elif pairs:
            ones = sum(words[word][1] for *_, word in self.rows.values())
            place = next(iter(self.rows.values()))
            zeros = counted(len(self.rows) - ones, self._unit)
            one, zero = (
                " or ".join(word for word, (_, of) in words.items() if of == side) or pairs[0][1 - side]
                for side in (1, 0)
            )
            told.insert(0, f"{one} is read as 1 ({counted(ones, self._unit)}) and {zero} as 0 ({zeros})")
        if told:
            name, line, word = place
            expected = f"a number: {', '.join(told)}"
            yield Problem("worded-outcomes", name, line, field, excerpt(word), expected, about="reward")
        if self.untold:
            name, line = next(iter(self.untold.values()))
            without = counted(len(self.untold), "row")
            expected = f"an outcome, where one can be told: {without} without, whose traces keep the log's, if any"
            yield Problem("untold-outcomes", name, line, field, excerpt(CANNOT_TELL), expected, about="reward")


def check_meanings(outcomes: Mapping[str, float] | None) -> dict[str, float]:
    """What a user says words mean, by the word in small letters.

    Raises:
      CreditError: no mapping of words to finite numbers, or a word that is a number or stands twice.
    """
    expect("outcomes", outcomes or {}, Mapping, "a mapping of words of outcomes to numbers")
    meanings: dict[str, float] = {}
    for text, stated in (outcomes or {}).items():
        word, amount = str(text).strip().lower(), number(stated)
        if not word or number(word) is not None or word in meanings or amount is None or not math.isfinite(amount):
            expected = "a word, once, whatever its capitals, and the finite number that it means"
            raise CreditError(f"outcomes has {excerpt(text)}: {excerpt(stated)}; expected {expected}")
        meanings[word] = amount
    return meanings
