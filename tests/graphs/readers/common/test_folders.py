"""Files that belong together by their folder, however the names of the folder are spelt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.readers import read
from graphs.traces.batch import Traces

from ..all_formats import ALL
from ..samples import HARBOR_RESULT, SWE_AGENT

SPELLINGS: dict[str, Callable[[Path], str]] = {
    "from here": str,
    "from the root": lambda path: str(Path.cwd() / path),
    "up and down": lambda path: f"logs/../{path}",
    "by a link": lambda path: str(path).replace("logs", "way", 1),
}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def both(monkeypatch: pytest.MonkeyPatch, folder: Path, one: Path, other: Path, spelling: str) -> list[Traces]:
    """What is read of two files, of which one's name is spelt in another way."""
    monkeypatch.chdir(folder)
    (folder / "way").symlink_to("logs", target_is_directory=True)
    first, second = (path.relative_to(folder) for path in (one, other))
    spell = SPELLINGS[spelling]
    return [read(spell(first), str(second)), read(str(first), spell(second))]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_trial_of_harbor_is_its_result_and_its_trajectory(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trajectory was read as one of its own, without its reward."""
    result = write(tmp_path / "logs" / "trial" / "result.json", HARBOR_RESULT)
    trajectory = write(tmp_path / "logs" / "trial" / "agent" / "trajectory.json", ALL["atif"].values[0])
    for traces in both(monkeypatch, tmp_path, result, trajectory, spelling):
        assert traces.traces["format"].to_pylist() == ["harbor"] and traces.problems == ()
        assert float(traces.reward[0]) == 1.0


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_results_of_swe_agent_are_those_of_the_folder_or_one_above(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trajectory was read without its outcome, and without a word."""
    results = write(tmp_path / "logs" / "results.json", {"resolved_ids": ["i"], "submitted_ids": ["i"]})
    trajectory = write(tmp_path / "logs" / "i" / "i.traj", SWE_AGENT)
    for traces in both(monkeypatch, tmp_path, results, trajectory, spelling):
        assert traces.problems == () and float(traces.reward[0]) == 1.0


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_runs_of_one_folder_are_compared(spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two spellings of it were two systems, whose traces are in two groups."""
    runs = [write(tmp_path / "logs" / f"{name}.traj", SWE_AGENT) for name in "ij"]
    for traces in both(monkeypatch, tmp_path, *runs, spelling):
        assert set(traces.traces["system"].to_pylist()) == {"swe-agent"}
    (tmp_path / "way").unlink()
    row = {"input": "q", "output": "a", "score": 1.0, "step": 1}
    rows = [write(tmp_path / "logs" / f"{name}.jsonl", row) for name in "ij"]
    for traces in both(monkeypatch, tmp_path, *rows, spelling):
        assert len(set(traces.traces["system"].to_pylist())) == 1


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_trajectory_that_is_named_by_its_file_is_found(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sub-agent did nothing, and was a trace of its own."""
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "c", "function_name": "f"}]}
    referred = {"source_call_id": "c", "subagent_trajectory_ref": [{"trajectory_path": "sub/two.json"}]}
    agent = {"schema_version": "ATIF-v1.6", "agent": {"name": "a", "version": "1"}}
    one = agent | {"session_id": "1", "steps": [step | {"observation": {"results": [referred]}}]}
    two = agent | {"session_id": "2", "steps": [{"step_id": 1, "source": "agent", "message": "x"}]}
    files = write(tmp_path / "logs" / "one.json", one), write(tmp_path / "logs" / "sub" / "two.json", two)
    for traces in both(monkeypatch, tmp_path, *files, spelling):
        assert traces.traces["trace"].to_pylist() == ["1"] and traces.problems == ()
