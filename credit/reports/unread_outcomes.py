"""Whose outcomes a result lacks: traces that were refused, runs without events, and killed runs without an outcome.

Who is not read is seldom a matter of chance, since broken runs leave broken logs.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from credit.reports.endings import ended_early
from credit.reports.judged_traces import failing, judged_traces, least_success
from credit.reports.refused_traces import RefusedTraces
from graphs.errors import NO_EVENTS, UNREAD_OUTCOME, Problem
from graphs.task_means import LEAST_TASKS
from graphs.text import counted, percent
from graphs.traces.batch import Traces

__all__ = [
    "NO_SIDE",
    "UnreadOutcomes",
    "UnscoredEnds",
    "leave_rate_open",
    "refused_outcomes",
    "unread_line",
    "unread_outcomes",
    "unscored_ends",
    "unscored_line",
]


NO_SIDE = "an unknown side"
MOST_STATED = 3
"""Refused outcomes that are quoted."""
LOWER = "lower", "higher"
"""What refused traces are called that cannot be worse or better than others of their task."""


@dataclasses.dataclass(frozen=True)
class UnreadOutcomes:
    """Traces that were not read though their outcome is known, and those whose outcome was refused.

    Attributes:
      side: the name of their side, `NO_SIDE` where nothing tells it, "" where no sides are compared.
      traces: how many were not read.
      succeeded, failed: of these; a long list of problems (`graphs.problem_log`) counts others alone.
      failing: which outcomes are failures (`failing`).
      kinds: what these are called: lower and higher where traces that were read failed by their task's own cut
        (`JudgedTraces.of_task`), since the task of one that was not read is not known.
      refused: how many were read without the outcome that something states of them.
      stated: what that is, the most frequent first.
      are_empty: whether those that were not read are runs without events.
      rate: the part of all outcomes, with these, that failed; None beside sides, and where not all are listed.
    """

    side: str
    traces: int
    succeeded: int
    failed: int
    failing: str = ""
    kinds: tuple[str, str] = ("failed", "succeeded")
    refused: int = 0
    stated: tuple[str, ...] = ()
    are_empty: bool = False
    rate: float | None = None

    def __str__(self) -> str:
        """The sentence that stands with each result over outcomes."""
        return unread_line([self])


def unread_line(rows: Sequence[UnreadOutcomes], every: RefusedTraces | None = None) -> str:
    """The sentence on all sides; "" where no outcome was left out.

    Args:
      rows: of each side.
      every: all traces that were not read, where no sides are compared; also those whose outcome nothing states.
    """
    who, told = [], []
    for row in (row for row in rows if row.traces):
        what = counted(row.traces, "run") + " without events" if row.are_empty else counted(row.traces, "trace")
        what += " with an outcome and" * (row.side == NO_SIDE)  # others of no side were refused, too
        who.append(f"{what}{f' of {row.side}' if row.side else ''}")
        untold = row.traces - row.succeeded - row.failed
        more = f", {untold} more are not listed" if untold else ""
        of = f"{row.side} " if len(rows) > 1 else ""
        told.append(f"{of}{row.succeeded} {row.kinds[1]}, {row.failed} {row.kinds[0]}{row.failing}{more}")
        told[-1] += (
            "" if row.rate is None else f"; with {'these' if row.traces > 1 else 'it'} {percent(row.rate)} failed"
        )
    were, whose = ("were", "their outcomes") if sum(row.traces for row in rows) > 1 else ("was", "its outcome")
    lost = f"{' and '.join(who)} {were} not read; {whose}: {'; '.join(told)}" if who else ""
    if every is not None and every.traces and not any(row.are_empty for row in rows):
        count = sum(row.traces for row in rows)
        is_known = f"of {count} of these the outcome is known" if count < every.traces else whose
        lost = every.opening() + (f"; {is_known}: {'; '.join(told)}" if who else "")
    lost = "; ".join(filter(None, (lost, "" if every is None else every.of_records())))
    refused = [
        f"{counted(row.refused, 'outcome')}{f' of {row.side}' if row.side else ''}" for row in rows if row.refused
    ]
    stated = [*dict.fromkeys(text for row in rows for text in row.stated)]
    shown = ", ".join(stated[:MOST_STATED] + ["…"] * (len(stated) > MOST_STATED))
    were = "were" if sum(row.refused for row in rows) > 1 else "was"
    said = f"{' and '.join(refused)} {were} refused ({shown}), and counted as none: --outcomes says what words mean"
    return "; ".join(filter(None, [lost, said if refused else ""]))


MOST_REFUSED = 20
"""Of so many outcomes one may be refused: it moves their rate by 5 percentage points at most."""


def unread_outcomes(
    traces: Traces,
    success_at: float | None = None,
    sides: Mapping[str, int] | None = None,
    names: Sequence[str] = (),
    side: np.ndarray | None = None,
) -> list[UnreadOutcomes]:
    """The traces that were not read though a table or their log states their outcome, and refused outcomes, by side.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None for the cut of `judged_traces`, or that of all outcomes where
        those that were read are equal.
      sides: of traces that were not read, each a place in `names`; nothing tells those of others.
      names: of the sides.
      side: of each trace that was read, -1 for none: int [traces].
    """
    rows = [row for row in traces.problems if row.kind == UNREAD_OUTCOME and row.about == "reward"]
    read = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    refused = refused_outcomes(traces)
    if not rows and not refused:
        return []
    stated = np.array([float(row.value) for row in rows])
    judged = judged_traces(traces, success_at)
    outcome = np.concatenate([read, stated]) if math.isnan(judged.cut) else read
    cut = least_success(outcome, success_at)
    succeeded = stated > 0 if math.isnan(cut) else stated >= cut
    by_side: dict[int, list[tuple[Problem, bool]]] = collections.defaultdict(list)
    for row, good in zip(rows, succeeded.tolist(), strict=True):
        by_side[(sides or {}).get(row.trace, -1)].append((row, good))
    refused_of: dict[int, list[Problem]] = collections.defaultdict(list)
    for place, row in refused:
        if side is None or side[place] >= 0:
            refused_of[-1 if side is None else int(side[place])].append(row)
    empty = {problem.trace for problem in traces.problems if problem.kind == NO_EVENTS}
    failed, known = int(judged.failed.sum()), int(judged.failed.sum() + judged.succeeded.sum())
    is_told = side is None and not names and not judged.of_task and known > 0 and all(row.count == 1 for row in rows)
    rate = (failed + int(np.sum(~succeeded))) / (known + len(rows)) if is_told else None
    return [
        UnreadOutcomes(
            names[side] if side >= 0 else NO_SIDE if names else "",
            sum(row.count for row, _ in of_side),
            sum(good for row, good in of_side if row.count == 1),
            sum(not good for row, good in of_side if row.count == 1),
            failing(outcome, success_at),
            LOWER if judged.of_task else judged.kinds,
            sum(row.count for row in refused_of[side]),
            tuple(text for text, _ in collections.Counter(row.value for row in refused_of[side]).most_common()),
            bool(by_side[side]) and all(row.trace in empty for row, _ in by_side[side]),
            rate if by_side[side] else None,
        )
        for side, of_side in sorted((by_side | {side: by_side[side] for side in refused_of}).items())
    ]


def leave_rate_open(refused: int, known: int) -> bool:
    """Whether so many outcomes were refused that no rate is told: at least one in `MOST_REFUSED`.

    Args:
      refused: how many.
      known: how many traces have an outcome.
    """
    return 0 < known + refused <= MOST_REFUSED * refused


def refused_outcomes(traces: Traces) -> list[tuple[int, Problem]]:
    """The traces without an outcome because what was stated was refused, and why, each once.

    Args:
      traces: what was read.
    """
    problems = [problem for problem in traces.problems if problem.about == "reward" and problem.is_failure]
    if not problems:
        return []
    lacks = ~np.isfinite(np.asarray(traces.reward, np.float64)[: traces.sizes.traces])
    place = {name: i for i, name in enumerate(traces.traces["trace"].to_pylist()) if lacks[i]}
    found: dict[int, Problem] = {}
    for problem in problems:
        if problem.trace in place:
            found.setdefault(place[problem.trace], problem)
    return [*found.items()]


@dataclasses.dataclass(frozen=True)
class UnscoredEnds:
    """Traces without an outcome, many of which end early (`ended_early`), unlike those with one.

    Attributes:
      side: the name of their side; "" where no sides are compared.
      early, unscored: how many traces without an outcome end early, and of how many.
      early_failed, failed: the same of failed ones.
      early_succeeded, succeeded: of succeeded ones.
      failing, kinds: which these are, and what they are called (`JudgedTraces`).
    """

    side: str
    early: int
    unscored: int
    early_failed: int
    failed: int
    early_succeeded: int
    succeeded: int
    failing: str = dataclasses.field(default="", kw_only=True)
    kinds: tuple[str, str] = dataclasses.field(default=("failed", "succeeded"), kw_only=True)

    @property
    def is_plain(self) -> bool:
        """Whether, without sides, all traces without an outcome end early, and none with one does."""
        whole = self.early == self.unscored and not self.early_failed + self.early_succeeded
        return whole and not self.side and self.kinds[0] == "failed"

    def __str__(self) -> str:
        """The sentence that stands with each success."""
        return unscored_line([self])


def unscored_line(rows: Sequence[UnscoredEnds]) -> str:
    """One sentence on all sides; "" where traces without an outcome end as the others do.

    Where it is plain which those are, it says how many of all traces failed with them.
    """
    told = []
    if len(rows) == 1 and rows[0].is_plain:
        one, known = rows[0], rows[0].failed + rows[0].succeeded
        rate = percent((one.failed + one.early) / (known + one.early))
        them = "it as a failure" if one.early == 1 else "them as failures"
        return f"{one.early} more ended early without an outcome; counting {them}, {rate} failed{one.failing}"
    for row in rows:
        of = f" of {row.side}" if row.side else ""
        end = "end" if row.unscored > 1 else "ends"
        failed = f"{row.early_failed} of {row.failed} {row.kinds[0]}{row.failing}"
        others = f"{failed} and {row.early_succeeded} of {row.succeeded} {row.kinds[1]} ones"
        told.append(f"{row.early} of {counted(row.unscored, 'trace')}{of} without an outcome {end} early, {others}")
    rest = "outcomes are of the rest, too high if these failed more often, too low if less often"
    if rows and rows[0].kinds[0] == "worse":
        rest = "outcomes are of the rest, too high if these did worse, too low if better"
    return f"{', and '.join(told)}: {rest}" if rows else ""


def unscored_ends(
    traces: Traces,
    success_at: float | None = None,
    side: np.ndarray | None = None,
    names: Sequence[str] = ("",),
) -> list[UnscoredEnds]:
    """Of each side, traces without an outcome that end early, more than twice the part of those with one on some side.

    More than half of them must there, or `LEAST_TASKS`: a few runs may be killed whatever their outcome. Other sides
    stand beside it: alone it would seem to be the one that is flattered.

    Args:
      traces: what was read.
      success_at: the least outcome of a success, as of `unread_outcomes`.
      side: of each trace a place in `names`, -1 for none: int [traces]; None for one side.
      names: of the sides.
    """
    unscored = ~np.isfinite(np.asarray(traces.reward, np.float64)[: traces.sizes.traces])
    if unscored.all() or not unscored.any():
        return []
    judged = judged_traces(traces, success_at)
    early, _ = ended_early(traces)
    found, many = [], False
    for number, name in enumerate(names):
        of = np.ones(len(unscored), bool) if side is None else side == number
        counts = [
            int(np.sum(of & kind & has))
            for kind in (unscored, judged.failed, judged.succeeded)
            for has in (early, True)
        ]
        one = UnscoredEnds(name, *counts, failing=judged.failing, kinds=judged.kinds)
        others, rest = one.early_failed + one.early_succeeded, one.failed + one.succeeded
        more = rest > 0 and one.early * rest > 2 * others * one.unscored
        many |= more and (2 * one.early > one.unscored or one.early >= LEAST_TASKS)
        found += [one] * bool(one.early)
    return found if many else []
