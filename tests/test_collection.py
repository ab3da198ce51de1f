"""Every process must collect the same tests under the same names, or a run on several workers cannot start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def collected(hash_seed: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-m", "slow or not slow", "tests"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_names_depend_neither_on_the_clock_nor_on_the_hash_seed() -> None:
    # One collection takes seconds, so that the two see different clocks.
    first, second = collected("1"), collected("2")
    assert len(first) > 1000
    assert first == second
