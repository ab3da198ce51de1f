"""Methods beside the truth: how much of the true credit their advantages hold, and how much noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credit.plot.canvas import CYCLE, INK, key_of_series, new_figure, plain_axes
from credit.plot.finishing import shown_name
from graphs.errors import CreditError
from graphs.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from credit.bench.against_truth import Match
    from credit.bench.refusals import Absent

__all__ = ["draw_truth"]

PANELS = (("slope", "slope on true increments"), ("correlation", "correlation with true increments"))


def draw_truth(
    rows: Sequence[Match],
    *,
    title: str = "",
    values: str = "",
    absent: Sequence[Absent] = (),
) -> Figure:
    """Draw slope and correlation of each method with 95 % intervals, a marker for each world, methods in their order.

    Each of several sizes of groups has its own panels, on shared axes.

    Lines mark slope 1, where a method gives all of the true credit, and correlation 0, where it gives none of it.

    Args:
      rows: of `credit.bench.against_truth.score`.
      title: above the panels; "" for none.
      values: what values methods were given, to be stated, such as that of `credit.bench.given_values`.
      absent: methods that were left out, to be stated.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: there are no rows.
    """
    from credit.bench.refusals import absent_caption, refused_caption

    if not rows:
        raise CreditError("rows is empty; expected results of credit.bench.against_truth.score")
    methods = list(dict.fromkeys(row.method for row in rows))
    worlds = list(dict.fromkeys(row.world for row in rows))
    step = min(0.16, 0.8 / len(worlds))
    sizes = sorted({row.group_size for row in rows})
    figure = new_figure(8.0, 1.4 * len(sizes) ** 0.5 + len(sizes) * len(methods) * max(0.25, 0.1 * len(worlds)))
    panels = figure.subplots(len(sizes), len(PANELS), squeeze=False, sharex="col", sharey=True)
    place = {name: y for y, name in enumerate(methods)}
    for size, line in zip(sizes, panels, strict=True):
        for axes, (field, label) in zip(line, PANELS, strict=True):
            for number, world in enumerate(worlds):
                colour, marker = CYCLE[number % len(CYCLE)]
                of_world = [row for row in rows if (row.world, row.group_size) == (world, size)]
                of_world = [row for row in of_world if np.isfinite(getattr(row, field))]
                shift = step * (number - (len(worlds) - 1) / 2)  # equal numbers lie beside each other, not on top
                axes.errorbar(
                    [getattr(row, field) for row in of_world],
                    [place[row.method] + shift for row in of_world],
                    xerr=np.abs([[getattr(row, f"{field}_{end}") - getattr(row, field) for row in of_world]
                                 for end in ("low", "high")]),
                    fmt=marker, color=colour, markersize=4.5, elinewidth=1.1, capsize=0, zorder=3,
                )  # fmt: skip
            plain_axes(axes, grid="both")
            axes.axvline(1.0 if field == "slope" else 0.0, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
            if len(sizes) > 1:
                axes.set_title(f"groups of {size}", fontsize=9)
            if size == sizes[-1]:
                axes.set_xlabel(label, fontsize=9)
    names = [*map(shown_name, methods)]
    panels[0, 0].set_ylim(len(methods) - 0.4, -0.6)
    for axes in panels[:, 0]:
        axes.set_yticks(range(len(methods)), names, fontsize=8, parse_math=False)
    if title:
        figure.suptitle(printable(title, 120), x=0.01, ha="left", fontsize=10, parse_math=False)
    counts = " to ".join(f"{n:,}" for n in sorted({f(row.groups for row in rows) for f in (min, max)}))
    of_size = f"groups of {sizes[0]} traces" if sizes[0] and len(sizes) == 1 else "groups"
    groups = f"{counts} {of_size}" if counts != "0" else ""
    bars = (
        "bars: 95 % intervals" if any(np.isfinite([row.slope_low, row.correlation_low]).any() for row in rows) else ""
    )
    refused = refused_caption((shown_name(row.method), row.answered) for row in rows)
    stated = (groups, bars, values, refused, absent_caption(absent, shown_name))
    key_of_series(figure, worlds, "; ".join(filter(None, stated)))
    return figure
