"""`credit convert`: what is written reads back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .logs import GOOD, run, write


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


@pytest.mark.parametrize(("name", "options"), [("all.jsonl", ()), ("deep/all.parquet", ()), ("out", ("--to", "otlp"))])
def test_the_output_may_not_lie_in_a_folder_that_is_read(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    write(tmp_path / "runs" / "x.jsonl", GOOD)
    result = run("convert", tmp_path / "runs", "-o", tmp_path / "runs" / name, *options)
    assert result.exit_code == 1 and "its traces would be there twice" in result.output
    assert run("convert", tmp_path / "runs", "-o", tmp_path / "all.jsonl").exit_code == 0


@pytest.mark.parametrize("to", ["otlp", "survey"])
def test_a_folder_cannot_be_standard_output(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("convert", str(good), "--to", to, "-o", "-")
    assert result.exit_code == 1 and "'-'; expected the name of a folder" in result.output
    assert not Path("-").exists()


@pytest.mark.slow
def test_a_long_name_of_an_output(tmp_path: Path) -> None:
    log = write(tmp_path / "x.jsonl", GOOD)
    for stem in ("n" * 240, "ü" * 120):
        for command in (["convert", log, "-o"], ["assign", log, "-o"]):
            out = tmp_path / f"{stem}.jsonl"
            result = run(*command, out)
            assert result.exit_code == 0 and out.is_file(), result.output
            out.unlink()


def test_a_cache_by_the_name_of_a_log_is_refused_with_the_option_that_writes_it(good: Path, tmp_path: Path) -> None:
    """The message asked for the name that was given."""
    result = run("convert", good, "--to", "native", "-o", tmp_path / "x.parquet")
    assert result.exit_code != 0 and "`--to cache` writes .parquet" in " ".join(result.output.split())
    assert "or .parquet for a cache" in " ".join(run("convert", good, "-o", tmp_path / "x.txt").output.split())
