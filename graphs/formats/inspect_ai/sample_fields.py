"""The structs of Inspect logs, and where each version keeps a sample's events and scores."""

from __future__ import annotations

from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Place

__all__ = ["DECODE_SAMPLE", "Header", "Log", "Sample", "Score", "Withdrawn", "events_of", "scores_of"]


class _Eval(msgspec.Struct):
    task: str
    model: str = ""
    solver: str | None = None


class _Named(msgspec.Struct):
    name: str | None = None


class _Results(msgspec.Struct):
    """The scorers of a log: a list, or one in older logs."""

    scores: list[_Named] = []
    scorer: _Named | None = None

    @property
    def first(self) -> str:
        """The name of the first scorer."""
        names = [scorer.name for scorer in (*self.scores, self.scorer) if scorer is not None and scorer.name]
        return names[0] if names else "score"


class Header(msgspec.Struct):
    """A log without its samples."""

    eval: _Eval
    results: _Results | None = None
    invalidated: bool = False

    @property
    def scorer(self) -> str:
        """The first scorer, to which the only score of an older sample belongs."""
        return (self.results or _Results()).first


class Log(Header):
    """A log in JSON, its samples undecoded."""

    samples: msgspec.Raw = msgspec.Raw(b"null")


class Score(msgspec.Struct):
    """The score of one scorer."""

    value: Any = None


class _Invalidation(msgspec.Struct):
    author: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return self.reason or f"by {self.author or 'an unnamed author'}"


class Withdrawn(msgspec.Struct):
    """Whether a sample was invalidated."""

    invalidation: msgspec.Raw = msgspec.Raw(b"null")


class _Error(msgspec.Struct):
    message: str = ""


class _Transcript(msgspec.Struct):
    events: msgspec.Raw


class Sample(msgspec.Struct):
    """A sample. Older logs have `transcript` and `score` in place of `events` and `scores`."""

    id: int | str
    epoch: int
    events: msgspec.Raw = msgspec.Raw()
    transcript: _Transcript | None = None
    input: msgspec.Raw = msgspec.Raw()
    scores: dict[str, Score] | None = None
    score: Score | None = None
    uuid: Any = None
    invalidation: _Invalidation | None = None
    error: _Error | None = None
    limit: msgspec.Raw = msgspec.Raw(b"null")


DECODE_SAMPLE = msgspec.json.Decoder(Sample)


def events_of(sample: Sample, place: Place, field: str, trace: str) -> msgspec.Raw:
    """The sample's events; older logs keep them in its transcript.

    Raises:
      TraceError: "missing-field".
    """
    if bytes(sample.events):
        return sample.events
    if sample.transcript is not None:
        return sample.transcript.events
    raise TraceError(Problem("missing-field", place.file, place.line, f"{field}.events", "absent", "a list", trace))


def scores_of(sample: Sample, log: Header, place: Place, field: str, trace: str) -> dict[str, Score]:
    """The sample's scores by scorer; the `score` of an older log belongs to the log's first scorer.

    Raises:
      TraceError: "bad-value", it has `score` and `scores`.
    """
    if sample.score is None:
        return sample.scores or {}
    if sample.scores:
        expected = "`score`, as in older logs, or `scores`, but not both"
        raise TraceError(Problem("bad-value", place.file, place.line, f"{field}.score", "given twice", expected, trace))
    return {log.scorer: sample.score}
