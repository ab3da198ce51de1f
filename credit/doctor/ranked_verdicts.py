"""What a verdict of many values is worth, such as a judge's 0 to 1: how often it ranks a succeeded trace above a failed
one of its task, and whether either kind got more on one side.

The chance is the area under the curve of hits by false alarms. Of two values it is (1 + J) / 2, J of `verdict_errors`.

Reference: Hanley and McNeil 1982, The meaning and use of the area under a ROC curve.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from credit.doctor.verdict_channels import verdict_channels
from credit.doctor.verdict_errors import MOST_WRONG
from credit.reports.compared_kinds import compared_kinds
from credit.reports.judged_traces import judged_traces
from graphs.text import percent, printable
from graphs.traces.batch import Traces

__all__ = ["Given", "RankedVerdict", "ranked_verdicts"]


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
      chance: that a succeeded trace has the greater one of two of a task and side, ties half: a mean over tasks.
      low, high: its 95 % interval over tasks; NaN where these are too few.
      tasks: in which it is not one half.
      of_sides: the same of each side, by its name.
      misled: failed traces above the median of succeeded ones, the greatest number first: int [n].
      failed: how many failed traces have a number.
      within: whether traces of one task are compared. Else tasks are, each by the mean of its traces.
      given: what failed traces, and succeeded ones, got on both sides, where these were compared.
    """

    name: str
    chance: float
    low: float
    high: float
    tasks: int
    of_sides: Mapping[str, float]
    misled: np.ndarray
    failed: int
    within: bool = True
    given: Mapping[str, Given] = dataclasses.field(default_factory=dict)

    @property
    def found(self) -> bool | None:
        """Whether it surely says little, as of `VerdictErrors`; None where traces do not tell."""
        if 2 * (1 - self.high) > MOST_WRONG:
            return True
        return False if 2 * (1 - self.chance) <= MOST_WRONG and self.low > 0.5 else None

    @property
    def worth_telling(self) -> bool:
        """Whether it says little, may say nothing, or changed with the side beyond chance."""
        return bool(self.found or self.low <= 0.5 or any(one.stands_out for one in self.given.values()))

    def told(self) -> str:
        """The sentences on it."""
        return ". ".join(filter(None, (self.of_all(), self.by_side())))

    def of_all(self) -> str:
        """How well it ranks all traces."""
        of, sure = "the same" if self.within else "another", "; these traces are too few to be sure"
        if not math.isnan(self.low):
            sure = f" (95 % interval {100 * self.low:.0f} to {percent(self.high)}, {self.tasks} tasks)"
        return (
            f"{printable(self.name, 60)} ranks a succeeded trace above a failed one of {of} task in "
            f"{percent(self.chance)} of pairs{sure}. A perfect verdict has 100 %, a coin 50 %"
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
        return {"name": self.name, **numbers, "tasks": self.tasks, "of_sides": sides, "given": given,
                "found": self.found, "told": self.told()}  # fmt: skip


def ranked_verdicts(
    traces: Traces, success_at: float | None = None, side: np.ndarray | None = None, heads: Sequence[str] = ()
) -> list[RankedVerdict]:
    """How well each channel of more than two values ranks traces, where outcomes have two; the worst first.

    Compared are traces of one group, on one side or of one system, as `outcome_differences` does. The interval is over
    tasks.

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
    channels = {name: number.astype(np.float64) for name, number in verdict_channels(traces).items()
                if len(np.unique(number[np.isfinite(number)])) > 2}  # fmt: skip
    if not channels:
        return []
    systems = np.unique([name or "" for name in traces.traces["system"].to_pylist()], return_inverse=True)[1]
    sides = systems if side is None else side
    judged = judged_traces(traces, success_at, sides if sides.any() or side is not None else None)
    if judged.graded or not judged.both:
        return []
    compared = compared_kinds(traces, judged, by_kind=False)  # which has no interval
    compared, found = compared._replace(model=np.zeros_like(compared.model)), []
    for name, number in channels.items():
        value = -number[judged.rows]
        chance, low, high, _, _, tasks = compared.test(value)
        if math.isnan(chance):
            continue
        of_sides = {}
        for i, head in enumerate(heads):
            one = compared._replace(kept=compared.kept & (sides[judged.rows] == i))
            of_sides[head] = one.test(value)[0] if one.kept.any() else math.nan
        bad, good = np.flatnonzero(np.isfinite(number) & judged.failed), number[judged.succeeded]
        above = bad[number[bad] > np.nanmedian(good)] if np.isfinite(good).any() else bad[:0]
        misled = above[np.argsort(-number[above], kind="stable")]
        found.append(RankedVerdict(name, chance, low, high, tasks, of_sides, misled, len(bad), compared.within))
    return sorted(found, key=lambda one: one.high if math.isfinite(one.high) else 1 + one.chance)
