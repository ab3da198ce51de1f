"""A file is told by its content although blanks or a long value stand first, and none of its files is lost for it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces

from ..all_formats import ALL

LONG = {"aa_note": "y" * 70_000}  # longer than the head by which a format is told
BY_NAME = {"codex before payloads"}  # told by few keys of a line that holds no others


def behind_a_long_value(values: Any) -> Any:
    """The same records, the first with a long value before all others."""
    if isinstance(values, dict):
        return LONG | values
    return [behind_a_long_value(values[0]), *values[1:]] if isinstance(values, list) and values else values


def content(path: Path, **options: Any) -> tuple[list[str], list[str], list[str]] | NothingReadError:
    try:
        traces = read(path, **options)
    except NothingReadError as error:
        return error
    names = traces.traces["trace"].to_pylist()
    return names, traces.traces["format"].to_pylist(), [problem.kind for problem in traces.problems]


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", ALL)
def test_a_format_is_told_behind_blanks_and_behind_a_long_value(tmp_path: Path, name: str) -> None:
    """It was `unknown-format`, and "content is empty" behind blanks, which is false."""
    sample = ALL[name]
    path = sample.write(tmp_path)
    plain = content(path)
    path.write_text(" " * 70_000 + sample.text)
    assert str(content(path)).replace(f"{path}:1:", f"{path}:") == str(plain).replace(f"{path}:1:", f"{path}:")
    values = behind_a_long_value(sample.values if sample.lines else sample.values[0])
    for indent in (None,) if sample.lines else (None, 1):
        text = "".join(json.dumps(one) + "\n" for one in values) if sample.lines else json.dumps(values, indent=indent)
        path.write_text(text)
        found = content(path)
        if name in BY_NAME:
            assert isinstance(found, NothingReadError) and "`--format NAME`" in str(found)
        elif isinstance(plain, NothingReadError):
            assert isinstance(found, NothingReadError)
            assert [problem.kind for problem in found.problems] == [problem.kind for problem in plain.problems]
        else:
            assert found == plain


def test_a_list_longer_than_what_is_looked_at_is_told_by_its_first_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An indented list of episodes whose tokens fill the head was refused from 16 MB on."""
    monkeypatch.setattr("graphs.logs.found_logs.FURTHER", 1 << 18)
    numbers = {"aa_numbers": list(range(10_000))}  # no long string, which would be left out
    path, episode = tmp_path / "a.json", ALL["verifiers"].values[0]
    path.write_text(json.dumps([numbers | episode | {"id": name} for name in "abc"], indent=4))
    assert path.stat().st_size > 1 << 18
    assert content(path) == (["a", "b", "c"], ["verifiers"] * 3, [])


TRAJECTORY = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "lead"},
    "steps": [{"step_id": 1, "source": "agent", "message": "x"}],
}
RESULT = {
    "task_name": "hello",
    "trial_name": "hello__a",
    "agent_info": {"name": "t"},
    "verifier_result": {"rewards": {"reward": 1.0}},
}


@pytest.mark.parametrize("blanks", [True, False])
@pytest.mark.parametrize("long", ["result", "trajectory"])
def test_a_harbor_trial_keeps_a_file_that_begins_with_much_else(tmp_path: Path, long: str, blanks: bool) -> None:
    """The trial was said to have no trajectory, and the exit code was 0."""
    trial = tmp_path / "hello__a"
    (trial / "agent").mkdir(parents=True)
    for name, path, value in (
        ("result", trial / "result.json", RESULT), ("trajectory", trial / "agent" / "trajectory.json", TRAJECTORY)
    ):  # fmt: skip
        first = " " * 70_000 if name == long and blanks else ""
        path.write_text(first + json.dumps(LONG | value if name == long and not blanks else value))
    traces = read(tmp_path)
    assert traces.problems == ()
    assert traces.traces["trace"].to_pylist() == ["hello__a"] and traces.reward[0] == 1.0


SWE_AGENT = ALL["swe-agent"].values[0]


def outcomes(traces: Traces) -> dict[str, float]:
    return dict(zip(traces.traces["trace"].to_pylist(), traces.reward[: len(traces.traces)].tolist(), strict=True))


def test_a_swe_agent_folder_keeps_files_that_begin_with_much_else(tmp_path: Path) -> None:
    """A trajectory was taken for predictions, and predictions that hold the word for a trajectory."""
    (tmp_path / "a.traj").write_text(json.dumps(LONG | SWE_AGENT))
    (tmp_path / "b.traj").write_text(json.dumps(SWE_AGENT))
    (tmp_path / "results.json").write_text(json.dumps({"log": LONG, "resolved": ["a"], "generated": ["a", "b"]}))
    predictions = {"a": {"model_patch": "x", "model_name_or_path": "trajectory", "instance_id": "a"}}
    (tmp_path / "preds.json").write_text(json.dumps(predictions))
    traces = read(tmp_path)
    assert traces.problems == () and outcomes(traces) == {"a": 1.0, "b": 0.0}
    assert traces.traces["model"].to_pylist() == ["trajectory", None]


@pytest.mark.parametrize("name", ["swe-agent", "native", "otlp of gen_ai", "spans of strands"])
def test_standard_input_is_kept_until_it_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader may look at it, forget it as it forgets files, and find it again."""
    text = (" " * 70_000 + ALL[name].text).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert read("-").sizes.traces >= 1
