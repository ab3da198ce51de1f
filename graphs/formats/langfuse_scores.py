"""Scores of Langfuse as its logs write them, and the numbers that they state."""

from __future__ import annotations

from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Place
from graphs.reading.json_problems import JSON_ERRORS
from graphs.text import excerpt
from graphs.traces.record import LARGEST_FLOAT

__all__ = ["NUMBERS", "WrittenScore", "number_of"]

_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]

NUMBERS = ("NUMERIC", "BOOLEAN")  # types of scores whose value is what was scored


class WrittenScore(msgspec.Struct):
    """A score, with all that is read of it."""

    name: str
    id: str | None = None
    value: _Float | str | bool | None = None
    kind: str | None = msgspec.field(default=None, name="dataType")
    trace: str | None = msgspec.field(default=None, name="traceId")
    observation: str | None = msgspec.field(default=None, name="observationId")


_NUMBER = msgspec.json.Decoder(_Float)


def number_of(score: WrittenScore, text: str, trace: str, place: Place) -> float:
    """The number that a text states, as tables and scripts that pass scores on write it.

    Raises:
      TraceError: "bad-value", the text states none.
    """
    try:
        return _NUMBER.decode(text)
    except JSON_ERRORS as error:
        expected = f"a number, which a score of the dataType {score.kind} has: it is the score {score.name!r}"
        raise TraceError(
            Problem("bad-value", place.file, place.line, "scores.value", excerpt(text), expected, trace)
        ) from error
