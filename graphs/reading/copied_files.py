"""Copies of files, whole or cut, for readers whose records have no ids: a file that another begins with is not read."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterable

from graphs.errors import Problem
from graphs.reading.source import Source
from graphs.text import excerpt

__all__ = ["without_copied_files"]

_HEAD = 1 << 16  # bytes of the first line that are compared before whole files are read


def without_copied_files(
    sources: Iterable[Source], of: Callable[[Source], str] = lambda _: ""
) -> tuple[list[Source], list[Problem]]:
    """The sources without copies, whole or cut, and a note for each of these ("repeated-run", which is information).

    The longest stays, of equal ones that in the folder with most of the sources: the rest of its run is there.

    Args:
      sources: the files of a reader.
      of: what a file's name tells of its run; files of which it differs are no copies.
    """
    sources = list(sources)
    alike: dict[tuple[str, bytes], list[int]] = {}
    for index, source in enumerate(sources):
        try:
            first = source.head(_HEAD).lstrip().partition(b"\n")[0]
        except OSError:
            continue  # its reader names what is wrong
        if first:
            alike.setdefault((of(source), first), []).append(index)
    many = collections.Counter(os.path.dirname(source.name) for source in sources)
    copies: dict[int, Source] = {}
    for same in alike.values():
        if len(same) > 1:
            copies |= _copies(same, sources, many)
    kept = [source for index, source in enumerate(sources) if index not in copies]
    return kept, [_note(sources[index], copies[index]) for index in sorted(copies)]


def _copies(same: list[int], sources: list[Source], many: collections.Counter[str]) -> dict[int, Source]:
    """By index, the sources that are copies, each with the one that is read in its place."""
    data: dict[int, bytes] = {}
    for index in same:
        try:
            data[index] = sources[index].data.rstrip()
        except OSError:
            continue
        sources[index].release()
    order = sorted(data, key=lambda i: (-len(data[i]), -many[os.path.dirname(sources[i].name)], i))
    found: dict[int, Source] = {}
    for place, index in enumerate(order):
        longer = (other for other in order[:place] if other not in found)
        original = next((other for other in longer if data[other].startswith(data[index])), None)
        if original is not None:
            found[index] = sources[original]
    return found


def _note(source: Source, original: Source) -> Problem:
    value, expected = (
        f"the content of {excerpt(original.name, 200)} again",
        "each run once, so it is read from there alone",
    )
    return Problem("repeated-run", source.name, 0, "content", value, expected)
