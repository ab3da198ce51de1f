"""One dumped span: what the dumps call its parts, in the shape that OTLP gives them.

Ids become hexadecimal, times nanoseconds, keys of attributes dotted, and MLflow's words become OpenInference's.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.input_tokens import known_sum
from graphs.formats.common.scores import is_written_number
from graphs.formats.otlp.marks import PREFIX
from graphs.formats.otlp.spans import TracedSpan, make_span, trace_id_of
from graphs.formats.otlp.wire import Attributes
from graphs.reading.decode import decode_record
from graphs.reading.documents import Place
from graphs.reading.json_problems import JSON_ERRORS
from graphs.text import excerpt
from graphs.traces.record import ZonelessTime

__all__ = ["METADATA", "SPAN", "SPANS", "Dumped", "DumpedSpan", "assessments", "decoded", "span_of"]

Id = str | int | None
Time = int | float | str | None
Code = int | str | None


class _Context(msgspec.Struct):
    trace_id: Id = None
    span_id: Id = None


class _Status(msgspec.Struct):
    code: Code = None
    status_code: Code = None
    message: Any = None
    description: Any = None


class _Event(msgspec.Struct):
    name: str | None = None
    attributes: dict[str, Any] | None = None


class _Holder(msgspec.Struct):
    """A link, or a resource: of both only the attributes count."""

    attributes: dict[str, Any] | None = None


class DumpedSpan(msgspec.Struct):
    """A span as any of the dumps writes it; each sets some of the fields."""

    name: str | None = None
    trace_id: Id = None
    span_id: Id = None
    parent_span_id: Id = None
    parent_id: Id = None
    parent: _Context | None = None
    context: _Context | None = None
    start_time: Time = None
    end_time: Time = None
    start_time_unix_nano: Time = None
    end_time_unix_nano: Time = None
    span_kind: str | None = None
    status: _Status | str | None = None
    status_code: Code = None
    status_message: Any = None
    attributes: dict[str, Any] | None = None
    events: Sequence[_Event] | None = None
    span_events: Sequence[_Event] | None = None
    links: Sequence[_Holder] | None = None
    resource: _Holder | None = None


SPANS, METADATA = "num_spans", "metadata of the trace"
"""Where an envelope's `extra` has how many spans the trace has, and what its users state of it."""


class Dumped(NamedTuple):
    """A span's JSON and where it stands; its envelope gives `extra` attributes, and `named`, its trace's id."""

    raw: bytes
    place: Place
    extra: Attributes
    named: str = ""


class _Ids(msgspec.Struct):
    trace_id: Id = None
    context: _Context | None = None


SPAN = msgspec.json.Decoder(DumpedSpan)
_IDS = msgspec.json.Decoder(_Ids)
_NO_CONTEXT = _Context()
_HEX = re.compile("[0-9a-fA-F]+").fullmatch
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EXPECTED_TIME = "nanoseconds or seconds since 1970, or a date of ISO 8601"
_SECONDS = 1e11  # a float below it counts seconds: as nanoseconds it would lie in the first 100 seconds of 1970
_NUMBERED = ("llm.", "retrieval.", "embedding.", "reranker.", "tool.", "message.")
"""Prefixes of OpenInference's attributes whose lists of objects are numbered keys."""
_EVALUATIONS = frozenset({"annotations", "evaluations", "trace"})
"""Evaluations count by dotted keys alone: an object of this name may be an argument that the agent chose."""


def decoded(dumped: Dumped) -> DumpedSpan:
    """The span as it is written.

    Raises:
      TraceError: as `graphs.reading.decode.decode_record`, of the span's trace where it states one.
    """
    file, line, _ = dumped.place
    try:
        return decode_record(SPAN, dumped.raw, file=file, line=line)
    except TraceError as error:
        try:
            ids = _IDS.decode(dumped.raw)
            trace = _trace(ids.trace_id, ids.context, dumped.place, dumped.named)
        except (TraceError, *JSON_ERRORS):
            trace = ""
        raise TraceError(dataclasses.replace(error.problem, trace=trace)) from error


def span_of(span: DumpedSpan, place: Place, extra: Attributes, named: str = "") -> tuple[str, TracedSpan]:
    """The id of the span's trace, and what is kept of the span.

    Raises:
      TraceError: "bad-id", "bad-time", and those of `graphs.formats.otlp.spans.make_span`.
    """
    trace = _trace(span.trace_id, span.context, place, named)
    span_id = span.span_id if span.span_id is not None else (span.context or _NO_CONTEXT).span_id
    parent = span.parent_span_id or span.parent_id or (span.parent.span_id if span.parent else None)
    start = span.start_time if span.start_time_unix_nano is None else span.start_time_unix_nano
    end = span.end_time if span.end_time_unix_nano is None else span.end_time_unix_nano
    attributes = _flat(span.attributes or {})
    if span.span_kind and not span.span_kind.startswith("SpanKind"):  # OpenTelemetry's own kinds tell nothing
        attributes = {"openinference.span.kind": span.span_kind} | attributes
    if "mlflow.spanType" in attributes:
        attributes = _of_mlflow(attributes)
    resource = (span.resource.attributes or {}) if span.resource else {}
    made = make_span(
        trace,
        (_identifier(span_id, 16, "span_id", place), _identifier(parent, 16, "parent_id", place) if parent else None),
        span.name or "",
        (_nanoseconds(start, "start_time", place, trace), _nanoseconds(end, "end_time", place, trace)),
        attributes | extra if extra else attributes,
        resource,
        place,
        codes=_codes(span),
        message=_message(span),
        events=[(event.name, None, _flat(event.attributes or {})) for event in span.events or span.span_events or ()],
        links=[_flat(link.attributes or {}) for link in span.links or ()],
    )
    if _has_no_zone(start):
        made.start = ZonelessTime(made.start)
    if _has_no_zone(end):
        made.end = ZonelessTime(made.end)
    return trace, made


def _has_no_zone(time: Time) -> bool:
    """Whether a time, which was read as nanoseconds before, is a date without a zone."""
    is_date = isinstance(time, str) and time != "" and not time.isdigit()
    return is_date and datetime.datetime.fromisoformat(str(time)).tzinfo is None


def _trace(written: Id, context: _Context | None, place: Place, named: str) -> str:
    """The id of a trace: hexadecimal, or as the product shows it, a UUID with its dashes, or `tr-…` of MLflow."""
    value = written if written is not None else (context or _NO_CONTEXT).trace_id
    trace = trace_id_of(_identifier(value, 32, "trace_id", place), place)
    if named == f"tr-{trace}":
        return named
    return value.lower() if isinstance(value, str) and "-" in value and _UUID(value) else trace


def _codes(span: DumpedSpan) -> tuple[Any, ...]:
    status = span.status
    codes = (status.code, status.status_code) if isinstance(status, _Status) else (status,)
    return *codes, span.status_code


def _message(span: DumpedSpan) -> Any:
    status = span.status if isinstance(span.status, _Status) else _Status()
    return status.message or status.description or span.status_message


def _identifier(value: Id, digits: int, field: str, place: Place) -> str | None:
    """Hexadecimal digits: of a number, without `0x` in front, or out of base64, as MLflow writes ids."""
    if isinstance(value, str):
        if len(value) == digits and _HEX(value):
            return value
        if value.endswith("="):  # before prefixes go: base64 may begin with any of them
            try:
                return base64.b64decode(value, validate=True).hex()
            except (binascii.Error, ValueError):
                return value
        return value.removeprefix("0x").removeprefix("0X").replace("-", "").removeprefix("tr")
    if isinstance(value, bool):
        raise _bad("bad-id", field, value, f"{digits} hexadecimal digits", place)
    if isinstance(value, int):
        return f"{value:0{digits}x}" if value >= 0 else str(value)
    return None


def _nanoseconds(value: Time, field: str, place: Place, trace: str) -> int | str | None:
    """Nanoseconds: a whole number or its digits as they are, seconds with a fraction, or a date of ISO 8601."""
    if isinstance(value, int | float):
        if not 0 <= value < 2**64:
            raise _bad("bad-time", field, value, _EXPECTED_TIME, place, trace)
        return value if isinstance(value, int) else int(value * 1e9) if value < _SECONDS else int(value)
    if not isinstance(value, str) or value.isdigit():
        return value
    try:
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        raise _bad("bad-time", field, value, "nanoseconds, or a date of ISO 8601", place, trace) from None
    passed = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)) - _EPOCH
    if passed < datetime.timedelta(0):  # 0 would be an unknown time
        raise _bad("bad-time", field, value, "a date from 1970 on", place, trace)
    return (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1000


def _bad(kind: str, field: str, value: object, expected: str, place: Place, trace: str = "") -> TraceError:
    return TraceError(Problem(kind, place.file, place.line, field, excerpt(value), expected, trace))


def _flat(nested: dict[str, Any]) -> Attributes:
    """Attributes by dotted key: Phoenix nests them, and makes lists of OpenInference's numbered keys."""
    if not {dict, list} & set(map(type, nested.values())):
        return nested
    flat: Attributes = {}
    waiting: list[tuple[str, Any]] = list(reversed(nested.items()))
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict) and key not in _EVALUATIONS:
            waiting += [(f"{key}.{name}", part) for name, part in reversed(value.items())]
        elif isinstance(value, list) and key.startswith(_NUMBERED) and any(isinstance(part, dict) for part in value):
            waiting += [(f"{key}.{number}", part) for number, part in reversed(list(enumerate(value)))]
        else:
            flat[key] = value
    return flat


# MLflow keeps attributes as JSON texts: `mlflow.spanType` is `"CHAT_MODEL"` with its quotes.

_COUNTS = {int, type(None)}
_OF_CACHE = ("prompt_details.cache_read", "prompt_details.cache_write")
_MLFLOW_KINDS = {"CHAT_MODEL": "LLM", "MEMORY": "TOOL"} | {kind: "CHAIN" for kind in ("PARSER", "TASK", "WORKFLOW")}
"""MLflow's kinds of spans in OpenInference's words; any other has its own word there, or is a user's."""


def _of_mlflow(span_attributes: Attributes) -> Attributes:
    """Attributes of a span, with those of MLflow translated; as they are where its kind is no text."""
    kind = _json(span_attributes["mlflow.spanType"])
    if not isinstance(kind, str):
        return span_attributes
    attributes: Attributes = {"openinference.span.kind": _MLFLOW_KINDS.get(kind, kind)}
    attributes["output.value"] = span_attributes.get("mlflow.spanOutputs")
    usage = _json(span_attributes.get("mlflow.chat.tokenUsage"))
    if isinstance(usage, dict):
        names = ("output_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        written, *read = map(usage.get, names)
        if _json(span_attributes.get("mlflow.message.format")) == "anthropic" and {*map(type, read)} <= _COUNTS:
            read[0] = known_sum(*read)  # in Anthropic's words those of a cache stand beside
        counts = dict(zip(("completion", "prompt", *_OF_CACHE), (written, *read), strict=True))
        attributes |= {f"llm.token_count.{name}": count for name, count in counts.items() if count is not None}
    asked = _json(span_attributes.get("mlflow.llm.model"))
    if asked and isinstance(asked, str):
        answer = _json(span_attributes.get("mlflow.spanOutputs"))
        answered = answer.get("model") if isinstance(answer, dict) else None
        attributes["llm.model_name"] = answered if isinstance(answered, str) else asked
        attributes["llm.invocation_parameters"] = msgspec.json.encode({"model": asked}).decode()
    cost = _json(span_attributes.get("mlflow.llm.cost"))
    if isinstance(cost, dict):
        attributes["llm.cost.total"] = cost.get("total_cost")
    return attributes | {key: value for key, value in span_attributes.items() if not key.startswith("mlflow.")}


def assessments(info: Any) -> Attributes:
    """What an MLflow trace's assessments state, as evaluations of the trace, its state if that is an error; `SPANS`;
    `METADATA`.

    Assessments of a single span are left out. So are overridden ones, which MLflow keeps in the trace. A number or a
    truth that is written as a text is passed on as it is: who reads the evaluations refuses it by name.
    """
    listed = info.get("assessments") if isinstance(info, dict) else None
    found = [assessment for assessment in listed if isinstance(assessment, dict)] if isinstance(listed, list) else []
    overridden = {name for assessment in found if isinstance(name := assessment.get("overrides"), str)}
    attributes: Attributes = {}
    if isinstance(info, dict) and "ERROR" in (info.get("state"), info.get("status")):
        attributes[f"{PREFIX}error"] = "the trace's state is ERROR"
    stated = info.get("trace_metadata") or info.get("request_metadata") if isinstance(info, dict) else None
    size = _json(stated.get("mlflow.trace.sizeStats")) if isinstance(stated, dict) else None
    if isinstance(size, dict) and isinstance(count := size.get("num_spans"), int):
        attributes[SPANS] = count
    tags = info.get("tags") if isinstance(info, dict) else None
    about = {key: one for each in (stated, tags) if isinstance(each, dict) for key, one in each.items()}
    name = about.get("mlflow.traceName")
    attributes[METADATA] = {"name": name, **about} if name else about
    for number, assessment in enumerate(found):
        if (
            assessment.get("span_id")
            or assessment.get("valid") is False
            or assessment.get("assessment_id") in overridden
        ):
            continue
        feedback = assessment.get("feedback")
        name = assessment.get("assessment_name", assessment.get("name"))
        source = assessment.get("source")
        value = feedback.get("value") if isinstance(feedback, dict) else None
        stem = f"trace.evaluations.{number}.evaluation"
        if isinstance(source, dict):
            attributes[f"{stem}.annotator_kind"] = source.get("source_type")
        if isinstance(name, str) and (isinstance(value, bool | int | float) or is_written_number(value)):
            attributes |= {f"{stem}.name": name, f"{stem}.score": float(value) if isinstance(value, bool) else value}
        elif isinstance(name, str) and name and isinstance(value, str) and value:
            attributes |= {f"{stem}.name": name, f"{stem}.label": value}
    return attributes


def _json(value: Any) -> Any:
    """What a JSON text holds; another value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except JSON_ERRORS:
        return value
