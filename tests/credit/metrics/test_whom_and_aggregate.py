"""Whom a decision asked, and what was made of results: by hand, by enumeration, and by drawn logs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.metrics.aggregate_values import aggregate_values
from credit.metrics.candidate_values import _values, asked_agents, candidate_values
from estimators.base import Reason
from graphs.errors import CreditError
from graphs.traces.batch import Traces

CHANCE = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])  # of each candidate at each of two prefixes
WORTH = np.array([[1.0, 0.0, 0.4], [0.2, 0.9, 0.0]])


def read(folder: Path, logs: list[dict[str, Any]]) -> Traces:
    path = folder / "runs.jsonl"
    path.write_text("".join(json.dumps(log) + "\n" for log in logs))
    return credit.read(path)


def outcome(reward: float | None) -> dict[str, float]:
    return {} if reward is None else {"team": reward}


def ask(name: str, agent: str, reward: float | None, chance: float | None = 0.5, **trace: Any) -> dict[str, Any]:
    evidence = {} if chance is None else {"propensity": chance}
    events = [{"id": "0", "type": "orchestrator_decision", "agent": "lead"} | evidence,
              {"id": "1", "type": "message", "agent": agent}]  # fmt: skip
    edges = [{"src": "0", "dst": "1", "type": "message"}]
    return {
        "trace_id": name,
        "task_id": "q",
        "rewards": outcome(reward),
        "costs": {},
        "events": events,
        "edges": edges,
    } | trace


def test_a_call_that_emits_a_spawn_asked_whom_it_spawned(tmp_path: Path) -> None:
    emitted = ask("a", "coder", 1.0) | {
        "events": [{"id": "0", "type": "orchestrator_decision", "agent": "lead", "action": True},
                   {"id": "s", "type": "spawn", "agent": "lead", "to": "coder", "action": False},
                   {"id": "1", "type": "message", "agent": "coder", "action": True},
                   {"id": "r", "type": "return", "agent": "coder", "to": "lead"},
                   {"id": "2", "type": "message", "agent": "lead", "action": True}],
        "edges": [{"src": "0", "dst": "s", "type": "causal"}, {"src": "s", "dst": "1", "type": "spawn"},
                  {"src": "1", "dst": "r", "type": "causal"}, {"src": "r", "dst": "2", "type": "return"}],
    }  # fmt: skip
    assert asked_agents(read(tmp_path, [emitted])) == {0: "coder"}


def test_the_mean_over_all_batches_is_the_value_of_the_candidate() -> None:
    """Three traces, two prefixes of equal chance, three candidates: E[R | k] − E[R], within rounding."""
    draws = [(0.5 * CHANCE[h, a], h, a) for h in range(2) for a in range(3)]
    mean = np.zeros(3)
    for batch in itertools.product(draws, repeat=3):
        part = np.prod([p for p, _, _ in batch])
        prefix, chosen = np.array([h for _, h, _ in batch]), np.array([a for _, _, a in batch])
        for k in range(3):
            mean[k] += part * covariance(chosen == k, CHANCE[prefix, chosen], WORTH[prefix, chosen])
    truth = WORTH.mean(axis=0) - 0.5 * np.sum(CHANCE * WORTH)
    np.testing.assert_allclose(mean, truth, atol=1e-14)


class ValueOf(NamedTuple):
    value: float
    stderr: float
    reason: int


def value_of(picked: np.ndarray, chance: np.ndarray, earned: np.ndarray) -> ValueOf:
    """What the library says of the candidate that these decisions of one step picked, each of a trace of its own."""
    found = _values(np.zeros(len(picked), int), (~picked).astype(int), chance, earned, np.arange(len(picked)))
    return ValueOf(float(found.value[0]), float(found.stderr[0]), int(found.reason[0]))


def covariance(picked: np.ndarray, chance: np.ndarray, earned: np.ndarray) -> float:
    """The pairs, written out; what the library computes is compared wherever it answers."""
    u, n = np.where(picked, 1 / chance, 0.0), len(earned)
    pairs = sum(u[i] * (earned[i] - earned[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    found = value_of(picked, chance, earned)
    if found.reason != Reason.TOO_FEW:
        assert found.value == pytest.approx(pairs, abs=1e-12)
    return float(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_intervals_cover_the_value(seed: int) -> None:
    """300 logs of 400 decisions each, three candidates: 95 % within what 900 intervals allow."""
    rng = np.random.default_rng(seed)
    truth = WORTH.mean(axis=0) - 0.5 * np.sum(CHANCE * WORTH)
    inside, answered = 0, 0
    for _ in range(300):
        prefix = rng.integers(0, 2, 400)
        chosen = (rng.random((400, 1)) > np.cumsum(CHANCE[prefix], axis=1)).sum(axis=1)
        won = (rng.random(400) < WORTH[prefix, chosen]).astype(float)
        for k in range(3):
            found = value_of(chosen == k, CHANCE[prefix, chosen], won)
            if found.reason == Reason.VALID and np.isfinite(found.stderr):
                answered += 1
                inside += abs(found.value - truth[k]) < 1.96 * found.stderr
    assert answered > 550  # the first candidate has too few effective picks in some logs
    assert 0.925 < inside / answered < 0.975


def test_what_cannot_be_told_is_refused_with_its_reason(tmp_path: Path) -> None:
    """A propensity that is missing, a prefix that cannot ask a candidate, a single pick."""
    logs = [ask("a", "x", 1.0), ask("b", "y", 0.0, None), ask("c", "x", 0.0)]
    rows = candidate_values(read(tmp_path, logs))
    assert {row.value for row in rows} == {None} and "propensity" in rows[0].reason
    only_half = [ask(str(i), "x" if i % 2 else "yz"[i % 4 // 2], 1.0, 1 - 1e-3 if i % 2 else 0.5) for i in range(80)]
    found = {row.candidate: row for row in candidate_values(read(tmp_path, only_half))}
    assert found["x"].value is None and "support" in found["x"].reason
    single = candidate_values(read(tmp_path, [ask("a", "x", 1.0), ask("b", "y", 0.0), ask("c", "y", 0.0)]))
    assert [row.value is None for row in single] == [True, False] and "too few" in single[0].reason
    pairs = [("a", "x", 0.0), ("b", "x", 0.25), ("c", "y", 1.0), ("d", "y", 0.5)]
    far = candidate_values(read(tmp_path, [ask(name, agent, 1e9 + reward) for name, agent, reward in pairs]))
    near = candidate_values(read(tmp_path, [ask(name, agent, reward) for name, agent, reward in pairs]))
    assert far == near  # the log has double precision
    with pytest.raises(CreditError, match="nobody was asked"):
        candidate_values(read(tmp_path, [ask("a", "x", None)]))


def test_aggregation_by_hand(tmp_path: Path) -> None:
    """Best and mean 1 and 0.5 in the first trace, 0.5 and 0.25 in the second; the third lacks a reward."""

    def combine(name: str, reward: float, results: list[float | None]) -> dict[str, Any]:
        events: list[dict[str, Any]] = [
            {"id": str(i), "type": "message", "agent": f"w{i}"} | ({} if r is None else {"agent_reward": r})
            for i, r in enumerate(results)
        ]
        events.append({"id": "j", "type": "aggregate", "agent": "judge"})
        edges = [{"src": str(i), "dst": "j", "type": "aggregate"} for i in range(len(results))]
        return {
            "trace_id": name,
            "task_id": "q",
            "rewards": outcome(reward),
            "costs": {},
            "events": events,
            "edges": edges,
        }

    logs = [combine("a", 1.0, [1.0, 0.0]), combine("b", 0.0, [0.5, 0.0]), combine("c", 0.0, [0.5, None])]
    (row,) = aggregate_values(read(tmp_path, logs))
    assert (row.agent, row.decisions, row.unknown, row.results) == ("judge", 2, 1, 2.0)
    assert (row.over_best, row.over_mean) == (-0.25, 0.125)
    assert (row.over_best_stderr, row.over_mean_stderr) == (None, None)  # two traces tell no error
    many = [log | {"trace_id": f"{log['trace_id']}{i}", "task_id": str(i)} for i in range(80) for log in [logs[i % 2]]]
    (row,) = aggregate_values(read(tmp_path, many))
    errors = [2 * spread * 0.107932 / 1.959964 for spread in (0.25, 0.375)]  # Jeffreys' of 40 coins of 80
    assert [row.over_best_stderr, row.over_mean_stderr] == pytest.approx(errors, rel=1e-4)
    (row,) = aggregate_values(read(tmp_path, [log | {"task_id": "q"} for log in many]))
    assert (row.decisions, row.over_best_stderr) == (80, None)  # traces of one task share its luck
    far = [combine(n, 1e8 + r, [1e8 + x for x in y]) for n, r, y in (("a", 0.5, [0.5, 0.25]), ("b", 0.25, [0.5, 0.75]))]
    with pytest.raises(CreditError, match="subtract an offset"):
        aggregate_values(read(tmp_path, far))
    replays = [combine("a", 1.0, [1.0, 0.0]), combine("b", 0.0, [0.5, 0.0])]
    for log in replays:
        log["events"][0] |= {"node": "n", "context": "c"}
    (row,) = aggregate_values(read(tmp_path, replays))
    assert (row.decisions, row.over_best_stderr) == (2, None)  # one sample
    with pytest.raises(CreditError, match="no action of type aggregate"):
        aggregate_values(read(tmp_path, [ask("a", "x", 1.0)]))
    with pytest.raises(CreditError, match="agent_reward"):
        aggregate_values(read(tmp_path, [combine("a", 1.0, [None, None])]))


def test_the_command_shows_both(tmp_path: Path) -> None:
    log = ask("a", "coder", 1.0)
    log["events"] += [{"id": "2", "type": "message", "agent": "critic", "agent_reward": 0.0},
                      {"id": "3", "type": "aggregate", "agent": "lead"}]  # fmt: skip
    log["events"][1]["agent_reward"] = 1.0
    log["edges"] += [{"src": src, "dst": "3", "type": "aggregate"} for src in "12"]
    read(tmp_path, [log | {"trace_id": name} for name in "abc"])
    for kind, row in (("whom", "lead 0 3 coder 3 0 –"), ("aggregate", "lead 3 0 2 1 1 0 – 0.5 +0.5 –")):
        shown = CliRunner().invoke(cli, ["decisions", str(tmp_path), "--of", kind])
        assert shown.exit_code == 0, shown.output
        assert row in " ".join(shown.stdout.split())
    refused = CliRunner().invoke(cli, ["decisions", str(tmp_path), "--of", "whom", "--price", "1"])
    assert refused.exit_code == 1 and "--price" in refused.output


def test_claims_that_are_refused_by_picks_have_no_mean_of_zero() -> None:
    """Why there is no method of whom to ask: docs/stopping.md has these figures."""
    chance, worth = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.5, 0.0])
    mean = unpicked = 0.0
    for picks in itertools.product(range(3), repeat=4):
        others = np.array(picks[1:])
        same, weight = others == picks[0], float(np.prod(chance[list(picks)]))
        found = value_of(same, chance[others], worth[others])
        mean += weight * found.value if found.reason == Reason.VALID else 0.0
        unpicked += weight if not same.any() else 0.0
    assert (round(mean, 3), round(unpicked, 2)) == (0.048, 0.27)
    assert round(float(np.sqrt(chance @ (worth - chance @ worth) ** 2)), 2) == 0.39
