"""Whether the checkpoints of a thread are all in its file, and in no other: each names the one that it follows.

Ids of threads tell nothing across files, since programs that run anew take the same ones again; those of
checkpoints are unique.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from graphs.errors import Problem
from graphs.reading.documents import Place
from graphs.text import excerpt

__all__ = ["Checkpoints", "Fault"]


class Fault(NamedTuple):
    """What is wrong with a thread, and where; its trace is named when the file has ended."""

    kind: str
    place: Place
    field: str
    value: str
    expected: str

    def problem(self, trace: str) -> Problem:
        """The problem of the thread with this id."""
        return Problem(self.kind, self.place.file, self.place.line, self.field, self.value, self.expected, trace)


class Checkpoints:
    """The checkpoints of all files that have been read."""

    def __init__(self) -> None:
        self._file_of: dict[str, str] = {}
        self._awaited: dict[str, str] = {}  # what a checkpoint follows that is not in its file, which is the value

    def take(self, own: Mapping[str, Place], followed: Mapping[str, Place]) -> Fault | None:
        """Note the checkpoints of a thread; returns what is wrong with them.

        Args:
          own: those in the file, by id.
          followed: those that one of them follows, with its place.
        """
        faults: list[Fault] = []
        for name, place in own.items():
            file = self._file_of.setdefault(name, place.file)
            if file != place.file:
                expected = f"a thread that stands in no other file (also in {file})"
                faults.append(Fault("duplicate-id", place, "checkpoint_id", excerpt(name), expected))
            elif name in self._awaited:
                expected = f"a thread that goes on in no other file (it does in {self._awaited[name]})"
                faults.append(Fault("parted-thread", place, "checkpoint_id", excerpt(name), expected))
        for name, place in followed.items():
            if name not in own:
                self._awaited.setdefault(name, place.file)
                there = f"; it is in {self._file_of[name]}" if name in self._file_of else ""
                expected = f"a checkpoint of this file: without it the thread lacks what came before{there}"
                faults.append(Fault("missing-parent", place, "parent_config", excerpt(name), expected))
        return faults[0] if faults else None
