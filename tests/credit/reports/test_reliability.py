"""Split-half agreement: high where credit follows the kind of action, none where it is noise, else refused."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from click.testing import CliRunner, Result

import credit
from credit.cli import cli
from credit.reports.reliability import Reliability, reliability
from estimators.base import Credit, finish
from graphs.errors import CreditError
from graphs.traces.batch import Traces
from graphs.worlds import TeamWorld


@pytest.fixture(scope="module")
def traces() -> Traces:
    world = TeamWorld("centralized", agents=6, events=40, group_size=4)
    return world.traces(world.sample(jax.random.key(0), 48))


def scored(traces: Traces, amount: np.ndarray) -> Credit:
    """That amount on each action of a trace with an outcome."""
    graph = traces.graph
    there = np.asarray(graph.action_mask) & np.isfinite(np.asarray(traces.reward))[np.asarray(graph.trace_ids)]
    padded = np.zeros(graph.num_events, np.float32)
    padded[: len(amount)] = amount
    one = np.ones_like(padded)
    return finish(
        graph, credit=padded, baseline=0 * one, scale=one, stderr=one, reason=np.where(there, 0, 3).astype(np.int8),
        unit="event", estimand="score", source="test", centred=False, own_outcome=False,
    )  # fmt: skip


@pytest.mark.study
@pytest.mark.parametrize("halves", ["groups", "traces"])
def test_credit_that_follows_the_agent_agrees_and_noise_does_not(traces: Traces, halves: str) -> None:
    n = traces.sizes.events
    names = np.asarray(traces.graph.agent_name_ids)[np.asarray(traces.graph.agent_ids)[:n]]
    worth = np.random.default_rng(0).normal(size=names.max() + 1)[names]
    noise = np.random.default_rng(1).normal(size=n)
    sure = reliability(traces, lambda half: scored(half, worth), by="agent", halves=halves)
    assert sure.agreement == pytest.approx(1)
    assert sure.groups == 12
    mixed = reliability(traces, lambda half: scored(half, worth + 4 * noise), by="agent", halves=halves)
    blind = reliability(traces, lambda half: scored(half, noise), by="agent", halves=halves)
    assert 0 < mixed.agreement < sure.agreement
    assert mixed.stepped_up == pytest.approx(2 * mixed.agreement / (1 + mixed.agreement))
    assert abs(blind.agreement) < 0.5 and blind.agreement < mixed.agreement


@pytest.mark.slow
def test_halves_see_different_outcomes_and_a_seed_gives_the_same_again(traces: Traces) -> None:
    seen = []

    def method(half: Traces) -> Credit:
        seen.append(np.isfinite(np.asarray(half.reward))[: half.sizes.traces])
        return scored(half, np.ones(half.sizes.events))

    first = reliability(traces, method, by="agent", halves="traces", splits=3)
    for one, other in zip(seen[::2], seen[1::2], strict=True):
        assert not np.any(one & other) and np.all(one | other)
        assert set(np.bincount(np.repeat(np.arange(12), 4), one)) == {2.0}
    again = reliability(traces, method, by="agent", halves="traces", splits=3)
    assert str(first) == str(again)  # NaN: ones do not vary


@pytest.mark.slow
@pytest.mark.parametrize("halves", ["groups", "traces"])
def test_memory_is_that_of_the_pairs_which_the_logs_hold(halves: Any) -> None:
    """2,000 tasks with an agent of their own were a table of 4 million tasks and agents, for each resample anew."""
    task = np.repeat(np.arange(2000), 4)
    names = [f"agent {i}" for i in task]
    _, _, rows = credit.from_columns(group=task, trace=np.arange(8000), agent=names, reward=task % 3 / 2.0)
    worth = np.random.default_rng(0).normal(size=2000)[task]
    tracemalloc.start()
    found = reliability(rows.traces, lambda half: scored(half, worth), by="agent", halves=halves, splits=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6
    if halves == "traces":
        assert found.units == found.groups == 2000 and found.agreement == pytest.approx(1)
    else:
        assert found.units == 0 and math.isnan(found.agreement)  # no agent is in both halves


@pytest.mark.slow
def test_what_cannot_be_split_is_refused(traces: Traces) -> None:
    world = TeamWorld("swarm", agents=3, events=12, group_size=2)
    small = world.traces(world.sample(jax.random.key(0), 2))
    for options, words in (
        ({"halves": "groups"}, "1 task"),
        ({"halves": "traces"}, "2 traces"),
        ({"halves": "events"}, "halves is"),
        ({"by": "colour"}, "by is"),
    ):
        with pytest.raises(CreditError, match=words):
            reliability(small, lambda half: scored(half, np.ones(half.sizes.events)), **options)
    two_kinds = reliability(traces, lambda half: scored(half, np.arange(half.sizes.events) % 7), by="role")
    assert np.isfinite(two_kinds.agreement)


@pytest.mark.slow
def test_the_command_line_says_both(shared_data: Path) -> None:
    command = ["score", "reliability", str(shared_data / "tau_bench_airline"), "-m", "rloo", "--json", "--splits", "2"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["halves"]
    assert found["groups"]["groups"] == found["traces"]["groups"] == 20
    assert -1 <= found["traces"]["agreement"] <= 1 and "low" not in found["traces"]
    assert "interval" not in CliRunner().invoke(cli, [*command[:-3], "--splits", "2"]).stdout


def small_logs(path: Path, tasks: int, traces: int, agents: int = 2) -> Path:
    """Tasks of so many traces each, in which two of the agents act once."""
    with path.open("w") as file:
        for i in range(tasks * traces):
            events = [{"id": f"e{j}", "type": "message", "agent": f"a{(i * i + j) % agents}"} for j in range(2)]
            document = {"trace_id": f"t{i}", "task_id": f"q{i // traces}", "events": events}
            file.write(json.dumps(document | {"rewards": {"team": i % 3 / 2}}) + "\n")
    return path


@pytest.mark.slow
def test_logs_that_can_be_split_in_no_way_are_an_error(tmp_path: Path) -> None:
    def run(*options: str) -> Result:
        return CliRunner().invoke(cli, ["score", "reliability", str(logs), "--splits", "2", *options])

    logs = small_logs(tmp_path / "one.jsonl", tasks=1, traces=2)
    for form in ([], ["--json"]):
        done = run(*form)
        assert done.exit_code == 1 and done.stdout == ""
        assert done.stderr.startswith("error: halves of groups: the logs have 1 task;")
        assert "halves of traces: the largest task has 2 traces" in done.stderr

    logs = small_logs(tmp_path / "few.jsonl", tasks=2, traces=2)  # one kind of tool: nothing to correlate
    done = run()
    assert done.exit_code == 1 and "fewer than 3 numbers in both halves, or equal ones; the mean is 1" in done.stderr

    logs = small_logs(tmp_path / "some.jsonl", tasks=1, traces=9)
    done = run("--by", "agent")
    assert done.exit_code == 1 and "the mean is 2" in done.stderr

    logs = small_logs(tmp_path / "more.jsonl", tasks=5, traces=3)
    assert run("--method", "remax").exit_code == 1
    assert "needs evidence" in run("--method", "remax").stderr


def test_one_way_of_splitting_is_enough(tmp_path: Path) -> None:
    logs = small_logs(tmp_path / "x.jsonl", tasks=30, traces=2, agents=5)
    options = ["--by", "agent", "--splits", "2", "--json", "-m", "rloo"]
    done = CliRunner().invoke(cli, ["score", "reliability", str(logs), *options])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["halves"]
    assert found["groups"]["groups"] == 30 and "4 or more" in found["traces"]


def test_an_agreement_that_cannot_be_stepped_up_is_a_dash_with_its_reason(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disagreeing(*args: Any, **options: Any) -> Reliability:
        return Reliability(-0.3, math.nan, 4, 10, 2)

    monkeypatch.setattr("credit.reports.reliability.reliability", disagreeing)
    done = CliRunner().invoke(cli, ["score", "reliability", str(shared_data / "tau_bench_airline"), "-m", "rloo"])
    assert done.exit_code == 0 and "nan" not in done.stdout
    assert "-0.30" in done.stdout and "of the whole: – where halves do not agree" in done.stdout
