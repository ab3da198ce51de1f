"""What benchmarks say beside a score is true of it: of what it is, what was counted, and how much was refused."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from site_pages import page

from credit.bench.against_truth import draw, score
from credit.bench.bias import measure
from credit.bench.bias_settings import SETTINGS, given_beside, given_to, setting
from credit.bench.refusals import COUNTED, refused_lines, refused_share
from credit.bench.snr import QUICK, run
from credit.bench.snr_schemes import scheme_of
from credit.bench.training.training_comparison import cells as training_cells
from credit.bench.training.training_loop import TrainingSettings
from credit.bench.training.training_runs import run_training
from credit.cli import cli
from credit.cli.benchmarks.bench_bias import LEGENDS
from credit.cli.benchmarks.bench_truth import NOTES
from credit.plot import draw_methods, draw_snr_report, draw_training
from credit.plot.bias_dots import LABELS
from credit.plot.finishing import shown_name

ROOT = Path(__file__).resolve().parents[3]
RAISED = """
import dataclasses
import jax.numpy as jnp
import credit

def raised(graph, reward):
    result = credit.rloo(graph, reward)
    return dataclasses.replace(result, baseline=jnp.where(result.valid, result.baseline - 1, 0))
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "of_offset.py").write_text(RAISED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "of_offset:raised"


@pytest.mark.slow
def test_a_sign_is_that_of_centred_advantages_where_the_footnote_says_so(own: str) -> None:
    """`bench bias` said "advantages" of what it had centred: an offset changes the raw order of methods alone."""
    plain, raised = measure("rloo", "relay-and", 2), measure(own, "relay-and", 2)
    for name in ("error", "rank", "sign"):
        assert getattr(raised, name) == pytest.approx(getattr(plain, name)), name
        assert "A° is an advantage less the mean advantage of its state" in LEGENDS[name]
        assert "of centred advantages" in LABELS[name].replace("\n", " ")
    drawn = draw("additive", events=30, traces=16)
    assert score(drawn, own).sign != pytest.approx(score(drawn, "rloo").sign, abs=0.01)
    assert any(note.startswith("sign: part of the advantages, none centred,") for note in NOTES)


@pytest.mark.slow
def test_it_is_said_that_replays_count_as_whole_runs_where_some_method_has_them() -> None:
    """A replay of `c3` plays a suffix, and stood under "equal runs" as a whole run without a word."""
    told = "replays: each counts as a whole run"
    assert given_to(["rloo", "c3"]) == told and given_to(["rloo", "remax", "gae"]).startswith("values: ")
    assert all((told in given_to([name])) == (setting(name).way not in ("groups", "solo", "alone", "greedy"))
               for name in SETTINGS)  # fmt: skip
    shown = CliRunner().invoke(cli, ["bench", "bias", "-m", "tree_grpo", "--world", "relay-and"])
    assert shown.stdout.splitlines()[-2] == f"{told}.", shown.output


def test_a_file_of_numbers_says_what_each_method_has_beside_the_traces() -> None:
    """A row of `remax`, `ccpo` or `hcapo` stood beside `rloo` as if it had the same."""
    having = {name for name in SETTINGS if f"{name}: " in given_beside(name)}
    assert having >= {"remax", "ccpo", "hcapo", "sepo", "c3", "magrpo", "difference_reward", "tree_grpo"}
    assert all(name in having for name in SETTINGS if setting(name).way not in ("groups", "alone"))
    assert not having & {"rloo", "grpo", "gae"}


@pytest.mark.slow
def test_a_long_caption_is_as_wide_as_its_figure() -> None:
    """With values, tokens and replays its line was cut at both ends."""
    rows = [measure(name, "relay-and", 1) for name in ("gae", "difference_reward")]
    figure = draw_methods(rows, values="; ".join([given_to(["c3", "gae, wrong values", "opo"])] * 2))
    figure.canvas.draw()  # type: ignore[no-untyped-call]
    title = figure.legends[0].get_title().get_window_extent()
    assert title.x0 >= 0 and title.x1 <= figure.bbox.width


HALF = """
import jax.numpy as jnp
import credit

def half(graph, reward):
    return credit.rloo(graph, jnp.where(reward >= reward[0], reward, jnp.nan))
"""


@pytest.fixture
def half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "of_half.py").write_text(HALF)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "of_half:half"


@pytest.mark.slow
def test_numbers_and_figures_of_python_calls_carry_the_share_that_was_refused() -> None:
    """Notebook 16 had 0.125 for `max_rl`, which refuses 63 % of the decisions, beside 0.295, and no word on it."""
    report = run([scheme_of(name) for name in ("rloo", "max_rl")], lengths=(10, 30), effort=QUICK, seed=9)
    texts = {(p.scheme, p.length): p.text() for p in report.points}
    assert re.fullmatch(r"0.1\d\d \(0.01\d\), 6\d % refused", texts["max_rl", 10]), texts
    assert "refused" not in texts["rloo", 10]
    captions = [
        draw_snr_report(report, names=names).legends[0].get_title().get_text()
        for names in (None, ["max_rl", "of no point"])
    ]
    assert all(re.search(r"refused:\s+up\s+to\s+[56]\d(\.\d)?\s+%\s+of\s+max_rl", caption) for caption in captions)


@pytest.mark.slow
def test_a_cell_and_a_figure_of_training_have_the_share_that_was_refused(half: str) -> None:
    """The command line said it; rows for Python had it by seed, and cells and figures not at all."""
    settings = TrainingSettings(steps=2, groups=2, group_size=4)
    rows = run_training(("rloo", half), ("heavy",), seeds=2, settings=settings, learning_rates=(0.4,))
    rloo, other = training_cells(rows)
    assert (rloo.answered, rloo.refused) == (1.0, "")
    assert 0 < other.answered == min(row["answered"] for row in rows) < 1 and other.refused == "no outcome is known"
    caption = " ".join(draw_training(rows).legends[0].get_title().get_text().split())
    assert f"refused: up to {refused_share(other.answered)} of {shown_name(half)}" in caption


@pytest.mark.slow
def test_what_refused_decisions_are_not_in_is_not_counted_of_them(half: str, tmp_path: Path) -> None:
    """`n` of slope, correlation and sign, and "Counted", were of all decisions where a method answers a quarter."""
    call = ["truth", "-m", f"rloo,{half}", "--world", "additive", "--traces", "80", "--table", str(tmp_path / "t.csv")]
    shown = CliRunner().invoke(cli, ["bench", *call])
    rows = [r for r in csv.DictReader((tmp_path / "t.csv").read_text().splitlines()) if not r["less"]]
    of = {(r["method"], r["quantity"]): (int(r["n"]), float(r["value"])) for r in rows}
    (every, share), counted = of[half, "answered"], of[half, "slope"][0]
    assert share < 1 and counted == pytest.approx(share * every) and of["rloo", "slope"][0] == every
    assert {of[half, name][0] for name in ("correlation", "sign")} == {counted}
    told = f"Counted: {counted:,} decisions for {half} and {every:,} decisions for rloo."
    assert told in shown.stdout, shown.output


@pytest.mark.slow
def test_robustness_says_what_was_refused(half: str) -> None:
    """What was refused counted as 0 without a word."""
    call = ["bench", "robustness", "-m", half, "-m", "rloo"]
    rows = json.loads(CliRunner().invoke(cli, [*call, "--json"]).stdout)["rows"]
    assert {row["method"] for row in rows if row["answered"] < 1} == {half}
    assert {row["method"] for row in rows if not row["refused"]} == {"rloo"}
    shown = CliRunner().invoke(cli, call).stdout
    told = [(f"{r['method']} in {r['insertion']}", r["answered"], r["refused"]) for r in rows]
    lines = refused_lines(told, COUNTED["robustness"])
    assert len(lines) == len({r["insertion"] for r in rows}) and all(line in shown for line in lines)


TEN = """
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Micro

one = MICRO["relay-and"]
ten = Micro("ten", one.about, one.decide, lambda history: tuple((p, 10 * r) for p, r in one.outcome(history)))
"""


@pytest.mark.slow
def test_the_bias_of_a_method_that_divides_is_said_to_change_with_the_unit_of_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of methods had the bias alone, as if 2.6 were a property of `grpo`; in another unit it is another."""
    (tmp_path / "of_units.py").write_text(TEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (plain, times), (one, ten) = (
        [measure(name, world, 3) for world in ("relay-and", "of_units:ten")] for name in ("rloo", "grpo")
    )
    assert times.bias == pytest.approx(plain.bias, abs=1e-9)
    assert abs(ten.bias - one.bias) > 0.5 and ten.cosine == pytest.approx(one.cosine, abs=1e-4)
    told = "of a method that divides it changes with the unit of reward, which leaves the cosine"
    assert told in LEGENDS["bias"]
    assert "where a method divides, it changes with the unit of reward" in page("methods")
    head, *rows = csv.reader((ROOT / "docs" / "data" / "methods.csv").read_text().splitlines())
    cosine = {row[0]: row[head.index("cosine")] for row in rows}
    assert cosine["rloo"] == "1" and cosine["mt_grpo"] == "0.945"


NOTED = {
    "bias -m rloo --world relay-and": (["groups of 2 / 3 traces"], ["alternatives"]),
    "bias -m c3 --world relay-and": (["2 / 3 alternatives of a context"], ["groups of 2 / 3"]),
    "bias -m rloo --world relay-and --group-size 2": (["Groups of 2 traces"], ["Two numbers"]),
    "snr -m gpg --quick --lengths 10 --world heavy": (["share its noise evenly"], ["slope", "form", "relative"]),
    "snr -m rloo --quick --lengths 10 --world heavy": (["closed forms take", "closed form:"], ["slope", "cost is"]),
    "train -m rloo --tasks bottleneck --seeds 2 --steps 3 --learning-rates 0.4": (["area:"], ["difference", "ahead"]),
    "train -m rloo,grpo --tasks bottleneck --seeds 2 --steps 3 --learning-rates 0.4": (["ahead: seeds"], ["as: equal"]),
}


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("call", NOTED)
def test_notes_explain_what_the_table_has_and_nothing_else(call: str) -> None:
    """They explained slopes of one length, alternatives of whole traces, and differences of one method."""
    found = CliRunner().invoke(cli, ["bench", *call.split()])
    printed, (there, not_there) = found.stdout.partition("to write: ")[0], NOTED[call]
    assert found.exit_code == 0, found.output
    assert all(text in printed for text in there), printed
    assert not [text for text in not_there if text in printed], printed
