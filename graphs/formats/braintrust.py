"""Spans of Braintrust: rows of a project's logs or of an experiment, one a line, a list, or a page of its API.

    {id, span_id, root_span_id, span_parents: [ID], span_attributes: {name, type, exec_counter}, error,
     scores: {NAME: NUMBER}, input, origin: {id}, metadata: {agent_name, handoffs, to_agent, model},
     metrics: {start, end, prompt_tokens, completion_tokens, estimated_cost}}

A root span is a trace. That of an experiment is one trial: its group is the row, by `origin` or by the input. Scores of
the root, or of a scorer below it, are channels.

Braintrust has no agents; its integrations name them. A span is an agent if its metadata has `agent_name` or, as those
of the OpenAI Agents SDK, `handoffs`. A span of the agent that it lies in is a step of it. Metadata with `to_agent` is
a hand-over. Where no span states an agent, the trace has one.

Siblings are in the order of their starts. Usage rolls up, so it is read from spans of type `llm` alone.
`docs/formats/braintrust.md` has the whole mapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.faults import fault_of
from graphs.formats.common.graph_nodes import OfNode, asking_nodes, keep_agents, node_of
from graphs.formats.common.input_tokens import first_count, read_counts
from graphs.formats.common.money import stated_money
from graphs.formats.common.placed import nested_documents
from graphs.formats.common.run_digest import run_digest
from graphs.formats.common.scores import Score, place_scores
from graphs.formats.common.span_tree import Kind, Roots, Span, kind_of, roots_of
from graphs.formats.common.stop_reasons import stop_reason
from graphs.formats.common.team_writing import Written, write_spans
from graphs.formats.common.traced import Traced, order_by_start
from graphs.reading.decode import decode, decode_record, object_text
from graphs.reading.documents import Document, Place, documents
from graphs.reading.keys import has_key
from graphs.reading.source import Source
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_KEYS = (b'"root_span_id"', b'"span_id"', b'"span_attributes"')

_Id = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


class _Attributes(msgspec.Struct):
    name: str | None = None
    type: str | None = None
    purpose: str | None = None
    exec_counter: int | None = None


class _Metrics(msgspec.Struct):
    start: float | None = None
    end: float | None = None
    prompt_tokens: _Count | None = None
    prompt_cached_tokens: _Count | None = None
    prompt_cache_creation_tokens: _Count | None = None
    prompt_cache_write_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    estimated_cost: Any = None


class _Metadata(msgspec.Struct):
    """What integrations state. Users have the same object for their own, so a value of another type states nothing."""

    agent_name: Any = None
    to_agent: Any = None
    model: Any = None
    handoffs: msgspec.Raw = msgspec.Raw()
    triggered: Any = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")  # of LangChain's runs

    def __post_init__(self) -> None:
        for name in ("agent_name", "to_agent", "model"):
            if not isinstance(getattr(self, name), str):
                setattr(self, name, "")


class _Origin(msgspec.Struct):
    id: str | None = None


class _Row(msgspec.Struct):
    id: str
    span_id: _Id
    root_span_id: _Id
    span_attributes: msgspec.Raw
    span_parents: list[str] | None = None
    metrics: msgspec.Raw = msgspec.Raw(b"null")
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    scores: msgspec.Raw = msgspec.Raw(b"null")
    origin: msgspec.Raw = msgspec.Raw(b"null")
    input: msgspec.Raw = msgspec.Raw(b"null")
    output: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Page(msgspec.Struct):
    events: msgspec.Raw = msgspec.Raw(b"null")
    data: msgspec.Raw = msgspec.Raw(b"null")


RECORDS = (_Row,)

_ROW = msgspec.json.Decoder(_Row)
_PAGE = msgspec.json.Decoder(_Page)
_ATTRIBUTES = msgspec.json.Decoder(_Attributes | None)
_METRICS = msgspec.json.Decoder(_Metrics | None)
_METADATA = msgspec.json.Decoder(_Metadata)
_OF_RUN = msgspec.json.Decoder(OfNode)
_ORIGIN = msgspec.json.Decoder(_Origin | None)
_SCORES = msgspec.json.Decoder(dict[str, float | None] | None)
_VALUE = msgspec.json.Decoder()

_KINDS = {"llm": Kind.CALL, "tool": Kind.TOOL, "score": Kind.JUDGE, "classifier": Kind.JUDGE} | dict.fromkeys(
    ("function", "eval", "task", "automation", "facet", "preprocessor", "review", "log", ""), Kind.OTHER
)


class _Stated(msgspec.Struct):
    """What a row states beside its span."""

    counter: int
    scores: dict[str, float]
    group: str = ""


def sniff(head: bytes) -> bool:
    """Whether the first bytes begin with a span of Braintrust."""
    return all(key in head for key in _KEYS)


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each root span, over all files.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems`, "missing-field", "duplicate-span",
    "parent-cycle", "missing-parent", "no-events". Named while the trace reads: "unknown-span".
    """
    traces: dict[str, Traced[_Stated]] = {}
    refused: set[str] = set()
    for source in sources:
        for document in documents(source):
            try:
                for raw, place in _rows(document):
                    row = decode_record(_ROW, raw, file=place.file, line=place.line)
                    span, stated = _span(row, place)
                    traces.setdefault(row.root_span_id, Traced(place)).add(span, stated, row.root_span_id)
            except TraceError as error:
                refused.add(error.problem.trace)
                yield error.problem
        source.release()
    beside = roots_of(trace.spans.values() for trace in traces.values())
    askers = asking_nodes(trace.spans.values() for trace in traces.values())
    for trace_id, trace in traces.items():
        if trace_id not in refused:
            try:
                yield _record(trace_id, trace, beside, askers)
            except TraceError as error:
                yield error.problem


def _rows(document: Document) -> list[Document]:
    """A row, or those of a page of the API: `events` of a fetch, `data` of a query."""
    if not (has_key(document.raw, "events") or has_key(document.raw, "data")):
        return [document]
    page = decode_record(_PAGE, document.raw, file=document.place.file, line=document.place.line)
    return nested_documents(document, page.events, "events") + nested_documents(document, page.data, "data")


def _span(row: _Row, place: Place) -> tuple[Span, _Stated]:
    where: dict[str, Any] = {"file": place.file, "line": place.line, "trace": row.root_span_id}
    attributes = (
        decode(_ATTRIBUTES, object_text(row.span_attributes), field="span_attributes", **where) or _Attributes()
    )
    stated = object_text(row.metadata)
    metadata = decode(_METADATA, stated, field="metadata", **where) if stated.startswith(b"{") else _Metadata()
    metrics = decode(_METRICS, object_text(row.metrics), field="metrics", **where) or _Metrics()
    kind, unknown = kind_of("score" if attributes.purpose == "scorer" else attributes.type or "", _KINDS)
    parent = row.span_parents[0] if row.span_parents else ""
    span = Span(row.span_id, parent, kind, place, name=attributes.name or "", unknown=unknown)
    span.failed, span.fault = bytes(row.error) not in (b"null", b'""'), fault_of(row.error)
    span.start = math.nan if metrics.start is None else metrics.start
    span.end = math.nan if metrics.end is None else metrics.end
    if kind is Kind.CALL:
        written = first_count(metrics.prompt_cache_creation_tokens, metrics.prompt_cache_write_tokens)
        counts = read_counts(metrics.prompt_tokens, metrics.prompt_cached_tokens, written)
        span.columns = {"tokens": metrics.completion_tokens} | counts
        span.model, span.money = metadata.model, stated_money(metrics.estimated_cost)
        span.stopped = stop_reason(object_text(row.output), stated)
    elif kind is Kind.TOOL and isinstance(metadata.triggered, bool):
        span.kind, span.failed = Kind.GUARD, metadata.triggered
    elif kind is Kind.OTHER and metadata.to_agent:
        span.kind, span.target = Kind.HANDOFF, metadata.to_agent
    elif kind is Kind.OTHER and (metadata.agent_name or bytes(metadata.handoffs).startswith(b"[")):
        span.kind, span.name = Kind.AGENT, metadata.agent_name or span.name
    elif kind is Kind.OTHER and b'"langgraph_node"' in (run := object_text(metadata.metadata)):
        of_node = decode(_OF_RUN, run, field="metadata.metadata", **where)
        if span.name and of_node.langgraph_node == span.name:
            span.kind, span.instance, span.node = Kind.AGENT, f"{parent}:{span.name}", node_of(parent, of_node)
    scores = decode(_SCORES, object_text(row.scores), field="scores", **where) or {}
    group = ""
    if attributes.type == "eval" and not parent:
        origin = decode(_ORIGIN, object_text(row.origin), field="origin", **where)
        task = (origin.id if origin else None) or _VALUE.decode(object_text(row.input))
        group = "" if task is None else run_digest(task)
    numbers = {name: value for name, value in scores.items() if value is not None}
    return span, _Stated(attributes.exec_counter or 0, numbers, group)


def _record(trace_id: str, trace: Traced[_Stated], beside: Roots, askers: frozenset[str]) -> TraceRecord:
    spans, stated = trace.spans, trace.stated
    listed = order_by_start(spans.values(), trace_id, "metrics.start", lambda span: stated[span.id].counter)
    keep_agents(listed, askers)
    around = trace.nearest(lambda span_id: spans[span_id].kind in (Kind.AGENT, Kind.TOOL))
    agents = {span.id: span.name for span in listed if span.kind is Kind.AGENT}
    for span_id, name in agents.items():  # a turn of an agent states the agent's name, too, and so does a part of it
        if agents.get(around.get(spans[span_id].parent, "")) == name:
            spans[span_id].kind = Kind.OTHER
    group = next((one.group for one in stated.values() if one.group), trace_id)
    record = TraceRecord(trace_id, group, *trace.place, format="braintrust", sources=list(trace.files))
    fields = "span_id", "span_parents"
    _set_rewards(write_spans(record, listed, "workflow", fields, beside=beside), trace)
    return record


def _set_rewards(written: Written, trace: Traced[_Stated]) -> None:
    """Write the scores of spans; those of a scorer are about the span that it lies below."""
    scores = [
        Score(name, value, span.place, span.parent if span.kind is Kind.JUDGE else span.id, number=number)
        for number, span in enumerate(trace.spans.values())
        for name, value in trace.stated[span.id].scores.items()
    ]
    place_scores(written, scores, ("scores", "span_id"))
    written.team.record.sole_channel()
