"""A table that was appended to itself is named: its rewards count twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.readers import read

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
