"""Signal to noise of a decision's advantage against trace length, measured, with the closed forms beside it.

A decision x moves the gradient by A sign(x), since its two choices have equal chances. SNR is that of this product,
over all decisions, which are alike (`credit.bench.snr_logs`):

    m = E[A sign(x)]        SNR = m / sqrt(E[A²] − m²)
    unconditional (Eq. 8 of arXiv:2605.02801) = m / sqrt(E[A²])

and the second is SNR / sqrt(1 + SNR²). An offset, E[A] other than 0, counts as noise; without one SNR is
sign(a) E[A | s, a] / sd(A | s, a) for choice a in situation s. The relative variance, that of A sign(x) over m², is
1 / SNR².

All schemes of a run see the same traces, except those of messages, which draw contexts. Bands are 99 %, of Student's t
from the spread between independent parts of what was drawn; those of a difference have the spread of pairs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credit import __version__
from credit.bench.own_worlds import shown_world
from credit.bench.refusals import COUNTED, main_reason, refused_beside, refused_lines
from credit.bench.rounding import are_equal, decimals, fixed, rounded
from credit.bench.snr_draws import Effort, Sums
from credit.bench.snr_logs import WORLDS, Streams, noise_of, sample_variance
from credit.bench.snr_schemes import SCHEMES, Scheme, left_out, schemes_of
from credit.bench.snr_theory import Setting
from credit.methods.own_functions import as_text, is_own
from estimators.base import Reason
from graphs.argument_kinds import checked_kinds
from graphs.atomic import atomic_write
from graphs.errors import CreditError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FORMS",
    "FULL",
    "LENGTHS",
    "QUICK",
    "QUICK_LENGTHS",
    "Difference",
    "Fit",
    "Point",
    "Refused",
    "Report",
    "fit",
    "json_lines",
    "measure",
    "run",
]

# Half decades, so that points are evenly spaced on the logarithmic axis of the figure.
LENGTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
QUICK_LENGTHS = (10, 30, 100, 300, 1000)
FULL = Effort(traces=40_000, rows=6_000_000, full=100)
QUICK = Effort(traces=4_000, rows=150_000, full=10)
CAVEATS = (
    "all groups have one mean outcome here, which flatters baselines over the batch; tasks of `bench truth` differ",
    "in this world agents are alike and start on their own: depth, roles and edges tell a method nothing",
    "schemes of broadcasts have one action for all decisions of an agent, which they treat alike; other methods and "
    "functions of your own have all actions, and in long traces fewer traces, hence wider bands",
)
TAILS = (
    "the scored parts of a trace share its noise evenly. Bands take a fourth moment of outcomes: without one, as in "
    "world heavy, they hold the truth less often than in 99 %"
)
FORMS = (
    "closed forms take the variance of the noise, which that of your own does not state; that of a division by the "
    "group's spread is of normal noise"
)
LEAST_PAIRS = 100
"""For a band of a difference. What moves it is skewed: of 100 pairs 97 to 98 % of the 99 % bands held the truth, of 64
pairs 96 to 98 %, of 12 pairs of batches 92 to 94 %."""

BLOCKS = 512  # at most, of traces, that a point is kept in for differences
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
      traces: how many traces were drawn and counted; 0 of messages, which draw contexts.
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
    traces: int = 0

    @property
    def ratio(self) -> float | None:
        """The measured SNR over that of the closed form."""
        return None if self.theory is None else self.snr / self.theory

    @property
    def agrees(self) -> bool | None:
        """Whether the closed form lies in the band."""
        return None if self.theory is None else self.low <= self.theory <= self.high

    @property
    def half(self) -> float:
        """Half the width of the band."""
        return self.high - self.snr

    def text(self, places: int | None = None) -> str:
        """The SNR, half of its band, and the share that was refused; with the decimals of its column, if it has one."""
        return _with_half(self.snr, self.half, places) + refused_beside(self.answered)


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


class Difference(NamedTuple):
    """SNR of a scheme less that of the first one, signs kept, with its 99 % band.

    `traces` is how many both were measured on, in that many `pairs` of parts; 0 where they share none, and the band is
    of independent draws. The ends are NaN with fewer than `LEAST_PAIRS` pairs.
    """

    scheme: str
    first: str
    length: int
    group: int
    difference: float
    low: float
    high: float
    traces: int
    pairs: int

    @property
    def half(self) -> float:
        """Half the width of the band."""
        return self.high - self.difference

    def text(self, places: int | None = None) -> str:
        """As that of a point. ‡ marks unshared draws; "equal" is up to single precision."""
        apart = "" if self.traces else " ‡"
        if are_equal(self.difference, self.low, self.high):
            return f"equal{apart}"
        return _with_half(self.difference, self.half, places, "+") + apart


def _with_half(value: float, half: float, places: int | None, sign: str = "") -> str:
    """A measured number, of which 0 alone is an end, with half of its band where it has one."""
    places = decimals([value], [half]) if places is None else places
    form = ".1g" if places is None else f".{places}f"
    band = "" if math.isnan(half) else f" ({rounded(half, form, ends=(0.0,))})"
    return fixed(value, places, sign, ends=(0.0,)) + band


@dataclasses.dataclass(frozen=True)
class Report:
    """Points, slopes, registered methods that were left out with the reason, and what could not be measured.

    `differences` are from the first scheme of the run, `world` is that of `run`, `variance` that of a sample of its
    noise where that is your own.
    """

    points: list[Point]
    fits: list[Fit]
    left_out: dict[str, str]
    refused: list[Refused] = dataclasses.field(default_factory=list)
    differences: list[Difference] = dataclasses.field(default_factory=list)
    world: str = "normal"
    variance: float | None = None

    def __str__(self) -> str:
        """A line for each scheme and group size: SNR with half of its band by length, and the slope."""
        lengths = sorted({point.length for point in self.points})
        lines = [("scheme", "group", *(f"T = {length:,}" for length in lengths), "slope")]
        places, _ = self.places()
        for scheme, group in dict.fromkeys((point.scheme, point.group) for point in self.points):
            of_line = {p.length: p for p in self.points if (p.scheme, p.group) == (scheme, group)}
            cells = (of_line[length].text(places[length]) if length in of_line else "" for length in lengths)
            slope = (f"{line.slope:+.3f}" for line in self.fits if (line.scheme, line.group) == (scheme, group))
            lines.append((scheme, str(group), *cells, next(slope, "")))
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ["  ".join(map(str.ljust, line, wide)).rstrip() for line in lines]
        return "\n".join([*rows, *self.refusals()])

    def places(self) -> tuple[dict[int, int | None], dict[int, int | None]]:
        """How many decimals points and differences have in tables, by length."""
        points: dict[int, list[tuple[float, float]]] = {}
        less: dict[int, list[tuple[float, float]]] = {}
        for point in self.points:
            points.setdefault(point.length, []).append((point.snr, point.half))
        for line in self.differences:
            less.setdefault(line.length, []).append((line.difference, line.half))
        of_points, of_less = ({t: decimals(*zip(*o, strict=True)) for t, o in of.items()} for of in (points, less))
        return of_points, of_less

    def refusals(self) -> list[str]:
        """A sentence for each scheme, group size and reason of what has no number: a point, or some decisions."""
        lengths: dict[tuple[str, int, str], list[str]] = {}
        for refused in self.refused:
            lengths.setdefault((refused.scheme, refused.group, refused.why), []).append(f"{refused.length:,}")
        lines = [f"{s} in groups of {k} at T = {', '.join(ts)}: {why}" for (s, k, why), ts in lengths.items()]
        partly = [(f"{point.scheme} in groups of {point.group}", point.answered, point.why) for point in self.points]
        return lines + refused_lines(partly, COUNTED["snr"])

    @property
    def caveats(self) -> list[str]:
        """What a reader of the numbers must know of the world and of the bands."""
        noise = f"noise of {self.world}: sample variance {self.variance or 0:.3g}, where that of normal and heavy is 1"
        formed = any(point.theory is not None for point in self.points)
        tails = [FORMS] * formed + [TAILS]
        return [*CAVEATS, *tails * (self.world != "normal"), *[noise] * (self.variance is not None)]

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
            "world": self.world,
            "variance": self.variance,
            "about": {"python": platform.python_version(), "machine": platform.machine(), **versions},
            "points": [dataclasses.asdict(point) for point in self.points],
            "slopes": [dataclasses.asdict(line) for line in self.fits],
            "differences": [
                {name: None if value != value else value for name, value in line._asdict().items()}
                for line in self.differences
            ],
            "caveats": self.caveats,
            "left out": self.left_out,
            "refused": [line._asdict() for line in self.refused],
        }


def json_lines(found: dict[str, Any]) -> str:
    """What `Report.json` gives as the text of a file, a point, a slope or a difference a line; null for NaN.

    Args:
      found: of `Report.json`.

    Examples:
      >>> print(json_lines({"world": "normal", "points": [{"snr": 0.5}, {"snr": float("nan")}]}), end="")
      {
      "world": "normal",
      "points": [
      {"snr":0.5},
      {"snr":null}
      ]
      }
    """
    import msgspec

    def one(value: Any) -> str:
        return msgspec.json.encode(value, enc_hook=as_text).decode()

    parts = []
    for name, value in found.items():
        rows = ",\n".join(map(one, value)) if isinstance(value, list) else ""
        parts.append(f"{one(name)}: " + (f"[\n{rows}\n]" if rows else one(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def measure(scheme: Scheme, length: int, w: Setting, effort: Effort, seed: int) -> Point:
    """One point. The traces depend on the length, the group size and the seed only: all schemes see the same ones.

    Args:
      scheme: of `scheme_of`.
      length: decisions of a trace.
      w: the world and the size of groups.
      effort: how many draws.
      seed: of all draws.

    Raises:
      CreditError: no decision has a number, or noise of your own has no variance that settles.
    """
    if is_own(w.world):
        sample_variance(w.world, seed)
    return _measured(scheme, length, w, effort, seed)[0]


def _measured(scheme: Scheme, length: int, w: Setting, effort: Effort, seed: int) -> tuple[Point, np.ndarray]:
    """One point, and what it was made of in blocks of parts (`_blocks`)."""
    start = time.perf_counter()
    batches = list(scheme.draw(Streams.of(seed, length, w.group, scheme.name), w, length, effort))
    sums = Sums(*(np.concatenate(column) for column in zip(*batches, strict=True)))
    reasons = sums.reasons.sum(0)
    answered, why = float(reasons[Reason.VALID] / reasons.sum()), main_reason(reasons)
    if not answered:
        raise CreditError(*refused_lines([("the method", 0.0, why)]))
    signed, moved = _ratio(np.stack(sums[:4]))
    half = _half_width(moved)
    snr = signed if signed < -half else abs(signed)
    cost = scheme.cost(length, w)
    log = scheme.log if scheme.log != "thin" else "full" if length <= effort.full else "thin"
    point = Point(
        scheme=scheme.name,
        method=scheme.method,
        length=length,
        group=w.group,
        snr=snr,
        low=snr - half,
        high=snr + half,
        unconditional=snr / math.sqrt(1 + snr**2),
        theory=scheme.closed_form(length, w),
        cost=cost,
        equal_cost=snr / math.sqrt(cost),
        decisions=float(sums.number.sum()),
        parts=len(sums.number),
        log=log,
        seconds=round(time.perf_counter() - start, 3),
        answered=answered,
        why=why,
        traces=int(sums.traces.sum()),
    )
    return point, _blocks(sums)


def _blocks(sums: Sums) -> np.ndarray:
    """The first four sums over equally many parts in a row, [4, blocks]: at most `BLOCKS`, of 2^k parts for some k."""
    parts = len(sums.number)
    size = 1 << max(0, math.ceil(math.log2(parts / BLOCKS)))
    return np.add.reduceat(np.stack(sums[:4]), np.arange(0, parts, size), axis=1)


def _ratio(sums: np.ndarray) -> tuple[float, np.ndarray]:
    """SNR with its sign, and how far each part moves it, by the delta method: [parts]; the moves sum to 0.

    Args:
      sums: traces, number, first and second of each independent part, [4, parts].
    """
    _, number, first, second = sums
    total = float(number.sum())
    mean, square = float(first.sum()) / total, float(second.sum()) / total
    variance = square - mean**2
    if variance <= 0 or len(number) < 2:
        parts = f"{len(number)} independent parts"
        raise CreditError(f"the advantage does not vary over {parts}; a ratio to its noise is undefined")
    # Each part's departure from the means, as ratios of sums have it, and how far SNR follows.
    moved = (square * (first - mean * number) - mean * (second - square * number) / 2) / variance**1.5
    return mean / math.sqrt(variance), moved / total


def _half_width(moved: np.ndarray) -> float:
    """Half of the 99 % band of what these parts move, by Student's t."""
    return _quantile(len(moved)) * float(np.std(moved, ddof=1)) * math.sqrt(len(moved))


def _quantile(parts: int) -> float:
    from scipy.special import stdtrit  # comes with JAX; slow to import

    return float(stdtrit(parts - 1, 0.995))


def _difference(one: np.ndarray, other: np.ndarray) -> tuple[float, float, int, int]:
    """SNR of one less that of the other, half of its band, and the traces and pairs; of their blocks, [4, blocks].

    In pairs are all traces up to the last one with which blocks of both end; both need two such blocks.
    """
    ends = np.intersect1d(np.cumsum(one[0]), np.cumsum(other[0]))
    if len(ends) < 2:
        (a, moved), (b, also) = _ratio(one), _ratio(other)
        return a - b, math.hypot(_half_width(moved), _half_width(also)), 0, 0
    paired = []
    for blocks in (one, other):
        last = np.searchsorted(np.cumsum(blocks[0]), ends)
        paired.append(np.add.reduceat(blocks[:, : last[-1] + 1], np.append(0, last[:-1] + 1), axis=1))
    (a, moved), (b, also) = map(_ratio, paired)
    half = _half_width(moved - also) if len(ends) >= LEAST_PAIRS else math.nan
    return a - b, half, int(ends[-1]), len(ends)


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
        half_width=2.5758293035489004 * error,  # normal quantile of 0.995
        theory=float(np.polyfit(x, np.log10(theories), 1)[0]) if len(theories) == len(kept) else None,
        last_decade=_line(np.log10([p.length for p in last]), last)[0] if len(last) > 1 else None,
    )


def _line(x: np.ndarray, points: Sequence[Point]) -> tuple[float, float]:
    weight = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    y = np.log10([p.snr for p in points])
    errors = np.array([(p.high - p.low) / (2 * _quantile(p.parts) * p.snr * math.log(10)) for p in points])
    return float(weight @ y), float(np.sqrt(np.sum((weight * errors) ** 2)))


@checked_kinds()
def run(
    schemes: Iterable[Scheme | str] | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
    group_sizes: Sequence[int] = (8,),
    effort: Effort = FULL,
    seed: int = 0,
    world: str = "normal",
    folder: str | Path | None = None,
    progress: Callable[[list[Any]], Iterator[Any]] = iter,
) -> Report:
    """Measure each scheme at the lengths that its cost allows.

    With a folder, each point is written there as soon as it is known. A point of the same effort, seed and version that
    is there already is not measured again, so a killed run resumes. Points of your own function are always measured,
    since the function may have changed. A point that cannot be measured is in the report with the reason, and so is a
    method whose evidence these logs lack.

    Args:
      schemes: or names that `scheme_of` takes; by default all that have a closed form.
      lengths, group_sizes: T and K; a scheme goes to the lengths that it is made for.
      effort: how much is drawn.
      seed: of everything that is drawn.
      world: whose noise outcomes have: one of `credit.bench.snr_logs.WORLDS`, or your own function by
        "[NAME=]module:name".
        Outside "normal" a closed form needs no more than the noise's variance, which that of your own does not state.
      folder: for the points.
      progress: wraps the list of what is to be measured, say in a progress bar.

    Raises:
      CreditError: a length is below 10 or no multiple of 10, a group has fewer than two traces, no point can be
        measured, noise of your own has no variance that settles, or a file in the folder is none of a point.
    """
    for length in lengths:
        if length < 10 or length % 10:
            raise CreditError(f"length {length}; expected a multiple of 10, because ten agents share the decisions")
    for group in group_sizes:
        if group < 2:
            raise CreditError(f"group size {group}; expected 2 or more, so that there are others to compare with")
    world = shown_world(world, FunctionType, WORLDS)
    noise_of(world)
    variance = sample_variance(world, seed) if is_own(world) else None
    chosen, lacking = schemes_of(SCHEMES.values() if schemes is None else schemes)
    todo = [
        (scheme, length, Setting(group=group, world=world))
        for group in group_sizes
        for scheme in chosen
        for length in lengths
        if length <= scheme.longest
    ]
    place = None if folder is None else Path(folder)
    points, refused, differences = [], [], []
    first: dict[tuple[int, int], np.ndarray] = {}
    for scheme, length, w in progress(todo):
        try:
            point, blocks = _point(scheme, length, w, effort, seed, place)
            points.append(point)
            if scheme is chosen[0]:
                first[length, w.group] = blocks
            elif (base := first.get((length, w.group))) is not None:
                found, half, *shared = _difference(blocks, base)
                of = scheme.name, chosen[0].name, length, w.group
                differences.append(Difference(*of, found, found - half, found + half, *shared))
        except (MissingExtraError, BrokenPointError):
            raise  # of whatever scheme
        except CreditError as error:
            refused.append(Refused(scheme.name, length, w.group, str(error)))
    refused += [Refused(name, t, k, why) for name, why in lacking.items() for k in group_sizes for t in lengths]
    curves_of = {(p.scheme, p.group): [q for q in points if (q.scheme, q.group) == (p.scheme, p.group)] for p in points}
    fits = [line for line in map(fit, curves_of.values()) if line is not None]
    report = Report(points, fits, left_out(), refused, differences, world, variance)
    if refused and not points:
        raise CreditError("; ".join(report.refusals()))
    return report


def _point(
    scheme: Scheme, length: int, w: Setting, effort: Effort, seed: int, folder: Path | None
) -> tuple[Point, np.ndarray]:
    if folder is None or is_own(scheme.name) or is_own(w.world):  # what is your own may have changed
        return _measured(scheme, length, w, effort, seed)
    folder.mkdir(parents=True, exist_ok=True)
    job = json.dumps([scheme.name, scheme.method, length, w, effort, seed, __version__])
    file = folder / f"{hashlib.sha256(job.encode()).hexdigest()[:16]}.json"
    if file.exists():
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            return Point(**kept["point"]), np.reshape(kept["blocks"], (4, -1))
        except (ValueError, TypeError, KeyError) as error:  # a refusal would stand in the table as one of the scheme
            raise BrokenPointError(
                f"{file} cannot be resumed: {error}; expected a point of `credit bench snr`: remove it"
            ) from error
    point, blocks = _measured(scheme, length, w, effort, seed)
    with atomic_write(file) as out:
        out.write(json.dumps({"point": dataclasses.asdict(point), "blocks": blocks.tolist()}).encode())
    return point, blocks
