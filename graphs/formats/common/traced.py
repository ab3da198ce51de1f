"""The spans of a trace that several records state, one each, and what the format reads of a record beside its span."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from graphs.formats.common.order_of_time import by_starts, in_any_files
from graphs.formats.common.span_tree import Span, add_span
from graphs.reading.documents import Place

__all__ = ["Traced", "order_by_start"]

T = TypeVar("T")


@dataclasses.dataclass(slots=True)
class Traced(Generic[T]):
    """A trace: its first place, its spans by id, what else their records state, and its files."""

    place: Place
    spans: dict[str, Span] = dataclasses.field(default_factory=dict)
    stated: dict[str, T] = dataclasses.field(default_factory=dict)
    files: dict[str, None] = dataclasses.field(default_factory=dict)

    def add(self, span: Span, stated: T, trace: str) -> None:
        """Add a span; one that stands twice with equal content counts once.

        Raises:
          TraceError: "duplicate-span", another record has its id.
        """
        if add_span(self.spans, span, "id", trace):
            self.stated[span.id] = stated
        elif self.stated[span.id] != stated:
            expected = "what the record states elsewhere"
            raise span.refuse("duplicate-span", "id", span.id, expected, trace)
        self.files[span.place.file] = None

    def nearest(self, is_sought: Callable[[str], bool]) -> dict[str, str]:
        """For each span, the id of the nearest one that is sought, itself or above it; "" without one."""
        found: dict[str, str] = {}
        for span_id in self.spans:
            path, current = dict[str, None](), span_id
            while current in self.spans and current not in found and current not in path and not is_sought(current):
                path[current] = None
                current = self.spans[current].parent
            sought = "" if current not in self.spans or current in path else found.get(current, current)
            found |= dict.fromkeys((*path, span_id), sought)
        return found


def order_by_start(
    spans: Iterable[Span], trace: str, field: str, count: Callable[[Span], int] = lambda _: 0
) -> list[Span]:
    """The spans by their starts, then by a count that the format states; in the order of the file without starts.

    A start of 0 is an unknown one.

    Raises:
      TraceError: "unordered-events", a span has no start, `field` in the format, and the trace lies in several files;
        or as `by_starts`.
    """
    listed = sorted(in_any_files(list(spans), lambda span: _start(span) is not None, trace, field), key=count)
    return by_starts(listed, _start, trace, field, count)


def _start(span: Span) -> float | None:
    return span.start if span.start > 0 else None  # of NaN, too
