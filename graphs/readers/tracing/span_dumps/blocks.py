"""Decoded spans as columns, a block at a time; those that need a look of their own are told apart.

Each step here does for a block of spans what `spans.plain_span` and `otlp.spans.make_span` do for one. A span for which
it cannot is *odd*, and these two take it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs.errors import TraceError
from graphs.readers.tracing.otlp.dialects import BadAttribute, Kind, Meaning, emitted_ids
from graphs.readers.tracing.otlp.evaluations import RESULT
from graphs.readers.tracing.otlp.spans import GROUP, NOTE, nanoseconds_of, service_of, span_id_of, trace_id_of
from graphs.readers.tracing.otlp.wire import Attributes, Place, TraceIdOnly
from graphs.readers.tracing.span_columns.plain_spans import LATEST, NO_TIME, PlainSpans
from graphs.readers.tracing.span_dumps.attribute_shapes import Shape, plan
from graphs.readers.tracing.span_dumps.spans import Dumped, DumpedSpan, failed, identifier, nanoseconds

__all__ = ["Blocks"]

_DIGITS = 16
_NONE = "0" * _DIGITS  # what no span has as its id
_NOTHING: Attributes = {}
_NOWHERE = Place("", 0, 0)
_UNDECODED = DumpedSpan()
_UNKNOWN = Meaning(Kind.OTHER, known=False)
_MOST = 2**31
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

    def add(self, block: Sequence[Dumped], index: int) -> None:
        """Append the spans of a block, of which the first has this index, in their order."""
        odd = {i for i, dumped in enumerate(block) if dumped.extra or type(dumped.span) is bytes}
        spans: list[DumpedSpan] = [_UNDECODED if i in odd else dumped.span for i, dumped in enumerate(block)]  # type: ignore[misc]
        odd |= {
            i
            for i, span in enumerate(spans)
            if (span.events or span.span_events or span.links or span.span_kind) and _is_odd(span)
        }
        columns: dict[str, Any] = {
            "id": _ids([_own(span) for span in spans], odd),
            "parent": _ids([_parent(span) for span in spans], odd),
            "start": _times([_either(s.start_time_unix_nano, s.start_time) for s in spans], odd),
            "end": _times([_either(s.end_time_unix_nano, s.end_time) for s in spans], odd),
            "failed": [(span.status is not None or bool(span.status_code)) and failed(span) for span in spans],
            "service": self._services(spans, odd),
        }
        own = self._meanings(spans, odd, columns)
        columns["trace"] = self._register(block, spans, index, odd)
        columns["index"] = np.arange(index, index + len(block))
        files = self._into.files
        columns["file"] = [files[dumped.file] for dumped in block]
        columns["line"] = [dumped.line for dumped in block]
        columns["offset"] = [dumped.offset for dumped in block]
        self._into.extend(columns, own, odd)

    def _register(self, block: Sequence[Dumped], spans: list[DumpedSpan], index: int, odd: set[int]) -> list[int]:
        """The codes of the traces, met in their order; odd spans are given away in their turn."""
        codes = [self._traces.get(_trace(span), -1) for span in spans]
        for i, code in enumerate(codes):
            if code < 0 and i not in odd:
                written = _trace(spans[i])
                codes[i] = self._traces[written] if written in self._traces else self._new(written)
                if codes[i] < 0:
                    odd.add(i)
            if i in odd:
                self._one(block[i], index + i)
        return codes

    def _new(self, written: object) -> int:
        """The code of a trace that was not met as it is written here; -1 if that is no id."""
        if not isinstance(written, str):
            return -1
        try:
            trace = trace_id_of(TraceIdOnly(identifier(written, 32, "trace_id", _NOWHERE)), _NOWHERE)
        except TraceError:
            return -1
        self._meet(trace)
        code = self._traces[written] = self._into.traces[trace]
        return code

    def _services(self, spans: list[DumpedSpan], odd: set[int]) -> list[int]:
        none = self._into.services[""]
        codes = [none] * len(spans)
        for i, span in enumerate(spans):
            if span.resource is not None and span.resource.attributes:
                codes[i] = self._into.services[service_of(span.resource.attributes)]
                if GROUP in span.resource.attributes:
                    odd.add(i)
        return codes

    def _meanings(self, spans: list[DumpedSpan], odd: set[int], columns: dict[str, Any]) -> dict[str, dict[int, Any]]:
        """Fill in the columns of meanings; returns what few spans have, by place in the block."""
        given = [span.attributes or _NOTHING for span in spans]
        members: dict[tuple[tuple[str, ...], tuple[type, ...]], list[int]] = {}
        for i, attributes in enumerate(given):
            members.setdefault((tuple(attributes), tuple(map(type, attributes.values()))), []).append(i)
        codes = [self._into.meanings[_UNKNOWN]] * len(spans)
        counts = {"tokens": [-1] * len(spans), "input_tokens": [-1] * len(spans)}
        own: dict[str, dict[int, Any]] = {"call_ids": {}, "emitted": {}, "responses": {}}
        for key, group in members.items():
            if key not in self._shapes:
                self._shapes[key] = plan(*key)
            shape = self._shapes[key]
            if shape is None:
                odd.update(group)
                continue
            self._look_up(shape, spans, group, codes, odd)
            if not shape.particular:
                continue
            kinds = {i: self._into.meanings.listed[codes[i]].kind for i in group}
            calls = [i for i, kind in kinds.items() if kind is Kind.CALL]
            for column, source in ((counts["tokens"], shape.tokens), (counts["input_tokens"], shape.input_tokens)):
                for i in calls if source is not None else ():
                    amount = given[i][source]
                    if 0 <= amount < _MOST:
                        column[i] = amount
                    else:
                        odd.add(i)
            if shape.messages is not None:
                own["emitted"] |= {i: _asked(given[i][shape.messages]) for i in calls}
            if shape.emitted:
                own["emitted"] |= {i: tuple(given[i][name] for name in shape.emitted) for i in calls}
            if shape.response is not None:
                own["responses"] |= {i: given[i][shape.response] for i in calls}
            if shape.call_id is not None:
                own["call_ids"] |= {i: given[i][shape.call_id] for i, kind in kinds.items() if kind is Kind.TOOL}
        columns |= counts
        columns["meaning"] = codes
        return own

    def _look_up(
        self, shape: Shape, spans: list[DumpedSpan], group: list[int], codes: list[int], odd: set[int]
    ) -> None:
        """Set the codes of the meanings of spans of one shape."""
        pick, known = shape.pick, shape.known
        for i in group:
            span = spans[i]
            code = known.get((span.name, pick(span.attributes)))
            if code is None:
                try:
                    what = shape.meaning(span.name, span.attributes or _NOTHING)
                except BadAttribute:
                    odd.add(i)
                    continue
                code = known[span.name, pick(span.attributes)] = self._into.meanings[what]
            codes[i] = code


def _is_odd(span: DumpedSpan) -> bool:
    """Whether a span has links, events that matter, or a kind beside its attributes."""
    if span.links or (span.span_kind and not span.span_kind.startswith("SpanKind")):
        return True
    return any(event.name in _COUNTED for event in span.events or span.span_events or ())


def _trace(span: DumpedSpan) -> object:
    return span.context.trace_id if span.trace_id is None and span.context else span.trace_id


def _either(one: Any, other: Any) -> Any:
    return other if one is None else one


def _own(span: DumpedSpan) -> object:
    return span.context.span_id if span.span_id is None and span.context else span.span_id


def _parent(span: DumpedSpan) -> object:
    return span.parent_span_id or span.parent_id or (span.parent.span_id if span.parent else None) or _NONE


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


def _times(written: list[Any], odd: set[int]) -> list[int]:
    """Time stamps in nanoseconds, `NO_TIME` where absent."""
    for i, value in enumerate(written):
        if type(value) is not int or not 0 < value < LATEST:
            written[i] = NO_TIME
            try:
                stamp = nanoseconds_of(nanoseconds(value, "time", _NOWHERE, ""), "time", _NOWHERE, "")
            except TraceError:
                odd.add(i)
                continue
            if stamp is not None and stamp >= LATEST:
                odd.add(i)
            elif stamp is not None:
                written[i] = stamp
    return written


def _asked(messages: str) -> tuple[str, ...]:
    """Ids of the tool calls in messages; a text without the word, which only an escape could hide, has none."""
    return emitted_ids(messages) if "tool_call" in messages or "\\u" in messages else ()
