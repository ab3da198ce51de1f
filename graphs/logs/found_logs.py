"""The logs of one reading: which files there are, and of which format each is.

Readers get `Source` objects. Only a reader that looks for files beside a source uses its path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphs.errors import CreditError, NothingReadError, Problem
from graphs.formats import FORMATS
from graphs.logs.detection import CACHE, HEAD, reader_of, sort_sources
from graphs.logs.outcome_rows import OutcomeRows
from graphs.logs.run_states import KEEP, judged
from graphs.reading.damage import undamaged
from graphs.reading.find import find_sources, without_tables
from graphs.reading.owned_folders import without_foreign
from graphs.reading.source import Source
from graphs.text import counted, excerpt, one_of
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["Corpus", "Item", "open_logs"]

Item = TraceRecord | Part | Problem
"""What a reader yields."""


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Logs that were found and not read yet.

    Attributes:
      place: where they were looked for, in words.
      members: the files of each format, in the order of `FORMATS`; under `CACHE` a cache that was named alone.
      problems: why other files are not read.
      ignored: names of files that are no logs.
      limits: bounds on files, records and traces.
      columns: for the table reader, the columns by meaning.
      is_detected: whether the content told the formats, and not the user.
    """

    place: str
    members: Mapping[str, list[Source]]
    problems: list[Problem]
    ignored: list[str]
    limits: Limits = DEFAULT
    columns: Mapping[str, str] | None = None
    is_detected: bool = True

    @property
    def sources(self) -> list[Source]:
        """All files, format by format."""
        return [source for members in self.members.values() for source in members]

    @property
    def cache(self) -> Path | None:
        """The cache of logs that were read before; None where there are logs."""
        return next((source.path for source in self.members.get(CACHE, ())), None)

    def records(self, errors: str = KEEP) -> Iterator[Item]:
        """The problems of finding, and then what each format's reader yields, by the rule for damaged records.

        Args:
          errors: what is done with runs that ended in an error (`graphs.logs.run_states.judged`).
        """
        yield from self.problems
        reported = frozenset(self.problems)  # a reader that looks beside its files may meet them again
        outcomes = OutcomeRows(self.members if self.is_detected else {})
        for name, members in self.members.items():
            if name == "table":  # the last format, so that `outcomes` knows the traces of all others
                stating = {source.name: problem for source in members if (problem := outcomes.problem(source))}
                yield from stating.values()
                members = [source for source in members if source.name not in stating]
            options: dict[str, Any] = {"columns": self.columns} if name == "table" else {}
            items = reader_of(name).read(members, **options) if members else iter(())
            is_silent = True
            for item in outcomes.noted(judged(undamaged(items, members, FORMATS[name].holds), errors)):
                is_silent = False
                if not (isinstance(item, Problem) and item in reported):
                    yield item
            for source in members if is_silent else ():
                expected = f"at least one trace in the format {name!r}"
                yield Problem("no-trace", source.name, 0, "content", excerpt(source.head(40)), expected)


def open_logs(
    *paths: str | Path,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT,
    tables: Iterable[object] = (),
    progress: Callable[[Iterable[Source]], Iterable[Source]] = iter,
) -> Corpus:
    """Find the logs under paths and tell their formats. Whatever follows reads these sources and sees no path.

    Args:
      *paths: files, folders, "-" for standard input, addresses of object storage.
      format: the format of all files; by default the content of each tells it.
      columns: the columns of a trainer's table by meaning, which say that all files are tables.
      limits: bounds on files, records and traces.
      tables: the tables of rewards and groups, which are no logs where a folder holds them.
      progress: wraps the iteration over files.

    Raises:
      CreditError: an unknown format, or a path that is none.
      NothingReadError: there is no file that may be a log.
    """
    if format is not None and format not in FORMATS:
        raise CreditError(f"format is {format!r}; expected {one_of(format, FORMATS)}")
    format = format or ("table" if columns else None)
    sources, ignored, problems = find_sources(paths, limits)
    sources, of_tables = without_tables(sources, tables)
    rows = FORMATS if format is None else {format: FORMATS[format]}
    sources, of_others = without_foreign(sources, {name: row.owns for name, row in rows.items()}, _is_of)
    problems += of_others
    place = ", ".join(str(path) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
    if not sources and not problems:
        count = counted(len(ignored) + len(of_tables), "file")
        raise NothingReadError(f"no log among {count} of {place}; logs end in .json, .jsonl, .csv, .parquet, …")
    members, refused, results = sort_sources(progress(sources), format)
    ignored += [*of_tables, *results]
    return Corpus(place, members, problems + refused, ignored, limits, columns, is_detected=format is None)


def _is_of(name: str, source: Source) -> bool:
    return bool(reader_of(name).sniff(source.head(HEAD)))
