"""How much of a log is taken in: bounds on files, records, strings, nesting and traces, since logs are untrusted.

A limit that is passed is a `Problem` of kind "too-large", "too-deep" or "too-many", like any other fault of the input.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

import numpy as np

from graphs.errors import CreditError, Problem
from graphs.text import counted, excerpt

__all__ = ["DEFAULT", "LARGEST_LIMIT", "SMALL_ARCHIVE", "Limits"]

SMALL_ARCHIVE = 1 << 20
"""Bytes that an archive may unpack to, however well they were packed."""

LARGEST_LIMIT = 10**18 - 1
"""Of any limit: sums and differences of what it bounds fit 64 bits."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # possessive: a long string needs no stack
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = np.zeros(256, np.int8)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1
_SHOWN = 60
_BIT = np.uint8(ord("{") ^ ord("["))
_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what is read; each holds for one file, record or trace by itself.

    A record is a line of a file, or one trace of a JSON list of traces. Peak memory of reading is a small multiple of
    the largest file, so `file_bytes` bounds it; `tests/graphs/test_hostile.py` states the multiples.

    Attributes:
      file_bytes: of a file, after decompression.
      record_bytes: of a record, or of a member of an archive (`.eval`), unpacked. A format whose record is the whole
        file is bounded by `file_bytes` instead.
      string_bytes: of one string of a record, as it is written there.
      depth: of lists and objects within each other. It holds for records of line formats and of the native format;
        what else is nested deeper than the JSON decoder's own bound (about 1000) is refused too.
      events, edges: of a trace.
      files: of all paths together; members of an archive.
      ratio: of what all members of an archive unpack to, over the archive's own size; from `SMALL_ARCHIVE` bytes on.
    """

    file_bytes: int = 2 << 30
    record_bytes: int = 256 << 20
    string_bytes: int = 64 << 20
    depth: int = 200
    events: int = 1_000_000
    edges: int = 10_000_000
    files: int = 1_000_000
    ratio: int = 1000

    def __post_init__(self) -> None:
        """Check that every limit is an integer from 1 to `LARGEST_LIMIT`.

        Raises:
          CreditError: one is not.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_LIMIT:
                raise CreditError(f"limit {field.name!r} is {value!r}; expected an integer from 1 to {LARGEST_LIMIT}")

    @classmethod
    def parse(cls, given: Iterable[str]) -> Limits:
        """Limits from texts `NAME=INTEGER`; dashes in a name stand for underscores.

        Raises:
          CreditError: an unknown name, one given twice, or no integer from 1 to `LARGEST_LIMIT`.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        numbers: dict[str, int] = {}
        for text in given:
            name, _, value = text.partition("=")
            name = name.replace("-", "_")
            if name not in known or name in numbers:
                raise CreditError(f"limit {text!r}; expected NAME=INTEGER, each once, with {', '.join(known)}")
            number = int(value) if value.isascii() and value.isdecimal() and len(value) <= 100 else 0
            if not 1 <= number <= LARGEST_LIMIT:
                expected = f"an integer from 1 to {LARGEST_LIMIT}"
                raise CreditError(f"limit {name!r} is {excerpt(value)}; expected {expected}")
            numbers[name] = number
        return cls(**numbers)

    def refuse_file(self, file: str) -> Problem:
        """The problem of a file that is longer than `file_bytes`, of which nothing is read."""
        return Problem(
            "too-large",
            file,
            0,
            "file",
            f"more than {counted(self.file_bytes, 'byte')}",
            f"at most {counted(self.file_bytes, 'byte')}",
        )

    def refuse_record(self, record: bytes, file: str, line: int) -> Problem | None:
        """What limit a record passes, if any, before it is decoded: its size, a string's, or its depth."""
        return self.refuse_size(record, file, line) or self.refuse_depth(record, file, line)

    def refuse_size(self, record: bytes, file: str, line: int) -> Problem | None:
        """The problem of a record that is too long, or has too long a string; free for one of ordinary length."""
        if len(record) > self.record_bytes:
            expected = f"at most {counted(self.record_bytes, 'byte')}"
            return Problem("too-large", file, line, "content", counted(len(record), "byte"), expected)
        if len(record) > self.string_bytes:
            longest = max((s.end() - s.start() - 2 for s in _STRING.finditer(record)), default=0)
            if longest > self.string_bytes:
                expected = f"strings of at most {counted(self.string_bytes, 'byte')}"
                return Problem("too-large", file, line, "content", f"a string of {counted(longest, 'byte')}", expected)
        return None

    def refuse_depth(self, record: bytes, file: str, line: int, known: int = 0) -> Problem | None:
        """The problem of a record that nests deeper than `depth`.

        `known` is a number of brackets that are known to nest less: a record without `depth` more cannot be too deep,
        which is all that most records are asked.
        """
        if _brackets(record) - known <= self.depth or depth(record) <= self.depth:
            return None
        expected = f"at most {self.depth} lists and objects within each other"
        return Problem("too-deep", file, line, "content", excerpt(record[:_SHOWN]), expected)


def _brackets(record: bytes) -> int:
    """How many opening brackets and braces there are, also in strings; they differ in one bit."""
    text = np.frombuffer(record, np.uint8)
    blocks = (text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK))
    return sum(int(np.count_nonzero((block & ~_BIT) == ord("["))) for block in blocks)


def depth(record: bytes) -> int:
    """How deep lists and objects of a JSON text nest; brackets in strings do not count."""
    outside = _STRING.sub(b"", record).translate(None, _NO_BRACKETS)
    steps = _STEP[np.frombuffer(outside, np.uint8)]
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))


DEFAULT = Limits()
"""What holds where nothing else is said."""
