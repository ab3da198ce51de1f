"""The picture of a trace: what is in it, what colours mean, what large and hostile traces do to it."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text

from credit.plot import draw_trace
from credit.plot.canvas import GREY
from graphs.errors import CreditError, MissingExtraError
from graphs.event_graph import EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

ROOT = Path(__file__).resolve().parents[3]


def small(name: str = "lead") -> Traces:
    """Two traces; the second: a lead spawns a worker, which uses a tool, returns, and the lead stops."""
    record = TraceRecord(
        "second", "task", "f", instances={name: Agent(role="planner"), "w": Agent("worker", "worker", name)}
    )
    for i, (kind, agent, action) in enumerate(
        [
            (EventType.ORCHESTRATOR_DECISION, name, True),
            (EventType.SPAWN, name, False),
            (EventType.TOOL_CALL, "w", True),
            (EventType.TOOL_RESULT, "w", False),
            (EventType.RETURN, "w", False),
            (EventType.STOP, name, True),
        ]
    ):
        record.event(f"e{i}", kind, agent, action=action, time=float(i * i))
    for sender, receiver, kind in [
        (0, 1, EdgeType.CAUSAL),
        (1, 2, EdgeType.SPAWN),
        (2, 3, EdgeType.RETURN),
        (3, 4, EdgeType.CAUSAL),
        (4, 5, EdgeType.RETURN),
    ]:
        record.edge(sender, receiver, kind)
    other = TraceRecord("first", "task", "f", instances={"a": Agent()})
    other.event("e", EventType.MESSAGE, "a", action=True)
    return assemble([other, record])


def crowd(agents: int, events: int) -> Traces:
    """A lead with many workers who talk with each other all the time."""
    rng = np.random.default_rng(0)
    record = TraceRecord("crowd", "task", "f", instances={"lead": Agent()})
    record.instances |= {f"w{i}": Agent("worker", "worker", "lead") for i in range(1, agents)}
    names = list(record.instances)
    for i in range(events):
        record.event(f"e{i}", EventType(int(rng.integers(11))), names[rng.integers(agents)], action=bool(i % 2))
        if i:
            record.edge(int(rng.integers(i)), i, EdgeType(int(rng.integers(8))))
    return assemble([record])


def points(figure: Figure) -> list[PathCollection]:
    return [c for c in figure.axes[0].collections if isinstance(c, PathCollection)]


def arrows(figure: Figure) -> list[FancyArrowPatch]:
    return [p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch)]


def lane_names(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=40)
    return out.getvalue()


def test_events_stand_in_order_on_the_lanes_of_their_agents() -> None:
    figure = draw_trace(small(), "second")
    placed = sorted(tuple(map(float, xy)) for c in points(figure) for xy in c.get_offsets())
    assert placed == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1), (5, 0)]
    assert lane_names(figure) == ["lead (planner)", "   worker w"]
    assert "trace second" in figure.axes[0].get_title(loc="left")
    assert png(figure).startswith(b"\x89PNG")


def test_time_can_be_the_axis() -> None:
    figure = draw_trace(small(), 1, x="time")
    assert sorted(float(x) for c in points(figure) for x, _ in c.get_offsets()) == [0, 1, 4, 9, 16, 25]
    assert "[s]" in figure.axes[0].get_xlabel()
    with pytest.raises(CreditError, match="event 0 of the trace has no time"):
        draw_trace(small(), 0, x="time")


def test_arrows_join_lanes_only() -> None:
    figure = draw_trace(small(), 1)
    assert len(arrows(figure)) == 2  # the spawn and the return; the rest is the order of a lane
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"edge: spawn", "edge: return", "tool call", "stop", "tool result (no action)"} <= legend
    assert "edge: message" not in legend and "message" not in legend


def test_values_colour_actions_around_zero() -> None:
    traces = small()
    values = np.full(traces.graph.num_events, 99.0)  # of the other trace, and padding: not in this picture
    values[1:7] = [-2.0, 77.0, 1.0, 77.0, 77.0, np.nan]  # non-actions' values are not shown either
    figure = draw_trace(traces, 1, values, label="credit", unit="points")
    colour = {
        tuple(xy): c.get_facecolors()[i % len(c.get_facecolors())]
        for c in points(figure)
        for i, xy in enumerate(c.get_offsets())
    }
    red, blue, white = colour[0, 0], colour[2, 1], colour[5, 0]
    assert red[0] > 0.3 and red[0] > 2 * red[2]  # the lowest value is at the dark end
    assert blue[2] > blue[0]
    np.testing.assert_array_equal(white, [1, 1, 1, 1])
    np.testing.assert_array_equal(colour[3, 1], to_rgba(GREY))
    bar = figure.axes[1]
    assert bar.get_ylabel() == "credit [points]"
    assert bar.get_ylim() == (-2, 2)


def test_values_that_are_all_zero_have_a_scale() -> None:
    traces = small()
    assert draw_trace(traces, 1, np.zeros(traces.graph.num_events)).axes[1].get_ylim() == (-1, 1)


@pytest.mark.slow
def test_outlines_widen_with_the_standard_error() -> None:
    traces = small()
    n = traces.graph.num_events
    values, stderr = np.zeros(n), np.zeros(n)
    values[1], values[3] = 2.0, -1.0
    stderr[[3, 6]] = 1.0, np.inf  # half of the scale, and unknown
    figure = draw_trace(traces, 1, values, stderr=stderr)
    width = {tuple(xy): c.get_linewidths()[0] for c in points(figure) for xy in c.get_offsets()}
    size = {tuple(xy): c.get_sizes()[0] ** 0.5 for c in points(figure) for xy in c.get_offsets()}
    assert width[0, 0] < width[2, 1] < width[5, 0]
    np.testing.assert_allclose(width[2, 1], (width[0, 0] + width[5, 0]) / 2, rtol=1e-6)
    outer = [size[xy] + width[xy] for xy in ((0, 0), (2, 1), (5, 0))]
    np.testing.assert_allclose(outer, outer[0], rtol=1e-6)  # what is uncertain looks no larger
    assert size[5, 0] > 2 * width[5, 0]  # and its colour still shows
    assert "standard error 1" in {text.get_text() for text in figure.legends[0].get_texts()}
    without = {text.get_text() for text in draw_trace(traces, 1, values).legends[0].get_texts()}
    assert not any(text.startswith("error") for text in without)


def test_wrong_arguments_are_refused() -> None:
    traces = small()
    with pytest.raises(CreditError, match="values has shape"):
        draw_trace(traces, 0, np.zeros(6))
    with pytest.raises(CreditError, match="stderr has shape"):
        draw_trace(traces, 0, np.zeros(traces.graph.num_events), stderr=np.zeros(6))
    with pytest.raises(CreditError, match="without the values"):
        draw_trace(traces, 0, stderr=np.zeros(traces.graph.num_events))
    with pytest.raises(CreditError, match="x is 'place'"):
        draw_trace(traces, 0, x="place")  # type: ignore[arg-type]
    with pytest.raises(CreditError, match="No trace 'third'"):
        draw_trace(traces, "third")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", ["$\\frac{1}{0}$", "\\input{/x} $", "a\nb\x1b[31m", "$x_1$ \u202eabc"])
def test_names_are_text_not_mathematics(name: str) -> None:
    traces = small(name)
    figure = draw_trace(traces, 1)
    png(figure)  # must not stumble over it either
    titles = [text for text in figure.findobj(Text) if text.get_text().startswith("trace ")]
    labels = [*titles, *figure.axes[0].get_yticklabels()]
    assert len(titles) == 1 and not any(label.get_parse_math() or label.get_usetex() for label in labels)
    shown = "".join(lane_names(figure))
    assert shown.isprintable() and name[:1] in shown
    assert "$" in shown or "$" not in name


@pytest.mark.study
def test_labels_lie_within_the_figure_and_apart() -> None:
    figure = draw_trace(crowd(40, 300))
    png(figure)
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    tops = sorted((box.y0, box.y1) for box in boxes)
    assert all(below[1] <= above[0] for below, above in itertools.pairwise(tops))
    assert all(box.x0 >= 0 and box.x1 <= figure.axes[0].get_window_extent().x0 for box in boxes)


@pytest.mark.study
def test_the_largest_teams_are_thinned_out() -> None:
    traces = crowd(300, 4000)
    rng = np.random.default_rng(1)
    values, stderr = rng.normal(size=(2, traces.graph.num_events))
    figure = draw_trace(traces, 0, values, stderr=np.abs(stderr))
    assert len(lane_names(figure)) < 200
    assert "300 agents" in figure.axes[0].get_ylabel()
    assert not arrows(figure)
    assert all(c.get_rasterized() for c in points(figure))
    lines = [c for c in figure.axes[0].collections if isinstance(c, LineCollection) and c.get_rasterized()]
    assert sum(len(c.get_segments()) for c in lines) > 3000
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.study
def test_global_state_is_untouched() -> None:
    script = (
        "import sys; sys.path.insert(0, '.'); import credit; credit.plot.draw_trace\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from graphs.traces.record import TraceRecord; from graphs.traces.assembling import assemble\n"
        "record = TraceRecord('t', 'g', 'f'); record.event('e', 3, 'a', action=True)\n"
        "credit.plot.draw_trace(assemble([record])); assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_a_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r'pip install "orchestration-credit\[plot\]"'):
        draw_trace(small())
