"""The order of a trace's events or spans by their times, whatever their files and lines.

Several processes may write one log, and names of files sort as texts: `events-10` comes before `events-9`. So they
order nothing: where a trace lies in several files, each of its events needs a time. In one file an event without a time
keeps its place, as long as the times of those around it run forward there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from graphs.errors import Problem, TraceError
from graphs.formats.common.span_tree import Kind, Span
from graphs.reading.documents import Place
from graphs.text import excerpt

__all__ = ["Moment", "by_starts", "in_any_files", "order_of_time", "placed_starts", "refuse_untimed"]

S = TypeVar("S", bound=Span)


class Moment(NamedTuple):
    """The time of an event, None where the log has none, and its place in the log."""

    time: float | None
    place: Place

    @property
    def known(self) -> float | None:
        """The time; None for 0 too, which is an unknown one."""
        return self.time if self.time is not None and self.time > 0 else None


def order_of_time(moments: list[Moment], trace: str, field: str, rewards: Collection[int] = ()) -> list[int]:
    """Positions of the events by their times; in the order of the file if times are equal, and where one is absent.

    Args:
      moments: of the events, in the order in which they were read.
      trace: the trace's id.
      field: what the format calls a time.
      rewards: positions of those, whose order is their own: no other event without a time is placed by them.

    Raises:
      TraceError: "unordered-events", an event has no time, and the trace lies in several files, or the other times run
        against the order of the file.
    """
    times = [moment.known for moment in moments]
    untimed = next((moment for moment in moments if moment.known is None), None)
    if untimed is not None:
        other = next((moment.place for moment in moments if moment.place.file != untimed.place.file), None)
        if other is not None:
            refuse_untimed(untimed.time, untimed.place, other, trace, field)
        for group in ([n for n in range(len(moments)) if (n in rewards) is is_reward] for is_reward in (False, True)):
            first = next((moments[n] for n in group if moments[n].known is None), None)
            if first is not None:
                placed = _placed([times[n] for n in group], first.time, first.place, trace, field)
                for n, time in zip(group, placed, strict=True):
                    times[n] = time
    return sorted(range(len(moments)), key=lambda position: times[position] or 0.0)


def by_starts(
    spans: list[S], start_of: Callable[[S], float | None], trace: str, field: str, count: Callable[[S], int]
) -> list[S]:
    """The spans by their starts, as `placed_starts` has them.

    With equal starts nodes of LangGraph go by their steps, then spans by a count that the format states; then what took
    no time comes first, as of `Span.instant`.
    """
    starts = placed_starts(spans, start_of, trace, field)

    def key(span: S) -> tuple[float, int, int, bool]:
        return starts[span.id] or 0.0, -1 if span.node is None else span.node.step, count(span), span.end != span.start

    return sorted(spans, key=key)


def placed_starts(
    spans: list[S], start_of: Callable[[S], float | None], trace: str, field: str
) -> dict[str, float | None]:
    """By span its start, or else the latest start before it in the file among the spans of its parent.

    Args:
      spans: in the order in which they were read.
      start_of: the start of a span, None where it is unknown.
      trace: the trace's id.
      field: what the format calls a start.

    Raises:
      TraceError: "unordered-events", a span has no start, and the starts of others of its parent run against the order
        of the file. Structure that holds nothing may stand anywhere.
    """
    starts = {span.id: start_of(span) for span in spans}
    if None not in starts.values():
        return starts
    parents = {span.parent for span in spans}
    beside: dict[str, list[S]] = {}
    for span in spans:
        if span.kind is not Kind.OTHER or span.id in parents:
            beside.setdefault(span.parent, []).append(span)
    for group in beside.values():
        untimed = next((span for span in group if starts[span.id] is None), None)
        if untimed is not None:
            placed = _placed([starts[span.id] for span in group], None, untimed.place, trace, field)
            starts |= zip((span.id for span in group), placed, strict=True)
    return starts


def _placed(times: Sequence[float | None], time: object, place: Place, trace: str, field: str) -> list[float | None]:
    """The times, with the latest before in the place of each that is absent.

    Raises:
      TraceError: "unordered-events", at the `place` of the first that is absent; times run backwards.
    """
    latest, placed = 0.0, list[float | None]()
    for known in times:
        if known is not None and known < latest:
            expected = "a time of its own: other times run against the order of the file"
            _refuse(time, place, expected, trace, field)
        latest = latest if known is None else known
        placed.append(latest)
    return placed


def in_any_files(spans: list[S], is_timed: Callable[[S], bool], trace: str, field: str) -> list[S]:
    """The spans, those of each file in its order, the files by the id of their first span: their names count nothing.

    Args:
      spans: in the order in which they were read, at least one.
      is_timed: whether a span has what its format orders spans by.
      trace: the trace's id.
      field: what the format calls that.

    Raises:
      TraceError: "unordered-events", a span has none, and the trace lies in several files.
    """
    first: dict[str, S] = {}
    for span in spans:
        first.setdefault(span.place.file, span)
    if len(first) < 2:
        return spans
    for span in spans:
        if not is_timed(span):
            other = next(other.place for file, other in first.items() if file != span.place.file)
            refuse_untimed(None, span.place, other, trace, field)
    return sorted(spans, key=lambda span: first[span.place.file].id)


def refuse_untimed(time: object, place: Place, other: Place, trace: str, field: str) -> NoReturn:
    """Raise the error of an event whose order among events of another file is unknown.

    Raises:
      TraceError: "unordered-events".
    """
    expected = f"a time of its own: {other.file} has events of the trace, too, and names of files state no order"
    _refuse(time, place, expected, trace, field)


def _refuse(time: object, place: Place, expected: str, trace: str, field: str) -> NoReturn:
    shown = "absent" if time is None else excerpt(time)
    raise TraceError(Problem("unordered-events", place.file, place.line, field, shown, expected, trace))
