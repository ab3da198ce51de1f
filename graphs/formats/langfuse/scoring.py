"""Scores of Langfuse: the numbers that they state, and which of them are rewards."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.scores import Score, place_scores
from graphs.formats.common.team_writing import Written
from graphs.reading.documents import Place
from graphs.reading.json_problems import JSON_ERRORS
from graphs.text import excerpt
from graphs.traces.record import LARGEST_FLOAT

__all__ = ["Subject", "TraceScores", "WrittenScore"]

_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]

_NUMBERS = ("NUMERIC", "BOOLEAN")  # types of scores whose value is the score, and not the code of a category
_NUMBER = msgspec.json.Decoder(_Float)


class Subject(msgspec.Struct):
    """What a score of the third version of the API is about: a trace, an observation, a session or an experiment."""

    kind: str
    id: str
    trace: str | None = msgspec.field(default=None, name="traceId")  # of an observation

    @property
    def of_trace(self) -> str | None:
        """The id of the trace, where it is stated."""
        return self.id if self.kind == "trace" else self.trace


class WrittenScore(msgspec.Struct):
    """A score, with what is read of it."""

    name: str
    id: str | None = None
    value: _Float | str | bool | None = None
    text: str | None = msgspec.field(default=None, name="stringValue")
    kind: str | None = msgspec.field(default=None, name="dataType")
    trace: str | None = msgspec.field(default=None, name="traceId")
    observation: str | None = msgspec.field(default=None, name="observationId")
    source: Any = None  # ANNOTATION where a person gave it
    subject: Subject | None = None  # in place of both ids

    def __post_init__(self) -> None:
        if self.subject and self.subject.kind == "observation":
            self.observation = self.subject.id


class TraceScores:
    """The scores of one trace.

    Attributes:
      categories: by name, the problem of a score whose number stands for a category.
    """

    __slots__ = ("_numbers", "_trace", "_without", "categories")  # there may be millions, most without the last two

    def __init__(self, trace: str) -> None:
        self._trace = trace
        self._numbers: list[Score] = []
        self._without: list[str] | None = None  # ids of scores without a number
        self.categories: dict[str, Problem] | None = None

    @property
    def ids(self) -> set[str]:
        """Those of all scores, also of the ones without a number."""
        return {score.id for score in self._numbers} | set(self._without or ())

    def add(self, score: WrittenScore, place: Place) -> None:
        """Take a score in.

        Langfuse writes a number for a category too: what the project maps it to, or 0 where it maps it to nothing. The
        log does not say which, so that number is no reward. Its word may be one.

        Raises:
          TraceError: "bad-value", the value of a score of numbers is a text without one.
        """
        value = score.value
        if isinstance(value, str) and score.kind in _NUMBERS:
            value = self._number(score, value, place)
        if isinstance(value, bool | int | float) and (score.kind is None or score.kind in _NUMBERS):
            self._place(score, float(value), place)
            return
        text = score.text if score.kind == "CATEGORICAL" else None
        word, field = (text, "scores.stringValue") if text else (value, "")
        if isinstance(word, str) and word:
            self._place(score, word, place, field)
            return
        if self._without is None:
            self._without = []
        self._without.append(score.id or "")
        if not isinstance(value, bool | int | float):
            return
        expected = "NUMERIC or BOOLEAN: the number of a category is no reward, and may be 0 for every category"
        shown = excerpt(f"{score.kind}, of the score {score.name}")
        problem = Problem("category-score", place.file, place.line, "scores.dataType", shown, expected, self._trace)
        if self.categories is None:
            self.categories = {}
        self.categories.setdefault(score.name, problem)

    def _place(self, score: WrittenScore, value: float | str, place: Place, field: str = "") -> None:
        by_person = score.source == "ANNOTATION"
        span, score_id = score.observation or "", score.id or ""
        self._numbers.append(Score(sys.intern(score.name), value, place, span, score_id, 0, field, by_person))

    def add_columns(self, columns: list[tuple[str, float]], span: str, place: Place) -> None:
        """Take in the scores that a row of a table has in columns: name and number, without ids."""
        for number, (name, value) in enumerate(columns):
            self._numbers.append(Score(name, value, place, span, number=number))

    def _number(self, score: WrittenScore, text: str, place: Place) -> float:
        """The number that a text states, as tables and scripts that pass scores on write it."""
        try:
            return _NUMBER.decode(text)
        except JSON_ERRORS as error:
            expected = f"a number, which a score of the dataType {score.kind} has: it is the score {score.name!r}"
            shown = excerpt(text)
            raise TraceError(
                Problem("bad-value", place.file, place.line, "scores.value", shown, expected, self._trace)
            ) from error

    def set_rewards(self, written: Written, *, are_all: bool) -> None:
        """Write scores of the trace or its root as channels, those of a generation or a tool as rewards at that event.

        The channel `reward` is the outcome. The log's only one is too, if the scores at hand `are_all` of the trace.
        """
        place_scores(written, self._numbers, ("scores.value", "scores.observationId"))
        record = written.team.record
        if "reward" in record.rewards:
            place = next(score.place for score in self._numbers if score.name == "reward")
            record.state_reward("team", record.rewards["reward"], "scores.reward", place)
        elif "reward" in record.words:
            record.words["team"] = record.words["reward"]
        elif are_all:
            record.sole_channel()
