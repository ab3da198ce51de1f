"""Logs larger than memory: whole groups at a time, so that every comparison within a task is the same as in one batch.

A first pass stores the file, bytes, group and number of events of each trace, and decodes nothing else.
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

__all__ = ["ChangedError", "Chunks", "read_chunks"]

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
    identity: np.ndarray
    """A hash of the trace's id, group and number of events, by which the second pass knows it again."""


class _State(NamedTuple):
    """A file as the first pass read it."""

    size: int
    modified: int
    content: bytes
    """A hash of the whole content, for files that are unpacked as a whole; empty for others."""


class ChangedError(CreditError):
    """A file changed between the two passes over a folder, so its groups are unknown."""

    def __init__(self, file: str, how: str) -> None:
        super().__init__(f"{file} {how}: it changed while it was read in chunks; read it again when it is complete")


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
        states: Mapping[int, _State] | None = None,
    ) -> None:
        self._group_by, self._states = group_by, states or {}
        self._sources, self._index, self._rows, self._join, self._reward = sources, index, rows, join, reward
        self._read_records = read_compiled if compiled else read_records
        self._before, self.problems, self.ignored = before, ProblemLog(before), ignored

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Traces]:
        """Batches of whole groups, traces in the order of the files.

        A file may grow meanwhile, as the log of a running job does: it is read up to where the first pass ended.

        Raises:
          ChangedError: a file changed between the passes in another way, so groups could be incomplete.
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
            self._check_state(number)
            chosen = self._pieces(source, rows[self._index.source[rows] == number])
            try:
                yield from self._read_records(of_source(source, chosen), decoder)
            except OSError as error:
                raise ChangedError(source.name, "cannot be read any more") from error
            source.release()

    def _check_state(self, number: int) -> None:
        """Refuse a file that is shorter than in the first pass, or was rewritten."""
        source, before = self._sources[number], self._states.get(number)
        if before is None or source.path is None:
            return
        try:
            now = source.path.stat()
            content = _digest(source) if before.content else b""
        except OSError as error:
            raise ChangedError(source.name, "cannot be read any more") from error
        if now.st_size < before.size:
            raise ChangedError(source.name, f"has {now.st_size} bytes; it had {before.size}")
        if content != before.content:
            raise ChangedError(source.name, "has another content")
        if now.st_size == before.size and now.st_mtime_ns != before.modified:
            raise ChangedError(source.name, "was written to, and is as long as before")

    def _pieces(self, source: Source, rows: np.ndarray) -> Iterator[Piece]:
        index = self._index
        lines, offsets, lengths = (column[rows].tolist() for column in (index.line, index.offset, index.length))
        if not all(lengths) or source.path is None:
            wanted = dict(zip(offsets, index.identity[rows].tolist(), strict=True))
            for piece in pieces(source):
                if not isinstance(piece, Problem) and piece[1] in wanted:
                    yield self._known(source, piece, wanted.pop(piece[1]))
            if wanted:
                raise ChangedError(source.name, "has fewer traces than before")
            return
        with source.path.open("rb") as file:
            for line, offset, length, identity in zip(
                lines, offsets, lengths, index.identity[rows].tolist(), strict=True
            ):
                file.seek(offset)
                yield self._known(source, (line, offset, file.read(length).strip()), identity)

    def _known(self, source: Source, piece: Piece, identity: int) -> Piece:
        """The piece, if it is the trace that the first pass met there."""
        try:
            seen = _GLANCE.decode(piece[2])
        except JSON_ERRORS as error:
            raise ChangedError(source.name, f"has no trace at byte {piece[1]} any more") from error
        if _hash(_identity(seen)) != identity:
            raise ChangedError(source.name, f"has another trace or task at byte {piece[1]}")
        return piece


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
    """Read native logs in batches of whole groups. A batch has about `events` events at most, or one group.

    A method whose scope is a trace or a group gives each event the same advantage as on all traces at once
    (`graphs.readers.read`): its group is whole in one batch. Traces that share an id are in one batch, too, with their
    groups, so that the same ones are refused.

    Args:
      *paths: files of native logs, or folders of them; `.gz` and `.zst` are unpacked. Files are read once to find the
        groups and once more for the batches, so standard input is refused. A packed file, and one that is not a trace a
        line, is unpacked as a whole for each batch that needs it.
      events: how many events a batch may have; a group that has more makes a batch of its own.
      reward: the reward channel that is the outcome.
      rewards: outcomes kept outside the log: a mapping of trace id to number, or a CSV, JSONL or Parquet file with
        columns `trace` and `reward`. They replace the log's own.
      groups: tasks kept outside the log, in the same forms, with columns `trace` and `group`.
      group_by: the keys of a group, whose traces are compared. By default traces of one task, one model and one system,
        where the log states model and system; ("task",) compares all traces of a task.
      limits: bounds on files, records and traces. Input beyond a bound is a problem and is not read.
      compiled: whether logs are read by compiled loops, which need the extra `fast`. By default they are used if they
        are installed and worth loading. The batches do not depend on it.
      progress: wraps the iteration over files, as a progress bar does.

    Returns:
      `Chunks`, an iterable of `Traces`.

    Raises:
      NothingReadError: no trace could be read. CreditError: another format than the native one, into which `credit
      convert` writes any; standard input; `events`
        that is no positive integer.

    Examples:
      >>> import credit, json, pathlib, tempfile
      >>> event = {"id": "e", "type": "message", "agent": "solver"}
      >>> tasks = ["p", "p", "q", "q"]
      >>> logs = [{"trace_id": str(i), "task_id": task, "events": [event], "rewards": {"team": i}}
      ...         for i, task in enumerate(tasks)]
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     log = pathlib.Path(folder, "log.jsonl")
      ...     _ = log.write_text("\\n".join(map(json.dumps, logs)))
      ...     sizes = [chunk.sizes.traces for chunk in credit.read_chunks(log, events=2)]
      >>> sizes
      [2, 2]
    """
    if isinstance(events, bool) or not isinstance(events, int) or events < 1:
        raise CreditError(f"events is {events!r}; expected an integer, 1 or more")
    sources, ignored, problems = find_sources(paths, limits)
    if any(source.path is None for source in sources):
        raise CreditError("standard input can be read once; expected files or folders")
    members, refused, results = sort_sources(progress(sources), None, {str(Path(path)) for path in paths})
    foreign = [name for name, sources_of in members.items() if sources_of and name != "native"]
    if foreign:
        example = members[foreign[0]][0].name
        raise CreditError(f"{example!r} is of format {foreign[0]}; expected native logs: `credit convert` writes them")
    sources = members["native"]
    by_loops = compiles(sources, compiled)
    join = Join.load(channel=reward, rewards=rewards, groups=groups)
    index, broken, states = _glance(sources, join)
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
        states,
    )


def _glance(sources: list[Source], join: Join) -> tuple[_Index, ProblemLog, dict[int, _State]]:
    """The first pass; a record whose ids cannot be found is a problem and is not read again."""
    columns = {name: array.array("q") for name in _Index._fields}
    groups: dict[str, int] = {}
    problems, faults = ProblemLog(), Faults()
    states: dict[int, _State] = {}
    for number, source in enumerate(sources):
        try:
            before = source.path.stat() if source.path is not None else None
            whole = False
            for piece, length in _lengths(source, None if before is None else before.st_size):
                whole |= length == 0
                if isinstance(piece, Problem):
                    problems.append(piece)
                    continue
                line, offset, data = piece
                try:
                    seen = _GLANCE.decode(data)
                except JSON_ERRORS as error:
                    if faults.counts(error, Record(source, *piece)):
                        continue
                    items = read_records(of_source(source, [piece]), SlimDecoder())
                    problems.extend(item for item in items if isinstance(item, Problem))
                    continue
                group = join.groups.get(seen.trace_id, seen.group or seen.task_id)
                entry = (
                    number,
                    line,
                    offset,
                    length,
                    groups.setdefault(group, len(groups)),
                    len(seen.events),
                    _hash(seen.trace_id),
                    _hash(_identity(seen)),
                )
                for column, value in zip(columns.values(), entry, strict=True):
                    column.append(value)
            if before is not None:
                content = _digest(source) if whole else b""
                states[number] = _State(before.st_size, before.st_mtime_ns, content)
        except OSError as error:
            problems.append(unreadable(source, error))
        source.release()
    problems.extend(faults.counted())
    index = _Index(**{name: np.frombuffer(column, np.int64) for name, column in columns.items()})
    return index, problems, states


def _identity(seen: _Glance) -> str:
    """The identity of a trace in both passes: its id, its group and its number of events."""
    return "\0".join((seen.trace_id, seen.group or seen.task_id, str(len(seen.events))))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def _digest(source: Source) -> bytes:
    return hashlib.blake2b(source.data, digest_size=16).digest()


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


def _lengths(source: Source, end: int | None) -> Iterator[tuple[Piece | Problem, int]]:
    """Records with their lengths in bytes, 0 where only the whole file can be read, packed or not a trace a line.

    Lines are read up to the byte `end`, where the file ended at first; a last line without its end may be half written.
    """
    if source.path is not None and _is_plain(source.path, source.limits.file_bytes):
        with source.path.open("rb") as file:
            first = file.readline()
            if first.startswith(b"{") and NEXT_OBJECT.match(first[-2:] + file.read(1)):
                file.seek(0)
                yield from _lines(file, end)
                return
    for piece in pieces(source):
        yield piece, 0


def _lines(file: BinaryIO, end: int | None) -> Iterator[tuple[Piece, int]]:
    offset = 0
    for number, line in enumerate(file, start=1):
        if end is not None and offset + len(line) > end:
            return
        text = line.strip()
        if text:
            yield (number, offset, text), len(line)
        offset += len(line)


def _is_plain(path: Path, most: int) -> bool:
    """Whether the content is the file's own bytes: not packed, without a byte order mark, within the limit."""
    with path.open("rb") as file:
        head = file.read(4)
    return not head.startswith((*_PACKED, BYTE_ORDER_MARK)) and path.stat().st_size <= most
