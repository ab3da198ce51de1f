"""`credit shapley`: plans that can be rebuilt, evaluations in several sittings, shares against their truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.replay.json_lines import append_lines
from credit.replay.shapley_game import read_evaluations, read_game
from graphs import CreditError

from .logs import GOOD, run, write

UNITS = ["boss", "solver", "critic", "tool"]
WORTH = np.array([0.5, 0.25, 0.125, 0.0625])


def value(team: list[str]) -> float:
    """An additive game with one pair: its Shapley value is the worth, and half of 0.2 for each of the pair."""
    return float(sum(WORTH[UNITS.index(name)] for name in team) + 0.2 * ({"boss", "solver"} <= set(team)))


TRUTH = dict(zip(UNITS, WORTH + np.array([0.1, 0.1, 0, 0]), strict=True))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def plan(path: Path, *options: object) -> list[dict[str, Any]]:
    result = run("shapley", "plan", "--units", ",".join(UNITS), "-o", path, *options)
    assert result.exit_code == 0, result.output
    return lines(path)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("budget", [16, 8])
def test_shares_of_a_known_game(tmp_path: Path, budget: int) -> None:
    """All coalitions, or four walks of which antithetic pairs are exact for pairs of units."""
    rows = plan(tmp_path / "plan.jsonl", "--budget", budget)
    assert len(rows) <= budget
    values = [{"row": row["row"], "value": value(row["team"])} for row in reversed(rows)]
    write(tmp_path / "values.jsonl", values)
    result = run("shapley", "solve", tmp_path / "plan.jsonl", tmp_path / "values.jsonl", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    for row in answer["shares"]:
        assert row["share"] == pytest.approx(TRUTH[row["unit"]], abs=1e-5)
    assert answer["total"] == pytest.approx(value(UNITS), abs=1e-5)


@pytest.mark.parametrize(
    ("budget", "words"),
    [(8, "one pair of orders tells no error"), (14, "one more can differ by the largest marginal seen")],
)
def test_plans_and_shares_say_what_their_errors_assume(tmp_path: Path, budget: int, words: str) -> None:
    rows, files = (
        plan(tmp_path / "plan.jsonl", "--budget", budget),
        (tmp_path / "plan.jsonl", tmp_path / "values.jsonl"),
    )
    write(files[1], [{"row": row["row"], "value": value(row["team"])} for row in rows])
    shown = run("shapley", "solve", *files).output
    assert words in shown and "Student's t" in shown
    answer = json.loads(run("shapley", "solve", *files, "--json").stdout)
    assert words in answer["reason"]


def test_values_come_in_several_sittings_and_a_torn_line_is_none(tmp_path: Path) -> None:
    rows, values = plan(tmp_path / "plan.jsonl", "--budget", 16), tmp_path / "values.jsonl"
    for row in rows[:7]:
        append_lines(values, [{"row": row["row"], "value": value(row["team"])}])
    with values.open("a") as file:
        file.write('{"row": 7, "val')  # the process was killed here
    refused = run("shapley", "solve", tmp_path / "plan.jsonl", values)
    assert refused.exit_code == 1 and "9 of 16 rows have no value, first row 7" in refused.output
    left = run("shapley", "solve", tmp_path / "plan.jsonl", values, "--pending", tmp_path / "rest.jsonl")
    assert left.exit_code == 0
    assert lines(tmp_path / "rest.jsonl") == rows[7:]
    for row in lines(tmp_path / "rest.jsonl"):
        append_lines(values, [{"row": row["row"], "value": value(row["team"])}])
    assert len(lines(values)) == 16
    solved = run("shapley", "solve", tmp_path / "plan.jsonl", values)
    assert solved.exit_code == 0 and "total: the value of all units less that of none" in solved.output


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"row": 0, "value": 1}\n{"row": 0, "value": 1}\n', "line 2: row 0 is also on line 1"),
        ('{"row": 99, "value": 1}\n', "line 1: row is 99; expected 0 to 15"),
        ('{"row": 0, "value": NaN}\n', "line 1: .* is no JSON object"),
        ('{"row": 0, "value": true}\n', "line 1: value is True; expected an integer or a number"),
        ('{"row": true, "value": 1}\n', "line 1: row is True; expected an integer"),
        ("[]\n", "line 1: .*; expected a JSON object"),
    ],
)
def test_wrong_evaluations_are_named(tmp_path: Path, line: str, words: str) -> None:
    plan(tmp_path / "plan.jsonl", "--budget", 16)
    (tmp_path / "values.jsonl").write_text(line)
    with pytest.raises(CreditError, match=words):
        read_evaluations(read_game(tmp_path / "plan.jsonl"), tmp_path / "values.jsonl")


def test_a_plan_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    plan(path, "--budget", 16)
    text = path.read_text().splitlines()
    text[3] = json.dumps({"row": 2, "team": ["tool"]})
    path.write_text("\n".join(text) + "\n")
    with pytest.raises(CreditError, match="line 4: expected row 2 with the team"):
        read_game(path)


@pytest.mark.slow
def test_noisy_plans_repeat_their_endpoints_and_forests_bring_their_chains(tmp_path: Path) -> None:
    rows = plan(tmp_path / "plan.jsonl", "--budget", 400, "--noise", 0.5, "--parents", "-,boss,boss,solver")
    assert sum(row["team"] == [] for row in rows) > 1
    rng = np.random.default_rng(0)
    values = [{"row": row["row"], "value": value(row["team"]) + 0.01 * rng.normal()} for row in rows]
    write(tmp_path / "values.jsonl", values)
    answer = json.loads(run("shapley", "solve", tmp_path / "plan.jsonl", tmp_path / "values.jsonl", "--json").stdout)
    for row in answer["shares"]:
        assert abs(row["share"] - TRUTH[row["unit"]]) < 5 * row["stderr"]


@pytest.mark.slow
def test_shares_go_into_a_copy_of_a_log_and_from_there_into_advantages(tmp_path: Path) -> None:
    plan(tmp_path / "plan.jsonl", "--budget", 16)
    write(
        tmp_path / "values.jsonl",
        [{"row": i, "value": value(read_game(tmp_path / "plan.jsonl").team(i))} for i in range(16)],
    )
    log, copy = write(tmp_path / "log.jsonl", GOOD), tmp_path / "with_shares.jsonl"
    before = log.read_bytes()
    result = run("shapley", "solve", tmp_path / "plan.jsonl", tmp_path / "values.jsonl", "--log", log, "--output", copy)
    assert result.exit_code == 0 and log.read_bytes() == before
    traces = credit.read(copy)
    found = credit.run(traces, "shapley")
    names = np.array(traces.agents["name"].to_pylist())[np.asarray(traces.graph.agent_ids)[: traces.sizes.events]]
    valid = np.asarray(found.valid)[: traces.sizes.events]
    assert valid.tolist() == np.asarray(traces.graph.action_mask)[: traces.sizes.events].tolist()
    expected = [TRUTH[name] for name in names[valid]]
    np.testing.assert_allclose(np.asarray(found.credit)[: len(valid)][valid], expected, atol=1e-5)


def test_actions_of_one_agent_with_two_shares_have_no_answer() -> None:
    graph, reward, _ = credit.from_columns(group=["g"] * 4, trace=["t"] * 4, agent=list("abab"), reward=[1.0] * 4)
    share = np.full(graph.num_events, np.nan, np.float32)
    share[:4] = [0.7, 0.3, 0.6, 0.3]
    assert np.asarray(credit.shapley(graph, reward, share=share).valid)[:4].tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("units", "budget", "options", "words"),
    [
        (["a", "a"], 9, {}, "expected different names"),
        (["a", "b"], 3, {}, "budget is 3 for 2 units"),
        (["a", "b"], 9, {"noise": -1}, "noise is -1"),
        (["a", "b"], 9, {"parents": ["x", None]}, "parent is 'x'"),
    ],
)
def test_plans_that_cannot_be_are_refused(units: list[str], budget: int, options: dict[str, Any], words: str) -> None:
    with pytest.raises(CreditError, match=words):
        credit.shapley_plan(units, budget, **options)
