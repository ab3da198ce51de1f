"""Hostile files and folders: sizes, packing, links and names. Each has a named error, and its neighbours are read."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from graphs.errors import NothingReadError, Problem
from graphs.logs import read
from graphs.traces.limits import Limits

from .hostile_text import MIB, SMALL, noted, text


def outcome(*paths: Path | str, **options: Any) -> tuple[list[str], list[Problem]]:
    """Ids of the traces that are read, and the problems."""
    try:
        traces = read(*paths, **options)
    except NothingReadError as error:
        return [], list(error.problems)
    return traces.traces["trace"].to_pylist(), list(traces.problems)


def bomb(pack: Callable[[bytes], bytes]) -> bytes:
    return pack(text() + b"\n" + b" " * (8 * MIB))


FILES: dict[str, tuple[str, str, bytes]] = {
    # name: (kind, name of the file, content), with the limits SMALL
    "a file too long": ("too-large", "x.json", text() + b" " * (5 * MIB)),
    "a bomb of gzip": ("too-large", "x.jsonl.gz", bomb(gzip.compress)),
    "a bomb of Zstandard": ("too-large", "x.jsonl.zst", bomb(zstandard.compress)),
    "a bomb in many frames": (
        "too-large",
        "x.jsonl.zst",
        zstandard.compress(text()) + b"".join([zstandard.compress(b" " * MIB)] * 8),
    ),
    "gzip cut short": ("unreadable", "x.jsonl.gz", gzip.compress(text() * 50)[:-9]),
    "gzip with a wrong checksum": ("unreadable", "x.jsonl.gz", gzip.compress(text())[:-8] + bytes(8)),
    "gzip with garbage behind": ("unreadable", "x.jsonl.gz", gzip.compress(text()) + b"garbage"),
    "Zstandard cut short": ("unreadable", "x.jsonl.zst", zstandard.compress(os.urandom(5000) + text())[:-9]),
    "Zstandard with garbage behind": ("unreadable", "x.jsonl.zst", zstandard.compress(text()) + b"garbage"),
    "gzip within gzip": ("unknown-format", "x.jsonl.gz", gzip.compress(gzip.compress(text()))),
    "a list with an element too deep": (
        "too-deep",
        "x.json",
        b"[" + noted(b"[" * 60 + b"]" * 60) + b"]",
    ),
    "one trace over many lines with a string too long": (
        "too-large",
        "x.json",
        noted(b'"' + b"x" * (600 << 10) + b'"').replace(b', "', b',\n "'),
    ),
    "a line of rows too deep": (
        "too-deep",
        "x.jsonl",
        b'{"trace": "t", "reward": 1, "x": ' + b"[" * 9999 + b"]" * 9999 + b"}",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_named_and_harms_no_neighbour(name: str, tmp_path: Path) -> None:
    kind, called, content = FILES[name]
    (tmp_path / called).write_bytes(content)
    (tmp_path / "good.json").write_bytes(text("good"))
    names, problems = outcome(tmp_path, limits=SMALL)
    assert names == ["good"]
    assert (kind, str(tmp_path / called)) in [(p.kind, p.file) for p in problems]


def test_frames_of_zstandard_one_behind_the_other_are_one_file(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl.zst"
    file.write_bytes(zstandard.compress(text("a") + b"\n") + zstandard.compress(b"") + zstandard.compress(text("b")))
    assert outcome(file) == (["a", "b"], [])


def test_members_of_gzip_one_behind_the_other_are_one_file(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl.gz"
    file.write_bytes(gzip.compress(text("a") + b"\n") + gzip.compress(text("b")))
    assert outcome(file) == (["a", "b"], [])


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(text())
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "back").symlink_to(tmp_path)
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "self.json").symlink_to(tmp_path / "self.json")
    names, problems = outcome(tmp_path)
    assert names == ["bad"]
    assert [p.kind for p in problems] == ["broken-link"] * 3


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    (tmp_path / "good.json").write_bytes(text())
    names, problems = outcome(tmp_path)
    assert (names, [p.kind for p in problems]) == (["bad"], ["not-a-file"])


def test_too_many_files_are_refused_together(tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"{i}.json").write_bytes(text(f"t{i}"))
    names, problems = outcome(tmp_path, limits=Limits(files=3))
    assert (names, [p.kind for p in problems]) == ([], ["too-many"])
    assert outcome(tmp_path, limits=Limits(files=4)) == (["t0", "t1", "t2", "t3"], [])


def test_names_of_files_may_be_hostile(tmp_path: Path) -> None:
    (tmp_path / "\x1b[2J<script>.json").write_bytes(text("a"))
    (tmp_path / "line\nbreak.json").write_bytes(text("b"))
    (tmp_path / "-.json").write_bytes(text("c"))
    (tmp_path / os.fsdecode(b"\xff\xfe.json")).write_bytes(text("d"))
    names, problems = outcome(tmp_path)
    assert (sorted(names), problems) == (["a", "b", "c", "d"], [])
    assert sum("\\xff\\xfe.json" in name for name in read(tmp_path).traces["file"].to_pylist()) == 1


@pytest.mark.parametrize("name", ["x.csv.zst", "x.jsonl.zst"])
def test_equal_rows_in_a_compressed_file_are_refused_before_each_is_read(tmp_path: Path, name: str) -> None:
    """A file of a few hundred bytes held 10^6 rows, which took minutes."""
    row, head = (
        (b"a,q,1.0\n", b"trace,group,reward\n")
        if "csv" in name
        else (b'{"trace": "a", "group": "q", "reward": 1.0}\n', b"")
    )
    path = tmp_path / name
    path.write_bytes(zstandard.compress(head + row * 150_000))
    with pytest.raises(NothingReadError, match=r"at most 1000 times the \d+ bytes of the file, or --limit ratio=N"):
        read(path)
    path.write_bytes(zstandard.compress(head + row * 1000))  # small content is read, however packed
    assert read(path).sizes.events == 1000
