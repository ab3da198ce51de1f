"""Sub-agents' files that no search found: what lies beside a session is checked as a search checks it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.traces.limits import Limits

from .logs import files


def kinds(traces: Traces) -> list[tuple[str, str]]:
    return [(problem.kind, Path(problem.file).name) for problem in traces.problems]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_out_of_the_folder_is_not_read(what: str, named: bool, tmp_path: Path) -> None:
    """Whether it is the file or a folder around it; the search reports it once where it meets it."""
    main, child = files(tmp_path / "runs")
    (tmp_path / "secret").mkdir()
    child.rename(tmp_path / "secret" / child.name)
    if what == "file":
        child.symlink_to(tmp_path / "secret" / child.name)
    else:
        child.parent.rmdir()
        child.parent.symlink_to(tmp_path / "secret", target_is_directory=True)
    traces = read(main if named else tmp_path / "runs")
    assert "k1" not in traces.events["event"].to_pylist()
    assert kinds(traces) == [("outside-link", "agent-a7.jsonl")]


@pytest.mark.parametrize("named", [True, False])
def test_what_is_no_file_is_not_opened(named: bool, tmp_path: Path) -> None:
    main, child = files(tmp_path)
    child.unlink()
    os.mkfifo(child)
    (child.parent / "agent-zero.jsonl").symlink_to("/dev/zero")
    (child.parent / "agent-gone.jsonl").symlink_to("nowhere.jsonl")
    traces = read(main if named else tmp_path)
    assert traces.traces.num_rows == 1
    assert kinds(traces) == [
        ("not-a-file", "agent-a7.jsonl"),
        ("broken-link", "agent-gone.jsonl"),
        ("not-a-file", "agent-zero.jsonl"),
    ]


def test_limits_hold_for_files_beside(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    child.write_bytes(child.read_bytes() + b"\n" * 5000)
    limits = Limits(file_bytes=5000)
    assert main.stat().st_size < 5000 < child.stat().st_size
    for path in (main, tmp_path):
        with pytest.raises(NothingReadError) as caught:
            read(path, limits=limits)
        assert [(problem.kind, problem.file) for problem in caught.value.problems] == [("too-large", str(child))]


def test_files_that_are_no_logs_by_name_are_passed_over(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    (child.parent / "agent-a8.jsonl.bak").write_text("no log")
    assert read(main).problems == ()


def test_a_file_among_the_sources_under_another_name_is_read_once(tmp_path: Path) -> None:
    main, child = files(tmp_path / "runs")
    alone = read(main).events.num_rows
    os.link(child, child.parent / "agent-a8.jsonl")
    (tmp_path / "way").symlink_to(tmp_path / "runs", target_is_directory=True)
    for paths in (
        (main,),
        (tmp_path / "way", main),
        (main, tmp_path / "way"),
        (main, tmp_path / "runs" / ".." / "runs"),
    ):
        traces = read(*paths)
        assert (traces.traces.num_rows, traces.events.num_rows) == (1, alone)
        assert {problem.kind for problem in traces.problems} == {"same-file"}


def refused(path: Path) -> list[tuple[str, str]]:
    with pytest.raises(NothingReadError) as caught:
        read(path)
    return [(problem.kind, Path(problem.file).name) for problem in caught.value.problems]


NATIVE = b'{"trace_id": "n", "task_id": "q", "events": [{"id": "e", "type": "message", "agent": "a"}]}'


@pytest.mark.parametrize("content", [b"hello", b"\xff\xfeh\0e\0", b"PK\x03\x04", NATIVE, b"[1, 2]"])
def test_a_file_of_no_sub_agent_refuses_its_session_once(content: bytes, tmp_path: Path) -> None:
    """The search called it a file of unknown format, or read it as another log, and the session read it, too."""
    main, child = files(tmp_path)
    child.write_bytes(content)
    problems = refused(tmp_path)
    assert refused(main) == problems and {file for _, file in problems} == {"agent-a7.jsonl"}
    assert [kind for kind, _ in problems[1:]] in ([], ["lost-row"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        b'{"type": "x", "note": "' + b"y" * 60_000 + b'"}\n',
        b'{"trace": "a", "reward": 1, "rater": "x", "note": "y", "type": "x"}\n',
    ],
)
def test_a_sub_agent_that_no_head_shows_is_read_without_a_word(before: bytes, tmp_path: Path) -> None:
    """It was read, and called a file of unknown format, or passed over as a table of this library."""
    main, child = files(tmp_path)
    alone = read(main).events.num_rows
    times = 1 if b"rater" in before else 300
    child.write_bytes(before * times + child.read_bytes())
    for path in (main, tmp_path):
        traces = read(path)
        assert (traces.events.num_rows, traces.problems, traces.ignored) == (alone, (), ())


def test_an_empty_file_of_a_sub_agent_is_named_once(tmp_path: Path) -> None:
    """A session that was named said nothing."""
    main, child = files(tmp_path)
    child.write_text("\n")
    for path in (main, tmp_path):
        traces = read(path)
        assert traces.traces.num_rows == 1 and kinds(traces) == [("empty-file", "agent-a7.jsonl")]


def test_a_file_at_such_a_place_without_a_session_is_a_log_of_its_own(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    main.unlink()
    child.write_bytes(NATIVE)
    assert read(tmp_path).traces["format"].to_pylist() == ["native"]
