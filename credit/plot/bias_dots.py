"""Methods side by side: exact bias, variance and order of their advantages on teams small enough to enumerate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credit.bench.rounding import EXACT
from credit.plot.canvas import key_of_series, look, new_figure, plain_axes, share_axis, zero_axis
from credit.plot.finishing import shown_name
from graphs.errors import CreditError
from graphs.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from credit.bench.bias import Row
    from credit.bench.refusals import Absent

__all__ = ["draw_methods"]

LABELS = {
    "bias": "bias of gradient\n[share of |∇J|]",
    "cosine": "cosine between mean\nand true gradient",
    "variance": "variance for equal runs\n[|∇J|²]",
    "relative": "variance for equal runs\n[|E g|²]",
    "error": "error of centred advantages\n[mean square of increments]",
    "rank": "order of centred advantages\n[Kendall's tau-b]",
    "sign": "share of centred advantages\nwith the true sign",
    "answered": "share of decisions\nwith an advantage",
}
PANELS = ("bias", "relative", "rank")
OWN_SCALE = "variance over |E g|²: shrinking advantages does not lower it"
ABREAST = 4
"""Panels side by side: more would be too wide for a page."""


def draw_methods(
    rows: Sequence[Row],
    *,
    k: int | Sequence[int] | None = None,
    title: str = "",
    scores: Sequence[str] = PANELS,
    values: str = "",
    absent: Sequence[Absent] = (),
) -> Figure:
    """Draw bias, variance and order of each method, a marker for each world; methods stand in the order of their rows.

    Bias is |E g − ∇J| / |∇J|. Its axis is linear below 0.01, so that exact zeros have a place. Variance is
    E|g|² − |E g|², for equally many runs and in units of |E g|²: in those of |∇J|² a method would look better for
    shrinking its advantages. Order is the rank correlation of mean advantages with true increments; a method whose
    advantages are all equal has none. Advantages are centred: less their mean in each state.

    Args:
      rows: of `credit.bench.bias.measure`.
      k: the group size to draw; None for the largest. Each of several has its own panels, on shared axes. A method that
        was measured at smaller sizes only is drawn at the largest of them, which stands behind its name.
      title: above the panels; "" for none.
      scores: fields of a row, a panel each, at most four side by side.
      values: what values methods were given, to be stated, such as that of `credit.bench.given_values`.
      absent: why rows have no number, to be stated.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: no row has this group size or less.
    """
    from credit.bench.refusals import Absent, absent_caption, refused_caption

    asked = dict.fromkeys((row.world, row.method) for row in rows)
    rows = [row for row in rows if not np.isnan(row.answered)]  # what was left out has no number
    largest = max((row.k for row in rows), default=0)
    sizes = _sizes(k, largest)
    drawn = {size: of_size for size in sizes if (of_size := _of_size(rows, size, sizes))}
    chosen = [row for of_size in drawn.values() for row in of_size]
    if not chosen:
        raise CreditError(f"no row has k = {k} or less; the rows have {sorted({row.k for row in rows})}")
    order = list(dict.fromkeys(row.method for row in chosen))
    worlds = [world for world in dict.fromkeys(world for world, _ in asked) if any(r.world == world for r in chosen)]
    blocks = len(drawn)
    lines = -(-len(scores) // ABREAST)  # of a size
    sizes_abreast = blocks > len(scores) == 1
    across = min(blocks, ABREAST) if sizes_abreast else -(-len(scores) // lines)
    rows_of_panels = -(-blocks // across) if sizes_abreast else lines * blocks
    joined = blocks > 1 == lines  # numbers and labels below the last row alone
    high = (0.2 if joined else 0.75) + 0.2 * (blocks > 1) + 0.2 * len(order)
    figure = new_figure(2.4 + 2.4 * across, (1.3 if joined else 0.75) + high * rows_of_panels)
    firsts: dict[str, Axes] = {}
    for block, (of_k, of_size) in enumerate(drawn.items()):
        for number, field in enumerate(scores):
            place = block if sizes_abreast else block * lines * across + number
            axes = figure.add_subplot(rows_of_panels, across, place + 1, sharex=firsts.get(field))
            firsts.setdefault(field, axes)
            if blocks > 1:
                axes.set_title(f"groups of {of_k}", fontsize=9)
            _draw_panel(axes, field, of_size, order, worlds)
            axes.set_yticks(range(len(order)), _names(of_size, order), fontsize=8, parse_math=False)
            axes.set_ylim(len(order) - 0.4, -0.6)
            axes.tick_params(labelleft=place % across == 0)
            if joined and not sizes_abreast and block + 1 < blocks:  # the panel below has the same axis
                axes.xaxis.label.set_visible(False)
                axes.tick_params(labelbottom=False)
            elif sizes_abreast:
                axes.set_xlabel("")
    for number, axes in enumerate(figure.axes):  # which share them with all that is drawn
        _scale(axes, scores[number % len(scores)], chosen)
    if title:
        figure.suptitle(printable(title, 120), x=0.01, ha="left", fontsize=10, parse_math=False)
    scale = OWN_SCALE if "relative" in scores else ""
    why = {(one.place, one.method): one.why for one in absent}
    everywhere = {one.method: one for one in absent if one.method not in {method for _, method in asked}}
    missing: dict[tuple[str, str], list[int]] = {}
    for of_k in sizes:
        for pair in asked.keys() - {(row.world, row.method) for row in drawn.get(of_k, ())}:
            missing.setdefault(pair, []).append(of_k)
    left_out = [
        Absent(
            name,
            world + f", groups of {' and '.join(map(str, of))}" * (len(of) < len(sizes)),
            why.get((world, name), ""),
        )
        for world, name in asked
        if (of := missing.get((world, name)))
    ]
    left_out += everywhere.values()
    refused = refused_caption((shown_name(row.method), row.answered) for row in chosen)
    of_all = f"groups of {max(row.k for row in chosen)}" if len(drawn) == 1 else ""
    along = f"along x: {LABELS[scores[0]]}".replace("\n", " ") * sizes_abreast  # once for all panels
    stated = (along, of_all, scale, values, refused, absent_caption(left_out, shown_name))
    key_of_series(figure, worlds, "; ".join(filter(None, stated)))
    return figure


def _sizes(k: int | Sequence[int] | None, largest: int) -> list[int]:
    return [largest] if k is None else [k] if isinstance(k, int) else sorted(set(k))


def _of_size(rows: Sequence[Row], k: int, sizes: Sequence[int]) -> list[Row]:
    """The rows of a size, and of what was measured at none of the sizes those of the largest below it."""
    found: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        found.setdefault((row.method, row.world), set()).add(row.k)
    size = {
        pair: k if k in of else max((other for other in of if other <= k), default=0)
        for pair, of in found.items()
        if k in of or of.isdisjoint(sizes)
    }
    return [row for row in rows if size.get((row.method, row.world)) == row.k]


def _names(rows: Sequence[Row], order: Sequence[str]) -> list[str]:
    """Of methods along an axis, with the sizes of those that were not measured at the largest."""
    k = max((row.k for row in rows), default=0)
    sizes = {name: sorted({row.k for row in rows if row.method == name}) for name in order}
    return [
        shown_name(name) + ("" if sizes[name] in ([k], []) else f", size {' / '.join(map(str, sizes[name]))}")
        for name in order
    ]


def _draw_panel(axes: Axes, field: str, rows: Sequence[Row], order: Sequence[str], worlds: Sequence[str]) -> None:
    """A score of each method, a marker for each world."""
    place = {name: y for y, name in enumerate(order)}
    for number, world in enumerate(worlds):
        colour, marker = look(number)
        of_method = [row for row in rows if row.world == world and row.answered > 0]  # else nothing was pushed
        step = min(0.4, 0.64 / max(1, len(worlds) - 1))
        shift = step * (number - (len(worlds) - 1) / 2)  # equal numbers lie beside each other, not on top
        of_method = [row for row in of_method if np.isfinite(getattr(row, field))]
        if not of_method:
            continue  # an empty line that is not clipped lies at the corner of the figure, and no layout has room
        shown = [0.0 if abs(getattr(row, field)) <= EXACT else getattr(row, field) for row in of_method]
        y = [place[row.method] + shift for row in of_method]
        axes.plot(shown, y, marker, color=colour, markersize=4.5, linestyle="none", clip_on=False, zorder=3)
    plain_axes(axes, grid="both")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(LABELS[field], fontsize=9)


def _scale(axes: Axes, field: str, rows: Sequence[Row]) -> None:
    """The axis of a score: biases and variances span decades, ranks and shares end at 1."""
    found = [value for value in (getattr(row, field) for row in rows) if np.isfinite(value)]
    if field == "bias":
        zero_axis(axes, [*found, 1.0], least=0.01)  # 1 is as far off as no gradient
    elif field in ("variance", "relative", "error"):
        zero_axis(axes, found)
    else:
        share_axis(axes, found)
