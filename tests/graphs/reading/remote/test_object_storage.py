"""Addresses of object storage: the logs of a folder there are those of a folder here."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sys
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.ray.cluster import chunks_on_cluster
from graphs.errors import CreditError, NothingReadError
from graphs.logs.chunk_pieces import ChangedError
from graphs.reading.addresses import FetchedPath, file_size, list_remote, local_path
from graphs.reading.find import find_sources
from graphs.traces.cache import write_cache
from graphs.traces.limits import Limits

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed here")


def line(name: str, task: str, reward: float) -> str:
    event = {"id": "e", "type": "message", "agent": "a"}
    return json.dumps({"trace_id": name, "task_id": task, "events": [event], "rewards": {"team": reward}}) + "\n"


LOGS = {
    "runs/one.jsonl": (line("a", "q", 1.0) + line("b", "q", 0.0)).encode(),
    "runs/deep/two.jsonl.gz": gzip.compress(line("c", "q", 0.5).encode()),
    "runs/notes.md": b"no log",
}


@pytest.fixture
def bucket() -> Iterator[str]:
    """Logs in a file system in memory, under a name of their own."""
    files, root = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
    for name, content in LOGS.items():
        files.pipe(f"{root}/{name}", content)
    yield f"memory://{root}"
    files.rm(root, recursive=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in LOGS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def advantages(traces: Any) -> dict[str, float]:
    result = credit.run(traces, "rloo")
    return dict(zip(traces.traces["trace"].to_pylist(), np.asarray(result.advantage).tolist(), strict=False))


def test_a_folder_there_is_a_folder_here(bucket: str, folder: Path) -> None:
    there, here = credit.read(f"{bucket}/runs"), credit.read(folder / "runs")
    assert advantages(there) == advantages(here) == {"a": 0.75, "b": -0.75, "c": 0.0}
    assert [problem.kind for problem in there.problems] == ["group-over-files"]
    assert there.ignored == (f"{bucket}/runs/notes.md",)
    assert set(there.events["file"].to_pylist()) == {f"{bucket}/runs/one.jsonl", f"{bucket}/runs/deep/two.jsonl.gz"}
    by_address = credit.read(folder.joinpath("runs").as_uri())
    assert advantages(by_address) == advantages(here)


def test_chunks_and_single_files(bucket: str) -> None:
    assert credit.read(f"{bucket}/runs/one.jsonl").traces.num_rows == 2
    assert sum(chunk.sizes.traces for chunk in credit.read_chunks(f"{bucket}/runs", events=1)) == 3


def test_commands_read_addresses(bucket: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(cli, ["assign", f"{bucket}/runs", "-m", "rloo", "-o", str(out)])
    assert done.exit_code == 0, done.output
    rows = [json.loads(text) for text in out.read_text().splitlines()]
    assert {row["trace"]: row["advantage"] for row in rows} == {"a": 0.75, "b": -0.75, "c": 0.0}
    done = CliRunner().invoke(cli, ["validate", f"{bucket}/runs", "--json"])
    assert done.exit_code == 0 and json.loads(done.output)["traces"] == 3


def test_nothing_is_fetched_to_list_and_to_learn_sizes(bucket: str) -> None:
    sources, _, _ = find_sources([f"{bucket}/runs/one.jsonl"])
    path = sources[0].path
    assert isinstance(path, FetchedPath) and file_size(path) == len(LOGS["runs/one.jsonl"])
    assert sources[0].head(9) == LOGS["runs/one.jsonl"][:9]
    assert not Path(str(path)).exists()
    again = pickle.loads(pickle.dumps(path))
    assert again.read_bytes() == LOGS["runs/one.jsonl"] and Path(str(path)).exists()


def test_what_cannot_be_read_is_a_problem(bucket: str) -> None:
    with pytest.raises(NothingReadError) as caught:
        credit.read(f"{bucket}/absent")
    assert [problem.kind for problem in caught.value.problems] == ["no-such-file"]
    with pytest.raises(NothingReadError) as caught:
        credit.read(f"{bucket}/runs/one.jsonl", limits=Limits(file_bytes=10))
    assert caught.value.problems[0].file == f"{bucket}/runs/one.jsonl"
    with pytest.raises(CreditError, match="expected a scheme that fsspec knows"):
        credit.read("nosuchscheme://x/y")


def test_chains_of_addresses_are_read(bucket: str) -> None:
    """They were paths, or lost the archive on the way. A worker gets a pickled path and fetches for itself."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/one.jsonl", LOGS["runs/one.jsonl"])
    fsspec.filesystem("memory").pipe(bucket.removeprefix("memory://") + "/logs.zip", packed.getvalue())
    plain = credit.read(f"{bucket}/runs/one.jsonl").traces["trace"].to_pylist()
    for chain in (
        f"zip://in::{bucket}/logs.zip",
        f"zip://::{bucket}/logs.zip",
        f"simplecache::{bucket}/runs/one.jsonl",
        f"simplecache::zip://in/one.jsonl::{bucket}/logs.zip",
    ):
        assert credit.read(chain).traces["trace"].to_pylist() == plain, chain
        (source,) = find_sources([chain])[0]
        assert pickle.loads(pickle.dumps(source.path)).read_bytes() == LOGS["runs/one.jsonl"]
        with pytest.raises(CreditError, match="in the memory of this process"):
            chunks_on_cluster([chain], 1, "team", None, None, (), Limits())


def test_a_chain_to_an_archive_here(tmp_path: Path) -> None:
    """The link of the archive was rewritten in place of that of its members; damage ended in a traceback."""
    place = tmp_path / "logs.zip"
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("in/one.jsonl", LOGS["runs/one.jsonl"])
    for chain in (f"zip::file://{place}", f"simplecache::zip::file://{place}", f"zip://in::file://{place}"):
        assert credit.read(chain).traces["trace"].to_pylist() == ["a", "b"], chain
    place.write_bytes(b"no archive")
    with pytest.raises(NothingReadError, match="BadZipFile"):
        credit.read(f"zip://in::file://{place}")


def test_addresses_of_files_with_a_host_a_query_or_a_fragment() -> None:
    """`localhost2/runs` was read as `2/runs`, and `a#1.jsonl` as `a`."""
    assert local_path("file://localhost/runs").as_posix() == "/runs"
    assert local_path("file://localhost2/runs").as_posix() == "localhost2/runs"
    for name in ("a#1.jsonl", "a?b.jsonl"):
        with pytest.raises(CreditError, match="expected %3F or %23"):
            local_path(f"file:///runs/{name}")
    assert local_path("file:///runs/a%231.jsonl").as_posix() == "/runs/a#1.jsonl"


def test_paths_with_colons_are_paths_and_file_addresses_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run:3/log.jsonl", "a::b.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(LOGS["runs/one.jsonl"])
        for address in (name, f"file://{tmp_path}/{name}", f"file://{name}"):
            assert credit.read(address).traces.num_rows == 2, address
    log = tmp_path / "log.jsonl"
    log.write_bytes(LOGS["runs/one.jsonl"])
    done = CliRunner().invoke(cli, ["assign", f"file://{log}", "-o", str(log)])
    assert done.exit_code == 1 and "is an input" in " ".join(done.output.split())
    assert log.read_bytes() == LOGS["runs/one.jsonl"]  # its advantages took its place


def test_a_key_that_leads_outside_stays_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of object storage may hold any text, and this file system lists two such keys."""
    files = fsspec.filesystem("memory")
    keys = {"/x/../../escaped.jsonl": {"size": 3, "type": "file"}, "/x//y.jsonl": {"size": 3, "type": "file"}}
    monkeypatch.setattr(type(files), "find", lambda self, root, detail: keys)
    paths = [path for _, path, _ in list_remote("memory:///x")]
    assert len({path.parent for path in paths}) == 1 and {path.suffix for path in paths} == {".jsonl"}
    assert not any(".." in path.parts for path in paths) and len(set(paths)) == 2


def test_a_new_content_is_fetched_again(bucket: str) -> None:
    assert credit.read(f"{bucket}/runs/one.jsonl").traces.num_rows == 2
    fsspec.filesystem("memory").pipe(bucket.removeprefix("memory://") + "/runs/one.jsonl", line("z", "q", 1.0).encode())
    assert credit.read(f"{bucket}/runs/one.jsonl").traces["trace"].to_pylist() == ["z"]


def test_a_cache_behind_an_address_is_read_as_one_here(bucket: str, tmp_path: Path) -> None:
    """It was told by the path before the address was known to be one, and refused as a cache among logs."""
    traces = credit.read(f"{bucket}/runs/one.jsonl")
    write_cache(traces, tmp_path / "cache.parquet")
    packed = (tmp_path / "cache.parquet").read_bytes()
    fsspec.filesystem("memory").pipe(bucket.removeprefix("memory://") + "/cache.parquet", packed)
    again = credit.read(f"{bucket}/cache.parquet")
    assert again.traces.equals(traces.traces) and again.problems == ()
    with pytest.raises(CreditError, match="of format cache; expected native logs"):
        credit.read_chunks(tmp_path / "cache.parquet", events=1)


@pytest.mark.parametrize("fetched", [False, True], ids=["before its fetch", "after its fetch"])
def test_a_file_that_was_rewritten_as_long_is_another(bucket: str, fetched: bool) -> None:
    """Between the passes, where it is fetched again, and between two runs, of which the second would keep parts."""
    address = f"{bucket}/runs/one.jsonl"
    chunks = credit.read_chunks(address, events=1)
    before, sources = chunks.fingerprint(0), chunks._corpus.sources
    listed = find_sources([address])[0][0].path
    assert listed is not None
    if fetched:
        assert listed.read_bytes() == LOGS["runs/one.jsonl"]
    new = LOGS["runs/one.jsonl"].replace(b"1.0", b"9.0")
    fsspec.filesystem("memory").pipe(address.removeprefix("memory://"), new)
    assert credit.read_chunks(address, events=1).fingerprint(0) != before
    if fetched:
        assert listed.read_bytes() == LOGS["runs/one.jsonl"]  # the copy of this process stays what was listed
        return
    Path(str(sources[0].path)).unlink()  # as in a worker that has not fetched it yet
    with pytest.raises(ChangedError, match=r"one\.jsonl has another created than when it was listed"):
        list(chunks)


class NoCredentialsError(Exception):
    """As botocore's, which is no OSError."""


@pytest.mark.parametrize("call", ["find", "read_block", "open", "info"])
def test_storage_that_cannot_be_reached_is_a_problem_of_its_file(
    bucket: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise NoCredentialsError("Unable to locate credentials")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), call, fail)
    with pytest.raises(NothingReadError, match="NoCredentialsError: Unable to locate credentials") as caught:
        credit.read(f"{bucket}/runs/one.jsonl")
    assert [(problem.kind, problem.file) for problem in caught.value.problems] == [
        ("unreadable", f"{bucket}/runs/one.jsonl")
    ]
    done = CliRunner().invoke(cli, ["validate", f"{bucket}/runs/one.jsonl"])
    assert done.exit_code != 0 and isinstance(done.exception, SystemExit)
    assert "NoCredentialsError: Unable to locate credentials" in " ".join(done.output.split())


def test_a_scheme_without_an_extra_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(address: str) -> None:
        raise ImportError("Install huggingface_hub to access HfFileSystem")

    monkeypatch.setattr("fsspec.core.url_to_fs", fail)
    with pytest.raises(CreditError, match="Install huggingface_hub") as caught:
        credit.read("hf://datasets/a/b")
    assert "orchestration-credit[" not in str(caught.value)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(CreditError, match=r'pip install "orchestration-credit\[s3\]"'):
        credit.read("s3://bucket/runs")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(CreditError, match=r"fsspec is not installed.*orchestration-credit\[gcs\]"):
        credit.read("gs://bucket/runs")
