"""Progress on standard error, where that is a terminal: bars with the time left, and spinners."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from graphs.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["progress_bar", "steps", "working"]


def progress_bar(console: Console) -> Progress:
    """A bar with what is done, how much of it, the time so far and the time left; silent where there is no terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def steps(console: Console, items: Iterable[str], verb: str = "computing") -> Iterator[str]:
    """The items, with a bar that names the one that is at work."""
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
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    look = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*look, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task(printable(description), total=None)
        yield bar
