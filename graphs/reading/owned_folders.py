"""Folders that a format owns: below them only the files that its harness writes are logs.

An agent may write files into some folders of a harness. A file there that looks like a log would become a trace with
the reward that the agent states, or a second result of its run. So below a folder that a format owns only the places
that the format names are read. The formats name them in `graphs.formats.FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from pathlib import PurePath
from typing import NamedTuple

from graphs.errors import Problem
from graphs.reading.addresses import real_folder
from graphs.reading.source import COMPRESSIONS, Source
from graphs.text import counted, excerpt

__all__ = ["Owned", "without_foreign"]


class Owned(NamedTuple):
    """A folder that a format owns, and what is read below it.

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


class _Place(NamedTuple):
    """A file's real folder, and its name without the suffix of a compression."""

    folder: str
    name: str


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
            places[index] = _Place(folder, _without_compression(source.name))
    above = _with_parents(folder_of.values())
    marks = [
        (folder, index, name, row)
        for name, rows in owned.items()
        for row in rows
        for index, place in places.items()
        for folder in _marked(row, place)
        if folder in above
    ]
    taken: dict[str, tuple[str, list[str]]] = {}  # an owned folder: its format, and what is read below
    for folder, index, name, row in sorted(marks, key=lambda mark: (len(mark[0]), mark[1])):
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


def _without_compression(name: str) -> str:
    path = PurePath(name)
    return path.stem if path.suffix in COMPRESSIONS else path.name


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
            own = escape(os.path.basename(folder))
            if not any(_matches(parts, pattern.replace("{folder}", own).split("/")) for pattern in reads):
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
