"""Where the spans of a record stand: it is a span, a list of them, or a wrapper around lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from graphs.formats.otlp.wire import Attributes
from graphs.formats.span_dumps.spans import Dumped, assessments
from graphs.reading.decode import decode
from graphs.reading.documents import Document, Place, Places
from graphs.reading.json_problems import JSON_ERRORS

__all__ = ["dumped_spans"]

_DEEPEST = 4  # wrappers within wrappers


class _Wrapper(msgspec.Struct):
    """An object that holds spans, or other wrappers of them; MLflow's also states assessments of the trace."""

    spans: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()
    trace: msgspec.Raw = msgspec.Raw()
    traces: msgspec.Raw = msgspec.Raw()
    info: msgspec.Raw = msgspec.Raw()
    attributes: msgspec.Raw = msgspec.Raw()
    span_id: msgspec.Raw = msgspec.Raw()
    context: msgspec.Raw = msgspec.Raw()

    def held(self, text: bytes) -> list[bytes]:
        """The lists and objects that may hold spans, in the order of the text; none in a span."""
        if self.attributes and self.span_id and self.context:
            return []
        values = [bytes(value) for value in (self.spans, self.data, self.trace, self.traces) if value]
        if not values:
            return []
        containers = [value for value in values if value.startswith((b"[", b"{"))]
        return sorted(containers, key=text.find) if len(containers) > 1 else containers


_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_WRAPPER = msgspec.json.Decoder(_Wrapper)


def dumped_spans(document: Document) -> Iterator[Dumped]:
    """The spans in a record, which may be a span, a list, or an object that holds lists of spans.

    What is none of these counts as a span, which will not decode.

    Raises:
      TraceError: a list or assessments do not decode.
    """
    text, base = document.raw, document.place
    places = Places(text, 0, base.line)
    # A value, its depth, what its envelopes state, and the id that they give its trace.
    waiting: list[tuple[bytes, int, Attributes, str]] = [(text, 0, {}, "")]
    while waiting:
        value, depth, extra, named = waiting.pop()
        if value.startswith(b"["):
            elements = decode(_LIST, value, file=base.file, line=base.line)
            waiting += [(bytes(element), depth, extra, named) for element in reversed(elements)]
            continue
        try:
            wrapper = _WRAPPER.decode(value)
            inner_values = wrapper.held(value) if depth < _DEEPEST else []
        except JSON_ERRORS:
            inner_values = []
        if inner_values:
            if wrapper.info:
                info = decode(_ANY, wrapper.info, file=base.file, line=base.line)
                extra, named = extra | assessments(info), _named(info) or named
            waiting += [(inner, depth + 1, extra, named) for inner in reversed(inner_values)]
            continue
        if value is text:
            place = base
        else:
            line, start = places.of(value)
            place = Place(base.file, line, base.offset + start)
        yield Dumped(value, place, dict(extra), named)
        extra.clear()  # the trace's assessments are stated once, at its first span


def _named(info: Any) -> str:
    """The id that MLflow gives a trace; older versions called it that of a request."""
    stated = (info.get("trace_id"), info.get("request_id")) if isinstance(info, dict) else ()
    return next((one for one in stated if isinstance(one, str)), "")
