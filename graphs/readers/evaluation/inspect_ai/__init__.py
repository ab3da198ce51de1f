"""Logs of Inspect AI: `.json`, one object, and `.eval`, a zip with one JSON file a sample.

A sample is a trace, "STEM/ID/EPOCH"; its group is "TASK/ID": the epochs of one sample, and the same sample in the logs
of other runs of the task. Where two logs give one sample two different input texts, the later one's group is "STEM/ID":
tasks that differ are never compared.

Rewards. Each scorer is a channel of its name, in parts NAME.KEY where its score is a dict or a list. It is the outcome,
`team`, too where it is the only scorer and its score is one number; which of several is meant, the user says.

`docs/formats/inspect-ai.md` has the whole mapping. `archive` opens zips, `events` makes spans, `scores` numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.readers.common.keys import opening
from graphs.readers.common.places import Place, Places, stem
from graphs.readers.common.source import Source
from graphs.readers.common.span_tree import write_spans
from graphs.readers.common.typed import content, decode
from graphs.readers.evaluation.inspect_ai.archive import Archive
from graphs.readers.evaluation.inspect_ai.events import spans_of
from graphs.readers.evaluation.inspect_ai.outcomes import channels
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_ZIP = b"PK\x03\x04"
_MEMBER = re.compile(rb"(?:_journal/|samples/|header\.json|summaries\.json)")
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/.+\.json")


class _Eval(msgspec.Struct):
    task: str


class _Header(msgspec.Struct):
    eval: _Eval


class _Log(msgspec.Struct):
    eval: _Eval
    samples: msgspec.Raw = msgspec.Raw(b"null")


class _Score(msgspec.Struct):
    value: Any = None


class _Sample(msgspec.Struct):
    id: int | str
    epoch: int
    events: msgspec.Raw
    input: msgspec.Raw = msgspec.Raw()
    scores: dict[str, _Score] | None = None


_HEADER = msgspec.json.Decoder(_Header)
_LOG = msgspec.json.Decoder(_Log)
_SAMPLES = msgspec.json.Decoder(list[msgspec.Raw] | None)
_DECODE_SAMPLE = msgspec.json.Decoder(_Sample)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a log of Inspect, or as a zip with a member of one."""
    if head.startswith(_ZIP):
        return _MEMBER.match(head, 30) is not None
    return {"version", "status", "eval"} <= set(opening(head).keys)


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each sample; one that is not as expected is a problem, and the others read.

    Problem kinds: those of `graphs.readers.common.json_problems`, "unreadable", "bad-zip", "zip-bomb";
    "missing-header" (an archive without); "missing-field"; of the spans "duplicate-span", "parent-cycle",
    "missing-parent"; "empty-trace" (a log without samples). Named while the sample reads without it: "bad-score", a
    score that is no number.
    """
    inputs: dict[str, bytes] = {}
    for source in sources:
        try:
            data = content(source)
            samples = _in_archive(source) if data.startswith(_ZIP) else _in_json(source, data)
            count = 0
            for task, raw, place, at in samples:
                count += 1
                yield from _read_sample(source, task, raw, place, at, inputs) if isinstance(raw, bytes) else [raw]
            if not count:
                yield Problem("empty-trace", source.name, 0, "samples", "none", "at least one sample")
        except TraceError as error:
            yield error.problem
        source.release()


_Item = tuple[str, bytes | Problem, Place, str]  # task, the sample or what is wrong with it, place, field


def _in_json(source: Source, data: bytes) -> Iterator[_Item]:
    log = decode(_LOG, data, file=source.name, line=1)
    start = _behind_key(data, b"samples", bytes(log.samples))
    places = Places(data, start, 1 + data.count(b"\n", 0, start))
    for index, raw in enumerate(decode(_SAMPLES, log.samples, file=source.name, line=1, at="samples") or []):
        yield log.eval.task, bytes(raw), Place(source.name, *places.of(raw)), f"samples[{index}]"


def _in_archive(source: Source) -> Iterator[_Item]:
    archive = Archive(source)
    header = next((name for name in _HEADERS if name in archive.members), None)
    if header is None:
        expected = "one of " + ", ".join(_HEADERS)
        raise TraceError(Problem("missing-header", source.name, 0, "content", excerpt(list(archive.members)), expected))
    task = decode(_HEADER, archive.read(header), file=source.name, line=0, at=header).eval.task
    nowhere = Place(source.name, 0, -1)
    for name in sorted(archive.members):
        if _SAMPLE.fullmatch(name):
            try:
                yield task, archive.read(name), nowhere, name
            except TraceError as error:
                yield task, error.problem, nowhere, name


def _read_sample(
    source: Source, task: str, raw: bytes, place: Place, at: str, inputs: dict[str, bytes]
) -> Iterator[TraceRecord | Problem]:
    file = stem(source.name, ".eval")
    try:
        sample = decode(_DECODE_SAMPLE, raw, file=source.name, line=place.line, at=at)
        trace, group = f"{file}/{sample.id}/{sample.epoch}", f"{task}/{sample.id}"
        text = bytes(sample.input)
        if text.startswith(b'"'):  # a list of messages bears ids that differ from run to run
            digest = hashlib.blake2b(text, digest_size=16).digest()
            if inputs.setdefault(group, digest) != digest:
                group = f"{file}/{sample.id}"
        record = TraceRecord(trace, group, source.name, place.line, max(place.offset, 0), format="inspect-ai")
        write_spans(
            record, spans_of(sample.events, _events_place(raw, sample, place), trace), "main", ("id", "parent_id")
        )
    except TraceError as error:
        yield error.problem
        return
    scores = sample.scores or {}
    for name, score in scores.items():
        for channel, amount in channels(name, score.value).items():
            if amount is None:
                value, expected = excerpt(score.value), "C, P, I, N, yes, no, true, false, or numbers"
                yield Problem("bad-score", source.name, place.line, f"{at}.scores.{channel}", value, expected, trace)
            else:
                record.rewards[channel] = amount
    if len(scores) == 1:
        only = next(iter(scores))
        if only in record.rewards:
            record.rewards["team"] = record.rewards[only]
    yield record


def _events_place(raw: bytes, sample: _Sample, place: Place) -> Place:
    """Where the list of events begins."""
    if place.offset < 0:
        return place
    start = _behind_key(raw, b"events", bytes(sample.events))
    return Place(place.file, place.line + raw.count(b"\n", 0, start), place.offset + start)


def _behind_key(data: bytes, key: bytes, value: bytes) -> int:
    """Where a value begins that stands behind a key; an equal one earlier has equal text."""
    found = re.finditer(rb'"' + key + rb'"\s*:\s*', data)
    return next((match.end() for match in found if data.startswith(value, match.end())), 0)
