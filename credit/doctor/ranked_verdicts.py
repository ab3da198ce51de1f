"""What a verdict of many values is worth, such as a judge's 0 to 1: how often it ranks a succeeded trace above a failed
one of its task, and whether either kind got more on one side.

The chance is the area under the curve of hits by false alarms. Of two values it is (1 + J) / 2, J of `verdict_errors`.

Reference: Hanley and McNeil 1982, The meaning and use of the area under a ROC curve.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from credit.doctor.verdict_errors import MOST_WRONG, verdict_channels
from credit.reports.compared_kinds import compared_kinds
from credit.reports.judged_traces import judged_traces
from credit.reports.trace_numbers import numbered
from credit.sides.chosen_sides import Sides
from credit.sides.side_differences import side_differences
from credit.sides.side_rows import SideDifference
from credit.sides.side_words import first_to_second
from graphs.text import percent, printable
from graphs.traces.batch import Traces

__all__ = ["RankedVerdict", "ranked_verdicts"]


@dataclasses.dataclass(frozen=True)
class RankedVerdict:
    """How well the numbers of one channel rank traces.

    Attributes:
      name: of the channel.
      chance: that a succeeded trace has the greater one of two of a task and side, ties half: a mean over tasks.
      low, high: its 95 % interval over tasks; NaN where these are too few.
      tasks: in which it is not one half.
      of_sides: the same of each side, by its name.
      changes: the numbers of failed traces, and of succeeded ones, of both sides.
      misled: failed traces above the median of succeeded ones, the greatest number first: int [n].
      failed: how many failed traces have a number.
      within: whether pairs are of one task; else each task has one number and one kind.
    """

    name: str
    chance: float
    low: float
    high: float
    tasks: int
    of_sides: dict[str, float]
    changes: dict[str, SideDifference]
    misled: np.ndarray
    failed: int
    within: bool = True

    @property
    def found(self) -> bool | None:
        """Whether it surely says little, as of `VerdictErrors`; None where traces do not tell."""
        if 2 * (1 - self.high) > MOST_WRONG:
            return True
        return False if 2 * (1 - self.chance) <= MOST_WRONG and self.low > 0.5 else None

    @property
    def worth_telling(self) -> bool:
        """Whether it says little, may say nothing, or changed with the side beyond chance."""
        return bool(self.found or self.low <= 0.5 or any(row.stands_out for row in self.changes.values()))

    def told(self) -> str:
        """The sentences on it."""
        of = "the same" if self.within else "another"
        sure = "; these traces are too few to be sure"
        if not math.isnan(self.low):
            sure = f" (95 % interval {100 * self.low:.0f} to {percent(self.high)}, {self.tasks} tasks)"
        sides = [f"{head} {percent(chance)}" for head, chance in self.of_sides.items() if not math.isnan(chance)]
        told = [
            f"{printable(self.name, 60)} ranks a succeeded trace above a failed one of {of} task in "
            f"{percent(self.chance)} of pairs{sure}{': ' * bool(sides)}{', '.join(sides)}",
            "A perfect verdict has 100 %, a coin 50 %",
        ]
        got = [
            f"{kind} {first_to_second(row.first, row.second)}, {row.in_short()}" for kind, row in self.changes.items()
        ]
        if got:
            told.append(f"From {' to '.join(self.of_sides)} it gave {'; '.join(got)}")
        return ". ".join(told)

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        names = ("chance", "low", "high")
        numbers = {name: None if math.isnan(number := getattr(self, name)) else number for name in names}
        changes = {kind: dataclasses.asdict(row) for kind, row in self.changes.items()}
        sides = {head: None if math.isnan(chance) else chance for head, chance in self.of_sides.items()}
        return {"name": self.name, **numbers, "tasks": self.tasks, "of_sides": sides, "changes": changes,
                "found": self.found, "told": self.told()}  # fmt: skip


def ranked_verdicts(traces: Traces, success_at: float | None = None, sides: Sides | None = None) -> list[RankedVerdict]:
    """How well each channel of more than two values ranks traces, where outcomes have two; the worst first.

    Pairs are of one group, and of one side or system, as of `outcome_differences`; so is the interval. What failed
    traces got on both sides `side_differences` compares, and what succeeded ones got.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None where outcomes have two values.
      sides: two sides of these traces; None for the two systems that the log states, where it states two.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> ranked_verdicts(rows.traces)
      []
    """
    channels = {name: number for name, number in verdict_channels(traces).items()
                if len(np.unique(number[np.isfinite(number)])) > 2}  # fmt: skip
    if not channels:
        return []
    names, stated = np.unique([name or "" for name in traces.traces["system"].to_pylist()], return_inverse=True)
    if sides is None and np.count_nonzero(names != "") == 2:
        _, sides = Sides.joined("system", traces)
    side = (stated if len(names) > 1 else None) if sides is None else sides.side
    judged = judged_traces(traces, success_at, side)
    if judged.graded or not judged.both:
        return []
    compared = compared_kinds(traces, judged)
    compared = compared._replace(model=np.zeros_like(compared.model))
    numbers = {name: number.astype(np.float64) for name, number in channels.items()}
    of_kinds = {
        f"{name}, {kind}": numbered(number, (np.isnan(number), "no such reward"), (~of, f"did not {kind[:-2]}"))
        for name, number in numbers.items()
        for kind, of in (("failed traces", judged.failed), ("succeeded ones", judged.succeeded))
    }
    rows = {} if sides is None else {row.metric: row for row in side_differences(traces, of_kinds, sides.side)}
    of_side = {} if sides is None else {head: sides.side[judged.rows] == i for i, head in enumerate(sides.heads)}
    found = []
    for name, number in numbers.items():
        value = -number[judged.rows]
        chance, low, high, _, _, tasks = compared.test(value)
        if math.isnan(chance):
            continue
        of_sides = {}
        for head, of in of_side.items():
            one = compared._replace(kept=compared.kept & of)
            of_sides[head] = one.test(value)[0] if one.kept.any() else math.nan
        changes = {kind: rows[f"{name}, {kind}"] for kind in ("failed traces", "succeeded ones")
                   if f"{name}, {kind}" in rows}  # fmt: skip
        known = np.isfinite(number)
        bad, good = np.flatnonzero(known & judged.failed), number[known & judged.succeeded]
        above = bad[number[bad] > np.median(good)] if len(good) else bad[:0]
        misled = above[np.argsort(-number[above], kind="stable")]
        found.append(
            RankedVerdict(name, chance, low, high, tasks, of_sides, changes, misled, len(bad), compared.within)
        )
    return sorted(found, key=lambda one: one.high if math.isfinite(one.high) else 1 + one.chance)
