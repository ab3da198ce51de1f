"""A comparison of two sides, in words: what changed, by how much, through whom, and what else may be the reason."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from credit.metrics.success_costs import success_line
from credit.reports.owners import OWNED
from credit.reports.unread_outcomes import leave_rate_open, unread_line, unscored_line
from credit.sides.acting_agents import agents_that_changed
from credit.sides.asked_metrics import ASKED, FIRST, LEAST_SHARE, OF_COSTS, OF_TEAM_SIZE, TOKENS, TOOL_CALLS, WALL_CLOCK
from credit.sides.call_times import told_times
from credit.sides.changed_teams import told_team_changes
from credit.sides.comparable_traces import EARLY
from credit.sides.compared_sides import ComparedSides, place_of
from credit.sides.shown_changes import BEYOND_CHANCE, only_in, shown
from credit.sides.side_agents import agents_of_change
from credit.sides.side_rows import SideDifference
from credit.sides.side_words import MOST_NAMED, MOST_TOLD, MOST_WORDS, first_to_second, grouped, sentences, short, up_to
from credit.sides.tool_failures import failing_tools
from credit.sides.verdict_changes import told_changes
from graphs.task_means import alike
from graphs.text import counted, part_of, printable

__all__ = ["SideComparison"]

CAVEATS = 3
"""Caveats beside the answer to what changed; all of them stand with the sides."""
MOST_TASKS = 3
"""Tasks that are named of those that rose, and of those that fell."""
OTHERS = "other metrics changed"
MOST_BESIDE = 3
"""Changes beside success and costs in the head of a summary."""


class SideComparison(ComparedSides):
    """What differs between two sides, in sentences."""

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        names = self.sides.names
        lacking = [dataclasses.asdict(row) | {"sides": [names[one] for one in row.sides]} for row in self.lost]
        words = ("name", "stands_out", "mark", "without", "is_other", "is_alike", "is_of_some", "would_be_seen")
        rows, kinds, of_tools = (
            [dataclasses.asdict(row) | {word: getattr(row, word) for word in words} for row in some]
            for some in (self.rows, self.kinds, self.of_tools())
        )
        rows = [row | {"is_repeated": self._repeats(of)} for row, of in zip(rows, self.rows, strict=True)]
        shown = self.shown()
        kinds = [row | {"is_shown": of in shown} for row, of in zip(kinds, self.kinds, strict=True)]
        bounds, unread, unscored, teams, paid = (
            [*map(dataclasses.asdict, of)] for of in (self.bounds, self.unread, self.unscored, self.teams, self.paid)
        )
        told: dict[str, Any] = {"changed": self.changed(), "numbers": self.numbers(), "but": "; ".join(self.but())}
        told |= {"unread": unread, "unscored": unscored, "caveats": self.caveats(), "tasks": self.tasks}
        told |= {"of_tasks": self.of_tasks(), "each_task": self.each_task, "by_team": self.by_team(), "kinds": kinds}
        told["of_tools"] = of_tools
        told |= {"by_kind": self.by_kind(), "costs_by_kind": self.costs_by_kind(), "teams": teams}
        told |= {"paid": self.success_cost(), "lines": self.lines(), "paid_by_side": paid, "in_time": self.in_time}
        told |= {"paid_tasks": self.paid_tasks, "by_owner": self.by_owner(), "by_agent": self.by_agent()}
        told["origin"], told["origins"] = self.origin(), self.origins()
        for name, of in (("tools", self.failing), ("empty_results", self.empty)):
            told[name] = [dataclasses.asdict(one) | {"stands_out": one.share.stands_out} for one in of]
        told["call_seconds"] = [dataclasses.asdict(one) | {"is_told": one.is_told} for one in self.times]
        told["verdict_changes"] = [dataclasses.asdict(one) | {"stands_out": one.stands_out} for one in self.verdicts]
        told |= {
            "failed": self.failed(),
            "by_tool": self.by_tool(),
            "by_call": told_times(self.times),
            "by_verdict": self.by_verdict(),
        }
        agents = {name: [*map(dataclasses.asdict, of)] for name, of in self.agents.items()}
        told |= {"hints": self.hints(), "agents": agents}
        return {"sides": names, "differences": rows, "uncompared": lacking, "bounds": bounds, "same": self.same, **told}

    def _head(self) -> str:
        return f"What changed {self.sides.change}{f' ({self.left_out})' * bool(self.left_out)}: "

    def changed(self) -> str:
        """The answer: success, then what else of `ASKED` and `ASKED_NEXT` changed beyond chance: one metric and the
        first cost each way, more up to `MOST_WORDS`, and the one that would be left."""
        asked = self._asked()
        told = [f"{row.metric} {row.means()}, {row.says(brief=True)}" for row in asked if row.metric in FIRST]
        if not told:
            lost = [place_of(one.sides, self.sides.heads) for one in self.lost if one.metric == "success"]
            told = [f"success is not known on {place}, where no trace has an outcome" for place in lost]
        if self.unweighted:
            told = [f"success is not compared: {self.unweighted}"]
        for sure in ([row for row in self._kinds() if row.in_these == few] for few in (False, True)):
            of = up_to([f"{printable(row.kind, 40)} {first_to_second(row.first, row.second)}" for row in sure])
            named = (" and " if len(of) < MOST_NAMED + 1 else ", ").join(of)
            told += [f"for {named}, {only_in(0) if sure[0].in_these else BEYOND_CHANCE}"] if of else []
        ways: dict[str, list[str]] = {}  # sentences on each way, the fullest first
        whole: dict[str, str] = {}  # of those that hide one name alone
        for up, few in itertools.product((True, False), (False, True)):
            way = f"{'up' if up else 'down'}{f', {only_in(0)}' * few}"
            rose = [row for row in (*asked, *self._next())
                    if row.is_told and row.in_these == few and row.metric not in FIRST and row.rises == up]  # fmt: skip
            both = {row.metric for row in rose} >= TOKENS
            rose = [row for row in rose if not both or row.metric != "input_tokens"]
            called = {row.metric: "tokens" if both and row.metric in TOKENS else _name(row.metric) for row in rose}
            who = {row.metric: row.owners.words() if row.metric in OWNED else [] for row in rose}
            rose.sort(key=lambda row: not who[row.metric])  # where to look first, then what it costs
            rose[1:] = sorted(rose[1:], key=lambda row: row.metric not in OF_COSTS)
            failing = (one for one in self._failing() if one.share.rises == up)
            wrong = [f"errors per call of {printable(one.tool, 60)}" for one in failing]
            wrong += [f"empty results per call of {printable(one.tool, 60)}"
                      for one in self.empty if one.share.stands_out and one.share.rises == up]  # fmt: skip
            clock = {row.rises for row in self.rows if row.metric == WALL_CLOCK and row.worth_telling}
            wrong += [f"seconds per call of {printable(one.name, 60)}" for one in self.times
                      if one.is_told and one.seconds.rises == up and not (one.of_model or up in clock)]  # fmt: skip
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
            for many, names in itertools.product(range(len(plain), 0, -1), (whose, plain)):
                kept = [name for i, name in enumerate(names) if i < many or i == cost]
                text = f"{way}: {', '.join(kept + ['…'] * (len(kept) < len(names)))}"
                ways.setdefault(way, []).append(text)
                whole |= {text: f"{way}: {', '.join(names)}"} if len(names) - len(kept) == 1 else {}
        said = {way: min(every, key=lambda one: len(one.split())) for way, every in ways.items()}
        for way, every in ways.items():
            lines = ((one, f"{self._head()}{'; '.join([*told, *(said | {way: one}).values()])}") for one in every)
            said[way] = next((one for one, line in lines if len(line.split()) <= MOST_WORDS), said[way])
        nothing = "nothing stands out" if self.rows else "nothing that both sides have a number of"
        return "; ".join([*told, *(whole.get(one, one) for one in said.values())]) or nothing

    def in_short(self) -> list[str]:
        """The head of a summary, in sentences: whether success changed, over all tasks or for kinds; whose calls of
        tools did; what the second side costs more; then `MOST_BESIDE` other changes beyond chance. `changed` has more,
        and the table all.

        Success is the primary test; all else is corrected together."""
        dated = self.sides.since != ""
        second = "runs" if dated else self.sides.heads[1]  # of which date, the name of the answer says
        judged = next((row for row in self._asked() if row.metric in FIRST), None)
        of_kinds, told = self._kinds(), list[str]()
        refused = leave_rate_open(sum(row.refused for row in self.unread), sum(of for _, of in self.failures[:2]))
        if refused:  # any of which may turn it
            judged, of_kinds = None, []
        certain = judged is not None and judged.worth_telling
        if judged is not None and certain:  # those that did the other way
            of_kinds = [row for row in of_kinds if row.worth_telling and row.rises != judged.rises]
        if judged is not None and judged.is_told and (certain or not of_kinds):
            first, most = "before" if dated else self.sides.heads[0], self._kind_of_most(judged)
            told.append(f"{'better' if judged.rises else 'worse'} than {first} ({_numbers(judged)}){most}")
        for word, rises in (("better", True), ("worse", False)):
            of = [f"{printable(row.kind, 40)} ({_numbers(row)})" for row in of_kinds if row.rises == rises]
            told += [f"{word} for {(' and ' if len(of) <= MOST_NAMED else ', ').join(up_to(of))}"] if of else []
        few = not certain and all(row.in_these for row in of_kinds)  # then the sentence is of these tasks alone
        verb = "did" if few else "are" if dated else "is"
        said = [self._begun(f"{second} {verb} {' and '.join(told)}.")] * bool(told)
        if judged is not None and not judged.is_told:
            over = " over all tasks" * bool(of_kinds)
            state = judged.says(brief=True).removesuffix(judged.unsure)
            mean = ", means over tasks" * (not (judged.within or judged.of_all) and self._rates_differ(judged))
            seen = judged.would_be_seen if state == shown() and not judged.unsure else None
            could = "" if seen is None else f"; a change of {seen} would be" if seen else "; too few tasks to tell"
            numbers = judged.cannot_tell or f"{state} ({judged.means()}{mean}{judged.of_all}{could}){judged.unsure}"
            said += sentences(f"{judged.metric}{over}: {numbers}")
        why = "outcomes were refused" if refused else self.unweighted
        said += [f"Success is not compared: {why}."] * bool(why)
        said += sentences(*(_calls(row) for row in self.rows if row.metric == TOOL_CALLS and row.is_told))
        times, changes = self._costs()
        said += [self._begun(f"{second} {'take' if dated else 'takes'} {one}.") for one in times] + sentences(*changes)
        beside = [*sentences(*self._who_failed()), *(f"{one}." for one in self._who_changed())]
        beside += sentences(*self._slower())
        return [*said, *beside[:MOST_BESIDE], *sentences(self.mix)]

    def _rates_differ(self, judged: SideDifference) -> bool:
        """Whether runs that failed, which are counted above, are another part than these means say."""
        means = zip((judged.first, judged.second), self.failures[:2], strict=False)
        return any(of > 0 and not alike(mean, 1 - failed / of).all() for mean, (failed, of) in means)

    def _costs(self) -> tuple[list[str], list[str]]:
        """How many times the first cost, or, where it did not change, others and the seconds of the clock it takes, and
        what else these did."""
        costs = [row for row in self._asked() if row.metric in OF_COSTS]
        costs = [row for row in costs if row is costs[0] or (row.worth_telling and not costs[0].is_told)]
        costs += [row for row in self.rows if row.metric == WALL_CLOCK]
        changes, times = list[str](), dict[str, list[str]]()
        for row in (row for row in costs if row.is_told):
            whose = self._agent_of_most(row)
            name = f"{_name(row.metric)}{f' (mostly of {whose})' if whose else ''}"
            if row.ratio is not None and row.worth_telling:
                times.setdefault(row.place, []).append(f"{short(row.ratio.value)} times the {name}")
            else:
                only = f", {only_in(row.tasks)}" * row.in_these
                changes.append(f"{name}: {first_to_second(row.first, row.second)}{only}")
        return [f"{' and '.join(of)} {at}" for at, of in times.items()], changes

    def _begun(self, text: str) -> str:
        """A text that begins a sentence with the name of a side, or not."""
        return f"{text[0].upper()}{text[1:]}" if self.sides.since else text

    def _slower(self) -> list[str]:
        """Whose calls take longer, or less; models only where no agent has more of anything, as writing takes time."""
        return [
            f"seconds per call of {one.words()}: {first_to_second(one.seconds.first, one.seconds.second)}"
            for one in self.times
            if one.is_told and not (one.of_model and self._who_changed())
        ]

    def _who_failed(self) -> list[str]:
        """Which tools fail, or give nothing, more or less often beyond chance."""
        every = (("errors", self.failing), ("empty results", self.empty))
        return [f"{what} per call of {printable(one.tool, 60)}: {one.counts()}"
                for what, found in every for one in found if one.share.stands_out]  # fmt: skip

    def _who_changed(self) -> list[str]:
        """Which agents cost, write or read more in a run in which they act, of the first of these that any has more of:
        money, where it is known."""
        every = (agents_that_changed(name, of, brief=True) for name, of in self.agents.items())
        return next(filter(None, every), [])

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
        return f", most of all for {printable(of[0].kind, 40)} ({_numbers(of[0])})"

    def _of_agents(self, up: bool) -> list[str]:
        """The costs that agents of their own have more of, or less, beyond chance, where the sum does not say so."""
        said, told = set[str](), list[str]()
        for row in self.rows:
            if row.worth_telling and row.rises == up:
                continue
            of = [one.agent for one in self.agents.get(row.metric, ()) if one.rises == up and one.agent not in said]
            said |= {*of}
            names = up_to([printable(agent, 60) for agent in of])
            told += [f"{_name(row.metric)} of {' and '.join(names)}"] * bool(of)
        return told

    def by_tool(self) -> str:
        """Which tools fail, or give nothing, more or less often beyond chance, with their counts; "" without any."""
        return "; ".join(filter(None, [failing_tools(self.failing), failing_tools(self.empty, "empty results")]))

    def by_verdict(self, *, certain: bool = False) -> str:
        """Which failures verdicts pass and which successes they fail, or where that changed; "" without any."""
        return told_changes(self.verdicts, certain=certain)

    def by_team(self) -> str:
        """The outcome of tasks in which an agent mostly acts on one side alone, and of the rest; "" without any."""
        return told_team_changes(self.teams, self.sides.heads, self.judged)

    def by_kind(self) -> str:
        """The outcome of each kind of tasks; "" without kinds."""
        told = [
            f"{printable(row.kind, 60)} {first_to_second(row.first, row.second)} in {counted(row.tasks, 'task')}, "
            f"{row.says()}"
            for row in self.kinds
            if row.metric == self.judged
        ]
        return f"{self.judged} by kind of task: {'; '.join(told)}" if told else ""

    def costs_by_kind(self) -> str:
        """What costs did in each kind of tasks, where one did so beyond chance; "" without kinds."""
        told, quiet = list[str](), list[str]()
        for name in dict.fromkeys(row.metric for row in self.kinds if row.metric != self.judged):
            rows = [row for row in self.kinds if row.metric == name]
            if not any(row.is_told for row in rows):
                quiet.append(_name(name))
                continue
            each = [
                f"{printable(row.kind, 60)} {first_to_second(row.first, row.second)}"
                f" ({f'×{short(row.ratio.value)}' if row.ratio else row.ways or row.says(brief=True)})"
                f"{row.mark * row.is_told}"
                for row in rows
            ]
            told.append(f"{_name(name)} of {', '.join(each)}")
        marks = {row.mark for row in self.kinds if row.is_told and row.metric != self.judged}
        told += [f"none beyond chance in {', '.join(quiet)}"] * bool(quiet) + ["* beyond chance"] * ("*" in marks)
        told += [f"° {only_in(0)}"] * ("°" in marks)
        return f"costs by kind of task: {'; '.join(told)}" if told else ""

    def numbers(self) -> str:
        """What changed beside success, in numbers; "" for nothing."""
        others = [row for row in self.rows if row.worth_telling and row.is_other and not self._repeats(row)]
        size = {row.rises: row for row in reversed(others) if row.metric in OF_TEAM_SIZE}
        more = [_name(row.metric) for row in others if row.metric not in OF_TEAM_SIZE or row is size[row.rises]]
        rows = [row for row in (*self._asked(), *self._next()) if row.metric not in FIRST]
        sure, said_before = [row for row in rows if row.is_told], self._partial()  # by `but`
        places = [row.place if row.ratio else "" for row in sure]
        told = [f"{_name(row.metric)} {row.told(places[:at])}" for at, row in enumerate(sure)]
        told += [f"{OTHERS}: {', '.join(up_to(more, MOST_TOLD))}"] if more else []
        parts = grouped((row.part(), _name(row.metric)) for row in sure if row not in said_before and not row.few_lack)
        for part, names in parts.items():
            of = f" of {', '.join(names)}" if len(parts) > 1 else ""
            told += [f"numbers{of} in {part}"] if part else []
        return "; ".join(told)

    def success_cost(self) -> str:
        """What a success cost on each side; "" where no money is known."""
        within = any(row.within for row in self.rows if row.metric in FIRST)
        cost = success_line(self.paid, self.paid_tasks, self.paid_elsewhere, within=within)
        return cost and f"{cost}; not tested"

    def by_agent(self, *, certain: bool = False) -> str:
        """Which agents differences of money and of tokens come from, those beyond chance where any is; "" without any.

        `certain`: of no others.
        """
        return "; ".join(self._of_each_cost(certain))

    @property
    def _tests_agents(self) -> bool:
        return any(one.test is not None and one.test.p is not None for of in self.agents.values() for one in of)

    def _of_each_cost(self, certain: bool) -> list[str]:
        """`by_agent` of each cost, and of runs in which agents act."""
        own = {name: any(one.rises is not None for one in of) for name, of in self.agents.items()}
        rows = [row for row in self.rows if row.metric in own and (row.worth_telling or own[row.metric])]
        rows = rows or [row for row in self.rows if row.metric in own and not certain]
        told = [agents_of_change(row, self.agents[row.metric], self.alone) for row in rows]
        told += [one for name, of in self.agents.items() for one in agents_that_changed(name, of)]
        starred = any(own[row.metric] for row in rows)
        none = shown(seen=None if self._tests_agents else "")
        end = f"* {BEYOND_CHANCE}" if starred else f"agents: {none}"
        told = [*filter(None, told)]
        return [*told[:-1], f"{told[-1]}; {end}"] if told else []

    def by_owner(self, *, of_seconds: bool | None = None, least: float = 0.0) -> str:
        """Whose errors, loops, calls and seconds changed beyond chance, with the means of the owner; "" for nobody.

        `of_seconds`: of seconds alone, or of all others; None for all. `least`: by which part of its mean a number has
        changed where it is told.
        """
        told, more = dict[tuple[str, bool], str](), dict[tuple[str, bool], list[str]]()
        for row in self.rows:
            little = abs(row.difference) < least * max(abs(row.first), abs(row.second))
            if little or of_seconds not in (None, row.metric == WALL_CLOCK):
                continue
            key = (whose := row.owners.told()), row.metric in OWNED
            name = _name(row.metric)
            if key in told:
                more.setdefault(key, []).append(name)
            elif whose:
                changed = first_to_second(row.first, row.second)
                told[key] = f"{name} of a trace {changed}, {row.owners.told(first_to_second)}"
        return "; ".join(f"{said}{f', as are {names}' if (names := ', '.join(more.get(key, []))) else ''}"
                         for key, said in told.items())  # fmt: skip

    def origin(self) -> str:
        """`origins` in one line; "" without any."""
        return "; ".join(self.origins())

    def origins(self) -> list[str]:
        """`by_team`, and what changed beyond chance `by_owner`, `by_tool`, `by_verdict` and, of a cost, `by_agent`, for
        a lead, or why not of money; seconds last."""
        name, why = self._uncosted()
        owned, seconds = (self.by_owner(of_seconds=of, least=LEAST_SHARE) for of in (False, True))
        untold = f"{name.replace('_', ' ')} is not told, as {why}" if name else ""
        times = told_times(self.times)
        leads = (self.by_team(), owned, self.by_tool(), times, self.by_verdict(certain=True), untold)
        return [*filter(None, (*leads, *self._of_each_cost(certain=True), seconds))]

    def but(self) -> list[str]:
        """What else may be behind `changed`, each once for both sides, and what of it is not known."""
        asked = self._asked()
        said = list[str]()
        for part, names in grouped((row.part(), ASKED[row.metric]) for row in self._partial()).items():
            whose = ", ".join([*names[:-2], " and ".join(names[-2:])])
            if any(row.metric == whose and not row.elsewhere and row.bound(self.sides.heads) for row in asked):
                continue  # that says so
            said.append(f"{whose} is of {part}" if whose in FIRST else f"numbers of {whose} are of {part}")
        said += [row.bound(self.sides.heads) for row in asked]
        said += [unread_line(self.unread), unscored_line(self.unscored), self.in_time, *self.apart, self._alone()]
        said += self._unlike_tasks()
        _, why = self._uncosted()
        return [*filter(None, [*said, self._whole(), why and f"cost is not compared, because {why}"])]

    def _unlike_tasks(self) -> list[str]:
        """That tasks of one side may be harder, and which kind of them it has more of; nothing where both have all."""
        unpaired, asked = self._unpaired(), self._asked()
        if not unpaired:
            return []
        of = "" if len(unpaired) == len(asked) else f" in {', '.join(unpaired)}"
        within = "within a kind, " * any(row.within for row in asked)
        most = max(asked, key=lambda row: row.shared)
        none = most.too_few or "no task is on both sides"
        return [f"{none}{of}: {within}those of one may be harder", *[self.mix] * bool(self.mix)]

    def _alone(self) -> str:
        """Which agents act on one side alone, as far as its format tells; "" where none does."""
        told = []
        for agents, head in zip(self.alone, self.sides.heads, strict=True):
            names = up_to([printable(name, 60) for name in agents])
            told += [f"{', '.join(names)} {'act' if len(names) > 1 else 'acts'} in {head} alone"] if names else []
        return f"{' and '.join(told)}, or the other format hides it" if told else ""

    def _whole(self) -> str:
        """Which of the metrics asked for leave out traces that end early, and why; "" where none does."""
        names = [ASKED[row.metric] for row in self._asked() if EARLY in row.refused and not row.few_lack]
        return f"{', '.join(up_to(names, 2))} are without traces that end early, since some lack lines" if names else ""

    def caveats(self) -> list[str]:
        """`but` in up to `CAVEATS` short sentences, those first that may turn the answer."""
        said = [f"{self.sides.order}."] if self.sides.by_name else []
        said += [f"{self.in_time[0].upper()}{self.in_time[1:]}."] if self.in_time else []
        said += [f"{out}."] if self.sides.agent and self.sides.word and (out := self._without_side()) else []
        said += [f"{one[0].upper()}{one[1:]}." for one in self._unlike_tasks()]
        judged = next((row for row in self._asked() if row.metric in FIRST), None)
        if judged is not None and judged.part():
            of = f"{judged.metric} is of {judged.part().partition(':')[0]}"
            said += sentences(judged.bound(self.sides.heads) or of)
        said += sentences(self.not_told)
        others = (row for row in self._partial() if row is not judged)
        partly = grouped((row.part().partition(":")[0], ASKED[row.metric]) for row in others)
        said += [f"Numbers of {', '.join(up_to(names, 2))} are of {part}." for part, names in partly.items()]
        said += sentences(*(row.bound(self.sides.heads) for row in self._asked() if row.metric not in FIRST))
        alone = f": {alone}" if (alone := self._alone()) else ""
        parts = [f"{word} ({printable(name, 60)})" for word, name in self.apart_in.items()][:MOST_TOLD]
        within = [f"; {one}" for one in self.apart if self.judged and one.startswith(f"{self.judged} within each ")]
        said += [f"The sides differ in {' and '.join(parts)}, too{alone}{''.join(within[:1])}."] * bool(parts)
        said += sentences(self._whole())
        for what, did, count in (
            ("trace", "not read", sum(row.traces for row in self.unread)),
            ("outcome", "refused", sum(row.refused for row in self.unread)),
        ):
            whose = f"{counted(count, what)}{' with an outcome' * (what == 'trace')}"
            said += [f"{whose} {'were' if count > 1 else 'was'} {did}."] * bool(count)
        early = " and ".join(row.side for row in self.unscored)
        said += [f"Traces of {early} without an outcome end early more often than others."] if early else []
        return said[:CAVEATS]

    def failed(self) -> str:
        """How many traces of each side failed, and in tasks that both ran, or `rates`; "" without any outcome of a
        side."""
        if self.rates is not None:
            return self.rates
        of_all, of_both = (
            [part_of(failed, count) for failed, count in of if count] for of in (self.failures[:2], self.failures[2:])
        )
        if len(of_all) < 2:
            return ""
        since = self.sides.since
        heads = (f"before {since}", "later") if since else self.sides.heads
        told = ", ".join(f"{head} {failed}" for head, failed in zip(heads, of_all, strict=True))
        is_other = len(of_both) == 2 and of_both != of_all
        return self._begun(f"{told}; on tasks that both ran, {' and '.join(of_both)}" if is_other else told)

    def _without_side(self) -> str:
        """How many traces are on neither side, as those that an agent did not reach are; "" for none."""
        without = int((self.sides.side < 0).sum())
        agent = self.sides.agent if self.sides.word else ""
        none = f", where no model of {printable(agent, 60)} is stated" if agent else ""
        return f"{counted(without, 'trace')} without a side{none}" if without else ""

    def of_tasks(self) -> str:
        """In how many tasks with outcomes on both sides the second did better, and worse; "" without any."""
        if not self.each_task:
            return ""
        tasks = self.tasks
        rose, fell, same = (len(tasks[word]) for word in ("rose", "fell", "same"))
        told = f"{self.judged} rose in {rose} of {counted(len(self.each_task), 'task')} with outcomes on both sides, "
        told += f"fell in {fell} and was the same in {same}; "
        for word in ("fell", "rose"):
            names = [f"{printable(name, 40)} {first_to_second(*self.each_task[name])}"
                     for name in tasks[word][:MOST_TASKS]]  # fmt: skip
            told += f"{word} most: {', '.join(names)}; " if names else ""
        return f"{told}single tasks are not tested"

    def lines(self) -> list[str]:
        """`story`, `buts` and `of_rows`."""
        return [*self.story(), *self.buts(), *self.of_rows()]

    def buts(self) -> list[str]:
        """`but`, a sentence each."""
        return [f"But {but}." for but in self.but()]

    def story(self) -> list[str]:
        """What changed, and through whom, in sentences."""
        lines = [out] if (out := self._without_side()) else []
        refused = [f"{counted(count, 'trace')} of {side}" for side, count in sorted(self.refused.items())]
        were = "were" if sum(self.refused.values()) > 1 else "was"
        others = " without a known outcome" * any(row.traces for row in self.unread)
        lines += [f"{' and '.join(refused)}{others} {were} not read"] * bool(refused)
        lines += [f"{self.sides.order}."] if self.sides.order else []
        lines.append(f"{self._head()}{self.changed()}.")
        lines += [*sentences(self.success_cost()), *sentences(self.of_tasks())]
        numbers = self.numbers()
        of_trace = "means of a trace: " * (not numbers.startswith(OTHERS))
        lines += sentences(numbers and f"{of_trace}{numbers}")
        times = told_times(self.times)
        whose = (
            self.by_team(),
            self.by_owner(),
            self.by_tool(),
            times,
            self.by_verdict(certain=True),
            self.by_agent(certain=self._tests_agents),
        )
        return lines + sentences(*whose)

    def hints(self) -> list[str]:
        """What other commands and options would do."""
        each = "`credit costs --by system,agent` has the costs of each agent on each side."
        return [*filter(None, [self.sides.turn]), *[each] * bool(self.agents and self.sides.word == "system")]


def _name(metric: str) -> str:
    """What a sentence calls a metric."""
    return ASKED.get(metric, metric.replace("_", " "))


def _numbers(row: SideDifference) -> str:
    """What an outcome did, and whether in these tasks only."""
    return f"{row.metric} {row.means()}{row.of_all}{f', {only_in(row.tasks)}' * row.in_these}"


def _calls(row: SideDifference) -> str:
    """How often the tool, or else the agent, that most of a difference of tool calls is of calls, or all do."""
    name, means = "tool calls", (row.first, row.second)
    for most in row.owners.named[:1]:
        name, means = f"calls of {printable(most.tool, 60)}" if most.tool else name, (most.first, most.second)
        name += f" by {printable(most.agent, 60)}" * bool(most.agent)
    return f"{name}: {first_to_second(*means)} a trace{f', {only_in(row.tasks)}' * row.in_these}"
