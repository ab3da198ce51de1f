"""Tables on disk: every format reads back, nothing is half-written, and text cannot run in a spreadsheet."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from credit.tables.files import TABLE_SUFFIXES, table_writer, write_table
from graphs.errors import CreditError

HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "'quoted", "plain", "", None, 'a "b", c\nd', "＝1"]


@pytest.fixture
def table() -> pa.Table:
    n = len(HOSTILE)
    return pa.table(
        {
            "event": HOSTILE,
            "trace": pa.array(HOSTILE).dictionary_encode(),
            "advantage": pa.array([-1.5, float("nan"), *range(n - 2)], pa.float32()),
            "valid": [i % 2 == 0 for i in range(n)],
        }
    )


def test_binary_formats_keep_everything(table: pa.Table, tmp_path: Path) -> None:
    write_table(table, tmp_path / "out.parquet")
    write_table(table, tmp_path / "out.arrow")
    for back in (
        pyarrow.parquet.read_table(tmp_path / "out.parquet"),
        pa.ipc.open_file(tmp_path / "out.arrow").read_all(),
    ):
        assert back.schema.names == table.schema.names
        assert back["event"].to_pylist() == back["trace"].to_pylist() == HOSTILE
        assert back["advantage"].to_pylist()[0] == -1.5
        assert back["valid"].equals(table["valid"])


def test_json_lines_hold_one_object_a_row(table: pa.Table, tmp_path: Path) -> None:
    write_table(table, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["event"] for row in rows] == [row["trace"] for row in rows] == HOSTILE
    assert rows[0] == {"event": "=1+1", "trace": "=1+1", "advantage": -1.5, "valid": True}
    assert rows[1]["advantage"] is None


def test_csv_disarms_formulas_and_can_be_undone(table: pa.Table, tmp_path: Path) -> None:
    write_table(table, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, text in zip(rows, HOSTILE, strict=True):
        assert row["event"] == row["trace"]
        assert not row["event"].startswith(("=", "+", "-", "@", "\t", "\r", "＝"))
        assert row["event"].removeprefix("'") == (text or "")
    assert rows[0]["advantage"] == "-1.5"  # numbers stay numbers
    assert rows[0]["valid"] == "true"
    again = pyarrow.csv.read_csv(tmp_path / "out.csv")
    assert again["advantage"].type == pa.float64() and again["valid"].type == pa.bool_()


def test_an_unknown_suffix_is_refused_before_anything_is_written(table: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(CreditError, match=r"ends in '\.xlsx'; expected one of \.parquet, \.csv, \.jsonl, \.arrow"):
        write_table(table, tmp_path / "out.xlsx")
    with pytest.raises(CreditError, match="ends in ''"):
        table_writer("out")
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_the_old_file(table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.csv"
    write_table(table, path)
    before = path.read_bytes()

    def fail(table: pa.Table, file: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setitem(TABLE_SUFFIXES, ".csv", fail)
    with pytest.raises(KeyboardInterrupt):
        write_table(table, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
