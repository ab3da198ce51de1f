"""Logs in buckets of S3 and Google Cloud Storage, of servers on this machine: by one process and on a Ray cluster."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray")
import credit  # noqa: E402
import credit.ray  # noqa: E402
from credit.cli import cli  # noqa: E402
from graphs.errors import CreditError  # noqa: E402

ABSENT = "the server and its client are not installed here; `make integrations` runs this"


def line(name: str, task: str, reward: float) -> str:
    event, evidence = {"id": "e", "type": "message", "agent": "a"}, {"policy_version": 0}  # files are of one step
    trace = {"trace_id": name, "task_id": task, "events": [event], "rewards": {"team": reward}, "evidence": evidence}
    return json.dumps(trace) + "\n"


@contextlib.contextmanager
def server_of_s3(patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """The address of a bucket, and its file system; workers of a cluster are told by the environment."""
    moto_server = pytest.importorskip("moto.server", reason=ABSENT)
    s3fs = pytest.importorskip("s3fs", reason=ABSENT)
    server = moto_server.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    patch.setenv("AWS_ACCESS_KEY_ID", "any")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    files = s3fs.S3FileSystem()
    files.mkdir("bucket")
    yield "s3://bucket", files
    server.stop()


@contextlib.contextmanager
def server_of_gs(patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """As `server_of_s3`."""
    emulator = pytest.importorskip("gcp_storage_emulator.server", reason=ABSENT)
    patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # which asks Google for the kind of a bucket
    gcsfs = pytest.importorskip("gcsfs", reason=ABSENT)
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    server = emulator.create_server("localhost", port, in_memory=True, default_bucket="bucket")
    server.start()
    patch.setenv("STORAGE_EMULATOR_HOST", f"http://localhost:{port}")
    for scheme in ("GS", "GCS"):
        patch.setenv(f"FSSPEC_{scheme}_TOKEN", "anon")
    yield "gs://bucket", gcsfs.GCSFileSystem(token="anon", endpoint_url=f"http://localhost:{port}")
    server.stop()


@pytest.fixture(scope="module", params=[server_of_s3, server_of_gs], ids=["s3", "gs"])
def bucket(request: pytest.FixtureRequest) -> Iterator[str]:
    """Six files; the traces of each of four groups lie in several."""
    with pytest.MonkeyPatch.context() as patch, request.param(patch) as (address, files):
        for number in range(6):
            traces = [line(f"t{i}", f"q{i % 4}", i % 3 / 2) for i in range(number, 24, 6)]
            files.pipe(f"bucket/runs/{number}.jsonl", "".join(traces).encode())
        files.pipe("bucket/runs/notes.md", b"no log")
        yield f"{address}/runs"


def test_commands_read_the_bucket(bucket: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["validate", bucket, "--json"])
    assert done.exit_code == 0, done.output
    assert (json.loads(done.stdout)["traces"], json.loads(done.stdout)["groups"]) == (24, 4)
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(cli, ["assign", bucket, "-m", "rloo", "-o", str(out), "--chunk-events", "6"])
    assert done.exit_code == 0, done.output
    assert len(out.read_text().splitlines()) == 24


def test_a_cluster_reads_the_bucket(bucket: str, tmp_path: Path) -> None:
    """The same rows as one process, with files that are fetched by the workers."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        parts = credit.ray.assign(bucket, output=tmp_path / "out", method="rloo", events=6)
        again = credit.ray.assign(bucket, output=tmp_path / "out", method="rloo", events=6)
        fsspec.filesystem("memory").pipe("/runs/0.jsonl", line("t0", "q0", 1.0).encode())
        with pytest.raises(CreditError, match="in the memory of this process"):
            credit.ray.assign("memory:///runs", output=tmp_path / "other", method="rloo")
        with pytest.raises(CreditError, match="expected a folder that every node sees"):
            credit.ray.assign(bucket, output=f"{bucket}/out", method="rloo")
    finally:
        ray.shutdown()
    assert len(parts.files) > 2 and parts.problems == () and again.resumed == len(parts.files)
    traces = credit.read(bucket)
    expected = credit.table(traces, credit.run(traces, "rloo"))
    actual = pq.read_table(tmp_path / "out")
    assert sorted(map(str, actual.to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert set(actual["file"].to_pylist()) == {f"{bucket}/{number}.jsonl" for number in range(6)}
