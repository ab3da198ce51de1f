"""A number that some rows of JSON lines write as a text counts, and is named once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.logs import read


def log(path: Path, column: str, cells: list[Any], **more: Any) -> Path:
    rows = [{"trace": f"t{n}", "group": "q", "reward": 1} | more | {column: cell} for n, cell in enumerate(cells)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("column", ["reward", "time", "tokens", "rewards.judge", "seconds"])
def test_texts_among_numbers_are_named_once(tmp_path: Path, column: str) -> None:
    """`"1.0"` beside 1.0 was read without a word."""
    traces = read(log(tmp_path / "x.jsonl", column, [1, "1.0", None, 2, "2"]), format="table")
    assert traces.sizes.traces == 5
    (note,) = traces.problems
    assert (note.kind, note.line, note.field, note.is_failure) == ("number-as-text", 2, column, False)
    assert (note.value, note.expected) == ("the text '1.0'", "a number, as in 2 rows: so 2 texts count")


@pytest.mark.parametrize(("column", "cells"), [("reward", ["1", "0"]), ("turn", [1, "1"]), ("reward", [1, True, None])])
def test_a_column_of_texts_or_of_numbers_is_not(tmp_path: Path, column: str, cells: list[Any]) -> None:
    assert read(log(tmp_path / "x.jsonl", column, cells), format="table").problems == ()


def test_a_table_of_outcomes_names_them_too(tmp_path: Path) -> None:
    path, table = log(tmp_path / "x.jsonl", "agent", ["a", "b"]), tmp_path / "rewards.jsonl"
    table.write_text('{"trace": "t0", "reward": 1}\n{"trace": "t1", "reward": "0"}\n')
    traces = read(path, rewards=table)
    assert traces.reward[:2].tolist() == [1, 0]
    assert [(note.kind, note.file) for note in traces.problems] == [("number-as-text", str(table))]
