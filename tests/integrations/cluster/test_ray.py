"""Parts of native logs on a real Ray cluster: the rows of one process, whatever fails on the way."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray")

import credit  # noqa: E402
import credit.ray  # noqa: E402
from credit.cli import cli  # noqa: E402
from credit.methods.chunked import DIVISIBLE, ChunkedMethod  # noqa: E402
from graphs.errors import CreditError  # noqa: E402
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TRACE_EVIDENCE  # noqa: E402

EVENTS = 60  # of a part, here
REORDERED = ("discounted_return", "gae", "maporl", "puppeteer", "marti")
"""Methods whose last digits depend on where in a batch a trace is: equal where one process takes the same parts."""


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[None]:
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def simulated(nodes: int) -> Iterator[None]:
    """A cluster of nodes with one worker each, all of them on this machine."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(nodes - 1):
        made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    try:
        assert len([node for node in ray.nodes() if node["Alive"]]) == ray.cluster_resources()["CPU"] == nodes
        yield
    finally:
        ray.shutdown()
        made.shutdown()


def write_logs(folder: Path, traces: int = 48, files: int = 6, groups: int = 9) -> Path:
    """Logs with every key of evidence that one log can hold; the traces of a group lie in several files."""
    rng = np.random.default_rng(3)
    folder.mkdir()
    for file in range(files):
        lines = []
        for number in range(file, traces, files):
            events, chosen = [], ""
            for k in range(int(rng.integers(1, 7))):
                evidence = {}
                for key, spec in EVENT_EVIDENCE.items():
                    drawn = {"float": float(rng.uniform(0.1, 0.9)), "count": int(rng.integers(1, 9)), "id": f"x{k % 2}"}
                    evidence[key] = bool(rng.integers(2)) if key in FLAGS else drawn[spec.kind]
                evidence |= {key: -evidence[key] for key in ("log_prob", "hindsight_log_prob")}
                evidence["node"] = f"{number}.{k}"  # a node is one draw: traces that share one agree in what it says
                evidence["context"] = f"after {chosen}"  # traces share one only where all before it is equal
                del evidence["agent_reward"]  # an outcome of an agent is not compared with that of its trace
                agent = ("planner", "solver", "critic")[int(rng.integers(3))]
                chosen += f"{agent} {evidence['alternative']}, "
                events.append({"id": f"e{k}", "t": k, "type": "message", "agent": agent} | evidence)
            trace = {"trace_id": f"t{number}", "task_id": f"q{number % groups}", "events": events}
            trace |= {"rewards": {"team": float(rng.integers(0, 9)) / 8}, "costs": {"tokens": 9, "wall_clock_s": 1.0}}
            lines.append(json.dumps(trace | {"evidence": dict.fromkeys(TRACE_EVIDENCE, 1.0)}) + "\n")
        (folder / f"{file:04}.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_logs(tmp_path / "logs")


def rows(table: pa.Table) -> dict[tuple[str, str], dict[str, object]]:
    return {(row["trace"], row["event"]): row for row in table.to_pylist()}


def differences(actual: pa.Table, expected: pa.Table, exactly: bool = True) -> list[str]:
    """Where two tables differ, row order aside."""
    a, b = rows(actual), rows(expected)
    if a.keys() != b.keys() or actual.column_names != expected.column_names:
        return ["other rows or columns"]
    out = []
    for key, row in b.items():
        for name, value in row.items():
            given = a[key][name]
            near = not exactly and isinstance(value, float) and np.isclose(given, value, rtol=1e-5, atol=1e-6)
            if given != value and not near:
                out.append(f"{name} of {key} is {given}; expected {value}")
    return out


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, pa.Table]]:
    """Logs, and one process' table of every method that can be divided."""
    logs = write_logs(tmp_path_factory.mktemp("all") / "logs")
    traces = credit.read(logs)
    divisible = [name for name, method in credit.METHODS.items() if method.scope in DIVISIBLE]
    return logs, {name: credit.table(traces, credit.run(traces, name)) for name in divisible}


@pytest.fixture(scope="module")
def in_parts(tables: tuple[Path, dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """One process' tables of the methods in `REORDERED`, part by part, as `--chunk-events` makes them."""
    parts = list(credit.read_chunks(tables[0], events=EVENTS))
    methods = {name: ChunkedMethod(name) for name in REORDERED}
    return {
        name: pa.concat_tables([credit.table(part, method.run(part)) for part in parts], promote_options="permissive")
        for name, method in methods.items()
    }


@pytest.mark.parametrize(
    ("started", "of_all"),
    [
        pytest.param(lambda: cluster(2), False, id="2 workers"),
        pytest.param(lambda: cluster(4), False, id="4 workers"),
        pytest.param(lambda: simulated(3), False, id="3 nodes"),
        pytest.param(lambda: cluster(2), True, id="all methods", marks=pytest.mark.study),
    ],
)
def test_every_method_gives_the_rows_of_one_process(
    tables: tuple[Path, dict[str, pa.Table]],
    in_parts: dict[str, pa.Table],
    of_each_kind: set[str],
    tmp_path: Path,
    started: Callable[[], contextlib.AbstractContextManager[None]],
    of_all: bool,
) -> None:
    """Bit for bit, those of `REORDERED` by the same parts; a method that no part can give is refused by name.

    Each method is compiled in each worker, which takes minutes: studies run all, other tests one of each kind.
    """
    logs, all_tables = tables
    expected = {name: table for name, table in all_tables.items() if of_all or name in of_each_kind | set(REORDERED)}
    faults: dict[str, list[str]] = {}
    with started():
        for name, table in expected.items():
            parts = credit.ray.assign(logs, output=tmp_path / name, method=name, events=EVENTS)
            assert len(parts.files) > 2 and parts.problems == ()
            given = pq.read_table(tmp_path / name)
            found = differences(given, table, exactly=name not in REORDERED)
            found += differences(given, in_parts.get(name, table))
            if found:
                faults[name] = found[:3]
        for name in credit.METHODS.keys() - all_tables.keys():
            with pytest.raises(CreditError, match=f"method '{name}' cannot be computed in chunks"):
                credit.ray.assign(logs, output=tmp_path / "refused", method=name)
    assert faults == {}


def test_ledgers_are_those_of_one_process(logs: Path, tmp_path: Path) -> None:
    from credit.ledger.from_methods import compose_claims

    traces = credit.read(logs)
    claims = {name: credit.run(traces, name) for name in ("rloo", "c3")}
    with cluster(2):
        parts = credit.ray.compose(logs, output=tmp_path / "ledger", methods=claims, events=EVENTS)
    expected = compose_claims(traces, claims).table(traces, "event")
    actual = pq.read_table(tmp_path / "ledger")
    assert parts.rows == expected.num_rows == actual.num_rows
    assert sorted(map(str, actual.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_a_bad_file_of_a_thousand_is_named_and_rewards_of_a_table_are_joined(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", traces=1000, files=1000)
    (logs / "0500.jsonl").write_text("{broken\n")
    rewards = {f"t{number}": number / 1000 for number in range(990)} | {"nobody": 1.0}
    with cluster(2):
        parts = credit.ray.assign(logs, output=tmp_path / "out", method="rloo", rewards=rewards, events=2000)
    kinds = {(problem.kind, Path(problem.file).name, problem.value) for problem in parts.problems}
    assert ("unknown-format", "0500.jsonl") in {kind[:2] for kind in kinds}
    assert {kind[2] for kind in kinds if kind[0] == "unmatched-row"} == {"'nobody'", "'t500'"}
    assert len(parts.problems) == 3
    assert str(parts.sources) == "rewards: 989 of 999 traces from <rewards>, 10 from the log"
    traces = credit.read(logs, rewards=rewards)
    assert differences(pq.read_table(tmp_path / "out"), credit.table(traces, credit.run(traces, "rloo"))) == []


def peak_of_workers() -> int:
    """The most memory that any worker at hand has had."""
    found = [0]
    for pid in processes(b"ray::"):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            found += [int(kilobytes) * 1024 for kilobytes in re.findall(r"VmHWM:\s*(\d+) kB", status)]
    return max(found)


def test_memory_of_a_worker_is_bounded_by_its_part(tmp_path: Path) -> None:
    """Eight times the logs in parts of one size need no more, and larger parts of the same logs do."""
    event = '{{"id": "e{0}", "type": "message", "agent": "a{1}", "content": "{2}"}}'
    events = ", ".join(event.format(k, k % 3, "x" * 200) for k in range(1000))
    for name, files in (("few", 2), ("many", 16)):
        (tmp_path / name).mkdir()
        for file in range(files):
            line = '{{"trace_id": "t{0}-{1}", "task_id": "q{0}-{2}", "rewards": {{"team": {3}}}, "events": [{4}]}}\n'
            text = "".join(line.format(file, i, i // 4, i % 2, events) for i in range(40))
            (tmp_path / name / f"{file}.jsonl").write_text(text)
    peaks = []
    with cluster(1):
        for name, size in (("few", 20_000), ("few", 20_000), ("many", 20_000), ("many", 320_000)):
            out = tmp_path / f"out{len(peaks)}"
            parts = credit.ray.assign(tmp_path / name, output=out, method="rloo", events=size)
            assert parts.rows == sum(1 for _ in (tmp_path / name).iterdir()) * 40_000
            peaks.append(peak_of_workers())
    logs = sum(file.stat().st_size for file in (tmp_path / "many").iterdir())
    assert peaks[2] - peaks[1] < logs / 10
    assert peaks[3] - peaks[2] > logs / 4  # and the measurement sees what parts of another size take


def processes(title: bytes) -> list[int]:
    """Processes of this machine whose title begins so."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes().startswith(title):
                    found.append(int(entry.name))
    return found


def test_a_worker_that_dies_is_replaced(logs: Path, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        end = time.monotonic() + 120
        while not killed and time.monotonic() < end:
            for pid in processes(b"ray::make_part")[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.02)

    with cluster(2):
        killer = threading.Thread(target=kill_one)
        killer.start()
        credit.ray.assign(logs, output=tmp_path / "out", method="dr_mas", events=EVENTS)
        killer.join(timeout=130)
    assert killed
    traces = credit.read(logs)
    assert differences(pq.read_table(tmp_path / "out"), credit.table(traces, credit.run(traces, "dr_mas"))) == []


def test_a_run_whose_driver_was_killed_is_resumed(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "credit", "assign", str(logs), "-o", str(out), "-m", "dr_mas", "--engine", "ray"]
    command += ["--chunk-events", "12"]
    log = tmp_path / "log"
    with log.open("wb") as stream:
        driver = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
        end = time.monotonic() + 240
        while not list(out.glob("_parts/*.json")) and driver.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait(timeout=60)
    assert list(out.glob("_parts/*.json")), log.read_text()[-2000:]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert 0 < said["resumed"] <= said["parts"]
    traces = credit.read(logs)
    assert differences(pq.read_table(out), credit.table(traces, credit.run(traces, "dr_mas"))) == []


def test_workers_that_started_in_another_folder_and_a_refusal_of_every_part(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths are those of the caller; what every part refuses leaves nothing."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with cluster(2):
        monkeypatch.chdir(tmp_path)
        parts = credit.ray.assign("logs", output="out", method="rloo", events=EVENTS)
        with pytest.raises(CreditError, match=r"baseline is 'mean'|own_outcome"):  # which only the method knows
            credit.ray.assign(
                "logs", output="none", method="c3", options={"baseline": "mean", "own_outcome": False}, events=EVENTS
            )
    assert parts.rows == pq.read_table(tmp_path / "out").num_rows and not (tmp_path / "none").exists()
    traces = credit.read("logs")
    assert differences(pq.read_table("out"), credit.table(traces, credit.run(traces, "rloo"))) == []


def test_what_is_refused(logs: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    trace = {"trace_id": "t", "task_id": "q", "events": [{"id": "e", "type": "message", "agent": "a"}]}
    (bare / "log.jsonl").write_text(json.dumps(trace | {"rewards": {"team": 1.0}}))
    (tmp_path / "file").write_text("")
    with cluster(2):
        credit.ray.assign(logs, output=tmp_path / "out", method="rloo")
        with pytest.raises(CreditError, match="holds another run, 'assign rloo'"):
            credit.ray.assign(logs, output=tmp_path / "out", method="dr_mas")
        with pytest.raises(CreditError, match="needs evidence that the log does not have"):
            credit.ray.assign(bare, output=tmp_path / "none", method="gae")
        with pytest.raises(CreditError, match="is a file; expected a folder"):
            credit.ray.assign(logs, output=tmp_path / "file", method="rloo")
        done = CliRunner().invoke(cli, ["assign", str(logs), "-o", "-", "--engine", "ray"])
        assert done.exit_code == 1 and "expected a folder" in done.output
