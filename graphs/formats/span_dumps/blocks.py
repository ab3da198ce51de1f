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
from graphs.formats.otlp.evaluations import RESULT
from graphs.formats.otlp.spans import GROUP, NOTE, nanoseconds_of, service_of, span_id_of, trace_id_of
from graphs.formats.otlp.wire import Place, TraceIdOnly
from graphs.formats.span_columns.plain_spans import LATEST, NO_TIME, PlainSpans, integers
from graphs.formats.span_dumps.attribute_columns import AttributeColumns
from graphs.formats.span_dumps.dump_types import Batch, Context, Dumped, DumpedSpan
from graphs.formats.span_dumps.spans import failed, first, identifier, nanoseconds

__all__ = ["Blocks"]

_DIGITS, _TRACE_DIGITS = 16, 32
_NONE = "0" * _DIGITS  # what no span has as its id
_NOWHERE = Place("", 0, 0)
_NO_CONTEXT = Context()
_COUNTED = (RESULT, NOTE)  # names of the events of a span that matter


class Blocks:
    """Puts blocks of spans into columns; remembers the ids of traces.

    Args:
      into: the columns.
      meet: is told the id of a trace when it comes first.
      one: takes an odd span, with its index.
    """

    def __init__(self, into: PlainSpans, meet: Callable[[str], None], one: Callable[[Dumped, int], None]) -> None:
        self._into, self._meet, self._one = into, meet, one
        self._attributes = AttributeColumns(into.meanings)
        self._traces: dict[object, int] = {}  # codes by the id as it is written

    def add(self, batch: Batch, index: int) -> None:
        """Append the spans of a batch, of which the first has this index, in their order."""
        spans = batch.spans
        more = [
            i
            for i, s in enumerate(spans)
            if s.events or s.span_events or s.links or s.span_kind or s.resource or s.status_code
        ]
        odd = {*batch.odd, *(i for i in more if _is_odd(spans[i]))}
        parents: list[Any] = [
            s.parent_span_id or s.parent_id or (s.parent and s.parent.span_id) or _NONE for s in spans
        ]
        columns: dict[str, Any] = {
            "id": _ids([s.span_id or _own(s) for s in spans], odd),
            "parent": _ids(parents, odd),
            "start": _times([s.start_time if s.start_time_unix_nano is UNSET else _start(s) for s in spans], odd),
            "end": _times([s.end_time if s.end_time_unix_nano is UNSET else _end(s) for s in spans], odd),
            "failed": _failures(spans, more),
            "service": self._services(spans, more, odd),
            "index": np.arange(index, index + len(spans)),
            "file": np.full(len(spans), self._into.files[batch.file]),
            "line": batch.lines,
            "offset": batch.offsets,
        }
        meant, own = self._attributes.of(batch, odd)
        columns |= meant | {"trace": self._register(batch, index, odd)}
        self._into.extend(columns, own, odd)

    def _register(self, batch: Batch, index: int, odd: set[int]) -> np.ndarray:
        """The codes of the traces, met in their order; odd spans are given away in their turn."""
        known = self._traces
        written: list[Any] = [span.trace_id or _trace(span) for span in batch.spans]
        names = _names([one for one in dict.fromkeys(written) if one not in known])
        if None in names.values():
            odd.update(i for i, one in enumerate(written) if one in names and names[one] is None)
        if odd:
            plain = (i for i in range(len(written) - 1, -1, -1) if i not in odd and written[i] in names)
            first_of = {written[i]: i for i in plain}
            for i in sorted({*odd, *first_of.values()}):
                if i in odd:
                    self._one(batch.dumped(i), index + i)
                else:
                    self._register_one(written[i], names)
        else:
            for one in names:
                self._register_one(one, names)
        return integers([known.get(one, 0) for one in written])

    def _register_one(self, written: object, names: dict[Any, str | None]) -> None:
        name = names[written]
        self._meet(str(name))
        self._traces[written] = self._into.traces[name]

    def _services(self, spans: list[DumpedSpan], rows: list[int], odd: set[int]) -> np.ndarray:
        codes = np.full(len(spans), self._into.services[""])
        for i in rows:
            resource = spans[i].resource
            given = resource.attributes if resource else None
            if given:
                codes[i] = self._into.services[service_of(given)]
                if GROUP in given:
                    odd.add(i)
        return codes


def _names(written: list[Any]) -> dict[Any, str | None]:
    """The ids of traces as all spans have them; None for what is no id, or is not text."""
    digits = _hexadecimal(written, _TRACE_DIGITS)
    if digits is not None and np.frombuffer(digits, np.uint64).reshape(-1, 2).any(axis=1).all():
        return {one: one.lower() for one in written}
    return {one: _name(one) for one in written}


def _name(written: object) -> str | None:
    if not isinstance(written, str):
        return None
    try:
        return trace_id_of(TraceIdOnly(identifier(written, _TRACE_DIGITS, "trace_id", _NOWHERE)), _NOWHERE)
    except TraceError:
        return None


def _is_odd(span: DumpedSpan) -> bool:
    """Whether a span has links, events that matter, or a kind beside its attributes."""
    if span.links or (span.span_kind and not span.span_kind.startswith("SpanKind")):
        return True
    return any(event.name in _COUNTED for event in span.events or span.span_events or ())


def _trace(span: DumpedSpan) -> object:
    return first(span.trace_id, (span.context or _NO_CONTEXT).trace_id)


def _own(span: DumpedSpan) -> object:
    return first(span.span_id, (span.context or _NO_CONTEXT).span_id)


def _start(span: DumpedSpan) -> object:
    return first(span.start_time_unix_nano, span.start_time)


def _end(span: DumpedSpan) -> object:
    return first(span.end_time_unix_nano, span.end_time)


def _hexadecimal(written: list[Any], digits: int) -> bytes | None:
    """The bytes of texts of so many hexadecimal digits each; None where one is none."""
    try:
        joined = "\n".join(written)
        numbers = bytes.fromhex(joined)  # passes over blanks
    except (TypeError, ValueError):
        return None
    if len(joined) != (digits + 1) * len(written) - 1 or 2 * len(numbers) != digits * len(written):
        return None
    # which leaves room for no blanks but those between the texts
    return numbers if len(written) == 1 or joined[digits :: digits + 1].isspace() else None


def _ids(written: list[Any], odd: set[int]) -> np.ndarray:
    """Ids of spans as numbers; 0 for `_NONE` itself, and for odd ones."""
    digits = _hexadecimal(written, _DIGITS)
    if digits is not None:
        numbers = np.frombuffer(digits, ">u8").astype(np.uint64)
        odd.update(i for i in (numbers == 0).nonzero()[0].tolist() if written[i] is not _NONE)
        return numbers
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
    try:
        stamps = integers(written)
    except (TypeError, OverflowError):
        pass
    else:
        if (stamps > 0).all():
            return stamps
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


def _failures(spans: list[DumpedSpan], rows: list[int]) -> np.ndarray:
    """Whether each span failed; `rows` are those that may say so beside their status."""
    statuses: list[Any] = [span.status for span in spans]
    try:
        stated = [i for i, status in enumerate(statuses) if status and (status.code != "OK" or status.status_code)]
    except AttributeError:  # of a text
        stated = list(range(len(spans)))
    failures = np.zeros(len(spans), bool)
    failures[[i for i in {*rows, *stated} if failed(spans[i])]] = True
    return failures
