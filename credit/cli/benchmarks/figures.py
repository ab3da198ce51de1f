"""Figures of numbers as `--table` of a benchmark holds them, of one run or of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.bench.refusals import Absent
from credit.cli.benchmarks.bench_bias import MAIN, SCORES
from credit.cli.benchmarks.measured import HELD, Measured, condition, said, shared_conditions
from graphs.errors import CreditError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAWN", "figure_of"]

DRAWN = {"bias": MAIN, "truth": ("slope", "correlation"), "snr": ("snr",), "train": ("area",)}
"""By benchmark the quantities that are drawn unless others are asked for."""
ENDED = ("slope", "correlation", "sign")
"""Of truth those with intervals."""


def figure_of(numbers: Sequence[Measured], chosen: Sequence[Measured]) -> Figure:
    """The figure that the benchmark drew of its run; of other quantities, and of differences, dots with intervals.

    Args:
      numbers: of one benchmark, with the settings that describe others.
      chosen: those of the quantities to draw, in their order.

    Raises:
      CreditError: the numbers are of several benchmarks.
    """
    benches = list(dict.fromkeys(number.bench for number in chosen))
    if len(benches) > 1:
        raise CreditError(f"the files are of {' and '.join(benches)}; expected those of one benchmark, or --quantity")
    quantities = list(dict.fromkeys(number.quantity for number in chosen))
    methods = {name for number in chosen for name in (number.method, number.less)}
    given = said((number for number in chosen if not number.is_absent), "given")
    values = "; ".join(part for part in given if part.partition(": ")[0] not in methods)  # not what one alone has
    numbers = [number for number in numbers if number.bench == benches[0] and number.method in methods]
    plain = not any(number.less for number in chosen)
    if benches == ["snr"] and quantities == ["snr"]:
        return _of_snr(numbers, values) if plain else _of_differences(numbers, chosen, values)
    if plain and benches == ["bias"]:
        return _of_bias(numbers, quantities, values)
    if plain and benches == ["truth"]:
        return _of_truth(numbers, quantities, values)
    return _dots(chosen, values)


def _by_place(numbers: Sequence[Measured], *names: str) -> dict[tuple[str, Any], dict[str, Measured]]:
    """The quantities of each method under each condition, whose world has what else its run differs by."""
    found: dict[tuple[str, Any], dict[str, Measured]] = {}
    plain = [number for number in numbers if not number.less]
    world = _worlds(plain)
    for number in plain:
        place = (world(number), *(getattr(number, name) for name in names))
        found.setdefault((number.method, place), {})[number.quantity] = number
    return found


def _worlds(numbers: Sequence[Measured]) -> Callable[[Measured], str]:
    """The world of a number, with the settings of its run that other numbers of the quantity in that world lack."""
    alone: dict[tuple[str, str | None], list[Measured]] = {}
    for number in numbers:
        alone.setdefault((number.quantity, number.world), []).append(_unsized(number))
    shared = {at: shared_conditions(of) - {of[0].world or ""} for at, of in alone.items()}
    return lambda number: condition(_unsized(number), shared[number.quantity, number.world], others=True)


def _unsized(number: Measured) -> Measured:
    return number._replace(group_size=None, length=None, learning_rate=None)


def _absent(found: dict[tuple[str, Any], dict[str, Measured]], of: Callable[[Any], int | None]) -> list[Absent]:
    """What is left out: without a share of answers."""
    return [
        Absent(method, place[0], why, of(place))
        for (method, place), quantities in found.items()
        if "answered" in quantities and math.isnan(quantities["answered"].value)
        for why in [quantities["answered"].why]
    ]


def _of_bias(numbers: Sequence[Measured], scores: Sequence[str], values: str) -> Figure:
    from credit.bench.bias import Row
    from credit.plot import draw_methods

    found = _by_place(numbers, "group_size")
    rows = [
        Row(method, world, size, *(of[score].value if score in of else math.nan for score in SCORES))
        for (method, (world, size)), of in found.items()
    ]
    sizes = sorted({row.k for row in rows if row.k > 1})
    k = None if {*sizes} <= {2, 3} else sizes  # as of a run that names no sizes, or does
    return draw_methods(rows, k=k, scores=scores, values=values, absent=_absent(found, lambda place: place[1]))


def _of_truth(numbers: Sequence[Measured], scores: Sequence[str], values: str) -> Figure:
    from credit.bench.against_truth import Match
    from credit.plot import draw_truth

    found = _by_place(numbers, "group_size")
    rows = []
    for (method, (world, size)), of in found.items():
        if math.isnan(of["answered"].value):
            continue
        ends = {
            f"{score}{end}": getattr(of[score], name)
            for score in ENDED
            for end, name in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        answered, groups = of["answered"], max(number.independent or 0 for number in of.values())
        rows.append(
            Match(method, world, 0, **ends, answered=answered.value, refused=answered.why, groups=groups,
                  group_size=size)
        )  # fmt: skip
    return draw_truth(rows, scores=scores, values=values, absent=_absent(found, lambda place: None))


def _of_snr(numbers: Sequence[Measured], values: str) -> Figure:
    from credit.bench.snr import Fit, Point, Refused, Report
    from credit.plot import draw_snr_report

    reports: dict[str, Report] = {}
    for (scheme, (world, size, length)), of in _by_place(numbers, "group_size", "length").items():
        report = reports.setdefault(world, Report([], [], {}, world=world))
        if slope := of.get("slope"):
            half = (slope.high - slope.low) / 2
            report.fits.append(Fit(scheme, size, 0, 0, slope.value, half, None, None))
        elif math.isnan((snr := of["snr"]).value):
            report.refused.append(Refused(scheme, length, size, snr.why))
        else:
            closed = of["closed form"].value if "closed form" in of else math.nan
            theory, cost, answered = None if math.isnan(closed) else closed, of["cost"].value, of["answered"]
            report.points.append(
                Point(scheme, scheme, length, size, snr.value, snr.low, snr.high, math.nan, theory, cost, math.nan,
                      math.nan, 0, "", 0.0, answered.value, answered.why)
            )  # fmt: skip
    return draw_snr_report([*reports.values()], values=values)


def _of_differences(numbers: Sequence[Measured], chosen: Sequence[Measured], values: str) -> Figure:
    """Differences over the SNR that was subtracted, where its band has no 0."""
    from credit.plot.snr_curves import Curve
    from credit.plot.snr_differences import draw_snr_differences

    firsts = {_run(number): number for number in numbers if number.quantity == "snr" and not number.less}
    names = list(dict.fromkeys(number.less for number in chosen if number.less))
    if len(names) > 1:
        raise CreditError(f"differences are from {' and '.join(names)}; expected those from one: leave out a file")
    curves: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    unscaled: set[int] = set()
    world, sizes = _worlds(chosen), {number.group_size for number in chosen}
    several = len({world(number) for number in chosen}) > 1
    for number in (number for number in chosen if number.less):
        first = firsts[_run(number._replace(method=number.less))]
        if not first.low > 0:
            unscaled.add(number.length or 0)
            continue
        panel = ", ".join([world(number)] * several + [f"groups of {number.group_size}"] * (len(sizes) > 1))
        shares = (one / first.value for one in (number.value, number.low, number.high))
        curves.setdefault((number.method, panel), []).append((number.length or 0, *shares))
    if not curves:
        raise CreditError(f"the SNR of {names[0]} is not above 0 at any length; expected one that is")
    drawn = [
        Curve(method, length=at[0], snr=at[1], low=at[2], high=at[3], panel=panel)
        for (method, panel), points in curves.items()
        for at in [np.array(points).T]
    ]
    left_out = f"left out: T = {', '.join(f'{t:,}' for t in sorted(unscaled))}, where the SNR of {names[0]} may be 0"
    marked = "some draws apart" * any("‡" in number.mark for number in chosen)
    about = [world(chosen[0])] * (not several) + [f"groups of {max(map(int, filter(None, sizes)))}"] * (len(sizes) == 1)
    stated = "; ".join(filter(None, (*about, values, "bars: 99 %", left_out * bool(unscaled), marked)))
    return draw_snr_differences(drawn, names[0], stated)


def _run(number: Measured) -> tuple[Any, ...]:
    return number.method, number.world, number.group_size, number.length, number.settings


def _dots(chosen: Sequence[Measured], values: str) -> Figure:
    from credit.bench.refusals import absent_caption
    from credit.plot.finishing import shown_name
    from credit.plot.interval_dots import Dot, draw_dots

    world = _worlds(chosen)
    others = [condition(number._replace(world=None, group_size=None, settings=""), set(), others=True)
              for number in chosen]  # fmt: skip
    several = len(set(others)) > 1
    dots = [
        Dot(number.method, ", ".join(filter(None, [world(number), other * several])), number.group_size or 0,
            _label(number), number.value, number.low, number.high)
        for number, other in zip(chosen, others, strict=True) if math.isfinite(number.value)
    ]  # fmt: skip
    if not dots:
        raise CreditError("no number to draw")
    sizes = {dot.group_size for dot in dots}
    sure = sorted({number.confidence for number in chosen if number.confidence and not math.isnan(number.low)})
    bars = f"bars: {' and '.join(f'{100 * one:.2g} %' for one in sure)} intervals" * bool(sure)
    groups = f"groups of {max(sizes)}" * (len(sizes) == 1 and max(sizes) > 0)
    absent = [Absent(number.method, number.world or "", number.why) for number in chosen if number.is_absent]
    stated = (groups, bars, values, absent_caption(absent, shown_name))
    return draw_dots(dots, {_label(number): 0.0 for number in chosen if number.less}, stated)


def _label(number: Measured) -> str:
    text = HELD[number.bench].get(number.quantity, number.quantity)
    return f"{text[0].lower()}{text[1:]}" + f"\nless that of {number.less}" * bool(number.less)
