"""Files that hold two sessions, and files that lack lines: both were read as one whole session."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from graphs.errors import Problem
from graphs.traces.record import TraceRecord

from .logs import SESSION, Line, Log, files, inline, items, only, text


def session(name: str, **more: Any) -> list[Line]:
    log = Log()
    log.human("go", sessionId=name)
    log.reply(f"{name}-call", text(), sessionId=name)
    for line in log.lines:
        line["uuid"] = f"{name}-{line['uuid']}"
        line["parentUuid"] = line["parentUuid"] and f"{name}-{line['parentUuid']}"
    log.lines[0] |= more
    return log.lines


def write(path: Path, *sessions: list[Line]) -> Path:
    log = Log()
    log.lines = list(itertools.chain(*sessions))
    return log.write(path)


def found(*files: Path) -> list[tuple[str, str]]:
    made = items(*files)
    return [("", one.trace_id) if isinstance(one, TraceRecord) else (one.kind, one.trace) for one in made]


def test_two_sessions_in_one_file_are_refused(tmp_path: Path) -> None:
    """They were one trace, named as the first."""
    both = write(tmp_path / "all.jsonl", session("A"), session("B"))
    (problem,) = items(both)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.line, problem.field) == ("several-sessions", 3, "sessionId")
    assert "'B'" in problem.value and "'A'" in problem.value


def test_a_session_that_stands_in_the_file_of_another_counts_once(tmp_path: Path) -> None:
    files = write(tmp_path / "A.jsonl", session("A"), session("B")), write(tmp_path / "B.jsonl", session("B"))
    assert found(*files) == [("several-sessions", "A"), ("", "B")]


def test_sessions_that_hang_together_are_one(tmp_path: Path) -> None:
    joins: list[Line] = [
        {"parentUuid": "A-u1-None"},
        {"logicalParentUuid": "A-u1-None"},
        {"isCompactSummary": True},
    ]
    for join in joins:
        assert found(write(tmp_path / "B.jsonl", session("A"), session("B", **join))) == [("", "B")]
    third = session("C", parentUuid="B-u1-None")
    assert found(write(tmp_path / "C.jsonl", session("A"), session("B", **joins[0]), third)) == [("", "C")]


def test_a_session_after_a_compaction_of_lines_that_are_not_at_hand_is_refused(tmp_path: Path) -> None:
    """They were one trace: whatever a boundary named, it was taken for a line of the session before."""
    boundary = {"logicalParentUuid": "zz"}
    assert found(write(tmp_path / "B.jsonl", session("B", **boundary))) == [("", "B")]
    assert found(write(tmp_path / "B.jsonl", session("A"), session("B", **boundary))) == [("several-sessions", "B")]


def test_messages_without_uuid_of_another_session_are_refused(tmp_path: Path) -> None:
    """Nothing looked at them: they were of the first session."""
    bare = session("B")
    for line in bare:
        del line["uuid"], line["parentUuid"]
    assert found(write(tmp_path / "A.jsonl", session("A"), bare)) == [("several-sessions", "A")]
    (last,) = bare[1:]
    last["parentUuid"] = "A-u1-None"
    assert found(write(tmp_path / "A.jsonl", session("A"), [last])) == [("", "A")]


def test_a_subagents_file_with_two_agents_is_refused(tmp_path: Path) -> None:
    """All messages were the first agent's."""
    main, child = files(tmp_path)
    other = Log(agent="a8")
    other.human("look again")
    child.write_text(child.read_text() + other.write(tmp_path / "other").read_text())
    (problem,) = items(main, child)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.trace, problem.file) == ("several-agents", SESSION, str(child))
    assert (problem.line, problem.field, problem.value) == (5, "agentId", "'a8'")
    assert problem.expected == "'a7', as in line 1: one agent a file"


def test_a_subagents_file_with_two_sessions_is_refused(tmp_path: Path) -> None:
    """Messages of the other session were the agent's."""
    main, child = files(tmp_path)
    child.write_text(child.read_text() + write(tmp_path / "other", session("B")).read_text())
    (problem,) = items(main, child)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.trace, problem.file) == ("several-sessions", SESSION, str(child))
    assert (problem.line, problem.field) == (5, "sessionId")


def test_a_file_without_its_first_lines_is_named(tmp_path: Path) -> None:
    log = inline()
    whole = only(log.write(tmp_path / "x.jsonl"))
    log.lines = log.lines[1:]
    record, problem = items(log.write(tmp_path / "x.jsonl"))
    assert isinstance(record, TraceRecord) and len(record.ids) == len(whole.ids) - 1
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.line, problem.field) == ("missing-parent", 1, "parentUuid")


def test_a_line_that_is_missing_within_is_named(tmp_path: Path) -> None:
    first, middle, last = *session("A"), session("B", parentUuid="A-u1-None", sessionId="A")[0]
    assert found(write(tmp_path / "A.jsonl", [first, middle, last])) == [("", "A")]
    assert found(write(tmp_path / "A.jsonl", [first, last])) == [("", "A"), ("missing-parent", "A")]


def test_a_session_that_repeats_calls_under_a_new_id_is_named(tmp_path: Path) -> None:
    """A session that was resumed or forked into a new file counted the calls of the first one again, without a word."""
    resumed = session("B")
    for line in resumed:
        if line["type"] == "assistant":
            line["message"]["id"] = "A-call"
    files = write(tmp_path / "A.jsonl", session("A")), write(tmp_path / "B.jsonl", resumed)
    assert found(*files) == [("", "A"), ("", "B"), ("repeated-messages", "B")]
    assert found(files[0], write(tmp_path / "C.jsonl", session("C"))) == [("", "A"), ("", "C")]
