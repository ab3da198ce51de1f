"""The other pictures: bars add up to the reward, curves stand where they were measured, names are text."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.special import betaincinv

from credit.bench.snr import Point, Report, fit
from credit.cli import cli
from credit.plot import Curve, draw_calibration, draw_ledger, draw_methods, draw_snr, narrow, refine
from credit.plot.bias_dots import LABELS, OWN_SCALE
from credit.plot.nested_bars import _grouped
from credit.plot.snr_curves import BANDS, PAIRS, _lying, draw_snr_report
from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from graphs.writers import native

HOSTILE = "_$\\frac{1}{0}$"


def drawn(figure: Figure) -> Figure:
    """The figure after one drawing, so that everything has its place."""
    figure.draw_without_rendering()
    return figure


def texts(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def assert_nothing_clipped(figure: Figure) -> None:
    """All that is drawn lies within the paper (inches)."""
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert box.x0 > -0.02 and box.y0 > -0.02 and box.x1 < width + 0.02 and box.y1 < height + 0.02


def apart(labels: list[Text]) -> bool:
    spans = sorted((label.get_window_extent().y0, label.get_window_extent().y1) for label in labels)
    return all(below[1] <= above[0] + 0.5 for below, above in itertools.pairwise(spans))


def team(workers: int, calls: int, name: str = "lead") -> Traces:
    """Two traces of a lead and its workers, each of whom acts `calls` times."""
    records = []
    for number in range(2):
        record = TraceRecord(f"trace-{number}", "task", "f", instances={name: Agent(role="lead")})
        record.event("plan", EventType.ORCHESTRATOR_DECISION, name, action=True)
        for w in range(workers):
            record.instances[f"w{w}"] = Agent(f"w{w}", "worker", name)
            for c in range(calls):
                at = record.event(f"c{w}.{c}", EventType.MESSAGE, f"w{w}", action=True)
                record.edge(0, at, EdgeType.SPAWN)
        record.rewards["team"] = float(number)
        records.append(record)
    return assemble(records)


def ledger_of(traces: Traces, rng: np.random.Generator, **fields: Any) -> Any:
    """Entries as `credit.compose` gives them: they add up to the reward."""
    graph = traces.graph
    claimed = np.asarray(graph.action_mask)
    increments = np.where(claimed, rng.normal(size=graph.num_events), 0.0)
    reward = np.where(np.isfinite(traces.reward), traces.reward, 0.0)
    expected = np.full(graph.num_traces, 0.25)
    left = reward - expected - np.bincount(np.asarray(graph.trace_ids), increments, graph.num_traces)
    entries = {
        "reward": reward,
        "expected": expected,
        "outcome": np.zeros(graph.num_traces),
        "unexplained": left,
        "remainder": np.zeros(graph.num_traces),
        "increments": increments,
        "stderr": np.where(claimed, 0.5, 0.0),
        "claimed": claimed,
    }
    return SimpleNamespace(**(entries | fields))


def rows_of(figure: Figure) -> list[tuple[str, float, float]]:
    """Label, start and end of each bar from top to bottom."""
    axes = figure.axes[0]
    bars = [patch for container in axes.containers for patch in container]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    return [(label, bar.get_x(), bar.get_x() + bar.get_width()) for label, bar in zip(labels, bars, strict=True)]


@pytest.mark.slow
def test_the_bars_of_a_ledger_lead_from_nothing_to_the_reward() -> None:
    traces = team(2, 3)
    ledger = ledger_of(traces, np.random.default_rng(0))
    figure = drawn(draw_ledger(traces, ledger, "trace-1"))
    rows = rows_of(figure)
    assert [r[0] for r in rows] == [
        "expected at the start", "lead", "orchestrator decision plan",
        "w0 (worker)", "message c0.0", "message c0.1", "message c0.2",
        "w1 (worker)", "message c1.0", "message c1.1", "message c1.2",
        "unexplained", "reward",
    ]  # fmt: skip
    levels = [r for r in rows if not r[0].startswith(("message", "orchestrator"))]
    assert levels[0][1] == 0 and levels[-1][1:] == (0, 1)
    for before, after in itertools.pairwise(levels[:-1]):
        np.testing.assert_allclose(after[1], before[2], atol=1e-12)
    np.testing.assert_allclose(levels[-2][2], 1, atol=1e-9)  # what is unexplained ends at the reward
    inside = [r for r in rows if r[0].startswith("message c0")]
    np.testing.assert_allclose([inside[0][1], inside[-1][2]], rows[3][1:])  # an agent's bar spans its events'
    assert_nothing_clipped(figure)
    assert apart(figure.axes[0].get_yticklabels())
    low, high = figure.axes[0].get_xlim()
    assert low < min(min(r[1:]) for r in rows) and high > max(max(r[1:]) for r in rows)


@pytest.mark.slow
def test_a_ledger_of_many_keeps_its_sums() -> None:
    traces = team(90, 2)
    ledger = ledger_of(traces, np.random.default_rng(1))
    figure = drawn(draw_ledger(traces, ledger, 1, most_rows=20))
    rows = rows_of(figure)
    assert len(rows) == 20 + 3 and "others" not in rows[1][0]
    assert rows[-3][0] == "72 other agents"
    for before, after in itertools.pairwise(rows[:-1]):
        np.testing.assert_allclose(after[1], before[2], atol=1e-9)
    np.testing.assert_allclose(rows[-2][2], 1, atol=1e-9)
    middle = drawn(draw_ledger(team(30, 2), ledger_of(team(30, 2), np.random.default_rng(2)), 0))
    assert len(rows_of(middle)) == 31 + 3  # agents without their events


def test_events_of_agents_are_found_without_a_pass_for_each() -> None:
    """Each of 3,000 agents was compared with all 6,000 events: 18 million comparisons for 60 bars."""

    class Counted(np.ndarray):
        """Numbers that count what is compared elementwise."""

        def __eq__(self, other: object) -> Any:
            compared.append(self.size)
            return np.asarray(self) == other

    compared: list[int] = []
    agents = np.random.default_rng(5).permutation(np.repeat(np.arange(3000), 2))
    rows = 7 * np.arange(len(agents))
    found = _grouped(rows, agents.view(Counted))
    assert sum(compared) <= 2 * len(agents)
    assert found.keys() == set(range(3000))
    assert all(np.array_equal(found[agent], rows[agents == agent]) for agent in (0, 1, 1499, 2999))
    assert sorted(itertools.chain.from_iterable(own.tolist() for own in found.values())) == rows.tolist()


@pytest.mark.slow
def test_luck_and_errors_are_drawn_where_the_ledger_states_them() -> None:
    traces = team(1, 1)
    rng = np.random.default_rng(3)
    ledger = ledger_of(traces, rng, outcome=np.full(traces.graph.num_traces, 0.125))
    ledger.unexplained = ledger.unexplained - ledger.outcome
    figure = draw_ledger(traces, ledger, 1)
    assert "luck after the last action" in texts(figure)
    assert any("± 0.500" in text for text in texts(figure))
    assert "reward, summed from top to bottom; ±: one standard error" in texts(figure)
    unknown = draw_ledger(traces, ledger_of(traces, rng, stderr=np.full(traces.graph.num_events, np.inf)), 1)
    assert not any("±" in text for text in texts(unknown))


@pytest.mark.slow
def test_the_command_line_draws_the_ledger_of_a_trace(tmp_path: Path) -> None:
    native.write(team(2, 1), tmp_path / "x.jsonl")
    call = ["compose", str(tmp_path / "x.jsonl"), "-m", "rloo", "-o", str(tmp_path / "ledger.csv")]
    done = CliRunner().invoke(cli, [*call, "--plot", str(tmp_path / "x.svg"), "--trace", "trace-1"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml") and "drew" in done.stderr
    wrong = CliRunner().invoke(cli, [*call, "--trace", "trace-1"])
    assert wrong.exit_code == 1 and "expected --plot FILE with it" in wrong.stderr
    missing = CliRunner().invoke(cli, [*call, "--plot", str(tmp_path / "x.svg"), "--trace", "trace-9"])
    assert missing.exit_code == 1 and "trace-9" in missing.stderr


def test_a_ledger_is_refused_where_it_does_not_fit() -> None:
    traces = team(1, 1)
    ledger = ledger_of(traces, np.random.default_rng(4))
    with pytest.raises(CreditError, match="the ledger has increments"):
        draw_ledger(team(40, 5), ledger)
    with pytest.raises(CreditError, match="has no outcome"):
        draw_ledger(unscored(), ledger_of(unscored(), np.random.default_rng(4)))


def unscored() -> Traces:
    record = TraceRecord("t", "t", "f", instances={"a": Agent()})
    record.event("e", EventType.MESSAGE, "a", action=True)
    return assemble([record])


LENGTH = np.array([10, 100, 1000])


def curves() -> list[Curve]:
    falling = 0.9 / np.sqrt(LENGTH)
    return [
        Curve("falls", LENGTH, falling, 0.8 * falling, 1.2 * falling, theory=falling, cost=LENGTH * 8.0, slope=-0.5),
        Curve(HOSTILE, LENGTH, np.array([0.7, 0.7, 0.7]), cost=LENGTH**2),
    ]


@pytest.mark.slow
def test_curves_stand_where_they_were_measured() -> None:
    figure = drawn(draw_snr(curves(), title="additive"))
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    data = {tuple(map(float, line.get_ydata())) for line in axes.lines}
    assert tuple(0.9 / np.sqrt(LENGTH)) in data and (0.7, 0.7, 0.7) in data
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["falls, slope −0.50", HOSTILE, "closed form, not fitted"]  # it was not the order of tables
    assert not any(text.get_parse_math() for text in figure.legends[0].get_texts())
    assert "[decisions]" in axes.get_xlabel()
    assert_nothing_clipped(figure)
    by_cost = draw_snr(curves(), x="cost").axes[0]
    assert "[rollouts a trace]" in by_cost.get_xlabel()
    assert {tuple(map(float, line.get_xdata())) for line in by_cost.lines} == {(80, 800, 8000), (100, 1e4, 1e6)}


def test_what_is_not_positive_is_left_out() -> None:
    axes = draw_snr([Curve("a", LENGTH, np.array([0.3, 0.0, np.nan]), np.array([-1, 0, 0.0]), np.ones(3))]).axes[0]
    assert {tuple(line.get_xdata()) for line in axes.lines} == {(10,)}
    least = axes.collections[0].get_paths()[0].vertices[:, 1].min()
    assert least == axes.get_ylim()[0] > 0  # a band that goes on below was cut flat above the end of the axis


def test_curves_are_refused_where_they_cannot_be_drawn() -> None:
    with pytest.raises(CreditError, match="no curve"):
        draw_snr([])
    with pytest.raises(CreditError, match="has no cost"):
        draw_snr([Curve("a", LENGTH, LENGTH * 1.0)], x="cost")
    with pytest.raises(CreditError, match="x is 'time'"):
        draw_snr(curves(), x="time")  # type: ignore[arg-type]
    with pytest.raises(CreditError, match=r"curve 'a': theory has shape \(2,\)"):
        Curve("a", LENGTH, LENGTH * 1.0, theory=np.ones(2))
    with pytest.raises(CreditError, match="both low and high"):
        Curve("a", LENGTH, LENGTH * 1.0, low=np.ones(3))


def row(method: str, world: str, bias: float, rank: float = 1.0, k: int = 3, relative: float = 0.5) -> Any:
    return SimpleNamespace(method=method, world=world, k=k, bias=bias, relative=relative, rank=rank, answered=1.0)


@pytest.mark.slow
def test_methods_stand_in_the_order_of_their_rows() -> None:
    """Methods of least bias came first, unlike in the table."""
    rows = [row("b", "w1", 0.5), row("b", "w2", 1e-15), row(HOSTILE, "w1", 2e-16), row(HOSTILE, "w2", 0.0)]
    rows += [row("c", "w1", 0.1, np.nan), row("c", "w2", 0.2), row("b", "w1", 9.0, k=2), row("d", "w1", 0.3, k=4)]
    figure = drawn(draw_methods(rows))
    axes = figure.axes[0]
    labels = axes.get_yticklabels()
    assert [label.get_text() for label in labels] == ["b, size 3", f"{HOSTILE}, size 3", "c, size 3", "d"]
    assert not any(label.get_parse_math() for label in labels)
    assert sorted(float(x) for line in axes.lines for x in line.get_xdata()) == [0, 0, 0, 0.1, 0.2, 0.3, 0.5]
    assert_nothing_clipped(figure)
    with pytest.raises(CreditError, match=r"no row has k = 1 or less; the rows have \[2, 3, 4\]"):
        draw_methods(rows, k=1)
    # Of one size only, and that smaller; the legend said "groups of 3" of both.
    alone = draw_methods([row("b", "w1", 0.5), row("replays", "w1", 0.1, k=1)])
    assert [label.get_text() for label in alone.axes[0].get_yticklabels()] == [
        "b",
        "replays, size 1",
    ]  # the legend said "groups of 3" of both
    assert alone.legends[0].get_title().get_text() == f"groups of 3; {OWN_SCALE}"


def test_each_asked_group_size_has_a_line_of_panels_on_the_same_axes() -> None:
    """`--group-size 2,4,8 --plot` drew groups of 8 alone."""
    rows = [row("a", "w", bias, k=k, relative=1.0 / k) for k, bias in ((2, 0.2), (4, 0.4), (8, 3.0))]
    rows += [row("alone", "w", 0.1, k=1), row("b", "w", 0.3, k=2), row("b", "w", 0.3, k=4)]
    figure = drawn(draw_methods(rows, k=(2, 4, 8)))
    assert_nothing_clipped(figure)
    assert [axes.get_title() for axes in figure.axes] == [f"groups of {k}" for k in (2, 4, 8) for _ in range(3)]
    first, _, last = (figure.axes[block * 3] for block in range(3))
    assert [axes.lines[0].get_xdata().tolist() for axes in (first, last)] == [[0.2, 0.1, 0.3], [3.0, 0.1]]
    assert first.get_xlim() == last.get_xlim() and last.get_xlim()[1] > 3
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in (first, last)]
    assert names == [["a", "alone, size 1", "b"]] * 2
    assert figure.legends[0].get_title().get_text() == f"{OWN_SCALE}; left out: b in w, groups of 8"


@pytest.mark.slow
def test_many_scores_are_drawn_in_lines_of_panels_that_fit_a_page() -> None:
    """Eight stood in one line of 21.6 inches."""
    many = [row("b", "w1", 0.5), row("c", "w1", 0.1)]
    figure = drawn(draw_methods(many, scores=("bias", "relative", "rank", "answered") * 2))
    assert figure.get_size_inches()[0] <= 12 and len(figure.axes) == 8
    assert_nothing_clipped(figure)
    assert len({round(axes.get_window_extent().y0) for axes in figure.axes}) == 2
    named = [any(tick.label1.get_visible() for tick in axes.yaxis.get_major_ticks()) for axes in figure.axes]
    assert named == [True, False, False, False] * 2
    small = [axes.get_yticklabels() for axes in refine(draw_methods(many), size=(3.4, 2.5), title="").axes]
    assert all(label.get_fontsize() >= 6 for labels in small for label in labels)


@pytest.mark.slow
def test_the_numbers_of_a_wide_panel_are_those_of_its_decade() -> None:
    """From 2.5 to 18 stood 3, 4, … 9, whose crowd left no room for 10."""
    axis = drawn(draw_methods([row("a", "w", 0.5, relative=2.6), row("b", "w", 0.4, relative=17.0)])).axes[1].xaxis
    assert {"2", "5", "10", "20"} <= {tick.label1.get_text() for tick in axis.get_major_ticks()}


@pytest.mark.parametrize("top", [0.5, 0.33, 0.3001, 0.17])
def test_a_logarithmic_axis_has_numbers_enough_to_read_a_distance(top: float) -> None:
    """From 0.25 to 0.45 it had one number, 0.3 to 0.301 none."""
    lengths = np.array([10.0, 30.0])
    figure = drawn(draw_snr([Curve("a", lengths, np.array([top, 0.3]))]))
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
        low, high = axis.get_view_interval()
        shown = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_text()]
        assert 3 <= len({tick.label1.get_text() for tick in shown}) <= 6


@pytest.mark.parametrize("value", [9.05344642919, 1.0, 3.0, 0.02])
def test_a_logarithmic_axis_of_one_number_says_where_it_is(value: float) -> None:
    """Its numbers were 9.05344642919 and 9.05344642919, which lay on those of the next panel."""
    axis = drawn(draw_methods([row(name, "w", 0.5, relative=value) for name in "ab"])).axes[1].xaxis
    low, high = axis.get_view_interval()
    shown = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_text()]
    assert shown[0].get_loc() < value < shown[-1].get_loc() and len(shown) >= 3
    assert all(len(tick.label1.get_text()) <= 4 for tick in shown)


def test_cosines_that_are_all_near_1_fill_their_panel() -> None:
    """All stood in 0.91 to 1 of an axis from 0 to 1; the legend of closed forms showed a dashed line as a solid one."""
    for values, start in (((0.914, 1.0), 0.895), ((0.3, 1.0), -0.05), ((1.0, 1.0), 0.895)):
        rows: list[Any] = [
            SimpleNamespace(method=name, world="w", k=3, cosine=value, answered=1.0)
            for name, value in zip("ab", values, strict=True)
        ]
        assert draw_methods(rows, scores=["cosine"]).axes[0].get_xlim() == pytest.approx(
            (start, 1.05 if start < 0 else 1.005)
        )
    curve = Curve("a", np.array([10.0, 100.0]), np.array([0.3, 0.1]), theory=np.array([0.3, 0.1]))
    legend = draw_snr([curve]).legends[0]
    assert legend.handlelength * legend.get_texts()[0].get_fontsize() > 3 * 6 * 1.2 + 5  # three dashes and the marker


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("span", [1.0, 4.0, 0.3, 0.05])
def test_a_logarithmic_axis_has_a_number_at_or_beyond_each_end_of_its_data(span: float, seed: int) -> None:
    """Points stood at 13.4 and 14.7 beyond the last number, 10, and at 0.165 below the first, 0.2."""
    rng = np.random.default_rng(seed)
    values = 10 ** (rng.uniform(-3, 3) + rng.uniform(0, span, 5))
    methods = [
        row(f"m{i}", "w", bias, relative=value) for i, (bias, value) in enumerate(zip(values, values, strict=True))
    ]
    curve = Curve("a", np.sort(values), values, values / 1.3, 1.2 * values)
    for figure in (draw_methods(methods, scores=["bias", "relative"]), draw_snr([curve])):
        refine(figure, size=(3.4, 4.0), larger=True)
        for axis in (axis for axes in drawn(figure).axes for axis in (axes.xaxis, axes.yaxis)):
            if axis.get_scale() == "linear":
                continue
            low, high = axis.get_view_interval()
            least, most = axis.get_data_interval()
            at = [tick.get_loc() for tick in axis.get_major_ticks() if tick.label1.get_text()]
            at = [place for place in at if low - 1e-9 <= place <= high + 1e-9]
            first = 0.0 if axis.get_scale() == "symlog" else least
            assert at[0] <= first * (1 + 1e-9) and at[-1] >= most * (1 - 1e-9) and len(at) > 1, (at, least, most)


def test_bands_are_explained_in_the_figure() -> None:
    rest = (1.0, None, 1.0, 1.0, 1.0, 2, "full", 0.0, 1.0, "")
    points = [Point(name, name, t, 8, 1 / t, 0.9 / t, 1.1 / t, *rest) for name in ("rloo", "grpo") for t in (10, 100)]
    report = Report(points, [found for name in (0, 2) if (found := fit(points[name : name + 2]))], {})

    def stated(**options: Any) -> str:
        return " ".join(draw_snr_report(report, **options).legends[0].get_title().get_text().split())

    below = dataclasses.replace(points[0], snr=-0.1)  # which a logarithmic axis does not have
    for few, names in ((Report([below], [], {}), None), (report, ["gae"])):  # numpy's words were no answer
        with pytest.raises(CreditError, match=r"has a positive signal to noise; expected one or more"):
            draw_snr_report(few, names=names)
    (panel,) = draw_snr_report(Report(points[:1], [], {})).axes
    (bar,) = (one for one in panel.collections if isinstance(one, LineCollection))
    assert [*map(tuple, bar.get_segments()[0])] == [(10, pytest.approx(0.09)), (10, pytest.approx(0.11))]
    assert BANDS in stated() and PAIRS in stated()
    assert PAIRS not in stated(names=["rloo"]) and PAIRS not in stated(equal_cost=True)


@pytest.mark.slow
def test_shrunk_advantages_do_not_look_less_noisy() -> None:
    """The default panel was the variance over |∇J|², a quarter where advantages are halved."""
    panel = draw_methods([row("b", "w1", 0.5)]).axes[1]
    assert panel.get_xlabel().endswith("[|E g|²]") and panel.lines[0].get_xdata()[0] == 0.5
    shown = draw_methods([row("b", "w1", 0.5)], scores=("bias",))
    assert OWN_SCALE not in shown.legends[0].get_title().get_text()


@pytest.mark.slow
def test_calibration_is_the_mean_outcome_of_each_bin() -> None:
    predicted = np.repeat([0.2, 0.8], 50)
    observed = np.concatenate([np.arange(50) < 10, np.arange(50) < 25]).astype(float)
    figure = drawn(draw_calibration({HOSTILE: (predicted, observed)}))
    line = figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_xydata(), [[0.2, 0.2], [0.8, 0.5]])
    assert not figure.axes[0].collections[0].get_segments()  # outcomes of one task may depend on each other
    one_each = draw_calibration({"a": (predicted, observed)}, tasks=np.arange(100))
    spans = [segment[:, 1] for segment in one_each.axes[0].collections[0].get_segments()]
    # Jeffreys' of 10 and of 25 of 50 coins
    expected = [betaincinv(50 * p + 0.5, 50 * (1 - p) + 0.5, [0.025, 0.975]) for p in (0.2, 0.5)]
    np.testing.assert_allclose(spans, expected, atol=1e-5)
    shared = draw_calibration({"a": (predicted, observed)}, tasks=np.arange(100) // 2)  # 25 tasks a bin
    assert not shared.axes[0].collections[0].get_segments()
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert legend == {f"{HOSTILE}  (calibration error 0.150)", "as predicted"}  # the mean of 0 and 0.3
    assert_nothing_clipped(figure)


@pytest.mark.slow
def test_calibration_of_rewards_that_are_no_successes() -> None:
    predicted, observed = np.arange(20.0), np.arange(20.0) + np.tile([0.5, -0.5], 10)
    observed[3] = np.nan  # left out
    figure = drawn(draw_calibration({"a": (predicted, observed)}, bins=4, unit="points"))
    assert figure.axes[0].get_ylabel() == "mean outcome [points]"
    assert len(figure.axes[0].lines[0].get_xdata()) == 4


def test_calibration_needs_predictions_and_their_outcomes() -> None:
    with pytest.raises(CreditError, match="no predictions"):
        draw_calibration({})
    with pytest.raises(CreditError, match=r"predictions \(2,\) and outcomes \(3,\)"):
        draw_calibration({"a": (np.ones(2), np.ones(3))})
    with pytest.raises(CreditError, match=r"predictions \(2,\) and tasks \(3,\)"):
        draw_calibration({"a": (np.ones(2), np.ones(2))}, tasks=np.ones(3))
    with pytest.raises(CreditError, match="no prediction with an outcome"):
        draw_calibration({"a": (np.ones(2), np.full(2, np.nan))})
    with pytest.raises(CreditError, match="bins is 0"):
        draw_calibration({"a": (np.ones(2), np.ones(2))}, bins=0)


@pytest.mark.slow
def test_a_panel_that_is_too_low_to_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight methods at the width of a column left a strip of .35 inches above their legend, without a word."""
    lengths = np.array([2.0, 10.0, 100.0])
    names = [f"a method with a name of its own, number {k}" for k in range(8)]
    curves = [Curve(name, lengths, 1 / lengths, 0.9 / lengths, 1.1 / lengths) for name in names]

    def drawn() -> Figure:
        return draw_snr(curves, groups="groups of 8; values are true ones, and slopes are fitted to points")

    with pytest.raises(CreditError, match=r"leaves no room; expected a larger size, such as 3.4x\d"):
        refine(drawn(), size=(3.4, 2.2))
    monkeypatch.setattr(narrow, "LEAST", 0.0)
    strip = refine(drawn(), size=(3.4, 2.5))
    assert strip.axes[0].get_window_extent().height < 0.7 * strip.dpi


@pytest.mark.slow
@pytest.mark.parametrize(("scores", "height"), [(1, 1.0), (len(LABELS), 3.0), (len(LABELS), 4.0)])
def test_a_size_that_is_proposed_fits_the_picture_and_a_page(scores: int, height: float) -> None:
    """Eight scores at 3.4x4 were to be 12 inches high, higher than a page; at 3.4x3 no size was proposed."""
    found, drawn = dict.fromkeys(LABELS, 0.5), list(LABELS)[:scores]
    pairs = itertools.product(("rloo", "grpo", "mine:own"), ("relay-and", "spawn-and"))
    rows = [SimpleNamespace(method=method, world=world, k=3, **found) for method, world in pairs]
    reason = ""
    try:
        refine(draw_methods(rows, scores=drawn), size=(3.4, height))
    except CreditError as error:
        reason = str(error)
    assert reason or height > 3  # whether the higher one fits depends on matplotlib's release
    if reason:
        proposed = re.search(r"such as ([\d.]+)x([\d.]+)$", reason)
        assert proposed
        wide, high = float(proposed[1]), float(proposed[2])
        assert wide <= narrow.PAGE[0] and height < high <= narrow.PAGE[1]
        refine(draw_methods(rows, scores=drawn), size=(wide, high))
        if wide == 3.4 and high - narrow.STEP > height:
            with pytest.raises(CreditError, match=f"such as 3.4x{high:g}$"):
                refine(draw_methods(rows, scores=drawn), size=(wide, high - narrow.STEP))


@pytest.mark.slow
def test_a_refusal_of_many_panels_takes_few_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 72 layouts, two minutes, to say that nothing was measured yet; a command says why after three seconds."""
    sizes, tried, real = (2, 4, 8), [], narrow.lay_out
    names = ["rloo", "mine:top3", "grpo", "dr_grpo", "max_rl", "gpg", "dr_mas", "opo"]

    def refused(methods: int, scores: Sequence[str], proposed: str) -> int:
        rows: list[Any] = [SimpleNamespace(method=method, world=world, k=k, **dict.fromkeys(LABELS, 0.5))
                           for method in names[:methods] for world in "ab" for k in sizes]  # fmt: skip
        figure = draw_methods(rows, k=sizes, scores=scores)
        tried.clear()
        with pytest.raises(CreditError, match=rf"leaves no room; expected a larger size, such as {proposed}$"):
            refine(figure, size=(3.3, 3), style="serif")
        return len(tried)

    monkeypatch.setattr(narrow, "lay_out", lambda figure: (tried.append(1), real(figure))[1])
    assert refused(2, [*LABELS], "7x9") <= 60
    assert refused(8, ["bias", "relative", "rank"], "3.3x6") <= 24  # for the least of twelve heights; they were 63


@pytest.mark.slow
def test_sizes_stand_abreast_with_one_label_and_no_marker_on_another() -> None:
    """Three sizes were nine inches high with a label each, a legend larger than the numbers, and touching markers."""
    rows = [row(name, world, 0.1, k=k) for name in "abcdefgh" for world in ("w1", "w2") for k in (2, 4, 8)]
    figure = refine(draw_methods(rows, k=(2, 4, 8), scores=["relative"]), size=(3.3, 2.6), style="serif")
    figure.draw_without_rendering()
    assert len({round(axes.get_window_extent().y0) for axes in figure.axes}) == 1
    legend = figure.legends[0]
    assert legend.get_title().get_text().replace("\n", " ").startswith("along x: variance for equal runs [|E g|²]; ")
    assert not any(axes.get_xlabel() for axes in figure.axes)
    numbers = min(label.get_fontsize() for axes in figure.axes for label in axes.get_xticklabels())
    assert max(text.get_fontsize() for text in (*legend.get_texts(), legend.get_title())) <= numbers
    for axes in figure.axes:
        one, other = axes.lines
        apart = np.diff([axes.transData.transform(line.get_xydata())[0, 1] for line in (one, other)])[0]
        assert abs(apart) * 72 / figure.dpi >= one.get_markersize() + one.get_markeredgewidth()
    scores = ["bias", "relative", "rank"]
    three = refine(draw_methods(rows, k=(2, 4, 8), scores=scores), size=(5.5, 6))
    three.draw_without_rendering()
    assert [axes.xaxis.label.get_visible() for axes in three.axes] == [False] * 6 + [True] * 3
    below = refine(draw_methods(rows, k=(2, 4, 8), scores=scores), size=(2.2, 19))
    assert all(axes.xaxis.label.get_visible() for axes in below.axes)  # none stands above its like
    assert all(label.get_fontsize() <= 8 for axes in below.axes for label in axes.get_yticklabels())  # it was infinite


@pytest.mark.slow
def test_all_scores_of_as_many_methods_as_the_gallery_says_have_room() -> None:
    """Nine methods had none at the size that stood there for any number."""
    said = re.findall(r"`3\.4x([\d.]+)` for (\d+)", (Path(__file__).parents[3] / "docs" / "gallery.md").read_text())
    assert len(said) == 2
    for (height, methods), worlds in itertools.product(said, (2, 3)):
        names = [f"mine:method_{number}" for number in range(int(methods))]
        pairs = itertools.product(names, ("relay-and", "stop-rewards", "hire-additive")[:worlds])
        rows: list[Any] = [SimpleNamespace(method=name, world=world, k=4, **dict.fromkeys(LABELS, 0.5))
                           for name, world in pairs]  # fmt: skip
        refine(draw_methods(rows, scores=list(LABELS)), size=(3.4, float(height)), style="serif")


@pytest.mark.slow
@pytest.mark.parametrize(("scores", "height"), [(3, 2.6), (len(LABELS), 5.2)])
def test_names_of_eight_methods_do_not_touch_at_the_width_of_a_column(scores: int, height: float) -> None:
    """At 3.4x2.6 the names along the axis lay on each other; eight scores fit the size that docs/gallery.md gives."""
    rows = [
        SimpleNamespace(method=method, world=world, k=4, **dict.fromkeys(LABELS, 0.5))
        for method in ("mine:shrunk", "mine:upper", "rloo", "grpo", "dr_grpo", "dr_mas", "mt_grpo", "max_rl")
        for world in ("stop-rewards", "hire-additive")
    ]
    figure = refine(draw_methods(rows, scores=list(LABELS)[:scores]), size=(3.4, height), style="serif")
    figure.draw_without_rendering()
    boxes = sorted((b.y0, b.y1) for b in (label.get_window_extent() for label in figure.axes[0].get_yticklabels()))
    assert all(after[0] > before[1] - 0.1 * (before[1] - before[0]) for before, after in itertools.pairwise(boxes))


def rows_of_two_worlds(methods: int) -> list[Any]:
    names = ("rloo", "grpo", "dr_mas", "turn_baseline", "mt_grpo", "mine:second", "mine:turnmax")
    pairs = itertools.product((*names, "opo", "gpg", "max_rl", "gspo")[:methods], ("stop-rewards", "mine:coin"))
    scores = {**dict.fromkeys(LABELS, 0.5), "answered": 1.0}  # a caption on what was refused takes room, too
    return [SimpleNamespace(method=name, world=world, k=3, **scores) for name, world in pairs]


@pytest.mark.slow
def test_markers_of_two_worlds_do_not_cover_each_other_at_the_width_of_a_column() -> None:
    """Labels took half of 3.4x2.6, and the markers of seven methods lay on each other."""
    figure = refine(draw_methods(rows_of_two_worlds(7)), size=(3.4, 2.6), style="serif")
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_window_extent().height > 0.4 * figure.bbox.height
        first, second = axes.lines
        places = [axes.transData.transform(line.get_xydata())[0, 1] for line in (first, second)]
        assert abs(places[0] - places[1]) * 72 / figure.dpi >= first.get_markersize()


@pytest.mark.slow
def test_a_size_at_which_markers_would_cover_each_other_is_refused() -> None:
    with pytest.raises(CreditError, match=r"size is 3\.4x2\.2 inches, which leaves no room; expected a larger size"):
        refine(draw_methods(rows_of_two_worlds(11)), size=(3.4, 2.2), style="serif")


@pytest.mark.slow
@pytest.mark.parametrize(("scores", "height"), [(["bias", "relative", "rank"], 4.2), (list(LABELS)[:7], 9.0)])
def test_labels_take_few_lines_at_the_width_of_a_column(scores: list[str], height: float) -> None:
    """Labels of nine methods had up to eight lines of a word each below four panels of half an inch in a row."""
    names = ("rloo", "grpo", "dr_grpo", "gae", "critic", "coma", "opo", "remax", "turn_baseline")
    found = dict.fromkeys(LABELS, 0.5)
    rows: list[Any] = [SimpleNamespace(method=name, world=world, k=3, **found) for name in names for world in "ab"]
    figure = refine(draw_methods(rows, scores=scores), size=(3.4, height))
    figure.draw_without_rendering()
    assert all(axes.get_xlabel().count("\n") < narrow.LINES for axes in figure.axes)
    boxes = [axes.get_window_extent() for axes in figure.axes]
    assert min(box.height for box in boxes) > 1.5 * figure.dpi and min(box.width for box in boxes) > 0.6 * figure.dpi
    for axes, box in zip(figure.axes, boxes, strict=True):  # the first of a row has the names
        first = box.x0 == min(other.x0 for other in boxes if abs(other.y0 - box.y0) < 1)
        assert any(tick.label1.get_visible() for tick in axes.yaxis.get_major_ticks()) == first


def test_closed_forms_lie_above_the_lines_of_schemes_without_one() -> None:
    """The legend had a closed form that lines and markers of other schemes hid."""
    length = np.array([10, 100])
    form = Curve("rloo", length, np.array([0.3, 0.1]), theory=np.array([0.3, 0.1]))
    lines = draw_snr([form, Curve("mine:own", length, np.array([0.3, 0.1]))]).axes[0].get_lines()
    dashed = [line.get_zorder() for line in lines if line.get_linestyle() == "--"]
    joining = [line.get_zorder() for line in lines if line.get_linestyle() == "-"]
    assert len(dashed) == len(joining) == 1 and dashed[0] > joining[0]


def test_each_curve_that_hides_another_is_named_and_dashes_show_both() -> None:
    """Of two own methods with one line the second hid the first without a word; another panel had both on `rloo`."""
    report_curves = [
        Curve(name, np.array([10, 30]), np.array([at, at / 2]), panel=panel)
        for panel, of in {"groups of 2": (0.3, 0.3, 0.3), "groups of 4": (0.3, 0.2, 0.2)}.items()
        for name, at in zip(("rloo", "mine:a", "mine:b"), of, strict=True)
    ]
    assert _lying(report_curves) == [
        "drawn as one in groups of 2: rloo, mine:a, mine:b", "drawn as one in groups of 4: mine:a, mine:b",
    ]  # fmt: skip
    for axes in draw_snr(report_curves).axes:
        lines = [line for line in axes.get_lines() if line.get_marker() == "None"]
        assert len({str(vars(line)["_unscaled_dash_pattern"]) for line in lines}) == len(lines) == 3


def test_no_two_schemes_look_alike_and_each_looks_the_same_in_all_panels() -> None:
    """Of twelve curves `dr_mas, groups of 16` and `rloo, groups of 4` had one colour and marker."""
    length = np.array([10, 30])
    drawn = [
        Curve(f"scheme {scheme}", length, np.array([0.3, 0.1]), panel=f"groups of {group}")
        for scheme in range(12)
        for group in (4, 8, 16)
    ]
    figure = draw_snr(drawn)
    looks = [
        [(line.get_color(), line.get_marker()) for line in axes.get_lines() if line.get_marker() != "None"]
        for axes in figure.axes
    ]
    assert len(set(looks[0])) == 12 and looks[0] == looks[1] == looks[2]
    assert len(figure.legends[0].get_texts()) == 12
