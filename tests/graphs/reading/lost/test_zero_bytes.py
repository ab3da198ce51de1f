"""A crash leaves zero bytes in place of rows: such a row is no row, and voids the traces that it may be of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from credit.tables.columns import from_columns
from graphs.errors import CreditError, NothingReadError
from graphs.logs import read
from graphs.traces.missing_names import is_missing_name

HEADER = "trace,group,reward\n"


def traces_of(path: Path) -> tuple[list[str], list[tuple[str, int, str]]]:
    try:
        traces = read(path)
    except NothingReadError as error:
        return [], [(problem.kind, problem.line, problem.trace) for problem in error.problems]
    problems = [(problem.kind, problem.line, problem.trace) for problem in traces.problems]
    return traces.traces["trace"].to_pylist(), problems


def test_zero_bytes_are_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEADER}a,q,1\nb,q,0\n\0,q,1\n\0\0,q,0\n")
    assert traces_of(path) == (["a", "b"], [("bad-row", 4, ""), ("bad-row", 5, "")])
    assert all("zero bytes" in problem.expected for problem in read(path).problems)


@pytest.mark.parametrize("zeroed", ["\0,q,1", "\0" * 4096, "\0,\0,\0", "b\0\0,q,1", "x,\0\0\0\0,q,1", '"\0",q,1'])
def test_a_zeroed_row_may_be_of_any_trace(zeroed: str, tmp_path: Path) -> None:
    """`a` may lack an event."""
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEADER}a,q,1\na,q,1\nb,q,0\n{zeroed}\n")
    assert traces_of(path) == ([], [("bad-row", 5, ""), ("lost-row", 5, "a"), ("lost-row", 5, "b")])


def test_a_row_with_zero_bytes_behind_its_id_is_of_its_trace(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEADER}a,q,1\na,q,1\nb,q,0\nb,q,\0\n")
    assert traces_of(path) == (["a"], [("bad-row", 5, ""), ("lost-row", 5, "b")])


@pytest.mark.parametrize("zeroed", ["\0,1", "\0\0\0\0", "\0,\0", "b\0,1"])
def test_a_zeroed_row_of_rewards_voids_the_traces_without_one(zeroed: str, log: Path, tmp_path: Path) -> None:
    table = tmp_path / "rewards.csv"
    table.write_text(f"trace,reward\na,0.5\n{zeroed}\n")
    traces = read(log, rewards=table)
    np.testing.assert_array_equal(traces.reward[:3], np.array([0.5, np.nan, np.nan], np.float32))
    assert {problem.trace for problem in traces.problems if problem.kind == "lost-row"} == {"b", "c"}


def test_zero_bytes_in_a_table_of_groups(log: Path, tmp_path: Path) -> None:
    table = tmp_path / "groups.csv"
    table.write_text("trace,group\na,q\nb,\0\n")
    assert read(log, groups=table).traces["trace"].to_pylist() == ["a", "c"]
    table.write_text("trace,group\na,q\n\0\0,q\n")
    assert read(log, groups=table).traces["trace"].to_pylist() == ["a"]


def test_zero_bytes_in_the_header_refuse_the_table(log: Path, tmp_path: Path) -> None:
    (tmp_path / "rewards.csv").write_text("trace,reward,\0\0\na,0.5,x\n")
    with pytest.raises(CreditError, match="bad-header"):
        read(log, rewards=tmp_path / "rewards.csv")


@pytest.mark.parametrize("name", ["\0", "\0\0\x01", " \x7f "])
def test_control_characters_alone_are_no_name(name: str, log: Path, tmp_path: Path) -> None:
    rows = [{"trace": "a", "group": "q", "reward": 1}, {"trace": name, "group": "q", "reward": 1}]
    rows += [{"trace": "b", "group": name, "reward": 0}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert traces_of(path) == (["a"], [("missing-field", 2, name), ("missing-field", 3, "b")])
    assert read(log, groups={"a": "q", "b": name}).traces["trace"].to_pylist() == ["a", "c"]
    with pytest.raises(CreditError, match="is no id"):
        from_columns(group=["q", name], trace=["a", "b"], reward=[1.0, 0.0])
    assert not is_missing_name(f"{name}q")
