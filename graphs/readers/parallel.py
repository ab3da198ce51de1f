"""Files read by several processes: the same records, parts and problems in the same order as by one.

The calling process reads too, and the others are handed files once they have started, so that nothing waits for that.
They import NumPy, Arrow and the readers, not JAX and not the caller's own main module, and stay a while for the next
reading.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from graphs.errors import CreditError, Problem
from graphs.readers.common.source import Source
from graphs.readers.formats import reader_of
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

__all__ = ["ALONE", "WorkerError", "read_files", "workers_for"]

ALONE = ("native", "who-and-when")
"""Formats in which every file stands alone; in the others a trace, or the tasks of several, spread over files."""

AHEAD = 32
"""Files that are read before their turn at most."""

IDLE = 30
"""Seconds for which the processes wait for another reading before they end."""

_Items = tuple[list[TraceRecord | Part | Problem], dict[int, Problem]]


class WorkerError(CreditError):
    """A process that read logs ended before it was done."""


def workers_for(sources: Sequence[Source], asked: int | None) -> int:
    """How many processes read the files: as many as asked for and there are files; one where nobody asked.

    Starting one and handing over its columns costs more than it gains where cores are few or busy, which is measured in
    `benchmarks/reading.py`; so it is the caller's choice.

    Raises:
      CreditError: `asked` is no number of processes.
    """
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int) or asked < 1):
        raise CreditError(f"workers is {asked!r}; expected an integer, 1 or more, or None")
    if any(source.path is None for source in sources):
        return 1  # standard input can be read once
    return min(asked or 1, len(sources))


def read_files(module: str, sources: Sequence[Source], workers: int) -> Iterator[TraceRecord | Part | Problem]:
    """What `graphs.readers.MODULE.read` gives for each source, in the order of the sources.

    Raises:
      WorkerError: one of the processes was killed, or had no memory left.
    """
    pool, started = _started(workers - 1, module)
    given: dict[int, Future[_Items]] = {}
    read: dict[int, _Items] = {}
    free = 0  # the first source that nobody has

    def hand_out() -> None:
        nonlocal free
        busy = sum(not future.done() for future in given.values())
        while started.done() and busy < 2 * (workers - 1) and free < len(sources):
            given[free] = pool.submit(_read_file, module, _fresh(sources[free]))
            free, busy = free + 1, busy + 1

    try:
        for turn, source in enumerate(sources):
            hand_out()
            while turn not in read and not (turn in given and given[turn].done()):
                if free >= min(len(sources), turn + AHEAD):
                    break
                mine, free = free, free + 1
                hand_out()
                read[mine] = _read_file(module, sources[mine])
            items, refused = read.pop(turn) if turn in read else given.pop(turn).result()
            yield from items
            source.refused.update(refused)
    except BrokenProcessPool as error:
        problem = "a process that read logs ended before it was done: it was killed, or memory ran out"
        _pool.cache_clear()
        raise WorkerError(f"{problem}; pass workers=1 to read in this process alone") from error
    finally:
        for future in given.values():
            future.cancel()


def _started(processes: int, module: str) -> tuple[ProcessPoolExecutor, Future[None]]:
    """Processes that read, and a future that is done when the first of them can."""
    mine = processes, os.getpid(), threading.get_ident()
    try:
        pool = _pool(*mine)
        return pool, pool.submit(_import, module)  # again each time: those that were idle for long must start anew
    except BrokenProcessPool:  # killed since the last reading
        _pool.cache_clear()
        pool = _pool(*mine)
        return pool, pool.submit(_import, module)


@functools.lru_cache(maxsize=1)
def _pool(processes: int, pid: int, thread: int) -> ProcessPoolExecutor:
    """The processes of a thread; a fork of the caller's process has none of them."""
    from loky import ProcessPoolExecutor  # a pool whose processes do not run the caller's main module again

    return ProcessPoolExecutor(max_workers=processes, timeout=IDLE)


def _import(module: str) -> None:
    reader_of(module)


def _fresh(source: Source) -> Source:
    return Source(source.name, source.path, source.limits)


def _read_file(module: str, source: Source) -> _Items:
    items = list(reader_of(module).read([source]))
    return items, source.refused
