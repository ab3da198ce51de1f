"""Two sides of a corpus, such as before and after a change: differences of metrics, paired within shared tasks."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credit.metrics.event_costs import Prices, event_costs, price_gaps, token_counts, whole_costs
from credit.metrics.side_agents import AgentDifference, agent_differences, side_weights
from credit.metrics.success_costs import SuccessCost, known_costs, success_costs, success_line
from credit.metrics.trace_metrics import OF_CREDIT, PARTS
from credit.reports.beyond_chance import beyond_chance
from credit.reports.durations import begins, date_text
from credit.reports.endings import ended_early
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.missing_lines import LACKING, lacking_traces
from credit.reports.owners import Owners, owned_events, owners
from credit.reports.taking_part import taking_part
from credit.reports.tasks import UNTOLD, mean_over_tasks, task_ids
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import has_statuses
from credit.reports.trace_numbers import STATED_COST, TeamFacts, TraceMetric, is_amount, numbered, of_untold_tasks
from credit.reports.uncounted_tool_calls import OF_TOOL_CALLS, uncounted_tool_calls
from credit.reports.unread_outcomes import (
    NO_SIDE,
    UnreadOutcomes,
    UnscoredEnds,
    unread_line,
    unread_outcomes,
    unscored_ends,
    unscored_line,
)
from graphs.dealing import Dealt, dealt, flipped
from graphs.errors import CreditError, Problem
from graphs.reading.source import Lost, Source
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.joins import REFUSED_ROW
from graphs.reading.tables.rows import read_rows
from graphs.task_means import (
    LEAST_OF_ANY,
    LEAST_TASKS,
    LEVEL,
    ROUNDING,
    as_tested,
    difference_interval,
    fact_of,
    holm,
    mean_interval,
    shift_interval,
    signed_ranks,
    task_mean,
)
from graphs.text import WITHOUT_ROW, apart, counted, excerpt, near_names, percent, printable
from graphs.traces.batch import Traces
from graphs.traces.event_models import agent_models, event_models, trace_models

__all__ = [
    "ASKED",
    "COSTS",
    "STARRED_SIDES",
    "SideBound",
    "SideComparison",
    "SideDifference",
    "SideRatio",
    "Sides",
    "Uncompared",
    "bounds_of_sides",
    "compare_sides",
    "costs_of_traces",
    "dated_sides",
    "read_sides",
    "same_in_all",
    "side_differences",
    "sides_of_folders",
    "stated_sides",
    "uncompared",
    "with_costs",
]

POWER = 0.8
UNCOUNTED = "an action has no count of tokens"
SILENT = "a model call is in no event"
NO_ARGUMENTS = "the log has no arguments of calls"
UNPRICED = "no row of the table prices "
UNSTATED_COST = "the log does not state the money of all calls"
UNPAID = (UNCOUNTED, OF_TOOL_CALLS, SILENT, UNPRICED, UNSTATED_COST)
"""How the reasons begin why a trace has no cost: a price or a count is missing, and not a part of the trace."""
IDLE = "no model call of the trace succeeded"
"""Why a run that was refused from its first call on is in no comparison of costs: its 0 has no ratio to others."""
LIKE = 0.8
"""The part of one side's traces with a cost over that of the other, below which costs are not compared. Calls that fail
without a count are a few of each side; a price that is missing takes most of one."""
OF_UNSTATED = "a model of it"
"""What it is that none prices, where the log states no name."""
EARLY = "the trace ends early, as others do that lack lines"
"""Why one is left out of a comparison of whole traces."""
FIRST = ("success", "outcome")
"""What a change is judged by, tested on its own."""
STARRED_SIDES = "three parts, each alone: success and outcome, what follows these, and other metrics"
"""Families of tests. What a format knows beside what is asked of a change takes no star from that."""
ASKED = {
    "success": "success",
    "outcome": "outcome",
    "money": "money",
    "logged_money": "money that the log states",
    "tokens": "tokens generated",
    "input_tokens": "tokens read",
    "errors": "errors",
    "ended_early": "early ends",
    "wall_clock": "seconds of wall clock",
}
"""The metrics that a sentence on a change is about, in its words and its order; a table has the others."""
ASKED_NEXT = ("unmended_errors", "tool_calls", "loops")
"""Those whose numbers are told, too, and which have their rows next; all others come under other metrics."""
SUMMED = ("errors", "tokens", "input_tokens", "money", "tool_calls")
"""Sums over events, of which a part may be known."""
BY_AGENT = (("money", "logged_money"), ("tokens",))
"""Costs whose difference is told by agent, of each kind the first that is known of both sides and of their agents: a
model that was swapped is found by money, and an agent that says more by tokens, which may be cheap."""
MIXED = 0.2
"""Difference between the parts that a model has of two sides, from which it is always told."""
MEASURED = frozenset({"tokens", "input_tokens", "money", "tool_calls", "wall_clock_s"})
"""Costs stated of traces whose metric has another name."""
STATED = ("system", "model")
AT_ONCE = 0.25
"""Neither side follows the other if each begins later in more than this part of the pairs of traces."""
BESIDE = ("model", "system", "format")
"""What is settled before a run, so that traces may be compared within it."""
MODEL_OF_AGENT = "the model of an agent"
EXPECTED = "expected two folders or files A,B, a table, `system`, `model` or `before=DATE`"
APART = "expected two folders or files that are apart, of logs"
MANY_MORE = 1.5
"""Times the traces a task from which a side's amounts have geometric means over the traces of each task."""
MOST_WORDS = 25
"""Words of the answer to what changed."""
CAVEATS = 3
"""Caveats beside that answer; all of them stand with the sides."""
LEAST_SHARE = 0.05
"""Share of a difference from which an agent's part of it is told."""
MOST_TOLD = 5
"""Models, or agents, that a sentence on a change names."""
MOST_HIDDEN = 2
"""Agents that are named as those of one side alone."""
MOST_NAMES = 20
"""Models, or agents, that are looked at, those of most traces."""
MOST_HINTED = 3
"""Rows of unknown traces for which near names are sought."""


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
      p: of the test that the sides are alike; None where too few have a number or differ. What a change is judged by,
        `FIRST`, is tested on its own, and by Holm's method among themselves what else is asked of one, and all that
        `is_other`.
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
      rows: how many tests `p` is corrected for, its own among them.
      needed: what `seen` is made of; None without an interval.
      moved: whether an end of its interval was moved to where nothing differs, which the test does not reject
        (`as_tested`).
      has_zeros: whether it has no interval since a task that is compared has 0 of an amount on one side.
      alone: p before Holm's method; None likewise.
      same_as: the first metric whose numbers are these on a straight line (`fact_of`), so that both are one test;
        "" without.
      untold: how many traces of each side are of no known task (`untold_tasks`); they are in `asked` and `refused`.
      owners: of errors and loops that stand out, whose the difference is, in these means.
      least_rest, most_rest: of `FIRST`, both means if all traces without an outcome had the least or the greatest of
        the others, of success 0 or 1; over all tasks with traces of both sides, where tasks are paired, and `untold`
        traces. Of early ends, both means with these. None where none lack one.
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

    def corrected(self, p: float, rows: int) -> SideDifference:
        """The same where it is one of so many tests; p is NaN where there is none."""
        if math.isnan(p):
            return dataclasses.replace(self, p=None)
        seen, ratio = self.seen, self.ratio
        if self.needed is not None:
            seen = None if seen is None else self.needed.seen(rows)
            if ratio is not None and ratio.seen is not None:
                ratio = dataclasses.replace(ratio, seen=math.exp(self.needed.seen(rows)))
        return dataclasses.replace(self, p=p, alone=self.p, rows=rows, seen=seen, ratio=ratio)

    moved: bool = False
    has_zeros: bool = False
    alone: float | None = None
    same_as: str = ""
    untold: tuple[int, int] = (0, 0)
    owners: Owners = dataclasses.field(default_factory=Owners)
    least_rest: tuple[float, float] | None = None
    most_rest: tuple[float, float] | None = None

    @property
    def is_other(self) -> bool:
        """Whether it stands under other metrics, behind all that is asked of a change."""
        return self.metric not in {*ASKED, *ASKED_NEXT}

    @property
    def stands_out(self) -> bool:
        """Whether it differs beyond chance, whatever the outcomes that are not known."""
        return self._beyond(self.p) and not self.turned

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
        as_least, as_most = (
            ("as failures", "as successes") if self.metric == "success" else ("at the least", "at the greatest")
        )
        of = "" if self.metric == "success" else " of the others"
        judged = self.metric in FIRST
        counts = self.lacking if judged else self.untold
        lost = [f"{count} of {head}" for count, head in zip(counts, heads, strict=True) if count]
        who = f"with the {' and '.join(lost)} {'that have no outcome' if judged else 'whose task is not known'}"
        if not judged:
            return f"{who}, {ASKED[self.metric]} are {_to(*self.least_rest)}"
        if all(self.lacking):
            least, most = self.least_rest[1] - self.most_rest[0], self.most_rest[1] - self.least_rest[0]
            return f"{who} {as_least} or {as_most}{of}, {self.metric} differs by {least:+z.3g} to {most:+z.3g}"
        ends = [f"{_to(first, second)}" for first, second in (self.least_rest, self.most_rest)]
        return f"{who} {as_least}{of}, {self.metric} is {ends[0]}; {as_most}, {ends[1]}"

    @property
    def without(self) -> str:
        """What stands in place of an interval; "" where there is one."""
        if self.low is not None or self.ratio is not None:
            return ""
        if self.p is None:
            return "–"
        few = self.differing is not None and self.differing < LEAST_TASKS
        return "few tasks" if few else "has zeros" if self.has_zeros else "no spread"

    def told(self) -> str:
        """Both means, and why they say less than they seem to."""
        why = self.why()
        times = ""
        if self.ratio is not None:
            of_means = self.second / self.first
            # A few large tasks move means.
            but = "" if _alike(of_means, min(max(of_means, self.ratio.low), self.ratio.high)) else "but "
            place = "in the typical task" if self.paired else "by geometric means over tasks"
            times = f" ({but}×{_short(self.ratio.value)} {place})"
        return f"{_to(self.first, self.second)}{times}" + (f": {why}" if why else "")

    def span(self) -> str:
        """What the difference is whatever the traces without an outcome had; "" where all have one."""
        if self.least_rest is None or self.most_rest is None:
            return ""
        least, most = self.least_rest[1] - self.most_rest[0], self.most_rest[1] - self.least_rest[0]
        return f"; with all outcomes, it differs by {_signed(least)} to {_signed(most)}"

    def part(self) -> str:
        """Of how many traces the means are, and why not of others; "" where that is all."""
        if self.traces == self.asked:
            return ""
        rest = [all_ - some - lost for all_, some, lost in zip(self.asked, self.traces, self.lacking, strict=True)]
        what = "no outcome" if self.metric in FIRST else "no number"
        what += " or no known task" if self.metric not in FIRST and any(self.untold) else ""
        why = [f"{self.lacking[0]} and {self.lacking[1]} have {what}"]
        why += [f"{rest[0]} and {rest[1]} are of tasks that have none on the other side"] if any(rest) else []
        return f"{self.traces[0]} of {self.asked[0]} and {self.traces[1]} of {self.asked[1]} traces: {', '.join(why)}"

    @property
    def few(self) -> bool:
        """Whether so few tasks differ that no numbers of theirs would stand out among so many rows."""
        return self.p is None or (not self.stands_out and (self.least or 0.0) * self.rows >= LEVEL)

    @property
    def rises(self) -> bool:
        """Whether the second side has more, by what is tested."""
        return self.difference > 0 if self.ratio is None else self.ratio.value > 1

    def in_short(self) -> str:
        """`why` in a few words."""
        if self.stands_out:
            return "beyond chance"
        if self.p is not None and not self.few:
            known = self._beyond(self.p) and self.turned
            return f"not sure, since {self._missing} are missing" if known else "within chance"
        return why if (why := self.why()).startswith("the same") else "too few tasks to tell"

    @property
    def _missing(self) -> str:
        return "outcomes" if self.metric in FIRST else "tasks"

    def why(self) -> str:
        """Why it is no change; "" where it differs beyond chance."""
        if self.stands_out:
            return ""
        if self.p is None and not self.difference and not self.differing:
            return (
                f"the same as far as {self._missing} are known"
                if any((*self.untold, *self._with_rest()))
                else "the same"
            )
        if self.few:
            return f"too few tasks {'differ ' if self.paired else ''}to tell"
        if self._beyond(self.p) and self.turned:
            return f"beyond chance only as far as {self._missing} are known"
        if self.rows > 1 and self._beyond(self.alone):
            return f"not beyond chance after correction for {self.rows} rows"
        return "within chance"


@dataclasses.dataclass(frozen=True)
class Uncompared:
    """A metric without a difference.

    Attributes:
      metric: its name.
      sides: those where no trace has a number, 0 and 1.
      reason: why most traces of these have none.
    """

    metric: str
    sides: tuple[int, ...]
    reason: str


@dataclasses.dataclass(frozen=True)
class SideBound:
    """A cost that some traces do not have as a whole: what is known of it, over all traces.

    Attributes:
      metric: its name.
      first, second: means over tasks, of means over their traces, of the known part.
      whole: of each side, whether that is all of it.
      tasks: of both sides.
    """

    metric: str
    first: float
    second: float
    whole: tuple[bool, bool]
    tasks: int


@dataclasses.dataclass(frozen=True)
class Sides:
    """Two sides of traces.

    Attributes:
      names: of the sides.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      heads: names for the head of a table: folders without their paths.
      unread: sides of traces that were refused, by their ids, where their files or rows tell.
      by_name: whether their order is that of their names, since no dates tell which came first.
      at_once: whether neither followed the other, so that their order is that of their first traces alone.
      by_system: whether they are systems that the log states.
    """

    names: tuple[str, str]
    side: np.ndarray
    heads: tuple[str, str]
    unread: Mapping[str, int] = dataclasses.field(default_factory=dict)
    by_name: bool = False
    at_once: bool = False
    by_system: bool = False

    @classmethod
    def joined(cls, text: str | None, traces: Traces) -> tuple[Traces, Sides | None]:
        """The sides that a person names, or None for none.

        Two folders or files with a comma between them; `system` or `model` for what the log states, where it states
        two, and `system=A,B` of several; `before=DATE` for when traces begin; else the path of a table. Sides that are
        not named in order come in that of their first dates, without these in that of names or of the table's rows.

        Returns:
          The traces, whose problems name rows of traces that were not read, and their sides.

        Raises:
          CreditError: as `read_sides`, `sides_of_folders`, `stated_sides` and `dated_sides` do.
        """
        if text is None:
            return traces, None
        word, _, given = text.partition("=")
        unread: dict[str, int] = {}
        if Path(text).exists() and not Path(text).is_dir():
            names, side, missed, unread = read_sides(text, traces)
            traces = dataclasses.replace(traces, problems=traces.problems + missed)
        elif word == "before":
            names, side = dated_sides(given, traces)
        elif word in STATED:
            names, side = stated_sides(word, [name.strip() for name in given.split(",") if given], traces)
        else:
            names, side = sides_of_folders(text.split(","), traces)
            last = Path(names[0]).resolve().name, Path(names[1]).resolve().name
            # A table that whole paths fit into has rows in pieces.
            refused = [problem for problem in traces.problems if problem.trace and problem.is_failure]
            inside = _sides_of_files([Path(name).resolve() for name in names], [p.file for p in refused])
            unread = {p.trace: inside[p.file] for p in reversed(refused) if inside[p.file] >= 0}
            return traces, cls(names, side, last if last[0] != last[1] else names, unread)
        first, second = (np.fmin.reduce(begins(traces)[side == one], initial=np.inf) for one in (0, 1))
        if not given and second < first < np.inf:
            names, side = (names[1], names[0]), np.where(side < 0, side, 1 - side)
            unread = {trace: 1 - one for trace, one in unread.items()}
        undated = not given and word in STATED and max(first, second) == np.inf
        at_once = not given and word in STATED and abs(_later(begins(traces), side) - 0.5) < AT_ONCE
        return traces, cls(names, side, names, unread, undated, at_once and not undated, word == "system")


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
      paid: what a success cost on each side, in the tasks with outcomes on both where there are any.
      paid_tasks: how many these are; 0 where `paid` is of all traces.
      agents: what each adds to the difference of a row of `BY_AGENT`, by its name, where several cost something, or
        one with other models.
      apart_in: what `apart` is about, each once, with the name that the sides differ most in: one of the second side
        before one of the first.
      alone: where that is the format, too, the agents that act on the first side alone, and on the second, in all of a
        format's traces or in none, so that the format may hide them.
      judged: "success" or "outcome"; "" without outcomes.
      tasks: names of tasks with outcomes on both sides, by what its mean did from the first side to the second.
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
    agents: Mapping[str, tuple[AgentDifference, ...]] = dataclasses.field(default_factory=dict)
    apart_in: Mapping[str, str] = dataclasses.field(default_factory=dict)
    alone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    judged: str = ""
    tasks: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        names = self.sides.names
        lacking = [dataclasses.asdict(row) | {"sides": [names[one] for one in row.sides]} for row in self.lost]
        words = ("stands_out", "without", "is_other")
        rows = [dataclasses.asdict(row) | {word: getattr(row, word) for word in words} for row in self.rows]
        bounds = [dataclasses.asdict(row) for row in self.bounds]
        told: dict[str, Any] = {"changed": self.changed(), "numbers": self.numbers(), "but": self.but()}
        told |= {name: [*map(dataclasses.asdict, getattr(self, name))] for name in ("unread", "unscored")}
        told |= {"caveats": self.caveats(), "tasks": self.tasks, "of_tasks": self.of_tasks()}
        told |= {"paid": self.success_cost(), "lines": self.lines()}
        told |= {"by_owner": self.by_owner(), "by_agent": self.by_agent(), "origin": self.origin()}
        told["agents"] = {name: [*map(dataclasses.asdict, of)] for name, of in self.agents.items()}
        return {"sides": names, "differences": rows, "uncompared": lacking, "bounds": bounds, "same": self.same, **told}

    def _asked(self) -> list[SideDifference]:
        return sorted((row for row in self.rows if row.metric in ASKED), key=lambda row: [*ASKED].index(row.metric))

    def _head(self) -> str:
        return f"What changed from {' to '.join(self.sides.heads)}: "

    def changed(self) -> str:
        """The answer: success, then what else changed beyond chance: one metric each way, more up to `MOST_WORDS`."""
        asked = self._asked()
        told = [f"{row.metric} {_to(row.first, row.second)}, {row.in_short()}"
                for row in asked if row.metric in FIRST]  # fmt: skip
        if not told:
            lost = [_place(one.sides, self.sides.heads) for one in self.lost if one.metric == "success"]
            told = [f"success is not known on {place}, where no trace has an outcome" for place in lost]
        ways: dict[str, list[str]] = {}  # sentences on each way, the fullest first
        for way, up in (("up", True), ("down", False)):
            rose = [row for row in asked if row.stands_out and row.metric not in FIRST and row.rises == up]
            rose.sort(key=lambda row: not row.owners.named)  # where to look, before what it costs
            plain = [ASKED[row.metric] for row in rose]
            whose = [" ".join([ASKED[row.metric], " and ".join(row.owners.words())]).strip() for row in rose]
            for names, shown in itertools.product((whose, plain), range(len(rose), 0, -1)):
                ways.setdefault(way, []).append(f"{way}: {', '.join(names[:shown] + ['…'] * (shown < len(names)))}")
        said = {way: every[-1] for way, every in ways.items()}
        for way, every in ways.items():
            for one in every:
                if len(f"{self._head()}{'; '.join([*told, *(said | {way: one}).values()])}".split()) <= MOST_WORDS:
                    said[way] = one
                    break
        told += said.values()
        return "; ".join(told) or ("nothing stands out" if self.rows else "nothing that both sides have a number of")

    def numbers(self) -> str:
        """What changed beside success, in numbers, and what `ASKED` names that did not; "" for nothing."""
        told: list[str] = []
        quiet: dict[str, list[str]] = {}
        parts: dict[str, list[str]] = {}
        others = [row for row in self.rows if row.stands_out and row.is_other]
        next_ = [row for row in self.rows if row.stands_out and row.metric in ASKED_NEXT]
        of_others: list[str] = []
        said_before = self._partial()  # by `but`
        for row in [*self._asked(), *next_, *others[:MOST_TOLD]]:
            if row.metric in FIRST:
                continue
            name = ASKED.get(row.metric, row.metric.replace("_", " "))
            if row.stands_out:
                (of_others if row.is_other else told).append(f"{name} {row.told()}")
                if row not in said_before:
                    parts.setdefault(row.part(), []).append(name)
            else:
                quiet.setdefault(row.why(), []).append(name)
        told += [f"{', '.join(unchanged)}: {why}" for why, unchanged in quiet.items()]
        told += [f"other metrics: {', '.join(of_others)}"] if of_others else []
        rest = len(others) - MOST_TOLD
        told += [f"{counted(rest, 'other metric')} of the table changed"] if rest > 0 else []
        for part, names in parts.items():
            of = f" of {', '.join(names)}" if len(parts) > 1 else ""
            told += [f"numbers{of} in {part}"] if part else []
        return "; ".join(told)

    def success_cost(self) -> str:
        """What a success cost on each side; "" where no money is known."""
        cost = success_line(self.paid, self.paid_tasks)
        return cost and f"{cost}; not tested"

    def by_agent(self, *, certain: bool = False) -> str:
        """Which agents differences of money and of tokens come from, or those beyond chance alone; "" without any."""
        rows = [row for row in self.rows if row.metric in self.agents and (row.stands_out or not certain)]
        told = [self._by_agent(row, [one for one in self.agents[row.metric] if one.difference]) for row in rows]
        return "; ".join([*told, "agents not tested"]) if any(told := [*filter(None, told)]) else ""

    def _by_agent(self, row: SideDifference, parts: list[AgentDifference]) -> str:
        """Which agents one difference comes from."""
        if not row.difference or not parts:
            return ""
        large = sum(abs(one.difference) >= LEAST_SHARE * abs(row.difference) for one in parts)
        named = max(large, 1) if large <= MOST_TOLD or large == len(parts) == MOST_TOLD + 1 else MOST_TOLD
        chance = "" if row.stands_out else f", {row.in_short()}"
        head = f"{ASKED[row.metric]} of a trace {_signed(row.difference)}{chance}, by agent: "
        split: set[int] = set()
        for place in (place for place in range(named) if _why(parts[place])):
            for fewer in range(named, place, -1):  # what another model does, before the least agents
                if len(f"{head}{self._named(parts, fewer, {*split, place})}".split()) <= MOST_WORDS:
                    named, split = fewer, {*split, place}
                    break
        return head + self._named(parts, named, split)

    def _named(self, parts: list[AgentDifference], named: int, split: set[int]) -> str:
        """So many agents by name, some of them with why, and the sum of others."""
        told = [f"{printable(one.agent, 60)} {_signed(one.difference)}" for one in parts]
        of = [f"{told[i]} ({_why(parts[i])})" if i in split else told[i] for i in range(named)]
        alone = [i for i in range(named, len(parts)) if any(parts[i].agent in agents for agents in self.alone)]
        of += [told[i] for i in alone[:MOST_HIDDEN]]
        if rest := [one for i, one in enumerate(parts) if i >= named and i not in alone[:MOST_HIDDEN]]:
            together = " together" if len(rest) > 1 else ""
            of.append(f"{counted(len(rest), 'other')}{together} {_signed(sum(one.difference for one in rest))}")
        return ", ".join(of)

    def by_owner(self) -> str:
        """Whose errors and loops changed beyond chance, with the means of the owner; "" where nobody is to be named."""
        told: dict[str, str] = {}
        more: dict[str, list[str]] = {}
        for row in self.rows:
            whose, name = row.owners.told(), ASKED.get(row.metric, row.metric.replace("_", " "))
            if whose in told:
                more.setdefault(whose, []).append(name)
            elif whose:
                told[whose] = f"{name} of a trace {_to(row.first, row.second)}, {row.owners.told(_to)}"
        return "; ".join(f"{said}{f', as are {names}' if (names := ', '.join(more.get(whose, []))) else ''}"
                         for whose, said in told.items())  # fmt: skip

    def origin(self) -> str:
        """`by_owner`, and `by_agent` of a cost that changed beyond chance, for a lead, and why that is not of money; ""
        without any."""
        name, why = self._uncosted()
        return "; ".join(
            [
                *filter(None, [self.by_owner()]),
                *([f"{name.replace('_', ' ')} is not told, as {why}"] if name else []),
                *filter(None, [self.by_agent(certain=True)]),
            ]
        )

    def but(self) -> str:
        """What else may be behind `changed`, each once for both sides, and what of it is not known; "" for nothing."""
        asked = self._asked()
        of_part: dict[str, list[str]] = {}
        for row in self._partial():
            of_part.setdefault(row.part(), []).append(ASKED[row.metric])
        said = [f"{', '.join([*names[:-2], ' and '.join(names[-2:])])} in {part}" for part, names in of_part.items()]
        said += [row.bound(self.sides.heads) for row in asked]
        said += [unread_line(self.unread), unscored_line(self.unscored), *self.apart, self._alone()]
        unpaired = self._unpaired()
        of = "" if len(unpaired) == len(asked) else f" in {', '.join(unpaired)}"
        said += [f"no task is on both sides{of}: those of one may be harder"] if unpaired else []
        said += [self._whole()]
        _, why = self._uncosted()
        return "; ".join(filter(None, [*said, why and f"cost is not compared, because {why}"]))

    def _partial(self) -> list[SideDifference]:
        """The rows that `changed` or `by_agent` may name whose numbers are of a part of the traces, but those of
        `_whole`."""
        named = (*FIRST, *self.agents)
        part = (row for row in self._asked() if row.part() and EARLY not in row.refused)
        return [row for row in part if row.stands_out or row.metric in named]

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
        said = ["No task is on both sides: those of one may be harder."] if self._unpaired() else []
        judged = next((row for row in self._asked() if row.metric in FIRST), None)
        if judged is not None and judged.part():
            said.append(f"{judged.metric.capitalize()} is of {judged.part().partition(':')[0]}{judged.span()}.")
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
        said += [f"The sides differ in {' and '.join(parts)}, too{alone}."] * bool(parts)
        said += [f"{whole[0].upper()}{whole[1:]}."] if (whole := self._whole()) else []
        unread = sum(row.traces for row in self.unread)
        said += [f"{counted(unread, 'trace')} with an outcome {'were' if unread > 1 else 'was'} not read."] * bool(
            unread
        )
        early = " and ".join(row.side for row in self.unscored)
        said += [f"Traces of {early} without an outcome end early more often than others."] if early else []
        return said[:CAVEATS]

    def of_tasks(self) -> str:
        """In how many tasks with outcomes on both sides the second did better, and worse; "" without any."""
        if not any(self.tasks.values()):
            return ""
        rose, fell, same = (len(self.tasks[word]) for word in ("rose", "fell", "same"))
        return (
            f"{self.judged} rose in {rose} of {counted(rose + fell + same, 'task')} with outcomes on both sides, fell "
            f"in {fell} and was the same in {same}; single tasks are not tested"
        )

    def lines(self) -> list[str]:
        """What changed, what was compared, and what too few tasks tell apart, in sentences."""
        without = int((self.sides.side < 0).sum())
        lines = [f"{counted(without, 'trace')} without a side"] if without else []
        were = "were" if self.unplaced > 1 else "was"
        lines += [f"{counted(self.unplaced, 'trace')} of {NO_SIDE} {were} not read"] if self.unplaced else []
        lines.append(f"{self._head()}{self.changed()}.")
        lines += [f"{cost[0].upper()}{cost[1:]}."] if (cost := self.success_cost()) else []
        lines += [f"But {but}."] if (but := self.but()) else []
        lines += [f"{tasks[0].upper()}{tasks[1:]}."] if (tasks := self.of_tasks()) else []
        lines += [f"In numbers, of a trace: {numbers}."] if (numbers := self.numbers()) else []
        for origin in (self.by_owner(), self.by_agent()):
            lines += [f"{origin[0].upper()}{origin[1:]}."] if origin else []
        each = "Costs of each agent on each side: credit costs --by system,agent"
        lines += [each] if self.agents and self.sides.by_system else []
        lines += [self._compared_traces()] if self.rows else []
        few: dict[str, list[str]] = {}
        for row in self.rows:
            if row.differing and row.few:
                few.setdefault(f"{row.differing} of {counted(row.tasks, 'task')}", []).append(row.metric)
        lines += [f"the same number in all traces: {', '.join(self.same)}"] if self.same else []
        alike: dict[str, list[str]] = {}
        for row in self.rows:
            if row.same_as and row.p is not None:
                alike.setdefault(row.same_as, [row.same_as]).append(row.metric)
        lines += [f"one test, since their numbers rise as one: {'; '.join(map(', '.join, alike.values()))}"] * bool(
            alike
        )
        if not few:
            return lines
        rows = max((row.rows for row in self.rows), default=1)
        others = f", and {_least_tasks(rows)} in one of {rows} rows" if rows > 1 else ""
        least = f"with one trace a side, {_least_tasks(1)} must differ{others}"
        return [*lines, f"too few tasks differ to tell: {_by_reason(few)}; {least}"]

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
        selected = f"; a selection of them, which may differ in more than its side: {_by_reason(fewer)}"
        return f"traces: {line}" + (selected if fewer else "")

    def without_number(self) -> list[str]:
        """Lines on metrics with bounds, and on those without a row, with their first reasons."""
        bounded = {bound.metric for bound in self.bounds}
        partly: dict[str, list[str]] = {}
        places: dict[str, dict[str, list[str]]] = {}
        for one in sorted(self.lost, key=lambda one: -len(one.sides)):
            if one.metric in bounded:
                partly.setdefault(one.reason, []).append(one.metric)
                continue
            places.setdefault(_place(one.sides, self.sides.names), {}).setdefault(one.reason, []).append(one.metric)
        none = [f"on {place}: {_by_reason(reasons)}" for place, reasons in places.items()]
        lines = [f"known in part: {_by_reason(partly)}"] if partly else []
        return lines + ([f"no number {'; '.join(none)}"] if none else [])


def compare_sides(
    traces: Traces,
    sides: Sides,
    measured: dict[str, TraceMetric],
    prices: Prices | None = None,
    success_at: float | None = None,
) -> SideComparison:
    """Compare two sides in success, costs and other metrics, but those `OF_CREDIT`: 14 of 20 sides of a fair coin had a
    star in them, of runs that were dealt within their tasks.

    Args:
      traces: what was read.
      sides: of these traces.
      measured: what `with_costs` gives for them.
      prices: of models and tools.
      success_at: the least outcome of a success, as of `unread_outcomes`.
    """
    measured = {name: metric for name, metric in measured.items() if name not in OF_CREDIT}
    whole = _of_like_parts(_of_whole_runs(traces, measured, sides.side >= 0), sides.side)
    untold = _untold(traces, measured, sides.side)
    rows = side_differences(traces, whole, sides.side)
    lost = uncompared({name: _told(metric, untold) for name, metric in whole.items()}, sides.side)
    bounds = bounds_of_sides(traces, measured, sides.side, prices)
    judged = next((row.metric for row in rows if row.metric in FIRST), None)
    apart, apart_in = _apart(traces, sides, None if judged is None else (judged, measured[judged]))
    compared = {row.metric for row in rows}
    same = tuple(name for name in same_in_all(measured, sides.side >= 0) if name in compared)
    asked = {name: place for place, name in enumerate((*ASKED, *ASKED_NEXT))}
    rows = sorted((row for row in rows if row.metric not in same), key=lambda row: asked.get(row.metric, len(asked)))
    unread = tuple(unread_outcomes(traces, success_at, sides.unread, sides.heads))
    unscored = tuple(unscored_ends(traces, success_at, sides.side, sides.heads))
    task, known, calls = task_ids(traces), np.isfinite(measured["success"].value), ToolCalls(traces)
    events = owned_events(calls)
    for i, row in enumerate(rows):
        if row.stands_out and row.metric in events:
            weights = side_weights(_told(whole[row.metric], untold).value, sides.side, task)
            rows[i] = dataclasses.replace(row, owners=owners(traces, calls, events[row.metric], weights))
    shared = np.intersect1d(*(task[known & (sides.side == one)] for one in (0, 1)))
    # Tasks of one side may be harder, and dearer.
    compared_of = np.where(~known | np.isin(task, shared), sides.side, -1) if len(shared) else sides.side
    paid = tuple(success_costs(traces, measured, sides.heads, compared_of, prices))
    refused = {problem.trace for problem in traces.problems if problem.is_failure and not problem.about}
    told = {problem.trace for problem in traces.problems if problem.kind == REFUSED_ROW}
    unplaced = len(refused - {"", *traces.traces["trace"].to_pylist(), *sides.unread, *told})
    found = SideComparison(sides, rows, bounds, lost, task, apart, same, unread, unscored, unplaced, paid, len(shared))
    agents = _agents(traces, sides, rows, whole, prices)
    of_tasks = {} if judged is None else _tasks(traces, measured[judged].value, sides.side)
    found = dataclasses.replace(found, apart_in=apart_in, judged=judged or "", tasks=of_tasks)
    alone = _alone(traces, sides.side) if "format" in apart_in else ((), ())
    return dataclasses.replace(found, agents=agents, alone=alone)


def _alone(traces: Traces, side: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of each side the agents that act on it alone, where `taking_part` tells nothing of them.

    Those of traces that lack lines do not count: what lacks the span of an agent may have its actions under another
    name.
    """
    names, acts, tells = taking_part(traces)
    whole, found = ~lacking_traces(traces), []
    for one in (0, 1):
        here, there = acts[:, (side == one) & whole].any(axis=1), acts[:, side == 1 - one].any(axis=1)
        found.append(tuple(names[agent] for agent in np.flatnonzero(here & ~there & ~tells.any(axis=1))))
    return found[0], found[1]


def _of_whole_runs(traces: Traces, measured: dict[str, TraceMetric], kept: np.ndarray) -> dict[str, TraceMetric]:
    """The same metrics, without traces that end early where some of those compared have no number and lack lines.

    A run that is killed lacks lines in one format and keeps a partial sum in another one. So sums of killed runs would
    be on one side alone. How runs end, and what they earn, is told of all.
    """
    lacking, found = lacking_traces(traces) & kept, dict(measured)
    if not lacking.any():
        return found
    early, _ = ended_early(traces)
    for name in measured.keys() - {*FIRST, "ended_early"}:
        value, reasons = measured[name]
        known = np.isfinite(value)
        if not known[lacking].all():
            out = early & known
            why = [EARLY if left else reason for left, reason in zip(out, reasons, strict=True)]
            found[name] = TraceMetric(np.where(out, np.nan, value), why)
    return found


def _of_like_parts(measured: dict[str, TraceMetric], side: np.ndarray) -> dict[str, TraceMetric]:
    """The same metrics, without costs on the side where fewer traces have one, below `LIKE`, for want of a price or a
    count: a table that lacks the price of a model leaves the runs that were killed before its first call.
    """
    found = dict(measured)
    for name, metric in measured.items():
        unpaid = np.array([reason.startswith(UNPAID) for reason in metric.reasons]) & ~np.isfinite(metric.value)
        paid = [1 - float(unpaid[side == one].mean()) for one in (0, 1)]
        if min(paid) < LIKE * max(paid):
            fewer = side == int(paid[1] < paid[0])
            (reason, _), *_ = collections.Counter(np.array(metric.reasons)[fewer & unpaid].tolist()).most_common(1)
            out = fewer & np.isfinite(metric.value)
            why = [reason if left else own for left, own in zip(out, metric.reasons, strict=True)]
            found[name] = TraceMetric(np.where(out, np.nan, metric.value), why)
    return found


def _tasks(traces: Traces, value: np.ndarray, side: np.ndarray) -> dict[str, list[str]]:
    """The tasks with a number on both sides, by whether their mean rose from the first to the second."""
    task, names = task_ids(traces), {}
    for number, name in zip(task.tolist(), traces.traces["task"].to_pylist(), strict=True):
        names[number] = name
    (tasks, first), (others, second) = (
        _by_task(value, np.flatnonzero(np.isfinite(value) & (side == one)), task) for one in (0, 1)
    )
    shared, i, j = np.intersect1d(tasks, others, return_indices=True)
    found: dict[str, list[str]] = {"rose": [], "fell": [], "same": []}
    for number, before, after in zip(shared.tolist(), first[i], second[j], strict=True):
        word = "same" if _alike(before, after) else "rose" if after > before else "fell"
        found[word].append(names[number])
    return found


def _agents(
    traces: Traces,
    sides: Sides,
    rows: list[SideDifference],
    measured: dict[str, TraceMetric],
    prices: Prices | None,
) -> dict[str, tuple[AgentDifference, ...]]:
    """What agents add to the differences of `BY_AGENT` that are known, by their names."""
    compared, agents = {row.metric for row in rows}, {}
    for kind in BY_AGENT:
        for name in (name for name in kind if name in compared):
            costs = event_costs(traces, prices)
            cost = token_counts(traces, "money") if name == "logged_money" else getattr(costs, name)
            kinds = costs.kinds if name == "money" else None
            found = agent_differences(traces, cost, measured[name].value, sides.side, task_ids(traces), kinds)
            if len(found) > 1 or (found and found[0].of_models):
                agents[name] = tuple(found)
            if found:
                break
    return agents


def same_in_all(measured: dict[str, TraceMetric], rows: np.ndarray) -> dict[str, float]:
    """The metrics beside `ASKED` with one number in all of these traces that have any, two or more, as those of the
    team where it is one agent.

    Examples:
      >>> same_in_all({"loops": numbered(np.zeros(3)), "errors": numbered(np.zeros(3))}, np.ones(3, bool))
      {'loops': 0.0}
    """
    found = {}
    for name, metric in measured.items():
        value = metric.value[rows & np.isfinite(metric.value)]
        if name not in ASKED and len(value) > 1 and _alike(value.min(), value.max()):
            found[name] = float(value[0])
    return found


def _apart(
    traces: Traces, sides: Sides, judged: tuple[str, TraceMetric] | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """In what else the sides differ, which may be what changed, and how success differs within each of its kinds.

    The part of traces of each model, system, format and agent is compared as metrics are, with Holm's correction for
    all. It is told where it differs beyond chance and, tested or not, where the part of what is settled before a run
    differs by `MIXED`; where tasks are few, at any difference of that, and at `MIXED` of an agent that no test is of.
    """
    task, kept, kinds = task_ids(traces), sides.side >= 0, _kinds(traces)
    first, second = (np.unique(task[sides.side == one]) for one in (0, 1))
    few = (len(np.intersect1d(first, second)) or min(len(first), len(second))) < LEAST_TASKS
    found = []
    of_sides = {
        word: [{name for name, has in names.items() if (has[sides.side == one] > 0).any()} for one in (0, 1)]
        for word, names in kinds.items()
    }
    whole = [name or "none stated" for name in traces.traces["model"].to_pylist()]
    of_sides["model"] = [{whole[row] for row in np.flatnonzero(sides.side == one)} for one in (0, 1)]
    made_by = {word for word, whole in of_sides.items() if whole == [{name} for name in sides.names]}
    if "model" not in made_by and [*map(len, of_sides["system"])] == [1, 1]:
        made_by.add("system")  # each side is one version of the team: the sides are these versions
    for word, names in kinds.items():
        if word in made_by:
            continue
        for name, has in names.items():
            row = _compared("", numbered(has), sides.side, task)  # a model may be called tokens
            if row is not None and np.nanmin(has[kept]) < np.nanmax(has[kept]):  # else it says nothing
                fact = fact_of(np.nan_to_num(has[kept], nan=0.5))  # where an agent acts is a part of it
                found.append((word, dataclasses.replace(row, metric=name), fact))
    corrected = holm([math.nan if row.p is None else row.p for _, row, _ in found], [fact for *_, fact in found])
    told: dict[str, list[SideDifference]] = {}
    unsure: set[str] = set()
    for (word, row, _), p in zip(found, corrected, strict=True):
        beyond = beyond_chance(p, row.low, row.high)
        settled, much = word != "agent", abs(row.difference) >= MIXED
        if beyond or (few and row.difference and (settled or (much and row.p is None))) or (settled and much):
            told.setdefault(word, []).append(row)
            unsure |= set() if beyond else {word}
    said = []
    for word, rows in told.items():
        rows = sorted(rows, key=lambda row: -abs(row.difference))
        shares = [
            f"{printable(row.metric, 60)} in {' against '.join(apart((row.first, row.second), percent, 0))}"
            for row in rows
        ]
        more, chance = ["…"] * (len(shares) > MOST_TOLD), "; tasks are too few to tell whether by chance" if few else ""
        chance = chance or ("; not beyond chance" if word in unsure else "")
        which = "traces in which it acts" if word == MODEL_OF_AGENT else "traces"
        if word != "model" or MODEL_OF_AGENT not in told:  # which says whose model it is
            said.append(f"the sides differ in {word}, too ({', '.join(shares[:MOST_TOLD] + more)} of {which}{chance})")
        if judged and word in BESIDE:
            said.append(_within(word, kinds[word], sides, task, *judged))
    if MODEL_OF_AGENT in told:
        told.pop("model", None)
    most = {word: max(rows, key=lambda row: (abs(row.difference), row.rises)) for word, rows in told.items()}
    return tuple(filter(None, said)), {word: row.metric for word, row in most.items()}


def _within(
    word: str, names: dict[str, np.ndarray], sides: Sides, task: np.ndarray, name: str, metric: TraceMetric
) -> str:
    """How a metric differs between the sides within each model, or another kind, that both have."""
    every = {kind: _compared(name, metric, np.where(has > 0, sides.side, -1), task) for kind, has in names.items()}
    both = {kind: row for kind, row in every.items() if row is not None}
    if not both:
        return f"no {word} has traces on both sides, so what it does cannot be told from what changed"
    both = {kind: row for kind, row in both.items() if not names[kind][sides.side >= 0].all()}  # else it is that of all
    if not both:
        return ""
    corrected = holm([math.nan if row.p is None else row.p for row in both.values()])
    tests, told = sum(row.p is not None for row in both.values()), []
    for (kind, row), p in zip(both.items(), corrected, strict=True):
        why = row.corrected(p, tests).why()
        told.append(f"{printable(kind, 60)} {_to(row.first, row.second)}, {why or 'beyond chance'}")
    told[MOST_TOLD:] = ["…"] * (len(told) > MOST_TOLD)
    return f"{name} within each {word} ({'; '.join(told + _together(names, sides.side, task, metric.value))})"


def _together(names: dict[str, np.ndarray], side: np.ndarray, task: np.ndarray, value: np.ndarray) -> list[str]:
    """The difference within each task and kind that both sides have, over tasks; empty where they share none.

    A task gives the mean of its kinds' differences, weighted by n m / (n + m) with n and m traces on the sides.

    Reference: Cochran 1954, Some methods for strengthening the common χ² tests.
    """
    acts = np.array([*names.values()]) > 0
    kind = np.where(acts.any(axis=0), np.unique(acts, axis=1, return_inverse=True)[1].ravel(), -1)
    rows = np.flatnonzero(np.isfinite(value) & (side >= 0) & (kind >= 0))
    cells, cell = np.unique(np.stack([task[rows], kind[rows]]), axis=1, return_inverse=True)
    count, total = (
        np.stack([np.bincount(cell, weight * (side[rows] == one), cells.shape[1]) for one in (0, 1)])
        for weight in (np.ones(len(rows)), value[rows])
    )
    both = count.all(axis=0)
    if not both.any():
        return []
    first, second = total[:, both] / count[:, both]
    apart = np.where(_alike(first, second), 0.0, second - first)
    weight, (_, of) = (
        count[:, both].prod(axis=0) / count[:, both].sum(axis=0),
        np.unique(cells[0, both], return_inverse=True),
    )
    found = task_mean(np.bincount(of, weight * apart) / np.bincount(of, weight))
    chance = "beyond chance" if beyond_chance(found.p, found.low, found.high) else "within chance"
    why = "too few tasks differ to tell" if math.isnan(found.p) else chance
    mean = 0.0 if abs(found.mean) <= ROUNDING * np.abs(apart).max() else found.mean
    return [f"together {mean:+z.3g}, {why}"]


def _kinds(traces: Traces) -> dict[str, dict[str, np.ndarray]]:
    """Traces of each model, system and format, and those in which an agent acts that `taking_part` tells something of:
    1 or 0, float [traces]; most traces first.

    And those in which an agent acts with a model, of `agent_models`: NaN where the agent does not act, as in runs that
    were killed before, for there it has no model.
    """
    named = {word: [*enumerate(name or "none stated" for name in traces.traces[word].to_pylist())] for word in BESIDE}
    agents, acts, tells = taking_part(traces)
    found: dict[str, dict[str, np.ndarray]] = {}
    models = trace_models(traces)
    named["model"] = [(row, name) for row, of in enumerate(models) for name in sorted(of) or ["none stated"]]
    named["agent"] = [
        (int(row), agents[agent]) for agent, row in np.argwhere(acts & np.any(tells, axis=1, keepdims=True))
    ]
    acting: dict[str, list[int]] = {}
    named[MODEL_OF_AGENT] = []
    for agent, of_agent in agent_models(traces).items():
        for row, of in of_agent.items():
            named[MODEL_OF_AGENT] += [(row, f"{agent}: {model or 'none stated'}") for model in of]
        acting |= {name: [*of_agent] for _, name in named[MODEL_OF_AGENT] if name not in acting}
    every = np.arange(traces.sizes.traces)
    for word, pairs in named.items():
        rows: dict[str, set[int]] = {}
        for row, name in pairs:
            rows.setdefault(name, set()).add(row)
        most = sorted(rows, key=lambda name: (-len(rows[name]), name))[:MOST_NAMES]
        found[word] = {name: np.isin(every, [*rows[name]]).astype(np.float64) for name in most}
        if word == MODEL_OF_AGENT:
            for name, has in found[word].items():
                has[~np.isin(every, acting[name])] = np.nan
    return found


def _least_tasks(rows: int) -> int:
    """Tasks that must differ, all the same way, for a p below 0.05 in one of so many rows: 2 / 2ⁿ is the least p."""
    return math.floor(math.log2(2 * rows / LEVEL)) + 1


def _place(sides: Sequence[int], names: Sequence[str]) -> str:
    return "either side" if len(sides) > 1 else names[sides[0]]


def _why(one: AgentDifference) -> str:
    """What models, tokens and tools add to the difference of an agent; "" where it is not that of other models."""
    if not one.of_models:
        return ""
    before, after = (" + ".join(printable(name, 60) for name in names) for names in one.models)
    parts = {f"{before} to {after}" if before != after else f"other parts of {before}": one.of_models}
    parts |= {"tokens": one.of_tokens or 0.0, "tools": one.of_tools or 0.0}
    return ", ".join(f"{name} {_signed(part)}" for name, part in parts.items() if part)


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{_short(value)}"


def _to(first: float, second: float) -> str:
    return " to ".join(apart((first, second), _short, 3))


def _short(value: float, digits: int = 3) -> str:
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return np.format_float_positional(float(f"{value:z.{digits}g}"), trim="-")


def read_sides(
    path: str | Path, traces: Traces
) -> tuple[tuple[str, str], np.ndarray, tuple[Problem, ...], dict[str, int]]:
    """Two sides of traces, from a table.

    Returns:
      Their names in the order of the file; the side of each trace, int [traces], -1 where it has none; the rows whose
      trace was not read; and the sides of those among these that were refused.

    Args:
      path: of a table with the columns `trace` and `side`.
      traces: what was read.

    Raises:
      CreditError: a row is not of that form, a trace has two sides, or the sides of the traces are not two.
    """
    names: list[str] = []
    of_trace: dict[str, int] = {}
    missed: dict[str, int] = {}
    stated: dict[str, str] = {}  # of these
    refused = {problem.trace for problem in traces.problems if problem.is_failure} - {""}
    known = set(traces.traces["trace"].to_pylist())
    for line, row in read_rows(Source(str(path), Path(path))):
        if isinstance(row, Lost):
            raise CreditError(f"{path}: {row.problem}; expected a table with the columns `trace` and `side`")
        if row.get("trace") is None or row.get("side") is None:
            raise CreditError(f"{path}, line {line}: no trace or no side; expected the columns `trace` and `side`")
        trace, side = id_text(row["trace"]), id_text(row["side"]).strip()
        if trace in known:
            names += [] if side in names else [side]
            if of_trace.setdefault(trace, names.index(side)) != names.index(side):
                raise CreditError(f"{path}, line {line}: a second side of trace {trace!r}; expected one for each trace")
        else:
            missed.setdefault(trace, line)
            stated[trace] = side
    without = sorted(known - of_trace.keys())
    problems: list[Problem] = []
    for trace, line in missed.items():
        hint = f". {near_names(trace, without, count=WITHOUT_ROW)}" if without and len(problems) < MOST_HINTED else ""
        if trace in refused:
            expected = "a trace that was read: its own was refused"
            problems.append(Problem(REFUSED_ROW, str(path), line, "side", stated[trace], expected, trace, about="side"))
            continue
        expected = f"the id of a trace that was read{hint}"
        problems.append(Problem("unmatched-row", str(path), line, "trace", excerpt(trace), expected, about="side"))
    if len(names) != 2:
        found = ", ".join(map(excerpt, names)) or "none"
        raise CreditError(
            f"{path}: the sides of the traces that were read are: {found}; expected two, such as before and after"
            + "".join(f"\n{problem}" for problem in problems[:MOST_HINTED])
        )
    sides = [of_trace.get(name, -1) for name in traces.traces["trace"].to_pylist()]
    unread = {trace: names.index(side) for trace, side in stated.items() if trace in refused and side in names}
    return (names[0], names[1]), np.array(sides, np.int64), tuple(problems), unread


def stated_sides(word: str, given: Sequence[str], traces: Traces) -> tuple[tuple[str, str], np.ndarray]:
    """Two sides of traces, by the model or system that the log states.

    Returns:
      Their names, and the side of each trace, int [traces], -1 where it is of neither.

    Args:
      word: "model" or "system".
      given: two of them; none where the log has two.
      traces: what was read.

    Raises:
      CreditError: they are not two, or not those of the log.
    """
    stated = traces.traces[word].to_pylist()
    found = sorted({name for name in stated if name})
    names = list(given) or found
    if len(set(names)) != 2 or len(names) != 2 or not {*names} <= {*found}:
        known = ", ".join(map(excerpt, found)) or "none is stated"
        raise CreditError(f"{word} of the traces that were read: {known}; expected two, or --sides {word}=A,B")
    return (names[0], names[1]), np.array([names.index(name) if name in names else -1 for name in stated], np.int64)


def _later(begin: np.ndarray, side: np.ndarray) -> float:
    """In what part of the pairs of traces with dates the one of the second side begins later; 0.5 without dates."""
    first, second = (np.sort(begin[(side == one) & np.isfinite(begin)]) for one in (0, 1))
    if not len(first) or not len(second):
        return 0.5
    before = np.searchsorted(first, second, "left") + np.searchsorted(first, second, "right")
    return float(before.mean()) / (2 * len(first))


def dated_sides(date: str, traces: Traces) -> tuple[tuple[str, str], np.ndarray]:
    """Two sides of traces, by whether they begin before a date, which is in UTC unless it states a zone.

    Returns:
      Their names, and the side of each trace, int [traces], -1 where the log has no date of it.

    Raises:
      CreditError: it is no date of ISO 8601, or no trace begins on one side of it.
    """
    try:
        moment = datetime.datetime.fromisoformat(date)
    except ValueError:
        raise CreditError(f"{date!r} is no date; expected one of ISO 8601, such as 2026-11-20") from None
    limit = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
    begin = begins(traces)
    if np.isnan(begin).all():
        raise CreditError("no trace that was read has a date; expected times in seconds since 1970")
    side = np.where(np.isnan(begin), -1, begin >= limit).astype(np.int64)
    names = f"before {date}", f"from {date}"
    for number, name in enumerate(names):
        if not (side == number).any():
            first, last = date_text(np.nanmin(begin)), date_text(np.nanmax(begin))
            raise CreditError(f"no trace that was read begins {name}; they begin from {first} to {last}")
    return names, side


def sides_of_folders(folders: Sequence[str], traces: Traces) -> tuple[tuple[str, str], np.ndarray]:
    """Two sides of traces, by the folder of their logs.

    Returns:
      The folders, and the side of each trace, int [traces], -1 where its file lies in neither.

    Args:
      folders: two of them, or two files.
      traces: what was read.

    Raises:
      CreditError: they are not two, one lies in the other, or no trace that was read is from one of them.
    """
    files = traces.traces["file"].to_pylist()
    for folder in folders:
        if not Path(folder).exists():
            near = near_names(folder, files, count="Files that were read ({})")
            raise CreditError(f"{folder} does not exist; {EXPECTED}. {near}")
    if len(folders) != 2:
        raise CreditError(f"sides are {', '.join(folders)}; {EXPECTED}")
    places = [Path(folder).resolve() for folder in folders]
    if places[0].is_relative_to(places[1]) or places[1].is_relative_to(places[0]):
        raise CreditError(f"sides are {', '.join(folders)}, of which one lies in the other; {APART}")
    inside = _sides_of_files(places, files)
    side = np.array([inside[file] for file in files], np.int64)
    for number, folder in enumerate(folders):
        if not (side == number).any():
            raise CreditError(f"no trace that was read is from {folder!r}; {APART}")
    return (folders[0], folders[1]), side


def _sides_of_files(places: Sequence[Path], files: Sequence[str]) -> dict[str, int]:
    """Of each file, in which of these folders it lies; -1 for none."""
    found = {file: Path(file).resolve() for file in dict.fromkeys(files)}
    inside = {file: [place in (path, *path.parents) for place in places] for file, path in found.items()}
    return {file: within.index(True) if any(within) else -1 for file, within in inside.items()}


COSTS: Mapping[str, str] = {
    "outcome": "the reward of the trace, where outcomes are not all 0 or 1",
    "ended_early": "the part of traces that end early, where some do: in a call or a result, at a limit or in an error",
    "errors": "events, or calls of a tool, whose status the log calls an error",
    "unmended_errors": "calls that failed, and did not succeed later in the trace with the same arguments",
    "loops": "times that an agent repeats calls, arguments and all, 3 times in a row or more",
    "tokens": "tokens that the actions generated",
    "input_tokens": "tokens that the actions read",
    "money": "money at the prices of a table, `--prices`",
    "logged_money": "money that the log states of the trace",
    "wall_clock": "seconds from the first begin to the last end, without waits for a person, real or simulated",
    "tool_calls": "calls of tools, and spawns by one",
}
"""What each number of `costs_of_traces` is."""


def with_costs(
    traces: Traces, measured: dict[str, TraceMetric], prices: Prices | None = None
) -> dict[str, TraceMetric]:
    """Metrics of `trace_metrics` with success first, then `costs_of_traces`, as they are asked of a run."""
    return {"success": measured["success"]} | costs_of_traces(traces, prices) | measured


def costs_of_traces(traces: Traces, prices: Prices | None = None) -> dict[str, TraceMetric]:
    """What a change may cost or gain beside metrics: of each trace outcome, errors, loops, tokens, time, early end.

    Outcomes are left out where all are 0 or 1, since "success" has them. "unmended_errors" and "loops" are those of
    `ToolCalls`; "tokens" are
    those generated and "input_tokens" those read, where all actions have a count; "wall_clock" is in seconds, without
    waits for a person, real or simulated. "money" is there with prices, of traces whose counts and models' prices are
    known, and "logged_money" where logs state it of traces; other costs that they state are
    "costs.NAME". Traces that lack lines have the outcome alone
    (`lacking_events`). What is asked first of a change comes first.

    Args:
      traces: what was read.
      prices: of models and tools.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[2.0, 0.5])
      >>> costs_of_traces(rows.traces)["outcome"].value.tolist()
      [2.0, 0.5]
    """
    m, trace = traces.sizes.traces, np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    facts = TeamFacts(traces)
    calls = facts.calls
    costs, wall = event_costs(traces, prices, facts), facts.durations.wall
    outcome = np.asarray(traces.reward, np.float64)[:m]
    graded = np.any(np.isfinite(outcome) & (outcome != 0) & (outcome != 1))

    lacking, of_tools = (lacking_traces(traces), LACKING), uncounted_tool_calls(traces)

    refusals = np.bincount(trace, failed_model_calls(traces), m)
    idle = (refusals > 0) & (refusals == np.bincount(trace, facts.action, m)), IDLE

    def summed(cost: np.ndarray, what: str, *refused: tuple[np.ndarray, str]) -> TraceMetric:
        total = np.bincount(trace, cost, m)
        bare = facts.action & np.isnan(cost)
        of_action, others = (np.bincount(trace, rows, m) > 0 for rows in (bare, bare & ~of_tools))
        uncounted = (of_action & ~others, OF_TOOL_CALLS), (others, UNCOUNTED + what)
        return numbered(total, *refused, lacking, *uncounted, (np.isnan(total), SILENT), idle)

    found = {"outcome": numbered(outcome, (np.isnan(outcome), "the trace has no outcome"))} if graded else {}
    loops, unmended, (early, told) = calls.loop_counts(), calls.unmended_counts(), ended_early(traces, calls)
    bare = ~has_statuses(traces), "the log states no status"
    if early.any():
        untold = ~told, "the log does not tell how its runs end"
        found["ended_early"] = numbered(early * 1.0, untold, (lacking[0] & ~early, LACKING))
    found |= {
        "errors": numbered(np.bincount(trace, calls.counted, m), bare, lacking),
        "unmended_errors": numbered(unmended, bare, lacking, (np.isnan(unmended), NO_ARGUMENTS)),
        "loops": numbered(loops, (np.isnan(loops), NO_ARGUMENTS), lacking),
        "tokens": summed(costs.tokens, ""),
        "input_tokens": summed(costs.input_tokens, " that it read"),
    }
    if prices is not None:
        names, model = event_models(traces)
        named, foreign = np.array([(name != "", name not in prices.models) for name in names]).T[:, model]
        acts = (facts.action & named) | np.isfinite(costs.tokens + costs.input_tokens)
        unpriced = np.bincount(trace, acts & foreign & np.isnan(costs.money), m) > 0
        which = (price_gaps(traces, prices).unpriced_names() if unpriced.any() else "") or OF_UNSTATED
        found["money"] = summed(costs.money, ", read or generated", (unpriced, UNPRICED + which))
    if {"costs.money", "money"} & {*traces.evidence}:
        logged, whole = known_costs(traces, "logged_money")
        stated = whole_costs(traces).get("money", np.full(m, np.nan))
        # A reader states no sum where a call lacks its money; one that failed cost nothing.
        whole &= np.isfinite(stated) | (refusals > 0)
        if whole.any():
            found["logged_money"] = numbered(logged, (~whole, UNSTATED_COST), idle)
    return (
        found
        | {
            "wall_clock": numbered(wall, (np.isnan(wall), "the log has no times in seconds"), lacking),
            "tool_calls": numbered(np.bincount(trace, costs.tool_calls, m), lacking),
        }
        | {
            f"{STATED_COST}{name}": numbered(logged, (np.isnan(logged), "the log does not state it of the trace"))
            for name, logged in whole_costs(traces).items()
            if name not in MEASURED
        }
    )


def side_differences(traces: Traces, metrics: dict[str, TraceMetric], side: np.ndarray) -> list[SideDifference]:
    """Differences of metrics between two sides, second − first, with intervals over tasks.

    Where any tasks have traces of both sides, each gives the difference of its two means: paired, so that hard tasks
    weigh on both sides alike, and other tasks are left out. There is a test where the numbers of `LEAST_TASKS` tasks
    vary, or, with fewer, from `LEAST_TASKS` traces on each side: traces might have been dealt otherwise among the sides
    of their task, as of failed and succeeded ones (`outcome_differences`). Without shared tasks each side's tasks give
    one number each. Runs of `untold_tasks` are in no task. Intervals are those of `graphs.task_means`, from
    `LEAST_TASKS` tasks that differ on.
    P-values are those of differences with the other sign, or of tasks on the other side, by chance (`graphs.dealing`).
    Where tasks have more traces on one side, differences lean even where sides are alike: then the larger p counts, of
    this and of traces that were dealt otherwise among the sides of their task.
    Metrics that are one another on a straight line are one test, of the first. An outcome that some traces lack does
    not stand out where its difference would end or turn if these had the least, or the greatest, of the others.
    Of unpaired tasks Welch's counts where it is above that, since sides may differ in spread alone. Of `AMOUNTS` all
    this is of logarithms, of pairs by their signed ranks, and their ratios have the intervals, unless a task that
    differs has 0 on one side: then pairs of fewer than `LEAST_OF_ANY` tasks have none. Those of log-normal amounts, of
    which 10 to 60 % are 0 on one side, held 92 to 97 %.

    Args:
      traces: what was read.
      metrics: of `trace_metrics` on these traces.
      side: 0 or 1 of each trace, -1 for none: int [traces].

    Reference: Student 1908; Fisher 1935, The Design of Experiments; Welch 1947.

    Examples:
      >>> from credit.metrics.trace_metrics import trace_metrics
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> side_differences(rows.traces, trace_metrics(rows.traces), np.array([0, 1]))[0].difference
      -1.0
    """
    task, asked, untold = task_ids(traces), side >= 0, _untold(traces, metrics, side)
    found = [_compared(name, metric, side, task, untold) for name, metric in metrics.items()]
    known = [one for one in found if one is not None]
    family = [(one.metric not in FIRST) + one.is_other for one in known]
    facts = [one.metric if one.p is None else fact_of(metrics[one.metric].value[asked]) for one in known]
    first = {facts[i]: i for i in sorted(range(len(known)), key=lambda i: (family[i], i), reverse=True)}
    corrected: dict[int, tuple[float, int]] = {}
    for part in set(family):
        heads = [i for i in first.values() if family[i] == part]
        p_values = [math.nan if (p := known[i].p) is None else p for i in heads]
        tests = sum(not math.isnan(p) for p in p_values)
        corrected |= {i: (p, tests) for i, p in zip(heads, holm(p_values), strict=True)}
    rows = [one.corrected(*corrected[first[fact]]) for one, fact in zip(known, facts, strict=True)]
    same = ["" if first[fact] == i else known[first[fact]].metric for i, fact in enumerate(facts)]
    return [dataclasses.replace(row, same_as=of) for row, of in zip(rows, same, strict=True)]


def _untold(traces: Traces, metrics: Mapping[str, TraceMetric], side: np.ndarray) -> np.ndarray:
    """The runs of `untold_tasks`, where each side has others, too: bool [traces]."""
    found = of_untold_tasks(traces, metrics) & (side >= 0)
    return found if all(((side == one) & ~found).any() for one in (0, 1)) else np.zeros_like(found)


def _told(metric: TraceMetric, untold: np.ndarray) -> TraceMetric:
    """The metric without the runs of `untold_tasks`."""
    if not untold.any():
        return metric
    reasons = [UNTOLD if of and not why else why for of, why in zip(untold, metric.reasons, strict=True)]
    return TraceMetric(np.where(untold, np.nan, metric.value), reasons)


def uncompared(metrics: dict[str, TraceMetric], side: np.ndarray) -> list[Uncompared]:
    """The metrics that `side_differences` leaves out, since no trace of a side has a number.

    Args:
      metrics: as of `side_differences`.
      side: likewise.

    Examples:
      >>> uncompared({"success": numbered(np.ones(2), (np.array([True, False]), "no outcome"))}, np.array([0, 1]))
      [Uncompared(metric='success', sides=(0,), reason='no outcome')]
    """
    found = []
    for name, metric in metrics.items():
        lacking = tuple(one for one in (0, 1) if not np.isfinite(metric.value[side == one]).any())
        if lacking:
            found.append(Uncompared(name, lacking, next(iter(_refused(metric, np.isin(side, lacking))))))
    return found


def bounds_of_sides(
    traces: Traces, metrics: dict[str, TraceMetric], side: np.ndarray, prices: Prices | None = None
) -> list[SideBound]:
    """What is known of errors, tokens, money and calls where some traces lack a part, and something is on both sides.

    `side_differences` compares only traces that lack nothing, and these may be the small ones. Nor does it compare runs
    of `untold_tasks`, with which early ends have a bound, too.

    Args:
      traces: what was read.
      metrics: as of `side_differences`.
      side: likewise.
      prices: of models and tools.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> records = [TraceRecord(name, "q", "log.jsonl", instances={"a": Agent()}) for name in ("s", "t")]
      >>> _ = [record.event(f"e{i}", 3, "a", action=True, tokens=count)
      ...      for record in records for i, count in enumerate((5, None))]
      >>> traces, side = assemble(records), np.array([0, 1])
      >>> bounds_of_sides(traces, costs_of_traces(traces), side)
      [SideBound(metric='tokens', first=5.0, second=5.0, whole=(False, False), tasks=1)]
    """
    of_side = [side == one for one in (0, 1)]
    task, untold, found = task_ids(traces), _untold(traces, metrics, side), []
    of_any = bool(untold.any())
    known_of = {
        name: np.isfinite(metric.value) | (np.array(metric.reasons) == IDLE) for name, metric in metrics.items()
    }
    names = [name for name in SUMMED if name in metrics and (of_any or not known_of[name][side >= 0].all())]
    names += ["ended_early"] if of_any and "ended_early" in metrics else []
    if not names:
        return []
    costs, trace = event_costs(traces, prices), np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    tasks = len(np.unique(task[(side >= 0) & ~untold]))
    for name in names:
        known = known_of[name]
        if name == "ended_early":
            amount = np.nan_to_num(metrics[name].value)
        else:
            cost = ToolCalls(traces).counted.astype(np.float64) if name == "errors" else getattr(costs, name)
            least = np.where(np.isnan(cost), costs.least.get(name, 0.0), cost)
            amount = np.bincount(trace, least, traces.sizes.traces)
        whole = tuple(bool(known[rows].all()) for rows in of_side)
        means = [mean_over_tasks(amount, rows, task, untold) for rows in of_side]
        if all(mean or all_ for mean, all_ in zip(means, whole, strict=True)):
            found.append(SideBound(name, means[0], means[1], (whole[0], whole[1]), tasks))
    return found


def _by_reason(metrics: dict[str, list[str]]) -> str:
    return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in metrics.items())


def _by_task(value: np.ndarray, rows: np.ndarray, task: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tasks of these traces, and the mean of each."""
    tasks, inverse = np.unique(task[rows], return_inverse=True)
    return tasks, np.bincount(inverse, value[rows]) / np.bincount(inverse)


def _refused(metric: TraceMetric, rows: np.ndarray) -> dict[str, int]:
    """The reasons of these traces that have no number, the most frequent first, and how many each has."""
    lacking = np.flatnonzero(rows & ~np.isfinite(metric.value))
    return dict(collections.Counter(metric.reasons[row] for row in lacking).most_common())


def _compared(
    name: str, metric: TraceMetric, side: np.ndarray, task: np.ndarray, untold: np.ndarray | None = None
) -> SideDifference | None:
    """One metric; None where a side has no number of a known task."""
    from scipy.special import stdtrit  # comes with JAX; slow to import

    measured, means = metric.value, []
    untold = np.zeros(len(side), bool) if untold is None else untold
    metric = _told(metric, untold)
    value = metric.value
    for one in (0, 1):
        rows = np.flatnonzero(np.isfinite(value) & (side == one))
        means.append((*_by_task(value, rows, task), len(rows)))
    (tasks, first, before), (others, second, after) = means
    if not (before and after):
        return None
    shared, i, j = np.intersect1d(tasks, others, return_indices=True)
    paired = len(shared) > 0
    error, freedom, test, differing, change, by_dealing = 0.0, 0.0, Dealt(1.0, 1.0), None, 0.0, 0.0
    as_ratio, ends = is_amount(name), (math.nan, math.nan)
    if paired:
        first, second = first[i], second[j]
        kept = np.isfinite(value) & np.isin(task, shared) & (side >= 0)
        before, after = (int((kept & (side == one)).sum()) for one in (0, 1))
        differs = ~_alike(first, second)
        differing = int(np.count_nonzero(differs))
        sides = [np.flatnonzero(kept & (side == one)) for one in (0, 1)]
        uneven = bool((_sizes(sides[0], task) != _sizes(sides[1], task)).any())
        apart = second - first
        if as_ratio:
            x, y = _logarithms(value, sides, task)
            as_ratio = bool(np.isfinite(np.concatenate([x, y])[np.tile(differs, 2)]).all())
        apart = y[differs] - x[differs] if as_ratio else np.where(differs, apart, 0.0)
        if differing >= LEAST_TASKS:
            error, freedom = _spread(apart) / len(apart) ** 0.5, len(apart) - 1.0
            test = flipped(signed_ranks(apart.round(12)) if as_ratio else apart)
            if uneven:  # differences lean to one side then, whatever the sides do: of 8 rare failures and 1, to -1
                amounts = _over_tasks(value[kept], task[kept]) if as_ratio else value[kept]
                by_trace = _dealt_within(amounts, side[kept], task[kept])
                test = Dealt(max(test.p, by_trace.p), max(test.least, by_trace.least))
                by_dealing = _dealing_error(amounts, side[kept], task[kept]) * len(shared) / len(apart)
            change = float(apart.mean())
            if as_ratio:
                change, ends = shift_interval(apart)
                half = (ends[1] - ends[0]) / 2
                error = half / float(stdtrit(freedom, 1 - LEVEL / 2)) if half > ROUNDING else error  # most are alike
            elif not is_amount(name) or len(apart) >= LEAST_OF_ANY:  # log-normal amounts, 0 in 60 %: 8 tasks held 85 %
                ends = mean_interval(apart)
        elif differing:
            test = _of_few(value[kept], side[kept], task[kept], apart)
    elif min(len(first), len(second)) >= LEAST_TASKS:
        both = np.concatenate([first, second])
        if _spread(both) > 0:
            sides = [np.flatnonzero(np.isfinite(value) & (side == one)) for one in (0, 1)]
            if as_ratio:
                logs = np.concatenate(_logarithms(value, sides, task))
                as_ratio = bool(np.isfinite(logs).all())
                both = logs - logs.mean() if as_ratio else both  # a unit changes nothing
            x, y = both[: len(first)], both[len(first) :]
            parts = [_spread(part) ** 2 / len(part) for part in (x, y)]
            error = sum(parts) ** 0.5
            squares = sum(part**2 / (len(of) - 1) for part, of in zip(parts, (x, y), strict=True))
            freedom = sum(parts) ** 2 / squares if squares > 0 else 0.0
            test = dealt(both, np.arange(len(both)) < len(first), np.zeros(len(both)))
            change, ends = float(y.mean() - x.mean()), difference_interval(x, y)
    before_mean, after_mean = float(first.mean()), float(second.mean())
    difference = 0.0 if _alike(before_mean, after_mean) else after_mean - before_mean
    low, high, p, seen, ratio, needed = None, None, test.p, None, None, None
    if error > 0:
        p = p if paired else max(p, _by_student(change, error, freedom))
        needed = Needed(error, freedom, by_dealing, 0.0 if math.isnan(ends[0]) else (ends[1] - ends[0]) / 2)
        seen = needed.seen(1)
    p = p if test.least < LEVEL else math.nan
    ends, as_found = as_tested(ends, p), ends
    moved = not math.isnan(ends[0]) and ends != as_found
    if as_ratio and not math.isnan(ends[0]):
        times, least, most = (math.exp(end) for end in (change, *ends))
        ratio = SideRatio(times, least, most, None if seen is None else math.exp(seen))
    has_zeros = error > 0 and math.isnan(ends[0]) and is_amount(name) and not as_ratio
    if as_ratio:
        seen = None
    elif error > 0 and not math.isnan(ends[0]):
        low, high = (max(ends[0], -1.0), min(ends[1], 1.0)) if name in PARTS else ends
    else:
        seen = None
    numbers = (low, high, None if math.isnan(p) else p, test.least if test.least < 1 else None, seen)
    compared = len(shared) if paired else len(np.union1d(tasks, others))
    asked = side >= 0
    if paired:  # a task of one side is not compared, whatever its numbers
        asked &= np.isin(task, np.intersect1d(task[side == 0], task[side == 1])) | untold
    counts = compared, (before, after), paired, differing, _refused(metric, asked)
    first_rows, second_rows = asked & (side == 0), asked & (side == 1)
    every, lacks = (int(first_rows.sum()), int(second_rows.sum())), ~np.isfinite(value)
    lacking = int((first_rows & lacks).sum()), int((second_rows & lacks).sum())
    found = SideDifference(name, before_mean, after_mean, difference, *numbers, *counts, every, lacking, ratio)
    found = dataclasses.replace(found, untold=(int((first_rows & untold).sum()), int((second_rows & untold).sum())))

    def of_both(each: np.ndarray) -> tuple[float, float]:
        first, second = (
            mean_over_tasks(each, rows & np.isfinite(each), task, untold) for rows in (first_rows, second_rows)
        )
        return first, second

    if name == "ended_early" and any(found.untold):
        found = dataclasses.replace(found, least_rest=of_both(measured), most_rest=of_both(measured))
    if name in FIRST and any(lacking):
        outcomes = value[(side >= 0) & ~lacks]
        rest_of = (0.0, 1.0) if name == "success" else (outcomes.min(), outcomes.max())
        rest = [of_both(np.where(lacks, end, value)) for end in rest_of]
        found = dataclasses.replace(found, least_rest=rest[0], most_rest=rest[1])
        if needed is not None and found.seen is not None:
            # A difference is diluted by the part that is missing, and moved by what fills that.
            part = sum(of_both(1.0 - lacks)) / 2
            least, most = sorted((after - before) / part for before, after in rest)
            needed = dataclasses.replace(needed, turns=max(difference - least, most - difference))
            found = dataclasses.replace(found, seen=needed.seen(1))
    return dataclasses.replace(found, needed=needed, has_zeros=has_zeros, moved=moved)


def _sizes(rows: np.ndarray, task: np.ndarray) -> np.ndarray:
    """How many of these traces each of their tasks has."""
    return np.unique(task[rows], return_counts=True)[1]


def _logarithms(value: np.ndarray, sides: Sequence[np.ndarray], task: np.ndarray) -> list[np.ndarray]:
    """Of each side's traces the logarithm of each task's mean; not finite where it has none.

    Where tasks of one side have many more traces, the mean of logarithms: the logarithm of a mean rises with their
    number, by half the variance of logarithms at most.
    """
    many = [float(_sizes(rows, task).mean()) for rows in sides]
    with np.errstate(divide="ignore", invalid="ignore"):
        if max(many) > MANY_MORE * min(many):
            return [_by_task(np.log(value), rows, task)[1] for rows in sides]
        return [np.log(_by_task(value, rows, task)[1]) for rows in sides]


def _of_few(value: np.ndarray, side: np.ndarray, task: np.ndarray, apart: np.ndarray) -> Dealt:
    """The test where few tasks differ: by task where `LEAST_TASKS` vary, else by trace, with as many on each side.

    Which one does not depend on the side of a trace within its task.

    Args:
      value, side, task: of each trace that is compared: [n].
      apart: the difference of each task: [tasks].
    """
    if np.count_nonzero(_varies(value, task)[0]) >= LEAST_TASKS:
        return flipped(apart)
    if min(np.count_nonzero(side == one) for one in (0, 1)) < LEAST_TASKS:
        return Dealt(1.0, 1.0)
    return _dealt_within(value, side, task)


def _over_tasks(value: np.ndarray, task: np.ndarray) -> np.ndarray:
    """Numbers over the mean of their task, so that large tasks count as small ones do."""
    scaled: np.ndarray = (
        value / _by_task(value, np.arange(len(value)), task)[1][np.unique(task, return_inverse=True)[1]]
    )
    return scaled


def _dealt_within(value: np.ndarray, side: np.ndarray, task: np.ndarray) -> Dealt:
    """The test of the sum of tasks' differences: traces might have been dealt otherwise within their task."""
    varies, low, of = _varies(value, task)
    second = side == 1
    # A task's difference is a sum over the traces of its second side, up to what no dealing changes.
    weight = 1 / np.bincount(of, second) + 1 / np.bincount(of, ~second)
    return dealt(np.where(varies[of], value - low[of], 0.0) * weight[of], second, of)


def _dealing_error(value: np.ndarray, side: np.ndarray, task: np.ndarray) -> float:
    """The standard deviation of the mean of tasks' differences over such dealings as `_dealt_within` has."""
    _, of = np.unique(task, return_inverse=True)
    second, size = np.bincount(of, side == 1), np.bincount(of)
    first = size - second
    squares = np.bincount(of, (value - (np.bincount(of, value) / size)[of]) ** 2)
    weight = (1 / first + 1 / second) ** 2 * first * second / (size * (size - 1))
    return math.sqrt(float((weight * squares).sum())) / len(size)


def _varies(value: np.ndarray, task: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each task's numbers vary, and the least: [tasks]; and the place of each trace's task there: int [n]."""
    _, of = np.unique(task, return_inverse=True)
    low, high = np.full(of.max() + 1, np.inf), np.full(of.max() + 1, -np.inf)
    np.minimum.at(low, of, value)
    np.maximum.at(high, of, value)
    return ~_alike(low, high), low, of


def _alike(first: np.ndarray | float, second: np.ndarray | float) -> np.ndarray:
    """Whether numbers differ by no more than single precision rounds."""
    return np.asarray(np.abs(np.subtract(second, first)) <= ROUNDING * np.maximum(np.abs(first), np.abs(second)))


def _spread(values: np.ndarray) -> float:
    """The standard deviation, 0 where all values are alike."""
    return 0.0 if _alike(values.min(), values.max()) else float(values.std(ddof=1))


def _by_student(difference: float, error: float, freedom: float) -> float:
    """Student's p-value."""
    from scipy.special import stdtr  # comes with JAX; slow to import

    return 2 * float(stdtr(freedom, -abs(difference) / error))
