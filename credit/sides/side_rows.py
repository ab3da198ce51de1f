"""One metric on two sides: the difference, its interval, its test and its words."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Hashable, Sequence

from credit.reports.beyond_chance import beyond_chance
from credit.reports.owners import Owners
from credit.sides.asked_metrics import ASKED, ASKED_NEXT, FIRST
from credit.sides.shown_changes import only_in, shown
from credit.sides.side_words import first_to_second, short
from graphs.task_means import LEAST_TASKS, LEVEL, alike, holm
from graphs.text import amount, counted, interval, rounds_away

__all__ = ["Needed", "SideDifference", "SideRatio", "corrected_rows"]

POWER = 0.8


FEW = 0.02
"""Part of the traces of a side: were they ten times as large as others, its mean would be a fifth higher."""


@dataclasses.dataclass(frozen=True)
class SideRatio:
    """How many times an amount of the first side the second has.

    Attributes:
      value: where tasks are paired, the middle of the ratios of their means, of those that differ (`shift_interval`);
        else geometric means' ratio. Where one side has `MANY_MORE` traces a task, the means over traces are geometric
        ones too: the mean of 8 log-normal numbers is above a ninth in 65 % of cases.
      low, high: its 95 % interval (`shift_interval`, `difference_interval` of logarithms), of what is tested. That of
        a median beside a test of the mean held 98 % where nothing differed, and 1.55 times as much stood out in 74 % of
        pairs of 40 tasks, now in 91 %.
      seen: the least ratio above 1 that the test of the logarithms would find in 4 of 5 cases, at 5 % over `rows`; None
        where all tasks differ by one ratio.
    """

    value: float
    low: float
    high: float
    seen: float | None


@dataclasses.dataclass(frozen=True)
class Needed:
    """What a difference needs to stand out, in units of the difference; of a ratio, of its logarithm.

    Attributes:
      error: the standard error of the difference.
      freedom: of Student's distribution of it.
      dealt: its standard error over dealings of runs within their tasks, by which uneven ones are tested, too; else 0.
      half: half its interval, which must leave 0 out, too.
      turns: the greatest difference that outcomes that are missing may turn, by as many as are missing now.
    """

    error: float
    freedom: float
    dealt: float
    half: float
    turns: float = 0.0

    def seen(self, rows: int) -> float:
        """The least difference that is found with `POWER` by one of so many tests."""
        from scipy.special import ndtri, stdtrit  # comes with JAX; slow to import

        level, power = 1 - LEVEL / 2 / rows, float(stdtrit(self.freedom, POWER))
        least = max(float(stdtrit(self.freedom, level)) * self.error, float(ndtri(level)) * self.dealt, self.turns)
        return max(least + power * self.error, self.half * (1 + power / float(stdtrit(self.freedom, 1 - LEVEL / 2))))


@dataclasses.dataclass(frozen=True)
class SideDifference:
    """One metric on two sides.

    Attributes:
      metric: a name of `METRICS`, or of `costs_of_traces`.
      first, second: means over the tasks compared, of means over their traces.
      difference: second − first.
      low, high: its 95 % interval over tasks; None where `ratio` has one, where too few have a number or differ, or all
        differ alike, or those of a side are alike and not all of both sides are from 0 to 1, these at an end. Of a
        part, as success is one, it ends at −1 and 1.
      p: of the test that the sides are alike, over tasks; None where too few have a number or differ. What a change is
        judged by, `FIRST`, is tested on its own, and by Holm's method what else a head tells, and the rest.
      least: the least p that a test could give before Holm's method, whatever the sides; None likewise.
      seen: the least difference that would stand out in 4 of 5 cases by such a test at 5 % over `rows`, in the
        direction that is harder to see; None where there is no interval.
      tasks: how many are compared: those with both sides where `paired`, else all.
      traces: how many of each side, of these tasks.
      paired: whether tasks are compared with themselves: where any has both sides.
      differing: how many of these tasks differ; None where tasks are not paired.
      refused: reasons of traces without a number, and how many each has; of tasks with both sides, if `paired`.
      asked: how many traces each side has in these, with a number or without.
      lacking: how many of these have no number; the rest are of tasks without one on the other side.
      ratio: of `AMOUNTS`, which have its interval in place of that of the difference, and the test of its logarithm;
        None where a task that is compared has 0, and where another metric would have no interval.
      rows: how many tests `p` is corrected for, its own among them; or would be, of None.
      needed: what `seen` is made of; None without an interval.
      moved: whether an end of its interval was moved to where nothing differs, which the test does not reject
        (`as_tested`).
      no_interval: why a row with a test has none, as "has zeros": a task has 0 of an amount on one side; "" for others.
      alone: p before Holm's method; None likewise.
      same_as: the first metric whose numbers are these on a straight line (`fact_of`), so that both are one test;
        "" without.
      untold: how many traces of each side are of no known task (`untold_tasks`); they are in `asked` and `refused`.
      owners: of errors, loops, tool calls and seconds that stand out, whose the difference is, in these means.
      least_rest, most_rest: of `FIRST`, both means if all traces without an outcome had the least or the greatest of
        the others, of success 0 or 1; over all tasks with traces of both sides, where tasks are paired, and `untold`
        traces. Of early ends, both means with these. None where none lack one.
      kind: of tasks, which alone are compared, or a tool; "" of all.
      rose: in how many of these tasks the second side has more; None where tasks are not paired.
      here: p of the test over the runs of each task alone, corrected likewise; None without one.
      judge: why it may be the judge of outcomes that changed (`held_to_reference`); "" where nothing says so.
      within: how many kinds of tasks it is compared within (`compared_in`), where tasks are not paired; 0 where it is
        compared within none.
      shared: how many tasks are on both sides, where these are too few to be compared alone.
      weighted: of `FIRST`, the verdict by which outcomes are those of all traces (`weighted_outcomes`); "" elsewhere.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p: float | None
    least: float | None
    seen: float | None
    tasks: int
    traces: tuple[int, int]
    paired: bool
    differing: int | None
    refused: dict[str, int]
    asked: tuple[int, int]
    lacking: tuple[int, int] = (0, 0)
    ratio: SideRatio | None = None
    rows: int = 1
    needed: Needed | None = None
    moved: bool = False
    no_interval: str = ""
    alone: float | None = None
    same_as: str = ""
    untold: tuple[int, int] = (0, 0)
    owners: Owners = dataclasses.field(default_factory=Owners)
    least_rest: tuple[float, float] | None = None
    most_rest: tuple[float, float] | None = None
    kind: str = ""
    rose: int | None = None
    here: float | None = None
    judge: str = ""
    within: int = 0
    shared: int = 0
    weighted: str = ""

    def corrected(self, p: float, here: float, rows: int) -> SideDifference:
        """The same where it is one of so many tests; p and here are NaN where there is none."""
        if not math.isnan(here):
            self = dataclasses.replace(self, here=here)
        if math.isnan(p):
            return dataclasses.replace(self, p=None, rows=rows + 1)
        return dataclasses.replace(self, p=p, alone=self.p)._seen_by(rows)

    def raised(self, times: float, parts: int) -> SideDifference:
        """The same with its p-values so many times as large, as of one part of several."""
        p, here = (None if one is None else min(one * times, 1.0) for one in (self.p, self.here))
        return dataclasses.replace(self, p=p, here=here)._seen_by(self.rows * parts)

    def _seen_by(self, rows: int) -> SideDifference:
        seen, ratio = self.seen, self.ratio
        if self.needed is not None and self.p is not None:
            seen = None if seen is None else self.needed.seen(rows)
            if ratio is not None and ratio.seen is not None:
                ratio = dataclasses.replace(ratio, seen=math.exp(self.needed.seen(rows)))
        return dataclasses.replace(self, rows=rows, seen=seen, ratio=ratio)

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{self.metric} of {self.kind}" if self.kind else self.metric

    @property
    def is_other(self) -> bool:
        """Whether it stands under other metrics, behind all that is asked of a change."""
        return not self.kind and self.metric not in {*ASKED, *ASKED_NEXT}

    @property
    def stands_out(self) -> bool:
        """Whether it differs beyond chance, whatever the outcomes that are not known, and their judge."""
        return self._beyond(self.p) and not self.turned and not self.judge

    @property
    def worth_telling(self) -> bool:
        """Whether it differs beyond chance, and by more than the digits of a sentence round away."""
        return self.stands_out and not self.is_trivial

    @property
    def in_these(self) -> bool:
        """Whether it differs beyond chance in these tasks, by their runs, and not over tasks."""
        return (
            self.here is not None
            and self.here < LEVEL
            and not (self.stands_out or self.turned or self.judge or self.is_trivial)
        )

    @property
    def is_told(self) -> bool:
        """Whether it is told as a change, of these tasks at least."""
        return self.worth_telling or self.in_these

    @property
    def mark(self) -> str:
        """What stands beside its interval in a table."""
        if self.in_these:
            return "°"
        return "*" if self.worth_telling else "≈" if self.stands_out else "†" if self.moved else ""

    @property
    def is_trivial(self) -> bool:
        """Whether its numbers, or its ratio, are one number where they are written with three digits."""
        if self.ratio is not None:
            return rounds_away(self.ratio.value - 1, max(self.ratio.value, 1.0))
        return rounds_away(self.difference, max(abs(self.first), abs(self.second)))

    @property
    def is_alike(self) -> bool:
        """Whether its numbers, and both ends of what they may be, are one number where they have three digits."""
        whole = max(abs(self.first), abs(self.second))
        if self.ratio is not None:
            ends = [(end - 1, max(end, 1.0)) for end in (self.ratio.low, self.ratio.high)]
        else:
            ends = [(math.inf if end is None else end, whole) for end in (self.low, self.high)]
        return self.is_trivial and all(rounds_away(*end) for end in ends)

    def _beyond(self, p: float | None) -> bool:
        if self.ratio is not None:
            return beyond_chance(p, self.ratio.low, self.ratio.high, 1.0)
        return beyond_chance(p, self.low, self.high)

    @property
    def turned(self) -> bool:
        """Whether the difference would end or turn if the traces without an outcome had the least, or the greatest."""
        return self.difference != 0 and any(end * self.difference <= 0 for end in self._with_rest())

    def _with_rest(self) -> list[float]:
        """The differences with the traces that are not compared."""
        return [means[1] - means[0] for means in (self.least_rest, self.most_rest) if means is not None]

    def bound(self, heads: tuple[str, str]) -> str:
        """The means, or their difference, whatever the traces without an outcome had; "" where all have one."""
        if self.least_rest is None or self.most_rest is None:
            return ""
        as_least, as_most = ("failures", "successes") if self.metric == "success" else ("the least", "the greatest")
        judged = self.metric in FIRST
        counts = self.lacking if judged else self.untold
        lost = [f"{count} of {head}" for count, head in zip(counts, heads, strict=True) if count]
        if not judged:
            who = f"with the {' and '.join(lost)} whose task is not known"
            return f"{who}, {ASKED[self.metric]} are {first_to_second(*self.least_rest)}"
        who = f"with the missing outcomes ({', '.join(lost)}) as"
        if all(self.lacking):
            least, most = self.least_rest[1] - self.most_rest[0], self.most_rest[1] - self.least_rest[0]
            return f"{who} {as_least} or {as_most}, {self.metric} differs by {interval(least, most)}"
        ends = [f"{first_to_second(first, second)}" for first, second in (self.least_rest, self.most_rest)]
        return f"{who} {as_least}, {self.metric} is {ends[0]}; as {as_most}, {ends[1]}"

    @property
    def without(self) -> str:
        """What stands in place of an interval; "" where there is one."""
        if self.low is not None or self.ratio is not None:
            return ""
        if self.ways:
            return f"{self.ways}, not tested" if self.p is None and self.here is None else self.ways
        if self.p is None:
            return "no task differs" if self.differing == 0 else "–"
        return self.no_interval or "no spread"

    @property
    def ways(self) -> str:
        """In how many tasks it rose and fell, where too few differ for an interval; "" elsewhere."""
        if self.rose is None or not self.differing or self.differing >= LEAST_TASKS:
            return ""
        return f"rose {self.rose}, fell {self.differing - self.rose}"

    @property
    def is_of_some(self) -> bool:
        """Whether its ratio is of the tasks that differ, and others are alike."""
        return self.ratio is not None and self.differing is not None and self.differing < self.tasks

    @property
    def place(self) -> str:
        """Where its ratio is."""
        if self.paired:
            return "in the typical task"
        return f"by geometric means {'within kinds of task' if self.within else 'over tasks'}"

    def means(self) -> str:
        """Both means, whether they are within kinds of tasks, and by what they are weighted."""
        by = f", weighted by {self.weighted}" if self.weighted and not self.kind else ""
        return first_to_second(self.first, self.second) + " within kinds of task" * bool(self.within) + by

    @property
    def too_few(self) -> str:
        """That the tasks of both sides do not tell alone, in words; "" where there are none."""
        are = "is" if self.shared == 1 else "are"
        return f"{counted(self.shared, 'task')} of both {are} too few" if self.shared else ""

    @property
    def of_all(self) -> str:
        """Why its means are of more tasks than those of both sides; "" of those alone, or where there are none."""
        whole = " over all tasks" * (not self.within)
        return f"{whole}, as {self.too_few}" if self.shared and not self.kind else ""

    @property
    def cannot_tell(self) -> str:
        """That no outcome of so few tasks, or traces, would be a change; "" elsewhere."""
        if self.p is not None or self.here is not None or min(self.tasks, *self.traces) >= LEAST_TASKS:
            return ""
        are = "is" if self.tasks == 1 else "are"
        return f"{counted(self.tasks, 'task')}{' of both' * self.paired} {are} too few to tell"

    def told(self, said: Collection[str] = ()) -> str:
        """Both means, and whether they are of these tasks only; `place` once in a sentence that `said` it."""
        times = ""
        if self.ratio is not None:
            of_means = self.second / self.first
            # A few large tasks move means.
            but = "" if alike(of_means, min(max(of_means, self.ratio.low), self.ratio.high)) else "but "
            place = self.place
            if self.is_of_some:
                place = f"in the typical one of {self.differing} tasks that differ, of {self.tasks}"
            times = f" ({but}×{short(self.ratio.value)}{f' {place}' * (place not in said)})"
        return f"{first_to_second(self.first, self.second)}{times}" + f": {only_in(self.tasks)}" * self.in_these

    def part(self) -> str:
        """Of how many traces the means are, and why not of others; "" where that is all."""
        if self.traces == self.asked:
            return ""
        rest = self.elsewhere
        what = "no outcome" if self.metric in FIRST else "no number"
        what += " or no known task" if self.metric not in FIRST and any(self.untold) else ""
        why = [f"{self.lacking[0]} and {self.lacking[1]} have {what}"]
        why += [f"{rest[0]} and {rest[1]} are of tasks that have none on the other side"] if rest else []
        return f"{self.traces[0]} of {self.asked[0]} and {self.traces[1]} of {self.asked[1]} traces: {', '.join(why)}"

    @property
    def elsewhere(self) -> list[int]:
        """How many traces of each side with a number are of tasks that have none on the other side; empty for none."""
        rest = [all_ - some - lost for all_, some, lost in zip(self.asked, self.traces, self.lacking, strict=True)]
        return rest if any(rest) else []

    @property
    def few_lack(self) -> bool:
        """Whether all but few traces of each side have a number: the line on traces says so, and no other one."""
        lost = zip(self.lacking, self.asked, strict=True)
        return (
            self.metric not in FIRST
            and not self.elsewhere
            and not any(self.untold)
            and all(some <= FEW * of for some, of in lost)
        )

    @property
    def by_itself(self) -> bool:
        """Whether it would be beyond chance as the only test, as its interval says."""
        return not (self.stands_out or self.turned or self.judge) and self._beyond(self.alone)

    @property
    def rises(self) -> bool:
        """Whether the second side has more, by what is tested."""
        return self.difference > 0 if self.ratio is None else self.ratio.value > 1

    @property
    def unsure(self) -> str:
        """Why what is beyond chance may be no change of the runs; "" elsewhere."""
        missing = f"{'outcomes' if self.metric in FIRST else 'tasks'} are missing"
        reason = self.judge or missing * (self._beyond(self.p) and self.turned)
        return f", since {reason}" if reason else ""

    @property
    def would_be_seen(self) -> str | None:
        """The least change that would stand out, or how many tasks it takes, all of which rise or all of which fall; ""
        where these are too few, None where that is not known."""
        one_way = math.floor(math.log2(2 * self.rows / LEVEL)) + 1  # of so many, 2 / 2ⁿ is below 0.05 over all rows
        few = one_way > self.tasks or min(self.traces) < LEAST_TASKS
        if not self.paired:
            few = bool(self.difference) if self.p is None else (self.least or 0.0) * self.rows >= LEVEL
        if few and not self.stands_out:
            return ""
        if self.ratio is not None and self.ratio.seen is not None:
            return f"×{amount(self.ratio.seen)}"
        if self.seen is not None:
            return amount(self.seen)
        return f"{one_way} tasks one way" if self.paired else None

    def says(self, *, brief: bool = False) -> str:
        """Whether a change is shown, by the rule of `shown`, and `unsure`; or that numbers are the same.

        Args:
          brief: without what would have been seen.
        """
        if self.unsure:
            return f"{shown()}{self.unsure}"
        if self.stands_out and self.is_trivial:
            return "the same to three digits"
        nothing = self.p is None and not self.difference and not self.differing
        if nothing and not any((*self.untold, *self._with_rest())):
            return "the same"
        seen = None if brief else self.would_be_seen
        return shown(beyond=self.stands_out, only=self.tasks if self.in_these else 0, seen=seen)


def corrected_rows(
    rows: Sequence[SideDifference], facts: Sequence[Hashable] | None = None, *, by_least: bool = False
) -> list[SideDifference]:
    """Rows that are one family of tests, each corrected for the others by `holm`.

    `here` is doubled where a row may be found over tasks, too: of 6,000 worlds in which kinds of tasks cost the same,
    5.2 % had a mark of either test, and 3.9 % have one now; of those with as many runs in each task, 6.1 and 4.9 %.

    Args:
      rows: as they are alone.
      facts: what each is about, as of `holm`.
      by_least: whether only tests that can have so small a p count.

    Reference: Holm 1979; Tarone 1990.
    """
    facts = range(len(rows)) if facts is None else facts
    p, here = ([math.nan if one is None else one for one in of]
               for of in ([row.p for row in rows], [row.here for row in rows]))  # fmt: skip
    tests = len({fact for fact, one in zip(facts, p, strict=True) if not math.isnan(one)})
    of_tasks = holm(p, facts, [row.least or 1.0 for row in rows] if by_least else None)
    chances = 2 if tests else 1
    found = zip(rows, of_tasks, holm(here, facts), strict=True)
    return [row.corrected(over_tasks, min(chances * over_runs, 1.0), tests) for row, over_tasks, over_runs in found]
