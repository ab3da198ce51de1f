"""Re-running worlds whose truth is known: plans, results that survive being killed, and evidence with honest errors."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import credit
from credit.replay.added_evidence import add_replays
from credit.replay.allocation import allocate, predicted_stderr
from credit.replay.drivers.micro_driver import MicroReplayer
from credit.replay.execution import Limits, execute, read_results
from credit.replay.json_lines import append_lines
from credit.replay.replay_plan import ReplayPlan, read_plan, write_plan
from credit.replay.replayer import CallableReplayer, Continuation, Prefix, PrefixError, load_replayer
from credit.replay.run_planning import known_from, plan_replays
from graphs import CreditError
from graphs.worlds.micro.examples import MICRO

WORLD = MICRO["spawn-and"]
ROOT = Path(__file__).resolve().parents[3]
FAST = Limits(concurrency=2, pause=0.0)


def log() -> credit.Traces:
    return WORLD.batch()


def truth(purpose: str) -> np.ndarray:
    """By action in log order: V(h), or the expected return with choice 0 in its place."""
    rows = []
    for state in WORLD.state.tolist():
        for s in state:
            if s >= 0:
                rows.append(WORLD.v[s] if purpose == "value" else WORLD.q[s, 0])
    return np.array(rows)


# --- Allocation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_allocation_is_the_best_of_all(seed: int) -> None:
    """No other way to spend the budget has a smaller sum of variances."""
    rng = np.random.default_rng(seed)
    spread, done = rng.choice([0.0, 0.1, 0.5, 1.0, 1.7], 3), rng.integers(0, 3, 3)
    if not spread.any():
        spread[0] = 1.0
    budget = 9
    least = 1
    found = allocate(spread, budget, done=done, least=least)
    assert found.sum() == budget

    def loss(n: Sequence[int]) -> float:
        total = np.array(n) + done
        return math.inf if (total < least).any() else float((spread**2 / total).sum())

    best = min(loss(n) for n in itertools.product(range(budget + 1), repeat=3) if sum(n) == budget)
    assert loss(found.tolist()) == pytest.approx(best, rel=1e-12)
    assert (found >= np.maximum(0, least - done)).all()


def test_allocation_of_large_budgets_follows_the_spreads() -> None:
    spread = np.array([4.0, 2.0, 1.0, 1.0])
    runs = allocate(spread, 80_000)
    np.testing.assert_allclose(runs / runs.sum(), spread / spread.sum(), atol=1e-3)
    np.testing.assert_allclose(predicted_stderr(spread, runs), spread / np.sqrt(runs))


def test_allocation_refuses_what_cannot_be() -> None:
    with pytest.raises(CreditError, match="budget is 3; expected at least 4"):
        allocate(np.ones(2), 3, least=2)
    with pytest.raises(CreditError, match="negative or not finite"):
        allocate(np.array([1.0, np.nan]), 3)
    assert allocate(np.zeros(2), 10, least=2).tolist() == [2, 2]


# --- Plans ------------------------------------------------------------------------------------------------------------


def test_a_plan_comes_back_from_its_file(tmp_path: Path) -> None:
    plan = plan_replays(log(), "difference", 200, seed=3)
    write_plan(plan, tmp_path / "plan.jsonl")
    assert read_plan(tmp_path / "plan.jsonl") == plan
    assert plan.runs == 200 and len(plan.jobs) == int(np.asarray(log().graph.action_mask).sum())


def test_stop_plans_replace_each_side_by_the_other() -> None:
    _, _, rows = credit.from_columns(
        group=[0] * 4, trace=["a", "a", "a", "b"], event_type=["message", "tool_call", "stop", "message"],
        reward=[1.0] * 4, evidence={"stop_propensity": [0.5, None, None, 0.25]},
    )  # fmt: skip
    plan = plan_replays(rows.traces, "stop", 30, replace="end", go_on="ask")
    assert [(job.prefix.trace, job.replace) for job in plan.jobs] == [("a", "end"), ("a", "ask"), ("b", "end")]
    with pytest.raises(CreditError, match="no stop and no stop_propensity"):
        plan_replays(credit.from_columns(group=[0], trace=["a"], reward=[1.0])[2].traces, "stop", 30)


def test_spawn_plans_hold_spawns_only() -> None:
    traces = log()
    plan = plan_replays(traces, "spawn", 100)
    spawns = [s for s, decision in enumerate(WORLD.states.values()) if decision.type.name == "SPAWN"]
    assert len(plan.jobs) == int(np.isin(WORLD.state, spawns).sum())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runs": 0}, "line 2: runs is 0"),
        ({"more": [1]}, "line 2: more is .*; expected a list of texts"),
        ({"before": 3}, "line 2: before is 3; expected 0, as many as earlier jobs list of trace"),
        ({"before": -1}, "line 2: before is -1; expected 0"),
        ({"job": 5}, "line 2: job is 5; expected 0"),
        ({"replace": 3}, "line 2: replace is 3; expected a text or null"),
    ],
)
def test_plans_that_were_damaged_are_named(tmp_path: Path, change: dict[str, object], words: str) -> None:
    path = tmp_path / "plan.jsonl"
    write_plan(plan_replays(log(), "value", 100), path)
    lines = path.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(CreditError, match=words):
        read_plan(path)


# --- Evidence against the truth ---------------------------------------------------------------------------------------


def run_all(plan: ReplayPlan, path: Path) -> credit.Traces:
    return add_replays(log(), plan, execute(plan, MicroReplayer(WORLD), path, limits=FAST))


@pytest.mark.study
@pytest.mark.parametrize("purpose", ["value", "difference"])
def test_means_of_replays_lie_within_their_errors_of_the_truth(tmp_path: Path, purpose: str) -> None:
    traces = log()
    n = int(np.asarray(traces.graph.action_mask).sum())
    plan = plan_replays(traces, purpose, 12 * n, seed=1)  # type: ignore[arg-type]
    replayer, expected = MicroReplayer(WORLD), truth(purpose)
    inside, total = 0, 0
    for i, (job, true) in enumerate(zip(plan.jobs, expected, strict=True)):
        rewards = np.array([c.reward for c in replayer.run(job.prefix, replace=job.replace, n=200, seed=i)])
        error = rewards.std(ddof=1) / np.sqrt(200)
        inside += abs(rewards.mean() - true) <= 1.96 * error + 1e-9
        total += 1
    assert inside / total > 0.85
    known = run_all(plan, tmp_path / "results.jsonl")
    name = "value" if purpose == "value" else "counterfactual_reward"
    assert known.evidence["replays"].amounts.tolist() == [12] * n
    error = known.evidence[name].amounts - expected
    assert abs(error.mean()) < 4 * np.abs(error).std() / np.sqrt(n) + 0.02
    method = "gae" if purpose == "value" else "difference_reward"
    assert np.asarray(credit.run(known, method).valid)[: traces.sizes.events].all()


@pytest.mark.slow
def test_a_second_plan_spends_by_the_spread_of_the_first(tmp_path: Path) -> None:
    """At equal budget, its mean squared error is below that of an even plan in a world whose spreads differ."""

    def noise(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        spread = 4.0 if prefix.trace.endswith("0001") else 0.1
        return float(spread * np.random.default_rng(seed).normal())

    traces = log()
    n = int(np.asarray(traces.graph.action_mask).sum())
    first = plan_replays(traces, "value", 6 * n)
    results = execute(first, CallableReplayer(noise), tmp_path / "first.jsonl", limits=FAST)
    second = plan_replays(traces, "value", 24 * n, seed=1, known=known_from(first, results))
    wide = [job.runs for job in second.jobs if job.prefix.trace.endswith("0001")]
    rest = [job.runs for job in second.jobs if not job.prefix.trace.endswith("0001")]
    assert np.mean(wide) > 3 * np.mean(rest) and second.runs == 24 * n


def test_a_coalition_of_a_world_earns_its_worth() -> None:
    """Forbidden agents are idle: Shapley games of the world can be evaluated by its driver."""
    replayer, agents = MicroReplayer(WORLD), WORLD.agents
    for size in range(len(agents) + 1):
        for team in itertools.combinations(agents, size):
            absent = [agent for agent in agents if agent not in team]
            runs = replayer.run(Prefix(f"{WORLD.name}-0000", WORLD.name), forbid=absent, n=4000, seed=size)
            rewards = np.array([run.reward for run in runs])
            error = rewards.std(ddof=1) / np.sqrt(4000)
            assert abs(rewards.mean() - WORLD.worth(frozenset(team))) < 4 * error + 1e-9


# --- Execution --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_runs_are_made_once_and_resumed(tmp_path: Path) -> None:
    plan, path = plan_replays(log(), "value", 120), tmp_path / "results.jsonl"
    calls: list[int] = []

    def counted(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        calls.append(seed)
        return 1.0

    execute(plan, CallableReplayer(counted), path, limits=FAST)
    assert len(calls) == len(set(calls)) == 120
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:50]) + "\n" + lines[50][:9])  # killed within a line
    results = execute(plan, CallableReplayer(counted), path, limits=FAST)
    assert len(calls) == 120 + 70 and set(calls[120:]) <= set(calls[:120])  # the same seeds
    assert results.done == 120 and len(path.read_text().splitlines()) == 120


@pytest.mark.slow
def test_failures_are_retried_counted_and_never_scored(tmp_path: Path) -> None:
    plan, path, tries = plan_replays(log(), "value", 120), tmp_path / "results.jsonl", {}
    lock = threading.Lock()

    def flaky(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        with lock:
            tries[seed] = tries.get(seed, 0) + 1
        if seed % 3 == 0:
            raise TimeoutError("no answer")
        if seed % 3 == 1 and tries[seed] < 3:
            raise ConnectionError("try again")
        return math.nan if seed % 30 == 2 else 1.0

    results = execute(plan, CallableReplayer(flaky), path, limits=FAST)
    failed = sum(map(len, results.failed))
    assert failed == sum(seed % 3 == 0 or seed % 30 == 2 for seed in tries)
    assert 0 < failed < 120 and results.done + failed == 120
    assert all(reward == 1.0 for by_run in results.rewards for reward in by_run.values())
    again = execute(plan, CallableReplayer(lambda *_: 0.5), path, limits=FAST)  # what failed is tried again
    assert again.done == 120 and not any(again.failed)


class Batches:
    """Makes seven runs at once; every third fails the first time."""

    at_once = 7

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def run(self, prefix: Prefix, **options: object) -> list[Continuation]:
        raise AssertionError(f"{prefix} was run alone")

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> list[Continuation | Exception]:
        self.asked.append(list(seeds))
        before = [seed for batch in self.asked[:] for seed in batch]
        return [
            OSError("broke") if seed % 3 == 0 and before.count(seed) < 2 else Continuation(1.0, tokens=5)
            for seed in seeds
        ]


def test_runs_of_a_batch_that_failed_are_tried_again_without_the_others(tmp_path: Path) -> None:
    plan, path, driver = plan_replays(log(), "value", 120), tmp_path / "results.jsonl", Batches()
    results = execute(plan, driver, path, limits=FAST)
    tries = collections.Counter(seed for batch in driver.asked for seed in batch)
    assert results.done == 120 and not any(results.failed) and results.tokens == 600
    assert max(map(len, driver.asked)) <= 7
    assert len(tries) == 120 and all(count == 1 + (seed % 3 == 0) for seed, count in tries.items())
    once = execute(plan, Batches(), tmp_path / "once.jsonl", limits=dataclasses.replace(FAST, attempts=1, failures=9))
    assert sum(map(len, once.failed)) == sum(seed % 3 == 0 for seed in tries)
    assert once.done == 120 - sum(map(len, once.failed))


def test_a_prefix_that_does_not_reproduce_is_named_and_no_evidence(tmp_path: Path) -> None:
    plan, path = plan_replays(log(), "value", 120), tmp_path / "results.jsonl"
    bad = plan.jobs[3].prefix

    def strays(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        if prefix == bad:
            raise PrefixError("the tool answered otherwise")
        return 1.0

    results = execute(plan, CallableReplayer(strays), path, limits=FAST)
    assert dict(results.strayed) == {3: "the tool answered otherwise"}
    known = add_replays(log(), plan, results)
    assert known.evidence["value"].mask.sum() == len(plan.jobs) - 1


def test_results_of_another_plan_or_counted_twice_are_refused(tmp_path: Path) -> None:
    plan, path = plan_replays(log(), "value", 120), tmp_path / "results.jsonl"
    line = {"job": 0, "run": 0, "reward": 1.0, "alternative": "", "tokens": 0}
    append_lines(path, [line])
    append_lines(path, [line])
    with pytest.raises(CreditError, match="line 2: run 0 of job 0 occurs twice"):
        read_results(plan, path)
    path.write_text(json.dumps(line | {"job": 10_000}) + "\n")
    with pytest.raises(CreditError, match="line 1: run 0 of job 10000 is not in the plan"):
        execute(plan, MicroReplayer(WORLD), path)


def test_a_second_execution_into_one_file_is_refused_and_the_first_ends(tmp_path: Path) -> None:
    plan, path = plan_replays(log(), "value", 80), tmp_path / "results.jsonl"
    begun, go_on = threading.Event(), threading.Event()

    def team(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        begun.set()
        assert go_on.wait(60)
        return 1.0

    first = threading.Thread(target=execute, args=(plan, CallableReplayer(team), path), kwargs={"limits": FAST})
    first.start()
    assert begun.wait(60)
    try:
        with pytest.raises(CreditError, match=r"another process writes .*results\.jsonl"):
            execute(plan, CallableReplayer(team), path, limits=FAST)
    finally:
        go_on.set()
        first.join()
    assert read_results(plan, path).done == plan.runs
    assert [one.name for one in tmp_path.iterdir()] == ["results.jsonl"]


def test_drivers_are_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_driver_for_tests.py").write_text(
        "def one(prefix, replace, forbid, seed):\n    return 1.0\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    assert load_replayer("my_driver_for_tests:one").run(Prefix("t", "g"), n=2, seed=0) == [Continuation(1.0)] * 2
    for name, words in (
        ("my_driver_for_tests", "expected MODULE:ATTRIBUTE"),
        ("my_driver_for_tests:two", "has no attribute 'two'"),
        ("my_driver_for_tests:number", "expected an object with `run`, or a function"),
        ("no_such_module_here:one", "No module named"),
    ):
        with pytest.raises(CreditError, match=words):
            load_replayer(name)


@pytest.mark.study
def test_killed_at_random_moments_no_outcome_is_lost_or_counted_twice(tmp_path: Path) -> None:
    """Twenty processes are killed; what each wrote stays, and the file ends with every run once."""
    plan, path = plan_replays(log(), "value", 400), tmp_path / "results.jsonl"
    write_plan(plan, tmp_path / "plan.jsonl")
    (tmp_path / "slow_driver.py").write_text(
        "import time\ndef one(prefix, replace, forbid, seed):\n    time.sleep(0.01)\n    return float(seed % 2)\n"
    )
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(tmp_path)!r}]\n"
        "from pathlib import Path\n"
        "from credit.replay.execution import execute\n"
        "from credit.replay.replay_plan import read_plan\n"
        "from credit.replay.replayer import load_replayer\n"
        f"execute(read_plan(Path({str(tmp_path / 'plan.jsonl')!r})), load_replayer('slow_driver:one'),"
        f" Path({str(path)!r}))\n"
    )
    rng, kept = np.random.default_rng(0), set()
    for _ in range(20):
        process = subprocess.Popen([sys.executable, "-c", code])
        started = path.stat().st_size if path.exists() else 0
        for _ in range(600):
            if (path.exists() and path.stat().st_size > started) or process.poll() is not None:
                break
            time.sleep(0.05)
        time.sleep(float(rng.uniform(0, 0.1)))
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        results = read_results(plan, path)
        now = {(job, run) for job, by_run in enumerate(results.rewards) for run in by_run}
        assert kept <= now
        kept = now
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert read_results(plan, path).done == 400


# --- The command line -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_from_a_log_to_advantages_by_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from credit.cli import cli
    from graphs.writers import native

    def run(*args: object, code: int = 0) -> str:
        result = CliRunner().invoke(cli, list(map(str, args)))
        assert result.exit_code == code, result.output
        return result.output

    native.write(log(), tmp_path / "log.jsonl")
    (tmp_path / "driver_of_spawn_and.py").write_text(
        "from credit.replay.drivers.micro_driver import MicroReplayer\n"
        "from graphs.worlds.micro.examples import MICRO\n"
        "team = MicroReplayer(MICRO['spawn-and'])\n"
    )
    monkeypatch.chdir(tmp_path)
    n = int(np.asarray(log().graph.action_mask).sum())
    run("plan", "log.jsonl", "--for", "difference", "--budget", 4 * n, "-o", "plan.jsonl")
    output = run(
        "replay", "plan.jsonl", "--driver", "driver_of_spawn_and:team", "--results", "results.jsonl",
        "--log", "log.jsonl", "-o", "with.jsonl",
    )  # fmt: skip
    assert f"{4 * n} of {4 * n} runs done" in output
    run("plan", "log.jsonl", "--for", "difference", "--budget", 4 * n, "--after", "plan.jsonl", "results.jsonl",
        "-o", "more.jsonl")  # fmt: skip
    assert read_plan(tmp_path / "more.jsonl").runs == 4 * n
    run("assign", "with.jsonl", "--method", "difference_reward", "-o", "advantages.parquet")
    known = credit.read(tmp_path / "with.jsonl")
    assert known.evidence["replays"].amounts.tolist() == [4] * n
    assert "plan.jsonl' is an input" in run("replay", "plan.jsonl", "--results", "plan.jsonl", code=1)
