"""`--table` of benchmarks: one shape for all, and LaTeX of it."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from credit.bench.against_truth import Difference as OfTruth
from credit.bench.against_truth import draw
from credit.bench.bias import measure
from credit.bench.doctor_trial import Trial
from credit.bench.given_values import GIVEN_VALUES
from credit.bench.own_worlds import shown_worlds
from credit.bench.refusals import MOST_TOLD, Absent, absent_caption
from credit.bench.robustness import Robustness
from credit.bench.snr import Difference, Point, Report, run
from credit.bench.snr_draws import Effort
from credit.bench.training.training_comparison import cells
from credit.bench.training.training_loop import TrainingSettings
from credit.cli import cli
from credit.cli.benchmarks.bench_bias import SCORES
from credit.cli.benchmarks.bench_snr import _numbers as of_snr
from credit.cli.benchmarks.bench_snr import _table as _table_of_snr
from credit.cli.benchmarks.bench_table import MAIN
from credit.cli.benchmarks.bench_train import _about, _caveats, _notes, _settings
from credit.cli.benchmarks.bench_train import _numbers as of_training
from credit.cli.benchmarks.bench_truth import _less
from credit.cli.benchmarks.long_table import Column, Told, in_blocks, latex, of_benchmarks, save_numbers
from credit.cli.benchmarks.measured import OPTIONS, Measured, brackets, of_all_sizes, of_run, table_of, with_absent
from credit.cli.benchmarks.to_write import SUBJECTS, to_write
from credit.cli.shared.provenance import commit_of
from credit.methods.own_functions import function_of, own_name
from graphs.worlds.micro.orchestration import Micro


@pytest.mark.slow
def test_bias_and_truth_write_one_shape(tmp_path: Path) -> None:
    """`bench bias` had no `-o`, and that of `bench truth` had a column a score."""
    bias, truth = tmp_path / "bias.csv", tmp_path / "truth.csv"
    small = ["--world", "pivotal", "--events", "30", "--traces", "16", "-m", "rloo", "-m", "grpo"]
    for call in (
        ["bias", "-m", "rloo", "--world", "relay-and", "-o", str(bias)],
        ["truth", *small, "--table", str(truth)],
    ):
        found = CliRunner().invoke(cli, ["bench", *call])
        assert found.exit_code == 0, found.output
    tables = [pyarrow.csv.read_csv(path) for path in (bias, truth)]
    assert tables[0].column_names == tables[1].column_names == list(Measured._fields[:-1])
    rows = tables[0].to_pylist()
    assert [(row["quantity"], row["group_size"]) for row in rows] == [(name, k) for k in (2, 3) for name in SCORES]
    assert rows[2]["value"] == measure("rloo", "relay-and", 2).variance and rows[2]["confidence"] is None
    less = [row for row in tables[1].to_pylist() if row["less"] == "rloo"]
    assert [row["quantity"] for row in less] == ["slope", "correlation", "sign"] and less[0]["method"] == "grpo"
    refused = CliRunner().invoke(cli, ["bench", "bias", "-o", "bias.txt"])
    assert refused.exit_code == 1 and "expected one of" in refused.stderr


def test_snr_and_training_have_the_same_lines(tmp_path: Path) -> None:
    point = Point("rloo", "rloo", 10, 8, 0.3, 0.2, 0.4, 0.1, None, 1.0, 0.3, 640.0, 2, "full", 0.0, 1.0, "")
    numbers = of_snr(Report([point], [], {}))
    assert numbers[0] == Measured(
        "rloo", "snr", 0.3, 0.2, 0.4, 0.99, 640, "", "normal", 8, 10, independent=2, shown="0.300 (0.100)"
    )
    assert [(n.quantity, math.isnan(n.value)) for n in numbers[1:]] == [
        ("closed form", True), ("cost", False), ("traces", False), ("answered", False)
    ]  # fmt: skip
    row = {"task": "t", "signal": "rloo", "learning_rate": 0.1, "start": 0.5, "optimum": 0.9, "final_return": 0.9,
           "mean_return": 0.7, "events_to_90": math.inf, "cosine": 1.0, "entropy": 0.5, "teaching": 1.0, "sweep": False,
           "updates": 3}  # fmt: skip
    compared = cells([row | {"seed": i, "signal": s} for s in ("rloo", "mine:b") for i in range(2)])
    trained = of_training(compared, 4, (0.1, 0.2))
    of_rloo = [n.quantity for n in trained if n.method == "rloo"]
    assert of_rloo == ["rate", "area", "final", "events to 90 %", "answered"]
    assert [n.less for n in trained if n.method == "mine:b"] == ["", "", "", "", "", "rloo", "", ""]
    assert [n.quantity for n in trained[-2:]] == ["ahead", "p"] and {
        n.mark for n in trained if n.quantity == "rate"
    } == {"at edge"}
    save_numbers([*numbers, *trained], tmp_path / "all.csv")
    written = pyarrow.csv.read_csv(tmp_path / "all.csv").to_pylist()
    assert len(written) == 18 and written[0]["confidence"] == 0.99 and written[6]["confidence"] is None


def test_latex_states_shared_conditions_once_and_what_is_not_there() -> None:
    text = latex([
        Measured("mine:a_b", "snr", -0.25, -0.5, 0.125, 0.99, world="heavy_1", length=10, shown="-0.25 (-0.5 to 0.12)"),
        Measured("mine:a_b", "snr", math.nan, world="heavy_1", length=1000),
        Measured("rloo", "snr", 1774.2, world="heavy_1", length=10, shown="1,774"),
        Measured("rloo", "snr", 0.0, world="heavy_1", length=1000, shown="equal"),
    ], "my_file")  # fmt: skip
    assert text.startswith("\\begin{table}\n")
    assert (
        r"\caption{snr, by trace length (heavy\_1)}" in text
        and "in brackets 99~\\% intervals\\par" in text
        and r"\label{tab:my-file-snr}" in text
    )
    assert r"method & T~=~10 & T~=~1,000 \\" in text
    assert r"mine:a\_b & $-0.25$ ($-0.5$ to 0.12) & -- \\" in text and r"rloo & 1,774 & equal \\" in text


def test_latex_has_what_compares_with_nobody_at_the_sizes_of_the_others() -> None:
    """`coma` had columns of its own, "groups of 1", in which all others had none, and the table split in two."""
    worlds = ("relay-and", "stop-rewards")
    alone = [Measured("coma", "bias", 0.25, world=world, group_size=1, why="") for world in worlds]
    for sizes in ((5,), (2, 3)):
        others = [Measured("rloo", "bias", 0.5, world=world, group_size=k) for k in sizes for world in worlds]
        text = latex([*others, *alone], "t")
        assert "--" not in text and text.count("0.25") == text.count("0.5 ") == 2 * len(sizes)
        assert "groups of 1" not in text and "of one trace, compared with none: coma" in text
    assert r"\caption{bias, by world (groups of 1)}" in latex(alone, "t")


def test_what_compares_with_nobody_has_no_column_that_is_its_alone() -> None:
    """With another file of larger groups it filled "stop-rewards, groups of 4" by itself."""
    at = [("stop-rewards", 2), ("relay-and", 2), ("relay-and", 4)]
    others = [Measured("rloo", "bias", 0.5, world=world, group_size=k) for world, k in at]
    alone = [Measured("gae", "bias", 0.25, world=world, group_size=1) for world in ("stop-rewards", "relay-and", "own")]
    of, _ = of_all_sizes([*others, *alone])
    assert [(n.world, n.group_size) for n in of if n.method == "gae"] == [*at, ("own", 1)]


def test_latex_writes_powers_of_ten_and_says_settings_once() -> None:
    """A difference was `$-$8.32e$-$05`, and a rate that all had took a table."""
    small = Measured("rloo", "area", -8.32e-5, world="a", shown="-8e-05")
    rates = [Measured("rloo", "rate", 0.4, world=world, shown="0.4") for world in "ab"]
    text = latex([small, *rates], "t")
    assert r"rloo & $-8 \times 10^{-5}$ \\" in text and r"\caption{area (a)}" in text
    assert "rate: 0.4 throughout\\par" in text
    assert text.count(r"\begin{table}") == 1
    assert latex([small, rates[0], rates[1]._replace(shown="0.8")], "t").count(r"\begin{table}") == 2
    assert latex(rates, "t").count(r"\begin{table}") == 1  # nothing else has a caption


def test_latex_of_training_has_the_marks_and_the_words_of_the_screen(tmp_path: Path) -> None:
    """No *, † or "at edge" stood in tables; captions lacked medians, seeds, steps, and what an area is."""
    seeds, at = 8, {"rloo": (0.4, 0.60), "mine:b": (0.2, 0.61), "grpo": (0.4, 0.6)}
    row = {"task": "t", "start": 0.5, "optimum": 0.9, "final_return": 0.9, "events_to_90": 30.0, "cosine": 1.0,
           "entropy": 0.5, "teaching": 1.0, "sweep": False, "updates": 3}  # fmt: skip
    rows = [
        row | {"seed": seed, "signal": signal, "learning_rate": rate, "mean_return": mean + seed * 1e-3}
        for signal, (rate, mean) in at.items() for seed in range(seeds)
    ]  # fmt: skip
    for one in rows[seeds : 2 * seeds]:
        one["mean_return"] += 1e-4 * one["seed"]
    compared, rates = cells(rows), (0.2, 0.4, 0.8)
    of_number = _settings(TrainingSettings(60, 4, 4), seeds, 0, rates, "rloo")
    numbers = of_run(of_training(compared, 4, rates), "train", of_number)
    path, notes = tmp_path / "t.tex", _notes(_about(compared, rates, ()))
    save_numbers(numbers, path, notes)
    comments = "% orchestration-credit 0.1.0[^\n]*\n% needs \\\\usepackage{booktabs}\n"
    assert re.match(comments + r"\\begin{table}\n", path.read_text())
    tables = {re.search(r"label{tab:t-(.*)}", text)[1]: text for text in path.read_text().split(r"\caption{")[1:]}  # type: ignore[index]
    assert list(tables) == ["rate", "area", "final", "events-to-90", "area-less-that-of-rloo", "ahead", "p"]
    assert all(
        "steps 60, groups a step 4, optimizer adam, policy tabular, rates 0.2,0.4,0.8, seeds 8" in text
        for text in tables.values()
    )
    assert r"mine:b & 0.2 at edge \\" in tables["rate"] and "at edge: the smallest or" in tables["rate"]
    assert "averaged over the budget, median over seeds; share: $(J - J_0) / (J^* - J_0)$" in tables["area"]
    assert r"rloo & 1.000 (1.000 to 1.000) \\" in tables["final"] and "interval" in tables["final"]
    less = tables["area-less-that-of-rloo"]
    assert less.startswith("Area under the learning curve, less rloo's (t, groups of 4, ")
    assert r"to $+0.027$) *\dag{} \\" in less and r"grpo & 0 (0 to 0) \\" in less
    assert r"* if the signed-rank" in less and r"\dag{}: not the rate of the first method" in less
    assert "signed-rank" not in tables["area"] and r"mine:b & 8 of 8 \\" in tables["ahead"]
    assert "against rloo" in tables["ahead"] and "against rloo" not in tables["area"]
    save_numbers(numbers, tmp_path / "t.csv", notes)
    marks = [line["mark"] for line in pyarrow.csv.read_csv(tmp_path / "t.csv").to_pylist()]
    assert marks.count("at edge") == 1 and marks.count("*†") == 1


@pytest.mark.parametrize("methods", [1, 2, 5, 9])
@pytest.mark.parametrize("reasons", [1, 2, 7])
def test_the_only_reason_of_a_method_is_never_cut(methods: int, reasons: int) -> None:
    """Of `opo` the only reason was cut, and that of c3 stood twice, with "and 1 more reasons"."""
    often = [Absent("c3", place, f"reason {i}") for i in range(reasons) for place in ("bias", "cosine")]
    told = absent_caption([*often, *(Absent(f"m{i}", "bias", f"lack {i}") for i in range(methods))])
    assert all(f"m{i} in bias (lack {i})" in told for i in range(methods)) and "c3 in bias, cosine (reason 0)" in told
    shown = told.count("reason ")
    cut = reasons - shown
    assert told.count("; ") == methods + shown - (not cut) and shown == min(reasons, max(1, MOST_TOLD - methods))
    assert told.endswith("; and 1 more reason" if cut == 1 else f"; and {cut} more reasons" if cut else ")")


def test_what_is_left_out_has_no_columns_of_sizes_in_which_it_is_not_tried() -> None:
    """A second block, "groups of 1", had "--" for all methods: `gae` stood in the first and `c3` was no method there.

    At the sizes of what compares traces it is left out, of which one that has no number has all.
    """
    numbers = [Measured("rloo", "bias", 0.5, world="w", group_size=4),
               Measured("gae", "bias", 0.5, world="w", group_size=1),
               Measured("c3", "bias", math.nan, world="w", group_size=4, why="too many", shown="left out")]  # fmt: skip
    for given in (numbers, numbers[:2]):
        found = with_absent(given, [Absent("c3", "w", "too many", 4)])
        assert [number.group_size for number in found if number.method == "c3"] == [4]
        text = latex(found, "t")
        assert text.count(r"\begin{tabular}") == 1 and "groups of 1" not in text and "--" not in text
        assert r"\caption{bias (w, groups of 4)}" in text and "left out: c3 (too many)\\par\nof one trace" in text
    alone = with_absent(numbers[1:2], [Absent("critic", "w", "no")])
    assert [number.group_size for number in alone] == [1, 1]


OF_MINE = """from graphs.worlds import TeamWorld
from graphs.worlds.micro.orchestration import Decision, Micro
from graphs.event_types import EventType

two = Micro("two", "Two agents must agree.", lambda h: Decision(f"a{len(h)}", EventType.MESSAGE, 2, sees=h)
            if len(h) < 2 else None, lambda h: ((1.0, float(h[0] == h[1])),))
desk = TeamWorld("hierarchical", agents=4, events=20, kind="pivotal", group_size=4)
"""


def test_every_file_says_what_made_it_and_what_happens_in_its_worlds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bench table -o` lost the definitions of worlds, and no file had the release, the commit or the command."""
    (tmp_path / "worlds_of_mine.py").write_text(OF_MINE)
    monkeypatch.chdir(tmp_path)
    pictures = []
    for suffix in ("pdf", "png", "svg"):
        call = ["bench", "bias", "-m", "rloo", "--world", "relay-and,worlds_of_mine:two", "--json", "-o", "b.csv"]
        found = CliRunner().invoke(cli, [*call, "--plot", f"b.{suffix}"])
        assert found.exit_code == 0, found.output
        pictures.append((Path(f"b.{suffix}").read_bytes(), json.loads(found.stdout)["source"]))
    for picture, source in pictures:
        assert source.startswith("orchestration-credit 0.1.0") and source.encode() in picture
        assert "; credit bench bias -m rloo --world relay-and,worlds_of_mine:two --json -o b.csv" in source
    truth = "bench truth -m rloo --world worlds_of_mine:desk --traces 8 -o t.csv"
    assert CliRunner().invoke(cli, truth.split()).exit_code == 0
    for files in (["b.csv", "t.csv"], ["b.csv"]):
        assert CliRunner().invoke(cli, ["bench", "table", *files, "-o", "j.tex"]).exit_code == 0
        joint = Path("j.tex").read_text()
        assert f"% {pictures[-1][1]}\n" in joint and f"credit bench table {' '.join(files)} -o j.tex\n" in joint
        assert "exact numbers, by enumeration of all batches" in joint and "two: Two agents must agree" in joint
        assert "Two agents must agree" in joint and ("topology hierarchical" in joint) == ("t.csv" in files)
        assert ("desk: One message decides" in joint) == ("t.csv" in files)
    rows = pyarrow.csv.read_csv("b.csv").drop_columns(["about", "source"])
    pyarrow.csv.write_csv(rows, "b.csv")  # as earlier releases wrote it
    assert CliRunner().invoke(cli, ["bench", "table", "b.csv"]).exit_code == 0


def test_a_table_of_unlike_intervals_says_which_are_whose_and_one_without_says_nothing_of_them(tmp_path: Path) -> None:
    """One of 95 and of 99 % said so in notes alone, and `--no-intervals` left what limits intervals."""
    one = Measured(
        "rloo",
        "slope",
        1.0,
        0.9,
        1.1,
        0.95,
        bench="truth",
        shown="1 (0.9 to 1.1)",
        caveats="Bands are wide. Agents are alike | intervals are wide | intervals and * take the rate",
    )
    other = one._replace(quantity="snr", bench="snr", confidence=0.99)
    told = {bench: Told("", (f"bench {bench}",), []) for bench in ("truth", "snr")}
    columns = [Column(n.bench, n.quantity, "", {"rloo": n.cell}, [n]) for n in (one, other)]
    caption = re.findall(r"\\caption{(.*)}", of_benchmarks(columns, ["rloo"], "j", told, []))[0]
    assert r"(bench truth; 95~\% intervals)" in caption and r"(bench snr; 99~\% intervals)" in caption
    assert "intervals" not in of_benchmarks(columns[:1], ["rloo"], "j", {"truth": told["truth"]}, [])
    pyarrow.csv.write_csv(table_of([one]), tmp_path / "a.csv")
    found = CliRunner().invoke(cli, ["bench", "table", str(tmp_path / "a.csv"), "-q", "slope", "--no-intervals"]).stdout
    assert "Bands" not in found and "intervals are" not in found
    assert "truth: Agents are alike\n" in found and "truth: intervals and * take the rate\n" in found


GIVEN = {
    "bias": "-m gae -m rloo --world relay-and",
    "truth": "-m gae -m rloo --world pivotal --events 30 --traces 16",
    "snr": "-m gae -m rloo --quick --lengths 10",
    "train": "--methods gae,rloo --tasks bottleneck --seeds 1 --steps 3 --learning-rates 0.4",
}


OWN = """import credit
import jax.numpy as jnp

def alike(graph, reward):
    return credit.rloo(graph, reward)

def partly(graph, reward, *, event_reward=None):
    return credit.rloo(graph, jnp.asarray(reward).at[0].set(jnp.nan), event_reward=event_reward)
"""
CAVEATS = {
    "bias": ("-m rloo,said_of_own:alike,said_of_own:partly --world stop-rewards,spawn-and",
             ["takes no event_reward", "gives the numbers of rloo", "count as 0 in bias"]),
    "truth": ("-m rloo,said_of_own:partly,c3 --world pivotal --events 30 --traces 320",
              ["which stand in no score; most often: no outcome is known", "siblings: four alternatives"]),
    "snr": ("-m rloo,max_rl --quick --lengths 10 --world heavy",
            ["which count as 0; most often: beyond the method's bound", "Bands take a fourth moment"]),
    "train": ("-m rloo,verl_rloo,zero --tasks additive --seeds 5 --steps 3 --learning-rates 0.2,0.4",
              ["differ by a constant factor for each decision, which Adam cancels",
               "intervals and * take the rate as given", "the signed-rank test takes",
               "one mean return"]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bench", CAVEATS)
def test_every_caveat_of_a_benchmark_stands_in_every_form(
    bench: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of these `bench table` said none but the values that were given."""
    (tmp_path / "said_of_own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    call, texts = CAVEATS[bench]
    for suffix in ("csv", "tex"):
        alone = CliRunner().invoke(cli, ["bench", bench, *call.split(), "--table", f"{bench}.{suffix}"])
        assert alone.exit_code == 0, alone.output
    shown = CliRunner().invoke(cli, ["bench", "table", f"{bench}.csv", "-o", "all.tex"])
    plain = json.loads(CliRunner().invoke(cli, ["bench", bench, *call.split(), "--json"]).stdout).get("caveats", [])
    rows = pyarrow.csv.read_csv(f"{bench}.csv").to_pylist()
    kept = {line for row in rows for line in (row["caveats"] or "").split(" | ")} - {""}
    assert kept == {*plain}
    typeset = [_untyped(Path(f"{name}.tex").read_text()).replace(r"\%", "%") for name in (bench, "all")]
    for text in texts:
        assert text in alone.output and text in shown.stdout and all(text in one for one in typeset), text
    there = {line for row in rows if row["quantity"] in MAIN for line in (row["caveats"] or "").split(" | ")}
    assert all(line in alone.output and (line in shown.stdout) == (line in there) for line in kept)
    _is_of_the_rows(alone.stdout.splitlines()[-1], rows, bench)


def test_each_own_method_has_a_sentence_of_where_it_differs_most() -> None:
    """One sentence was of the last own method in the first world, where the biased one was exact."""
    values = {"rloo": (0.0, 0.0), "mine:a": (0.0, 0.54), "grpo": (0.1, 0.1), "mine:b": (0.3, 0.2)}
    rows = [
        Measured(name, "bias", value, world=world, group_size=2, bench="bias")
        for name, of in values.items()
        for world, value in zip(("one", "two"), of, strict=True)
    ]
    first, second = to_write(rows)
    most = " groups of 2. Of 2 conditions the difference is largest there. mine:"
    assert " is 0.54 for mine:a and 0 for rloo. " in first and f". Conditions: two,{most}" in first
    assert " is 0.3 for mine:b and 0 for rloo. " in second and f". Conditions: one,{most}" in second
    ends = (
        "mine:a has the larger number in 1 and the smaller in 0 of 2 conditions, equal in 1. At the other end, one, it "
    )
    assert f"{ends}is 0 for mine:a and 0 for rloo. Source" in first
    (same,) = to_write([row._replace(value=0.2) for row in rows])[:-1]
    assert " is 0.2 for mine:a and 0.2 for rloo. " in same
    assert ". Conditions: one, groups of 2. Both are equal in both conditions. Source: `" in same
    lacking = [row._replace(value=math.nan, why="left out") if row.method == "mine:a" else row for row in rows]
    (partly,) = to_write([row._replace(group_size=4, value=0.2) for row in rows[:4]] + lacking[:4])
    assert "in both conditions. mine:a has no number in 2 of 4 conditions, groups of 2. Source" in partly  # was unsaid
    own_first = to_write(sorted(rows, key=lambda row: ":" not in row.method))
    assert [re.findall(r"for (\S+?)\.? ", line)[:2] for line in own_first] == [["mine:a", "rloo"], ["mine:b", "rloo"]]
    (last,) = to_write([row for row in rows if ":" not in row.method and row.world == "one"])
    assert " is 0.1 for grpo and 0 for rloo. " in last and ". Conditions: one, groups of 2. Source: `credit" in last


def test_a_difference_of_training_is_no_finding_where_none_was_tested() -> None:
    """It did not subtract, and left out the edge of rates, the choice of the task, and that no test was possible."""
    row = {"start": 0.0, "optimum": 1.0, "final_return": 0.9, "events_to_90": 30.0, "cosine": 1.0, "entropy": 0.5,
           "teaching": 1.0, "sweep": False, "updates": 3, "learning_rate": 0.4}  # fmt: skip
    values = {"rloo": (0.5, 0.6, 0.7, 0.8, 0.85, 0.9), "mine:a": (0.45, 0.58, 0.6, 0.7, 0.8, 0.89)}

    def sentence(seeds: int) -> str:
        compared = cells([
            row | {"task": task, "signal": name, "seed": seed, "mean_return": of[seed % 6] / (1 + k)}
            for k, task in enumerate(("pivotal", "additive")) for name, of in values.items() for seed in range(seeds)
        ])  # fmt: skip
        settings, rates = TrainingSettings(), (0.2, 0.4)
        found = of_run(
            of_training(compared, 4, rates), "train", lambda n: {}, caveats=_caveats(compared, settings, rates)
        )
        (told,) = to_write(found)
        return told

    told = sentence(6)
    told = re.sub(r" \([^()]* to [^()]*\)", "", told)
    stated = "The median share (J − J₀) / (J* − J₀), averaged over the budget, is 0.650 for mine:a and 0.750 for rloo, "
    assert f"{stated}both at rate 0.4. The median difference is -0.050. No test was possible: with 2 distinct " in told
    assert "comparisons the signed-rank test takes 7 seeds, this run has 6. Conditions: pivotal, groups of 4. " in told
    assert (
        "the difference is largest there, which its interval does not allow for. mine:a has the larger number in 0 "
        in told
    )
    assert " and the smaller in 2 of 2 conditions, decided in 0 and 0 (p < 0.05). At the other end, additive, " in told
    assert ", the difference is -0.025. Both rates are at the edge of those tried. " in told
    assert "), p = 0.000977 (signed-rank, Holm over 2 comparisons). Conditions: " in sentence(12)
    assert " of 2 conditions, decided in 0 and 2 (p < 0.05). " in sentence(12)


def test_of_unlike_rates_the_sentence_has_the_difference_and_those_at_one_rate() -> None:
    """It had no word of the rates, no difference, and nothing of what `--common-rates` had trained."""
    one = {"start": 0.0, "optimum": 1.0, "final_return": 0.9, "events_to_90": 30.0, "cosine": 1.0, "entropy": 0.5,
           "teaching": 1.0, "task": "pivotal"}  # fmt: skip
    compared = cells([
        one | {"signal": name, "seed": seed, "learning_rate": rate, "mean_return": best + seed / 100,
               "at_rates": {0.2: one | {"mean_return": 0.5 + low * (1 + seed)}, 0.4: one | {"mean_return": 0.6}}}
        for name, rate, best, low in (("rloo", 0.8, 0.5, 0.0), ("mine:a", 0.4, 0.7, 0.01)) for seed in range(9)
    ])  # fmt: skip
    caveats = _caveats(compared, TrainingSettings(), (0.2, 0.4, 0.8))
    numbers = of_run(of_training(compared, 4, (0.2, 0.4, 0.8)), "train", lambda n: {}, caveats=caveats)
    (told,) = to_write(numbers)
    assert re.sub(r" \([^()]* to [^()]*\)", "", told).startswith(
        "The median share (J − J₀) / (J* − J₀), averaged over the budget, is 0.740 for mine:a at rate 0.4 and 0.540 "
        "for rloo at rate 0.8. The median difference is +0.200, p = 0.00391 (signed-rank, Holm over 1 comparison). The "
        "rates differ, which may be why. With both at rate 0.2 it is +0.050, p = 0.00391, at rate 0.4 it is 0, p = 1 "
        "(signed-rank, Holm over 1 comparison). Conditions: pivotal, groups of 4. The rate of rloo is at the edge of "
        "those tried. In brackets "
    )
    kept = table_of(numbers).to_pylist()
    p_values = [row for row in kept if row["quantity"].startswith("p") and row["method"] == "mine:a"]
    assert len(p_values) == 3 and all("Holm's correction" in row["caveats"] for row in p_values)  # no row said so


def test_a_ratio_compares_conditions_of_unlike_scale_and_both_directions_are_told() -> None:
    """The sentence of 72.6 and 80.5 hid a third more variance in another world, where all numbers are a tenth."""
    values = {"rloo": (80.5, 3.92, 4.0), "mine:a": (72.6, 5.25, 4.0)}
    rows = [
        Measured(name, "relative", value, world=world, group_size=5, bench="bias")
        for name, of in values.items()
        for world, value in zip(("big", "small", "same"), of, strict=True)
    ]
    (told,) = to_write(rows, ["relative"])
    assert " is 5.25 for mine:a and 3.92 for rloo. " in told
    assert "Conditions: small, groups of 5. Of 3 conditions the ratio is furthest from 1 there. mine:a has the " in told
    assert " larger number in 1 and the smaller in 1 of 3 conditions, equal in 1. At the other end, big, it is " in told
    assert "it is 72.6 for mine:a and 80.5 for rloo. Source" in told
    (exact,) = to_write([row._replace(value=0.0) if row.world == "small" else row for row in rows], ["relative"])
    assert "Conditions: big, groups of 5. Of 3 conditions the difference is largest there. " in exact


def test_a_decided_difference_comes_before_a_larger_undecided_one() -> None:
    """Of three lengths the sentence took the only undecided difference, and left the two decided losses unsaid."""
    rows = []
    for length, first, less, half in ((10, 0.28, -0.012, 0.013), (30, 0.166, -0.0018, 0.0008), (100, 0.091, 0.0, 0.1)):
        one = Measured("rloo", "snr", first, 0.0, 1.0, 0.99, world="heavy", length=length, bench="snr")
        own = one._replace(method="mine:a", value=first + less)
        differs = own._replace(value=less, low=less - half, high=less + half, less="rloo", shown=f"{less} ({half})")
        rows += [one, own, differs]
    (told,) = to_write(rows)
    assert (
        "The difference is -0.0018 (0.0008). Conditions: heavy, T = 30. Of those decided the ratio is furthest" in told
    )
    counts = "mine:a has the larger number in 0 and the smaller in 2 of 3 conditions, equal in 1, decided in 0 and 1"
    assert f"{counts} (interval without 0). At the other end, T = 100, it is " in told


@pytest.mark.slow
def test_each_score_of_bias_that_is_asked_for_has_a_sentence() -> None:
    """`--score variance` and `relative` printed that of the bias alone; of `all` 24 were printed of three methods."""
    call = ["bench", "bias", "-m", "rloo,grpo", "--world", "relay-and", "--group-size", "2"]
    for score, names in (("variance", ["variance"]), ("all", ["bias", "relative", "rank"])):
        shown, plain = (CliRunner().invoke(cli, [*call, "--score", score, *more]).stdout for more in ([], ["--json"]))
        told = json.loads(plain)["to_write"]
        assert [line.partition(": ")[2] for line in shown.splitlines() if line.startswith("to write")] == told
        of_all = told.pop(0) if score == "all" else told[0]
        assert [line.partition(" is ")[0] for line in told] == [SUBJECTS["bias"][name] for name in names]
        # Each of eight lines had all of it.
        source = "Source: `credit bench bias` of orchestration-credit"
        for fact in ("t is exact, by enumeration.", "Conditions: relay-and, groups of 2.", source):
            assert fact in of_all and (len(told) == 1 or not any(fact in line for line in told)), (fact, told)
        assert shown.count("an advantage less the mean advantage of its state") == (score == "all")


def test_a_difference_on_fewer_traces_says_so() -> None:
    """It was no difference of the two numbers beside it, since one was of more traces."""
    one = Measured("rloo", "snr", 0.0947, 0.09, 0.1, 0.99, 40_000, bench="snr", independent=500, shown="0.0947 (0.003)")
    own = one._replace(method="mine:a", value=0.0806, n=8_000, shown="0.0806 (0.006)")
    less = own._replace(value=-0.0112, less="rloo", n=800, shown="-0.0112 (0.003)")
    (told,) = to_write([one, own, less])
    noise = "An offset of all advantages counts as noise"  # one's own baseline had none of its SNR, and no word why
    stated = f"and 0.0947 (0.003) for rloo. {noise}. The difference is -0.0112 (0.003) on the 800 traces of both. "
    assert stated in told
    assert "Counted: 8,000 decisions for mine:a and 40,000 decisions for rloo. In brackets" in told
    (alike,) = to_write([one, own._replace(n=40_000), less._replace(n=4_000)])
    assert "The difference is -0.0112 (0.003). " in alike and "Counted: 40,000 decisions. In brackets" in alike


@pytest.mark.slow
def test_worlds_have_the_order_in_which_they_were_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and figures had that of the package, and own worlds last; what has too many batches came first in none."""
    monkeypatch.chdir(tmp_path)
    names = ["stop-rewards", "relay-and"]
    for asked in (names, names[::-1]):
        call = ["bench", "bias", "-m", "rloo,c3", "--group-size", "2", "--world", ",".join(asked), "-o", "of.csv"]
        shown = CliRunner().invoke(cli, [*call, "--plot", "of.svg", "--most-batches", "10"])
        assert shown.exit_code == 0, shown.output
        assert shown.stdout.split()[:3] == ["bias", *asked]
        of_rloo = [row["world"] for row in pyarrow.csv.read_csv("of.csv").to_pylist() if row["method"] == "rloo"]
        assert list(dict.fromkeys(of_rloo)) == asked
        comments = re.findall(r"<!-- (.*?) -->", Path("of.svg").read_text())
        assert [text for text in comments if text in names] == asked, comments


def test_json_has_the_sentences() -> None:
    call = ["bench", "bias", "-m", "rloo,dr_grpo", "--world", "relay-and", "--group-size", "2"]
    shown, plain = (CliRunner().invoke(cli, [*call, *more]).stdout for more in ([], ["--json"]))
    assert shown.splitlines()[-1:] == [f"to write: {line}" for line in json.loads(plain)["to_write"]]
    tutorial = Path(__file__).parents[3] / "docs" / "tutorials" / "your-own-estimator.md"
    assert "Lines of `to write` are sentences for a paper." in tutorial.read_text()  # nothing named them


def test_the_source_of_a_number_names_its_commit(tmp_path: Path) -> None:
    """All commits since the release called themselves 0.1.0."""

    def git(*call: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", "-C", str(tmp_path), *who, *call], check=True, capture_output=True, text=True)
        return done.stdout

    for name in ("run.py", "other.py"):
        (tmp_path / name).write_text("1")
    git("init", "-q")
    git("add", "run.py")
    git("commit", "-qm", "first")
    commit_of.cache_clear()
    head = git("rev-parse", "HEAD")[:12]
    assert (commit_of(tmp_path / "run.py"), commit_of(tmp_path / "other.py")) == (f"commit {head}", "")
    (tmp_path / "run.py").write_text("2")
    commit_of.cache_clear()
    assert commit_of(tmp_path / "run.py") == f"commit {head} with changes"


def test_doctor_and_robustness_have_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """They alone of the benchmarks had none."""
    trials = [Trial("never_stops", 9, 8, 20, 1, 0.02), Trial("idle_groups", 11, 11, 20, 0, math.nan)]
    monkeypatch.setattr("credit.bench.doctor_trial.doctor_trials", lambda *_, **__: iter([(20, trials)]))
    rows = [
        Robustness(name, insertion, taken, 0.0, 0.0, 0.0, answered, "no siblings" * (answered < 1), 8)
        for name, insertion, taken, answered in (
            ("rloo", "inflated_log", 0.5, 1.0), ("rloo", "padded_spawns", 0.1, 1.0),
            ("gae", "inflated_log", 0.48, 1.0), ("gae", "padded_spawns", 0.3, 0.75),
        )
    ]  # fmt: skip
    monkeypatch.setattr("credit.bench.robustness.robustness", lambda *_: iter(rows))
    expected = {
        "doctor": "`credit doctor` found 19 of 20 planted faults. never_stops found fewest, 8 of 9. On logs without a "
        "fault 1 of 40 answers named one. Conditions: 20 teams of 3 to 16 agents, 60 to 200 events, 8 to 16 tasks, "
        "seed 0. ",
        "robustness": "The part of all |advantages| that inserted actions take is 0.3 for gae and 0.1 for rloo. The "
        "true credit of inserted actions is 0. Conditions: padded_spawns, groups of 8, world additive, tasks 16, seed "
        "0. Of 2 conditions the difference is largest there. gae has the larger number in 1 and the smaller in 1 of 2 "
        "conditions. At the other end, inflated_log, it is 0.48 for gae and 0.50 for rloo. Values: the true ones. gae "
        "gave no number for 25 % of the decisions, which count as 0; most often: no siblings. ",
    }
    for bench, sentence in expected.items():
        shown, plain = (CliRunner().invoke(cli, ["bench", bench, *more]).stdout for more in ([], ["--json"]))
        (line,) = json.loads(plain)["to_write"]
        assert (
            line.startswith(f"{sentence}Source: `credit bench {bench}` of ")
            and shown.splitlines()[-1] == f"to write: {line}"
        )
        facts = line.removesuffix(".").split(". ")
        assert all(len(fact.split()) <= 22 for fact in facts) and len(facts) >= 5, facts


def test_one_rule_says_which_numbers_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two screens and the files had a copy each."""
    for rounding, equal in ((0.1, False), (0.5, True)):
        monkeypatch.setattr("credit.bench.rounding.ROUNDING", rounding)
        for ends in ((math.nan, math.nan), (0.1, 0.3)):
            of_snr = Difference("b", "a", 10, 8, 0.2, *ends, 80, 20).text()
            of_truth = _less(OfTruth("b", "a", "additive", "sign", 0.2, *ends, 50, 900, 8))
            of_file = table_of([Measured("b", "snr", 0.2, *ends, less="a")]).column("mark")[0].as_py()
            assert [said == "equal" for said in (of_snr, of_truth, of_file)] == [equal] * 3


def test_brackets_say_of_how_many_pairs_a_difference_is() -> None:
    point = Measured("a", "snr", 0.3, 0.2, 0.4, 0.99, independent=128, bench="snr", shown="0.300 (0.100)")
    less = point._replace(less="b", independent=96)
    assert brackets([point, less]) == [
        "in brackets half of the 99 % interval over 128 independent parts and 96 pairs of parts in the difference"
    ]


def _is_of_the_rows(sentence: str, rows: list[dict[str, Any]], bench: str) -> None:
    """Whether each number of the sentence to write, its conditions and counts are those of rows of the file."""
    quantity = {"bias": "bias", "truth": "correlation", "snr": "snr", "train": "area"}[bench]
    said = re.fullmatch(r"to write: (.*?) is (-?\d.*?)\. (?:[^:]*\. )?Conditions: (?=[a-z-]+, groups of)(.*)", sentence)
    assert said, sentence
    about = said[3]
    here = [row for row in rows if about.startswith(f"{row['world']}, groups of {row['group_size']}")]
    of = [row for row in here if row["quantity"] == quantity and (row["settings"] or "") in about]
    told = re.findall(r"(-?[\d.]+)(?: \([^()]*\))?(?:, [\d.]+ % refused)? for ([\w:]+)", said[2])
    numbers = {row["method"]: row for row in of if not row["less"]}
    assert len(told) == 2 and told[0][1] != told[1][1] == "rloo" and about.count(" % of the decisions") <= 1
    for text, method in told:
        assert float(text) == pytest.approx(numbers[method]["value"], abs=0.51 * 10.0 ** -len(text.partition(".")[2]))
        if numbers[method]["independent"] is not None:
            assert f"{numbers[method]['independent']:,}" in about and f"{numbers[method]['n']:,}" in about
    (last, first) = (method for _, method in told)
    less = [row for row in of if (row["method"], row["less"]) == (last, first) and "‡" not in (row["mark"] or "")]
    differs = "The median difference is " if bench == "train" else "The difference is "
    assert (differs in sentence or "Both are equal but for rounding" in sentence) == bool(less)
    if less and "Both are equal" not in sentence:
        found = re.search(differs + r"([+-]?[\d.]*\d)", sentence)
        assert found and float(found[1]) == pytest.approx(less[0]["value"], abs=1e-3)
    shares = [row["value"] for row in here if row["quantity"] == "answered" and row["method"] == last]
    assert ("gave no number" in about) == (shares[0] < 1)


@pytest.mark.slow
def test_every_form_of_a_table_says_what_values_a_benchmark_gave(tmp_path: Path) -> None:
    """One table had true values, those with errors and a learned critic's side by side, and did not say which."""
    for bench, call in GIVEN.items():
        for suffix in ("csv", "tex"):
            command = ["bench", bench, *call.split(), "--table", str(tmp_path / f"{bench}.{suffix}")]
            assert GIVEN_VALUES[bench] in CliRunner().invoke(cli, command).stdout
        rows = pyarrow.csv.read_csv(tmp_path / f"{bench}.csv").to_pylist()
        assert {(row["method"], GIVEN_VALUES[bench] in row["given"]) for row in rows} == {
            ("gae", True),
            ("rloo", False),
        }
        assert (tmp_path / f"{bench}.tex").read_text().count(GIVEN_VALUES[bench]) == 1
    files = [str(tmp_path / f"{bench}.csv") for bench in GIVEN]
    shown = CliRunner().invoke(cli, ["bench", "table", *files, "-o", str(tmp_path / "all.tex")])
    assert shown.exit_code == 0, shown.output
    for bench in GIVEN:
        said = rf"\(bench {bench}\b[^()]*; {re.escape(GIVEN_VALUES[bench])}"
        assert re.search(said, shown.stdout) and re.search(said, (tmp_path / "all.tex").read_text()), bench
    without = CliRunner().invoke(cli, ["bench", "table", *files, "-m", "rloo", "-q", "bias"])
    assert without.exit_code == 0 and "values:" not in without.stdout  # of rloo alone


def test_latex_keeps_to_the_width_of_a_column_or_a_page() -> None:
    """Differences of three worlds ran over the column, and no page had room for those of eight."""
    long = [Measured("mine:b", "area", 0.1, world=f"world {i}", shown="-0.024 (-0.073 to +0.021)") for i in range(8)]
    kinds = {count: latex(long[:count], "t") for count in (1, 3, 8)}
    assert [r"\begin{table*}" in text for text in kinds.values()] == [False, True, True]
    assert [text.count(r"\begin{tabular}") for text in kinds.values()] == [1, 1, 2]
    assert [f"world {i}" in kinds[8] for i in range(8)] == [True] * 8 and kinds[8].count(r"mine:b &") == 2
    assert (
        r"mine:b & $-0.024$ ($-0.073$ to $+0.021$) \\" in kinds[1] and r"{\scriptsize (" in kinds[3]
    )  # has room beside
    headed = [Column("snr", f"snr less that of {name}", "", {"a": "0.1"}, long[:1]) for name in ("a" * 30, "b" * 30)]
    joint = of_benchmarks(headed, ["a"], "t", {"snr": Told("snr", (), [])}, [])
    assert joint.count(r"\begin{tabular}") == 2  # one head was as wide as the page
    narrow = latex(long[:3], "t", page=240)
    assert r"\begin{table}" in narrow and narrow.count(r"\begin{tabular}") == 2  # of a column of a paper


CALLS = {
    "bias": "-m rloo -m grpo --world stop-rewards --world hire-additive --group-size 3 --score all",
    "truth": "-m rloo -m dr_grpo -m grpo --world pivotal --events 30 --traces 320",
    "snr": "-m rloo -m dr_grpo -m grpo --quick --lengths 10,30",
    "train": "--methods rloo,grpo --tasks additive,stopping --seeds 5 --steps 20 --learning-rates 0.2,0.4",
}


SAID = {
    "bias": {
        "": "exact numbers, by enumeration of all batches, without draws; ",
        "first": "stop-rewards: The lead stops or asks the worker, up to twice;",
        ".*": "(groups of 3)",
        "bias": r"$|\mathrm{E}\,g - \nabla J| / |\nabla J|$, the distance of the mean gradient",
        "variance": r"times the runs of a batch, over $|\nabla J|^2$",
    },
    "truth": {
        ".*": "groups of 8, topology swarm, agents 5, events 30, traces 320, seed 0",
        "slope.*": r"of the advantage on the true increment, $\sum A D / \sum D^2$",
        "slope less.*": "over the decisions that both answer",
    },
    "snr": {
        ".*": "effort quick, seed 0",
        "snr": "A: a decision's advantage, x: its true effect",
        "snr less.*": "with half of its 99~\\% band from 100 pairs or more",
    },
    "train": {
        ".*": "steps 20, groups a step 4, optimizer adam, policy tabular, rates 0.2,0.4, seeds 5, first seed 0",
        "area": "the share, averaged over the budget",
    },
}
"""Words of captions and of what stands below: no condition, no definition and no seed stood in three of the four."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_latex_has_the_cells_of_the_screen(name: str, tmp_path: Path) -> None:
    """`1.77e+03` stood where the screen had 1,774, and 0 (0 to 0) where it had "equal"."""
    path = tmp_path / "table.tex"
    found = CliRunner().invoke(cli, ["bench", name, *CALLS[name].split(), "--table", str(path)])
    assert found.exit_code == 0, found.output
    assert r"\begin{table*}" in path.read_text() or name != "train"
    screen = [re.split(r"\s{2,}", line.strip()) for line in found.stdout.splitlines()]
    tables = re.split(r"\\begin{table\*?}", path.read_text())[1:]
    assert len(tables) >= 4
    titles = [title.replace("-", " ") for title in re.findall(r"\\label{tab:table-(.*)}", path.read_text())]
    captions = dict(zip(titles, re.findall(r"\\caption{(.*)}", path.read_text()), strict=True))
    label = re.search(r"\\label{(.*)}", path.read_text())
    more = rf"; notes: Table~\ref{{{label[1]}}}"  # type: ignore[index]
    assert all(caption.endswith(more) for caption in [*captions.values()][1:]), captions
    # A caption had 90 words: what a score is, the worlds, what was left out and what options mean.
    assert all(len(caption.removesuffix(more).split()) < 30 for caption in captions.values()), captions
    captions = dict(zip(captions, tables, strict=True))
    first, *others = tables
    of_all = {OPTIONS, *(words for quantity, words in SAID[name].items() if quantity in ("", "first"))}
    assert all(words in first and not any(words in caption for caption in others) for words in of_all), captions
    for quantity, words in SAID[name].items():
        if quantity in ("", "first"):
            continue
        of_quantity = [caption for title, caption in captions.items() if re.fullmatch(quantity, title)]
        assert of_quantity and all(words in caption for caption in of_quantity), (quantity, captions)
    assert all(ord(sign) < 128 for caption in captions.values() for sign in caption), captions
    for table in tables:
        if re.search(
            r"\\caption{(Signal to noise by formula|Traces|P-values)", table
        ):  # the screen has traces, and from least to most; it has a * for a p-value
            continue
        header, *lines = re.findall(r"^(.*) \\\\$", table, re.MULTILINE)
        for line in lines:
            method, *cells = _untyped(line).split(" & ")
            for cell in cells:
                assert any(method in row and cell in row for row in screen), (line, found.stdout)
        if name == "bias":
            assert header == "method & stop-rewards & hire-additive"  # as on the screen, and as asked


def _untyped(line: str) -> str:
    """A line of a table without its LaTeX."""
    powers = re.sub(r" \\times 10\^\{(-?)(\d+)\}", lambda found: f"e{found[1]}{int(found[2]):02}", line)
    return powers.replace("$", "").replace("~", " ").replace("{,}", ",").replace(r"\_", "_").replace(r"\ddag{}", "‡")


def test_results_of_several_benchmarks_stand_side_by_side(tmp_path: Path) -> None:
    """One table of a method a line had to be made by hand from four files."""
    bias = [
        Measured(m, q, 0.5, world=w, group_size=3) for m in ("rloo", "grpo") for q in ("bias", "rank") for w in "ab"
    ]
    snr = [Measured("grpo", "snr", 0.25, 0.125, 0.375, 0.99, world="normal", length=10),
           Measured("gigpo", "snr", math.nan, world="normal", length=10, why="it needs anchor", shown="refused"),
           Measured("rloo", "snr", -0.125, less="grpo", world="normal", length=10)]  # fmt: skip
    bias = of_run(bias, "bias", lambda number: {})
    snr = of_run(snr, "snr", lambda number: {"traces": 400, "seed": 0})
    save_numbers(bias, tmp_path / "bias.csv")
    less = "snr less that of grpo"
    for suffix in ("csv", "parquet", "jsonl"):
        save_numbers(snr, tmp_path / f"snr.{suffix}")
        call = ["bench", "table", str(tmp_path / "bias.csv"), str(tmp_path / f"snr.{suffix}")]
        assert _table(*call[2:])["rows"] == [
            {"method": "rloo", "bias, a": "0.5", "bias, b": "0.5", "snr": "–", less: "-0.125"},
            {"method": "grpo", "bias, a": "0.5", "bias, b": "0.5", "snr": "0.250 (0.125 to 0.375)", less: "–"},
            {"method": "gigpo", "bias, a": "–", "bias, b": "–", "snr": "left out", less: "–"},
        ]
    for output in ("all.csv", "all.tex"):
        shown = CliRunner().invoke(cli, [*call, "-m", "gigpo,grpo", "-q", "snr,rank", "-o", str(tmp_path / output)])
        assert shown.exit_code == 0 and "gigpo has no snr: it needs anchor" in shown.stdout, shown.output
        assert "snr (bench snr: normal, T = 10, traces 400, seed 0)\nrank (bench bias: groups of 3)\n" in shown.stdout
        assert "the wrong sign; in brackets 99 % intervals\nrank: Kendall's" in shown.stdout
        assert "also in the files: bias" in shown.stdout
    saved = pyarrow.csv.read_csv(tmp_path / "all.csv").to_pylist()
    assert saved[0]["why"] == "it needs anchor" and [row["value"] for row in saved] == [None, 0.25, 0.5, 0.5]
    latex_text = (tmp_path / "all.tex").read_text()
    assert r"gigpo & left out & -- & -- \\" in latex_text and "gigpo in snr (it needs anchor)" in latex_text
    assert r"grpo & 0.250 (0.125 to 0.375) & 0.5 & 0.5 \\" in latex_text
    nobody = CliRunner().invoke(cli, [*call, "-m", "rlo"])
    assert nobody.exit_code == 1 and "of 'rlo'. Did you mean rloo" in nobody.stderr


def _table(*call: object) -> dict[str, Any]:
    """The cells of the printed table, where all of it has room, by column; and the legend of `--json`."""
    command = ["bench", "table", *map(str, call)]
    shown = CliRunner().invoke(cli, command, env={"COLUMNS": "1000"})
    assert shown.exit_code == 0, shown.output
    above, _, below = shown.stdout.partition("─")
    heads: dict[int, str] = {}
    for line in above.splitlines():
        for end, words in _words(line).items():
            heads[end] = f"{heads.get(end, '')} {words}".strip()
    rows = []
    for line in itertools.takewhile(str.strip, below.splitlines()[1:]):
        method, *cells = _words(line).items()
        rows.append({"method": method[1]} | {heads[end]: cell for end, cell in cells})
    return {"rows": rows, "legend": json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)["legend"]}


def _printed(report: Report) -> str:
    console = Console(width=200)
    with console.capture() as printed:
        console.print(_table_of_snr(report, 8))
    return printed.get()


def _words(line: str) -> dict[int, str]:
    """The cells of a line by the place where they end."""
    return {found.end(): found[0] for found in re.finditer(r"\S+(?: \S+)*", line)}


def test_runs_of_other_settings_stand_in_other_columns(tmp_path: Path) -> None:
    """Two runs of other steps and optimizers stood in one column `area`, which no line of the files told apart."""
    one = {"task": "t", "signal": "rloo", "learning_rate": 0.4, "start": 0.5, "optimum": 0.9, "final_return": 0.9,
           "mean_return": 0.7, "events_to_90": 30.0, "cosine": 1.0, "entropy": 0.5, "teaching": 1.0, "sweep": False,
           "updates": 3, "seed": 0}  # fmt: skip
    runs = {"a": ("rloo", TrainingSettings(60)), "b": ("grpo", TrainingSettings(12, optimizer="sgd"))}
    for name, (signal, settings) in runs.items():
        numbers = of_training(cells([one | {"signal": signal}]), 4, (0.4,))
        of_number = _settings(settings, 1, 0, (0.4,), signal)
        save_numbers(of_run(numbers, "train", of_number), tmp_path / f"{name}.csv")
    found = _table(tmp_path / "a.csv", tmp_path / "b.csv")
    adam, sgd = "area, steps 60, optimizer adam", "area, steps 12, optimizer sgd"
    assert found["rows"] == [{"method": "rloo", adam: "0.5", sgd: "–"}, {"method": "grpo", adam: "–", sgd: "0.5"}]
    assert found["legend"][0] == (
        "area (bench train: t, groups of 4, groups a step 4, policy tabular, rates 0.4, seeds 1, first seed 0)"
    )


def test_refusals_and_marks_stand_beside_the_numbers_of_their_run(tmp_path: Path) -> None:
    """`max_rl` had `0.134 (0.123 to 0.146)` where `bench snr` says that 59 % were refused, and areas no mark."""
    rest = (0.1, None, 1.0, 0.3, 640.0, 2, "full", 0.0)
    points = [Point("max_rl", "max_rl", t, 8, 0.25, 0.125, 0.375, *rest, a, "no") for t, a in ((10, 0.41), (30, 1.0))]
    save_numbers(of_run(of_snr(Report(points, [], {})), "snr", lambda number: {}), tmp_path / "snr.csv")
    row = {"task": "t", "signal": "max_rl", "learning_rate": 0.2, "start": 0.5, "optimum": 0.9, "final_return": 0.9,
           "mean_return": 0.7, "events_to_90": 30.0, "cosine": 1.0, "entropy": 0.5, "teaching": 1.0, "sweep": False,
           "updates": 3, "seed": 0}  # fmt: skip
    part = {"answered": 0.25, "refused": "no"}
    trained = of_training(cells([row | part, row | {"signal": "rloo", "learning_rate": 0.1}]), 4, (0.1, 0.15, 0.2, 0.3))
    save_numbers(of_run(trained, "train", lambda number: {}), tmp_path / "train.csv")
    bias = [Measured("max_rl", name, value, world=w, group_size=k) for w, k, shares in
            (("a", 2, (0.5, 0.75)), ("a", 3, (0.5, 1.0)), ("b", 3, (math.nan, 0.0)))
            for name, value in zip(("bias", "answered"), shares, strict=True)]  # fmt: skip
    bias[-2:] = [number._replace(why="too few") for number in bias[-2:]]  # it was "left out", as if not measured
    save_numbers(of_run(bias, "bias", lambda number: {}), tmp_path / "bias.csv")
    expected = {"method": "max_rl", "bias, a, groups of 2": "0.5, 25 % refused", "bias, a, groups of 3": "0.5",
                "bias, b, groups of 3": "refused", "snr, T = 10": "0.250 (0.125 to 0.375), 59 % refused",
                "snr, T = 30": "0.250 (0.125 to 0.375)", "area": "0.5, 75 % refused",
                "area less that of max_rl": "–"}  # fmt: skip
    rloo = {"method": "rloo", "area": "0.5 at edge", "area less that of max_rl": "equal †"}
    files = [tmp_path / f"{bench}.csv" for bench in ("bias", "snr", "train")]
    for output in ("all.csv", "all.tex"):
        found = _table(*files, "-o", tmp_path / output)
        assert found["rows"] == [expected, dict.fromkeys(expected, "–") | rloo]
        assert any(line.startswith("area: ") and "at edge: the smallest" in line for line in found["legend"])
    assert _table(tmp_path / "all.csv")["rows"] == found["rows"]  # what stands beside a number is a row of its own
    text = (tmp_path / "all.tex").read_text()
    assert r"0.250 (0.125 to 0.375), 59~\% refused &" in text and r"0.5 at edge & equal \dag{} \\" in text
    _table(*files, "-q", "rate,area", "-o", tmp_path / "marked.csv")
    assert _table(tmp_path / "marked.csv", "-q", "area")["rows"][1]["area"] == "0.5 at edge"
    screen = CliRunner().invoke(cli, ["bench", "table", *map(str, files)]).stdout
    assert "max_rl has no bias in 1 of 3 columns: too few\n" in screen
    assert "59 % refused" in " ".join(screen.split()) and "at edge" in screen
    of_others = _table(*files, "-q", "cost,closed form,answered")["rows"][0]
    assert not any("refused" in cell for cell in of_others.values())


def test_a_table_says_of_its_numbers_what_their_benchmarks_say(tmp_path: Path) -> None:
    """It left out why decisions were refused, that they count as 0, and the caveats that the benchmarks print."""
    numbers = [Measured(name, quantity, value, world="w", group_size=8, why="no" * (value == 0.41))
               for name, share in (("max_rl", 0.41), ("rloo", 1.0))
               for quantity, value in (("snr", 0.5), ("answered", share))]  # fmt: skip
    numbers.append(numbers[0]._replace(value=-0.25, less="rloo"))
    told = {"rloo": ["one; two", "of rloo"], "max_rl": ["one; two"]}
    save_numbers(
        of_run(numbers, "snr", lambda number: {}, caveats=lambda number: told[number.method]), tmp_path / "snr.csv"
    )
    refused = "snr: max_rl gave no number for 59 % of the decisions, which count as 0; most often: no"
    said = [refused, "snr: one; two", "snr: of rloo"]
    _table(tmp_path / "snr.csv", "-o", tmp_path / "all.csv")
    for file in (tmp_path / "snr.csv", tmp_path / "all.csv"):
        for options in ((), ("-o", str(tmp_path / "all.tex"))):
            printed = CliRunner().invoke(cli, ["bench", "table", str(file), *options]).stdout
            legend = _table(file, *options)["legend"]
            assert [line for line in legend if line in said] == said and all(line in printed for line in said)
        assert all(line.replace("%", r"\%") in _untyped((tmp_path / "all.tex").read_text()) for line in said)
    assert _table(tmp_path / "snr.csv", "-m", "rloo")["legend"][-2:] == said[1:]
    assert _table(tmp_path / "snr.csv", "-q", "snr less")["legend"][-2:] == said[:2]  # of max_rl alone


def test_counts_are_written_as_their_benchmarks_write_them(tmp_path: Path) -> None:
    """Events to 90 % were `6.62e+03 (2.3e+03 to inf)`, where `bench train` has 6,624 (2,304 to not reached)."""
    none = math.nan
    counts = {"one": (6624.0, 2304.0, math.inf), "none": (math.inf,) * 3, "two": (1e4, none, none),
              "all": (math.inf, 4e3, math.inf)}  # fmt: skip
    numbers = [Measured(name, "events to 90 %", x, low, high, world="t") for name, (x, low, high) in counts.items()]
    save_numbers(of_run(numbers, "train", lambda number: {}), tmp_path / "train.csv")
    cost = [Measured("one", "cost", 1024.0, world="normal")]
    save_numbers(of_run(cost, "snr", lambda number: {}), tmp_path / "snr.jsonl")
    found = _table(
        tmp_path / "train.csv", tmp_path / "snr.jsonl", "-q", "events to 90 %,cost", "-o", tmp_path / "t.tex",
        "--width", "200",
    )  # fmt: skip
    assert [tuple(row.values()) for row in found["rows"]] == [
        ("one", "6,624 (2,304 to not reached)", "1,024"), ("none", "not reached", "–"), ("two", "10,000", "–"),
        ("all", "not reached (4,000 to not reached)", "–"),
    ]  # fmt: skip
    text = (tmp_path / "t.tex").read_text()
    assert text.count(r"{\scriptsize (") == 2 and "all & not reached & --" in text


def test_quantities_of_one_name_are_those_of_their_benchmark(tmp_path: Path) -> None:
    """A slope of `bench snr` conflicted with one of `bench truth`, and was explained as that."""
    files = []
    for bench, value in (("truth", 0.9), ("snr", -0.5), ("bias", 0.1)):
        quantities = ["sign"] if bench == "bias" else ["slope", "sign"] if bench == "truth" else ["slope"]
        numbers = [Measured("rloo", name, value, world="a", group_size=8) for name in quantities]
        save_numbers(of_run(numbers, bench, lambda number: {}), tmp_path / f"{bench}.csv")
        files.append(tmp_path / f"{bench}.csv")
    found = _table(*files, "-q", "slope, sign")
    assert found["rows"] == [
        {"method": "rloo", "truth slope": "0.9", "snr slope": "-0.5", "truth sign": "0.9", "bias sign": "0.1"}
    ]
    about = dict(line.split(": ", 1) for line in found["legend"][3:])
    assert about["truth slope"].startswith("of the advantage") and about["snr slope"].startswith("of log SNR")
    assert "none centred" in about["truth sign"] and "A° is an advantage less" in about["bias sign"]
    assert list(_table(*files, "-q", "snr slope")["rows"][0]) == ["method", "snr slope"]
    save_numbers(of_run([Measured("rloo", "slope", 7.0, world="a", group_size=8)], "snr", lambda number: {}),
                 tmp_path / "other.csv")  # fmt: skip
    assert _table(*files, tmp_path / "other.csv", "-q", "sign")  # a conflict of what is not shown is none
    marked = [Measured("rloo", "slope", -0.5, world="a", group_size=8, mark="‡")]  # beside another first scheme
    save_numbers(of_run(marked, "snr", lambda number: {}), tmp_path / "marked.csv")
    assert _table(*files, tmp_path / "marked.csv", "-q", "snr slope")["rows"] == [
        {"method": "rloo", "snr slope": "-0.5"}
    ]
    both = CliRunner().invoke(cli, ["bench", "table", *map(str, files), str(tmp_path / "other.csv"), "-q", "slope"])
    assert both.exit_code == 1 and "other.csv:2 has slope 7 of rloo, and" in both.stderr


def test_quantities_are_checked_as_methods_are(tmp_path: Path) -> None:
    """`-q bias,nosuch` dropped one silently, and `-q "bias, cosine"` the other by its space."""
    numbers = [Measured("rloo", name, 0.5, world="a", group_size=3) for name in ("bias", "cosine", "rank")]
    save_numbers(of_run(numbers, "bias", lambda number: {}), tmp_path / "bias.csv")
    assert list(_table(tmp_path / "bias.csv", "-q", "bias, cosine")["rows"][0]) == ["method", "bias", "cosine"]
    assert list(_table(tmp_path / "bias.csv")["rows"][0]) == ["method", "bias", "cosine"]  # the direction, too
    for asked, words in {
        "bias,cosin": "have no quantity 'cosin'. Did you mean cosine?",
        "x": "have no quantity 'x'. There are 3: bias, cosine, rank.",
    }.items():
        refused = CliRunner().invoke(cli, ["bench", "table", str(tmp_path / "bias.csv"), "-q", asked])
        assert refused.exit_code == 1 and words in refused.stderr, refused.output


def test_nine_numbers_of_three_worlds_fit_one_tabular(tmp_path: Path) -> None:
    """Columns were cut into blocks of three, below a caption of 15 lines."""
    worlds = ("hire-additive", "stop-rewards", "relay-and")
    numbers = [
        Measured("turn_baseline", name, 0.125, world=world, group_size=5)
        for name in ("bias", "cosine", "relative") for world in worlds
    ]  # fmt: skip
    save_numbers(of_run(numbers, "bias", lambda number: {}), tmp_path / "bias.csv")
    _table(tmp_path / "bias.csv", "-o", tmp_path / "all.tex", "--width", "640")
    text = (tmp_path / "all.tex").read_text()
    assert text.count(r"\begin{tabular}") == 1 and r"\multicolumn{3}{c}{cosine}" in text
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}\cmidrule(lr){8-10}" in text
    words = "Relative bias of the policy gradient; cosine of the mean and the true gradient; variance of the gradient"
    assert rf"\caption{{{words} over its squared mean, by world (bench bias: groups of 5)}}" in text
    assert text.index(r"\end{tabular}") < text.index("1 is the same direction") < text.index(r"\end{minipage}")


def test_a_column_has_one_number_of_decimals(tmp_path: Path) -> None:
    """39 stood beside 29.2, and a difference of 0.000162 beside the half width 0.001 of its band."""
    values = {"rloo": (39.0, 29.21), "grpo": (13.52, 1.0)}
    exact = [Measured(name, "relative", x, world="a", group_size=k) for name, of in values.items()
             for k, x in zip((2, 4), of, strict=True)]  # fmt: skip
    rest = (0.1, 0.23, 1.0, 0.3, 640.0, 2, "full", 0.0, 1.0, "")
    points = [Point(name, name, 10, 8, x, x - half, x + half, *rest) for name, x, half in
              (("rloo", 0.23, 0.0131), ("grpo", 0.2274, 0.009))]  # fmt: skip
    less = [Difference(name, "rloo", 10, 8, x, x - half, x + half, 80, 200) for name, x, half in
            (("grpo", -0.00261, 0.001), ("c3", 0.000162, 0.0093))]  # fmt: skip
    report = Report(points, [], {}, differences=less)
    assert [line.split()[2:4] for line in str(report).splitlines()[1:]] == [["0.230", "(0.013)"], ["0.227", "(0.009)"]]
    for bench, numbers in (("bias", exact), ("snr", of_snr(report))):
        for kind in ("csv", "tex"):
            save_numbers(of_run(numbers, bench, lambda number: {}), tmp_path / f"{bench}.{kind}")
    rows = re.findall(r"^\w+ & [0-9].*[0-9]", (tmp_path / "bias.tex").read_text(), re.MULTILINE)
    assert rows == ["rloo & 39.00 & 29.21", "grpo & 13.52 & 1"]  # which is exact
    of_less = (tmp_path / "snr.tex").read_text().partition("less rloo's")[2]
    assert "$-0.003$ (0.001)" in of_less and "$+0.0002$ (0.009)" in of_less
    found = _table(tmp_path / "bias.csv", tmp_path / "snr.csv")["rows"]
    assert [row["relative, groups of 2"] for row in found] == ["39.00", "13.52", "–"]
    assert found[1]["snr less that of rloo"] == "-0.003 (-0.004 to -0.002)"
    of_form = _table(tmp_path / "snr.csv", "-q", "closed form")["rows"][0]
    assert "0.230" in of_form.values() and "0.230 (1.00" in _printed(report)  # 0.23 stood beside 0.230


def test_differences_stand_in_the_table_and_numbers_in_its_file(tmp_path: Path) -> None:
    """Paired differences were in no table, and the file had one string for a number, its interval and its marks."""
    base = [Measured("rloo", "snr", 0.5, 0.25, 0.75, 0.99, world="normal", length=10)]
    other = [base[0]._replace(method="grpo", value=0.25, low=0.125, high=0.375)]
    less = [Measured("grpo", "snr", x, *ends, 0.99, 8, "rloo", "normal", length=t) for t, (x, *ends) in
            {10: (-0.25, -0.5, 0.125), 30: (1e-9, math.nan, math.nan)}.items()]  # fmt: skip
    ahead = [Measured("grpo", "ahead", 2.0, world="t")]
    for name, numbers in (("snr", [*base, *other, *less]), ("train", ahead)):
        save_numbers(of_run(numbers, name, lambda number: {}), tmp_path / f"{name}.csv")
    files = [tmp_path / f"{name}.csv" for name in ("snr", "train")]
    differences = {
        "snr less that of rloo, T = 10": "-0.250 (-0.500 to +0.125)",
        "snr less that of rloo, T = 30": "equal",
    }
    found = _table(*files, "-o", tmp_path / "all.csv")
    assert found["rows"][1] == {"method": "grpo", "snr": "0.250 (0.125 to 0.375)"} | differences
    assert any(line.startswith("snr less that of rloo: on the traces that both") for line in found["legend"])
    assert _table(*files, "-q", "snr less", "-m", "grpo")["rows"] == [{"method": "grpo"} | differences]
    assert _table(*files, "-q", "snr")["rows"][0] == {"method": "rloo", "snr": "0.500 (0.250 to 0.750)"}
    assert pyarrow.csv.read_csv(files[0]).to_pylist() == pyarrow.csv.read_csv(tmp_path / "all.csv").to_pylist()
    assert _table(*files, "-m", "rloo", "-q", "ahead")["rows"] == [{"method": "rloo", "ahead": "–"}]  # it was an error
    assert list(_table(*files, "-m", "rloo")["rows"][0]) == ["method", "snr"]


def test_equal_numbers_are_marked_in_files_and_have_no_brackets(tmp_path: Path) -> None:
    """Rows that the screen had as "equal" held 1.1e-10, with no mark; a caption told of brackets that no cell had."""
    one = Measured("rloo", "snr", 1.1e-10, -1e-10, 1e-9, 0.99, 8, "grpo", "normal", 8, 10, shown="equal")
    numbers = [one, one._replace(length=30, mark="‡"), one._replace(length=100, value=0.5, high=0.75, shown="")]
    save_numbers(of_run(numbers, "snr", lambda number: {}), tmp_path / "snr.csv")
    marks = [row["mark"] for row in pyarrow.csv.read_csv(tmp_path / "snr.csv").to_pylist()]
    assert marks == ["equal", "equal ‡", ""]
    found = _table(tmp_path / "snr.csv", "-q", "snr less", "-o", tmp_path / "all.csv")
    assert [*found["rows"][0].values()][1:3] == ["equal", "equal ‡"]
    assert (
        pyarrow.csv.read_csv(tmp_path / "all.csv").to_pylist() == pyarrow.csv.read_csv(tmp_path / "snr.csv").to_pylist()
    )
    assert brackets(numbers[:2]) == [] and brackets([one._replace(shown="0.5 (0.1)")]) != []


def test_what_has_no_room_stands_in_a_table_of_each_benchmark(tmp_path: Path) -> None:
    """Thirteen columns took 390 characters, and a page of two columns had one length of SNR and then the others."""
    bias = [Measured("rloo", name, 0.5, world=w, group_size=3) for name in ("bias", "cosine") for w in ("a1", "a2")]
    snr = [Measured("rloo", "snr", 0.12345, 0.12, 0.13, 0.99, world="normal", length=10**i) for i in range(1, 5)]
    for name, numbers in (("bias", bias), ("snr", snr)):
        save_numbers(of_run(numbers, name, lambda number: {}), tmp_path / f"{name}.csv")
    call = ["bench", "table", str(tmp_path / "bias.csv"), str(tmp_path / "snr.csv")]
    for room, tables in ((200, 1), (120, 2), (90, 3)):
        shown = CliRunner().invoke(cli, call, env={"COLUMNS": str(room)}).stdout
        assert len(re.findall("^ method", shown, re.MULTILINE)) == tables, shown
        assert max(map(len, shown.partition("\nbias,")[0].splitlines())) <= room
    more = [one._replace(world=f"a longer name {i}") for i in range(5) for one in bias[::2]]
    save_numbers(of_run([*bias, *more], "bias", lambda number: {}), tmp_path / "bias.csv")
    _table(*call[2:], "-o", tmp_path / "all.tex", "--width", "640")
    floats = (tmp_path / "all.tex").read_text().split(r"\begin{table")[1:]
    assert [text.count("method & T~=~10 & T~=~100 & T~=~1,000 & T~=~10,000") for text in floats] == [0, 0, 1]
    assert all(text.count(r"\begin{tabular}") == 1 for text in floats)  # one float was longer than a page
    labels = [re.search(r"\\label{(.*)}", text)[1] for text in floats]  # type: ignore[index]
    assert labels == ["tab:all-bias", "tab:all-bias-2", "tab:all-snr"]
    captions = [re.search(r"\\caption{(.*)}\n", text)[1] for text in floats]  # type: ignore[index]
    assert captions[0].startswith("Relative bias") and captions[1].startswith("Cosine of the mean and")  # what each has
    assert captions[1].endswith(r"; notes: Table~\ref{tab:all-bias}") and "ref" not in captions[0] + captions[2]
    assert ["1 is the same direction" in text for text in floats] == [True, False, False]
    assert ["Negative: the advantage has the wrong sign" in text for text in floats] == [False, False, True]
    _table(*call[2:], "-o", tmp_path / "all.tex", "--width", "240")
    narrow = (tmp_path / "all.tex").read_text().split(r"\begin{table")[1:]
    assert [re.findall(r"\\label{tab:all-(.*)}", text) for text in narrow] == [["bias"], ["bias-2"], ["snr"]]
    assert [text.count(r"\begin{tabular}") for text in narrow] == [3, 3, 2]


def test_floats_are_few_and_captions_name_what_all_of_a_float_is_of(tmp_path: Path) -> None:
    """At 240 pt twenty floats came out, none of which named its world, and headers repeated captions."""
    made = [
        Measured(f"method_{i}", "snr", 0.1234, 0.1123, 0.1345, 0.99, world=world, group_size=k, length=n)
        for world in ("one", "two") for k in (2, 4) for n in (10, 30, 100) for i in range(4)
    ]  # fmt: skip
    save_numbers(of_run(made, "snr", lambda number: {"seed": 0}), tmp_path / "a.csv")

    def floats(*further: str) -> tuple[list[str], list[str]]:
        _table(tmp_path / "a.csv", "-o", tmp_path / "a.tex", "--width", "240", *further)
        text = (tmp_path / "a.tex").read_text().partition("% needs")[2]
        return re.findall(r"\\caption{(.*)}\n", text), text.split(r"\end{table}")[:-1]

    captions, texts = floats()
    for world, caption, text in zip(("one", "two"), captions, texts, strict=True):
        of = "Signal to noise of one decision's advantage, by group size and trace length"
        assert caption.partition("; notes")[0] == f"{of} (bench snr: {world}, seed 0)"
        assert re.findall(r"{c}{(.*?)}", text) == ["groups of 2", "groups of 4"] and "(0.112 to" in text
    captions, texts = floats("--no-intervals")
    assert len(captions) == 1 and "by world, group size and trace length (bench snr: seed 0)" in captions[0]
    assert " to 0" not in texts[0] and "interval" not in texts[0] and "0.123" in texts[0]


def test_captions_of_latex_are_short_and_notes_are_no_advice_for_a_shell(tmp_path: Path) -> None:
    """Four benchmarks had one caption of a hundred words, and notes said which option to try."""
    values = (
        "values: " + "true ones plus errors as large as the effect of a decision, where a scheme names no others, " * 3
    )
    row = Measured("rloo", "", 0.5, world="w", group_size=4)
    for bench, quantity, given in (("bias", "bias", ""), ("snr", "snr", values)):
        numbers = of_run(
            [row._replace(quantity=quantity)], bench, lambda n: {f"setting {i}": i for i in range(12)},
            lambda method, given=given: given,
            lambda n: ["a trains as b. To see: --optimizer sgd", "try; see --seeds 2"],
        )  # fmt: skip
        save_numbers(numbers, tmp_path / f"{bench}.csv")
        save_numbers(numbers, tmp_path / f"{bench}.tex")
    found = _table(tmp_path / "bias.csv", tmp_path / "snr.csv", "-o", tmp_path / "all.tex")
    assert "snr: a trains as b. To see: --optimizer sgd" in found["legend"]
    text = (tmp_path / "all.tex").read_text()
    captions = re.findall(r"\\caption{(.*)}", text)
    assert len(captions) == 2 and all(len(caption.split()) <= 60 for caption in captions), captions
    assert captions[0].startswith("Relative bias of the policy gradient (bench bias: w, groups of 4, setting 0 0, ")
    assert captions[1] == "Signal to noise of one decision's advantage"
    assert r"bench snr: w, groups of 4, setting 0 0" in text and text.count("names no others") == 3
    for file in ("all.tex", "snr.tex"):
        told = (tmp_path / file).read_text()
        assert "a trains as b." in told and "try" in told and "optimizer" not in told and "seeds 2" not in told


def test_what_no_run_reached_is_so_in_json_too(tmp_path: Path) -> None:
    """JSON has no infinity: "not reached" became "–", and 500 to not reached had no interval."""
    counts = {"none": (math.inf,) * 3, "half": (900.0, 500.0, math.inf), "one": (900.0, math.nan, math.nan)}
    numbers = [Measured(name, "events to 90 %", x, low, high, world="t") for name, (x, low, high) in counts.items()]
    for suffix in ("csv", "jsonl"):
        save_numbers(of_run(numbers, "train", lambda number: {}), tmp_path / f"train.{suffix}")
        rows = _table(tmp_path / f"train.{suffix}", "-q", "events to 90 %")["rows"]
        assert [row["events to 90 %"] for row in rows] == ["not reached", "900 (500 to not reached)", "900"]


def test_what_is_no_result_of_a_benchmark_is_named(tmp_path: Path) -> None:
    names = list(Measured._fields[:-1])
    numbers = [Measured("rloo", "bias", value, world="a", group_size=3) for value in (0.5, 0.25)]
    for number, file in zip(numbers, ("one.csv", "two.csv"), strict=True):
        save_numbers([number], tmp_path / file)
    (tmp_path / "other.csv").write_text("method,value\nrloo,1\n")
    (tmp_path / "text.csv").write_text(",".join(names) + "\nrloo,bias,half" + "," * (len(names) - 3) + "\n")
    for files, words in {
        "one.csv two.csv": "two.csv:2 has bias 0.25 of rloo, and",
        "other.csv": "other.csv:2 has no quantity; expected a table that `credit bench bias`",
        "text.csv": "text.csv:2 has value 'half'; expected a number",
    }.items():
        paths = [str(tmp_path / file) for file in files.split()]
        refused = CliRunner().invoke(cli, ["bench", "table", *paths])
        assert refused.exit_code == 1 and words in refused.stderr, refused.output


def test_a_name_stands_for_one_text_of_its_module_and_a_function_for_one_name(tmp_path: Path) -> None:
    """A function was edited between two runs, and one row had numbers of both."""
    made = "orchestration-credit 0.1.0; credit bench bias -m rloo -m 'Trim (ours)=own:trim'; own.py sha256 {}"
    calls = {"one": made.format("a1"), "two": made.format("b2"), "third": made.format("a1").replace("m (o", "m(o")}
    for size, (file, made_by) in enumerate(calls.items(), 2):
        name = "Trim(ours)" if file == "third" else "Trim (ours)"
        numbers = [Measured(method, quantity, 1.0, world="relay-and", group_size=size, bench="bias", source=made_by)
                   for method in ("rloo", name) for quantity in ("bias", "answered")]  # fmt: skip
        save_numbers(numbers, tmp_path / f"{file}.csv")
    one, two, third = (str(tmp_path / f"{file}.csv") for file in calls)
    words = f"Trim (ours) is of own.py sha256 a1 in {one} and of own.py sha256 b2 in {two}"
    picture = ["-o", str(tmp_path / "a.svg")]
    for call in (["table", one, two], ["plot", one, two, *picture], ["table", one, two, "-m", "T=own:trim"]):
        refused = CliRunner().invoke(cli, ["bench", *call])
        assert refused.exit_code == 1 and words.partition(" is ")[2] in refused.stderr, refused.output
        assert "Imports of own.py are not covered" in refused.stderr
        accepted = CliRunner().invoke(cli, ["bench", *call, "--edited"])
        assert accepted.exit_code == 0 and words.partition(" is ")[2] in accepted.output, accepted.output
    others = CliRunner().invoke(cli, ["bench", "table", one, two, "-m", "rloo"])
    assert others.exit_code == 0 and "sha256" not in others.output
    hint = CliRunner().invoke(cli, ["bench", "table", one, third])
    assert "Trim (ours) and Trim(ours) are both own:trim; -m 'NAME=own:trim' gives them one name" in hint.stderr
    joined = CliRunner().invoke(cli, ["bench", "table", one, third, "-m", "T=own:trim"])
    assert joined.exit_code == 0 and not joined.stderr and "(ours)" not in joined.stdout, joined.output


def test_a_name_stands_for_one_function_and_one_world(tmp_path: Path) -> None:
    """Two functions of one module under one name were one row of a table; a joined file lost which they were."""
    calls = {
        "one": ("-m rloo,Ours=own:first", "Ours"), "two": ("-m 'Our Ours=own:first' -m Ours=own:other", "Ours"),
        "three": ("-m Ours=own:first --world=W=own:hive", "Ours"),
        "four": ("-mOurs=own:first --world W=own:dig", "Ours"),
        "first": ("-m own:first", "own:first"), "other": ("-m own:other", "own:other"),
        "older": ("", "Ours"),
    }  # fmt: skip
    path = {file: str(tmp_path / f"{file}.csv") for file in calls}
    for size, (file, (call, name)) in enumerate(calls.items(), 2):
        made_by = f"orchestration-credit 0.1.0; credit bench bias {call}; own.py sha256 a1" * bool(call)
        world = "W" if "W=" in call else "relay-and"
        number = Measured(name, "bias", 1.0, world=world, group_size=size, bench="bias", source=made_by)
        save_numbers([number], Path(path[file]))

    def run(call: list[str]) -> Result:
        return CliRunner().invoke(cli, ["bench", *call])

    more = ["--edited"], ["-o", str(tmp_path / "a.svg")]
    for (one, a), (two, b) in (
        (("one", "Ours is own:first"), ("two", "own:other")),
        (("three", "W is own:hive"), ("four", "own:dig")),
    ):
        words = f"{a} in {path[one]} and {b} in {path[two]}; expected one function or world of a name"
        for command, rest in zip(("table", "plot"), more, strict=True):
            refused = run([command, path[one], path[two], *rest])
            assert refused.exit_code == 1 and words in refused.stderr, refused.output
    for files in (("one", "three"), ("one", "older")):
        joined = run(["table", *(path[file] for file in files)])
        assert joined.exit_code == 0 and not joined.stderr, joined.output
    apart = run(["table", path["one"], path["two"], "-m", "A=own:first", "-m", "B=own:other"])
    assert apart.exit_code == 0 and "Ours" not in apart.output
    for file in ("first", "other"):
        path[file] = str(tmp_path / f"{file}2.csv")
        call = ["table", str(tmp_path / f"{file}.csv"), "-m", f"My own=own:{file}", "-o", path[file]]
        assert run(call).exit_code == 0
    refused = run(["table", path["first"], path["other"]])
    assert refused.exit_code == 1 and "My own is own:first in" in refused.stderr, refused.output


def test_numbers_that_differ_by_rounding_agree(tmp_path: Path) -> None:
    """4.4e-16 beside 5.1e-16 was a contradiction."""
    row = Measured("rloo", "bias", 0.0, world="w", group_size=3, bench="bias")
    for first, second, agree in (
        (4.4e-16, -5.13402e-16, True), (0.5, 0.5 + 1e-8, True), (3e5, 3e5 + 0.01, True), (math.nan, math.nan, True),
        (0.5, 0.50001, False), (2e-9, 3e-9, False), (0.5, math.nan, False), (3e5, 3e5 + 1, False),
    ):  # fmt: skip
        for file, value in (("one", first), ("two", second)):
            save_numbers([row._replace(value=value), row._replace(group_size=4)], tmp_path / f"{file}.csv")
        joined = CliRunner().invoke(
            cli, ["bench", "table", *(str(tmp_path / f"{file}.csv") for file in ("one", "two"))]
        )
        assert (joined.exit_code == 0) is agree and ("expected one number" in joined.output) is not agree, joined.output


@pytest.mark.slow
def test_one_name_of_a_function_of_ones_own_stands_in_all_outputs(tmp_path: Path) -> None:
    """Tables and figures had "module:function" alone, and a paper's name was written into each of them by hand."""
    name, calls = "Q75 (ours)", {
        "bias": "--world relay-and --group-size 2",
        "truth": "--world pivotal --events 30 --traces 80",
        "snr": f"--quick --lengths 10,30 -o {tmp_path}/snr",
        "train": "--tasks additive --seeds 1 --steps 2 --learning-rates 0.2",
    }  # fmt: skip
    for bench, call in calls.items():
        of = ["bench", bench, "-m", "rloo", "-m", f"{name}=estimators:dr_grpo", *call.split()]
        plain = CliRunner().invoke(cli, [*of, "--json"])
        assert plain.exit_code == 0, plain.output
        (sentence,) = json.loads(plain.stdout)["to_write"][:1]
        assert f"for {name}" in sentence
        for suffix in ("csv", "tex"):
            more = ["--table", str(tmp_path / f"{bench}.{suffix}"), "--plot", str(tmp_path / f"{bench}.svg")]
            shown = CliRunner().invoke(cli, [*of, *more])
            assert name in shown.stdout and "estimators:" not in shown.stdout.replace("-m estimators:dr_grpo", "")
        texts = [(tmp_path / f"{bench}.{suffix}").read_text() for suffix in ("csv", "tex", "svg")]
        texts = [text.replace(f"{name}=estimators:dr_grpo", "") for text in texts]  # the command that made it
        assert all(name in text and "estimators:" not in text.replace("-m estimators:", "") for text in texts), bench
    file, own = str(tmp_path / "plain.csv"), "estimators:dr_grpo"
    CliRunner().invoke(cli, ["bench", "bias", "-m", own, "--world", "relay-and", "-o", file])
    of_files = CliRunner().invoke(cli, ["bench", "table", file, "-m", f"{name}={own}"])
    assert name in of_files.stdout, of_files.output


WORLDS = """
import dataclasses
from credit.bench.training.learning_tasks import TASKS
from graphs.worlds import TeamWorld
from graphs.worlds.micro.examples import MICRO
dig = dataclasses.replace(MICRO["relay-and"], name="of digging")
hive = TeamWorld("hierarchical", agents=6, events=60, kind="free_rider")
task = dataclasses.replace(TASKS["pivotal"](), name="of tasks")
def noise(rng, shape): return rng.laplace(size=shape)
"""


@pytest.mark.slow
def test_one_name_of_a_world_of_ones_own_stands_in_all_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--world Dig=worlds:dig` was no module, and a `Micro`'s name stood nowhere."""
    (tmp_path / "of_worlds.py").write_text(WORLDS)
    monkeypatch.chdir(tmp_path)
    calls = {
        "bias": ("--world", "dig", "of digging", "--group-size 2"),
        "truth": ("--world", "hive", "", "--traces 80"),
        "snr": ("--world", "noise", "", "--quick --lengths 10,30"),
        "train": ("--tasks", "task", "of tasks", "--seeds 1 --steps 2 --learning-rates 0.2"),
        "robustness": ("--world", "hive", "", ""),
    }
    for bench, (option, world, own, rest) in calls.items():
        name, text = f"{world} (ours)", f"of_worlds:{world}"
        files = [f"{bench}.csv", f"{bench}.svg"] if bench != "robustness" else []
        more = [part for pair in zip(("--table", "--plot"), files, strict=False) for part in pair]
        call = ["bench", bench, "-m", "rloo", option]
        found = CliRunner().invoke(cli, [*call, f"{name}={text}", *rest.split(), *more, "--json"])
        assert found.exit_code == 0, found.output
        texts = [found.stdout, *(Path(file).read_text() for file in files)]
        # The command that made it, and the definition of a world by its function.
        texts = [re.sub(f"({re.escape(name)}=|that of |as in ){text}", "", one) for one in texts]
        assert all((name in one or bench == "snr") and text not in one for one in texts), bench
        if own:
            shown = CliRunner().invoke(cli, [*call, text, *rest.split()]).stdout
            assert f"Conditions: {own}, groups of " in shown and text not in shown
    refused = CliRunner().invoke(cli, ["bench", "bias", "-m", "rloo", "--world", "relay-and=of_worlds:dig"])
    assert refused.exit_code == 1 and "expected a NAME before '=' which no world of the library has" in refused.stderr
    assert shown_worlds(["of_worlds:dig", "of_worlds:hive"], Micro, ["of digging"]) == [
        "of_worlds:dig",
        "of_worlds:hive",
    ]


def test_what_is_missing_is_told_once_in_whole_sentences_and_by_the_word_of_its_cell(tmp_path: Path) -> None:
    """24 lines differed in the method alone, a note ended within brackets, and said "left out" of what was refused."""
    why = "world 'w' has 9 groups; expected at most 8 (--most-batches)"
    made = [
        Measured(name, quantity, math.nan if k == 8 else 0.5, world="w", group_size=k, bench="bias",
                 why=(why if name != "c" else "none is known") * (k == 8))
        for quantity in ("bias", "cosine", "answered") for k in (2, 8) for name in "abcd"
    ]  # fmt: skip
    made = [n._replace(value=0.0) if (n.method, n.quantity, n.group_size) == ("c", "answered", 8) else n for n in made]
    save_numbers(made, tmp_path / "a.csv")
    call = ["bench", "table", str(tmp_path / "a.csv"), "-o", str(tmp_path / "a.tex")]
    told = CliRunner().invoke(cli, call).stdout.splitlines()
    assert [line for line in told if " columns: " in line] == [
        f"a, b, d have no bias, cosine in 1 of 2 columns: {why}",
        "c has no bias, cosine in 1 of 2 columns: none is known",
    ]
    notes = (tmp_path / "a.tex").read_text().splitlines()
    assert r"left out: a, b, d in bias, cosine (world 'w' has 9 groups; expected at most 8)\par" in notes
    assert r"refused: c in bias, cosine (none is known)\par" in notes
    assert any("& refused" in line for line in notes)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(
    "bench", ["snr --quick --lengths 10,30", "truth --traces 80 --world additive", "train --quick --steps 2"]
)
def test_what_ones_own_function_does_with_event_rewards_is_not_measured_without_any(bench: str, tmp_path: Path) -> None:
    """Nothing told that truth, snr and train pay no event, where `bias` does; then papers gave this advice too."""
    for method, told in (("estimators:rloo", 1), ("rloo", 0)):
        call = ["bench", *bench.split(), "-m", f"grpo,{method}", "--table", str(tmp_path / f"{told}.tex")]
        found = CliRunner().invoke(cli, call)
        assert found.exit_code == 0, found.output
        assert "event_reward" not in (tmp_path / f"{told}.tex").read_text().replace("\\", "")
        assert found.stdout.count("no event has a reward of its own here") == told, bench


def test_a_joint_table_is_no_wider_than_a_page_and_split_between_worlds(tmp_path: Path) -> None:
    """Tables of three worlds and sizes were 656 pt wide, or ended within a world."""
    made = [
        Measured(f"a_method_of_length_{i}", "snr", 0.1234, 0.1123, 0.1345, 0.99, world=world, length=n, bench="snr")
        for world in ("one", "two", "three") for n in (10, 30, 100) for i in range(8)
    ]  # fmt: skip
    save_numbers(made, tmp_path / "a.csv")
    call = ["bench", "table", str(tmp_path / "a.csv"), "-o", str(tmp_path / "a.tex")]
    assert CliRunner().invoke(cli, call).exit_code == 0
    text = (tmp_path / "a.tex").read_text()
    heads = [re.findall("one|two|three", table.split(r"\midrule")[0]) for table in text.split(r"\begin{tabular}")]
    assert heads[1:] == [["one"], ["two"], []] and "(bench snr: three); notes" in text  # which a float has alone
    assert text.count(r"\begin{tabular}{lrrr}") == 3


def test_no_column_is_left_alone_where_parts_can_be_even() -> None:
    """Four quantities where three had room were three and one."""
    columns = [Column("bias", name, "", {}, []) for name in ("bias", "cosine", "error", "rank", "sign", "variance")]
    for many, even in ((4, [2, 2]), (5, [3, 2]), (6, [3, 3])):
        blocks = in_blocks(columns[:many], 3.0, len)
        assert sorted(map(len, blocks), reverse=True) == even and list(itertools.chain(*blocks)) == columns[:many]
    pair = [column._replace(below=below) for column in columns[:3] for below in ("two", "three")]
    assert {len(block) for block in in_blocks(pair, 5.0, len)} == {4, 2}  # none within a quantity


def test_python_takes_and_shows_worlds_as_commands_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "NAME=module:world" was no module, and a `Micro` was called by its file."""
    more = 'other = dataclasses.replace(MICRO["stop-rewards"], name="of digging")\n'
    (tmp_path / "of_python.py").write_text(WORLDS + more)
    monkeypatch.chdir(tmp_path)
    assert measure("rloo", "of_python:dig", 2).world == "of digging"
    assert measure("grpo", "D=of_python:dig", 2).relative == measure("grpo", "relay-and", 2).relative
    assert measure("grpo", "D=of_python:other", 2).relative == measure("grpo", "stop-rewards", 2).relative
    assert draw("D=of_python:hive", traces=16, group_size=8).world == "D"
    effort = Effort(traces=400, rows=4_000, full=2)
    assert run(["rloo"], lengths=[10], group_sizes=[2], world="skewed=of_python:noise", effort=effort).world == "skewed"


def test_a_name_of_ones_own_is_none_of_the_library() -> None:
    """A call also takes each name once: two functions under one would be one curve."""
    for methods, why in (
        (["dr_mas=estimators:rloo"], "method 'dr_mas=estimators:rloo': expected a NAME before '='"),
        (["=estimators:rloo"], "method '=estimators:rloo': expected a NAME before '='"),
        (["a=estimators:rloo", "a=estimators:grpo"], "'a' is given twice"),
    ):
        refused = CliRunner().invoke(cli, ["bench", "bias", *(x for name in methods for x in ("-m", name))])
        assert refused.exit_code in (1, 2) and why in refused.stderr, refused.output
    again = pickle.loads(pickle.dumps(own_name("a=estimators:rloo")))
    assert (again, function_of(again)) == ("a", "estimators:rloo")


def test_conditions_of_latex_stand_in_header_rows_and_captions_name_what_they_are_of() -> None:
    """Each of six columns said "relay-and" above "groups of 2", and captions were a list of names."""
    numbers = [
        Measured("rloo", "cosine", 0.5, world=world, group_size=k, bench="bias")
        for world in ("relay-and", "stop-rewards") for k in (2, 3, 4)
    ]  # fmt: skip
    text = latex(numbers, "t")
    assert r"\caption{Cosine of the mean and the true gradient, by world and group size}" in text
    assert r" & \multicolumn{3}{c}{relay-and} & \multicolumn{3}{c}{stop-rewards} \\" in text
    assert "\n\\cmidrule(lr){2-4}\\cmidrule(lr){5-7}\nmethod & groups of 2 & groups of 3 & groups of 4 & groups" in text


def test_settings_that_a_world_has_alone_stand_in_no_head(tmp_path: Path) -> None:
    """Heads of three worlds had their topology, agents and events, for which a column of a paper has no room."""
    one = Measured("rloo", "slope", 1.0, world="pivotal", group_size=8, bench="truth", settings="agents 5, seed 0")
    squad = one._replace(world="Squad", settings="agents 4, seed 0")
    numbers = [
        n._replace(quantity=name) for name in ("slope", "sign") for n in (one, one._replace(world="heavy"), squad)
    ]
    text = latex(numbers, "t", page=240)
    assert text.count("method & pivotal & heavy & Squad") == 2 and text.count("agents") == 2
    assert "pivotal, heavy: agents 5; Squad: agents 4" in text.partition("end{table}")[0]
    save_numbers(numbers, tmp_path / "t.csv")
    shown = CliRunner().invoke(cli, ["bench", "table", str(tmp_path / "t.csv"), "-q", "slope,sign"]).stdout
    assert "truth: pivotal, heavy: agents 5; Squad: agents 4\n" in shown and shown.count("agents 5") == 1
    other = latex([*numbers, *(n._replace(settings="agents 5, seed 1") for n in numbers[:1])], "t")
    assert "seed 0" in other.partition("midrule")[0] and "seed 1" in other.partition("midrule")[0]
