"""`bench plot`: results of a file are drawn as their benchmark drew them, without running it again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from credit.bench.snr import Difference, Fit, Point, Report
from credit.cli import cli
from credit.cli.benchmarks.bench_snr import _numbers
from credit.cli.benchmarks.figures import figure_of
from credit.cli.benchmarks.long_table import save_numbers
from credit.cli.benchmarks.measured import Measured, of_run
from credit.plot import refine
from graphs.errors import CreditError

CALLS = {
    "bias": "bias -m rloo,gae,max_rl --world relay-and,spawn-and --table {table}",
    "truth": "truth -m rloo,gae,remax,max_rl --world pivotal,heavy --events 30 --traces 320 --group-size 4,8 "
    "--table {table}",
    "snr": "snr --quick -m rloo,grpo --lengths 10,20 --table {table}",
    "train": "train -m rloo,gae --tasks bottleneck --seeds 2 --steps 3 --learning-rates 0.2,0.4 -o {table}",
}


def call(text: str) -> Result:
    return CliRunner().invoke(cli, ["bench", *text.split()])


def drawn(path: Path) -> str:
    """A picture without what made it."""
    return re.sub(r"<metadata>.*?</metadata>", "", path.read_text(), flags=re.S)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("bench", CALLS)
def test_a_saved_result_is_drawn_as_its_run_drew_it(bench: str, tmp_path: Path) -> None:
    """Another size, or another picture, took the run again, which may be minutes."""
    table, first, again = (
        tmp_path / f"t.{'parquet' if bench == 'train' else 'csv'}",
        tmp_path / "a.svg",
        tmp_path / "b.svg",
    )
    ran = call(f"{CALLS[bench].format(table=table)} --plot {first}")
    assert ran.exit_code == 0, ran.output
    read = call(f"plot {table} -o {again}")
    assert read.exit_code == 0, read.output
    assert drawn(first) == drawn(again)
    if bench != "train":
        assert f"credit bench {bench} " in again.read_text() and "credit bench plot" in again.read_text()


def of_snr(world: str) -> list[Measured]:
    """Three schemes at three lengths; at the last the first scheme may have no signal."""
    points, less = [], []
    for length, snr, half in ((10, 0.4, 0.1), (30, 0.2, 0.1), (100, 0.05, 0.1)):
        for number, name in enumerate(("rloo", "grpo", "mine:a")):
            points.append(Point(name, name, length, 8, snr - 0.01 * number, snr - half, snr + half, 0.0, None, 1.0, snr,
                                640.0, 20, "full", 0.0, 1.0, ""))  # fmt: skip
            if number:
                less.append(Difference(name, "rloo", length, 8, -0.01 * number, -0.02 * number, 0.0, 640, 200))
    fits = [Fit(name, 8, 3, 100, -0.5, 0.1, None, None) for name in ("rloo", "grpo", "mine:a")]
    numbers = _numbers(Report(points, fits, {}, differences=less, world=world))
    return of_run(numbers, "snr", lambda number: {"effort": "quick"})


def test_differences_of_snr_have_a_figure_in_which_no_marker_lies_on_another() -> None:
    numbers = [*of_snr("normal"), *of_snr("heavy")]
    figure = figure_of(numbers, [number for number in numbers if number.less])
    assert [axes.get_title() for axes in figure.axes] == ["normal", "heavy"]
    for axes in figure.axes:
        first, second = (bars.lines[0].get_xydata() for bars in axes.containers)
        assert all(0.7 < one / length < 1 < two / length < 1.4
                   for one, two, length in zip(first[:, 0], second[:, 0], (10, 30), strict=True))  # fmt: skip
        assert first[:, 1] == pytest.approx([-0.01 / 0.4, -0.01 / 0.2])
    (legend,) = figure.legends
    assert "left out: T = 100, where the SNR of rloo may be 0" in " ".join(legend.get_title().get_text().split())


def test_snr_of_several_worlds_stands_side_by_side() -> None:
    numbers = [*of_snr("normal"), *of_snr("heavy")]
    figure = figure_of(numbers, [number for number in numbers if number.quantity == "snr" and not number.less])
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ["normal", "heavy"]
    assert "world" not in figure.legends[0].get_title().get_text()


def of_truth(answered: float = 0.5, **conditions: object) -> list[Measured]:
    ends = {
        "slope": (0.9, 0.7, 1.1),
        "correlation": (0.1, 0.05, 0.12),
        "sign": (0.6, 0.5, 0.7),
        "answered": (answered,),
    }
    one = [Measured(name, quantity, *of, world="pivotal", group_size=8, confidence=0.95, independent=50)
           for name in ("rloo", "grpo") for quantity, of in ends.items()]  # fmt: skip
    less = Measured("grpo", "slope", 0.1, -0.1, 0.2, 0.95, less="rloo", world="pivotal", group_size=8)
    return of_run([*one, less], "truth", lambda number: {"traces": 400} | conditions)


def test_every_quantity_that_is_asked_for_is_drawn(tmp_path: Path) -> None:
    """`answered` was left out of pictures; the share of right signs and differences had none."""
    save_numbers(of_truth(), tmp_path / "truth.csv")
    numbers = of_truth()
    figure = figure_of(numbers, [number for number in numbers if number.quantity in ("sign", "answered")])
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["share of advantages\nwith the true sign", "share of decisions\nwith an advantage"]
    assert [axes.get_xlim()[1] < 1.1 for axes in figure.axes] == [True, True]
    both = figure_of(numbers, [number for number in numbers if number.quantity == "slope"])
    assert [axes.get_xlabel() for axes in both.axes] == [
        "slope of advantages on true increments",
        "slope of advantages on true increments\nless that of rloo",
    ]
    said = both.legends[0].get_title().get_text()
    assert said == "groups of 8; bars: 95 % intervals"
    found = call(f"plot {tmp_path / 'truth.csv'} -q answered -m grpo -o {tmp_path / 'a.svg'}")
    assert found.exit_code == 0, found.output


def test_runs_of_other_settings_are_other_series() -> None:
    numbers = [*of_truth(), *of_truth(seed=1)]
    figure = figure_of(numbers, [number for number in numbers if number.quantity == "correlation"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["pivotal", "pivotal, seed 1"]


def test_slopes_have_three_numbers_along_their_axis_at_the_width_of_a_column() -> None:
    numbers = of_truth()
    figure = figure_of(numbers, [n for n in numbers if n.quantity in ("slope", "correlation") and not n.less])
    for axes in refine(figure, size=(3.4, 2.6), style="serif").axes:
        low, high = axes.get_xlim()
        assert sum(low <= at <= high for at in axes.get_xticks()) >= 3


def test_a_figure_for_latex_has_its_notes_in_the_caption(tmp_path: Path) -> None:
    save_numbers(of_truth(), tmp_path / "truth.csv")
    path = tmp_path / "my fig.tex"
    found = CliRunner().invoke(
        cli, ["bench", "plot", f"{tmp_path / 'truth.csv'}", "-o", str(path), "--size", "3.4x2.4"]
    )
    assert found.exit_code == 0, found.output
    text = path.read_text()
    assert text.partition("% needs")[2] == (
        " \\usepackage{graphicx}\n\\begin{figure}\n\\centering\n\\includegraphics{my fig.pdf}\n\\caption{Slope of "
        "advantages on true increments; correlation of advantages with true increments. 50 groups of 8 traces; bars: "
        "95~\\% intervals; refused: up to 50~\\% of rloo, 50~\\% of grpo}\n\\label{fig:my-fig}\n\\end{figure}\n"
    )
    assert (tmp_path / "my fig.pdf").read_bytes().startswith(b"%PDF")


def test_what_cannot_be_drawn_together_is_named(tmp_path: Path) -> None:
    numbers = [*of_truth(), *of_snr("normal")]
    with pytest.raises(CreditError, match="the files are of truth and snr; expected those of one benchmark"):
        figure_of(numbers, [number for number in numbers if number.quantity in ("slope", "snr")])
    save_numbers(of_truth(), tmp_path / "t.csv")
    for text, why in (
        ("--group-size 7", "no groups of 7"),
        ("-q slop", "Did you mean slope"),
        ("-m c3", "no number of"),
    ):
        found = call(f"plot {tmp_path / 't.csv'} {text} -o {tmp_path / 'a.svg'}")
        assert found.exit_code == 1 and why in found.output, found.output
    (tmp_path / "told.json").write_text('{"rows": []}')
    found = call(f"plot {tmp_path / 'told.json'} -o {tmp_path / 'a.svg'}")
    assert (
        found.exit_code == 1 and "or a table that `credit bench bias`, `truth`, `snr` or `train` wrote" in found.output
    )
    table = call(f"table {tmp_path / 'told.json'}")
    assert table.exit_code == 1 and "told.json: expected a table that" in table.output
