"""OTLP JSON as it is written: export requests, with spans, log records and their attributes.

The shapes are those of the OpenTelemetry protocol's JSON encoding: lowerCamelCase keys, hexadecimal ids, 64-bit
integers as decimal strings (numbers are taken too), enumerations as integers. Unknown keys are ignored, as the encoding
demands. Each span and each log record is left encoded at first, so that a malformed one spoils its own trace and no
other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import decode
from graphs.reading.documents import Document, Place, Places
from graphs.text import excerpt, printable

__all__ = [
    "Attributes", "Item", "KeyValue", "Request", "ScopeSpans", "TraceIdOnly", "WireEvent", "WireLink", "WireLog",
    "WireSpan", "WireStatus", "attributes", "conflicting", "is_text", "items", "number", "plain",
]  # fmt: skip

Attributes = dict[str, Any]
"""Attribute values as Python values; arrays and maps stay encoded until `plain`."""

_INTEGER = re.compile("-?[0-9]{1,20}")  # what an int64, or an unsigned one of careless writers, may be as text


class _Value(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: msgspec.Raw = msgspec.Raw()
    kvlist_value: msgspec.Raw = msgspec.Raw()


class KeyValue(msgspec.Struct):
    """An attribute."""

    key: str
    value: _Value | None = None


class _Array(msgspec.Struct):
    values: list[_Value] | None = None


class _KeyValueList(msgspec.Struct):
    values: list[KeyValue] | None = None


class WireEvent(msgspec.Struct, rename="camel"):
    """An event of a span."""

    name: str | None = None
    time_unix_nano: int | str | None = None
    attributes: list[KeyValue] | None = None


class WireLink(msgspec.Struct, rename="camel"):
    """A link of a span."""

    attributes: list[KeyValue] | None = None


class WireStatus(msgspec.Struct):
    """A span's status."""

    code: int | str | None = None
    message: Any = None


class TraceIdOnly(msgspec.Struct, rename="camel"):
    """The trace id of a span or log record that does not decode; its trace is refused."""

    trace_id: str | None = None


class WireSpan(msgspec.Struct, rename="camel"):
    """A span, every field optional as in the protocol."""

    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: int | str | None = None
    end_time_unix_nano: int | str | None = None
    attributes: list[KeyValue] | None = None
    events: list[WireEvent] | None = None
    links: list[WireLink] | None = None
    status: WireStatus | None = None


class WireLog(msgspec.Struct, rename="camel"):
    """A log record."""

    trace_id: str | None = None
    span_id: str | None = None
    event_name: str | None = None
    attributes: list[KeyValue] | None = None


class _Resource(msgspec.Struct):
    attributes: list[KeyValue] | None = None


class ScopeSpans(msgspec.Struct):
    """The spans of one scope."""

    spans: list[msgspec.Raw] | None = None


class _ScopeLogs(msgspec.Struct, rename="camel"):
    log_records: list[msgspec.Raw] | None = None


class _Of(msgspec.Struct, rename="camel"):
    """The records of one resource, or, at the top, of a file that leaves out the outermost list.

    The protocol called a scope an instrumentation library until 2022. While it changed, exporters wrote the same
    records under both names, and the protocol says that the newer one is read then.
    """

    resource: _Resource | None = None
    scope_spans: list[ScopeSpans] | None = None
    scope_logs: list[_ScopeLogs] | None = None
    instrumentation_library_spans: list[ScopeSpans] | None = None
    instrumentation_library_logs: list[_ScopeLogs] | None = None

    @property
    def spans(self) -> list[ScopeSpans]:
        return self.scope_spans or self.instrumentation_library_spans or []

    @property
    def logs(self) -> list[_ScopeLogs]:
        return self.scope_logs or self.instrumentation_library_logs or []

    @property
    def is_read(self) -> bool:
        """Whether there are scopes, and each has a list of spans or log records."""
        lists = [scope.spans for scope in self.spans] + [scope.log_records for scope in self.logs]
        return bool(lists) and None not in lists


class Request(_Of, rename="camel"):
    """An export request."""

    resource_spans: list[_Of] | None = None
    resource_logs: list[_Of] | None = None


class Item(NamedTuple):
    """One span or log record, still encoded, with its resource's attributes and its place."""

    is_span: bool
    raw: msgspec.Raw
    resource: Attributes
    place: Place


_ARRAY = msgspec.json.Decoder(_Array)
_KVLIST = msgspec.json.Decoder(_KeyValueList)
_Members = dict[str, msgspec.Raw]
_REQUEST = msgspec.json.Decoder(Request)
_OBJECT = msgspec.json.Decoder(_Members)
_OBJECTS = msgspec.json.Decoder(list[_Members] | None)

_SIGNALS = ("Spans", "Logs", "Metrics", "Profiles")  # the last two are not read, and are no fault
_RESOURCES = frozenset(f"resource{signal}" for signal in _SIGNALS)
_SCOPES = frozenset(f"{scope}{signal}" for scope in ("scope", "instrumentationLibrary") for signal in _SIGNALS)
_RECORDS = frozenset({"spans", "logRecords", "metrics", "profiles"})
_ABOUT = frozenset({"resource", "scope", "instrumentationLibrary"})  # objects that state whose the records are


def items(document: Document) -> Iterator[Item]:
    """The spans and log records of an export request.

    The encoding demands that unknown keys are passed over. An object that has none of the known ones, at a place where
    one of them holds all there is, may hold spans under another: no exporter writes it, but a log that wraps its lines
    does.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`; "unknown-item", it is no export request.
    """
    text, base = document.raw, document.place
    request = decode(_REQUEST, text, file=base.file, line=base.line)
    outer = [*(request.resource_spans or ()), *(request.resource_logs or ())]
    is_read = all(group.is_read for group in outer or [request])
    field = None if is_read else _unread_member(text)
    if field is not None:
        expected = "an export request: resourceSpans or resourceLogs, with scopeSpans or scopeLogs within"
        raise TraceError(Problem("unknown-item", base.file, base.line, field, excerpt(text[:60]), expected))
    for groups in ([request], request.resource_spans or (), request.resource_logs or ()):
        # Keys may come in any order in the file, but the elements of a list do not: each list has its own search.
        places: dict[bool, Places] = {}
        for group in groups:
            listed = [(True, raw) for scope in group.spans for raw in scope.spans or ()]
            listed += [(False, raw) for scope in group.logs for raw in scope.log_records or ()]
            resource = attributes(group.resource.attributes) if group.resource else {}
            for is_span, raw in listed:
                if is_span not in places:
                    places[is_span] = Places(text, 0, base.line)
                line, begin = places[is_span].of(raw)
                yield Item(is_span, raw, resource, Place(base.file, line, base.offset + begin))


def _unread_member(text: bytes) -> str | None:
    """The path of a member where a list of a request would be, "content" for no request; None for one, and for `{}`.

    Args:
      text: a JSON object, of which the members that are read have the right types.
    """
    request = _OBJECT.decode(text)
    if request.keys().isdisjoint(_RESOURCES | _SCOPES):
        return "content" if request else None
    groups = [(f"{key}[{i}].", group) for key in ("resourceSpans", "resourceLogs") for i, group in _each(request, key)]
    for path, group in [*groups, ("", request)]:
        if path and group.keys().isdisjoint(_SCOPES) and (other := _other(group)):
            return path + other
        for key in ("scopeSpans", "scopeLogs", "instrumentationLibrarySpans", "instrumentationLibraryLogs"):
            for i, scope in _each(group, key):
                if scope.keys().isdisjoint(_RECORDS) and (other := _other(scope)):
                    return f"{path}{key}[{i}].{other}"
    return None


def _each(members: _Members, key: str) -> Iterable[tuple[int, _Members]]:
    return enumerate(_OBJECTS.decode(members.get(key, b"null")) or ())


def _other(members: _Members) -> str | None:
    """The first member that holds something and states nothing about the records."""
    holds = (key for key, value in members.items() if bytes(value)[:1] in (b"[", b"{") and len(bytes(value)) > 2)
    return next((printable(key, 200) for key in holds if key not in _ABOUT), None)


def attributes(pairs: list[KeyValue] | None) -> Attributes:
    """Attributes by key. A value of no kind is None."""
    return {pair.key: None if pair.value is None else _value(pair.value) for pair in pairs or ()}


def conflicting(pairs: list[KeyValue] | None) -> str | None:
    """The path of an attribute that occurs twice with two values; None without one."""
    if not pairs or len({pair.key for pair in pairs}) == len(pairs):
        return None
    values: dict[str, _Value | None] = {}
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
    return value if value.array_value or value.kvlist_value else None


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
        if _INTEGER.fullmatch(value):
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
      JSON_ERRORS: it is malformed, or nested deeper than `depth`.
    """
    if not isinstance(value, _Value):
        return value
    if depth == 0:
        raise RecursionError("attribute nested too deeply")
    if value.array_value:
        return [plain(_value(member), depth - 1) for member in _ARRAY.decode(value.array_value).values or ()]
    pairs = _KVLIST.decode(value.kvlist_value).values or ()
    return {pair.key: None if pair.value is None else plain(_value(pair.value), depth - 1) for pair in pairs}
