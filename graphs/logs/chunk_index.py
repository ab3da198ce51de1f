"""The first pass over native logs that are larger than memory: where each trace is, its group, and its events counted.

Nothing else is decoded. The pass over one list of files needs nothing from another, so lists can be looked over side by
side, on several machines too, and their indices merged.
"""

from __future__ import annotations

import array
import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from graphs.errors import Problem
from graphs.formats.native import NEXT_OBJECT, Piece, of_source, pieces
from graphs.formats.native.batches import Faults, Record, read_records
from graphs.formats.native.misspelt import bytes_looked_at, near_keys
from graphs.formats.native.slim import SlimDecoder
from graphs.formats.native.wire import NonEmpty
from graphs.problem_log import ProblemLog
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import BYTE_ORDER_MARK, Source, is_packed, unreadable
from graphs.structure.host_ids import rows_of_each

__all__ = [
    "ChunkIndex",
    "Glimpse",
    "content_of",
    "divide",
    "glance",
    "hash_of",
    "is_plain",
    "merge",
]


class _Nothing(msgspec.Struct, gc=False):
    """An event that is only counted."""


class _Glance(msgspec.Struct):
    """What the first pass looks at."""

    trace_id: NonEmpty
    task_id: NonEmpty
    events: list[_Nothing]
    group: NonEmpty | None = None


GLANCE = msgspec.json.Decoder(_Glance)


class ChunkIndex(NamedTuple):
    """Where each trace is, in the order of the files; one entry of every array a trace."""

    source: np.ndarray
    line: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    group: np.ndarray
    events: np.ndarray
    name: np.ndarray
    """A hash of the trace's id."""
    content: np.ndarray
    """A hash of the trace's bytes, by which the second pass and a resumed run know it again."""


@dataclasses.dataclass(frozen=True)
class Glimpse:
    """The findings of the first pass over a list of files.

    Attributes:
      index: where each trace is; its `group` is a position in `groups`, its `source` one in the list of files.
      groups: names of the groups in order of appearance.
      problems: files and records that cannot be decoded; they are not read again. Others show when a chunk is read.
      files: length of the list.
    """

    index: ChunkIndex
    groups: tuple[str, ...]
    problems: ProblemLog
    files: int


def glance(sources: Sequence[Source], groups_outside: Mapping[str, str]) -> Glimpse:
    """Look over native logs.

    Args:
      sources: the files.
      groups_outside: the group of a trace by its id, where it is kept outside the log.
    """
    columns = {name: array.array("q") for name in ChunkIndex._fields}
    groups: dict[str, int] = {}
    problems, faults = ProblemLog(), Faults()
    for number, source in enumerate(sources):
        left, keys = bytes_looked_at(number, len(sources)), set[tuple[str, str]]()
        try:
            for piece, length in _pieces(source):
                if isinstance(piece, Problem):
                    problems.append(piece)
                    continue
                line, offset, data = piece
                if left > 0:
                    problems.extend(near_keys(data, source.name, line, keys))
                    left -= len(data)
                try:
                    seen = GLANCE.decode(data)
                except JSON_ERRORS as error:
                    if faults.counts(error, Record(source, *piece)):
                        continue
                    items = read_records(of_source(source, [piece]), SlimDecoder())
                    problems.extend(item for item in items if isinstance(item, Problem))
                    continue
                group = groups_outside.get(seen.trace_id, seen.group or seen.task_id)
                entry = (
                    number,
                    line,
                    offset,
                    length,
                    groups.setdefault(group, len(groups)),
                    len(seen.events),
                    hash_of(seen.trace_id),
                    content_of(data),
                )
                for column, value in zip(columns.values(), entry, strict=True):
                    column.append(value)
        except OSError as error:
            problems.append(unreadable(source, error))
        source.release()
    problems.extend(faults.counted())
    index = ChunkIndex(**{name: np.frombuffer(column, np.int64) for name, column in columns.items()})
    return Glimpse(index, tuple(groups), problems, len(sources))


def merge(glimpses: Iterable[Glimpse]) -> Glimpse:
    """The findings of one pass over all lists in turn."""
    groups: dict[str, int] = {}
    columns: list[ChunkIndex] = []
    problems = ProblemLog()
    sources = 0
    for seen in glimpses:
        code = np.array([groups.setdefault(name, len(groups)) for name in seen.groups], np.int64)
        columns.append(seen.index._replace(source=seen.index.source + sources, group=code[seen.index.group]))
        problems.extend(seen.problems)
        sources += seen.files
    index = ChunkIndex(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))
    return Glimpse(index, tuple(groups), problems, sources)


def content_of(data: bytes) -> int:
    """A hash of a record, as an int64. SHA-256, since most processors have instructions for it."""
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little", signed=True)


def hash_of(text: str) -> int:
    """A hash of a text, as an int64."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def divide(index: ChunkIndex, events: int, names: Sequence[str] = ()) -> list[np.ndarray]:
    """Rows of the index of each chunk: whole groups. Groups that have a trace id in common share a chunk.

    Args:
      index: of all traces.
      events: how many a chunk may have.
      names: of the groups, as the log has them. `graphs.traces.grouping` may call a group of task `q` `q [small]`, and
        a task may have that name, too: both come in one chunk, where they are told apart.
    """
    together = np.arange(int(index.group.max()) + 1)
    by_name = np.argsort(index.name, kind="stable")
    same = np.flatnonzero(np.diff(index.name[by_name]) == 0)
    for a, b in zip(index.group[by_name[same]].tolist(), index.group[by_name[same + 1]].tolist(), strict=True):
        low, high = sorted((_root(together, a), _root(together, b)))
        together[high] = low
    for group, shorter in _name_clashes(names):
        low, high = sorted((_root(together, group), _root(together, shorter)))
        together[high] = low
    part = np.array([_root(together, group) for group in range(len(together))])[index.group]
    sizes = np.bincount(part, weights=index.events, minlength=len(together))
    chunk_of, filled, chunk = np.zeros(len(together), np.int64), 0.0, 0
    for group in np.unique(part).tolist():
        if filled and filled + sizes[group] > events:
            chunk, filled = chunk + 1, 0.0
        chunk_of[group] = chunk
        filled += sizes[group]
    return rows_of_each(chunk_of[part])


def _name_clashes(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of groups: the name of the first is the name of the second, followed by something in brackets."""
    begins: list[int] = []  # groups whose names are beginnings of the current name, the shortest first
    # In sorted order, the names that begin with a name follow it directly.
    for group in sorted(range(len(names)), key=names.__getitem__):
        while begins and not names[group].startswith(names[begins[-1]]):
            begins.pop()
        for shorter in begins:
            if names[group].startswith(" [", len(names[shorter])):
                yield group, shorter
        begins.append(group)


def _root(together: np.ndarray, group: int) -> int:
    """The least group that a group goes with. The path is halved: names may join groups into one long chain."""
    while together[group] != group:
        together[group] = together[together[group]]
        group = int(together[group])
    return group


def _pieces(source: Source) -> Iterator[tuple[Piece | Problem, int]]:
    """Records, each with the number of bytes from its offset to its end; blanks may stand before it."""
    if source.path is not None and is_plain(source.path) and source.path.stat().st_size <= source.limits.file_bytes:
        with source.path.open("rb") as file:
            first = file.readline()
            # "}", a newline, "{": one object a line, so that lines need no decoding to be told apart.
            if first.startswith(b"{") and NEXT_OBJECT.match(first[-2:] + file.read(1)):
                file.seek(0)
                yield from _lines(file)
                return
    for piece in pieces(source):
        length = 0
        if not isinstance(piece, Problem):
            _, offset, record = piece
            length = source.data.find(record, offset) + len(record) - offset
        yield piece, length


def _lines(file: BinaryIO) -> Iterator[tuple[Piece, int]]:
    """The lines of a file that is too large for the memory, perhaps."""
    offset = 0
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if text:
            yield (number, offset, text), len(line)
        offset += len(line)


def is_plain(path: Path) -> bool:
    """Whether the content is the file's own bytes: not packed, and without a byte order mark."""
    with path.open("rb") as file:
        head = file.read(4)
    return not (is_packed(head) or head.startswith(BYTE_ORDER_MARK))
