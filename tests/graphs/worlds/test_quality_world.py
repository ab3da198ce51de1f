"""The world that shows quality: its value is the expectation of the outcome, and its features carry what it says."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.invariants import validate
from graphs.worlds.quality import QualityWorld

WORLD = QualityWorld(events=30, agents=5)


def test_its_graphs_are_valid_and_of_the_size_asked_for() -> None:
    for events, agents in ((30, 5), (50, 10), (64, 30)):
        graph = QualityWorld(events=events, agents=agents).sample(0, 3).graph
        validate(graph)
        assert (graph.num_events, graph.num_agents) == (3 * events, 3 * agents)
        assert set(graph.agent_ids[:events]) == set(range(agents))
        assert np.sum(graph.event_type[:events] == EventType.SPAWN) == agents - 1


def test_values_are_the_mean_outcome_and_increments_are_unpredictable() -> None:
    n = 20_000
    episodes = WORLD.sample(1, n)
    assert abs(episodes.reward.mean() - episodes.start) < 4 * 0.5 / np.sqrt(n)
    for t in (0, 3, 12, 29):
        value = episodes.value[:, t]
        for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
            where = (value >= low) & (value < high)
            z = (episodes.reward[where] - value[where]).mean() * np.sqrt(where.sum() / 0.25)
            assert abs(z) < 4, (t, low)
    d = episodes.increments
    assert np.abs(d.mean(axis=0)).max() < 5 * d.std() / np.sqrt(n)
    assert not d[:, -1].any()  # the stop
    together = np.corrcoef(d[:, [0, 1, 3, 8, 15, 28]].T) - np.eye(6)
    assert np.abs(together).max() < 5 / np.sqrt(n)


def test_a_spawn_is_worth_its_value_against_the_other() -> None:
    episodes = WORLD.sample(2, 200)
    for worker in range(4):
        values = WORLD.spawn_values(episodes, worker)
        came = episodes.good[:, 2 + worker].astype(int)
        np.testing.assert_allclose(values[np.arange(200), came], episodes.value[:, 2 + worker], atol=1e-12)
        np.testing.assert_allclose(values.mean(axis=1), episodes.value[:, 1 + worker], atol=1e-12)
        assert (values[:, 1] > values[:, 0]).all()
    with pytest.raises(CreditError, match="worker is 4"):
        WORLD.spawn_values(episodes, 4)


def test_quality_is_a_linear_function_of_the_features() -> None:
    episodes = WORLD.sample(3, 50)
    dense = episodes.dense.reshape(50, 30, -1)[:, 6:-2]
    order = episodes.order[:, 6:-2]
    boost = np.where(episodes.good[:, 2:6], 1.5, 0.5)
    quality = episodes.effect[:, 6:-2] / (np.take_along_axis(boost, np.maximum(order, 0), 1) * WORLD.step) - WORLD.drift
    at = order >= 0
    weights, *_ = np.linalg.lstsq(dense[at], quality[at], rcond=None)
    np.testing.assert_allclose(dense[at] @ weights, quality[at], atol=1e-4)


def test_the_same_seed_draws_the_same_and_wrong_sizes_are_refused() -> None:
    one, two = WORLD.sample(4, 5), WORLD.sample(4, 5)
    assert one.dense.tobytes() == two.dense.tobytes() and one.reward.tobytes() == two.reward.tobytes()
    with pytest.raises(CreditError, match="20 events for 10 agents; expected 22 or more"):
        QualityWorld(events=20, agents=10)
    with pytest.raises(CreditError, match="good_spawn is 1"):
        QualityWorld(good_spawn=1.0)
