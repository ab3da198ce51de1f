"""The picture of a comparison: the agreement of methods, and the part of each role and kind of decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credit.plot.canvas import CYCLE, GREY, INK, TEXT, key, new_figure, plain_axes
from credit.plot.finishing import shown_name
from graphs.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from credit.reports.comparison import Comparison

__all__ = ["draw_comparison"]

MOST = 7
"""Parts of a bar that have a colour; smaller ones share the last."""


def draw_comparison(comparison: Comparison) -> Figure:
    """Draw rank correlations as a matrix, and each method's part by role and by kind of decision as bars.

    Correlations over all actions are below the diagonal, those within traces above it. A cell is empty where a method
    gives all actions one number. The bar "actions" has the number of actions of each role. A method whose bar equals it
    does not distinguish roles. Names from a log are drawn as text.

    Args:
      comparison: of `credit.compare`.

    Raises:
      MissingExtraError: matplotlib is not installed.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> figure = credit.plot.draw_comparison(
      ...     credit.compare(rows.traces, {"rloo": credit.rloo(graph, reward), "grpo": credit.grpo(graph, reward)})
      ... )
      >>> figure.get_size_inches().shape
      (2,)
    """
    from credit.reports.comparison import Comparison
    from graphs.errors import expect

    expect("comparison", comparison, Comparison, "what credit.compare returns")
    m = len(comparison.methods)
    figure = new_figure(11.5, 2.4 + 0.34 * m)
    matrix, roles, kinds = figure.subplots(1, 3, width_ratios=(1.15, 1, 1))
    _draw_matrix(matrix, comparison)
    for axes, title, names, shares, actions in (
        (roles, "by role", comparison.roles, comparison.by_role, comparison.actions_by_role),
        (kinds, "by kind of decision", comparison.kinds, comparison.by_kind, comparison.actions_by_kind),
    ):
        _draw_bars(axes, title, names, np.vstack([actions, shares]), ("actions", *map(shown_name, comparison.methods)))
    return figure


def _draw_matrix(axes: Axes, comparison: Comparison) -> None:
    m = len(comparison.methods)
    shown = np.where(np.tri(m, dtype=bool), comparison.correlation, comparison.within)
    axes.imshow(shown, cmap="RdBu", vmin=-1, vmax=1)
    for i in range(m):
        for j in range(m):
            value = shown[i, j]
            text = f"{value:z.2f}" if np.isfinite(value) else "–"
            dark = bool(np.isfinite(value)) and abs(value) > 0.6
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if dark else INK)
    names = [shown_name(name, 22) for name in comparison.methods]
    axes.set_xticks(range(m), names, rotation=45, ha="right", fontsize=8, **TEXT)
    axes.set_yticks(range(m), names, fontsize=8, **TEXT)
    axes.set_title("rank correlation of advantages\n(above the diagonal: within traces)", fontsize=9)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _draw_bars(axes: Axes, title: str, names: tuple[str, ...], shares: np.ndarray, rows: tuple[str, ...]) -> None:
    """A stacked bar a row; the largest parts by name, the rest together."""
    filled = np.nan_to_num(shares)
    order = np.argsort(-filled.max(axis=0), kind="stable")
    order = order[filled.max(axis=0)[order] > 0]
    parts = [(printable(names[i], 24), filled[:, i]) for i in order[:MOST]]
    if len(order) > MOST:
        parts.append((f"{len(order) - MOST} more", filled[:, order[MOST:]].sum(axis=1)))
    left = np.zeros(len(rows))
    handles = []
    for number, (_, width) in enumerate(parts):
        colour = CYCLE[number][0] if number < MOST else GREY
        handles.append(axes.barh(range(len(rows)), width, left=left, color=colour, edgecolor="white", linewidth=0.6))
        left += width
    for y, row in enumerate(shares):
        if not np.isfinite(row).any():
            axes.text(0.02, y, "0 everywhere", va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(rows)), [printable(row, 22) for row in rows], fontsize=8, **TEXT)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    plain_axes(axes)
    axes.set_title(f"part of Σ|credit − baseline|\n{title}", fontsize=9)
    where = {"fontsize": 7, "ncols": 2, "loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 3}
    key(axes, handles, [label for label, _ in parts], **where)
