"""Learning curves: how far each signal has led a team, along its budget."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.plot.canvas import CYCLE, key, new_figure, plain_axes
from credit.plot.finishing import short_names
from graphs.errors import CreditError
from graphs.task_means import median_interval
from graphs.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

__all__ = ["draw_training"]

DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
EVERY = 6  # points of a curve from one of its markers to the next; those of the next curve lie between them


def draw_training(
    rows: Sequence[dict[str, Any]],
    *,
    signals: Sequence[str] | None = None,
    columns: int = 4,
    group_size: int | None = None,
    values: str = "",
) -> Figure:
    """Draw the median learning curve of each signal, a panel for each task.

    A curve is (J − J₀) / (J* − J₀) at even places along the budget, from 0, the first policy, to 1, the best one. A
    band is the 95 % interval of the median over seeds at each place; it takes five seeds, which allow 94 %. Dashes and
    the places of the markers differ, so that curves which lie on each other are all seen.

    Args:
      rows: of `credit.bench.training.training_runs.run_training`.
      signals: which of them, in this order; default all.
      columns: the most panels beside each other.
      group_size: traces of a group in training, to be stated; None to leave it out.
      values: what values methods were given, to be stated, such as that of `credit.bench.given_values`.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: there are no rows.
    """
    if not rows:
        raise CreditError("rows is empty; expected results of run_training")
    signals = signals or list(dict.fromkeys(row["signal"] for row in rows))
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    columns = min(columns, len(tasks))
    lines = -(-len(tasks) // columns)
    figure = new_figure(max(5.0, 2.5 * columns), 2.6 * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    for panel in panels[len(tasks) :]:
        panel.set_visible(False)
    names = [printable(name, 32) for name in short_names(list(signals))]
    handles: dict[int, Any] = {}
    for panel, task in zip(panels, tasks, strict=False):
        plain_axes(panel)
        panel.set_title(printable(task, 40), fontsize=9, parse_math=False)
        for number, signal in enumerate(signals):
            of_cell = [row for row in rows if (row["task"], row["signal"]) == (task, signal)]
            share = np.array([(np.array(r["curve"]) - r["start"]) / (r["optimum"] - r["start"]) for r in of_cell])
            along = np.linspace(0, 1, share.shape[1])
            colour, marker = CYCLE[number % len(CYCLE)]
            low, high = np.array([median_interval(at) for at in share.T]).T
            panel.fill_between(along, low, high, color=colour, alpha=0.2, linewidth=0)
            curve = panel.plot(along, np.median(share, axis=0), marker, color=colour, markersize=3.5, linewidth=1.2,
                               markevery=(number % EVERY, EVERY), linestyle=DASHES[number % len(DASHES)])  # fmt: skip
            handles[number] = curve[0]
    for panel in panels[: len(tasks) : columns]:  # the first of each line
        panel.set_ylabel("way to the best policy\n[share]", fontsize=9)
    for panel in panels[max(len(tasks) - columns, 0) : len(tasks)]:  # those with no panel below
        panel.set_xlabel("budget spent", fontsize=9)
        panel.tick_params(labelbottom=True)
    drawn = _drawn(len({row["seed"] for row in rows}))
    title = "; ".join(filter(None, ("" if group_size is None else f"groups of {group_size}", drawn, values)))
    title = textwrap.fill(title, int(11 * figure.get_figwidth()))  # as wide as the figure
    labels = [names[number] for number in handles]
    key(figure, list(handles.values()), labels, loc="outside upper center", ncols=min(len(labels), 2 * columns),
        fontsize=9, title=title, title_fontsize=9)  # fmt: skip
    return figure


def _drawn(seeds: int) -> str:
    """What curves over this many seeds are, and the bands around them."""
    if seeds == 1:
        return "one seed"
    bands = "" if seeds < 5 else f", bands: their {94 if seeds == 5 else 95} % intervals"
    return f"medians of {seeds} seeds{bands}"
