"""Spans that do not state their trace: the traces that they are part of, or may be, would be read without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from graphs.errors import Problem
from graphs.reading.json_problems import JSON_ERRORS

__all__ = ["Stray", "Strays", "stray_in"]


class _Ids(msgspec.Struct, rename="camel"):
    trace_id: msgspec.Raw = msgspec.Raw()
    span_id: msgspec.Raw = msgspec.Raw()
    parent_span_id: msgspec.Raw = msgspec.Raw()


_IDS = msgspec.json.Decoder(_Ids)
_TEXT = msgspec.json.Decoder(str)


class Stray(NamedTuple):
    """A span without its trace: its id, its parent's, and whether a text stands where its trace's is, of whatever."""

    own: str = ""
    parent: str = ""
    is_of_other: bool = False


class Strays:
    """Spans without their traces, each with its problem and what stands beside it."""

    def __init__(self) -> None:
        self._noted: list[tuple[Problem, Stray, set[str] | None]] = []

    def __bool__(self) -> bool:
        return bool(self._noted)

    def note(self, problem: Problem, stray: Stray, here: set[str] | None = None) -> None:
        """Note a span; `here` are the traces of its request, which may grow: without them those of its line count."""
        self._noted.append((problem, stray, here))

    def traces(
        self, spans: Iterable[tuple[str, str, str]], places: Iterable[tuple[str, str, int]]
    ) -> Iterator[tuple[str, Problem]]:
        """Traces with a span above, below or beside one of these in the tree, or alone in its request; its problem.

        Args:
          spans: traces, with the id and the parent's id of each span.
          places: traces, with each file and line that has something of them.
        """
        parents: dict[str, dict[str, None]] = {stray.parent: {} for _, stray, _ in self._noted if stray.parent}
        above = {stray.own: dict[str, None]() for _, stray, _ in self._noted if stray.own} | parents
        for trace, own, parent in spans:
            if own in parents:
                parents[own][trace] = None
            if parent in above:
                above[parent][trace] = None
        lines: dict[tuple[str, int], set[str]] = {(problem.file, problem.line): set() for problem, _, _ in self._noted}
        for trace, file, line in places:
            if (file, line) in lines:
                lines[file, line].add(trace)
        for problem, stray, here in self._noted:
            related = above.get(stray.own, {}) | parents.get(stray.parent, {})
            if not related and not stray.is_of_other:
                beside = lines[problem.file, problem.line] if here is None else here
                related = dict.fromkeys(beside if len(beside) == 1 else ())
            yield from ((trace, problem) for trace in related)


def stray_in(raw: msgspec.Raw, *, is_span: bool) -> Stray:
    """The ids of a record that is a span, or about one."""
    try:
        stated = _IDS.decode(raw)
    except JSON_ERRORS:
        return Stray()
    own, parent, trace = map(_text, (stated.span_id, stated.parent_span_id, stated.trace_id))
    return Stray(own if is_span else "", parent if is_span else own, bool(trace))


def _text(value: msgspec.Raw) -> str:
    """In lower case; "" for what is absent, or no text."""
    try:
        return _TEXT.decode(value).lower()
    except JSON_ERRORS:
        return ""
