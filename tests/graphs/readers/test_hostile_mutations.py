"""Real logs, changed by their structure, end in traces and named problems: see `benchmarks/hostile.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [[], ["--tables"]], ids=["logs and tables", "tables"])
def test_changed_logs_are_read_or_refused_soon_and_invent_no_reward(seeds: list[str]) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "hostile.py"), "--inputs", "60", "--seed", "7", *seeds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["faults"] == 0 and found["read"] > 5 and found["refused"] > 5
