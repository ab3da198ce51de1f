"""Whether a verdict passes more failed traces, or fails more succeeded ones, on one side, or of one system."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from credit.doctor.verdict_errors import VerdictErrors
from credit.reports.prevalence import of_all
from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import numbered
from credit.reports.verdict_channels import says
from credit.sides.shown_changes import shown
from credit.sides.side_rows import SideDifference
from credit.sides.side_tests import compare_metric
from credit.sides.side_words import MOST_TOLD, up_to
from graphs.dealing import Dealt, dealt
from graphs.task_means import LEVEL, holm
from graphs.text import apart, natural_key, part_of, percent, printable, signed
from graphs.traces.batch import Traces

__all__ = ["VerdictChange", "held_to_reference", "told_changes", "verdict_changes", "verdicts_by_system"]


LOOSE = 0.2
"""Of the p-value below which a judge may have changed: what is missed would be told as a change of the runs.
Of nine logs whose judge came to pass 80 % of what failed, up from 5 %, three show it beyond chance, eight here."""


@dataclasses.dataclass(frozen=True)
class VerdictChange:
    """The part of a verdict's failed, or succeeded, traces in which it is wrong, on two sides.

    Attributes:
      verdict: its channel.
      succeeded: whether they succeeded, and the verdict fails some; else they failed, and it passes some.
      wrong, traces: how many, of each side.
      difference: of these parts, second − first, over tasks as `verdict_changes` weighs them.
      p: of the test that the sides are alike, by Holm's method for all verdicts; None where no sides of these traces
        would give a p below 0.05.
      least: the least p that any sides of these traces would give.
      alone: p before Holm's method; None likewise.
      tests: how many `p` is corrected for.
      against: as of `VerdictErrors`.
      of_any: p alone over tasks of any kind, which may show more.
      shares: the parts of all traces with a verdict, weighted by it, where some of these have no outcome; else NaN.
    """

    verdict: str
    succeeded: bool
    wrong: tuple[int, int]
    traces: tuple[int, int]
    difference: float
    p: float | None
    least: float
    alone: float | None = None
    tests: int = 1
    against: str = ""
    of_any: float = 1.0
    shares: tuple[float, float] = (math.nan, math.nan)

    def raised(self, times: float, parts: int) -> VerdictChange:
        """The same with its p-value so many times as large, as of one part of several."""
        p = None if self.p is None else min(self.p * times, 1.0)
        return dataclasses.replace(self, p=p, tests=self.tests * parts)

    @property
    def stands_out(self) -> bool:
        """Whether it differs beyond chance."""
        return self.p is not None and self.p < LEVEL

    @property
    def name(self) -> str:
        """What a sentence on a change calls it."""
        return _kind(self.verdict, self.succeeded, self.against)

    def told(self) -> str:
        """The counts of both sides, and what the test says; the difference over tasks where counts go another way."""
        if math.isfinite(self.shares[0]):
            return f"{self.name} {self.parts()}, {self.says()}"
        sides = [part_of(*of) for of in zip(self.wrong, self.traces, strict=True)]
        before, after = (some / every for some, every in zip(self.wrong, self.traces, strict=True))
        unlike = self.stands_out and (after - before) * self.difference <= 0
        return f"{self.name} {' to '.join(sides)}{f', by task {signed(self.difference, 2)}' * unlike}, {self.says()}"

    def parts(self) -> str:
        """Of each side, in how many of these traces it is wrong, after the weighted part where there is one."""
        seen = " to ".join(f"{some} of {of}" for some, of in zip(self.wrong, self.traces, strict=True))
        if math.isfinite(self.shares[0]):
            return f"{' to '.join(apart(self.shares, percent, 0))}, weighted by its verdict from {seen} seen"
        return seen

    def says(self) -> str:
        """Whether a change is shown."""
        if self.wrong == (0, 0) or self.wrong == self.traces:
            return "the same"
        few = self.p is None or self.least * self.tests >= LEVEL
        return shown(beyond=self.stands_out, seen="" if few else None)


def verdict_changes(
    errors: Sequence[VerdictErrors], side: np.ndarray, task: np.ndarray, kind: np.ndarray
) -> list[VerdictChange]:
    """Both kinds of errors of each verdict on two sides, those that differ most clearly first.

    Few tasks fail on both sides where each has few runs, so those of one side count, too. A task with n and m traces on
    the sides gives the difference of its parts the weight n m / (n + m). The others give, within each kind of tasks,
    that of the means over the h and k tasks of each side, with h k / (h + k). By chance the difference of a task might
    have the other sign, and a task of one side might be of the other one's of its kind (`graphs.dealing.dealt`): runs
    of a task may all be misjudged alike. Where a task has more traces on one side, the larger p counts, of this and of
    traces that were dealt otherwise within tasks. P-values are corrected together.

    Where traces with a verdict have no outcome, all of them are compared as `compare_metric` does, by what each adds to
    the part of its side, weighted by the verdict in that side (`of_all`): p + (w − p) y / ȳ, with p the part, w whether
    the verdict is wrong if the trace is of the kind, and y the number of it.

    Args:
      errors: of `verdict_errors`.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      task: of each trace: int [traces].
      kind: of tasks, of each trace: int [traces].

    Reference: Cochran 1954, Some methods for strengthening the common χ² tests; Holm 1979; Tarone 1990.

    Examples:
      >>> from credit.doctor.verdict_errors import Part
      >>> rows, part = np.arange(16), Part(0.5, 0.2, 0.8)
      >>> one = VerdictErrors("checker", rows, np.zeros(16, bool), rows % 2 == 1, part, part, part)
      >>> [change.told() for change in verdict_changes([one], rows % 2, rows // 2, rows * 0)]
      ['failures that checker passes 0 of 8 to 8 of 8, beyond chance']
    """
    found = _corrected(_compared(errors, side, task, kind))
    return sorted(found, key=lambda one: (1.0 if one.p is None else one.p, -abs(one.difference)))


def held_to_reference(row: SideDifference, outcome: str, changes: Sequence[VerdictChange]) -> SideDifference:
    """The row of outcomes that is told as a change, with why it may be its judge that changed; itself elsewhere.

    That is where the judge passes more of what a reference rejects on the side of more success, or fails more of what
    it passes on that of less, beyond chance or with a p below `LOOSE`.

    Args:
      row: of the outcome.
      outcome: the name of its reward.
      changes: of `verdict_changes`.
    """
    for one in changes if row.is_told else ():
        rises = (one.difference > 0) != one.succeeded
        moved = one.stands_out or one.of_any < LOOSE
        if one.against and one.verdict == outcome and moved and rises == row.rises:
            does, said = ("fail", "pass") if one.succeeded else ("pass", "reject")
            does = f"{does}{'es' * (not one.succeeded) or 's'}" if one.stands_out else f"may {does}"
            more = "more" if one.difference > 0 else "less"
            judge = f"{printable(outcome, 60)} {does} {more} of what {says(one.against, said)} ({one.parts()})"
            return dataclasses.replace(row, judge=judge)
    return row


def told_changes(changes: Sequence[VerdictChange], *, certain: bool = False) -> str:
    """Sentences on all verdicts that are wrong, or on changes beyond chance; "" without any."""
    told = [one.told() for one in changes if one.stands_out or (one.wrong != (0, 0) and not certain)]
    return "; ".join(up_to(told, MOST_TOLD))


def verdicts_by_system(traces: Traces, errors: Sequence[VerdictErrors]) -> str:
    """Which verdicts are wrong more often of one system that the log states than of others, beyond chance; "" without.

    Each system is compared with all others as two sides are; two are compared once. P-values are corrected together.

    Args:
      traces: what was read.
      errors: of `verdict_errors` on these.
    """
    stated = np.array([name or "" for name in traces.traces["system"].to_pylist()], object)
    names, task = sorted({*stated.tolist()} - {""}, key=natural_key), task_ids(traces)
    kinds, kind = task_kinds(traces)
    within = " within kinds of task" * bool(kinds)
    sides = [np.where(stated == "", -1, stated == name) for name in (names if len(names) > 2 else names[1:])]
    found = _corrected([one for side in sides for one in _compared(errors, side, task, kind)])
    told = []
    for name, good, against in dict.fromkeys(
        (one.verdict, one.succeeded, one.against) for one in found if one.stands_out
    ):
        one = next(each for each in errors if each.name == name)
        every = [(system, *one.counts(stated == system)[2 * good :][:2]) for system in names]
        parts = [f"{printable(system, 60)} {part_of(some, of)}" for system, some, of in every]
        if any(each.weighted for each in one.systems.values()):
            shares = {system: (each.passed, each.refused)[good].share for system, each in one.systems.items()}
            parts = [
                f"{printable(system, 60)} {percent(shares[system])} ({some} of {of} seen)"
                for system, some, of in every
                if math.isfinite(shares.get(system, math.nan))
            ]
        which = f"{_kind(name, good, against)} differ by system beyond chance, compared by task{within}"
        told.append(f"{which}: {', '.join(up_to(parts, MOST_TOLD))}")
    return "; ".join(told)


def _kind(verdict: str, succeeded: bool, against: str) -> str:
    kind, does = ("successes", "fails") if succeeded else ("failures", "passes")
    if against:
        kind = f"runs that {says(against, 'pass' if succeeded else 'reject')} and"
    return f"{kind}{' that' * (not against)} {printable(verdict, 60)} {does}"


def _compared(
    errors: Sequence[VerdictErrors], side: np.ndarray, task: np.ndarray, kind: np.ndarray
) -> list[VerdictChange]:
    """`verdict_changes` without a correction."""
    found: list[VerdictChange] = []
    for one in errors:
        sides = side[one.rows]
        all_known = (side[one.judged] >= 0).sum() <= (sides >= 0).sum()
        weighted = None if all_known else _weighted(one, side)
        chosen = weighted is None and not all_known and _are_chosen(one, side)
        for good in (False, True):
            of = (one.good == good) & (sides >= 0)
            wrong, second = one.wrong[of], sides[of] == 1
            (first, every), (last, all_) = ((int(wrong[end].sum()), int(end.sum())) for end in (~second, second))
            if every and all_:
                tasks, kinds = task[one.rows][of], kind[one.rows][of]
                difference, test = _tested(wrong, second, tasks, kinds)
                of_any = _tested(wrong, second, tasks, np.zeros_like(kinds))[1].p if one.against else 1.0
                p = test.p if test.least < LEVEL and not chosen else None
                counts = (first, last), (every, all_)
                change = VerdictChange(
                    one.name, good, *counts, difference, p, test.least, against=one.against, of_any=of_any
                )
                found.append(change if weighted is None else _of_all(change, *weighted[good], side, task, kind))
    return found


def _are_chosen(one: VerdictErrors, side: np.ndarray) -> bool:
    """Whether the verdict decides which of its traces have an outcome, beyond chance."""
    of = side[one.judged] >= 0
    return dealt(one.passes[of] * 1.0, np.isin(one.judged, one.rows)[of], np.zeros(of.sum(), int)).p < LEVEL


def _weighted(one: VerdictErrors, side: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...] | None:
    """Of all traces, how much each is of those that failed, and whether it passes; then of those that succeeded, and
    whether it does not; None where `of_all` has none."""
    outcome, passes = np.full((2, len(side)), math.nan)
    outcome[one.rows], passes[one.judged] = one.good, one.passes
    succeeded = of_all(outcome, passes, side)
    return None if succeeded is None else ((1 - succeeded, passes), (succeeded, 1 - passes))


def _of_all(
    change: VerdictChange, of_kind: np.ndarray, wrong: np.ndarray, side: np.ndarray, task: np.ndarray, kind: np.ndarray
) -> VerdictChange:
    """The change weighted by the verdict in each side."""
    added, shares = np.full(len(side), math.nan), []
    for of in (side == 0, side == 1):
        size = float(np.nanmean(of_kind[of]))
        shares.append(part := float(np.nanmean((wrong * of_kind)[of])) / size)
        added[of] = part + (wrong[of] - part) * of_kind[of] / size
    metric = numbered(added, (np.isnan(added), "no verdict"))
    row, of_any = (compare_metric(change.name, metric, side, task, of) for of in (kind, None))
    if row is None or of_any is None:
        return change
    any_, both = 1.0 if of_any.p is None else of_any.p, (shares[0], shares[1])
    return dataclasses.replace(
        change, difference=row.difference, p=row.p, least=row.least or 1.0, of_any=any_, shares=both
    )


def _corrected(found: list[VerdictChange]) -> list[VerdictChange]:
    tests = sum(one.p is not None for one in found)
    corrected = holm([math.nan if one.p is None else one.p for one in found], least=[one.least for one in found])
    return [
        one if one.p is None else dataclasses.replace(one, p=p, alone=one.p, tests=tests)
        for one, p in zip(found, corrected, strict=True)
    ]


def _tested(wrong: np.ndarray, second: np.ndarray, task: np.ndarray, kind: np.ndarray) -> tuple[float, Dealt]:
    """The difference and the test of `verdict_changes`, of traces of one kind on two sides."""
    _, first, of = np.unique(task, return_index=True, return_inverse=True)
    bad, count = (
        np.stack([np.bincount(of, weight * (second == one)) for one in (False, True)]) for weight in (wrong, 1.0)
    )
    both, share = np.all(count > 0, axis=0), bad / np.maximum(count, 1)
    weight = np.where(both, count.prod(axis=0) / count.sum(axis=0), 0.5)
    # Sums over the second side, of which what a pair adds under either sign is a half.
    place, last = np.nonzero((count > 0).T)
    score, stratum = (
        (2 * weight * share)[last, place],
        np.where(both, np.arange(len(both)), len(both) + kind[first] - kind.min())[place],
    )
    test = dealt(score, last == 1, stratum)
    if np.any(count[0, both] != count[1, both]):
        inside, alone = both[of], ~both[place]
        parts = (wrong[inside], score[alone]), (second[inside], last[alone] == 1), (of[inside], stratum[alone])
        by_trace = dealt(*map(np.concatenate, parts))
        test = Dealt(max(test.p, by_trace.p), max(test.least, by_trace.least))
    apart, total = float(((share[1] - share[0]) * weight)[both].sum()), float(weight[both].sum())
    for of_kind in (kind[first] == one for one in np.unique(kind)):
        before, after = (share[one, of_kind & (count[1 - one] == 0)] for one in (0, 1))
        if len(before) and len(after):
            many = len(before) * len(after) / (len(before) + len(after))
            apart, total = apart + many * float(after.mean() - before.mean()), total + many
    return apart / total if total else 0.0, test
