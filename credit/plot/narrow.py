"""`make_room`: legends, labels and ticks of a picture whose width was chosen.

One rule at every size: no text is smaller than the least of its style, and none lies on another or beyond the edge.
What cannot be arranged so is refused, with a size that can.
"""

from __future__ import annotations

import bisect
import copy
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.plot.canvas import LEAST_NUMBERS, key, lay_out
from graphs.errors import CreditError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis, Tick
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

__all__ = ["SMALL", "make_room"]

BESIDE = 0.35  # of the width: a legend that takes more stands below
LEGEND = 0.3  # of the height: a legend below that takes more is set smaller
SMALL = 6.0  # points: the least type in print
LEAST = 0.7  # inches: a panel that is less high shows nothing
MIDDLE = 7 / 6  # of the least type: tried before it
ROW, DOT = 9.5, 3.0  # points: from one row of markers to the next at least, and the smallest marker
PAGE = (7.0, 9.0)  # inches: what a page of a paper has for a picture
STEP = 0.5  # inches: from one proposed height to the next
TITLE = 0.9  # of the width: the title of a legend below takes no longer lines, which at some resolutions are wider
LINES = 4  # of a label along x: one that takes more has no room
NAMES = 0.3  # of the width: names along an axis that take more are set smaller


def make_room(
    figure: Figure, least: float = SMALL, *, chosen: bool = True, tell: Callable[[str], None] = lambda words: None
) -> None:
    """Arrange a picture for its width: legends below, labels over several lines, fewer and smaller ticks.

    Text stays as it is where there is room for it. Panels that have no room side by side stand below each
    other in a picture that is higher than wide.

    Args:
      figure: it is changed.
      least: the smallest type, in points.
      chosen: whether somebody chose the size; another picture is made as large as it must be.
      tell: is called with what is wrong before a size that has room is looked for, which may take a minute.

    Raises:
      CreditError: the size leaves no room for the panels and their text.

    Examples:
      >>> from credit.plot.canvas import new_figure
      >>> figure = new_figure(1.5, 2)
      >>> label = figure.add_subplot().set_xlabel("signal to noise of one decision's advantage")
      >>> make_room(figure)
      >>> label.get_text().count("\\n") > 0
      True
    """
    before = copy.deepcopy(figure)  # what is tried changes texts
    if not _arrange(figure if chosen else copy.deepcopy(figure), least):
        width, height = figure.get_size_inches()
        lacks = f"size is {width:g}x{height:g} inches, which leaves no room"
        tell(lacks)
        room = _size_with_room(before, least)
        if chosen or room is None:
            larger = "a larger size, " + ("or fewer panels" if room is None else f"such as {room[0]:g}x{room[1]:g}")
            raise CreditError(f"{lacks}; expected {larger}")
        figure.set_size_inches(*room)
    if not chosen:
        _arrange(figure, least)


def _arrange(figure: Figure, least: float, *, to_see: bool = False) -> bool:
    """Move, wrap and shrink, at last with fewer panels in a row, until these have room, and say whether they have.

    The last ways take the least place that there is, so that a size with room has room in whatever is larger. `to_see`
    whether there is any, they are the only ones.
    """
    width, height = figure.get_size_inches()
    texts = [text for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label, axes.title)]
    lines = {text: (text.get_text(), float(text.get_fontsize())) for text in texts}
    numbers = {axis: [float(label.get_fontsize()) for label in axis.get_ticklabels()]
               for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)}  # fmt: skip
    some = [size for sizes in numbers.values() for size in sizes]  # of an axis that had none, and gets them
    beside = {axes: (spec, axes.yaxis.get_tick_params()["labelleft"], axes.xaxis.label.get_visible())
              for axes in figure.axes if (spec := axes.get_subplotspec()) is not None}  # fmt: skip
    rows = [spec.rowspan for spec, *_ in beside.values()]
    may_fit = any(len(row) > 1 for row in rows) or _may_fit(figure, len({*rows}), least)
    if may_fit and not to_see and _has_room(figure, least):
        return True
    most = max((spec.get_gridspec().ncols for spec, *_ in beside.values()), default=1)
    as_it_is = max([least, *some, *(size for _, size in lines.values())])
    ways = [(1, as_it_is)] * bool(height > width and not to_see)
    ways += [(columns, least) for columns in range(most, 0, -1) for _ in range(2)]  # broken lines may take the room
    panels = len(_panels(figure))
    for columns, points in ways:
        if not (_may_fit(figure, -(-panels // columns), least, moved=True) if columns < most else may_fit):
            continue
        for axes, (spec, labelled, below) in (_in_columns(figure, columns) if columns < most else beside).items():
            axes.set_subplotspec(spec)
            axes.tick_params(labelleft=labelled)
            axes.xaxis.label.set_visible(below)
            if axes.get_xlabel():
                axes.tick_params(labelbottom=below)
        for text, (line, size) in lines.items():  # as they were: what was tried broke and shrank them
            text.set_text(line)
            text.set_fontsize(min(points, size))
        for axis, sizes in numbers.items():
            axis.set_tick_params(labelsize=min([points, *(sizes or some)]))
        if _has_room(figure, least, to_see=to_see):
            return True
    return False


def _may_fit(figure: Figure, lines: int, least: float, *, moved: bool = False) -> bool:
    """Whether so many lines of the least panels, with the texts that all of them have, are no higher than the figure.

    A layout takes a second; this takes none.

    Args:
      figure, lines, least: in question.
      moved: whether each panel gets its own label along x, where one that lies above its like has none.
    """
    panels, height = _panels(figure), figure.get_figheight()
    labelled = moved or all(axes.xaxis.label.get_visible() for axes in panels)
    of_label = min((1 + axes.get_xlabel().count("\n") for axes in panels if axes.get_xlabel()), default=0)
    numbered = [axes.xaxis.get_tick_params()["labelbottom"] or (moved and axes.get_xlabel()) for axes in panels]
    texts = lines * (all(axes.title.get_text() for axes in panels) + all(numbered))
    texts += of_label * (lines if labelled and all(axes.get_xlabel() for axes in panels) else 1)
    of_rows = max((ROW / 72 * abs(float(np.diff(axes.get_ylim())[0])) for axes in panels if _dots(axes)[0]), default=0)
    return bool(lines * max(min(LEAST, height / 2), of_rows) + texts * least / 72 <= height)


def _panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_subplotspec() is not None]


def _has_room(figure: Figure, least: float, *, to_see: bool = False) -> bool:
    """Whether panels and texts have room; what does is finished, and what is arranged to see this may be either way."""
    if not _fits(figure, least) or _crowded(figure):
        return False
    tried = figure if to_see else copy.deepcopy(figure)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        _finish(tried, least)
    if any("collapsed" in str(warning.message) for warning in caught) or not _texts_apart(tried):
        return False
    if not to_see:
        _finish(figure, least)
    return True


def _finish(figure: Figure, least: float) -> None:
    """Leave out numbers and set markers smaller in the room that there is now."""
    figure.draw_without_rendering()  # which places ticks
    _thin_ticks([axes.xaxis for axes in figure.axes], least)
    panels = list(figure.axes)
    for axes in panels:
        _fit_cells(axes, least)
        _fit_dots(axes)
    numbers = [label for axes in panels for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()]
    of_numbers = min((float(label.get_fontsize()) for label in numbers if label.get_text()), default=np.inf)
    for legend in figure.legends:
        for text in (*legend.get_texts(), legend.get_title()):
            text.set_fontsize(min(float(text.get_fontsize()), of_numbers))
    if len(figure.axes) > len(panels):  # a bar of colours takes room
        _fits(figure, least)
    for _ in range(2 if any(axes.images for axes in panels) else 1):  # a matrix of square cells follows the panels
        figure.draw_without_rendering()


def _texts_apart(figure: Figure) -> bool:
    """Whether no text lies on another or beyond the edge; numbers along x are thinned later, and turned ones not seen.

    A tenth of the height of a line has no ink.
    """
    shown: list[tuple[int, Any]] = []  # what has a box, and whose numbers along x it is one of
    for place, axes in enumerate(axes for axes in figure.axes if axes.get_visible()):
        shown += [(place, tick.label1) for tick in _ticks(axes.xaxis)]
        names = [tick.label1 for tick in _ticks(axes.yaxis)]
        texts = [*names, axes.xaxis.label, axes.yaxis.label, axes.title]
        texts = [text for text in texts if text.get_text() and text.get_visible()]
        shown += [(-1, part) for part in (*texts, axes.get_legend()) if part is not None]
    shown += [(-1, legend) for legend in figure.legends]
    if not shown:
        return True
    boxes, along = [part.get_window_extent() for _, part in shown], np.array([place for place, _ in shown])
    low, high = np.array([(box.x0, box.y0) for box in boxes]), np.array([(box.x1, box.y1) for box in boxes])
    edge = 0.02 * figure.dpi
    if np.any(low < -edge) or np.any(high > [figure.bbox.x1 + edge, figure.bbox.y1 + edge]):
        return False
    ink = 0.1 * np.minimum(high - low, figure.dpi / 6) * [0, 1]
    low, high = low + ink, high - ink
    over = np.all((low[:, None] < high[None]) & (low[None] < high[:, None]), axis=2)
    same = (along[:, None] == along[None]) & (along[:, None] >= 0)
    return not np.any(np.triu(over & ~same, 1))


def _labels(figure: Figure) -> list[list[Text]]:
    """The labels along x, those along y and the titles that the panels have."""
    kinds = zip(*((axes.xaxis.label, axes.yaxis.label, axes.title) for axes in figure.axes), strict=True)
    shown = ([text for text in of_kind if text.get_text()] for of_kind in kinds)
    return [of_kind for of_kind in shown if of_kind]


def _fits(figure: Figure, smallest: float) -> bool:
    """Move and wrap what takes too much room, and say whether the panels have any left."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        changed = _place_legends(figure, smallest)
        for _ in range(2):  # wrapping a label changes the room of other axes, and that of names
            for fit in (_shrink_names, _wrap_labels):
                if changed:
                    lay_out(figure)
                changed = any([fit(axes, smallest) for axes in figure.axes])
        for of_kind in _labels(figure):  # a long word in one of them
            for text in of_kind:
                text.set_fontsize(min(float(other.get_fontsize()) for other in of_kind))
        caught.clear()
        lay_out(figure)
        if any("collapsed" in str(warning.message) for warning in caught):
            return False
        least = min((axes.get_window_extent().height for axes in figure.axes), default=np.inf)
        return bool(least >= min(LEAST * figure.dpi, figure.bbox.height / 2))


def _size_with_room(figure: Figure, least: float) -> tuple[float, float] | None:
    """The least larger size that the picture fits, by `STEP`: as wide, else as wide as a page, and no higher than one.

    What fits a size fits a higher one, so the highest is tried first and then the middle one.
    """
    width, height = figure.get_size_inches()
    heights = np.arange(np.floor(height / STEP + 1.001) * STEP, PAGE[1] + 0.01, STEP)
    as_wide = [(width, float(one)) for one in (heights if height <= PAGE[1] else (2 * height, 3 * height))]
    of_page = [(PAGE[0], part * PAGE[1]) for part in (0.25, 0.5, 0.75, 1) if PAGE[0] > width]

    def fits(size: tuple[float, float]) -> bool:
        tried = copy.deepcopy(figure)
        tried.set_size_inches(*size)
        return _arrange(tried, least, to_see=True)

    for some in (as_wide, of_page):
        sizes = [size for size in some if size[1] <= PAGE[1] or height > PAGE[1]]
        if sizes and fits(sizes[-1]):
            return sizes[bisect.bisect_left(sizes[:-1], True, key=fits)]
    return None


def _in_columns(figure: Figure, columns: int) -> dict[Axes, tuple[SubplotSpec, bool, bool]]:
    """Where panels stand with so many in a row, whether each has its names, which a row may share, and its label."""
    from matplotlib.gridspec import GridSpec

    panels = _panels(figure)
    grid = GridSpec(-(-len(panels) // columns), columns, figure=figure)
    shared = not all(axes.yaxis.get_tick_params()["labelleft"] for axes in panels)
    return {axes: (grid[divmod(place, columns)], not shared or place % columns == 0, True)
            for place, axes in enumerate(panels)}  # fmt: skip


def _place_legends(figure: Figure, least: float) -> bool:
    """Move legends that are too wide below the panels, in as many columns as fit, smaller where they are high."""
    lay_out(figure)
    whole, high, moved = figure.bbox.width, LEGEND * figure.bbox.height, False
    for legend in list(figure.legends):
        width = legend.get_window_extent().width
        if width <= BESIDE * whole:
            continue
        moved = True
        figure.legends.remove(legend)  # `legend.remove` of a copy looks in the original
        lowest = (np.inf, 1, least)
        size = float(legend.get_texts()[0].get_fontsize())
        for columns, points in _arrangements(len(legend.get_texts()), size, least):
            below = _below(figure, legend, columns, points)
            taken = below.get_window_extent()
            if taken.width <= whole and taken.height <= high:
                break
            if taken.width <= whole:
                lowest = min(lowest, (taken.height, columns, points))
            figure.legends.remove(below)
        else:
            _below(figure, legend, *lowest[1:])
    return moved


def _below(figure: Figure, legend: Legend, columns: int, points: float) -> Legend:
    """A legend below the panels with what another one, which was removed, says."""
    labels, title = [text.get_text() for text in legend.get_texts()], legend.get_title().get_text().replace("\n", " ")
    below = key(
        figure, list(legend.legend_handles), labels, loc="outside lower center", ncols=columns, fontsize=points,
        title=title, title_fontsize=points, columnspacing=1.0, handletextpad=0.5,
        handlelength=legend.handlelength,
    )  # fmt: skip
    for text in (*below.get_texts(), below.get_title()):
        text.set_fontfamily(legend.get_texts()[0].get_fontfamily())
    _wrap(below.get_title(), TITLE * figure.bbox.width, "width", points)  # not as beside the panels
    return below


def _arrangements(labels: int, size: float, least: float) -> Iterator[tuple[int, float]]:
    """Columns and type sizes to try for a legend, the most readable first."""
    for points in (size, MIDDLE * least, least):
        if points <= max(size, least):
            yield from ((columns, points) for columns in range(min(4, labels), 0, -1))


def _shrink_names(axes: Axes, least: float) -> bool:
    """Set names along the y axis smaller that are long, or higher than the distance from one to the next."""
    labels = [label for label in axes.get_yticklabels() if label.get_visible() and label.get_text()]
    if not labels or axes.figure is None:
        return False
    boxes = [label.get_window_extent() for label in labels]
    apart = np.diff(np.sort([(box.y0 + box.y1) / 2 for box in boxes])).min(initial=np.inf)
    share = min(
        NAMES * axes.figure.bbox.width / max(box.width for box in boxes), apart / max(box.height for box in boxes)
    )
    if share < 1:
        size = float(labels[0].get_fontsize())
        axes.tick_params(axis="y", which="major", labelsize=min(size, max(least, size * share)))
    return bool(share < 1)


def _wrap_labels(axes: Axes, least: float) -> bool:
    """Break the labels of the axes, and the title, into lines that are no longer than there is room."""
    room = axes.get_window_extent()
    gap = 0.08 * room.width
    lengths = (
        (axes.xaxis.label, room.width + gap, "width"),
        (axes.yaxis.label, room.height, "height"),
        (axes.title, max(room.width + gap, _slot(axes)), "width"),
    )
    return any([_wrap(*of_text, least) for of_text in lengths])


def _slot(axes: Axes) -> float:
    """The width that a title over the panel may take: that of the panel with its names, up to the picture's edges."""
    spec = axes.get_subplotspec()
    columns = 1 if spec is None else spec.get_gridspec().ncols
    if axes.figure is None:
        return 0.0
    whole, room = axes.figure.bbox.width, axes.get_window_extent()
    middle = (room.x0 + room.x1) / 2
    return float(min(0.9 * whole / columns, 1.96 * middle, 1.96 * (whole - middle)))


def _wrap(text: Text, length: float, along: str, least: float) -> bool:
    lines = text.get_text().split("\n")
    taken = getattr(text.get_window_extent(), along)
    if not text.get_text() or taken <= length:
        return False
    width = max(int(max(map(len, lines)) * length / taken), 6)
    if str(text.get_label()).split() != text.get_text().split():
        text.set_label(text.get_text())  # as it was: broken lines would be broken again
    whole = (line.replace(" %", "\N{NO-BREAK SPACE}%") for line in str(text.get_label()).split("\n"))
    broken = [part for line in whole for part in textwrap.wrap(line, width, break_long_words=False)]
    text.set_text("\n".join(broken))
    taken = getattr(text.get_window_extent(), along)
    if taken > length:  # a long word
        size = float(text.get_fontsize())
        text.set_fontsize(min(size, max(least, size * length / taken)))
    return True


def _thin_ticks(every: Sequence[Axis], least: float) -> None:
    """Leave out numbers along axes that would overlap the one before, in the largest type that leaves three on most."""
    known = [(axis, found) for axis in every if (found := _ticks(axis))]
    if not known:
        return
    before = min(float(found[0].label1.get_fontsize()) for _, found in known)
    tried = {}
    for points in (before, *(points for points in (MIDDLE * least, least) if points < before)):
        for axis, _ in known if points < before else ():
            axis.set_tick_params(labelsize=points)
        tried[points] = [_apart(found) for _, found in known]
    best = max(tried, key=lambda points: (sum(min(len(kept), LEAST_NUMBERS) for kept in tried[points]), points))
    for (axis, found), kept in zip(known, tried[best], strict=True):
        if best < before or len(tried) > 1:
            axis.set_tick_params(labelsize=best)
        if len(kept) < len(found):
            axis.set_ticks([place for place, _ in kept], [label for _, label in kept])


def _ticks(axis: Axis) -> list[Tick]:
    """The ticks with a number in view, none of an axis whose numbers are turned."""
    low, high = sorted(axis.get_view_interval())
    shown = [tick for tick in axis.get_major_ticks() if tick.label1.get_visible() and tick.label1.get_text()]
    if any(tick.label1.get_rotation() for tick in shown):
        return []
    return [tick for tick in shown if low <= tick.get_loc() <= high]


def _apart(ticks: Sequence[Tick]) -> list[tuple[float, str]]:
    """Places and numbers of ticks, without those that would overlap the one before, or the last."""
    kept: list[tuple[float, str]] = []
    end, last = -np.inf, ticks[-1].label1.get_window_extent()
    for tick in ticks:
        box = tick.label1.get_window_extent()
        gap = 0.3 * box.height
        if box.x0 > end and (box.x1 + gap < last.x0 or tick is ticks[-1]):
            kept.append((float(tick.get_loc()), tick.label1.get_text()))
            end = box.x1 + gap
    return kept


def _dots(axes: Axes) -> tuple[list[Line2D], float]:
    """The markers of a panel where those of several series stand beside each other in a row, and how far: of a row."""
    from matplotlib.ticker import FixedLocator, ScalarFormatter

    named = axes.get_yscale() == "linear" and not isinstance(axes.yaxis.get_major_formatter(), ScalarFormatter)
    if not named or not isinstance(axes.yaxis.get_major_locator(), FixedLocator):
        return [], 1.0
    lines = [line for line in axes.lines if line.get_linestyle() == "None" and line.get_marker() not in ("", "None")]
    first = np.array([np.asarray(line.get_ydata(), float)[0] for line in lines if len(np.atleast_1d(line.get_ydata()))])
    places = np.unique((first - np.round(first)).round(6))
    return (lines, float(np.diff(places).min())) if len(places) > 1 else ([], 1.0)


def _rows_apart(axes: Axes) -> float:
    """Points from one row of a panel to the next."""
    places = axes.transData.transform([(0, place) for place in axes.get_yticks()])[:, 1]
    return float(np.abs(np.diff(places)).min(initial=np.inf)) * 72 / axes.figure.dpi if axes.figure else np.inf


def _crowded(figure: Figure) -> bool:
    """Whether rows of markers lie on those of the next, or labels take too many lines."""
    high = any(axes.get_xlabel().count("\n") >= LINES for axes in figure.axes)
    return high or any(_rows_apart(axes) < ROW for axes in figure.axes if _dots(axes)[0])


def _fit_dots(axes: Axes) -> None:
    """Set markers smaller that would cover those of another series in the same row."""
    lines, step = _dots(axes)
    for line in lines:
        room = step * _rows_apart(axes) - float(line.get_markeredgewidth())
        line.set_markersize(min(float(line.get_markersize()), max(DOT, room)))


def _cells(axes: Axes) -> Iterator[Text]:
    yield from axes.texts if axes.images else ()


def _fit_cells(axes: Axes, least: float) -> None:
    """Set the numbers in the cells of a matrix as large as a cell allows; a bar of colours replaces those too small."""
    cells = [text for text in _cells(axes) if text.get_text()]
    if not cells:
        return
    left, right = axes.get_xlim()
    room = 0.9 * axes.get_window_extent().width / abs(right - left)
    widest = max(text.get_window_extent().width for text in cells)
    if widest > room:
        size = float(cells[0].get_fontsize()) * room / widest
        for text in cells:
            text.set_fontsize(max(size, least))
            text.set_visible(size >= least or text.get_text() == "–")  # a colour does not say that there is none
        if size < least and axes.figure is not None:
            bar = axes.figure.colorbar(axes.images[0], ax=axes, shrink=0.8, aspect=12, ticks=[-1, 0, 1])
            family = cells[0].get_fontfamily()
            bar.ax.tick_params(labelsize=MIDDLE * least, labelfontfamily=family)
            bar.outline.set_visible(False)
