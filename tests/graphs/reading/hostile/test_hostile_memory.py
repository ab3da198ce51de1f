"""Inputs that would fill the memory or the disk: each is read or refused in bounded memory.

Memory is the growth of the peak resident size of a process of its own after its imports; the bounds below are multiples
of the size that the limits allow.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from ..linear.long_teams import langgraph_of_nodes_that_heard_apart
from .hostile_text import MIB, noted, text

ROOT = Path(__file__).resolve().parents[4]

MEASURE = """
import json, re, sys
import graphs.traces.cache, graphs.traces.assembling  # which bring JAX, and `read` would do it
from graphs.errors import NothingReadError
from graphs.traces.limits import Limits
from graphs.logs import read
from graphs.formats import native

def peak():  # not getrusage, whose peak survives exec: a small child of a large parent would seem to need nothing
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

limits = Limits(**json.loads(sys.argv[2]))
before = peak()
try:
    traces = read(sys.argv[1], limits=limits)
    names, problems = traces.traces["trace"].to_pylist(), traces.problems
except NothingReadError as error:
    names, problems = [], error.problems
print(json.dumps([names, [p.kind for p in problems], peak() - before]))
"""


def measured(path: Path, **limits: int) -> tuple[list[str], list[str], int]:
    """Traces, kinds of problems, and growth of the peak memory in bytes, in a process of its own."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory of a process is read from /proc")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), json.dumps(limits)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    names, kinds, grown = json.loads(done.stdout)
    assert grown >= 0
    return names, kinds, grown


@pytest.mark.sampled
@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.slow
def test_a_bomb_fills_no_memory(suffix: str, tmp_path: Path) -> None:
    """Blanks behind a trace, up to a gibibyte: at most twice the limit on a file, and 32 MiB."""
    file = tmp_path / f"x.jsonl.{suffix}"
    with file.open("wb") as raw:
        if suffix == "gz":
            stream: Any = gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1)
        else:
            stream = zstandard.ZstdCompressor().stream_writer(raw)
        with stream:
            stream.write(text() + b"\n")
            for _ in range(1024 if suffix == "zst" else 128):
                stream.write(b" " * MIB)
    names, kinds, grown = measured(file, file_bytes=64 * MIB)
    assert (names, kinds) == ([], ["too-large"])
    assert grown < (2 * 64 + 32) * MIB


@pytest.mark.study
def test_a_file_that_is_too_long_is_not_loaded(tmp_path: Path) -> None:
    """Eight gibibytes that take no room on the disk: at most twice the limit."""
    file = tmp_path / "x.jsonl"
    file.write_bytes(text() + b"\n")
    os.truncate(file, 8 << 30)
    names, kinds, grown = measured(file, file_bytes=64 * MIB)
    assert (names, kinds) == ([], ["too-large"])
    assert grown < 2 * 64 * MIB


@pytest.mark.study
def test_a_string_of_300_megabytes(tmp_path: Path) -> None:
    """In one line, refused by the limits as they stand: at most twice the file, and 32 MiB."""
    file = tmp_path / "x.jsonl"
    with file.open("wb") as stream:
        stream.write(text("before") + b"\n" + text()[:-1] + b', "note": "')
        for _ in range(300):
            stream.write(b"x" * MIB)
        stream.write(b'"}\n' + text("behind"))
    names, kinds, grown = measured(file)
    assert (names, kinds) == (["before", "behind"], ["too-large"])
    assert grown < (2 * 300 + 32) * MIB


@pytest.mark.study
def test_a_string_beyond_its_limit_costs_three_times_the_file(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\n".join([text("before"), noted(b'"' + b"x\\n" * (20 * MIB) + b'"'), text("behind")]))
    names, kinds, grown = measured(file, string_bytes=32 * MIB)
    assert (names, kinds) == (["before", "behind"], ["too-large"])
    assert grown < 3 * 60 * MIB + 32 * MIB


@pytest.mark.study
def test_a_million_brackets_cost_little(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\n".join([text("before"), noted(b"[" * 10**6 + b"]" * 10**6), text("behind")]))
    names, kinds, grown = measured(file)
    assert (names, kinds) == (["before", "behind"], ["too-deep"])
    assert grown < 64 * MIB


@pytest.mark.study
def test_a_million_edges_between_two_events(tmp_path: Path) -> None:
    """They are read: nothing forbids them. At most twelve times the file's 50 MB."""
    file = tmp_path / "x.jsonl"
    edge = b'{"src": "e0", "dst": "e1", "type": "causal"}'
    file.write_bytes(text(edges=[]).replace(b'"edges": []', b'"edges": [' + b",".join([edge] * 10**6) + b"]"))
    names, kinds, grown = measured(file)
    assert (names, kinds) == (["bad"], [])
    assert grown < 12 * file.stat().st_size


@pytest.mark.study
def test_what_nodes_heard_apart_costs_no_product(tmp_path: Path) -> None:
    """1.6 MB took 500 MB, 3.3 MB four times as much: a set of all messages for each node."""
    file = tmp_path / "x.jsonl"
    file.write_text(langgraph_of_nodes_that_heard_apart(3000))
    names, kinds, grown = measured(file)
    assert (names, kinds) == ([], ["too-many"])
    assert grown < 20 * file.stat().st_size + 128 * MIB


@pytest.mark.study
def test_a_bomb_as_an_eval_archive(tmp_path: Path) -> None:
    file = tmp_path / "x.eval"
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("header.json", "w", force_zip64=True) as member,
    ):
        for _ in range(600):
            member.write(b" " * MIB)
    names, kinds, grown = measured(file)
    assert names == []
    assert kinds == ["zip-bomb"]
    assert grown < 64 * MIB


FULL_DISK = """
import resource, signal, sys
from credit.__main__ import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.argv = ["credit", *sys.argv[1:]]
main()
"""


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["convert", "assign"])  # the second loads JAX
@pytest.mark.slow
def test_a_full_disk_is_one_line_of_error_and_leaves_nothing(command: str, tmp_path: Path) -> None:
    """The disk is full after 2000 bytes."""
    log, out = tmp_path / "x.jsonl", tmp_path / "out"
    log.write_bytes(b"\n".join(text(f"t{i}") for i in range(200)))
    out.mkdir()
    target = out / ("x.parquet" if command == "assign" else "x.jsonl")
    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL_DISK, command, str(log), "-o", str(target)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert list(out.iterdir()) == []
