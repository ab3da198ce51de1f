"""`credit bench train`: rows, files in two formats, and resuming."""

from __future__ import annotations

import collections
import csv
import importlib
import itertools
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from credit.bench import bias, snr
from credit.bench.against_truth import draw
from credit.bench.refusals import LeftOut
from credit.bench.training import training_loop, training_runs
from credit.bench.training.learning_tasks import LearningTask
from credit.bench.training.training_comparison import Cell, _signed_rank, cells, comparisons, least_seeds, mean_ranks
from credit.bench.training.training_files import _Row
from credit.bench.training.training_loop import TrainingSettings
from credit.bench.training.training_runs import run_training
from credit.cli import cli
from credit.cli.benchmarks.bench_train import _alike, _edge, count_text, within
from credit.plot import draw_training
from graphs.atomic import locked
from graphs.errors import CreditError, MissingExtraError

TINY = TrainingSettings(steps=3, groups=2, group_size=2)
ONE = (0.1,)


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.slow
def test_a_run_resumes_from_its_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"rows{suffix}"
    first = run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, output=path)
    trained: list[int] = []
    plain = training_runs._row

    def counted(*args: Any) -> dict[str, Any]:
        trained.append(args[2])
        return plain(*args)

    monkeypatch.setattr(training_runs, "_row", counted)
    again = run_training(["zero"], ["pivotal"], 3, TINY, learning_rates=ONE, output=path)
    assert again[:2] == first and trained == [2]
    with pytest.raises(CreditError, match="holds rows of settings"):
        run_training(["zero"], ["pivotal"], 1, TrainingSettings(steps=4), learning_rates=ONE, output=path)
    path.write_bytes(b"{")
    with pytest.raises(CreditError, match="cannot be read"):
        run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=ONE, output=path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"settings": {}, "rows": [1]}', "3", "null"])
def test_a_file_of_something_else_is_refused_in_words(content: str, tmp_path: Path) -> None:
    """`[]` was refused with "list indices must be integers or slices, not str"."""
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(CreditError, match="cannot be read: it holds no rows of training with their settings"):
        run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=ONE, output=path)
    assert path.read_text() == content


def test_two_runs_do_not_train_into_one_file(tmp_path: Path) -> None:
    """Each wrote the rows that it knew: those of the other were lost."""
    path = tmp_path / "rows.json"
    with locked(path), pytest.raises(CreditError, match="another process writes"):
        run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=ONE, output=path)
    assert list(tmp_path.iterdir()) == []


NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def resumable(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("run") / "rows.json"
    run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, output=path)
    return path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("mean_return", None, "mean_return None; expected a number, got null"),
        ("mean_return", "x", "mean_return 'x'; expected a number, got"),
        ("mean_return", NAN, "mean_return nan; expected a finite number"),
        ("final_return", -INF, "final_return -inf; expected a finite number"),
        ("start", 10**400, "start 1000.*; expected a finite number"),
        ("events_to_90", NAN, "events_to_90 nan; expected a number >= 0"),
        ("seed", True, "seed True; expected a whole number"),
        ("curve", None, "curve None; expected a list"),
        ("curve", [0.5] * 30 + [NAN], "curve .*; expected a finite number"),
        ("curve", [0.5], "a curve of 1 point; expected 31"),
        *((name, ..., f"no {name}; expected") for name in ("task", "mean_return", "curve", "events_to_90")),
    ],
)
def test_a_broken_row_is_named_when_a_run_is_resumed(
    field: str, value: Any, words: str, resumable: str, tmp_path: Path
) -> None:
    """An area of None gave a traceback, nan a table of nan, and a curve was not looked at."""
    document = json.loads(resumable)
    row = document["rows"][1]
    if value is ...:
        del row[field]
    else:
        row[field] = value
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CreditError, match=rf"rows\.json: row 2 has (a )?{words}"):
        run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, output=path)
    assert json.loads(path.read_text()).keys() == document.keys()


def test_a_row_and_a_cell_share_no_name_of_different_quantities() -> None:
    """A row's `area` was a mean return, and a cell's a share of the way to the optimum."""
    shared = set(_Row.__struct_fields__) & set(Cell._fields)
    of_both = {"task", "signal", "learning_rate", "events_to_90", "cosine", "entropy", "teaching"}
    assert shared == of_both | {"answered", "refused"}


@pytest.mark.slow
def test_a_row_that_is_there_twice_is_named(resumable: str, tmp_path: Path) -> None:
    """The later one won."""
    document = json.loads(resumable)
    document["rows"].append(document["rows"][0] | {"mean_return": 0.9})
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(document))
    with pytest.raises(
        CreditError, match=r"row 3 has task 'pivotal', signal 'zero', seed 0, .* as row 1; expected each"
    ):
        run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, output=path)
    path.write_text(json.dumps(document | {"rows": {}}))
    with pytest.raises(CreditError, match="it holds no rows of training"):
        run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, output=path)


@pytest.mark.parametrize("events", [None, INF, 6, 6.0])
def test_events_to_90_may_be_none_or_infinite(events: float | None, resumable: str, tmp_path: Path) -> None:
    document = json.loads(resumable)
    document["rows"][1]["events_to_90"] = events
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(document))
    rows = run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, output=path)
    assert rows == document["rows"]


def test_a_table_of_something_else_is_refused_in_words(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(CreditError, match="cannot be read: it holds no rows of training with their settings"):
        run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=ONE, output=path)


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("signal", ["rloo", "control_critic", "turn_baseline", "control_exact"])
def test_a_method_that_refuses_every_action_is_not_trained(signal: str) -> None:
    """In groups of one the table said 0, as of a method that learns nothing."""
    alone = TrainingSettings(steps=3, groups=4, group_size=1)
    with pytest.raises(CreditError, match=f"'{signal}' on 'pivotal': no action had an advantage in 3 updates.*larger"):
        run_training([signal], ["pivotal"], 1, alone, learning_rates=ONE)


@pytest.mark.study
def test_what_compares_no_traces_is_trained_in_groups_of_one() -> None:
    alone = TrainingSettings(steps=3, groups=4, group_size=1)
    rows = run_training(["exact_increments", "zero"], ["pivotal"], 1, alone, learning_rates=(0.4,))
    assert rows[0]["mean_return"] > rows[1]["mean_return"] == pytest.approx(rows[1]["start"], abs=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"learning_rates": (0.1, float("inf"))}, "learning_rates is"),
        ({"learning_rates": (float("nan"),)}, "learning_rates is"),
        ({"tuning": 0}, "tuning is 0; expected 1 or more"),
        ({"tune_by": "final"}, "tune_by is 'final'; expected 'area' or 'events_to_90'"),
    ],
)
def test_options_out_of_range_are_refused(given: dict[str, Any], words: str) -> None:
    """An infinite rate gave a table of nan, no seeds of a sweep the first rate, and an unknown measure the events."""
    with pytest.raises(CreditError, match=words):
        run_training(["zero"], ["pivotal"], 1, TINY, **given)


@pytest.mark.study
def test_the_learning_rate_is_swept_on_other_seeds(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    rows = run_training(["exact_increments"], ["pivotal"], 2, TINY, learning_rates=(0.001, 0.4), output=path)
    assert [row["learning_rate"] for row in rows] == [0.4, 0.4]
    kept = json.loads(path.read_text())["rows"]
    assert sum(row["sweep"] for row in kept) == 2 * 3 and not {0, 1} & {row["seed"] for row in kept if row["sweep"]}
    more = run_training(["exact_increments"], ["pivotal"], 1, TINY, learning_rates=(0.001, 0.4), tuning=1)
    assert more[0]["curve"] == rows[0]["curve"]
    with pytest.raises(CreditError, match="learning_rates is"):
        run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=())


def test_cells_are_paired_over_seeds_and_corrected() -> None:
    from scipy.stats import wilcoxon

    def row(signal: str, seed: int, area: float) -> dict[str, Any]:
        numbers = {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0, "learning_rate": 0.1, "final_return": 1.0}
        reached = None if seed == 0 else 10.0 * seed
        return {"task": "t", "signal": signal, "seed": seed, "start": 0.0, "optimum": 1.0, "mean_return": area,
                "events_to_90": reached, **numbers}  # fmt: skip

    base = [0.1, 0.5, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4]
    rows = [row("rloo", s, a) for s, a in enumerate(base)]
    rows += [row("better", s, a + 0.05 + 0.001 * s) for s, a in enumerate(base)]
    rows += [row("other", s, a) for s, a in enumerate(base[::-1])]
    rloo, better, other = cells(rows)
    assert (
        rloo.difference_p == rloo.ahead_p == 1
        and better.difference_p < 1e-6
        and rloo.difference == 0
        and rloo.ahead == 0
        and rloo.events_to_90 == 45
    )
    assert better.ahead == 8 and better.ahead_p == pytest.approx(
        2 * 2 / 2**8
    )  # the least of eight seeds, for two tests
    assert better.difference == pytest.approx(0.0535)
    assert (
        other.difference_p > 0.5
        and other.ahead == 4
        and other.ahead_p == pytest.approx(wilcoxon(np.array(base[::-1]) - base).pvalue)
    )
    assert better.events_p == other.events_p == 1  # as many events on every seed
    assert mean_ranks([rloo, better, other]) == {"rloo": 2.5, "better": 1.0, "other": 2.5}


def test_a_file_of_runs_is_compared_and_drawn_without_its_sweep() -> None:
    """Its 3 sweep seeds and those of another rate were counted: "rate 0.8, 13 seeds"; numpy refused the curves."""
    numbers = {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0, "final_return": 1.0, "events_to_90": 1.0, "start": 0.0}
    run = {"task": "t", "signal": "a", "optimum": 1.0, "sweep": False, "mean_return": 0.7, "learning_rate": 0.4,
           "curve": [0.0, 1.0], **numbers}  # fmt: skip
    results = [run | {"seed": seed} for seed in range(10)]
    other = {"sweep": True, "mean_return": 0.9, "learning_rate": 0.8, "curve": []}
    written = [run | other | {"seed": 10_000}, *results, run | other | {"seed": 0}]
    assert cells(written) == cells(results) and cells(written)[0][2:5] == (10, 0.4, pytest.approx(0.7))
    assert draw_training(written).axes[0].lines[0].get_ydata()[-1] == 1
    refused: dict[str, Any] = {
        "rows has no run that is not of the sweep": written[:1],
        "row 1 has 'settings'": {"settings": {}},
        "row 2 has no seed": [results[0], run],
        "'a' has seed 0 of 't' twice, at rate 0.4 and 0.2": [*results, results[0] | {"learning_rate": 0.2}],
    }
    for words, rows in refused.items():
        for read in (cells, draw_training):
            with pytest.raises(CreditError, match=words):
                read(rows)


def test_no_p_value_of_a_cell_is_taken_for_that_of_the_star() -> None:
    """`p` was that of the mean difference, and the star stood for `ahead_p`."""
    assert [name for name in Cell._fields if name.split("_")[-1] == "p"] == ["difference_p", "ahead_p", "events_p"]


@pytest.mark.slow
@pytest.mark.parametrize("draws", [150, 300])
def test_few_seeds_with_rare_failures_mark_no_difference(draws: int) -> None:
    """Student's test called 6 to 15 % of equal signals different on `bottleneck` and `stopping`, at 3 to 10 seeds."""
    rng, marked = np.random.default_rng(0), collections.Counter[int]()
    for seeds in (3, 5, 6, 8, 12):
        for _ in range(draws):
            areas = 0.9 - 0.02 * rng.random((2, seeds)) - 0.5 * (rng.random((2, seeds)) < 0.08)
            numbers = {"learning_rate": 0.1, "start": 0.0, "optimum": 1.0, "final_return": 1.0, "events_to_90": 1.0}
            numbers |= {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0}
            rows = [{"task": "t", "signal": name, "seed": s, "mean_return": float(a), **numbers}
                    for name, of in zip("ab", areas, strict=True) for s, a in enumerate(of)]  # fmt: skip
            marked[seeds] += cells(rows)[1].ahead_p < 0.05
    assert marked[3] == marked[5] == 0 and all(count <= 0.08 * draws for count in marked.values()), marked


def test_the_rate_can_be_chosen_by_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rate 0.1 has the larger area; rate 0.4 comes to 90 % sooner, but for one seed that never does."""

    def row(task: Any, signal: str, seed: int, rate: float, *_: Any) -> dict[str, Any]:
        events = {0.1: 20.0, 0.4: None if seed % 3 == 0 else 5.0}[rate]
        return {"task": task.name, "signal": signal, "seed": seed, "learning_rate": rate, "sweep": True,
                "mean_return": {0.1: 0.9, 0.4: 0.8}[rate], "events_to_90": events}  # fmt: skip

    monkeypatch.setattr(training_runs, "_row", row)
    for tune_by, rate in (("area", 0.1), ("events_to_90", 0.4)):
        rows = run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=(0.1, 0.4), tuning=6, tune_by=tune_by)  # type: ignore[arg-type]
        assert rows[0]["learning_rate"] == rate


def test_a_missing_optax_and_a_missing_folder_are_named_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["bench", "train", "--quick", "-o", str(tmp_path / "none" / "rows.json")]
    found = CliRunner().invoke(cli, call)
    assert found.exit_code != 0 and "does not exist" in found.output
    monkeypatch.setattr(training_loop.importlib.util, "find_spec", lambda name: None)
    training_loop._compiled.cache_clear()
    with pytest.raises(MissingExtraError, match="optax is not installed"):
        run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=ONE)


@pytest.mark.slow
def test_events_are_compared_by_ranks_and_a_seed_that_does_not_arrive_is_last() -> None:
    from scipy.stats import wilcoxon

    numbers = {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0, "learning_rate": 0.1, "final_return": 1.0}
    numbers |= {"start": 0.0, "optimum": 1.0, "mean_return": 0.5}
    reached = {"rloo": [100.0 + s for s in range(9)] + [None], "faster": [50.0 + s for s in range(10)]}
    rows: list[dict[str, Any]] = [
        {"task": "t", "signal": signal, "seed": seed, "events_to_90": events, **numbers}
        for signal, listed in reached.items()
        for seed, events in enumerate(listed)
    ]
    faster = cells(rows)[1]
    assert faster.events_p == pytest.approx(wilcoxon([-1.0] * 9 + [-2.0]).pvalue) and faster.events_p < 0.01
    assert cells(rows[10:] + rows[:10])[1].events_p == pytest.approx(faster.events_p)


@pytest.mark.slow
def test_the_command_prints_a_table_and_keeps_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    call = ["bench", "train", "-m", "zero", "--tasks", "pivotal", "--seeds", "2", "--steps", "2",
            "--learning-rates", "0.1", "-o", str(path), "--plot", str(tmp_path / "curves.svg")]  # fmt: skip
    found = CliRunner().invoke(cli, call)
    assert found.exit_code == 0, found.output
    assert "pivotal" in found.output and "events to 90" in found.output
    drawn = (tmp_path / "curves.svg").read_text()
    assert all(text in drawn for text in ("<!-- pivotal -->", "<!-- zero -->", "<!-- budget spent [share] -->"))
    assert [row["seed"] for row in json.loads(path.read_text())["rows"]] == [0, 1]
    wrong = CliRunner().invoke(cli, ["bench", "train", "-m", "magic", "--tasks", "pivotal"])
    assert wrong.exit_code != 0 and "no signal 'magic'" in str(wrong.output) + str(wrong.exception)


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (5, "its 94 % interval, all that five seeds allow, by interpolated order statistics"),
        (2, "an interval takes five seeds"),
        (8, "in brackets its 95 % interval, by interpolated order statistics."),
        (8, "Holm's correction is over 1 distinct comparison: methods that are equal but for rounding count once"),
    ],
)
def test_the_table_states_intervals_over_seeds(
    seeds: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Areas and events stood there as if one run told them, and equal rows were compared as if they were two."""
    numbers = {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0, "learning_rate": 0.1, "final_return": 1.0, "task": "t"}
    numbers |= {"start": 0.0, "optimum": 1.0, "curve": [], "refused": "", "task": "pivotal"}

    def trained(names: Any, *_: Any, **given: Any) -> list[dict[str, Any]]:
        return [{"signal": name, "seed": s, "mean_return": 0.1 * s + 0.05 * (name == "zero") * (-1) ** s,
                 "events_to_90": None if s == 4 else 1000.0 + s, "curve": [s, name == "zero"], **numbers}
                for name in names for s in range(seeds)]  # fmt: skip

    monkeypatch.setattr(training_runs, "run_training", trained)
    call = ["bench", "train", "-m", "rloo,verl_rloo,zero", "--tasks", "pivotal", "--seeds", str(seeds)]
    found = CliRunner(env={"COLUMNS": "200"}).invoke(cli, call)
    assert found.exit_code == 0, found.output
    text = " ".join(found.output.split())
    assert (
        words in text
        and ("No test was possible: with 1 distinct comparison the signed-rank test takes 6 seeds" in text)
        == (seeds < 6)
        and "verl_rloo trains as rloo in groups of 4. Their advantages differ by a constant factor for each" in text
    )
    assert "as rloo" in text
    row = next(" ".join(line.split()) for line in found.output.splitlines() if " zero " in line)
    shown = "0.250 (0.050 to 0.450)" in row and "1,002 (1,000 to not reached)" in row
    assert shown if seeds == 5 else ("(" in row) == (seeds > 5), row
    plain = json.loads(CliRunner().invoke(cli, [*call, "--json"]).stdout)["rows"]
    assert plain[2]["events_interval"] == [{5: 1000.0, 8: pytest.approx(1000.94, abs=0.01)}.get(seeds), None]
    assert [row["same_as"] for row in plain] == ["", "rloo", ""]
    table = tmp_path / "t.csv"
    CliRunner().invoke(cli, [*call, "--table", str(table)])
    for number in csv.DictReader(table.read_text().splitlines()):  # of one name, "area" of JSON was a mean
        names = {"final": "final", "p": "p", "ahead": "ahead", "area": "difference" if number["less"] else "area"}
        if name := names.get(number["quantity"]):
            of = next(row for row in plain if row["signal"] == number["method"])
            assert of[name] == pytest.approx(float(number["value"])), name


ORDERED = """
import dataclasses

import jax.numpy as jnp

import estimators
from estimators.medians import in_order, nth_of_others
from estimators.members import members


def against(place, graph, reward):
    m = members(graph, reward, None, by=None, population="trace", aggregate="return")
    others = in_order(m, m.score).n - 1
    result = estimators.rloo(graph, reward)
    base = jnp.where(result.valid, nth_of_others(m, place(others).astype(jnp.int32))[0], 0)
    return dataclasses.replace(result, baseline=base, stderr=jnp.full_like(base, jnp.inf), source="ordered")


def second_best(graph, reward):
    return against(lambda others: jnp.maximum(others - 2, 0), graph, reward)


def second_least(graph, reward):
    return against(lambda others: jnp.minimum(1, others - 1), graph, reward)


def late(graph, reward):
    result = second_best(graph, reward)
    at = jnp.arange(len(result.scale), dtype=jnp.int32) % 12
    return dataclasses.replace(result, scale=result.scale / (1 + at).astype(result.scale.dtype))
"""


def test_the_signed_rank_test_of_ties_is_exact() -> None:
    """Of 15 seeds p was 0.0016, by a normal sum, where it is 0.0017; of 13 it took a second."""
    gap = np.array([1.0] * 12 + [-1.0, 0.0, 2.0])
    ranks = np.array([7.0] * 13 + [14.0])
    ways = np.array([*itertools.product((0, 1), repeat=14)]) @ ranks
    assert _signed_rank(gap) == pytest.approx(2 * np.mean(ways >= 98))


@pytest.mark.parametrize("policy", ["tabular", "mlp"])
def test_what_trains_alike_is_said_to_be_equal_or_a_multiple(
    policy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two order statistics that are one in groups of 4 were said to differ by a factor that Adam cancels."""
    row = {"task": "heavy", "seed": 0, "learning_rate": 0.4, "start": 0.5, "optimum": 0.9, "final_return": 0.9,
           "mean_return": 0.7, "events_to_90": 30.0, "cosine": 1.0, "entropy": 0.5, "teaching": 1.0, "sweep": False,
           "updates": 3}  # fmt: skip
    (tmp_path / "ordered.py").write_text(ORDERED)
    monkeypatch.chdir(tmp_path)

    def line(names: list[str], size: int = 4, optimizer: Any = "adam") -> str:
        compared = cells([row | {"signal": name} for name in names])
        settings = TrainingSettings(groups=2, group_size=size, policy=policy, optimizer=optimizer)
        ((found,),) = _alike(compared, settings).values()
        return found.partition(" To compare them")[0]

    best, least, late = (f"ordered:{name}" for name in ("second_best", "second_least", "late"))
    equal = "Their advantages are equal in all 32 batches drawn of heavy."
    assert line([best, least]) == (
        f"{least} trains as {best} in groups of 4. {equal} In groups of 5 they differ; see --group-size 5."
    )
    assert line(["grpo", "dr_grpo"]).endswith("Their advantages differ all the same.")
    cancelled = "which Adam cancels; --optimizer sgd shows it."
    factor = "a constant factor" + " for each decision" * (policy == "tabular")
    assert line(["rloo", "dr_grpo"]).endswith(f" Their advantages differ by {factor}, {cancelled}")
    assert (cancelled in line([best, late])) == (policy == "tabular")
    assert cancelled not in line([best, late], optimizer="sgd")


def test_a_confirmation_takes_other_seeds() -> None:
    rows = run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, first_seed=7)
    assert [row["seed"] for row in rows] == [7, 8]
    with pytest.raises(CreditError, match="first_seed is 999999; expected 0 or more, and no seed of the sweep"):
        run_training(["zero"], ["pivotal"], 2, TINY, learning_rates=ONE, first_seed=999_999)


def test_a_name_that_stands_twice_is_refused() -> None:
    """`--methods rloo,rloo` silently trained one."""
    found = CliRunner().invoke(cli, ["bench", "train", "--methods", "rloo, rloo"])
    assert found.exit_code and "'rloo' is given twice" in found.output


def test_a_rate_at_the_edge_of_those_tried_is_marked() -> None:
    assert [_edge(rate, (0.1, 0.2, 0.4)) for rate in (0.1, 0.2, 0.4)] == ["at edge", "", "at edge"]
    assert _edge(0.4, (0.4,)) == ""


@pytest.mark.parametrize("other", [0.2, 0.4])
def test_a_difference_beside_another_rate_is_marked(monkeypatch: pytest.MonkeyPatch, other: float) -> None:
    """Stars stood beside differences that the choice of the rates had made."""
    shared = {"task": "pivotal", "start": 0.0, "optimum": 1.0, "final_return": 1.0, "events_to_90": 1.0, "cosine": 0.5,
              "entropy": 0.1, "teaching": 1.0}  # fmt: skip
    rows = [{**shared, "signal": signal, "seed": seed, "learning_rate": rate, "mean_return": area + seed / 100,
             "curve": [area]} for signal, rate, area in (("rloo", 0.2, 0.5), ("zero", other, 0.3))
            for seed in range(8)]  # fmt: skip
    monkeypatch.setattr(training_runs, "run_training", lambda *_, **__: rows)
    call = ["bench", "train", "-m", "rloo,zero", "--tasks", "pivotal", "--seeds", "8"]
    printed = CliRunner().invoke(cli, [*call, "--learning-rates", "0.1,0.2,0.4,0.8"]).stdout
    assert ("*†" in printed) == ("†: not the rate of the first method" in printed) == (other > 0.3)
    assert "rate: of 4 that with the largest mean area on 3 other seeds" in printed
    assert (
        "rows: in the order of --tasks, then of --methods." in printed
        and "intervals and * take the rate as given" in printed
    )
    assert "as given" not in CliRunner().invoke(cli, [*call, "--learning-rates", "0.2"]).stdout


def test_a_gain_that_is_only_a_scale_shows_at_a_common_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """One signal is twice the other: equal at their best rates, ahead at a low common one, behind at a high one."""
    shared = {"task": "pivotal", "start": 0.0, "optimum": 1.0, "final_return": 1.0, "events_to_90": 1.0, "cosine": 0.5,
              "entropy": 0.1, "teaching": 1.0}  # fmt: skip

    def trained(names: Any, tasks: Any, seeds: int, *_: Any, common_rates: Any, **__: Any) -> list[dict[str, Any]]:
        def area(step: float, seed: int) -> float:
            return 0.9 - abs(step - 0.4) + seed / 100

        return [{**shared, "signal": signal, "seed": seed, "learning_rate": 0.4 / scale, "mean_return": area(0.4, seed),
                 "curve": [scale, seed], "at_rates": {rate: {**shared, "mean_return": area(scale * rate, seed)}
                                                      for rate in common_rates}}
                for signal, scale in (("rloo", 1), ("zero", 2)) for seed in range(seeds)]  # fmt: skip

    monkeypatch.setattr(training_runs, "run_training", trained)
    call = ["bench", "train", "-m", "rloo,zero", "--tasks", "pivotal", "--seeds", "6", "--common-rates", "0.4,0.2"]
    shown = CliRunner(env={"COLUMNS": "250"}).invoke(cli, call).stdout
    assert "at 0.2, 0.4: the difference where both have that rate" in shown
    row = next(" ".join(line.split()) for line in shown.splitlines() if " zero " in line)
    assert row.endswith("+0.200 (+0.200 to +0.200), 6 of 6 -0.400 (-0.400 to -0.400), 0 of 6"), row
    of = json.loads(CliRunner().invoke(cli, [*call, "--json"]).stdout)["rows"][1]
    assert of["difference"] == pytest.approx(0, abs=1e-12)
    low, high = of["at_rates"]
    assert low["p"] == high["p"] == 0.0625 and "No test was possible at common rates: with 2 distinct comp" in shown
    seven = CliRunner(env={"COLUMNS": "250"}).invoke(cli, [word.replace("6", "7") for word in call]).stdout
    assert next(line for line in seven.splitlines() if " zero " in line).count("of 7 *") == 2  # they had no test
    assert "; * as before, corrected over all of these." in seven and "correction at common rates is over 2 " in seven
    assert low["learning_rate"] == 0.2 and low["difference_interval"] == pytest.approx([0.2, 0.2])
    assert high["difference"] == pytest.approx(-0.4) and (low["ahead"], high["ahead"]) == (6, 0)
    assert "--common-rates goes only" not in shown
    wrong = CliRunner().invoke(cli, ["bench", "train", "--lengths", "10", "--common-rates", "0.2"])
    assert wrong.exit_code and "--common-rates does not go with --lengths" in wrong.output


def test_all_are_trained_at_the_common_rates_on_the_seeds_of_results(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    given = {"learning_rates": ONE, "common_rates": (0.2, *ONE), "output": path}
    rows = run_training(["exact_increments"], ["pivotal"], 2, TINY, **given)
    other = run_training(["exact_increments"], ["pivotal"], 2, TINY, learning_rates=(0.2,))
    for row, at in zip(rows, other, strict=True):
        of_common, of_own = row["at_rates"][0.2], row["at_rates"][ONE[0]]
        assert (of_common["curve"], of_common["places"]) == (at["curve"], at["places"])  # it was thrown away
        assert of_common["mean_return"] == at["mean_return"] and of_own["curve"] == row["curve"]
    kept = json.loads(path.read_text())["rows"]
    assert sorted(row["learning_rate"] for row in kept if not row["sweep"]) == [*ONE, *ONE], "one row a seed is shown"
    assert run_training(["exact_increments"], ["pivotal"], 2, TINY, **given) == rows
    older = json.loads(path.read_text())
    older["rows"] = [row | ({"curve": [], "places": []} if row["sweep"] else {}) for row in older["rows"]]
    path.write_text(json.dumps(older))  # files of earlier versions have no curves at common rates
    assert run_training(["exact_increments"], ["pivotal"], 2, TINY, **given) == rows
    figure = draw_training(rows)
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    panels = [axes.get_title() for axes in figure.axes]
    assert panels == ["pivotal, best rates", f"pivotal, all at {ONE[0]:g}", "pivotal, all at 0.2"]
    with pytest.raises(CreditError, match="common_rates is"):
        run_training(["zero"], ["pivotal"], 1, TINY, learning_rates=ONE, common_rates=(0.0,))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module `edited_idea`, found beside the working directory."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "edited_idea", raising=False)
    write_idea(tmp_path, "credit.rloo(graph, reward)")
    return tmp_path


def write_idea(folder: Path, result: str) -> None:
    code = f"import dataclasses\nimport credit\ndef f(graph, reward):\n    return {result}\n"
    (folder / "edited_idea.py").write_text(code)
    importlib.invalidate_caches()
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    if "edited_idea" in sys.modules:
        importlib.reload(sys.modules["edited_idea"])


@pytest.mark.slow
def test_a_function_that_was_edited_is_trained_anew(own: Path) -> None:
    """Its rows were read from the file, and more seeds gave a mean over two functions."""
    path = own / "rows.json"
    names = ["zero", "edited_idea:f"]
    before = run_training(names, ["pivotal"], 1, TINY, learning_rates=(0.8,), output=path)
    write_idea(own, "credit.rloo(graph, -reward)")
    after = run_training(names, ["pivotal"], 2, TINY, learning_rates=(0.8,), output=path)
    assert after[0] == before[0]
    assert after[2]["final_return"] < before[1]["start"] < before[1]["final_return"]
    kept = [(row["signal"], row["seed"]) for row in json.loads(path.read_text())["rows"]]
    assert sorted(kept) == [(name, seed) for name in sorted(names) for seed in (0, 1)]


@pytest.mark.slow
def test_an_advantage_that_is_no_number_is_not_trained_with(own: Path) -> None:
    """The table said nan, not reached, and a difference of +0.000."""
    nan = "dataclasses.replace(credit.rloo(graph, reward), credit=credit.rloo(graph, reward).credit * float('nan'))"
    write_idea(own, nan)
    with pytest.raises(CreditError, match="'edited_idea:f' on 'pivotal': an advantage of update 1 is no finite number"):
        run_training(["edited_idea:f"], ["pivotal"], 1, TINY, learning_rates=ONE)


def test_a_difference_from_nothing_is_none() -> None:
    row = {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0, "learning_rate": 0.1, "final_return": 1.0, "task": "t",
           "start": 0.0, "optimum": 1.0, "events_to_90": None, "seed": 0}  # fmt: skip
    assert np.isnan(
        cells([row | {"signal": "a", "mean_return": 1.0}, row | {"signal": "b", "mean_return": NAN}])[1].difference
    )


def test_rounding_is_neither_ahead_nor_a_comparison() -> None:
    """A median difference of 2.8e-8 was "6 of 6" ahead, and a comparison that the others were corrected for."""
    numbers = {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0, "learning_rate": 0.1, "final_return": 1.0, "task": "t"}
    numbers |= {"start": 0.0, "optimum": 1.0, "events_to_90": 1.0}
    above = {"base": 0.0, "rounded": 5e-8, "other": 2e-6, "as other": 2e-6 - 4e-8}
    table = cells([{"signal": name, "seed": s, "mean_return": 0.1 * s + more, **numbers}
                   for name, more in above.items() for s in range(6)])  # fmt: skip
    assert [(cell.ahead, cell.same_as) for cell in table] == [(0, ""), (0, "base"), (6, ""), (6, "other")]
    assert comparisons(table, "base") == 1 and table[2].ahead_p == 2 / 2**6
    assert mean_ranks(table) == {"base": 3.5, "rounded": 3.5, "other": 1.5, "as other": 1.5}


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("different", [2, 1, 3, 9])
def test_the_seeds_that_a_table_takes_follow_its_comparisons(different: int) -> None:
    """It said six for every table; with two comparisons six seeds can mark nothing. Equal rows counted as several."""
    numbers = {"cosine": 0.5, "entropy": 0.1, "teaching": 1.0, "learning_rate": 0.1, "final_return": 1.0, "task": "t"}
    numbers |= {"start": 0.0, "optimum": 1.0, "events_to_90": 1.0}
    marked = []
    for seeds in (least_seeds(different) - 1, least_seeds(different)):
        rows = [{"signal": "base", "seed": s, "mean_return": 0.1, **numbers} for s in range(seeds)]
        rows += [{"signal": f"m{c}", "seed": s, "mean_return": 0.1 + (0.01 if c == 0 else -0.01 * c * (-1) ** s),
                  **numbers} for c in range(different) for s in range(seeds)]  # fmt: skip
        again = [row | {"signal": f"again {row['signal']}"} for row in rows]
        table = cells(rows + again)
        assert comparisons(table, "base") == different
        assert [cell.same_as for cell in table[different + 1 :]] == [cell.signal for cell in table[: different + 1]]
        marked.append(table[1].ahead_p < 0.05)
        assert table[1].ahead_p == table[different + 2].ahead_p  # once more the same numbers, one test
    assert marked == [False, True]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lengths", "10", "-m", "rloo,mine:f"], "--lengths trains no 'mine:f'; expected one of rloo, siblings"),
        (["--lengths", "10,10.5"], "--lengths has 10.5; expected whole numbers"),
        (["--lengths", "10", "--luck", "0,2"], "expected 2 or more, and 0 to below 1"),
        (["--lengths", "10", "--group-size", "8"], "--group-size does not go with --lengths"),
        (["--lengths", "10", "--plot", "a.svg"], "--plot does not go with --lengths"),
        (["--luck", "0.3"], "--luck goes only with --lengths"),
    ],
)
def test_what_lengths_do_not_take_is_refused_before_anything_is_trained(
    options: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of one's own was refused after the others had been trained, and --group-size was ignored."""

    def trained(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("trained")

    monkeypatch.setattr("credit.bench.training.long_training.long_cell", trained)
    found = CliRunner().invoke(cli, ["bench", "train", *options])
    assert found.exit_code != 0 and words in " ".join(f"{found.output} {found.exception}".split())


OWN_TASK = """
import numpy as np
from credit.bench.training.learning_tasks import LearningTask
from graphs.worlds.micro.examples import MICRO
task = LearningTask("x", (0, 1), 2, (0, 1), np.array([[[0.1, 0.2], [0.3, {}]]]))
small = MICRO["relay-and"]
def helper(): ...
"""


@pytest.mark.slow
@pytest.mark.parametrize("names", [["rloo", "Turn-LOO"], ["C3"]])
def test_tasks_of_ones_own_and_published_names_are_trained(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were unknown here; rows of a task that may have changed are not kept."""
    monkeypatch.chdir(tmp_path)
    call = ["bench", "train", "--steps", "3", "--seeds", "1", "--learning-rates", "0.4", "-m", ",".join(names)]
    optima = []
    for best in ("0.9", "0.6"):
        (tmp_path / "task_of_mine.py").write_text(OWN_TASK.format(best))
        sys.modules.pop("task_of_mine", None)
        importlib.invalidate_caches()
        done = CliRunner().invoke(cli, [*call, "--tasks", "task_of_mine:task", "-o", "rows.json", "--json"])
        assert done.exit_code == 0, done.output
        rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
        assert [row["signal"] for row in rows] == names
        optima.append({row["optimum"] for row in rows})
    assert optima == [{0.9}, {0.6}]
    takes = "`credit bench bias --world task_of_mine:small` takes it"
    for wrong, words in {
        "small": takes,
        "smal": "Did you mean small",
        "zzz": "has no 'zzz'. There is one: task.",
    }.items():
        refused = CliRunner().invoke(cli, [*call, "--tasks", f"task_of_mine:{wrong}"])
        assert refused.exit_code == 1 and words in refused.stderr


def test_a_task_of_ones_own_is_shown_as_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command shows its NAME or its `name`; `run_training` showed "module:name", and did not take a NAME."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named_task.py").write_text(OWN_TASK.format(0.9) + "again = task\n")
    of = LearningTask("own", (0, 1), 2, (0, 1), np.array([[[0.1, 0.2], [0.3, 0.4]]]))
    again = LearningTask("x", (0, 1), 2, (0, 1), np.array([[[0.1, 0.2], [0.3, 0.4]]]))
    for tasks, names in (
        (["named_task:task", of], ["x", "own"]),
        (["Mine=named_task:task", "named_task:again"], ["Mine", "x"]),
        (["named_task:task", "named_task:again"], ["named_task:task", "named_task:again"]),
        (["named_task:task", again], ["named_task:task", "x"]),
    ):
        rows = run_training(["zero"], tasks, 1, TINY, learning_rates=[0.4])
        assert [row["task"] for row in rows] == names


@pytest.mark.slow
def test_the_command_trains_on_heavy_tails_by_the_option_of_other_benchmarks() -> None:
    call = ["bench", "train", "-m", "rloo", "--seeds", "1", "--steps", "3", "--learning-rates", "0.4", "--json"]
    found = CliRunner().invoke(cli, [*call, "--world", "heavy"])
    assert found.exit_code == 0, found.output
    assert [row["task"] for row in json.loads(found.stdout)["rows"]] == ["heavy"]


@pytest.fixture
def nothing_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(*args: Any) -> None:
        raise CreditError("something was trained")

    monkeypatch.setattr(training_runs, "_row", trained)


def test_help_says_why_training_takes_one_group_size() -> None:
    """Bias and snr take lists."""
    told = " ".join(CliRunner().invoke(cli, ["bench", "train", "--help"], env={"COLUMNS": "200"}).stdout.split())
    assert "one size a run, since each chooses its rates and corrects its tests alone" in told


@pytest.mark.usefixtures("nothing_trains")
def test_a_task_without_anything_to_learn_is_refused_before_the_start() -> None:
    """All was trained, then the share of the way to the best policy divided by 0."""
    flat = LearningTask("flat", (0, 1), 2, (0, 1), np.full((2, 2, 2), 0.1) + np.array([0.0, 0.5])[:, None, None])
    with pytest.raises(CreditError, match="task 'flat' has nothing to learn: no choice changes its expected reward"):
        run_training(["zero"], ["bottleneck", flat], 1, TINY)


@pytest.mark.usefixtures("nothing_trains")
@pytest.mark.parametrize(
    ("seeds", "words"),
    [(7, "with up to 4 distinct comparisons the signed-rank test takes up to 8 seeds, this run has 7"), (8, "")],
)
def test_seeds_that_the_test_takes_are_said_before_the_start(seeds: int, words: str) -> None:
    """Only the table said so, after hours of training."""
    call = ["bench", "train", "-m", "rloo,grpo,zero", "--tasks", "pivotal,bottleneck", "--seeds", str(seeds)]
    said = CliRunner().invoke(cli, call).stderr
    before, trained, _ = said.partition("something was trained")
    assert trained and words in before and bool(words) == ("signed-rank" in before), said


@pytest.mark.parametrize(
    ("function", "wrong", "near"),
    [
        (run_training, "learning_rate", "learning_rates"),
        (snr.run, "group_size", "group_sizes"),
        (bias.cells, "group_size", "group_sizes"),
        (draw, "group_sizes", "group_size"),
    ],
)
def test_an_unknown_argument_is_refused_with_the_near_name(function: Any, wrong: str, near: str) -> None:
    """One benchmark takes `group_size`, another `group_sizes`; Python 3.11 names no near one."""
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{wrong}'\. Did you mean {near}\?"):
        function(**{wrong: 4})


@pytest.mark.slow
def test_python_leaves_out_what_cannot_be_trained_as_the_command_does() -> None:
    """`gigpo`, which needs anchors, ended the cell although there was something to take it."""
    left_out = LeftOut()
    rows = run_training(["rloo", "gigpo"], ["bottleneck"], 1, TINY, learning_rates=ONE, left_out=left_out)
    assert {row["signal"] for row in rows} == {"rloo"}
    (gigpo,) = left_out.absent
    assert (gigpo.method, gigpo.place) == ("gigpo", "every task") and "needs anchor" in gigpo.why


@pytest.mark.slow
def test_what_refuses_every_action_keeps_no_other_from_being_trained() -> None:
    """It ended the run, where `bench bias` wrote "refused" beside the numbers of the others."""
    left_out, alone = LeftOut(), TrainingSettings(steps=3, groups=2, group_size=1)
    signals = ["exact_increments", "rloo"]
    rows = run_training(signals, ["bottleneck"], 1, alone, learning_rates=ONE, left_out=left_out)
    assert {row["signal"] for row in rows} == {"exact_increments"}
    (rloo,) = left_out.absent
    assert rloo.method == "rloo" and "every one was refused, in groups of 1 trace" in rloo.why


def test_what_no_seed_reached_has_no_interval_of_it() -> None:
    """The table had "not reached (not reached to not reached)"."""
    far = float("inf")
    assert within(far, (far, far), count_text) == "not reached"
    assert within(far, (500.0, far), count_text) == "not reached (500 to not reached)"


@pytest.mark.slow
def test_what_cannot_be_trained_is_left_out_by_name(tmp_path: Path) -> None:
    """`opo`, which needs tokens, kept `rloo` from being trained, and `stop_budget` off its tasks did so later."""
    call = ["bench", "train", "--tasks", "bottleneck", "--quick", "--json", "-m"]
    found = CliRunner().invoke(cli, [*call, "opo,stop_budget,rloo", "--plot", str(tmp_path / "x.svg")])
    assert found.exit_code == 0 and {row["signal"] for row in json.loads(found.stdout)["rows"]} == {"rloo"}
    opo, stop_budget = json.loads(found.stdout)["left_out"]
    assert opo == {"method": "opo", "place": "every task", "size": None,
                   "why": "method 'opo' needs tokens, which the tasks do not have"}  # fmt: skip
    assert stop_budget["place"] == "bottleneck" and "training with 'stop_budget'" in stop_budget["why"]
    alone = CliRunner().invoke(cli, [*call, "opo"])
    assert alone.exit_code == 1 and "opo is left out in every task" in alone.stderr
