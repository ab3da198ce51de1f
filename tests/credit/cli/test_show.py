"""`credit show` and `credit demo`: one trace to look at, and everything at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .logs import run


def test_show_prints_and_draws_one_trace(good: Path, tmp_path: Path) -> None:
    result = run("show", good, "--trace", "b")
    assert result.exit_code == 0, result.output
    assert "boss" in result.stdout and "solver" in result.stdout
    pytest.importorskip("matplotlib")
    plot = tmp_path / "b.svg"
    assert run("show", good, "--trace", "b", "--plot", plot, "--method", "rloo").exit_code == 0
    assert b"<svg" in plot.read_bytes()


@pytest.mark.slow
def test_demo_writes_and_compares(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("demo", "-o", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert json.loads(run("validate", "--json", tmp_path / "demo" / "traces.jsonl").stdout)["traces"] > 0
    assert (tmp_path / "demo" / "advantages.parquet").stat().st_size > 0
