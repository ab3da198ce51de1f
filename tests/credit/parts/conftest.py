"""Tasks in this process, in the place of a cluster's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from credit.ray import calls, part_runs
from graphs.logs.chunks import read_chunks


class TaskError(Exception):
    """As Ray's: the error of a task is its `cause`."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class TasksHere:
    """What the library uses of Ray. A task runs when its result is asked for, in a folder of its own, as a worker does.

    `left` counts down the results that are given until the process is "killed".
    """

    exceptions = SimpleNamespace(RayTaskError=TaskError)

    def __init__(self, folder: Path) -> None:
        self.left, self._folder = 1 << 30, folder
        self.cancelled = 0

    def put(self, value: Any) -> Any:
        return value

    def remote(self, task: Callable[..., Any]) -> Any:
        calls = SimpleNamespace(remote=lambda *given: lambda: task(*given))
        return SimpleNamespace(options=lambda **_: calls)

    def cancel(self, task: Any) -> None:
        self.cancelled += 1

    def get(self, task: Any) -> Any:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        before = Path.cwd()
        os.chdir(self._folder)
        try:
            return task()
        except Exception as error:
            raise TaskError(error) from error
        finally:
            os.chdir(before)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TasksHere]:
    tasks = TasksHere(tmp_path_factory.mktemp("worker"))

    def chunks_here(paths: Any, events: Any, *reading: Any) -> Any:
        names = ("reward", "rewards", "groups", "group_by", "limits")
        return read_chunks(*paths, events=events, **dict(zip(names, reading, strict=True)))

    monkeypatch.setattr(calls, "chunks_on_cluster", chunks_here)
    monkeypatch.setattr(part_runs, "connected", lambda: tasks)
    yield tasks
