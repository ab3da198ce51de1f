"""Every purpose of a plan, through the command line against exact truth; budgets in tokens; limits of runs; pooling."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.replay.added_evidence import write_evidence
from credit.replay.allocation import allocate, parse_budget
from credit.replay.execution import Limits, execute
from credit.replay.pooling import pooled
from credit.replay.replayer import CallableReplayer, Continuation, Prefix
from credit.replay.run_planning import known_from, outcome_spread, plan_replays, run_costs
from credit.replay.run_results import Results
from credit.replay.team_planning import plan_coalitions, predicted_share_stderr
from credit.reports.trace_returns import returns
from graphs import CreditError
from graphs.worlds.micro.examples import MICRO
from graphs.writers import native

FAST = Limits(concurrency=2, pause=0.0)


def command(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, args)))
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "driver_of_micro_worlds.py").write_text(
        "from credit.replay.drivers.micro_driver import MicroReplayer\n"
        "from graphs.worlds.micro.examples import MICRO\n"
        "spawn = MicroReplayer(MICRO['spawn-and'])\n"
        "relay = MicroReplayer(MICRO['relay-and'])\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tokens_log(path: Path) -> credit.Traces:
    """Two traces of one task: three actions of 100, 20 and 3 tokens, and one of 7."""
    path.write_text(
        '{"trace_id": "a", "task_id": "q", "events": ['
        '{"id": "e0", "t": 0, "type": "message", "agent": "x", "tokens": 100},'
        '{"id": "e1", "t": 1, "type": "message", "agent": "y", "tokens": 20, "input_tokens": 5},'
        '{"id": "e2", "t": 2, "type": "message", "agent": "x", "tokens": 3}],'
        '"edges": [], "rewards": {"team": 1.0}, "costs": {}}\n'
        '{"trace_id": "b", "task_id": "q", "events": ['
        '{"id": "e0", "t": 0, "type": "message", "agent": "x", "tokens": 7}],'
        '"edges": [], "rewards": {"team": 0.0}, "costs": {}}\n'
    )
    return credit.read(path)


def test_runs_are_priced_by_what_the_trace_took_from_there_on(tmp_path: Path) -> None:
    costs = run_costs(tokens_log(tmp_path / "log.jsonl"))
    assert costs.onwards.tolist() == [128, 28, 3, 7] and costs.whole.tolist() == [128, 7]


def test_a_budget_in_tokens_is_kept_and_buys_more_cheap_runs(tmp_path: Path) -> None:
    traces = tokens_log(tmp_path / "log.jsonl")
    plan = plan_replays(traces, "value", 5000, unit="tokens")
    runs = [job.runs for job in plan.jobs]
    assert plan.tokens is not None and plan.tokens <= 5000
    assert plan.tokens == sum(n * c for n, c in zip(runs, (128, 28, 3, 7), strict=True))
    assert runs[2] > runs[3] > runs[1] > runs[0] >= 2
    bare = [job for job in plan_replays(MICRO["relay-and"].batch(), "value", 500).jobs if job.tokens is not None]
    assert not bare
    with pytest.raises(CreditError, match="cannot be priced"):
        plan_replays(MICRO["relay-and"].batch(), "value", 500, unit="tokens")
    with pytest.raises(CreditError, match="'value' lets the policy decide anew"):
        plan_replays(MICRO["relay-and"].batch(), "value", 500, replace="say nothing")


def test_no_other_split_of_a_cost_budget_is_better() -> None:
    """Against all splits of a small budget, up to the last run that the rest cannot pay."""
    spread, cost, budget = np.array([1.0, 0.5, 2.0]), np.array([1.0, 2.0, 4.0]), 40
    runs = allocate(spread, budget, cost=cost)
    assert runs @ cost <= budget
    every = [(a, b, c) for a in range(1, 41) for b in range(1, 21) for c in range(1, 11) if a + 2 * b + 4 * c <= budget]
    best = min(float((spread**2 / np.array(n)).sum()) for n in every)
    assert float((spread**2 / runs).sum()) <= 1.03 * best


@pytest.mark.parametrize("text", ["0", "-3", "many", "5 euros", "1e6"])
def test_budgets_are_refused_in_words(text: str) -> None:
    with pytest.raises(CreditError, match="expected a number of runs, or of tokens"):
        parse_budget(text)


def test_the_spread_of_a_group_is_shrunk_to_that_of_all(tmp_path: Path) -> None:
    traces = tokens_log(tmp_path / "log.jsonl")
    assert outcome_spread(traces).tolist() == pytest.approx([math.sqrt((0.5 + 2 * 0.5) / 3)] * 2)


# --- C3 and Shapley values through the command line -------------------------------------------------------------------


@pytest.mark.slow
def test_c3_from_a_log_through_the_command_line(home: Path) -> None:
    """Siblings of each logged decision; the mean credit of many logs' worth of runs is the true increment."""
    world = MICRO["spawn-and"]
    native.write(world.batch(), home / "log.jsonl")
    n = int(np.asarray(world.batch().graph.action_mask).sum())
    command("plan", "log.jsonl", "--for", "c3", "--budget", 40 * n, "-o", "plan.jsonl")
    command(
        "replay", "plan.jsonl", "--driver", "driver_of_micro_worlds:spawn", "--results", "results.jsonl",
        "--log", "log.jsonl", "-o", "with.jsonl",
    )  # fmt: skip
    known = credit.read(home / "with.jsonl")
    assert not known.problems and known.sizes.traces == len(world.ends) + 40 * n
    result = credit.run(known, "c3")
    at = {
        (name, event): row
        for row, (name, event) in enumerate(
            zip(
                np.array(known.traces["trace"].to_pylist())[np.asarray(known.graph.trace_ids)[: known.sizes.events]],
                known.events["event"].to_pylist(),
                strict=True,
            )
        )
    }
    error, stated = [], []
    for i, (state, choice) in enumerate(zip(world.state, world.choice, strict=True)):
        for m, (s, c) in enumerate(zip(state, choice, strict=True)):
            if s >= 0:
                row = at[f"{world.name}-{i:04d}", f"e{m}"]
                assert bool(result.valid[row])
                if np.isfinite(result.stderr[row]):
                    error.append(float(result.credit[row] - result.baseline[row]) - world.increments[s, c])
                    stated.append(float(result.stderr[row]))
    inside = np.abs(error) <= 1.96 * np.array(stated) + 1e-6
    assert len(error) > 20 and inside.mean() > 0.85
    assert np.abs(error).mean() < 0.12


@pytest.mark.slow
def test_shapley_from_a_log_through_the_command_line(home: Path) -> None:
    world = MICRO["relay-and"]
    native.write(world.batch(), home / "log.jsonl")
    output = command("plan", "log.jsonl", "--for", "shapley", "--budget", 4000, "-o", "plan.jsonl")
    assert "4000 runs from 8 pairs of coalition and task" in output
    assert "predicted standard error of the share of worker" in output
    command(
        "replay", "plan.jsonl", "--driver", "driver_of_micro_worlds:relay", "--results", "results.jsonl",
        "--log", "log.jsonl", "-o", "with.jsonl",
    )  # fmt: skip
    known = credit.read(home / "with.jsonl")
    share, stderr = (known.evidence[name].amounts for name in ("share", "share_stderr"))
    names = np.array(known.agents["name"].to_pylist())[np.asarray(known.graph.agent_ids)[: known.sizes.events]]
    for name, true in world.shapley().items():
        row = int(np.flatnonzero(names == name)[0])
        assert abs(share[row] - true) <= 4 * stderr[row] and 0 < stderr[row] < 0.05
    command("assign", "with.jsonl", "--method", "shapley", "-o", "advantages.parquet")
    assert "--replace is for --for difference, spawn and stop" in command(
        "plan", "log.jsonl", "--for", "shapley", "--budget", "9", "--replace", "x", "-o", "p.jsonl", code=1
    )
    assert "--units is for --for shapley" in command(
        "plan", "log.jsonl", "--for", "c3", "--budget", "9", "--units", "x", "-o", "p.jsonl", code=1
    )


@pytest.mark.study
def test_the_predicted_error_of_a_share_is_that_of_its_runs() -> None:
    """The allocation's prediction against the spread of 400 solved games with normal outcomes."""
    world = MICRO["relay-and"]
    plan = plan_coalitions(world.batch(), 160)
    rng = np.random.default_rng(0)
    assert plan.game is not None
    shares = []
    for _ in range(400):
        value = [rng.normal(0, 1, job.runs).mean() for job in plan.jobs]
        shares.append(plan.game.weights().T @ value)
    spread = float(outcome_spread(world.batch())[0])
    predicted = np.array(list(predicted_share_stderr(plan).values())) / spread
    np.testing.assert_allclose(np.std(shares, axis=0), predicted, rtol=0.15)


def test_coalitions_name_agents_of_the_log_only() -> None:
    traces = MICRO["relay-and"].batch()
    with pytest.raises(CreditError, match="no agent named 'cook'"):
        plan_coalitions(traces, 100, units=("cook", "worker"))
    with pytest.raises(CreditError, match=r"budget is 3 runs; expected 12 runs or more for 3 agents, 1 task"):
        plan_coalitions(traces, 3)


# --- Limits -----------------------------------------------------------------------------------------------------------


def test_a_run_that_hangs_fails_after_its_time_and_is_counted(tmp_path: Path) -> None:
    plan, released = plan_replays(MICRO["relay-and"].batch(), "value", 100), threading.Event()

    def sometimes(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        if prefix == plan.jobs[0].prefix:
            released.wait(20)
        return 1.0

    limits = Limits(concurrency=4, pause=0.0, seconds=0.3, hanging=50)
    try:
        results = execute(plan, CallableReplayer(sometimes), tmp_path / "r.jsonl", limits=limits)
    finally:
        released.set()
    assert len(results.failed[0]) == plan.jobs[0].runs and not any(results.failed[1:])
    assert results.done == plan.runs - plan.jobs[0].runs
    assert "the run did not end within 0.3 s" in (tmp_path / "r.jsonl").read_text()
    scored = results.scored(-1.0)
    assert scored.done == plan.runs and set(scored.rewards[0].values()) == {-1.0} and not any(scored.failed)


def test_an_execution_stops_where_every_run_fails_or_the_tokens_are_spent(tmp_path: Path) -> None:
    plan = plan_replays(MICRO["relay-and"].batch(), "value", 200)

    def broken(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        raise ConnectionError("no network")

    limits = Limits(concurrency=1, attempts=1, pause=0.0, failures=5)
    with pytest.raises(CreditError, match="5 runs in a row failed, the last with: ConnectionError: no network"):
        execute(plan, CallableReplayer(broken), tmp_path / "r.jsonl", limits=limits)

    def paid(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> Continuation:
        return Continuation(1.0, tokens=10)

    limits = Limits(concurrency=1, pause=0.0, tokens=95)
    results = execute(plan, CallableReplayer(paid), tmp_path / "s.jsonl", limits=limits)
    assert results.tokens == 100 and results.done == 10


# --- Several sittings as one ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pooled_runs_are_those_of_both_plans(tmp_path: Path) -> None:
    traces = MICRO["relay-and"].batch()

    def noisy(prefix: Prefix, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
        return float(np.random.default_rng(seed).normal())

    driver = CallableReplayer(noisy)
    first = plan_replays(traces, "value", 200)
    earlier = execute(first, driver, tmp_path / "a.jsonl", limits=FAST)
    second = plan_replays(traces, "value", 100, seed=1, known=known_from(first, earlier))
    later = execute(second, driver, tmp_path / "b.jsonl", limits=FAST)
    plan, results = pooled([(first, earlier), (second, later)])
    assert results.done == 300 == plan.runs
    by_key = {job.key: set(own.values()) for job, own in zip(plan.jobs, results.rewards, strict=True)}
    for one, outcomes in ((first, earlier), (second, later)):
        for job, own in zip(one.jobs, outcomes.rewards, strict=True):
            assert set(own.values()) <= by_key[job.key]
    with pytest.raises(CreditError, match="expected different ones, since equal seeds repeat runs"):
        pooled([(first, earlier), (first, earlier)])
    with pytest.raises(CreditError, match="different purposes or games"):
        other = plan_replays(traces, "difference", 100, seed=5)
        pooled([(first, earlier), (other, Results(({},) * 24, (frozenset(),) * 24, {}, (0,) * 24, ({},) * 24))])


def test_evidence_of_a_plan_that_does_not_fit_the_log_is_refused(tmp_path: Path) -> None:
    plan = plan_replays(MICRO["relay-and"].batch(), "c3", 100)
    empty = Results(
        ({},) * len(plan.jobs), (frozenset(),) * len(plan.jobs), {}, (0,) * len(plan.jobs), ({},) * len(plan.jobs)
    )
    with pytest.raises(CreditError, match="the plan names trace 'relay-and-0000', which the log does not have"):
        write_evidence(MICRO["spawn-and"].batch(), plan, empty, tmp_path / "x.jsonl")


@pytest.mark.study
def test_siblings_of_a_log_with_event_rewards_count_them_once(tmp_path: Path) -> None:
    """A run's outcome is the return of its whole trace. Such logs were refused, since C3 once read no event rewards."""
    traces = MICRO["stop-rewards"].batch()
    earned = dict(zip(traces.traces["trace"].to_pylist(), returns(traces).tolist(), strict=True))
    assert not np.allclose(list(earned.values()), np.asarray(traces.reward)[: len(earned)])
    plan = plan_replays(traces, "c3", 2 * int(np.asarray(traces.graph.action_mask).sum()))
    runs = [[0.25 + number / 64, -1.0] for number in range(len(plan.jobs))]
    write_evidence(traces, plan, results_of(runs), tmp_path / "with.jsonl")
    known = credit.read(tmp_path / "with.jsonl")
    names, of = known.traces["trace"].to_pylist(), returns(known)
    assert known.problems == ()
    for number, job in enumerate(plan.jobs):
        rows = [names.index(f"{job.prefix.trace}/{job.prefix.decision}/{run}") for run in range(2)]
        assert of[rows] == pytest.approx(runs[number])
    last = {job.prefix.trace: number for number, job in enumerate(plan.jobs)}
    advantage = np.asarray(credit.run(known, "c3").advantage)
    of_trace, events = np.asarray(known.graph.trace_ids), known.events["event"].to_pylist()
    for trace, number in last.items():
        row = events.index(str(plan.jobs[number].prefix.decision), int(np.argmax(of_trace == names.index(trace))))
        assert advantage[row] == pytest.approx(earned[trace] - np.mean(runs[number]), abs=1e-6)


# --- Where runs go ----------------------------------------------------------------------------------------------------


def results_of(outcomes: list[list[float]]) -> Results:
    rewards = tuple(dict(enumerate(own)) for own in outcomes)
    return Results(rewards, (frozenset(),) * len(rewards), {}, (0,) * len(rewards), ({},) * len(rewards))


def test_spreads_that_differ_by_chance_only_are_taken_as_equal() -> None:
    rng = np.random.default_rng(0)
    alike = results_of(rng.normal(0, 0.5, (300, 8)).tolist()).shrunk_spread(["q"] * 300)
    assert alike.max() / alike.min() < 1.25 and alike.mean() == pytest.approx(0.5, rel=0.05)
    scale = np.repeat([0.1, 1.0], 150)
    unlike = results_of((scale[:, None] * rng.normal(0, 1, (300, 8))).tolist()).shrunk_spread(["q"] * 300)
    assert unlike[:150].mean() < 0.5 * unlike[150:].mean()
    small, large = rng.normal(0, 0.01, (30, 8)), rng.normal(0, 1.0, (30, 8))
    spread = results_of([*small.tolist(), *large.tolist()]).shrunk_spread(["small"] * 30 + ["large"] * 30)
    assert spread[:30].max() < 0.1 and spread[30:].max() / spread[30:].min() < 1.3  # tasks have scales of their own
    assert results_of([[1.0], []]).shrunk_spread(["q"] * 2).tolist() == [1.0, 1.0]


def test_a_group_whose_outcomes_agree_gets_the_whole_budget(tmp_path: Path) -> None:
    """Equal outcomes in the log do not mean that outcomes never differ."""
    traces = tokens_log(tmp_path / "log.jsonl")
    text = (tmp_path / "log.jsonl").read_text().replace('"team": 1.0', '"team": 0.0')
    (tmp_path / "log.jsonl").write_text(text)
    plan = plan_replays(credit.read(tmp_path / "log.jsonl"), "value", 40)
    assert [job.runs for job in plan.jobs] == [10] * 4 and all(math.isinf(job.stderr) for job in plan.jobs)
    assert plan_replays(traces, "value", 40).runs == 40
