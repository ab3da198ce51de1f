"""One small world, one corpus and one short fit for all tests of the critic: compiling costs more than running."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimators.critic.data import CriticData, Split, split_by_task
from estimators.critic.features import event_features
from estimators.critic.train import Fitted, Settings, fit
from graphs.event_graph import EventGraph
from graphs.padding import Sizes, pad
from graphs.worlds.quality import QualityEpisodes, QualityWorld

SETTINGS = Settings(members=2, hidden=4, sums=2, epochs=3, patience=3, batch_events=256)


@pytest.fixture(scope="session")
def episodes() -> QualityEpisodes:
    return QualityWorld(events=20, agents=4).sample(0, 40)


@pytest.fixture(scope="session")
def corpus(episodes: QualityEpisodes) -> CriticData:
    features = event_features(episodes.graph, dense=episodes.dense)
    return CriticData.of(episodes.graph, features, episodes.reward)


@pytest.fixture(scope="session")
def split(corpus: CriticData) -> Split:
    # Of a split whose few validation traces show a gain: otherwise what is returned is the critic before training.
    return split_by_task(corpus.group, corpus.reward, seed=1)


@pytest.fixture(scope="session")
def settings() -> Settings:
    return SETTINGS


@pytest.fixture(scope="session")
def fitted(corpus: CriticData, split: Split, settings: Settings) -> Fitted:
    return fit(corpus, split, settings)


@pytest.fixture(scope="session")
def changed() -> Callable[..., Any]:
    """A batch of the world whose events from place t of every trace on are drawn anew, padded to one shape."""

    def change(episodes: QualityEpisodes, t: int) -> tuple[EventGraph, np.ndarray]:
        world, n = QualityWorld(events=20, agents=4), len(episodes.reward)
        other = world.sample(99, n)
        later = np.tile(np.arange(world.events), n) >= t
        graph, fresh = episodes.graph, other.graph
        fields = {}
        for name in ("event_type", "action_mask", "agent_ids", "turn_ids"):
            fields[name] = np.where(later, getattr(fresh, name), getattr(graph, name))
        kept, added = (
            np.stack([g.senders, g.receivers, g.edge_type])[:, at]
            for g, at in ((graph, ~later[graph.receivers]), (fresh, later[fresh.receivers]))
        )
        senders, receivers, edge_type = np.concatenate([kept, added], axis=1).astype(np.int32)
        whole = dataclasses.replace(
            graph,
            **fields,
            senders=senders,
            receivers=receivers,
            edge_type=edge_type,
            edge_mask=np.ones(len(senders), bool),
        )
        room = Sizes(graph.num_events, 2 * graph.num_events, graph.num_agents, graph.num_traces)
        return pad(whole, room), np.where(later[:, None], other.dense, episodes.dense)

    return change


@pytest.fixture(scope="session")
def oracle() -> Callable[[str], dict]:
    """A case of the goldens by its name."""
    path = Path(__file__).parent.parent / "golden" / "oracles.json"
    return {case["name"]: case for case in json.loads(path.read_text())["cases"]}.__getitem__
