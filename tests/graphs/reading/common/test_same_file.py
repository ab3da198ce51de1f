"""A file with several names is read once: links, hard links, spellings of a path, and addresses."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from graphs.logs import read
from graphs.reading.addresses import normal_address
from graphs.reading.find import find_sources, identity

SPAN = {"rollout_id": "r", "attempt_id": "a", "trace_id": "a" * 32, "parent_id": None, "start_time": 1}
ROWS = "".join(json.dumps({"input": "q", "output": "a", "score": score, "step": 1}) + "\n" for score in (0.0, 1.0))


def names(*paths: str | Path) -> list[str]:
    return [source.name for source in find_sources(paths)[0]]


def test_a_link_to_the_last_step_gives_no_row_twice(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(ROWS)
    alone = credit.run(read(tmp_path), "rloo").advantage
    (tmp_path / "0.jsonl").symlink_to("1.jsonl")  # its name stands before the file's
    os.link(tmp_path / "1.jsonl", tmp_path / "2.jsonl")
    traces = read(tmp_path)
    assert traces.traces.num_rows == 2
    np.testing.assert_array_equal(credit.run(traces, "rloo").advantage, alone)
    assert set(traces.events["file"].to_pylist()) == {str(tmp_path / "1.jsonl")}
    assert [(problem.kind, Path(problem.file).name) for problem in traces.problems] == [
        ("same-file", "0.jsonl"),
        ("same-file", "2.jsonl"),
    ]
    assert not any(problem.is_failure for problem in traces.problems)
    assert str(traces.problems[0]).endswith(f"path is the file {str(tmp_path / '1.jsonl')!r} again; expected each file "
                                            "once, so it is read under that name alone [same-file]")  # fmt: skip


def test_commands_say_so_and_end_well(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(ROWS)
    done = CliRunner().invoke(cli, ["validate", str(tmp_path), f"{tmp_path}/../{tmp_path.name}", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["traces"] == 2 and "same-file" in done.output


def test_two_spellings_lose_no_span_and_double_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    call = SPAN | {"span_id": "b" * 16, "sequence_id": 1, "name": "openai.chat.completion", "attributes": {}}
    (tmp_path / "logs" / "a.jsonl").write_text(json.dumps(call) + "\n")
    monkeypatch.chdir(tmp_path)
    once = read("logs")
    for spelling in ("./logs/a.jsonl", "logs/../logs", tmp_path / "logs", f"file://{tmp_path}/logs"):
        twice = read("logs", spelling)
        assert twice.events.num_rows == once.events.num_rows == 1
        assert [problem.kind for problem in twice.problems] == ["same-file"]


def test_the_name_that_stands(tmp_path: Path) -> None:
    """No link, then one that a folder led to, whose spelling the files beside it share; then the first."""
    (tmp_path / "real").mkdir()
    file = tmp_path / "real" / "b.jsonl"
    file.write_text("x")
    link = tmp_path / "a.jsonl"
    link.symlink_to(file)
    (tmp_path / "way").symlink_to(tmp_path / "real", target_is_directory=True)
    assert names(link, file) == names(file, link) == [str(file)]
    assert names(file, tmp_path / "way") == [str(tmp_path / "way" / "b.jsonl")]
    assert names(tmp_path / "way", tmp_path / "real") == [str(tmp_path / "way" / "b.jsonl")]
    assert names(link) == [str(link)]
    assert names("-", "-") == ["<stdin>"]


def test_other_files_stay(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("x")
    assert names(tmp_path) == [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    assert identity(tmp_path / "gone.jsonl") != identity(tmp_path / "lost.jsonl")


def test_addresses() -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed here")
    root = f"/{uuid.uuid4().hex}"
    fsspec.filesystem("memory").pipe(f"{root}/a.jsonl", b"x")
    there = f"memory://{root}"
    assert names(there, f"memory:/{root}/a.jsonl", f"simplecache::{there}/a.jsonl") == [f"{there}/a.jsonl"]
    fsspec.filesystem("memory").rm(root, recursive=True)


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("simplecache::s3://Bucket/A.jsonl", "s3://Bucket/A.jsonl"),
        ("zip://A.jsonl::filecache::https://Host/B.zip", "zip://A.jsonl::https://host/B.zip"),
        ("https://Host", "https://host"),
        ("s3://b/x.zip", "s3://b/x.zip"),
    ],
)
def test_normal_addresses(address: str, normal: str) -> None:
    assert normal_address(address) == normal
