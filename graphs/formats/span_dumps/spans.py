"""One dumped span in the shape of OTLP: ids in hexadecimal, times in nanoseconds, attributes by dotted key."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime
import functools
import re
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from graphs.errors import Problem, TraceError
from graphs.formats.common.lost_lines import LostLines
from graphs.formats.otlp.gathering import LACKS
from graphs.formats.otlp.strays import Stray
from graphs.formats.otlp.wire import Attributes, Place, WireEvent, WireLink, WireSpan, WireStatus
from graphs.formats.span_dumps.bare_spans import WRAPPERS
from graphs.formats.span_dumps.dump_types import SPAN, Context, Dumped, DumpedSpan, Id, Status, Time
from graphs.formats.span_dumps.mlflow import of_mlflow
from graphs.reading.decode import check_record
from graphs.reading.json_problems import JSON_ERRORS, json_problem
from graphs.text import excerpt

__all__ = ["failed", "first", "identifier", "lost_spans", "nanoseconds", "plain_span", "stray_in"]

_FAILED = WireStatus(2)
_T = TypeVar("_T")
_HEX = re.compile("[0-9a-fA-F]+").fullmatch
_BASE64 = re.compile("[A-Za-z0-9+/]+").fullmatch
_FLATTENED = ("llm.", "retrieval.", "embedding.", "reranker.", "tool.", "message.")


_NOWHERE, _UNKNOWN = Context(), Place("", 0, -1)


class _Ids(msgspec.Struct):
    trace_id: Id = UNSET
    context: Context | UnsetType | None = UNSET


_IDS = msgspec.json.Decoder(_Ids)


class _Loose(msgspec.Struct):
    trace_id: Any = None
    span_id: Any = None
    parent_span_id: Any = None
    parent_id: Any = None
    context: Any = None
    parent: Any = None


_LOOSE = msgspec.json.Decoder(_Loose)


def plain_span(dumped: Dumped) -> tuple[WireSpan, Attributes]:
    """The span in OTLP's shape, and its resource's attributes.

    Raises:
      TraceError: kinds of `graphs.reading.json_problems`, "bad-id", "bad-time",
        "repeated-key".
    """
    span, place = dumped.span, dumped.place
    if not isinstance(span, DumpedSpan):
        raw = span
        try:
            span = SPAN.decode(raw)
        except JSON_ERRORS as error:
            problem = json_problem(error, raw, place.file, place.line)
            raise TraceError(dataclasses.replace(problem, trace=_owner(raw, place))) from error
    context = span.context or _NOWHERE
    trace = _trace_id(first(span.trace_id, context.trace_id), place)
    if isinstance(dumped.span, bytes):
        check_record(dumped.span, file=place.file, line=place.line, trace=trace or "")
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
        span_id=identifier(first(span.span_id, context.span_id), 16, "span_id", place),
        parent_span_id=identifier(parent, 16, "parent_id", place) if parent else None,
        name=span.name or None,
        start_time_unix_nano=nanoseconds(first(span.start_time_unix_nano, span.start_time), "start_time", place, trace),
        end_time_unix_nano=nanoseconds(first(span.end_time_unix_nano, span.end_time), "end_time", place, trace),
        attributes=cast(Any, given),  # by key, which OTLP itself never has
        events=[
            WireEvent(event.name or None, None, cast(Any, _flat(event.attributes or {}))) for event in events or ()
        ],
        links=[WireLink(attributes=cast(Any, _flat(link.attributes or {}))) for link in links or ()],
        status=_FAILED if failed(span) else None,
    )
    return wire, (span.resource.attributes or {}) if span.resource else {}


def lost_spans() -> LostLines:
    """The traces of what cannot be read, with their ids as `plain_span` has them."""
    keys = (*DumpedSpan.__struct_fields__, *WRAPPERS)
    return LostLines(
        "trace_id",
        ("trace_id",),
        LACKS,
        first=keys,
        plain=_trace_id,
        begun=_begun,
        is_deep=True,
        lists=WRAPPERS,
        pages=("data",),
    )


def _begun(cut: str) -> list[str]:
    """What the ids of traces begin with, in hexadecimal, of which this is written; nothing, if they may be any.

    A cut within `0x` or `tr-` leaves no digit. What is left of base64 lacks the sign at its end which tells it, and may
    look like hexadecimal digits; six bits a sign make its digits.
    """
    digits = identifier(cut, 32, "trace_id", _UNKNOWN)
    if not digits or cut in ("0", "t"):
        return []
    signs = cut.rstrip("=")
    if not _BASE64(signs):
        return [digits.lower()]
    number = int.from_bytes(base64.b64decode(signs + "A" * (-len(signs) % 4)), "big")
    bits = (len(signs) + -len(signs) % 4) * 6
    return [digits.lower(), f"{number:0{bits // 4}x}"[: min(len(signs) * 6 // 4, 32)]]


def _owner(raw: bytes, place: Place) -> str:
    """The trace of a span that does not decode, which would be read without it; "" where the span states none."""
    try:
        ids = _IDS.decode(raw)
    except JSON_ERRORS:
        return ""
    return _trace_id(first(ids.trace_id, (ids.context or _NOWHERE).trace_id), place) or ""


def stray_in(span: bytes | DumpedSpan) -> Stray:
    """The ids of a span that does not state its trace, as `plain_span` has them."""
    given: Any = span
    if isinstance(span, bytes):
        try:
            given = _LOOSE.decode(span)
        except JSON_ERRORS:
            return Stray()
    own = _loosely(first(given.span_id, _within(given.context, "span_id")))
    parents = (given.parent_span_id, given.parent_id, _within(given.parent, "span_id"))
    trace = first(given.trace_id, _within(given.context, "trace_id"))
    return Stray(own, next(filter(None, map(_loosely, parents)), ""), isinstance(trace, str) and trace != "")


def _within(holder: object, key: str) -> object:
    return holder.get(key) if isinstance(holder, dict) else getattr(holder, key, None)


def _loosely(written: object) -> str:
    """The id of a span; "" for what is none."""
    if isinstance(written, bool) or not isinstance(written, str | int):
        return ""
    return (identifier(written, 16, "span_id", _UNKNOWN) or "").lower()


def _trace_id(written: Id, place: Place = _UNKNOWN) -> str | None:
    """In lower case, as problems have to name it."""
    plain = identifier(written, 32, "trace_id", place)
    return plain and plain.lower()


def first(one: _T, other: _T) -> _T:
    """The first of two values that is neither absent nor null; else the second."""
    return other if one is None or one is UNSET else one


def failed(span: DumpedSpan) -> bool:
    """Whether the status is that of an error."""
    status = span.status
    if isinstance(status, Status):
        return _any_failed(status.code, status.status_code, span.status_code)
    return _any_failed(status, None, span.status_code)


@functools.lru_cache(maxsize=256, typed=True)
def _any_failed(*codes: object) -> bool:
    return any(str(code).upper().endswith("ERROR") or code == 2 for code in codes if code)


def identifier(value: Id, digits: int, field: str, place: Place) -> str | None:
    """Hexadecimal digits: of a number, without `0x` in front, or out of base64, as MLflow writes ids."""
    if isinstance(value, str) and len(value) == digits and _HEX(value):
        return value
    if isinstance(value, bool):
        raise _bad(field, value, f"{digits} hexadecimal digits", place)
    if isinstance(value, int):
        return f"{value:0{digits}x}" if value >= 0 else str(value)
    if not isinstance(value, str):
        return None
    if value.endswith("="):  # before prefixes go: base64 may begin with any of them
        try:
            return base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return value
    return value.removeprefix("0x").removeprefix("0X").replace("-", "").removeprefix("tr")


def nanoseconds(value: Time, field: str, place: Place, trace: str | None) -> int | str | None:
    """Nanoseconds: a whole number or its digits as they are, seconds with a fraction, or a date of ISO 8601."""
    if isinstance(value, int | float):
        if not 0 <= value < 2**64:
            expected = "nanoseconds or seconds since 1970, or a date of ISO 8601"
            raise _bad(field, value, expected, place, trace or "")
        return value if isinstance(value, int) else int(value * 1e9) if value < 1e11 else int(value)
    if not isinstance(value, str):
        return None
    if value.isdigit():
        return value
    try:
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        raise _bad(field, value, "nanoseconds, or a date of ISO 8601", place, trace or "") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    passed = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    if passed < datetime.timedelta(0):  # 0 would be an unknown time
        raise _bad(field, value, "a date from 1970 on", place, trace or "")
    return (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1000


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
