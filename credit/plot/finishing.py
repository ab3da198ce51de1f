"""The last touches of any picture: its size, its title, its type and the names of own methods."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from credit.plot.canvas import TEXT
from credit.plot.narrow import make_room
from graphs.errors import CreditError
from graphs.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Style", "refine", "short_names"]

Style = Literal["plain", "serif", "talk"]
SERIF = ["STIXGeneral", "DejaVu Serif"]  # of the kind of Times; both come with matplotlib
TALK = 1.4  # how much larger text and lines are on slides


def refine(
    figure: Figure, *, size: tuple[float, float] | None = None, title: str | None = None, style: Style = "plain"
) -> Figure:
    """Change the size, the title and the type of a picture of this package.

    Text keeps its size in points when the figure shrinks, so a picture stays legible at the width of a column. Legends
    that are too wide then stand below, and labels take several lines.

    Args:
      figure: of a function of `credit.plot`; it is changed.
      size: width and height in inches; None keeps them.
      title: in the place of the title; "" removes it, None keeps it.
      style: "plain"; "serif", for papers set in a serif type; "talk", with text and lines 1.4 times as large.

    Returns:
      The same figure.

    Raises:
      CreditError: a size that is not positive, or an unknown style.

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
    if size is not None or style == "talk":
        make_room(figure)
    return figure


def short_names(names: Sequence[str]) -> list[str]:
    """Names to show: of own methods, MODULE:FUNCTION, the function alone, where no other name is the same.

    Examples:
      >>> short_names(["rloo", "mine:centred", "mine:gae", "other:gae"])
      ['rloo', 'centred', 'mine:gae', 'other:gae']
    """
    ends = [name.rpartition(":")[2] for name in names]
    counts = collections.Counter(ends)
    return [end if counts[end] == 1 else name for name, end in zip(names, ends, strict=True)]


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
