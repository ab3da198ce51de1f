"""What is written reads back: the survey's form, the extension, and what the format cannot say."""

from __future__ import annotations

import dataclasses
import gzip
import json
import unittest.mock
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from graphs.errors import CreditError
from graphs.logs import read
from graphs.writers import native
from graphs.writers.native import write

from .logs import EXTENDED, SURVEY, Document, assert_round_trip, extended_trace, read_one, survey_trace


def lines_of(file: Path) -> list[Document]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        EXTENDED.validate(line)
    return lines


def test_a_trace_of_the_survey_form_is_written_in_it(tmp_path: Path) -> None:
    assert_round_trip(read_one(survey_trace(), tmp_path), tmp_path)
    (line,) = lines_of(tmp_path / "out.jsonl")
    SURVEY.validate(line)
    assert "schema_version" not in line


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_the_extension_survives_a_round_trip(name: str, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    documents = [
        extended_trace(trace_id="x"),
        survey_trace(trace_id="y", task_id="t2", rewards={}),
        extended_trace(trace_id="z", rewards={"team": 1 / 3, "other": 0}),
        survey_trace(trace_id="w", edges=[]),
    ]
    file.write_text("\n".join(map(json.dumps, documents)))
    traces = read(file)
    assert traces.problems == ()
    assert_round_trip(traces, tmp_path, name)
    content = (tmp_path / name).read_bytes()
    if name.endswith(".gz"):
        content = gzip.decompress(content)
        first = (tmp_path / name).read_bytes()
        write(traces, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    elif name.endswith(".zst"):
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    lines = [json.loads(line) for line in content.splitlines()]
    for line in lines:
        EXTENDED.validate(line)
        assert ("schema_version" in line) != SURVEY.is_valid(line)
    assert ["schema_version" in line for line in lines] == [True, False, True, False]


def test_numbers_are_written_as_the_log_has_them(tmp_path: Path) -> None:
    """0.015408 became 0.015407999977469444: single precision, with digits that no log had."""
    event = {"id": "e", "type": "message", "agent": "a", "tokens": 2, "money": 0.015408, "seconds": 9.35}
    event |= {"token_ids": [1, 2], "token_mask": [True, True], "token_log_probs": [-0.1, -1e-7]}
    (tmp_path / "in.jsonl").write_text(json.dumps(extended_trace(events=[event], edges=[], rewards={"team": 0.1})))
    native.write(read(tmp_path / "in.jsonl"), tmp_path / "out.jsonl")
    (line,) = lines_of(tmp_path / "out.jsonl")
    assert {key: line["events"][0][key] for key in ("money", "seconds", "token_log_probs")} == {
        key: event[key] for key in ("money", "seconds", "token_log_probs")
    }
    rows = "trace,reward,time,end\nt,1,2026-11-16T08:01:16.930+00:00,2026-11-16T08:01:17.160+00:00\n"
    (tmp_path / "in.csv").write_text(rows)
    native.write(read(tmp_path / "in.csv", columns={"end": "end"}), tmp_path / "out.jsonl")
    assert lines_of(tmp_path / "out.jsonl")[0]["events"][0]["seconds"] == 0.23


@pytest.mark.slow
def test_many_small_traces_are_written_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables were sliced for each trace, which took two thirds of the writer's time; blocks change no byte."""
    documents = [
        extended_trace(trace_id=f"x{i}", rewards={"team": i / 3} if i % 3 else {}) if i % 2 else
        survey_trace(trace_id=f"y{i}", edges=[] if i % 5 else survey_trace()["edges"])
        for i in range(40)
    ]  # fmt: skip
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, documents)))
    traces = read(tmp_path / "in.jsonl")
    with unittest.mock.patch.object(native, "_columns", wraps=native._columns) as columns:
        whole = list(native.lines(traces))
    assert len(whole) == len(documents) and columns.call_count == 1
    for block in (1, 7, 50):
        monkeypatch.setattr(native, "BLOCK", block)
        assert list(native.lines(traces)) == whole


@pytest.mark.study
def test_real_logs_of_other_formats_survive_a_round_trip(shared_data: Path, tmp_path: Path) -> None:
    for folder in ("tau_bench_airline", "claude_code_inline", "claude_code_subagent_files"):
        traces = read(shared_data / folder)
        assert traces.sizes.events > 50
        assert_round_trip(traces, tmp_path)
        lines_of(tmp_path / "out.jsonl")


def test_a_reward_that_is_no_channel_is_written_as_team(tmp_path: Path) -> None:
    traces = read_one(survey_trace(rewards={"score": 0.5}), tmp_path, reward="score")
    assert_round_trip(traces, tmp_path, reward="score")
    assert lines_of(tmp_path / "out.jsonl")[0]["rewards"] == {"score": 0.5}
    other = dataclasses.replace(traces, reward=np.where(traces.graph.trace_mask, np.float32(2), 0).astype(np.float32))
    write(other, tmp_path / "other.jsonl")
    np.testing.assert_array_equal(read(tmp_path / "other.jsonl").reward, other.reward)
    taken = dataclasses.replace(read_one(survey_trace(), tmp_path), reward=other.reward)
    with pytest.raises(CreditError, match="team"):
        write(taken, tmp_path / "no.jsonl")
    assert not (tmp_path / "no.jsonl").exists()
    assert [f.name for f in tmp_path.iterdir() if "part" in f.name] == []


def test_what_the_format_cannot_say_is_not_written(tmp_path: Path) -> None:
    traces = read_one(survey_trace(), tmp_path)
    times = traces.events["time"].to_pylist()
    column = traces.events.column_names.index("time")
    early = traces.events.set_column(column, "time", pa.array([-1.0, *times[1:]]))
    ring = traces.traces.set_column(traces.traces.column_names.index("topology"), "topology", pa.array(["ring"]))
    nameless = traces.events.set_column(0, "event", pa.array(["", *traces.events["event"].to_pylist()[1:]]))
    for changed, words in (
        (dataclasses.replace(traces, events=early), "^trace '.+': event '.+' has time -1"),
        (dataclasses.replace(traces, traces=ring), "'ring'"),
        (dataclasses.replace(traces, events=nameless), "length >= 1"),
    ):
        with pytest.raises(CreditError, match=words):
            write(changed, tmp_path / "no.jsonl")
        assert not (tmp_path / "no.jsonl").exists()


def test_one_date_before_1970_leaves_the_other_traces_to_be_written(tmp_path: Path) -> None:
    """It was read, and then no trace could be written."""
    for name, date in (("old", "1969-12-31T23:59:59Z"), ("new", "2026-01-01T00:00:00Z")):
        observation = {"id": "o", "traceId": name, "type": "GENERATION", "name": "g", "startTime": date}
        trace = {"trace": {"id": name, "projectId": "p"}, "observations": [observation]}
        (tmp_path / f"{name}.json").write_text(json.dumps(trace))
    traces = read(tmp_path)
    assert [(p.kind, p.trace, p.field, p.value) for p in traces.problems] == [
        ("out-of-range", "old", "events[0].time", "-1.0")
    ]
    write(traces, tmp_path / "out.jsonl")
    assert [line["trace_id"] for line in lines_of(tmp_path / "out.jsonl")] == ["new"]
