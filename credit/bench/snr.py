"""Signal to noise of a decision's advantage against trace length, measured, with the closed forms beside it.

A decision x moves the gradient by A sign(x), since its two choices have equal chances. SNR is that of this product,
over all decisions, which are alike (`credit.bench.snr_logs`):

    m = E[A sign(x)]        SNR = |m| / sqrt(E[A²] − m²)        unconditional (Eq. 8 of arXiv:2605.02801) = |m| / sqrt(E[A²])

and the second is SNR / sqrt(1 + SNR²). An offset, E[A] other than 0, counts as noise; without one SNR is
|E[A | s, a]| / sd(A | s, a) for choice a in situation s. Bands are 99 %, from the spread between independent parts of
what was drawn.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credit import __version__
from credit.bench.refusals import main_reason, refused_line
from credit.bench.snr_draws import Effort, Sums
from credit.bench.snr_schemes import SCHEMES, Scheme, left_out
from credit.bench.snr_theory import Setting
from estimators.base import Reason
from graphs.atomic import atomic_write
from graphs.errors import CreditError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FULL", "LENGTHS", "QUICK", "QUICK_LENGTHS", "Fit", "Point", "Refused", "Report", "fit", "measure", "run"]

# Half decades, so that points are evenly spaced on the logarithmic axis of the figure.
LENGTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
QUICK_LENGTHS = (10, 30, 100, 300, 1000)
FULL = Effort(traces=40_000, rows=6_000_000, full=100)
QUICK = Effort(traces=4_000, rows=150_000, full=10)
Z99 = 2.5758293035489004  # normal quantile of 0.995
FITTED_TO = 10_000  # slopes are of points up to this length


@dataclasses.dataclass(frozen=True)
class Point:
    """One scheme at one length.

    Attributes:
      scheme, method: names.
      length: T, decisions of a trace.
      group: K.
      snr, low, high: SNR, as above, and its 99 % band; negative where the mean advantage has the wrong sign.
      unconditional: SNR / sqrt(1 + SNR²).
      theory: the closed form, None where there is none.
      cost: rollouts that the evidence of one trace takes.
      equal_cost: SNR / sqrt(cost): what one rollout's worth of evidence gives, averaged as gradients are.
      decisions, parts: how many decisions were counted, in how many independent parts.
      log: "full", "thin" or "replays".
      seconds: that it took.
      answered: the share of the decisions that have a number; the others count as 0.
      why: the most frequent reason of the others; "" where there are none.
    """

    scheme: str
    method: str
    length: int
    group: int
    snr: float
    low: float
    high: float
    unconditional: float
    theory: float | None
    cost: float
    equal_cost: float
    decisions: float
    parts: int
    log: str
    seconds: float
    answered: float
    why: str

    @property
    def agrees(self) -> bool | None:
        """Whether the closed form lies in the band."""
        return None if self.theory is None else self.low <= self.theory <= self.high

    def text(self) -> str:
        """SNR and the half width of its band, to a digit that the band leaves standing."""
        return f"{self.snr:.3g} ± {self.high - self.snr:.1g}"


@dataclasses.dataclass(frozen=True)
class Fit:
    """Slopes of log SNR on log T, by least squares on the same lengths.

    Attributes:
      scheme, group: which curve.
      lengths: how many points, to the greatest of them.
      longest: that length.
      slope, half_width: measured, and half of its 99 % interval, from the bands of the points.
      theory: that of the closed form; None where there is none.
      last_decade: measured over the last factor of ten; None with fewer than two points.
    """

    scheme: str
    group: int
    lengths: int
    longest: int
    slope: float
    half_width: float
    theory: float | None
    last_decade: float | None


class BrokenPointError(CreditError):
    """A file in the folder of points that cannot be read as one."""


class Refused(NamedTuple):
    """A scheme that could not be measured at one length and group size, and why."""

    scheme: str
    length: int
    group: int
    why: str


@dataclasses.dataclass(frozen=True)
class Report:
    """Points, slopes, registered methods that were left out with the reason, and what could not be measured."""

    points: list[Point]
    fits: list[Fit]
    left_out: dict[str, str]
    refused: list[Refused] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        """A line for each scheme and group size: SNR ± half of its band by length, and the slope."""
        lengths = sorted({point.length for point in self.points})
        lines = [("scheme", "group", *(f"T = {length:,}" for length in lengths), "slope")]
        for scheme, group in dict.fromkeys((point.scheme, point.group) for point in self.points):
            of_line = {p.length: p for p in self.points if (p.scheme, p.group) == (scheme, group)}
            cells = (of_line[length].text() if length in of_line else "" for length in lengths)
            slope = (f"{line.slope:+.3f}" for line in self.fits if (line.scheme, line.group) == (scheme, group))
            lines.append((scheme, str(group), *cells, next(slope, "")))
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ["  ".join(map(str.ljust, line, wide)).rstrip() for line in lines]
        return "\n".join([*rows, *self.refusals()])

    def refusals(self) -> list[str]:
        """A sentence for each scheme, group size and reason of what has no number: a point, or some decisions."""
        lengths: dict[tuple[str, int, str], list[str]] = {}
        for refused in self.refused:
            lengths.setdefault((refused.scheme, refused.group, refused.why), []).append(f"{refused.length:,}")
        lines = [f"{s} in groups of {k} at T = {', '.join(ts)}: {why}" for (s, k, why), ts in lengths.items()]
        partly: dict[tuple[str, int, str], list[float]] = {}
        for point in self.points:
            if point.answered < 1:
                partly.setdefault((point.scheme, point.group, point.why), []).append(100 * (1 - point.answered))
        return lines + [
            f"{s} in groups of {k} gave no number for {_range(shares)} % of the decisions, which count as 0; most "
            f"often: {why}"
            for (s, k, why), shares in partly.items()
        ]

    def table(self) -> pa.Table:
        """The points, one a row."""
        import pyarrow as pa

        return pa.Table.from_pylist([dataclasses.asdict(point) for point in self.points])

    def json(self) -> dict[str, Any]:
        """Everything, with versions."""
        import platform

        versions = {"orchestration-credit": __version__}
        versions |= {name: importlib.metadata.version(name) for name in ("jax", "numpy")}
        return {
            "about": {"python": platform.python_version(), "machine": platform.machine(), **versions},
            "points": [dataclasses.asdict(point) for point in self.points],
            "slopes": [dataclasses.asdict(line) for line in self.fits],
            "left out": self.left_out,
            "refused": [line._asdict() for line in self.refused],
        }


def _range(shares: Sequence[float]) -> str:
    """The least and the greatest of some numbers in three digits, or the one that they are."""
    return " to ".join(dict.fromkeys(f"{share:.3g}" for share in (min(shares), max(shares))))


def measure(scheme: Scheme, length: int, w: Setting, effort: Effort, seed: int) -> Point:
    """One point. What is drawn depends on the scheme's name, the length, the setting and the seed only.

    Functions of one's own are all measured on the same draws.
    """
    start = time.perf_counter()
    key = "own" if ":" in scheme.name else scheme.stands_for or scheme.name
    rng = np.random.default_rng([seed, zlib.crc32(key.encode()), length, w.group])
    batches = list(scheme.draw(rng, w, length, effort))
    sums = Sums(*(np.concatenate(column) for column in zip(*batches, strict=True)))
    reasons = sums.reasons.sum(0)
    answered, why = float(reasons[Reason.VALID] / reasons.sum()), main_reason(reasons)
    if not answered:
        raise CreditError(refused_line("the method", 0.0, why))
    snr, error = _ratio(sums)
    cost = scheme.cost(length, w)
    log = scheme.log if scheme.log != "thin" else "full" if length <= effort.full else "thin"
    return Point(
        scheme=scheme.name,
        method=scheme.method,
        length=length,
        group=w.group,
        snr=snr,
        low=snr - Z99 * error,
        high=snr + Z99 * error,
        unconditional=snr / math.sqrt(1 + snr**2),
        theory=None if scheme.theory is None else scheme.theory(length, w),
        cost=cost,
        equal_cost=snr / math.sqrt(cost),
        decisions=float(sums.number.sum()),
        parts=len(sums.number),
        log=log,
        seconds=round(time.perf_counter() - start, 3),
        answered=answered,
        why=why,
    )


def _ratio(sums: Sums) -> tuple[float, float]:
    """SNR and its standard error, by the delta method over independent parts; negative where the sign is wrong.

    A mean that is within the band of 0 counts without its sign.
    """
    n, total = len(sums.number), float(sums.number.sum())
    mean, square = float(sums.first.sum()) / total, float(sums.second.sum()) / total
    variance = square - mean**2
    if variance <= 0 or n < 2:
        raise CreditError(f"the advantage does not vary over {n} independent parts; a ratio to its noise is undefined")
    # Each part's departure from the means, as ratios of sums have it, and how far SNR follows.
    first, second = sums.first - mean * sums.number, sums.second - square * sums.number
    moved = (square * first - mean * second / 2) / variance**1.5
    error = math.sqrt(float(np.sum((moved - moved.mean()) ** 2)) * n / (n - 1)) / total
    ratio = mean / math.sqrt(variance)
    return ratio if ratio < -Z99 * error else abs(ratio), error


def fit(points: Sequence[Point]) -> Fit | None:
    """The slope of one scheme's points up to T = 10,000; None with fewer than two."""
    kept = sorted((p for p in points if p.length <= FITTED_TO and p.snr > 0), key=lambda p: p.length)
    if len(kept) < 2:
        return None
    x = np.log10([p.length for p in kept])
    slope, error = _line(x, kept)
    theories = [p.theory for p in kept if p.theory is not None]
    last = [p for p in kept if p.length * 10 >= kept[-1].length]
    return Fit(
        scheme=kept[0].scheme,
        group=kept[0].group,
        lengths=len(kept),
        longest=kept[-1].length,
        slope=slope,
        half_width=Z99 * error,
        theory=float(np.polyfit(x, np.log10(theories), 1)[0]) if len(theories) == len(kept) else None,
        last_decade=_line(np.log10([p.length for p in last]), last)[0] if len(last) > 1 else None,
    )


def _line(x: np.ndarray, points: Sequence[Point]) -> tuple[float, float]:
    weight = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    y = np.log10([p.snr for p in points])
    errors = np.array([(p.high - p.low) / (2 * Z99 * p.snr * math.log(10)) for p in points])
    return float(weight @ y), float(np.sqrt(np.sum((weight * errors) ** 2)))


def run(
    schemes: Iterable[Scheme] | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
    groups: Sequence[int] = (8,),
    effort: Effort = FULL,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: Callable[[list[Any]], Iterator[Any]] = iter,
) -> Report:
    """Measure each scheme at the lengths that its cost allows.

    With a folder, each point is written there as soon as it is known. A point of the same effort, seed and version that
    is there already is not measured again, so a killed run resumes. Points of your own function are always measured,
    since the function may have changed. A point that cannot be measured is in the report with the reason.

    Args:
      schemes: by default all that have a closed form.
      lengths, groups: T and K; a scheme goes to the lengths that it is made for.
      effort: how much is drawn.
      seed: of everything that is drawn.
      folder: for the points.
      progress: wraps the list of what is to be measured, say in a progress bar.

    Raises:
      CreditError: a length is below 10 or no multiple of 10, a group has fewer than two traces, no point can be
        measured, or a file in the folder is none of a point.
    """
    for length in lengths:
        if length < 10 or length % 10:
            raise CreditError(f"length {length}; expected a multiple of 10, because ten agents share the decisions")
    for group in groups:
        if group < 2:
            raise CreditError(f"group size {group}; expected 2 or more, so that there are others to compare with")
    chosen = list(SCHEMES.values() if schemes is None else schemes)
    todo = [
        (scheme, length, Setting(group=group))
        for group in groups
        for scheme in chosen
        for length in lengths
        if length <= scheme.longest
    ]
    place = None if folder is None else Path(folder)
    points, refused = [], []
    for scheme, length, w in progress(todo):
        try:
            points.append(_point(scheme, length, w, effort, seed, place))
        except (MissingExtraError, BrokenPointError):
            raise  # of whatever scheme
        except CreditError as error:
            refused.append(Refused(scheme.name, length, w.group, str(error)))
    curves_of = {(p.scheme, p.group): [q for q in points if (q.scheme, q.group) == (p.scheme, p.group)] for p in points}
    fits = [line for line in map(fit, curves_of.values()) if line is not None]
    report = Report(points, fits, left_out(), refused)
    if refused and not points:
        raise CreditError("; ".join(report.refusals()))
    return report


def _point(scheme: Scheme, length: int, w: Setting, effort: Effort, seed: int, folder: Path | None) -> Point:
    if folder is None or ":" in scheme.name:
        return measure(scheme, length, w, effort, seed)
    folder.mkdir(parents=True, exist_ok=True)
    job = json.dumps([scheme.name, length, w, effort, seed, __version__])
    file = folder / f"{hashlib.sha256(job.encode()).hexdigest()[:16]}.json"
    if file.exists():
        try:
            return Point(**json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:  # a refusal would stand in the table as one of the scheme
            raise BrokenPointError(
                f"{file} cannot be resumed: {error}; expected a point of `credit bench snr`: remove it"
            ) from error
    point = measure(scheme, length, w, effort, seed)
    with atomic_write(file) as out:
        out.write(json.dumps(dataclasses.asdict(point)).encode())
    return point
