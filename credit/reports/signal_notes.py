"""Why actions have no advantage, in words, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from credit.reports.corpus import divided_tasks
from graphs.text import counted
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from estimators.base import Credit

__all__ = [
    "ELSEWHERE",
    "NOTHING_DISTINGUISHES",
    "REMEDY",
    "LargeAdvantages",
    "alone_mask",
    "divided_note",
    "empty_notes",
    "ended_note",
    "large_advantages",
    "reason_counts",
]

NOTHING_DISTINGUISHES = (
    "no evidence distinguishes the actions of a trace: every method here gives them the outcome, or splits it by a "
    "rule that reads no action, which adds no information"
)

ELSEWHERE = "refused traces that share an id of a choice with an answered one of another task"
"""About `replays_elsewhere`: what the list of them is."""

REMEDY = "if these are replays, what is answered depends on what was chosen: log them under the task of their trace"

MULTIPLE = 10.0
"""Of the unit in which advantages of a method are, above which they are reported as large."""


def divided_note(tasks: int) -> str:
    """The line about tasks whose traces form several groups, because their models or systems differ."""
    if tasks == 1:
        return "1 task is split into groups by model or system; --group-by task compares all its traces"
    return f"{tasks} tasks are split into groups by model or system; --group-by task compares all their traces"


def ended_note(credit: Credit) -> str:
    """The line about a method whose baseline counts traces that have ended as 0; "" for others.

    Such a baseline is no value of a state, so the method states values apart from it (`Recursion.values`).

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> ended_note(credit.turn_baseline(graph, reward))
      'Late turns of longer traces get more by construction, and still more by an offset: ended traces count as 0.'
      >>> ended_note(credit.rloo(graph, reward))
      ''
    """
    if credit.recursion is None or credit.recursion.values is None:
        return ""
    return "Late turns of longer traces get more by construction, and still more by an offset: ended traces count as 0."


def reason_counts(traces: Traces, credit: Credit) -> dict[str, int]:
    """How many actions have no advantage for each reason, in words.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> reason_counts(rows.traces, credit.rloo(graph, reward))
      {'nothing to compare with: the group has one member': 2}
    """
    from estimators.base import REASONS  # not by the module, which `credit validate` runs without JAX

    n = traces.sizes.events
    without = np.asarray(traces.graph.action_mask)[:n] & ~np.asarray(credit.valid)[:n]
    codes, counts = np.unique(np.asarray(credit.reason)[:n][without], return_counts=True)
    return {REASONS[code]: int(count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}


class LargeAdvantages(NamedTuple):
    """Advantages above `MULTIPLE` units: how many actions have one, the largest in units, and its trace."""

    actions: int
    largest: float
    trace: str

    def __str__(self) -> str:
        """The line about them, empty without any."""
        if not self.actions:
            return ""
        verb = "has" if self.actions == 1 else "have"
        return (
            f"{counted(self.actions, 'action')} {verb} an advantage larger than {MULTIPLE:g} times the spread of the "
            f"rewards of {'its' if self.actions == 1 else 'their'} group, up to {self.largest:.4g} times in trace "
            f"{self.trace!r}; look at them before training"
        )


def large_advantages(traces: Traces, credit: Credit) -> LargeAdvantages:
    """Advantages that are larger than `MULTIPLE` times the spread of the rewards of their group.

    The advantages of a method that divides (its `scale`, or estimand "score") are in spreads already. Those of other
    methods are divided by a spread of the group: the greatest difference between its outcomes, plus the largest sum of
    |event rewards| of one of its traces. A group whose spread is 0 takes the mean spread of the other groups. If all
    spreads are 0, no advantage is counted.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[100.0, 101.0])
      >>> large_advantages(rows.traces, credit.discounted_return(graph, reward))
      LargeAdvantages(actions=2, largest=101.0, trace='b')
    """
    sizes, graph = traces.sizes, traces.graph
    n, trace = sizes.events, np.asarray(graph.trace_ids)[: sizes.events]
    valid = np.asarray(credit.valid)[:n]
    size = np.where(valid, np.abs(np.asarray(credit.advantage, np.float64)[:n]), 0)
    if credit.estimand != "score" and (np.asarray(credit.scale)[:n][valid] == 1).all():
        by_group = _spreads(traces)
        known = by_group[by_group > 0]
        spread = np.where(by_group > 0, by_group, known.mean() if known.size else 0)
        spread = spread[np.asarray(graph.group_ids)[trace]]
        size = np.divide(size, spread, out=np.zeros_like(size), where=spread > 0)
    if not (size > MULTIPLE).any():
        return LargeAdvantages(0, 0.0, "")
    row = int(np.argmax(size))
    name = traces.traces["trace"][int(trace[row])].as_py()
    return LargeAdvantages(int((size > MULTIPLE).sum()), float(size[row]), str(name))


def _spreads(traces: Traces) -> np.ndarray:
    """The range of outcomes of each group, plus its largest Σ |event reward| of a trace: float64 [T]."""
    graph, n = traces.graph, traces.sizes.traces
    group, reward = np.asarray(graph.group_ids)[:n], np.asarray(traces.reward, np.float64)[:n]
    scored = np.isfinite(reward)
    high, low = np.full(graph.num_traces, -np.inf), np.full(graph.num_traces, np.inf)
    np.maximum.at(high, group[scored], reward[scored])
    np.minimum.at(low, group[scored], reward[scored])
    spread = np.where(high > low, high - low, 0)
    if "event_reward" in traces.evidence:
        events = traces.sizes.events
        step = np.nan_to_num(np.abs(np.asarray(traces.evidence["event_reward"].array, np.float64)[:events]))
        by_trace = np.bincount(np.asarray(graph.trace_ids)[:events], step, minlength=graph.num_traces)[:n]
        most = np.zeros(graph.num_traces)
        np.maximum.at(most, group, by_trace)
        spread = spread + most
    return spread


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
            "No group can be compared: each has one trace. If traces share tasks, pass `--groups FILE`, a table with "
            "columns `trace` and `group`. Else log several traces of each task."
        )
    lines.append("`credit choose` names the methods that these logs allow.")
    return lines
