"""Spans, log records and attributes of OTLP JSON as they are written.

The shapes are those of the OpenTelemetry protocol's JSON encoding: lowerCamelCase keys, hexadecimal ids, 64-bit
integers as decimal strings (numbers are taken too), enumerations as integers. Unknown keys are ignored, as the encoding
demands.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from graphs.text import printable

__all__ = [
    "Attributes", "KeyValue", "Place", "TraceIdOnly", "WireEvent", "WireLink", "WireLog", "WireSpan", "WireStatus",
    "attributes", "conflicting", "is_text", "number", "plain",
]  # fmt: skip

Attributes = dict[str, Any]  # attribute values as Python values; arrays and maps stay encoded until `plain`


class Place(NamedTuple):
    """Where a record starts: file, line from 1, offset in bytes of the decompressed file."""

    file: str
    line: int
    offset: int


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

    trace_id: str | None = None
    span_id: str | None = None
    attributes: list[KeyValue] | None = None


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


class TraceIdOnly(msgspec.Struct, rename="camel"):
    """The trace id of a span or log record that does not decode; its trace is refused."""

    trace_id: str | None = None


_ARRAY = msgspec.json.Decoder(_Array)
_KVLIST = msgspec.json.Decoder(_KeyValueList)


def attributes(pairs: list[KeyValue] | Attributes | None) -> Attributes:
    """Attributes by key. A value of no kind is None.

    Attributes that are plain values by key already, as in dumps that are not OTLP, stay as they are.
    """
    if isinstance(pairs, dict):
        return pairs
    return {pair.key: None if pair.value is None else _value(pair.value) for pair in pairs or ()}


def conflicting(pairs: list[KeyValue] | None) -> str | None:
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
