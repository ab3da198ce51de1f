"""The last touches of pictures: size, title, type and resolution, and the names of own methods."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.bench.given_values import GIVEN_VALUES
from credit.cli import cli
from credit.cli.benchmarks import bench_train
from credit.plot import draw_methods
from credit.plot.finishing import SERIF
from credit.plot.snr_curves import Curve, draw_snr
from credit.plot.training_curves import draw_training
from graphs.errors import CreditError

pytest.importorskip("matplotlib")


@pytest.mark.study
def test_size_title_and_type_of_any_picture_can_be_chosen(tmp_path: Path) -> None:
    graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    results = {"rloo": credit.rloo(graph, reward), "mine:best": credit.grpo(graph, reward)}
    figure = credit.plot.draw_comparison(credit.compare(rows.traces, results))
    labels = {text.get_text() for axes in figure.axes for text in axes.get_yticklabels()}
    assert "best" in labels and "mine:best" not in labels
    title, size = figure.axes[0].get_title(), figure.axes[1].yaxis.get_ticklabels()[0].get_fontsize()
    credit.plot.refine(figure, size=(5, 2), title="A $title", style="talk")
    assert figure.get_size_inches().tolist() == [5, 2] and figure.get_suptitle() == "A $title"
    assert figure.axes[0].get_title() == title
    assert figure.axes[1].yaxis.get_ticklabels()[0].get_fontsize() == pytest.approx(1.4 * size)
    figure.savefig(tmp_path / "talk.png", dpi=30)

    lanes = credit.plot.draw_trace(rows.traces)
    assert credit.plot.refine(lanes, title="", style="serif").axes[0].get_title(loc="left") == ""
    assert lanes.axes[0].xaxis.get_label().get_fontfamily() == SERIF
    wrong: list[dict[str, Any]] = [{"size": (0, 2)}, {"style": "bold"}]
    for options in wrong:
        with pytest.raises(CreditError, match="expected"):
            credit.plot.refine(lanes, **options)


@pytest.mark.slow
def test_the_command_writes_pictures_as_asked(tmp_path: Path) -> None:
    from matplotlib.image import imread

    log, path = tmp_path / "x.csv", tmp_path / "x.png"
    log.write_text("trace,group,reward\na,q,1\nb,q,0\n")
    call = ["show", str(log), "--columns", "trace=trace,group=group,reward=reward", "--plot", str(path)]
    result = CliRunner().invoke(cli, [*call, "--title", "one", "--size", "4x2", "--dpi", "50"])
    assert result.exit_code == 0, result.output
    assert imread(path).shape[:2] == (100, 200)
    for wrong in ("4", "0x2", "axb"):
        result = CliRunner().invoke(cli, [*call, "--size", wrong])
        assert result.exit_code == 1 and "expected WIDTHxHEIGHT in inches" in result.stderr


def inside(figure: Any) -> list[str]:
    """Texts that reach beyond the picture, and labels of panels that lie on each other."""
    figure.draw_without_rendering()
    whole, shown = figure.bbox, [text for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown if text.get_text()]
    beyond = [name for name, box in boxes if box.x0 < -3 or box.x1 > whole.x1 + 3 or box.y0 < -3 or box.y1 > whole.y1]
    return beyond + [a for i, (a, one) in enumerate(boxes) for _, other in boxes[:i] if one.overlaps(other)]


@pytest.mark.study
def test_curves_keep_their_panel_at_the_width_of_a_column() -> None:
    length = np.array([10, 100])
    names = ("shared, leave one out", "critic, fixed error", "mine:of_my_own")
    figure = draw_snr([Curve(name, length, 1 / length, theory=1 / length, slope=-1.0) for name in names])
    credit.plot.refine(figure, size=(3.4, 2.5), style="serif")
    assert inside(figure) == []
    panel, (legend,) = figure.axes[0].get_window_extent(), figure.legends
    assert panel.width > 0.6 * figure.bbox.width  # the legend took all of it
    assert legend.get_window_extent().y1 < panel.y0
    assert len(legend.get_texts()) == 4 and legend.get_texts()[0].get_fontfamily() == SERIF


@pytest.mark.study
def test_dots_keep_their_labels_apart_at_the_width_of_a_column() -> None:
    rows: list[Any] = [
        SimpleNamespace(method=method, world=world, k=3, bias=bias, relative=1 + 9 * bias, rank=0.5, answered=1.0)
        for method, bias in (("rloo", 0.0), ("gae, lambda 1, wrong values", 0.2), ("grpo", 0.4))
        for world in ("stop-rewards", "relay-and")
    ]
    figure = credit.plot.refine(draw_methods(rows), size=(3.4, 2.5), title="")
    assert inside(figure) == []
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        assert not any(one.x1 > other.x0 for one, other in itertools.pairwise(boxes))


@pytest.mark.study
def test_panels_without_room_side_by_side_stand_below_each_other() -> None:
    graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    names = ["rloo", "grpo", "dr_grpo", "mine:a_method_of_my_own"]
    compared = credit.compare(rows.traces, {name: credit.rloo(graph, reward) for name in names})
    figure = credit.plot.refine(credit.plot.draw_comparison(compared), size=(3.0, 7))
    matrix, roles, kinds = (axes.get_window_extent() for axes in figure.axes)
    assert matrix.y0 > roles.y1 > roles.y0 > kinds.y1
    with pytest.raises(CreditError, match=r"size is 0.5x0.5 inches, which leaves no room; expected a larger size"):
        credit.plot.refine(credit.plot.draw_comparison(compared), size=(0.5, 0.5))


@pytest.mark.study
def test_a_refused_size_comes_with_one_that_fits() -> None:
    graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    compared = credit.compare(rows.traces, {name: credit.rloo(graph, reward) for name in ("rloo", "dr_mas", "grpo")})
    with pytest.raises(CreditError, match=r"such as [0-9.]+x[0-9.]+") as refused:
        credit.plot.refine(credit.plot.draw_comparison(compared), size=(2.0, 1.5))
    width, _, height = str(refused.value).rpartition(" ")[2].partition("x")
    credit.plot.refine(credit.plot.draw_comparison(compared), size=(float(width), float(height)))


def test_learning_curves_differ_without_colour_and_no_label_lies_on_the_legend() -> None:
    """ "budget spent" stood over a legend entry at 7x2.8, and equal curves hid each other."""
    curve = {"task": "bottleneck", "start": 0.0, "optimum": 1.0, "curve": np.linspace(0, 1, 31).tolist()}
    names = ("rloo", "mine:second", "mine:middle")
    figure = draw_training([curve | {"signal": name, "seed": 0} for name in names], group_size=4, values="values: true")
    lines = figure.axes[0].lines
    for look in (
        lambda line: line.get_marker(),
        lambda line: str(line._unscaled_dash_pattern),
        lambda line: line.get_markevery(),
    ):
        assert len({look(line) for line in lines}) == 3
    credit.plot.refine(figure, size=(7, 2.8), style="serif")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "groups of 4; one seed; values: true"
    assert [text.get_text() for text in legend.get_texts()] == ["rloo", "second", "middle"]
    assert not legend.get_window_extent().overlaps(figure.axes[0].xaxis.label.get_window_extent())


def test_a_legend_below_leaves_the_panel_more_room_than_it_takes() -> None:
    length = np.array([10.0, 100.0])
    names = [f"{name}, groups of {k}" for name in ("rloo", "gae", "second") for k in (4, 8)]
    figure = draw_snr([Curve(name, length, (i + 1) / length, theory=(i + 1) / length, slope=-1.0)
                       for i, name in enumerate(names)])  # fmt: skip
    credit.plot.refine(figure, size=(3.4, 2.8))
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().height < 0.6 * figure.axes[0].get_window_extent().height


def test_curves_and_bands_are_the_medians_and_intervals_of_the_table() -> None:
    """Curves were means ± one standard error, beside a table of medians with 95 % intervals."""
    row = {"task": "bottleneck", "signal": "rloo", "start": 0.0, "optimum": 1.0}
    ends = [0.1, 0.2, 0.3, 0.8, 1.0]
    rows = [row | {"seed": seed, "curve": [0.0, end]} for seed, end in enumerate(ends)]
    for seeds, words in (
        (5, "medians of 5 seeds, bands: their 94 % intervals"),
        (4, "medians of 4 seeds"),
        (1, "one seed"),
    ):
        figure = draw_training(rows[:seeds])
        axes = figure.axes[0]
        assert figure.legends[0].get_title().get_text() == words
        assert axes.lines[0].get_ydata().tolist() == [0.0, np.median(ends[:seeds])]
        band = np.concatenate([path.vertices for path in axes.collections[0].get_paths()] or [np.empty((0, 2))])
        assert set(band[band[:, 0] == 1, 1]) == ({0.1, 1.0} if seeds == 5 else set())


def test_a_training_figure_states_values_where_a_method_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rloo` and `grpo` alone stood beneath "values: a critic's ..."."""
    curve = {"task": "bernoulli", "start": 0.0, "optimum": 1.0, "curve": [0.0, 0.5, 1.0], "seed": 0}

    def stated(*signals: str) -> str:
        figures: list[Any] = []
        monkeypatch.setattr(bench_train, "save_picture", lambda figure, plot: figures.append(figure))
        bench_train._draw([curve | {"signal": name} for name in signals], Path("curves.svg"), 4)
        (legend,) = figures[0].legends
        return " ".join(legend.get_title().get_text().split())

    assert stated("rloo", "grpo", "credit:dr_grpo") == "groups of 4; one seed"
    assert stated("rloo", "gae") == stated("rloo", "gae_exact") == f"groups of 4; one seed; {GIVEN_VALUES['train']}"


def test_each_line_of_panels_says_what_its_axis_is() -> None:
    """The first of seventeen panels alone had a label."""
    row = {"signal": "rloo", "start": 0.0, "optimum": 1.0, "seed": 0, "curve": [0.0, 1.0]}
    figure = draw_training([row | {"task": f"task {i}"} for i in range(5)], columns=2)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert [bool(label) for label in labels] == [True, False, True, False, True, False]
    assert labels[0] == "way to the best policy\n[share]"
