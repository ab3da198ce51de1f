"""Two sides of a corpus, such as before and after a change: differences of metrics, paired within shared tasks."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credit.metrics.event_costs import Prices, event_costs, stated_costs, whole_costs
from credit.metrics.success_costs import SuccessCost, success_costs, success_line
from credit.metrics.trace_metrics import PARTS
from credit.reports.beyond_chance import LEVEL, beyond_chance
from credit.reports.durations import begins, date_text
from credit.reports.event_models import agent_models, event_models
from credit.reports.missing_lines import LACKING, lacking_traces
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import has_statuses
from credit.reports.trace_numbers import STATED_COST, TeamFacts, TraceMetric, is_amount, numbered
from credit.reports.unread_outcomes import NO_SIDE, UnreadOutcomes, unread_outcomes
from graphs.dealing import Dealt, dealt, flipped
from graphs.errors import CreditError, Problem
from graphs.reading.source import Lost, Source
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.joins import REFUSED_ROW
from graphs.reading.tables.rows import read_rows
from graphs.task_means import (
    LEAST_OF_ANY,
    LEAST_TASKS,
    ROUNDING,
    difference_interval,
    fact_of,
    holm,
    mean_interval,
    median_interval,
    task_mean,
)
from graphs.text import WITHOUT_ROW, counted, excerpt, near_names, printable
from graphs.traces.batch import Traces

__all__ = [
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
UNPRICED = "no row of the table prices a model of it"
FIRST = ("success", "outcome")
"""What a change is judged by, tested on its own."""
STARRED_SIDES = "all rows but success and outcome, which are tested on their own"
ASKED = {
    "success": "success",
    "outcome": "outcome",
    "money": "money",
    "logged_money": "money that the log states",
    "tokens": "tokens generated",
    "input_tokens": "tokens read",
    "errors": "errors",
    "wall_clock": "seconds of wall clock",
}
"""The metrics that a sentence on a change is about, in its words and its order; a table has the others."""
SUMMED = ("errors", "tokens", "input_tokens", "money", "tool_calls")
"""Sums over events, of which a part may be known."""
MIXED = 0.2
"""Difference between the parts that a model has of two sides, from which it is always told."""
MEASURED = frozenset({"tokens", "input_tokens", "money", "tool_calls", "wall_clock_s"})
"""Costs stated of traces whose metric has another name."""
STATED = ("system", "model")
BESIDE = ("model", "system", "format")
"""What is settled before a run, so that traces may be compared within it."""
MODEL_OF_AGENT = "the model of an agent"
EXPECTED = "expected two folders A,B, a table, `system`, `model` or `before=DATE`"
APART = "expected two folders that are apart, of logs"
MOST_TOLD = 5
"""Models, or agents, that a sentence on a change names."""
MOST_NAMES = 20
"""Models, or agents, that are looked at, those of most traces."""
MOST_HINTED = 3
"""Rows of unknown traces for which near names are sought."""


@dataclasses.dataclass(frozen=True)
class SideRatio:
    """How many times an amount of the first side the second has.

    Attributes:
      value: the median over tasks that differ of their ratios where tasks are paired, else geometric means' ratio.
      low, high: its 95 % interval (`median_interval`, `difference_interval` of logarithms).
      seen: the least ratio above 1 that the test of the logarithms would find in 4 of 5 cases, at 5 % over `rows`; None
        where all tasks differ by one ratio.
    """

    value: float
    low: float
    high: float
    seen: float | None


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
        `FIRST`, is tested on its own, and all other metrics by Holm's method among themselves.
      least: the least p that a test could give before Holm's method, whatever the sides; None likewise.
      seen: the least difference that such a test at 5 % over `rows` would find in 4 of 5 cases; None where there is no
        interval.
      tasks: how many are compared: those with both sides where `paired`, else all.
      traces: how many of each side, of these tasks.
      paired: whether tasks are compared with themselves: where any has both sides.
      differing: how many of these tasks differ; None where tasks are not paired.
      refused: reasons of traces without a number, and how many each has; of tasks with both sides, if `paired`.
      asked: how many traces each side has in these, with a number or without.
      ratio: of `AMOUNTS`, which have its interval in place of that of the difference, and the test of its logarithm;
        None where a task that is compared has 0, and where another metric would have no interval.
      rows: how many tests `p` is corrected for, its own among them.
      freedom: degrees of Student's test of the interval; 0 without one.
      has_zeros: whether it has no interval since a task that is compared has 0 of an amount on one side.
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
    ratio: SideRatio | None = None
    rows: int = 1
    freedom: float = 0.0

    def corrected(self, p: float, rows: int) -> SideDifference:
        """The same where it is one of so many tests; p is NaN where there is none."""
        from scipy.special import stdtrit  # comes with JAX; slow to import

        if math.isnan(p):
            return dataclasses.replace(self, p=None)
        seen, ratio, power = self.seen, self.ratio, stdtrit(self.freedom, POWER) if self.freedom else 0.0
        if rows > 1 and self.freedom:
            of_all, alone = (float(stdtrit(self.freedom, 1 - LEVEL / 2 / many) + power) for many in (rows, 1))
            seen = None if seen is None else seen * of_all / alone
            if ratio is not None and ratio.seen is not None:
                ratio = dataclasses.replace(ratio, seen=ratio.seen ** (of_all / alone))
        return dataclasses.replace(self, p=p, rows=rows, seen=seen, ratio=ratio)

    has_zeros: bool = False

    @property
    def stands_out(self) -> bool:
        """Whether it differs beyond chance."""
        if self.ratio is not None:
            return beyond_chance(self.p, self.ratio.low, self.ratio.high, 1.0)
        return beyond_chance(self.p, self.low, self.high)

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
        """Both means, why they say less than they seem to, and of how many traces outcomes are, if not of all."""
        why = self.why()
        of = f" (in {self.part()}; the others have no outcome)" if self.metric in FIRST and self.part() else ""
        # A few large tasks may make the means differ the other way.
        against = self.ratio is not None and (self.ratio.value - 1) * self.difference < 0
        middle = "the median task" if self.paired else "geometric means"
        times = f" (but ×{_short(self.ratio.value)} in {middle})" if self.ratio is not None and against else ""
        return f"{_short(self.first)} to {_short(self.second)}{times}{of}" + (f": {why}" if why else "")

    def part(self) -> str:
        """Of how many traces the means are; "" where that is all."""
        some = f"{self.traces[0]} of {self.asked[0]} and {self.traces[1]} of {self.asked[1]} traces"
        return some if self.traces != self.asked else ""

    def why(self) -> str:
        """Why it is no change; "" where it differs beyond chance."""
        if self.stands_out:
            return ""
        if self.p is None:
            same = not self.difference and not self.differing
            return "the same" if same else f"too few tasks {'differ ' if self.paired else ''}to tell"
        if self.least is not None and self.least * self.rows >= LEVEL:
            return f"too few tasks {'differ ' if self.paired else ''}for {self.rows} rows"
        ends = (self.low, self.high, 0.0) if self.ratio is None else (self.ratio.low, self.ratio.high, 1.0)
        if self.rows > 1 and beyond_chance(0.0, *ends) and not self.without:
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
    """

    names: tuple[str, str]
    side: np.ndarray
    heads: tuple[str, str]
    unread: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def joined(cls, text: str | None, traces: Traces) -> tuple[Traces, Sides | None]:
        """The sides that a person names, or None for none.

        Two folders with a comma between them; `system` or `model` for what the log states, where it states two, and
        `system=A,B` of several; `before=DATE` for when traces begin; else the path of a table. Sides that are not named
        in order come in that of their first dates, without these in that of names or of the table's rows.

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
        return traces, cls(names, side, names, unread)


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
      unplaced: how many other traces were refused without a word on their side.
      paid: what a success cost on each side.
    """

    sides: Sides
    rows: list[SideDifference]
    bounds: list[SideBound]
    lost: list[Uncompared]
    task: np.ndarray
    apart: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    unread: tuple[UnreadOutcomes, ...] = ()
    unplaced: int = 0
    paid: tuple[SuccessCost, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        names = self.sides.names
        lacking = [dataclasses.asdict(row) | {"sides": [names[one] for one in row.sides]} for row in self.lost]
        rows = [dataclasses.asdict(row) | {"stands_out": row.stands_out, "without": row.without} for row in self.rows]
        bounds = [dataclasses.asdict(row) for row in self.bounds]
        told = {"changed": self.changed(), "lines": self.lines(), "unread": [*map(dataclasses.asdict, self.unread)]}
        return {"sides": names, "differences": rows, "uncompared": lacking, "bounds": bounds, "same": self.same, **told}

    def changed(self) -> str:
        """What `ASKED` names: success first and what may be behind it, what else changed, and what did not."""
        asked = sorted((row for row in self.rows if row.metric in ASKED), key=lambda row: [*ASKED].index(row.metric))
        told = [f"{row.metric} {row.told()}" for row in asked if row.metric in FIRST]
        unpaired = [ASKED[row.metric] for row in asked if not row.paired]
        of = "" if len(unpaired) == len(asked) else f" in {', '.join(unpaired)}"
        harder = (f"no task is on both sides{of}: those of one may be harder",) if unpaired else ()
        apart = (*map(str, self.unread), *self.apart, *harder)
        if not told:
            lost = [_place(one.sides, self.sides.heads) for one in self.lost if one.metric == "success"]
            told = [f"success is not known on {place}, where no trace has an outcome" for place in lost] + [*apart]
        elif apart:
            told[-1:] = [f"{told[-1]}, but {apart[0]}", *apart[1:]]
        quiet: dict[str, list[str]] = {}
        parts: dict[str, list[str]] = {}
        for row in asked:
            if row.stands_out and row.metric not in FIRST:
                told.append(f"{ASKED[row.metric]} {row.told()}")
                parts.setdefault(row.part(), []).append(ASKED[row.metric])
            elif row.metric not in FIRST:
                quiet.setdefault(row.why(), []).append(ASKED[row.metric])
        told += [f"{', '.join(names)}: {why}" for why, names in quiet.items()]
        others = sum(row.stands_out for row in self.rows if row.metric not in ASKED)
        told += [f"{counted(others, 'other metric')} of the table changed"] if others else []
        for part, names in parts.items():
            of = f" of {', '.join(names)}" if len(parts) > 1 else ""
            told += [f"numbers{of} in {part}"] if part else []
        return "; ".join(told) or "nothing that both sides have a number of"

    def lines(self) -> list[str]:
        """What changed, what was compared, and what too few tasks tell apart, in sentences."""
        without = int((self.sides.side < 0).sum())
        lines = [f"{counted(without, 'trace')} without a side"] if without else []
        were = "were" if self.unplaced > 1 else "was"
        lines += [f"{counted(self.unplaced, 'trace')} of {NO_SIDE} {were} not read"] if self.unplaced else []
        lines.append(f"What changed from {' to '.join(self.sides.heads)}: {self.changed()}.")
        if cost := success_line(self.paid):
            lines.append(f"{cost[0].upper()}{cost[1:]}; not tested.")
        lines += [self._compared_traces()] if self.rows else []
        few: dict[str, list[str]] = {}
        for row in self.rows:
            if row.differing and row.p is None:
                few.setdefault(f"{row.differing} of {row.tasks}", []).append(row.metric)
        lines += [f"the same number in all traces: {', '.join(self.same)}"] if self.same else []
        if not few:
            return lines
        rows = max((row.rows for row in self.rows), default=1)
        others = f", nor below {_least_tasks(rows)} in one of {rows} rows" if rows > 1 else ""
        least = f"a test of traces one a side finds nothing below {_least_tasks(1)} tasks that differ{others}"
        return [*lines, f"too few tasks differ to tell: {_by_reason(few)}; {least}"]

    def _compared_traces(self) -> str:
        """Of how many traces of the sides rows are, and why some are of a selection."""
        fewer: dict[str, list[str]] = {}
        for row in self.rows:
            if row.refused:
                most = "mostly " if len(row.refused) > 1 else ""
                reason = f"{row.traces[0]} and {row.traces[1]}: {most}{next(iter(row.refused))}"
                fewer.setdefault(reason, []).append(row.metric)
        of_side = [self.task[self.sides.side == one] for one in (0, 1)]
        first, second = (np.unique(tasks) for tasks in of_side)
        shared, line = np.intersect1d(first, second), f"{len(of_side[0])} and {len(of_side[1])}"
        if len(shared) and len(shared) < max(len(first), len(second)):
            before, after = (int(np.isin(tasks, shared).sum()) for tasks in of_side)
            alone = f"{len(first) - len(shared)} and {len(second) - len(shared)} tasks are on one side only"
            line = f"{before} and {after} of {line}; {alone}"
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
    """Compare two sides in success, costs and other metrics.

    Args:
      traces: what was read.
      sides: of these traces.
      measured: what `with_costs` gives for them.
      prices: of models and tools.
      success_at: the least outcome of a success, as of `unread_outcomes`.
    """
    rows, lost = side_differences(traces, measured, sides.side), uncompared(measured, sides.side)
    bounds = bounds_of_sides(traces, measured, sides.side, prices)
    judged = next((row.metric for row in rows if row.metric in FIRST), None)
    apart = _apart(traces, sides, None if judged is None else (judged, measured[judged]))
    compared = {row.metric for row in rows}
    same = tuple(name for name in same_in_all(measured, sides.side >= 0) if name in compared)
    rows = [row for row in rows if row.metric not in same]
    unread = tuple(unread_outcomes(traces, success_at, sides.unread, sides.heads))
    paid = tuple(success_costs(traces, measured, sides.heads, sides.side, prices))
    refused = {problem.trace for problem in traces.problems if problem.is_failure and not problem.about}
    told = {problem.trace for problem in traces.problems if problem.kind == REFUSED_ROW}
    unplaced = len(refused - {"", *traces.traces["trace"].to_pylist(), *sides.unread, *told})
    return SideComparison(sides, rows, bounds, lost, task_ids(traces), apart, same, unread, unplaced, paid)


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


def _apart(traces: Traces, sides: Sides, judged: tuple[str, TraceMetric] | None) -> tuple[str, ...]:
    """In what else the sides differ, which may be what changed, and how success differs within each of its kinds.

    The part of traces of each model, system, format and agent is compared as metrics are, with Holm's correction for
    all. It is told where it differs beyond chance, where tasks are too few for any test, and, tested or not, where the
    part of what is settled before a run differs by `MIXED`.
    """
    task, kept, kinds = task_ids(traces), sides.side >= 0, _kinds(traces)
    first, second = (np.unique(task[sides.side == one]) for one in (0, 1))
    few = (len(np.intersect1d(first, second)) or min(len(first), len(second))) < LEAST_TASKS
    found = []
    for word, names in kinds.items():
        whole = [{name for name, has in names.items() if has[sides.side == one].any()} for one in (0, 1)]
        if whole == [{name} for name in sides.names]:  # it makes the sides
            continue
        for name, has in names.items():
            row = _compared("", numbered(has.astype(np.float64)), sides.side, task)  # a model may be called tokens
            if row is not None and 0 < has[kept].sum() < kept.sum():  # else it says nothing
                row = dataclasses.replace(row, metric=name)
                found.append((word, row, fact_of(has[kept].astype(np.float64))))
    corrected = holm([math.nan if row.p is None else row.p for _, row, _ in found], [fact for *_, fact in found])
    told: dict[str, list[SideDifference]] = {}
    unsure: set[str] = set()
    for (word, row, _), p in zip(found, corrected, strict=True):
        beyond = beyond_chance(p, row.low, row.high)
        if beyond or (few and row.difference) or (word != "agent" and abs(row.difference) >= MIXED):
            told.setdefault(word, []).append(row)
            unsure |= set() if beyond else {word}
    said = []
    for word, rows in told.items():
        rows = sorted(rows, key=lambda row: -abs(row.difference))
        shares = [f"{printable(row.metric, 60)} in {_part(row.first)} against {_part(row.second)}" for row in rows]
        more, chance = ["…"] * (len(shares) > MOST_TOLD), "; tasks are too few to tell whether by chance" if few else ""
        chance = chance or ("; not beyond chance" if word in unsure else "")
        said.append(f"the sides differ in {word}, too ({', '.join(shares[:MOST_TOLD] + more)} of traces{chance})")
        if judged and word in BESIDE:
            said.append(_within(word, kinds[word], sides, task, *judged))
    return tuple(said)


def _within(
    word: str, names: dict[str, np.ndarray], sides: Sides, task: np.ndarray, name: str, metric: TraceMetric
) -> str:
    """How a metric differs between the sides within each model, or another kind, that both have."""
    every = {kind: _compared(name, metric, np.where(has, sides.side, -1), task) for kind, has in names.items()}
    both = {kind: row for kind, row in every.items() if row is not None}
    if not both:
        return f"no {word} has traces on both sides, so what it does cannot be told from what changed"
    corrected = holm([math.nan if row.p is None else row.p for row in both.values()])
    tests, told = sum(row.p is not None for row in both.values()), []
    for (kind, row), p in zip(both.items(), corrected, strict=True):
        why = row.corrected(p, tests).why()
        told.append(f"{printable(kind, 60)} {_short(row.first)} to {_short(row.second)}, {why or 'beyond chance'}")
    told[MOST_TOLD:] = ["…"] * (len(told) > MOST_TOLD)
    return f"{name} within each {word} ({'; '.join(told + _together(names, sides.side, task, metric.value))})"


def _together(names: dict[str, np.ndarray], side: np.ndarray, task: np.ndarray, value: np.ndarray) -> list[str]:
    """The difference within each task and kind that both sides have, over tasks; empty where they share none.

    A task gives the mean of its kinds' differences, weighted by n m / (n + m) with n and m traces on the sides.

    Reference: Cochran 1954, Some methods for strengthening the common χ² tests.
    """
    kind = np.full(len(side), -1)
    for number, has in enumerate(names.values()):
        kind[has] = number
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
    """Traces of each model, system and format, and those in which each agent acts: bool [traces]; most traces first.

    And those in which an agent acts with a model, of agents that have another one than their trace somewhere.
    """
    named = {word: [*enumerate(name or "none stated" for name in traces.traces[word].to_pylist())] for word in BESIDE}
    agents, trace = traces.agents["name"].to_pylist(), np.asarray(traces.graph.agent_trace).tolist()
    acting = np.flatnonzero(TeamFacts(traces).counts.acts[: len(agents)]).tolist()
    found: dict[str, dict[str, np.ndarray]] = {}
    named["agent"] = [(trace[agent], agents[agent]) for agent in acting]
    named[MODEL_OF_AGENT] = [
        (row, f"{agent}: {model or 'none stated'}")
        for agent, rows in agent_models(traces).items()
        for row, models in rows.items()
        for model in models
    ]
    for word, pairs in named.items():
        rows: dict[str, set[int]] = {}
        for row, name in pairs:
            rows.setdefault(name, set()).add(row)
        most = sorted(rows, key=lambda name: (-len(rows[name]), name))[:MOST_NAMES]
        found[word] = {name: np.isin(np.arange(traces.sizes.traces), [*rows[name]]) for name in most}
    return found


def _least_tasks(rows: int) -> int:
    """Tasks that must differ, all the same way, for a p below 0.05 in one of so many rows: 2 / 2ⁿ is the least p."""
    return math.floor(math.log2(2 * rows / LEVEL)) + 1


def _place(sides: Sequence[int], names: Sequence[str]) -> str:
    return "either side" if len(sides) > 1 else names[sides[0]]


def _part(share: float) -> str:
    return f"{100 * share:.0f} %"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:z.3g}"


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
    for folder in folders:
        if not Path(folder).exists():
            raise CreditError(f"{folder} does not exist; {EXPECTED}")
    if len(folders) != 2:
        raise CreditError(f"sides are {', '.join(folders)}; {EXPECTED}")
    places = [Path(folder).resolve() for folder in folders]
    if places[0].is_relative_to(places[1]) or places[1].is_relative_to(places[0]):
        raise CreditError(f"sides are {', '.join(folders)}, of which one lies in the other; {APART}")
    files = traces.traces["file"].to_pylist()
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
    "errors": "events, or calls of a tool, whose status the log calls an error",
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
    """What a change may cost or gain beside metrics: of each trace outcome, errors, loops, tokens, time, calls.

    Outcomes are left out where all are 0 or 1, since "success" has them. "loops" are those of `ToolCalls`; "tokens" are
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

    lacking = (lacking_traces(traces), LACKING)

    def summed(cost: np.ndarray, what: str, *refused: tuple[np.ndarray, str]) -> TraceMetric:
        total = np.bincount(trace, cost, m)
        of_action = np.bincount(trace, facts.action & np.isnan(cost), m) > 0
        return numbered(total, *refused, lacking, (of_action, UNCOUNTED + what), (np.isnan(total), SILENT))

    found = {"outcome": numbered(outcome, (np.isnan(outcome), "the trace has no outcome"))} if graded else {}
    loops = calls.loop_counts()
    found |= {
        "errors": numbered(
            np.bincount(trace, calls.counted, m), (~has_statuses(traces), "the log states no status"), lacking
        ),
        "loops": numbered(loops, (np.isnan(loops), "the log has no arguments of calls"), lacking),
        "tokens": summed(costs.tokens, ""),
        "input_tokens": summed(costs.input_tokens, " that it read"),
    }
    if prices is not None:
        names, model = event_models(traces)
        foreign = np.array([name not in prices.models for name in names])[model]
        acts = facts.action | np.isfinite(costs.tokens + costs.input_tokens)
        unpriced = np.bincount(trace, acts & foreign & np.isnan(costs.money), m) > 0
        found["money"] = summed(costs.money, ", read or generated", (unpriced, UNPRICED))
    if "costs.money" in traces.evidence:
        logged = stated_costs(traces, "money")[:m]
        found["logged_money"] = numbered(logged, (np.isnan(logged), "the log does not state the money of all calls"))
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
    one number each. Intervals are those of `graphs.task_means`, from `LEAST_TASKS` tasks that differ on.
    P-values are those of differences with the other sign, or of tasks on the other side, by chance (`graphs.dealing`).
    Of unpaired tasks Welch's counts where it is above that, since sides may differ in spread alone. Of `AMOUNTS` all
    this is of logarithms, and their ratios have the intervals, unless a task that differs has 0 on one side: then
    pairs of fewer than `LEAST_OF_ANY` tasks have none. Those of log-normal amounts, of which 10 to 60 % are 0 on one
    side, held 92 to 97 %.

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
    task = task_ids(traces)
    found = [_compared(name, metric, side, task) for name, metric in metrics.items()]
    known = [one for one in found if one is not None]
    of_first: dict[bool, list[SideDifference]] = {first: [] for first in (True, False)}
    for one in known:
        of_first[one.metric in FIRST].append(one)
    rows: dict[str, SideDifference] = {}
    for family in of_first.values():
        tests = sum(one.p is not None for one in family)
        p_values = holm([math.nan if one.p is None else one.p for one in family])
        rows |= {one.metric: one.corrected(p, tests) for one, p in zip(family, p_values, strict=True)}
    return [rows[one.metric] for one in known]


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

    `side_differences` compares only traces that lack nothing, and these may be the small ones.

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
    of_side = [np.flatnonzero(side == one) for one in (0, 1)]
    names = [name for name in SUMMED if name in metrics and not np.isfinite(metrics[name].value[side >= 0]).all()]
    if not names:
        return []
    costs, trace = event_costs(traces, prices), np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    task, found = task_ids(traces), []
    for name in names:
        known = np.isfinite(metrics[name].value)
        cost = ToolCalls(traces).counted.astype(np.float64) if name == "errors" else getattr(costs, name)
        least = np.where(np.isnan(cost), costs.least_money if name == "money" else 0.0, cost)
        amount = np.bincount(trace, least, traces.sizes.traces)
        whole = tuple(bool(known[rows].all()) for rows in of_side)
        means = [float(_by_task(amount, rows, task)[1].mean()) for rows in of_side]
        if all(mean or all_ for mean, all_ in zip(means, whole, strict=True)):
            found.append(SideBound(name, means[0], means[1], (whole[0], whole[1]), len(np.unique(task[side >= 0]))))
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


def _compared(name: str, metric: TraceMetric, side: np.ndarray, task: np.ndarray) -> SideDifference | None:
    """One metric; None where a side has no number."""
    value, means = metric.value, []
    for one in (0, 1):
        rows = np.flatnonzero(np.isfinite(value) & (side == one))
        means.append((*_by_task(value, rows, task), len(rows)))
    (tasks, first, before), (others, second, after) = means
    if not (before and after):
        return None
    shared, i, j = np.intersect1d(tasks, others, return_indices=True)
    paired = len(shared) > 0
    error, freedom, test, differing, change = 0.0, 0.0, Dealt(1.0, 1.0), None, 0.0
    as_ratio, ends = is_amount(name), (math.nan, math.nan)
    if paired:
        first, second = first[i], second[j]
        kept = np.isfinite(value) & np.isin(task, shared)
        before, after = (int((kept & (side == one)).sum()) for one in (0, 1))
        differs = ~_alike(first, second)
        differing, x, y = int(np.count_nonzero(differs)), first[differs], second[differs]
        as_ratio = as_ratio and bool((np.minimum(x, y) > 0).all())
        apart = np.zeros(len(shared))
        apart[differs] = np.log(y / x) if as_ratio else y - x
        if differing >= LEAST_TASKS:
            error, freedom, test = _spread(apart) / len(shared) ** 0.5, len(shared) - 1.0, flipped(apart)
            change = float(np.median(apart[differs]) if as_ratio else apart.mean())
            if as_ratio:
                ends = median_interval(apart[differs])
            elif not is_amount(name) or len(apart) >= LEAST_OF_ANY:  # log-normal amounts, 0 in 60 %: 8 tasks held 85 %
                ends = mean_interval(apart)
        elif differing:
            test = _of_few(value, side, task, kept, apart)
    elif min(len(first), len(second)) >= LEAST_TASKS:
        both = np.concatenate([first, second])
        if _spread(both) > 0:
            as_ratio = as_ratio and bool(both.min() > 0)
            if as_ratio:
                both = np.log(both)
                both -= both.mean()  # a unit changes nothing
            x, y = both[: len(first)], both[len(first) :]
            parts = [_spread(part) ** 2 / len(part) for part in (x, y)]
            error = sum(parts) ** 0.5
            squares = sum(part**2 / (len(of) - 1) for part, of in zip(parts, (x, y), strict=True))
            freedom = sum(parts) ** 2 / squares if squares > 0 else 0.0
            test = dealt(both, np.arange(len(both)) < len(first), np.zeros(len(both)))
            change, ends = float(y.mean() - x.mean()), difference_interval(x, y)
    before_mean, after_mean = float(first.mean()), float(second.mean())
    difference = 0.0 if _alike(before_mean, after_mean) else after_mean - before_mean
    low, high, p, seen, ratio = None, None, test.p, None, None
    if error > 0:
        welch, seen = _by_student(change, error, freedom)
        p = p if paired else max(p, welch)
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
    numbers = (low, high, p if test.least < LEVEL else None, test.least if test.least < 1 else None, seen)
    compared = len(shared) if paired else len(np.union1d(tasks, others))
    asked = side >= 0
    if paired:  # a task of one side is not compared, whatever its numbers
        asked &= np.isin(task, np.intersect1d(task[side == 0], task[side == 1]))
    counts = compared, (before, after), paired, differing, _refused(metric, asked)
    every = int((asked & (side == 0)).sum()), int((asked & (side == 1)).sum())
    found = SideDifference(name, before_mean, after_mean, difference, *numbers, *counts, every, ratio)
    return dataclasses.replace(found, freedom=freedom if error > 0 else 0.0, has_zeros=has_zeros)


def _of_few(value: np.ndarray, side: np.ndarray, task: np.ndarray, kept: np.ndarray, apart: np.ndarray) -> Dealt:
    """The test where few tasks differ: by task where `LEAST_TASKS` vary, else by trace, with as many on each side.

    Which one does not depend on the side of a trace within its task.

    Args:
      value, side, task: of each trace: [traces].
      kept: the traces that are compared: those of `apart`, which is a difference of each shared task.
    """
    rows = np.flatnonzero(kept & (side >= 0))
    _, of = np.unique(task[rows], return_inverse=True)
    x, second = value[rows], side[rows] == 1
    low, high = np.full(of.max() + 1, np.inf), np.full(of.max() + 1, -np.inf)
    np.minimum.at(low, of, x)
    np.maximum.at(high, of, x)
    varies = ~_alike(low, high)
    if int(varies.sum()) >= LEAST_TASKS:
        return flipped(apart)
    if min(int(second.sum()), int((~second).sum())) < LEAST_TASKS:
        return Dealt(1.0, 1.0)
    # A task's difference is a sum over the traces of its second side, up to what no dealing changes.
    weight = 1 / np.bincount(of, second) + 1 / np.bincount(of, ~second)
    return dealt(np.where(varies[of], x - low[of], 0.0) * weight[of], second, of)


def _alike(first: np.ndarray | float, second: np.ndarray | float) -> np.ndarray:
    """Whether numbers differ by no more than single precision rounds."""
    return np.asarray(np.abs(np.subtract(second, first)) <= ROUNDING * np.maximum(np.abs(first), np.abs(second)))


def _spread(values: np.ndarray) -> float:
    """The standard deviation, 0 where all values are alike."""
    return 0.0 if _alike(values.min(), values.max()) else float(values.std(ddof=1))


def _by_student(difference: float, error: float, freedom: float) -> tuple[float, float]:
    """Student's p-value, and the difference that the test finds with `POWER`."""
    from scipy.special import stdtr, stdtrit  # comes with JAX; slow to import

    p = 2 * float(stdtr(freedom, -abs(difference) / error))
    return p, float(stdtrit(freedom, 0.975) + stdtrit(freedom, POWER)) * error
