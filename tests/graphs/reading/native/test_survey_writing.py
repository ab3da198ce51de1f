"""`credit convert --to survey`: what the survey's own schema and validator accept, from any format."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from credit.cli import cli
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.writers import otlp, survey

from .logs import SURVEY, extended_trace

EXTRA = ("schema_version", "agents", "evidence", "model")


def test_an_extended_trace_becomes_one_of_the_survey(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(extended_trace()))
    traces = read(tmp_path / "in.json")
    (path,) = survey.write(traces, tmp_path / "out")
    document = json.loads(path.read_text())
    SURVEY.validate(document)
    assert not set(EXTRA) & set(document)
    assert "stop" not in [event["type"] for event in document["events"]]
    assert [event["t"] for event in document["events"]] == list(range(len(document["events"])))  # some have no time
    again = read(path)
    assert again.problems == ()
    assert again.events["event"].to_pylist() == traces.events["event"].to_pylist()
    assert float(again.reward[0]) == float(traces.reward[0])
    stated = {f"evidence.{name}": amount for name, amount in extended_trace()["evidence"].items()}
    assert stated and stated.items() <= document["metrics"].items()
    assert survey.left_out(traces) == {"agents": 1}


def test_costs_that_the_log_does_not_state_are_said_to_be_unstated(tmp_path: Path) -> None:
    event = {"id": "e", "type": "message", "agent": "a"}
    trace = {"trace_id": "t", "task_id": "q", "events": [event], "edges": [], "rewards": {"team": 1}}
    log = tmp_path / "in.jsonl"
    log.write_text(json.dumps(trace) + "\n" + json.dumps(trace | {"trace_id": "u", "events": [
        event | {"t": 2, "tokens": 5}, event | {"id": "f", "t": 4.5, "tokens": 6}]}) + "\n")  # fmt: skip
    first, second = (json.loads(path.read_text()) for path in survey.write(read(log), tmp_path / "out"))
    for document in (first, second):
        SURVEY.validate(document)
    assert first["costs"] == {"tokens": 0, "wall_clock_s": 0}
    assert first["metrics"] == {"tokens_unstated": 1, "wall_clock_s_unstated": 1}
    assert second["costs"] == {"tokens": 11, "wall_clock_s": 2.5} and "metrics" not in second


@pytest.mark.parametrize(
    ("more", "metrics"),
    [([{"tokens": 6}], {}), ([{}], {}), ([{"tokens": 6}], {"lost_parts": 1}), ([{"tokens": 6}], {"unlogged_calls": 1})],
)
def test_tokens_of_some_actions_are_no_cost_of_the_trace(
    more: list[dict[str, Any]], metrics: dict[str, int], tmp_path: Path
) -> None:
    """The sum over those that have a count was written as that of the trace, and a simulated user's were in it."""
    event = {"id": "e", "t": 0, "type": "message", "agent": "a", "tokens": 5}
    events = [
        event,
        *({"id": f"f{i}", "t": i + 1, "type": "message", "agent": "a"} | one for i, one in enumerate(more)),
    ]
    user = {"id": "u", "t": 9, "type": "message", "agent": "user", "tokens": 100, "action": False}
    trace = {"trace_id": "t", "task_id": "q", "events": [*events, user], "edges": [], "rewards": {"team": 1}}
    log = tmp_path / "in.jsonl"
    log.write_text(json.dumps(trace | {"metrics": metrics}) + "\n")
    (path,) = survey.write(read(log), tmp_path / "out")
    document = json.loads(path.read_text())
    whole = more == [{"tokens": 6}] and not metrics
    assert document["costs"]["tokens"] == (11 if whole else 0)
    assert ("tokens_unstated" in document.get("metrics", {})) == (not whole)


@pytest.mark.study
def test_the_demo_is_accepted(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(cli, ["demo", "-o", str(tmp_path / "demo")]).exit_code == 0
    result = runner.invoke(
        cli, ["convert", str(tmp_path / "demo" / "traces.jsonl"), "--to", "survey", "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    paths = sorted((tmp_path / "out").glob("*.json"))
    assert paths
    for path in paths:
        SURVEY.validate(json.loads(path.read_text()))
    again = runner.invoke(
        cli, ["convert", str(tmp_path / "demo" / "traces.jsonl"), "--to", "survey", "-o", str(tmp_path / "out")]
    )
    assert again.exit_code != 0 and "new folder" in again.output


@pytest.mark.parametrize("key", ["stop", "t"])
def test_the_check_can_fail(key: str) -> None:
    document = extended_trace()
    with pytest.raises(jsonschema.ValidationError):
        SURVEY.validate(document)


@pytest.mark.parametrize("write", [survey.write, otlp.write])
def test_a_folder_of_logs_is_written_whole_or_not_at_all(
    write: Callable[[Traces, Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.json").write_text(json.dumps(extended_trace()))
    traces = read(tmp_path / "in.json")
    sync, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == last:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "new" / "folder", tmp_path / "there"):
        calls.clear()
        last = 1
        with pytest.raises(OSError, match=rf"'{re.escape(str(folder))}/\w+\.jsonl?'$"):
            write(traces, folder)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in.json", "there"]
    last = -1
    write(traces, tmp_path / "there")
    assert read(tmp_path / "there").sizes == traces.sizes
