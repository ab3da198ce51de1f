"""Logs of Inspect AI: `.json`, one object, and `.eval`, a zip with one JSON file a sample.

A sample is a trace, "STEM/ID/EPOCH"; its group is "TASK/ID": the epochs of one sample, and the same sample in the logs
of other runs of the task. Each scorer is a reward channel. `docs/formats/inspect-ai.md` has the whole mapping.

`archive` opens zips, `sample_fields` has the structs, `events` makes spans of events, `outcomes` numbers of scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.earlier_outcomes import place_earlier
from graphs.formats.common.run_digest import run_digest
from graphs.formats.common.team_writing import write_spans
from graphs.formats.inspect_ai.archive import Archive
from graphs.formats.inspect_ai.events import Verdict, spans_of
from graphs.formats.inspect_ai.outcomes import channels
from graphs.formats.inspect_ai.sample_fields import (
    DECODE_SAMPLE,
    Header,
    Log,
    Sample,
    Score,
    Withdrawn,
    events_of,
    scores_of,
)
from graphs.reading.decode import content, decode_record
from graphs.reading.documents import Place
from graphs.reading.files import Tasks, canonical, short_names
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.keys import opening
from graphs.reading.lists_in_objects import object_with_list, without_list
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.part import Sole
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "header_of", "read", "samples_of", "sniff"]

_ZIP = b"PK\x03\x04"
_LOCAL_HEADER = 30  # bytes before the name of a zip's first member
_MEMBER = re.compile(rb"(?:_journal/|samples/|header\.json|summaries\.json)")
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/.+\.json")

RECORDS = (Log, Sample)

_HEADER = msgspec.json.Decoder(Header)
_LOG = msgspec.json.Decoder(Log)
_WITHDRAWN = msgspec.json.Decoder(Withdrawn)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a log of Inspect, or as a zip with a member of one."""
    if head.startswith(_ZIP):
        return _MEMBER.match(head, _LOCAL_HEADER) is not None
    return {"version", "status", "eval"} <= set(opening(head).keys)


class _Item(NamedTuple):
    """A sample as JSON with its log's header, its place, and its field or its name in the archive."""

    log: Header
    raw: bytes
    place: Place
    field: str


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each sample.

    Problem kinds, of one sample: those of `graphs.reading.json_problems`, "missing-field", "ambiguous-id", "bad-value",
    "bad-zip", "zip-bomb", "repeated-member"; of its spans "duplicate-span", "parent-cycle", "missing-parent". Of a log:
    "unreadable", "bad-zip", "missing-header" (of an archive), "empty-trace" (without samples). Named while the sample
    reads without it: "bad-score", a score that is no number.
    """
    tasks, names = Tasks(), short_names(sources, ".eval")
    for source in sources:
        is_empty, all_withdrawn = True, None
        try:
            for item in _items(source):
                is_empty = False
                if isinstance(item, Problem):
                    yield item
                    continue
                if all_withdrawn is None:
                    all_withdrawn = item.log.invalidated and not _says_which(source)
                try:
                    yield from _read_sample(item, names[source.name], tasks, all_withdrawn)
                except TraceError as error:
                    yield error.problem
            if is_empty:
                yield Problem("empty-trace", source.name, 0, "samples", "none", "at least one sample")
        except TraceError as error:
            yield error.problem
        source.release()


def header_of(source: Source) -> bytes:
    """A log without its samples as JSON, of an archive its header.

    Raises:
      TraceError: it cannot be read.
    """
    data = content(source)
    if not data.startswith(_ZIP):
        return without_list(data, "samples")
    archive = Archive(source)
    return archive.read(_header_name(archive, source))


def samples_of(source: Source) -> Iterator[bytes | Problem]:
    """The samples of a log as JSON, in their order.

    Raises:
      TraceError: it cannot be read.
    """
    for item in _items(source):
        yield item if isinstance(item, Problem) else item.raw


def _items(source: Source) -> Iterator[_Item | Problem]:
    data = content(source)
    return _in_archive(source) if data.startswith(_ZIP) else _in_json(source)


def _in_json(source: Source) -> Iterator[_Item | Problem]:
    log, samples = object_with_list(source, _LOG, "samples")
    for index, sample in enumerate(samples):
        yield sample if isinstance(sample, Problem) else _Item(log, *sample, f"samples[{index}]")


def _in_archive(source: Source) -> Iterator[_Item | Problem]:
    archive = Archive(source)
    header = _header_name(archive, source)
    log = decode_record(_HEADER, archive.read(header), file=source.name, line=0, field=header)
    nowhere = Place(source.name, 0, -1)
    for name in sorted(archive.members):
        if _SAMPLE.fullmatch(name):
            try:
                yield _Item(log, archive.read(name), nowhere, name)
            except TraceError as error:
                yield error.problem
    # Samples are found by their names, so a name that is damaged in the directory would hide one.
    for name, local_name in archive.renamed():
        if _SAMPLE.fullmatch(local_name) and not _SAMPLE.fullmatch(name):
            expected = "one name of a member, in the archive's directory and before its content: the sample is left out"
            yield Problem("bad-zip", source.name, 0, local_name, excerpt(name), expected)


def _header_name(archive: Archive, source: Source) -> str:
    header = next((name for name in _HEADERS if name in archive.members), None)
    if header is None:
        expected = "one of " + ", ".join(_HEADERS)
        raise TraceError(Problem("missing-header", source.name, 0, "content", excerpt(list(archive.members)), expected))
    return header


def _says_which(source: Source) -> bool:
    """Whether a log with invalidated samples names at least one of them.

    Raises:
      TraceError: it cannot be read.
    """
    for item in _items(source):
        try:
            if not isinstance(item, Problem) and bytes(_WITHDRAWN.decode(item.raw).invalidation) != b"null":
                return True
        except JSON_ERRORS:  # the sample is refused when it is read
            continue
    return False


def _read_sample(item: _Item, name: str, tasks: Tasks, all_withdrawn: bool) -> Iterator[TraceRecord | Problem]:
    log, raw, place, field = item
    sample = decode_record(DECODE_SAMPLE, raw, file=place.file, line=place.line, field=field)
    trace, group = f"{name}/{sample.id}/{sample.epoch}", f"{log.eval.task}/{sample.id}"
    scores = scores_of(sample, log, place, field, trace)
    text = bytes(sample.input)
    if text.startswith(b'"'):  # a list of messages has ids that differ from run to run
        group = tasks.group(group, canonical(text), f"{name}/{sample.id}")
    record = TraceRecord(trace, group, place.file, place.line, max(place.offset, 0), format="inspect-ai")
    tasks.ids.check(record, f"{field}.id", sample.id)
    record.model, record.system = log.eval.model, log.eval.solver or ""
    record.error = sample.error.message or "an error" if sample.error is not None else ""
    if sample.invalidation is not None:
        record.invalidated = f"invalidated: {sample.invalidation}"
    elif all_withdrawn:
        record.invalidated = "a log with invalidated samples that does not say which"
    events = events_of(sample, place, field, trace)
    spans, verdicts = spans_of(events, _place_of(raw, events, place), trace)
    written = write_spans(record, spans, "main", ("id", "parent_id"))
    record.ended_by("limit" if bytes(sample.limit) != b"null" else None)
    if verdicts:
        _place_verdicts(record, verdicts, written.opened, list(scores))
    record.run = _run(sample, log, record.times)
    for channel, value, expected in _set_rewards(record, scores):
        yield Problem("bad-score", place.file, place.line, f"{field}.scores.{channel}", value, expected, trace)
    yield record


def _run(sample: Sample, log: Header, times: list[float]) -> str:
    """What tells a sample in all logs: its `uuid`, which a retry keeps, or in older logs the times of its events.

    "" without either, since two runs may have equal answers.
    """
    stated = (log.eval.task, log.eval.model, log.eval.solver, str(sample.id), sample.epoch)
    if isinstance(sample.uuid, str) and sample.uuid:
        return run_digest(*stated, sample.uuid)
    return run_digest(*stated, times) if any(math.isfinite(time) for time in times) else ""


def _set_rewards(record: TraceRecord, scores: dict[str, Score]) -> Iterator[tuple[str, str, str]]:
    """Write the reward channels; yields channel, value and expectation of each score that is no reward."""
    stated: set[str] = set()
    for scorer, score in scores.items():
        for channel, amount in channels(scorer, score.value).items():
            if channel in stated:  # by scorers such as "a.b", and "a" with the part "b"
                record.rewards.pop(channel, None)
                yield channel, "stated twice", "one score of a name; the channel is left out"
                continue
            stated.add(channel)
            if amount is None:
                yield channel, excerpt(score.value), "C, P, I, N, yes, no, true, false, or numbers"
            else:
                record.rewards[channel] = amount
    record.sole = Sole(tuple(sorted(scores)), of_file=True)  # each evaluation has its own scorers


def _place_verdicts(record: TraceRecord, verdicts: list[Verdict], opened: dict[str, int], scorers: list[str]) -> None:
    """Write intermediate scores, which the task's own scorers give, as earlier statements of the outcome.

    Of several scorers the log does not say whose score is the outcome, so theirs are named and passed over.
    """
    record.earlier_outcomes = " and ".join(scorers) or "score"
    positions = opened | {"": -1}  # a span without an event is of a branch's repeated start
    of_outcome = [verdict for verdict in verdicts if len(scorers) == 1 and verdict.scorer in ("", *scorers)]
    statements = [(positions[v.after], v.amount) for v in of_outcome if v.after in positions]
    place_earlier(record, record.earlier_outcomes, statements)


def _place_of(raw: bytes, events: msgspec.Raw, place: Place) -> Place:
    """Where the list of events begins."""
    if place.offset < 0:
        return place
    start = _behind_key(raw, b"events", bytes(events))
    return Place(place.file, place.line + raw.count(b"\n", 0, start), place.offset + start)


def _behind_key(data: bytes, key: bytes, value: bytes) -> int:
    """Where the value of a key begins. An equal value of an equal key before it has the same text."""
    matches = re.finditer(rb'"' + key + rb'"\s*:\s*', data)
    return next((match.end() for match in matches if data.startswith(value, match.end())), 0)
