"""Threads of LangGraph that are not whole in one file: each was read as far as it went, without a word."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.readers import read

from ..samples import RECORDINGS

HISTORY = (RECORDINGS / "langgraph_history.jsonl").read_text().splitlines()  # the newest first
STREAM = (RECORDINGS / "langgraph_team.jsonl").read_text().splitlines()
UUID = re.compile(r"[0-9a-f]{8}(?=-[0-9a-f]{4}-)")
RESULTS = [number for number, line in enumerate(STREAM) if '"task_result"' in line]


def found(folder: Path, **files: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The traces of these files, and the kinds and traces of the problems."""
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    try:
        traces = read(folder)
    except NothingReadError as error:
        return [], [(problem.kind, problem.trace) for problem in error.problems]
    return traces.traces["trace"].to_pylist(), [(problem.kind, problem.trace) for problem in traces.problems]


@pytest.mark.parametrize("kept", [HISTORY[:3], [*HISTORY[:2], *HISTORY[3:]]])
def test_a_checkpoint_that_follows_none_of_the_log_refuses_its_thread(tmp_path: Path, kept: list[str]) -> None:
    assert found(tmp_path, run=kept) == ([], [("missing-parent", "run")])


def test_a_cut_thread_refuses_no_other_of_its_file(tmp_path: Path) -> None:
    other = [line.replace("run-1", "run-2").replace('id": "1f', 'id": "2f') for line in HISTORY]
    assert found(tmp_path, run=[*HISTORY[:3], *other]) == (["run/run-2"], [("missing-parent", "run/run-1")])


def test_a_thread_in_two_files_is_named_and_counts_never_twice(tmp_path: Path) -> None:
    newer, older = HISTORY[:3], HISTORY[3:]
    parted = [("missing-parent", "page1"), ("parted-thread", "page2")]
    assert found(tmp_path / "pages", page1=newer, page2=older) == ([], parted)
    assert found(tmp_path / "turned", page1=older, page2=newer) == (["page1"], [("missing-parent", "page2")])
    assert found(tmp_path / "exports", early=older, late=HISTORY) == (["early"], [("duplicate-id", "late")])


@pytest.mark.parametrize("at", [4, 9])
def test_a_stream_that_goes_on_in_another_file_is_refused(tmp_path: Path, at: int) -> None:
    files = {"run.1": STREAM[:at], "run": STREAM[at:]}
    assert found(tmp_path, **files) == (["run.1"], [("missing-parent", "run")])


def test_a_stream_without_its_first_lines_is_refused(tmp_path: Path) -> None:
    """Its first task was a trace by itself."""
    names, problems = found(tmp_path, run=STREAM[2:])
    assert names == [] and problems == [("missing-parent", "run/"), ("missing-parent", "run/run-1")]


@pytest.mark.parametrize("at", RESULTS)
def test_a_task_without_its_result_is_named(tmp_path: Path, at: int) -> None:
    assert found(tmp_path, run=STREAM[:at] + STREAM[at + 1 :]) == (["run"], [("unfinished-task", "run")])


def test_a_later_turn_of_a_thread_and_an_interrupted_task_are_no_fault(tmp_path: Path) -> None:
    turn = [UUID.sub(lambda match: match[0][::-1], line) for line in STREAM]
    pair = json.loads(turn[0])
    pair[1]["payload"]["parent_config"] = json.loads(STREAM[-1])[1]["payload"]["config"]
    turn[0] = json.dumps(pair)
    assert found(tmp_path / "files", run=STREAM, turn=turn) == (["run", "turn"], [])
    interrupted = [line for number, line in enumerate(STREAM) if number < RESULTS[-1]]
    assert found(tmp_path / "abandoned", run=[*interrupted, *turn])[1] == []
