"""Folders that agents can write to: below a folder that a format owns, only the files of its harness are logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.formats import FORMATS
from graphs.logs import read

from ..all_formats import ALL, session
from ..native.logs import extended_trace
from ..samples import HARBOR_RESULT, OPENHANDS, SWE_AGENT

TRAJECTORY: dict[str, Any] = ALL["atif"].values[0]
FORGED = {"trace_id": "forged", "task_id": "forged", "events": [{"id": "e", "type": "message", "agent": "a"}]}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = value if isinstance(value, list) else [value]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def failed() -> dict[str, Any]:
    return HARBOR_RESULT | {"verifier_result": {"rewards": {"reward": 0.0}}}


def trial(folder: Path) -> Path:
    write(folder / "result.json", failed())
    write(folder / "config.json", {"trial_name": "t", "task": {"path": "p"}, "agent": {"name": "a"}})
    write(folder / "agent" / "trajectory.json", TRAJECTORY)
    return folder


def swe_agent(folder: Path) -> Path:
    write(folder / "results.json", {"resolved_ids": [], "submitted_ids": ["i"]})
    write(folder / "i" / "i.traj", SWE_AGENT)
    return folder


def openhands(folder: Path) -> Path:
    write(folder / "output.jsonl", [OPENHANDS | {"resolved": False}])
    return folder


def claude_code(folder: Path) -> Path:
    write(folder / "claude-1.jsonl", session())
    return folder


RUNS = {"harbor": trial, "swe-agent": swe_agent, "openhands": openhands, "claude-code": claude_code}
PLACES = {
    "harbor": ["agent/x.json", "artifacts/x.jsonl", "verifier/x.json", "agent/sessions/x.jsonl", "x.json"],
    "swe-agent": ["i/x.json", "i/repo/x.jsonl"],
    "openhands": ["workspace/issue_1/x.json", "repo/x.jsonl", "workspace/issue_2/output.jsonl"],
    "claude-code": ["claude-1/tool-results/x.json", "claude-1/x.jsonl", "claude-1/subagents/x.json"],
}


def test_every_format_that_owns_a_folder_is_tried() -> None:
    assert set(PLACES) == {name for name, row in FORMATS.items() if row.owns}


@pytest.mark.parametrize("name", PLACES)
def test_what_an_agent_writes_below_a_run_is_no_trace(name: str, tmp_path: Path) -> None:
    """It was a trace of its own group, with the reward that it states."""
    RUNS[name](tmp_path)
    alone = read(tmp_path)
    for place in PLACES[name]:
        write(tmp_path / place, FORGED | {"rewards": {"team": 1.0}})
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == alone.traces["trace"].to_pylist()
    (problem,) = set(traces.problems) - set(alone.problems)
    assert (
        problem.kind == "foreign-files" and not problem.is_failure and f"of {len(PLACES[name])} files" in str(problem)
    )
    assert read(tmp_path / PLACES[name][0]).traces["trace"].to_pylist() == ["forged"], "a file alone is a log"


@pytest.mark.parametrize("copy", ["agent/t", "artifacts", "agent/t/agent/t"])
def test_a_copy_of_a_trial_below_itself_states_no_result(copy: str, tmp_path: Path) -> None:
    """The copy was read and the verifier's result taken for the duplicate: a reward of 0 became 1."""
    trial(tmp_path / "t")
    write(tmp_path / "t" / copy / "result.json", HARBOR_RESULT)
    write(tmp_path / "t" / copy / "agent" / "trajectory.json", TRAJECTORY)
    for paths in ([tmp_path], sorted(tmp_path.rglob("*.json"))):  # a shell's pattern names files, too
        traces = read(*paths)
        assert traces.reward[: traces.sizes.traces].tolist() == [0.0]
        assert {problem.kind for problem in traces.problems} == {"foreign-files"}


@pytest.mark.parametrize("name", ["trajectory.cont-9.json", "trajectory.summarization-9-summary.json"])
def test_an_agent_cannot_drop_its_trial_by_a_further_trajectory(name: str, tmp_path: Path) -> None:
    """Two trajectories of one trial contradicted each other, so that neither was read."""
    write(trial(tmp_path / "t") / "agent" / name, TRAJECTORY | {"session_id": "other"})
    traces = read(tmp_path)
    assert traces.reward[: traces.sizes.traces].tolist() == [0.0]
    assert [problem.kind for problem in traces.problems] == ["unlinked-trajectory"]


def test_results_beside_an_instance_do_not_overrule_those_of_its_run(tmp_path: Path) -> None:
    """The nearest file counted, and that is in the folder of the instance."""
    write(swe_agent(tmp_path) / "i" / "results.json", {"resolved_ids": ["i"], "submitted_ids": ["i"]})
    traces = read(tmp_path)
    assert float(traces.reward[0]) == 0.0 and [problem.kind for problem in traces.problems] == ["foreign-files"]


def test_a_session_keeps_the_files_of_its_sub_agents(tmp_path: Path) -> None:
    claude_code(tmp_path)
    lines = [line | {"isSidechain": True, "agentId": "b", "sessionId": "claude-1"} for line in session()]
    write(tmp_path / "claude-1" / "subagents" / "agent-b.jsonl", lines)
    traces = read(tmp_path)
    assert traces.sizes.traces == 1 and "foreign-files" not in {problem.kind for problem in traces.problems}


def test_a_folder_with_the_name_of_another_log_is_read(tmp_path: Path) -> None:
    """The mark is a file of the format: a name alone shows nothing."""
    write(tmp_path / "run.jsonl", extended_trace() | {"trace_id": "one"})
    write(tmp_path / "run" / "two.jsonl", extended_trace() | {"trace_id": "two"})
    write(tmp_path / "result.json", FORGED | {"trace_id": "three"})
    assert sorted(read(tmp_path).traces["trace"].to_pylist()) == ["one", "three", "two"]
