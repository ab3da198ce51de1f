"""A channel of reward that no trace has is a problem, and one that the logs have settles reports of several rewards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.logs import read
from graphs.logs.chunks import read_chunks
from graphs.traces.cache import write_cache

from .native.logs import survey_trace
from .samples import SAMPLES


def log(folder: Path, *rewards: dict[str, float]) -> Path:
    traces = [survey_trace(trace_id=f"t{i}", rewards=reward) for i, reward in enumerate(rewards)]
    (folder / "log.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    return folder / "log.jsonl"


def test_a_channel_that_no_trace_has_is_a_problem_that_names_the_others(tmp_path: Path) -> None:
    path = log(tmp_path, {"team": 1.0}, {"r_format": 0.5})
    (problem,) = read(path, reward="r_fromat").problems
    assert problem.kind == "no-such-channel" and problem.is_failure
    assert str(problem) == (
        f"{path}: reward is 'r_fromat'; expected a channel that a trace has: team, r_format. Did you mean r_format? "
        "[no-such-channel]"
    )
    write_cache(read(path), tmp_path / "cache.parquet")
    assert [p.kind for p in read(tmp_path / "cache.parquet", reward="nope").problems] == ["no-such-channel"]


@pytest.mark.parametrize(
    ("rewards", "channel"), [({"acc": 1.0}, "team"), ({"acc": 1.0}, "acc"), ({}, "acc")], ids=["default", "it", "none"]
)
def test_no_other_choice_of_a_channel_is_a_problem(rewards: dict[str, float], channel: str, tmp_path: Path) -> None:
    assert read(log(tmp_path, rewards), reward=channel).problems == ()


def test_a_table_of_rewards_makes_the_channel(tmp_path: Path) -> None:
    assert read(log(tmp_path, {"acc": 1.0}), reward="judged", rewards={"t0": 0.5}).problems == ()


def completions(folder: Path) -> Path:
    table = {"step": [3, 3], "prompt": ["1+1?", "1+1?"], "completion": ["2", "2"], "advantage": [0.5, -0.5]}
    pq.write_table(pa.table(table | {"acc": [1.0, 0.0], "brief": [0.25, float("nan")]}), folder / "completions.parquet")
    return folder / "completions.parquet"


@pytest.mark.parametrize(("channel", "kinds"), [("team", ["several-rewards"]), ("acc", []), ("brief", [])])
def test_a_chosen_function_settles_several_rewards_of_a_file(channel: str, kinds: list[str], tmp_path: Path) -> None:
    """The report went on after the channel that it asks for was named."""
    assert [problem.kind for problem in read(completions(tmp_path), reward=channel).problems] == kinds


def test_the_report_of_several_rewards_names_options_that_exist(tmp_path: Path) -> None:
    (problem,) = read(completions(tmp_path)).problems
    assert "--reward-channel NAME (in Python reward=NAME)" in problem.expected


def test_a_chosen_channel_takes_the_place_of_outcomes_of_agents(tmp_path: Path) -> None:
    sample = SAMPLES["verifiers"]
    first = json.loads(json.dumps(sample.values[0]))
    first["traces"][1]["rewards"] = {"right": {"score": 0.25, "weight": 2.0}}
    path = sample._replace(values=[first]).write(tmp_path)
    assert "agent_reward" in read(path).evidence
    for chosen in (read(path, reward="judge.reward"), read(path, rewards={first["id"]: 1.0})):
        assert chosen.problems == () and "agent_reward" not in chosen.evidence
    assert [p.kind for p in read(path, reward="nope").problems] == ["no-such-channel"]


@pytest.mark.slow
def test_chunks_name_a_channel_that_no_trace_has(tmp_path: Path) -> None:
    """They gave no word, where a batch of everything did."""
    rewards = ({"team": 1.0}, {"r_format": 0.5}, {"acc": 0.5})
    traces = [survey_trace(trace_id=f"t{i}", task_id=f"q{i}", rewards=reward) for i, reward in enumerate(rewards)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    for channel in ("r_fromat", "acc", "team"):
        chunks = read_chunks(path, events=1, reward=channel)
        whole = read(path, reward=channel).problems
        for _ in range(2):
            assert len(list(chunks)) == 3 and tuple(chunks.problems) == whole


def test_a_chosen_outcome_takes_the_place_of_those_of_agents_in_native_logs(tmp_path: Path) -> None:
    """Columns are read another way than records: both leave out what the caller replaced, and keep it elsewhere."""
    event = {"id": "e", "t": 0, "type": "message", "agent": "a", "agent_reward": 0.5}
    traces = [{"trace_id": f"t{i}", "task_id": "q", "events": [event], "rewards": {}} for i in range(3)]
    traces[2]["rewards"] = {"team": 1.0}
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    whole = read(path, rewards={"t0": 1.0, "t2": 0.0})
    (chunk,) = read_chunks(path, events=100, rewards={"t0": 1.0, "t2": 0.0})
    for found in (whole, chunk):
        stated = found.evidence["agent_reward"].mask[: found.sizes.events].tolist()
        assert stated == [False, True, True]  # the last one states an outcome of the team beside it
        assert found.reward[:3].tolist() == pytest.approx([1.0, np.nan, 0.0], nan_ok=True)
