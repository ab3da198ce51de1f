"""What all pictures share: a figure without global state, colours, and text that stays text."""

from __future__ import annotations

import importlib
import textwrap
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from credit.bench.rounding import EXACT
from graphs.errors import MissingExtraError
from graphs.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

__all__ = [
    "BLUE",
    "CYCLE",
    "GREY",
    "INK",
    "LEAST_NUMBERS",
    "ORANGE",
    "TEXT",
    "grow",
    "key",
    "key_of_series",
    "lay_out",
    "look",
    "new_figure",
    "plain_axes",
    "plain_logs",
    "share_axis",
    "zero_axis",
]

BLUE, ORANGE, INK, GREY = "#0072B2", "#D55E00", "0.25", "0.62"

CYCLE: tuple[tuple[str, str], ...] = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#B8860B", "v"),
    ("#56B4E9", "P"),
    ("0.2", "X"),
    ("#7A5195", "<"),
    ("#8C510A", ">"),
    ("0.55", "*"),
)
"""Colour and marker of the first, second, … series (Okabe and Ito's colours, the yellow darkened for white paper)."""


def look(series: int, member: int = 0) -> tuple[str, str]:
    """Colour and marker of a series, or of one of its members, which share the colour.

    No two of 100 series have both, nor do members of 30 series with three each.

    Examples:
      >>> len({look(number) for number in range(100)}), {look(3, member)[0] for member in range(10)}
      (100, {'#CC79A7'})
    """
    many = len(CYCLE)
    return CYCLE[series % many][0], CYCLE[(series + 3 * (series // many) + member) % many][1]


LEAST_NUMBERS = 3
"""Along an axis whose span holds them: one or two do not say what a distance on it is."""

EMPTY = 0.25  # of a logarithmic axis: numbers that leave more beyond the data stand closer
_BELOW = 1 - 1e-9  # a number that rounding puts beside an end of the data is at it

SHARE = 0.4
"""Of the height of a figure whose size nobody chose: what its panels have at least, whatever notes and legends take."""

PAD = 0.2  # inches above and below a legend

TEXT: dict[str, Any] = {"parse_math": False, "usetex": False}
"""For every text that may come from a log: a `$` in it is a `$`."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, laid out so that nothing is clipped.

    Raises:
      MissingExtraError: matplotlib is not installed.
    """
    try:
        importlib.import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        raise MissingExtraError("matplotlib", extra="plot") from error
    from credit.plot.shown_figure import ShownFigure

    return ShownFigure(figsize=(width, height), layout="constrained")


def lay_out(figure: Figure) -> None:
    """Give panels the places that a drawing gives them, in half the time of drawing all that stands on them.

    The canvas keeps one renderer. A new renderer measures every text again.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from credit.plot.shown_figure import LETTERS

    if not isinstance(figure.canvas, FigureCanvasAgg):
        FigureCanvasAgg(figure)
    if (engine := figure.get_layout_engine()) is not None:
        with rc_context(LETTERS):
            engine.execute(figure)


def plain_axes(axes: Axes, *, grid: Literal["", "x", "y", "both"] = "") -> None:
    """Open axes: no frame at the top and right, small ticks, and a faint grid along "x", "y" or "both"."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    if grid:
        axes.grid(True, axis=grid, which="major", color="0.9", linewidth=0.7)
        axes.set_axisbelow(True)


def plain_logs(axis: Axis) -> None:
    """Numbers in full along a logarithmic axis, three or more, of which one is at or beyond each end of the data.

    They stand at 1, 2 and 5 of each decade where there is room, and closer or evenly where less than that is seen. The
    axis grows to its first and last number. Call it when everything is drawn.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    name = "x" if axis is axis.axes.xaxis else "y"
    alike = getattr(axis.axes, f"get_shared_{name}_axes")().get_siblings(axis.axes)
    ends = np.array([getattr(axes.dataLim, f"interval{name}") for axes in alike])
    low, high = max(ends[:, 0].min(), float(np.finfo(float).tiny)), ends[:, 1].max()
    if high * _BELOW <= low:  # one number, within an axis that says where it is
        low, high = low / 1.5, high * 1.5
    reach = np.array(MaxNLocator(4).tick_values(low, high))
    axis.set_major_locator(FixedLocator(reach.tolist()))
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    wide = high >= 300 * low
    steps = ((1.0,), (1.0, 3.0)) if wide else ((1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 5.0), tuple(range(1, 10)))
    for subs in steps:
        places = np.outer(decades, subs).ravel()
        found = places[(places > low * _BELOW) & (places < high / _BELOW)]
        around = [places[places <= low / _BELOW].max(), *found, places[places >= high * _BELOW].min()]
        empty = np.log(around[-1] / around[0]) - np.log(high / low)
        if len({*around}) >= LEAST_NUMBERS and (subs != steps[0] or empty < EMPTY * np.log(around[-1] / around[0])):
            axis.set_major_locator(LogLocator(subs=subs, numticks=12))
            reach = np.array(around)
            break
    before = axis.get_view_interval()
    getattr(axis.axes, f"set_{name}lim")(min(before[0], reach[0]), max(before[1], reach[-1]))
    axis.set_major_formatter(FuncFormatter(_in_full))
    axis.set_minor_formatter(NullFormatter())


def _in_full(value: float, _: int | None) -> str:
    """A number along an axis; a function with a name, which a pickled figure can find."""
    return f"{value:,.12g}"


def zero_axis(axes: Axes, values: Iterable[float], least: float | None = None) -> None:
    """A logarithmic axis along x; where a value is 0 up to rounding, or `least` is given, 0 has a place on it.

    Below `least`, by default the decade of the smallest other value, such an axis is linear.
    """
    found = [value for value in values if np.isfinite(value)]
    above = [value for value in found if value > EXACT]
    if least is None and above and len(above) == len(found):
        axes.set_xscale("log")
        plain_logs(axes.xaxis)
        return
    first = np.floor(np.log10(least or min(above, default=1.0)))
    last = max(np.floor(np.log10(max(above, default=10.0 ** (first + 1)))), first)
    places = 10.0 ** np.arange(first, last + 1, np.ceil((last - first + 1) / 4))
    end = next(float(end) for end in np.outer(10.0 ** np.arange(last, last + 2), (1, 2, 5)).ravel()
               if end >= max(above, default=0.0) * _BELOW)  # fmt: skip
    places = np.unique([*places, max(end, places[-1])])
    axes.set_xscale("symlog", linthresh=places[0])
    axes.set_xlim(0, max(places[-1], axes.get_xlim()[1]))
    axes.set_xticks([0, *places], ["0", *(f"{place:,.12g}" for place in places)])


NEAR = 0.8
"""An axis that ends at 1 begins near the least number where all are above this, else at 0 or less."""


def share_axis(axes: Axes, values: Iterable[float]) -> None:
    """An axis along x that ends at 1, as shares and ranks do."""
    least = min((value for value in values if np.isfinite(value)), default=0.0)
    start = min(0.9, np.floor(20 * least) / 20) if least >= NEAR else min(0.0, least)
    axes.set_xlim(start - 0.05 * (1 - max(0.0, start)), 1 + 0.05 * (1 - max(0.0, start)))
    axes.locator_params(axis="x", min_n_ticks=LEAST_NUMBERS)


def grow(figure: Figure) -> None:
    """Make a figure higher until its panels have `SHARE` of its height, and a legend beside them has room."""
    places = [(axes, [axes.get_position(which).frozen() for which in (True, False)], axes.get_in_layout())
              for axes in figure.axes]  # fmt: skip
    for _ in range(9):
        width, height = figure.get_size_inches()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            lay_out(figure)
        legend = max((float(one.get_window_extent().height) for one in figure.legends), default=0.0) / figure.dpi
        if any("collapsed" in str(warning.message) for warning in caught):
            needed = height + legend
        else:
            needed = max((height - _of_panels(figure)) / (1 - SHARE), legend + PAD)
        if needed <= height:
            break
        figure.set_size_inches(width, needed)
    for axes, (original, active), in_layout in places:  # another layout would begin hairs from where this one ended
        axes.set_position(original, which="original")
        axes.set_position(active, which="active")
        axes.set_in_layout(in_layout)  # which `set_position` ends


def _of_panels(figure: Figure) -> float:
    """Inches of the height that some panel takes."""
    boxes = [axes.get_window_extent() for axes in figure.axes if axes.get_visible()]
    taken, end = 0.0, -np.inf
    for low, high in sorted((box.y0, box.y1) for box in boxes):
        taken += max(0.0, high - max(low, end))
        end = max(end, high)
    return taken / float(figure.dpi)


def key_of_series(figure: Figure, names: Sequence[str], title: str = "") -> Legend:
    """A legend below a figure whose series are drawn as markers of `CYCLE`, in this order; the figure grows for it."""
    from matplotlib.lines import Line2D

    looks = [look(number) for number in range(len(names))]
    handles = [Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5) for colour, marker in looks]
    labels = [printable(name, 40) for name in names]
    title = textwrap.fill(title, int(15 * figure.get_figwidth()))  # as wide as the figure; one line was cut at its ends
    legend = key(figure, handles, labels, loc="outside lower center", ncols=min(4, len(names)), title=title)
    grow(figure)
    return legend


def key(owner: Figure | Axes, handles: Sequence[Any], labels: Sequence[str], **where: Any) -> Legend:
    """A legend of a figure or of axes whose labels are text whatever they hold; `where` goes to `owner.legend`.

    That of a figure has fewer columns than `ncols` where they would be wider.
    """
    # Placeholders, because a label that begins with an underscore would be left out.
    options = {"frameon": False, "fontsize": 8, "title_fontsize": 8} | where
    legend = owner.legend(handles, [f"series {i}" for i in range(len(labels))], **options)
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
    columns, figures = options.get("ncols", 1), getattr(owner, "legends", None)
    if columns == 1 or figures is None:
        return legend
    titled, width = (part.get_window_extent().width for part in (legend.get_title(), legend))
    if width <= owner.bbox.width or titled > owner.bbox.width:
        return legend
    figures.remove(legend)
    return key(owner, handles, labels, **options | {"ncols": columns - 1})
