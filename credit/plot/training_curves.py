"""Learning curves: how far each signal has led a team, along its budget."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.methods.own_functions import is_own
from credit.plot.canvas import CYCLE, grow, key, new_figure, plain_axes
from credit.plot.finishing import lying_on, shown_name
from graphs.errors import CreditError
from graphs.task_means import median_interval
from graphs.text import counted, near_names, printable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from credit.bench.refusals import Absent

__all__ = ["draw_training"]

DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
APART = 0.008
"""Of the height, about the width of a line: curves that are nowhere so far apart are drawn as one."""
RATES = {"†": "† not the rate of the first on some task", "‡": "‡ rate at edge on some task"}
OWN_RATES = "best rates: each method's own"
BANDS = 3
"""Bands of more curves than these mix to one grey: then the first curve and the first of your own have one."""
EVERY = 6  # of 31 points of a curve from one of its markers to the next; those of the next curve lie between them


def draw_training(
    rows: Sequence[dict[str, Any]] | Mapping[str, Any],
    *,
    signals: Sequence[str] | None = None,
    columns: int = 4,
    group_size: int | None = None,
    values: str = "",
    rates: Sequence[float] = (),
    absent: Sequence[Absent] = (),
) -> Figure:
    """Draw the median learning curve of each signal, a panel for each task, and one for each common rate of a task.

    A curve is (J − J₀) / (J* − J₀) along the budget, from 0, the first policy, to 1, the best one. Its points are the
    updates, or 31 at even places where there are more. A
    band is the 95 % interval of the median over seeds at each place; it takes five seeds, which allow 94 %. Of more
    than three signals the first and the first of your own have one. Dashes and the places of the markers differ, so
    that curves which lie on each other are all seen; the legend says which do, and what an unfinished run lacks.

    Args:
      rows: of `credit.bench.training.training_runs.run_training`, or what its file holds, `rows` and `settings`.
      signals: which of them, in this order; default all.
      columns: the most panels beside each other.
      group_size: traces of a group in training, to be stated; None takes that of a file, or leaves it out.
      values: what values methods were given, to be stated, such as that of `credit.bench.given_values`.
      rates: the learning rates that were tried, by default those of a file; a signal is marked whose rate is the
        smallest or the largest of them, or not that of the first signal.
      absent: methods that were left out, to be stated.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: there are none, one of a signal, or one that is no result
        (`credit.bench.training.training_comparison.runs`).
    """
    from credit.bench.refusals import absent_caption, refused_caption
    from credit.bench.training.training_comparison import runs

    settings: Mapping[str, Any] = rows.get("settings", {}) if isinstance(rows, Mapping) else {}
    group_size, rates = group_size or settings.get("group_size"), rates or settings.get("learning_rates", ())
    rows = runs(rows)
    known = list(dict.fromkeys(row["signal"] for row in rows))
    signals = signals or known
    for name in signals:
        if name not in known:
            raise CreditError(f"rows has no run of {name!r}. {near_names(name, known)}")
    drawn = _panels(rows)
    tasks = len({row["task"] for row in rows})
    columns = min(columns, tasks if tasks > 1 else len(drawn))
    lines = -(-len(drawn) // columns)
    figure = new_figure(max(5.0, 2.5 * columns), 2.6 * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    for panel in panels[len(drawn) :]:
        panel.set_visible(False)
    names = [*map(shown_name, signals)]
    banded = _banded(signals, {row["signal"] for row in rows if row.get("function")})
    handles: dict[int, Any] = {}
    firsts: dict[str, Axes] = {}
    medians: dict[str, dict[str, np.ndarray]] = {name: {} for name in signals}
    for panel, (task, of_panel) in zip(panels, drawn.items(), strict=False):
        plain_axes(panel)
        panel.set_title(task, fontsize=9, parse_math=False)
        if (first := firsts.setdefault(of_panel[0]["task"], panel)) is not panel:
            panel.sharey(first)
        for number, signal in enumerate(signals):
            of_cell = [row for row in of_panel if row["signal"] == signal]
            if not of_cell:
                continue
            share = np.array([(np.array(r["curve"]) - r["start"]) / (r["optimum"] - r["start"]) for r in of_cell])
            medians[signal][task] = np.median(share, axis=0)
            along, share = _at_updates(of_cell, share)
            every = max(1, EVERY * len(along) // 31)
            colour, marker = CYCLE[number % len(CYCLE)]
            if signal in banded:
                low, high = np.array([median_interval(at) for at in share.T]).T
                panel.fill_between(along, low, high, color=colour, alpha=0.2, linewidth=0)
            curve = panel.plot(along, np.median(share, axis=0), marker, color=colour, markersize=3.5, linewidth=1.2,
                               markevery=(number % every, every), linestyle=DASHES[number % len(DASHES)])  # fmt: skip
            handles[number] = curve[0]
    for panel in panels[: len(drawn) : columns]:  # the first of each line
        panel.set_ylabel("way to the best policy\n[share]", fontsize=9)
    for panel in panels[max(len(drawn) - columns, 0) : len(drawn)]:  # those with no panel below
        panel.set_xlabel("budget spent [share]", fontsize=9)
        panel.tick_params(labelbottom=True)
    of = "their" if len(banded) == len(signals) else ", ".join(map(shown_name, banded))
    counts = Counter((row["task"], row["signal"]) for row in rows if row["signal"] in signals)
    told = _drawn(counts.values(), of)
    lacking: dict[int, list[str]] = {}
    for name in signals:
        lacking.setdefault(tasks - sum(signal == name for _, signal in counts), []).append(shown_name(name))
    untrained = (f"on {counted(n, 'task')}: {', '.join(names)}" for n, names in sorted(lacking.items()) if n)
    marks = {name: _marks(rows, name, signals[0], rates) for name in signals}
    found = "".join(marks.values())
    size = "" if group_size is None else f"groups of {group_size}"
    several = len(drawn) > len(firsts)
    places = ("in", "panels") if several else ("on", "tasks")
    lying = lying_on([(name, medians[signal]) for name, signal in zip(names, signals, strict=True)], APART, places)
    refused = refused_caption((shown_name(r["signal"]), r.get("answered", 1.0)) for r in rows if r["signal"] in signals)
    left_out = absent_caption(absent, shown_name)
    own = {row["learning_rate"] for row in rows if row["signal"] in signals and "learning_rate" in row}
    rate = OWN_RATES if len(own) > 1 or len(rates) > 1 or several else f"learning rate {min(own):g}" if own else ""
    stated = (
        size,
        rate,
        told,
        *(f"not trained {of_tasks}" for of_tasks in untrained),
        values,
        refused,
        left_out,
        *lying,
        *(text for mark, text in RATES.items() if mark in found),
    )
    title = "; ".join(filter(None, stated))
    title = textwrap.fill(title, int(15 * figure.get_figwidth()))  # as wide as the figure
    labels = [f"{names[number]} {marks[signals[number]]}".rstrip() for number in handles]
    above = key(figure, list(handles.values()), labels, loc="outside upper center", ncols=min(len(labels), 2 * columns),
                title=title, columnspacing=1.0, handletextpad=0.5)  # fmt: skip
    figure.set_figheight(figure.get_figheight() + above.get_window_extent().height / figure.dpi)  # not from the panels
    grow(figure)
    return figure


def _panels(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each panel by its title: of a task, and after all tasks of each at each common rate."""
    found: dict[tuple[Any, str], list[dict[str, Any]]] = {}
    for row in rows:
        for rate, one in {0.0: row, **row.get("at_rates", {})}.items():
            found.setdefault((rate, row["task"]), []).append(one)
    several = len({rate for rate, _ in found}) > 1
    titles = {0.0: ", best rates"} | {rate: f", all at {rate:g}" for rate, _ in found if rate}
    return {
        printable(task, 40) + titles[rate] * several: found[rate, task]
        for rate, task in sorted(found, key=lambda at: at[0])
    }


def _at_updates(rows: Sequence[dict[str, Any]], share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of points along the budget, and the shares of each row there: at updates, between which policies are
    held; at even places where the updates of the rows are at others, and joined by lines."""
    even = np.linspace(0, 1, share.shape[1])
    places = np.array([row.get("places") or even for row in rows])
    if np.ptp(places, axis=0).any():
        return even, np.stack([np.interp(even, *of_row) for of_row in zip(places, share, strict=True)])
    at, first = np.unique(places[0], return_index=True)
    return at, share[:, first]


def _marks(rows: Sequence[dict[str, Any]], signal: str, first: str, rates: Sequence[float]) -> str:
    """Those of `RATES` that a signal has: of several rates one unlike that of the first, and the least or largest."""
    of, of_first = ({r["task"]: r.get("learning_rate") for r in rows if r["signal"] == s} for s in (signal, first))
    at_edge = len(rates) > 1 and any(rate in (min(rates), max(rates)) for rate in of.values())
    other = len(rates) > 1 and any(of_first.get(task, rate) != rate for task, rate in of.items())
    return "†" * other + "‡" * at_edge


def _banded(signals: Sequence[str], own: Collection[str]) -> list[str]:
    """Signals whose curves have a band.

    Args:
      signals: names.
      own: those of your own functions that do not show it.
    """
    of_own = [name for name in signals[1:] if is_own(name) or name in own]
    return list(signals) if len(signals) <= BANDS else [signals[0], *of_own[:1]]


def _drawn(seeds: Collection[int], of: str) -> str:
    """What curves over these numbers of seeds are, and the bands around them, with whose those are."""
    least, most = min(seeds), max(seeds)
    if most == 1:
        return "one seed"
    sure = " and ".join(dict.fromkeys("94" if n == 5 else "95" for n in sorted(seeds) if n >= 5))
    bands = f", {sure} % intervals" + ("" if of == "their" else f" of {of}") if sure else ""
    return f"medians of {f'{least} to ' * (least < most)}{most} seeds{bands}"
