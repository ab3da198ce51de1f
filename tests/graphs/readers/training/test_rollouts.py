"""Rollout dumps of trainers: a row is a trace, whatever its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.event_types import EventType
from graphs.readers import read

from ..samples import NEMO_GYM, NEMO_RL, SAMPLES, SKYRL, VERL


def write(folder: Path, rows: list[Any], name: str = "7.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_equal_texts_stay_different_rollouts_of_one_group(tmp_path: Path) -> None:
    traces = read(SAMPLES["rollouts of verl"].write(tmp_path))
    assert traces.traces["trace"].to_pylist() == ["7/1", "7/2", "7/3"]
    assert len(set(traces.traces["group"].to_pylist())) == 1
    assert np.asarray(traces.reward)[:3].tolist() == [1, 1, 0]
    assert traces.evidence["policy_version"].array[:3].tolist() == [7, 7, 7]
    assert traces.sizes.events == 3 and traces.graph.action_mask.sum() == 3


def test_steps_prompts_and_uids_part_groups(tmp_path: Path) -> None:
    rows = [VERL, VERL | {"step": 8}, VERL | {"input": "2+2?"}, VERL | {"uid": "u"}, VERL | {"uid": "u", "input": "x"}]
    groups = read(write(tmp_path, rows)).traces["group"].to_pylist()
    assert len(set(groups[:3])) == 3 and groups[3] == groups[4] == "u@7"


def test_rewards_of_tokens_add_up(tmp_path: Path) -> None:
    traces = read(write(tmp_path, [SKYRL, SKYRL | {"response_ids": [1, 2, 3]}, NEMO_RL]))
    assert np.asarray(traces.reward)[:3].tolist() == [1, 1, 1]
    assert traces.evidence["tokens"].amounts.tolist() == [3]
    assert traces.tokens is not None and traces.tokens.ids.tolist() == [1, 2, 3]
    assert len(set(traces.traces["group"].to_pylist())) == 2


def test_nemo_gym_joins_items_of_one_call(tmp_path: Path) -> None:
    traces = read(write(tmp_path, [NEMO_GYM, NEMO_GYM | {"response": NEMO_GYM["response"] | {"output": [
        {"type": "message", "role": "assistant"}]}}]))  # fmt: skip
    kinds = [EventType(int(kind)).name.lower() for kind in traces.graph.event_type[: traces.sizes.events]]
    assert kinds == ["message", "tool_call", "tool_result", "message", "message"]
    assert traces.events["event"].to_pylist()[:4] == ["0", "0/call-0", "2", "3"]
    assert traces.evidence["tokens"].array[:5].tolist() == [-1, -1, -1, 2, 8]
    assert traces.evidence["log_prob"].amounts.tolist() == [-0.75]
    assert traces.tokens is not None
    assert traces.tokens.log_probs.tolist() == [-0.5, -0.25] and traces.tokens.mask.all()
    assert traces.tokens.generated.sum() == len(traces.tokens.ids) == 2
    assert traces.traces["model"].to_pylist() == ["m", "m"]
    assert float(read(write(tmp_path, [NEMO_GYM]), reward="right").reward[0]) == 0.5


def completions(folder: Path, **rewards: list[float]) -> Path:
    table = {"step": [3, 3], "prompt": ["1+1?", "1+1?"], "completion": ["2", "2"], **rewards, "advantage": [0.5, -0.5]}
    pq.write_table(pa.table(table), folder / "completions_00003.parquet")
    return folder / "completions_00003.parquet"


def test_trl_completions(tmp_path: Path) -> None:
    traces = read(completions(tmp_path, accuracy=[1.0, 0.0]))
    assert traces.problems == () and traces.traces["format"].to_pylist() == ["rollouts"] * 2
    assert np.asarray(traces.reward)[:2].tolist() == [1, 0]
    assert len(set(traces.traces["group"].to_pylist())) == 1
    path = completions(tmp_path, accuracy=[1.0, 0.0], brevity=[0.25, float("nan")])
    traces = read(path)
    assert [problem.kind for problem in traces.problems] == ["several-rewards"]
    assert np.isnan(traces.reward[:2]).all()
    assert np.isnan(read(path, reward="brevity").reward[1])


def test_trl_conversations_are_chats(tmp_path: Path) -> None:
    table = pa.table({
        "step": [1], "prompt": [[{"role": "user", "content": "1+1?"}]],
        "completion": [[{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "add"}],
                         "tool_call_id": None},
                        {"role": "tool", "content": "2", "tool_calls": None, "tool_call_id": "c"},
                        {"role": "assistant", "content": "2", "tool_calls": None, "tool_call_id": None}]],
        "right": [1.0], "advantage": [0.0],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "completions.parquet")
    traces = read(tmp_path / "completions.parquet")
    assert traces.problems == () and traces.sizes.events == 4 and traces.graph.action_mask.sum() == 2


ROWS: list[Any] = [
    VERL, VERL | {"acc": True}, VERL | {"uid": "u"}, VERL | {"uid": ""}, VERL | {"uid": "", "step": None}, SKYRL,
    SKYRL | {"response_ids": [1, 2]}, SKYRL | {"score": [0.5, 0.25]}, SKYRL | {"score": [3e38, 3e38]}, NEMO_RL,
    SKYRL | {"input_prompt": [{"role": "user"}]}, VERL | {"score": "high"}, VERL | {"score": None}, {"input": "x"},
    NEMO_GYM, VERL | {"responses_create_params": {}}, VERL | {"step": -1}, VERL | {"input": "other"}, VERL,
]  # fmt: skip


def test_rows_read_many_at_once_as_they_do_one_by_one(tmp_path: Path) -> None:
    """A file that begins with a row goes through parts; a list of the same rows, row by row."""
    path = write(tmp_path, ROWS)
    path.write_text(path.read_text() + '{"input": \n' + json.dumps(VERL) + "\n")
    one_by_one = tmp_path / "list" / "7.json"
    one_by_one.parent.mkdir()
    one_by_one.write_text("[" + ",\n".join(json.dumps(row) for row in [*ROWS, VERL]) + "]")
    many, each = read(path), read(one_by_one, format="rollouts")
    faults = [(problem.kind, problem.line, problem.field) for problem in many.problems]
    assert ("bad-json", len(ROWS) + 1, "content") in faults and len(faults) == 7
    assert [(p.kind, p.line, p.field) for p in each.problems] == [fault for fault in faults if fault[0] != "bad-json"]
    rows = many.sizes.traces
    assert rows == each.sizes.traces == len(ROWS) + 1 - 6
    for name in ("event_type", "action_mask", "agent_ids", "turn_ids", "trace_ids", "group_ids", "agent_trace"):
        assert np.array_equal(getattr(many.graph, name), getattr(each.graph, name)), name
    assert np.array_equal(many.reward, each.reward, equal_nan=True)
    assert many.evidence.keys() == each.evidence.keys()
    for name in many.evidence:
        assert np.array_equal(many.evidence[name].array, each.evidence[name].array, equal_nan=True), name
    kept = ["model", "system", "format", "group"]
    assert many.traces.select(kept).to_pylist() == each.traces.select(kept).to_pylist()
    assert many.traces["line"].to_pylist()[:-1] == each.traces["line"].to_pylist()[:-1]
    columns = ["event", "agent", "name", "role"]
    tables = [(t.events.select(columns[:1]), t.agents.select(columns[1:])) for t in (many, each)]
    assert tables[0][0].to_pylist() == tables[1][0].to_pylist()
    assert tables[0][1].to_pylist() == tables[1][1].to_pylist()
