"""The picture of one trace: events in the lanes of their agents, their causes, and the credit of actions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from credit.plot.canvas import GREY, TEXT, new_figure
from credit.plot.lane_order import columns, lanes
from graphs.errors import CreditError, expect
from graphs.event_graph import EdgeType, EventType
from graphs.text import counted, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graphs.event_graph import Array
    from graphs.traces.batch import Traces

__all__ = ["draw_trace"]

MARKERS: dict[EventType, str] = {
    EventType.ORCHESTRATOR_DECISION: "D",
    EventType.SPAWN: "^",
    EventType.DESPAWN: "v",
    EventType.MESSAGE: "o",
    EventType.TOOL_CALL: "s",
    EventType.TOOL_RESULT: "d",
    EventType.RETURN: "<",
    EventType.AGGREGATE: "H",
    EventType.HUMAN_INTERVENTION: "*",
    EventType.SAFETY_EVENT: "X",
    EventType.STOP: "p",
}
ARROWS: dict[str, tuple[str, Any]] = {
    "spawn": ("#0072B2", "-"),
    "message": ("#B85C00", (0, (1, 1.2))),
    "return": ("#009E73", "--"),
    "other cause": ("0.6", "-"),
}
"""Edges between agents: colour (told apart by the colour-blind) and line style."""

PLAIN = "#4477AA"
MOST_ARROWS = 400  # beyond that, edges are thin lines without heads
FEW = 100  # up to so many events, markers may touch rather than shrink until their colours are lost
DENSE = 1500  # beyond that many events, points become one image inside a vector file
LABEL_HEIGHT = 0.15  # inches that a lane's label needs
MANY, USUAL = 200, 0.98  # of more actions than that, the scale of colours ends at this quantile of their values
RING = 0.3  # of a marker's width: the widest outline
OUTLINE = "0.25"


@dataclasses.dataclass(frozen=True)
class _Picture:
    """Arrays of the trace to draw.

    Attributes:
      x, lane, types, action: per event.
      fill: the values, not finite where there is none; None without values.
      ring: standard errors as a share of the colour scale, 0 to 1; None where none are drawn.
      limit: the end of the colour scale.
      senders, receivers, edge_type: per edge, by position of the event.
      labels: of the lanes.
    """

    x: np.ndarray
    lane: np.ndarray
    types: np.ndarray
    action: np.ndarray
    fill: np.ndarray | None
    ring: np.ndarray | None
    limit: float
    senders: np.ndarray
    receivers: np.ndarray
    edge_type: np.ndarray
    labels: list[str]


def draw_trace(
    traces: Traces,
    trace: int | str = 0,
    values: Array | None = None,
    *,
    stderr: Array | None = None,
    label: str = "advantage",
    unit: str = "reward",
    x: Literal["order", "time"] = "order",
) -> Figure:
    """Draw the events of one trace from left to right, a lane for each agent instance.

    Lanes follow the spawn forest, sub-agents indented below the agent that spawned them. Markers tell event types;
    arrows between lanes are spawns, messages, returns and other causes (what follows what within a lane is the order).
    Actions are filled by `values`, red below and blue above 0, white where the value is not finite; events that no
    policy chose are small and grey. With `stderr` the outline of an action is the wider the less its value is known:
    from a hairline at 0 to the widest at an error as large as the colour scale, or at an unknown error.

    Large traces are thinned: fewer lane labels, lines instead of arrows, points as an image. Of more than 200 actions
    the most extreme fiftieth lies beyond the ends of the colour scale, which are then pointed. Names are text from a
    log: shown as text, never as mathematics or TeX.

    Args:
      traces: what was read.
      trace: the row or the id of a trace.
      values: float [E], one number for each event of the batch, such as `Credit.advantage`.
      stderr: float [E], the standard error of each value, in their unit; needs `values`.
      label: what `values` are.
      unit: their unit, shown behind `label`; "" for none.
      x: "order", position in the log; "time", seconds since the trace's first time stamp.

    Returns:
      A `matplotlib.figure.Figure`; `figure.savefig("trace.svg")` writes it.

    Raises:
      MissingExtraError: matplotlib is not installed.
      CreditError: no such trace; `values` or `stderr` is not [E]; `x` is unknown, or "time" and an event has none.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> figure = credit.plot.draw_trace(
      ...     rows.traces, "a", credit.rloo(graph, reward).advantage
      ... )
      >>> figure.get_size_inches().shape
      (2,)
    """
    from graphs.traces.batch import Traces

    expect("traces", traces, Traces, "what credit.read returns")
    index = traces.index(trace)
    picture = _prepare(traces, index, values, stderr, x)
    rows, events = len(picture.labels), len(picture.x)
    width, height = float(np.clip(4 + 0.16 * events, 8, 22)), float(np.clip(2 + 0.34 * rows, 3.2, 26))
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    size = _marker_size(picture, (width - 3) * 72, (height - 1.6) * 72 / rows)

    _draw_lanes(axes, picture, (height - 1.6) / rows)
    _draw_edges(axes, picture, size)
    points = _draw_events(axes, picture, size)
    if points is not None:
        title = f"{label} [{unit}]" if unit else label
        beyond = picture.fill is not None and bool(np.any(np.abs(picture.fill[picture.action]) > picture.limit))
        figure.colorbar(
            points, ax=axes, label=title, pad=0.01, fraction=0.04, aspect=30, shrink=min(1, 8 / height),
            extend="both" if beyond else "neither",
        )  # fmt: skip
    axes.set_xlabel("event, in the order of the log" if x == "order" else "time since the first event [s]", fontsize=9)
    axes.set_title(_title(traces, index), loc="left", fontsize=10, **TEXT)
    handles = axes.get_legend_handles_labels()[0]
    figure.legend(handles=handles, loc="outside lower left", ncols=max(3, int(width / 1.75)), frameon=False, fontsize=8)
    return figure


def _prepare(traces: Traces, index: int, values: Array | None, stderr: Array | None, x: str) -> _Picture:
    graph = traces.graph
    rows = np.flatnonzero(np.asarray(graph.event_mask) & (np.asarray(graph.trace_ids) == index))
    if x == "order":
        place: np.ndarray = np.arange(len(rows))
    elif x == "time":
        place = np.asarray(graph.time)[rows]
        unknown = np.flatnonzero(~np.isfinite(place))
        if len(unknown):
            raise CreditError(f"event {unknown[0]} of the trace has no time; draw it with x='order'")
    else:
        raise CreditError(f"x is {x!r}; expected 'order' or 'time'")
    action = np.asarray(graph.action_mask)[rows]
    fill = None if values is None else _of_events(graph.num_events, "values", values)[rows]
    limit = 1.0
    if fill is not None:
        limit = _limit(np.abs(fill[action & np.isfinite(fill)]))
    ring = None
    if stderr is not None:
        if fill is None:
            raise CreditError("stderr is given without the values that it belongs to")
        error = _of_events(graph.num_events, "stderr", stderr)[rows]
        ring = np.clip(np.where(np.isfinite(error), error / limit, 1.0), 0, 1)
    order, labels = lanes(traces, index)
    lane_of = np.zeros(graph.num_agents, np.int64)
    lane_of[order] = np.arange(len(order))
    position = np.zeros(graph.num_events, np.int64)
    position[rows] = np.arange(len(rows))
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    edges = np.flatnonzero(np.asarray(graph.edge_mask) & (np.asarray(graph.trace_ids)[senders] == index))
    return _Picture(
        x=place,
        lane=lane_of[np.asarray(graph.agent_ids)[rows]],
        types=np.asarray(graph.event_type)[rows],
        action=action,
        fill=fill,
        ring=ring,
        limit=limit,
        senders=position[senders[edges]],
        receivers=position[receivers[edges]],
        edge_type=np.asarray(graph.edge_type)[edges],
        labels=labels,
    )


def _limit(sizes: np.ndarray) -> float:
    """The end of the colour scale: the largest value, or of very many one that leaves out the most extreme."""
    if len(sizes) == 0:
        return 1.0
    quantile = float(np.quantile(sizes, USUAL)) if len(sizes) > MANY else 0.0
    return quantile or float(sizes.max()) or 1.0


def _of_events(num: int, name: str, values: Array) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.shape != (num,):
        raise CreditError(f"{name} has shape {array.shape}; expected ({num},), one for each event")
    return array


def _marker_size(picture: _Picture, width: float, lane_height: float) -> float:
    """Points across a marker such that most neighbours in a lane do not touch, within what can be told apart."""
    order = np.lexsort((picture.x, picture.lane))
    same = np.diff(picture.lane[order]) == 0
    gaps = np.diff(picture.x[order])[same]
    span = float(np.ptp(picture.x)) if len(picture.x) else 0.0
    room = width * float(np.quantile(gaps, 0.1)) / span if len(gaps) and span > 0 else width
    least = 6 if len(picture.x) <= FEW else 3.5
    return float(np.clip(min(room, 0.6 * lane_height), least, 10))


def _draw_lanes(axes: Axes, picture: _Picture, lane_height: float) -> None:
    """A thin line for each agent from its first to its last event, and as many labels as there is room for."""
    num = len(picture.labels)
    start, end = np.full(num, np.inf), np.full(num, -np.inf)
    np.minimum.at(start, picture.lane, picture.x)
    np.maximum.at(end, picture.lane, picture.x)
    active = np.flatnonzero(np.isfinite(start))
    axes.hlines(active, start[active], end[active], colors="0.85", linewidth=1, zorder=1)
    every = max(1, int(np.ceil(LABEL_HEIGHT / lane_height)))
    named = np.arange(0, num, every)
    axes.set_yticks(named, [picture.labels[i] for i in named], fontsize=8, ha="left", parse_math=False, usetex=False)
    longest = max(columns(picture.labels[i]) for i in named)
    axes.tick_params(axis="y", length=0, pad=4 + 4.6 * longest)
    axes.tick_params(axis="x", labelsize=8)
    if every > 1:
        axes.set_ylabel(f"{counted(num, 'agent')}, one name in {every} shown", fontsize=9)
    axes.set_ylim(num - 0.4, -0.6)
    axes.margins(x=0.02)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _draw_edges(axes: Axes, picture: _Picture, size: float) -> None:
    """Arrows, or thin lines where there are very many, between events of different lanes."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch

    points = np.stack([picture.x, picture.lane], axis=1).astype(np.float64)
    across = picture.lane[picture.senders] != picture.lane[picture.receivers]
    few = across.sum() <= MOST_ARROWS
    kinds = _edge_kinds(picture)
    for kind, (colour, style) in ARROWS.items():
        chosen = np.flatnonzero(across & (kinds == kind))
        if len(chosen) == 0:
            continue
        ends = np.stack([points[picture.senders[chosen]], points[picture.receivers[chosen]]], axis=1)
        if few:
            for tail, head in ends:
                shrink = size / 2 + 1
                arrow = FancyArrowPatch(
                    tuple(tail), tuple(head), arrowstyle="-|>", mutation_scale=7, linewidth=0.9, linestyle=style,
                    color=colour, alpha=0.8, shrinkA=shrink, shrinkB=shrink, zorder=2,
                )  # fmt: skip
                axes.add_patch(arrow)
        else:
            lines = LineCollection(list(ends), colors=colour, linewidths=0.4, alpha=0.35, zorder=2, rasterized=True)
            axes.add_collection(lines)
        axes.add_line(Line2D([], [], color=colour, linestyle=style, linewidth=1.2, label=f"edge: {kind}"))


def _edge_kinds(picture: _Picture) -> np.ndarray:
    """What an edge shows, by its type, or by the event it starts from where logs type edges loosely."""
    kinds = np.full(len(picture.senders), "other cause", dtype="U11")
    source = picture.types[picture.senders]
    kinds[picture.edge_type == EdgeType.MESSAGE] = "message"
    kinds[(picture.edge_type == EdgeType.RETURN) | (source == EventType.RETURN)] = "return"
    kinds[(picture.edge_type == EdgeType.SPAWN) | (source == EventType.SPAWN)] = "spawn"
    return kinds


def _draw_events(axes: Axes, picture: _Picture, size: float) -> Any:
    """Markers by type; returns what a colour bar describes, or None without values."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = None if picture.fill is None else ScalarMappable(Normalize(-picture.limit, picture.limit), "RdBu")
    dense = len(picture.x) > DENSE
    for kind, marker in MARKERS.items():
        of_kind = picture.types == kind
        legend = kind.name.lower().replace("_", " ")
        for action in (True, False):
            chosen = np.flatnonzero(of_kind & (picture.action == action))
            if len(chosen) == 0:
                continue
            if not action:
                look: dict[str, Any] = {"color": GREY, "s": (0.55 * size) ** 2, "linewidths": 0}
            elif scale is None or picture.fill is None:
                look = {"color": PLAIN, "s": size**2, "linewidths": 0}
            else:
                colours = scale.to_rgba(picture.fill[chosen])
                colours[~np.isfinite(picture.fill[chosen])] = 1.0
                wide = np.zeros(len(chosen)) if picture.ring is None else picture.ring[chosen]
                look = {"facecolors": colours, "edgecolors": OUTLINE} | _outline(wide, size)
            axes.scatter(
                picture.x[chosen], picture.lane[chosen], marker=marker, zorder=3 + action, rasterized=dense, **look
            )
        if of_kind.any():
            acts = bool((of_kind & picture.action).any())
            axes.plot(
                [], [], marker, color="0.35" if acts else GREY, markersize=6 if acts else 4,
                label=legend if acts else f"{legend} (no action)",
            )  # fmt: skip
    if picture.ring is not None:
        for share, label in (
            (0.0, "standard error 0"),
            (0.5, f"standard error {picture.limit / 2:.2g}"),
            (1.0, "more, or unknown"),
        ):
            outline = float(_outline(np.array([share]), 8)["linewidths"][0])
            axes.plot(
                [], [], "o", markerfacecolor="white", markeredgecolor=OUTLINE, markeredgewidth=outline,
                markersize=8 - outline, label=label,
            )  # fmt: skip
    return scale


def _outline(share: np.ndarray, size: float) -> dict[str, np.ndarray]:
    """Widths of outlines, and areas such that a marker and its outline, half of which lies outside, keep their size."""
    thin = min(0.6, size / 12)
    width: np.ndarray = thin + share * (RING * size - thin)
    return {"linewidths": width, "s": (size - width + thin) ** 2}


def _title(traces: Traces, index: int) -> str:
    row = traces.traces.slice(index, 1).to_pylist()[0]
    reward = float(traces.reward[index])
    parts = [f"trace {printable(row['trace'], 48)}"]
    if row["group"] != row["trace"]:
        parts.append(f"task {printable(row['group'], 32)}")
    parts.append(f"outcome {reward:z.3g}" if np.isfinite(reward) else "no outcome")
    return "  ·  ".join(parts)
