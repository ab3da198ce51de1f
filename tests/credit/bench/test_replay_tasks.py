"""Replays under another task than their trace: how large the bias is, and where it is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.bench.replay_bias import replay_bias
from credit.bench.replay_tasks import Layout, ReplayTaskBias, replay_task_bias
from credit.cli import cli
from credit.method_summary import Summary
from credit.reports.corpus import survey
from graphs.replay_clusters import replays_elsewhere

RESULTS = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "replay_bias.json"


def logged(replay_group: str, beside: bool = True) -> tuple:
    """A trace of task q, a replay of it from its second action on, and an independent trace under one of the tasks."""
    other = ["q", "q"] if beside else ["r", "r"]
    return credit.from_columns(
        group=["q", "q", *other, replay_group, replay_group],
        trace=list("aabbcc"),
        reward=[1.0, 1.0, 0.5, 0.5, 0.0, 0.0],
        turn=[0, 1] * 3,
        evidence={"context": [None, "c", None, None, None, "c"], "node": [None, "x", None, None, None, "y"]},
    )


def test_the_layout_is_seen() -> None:
    graph, reward, rows = logged("r")
    assert replays_elsewhere(graph, np.isfinite(reward)).tolist() == [[2, 0]]
    assert survey(rows.traces).elsewhere == {"c": "a"}


@pytest.mark.slow
def test_a_trace_without_an_action_is_no_companion() -> None:
    """With one under the task of the replay, `validate` and `assign` said nothing, and the replay stayed refused."""
    columns = {"group": list("qqqqrrr"), "trace": list("aabbccd"), "reward": [1.0, 1, 0.5, 0.5, 0, 0, 0]}
    context = [None, "c", None, None, None, "c", None]
    graph, reward, rows = credit.from_columns(**columns, action=[True] * 6 + [False], evidence={"context": context})
    assert not credit.rloo(graph, reward).valid[rows.event[4:6]].any()
    assert replays_elsewhere(graph, np.isfinite(reward)).tolist() == [[2, 0]]
    assert survey(rows.traces).elsewhere == {"c": "a"}


@pytest.mark.study
def test_control_is_not_called_unbiased_there() -> None:
    graph, reward, rows = logged("r")
    signal = credit.compose(graph, reward, []).advantage("control")
    assert signal.credit.valid[rows.event].tolist() == [True] * 4 + [False] * 2
    assert signal.unbiased is None  # it was True
    assert "replays: not checked: 1 trace without an independent one" in str(signal)
    signal = credit.compose(graph, reward, []).advantage("control", baseline=np.zeros(graph.num_traces))
    assert all(condition.name != "replays" for condition in signal.conditions)


def test_assign_names_both_traces() -> None:
    _, _, rows = logged("r")
    summary = Summary()
    summary.add(rows.traces, credit.run(rows, "rloo"), "rloo", {})
    (line,) = [line for line in summary.lines("rloo", {}) if "log them under the task of their trace" in line]
    assert "c (a)" in line
    assert Summary.from_plain(summary.to_plain()).lines("rloo", {}) == summary.lines("rloo", {})


@pytest.mark.parametrize("beside", [True, False])
def test_replays_under_the_task_of_their_trace_are_not_named(beside: bool) -> None:
    graph, reward, rows = logged("q", beside)
    assert not len(replays_elsewhere(graph, np.isfinite(reward)))
    assert survey(rows.traces).elsewhere == {}


def test_a_trace_that_is_alone_is_named_where_its_replay_is_answered() -> None:
    graph, reward, _ = logged("r", beside=False)
    assert replays_elsewhere(graph, np.isfinite(reward)).tolist() == [[0, 2]]


def test_a_replay_without_an_outcome_is_not_named() -> None:
    graph, _, _ = logged("r")
    assert not len(replays_elsewhere(graph, np.arange(graph.num_traces) < 2))


@pytest.mark.slow
def test_a_method_that_answers_the_replay_is_not_named() -> None:
    _, _, rows = logged("r")
    summary = Summary()
    summary.add(rows.traces, credit.run(rows, "reinforce_batch"), "reinforce_batch", {})
    assert not summary.elsewhere


def test_validate_names_both_traces(tmp_path: Path) -> None:
    def trace(name: str, task: str, context: str | None) -> dict:
        second = {"id": "2", "type": "message", "agent": "a"} | ({"context": context} if context else {})
        events = [{"id": "1", "type": "message", "agent": "a"}, second]
        return {"trace_id": name, "task_id": task, "events": events, "rewards": {"team": float(name == "t")}}

    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, [trace("t", "q", "c"), trace("u", "q", None), trace("v", "r", "c")])))
    said = CliRunner().invoke(cli, ["validate", str(log)]).stdout
    assert "share an id of a choice with an answered one of another task: v (t)" in said
    assert json.loads(CliRunner().invoke(cli, ["validate", str(log), "--json"]).stdout)["elsewhere"] == {"v": "t"}


OWN: Layout = "a task for each trace's replays"
SHARED: Layout = "one task for all replays"
ALONE: Layout = "no trace beside its own"


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("method", ["rloo", "turn_baseline"])
@pytest.mark.parametrize("layout", ["one task", OWN, SHARED])
def test_refused_replays_without_weight_leave_no_bias(method: str, layout: Layout) -> None:
    row = replay_task_bias(method, "stop-rewards", layout)
    assert row.answered_siblings < 1e-12
    assert (row.all_siblings < 1e-12) == (layout == "one task")


@pytest.mark.slow
def test_traces_that_only_replays_of_others_answer_are_biased_with_any_weight() -> None:
    row = replay_task_bias("rloo", "stop-rewards", ALONE)
    assert min(row.all_siblings, row.answered_siblings) > 0.9


@pytest.mark.slow
def test_the_stored_numbers_are_what_the_code_gives() -> None:
    stored = [ReplayTaskBias(**row) for row in json.loads(RESULTS.read_text())["tasks"]]
    (row,) = [r for r in stored if (r.method, r.world, r.layout) == ("rloo", "relay-and", OWN)]
    again = replay_task_bias("rloo", "relay-and", OWN)
    assert again.all_siblings == pytest.approx(row.all_siblings, abs=1e-9)
    assert again.answered_siblings == pytest.approx(row.answered_siblings, abs=1e-9)


@pytest.mark.study
@pytest.mark.parametrize(("world", "bias"), [("hire-additive", 0.14), ("delegate-luck", 0.21), ("relay-and", 0.0)])
def test_an_agent_of_one_fan_out_only_is_refused_which_is_a_bias(world: str, bias: float) -> None:
    """Of `dr_mas_rloo`, as docs/bias.md states it; in `relay-and` the same agents act in every trace."""
    row = replay_bias("dr_mas_rloo", world, fans=2, at=1, siblings=2)
    assert row.clustered == pytest.approx(bias, abs=0.005 if bias else 1e-12)
    assert (row.answered < 0.9) == (bias > 0)
