"""Why actions have no advantage, in words, and what to do about it."""

from __future__ import annotations

import numpy as np

from credit.reports.corpus import divided_tasks
from estimators.base import REASONS, Credit
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["alone_mask", "divided_note", "empty_notes", "reason_counts"]


def divided_note(tasks: int) -> str:
    """The line about tasks whose traces form several groups, because their models or systems differ."""
    if tasks == 1:
        return "1 task is split into groups by model or system; --group-by task compares all its traces"
    return f"{tasks} tasks are split into groups by model or system; --group-by task compares all their traces"


def reason_counts(traces: Traces, credit: Credit) -> dict[str, int]:
    """How many actions have no advantage for each reason, in words.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> reason_counts(rows.traces, credit.rloo(graph, reward))
      {'nothing to compare with: the group has one member': 2}
    """
    n = traces.sizes.events
    without = np.asarray(traces.graph.action_mask)[:n] & ~np.asarray(credit.valid)[:n]
    codes, counts = np.unique(np.asarray(credit.reason)[:n][without], return_counts=True)
    return {REASONS[code]: int(count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}


def alone_mask(traces: Traces) -> np.ndarray:
    """Events of groups of one trace, which a method that compares traces of a group cannot compare: bool [E].

    Padded events have False.
    """
    graph = traces.graph
    size = np.bincount(np.asarray(graph.group_ids)[: traces.sizes.traces], minlength=graph.num_traces)
    group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)]
    alone: np.ndarray = np.asarray(graph.event_mask) & (size[group] == 1)
    return alone


def empty_notes(traces: Traces, credit: Credit, method: str) -> list[str]:
    """The lines that stand in the place of an empty table: why no action has an advantage, and what to do."""
    lines = [f"No action has an advantage by {method}."]
    lines += [
        f"  {counted(count, 'action')} without: {reason}" for reason, count in reason_counts(traces, credit).items()
    ]
    tasks = divided_tasks(traces)
    if tasks:
        lines.append(divided_note(tasks))
    if alone_mask(traces)[: traces.sizes.events].all():
        lines.append(
            "Every group has one trace. If traces share tasks, pass --groups FILE, a table with columns `trace` and "
            "`group`. Else log several traces of each task."
        )
    lines.append("`credit choose` names the methods that these logs allow.")
    return lines
