"""What tasks say of a cause: of pairs of a failed and a succeeded trace of one task, in how many one alone has it.

The interval of how often that is the failed one held 95 to 100 % in worlds of 12 to 40 tasks of 4 and 8 runs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from credit.reports.compared_kinds import ComparedKinds, dealt_tasks
from graphs.distinct_columns import distinct_columns
from graphs.task_means import LEAST_TASKS, LEVEL
from graphs.text import amount, counted, part_of, percent

__all__ = ["CauseEvidence", "cause_evidence"]

LARGE = 0.71
"""Part of the pairs in which one alone has a cause from which the failed one has it much more often: a large effect by
Vargha and Delaney 2000, A critique and improvement of the CL common language effect size statistics."""
POWERED = 1 + 0.84 / 1.96
"""Half intervals that a difference must have to be found in 4 of 5 cases."""


@dataclasses.dataclass(frozen=True)
class CauseEvidence:
    """What traces of one task, and tasks, say of a cause.

    Attributes:
      within: whether traces of one task are compared; tasks of one kind are else.
      pairs: of a failed and a succeeded trace that are compared, and of how many tasks: the log tells of both traces.
      differing: in how many pairs one alone has it, and in how many tasks there are such.
      failed_alone: in how many of these the failed one has it.
      low, high: 95 % interval, over tasks, of what part that is; None without one.
      needed: about how many tasks would show the part that was seen, by one test; 0 where that is no more than half.
      with_it, without: how many tasks have it in half their traces or more, or in fewer, and how many of their traces
        failed, of how many: (tasks, failed, traces).
      between_p: of the test that both kinds of task fail alike, corrected; None with fewer than `LEAST_TASKS` of one.
      once: whether traces of one task are compared, and only tasks with one trace have it.
      noun: as of `ComparedKinds`, of which `pairs` and what is counted of tasks is.
    """

    within: bool
    pairs: tuple[int, int]
    differing: tuple[int, int]
    failed_alone: int
    low: float | None
    high: float | None
    needed: int
    with_it: tuple[int, int, int]
    without: tuple[int, int, int]
    between_p: float | None
    once: bool = False
    noun: str = "task"

    @property
    def small(self) -> bool:
        """Whether a large effect is ruled out."""
        return self.high is not None and self.high < LARGE

    @property
    def _is_of_failing_tasks(self) -> bool:
        """Whether tasks with it fail more often than others: else harder ones cannot be why."""
        (some, lost, of), (others, rest, of_rest) = self.with_it, self.without
        return bool(some and others) and lost * of_rest > rest * of

    def told(
        self,
        kinds: tuple[str, str],
        *,
        sure: bool,
        close: bool,
        wider: bool,
        side: str,
        there: Sequence[str],
        by_kind: bool,
    ) -> str:
        """What was compared, how many have it, and the verdict; that alone of what is beyond chance within tasks.

        Args:
          kinds: what failed and succeeded traces are called.
          sure: whether it is beyond chance.
          close: whether the test narrowly misses.
          wider: as of `LeadingCause`.
          side: of which sides a pair's traces are.
          there: what else may be behind it.
          by_kind: whether a kind of task is named with it, whose tasks may be harder ones.
        """
        bad, good = kinds
        harder = self.noun == "task" and not by_kind and self._is_of_failing_tasks
        undecided = "just short of beyond chance" if close else "undecided"
        apart = self.between_p is not None and self.between_p < LEVEL
        if sure and self.within:
            return "beyond chance" if self.noun == "task" else "beyond chance within kinds of task"
        if sure or not self.differing[0]:
            alike = f"in no {self.noun} do a {bad} and a {good} trace{side} differ in it"
            alike *= bool(self.pairs[0]) and not self.differing[0] and not self.once
            found = self._between("did worse" if bad == "worse" else bad, " on a side" * bool(side))
            found *= self.noun == "task"
            verdict = "beyond chance between tasks" if sure or apart else undecided
            found = f"{found}{',' if self.once else ':'} {verdict}" if found else verdict
            return "; ".join(filter(None, (alike, found, _why(harder, there))))
        (differ, tasks), failed = self.differing, self.failed_alone
        found = f"within {counted(tasks, self.noun)}{side}, of {counted(differ, 'pair')} of a {bad} and a {good} trace"
        found += f" that differ in it, the {bad} one has it in {failed}"
        why = _why(harder and (apart or self.low is None), there)  # without a test within tasks it is between them
        if self.low is None or self.high is None:
            undecided = "too few tasks to tell" if self.noun == "task" else undecided
        else:
            found += f" (by tasks {percent(self.low).removesuffix(' %')} to {percent(self.high)})"
            if self.small:
                return "; ".join(filter(None, (f"{found}: no large effect", why * apart)))
        more = f"about {amount(self.needed)} such tasks" if self.needed else "more runs"
        tell = ("`--group-by task` decides" if wider else "", f"{more} may tell" if self.needed or close else "", why)
        return "; ".join(filter(None, (f"{found}: {undecided}", *tell)))

    def _between(self, did: str, on_side: str) -> str:
        """How many traces failed of tasks with it and of others; "" where no task is of one of these."""
        (some, lost, of), (others, rest, of_rest) = self.with_it, self.without
        if not some or not others:
            return ""
        if self.once:
            where = f"only in tasks run once{on_side}"
            return f"it occurs {where}: {lost} of these {of} {did}, of others {part_of(rest, of_rest)}"
        return f"in tasks with it {lost} of {counted(of, 'trace')} {did}, in others {rest} of {of_rest}"


def _why(harder: bool, there: Sequence[str]) -> str:
    """What may be behind a cause beside chance."""
    reasons = [*["harder tasks"] * harder, *there]
    return f"{' or '.join(reasons)} may be why" if reasons else ""


def cause_evidence(kinds: ComparedKinds, has: np.ndarray, looked: int = 1, p: float | None = None) -> CauseEvidence:
    """The evidence on a cause.

    Args:
      kinds: which traces are compared.
      has: whether each of them has it, 0 or 1; NaN where its log does not tell.
      looked: how many causes were looked at, by which a p is corrected.
      p: of the test of the cause, corrected; between tasks it is the one test.

    Examples:
      >>> import credit
      >>> from credit.reports.compared_kinds import compared_kinds
      >>> from credit.reports.judged_traces import judged_traces
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> found = cause_evidence(compared_kinds(rows.traces, judged_traces(rows.traces)), np.array([1.0, 1.0, 0.0]))
      >>> found.pairs, found.differing, found.failed_alone
      ((2, 1), (1, 1), 1)
    """
    known, found = np.isfinite(has) & kinds.told, kinds.counts(has)
    failed, yes, (alone, other) = kinds.failed[known], has[known] > 0, found.alone
    pairs, task = found.failed * found.succeeded, found.task
    chance, low, high, *_ = kinds._replace(outcome=None).test(has)  # of these pairs
    tested = kinds.within and math.isfinite(low) and bool((alone + other).any())
    needed = 0
    if tested:
        usable = pairs > 0
        _, of = np.unique(task[usable], return_inverse=True)
        shares = np.bincount(of, ((alone + other) / np.maximum(pairs, 1))[usable]) / np.bincount(of)
        if chance > 0.5:
            needed = math.ceil(len(shares) * (POWERED * (high - low) / 2 / (chance - 0.5)) ** 2)
        low, high = (float(np.clip(0.5 + (end - 0.5) / shares.mean(), 0, 1)) for end in (low, high))
    _, _, cell, runs = distinct_columns(kinds.task, kinds.side)
    cell, runs = cell[known], runs[cell][known]  # tasks on one side
    _, first, of_task = np.unique(cell, return_index=True, return_inverse=True)
    size, lost = np.bincount(of_task), np.bincount(of_task, failed)
    most = 2 * np.bincount(of_task, yes) >= size
    sums = [(int(some.sum()), int(lost[some].sum()), int(size[some].sum())) for some in (most, ~most)]
    if kinds.within:
        enough = min(sums[0][0], sums[1][0]) >= LEAST_TASKS
        of_each = (of[known][first] for of in (kinds.side, kinds.task))
        p = min(dealt_tasks(lost / size, most, *of_each).p * looked, 1.0) if enough else None
    once = bool(pairs.any()) and bool((runs == 1)[yes].all())
    return CauseEvidence(
        within=kinds.within,
        pairs=(int(pairs.sum()), len(np.unique(task[pairs > 0]))),
        differing=(int((alone + other).sum()), found.differing_tasks),
        failed_alone=int(alone.sum()),
        low=low if tested else None,
        high=high if tested else None,
        needed=needed,
        with_it=sums[0],
        without=sums[1],
        between_p=p,
        once=once,
        noun=kinds.noun,
    )
