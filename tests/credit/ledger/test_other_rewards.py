"""A ledger tells when a claim was computed from other rewards than its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

import credit
from credit.ledger import weighted_sum
from credit.ledger.from_methods import compose_channels, compose_claims
from graphs.errors import CreditError

COLUMNS = {"group": [0] * 6, "trace": [0, 0, 1, 1, 2, 2], "turn": [0, 1] * 3, "reward": [1.0, 1, 0, 0, 0, 0]}
STEPS = [5.0, 0, 3, 0, 1, 0]


@pytest.mark.slow
def test_claims_of_outcome_and_event_rewards_beside_the_outcome_alone_are_named() -> None:
    """`expected` was 2, 3.5 and 4.5 for rewards of 1, 0 and 0, and increments added up to the other rewards, without a
    word."""
    graph, outcome, rows = credit.from_columns(**COLUMNS, event_reward=STEPS)
    steps = rows.event_reward
    claims = [method(graph, outcome, event_reward=steps) for method in (credit.rloo, credit.turn_baseline)]
    with pytest.warns(credit.ledger.OtherRewardsWarning) as said:
        ledger = credit.compose(graph, outcome, claims)
    assert len(said) == 2 and {warning.filename for warning in said} == {__file__}
    assert list(ledger.other_rewards) == ["rloo", "turn_baseline"]
    signal = ledger.advantage("control")
    assert signal.unbiased is False and "  rewards: BROKEN: 'rloo' adds up to 6 in trace 0" in str(signal)
    assert "'rloo' adds up to 6 in trace 0, whose return is 1" in ledger.warnings[0]
    assert "'turn_baseline' adds up to 6 in trace 0, whose return is 1" in ledger.warnings[1]
    assert np.asarray(ledger.expected)[:3].tolist() == [0.0, 0.5, 0.5]  # of the rewards that the ledger has

    named = weighted_sum({"team": ledger}, {"team": 1.0}).other_rewards
    assert list(named) == ["team/rloo", "team/turn_baseline"]

    whole = compose_claims(rows.traces, {claim.source: claim for claim in claims})
    given = credit.compose(graph, outcome, claims, event_reward=steps)
    np.testing.assert_array_equal(given.reward, whole.reward)
    assert not given.other_rewards and given.advantage("control").unbiased
    assert not whole.other_rewards and np.asarray(whole.expected)[:3].tolist() == [2.0, 3.5, 4.5]


@pytest.mark.slow
@pytest.mark.parametrize("lambda_", [0.0, 0.5, 1.0])
def test_a_return_adds_up_to_its_reward_whatever_its_values(lambda_: float) -> None:
    graph, outcome, rows = credit.from_columns(**COLUMNS, evidence={"value": [0.5, 2.0, -1.0, 0.25, 0.0, 3.0]})
    of_outcome = credit.gae(graph, outcome, value=rows.evidence["value"], lambda_=lambda_)
    assert not credit.compose(graph, outcome, [of_outcome]).other_rewards
    with pytest.warns(credit.ledger.OtherRewardsWarning):
        named = credit.compose(graph, 2 * outcome, [of_outcome]).other_rewards
    assert named["gae"].startswith("'gae' adds up to 1 in trace 0, whose return is 2:")


@pytest.mark.parametrize(("earned", "said"), [([1.0], "shape"), ([np.inf] * 256, "event_reward is inf at event 0")])
def test_rewards_at_events_that_cannot_be_added_are_refused(earned: list[float], said: str) -> None:
    graph, outcome, _ = credit.from_columns(**COLUMNS, events=256)
    with pytest.raises(CreditError, match=said):
        credit.compose(graph, outcome, [], event_reward=np.array(earned))
    assert credit.compose(graph, outcome, [], event_reward=np.full(256, np.nan)).reward[0] == 1


@pytest.mark.slow
def test_a_log_with_outcomes_of_agents_has_no_ledger_of_the_team() -> None:
    """`spiral_rae` pays each player its own outcome, of which the ledger's total would know nothing."""
    _, _, rows = credit.from_columns(
        group=["q"] * 2, trace=["a"] * 2, agent=["x", "y"], reward=[1.0] * 2, evidence={"agent_reward": [1.0, -1.0]}
    )
    claims = {"rae": credit.run(rows, "spiral_rae", evidence=["agent_reward"])}
    with pytest.raises(CreditError, match="agent_reward, outcomes of single agents"):
        compose_claims(rows.traces, claims)


@pytest.mark.slow
def test_each_agent_has_a_ledger_of_its_own_outcome() -> None:
    """The entries of an agent's channel add up to its outcome, bit for bit, and those of the sum to that of all."""
    own = [0.1, 0.7, 0.3, -0.2, 0.9, 0.4, np.nan, 0.25]
    _, _, rows = credit.from_columns(
        group=["q"] * 8, trace=list("aabbccdd"), agent=["x", "y"] * 4, evidence={"agent_reward": own}
    )
    traces = rows.traces
    x, y = (credit.ledger.channel(traces, f"agent_reward.{name}") for name in "xy")
    np.testing.assert_array_equal(x.total[:4], np.array([0.1, 0.3, 0.9, np.nan], np.float32))
    assert (x.family, y.total[:4].tolist()) == ("individual", np.array(own[1::2], np.float32).tolist())
    methods = ("rloo", "turn_baseline")
    for part in (x, y):
        of_agent = dataclasses.replace(traces, reward=part.outcome, evidence={})
        claims = [credit.run(of_agent, method) for method in methods]
        ledger = credit.compose(traces.graph, part.total, claims)
        for trace in np.flatnonzero(np.isfinite(part.total[:4])):
            events = np.asarray(traces.graph.trace_ids)[:8] == trace
            entries = [ledger.expected[trace], *np.asarray(ledger.increments)[:8][events]]
            entries += [ledger.outcome[trace], ledger.unexplained[trace], ledger.remainder[trace]]
            assert sum(np.float32(x) for x in entries) == part.total[trace]
        assert credit.audit(traces.graph, part.total, dict(zip(methods, claims, strict=True))).ledger.reward[0] > 0
    both, weighted = compose_channels(
        traces, {"agent_reward.x": 1.0, "agent_reward.y": 1.0}, methods, lambda t, m: {n: credit.run(t, n) for n in m}
    )
    assert both.channels == ("agent_reward.x", "agent_reward.y")
    assert list(weighted) == [f"agent_reward.{name}/{method}" for name in "xy" for method in methods]
    assert np.asarray(both.scored)[:4].tolist() == [True, True, True, False]
    np.testing.assert_allclose(np.asarray(both.reward)[:3], np.array(own[:6:2]) + np.array(own[1:6:2]), rtol=1e-6)
    with pytest.raises(CreditError, match=r"it has: .*agent_reward\.x, agent_reward\.y"):
        credit.ledger.channel(traces, "agent_reward.z")


def test_a_sum_of_agents_of_one_name_lacks_none_that_acted() -> None:
    own = [1.0, 1.0, 1.0, np.nan, 1.0, 0.4]
    graph = credit.from_columns(
        group=["q"] * 6, trace=list("aabbcc"), agent=["solver"] * 6, instance=[0, 1] * 3, evidence={"agent_reward": own}
    )[2].traces
    total = credit.ledger.channel(graph, "agent_reward.solver").total[:3]
    np.testing.assert_allclose(total, [2.0, np.nan, 1.4], rtol=1e-6)


@pytest.mark.parametrize(("method", "key"), [("shapley", "share"), ("difference_reward", "counterfactual_reward")])
def test_evidence_of_the_outcome_measures_no_other_channel(method: str, key: str) -> None:
    """Shares of the outcome were shares of each channel: an agent got them of both."""
    graph = credit.from_columns(
        group=["q"] * 4, trace=list("aabb"), agent=["x", "y"] * 2, reward=[1.0, 1.0, 0.0, 0.0],
        event_reward=[0.0, 2.0, 0.0, 0.0], evidence={key: [0.75, 0.25, 0.0, 0.0]},
    )[2].traces  # fmt: skip
    both, _ = compose_channels(
        graph, {"event_reward": 1.0, "finish_rate": 1.0}, (method,), lambda t, m: {n: credit.run(t, n) for n in m},
        outcome="event_reward",
    )  # fmt: skip
    assert "which does not measure 'finish_rate'" in both.refused[f"finish_rate/{method}"]


@pytest.mark.slow
def test_evidence_that_methods_can_do_without_measures_no_other_channel_either() -> None:
    """Asked for by name, a critic's q_value of the outcome entered claims about other rewards; so did its value."""
    evidence = {"context": ["c"] * 4, "node": list("abcd"), "q_value": [0.5] * 4, "value": [0.25] * 4}
    traces = credit.from_columns(
        group=["q"] * 4, trace=list("abcd"), reward=[1.0, 0, 0, 1], event_reward=[0.0, 2, 0, 0], evidence=evidence
    )[2].traces

    def compute(part: credit.Traces, names: Sequence[str]) -> dict[str, credit.Credit]:
        return {name: credit.run(part, name, evidence=["q_value"], variant="value_assisted") for name in names}

    weights = {"event_reward": 1.0, "finish_rate": 1.0}
    with pytest.raises(CreditError, match=r"'q_value': .*; on channel 'finish_rate', without"):
        compose_channels(traces, weights, ("c3",), compute, outcome="event_reward")
    with pytest.raises(CreditError, match=r"'value', which .*; on channel 'finish_rate', without"):
        compose_channels(traces, weights, (), lambda t, m: {}, outcome="event_reward", expected="value")
