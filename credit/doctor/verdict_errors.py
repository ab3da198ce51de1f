"""What verdicts are worth: which part of the failed traces they pass, and which part of the succeeded ones they fail.

How often a verdict says otherwise than the outcome is bounded by how often traces fail: where a fifth does, one that
passes everything does so in a fifth. The two parts add up to 1 for every verdict that knows nothing of the outcome,
whether it passes all, fails all or throws a coin, and to 0 for one that is always right. 1 less the sum is Youden's J.

People look at what a verdict rejects more often. Where some traces with a verdict have no outcome, the parts are of all
traces with one, weighted by it (`corrected_errors`): of 600 traces a judge passed 11 % of failures that people had
seen, and 57 % of all.

References: Youden 1950, Index for rating diagnostic tests; Begg and Greenes 1983, Assessment of diagnostic tests when
disease verification is subject to selection bias.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from credit.doctor.youden_interval import youden_interval
from credit.reports.prevalence import corrected_errors
from credit.reports.tasks import task_ids
from credit.reports.verdict_channels import held_against, outcome_name, said_yes, says
from graphs.task_means import LEAST_TASKS, LEVEL
from graphs.text import apart, part_of, percent, printable
from graphs.traces.batch import Traces

__all__ = ["MOST_WRONG", "Part", "VerdictErrors", "kinds_by", "plain_verdict", "verdict_errors", "wrong_parts"]

MOST_TOLD = 3  # systems in a sentence
MOST_WRONG = 0.5
"""Sum of the two parts above which a verdict says little: half of what one without any information has."""

SAME = 0.005
"""Of a part that is weighted, by how much counts may tell another one and stand in its place."""
NARROW = 0.15
"""Half the interval of a verdict that may lie on either side of the limit, below which it is described: it then has
neither all points nor none, and more traces would hardly change what is known."""


class Part(NamedTuple):
    """The part of some traces with a wrong verdict, or a sum of such parts; NaN where there are none.

    Attributes:
      share: as it was seen.
      low, high: what it is at least, and at most, each with 95 %.
    """

    share: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class VerdictErrors:
    """How often the verdicts of one channel are wrong.

    Attributes:
      name: of the channel.
      rows: of the traces with an outcome and a verdict: int [n].
      good: which of these succeeded: bool [n].
      wrong: of which the verdict is not the outcome: bool [n].
      passed: the part of failed traces that pass.
      refused: the part of succeeded traces that fail.
      both: the sum of these.
      systems: the same of each system that the log states, where it states several.
      interval: of 1 less the sum (`youden_interval`).
      against: the reward by which traces failed and succeeded (`held_against`); "" for the outcome.
      by_outcome: the same, held against the outcome, where `against` is another; None elsewhere.
      judged: of all traces with a verdict, those without an outcome too: int [m].
      passes: which of these it passes: bool [m].
      beats_coin: whether it surely agrees more than a coin, by the interval, or, without one, as the sum of the traces
        with an outcome is surely below 1: that is 1 of a coin whichever of its verdicts these were chosen by.
    """

    name: str
    rows: np.ndarray
    good: np.ndarray
    wrong: np.ndarray
    passed: Part
    refused: Part
    both: Part
    systems: Mapping[str, VerdictErrors] = dataclasses.field(default_factory=dict)
    interval: tuple[float, float] = (math.nan, math.nan)
    against: str = ""
    by_outcome: VerdictErrors | None = None
    judged: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    passes: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, bool))
    beats_coin: bool = False

    @property
    def weighted(self) -> bool:
        """Whether the parts are of more traces than those with an outcome, and the counts of these tell others."""
        passed, failed, refused, succeeded = self.counts()
        told = ((self.passed.share, passed, failed), (self.refused.share, refused, succeeded))
        return len(self.judged) > len(self.rows) and any(
            of and not abs(part - some / of) < SAME for part, some, of in told
        )

    @property
    def found(self) -> bool | None:
        """Whether it surely says little, in all or of a system; None where traces, or a system's, do not tell.

        It does where the interval lies wholly beyond `MOST_WRONG`, or without one the sum is surely above that; not,
        where the interval lies wholly on the other side. A verifier that is right in many runs of one version says
        nothing of another version's: one in which it is wrong more often than the limit decides.
        """
        of_all, systems = self._alone, self.systems.values()
        if of_all or any(one._says_little for one in systems):
            return True
        return None if of_all is None or any(one._seems_little for one in systems) else False

    @property
    def _alone(self) -> bool | None:
        """The same of all these traces, whatever their system."""
        low, high = self.interval
        if self.both.low > MOST_WRONG if math.isnan(high) else high < 1 - MOST_WRONG:
            return True
        return False if low > 1 - MOST_WRONG else None

    @property
    def _says_little(self) -> bool:
        """Whether it surely does in these traces of a system, as one of several that were looked at."""
        return bool(self._alone) and self.both.low > MOST_WRONG

    @property
    def _seems_little(self) -> bool:
        """Whether these traces have a sum above the limit; of one kind alone, its part."""
        return sum(part.share for part in (self.passed, self.refused) if math.isfinite(part.share)) > MOST_WRONG

    @property
    def in_part(self) -> bool:
        """Whether it is known well enough (`NARROW`) though its interval has the limit in it."""
        low, high = self.interval
        return self._alone is None and high - low < 2 * NARROW

    @property
    def worst(self) -> VerdictErrors:
        """Itself, or that of the system in which it is surely wrong most often."""
        return max((self, *self.systems.values()), key=lambda one: (bool(one._alone), one.both.low))

    def counts(self, among: np.ndarray | None = None) -> tuple[int, int, int, int]:
        """How many failed traces pass, of how many, and how many succeeded ones fail, of how many.

        Args:
          among: which traces count, such as those of a side: bool [traces].
        """
        some = slice(None) if among is None else among[self.rows]
        good, wrong = self.good[some], self.wrong[some]
        return int((wrong & ~good).sum()), int((~good).sum()), int((wrong & good).sum()), int(good.sum())

    def in_short(self, outcome: str, sure: bool) -> str:
        """The plain verdict, what it passes, and of which system that is where it is not all traces.

        Args:
          outcome: the reward that it is held against, as one that was chosen of several, or beside what people say; ""
            elsewhere.
          sure: as of `plain_verdict`.
        """
        one, system = self._telling()
        plain = plain_verdict(self.name + system, self.found, sure, one.in_part, one.beats_coin)
        told = f"{plain} {one._worth(' percentage point')}"
        if not outcome:
            return f"{told}. A perfect verdict has 100, a coin 0."
        told += "; full agreement has 100, a coin 0."
        passed, failed, refused, succeeded = self.counts()
        kinds = (
            ("passes", "rejects", passed, succeeded - refused + passed),
            ("rejects", "passes", refused, failed - passed + refused),
        )
        told_of = [f"that {self.name} {own}, {outcome} {says} {part_of(n, of)}" for own, says, n, of in kinds if of]
        return told if self.against else f"{told} Of runs {'; of those '.join(told_of)}."

    def among_others(self, first: bool, sure: bool) -> str:
        """The same as one of several verdicts, in a clause.

        Args:
          first: whether it is the first of them, which says what the counts are of.
          sure: as of `plain_verdict`.
        """
        one, system = self._telling()
        passed, failed, refused, succeeded = one.counts()
        told = plain_verdict(printable(self.name, 60) + system, self.found, sure, one.in_part, one.beats_coin)
        if one.weighted:
            return f"{told} {one._worth(' percentage point' * first)}"
        bad, right = kinds_by(self.against) if first else ("", "")
        parts = f"{part_of(passed, failed, bad)} and {part_of(succeeded - refused, succeeded, right)}"
        return f"{told} passes {parts}, a difference of {one._points(' percentage point' * first)}"

    def _telling(self) -> tuple[VerdictErrors, str]:
        """The traces that decide what it is worth, all or of a system, and which system, in words."""
        doubted = [each for each in self.systems.values() if each._seems_little]
        one = self
        if self.found and not self._alone:
            one = self.worst
        elif self.found is None and self._alone is False:
            one = max(doubted, key=lambda each: each.both.low)
        return one, next((f" on {printable(name, 60)}" for name, each in self.systems.items() if each is one), "")

    def told(self) -> str:
        """The sentences on it."""
        few = "; these traces are too few to be sure" * (self._alone is None and not self.in_part)
        told = f"{self.name} {self._worth(' percentage point')}"
        told += f". A perfect verdict has 100, a coin 0{few}"
        deciding = [] if self.found is False else self.systems.items()
        alike = [name for name, one in deciding if (one._says_little if self.found else one._seems_little)]
        few = ", too few to be sure" * (self.found is None)
        more = [
            f"Of system {printable(name, 60)} it {one._worth()}{few}"
            for name, one in self.systems.items()
            if name in alike[:MOST_TOLD]
        ]
        return ". ".join([told, *more]) + "; …" * (len(alike) > MOST_TOLD)

    def parts(self) -> str:
        """How many failed traces it passes, and how many succeeded ones it passes and rejects; of all traces, in
        parts."""
        passed, failed, refused, succeeded = self.counts()
        rejects = f"it rejects {refused}" * bool(succeeded)
        bad, right = kinds_by(self.against)
        if self.weighted:
            kinds = bad, f"{'those ' * bool(self.against)}{right}"
            seen = f"{passed} of {failed}", f"{succeeded - refused} of {succeeded}"
            of_each = zip((self.passed.share, 1 - self.refused.share), kinds, seen, strict=True)
            known = [(f"{percent(share)} of {kind}", of) for share, kind, of in of_each if math.isfinite(share)]
            parts, counts = (" and ".join(one) for one in zip(*known, strict=True)) if known else ("", "")
            if not parts:
                return f"{'passes' if passed + succeeded == refused else 'rejects'} no trace with an outcome"
            return f"passes {parts} ({counts} seen, weighted by its verdict to all {len(self.judged)} that it judged)"
        good = part_of(succeeded - refused, succeeded, right, rejects)
        return f"passes {part_of(passed, failed, bad)} and {good}"

    def _worth(self, unit: str = "") -> str:
        """What it passes, and the difference."""
        told = self.parts()
        return told if self.both.high - self.both.low == 2 else f"{told}, a difference of {self._points(unit)}"

    def _points(self, unit: str = "") -> str:
        """How much more of the succeeded traces it passes than of the failed ones, in hundredths: Youden's J."""
        if math.isnan(self.both.share):
            return f"at most {100 * (1 - self.both.low):.0f}{unit}{'s' * bool(unit)}"
        numbers = [100 * number for number in (1 - self.both.share, *self.interval)]
        share, *ends = apart(numbers, _whole, 0)
        told = f"{share}{unit}{'s' * (unit != '' and share not in ('1', '-1'))}"
        return told if math.isnan(self.interval[0]) else f"{told} (95 % interval {' to '.join(ends)})"

    def as_json(self, side: np.ndarray | None = None, heads: Sequence[str] = ()) -> dict[str, Any]:
        """Plain data for programs; `by_side` has the counts of each side.

        Args:
          side: of each trace, a place in `heads`, or none of them: int [traces].
          heads: names of sides.
        """
        names = ("passed", "failed", "refused", "succeeded")
        return {
            "name": self.name, "against": self.against,
            **dict(zip(names, self.counts(), strict=True)),
            "parts": {
                name: part._asdict() | {"share": part.share if math.isfinite(part.share) else None}
                for name, part in (("passed", self.passed), ("refused", self.refused), ("both", self.both))
            },
            "judged": len(self.judged),
            "interval": None if math.isnan(self.interval[0]) else [*self.interval],
            "found": self.found, "told": self.told(),
            "systems": {name: one.as_json() for name, one in self.systems.items()},
            "by_side": {
                head: dict(zip(names, self.counts(side == i), strict=True))
                for i, head in enumerate(heads) if side is not None
            },
        }  # fmt: skip


def kinds_by(against: str) -> tuple[str, str]:
    """What failed traces and succeeded ones are called.

    Args:
      against: the reward by which they are; "" for the outcome.
    """
    if not against:
        return "failed traces", "succeeded ones"
    return f"traces that {says(against, 'reject')}", f"that {says(against, 'pass')}"


def plain_verdict(name: str, found: bool | None, sure: bool, in_part: bool = False, beats_coin: bool = False) -> str:
    """What a verdict is worth, in words before what it does.

    Args:
      name: its own, and its system's.
      found: whether it surely says little, as of `VerdictErrors`.
      sure: whether it is held against what people say, or the only outcome: another one may be what errs.
      in_part: whether it is known well what it does, as of `VerdictErrors`.
      beats_coin: whether it surely agrees more than a coin.
    """
    if found is None and in_part:
        return f"{name} agrees in part: it"
    if found is None and beats_coin:
        return f"{name} agrees more than a coin, how much is unsure: it"
    if found is None:
        return f"Too few traces to tell whether {name} agrees: it"
    return f"{name} {'agrees' if not found else 'says little' if sure else 'hardly agrees'}: it"


def verdict_errors(traces: Traces, success_at: float | None = None, *, by_outcome: bool = False) -> list[VerdictErrors]:
    """The errors of each channel of verdicts, the one that is surely wrong most often first. Where the outcome is held
    against a reference (`held_against`), all are, the outcome first.

    Verdicts and outcomes have two values, or are 0 or 1; other channels are left out. Of n traces of a kind, n_g of
    task g, the bounds are those of Clopper and Pearson for n² / Σ n_g² traces: runs of one task may all be misjudged
    alike, and count as one then. With parts a and b that are at least l and k, the sum is at least

        a + b − √((a − l)² + (b − k)²)

    and at most as much likewise. Of drawn verdicts with a sum of 0.5, up to 5 % have a lower end above that; 8 % where
    all runs of a task are misjudged alike, failed and succeeded ones at once. Of several channels all bounds hold
    together, and so they do of all traces and of each system: half of the level is the systems'.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None where outcomes have two values.
      by_outcome: whether all are held against the outcome even where there is a reference, which is left out then.

    Reference: Clopper and Pearson 1934; Kish 1965, Survey Sampling; Zou and Donner 2008, Construction of confidence
    limits about effect measures.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> verdict_errors(rows.traces)
      []
    """
    channels, outcome, against, least, judged_by = held_against(traces, success_at)
    task, own, beside = task_ids(traces), outcome_name(traces), dict[str, VerdictErrors]()
    if by_outcome:
        against, outcome, least = "", judged_by, success_at
        channels = {name: of for name, of in channels.items() if name != own}
    elif against:
        beside = {one.name: one for one in verdict_errors(traces, success_at, by_outcome=True)}
    stated = np.array([name or "" for name in traces.traces["system"].to_pylist()], object)
    found = []
    for name, verdict in channels.items():
        judged = np.flatnonzero(np.isfinite(verdict))
        known = np.isfinite(outcome[judged])
        passes, good = said_yes(verdict[judged]), said_yes(outcome[judged[known]])
        if least is not None:
            good = outcome[judged[known]] >= least
        if not known.any() or good is None or passes is None:
            continue

        systems, level = sorted({*stated[judged[known]].tolist()} - {""}), LEVEL / len(channels)
        succeeded = np.zeros(len(judged), bool)
        succeeded[known] = good

        columns = np.stack([judged, passes, known, succeeded, task[judged]])
        if len(systems) < 2:
            found.append(_errors(name, columns, level, against))
            continue
        each = {
            system: _errors(name, columns[:, stated[judged] == system], level / 2 / len(systems), against)
            for system in systems
        }
        found.append(dataclasses.replace(_errors(name, columns, level / 2, against), systems=each))
    found = [dataclasses.replace(one, by_outcome=beside.get(one.name)) for one in found]
    return sorted(found, key=lambda one: (against != "" and one.name != own, -one.worst.both.low))


def _errors(name: str, columns: np.ndarray, level: float, against: str) -> VerdictErrors:
    judged, passes, known, good, task = (*columns[:1], *(columns[1:4] > 0), columns[4])
    succeeded, wrong, of = good[known], (passes != good)[known], task[known]
    parts = seen = wrong_parts(wrong, succeeded, of, level)
    if known.all():
        interval = youden_interval(wrong, succeeded, of)
    else:
        parts, interval = _of_all(~good & known, known, passes, task, level)
        if min(len(np.unique(of[kind])) for kind in (succeeded, ~succeeded)) < LEAST_TASKS:
            interval = math.nan, math.nan
    beats = seen[2].high < 1 if math.isnan(interval[0]) else interval[0] > 0
    return VerdictErrors(
        name, judged[known], succeeded, wrong, *parts, interval=interval, against=against, judged=judged, passes=passes,
        beats_coin=beats,
    )  # fmt: skip


def _of_all(
    failed: np.ndarray, known: np.ndarray, passes: np.ndarray, task: np.ndarray, level: float
) -> tuple[tuple[Part, Part, Part], tuple[float, float]]:
    """`wrong_parts` and `youden_interval` of all traces with a verdict, where some have no outcome."""
    if (found := corrected_errors(failed, known, passes, task)) is None:
        nothing = Part(math.nan, 0.0, 1.0)
        return (nothing, nothing, Part(math.nan, 0.0, 2.0)), (math.nan, math.nan)

    def part(share: float, likely: np.ndarray) -> Part:
        low, high = np.quantile(likely, (level, 1 - level)).tolist()
        return Part(share, min(low, share), max(high, share))

    both = found.likely.sum(axis=0)
    low, high = (1 - np.quantile(both, (1 - LEVEL / 2, LEVEL / 2))).tolist()
    sum_ = found.passed + found.refused
    passed, refused = map(part, (found.passed, found.refused), found.likely)
    return (passed, refused, part(sum_, both)), (
        min(low, 1 - sum_),
        max(high, 1 - sum_),
    )  # a prior's may leave an end out


def wrong_parts(wrong: np.ndarray, good: np.ndarray, task: np.ndarray, level: float) -> tuple[Part, Part, Part]:
    """The part of failed traces with a wrong verdict, that of succeeded ones, and their sum.

    Args:
      wrong, good: whether the verdict of a trace is wrong, and whether it succeeded: bool [n].
      task: of each: int [n].
      level: the chance with which each bound may not hold.
    """
    passed, refused = (_part(wrong[kind], task[kind], level) for kind in (~good, good))
    shares = passed.share, refused.share

    def end(sign: int, *bounds: float) -> float:
        middle = [bound if math.isnan(share) else share for share, bound in zip(shares, bounds, strict=True)]
        return math.fsum(middle) + sign * math.dist(middle, bounds)

    both = Part(math.fsum(shares), end(-1, passed.low, refused.low), end(1, passed.high, refused.high))
    return passed, refused, both


def _whole(number: float, digits: int) -> str:
    return f"{number:z.{digits}f}"


def _part(wrong: np.ndarray, task: np.ndarray, level: float) -> Part:
    """The part of these traces that is wrong, and its bounds."""
    from scipy.special import betaincinv  # comes with JAX; slow to import

    if not len(wrong):
        return Part(math.nan, 0.0, 1.0)
    share, like = float(wrong.mean()), len(wrong) ** 2 / float(np.sum(np.unique(task, return_counts=True)[1] ** 2))
    ones = share * like
    low = float(betaincinv(ones, like - ones + 1, level)) if share > 0 else 0.0
    return Part(share, low, float(betaincinv(ones + 1, like - ones, 1 - level)) if share < 1 else 1.0)
