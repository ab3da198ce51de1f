"""Signal to noise less that of the first scheme, as a share of it: at every length, beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from credit.plot.canvas import INK, key, look, new_figure, plain_axes, plain_logs
from credit.plot.finishing import shown_name
from graphs.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from credit.plot.snr_curves import Curve

__all__ = ["draw_snr_differences"]

SPREAD = 0.5
"""Of the way from one length to the next, over which the schemes of a length stand."""


def draw_snr_differences(curves: Sequence[Curve], first: str, stated: str = "") -> Figure:
    """Draw differences against trace length with their bands; schemes of one length stand beside each other.

    Args:
      curves: one or more, with `snr`, `low` and `high` the difference and its ends over the first scheme's SNR; NaN
        without them.
      first: whose SNR was subtracted.
      stated: above the legend.

    Raises:
      MissingExtraError: matplotlib is not installed.
    """
    from matplotlib.lines import Line2D

    titles = list(dict.fromkeys(curve.panel for curve in curves))
    names = list(dict.fromkeys(curve.name for curve in curves))
    figure = new_figure(2.4 + 3.0 * len(titles), 3.6)
    panels = figure.subplots(1, len(titles), squeeze=False, sharex=True, sharey=True, subplot_kw={"xscale": "log"})[0]
    lengths = np.unique(np.concatenate([curve.length for curve in curves]))
    gap = np.min(np.diff(np.log(lengths)), initial=np.log(10))
    for axes, title in zip(panels, titles, strict=True):
        for curve in (curve for curve in curves if curve.panel == title):
            number = names.index(curve.name)
            colour, marker = look(number)
            aside = np.exp(SPREAD * gap * ((number + 0.5) / len(names) - 0.5))
            ends = np.array([curve.snr if end is None else end for end in (curve.low, curve.high)])
            axes.errorbar(curve.length * aside, curve.snr, np.abs(ends - curve.snr), fmt=marker, color=colour,
                          markersize=4.5, elinewidth=1.1, zorder=3)  # fmt: skip
        plain_axes(axes, grid="both")
        axes.axhline(0, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.set_title(printable(title, 40), fontsize=9, parse_math=False)
        axes.set_xlabel("trace length T [decisions]", fontsize=9)
    plain_logs(panels[0].xaxis)
    panels[0].set_ylabel(f"SNR less that of {shown_name(first)}\n[share of it]", fontsize=9, parse_math=False)
    looks = map(look, range(len(names)))
    shown = [Line2D([], [], color=colour, marker=marker, markersize=5, linestyle="none") for colour, marker in looks]
    key(figure, shown, [shown_name(name) for name in names], loc="outside right upper", title=stated, alignment="left")
    return figure
