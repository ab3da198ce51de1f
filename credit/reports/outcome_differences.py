"""Failed against succeeded traces: what differs, with intervals over tasks, corrected for how many were looked at."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from credit.reports.beyond_chance import beyond_chance, starred
from credit.reports.cause_tests import p_across
from credit.reports.chosen_numbers import are_chosen
from credit.reports.compared_kinds import ComparedKinds, compared_kinds, within_both
from credit.reports.deciding_verdict import deciding_verdict
from credit.reports.endings import ANSWER_CUT, BROKEN_OFF, CUT, FAILED, LIMITED, UNENDED, ends
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.judged_traces import below_their_own, judged_traces, rate_with_interval, said_of
from credit.reports.last_acts import LastActs
from credit.reports.longer_swaps import longer_swap
from credit.reports.missing_lines import lacking_traces
from credit.reports.model_failures import ModelFailures, model_failures
from credit.reports.owners import Owners, owned_events, owners
from credit.reports.ranks import correlation, mean_ranks
from credit.reports.refused_traces import RefusedTraces
from credit.reports.taking_part import taking_part
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import counted_tokens, has_statuses
from credit.reports.trace_numbers import TeamFacts
from credit.reports.unread_outcomes import leave_rate_open, unread_line, unread_outcomes, unscored_ends, unscored_line
from credit.reports.verdict_channels import of_one_source
from graphs.dealing import dealt
from graphs.distinct_columns import distinct_columns
from graphs.errors import expect
from graphs.structure.host_ids import consecutive
from graphs.task_means import (
    LEAST_OF_BOTH,
    LEAST_TASKS,
    LEVEL,
    as_tested,
    chance_interval,
    fact_of,
    holm,
    mean_interval,
)
from graphs.text import LEAST_OF_PERCENT, amount, apart, counted, percent, plural, printable, rounds_away
from graphs.traces.batch import Traces

__all__ = ["UNRECOVERED", "WITH", "Difference", "OutcomeDifferences", "outcome_differences"]

MOST = 10
"""Agents, tools, and pairs of tools that are looked at, those of most traces; of erring agents, of half."""

UNRECOVERED = "unrecovered errors"
"""A run that gets by its errors has as many errors, and none of these."""

OWNED = ("errors", UNRECOVERED, "retries", "loops")
"""What numbers are called of which it is asked whose they are."""

EMPTY = "empty results"
"""Of tools, as of a search that finds nothing."""

LENGTH = "events"
LONGEST = "longest event in seconds"

WITH = "traces with"
"""Begins the names of numbers that say whether an agent acted, or erred."""

FIRST = (*OWNED, EMPTY, CUT, BROKEN_OFF, LIMITED, ANSWER_CUT, UNENDED, FAILED)
"""Numbers that a headline names first."""

MOSTLY = 0.8
"""Rank correlation within tasks from which a number says mostly what another does, as seconds what events do."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """One number of a trace, in failed and in succeeded ones.

    Attributes:
      what: the number, in words.
      failed, succeeded: mean over the tasks compared, of the means over their traces of each kind; over all tasks where
        none can be compared. NaN where no trace of a kind has it.
      chance: the probability that a failed trace has more than a succeeded one, ties counted half; 0.5 if they are
        alike.
      low, high: 95 % interval of `chance` by `graphs.task_means`; NaN where there is none.
      p: of the test that failed and succeeded traces are alike, by Holm's method for all facts that could have so small
        a p; NaN where too few tasks can be compared, or so few differ that no outcomes would give a p below 0.05.
      least: the least p that a test could give before Holm's method, whatever the outcomes; NaN where too few tasks can
        be compared.
      tasks: that `chance` rests on: where tasks are compared within, those in which it is not 0.5, of traces as
        they are or relative to their models.
      same_as: a number looked at before it that says the same of the traces (`fact_of`): both count once; "" without.
      mostly: of one that is no number of `FIRST` or `WITH`, another one that stands out and rises or falls with it
        (`MOSTLY`), of those that stand out one looked at before it; "" without.
      owners: of `OWNED` numbers, and `LONGEST`, that stand out, whose the difference is: `first` of failed traces,
        `second` of others.
      known: how many of the failed and of the succeeded traces compared have it; None where all whose lines the log has
        do.
      late: of what failed traces have more of beyond chance, that it is what is done last in its runs (`LastActs`), or
        that without such it would not be, in words; "" elsewhere.
    """

    what: str
    failed: float
    succeeded: float
    chance: float
    low: float
    high: float
    p: float
    least: float
    tasks: int
    same_as: str = ""
    mostly: str = ""
    owners: Owners = dataclasses.field(default_factory=Owners)
    known: tuple[int, int] | None = None
    late: str = ""

    @property
    def stands_out(self) -> bool:
        """Whether it differs beyond chance."""
        return beyond_chance(self.p, self.low, self.high, 0.5)

    def means(self) -> list[str]:
        """`failed` and `succeeded` in words: of what is of a trace or not, the part of traces."""
        part = self.what.startswith("traces ")
        return apart((self.failed, self.succeeded), percent if part else amount, 0 if part else 3)

    def example(self, value: float, kinds: tuple[str, str], whose: str = "") -> str:
        """What one failed trace has of it, and `whose` that is, beside the means; `kinds` are the names of failed and
        succeeded traces."""
        (bad, good), (first, second) = kinds, self.means()
        own = ("no", "yes")[value > 0] if self.what.startswith("traces ") else amount(value)
        what = f"{self.what[0].upper()}{self.what[1:]}"
        return f"{what}: {own}{whose} in this {bad} trace, on average {first} in {bad} and {second} in {good} ones"

    @property
    def worth_telling(self) -> bool:
        """Whether it does, and by more than the digits of a sentence round away."""
        return self.stands_out and not rounds_away(self.failed - self.succeeded, max(self.failed, self.succeeded))


@dataclasses.dataclass(frozen=True)
class OutcomeDifferences:
    """What differs between failed and succeeded traces.

    Attributes:
      failed, succeeded: how many traces; none of either where all outcomes are equal. With `of_task`, of tasks in which
        outcomes differ.
      cut: the least outcome of a trace that succeeded; NaN where all outcomes are equal, and with `of_task`.
      median: of more than two different outcomes, of which `cut` is the first from there on, or the next above it where
        it is the least. NaN where a person says what a success is, and where two outcomes leave no choice.
      within: whether traces of one task, or kind of task, are compared. Otherwise tasks are, each with the mean of its
        traces.
      noun: which of these, as of `ComparedKinds`; `tasks` counts them.
      tasks: that are compared: those with both kinds, or those with one kind only.
      of_task: as of `JudgedTraces`.
      apart: whether only traces of one group are compared, and groups are finer than tasks: those of one model and
        system. A system that succeeds more often and does more of something would else make success of it.
      mixed: whether those of several models or systems are, each beside its own (`credit.reports.compared_kinds`).
      pairs: how many pairs of a failed and a succeeded trace tasks have, or kinds of them.
      wider: with `apart`, how many there are of one task, of any model and system, and of how many tasks.
      between: numbers of `FIRST` that are one number in each task that is compared within, not in all: their means over
        all failed and all succeeded traces.
      example: within tasks, what a failed trace has of the first number that differs beyond half the chance, as causes
        have a test, too, and is not `late`, in words; and the trace. Both "" without.
      left: numbers that are not compared, as whether a trace has one may depend on it: more than `LACK` of a kind lack
        it in tasks where others of their format have it, or one kind more than the other beyond chance. Its name, and
        `known`.
      rows: the differences: those that stand out, then others; the larger ones first. Of equal ones the means of the
        first differ most, by their sum.
      equal: the outcome of all traces where it leaves no choice; NaN elsewhere.
      compared: how many failed and succeeded traces are of `tasks`; others are in no row.
      lacking: how many of these lack lines, so that most rows leave them out.
      agents: that take part in some traces with an outcome and not in others, of those that tell (`taking_part`): its
        name, how many traces with it succeeded, of how many, and how many without it, of how many; the largest
        difference first.
      agents_within: of these, by name, those whose traces differ beyond chance from others of their task: means over
        tasks with both of the parts that succeeded, with it and without, and how many tasks.
      agents_alike: of others, those of `LEAST_TASKS` tasks with both that differ: the mean difference of these parts,
        its 95 % interval over tasks, and how many tasks.
      paid_in, agents_paid: what costs are known in, in words, and the part of it that each agent took.
      by_model: how often traces failed by model and by system; by system only without sides.
      unread, unscored: what `unread_outcomes` and `unscored_ends` say of traces with outcomes that are not among these,
        or with none; "" of none.
      swap: of `longer_swap`, where failed traces have more events beyond chance; and the trace to look at.
      failing: which outcomes are failures (`JudgedTraces`).
      rate: the 95 % interval of the part that failed; NaN where it has none, and with `of_task`.
      words: how many of the failed traces have which word of an outcome (`said_of`).
      without: how many traces have no outcome.
      refused: of how many of these it was refused, where they leave the rate open (`leave_rate_open`).
      sided: whether only traces of one side are compared; none are where no task has both kinds on one side.
    """

    failed: int
    succeeded: int
    cut: float
    median: float
    within: bool
    tasks: int
    rows: tuple[Difference, ...]
    equal: float = math.nan
    compared: tuple[int, int] = (0, 0)
    lacking: tuple[int, int] = (0, 0)
    by_model: ModelFailures = dataclasses.field(default_factory=ModelFailures)
    agents_alike: Mapping[str, tuple[float, float, float, int]] = dataclasses.field(default_factory=dict)
    agents_paid: Mapping[str, float] = dataclasses.field(default_factory=dict)
    paid_in: str = ""
    agents: tuple[tuple[str, int, int, int, int], ...] = ()
    agents_within: Mapping[str, tuple[float, float, int]] = dataclasses.field(default_factory=dict)
    unread: str = ""
    unscored: str = ""
    of_task: bool = False
    apart: bool = False
    failing: str = ""
    rate: tuple[float, float] = (math.nan, math.nan)
    words: str = ""
    sided: bool = False
    without: int = 0
    refused: int = 0
    mixed: bool = False
    pairs: int = 0
    wider: tuple[int, int] = (0, 0)
    between: tuple[tuple[str, float, float], ...] = ()
    left: tuple[tuple[str, tuple[int, int]], ...] = ()
    example: tuple[str, str] = ("", "")
    swap: tuple[str, str] = ("", "")
    noun: str = "task"

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        heads = {row.what for row, _ in self.folded()}
        rows = [
            dataclasses.asdict(row) | {"stands_out": row.stands_out, "folded": row.what not in heads}
            for row in self.rows
        ]
        plain, by = dataclasses.asdict(dataclasses.replace(self, by_model=ModelFailures())), self.by_model
        del plain["by_model"]
        return plain | {
            "models": by.models, "systems": by.systems, "agent_models": by.agents, "in_system": "system" in by.inside,
            "headline": self.headline(), "opening": self.opening(), "hints": self.hints(),
            "lines": self.lines(), "same": self.same(), "rows": rows, "kinds": self.kinds, "units": self.units
        }  # fmt: skip

    @property
    def kinds(self) -> tuple[str, str]:
        """What traces of the two kinds are called."""
        return ("worse", "better") if self.of_task else ("failed", "succeeded")

    @property
    def units(self) -> str:
        """What the means of `rows` are over."""
        each = not self.within and self.tasks == self.failed + self.succeeded
        return "traces" if each else plural(self.noun)

    def headline(self) -> str:
        """How many traces failed, and what differs in them; "" without any outcome."""
        if not self.failed + self.succeeded:
            return " ".join(self.counts())
        return " ".join([*self._count(), *self._more(), *self._unread()])

    def opening(self) -> tuple[str, str]:
        """How many traces failed, with what is not known of others; and what differs, as in `headline`."""
        known = self.failed + self.succeeded > 0
        more = (line for line in self._more() if self.sided or line not in self._of_these()) if known else ()
        return " ".join(self.known()), " ".join(more)

    def known(self) -> list[str]:
        """How many traces failed, with what is not known of others, in sentences."""
        return [*self._count(), *self._unread()] if self.failed + self.succeeded else self.counts()

    def _count(self) -> list[str]:
        """How many traces failed, and of how many that is not known."""
        known, words = self.failed + self.succeeded, f": {self.words}" if self.words else ""
        without = self.without - self.refused
        has, how = ("has", "it") if without == 1 else ("have", "these")
        rest = [f"{without} more {has} none: how {how} did is not known."]
        rest *= without > 0 and not self.unscored
        if self.refused:
            every, most = known + self.refused, self.failed + self.refused
            low, high = apart((self.failed / every, most / every), percent, 0)
            parts = f"{low.removesuffix(' %')} to {high}"
            told = f"{self.failed} to {most} of {counted(every, 'trace')} failed{self.failing}, {parts}."
            return [*[told] * (not self.of_task and math.isnan(self.median)), *rest]
        if self.of_task:
            return [f"{self.failed} of {counted(known, 'trace')} did worse than others of their task{words}.", *rest]
        if not math.isnan(self.median):
            taken = f"are below {self.cut:g}{self._of_median()}"
        else:
            rate = rate_with_interval(self.failed / known, *self.rate)
            rate = rate or percent(self.failed / known) * (known >= LEAST_OF_PERCENT)
            taken = f"failed{self.failing}{f', {rate}' if rate else ''}"
        return [f"{self.failed} of {counted(known, 'trace')} with an outcome {taken}{words}.", *rest]

    def _more(self) -> list[str]:
        """What failed traces have more and less of, `FIRST` first, three each, and which models and systems failed.

        Where nothing stands out it says so.
        """
        words = []
        than = f" than in {self.kinds[1]} ones of their side" if self.sided else ""
        for start, sign in ((f"More in {self.kinds[0]} ones{than}", 1), (f"Less in {self.kinds[0]} ones{than}", -1)):
            names: list[str] = []
            for row, _ in sorted(self.folded(), key=lambda fact: (fact[0].late != "", fact[0].what not in FIRST)):
                if row.worth_telling and sign * (row.chance - 0.5) > 0:
                    whose = f", {whose}" if (whose := row.owners.told(short=True)) else ""
                    whose += f"; {row.late}" if row.late else ""
                    but = "but " if sign * (row.failed - row.succeeded) < 0 else ""  # a few large traces make means
                    names.append(f"{row.what} ({but}{' against '.join(row.means())}{whose})")
            words += [f"{start}: {'; '.join(names[:3])}."] if names else []
        words += [] if words else [*self._verdict(), *self._between()]
        return [*words, *self.by_model.lines(3, 1, rest=bool(self.rows)), *self._of_these()]

    @property
    def _crossed(self) -> bool:
        """Whether traces are of both kinds, and those of one task are of different sides."""
        return self.sided and self.tasks == 0 and self.failed > 0 and self.succeeded > 0

    def _of_median(self) -> str:
        """How `cut` was found: outcomes are few, so a median may lie between two of them."""
        return f", the next above the median {self.median:g}" if self.cut > self.median else ", the median"

    def _of_these(self) -> list[str]:
        """How many traces the rows are of, where some are in no task that is compared."""
        (failed, succeeded), (one, other) = self.compared, self.kinds
        some = 0 < failed + succeeded < self.failed + self.succeeded
        tasks = " of tasks that have both on one side" if self.sided else ""
        said = [f"{failed} {one} and {succeeded} {other} traces{tasks} were compared."] if some else []
        if any(self.lacking):
            bad, good = self.lacking
            lost = f"The log lacks lines of {bad} {one} and {good} {other} ones"
            said.append(f"{lost}: what follows of counts and agents leaves these out.")
        return said

    def _unread(self) -> list[str]:
        lost = "; ".join(filter(None, (self.unread, self.unscored)))
        return [f"{lost}."] if lost else []

    def lines(self) -> list[str]:
        """`counts` and `comparison`, where these meet in one line."""
        counts, rest = self.counts(), self.comparison()
        return [*counts[:-1], " ".join([*counts[-1:], *rest[:1]]), *rest[1:]]

    def counts(self) -> list[str]:
        """What was not read, and how many traces failed, in sentences."""
        known = self.failed + self.succeeded
        if not math.isnan(self.equal):
            said = f"All outcomes are equal, {self.equal:g}: nothing tells failed from succeeded traces."
            said = f"All others are {self.equal:g}." if self.refused else said
        elif not self.failed or not self.succeeded:
            said = (
                f"All {known} traces with an outcome {'succeeded' if self.succeeded else 'failed'} (at {self.cut:g})."
            )
        else:
            said = self._taken()
        return [*self._unread(), *[said] * bool(known or not math.isnan(self.equal))]

    def hints(self) -> list[str]:
        """What other options would do."""
        said = ["`--success-at` takes what you call a success."] * (self.of_task or not math.isnan(self.median))
        if self.within and not self._crossed and self.wider[0] > self.pairs:
            pairs = f"{counted(self.wider[0], 'pair')} in {counted(self.wider[1], 'task')}"
            said.append(f"`--group-by task` compares traces of several models and systems, too: {pairs}.")
        return said

    def comparison(self) -> list[str]:
        """What was compared and what came of it, in sentences."""
        if not self.rows and not self._crossed:
            if not math.isnan(self.equal) or not self.failed or not self.succeeded:
                return []
            return [*self._verdict(), *self._known(), *self._between(), *self.by_model.lines(rest=bool(self.rows))]
        kinds = ""
        if self.within and not self._crossed:
            bad, good = self.kinds
            pairs = f"{counted(self.pairs, 'pair')} of a {bad} and a {good} trace"
            kinds = f"Compared within {counted(self.tasks, self.noun)} with both, {pairs}"
            alike = ", only with traces of the same model and system" if self.apart or self.noun != "task" else ""
            of_side = " and side" if alike else ", only with traces of the same side"
            beside = ", each relative to traces of its own model and system" if self.mixed else ""
            kinds += f"{alike}{of_side if self.sided else ''}{beside}."
        elif self.tasks:
            tasks = counted(self.tasks, "task")
            each = f"one number each{', two of those with both' * (self.pairs > 0)}"
            kinds = f"Compared between {tasks}, {each}: failed ones may have been harder."
        kinds = " ".join(filter(None, [kinds, *self._of_these()]))
        owned = []
        for row in self.rows:
            whose = row.owners.told(_against)
            owned += [f"The difference in {row.what} is {whose}."] if whose else []
            begin = row.what[0] if ", then " in row.what else row.what[0].upper()  # a tool's name stays
            owned += [f"{begin}{row.what[1:]}: {row.late}."] if row.late else []
        others = [*self._known(), *self._between(), *self.by_model.lines(rest=bool(self.rows)), *self._by_agent()]
        return [*filter(None, [kinds]), *self._verdict(), *others, *owned]

    def _known(self) -> list[str]:
        """Which rows are of fewer traces, and which numbers are left out as too many lack them."""
        bad, good = (every - lost for every, lost in zip(self.compared, self.lacking, strict=True))
        fewer = [(row.what, row.known) for row in self.rows if row.known]
        lines = []
        for begin, these in (
            ("Some traces lack the number, so that rows are of fewer", fewer),
            ("Not compared, as which traces lack the number may depend on what it would be", self.left),
        ):
            told = [
                f"{what} (known of {known[0]} of {bad} {self.kinds[0]} and {known[1]} of {good} {self.kinds[1]})"
                for what, known in these
            ]
            more = f"; {len(told) - MOST} more" if len(told) > MOST else ""
            lines += [f"{begin}: {'; '.join(told[:MOST])}{more}."] if told else []
        return lines

    def _taken(self) -> str:
        """How many traces failed, and which outcomes that is."""
        failed = counted(self.failed, "trace")
        if self.of_task:
            of = "group" if self.apart else "task"
            least = f"below the median outcome of their {of}, or at it where that is the least"
            return f"{failed} did worse ({least}), {self.succeeded} better."
        taken = "" if math.isnan(self.median) else self._of_median()
        words = f": {self.words}" if self.words else ""
        return f"{failed} failed (outcome below {self.cut:g}{taken}{words}), {self.succeeded} succeeded."

    def _verdict(self) -> list[str]:
        """How many numbers differ, or why none does; none where all traces failed or all succeeded."""
        if self._crossed:
            return [
                f"No task has {self.kinds[0]} and {self.kinds[1]} traces of one side, so nothing was compared: what "
                "differs between sides is no sign of what differs between outcomes."
            ]
        if not self.rows:
            both = f"{'within tasks, ' * self.within}{' and '.join(self.kinds)} traces"
            alike = f"{both[0].upper()}{both[1:]} have the same length, agents, errors, tools and ends"
            nothing = "only models or systems differ" if self.by_model.lines() else "nothing to compare there"
            return [f"{alike}: {nothing}."] if self.failed and self.succeeded else []
        once = [row for row in self.rows if not row.same_as]
        verbs = ("was", "differs") if len(once) == 1 else ("were", "differ")
        found = sum(row.stands_out for row in once)
        looked = counted(self.looked_at(), "number")
        none = f"None of the {looked} that were looked at differs"
        none = "The one number that was looked at does not differ" if len(once) == 1 else none
        tested = [row.least for row in once if math.isfinite(row.p)]
        can_differ = min(holm(tested, least=tested), default=1.0) < LEVEL
        if found:
            said = f"{found} of {looked} that {verbs[0]} looked at {verbs[1]} beyond chance."
            said += " A difference need not be a cause."
        elif can_differ:
            said = f"{none} beyond chance{within_both(0 if self.sided or not self.within else self.tasks, self.noun)}."
        elif tested:
            few = f"{counted(self.tasks, self.noun)} {'is' if self.tasks == 1 else 'are'} too few"
            said = f"{few} to tell {counted(len(tested), 'number')} apart from chance."
        elif any(math.isfinite(row.least) for row in self.rows):
            said = f"{none} in enough traces for a test."
        else:
            said = (
                f"Too few for a test, which takes {LEAST_TASKS} {self.kinds[0]} and {LEAST_TASKS} {self.kinds[1]} "
                f"traces in tasks with both kinds, or {LEAST_TASKS} tasks of each kind."
            )
        return [f"Within a side, {said[0].lower()}{said[1:]}" if self.sided else said]

    def looked_at(self) -> int:
        """How many numbers were looked at, those that say the same of all traces once."""
        return sum(not row.same_as for row in self.rows)

    def terms(self) -> list[tuple[str, str]]:
        """The terms of a table of the rows."""
        bad, _ = self.kinds
        few = f"fewer than {LEAST_TASKS} tasks differ{'' if self.within else f', or {LEAST_OF_BOTH} are there'}"
        few = f"{few}, or all alike" if self.noun == "task" else f"none within a {self.noun}"
        return [
            (f"{bad} has more: ", f"{bad} has more: in this part of the pairs, ties half; 50 % is no difference"),
            ("–", f"–: {few}"),
            (UNRECOVERED, f"{UNRECOVERED}: no later call of the agent with the same arguments succeeded"),
            starred(f"the {counted(self.looked_at(), 'number')} looked at"),
        ]

    def _between(self) -> list[str]:
        """What differs between all failed and all succeeded traces, and in no task, which cannot tell why."""
        told = [f"{what} ({_against(failed, succeeded)})" for what, failed, succeeded in self.between]
        kinds = " and ".join(self.kinds)
        said = f"Within no task, but over all tasks, {kinds} traces differ in {'; '.join(told)}"
        return [f"{said}: harder tasks, or chance, may be why."] if told else []

    def same(self) -> list[str]:
        """Sentences on numbers that say the same of traces as a row of the table, or mostly so. They have no row."""
        told = [(f"Same information as {row.what}", names) for row, names in self.folded() if names]
        heads = {what: row.what for row, names in self.folded() for what in (row.what, *names)}
        mostly: dict[str, list[str]] = {}
        for row in self.rows:
            if row.mostly:
                mostly.setdefault(heads[row.mostly], []).append(row.what)
        told += [(f"Mostly the same as {what}", names) for what, names in mostly.items()]
        return [
            f"{begin}: {'; '.join(names[:MOST])}" + (f"; {len(names) - MOST} more." if len(names) > MOST else ".")
            for begin, names in told
        ]

    def _by_agent(self, most: int = 5) -> list[str]:
        """How often traces with an agent succeeded, and traces without it, and whether that is beyond chance."""
        shown, apart, both = [], [], f"with both{' on one side' * self.sided}"
        sure = {row.what for row in self.rows if row.stands_out}
        for name, good, every, rest, others in self.agents[:most]:
            shown.append(f"with {printable(name, 60)} {good} of {every}, without it {rest} of {others}")
            one, other, tasks = self.agents_within.get(name, (0.0, 0.0, 0))
            apart.append((one - other) * (good * others - rest * every) > 0)
            within = f"{percent(one)} against {percent(other)} within {counted(tasks, self.noun)} {both}, beyond chance"
            undecided = "undecided" * (not tasks and f"{WITH} {name}" not in sure)
            beside = [*filter(None, [within * bool(tasks), undecided])]
            if name in self.agents_alike:
                beside = [self.adds(name, undecided)]
            part = self.agents_paid.get(name)
            beside += [] if part is None else [f"{percent(part, 1)} of the {self.paid_in}"]
            shown[-1] += f" ({'; '.join(beside)})" if beside else ""
        more = ["…"] * (len(self.agents) > most)
        mixes = (
            ". What went wrong before may be why" if all(apart) else " (an agent may be called where a task is hard)"
        )
        which = "did better" if self.of_task else "succeeded"
        tests = f" These tests are corrected for the {len(self.agents)} agents." if len(self.agents) > 1 else ""
        return [f"Traces that {which}: {'; '.join(shown + more)}{mixes}.{tests}"] if shown else []

    def adds(self, name: str, undecided: str = "") -> str:
        """By how much more often traces with an agent succeed, of `agents_alike`; `undecided` says so."""
        *ends, tasks = self.agents_alike[name]
        points, low, high = (f"{100 * end:+z.0f}".replace("+0", "0") for end in ends)
        both = f"{undecided} within {counted(tasks, self.noun)} with both{' on one side' * self.sided}".strip()
        return f"{points} percentage points, {low} to {high}, {both}"

    def of_units(self, by: str) -> str:
        """That taking part or acting of agents, or calls of tools, differs beyond chance; "" where none does."""
        named = {"agent": (f"{WITH} ", "actions of "), "tool": ("calls of ",)}.get(by, ())
        rows: dict[str, Difference] = {}
        for row in self.rows:
            if row.worth_telling and named and row.what.startswith(named) and not row.mostly:
                rows.setdefault(row.same_as or row.what, row)
        told = [f"{row.what} ({_against(row.failed, row.succeeded)})" for row in rows.values()]
        kinds = " and ".join(self.kinds).capitalize()
        return f"{kinds} traces differ beyond chance in {', '.join(told[:3])}." if rows else ""

    def folded(self) -> list[tuple[Difference, list[str]]]:
        """A row of each fact with a test, and the numbers of others that say the same; else each row alone; none that
        says mostly what another does.

        The row is that of `FIRST`, of an agent that acted, or of the number looked at first.
        """
        facts: dict[str, list[Difference]] = {}
        for row in self.rows:
            if row.mostly:
                continue
            one = row.same_as and math.isfinite(row.p)  # few traces make one fact of all numbers
            facts.setdefault(row.same_as if one else row.what, []).append(row)
        heads = [
            min(rows, key=lambda row: (row.what not in FIRST, not row.what.startswith(WITH), row.same_as != ""))
            for rows in facts.values()
        ]
        return [
            (head, [row.what for row in rows if row is not head])
            for head, rows in zip(heads, facts.values(), strict=True)
        ]


def _against(failed: float, succeeded: float) -> str:
    """The means of failed and of succeeded traces."""
    return " against ".join(apart((failed, succeeded), amount, 3))


def outcome_differences(
    traces: Traces,
    *,
    success_at: float | None = None,
    side: np.ndarray | None = None,
    of_model: str = "",
    paid: tuple[str, dict[str, float]] = ("", {}),
) -> OutcomeDifferences:
    """Compare failed with succeeded traces in length, errors, also by agent, ends, loops, tokens, times, agents, tools.

    Which traces failed `judged_traces` says.
    With U_g the number of pairs of a failed and a succeeded trace of group g in which the failed one has more, ties
    half, a group gives v_g = U_g / (n_g m_g), a task the mean of its groups, and the chance is the mean over tasks. The
    test is that of stratified ranks: outcomes might have been dealt otherwise among the traces of a group
    (`graphs.dealing`). It takes `LEAST_TASKS` failed and as many succeeded traces in groups with both kinds. Where
    there are fewer, a task's groups count as one, and a trace is ranked relative to others of its model and system
    (`credit.reports.compared_kinds`). Where these are too few of all (`compared_alone`), tasks are
    compared instead, within their kinds if these are stated, each with the mean of its failed traces and that of
    others, if `LEAST_TASKS` have each or no task has both; the cut is one then. With sides, and no kinds, tasks are not
    compared: one of a side would be compared with one of the other.

    Args:
      traces: what was read.
      success_at: the least outcome of a success, as of `judged_traces`.
      side: of each trace, where only traces of one side are compared, as those of two versions: int [traces].
      of_model: as of `model_failures`.
      paid: what costs are known in, in words, and the part of it that each agent took (`agents_paid`).

    Reference: Mann and Whitney 1947; van Elteren 1960; Brunner and Munzel 2000; Holm 1979; Tarone 1990.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "b"], reward=[1.0, 0.0, 0.0])
      >>> found = outcome_differences(rows.traces)
      >>> found.failed, found.rows[0].what, found.rows[0].failed, found.rows[0].succeeded
      (1, 'events', 2.0, 1.0)
    """
    expect("traces", traces, Traces, "what credit.read returns")
    traces = of_one_source(traces)
    calls = ToolCalls.of(traces)
    judged = judged_traces(traces, success_at, side)
    lost = unread_outcomes(traces, success_at)
    unread, refused = unread_line(lost, RefusedTraces.of(traces)), sum(row.refused for row in lost)
    refused *= leave_rate_open(refused, len(judged.rows))
    unscored = unscored_line(unscored_ends(traces, success_at))
    scored, cut, of_task = judged.rows, judged.cut, judged.of_task
    known, words = np.asarray(traces.reward, np.float64)[scored], said_of(traces, judged.failed)
    rate = (math.nan, math.nan) if of_task else chance_interval(judged.failed[scored], task_ids(traces)[scored])
    if not judged.both:
        counts, equal = (int(judged.failed.sum()), int(judged.succeeded.sum())), math.nan
        if len(known) and math.isnan(cut):
            counts, equal = (0, 0), float(known[0])
        return OutcomeDifferences(
            *counts,
            cut,
            math.nan,
            False,
            0,
            (),
            equal,
            unread=unread,
            unscored=unscored,
            rate=rate,
            words=words,
            refused=refused,
        )
    compared = compared_kinds(traces, judged)
    failed, told, unit, task, kept, within, *_ = compared
    apart = judged.unit is not None and bool(unit.max() > judged.stratum.max())
    found, shown_of, facts, values = [], {}, {}, {}
    between: dict[bytes, tuple[str, float, float]] = {}
    left: list[tuple[str, tuple[int, int]]] = []
    of_number: dict[str, np.ndarray] = {}
    lacking = lacking_traces(traces)  # whose numbers are lower bounds
    whole = kept & ~lacking[scored]
    form = traces.traces["format"].combine_chunks().dictionary_encode().indices.fill_null(-1)
    form = form.to_numpy(zero_copy_only=False)[scored]
    cell = distinct_columns(task * within, form).of
    for what, every, events in _numbers(traces, calls) if kept.any() else ():
        value = (every if what == UNENDED else np.where(lacking, np.nan, every))[scored]
        used = np.isfinite(value)
        if not used.any():
            continue
        having = None
        if (whole & ~used).any():
            having = int((used & whole & failed).sum()), int((used & whole & ~failed).sum())
            if are_chosen(used, failed, task if within else np.zeros_like(task), cell, whole):
                left.append((what, having))
                continue
        if np.ptp(value[used]) == 0:  # says nothing, whatever the outcomes
            continue
        shown = used & kept if (used & kept).any() else used
        paired = (np.bincount(unit, shown & failed) > 0) & (np.bincount(unit, shown & ~failed) > 0)
        if within and paired.any():  # a killed run may lack the number, and with it its task
            shown &= paired[unit]
        shown_of[what] = shown & failed, shown & ~failed
        bad, good = (_mean(value[kind], unit[kind], task[kind]) for kind in shown_of[what])
        numbers = compared.test(value)
        *_, least, differing = numbers
        if not differing and least >= 1:  # one number in each task
            bad, good = (float(value[used & told & kind].mean()) for kind in (failed, ~failed))
            if within and what in FIRST and bad != good:
                between.setdefault(fact_of(value), (what, bad, good))
            continue
        facts[what], values[what], of_number[what] = fact_of(value), value, events
        same = next(name for name, fact in facts.items() if fact == facts[what])
        found.append(Difference(what, bad, good, *numbers, same if same != what else "", known=having))
    corrected = holm([row.p for row in found], [*facts.values()], [row.least for row in found])
    rows = [dataclasses.replace(row, p=p) for row, p in zip(found, corrected, strict=True)]

    def differs_without(what: str, last: str) -> bool:
        """Whether failed traces have more of something, were it not for what is done last."""
        its = of_number[what]
        less = np.bincount(trace[its[np.isin(its, acts.with_these(of_number[last]))]], minlength=traces.sizes.traces)
        left = values[what] - less[scored]
        if what.startswith("traces "):
            every = np.bincount(trace[its], minlength=traces.sizes.traces)
            left = np.where(np.isfinite(left), (every - less)[scored] > 0, np.nan)
        chance, _, _, p, *_ = compared.test(left)
        return chance > 0.5 and p < LEVEL

    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    acts, of_these = LastActs(traces, calls), (judged.failed, judged.succeeded)
    more = [i for i, row in enumerate(rows) if row.stands_out and row.chance > 0.5]
    late = {i: said for i in more if (said := acts.told(of_number[rows[i].what], *of_these))}
    for i, row in enumerate(rows):
        if i in late:
            rows[i] = row = dataclasses.replace(row, late=late[i])
        elif late and i in more:  # what is done last may be why there is more of something in all
            why = next((f"{rows[j].what} may be why" for j in late if not differs_without(row.what, rows[j].what)), "")
            rows[i] = row = dataclasses.replace(row, late=why)
        if row.stands_out and row.what in (*OWNED, EMPTY, LONGEST) and row.failed != row.succeeded:
            weights = np.zeros((2, traces.sizes.traces))
            for weight, kind in zip(weights, shown_of[row.what], strict=True):
                weight[scored[kind]] = _weights(unit[kind], task[kind])
            its = _longest(traces, trace) if row.what == LONGEST else (of_number[row.what], None)
            whose = owners(traces, calls, its[0], weights, its[1])
            rows[i] = dataclasses.replace(row, owners=whose)
    mostly = _mostly(rows, values, kept, unit if within else np.zeros_like(unit))
    rows = [dataclasses.replace(row, mostly=mostly.get(row.same_as or row.what, "")) for row in rows]

    def order(row: Difference) -> tuple[bool, bool, float, float]:
        size = 0.0 if math.isnan(row.chance) else round(abs(row.chance - 0.5), 9)  # equal ones differ in last bits
        total = abs(row.failed) + abs(row.succeeded)
        apart = abs(row.failed - row.succeeded) / total if total > 0 else 0.0
        # What went wrong comes before the seconds that it took.
        return not row.stands_out, row.stands_out and row.what.endswith(" in seconds"), -size, -apart

    rows.sort(key=order)
    both_kinds = int((told & failed).sum()), int((told & ~failed).sum())
    lost = kept & lacking[scored]
    lacking_of = int((lost & failed).sum()), int((lost & ~failed).sum())
    compared_of = int((kept & failed).sum()), int((kept & ~failed).sum())
    of_any = compared
    if apart and of_task:
        lower, both = below_their_own(known, judged.stratum)
        of_any = compared._replace(failed=lower, told=both)
    stratum = judged.stratum if compared.single is None else unit
    of_tests = [judged] * within
    if within and apart:
        of_tests.append(judged_traces(traces, success_at, side, whole_tasks=True))
    tests = [compared_kinds(traces, one, by_outcome=True) for one in of_tests]
    parts, parts_within, alike = _by_agent(traces, scored, ~failed, told, stratum, task, tests)
    example, every_id = ("", ""), traces.traces["trace"].to_pylist()
    at_end = {row.what for row in rows if row.late}
    clear = [
        row
        for row in rows
        if row.worth_telling and row.p < LEVEL / 2 and at_end.isdisjoint((row.what, row.same_as, row.mostly))
    ]
    clear.sort(key=lambda row: row.what not in FIRST)
    for row in clear[: int(within)]:  # between tasks, failed ones may have been harder
        value = np.where(kept & failed, values[row.what] * (1 if row.chance > 0.5 else -1), np.nan)
        at = int(np.nanargmax(value))
        whose_it_is = f" ({_whose_longest(traces, calls, int(scored[at]))})" if row.what == LONGEST else ""
        example = row.example(float(values[row.what][at]), judged.kinds, whose_it_is), every_id[int(scored[at])]
    swap = ("", "")
    if within and any(row.what == LENGTH and row.stands_out and row.chance > 0.5 for row in rows):
        acting = {
            row.what.removeprefix(f"{WITH} "): (row.chance > 0.5, values[row.what])
            for row in rows
            if row.stands_out and row.what.startswith(WITH) and not row.what.startswith(f"{WITH} an error of ")
        }
        told_swap, at = longer_swap(compared, acting, values[LENGTH], "did better" if of_task else "succeeded")
        swap = told_swap, every_id[int(scored[at])] if told_swap else ""
    median = float(np.median(known)) if judged.graded and not of_task else math.nan
    by_model = model_failures(traces, judged, of_model)
    if deciding_verdict(traces) is not None:  # which may pass more failures of one
        by_model = ModelFailures()
    if side is not None:  # what differs between the sides stands with them
        by_model = dataclasses.replace(by_model, systems=())
    return OutcomeDifferences(
        *both_kinds, math.nan if of_task else cut, median, within, len(np.unique(task[kept])), tuple(rows),
        compared=compared_of, lacking=lacking_of, by_model=by_model, agents=parts,
        agents_within=parts_within, agents_alike=alike, paid_in=paid[0], agents_paid=paid[1],
        unread=unread, unscored=unscored, refused=refused, of_task=of_task, apart=apart,
        sided=judged.sided, mixed=compared.mixed,
        without=traces.sizes.traces - len(scored),
        pairs=compared.pairs()[0], wider=of_any.pairs(judged.stratum) if apart else (0, 0),
        failing="" if of_task else judged.failing, rate=rate, words=words, between=tuple(between.values()),
        left=tuple(left),
        example=example, swap=swap, noun=compared.noun,
    )  # fmt: skip


def _mostly(
    rows: list[Difference], values: dict[str, np.ndarray], kept: np.ndarray, unit: np.ndarray
) -> dict[str, str]:
    """`Difference.mostly`, by the names of rows that are not the same as another."""
    apart = {row.same_as or row.what for row in rows if row.what in FIRST or row.what.startswith(WITH)}
    heads: list[str] = []
    found = {}
    for row in sorted(rows, key=lambda row: not row.stands_out):  # what is not beyond chance alone may follow, too
        if row.same_as or not (row.stands_out or heads):
            continue
        for head in heads if row.what not in apart else ():
            both = kept & np.isfinite(values[row.what]) & np.isfinite(values[head])
            of, size = unit[both], np.maximum(np.bincount(unit[both]), 1)
            ranks = [mean_ranks(values[what][both], of) for what in (row.what, head)]
            one, other = ((rank - (np.bincount(of, rank) / size)[of]) / size[of] for rank in ranks)
            if abs(correlation(one, other)) >= MOSTLY:
                found[row.what] = head
                break
        else:
            heads += [row.what] * row.stands_out
    return found


def _by_agent(
    traces: Traces,
    scored: np.ndarray,
    good: np.ndarray,
    told: np.ndarray,
    stratum: np.ndarray,
    task: np.ndarray,
    tests: list[ComparedKinds],
) -> tuple[
    tuple[tuple[str, int, int, int, int], ...],
    dict[str, tuple[float, float, int]],
    dict[str, tuple[float, float, float, int]],
]:
    """`OutcomeDifferences.agents`, of agents with an action, `agents_within`, and `agents_alike`; by the `tests` of
    causes: within groups, and across them where these are apart."""
    names, acts, tells = taking_part(traces)
    having, lost = ((of & tells)[:, scored] & told for of in (acts, ~acts))
    (every, won), (others, rest) = ((part.sum(axis=1), (part & good).sum(axis=1)) for part in (having, lost))
    apart = np.abs(won * others - rest * every) / np.maximum(every * others, 1)
    shown = [i for i in np.argsort(-apart, kind="stable").tolist() if every[i] and others[i]]
    found = []
    for i in shown:
        rows = having[i] | lost[i]
        one, other, p = _within_tasks(having[i, rows], good[rows], stratum[rows], task[rows])
        ps = [kinds.test(np.where(rows, having[i], math.nan))[3] for kinds in tests]
        found.append((one, other, p_across(ps[0], ps[1]) if len(ps) > 1 else ps[0] if ps else p))
    corrected = holm([p for *_, p in found], [fact_of(having[i] - 1.0 * lost[i]) for i in shown])
    within, alike = {}, {}
    for i, (one, other, p), sure in zip(shown, found, corrected, strict=True):
        if sure < LEVEL:
            within[names[i]] = float(one.mean()), float(other.mean()), len(one)
        elif np.count_nonzero(one - other) >= LEAST_TASKS:
            low, high = as_tested(mean_interval(one - other), p)
            if math.isfinite(low):
                alike[names[i]] = float((one - other).mean()), max(low, -1.0), min(high, 1.0), len(one)
    parts = tuple((names[i], int(won[i]), int(every[i]), int(rest[i]), int(others[i])) for i in shown)
    return parts, within, alike


def _within_tasks(
    has: np.ndarray, good: np.ndarray, stratum: np.ndarray, task: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Of each task with traces of both kinds, on one side, the parts that are good, and p; NaN without one."""
    _, first, of = np.unique(stratum, return_index=True, return_inverse=True)
    size, some = np.bincount(of), np.bincount(of, has)
    both, many = (some > 0) & (some < size), np.maximum(some * (size - some), 1)
    if not both.any():
        return np.zeros(0), np.zeros(0), math.nan
    one, other = (np.bincount(of, good & kind)[both] / np.bincount(of, kind)[both] for kind in (has, ~has))
    _, place = np.unique(task[first][both], return_inverse=True)
    sides = np.bincount(place)
    many[both] *= sides[place]  # a task counts once
    kept = both[of]
    p, least = dealt((good * (size / many)[of])[kept], has[kept], of[kept])
    one, other = (np.bincount(place, part) / sides for part in (one, other))
    return one, other, p if least < LEVEL else math.nan


def _mean(value: np.ndarray, unit: np.ndarray, task: np.ndarray) -> float:
    """The mean over tasks of the means over their groups of the means over traces."""
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    value = np.bincount(unit, value) / np.bincount(unit)
    _, of = np.unique(task[first], return_inverse=True)
    return float((np.bincount(of, value) / np.bincount(of)).mean()) if len(value) else math.nan


def _weights(unit: np.ndarray, task: np.ndarray) -> np.ndarray:
    """How much each trace counts in `_mean`."""
    _, first, of = np.unique(unit, return_index=True, return_inverse=True)
    _, place = np.unique(task[first], return_inverse=True)
    groups = np.bincount(place)
    weights: np.ndarray = 1 / (np.bincount(of) * groups[place] * len(groups))[of]
    return weights


def _numbers(traces: Traces, calls: ToolCalls) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """What is compared, in words, with a number of each trace: float [traces], NaN where the log does not have it; and
    the events that it counts, none of what is no count of some."""
    graph, n = traces.graph, traces.sizes
    trace = np.asarray(graph.trace_ids)[: n.events]
    action = np.asarray(graph.action_mask)[: n.events]

    def count(rows: np.ndarray) -> np.ndarray:
        return np.bincount(trace[rows], minlength=n.traces).astype(np.float64)

    none = np.zeros(0, np.int64)
    yield LENGTH, count(np.arange(n.events)), np.arange(n.events)
    yield "agents", TeamFacts.of(traces).counts.members.astype(np.float64), none
    states, owned = has_statuses(traces), dict(zip(OWNED, owned_events(calls).values(), strict=True))
    wrong = owned["errors"]
    yield "errors", np.where(states, count(wrong), np.nan), wrong
    yield UNRECOVERED, np.where(states, calls.unrecovered_counts(), np.nan), owned[UNRECOVERED]
    if len(calls.rows):
        yield "tool calls", count(calls.rows), calls.rows
        yield "retries", np.where(states, calls.retry_counts(), np.nan), owned["retries"]
    if len(calls.rows) or calls.loops:
        yield "loops", calls.loop_counts(), owned["loops"]
    if len(calls.empty.rows):
        yield EMPTY, np.where(calls.empty.tells, count(calls.empty.rows), np.nan), calls.empty.rows
    for what, at, tells in ends(traces, calls):
        if (at >= 0).any():
            yield what, np.where(tells, at >= 0, np.nan), none
    counts = counted_tokens(traces) & action
    bare = action & ~counts & ~failed_model_calls(traces)
    complete = count(np.flatnonzero(bare)) == 0  # sums over some actions compare nothing
    tokens = traces.evidence.get("tokens")
    if tokens is not None:
        amount = np.bincount(trace[counts], tokens.array[: n.events][counts], n.traces)
        yield "tokens generated", np.where(complete, amount, np.nan), none
    yield from ((what, seconds, none) for what, seconds in _times(traces, trace))
    names: list[str] = traces.agents["name"].to_pylist()
    acting = np.array([names[agent] for agent in np.asarray(graph.agent_ids)[: n.events][action].tolist()], object)
    acted = np.flatnonzero(action)
    agents = _frequent(acting, trace[acted])
    if len(agents) > 1:
        task = task_ids(traces)
        for name in agents:
            its = acted[acting == name]
            acts = count(its)
            took = np.bincount(task, acts > 0)
            if some := np.any((took > 0) & (took < np.bincount(task))):  # not in all traces of a task
                yield f"{WITH} {name}", (acts > 0).astype(np.float64), its
            if not some or acts.max() > 1:  # else the same number again
                yield f"actions of {name}", acts, its
    erring = np.array([names[agent] for agent in np.asarray(graph.agent_ids)[wrong].tolist()], object)
    if len({*erring}) > 1:  # of one alone, errors are its errors
        for name in _frequent(erring, trace[wrong], int(states.sum())):
            its = wrong[erring == name]
            yield f"{WITH} an error of {name}", np.where(states, count(its) > 0, np.nan), its
    tool: list[str | None] = traces.events["tool"].to_pylist()
    called = np.array([tool[row] or "unnamed tool" for row in calls.rows.tolist()], object)
    for name in _frequent(called, trace[calls.rows]):
        its = calls.rows[called == name]
        yield f"calls of {name}", count(its), its
    agent = np.asarray(graph.agent_ids)[calls.rows]
    earlier, later = consecutive(agent)  # of one agent: what others call between, or at once, is no order of its
    first, rows = calls.rows[earlier], calls.rows[later]
    order = np.array([f"{a}, then {b}" for a, b in zip(called[earlier], called[later], strict=True)], object)
    for name in _frequent(order, trace[rows]):
        yield name, count(rows[order == name]), first[order == name]


def _frequent(names: np.ndarray, trace: np.ndarray, of: float = math.inf) -> list[str]:
    """Names of `LEAST_TASKS` traces or more: of most, or of nearest to half `of` all, whatever their outcomes."""
    counts = collections.Counter(name for name, _ in set(zip(names.tolist(), trace.tolist(), strict=True)))
    ranked = sorted(counts.items(), key=lambda item: (-min(item[1], of - item[1]), item[0]))
    return [name for name, traces in ranked if traces >= LEAST_TASKS][:MOST]


def _times(traces: Traces, trace: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The wall clock of a trace, its longest event, and the longest time in which nothing ran; none with a person's."""
    found = TeamFacts.of(traces).durations
    if np.isnan(found.wall).all():
        return
    yield "wall clock in seconds", found.wall
    for name, seconds in ((LONGEST, found.event), ("longest wait in seconds", found.idle)):
        longest = np.zeros(len(found.wall))
        np.fmax.at(longest, trace, seconds)
        unknown = np.bincount(trace, np.isnan(seconds), len(longest)) > 0
        yield name, np.where(unknown, np.nan, longest)


def _longest(traces: Traces, trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The event of each trace that took longest, and its seconds."""
    seconds = np.nan_to_num(TeamFacts.of(traces).durations.event)
    order = np.lexsort((seconds, trace))
    last = order[np.flatnonzero(np.diff(trace[order], append=-1))]
    return last, seconds[last]


def _whose_longest(traces: Traces, calls: ToolCalls, place: int) -> str:
    """The tool, or the agent whose model it is, of the event of one trace that took longest."""
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    event = int(_longest(traces, trace)[0][place])
    agent = traces.agents["name"][int(np.asarray(traces.graph.agent_ids)[event])].as_py()
    if np.asarray(traces.graph.action_mask)[event]:
        return f"a model call of {printable(agent, 60)}"
    tool = traces.events["tool"][int(calls.owners[event])].as_py()
    return f"a call of {printable(tool, 60)}" if tool else f"an event of {printable(agent, 60)}"
