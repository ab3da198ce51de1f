"""Every reader of a foreign format under faults: any change of a log reads or is named, and stops no other trace."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import NothingReadError, Problem
from graphs.logs import FORMATS, detect, read, reader_of
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

RECORDINGS = Path(__file__).parents[2] / "recordings"


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (RECORDINGS / name).read_text().splitlines()]


def inspect_log() -> dict[str, Any]:
    """The recorded `.eval` as one JSON log, as Inspect writes it on request."""
    data = (RECORDINGS / "inspect_team.eval").read_bytes()
    found = {}
    for member in zipfile.ZipFile(io.BytesIO(data)).infolist():
        if member.filename.startswith("samples/") or member.filename == "header.json":
            skip = member.header_offset + 30 + len(member.filename.encode())
            skip += int.from_bytes(data[member.header_offset + 28 : member.header_offset + 30], "little")
            packed = data[skip : skip + member.compress_size]
            with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
                found[member.filename] = json.loads(stream.read())
    return found.pop("header.json") | {"samples": list(found.values())}


TRAJECTORY = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "lead"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "hi", "timestamp": "2026-01-01T00:00:00Z"},
        {
            "step_id": 2,
            "source": "agent",
            "tool_calls": [
                {"tool_call_id": "a", "function_name": "task"},
                {"tool_call_id": "b", "function_name": "ls"},
            ],
            "observation": {
                "results": [
                    {"source_call_id": "a", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]},
                    {"source_call_id": "b", "content": "x"},
                ]
            },
            "metrics": {"prompt_tokens": 9, "completion_token_ids": [1, 2], "logprobs": [-0.5, -1.0]},
        },
    ],
    "subagent_trajectories": [
        {
            "schema_version": "ATIF-v1.7",
            "trajectory_id": "sub",
            "agent": {"name": "worker"},
            "steps": [{"step_id": 1, "source": "agent", "llm_call_count": 1}],
        }
    ],
}

RUN = {
    "is_correct": False,
    "question": "?",
    "question_ID": "q",
    "history": [
        {"content": "code", "role": "assistant", "name": "Ann"},
        {"content": "out", "role": "user", "name": "Computer_terminal"},
        {"content": "so", "role": "assistant", "name": "Bob"},
    ],
    "mistake_agent": "Bob",
    "mistake_step": "2",
}

EVENT = {
    "event_type": "model_request",
    "rollout_id": "r",
    "attempt_id": "0",
    "timestamp": 1.5,
    "data": {
        "model": "m",
        "request": {"messages": [{"role": "system", "content": "s"}, {"role": "tool", "tool_call_id": "a"}]},
        "response": {
            "choices": [
                {
                    "message": {"tool_calls": [{"id": "a", "function": {"name": "f"}}]},
                    "logprobs": {"content": [{"token": "x", "logprob": -0.5}]},
                }
            ]
        },
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    },
}
REWARD = {"event_type": "reward", "rollout_id": "r", "attempt_id": "0", "data": {"value": 1.0, "source": "agent"}}
ROLLOUT = {
    "rollout_id": "r",
    "input": "task",
    "is_train": True,
    "metadata": {"batch_idx": 3},
    "status": {"state": "succeeded", "last_attempt_id": "0"},
}

LOGS: dict[str, Any] = {
    "openai-agents": lines("openai_agents_team.jsonl"),
    "inspect-ai": inspect_log(),
    "atif": TRAJECTORY,
    "who-and-when": RUN,
    "agent-lightning": [EVENT, REWARD, ROLLOUT],
    "agent-lightning spans": lines("agent_lightning_spans.jsonl"),
    "langsmith": lines("langsmith_team.jsonl"),
}
VALUES = (None, True, -1, 0, 3, 10**30, 2.5, 1e300, "", "x", "2026-01-01T00:00:00Z", [], [None], ["x"], {}, {"x": 1})


def format_of(name: str) -> str:
    return name.split()[0]


def items(name: str, path: Path) -> list[TraceRecord | Problem]:
    module = reader_of(format_of(name))
    return list(module.read([Source(str(path), path)]))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def changed(log: Any, place: tuple[Any, ...], value: Any, *, delete: bool) -> Any:
    copied = copy.deepcopy(log)
    target = copied
    for step in place[:-1]:
        target = target[step]
    if delete:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return copied


@pytest.mark.parametrize("name", LOGS)
def test_each_log_is_taken_by_its_own_reader_alone(name: str) -> None:
    head = json.dumps(LOGS[name]).encode()
    sniffers = {form: reader_of(form).sniff for form in FORMATS}
    assert [form for form in FORMATS if sniffers[form](head)] == [format_of(name)]
    assert detect(head) == format_of(name)


@pytest.mark.parametrize("recording", ["team_genai.jsonl", "team_openinference.jsonl"])
def test_plain_opentelemetry_is_left_to_its_own_reader(recording: str) -> None:
    """Several of the formats here are made of spans too."""
    head = (RECORDINGS / recording).read_bytes()[: 1 << 16]
    taken = [f for f in FORMATS if reader_of(f).sniff(head)]
    assert taken == ["otlp"]


@pytest.mark.parametrize("name", LOGS)
def test_each_log_reads_alike_as_a_list_and_as_lines(tmp_path: Path, name: str) -> None:
    log = LOGS[name]
    parts = log if isinstance(log, list) else [log]
    one, many = tmp_path / "one.json", tmp_path / "many.jsonl"
    one.write_text(json.dumps(log, indent=1))
    many.write_text("".join(json.dumps(part) + "\n" for part in parts))
    graphs = [read(path).graph for path in (one, many)]
    assert graphs[0].action_mask.tolist() == graphs[1].action_mask.tolist()
    assert graphs[0].event_type.tolist() == graphs[1].event_type.tolist()
    assert graphs[0].senders.tolist() == graphs[1].senders.tolist()


@pytest.mark.parametrize("name", LOGS)
def test_places_point_at_records(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(LOGS[name], indent=1))
    data, known = path.read_bytes(), [json.dumps(part) for part in _all_objects(LOGS[name])]
    for record in items(name, path):
        assert isinstance(record, TraceRecord)
        for line, offset in zip(record.lines, record.offsets, strict=True):
            assert line == 1 + data[:offset].count(b"\n")
            value, _ = json.JSONDecoder().raw_decode(data[offset:].decode())
            assert json.dumps(value) in known


def _all_objects(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(part for one in inner for part in _all_objects(one))] if isinstance(value, dict | list) else []


@pytest.mark.slow
@pytest.mark.parametrize("examples", [25, pytest.param(150, marks=pytest.mark.study)])
@pytest.mark.parametrize("name", LOGS)
def test_any_change_reads_or_is_named(tmp_path: Path, name: str, examples: int) -> None:
    where = [place for place in places(LOGS[name]) if place]
    path, good = tmp_path / "log.json", tmp_path / "good.json"
    good.write_text(json.dumps([{"task_id": 1, "trial": 0, "traj": [{"role": "assistant", "content": "x"}]}]))

    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def reads_or_is_named(data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(where))
        log = changed(LOGS[name], place, data.draw(st.sampled_from(VALUES)), delete=data.draw(st.booleans()))
        path.write_text(json.dumps(log))
        assert items(name, path)
        traces = read(path, good)
        assert "good/task-1/trial-0" in traces.traces["trace"].to_pylist()

    reads_or_is_named()


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda text: text[:-20], "bad-json"),
        (lambda text: text.replace('"', '"\x00', 1), "bad-json"),
        (lambda text: text.replace(": ", ": " + "[" * 100_000, 1), "too-deep"),
        (lambda text: '{"x": NaN, ' + text.lstrip("[").lstrip("{"), "non-finite"),
        (lambda _: "", "empty-file"),
    ],
    ids=["cut", "control", "deep", "nan", "empty"],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, damage: Any, kind: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(damage(json.dumps(LOGS[name])))
    try:
        problems = [problem for problem in read(path, format=format_of(name)).problems if problem.is_failure]
        assert name == "inspect-ai"  # which holds a list of runs: the others are read
    except NothingReadError as error:
        problems = list(error.problems)
    kinds = {problem.kind for problem in problems}
    assert kind in kinds or (kind == "empty-file" and kinds == {"bad-json"})
    assert {problem.file for problem in problems} == {str(path)}


@pytest.mark.parametrize("name", LOGS)
def test_other_json_is_not_taken(name: str) -> None:
    sniff = reader_of(format_of(name)).sniff
    for head in (b"", b"[]", b"{}", b"[1]", b"null", b'"x"', b'{"history": []}', b'{"steps": []}', b"PK\x03\x04"):
        assert not sniff(head)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_file_without_a_trace_of_the_named_format_is_named(format_: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"neither": "this", "nor": "that"}\n')
    with pytest.raises(NothingReadError) as caught:
        read(file, format=format_)
    assert {problem.file for problem in caught.value.problems} == {str(file)}
