"""Decoded spans as columns, a block at a time; those that need a look of their own are told apart.

Each step here does for a block of spans what `spans.plain_span` and `otlp.spans.make_span` do for one. A span for which
it cannot is *odd*, and these two take it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import UNSET

from graphs.errors import TraceError
from graphs.readers.tracing.otlp.dialects import BadAttribute, Kind, Meaning, emitted_ids
from graphs.readers.tracing.otlp.evaluations import RESULT
from graphs.readers.tracing.otlp.spans import GROUP, NOTE, nanoseconds_of, service_of, span_id_of, trace_id_of
from graphs.readers.tracing.otlp.wire import Attributes, Place, TraceIdOnly
from graphs.readers.tracing.span_columns.plain_spans import LATEST, NO_TIME, PlainSpans
from graphs.readers.tracing.span_dumps.attribute_shapes import Shape, plan
from graphs.readers.tracing.span_dumps.dump_types import Batch, Dumped, DumpedSpan, Status
from graphs.readers.tracing.span_dumps.spans import failed, first, identifier, nanoseconds

__all__ = ["Blocks"]

_DIGITS = 16
_NONE = "0" * _DIGITS  # what no span has as its id
_NOTHING: Attributes = {}
_NOWHERE = Place("", 0, 0)
_UNKNOWN = Meaning(Kind.OTHER, known=False)
_MOST = 2**31
_REFUSED = -2
_COUNTED = (RESULT, NOTE)  # names of the events of a span that matter


class Blocks:
    """Puts blocks of spans into columns; remembers the shapes of attributes and the ids of traces.

    Args:
      into: the columns.
      meet: is told the id of a trace when it comes first.
      one: takes an odd span, with its index.
    """

    def __init__(self, into: PlainSpans, meet: Callable[[str], None], one: Callable[[Dumped, int], None]) -> None:
        self._into, self._meet, self._one = into, meet, one
        self._shapes: dict[tuple[tuple[str, ...], tuple[type, ...]], Shape | None] = {}
        self._traces: dict[object, int] = {}  # codes by the id as it is written

    def add(self, batch: Batch, index: int) -> None:
        """Append the spans of a batch, of which the first has this index, in their order."""
        spans = batch.spans
        odd = set(batch.odd)
        odd |= {
            i
            for i, span in enumerate(spans)
            if (span.events or span.span_events or span.links or span.span_kind) and _is_odd(span)
        }
        written = [span.span_id for span in spans]
        parents = [
            span.parent_span_id or span.parent_id or (span.parent and span.parent.span_id) or _NONE for span in spans
        ]
        columns: dict[str, Any] = {
            "id": _ids([_own(span) for span in spans] if None in written or UNSET in written else written, odd),
            "parent": _ids(parents, odd),
            "start": _times(
                [first(s.start_time_unix_nano, s.start_time) for s in spans], odd
            ),
            "end": _times([first(s.end_time_unix_nano, s.end_time) for s in spans], odd),
            "failed": _failures(spans),
            "service": self._services(spans, odd),
            "index": np.arange(index, index + len(spans)),
            "file": np.full(len(spans), self._into.files[batch.file]),
            "line": batch.lines,
            "offset": batch.offsets,
        }
        own = self._meanings(spans, odd, columns)
        columns["trace"] = self._register(batch, index, odd)
        self._into.extend(columns, own, odd)

    def _register(self, batch: Batch, index: int, odd: set[int]) -> np.ndarray:
        """The codes of the traces, met in their order; odd spans are given away in their turn."""
        spans = batch.spans
        written: list[Any] = [span.trace_id for span in spans]
        if None in written or UNSET in written:
            written = [_trace(span) for span in spans]
        names = {one: _name(one) for one in dict.fromkeys(written) if one not in self._traces}
        if None in names.values():
            odd.update(i for i, one in enumerate(written) if one in names and names[one] is None)
        plain = [i for i in range(len(spans)) if i not in odd] if odd else range(len(spans))
        first = {written[i]: i for i in reversed(plain) if written[i] in names} if names else {}
        for i in sorted({*odd, *first.values()}):
            if i in odd:
                self._one(batch.dumped(i), index + i)
            else:
                name = names[written[i]]
                self._meet(str(name))
                self._traces[written[i]] = self._into.traces[name]
        return np.array([self._traces.get(one, 0) for one in written])

    def _services(self, spans: list[DumpedSpan], odd: set[int]) -> np.ndarray:
        codes = np.full(len(spans), self._into.services[""])
        for i, given in [(i, span.resource.attributes) for i, span in enumerate(spans) if span.resource]:
            if given:
                codes[i] = self._into.services[service_of(given)]
                if GROUP in given:
                    odd.add(i)
        return codes

    def _meanings(self, spans: list[DumpedSpan], odd: set[int], columns: dict[str, Any]) -> dict[str, dict[int, Any]]:
        """Fill in the columns of meanings; returns what few spans have, by place in the block."""
        given = [span.attributes or _NOTHING for span in spans]
        members: dict[tuple[tuple[str, ...], tuple[type, ...]], list[int]] = {}
        for i, attributes in enumerate(given):
            key = tuple(attributes), tuple(map(type, attributes.values()))
            if key in members:
                members[key].append(i)
            else:
                members[key] = [i]
        codes = np.full(len(spans), self._into.meanings[_UNKNOWN])
        counts = {"tokens": np.full(len(spans), -1, np.int64), "input_tokens": np.full(len(spans), -1, np.int64)}
        own: dict[str, dict[int, Any]] = {"call_ids": {}, "emitted": {}, "responses": {}}
        for key, group in members.items():
            if key not in self._shapes:
                self._shapes[key] = plan(*key)
            shape = self._shapes[key]
            if shape is None:
                odd.update(group)
                continue
            codes[group] = self._look_up(shape, spans, group, odd)
            for name, source in (("tokens", shape.tokens), ("input_tokens", shape.input_tokens)):
                if source is not None:
                    counts[name][group] = [_count(given[i][source]) for i in group]
            if shape.messages is not None:
                own["emitted"] |= {i: _asked(given[i][shape.messages]) for i in group}
            if shape.emitted:
                own["emitted"] |= {i: tuple(given[i][name] for name in shape.emitted) for i in group}
            if shape.response is not None:
                own["responses"] |= {i: given[i][shape.response] for i in group}
            if shape.call_id is not None:
                own["call_ids"] |= {i: given[i][shape.call_id] for i in group}
        calling = np.array([what.kind is Kind.CALL for what in self._into.meanings.listed], bool)[codes]
        for amounts in counts.values():
            amounts[~calling] = -1  # of others nothing is asked
            odd.update(np.flatnonzero(amounts == _REFUSED).tolist())
        columns |= counts
        columns["meaning"] = codes
        return own

    def _look_up(self, shape: Shape, spans: list[DumpedSpan], group: list[int], odd: set[int]) -> list[int]:
        """The codes of the meanings of spans of one shape."""
        pick, known = shape.pick, shape.known
        codes = [known.get((spans[i].name, pick(spans[i].attributes))) for i in group]
        if None not in codes:
            return codes  # type: ignore[return-value]
        for place, i in enumerate(group):
            span = spans[i]
            key = span.name, pick(span.attributes)
            try:
                if key not in known:
                    known[key] = self._into.meanings[shape.meaning(span.name, span.attributes or _NOTHING)]
                codes[place] = known[key]
            except BadAttribute:
                odd.add(i)
                codes[place] = self._into.meanings[_UNKNOWN]
        return codes  # type: ignore[return-value]


def _name(written: object) -> str | None:
    """The id of a trace as all spans of it have it; None for what is no id, or is not text."""
    if not isinstance(written, str):
        return None
    try:
        return trace_id_of(TraceIdOnly(identifier(written, 32, "trace_id", _NOWHERE)), _NOWHERE)
    except TraceError:
        return None


def _is_odd(span: DumpedSpan) -> bool:
    """Whether a span has links, events that matter, or a kind beside its attributes."""
    if span.links or (span.span_kind and not span.span_kind.startswith("SpanKind")):
        return True
    return any(event.name in _COUNTED for event in span.events or span.span_events or ())


def _trace(span: DumpedSpan) -> object:
    return first(span.trace_id, span.context.trace_id) if span.context else span.trace_id


def _own(span: DumpedSpan) -> object:
    return first(span.span_id, span.context.span_id) if span.context else span.span_id


def _ids(written: list[Any], odd: set[int]) -> np.ndarray:
    """Ids of spans as numbers; 0 for `_NONE` itself, and for odd ones."""
    try:
        if set(map(len, written)) == {_DIGITS}:
            digits = bytes.fromhex("".join(written))  # drops blanks
            if 2 * len(digits) == _DIGITS * len(written):
                numbers = np.frombuffer(digits, ">u8").astype(np.uint64)
                odd.update(i for i in np.flatnonzero(numbers == 0).tolist() if written[i] is not _NONE)
                return numbers
    except (TypeError, ValueError):
        pass
    numbers = np.zeros(len(written), np.uint64)
    for i, value in enumerate(written):
        if value is _NONE:
            continue
        try:
            text = identifier(value, _DIGITS, "span_id", _NOWHERE) if isinstance(value, str) else None
            numbers[i] = int(span_id_of(text, "span_id", _NOWHERE, ""), 16)
        except TraceError:
            odd.add(i)
    return numbers


def _times(written: list[Any], odd: set[int]) -> np.ndarray:
    """Time stamps in nanoseconds, `NO_TIME` where absent."""
    if set(map(type, written)) == {int} and min(written) > 0 and max(written) < LATEST:
        return np.array(written, np.int64)
    stamps = np.full(len(written), NO_TIME, np.int64)
    for i, value in enumerate(written):
        try:
            stamp = nanoseconds_of(nanoseconds(value, "time", _NOWHERE, ""), "time", _NOWHERE, "")
        except TraceError:
            odd.add(i)
            continue
        if stamp is not None and stamp >= LATEST:
            odd.add(i)
        elif stamp is not None:
            stamps[i] = stamp
    return stamps


def _failures(spans: list[DumpedSpan]) -> np.ndarray:
    failures = np.zeros(len(spans), bool)
    for i, span in enumerate(spans):
        status = span.status
        is_fine = not status or (isinstance(status, Status) and status.code == "OK" and not status.status_code)
        if span.status_code or not is_fine:
            failures[i] = failed(span)
    return failures


def _count(amount: int) -> int:
    return amount if 0 <= amount < _MOST else _REFUSED


def _asked(messages: str) -> tuple[str, ...]:
    """Ids of the tool calls in messages; a text without the word, which only an escape could hide, has none."""
    return emitted_ids(messages) if "tool_call" in messages or "\\u" in messages else ()
