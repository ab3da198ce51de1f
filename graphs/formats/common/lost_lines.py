"""Lines that cannot be read, and the traces that they are part of, or may be: those may lack a call or a reward.

A line states its trace; or a span of one, or a span that one hangs on; or, cut early, nothing. Then it may be of any
trace of its file that is spread over lines, if it begins as lines of the file do. Ids within its values, such as those
in an input's metadata, state nothing: they may be of anything. A trace that is named there is refused, too. What is cut
of an object that holds parts of several traces may be of others than it states; `lost_batches` has those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from graphs.errors import Problem
from graphs.formats.common.lost_batches import LostBatches
from graphs.formats.common.span_tree import Span
from graphs.reading.documents import Document, documents_or_lost, lost_row, refused_lines
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Lost, Source
from graphs.reading.tables.beginnings import Beginnings
from graphs.reading.tables.glued_lines import pieces
from graphs.reading.tables.torn_lines import is_torn

__all__ = ["LostLines", "owners_of"]

_VALUE = rb'"\s*+:\s*+"((?:[^"\\]|\\.)*+)("?)'
_BEGIN = re.compile(rb'\s*+\{\s*+((?:"[^"\\]{0,200}+"?+)?)')
_PAIR = re.compile(
    rb'"((?:[^"\\]|\\.)*+)(?:"(?:\s*+:\s*+"((?:[^"\\]|\\.)*+)("?))?|\\?\Z)|[{}\[\]]', re.DOTALL
)  # a key with a text, another text, or a bracket; a text that does not end is one token, else this would be quadratic
_MOST_KEYS = 100  # that are told apart
_TEXT = msgspec.json.Decoder(str)


class _Parts:
    """What a file has parts of: lines of it that begin alike may be of any of these traces."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: list[str] = []


class LostLines:
    """The traces of unreadable lines.

    Args:
      trace: the key of an item that states its trace.
      spans: keys that state the trace itself, or one of its spans.
      lacks: what such a line may be.
      first: keys with which such a line may begin, beside those of other lines of its file.
      plain: the id of a trace as readers have it, from how a log writes it.
      begun: what such ids begin with, from what is left of one that is cut; nothing, if they may be any.
      is_deep: whether what a line states of its traces stands within lists and objects.
      lists, pages: as those of `LostBatches`.
    """

    def __init__(
        self,
        trace: str,
        spans: Iterable[str],
        lacks: str,
        *,
        first: Iterable[str] = (),
        plain: Callable[[str], str | None] | None = None,
        begun: Callable[[str], list[str]] | None = None,
        is_deep: bool = False,
        lists: Iterable[str] = (),
        pages: Iterable[str] = (),
    ) -> None:
        self._batches = LostBatches(lists, pages)
        self._places: list[tuple[str, str, int]] = []  # of what `part` noted, its file; the line is 0
        self.lacks, self._id, self._is_deep = lacks, plain, is_deep
        self._begun_id = begun
        spans = list(spans)
        self._trace_key, self._span_keys = trace.encode(), {key.encode() for key in spans}
        self._keys = [key.encode() for key in first]
        self._known = {b'"' + key + b'"' for key in self._keys}
        self._trace = re.compile(b'"' + trace.encode() + _VALUE, re.DOTALL)
        self._spans = re.compile(b'"(?:' + "|".join(spans).encode() + b")" + _VALUE, re.DOTALL)
        self._named: dict[str, Problem] = {}
        self._begins = Beginnings()
        self._unnamed: list[tuple[Problem, tuple[str, ...], _Parts | None]] = []  # lines with ids of spans
        self._any: dict[_Parts, Problem] = {}  # lines that state nothing, of those that begin alike the first
        self._begun: dict[bytes, _Parts] = {}  # by what is left of the first key, in the file at hand
        self._parts: dict[str, None] = {}  # of the file at hand
        self._files: dict[str, _Parts] = {}  # of lines that `add_to_file` noted
        self._first_keys: set[bytes] = set()  # of the file at hand

    def documents(self, source: Source, items: Iterable[Document | Lost] | None = None) -> Iterator[Document | Problem]:
        """The values of a file as `graphs.reading.documents.documents` gives them, or `items`; the rest is noted.

        A reader calls `part` with the trace of each value that is not the whole trace.
        """
        for item in documents_or_lost(source) if items is None else items:
            if isinstance(item, Lost):
                yield item.problem
                self._add(item)
            else:
                if len(self._first_keys) < _MOST_KEYS:
                    self._first_keys |= _first_key(item.raw)
                yield item
        for line in refused_lines(source):
            self._add(line)
        names = list(self._parts) if self._begun else []
        self._places += ((name, source.name, 0) for name in self._parts)
        for begins, parts in self._begun.items():
            if any(key.startswith(begins) for key in self._known | self._first_keys):
                parts.names = names
        self._begun, self._parts, self._first_keys = {}, {}, set()

    def _add(self, lost: Lost) -> None:
        """Note a line, or the content of a file, that is no JSON."""
        begins = _BEGIN.match(next(pieces(lost.text, self._keys)))
        torn = is_torn(lost.text)
        if begins is None and not torn:
            self._note(lost.problem, lost.text, None)
        else:
            key = begins[1] if begins is not None and not torn and len(self._begun) < _MOST_KEYS else b""
            self._note(lost.problem, lost.text, self._begun.setdefault(key, _Parts()), torn)

    def add_to_file(self, lost: Lost) -> None:
        """Note a line, or the content of a file, for a reader that says at the end what `files` have parts of."""
        begins = _BEGIN.match(next(pieces(lost.text, self._keys)))
        torn = is_torn(lost.text)
        is_one = torn or (begins is not None and any(key.startswith(begins[1]) for key in self._known))
        parts = self._files.setdefault(lost.problem.file, _Parts()) if is_one else None
        self._note(lost.problem, lost.text, parts, torn)

    @property
    def files(self) -> dict[str, list[str]]:
        """The files with lines that `add_to_file` noted and that state nothing; for each a list, to hold its traces."""
        return {file: parts.names for file, parts in self._files.items() if parts in self._any}

    def add_faulty(self, problem: Problem, raw: bytes) -> None:
        """Note an item with a fault, which hides its trace; one that states none, and is not torn, is of no trace."""
        torn = is_torn(raw)
        self._note(problem, raw, self._begun.setdefault(b"", _Parts()) if torn else None, torn)

    def _note(self, problem: Problem, text: bytes, parts: _Parts | None, torn: bool = False) -> None:
        if torn and parts is not None:  # what it states may be within its values
            self._any.setdefault(parts, problem)
        texts = list(pieces(text, self._keys))
        named: list[str] = []
        for number, piece in enumerate(texts):
            names = self._names(piece, problem)
            named += names
            if parts is not None and self._has_unreadable(piece):  # it may be of any trace, beside those named
                self._any.setdefault(parts, problem)
            stated, ids = self._stated(piece, bool(names), parts is not None)
            if not stated and ids:
                self._unnamed.append((problem, tuple(map(_plain, ids)), parts))
            elif not stated and parts is not None and (number == 0 or number < len(texts) - 1):
                self._any.setdefault(parts, problem)
        within = (_plain(value) for value, is_whole in _texts(self._spans, text) if value and is_whole)
        self._batches.note(problem, text, named, within)

    def _stated(self, text: bytes, is_named: bool, is_line: bool) -> tuple[bool, list[bytes]]:
        """Whether a text states its own trace, if it names some trace or none; and the ids of spans that it states."""
        if self._is_deep:
            return is_named, []
        if not is_line:
            return is_named, [value for value, is_whole in _texts(self._spans, text) if value and is_whole]
        own = list(_own(text))
        ids = [value for key, value, is_whole in own if key in self._span_keys and value and is_whole]
        return any(key == self._trace_key and value for key, value, _ in own), ids

    def _names(self, text: bytes, problem: Problem) -> list[str]:
        """Note the traces that a text names."""
        found = _texts(self._trace, text)
        return [name for written, is_whole in found if (name := self._name(written, is_whole, problem))]

    def _has_unreadable(self, text: bytes) -> bool:
        """Whether an id of a trace begins with bytes that are no text."""
        return any(match[1] and not _readable(match[1], True)[0] for match in self._trace.finditer(text))

    def _name(self, written: bytes, is_whole: bool, problem: Problem) -> str:
        """Note a trace by its id, or by what is left of it; "" for no id."""
        name = _plain(written)
        if name and not is_whole and self._begun_id is not None:
            begins = self._begun_id(name)
            for one in begins:
                self._begins.note(one, problem)
            return next(iter(begins), "")
        name = name if self._id is None or not name else self._id(name) or ""
        if name:
            self._named.setdefault(name, problem) if is_whole else self._begins.note(name, problem)
        return name

    def part(self, name: str) -> None:
        """Note that the file has a line that is not all of a trace, by the id of the trace or of one of its spans."""
        self._parts[name] = None

    @property
    def is_open(self) -> bool:
        """Whether `settle` has lines to find the traces of."""
        return bool(self._unnamed or self._any or self._batches)

    def settle(self, owners: Mapping[str, str], places: Iterable[tuple[str, str, int]] = ()) -> None:
        """Find the traces of lines that state none, or not all, when all files have been read.

        Args:
          owners: the trace of each id that a line may state, as `owners_of` gives them.
          places: traces, with each file and line that has something of them, beside those that `part` noted.
        """
        for problem, ids, parts in self._unnamed:
            traces = [owners[name] for name in ids if name in owners]
            self._named |= {trace: problem for trace in traces if trace not in self._named}
            if not traces and parts is not None:
                self._any.setdefault(parts, problem)
        for parts, problem in self._any.items():
            for name in parts.names:
                self._named.setdefault(owners.get(name, name), problem)
        if self._batches:
            noted = ((owners.get(name, name), file, line) for name, file, line in self._places)
            self._named = self._batches.others([*noted, *places], owners) | self._named
        self._unnamed.clear()
        self._any.clear()

    @property
    def is_stated(self) -> bool:
        """Whether a line is of any trace at all."""
        return bool(self._named or self._begins)

    def of(self, trace: str) -> Problem | None:
        """The problem of a trace that one of the lines is part of, or may be."""
        problem = self._named.get(trace) or self._begins.of(trace)
        return None if problem is None else lost_row(problem, trace, self.lacks)


def _own(text: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """The pairs of the object itself that a text begins, of a key and a text; whether the text ends."""
    depth = 0
    for match in _PAIR.finditer(text):
        if match[1] is None:
            depth += 1 if match[0] in b"{[" else -1
        elif depth == 1 and match[2] is not None:
            yield match[1], *_readable(match[2], bool(match[3]))


def _texts(pattern: re.Pattern[bytes], text: bytes) -> Iterator[tuple[bytes, bool]]:
    """The values that a pattern of a key and a text finds, as `_readable` has them."""
    return (_readable(match[1], bool(match[2])) for match in pattern.finditer(text))


def _readable(value: bytes, is_whole: bool) -> tuple[bytes, bool]:
    """A text up to its first bytes that are no UTF-8, which are damage, as a cut is; whether that is all of it."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return value[: error.start], False
    return value, is_whole


def _first_key(text: bytes) -> set[bytes]:
    """The first key of an object, in quotes; none for what is no object."""
    match = _BEGIN.match(text)
    return set() if match is None else {match[1]}


def owners_of(spans: Mapping[str, Iterable[Span]]) -> dict[str, str]:
    """The trace of each id: of a trace, of one of its spans, or of a span that one of these hangs on."""
    owners = {span.parent: trace for trace, of_trace in spans.items() for span in of_trace}
    owners |= {span.id: trace for trace, of_trace in spans.items() for span in of_trace}
    return owners | {trace: trace for trace in spans}


def _plain(text: bytes) -> str:
    """The text of a JSON string; of one that is cut within an escape, up to there."""
    for end in range(len(text), max(-1, len(text) - len(b"\\ud83d\\ude00")), -1):
        try:
            return _TEXT.decode(b'"' + text[:end] + b'"')
        except JSON_ERRORS:
            continue
    return ""
