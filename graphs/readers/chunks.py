"""Logs larger than memory: whole groups at a time, so that every comparison within a task is the same as in one batch.

A first pass notes, for each trace, its file, its bytes, its group and how many events it has, and decodes nothing else.
The chunks are made of whole groups, in the order in which groups first appear. Memory is that of a chunk, and about
60 bytes for each trace of the folder.
"""

from __future__ import annotations

import array
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from graphs.errors import CreditError, NothingReadError, Problem
from graphs.problem_log import ProblemLog
from graphs.readers.common.joins import Join
from graphs.readers.common.json_problems import JSON_ERRORS
from graphs.readers.common.source import BYTE_ORDER_MARK, Source, find_sources, unreadable
from graphs.readers.formats import sort_sources
from graphs.readers.native import NEXT_OBJECT, Piece, of_source, pieces
from graphs.readers.native.batches import Faults, Record, read_compiled, read_records
from graphs.readers.native.compiled.threads import compiles
from graphs.readers.native.slim import SlimDecoder
from graphs.readers.native.wire import NonEmpty
from graphs.traces.batch import Traces, assemble
from graphs.traces.grouping import GROUP_KEYS, check_group_by
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["Chunks", "read_chunks"]

_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class _Nothing(msgspec.Struct, gc=False):
    """An event that is only counted."""


class _Glance(msgspec.Struct):
    """What the first pass looks at."""

    trace_id: NonEmpty
    task_id: NonEmpty
    events: list[_Nothing]
    group: NonEmpty | None = None


_GLANCE = msgspec.json.Decoder(_Glance)


class _Index(NamedTuple):
    """Where each trace is, in the order of the files; one entry of every array a trace."""

    source: np.ndarray
    line: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    group: np.ndarray
    events: np.ndarray
    name: np.ndarray
    """A hash of the trace's id."""


class Chunks:
    """The batches of a folder; iterating reads them one after another, and again from the start the next time.

    Attributes:
      problems: what was refused so far; complete when the last chunk was read.
      ignored: files that were passed over.
    """

    def __init__(
        self,
        sources: list[Source],
        index: _Index,
        rows: list[np.ndarray],
        join: Join,
        reward: str,
        before: ProblemLog,
        ignored: list[str],
        compiled: bool,
        group_by: tuple[str, ...] = GROUP_KEYS,
    ) -> None:
        self._group_by = group_by
        self._sources, self._index, self._rows, self._join, self._reward = sources, index, rows, join, reward
        self._read_records = read_compiled if compiled else read_records
        self._before, self.problems, self.ignored = before, ProblemLog(before), ignored

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Traces]:
        """Batches of whole groups, traces in the order of the files.

        Raises:
          NothingReadError: at the end, if not one trace was usable.
        """
        self.problems = ProblemLog(self._before)
        some = False
        for rows in self._rows:
            try:
                items = self._join.write(self._read(rows))
                traces = assemble(
                    items,
                    reward=self._reward,
                    group_by=self._group_by,
                    ignored=self.ignored,
                    limits=self._sources[0].limits,
                )
            except NothingReadError as error:
                self.problems.extend(error.problems)
                continue
            self.problems.extend(traces.problems)
            some = True
            yield traces
        self.problems.extend(self._join.unmatched())
        if not some:
            raise NothingReadError("no trace could be read", tuple(self.problems))

    def _read(self, rows: np.ndarray) -> Iterator[TraceRecord | Part | Problem]:
        decoder = SlimDecoder()
        for number in np.unique(self._index.source[rows]).tolist():
            source = self._sources[number]
            found = self._pieces(source, rows[self._index.source[rows] == number])
            try:
                yield from self._read_records(of_source(source, found), decoder)
            except OSError as error:
                yield unreadable(source, error)
            source.release()

    def _pieces(self, source: Source, rows: np.ndarray) -> Iterator[Piece]:
        index = self._index
        lines, offsets, lengths = (column[rows].tolist() for column in (index.line, index.offset, index.length))
        if not all(lengths) or source.path is None:
            wanted = set(offsets)
            yield from (piece for piece in pieces(source) if not isinstance(piece, Problem) and piece[1] in wanted)
            return
        with source.path.open("rb") as file:
            for line, offset, length in zip(lines, offsets, lengths, strict=True):
                file.seek(offset)
                yield line, offset, file.read(length).strip()


def read_chunks(
    *paths: str | Path,
    events: int,
    reward: str = "team",
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    group_by: Iterable[str] = GROUP_KEYS,
    limits: Limits = DEFAULT,
    compiled: bool | None = None,
    progress: Callable[[Iterable[Source]], Iterable[Source]] = iter,
) -> Chunks:
    """Native logs in batches of whole groups, each of at least one group and about `events` events at most.

    A method whose scope is a trace or a group gives each event the same advantage as on all traces at once
    (`graphs.readers.read`): its group is whole in one batch. Traces that share an id are in one batch, too, with their
    groups, so that the same ones are refused.

    Args:
      events: how many events a batch may have; a group that has more makes a batch of its own.
      paths, reward, rewards, groups, group_by, limits, compiled, progress: as in `graphs.readers.read`. Files are
        read once to find the groups and once more for the batches, so standard input is refused; a packed file, and one
        that is not a trace a line, is unpacked as a whole for each batch that needs it.

    Returns:
      `Chunks`, an iterable of `Traces`.

    Raises:
      NothingReadError: no trace is there.
      CreditError: another format than the native one, into which `credit convert` writes any; standard input; `events`
        that is no positive integer.
    """
    if isinstance(events, bool) or not isinstance(events, int) or events < 1:
        raise CreditError(f"events is {events!r}; expected an integer, 1 or more")
    sources, ignored, problems = find_sources(paths, limits)
    if any(source.path is None for source in sources):
        raise CreditError("standard input can be read once; expected files or folders")
    members, refused, results = sort_sources(progress(sources), None, {str(Path(path)) for path in paths})
    foreign = [name for name, found in members.items() if found and name != "native"]
    if foreign:
        example = members[foreign[0]][0].name
        raise CreditError(f"{example!r} is of format {foreign[0]}; expected native logs: `credit convert` writes them")
    sources = members["native"]
    by_loops = compiles(sources, compiled)
    join = Join.load(channel=reward, rewards=rewards, groups=groups)
    index, broken = _glance(sources, join)
    before = ProblemLog([*problems, *refused, *join.problems, *broken])
    if not len(index.source):
        raise NothingReadError("no trace could be read", tuple(before))
    return Chunks(
        sources,
        index,
        _divide(index, events),
        join,
        reward,
        before,
        [*ignored, *results],
        by_loops,
        check_group_by(group_by),
    )


def _glance(sources: list[Source], join: Join) -> tuple[_Index, ProblemLog]:
    """The first pass; a record whose ids cannot be found is a problem and is not read again."""
    columns = {name: array.array("q") for name in _Index._fields}
    groups: dict[str, int] = {}
    problems, faults = ProblemLog(), Faults()
    for number, source in enumerate(sources):
        try:
            for piece, length in _lengths(source):
                if isinstance(piece, Problem):
                    problems.append(piece)
                    continue
                line, offset, data = piece
                try:
                    seen = _GLANCE.decode(data)
                except JSON_ERRORS as error:
                    if faults.counts(error, Record(source, *piece)):
                        continue
                    found = read_records(of_source(source, [piece]), SlimDecoder())
                    problems.extend(item for item in found if isinstance(item, Problem))
                    continue
                group = join.groups.get(seen.trace_id, seen.group or seen.task_id)
                name = hashlib.blake2b(seen.trace_id.encode(), digest_size=8).digest()
                entry = (
                    number,
                    line,
                    offset,
                    length,
                    groups.setdefault(group, len(groups)),
                    len(seen.events),
                    int.from_bytes(name, "little", signed=True),
                )
                for column, value in zip(columns.values(), entry, strict=True):
                    column.append(value)
        except OSError as error:
            problems.append(unreadable(source, error))
        source.release()
    return _Index(**{name: np.frombuffer(column, np.int64) for name, column in columns.items()}), ProblemLog(
        [*problems, *faults.counted()]
    )


def _divide(index: _Index, events: int) -> list[np.ndarray]:
    """Rows of the index of each chunk: whole groups, and with them the groups of traces that bear one id."""
    together = np.arange(int(index.group.max()) + 1)
    by_name = np.argsort(index.name, kind="stable")
    same = np.flatnonzero(np.diff(index.name[by_name]) == 0)
    for a, b in zip(index.group[by_name[same]].tolist(), index.group[by_name[same + 1]].tolist(), strict=True):
        low, high = sorted((_root(together, a), _root(together, b)))
        together[high] = low
    part = np.array([_root(together, group) for group in range(len(together))])[index.group]
    sizes = np.bincount(part, weights=index.events, minlength=len(together))
    chunk_of, filled, chunk = np.zeros(len(together), np.int64), 0.0, 0
    for group in np.unique(part).tolist():
        if filled and filled + sizes[group] > events:
            chunk, filled = chunk + 1, 0.0
        chunk_of[group] = chunk
        filled += sizes[group]
    order = np.argsort(chunk_of[part], kind="stable")
    return np.split(order, np.cumsum(np.bincount(chunk_of[part]))[:-1])


def _root(together: np.ndarray, group: int) -> int:
    while together[group] != group:
        group = int(together[group])
    return group


def _lengths(source: Source) -> Iterator[tuple[Piece | Problem, int]]:
    """Records with their lengths in bytes, 0 where only the whole file can be read, packed or not a trace a line."""
    if source.path is not None and _is_plain(source.path, source.limits.file_bytes):
        with source.path.open("rb") as file:
            first = file.readline()
            if first.startswith(b"{") and NEXT_OBJECT.match(first[-2:] + file.read(1)):
                file.seek(0)
                yield from _lines(file)
                return
    for piece in pieces(source):
        yield piece, 0


def _lines(file: BinaryIO) -> Iterator[tuple[Piece, int]]:
    offset = 0
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if text:
            yield (number, offset, text), len(line)
        offset += len(line)


def _is_plain(path: Path, most: int) -> bool:
    """Whether the content is the file's own bytes: not packed, without a byte order mark, within the limit."""
    with path.open("rb") as file:
        head = file.read(4)
    return not head.startswith((*_PACKED, BYTE_ORDER_MARK)) and path.stat().st_size <= most
