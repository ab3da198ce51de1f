"""OTLP files cut into spans and log records: export requests, one a line or one a file.

Each span and each log record is left encoded, so that a malformed one spoils its own trace and no other. The encoding
demands that unknown keys are passed over. An object that has none of the known ones, at a place where one of them holds
all there is, may hold spans under another: no exporter writes it, but a log that wraps its lines does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.otlp.wire import Attributes, KeyValue, Place, attributes
from graphs.reading.decode import refuse_repeated
from graphs.reading.documents import Places
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS, json_problem, not_utf8
from graphs.reading.repeated_keys import repeated_where_read
from graphs.reading.source import Lost, Source
from graphs.text import excerpt, printable

__all__ = ["Item", "items"]

_Members = dict[str, msgspec.Raw]
_SIGNALS = ("Spans", "Logs", "Metrics", "Profiles")  # the last two are not read, and are no fault
_RESOURCES = frozenset(f"resource{signal}" for signal in _SIGNALS)
_SCOPES = frozenset(f"{scope}{signal}" for scope in ("scope", "instrumentationLibrary") for signal in _SIGNALS)
_RECORDS = frozenset({"spans", "logRecords", "metrics", "profiles"})
_ABOUT = frozenset({"resource", "scope", "instrumentationLibrary"})  # objects that state whose the records are


class Item(NamedTuple):
    """One span or log record, still encoded, with its resource's attributes, and the place of its request."""

    is_span: bool
    raw: msgspec.Raw
    resource: Attributes
    place: Place
    request: Place


class _Resource(msgspec.Struct):
    attributes: list[KeyValue] | None = None


class _ScopeSpans(msgspec.Struct):
    spans: list[msgspec.Raw] | None = None


class _ScopeLogs(msgspec.Struct, rename="camel"):
    log_records: list[msgspec.Raw] | None = None


class _Of(msgspec.Struct, rename="camel"):
    """The records of one resource, or, at the top, of a file that leaves out the outermost list.

    The protocol called a scope an instrumentation library until 2022. While it changed, exporters wrote the same
    records under both names, and the protocol says that the newer one is read then.
    """

    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None
    scope_logs: list[_ScopeLogs] | None = None
    instrumentation_library_spans: list[_ScopeSpans] | None = None
    instrumentation_library_logs: list[_ScopeLogs] | None = None

    @property
    def spans(self) -> Iterator[msgspec.Raw]:
        """The spans of all scopes."""
        for scope in self.scope_spans or self.instrumentation_library_spans or ():
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
        for scope in self.scope_logs or self.instrumentation_library_logs or ():
            yield from scope.log_records or ()


class _Request(_Of, rename="camel"):
    resource_spans: list[_Of] | None = None
    resource_logs: list[_Of] | None = None


_TRACE_ID = re.compile(rb"(?<![0-9a-fA-F])[0-9a-fA-F]{32}(?![0-9a-fA-F])")
_REQUEST = msgspec.json.Decoder(_Request)
_OBJECT = msgspec.json.Decoder(_Members)
_OBJECTS = msgspec.json.Decoder(list[_Members] | None)


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
    field = None if _is_read(request) else _unread_member(text)
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
        _OBJECT.decode(first)
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
