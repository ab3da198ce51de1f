"""Sessions of a lead and of the sub-agents that it started, which some programs keep in a file each."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import Any, TypeVar

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Place
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["Session", "Writer", "records", "write_nested"]


@dataclasses.dataclass(slots=True)
class Session:
    """A session as its file states it.

    Attributes:
      id: its id.
      parent: the id of the session that started it, "" for none.
      place: where it stands.
      content: its text, by which copies are known.
      started: the ids of the sessions that its calls name, one a call.
    """

    id: str
    parent: str
    place: Place
    content: bytes
    started: list[str] = dataclasses.field(default_factory=list)


S = TypeVar("S", bound=Session)
Writer = Generator[Any, None, None]
"""Appends the events of a session to a record, and yields the writer of each session that it starts in between."""


def join(sessions: Sequence[S]) -> tuple[list[S], dict[str, S]]:
    """The sessions that are traces, and by id those that are parts of them.

    A session is a part of its parent's trace if the parent is there and one call of it names the session. Without such
    a call, with several, or with different contents under its id it is a trace of its own.
    """
    by_id: dict[str, S] = {}
    different = {session.id for session in sessions if by_id.setdefault(session.id, session).content != session.content}
    named = Counter(
        (parent.id, started) for parent in by_id.values() for started in parent.started if started not in different
    )
    parts = {
        session.id: session
        for session in by_id.values()
        if session.id != session.parent and named[session.parent, session.id] == 1
    }
    heads = [session for session in sessions if session.id not in parts]
    waiting, reached = list(heads), set[str]()
    while True:
        while waiting:
            found = [name for name in waiting.pop().started if name in parts and name not in reached]
            reached.update(found)
            waiting += [parts[name] for name in found]
        circle = next((name for name in parts if name not in reached), None)
        if circle is None:
            return heads, parts
        heads.append(parts.pop(circle))  # sessions that started each other: none of them is lost
        waiting = heads[-1:]


def write_nested(writer: Writer) -> None:
    """Run a writer, and each that it yields, to its end. A stack: agents may nest deeper than Python's."""
    stack = [writer]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
        else:
            stack.append(below)


def records(
    sessions: Sequence[S], lost: Collection[str], write: Callable[[S, dict[str, S]], TraceRecord], field: str
) -> Iterator[TraceRecord | Problem]:
    """A record for each session that is no part of another's trace.

    A trace one of whose sessions cannot be read is refused ("lost-row"). A sub-agent without the session that started
    it is named ("lone-subagent").

    Args:
      sessions: those that were read.
      lost: ids of those that cannot be read.
      write: the record of a session and of the parts that it started.
      field: where a session states what started it.
    """
    heads, parts = join(sessions)
    for head in heads:
        missing = next((name for name in _named(head, parts) if name and name in lost), None)
        place, problem = head.place, None
        if missing is not None:
            expected = "a session that can be read: it is a part of this trace"
            problem = Problem("lost-row", place.file, place.line, field, excerpt(missing), expected, head.id)
        elif head.parent:
            expected = "one trace with the session that started it; a sub-agent's is read as a trace of its own"
            problem = Problem("lone-subagent", place.file, place.line, field, head.parent, expected, head.id)
        try:
            if missing is None:
                yield write(head, parts)
        except TraceError as error:
            problem = error.problem
        if problem is not None:
            yield problem


def _named(head: S, parts: dict[str, S]) -> Iterator[str]:
    """The ids of a session, and of those that it and its parts started."""
    waiting, seen = [head], set[str]()
    yield head.id
    while waiting:
        for name in waiting.pop().started:
            if name not in seen:
                seen.add(name)
                yield name
                waiting += [parts[name]] if name in parts else []
