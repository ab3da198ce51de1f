"""Texts that hold spans alone, not wrappers of spans: one text, or many at once.

Many texts are decoded in one call, and keys that stand twice are looked for in all of them together: a text has as many
colons as what was decoded of it, written again, or it states more than was kept. Only where the numbers differ, or a
text is something else than a span, each is looked at by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from graphs.formats.span_dumps.dump_types import SPAN, Context, DumpedSpan, Event, Link, Resource, Status
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.repeated_keys import keeps_all_pairs, repeated_anywhere
from graphs.traces.limits import Limits

__all__ = ["WRAPPERS", "Bare", "bare_span", "bare_spans", "one_a_line"]

WRAPPERS = ("spans", "data", "trace", "traces")
"""Keys under which dumps hold lists of spans."""

_OPEN, _CLOSE, _NEWLINE = (ord(sign) for sign in "{}\n")


_Scalar = str | int | float | bool | None
_Flat = _Scalar | UnsetType
_FlatAttributes = dict[str, _Scalar | list[_Scalar]] | UnsetType | None


class Bare(NamedTuple):
    """Decoded spans, and whether their attributes hold no objects."""

    spans: list[DumpedSpan]
    flat: bool


class _Bare(DumpedSpan, gc=False):
    """A span and what would make it a wrapper of spans."""

    spans: msgspec.Raw | UnsetType = UNSET
    data: msgspec.Raw | UnsetType = UNSET
    trace: msgspec.Raw | UnsetType = UNSET
    traces: msgspec.Raw | UnsetType = UNSET


class _FlatContext(Context, gc=False):
    trace_state: _Flat = UNSET
    trace_flags: _Flat = UNSET
    is_remote: _Flat = UNSET


class _FlatStatus(Status, gc=False):
    message: _Flat = UNSET
    description: _Flat = UNSET


class _FlatEvent(Event, gc=False):
    attributes: _FlatAttributes = UNSET
    timestamp: _Flat = UNSET


class _FlatLink(Link, gc=False):
    context: _FlatContext | UnsetType | None = UNSET
    attributes: _FlatAttributes = UNSET


class _FlatResource(Resource, gc=False):
    attributes: _FlatAttributes = UNSET
    schema_url: _Flat = UNSET


class _FlatSpan(DumpedSpan, gc=False):
    """A span whose attributes hold no objects, with what dumps often say and nothing needs, so that its pairs count.

    It nests at most `_DEEPEST` lists and objects within each other.
    """

    parent: _FlatContext | UnsetType | None = UNSET
    context: _FlatContext | UnsetType | None = UNSET
    status: _FlatStatus | str | UnsetType | None = UNSET
    attributes: _FlatAttributes = UNSET
    events: tuple[_FlatEvent, ...] | UnsetType | None = UNSET
    span_events: tuple[_FlatEvent, ...] | UnsetType | None = UNSET
    links: tuple[_FlatLink, ...] | UnsetType | None = UNSET
    resource: _FlatResource | UnsetType | None = UNSET
    kind: _Flat = UNSET
    scope: _FlatAttributes = UNSET


_DEEPEST = 5
_BARE = msgspec.json.Decoder(_Bare)
_FLAT = msgspec.json.Decoder(_FlatSpan)
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def bare_span(text: bytes) -> DumpedSpan | None:
    """The span that a text is; None for one that may hold spans, is no text, does not decode, or states a key twice."""
    try:
        span = _BARE.decode(text)
    except JSON_ERRORS:
        return None
    if not (span.spans is span.data is span.trace is span.traces is UNSET) or not is_utf8(text):
        return None
    return None if repeated_anywhere(text) is not None else span


def bare_spans(text: bytes, ends: np.ndarray, limits: Limits) -> Bare | None:
    """The spans of objects behind each other; None where `bare_span` of one may be None, or one is beyond the limits.

    Args:
      text: the objects.
      ends: where each ends.
      limits: what they may be.
    """
    if len(text) > min(limits.record_bytes, limits.string_bytes) or not is_utf8(text):
        return None
    try:
        try:
            spans: list[Any] = _FLAT.decode_lines(text)
            if len(spans) == len(ends) and keeps_all_pairs(text, spans) and limits.depth >= _DEEPEST:
                return Bare(spans, True)
            flat = True
        except msgspec.ValidationError:
            spans, flat = SPAN.decode_lines(text), False
        values = [] if len(spans) != len(ends) or limits.may_refuse(text, ends) else _ANYTHING.decode_lines(text)
    except JSON_ERRORS:
        return None
    if not values or any(key in value for value in values for key in WRAPPERS) or not keeps_all_pairs(text, values):
        return None
    return Bare(spans, flat)


def one_a_line(text: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """The starts and ends of the lines of a text whose lines all begin and end as objects do; None for any other text.

    Where it decodes to as many objects as it has lines, each line is one: an object that goes on in another line has a
    comma before or behind the end of the line, or no brace on either side.
    """
    if not text:
        return None
    content = np.frombuffer(text, np.uint8)
    newlines = (content == _NEWLINE).nonzero()[0]
    starts, ends = np.concatenate([[0], newlines + 1]), np.concatenate([newlines, [len(text)]])
    if starts[-1] == len(text) or (content[starts] != _OPEN).any() or (content[ends - 1] != _CLOSE).any():
        return None
    return starts, ends
