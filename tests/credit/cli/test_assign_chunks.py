"""`credit assign --chunk-events`: the numbers of the whole, a file that is whole or not there, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from credit.cli import cli
from credit.tables.files import write_tables
from graphs.errors import CreditError


def trace(name: str, group: str, reward: float, **event: Any) -> bytes:
    listed = [{"id": f"e{i}", "type": "message", "agent": f"a{i % 2}", **event} for i in range(5)]
    document = {"trace_id": name, "task_id": group, "events": listed, "rewards": {"team": reward}}
    return json.dumps(document).encode() + b"\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for i in range(12):
        (folder / f"{i:02}.jsonl").write_bytes(trace(f"t{i}", f"g{i % 3}", i / 7) + b"{broken\n" * (i == 5))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["assign", *map(str, arguments)])


def rows(path: Path) -> list[str]:
    """The rows of a table in an order of their own; every digit of a number shows."""
    return sorted(map(str, pq.read_table(path).to_pylist()))


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_the_chunks(logs: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    assert run(logs, "-o", whole, "-m", "dr_mas").exit_code == 3
    expected = rows(whole)
    for events in (1, 25, 1000):
        done = run(logs, "-o", parts, "-m", "dr_mas", "--chunk-events", events)
        assert done.exit_code == 3, done.output
        assert "12 traces in 3 groups, 60 events" in done.output
        assert "bad-json" in done.output
        assert pq.read_schema(parts) == pq.read_schema(whole)
        assert rows(parts) == expected


@pytest.mark.slow
def test_evidence_may_be_missing_from_a_chunk_but_not_from_all(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    refused = run(logs, "-o", out, "-m", "gae", "--chunk-events", 1, "--allow-bad")
    assert refused.exit_code != 0
    assert "'value'" in refused.output
    assert not out.exists()
    (logs / "13.jsonl").write_bytes(trace("with values", "g1", 1.0, value=0.5))
    assert run(logs, "-o", out, "-m", "gae", "--chunk-events", 1, "--allow-bad").exit_code == 0
    whole = tmp_path / "whole.parquet"
    assert run(logs, "-o", whole, "-m", "gae", "--allow-bad").exit_code == 0
    assert rows(out) == rows(whole)


def test_what_needs_all_traces_at_once_is_refused_by_name(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    batch = run(logs, "-o", out, "-m", "reinforce_pp", "--chunk-events", 10)
    assert batch.exit_code != 0
    assert "'reinforce_pp'" in batch.output
    assert "batch" in batch.output
    assert run(logs, "-o", "-", "--chunk-events", 10).exit_code != 0
    assert run(logs, "-o", out, "--chunk-events", 0).exit_code != 0
    assert not out.exists()


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".arrow"])
def test_tables_are_written_one_after_another(suffix: str, tmp_path: Path) -> None:
    words = pa.array(["=x", "y"]).dictionary_encode()
    tables = [pa.table({"n": [i, i + 1], "word": words}) for i in (1, 5)]
    path = tmp_path / f"out{suffix}"
    assert write_tables(iter(tables), path) == 4
    read: dict[str, Any] = {
        ".parquet": pq.read_table,
        ".csv": pyarrow.csv.read_csv,
        ".jsonl": pyarrow.json.read_json,
        ".arrow": lambda path: pyarrow.ipc.open_file(path).read_all(),
    }
    found = read[suffix](path)
    assert found["n"].to_pylist() == [1, 2, 5, 6]
    assert found["word"].to_pylist() == ["'=x" if suffix == ".csv" else "=x", "y"] * 2


def test_what_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.write_text("what was there before")

    def broken() -> Any:
        yield pa.table({"n": [1]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tables(broken(), path)
    with pytest.raises(CreditError, match="no table"):
        write_tables([], path)
    assert [file.name for file in tmp_path.iterdir()] == ["out.parquet"]
    assert path.read_text() == "what was there before"


def test_a_published_name_has_the_scope_of_its_options(logs: Path, tmp_path: Path) -> None:
    """CoLLM-MAAC divides by a spread over the batch, and each chunk had a spread of its own."""
    refused = run(logs, "-o", tmp_path / "out.parquet", "-m", "CoLLM-MAAC", "--chunk-events", 10)
    assert refused.exit_code != 0 and "its scope under normalise=true is batch" in refused.output


def test_a_published_name_is_taken(logs: Path, tmp_path: Path) -> None:
    done = run(logs, "-o", tmp_path / "out.parquet", "-m", "Dr. MAS", "--chunk-events", 25)
    assert done.exit_code == 3, done.output
