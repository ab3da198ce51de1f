"""Which traces failed: one meaning for all tables of a report, whether outcomes are 0 and 1 or grades."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credit.reports.tasks import task_ids
from graphs.compared_alone import compared_alone
from graphs.distinct_columns import distinct_columns
from graphs.task_means import LEAST_TASKS
from graphs.text import apart, percent, printable
from graphs.traces.batch import Traces
from graphs.traces.record import WORDED

__all__ = ["JudgedTraces", "below_their_own", "enough_within", "failing", "judged_traces", "least_success",
           "rate_with_interval", "said_of"]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class JudgedTraces:
    """Which traces failed and which succeeded, and what that means here.

    Attributes:
      failed, succeeded: bool [traces]. Neither holds of a trace without an outcome and, with `of_task`, of one whose
        group has one outcome.
      cut: the least outcome of a trace that succeeded; NaN where all outcomes are equal, of which those above 0
        succeeded.
      graded: whether there are more than two different outcomes, and nobody says what a success is.
      of_task: whether each group of traces that are compared has its own cut, so that a trace is worse or better than
        others of its task: of graded outcomes, where enough traces of one task can be compared. One cut would leave out
        the tasks that lie on one side of it, which may be most.
      unit: the group, or where groups are too small the task, of each trace within which the two kinds are compared, in
        `rows`; None where these are too few (`compared_alone`).
      rows: the traces with an outcome: int [n].
      stratum: the task of each of `rows`, apart for each side: int [n].
      side: of each of `rows`, where traces of one side alone are compared; None elsewhere: int [n].
      failing: which outcomes are failures, in brackets to stand behind the first of `kinds`; "" of 0 and 1.
    """

    failed: np.ndarray
    succeeded: np.ndarray
    cut: float
    graded: bool
    of_task: bool
    unit: np.ndarray | None
    rows: np.ndarray
    stratum: np.ndarray
    side: np.ndarray | None
    failing: str

    @property
    def sided(self) -> bool:
        """Whether traces of one side alone are compared."""
        return self.side is not None

    @property
    def kinds(self) -> tuple[str, str]:
        """What traces of the two kinds are called."""
        return ("worse", "better") if self.of_task else ("failed", "succeeded")

    @property
    def both(self) -> bool:
        """Whether traces are of both kinds."""
        return bool(self.failed.any() and self.succeeded.any())


def judged_traces(
    traces: Traces, success_at: float | None = None, side: np.ndarray | None = None, *, whole_tasks: bool = False
) -> JudgedTraces:
    """Tell failed from succeeded traces by their outcomes.

    A trace failed if its outcome is below `least_success`: of all traces, or of those of its group where outcomes are
    graded and traces of one task can be compared.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None for `least_success`.
      side: of each trace, where traces of one side alone are compared with each other: int [traces].
      whole_tasks: whether traces of one task are compared even where groups are finer, as `--group-by task` does.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> judged_traces(rows.traces).failed.tolist()
      [False, True, False]
    """
    outcome = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    rows = np.flatnonzero(np.isfinite(outcome))
    known, cut = outcome[rows], least_success(outcome, success_at)
    graded = success_at is None and len(np.unique(known)) > 2
    sides = np.zeros(len(rows), np.int64) if side is None else side[rows]
    group, task = (
        distinct_columns(of[rows], sides).of for of in (np.asarray(traces.graph.group_ids), task_ids(traces))
    )
    below = known <= 0 if math.isnan(cut) else known < cut
    tried = (task,) if whole_tasks else (group, task)
    judged = (below_their_own(known, unit) if graded else (below, _in_both(below, unit)) for unit in tried)
    units = [*zip(tried, judged, strict=True)]
    (worse, told), everywhere = units[-1][1], np.ones(len(rows), bool)
    needs_none = compared_alone(*_counts(task, np.where(told, worse, below), everywhere))
    enough = ((unit, found) for unit, found in units if needs_none and enough_within(*_counts(unit, *found)))
    unit, found = next(enough, (None, None))
    of_task = graded and found is not None
    bad, told = found if of_task and found is not None else (below, np.ones(len(rows), bool))
    failed, succeeded = np.zeros((2, len(outcome)), bool)
    failed[rows], succeeded[rows] = told & bad, told & ~bad
    what = " (than others of their task)" if of_task else failing(outcome, success_at)
    side = None if side is None else sides
    return JudgedTraces(failed, succeeded, cut, graded, of_task, unit, rows, task, side, what)


def said_of(traces: Traces, rows: np.ndarray) -> str:
    """How many of these traces have which word of an outcome, where they have several, as a log has; else "".

    Args:
      traces: what was read.
      rows: which of them: bool [traces].
    """
    outcome, counts = np.asarray(traces.reward, np.float64)[: len(rows)], dict[str, int]()
    for channel in traces.reward_channels:
        begin, stated = f"metrics.{WORDED.format(channel, '')}", traces.evidence[f"rewards.{channel}"]
        words = [name for name in traces.evidence if name.startswith(begin)]
        if not words or not np.allclose(stated.amounts, outcome[stated.rows]):  # another channel is the outcome
            continue
        for name in words:
            counts[name.removeprefix(begin)] = int(np.sum(rows[traces.evidence[name].rows]))
    told = sorted(((count, word) for word, count in counts.items() if count), key=lambda one: -one[0])
    others = int(rows.sum()) - sum(count for count, _ in told)
    every = [*told, (others, "others")] if others > 0 else told
    return ", ".join(f"{count} {printable(word, 40)}" for count, word in every) if len(told) > 1 else ""


def _in_both(failed: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Which traces are of a unit with both kinds."""
    both: np.ndarray = ((np.bincount(unit, failed) > 0) & (np.bincount(unit, ~failed) > 0))[unit]
    return both


def below_their_own(outcome: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which outcomes lie below the cut of their unit, and which are of a unit with both kinds."""
    cuts = np.full(len(outcome), math.nan)
    order = np.argsort(unit, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(unit[order])) + 1):
        cuts[rows] = least_success(outcome[rows])
    failed = outcome < cuts  # none where all outcomes of a unit are equal
    return failed, _in_both(failed, unit)


def _counts(unit: np.ndarray, failed: np.ndarray, told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many of the traces that are told failed, and succeeded, of each of their units."""
    some = np.bincount(unit[told]) > 0
    bad, good = (np.bincount(unit[told], kind[told])[some] for kind in (failed, ~failed))
    return bad, good


def enough_within(failed: np.ndarray, succeeded: np.ndarray) -> bool:
    """Whether tasks of both kinds allow a test, by their numbers of failed and succeeded traces."""
    return len(failed) >= LEAST_TASKS or min(int(failed.sum()), int(succeeded.sum())) >= LEAST_TASKS


def least_success(outcome: np.ndarray, success_at: float | None = None) -> float:
    """The least outcome of a trace that succeeded; NaN where all outcomes are equal.

    Args:
      outcome: float [traces]; NaN where a trace has none.
      success_at: what a person calls a success, which is taken then; None for the median of the outcomes, or the next
        above it where the median is the least.

    Examples:
      >>> least_success(np.array([0.0, 1.0, np.nan]))
      1.0
    """
    if success_at is not None:
        return success_at
    known = outcome[np.isfinite(outcome)]
    if not len(known) or np.ptp(known) == 0:
        return float("nan")
    middle = float(np.median(known))
    return float(known[known > known.min()].min() if middle <= known.min() else known[known >= middle].min())


def failing(outcome: np.ndarray, success_at: float | None = None) -> str:
    """Which outcomes are failures, in brackets to stand behind "failed"; "" where all outcomes are 0 or 1.

    Args:
      outcome: as of `least_success`.
      success_at: likewise.

    Examples:
      >>> failing(np.array([0.0, 1.0])), failing(np.array([0.2, 0.4, 0.9])), failing(np.array([0.2, 0.9]), 0.5)
      ('', ' (outcome below 0.4, the median)', ' (outcome below 0.5)')
    """
    known = outcome[np.isfinite(outcome)]
    if np.isin(known, (0.0, 1.0)).all() and (success_at is None or 0 < success_at <= 1):
        return ""
    cut = least_success(outcome, success_at)
    if math.isnan(cut):
        return " (no outcome above 0)"
    middle = math.nan if success_at is not None or len(np.unique(known)) < 3 else float(np.median(known))
    of = "" if math.isnan(middle) else ", the median" if cut <= middle else f", the next above the median {middle:g}"
    return f" (outcome below {cut:g}{of})"


def rate_with_interval(rate: float, low: float, high: float) -> str:
    """A part in percent, with its 95 % interval; "" without one.

    Args:
      rate: the part.
      low, high: ends; NaN for none.

    Examples:
      >>> rate_with_interval(16 / 30, 0.358, 0.703)
      '53 % (95 % interval 36 to 70 %)'
    """
    if math.isnan(low):
        return ""
    part, low_, high_ = apart((rate, low, high), percent, 0)
    return f"{part} (95 % interval {low_.removesuffix(' %')} to {high_})"
