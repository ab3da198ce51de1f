"""Failed against succeeded traces in one number, within tasks that have both, or else within kinds of task, or between.

Where there are sides, a trace, or a task, stands beside others of its own side alone: what came with a version would
take the blame of it. Of 1200 logs in which a side alone makes runs fail, and brings a model, a tool and an agent, 1.5 %
had a cause, and 44 to 94 % with runs of both sides compared.

Where traces of several models or systems are compared with one another, each is ranked beside others of its own: one
that fails more often and is longer would make length a sign of failure. Of 150 pairs of versions of 40 tasks, with two
models that differ in both and one run of each, 79 % had such a star, now 1 %. It is not enough where a model is longer
in just the tasks in which it fails more often: up to 11 % of stars with a correlation of a half, and 39 % of 0.9, of 1
and 2 runs. So traces of one model and system alone are compared where there are enough, which has 2 to 7 % everywhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from credit.reports.deciding_verdict import stands_for
from credit.reports.judged_traces import JudgedTraces, enough_within
from credit.reports.ranks import mean_ranks
from credit.reports.task_kinds import every_kind
from credit.reports.tasks import task_ids
from graphs.dealing import Dealt, dealt, flipped
from graphs.distinct_columns import distinct_columns
from graphs.task_means import LEAST_TASKS, LEVEL, as_tested, chance_above, task_mean
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["ComparedKinds", "UnitCounts", "compared_kinds", "dealt_tasks", "models_and_systems", "within_both"]

LENGTHS = 5
"""Classes of lengths, of equally many traces where more lengths are there. They remove about 90 % of what length adds:
Cochran 1968, The effectiveness of adjustment by subclassification in removing bias in observational studies."""


class UnitCounts(NamedTuple):
    """How many failed and succeeded traces units have, those that have something, and the task of each: int [units]."""

    failed: np.ndarray
    succeeded: np.ndarray
    failed_with: np.ndarray
    succeeded_with: np.ndarray
    task: np.ndarray

    @property
    def alone(self) -> tuple[np.ndarray, np.ndarray]:
        """In how many pairs of a failed and a succeeded trace the failed one alone has it, and the succeeded one."""
        return (
            self.failed_with * (self.succeeded - self.succeeded_with),
            (self.failed - self.failed_with) * self.succeeded_with,
        )

    @property
    def differing_tasks(self) -> int:
        """How many tasks have a pair of a failed and a succeeded trace of which one alone has it."""
        return len(np.unique(self.task[sum(self.alone) > 0]))

    @property
    def varied(self) -> np.ndarray:
        """Whether some traces of the unit have it, and others do not: bool [units]."""
        some = self.failed_with + self.succeeded_with
        return np.asarray((some > 0) & (some < self.failed + self.succeeded))

    def where_varied(self) -> tuple[int, int, int, int, int]:
        """Of units that are `varied`: how many traces with it succeeded, of how many, the same without it, and of how
        many tasks."""
        bad, good, bad_has, good_has = (int(of[self.varied].sum()) for of in self[:4])
        tasks = len(np.unique(self.task[self.varied]))
        return good_has, bad_has + good_has, good - good_has, bad + good - bad_has - good_has, tasks

    @property
    def turned(self) -> bool:
        """Whether the succeeded one alone has it more often, in enough pairs to say so."""
        failed_alone, other = (int(pairs.sum()) for pairs in self.alone)
        return other > failed_alone and other + failed_alone >= LEAST_TASKS

    def shares(self) -> tuple[float, float, float, float]:
        """How many failed traces have it, of how many, and how many succeeded ones: as many as would tell as much if
        they were of one task. A share is the mean over tasks of their units that have both kinds.

        Reference: Kish 1965, Survey Sampling.
        """
        both = (self.failed > 0) & (self.succeeded > 0)
        _, of = np.unique(self.task[both], return_inverse=True)
        weight = 1 / (np.bincount(of)[of] * max(len(np.unique(of)), 1))
        found = []
        for every, some in ((self.failed, self.failed_with), (self.succeeded, self.succeeded_with)):
            many = 1 / float((weight**2 / every[both]).sum()) if both.any() else 0.0
            found += [many * float((weight * some[both] / every[both]).sum()), many]
        return found[0], found[1], found[2], found[3]


class ComparedKinds(NamedTuple):
    """Which traces are compared, and within what.

    Attributes:
      failed, told: of the traces with an outcome, whether each failed, and whether it is of either kind.
      unit: the group or task of each, within which the kinds are compared, or the kind of task with side, model and
        system: to rank runs beside others of their system found 2 failed runs of 25 beyond chance.
      task: the task of each; its kind of task where traces are compared within these.
      kept: whether it is compared.
      within: whether traces of one unit are compared; otherwise tasks of one kind are.
      model: the model and system of each, as a number; -1 where the log does not state them.
      rows: which traces these are.
      side: of each; all 0 without sides.
      relative: whether runs of a task on both sides are compared, each relative to its side (`beside_sides`).
      single: the task of each where traces are compared within kinds of task, and a task counts once; None elsewhere.
      outcome: of each, where these are graded and `test` compares those of traces that have something with others'; two
        classes would lose how much worse a trace is. Of 149 causes in 60 logs of 40 tasks 70 were found so, 56 by two
        classes; of 250 logs without any 7 had one, and of 160 whose outcomes fall with length 8. None elsewhere.
      weight: of each, how many it stands for where a verdict decides who has an outcome (`stands_for`), NaN where too
        few are known to say; None elsewhere.
    """

    failed: np.ndarray
    told: np.ndarray
    unit: np.ndarray
    task: np.ndarray
    kept: np.ndarray
    within: bool
    model: np.ndarray
    rows: np.ndarray
    side: np.ndarray
    relative: bool = False
    single: np.ndarray | None = None
    outcome: np.ndarray | None = None
    weight: np.ndarray | None = None

    @property
    def noun(self) -> str:
        """What traces are compared within."""
        return "task" if self.single is None else "kind of task"

    @property
    def mixed(self) -> bool:
        """Whether traces of several models or systems are compared with one another."""
        return self.within and bool(_several(self.unit[self.kept], self.model[self.kept]).any())

    def across_systems(self) -> ComparedKinds:
        """Of traces that are compared within kinds of task: all of a kind, each ranked beside others of its model,
        system and side."""
        bad, good = (np.bincount(self.task, self.told & of) for of in (self.failed, ~self.failed))
        alike = distinct_columns(self.model, self.side).of
        return self._replace(unit=self.task, kept=(bad * good > 0)[self.task], model=alike)

    def pairs(self, unit: np.ndarray | None = None) -> tuple[int, int]:
        """How many pairs of a failed and a succeeded trace units have, and how many tasks have some.

        Args:
          unit: another one of each trace, such as its task on one side.
        """
        unit = self.unit if unit is None else unit
        each = np.bincount(unit, self.told & self.failed) * np.bincount(unit, self.told & ~self.failed)
        return int(each.sum()), len(np.unique(self.task[each[unit] > 0]))

    def counts(self, has: np.ndarray) -> UnitCounts:
        """The counts of units.

        Args:
          has: whether each trace with an outcome has something, 0 or 1; NaN where its log does not tell.
        """
        known = np.isfinite(has) & self.told
        failed, yes = self.failed[known], has[known] > 0
        _, first, unit = np.unique(self.unit[known], return_index=True, return_inverse=True)
        kinds = (failed, ~failed, failed & yes, ~failed & yes)
        bad, good, bad_has, good_has = (np.bincount(unit, of, len(first)).astype(np.int64) for of in kinds)
        return UnitCounts(bad, good, bad_has, good_has, self.task[known][first])

    def of_traces(self, has: np.ndarray, of: np.ndarray) -> np.ndarray:
        """What `counts` says of the unit of each of these traces, 0 where the log does not tell: [n].

        Args:
          has: as of `counts`.
          of: of each unit of these counts.
        """
        known, found = np.isfinite(has) & self.told, np.zeros(len(has), of.dtype)
        found[known] = of[np.unique(self.unit[known], return_inverse=True)[1]]
        return found

    def test(
        self, value: np.ndarray, length: np.ndarray | None = None
    ) -> tuple[float, float, float, float, float, int]:
        """The chance that a failed one has more, its interval, p, the least p, and how many tasks that rests on; with
        `outcome`, of what a trace has or not, the chance that one with it has the lower outcome.

        With `weight`, the p is the larger of two, the other that of all traces (`_of_all`).

        Args:
          value: of each trace with an outcome; NaN where it has none.
          length: of each; within units it is ranked beside others of its length, too, in `LENGTHS` classes.
        """
        chance, low, high, p, least, tasks = self._test(value, length)
        if self.weight is None or math.isnan(p):
            return chance, low, high, p, least, tasks
        of_all, least_of_all = self._of_all(value, self.unit if self.within else self.side, chance > 0.5)
        p, least = max(p, of_all), max(least, least_of_all)
        low, high = as_tested((low, high), p, 0.5)
        return chance, low, high, p if least < LEVEL else math.nan, least, tasks

    def _of_all(self, value: np.ndarray, unit: np.ndarray, more: bool) -> Dealt:
        """The test that failed ones of all traces for which those with an outcome stand have no more, or no less.

        A unit adds the sum over its pairs of w v (f − g) (x − y), w and v how many each stands for, f and g whether
        they failed, and x and y the ranks of their values: each task might have added as much with the other sign.
        Of 12 logs in which people look at what a judge rejects, and it likes what has nothing to do with failing, 9
        had that as a cause.

        Reference: Horvitz and Thompson 1952, A generalization of sampling without replacement from a finite universe.
        """
        known = np.isfinite(value) & self.told
        if self.weight is None or not np.isfinite(self.weight).all():  # too few are known to say
            return Dealt(1.0, 0.0)
        (_, of), weight = np.unique(unit[known], return_inverse=True), self.weight[known]
        total = np.bincount(of, weight)
        off = [x - (np.bincount(of, weight * x) / total)[of] for x in (self.failed[known], mean_ranks(value[known]))]
        task = (self.task if self.single is None else self.single)[known]
        size = np.bincount(task, total[of] * weight * off[0] * off[1])
        adds = (size / max(float(np.abs(size).max()), 1e-9)).round(9)
        found = flipped(adds[adds != 0])
        return found if bool(adds.sum() > 0) == more else Dealt(1.0, found.least)

    def _test(
        self, value: np.ndarray, length: np.ndarray | None = None
    ) -> tuple[float, float, float, float, float, int]:
        """`test` of the traces with an outcome alone."""
        if self.relative:
            return self._beside_sides(value)
        by_outcome = self.outcome is not None and bool(np.isin(value[np.isfinite(value)], (0, 1)).all())
        rows = np.isfinite(value) & (self.kept | by_outcome)
        failed, task, beside = (of[rows] for of in (self.failed, self.task, self.model[:, None]))
        unit = (self.unit if self.within else self.side)[rows]
        if length is not None and len(beside):
            edges = np.unique(length[rows])
            if len(edges) > LENGTHS:
                edges = np.unique(np.quantile(length[rows], np.linspace(0, 1, LENGTHS + 1)[1:-1]))
            beside = np.column_stack([beside, np.searchsorted(edges, length[rows])])
        single = task if not self.within else None if self.single is None else self.single[rows]
        if by_outcome and self.outcome is not None:
            return _compared(-self.outcome[rows], value[rows] > 0, unit, task, beside, self.within, single)
        return _compared(value[rows], failed, unit, task, beside, self.within, single)

    def holds_beside(self, has: np.ndarray, other: np.ndarray, looked: float) -> bool:
        """Whether failed ones have something more often beyond chance beside runs that are alike in another thing; or,
        where such runs are not ranked, among those without that.

        Args:
          has: as of `counts`.
          other: whether each of these traces has the other thing: bool [n].
          looked: how many things were looked at, by which p is corrected.
        """
        beside = self.within and not self.relative and self.single is None
        of = self.test(has, other) if beside else self.test(np.where(other, math.nan, has))
        return of[0] > 0.5 and of[3] * looked < LEVEL

    def _beside_sides(self, value: np.ndarray) -> tuple[float, float, float, float, float, int]:
        """`test` of the runs of a task on both sides, without what the task, the side and model add to each number.

        What a side adds may differ from task to task. So it is not enough where a value is commoner in just the tasks
        to which it adds more: of 600 such logs without an effect up to 10 % had one.

        Reference: Frisch and Waugh 1933; Cameron, Gelbach and Miller 2008, for tasks as clusters.
        """
        known = np.isfinite(value) & self.told
        classes = [of[known][:, None] == np.unique(of[known]) for of in (self.side, self.model)]
        both = np.column_stack([self.failed[known], value[known], *classes]).astype(np.float64)
        _, of = np.unique(self.task[known], return_inverse=True)
        size = np.maximum(np.bincount(of), 1)
        both -= np.stack([np.bincount(of, column) / size for column in both.T], axis=1)[of]
        both, beside = both[:, :2], both[:, 2:]
        both -= beside @ np.linalg.lstsq(beside, both, rcond=None)[0]
        adds = np.bincount(of, both.prod(axis=1)).round(9)
        p, least = flipped(adds[adds != 0])
        chance = 0.5 + float(adds.sum()) / (2 * max(float(np.abs(adds).sum()), 1e-9))
        return chance, math.nan, math.nan, p if least < LEVEL else math.nan, least, int(np.count_nonzero(adds))

    def over_tasks(self, has: np.ndarray, beside: np.ndarray) -> tuple[float, float]:
        """p and the least p of the test that failed traces have something no more often than others, of any task.

        The p is the larger of two: what if it had been dealt to other traces that are alike, and if what each task adds
        had the other sign. By the first alone, what all runs of a task have was found in a tenth of logs of chance.

        Args:
          has: as of `counts`.
          beside: of each of these traces, which others it is like: int [n].
        """
        known = np.isfinite(has) & self.told
        failed, some = self.failed[known].astype(np.float64), has[known] > 0
        of = distinct_columns(beside[known], self.side[known]).of
        size = np.maximum(np.bincount(of), 1)
        off = (failed - (np.bincount(of, failed) / size)[of]) * (some - (np.bincount(of, some) / size)[of])
        adds, (p, least) = np.bincount(self.task[known], off).round(9), dealt(failed, some, of)
        p = max(p, flipped(adds[adds != 0]).p) if adds.sum() > 0 else 1.0
        if self.weight is not None:
            p = max(p, self._of_all(has, distinct_columns(beside, self.side).of, True).p)
        return p, least


def compared_kinds(
    traces: Traces, judged: JudgedTraces, *, between: bool = False, by_kind: bool = True, by_outcome: bool = False
) -> ComparedKinds:
    """Which of `judged.rows` are compared: where traces of one task are too few, within kinds of task if these are
    stated, or else between tasks, which have a number of their failed traces and one of others.

    Args:
      traces: what was read.
      judged: which of these failed.
      between: whether tasks of one side are compared where traces of one task and side are too few.
      by_kind: whether these are compared within kinds of task.
      by_outcome: whether graded outcomes are themselves compared within tasks (`ComparedKinds.outcome`).

    Examples:
      >>> import credit
      >>> from credit.reports.judged_traces import judged_traces
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> compared_kinds(rows.traces, judged_traces(rows.traces)).test(np.array([1.0, 2.0, 1.0]))[0]
      1.0
    """
    scored = judged.rows
    failed, told = judged.failed[scored], (judged.failed | judged.succeeded)[scored]
    _, task = np.unique(task_ids(traces)[scored], return_inverse=True)
    within, unit = judged.unit is not None, judged.stratum if judged.unit is None else judged.unit
    side = np.zeros(len(scored), np.int64) if judged.side is None else judged.side
    weight = None if (of_all := stands_for(traces)) is None else of_all[1][scored]
    both = (np.bincount(unit, told & failed) > 0) & (np.bincount(unit, told & ~failed) > 0)
    kept, model = both[unit], models_and_systems(traces)[scored]
    if judged.unit is None:
        of_each = [distinct_columns(side[of], unit[of]).columns[0] for of in (failed, ~failed)]
        few = max((min(int(np.sum(of == one)) for of in of_each) for one in np.unique(side)), default=0) < LEAST_TASKS
        within = (judged.sided and not between) or (bool(kept.any()) and few)
        names, kind = every_kind(traces)
        kind, told_kind = kind[scored], kind[scored] >= 0
        cell = distinct_columns(kind, side, model).of
        single = distinct_columns(cell[told_kind], unit[told_kind], failed[told_kind]).columns
        bad, good = (np.bincount(single[0, single[2] == of], minlength=len(scored)) for of in (1, 0))
        of_both = (bad > 0) & (good > 0)
        if by_kind and names and enough_within(bad[of_both], good[of_both]):
            kept = told_kind & of_both[cell]
            cell, kind = (np.where(told_kind, of, len(scored) + np.arange(len(scored))) for of in (cell, kind))
            return ComparedKinds(failed, told, cell, kind, kept, True, model, scored, side, single=task, weight=weight)
        kept = kept if within else np.ones_like(kept)
    outcome = np.asarray(traces.reward, np.float64)[scored] if by_outcome and judged.of_task else None
    return ComparedKinds(failed, told, unit, task, kept, within, model, scored, side, outcome=outcome, weight=weight)


def dealt_tasks(scores: np.ndarray, chosen: np.ndarray, side: np.ndarray, task: np.ndarray) -> Dealt:
    """The test of tasks on sides, kinds dealt among those of a side: a task of both is not two, so that what it adds to
    the sum might have had the other sign as well. The larger p counts.

    Args:
      scores, chosen: as of `dealt`, of each task on a side.
      side, task: which these are: int [n].
    """
    found, many = dealt(scores, chosen, side), np.unique(task)
    if len(many) == len(task):
        return found
    _, of = np.unique(side, return_inverse=True)
    size, (mean, part) = np.bincount(of), (np.bincount(of, some) for some in (scores, chosen))
    off = (scores - (mean / size)[of]) * (chosen - (part / size)[of])
    adds = np.bincount(np.searchsorted(many, task), off).round(9)
    return Dealt(max(found.p, flipped(adds[adds != 0]).p), found.least)


def within_both(tasks: int, noun: str = "task") -> str:
    """Words behind "beyond chance" of a comparison within tasks: between tasks more may be.

    Args:
      tasks: that have both kinds; 0 where tasks are compared.
      noun: as of `ComparedKinds`.

    Examples:
      >>> within_both(19)
      ' within the 19 tasks with both'
    """
    return f" within the {f'one {noun}' if tasks == 1 else counted(tasks, noun)} with both" if tasks else ""


def models_and_systems(traces: Traces) -> np.ndarray:
    """A number for each model with its system, -1 where a trace does not state the model and others do: int [traces].

    A run that was killed may state none, and is no model that always fails.

    Args:
      traces: what was read.
    """
    models, systems = (traces.traces[of].to_pylist() for of in ("model", "system"))
    names = [(model or "", system or "") for model, system in zip(models, systems, strict=True)]
    number, some = {name: i for i, name in enumerate(sorted({*names}))}, any(models)
    return np.array([-1 if some and not name[0] else number[name] for name in names], np.int64)


def _several(unit: np.ndarray, model: np.ndarray) -> np.ndarray:
    """Whether the unit of each trace has several models: bool [n]."""
    known, one = model >= 0, np.zeros(unit.max(initial=-1) + 1, np.int64)
    one[unit[known]] = model[known]
    several: np.ndarray = (np.bincount(unit, known & (model != one[unit])) > 0)[unit]
    return several


def _beside_its_own(rank: np.ndarray, unit: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Ranks less what a model, or another class, adds to them within units, by least squares over units whose ranks
    vary: `classes` are int [n, kinds of classes], -1 of none.

    Reference: Freedman and Lane 1983, A nonstochastic interpretation of reported significance levels.
    """
    size = np.bincount(unit)
    off = rank / size[unit] - (np.bincount(unit, rank) / size**2)[unit]
    told = np.any([_several(unit, one) & (one >= 0) for one in classes.T], axis=0)
    rows = np.flatnonzero(told & (np.bincount(unit, off**2) > 1e-12)[unit])
    if not len(rows):
        return rank
    of = unit[rows]
    has = np.hstack([one[:, None] == np.unique(one) for one in classes[rows].T]).astype(np.float64)
    many = np.maximum(np.bincount(of, minlength=len(size)), 1)
    inside = has - np.stack([np.bincount(of, column, len(size)) / many for column in has.T], axis=1)[of]
    added = has @ np.linalg.lstsq(inside.T @ inside, inside.T @ off[rows], rcond=None)[0]
    beside = rank.copy()
    beside[rows] -= ((added - (np.bincount(of, added, len(size)) / many)[of]) * size[of]).round(9)
    return beside


def _compared(
    value: np.ndarray,
    failed: np.ndarray,
    unit: np.ndarray,
    task: np.ndarray,
    classes: np.ndarray,
    within: bool,
    single: np.ndarray | None,
) -> tuple[float, float, float, float, float, int]:
    nan = math.nan
    if single is not None:  # a number of a task's failed traces and one of others; those of a side, or kind, a stratum
        (unit, single, kind), at, of, size = distinct_columns(unit, single, failed)
        value, failed = np.bincount(of, value) / size, kind > 0
        task, classes = task[at], classes[at]
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    n, m = np.bincount(unit, failed), np.bincount(unit, ~failed)
    usable = (n > 0) & (m > 0)  # a group may lack the number in all traces of a kind
    pairs, rank = np.where(usable, n * m, 1), mean_ranks(value, unit)
    if not within:
        above = (np.bincount(unit, rank * failed) - n * (n - 1) / 2)[usable]
        weight = 1 / (n + m + 1)  # van Elteren's
        chance, low, high = nan, nan, nan
        if len(n) == 1:
            chance, low, high = chance_above(value[failed], value[~failed])
        elif usable.any():
            chance = float((above * weight[usable]).sum() / (n * m * weight).sum())
            pairs[usable] = (n + m + 1)[usable]
        enough, tasks = bool((np.minimum(n, m) >= LEAST_TASKS).any()), len(np.unique(task))
    if within:
        beside = _beside_its_own(rank, unit, classes)
        _, of = np.unique(task[first][usable], return_inverse=True)
        groups = np.bincount(of)
        shares = [((np.bincount(unit, one * failed) - n * (n - 1) / 2) / pairs)[usable] for one in (rank, beside)]
        plain, above = (np.bincount(of, share, len(groups)) / groups for share in shares)
        chance, low, high, _ = task_mean(above, 0.5)
        enough, tasks = enough_within(n[usable], m[usable]), int(np.count_nonzero((plain != 0.5) | (above != 0.5)))
        pairs[usable] = pairs[usable] * groups[of]  # a task counts once, however many groups it has
        rank = beside
        if single is not None:  # a kind counts by its tasks
            weight = (n * m / (n + m + 1))[usable]
            chance, low, high = float((shares[1] * weight).sum() / max(weight.sum(), 1e-9)), nan, nan
            pairs[usable] = (n + m + 1)[usable]
    if not enough:
        return chance, nan, nan, nan, nan, tasks
    score = rank / pairs[unit]
    p, least = dealt(score, failed, unit) if single is None else dealt_tasks(score, failed, unit, single)
    p = p if least < LEVEL else nan
    low, high = as_tested((low, high), p, 0.5)
    return chance, max(low, 0.0), min(high, 1.0), p, least, tasks
