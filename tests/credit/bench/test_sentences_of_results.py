"""Sentences, outside tables, whose figures are stored."""

from __future__ import annotations

import collections
import json
import math
import runpy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from site_pages import page

from credit.advice import CLAIMS_PAY
from credit.bench.given_values import GIVEN_VALUES, WRONG
from credit.cli import cli

ROOT = Path(__file__).resolve().parents[3]


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def sentences(name: str) -> str:
    return " ".join(page(name).split())


def test_coverage_of_worlds_drawn_by_seed() -> None:
    rows = [row for row in results("off_policy_coverage")["rows"] if row["answers"] >= 100]
    covered = [row["covered"] for row in rows]
    inside, above = sum(0.93 <= x <= 0.97 for x in covered), sum(x > 0.97 for x in covered)
    assert inside + above == len(rows) >= 12
    assert f"Of the {len(rows)} worlds with 100 answers or more, {inside} lie within 93 to 97 %, {above} above" in (
        sentences("off-policy")
    )
    assert f"none below; the least is {100 * min(covered):.1f} %" in sentences("off-policy")
    few = max(row["answered"] for row in rows if row["answered"] < 0.9)
    assert f"({100 * few:.0f} % of the contexts or fewer)" in sentences("off-policy")


def test_how_many_cells_of_the_rule_are_ties_within_rounding() -> None:
    cells = results("shapley")["table"]["cells"].values()
    ties = 0
    for cell in cells:
        errors = {name: error for name, error in cell["rel"].items() if isinstance(error, float)}
        if cell["best"] == "rule" and min(errors.values()) < errors["rule"]:
            assert errors["rule"] < 1e-24
            ties += 1
    assert f"in {ties} of these others are exact to rounding, too" in sentences("shapley")


def test_rewards_at_the_events_of_others() -> None:
    """What the page about bias says of methods along an agent's own chain, and of turns."""
    of = ("maac", "gae, lambda 1, along agents", "spiral_rae", "maporl")
    rows = [row for row in results("bias")["rows"] if row[0] in of]
    with_rewards = [row[3] for row in rows if row[1] == "stop-rewards"]
    assert max(row[3] for row in rows if row[1] != "stop-rewards") < 1e-9
    stated = f"In `stop-rewards` they have a bias of {min(with_rewards):.2f} to {max(with_rewards):.2f}."
    assert stated in sentences("bias")
    cosine = min(row[4] for row in results("bias")["rows"] if row[:2] == ["mt_grpo", "stop-rewards"])
    assert f"which stopping avoids: in `stop-rewards` the cosine is {cosine:.2f}." in sentences("bias")


@pytest.mark.parametrize(
    ("bench", "name"), {"bias": "bias", "truth": "worlds", "snr": "snr", "train": "training"}.items()
)
def test_what_values_a_benchmark_gives_stands_on_its_page_and_in_its_help(bench: str, name: str) -> None:
    """`bench train` gave `gae` a learned critic, the others true values, and neither help nor page said so."""
    _, _, told = GIVEN_VALUES[bench].partition("values: ")
    told += f"; {WRONG}" * (bench == "bias")
    assert f"Values: {told}" in sentences(name)
    shown = " ".join(CliRunner().invoke(cli, ["bench", bench, "--help"]).stdout.split())
    assert f"Values: {told}." in shown


@pytest.mark.slow
def test_what_a_token_is_stands_below_tables_of_methods_that_weigh_by_length() -> None:
    """`opo` had a row in both, and neither said that its lengths are numbers of decisions."""
    for call in (["bias", "--world", "relay-and"], ["snr", "--quick", "--lengths", "10"]):
        shown = [CliRunner().invoke(cli, ["bench", *call, "-m", name]).stdout for name in ("opo", "rloo")]
        assert "tokens: one a decision" in shown[0] and "tokens: " not in shown[1], call
    trained = CliRunner().invoke(cli, ["bench", "train", "--quick", "-m", "rloo,opo", "--tasks", "bottleneck"])
    assert trained.exit_code == 0 and "opo is left out in every task: method 'opo' needs tokens" in trained.stdout


def test_gains_in_signal_to_noise() -> None:
    """What the page says of factors over the mean of the others, by the closed forms beside the stored points."""
    form = {(p["scheme"], p["length"]): p["theory"] for p in results("snr")["points"] if p["group"] == 8}

    def gain(scheme: str, length: int) -> str:
        return f"{form[scheme, length] / form['shared, leave one out', length]:.1f}"

    long, page = (100, 300, 1_000, 3_000, 10_000), sentences("snr")
    claims, known = "control, claims", "control, claims, mean known"
    assert {gain(claims, n) for n in long} == {"1.8"} and {gain(known, n) for n in long} == {"2.3", "2.4"}
    assert f"gains {gain(claims, 10)} at T = 10, {gain(claims, 30)} at 30 and 1.8 from 100 on" in page
    assert f"and {gain(known, 10)}, {gain(known, 30)} and 2.3 to 2.4 if the outcome's mean is known" in page
    critic, message = "critic, error a tenth of Var R", "message, 8 replays"
    assert f"explains 90 % gains {gain(critic, 30)}, at T = 10 {gain(critic, 10)}" in page
    assert {gain(critic, n) for n in long} == {gain(critic, 30)} == {f"{math.sqrt(8 / 7 / 0.2):.1f}"}
    limit = f"{math.sqrt(2 * 8 * 8 / 7 * 3 / 4):.1f}"
    assert gain(message, 10_000) == limit
    assert f"gain {gain(message, 10)} at T = 10, in the end √(2S K/(K − 1) (J − 1)/J) = {limit}" in page
    slope = {row["scheme"]: row["slope"] for row in results("snr")["slopes"]}
    for name in ("remax", "igrpo", "puppeteer"):
        assert f"T^−{-slope[name]:.2f}" in page


def test_on_how_many_tasks_an_oracle_and_a_naive_bonus_beat_rloo() -> None:
    marked = {(c["signal"], c["task"]): c["difference"] for c in results("training")["cells"] if c["ahead_p"] < 0.05}
    ahead = collections.Counter(signal for (signal, _), difference in marked.items() if difference > 0)
    behind = {
        task for (signal, task), d in marked.items() if d < 0 and signal in ("exact_increments", "activity_bonus")
    }
    assert (ahead["exact_increments"], ahead["activity_bonus"], behind) == (7, 2, {"padding"})
    stated = "`exact_increments` beats `rloo` on seven tasks, the naive `activity_bonus` on two; it loses `padding`."
    assert stated in sentences("training")


def test_in_how_many_runs_a_team_learns_to_stop() -> None:
    stored = results("stopping")["training"]
    stopped = {signal: sum(cell["stopped"] for cell in row.values()) for signal, row in stored.items()}
    named = {name: stopped.pop(name) for name in ("exact_increments", "rloo", "turn_baseline")}
    of_others = f"the others in {min(stopped.values())} to {max(stopped.values())}."
    stated = "stops at the optimum in all {} runs; `rloo` in {}, `turn_baseline` in {}, ".format(*named.values())
    assert stated + of_others in sentences("stopping")
    assert named["exact_increments"] == 35 and max(stopped.values()) < named["turn_baseline"] <= named["rloo"]
    pairs = zip(stored["stop_own"].values(), stored["rloo"].values(), strict=True)
    ratios = [own["events"] / plain["events"] for own, plain in pairs if own["stopped"] == plain["stopped"] == 5]
    assert len(ratios) == 2 and all(0.4 <= ratio <= 0.5 for ratio in ratios)  # "needs half the events"


def test_events_of_the_posterior_in_the_headlines() -> None:
    """Medians over those of `rloo` by luck, and how many seeds did not arrive, in README and the page on training."""
    cells: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in results("training_lengths"):
        world = (row["outcome"], row["decisions"], row["luck"], row["optimizer"], row["traces"])
        cells.setdefault(world, {})[row["signal"]] = row
    both = {world: each for world, each in cells.items() if {"posterior", "rloo"} <= set(each) and world[2] <= 0.3}

    def absent(outcome: str, signal: str, *decisions: int) -> list[int]:
        chosen = [each for w, each in both.items() if w[0] == outcome and w[1] in decisions and w[4] == 16]
        assert all(len(each[signal]["events"]) == 32 for each in chosen)
        return [each[signal]["events"].count(None) for each in chosen]

    ends = {}
    for luck in (0.0, 0.1, 0.3):
        ratios = [
            each["posterior"]["median"] / each["rloo"]["median"]
            for (outcome, decisions, of, _, traces), each in both.items()
            if outcome == "add" and 30 <= decisions <= 300 and of == luck and traces >= 16
        ]
        ends[luck] = (f"{min(ratios):.2f}", f"{max(ratios):.2f}")
    page, readme = sentences("training"), " ".join((ROOT / "README.md").read_text().split())
    assert (
        "{} to {} times the events of `rloo` without luck, {} to {} at a luck of 0.1 and {} to {} at 0.3.".format(
            *ends[0.0], *ends[0.1], *ends[0.3]
        )
        in page
    )
    most = max(absent("add", "posterior", 30))
    assert max(absent("add", "rloo", 30)) == 0 and max(absent("add", "posterior", 100, 300)) <= 1
    assert f"With 30 decisions up to {most} of 32 seeds do not arrive, of `rloo` none; where" in page
    pairs, least = absent("interact", "posterior", 30, 100), absent("interact", "rloo", 30, 100)
    assert f"its model lacks pairs, {min(pairs)} to {max(pairs)}, of `rloo` {min(least)} to {max(least)}." in page
    eight = [both["add", 30, luck, "adam", 8] for luck in (0.0, 0.1, 0.3)]
    few = ", ".join(f"{each['posterior']['median'] / each['rloo']['median']:.2f}" for each in eight)
    assert f"Steps of 8 traces need {few} at luck 0, 0.1, 0.3" in page
    low, high = ends[0.0][0], ends[0.3][1]
    assert f"needed {low} to {high} times the events of `rloo` (medians; up to {most} of 32 seeds did" in readme
    assert f"needed {low} to {high} times the events of rloo, in the median, where" in CLAIMS_PAY
    for unmeasured in (("add", 300, 0.3, "adam", 16), *(("add", 300, luck, "natural", 16) for luck in (0.0, 0.1, 0.3))):
        assert unmeasured not in both
    assert f"{high} ({most}) |" in page  # the count stands in the table of the page, too


@pytest.mark.slow
def test_cells_in_which_the_posterior_needs_fewer_events() -> None:
    cells, fewer, more = runpy.run_path(str(ROOT / "benchmarks" / "training_lengths.py"))["intervals"]()
    assert more == 3
    stated = f"fewer events than `rloo` in {fewer} of the {cells} cells with steps of 16 traces that `rloo` reaches"
    assert f"{stated} and more in three" in sentences("training")


BESIDE = ("load", "rloo, ms")


def test_no_question_takes_more_than_ten_times_rloo() -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "questions.json").read_text())["rows"]
    most, name = max(
        (times, name) for row in rows for name, times in row.items() if isinstance(times, float) and name not in BESIDE
    )
    stated = f"No function takes more than ten times: the most is {most:.1f}, by `{name}`."
    assert (stated in (ROOT / "docs" / "metrics.md").read_text()) == (most <= 10)
    loads = [row["load"] for row in rows]
    assert f"a load of {int(min(loads))} to {math.ceil(max(loads))}." in (ROOT / "docs" / "metrics.md").read_text()
