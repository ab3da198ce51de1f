"""A comparison of two sides, in words: what changed, by how much, through whom, and what else may be the reason."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from credit.metrics.success_costs import SuccessCost, success_line
from credit.reports.beyond_chance import starred
from credit.reports.owners import OWNED
from credit.reports.triage_legend import MARKS
from credit.reports.unread_outcomes import NO_SIDE, UnreadOutcomes, UnscoredEnds, unread_line, unscored_line
from credit.sides.asked_metrics import ASKED, ASKED_NEXT, FIRST, OF_COSTS, OF_TEAM_SIZE, WALL_CLOCK
from credit.sides.changed_teams import TeamChange, told_team_changes
from credit.sides.chosen_sides import Sides
from credit.sides.comparable_traces import EARLY
from credit.sides.side_agents import BY_AGENT, AgentDifference
from credit.sides.side_bounds import SideBound
from credit.sides.side_differences import Uncompared
from credit.sides.side_rows import IN_THESE, SideDifference
from credit.sides.side_words import MOST_TOLD, first_to_second, short, signed
from credit.sides.tool_failures import ToolFailures, failing_tools
from credit.sides.verdict_changes import VerdictChange, told_changes
from graphs.task_means import LEAST_OF_ANY, LEAST_TASKS, LEVEL, alike
from graphs.text import counted, percent, printable, rounds_away

__all__ = ["MOST_WORDS", "SideComparison"]

TOKENS = frozenset(("tokens", "input_tokens"))
"""What is "tokens" where both are told."""
MOST_WORDS = 25
"""Words of the answer to what changed."""
CAVEATS = 3
"""Caveats beside that answer; all of them stand with the sides."""
LEAST_SHARE = 0.05
"""Share of a difference from which an agent's part of it is told, and of a mean from which a lead is told whose its
change is."""
LEAST_CACHED = 0.1
"""By how much the part of an agent's tokens read that comes from a cache differs where that is told."""
MOST_TASKS = 3
"""Tasks that are named of those that rose, and of those that fell."""
AGAINST = 1 / 3
"""Share of the change of a kind of tasks from which the change of another one, the other way, is told beside it."""
MOST_HIDDEN = 2
"""Agents that are named as those of one side alone."""


@dataclasses.dataclass(frozen=True)
class SideComparison:
    """What differs between two sides: `side_differences`, `bounds_of_sides` and `uncompared` of all metrics.

    Attributes:
      sides: that are compared.
      rows, bounds, lost: what these functions find.
      task: of each trace: int [traces].
      apart: sentences on models, systems, formats and agents that differ between the sides, and do not make them.
      same: metrics that have one number in all traces, as those of the team where it is one agent; they have no row.
      unread: of each side, the outcomes of traces that were refused.
      unscored: of each side, how traces without an outcome end.
      unplaced: how many other traces were refused without a word on their side.
      paid: what a success cost on each side, by task, in those with outcomes on both where there are any.
      paid_tasks: how many these are; 0 where `paid` is of all tasks.
      paid_elsewhere: what the traces without an outcome cost in other tasks.
      agents: what each adds to the difference of a row of `BY_AGENT`, by its name, where several cost something, or
        one with other models.
      apart_in: what `apart` is about, each once, with the name that the sides differ most in: one of the second side
        before one of the first.
      not_told: of `apart`, why what models did cannot be told; "" where it can.
      alone: where that is the format, too, the agents that act on the first side alone, and on the second, in all of a
        format's traces or in none, so that the format may hide them.
      failing, empty: of each tool that both sides call, how many calls failed, and how many gave nothing.
      verdicts: how often each verdict is wrong.
      failures: of each side, how many traces failed, of how many with an outcome; then of tasks with both sides alone.
      judged: "success" or "outcome"; "" without outcomes.
      each_task: of each task with outcomes on both sides, by its name, the means of both.
      teams: of `team_changes`, of these outcomes.
      kinds: the same outcomes, and costs, within each kind of tasks (`task_kind_changes`).
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
    unplaced: int = 0
    paid: tuple[SuccessCost, ...] = ()
    paid_tasks: int = 0
    paid_elsewhere: tuple[SuccessCost, ...] = ()
    agents: Mapping[str, tuple[AgentDifference, ...]] = dataclasses.field(default_factory=dict)
    apart_in: Mapping[str, str] = dataclasses.field(default_factory=dict)
    not_told: str = ""
    alone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    failing: tuple[ToolFailures, ...] = ()
    empty: tuple[ToolFailures, ...] = ()
    verdicts: tuple[VerdictChange, ...] = ()
    failures: tuple[tuple[int, int], ...] = ()
    judged: str = ""
    each_task: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    teams: tuple[TeamChange, ...] = ()
    kinds: tuple[SideDifference, ...] = ()

    @property
    def tasks(self) -> dict[str, list[str]]:
        """The names of tasks by what their mean did from the first side to the second, those that it did most first."""
        found: dict[str, list[str]] = {"rose": [], "fell": [], "same": []}
        for name, (before, after) in sorted(self.each_task.items(), key=lambda one: -abs(one[1][1] - one[1][0])):
            found["same" if alike(before, after) else "rose" if after > before else "fell"].append(name)
        return found

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        names = self.sides.names
        lacking = [dataclasses.asdict(row) | {"sides": [names[one] for one in row.sides]} for row in self.lost]
        words = ("name", "stands_out", "mark", "without", "is_other", "is_alike", "is_of_some")
        rows, kinds = (
            [dataclasses.asdict(row) | {word: getattr(row, word) for word in words} for row in some]
            for some in (self.rows, self.kinds)
        )
        rows = [row | {"is_repeated": self._repeats(of)} for row, of in zip(rows, self.rows, strict=True)]
        bounds = [dataclasses.asdict(row) for row in self.bounds]
        told: dict[str, Any] = {"changed": self.changed(), "numbers": self.numbers(), "but": "; ".join(self.but())}
        told |= {name: [*map(dataclasses.asdict, getattr(self, name))] for name in ("unread", "unscored")}
        told |= {"caveats": self.caveats(), "tasks": self.tasks, "of_tasks": self.of_tasks()}
        told |= {"each_task": self.each_task, "by_team": self.by_team(), "kinds": kinds, "by_kind": self.by_kind()}
        told["costs_by_kind"] = self.costs_by_kind()
        told["teams"] = [*map(dataclasses.asdict, self.teams)]
        told |= {"paid": self.success_cost(), "lines": self.lines()}
        told |= {"paid_by_side": [*map(dataclasses.asdict, self.paid)], "paid_tasks": self.paid_tasks}
        told |= {"by_owner": self.by_owner(), "by_agent": self.by_agent(), "origin": self.origin()}
        for name, of in (("tools", self.failing), ("empty_results", self.empty)):
            told[name] = [dataclasses.asdict(one) | {"stands_out": one.share.stands_out} for one in of]
        told["verdict_changes"] = [dataclasses.asdict(one) | {"stands_out": one.stands_out} for one in self.verdicts]
        told |= {"failed": self.failed(), "by_tool": self.by_tool(), "by_verdict": self.by_verdict()}
        told |= {"hints": self.hints()}
        told["agents"] = {name: [*map(dataclasses.asdict, of)] for name, of in self.agents.items()}
        return {"sides": names, "differences": rows, "uncompared": lacking, "bounds": bounds, "same": self.same, **told}

    def shown(self) -> list[SideDifference]:
        """The rows of a table, each with its kinds of tasks, costs where one of these changed beyond chance; without
        those that nobody asks for and that are alike, or that repeat a row, which `lines` names."""
        rows = [row for row in self.rows if not (row.is_other and row.is_alike) and not self._repeats(row)]
        told = {self.judged, *(row.metric for row in self.kinds if row.is_told)}
        kinds = {row.metric: [one for one in self.kinds if one.metric == row.metric in told] for row in rows}
        return [one for row in rows for one in (row, *kinds[row.metric])]

    def _repeats(self, row: SideDifference) -> bool:
        """Whether it is an other metric with the numbers of a row before it, as when agents that come leave again."""
        before = itertools.takewhile(lambda one: one is not row, self.rows)
        numbers = [(one.first, one.second) for one in before if row.same_as in (one.metric, one.same_as)]
        return row.is_other and row.p is not None and row.same_as != "" and (row.first, row.second) in numbers

    def _asked(self) -> list[SideDifference]:
        return sorted((row for row in self.rows if row.metric in ASKED), key=lambda row: [*ASKED].index(row.metric))

    def _next(self) -> list[SideDifference]:
        return [row for row in self.rows if row.metric in ASKED_NEXT]

    def _head(self) -> str:
        return f"What changed from {' to '.join(self.sides.heads)}: "

    def changed(self) -> str:
        """The answer: success, then what else of `ASKED` and `ASKED_NEXT` changed beyond chance: one metric and the
        first cost each way, more up to `MOST_WORDS`."""
        asked = self._asked()
        told = [f"{row.metric} {first_to_second(row.first, row.second)}, {row.in_short()}"
                for row in asked if row.metric in FIRST]  # fmt: skip
        if not told:
            lost = [_place(one.sides, self.sides.heads) for one in self.lost if one.metric == "success"]
            told = [f"success is not known on {place}, where no trace has an outcome" for place in lost]
        for sure in ([row for row in self._kinds() if row.in_these == few] for few in (False, True)):
            of = [f"{printable(row.kind, 40)} {first_to_second(row.first, row.second)}" for row in sure[:MOST_HIDDEN]]
            of += ["…"] * (len(sure) > MOST_HIDDEN)
            named = (" and " if len(of) < MOST_HIDDEN + 1 else ", ").join(of)
            told += [f"for {named}, {IN_THESE if sure[0].in_these else 'beyond chance'}"] if of else []
        ways: dict[str, list[str]] = {}  # sentences on each way, the fullest first
        for up, few in itertools.product((True, False), (False, True)):
            way = f"{'up' if up else 'down'}{f' {IN_THESE}' * few}"
            rose = [row for row in (*asked, *self._next())
                    if row.is_told and row.in_these == few and row.metric not in FIRST and row.rises == up]  # fmt: skip
            both = {row.metric for row in rose} >= TOKENS
            rose = [row for row in rose if not both or row.metric != "input_tokens"]
            called = {row.metric: "tokens" if both and row.metric in TOKENS else _name(row.metric) for row in rose}
            who = {row.metric: row.owners.words() if row.metric in OWNED else [] for row in rose}
            rose.sort(key=lambda row: not who[row.metric])  # where to look first, then what it costs
            rose[1:] = sorted(rose[1:], key=lambda row: row.metric not in OF_COSTS)
            failing = (one for one in self._failing() if one.share.rises == up)
            wrong = [f"failures per call of {printable(one.tool, 60)}" for one in failing]
            wrong += [f"empty results per call of {printable(one.tool, 60)}"
                      for one in self.empty if one.share.stands_out and one.share.rises == up]  # fmt: skip
            misled = [one for one in self.verdicts if one.stands_out]
            others = {one.verdict for one in misled if (one.difference > 0) != up}  # which passes more of all, or fewer
            wrong += [one.name for one in misled
                      if (one.difference > 0) == up and not (one.succeeded and one.verdict in others)]  # fmt: skip
            own, wrong = ([], []) if few else (self._of_agents(up), wrong)
            plain = wrong + [called[row.metric] for row in rose] + own
            owned = [" and ".join(who[row.metric]) for row in rose]
            owned = ["" if one in owned[:place] else one for place, one in enumerate(owned)]  # said once
            whose = wrong + [f"{called[row.metric]} {of}".strip() for row, of in zip(rose, owned, strict=True)] + own
            cost = next((len(wrong) + i for i, row in enumerate(rose) if row.metric in OF_COSTS), -1)
            for shown, names in itertools.product(range(len(plain), 0, -1), (whose, plain)):
                kept = [name for i, name in enumerate(names) if i < shown or i == cost]
                ways.setdefault(way, []).append(f"{way}: {', '.join(kept + ['…'] * (len(kept) < len(names)))}")
        said = {way: min(every, key=lambda one: len(one.split())) for way, every in ways.items()}
        for way, every in ways.items():
            for one in every:
                if len(f"{self._head()}{'; '.join([*told, *(said | {way: one}).values()])}".split()) <= MOST_WORDS:
                    said[way] = one
                    break
        told += said.values()
        return "; ".join(told) or ("nothing stands out" if self.rows else "nothing that both sides have a number of")

    def sides_of_kinds(self) -> tuple[np.ndarray, list[str]] | tuple[()]:
        """What `failed_by_kind` takes to tell sides apart; nothing where `in_short` tells of kinds what changed."""
        return () if self._kinds() else (self.sides.side, [*self.sides.heads])

    def in_short(self) -> str:
        """For which kinds of tasks the second side is better or worse, at what price, of which agent, and whether it is
        faster, and what kinds beside one did the other way; "" where none of these is told."""
        first, second = self.sides.heads
        judged = next((row for row in self._asked() if row.metric in FIRST), None)
        certain = judged is not None and judged.worth_telling
        told, of_kinds = [], [row for row in self._kinds() if row.worth_telling or not certain]
        for word, rises in (("better", True), ("worse", False)):
            of = [f"{printable(row.kind, 40)} ({_seen(row, ', ')}"
                  f"{row.metric} {first_to_second(row.first, row.second)})"
                  for row in of_kinds if row.rises == rises]  # fmt: skip
            kinds = " and ".join(of[:MOST_HIDDEN]) if len(of) <= MOST_HIDDEN else f"{', '.join(of[:MOST_HIDDEN])}, …"
            told += [f"{word} for {kinds}"] if of else []
        against = self._against(of_kinds) if len(told) == 1 else []
        if judged is not None and not told:
            numbers = f"{judged.metric} {first_to_second(judged.first, judged.second)}"
            if judged.is_told:
                here, most = f" {_seen(judged)}".rstrip(), self._kind_of_most(judged)
                told = [f"{'better' if judged.rises else 'worse'} than {first}{here} ({numbers}){most}"]
            else:
                told = [f"not surely better or worse than {first}: {numbers}, {judged.in_short()}"]
        changed = of_kinds or [*filter(None, [judged])]
        few = bool(changed) and all(row.in_these for row in changed)  # said of these tasks, not of the side
        said = f"{second} {'did' if few else 'is'} {' and '.join(told)}" if told else ""
        cost = next((row for row in self._asked() if row.metric in OF_COSTS), None)
        clock = next((row for row in self.rows if row.metric == WALL_CLOCK and row.is_told), None)
        changes, times = [], dict[bool, list[str]]()
        for row in filter(None, (cost, clock)):
            name, whose = _name(row.metric), self._agent_of_most(row)
            if not row.is_told:
                changes.append(f"{name}: {row.why()}")
                continue
            name += f" (mostly of {whose})" if whose else ""
            if row.ratio is not None and row.worth_telling:
                times.setdefault(row.paired, []).append(f"{short(row.ratio.value)} times the {name}")
            else:
                ways = ("rose", "fell") if row.in_these else ("rises", "falls")
                change = f"{name} {ways[not row.rises]} from {short(row.first)} to {short(row.second)}"
                changes.append(f"{change} {_seen(row)}".rstrip())
        by = {True: "in the typical task", False: "by geometric means over tasks"}
        if ratios := " and ".join(f"{' and '.join(of)} {by[paired]}" for paired, of in times.items()):
            said = f"{said}, at {ratios}" if said else f"{second} takes {ratios}"
        told = [*filter(None, [said]), *["other tasks may differ"] * few, *changes, *against]
        return f"{'; '.join(told)}." if told else ""

    def _against(self, told: Sequence[SideDifference]) -> list[str]:
        """What other kinds of tasks did that move the other way than those told, by `AGAINST` of the first at least."""
        most = told[0].difference
        rows = (row for row in self.kinds if row.metric == self.judged and row.difference * most < 0)
        much = [row for row in rows if abs(row.difference) >= AGAINST * abs(most)]
        return [
            f"{row.metric} of {printable(row.kind, 40)} {first_to_second(row.first, row.second)}, "
            f"{row.why().partition(' (')[0]}"
            for row in sorted(much, key=lambda row: -abs(row.difference))[:MOST_HIDDEN]
        ]

    def _agent_of_most(self, row: SideDifference) -> str:
        """The agent that more than half of a difference comes from, beyond chance; "" without one."""
        own = (one for one in self.agents.get(row.metric, ()) if one.stands_out)
        most = (one.agent for one in own if row.difference and one.difference / row.difference > 0.5)
        return printable(next(most, ""), 40)

    def _kind_of_most(self, judged: SideDifference) -> str:
        """The one kind of tasks that changed as all did, where more than half of that comes from it; "" elsewhere."""
        of = [row for row in self._kinds() if row.rises == judged.rises]
        if len(of) != 1 or of[0].difference * of[0].tasks / (judged.difference * judged.tasks) <= 0.5:
            return ""
        numbers = f"{_seen(of[0], ', ')}{first_to_second(of[0].first, of[0].second)}"
        return f", most of all for {printable(of[0].kind, 40)} ({numbers})"

    def _kinds(self) -> list[SideDifference]:
        """The kinds of tasks in which the outcome changed, those in which it did so most first."""
        told = (row for row in self.kinds if row.is_told and row.metric == self.judged)
        return sorted(told, key=lambda row: -abs(row.difference))

    def _failing(self) -> list[ToolFailures]:
        """The tools whose failures changed beyond chance, but in the way in which all errors did."""
        errors = {row.rises for row in self.rows if row.metric == "errors" and row.worth_telling}
        return [one for one in self.failing if one.share.stands_out and one.share.rises not in errors]

    def _of_agents(self, up: bool) -> list[str]:
        """The costs that agents of their own have more of, or less, beyond chance, where the sum does not say so."""
        said: set[str] = set()
        told: list[str] = []
        for row in self.rows:
            if row.worth_telling and row.rises == up:
                continue
            own = (
                one.agent for one in self.agents.get(row.metric, ()) if one.stands_out and (one.difference > 0) == up
            )
            of = [agent for agent in own if agent not in said]
            said |= {*of}
            names = [printable(agent, 60) for agent in of[:MOST_HIDDEN]] + ["…"] * (len(of) > MOST_HIDDEN)
            told += [f"{_name(row.metric)} of {' and '.join(names)}"] * bool(of)
        return told

    def by_tool(self) -> str:
        """Which tools fail, or give nothing, more or less often beyond chance, with their counts; "" without any."""
        return "; ".join(filter(None, [failing_tools(self.failing), failing_tools(self.empty, "empty results")]))

    def by_verdict(self, *, certain: bool = False) -> str:
        """Which failures verdicts pass, and which successes they fail, or those that changed beyond chance; "" without
        any."""
        return told_changes(self.verdicts, certain=certain)

    def by_team(self) -> str:
        """The outcome of tasks in which an agent mostly acts on one side alone, and of the rest; "" without any."""
        return told_team_changes(self.teams, self.sides.heads, self.judged)

    def by_kind(self) -> str:
        """The outcome of each kind of tasks; "" without kinds."""
        told = [
            f"{printable(row.kind, 60)} {first_to_second(row.first, row.second)} in {counted(row.tasks, 'task')}, "
            f"{': '.join(filter(None, [row.ways, why])) if why.startswith('too few') else why}"
            for row in self.kinds
            if row.metric == self.judged and (why := row.in_short())
        ]
        return f"{self.judged} by kind of task: {'; '.join(told)}" if told else ""

    def costs_by_kind(self) -> str:
        """What costs did in each kind of tasks, where one did so beyond chance; "" without kinds."""
        told: list[str] = []
        quiet: list[str] = []
        for name in dict.fromkeys(row.metric for row in self.kinds if row.metric != self.judged):
            rows = [row for row in self.kinds if row.metric == name]
            if not any(row.is_told for row in rows):
                quiet.append(_name(name))
                continue
            each = [
                f"{printable(row.kind, 60)} {first_to_second(row.first, row.second)}"
                f" ({f'×{short(row.ratio.value)}' if row.ratio else row.ways or row.in_short()})"
                f"{row.mark * row.is_told}"
                for row in rows
            ]
            told.append(f"{_name(name)} of {', '.join(each)}")
        marks = {row.mark for row in self.kinds if row.is_told and row.metric != self.judged}
        told += [f"none beyond chance in {', '.join(quiet)}"] * bool(quiet) + ["* beyond chance"] * ("*" in marks)
        told += [f"° {IN_THESE}"] * ("°" in marks)
        return f"costs by kind of task: {'; '.join(told)}" if told else ""

    def numbers(self) -> str:
        """What changed beside success, in numbers, and what `ASKED` names that did not; "" for nothing."""
        told: list[str] = []
        quiet: dict[str, list[str]] = {}
        parts: dict[str, list[str]] = {}
        others = [row for row in self.rows if row.worth_telling and row.is_other and not self._repeats(row)]
        size = {row.rises: row for row in reversed(others) if row.metric in OF_TEAM_SIZE}
        more = [_name(row.metric) for row in others if row.metric not in OF_TEAM_SIZE or row is size[row.rises]]
        next_ = [row for row in self._next() if row.is_told]
        said_before = self._partial()  # by `but`
        for row in [*self._asked(), *next_]:
            if row.metric in FIRST:
                continue
            name = _name(row.metric)
            if row.is_told:
                told.append(f"{name} {row.told()}")
                if row not in said_before:
                    parts.setdefault(row.part(), []).append(name)
            else:
                quiet.setdefault(row.why(), []).append(name)
        told += [f"{', '.join(unchanged)}: {why}" for why, unchanged in quiet.items()]
        more[MOST_TOLD:] = ["…"] * (len(more) > MOST_TOLD)
        told += [f"other metrics changed: {', '.join(more)}"] if more else []
        for part, names in parts.items():
            of = f" of {', '.join(names)}" if len(parts) > 1 else ""
            told += [f"numbers{of} in {part}"] if part else []
        return "; ".join(told)

    def success_cost(self) -> str:
        """What a success cost on each side; "" where no money is known."""
        cost = success_line(self.paid, self.paid_tasks, self.paid_elsewhere)
        return cost and f"{cost}; not tested"

    def by_agent(self, *, certain: bool = False) -> str:
        """Which agents differences of money and of tokens come from, those beyond chance where any is; "" without any.

        `certain`: of no others.
        """
        own = {name: any(one.stands_out for one in of) for name, of in self.agents.items()}
        rows = [row for row in self.rows if row.metric in own and (row.worth_telling or own[row.metric])]
        rows = rows or [row for row in self.rows if row.metric in own and not certain]
        told = [self._by_agent(row, [one for one in self.agents[row.metric] if one.difference]) for row in rows]
        tested = any(one.test is not None and one.test.p is not None for row in rows for one in self.agents[row.metric])
        starred = any(own[row.metric] for row in rows)
        end = "* beyond chance" if starred else "agents undecided" if tested else "agents not tested"
        return "; ".join([*told, end]) if any(told := [*filter(None, told)]) else ""

    def _by_agent(self, row: SideDifference, parts: list[AgentDifference]) -> str:
        """Which agents one difference comes from."""
        if not row.difference or not parts:
            return ""
        large = sum(abs(one.difference) >= LEAST_SHARE * abs(row.difference) for one in parts)
        named = max(large, 1) if large <= MOST_TOLD or large == len(parts) == MOST_TOLD + 1 else MOST_TOLD
        chance = "" if row.worth_telling else f", {row.in_short()}"
        head = f"{ASKED[row.metric]} of a trace {signed(row.difference)}{chance}, by agent: "
        split: set[int] = set()
        told = sorted(
            (place for place in range(named) if _why(parts[place], row.metric)),
            key=lambda at: (not parts[at].stands_out, not parts[at].of_models),
        )
        sure = max((place for place in range(named) if parts[place].stands_out), default=0)
        for place in told:
            needed = parts[place].stands_out and row.metric not in TOKENS and _swapped(parts[place])
            least = max(place, *split, sure) + 1
            for fewer in range(named, least - 1, -1):  # what another model does, before the least agents
                words = f"{head}{self._named(row.metric, parts, fewer, {*split, place})}".split()
                if len(words) <= MOST_WORDS or (needed and fewer == least):
                    named, split = fewer, {*split, place}
                    break
        return head + self._named(row.metric, parts, named, split)

    def _named(self, cost: str, parts: list[AgentDifference], named: int, split: set[int]) -> str:
        """So many agents by name, some of them with why, and the sum of others."""
        whole = sum(one.difference for one in parts)
        told = [f"{printable(one.agent, 60)} {signed(one.difference, whole)}{'*' * one.stands_out}" for one in parts]
        of = [f"{told[i]} ({_why(parts[i], cost)})" if i in split else told[i] for i in range(named)]
        alone = [i for i in range(named, len(parts)) if any(parts[i].agent in agents for agents in self.alone)]
        of += [told[i] for i in alone[:MOST_HIDDEN]]
        rest = [one.difference for i, one in enumerate(parts) if i >= named and i not in alone[:MOST_HIDDEN]]
        if not rounds_away(sum(rest), whole):
            together = " together" if len(rest) > 1 else ""
            of.append(f"{counted(len(rest), 'other')}{together} {signed(sum(rest), whole)}")
        return ", ".join(of)

    def by_owner(self, *, of_seconds: bool | None = None, least: float = 0.0) -> str:
        """Whose errors, loops, calls and seconds changed beyond chance, with the means of the owner; "" for nobody.

        `of_seconds`: of seconds alone, or of all others; None for all. `least`: by which part of its mean a number has
        changed where it is told.
        """
        told: dict[tuple[str, bool], str] = {}
        more: dict[tuple[str, bool], list[str]] = {}
        for row in self.rows:
            if of_seconds not in (None, row.metric == WALL_CLOCK):
                continue
            if abs(row.difference) < least * max(abs(row.first), abs(row.second)):
                continue
            key = (whose := row.owners.told()), row.metric in OWNED
            name = _name(row.metric)
            if key in told:
                more.setdefault(key, []).append(name)
            elif whose:
                told[key] = (
                    f"{name} of a trace {first_to_second(row.first, row.second)}, {row.owners.told(first_to_second)}"
                )
        return "; ".join(f"{said}{f', as are {names}' if (names := ', '.join(more.get(key, []))) else ''}"
                         for key, said in told.items())  # fmt: skip

    def origin(self) -> str:
        """`by_team`, and what changed beyond chance `by_owner`, `by_tool`, `by_verdict` and, of a cost, `by_agent`, for
        a lead, or why not of money; seconds last; "" without any."""
        name, why = self._uncosted()
        owned = self.by_owner(of_seconds=False, least=LEAST_SHARE)
        return "; ".join(
            [
                *filter(None, [self.by_team(), owned, self.by_tool(), self.by_verdict(certain=True)]),
                *([f"{name.replace('_', ' ')} is not told, as {why}"] if name else []),
                *filter(None, [self.by_agent(certain=True), self.by_owner(of_seconds=True, least=LEAST_SHARE)]),
            ]
        )

    def but(self) -> list[str]:
        """What else may be behind `changed`, each once for both sides, and what of it is not known."""
        asked = self._asked()
        said: list[str] = []
        of_part: dict[str, list[str]] = {}
        for row in self._partial():
            of_part.setdefault(row.part(), []).append(ASKED[row.metric])
        for part, names in of_part.items():
            whose = ", ".join([*names[:-2], " and ".join(names[-2:])])
            if any(row.metric == whose and not row.elsewhere and row.bound(self.sides.heads) for row in asked):
                continue  # that says so
            said.append(f"{whose} is of {part}" if whose in FIRST else f"numbers of {whose} are of {part}")
        said += [row.bound(self.sides.heads) for row in asked]
        said += [unread_line(self.unread), unscored_line(self.unscored), *self.apart, self._alone()]
        unpaired = self._unpaired()
        of = "" if len(unpaired) == len(asked) else f" in {', '.join(unpaired)}"
        said += [f"no task is on both sides{of}: those of one may be harder"] if unpaired else []
        said += [self._whole()]
        _, why = self._uncosted()
        return [*filter(None, [*said, why and f"cost is not compared, because {why}"])]

    def _partial(self) -> list[SideDifference]:
        """The rows that `changed` or `by_agent` may name whose numbers are of a part of the traces, but those of
        `_whole`."""
        named = (*FIRST, *self.agents)
        part = (row for row in self._asked() if row.part() and EARLY not in row.refused)
        return [row for row in part if row.worth_telling or row.metric in named]

    def _alone(self) -> str:
        """Which agents act on one side alone, as far as its format tells; "" where none does."""
        told = []
        for agents, head in zip(self.alone, self.sides.heads, strict=True):
            names = [printable(name, 60) for name in agents[:MOST_HIDDEN]] + ["…"] * (len(agents) > MOST_HIDDEN)
            told += [f"{', '.join(names)} {'act' if len(names) > 1 else 'acts'} in {head} alone"] if names else []
        return f"{' and '.join(told)}, or the other format hides it" if told else ""

    def _whole(self) -> str:
        """Which of the metrics asked for leave out traces that end early, and why; "" where none does."""
        names = [ASKED[row.metric] for row in self._asked() if EARLY in row.refused]
        shown = ", ".join(names[:2] + ["…"] * (len(names) > 2))
        return f"{shown} are without traces that end early, since some lack lines" if names else ""

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

    def caveats(self) -> list[str]:
        """`but` in up to `CAVEATS` short sentences, those first that may turn the answer."""
        said = [f"{self.sides.order}."] if self.sides.by_name else []
        said += [f"{out}."] if self.sides.agent and (out := self._without_side()) else []
        said += ["No task is on both sides: those of one may be harder."] if self._unpaired() else []
        judged = next((row for row in self._asked() if row.metric in FIRST), None)
        if judged is not None and judged.part():
            of = f"{judged.metric} is of {judged.part().partition(':')[0]}"
            of = judged.bound(self.sides.heads) or of
            said.append(f"{of[0].upper()}{of[1:]}.")
        said += [f"{self.not_told[0].upper()}{self.not_told[1:]}."] if self.not_told else []
        of_part: dict[str, list[str]] = {}
        for row in self._partial():
            if row is not judged:
                of_part.setdefault(row.part().partition(":")[0], []).append(ASKED[row.metric])
        for part, names in of_part.items():
            names[2:] = ["…"] * (len(names) > 2)
            said.append(f"Numbers of {', '.join(names)} are of {part}.")
        bounds = [row.bound(self.sides.heads) for row in self._asked() if row.metric not in FIRST]
        said += [f"{bound[0].upper()}{bound[1:]}." for bound in bounds if bound]
        alone = f": {alone}" if (alone := self._alone()) else ""
        parts = [f"{word} ({printable(name, 60)})" for word, name in self.apart_in.items()][:MOST_TOLD]
        within = [f"; {one}" for one in self.apart if self.judged and one.startswith(f"{self.judged} within each ")]
        said += [f"The sides differ in {' and '.join(parts)}, too{alone}{''.join(within[:1])}."] * bool(parts)
        said += [f"{whole[0].upper()}{whole[1:]}."] if (whole := self._whole()) else []
        unread = sum(row.traces for row in self.unread)
        said += [f"{counted(unread, 'trace')} with an outcome {'were' if unread > 1 else 'was'} not read."] * bool(
            unread
        )
        refused = sum(row.refused for row in self.unread)
        said += [f"{counted(refused, 'outcome')} {'were' if refused > 1 else 'was'} refused."] * bool(refused)
        early = " and ".join(row.side for row in self.unscored)
        said += [f"Traces of {early} without an outcome end early more often than others."] if early else []
        return said[:CAVEATS]

    def failed(self) -> str:
        """How many traces of each side failed, and in tasks that both sides ran where these are fewer; "" without any
        outcome of a side."""
        of_all, of_both = self.failures[:2], self.failures[2:]
        if not of_all or not all(count for _, count in of_all):
            return ""
        told = [f"{head} {failed} of {count} ({percent(failed / count)})"
                for head, (failed, count) in zip(self.sides.heads, of_all, strict=True)]  # fmt: skip
        if of_both == of_all or not all(count for _, count in of_both):
            return ", ".join(told)
        both = " and ".join(f"{failed} of {count} ({percent(failed / count)})" for failed, count in of_both)
        return f"{', '.join(told)}; on tasks that both ran, {both}"

    def _without_side(self) -> str:
        """How many traces are on neither side, as those that an agent did not reach are; "" for none."""
        without = int((self.sides.side < 0).sum())
        none = f", where no model of {printable(self.sides.agent, 60)} is stated" if self.sides.agent else ""
        return f"{counted(without, 'trace')} without a side{none}" if without else ""

    def of_tasks(self) -> str:
        """In how many tasks with outcomes on both sides the second did better, and worse; "" without any."""
        if not self.each_task:
            return ""
        tasks = self.tasks
        rose, fell, same = (len(tasks[word]) for word in ("rose", "fell", "same"))
        told = (
            f"{self.judged} rose in {rose} of {counted(len(self.each_task), 'task')} with outcomes on both sides, fell "
            f"in {fell} and was the same in {same}; "
        )
        for word in ("fell", "rose"):
            names = [f"{printable(name, 40)} {first_to_second(*self.each_task[name])}"
                     for name in tasks[word][:MOST_TASKS]]  # fmt: skip
            told += f"{word} most: {', '.join(names)}; " if names else ""
        return f"{told}single tasks are not tested"

    def lines(self) -> list[str]:
        """`story` and `of_rows`."""
        return [*self.story(), *self.of_rows()]

    def story(self) -> list[str]:
        """What changed, through whom, and what else may be why, in sentences."""
        lines = [out] if (out := self._without_side()) else []
        were = "were" if self.unplaced > 1 else "was"
        lines += [f"{counted(self.unplaced, 'trace')} of {NO_SIDE} {were} not read"] if self.unplaced else []
        lines += [f"{self.sides.order}."] if self.sides.order else []
        lines.append(f"{self._head()}{self.changed()}.")
        lines += [f"{cost[0].upper()}{cost[1:]}."] if (cost := self.success_cost()) else []
        lines += [f"But {but}." for but in self.but()]
        for of in (self.by_kind(), self.costs_by_kind(), self.of_tasks()):
            lines += [f"{of[0].upper()}{of[1:]}."] if of else []
        lines += [f"Means of a trace: {numbers}."] if (numbers := self.numbers()) else []
        for origin in (self.by_team(), self.by_owner(), self.by_tool(), self.by_verdict(), self.by_agent()):
            lines += [f"{origin[0].upper()}{origin[1:]}."] if origin else []
        return lines

    def of_rows(self) -> list[str]:
        """Of which traces the rows are, and which metrics are alike, in sentences."""
        lines = [self._compared_traces()] if self.rows else []
        equal = [row.metric for row in self.rows if row.is_other and row.is_alike]
        lines += [f"the same to three digits in all traces: {', '.join(self.same)}"] if self.same else []
        lines += [f"the same to three digits: {', '.join(equal)}"] if equal else []
        alike: dict[str, list[str]] = {}
        for row in self.rows:
            if row.same_as and row.p is not None:
                alike.setdefault(row.same_as, [row.same_as]).append(row.metric)
        lines += [f"one test, since their numbers rise as one: {'; '.join(map(', '.join, alike.values()))}"] * bool(
            alike
        )
        return lines

    def hints(self) -> list[str]:
        """What other commands and options would do."""
        each = "`credit costs --by system,agent` has the costs of each agent on each side."
        return [*filter(None, [self.sides.turn]), *[each] * bool(self.agents and self.sides.word == "system")]

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
        shared, line = np.intersect1d(first, second), f"{len(of_side[0])} and {len(of_side[1])}"
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
        twice = f"×2: {second} has twice what {first} has"
        few = f"fewer than {LEAST_TASKS} shared tasks, or traces of a side in these"
        few = few if any(row.paired for row in self.rows) else f"fewer than {LEAST_TASKS} tasks of a side"
        some = next((f"{row.differing} of {row.tasks} shared" for row in self.shown() if row.is_of_some), "")
        return [
            ("typical ×", f"typical {twice} in the typical task; a few large tasks may move the means otherwise"),
            *[(f"tasks: {some}", f"{some}: so many differ, and typical × is of these")] * bool(some),
            ("geometric ×", f"geometric {twice} by geometric means over tasks; a few large tasks may move the others"),
            ("rose ", f"rose, fell: tasks; fewer than {LEAST_TASKS} differ, too few for an interval; * is of a test"),
            ("no spread", "no spread: all tasks differ alike, or those of a side are alike"),
            ("has zeros", f"has zeros: a task has none on one side; an interval then takes {LEAST_OF_ANY} tasks"),
            ("–", f"–: not tested: {few}"),
            ("°", f"° {IN_THESE}: p < {LEVEL:g} for runs dealt anew within each; over tasks, it may be chance"),
            ("≈", "≈ beyond chance, and the same to three digits"),
            ("†", "† an end of the interval was moved to no difference, which the test does not reject"),
            ("would be seen: ", "would be seen: a change as large as this has a * in 4 of 5 cases"),
            starred(f"the tests of its part: {self._tested()}"),
            MARKS[1],
        ]

    def _tested(self) -> str:
        """For how many tests a `*` of each part is corrected."""
        of_agents = [one.test for of in self.agents.values() for one in of if one.test is not None]
        judged, costs = ([row for row in self.kinds if (row.metric in FIRST) == of] for of in (True, False))
        parts = {
            "success": [row for row in self.rows if row.metric in FIRST], "kinds of task": judged, "their costs": costs,
            "what follows success": [row for row in self.rows if row.metric not in FIRST and not row.is_other],
            "other metrics": [row for row in self.rows if row.is_other],
            "tools": [one.share for one in self.failing], "empty results": [one.share for one in self.empty],
            "agents": of_agents,
        }  # fmt: skip
        many = {name: max((row.rows for row in of if row.p is not None), default=0) for name, of in parts.items()}
        many["verdicts"] = max((one.tests for one in self.verdicts if one.p is not None), default=0)
        return ", ".join(f"{name} {tests}" for name, tests in many.items() if tests)

    def without_number(self) -> list[str]:
        """Lines on metrics with bounds, and on those without a row, with their first reasons."""
        bounded = {bound.metric for bound in self.bounds}
        partly: dict[str, list[str]] = {}
        none: dict[str, dict[str, list[str]]] = {}
        for one in sorted(self.lost, key=lambda one: -len(one.sides)):
            if one.metric in bounded:
                partly.setdefault(one.reason, []).append(one.metric)
                continue
            none.setdefault(_place(one.sides, self.sides.names), {}).setdefault(one.reason, []).append(one.metric)
        lines = [f"known in part: {_by_reason(partly)}"] if partly else []
        return lines + [f"no number on {place}: {_by_reason(of)}" for place, of in none.items()]


def _name(metric: str) -> str:
    """What a sentence calls a metric."""
    return ASKED.get(metric, metric.replace("_", " "))


def _seen(row: SideDifference, end: str = "") -> str:
    """Of which tasks a change is that holds for these alone; "" of one beyond chance over tasks."""
    return f"in the {counted(row.tasks, 'task')} seen{end}" if row.in_these else ""


def _place(sides: Sequence[int], names: Sequence[str]) -> str:
    return "either side" if len(sides) > 1 else names[sides[0]]


def _by_reason(metrics: dict[str, list[str]]) -> str:
    return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in metrics.items())


def _swapped(one: AgentDifference) -> str:
    """The models of an agent on both sides; "" where they are the same, or a side has none."""
    before, after = (" + ".join(printable(name, 60) for name in names) for names in one.models)
    return f"{before} to {after}" if before and after and before != after else ""


def _why(one: AgentDifference, cost: str) -> str:
    """What models, calls, tokens and tools add to the difference of an agent, the largest part first, without those
    below `LEAST_SHARE` of it; else what part of its tokens read came from a cache; else how its calls and their tokens
    changed, where it differs beyond chance; "" where nothing did it. Other models are named in any case."""
    swapped = _swapped(one)
    if not one.of_models:
        first, second = one.cached or (0.0, 0.0)
        cached = f"{percent(first)} to {percent(second)} of reads cached"
        why = cached if abs(second - first) >= LEAST_CACHED else _by_calls(one, cost) if one.stands_out else ""
        named = f"{swapped}{' at the same prices' * (one.of_models is not None)}"
        return ", ".join(filter(None, (why, named if swapped and one.stands_out and cost not in TOKENS else "")))
    models = swapped or f"other parts of {' + '.join(printable(name, 60) for name in one.models[0])}"
    parts, calls = {models: one.of_models, "tools": one.of_tools or 0.0}, _times(one)
    if one.of_tokens and one.of_calls and calls and abs(math.log(calls)) >= LEAST_SHARE:
        parts |= {f"calls ×{short(calls)}": one.of_calls, "tokens per call": one.of_tokens - one.of_calls}
    else:
        parts["tokens"] = one.of_tokens or 0.0
    told = sorted(parts.items(), key=lambda part: -abs(part[1]))
    most = told[0][1]
    return ", ".join(
        f"{name} {signed(part, most)}" for name, part in told if abs(part) >= LEAST_SHARE * abs(most) or name == swapped
    )


def _times(one: AgentDifference) -> float:
    """By what an agent's calls were multiplied; 0 where a side has none."""
    return one.calls[1] / one.calls[0] if min(one.calls) > 0 else 0.0


def _by_calls(one: AgentDifference, cost: str) -> str:
    """By what its calls were multiplied, and the tokens of one: a cost of tokens is the product of both. Money is that
    of a price, too, and has the tokens read: those generated have a sentence of their own, which is not enough where
    other models may seem the reason."""
    calls = _times(one)
    times = {"calls": calls}
    for name, both in (("read", one.read), ("generated", one.generated)):
        times[f"tokens {name} per call"] = both[1] / both[0] / calls if min(calls, *both) > 0 else 1.0
    moved = [name for name, by in times.items() if by > 0 and abs(math.log(by)) >= LEAST_SHARE]
    if calls and not moved and _swapped(one):
        return "calls and tokens as before"
    asked = "generated" if cost == "tokens" else "" if _swapped(one) else "read"
    told = [f"{name} ×{short(times[name])}" for name in moved if name == "calls" or asked in name]
    return ", ".join(told if not told or "calls" in moved else ["calls as before", *told])
