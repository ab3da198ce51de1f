"""The entry point that verl loads in every process: whatever fails in it, verl runs as without this library."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENTRY_POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["verl.plugins"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "said"),
    [
        (
            "sys.modules['credit.hooks'] = None",
            "ModuleNotFoundError: import of credit.hooks halted",
        ),  # cannot be imported
        ("", "ImportError: cannot import name 'ADV_ESTIMATOR_REGISTRY'"),  # another version of verl
    ],
)
def test_an_error_in_the_entry_point_leaves_verl_as_it_is(tmp_path: Path, before: str, said: str) -> None:
    folder = tmp_path / "verl" / "trainer" / "ppo"
    (folder / "v1").mkdir(parents=True)
    for name in ("core_algos", "v1/__init__"):
        (folder / f"{name}.py").write_text("here = 1\n")
    program = (
        f"import importlib, sys; {before}\n"
        f"importlib.import_module({ENTRY_POINTS['credit']!r})\n"
        "import verl.trainer.ppo.core_algos, verl.trainer.ppo.v1\n"
        "print(verl.trainer.ppo.core_algos.here + verl.trainer.ppo.v1.here)"
    )
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr
