"""Credit against blame: ranks, ties, yardsticks and intervals by hand, and what the command says of Who&When."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import betaincinv

from credit.cli import cli
from credit.cli.trust.score import _with_interval
from credit.reports.blame import blame_cases, method_scores, number_scores, prior_scores
from estimators import rloo
from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import TraceRecord


def batch(*runs: tuple[str, str, int, str], labelled: bool = True) -> Traces:
    """Traces of (group, one letter an action: its agent, blamed step, blamed agent), with a tool's result behind."""
    records = []
    for number, (group, speakers, step, agent) in enumerate(runs):
        record = TraceRecord(f"t{number}", group, "hand")
        for i, speaker in enumerate(speakers):
            labels = {"blamed": float(i == step), "blamed_agent": float(speaker == agent)} if labelled else {}
            record.event(str(i), EventType.MESSAGE, speaker, action=True, value=float(i), **labels)
        labels = {"blamed": float(step == len(speakers)), "blamed_agent": 0.0} if labelled else {}
        record.event("out", EventType.TOOL_RESULT, speakers[0], action=False, **labels)
        record.rewards["team"] = float(number % 2)
        records.append(record)
    return assemble(records)


def scored(traces: Traces, advantage: list[float]) -> dict[str, tuple[float, float]]:
    """(hits, rank) by target for advantages of the actions in order."""
    from dataclasses import replace

    credit = rloo(traces.graph, traces.reward)
    numbers = np.zeros(len(traces.graph.action_mask), np.float32)
    numbers[np.asarray(traces.graph.action_mask)] = advantage
    reason = np.zeros(len(numbers), np.int32)
    made = replace(credit, credit=numbers, baseline=np.zeros_like(numbers), scale=np.ones_like(numbers), reason=reason)
    return {score.target: (score.hits, score.rank) for score in method_scores(blame_cases(traces), made, "made")}


def test_the_lowest_number_is_named_first() -> None:
    traces = batch(("g", "aab", 1, "b"))
    assert scored(traces, [0.0, -1.0, 0.5]) == {"step": (1.0, 0.0), "agent": (0.0, 1.0)}
    assert scored(traces, [0.0, 1.0, -3.0]) == {"step": (0.0, 1.0), "agent": (1.0, 0.0)}


def test_ties_are_broken_at_random() -> None:
    assert scored(batch(("g", "aabb", 0, "a")), [-1, -1, 0, 0])["step"] == (0.5, pytest.approx(0.5 / 3))
    assert scored(batch(("g", "aabb", 0, "a")), [0, 0, 0, 0]) == {"step": (0.25, 0.5), "agent": (0.5, 0.5)}


def test_a_blamed_result_is_no_action_and_counts_for_agents_only() -> None:
    scores = prior_scores(blame_cases(batch(("g", "ab", 2, "a"), ("h", "ab", 0, "a"))))
    assert {(score.target, score.cases) for score in scores} == {("step", 1), ("agent", 2)}


def test_priors_by_hand() -> None:
    traces = batch(("g", "aab", 1, "a"), ("h", "abb", 1, "b"), ("i", "ab", 0, "b"))
    found = {(score.target, score.name): (score.hits, score.rank) for score in prior_scores(blame_cases(traces))}
    assert found == {
        ("step", "chance"): (pytest.approx((1 / 3 + 1 / 3 + 1 / 2) / 3), 0.5),
        ("step", "always action 1"): (pytest.approx(2 / 3), pytest.approx(1 / 3)),
        ("agent", "chance"): (0.5, 0.5),
        ("agent", "most active agent"): (pytest.approx(2.5 / 3), pytest.approx(0.5 / 3)),
        ("agent", "agent of action 1"): (1.0, 0.0),
    }


@pytest.mark.slow
def test_intervals_count_groups_not_traces() -> None:
    """Ten copies of a run in one group say no more than one; a k that was chosen on these runs has no interval."""
    runs = [(f"g{i}", "aab" if i < 38 else "aabbb", i % 3, "aab"[i % 3]) for i in range(58)]
    once = prior_scores(blame_cases(batch(*runs)))
    often = prior_scores(blame_cases(batch(*(run for run in runs for _ in range(10)))))
    for a, b in zip(once, often, strict=True):
        assert (a.hits, a.hits_low, a.rank_high) == pytest.approx((b.hits, b.hits_low, b.rank_high), nan_ok=True)
    by = {score.name: score for score in once if score.target == "agent"}
    hits = np.array([float(runs[i][3] == ("a" if i < 38 else "b")) for i in range(58)])
    active = by["most active agent"]
    jeffreys = betaincinv(hits.sum() + 0.5, 58.5 - hits.sum(), np.array([0.025, 0.975]))
    assert (active.hits_low, active.hits_high) == pytest.approx(tuple(jeffreys))
    assert all(
        math.isnan(score.hits_low) == ("action" in score.name) for score in by.values() if score.name != "chance"
    )
    lone = prior_scores(blame_cases(batch(*runs[:39])))
    assert all(math.isnan(score.hits_low) and math.isnan(score.rank_high) for score in lone)


def test_no_interval_of_a_share_leaves_0_to_1() -> None:
    """47 of 48 tasks were printed as 0.979 ± 0.042."""
    traces = batch(*((f"g{i}", "aab", int(i == 0), "a") for i in range(48)))
    (step, _) = number_scores(blame_cases(traces), np.tile([0.0, 1.0, 1.0, 1.0], 48), "first")
    assert 0.85 < step.hits_low < step.hits < step.hits_high < 1
    assert math.isnan(step.rank_low)  # one rank of 48 says nothing of how large others are
    assert _with_interval(step.hits, step.hits_low, step.hits_high).startswith("0.979 (0.9")


def test_logs_without_labels_are_refused() -> None:
    with pytest.raises(CreditError, match="blamed"):
        blame_cases(batch(("g", "ab", 0, "a"), labelled=False))


@pytest.mark.slow
def test_the_command_says_that_comparing_outcomes_gives_nothing(shared_data: Path) -> None:
    result = CliRunner().invoke(
        cli, ["score", "blame", str(shared_data / "who_and_when"), "--method", "rloo", "--json"]
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    rows = {(row["target"], row["name"]): row for row in told["scores"]}
    assert rows["step", "rloo"]["hits"] == rows["step", "chance"]["hits"]
    assert rows["agent", "rloo"]["cases"] == 67 and rows["step", "rloo"]["cases"] == 65
    assert rows["step", "always action 3"]["hits"] > rows["step", "chance"]["hits"]
    assert "67 of 67 runs" in told["says"][0]
    assert "every run has outcome 0, and 29 of 48 groups" in told["says"][1]
    assert "gae (value)" in told["says"][2]
    shown = CliRunner().invoke(cli, ["score", "blame", str(shared_data / "who_and_when"), "--method", "rloo"])
    assert "named first" in shown.stdout and "29 of 48" in shown.stdout
