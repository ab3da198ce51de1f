"""Scores of Langfuse without a `traceId`: of the trace of their observation, of a session or a data set's run, or lost.

A score's observation may stand in another file, so the traces are looked up when all files have been read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from graphs.errors import Problem
from graphs.formats.common.span_tree import Span
from graphs.reading.documents import Place
from graphs.text import excerpt

__all__ = ["ScoreKeys", "owners_by_observation"]


class ScoreKeys(msgspec.Struct):
    """What tells a score from a trace, which has an id and a name as well."""

    value: msgspec.Raw = msgspec.Raw()
    kind: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="dataType")
    observation: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="observationId")
    session: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="sessionId")
    run: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="datasetRunId")

    @property
    def is_of_a_trace(self) -> bool:
        """Whether the object is a score that has to be of a trace: those of a session or a run are of many."""
        about = bytes(self.observation) not in (b"", b"null")
        elsewhere = any(bytes(one) not in (b"", b"null") for one in (self.session, self.run))
        return about or (not elsewhere and bool(bytes(self.value) or bytes(self.kind) or bytes(self.observation)))


def owners_by_observation(scores: list[tuple[str, Place]], spans: Mapping[str, list[Span]]) -> Iterator[str | Problem]:
    """The trace of each score, or "missing-field" for one whose observation is in no trace at hand, or in several.

    Args:
      scores: the id of each one's observation, or "", and its place.
      spans: the observations of each trace.
    """
    wanted = {observation for observation, _ in scores if observation}
    owners: dict[str, set[str]] = {}
    for trace, of_trace in spans.items() if wanted else ():
        for span in of_trace:
            if span.id in wanted:
                owners.setdefault(span.id, set()).add(trace)
    for observation, place in scores:
        traces = owners.get(observation, set())
        if len(traces) == 1:
            yield next(iter(traces))
            continue
        expected = "the id of the trace, which a score has, or the observationId of an observation of one trace at hand"
        value = f"absent; observationId {excerpt(observation)}" if observation else "absent"
        yield Problem("missing-field", place.file, place.line, "traceId", value, expected)
