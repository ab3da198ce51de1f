"""A table that was appended to itself is named: its rewards count twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.logs import read

ROWS = '{"trace": "a", "group": "q", "reward": 1, "event_reward": 0.1}\n{"trace": "b", "group": "q", "reward": 0}\n'
CELLS = "a,q,1\nb,q,0\n"
HEADER = "trace,group,reward\n"


@pytest.mark.parametrize(
    "name, text",
    [
        ("t.jsonl", ROWS + ROWS),
        ("t.jsonl", (ROWS + ROWS).strip()),
        ("t.jsonl", (ROWS + ROWS).replace("\n", "\r\n")),
        ("t.csv", HEADER + CELLS + CELLS),
    ],
)
def test_a_table_that_stands_twice_is_named_and_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    traces = read(tmp_path / name)
    (problem,) = traces.problems
    assert (problem.kind, problem.value) == ("repeated-rows", "2 rows, and the same again")
    assert not problem.is_failure
    assert len(traces.events) == 4


@pytest.mark.parametrize("text", [ROWS, ROWS.splitlines()[0] + "\n" + ROWS, ROWS.splitlines()[0] + "\n"])
def test_other_tables_are_not(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    assert not read(tmp_path / "t.jsonl").problems


@pytest.mark.parametrize(
    "text", [(HEADER + CELLS) * 2, ((HEADER + CELLS) * 2).replace("\n", "\r\n"), (HEADER + CELLS) * 2 + "\n"]
)
def test_a_table_joined_to_itself_with_its_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    traces = read(tmp_path / "t.csv")
    header, rows = traces.problems
    assert (header.kind, header.line, header.value) == ("repeated-header", 4, "the header again")
    assert (rows.kind, rows.value) == ("repeated-rows", "2 rows, and the same again")
    assert not header.is_failure and not rows.is_failure
    assert traces.traces["trace"].to_pylist() == ["a", "b"] and traces.sizes.events == 4


def test_two_tables_joined_with_their_headers_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + CELLS + HEADER + "c,q,0.5\n")
    traces = read(tmp_path / "t.csv")
    assert [(problem.kind, problem.line) for problem in traces.problems] == [("repeated-header", 4)]
    assert traces.traces["trace"].to_pylist() == ["a", "b", "c"] and traces.reward[:3].tolist() == [1, 0, 0.5]


def test_a_row_that_shares_names_with_the_header_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + CELLS + "trace,group,1\n")
    traces = read(tmp_path / "t.csv")
    assert not traces.problems and traces.traces["trace"].to_pylist() == ["a", "b", "trace"]
    (tmp_path / "t.jsonl").write_text('{"trace": "trace", "reward": "reward"}\n' + ROWS)
    assert [problem.kind for problem in read(tmp_path / "t.jsonl").problems] == ["bad-type"]
