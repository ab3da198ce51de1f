"""A copy of a log under another name is a problem, and is not read: its traces would count twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from credit.cli import cli
from graphs.logs import copied_files, read
from graphs.logs.chunks import read_chunks

from .all_formats import ALL

JOINED_BY_PLACE = {"harbor", "claude-code", "swe-agent"}
EVENT = {"id": "e", "type": "message", "agent": "solver"}


def native(*traces: str) -> str:
    return "".join(
        json.dumps({"trace_id": trace, "task_id": "q", "events": [EVENT], "rewards": {"team": 1.0}}) + "\n"
        for trace in traces
    )


@pytest.mark.parametrize("name", [name for name, sample in ALL.items() if sample.format not in JOINED_BY_PLACE])
def test_a_copy_doubles_nothing(name: str, tmp_path: Path) -> None:
    path = ALL[name].write(tmp_path)
    alone = read(tmp_path)
    copy = path.with_name(f"{path.name.partition('.')[0]} (1){''.join(path.suffixes)}")  # it stands before the log
    copy.write_bytes(path.read_bytes())
    both = read(tmp_path)
    assert both.traces.equals(alone.traces) and both.events.equals(alone.events)
    (problem,) = set(both.problems) - set(alone.problems)
    assert (problem.kind, problem.file, problem.is_failure) == ("same-content", str(copy), True)
    assert repr(str(path)) in problem.value


def test_chunks_and_validate_name_it(tmp_path: Path) -> None:
    for name in ("run.jsonl", "run (1).jsonl", "run (2).jsonl"):
        (tmp_path / name).write_text(native("a", "b"))
    chunks = read_chunks(tmp_path, events=1)
    assert [chunk.traces["trace"].to_pylist() for chunk in chunks] == [["a", "b"]]
    assert chunks.files == [str(tmp_path / "run.jsonl")]
    assert [(problem.kind, Path(problem.file).name) for problem in chunks.problems] == [
        ("same-content", "run (1).jsonl"),
        ("same-content", "run (2).jsonl"),
    ]
    done = CliRunner().invoke(cli, ["validate", str(tmp_path), "--json"])
    assert done.exit_code == 3 and json.loads(done.output)["traces"] == 2 and "same-content" in done.output


def test_files_of_other_sizes_are_not_read_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_too: list[str] = []
    digest = copied_files._digest

    def noted(path: Path) -> bytes | None:
        read_too.append(path.name)
        return digest(path)

    monkeypatch.setattr(copied_files, "_digest", noted)
    for name, traces in {"1": "a", "2": "bc", "3": "d"}.items():
        (tmp_path / f"{name}.jsonl").write_text(native(*traces))
    assert read(tmp_path).traces.num_rows == 4
    assert read_too == ["1.jsonl", "3.jsonl"]


def test_instances_of_swe_agent_are_told_by_their_names(tmp_path: Path) -> None:
    for run in ("one", "two"):
        path = tmp_path / run / Path(ALL["swe-agent"].file).name
        path.parent.mkdir()
        path.write_text(ALL["swe-agent"].text)
        (path.parent / "results.json").write_text(json.dumps({"resolved": [path.stem], "generated": [path.stem]}))
    traces = read(tmp_path)
    assert traces.reward[:2].tolist() == [1.0, 1.0] and not traces.problems


def test_empty_files_are_no_copies(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(native("a"))
    for name in ("x.jsonl", "y.jsonl"):
        (tmp_path / name).write_text("")
    assert [problem.kind for problem in read(tmp_path).problems] == ["empty-file"] * 2
