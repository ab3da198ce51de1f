"""What dumps of spans look like: the fields of a span, and where spans of a file stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from graphs.formats.otlp.wire import Attributes, Place

__all__ = ["SPAN", "Batch", "Context", "Dumped", "DumpedSpan", "Event", "Id", "Link", "Resource", "Status", "Time"]

Id = str | int | UnsetType | None
Time = int | float | str | UnsetType | None
Text = str | UnsetType | None
Code = int | str | UnsetType | None
Object = dict[str, Any] | UnsetType | None


class Context(msgspec.Struct, gc=False):
    """The ids of a span."""

    trace_id: Id = UNSET
    span_id: Id = UNSET


class Status(msgspec.Struct, gc=False):
    """The status of a span; a dump sets one of the two."""

    code: Code = UNSET
    status_code: Code = UNSET


class Event(msgspec.Struct, gc=False):
    """An event of a span."""

    name: Text = UNSET
    attributes: Object = UNSET


class Link(msgspec.Struct, gc=False):
    """A link to another span."""

    context: Context | UnsetType | None = UNSET
    attributes: Object = UNSET


class Resource(msgspec.Struct, gc=False):
    """The resource that recorded a span."""

    attributes: Object = UNSET


class DumpedSpan(msgspec.Struct, gc=False):
    """A span as any of the dumps writes it; each sets some of the fields. What is absent differs from null."""

    name: Text = UNSET
    trace_id: Id = UNSET
    span_id: Id = UNSET
    parent_span_id: Id = UNSET
    parent_id: Id = UNSET
    parent: Context | UnsetType | None = UNSET
    context: Context | UnsetType | None = UNSET
    start_time: Time = UNSET
    end_time: Time = UNSET
    start_time_unix_nano: Time = UNSET
    end_time_unix_nano: Time = UNSET
    span_kind: Text = UNSET
    status: Status | str | UnsetType | None = UNSET
    status_code: Code = UNSET
    attributes: Object = UNSET
    events: Sequence[Event] | UnsetType | None = UNSET
    span_events: Sequence[Event] | UnsetType | None = UNSET
    links: Sequence[Link] | UnsetType | None = UNSET
    resource: Resource | UnsetType | None = UNSET


class Dumped(msgspec.Struct, gc=False):
    """A span's JSON, or the span already decoded, and where it stands; `extra` are attributes that its envelope gives.

    None of these structures takes part in a circle, so the collector of circles need not follow them.
    """

    span: bytes | DumpedSpan
    file: str
    line: int
    offset: int
    extra: Attributes | None = None

    @property
    def place(self) -> Place:
        """Where the span stands."""
        return Place(self.file, self.line, self.offset)


@dataclasses.dataclass
class Batch:
    """Spans of one file, a list for each of their parts.

    `flat` says that no attribute holds an object. `odd` has the spans that are not decoded, or have extras.
    """

    file: str
    spans: list[DumpedSpan] = dataclasses.field(default_factory=list)
    lines: Any = dataclasses.field(default_factory=list)
    offsets: Any = dataclasses.field(default_factory=list)
    flat: bool = False
    odd: dict[int, Dumped] = dataclasses.field(default_factory=dict)

    def append(self, dumped: Dumped) -> None:
        """Take a span in."""
        if isinstance(dumped.span, DumpedSpan) and not dumped.extra:
            span = dumped.span
        else:
            span, self.odd[len(self.spans)] = _UNDECODED, dumped
        self.spans.append(span)
        self.lines.append(dumped.line)
        self.offsets.append(dumped.offset)

    def dumped(self, i: int) -> Dumped:
        """One of the spans."""
        return self.odd.get(i) or Dumped(self.spans[i], self.file, int(self.lines[i]), int(self.offsets[i]))


SPAN = msgspec.json.Decoder(DumpedSpan)
_UNDECODED = DumpedSpan()
