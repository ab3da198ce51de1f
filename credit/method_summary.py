"""How many actions a method gives an advantage, why others have none, and what to do about it.

`Summary` is what `credit assign` prints: its counts, over one batch or several of whole groups. The functions are its
lines, which reports and other commands print, too.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credit.doubts_of_log import AT_ONE_TIME, OF_PAYMENT, SAW_LATER, TURN_GAP, doubts_of_log
from credit.methods.absent_outcomes import action_counts, left_out
from credit.methods.method_row import Method, Seen
from credit.methods.published import find_method
from credit.methods.units_apart import alike_in_log
from credit.reports.corpus import divided_tasks
from credit.reports.own_outcomes import has_agent_outcomes, odd_traces, of_agents, remedy_channel, said_of_odd
from credit.reports.trace_returns import (
    UNRESOLVED,
    coarse_beside,
    first_names,
    group_differences,
    outweighed,
    precision_note,
)
from credit.untold_order import UNTOLD, reads_untold, traces_untold
from credit.values_at_once import Rounds, reads_rounds, rounds_of_log
from graphs.distinct_columns import distinct_columns
from graphs.errors import CreditError
from graphs.replay_clusters import replays_elsewhere
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.repeated_rows import REPEATED_ROWS
from graphs.traces.schema import LIKE_OUTCOMES

if TYPE_CHECKING:
    from estimators.base import Credit

__all__ = [
    "ELSEWHERE",
    "REMEDY",
    "LargeAdvantages",
    "Summary",
    "alone_mask",
    "divided_note",
    "empty_notes",
    "large_advantages",
    "reason_counts",
    "shares_no_task",
]

NONE_SHARED = "No two traces share a task, so no action has credit"
ALONE = "the group has one trace, so that the number compares it with no other"
ALONE_OF_KEY = "no other trace has the key, so that the number compares it with no other"

ELSEWHERE = "refused traces that share an id of a choice with an answered one of another task"
"""The heading of the list `replays_elsewhere`."""

REMEDY = "if these are replays, what is answered depends on what was chosen: log them under the task of their trace"

MULTIPLE = 10.0
"""An advantage above this many units is reported as large."""


class Summary:
    """Counts over one batch, or over several of whole groups."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[str] = collections.Counter()
        self.has_signal: dict[str, bool] = {}  # by group, in order of appearance
        self.unresolved: dict[str, str] = {}  # groups without a signal whose outcomes differ in the log, and why
        self.rounded: list[str] = []  # groups in which single precision changes differences between outcomes
        self.groups_of_task: dict[str, set[str]] = {}
        self.large: list[tuple[int, float, str]] = []  # of each batch that has large advantages
        self.alike: dict[str, str] | None = None  # columns that tell nothing apart, and what each leaves alike
        self.evidence: collections.Counter[str] = collections.Counter()  # how many events or traces have each key
        self.elsewhere: dict[str, str] = {}  # refused traces that share a choice with an answered one of another group
        self.doubts: dict[str, None] = {}  # what leaves the bias of a method open, and is not among the counts
        self.odd: dict[str, str] = {}  # traces left out for outcomes of agents alone, as of `said_of_odd`

    def add(
        self,
        traces: Traces,
        credit: Credit,
        method: str,
        options: Mapping[str, Any],
        arrays: Mapping[str, Any] = MappingProxyType({}),
        given: Collection[str] = (),
    ) -> None:
        """Count a batch and a method's result on it under these options.

        `arrays` took the place of evidence, and `given` names the evidence that the call asked for.
        """
        n = traces.sizes
        action = np.asarray(traces.graph.action_mask[: n.events])
        valid = np.asarray(credit.valid)[: n.events]
        alone = int(np.sum(valid & alone_mask(traces)[: n.events]))
        self.counts.update({"traces": n.traces, "events": n.events, "actions": int(action.sum())})
        fallen = sum(problem.count for problem in traces.problems if problem.kind == "unordered-rows")
        again = sum(problem.count for problem in traces.problems if problem.kind == REPEATED_ROWS)
        self.counts.update({"with own outcome": int(credit.own_outcome), "again": again})  # the first is of batches
        of_order = traces, find_method(method), options, traces.evidence
        untold = traces_untold(*of_order)
        self.counts.update({kind: untold[kind] for kind in UNTOLD})
        self.counts.update({"unordered": fallen, "valid": int(valid.sum()), "alone": alone})
        kinds = {*OF_PAYMENT, TURN_GAP} - ({AT_ONE_TIME} if untold.total() else set())  # the sentence on order has it
        self.doubts |= dict.fromkeys(doubts_of_log(*of_order[:3], kinds))
        if "value" in arrays:
            self.doubts = {said: None for said in self.doubts if said not in SAW_LATER}
        rounds = rounds_of_log(traces).read(*reads_rounds(*of_order[1:3], {*traces.evidence, *arrays}))
        # A fitted critic has a value between the rows of a round.
        last_gains = 0 if "value" in arrays else rounds.several
        self.counts.update({"at once": rounds.several, "twice at once": rounds.one, "last gains": last_gains})
        self.counts.update({"of another reward": _of_another_reward(traces)})
        outcomes = action_counts(traces)
        self.counts.update(outcomes)
        is_of_agents = "agent_reward" in given or has_agent_outcomes(traces)
        of_traces = not is_of_agents and outcomes["scored, traces"] > 0
        self.counts.update({"of agents": int(is_of_agents), "of traces": int(of_traces)})  # of batches
        self.counts.update({"own outcomes": int(of_agents(traces).sum())})
        self.counts.update(_of_keys(traces, credit, find_method(method), options, of_agents=is_of_agents))
        self.reasons.update(reason_counts(traces, credit))
        self._join_alike(alike_in_log(traces, ("agent", "parent", "turn")))
        self.evidence.update({name: len(found.rows) for name, found in traces.evidence.items() if "." not in name})
        large = large_advantages(traces, credit)
        self.large += [(large.actions, large.largest, large.trace)] if large.actions else []
        for task, name in zip(traces.traces["task"].to_pylist(), traces.traces["group"].to_pylist(), strict=True):
            self.groups_of_task.setdefault(task, set()).add(name)

        names, answered = traces.traces["trace"].to_pylist(), np.zeros(traces.graph.num_traces, bool)
        answered[np.asarray(traces.graph.trace_ids)[: n.events][valid]] = True
        odd = odd_traces(traces) & ~answered[: n.traces]
        if odd.any():
            self.odd |= dict.fromkeys((names[row] for row in np.flatnonzero(odd)), remedy_channel(traces, odd))
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
        taken = {name: traces.evidence[name].array for name in (*find_method(method).needs, "event_reward")
                 if name in traces.evidence} | dict(arrays)  # fmt: skip
        results = credit.credit - credit.baseline, credit.valid
        small = outweighed(traces.graph, traces.reward, taken, *results, own_outcome=credit.own_outcome)
        near = small | (coarse_beside(traces) & (np.bincount(group[valid], minlength=len(small)) > 0))
        self.rounded += [
            name
            for (name, moved, why), beside in zip(by_group, near.tolist(), strict=False)
            if name not in self.unresolved and (beside or (moved and why == "coarse"))
        ]

    def merge(self, other: Summary) -> None:
        """Add the counts of other batches, whose groups are not among those counted here."""
        self.counts.update(other.counts)
        self.reasons.update(other.reasons)
        self.evidence.update(other.evidence)
        self._join_alike(other.alike)
        self.has_signal.update(other.has_signal)
        self.unresolved.update(other.unresolved)
        self.rounded += other.rounded
        self.large += other.large
        self.elsewhere.update(other.elsewhere)
        self.odd.update(other.odd)
        self.doubts |= other.doubts
        for task, groups in other.groups_of_task.items():
            self.groups_of_task.setdefault(task, set()).update(groups)

    @property
    def seen(self) -> Seen:
        """What the logs show of that by which a comparison may be biased."""
        from estimators.base import REASONS, Reason

        count = self.counts
        keyless = not {REASONS[Reason.NO_EVIDENCE], REASONS[Reason.SHARED_PREFIX]}.isdisjoint(self.reasons)
        alone, refused = count["refused"] + count["zeros"] > 0, REASONS[Reason.AT_ONCE] in self.reasons
        return Seen(count["repeated"] > 0, alone, keyless, count["rewarded"] > 0, refused, count["last gains"] > 0)

    def _join_alike(self, other: dict[str, str] | None) -> None:
        """Keep what is alike in all batches."""
        if self.alike is None or other is None:
            self.alike = other if self.alike is None else self.alike
        else:
            self.alike = {name: why for name, why in self.alike.items() if name in other}

    def refuse_mixed(self, method: str, options: Mapping[str, Any]) -> None:
        """Refuse batches of which some were compared by outcomes of agents and others by those of traces.

        Raises:
          CreditError: they were.
        """
        from credit.methods.running import implied

        switched = implied(find_method(method).fn, options, of_agents=True) != options
        if switched and self.counts["of agents"] and self.counts["of traces"]:
            raise CreditError(
                f"method {method!r} compared agents in some parts of the log, whose outcomes are of agents, and traces "
                "in others; expected evidence agent_reward (--evidence agent_reward), one reward as the outcome of all "
                "(--reward-channel NAME), or all traces at once"
            )

    def to_plain(self) -> dict[str, Any]:
        """The counts as JSON, from which `from_plain` makes them again."""
        tasks = {task: sorted(groups) for task, groups in self.groups_of_task.items()}
        return {
            "counts": dict(self.counts), "reasons": dict(self.reasons), "has_signal": self.has_signal, "tasks": tasks,
            "large": [list(part) for part in self.large], "unresolved": self.unresolved, "rounded": self.rounded,
            "elsewhere": self.elsewhere, "evidence": dict(self.evidence), "alike": self.alike,
            "odd": self.odd, "doubts": list(self.doubts),
        }  # fmt: skip

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Summary:
        """The counts that `to_plain` wrote."""
        summary = cls()
        summary.counts.update(plain["counts"])
        summary.reasons.update(plain["reasons"])
        summary.evidence.update(plain["evidence"])
        summary.alike = plain["alike"]
        summary.has_signal.update(plain["has_signal"])
        summary.unresolved.update(plain["unresolved"])
        summary.rounded += plain["rounded"]
        summary.elsewhere.update(plain["elsewhere"])
        summary.odd.update(plain["odd"])
        summary.doubts = dict.fromkeys(plain["doubts"])
        summary.large = [(count, size, trace) for count, size, trace in plain["large"]]
        summary.groups_of_task = {task: set(groups) for task, groups in plain["tasks"].items()}
        return summary

    def as_json(self, method: str, options: Mapping[str, Any], given: Collection[str] = ()) -> dict[str, Any]:
        """The summary as plain data; `lines` has it as text. `given` names the evidence that the method got.

        A method that under its options compares the traces of a group has nothing to compare in a group of one. Where
        released code gives the raw reward there, its numbers are advantages, of the table, too: `uncompared` has them.
        """
        count = self.counts
        from credit.methods.running import (
            optional_evidence,
            unused_rewards,
        )  # not by the module, as for `reason_counts`

        alone = count["alone"] if find_method(method).scope_of(options)[0] == "group" else 0
        return {
            "method": method,
            "traces": count["traces"],
            "groups": len(self.has_signal),
            "events": count["events"],
            "actions": count["actions"],
            "with_advantage": count["valid"],
            "uncompared": {why: n for why, n in ((ALONE, alone), (ALONE_OF_KEY, count["alone of a key"])) if n},
            "large_advantages": sum(actions for actions, _, _ in self.large),
            "without": dict(sorted(self.reasons.items())),
            "divided_tasks": sum(len(groups) > 1 for groups in self.groups_of_task.values()),
            "groups_without_signal": [name for name, signal in self.has_signal.items() if not signal],
            "unresolved": {name: UNRESOLVED[why] for name, why in self.unresolved.items()},
            "rounded": self.rounded,
            "unused_evidence": [
                name for name in optional_evidence(method) if self.evidence[name] and name not in given
            ],
            "unused_rewards": unused_rewards(method, count["rewarded"], own_outcome=count["with own outcome"] > 0),
            "elsewhere": self.elsewhere,
            "odd_outcomes": list(self.odd),
            "about_the_outcome": sorted(LIKE_OUTCOMES.intersection(find_method(method).needs))
            if count["of another reward"]
            else [],
        }

    def _doubts(self, method: str, options: Mapping[str, Any]) -> list[str]:
        """What leaves open whether a method without a bias has none: traces left out, the order of rows, copies."""
        count = self.counts
        doubts = [said for said in ("" if count["of agents"] else left_out(count),
                                    said_of_odd(self.odd, count["traces"])) if said]  # fmt: skip
        if count["unordered"] and find_method(method).reads_order(options, +self.evidence):
            stands = f"in {counted(count['unordered'], 'trace')} one stands behind a later one"
            doubts.append(f"{method} reads rows in the order of the file, and {stands}")
        if count["again"]:
            equal = "equals an earlier one, and counts" if count["again"] == 1 else "equal earlier ones, and count"
            doubts.append(f"{counted(count['again'], 'row')} of the log {equal} twice")
        if untold := reads_untold(method, count):
            doubts.append(untold)
        return doubts

    def lines(self, method: str, options: Mapping[str, Any], given: Collection[str] = ()) -> list[str]:
        """The summary as text: advantages computed, reasons for missing ones, groups without signal."""
        plain = self.as_json(method, options, given)
        count = self.counts
        lines = [
            f"{method}: {counted(count['traces'], 'trace')} in {counted(len(self.has_signal), 'group')}, "
            f"{counted(count['events'], 'event')}, {counted(count['actions'], 'action')}, "
            f"{plain['with_advantage']} with an advantage"
        ]
        from credit.methods.running import implied
        from graphs.keys import names_of_key

        entry = find_method(method)
        stated = implied(entry.fn, options, of_agents=count["of agents"] > 0)
        unbiased, why = entry.unbiased_with(stated, self.seen)
        if ":" in method:
            from credit.bench.bias_settings import OWN_EVIDENCE

            measured = f"; `credit bench bias --method {method}` computes it" * OWN_EVIDENCE.issuperset(entry.needs)
            unbiased, why = None, f"that is not known{measured}"
        doubts = self._doubts(method, options)
        if unbiased and (doubts or self.doubts):
            unbiased, why, doubts = None, "; ".join([*doubts, *self.doubts]), []
        else:
            doubts = [*doubts, *(said for said in SAW_LATER if said in self.doubts)]
        if not unbiased:
            lines.append(f"  the policy gradient {'may be biased' if unbiased is None else 'is biased'}: {why}")
        lines += [f"  {counted(count, 'action')} of these: {why}" for why, count in plain["uncompared"].items()]
        lines += [f"  {counted(count, 'action')} without: {reason}" for reason, count in plain["without"].items()]
        if entry.scope_of(stated) == ("batch", "by") and len(self.groups_of_task) > 1:
            key = ",".join(names_of_key(stated["by"]))
            lines.append(f"  look: {key} pools all tasks; --by task,{key} compares within each")
        if self.large:
            _, largest, trace = max(self.large, key=lambda part: part[1])
            lines.append(f"  look: {LargeAdvantages(plain['large_advantages'], largest, trace)}")
        if {*stated} - {*options}:
            of = f"{count['own outcomes']} of {counted(count['traces'], 'trace')}"
            compared = f"{method} compares agents of one name (by {stated['by']}), not traces"
            lines.append(f"  look: agents of {of} have outcomes of their own: {compared}")
        lines += [f"  look: {doubt}" for doubt in doubts]
        lines += [f"  look: {precision_note(self.rounded)}"] if self.rounded else []
        alike = self.alike or {}
        for name in entry.columns_with(options):
            if name in alike:
                lines.append(f"  look: {method} compares by the {name}, and {alike[name]}")
        at_once = Rounds(count["at once"], count["twice at once"])
        lines += [f"  look: {method} {at_once.said}"] if at_once.said else []
        lines += [f"  look: {plain['unused_rewards']}"] if plain["unused_rewards"] else []
        for name in plain["unused_evidence"]:
            lines.append(f"  not used: {name} ({self.evidence[name]} in the log); --evidence {name} takes it")
        if plain["about_the_outcome"]:
            traces = counted(count["of another reward"], "trace")
            lines.append(
                f"  look: {', '.join(plain['about_the_outcome'])} of the log belong to its reward 'team', and {traces} "
                "have another as their outcome; right if they were estimated for that one"
            )
        if self.elsewhere:
            pairs = [f"{name} ({other})" for name, other in self.elsewhere.items()]
            lines.append(f"  look: {len(pairs)} {ELSEWHERE}: {first_names(pairs)}; {REMEDY}")
        if plain["divided_tasks"]:
            lines.append(f"  {divided_note(plain['divided_tasks'])}")
        silent = [name for name in plain["groups_without_signal"] if name not in self.unresolved]
        if silent:
            lines.append(f"  {counted(len(silent), 'group')} without a training signal: {first_names(silent)}")
        for why in dict.fromkeys(plain["unresolved"].values()):
            names = [name for name, reason in plain["unresolved"].items() if reason == why]
            lines.append(
                f"  {counted(len(names), 'group')} without a training signal, though {why}: {first_names(names)}"
            )
        return lines


def _of_keys(
    traces: Traces, credit: Credit, method: Method, options: Mapping[str, Any], *, of_agents: bool
) -> dict[str, int]:
    """What a comparison by a key shows of its bias, in the counts of which `Summary.seen` is made."""
    from credit.methods.running import implied, rewarded, with_key  # not by the module, as for `reason_counts`
    from estimators.base import Reason
    from estimators.options import takes_key
    from graphs.keys import event_keys, names_of_key

    graph, n = traces.graph, traces.sizes.events
    stated = method.given(implied(method.fn, options, of_agents=of_agents))
    refused = np.asarray(credit.reason)[:n] == Reason.SINGLETON
    if method.scope_of(stated)[0] == "group":
        refused &= ~alone_mask(traces)[:n]  # the task has one trace, whatever it does
    counts = {
        "refused": int(refused.sum()),
        "rewarded": rewarded(traces),
    }
    population, singleton = stated.get("population", "trace"), stated.get("singleton")
    is_seen = (method.unbiased or method.of_rows) and (population != "trace" or singleton == "zero")
    names = names_of_key(stated.get("by"))
    has_raw = singleton == "raw" and takes_key(method.fn) and names not in ([], ["task"]) and "episode" not in names
    if not is_seen and not has_raw:
        return counts
    valid = np.flatnonzero(np.asarray(credit.valid)[:n])
    key = np.zeros(n, np.int64)  # of a batch that is one key
    if takes_key(method.fn):
        key = np.asarray(event_keys(graph, with_key(method.fn, traces, stated, {})["by"]))[:n].astype(np.int64)
    elif method.of_rows:
        key = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)[:n]].astype(np.int64)
    if has_raw:
        pairs = distinct_columns(key[valid], np.asarray(graph.trace_ids)[valid])
        lone = np.bincount(pairs.columns[0], minlength=n)[key] == 1
        counts["alone of a key"] = int(np.sum((lone & ~alone_mask(traces)[:n])[valid]))
    if not is_seen:
        return counts
    unit = np.asarray({"trace": graph.trace_ids, "agent": graph.agent_ids}.get(population, np.arange(n)))[valid]
    trace, key = np.asarray(graph.trace_ids)[valid], key[valid]
    samples = np.unique(key * graph.num_events + unit, return_index=True)[1]
    of_trace, times = np.unique(key[samples] * graph.num_traces + trace[samples], return_counts=True)
    traces_of_key = np.bincount(of_trace // graph.num_traces, minlength=n)
    counts["repeated"] = len(np.unique(of_trace[times > 1] % graph.num_traces))
    counts["zeros"] = int(np.sum(traces_of_key[key] == 1)) if stated.get("singleton") == "zero" else 0
    return counts


def _of_another_reward(traces: Traces) -> int:
    """How many traces have a reward "team" and another number as their outcome."""
    logged = traces.evidence.get("rewards.team")
    if logged is None:
        return 0
    outcome = np.asarray(traces.reward)[logged.rows]
    return int(np.sum(np.abs(logged.amounts.astype(outcome.dtype) - outcome) > 0))


def divided_note(tasks: int) -> str:
    """The line about tasks whose traces form several groups, because their models or systems differ."""
    if tasks == 1:
        return "1 task is split into groups by model or system; `--group-by task` compares all its traces"
    return f"{tasks} tasks are split into groups by model or system; `--group-by task` compares all their traces"


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
    spreads are 0, no advantage is counted; and none of a group with one outcome, which has no spread. An advantage
    without a baseline is a return, and large only where it is no sum of the outcome and event rewards of a trace.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 2, trace=["a", "b"], reward=[100.0, 101.0], evidence={"value": [100.0, -100.0]})
      >>> large_advantages(rows.traces, credit.gae(graph, reward, value=rows.evidence["value"]))
      LargeAdvantages(actions=1, largest=201.0, trace='b')
    """
    sizes, graph = traces.sizes, traces.graph
    n, trace = sizes.events, np.asarray(graph.trace_ids)[: sizes.events]
    valid = np.asarray(credit.valid)[:n]
    size = np.where(valid, np.abs(np.asarray(credit.advantage, np.float64)[:n]), 0)
    if credit.estimand != "score" and (np.asarray(credit.scale)[:n][valid] == 1).all():
        by_group, returns = _spreads(traces)
        known, group = by_group[by_group > 0], np.asarray(graph.group_ids)[trace]
        spread = np.where(by_group == 0, known.mean() if known.size else 0, by_group)[group]
        is_return = np.asarray(credit.baseline)[:n] == 0
        spread = np.where(is_return, np.maximum(spread, returns[group]), spread)
        size = np.divide(size, spread, out=np.zeros_like(size), where=spread > 0)
    if not (size > MULTIPLE).any():
        return LargeAdvantages(0, 0.0, "")
    row = int(np.argmax(size))
    name = traces.traces["trace"][int(trace[row])].as_py()
    return LargeAdvantages(int((size > MULTIPLE).sum()), float(size[row]), str(name))


def _spreads(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """The spread of the rewards of each group, NaN of fewer than two outcomes, and a bound of its |returns|.

    Both include its largest Σ |event reward| of a trace: float64 [T] each.
    """
    graph, n = traces.graph, traces.sizes.traces
    group, reward = np.asarray(graph.group_ids)[:n], np.asarray(traces.reward, np.float64)[:n]
    scored = np.isfinite(reward)
    high, low = np.full(graph.num_traces, -np.inf), np.full(graph.num_traces, np.inf)
    np.maximum.at(high, group[scored], reward[scored])
    np.minimum.at(low, group[scored], reward[scored])
    several = np.bincount(group[scored], minlength=graph.num_traces) > 1
    spread = np.subtract(high, low, out=np.full(graph.num_traces, np.nan), where=several)
    size = np.fmax(np.abs(high), np.abs(low))
    if "event_reward" in traces.evidence:
        events = traces.sizes.events
        step = np.nan_to_num(np.abs(np.asarray(traces.evidence["event_reward"].array, np.float64)[:events]))
        by_trace = np.bincount(np.asarray(graph.trace_ids)[:events], step, minlength=graph.num_traces)[:n]
        most = np.zeros(graph.num_traces)
        np.maximum.at(most, group, by_trace)
        spread, size = spread + most, size + most
    return spread, size


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
    """The lines that stand in the place of an empty table: why no action has an advantage."""
    if shares_no_task(traces):
        return [f"{NONE_SHARED}."]
    reasons = reason_counts(traces, credit).items()
    return [
        f"No action has an advantage by {method}.",
        *(f"  {counted(count, 'action')} without: {reason}" for reason, count in reasons),
    ]


def shares_no_task(traces: Traces) -> bool:
    """Whether each task has one trace, so that no two can be compared.

    Args:
      traces: what was read.
    """
    return not divided_tasks(traces) and bool(alone_mask(traces)[: traces.sizes.events].all())


def credit_hints(traces: Traces, hints: list[str], *, told: bool) -> list[str]:
    """These hints, and what gives more actions credit: other groups, else other methods unless units are told apart."""
    hints = [*hints]
    if (tasks := divided_tasks(traces)) and not any(hint.startswith("`--group-by") for hint in hints):
        hints.append(f"{divided_note(tasks)}.")
    elif shares_no_task(traces):
        says = "`--groups FILE`, a table with columns `trace` and `group`, says which"
        return [*hints, f"{says} traces share a task." if told else f"{NONE_SHARED}: {says} do."]
    choose = "`credit choose` names the methods that these logs allow, and what could be logged."
    return hints if told else [*hints, choose]
