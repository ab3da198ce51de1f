"""The native format: the survey's orchestration-trace JSON and its extension. `docs/formats/native.md` is the map.

A file holds one trace, a JSON list of traces, or one trace a line. They are divided into records here,
one a trace; `graphs.formats.native.batches` makes columns of the records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from graphs.errors import Problem
from graphs.formats.native.batches import Record, read_records
from graphs.formats.native.misspelt import bytes_looked_at, may_be_near, near_keys
from graphs.formats.native.slim import SlimDecoder
from graphs.formats.native.wire import EventBase, Trace
from graphs.reading.documents import before_damage, behind
from graphs.reading.json_problems import JSON_ERRORS, json_problem
from graphs.reading.keys import Opening, opening
from graphs.reading.source import Source, unreadable
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["NEXT_OBJECT", "RECORDS", "Piece", "of_source", "pieces", "read", "sniff"]

RECORDS = (Trace, EventBase)

_TOP_LEVEL = frozenset(Trace.__struct_encode_fields__)
_LINES_TO_LOOK_AT = 20
_SHORT_HEAD = 2048
NEXT_OBJECT = re.compile(rb"\}\s*\{")
"""Where two objects stand side by side, no document goes over both: they are lines."""


def sniff(head: bytes) -> bool:
    """Whether the content is a trace of this format, a list of them, or lines of them, by its first keys.

    The first line may be broken: the lines behind it are looked at too.
    """
    if b'"events"' not in head and not (b'"trace_id"' in head and b'"task_id"' in head):
        return False  # for speed: most files are not ours
    head = head.lstrip()
    if head.startswith(b"["):
        found = head.find(b"{")  # the first elements may be broken, too
        return found > 0 and _is_ours(head[found:])
    starts, found = [0], head.find(b"\n{")
    while found >= 0 and len(starts) < _LINES_TO_LOOK_AT:
        starts.append(found + 1)
        found = head.find(b"\n{", found + 1)
    return any(_is_ours(head[start:]) for start in starts)


def _is_ours(head: bytes) -> bool:
    if len(head) > _SHORT_HEAD and b'"events"' in head[:_SHORT_HEAD] and _has_our_events(opening(head[:_SHORT_HEAD])):
        return True  # for speed: more of it would show more keys, not fewer
    seen = opening(head)
    if _has_our_events(seen):
        return True
    keys = set(seen.keys)
    return {"trace_id", "task_id"} <= keys and "events" not in keys and not seen.complete and keys <= _TOP_LEVEL


def _has_our_events(seen: Opening) -> bool:
    ids = {"trace_id", "task_id"}.intersection(seen.keys)
    event = seen.first.get("events", frozenset())
    return "events" in seen.keys and (
        len(ids) == 2 or {"type", "agent"} <= event or (bool(ids) and len(event & {"id", "t", "type", "agent"}) > 1)
    )


def read(sources: Sequence[Source]) -> Iterator[Part | TraceRecord | Problem]:
    """The traces of all sources; a trace that cannot be decoded is a `Problem` and harms no other."""
    decoder = SlimDecoder()
    yield from read_records(_records(sources, decoder), decoder)


def _records(sources: Sequence[Source], decoder: SlimDecoder) -> Iterator[Record | Problem]:
    """The records of all sources; who asks for the next one has decoded the last by `decoder`."""
    for number, source in enumerate(sources):
        try:
            located = pieces(source)
        except OSError as error:
            yield unreadable(source, error)
            continue
        left, seen = bytes_looked_at(number, len(sources)), set[tuple[str, str]]()
        for item in of_source(source, located):
            yield item
            if left > 0 and isinstance(item, Record):
                left -= len(item.data)
                if may_be_near(decoder.unknown, item.data):
                    yield from near_keys(item.data, source.name, item.line, seen)
        source.release()


def of_source(source: Source, located: Iterable[Piece | Problem]) -> Iterator[Record | Problem]:
    """Pieces of a source as records."""
    return (piece if isinstance(piece, Problem) else Record(source, *piece) for piece in located)


Piece = tuple[int, int, bytes]
"""Line, offset and JSON of a record."""


def pieces(source: Source) -> Iterable[Piece | Problem]:
    """The record of each trace of a source.

    Raises:
      OSError: it cannot be read.
    """
    data = source.data
    text = data.strip()
    if not text:
        return [Problem("empty-file", source.name, 0, "content", "empty", "at least one trace")]
    start = len(data) - len(data.lstrip())
    whole = (1 + data.count(b"\n", 0, start), start, text)
    if text.startswith(b"["):
        return _elements(source.name, *whole)
    end = text.find(b"\n")
    if end < 0:
        return [whole]
    if NEXT_OBJECT.match(text, end - 1):
        return source.unchecked_lines()
    if _is_json(text[:end]) or (not _is_json(text) and any(_is_json(line) for _, _, line in source.unchecked_lines())):
        return source.unchecked_lines()
    return [whole]


def _is_json(data: bytes) -> bool:
    try:
        return bytes(msgspec.json.decode(data, type=msgspec.Raw)).startswith(b"{")
    except JSON_ERRORS:
        return False


def _elements(file: str, line: int, offset: int, text: bytes) -> Iterator[Piece | Problem]:
    wrong = None
    try:
        elements: list[msgspec.Raw] | list[bytes] = msgspec.json.decode(text, type=list[msgspec.Raw])
    except JSON_ERRORS as error:
        elements, wrong = before_damage(text), json_problem(error, text, file, line)
    if not elements and wrong is None:
        yield Problem("empty-file", file, line, "content", "[]", "at least one trace")
    end = 0
    for element in elements:
        piece = bytes(element)
        begin = text.index(piece, end)  # between two elements there are only blanks and a comma
        line += text.count(b"\n", end, begin)
        yield line, offset + begin, piece
        line += piece.count(b"\n")
        end = begin + len(piece)
    if wrong is not None and (wrong := behind(wrong, text, end, line)) is not None:
        yield wrong
