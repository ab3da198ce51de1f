"""The last touches of pictures: size, title, type and resolution, and the names of own methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from graphs.errors import CreditError

pytest.importorskip("matplotlib")


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
    assert lanes.axes[0].xaxis.get_label().get_fontfamily() == ["serif"]
    wrong: list[dict[str, Any]] = [{"size": (0, 2)}, {"style": "bold"}]
    for options in wrong:
        with pytest.raises(CreditError, match="expected"):
            credit.plot.refine(lanes, **options)


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
