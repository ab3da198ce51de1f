"""What a log states twice: no statement replaces another without a word."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from .samples import SWE_AGENT, TAU2

TRAJECTORY = {
    "schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "terminus", "model_name": "m"},
    "steps": [{"step_id": 1, "source": "user", "message": "go"}, {"step_id": 2, "source": "agent", "message": "x"}],
}  # fmt: skip


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def refused(path: Path) -> list[tuple[str, str]]:
    with pytest.raises(NothingReadError) as caught:
        read(path)
    return [(problem.kind, problem.trace) for problem in caught.value.problems]


UNSOLVED = {"resolved": [], "generated": ["i"]}
SOLVED = {"resolved_ids": ["i"], "submitted_ids": ["i"]}


def test_swe_agents_results_that_agree_count(tmp_path: Path) -> None:
    write(tmp_path / "run" / "i.traj", SWE_AGENT)
    for name in ("run/a.json", "run/b.json"):
        write(tmp_path / name, SOLVED)
    write(tmp_path / "c.json", UNSOLVED)  # of a folder above, which is further away
    traces = read(tmp_path)
    assert traces.problems == () and float(traces.reward[0]) == 1.0


def test_swe_agents_predictions_of_two_models_refuse_the_trace(tmp_path: Path) -> None:
    """The later model was the trace's."""
    write(tmp_path / "i.traj", SWE_AGENT)
    for model in ("m", "n"):
        write(tmp_path / f"{model}.json", {"i": {"instance_id": "i", "model_name_or_path": model, "model_patch": ""}})
    assert refused(tmp_path) == [("disagreeing-models", "i")]


def trial(folder: Path, results: dict[str, dict[str, Any]]) -> None:
    write(folder / "agent" / "trajectory.json", TRAJECTORY)
    for name, verifier in results.items():
        write(folder / name, {"task_name": "t", "trial_name": name, "verifier_result": verifier})


def test_two_results_of_a_harbor_trial_refuse_it(tmp_path: Path) -> None:
    """The first one was lost."""
    trial(tmp_path / "T", {"result.json": {"reward": 0}, "result2.json": {"reward": 1}})
    trial(tmp_path / "U", {"result.json": {"reward": 0}})
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["result.json"]
    assert [(problem.kind, problem.trace) for problem in traces.problems] == [("several-results", "T")]


SAMPLE = {"epoch": 1, "input": "q", "events": [{"event": "model", "output": {"choices": [{}]}}]}


def archive(path: Path, members: list[tuple[str, Any]]) -> Path:
    with zipfile.ZipFile(path, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the names that stand twice
        for name, value in members:
            file.writestr(name, json.dumps(value))
    return path


def test_a_member_that_an_archive_holds_twice_is_refused(tmp_path: Path) -> None:
    """The later one was read."""
    header = ("header.json", {"eval": {"task": "quiz"}})
    scored = [(f"samples/{name}_epoch_1.json", SAMPLE | {"id": name, "scores": {"ok": {"value": value}}})
              for name, value in (("a", 0), ("a", 1), ("b", 1))]  # fmt: skip
    traces = read(archive(tmp_path / "log.eval", [header, *scored]))
    assert traces.traces["trace"].to_pylist() == ["log/b/1"]
    assert [(problem.kind, problem.field) for problem in traces.problems] == [
        ("repeated-member", "samples/a_epoch_1.json")
    ]
    assert refused(archive(tmp_path / "log.eval", [header, header, scored[2]])) == [("repeated-member", "")]


def agent(trace: str, name: str, rewards: dict[str, tuple[float, float]], **metrics: float) -> dict[str, Any]:
    stated = {key: {"score": score, "weight": weight} for key, (score, weight) in rewards.items()}
    node = {"message": {"role": "assistant", "content": "x"}, "sampled": True}
    return {"id": trace, "agent": {"name": name}, "nodes": [node], "rewards": stated, "metrics": metrics}


def episode(folder: Path, *agents: dict[str, Any]) -> Path:
    value = {"id": "e", "env": {"id": "x"}, "task": {"key": "k"}, "ok": True, "errors": [], "traces": agents}
    write(folder / "traces.jsonl", value)
    return folder


COLLIDING: dict[str, tuple[list[Any], str]] = {
    "dots": ([("a", {"b.c": (0.0, 1.0)}, {}), ("a.b", {"c": (1.0, 1.0)}, {})], "nan"),
    "a reward and the sum": ([("s", {"reward": (5.0, 0.0), "z": (1.0, 1.0)}, {}), ("b", {}, {})], "1.0"),
    "a reward and the outcome": ([("s", {"team": (1.0, 1.0), "z": (-1.0, 1.0)}, {})], "nan"),
}  # fmt: skip


@pytest.mark.parametrize("name", COLLIDING)
def test_rewards_of_two_agents_that_have_one_name_are_no_channel(tmp_path: Path, name: str) -> None:
    """The later one was the channel, then the episode was refused."""
    agents, outcome = COLLIDING[name]
    traces = [agent(str(i), of, rewards, **metrics) for i, (of, rewards, metrics) in enumerate(agents)]
    found = read(episode(tmp_path, *traces))
    assert [(problem.kind, problem.trace) for problem in found.problems] == [("unsettled-rewards", "e")]
    assert str(float(found.reward[0])) == outcome


def test_metrics_of_two_agents_that_have_one_name_refuse_the_episode(tmp_path: Path) -> None:
    two = agent("0", "a", {}, **{"b.c": 0.0}), agent("1", "a.b", {}, c=1.0)
    assert refused(episode(tmp_path, *two)) == [("disagreeing-metrics", "e")]


def test_a_reward_that_is_the_sum_itself_is_one_channel(tmp_path: Path) -> None:
    traces = read(episode(tmp_path, agent("1", "s", {"reward": (1.0, 1.0)}), agent("2", "b", {"reward": (1.0, 1.0)})))
    assert traces.problems == () and float(traces.reward[0]) == 1.0


def test_a_part_of_taus_reward_is_never_the_outcome(tmp_path: Path) -> None:
    """A part named `team` was the outcome of a simulation without a reward."""
    (simulation,) = TAU2["simulations"]
    for reward in (None, 0.5):
        info = {"reward": reward, "reward_breakdown": {"team": 1.0, "DB": 1.0}}
        write(tmp_path / "log.json", TAU2 | {"simulations": [simulation | {"reward_info": info}]})
        traces = read(tmp_path)
        assert repr(float(traces.reward[0])) == ("nan" if reward is None else "0.5")
        assert np.asarray(traces.evidence["rewards.DB"].array)[:1].tolist() == [1.0]
