"""A command that is killed while it writes leaves the old output or none, and a rerun gives the identical bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphs.atomic import atomic_write

ROOT = Path(__file__).resolve().parents[2]
# A command is killed at a chosen call that touches its output, in the middle of what it writes. Every run is a fork of
# one process that has imported what is slow to import.
DRIVER = """
import os, signal, sys, json
from pathlib import Path
import credit.cli.advantages.assign, credit.cli.logs.convert, credit.methods.registry
import credit.tables.advantages, credit.tables.files, graphs.writers.native
from graphs.logs import FORMATS, reader_of
for name in FORMATS:
    reader_of(name)
from credit.__main__ import main
from graphs import atomic

target, moments, old = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
command = sys.argv[4:]
whole = None

class Moment:
    def __init__(self, at):
        self.at, self.calls = at, 0
    def __call__(self, before=lambda: None):
        self.calls += 1
        if self.calls == self.at:
            before()
            os.kill(os.getpid(), signal.SIGKILL)

class File:
    def __init__(self, file, moment):
        self.file, self.moment = file, moment
    def write(self, data):
        def half():
            self.file.write(bytes(data)[: len(data) // 2])
            self.file.flush()
        self.moment(half)
        return self.file.write(data)
    def __getattr__(self, name):
        return getattr(self.file, name)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.file.close()

class System:
    def __init__(self, moment):
        self.moment = moment
    def __getattr__(self, name):
        real = getattr(os, name)
        if name == "fdopen":
            return lambda *a: File(real(*a), self.moment)
        if name in ("fsync", "chmod", "replace"):
            def killed(*a):
                self.moment()
                return real(*a)
            return killed
        return real

def run(at):
    child = os.fork()
    if child == 0:
        moment = Moment(at)
        atomic.os = System(moment)
        sys.argv = ["credit", *command]
        try:
            main()
        except SystemExit as error:
            (target.parent / "calls").write_text(str(moment.calls))
            os._exit(error.code or 0)
        os._exit(0)
    return os.waitpid(child, 0)[1]

assert run(0) == 0
whole = target.read_bytes()
calls = int((target.parent / "calls").read_text())
assert calls > 3
killed = left = 0
for share in moments:
    if old == "old":
        target.write_bytes(b"old")
    else:
        target.unlink()
    status = run(1 + int(share * calls))
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    killed += 1
    parts = [p for p in target.parent.iterdir() if p.name.endswith(".part")]
    left += len(parts)
    assert (target.read_bytes() == b"old") if old == "old" else not target.exists()
    assert run(0) == 0
    assert target.read_bytes() == whole
    assert not [p for p in target.parent.iterdir() if p.name.endswith(".part")]
print(json.dumps([killed, left, calls]))
"""


def logs(folder: Path) -> Path:
    file = folder / "x.jsonl"
    rng = np.random.default_rng(5)
    lines = [
        {
            "trace_id": f"t{i}",
            "task_id": f"q{i // 4}",
            "events": [
                {"id": f"e{j}", "t": j, "type": "message", "agent": f"a{j % 3}", "content_ref": rng.bytes(32).hex()}
                for j in range(40)
            ],
            "edges": [],
            "rewards": {"team": float(rng.random())},
            "costs": {"tokens": 1, "wall_clock_s": 1.0},
        }
        for i in range(40)
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def killed(folder: Path, moments: int, output: str, old: str, *command: str) -> None:
    """Run a command to its end, then as often as said killed at a random moment and to its end again."""
    (folder / "out").mkdir()
    target = folder / "out" / output
    shares = np.random.default_rng(11).random(moments).tolist()
    arguments = [command[0], str(logs(folder)), "-o", str(target), *command[1:]]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DRIVER, str(target), json.dumps(shares), old, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    count, left, _ = json.loads(done.stdout.splitlines()[-1])
    assert (count, left) == (moments, moments)  # each kill fell into the writing and left its temporary file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "old", "command"),
    [("x.jsonl", "none", ["convert"]), ("x.parquet", "old", ["assign", "--method", "rloo", "--chunk-events", "400"])],
)
def test_killed_at_two_moments(output: str, old: str, command: list[str], tmp_path: Path) -> None:
    killed(tmp_path, 2, output, old, *command)


@pytest.mark.study
@pytest.mark.parametrize("old", ["old", "none"])
@pytest.mark.parametrize(
    ("output", "command"),
    [
        ("x.jsonl", ["convert"]),
        ("x.parquet", ["assign", "--method", "rloo"]),
        ("x.csv", ["assign", "--method", "rloo"]),
        ("x.parquet", ["assign", "--method", "rloo", "--chunk-events", "400"]),
        ("x.csv", ["assign", "--method", "rloo", "--chunk-events", "400"]),
        ("x.parquet", ["compose", "--methods", "rloo"]),
    ],
)
def test_killed_at_random_moments(output: str, old: str, command: list[str], tmp_path: Path) -> None:
    killed(tmp_path, 8, output, old, *command)


def test_a_writer_that_lives_keeps_its_temporary_file(tmp_path: Path) -> None:
    """Two writers of one file at a time: neither takes the other's for abandoned; the last to end wins."""
    target = tmp_path / "x"
    with atomic_write(target) as first:
        first.write(b"first")
        with atomic_write(target) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_other_files_are_not_taken_for_abandoned(tmp_path: Path) -> None:
    others = [".x.part", ".x.1.part", ".xy.abcdefgh.part", "x.abcdefgh.part", ".x.abcdefgh.partial"]
    for name in [*others, ".x.abcdefgh.part"]:
        (tmp_path / name).write_bytes(b"")
    with atomic_write(tmp_path / "x") as file:
        file.write(b"")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*others, "x"])
