"""Texts that hold spans alone, not wrappers of spans: one text, or many at once.

Many texts are decoded in one call, and keys that stand twice are looked for in all of them together: a text has as many
colons as what was decoded of it, written again, or it states more than was kept. Only where the numbers differ, or a
text is something else than a span, each is looked at by itself.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from graphs.readers.common.json_problems import JSON_ERRORS
from graphs.readers.common.repeated_keys import keeps_all_pairs, repeated_anywhere
from graphs.readers.tracing.span_dumps.dump_types import Context, DumpedSpan, Event, Link, Resource, Status

__all__ = ["WRAPPERS", "bare_span", "bare_spans", "one_a_line"]

WRAPPERS = ("spans", "data", "trace", "traces")
"""Keys under which dumps hold lists of spans."""

_OPEN, _CLOSE, _NEWLINE = (ord(sign) for sign in "{}\n")


class _Bare(DumpedSpan, gc=False):
    """A span and what would make it a wrapper of spans."""

    spans: msgspec.Raw | UnsetType = UNSET
    data: msgspec.Raw | UnsetType = UNSET
    trace: msgspec.Raw | UnsetType = UNSET
    traces: msgspec.Raw | UnsetType = UNSET


class _WholeContext(Context, gc=False):
    trace_state: Any = UNSET
    trace_flags: Any = UNSET
    is_remote: Any = UNSET


class _WholeStatus(Status, gc=False):
    message: Any = UNSET
    description: Any = UNSET


class _WholeEvent(Event, gc=False):
    timestamp: Any = UNSET


class _WholeLink(Link, gc=False):
    context: _WholeContext | UnsetType | None = UNSET


class _WholeResource(Resource, gc=False):
    schema_url: Any = UNSET


class _Whole(DumpedSpan, gc=False):
    """A span with what dumps often say and nothing needs, so that its pairs can be counted."""

    parent: _WholeContext | UnsetType | None = UNSET
    context: _WholeContext | UnsetType | None = UNSET
    status: _WholeStatus | str | UnsetType | None = UNSET
    events: list[_WholeEvent] | UnsetType | None = UNSET
    span_events: list[_WholeEvent] | UnsetType | None = UNSET
    links: list[_WholeLink] | UnsetType | None = UNSET
    resource: _WholeResource | UnsetType | None = UNSET
    kind: Any = UNSET
    scope: Any = UNSET
    id: Any = UNSET
    status_message: Any = UNSET


_BARE = msgspec.json.Decoder(_Bare)
_WHOLE = msgspec.json.Decoder(_Whole)
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def bare_span(text: bytes) -> DumpedSpan | None:
    """The span that a text is; None for one that may hold spans, does not decode, or states a key twice."""
    try:
        span = _BARE.decode(text)
    except JSON_ERRORS:
        return None
    if not (span.spans is span.data is span.trace is span.traces is UNSET) or repeated_anywhere(text) is not None:
        return None
    return span


def bare_spans(text: bytes, count: int) -> list[DumpedSpan] | None:
    """The spans of `count` objects behind each other; None where `bare_span` of one of them may be None."""
    try:
        spans: list[Any] = _WHOLE.decode_lines(text)
        if len(spans) != count:
            return None
        if keeps_all_pairs(text, spans):
            return spans
        values = _ANYTHING.decode_lines(text)
    except JSON_ERRORS:
        return None
    if any(key in value for value in values for key in WRAPPERS) or not keeps_all_pairs(text, values):
        return None
    return spans


def one_a_line(text: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """The starts and ends of the lines of a text whose lines all begin and end as objects do; None for any other text.

    Where it decodes to as many objects as it has lines, each line is one: an object that goes on in another line has a
    comma before or behind the end of the line, or no brace on either side.
    """
    content = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(content == _NEWLINE)
    if not len(ends) or ends[-1] + 1 < len(text):
        ends = np.append(ends, len(text))
    starts = np.concatenate([[0], ends[:-1] + 1])
    sound = np.all(starts < ends) and np.all(content[starts] == _OPEN) and np.all(content[ends - 1] == _CLOSE)
    return (starts, ends) if sound else None
