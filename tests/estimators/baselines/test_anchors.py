"""GiGPO against a loop over dictionaries, on rows of many shapes."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import credit
from credit.laws.trial_batches import ragged
from estimators import REASONS
from estimators.base import Reason
from estimators.baselines.anchors import gigpo


def random_rows(seed: int) -> dict:
    """Ragged traces of two agents that share environment steps; one task has a single trace."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list] = {name: [] for name in ("group", "trace", "agent", "row_reward")}
    evidence: dict[str, list] = {name: [] for name in ("anchor", "env_step", "env_reward")}
    for trace in range(9):
        for step in range(rng.integers(1, 4)):
            here = round(float(rng.normal()), 3)
            for agent in ("S", "V")[: rng.integers(1, 3)]:
                for name, value in zip(rows, (trace // 4, trace, agent, round(float(rng.normal()), 3)), strict=True):
                    rows[name].append(value)
                for name, value in zip(evidence, (int(rng.integers(3)), step, here), strict=True):
                    evidence[name].append(value)
    return {**rows, "evidence": evidence}


def loop(rows: dict, by_agent: bool, scale: bool, discount: float, weight: float) -> list[float]:
    e = rows["evidence"]
    n = len(rows["trace"])
    per_step = {(rows["trace"][i], e["env_step"][i]): e["env_reward"][i] for i in range(n)}
    to_go = {}
    for trace in set(rows["trace"]):
        steps = sorted(s for u, s in per_step if u == trace)
        value = 0.0
        for s in reversed(steps):
            value = to_go[trace, s] = per_step[trace, s] + discount * value
    key = [(rows["group"][i], rows["agent"][i] if by_agent else None) for i in range(n)]
    episode, first = defaultdict(list), set()
    met = defaultdict(list)
    for i in range(n):
        if by_agent or (key[i], rows["trace"][i]) not in first:
            episode[key[i]].append(rows["row_reward"][i])
        first.add((key[i], rows["trace"][i]))
        met[key[i], e["anchor"][i]].append(to_go[rows["trace"][i], e["env_step"][i]])

    def normal(x: float, sample: list[float], alone: float) -> float:
        if len(sample) < 2:
            return alone / (1 + 1e-6) if scale else alone
        return (x - np.mean(sample)) / (np.std(sample, ddof=1) + 1e-6 if scale else 1.0)

    out = []
    for i in range(n):
        g = to_go[rows["trace"][i], e["env_step"][i]]
        out.append(
            normal(rows["row_reward"][i], episode[key[i]], rows["row_reward"][i])
            + weight * normal(g, met[key[i], e["anchor"][i]], 0.0)
        )
    return out


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", ["none", "std"])
@pytest.mark.parametrize("by_agent", [False, True])
def test_against_a_loop(by_agent: bool, scale: str, seed: int) -> None:
    rows = random_rows(seed)
    graph, reward, at = credit.from_columns(**rows, events=128, traces=32, agents=64)
    result = gigpo(
        graph,
        reward,
        **at.evidence,
        discount=0.9,
        weight=0.5,
        scale=scale,
        by="agent_name" if by_agent else None,
        population="row" if by_agent else "trace",
    )
    expected = loop(rows, by_agent, scale == "std", 0.9, 0.5)
    np.testing.assert_allclose(at.gather(result.advantage), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("scale", "plain"), [("std", "grpo"), ("none", "dr_grpo")])
def test_without_environment_rewards_a_trace_is_compared_by_its_return(scale: str, plain: str, seed: int) -> None:
    """It was compared by its outcome, and each row's own reward was added to that."""
    batch = ragged(seed, {"anchor": "event"})
    given = {"event_reward": batch.event_reward, "singleton": "raw"}
    found = credit.gigpo(batch.graph, batch.reward, **batch.evidence, **given, weight=0.0, scale=scale)
    expected = credit.METHODS[plain](batch.graph, batch.reward, **given)
    valid = np.asarray(found.valid)
    assert valid.sum() > 30
    np.testing.assert_allclose(found.advantage[valid], expected.advantage[valid], rtol=0, atol=2e-6)


def one_trace_each(**evidence: list) -> tuple:
    return credit.from_columns(
        group=[0] * 4,
        trace=[0, 0, 1, 1],
        reward=[1.0, 1.0, 0.0, 0.0],
        evidence={"anchor": ["o", "p", "o", "p"], **evidence},
    )


@pytest.mark.slow
def test_without_environment_rewards_a_step_earns_what_arrives_until_the_next() -> None:
    graph, reward, at = one_trace_each()
    event_reward = np.zeros(graph.num_events, np.float32)
    event_reward[at.event] = [0.5, 0.0, 0.0, 0.25]
    result = gigpo(graph, reward, **at.evidence, event_reward=event_reward, discount=0.5)
    to_go = np.array([0.5 + 0.5 * 1.0, 1.0, 0.5 * 0.25, 0.25])
    returns = np.array([1.5, 1.5, 0.25, 0.25])  # it was the outcome with each row's own reward
    expected = returns - returns.mean() + to_go - np.array([to_go[0] + to_go[2], to_go[1] + to_go[3]] * 2) / 2
    np.testing.assert_allclose(at.gather(result.advantage), expected, atol=1e-6)


@pytest.mark.slow
def test_what_is_missing_is_refused_and_harms_no_one_else() -> None:
    graph, reward, at = one_trace_each(env_reward=[0.0, None, 0.0, 1.0], env_step=[0, 1, 0, 1])
    result = gigpo(graph, reward, **at.evidence)
    assert np.asarray(at.gather(result.valid)).tolist() == [False, False, True, True]
    assert REASONS[int(at.gather(result.reason)[0])] == "the log lacks the evidence that the method needs here"
    assert np.asarray(at.gather(result.advantage)).tolist()[2:] == [-0.5, -0.5]  # their anchors have no one else


@pytest.mark.parametrize(
    ("options", "words"),
    [({"scale": "variance"}, "scale is 'variance'"), ({"singleton": "drop"}, "singleton is 'drop'")],
)
def test_wrong_options_are_refused(options: dict, words: str) -> None:
    graph, reward, at = one_trace_each()
    with pytest.raises(ValueError, match=words):
        gigpo(graph, reward, **at.evidence, **options)
    with pytest.raises(TypeError, match="anchor is float32"):
        gigpo(graph, reward, anchor=np.zeros(graph.num_events, np.float32))


@pytest.mark.study
def test_a_row_is_not_divided_by_a_spread_near_nothing() -> None:
    """With rewards of steps only first rows are samples of s: where they were equal, later rows of 0.3 gave 300,000."""
    graph, reward, rows = credit.from_columns(
        group=["q"] * 6,
        trace=["a", "a", "b", "b", "c", "c"],
        turn=[0, 1] * 3,
        reward=[0.5] * 6,
        event_reward=[0, 0.3, 0, -0.2, 0, 0.1],
        evidence={"anchor": ["start", "end"] * 3, "env_reward": [0.0, 0.5] * 3},
    )
    scaled = credit.gigpo(graph, reward, **rows.evidence, scale="std")
    fork = credit.foldgrpo_fork(graph, reward, row_reward=rows.event_reward)
    for result in (scaled, fork):
        assert rows.gather(result.reason).tolist() == [0, Reason.NO_DIVISOR] * 3
        assert np.abs(rows.gather(result.advantage)).max() < 2
