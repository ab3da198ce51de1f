"""Logs in an S3 bucket, of a server on this machine: read by one process and on a real Ray cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray")
moto_server = pytest.importorskip("moto.server", reason="moto is not installed here; `make integrations` runs this")
s3fs = pytest.importorskip("s3fs")

import credit  # noqa: E402
import credit.ray  # noqa: E402
from credit.cli import cli  # noqa: E402
from graphs.errors import CreditError  # noqa: E402


def line(name: str, task: str, reward: float) -> str:
    event = {"id": "e", "type": "message", "agent": "a"}
    return json.dumps({"trace_id": name, "task_id": task, "events": [event], "rewards": {"team": reward}}) + "\n"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Six files; the traces of each of four groups lie in several."""
    server = moto_server.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        files = s3fs.S3FileSystem()
        files.mkdir("bucket")
        for number in range(6):
            traces = [line(f"t{i}", f"q{i % 4}", i % 3 / 2) for i in range(number, 24, 6)]
            files.pipe(f"bucket/runs/{number}.jsonl", "".join(traces).encode())
        files.pipe("bucket/runs/notes.md", b"no log")
        yield "s3://bucket/runs"
    server.stop()


def test_commands_read_the_bucket(bucket: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["validate", bucket, "--json"])
    assert done.exit_code == 0, done.output
    assert (json.loads(done.output)["traces"], json.loads(done.output)["groups"]) == (24, 4)
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
        with pytest.raises(CreditError, match="in the memory of this process"):
            credit.ray.assign("memory:///runs", output=tmp_path / "other", method="rloo")
        with pytest.raises(CreditError, match="expected a folder that every node sees"):
            credit.ray.assign(bucket, output="s3://bucket/out", method="rloo")
    finally:
        ray.shutdown()
    assert len(parts.files) > 2 and parts.problems == () and again.resumed == len(parts.files)
    traces = credit.read(bucket)
    expected = credit.table(traces, credit.run(traces, "rloo"))
    actual = pq.read_table(tmp_path / "out")
    assert sorted(map(str, actual.to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert set(actual["file"].to_pylist()) == {f"s3://bucket/runs/{number}.jsonl" for number in range(6)}
