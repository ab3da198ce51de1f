"""Frozen agents: no advantage for, and no statistics from, actions of policies that are not being trained."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import credit
from estimators.base import Reason
from graphs.errors import CreditError
from graphs.event_graph import EventGraph
from graphs.frozen_agents import with_trainable
from graphs.invariants import validate
from graphs.padding import Sizes, pad, unpad

METHODS = [name for name, method in credit.METHODS.items() if not method.needs]


@pytest.fixture(scope="module")
def batch() -> tuple[EventGraph, np.ndarray, credit.Rows]:
    rng = np.random.default_rng(0)
    trace = np.repeat(np.arange(7), 4)
    return credit.from_columns(
        group=trace // 4,
        trace=trace,
        agent=["solver", "judge", "solver", "helper"] * 7,
        turn=[0, 0, 1, 0] * 7,
        row_reward=rng.normal(size=28),
        evidence={"trainable": [1, 0, None, 1] * 7},
        events=32,
        traces=16,
        agents=32,
    )


@pytest.mark.every_method
@pytest.mark.parametrize("name", METHODS)
def test_a_frozen_agent_is_part_of_the_environment(name: str, batch: tuple) -> None:
    graph, reward, rows = batch
    environment = dataclasses.replace(graph, trainable_mask=None, action_mask=graph.action_mask & graph.trainable_mask)
    found = credit.METHODS[name](graph, reward, event_reward=rows.event_reward)
    expected = credit.METHODS[name](environment, reward, event_reward=rows.event_reward)
    np.testing.assert_array_equal(found.advantage, expected.advantage)
    reason = rows.gather(np.asarray(found.reason)).reshape(7, 4)
    assert set(reason[:, 1].tolist()) == {Reason.FROZEN}
    assert Reason.FROZEN not in reason[:, [0, 2, 3]]
    everyone = credit.METHODS[name](
        dataclasses.replace(graph, trainable_mask=None), reward, event_reward=rows.event_reward
    )  # compiled already
    assert Reason.FROZEN not in np.asarray(everyone.reason)


def test_the_mask_survives_padding_and_is_checked(batch: tuple) -> None:
    graph = batch[0]
    validate(graph)
    assert graph.trainable_mask[:28].tolist() == [True, False, True, True] * 7  # what nobody states is trained
    larger = pad(graph, Sizes(64, 8, 64, 64))
    validate(larger)
    np.testing.assert_array_equal(unpad(larger).trainable_mask, unpad(graph).trainable_mask)
    with pytest.raises(CreditError, match="trainable_mask"):
        validate(dataclasses.replace(graph, trainable_mask=graph.trainable_mask.astype(np.int32)))
    with pytest.raises(CreditError, match="trainable has shape"):
        with_trainable(graph, np.ones(3))
    assert with_trainable(graph, np.ones(graph.num_events)).trainable_mask is None


def test_a_log_that_states_who_is_trained(tmp_path: Path) -> None:
    lines = []
    for i in range(2):
        events = [
            {"id": "a", "type": "message", "agent": "solver", "action": True, "trainable": 1},
            {"id": "b", "type": "message", "agent": "judge", "action": True, "trainable": 0},
        ]
        lines.append(json.dumps({"trace_id": str(i), "task_id": "q", "events": events, "rewards": {"team": float(i)}}))
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    traces = credit.read(tmp_path / "x.jsonl")
    result = credit.run(traces, "rloo")
    assert np.asarray(result.advantage)[:4].tolist() == [-1.0, 0.0, 1.0, 0.0]
    assert np.asarray(result.reason)[:4].tolist() == [Reason.VALID, Reason.FROZEN] * 2
