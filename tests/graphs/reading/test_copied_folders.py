"""A copy of a whole folder counts once, whatever its format: a backup, a folder in a folder, an unpacked download."""

from __future__ import annotations

import collections
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from graphs.errors import NothingReadError, Problem
from graphs.logs import read
from graphs.traces.batch import Traces

from .samples import RECORDINGS, SAMPLES

LOGS = {path.name: path for path in sorted(RECORDINGS.iterdir()) if path.suffix not in (".py", ".mjs")}
LOGS.pop("__pycache__", None)
COPIES = {"beside": "b/{}", "within": "a/{}/backup", "renamed": "a/{} copy"}
FILES = [(name, file.relative_to(path).as_posix()) for name, path in LOGS.items() if path.is_dir()
         for file in sorted(path.rglob("*.json*"))]  # fmt: skip
SESSION = RECORDINGS / "claude_code"


def put(log: Path, folder: Path) -> Path:
    if log.is_dir():
        shutil.copytree(log, folder)
    else:
        folder.mkdir(parents=True)
        shutil.copy(log, folder)
    return folder


def failures(problems: Iterable[Problem]) -> dict[str, int]:
    return dict(collections.Counter(problem.kind for problem in problems if problem.is_failure))


def numbers(traces: Traces) -> tuple[object, ...]:
    groups = collections.Counter(traces.traces["group"].to_pylist())
    return traces.sizes, sorted(groups.values()), sorted(map(str, traces.reward.tolist()))


def notes(traces: Traces) -> dict[str, int]:
    kinds = collections.Counter(problem.kind for problem in traces.problems)
    del kinds["repeated-run"]
    return dict(kinds)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("place", COPIES)
@pytest.mark.parametrize("name", LOGS)
def test_a_copied_folder_changes_nothing_but_a_note(tmp_path: Path, name: str, place: str) -> None:
    """Sub-agents of a copied session were of no call, and rows without ids counted twice."""
    put(LOGS[name], tmp_path / "a" / name)
    alone = read(tmp_path)
    put(LOGS[name], tmp_path / COPIES[place].format(name))
    both = read(tmp_path)
    assert numbers(both) == numbers(alone) and notes(both) == notes(alone)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_copied_folder_with_a_file_cut_is_named_or_changes_nothing(tmp_path: Path, name: str, file: str) -> None:
    put(LOGS[name], tmp_path / "b" / name)
    alone = read(tmp_path)
    for place in "ac":
        copied = put(LOGS[name], tmp_path / place / name) / file
        text = copied.read_bytes()
        for cut in (text[: text.rstrip().rfind(b"\n") + 1], text[: len(text) * 2 // 3]):
            copied.write_bytes(cut)
            try:
                both = read(tmp_path)
            except NothingReadError as error:
                assert failures(error.problems)
            else:
                assert failures(both.problems) or numbers(both) == numbers(alone)
        shutil.rmtree(tmp_path / place)


def test_a_session_copied_without_its_agents_has_those_of_the_other(tmp_path: Path) -> None:
    put(SESSION, tmp_path / "a")
    put(SESSION, tmp_path / "b")
    alone = read(tmp_path / "a")
    (log,) = (tmp_path / "a").glob("*.jsonl")
    (tmp_path / "c").mkdir()
    shutil.copy(log, tmp_path / "c")
    both = read(tmp_path)
    assert numbers(both) == numbers(alone) and not failures(both.problems)


def test_a_sub_agents_file_under_a_further_name_counts_once(tmp_path: Path) -> None:
    put(SESSION, tmp_path / "a")
    alone = read(tmp_path)
    first = next((tmp_path / "a").rglob("agent-*.jsonl"))
    shutil.copy(first, first.with_name(f"{first.stem} copy.jsonl"))
    first.with_name(f"{first.stem} part.jsonl").write_bytes(first.read_bytes()[:-20])
    both = read(tmp_path)
    assert numbers(both) == numbers(alone)
    assert [(problem.kind, problem.is_failure) for problem in both.problems] == [("repeated-run", False)] * 2


def test_an_earlier_copy_of_a_growing_run_leaves_it_one_run(tmp_path: Path) -> None:
    """Rows of two folders are of two systems, and the steps that were copied would be those of the other folder."""
    run, backup = tmp_path / "run", tmp_path / "backup"
    for step in range(3):
        row = {"input": f"q{step}", "output": "a", "score": float(step), "step": step}
        run.mkdir(exist_ok=True)
        (run / f"{step}.jsonl").write_text("".join(json.dumps(row | {"output": o * 99}) + "\n" for o in "ab"))
    alone = read(run)
    shutil.copytree(run, backup)
    (backup / "2.jsonl").unlink()
    text = (backup / "1.jsonl").read_text()
    (backup / "1.jsonl").write_text(text[: text.find("\n") + 1])
    both = read(tmp_path)
    assert numbers(both) == numbers(alone)
    assert set(both.traces["system"].to_pylist()) == {"verl"}
    assert sorted((p.kind, Path(p.file).name) for p in both.problems) == [
        ("repeated-run", "0.jsonl"),
        ("repeated-run", "1.jsonl"),
    ]


def test_equal_rows_of_two_runs_count_each_where_their_files_differ(tmp_path: Path) -> None:
    row = SAMPLES["rollouts of verl"].values[0]
    for run in "ab":
        (tmp_path / run).mkdir()
        rows = [row, row | {"output": f"of {run}"}]
        (tmp_path / run / "1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    traces = read(tmp_path)
    assert traces.sizes.traces == 4 and traces.problems == ()


@pytest.mark.parametrize("harness", ["codex", "cline", "opencode", "gemini_cli"])
def test_what_a_trace_lacks_is_said_once_for_all_its_copies(tmp_path: Path, harness: str) -> None:
    """A sub-agent that is not among the files was counted once a copy of its lead."""
    put(RECORDINGS / harness, tmp_path / "a")
    for log in sorted((tmp_path / "a").rglob("*.json*")):
        text = log.read_bytes()
        log.unlink()
        alone = read(tmp_path)
        if notes(alone).get("missing-subagent"):
            break
        log.write_bytes(text)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    both = read(tmp_path)
    assert notes(both) == notes(alone) and notes(alone)["missing-subagent"]


@pytest.mark.parametrize("name", ["codex", "codex_session.jsonl", "claude_code", "copilot_cli", "gemini_cli"])
def test_an_older_backup_of_a_session_gives_way_to_the_fuller_one(tmp_path: Path, name: str) -> None:
    """Both were refused: one id with two contents."""
    put(LOGS[name], tmp_path / "b" / name)
    alone = read(tmp_path)
    older = put(LOGS[name], tmp_path / "a" / name)
    session = max((file for file in older.rglob("*.jsonl") if file.parent.name != "subagents"), key=_size)
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join(lines[: len(lines) // 2]))
    both = read(tmp_path)
    assert numbers(both) == numbers(alone) and notes(both) == notes(alone)
    assert str(session) in {problem.file for problem in both.problems if problem.kind == "repeated-run"}


def _size(file: Path) -> int:
    return file.stat().st_size


def test_a_label_of_a_trace_that_no_copy_gave_is_named(tmp_path: Path) -> None:
    """Two contents of one id, of which neither is read: the row of the outcome for it matched, without a word."""
    for name in "ab":
        events = [{"id": name, "type": "message", "agent": f"of {name}"}]
        lines = [{"trace_id": trace, "task_id": "q", "events": events} for trace in ("x", name)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    traces = read(tmp_path, rewards={"x": 1.0, "a": 0.5})
    assert traces.traces["trace"].to_pylist() == ["a", "b"]
    assert [problem.kind for problem in traces.problems] == ["duplicate-trace"] * 2 + ["unread-outcome"]
    assert (traces.problems[-1].trace, traces.problems[-1].value) == ("x", "1.0")


@pytest.mark.parametrize(
    "name",
    ["braintrust_spans.jsonl", "langsmith_team.jsonl", "openai_agents_team.jsonl", "agent_lightning_spans.jsonl"],
)
def test_spans_that_stand_twice_count_once_and_are_counted(tmp_path: Path, name: str) -> None:
    """They were left out without a word."""
    log = put(LOGS[name], tmp_path / "a") / name
    alone = read(log)
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines, lines[len(lines) // 2]]))
    twice = read(log)
    assert numbers(twice) == numbers(alone)
    assert [p.value for p in twice.problems if p.kind == "repeated-run"] == ["'1 again, with equal content'"]
