"""Chunks of whole groups hold what one batch of everything holds, whatever their size and the form of the files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from graphs.errors import CreditError, NothingReadError
from graphs.logs import read
from graphs.logs.chunk_pieces import ChangedError
from graphs.logs.chunks import read_chunks
from graphs.traces.batch import Traces

ROOT = Path(__file__).resolve().parents[3]


def trace(name: str, task: str, events: int = 3, **more: Any) -> dict[str, Any]:
    listed = [{"id": f"e{i}", "type": "message", "agent": f"a{i % 2}", "value": i / 7} for i in range(events)]
    edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "causal"} for i in range(events - 1)]
    rewards = {"team": len(name) / 3}
    return {"trace_id": name, "task_id": task, "events": listed, "edges": edges, "rewards": rewards, **more}


def lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def folder(path: Path) -> Path:
    """Groups spread over files of five forms; an id twice in two groups, a cycle, a broken line."""
    (path / "a.jsonl").write_bytes(
        lines([trace("t1", "p"), trace("t22", "q", 5)]) + b"\n{broken\n" + lines([trace("t3", "r")])
    )
    (path / "b.jsonl.gz").write_bytes(gzip.compress(lines([trace("u1", "q"), trace("u22", "s", 4)])))
    (path / "c.json").write_text(json.dumps([trace("v1", "p", 2), trace("v22", "s")], indent=1))
    (path / "d.json").write_text(json.dumps(trace("w1", "r"), indent=2))
    around = trace("x1", "q")
    around["edges"].append({"src": "e2", "dst": "e0", "type": "causal"})
    (path / "e.jsonl").write_bytes(b"\xef\xbb\xbf  " + lines([trace("t22", "r"), around, trace("x22", "s")]))
    (path / "f.jsonl").write_bytes(lines([trace("y1", "z", group="p")]).replace(b"\n", b"\r\n") * 2)
    return path


def rows_of(batches: Iterable[Traces]) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Every event by trace and id, with what is read of it and its trace."""
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    for traces in batches:
        values = traces.evidence["value"].array
        for i, event in enumerate(traces.events.to_pylist()):
            row = int(traces.graph.trace_ids[i])
            about = traces.traces.slice(row, 1).to_pylist()[0]
            agent = traces.agents["agent"][int(traces.graph.agent_ids[i])].as_py()
            found[about["trace"], event["event"]] = (event, about, float(traces.reward[row]), agent, float(values[i]))
    return found


@pytest.mark.parametrize("events", [1, 8, 13, 10**9])
def test_chunks_hold_what_one_batch_holds(events: int, tmp_path: Path) -> None:
    whole = read(folder(tmp_path))
    chunks = read_chunks(tmp_path, events=events)
    batches = list(chunks)
    assert len(batches) == len(chunks) == {1: 3, 8: 3, 13: 3}.get(events, 1)
    assert rows_of(batches) == rows_of([whole])
    assert sorted(map(str, chunks.problems)) == sorted(map(str, whole.problems))
    groups = [group for traces in batches for group in set(traces.traces["group"].to_pylist())]
    assert len(groups) == len(set(groups))
    assert rows_of(chunks) == rows_of([whole])  # again, from the start


def test_outcomes_and_groups_kept_elsewhere_are_joined(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines([trace("t1", "p"), trace("t22", "q"), trace("t333", "r")]))
    tables: dict[str, Any] = {"rewards": {"t1": 0.5, "nobody": 1.0}, "groups": {"t333": "p", "no one": "x"}}
    whole = read(tmp_path, **tables)
    chunks = read_chunks(tmp_path, events=1, **tables)
    batches = list(chunks)
    assert [batch.traces["trace"].to_pylist() for batch in batches] == [["t1", "t333"], ["t22"]]
    assert rows_of(batches) == rows_of([whole])
    assert sorted(map(str, chunks.problems)) == sorted(map(str, whole.problems))


@pytest.mark.parametrize("events", [0, -1, True, 2.0])
def test_a_size_that_is_none_is_refused(events: Any, tmp_path: Path) -> None:
    with pytest.raises(CreditError, match="events is"):
        read_chunks(folder(tmp_path), events=events)


def test_what_cannot_be_read_twice_or_by_groups_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CreditError, match="standard input"):
        read_chunks("-", events=10)
    other = tmp_path / "rows.csv"
    other.write_text("trace,group,reward\nt,q,1\n")
    with pytest.raises(CreditError, match="credit convert"):
        read_chunks(other, events=10)
    other.unlink()
    (tmp_path / "a.jsonl").write_bytes(lines([trace("t", "p", 0)]) * 2)
    with pytest.raises(NothingReadError):
        list(read_chunks(tmp_path, events=10))
    (tmp_path / "a.jsonl").write_text('{"trace_id": "t", "task_id": "q", "events": 1}\n' * 2)
    with pytest.raises(NothingReadError):
        read_chunks(tmp_path, events=10)


PEAK = """
import re, sys
import numpy as np
from graphs.logs.chunks import read_chunks
from graphs.logs import read
def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
read(sys.argv[2])
before = peak()
events = sum(traces.sizes.events for traces in read_chunks(sys.argv[1], events=20_000))
print(peak() - before, events)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.study
def test_memory_is_that_of_a_chunk_whatever_the_folder(tmp_path: Path) -> None:
    """A folder eight times as large takes no more memory; both have groups of 8 traces of 1000 events."""
    rng = np.random.default_rng(0)
    grown = []
    for groups in (8, 64):
        path = tmp_path / str(groups)
        path.mkdir()
        for group in range(groups):
            rows = (trace(f"t{group}-{i}", f"g{group}", 1000, note=rng.bytes(4).hex()) for i in range(8))
            (path / f"{group:03}.jsonl").write_bytes(lines(rows))
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(path), str(path / "000.jsonl")],
            capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        bytes_grown, events = map(int, done.stdout.split())
        assert events == groups * 8000
        grown.append(bytes_grown)
    assert grown[1] < grown[0] + (8 << 20)


def _log(names: list[str], reward: float = 1.0) -> str:
    event = {"id": "1", "type": "message", "agent": "x"}
    documents = [
        {"trace_id": name, "task_id": name[0], "events": [event], "rewards": {"team": reward}} for name in names
    ]
    return "".join(json.dumps(document) + "\n" for document in documents)


def _rewrite(path: Path) -> None:
    path.write_text(_log(["a1", "a2", "b1", "b2"], 2.0))
    os.utime(path, (1, 1))


def _rewrite_as_of_then(path: Path) -> None:
    """As `rsync -t` leaves a file: another content of the same length, and the time of the first."""
    before = path.stat()
    path.write_text(_log(["a1", "a2", "b1", "b2"], 2.0))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "shorter": lambda path: path.write_text(_log(["a1", "a2", "b1"])),
    "gone": lambda path: path.unlink(),
    "traces in another order": lambda path: path.write_text(_log(["b1", "a1", "b2", "a2"])),
    "a trace of another task": lambda path: path.write_text(_log(["a1", "a2", "c1", "b2", "b3"])),
    "another reward, as long": _rewrite,
    "another reward, as long and of the same time": _rewrite_as_of_then,
    "another reward, and a trace more": lambda path: path.write_text(_log(["a1", "a2", "b1", "b2", "b3"], 2.0)),
    "no JSON": lambda path: path.write_text("x" * 10_000),
}


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "lines": lambda content: content,
    "gz": lambda content: gzip.compress(content, mtime=0),
    "zst": zstandard.compress,
    "a list": lambda content: b"[" + content.strip().replace(b"\n", b",\n") + b"]",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_the_passes_is_named(tmp_path: Path, change: str, form: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(_log(["a1", "a2", "b1", "b2"]))

    def pack() -> None:
        if form != "lines" and path.exists():
            path.write_bytes(FORMS[form](path.read_bytes()))

    pack()
    chunks = read_chunks(path, events=2)
    first = next(iter(chunks))
    assert first.traces["trace"].to_pylist() == ["a1", "a2"]
    CHANGES[change](path)
    pack()
    with pytest.raises(ChangedError, match=r"log\.jsonl"):
        list(chunks)


def _copy(path: Path) -> None:
    other = path.with_name("copy")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "touch",
    [
        lambda path: path.chmod(0o600),
        lambda path: os.link(path, path.with_name("kept")),
        lambda path: path.rename(path.with_name("away")).rename(path),
        lambda path: os.utime(path, (1, 1)),
        _copy,
    ],
    ids=["rights", "link", "renamed and back", "time", "copy"],
)
def test_a_file_whose_content_stays_is_the_same(tmp_path: Path, touch: Callable[[Path], object], packed: bool) -> None:
    path = tmp_path / "log.jsonl"
    content = _log(["a1", "a2", "b1", "b2"]).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    chunks = read_chunks(path, events=2)
    touch(path)
    assert [one.traces["trace"].to_pylist() for one in chunks] == [["a1", "a2"], ["b1", "b2"]]
    again = read_chunks(path, events=2)
    assert [again.fingerprint(i) for i in range(2)] == [chunks.fingerprint(i) for i in range(2)]


def test_a_log_that_grows_is_read_up_to_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(_log(["a1", "b1", "a2", "b2"]))
    chunks = read_chunks(path, events=2)
    with path.open("a") as file:
        file.write(_log(["a3", "c1"]))
    assert [one.traces["trace"].to_pylist() for one in chunks] == [["a1", "a2"], ["b1", "b2"]]
    assert list(chunks.problems) == []


def test_a_row_of_a_refused_trace_is_told_from_one_that_matches_nothing(tmp_path: Path) -> None:
    """The trace had passed before its events were checked, and its row matched without a word."""
    event = {"id": "x", "type": "message", "agent": "a"}
    lines = [{"trace_id": name, "task_id": "q", "events": [event] * (1 + (name == "b"))} for name in "abc"]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    chunks = read_chunks(tmp_path / "log.jsonl", events=1, rewards={"a": 1.0, "b": 0.5, "nobody": 1.0})
    assert sum(traces.sizes.traces for traces in chunks) == 2
    rows = [(problem.kind, problem.trace, problem.value) for problem in chunks.problems if problem.about == "reward"]
    assert rows == [("unread-outcome", "b", "0.5"), ("unmatched-row", "", "'nobody'")]
