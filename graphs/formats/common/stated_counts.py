"""How many records a log says that a trace has, held against those that were read."""

from __future__ import annotations

from collections.abc import Iterator

from graphs.errors import Problem
from graphs.reading.documents import Place
from graphs.text import counted

__all__ = ["missing_parts"]


def missing_parts(stated: int, read: int, noun: str, field: str, place: Place, trace: str) -> Iterator[Problem]:
    """A problem where fewer were read. What was recorded after the count was stated is no fault.

    Args:
      stated: how many there are to be.
      read: how many there are.
      noun: what they are.
      field: which states the count, at `place`.
      trace: the trace's id.

    Examples:
      >>> [one.value for one in missing_parts(3, 2, "span", "num_spans", Place("log.json", 1, 0), "t")]
      ['3 spans']
    """
    if stated > read:
        expected = f"as many at hand: {read} are"
        yield Problem("missing-part", place.file, place.line, field, counted(stated, noun), expected, trace)
