"""Compare signals by paired tests over seeds, and state differences only where all tests together support them.

Every number is a share of the way from the first policy to the best one: (J − J₀) / (J* − J₀).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from graphs.dealing import flipped
from graphs.errors import CreditError
from graphs.task_means import holm, median_interval, signed_ranks
from graphs.text import excerpt

__all__ = ["AtRate", "Cell", "cells", "comparisons", "least_seeds", "mean_ranks", "plain", "runs"]

TIE = 1e-6
"""Differences of areas up to this count as none: policies are of single precision. Of 896 pairs of runs of 60 updates
with Adam, of signals that agree but for their order of summation, none was further apart than 1.1e-7, and of 180 of
`rloo` and a multiple of it none further than 3e-7."""

_KEY = ("task", "signal", "seed")
_Place = TypeVar("_Place")
NO_INTERVAL = (float("nan"), float("nan"))


class AtRate(NamedTuple):
    """The difference of a cell where both signals have one learning rate.

    Attributes:
      learning_rate: of both.
      difference_median: median over seeds of the area less that of the other signal.
      difference_interval: its interval, as of a `Cell`.
      ahead: seeds on which the area is larger.
      ahead_p: as of a `Cell`, corrected by Holm over all cells and rates.
      same_as: as of a `Cell`, at this rate.
    """

    learning_rate: float
    difference_median: float
    difference_interval: tuple[float, float]
    ahead: int
    ahead_p: float = 1.0
    same_as: str = ""


class Cell(NamedTuple):
    """A signal on a task, against another one on the same seeds.

    Attributes:
      task, signal: names.
      seeds: how many.
      learning_rate: the one that the sweep chose.
      area: mean share along the budget.
      stderr: of `area`, over seeds; infinite with one seed.
      final: mean share of the last policy.
      events_to_90: median over seeds of the events before the first policy with a share of 0.9; infinite where half of
        the seeds do not come there.
      area_median, final_median, difference_median: medians over seeds.
      area_interval, final_interval, events_interval, difference_interval: low and high end of the 95 % interval of such
        a median (`median_interval`), NaN with fewer than five seeds. A mean has none: a run that fails is rare and far
        off, so that Student's interval held the mean difference in 14 to 98 % of draws of 3 to 20 seeds, by cell.
      at_rates: the difference at each of the `common_rates` of `run_training`.
      same_as: an earlier signal with the same areas, but for rounding (`TIE`), and the same events to 90 % on every
        seed of the task; "" where none has them.
      cosine, entropy, teaching: means over seeds.
      difference: mean area minus that of the other signal.
      difference_p: of Student's two-sided paired test of areas, corrected by Holm over all cells; 1 for the other
        signal itself. Cells with the same numbers are one test. It wants many seeds.
      ahead: seeds on which the area is larger than that of the other signal by more than `TIE`.
      ahead_p: of Wilcoxon's signed-rank test of paired areas, corrected likewise: the star of tables. It holds for few
        seeds; fewer than six cannot have one below 0.05.
      answered, refused: the least share of actions with an advantage over seeds, and the main reason of the others
        there; "" where there are none.
      events_p: of that test of the logarithms of the events to 90 %, corrected likewise. A seed that does not
        come there stands behind all that do, and two that do not are equal.
    """

    task: str
    signal: str
    seeds: int
    learning_rate: float
    area: float
    stderr: float
    final: float
    events_to_90: float
    cosine: float
    entropy: float
    teaching: float
    difference: float
    difference_p: float
    ahead: int
    ahead_p: float
    events_p: float
    area_median: float = float("nan")
    final_median: float = float("nan")
    difference_median: float = float("nan")
    area_interval: tuple[float, float] = NO_INTERVAL
    final_interval: tuple[float, float] = NO_INTERVAL
    events_interval: tuple[float, float] = NO_INTERVAL
    difference_interval: tuple[float, float] = NO_INTERVAL
    at_rates: tuple[AtRate, ...] = ()
    same_as: str = ""
    answered: float = 1.0
    refused: str = ""


def runs(rows: Iterable[dict[str, Any]] | Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of results: those of a file without its `sweep`, whose seeds and rates are others.

    Runs of the sweep with the seed of a result are those at common rates, and become its `at_rates`.

    Args:
      rows: of `run_training` or of its file, or all that this holds.

    Examples:
      >>> row = {"task": "t", "signal": "s", "seed": 0, "learning_rate": 0.4, "sweep": False}
      >>> runs([row, row | {"seed": 1000, "learning_rate": 0.8, "sweep": True}]) == [row]
      True

    Raises:
      CreditError: there are none; one is no row; a seed is there twice, such as at two learning rates.
    """
    expected = "expected results of run_training, or the rows of its file"
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    at_others: dict[tuple[Any, ...], dict[float, dict[str, Any]]] = {}
    for number, row in enumerate(rows["rows"] if isinstance(rows, Mapping) and "rows" in rows else rows, start=1):
        if not isinstance(row, dict) or (lacking := [name for name in _KEY if name not in row]):
            what = f"no {lacking[0]}" if isinstance(row, dict) else excerpt(row)
            raise CreditError(f"rows: row {number} has {what}; {expected}")
        task, signal, seed = key = tuple(row[name] for name in _KEY)
        if row.get("sweep"):
            if row.get("curve"):
                at_others.setdefault(key, {})[row["learning_rate"]] = row
            continue
        if (first := found.setdefault(key, row)) is not row:
            rates = " and ".join(dict.fromkeys(str(one.get("learning_rate")) for one in (first, row)))
            raise CreditError(f"rows: {signal!r} has seed {seed} of {task!r} twice, at rate {rates}; expected it once")
    if not found:
        raise CreditError(f"rows has no run that is not of the sweep; {expected}")
    common = {rate for key, of in at_others.items() if key in found for rate in of}
    for key, row in found.items():
        of_row = at_others.get(key, {}) | {row.get("learning_rate"): row}
        if common and "at_rates" not in row:
            found[key] = row | {"at_rates": {rate: of_row[rate] for rate in sorted(common & of_row.keys())}}
    return list(found.values())


def cells(rows: Sequence[dict[str, Any]] | Mapping[str, Any], against: str | None = None) -> list[Cell]:
    """One `Cell` for each task and signal, in the order of the rows.

    Examples:
      >>> row = {"task": "t", "signal": "s", "seed": 0, "learning_rate": 0.1, "start": 0.5, "optimum": 0.9,
      ...        "mean_return": 0.7, "final_return": 0.9, "events_to_90": 40.0, "cosine": 0.5, "entropy": 0.1,
      ...        "teaching": 1.0}
      >>> [(round(c.area, 3), c.final, c.difference_p) for c in cells([row])]
      [(0.5, 1.0, 1.0)]

    Args:
      rows: results of `run_training`, or all rows of its file, or all that this holds.
      against: the signal that others are compared with; default the first.

    Raises:
      CreditError: a task has no row of the signal `against`; the rows are no results (`runs`).
    """
    rows = runs(rows)
    other = against if against is not None else rows[0]["signal"]
    pairs = dict.fromkeys((row["task"], row["signal"]) for row in rows)
    by_seed = {pair: {r["seed"]: r for r in rows if (r["task"], r["signal"]) == pair} for pair in pairs}
    for task, _ in pairs:
        if (task, other) not in by_seed:
            raise CreditError(f"task {task!r} has no rows of {other!r}; expected rows to compare with")
    at_rates = {
        ((task, rate), signal): {seed: row["at_rates"][rate] for seed, row in by_seed[task, signal].items()}
        for task, signal in pairs
        for rate in sorted(_common(by_seed[task, signal]) & _common(by_seed[task, other]))
    }
    rates: dict[tuple[str, str], list[AtRate]] = {pair: [] for pair in pairs}
    for ((task, rate), signal), (gap, (_, p, _), same) in _tested(at_rates, other).items():
        found = AtRate(rate, float(np.median(gap)), median_interval(gap), int(np.sum(gap > 0)), p, same)
        rates[task, signal].append(found)
    return [
        _cell(pair, list(by_seed[pair].values()), gap, p_values)._replace(same_as=same, at_rates=tuple(rates[pair]))
        for pair, (gap, p_values, same) in _tested(by_seed, other).items()
    ]


def comparisons(table: Iterable[Cell], against: str, *, at_rates: bool = False) -> int:
    """How many different comparisons a table has: cells with the numbers of another cell of the task are none.

    Args:
      table: of `cells`.
      against: the signal that others were compared with.
      at_rates: count those at common rates, over all of these.
    """
    listed: list[tuple[object, str, str]] = (
        [((c.task, of.learning_rate), c.signal, of.same_as) for c in table for of in c.at_rates]
        if at_rates
        else [(c.task, c.signal, c.same_as) for c in table]
    )
    bases = {(place, same or signal) for place, signal, same in listed if signal == against}
    return sum(not same and (place, signal) not in bases for place, signal, same in listed)


def plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields as JSON holds them: None for what is infinite or NaN, also in pairs and in parts with names.

    Args:
      fields: by name, such as of a `Cell`.

    Examples:
      >>> plain({"task": "t", "events": float("inf"), "interval": (1.0, float("inf"))})
      {'task': 't', 'events': None, 'interval': [1.0, None]}
    """

    def finite(value: Any) -> Any:
        if hasattr(value, "_asdict"):
            return plain(value._asdict())
        if isinstance(value, tuple):
            return [finite(part) for part in value]
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return {name: finite(value) for name, value in fields.items()}


def least_seeds(comparisons: int) -> int:
    """The fewest seeds with which the signed-rank test can mark one of so many comparisons after Holm's correction.

    The least p of n seeds is 2 / 2^n, that of seeds which all differ in one direction.

    Args:
      comparisons: as `comparisons` counts them.

    Examples:
      >>> least_seeds(1), least_seeds(2), least_seeds(40)
      (6, 7, 11)
    """
    return next(n for n in range(1, 100) if comparisons * 2.0 ** (1 - n) < 0.05)


def mean_ranks(table: Iterable[Cell]) -> dict[str, float]:
    """The mean over tasks of each signal's rank by area, 1 the best; ties share their ranks.

    Examples:
      >>> mean_ranks([])
      {}

    Args:
      table: of `cells`; signals that lack a task are ranked on the others.
    """
    listed = list(table)
    ranks: dict[str, list[float]] = {}
    for task in dict.fromkeys(cell.task for cell in listed):
        of_task = [cell for cell in listed if cell.task == task]
        area = np.array([cell.area for cell in of_task])
        for cell in of_task:
            tied = np.sum(np.abs(area - cell.area) <= TIE)
            ranks.setdefault(cell.signal, []).append(float(np.sum(area > cell.area + TIE) + (1 + tied) / 2))
    return {signal: float(np.mean(values)) for signal, values in ranks.items()}


def _share(row: dict[str, Any], field: str) -> float:
    return float((row[field] - row["start"]) / (row["optimum"] - row["start"]))


def _equal(first: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]]) -> bool:
    """Whether two signals have the same seeds, areas but for rounding, and events to 90 %."""
    return (
        first.keys() == other.keys()
        and not _gap(first, other).any()
        and all(first[seed]["events_to_90"] == other[seed]["events_to_90"] for seed in first)
    )


def _tested(
    by_seed: Mapping[tuple[_Place, str], dict[int, dict[str, Any]]], other: str
) -> dict[tuple[_Place, str], tuple[np.ndarray, tuple[float, float, float], str]]:
    """Of each signal at each place the differences from another one by seed, p values of `_paired`, corrected over all
    places, and the earlier signal there with the same numbers, "" where none has them."""
    same: dict[tuple[_Place, str], str] = {}  # the first signal of a place with these numbers
    for (at, signal), of in by_seed.items():
        firsts = [name for (place, name), first in same.items() if place == at and name == first]
        same[at, signal] = next((name for name in firsts if _equal(of, by_seed[at, name])), signal)
    found = {(at, signal): _paired(of, by_seed[at, other]) for (at, signal), of in by_seed.items()}
    raw = [pair for pair in by_seed if same[pair] == pair[1] and same[pair] != same[pair[0], other]]
    corrected = zip(*(holm([found[pair][1][test] for pair in raw]) for test in range(3)), strict=True)
    p_values = dict(zip(raw, corrected, strict=True))
    return {
        pair: (gap, p_values.get((pair[0], same[pair]), (1.0, 1.0, 1.0)), same[pair] * (same[pair] != pair[1]))
        for pair, (gap, _) in found.items()
    }


def _paired(
    first: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]]
) -> tuple[np.ndarray, tuple[float, float, float]]:
    """Differences of areas by seed, and p values: by Student, by ranks, of events by ranks."""
    from scipy.special import stdtr

    seeds = sorted(first.keys() & other.keys())
    gap = _gap(first, other)
    student = 1.0
    if len(gap) > 1:
        mean, error = float(gap.mean()), float(gap.std(ddof=1)) / len(gap) ** 0.5
        same = 1.0 if mean == 0 else 0.0
        student = same if error < 1e-12 else 2 * float(stdtr(len(gap) - 1, -abs(mean) / error))
    never = 1e300  # later than every number of events
    events = [(first[s]["events_to_90"] or never, other[s]["events_to_90"] or never) for s in seeds]
    sooner = np.log([a / b for a, b in events])
    return gap, (student, _signed_rank(gap), _signed_rank(sooner))


def _gap(first: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]]) -> np.ndarray:
    """Differences of areas by seed, those of rounding (`TIE`) as 0."""
    seeds = sorted(first.keys() & other.keys())
    gap = np.array([_share(first[s], "mean_return") - _share(other[s], "mean_return") for s in seeds])
    return np.where(np.abs(gap) <= TIE, 0, gap)


def _common(of: dict[int, dict[str, Any]]) -> set[float]:
    """The rates at which all seeds of a signal were trained besides."""
    return set.intersection(*(set(row.get("at_rates", ())) for row in of.values()))


def _signed_rank(paired: np.ndarray) -> float:
    """The exact p value of Wilcoxon's signed-rank test that paired differences are symmetric around 0."""
    return flipped(signed_ranks(paired[paired != 0].round(12))).p


def _cell(
    pair: tuple[str, str], rows: list[dict[str, Any]], gap: np.ndarray, p_values: tuple[float, float, float]
) -> Cell:
    area, final = (np.array([_share(row, field) for row in rows]) for field in ("mean_return", "final_return"))
    reached = sorted(float("inf") if row["events_to_90"] is None else row["events_to_90"] for row in rows)
    middle = [reached[(len(reached) - 1) // 2], reached[len(reached) // 2]]
    worst = min(rows, key=lambda row: row.get("answered", 1.0))

    def mean(field: str) -> float:
        return float(np.mean([row[field] for row in rows]))

    return Cell(
        task=pair[0],
        signal=pair[1],
        seeds=len(rows),
        learning_rate=rows[0]["learning_rate"],
        area=float(area.mean()),
        stderr=float(area.std(ddof=1)) / len(area) ** 0.5 if len(area) > 1 else float("inf"),
        final=float(final.mean()),
        events_to_90=sum(middle) / 2,
        cosine=mean("cosine"),
        entropy=mean("entropy"),
        teaching=mean("teaching"),
        difference=float(gap.mean()) if len(gap) else 0.0,
        difference_p=p_values[0],
        ahead=int(np.sum(gap > 0)),
        ahead_p=p_values[1],
        events_p=p_values[2],
        area_median=float(np.median(area)),
        final_median=float(np.median(final)),
        difference_median=float(np.median(gap)) if len(gap) else 0.0,
        area_interval=median_interval(area),
        final_interval=median_interval(final),
        events_interval=median_interval(reached),
        difference_interval=median_interval(gap),
        answered=worst.get("answered", 1.0),
        refused=worst.get("refused", ""),
    )
