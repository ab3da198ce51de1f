"""Readers: one file a format, and the table of them.

A reader is a module with `sniff(head) -> bool`, which tells its format by the first bytes of the content, and
`read(sources) -> Iterator[TraceRecord | Part | Problem]`, which gets all sources of its format at once, since some
formats spread a trace over several files. A bad trace is a `Problem` among the others, never an exception that ends
the rest. `read` here finds the files, tells the formats apart, joins rewards and groups kept elsewhere, and assembles
the batch.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphs.counted import counted
from graphs.errors import CreditError, NothingReadError, Problem, excerpt, expect
from graphs.limits import DEFAULT, Limits
from graphs.part import Part
from graphs.readers.encodings import wide_text
from graphs.readers.joins import Join
from graphs.readers.parallel import ALONE, read_files, workers_for
from graphs.readers.results import is_result
from graphs.readers.source import Source, check_paths, find_sources, unreadable
from graphs.record import TraceRecord

if TYPE_CHECKING:  # importing it loads JAX, which processes that only read do without
    from graphs.padding import Sizes
    from graphs.traces import Traces

__all__ = ["FORMATS", "read", "read_records", "sort_sources"]

FORMATS: dict[str, str] = {
    "native": "the survey's orchestration-trace JSON and its extension, one trace a line or one a file",
    "tau-bench": "tau-bench result files: a JSON list of runs",
    "claude-code": "Claude Code session files, sub-agents inline or in files of their own",
    "openai-agents": "exports of the OpenAI Agents SDK: traces and spans",
    "inspect-ai": "logs of Inspect AI: .json and .eval",
    "agent-lightning": "rollouts of Agent Lightning: events of v1, spans of v0.1 to v0.3",
    "langsmith": "run trees of LangSmith",
    "atif": "ATIF trajectories, sub-agents nested or in files of their own",
    "who-and-when": "runs of Who&When with the blamed agent and step, for evaluation only",
    "otlp": "OTLP JSON with OTel-GenAI or OpenInference attributes, spans and logs",
    "table": "rows of a trainer: CSV, JSONL or Parquet with a column map (--columns)",
}
"""Formats by name, in the order in which they are tried; the module is the name with underscores."""

HEAD = 1 << 16  # bytes that a reader may look at to know its format


def _module(name: str) -> Any:
    return importlib.import_module(f"graphs.readers.{_module_name(name)}")


def _module_name(format: str) -> str:
    return format.replace("-", "_")


def read(
    *paths: str | Path,
    format: str | None = None,
    reward: str = "team",
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    to: Sizes | None = None,
    limits: Limits = DEFAULT,
    workers: int | None = None,
    compiled: bool | None = None,
    progress: Callable[[Iterable[Source]], Iterable[Source]] = iter,
) -> Traces:
    """Read logs into one batch of traces.

    Args:
      *paths: files, folders (searched to their depths) or "-" for standard input; `.gz` and `.zst` are unpacked. Or one
        cache that `graphs.cache.write_cache` wrote.
      format: one of `FORMATS`; by default each file's format is told by its content.
      reward: the reward channel that is the outcome.
      rewards: outcomes kept outside the log: a mapping of trace id to number, or a CSV, JSONL or Parquet file with
        columns `trace` and `reward`. They replace the log's own. A row that matches no trace is a counted problem, and
        so is one whose reward is missing or no finite number, or a trace named twice: such a trace has no outcome then,
        not that of the log.
      groups: tasks kept outside the log, likewise, with columns `trace` and `group`; a trace whose row is bad is left
        out, since what it would be compared with is unknown.
      columns: for the table reader, which column is what: `{"trace": "traj_uid", "group": "uid", ...}`.
      to: sizes to pad to; by default the bucket of what was read.
      limits: bounds on files, records and traces; what passes one is a problem and is not read.
      workers: processes that read, this one among them; by default this one alone. Where compiled loops read, threads,
        by default as many as there are cores, up to four. What is read does not depend on it. Only formats in which
        every file stands alone are divided (`parallel.ALONE`).
      compiled: whether native logs are read by compiled loops, twice as fast or more, which need the extra `fast`; what
        is read does not depend on it. By default they are used if they are installed, and either loaded already or the
        logs are large (`compiled.COMPILING_PAYS`), since loading takes a second, and compiling once on a machine ten.
      progress: wraps the iteration over files, as a progress bar does.

    Returns:
      `Traces`; what could not be read is in its `problems`.

    Raises:
      NothingReadError: not one trace is usable.
      CreditError: an unknown `format`, `workers` that is no number of processes, `compiled` without Numba, or an
        argument of a wrong type.
      WorkerError: a process that read was killed.
    """
    from graphs.cache import is_cache, read_cache
    from graphs.padding import Sizes
    from graphs.traces import assemble

    check_paths(paths)
    expect("limits", limits, Limits, "graphs.limits.Limits(...)")
    expect("to", to, (Sizes, type(None)), "graphs.Sizes(events=, edges=, agents=, traces=) or None")
    if len(paths) == 1 and os.path.isfile(paths[0]) and is_cache(paths[0]):  # opening a pipe would wait for a writer
        if format or columns or rewards or groups:
            given = "format, columns, rewards and groups belong to `credit convert`, which made it"
            raise CreditError(f"{str(paths[0])!r} is a cache of what was read; {given}")
        return read_cache(paths[0], reward=reward, to=to, limits=limits)
    items, ignored = read_records(
        *paths,
        format=format,
        columns=columns,
        limits=limits,
        workers=workers,
        compiled=compiled,
        progress=progress,
    )
    join = Join.load(channel=reward, rewards=rewards, groups=groups)
    return assemble(join.apply(items), reward=reward, to=to, ignored=ignored, limits=limits)


def read_records(
    *paths: str | Path,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT,
    workers: int | None = None,
    compiled: bool | None = None,
    progress: Callable[[Iterable[Source]], Iterable[Source]] = iter,
) -> tuple[Iterator[TraceRecord | Part | Problem], list[str]]:
    """The records of all logs under `paths`, lazily, and the names of the files that were passed over."""
    if format is not None and format not in FORMATS:
        raise CreditError(f"format is {format!r}; expected one of {', '.join(FORMATS)}")
    sources, ignored, problems = find_sources(paths, limits)
    if not sources and not problems:
        found = counted(len(ignored), "file")
        raise NothingReadError(f"no log among {found}; logs end in .json, .jsonl, .csv, .parquet, …")

    named = {str(Path(path)) for path in paths}

    def items() -> Iterator[TraceRecord | Part | Problem]:
        yield from problems
        members_of, refused, results = sort_sources(progress(sources), format or ("table" if columns else None), named)
        ignored.extend(results)
        yield from refused
        for name, members in members_of.items():
            if members:
                found = _read_format(name, members, columns, workers, compiled)
                silent = True
                for item in found:
                    silent = False
                    yield item
                for source in members if silent else ():
                    expected = f"at least one trace in the format {name!r}"
                    yield Problem("no-trace", source.name, 0, "content", excerpt(source.head(40)), expected)
                for source in members:
                    yield from source.refused.values()

    return items(), ignored


def _read_format(
    name: str, members: Sequence[Source], columns: Mapping[str, str] | None, workers: int | None, compiled: bool | None
) -> Iterator[TraceRecord | Part | Problem]:
    """The records of all sources of a format, by as many workers as are wanted."""
    module = _module(name)
    if name == "table":
        return module.read(members, columns=columns)
    if name == "native":
        from graphs.readers import compiled as loops

        if loops.compiles(members, compiled):
            threads = loops.threads_for(members, workers)
            return loops.read_threads(members, threads) if threads > 1 else module.read(members, compiled=True)
    processes = workers_for(members, workers) if name in ALONE else 1
    return read_files(_module_name(name), members, processes) if processes > 1 else module.read(members)


def sort_sources(
    sources: Iterable[Source], format: str | None, named: Collection[str]
) -> tuple[dict[str, list[Source]], list[Problem], list[str]]:
    """Sources by format, what is wrong with others, and the names of tables that this library wrote.

    Such a table, which a command left in a folder, is no log, unless it is among the `named` files.
    """
    from graphs.cache import is_cache

    members: dict[str, list[Source]] = {name: [] for name in FORMATS}
    problems: list[Problem] = []
    results: list[str] = []
    for source in sources:
        try:
            head = source.head(HEAD)
        except OSError as error:
            problems.append(unreadable(source, error))
            continue
        if source.path is not None and source.name not in named and is_result(source, head):
            results.append(source.name)
            continue
        if source.path is not None and head.startswith(b"PAR1") and is_cache(source.path):
            expected = "a cache alone, or logs without caches among them"
            problems.append(Problem("cache-among-logs", source.name, 0, "file", "a cache of what was read", expected))
            continue
        wide = wide_text(source.name, head)
        if wide is not None:
            problems.append(wide)
            continue
        name = format or detect(head)
        if name is None and not head.strip():
            problems.append(Problem("empty-file", source.name, 0, "content", "empty", "at least one trace"))
        elif name is None:
            kinds = "a supported format: " + ", ".join(FORMATS)
            problems.append(Problem("unknown-format", source.name, 0, "content", excerpt(head[:40]), kinds))
        else:
            members[name].append(source)
    return members, problems, results


def detect(head: bytes) -> str | None:
    """The format of a file that begins with `head`, or None."""
    return next((name for name in FORMATS if _module(name).sniff(head)), None)
