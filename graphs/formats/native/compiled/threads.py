"""When native logs are read by compiled loops, and by several threads, which these loops let run side by side.

The loops need Numba (the extra `fast`). The first use on a machine compiles them, which takes ten seconds or more, and
the first use in a process loads them, a second; so they are used where much is read, or where they are loaded already.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from graphs.errors import CreditError, Problem, expect
from graphs.formats import native
from graphs.formats.native.batches import BATCH_BYTES
from graphs.reading.remote import file_size
from graphs.reading.source import Source
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["COMPILING_PAYS", "compiles", "read_threads", "threads_for"]

COMPILING_PAYS = 256 << 20
"""Total size of the files in bytes, before unpacking, from which compiled loops are used by default."""

MOST_THREADS = 4
"""Threads that read at most: each holds a file, and what follows the loops runs one at a time."""

_KERNELS = "graphs.formats.native.compiled.kernels"


def compiles(sources: Sequence[Source], asked: bool | None) -> bool:
    """Whether native logs are read by compiled loops: as asked; else where they are loaded or the logs are large.

    Raises:
      CreditError: `asked` is no truth value, or they are asked for and Numba is not installed.
    """
    expect("compiled", asked, (bool, type(None)), "True, False or None")
    if asked is False:
        return False
    if importlib.util.find_spec("numba") is None:
        if asked:
            raise CreditError("compiled=True needs Numba; pip install 'orchestration-credit[fast]'")
        return False
    return bool(asked) or _KERNELS in sys.modules or sum(map(_size, sources)) >= COMPILING_PAYS


def _size(source: Source) -> int:
    if source.path is None:
        return 0
    try:
        return file_size(source.path)
    except OSError:  # the reader says that it cannot be read
        return 0


def threads_for(sources: Sequence[Source]) -> int:
    """How many threads read by compiled loops: as many as there are cores and files, up to `MOST_THREADS`."""
    if any(source.path is None for source in sources):
        return 1  # standard input can be read once
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_THREADS, len(sources))


def read_threads(sources: Sequence[Source], threads: int) -> Iterator[TraceRecord | Part | Problem]:
    """The same as `graphs.formats.native.read`, by compiled loops, for all sources in their order.

    A thread is given a file, or several small ones; one more share than there are threads is read before its turn.
    """
    waiting: deque[Future[list[TraceRecord | Part | Problem]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="credit-reader") as pool:
        try:
            for share in _shares(sources):
                waiting.append(pool.submit(_read, share))
                if len(waiting) > threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _shares(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """The sources one behind the other, in shares that become columns at once or are a single file."""
    share: list[Source] = []
    size = 0
    for source in sources:
        own = _size(source)
        if share and size + own > BATCH_BYTES:
            yield share
            share, size = [], 0
        share.append(source)
        size += own
    if share:
        yield share


def _read(share: Sequence[Source]) -> list[TraceRecord | Part | Problem]:
    return list(native.read(share, compiled=True))
