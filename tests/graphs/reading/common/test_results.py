"""Tables left in a folder of logs are passed over, so that a second run reads what the first did."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credit
from graphs.reading.results import BEGINNINGS
from graphs.worlds import World
from graphs.writers import native


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = World()
    file = tmp_path_factory.mktemp("logs") / "runs.jsonl"
    native.write(world.traces(world.sample(jax.random.key(0), 8)), file)
    return file


@pytest.fixture(scope="module")
def tables(logs: Path) -> dict[str, pa.Table]:
    """What commands write, by the command."""
    traces = credit.read(logs)
    graph, reward = traces.graph, traces.reward
    claims = {"rloo": credit.rloo(graph, reward), "turn_baseline": credit.turn_baseline(graph, reward)}
    ledger = credit.compose(graph, reward, list(claims.values()))
    audit = credit.audit(graph, reward, claims)
    return {
        "assign": credit.table(traces, claims["rloo"]),
        "compare": credit.compare(traces, claims).events,
        "compose": ledger.table(traces),
        "compose by agent": ledger.table(traces, level="agent"),
        "audit": audit.table(traces),
        "audit by trace": audit.trace_table(traces),
    }


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_result_beside_its_logs_is_no_log(
    logs: Path, tables: dict[str, pa.Table], tmp_path: Path, suffix: str
) -> None:
    (tmp_path / "runs.jsonl").write_bytes(logs.read_bytes())
    for name, table in tables.items():
        credit.write_table(table, tmp_path / f"{name}.{suffix}")
    again = credit.read(tmp_path)
    assert again.problems == () and again.sizes == credit.read(logs).sizes
    assert set(again.ignored) == {str(tmp_path / f"{name}.{suffix}") for name in tables}


def test_a_parquet_log_with_the_columns_of_a_result_is_a_log(tmp_path: Path) -> None:
    """Only the stamp counts: a trainer's table may have any columns."""
    rows = {"file": ["a"], "line": [1], "trace": ["t"], "group": ["g"], "event": ["e"], "reward": [1.0]}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    assert credit.read(tmp_path).traces["trace"].to_pylist() == ["t"]
    credit.write_table(pa.table(rows), tmp_path / "rows.parquet")
    with pytest.raises(credit.NothingReadError):
        credit.read(tmp_path)


@pytest.mark.slow
def test_a_log_that_speaks_of_results_is_one(logs: Path, tmp_path: Path) -> None:
    """Its words are within it, not its columns."""
    words = {name: name for columns in BEGINNINGS for name in columns}
    (tmp_path / "runs.jsonl").write_bytes(
        logs.read_bytes().replace(b"{", b'{"meta":' + json.dumps(words).encode() + b",", 1)
    )
    again = credit.read(tmp_path)
    assert again.ignored == () and again.sizes == credit.read(logs).sizes


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(credit.NothingReadError, match="no-such-file"):
        credit.read("")
