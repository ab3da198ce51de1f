"""Spans in no dialect: what is kept of each span once its JSON is gone."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.faults import has_failed, named_fault
from graphs.formats.common.graph_nodes import OfNode, node_of
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.otlp.dialects import BadAttribute, graph_node, meaning, plain_or_text, stopped_by
from graphs.formats.otlp.evaluations import RESULT, Evaluation, inference_evaluations, result_evaluation
from graphs.formats.otlp.marks import EDGE, PREFIX, BadMark, check_mark, is_of_trace
from graphs.formats.otlp.wire import Attributes, WireLog, WireSpan, attributes, is_text
from graphs.reading.documents import Place
from graphs.reading.text_keys import ASKED, text_key
from graphs.text import excerpt

__all__ = ["NOTE", "Marks", "Note", "TracedSpan", "log_evaluation", "make_span", "otlp_span", "trace_id_of"]

NOTE = PREFIX + "event"
"""Name of a span event that is an event of the graph by itself."""
_CHOICE = "gen_ai.choice"  # what a call gave, of earlier versions of the convention and of Strands

_IDS = {size: re.compile(f"(?!0+$)[0-9a-fA-F]{{{size}}}").fullmatch for size in (16, 32)}
"""By their number, hexadecimal digits that are not all 0."""
_NANO = 1_000_000_000

Marks = dict[str, Any]
"""Checked marks by name without the prefix."""


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """A span event that is an event of the graph: its time in seconds and its marks."""

    time: float
    marks: Marks


class TracedSpan(Span):
    """A span of OpenTelemetry, with what only its traces have.

    Attributes:
      known: whether it is of a dialect.
      response_id: of a model call, the id of its response.
      marks: what it, or its resource, states beyond the conventions.
      evaluations: those that its attributes and events hold.
      notes: its events that are events of the graph.
      links: marks of its links that are edges of the graph.
      release: the version of its service; "" without one.
      asked: of a model call, digests of the arguments of the tool calls that it asked for, by their ids.
      asks: whether a tool states its own.
    """

    known: bool = True
    response_id: str = ""
    marks: Marks = msgspec.field(default_factory=dict)
    evaluations: tuple[Evaluation, ...] = ()
    notes: tuple[Note, ...] = ()
    links: tuple[Marks, ...] = ()
    release: str = ""
    asked: dict[str, str] = msgspec.field(default_factory=dict)
    asks: bool = False


def trace_id_of(written: str | None, place: Place) -> str:
    """The trace id of a record, in lower case.

    Raises:
      TraceError: kind "bad-id".
    """
    return _hex_id(written, 32, "traceId", place, "")


def _hex_id(value: str | None, size: int, field: str, place: Place, trace: str) -> str:
    if value is None or not _IDS[size](value):
        expected = f"{size} hexadecimal digits, not all 0 (protobuf's own JSON has base64 there, which OTLP does not)"
        shown = "absent" if value is None else excerpt(value)
        raise TraceError(Problem("bad-id", place.file, place.line, field, shown, expected, trace))
    return value.lower()


def otlp_span(wire: WireSpan, resource: Attributes, place: Place, trace: str) -> TracedSpan:
    """The span in a decoded record of OTLP.

    Raises:
      TraceError: as `make_span`.
    """
    return make_span(
        trace,
        (wire.span_id, wire.parent_span_id),
        wire.name or "",
        (wire.start_time_unix_nano, wire.end_time_unix_nano),
        attributes(wire.attributes),
        resource,
        place,
        codes=[wire.status.code if wire.status is not None else None],
        message=wire.status.message if wire.status is not None else None,
        events=[(event.name, event.time_unix_nano, attributes(event.attributes)) for event in wire.events or ()],
        links=[attributes(link.attributes) for link in wire.links or ()],
    )


def make_span(
    trace: str,
    ids: tuple[str | None, str | None],
    name: str,
    times: tuple[int | str | None, int | str | None],
    attributes: Attributes,
    resource: Attributes,
    place: Place,
    *,
    codes: Iterable[Any],
    message: Any = None,
    events: Iterable[tuple[str | None, int | str | None, Attributes]] = (),
    links: Iterable[Attributes] = (),
) -> TracedSpan:
    """What is kept of a span.

    Args:
      trace: the trace's id.
      ids: the span's and its parent's, as written.
      name: the span's name.
      times: start and end, in nanoseconds.
      attributes, resource: attributes of the span and of its resource.
      place: where it stands.
      codes: of its status, as of `has_failed`.
      message: that of its status.
      events, links: its events, each with name, time and attributes, and its links.

    Raises:
      TraceError: kinds "bad-id", "bad-time", "bad-attribute", "bad-mark".
    """
    span_id = _hex_id(ids[0], 16, "spanId", place, trace)
    parent = _hex_id(ids[1], 16, "parentSpanId", place, trace) if ids[1] else ""
    keys = "\n".join(attributes)  # one text is searched faster than each key
    events = list(events)
    evaluations: list[Evaluation] = []
    notes: list[Note] = []
    try:
        what = meaning(name, attributes)
        of_node = graph_node(attributes) if what.kind in (Kind.OTHER, Kind.AGENT) and name else OfNode()
        is_node = bool(name) and of_node.langgraph_node == name
        if "evaluations." in keys or "annotations." in keys:
            evaluations += inference_evaluations(attributes, place, span_id)
        chosen = what.stopped
        for event_name, time, about in events:
            if event_name == _CHOICE:
                chosen = chosen or stopped_by(about)
            elif event_name == RESULT:
                evaluations += _evaluation(about, place, span_id, trace)
            elif event_name == NOTE:
                stamp = _nanoseconds(time, "events.timeUnixNano", place, trace)
                notes.append(Note(_seconds(stamp), _marks(about, place, trace)))
    except BadAttribute as error:
        raise _bad_attribute(error, place, trace) from None
    marks = _marks(attributes, place, trace) if PREFIX in keys else {}
    if any(key.startswith(PREFIX) for key in resource):
        marks = _marks(resource, place, trace, of_resource=True) | marks
    failed = has_failed(codes, attributes, (about for name, _, about in events if name == "exception"))
    start = _nanoseconds(times[0], "startTimeUnixNano", place, trace)
    end = _nanoseconds(times[1], "endTimeUnixNano", place, trace)
    service, release = resource.get("service.name"), resource.get("service.version")
    is_named = is_text(service) and not str(service).startswith("unknown_service")  # which SDKs make up
    link_marks = [_marks(link, place, trace) for link in links]
    return TracedSpan(
        span_id, parent, Kind.AGENT if is_node else what.kind, place, name if is_node else what.name,
        _seconds(start), _seconds(end),
        instance=f"{parent}:{name}" if is_node else "",
        node=node_of(parent, of_node) if is_node else None,
        failed=failed,
        fault=_fault(message, attributes, events) if failed else "",
        columns=dict(what.counts),
        unlike_counts=what.unlike_counts,
        embedded=what.embedded,
        model=what.model,
        requested=what.requested,
        money=what.money,
        target=what.target,
        giver=what.giver,
        clock=(start, end),
        role=what.role,
        agent_id=what.agent_id,
        named=what.named,
        decides=what.decides,
        emitted=what.emitted,
        asked=what.asked,
        asks=what.kind is Kind.TOOL and any(value and text_key(key) in ASKED for key, value in attributes.items()),
        call_id=what.call_id,
        stopped=chosen,
        unknown=what.unknown,
        service=str(service) if is_named else "",
        known=what.known,
        response_id=what.response_id,
        marks=marks,
        evaluations=tuple(evaluations),
        notes=tuple(notes),
        links=tuple([marks for marks in link_marks if any(name.startswith(EDGE) for name in marks)]),
        release=str(release) if is_text(release) else "",
    )  # fmt: skip


def _fault(
    message: Any, attributes: Attributes, events: Iterable[tuple[str | None, int | str | None, Attributes]]
) -> str:
    """What a span says of its error: in its status, its attributes, or the last exception among its events."""
    raised = attributes
    for name, _, about in events:
        raised = about if name == "exception" else raised
    of_type = attributes.get("error.type") or raised.get("exception.type")
    said = (message, attributes.get("error.message"), raised.get("exception.message"))
    return named_fault(of_type, next(filter(is_text, filter(None, said)), None))


def log_evaluation(wire: WireLog, place: Place, trace: str) -> Evaluation | None:
    """The evaluation in a log record that is known to be one; None where it has no score.

    Raises:
      TraceError: kinds "bad-id", "bad-attribute", "bad-mark".
    """
    span = _hex_id(wire.span_id, 16, "spanId", place, trace) if wire.span_id else ""
    try:
        return next(iter(_evaluation(attributes(wire.attributes), place, span, trace)), None)
    except BadAttribute as error:
        raise _bad_attribute(error, place, trace) from None


def _evaluation(attributes: Attributes, place: Place, span: str, trace: str) -> list[Evaluation]:
    """The one evaluation in the attributes of a result, or none."""
    evaluation = result_evaluation(attributes, place, span)
    if evaluation is None:
        return []
    marks = _marks(attributes, place, trace)
    if not marks:
        return [evaluation]
    return [dataclasses.replace(evaluation, channel=marks.get("channel", ""), event=marks.get("event.id", ""))]


def _bad_attribute(error: BadAttribute, place: Place, trace: str) -> TraceError:
    problem = Problem("bad-attribute", place.file, place.line, error.key, excerpt(error.value), error.expected, trace)
    return TraceError(problem)


def _marks(attributes: Attributes, place: Place, trace: str, *, of_resource: bool = False) -> Marks:
    marks: Marks = {}
    for key in attributes:
        if key.startswith(PREFIX):
            name = key.removeprefix(PREFIX)
            try:
                marks[name] = check_mark(name, attributes[key])
                if of_resource and not is_of_trace(name):
                    raise BadMark("on a resource a mark of the trace; those of agents and events are of a span")
            except BadMark as error:
                shown = excerpt(plain_or_text(attributes[key]))
                problem = Problem("bad-mark", place.file, place.line, key, shown, error.expected, trace)
                raise TraceError(problem) from None
    return marks


def _nanoseconds(value: int | str | None, field: str, place: Place, trace: str) -> int:
    """A time stamp; -1 for one that is absent or 0, which the protocol means by unknown."""
    if value is None or value == "":
        return -1
    if isinstance(value, int) and 0 < value < 2**64:
        return value
    digits = isinstance(value, int) or (value.isascii() and value.isdigit() and len(value) <= 20)
    if not digits or not 0 <= int(value) < 2**64:
        expected = "nanoseconds since 1970, a decimal string or number in [0, 2^64)"
        raise TraceError(Problem("bad-time", place.file, place.line, field, excerpt(value), expected, trace))
    return int(value) or -1


def _seconds(nanoseconds: int) -> float:
    """The double that is closest to a time stamp; NaN without one."""
    return math.nan if nanoseconds < 0 else nanoseconds / _NANO
