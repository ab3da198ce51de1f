"""Difference rewards on logs whose re-runs are known."""

from __future__ import annotations

import numpy as np

import credit
from estimators.base import Reason
from graphs.worlds.micro.examples import MICRO


def test_each_decision_is_held_against_the_run_without_it() -> None:
    world = MICRO["stop-rewards"]
    traces = world.batch()
    other = np.full(traces.graph.num_events, np.nan, np.float32)
    expected, reason = [], []
    for trace, (end, _, _) in enumerate(world.ends):
        for at in range(len(end)):
            again = sum(p * reward for p, reward in world.rest((*end[:at], 0)))
            made = (trace + at) % 4 != 0  # some re-runs were never made
            other[len(expected)] = again if made else np.nan
            expected.append(world.total[trace] - again if made else 0.0)
            reason.append(Reason.VALID if made else Reason.NO_EVIDENCE)
    steps = traces.evidence["event_reward"].array
    found = credit.difference_reward(traces.graph, traces.reward, counterfactual_reward=other, event_reward=steps)
    np.testing.assert_allclose(found.advantage[: len(expected)], expected, atol=1e-6)
    assert np.asarray(found.reason)[: len(expected)].tolist() == reason


def test_an_and_of_three_pays_three_times() -> None:
    world = MICRO["relay-and"]
    traces = world.batch()
    won = next(i for i, (end, _, _) in enumerate(world.ends) if all(end))
    other = np.zeros(traces.graph.num_events, np.float32)  # any of them idle: no success
    found = credit.difference_reward(traces.graph, traces.reward, counterfactual_reward=other)
    mine = np.asarray(traces.graph.trace_ids == won) & np.asarray(traces.graph.event_mask)
    assert np.asarray(found.credit - found.baseline)[mine].tolist() == [1, 1, 1]
