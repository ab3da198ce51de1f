"""Logs of Inspect AI: `.json`, one object, and `.eval`, a zip with one JSON file a sample.

A sample is a trace, "STEM/ID/EPOCH"; its group is "TASK/ID": the epochs of one sample, and the same sample in the logs
of other runs of the task. Where two logs give one sample two different input texts, the later one's group is "STEM/ID":
tasks that differ are never compared.

Rewards. Each scorer is a channel of its name, in parts NAME.KEY where its score is a dict or a list. It is the outcome,
`team`, too where it is the only scorer and its score is one number; which of several is meant, the user says.

`docs/formats/inspect-ai.md` has the whole mapping. `archive` opens zips, `events` makes spans, `scores` numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.team_writing import write_spans
from graphs.formats.inspect_ai.archive import Archive
from graphs.formats.inspect_ai.events import spans_of
from graphs.formats.inspect_ai.outcomes import channels
from graphs.formats.inspect_ai.repeated_samples import Item, key_of, outcome_of, runs_of
from graphs.formats.inspect_ai.sample_fields import DECODE_SAMPLE, Header, Log, events_of, scores_of
from graphs.reading.decode import content, decode, decode_envelope, decode_record
from graphs.reading.documents import Place, Places
from graphs.reading.files import Tasks, canonical, short_names
from graphs.reading.keys import opening
from graphs.reading.repeated_runs import RepeatedRuns, Run
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["header_of", "read", "samples_of", "sniff"]

_ZIP = b"PK\x03\x04"
_MEMBER = re.compile(rb"(?:_journal/|samples/|header\.json|summaries\.json)")
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/.+\.json")


_HEADER = msgspec.json.Decoder(Header)
_LOG = msgspec.json.Decoder(Log)
_SAMPLES = msgspec.json.Decoder(list[msgspec.Raw] | None)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a log of Inspect, or as a zip with a member of one."""
    if head.startswith(_ZIP):
        return _MEMBER.match(head, 30) is not None
    return {"version", "status", "eval"} <= set(opening(head).keys)


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each sample; one that is not as expected is a problem, and the others read.

    Problem kinds: those of `graphs.reading.json_problems`, "unreadable", "bad-zip", "zip-bomb",
    "repeated-member"; "missing-header" (an archive without); "missing-field"; of the spans "duplicate-span",
    "parent-cycle", "missing-parent"; "ambiguous-id"; "empty-trace" (a log without samples). Named while the sample
    reads without it: "bad-score", a score that is no number. Of a sample that several logs
    have by its `uuid`, or without one by its whole content: "repeated-run", it is read from another log;
    "disagreeing-rewards", two state different scores.
    """
    tasks, names = Tasks(), short_names(sources, ".eval")
    runs = runs_of(sources, _items)
    for source in sources:
        try:
            count = 0
            for header, raw, place, at in _items(source):
                count += 1
                if isinstance(raw, bytes):
                    yield from _read_sample(names[source.name], header, raw, place, at, tasks, runs)
                else:
                    yield raw
            if not count:
                yield Problem("empty-trace", source.name, 0, "samples", "none", "at least one sample")
        except TraceError as error:
            yield error.problem
        source.release()


def header_of(source: Source) -> bytes:
    """A log as JSON, of an archive its header.

    Raises:
      TraceError: it cannot be read.
    """
    data = content(source)
    if not data.startswith(_ZIP):
        return data
    archive = Archive(source)
    return archive.read(_header_name(archive, source))


def samples_of(source: Source) -> Iterator[bytes | Problem]:
    """The samples of a log as JSON, in their order.

    Raises:
      TraceError: it cannot be read.
    """
    for _, raw, _, _ in _items(source):
        yield raw


def _items(source: Source) -> Iterator[Item]:
    data = content(source)
    return _in_archive(source) if data.startswith(_ZIP) else _in_json(source, data)


def _in_json(source: Source, data: bytes) -> Iterator[Item]:
    log = decode_envelope(_LOG, data, file=source.name, line=1)
    start = _behind_key(data, b"samples", bytes(log.samples))
    places = Places(data, start, 1 + data.count(b"\n", 0, start))
    for index, raw in enumerate(decode(_SAMPLES, log.samples, file=source.name, line=1, at="samples") or []):
        yield log, bytes(raw), Place(source.name, *places.of(raw)), f"samples[{index}]"


def _in_archive(source: Source) -> Iterator[Item]:
    archive = Archive(source)
    header = _header_name(archive, source)
    log = decode_record(_HEADER, archive.read(header), file=source.name, line=0, at=header)
    nowhere = Place(source.name, 0, -1)
    for name in sorted(archive.members):
        if _SAMPLE.fullmatch(name):
            try:
                yield log, archive.read(name), nowhere, name
            except TraceError as error:
                yield log, error.problem, nowhere, name
    for name, own in archive.renamed():
        if _SAMPLE.fullmatch(own) and not _SAMPLE.fullmatch(name):  # else it was read above, or is no sample
            expected = "one name of a member, in the archive's directory and before its content: the sample is left out"
            yield log, Problem("bad-zip", source.name, 0, own, excerpt(name), expected), nowhere, own


def _header_name(archive: Archive, source: Source) -> str:
    header = next((name for name in _HEADERS if name in archive.members), None)
    if header is None:
        expected = "one of " + ", ".join(_HEADERS)
        raise TraceError(Problem("missing-header", source.name, 0, "content", excerpt(list(archive.members)), expected))
    return header


def _read_sample(
    name: str, log: Header, raw: bytes, place: Place, at: str, tasks: Tasks, runs: RepeatedRuns
) -> Iterator[TraceRecord | Problem]:
    file = place.file
    try:
        sample = decode_record(DECODE_SAMPLE, raw, file=file, line=place.line, at=at)
        trace, group = f"{name}/{sample.id}/{sample.epoch}", f"{log.eval.task}/{sample.id}"
        scores = scores_of(sample, log, place, at, trace)
        key = key_of(sample, log, raw) if runs else None
        if key is not None:  # before the sample can say what the text of its task is
            field = f"{at}.uuid" if sample.uuid else at
            repeated = runs.problem(key, Run(outcome_of(scores), (), file), field, place.line, trace)
            if repeated is not None:
                raise TraceError(repeated)
        text = bytes(sample.input)
        if text.startswith(b'"'):  # a list of messages bears ids that differ from run to run
            group = tasks.group(group, canonical(text), f"{name}/{sample.id}")
        record = TraceRecord(trace, group, file, place.line, max(place.offset, 0), format="inspect-ai")
        tasks.ids.check(record, f"{at}.id", sample.id)
        record.model, record.system = log.eval.model, log.eval.solver or ""
        events = events_of(sample, place, at, trace)
        write_spans(record, spans_of(events, _place_of(raw, events, place), trace), "main", ("id", "parent_id"))
    except TraceError as error:
        yield error.problem
        return
    stated: set[str] = set()
    for scorer, score in scores.items():
        for channel, amount in channels(scorer, score.value).items():
            if channel in stated:  # scorers "a.b", and "b" of "a"
                record.rewards.pop(channel, None)
                expected = "one score of a name; the channel is left out"
                yield Problem("bad-score", file, place.line, f"{at}.scores.{channel}", "stated twice", expected, trace)
                continue
            stated.add(channel)
            if amount is None:
                value, expected = excerpt(score.value), "C, P, I, N, yes, no, true, false, or numbers"
                yield Problem("bad-score", file, place.line, f"{at}.scores.{channel}", value, expected, trace)
            else:
                record.rewards[channel] = amount
    if len(scores) == 1:
        only = next(iter(scores))
        if only in record.rewards:
            record.rewards["team"] = record.rewards[only]
    yield record


def _place_of(raw: bytes, events: msgspec.Raw, place: Place) -> Place:
    """Where the list of events begins."""
    if place.offset < 0:
        return place
    start = _behind_key(raw, b"events", bytes(events))
    return Place(place.file, place.line + raw.count(b"\n", 0, start), place.offset + start)


def _behind_key(data: bytes, key: bytes, value: bytes) -> int:
    """Where a value begins that stands behind a key; an equal one earlier has equal text."""
    matches = re.finditer(rb'"' + key + rb'"\s*:\s*', data)
    return next((match.end() for match in matches if data.startswith(value, match.end())), 0)
