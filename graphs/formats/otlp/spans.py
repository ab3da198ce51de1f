"""Spans in no dialect: what is kept of each span once its JSON is gone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from graphs.errors import Problem, TraceError
from graphs.formats.otlp.dialects import BadAttribute, Kind, Meaning, meaning, plain_or_text
from graphs.formats.otlp.evaluations import RESULT, Evaluation, inference_evaluations, result_evaluation
from graphs.formats.otlp.marks import PREFIX, BadMark, check_mark
from graphs.formats.otlp.wire import (
    Attributes,
    Place,
    TraceIdOnly,
    WireEvent,
    WireLink,
    WireLog,
    WireSpan,
    attributes,
    is_text,
)
from graphs.text import excerpt

__all__ = [
    "GROUP",
    "NOTE",
    "Link",
    "Marks",
    "Note",
    "Span",
    "log_evaluation",
    "make_span",
    "nanoseconds_of",
    "service_of",
    "span_id_of",
    "trace_id_of",
]

NOTE = PREFIX + "event"
"""Name of a span event that is an event of the graph by itself."""

GROUP = PREFIX + "group"
"""Attribute of a resource whose traces are of this group."""

_HEX = re.compile("[0-9a-fA-F]+").fullmatch

Marks = dict[str, Any]  # checked marks by name without the prefix


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """A span event that is an event of the graph: its time in nanoseconds and its marks."""

    time: int | None
    marks: Marks


@dataclasses.dataclass(frozen=True, slots=True)
class Link:
    """A link that is an edge of the graph."""

    marks: Marks


@dataclasses.dataclass(slots=True)
class Span:
    """A span: its place in the tree, its times in nanoseconds (None where absent), what it means, and its marks.

    `index` counts the spans of all files in the order in which they were read.
    """

    id: str
    parent: str
    index: int
    place: Place
    start: int | None
    end: int | None
    failed: bool
    meaning: Meaning
    service: str
    marks: Marks
    evaluations: Sequence[Evaluation]
    notes: Sequence[Note]
    links: Sequence[Link]
    group: str

    @property
    def kind(self) -> Kind:
        """The span's kind, by its own attributes."""
        return self.meaning.kind

    def refuse(self, kind: str, field: str, value: object, expected: str, trace: str) -> TraceError:
        """The error that points at this span."""
        return TraceError(Problem(kind, self.place.file, self.place.line, field, excerpt(value), expected, trace))


def trace_id_of(wire: WireSpan | WireLog | TraceIdOnly, place: Place) -> str:
    """The trace id of a record, in lower case.

    Raises:
      TraceError: kind "bad-id".
    """
    return _hex_id(wire.trace_id, 32, "traceId", place, "")


def span_id_of(value: str | None, field: str, place: Place, trace: str) -> str:
    """A span id in lower case.

    Raises:
      TraceError: kind "bad-id".
    """
    return _hex_id(value, 16, field, place, trace)


def _hex_id(value: str | None, size: int, field: str, place: Place, trace: str) -> str:
    if value is None or len(value) != size or not _HEX(value) or not value.strip("0"):
        expected = f"{size} hexadecimal digits, not all 0 (protobuf's own JSON has base64 there, which OTLP does not)"
        shown = "absent" if value is None else excerpt(value)
        raise TraceError(Problem("bad-id", place.file, place.line, field, shown, expected, trace))
    return value.lower()


def make_span(wire: WireSpan, resource: Attributes, place: Place, index: int, trace: str) -> Span:
    """The span in a decoded record.

    Raises:
      TraceError: kinds "bad-id", "bad-time", "bad-attribute", "bad-mark".
    """
    given = attributes(wire.attributes)
    span_id = span_id_of(wire.span_id, "spanId", place, trace)
    parent = span_id_of(wire.parent_span_id, "parentSpanId", place, trace) if wire.parent_span_id else ""
    try:
        what = meaning(wire.name or "", given)
        keys = "\n".join(given)  # one text is searched faster than each key
        rated = "evaluations." in keys or "annotations." in keys
        evaluations = list(inference_evaluations(given, place, span_id)) if rated else []
        for event in wire.events or ():
            if event.name == RESULT:
                evaluation = _marked(attributes(event.attributes), place, span_id, trace)
                if evaluation is not None:
                    evaluations.append(evaluation)
    except BadAttribute as error:
        raise _bad_attribute(error, place, trace) from None
    notes = _notes(wire.events, place, trace) if wire.events else ()
    marks = _marks_of(given, place, trace) if PREFIX in keys else {}
    group = marks.get("group", "")
    if not group and GROUP in resource:
        group = _marks_of({GROUP: resource[GROUP]}, place, trace)["group"]
    code = wire.status.code if wire.status else None
    return Span(
        id=span_id,
        parent=parent,
        index=index,
        place=place,
        start=nanoseconds_of(wire.start_time_unix_nano, "startTimeUnixNano", place, trace),
        end=nanoseconds_of(wire.end_time_unix_nano, "endTimeUnixNano", place, trace),
        failed=code in (2, "STATUS_CODE_ERROR"),
        meaning=what,
        service=service_of(resource),
        marks=marks,
        evaluations=tuple(evaluations),
        notes=notes,
        links=_links(wire.links, place, trace) if wire.links else (),
        group=group,
    )


def service_of(resource: Attributes) -> str:
    """The name of a resource's service; "" without one, or for the one that SDKs make up."""
    service = resource.get("service.name")
    return str(service) if is_text(service) and not str(service).startswith("unknown_service") else ""


def log_evaluation(wire: WireLog, place: Place, trace: str) -> Evaluation | None:
    """The evaluation in a log record that is known to be one; None where it has no score.

    Raises:
      TraceError: kinds "bad-id", "bad-attribute", "bad-mark".
    """
    span = span_id_of(wire.span_id, "spanId", place, trace) if wire.span_id else ""
    try:
        return _marked(attributes(wire.attributes), place, span, trace)
    except BadAttribute as error:
        raise _bad_attribute(error, place, trace) from None


def _marked(given: Attributes, place: Place, span: str, trace: str) -> Evaluation | None:
    evaluation = result_evaluation(given, place, span)
    if evaluation is None:
        return None
    marks = _marks_of(given, place, trace)
    return evaluation._replace(channel=marks.get("channel", ""), event=marks.get("event.id", ""))


def _bad_attribute(error: BadAttribute, place: Place, trace: str) -> TraceError:
    problem = Problem("bad-attribute", place.file, place.line, error.key, excerpt(error.value), error.expected, trace)
    return TraceError(problem)


def _marks(pairs: Any, place: Place, trace: str) -> Marks:
    return _marks_of(attributes(pairs), place, trace)


def _marks_of(given: Attributes, place: Place, trace: str) -> Marks:
    marks: Marks = {}
    for key in given:
        if key.startswith(PREFIX):
            name = key.removeprefix(PREFIX)
            try:
                marks[name] = check_mark(name, given[key])
            except BadMark as error:
                shown = excerpt(plain_or_text(given[key]))
                problem = Problem("bad-mark", place.file, place.line, key, shown, error.expected, trace)
                raise TraceError(problem) from None
    return marks


def _notes(events: list[WireEvent], place: Place, trace: str) -> tuple[Note, ...]:
    return tuple(
        Note(nanoseconds_of(e.time_unix_nano, "events.timeUnixNano", place, trace), _marks(e.attributes, place, trace))
        for e in events
        if e.name == NOTE
    )


def _links(links: list[WireLink], place: Place, trace: str) -> tuple[Link, ...]:
    link_marks = [_marks(link.attributes, place, trace) for link in links]
    return tuple(Link(marks) for marks in link_marks if any(name.startswith("edge.") for name in marks))


def nanoseconds_of(value: int | str | None, field: str, place: Place, trace: str) -> int | None:
    """A time stamp; None for one that is absent or 0, which the protocol means by unknown."""
    if value is None or value == "":
        return None
    if isinstance(value, int) and 0 < value < 2**64:
        return value
    digits = isinstance(value, int) or (value.isascii() and value.isdigit() and len(value) <= 20)
    if not digits or not 0 <= int(value) < 2**64:
        expected = "nanoseconds since 1970, a decimal string or number in [0, 2^64)"
        raise TraceError(Problem("bad-time", place.file, place.line, field, excerpt(value), expected, trace))
    return int(value) or None
