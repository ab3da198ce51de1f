"""The last touches of any picture: size, title, type, names of own methods, and curves that lie on each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from credit.plot.canvas import TEXT, grow
from credit.plot.narrow import SMALL, make_room
from graphs.errors import CreditError
from graphs.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Style", "lying_on", "refine", "shown_name", "write_figure"]

Style = Literal["plain", "serif", "talk"]
SERIF = ["STIXGeneral", "DejaVu Serif"]  # of the kind of Times; both come with matplotlib
FEW = 3  # panels: a note that names so many is too long
TALK = 1.4  # how much larger text and lines are on slides


def write_figure(figure: Figure, file: IO[bytes], kind: str, dpi: float = 100, source: str = "") -> None:
    """Write a figure without a date: a picture changes with its data alone.

    Args:
      figure: any.
      file: to write to.
      kind: "svg", "pdf", "png" or another name of matplotlib.
      dpi: dots an inch.
      source: what made it, for the metadata of the file; "" for nothing.

    Examples:
      >>> import io, matplotlib.figure
      >>> write_figure(matplotlib.figure.Figure(), io.BytesIO(), "svg")
    """
    from matplotlib import rc_context

    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    kinds = {"svg": "Description", "pdf": "Subject", "png": "Description"}
    told = {kinds[kind]: source} if source and kind in kinds else {}
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "credit"}):  # publishers refuse Type 3 fonts
        figure.savefig(file, format=kind, dpi=dpi, metadata=dates.get(kind, {}) | told)


def refine(
    figure: Figure,
    *,
    size: tuple[float, float] | None = None,
    title: str | None = None,
    style: Style = "plain",
    larger: bool = False,
    tell: Callable[[str], None] = lambda words: None,
) -> Figure:
    """Change the size, the title and the type of a picture of this package.

    Text keeps its size in points when the figure shrinks, so a picture stays legible at the width of a column. Legends
    that are too wide then stand below, and labels take several lines. No text is smaller than 6 points, in a talk than
    8.4, and none lies on another.

    Args:
      figure: of a function of `credit.plot`; it is changed.
      size: width and height in inches; None keeps them.
      title: in the place of the title; "" removes it, None keeps it.
      style: "plain"; "serif", for papers set in a serif type; "talk", with text and lines 1.4 times as large.
      larger: whether a size without room gives way to a larger one, instead of being refused.
      tell: is called with what is wrong before a size that has room is looked for, which may take a minute.

    Returns:
      The same figure.

    Raises:
      CreditError: a size that is not positive or has no room for the text, or an unknown style.

    Examples:
      >>> import credit
      >>> from credit.plot.finishing import refine
      >>> graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> refine(credit.plot.draw_trace(rows.traces), size=(3.4, 2.4), title="").get_size_inches().tolist()
      [3.4, 2.4]
    """
    if style not in get_args(Style):
        raise CreditError(f"style is {style!r}; expected {', '.join(get_args(Style))}")
    if size is not None:
        if not all(0 < length < 200 for length in size):
            raise CreditError(f"size is {size!r}; expected a width and a height in inches, above 0 and below 200")
        figure.set_size_inches(*size)
    if title is not None:
        _retitle(figure, title)
    if style == "serif":
        _serif(figure)
    if style == "talk":
        _enlarge(figure)
    if size is None:
        grow(figure)
    if size is not None or style == "talk":
        least = SMALL * (TALK if style == "talk" else 1)
        make_room(figure, least, chosen=size is not None and not larger, tell=tell)
    return figure


def shown_name(name: str, most: int = 32) -> str:
    """The name of a method to show; your own MODULE:FUNCTION loses the beginning of a module that is too long.

    Examples:
      >>> shown_name("mine:gae"), shown_name("package.estimators:gae", 14)
      ('mine:gae', '…stimators:gae')
    """
    return printable("…" + name[1 - most :] if ":" in name and len(name) > most else name, most)


def lying_on(
    curves: Sequence[tuple[str, dict[str, np.ndarray]]], apart: float, places: tuple[str, str] = ("on", "tasks")
) -> list[str]:
    """Which curves are drawn as one with an earlier one from end to end, and in which panels; their numbers may differ.

    Args:
      curves: names, and by panel the heights along a curve, as shares of the axis; NaN where it has none.
      apart: curves that are nowhere farther apart are drawn as one.
      places: words before the title of a panel, and for many panels.

    Examples:
      >>> lying_on([("a", {"t": np.array([0.1, 0.2])}), ("b", {"t": np.array([0.1, 0.201])})], 0.01)
      ['drawn as one: a, b']
    """
    lines: dict[tuple[str, ...], list[str]] = {}  # by the curves of a line the panels
    for panel in dict.fromkeys(panel for _, of_panels in curves for panel in of_panels):
        drawn = [(name, of_panels[panel]) for name, of_panels in curves if panel in of_panels]
        first: dict[str, str] = {}
        for number, (name, at) in enumerate(drawn):
            gaps = ((other, np.abs(at - of_other)) for other, of_other in drawn[:number])
            same = [other for other, gap in gaps if np.isfinite(gap).any() and np.nanmax(gap) <= apart]
            first[name] = first[same[0]] if same else name
        for one in dict.fromkeys(first.values()):
            if len(names := tuple(name for name, of in first.items() if of == one)) > 1:
                lines.setdefault(names, []).append(panel)
    panels = len({panel for _, of_panels in curves for panel in of_panels})
    told: dict[str, list[str]] = {}
    for names, of in lines.items():
        few = " and ".join(printable(panel, 40) for panel in of) if len(of) < FEW else f"{len(of)} {places[1]}"
        told.setdefault("" if len(of) == panels else f" {places[0]} {few}", []).append(", ".join(names))
    return [f"drawn as one{where}: {' / '.join(of)}" for where, of in told.items()]


def _retitle(figure: Figure, title: str) -> None:
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    text = printable(title, 120)
    if panels:  # a picture of one trace has its title at the left of its panel
        panels[0].set_title(text, loc="left", fontsize=10, **TEXT)
        return
    figure.suptitle(text, x=0.01, ha="left", fontsize=10, **TEXT)


def _serif(figure: Figure) -> None:
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_fontfamily(SERIF)
    for axes in figure.axes:
        axes.tick_params(axis="both", which="both", labelfontfamily=SERIF)


def _enlarge(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    ticks = [axis.get_ticklabels(which="both") for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    of_ticks = {text for labels in ticks for text in labels}
    for text in figure.findobj(Text):
        if text not in of_ticks:
            text.set_fontsize(float(text.get_fontsize()) * TALK)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = axis.get_ticklabels(which="both")
            if labels:
                axis.set_tick_params(which="both", labelsize=float(labels[0].get_fontsize()) * TALK)
    for line in figure.findobj(Line2D):
        line.set_linewidth(line.get_linewidth() * TALK)
