"""The order of a trace's events or spans by their times, whatever their files and lines.

Several processes may write one log, and names of files sort as texts: `events-10` comes before `events-9`.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Place
from graphs.text import excerpt

__all__ = ["Moment", "order_of_time"]


class Moment(NamedTuple):
    """The time of an event, None where the log has none, and its place in the log."""

    time: float | None
    place: Place

    @property
    def known(self) -> float | None:
        """The time; None for 0 too, which is an unknown one."""
        return self.time if self.time is not None and self.time > 0 else None


def order_of_time(moments: list[Moment], trace: str, field: str) -> list[int]:
    """Positions of the events by their times; in the order of the log if a time is absent, or if times are equal.

    Args:
      moments: of the events, in the order in which they were read.
      trace: the trace's id.
      field: what the format calls a time.

    Raises:
      TraceError: "unordered-events", an event has no time, and the times of others say that the files are read in
        another order than theirs.
    """
    positions = list(range(len(moments)))
    times = [moment.known for moment in moments]
    if all(time is not None for time in times):
        return sorted(positions, key=lambda position: times[position] or 0.0)
    timed = [moment for moment in moments if moment.known is not None]
    untimed = next(moment for moment in moments if moment.known is None)
    for before, after in itertools.pairwise(timed):
        if before.place.file != after.place.file and (after.time or 0.0) < (before.time or 0.0):
            file, line = untimed.place.file, untimed.place.line
            expected = (
                f"a time: {before.place.file} is read before {after.place.file}, whose events have earlier times, so "
                "neither files nor times order the events of the trace"
            )
            value_text = "absent" if untimed.time is None else excerpt(untimed.time)
            raise TraceError(Problem("unordered-events", file, line, field, value_text, expected, trace))
    return positions
