"""Calls that are wrong: their exit codes, and no file that is replaced or left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .logs import run


@pytest.mark.parametrize(
    "args",
    [
        ["assign"],
        ["assign", "{good}"],
        ["assign", "{good}", "-o", "x.csv", "--columns", "trace"],
        ["assign", "{good}", "-o", "x.csv", "--rewards", "missing.csv"],
        ["assign", "{good}", "-o", "x.txt"],
        ["assign", "{good}", "-o", "missing/x.csv"],
        ["validate", "{good}", "--nonsense"],
        ["convert", "{good}", "-o", "x.json"],
        ["show", "{good}", "--trace", "zz"],
        ["show", "{good}", "--plot", "x.docx"],
        ["show", "{good}", "--plot", "missing/x.svg"],
        ["convert", "{good}", "-o", "missing/x.jsonl"],
        ["convert", "{good}", "-o", "missing/x.parquet"],
        ["completion", "tcsh"],
        ["nonsense"],
        [],
    ],
)
def test_usage_errors_exit_1(good: Path, args: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(a.format(good=good) for a in args))
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert [p.name for p in tmp_path.iterdir()] == ["good.jsonl"]


@pytest.mark.parametrize("command", ["validate", "assign", "show", "methods", "convert"])
def test_nothing_read_exits_2(tmp_path: Path, command: str) -> None:
    out = ["-o", str(tmp_path / "out.jsonl")] if command in ("assign", "convert") else []
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"trace_id": "a", "task_id": "q", "events": [')
    result = run(command, broken, tmp_path / "missing.json", *out)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[0] == "error: no trace could be read"
    assert "[no-such-file]" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["broken.jsonl"]


@pytest.mark.parametrize("command", ["assign", "compose", "audit"])
def test_no_output_replaces_an_input(command: str, good: Path) -> None:
    before = good.read_bytes()
    chosen = ["--method", "rloo"] if command == "assign" else ["--methods", "rloo"]
    result = run(command, good, *chosen, "-o", good)
    assert result.exit_code == 1 and "is an input; expected another file" in result.output
    assert good.read_bytes() == before


def test_whether_a_path_can_be_read_is_seen_by_reading_it(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot is a problem beside what the others hold, not a wrong call."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert run("validate", good).exit_code == 0


def test_no_output_replaces_a_log_in_a_folder_that_is_read(good: Path, tmp_path: Path) -> None:
    before = good.read_bytes()
    result = run("convert", tmp_path, "-o", good)
    assert result.exit_code == 1 and "is a log in a folder that is read; expected another file" in result.output
    good.rename(tmp_path / "spans.jsonl")
    for logs in (tmp_path, tmp_path / "spans.jsonl"):
        result = run("convert", logs, "--to", "otlp", "-o", tmp_path)
        assert result.exit_code == 1 and "expected another file" in result.output
    assert (tmp_path / "spans.jsonl").read_bytes() == before
    for _ in range(2):  # a table of results is no log
        assert run("assign", tmp_path, "-o", tmp_path / "advantages.csv").exit_code == 0


def test_two_outputs_are_two_files(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "l.csv"
    result = run("compose", good, "--methods", "rloo", "-o", out, "--advantage", "entry", "--advantages-to", out)
    assert result.exit_code == 1 and "expected another file" in result.output
    assert not out.exists()
