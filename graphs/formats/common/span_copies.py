"""Spans that a log states more than once: pages that overlap, a download that lists its observations twice."""

from __future__ import annotations

from graphs.formats.common.span_tree import Span

__all__ = ["add_span"]


def add_span(spans: dict[str, Span], span: Span, field: str, trace: str) -> bool:
    """Add a span to those of its trace, by id; False if it is there already, with equal content.

    Args:
      spans: of the trace so far.
      span: as read.
      field: what the format calls a span's id, for errors.
      trace: the trace's id.

    Raises:
      TraceError: "duplicate-span", another span of the trace has its id.
    """
    first = spans.setdefault(span.id, span)
    if first is span:
        return True
    if span != first:
        expected = f"an id that no other span of the trace has (also {first.place.file}:{first.place.line})"
        raise span.refuse("duplicate-span", field, span.id, expected, trace)
    return False
