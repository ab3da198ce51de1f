"""OTLP JSON: spans and log records with OpenTelemetry GenAI or OpenInference attributes.

Reads export requests, one a line (what file exporters write) or one a file, spans and logs in the same or in different
files. One trace id is one trace. `docs/formats/otlp.md` has the mapping in full. `wire` cuts requests into spans and
log records, `dialects`, `evaluations` and `marks` read attributes, `spans` keeps what counts, and `traces` makes a
record of a trace.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.otlp.evaluations import RESULT
from graphs.formats.otlp.gathering import Gathering
from graphs.formats.otlp.spans import log_evaluation, otlp_span, trace_id_of
from graphs.formats.otlp.wire import (
    Item,
    Request,
    ScopeSpans,
    TraceIdOnly,
    WireLog,
    WireSpan,
    attributes,
    conflicting,
    items,
)
from graphs.reading.decode import decode_record, refuse_repeated
from graphs.reading.documents import Document, Place, documents
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

RECORDS = (Request, ScopeSpans, WireSpan)

_BEGINS = re.compile(rb'"(?:resource|scope)(?:Spans|Logs)"\s*:\s*\[')
_SPAN = msgspec.json.Decoder(WireSpan)
_LOG = msgspec.json.Decoder(WireLog)
_TRACE_ID = msgspec.json.Decoder(TraceIdOnly)


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is OTLP JSON: its outer lists are visible there, unescaped."""
    return _BEGINS.search(head) is not None


def read(sources: Sequence[Source], attach_orphans: bool = False) -> Iterator[TraceRecord | Problem]:
    """The traces of all sources, in the order in which their first spans were met.

    Everything is read before the first trace is whole, since its spans may be spread over files; of a span only what
    `spans.TracedSpan` has is kept. A file's traces without any span of either dialect are one problem together.
    """
    log = Gathering("otlp", attach_orphans)
    for source in sources:
        for document in documents(source):
            try:
                file, line, offset = document.place
                place = Place(file, line, source.data.find(document.raw, offset))  # a line may be indented
                for item in items(Document(document.raw, place)):
                    yield from log.take(_add, item, item.resource if item.is_span else {})
            except TraceError as error:
                yield error.problem
        source.release()
    yield from log.results()


def _add(log: Gathering, item: Item) -> None:
    """Take a span or a log record in."""
    if item.is_span:
        span = _decoded(_SPAN, item)
        trace = trace_id_of(span.trace_id, item.place)
        log.add_span(trace, otlp_span(span, item.resource, item.place, trace))
        if not span.parent_span_id:
            log.resources.setdefault(trace, item.resource)
        return
    record = _decoded(_LOG, item)
    if RESULT in (record.event_name, attributes(record.attributes).get("event.name")):
        trace = trace_id_of(record.trace_id, item.place) if record.trace_id else ""
        log.add_evaluation(trace, log_evaluation(record, item.place, trace))


T = TypeVar("T", WireSpan, WireLog)


def _decoded(decoder: msgspec.json.Decoder[T], item: Item) -> T:
    """The record, or the problem of its trace where it states one."""
    file, line, _ = item.place
    try:
        record = decode_record(decoder, item.raw, file=file, line=line)
        refuse_repeated(conflicting(record.attributes), file=file, line=line)
    except TraceError as error:
        try:
            trace = trace_id_of(_TRACE_ID.decode(item.raw).trace_id, item.place)
        except (TraceError, *JSON_ERRORS):
            trace = ""
        raise TraceError(dataclasses.replace(error.problem, trace=trace)) from error
    return record
