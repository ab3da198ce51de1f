"""Other rewards of a log that could have been its outcome: an answer may turn with the one that was chosen."""

from __future__ import annotations

import numpy as np

from credit.doctor.verdict_channels import own_channel, verdict_channels
from credit.methods.absent_outcomes import by_people
from credit.reports.trace_numbers import numbered
from credit.sides.chosen_sides import Sides
from credit.sides.side_differences import side_differences
from credit.sides.side_words import first_to_second, short
from graphs.logs.read_logs import DEFAULT_CHANNEL
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["chosen_outcome", "other_outcomes"]

MOST = 3  # channels that are named


def chosen_outcome(traces: Traces) -> str:
    """The reward of the log that was chosen as the outcome, as one of several; "" where nobody chose one.

    Args:
      traces: what was read.
    """
    own = own_channel(traces)
    return "" if own == DEFAULT_CHANNEL else printable(own, 60)


def other_outcomes(traces: Traces, sides: Sides | None = None) -> str:
    """The other rewards, of how many traces, with their means, where one was chosen as the outcome; "" elsewhere.

    Args:
      traces: what was read.
      sides: two sides of these, whose means are those of `side_differences`; None for one mean of all traces.
    """
    if not chosen_outcome(traces):
        return ""
    channels = verdict_channels(traces)
    known = {name: int(np.isfinite(number).sum()) for name, number in channels.items()}
    told = []
    for name in sorted(known, key=lambda one: (one not in traces.by_people, -known[one]))[:MOST]:
        number = channels[name].astype(np.float64)
        metric = numbered(number, (np.isnan(number), "no such reward"))
        rows = [] if sides is None else side_differences(traces, {name: metric}, sides.side)
        mean = first_to_second(rows[0].first, rows[0].second) if rows else f"mean {short(float(np.nanmean(number)))}"
        whose = f" ({who})" if (who := by_people(known[name], traces.by_people.get(name, 0))) else ""
        told.append(f"{printable(name, 60)}{whose} of {counted(known[name], 'trace')}, {mean}")
    told += ["…"] * (len(known) > MOST)
    return f"Also in the log, by `--reward-channel`: {'; '.join(told)}." if told else ""
