"""What two sides are compared in: rows of a table with its terms, and which of them a sentence is about."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from credit.metrics.success_costs import SuccessCost
from credit.reports.beyond_chance import starred
from credit.reports.triage_legend import MARKS
from credit.reports.unread_outcomes import UnreadOutcomes, UnscoredEnds
from credit.sides.asked_metrics import ASKED, ASKED_NEXT, FIRST, OF_HEAD
from credit.sides.call_times import CallTimes
from credit.sides.changed_teams import TeamChange
from credit.sides.chosen_sides import Sides
from credit.sides.comparable_traces import EARLY
from credit.sides.shown_changes import only_in
from credit.sides.side_agents import BY_AGENT, AgentDifference
from credit.sides.side_bounds import SideBound
from credit.sides.side_differences import Uncompared
from credit.sides.side_rows import SideDifference
from credit.sides.side_words import MOST_TOLD, grouped, up_to
from credit.sides.tool_failures import ToolFailures
from credit.sides.verdict_changes import VerdictChange
from graphs.compared_alone import tasks_alone
from graphs.task_means import LEAST_OF_ANY, LEAST_TASKS, LEVEL, alike, holm
from graphs.text import printable

__all__ = ["ComparedSides", "place_of"]

REST = ("asked", "others", "costs of kinds")
"""Parts of what is tested that no head of a summary tells."""
MOST_COSTLY = 3
"""Kinds of task of which a table has a cost."""


@dataclasses.dataclass(frozen=True)
class ComparedSides:
    """What differs between two sides: `side_differences`, `bounds_of_sides` and `uncompared` of all metrics.

    Attributes:
      sides: that are compared.
      rows, bounds, lost: what these functions find.
      task: of each trace: int [traces].
      apart: sentences on models, systems, formats and agents that differ between the sides, and do not make them.
      same: metrics that have one number in all traces, as those of the team where it is one agent; they have no row.
      unread: of each side, the outcomes of traces that were refused.
      unscored: of each side, how traces without an outcome end.
      refused: of each side, how many other traces were refused, and of those that nothing places.
      paid: what a success cost on each side, by task, in those with outcomes on both where these are compared alone.
      paid_tasks: how many these are; 0 where `paid` is of all tasks.
      paid_elsewhere: what the traces without an outcome cost in other tasks.
      agents: what each adds to a row of `BY_AGENT`, by its name, where several cost something, or one has other models.
      apart_in: what `apart` is about, each once, with the name that the sides differ most in: one of the second side
        before one of the first.
      not_told: of `apart`, why what models did cannot be told; "" where it can.
      in_time: what `apart_in_time` says.
      alone: where that is the format, too, the agents that act on the first side alone, and on the second, in all of a
        format's traces or in none, so that the format may hide them.
      failing, empty: of each tool that both sides call, how many calls failed, and how many gave nothing.
      times: how long a call of each tool, and of each agent's model, takes.
      verdicts: how often each verdict is wrong.
      failures: of each side, how many traces failed, of how many with an outcome; then of tasks with both sides alone,
        where these are compared alone.
      rates: of each side, the part of all that failed, in words, where a verdict decides who has an outcome
        (`part_rates`); None elsewhere.
      unweighted: why outcomes are not compared, where a verdict decides who has one and they cannot be weighted by it;
        "" elsewhere.
      left_out: which outcomes are compared, as of `left_out`.
      judged: "success" or "outcome"; "" without outcomes.
      each_task: of each task with outcomes on both sides, by its name, the means of both.
      teams: of `team_changes`, of these outcomes.
      kinds: the same outcomes, and costs, within each kind of tasks (`task_kind_changes`).
      mix: whose part of the tasks changed, as of `changed_mix`, where rows are compared within kinds; "" elsewhere.
    """

    sides: Sides
    rows: list[SideDifference]
    bounds: list[SideBound]
    lost: list[Uncompared]
    task: np.ndarray
    apart: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    unread: tuple[UnreadOutcomes, ...] = ()
    unscored: tuple[UnscoredEnds, ...] = ()
    refused: Mapping[str, int] = dataclasses.field(default_factory=dict)
    paid: tuple[SuccessCost, ...] = ()
    paid_tasks: int = 0
    paid_elsewhere: tuple[SuccessCost, ...] = ()
    agents: Mapping[str, tuple[AgentDifference, ...]] = dataclasses.field(default_factory=dict)
    apart_in: Mapping[str, str] = dataclasses.field(default_factory=dict)
    not_told: str = ""
    in_time: str = ""
    alone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    failing: tuple[ToolFailures, ...] = ()
    empty: tuple[ToolFailures, ...] = ()
    times: tuple[CallTimes, ...] = ()
    verdicts: tuple[VerdictChange, ...] = ()
    failures: tuple[tuple[int, int], ...] = ()
    rates: str | None = None
    unweighted: str = ""
    left_out: str = ""
    judged: str = ""
    each_task: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    teams: tuple[TeamChange, ...] = ()
    kinds: tuple[SideDifference, ...] = ()
    mix: str = ""

    @property
    def tasks(self) -> dict[str, list[str]]:
        """The names of tasks by what their mean did from the first side to the second, those that it did most first."""
        found: dict[str, list[str]] = {"rose": [], "fell": [], "same": []}
        for name, (before, after) in sorted(self.each_task.items(), key=lambda one: -abs(one[1][1] - one[1][0])):
            found["same" if alike(before, after) else "rose" if after > before else "fell"].append(name)
        return found

    def _asked(self) -> list[SideDifference]:
        return sorted((row for row in self.rows if row.metric in ASKED), key=lambda row: [*ASKED].index(row.metric))

    def _next(self) -> list[SideDifference]:
        return [row for row in self.rows if row.metric in ASKED_NEXT]

    def together(self) -> Self:
        """The same under two corrections beside that of success: what the head of a summary may tell, and the rest.

        Parts have their own before: of 84 logs in which only chance was, a head then told a change in 15, and of 60 a
        table in 13. Holm's method takes the least p of each part.

        Reference: Holm 1979.
        """
        p: dict[str, list[float | None]] = {
            "failing": [one.share.p for one in self.failing], "empty": [one.share.p for one in self.empty],
            "times": [one.seconds.p for one in self.times], "verdicts": [one.p for one in self.verdicts],
            "agents": [row.p for of in self.agents.values() for one in of
                       for row in (one.test, one.taking_part) if row is not None],
        }  # fmt: skip
        for row in (*self.rows, *self.kinds):
            p.setdefault(self._part(row), []).extend((row.p, row.here))
        least = {part: min((one for one in of if one is not None), default=math.nan) for part, of in p.items()}
        by = {"success": (1.0, 1)}
        for is_rest in (False, True):
            family = [part for part in least if part != "success" and (part in REST) == is_rest]
            alone = [least[part] for part in family]
            tested = max(sum(one == one for one in alone), 1)
            by |= {part: (joint / one if one > 0 else 1.0, tested)
                   for part, one, joint in zip(family, alone, holm(alone), strict=True)}  # fmt: skip
        return dataclasses.replace(
            self,
            rows=[row.raised(*by[self._part(row)]) for row in self.rows],
            kinds=tuple(row.raised(*by[self._part(row)]) for row in self.kinds),
            times=tuple(dataclasses.replace(one, seconds=one.seconds.raised(*by["times"])) for one in self.times),
            agents={name: tuple(one.raised(*by["agents"]) for one in of) for name, of in self.agents.items()},
            failing=tuple(one.raised(*by["failing"]) for one in self.failing),
            empty=tuple(one.raised(*by["empty"]) for one in self.empty),
            verdicts=tuple(one.raised(*by["verdicts"]) for one in self.verdicts),
        )

    def _part(self, row: SideDifference) -> str:
        """The part of the tests that a row is of."""
        name = row.same_as or row.metric
        if row.kind:
            return "kinds" if row.metric == self.judged else "costs of kinds"
        if name in (*FIRST, *OF_HEAD):
            return "success" if name in FIRST else "costs"
        return "asked" if name in {*ASKED, *ASKED_NEXT} else "others"

    def _kinds(self) -> list[SideDifference]:
        """The kinds of tasks in which the outcome changed, those in which it did so most first."""
        told = (row for row in self.kinds if row.is_told and row.metric == self.judged)
        return sorted(told, key=lambda row: -abs(row.difference))

    def _failing(self) -> list[ToolFailures]:
        """The tools whose failures changed beyond chance, but in the way in which all errors did."""
        errors = {row.rises for row in self.rows if row.metric == "errors" and row.worth_telling}
        return [one for one in self.failing if one.share.stands_out and one.share.rises not in errors]

    def sides_of_kinds(self) -> tuple[np.ndarray, list[str], list[str]] | tuple[()]:
        """What `failed_by_kind` takes to tell sides apart in kinds that changed beyond chance; nothing where `in_short`
        tells of these, or no kind is tested."""
        certain = any(row.metric == self.judged and row.worth_telling for row in self.rows)
        tested = any(row.metric == self.judged and row.p is not None for row in self.kinds)
        kinds = [row.kind for row in self._kinds()]
        return (self.sides.side, [*self.sides.heads], kinds) if tested and (certain or not kinds) else ()

    def _partial(self) -> list[SideDifference]:
        """The rows that sentences may name whose numbers are of a part of the traces, but those of `_whole`."""
        named = (*FIRST, *self.agents)
        part = (row for row in self._asked() if row.part() and EARLY not in row.refused)
        return [row for row in part if not row.few_lack and (row.worth_telling or row.metric in named)]

    def _uncosted(self) -> tuple[str, str]:
        """The cost that is not compared, where prices are given or a part of it is known, and why; "" where one is."""
        lost, partly = {one.metric: one for one in self.lost}, {"money", *(bound.metric for bound in self.bounds)}
        for name in itertools.chain(*BY_AGENT):
            if any(row.metric == name for row in self.rows):
                break
            if name in lost and name in partly:
                on = f"on {self.sides.heads[lost[name].sides[0]]} " if len(lost[name].sides) == 1 else ""
                return name, f"{on}{lost[name].reason}"
        return "", ""

    def _unpaired(self) -> list[str]:
        return [ASKED[row.metric] for row in self._asked() if not row.paired]

    def shown(self) -> list[SideDifference]:
        """The rows of a table, each with its kinds of tasks; without those that nobody asks for and that are alike, or
        that repeat a row, which `lines` names. A cost has its kinds where one of these changed beyond chance: those
        that did, then the most costly, `MOST_COSTLY` in all."""
        rows = [row for row in self.rows if not (row.is_other and row.is_alike) and not self._repeats(row)]
        kinds: dict[str, list[SideDifference]] = {}
        for one in self.kinds:
            kinds.setdefault(one.metric, []).append(one)
        for metric in [name for name in kinds if name != self.judged]:
            its = sorted(
                kinds[metric], key=lambda one: (not one.is_told, -float(np.dot(one.traces, (one.first, one.second))))
            )
            kinds[metric] = its[: max(MOST_COSTLY, sum(one.is_told for one in its))] if its[0].is_told else []
        return [one for row in rows for one in (row, *kinds.get(row.metric, ()))]

    def of_tools(self) -> list[SideDifference]:
        """Rows of tools that failed, or gave nothing, `MOST_TOLD` of each: those that changed beyond chance first."""
        return [
            one.row(what)
            for what, found in (("errors", self.failing), ("empty results", self.empty))
            for one in sorted(
                (one for one in found if any(one.failed)), key=lambda one: (not one.share.stands_out, -sum(one.failed))
            )[:MOST_TOLD]
        ]

    def _repeats(self, row: SideDifference) -> bool:
        """Whether it has the numbers of a row before it, as where agents that come leave again, or errors last."""
        before = itertools.takewhile(lambda one: one is not row, self.rows)
        numbers = [(one.first, one.second) for one in before if row.same_as in (one.metric, one.same_as)]
        return row.p is not None and row.same_as != "" and (row.first, row.second) in numbers

    def of_rows(self) -> list[str]:
        """Of which traces the rows are, and which metrics are alike, in sentences."""
        lines = [self._compared_traces()] if self.rows else []
        equal = [row.metric for row in self.rows if row.is_other and row.is_alike]
        lines += [f"the same to three digits in all traces: {', '.join(self.same)}"] if self.same else []
        lines += [f"the same to three digits: {', '.join(equal)}"] if equal else []
        names, shown = [row.metric for row in self.rows], self.shown()
        left = grouped(
            (one.metric, printable(one.kind, 60)) for one in self.kinds if one.metric in names and one not in shown
        )
        costs = "; ".join(f"{metric} of {', '.join(up_to(kinds))}" for metric, kinds in left.items())
        lines += [f"tested too, no change shown: {costs}"] if costs else []
        tests = grouped((row.same_as, row.metric) for row in self.rows if row.same_as and row.p is not None)
        as_one = "; ".join(", ".join([first, *others]) for first, others in tests.items())
        return lines + [f"one test, since their numbers rise as one: {as_one}"] * bool(tests)

    def _compared_traces(self) -> str:
        """Of how many traces of the sides rows are, and why some are of a selection."""
        fewer: dict[str, list[str]] = {}
        for row in self.rows:
            if row.refused:
                most = "mostly " if len(row.refused) > 1 else ""
                rest = sum(row.asked) - sum(row.traces) - sum(row.lacking)
                other = ", or its task has none on the other side" if rest else ""
                reason = f"{row.traces[0]} and {row.traces[1]}: {most}{next(iter(row.refused))}{other}"
                fewer.setdefault(reason, []).append(row.metric)
        of_side = [self.task[self.sides.side == one] for one in (0, 1)]
        first, second = (np.unique(tasks) for tasks in of_side)
        shared, line = tasks_alone(self.sides.side, self.task), f"{len(of_side[0])} and {len(of_side[1])}"
        untold = max((row.untold for row in self.rows), default=(0, 0))
        if len(shared) and len(shared) < max(len(first), len(second)):
            before, after = (int(np.isin(tasks, shared).sum()) for tasks in of_side)
            alone = [len(of) - len(shared) - lost for of, lost in zip((first, second), untold, strict=True)]
            line = f"{before} and {after} of {line}"
            line += f"; {alone[0]} and {alone[1]} tasks are on one side only" if any(alone) else ""
            lost = f"; the tasks of {untold[0]} and {untold[1]}, which were cut short, are not known"
            line += lost if any(untold) else ""
        selected = f"; of fewer, which may differ in more than the side: {_by_reason(fewer)}"
        return f"traces: {line}" + (selected if fewer else "")

    def terms(self) -> list[tuple[str, str]]:
        """The terms of a table of the rows and the bounds."""
        first, second = self.sides.heads
        has = "have" if self.sides.since else "has"
        twice = f"×2: {second} {has} twice what {first} {has}"
        few = (
            "shared tasks, or traces of a side in these" if any(row.paired for row in self.rows) else "tasks of a side"
        )
        within, every = [row for row in self.rows if row.within], (*self.shown(), *self.of_tools())
        ways = any("one way" in (row.would_be_seen or "") for row in every)
        some = next((f"{row.differing} of {row.tasks} shared" for row in every if row.is_of_some), "")
        place = next((row.place for row in (*within, *self.rows) if not row.paired), "")
        return [
            ("typical ×", f"typical {twice} in the typical task; a few large tasks may move the means otherwise"),
            *[(f"tasks: {some}", f"{some}: so many differ, and typical × is of these")] * bool(some),
            *[("", "means are within kinds of task: each kind weighs as much on both sides")] * bool(within),
            ("geometric ×", f"geometric {twice} {place}; a few large tasks may move the others"),
            ("rose ", f"rose, fell: tasks; fewer than {LEAST_TASKS} differ, too few for an interval; * is of a test"),
            ("no spread", "no spread: all tasks differ alike, or those of a side are alike"),
            ("of all calls", "of all calls: as few are of shared tasks, traces of all tasks are tested"),
            ("has zeros", f"has zeros: a task has none on one side; an interval then takes {LEAST_OF_ANY} tasks"),
            ("–", f"–: not tested: fewer than {LEAST_TASKS} {few}"),
            ("°", f"° {only_in(0)}: p < {LEVEL:g} for runs dealt anew within each; over tasks, it may be chance"),
            ("≈", "≈ beyond chance, and the same to three digits"),
            ("†", "† an end of the interval was moved to no difference, which the test does not reject"),
            ("would be seen: ", "would be seen: a change as large as this has a * in 4 of 5 cases"),
            *[("", "tasks one way: no fewer that all rise, or all fall, have a *")] * ways,
            ("would be seen: nothing", "nothing: tasks are too few for a *"),
            *[("", "intervals are not corrected: one without * may leave out no difference")]
            * any(row.by_itself for row in every),
            starred("all tests of success, of costs, kinds of task, tools, agents and verdicts, or of the rest"),
            MARKS[1],
        ]

    def without_number(self) -> list[str]:
        """Lines on metrics with bounds, and on those without a row, with their first reasons."""
        bounded, found = {bound.metric for bound in self.bounds}, dict[str, dict[str, list[str]]]()
        for one in sorted(self.lost, key=lambda one: (one.metric not in bounded, -len(one.sides))):
            none = f"no number on {place_of(one.sides, self.sides.names)}"
            place = found.setdefault("known in part" if one.metric in bounded else none, {})
            place.setdefault(one.reason, []).append(one.metric)
        return [f"{place}: {_by_reason(of)}" for place, of in found.items()]


def place_of(sides: Sequence[int], names: Sequence[str]) -> str:
    """The name of a side, or what stands for both."""
    return "either side" if len(sides) > 1 else names[sides[0]]


def _by_reason(metrics: dict[str, list[str]]) -> str:
    return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in metrics.items())
