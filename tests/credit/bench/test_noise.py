"""Noise is shown as noise: errors of entries, what is explained out of sample, and what says so."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import jax
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import credit
from credit.cli import cli
from credit.ledger import Ledger
from credit.ledger_summary import LEAST_GROUPS, LedgerSummary, ledger_summary
from credit.plot import draw_ledger
from estimators.composition.explained import _share, explained
from graphs.worlds import Bernoulli, World

pytestmark = pytest.mark.optimised


@pytest.fixture(scope="module")
def world() -> tuple[credit.Traces, np.ndarray]:
    """Traces of a world and the true increments of their events."""
    made = World(outcome=Bernoulli(slope=0.8, centre=5.0))
    episodes = made.sample(jax.random.key(0), 64)
    truth = made.increments(episodes)
    traces = made.traces(episodes, truth)
    return traces, np.array(truth.flat(traces.graph.num_events))


def composed(traces: credit.Traces, amounts: np.ndarray, **options: object) -> Ledger:
    stated = {"estimand": "increment", "source": "critic", "own_outcome": False} | options
    return credit.compose(traces.graph, traces.reward, [credit.claim(traces.graph, amounts, **stated)])


@pytest.mark.slow
def test_explained_counts_what_was_known_before_the_outcome(world: tuple[credit.Traces, np.ndarray]) -> None:
    traces, truth = world
    true = composed(traces, truth)
    assert true.explained == pytest.approx(true.coverage, abs=1e-6) and true.explained > 0.2
    noise = composed(traces, np.random.default_rng(0).normal(size=truth.shape).astype(np.float32))
    assert noise.explained < 0 and any("does not exceed 0" in text for text in noise.warnings)
    own = composed(traces, truth, own_outcome=True)
    assert (
        own.explained == pytest.approx(0, abs=1e-6) and own.coverage == true.coverage
    )  # nothing of it was known before


def test_nothing_is_explained_where_all_rewards_are_equal() -> None:
    """The mean of three rewards of 0.1 is not 0.1 in double precision: the share was 0."""
    graph, _, _ = credit.from_columns(group=[0] * 3, trace=[0, 1, 2], reward=[0.1] * 3)
    cells, total = np.zeros((graph.num_events, 1)), np.full(graph.num_traces, 0.1)
    nobody = np.full(graph.num_traces, np.nan)
    found = explained(graph, cells, np.ones_like(cells, bool), total, nobody, np.asarray(graph.trace_mask))
    assert math.isnan(found.share) and math.isnan(found.stderr)


@pytest.mark.slow
def test_a_chain_of_returns_accounts_for_everything_and_explains_what_its_values_do(
    world: tuple[credit.Traces, np.ndarray],
) -> None:
    """The last increment of a return is R less the value before it, whatever the values are."""
    traces, _ = world
    graph = traces.graph
    value = np.random.default_rng(1).normal(size=graph.num_events).astype(np.float32)
    start = np.zeros(graph.num_traces, np.float32)
    actions = np.flatnonzero(np.asarray(graph.action_mask))
    trace, first = np.unique(np.asarray(graph.trace_ids)[actions], return_index=True)
    start[trace] = value[actions[first]]
    random = credit.gae(graph, traces.reward, value=value, lambda_=0.0)
    ledger = credit.compose(graph, traces.reward, [random], expected=start)
    assert ledger.coverage == pytest.approx(1, abs=1e-4) and ledger.explained < 0


@pytest.mark.slow
def test_the_error_of_explained_leaves_out_a_group_at_a_time(world: tuple[credit.Traces, np.ndarray]) -> None:
    traces, truth = world
    ledger = composed(traces, truth)
    n = traces.sizes.traces
    group = np.asarray(traces.graph.group_ids)[:n]
    difference = np.asarray(ledger.reward - ledger.expected, np.float64)[:n]  # expected: the mean of the other traces
    by_trace = np.bincount(np.asarray(traces.graph.trace_ids), np.asarray(ledger.increments, np.float64))[:n]

    def share(keep: np.ndarray) -> float:
        return 1 - float(np.var((difference - by_trace)[keep]) / np.var(difference[keep]))

    left_out = np.array([share(group != g) for g in np.unique(group)])
    wanted = np.sqrt((len(left_out) - 1) / len(left_out) * np.sum((left_out - left_out.mean()) ** 2))
    assert ledger.explained == pytest.approx(share(np.ones(n, bool)))
    assert ledger.explained_stderr == pytest.approx(wanted, rel=1e-6)


@pytest.mark.slow
def test_entries_within_two_standard_errors_are_noise(world: tuple[credit.Traces, np.ndarray]) -> None:
    traces, truth = world
    graph = traces.graph
    ledger = composed(traces, truth, stderr=0.1)
    actions = np.asarray(graph.action_mask)
    np.testing.assert_array_equal(ledger.noise, actions & (np.abs(np.asarray(ledger.increments)) <= 0.2))
    assert not composed(traces, truth).noise.any()  # without a stated error nothing is called noise
    table = ledger.table(traces).to_pylist()
    stated = [row for row in table if row["entry"] == "increment"]
    assert [row["noise"] for row in stated] == [
        bool(noise) if action else None
        for noise, action in zip(ledger.noise[: traces.sizes.events], actions[: traces.sizes.events], strict=True)
    ]
    assert all(row["noise"] is None for row in table if row["entry"] != "increment")


@pytest.mark.slow
def test_noise_is_hatched_and_in_brackets(world: tuple[credit.Traces, np.ndarray]) -> None:
    traces, truth = world
    figure = draw_ledger(traces, composed(traces, truth, stderr=10.0), 0)
    hatched = [bar for bar in figure.axes[0].findobj(Rectangle) if bar.get_hatch()]
    texts = [text.get_text() for text in figure.findobj(Text)]
    brackets = [text for text in texts if text.startswith("(") and "± 10.000)" in text]
    assert brackets and len(hatched) > len(brackets) - 1
    sure = draw_ledger(traces, composed(traces, truth + 5, stderr=0.01), 0)
    assert len([bar for bar in sure.axes[0].findobj(Rectangle) if bar.get_hatch()]) == 1  # unexplained
    assert not any(text.get_text().startswith("(") for text in sure.findobj(Text))


@pytest.mark.slow
def test_a_receipt_puts_noise_in_brackets(shared_data: Path) -> None:
    logs = shared_data / "tau_bench_airline"
    traces = credit.read(logs)
    claims = {"turn_baseline": credit.turn_baseline(traces.graph, traces.reward)}
    receipt = credit.explain(traces, 0, int(np.flatnonzero(np.asarray(traces.graph.action_mask))[0]), claims)
    assert receipt.noise is True and receipt.stderr > 0
    trace, event = receipt.trace, receipt.event
    told = CliRunner().invoke(cli, ["explain", str(logs), trace, event, "-m", "turn_baseline"])
    assert told.exit_code == 0, told.output
    assert "which is noise: within two standard errors of 0" in " ".join(told.stdout.split())


@pytest.mark.slow
def test_nobody_is_blamed_because_no_sibling_reached_the_turn(shared_data: Path, tmp_path: Path) -> None:
    """tau-bench, `credit compose -m rloo,turn_baseline`: "explained: 1.000" and −0.667 for a message of task 37."""
    traces = credit.read(shared_data / "tau_bench_airline")
    graph, reward = traces.graph, traces.reward
    ledger = credit.compose(graph, reward, [credit.rloo(graph, reward), credit.turn_baseline(graph, reward)])
    assert ledger.explained - 2 * ledger.explained_stderr < 0 < ledger.coverage < 1
    rows = [row for row, name in enumerate(traces.traces["trace"].to_pylist()) if "/task-37/" in name]
    assert len(rows) == 4
    in_task = np.isin(np.asarray(graph.trace_ids), rows) & np.asarray(graph.event_mask)
    charged = in_task & (np.asarray(ledger.increments) < -0.5)
    assert not (charged & ~ledger.noise).any()
    claimed = np.asarray(ledger.claimed)
    assert ledger.noise.sum() > 0.98 * claimed.sum() and claimed.sum() < np.asarray(graph.action_mask).sum()
    call = ["compose", str(shared_data / "tau_bench_airline"), "-m", "rloo,turn_baseline", "-o"]
    done = CliRunner().invoke(cli, [*call, str(tmp_path / "x.csv")])
    assert done.exit_code == 0, done.output
    assert "explained in traces that were left out: -0." in done.stderr and "noise: 8" in done.stderr
    assert "1.000" not in done.stderr


@pytest.mark.slow
def test_a_ledger_of_a_split_says_nothing_about_what_is_explained(world: tuple[credit.Traces, np.ndarray]) -> None:
    traces, truth = world
    ledger = credit.compose(traces.graph, traces.reward, [], rule=credit.ledger.Shares())
    assert np.isnan(ledger.explained) and dataclasses.replace(ledger).coverage > 0.99
    assert np.isnan(composed(dataclasses.replace(traces, reward=traces.reward * 0 + 1), truth * 0).explained)


@pytest.mark.slow
def test_no_error_of_what_is_explained_is_printed_from_few_groups() -> None:
    """Of ten groups ± 1.96 errors held the truth in 79 to 92 % of draws. One task with larger rewards counts as one."""
    rng = np.random.default_rng(0)

    def summary(tasks: int, largest: float) -> LedgerSummary:
        task = np.repeat(np.arange(tasks), 4)
        reward = rng.normal(size=len(task)) * np.where(task == 0, largest, 1)
        graph, outcome, rows = credit.from_columns(group=task, trace=np.arange(len(task)), reward=reward)
        value = np.zeros(graph.num_events, np.float32)
        claim = credit.gae(graph, outcome, value=value, lambda_=0.0)
        return ledger_summary(rows.traces, credit.compose(graph, outcome, [claim]))

    assert summary(10, 1.0).explained is not None and summary(10, 1.0).explained_stderr is None
    assert summary(80, 1.0).explained_stderr is not None
    assert summary(80, 100.0).explained_stderr is None


@pytest.mark.study
def test_errors_of_what_is_explained_cover() -> None:
    rng = np.random.default_rng(1)

    def sums(tasks: int, kind: str) -> np.ndarray:
        """Of each task of 8 traces: counts, sums and squares of what is to be explained and of what is left."""
        known = rng.normal(size=(tasks, 8))
        reward = known + rng.normal(size=known.shape) + rng.normal(0, 2, (tasks, 1))
        if kind == "coins":
            known = np.clip(rng.beta(2, 2, (tasks, 1)) + rng.normal(0, 0.25, (tasks, 8)), 0, 1)
            reward = (rng.random(known.shape) < known).astype(float)
        target = reward - (reward.sum(axis=1, keepdims=True) - reward) / 7
        left = reward - known
        return np.stack([np.full(tasks, 8), *(x.sum(axis=1) for x in (target, target**2, left, left**2))])

    for kind in ("graded", "coins"):
        truth, right = _share(sums(100_000, kind).sum(axis=1)[:, None])[0], []
        for _ in range(1500):
            found = sums(int(rng.integers(LEAST_GROUPS, 200)), kind)
            everything = found.sum(axis=1)[:, None]
            others = _share(everything - found)
            error = np.sqrt((len(others) - 1) / len(others) * np.sum((others - others.mean()) ** 2))
            right.append(abs(_share(everything)[0] - truth) <= 1.96 * error)
        assert 0.93 <= np.mean(right) <= 0.97, (kind, np.mean(right))
