"""Which attempt of a rollout is its last.

Pages of a store may come in any order, so the record that comes last in the log may be of an earlier attempt. The order
of files and lines decides only where times and sequence ids state none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import decode
from graphs.reading.documents import Document

__all__ = ["Attempts"]


class _Moment(msgspec.Struct):
    start_time: float | None = None
    timestamp: float | None = None
    sequence_id: int | None = None


_MOMENT = msgspec.json.Decoder(_Moment)


@dataclasses.dataclass(slots=True)
class Attempts:
    """The attempts of a rollout, each of these in the order in which the log has its latest record.

    Attributes:
      stated: those that records of the rollout call its last.
      numbers: the number of each that has a record of its own.
      seen: those with events or spans.
    """

    stated: dict[str, None] = dataclasses.field(default_factory=dict)
    numbers: dict[str, int] = dataclasses.field(default_factory=dict)
    seen: dict[str, None] = dataclasses.field(default_factory=dict)

    def state(self, attempt: str) -> None:
        """Note the last attempt as a record of the rollout has it."""
        self.stated.pop(attempt, None)
        self.stated[attempt] = None

    def number(self, attempt: str, number: int) -> None:
        """Note the record of an attempt."""
        self.numbers[attempt] = max(number, self.numbers.get(attempt, number))

    def see(self, attempt: str) -> None:
        """Note an event or a span of an attempt."""
        self.seen.pop(attempt, None)
        self.seen[attempt] = None

    def last(self, documents: dict[str, list[Document]], trace: str) -> str:
        """The last attempt, given the events and spans of each.

        Raises:
          TraceError: "disagreeing-attempts", times and sequence numbers name different ones; kinds of
            `graphs.reading.decode.decode`.
        """
        among = list(self.stated) or self._numbered_last()
        if len(among) < 2:
            return among[0] if among else ""
        starts: dict[str, float] = {}
        spans: dict[str, tuple[int, int]] = {}
        for attempt in among:
            start, numbers = _moments(documents.get(attempt, ()), trace)
            if start is not None:
                starts[attempt] = start
            if numbers is not None:
                spans[attempt] = numbers
        latest, highest = max(starts.values(), default=0.0), max((low for low, _ in spans.values()), default=0)
        by_time = [attempt for attempt in among if starts.get(attempt, latest) >= latest]
        by_number = [attempt for attempt in among if attempt not in spans or spans[attempt][1] >= highest]
        both = [attempt for attempt in by_time if attempt in by_number]
        if not both:
            place = documents[by_time[-1]][0].place
            found = f"{by_time[-1]!r} started last, {by_number[-1]!r} has the highest sequence ids"
            expected = (
                "times and sequence ids of one order, or a record of the rollout or the attempts that tells the last"
            )
            raise TraceError(
                Problem("disagreeing-attempts", place.file, place.line, "attempt_id", found, expected, trace)
            )
        return both[-1]

    def _numbered_last(self) -> list[str]:
        """Those that no number of an attempt tells to be earlier; the numbered one comes last, as it is the surer."""
        if not self.numbers:
            return list(self.seen)
        highest = max(self.numbers.values())
        top = [attempt for attempt, number in self.numbers.items() if number == highest]
        return [attempt for attempt in self.seen if attempt and attempt not in self.numbers] + top[::-1]


def _moments(documents: Iterable[Document], trace: str) -> tuple[float | None, tuple[int, int] | None]:
    """The start of an attempt, and its lowest and highest sequence id; None where its items state none."""
    starts: list[float] = []
    numbers: list[int] = []
    for raw, place in documents:
        moment = decode(_MOMENT, raw, file=place.file, line=place.line, trace=trace)
        start = moment.timestamp if moment.start_time is None else moment.start_time
        if start is not None and start > 0:  # 0 is an unknown time
            starts.append(start)
        if moment.sequence_id is not None:
            numbers.append(moment.sequence_id)
    return min(starts, default=None), (min(numbers), max(numbers)) if numbers else None
