"""Laws of figures whose size nobody chose: whatever is drawn and stated, panels have room and nothing lies on them."""

from __future__ import annotations

import copy
import io
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import credit
from credit.bench.bias import Row
from credit.bench.refusals import Absent
from credit.bench.snr import Point, Report, fit
from credit.plot import Curve, draw_calibration, draw_comparison, draw_methods, draw_snr, draw_snr_report, draw_truth
from credit.plot.canvas import SHARE, grow, lay_out, new_figure
from credit.plot.finishing import refine, write_figure
from credit.plot.shown_figure import LETTERS
from credit.plot.training_curves import draw_training
from graphs.errors import CreditError

NAMES = ("rloo", "grpo", "dr_grpo", "mt_grpo", "c3", "coma", "dr_mas", "gae", "module_of_mine:a_long_estimator")
ABSENT = [
    Absent(
        f"package.of_mine:estimator_{i}", "every task", f"needs {what}, which the tasks do not have, " + 3 * "and so "
    )
    for i, what in enumerate(("anchor", "stage", "greedy_reward", "propensity", "more"))
]


def names_of(methods: int) -> list[str]:
    return [f"{NAMES[i % len(NAMES)]}{i // len(NAMES) or ''}" for i in range(methods)]


def training(methods: int, places: int, absent: list[Absent]) -> Any:
    rows = [
        {"task": f"task {place}", "signal": name, "seed": seed, "start": 0.0, "optimum": 1.0, "learning_rate": 0.4,
         "curve": [0.0, 0.5 + i % 3 / 10, 1.0], "answered": 0.5}
        for place in range(places) for i, name in enumerate(names_of(methods)) for seed in range(5)
    ]  # fmt: skip
    return draw_training(rows, group_size=6, rates=(0.1, 0.4), values="values: of a critic", absent=absent)


def bias(methods: int, places: int, absent: list[Absent]) -> Any:
    rows = [Row(name, f"world-{place}", 3, 0.2, 0.9, 1.5, 2.0, 0.5, 0.7, 0.6, 0.5)
            for place in range(places) for name in names_of(methods)]  # fmt: skip
    return draw_methods(rows, values="values: the true ones", absent=absent, title="a title")


def truth(methods: int, places: int, absent: list[Absent]) -> Any:
    ends = {f"{field}{end}": 0.5 for field in ("slope", "correlation") for end in ("", "_low", "_high")}
    of_all: dict[str, Any] = {"answered": 0.5, "group_size": 6, "groups": 40, **ends}
    rows: list[Any] = [SimpleNamespace(method=name, world=f"world-{place}", **of_all)
                       for place in range(places) for name in names_of(methods)]  # fmt: skip
    return draw_truth(rows, absent=absent)


def snr(methods: int, places: int, absent: list[Absent]) -> Any:
    points = [
        [Point(name, name, length, 4 + place, (i + 1) / length, 0.5 / length, 30 / length, 1.0, 1.0, 1.0, 1.0, 2.0, 2,
               "full", 0.0, 0.5, "") for length in (10, 100)]
        for place in range(places) for i, name in enumerate(names_of(methods))
    ]  # fmt: skip
    fits = [line for curve in points if (line := fit(curve)) is not None]
    refused: Any = [SimpleNamespace(scheme=one.method, why=one.why) for one in absent]
    return draw_snr_report(Report([point for curve in points for point in curve], fits, {}, refused))


def calibration(methods: int, places: int, absent: list[Absent]) -> Any:
    predicted = np.linspace(0, 1, 20)
    return draw_calibration({name: (predicted, predicted) for name in names_of(methods)})


def comparison(methods: int, places: int, absent: list[Absent]) -> Any:
    graph, reward, rows = credit.from_columns(
        group=["q"] * 20, trace=[str(i // 2) for i in range(20)], agent=[f"long name {i % 9}" for i in range(20)],
        reward=[float(i // 2 % 2) for i in range(20)],
    )  # fmt: skip
    of = credit.rloo(graph, reward)
    return draw_comparison(credit.compare(rows.traces, dict.fromkeys(names_of(max(2, methods)), of)))


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("draw", [training, bias, truth, snr, calibration, comparison])
@pytest.mark.parametrize(("methods", "places"), [(7, 1), (1, 1), (18, 3)])
@pytest.mark.parametrize("absent", [ABSENT, []], ids=["absent", "all"])
def test_panels_have_their_share_of_the_height_and_nothing_lies_on_them(
    draw: Any, methods: int, places: int, absent: list[Absent]
) -> None:
    """Of 520 pixels 85 were left to seven learning curves, and with a method left out the key lay over them."""
    figure = draw(methods, places, absent)
    figure.draw_without_rendering()
    panels = [axes.get_window_extent() for axes in figure.axes if axes.get_visible()]
    rows = np.zeros(int(figure.bbox.height) + 1, bool)
    for box in panels:
        rows[max(0, int(box.y0)) : int(box.y1) + 1] = True
    assert rows.mean() > SHARE - 0.01
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    for legend in legends:
        with rc_context(LETTERS):  # as it is drawn: other letters are higher
            box = legend.get_window_extent()
        assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1 and box.y0 >= -1 and box.y1 <= figure.bbox.y1 + 1
        inner = box.padded(-2)
        assert not any(panel.overlaps(inner) for panel in panels)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("draw", [snr, bias, training, truth, calibration, comparison])
def test_a_figure_survives_a_pickle(draw: Any) -> None:
    """Numbers along a logarithmic axis were a function without a name."""
    figures = [figure := draw(2, 1, []), pickle.loads(pickle.dumps(figure))]
    for one in figures:
        one.draw_without_rendering()
    texts = [[text.get_text() for text in one.findobj(Text)] for one in figures]
    assert texts[0] == texts[1] and len(texts[0]) > 9


def test_a_figure_that_grows_is_not_copied_and_its_panels_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies took a third of the time of drawing a figure."""
    monkeypatch.setattr(Figure, "__getstate__", lambda _: pytest.fail("copied"))
    figure = new_figure(3, 0.5)
    panel = figure.subplots()
    before = panel.get_position().bounds
    grow(figure)
    assert figure.get_figheight() > 0.5 and panel.get_position().bounds == before and panel.get_in_layout()


@pytest.mark.slow
def test_what_stands_above_learning_curves_takes_no_room_from_them() -> None:
    """Of 4.1 inches the legend of seven methods and what it says took half."""
    heights = []
    for methods, absent in ((1, []), (7, []), (7, ABSENT[:1])):
        figure = training(methods, 2, absent)
        figure.draw_without_rendering()
        heights.append(figure.axes[0].get_window_extent().height)
        assert figure.legends[0].get_window_extent().height < 0.4 * figure.bbox.height
    assert heights == pytest.approx([heights[0]] * 3, rel=0.1)


def shown(figure: Any) -> dict[str, Any]:
    """All texts of a picture but numbers along x, which are thinned or turned, by what they are."""
    figure.draw_without_rendering()
    found = {}
    for number, axes in enumerate(axes for axes in figure.axes if axes.get_visible()):
        low, high = sorted(axes.get_ylim())
        names = [tick.label1 for tick in axes.yaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        legend = axes.get_legend()
        keyed = legend.get_texts() if legend else []
        for text in (*names, axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts, *keyed):
            if text.get_visible() and text.get_text().strip():
                found[f"{number} {len(found)} {text.get_text()}"] = text
    for legend in figure.legends:
        for text in (*legend.get_texts(), legend.get_title()):
            if text.get_text():
                found[f"legend {len(found)} {text.get_text()}"] = text
    return found


SIZES = ((3.4, 2.6), (5, 3), (7, 3), (7, 5))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "methods", "size", "style"),
    [
        (training, 7, (7, 3), "talk"), (comparison, 7, (5, 3), "plain"), (snr, 4, (7, 3), "talk"),
        *(pytest.param(draw, methods, size, style, marks=pytest.mark.slow if methods > 2 else pytest.mark.study)
          for draw in (training, bias, truth, snr, comparison) for methods in (2, 7)
          for size in SIZES for style in ("plain", "talk")),
        *((draw, 7, None, "talk") for draw in (training, truth, comparison)),
    ],
)  # fmt: skip
def test_no_text_is_smaller_than_the_least_of_its_style_or_lies_on_another(
    draw: Any, methods: int, size: Any, style: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Talks of 7x3 inches had legends of 7 points, and a comparison of 5x3 inches had names of rows on each other."""
    monkeypatch.setattr("credit.plot.narrow._size_with_room", lambda *_: None)
    figure, least = draw(methods, 1, []), 6.0 if style == "plain" else 8.4
    try:
        refine(figure, size=size, style=style)
    except CreditError as refused:
        assert "leaves no room; expected a larger size" in str(refused) and size is not None
        assert size == (3.4, 2.6) or (size[0] == 5 and style == "talk") or draw is comparison, size
        return
    texts = shown(figure)
    assert all(text.get_fontsize() >= least - 1e-6 for text in texts.values()), texts
    boxes = [(name, text.get_window_extent()) for name, text in texts.items()]
    for place, (name, box) in enumerate(boxes):
        for other, another in boxes[:place]:
            across = min(box.x1, another.x1) - max(box.x0, another.x0)
            along = min(box.y1, another.y1) - max(box.y0, another.y0)
            assert across < 1 or along < 0.35 * min(box.height, another.height, figure.dpi / 6), (name, other)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("draw", [training, bias, snr, truth])
def test_a_figure_of_any_size_style_and_names_is_written_or_refused_in_words(
    draw: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Type of an infinite size left `refine` without a word, and no .png or .pdf could be written, after measuring."""
    monkeypatch.setattr("credit.plot.narrow._size_with_room", lambda *_: None)
    rng = np.random.default_rng(seed)
    name = f"mine:{'long ' * int(rng.integers(6))}(ours)"
    monkeypatch.setitem(globals(), "NAMES", (name, *NAMES))
    size = (float(rng.uniform(3, 7)), float(rng.uniform(2, 9)))
    figure = draw(int(rng.integers(1, 4)), int(rng.integers(1, 4)), [])
    try:
        refine(figure, size=size, style=str(rng.choice(["plain", "serif", "talk"])))
    except CreditError as refused:
        assert "leaves no room" in str(refused)
        return
    for kind in ("png", "pdf"):
        write_figure(figure, io.BytesIO(), kind)


@pytest.mark.slow
@pytest.mark.parametrize("dpi", [72, 90, 200])
def test_what_a_chosen_size_states_has_room_at_any_resolution(dpi: int) -> None:
    """With `--dpi 90`, at which small type is wider than at 100, lines were cut at both ends."""
    figure = refine(training(7, 2, ABSENT[:1]), size=(8, 4.5), style="talk")
    figure.set_dpi(dpi)
    figure.draw_without_rendering()
    stated = figure.legends[0].get_title().get_window_extent()
    assert stated.x0 > 0 and stated.x1 < figure.bbox.x1


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("least", [1e-32, -1e-12, 0.0])
@pytest.mark.parametrize("others", [(0.3,), (1.7, 6.0), (2e-7, 40.0), ()])
def test_a_score_of_0_up_to_rounding_has_a_place_in_its_panel(least: float, others: tuple[float, ...]) -> None:
    """An error of 1.67e-32 had its panel span 33 decades: no title, a cut name, no marker, and a raw warning."""
    rows = [
        Row(f"m{i}", "stop-rewards", 3, at, 1.0, at, at, at, 1.0, 1.0, 1.0) for i, at in enumerate((least, *others))
    ]
    for axes in draw_methods(rows, scores=("bias", "variance", "relative", "error")).axes:
        low, high = axes.get_xlim()
        shown = np.asarray(axes.lines[0].get_xdata(), float)
        assert low == 0 and shown[0] == 0 and list(shown[1:]) == list(others)
        assert shown.max() <= high
        seen = [label.get_text() for label in axes.get_xticklabels()]
        assert seen[0] == "0" and 3 <= len(seen) <= 6


def test_a_signal_of_0_up_to_rounding_stretches_no_axis() -> None:
    length = np.array([10.0, 100.0, 1000.0])
    figure = draw_snr([Curve("a", length, np.array([0.5, 0.2, 1e-17])), Curve("b", length, 1 / length)])
    low, high = figure.axes[0].get_ylim()
    assert low > 1e-4 and high <= 1


@pytest.mark.parametrize("draw", [training, truth])
def test_a_layout_without_a_drawing_is_that_of_a_drawing(draw: Any) -> None:
    """A size was refused after hundreds of drawings, in six seconds."""
    figure = draw(7, 1, [])
    figure.set_size_inches(3.4, 4)
    drawn = copy.deepcopy(figure)
    drawn.draw_without_rendering()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Axes, "draw", lambda *_: pytest.fail("drawn"))
        lay_out(figure)
    for one, other in zip(figure.axes, drawn.axes, strict=True):
        assert one.get_window_extent().bounds == other.get_window_extent().bounds


@pytest.mark.sampled(others="slow")
@pytest.mark.filterwarnings("error:constrained_layout")
@pytest.mark.parametrize("worlds", [1, 3])
def test_what_is_left_out_at_a_size_takes_no_panel_and_no_room(worlds: int) -> None:
    sizes, nan = (2, 4, 8), float("nan")
    rows = [
        Row(name, f"world-{place}", k, *[nan if place == k // 8 - 1 else 0.5] * 8)
        for place in range(worlds) for k in sizes for name in NAMES[:3]
    ]  # fmt: skip
    absent = [Absent(name, "world-0", "too many groups", 8) for name in NAMES[:3]]
    figure = draw_methods(rows, k=sizes, absent=absent)
    lay_out(figure)
    titles = list(dict.fromkeys(axes.get_title() for axes in figure.axes))
    assert titles == [f"groups of {k}" for k in sizes if worlds > 1 or k < 8]
    assert "groups of 8 (too many groups)" in figure.legends[0].get_title().get_text().replace("\n", " ")
    assert refine(figure, size=(12, 9)).get_size_inches().tolist() == [12, 9]
