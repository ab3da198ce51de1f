"""Steps that arrive while a run trains: lines of a metrics file, or logs in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphs.errors import CreditError
from graphs.reading.find import is_log
from graphs.text import natural_key

__all__ = ["GrowingFolder", "GrowingMetrics"]


class GrowingMetrics:
    """The lines of a `metrics.jsonl` to which a trainer adds one for each step."""

    def __init__(self, path: Path) -> None:
        self._path, self._read, self._line = path, 0, 0

    def new_lines(self) -> Iterator[dict[str, Any]]:
        """The objects of the lines that were completed since the last call.

        Raises:
          CreditError: a line is no JSON object with a `step`, or the file became shorter; OSError: it cannot be read.
        """
        if self._path.stat().st_size < self._read:
            raise CreditError(f"{self._path} became shorter while it was watched; expected lines to be added")
        with self._path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        for line in content[: content.rfind(b"\n") + 1].splitlines(keepends=True):
            self._read, self._line = self._read + len(line), self._line + 1
            if line.strip():
                yield self._parsed(line)

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            row = json.loads(line)
        except ValueError as error:
            raise CreditError(f"{self._path}, line {self._line}: {error}; expected a JSON object") from error
        if not isinstance(row, dict) or "step" not in row:
            raise CreditError(f"{self._path}, line {self._line}: expected an object with a number `step`")
        return row


class GrowingFolder:
    """The steps of a folder to which a trainer adds logs: each log and each folder directly in it is one step.

    A step is complete when two looks in a row find the same files in it, of the same size and time. Steps stand in the
    natural order of their names, so that `step_10` follows `step_9`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[Any, ...]] = {}
        self._given: dict[str, tuple[Any, ...]] = {}

    def new_steps(self, *, final: bool = False) -> list[Path]:
        """Complete steps that were not returned before; with `final`, all that are there."""
        now = {path.name: _state(path) for path in self.entries()}
        ready = [name for name, state in now.items() if name not in self._given]
        ready = [name for name in ready if final or self._seen.get(name) == now[name]]
        self._seen = now
        self._given |= {name: now[name] for name in ready}
        return [self._folder / name for name in sorted(ready, key=natural_key)]

    def changed_steps(self) -> list[str]:
        """Names of returned steps whose files have changed since; each change is reported once."""
        changed = [name for name, state in self._given.items() if self._seen.get(name, state) != state]
        self._given |= {name: self._seen[name] for name in changed}
        return changed

    def entries(self) -> Iterator[Path]:
        """The files and folders that are steps or will be."""
        for path in self._folder.iterdir():
            if path.name.startswith((".", "_")):
                continue
            if path.is_dir() or (path.is_file() and is_log(path)):
                yield path


def _state(path: Path) -> tuple[Any, ...]:
    """Names, sizes and times of a file, or of all files in a folder."""
    files = [path]
    if path.is_dir():
        files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    states = []
    for file in files:
        try:
            stat = file.stat()
        except FileNotFoundError:  # a temporary file that took its name since it was listed
            continue
        states.append((str(file), stat.st_size, stat.st_mtime_ns))
    return tuple(states)
