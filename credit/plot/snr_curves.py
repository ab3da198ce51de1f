"""Signal to noise against trace length: measured points with bands, closed forms beside them."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from credit.bench.rounding import EXACT
from credit.plot.canvas import grow, key, look, new_figure, plain_axes, plain_logs
from credit.plot.finishing import lying_on, shown_name
from graphs.errors import CreditError
from graphs.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from credit.bench.snr import Point, Report
    from graphs.event_graph import Array

__all__ = ["Curve", "draw_snr", "draw_snr_report"]

AXES: dict[str, str] = {
    "length": "trace length T [decisions]",
    "cost": "evidence used [rollouts a trace]",
}
SLOPES = "slopes: in brackets half of the 99 % interval"
BANDS = "bands: 99 %"
PAIRS = "on shared draws the printed differences of pairs decide, not whether bands or lines overlap"
APART = 0.015
"""Of the height: markers that are no farther apart hide each other."""
ABREAST = 3
"""Panels side by side, at most."""
LONG = 3.6  # of a line in the legend, in its type: a marker hid the gaps of a shorter one, which looked solid
DASHED: Any = (0, (4, 2))
JOINED: tuple[Any, ...] = ("-", (0, (1, 1)), (0, (5, 1, 1, 1)))
"""Lines of schemes without a closed form: of two that are drawn as one, both are seen."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """One scheme's signal to noise, point by point.

    Attributes:
      name: of the scheme.
      length: [N], T of each point, in decisions.
      snr: [N], a pure number, as `credit.bench.snr` has it.
      low, high: [N], the confidence band.
      theory: [N], the closed form at the same T; None where there is none; NaN where it is undefined.
      cost: [N], what the evidence of a trace cost, in rollouts; needed for `x="cost"`.
      slope: of log SNR on log T, as fitted; None where none was.
      slope_half: half of the 99 % interval of the slope; None where it is not known.
      panel: that it stands in, by its title; "" where there is one panel.
    """

    name: str
    length: Array
    snr: Array
    low: Array | None = None
    high: Array | None = None
    theory: Array | None = None
    cost: Array | None = None
    slope: float | None = None
    slope_half: float | None = None
    panel: str = ""

    def __post_init__(self) -> None:
        for field in ("snr", "low", "high", "theory", "cost"):
            values = getattr(self, field)
            if values is not None and np.shape(values) != np.shape(self.length):
                shape, expected = np.shape(values), np.shape(self.length)
                raise CreditError(
                    f"curve {self.name!r}: {field} has shape {shape}; expected {expected}, that of length"
                )
        if (self.low is None) != (self.high is None):
            raise CreditError(f"curve {self.name!r}: a band needs both low and high")


def draw_snr(
    curves: Sequence[Curve], *, x: Literal["length", "cost"] = "length", title: str = "", groups: str = ""
) -> Figure:
    """Draw signal to noise against trace length on logarithmic axes, one line a scheme.

    Points are measurements, shaded their confidence bands. A dashed line through them is the scheme's closed form,
    which was not fitted to them; where a scheme has none, straight lines join its points, solid, dotted or both. The
    legend has the schemes in their order, as tables have them, with the fitted slope. What is not positive cannot stand
    on a logarithmic axis: a band that reaches 0 ends at the lower edge, a point at 0 is left out. Several panels share
    their axes and the legend, which then lists no slopes.

    Args:
      curves: one or more schemes.
      x: "length", the number of decisions; or "cost", the rollouts that the evidence took.
      title: above the axes; "" for none.
      groups: above the legend, such as "groups of 8"; "" for nothing.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: no curve, an unknown `x`, or "cost" and a curve has none.
    """
    if not curves:
        raise CreditError("no curve to draw; expected one or more")
    if x not in AXES:
        raise CreditError(f"x is {x!r}; expected 'length' or 'cost'")
    for curve in curves:
        if getattr(curve, x) is None:
            raise CreditError(f"curve {curve.name!r} has no {x}; draw it with x='length'")
    from matplotlib.lines import Line2D

    titles = list(dict.fromkeys(curve.panel for curve in curves))
    lines = -(-len(titles) // ABREAST)
    columns = -(-len(titles) // lines)
    figure = new_figure(5.4 + 3.0 * columns, 4.6 if lines == 1 else 3.4 * lines)
    scales = {"xscale": "log", "yscale": "log"}
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True, subplot_kw=scales).ravel()
    for axes in panels[len(titles) :]:
        axes.set_visible(False)
    of_panel = dict(zip(titles, panels, strict=False))
    drawn = [c.snr for c in curves] + [c.theory for c in curves if c.theory is not None]
    floor = min(float(np.min(_positive(values), initial=np.inf)) for values in drawn) / 3
    numbers = {name: number for number, name in enumerate(dict.fromkeys(curve.name for curve in curves))}
    looks = [look(numbers[curve.name]) for curve in curves]
    measured = [*dict.fromkeys(curve.name for curve in curves if curve.theory is None)]
    joined = {name: JOINED[number % len(JOINED)] for number, name in enumerate(measured)}
    handles, labels = {}, {}
    for curve, (colour, marker) in zip(curves, looks, strict=True):
        _draw(
            of_panel[curve.panel],
            curve,
            np.asarray(getattr(curve, x), np.float64),
            colour,
            marker,
            joined.get(curve.name),
        )
        handles[curve.name] = Line2D(
            [], [], color=colour, marker=marker, markersize=5, linewidth=1.2, linestyle=joined.get(curve.name, DASHED)
        )
        labels[curve.name] = printable(curve.name, 48) + (_slope(curve) if x == "length" and len(titles) == 1 else "")
    shown, said = [*handles.values()], [*labels.values()]
    if any(curve.theory is not None for curve in curves):
        shown.append(Line2D([], [], color="0.3", linestyle=DASHED, linewidth=1.2))
        said.append("closed form, not fitted")
    bands = [(c, at, colour) for c, (colour, _) in zip(curves, looks, strict=True) if (at := _band(c, x)) is not None]
    for curve, (along, low, high), _ in bands:
        ends = np.concatenate([np.maximum(low, floor), high])
        of_panel[curve.panel].update_datalim(np.column_stack([np.tile(along, 2), ends]))
    for axes in of_panel.values():
        axes.autoscale_view()
    for number, (text, axes) in enumerate(of_panel.items()):
        plain_axes(axes, grid="both")
        plain_logs(axes.xaxis)
        plain_logs(axes.yaxis)
        axes.set_title(printable(text, 40), fontsize=9, parse_math=False)
        if number + columns >= len(titles):  # no panel is below
            axes.set_xlabel(AXES[x], fontsize=9)
            axes.tick_params(labelbottom=True)
        if number % columns == 0:
            axes.set_ylabel("signal to noise of one decision's advantage", fontsize=9)
    bottom = panels[0].get_ylim()[0]
    for curve, (along, low, high), colour in bands:  # one that goes on below ends where the axis does, not above
        until = np.where(low < floor, bottom, low)
        of_panel[curve.panel].fill_between(along, until, high, color=colour, alpha=0.18, linewidth=0, zorder=2)
        if len(along) == 1:  # over which no area stands
            of_panel[curve.panel].vlines(along, until, high, color=colour, alpha=0.5, linewidth=1.5, zorder=2)
    if title and len(titles) == 1:
        panels[0].set_title(printable(title, 120), loc="left", fontsize=10, parse_math=False)
    elif title:
        figure.suptitle(printable(title, 120), x=0.01, ha="left", fontsize=10, parse_math=False)
    key(figure, shown, said, loc="outside right upper", title=groups, alignment="left", handlelength=LONG)
    grow(figure)
    return figure


def _band(curve: Curve, x: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Where the points of a curve stand along `x`, with both ends of their band."""
    if curve.low is None or curve.high is None:
        return None
    snr = np.asarray(curve.snr, np.float64)
    kept = np.isfinite(snr) & (snr > EXACT)
    at, low, high = (np.asarray(values, np.float64)[kept] for values in (getattr(curve, x), curve.low, curve.high))
    return at, low, high


def _draw(axes: Axes, curve: Curve, x: np.ndarray, colour: str, marker: str, joined: Any) -> None:
    snr = np.asarray(curve.snr, np.float64)
    finite = np.isfinite(snr) & (snr > EXACT)
    axes.plot(x[finite], snr[finite], marker, color=colour, markersize=5, linestyle="none", zorder=4)
    if curve.theory is None:
        axes.plot(x[finite], snr[finite], color=colour, linewidth=1.2, linestyle=joined, zorder=3)
    else:  # it joins the points, so that what departs from it shows, and lies above lines that it coincides with
        theory = np.asarray(curve.theory, np.float64)
        known = np.isfinite(theory) & (theory > EXACT)
        axes.plot(x[known], theory[known], color=colour, linestyle=DASHED, linewidth=1.2, zorder=3.5)


def _slope(curve: Curve) -> str:
    if curve.slope is None:
        return ""
    stated = f"{curve.slope:+z.2f}" if curve.slope_half is None else f"{curve.slope:+z.3f} ({curve.slope_half:.3f})"
    return f", slope {stated}".replace("-", "\N{MINUS SIGN}")


def _lying(curves: Sequence[Curve]) -> list[str]:
    """Which curves hide others at all lengths that both have, on the logarithmic axis that shows all of them."""
    shown = np.log(np.concatenate([_positive(curve.snr) for curve in curves]))
    height = float(np.ptp(shown)) or 1.0
    lengths = sorted({float(length) for curve in curves for length in curve.length})
    found: dict[str, dict[str, np.ndarray]] = {}
    for curve in curves:
        at = np.full(len(lengths), np.nan)
        at[np.searchsorted(lengths, np.asarray(curve.length, np.float64))] = curve.snr
        drawn = np.where(at > EXACT, at, np.nan)
        found.setdefault(printable(curve.name, 48), {})[curve.panel] = np.log(drawn) / height
    return lying_on([*found.items()], APART, ("in", "panels"))


def _positive(values: Array) -> np.ndarray:
    """Those that can stand on a logarithmic axis."""
    values = np.asarray(values, np.float64)
    kept: np.ndarray = values[np.isfinite(values) & (values > EXACT)]
    return kept


def draw_snr_report(
    report: Report | Sequence[Report],
    *,
    names: Sequence[str] | None = None,
    equal_cost: bool = False,
    values: str = "",
) -> Figure:
    """The points against trace length; with several worlds or group sizes a panel for each of them.

    Args:
      report: what was measured, in one world or in several.
      names: of the schemes to draw; all by default.
      equal_cost: divide by the square root of the rollouts that the evidence of a trace takes, since gradients average:
        what one rollout's worth of evidence gives.
      values: what values methods were given, to be stated, such as that of `credit.bench.given_values`.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: no scheme has a positive point.
    """
    from credit.bench.refusals import Absent, absent_caption, refused_caption
    from credit.bench.snr import Report

    reports = [report] if isinstance(report, Report) else [*report]
    found: dict[tuple[int, str, int], list[Point]] = {}
    for number, one in enumerate(reports):
        for point in one.points:
            found.setdefault((number, point.scheme, point.group), []).append(point)
    found = {place: points for place, points in found.items() if len(_positive([p.snr for p in points]))}
    fits = {(number, line.scheme, line.group): line for number, one in enumerate(reports) for line in one.fits}
    groups, worlds = {group for *_, group in found}, [one.world for one in reports]
    shown = {scheme: shown_name(scheme) for _, scheme, _ in found}
    drawn = []
    for (number, scheme, group), points in found.items():
        if names is not None and scheme not in names:
            continue
        line = None if equal_cost else fits.get((number, scheme, group))
        scale = 1 / np.sqrt([p.cost for p in points]) if equal_cost else np.ones(len(points))
        theory = [p.theory for p in points]
        panel = [worlds[number]] * (len(worlds) > 1) + [f"groups of {group}"] * (len(groups) > 1)
        drawn.append(
            Curve(
                name=shown[scheme],
                length=np.array([p.length for p in points]),
                snr=scale * [p.snr for p in points],
                low=scale * [p.low for p in points],
                high=scale * [p.high for p in points],
                theory=None if any(t is None for t in theory) else scale * np.array(theory, float),
                slope=None if line is None else line.slope,
                slope_half=None if line is None else line.half_width,
                panel=", ".join(panel),
            )
        )
    if not drawn:
        asked_for = "" if names is None else f" of {', '.join(names)}"
        raise CreditError(f"no scheme{asked_for} has a positive signal to noise; expected one or more")
    one_size = f"groups of {max(groups)}" if len(groups) == 1 else ""
    asked = shown.keys() if names is None else shown.keys() & set(names)
    refused = refused_caption((shown[p.scheme], p.answered) for of in reports for p in of.points if p.scheme in asked)
    measured = {p.scheme for of in reports for p in of.points}
    absent = {r.scheme: Absent(r.scheme, "", r.why) for of in reports for r in of.refused if r.scheme not in measured}
    left_out = absent_caption(absent.values(), shown_name)
    world = "" if worlds[1:] or worlds == ["normal"] else f"world {printable(worlds[0], 32)}"
    pairs = PAIRS if len({curve.name for curve in drawn}) > 1 and not equal_cost else ""
    slopes = SLOPES if any(curve.slope is not None and not curve.panel for curve in drawn) else ""
    said = (one_size, world, values, refused, left_out, slopes, BANDS, pairs, *_lying(drawn))
    figure = draw_snr(drawn, groups=textwrap.fill("; ".join(filter(None, said)), 40))
    if equal_cost:
        for axes in filter(lambda axes: axes.get_ylabel(), figure.axes):
            axes.set_ylabel("signal to noise / √(rollouts of evidence a trace)", fontsize=9)
    return figure
