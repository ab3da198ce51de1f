"""Real logs, changed by their structure, end in traces and named problems: see `benchmarks/hostile.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.study
@pytest.mark.parametrize("seeds", [[], ["--tables"]], ids=["logs and tables", "tables"])
def test_changed_logs_are_read_or_refused_soon_and_invent_no_reward(seeds: list[str]) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "hostile.py"), "--inputs", "60", "--seed", "7", *seeds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == 0 and found["read"] > 5 and found["refused"] > 5


@pytest.mark.study
def test_commands_process_changed_logs_or_refuse_them_by_name() -> None:
    """See `benchmarks/hostile_commands.py`, which runs all commands on each input."""
    program = [sys.executable, str(ROOT / "benchmarks" / "hostile_commands.py"), "--inputs", "6", "--seed", "7"]
    quick = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "PYTHONPATH": str(ROOT)}  # compiles faster
    done = subprocess.run(
        [*program, "--logs"], capture_output=True, text=True, timeout=900, cwd=ROOT, env=os.environ | quick
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == 0 and found["exit codes"]["read"]["0"] > 1, found


@pytest.mark.study
def test_changed_native_logs_are_assigned_in_chunks_as_at_once() -> None:
    program = [sys.executable, str(ROOT / "benchmarks" / "hostile_chunks.py")]
    program += ["--inputs", "12", "--seed", "7", "--logs"]
    quick = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, capture_output=True, text=True, timeout=900, cwd=ROOT, env=os.environ | quick)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == 0 and found["rows compared"] > 100 and found["exit codes"]["3"] > 1, found
