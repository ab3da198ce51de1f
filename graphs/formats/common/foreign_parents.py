"""Spans below a span of another trace: merged exports, or a damaged id, have torn one trace apart.

A parent that no trace at hand has is a caller outside the log, and legal. An id that several traces have tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from graphs.errors import Problem
from graphs.text import excerpt

__all__ = ["foreign_parents", "torn"]


class _Place(Protocol):
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


class _Span(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def place(self) -> _Place: ...


def foreign_parents(spans: Mapping[str, Iterable[_Span]], field: str) -> dict[str, Problem]:
    """The problems of traces with a span whose parent is in exactly one trace, and that not its own; and of that one.

    Args:
      spans: by trace.
      field: what the format calls a parent's id.
    """
    orphans = [(trace, span) for trace, of_trace in spans.items() for span in _orphans(of_trace)]
    if not orphans:
        return {}  # most logs: ids are compared within one trace at a time
    holders: dict[str, set[str]] = {span.parent: set() for _, span in orphans}
    for trace, of_trace in spans.items():
        for span in of_trace:
            if span.id in holders:
                holders[span.id].add(trace)
    found: dict[str, Problem] = {}
    for trace, span in orphans:
        if len(holders[span.parent]) == 1:
            for problem in torn(trace, next(iter(holders[span.parent])), span.place, field, span.parent):
                found.setdefault(problem.trace, problem)
    return found


def torn(trace: str, other: str, place: _Place, field: str, parent: str) -> tuple[Problem, Problem]:
    """The problems of the trace of a span, and of that of its parent, which may lack the span."""
    expected = f"a span of this trace: trace {excerpt(other)} has it"
    own = Problem("missing-parent", place.file, place.line, field, excerpt(parent), expected, trace)
    expected = f"a span of trace {excerpt(trace)}, which states this parent: without it this trace may lack spans"
    return own, Problem("lost-row", place.file, place.line, field, excerpt(parent), expected, other)


def _orphans(spans: Iterable[_Span]) -> Iterator[_Span]:
    spans = list(spans)
    ids = {span.id for span in spans}
    return (span for span in spans if span.parent and span.parent not in ids)
