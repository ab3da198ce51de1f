"""One dumped span in the shape of OTLP: ids in hexadecimal, times in nanoseconds, attributes by dotted key."""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from typing import Any, cast

import msgspec

from graphs.errors import Problem, TraceError
from graphs.readers.common.json_problems import JSON_ERRORS, json_problem
from graphs.readers.common.repeated_keys import repeated_anywhere
from graphs.readers.common.typed import refuse_repeated
from graphs.readers.tracing.otlp.wire import Attributes, Place, WireEvent, WireLink, WireSpan, WireStatus
from graphs.readers.tracing.span_dumps.mlflow import of_mlflow
from graphs.text import excerpt

__all__ = [
    "WRAPPERS",
    "Batch",
    "Dumped",
    "DumpedSpan",
    "Status",
    "bare_span",
    "failed",
    "identifier",
    "nanoseconds",
    "plain_span",
]

WRAPPERS = ("spans", "data", "trace", "traces")
"""Keys under which dumps hold lists of spans."""

_Id = str | int | None
_Time = int | float | str | None
_FAILED = WireStatus(2)
_FINE = ("OK", None)
_HEX = re.compile("[0-9a-fA-F]+").fullmatch
_FLATTENED = ("llm.", "retrieval.", "embedding.", "reranker.", "tool.", "message.")


_ABSENT = msgspec.Raw()


class _Context(msgspec.Struct, gc=False):
    trace_id: _Id = None
    span_id: _Id = None


class Status(msgspec.Struct, gc=False):
    """The status of a span; a dump sets one of the two."""

    code: int | str | None = None
    status_code: int | str | None = None


class _Event(msgspec.Struct, gc=False):
    name: str | None = None
    attributes: dict[str, Any] | None = None


class _Link(msgspec.Struct, gc=False):
    context: _Context | None = None
    attributes: dict[str, Any] | None = None


class _Resource(msgspec.Struct, gc=False):
    attributes: dict[str, Any] | None = None


class DumpedSpan(msgspec.Struct, gc=False):
    """A span as any of the dumps writes it; each sets some of the fields."""

    name: str | None = None
    trace_id: _Id = None
    span_id: _Id = None
    parent_span_id: _Id = None
    parent_id: _Id = None
    parent: _Context | None = None
    context: _Context | None = None
    start_time: _Time = None
    end_time: _Time = None
    start_time_unix_nano: _Time = None
    end_time_unix_nano: _Time = None
    span_kind: str | None = None
    status: Status | str | None = None
    status_code: str | int | None = None
    attributes: dict[str, Any] | None = None
    events: list[_Event] | None = None
    span_events: list[_Event] | None = None
    links: list[_Link] | None = None
    resource: _Resource | None = None


class _Bare(DumpedSpan, gc=False):
    """A span and what would make it a wrapper of spans."""

    spans: msgspec.Raw = _ABSENT
    data: msgspec.Raw = _ABSENT
    trace: msgspec.Raw = _ABSENT
    traces: msgspec.Raw = _ABSENT


class Dumped(msgspec.Struct, gc=False):
    """A span's JSON, or the span already decoded, and where it stands; `extra` are attributes that its envelope gives.

    None of these structures takes part in a circle, so the collector of circles need not follow them.
    """

    span: bytes | DumpedSpan
    file: str
    line: int
    offset: int
    extra: Attributes | None = None

    @property
    def place(self) -> Place:
        """Where the span stands."""
        return Place(self.file, self.line, self.offset)


class Batch:
    """Spans of one file, a list for each of their parts; `odd` has those that are not decoded, or have extras."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.spans: list[DumpedSpan] = []
        self.lines: list[int] = []
        self.offsets: list[int] = []
        self.odd: dict[int, Dumped] = {}

    def append(self, dumped: Dumped) -> None:
        """Take a span in."""
        if isinstance(dumped.span, DumpedSpan) and not dumped.extra:
            span = dumped.span
        else:
            span, self.odd[len(self.spans)] = _UNDECODED, dumped
        self.spans.append(span)
        self.lines.append(dumped.line)
        self.offsets.append(dumped.offset)

    def dumped(self, i: int) -> Dumped:
        """One of the spans."""
        return self.odd.get(i) or Dumped(self.spans[i], self.file, self.lines[i], self.offsets[i])


_UNDECODED = DumpedSpan()
_SPAN = msgspec.json.Decoder(DumpedSpan)
_BARE = msgspec.json.Decoder(_Bare)
_NOWHERE = _Context()


def bare_span(text: bytes) -> DumpedSpan | None:
    """The span that a text is; None for one that may hold spans, does not decode, or states a key twice."""
    try:
        span = _BARE.decode(text)
    except JSON_ERRORS:
        return None
    if not (span.spans is span.data is span.trace is span.traces is _ABSENT) or repeated_anywhere(text) is not None:
        return None
    return span


def plain_span(dumped: Dumped) -> tuple[WireSpan, Attributes]:
    """The span in OTLP's shape, and its resource's attributes.

    Raises:
      TraceError: kinds of `graphs.readers.common.json_problems`, "bad-id", "bad-time",
        "repeated-key".
    """
    span, place = dumped.span, dumped.place
    if not isinstance(span, DumpedSpan):
        raw = span
        try:
            span = _SPAN.decode(raw)
        except JSON_ERRORS as error:
            raise TraceError(json_problem(error, raw, place.file, place.line)) from error
    context = span.context or _NOWHERE
    trace = identifier(context.trace_id if span.trace_id is None else span.trace_id, 32, "trace_id", place)
    if isinstance(dumped.span, bytes):
        refuse_repeated(repeated_anywhere(dumped.span), file=place.file, line=place.line, trace=trace or "")
    parent = span.parent_span_id or span.parent_id or (span.parent.span_id if span.parent else None)
    given = _flat(span.attributes or {})
    if span.span_kind and "openinference.span.kind" not in given and not span.span_kind.startswith("SpanKind"):
        given["openinference.span.kind"] = span.span_kind
    if "mlflow.spanType" in given:
        given = of_mlflow(given)
    if dumped.extra:
        given |= dumped.extra
    events = span.events or span.span_events
    links = span.links
    wire = WireSpan(
        trace_id=trace,
        span_id=identifier(context.span_id if span.span_id is None else span.span_id, 16, "span_id", place),
        parent_span_id=identifier(parent, 16, "parent_id", place) if parent else None,
        name=span.name,
        start_time_unix_nano=nanoseconds(
            _first(span.start_time_unix_nano, span.start_time), "start_time", place, trace
        ),
        end_time_unix_nano=nanoseconds(_first(span.end_time_unix_nano, span.end_time), "end_time", place, trace),
        attributes=cast(Any, given),  # by key, which OTLP itself never has
        events=[WireEvent(event.name, None, cast(Any, _flat(event.attributes or {}))) for event in events or ()],
        links=[WireLink(attributes=cast(Any, _flat(link.attributes or {}))) for link in links or ()],
        status=_FAILED if failed(span) else None,
    )
    return wire, (span.resource.attributes or {}) if span.resource else {}


def _first(one: _Time, other: _Time) -> _Time:
    return other if one is None else one


def failed(span: DumpedSpan) -> bool:
    """Whether the status is that of an error."""
    status = span.status
    codes = (status.code, status.status_code) if isinstance(status, Status) else (status,)
    if codes == _FINE and not span.status_code:
        return False
    return any(str(code).upper().endswith("ERROR") or code == 2 for code in (*codes, span.status_code) if code)


def identifier(value: _Id, digits: int, field: str, place: Place) -> str | None:
    """Hexadecimal digits: of a number, without `0x` in front, or out of base64, as MLflow writes ids."""
    if isinstance(value, str) and len(value) == digits and _HEX(value):
        return value
    if isinstance(value, bool):
        raise _bad(field, value, f"{digits} hexadecimal digits", place)
    if isinstance(value, int):
        return f"{value:0{digits}x}" if value >= 0 else str(value)
    if value is None:
        return None
    if value.endswith("="):  # before prefixes go: base64 may begin with any of them
        try:
            return base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return value
    return value.removeprefix("0x").removeprefix("0X").replace("-", "").removeprefix("tr")


def nanoseconds(value: _Time, field: str, place: Place, trace: str | None) -> int | str | None:
    """Nanoseconds: a whole number or its digits as they are, seconds with a fraction, or a date of ISO 8601."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if not 0 <= value < 2**64:
            raise _bad(field, value, "nanoseconds, seconds, or a date of ISO 8601", place, trace or "")
        return int(value * 1e9) if value < 1e11 else int(value)
    if value.isdigit():
        return value
    try:
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        raise _bad(field, value, "nanoseconds, or a date of ISO 8601", place, trace or "") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    passed = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return max(0, (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1000)


def _bad(field: str, value: object, expected: str, place: Place, trace: str = "") -> TraceError:
    kind = "bad-time" if "time" in field else "bad-id"
    return TraceError(Problem(kind, place.file, place.line, field, excerpt(value), expected, trace))


def _flat(nested: dict[str, Any]) -> Attributes:
    """Attributes by dotted key: Phoenix nests them, and makes lists of OpenInference's numbered keys."""
    for value in nested.values():
        if isinstance(value, (dict, list)):
            break
    else:
        return nested
    flat: Attributes = {}
    waiting: list[tuple[str, Any]] = list(reversed(nested.items()))
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{key}.{name}", part) for name, part in reversed(value.items())]
        elif isinstance(value, list) and key.startswith(_FLATTENED) and any(isinstance(part, dict) for part in value):
            waiting += [(f"{key}.{number}", part) for number, part in reversed(list(enumerate(value)))]
        else:
            flat[key] = value
    return flat
