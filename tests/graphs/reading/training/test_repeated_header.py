"""Tables that were joined with their headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

ROWS = '{"trace": "a", "group": "q", "reward": 1, "tokens": 5}\n{"trace": "b", "group": "q", "reward": 0}\n'
CELLS = "a,q,1\nb,q,0\n"
HEADER = "trace,group,reward\n"


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
    assert [problem.kind for problem in read(tmp_path / "t.jsonl").problems] == ["bad-type", "some-without-group"]


def test_equal_rows_without_an_id_are_two_events(tmp_path: Path) -> None:
    """A table of JSON lines that was appended to itself has no header which would tell."""
    (tmp_path / "t.jsonl").write_text(ROWS * 2)
    traces = read(tmp_path / "t.jsonl")
    assert not traces.problems and traces.sizes.events == 4
    (tmp_path / "t.jsonl").write_text(ROWS.replace('{"trace"', '{"id": "e", "trace"') * 2)
    with pytest.raises(NothingReadError, match="duplicate-id"):
        read(tmp_path / "t.jsonl")
