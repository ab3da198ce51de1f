"""Traces of the OpenAI Agents SDK, as its processors export them.

    {object: "trace", id, workflow_name, ...}
    {object: "trace.span", id, trace_id, parent_id, started_at, ended_at, error, span_data: {type, ...}}

in any of the wrappings seen: one item a line, a list of items, `{"data": [items]}` (what the SDK sends),
`{"traces": [{..., "spans": [...]}]}`. A trace id is a trace, wherever its spans stand. It has no task, so it is a group
of its own, and no outcome. `group_id` names a conversation, which is no task.

`generation` and `response` spans are the model calls; the `task` and `turn` spans around them repeat their usage, and
it is not read there. `docs/formats/openai-agents.md` has the whole mapping; `span_tree` has the rules for trees.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.foreign_parents import foreign_parents
from graphs.formats.common.lost_lines import LostLines, owners_of
from graphs.formats.common.order_of_time import Moment, order_of_time
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.common.team_writing import write_spans
from graphs.reading.decode import decode, decode_envelope, decode_record
from graphs.reading.documents import Document, Place, Places
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["read", "sniff"]

_SNIFF = re.compile(rb'"object"\s*:\s*"trace(?:\.span)?"')

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Usage(msgspec.Struct):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None


class _Data(msgspec.Struct):
    type: str
    name: str | None = None
    from_agent: str | None = None
    to_agent: str | None = None
    triggered: bool | None = None


class _CallData(msgspec.Struct):
    usage: _Usage | None = None
    model: str | None = None


class _Span(msgspec.Struct):
    id: _Id
    trace_id: _Id
    span_data: msgspec.Raw
    parent_id: str | None = None
    started_at: _Time | None = None
    ended_at: _Time | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Item(msgspec.Struct):
    object: str | None = None
    id: str | None = None
    trace_id: str | None = None
    workflow_name: str | None = None
    spans: msgspec.Raw = msgspec.Raw()
    traces: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()


_ITEM = msgspec.json.Decoder(_Item)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_SPAN = msgspec.json.Decoder(_Span)
_DATA = msgspec.json.Decoder(_Data)
_CALL_DATA = msgspec.json.Decoder(_CallData)

_KINDS = {
    "agent": Kind.AGENT,
    "generation": Kind.CALL,
    "response": Kind.CALL,
    "function": Kind.TOOL,
    "handoff": Kind.HANDOFF,
    "guardrail": Kind.GUARD,
}
_NAMED = {"agent": "name", "function": "name", "handoff": "to_agent"}


def sniff(head: bytes) -> bool:
    """Whether an exported trace or span begins in the first bytes."""
    return _SNIFF.search(head) is not None


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trace id, over all files.

    Problem kinds: "unreadable", those of `graphs.reading.json_problems`, "missing-field", "duplicate-span",
    "parent-cycle", "missing-parent", "no-events", "unordered-events" (neither files nor times order the spans),
    "lost-row" (a line that cannot be read is part of it, or may be), each refusing one trace; a fault in an item whose
    trace is unknown stands alone. "unknown-item": an object that is neither a trace nor a span.
    """
    log = _Log()
    for source in sources:
        for document in log.lost.documents(source):
            yield from [document] if isinstance(document, Problem) else log.add(document)
        source.release()
    yield from log.records()


class _Log:
    """Spans by trace, in the order in which they come."""

    def __init__(self) -> None:
        self.spans: dict[str, list[Span]] = {}
        self.names: dict[str, str] = {}
        self.starts: dict[str, Place] = {}
        self.spoiled: dict[str, Problem] = {}
        self.lost = LostLines(
            "trace_id", ("id", "parent_id"), "spans", first=("object", "id"), pages=("data", "traces")
        )

    def add(self, document: Document) -> Iterator[Problem]:
        """Take in an item and all those inside it."""
        waiting = [(document, "")]
        while waiting:
            (raw, place), holder = waiting.pop()
            try:
                inner = self._add(raw, place, holder)
            except TraceError as error:
                problem = error.problem
                problem = problem if problem.trace else dataclasses.replace(problem, trace=holder)
                if problem.trace:
                    self.spans.setdefault(problem.trace, [])
                    self.starts.setdefault(problem.trace, place)
                    self.spoiled.setdefault(problem.trace, problem)
                else:
                    yield problem
                    self.lost.add_faulty(problem, raw)
                continue
            waiting += reversed(inner)

    def _add(self, raw: bytes, place: Place, holder: str) -> list[tuple[Document, str]]:
        """Take an item in; the items inside it, each with the trace that holds it among all its spans, or ""."""
        item = decode(_ITEM, raw, file=place.file, line=place.line)
        if item.object == "trace.span":
            if not holder:
                self.lost.part(item.trace_id or "")
            self._add_span(raw, place, item.trace_id or "")
            return []
        decode_envelope(_ITEM, raw, file=place.file, line=place.line)
        if item.object == "trace":
            if not item.id:
                value_text = excerpt(item.id)
                raise TraceError(
                    Problem("missing-field", place.file, place.line, "id", value_text, "the id of the trace")
                )
            self.spans.setdefault(item.id, [])
            self.starts.setdefault(item.id, place)
            self.names.setdefault(item.id, item.workflow_name or "")
            spans = _elements(raw, item.spans, "spans", place, item.id)
            if not spans:
                self.lost.part(item.id)
            return [(span, item.id) for span in spans]
        for field, held in (("traces", item.traces), ("data", item.data)):
            if bytes(held):
                return [(element, "") for element in _elements(raw, held, field, place, "")]
        value_text = "absent" if item.object is None else excerpt(item.object)
        expected = '"trace" or "trace.span", or an object with traces or data'
        raise TraceError(Problem("unknown-item", place.file, place.line, "object", value_text, expected))

    def _add_span(self, raw: bytes, place: Place, trace: str) -> None:
        file, line = place.file, place.line
        span = decode_record(_SPAN, raw, file=file, line=line, trace=trace)
        data = decode(_DATA, span.span_data, file=file, line=line, at="span_data", trace=trace)
        kind = _KINDS.get(data.type, Kind.OTHER)
        needed = _NAMED.get(data.type)
        name = (data.to_agent if data.type == "handoff" else data.name) or ""
        if needed and not name:
            field, expected = f"span_data.{needed}", "a non-empty string"
            raise TraceError(Problem("missing-field", file, line, field, "absent", expected, trace))
        event_span = Span(span.id, span.parent_id or "", kind, place, name=name, target=name)
        event_span.start, event_span.end = seconds(span.started_at), seconds(span.ended_at)
        event_span.failed = bool(data.triggered) if kind is Kind.GUARD else bytes(span.error) != b"null"
        if kind is Kind.CALL:
            call = decode(_CALL_DATA, span.span_data, file=file, line=line, at="span_data", trace=trace)
            usage = call.usage or _Usage()
            event_span.model = call.model or ""
            event_span.columns["tokens"] = _first(usage.output_tokens, usage.completion_tokens)
            event_span.columns["input_tokens"] = _first(usage.input_tokens, usage.prompt_tokens)
        self.spans.setdefault(trace, []).append(event_span)
        self.starts.setdefault(trace, place)

    def records(self) -> Iterator[TraceRecord | Problem]:
        """The traces, in the order in which they were met; each is forgotten once it has been handed out."""
        if self.lost.is_open:
            self.lost.settle(owners_of(self.spans))
        torn = foreign_parents(self.spans, "parent_id")
        for trace in list(self.spans):
            spans, start = self.spans.pop(trace), self.starts[trace]
            problem = self.spoiled.get(trace) or self.lost.of(trace) or torn.get(trace)
            if problem is not None:
                yield problem
                continue
            record = TraceRecord(trace, trace, start.file, start.line, start.offset, format="openai-agents")
            try:
                write_spans(record, _in_order_of_time(spans, trace), self.names.get(trace) or "workflow")
            except TraceError as error:
                yield error.problem
            else:
                yield record


def _in_order_of_time(spans: list[Span], trace: str) -> list[Span]:
    """By `started_at`, for files of one trace may be read in any order; as the log has them where one states none.

    Raises:
      TraceError: "unordered-events", one states none, and the others say that the files are in another order.
    """
    moments = [Moment(None if math.isnan(span.start) else span.start, span.place) for span in spans]
    return [spans[position] for position in order_of_time(moments, trace, "started_at")]


def _elements(raw: bytes, held: msgspec.Raw, field: str, place: Place, trace: str) -> list[Document]:
    """The elements of a list inside an item; none where the list is absent or null."""
    if bytes(held) in (b"", b"null"):
        return []
    elements = decode(_LIST, held, file=place.file, line=place.line, at=field, trace=trace)
    start = raw.find(bytes(held))  # where equal text stands earlier, so does an equal list
    places = Places(raw, start, place.line + raw.count(b"\n", 0, start))
    located = ((element, *places.of(element)) for element in elements)
    return [Document(bytes(e), Place(place.file, line, place.offset + offset)) for e, line, offset in located]


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
