"""Reward channels: what they hold, their weights over training, and the exact weighted sum of their ledgers."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.cli.shared.channel_weights import parse_channels
from credit.ledger import Ledger, compose
from credit.ledger.channels import DERIVED, FAMILIES, annealed, channel, depart, kimi_parl, sharp
from estimators.base import Reason, finish
from graphs.logs import read
from graphs.traces.evidence import Evidence

pytestmark = pytest.mark.optimised


def log(path: Path) -> Path:
    """Four traces of one task: a lead spawns two workers, of whom the second returns only in odd traces."""
    lines = []
    for i in range(4):
        events = [
            {"id": "plan", "t": 0, "type": "orchestrator_decision", "agent": "lead", "action": True},
            {"id": "s0", "t": 1, "type": "spawn", "agent": "lead", "to": "w0", "action": False},
            {"id": "s1", "t": 1, "type": "spawn", "agent": "lead", "to": "w1", "action": False},
            {"id": "a0", "t": 2, "type": "tool_call", "agent": "w0", "event_reward": 0.25, "action": True},
            {"id": "r0", "t": 2, "type": "tool_result", "agent": "w0", "event_reward": 0.125, "action": False},
            {"id": "a1", "t": 2, "type": "message", "agent": "w1", "event_reward": -0.1 * i, "action": True},
            {"id": "b0", "t": 3, "type": "return", "agent": "w0", "to": "lead", "action": False},
            {"id": "close", "t": 4, "type": "aggregate", "agent": "lead", "action": True},
        ]
        if i % 2:
            events.insert(7, {"id": "b1", "t": 3, "type": "return", "agent": "w1", "to": "lead", "action": False})
        if i == 3:
            events[3] |= {"counterfactual_reward": 0.3}
        stage = {"plan": 0, "s0": 0, "s1": 0, "close": 2}
        for event in events:
            event["stage"] = stage.get(event["id"], 1)
        pairs = [
            ("plan", "s0"),
            ("plan", "s1"),
            ("s0", "a0"),
            ("s1", "a1"),
            ("a0", "r0"),
            ("a0", "b0"),
            ("b0", "close"),
        ]
        edges = [{"src": a, "dst": b, "type": "spawn" if a[0] == "s" else "causal"} for a, b in pairs]
        rewards = {"team": [0.0, 1.0, 0.7, 1.0][i], "format": 0.1 * i} if i != 2 else {"team": 0.7}
        content = {"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": edges, "rewards": rewards}
        lines.append(json.dumps(content | {"costs": {"tokens": 1, "wall_clock_s": 1.0}}))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return log(tmp_path_factory.mktemp("logs") / "x.jsonl")


@pytest.fixture(scope="module")
def traces(path: Path) -> credit.Traces:
    return read(path)


def totals(traces: credit.Traces, name: str) -> list[float]:
    return channel(traces, name).total[: traces.sizes.traces].tolist()


def test_channels_hold_what_the_log_holds(traces: credit.Traces) -> None:
    assert totals(traces, "team") == pytest.approx([0, 1, 0.7, 1])
    assert totals(traces, "format") == pytest.approx([0, 0.1, math.nan, 0.3], nan_ok=True)
    assert totals(traces, "event_reward") == pytest.approx([0.375, 0.275, 0.175, 0.075])
    assert totals(traces, "event_reward.tool") == pytest.approx([0.375] * 4)
    assert totals(traces, "event_reward.message") == pytest.approx([0, -0.1, -0.2, -0.3])
    assert totals(traces, "finish_rate") == [0.5, 1, 0.5, 1]
    assert totals(traces, "parallel_saving") == pytest.approx([1 - 3 / 4] * 4)  # plan, the longer of two workers, close
    assert totals(traces, "marginal") == pytest.approx([0, 0, 0, 1.075 - 0.3])  # both are returns
    assert {channel(traces, name).family for name in DERIVED} == {"orchestration", "individual"}
    assert sorted({code for code, _ in FAMILIES.values()}) == [f"R{i}" for i in range(1, 9)]
    codes = {name: code for name, (code, _) in FAMILIES.items()}
    assert codes["debate"] == codes["verifier"] == "R6"
    assert (codes["orchestration"], codes["hybrid"]) == ("R7", "R8")
    padding = channel(traces, "format").total[traces.sizes.traces :]
    assert not padding.any()
    with pytest.raises(credit.CreditError, match=r"channel is 'speed'.*it has: team, format, event_reward"):
        channel(traces, "speed")
    bare = dataclasses.replace(traces, evidence={})
    with pytest.raises(credit.CreditError, match="channel 'marginal' needs 'counterfactual_reward'"):
        channel(bare, "marginal")
    masked = traces.evidence["counterfactual_reward"]
    first = int(masked.rows[0])
    twice = Evidence.of(np.full(len(masked), 0.3), np.isin(np.arange(len(masked)), [first, first + 1]))
    with pytest.raises(credit.CreditError, match="agent 'w0' has 'counterfactual_reward' at 2 events of a trace"):
        channel(
            dataclasses.replace(traces, evidence=dict(traces.evidence) | {"counterfactual_reward": twice}), "marginal"
        )


def test_recipes_are_the_published_sums(traces: credit.Traces) -> None:
    fades = annealed(0.4, 0.0, 100)
    parl = kimi_parl(traces, parallel=fades, finish=annealed(0.2, 0.0, 50))
    assert [c.name for c in parl] == ["team", "parallel_saving", "finish_rate"]
    assert [c.at(25) for c in parl] == pytest.approx([1, 0.3, 0.1]) and [c.at(100) for c in parl] == [1, 0, 0]
    assert [c.family for c in sharp(traces, shared=1, marginal=0.5, tool=0.2)] == ["shared", "individual", "tool"]
    assert [c.family for c in depart(traces, role=0.5)] == ["shared", "role"]


def test_schedules() -> None:
    line, wave = annealed(1.0, 0.2, 10), annealed(1.0, 0.2, 10, shape="cosine")
    assert [line(s) for s in (0, 5, 10, 99)] == pytest.approx([1, 0.6, 0.2, 0.2])
    assert [wave(s) for s in (0, 5, 10)] == pytest.approx([1, 0.6, 0.2]) and wave(2) > line(2)
    with pytest.raises(credit.CreditError, match="steps is 0"):
        annealed(1, 0, 0)
    with pytest.raises(credit.CreditError, match="shape is 'step'"):
        annealed(1, 0, 5, shape="step")  # type: ignore[arg-type]
    assert parse_channels(["team=1", "a=b=0.5..0/100"], 50) == {"team": 1.0, "a=b": 0.25}
    assert parse_channels(["parallel=.2..0/1000", "finish=-.5"], 500) == {"parallel": 0.1, "finish": -0.5}
    for wrong in ("team", "team=", "=1", "team=1..0", "team=nan", "team=1..0/0x"):
        with pytest.raises(credit.CreditError, match="expected NAME=WEIGHT"):
            parse_channels([wrong], 0)


def claim(traces: credit.Traces, seed: int, source: str) -> credit.Credit:
    graph, rng = traces.graph, np.random.default_rng(seed)
    amount = rng.normal(size=graph.num_events).astype(np.float32)
    return finish(
        graph, credit=amount, baseline=np.zeros_like(amount), scale=np.ones_like(amount),
        stderr=np.full_like(amount, 0.5), unit="event", estimand="increment", source=source,
        reason=np.where(rng.random(graph.num_events) < 0.5, Reason.VALID, Reason.NO_EVIDENCE),
        centred=True, own_outcome=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ledgers(traces: credit.Traces) -> dict[str, Ledger]:
    names = ("team", "format", "finish_rate")
    return {
        name: compose(traces.graph, channel(traces, name).total, [claim(traces, k, "critic")])
        for k, name in enumerate(names)
    }


WEIGHTS = {"team": 1.0, "format": 0.3, "finish_rate": -0.7}


@pytest.mark.slow
def test_a_weighted_sum_names_the_traces_that_a_channel_refused() -> None:
    """The trace had a reward of 0 there, without a word."""
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[3e38, 1.0])
    one, two = credit.compose(graph, np.ones_like(reward), []), credit.compose(graph, reward, [])
    assert list(two.refused_traces) == [1]
    ledger = credit.ledger.weighted_sum({"x": one, "y": two}, {"x": 1.0, "y": 1e-3})
    assert ledger.refused_traces == {1: f"y: {two.refused_traces[1]}"} and not bool(ledger.scored[1])
    assert any("1 trace left out" in text for text in ledger.warnings)


@pytest.mark.slow
def test_a_weighted_sum_adds_up_exactly(traces: credit.Traces, ledgers: dict[str, Ledger]) -> None:
    ledger = credit.ledger.weighted_sum(ledgers, WEIGHTS)
    graph, n = traces.graph, traces.sizes
    assert ledger.channels == tuple(WEIGHTS)
    assert np.asarray(ledger.scored)[: n.traces].tolist() == [True, True, False, True]  # one trace has no `format`
    trace = np.asarray(graph.trace_ids)
    for t in range(n.traces):
        mine = (trace == t) & np.asarray(graph.event_mask)
        cells = np.asarray(ledger.cells)[mine].ravel().tolist()
        ends = [float(x[t]) for x in (ledger.expected, ledger.outcome, ledger.unexplained, ledger.remainder)]
        assert sum(map(Fraction, [*cells, *ends])) == Fraction(float(ledger.reward[t]))
        if bool(ledger.scored[t]):
            wanted = sum(w * float(ledgers[name].reward[t]) for name, w in WEIGHTS.items())
            assert float(ledger.reward[t]) == pytest.approx(wanted, rel=1e-6)
    by_hand = sum(w * np.asarray(ledgers[name].increments) for name, w in WEIGHTS.items())
    here = np.asarray(ledger.scored)[trace]
    np.testing.assert_allclose(np.asarray(ledger.increments), np.where(here, by_hand, 0), atol=1e-6)
    some = np.asarray(ledgers["team"].claimed) & here & ~np.asarray(ledgers["format"].claimed)
    some &= ~np.asarray(ledgers["finish_rate"].claimed)
    np.testing.assert_allclose(np.asarray(ledger.stderr)[some], 0.5, rtol=1e-6)


@pytest.mark.slow
def test_claims_are_scaled_and_serve_as_control_variates(traces: credit.Traces, ledgers: dict[str, Ledger]) -> None:
    ledger = credit.ledger.weighted_sum(ledgers, WEIGHTS)
    assert [c.source for c in ledger.claims] == ["team/critic", "format/critic", "finish_rate/critic"]
    third, whole = ledger.claims[2], ledgers["finish_rate"].claims[0]
    np.testing.assert_allclose(np.asarray(third.credit), -0.7 * np.asarray(whole.credit), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(third.stderr), 0.7 * np.asarray(whole.stderr), rtol=1e-6)
    entry = ledger.advantage("entry").credit
    np.testing.assert_allclose(np.asarray(entry.credit), np.asarray(ledger.increments) * np.asarray(entry.valid))


@pytest.mark.slow
def test_a_channel_that_was_annealed_away_leaves_nothing(ledgers: dict[str, Ledger]) -> None:
    ledger = credit.ledger.weighted_sum(ledgers, WEIGHTS | {"format": 0.0})
    alone = credit.ledger.weighted_sum(
        {name: ledgers[name] for name in ("team", "finish_rate")}, {"team": 1.0, "finish_rate": -0.7}
    )
    np.testing.assert_array_equal(ledger.scored, alone.scored)  # the trace without `format` is back
    np.testing.assert_allclose(np.asarray(ledger.increments), np.asarray(alone.increments), atol=1e-6)
    assert [c.source for c in ledger.claims] == ["team/critic", "finish_rate/critic"]


@pytest.mark.slow
def test_a_channel_of_weight_0_claims_no_event(ledgers: dict[str, Ledger]) -> None:
    """Events that it alone claimed had an entry of 0 with an error of 0."""
    ledger = credit.ledger.weighted_sum(ledgers, {**WEIGHTS, "team": 0.0})
    alone = np.asarray(ledgers["team"].claimed) & ~np.asarray(ledgers["format"].claimed)
    alone &= ~np.asarray(ledgers["finish_rate"].claimed)
    assert alone.any() and not np.asarray(ledger.claimed)[alone].any()
    assert np.isnan(np.asarray(ledger.stderr)[alone]).all()


@pytest.mark.slow
def test_wrong_sums_are_refused(traces: credit.Traces, ledgers: dict[str, Ledger]) -> None:
    with pytest.raises(credit.CreditError, match="weights are for"):
        credit.ledger.weighted_sum(ledgers, {"team": 1.0})
    other = dataclasses.replace(ledgers["team"], graph=dataclasses.replace(traces.graph))
    with pytest.raises(credit.CreditError, match="ledger of 'b' is of another batch"):
        credit.ledger.weighted_sum({"a": ledgers["team"], "b": other}, {"a": 1.0, "b": 1.0})


@pytest.mark.slow
def test_compose_by_channels_on_the_command_line(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    call = ["compose", str(path), "--methods", "turn_baseline", "-o", str(out)]
    channels = ["--channel", "team=1", "--channel", "event_reward=0.5", "--channel", "finish_rate=0.4..0/100"]
    result = CliRunner().invoke(cli, [*call, *channels, "--step", "50"])
    assert result.exit_code == 0, result.output
    assert "channel finish_rate: weight 0.2" in result.stderr
    rows = pyarrow.parquet.read_table(out).to_pylist()
    for t, (team, steps, done) in enumerate(((0, 0.375, 0.5), (1, 0.275, 1), (0.7, 0.175, 0.5), (1, 0.075, 1))):
        total = sum(row["amount"] for row in rows if row["trace"] == f"t{t}")
        assert total == pytest.approx(team + 0.5 * steps + 0.2 * done, abs=1e-6)
    whole = CliRunner().invoke(cli, call)  # without channels: the outcome and the rewards at events
    assert whole.exit_code == 0, whole.output
    rows = [row for row in pyarrow.parquet.read_table(out).to_pylist() if row["trace"] == "t1"]
    assert sum(row["amount"] for row in rows) == pytest.approx(1.275)
    audit = ["audit", str(path), "--methods", "rloo,turn_baseline", *channels[:4], "--json"]  # it took no channels
    told = json.loads(CliRunner().invoke(cli, audit).stdout)
    assert list(told["claims"]) == [f"{c}/{m}" for c in ("team", "event_reward") for m in ("rloo", "turn_baseline")]
    assert [row["reward"] for row in told["traces"]] == pytest.approx([0.1875, 1.1375, 0.7875, 1.0375])
    refused = CliRunner().invoke(cli, [*call, "--channel", "speed=1"])
    assert refused.exit_code == 1 and "channel is 'speed'" in refused.stderr
