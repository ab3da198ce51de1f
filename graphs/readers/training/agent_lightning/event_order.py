"""The order of the events of an attempt of version 1: that of their timestamps, whatever file and line they stand in.

Several processes may write one log, and names of files sort as texts: `events-10` comes before `events-9`.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from graphs.errors import Problem, TraceError
from graphs.readers.common.places import Place
from graphs.text import excerpt

__all__ = ["Moment", "TimedReward", "order_of_time", "refuse_tied_outcome"]


class Moment(NamedTuple):
    """When an event happened, None where the log does not say, and where it stands."""

    time: float | None
    place: Place


class TimedReward(NamedTuple):
    """The amount of a reward, and when it came."""

    amount: float
    moment: Moment


def order_of_time(moments: list[Moment], trace: str) -> list[int]:
    """Positions of the events in the order in which they happened; that of the log where a time is absent or equal.

    Raises:
      TraceError: "unordered-events", an event has no time, and the times of others say that the files are read in
        another order than theirs.
    """
    positions = list(range(len(moments)))
    times = [_known(moment) for moment in moments]
    if all(time is not None for time in times):
        return sorted(positions, key=lambda position: times[position] or 0.0)
    timed = [moment for moment in moments if _known(moment) is not None]
    untimed = next(moment for moment in moments if _known(moment) is None)
    for before, after in itertools.pairwise(timed):
        if before.place.file != after.place.file and (after.time or 0.0) < (before.time or 0.0):
            file, line = untimed.place.file, untimed.place.line
            expected = (
                f"a time: {before.place.file} is read before {after.place.file}, whose events have earlier times, so "
                "neither files nor times order the events of the attempt"
            )
            value_text = "absent" if untimed.time is None else excerpt(untimed.time)
            raise TraceError(Problem("unordered-events", file, line, "timestamp", value_text, expected, trace))
    return positions


def refuse_tied_outcome(rewards: list[TimedReward], moments: list[Moment], trace: str) -> None:
    """Refuse rewards, given in order, of which two are the last at once.

    One writer that gives all its events one time orders them by line.

    Raises:
      TraceError: "disagreeing-rewards".
    """
    if not rewards or any(_known(moment) is None for moment in moments):
        return
    last, end = rewards[-1], rewards[-1].moment
    one_time = len({moment.time for moment in moments}) == 1
    for amount, moment in rewards[:-1]:
        if moment.time != end.time or amount == last.amount or (one_time and moment.place.file == end.place.file):
            continue
        expected = f"{amount!r}, as in {moment.place.file}, line {moment.place.line}, or another timestamp: the last "
        expected += f"reward is the outcome, and both have the timestamp {end.time!r}"
        file, line = end.place.file, end.place.line
        raise TraceError(
            Problem("disagreeing-rewards", file, line, "data.value", excerpt(last.amount), expected, trace)
        )


def _known(moment: Moment) -> float | None:
    return moment.time if moment.time is not None and moment.time > 0 else None  # 0 is an unknown time
