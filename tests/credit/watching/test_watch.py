"""What is watched while training: numbers by hand, files that are read back, and options that reach it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.integrations import RowAdvantages, Watch
from credit.watching.step_numbers import alignment, signal_to_noise

TEAM: dict[str, Any] = {
    "group": ["q"] * 4,
    "trace": ["a", "a", "b", "b"],
    "agent": ["planner", "worker"] * 2,
    "reward": np.array([1.0, 1.0, 0.0, 0.0]),
    "evidence": {"value": [0.5, 0.8, 0.5, 0.1]},
}


@pytest.mark.slow
def test_the_ledger_by_role_is_what_the_roles_changed(tmp_path: Path) -> None:
    """Values 0.5 → 0.8 → 1 and 0.5 → 0.1 → 0: the planners changed 0.3 and −0.4, the workers 0.2 and −0.1."""
    watched = RowAdvantages("critic", watch=Watch(tmp_path))
    metrics = watched(**TEAM).metrics
    assert metrics["credit/ledger/role/planner"] == pytest.approx((0.3 - 0.4) / 2, abs=1e-6)
    assert "credit/ledger/role/worker" in metrics
    total = sum(metrics[f"credit/ledger/{name}"] for name in ("role/planner", "role/worker", "expected", "unexplained"))
    assert total == pytest.approx(0.5, abs=1e-6), "the mean reward"
    assert metrics["credit/ledger/conditions_hold"] >= 1 and metrics["credit/ledger/conditions_broken"] == 0


def test_a_broadcast_has_no_ledger_by_role(tmp_path: Path) -> None:
    metrics = RowAdvantages("rloo", watch=Watch(tmp_path))(**{**TEAM, "evidence": {}}).metrics
    assert not [name for name in metrics if name.startswith("credit/ledger")]


def test_alignment_is_a_cosine() -> None:
    assert alignment(np.array([1.0, 0.0]), np.array([1.0, 1.0])) == pytest.approx(np.sqrt(0.5))
    assert alignment(np.array([1.0, -1.0]), np.array([-2.0, 2.0])) == pytest.approx(-1)
    assert np.isnan(alignment(np.zeros(2), np.ones(2)))  # no direction, and no number of the step


@pytest.mark.slow
def test_signal_to_noise_is_what_errors_do_not_explain() -> None:
    """Two alternatives with two replays each: of values 1 and 0, of values 2 and 0 with a spread, and of one value."""
    found = []
    for reward in ([1.5, 0.5, 0.5, -0.5], [2.5, 1.5, 0.5, -0.5], [1.5, 0.5, 1.5, 0.5]):
        graph, outcome, _ = credit.from_columns(group=[0] * 4, trace=range(4), reward=reward, events=4)
        result = credit.c3(graph, outcome, context=np.zeros(4, int), node=np.array([0, 0, 1, 1]))
        amount = np.subtract(result.credit, result.baseline)
        noise = float(np.mean(np.asarray(result.stderr).astype(float) ** 2))
        found.append(signal_to_noise(result))
        assert found[-1] == pytest.approx(np.sqrt(max(amount.var() - noise, 0) / noise), abs=1e-6)
    assert found[1] > found[0] > found[2] == 0


@pytest.mark.parametrize("method", ["rloo", "dr_mas", "grpo", "turn_baseline", "foldgrpo"])
def test_a_return_has_no_signal_to_noise(method: str, tmp_path: Path) -> None:
    """It was √(n − 1) or √(n − 2) for groups of n, whatever the rewards: a constant, printed as a number of health."""
    watched = RowAdvantages(method, watch=Watch(tmp_path, ledger=False))
    team = {"trace": np.repeat(range(4), 3), "agent": ["a", "b", "a"] * 4, "turn": [0, 0, 1] * 4}
    given = watched(group=["q"] * 12, **team, reward=np.repeat([1.0, 0.0, 0.0, 0.5], 3))
    assert "credit/snr" not in given.metrics


def test_files_are_read_back(tmp_path: Path) -> None:
    watched = RowAdvantages("dr_mas", watch=Watch(tmp_path, compare=["rloo"], every=2, ledger=False))
    given = {**TEAM, "evidence": {}}
    watched.warmup(16)
    for _ in range(3):
        watched(**given)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 2]
    assert all(line["credit/alignment/rloo"] == pytest.approx(1) for line in lines)
    traces = credit.read(tmp_path / "rows.jsonl")
    assert not traces.problems and traces.traces.num_rows == 4
    assert sorted(traces.traces["trace"].to_pylist()) == ["0/a", "0/b", "2/a", "2/b"]
    assert set(traces.agents["name"].to_pylist()) == {"planner", "worker"}
    assert np.asarray(traces.reward)[:2].tolist() == [1, 0]


def test_a_folder_is_enough(tmp_path: Path) -> None:
    RowAdvantages("rloo", watch=tmp_path / "new")(group=["q", "q"], reward=np.array([1.0, 0.0]))
    assert (tmp_path / "new" / "metrics.jsonl").exists()


def test_what_cannot_be_watched_is_named(tmp_path: Path) -> None:
    with pytest.raises(credit.CreditError, match="compare names 'nope'"):
        Watch(tmp_path, compare=["nope"])
    with pytest.raises(credit.CreditError, match="every is 0"):
        Watch(tmp_path, every=0)
    watched = RowAdvantages("rloo", watch=Watch(tmp_path, compare=["gae"]))
    with pytest.raises(credit.CreditError, match="'gae', which needs value"):
        watched(group=["q", "q"], reward=np.array([1.0, 0.0]))


@pytest.mark.slow
def test_rewards_at_events_are_part_of_what_the_ledger_divides(tmp_path: Path) -> None:
    """Outcomes 1 and 0 and an event's 0.5: entries, expected and unexplained add up to the mean return, 0.75."""
    watched = RowAdvantages("critic", watch=Watch(tmp_path))
    metrics = watched(**TEAM, event_reward=[0.0, 0.5, 0.0, 0.0]).metrics
    parts = ("role/planner", "role/worker", "expected", "unexplained")
    assert sum(metrics[f"credit/ledger/{part}"] for part in parts) == pytest.approx(0.75, abs=1e-6)


def test_tensorboard_gets_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed here; `make integrations` runs this")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    watched = RowAdvantages("rloo", watch=Watch(tmp_path, tensorboard=True, ledger=False))
    for _ in range(2):
        watched(group=["q", "q"], reward=np.array([1.0, 0.0]))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("credit/groups_that_teach")] == [0, 1]
    assert [event.value for event in events.Scalars("credit/groups_that_teach")] == [1, 1]


def test_wandb_gets_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of one's own, and the trainer's, both without a server."""
    wandb = pytest.importorskip("wandb", reason="wandb is not installed here; `make integrations` runs this")
    from credit.watching.sinks import Wandb

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    watched = RowAdvantages("rloo", watch=Watch(tmp_path, wandb=True, ledger=False))
    rows = {"group": ["q", "q"], "reward": np.array([1.0, 0.0])}
    with pytest.raises(credit.CreditError, match="no run of wandb is active"):
        watched(**rows)
    with wandb.init(project="trainer") as run:
        watched(**rows)
        run.log({"loss": 1.0})
        assert run.summary["credit/groups_that_teach"] == 1 and run.summary["loss"] == 1
    sink = Wandb("watched")
    sink.write(4, {"credit/snr": 0.5}, {"logs": "step_4"})
    assert wandb.run.summary["credit/snr"] == 0.5 and wandb.run.summary["logs"] == "step_4"
    sink.close()
    assert wandb.run is None
    assert len(list(tmp_path.glob("wandb/offline-run-*/*.wandb"))) == 2


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_writer_that_is_not_installed_is_named(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m.partition(".")[0] == name] + [name]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(credit.CreditError, match=rf"{name} is not installed.*orchestration-credit\[{name}\]"):
        Watch(tmp_path, **{name: True})
