"""The last touches of pictures: size, title, type and resolution, and the names of own methods."""

from __future__ import annotations

import copy
import io
import itertools
import json
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.image import imread

import credit
from credit.bench.bias import Row
from credit.bench.given_values import GIVEN_VALUES
from credit.bench.training.training_comparison import cells, plain
from credit.bench.training.training_loop import TrainingSettings
from credit.bench.training.training_runs import run_training
from credit.cli import cli
from credit.cli.benchmarks import bench_train
from credit.cli.shared.outputs import LOOK, check_room, save_picture
from credit.plot import draw_methods
from credit.plot.canvas import new_figure
from credit.plot.finishing import SERIF, write_figure
from credit.plot.snr_curves import Curve, draw_snr
from credit.plot.training_curves import OWN_RATES, RATES, draw_training
from graphs.errors import CreditError, MissingExtraError

pytest.importorskip("matplotlib")


@pytest.mark.study
def test_size_title_and_type_of_any_picture_can_be_chosen(tmp_path: Path) -> None:
    graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    results = {"rloo": credit.rloo(graph, reward), "mine:best": credit.grpo(graph, reward)}
    figure = credit.plot.draw_comparison(credit.compare(rows.traces, results))
    labels = {text.get_text() for axes in figure.axes for text in axes.get_yticklabels()}
    assert "mine:best" in labels, "the module tells it from a method of the library"
    title, size = figure.axes[0].get_title(), figure.axes[1].yaxis.get_ticklabels()[0].get_fontsize()
    credit.plot.refine(figure, size=(6, 3), title="A $title", style="talk")
    assert figure.get_size_inches().tolist() == [6, 3] and figure.get_suptitle() == "A $title"
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
        for world in ("hire-additive", "spawn-and", "delegate-luck", "stop-rewards", "relay-and")
    ]
    for names in (("rloo", "gae, lambda 1, wrong values", "grpo"), ("rloo", "gae", "grpo")):
        named = [SimpleNamespace(**vars(row) | {"method": names[number // 5]}) for number, row in enumerate(rows)]
        figure = credit.plot.refine(draw_methods(named), size=(3.4, 2.5), title="")
        figure.draw_without_rendering()
        assert inside(figure) == []
        for axes in figure.axes:
            low, high = sorted(axes.get_xlim())
            seen = [tick.label1 for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
            boxes = [label.get_window_extent() for label in seen if label.get_text()]
            assert not any(one.x1 > other.x0 for one, other in itertools.pairwise(boxes))
        below = [axes.xaxis.label.get_window_extent() for axes in figure.axes]
        assert not any(one.x1 > other.x0 for one, other in itertools.pairwise(below)), "labels lay on each other"


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


@pytest.mark.slow
def test_a_size_with_room_has_room_in_whatever_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three methods of a talk fitted 5x2 inches, and neither 5x2.5 nor 5x5."""
    agents = [f"worker-{i % 3}" for i in range(20)]
    graph, reward, rows = credit.from_columns(
        group=["q"] * 20, trace=[str(i // 2) for i in range(20)], agent=agents, reward=[i // 2 % 2 for i in range(20)]
    )
    monkeypatch.setattr("credit.plot.narrow._size_with_room", lambda *_: None)  # which takes its time
    results = dict.fromkeys(("rloo", "grpo", "dr_mas"), credit.rloo(graph, reward))
    figure = credit.plot.draw_comparison(credit.compare(rows.traces, results))
    fits = {}
    for size in itertools.product((3.4, 5, 7), (2, 3, 7)):
        tried = copy.deepcopy(figure)
        try:
            credit.plot.refine(tried, size=size, style="talk")
            fits[size] = True
        except CreditError:
            fits[size] = False
            continue
        tried.draw_without_rendering()
        keyed = [axes for axes in tried.axes if axes.get_legend() is not None]
        assert len(keyed) == 2
        for axes in keyed:  # the key lay on the numbers of a low panel
            numbers = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
            assert numbers and not any(box.overlaps(axes.get_legend().get_window_extent()) for box in numbers), size
    assert fits[7, 2] and fits[5, 3] and fits[3.4, 7] and not fits[3.4, 2]
    for one, other in itertools.combinations(fits, 2):
        assert fits[other] >= fits[one] or one[0] > other[0] or one[1] > other[1], (one, other)


@pytest.mark.study
def test_a_refused_size_comes_with_one_that_fits() -> None:
    graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    compared = credit.compare(rows.traces, {name: credit.rloo(graph, reward) for name in ("rloo", "dr_mas", "grpo")})
    with pytest.raises(CreditError, match=r"such as [0-9.]+x[0-9.]+") as refused:
        credit.plot.refine(credit.plot.draw_comparison(compared), size=(2.0, 1.5))
    width, _, height = str(refused.value).rpartition(" ")[2].partition("x")
    credit.plot.refine(credit.plot.draw_comparison(compared), size=(float(width), float(height)))


@pytest.mark.slow
def test_what_was_measured_is_drawn_larger_where_its_numbers_have_no_room(tmp_path: Path) -> None:
    """Stand-ins had room at 3.3x8.8, and after minutes of measuring the picture of real numbers was refused."""
    from matplotlib.image import imread

    few, many = "a", "a longer name of a method"
    with click.Context(click.Command("bench")) as context:
        context.meta[LOOK] = {"size": (3.0, 1.2), "title": None, "style": "plain", "dpi": 50}
        check_room(lambda: _curves(few))
        save_picture(_curves(many), tmp_path / "x.png")
    assert imread(tmp_path / "x.png").shape[0] > 50 * 1.2
    with pytest.raises(CreditError, match="leaves no room"):
        credit.plot.refine(_curves(many), size=(3.0, 1.2))


def test_a_size_without_room_is_named_before_a_better_one_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`bench train --size 7x2.6` took 51 s to say so, of which the look for 7x6.5 took all but one."""
    told = "size is 3x1.2 inches, which leaves no room; looking for one that has room"

    def looked(*_: Any) -> None:
        assert told in capsys.readouterr().err

    monkeypatch.setattr("credit.plot.narrow._size_with_room", looked)
    for draws in (check_room, lambda draw: save_picture(draw(), tmp_path / "x.png")):
        with click.Context(click.Command("bench")) as context:
            context.meta[LOOK] = {"size": (3.0, 1.2), "title": None, "style": "plain", "dpi": 50}
            with pytest.raises(CreditError, match="expected a larger size, or fewer panels"):
                draws(lambda: _curves("a longer name of a method"))


def test_nothing_is_drawn_to_see_whether_a_picture_of_no_size_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `--plot` drew its picture twice."""
    with click.Context(click.Command("bench")) as context:
        context.meta[LOOK] = {"size": None, "title": "a title", "style": "serif", "dpi": 50}
        check_room(lambda: pytest.fail("drawn"))
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(MissingExtraError):
            check_room(lambda: pytest.fail("drawn"))


def _curves(name: str) -> Any:
    lengths = np.array([2.0, 10.0, 100.0])
    names = [f"{name} {number}" for number in range(10 if len(name) > 9 else 1)]
    return credit.plot.draw_snr([credit.plot.Curve(name, lengths, 1 / lengths) for name in names])


@pytest.mark.slow
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
    title = legend.get_title().get_text()
    assert title == "groups of 4; one seed; values: true; drawn as one: rloo, mine:second, mine:middle"
    assert [text.get_text() for text in legend.get_texts()] == ["rloo", "mine:second", "mine:middle"]
    assert not legend.get_window_extent().overlaps(figure.axes[0].xaxis.label.get_window_extent())


@pytest.mark.slow
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
        (5, "medians of 5 seeds, 94 % intervals"),
        (4, "medians of 4 seeds"),
        (1, "one seed"),
    ):
        figure = draw_training(rows[:seeds])
        axes = figure.axes[0]
        assert figure.legends[0].get_title().get_text() == words
        assert axes.lines[0].get_ydata().tolist() == [0.0, np.median(ends[:seeds])]
        band = np.concatenate([path.vertices for path in axes.collections[0].get_paths()] or [np.empty((0, 2))])
        assert set(band[band[:, 0] == 1, 1]) == ({0.1, 1.0} if seeds == 5 else set())


@pytest.mark.parametrize("lengths", [[(5, 6)], pytest.param([(12, 13), (25, 26), (60, 31)], marks=pytest.mark.slow)])
def test_a_learning_curve_has_its_points_at_the_updates(lengths: list[tuple[int, int]]) -> None:
    """Policies of 5, 12 or 25 steps were held on a grid of 31 points, a staircase."""
    for steps, points in lengths:
        settings = TrainingSettings(steps=steps, groups=1, group_size=2)
        rows = run_training(["rloo"], ["bottleneck"], 2, settings, learning_rates=[0.4])
        line = draw_training(rows).axes[0].lines[0]
        np.testing.assert_allclose(line.get_xdata(), np.linspace(0, 1, points), atol=1e-5)
    row = {"task": "t", "signal": "rloo", "start": 0.0, "optimum": 2.0}
    slow = {"seed": 0, "curve": [0.0, 0.0, 1.0, 1.0, 2.0], "places": [0.0, 0.0, 0.5, 0.5, 1.0]}
    soon = {"seed": 1, "curve": [0.0, 2.0, 2.0, 2.0, 2.0], "places": [0.0, 0.25, 0.25, 0.25, 0.25]}
    line = draw_training([row | slow, row | soon]).axes[0].lines[0]
    assert line.get_ydata().tolist() == [0.0, (0.25 + 1) / 2, (0.5 + 1) / 2, (0.75 + 1) / 2, 1.0]


def test_of_many_curves_the_first_and_your_own_have_bands() -> None:
    """Bands of six methods mixed to one grey."""
    row = {"task": "bottleneck", "start": 0.0, "optimum": 1.0}
    rows = [row | {"signal": signal, "seed": seed, "curve": [0.0, 0.1 * seed]}
            for signal in ("rloo", "grpo", "dr_mas", "mine:own") for seed in range(5)]  # fmt: skip
    figure = draw_training(rows)
    title = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert title.split(";")[0] == "medians of 5 seeds, 94 % intervals of rloo, mine:own"
    assert len(figure.axes[0].collections) == 2
    assert len(draw_training(rows[:15]).axes[0].collections) == 3
    shown = {"rloo": "rloo", "grpo": "grpo", "dr_mas": "dr_mas", "mine:own": "Ours"}  # as a file has the names
    written = [row | {"signal": shown[row["signal"]], "function": "mine:own" * (":" in row["signal"])} for row in rows]
    assert "intervals of rloo, Ours" in draw_training(written).legends[0].get_title().get_text().replace("\n", " ")


def test_a_figure_of_a_file_has_what_its_run_stated_and_common_rates(tmp_path: Path) -> None:
    """The size of groups, the rates that were tried and the panels at common rates were gone unless passed again."""
    output, rates = tmp_path / "runs.json", [0.2, 0.4]
    settings = TrainingSettings(steps=2, groups=1, group_size=3)
    rows = run_training(["rloo", "gae"], ["bottleneck"], 2, settings, learning_rates=rates, common_rates=[0.4, 0.8],
                        output=output)  # fmt: skip
    read = json.loads(output.read_text())
    first, again = draw_training(rows, group_size=3, rates=rates), draw_training(read)
    for look in (
        lambda figure: figure.legends[0].get_title().get_text(),
        lambda figure: [text.get_text() for text in figure.legends[0].get_texts()],
        lambda figure: [axes.get_title() for axes in figure.axes],
    ):
        assert look(first) == look(again)
    compared = ([plain(cell._asdict()) for cell in cells(found)] for found in (read, rows))
    assert len(again.axes) == 3 and next(compared) == next(compared)


def test_a_figure_of_an_unfinished_run_says_what_is_missing() -> None:
    """It ended with an IndexError after warnings of numpy."""
    row = {"start": 0.0, "optimum": 1.0, "learning_rate": 0.4}
    rows = [row | {"task": task, "signal": signal, "seed": seed, "curve": [0.0, 0.1 * seed]}
            for task in ("a", "b") for signal in ("rloo", "grpo", "dr_mas") for seed in range(8)]  # fmt: skip
    cut = draw_training(rows[:30], rates=(0.2, 0.4, 0.6))  # rloo on b has six seeds
    title = cut.legends[0].get_title().get_text().replace("\n", " ")
    assert "medians of 6 to 8 seeds, 95 % intervals; not trained on 1 task: grpo, dr_mas" in title
    assert [len(axes.lines) for axes in cut.axes] == [3, 1]
    assert [text.get_text() for text in cut.legends[0].get_texts()] == ["rloo", "grpo", "dr_mas"]
    with pytest.raises(CreditError, match=r"rows has no run of 'gae'. There are 3: rloo"):
        draw_training(rows, signals=["rloo", "gae"])


def test_a_training_figure_states_values_where_a_method_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rloo` and `grpo` alone stood beneath "values: a critic's ..."."""
    curve = {"task": "bernoulli", "start": 0.0, "optimum": 1.0, "curve": [0.0, 0.5, 1.0], "seed": 0}

    def stated(*signals: str) -> str:
        figures: list[Any] = []
        monkeypatch.setattr(bench_train, "save_picture", lambda figure, plot: figures.append(figure))
        places = ((name, [0.0, 0.1 * i, 1.0]) for i, name in enumerate(signals))
        bench_train._draw([curve | {"signal": name, "curve": at} for name, at in places], Path("curves.svg"), 4, ())
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


def test_a_training_figure_says_which_curves_are_one_and_which_rates_were_at_the_edge() -> None:
    """`dr_grpo` lay on `rloo` without a word, and "rate at edge" stood in the table alone."""
    row = {"start": 0.0, "optimum": 1.0, "seed": 0}
    curves = {("a", "rloo"): 0.5, ("a", "dr_grpo"): 0.5, ("a", "grpo"): 0.7}
    curves |= {("b", "rloo"): 0.5, ("b", "dr_grpo"): 0.6, ("b", "grpo"): 0.8}
    rows = [
        row
        | {"task": task, "signal": signal, "curve": [0.0, at, 1.0], "learning_rate": 0.4 if signal == "grpo" else 0.2}
        for (task, signal), at in curves.items()
    ]
    (legend,) = draw_training(rows, rates=(0.1, 0.2, 0.4)).legends
    title = " ".join(legend.get_title().get_text().split())
    assert title == f"{OWN_RATES}; one seed; drawn as one on a: rloo, dr_grpo; {'; '.join(RATES.values())}"
    common = [row | {"learning_rate": 0.2} for row in rows]  # the figure did not say that all had one
    both = draw_training([row | {"at_rates": {0.2: row}} for row in rows]).axes
    titles = ["a, best rates", "b, best rates", "a, all at 0.2", "b, all at 0.2"]
    assert [axes.get_title() for axes in both] == titles and both[0].get_subplotspec().get_gridspec().ncols == 2
    assert draw_training(common).legends[0].get_title().get_text().startswith("learning rate 0.2;")
    assert [text.get_text() for text in legend.get_texts()] == [
        "rloo",
        "dr_grpo",
        "grpo †‡",
    ]  # † was in the table alone
    inner = draw_training(rows, rates=(0.1, 0.2, 0.4, 0.8)).legends[0]
    assert [text.get_text() for text in inner.get_texts()] == ["rloo", "dr_grpo", "grpo †"]
    of_one = draw_training([r for r in rows if r["task"] == "a"], rates=(0.4,)).legends[0]
    assert of_one.get_title().get_text() == f"{OWN_RATES}; one seed; drawn as one: rloo, dr_grpo"


@pytest.mark.study
def test_a_matrix_too_small_for_numbers_has_a_bar_of_colours() -> None:
    """At the width of a column the numbers went, and nothing said what a colour was; none looked as 0 does."""
    graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])

    def drawn(methods: int, size: tuple[float, float]) -> tuple[set[str], list[str]]:
        compared = credit.compare(rows.traces, {f"m:{i}": credit.rloo(graph, reward) for i in range(methods)})
        figure = credit.plot.refine(credit.plot.draw_comparison(compared), size=size)
        figure.draw_without_rendering()
        shown = {text.get_text() for text in figure.axes[0].texts if text.get_visible()}
        return shown, [label.get_text() for axes in figure.axes[3:] for label in axes.get_yticklabels()]

    assert drawn(8, (3.4, 5)) == ({"–"}, ["−1", "0", "1"])
    assert drawn(2, (11, 4)) == ({"1.00", "–"}, [])


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_figure_gives_the_same_bytes(kind: str) -> None:
    """Ids of shapes were drawn anew, so that each picture of a repository changed with each run."""
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        _, _, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
        write_figure(credit.plot.draw_trace(rows.traces), file, kind)
    assert files[0].getvalue() == files[1].getvalue() != b""


@pytest.mark.slow
@pytest.mark.parametrize(("most", "panels"), [(0.3, 3), (0.3, 8), (1.2, 8)])
def test_a_column_of_panels_has_three_numbers_along_each_and_one_size_of_type(most: float, panels: int) -> None:
    """The axis of the bias had 0 and 0.1, or 0 and 1; of eight labels, four were smaller than the others."""
    scores = ("bias", "cosine", "variance", "relative", "error", "rank", "sign", "answered")
    rows = [
        Row(name, world, 2, bias=at * most, cosine=1 - at / 2, variance=2 + 9 * at, relative=2 + 9 * at,
            error=1 + 6 * at, rank=1 - at / 3, sign=0.7, answered=1.0)
        for world in ("relay-and", "stop-rewards") for name, at in (("rloo", 0.0), ("turn_baseline", 1.0))
    ]  # fmt: skip
    figure = credit.plot.refine(draw_methods(rows, scores=scores[:panels]), size=(3.4, 0.65 * panels))
    figure.draw_without_rendering()
    for axes in figure.axes:
        low, high = axes.get_xlim()
        seen = [tick.label1 for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes = [label.get_window_extent() for label in seen if label.get_text()]
        assert len(boxes) >= 3, (axes.get_xlabel(), [label.get_text() for label in seen])
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert len({axes.xaxis.label.get_fontsize() for axes in figure.axes}) == 1
    assert len({axes.get_xticklabels()[0].get_fontsize() for axes in figure.axes}) == 1


@pytest.mark.slow
def test_the_note_of_a_training_figure_takes_little_of_a_column() -> None:
    """Note and key of seven methods took a third of a picture of the width of a column."""
    signals = ("rloo", "mine:winsor", "mine:turn_median", "grpo", "dr_grpo", "dr_mas", "turn_baseline")
    rows = [
        {"task": task, "signal": name, "seed": seed, "start": 0.0, "optimum": 1.0, "learning_rate": 0.4,
         "curve": [0.0, 0.5 + 0.1 * (name in ("grpo", "dr_mas")) + 0.05 * (name[:4] == "mine"), 1.0]}
        for task in ("heavy", "mine:pair", "bottleneck") for name in signals for seed in range(8)
    ]  # fmt: skip
    figure = credit.plot.refine(draw_training(rows, group_size=4, rates=(0.1, 0.4)), size=(3.4, 4.0), style="serif")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_window_extent().height < 0.27 * figure.bbox.height
    title = " ".join(legend.get_title().get_text().split())
    assert title == (
        f"groups of 4; {OWN_RATES}; medians of 8 seeds, 95 % intervals of rloo, mine:winsor; drawn as one: "
        "rloo, dr_grpo, turn_baseline / mine:winsor, mine:turn_median / grpo, dr_mas; "
        "‡ rate at edge on some task"
    )


def test_letters_stand_where_they_belong_at_the_few_dots_of_a_page() -> None:
    """With `%matplotlib inline` words fell apart: "variance forequal runs"."""
    figure = new_figure(4.0, 0.5)
    figure.text(0.1, 0.5, "variance for equal runs: shrinking lowers it", fontsize=8, fontfamily="STIXGeneral")

    def width(dpi: int) -> float:
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=dpi)
        file.seek(0)
        inked = np.flatnonzero((imread(file)[..., :3] < 0.9).any(axis=(0, 2)))
        return (inked[-1] - inked[0] + 1) / dpi

    assert width(100) == pytest.approx(width(800), rel=0.01)


def test_a_notebook_shows_every_figure_at_the_end_of_a_cell() -> None:
    """It showed `<Figure size …>` unless `%matplotlib inline` came before."""
    formatters = pytest.importorskip("IPython.core.formatters")
    shown, about = formatters.DisplayFormatter().format(new_figure(3, 2))
    width, height = struct.unpack(">II", shown["image/png"][16:24])
    assert (width, height) == (600, 400)  # it was grainy at half of it
    assert about["image/png"] == {"width": 300, "height": 200}
