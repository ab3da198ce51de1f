"""`--rewards`: where the table has no row for a trace, or none that can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from .logs import run, trace, write


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "x.jsonl", [trace(f"t{i}", "q", float(5 + i)) for i in range(3)])


@pytest.mark.parametrize(
    "command",
    [["assign", "-o", "{out}.csv"], ["assign", "--chunk-events", "3", "-o", "{out}.csv"], ["validate"], ["choose"],
     ["compare"], ["summary"], ["traces"], ["convert", "-o", "{out}.jsonl"], ["compose", "-o", "{out}.parquet",
     "--methods", "rloo"]],
)  # fmt: skip
def test_a_table_without_a_row_for_some_traces_is_said_to_be(command: list[str], log: Path, tmp_path: Path) -> None:
    """A trace kept the log's outcome without a word, and the baselines took it."""
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\nt0,1\nt1,0\n")
    name, *rest = [part.format(out=tmp_path / "out") for part in command]
    result = run(name, log, "--rewards", table, *rest)
    assert result.exit_code == 0, result.output
    assert f"rewards: 2 of 3 traces from {table}, 1 from the log\n" in result.stderr
    table.write_text("trace,reward\nt0,1\nt1,0\nt2,0\n")
    assert "rewards:" not in run("traces", log, "--rewards", table).stderr


def test_traces_that_neither_the_table_nor_the_log_gives_an_outcome_are_counted(log: Path, tmp_path: Path) -> None:
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\nt0,1\n")
    result = run("validate", log, "--rewards", table, "--reward-channel", "judge")
    assert f"rewards: 1 of 3 traces from {table}, 2 without an outcome\n" in result.stderr
