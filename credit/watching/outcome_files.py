"""Tables of outcomes in a folder of logs that is watched: they are no steps."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from graphs.errors import Problem
from graphs.logs.found_logs import sort_sources
from graphs.logs.outcome_tables import states_outcomes
from graphs.reading.find import find_sources, identity, without_tables
from graphs.reading.source import Source
from graphs.traces.limits import DEFAULT, Limits

__all__ = ["OutcomeFiles"]


class OutcomeFiles:
    """Tells files of outcomes from steps, by what else the folder holds.

    Args:
      entries: gives the files and folders that may be steps, as they are now.
      tables: the files of `--rewards` and `--groups`.
      detects: whether formats are detected; else all files have the one that the user named.
      limits: bounds on what is read.
    """

    def __init__(
        self,
        entries: Callable[[], Iterable[Path]],
        tables: Iterable[str | None] = (),
        *,
        detects: bool = True,
        limits: Limits = DEFAULT,
    ) -> None:
        self._entries, self._detects, self._limits = entries, detects, limits
        self._tables = [table for table in tables if table is not None]
        self._no_logs: set[tuple[str, int, int]] = set()  # states of files that are no logs, or state outcomes alone

    def is_given(self, step: Path) -> bool:
        """Whether a file is a table that an option names."""
        return identity(step) in {identity(Path(table)) for table in self._tables}

    def waits(self, step: Path) -> Problem | None:
        """The problem of a first file that states outcomes alone: what arrives next tells whether it is a step."""
        file = self._outcomes(step)
        if file is None:
            return None
        expected = "a log beside it, or another such table, which makes each a step: it is not read before one arrives"
        return Problem("outcomes-alone", file.name, 0, "content", "a table of outcomes", expected)

    def _outcomes(self, step: Path) -> Source | None:
        """The file of a step, where its columns are those of outcomes alone; None for another step."""
        if step.is_dir() or not self._detects:
            return None
        source = next(iter(find_sources([step], self._limits)[0]), None)
        return source if source is not None and states_outcomes(source) else None

    def problem(self, step: Path) -> Problem | None:
        """The problem of a file that states the outcomes of logs beside it; None for a step."""
        file = self._outcomes(step)
        if file is None:
            return None
        sources, _ = without_tables(find_sources(self._entries(), self._limits)[0], self._tables)
        for source in sources:
            state = _state(source)
            if source.name == file.name or state in self._no_logs:
                continue
            problems = sort_sources([dataclasses.replace(file, is_named=False), source])[1]
            found = next((p for p in problems if p.kind == "outcomes-among-logs" and p.file == file.name), None)
            if found is not None:
                return found
            self._no_logs.add(state)
        return None


def _state(source: Source) -> tuple[str, int, int]:
    """The name, size and time of a file; a trainer may have moved it since it was listed."""
    try:
        status = os.stat(source.name)
    except OSError:
        return source.name, 0, 0
    return source.name, status.st_size, status.st_mtime_ns
