"""Objects that are cut and hold parts of several traces: what is lost may be of traces that they do not state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from graphs.errors import Problem

__all__ = ["LostBatches"]

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*+)(?:"\s*+(:?)|\\?\Z)|[{}\[\],]', re.DOTALL)
_BEGIN = re.compile(rb"\s*+(?:\{|\[\s*+\{)")  # not that of a line such as "[12:00 INFO saved"
_OTHER, _OBJECT, _LIST = range(3)  # of the objects and lists around a place: another, one with lists, such a list


class _Batch(NamedTuple):
    """A batch: the traces and other ids that it states, and whether its text shows that it holds several parts."""

    problem: Problem
    named: tuple[str, ...]
    ids: tuple[str, ...]
    is_several: bool


class LostBatches:
    """The cut ones among what cannot be read.

    Args:
      lists: keys of lists whose elements may be of several traces, if these hold several.
      pages: keys of lists whose elements are of several traces.
    """

    def __init__(self, lists: Iterable[str], pages: Iterable[str]) -> None:
        self._pages = {key.encode() for key in pages}
        self._lists = {key.encode() for key in lists} | self._pages
        self._noted: list[_Batch] = []

    def __bool__(self) -> bool:
        return bool(self._noted)

    def note(self, problem: Problem, text: bytes, named: Iterable[str], ids: Iterable[str]) -> None:
        """Note what cannot be read, if it is a batch that is cut; `ids` are those that tell a trace by its spans."""
        names = tuple(dict.fromkeys(named))
        is_several = self._is_several(text) if self._lists and (names or _BEGIN.match(text)) else None
        if is_several is not None:
            self._noted.append(_Batch(problem, names, tuple(ids), is_several))

    def others(self, places: Iterable[tuple[str, str, int]], owners: Mapping[str, str]) -> dict[str, Problem]:
        """The traces at hand that the lost rest of a batch may be of, where one of its file is not all in one place.

        Those of another file are among them if it has a trace of the batch's file. A batch that shows one part is none
        where no line at hand has parts of two traces. One that is of no trace at hand, cut before it states any, may be
        of those of all files that share a trace with another: a log whose traces are each within a file has no others.

        Args:
          places: traces, with each file and line that has something of them.
          owners: the trace of each id that a batch may state in place of a trace.
        """
        places_of: dict[str, dict[tuple[str, int], None]] = {}
        files: dict[str, dict[str, None]] = {}
        holders: dict[tuple[str, int], str] = {}
        is_mixed = False
        for trace, file, line in places:
            places_of.setdefault(trace, {})[file, line] = None
            files.setdefault(file, {})[trace] = None
            is_mixed = is_mixed or holders.setdefault((file, line), trace) != trace
        spread = {file for file, here in files.items() if any(len(places_of[trace]) > 1 for trace in here)}
        of_files = ({file for file, _ in held} for held in places_of.values())
        shared = {file for held in of_files if len(held) > 1 for file in held}
        found: dict[str, Problem] = {}
        followed: set[str] = set()  # traces whose files are found
        taken: set[str] = set()  # files whose traces are found
        linked: set[str] = set()  # files with batches whose traces are followed
        for problem, named, ids, is_several in self._noted:
            if not is_several and not is_mixed:
                continue
            met = [trace for trace in (*named, *(owners.get(name, "") for name in ids)) if trace in places_of]
            if met or problem.file in spread:
                here = {*met, *(files.get(problem.file, ()) if problem.file not in linked else ())} - followed
                near = {file for trace in here for file, _ in places_of[trace]}
                followed |= here
                linked.add(problem.file)
            else:
                near, shared = shared, set()  # once found, they stay so: no batch goes through them again
            for file in sorted(near - taken):
                found |= {trace: problem for trace in files[file] if trace not in found}
            taken |= near
        return found

    def _is_several(self, text: bytes) -> bool | None:
        """Whether a batch shows that it holds several parts; None for what is no batch, or is not cut."""
        around, key = bytearray(), b""
        is_batch = is_several = False
        for match in _TOKEN.finditer(text):
            sign = match[0]
            if match[1] is not None:
                key = match[1] if match[2] else b""
                continue
            if sign == b"{":
                around.append(_OBJECT if not around or around[-1] == _LIST else _OTHER)
            elif sign == b"[":
                is_list = not around or (around[-1] == _OBJECT and key in self._lists)
                is_batch = is_batch or is_list
                is_several = is_several or (is_list and (not around or key in self._pages))
                around.append(_LIST if is_list else _OTHER)
            elif sign == b",":
                is_several = is_several or (bool(around) and around[-1] == _LIST)
            elif around:
                around.pop()
            key = b""
        return is_several if is_batch and around else None
