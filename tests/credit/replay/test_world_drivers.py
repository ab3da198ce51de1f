"""Drivers of worlds against exact truth, and runs that depend on their own seed only."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

from credit.replay.drivers.micro_driver import MicroReplayer
from credit.replay.drivers.scripted_driver import ScriptedReplayer
from credit.replay.replayer import Prefix, SeededReplayer
from credit.replay.run_planning import plan_replays
from credit.replay.stated_errors import stated_stderr
from graphs import CreditError
from graphs.event_graph import EventType
from graphs.worlds import KINDS, TeamWorld
from graphs.worlds.micro.examples import MICRO


def scripted(kind: str) -> ScriptedReplayer:
    spawn = 1.0 if kind == "poisoned" else 0.7
    world = TeamWorld("swarm", agents=4, events=24, kind=kind, difficulties=(-0.5, 0.5), group_size=1, spawn=spawn)
    return ScriptedReplayer(world, world.sample(jax.random.key(0), 3))


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_a_scripted_team_have_the_mean_of_its_truth(kind: str) -> None:
    """Values of the dynamic programme, replaced choices and forbidden agents."""
    driver = scripted(kind)
    world, runs = driver.world, driver.runs
    truth = world.increments(runs)
    traces = world.traces(runs)
    jobs = plan_replays(traces, "value", 10_000).jobs
    rows = np.flatnonzero(np.asarray(traces.graph.action_mask)[: traces.sizes.events])
    values = truth.values[truth.event_mask][rows]
    messages = np.flatnonzero(np.asarray(traces.graph.event_type)[rows] == EventType.MESSAGE)
    z = []
    for i, (job, value) in enumerate(zip(jobs, values, strict=True)):
        assert driver.expected(job.prefix) == pytest.approx(value, abs=1e-9)
        for replace in (None, "0", "1"):
            if replace == "0" and kind == "poisoned" and i not in messages:
                continue
            reward = np.array([c.reward for c in driver.run(job.prefix, replace=replace, n=400, seed=i)])
            z.append((reward.mean() - driver.expected(job.prefix, replace=replace)) / max(reward.std() / 20, 0.01))
    assert np.abs(z).max() < 5 and 0.7 < np.sqrt(np.mean(np.square(z))) < 1.3
    start = Prefix("trace-000000", "group-000000")
    absent = world.script.names[-1]
    reward = np.array([c.reward for c in driver.run(start, forbid=(absent,), n=2000, seed=1)])
    assert abs(reward.mean() - driver.expected(start, forbid=(absent,))) < 5 * reward.std() / 40 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: scripted("bernoulli"), lambda: MicroReplayer(MICRO["relay-and"])], ids=["scripted", "micro"]
)
def test_a_run_depends_on_its_own_seed_only(make: Callable[[], SeededReplayer]) -> None:
    driver = make()
    name = "trace-000000" if isinstance(driver, ScriptedReplayer) else "relay-and-0000"
    prefix = Prefix(name, "g")
    together = driver.run_seeds(prefix, seeds=range(40))
    assert [driver.run_seeds(prefix, seeds=[seed])[0] for seed in range(40)] == list(together)
    assert isinstance(driver, SeededReplayer)


@pytest.mark.slow
def test_what_a_scripted_team_does_not_have_is_refused() -> None:
    driver = scripted("additive")
    for prefix, options, words in (
        (Prefix("t", "g"), {}, "trace is 't'; expected one of the 3"),
        (Prefix("trace-000000", "g", ("e0",), "e9"), {}, "event is 'e9'"),
        (Prefix("trace-000000", "g"), {"replace": "x"}, "replace is 'x'"),
        (Prefix("trace-000000", "g"), {"forbid": ("x",)}, "forbidden agent is 'x'"),
    ):
        with pytest.raises(CreditError, match=words):
            driver.run(prefix, n=1, seed=0, **options)


def test_stated_errors_of_rare_outcomes_cover_the_truth() -> None:
    """Means of 8 and 50 draws whose chances run from 0 to 1: plain errors cover as few as 71 % with 8."""
    rng = np.random.default_rng(0)
    chance = np.tile([0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 0.95], 60)
    for runs in (8, 50):
        y = (rng.random((len(chance), runs)) < chance[:, None]).astype(float)
        error = np.abs(y.mean(1) - chance)
        stated = stated_stderr(list(y), ["q"] * len(chance))
        assert 0.94 < (error <= 1.96 * stated).mean() < 0.99
        if runs == 8:
            assert (error <= 1.96 * y.std(1, ddof=1) / np.sqrt(runs)).mean() < 0.8


@pytest.mark.parametrize(("runs", "least", "most"), [(50, 0.945, 0.955), (20, 0.94, 0.96)])
def test_stated_errors_of_coins_cover_what_they_say(runs: int, least: float, most: float) -> None:
    """The exact coverage, mean over chances of 15 to 50 %, in a task whose other outcomes succeed in 35 %."""
    from scipy.stats import binom  # a second, which every process that collects this file would take

    wins = np.arange(runs + 1)
    others = np.repeat([0.0, 1.0], [65_000, 35_000])
    coins = [np.repeat([0.0, 1.0], [runs - k, k]) for k in wins]
    stated = np.array([stated_stderr([coin, others], ["q"] * 2)[0] for coin in coins])
    chance = np.linspace(0.15, 0.5, 101)[:, None]
    inside = np.abs(wins / runs - chance) <= 1.96 * stated
    assert least < (binom.pmf(wins, runs, chance) * inside).sum(1).mean() < most


@pytest.mark.parametrize(("runs", "least"), [(4, 0.98), (12, 0.92), (25, 0.93), (50, 0.93), (53, 0.93), (100, 0.93)])
@pytest.mark.parametrize("rate", [0.18, 0.5])
def test_stated_errors_of_two_values_cover_every_chance(runs: int, least: float, rate: float) -> None:
    """The exact coverage of each chance: with pseudo-runs of the task's outcomes, 53 runs covered 10 % in 90.5 %."""
    from scipy.stats import binom  # a second, which every process that collects this file would take

    wins, chance = np.arange(runs + 1), np.arange(1, 100)[:, None] / 100
    many = np.repeat([-1.0, 3.0], [round(1000 * (1 - rate)), round(1000 * rate)])  # any two values
    coins = [np.repeat([-1.0, 3.0], [runs - k, k]) for k in wins]
    stated = np.array([stated_stderr([coin, many], ["q"] * 2)[0] for coin in coins]) / 4
    inside = np.abs(wins / runs - chance) <= 1.96 * stated
    covered = (binom.pmf(wins, runs, chance) * inside).sum(1)
    assert covered.min() > least
    if runs >= 25:
        assert 0.949 < covered[9:90].mean() < 0.956


def test_stated_errors_of_continuous_outcomes_are_those_of_each_job() -> None:
    rng = np.random.default_rng(1)
    y = [rng.normal(0, 0.1, 8), rng.normal(0, 4.0, 8), np.array([1.0])]
    stated = stated_stderr(y, ["q"] * 3)
    np.testing.assert_allclose(stated[:2], [one.std(ddof=1) / np.sqrt(8) for one in y[:2]])
    assert np.isinf(stated[2])
    scales = [np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.0, 100.0, 0.0, 0.0])]
    apart = stated_stderr(scales, ["small", "large"])
    assert apart[1] == pytest.approx(100 * apart[0])  # tasks are not pooled
    assert stated_stderr([np.ones(5), np.ones(5)], ["q", "q"]).tolist() == [0.0, 0.0]
