"""The summary of `credit assign`: counts, reasons in words, and groups without a training signal."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphs.text import counted

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["Summary"]

SHOWN = 20  # names listed before "…"
ALONE = "the group has one trace; the method gives its reward or 0, compared with nothing"


class Summary:
    """Counts over one batch, or over several of whole groups."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[str] = collections.Counter()
        self.has_signal: dict[str, bool] = {}  # by group, in order of appearance
        self.unresolved: dict[str, str] = {}  # groups without a signal whose outcomes differ in the log, and why
        self.rounded: list[str] = []  # groups between whose outcomes single precision changes the differences
        self.groups_of_task: dict[str, set[str]] = {}
        self.large: list[tuple[int, float, str]] = []  # of each batch that has large advantages
        self.elsewhere: dict[str, str] = {}  # refused traces that share a choice with an answered one of another group

    def add(self, traces: Traces, credit: Credit) -> None:
        """Count a batch and a method's result on it."""
        import numpy as np

        from credit.reports.signal_notes import alone_mask, large_advantages, reason_counts
        from credit.reports.trace_returns import group_differences
        from graphs.replay_clusters import replays_elsewhere

        n = traces.sizes
        action = np.asarray(traces.graph.action_mask[: n.events])
        valid = np.asarray(credit.valid)[: n.events]
        alone = int(np.sum(valid & alone_mask(traces)[: n.events]))
        self.counts.update({"traces": n.traces, "events": n.events, "actions": int(action.sum())})
        self.counts.update({"valid": int(valid.sum()), "alone": alone})
        self.reasons.update(reason_counts(traces, credit))
        large = large_advantages(traces, credit)
        self.large += [(large.actions, large.largest, large.trace)] if large.actions else []
        for task, name in zip(traces.traces["task"].to_pylist(), traces.traces["group"].to_pylist(), strict=True):
            self.groups_of_task.setdefault(task, set()).add(name)

        names, answered = traces.traces["trace"].to_pylist(), np.zeros(traces.graph.num_traces, bool)
        answered[np.asarray(traces.graph.trace_ids)[: n.events][valid]] = True
        self.elsewhere.update(
            (names[row], names[other])
            for row, other in replays_elsewhere(traces.graph, np.isfinite(np.asarray(traces.reward))).tolist()
            if answered[other] and not answered[row]
        )

        groups = list(dict.fromkeys(traces.traces["group"].to_pylist()))
        group = np.asarray(traces.graph.group_ids)[np.asarray(traces.graph.trace_ids[: n.events])]
        moved = np.abs(np.asarray(credit.advantage)[: n.events]) > 0
        moved_by_group = np.bincount(group[valid & moved], minlength=len(groups)) > 0
        self.has_signal.update(zip(groups, moved_by_group.tolist(), strict=False))
        by_group = list(zip(groups, moved_by_group.tolist(), group_differences(traces).unresolved, strict=False))
        self.unresolved.update({name: why for name, moved, why in by_group if why not in ("", "coarse") and not moved})
        self.rounded += [name for name, moved, why in by_group if why == "coarse" and moved]

    def merge(self, other: Summary) -> None:
        """Add the counts of other batches, whose groups are not among those counted here."""
        self.counts.update(other.counts)
        self.reasons.update(other.reasons)
        self.has_signal.update(other.has_signal)
        self.unresolved.update(other.unresolved)
        self.rounded += other.rounded
        self.large += other.large
        self.elsewhere.update(other.elsewhere)
        for task, groups in other.groups_of_task.items():
            self.groups_of_task.setdefault(task, set()).update(groups)

    def to_plain(self) -> dict[str, Any]:
        """The counts as JSON, from which `from_plain` makes them again."""
        tasks = {task: sorted(groups) for task, groups in self.groups_of_task.items()}
        return {
            "counts": dict(self.counts), "reasons": dict(self.reasons), "has_signal": self.has_signal, "tasks": tasks,
            "large": [list(part) for part in self.large], "unresolved": self.unresolved, "rounded": self.rounded,
            "elsewhere": self.elsewhere,
        }  # fmt: skip

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Summary:
        """The counts that `to_plain` wrote."""
        summary = cls()
        summary.counts.update(plain["counts"])
        summary.reasons.update(plain["reasons"])
        summary.has_signal.update(plain["has_signal"])
        summary.unresolved.update(plain["unresolved"])
        summary.rounded += plain["rounded"]
        summary.elsewhere.update(plain["elsewhere"])
        summary.large = [(count, size, trace) for count, size, trace in plain["large"]]
        summary.groups_of_task = {task: set(groups) for task, groups in plain["tasks"].items()}
        return summary

    def as_json(self, method: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The summary as plain data; `lines` has it as text.

        A method that under its options compares the traces of a group has nothing to compare in a group of one. Where
        released code gives the raw reward there, its numbers stay in the table and do not count as advantages.
        """
        from credit.methods.published import find_method
        from credit.reports.trace_returns import UNRESOLVED

        count = self.counts
        alone = count["alone"] if find_method(method).scope_of(options)[0] == "group" else 0
        without = dict(sorted(self.reasons.items()))
        if alone:
            without[ALONE] = alone
        return {
            "method": method,
            "traces": count["traces"],
            "groups": len(self.has_signal),
            "events": count["events"],
            "actions": count["actions"],
            "with_advantage": count["valid"] - alone,
            "large_advantages": sum(actions for actions, _, _ in self.large),
            "without": without,
            "divided_tasks": sum(len(groups) > 1 for groups in self.groups_of_task.values()),
            "groups_without_signal": [name for name, signal in self.has_signal.items() if not signal],
            "unresolved": {name: UNRESOLVED[why] for name, why in self.unresolved.items()},
            "rounded": self.rounded,
            "elsewhere": self.elsewhere,
        }

    def lines(self, method: str, options: Mapping[str, Any]) -> list[str]:
        """The summary as text: advantages computed, reasons for missing ones, groups without signal."""
        from credit.methods.published import find_method
        from credit.reports.signal_notes import ELSEWHERE, REMEDY, LargeAdvantages, divided_note
        from credit.reports.trace_returns import UNRESOLVED

        plain = self.as_json(method, options)
        count = self.counts
        lines = [
            f"{method}: {counted(count['traces'], 'trace')} in {counted(len(self.has_signal), 'group')}, "
            f"{counted(count['events'], 'event')}, {counted(count['actions'], 'action')}, "
            f"{plain['with_advantage']} with an advantage"
        ]
        unbiased, why = find_method(method).unbiased_with(options)
        if why:
            lines.append(f"  the policy gradient {'is biased' if unbiased is False else 'may be biased'}: {why}")
        lines += [f"  {counted(count, 'action')} without: {reason}" for reason, count in plain["without"].items()]
        if self.large:
            _, largest, trace = max(self.large, key=lambda part: part[1])
            lines.append(f"  look: {LargeAdvantages(plain['large_advantages'], largest, trace)}")
        if self.rounded:
            lines.append(
                f"  look: {counted(len(self.rounded), 'group')} whose {UNRESOLVED['coarse']}: {_first(self.rounded)}"
            )
        if self.elsewhere:
            pairs = [f"{name} ({other})" for name, other in self.elsewhere.items()]
            lines.append(f"  look: {len(pairs)} {ELSEWHERE}: {_first(pairs)}; {REMEDY}")
        if plain["divided_tasks"]:
            lines.append(f"  {divided_note(plain['divided_tasks'])}")
        silent = [name for name in plain["groups_without_signal"] if name not in self.unresolved]
        if silent:
            lines.append(f"  {counted(len(silent), 'group')} without a training signal: {_first(silent)}")
        for why in dict.fromkeys(plain["unresolved"].values()):
            names = [name for name, reason in plain["unresolved"].items() if reason == why]
            lines.append(f"  {counted(len(names), 'group')} without a training signal, though {why}: {_first(names)}")
        return lines


def _first(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = f", … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
