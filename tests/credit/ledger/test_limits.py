"""Which advantages are refused for their size, and what has no advantage: of each group by itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

import credit
from credit.ledger.scales import largest_advantage
from credit.ledger.training import LargeAdvantageWarning
from graphs.errors import CreditError
from tests.credit.cli.logs import run


@pytest.mark.slow
def test_large_rewards_of_one_group_hide_no_large_advantage_of_another() -> None:
    """An advantage of 1 was taken for the rounding of a reward of 1e6: 1,001 spreads of its own group's rewards."""
    graph, reward, rows = credit.from_columns(
        group=[0, 0, 1, 1, 1, 1], trace=[0, 1, 2, 2, 3, 3], reward=[1e6, 1e6, 0, 0, 1e-3, 1e-3]
    )
    amount = np.full(graph.num_events, np.nan, np.float32)
    amount[rows.event] = [0, 0, 1, 0, -1, 0]
    claim = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
    ledger = credit.compose(graph, reward, [claim])
    with pytest.raises(CreditError, match=r"1001 times the spread of the rewards of its group \(0\.001\)"):
        ledger.advantage("control", beta=1.0, strict=True)
    assert ledger.advantage("control", beta=1.0, limit=2000).largest == pytest.approx(1001, rel=1e-4)


@pytest.mark.slow
def test_a_group_without_a_spread_is_measured_by_the_mean_over_groups() -> None:
    """Every other group counts once, whatever the number of its traces: the spreads are 1 and 4."""
    graph, reward, rows = credit.from_columns(
        group=[0, 0, 1, 1, 1, 1, 1, 1, 2, 2], trace=np.arange(10), reward=[0, 1, 0, 4, 0, 4, 0, 4, 0, 0]
    )
    amount = np.where(graph.action_mask, 0, np.nan).astype(np.float32)
    amount[rows.event[8:]] = 20
    ledger = credit.compose(
        graph, reward, [credit.claim(graph, amount, estimand="increment", source="c")], expected=0 * reward
    )
    found = largest_advantage(ledger, ledger.advantage("entry", limit=100).credit)
    assert found.spread == 2.5 and found.multiple == 8


def many_traces(**columns: object) -> tuple[credit.EventGraph, np.ndarray, credit.Rows]:
    """75 groups of 4 traces of 2 actions, with an advantage each."""
    trace = np.repeat(np.arange(300), 2)
    reward = np.random.default_rng(0).integers(0, 2, 300).astype(float)
    return credit.from_columns(group=(np.arange(300) // 4)[trace], trace=trace, reward=reward[trace], **columns)


def noise(graph: credit.EventGraph, rows: credit.Rows) -> credit.Credit:
    amount = np.full(graph.num_events, np.nan, np.float32)
    amount[rows.event] = np.random.default_rng(1).normal(size=len(rows.event)) * 0.3
    return credit.claim(graph, amount, estimand="increment", source="noise", centred=True, own_outcome=False)


@pytest.mark.parametrize(
    ("traces", "actions", "why"),
    [(60, 2, "it needs 64 traces of other groups with claims, there are 56"),
     (300, 1, "no action can use a claim of another action of its trace")],
)  # fmt: skip
def test_why_no_coefficient_is_fitted_is_said(traces: int, actions: int, why: str) -> None:
    """Of 64 traces in 16 groups "nothing gained" was said, and of rounding that `control` narrows."""
    trace = np.repeat(np.arange(traces), actions)
    reward = np.random.default_rng(0).normal(size=traces)
    graph, reward, rows = credit.from_columns(group=trace // 4, trace=trace, reward=reward[trace])
    signal = credit.compose(graph, reward, [noise(graph, rows)]).advantage("control", limit=np.inf)
    assert f"β = 0, as {why}: this is rloo" in str(signal) and not signal.narrows


@pytest.mark.study
def test_a_trace_without_a_baseline_takes_no_advantage_from_others() -> None:
    """Its R − b, NaN, entered the coefficients of all other traces: no action of the batch had an advantage."""
    graph, reward, rows = many_traces()
    ledger = credit.compose(graph, reward, [noise(graph, rows)])
    baseline = np.full(graph.num_traces, 0.5, np.float32)
    baseline[7] = np.nan
    valid = rows.gather(ledger.advantage("control", baseline=baseline).credit.valid)
    assert np.flatnonzero(~valid).tolist() == [14, 15]


@pytest.mark.study
def test_frozen_actions_enter_no_coefficient_with_a_baseline_that_was_given() -> None:
    """With the same baseline from the library they did not: coefficients were 0.07 apart."""
    trainable = np.ones(600)
    trainable[::2] = np.random.default_rng(2).random(300) < 0.5
    graph, reward, rows = many_traces(agent=["a", "b"] * 300, evidence={"trainable": trainable})
    ledger = credit.compose(graph, reward, [noise(graph, rows)])
    ours = ledger.advantage("control")
    baseline = np.zeros(graph.num_traces, np.float32)
    valid = np.asarray(ours.credit.valid)
    baseline[np.asarray(graph.trace_ids)[valid]] = np.asarray(ours.credit.baseline)[valid]
    given = ledger.advantage("control", baseline=baseline)
    assert np.abs(np.asarray(ours.beta)).max() > 0.01
    np.testing.assert_allclose(np.asarray(given.beta)[:, :300], np.asarray(ours.beta)[:, :300], rtol=1e-5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_a_caller_states_is_a_number_where_the_trace_has_a_reward(wrong: float) -> None:
    """NaN counted as 0, without a word."""
    graph, reward, _ = credit.from_columns(group=[0] * 3, trace=[0, 1, 2], reward=[1.0, 0.0, None])
    stated = np.full(graph.num_traces, 0.5, np.float32)
    stated[2] = wrong  # a trace without a reward has no entries
    numbers = np.full(graph.num_events, 0.25, np.float32)
    claim = credit.claim(graph, numbers, estimand="increment", source="a", centred=True, own_outcome=False)
    ledger = credit.compose(graph, reward, [claim], expected=stated, outcome=stated)
    for name in ("expected", "outcome"):
        with pytest.raises(CreditError, match=f"{name} is {wrong} at trace 1, which has a reward; expected a finite"):
            credit.compose(graph, reward, [claim], **{name: np.where(np.arange(len(stated)) == 1, wrong, stated)})
    for beta in (wrong, np.array([wrong])):
        with pytest.raises(CreditError, match="; expected finite numbers"):
            ledger.advantage(beta=beta)


def uneven_groups(folder: Path, versions: int = 1, near: int = 4) -> Path:
    """Eight groups; the first traces have nearly equal outcomes, with claims of the size of the others'."""
    draw = np.random.default_rng(0)
    lines = ["trace,group,agent,time,reward,q_value,target_value,policy_version"]
    for trace in range(32):
        spread = 1e-4 if trace < near else 1.0
        score = 0.5 + spread * draw.normal()
        for step in range(2):
            cells = draw.normal(size=2).tolist()
            lines.append(f"t{trace},q{trace // 4},a,{step},{score},{cells[0]},{cells[1]},{trace % versions}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    return folder / "log.csv"


def test_one_group_of_near_rewards_is_left_out_alone(tmp_path: Path) -> None:
    """A run died at a random step: one group of 64 whose rewards were close by chance refused the batch."""
    traces = credit.read(uneven_groups(tmp_path))
    ledger = credit.compose(traces.graph, traces.reward, [credit.run(traces, "coma")])
    with pytest.warns(LargeAdvantageWarning, match="strict=True"):
        signal = ledger.advantage("entry")
    group = np.asarray(traces.graph.group_ids)[np.asarray(traces.graph.trace_ids)]
    acts = np.asarray(traces.graph.action_mask)
    assert np.array_equal(np.asarray(signal.credit.valid), acts & (group != group[0]))
    plain = ledger.advantage("entry", limit=np.inf)
    assert np.array_equal(signal.credit.advantage, np.where(signal.credit.valid, plain.credit.advantage, 0))
    assert signal.unbiased is False and "1 of 8 groups left out" in str(signal) and signal.largest < 10 < plain.largest
    with pytest.raises(CreditError, match="times the spread"):
        ledger.advantage("entry", strict=True)


def test_a_batch_whose_advantages_are_refused_has_its_ledger(tmp_path: Path) -> None:
    """Nothing was written, and the message had "trace 1 of the batch" and no option of the command."""
    log, out, target = uneven_groups(tmp_path, near=32), tmp_path / "ledger.csv", tmp_path / "advantages.csv"
    call = ("compose", log, "-m", "coma", "-o", out, "--advantage", "entry", "--advantages-to", target)
    result = run(*call)
    assert result.exit_code == 1 and out.exists() and not target.exists()
    (said,) = re.findall(r"error: the advantage of (.*)", " ".join(result.stderr.split()))
    assert re.match(r"event \S+ of trace 't[0-9]+' is ", said) and "--max-advantage N" in said
    assert run(*call, "--max-advantage", "inf").exit_code == 0 and target.exists()


@pytest.mark.parametrize("versions", [1, 2])
def test_advantages_of_claims_ask_of_several_versions_what_choose_does(tmp_path: Path, versions: int) -> None:
    """`choose` refused control for them, and the conditions of control did not mention them."""
    call = ("compose", uneven_groups(tmp_path, versions), "-o", tmp_path / "a.csv", "--max-advantage", "1e9")
    call = (*call, "--advantage", "control", "--advantages-to", tmp_path / "b.csv", "-m")
    assert ("versions: not checked: policy_version is several" in run(*call, "coma").stderr) == (versions > 1)
    assert "versions: not" not in run(*call, "rloo").stderr  # the mean of other traces has no bias under any


@pytest.mark.parametrize("traced", ["the graph and the reward", "the reward"])
def test_compose_says_that_it_is_for_the_host(traced: str) -> None:
    """It died with JAX's TracerArrayConversionError."""
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
    calls: dict[str, Callable[[], object]] = {
        "the reward": lambda: jax.jit(lambda reward: credit.compose(graph, reward, []).increments)(reward),
        "the graph and the reward": lambda: jax.jit(lambda graph, reward: credit.compose(graph, reward, []).increments)(
            graph, reward
        ),
    }
    with pytest.raises(CreditError, match=r"compose works on the host .*jax\.jit traces; expected concrete ones"):
        calls[traced]()
