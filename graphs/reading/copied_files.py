"""Copies of files, whole or cut, for readers whose records have no ids: a file that another begins with is not read.

Neither is one that follows in it, as in all shards of a run joined to one file beside them.
"""

from __future__ import annotations

import collections
import hashlib
import os
from collections.abc import Iterable, Sequence

from graphs.errors import Problem
from graphs.reading.source import Source
from graphs.text import excerpt

__all__ = ["without_copied_files"]

_HEAD, _LEAST = 1 << 16, 128
"""Whole files are read only where their first lines are equal. These are the first `_LEAST` bytes, up to the end of
their line, or the first `_HEAD` bytes where no line ends there."""


def without_copied_files(sources: Iterable[Source], *, older: bool = False) -> tuple[list[Source], list[Problem]]:
    """The sources without copies, whole or cut, and a note for each of these ("repeated-run", which is information).

    The longest stays, of equal ones that in the folder with most of the sources: the rest of its run is there. With
    `older` all equal ones stay.
    """
    sources = list(sources)
    alike: dict[bytes, list[int]] = {}
    for index, source in enumerate(sources):
        try:
            begin = _begin(source.head(_HEAD))
        except OSError:
            continue  # its reader names what is wrong
        if begin:
            alike.setdefault(begin, []).append(index)
    many = collections.Counter(os.path.dirname(source.name) for source in sources)
    copies: dict[int, Source] = {}
    for same in alike.values():
        if len(same) > 1:
            most_first = sorted(same, key=lambda index: -many[os.path.dirname(sources[index].name)])
            copies |= _copies(most_first, sources, older)
    for original in [] if older else [*dict.fromkeys(copies.values())]:
        copies |= _joined(original, sources, alike)
    kept = [source for index, source in enumerate(sources) if index not in copies]
    return kept, [_note(sources[index], copies[index]) for index in sorted(copies)]


def _copies(same: Sequence[int], sources: Sequence[Source], older: bool) -> dict[int, Source]:
    """By index, the sources that are copies, each with the one that is read in its place. One is in memory."""
    known: dict[int, tuple[int, bytes]] = {}  # length and digest
    for index in same:
        data = _data(sources[index])
        if data is not None:
            known[index] = len(data), _digests(data, [len(data)])[len(data)]
    found: dict[int, Source] = {}
    order = sorted(known, key=lambda index: -known[index][0])
    for place, index in enumerate(order):
        shorter = [
            other for other in order[place + 1 :]
            if other not in found and not (older and known[other][0] == known[index][0])
        ]  # fmt: skip
        data = _data(sources[index]) if shorter and index not in found else None
        if data is not None:
            begins = _digests(data, sorted({known[other][0] for other in shorter}))
            found |= {other: sources[index] for other in shorter if begins.get(known[other][0]) == known[other][1]}
    return found


def _joined(whole: Source, sources: Sequence[Source], alike: dict[bytes, list[int]]) -> dict[int, Source]:
    """By index, the sources whose contents a file consists of, from its begin on. Two are in memory."""
    data, at, found = _data(whole) or b"", 0, dict[int, Source]()
    while at < len(data):
        parts = [index for index in alike.get(_begin(data[at : at + _HEAD]), ()) if sources[index] is not whole]
        lengths = {index: len(part) for index in parts if (part := _data(sources[index])) and data.startswith(part, at)}
        if not lengths:
            break
        found |= dict.fromkeys(lengths, whole)
        at += max(lengths.values())
        at += len(data[at : at + _HEAD]) - len(data[at : at + _HEAD].lstrip())
    return found


def _begin(head: bytes) -> bytes:
    """What is compared of a file that begins so."""
    head = head.lstrip()
    end = head.find(b"\n", _LEAST)
    return head[:end] if end >= 0 else head


def _data(source: Source) -> bytes | None:
    try:
        return source.data.rstrip()
    except OSError:
        return None
    finally:
        source.release()


def _digests(data: bytes, lengths: Sequence[int]) -> dict[int, bytes]:
    """The digests of the beginnings of these lengths, which ascend."""
    running, start, found = hashlib.blake2b(digest_size=16), 0, {}
    for end in lengths:
        running.update(memoryview(data)[start:end])
        found[end], start = running.digest(), end
    return found


def _note(source: Source, original: Source) -> Problem:
    value = f"the content of {excerpt(original.name, 200)} again"
    expected = "each run once, so it is read from there alone"
    return Problem("repeated-run", source.name, 0, "content", value, expected)
