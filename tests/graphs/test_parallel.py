"""Reading by several processes gives what reading by one does; a process that is killed is named."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import CreditError
from graphs.readers import parallel, read
from graphs.readers.common.source import Source
from graphs.traces.batch import Traces

TRACE = (
    '{"trace_id": "%s", "task_id": "q", "events": [{"id": "a", "type": "message", "agent": "x", "value": %d}],'
    ' "rewards": {"team": 1}}\n'
)


def logs(folder: Path) -> Path:
    """Six files: traces, a broken line, an id of another file, and a whole file that is no JSON."""
    for i in range(6):
        text = TRACE % (f"t{i}", i) + "{broken\n" * (i == 1) + TRACE % (f"again{i % 3}", i)
        (folder / f"{i}.jsonl").write_text(text if i != 4 else text + '{"trace_id": "cut", "task_id": "q", "events": [')
    return folder


def contents(traces: Traces) -> list[Any]:
    arrays = [*vars(traces.graph).values(), traces.reward, *(a for e in traces.evidence.values() for a in e)]
    return [array.tobytes() for array in arrays] + [
        traces.events, traces.agents, traces.traces, traces.problems, traces.ignored, list(traces.evidence)
    ]  # fmt: skip


def wait_for_processes() -> None:
    parallel._started(1, "native")[1].result()


def test_the_number_of_processes_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = logs(tmp_path)
    alone = read(folder, workers=1, compiled=False)
    assert len(alone.problems) >= 4
    here, read_file, readers = os.getpid(), parallel._read_file, []

    def noted(module: str, source: Source) -> Any:
        if os.getpid() == here:
            wait_for_processes()
            readers.append(source.name)
        return read_file(module, source)

    monkeypatch.setattr(parallel, "_read_file", noted)
    assert contents(read(folder, workers=2, compiled=False)) == contents(alone)
    assert 0 < len(readers) < 6  # the others were read elsewhere


def test_a_killed_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, read_file = os.getpid(), parallel._read_file

    def killed(module: str, source: Source) -> Any:  # a local function: its code goes to the other process
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_processes()
        return read_file(module, source)

    monkeypatch.setattr(parallel, "_read_file", killed)
    with pytest.raises(parallel.WorkerError, match="pass workers=1"):
        read(logs(tmp_path), workers=2, compiled=False)


def test_processes_stay_for_the_next_reading_and_are_started_anew_once_killed(tmp_path: Path) -> None:
    folder = logs(tmp_path)
    wait_for_processes()
    first = parallel._pool(1, os.getpid(), threading.get_ident())
    alone = read(folder, workers=2, compiled=False)
    assert parallel._pool(1, os.getpid(), threading.get_ident()) is first
    with pytest.raises(BrokenProcessPool):
        first.submit(os.kill, first.submit(os.getpid).result(), signal.SIGKILL).result()
    assert contents(read(folder, workers=2, compiled=False)) == contents(
        alone
    )  # which ends before a new process has started


def test_processes_are_started_where_they_are_asked_for(tmp_path: Path) -> None:
    sources = [Source(str(path), path) for path in sorted(logs(tmp_path).iterdir())]
    assert parallel.workers_for(sources, None) == 1
    assert parallel.workers_for(sources, 3) == 3
    assert parallel.workers_for(sources, 99) == len(sources)
    assert parallel.workers_for([*sources, Source("<stdin>", None)], 3) == 1


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_what_is_no_number_of_processes_is_refused(workers: Any, tmp_path: Path) -> None:
    with pytest.raises(CreditError, match="workers is"):
        read(logs(tmp_path), workers=workers, compiled=False)
