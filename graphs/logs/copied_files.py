"""Copies of logs under further names, such as `run (1).json`: each would count its traces twice."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from graphs.errors import Problem
from graphs.reading.files import real_folder
from graphs.reading.remote import FetchedPath
from graphs.reading.source import Source
from graphs.text import excerpt

__all__ = ["without_copies"]

_BY_PLACE = ("harbor", "claude-code", "swe-agent")
"""Formats in which the place of a file, or its name, says what it is of: equal ones are of two trials or instances."""

_RUN_A_FOLDER = ("rollouts",)
"""Formats without ids or times, in which a folder is a run: two runs may begin with equal answers."""

_BLOCK = 1 << 20  # bytes that are in memory at once


def without_copies(members_of: Mapping[str, list[Source]]) -> tuple[dict[str, list[Source]], list[Problem]]:
    """The sources of each format without files of the content of another, and a problem for each of these.

    The shortest name stands, the first of several, because it is the one that was copied. Only local files of equal
    size are read. An empty file, one beyond the limits, and one that cannot be read are left to the readers.
    """
    kept: dict[str, list[Source]] = {}
    problems: list[Problem] = []
    for name, members in members_of.items():
        first_of: dict[int, Source] = {}  # by the identity of a copy
        for equal in () if name in _BY_PLACE else _equal(members, name in _RUN_A_FOLDER):
            first = min(equal, key=lambda source: len(source.name))
            first_of |= {id(source): first for source in equal if source is not first}
        kept[name] = [source for source in members if id(source) not in first_of]
        problems += [_problem(source, first_of[id(source)]) for source in members if id(source) in first_of]
    return kept, problems


def _problem(copy: Source, first: Source) -> Problem:
    value = f"the content of {excerpt(first.name, 200)} again"
    expected = "each log once, so it is not read: its traces would count twice"
    return Problem("same-content", copy.name, 0, "content", value, expected)


def _equal(sources: list[Source], each_folder: bool) -> list[list[Source]]:
    """Groups of two or more files of one content, of one folder if so wanted, each in the order of the sources."""
    of_size: dict[int, list[tuple[Source, Path]]] = defaultdict(list)
    for source in sources:
        if source.path is None or (isinstance(source.path, FetchedPath) and source.path.address):
            continue
        try:
            size = os.stat(source.path).st_size
        except (OSError, ValueError):  # its reader says why
            continue
        if 0 < size <= source.limits.file_bytes:
            of_size[size].append((source, source.path))
    groups: dict[tuple[bytes, str], list[Source]] = defaultdict(list)
    for alike in of_size.values():
        for source, path in alike if len(alike) > 1 else ():
            digest = _digest(path)
            if digest is not None:
                groups[digest, real_folder(source.name) if each_folder else ""].append(source)
    return [equal for equal in groups.values() if len(equal) > 1]


def _digest(path: Path) -> bytes | None:
    """A hash of a file's bytes; None where they cannot be read, which its reader names."""
    digest = hashlib.blake2b(digest_size=32)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return None
    return digest.digest()
