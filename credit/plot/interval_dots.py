"""Numbers of methods with their intervals, side by side: a marker for each world, a panel for each quantity."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from credit.plot.canvas import INK, LEAST_NUMBERS, key_of_series, look, new_figure, plain_axes, share_axis
from credit.plot.finishing import shown_name
from graphs.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Dot", "draw_dots"]


class Dot(NamedTuple):
    """One number of a method.

    Attributes:
      method, world: names; the world has a marker.
      group_size: by which panels stand below each other.
      label: of the panel, what the number is.
      value, low, high: with the ends of its interval, NaN without one.
    """

    method: str
    world: str
    group_size: int
    label: str
    value: float
    low: float
    high: float


def draw_dots(
    dots: Sequence[Dot],
    lines: Mapping[str, float],
    stated: Iterable[str],
    title: str = "",
    shares: Collection[str] = (),
) -> Figure:
    """Draw dots with bars, methods below each other in their order.

    Args:
      dots: one or more.
      lines: by the label of a panel where it has a dashed line.
      stated: what the legend says of all, "" for nothing.
      title: above the panels; "" for none.
      shares: labels of panels whose axis ends at 1.

    Raises:
      MissingExtraError: matplotlib is not installed.
    """
    methods = list(dict.fromkeys(dot.method for dot in dots))
    worlds = list(dict.fromkeys(dot.world for dot in dots))
    labels = list(dict.fromkeys(dot.label for dot in dots))
    sizes = sorted({dot.group_size for dot in dots})
    step = min(0.16, 0.8 / len(worlds))
    height = 1.4 * len(sizes) ** 0.5 + len(sizes) * len(methods) * max(0.25, 0.1 * len(worlds))
    figure = new_figure(2.0 + 3.0 * len(labels), height)
    panels = figure.subplots(len(sizes), len(labels), squeeze=False, sharex="col", sharey=True)
    place = {name: y for y, name in enumerate(methods)}
    for size, line in zip(sizes, panels, strict=True):
        for axes, label in zip(line, labels, strict=True):
            for number, world in enumerate(worlds):
                colour, marker = look(number)
                of_world = [dot for dot in dots if (dot.world, dot.group_size, dot.label) == (world, size, label)]
                of_world = [dot for dot in of_world if np.isfinite(dot.value)]
                shift = step * (number - (len(worlds) - 1) / 2)  # equal numbers lie beside each other, not on top
                axes.errorbar(
                    [dot.value for dot in of_world],
                    [place[dot.method] + shift for dot in of_world],
                    xerr=np.abs([[getattr(dot, end) - dot.value for dot in of_world]
                                 for end in ("low", "high")]),
                    fmt=marker, color=colour, markersize=4.5, elinewidth=1.1, capsize=0, zorder=3,
                )  # fmt: skip
            plain_axes(axes, grid="both")
            if label in lines:
                axes.axvline(lines[label], color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
            if len(sizes) > 1:
                axes.set_title(f"groups of {size}", fontsize=9)
            if size == sizes[-1]:
                axes.set_xlabel(label, fontsize=9)
    for axes, label in zip(panels[0], labels, strict=True):  # those below share it
        axes.locator_params(axis="x", min_n_ticks=LEAST_NUMBERS)
        if label in shares:
            share_axis(axes, [end for dot in dots if dot.label == label for end in dot[-3:]])
    panels[0, 0].set_ylim(len(methods) - 0.4, -0.6)
    for axes in panels[:, 0]:
        axes.set_yticks(range(len(methods)), [*map(shown_name, methods)], fontsize=8, parse_math=False)
    if title:
        figure.suptitle(printable(title, 120), x=0.01, ha="left", fontsize=10, parse_math=False)
    key_of_series(figure, worlds, "; ".join(filter(None, stated)))
    return figure
