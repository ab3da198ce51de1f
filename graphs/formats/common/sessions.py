"""Sessions of a lead and of the sub-agents that it started, which some programs keep in a file each."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from graphs.errors import Problem, TraceError
from graphs.reading.damage import MISSING_PART
from graphs.reading.documents import Document, Place
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["Session", "Writer", "check_session", "once", "records", "write_nested"]


@dataclasses.dataclass(slots=True)
class Session:
    """A session as its file states it.

    Attributes:
      id: its id.
      parent: the id of the session that started it, "" for none.
      place: where it stands.
      content: its text, by which copies are known.
      started: the ids of the sessions that its calls name, one a call.
      unmatched: what its calls say of sub-agents whose sessions are not there, where they name no ids.
      is_stated: whether the file states the id; otherwise it is the file's name, and the session may be any.
    """

    id: str
    parent: str
    place: Place
    content: bytes
    started: list[str] = dataclasses.field(default_factory=list)
    unmatched: list[str] = dataclasses.field(default_factory=list)
    is_stated: bool = True


S = TypeVar("S", bound=Session)
Writer = Generator[Any, None, None]
"""Appends the events of a session to a record, and yields the writer of each session that it starts in between."""


def join(sessions: Sequence[S]) -> tuple[list[S], dict[str, S], dict[str, list[S]]]:
    """The sessions that are traces, by id those that are parts of them, and by id those whose copies differ.

    A session is a part of its parent's trace if the parent is there and one call of it names the session. Without such
    a call, with several, or with different contents under its id it is a trace of its own.
    """
    by_id: dict[str, S] = {}
    disputed: dict[str, list[S]] = {}
    for session in sessions:
        first = by_id.setdefault(session.id, session)
        if first.content != session.content:
            disputed.setdefault(session.id, [first]).append(session)
    named = Counter(
        (parent.id, started) for parent in by_id.values() for started in parent.started if started not in disputed
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
            return heads, parts, disputed
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
    sessions: Sequence[S],
    lost: Collection[str],
    write: Callable[[S, dict[str, S]], TraceRecord],
    *,
    parent: str,
    started: str,
) -> Iterator[TraceRecord | Problem]:
    """A record for each session that is no part of another's trace.

    A trace one of whose sessions cannot be read is refused ("lost-row"), and so is one of whose sessions two copies
    differ ("duplicate-trace"). A sub-agent without the session that started it is named ("lone-subagent"), and so is,
    once a trace, a sub-agent whose session is not there ("missing-subagent").

    Args:
      sessions: those that were read.
      lost: ids of those that cannot be read.
      write: the record of a session and of the parts that it started.
      parent: the field in which a session states what started it.
      started: the field in which a call states the session that it started.
    """
    heads, parts, disputed = join(sessions)
    known = {session.id for session in sessions if session.is_stated}
    for head in heads:
        place, names = head.place, [name for name in _named(head, parts) if name]
        unreadable = next((name for name in names if name in lost), None)
        two = next((name for name in names if name in disputed and (head.parent or name != head.id)), None)
        if unreadable is not None:
            expected = "a session that can be read: it is a part of this trace"
            yield Problem("lost-row", place.file, place.line, started, excerpt(unreadable), expected, head.id)
            continue
        if two is not None:  # two copies of a lead are two traces of one id, which `graphs.traces.copies` compares
            files = " and ".join(dict.fromkeys(f"{copy.place.file}:{copy.place.line}" for copy in disputed[two][:2]))
            expected = f"a session with one content: its copies {files} differ, so neither is read"
            if two != head.id:
                expected += ", nor the trace that it is a part of"
            field = parent if two == head.id else started
            yield Problem("duplicate-trace", place.file, place.line, field, excerpt(two), expected, head.id)
            continue
        absent = [name for name in names if name not in known]
        absent += [
            said for part in (head, *(parts[name] for name in names if name in parts)) for said in part.unmatched
        ]
        if absent:
            expected = "the session of each sub-agent among the files: the trace is read without what it did"
            value = excerpt(absent[0])
            yield Problem(MISSING_PART, place.file, place.line, started, value, expected, head.id, len(absent))
        try:
            record = write(head, parts)
        except TraceError as error:
            yield error.problem
            continue
        if absent:
            record.lost_part()
        # Also files without an event: what is lost in them is a part of this trace.
        record.sources = list(dict.fromkeys(parts[name].place.file for name in names if name in parts))
        yield record
        if head.parent:
            expected = "one trace with the session that started it; a sub-agent's is read as a trace of its own"
            yield Problem("lone-subagent", place.file, place.line, parent, head.parent, expected, head.id)


def once(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents of a file without a repetition of the file's beginning, as where its content was written twice."""
    seen: list[bytes] = []
    expected = 0  # the place in `seen` of the document that would go on with a repetition; 0 outside one
    for document in documents:
        digest = hashlib.blake2b(document.raw, digest_size=16).digest()
        is_again = expected < len(seen) and digest == seen[expected]
        if not is_again and expected and digest == seen[0]:
            expected, is_again = 0, True
        expected = expected + 1 if is_again else 0
        if not is_again:
            seen.append(digest)
            yield document


def check_session(known: str, stated: str | None, place: Place, field: str) -> None:
    """Check that a file goes on with the session it began with: two of them in one file were put there by a `cat`.

    Args:
      known: the id of the session so far, "" for none.
      stated: the id that a later part of the file states; None or "" for none.
      place: where.
      field: in which field.

    Raises:
      TraceError: "several-sessions".
    """
    if known and stated and stated != known:
        expected = f"{excerpt(known)}, as above: one session a file"
        raise TraceError(Problem("several-sessions", place.file, place.line, field, excerpt(stated), expected, known))


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
