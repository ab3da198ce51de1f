"""Limits of reading: bounds on files, records, strings, nesting and traces. Logs are untrusted input.

An input that exceeds a limit gives a `Problem` of kind "too-large", "too-deep" or "too-many".
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

import numpy as np

from graphs.errors import CreditError, Problem
from graphs.text import counted, excerpt

__all__ = ["DEFAULT", "LARGEST_LIMIT", "SMALL_ARCHIVE", "Limits", "brackets", "structure"]

SMALL_ARCHIVE = 1 << 20
"""Unpacked size in bytes up to which `Limits.ratio` does not apply."""

LARGEST_LIMIT = 10**18 - 1
"""Greatest value of any limit, so that sums of bounded sizes fit 64 bits."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # possessive: a long string needs no stack
_NO_OPENING = bytes(set(range(256)) - set(b"[{"))
_PLAIN = bytes(set(range(256)) - set(b'[]{}"'))
_COMMA = np.int8(2)
_MARK = np.zeros(256, np.int8)
_MARK[list(b"[{")], _MARK[list(b"]}")], _MARK[ord(",")] = 1, -1, _COMMA
_SHOWN = 60
_TOGETHER = 1 << 22  # bytes of records that are looked at together
_BIT = np.uint8(ord("{") ^ ord("["))
_BLOCK = 1 << 16
_QUOTE, _BACKSLASH = ord('"'), ord("\\")


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the input; each applies to one file, record or trace.

    A record is a line of a file, or one trace of a JSON list of traces. Peak memory of reading is a small multiple of
    the largest file, so `file_bytes` bounds it. `tests/graphs/reading/hostile/test_hostile_memory.py` states the
    multiples.

    Attributes:
      file_bytes: bytes of a file after decompression.
      record_bytes: bytes of a record, or of an unpacked member of an archive (`.eval`). `file_bytes` applies instead to
        a format whose record is the whole file.
      string_bytes: bytes of one string of a record, in its encoded form.
      depth: nesting of lists and objects, for records of line formats and of the native format. Other formats have the
        bound of the JSON decoder (about 1000).
      events, edges: number per trace.
      files: number of files of all paths together, and of members of an archive.
      ratio: unpacked size of a compressed file, of all members of an archive, or of a Parquet table, divided by the
        file's own size. It applies from `SMALL_ARCHIVE` unpacked bytes on.

    Raises:
      CreditError: a limit is not a positive integer.

    Examples:
      >>> import credit
      >>> credit.Limits(events=10_000).events
      10000
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
          CreditError: a limit is not.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_LIMIT:
                raise CreditError(f"limit {field.name!r} is {value!r}; expected an integer from 1 to {LARGEST_LIMIT}")

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Limits:
        """Limits from texts `NAME=INTEGER`; dashes in a name stand for underscores.

        Raises:
          CreditError: a name is unknown or given twice, or a value is not an integer from 1 to `LARGEST_LIMIT`.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        numbers: dict[str, int] = {}
        for text in texts:
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
        """The problem of a file that is longer than `file_bytes`."""
        return Problem(
            "too-large",
            file,
            0,
            "file",
            f"more than {counted(self.file_bytes, 'byte')}",
            f"at most {counted(self.file_bytes, 'byte')}",
        )

    def refuse_record(self, record: bytes, file: str, line: int) -> Problem | None:
        """The problem of a record that is too long, has too long a string or nests too deep; None if it is allowed."""
        return self.refuse_size(record, file, line) or self.refuse_depth(record, file, line)

    def may_refuse(self, text: bytes, ends: np.ndarray) -> bool:
        """Whether one of the records in a text may be refused; False is certain, and found faster than one by one.

        Args:
          text: the records behind each other.
          ends: of each record, where the text of the next begins.
        """
        if not len(ends) or len(text) > min(self.string_bytes, self.record_bytes, _TOGETHER):
            return True
        places = np.flatnonzero((np.frombuffer(text, np.uint8) & ~_BIT) == ord("["))  # the two differ in one bit
        return bool(np.diff(np.searchsorted(places, ends), prepend=0).max(initial=0) > self.depth)

    def refuse_size(self, record: bytes, file: str, line: int) -> Problem | None:
        """The problem of a record that is too long or has too long a string; None if it is allowed."""
        if len(record) > self.record_bytes:
            expected = f"at most {counted(self.record_bytes, 'byte')}"
            return Problem("too-large", file, line, "content", counted(len(record), "byte"), expected)
        if len(record) > self.string_bytes and _longest_run(record) > self.string_bytes:
            longest = max((s.end() - s.start() - 2 for s in _STRING.finditer(record)), default=0)
            if longest > self.string_bytes:
                expected = f"strings of at most {counted(self.string_bytes, 'byte')}"
                return Problem("too-large", file, line, "content", f"a string of {counted(longest, 'byte')}", expected)
        return None

    def refuse_depth(self, record: bytes, file: str, line: int, known: int = 0) -> Problem | None:
        """The problem of a record that nests deeper than `depth`; None if it is allowed.

        `known` is a number of brackets that are known to nest less than `depth`. A record with at most `depth` further
        brackets, or bytes, cannot be too deep and is not parsed.
        """
        if len(record) <= self.depth or brackets(record) - known <= self.depth or depth(record) <= self.depth:
            return None
        expected = f"at most {self.depth} lists and objects within each other"
        return Problem("too-deep", file, line, "content", excerpt(record[:_SHOWN]), expected)


def _longest_run(record: bytes) -> int:
    """Most bytes between two quotation marks without a backslash before them: no string is longer.

    Matching every string, as is done where this is too much, takes ten times as long.
    """
    text = np.frombuffer(record, np.uint8)
    longest, end = 0, -1
    for start in range(0, len(text), _BLOCK):
        block = text[start : start + _BLOCK]
        quotes = np.flatnonzero(block == _QUOTE)
        quotes = quotes[(start + quotes == 0) | (text[start + quotes - 1] != _BACKSLASH)]
        ends = np.concatenate([[end], start + quotes])
        longest = max(longest, int(np.diff(ends).max(initial=0)) - 1)
        end = int(ends[-1])
    return max(longest, len(text) - end - 1)


def brackets(text: bytes) -> int:
    """Number of opening brackets and braces, including those in strings."""
    return len(text.translate(None, _NO_OPENING))


def depth(record: bytes) -> int:
    """Nesting depth of lists and objects in a JSON text; brackets in strings do not count."""
    if b"\\" in record:
        letters = np.frombuffer(record, np.uint8).copy()
        escaped = _escaped(letters)
        letters[escaped[letters[escaped] == _QUOTE]] = _BACKSLASH
        record = letters.tobytes()
    letters = np.frombuffer(record.translate(None, _PLAIN), np.uint8)  # few letters are quotes and brackets
    within = np.cumsum(letters == _QUOTE, dtype=np.uint8) & 1  # it wraps around at 256, which is even
    return int(np.cumsum(_MARK[letters[within == 0]], dtype=np.int64).max(initial=0))


def structure(text: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Brackets, braces and commas of a JSON text that are in no string.

    Returns:
      Where they stand, int64, and int8: 1 for one that opens, -1 for one that closes, 0 for a comma.
    """
    # Passes over arrays: a regular expression stops at each string, which takes ten times as long. A quote that is not
    # escaped begins or ends a string, so what stands behind an odd number of them is in one.
    letters = np.frombuffer(text, np.uint8)
    quotes = letters == _QUOTE
    quotes[_escaped(letters)] = False
    within = np.cumsum(quotes, dtype=np.uint8) & 1  # it wraps around at 256, which is even
    kinds = _MARK[letters]
    places = np.flatnonzero(kinds)
    places = places[within[places] == 0]
    return places, np.fmod(kinds[places], _COMMA)


def _escaped(letters: np.ndarray) -> np.ndarray:
    """Where letters stand behind a backslash that escapes them: of some side by side every other, from the first on."""
    slashes = np.flatnonzero(letters == _BACKSLASH)
    first = np.diff(slashes, prepend=-2) > 1
    place = np.arange(len(slashes))
    escaped: np.ndarray = slashes[(place - np.maximum.accumulate(np.where(first, place, 0))) % 2 == 0] + 1
    return escaped[: np.searchsorted(escaped, len(letters))]


DEFAULT = Limits()
"""The default limits."""
