"""The ledger of one trace as nested bars: each begins where the one before it ended, and the last is the reward."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from credit.plot.canvas import BLUE, INK, ORANGE, TEXT, new_figure, plain_axes
from credit.plot.lane_order import lanes
from graphs.errors import CreditError, expect
from graphs.event_graph import EventType
from graphs.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from credit.ledger import Ledger
    from graphs.traces.batch import Traces

__all__ = ["draw_ledger"]

ALONE = 1e-6  # entries smaller than this share of the largest are what rounding leaves: not drawn on their own


@dataclasses.dataclass(frozen=True)
class _Bar:
    """A row of the picture: from `start` to `end` along the axis of reward; `error` is NaN or infinite if unknown."""

    label: str
    start: float
    end: float
    error: float
    kind: Literal["part", "agent", "event", "open", "total"]

    @property
    def noise(self) -> bool:
        """Whether an entry is no more than two of its standard errors from 0."""
        return (
            self.kind in ("agent", "event")
            and 0 < self.error < math.inf
            and abs(self.end - self.start) <= 2 * self.error
        )

    @property
    def amount(self) -> str:
        """The number beside the bar, in brackets if it is noise."""
        gain = self.end - self.start
        text = f"{gain:z.3f}" if self.kind == "total" else f"{gain:+z.3f}"
        if 0 < self.error < math.inf:
            text += f" ± {self.error:.3f}"
        text = text.replace("-", "\N{MINUS SIGN}")
        return f"({text})" if self.noise else text


def draw_ledger(
    traces: Traces, ledger: Ledger, trace: int | str = 0, *, unit: str = "reward", most_rows: int = 60
) -> Figure:
    """Draw R = expected + Σ increments + outcome + unexplained of one trace, increments nested by agent and event.

    Read from top to bottom: each bar begins where the one above it ended, an agent's bar spans those of its events, and
    the last bar is the reward. Blue adds, orange takes away; grey is what no action of the log accounts for. What no
    claim explains is hatched in grey. Noise is hatched in colour, with its number in brackets: an entry no more than
    two standard errors from 0. Thin lines are ± one standard error, where the ledger states one; those of an agent take
    the errors of its events for independent. Numbers are at the right.

    Agents stand in the order of the spawn forest. Where events do not fit, agents are drawn without them; where agents
    do not fit, those of the largest entries are drawn and the others are one bar.

    Args:
      traces: what was read.
      ledger: of these traces.
      trace: the row or the id of a trace.
      unit: of the reward.
      most_rows: bars that agents and events may take.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: no such trace, or it has no reward to account for; the ledger is of other traces.
    """
    from graphs.traces.batch import Traces

    expect("traces", traces, Traces, "what credit.read returns")
    index = traces.index(trace)
    if np.shape(ledger.increments) != (traces.graph.num_events,):
        actual, expected = np.shape(ledger.increments), (traces.graph.num_events,)
        raise CreditError(f"the ledger has increments {actual}; expected {expected}, the number in these traces")
    if not np.isfinite(traces.reward[index]):
        raise CreditError(f"trace {trace!r} has no outcome, so there is nothing to draw")
    bars = _bars(traces, ledger, index, most_rows)
    figure = new_figure(8.2, 1.3 + 0.235 * len(bars))
    axes = figure.add_subplot()
    plain_axes(axes, grid="x")
    _draw(axes, bars)
    label = f"{unit}, summed from top to bottom" if unit else "summed from top to bottom"
    label += "; ±: one standard error" if any("±" in bar.amount for bar in bars) else ""
    axes.set_xlabel(label, fontsize=9)
    name = traces.traces["trace"][index].as_py()
    axes.set_title(f"trace {printable(name, 48)}", loc="left", fontsize=10, **TEXT)
    return figure


def _bars(traces: Traces, ledger: Ledger, index: int, most: int) -> list[_Bar]:
    graph = traces.graph
    amount = np.asarray(ledger.increments, np.float64)
    error = np.asarray(ledger.stderr, np.float64)
    expected, outcome, open_, reward = (
        float(x[index]) for x in (ledger.expected, ledger.outcome, ledger.unexplained, ledger.reward)
    )
    open_ += float(ledger.remainder[index])
    rows = np.flatnonzero(np.asarray(ledger.claimed) & (np.asarray(graph.trace_ids) == index))
    agent_of = np.asarray(graph.agent_ids)[rows]
    order, labels = lanes(traces, index)
    members = _grouped(rows, agent_of)
    present = [agent for agent in order if agent in members]
    sums = {agent: float(amount[members[agent]].sum()) for agent in present}
    name = dict(zip(order, labels, strict=True))
    with_events = len(rows) + len(present) <= most
    largest = set(present)
    if len(present) > most:
        largest = set(sorted(present, key=lambda agent: -abs(sums[agent]))[: most - 1])
    kept = [agent for agent in present if agent in largest]

    bars = [_Bar("expected at the start", 0.0, expected, np.nan, "part")]
    position = expected
    ids = traces.events["event"]
    for agent in kept:
        events = members[agent]
        bars.append(_Bar(name[agent].strip(), position, position + sums[agent], _together(error[events]), "agent"))
        for row in events if with_events else ():
            kind = EventType(int(graph.event_type[row])).name.lower().replace("_", " ")
            label = f"{kind} {printable(ids[int(row)].as_py(), 18)}"
            bars.append(_Bar(label, position, position + amount[row], float(error[row]), "event"))
            position += amount[row]
        position = bars[-1].end if not with_events else position
    if len(kept) < len(present):
        rest = [agent for agent in present if agent not in largest]
        total = sum(sums[agent] for agent in rest)
        errors = np.concatenate([error[members[agent]] for agent in rest])
        bars.append(_Bar(f"{len(rest)} other agents", position, position + total, _together(errors), "agent"))
        position += total
    small = ALONE * max(abs(expected), abs(reward), *map(abs, sums.values()), 1e-30)
    if abs(outcome) > small:
        bars.append(_Bar("luck after the last action", position, position + outcome, np.nan, "part"))
        position += outcome
    bars.append(_Bar("unexplained", position, position + open_, np.nan, "open"))
    bars.append(_Bar("reward", 0.0, reward, np.nan, "total"))
    return bars


def _grouped(rows: np.ndarray, agents: np.ndarray) -> dict[int, np.ndarray]:
    """The rows of each agent, in their order. A comparison of all rows with each agent would take their square."""
    by_agent = np.argsort(agents, kind="stable")
    distinct, first = np.unique(agents[by_agent], return_index=True)
    return dict(zip(distinct.tolist(), np.split(rows[by_agent], first)[1:], strict=True))


def _together(errors: np.ndarray) -> float:
    """Standard error of a sum of entries with errors of their own; infinite where one of them has none."""
    return float(np.sqrt(np.sum(np.where(np.isfinite(errors), errors, np.inf) ** 2)))


_HEIGHT = {"part": 0.62, "agent": 0.74, "event": 0.42, "open": 0.62, "total": 0.62}


def _draw(axes: Axes, bars: list[_Bar]) -> None:
    last = len(bars) - 1
    for y, bar in enumerate(bars):
        light = bar.kind == "agent" and y < last and bars[y + 1].kind == "event"
        _draw_bar(axes, y, bar, light)
        if np.isfinite(bar.error) and bar.error > 0 and not light:
            axes.plot([bar.end - bar.error, bar.end + bar.error], [y, y], color=INK, linewidth=1, zorder=4)
        if bar.kind != "total":  # where the next bar of the same level begins
            below = next((j for j in range(y + 1, last) if bar.kind != "agent" or bars[j].kind != "event"), last)
            axes.plot([bar.end, bar.end], [y, below - 0.3], color="0.75", linewidth=0.6, zorder=1)
        size, ink = (7, "0.4") if bar.kind == "event" else (8, "0.1")
        weight = "bold" if bar.kind == "total" else "normal"
        place = axes.get_yaxis_transform()
        axes.text(
            1.015, y, bar.amount, transform=place, va="center", ha="left", fontweight=weight, fontsize=size, color=ink
        )
    axes.axvline(0, color="0.35", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars], parse_math=False, usetex=False)
    for bar, label in zip(bars, axes.get_yticklabels(), strict=True):
        label.set_fontsize(7 if bar.kind == "event" else 8)
        label.set_color("0.4" if bar.kind == "event" else "0.1")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(last + 0.6, -0.6)
    axes.use_sticky_edges = False  # bars that begin at the far end would touch the frame
    axes.margins(x=0.03)


def _draw_bar(axes: Axes, y: int, bar: _Bar, light: bool) -> None:
    gain = bar.end - bar.start
    colour = {"part": "0.72", "open": "white", "total": INK}.get(bar.kind, BLUE if gain >= 0 else ORANGE)
    edge, hatch = "none", None
    if bar.kind == "open":
        edge, hatch = "0.45", "////"
    elif bar.noise and not light:
        colour, edge, hatch = "white", colour, "////"
    axes.barh(
        y, gain, _HEIGHT[bar.kind], left=bar.start, color=colour, alpha=0.3 if light else 1.0, linewidth=0.8,
        edgecolor=edge, hatch=hatch,
    )  # fmt: skip
