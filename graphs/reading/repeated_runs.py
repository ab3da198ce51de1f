"""Runs that several logs hold: the log of a run and of its retry, a partial copy, a log that was written again.

Each would count once a log. A reader notes all runs first, and then asks of each whether it is read. What stands is
told by the runs and by the names of their logs, never by the order of the files.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import msgspec

from graphs.errors import Problem
from graphs.reading.files import canonical
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.repeated_keys import repeated_anywhere
from graphs.text import excerpt

__all__ = ["RepeatedRuns", "Run", "content_of", "digest_of"]


class Run(NamedTuple):
    """What one log states of a run.

    Attributes:
      outcome: a digest of its scores; None where it has none, which contradicts nothing.
      fullness: what tells how complete the run and its log are, the greatest for the most complete.
      file: the log.
      line: its line; 0 where the format has ids that are unique in a log, so that a log holds a run once.
    """

    outcome: bytes | None
    fullness: tuple[int, ...]
    file: str
    line: int = 0

    @property
    def order(self) -> tuple[Any, ...]:
        """The least stands: one with scores, the fullest, then the shortest name, which is the one that was copied."""
        return self.outcome is None, tuple(-n for n in self.fullness), len(self.file), self.file, self.line


class _Met(NamedTuple):
    """Of all logs that hold a run, which stands, and the two with the least and greatest digest of scores."""

    stands: Run
    least: Run | None
    greatest: Run | None


class RepeatedRuns:
    """The runs of all logs of a reading. Memory grows with their number alone."""

    def __init__(self) -> None:
        self._met: dict[bytes, _Met] = {}

    def __bool__(self) -> bool:
        """Whether any run was noted."""
        return bool(self._met)

    def note(self, key: bytes, run: Run) -> None:
        """Note that a log holds the run of a key."""
        met = self._met.get(key)
        own = None if run.outcome is None else run
        if met is None:
            self._met[key] = _Met(run, own, own)
            return
        stated = [one for one in (met.least, met.greatest, own) if one is not None]
        by_outcome = sorted(stated, key=lambda one: (one.outcome or b"", one.order))
        ends = (by_outcome[0], by_outcome[-1]) if by_outcome else (None, None)
        self._met[key] = _Met(min(met.stands, run, key=lambda one: one.order), *ends)

    def problem(self, key: bytes, run: Run, field: str, line: int, trace: str) -> Problem | None:
        """Why a run is not read from a log; None where it is.

        Args:
          key: the run's.
          run: as it was noted; its `fullness` does not matter.
          field: the field that tells the run.
          line: where it stands in the log.
          trace: its id.

        Returns:
          "repeated-run", which is information: another log has it. "disagreeing-rewards": two logs state different
          scores, so that it is read from none.
        """
        met = self._met.get(key)
        if met is None:
            return None
        if met.least is not None and met.greatest is not None and met.least.outcome != met.greatest.outcome:
            other = met.least if run.outcome != met.least.outcome else met.greatest
            expected = f"the scores of {_place(other)}, which is the same run: it is read from neither"
            return Problem("disagreeing-rewards", run.file, line, field, "a run with other scores", expected, trace)
        if (met.stands.file, met.stands.line) == (run.file, run.line):
            return None
        value, expected = f"a run of {_place(met.stands)} again", "each run once, so it is read from there alone"
        return Problem("repeated-run", run.file, line, field, value, expected, trace)


def digest_of(*parts: Any) -> bytes:
    """A digest of texts, numbers and bytes, for keys and outcomes: a dict of ids would hold their texts."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def content_of(raw: bytes | msgspec.Raw) -> bytes:
    """A JSON value as every writer of it would have written it: as `canonical`, and 1.0 as 1, as jq writes it.

    With a key that stands twice, the text as it is: what a decoder drops would be equal to what never had it.
    """
    text = bytes(raw)
    try:
        value = _NUMBERS.decode(text)
        return text if repeated_anywhere(text) else msgspec.json.encode(value, order="sorted")
    except (*JSON_ERRORS, OverflowError):
        return canonical(text)


def _number(text: str) -> float | int:
    """The number of a JSON text with a fraction or an exponent.

    Raises:
      OverflowError: it is beyond the floats, and would be written as null.
    """
    amount = float(text)
    if math.isinf(amount):
        raise OverflowError(text)
    return int(amount) if amount.is_integer() and abs(amount) < _EXACT else amount


_EXACT = 1 << 53  # up to here a float is the only one of its integer
_NUMBERS = msgspec.json.Decoder(float_hook=_number)


def _place(run: Run) -> str:
    return excerpt(run.file, 200) + (f", line {run.line}" if run.line else "")
