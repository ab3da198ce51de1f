"""Reliability diagrams: predicted probabilities against observed frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from credit.plot.canvas import CYCLE, INK, key, new_figure, plain_axes
from graphs.errors import CreditError
from graphs.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from graphs.event_graph import Array

__all__ = ["draw_calibration"]

Z95 = 1.959963984540054  # normal quantile of 0.975


class _Bins(NamedTuple):
    """Of each bin: mean prediction, mean outcome, the 95 % interval of the latter, and how many there are."""

    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray


def draw_calibration(
    series: Mapping[str, tuple[Array, Array]], *, bins: int = 10, unit: str = "reward", title: str = ""
) -> Figure:
    """Draw mean outcomes against mean predictions, in bins of equally many predictions; below, how predictions spread.

    On the diagonal predictions equal outcomes. Bars are 95 % intervals of the mean outcome: Wilson's if all outcomes
    are 0 or 1, otherwise the mean ± 1.96 standard errors. Both assume independent outcomes, so they are too short if
    one trace gives several predictions. The legend states the expected calibration error: the distance of a bin from
    the diagonal, averaged over predictions.

    Args:
      series: by name, predictions and outcomes, float [N] each; pairs that are not finite are left out.
      bins: at most so many; predictions that are equal share a bin, so there may be fewer.
      unit: of predictions and outcomes.
      title: above the axes; "" for none.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: there is no series, or one without a finite pair, or of two lengths; `bins` is not positive.
    """
    if not series:
        raise CreditError("there are no predictions to draw")
    if bins < 1:
        raise CreditError(f"bins is {bins}; expected 1 or more")
    pairs = {name: _pairs(name, *both) for name, both in series.items()}
    from matplotlib.lines import Line2D

    figure = new_figure(6.4, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    spread = np.concatenate([p for p, _ in pairs.values()])
    edges = np.linspace(spread.min(), spread.max() if np.ptp(spread) > 0 else spread.min() + 1, 41)
    low, high = np.inf, -np.inf
    handles, labels = [], []
    for number, (name, (predicted, observed)) in enumerate(pairs.items()):
        colour, marker = CYCLE[number % len(CYCLE)]
        b = _binned(predicted, observed, bins)
        upper.vlines(b.predicted, b.low, b.high, colors=colour, linewidth=1.1, alpha=0.8)
        upper.plot(b.predicted, b.observed, marker, color=colour, markersize=5, linestyle="-", linewidth=1)
        lower.hist(predicted, edges, histtype="step", color=colour, linewidth=1.2)
        low, high = min(low, b.predicted.min(), b.low.min()), max(high, b.predicted.max(), b.high.max())
        error = float(np.sum(b.weight * np.abs(b.observed - b.predicted)) / b.weight.sum())
        handles.append(Line2D([], [], color=colour, marker=marker, markersize=5, linewidth=1))
        labels.append(f"{printable(name, 40)}  (calibration error {error:.3f})")
    upper.plot([low, high], [low, high], color=INK, linestyle=(0, (4, 2)), linewidth=1, zorder=1)
    handles.append(Line2D([], [], color=INK, linestyle=(0, (4, 2)), linewidth=1))
    labels.append("as predicted")
    for axes in (upper, lower):
        plain_axes(axes, grid="both" if axes is upper else "")
    behind = f" [{unit}]" if unit else ""
    upper.set_ylabel(f"mean outcome{behind}", fontsize=9)
    lower.set_ylabel("predictions", fontsize=9)
    lower.set_xlabel(f"predicted{behind}", fontsize=9)
    if title:
        upper.set_title(printable(title, 100), loc="left", fontsize=10, parse_math=False)
    key(figure, handles, labels, loc="outside lower center")
    return figure


def _pairs(name: str, predicted: Array, observed: Array) -> tuple[np.ndarray, np.ndarray]:
    p, o = np.asarray(predicted, np.float64), np.asarray(observed, np.float64)
    if p.ndim != 1 or p.shape != o.shape:
        raise CreditError(f"series {name!r} has predictions {p.shape} and outcomes {o.shape}; expected [N] both")
    known = np.isfinite(p) & np.isfinite(o)
    if not known.any():
        raise CreditError(f"series {name!r} has no prediction with an outcome")
    return p[known], o[known]


def _binned(predicted: np.ndarray, observed: np.ndarray, bins: int) -> _Bins:
    cuts = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(cuts, predicted, side="right")
    place = np.unique(place, return_inverse=True)[1]  # equal predictions leave bins empty
    count = np.bincount(place)
    mean = np.bincount(place, predicted) / count
    rate = np.bincount(place, observed) / count
    if np.isin(observed, (0.0, 1.0)).all():
        centre = (rate + Z95**2 / (2 * count)) / (1 + Z95**2 / count)
        half = Z95 * np.sqrt(rate * (1 - rate) / count + Z95**2 / (4 * count**2)) / (1 + Z95**2 / count)
        return _Bins(mean, rate, centre - half, centre + half, count)
    spread = np.bincount(place, (observed - rate[place]) ** 2) / np.maximum(count - 1, 1)
    half = np.where(count > 1, Z95 * np.sqrt(spread / count), np.inf)
    half = np.where(np.isfinite(half), half, 0)  # one outcome states no error: a point without a bar
    return _Bins(mean, rate, rate - half, rate + half, count)
