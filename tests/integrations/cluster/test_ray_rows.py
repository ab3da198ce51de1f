"""Rows of a trainer through an actor and a task of a real Ray cluster: the numbers of one process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

ray = pytest.importorskip("ray")

from credit.integrations import RowAdvantages  # noqa: E402
from credit.ray import RemoteRowAdvantages, row_actors, rows_advantage_task  # noqa: E402
from graphs.errors import CreditError, MissingColumnWarning  # noqa: E402

TEAM: dict[str, Any] = {
    "group": [uuid.UUID(int=1)] * 5,
    "trace": ["a", "a", "a", "b", "b"],
    "agent": ["s", "v", "s", "s", "v"],
    "reward": np.array([1.0, 1.0, 1.0, 0.0, 0.0]),
}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize("method", ["rloo", "dr_mas", "turn_baseline"])
def test_an_actor_gives_the_numbers_of_one_process(method: str) -> None:
    team = TEAM | {"turn": [0, 1, 2, 0, 1]}
    here, there = RowAdvantages(method)(**team), RemoteRowAdvantages(method)(**team)
    assert there.advantages.tolist() == here.advantages.tolist() and there.valid.tolist() == here.valid.tolist()
    cost = ("credit/milliseconds", "credit/compilations")
    assert {k: v for k, v in there.metrics.items() if k not in cost} == {
        k: v for k, v in here.metrics.items() if k not in cost
    }


def test_a_task_gives_the_numbers_of_one_process_and_evidence_arrives() -> None:
    columns = {"group": ["q"] * 3, "reward": np.array([1.0, 0.0, 0.5])}
    columns["evidence"] = {"context": ["c"] * 3, "node": ["x", "y", "z"]}
    values, metrics = rows_advantage_task("c3", **columns)
    assert values == pytest.approx([0.75, -0.75, 0.0]) and metrics["credit/rows"] == 3


def test_tokens_do_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mask stays with the caller; what is sent does not grow with the tokens."""
    kept: list[dict[str, Any]] = []
    send = row_actors._sent
    monkeypatch.setattr(row_actors, "_sent", lambda *given: kept.append(send(*given)[0]) or send(*given))
    mask = np.ones((5, 4096), bool)
    mask[0, 1:] = False
    got = RemoteRowAdvantages("rloo")(**TEAM, mask=mask).advantages
    assert got.shape == (5, 4096) and got[0, 0] == 1 and not got[0, 1:].any() and (got[3] == -1).all()
    assert set(kept[0]) == {"reward", "group", "trace", "agent"}
    assert sum(np.size(column) for column in kept[0].values()) == 4 * 5
    with pytest.raises(CreditError, match=r"mask has shape \(3, 2\)"):
        RemoteRowAdvantages("rloo")(**TEAM, mask=np.ones((3, 2)))


def test_processes_share_an_actor_by_its_name_and_it_compiles_once() -> None:
    one, two = (RemoteRowAdvantages("rloo", name="credit", rows=64) for _ in range(2))
    assert one.warmup() > 0
    for rows in (7, 33, 64, 12):
        two(group=np.arange(rows) // 2, reward=np.arange(rows) % 2.0)
    assert one.compilations == two.compilations == 1


def test_an_actor_that_died_is_started_again() -> None:
    advantages = RemoteRowAdvantages("rloo")
    want = advantages(**TEAM).advantages.tolist()
    ray.kill(advantages._actor, no_restart=False)
    assert advantages(**TEAM).advantages.tolist() == want


def test_warnings_of_workers_are_those_of_one_process() -> None:
    """They stayed in the logs of Ray's workers."""
    columns: dict[str, Any] = {"group": ["q"] * 2, "trace": ["a", "b"], "reward": np.array([1.0, 0.0])}
    advantages = RemoteRowAdvantages("dr_mas")
    for call in (advantages, lambda **given: rows_advantage_task("dr_mas", **given)):
        with pytest.warns(MissingColumnWarning, match="needs the column 'agent'") as found:
            call(**columns)
        assert [one.filename for one in found] == [__file__]
    advantages(**columns)  # once each kind


def test_errors_are_those_of_one_process() -> None:
    with pytest.raises(CreditError, match="no method is called 'nope'"):
        RemoteRowAdvantages("nope")
    with pytest.raises(CreditError, match="'gae' needs value"):
        RemoteRowAdvantages("gae")(**TEAM)
    with pytest.raises(CreditError, match="'reward': is infinite"):
        RemoteRowAdvantages("rloo")(group=["q"], reward=np.array([np.inf]))
