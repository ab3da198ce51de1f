"""Returns and GAE against the published code's numbers and against a loop over lists."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import credit
from estimators import REASONS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "oracles.json"


def case(name: str) -> dict:
    return next(c for c in json.loads(GOLDEN.read_text())["cases"] if c["name"] == name)


def per_event(graph: credit.EventGraph, rows: credit.Rows, values: object) -> np.ndarray:
    out = np.full(graph.num_events, np.nan, np.float32)
    out[rows.event] = values
    return out


@pytest.mark.slow
def test_c3_mappo_step_gae() -> None:
    golden = case("c3_mappo_step_gae")
    given = golden["inputs"]
    episode = given["episode_ids"]
    outcome = {e: r for e, r, end in zip(episode, given["rewards"], given["terminals"], strict=True) if end}
    graph, reward, rows = credit.from_columns(
        group=[0] * 4, trace=episode, agent=given["step_ids"], reward=[outcome[e] for e in episode]
    )
    result = credit.gae(
        graph,
        reward,
        value=per_event(graph, rows, given["values"]),
        discount=given["gamma"],
        lambda_=given["lambd"],
    )
    np.testing.assert_allclose(rows.gather(result.advantage), golden["outputs"]["adv"], atol=2e-6)
    np.testing.assert_allclose(rows.gather(result.credit), golden["outputs"]["ret"], atol=2e-6)


def test_marft_action_gae() -> None:
    golden = case("marft_action_gae")
    given = golden["inputs"]
    values = np.array(given["v"])[0, :2, 0].ravel()  # two steps of two agents; the third step is the terminal value 0
    rewards = np.array(given["rewards"])[0, :, 0].ravel()
    graph, reward, rows = credit.from_columns(
        group=[0] * 4, trace=[0] * 4, agent=[0, 1, 0, 1], reward=[float(rewards[-1])] * 4
    )
    result = credit.gae(
        graph, reward, value=per_event(graph, rows, values), discount=given["gamma"], lambda_=given["lam"]
    )
    np.testing.assert_allclose(rows.gather(result.advantage), np.ravel(golden["outputs"]["adv"]), atol=2e-6)
    np.testing.assert_allclose(rows.gather(result.credit), np.ravel(golden["outputs"]["ret"]), atol=2e-6)


def by_loop(graph, reward, value, event_reward, discount, lambda_, along):
    """Lists and loops: reward of an action is what arrives until the next action of its chain."""
    n = int(graph.event_mask.sum())
    chain = (graph.trace_ids if along == "trace" else graph.agent_ids)[:n]
    advantages, returns = np.zeros(graph.num_events), np.zeros(graph.num_events)
    for k in set(chain.tolist()):
        members = [e for e in range(n) if chain[e] == k]
        actions = [e for e in members if graph.action_mask[e]]
        advantage = total = next_value = 0.0
        for j in reversed(range(len(actions))):
            start, end = actions[j], actions[j + 1] if j + 1 < len(actions) else n
            earned = sum(event_reward[e] for e in members if start <= e < end)
            if j == len(actions) - 1:
                earned += reward[graph.trace_ids[start]]
            advantage = earned + discount * next_value - value[start] + discount * lambda_ * advantage
            total = earned + discount * total
            advantages[start], returns[start], next_value = advantage, total, value[start]
    return advantages, returns


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("along", ["trace", "agent"])
@pytest.mark.parametrize("dropped", [0.0, 0.3, 0.7])
def test_against_a_loop_with_events_that_are_no_actions(along: str, dropped: float) -> None:
    rng = np.random.default_rng(1)
    trace, agent = rng.integers(0, 5, 60), rng.integers(0, 3, 60)
    outcome = rng.normal(size=5)
    graph, reward, rows = credit.from_columns(
        group=trace % 2, trace=trace, agent=agent, reward=outcome[trace], event_reward=rng.normal(size=60)
    )
    graph = dataclasses.replace(graph, action_mask=graph.action_mask & (rng.random(graph.num_events) >= dropped))
    value = per_event(graph, rows, rng.normal(size=60))
    options = {"event_reward": rows.event_reward, "discount": 0.9, "along": along}
    result = credit.gae(graph, reward, value=value, lambda_=0.8, **options)
    returns = credit.discounted_return(graph, reward, **options)
    advantages, totals = by_loop(graph, reward, value, rows.event_reward, 0.9, 0.8, along)
    np.testing.assert_allclose(result.advantage, advantages, atol=5e-6)
    np.testing.assert_allclose(returns.credit, totals, atol=5e-6)


@pytest.mark.slow
def test_at_discount_and_lambda_one_it_is_return_minus_value() -> None:
    rng = np.random.default_rng(2)
    trace = np.repeat(np.arange(4), 5)
    graph, reward, rows = credit.from_columns(group=trace % 2, trace=trace, reward=rng.normal(size=4)[trace])
    value = per_event(graph, rows, rng.normal(size=20))
    result = credit.gae(graph, reward, value=value, lambda_=1.0)
    expected = reward[graph.trace_ids[rows.event]] - value[rows.event]
    np.testing.assert_allclose(rows.gather(result.advantage), expected, atol=1e-6)


@pytest.mark.parametrize("along", ["trace", "causal"])
@pytest.mark.parametrize(
    ("discount", "lambda_", "invalid"),
    [(1.0, 1.0, [2]), (0.9, 1.0, [2]), (1.0, 0.0, [1, 2]), (0.0, 0.5, [2]), (0.9, 0.5, [0, 1, 2])],
)
def test_actions_are_invalid_that_read_the_missing_value(
    discount: float, lambda_: float, invalid: list[int], along: Literal["trace", "causal"]
) -> None:
    """At λ = 1 one missing value refused all actions before it, of whose numbers it is no part."""
    rng = np.random.default_rng(0)
    edges = {"sender": [0, 1, 2, 3], "receiver": [1, 2, 3, 4]}
    graph, reward, rows = credit.from_columns(group=[0] * 5, trace=[0] * 5, reward=[1.0] * 5, edges=edges)
    whole = per_event(graph, rows, rng.random(5))
    options = {"discount": discount, "lambda_": lambda_, "along": along}
    lacking = whole.copy()
    lacking[rows.event[2]] = np.nan
    result = credit.gae(graph, reward, value=lacking, **options)
    valid = rows.gather(np.asarray(result.valid))
    assert np.flatnonzero(~valid).tolist() == invalid
    of_all = credit.gae(graph, reward, value=whole, **options)
    np.testing.assert_allclose(rows.gather(result.advantage)[valid], rows.gather(of_all.advantage)[valid], atol=1e-6)


@pytest.mark.slow
def test_a_missing_value_invalidates_the_actions_that_lead_to_it_only() -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 6, trace=[0, 0, 0, 1, 1, 1], reward=[1.0] * 3 + [0.0] * 3)
    value = per_event(graph, rows, [0.5, np.nan, 0.5, 0.5, 0.5, 0.5])
    result = credit.gae(graph, reward, value=value)
    assert rows.gather(np.asarray(result.valid)).tolist() == [False, False, True, True, True, True]
    assert REASONS[int(result.reason[rows.event[0]])] == "the log lacks the evidence that the method needs here"
