"""Which reward of an attempt of version 1 is the last, and so its outcome: that is a matter of the rewards' own times.

An event without a time leaves the others in the order of the log, which says nothing against the times of rewards.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from graphs.errors import Problem, TraceError
from graphs.formats.common.order_of_time import Moment
from graphs.text import excerpt

__all__ = ["GivenReward", "in_order"]


class GivenReward(NamedTuple):
    """The amount of a reward, the latest call before it in the order of the events, and when it came."""

    amount: float
    call: int | None
    moment: Moment


def in_order(rewards: list[GivenReward], moments: list[Moment], trace: str) -> list[GivenReward]:
    """The rewards in the order of their times; in that given where one has none, and those of the others agree with it.

    Args:
      rewards: in the order of the events.
      moments: of all events.
      trace: the trace's id.

    Raises:
      TraceError: "unordered-events", a reward has no time, and those of others contradict the order given;
        "disagreeing-rewards", two are the last at once.
    """
    untimed = next((reward.moment for reward in rewards if reward.moment.known is None), None)
    if untimed is None:
        rewards = sorted(rewards, key=lambda reward: reward.moment.known or 0.0)
    else:
        _refuse_unordered(rewards, untimed, trace)
    _refuse_tied(rewards, moments, trace)
    return rewards


def _refuse_unordered(rewards: list[GivenReward], untimed: Moment, trace: str) -> None:
    """Refuse rewards that neither their times nor the order of the log tell the last of."""
    timed = [reward.moment for reward in rewards if reward.moment.known is not None]
    for before, after in itertools.pairwise(timed):
        if (after.known or 0.0) < (before.known or 0.0):
            file, line = untimed.place.file, untimed.place.line
            expected = f"a time: the reward in {after.place.file}, line {after.place.line}, comes after that of line "
            expected += f"{before.place.line} and has an earlier time, so nothing tells which reward is the last"
            value_text = "absent" if untimed.time is None else excerpt(untimed.time)
            raise TraceError(Problem("unordered-events", file, line, "timestamp", value_text, expected, trace))


def _refuse_tied(rewards: list[GivenReward], moments: list[Moment], trace: str) -> None:
    """Refuse rewards, given in order, of which two are the last at once.

    One writer that gives all its events one time orders them by line.
    """
    if not rewards or rewards[-1].moment.known is None:
        return
    last, end = rewards[-1], rewards[-1].moment
    one_time = len({moment.known for moment in moments} - {None}) == 1
    for amount, _, moment in rewards[:-1]:
        if moment.time != end.time or amount == last.amount or (one_time and moment.place.file == end.place.file):
            continue
        expected = f"{amount!r}, as in {moment.place.file}, line {moment.place.line}, or another timestamp: the last "
        expected += f"reward is the outcome, and both have the timestamp {end.time!r}"
        file, line = end.place.file, end.place.line
        raise TraceError(
            Problem("disagreeing-rewards", file, line, "data.value", excerpt(last.amount), expected, trace)
        )
