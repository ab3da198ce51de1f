"""Find the logs under paths: files, folders to their depths, standard input, and addresses of object storage.

Not every file with a log's name is one. `find_sources` takes each file once, `without_tables` leaves out the tables of
rewards and groups, and `without_foreign` the files that agents wrote into the folders of their runs.
"""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path, PurePath
from typing import NamedTuple

from graphs.errors import Problem
from graphs.reading.addresses import FetchedPath, is_remote, list_remote, local_path, normal_address, real_folder
from graphs.reading.source import COMPRESSIONS, Source
from graphs.text import counted, excerpt
from graphs.traces.limits import DEFAULT, Limits

__all__ = [
    "SUFFIXES", "Owned", "files_beside", "find_sources", "identity", "is_log", "without_foreign", "without_tables",
]  # fmt: skip

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".parquet", ".eval", ".traj")
"""Names of logs in a folder, also with .gz or .zst behind; other files are passed over and listed."""


class Owned(NamedTuple):
    """A folder that a format owns, and what is read below it. `graphs.formats.FORMATS` lists them.

    An agent may write files into some folders of its harness. A file there that looks like a log would become a trace
    with the reward that the agent states, or a second result of its run. So only the files of `reads` are logs.

    Attributes:
      mark: the name of the file that shows the folder. "*.jsonl" is any name that ends so; "{folder}" is the name of
        the folder that the file lies in.
      reads: the files below the owned folder that are logs, relative to it. Each part of a path is a pattern, as
        `fnmatch` takes it; "{folder}" is the name of the owned folder.
      folder: the owned folder, relative to that of the mark; "" is the same. "{stem}" is the mark's name without
        suffix.
      keys: top-level keys that the mark has. Without them, the mark is any file of the format.
    """

    mark: str
    reads: tuple[str, ...]
    folder: str = ""
    keys: frozenset[str] = frozenset()


def find_sources(
    paths: Iterable[str | Path], limits: Limits = DEFAULT
) -> tuple[list[Source], list[str], list[Problem]]:
    """The logs under `paths`: sources in sorted order, names that were passed over, and paths that cannot be opened.

    A folder is searched to its depths, without following links to folders; a file that is named outright is always a
    source, whatever its suffix; "-" is standard input. An address such as "s3://bucket/runs" is listed through fsspec.
    A file with several names, such as a link and its target, is one source.
    Problems: "no-such-file", "not-a-file", "broken-link", "outside-link", "empty-folder", "unreadable", and "too-many"
    for more files than the limit, of which none is a source then. No fault: "same-file", a further name of a file.
    """
    sources: list[Source] = []
    ignored: list[str] = []
    problems: list[Problem] = []
    paths = list(paths)
    for path_or_address in paths:
        if not str(path_or_address):
            problems.append(Problem("no-such-file", "", 0, "path", excerpt(""), "the name of a file or folder"))
            continue
        if str(path_or_address) == "-":
            sources.append(Source("<stdin>", None, limits))
            continue
        if is_remote(path_or_address):
            _list(str(path_or_address), limits, sources, ignored, problems)
            continue
        path = local_path(path_or_address)
        if os.path.isdir(path):  # unlike pathlib's, never an error: a name may be too long
            found_before = len(sources) + len(ignored) + len(problems)
            _search(path, limits, sources, ignored, problems)
            if len(sources) + len(ignored) + len(problems) == found_before:
                problems.append(Problem("empty-folder", printable(path), 0, "folder", "empty", "at least one log file"))
        else:
            problem = _why_not_a_file(path)
            if problem is None:
                sources.append(Source(printable(path), path, limits, is_named=True))
            else:
                problems.append(problem)
    sources, again = _each_once(sources)
    problems += again
    if len(sources) > limits.files:  # part of the files would be another batch than was asked for
        expected = f"at most {counted(limits.files, 'file')}"
        problems.append(Problem("too-many", printable(paths[0]), 0, "paths", counted(len(sources), "file"), expected))
        sources = []
    return sources, ignored, problems


def without_tables(sources: list[Source], tables: Iterable[object]) -> tuple[list[Source], list[str]]:
    """The sources without the tables of rewards and groups that a folder holds, and the names of these.

    Their rows would be traces of their own. A table that is named as a log, too, is one.
    """
    files = [table for table in tables if isinstance(table, str | os.PathLike)]
    if not files:
        return sources, []
    tables_by_identity = {identity(Path(file)) for file in files}
    passed = [source for source in sources if not source.is_named and identity(source.path) in tables_by_identity]
    names = {source.name for source in passed}
    return [source for source in sources if source.name not in names], sorted(names)


def without_foreign(
    sources: Sequence[Source], owned: Mapping[str, Sequence[Owned]], shows: Callable[[str, Owned, Source], bool]
) -> tuple[list[Source], list[Problem]]:
    """The sources without files in other places of owned folders, and one note for each format that owns such a folder.

    The outermost owned folder decides: a mark below it, in a place that is not read, shows nothing. A file alone, whose
    folder's mark is not among the sources, is read.

    Args:
      sources: all files that were found or named.
      owned: the folders that each format owns.
      shows: whether a file with the name of a mark is one by its content.

    Returns:
      The sources that are read, and problems of the kind "foreign-files", which are no failures.
    """
    folder_of: dict[str, str] = {}
    places: dict[int, _Place] = {}
    for index, source in enumerate(sources):
        if source.path is not None:
            named = os.path.dirname(source.name)
            folder = folder_of.setdefault(named, "") or real_folder(source.name)
            folder_of[named] = folder
            places[index] = _Place(folder, source.file_name)
    above = _with_parents(folder_of.values())
    candidates = [
        (folder, index, name, row)
        for name, rows in owned.items()
        for row in rows
        for index, place in places.items()
        for folder in _marked(row, place)
        if folder in above
    ]
    taken: dict[str, tuple[str, list[str]]] = {}  # an owned folder: its format, and what is read below
    for folder, index, name, row in sorted(candidates, key=lambda mark: (len(mark[0]), mark[1])):
        if _owner(places[index], taken, above) is None and shows(name, row, sources[index]):
            taken.setdefault(folder, (name, []))[1].extend(row.reads)
    if not taken:
        return list(sources), []
    kept: list[Source] = []
    left: dict[str, list[Source]] = {}
    for index, source in enumerate(sources):
        owner = _owner(places[index], taken, above) if index in places else None
        (kept if owner is None else left.setdefault(owner, [])).append(source)
    return kept, [_note(name, files) for name, files in left.items()]


def _search(folder: Path, limits: Limits, sources: list[Source], ignored: list[str], problems: list[Problem]) -> None:
    def refused(error: OSError) -> None:
        name = printable(error.filename or folder)
        problems.append(Problem("unreadable", name, 0, "folder", excerpt(error.strerror), "a readable folder"))

    files: list[Path] = []
    waiting = [str(folder)]
    while waiting:  # not os.walk, which before Python 3.12 goes no deeper than its stack
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if not _is_folder(entry):
                        files.append(Path(entry.path))
                    elif not entry.is_symlink():
                        waiting.append(entry.path)
        except OSError as error:
            refused(error)
    for file in sorted(files):
        if not is_log(file):
            ignored.append(printable(file))
            continue
        problem = _why_not_a_file(file) or (_leads_outside(file, folder) if os.path.islink(file) else None)
        (sources.append(Source(printable(file), file, limits)) if problem is None else problems.append(problem))


def _list(address: str, limits: Limits, sources: list[Source], ignored: list[str], problems: list[Problem]) -> None:
    """The logs under an address of object storage; nothing is fetched."""
    try:
        listed = list_remote(address)
    except OSError as error:
        kind = "no-such-file" if isinstance(error, FileNotFoundError) else "unreadable"
        reason = excerpt(error.strerror or str(error), 200)  # the address of an endpoint, which may be wrong
        problems.append(Problem(kind, printable(address), 0, "path", reason, "an address that can be listed"))
        return
    for name, path, outright in listed:
        if not (outright or is_log(path)):
            ignored.append(printable(name))
        elif path.size is not None and path.size > limits.file_bytes:
            problems.append(limits.refuse_file(printable(name)))
        else:
            sources.append(Source(printable(name), path, limits, is_named=outright))


def files_beside(source: Source, folder: Path, pattern: str) -> tuple[list[Source], list[Problem]]:
    """The logs of a folder that belong to a source by their place, checked as those of a search are.

    A file behind an address has none: a search of its folder lists them.

    Args:
      source: the file that was named or found; its limits hold for the others.
      folder: a folder below that of the source.
      pattern: of the names, as `pathlib` takes it.

    Returns:
      Sources in sorted order, which `source.beside` has from then on; and the problems of files that cannot be opened,
      lead out of the source's folder, or are further names of others.
    """
    sources: list[Source] = []
    problems: list[Problem] = []
    if source.path is None or isinstance(source.path, FetchedPath):
        return sources, problems
    for file in sorted(folder.glob(pattern)):
        if is_log(file):
            problem = _why_not_a_file(file) or _leads_outside(file, source.path.parent)
            beside = Source(printable(file), file, source.limits)
            (sources.append(beside) if problem is None else problems.append(problem))
    sources, again = _each_once(sources)
    source.beside[:] = sources
    return sources, problems + again


def _each_once(sources: list[Source]) -> tuple[list[Source], list[Problem]]:
    """Each file once, under one of its names, and a note for each further name; its traces would count twice.

    A name that is no link is preferred to a link, and a name found in a folder to one that the user gave: readers join
    files by the spelling of their folders. Among equal names the first is kept.
    """
    names: dict[Hashable, list[Source]] = {}
    for source in sources:
        names.setdefault(identity(source.path), []).append(source)
    standing: dict[int, Source] = {}  # by the place of its identity in `sources`
    problems = []
    for same in names.values():
        first = same[0]
        if len(same) > 1:
            first = min(same, key=lambda source: (source.path is not None and _is_link(source.path), source.is_named))
        is_named = any(source.is_named and source.name == first.name for source in same)
        standing[id(first)] = dataclasses.replace(first, is_named=is_named)
        value = f"the file {excerpt(first.name, 200)} again"
        expected = "each file once, so it is read under that name alone"
        further = (source.name for source in same if source is not first)
        problems += [Problem("same-file", name, 0, "path", value, expected) for name in further]
    return [standing[id(source)] for source in sources if id(source) in standing], problems


def identity(path: Path | None) -> Hashable:
    """What all names of a file share; None is standard input. A name that cannot be looked up stands for itself."""
    if path is None:
        return None
    if isinstance(path, FetchedPath) and path.address:
        return normal_address(path.address)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return str(path)
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)  # some file systems number none


def _is_link(path: Path) -> bool:
    return not isinstance(path, FetchedPath) and os.path.islink(path)


def _leads_outside(file: Path, folder: Path) -> Problem | None:
    """A problem for a file that a link leads to outside a folder, because the author of the logs chose its target."""
    if Path(os.path.realpath(folder)) in Path(os.path.realpath(file)).parents:
        return None
    expected = "a file of the folder itself; name the linked file to read it"
    return Problem("outside-link", printable(file), 0, "path", "a link out of the folder", expected)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _why_not_a_file(path: Path) -> Problem | None:
    """None for a file that can be opened, otherwise the reason why it cannot."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # a ValueError for a name with a zero byte
        kind, expected = "no-such-file", "an existing file or folder"
        if os.path.islink(path):
            kind, expected = "broken-link", "a link to an existing file"
        elif isinstance(error, PermissionError):
            kind, expected = "unreadable", "a path that may be searched"
        reason = getattr(error, "strerror", None) or str(error)
        return Problem(kind, printable(path), 0, "path", excerpt(reason), expected)
    if not stat.S_ISREG(mode):
        return Problem("not-a-file", printable(path), 0, "path", excerpt(str(path)), "a regular file or a folder")
    return None


def printable(path: str | Path) -> str:
    """A path as text that UTF-8 can hold: bytes of a name that are none are spelt out, as in "\\xff.json"."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_log(path: Path) -> bool:
    """Whether a file in a folder has a log's name."""
    suffixes = [s for s in path.suffixes if s not in COMPRESSIONS]
    return bool(suffixes) and suffixes[-1] in SUFFIXES and not path.name.startswith(".")


class _Place(NamedTuple):
    """A file's real folder, and its name without the suffix of a compression."""

    folder: str
    name: str


def _with_parents(folders: Iterable[str]) -> dict[str, str]:
    """Each folder and all above it, with the parent of each; "" above the outermost."""
    above: dict[str, str] = {}
    for folder in folders:
        while folder not in above:
            parent = os.path.dirname(folder)
            above[folder] = "" if parent == folder else parent
            folder = parent
    return above


def _marked(row: Owned, place: _Place) -> Iterator[str]:
    """The folder that a file of this name would show, if any."""
    if row.mark.startswith("*"):
        is_mark = place.name.endswith(row.mark[1:])
    else:
        is_mark = place.name == row.mark.replace("{folder}", os.path.basename(place.folder))
    if is_mark:
        yield os.path.join(place.folder, row.folder.replace("{stem}", PurePath(place.name).stem)).rstrip(os.sep + "/")


def _owner(place: _Place, taken: Mapping[str, tuple[str, list[str]]], above: Mapping[str, str]) -> str | None:
    """The format of an owned folder in which the file is in none of the places that are read; None without one."""
    folder, parts = place.folder, [place.name]
    while folder:
        if folder in taken:
            name, reads = taken[folder]
            folder_name = escape(os.path.basename(folder))
            if not any(_matches(parts, pattern.replace("{folder}", folder_name).split("/")) for pattern in reads):
                return name
        parts.insert(0, os.path.basename(folder))
        folder = above[folder]
    return None


def _matches(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Part by part, since "*" of a whole path would match folders, too."""
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _note(name: str, files: Sequence[Source]) -> Problem:
    expected = f"the files that {name} itself writes: an agent may write others; name one without the run's to read it"
    shown = f"one of {counted(len(files), 'file')} in other places of a run's folder, which are not read"
    return Problem("foreign-files", files[0].name, 0, "path", excerpt(shown, 200), expected)
