"""A table of CSV that is read while it is written: its last cell may be cut, and the row looks whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from credit.reports.corpus import survey
from graphs.logs import read

CELLS = "trace,group,reward\na,q,1\nb,q,1"


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_a_last_line_without_its_end_is_named(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_bytes((CELLS + end).encode())
    traces = read(tmp_path / "t.csv")
    wanted = [] if end else [("unfinished-line", 3, False)]
    assert [(problem.kind, problem.line, problem.is_failure) for problem in traces.problems] == wanted
    assert traces.traces["trace"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("about", ["reward", "group"])
def test_so_is_that_of_a_table_beside_the_log(tmp_path: Path, about: str) -> None:
    (tmp_path / "t.csv").write_text(CELLS + "\n")
    (tmp_path / "beside.csv").write_text(f"trace,{about}\na,2\nb,3")
    traces = read(tmp_path / "t.csv", **{f"{about}s": tmp_path / "beside.csv"})
    assert [(p.kind, p.line, p.about, p.is_failure) for p in traces.problems] == [("unfinished-line", 3, about, False)]


def test_json_tells_itself_whether_it_is_cut(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"trace": "a", "reward": 1}\n{"trace": "b", "reward": 10}')
    assert not read(tmp_path / "t.jsonl").problems
    (tmp_path / "t.jsonl").write_text('{"trace": "a", "reward": 1}\n{"trace": "b", "reward": 1')
    assert any(problem.is_failure for problem in read(tmp_path / "t.jsonl").problems)


def test_columns_of_a_table_of_rewards_that_nothing_reads_are_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CELLS + "\n")
    (tmp_path / "r.csv").write_text("trace,reward,group,judge\na,2,q,.5\nb,3,q,.1\n")
    (problem,) = read(tmp_path / "t.csv", rewards=tmp_path / "r.csv", groups=tmp_path / "r.csv").problems[:1]
    assert (problem.kind, problem.value, problem.is_failure) == ("unread-columns", "'judge'", False)
    assert "`rewards.NAME`" in problem.expected
    (tmp_path / "r.csv").write_text("trace,reward,rewards.judge\na,2,.5\nb,3,.1\n")  # as the message says
    read_both = read(tmp_path / "t.csv", rewards=tmp_path / "r.csv")
    assert not read_both.problems and set(survey(read_both).reward_channels) == {"judge", "team"}


def test_a_row_without_the_agent_that_others_have_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("trace,group,agent,reward\na,q,x,1\na,q,,1\na,q,,1\nb,q,,0\n")
    found = read(tmp_path / "t.csv")
    (problem,) = found.problems  # the only agent of a trace needs no name
    assert (problem.kind, problem.line, problem.trace, problem.is_failure) == ("unnamed-agent", 3, "a", False)
    assert found.agents["agent"].to_pylist() == ["x", "agent", "agent"]
