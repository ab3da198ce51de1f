"""The outcome of logs with one channel of reward alone: that channel, where no trace of the log has another one.

Where traces differ in what was scored, the only channel of one is not that of the next: labels of people in some, and
a judge's verdicts in others. The user chooses then.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphs.traces.part import Heading
from graphs.traces.record import TraceRecord

__all__ = ["make_sole_outcomes"]


def make_sole_outcomes(headings: Sequence[Heading | TraceRecord]) -> None:
    """Make the only channel of each log the outcome of the traces that say so and have it.

    Args:
      headings: of all traces of a batch, and of those that were not read; their `rewards` are written.
    """
    logs: dict[tuple[str, ...], list[Heading | TraceRecord]] = {}
    for of in headings:
        log, of_file = (of.sole.log, of.sole.of_file) if of.sole else ("", False)
        logs.setdefault((of.format, log, of.file if of_file else ""), []).append(of)
    for members in logs.values():
        channels = {name for of in members for name in (of.sole.channels if of.sole else of.rewards.keys() - {"team"})}
        if len(channels) != 1:
            continue
        (name,) = channels
        for of in members:
            if of.sole and name in of.rewards:
                of.rewards.setdefault("team", of.rewards[name])
