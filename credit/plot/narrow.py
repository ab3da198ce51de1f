"""`make_room`: legends, labels and ticks of a picture whose width was chosen, so that none lies on another."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from credit.plot.canvas import key
from graphs.errors import CreditError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text

__all__ = ["make_room"]

BESIDE = 0.35  # of the width: a legend that takes more stands below
LEGEND, SMALL = 0.3, 6.0  # of the height: a legend below that takes more is set smaller, to so many points
SMALLEST = 5.5  # points: what cannot be read smaller is left out
LEAST = 0.7  # inches: a panel that is less high shows nothing
TITLE = 0.95  # of the width: the title of a legend below takes no longer lines
NAMES = 0.3  # of the width: names along an axis that take more are set smaller, to 6 points


def make_room(figure: Figure) -> None:
    """Arrange a picture for its width: legends below, labels over several lines, fewer and smaller ticks.

    Text stays as it is where there is room for it. Panels that have no room side by side stand below each
    other in a picture that is higher than wide.

    Raises:
      CreditError: the size leaves no room for the panels.

    Examples:
      >>> from credit.plot.canvas import new_figure
      >>> figure = new_figure(1.5, 2)
      >>> label = figure.add_subplot().set_xlabel("signal to noise of one decision's advantage")
      >>> make_room(figure)
      >>> label.get_text().count("\\n") > 0
      True
    """
    width, height = figure.get_size_inches()
    lines = {text: text.get_text() for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label, axes.title)}
    fits = _fits(figure)
    if not fits and height > width:
        _stack(figure)
        fits = _fits(figure)
    if not fits:  # the broken lines may take the room
        for text, before in lines.items():
            text.set_text(before)
        if not _fits(figure, wrap=False):
            room = _size_with_room(figure)
            raise CreditError(f"size is {width:g}x{height:g} inches, which leaves no room; expected {room}")
    for axes in figure.axes:
        _thin_ticks(axes.xaxis)
        _fit_cells(axes)


def _fits(figure: Figure, *, wrap: bool = True) -> bool:
    """Move and wrap what takes too much room, and say whether the panels have any left."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        _place_legends(figure)
        figure.draw_without_rendering()
        for axes in figure.axes:
            _shrink_names(axes)
        for _ in range(2 if wrap else 0):  # wrapping a label changes the room of other axes
            figure.draw_without_rendering()
            for axes in figure.axes:
                _wrap_labels(axes)
        caught.clear()
        figure.draw_without_rendering()
        if any("collapsed" in str(warning.message) for warning in caught):
            return False
        least = min((axes.get_window_extent().height for axes in figure.axes), default=np.inf)
        return bool(least >= min(LEAST * figure.dpi, figure.bbox.height / 2))


def _size_with_room(figure: Figure) -> str:
    """A higher size that the picture fits, in words."""
    width, height = figure.get_size_inches()
    _stack(figure)
    for factor in (1.25, 1.5, 2, 3):
        figure.set_size_inches(width, factor * height)
        if factor * height > width and _fits(figure, wrap=False):
            return f"a larger size, such as {width:g}x{factor * height:g}"
    return "a larger size"


def _stack(figure: Figure) -> None:
    """Set panels that stand side by side below each other."""
    from matplotlib.gridspec import GridSpec

    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    rows = GridSpec(len(panels), 1, figure=figure)
    for row, axes in enumerate(panels):
        axes.set_subplotspec(rows[row])
        axes.tick_params(labelleft=True)


def _place_legends(figure: Figure) -> None:
    """Move legends that are too wide below the panels, in as many columns as fit, smaller where they are high."""
    figure.draw_without_rendering()
    whole, high = figure.bbox.width, LEGEND * figure.bbox.height
    for legend in list(figure.legends):
        width = legend.get_window_extent().width
        if width <= BESIDE * whole:
            continue
        handles, labels = list(legend.legend_handles), [text.get_text() for text in legend.get_texts()]
        size, title = float(legend.get_texts()[0].get_fontsize()), legend.get_title().get_text().replace("\n", " ")
        family = legend.get_texts()[0].get_fontfamily()
        legend.remove()
        for columns, points in _arrangements(len(labels), size):
            below = key(
                figure, handles, labels, loc="outside lower center", ncols=columns, fontsize=points, title=title,
                title_fontsize=points, columnspacing=1.0, handletextpad=0.5,
            )  # fmt: skip
            for text in (*below.get_texts(), below.get_title()):
                text.set_fontfamily(family)
            _wrap(below.get_title(), TITLE * whole, "width")  # not as beside the panels
            taken = below.get_window_extent()
            if (columns, points) == (1, SMALL) or (taken.width <= whole and taken.height <= high):
                break
            below.remove()


def _arrangements(labels: int, size: float) -> Iterator[tuple[int, float]]:
    """Columns and type sizes to try for a legend, the most readable first."""
    for points in (size, 7.0, SMALL):
        if points <= max(size, SMALL):
            yield from ((columns, points) for columns in range(min(4, labels), 0, -1))


def _shrink_names(axes: Axes) -> None:
    """Set long names along the y axis smaller."""
    labels = [label for label in axes.get_yticklabels() if label.get_visible() and label.get_text()]
    if not labels or axes.figure is None:
        return
    widest, most = max(label.get_window_extent().width for label in labels), NAMES * axes.figure.bbox.width
    if widest > most:
        size = float(labels[0].get_fontsize())
        axes.tick_params(axis="y", which="major", labelsize=max(6.0, size * most / widest))


def _wrap_labels(axes: Axes) -> None:
    """Break the labels of the axes, and the title, into lines that are no longer than there is room."""
    room = axes.get_window_extent()
    gap = 0.08 * room.width
    for text, length, along in (
        (axes.xaxis.label, room.width + gap, "width"),
        (axes.yaxis.label, room.height, "height"),
        (axes.title, max(room.width + gap, _slot(axes)), "width"),
    ):
        _wrap(text, length, along)


def _slot(axes: Axes) -> float:
    """The width that a title over the panel may take: that of the panel with its names, up to the picture's edges."""
    spec = axes.get_subplotspec()
    columns = 1 if spec is None else spec.get_gridspec().ncols
    if axes.figure is None:
        return 0.0
    whole, room = axes.figure.bbox.width, axes.get_window_extent()
    middle = (room.x0 + room.x1) / 2
    return float(min(0.95 * whole / columns, 1.96 * middle, 1.96 * (whole - middle)))


def _wrap(text: Text, length: float, along: str) -> None:
    lines = text.get_text().split("\n")
    taken = getattr(text.get_window_extent(), along)
    if not text.get_text() or taken <= length:
        return
    width = max(int(max(map(len, lines)) * length / taken), 6)
    whole = (line.replace(" %", "\N{NO-BREAK SPACE}%") for line in lines)
    broken = [part for line in whole for part in textwrap.wrap(line, width, break_long_words=False)]
    text.set_text("\n".join(broken))
    taken = getattr(text.get_window_extent(), along)
    if taken > length:  # a long word
        text.set_fontsize(max(6.0, float(text.get_fontsize()) * length / taken))


def _thin_ticks(axis: Axis) -> None:
    """Leave out numbers along an axis that would overlap the one before."""
    ticks = [tick for tick in axis.get_major_ticks() if tick.label1.get_visible() and tick.label1.get_text()]
    if not ticks or any(tick.label1.get_rotation() for tick in ticks):
        return
    low, high = sorted(axis.get_view_interval())
    inside = [tick for tick in ticks if low <= tick.get_loc() <= high]
    boxes = [tick.label1.get_window_extent() for tick in inside]
    kept, end = [], -np.inf
    for tick, box in zip(inside, boxes, strict=True):
        if box.x0 > end:
            kept.append((float(tick.get_loc()), tick.label1.get_text()))
            end = box.x1 + 0.3 * box.height
    if len(kept) < len(inside):
        axis.set_ticks([place for place, _ in kept], [label for _, label in kept])


def _cells(axes: Axes) -> Iterator[Text]:
    yield from axes.texts if axes.images else ()


def _fit_cells(axes: Axes) -> None:
    """Set the numbers in the cells of a matrix as large as a cell allows; leave them out where that is too small."""
    cells = [text for text in _cells(axes) if text.get_text()]
    if not cells:
        return
    left, right = axes.get_xlim()
    room = 0.9 * axes.get_window_extent().width / abs(right - left)
    widest = max(text.get_window_extent().width for text in cells)
    if widest > room:
        size = float(cells[0].get_fontsize()) * room / widest
        for text in cells:
            text.set_fontsize(size)
            text.set_visible(size >= SMALLEST)
