"""Reliability diagrams: predicted probabilities against observed frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from credit.plot.canvas import INK, grow, key, look, new_figure, plain_axes
from graphs.errors import CreditError
from graphs.task_means import mean_of_tasks
from graphs.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from graphs.event_graph import Array

__all__ = ["draw_calibration"]


class _Bins(NamedTuple):
    """Of each bin: mean prediction, mean outcome, its 95 % interval (NaN for none), and the number of predictions."""

    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray


def draw_calibration(
    series: Mapping[str, tuple[Array, Array]],
    *,
    tasks: Array | None = None,
    bins: int = 10,
    unit: str = "reward",
    title: str = "",
) -> Figure:
    """Draw mean outcomes against mean predictions, in bins of equally many predictions; below, how predictions spread.

    On the diagonal predictions equal outcomes. With `tasks` a bin's outcome is the mean over tasks of their means in
    it, with a bar for its 95 % interval over tasks; a bin of fewer than 40 tasks has no bar, nor one with fewer than 3
    above or below the mean, unless their outcomes are 0 and 1.
    Without `tasks` nothing has one: outcomes of one task depend on each other. The legend states the expected
    calibration error: the distance of a bin from the diagonal, averaged over predictions.

    Args:
      series: by name, predictions and outcomes, float [N] each; pairs that are not finite are left out.
      tasks: [N], the task of each pair, of all series alike; tasks are independent of each other.
      bins: at most so many; predictions that are equal share a bin, so there may be fewer.
      unit: of predictions and outcomes.
      title: above the axes; "" for none.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: there is no series, or one without a finite pair, or of several lengths; `bins` is not positive.
    """
    if not series:
        raise CreditError("there are no predictions to draw")
    if bins < 1:
        raise CreditError(f"bins is {bins}; expected 1 or more")
    pairs = {name: _pairs(name, *both, tasks) for name, both in series.items()}
    from matplotlib.lines import Line2D

    figure = new_figure(6.4, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    spread = np.concatenate([p for p, _, _ in pairs.values()])
    edges = np.linspace(spread.min(), spread.max() if np.ptp(spread) > 0 else spread.min() + 1, 41)
    low, high = np.inf, -np.inf
    handles, labels = [], []
    for number, (name, (predicted, observed, task)) in enumerate(pairs.items()):
        colour, marker = look(number)
        b = _binned(predicted, observed, task, bins)
        told = np.isfinite(b.low)
        upper.vlines(b.predicted[told], b.low[told], b.high[told], colors=colour, linewidth=1.1, alpha=0.8)
        upper.plot(b.predicted, b.observed, marker, color=colour, markersize=5, linestyle="-", linewidth=1)
        lower.hist(predicted, edges, histtype="step", color=colour, linewidth=1.2)
        reach = np.concatenate([b.predicted, b.observed, b.low[told], b.high[told]])
        low, high = min(low, reach.min()), max(high, reach.max())
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
    grow(figure)
    return figure


def _pairs(
    name: str, predicted: Array, observed: Array, tasks: Array | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    p, o = np.asarray(predicted, np.float64), np.asarray(observed, np.float64)
    if p.ndim != 1 or p.shape != o.shape:
        raise CreditError(f"series {name!r} has predictions {p.shape} and outcomes {o.shape}; expected [N] both")
    task = None if tasks is None else np.unique(np.asarray(tasks), return_inverse=True)[1].reshape(np.shape(tasks))
    if task is not None and task.shape != p.shape:
        raise CreditError(f"series {name!r} has predictions {p.shape} and tasks {task.shape}; expected [N] both")
    known = np.isfinite(p) & np.isfinite(o)
    if not known.any():
        raise CreditError(f"series {name!r} has no prediction with an outcome")
    return p[known], o[known], None if task is None else task[known]


def _binned(predicted: np.ndarray, observed: np.ndarray, task: np.ndarray | None, bins: int) -> _Bins:
    cuts = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(cuts, predicted, side="right")
    place = np.unique(place, return_inverse=True)[1]  # equal predictions leave bins empty
    count = np.bincount(place)
    mean = np.bincount(place, predicted) / count
    if task is None:
        none = np.full(len(count), np.nan)
        return _Bins(mean, np.bincount(place, observed) / count, none, none, count)
    found = []
    for b in range(len(count)):
        of_task = np.unique(task[place == b], return_inverse=True)[1]
        found.append(mean_of_tasks(np.bincount(of_task, observed[place == b]) / np.bincount(of_task))[0])
    rate, low, high = np.array([row[:3] for row in found]).T
    return _Bins(mean, rate, low, high, count)
