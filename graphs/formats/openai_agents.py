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
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.faults import fault_of
from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.placed import nested_documents
from graphs.formats.common.span_tree import Kind, Span, add_span, kind_of, roots_of
from graphs.formats.common.team_writing import write_spans
from graphs.formats.common.trace_metadata import stated_metadata
from graphs.formats.common.traced import order_by_start
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_SNIFF = re.compile(rb'"object"\s*:\s*"trace(?:\.span)?"')

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Data(msgspec.Struct):
    type: str
    name: str | None = None
    from_agent: str | None = None
    to_agent: str | None = None
    triggered: bool | None = None


class _CallData(msgspec.Struct):
    usage: ChatUsage | None = None
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
    metadata: msgspec.Raw = msgspec.Raw()
    spans: msgspec.Raw = msgspec.Raw()
    traces: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()


RECORDS = (_Span, _Item)

_ITEM = msgspec.json.Decoder(_Item)
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
    **dict.fromkeys(("custom", "mcp_tools", "task", "turn"), Kind.OTHER),
    **dict.fromkeys(("speech", "speech_group", "transcription"), Kind.OTHER),
}
_NAMED = {"agent": "name", "function": "name", "handoff": "to_agent"}


def sniff(head: bytes) -> bool:
    """Whether an exported trace or span begins in the first bytes."""
    return _SNIFF.search(head) is not None


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trace id, over all files.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems`, "missing-field", "duplicate-span",
    "parent-cycle", "missing-parent", "no-events", "unordered-events" (neither files nor times order the spans). No
    trace refused: faults of an item whose trace is not known; "unknown-item", neither a trace nor a span.
    """
    log = _Log()
    for source in sources:
        for document in documents(source):
            yield from log.add(document)
        source.release()
    yield from log.records()


@dataclasses.dataclass(slots=True)
class _Trace:
    """What the files have of a trace."""

    place: Place
    name: str = ""
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    spans: dict[str, Span] = dataclasses.field(default_factory=dict)
    files: dict[str, bool] = dataclasses.field(default_factory=dict)  # each with whether it has a span


class _Log:
    """The traces, in the order in which they are met."""

    def __init__(self) -> None:
        self.traces: dict[str, _Trace] = {}
        self.refused: set[str] = set()  # traces whose problem has been yielded

    def add(self, document: Document) -> Iterator[Problem]:
        """Take in a value with all items inside it; what is wrong with them."""
        waiting = [(document, "")]  # items, each with the id of the trace that holds it
        while waiting:
            item, holder = waiting.pop()
            try:
                waiting += reversed(self._add(item))
            except TraceError as error:
                problem = dataclasses.replace(error.problem, trace=error.problem.trace or holder)
                self.refused.add(problem.trace)
                yield problem

    def _add(self, document: Document) -> list[tuple[Document, str]]:
        """Take in an item; the items inside it, each with the trace that holds it."""
        raw, place = document
        item = decode(_ITEM, raw, file=place.file, line=place.line)
        if item.object == "trace.span":
            self._add_span(document, item.trace_id or "")
            return []
        if item.object == "trace":
            if not item.id:
                expected, shown = "the id of the trace", excerpt(item.id)
                raise TraceError(Problem("missing-field", place.file, place.line, "id", shown, expected))
            trace = self._trace(item.id, place, is_span=False)
            trace.name = trace.name or item.workflow_name or ""
            trace.metadata = stated_metadata(item.metadata, item.workflow_name) | trace.metadata
            return [(span, item.id) for span in nested_documents(document, item.spans, "spans", item.id)]
        for field, elements in (("traces", item.traces), ("data", item.data)):
            if bytes(elements):
                return [(element, "") for element in nested_documents(document, elements, field)]
        shown = "absent" if item.object is None else excerpt(item.object)
        expected = '"trace" or "trace.span", or an object with traces or data'
        raise TraceError(Problem("unknown-item", place.file, place.line, "object", shown, expected))

    def _trace(self, name: str, place: Place, *, is_span: bool) -> _Trace:
        """The trace of this id, noted to have a part here: a span, or its own record."""
        trace = self.traces.get(name)
        if trace is None:
            trace = self.traces[name] = _Trace(place)
        trace.files[place.file] = is_span or trace.files.get(place.file, False)
        return trace

    def _add_span(self, document: Document, trace: str) -> None:
        raw, place = document
        where: dict[str, Any] = {"file": place.file, "line": place.line, "trace": trace}
        exported = decode_record(_SPAN, raw, **where)
        data = decode(_DATA, exported.span_data, field="span_data", **where)
        (kind, unknown), name_field = kind_of(data.type, _KINDS), _NAMED.get(data.type)
        name = (data.to_agent if kind is Kind.HANDOFF else data.name) or ""
        if name_field and not name:
            field, expected = f"span_data.{name_field}", "a non-empty string"
            raise TraceError(Problem("missing-field", place.file, place.line, field, "absent", expected, trace))
        span = Span(exported.id, exported.parent_id or "", kind, place, name=name, target=name, unknown=unknown)
        span.start, span.end = seconds(exported.started_at), seconds(exported.ended_at)
        span.failed = bool(data.triggered) if kind is Kind.GUARD else bytes(exported.error) != b"null"
        span.fault = fault_of(exported.error)
        if kind is Kind.CALL:
            call = decode(_CALL_DATA, exported.span_data, field="span_data", **where)
            span.model, span.columns = call.model or "", (call.usage or ChatUsage()).columns
        add_span(self._trace(trace, place, is_span=True).spans, span, "id", trace)

    def records(self) -> Iterator[TraceRecord | Problem]:
        """The traces; each is forgotten once it has been handed out."""
        beside = roots_of(trace.spans.values() for trace in self.traces.values())
        for name in list(self.traces):
            trace = self.traces.pop(name)
            if name in self.refused:
                continue
            record = TraceRecord(name, name, *trace.place, format="openai-agents", sources=list(trace.files))
            record.beside = {file: False for file, has_spans in trace.files.items() if not has_spans}
            record.metadata = trace.metadata
            try:
                spans = order_by_start(trace.spans.values(), name, "started_at")
                write_spans(record, spans, trace.name or "workflow", beside=beside)
            except TraceError as error:
                yield error.problem
            else:
                yield record
