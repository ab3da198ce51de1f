"""`credit convert`: what is written reads back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .logs import run


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_convert_writes_what_reads_back(bad: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"again.{suffix}"
    result = run("convert", bad, "-o", out)
    assert result.exit_code == 3 and "wrote 5 traces" in result.stderr
    before, after = (json.loads(run("validate", "--json", p).stdout) for p in (bad, out))
    differ = {key for key in before if before[key] != after[key]}
    assert differ == {"problems", "problem_kinds"}


def test_convert_writes_otlp(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "otlp"
    assert run("convert", good, "--to", "otlp", "-o", out).exit_code == 0
    found = json.loads(run("validate", "--json", out).stdout)
    assert found["traces"] == 5 and found["formats"] == {"otlp": 5}
