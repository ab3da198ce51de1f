"""An observation of Langfuse as a span: its kind, its agent or tool, its times and tokens."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import msgspec

from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.langfuse_agents import TOOL_NODE, note_agent
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT

__all__ = ["span_of"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]

_KINDS = {
    "AGENT": Kind.AGENT,
    "GENERATION": Kind.CALL,
    "TOOL": Kind.TOOL,
    "RETRIEVER": Kind.TOOL,
    "EMBEDDING": Kind.TOOL,
    "GUARDRAIL": Kind.GUARD,
    "EVALUATOR": Kind.GUARD,
}


class _Usage(msgspec.Struct):
    input: _Count | None = None
    output: _Count | None = None


class _Metadata(msgspec.Struct):
    langgraph_node: str | None = None
    attributes: dict[str, Any] | str | None = None


class _Observation(msgspec.Struct):
    id: _Id
    trace: _Id = msgspec.field(name="traceId")
    type: str
    name: str | None = None
    parent: str | None = msgspec.field(default=None, name="parentObservationId")
    start: datetime.datetime | None = msgspec.field(default=None, name="startTime")
    end: datetime.datetime | None = msgspec.field(default=None, name="endTime")
    level: str | None = None
    model: str | None = None
    usage: _Usage | None = msgspec.field(default=None, name="usageDetails")
    metadata: msgspec.Raw = msgspec.Raw(b"null")


_OBSERVATION = msgspec.json.Decoder(_Observation)
_METADATA = msgspec.json.Decoder(_Metadata)


def span_of(document: Document, trace: str) -> Span:
    """The span that an observation of a trace is.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    raw, place = document
    where: dict[str, Any] = {"file": place.file, "line": place.line}
    one = decode_record(_OBSERVATION, raw, trace=trace, **where)
    kind = _KINDS.get(one.type, Kind.OTHER)
    metadata = _Metadata()
    if bytes(one.metadata).startswith(b"{"):
        metadata = decode(_METADATA, one.metadata, at="metadata", trace=trace, **where)
    span = Span(one.id, one.parent or "", kind, place, name=one.name or "")
    node = metadata.langgraph_node
    if kind is Kind.OTHER and node and node == one.name:
        span.kind, span.instance = Kind.AGENT, f"{span.parent}:{node}"
    elif kind is Kind.OTHER and node == TOOL_NODE:
        span.kind, span.target = Kind.TOOL, TOOL_NODE
    elif kind is Kind.AGENT and not span.name:
        span.name = "agent"
    given = metadata.attributes
    if kind is Kind.AGENT and isinstance(given, dict):
        note_agent(span, given)
    span.start, span.end = seconds(one.start), seconds(one.end)
    span.failed = one.level == "ERROR"
    if kind is Kind.CALL:
        usage = one.usage or _Usage()
        span.columns = {"tokens": usage.output, "input_tokens": usage.input}
        span.model = one.model or ""
    return span
