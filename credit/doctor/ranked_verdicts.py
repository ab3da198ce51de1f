"""What a verdict of many values is worth, such as a judge's 0 to 1: how often it ranks a succeeded trace above a failed
one, and whether either kind got more on one side.

The chance is the area under the curve of hits by false alarms. Of two values it is (1 + J) / 2, J of `verdict_errors`.

Reference: Hanley and McNeil 1982, The meaning and use of the area under a ROC curve.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from credit.doctor.ranking_interval import ranking_interval, weighted_ranking
from credit.doctor.verdict_errors import MOST_WRONG, plain_verdict
from credit.reports.compared_kinds import compared_kinds
from credit.reports.deciding_verdict import stands_for
from credit.reports.judged_traces import JudgedTraces, enough_within, judged_traces
from credit.reports.ranks import mean_ranks
from credit.reports.task_kinds import every_kind
from credit.reports.tasks import task_ids
from credit.reports.verdict_channels import PEOPLE, held_against, says, with_outcomes
from graphs.dealing import dealt
from graphs.task_means import LEAST_TASKS, LEVEL
from graphs.text import percent, printable
from graphs.traces.batch import Traces

__all__ = ["Given", "RankedVerdict", "ranked_verdicts"]

Ranking = Callable[[np.ndarray], tuple[float, float, float, int]]


class Given(NamedTuple):
    """What traces of one kind got on two sides, as means over tasks.

    Attributes:
      first, second: of each side.
      told: both, and whether they differ beyond chance.
      stands_out: whether they do.
    """

    first: float
    second: float
    told: str
    stands_out: bool


@dataclasses.dataclass(frozen=True)
class RankedVerdict:
    """How well the numbers of one channel rank traces.

    Attributes:
      name: of the channel.
      chance: that a succeeded trace has the greater one of two, ties half: a mean over tasks, or of all pairs.
      low, high: its 95 % interval over tasks; NaN where these are too few.
      tasks: in which it is not one half, or all that are compared.
      of_sides: the same of each side, by its name.
      misled: failed traces above the median of succeeded ones, the greatest number first: int [n].
      failed: how many failed traces have a number.
      within: what two traces are both of: a "task", on one side, or a "kind of task"; "" for any two.
      against: the reward by which traces failed and succeeded (`held_against`); "" for the outcome.
      given: what failed traces, and succeeded ones, got on both sides, where these were compared.
      chosen: whether its number decided beyond chance which traces have an outcome, so that others may rank otherwise.
      weighted: the verdict by which those with an outcome stand for all (`stands_for`), where it did; "" elsewhere, and
        where too few are known.
    """

    name: str
    chance: float
    low: float
    high: float
    tasks: int
    of_sides: Mapping[str, float]
    misled: np.ndarray
    failed: int
    within: str = "task"
    against: str = ""
    given: Mapping[str, Given] = dataclasses.field(default_factory=dict)
    chosen: bool = False
    weighted: str = ""

    @property
    def untold(self) -> bool:
        """Whether how it ranks all traces is not known."""
        return self.chosen and not self.weighted

    @property
    def found(self) -> bool | None:
        """Whether it surely says little, as of `VerdictErrors`; None where traces do not tell."""
        if self.untold:
            return None
        if 2 * (1 - self.high) > MOST_WRONG:
            return True
        return False if 2 * (1 - self.low) < MOST_WRONG else None

    @property
    def worth_telling(self) -> bool:
        """Whether it says little, may say nothing, or changed with the side beyond chance."""
        return bool(self.found or self.untold or self.low <= 0.5 or any(one.stands_out for one in self.given.values()))

    def told(self) -> str:
        """The sentences on it."""
        return ". ".join(filter(None, (self.of_all(), self.by_side())))

    def of_all(self) -> str:
        """How well it ranks all traces."""
        few = "; these traces are too few to be sure" * (self.found is None and not self.untold)
        return f"{printable(self.name, 60)} {self._ranks(few)}"

    def in_short(self, sure: bool) -> str:
        """The sentences on it, with the plain verdict.

        Args:
          sure: as of `plain_verdict`.
        """
        name = printable(self.name, 60)
        plain = name if self.untold else plain_verdict(name, self.found, sure, beats_coin=self.low > 0.5)
        told = f"{plain} {self._ranks()}"
        return ". ".join(filter(None, (told, self.by_side())))

    def _ranks(self, few: str = "") -> str:
        sure = few
        if not math.isnan(self.low):
            sure = f" (95 % interval {100 * self.low:.0f} to {percent(self.high)}, {self.tasks} tasks){few}"
        sure += f", weighted by {self.weighted}" * bool(self.weighted)
        good, bad, it = "succeeded trace", "a failed one", "they reject" if self.against == PEOPLE else "it rejects"
        if self.against:
            good, bad = f"trace that {says(self.against, 'pass')}", f"one that {it}"
        of = f"the same {self.within}" if self.within else "any task"
        return (
            f"ranks a {good} above {bad} of {of} in {percent(self.chance)} of pairs{sure}. "
            "A perfect verdict has 100 %, a coin 50 %"
            + ". Which traces have an outcome depends on this number: of all, it may rank otherwise"
            * self.untold
        )

    def by_side(self) -> str:
        """The same of each side, and whether either kind got more on one; "" without sides."""
        sides = [f"{head} {percent(chance)}" for head, chance in self.of_sides.items() if not math.isnan(chance)]
        gave = f"it gave {'; '.join(f'{kind} {one.told}' for kind, one in self.given.items())}"
        told = "; ".join([", ".join(sides)] * bool(sides) + [gave] * bool(self.given))
        return f"{printable(self.name, 60)} by side: {told}" if told else ""

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        names = ("chance", "low", "high")
        numbers = {name: None if math.isnan(number := getattr(self, name)) else number for name in names}
        given = {kind: one._asdict() for kind, one in self.given.items()}
        sides = {head: None if math.isnan(chance) else chance for head, chance in self.of_sides.items()}
        return {"name": self.name, **numbers, "tasks": self.tasks, "within": self.within,
                "against": self.against, "of_sides": sides, "given": given,
                "weighted": self.weighted, "found": self.found, "told": self.told()}  # fmt: skip


def ranked_verdicts(
    traces: Traces, success_at: float | None = None, side: np.ndarray | None = None, heads: Sequence[str] = ()
) -> list[RankedVerdict]:
    """How well each channel of more than two values ranks traces, where outcomes have two; the worst first.

    They are held against the outcome, or a reference of people (`held_against`). Compared are traces of one task and
    side or system, where enough tasks have both kinds; else of one kind of task; else any.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None where outcomes have two values.
      side: of each trace, a place in `heads`, or none of them: int [traces]; None for the systems that the log states.
      heads: names of sides.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> ranked_verdicts(rows.traces)
      []
    """
    held = held_against(traces, success_at)
    systems = np.unique([name or "" for name in traces.traces["system"].to_pylist()], return_inverse=True)[1]
    sides, found = systems if side is None else side, []
    for name, number in held.channels.items():
        has = np.isfinite(number)
        if len(np.unique(number[has])) < 3:  # `verdict_errors`
            continue
        looked = np.isfinite(held.outcome)[has]
        chosen = min(looked.sum(), (~looked).sum()) >= LEAST_TASKS and (
            dealt(mean_ranks(number[has]), looked, np.zeros(len(looked), int)).p < LEVEL
        )
        known = with_outcomes(traces, np.where(has, held.outcome, np.nan))
        judged = judged_traces(known, held.success_at, sides if sides.any() or side is not None else None)
        if judged.graded or not judged.both:
            continue
        value, of_sides = number[judged.rows], {}
        within, rank = _ranking(known, judged, value)
        verdict, of_all = (stands_for(known) if chosen else None) or ("", np.zeros(0))
        if not np.isfinite(of_all).any():
            verdict = ""
        else:
            within, rank = "", _weighted(known, judged, value, of_all)
        chance, low, high, tasks = rank(np.ones(len(value), bool))
        for i, head in enumerate(heads):
            of_sides[head] = rank(sides[judged.rows] == i)[0]
        bad, good = np.flatnonzero(judged.failed), number[judged.succeeded]
        above = bad[number[bad] > np.median(good)]
        misled = above[np.argsort(-number[above], kind="stable")]
        found.append(RankedVerdict(name, chance, low, high, tasks, of_sides, misled, len(bad), within=within,
                                   against=held.against, chosen=bool(chosen), weighted=verdict))  # fmt: skip
    return sorted(found, key=lambda one: one.high if math.isfinite(one.high) else 1 + one.chance)


def _weighted(traces: Traces, judged: JudgedTraces, value: np.ndarray, weight: np.ndarray) -> Ranking:
    """`_ranking` of any two of all traces for which those with an outcome stand."""
    task, good = task_ids(traces)[judged.rows], judged.succeeded[judged.rows]

    def among(some: np.ndarray) -> tuple[float, float, float, int]:
        some = some & (good | judged.failed[judged.rows])
        found = weighted_ranking(value[some], good[some], weight[judged.rows][some], task[some])
        return *found, len(np.unique(task[some]))

    return among


def _ranking(traces: Traces, judged: JudgedTraces, value: np.ndarray) -> tuple[str, Ranking]:
    """What two traces that are compared are both of, and the chance of some of `judged.rows`, its ends and tasks."""
    rows, (names, kind) = judged.rows, every_kind(traces)
    if judged.unit is not None:
        compared = compared_kinds(traces, judged, by_kind=False)
        compared = compared._replace(model=np.zeros_like(compared.model))

        def within(some: np.ndarray) -> tuple[float, float, float, int]:
            one = compared._replace(kept=compared.kept & some)
            chance, low, high, _, _, tasks = one.test(-value) if one.kept.any() else (math.nan,) * 5 + (0,)
            return chance, low, high, tasks

        return "task", within
    bad, task, stratum = judged.failed[rows], task_ids(traces)[rows], kind[rows] + 1
    n, m = np.bincount(stratum, bad), np.bincount(stratum, ~bad)
    of_kinds = bool(names) and enough_within(n[n * m > 0], m[n * m > 0])
    stratum = stratum if of_kinds else np.zeros_like(stratum)

    def among(some: np.ndarray) -> tuple[float, float, float, int]:
        found = ranking_interval(value[some], ~bad[some], stratum[some], task[some])
        return *found, len(np.unique(task[some]))

    return "kind of task" * of_kinds, among
