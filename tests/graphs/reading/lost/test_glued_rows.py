"""A row that was cut and another that was appended on its line: no trace of either is read without its row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from linear_time import assert_linear

from graphs.reading.tables.glued_lines import pieces

from .test_lost_rows import outcomes


@pytest.mark.parametrize(
    ("header", "rows", "left"),
    [
        ("trace,group,agent,reward", ["a,q,c,1", "b,q,s,0", "a,q,s,1b,q,c,0"], []),
        ("trace,group,agent,reward", ["a,q,c,1", "b,q,s,0", "v,q,s,0", "a,q,sb,q,c,0"], ["v"]),
        ("trace,group,agent,reward", ["a,q,c,1", "b,q,s,0", "a,qb,q,c,0"], []),
        ("agent,trace,reward", ["s,t1,1", "s,t2,0", "c,t1,0.c,t2,0"], []),
        ("agent,trace,reward", ["s,t1,1", "s,t2,0", "s,t3,0", "c,t1c,t2,0"], []),
        ("agent,trace,reward", ["s,t1,1", "c,t1,1", "s,t2,0", "s,t3,0", "d,tc,t2,0"], []),
        ("agent,group,trace,reward", ["s,q,t1,1", "c,q,t1,1", "s,q,t3,0", "d,qs,q,t2,0"], []),
        ("agent,trace,reward", ["s,t1,1", "c,t1,1", "s,t2,0", "s,t2,0,more"], ["t1"]),
        ("agent,trace,reward", ["s,t1,1", "s,t2,0", "c,c,t2,0"], []),
        ("agent,trace,reward", ["s,t1,1", "s,t2,0", "c,c,t4,0"], ["t1", "t2"]),
    ],
)
def test_a_row_of_csv_that_is_glued_to_one_that_was_cut(
    tmp_path: Path, header: str, rows: list[str], left: list[str]
) -> None:
    """The id of the second row, at the end of a cell, named no trace; a row that was cut before its id neither."""
    (tmp_path / "rows.csv").write_text("\n".join([header, *rows, ""]))
    assert list(outcomes(tmp_path / "rows.csv")) == left


@pytest.mark.parametrize("field", ["rewards", "groups"])
def test_rows_that_are_glued_in_a_table_beside_the_log(tmp_path: Path, field: str) -> None:
    """The log's own outcome stayed in place of the second row's; a trace with a row of its own keeps that."""
    event = {"id": "1", "type": "message", "agent": "x"}
    names = ("n1", "n2", "other", "0")
    lines = [{"trace_id": t, "task_id": "k", "events": [event], "rewards": {"team": 5.0}} for t in names]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "table.csv").write_text(f"trace,{field[:-1]}\n0,2\nn1,0.n2,1\n")
    found = outcomes(tmp_path / "log.jsonl", **{field: tmp_path / "table.csv"})
    if field == "rewards":
        assert np.isnan([found.pop("n1"), found.pop("n2")]).all() and found == {"other": 5.0, "0": 2.0}
    else:
        assert list(found) == ["other", "0"]


ROWS = [{"trace": t, "agent": agent, "reward": 1} for t in ("run-a", "run-b", "other") for agent in "sc"]


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        ('{"trace": ', []),
        ('{"trace":', []),
        ('{"trace": "', []),
        ("{", []),
        ('{"', []),
        ('{"tra', []),
        ('{"trace": "run', ["other"]),
        ('{"trace": "run-a", "age', ["other"]),
        ('{"trace": "run-a", "agent": ', ["other"]),
        ('{"trace": "run-a", "agent": "c,', ["other"]),
        ('{"trace": "run-a", "agent": "c", "reward": 1}', ["other"]),
        ('{"trace": "v", "calls": [', ["run-a", "other"]),
        ('{"trace": "v", "ag{"trace": ', []),
    ],
)
def test_a_row_that_is_glued_to_one_that_was_cut(tmp_path: Path, cut: str, left: list[str]) -> None:
    """Where the first was cut before its id, its trace was read without it."""
    lines = [json.dumps(row) for row in ROWS]
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines, cut + lines[3], ""]))
    assert list(outcomes(tmp_path / "rows.jsonl")) == left


@pytest.mark.parametrize(("other", "left"), [("run-b", []), ("run-c", ["run-a", "run-b"])])
def test_a_trace_of_a_row_that_is_glued_has_several_if_it_has_another(
    tmp_path: Path, other: str, left: list[str]
) -> None:
    """The other rows were all of a trace each, and one was read without the row that was cut."""
    glued = '{"trace": ' + json.dumps({"trace": other, "agent": "c", "reward": 1})
    (tmp_path / "rows.jsonl").write_text("\n".join([*map(json.dumps, ROWS[:3:2]), glued, ""]))
    assert list(outcomes(tmp_path / "rows.jsonl")) == left


@pytest.mark.parametrize(
    "row",
    [
        '{"id": 1, "trace": "run-a", "calls": [{"id": 1}, {"id": 2}], "reward": 1,}',
        '{"id": 1, "calls": [{"id": 1}, {"id": 2}], "trace": "run-a", "reward": 1,}',
        '{"id": 1, "trace": "run-a", "calls": [{"id": 1}',
        '{"id": 1, "text": "{\\"id\\": 1}", "trace": "run-a", "reward": 1,}',
    ],
)
def test_an_object_within_a_value_is_no_row(tmp_path: Path, row: str) -> None:
    """Only the trace of the row is refused."""
    (tmp_path / "rows.jsonl").write_text("\n".join([*map(json.dumps, ROWS), row, ""]))
    assert list(outcomes(tmp_path / "rows.jsonl")) == ["run-b", "other"]


@pytest.mark.parametrize("part", ['{"a": [', '{"a": 1}', '{"a', '{"a": {"a": 1}, ', '{"', "{" + " " * 9])
def test_lines_that_begin_often_take_linear_time(part: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = part.encode() * size
        return lambda: sum(map(len, pieces(text)))

    assert_linear(prepare, 30_000, runs=1)
