"""Rollouts of Agent Lightning: events of the gateway (v1) and spans of the tracers (v0.1 to v0.3).

    {event_type: "model_request" | "reward" | ..., rollout_id, attempt_id, timestamp, data}                    (event)
    {rollout_id, attempt_id, sequence_id, span_id, parent_id, name, attributes, start_time, end_time, ...}      (span)
    {rollout_id, input, is_train, metadata: {batch_idx, ...}, status: {last_attempt_id, ...}}              (rollout, v1)
    {rollout_id, input, mode, metadata: {data_id, ...}, status: "succeeded", resources_id, ...}          (rollout, v0.3)
    {rollout_id, attempt_id, sequence_id, status, ...}                                                   (attempt, v0.3)

one a line, or a list. A rollout is a trace, and only its last attempt is read: the `last_attempt_id` of the rollout's
record, or the attempt of the highest number, or else the one that is last by its times and sequence ids; where these
state no order, the one whose record comes last in a file, while two in two files are refused. Its group is the
`data_id` of the rollout's record, or its input within its `batch_idx`, under one `resources_id`, which names the
policy's version; without that record the rollout is a group of its own.

The last reward is the outcome, and an earlier one of its name an earlier statement of it. Earlier ones of other names,
and those that are linked to a model call, are rewards at their calls. A reward that the system filled in
(`source: "fallback"`) is none. `rollout_records` tells the last attempt and the group,
`requests` reads events, `traced` reads spans; `docs/formats/agent-lightning.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.agent_lightning.requests import Event, write_requests
from graphs.formats.agent_lightning.rollout_records import Attempts, RolloutGroup
from graphs.formats.agent_lightning.traced import TracedSpan, write_traced
from graphs.reading.decode import decode, decode_record, object_text
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import canonical
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source
from graphs.text import counted, excerpt
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_ROLLOUT = re.compile(rb'"rollout_id"\s*:\s*"')
_MORE = re.compile(rb'"attempt_id"\s*:\s*"|"is_train"\s*:\s*(?:true|false)|"mode"\s*:\s*"(?:train|val|test)"')

_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Metadata(msgspec.Struct):
    batch_idx: int | None = None
    data_id: str | None = None


class _Status(msgspec.Struct):
    last_attempt_id: str | None = None


class _Item(msgspec.Struct):
    rollout_id: _Id
    attempt_id: str | None = None
    event_type: str | None = None
    span_id: str | None = None
    is_train: bool | None = None
    input: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")
    mode: str | None = None
    resources_id: str | None = None
    sequence_id: int | None = None


class _Owner(msgspec.Struct):
    rollout_id: str


RECORDS = (Event, TracedSpan)

_OWNER = msgspec.json.Decoder(_Owner)
_ITEM = msgspec.json.Decoder(_Item)
_METADATA = msgspec.json.Decoder(_Metadata | None)
_STATUS = msgspec.json.Decoder(_Status | str | None)  # a word in v0.3


def sniff(head: bytes) -> bool:
    """Whether an event, a span or a rollout begins in the first bytes."""
    return _ROLLOUT.search(head) is not None and _MORE.search(head) is not None


@dataclasses.dataclass(slots=True)
class _Rollout:
    """What the log has of a rollout: its events and spans by attempt, in order, and what its records state."""

    place: Place
    events: dict[str, list[Document]] = dataclasses.field(default_factory=dict)
    spans: dict[str, list[Document]] = dataclasses.field(default_factory=dict)
    attempts: Attempts = dataclasses.field(default_factory=Attempts)
    group: RolloutGroup = dataclasses.field(default_factory=RolloutGroup)
    files: dict[str, bool] = dataclasses.field(default_factory=dict)  # each with whether it has an event or a span


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each rollout, over all files.

    Problem kinds, one rollout refused: those of `graphs.reading.json_problems`, "bad-value", "duplicate-span",
    "parent-cycle", "missing-parent", "unknown-item" (neither event, span nor rollout), "disagreeing-attempts"
    (times and sequence ids tell different last ones, or none, and they lie in two files), "unordered-events" (neither
    files nor times order the events), "disagreeing-groups" (records put it into different ones), "mixed-forms" (one
    attempt with model calls in events and spans, which would count twice), "no-events". Named while the rollout reads:
    "unknown-span". Alone: faults of items whose rollout is not known.
    """
    rollouts: dict[str, _Rollout] = {}
    refused: set[str] = set()  # rollouts whose problem has been yielded
    for source in sources:
        for document in documents(source):
            try:
                _take(document, rollouts)
            except TraceError as error:
                refused.add(error.problem.trace)
                yield error.problem
        source.release()
    for name in list(rollouts):
        rollout = rollouts.pop(name)
        if name in refused:
            continue
        try:
            yield _record(name, rollout)
        except TraceError as error:
            yield error.problem


def _take(document: Document, rollouts: dict[str, _Rollout]) -> None:
    """Take an item in."""
    raw, place = document
    try:
        item = decode_record(_ITEM, raw, file=place.file, line=place.line)
    except TraceError as error:  # of this rollout: a field `trace_id` names the trace of a tracer
        raise TraceError(dataclasses.replace(error.problem, trace=_rollout_of(raw))) from error
    rollout = rollouts.setdefault(item.rollout_id, _Rollout(place))
    is_act = item.event_type is not None or item.span_id is not None
    rollout.files[place.file] = is_act or rollout.files.get(place.file, False)
    attempt = item.attempt_id or ""
    if is_act:
        if item.event_type is None:
            rollout.spans.setdefault(attempt, []).append(document)
        else:
            rollout.events.setdefault(attempt, []).append(document)
        rollout.attempts.see(attempt, place)
    elif item.is_train is not None or bytes(item.input):
        file, line, trace = place.file, place.line, item.rollout_id
        status = decode(_STATUS, item.status, file=file, line=line, field="status", trace=trace)
        last = status.last_attempt_id if isinstance(status, _Status) else None
        if last:
            rollout.attempts.state(last, place)
        stated = object_text(item.metadata)
        about = decode(_METADATA, stated, file=file, line=line, field="metadata", trace=trace) or _Metadata()
        rollout.group.state(bytes(item.input), about.data_id, about.batch_idx, item.resources_id, place)
    elif item.attempt_id is not None and item.sequence_id is not None and bytes(item.status).startswith(b'"'):
        rollout.attempts.number(attempt, item.sequence_id, place)
    else:
        expected = "an event with an event_type, a span with a span_id, an attempt, or a rollout with an input"
        shown = excerpt(raw[:60])
        raise TraceError(Problem("unknown-item", place.file, place.line, "content", shown, expected, item.rollout_id))


def _rollout_of(raw: bytes) -> str:
    """The rollout of an item with a fault; "" where it states none."""
    try:
        return _OWNER.decode(raw).rollout_id
    except JSON_ERRORS:
        return ""


def _record(name: str, rollout: _Rollout) -> TraceRecord:
    attempt = rollout.attempts.last(rollout.events | rollout.spans, name)
    group = rollout.group.name(name)
    record = TraceRecord(name, group, *rollout.place, format="agent-lightning", sources=list(rollout.files))
    record.beside = {file: False for file, has_acts in rollout.files.items() if not has_acts}
    events, spans = _once(rollout.events.get(attempt, [])), rollout.spans.get(attempt, [])
    if events and spans:
        shown = f"{counted(len(events), 'event')} and {counted(len(spans), 'span')}"
        record.refuse("mixed-forms", "attempt_id", shown, "an attempt recorded as events or as spans")
    if spans:
        write_traced(record, spans)
    else:
        write_requests(record, events)
        if not record.ids:
            record.lack_events("events", [], "a request to a model")
    return record


def _once(events: list[Document]) -> list[Document]:
    """The events, each as often as the file that has it most often.

    An attempt may be exported in parts, or twice. Events have no ids, so only their content tells a copy. Two equal
    events of one file are two.
    """
    if len({place.file for _, place in events}) < 2:
        return events
    kept: Counter[bytes] = Counter()
    of_file: Counter[tuple[bytes, str]] = Counter()
    result = []
    for raw, place in events:
        content = hashlib.blake2b(canonical(raw), digest_size=16).digest()
        of_file[content, place.file] += 1
        if of_file[content, place.file] > kept[content]:
            kept[content] += 1
            result.append(Document(raw, place))
    return result
