"""Logs larger than memory: whole groups at a time, so that every comparison within a task is the same as in one batch.

A first pass stores the file, bytes, group and number of events of each trace, and decodes nothing else.
The chunks are made of whole groups, in the order in which groups first appear. Memory is that of a chunk, and about
60 bytes for each trace of the folder.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, NothingReadError, Problem
from graphs.formats.native import of_source
from graphs.formats.native.batches import read_records
from graphs.formats.native.slim import SlimDecoder
from graphs.logs.chunk_index import ChunkIndex, Glimpse, divide, glance, hash_of, merge
from graphs.logs.chunk_pieces import chosen_pieces
from graphs.logs.collector_pause import collector_paused
from graphs.logs.found_logs import Corpus, open_logs
from graphs.logs.read_logs import missing_channel
from graphs.problem_log import ProblemLog
from graphs.reading.source import Source
from graphs.reading.tables.joins import Join
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.grouping import GROUP_KEYS, check_group_by
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["Chunks", "read_chunks"]


class Chunks:
    """The batches of a folder; iterating reads them one after another, and again from the start the next time.

    Attributes:
      problems: what was refused so far; complete when the last chunk was read.
      ignored: files that were passed over.
      sources: how many outcomes are from the table of rewards and how many from the log; complete as `problems` is.
    """

    def __init__(
        self,
        corpus: Corpus,
        index: ChunkIndex,
        rows: list[np.ndarray],
        join: Join,
        before: ProblemLog,
        group_by: tuple[str, ...],
    ) -> None:
        self._corpus, self._index, self._rows, self._join, self._group_by = corpus, index, rows, join, group_by
        self.sources = join.sources()
        self._before, self.problems, self.ignored = before, ProblemLog(before), corpus.ignored

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def files(self) -> list[str]:
        """Names of the files, in the order in which they are read."""
        return [source.name for source in self._corpus.sources]

    def __iter__(self) -> Iterator[Traces]:
        """Batches of whole groups, traces in the order of the files.

        A file may grow meanwhile, as the log of a running job does: it is read up to where the first pass ended.

        Raises:
          ChangedError: a file changed between the passes in another way, so groups could be incomplete.
          NothingReadError: at the end, if not one trace was usable.
        """
        self.problems = ProblemLog(self._before)
        self.sources = self._join.sources()
        some = False
        channels: dict[str, None] = {}
        for number in range(len(self)):
            traces, problems = self.part(number)
            self.problems.add_part(problems)
            if traces is not None:
                some = True
                self.sources.add(traces)
                channels |= dict.fromkeys(traces.reward_channels)
                yield traces
        self.problems.extend(self._join.unmatched())
        self.problems.extend(self.without_channel(channels))
        if not some:
            raise NothingReadError("no trace could be read", tuple(self.problems))

    def part(self, number: int) -> tuple[Traces | None, Iterable[Problem]]:
        """One of the batches, and what was refused in it; None if no trace of it is usable.

        Args:
          number: from 0 to `len(self) - 1`.

        Raises:
          ChangedError: as when iterating.
        """
        try:
            with collector_paused():
                traces = assemble(
                    self._join.write(self._read(self._rows[number])),
                    reward=self._join.channel,
                    group_by=self._group_by,
                    ignored=self.ignored,
                    limits=self._corpus.limits,
                )
        except NothingReadError as error:
            self._join.met -= self._join.note_refused(error.problems)
            return None, error.problems
        refused = self._join.note_refused(traces.problems)
        self._join.met.difference_update(refused.difference(traces.traces["trace"].to_pylist()))
        return traces, traces.problems

    def without_channel(self, channels: Iterable[str]) -> list[Problem]:
        """The problem of a chosen channel that is not among those of all batches; empty where there is none."""
        problem = missing_channel(self._join.channel, list(channels), self._corpus.place)
        return [] if problem is None else [problem]

    def unread(self, number: int) -> np.ndarray:
        """Hashes of the ids of the traces of a batch that `part` did not meet in this process, int64."""
        names: np.ndarray = self._index.name[self._rows[number]]
        missed: np.ndarray = names[~np.isin(names, [hash_of(trace) for trace in self._join.met])]
        return missed

    def sources_of(self, traces: Traces) -> list[int]:
        """Where the outcomes of a batch come from: `RewardSources.counts`."""
        sources = self._join.sources()
        sources.add(traces)
        return sources.counts

    def problems_without(self, unread: np.ndarray) -> ProblemLog:
        """Problems of the first pass and of the tables outside the log, where `part` ran in other processes.

        Args:
          unread: what `unread` returned for all batches, int64.
        """
        read = set(self._index.name.tolist()).difference(unread.tolist())
        joins = self._join, *self._join.others
        tables: list[Iterable[str]] = [self._join.groups, *(join.rewards for join in joins)]
        tables += [of for join in joins for both in (join.lost, join.spoilt) for of in both.values()]
        self._join.met |= {trace for table in tables for trace in table if hash_of(trace) in read}
        return ProblemLog([*self._before, *self._join.unmatched(len(read))])

    def fingerprint(self, number: int) -> bytes:
        """A hash of what a batch is made of: the bytes of its traces, where they lie, the tables, how all is read."""
        rows = self._rows[number]
        digest = hashlib.blake2b(digest_size=16)
        for column in self._index:
            digest.update(np.ascontiguousarray(column[rows]).tobytes())
        files = self.files
        for source in np.unique(self._index.source[rows]).tolist():
            digest.update(repr(files[source]).encode())
        digest.update(repr((self._join.channel, self._group_by, self._corpus.limits)).encode())
        digest.update(self._tables)
        return digest.digest()

    @functools.cached_property
    def _tables(self) -> bytes:
        """A hash of the tables outside the log."""
        spoilt = sorted((field, trace) for field, traces in self._join.spoilt.items() for trace in traces)
        lost = sorted((field, trace) for field, traces in self._join.lost.items() for trace in traces)
        unnamed = sorted(self._join.unnamed)
        others = [(of.channel, sorted(of.rewards.items()), sorted(of.spoilt["reward"])) for of in self._join.others]
        tables = (sorted(self._join.rewards.items()), sorted(self._join.groups.items()), spoilt, lost, unnamed, others)
        every = (self._join.kinds, self._join.systems, *self._join.tasks.stated.values())
        kinds = (sorted(of.items()) for of in every)
        return hashlib.blake2b(repr((tables, *kinds)).encode()).digest()

    def _read(self, rows: np.ndarray) -> Iterator[TraceRecord | Part | Problem]:
        decoder, sources = SlimDecoder(), self._corpus.sources
        for number in np.unique(self._index.source[rows]).tolist():
            source = sources[number]
            chosen = chosen_pieces(source, self._index, rows[self._index.source[rows] == number])
            yield from read_records(of_source(source, chosen), decoder)
            source.release()


@checked_kinds("rewards", "groups")
def read_chunks(
    *paths: str | Path,
    events: int,
    reward: str = "team",
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    group_by: str | Iterable[str] = GROUP_KEYS,
    limits: Limits = DEFAULT,
    progress: Callable[[Iterable[Source]], Iterable[Source]] = iter,
    map_files: Callable[[Callable[[Sequence[Source]], Glimpse], Sequence[Source]], Iterable[Glimpse]] | None = None,
) -> Chunks:
    """Read native logs in batches of whole groups. A batch has about `events` events at most, or one group.

    A method whose scope is a trace or a group gives each event the same advantage as on all traces at once
    (`graphs.logs.read_logs`): its group is whole in one batch. Traces that share an id are in one
    batch, too, with their groups, so that the same ones are refused.

    Args:
      *paths: files of native logs, or folders of them; `.gz` and `.zst` are unpacked. Files are read once to find the
        groups and once more for the batches, so standard input is refused. A packed file, and one that is not a trace a
        line, is unpacked as a whole for each batch that needs it.
      events: how many events a batch may have; a group that has more makes a batch of its own.
      reward: the reward channel that is the outcome.
      rewards: outcomes kept outside the log: a mapping of trace id to number, or a CSV, JSONL or Parquet file with
        columns `trace` and `reward`, also `rewards.NAME` of other channels. They replace the log's own.
      groups: tasks kept outside the log, in the same forms, with columns `trace` and `group`.
      group_by: the keys of a group, whose traces are compared. By default traces of one task, one model and one system,
        where the log states model and system; ("task",) compares all traces of a task.
      limits: bounds on files, records and traces. Input beyond a bound is a problem and is not read.
      progress: wraps the iteration over files, as a progress bar does.
      map_files: how the first pass goes over the files. `map_files(look, files)` cuts `files` into lists, keeps their
        order, and yields `look(list)` of each. By default one list has all files; `credit.ray` spreads lists over a
        cluster.

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
    if "-" in map(str, paths):
        raise CreditError("standard input can be read once; expected files or folders")
    corpus = open_logs(*paths, limits=limits, tables=(rewards, groups), progress=progress)
    for name, sources in corpus.members.items():
        if sources and name != "native":
            raise CreditError(
                f"{sources[0].name!r} is of format {name}; expected native logs: `credit convert` writes them"
            )
    corpus = dataclasses.replace(corpus, members={"native": [_anywhere(source) for source in corpus.sources]})
    join = Join.load(channel=reward, rewards=rewards, groups=groups, limits=limits)
    look = functools.partial(glance, groups_outside=join.groups)
    with collector_paused():
        seen = look(corpus.sources) if map_files is None else merge(map_files(look, corpus.sources))
    join.note_refused(seen.problems)
    before = ProblemLog([*corpus.problems, *join.problems, *seen.problems])
    if not len(seen.index.source):
        raise NothingReadError("no trace could be read", tuple(before))
    rows = divide(seen.index, events, seen.groups)
    return Chunks(corpus, seen.index, rows, join, before, check_group_by(group_by))


def _anywhere(source: Source) -> Source:
    """The source under a path that a process with another current folder understands; its name stays."""
    if source.path is None or source.path.is_absolute():
        return source
    return dataclasses.replace(source, path=source.path.absolute())
