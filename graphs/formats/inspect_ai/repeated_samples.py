"""Samples that several logs of Inspect hold, as the log of a run and of its retry do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.inspect_ai.outcomes import channels
from graphs.formats.inspect_ai.sample_fields import (
    DECODE_SAMPLE,
    Header,
    Sample,
    Score,
    events_of,
    scores_of,
)
from graphs.reading.decode import decode
from graphs.reading.documents import Place
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.keys import has_key
from graphs.reading.repeated_runs import RepeatedRuns, Run, content_of, digest_of
from graphs.reading.source import Source

__all__ = ["Item", "key_of", "outcome_of", "runs_of"]

Item = tuple[Header, bytes | Problem, Place, str]
"""A log's header, a sample or what is wrong with it, its place, its field."""

_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])


def runs_of(sources: list[Source], items_of: Callable[[Source], Iterator[Item]]) -> RepeatedRuns:
    """The samples of several logs by `key_of`, which a retry and a copy of a log keep.

    A log or sample that cannot be read is not among them: its reader names it.

    Args:
      sources: the logs.
      items_of: the samples of one; it may raise a `TraceError`.
    """
    runs = RepeatedRuns()
    for source in sources if len(sources) > 1 else ():
        met: list[tuple[bytes, bytes | None, int]] = []
        success = False
        try:
            for log, raw, place, at in items_of(source):
                success = log.status == "success"
                if isinstance(raw, bytes):
                    met += _glimpse(log, raw, place, at)
        except TraceError:
            pass  # what stands before it was met, and `read` yields the problem
        for key, outcome, events in met:
            runs.note(key, Run(outcome, (events, success, len(met)), source.name))
        source.release()
    return runs


def _glimpse(log: Header, raw: bytes, place: Place, at: str) -> list[tuple[bytes, bytes | None, int]]:
    """The key of a sample that has one, a digest of its scores, and its number of events."""
    try:
        sample = decode(DECODE_SAMPLE, raw, file=place.file, line=place.line, at=at)
        key = key_of(sample, log, raw)
        if key is None:
            return []
        events = decode(_EVENTS, events_of(sample, place, at, ""), file=place.file, line=place.line, at=at)
        return [(key, outcome_of(scores_of(sample, log, place, at, "")), len(events))]
    except TraceError:  # which `read` yields
        return []


def key_of(sample: Sample, log: Header, raw: bytes) -> bytes | None:
    """What tells a sample among all logs: its `uuid`, in older logs without one its whole content.

    None where its events have no times, either: two runs may have equal answers.

    Args:
      sample: decoded.
      log: the header of its log.
      raw: the sample as JSON.
    """
    if isinstance(sample.uuid, str) and sample.uuid:
        return digest_of(log.eval.task, str(sample.id), sample.epoch, sample.uuid)
    events = bytes(sample.events) or (b"" if sample.transcript is None else bytes(sample.transcript.events))
    try:
        if not any(has_key(bytes(event), "timestamp") for event in _EVENTS.decode(events or b"[]")):
            return None
    except JSON_ERRORS:  # which `read` names
        return None
    return digest_of(log.eval.task, log.eval.model, log.eval.solver, content_of(raw))


def outcome_of(scores: dict[str, Score]) -> bytes | None:
    """A digest of what is scored, whichever way it is written; None without any score."""
    if not scores:
        return None
    amounts = [(name, _amounts(name, score.value)) for name, score in sorted(scores.items())]
    return digest_of(*amounts)


def _amounts(scorer: str, value: Any) -> list[tuple[str, Any]]:
    found = sorted(channels(scorer, value).items())
    return found if all(amount is not None for _, amount in found) else [("", value)]
