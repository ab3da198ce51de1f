"""OTLP JSON as it lies in files: export requests, one a line or one a file, cut into spans and log records.

Each span and each log record is decoded by itself, so that a malformed one spoils its own trace and no other. The
shapes are those of the OpenTelemetry protocol's JSON encoding: lowerCamelCase keys, hexadecimal ids, 64-bit integers as
decimal strings (numbers are taken too), enumerations as integers. Unknown keys are ignored, as the encoding demands.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.readers.common.encodings import is_utf8
from graphs.readers.common.json_problems import JSON_ERRORS, json_problem, not_utf8
from graphs.readers.common.places import Lost, Places
from graphs.readers.common.repeated_keys import repeated_where_read
from graphs.readers.common.source import Source
from graphs.readers.common.typed import refuse_repeated
from graphs.readers.tracing.otlp.unread import unread_member
from graphs.text import excerpt, printable

__all__ = [
    "Attributes", "Item", "Place", "TraceIdOnly", "WireEvent", "WireLink", "WireLog", "WireSpan", "WireStatus",
    "attributes", "conflicting", "is_text", "items", "number", "plain",
]  # fmt: skip

Attributes = dict[str, Any]  # attribute values as Python values; arrays and maps stay encoded until `plain`


class Place(NamedTuple):
    """Where a record starts: file, line from 1, offset in bytes of the decompressed file."""

    file: str
    line: int
    offset: int


class Item(NamedTuple):
    """One span or log record, still encoded, with its resource's attributes, and the place of its request."""

    is_span: bool
    raw: msgspec.Raw
    resource: Attributes
    place: Place
    request: Place


class _Value(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: msgspec.Raw = msgspec.Raw()
    kvlist_value: msgspec.Raw = msgspec.Raw()


class _KeyValue(msgspec.Struct):
    key: str
    value: _Value | None = None


class _Array(msgspec.Struct):
    values: list[_Value] | None = None


class _KeyValueList(msgspec.Struct):
    values: list[_KeyValue] | None = None


class WireEvent(msgspec.Struct, rename="camel"):
    """An event of a span."""

    name: str | None = None
    time_unix_nano: int | str | None = None
    attributes: list[_KeyValue] | None = None


class WireLink(msgspec.Struct, rename="camel"):
    """A link of a span."""

    trace_id: str | None = None
    span_id: str | None = None
    attributes: list[_KeyValue] | None = None


class WireStatus(msgspec.Struct):
    """A span's status."""

    code: int | str | None = None


class WireSpan(msgspec.Struct, rename="camel"):
    """A span, every field optional as in the protocol."""

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: int | str | None = None
    end_time_unix_nano: int | str | None = None
    attributes: list[_KeyValue] | None = None
    events: list[WireEvent] | None = None
    links: list[WireLink] | None = None
    status: WireStatus | None = None


class WireLog(msgspec.Struct, rename="camel"):
    """A log record."""

    trace_id: str | None = None
    span_id: str | None = None
    event_name: str | None = None
    attributes: list[_KeyValue] | None = None


class TraceIdOnly(msgspec.Struct, rename="camel"):
    """The trace id of a span or log record that does not decode; its trace is refused."""

    trace_id: str | None = None


class _Resource(msgspec.Struct):
    attributes: list[_KeyValue] | None = None


class _ScopeSpans(msgspec.Struct):
    spans: list[msgspec.Raw] | None = None


class _ScopeLogs(msgspec.Struct, rename="camel"):
    log_records: list[msgspec.Raw] | None = None


class _Of(msgspec.Struct, rename="camel"):
    """The records of one resource, or, at the top, of a file that leaves out the outermost list.

    The protocol called a scope an instrumentation library until 2022.
    """

    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None
    scope_logs: list[_ScopeLogs] | None = None
    instrumentation_library_spans: list[_ScopeSpans] | None = None
    instrumentation_library_logs: list[_ScopeLogs] | None = None

    @property
    def spans(self) -> Iterator[msgspec.Raw]:
        """The spans of all scopes."""
        for scope in itertools.chain(self.scope_spans or (), self.instrumentation_library_spans or ()):
            yield from scope.spans or ()

    @property
    def is_read(self) -> bool:
        """Whether there are scopes, and each has a list of spans or log records."""
        spans = self.scope_spans or self.instrumentation_library_spans
        logs = self.scope_logs or self.instrumentation_library_logs
        return bool(spans or logs) and not (
            any(scope.spans is None for scope in spans or ()) or any(scope.log_records is None for scope in logs or ())
        )

    @property
    def logs(self) -> Iterator[msgspec.Raw]:
        """The log records of all scopes."""
        for scope in itertools.chain(self.scope_logs or (), self.instrumentation_library_logs or ()):
            yield from scope.log_records or ()


class _Request(_Of, rename="camel"):
    resource_spans: list[_Of] | None = None
    resource_logs: list[_Of] | None = None


_TRACE_ID = re.compile(rb"(?<![0-9a-fA-F])[0-9a-fA-F]{32}(?![0-9a-fA-F])")
_REQUEST = msgspec.json.Decoder(_Request)
_ANY_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(_Array)
_KVLIST = msgspec.json.Decoder(_KeyValueList)


def attributes(pairs: list[_KeyValue] | Attributes | None) -> Attributes:
    """Attributes by key. A value of no kind is None.

    Attributes that are plain values by key already, as in dumps that are not OTLP, stay as they are.
    """
    if isinstance(pairs, dict):
        return pairs
    return {pair.key: None if pair.value is None else _value(pair.value) for pair in pairs or ()}


def conflicting(pairs: list[_KeyValue] | None) -> str | None:
    """The path of an attribute that occurs twice with two values; None without one."""
    values: dict[str, _Value | None] = {}
    if not pairs or len({pair.key for pair in pairs}) == len(pairs):
        return None
    keys = (pair.key for pair in pairs if values.setdefault(pair.key, pair.value) != pair.value)
    key = next(keys, None)
    return None if key is None else f"attributes.{printable(key, 200)}"


def _value(value: _Value) -> Any:
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        if value.double_value is not None:  # the protocol allows one: no number, so that none is taken for the other
            return f"{value.int_value} and {value.double_value}"
        return value.int_value if isinstance(value.int_value, int) else _Decimal(value.int_value)
    if value.double_value is not None:
        return value.double_value if isinstance(value.double_value, float) else _Decimal(value.double_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.array_value or value.kvlist_value:
        return value
    return None


class _Decimal(str):
    """A number that the encoding wrote as text: an int64, or a double that JSON cannot express ("NaN", "Infinity")."""

    __slots__ = ()


def number(value: Any) -> int | float | None:
    """An attribute value as a number, or None where it is no number; text counts only where the protocol writes one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**64):
        return value
    if isinstance(value, _Decimal):
        if re.fullmatch(r"-?[0-9]{1,20}", value):
            return int(value)
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
    return None


def is_text(value: Any) -> bool:
    """Whether an attribute value was a string."""
    return isinstance(value, str) and not isinstance(value, _Decimal)


def plain(value: Any, depth: int = 16) -> Any:
    """An attribute value with its arrays and maps unpacked to lists and dicts.

    Raises:
      msgspec.DecodeError, RecursionError: it is malformed, or nested deeper than `depth`.
    """
    if not isinstance(value, _Value):
        return value
    if depth == 0:
        raise RecursionError("attribute nested too deeply")
    if value.array_value:
        return [plain(_value(member), depth - 1) for member in _ARRAY.decode(value.array_value).values or ()]
    pairs = _KVLIST.decode(value.kvlist_value).values or ()
    return {pair.key: None if pair.value is None else plain(_value(pair.value), depth - 1) for pair in pairs}


def items(source: Source) -> Iterator[Item | Lost]:
    """The spans and log records of one file, with what could not be read of it."""
    data = source.data
    whole = _whole(data)
    if isinstance(whole, _Request):
        lost = _not_read(whole, data, source.name, 1)
        if lost is not None:
            yield lost
            return
        yield from _request_items(whole, data, Place(source.name, 1, 0))
        return
    if isinstance(whole, Exception):
        yield Lost(json_problem(whole, data, source.name, 1), data)
        return
    for line, offset, content in source.lines():
        place = Place(source.name, line, data.find(content, offset))  # a line may be indented
        try:
            request = _REQUEST.decode(content)
        except JSON_ERRORS as error:
            yield Lost(json_problem(error, content, source.name, line), content)
            continue
        lost = _not_read(request, content, source.name, line)
        if lost is not None:
            yield lost
            continue
        yield from _request_items(request, content, place)


def _not_read(request: _Request, text: bytes, file: str, line: int) -> Lost | None:
    """A request that is no text, states a key twice, or has its content under keys that are read nowhere; else None."""
    if not is_utf8(text):
        return Lost(not_utf8(text, file, line), text)
    twice = _repeated(text, file, line)
    if twice is not None:
        return Lost(twice, text)
    field = None if _is_read(request) else unread_member(text)
    if field is None:
        return None
    expected = "an export request: resourceSpans or resourceLogs, with scopeSpans or scopeLogs within"
    problem = Problem("unknown-item", file, line, field, excerpt(text[:60]), expected)
    # Ids of traces, whatever keys state them, and within texts, too, as `LostLines` finds them; no more of the line.
    ids = b",".join(b'{"traceId":"' + own + b'"}' for own in dict.fromkeys(_TRACE_ID.findall(text)))
    return Lost(problem, b'{"line":[' + ids + b"]}")


def _repeated(request: bytes, file: str, line: int) -> Problem | None:
    """The problem of a request that states a key of its own twice; its spans and log records are looked at alone."""
    try:
        refuse_repeated(repeated_where_read(_Request, request), file=file, line=line)
    except TraceError as error:
        return error.problem
    return None


def _is_read(request: _Request) -> bool:
    """Whether a request, and all within, has a list that is read here."""
    groups = [*(request.resource_spans or ()), *(request.resource_logs or ())]
    if request.resource_spans is None and request.resource_logs is None:
        groups.append(request)
    return all(group.is_read for group in groups)


def _whole(data: bytes) -> _Request | Exception | None:
    """The request that the whole file is; None for one a line; the error of a file that is neither."""
    first = data.lstrip()
    first = first[: first.find(b"\n")] if b"\n" in first else first
    try:
        _ANY_OBJECT.decode(first)
        return None
    except JSON_ERRORS:
        pass
    try:
        return _REQUEST.decode(data)
    except JSON_ERRORS as error:
        starts = re.findall(rb'^[ \t]*\{\s*"(?:resource|scope)(?:Spans|Logs)"', data, re.MULTILINE)
        return None if len(starts) > 1 else error


def _request_items(request: _Request, text: bytes, base: Place) -> Iterator[Item]:
    for groups in ([request], request.resource_spans or (), request.resource_logs or ()):
        # Keys may come in any order in the file, but the elements of a list do not: each list has its own search.
        spans, logs = Places(text, 0, base.line), Places(text, 0, base.line)
        for group in groups:
            resource = attributes(group.resource.attributes if group.resource else None)
            listed = [(True, raw, spans) for raw in group.spans] + [(False, raw, logs) for raw in group.logs]
            for is_span, raw, places in listed:
                line, begin = places.of(raw)
                yield Item(is_span, raw, resource, Place(base.file, line, base.offset + begin), base)
