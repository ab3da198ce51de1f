"""Progress on standard error: bars with the time left, and spinners; where it is no terminal, a line a minute."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from graphs.text import counted, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from graphs.logs.found_logs import Item
    from graphs.reading.source import Source

__all__ = ["ReadingBar", "progress_bar", "steps", "working"]

EVERY = 60.0
"""Seconds between two lines where there is no terminal."""


def progress_bar(console: Console) -> Progress:
    """A bar with what is done, how much of it, the time so far and the time left; lines where there is no terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return _bar(
        console,
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )


def _bar(console: Console, *columns: ProgressColumn) -> Progress:
    from rich.progress import Progress, TaskID

    class Bar(Progress):
        """A bar that is lines where it is disabled; Rich before 14.3 ends it with an empty line."""

        told = time.monotonic()

        def stop(self) -> None:
            if not self.disable:
                super().stop()

        def update(self, task_id: TaskID, *args: Any, **fields: Any) -> None:
            super().update(task_id, *args, **fields)
            self._tell(task_id)

        def advance(self, task_id: TaskID, advance: float = 1) -> None:
            super().advance(task_id, advance)
            self._tell(task_id)

        def _tell(self, task_id: TaskID) -> None:
            task = self._tasks[task_id]
            if self.disable and task.total and time.monotonic() - self.told >= EVERY:
                self.told = time.monotonic()
                done = f"{task.completed:,.0f} of {task.total:,.0f}"
                past = counted(round((task.elapsed or 0) / 60), "minute")
                console.print(f"{printable(task.description)}: {done} after {past}", soft_wrap=True)

    return Bar(*columns, console=console, transient=True, disable=not console.is_terminal)


class ReadingBar:
    """A bar over files while they are opened, and one over their bytes, in percent, while their records are read.

    Records name their file and the offset in it. Where a size is not known, as of standard input, the bar counts
    nothing.

    Args:
      bar: to add to.
    """

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._sources: list[Source] = []

    def opening(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Wrap the iteration over the files that were found."""
        self._sources = list(sources)
        yield from self._bar.track(self._sources, description="opening files")

    def reading(self, items: Iterable[Item]) -> Iterator[Item]:
        """Wrap the iteration over what readers yield."""
        sizes = {source.name: _size(source) for source in self._sources}
        whole = sum(sizes.values()) if all(sizes.values()) else 0
        task = self._bar.add_task("reading traces, %", total=100 if whole else None)
        begun: dict[str, int] = {}  # bytes behind us, by file
        for item in items:
            place: Any = item.headings[-1] if hasattr(item, "headings") and item.headings else item
            name = getattr(place, "file", None)
            if whole and name in sizes:
                if name not in begun:
                    begun = {file: sizes[file] for file in begun}  # readers take one file after another
                begun[name] = max(begun.get(name, 0), min(getattr(place, "offset", 0), sizes[name]))
                self._bar.update(task, completed=100 * sum(begun.values()) / whole)
            yield item
        if whole:
            self._bar.update(task, completed=100)


def _size(source: Source) -> int:
    with contextlib.suppress(OSError):
        return 0 if source.path is None else source.path.stat().st_size
    return 0


def steps(console: Console, items: Iterable[str], verb: str = "computing") -> Iterator[str]:
    """Iterate over the items with a bar that names the current one."""
    todo = list(items)
    with progress_bar(console) as bar:
        task = bar.add_task(verb, total=len(todo))
        for item in todo:
            bar.update(task, description=printable(f"{verb} {item}"))
            yield item
            bar.advance(task)


@contextlib.contextmanager
def working(console: Console, description: str) -> Iterator[Any]:
    """A spinner with the time so far, for a step whose length is not known beforehand."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    look = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with _bar(console, *look) as bar:
        bar.add_task(printable(description), total=None)
        yield bar
