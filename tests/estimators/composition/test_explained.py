"""What a ledger explains out of sample: nothing where no entry knew anything, whatever the groups are."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import credit
from credit.ledger import Ledger
from estimators.composition.explained import explained
from graphs.event_graph import EventGraph

FAN = {
    "context": [x for t in range(12) for x in (None, f"c{t // 3}")],
    "node": [x for t in range(12) for x in (None, f"n{t}")],
}
"""Twelve traces of two actions: four fan-outs of three siblings each."""

SETTINGS: dict[str, tuple[list[int], dict[str, Any]]] = {
    "groups of four": ([t // 4 for t in range(12)], {}),
    "groups of one": (list(range(12)), {}),
    "of two and of one": ([0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8], {}),
    "replays of one trace": ([t // 3 for t in range(12)], FAN),
    "two fan-outs a group": ([t // 6 for t in range(12)], FAN),
    "traces of frozen agents": ([t // 4 for t in range(12)], {"trainable": np.repeat([1, 0, 1, 1] * 3, 2)}),
}


def batch(name: str) -> tuple[EventGraph, np.ndarray]:
    group, evidence = SETTINGS[name]
    reward = 5 + np.random.default_rng(0).normal(size=12)
    graph, outcome, _ = credit.from_columns(
        group=np.repeat(group, 2),
        trace=np.repeat(np.arange(12), 2),
        reward=np.repeat(reward, 2),
        turn=[0, 1] * 12,
        evidence=evidence,
    )
    return graph, np.asarray(outcome, np.float64)


def measured(graph: EventGraph, reward: np.ndarray, by_trace: np.ndarray) -> float:
    cells = np.zeros((graph.num_events, 1))
    cells[:24:2, 0] = by_trace
    scored = np.asarray(graph.trace_mask)
    return explained(graph, cells, np.ones_like(cells, bool), reward, None, scored).share


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_entries_of_nothing_explain_nothing(name: str) -> None:
    """They explained .19 in groups of one, .48 among replays, −2.6 and −1.7 where some traces had no baseline."""
    graph, reward = batch(name)
    assert measured(graph, reward, np.zeros(12)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_relative_to_the_mean_of_the_other_samples(name: str) -> None:
    """Against a loop."""
    graph, reward = batch(name)
    group, evidence = SETTINGS[name]
    fan = [t // 3 if "context" in evidence else t for t in range(12)]
    acted = [bool(evidence["trainable"][2 * t]) if "trainable" in evidence else True for t in range(12)]
    target = []
    for t in range(12):
        others = [u for u in range(12) if fan[u] != fan[t] and acted[u]]
        near = [u for u in others if group[u] == group[t]] or others
        samples = {f: [reward[u] for u in near if fan[u] == f] for f in dict.fromkeys(fan[u] for u in near)}
        target.append(reward[t] - np.mean([np.mean(sample) for sample in samples.values()]))
    known = np.random.default_rng(1).normal(size=12)
    expected = 1 - np.var(np.array(target) - known) / np.var(target)
    assert measured(graph, reward, known) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_a_baseline_that_holds_the_traces_own_outcome_explains_nothing() -> None:
    """The group's mean with the trace in it leaves (n − 1) / n of R − b: 0.44 of its variance seemed known."""
    graph, reward = batch("groups of four")
    nothing = credit.claim(graph, np.zeros(graph.num_events), estimand="increment", source="nothing", own_outcome=False)
    outcome = reward.astype(np.float32)
    for claims in itertools.permutations([credit.dr_grpo(graph, outcome), nothing]):
        assert credit.compose(graph, outcome, claims).explained == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("sizes", [[2], [4], [8], [1, 2, 3, 7]])
def test_a_constant_start_explains_nothing_of_coin_flips(sizes: list[int]) -> None:
    """Against R less the mean of the others, which is noisy, a value of 0.5 everywhere seemed to know 1 / K."""
    group = np.repeat(np.arange(1200), np.resize(sizes, 1200))
    flips = np.random.default_rng(3).integers(0, 2, len(group)).astype(np.float32)
    graph, reward, _ = credit.from_columns(group=group, trace=np.arange(len(group)), reward=flips)
    nothing = credit.claim(graph, np.zeros(graph.num_events), estimand="increment", source="nothing", own_outcome=False)

    def ledger(start: np.ndarray) -> Ledger:
        return credit.compose(graph, reward, [nothing], expected=start.astype(np.float32))

    at_mean = ledger(np.full(graph.num_traces, 0.5))
    assert abs(at_mean.explained) < 3 * at_mean.explained_stderr < 0.1
    assert ledger(np.zeros(graph.num_traces)).explained == pytest.approx(-1, abs=0.1)
    assert ledger(np.nan_to_num(np.asarray(reward))).explained == pytest.approx(1, abs=1e-9)
