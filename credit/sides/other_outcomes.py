"""Other rewards of a log that could have been its outcome: an answer may turn with the one that was chosen."""

from __future__ import annotations

import numpy as np

from credit.methods.absent_outcomes import by_people, unread_words
from credit.reports.task_kinds import task_kinds
from credit.reports.trace_numbers import TraceMetric, numbered
from credit.reports.verdict_channels import own_channel, verdict_channels, with_outcomes
from credit.sides.chosen_sides import Sides
from credit.sides.shown_changes import shown
from credit.sides.side_differences import side_differences
from credit.sides.side_rows import SideDifference
from credit.sides.side_words import short
from credit.sides.weighted_outcomes import weighted_outcomes
from graphs.logs.read_logs import DEFAULT_CHANNEL
from graphs.task_means import LEAST_TASKS
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


def other_outcomes(traces: Traces, sides: Sides | None = None, changed: str = "") -> str:
    """The other rewards, of how many traces, with their means, where one was chosen as the outcome; and those not read.

    A change between sides is told as tested, with how many tasks it rests on, and not at all where these are too few.

    Args:
      traces: what was read.
      sides: two sides of these, whose means are those of `side_differences`; None for one mean of all traces.
      changed: what says that a verdict changed its meaning: those it names are left out.
    """
    unread = f"{printable(words, 400)}." if (words := unread_words(traces)) else ""
    if not chosen_outcome(traces):
        return unread
    channels = {name: of for name, of in verdict_channels(traces).items() if f" {printable(name, 60)} " not in changed}
    known = {name: int(np.isfinite(number).sum()) for name, number in channels.items()}
    named = sorted(known, key=lambda one: (one not in traces.by_people, -known[one]))[:MOST]
    rows = list[SideDifference]()
    if sides is not None:
        of = {name: with_outcomes(traces, channels[name].astype(np.float64)) for name in named}
        metrics = {name: weighted_outcomes(of[name], _metric(channels[name]), sides.side) for name in named}
        found = side_differences(traces, {name: one.compared for name, one in metrics.items()}, sides.side)
        rows = [metrics[row.metric].told_of(row) for row in found]
    changes = {row.metric: row for row in rows if row.tasks >= LEAST_TASKS}
    told, several = [], len(task_kinds(traces)[0]) > 1
    for name in named:
        whose = f" ({who})" if (who := by_people(known[name], traces.by_people.get(name, 0))) else ""
        said = f"mean {short(float(np.nanmean(channels[name])))}"
        if row := changes.get(name):
            over = counted(row.tasks, "task")
            where = f"on {over} of both" if row.paired else f"over {over}"
            said = f"{row.means()} {where}, {row.says(brief=True)}"
            said += " of all kinds together" * (several and not row.is_told)  # one may have changed
        elif sides is not None:
            said += f", {shown()}"
        told.append(f"{printable(name, 60)}{whose} of {counted(known[name], 'trace')}, {said}")
    told += ["…"] * (len(known) > MOST)
    also = f"Also in the log, by `--reward-channel`: {'; '.join(told)}." if told else ""
    return " ".join(filter(None, (also, unread)))


def _metric(number: np.ndarray) -> TraceMetric:
    return numbered(number.astype(np.float64), (np.isnan(number), "no such reward"))
