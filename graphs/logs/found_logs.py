"""The logs of one reading: which files there are, and of which format each is by its content.

`open_logs` resolves paths to `Source` objects. Only a reader that looks for files beside a source uses its path.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, NothingReadError, Problem, TraceError
from graphs.formats import FORMATS, GROWING
from graphs.logs.companions import without_companions
from graphs.logs.metadata_columns import OF_METADATA, WITH_METADATA, names_metadata, read_metadata
from graphs.logs.outcome_rows import OutcomeRows
from graphs.logs.run_states import ATTACH, KEEP, apply_run_states
from graphs.logs.worded_outcomes import read_words
from graphs.reading.addresses import real_folder
from graphs.reading.copied_files import without_copied_files
from graphs.reading.damage import undamaged
from graphs.reading.encodings import wide_text
from graphs.reading.find import Owned, find_sources, without_foreign, without_tables
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.keys import opening_of
from graphs.reading.near_misses import PARQUET, is_archive, resemblance
from graphs.reading.results import is_result
from graphs.reading.source import Source, unreadable
from graphs.text import counted, excerpt, one_of
from graphs.traces.copies import REPEATED_LINES
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["Corpus", "Item", "detect", "open_logs", "reader_of", "sort_sources"]

FURTHER = 1 << 24  # bytes that are looked at where the head shows no format
LONG = 256  # bytes of a string that is left out there
ELEMENTS = 4  # of a list that is longer there
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
HEAD = 1 << 16  # bytes that a reader may look at to know its format
CACHE = "cache"
"""The name beside those of formats: of what was read before and is not read again."""

ATTACHING = ("otlp", "spans")
"""Formats whose pieces with missing parents may be attached."""

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
      columns: the columns of tables, or keys of metadata, by meaning.
      is_detected: whether the content told the formats, and not the user.
      outcomes: what words of outcomes mean.
      types: what words of types mean in tables, as of `check_types`.
    """

    place: str
    members: Mapping[str, list[Source]]
    problems: list[Problem]
    ignored: list[str]
    limits: Limits = DEFAULT
    columns: Mapping[str, str] | None = None
    is_detected: bool = True
    outcomes: Mapping[str, float] = dataclasses.field(default_factory=dict)
    types: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def sources(self) -> list[Source]:
        """All files, format by format."""
        return [source for members in self.members.values() for source in members]

    @property
    def text_columns(self) -> dict[str, str]:
        """Of `columns` those of texts."""
        from graphs.formats.table.columns import text_columns

        return text_columns(self.columns or {})

    @property
    def cache(self) -> Path | None:
        """The cache of logs that were read before; None where there are logs."""
        return next((source.path for source in self.members.get(CACHE, ())), None)

    def records(self, errors: str = KEEP, orphans: str = KEEP, *, has_groups: bool = False) -> Iterator[Item]:
        """The problems of finding, and then what each format's reader yields, by the rule for damaged records.

        Args:
          errors: what is done with runs that ended in an error (`graphs.logs.run_states.apply_run_states`).
          orphans: what is done with pieces of a trace whose parents are missing: "keep" them apart, attach them to
            its "root", or "refuse" the trace.
          has_groups: whether a table states the tasks of traces.
        """
        yield from self.problems
        reported = frozenset(self.problems)  # a reader that looks beside its files may meet them again
        outcomes = OutcomeRows(self.members if self.is_detected else {})
        for name, members in self.members.items():
            if name == "table":  # the last format, so that `outcomes` knows the traces of all others
                stating = {source.name: problem for source in members if (problem := outcomes.problem(source))}
                yield from stating.values()
                members = [source for source in members if source.name not in stating]
            if not members:
                continue
            options: dict[str, Any] = {"columns": self.columns, "types": self.types} if name == "table" else {}
            attaches = name in ATTACHING
            if attaches:
                options = {"attach_orphans": orphans == ATTACH}
            copies: list[Problem] = []
            if name in GROWING:
                members, copies = without_copied_files(members, older=True)
                yield from copies
            items = reader_of(name).read(members, **options)
            is_silent = True
            whole = undamaged(items, members, FORMATS[name].holds, self.problems, FORMATS[name].states)
            stated = read_metadata(whole, self.columns, has_groups=has_groups) if name in WITH_METADATA else whole
            read = read_words(stated, self.outcomes, by_file=name == "table")
            for item in outcomes.noted(apply_run_states(read, errors, orphans)):
                is_silent = False
                if name == "table" and isinstance(item, Problem) and item.kind == "missing-column":
                    item = self._at_fault(item)
                if attaches != (orphans == ATTACH):
                    item = _advised(item, attaches)
                if not ((isinstance(item, Problem) and item in reported) or item in copies):
                    yield item
            for source in members:
                for line, count in source.again:
                    value = f"the first {counted(count, 'line')} again, in their order"
                    expected = "each line once: what states no id of its own counts twice"
                    yield Problem(REPEATED_LINES, source.name, line, "content", value, expected)
            for source in members if is_silent else ():
                expected = f"at least one trace in the format {name!r}"
                yield Problem("no-trace", source.name, 0, "content", excerpt(source.head(40)), expected)

    def _at_fault(self, problem: Problem) -> Problem:
        """The problem of a missing column; where the file is a log with metadata, of the keys that make it a table."""
        own = next((_verdict(source, None) for source in self.members["table"] if source.name == problem.file), None)
        wrong = [f"{ours}={theirs}" for ours, theirs in (self.columns or {}).items() if ours not in OF_METADATA]
        if own not in WITH_METADATA or not wrong:
            return problem
        expected = f"{', '.join(OF_METADATA)} alone, keys of the metadata of {own} logs: other columns are of tables"
        return dataclasses.replace(problem, field="columns", value=excerpt(",".join(wrong)), expected=expected)


def _advised(item: Item, attaches: bool) -> Item:
    """The item; where it tells of missing parents, with what --orphans root does about them in its format."""
    if not isinstance(item, Problem) or item.kind not in ("cut-short", "missing-parent"):
        return item
    does = "attaches spans whose agent their times or names tell"
    does = does if attaches else f"works for {' and '.join(ATTACHING)} alone"
    return dataclasses.replace(item, expected=f"{item.expected}; --orphans root (in Python orphans='root') {does}")


@checked_kinds("tables")
def open_logs(
    *paths: str | Path,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT,
    tables: Iterable[object] = (),
    progress: Callable[[Iterable[Source]], Iterable[Source]] = iter,
    outcomes: Mapping[str, float] | None = None,
    types: Mapping[str, int] | None = None,
) -> Corpus:
    """Find the logs under paths and tell their formats. Whatever follows reads these sources and sees no path.

    Args:
      *paths: files, folders, "-" for standard input, addresses of object storage.
      format: the format of all files; by default the content of each tells it.
      columns: the columns of a trainer's table by meaning, which say that files are tables (`_own_format`), unless
        they are keys of a log's metadata (`graphs.logs.metadata_columns`).
      limits: bounds on files, records and traces.
      tables: the tables of rewards and groups, which are no logs where a folder holds them.
      progress: wraps the iteration over files.
      outcomes: what words of outcomes mean, by the word in small letters.
      types: what words of types mean, by the word in small letters, which says the same.

    Raises:
      CreditError: an unknown format, or an argument of a wrong type.
      NothingReadError: there is no file that may be a log.
    """
    if format is not None and format not in FORMATS:
        raise CreditError(f"format is {format!r}; expected {one_of(format, FORMATS)}")
    of_traces = format is None and not types and names_metadata(columns)
    mapped = None if format or not (columns or types) else frozenset((columns or {}).values())
    format = format or ("table" if columns or types else None)
    real_folder.cache_clear()  # a link may lead elsewhere since
    sources, ignored, problems = find_sources(paths, limits)
    sources, of_tables = without_tables(sources, tables)
    rows = FORMATS if format is None else {format: FORMATS[format]}
    sources, of_others = without_foreign(sources, {name: row.owns for name, row in rows.items()}, _shows_folder)
    problems += of_others
    place = ", ".join(str(path) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
    if not sources and not problems:
        count = counted(len(ignored) + len(of_tables), "file")
        raise NothingReadError(f"no log among {count} of {place}; logs end in .json, .jsonl, .csv, .parquet, …")
    members, refused, results = sort_sources(progress(sources), None if of_traces else format, mapped)
    if of_traces and any(members[name] for name in ("table", *WITH_METADATA)):
        format = None
    elif of_traces:
        members, refused, results = sort_sources(sources, format, mapped)
    ignored += [*of_tables, *results]
    return Corpus(
        place, members, problems + refused, ignored, limits, columns, format is None, outcomes or {}, types or {}
    )


def _shows_folder(name: str, row: Owned, source: Source) -> bool:
    """Whether a file is of the format that owns a folder, or has the keys of its mark."""
    try:
        return row.keys <= set(opening_of(source).keys) if row.keys else reader_of(name).sniff(source.head(HEAD))
    except (TraceError, OSError):  # its reader says why
        return False


@functools.cache  # asked for each format and file
def reader_of(name: str) -> Any:
    """The module that reads a format.

    Args:
      name: of the format.
    """
    return importlib.import_module(FORMATS[name].module)


def detect(head: bytes) -> str | None:
    """The format of a file that begins with `head`, or None; of a list also by its first record."""
    found = next((name for name in FORMATS if reader_of(name).sniff(head)), None)
    if found is not None or not head.lstrip().startswith(b"["):
        return found
    first = head.lstrip()[1:].lstrip()
    records = (name for name, row in FORMATS.items() if row.holds != "session")  # a session is a file of lines
    return next((name for name in records if reader_of(name).sniff(first)), None)


def sort_sources(
    sources: Iterable[Source], format: str | None = None, mapped: frozenset[str] | None = None
) -> tuple[dict[str, list[Source]], list[Problem], list[str]]:
    """Sources by format, the problems of other sources, and the names of those that are passed over.

    Where columns or types say that files are tables, `mapped` has the names of these columns (`_own_format`).

    Passed over are tables that this library wrote, unless the user named them, and files that programs write beside
    their logs (`graphs.logs.companions`). A cache is read alone, by its name.
    """
    members: dict[str, list[Source]] = {name: [] for name in FORMATS}
    problems: list[Problem] = []
    results: list[str] = []
    verdicts = [(source, _verdict(source, format)) for source in sources]
    if mapped is not None and len(verdicts) > 1:
        own = [(verdict == "table" and _own_format(source, mapped)) or verdict for source, verdict in verdicts]
        if "table" in own:  # else the columns are of none
            verdicts = [(source, verdict) for (source, _), verdict in zip(verdicts, own, strict=True)]
    if len(verdicts) == 1 and verdicts[0][1] == CACHE and verdicts[0][0].is_named:
        return {CACHE: [verdicts[0][0]]}, [], []
    sessions = [source for source, verdict in verdicts if verdict == "claude-code"]
    if sessions:  # which are read with the files of their sub-agents, whatever these look like
        others = [source for source, verdict in verdicts if verdict != "claude-code"]
        beside = set(map(id, reader_of("claude-code").claims(sessions, others)))
        verdicts = [(source, "claude-code" if id(source) in beside else verdict) for source, verdict in verdicts]
    if format is None:
        verdicts = without_companions(verdicts)
    if format is None and len(verdicts) > 1 and any(verdict == "table" for _, verdict in verdicts):
        from graphs.logs.outcome_tables import refuse_outcome_tables

        verdicts = refuse_outcome_tables(verdicts)
    for source, verdict in verdicts:
        if verdict is None:
            results.append(source.name)
        elif verdict == CACHE:
            expected = "a cache alone, or logs without caches among them"
            problems.append(Problem("cache-among-logs", source.name, 0, "file", "a cache of what was read", expected))
        elif isinstance(verdict, Problem):
            problems.append(verdict)
        else:
            members[verdict].append(source)
    if members["harbor"] and members["atif"]:  # a trial's trajectory is read with its result
        taken = reader_of("harbor").claims(members["harbor"], members["atif"])
        gone = set(map(id, taken))
        members["atif"] = [source for source in members["atif"] if id(source) not in gone]
        members["harbor"] += taken
    return members, problems, results


def _verdict(source: Source, format: str | None) -> str | Problem | None:
    """The format of a source, `CACHE`, or why it has none; None for a table that this library wrote."""
    from graphs.traces.cache import is_cache

    try:
        head = source.head(HEAD)
    except OSError as error:
        return unreadable(source, error)
    if source.path is not None and not source.is_named and is_result(source, head):
        return None
    if source.path is not None and head.startswith(b"PAR1") and is_cache(source.path):
        return CACHE
    wide = wide_text(source.name, head)
    if wide is not None:
        return wide
    name = format or _of_parquet(source, head) or detect(head) or _detect_further(source, head)
    if is_archive(head) and name != "inspect-ai":  # members may stand there as they are, lines of logs
        name = None
    if name is None and not head.strip() and len(head) < HEAD:
        return Problem("empty-file", source.name, 0, "content", "empty", "at least one trace")
    return _unknown(source, head) if name is None else name


def _own_format(source: Source, mapped: frozenset[str]) -> str | None:
    """The format of a log beside tables that columns or types are given for; None where it may be such a table.

    It is none as a native log, whose lines are traces, or as a log of another format without any of the `mapped`.
    """
    name = _verdict(source, None)
    if not isinstance(name, str) or name in ("table", CACHE):
        return None
    return name if name == "native" or (mapped and mapped.isdisjoint(opening_of(source).keys)) else None


def _of_parquet(source: Source, head: bytes) -> str | None:
    """The format of a Parquet file by its columns, which are in the footer."""
    if source.path is None or not head.startswith(b"PAR1"):
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = frozenset(pq.read_schema(source.path).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # its reader will say what is wrong with it
        return None
    return next((name for name in PARQUET if columns >= PARQUET[name]), None)


def _detect_further(source: Source, head: bytes) -> str | None:
    """The format of a file that begins with many blanks, or a long string or value, by the content after them."""
    if len(head) < HEAD:
        return None
    try:
        more = source.head(FURTHER).lstrip()
    except OSError:  # damaged behind its head, and of no known format
        return None
    further = detect(_STRING.sub(lambda match: match[0] if len(match[0]) <= LONG else b'"..."', more)[:HEAD])
    return further or _detect_shortened(more)


def _detect_shortened(text: bytes) -> str | None:
    """The format of the first record, or the whole content, with few elements of each list."""
    line = text[: text.find(b"\n")] if b"\n" in text else text
    for decode, part in ((msgspec.json.decode, line), (msgspec.json.decode, text), (_begun, text)):
        try:
            return detect(json.dumps(_shortened(decode(part)), ensure_ascii=False).encode())
        except (*JSON_ERRORS, ValueError):
            continue
    return None


def _begun(text: bytes) -> Any:
    """The value that a text begins with, whatever follows; of a list its first element, alone in a list."""
    is_list = text.startswith(b"[")
    first = text[is_list:].decode("utf-8", "replace").lstrip()
    value, _ = json.JSONDecoder().raw_decode(first)
    return [value] if is_list else value


def _shortened(value: Any) -> Any:
    """A JSON value with the first elements of each list and the first characters of each string; limits bound depth."""
    if isinstance(value, dict):
        return {key: _shortened(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_shortened(held) for held in value[:ELEMENTS]]
    return value[:LONG] if isinstance(value, str) else value


def _unknown(source: Source, head: bytes) -> Problem:
    """The problem of a file of unknown format, with the format that it resembles, if any."""
    from graphs.formats.table.columns import KNOWN
    from graphs.formats.table.hints import is_no_log, table_without

    table = table_without(head, KNOWN)
    records = {name: getattr(reader_of(name), "RECORDS", ()) for name in FORMATS}
    # A flat row may be one of many tables: only keys that are rare speak for a format.
    of_rows = () if table is None else {name for names in KNOWN.values() for name in names}
    close = resemblance(head, records, 1 if table is None else 2, of_rows)
    if close is None and table is not None:
        kind = "other-table" if is_no_log(table[0]) and not source.is_named else "unknown-format"
        return Problem(kind, source.name, 0, "content", *table)
    if close is None:
        kinds = (
            f"a supported format: {', '.join(FORMATS)}; or a table with a row an action and --columns, or the native "
            "format (`credit schema`). A table of outcomes, tasks, sides or prices is no log: --rewards, --groups, "
            "--sides or --prices reads it"
        )
        return Problem("unknown-format", source.name, 0, "content", excerpt(head[:40]), kinds + _by_name(head))
    value_text, expected = close
    if "--format" not in expected:
        expected += _by_name(head)
    return Problem("unknown-format", source.name, 0, "content", value_text, expected)


def _by_name(head: bytes) -> str:
    """The advice to name the format of a file whose head may not show it."""
    return "" if len(head) < HEAD else f"; `--format NAME` where the first {HEAD} bytes do not show it"
