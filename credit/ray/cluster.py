"""Ray: the connection, the results of tasks, and the first pass over the files as tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphs.errors import CreditError, MissingExtraError
from graphs.logs.chunk_index import Glimpse
from graphs.logs.chunks import Chunks, read_chunks
from graphs.reading.addresses import file_size, links_of
from graphs.reading.source import Source
from graphs.traces.limits import Limits

__all__ = ["EVENTS", "RETRIES", "chunks_on_cluster", "connected", "results_of"]

EVENTS = 200_000
"""Events of a part, unless asked otherwise: about 200 MB of memory in a worker."""

RETRIES = 3  # of a task whose worker died


def connected() -> Any:
    """The module `ray`, connected to a cluster.

    Raises:
      MissingExtraError: Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error
    if not ray.is_initialized():
        ray.init()
    return ray


def chunks_on_cluster(
    paths: Sequence[str | Path],
    events: int,
    reward: str,
    rewards: str | Path | Mapping[str, float] | None,
    groups: str | Path | Mapping[str, str] | None,
    group_by: str | Iterable[str],
    limits: Limits,
) -> Chunks:
    """The parts; the first pass runs on the cluster, on lists of files with about as many bytes each."""

    def on_cluster(look: Callable[[Sequence[Source]], Glimpse], files: Sequence[Source]) -> Iterator[Glimpse]:
        for file in files:
            if links_of(getattr(file.path, "address", ""))[-1].startswith("memory://"):
                place = f"{file.name!r} is in the memory of this process"
                raise CreditError(f"{place}; expected an address that workers can read")
        ray = connected()
        lists = 4 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(look_over).options(max_retries=RETRIES)
        pending = [remote.remote(look, some) for some in _lists(files, lists)]
        yield from results_of(ray, pending)

    return read_chunks(
        *paths,
        events=events,
        reward=reward,
        rewards=rewards,
        groups=groups,
        group_by=group_by,
        limits=limits,
        map_files=on_cluster,
    )


def look_over(look: Callable[[Sequence[Source]], Glimpse], files: Sequence[Source]) -> Glimpse:
    """A task of the first pass."""
    return look(files)


def _lists(files: Sequence[Source], count: int) -> list[list[Source]]:
    """The files in their order, in at most `count` lists."""
    sizes = [_size(file) for file in files]
    most = max(1, -(-sum(sizes) // count))
    lists: list[list[Source]] = [[]]
    filled = 0
    for file, size in zip(files, sizes, strict=True):
        if lists[-1] and filled + size > most:
            lists.append([])
            filled = 0
        lists[-1].append(file)
        filled += size
    return lists


def _size(file: Source) -> int:
    """Bytes of a file, 0 where it can no longer be seen."""
    try:
        return 0 if file.path is None else file_size(file.path)
    except OSError:
        return 0


def results_of(ray: Any, pending: Sequence[Any]) -> Iterator[Any]:
    """The results of tasks, in their order; an error of this library as it was raised, once no other task runs."""
    for task in pending:
        try:
            yield ray.get(task)
        except BaseException as error:  # of the task, of its worker, or an interrupt
            _end(ray, [other for other in pending if other is not task])
            cause = getattr(error, "cause", None) if isinstance(error, ray.exceptions.RayTaskError) else None
            if isinstance(cause, CreditError):
                raise cause from None
            raise


def _end(ray: Any, tasks: Sequence[Any]) -> None:
    """Cancel tasks and wait until none runs. Ray prints errors that nobody took; here the first was raised."""
    for task in tasks:
        ray.cancel(task)
    for task in tasks:
        with contextlib.suppress(Exception):
            ray.get(task)
