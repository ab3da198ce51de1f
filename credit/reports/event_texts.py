"""What the log's own record says of an event: the arguments of a call, what a result gave, what a message said."""

from __future__ import annotations

import ast
import bisect
import contextlib
import functools
import itertools
import json
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.formats.codex import without_header
from graphs.formats.table.cells import says_why
from graphs.formats.table.columns import KNOWN
from graphs.json_errors import JSON_ERRORS
from graphs.reading.source import BYTE_ORDER_MARK, Source, is_packed
from graphs.reading.tables.rows import is_parquet, open_parquet, read_rows
from graphs.reading.text_keys import ASKED, CALLED, COMMANDS, FAILED, GAVE, SAID, TOLD, text_key
from graphs.text import printable
from graphs.traces.batch import Traces
from graphs.traces.statuses import says_error, status_text

__all__ = [
    "DEPTH",
    "REDACTED",
    "call_arguments",
    "command_of",
    "event_texts",
    "executed",
    "native_texts",
    "plain_attributes",
    "record_at",
    "result_texts",
]

WINDOW = 1 << 24  # bytes of a file in which the record of one event must end, for an excerpt of it
# Tried in turn: most records are short, and a line may hold those of many events.
WINDOWS = (1 << 12, 1 << 16, 1 << 20, WINDOW)
MOST_FILES = 16  # contents of files that are kept at a time
DEPTH = 8  # levels of a record that are searched for text

_Tried = Mapping[EventType, tuple[tuple[str, ...], ...]]
CAME_BACK = ("output", "outputs", "result", "observation")
"""Keys of what a call gave, which no call says of itself."""
_OF_CALLS = tuple(key for key in SAID if key not in (*CAME_BACK, "response", "output_response"))
TRIED: _Tried = {
    EventType.TOOL_CALL: (ASKED, _OF_CALLS),
    EventType.SPAWN: (ASKED, _OF_CALLS),
    EventType.TOOL_RESULT: (GAVE, SAID),
    EventType.RETURN: (GAVE, SAID),
}
"""Keys that are tried in turn for an event of a type. Others try `SAID`, `CALLED` and `TOLD`. What is no call and
failed tries `FAILED` first."""
_GAVE: _Tried = {EventType.TOOL_RESULT: (GAVE,)}
_ASKED: _Tried = dict.fromkeys(TRIED, (ASKED,))
ASIDE = frozenset({"metadata", "resource", "tools", "schema", "query", "prompt", "messages", "usage", "status"})
"""Keys below which a search does not go: what a model was given, and what describes a record."""
NAMES = ("id", "tool_use_id", "call_id", "toolUseId", "toolCallId", "callID", "uuid")
COMMENTS = ("description", "explanation", "justification", "reason", "thought")
"""Arguments that say what a command is for. Beside one of `COMMANDS` they are not executed, nor is a time-out, so calls
that differ in them alone are the same. Elsewhere a description may be what the call is about, as that of a task."""
_OF_MLFLOW = frozenset({"mlflow.spanInputs", "mlflow.spanOutputs"})
REDACTED = "__REDACTED__"
"""What OpenInference writes in place of a content that is not to be recorded."""
_PYTHON = "{'"  # how an object begins that Python wrote; JSON never does
_DECODER = json.JSONDecoder()
_PART = re.compile(r"\.(result|spawn|return)$|/(call|result|spawn|return|call-\d+|return-\d+)$")
_CALL = re.compile(r"/call-(\d+)$")
_NUMBERED = re.compile(r"/(?:call-)?(\d+)$")
_CALLS = (EventType.TOOL_CALL, EventType.SPAWN)
_TRACEBACK = "Traceback (most recent call last)"


def event_texts(traces: Traces, rows: np.ndarray, limit: int) -> list[str]:
    """Excerpts of the log's records of events, by their rows in the batch; each file is read once.

    A tool call and a spawn show their arguments, and no result that is an event; behind `←` stands why they failed,
    where they state it. A result and a return show what they gave, other events what they said, and what failed its
    error. An excerpt is "" where the record
    holds no text, where it holds several messages and names none of them, or where the file is no longer there.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> event_texts(rows.traces, np.array([0]), 20)
      ['']
    """
    return [text or "" for text in _texts_of(traces, rows, limit, TRIED)]


def native_texts(traces: Traces) -> dict[str, list[str | None]]:
    """What the log's records say of all events, by keys of native events of which the same is read; None where nothing.

    A failed event has its error beside what it said.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> native_texts(rows.traces)
      {'arguments': [None], 'output': [None], 'text': [None], 'error': [None]}
    """
    events = traces.sizes.events
    columns: dict[str, list[str | None]] = {key: [None] * events for key in ("arguments", "output", "text", "error")}
    for row, ((asked, whole), event, kind, several, failed) in enumerate(
        _records(traces, np.arange(events), (_ASKED, TRIED))
    ):
        said, why = whole.said(event, kind, several, False)[0], ""
        if failed:
            shown, why = whole.said(event, kind, several, True)
            why = why if kind in _CALLS else shown if shown and shown != said else ""
        key = "arguments" if kind in _CALLS else "output" if kind in TRIED else "text"
        if kind in _CALLS and (arguments := asked.said(event, kind, several, False)[0]) is None:
            key, said = "text", said if said != why else None
        elif kind in _CALLS:
            said = arguments
        columns[key][row] = said
        columns["error"][row] = why or None
    return columns


def call_arguments(traces: Traces, rows: np.ndarray, limit: int) -> list[str | None]:
    """The arguments of calls by their rows, as calls compare: keys in one order, no `COMMENTS` beside a command.

    They are None where the log has none. What else a record says, such as how its call ended, is no argument.
    """
    said = list(_texts_of(traces, rows, limit, _ASKED))
    of_text = {text: None if text is None else executed(text) for text in set(said)}
    return [of_text[text] for text in said]


def result_texts(traces: Traces, rows: np.ndarray, limit: int) -> list[str | None]:
    """What results of tools gave, by their rows; None where the log does not say; "" or `[]` for nothing."""
    return list(_texts_of(traces, rows, limit, _GAVE))


def _texts_of(traces: Traces, rows: np.ndarray, limit: int, tried: _Tried) -> Iterator[str | None]:
    if not any(Path(file).is_file() for file in traces.events["file"].take(rows).unique().to_pylist()):
        yield from itertools.repeat(None, len(rows))
        return
    for (record,), event, kind, several, failed in _records(traces, rows, (tried,)):
        text = record.text(event, kind, several, failed)
        yield None if text is None else printable(text, limit).strip()


def _records(
    traces: Traces, rows: np.ndarray, tried: Sequence[_Tried]
) -> Iterator[tuple[tuple[_Record, ...], str, EventType, bool, bool]]:
    """The log's record of each event, for each of `tried`; the event, its type, whether others share the record, and
    whether it failed."""
    names = ("file", "offset", "line", "event", "status")
    columns = [traces.events[name].take(rows).to_pylist() for name in names]
    types = np.asarray(traces.graph.event_type)[rows].tolist()
    shared = _shared(traces, rows).tolist()
    by_line: dict[str, set[int]] = {}  # rows of tables, which have no place in bytes
    for file, offset, line in zip(*columns[:3], strict=True):
        if offset is None or offset < 0:
            by_line.setdefault(file, set()).add(line)
    contents: dict[str, bytes | TableRows | Mapping[int, Any]] = {}
    place, records = ("", -1), tuple(_Record(None, one) for one in tried)  # many formats hold a trace in one record
    for file, offset, line, event, status, kind, several in zip(*columns, types, shared, strict=True):
        if file not in contents:
            if len(contents) >= MOST_FILES:
                del contents[next(iter(contents))]
            try:
                contents[file] = _content(file, by_line.get(file, set()), traces.text_columns)
            except (CreditError, OSError):
                contents[file] = b""
        content = contents[file]
        number = line if not isinstance(content, bytes) else -1 if offset is None else offset
        if place != (file, number):
            place = file, number
            value = _value(content, number) if isinstance(content, bytes) else content.get(line)
            value = _value(value.encode(), 0) if isinstance(value, str) else value  # JSON in JSON, of the ADK
            records = tuple(_Record(value, one, is_row=not isinstance(content, bytes)) for one in tried)
        yield records, event, EventType(kind), several, status is not None and says_error(status)


def _content(
    file: str, lines: Collection[int], columns: Mapping[str, str] = MappingProxyType({})
) -> bytes | TableRows | Mapping[int, Any]:
    """The bytes of a file, the rows of a Parquet file, or the `lines` of another table; nothing of one that is gone.

    `columns` are those of `Traces.text_columns`.

    Raises:
      CreditError, OSError: it cannot be read.
    """
    source = Source(file, Path(file))
    if not Path(file).is_file():
        return b""
    if is_parquet(source):
        return TableRows(open_parquet(source), columns)
    return {at: _row(row, columns) for at, row in read_rows(source) if at in lines} if lines else bytes(source.data)


def record_at(file: str, offset: int | None) -> Any:
    """The JSON value at an offset of a file; None where there is none, or it is longer than an excerpt needs."""
    if offset is None or offset < 0:
        return None
    with contextlib.suppress(CreditError, OSError), Path(file).open("rb") as opened:
        begin = opened.read(4)
        if is_packed(begin):
            content = _content(file, ())
            return _value(content, offset) if isinstance(content, bytes) else None
        opened.seek(offset + len(BYTE_ORDER_MARK) * begin.startswith(BYTE_ORDER_MARK))
        return _value(opened.read(WINDOW), 0)  # the rest of a large file need not be read
    return None


def _row(row: Any, columns: Mapping[str, str]) -> Any:
    """The texts of a row, without what else is read of it, calls of tools in its messages being decoded."""
    if not isinstance(row, dict):
        return None
    named = {ours: row[theirs] for ours, theirs in columns.items() if theirs in row}
    taken = {*_READ, *columns.values()}
    mapped = {*columns} - {*(name for name in FAILED if columns.get(name))}  # beside a word another may say more
    left = {name: value for name, value in row.items() if name not in taken and text_key(name) not in mapped}
    # The completion of a row is a text, that of an event of other logs an id.
    values = named | {"output" if name == "completion" else name: value for name, value in left.items()}
    wrong = [values.pop(name) for name in [*values] if text_key(name) in FAILED]
    if told := sorted(filter(says_why, wrong), key=lambda cell: " " not in str(cell).strip()):
        values[FAILED[0]] = told[0]
    for message in values.get("messages") or ():
        if isinstance(message, dict) and isinstance(calls := message.get("tool_calls"), str):
            message["tool_calls"] = _value(calls.encode(), 0)
    return values


_READ = frozenset(itertools.chain.from_iterable(KNOWN.values())) - {"completion", "status"}


class TableRows:
    """Rows of a Parquet file by number, of which one group of rows is kept."""

    def __init__(self, file: pq.ParquetFile, columns: Mapping[str, str]) -> None:
        self._file, self._columns = file, columns
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._ends = list(itertools.accumulate(sizes))
        self._kept: tuple[int, pa.Table] = -1, pa.table({})

    def get(self, number: int) -> Any:
        """The row of a number from 1; None where there is none."""
        group = bisect.bisect_left(self._ends, number)
        if number < 1 or group >= len(self._ends):
            return None
        with contextlib.suppress(pa.ArrowException, OSError, ValueError):
            if self._kept[0] != group:
                self._kept = group, self._file.read_row_group(group)
            table = self._kept[1]
            row = table.slice(number - 1 - (self._ends[group] - self._file.metadata.row_group(group).num_rows), 1)
            return _row(row.to_pylist()[0], self._columns)
        return None


def executed(text: str) -> str:
    """Arguments as calls compare."""
    arguments = _arguments(text)
    if any(name in arguments for name in COMMANDS):
        arguments = {
            name: value
            for name, value in arguments.items()
            if name not in COMMENTS and not name.lower().startswith("timeout")
        }
    return json.dumps(arguments, sort_keys=True) if arguments else text


def command_of(text: str) -> str:
    """The command in the text of a call's arguments; all of them where they have none.

    Examples:
      >>> command_of('{"command": "pytest -x", "timeout": 5}'), command_of('{"path": "a.py"}')
      ('pytest -x', '{"path": "a.py"}')
    """
    arguments = _arguments(text)
    found = (arguments[name] for name in COMMANDS if name in arguments)
    return next((" ".join(map(str, one)) if isinstance(one, list) else str(one) for one in found), text)


def _arguments(text: str) -> dict[str, Any]:
    """Arguments of a text that is an object of JSON, or one as Python writes it."""
    try:
        if text.startswith(_PYTHON):
            with warnings.catch_warnings(action="ignore"):  # of what is no escape in Python
                stated = json.loads(json.dumps(ast.literal_eval(text)))
            return stated if isinstance(stated, dict) else {}
        return msgspec.json.decode(text, type=dict[str, Any]) if text.startswith("{") else {}
    except (*JSON_ERRORS, ValueError, SyntaxError, TypeError, MemoryError):  # neither, or longer than what is compared
        return {}


def _as_json(value: str | dict[str, Any]) -> str:
    """Arguments in one spelling. LangChain's tracers wrote the text of all as one `input`, mostly as Python does."""
    stated = _arguments(value) if isinstance(value, str) else value
    alone = stated.get("input") if len(stated) == 1 else None
    stated = (_arguments(alone) if isinstance(alone, str) else {}) or stated
    if isinstance(value, str) and not stated:
        return value
    return json.dumps({key: held for key, held in stated.items() if key != "thought"} or stated, ensure_ascii=False)


def _shared(traces: Traces, rows: np.ndarray) -> np.ndarray:
    """Whether the records of these events are those of several of their trace that are no effects of one message."""
    if not len(rows):
        return np.zeros(0, bool)
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    low = int(np.searchsorted(trace, trace[rows].min()))
    high = int(np.searchsorted(trace, trace[rows].max(), "right"))  # what belongs to other traces is not looked at
    files = traces.events["file"].slice(low, high - low).combine_chunks().dictionary_encode().indices
    offsets, lines = (
        traces.events[name].slice(low, high - low).fill_null(-1).to_numpy() for name in ("offset", "line")
    )
    offsets = np.where(offsets < 0, -1 - lines, offsets)  # rows of Parquet have a number alone
    keys = offsets, files.to_numpy(zero_copy_only=False), trace[low:high]
    order = np.lexsort(keys)
    begins = np.zeros(len(order), bool)
    for key in keys:
        begins[1:] |= np.diff(key[order]) != 0
    record = np.empty(len(order), np.int64)
    record[order] = np.cumsum(begins)
    says = ~np.isin(np.asarray(traces.graph.event_type)[low:high], list(TRIED))
    several: np.ndarray = (np.bincount(record, says) > 1)[record[rows - low]]
    return several


class _Record:
    """A record of a log, which is passed over once however many events it holds."""

    def __init__(self, value: Any, tried: _Tried, *, is_row: bool = False) -> None:
        self._value, self._tried, self._is_row = value, tried, is_row
        self._events = _events(value)
        self._by_kind: dict[tuple[EventType, bool], tuple[str, ...]] = {}

    @functools.cached_property
    def _parts(self) -> dict[str, dict[str, Any]]:
        return _by_name(self._value)

    def _whole(self, kind: EventType, failed: bool) -> tuple[str, ...]:
        if (kind, failed) not in self._by_kind:
            self._by_kind[kind, failed] = self._texts(self._value, kind, failed)
        return self._by_kind[kind, failed]

    def _texts(self, value: Any, kind: EventType, failed: bool) -> tuple[str, ...]:
        """Its texts for an event of a type, in the order of the log; an empty argument or result is a text."""
        wrong = _below(value, FAILED, 0) if failed and kind not in _CALLS else ()
        if errors := [text for text in wrong if text.strip()]:
            return (_error(errors[0]),)
        for keys in self._tried.get(kind, (SAID, CALLED, TOLD)):
            # A row of a table and a native event may hold a call and its result. The result is then no event.
            both = keys is _OF_CALLS and (self._is_row or self._events)
            texts = tuple(_below(value, SAID if both else keys, 0))
            if kind in TRIED and texts:
                return texts
            if any(text.strip() for text in texts):
                return tuple(map(_spoken, texts))
        return ()

    def text(self, event: str, kind: EventType, shared: bool, failed: bool) -> str | None:
        """The text of an event. Why it failed stands first. None: the record has no text of this event."""
        said, why = self.said(event, kind, shared, failed)
        if failed and said and self._tried is TRIED:
            said = without_header(said)
        if why and self._tried is TRIED:
            return " ← ".join(filter(None, (why, said if said != why else "")))
        return said

    def said(self, event: str, kind: EventType, shared: bool, failed: bool) -> tuple[str | None, str]:
        """The text of an event, None where the record has none of it; and why a call failed."""
        base = _PART.sub("", event)
        part = self._part(event, base)
        texts = () if part is None else self._texts(part, kind, failed)
        numbered = (_NUMBERED if part is None or self._events else _CALL).search(event)
        if not texts and not shared and not self._events:
            texts = self._whole(kind, failed and numbered is None)  # else the error may be another call's
        if kind in TRIED and numbered is not None and len(texts) > 1:
            texts = texts[int(numbered[1]) :][:1]  # one of the calls, or of the results, of a message
        said = " ".join(_said_once(texts) if self._tried is TRIED else filter(str.strip, texts)) if texts else None
        own = self._value if self._is_row else part
        return said, _why(own) if failed and kind in _CALLS and isinstance(own, dict) else ""

    def _part(self, event: str, base: str) -> Any:
        """The part of the record that is an event's own; None where it names none."""
        if self._events:
            fields = self._events.get(event, self._events.get(_NUMBERED.sub("", base), {}))
            return _by_name(fields).get(base, fields)
        if event in self._parts or base in self._parts:
            return self._parts.get(event, self._parts.get(base))
        owner, _, place = base.rpartition("/")  # a message of a part, or of a row of a table, by its place there
        part = self._parts.get(owner) if owner or not self._is_row else self._value
        if part is None or not place.isdigit():
            return None
        messages = next((one for one in _lists(part, 0)), [])
        return messages[int(place)] if int(place) < len(messages) else None


def _why(call: dict[str, Any]) -> str:
    """Why a call failed, by its own status, its error, or else what came back; "" where it does not say."""
    stated = {text_key(key): value for key, value in reversed(call.items())}
    said = (text for key in (*FAILED, *CAME_BACK) for text in _strings(stated.get(key), SAID, 0))
    return _beside_word(stated.get("status")) or _error(next((text for text in said if text.strip()), ""))


def _beside_word(status: Any) -> str:
    """Why an event failed, where its status says it; "" elsewhere."""
    return status_text(status) if isinstance(status, str) else ""


def _said_once(texts: tuple[str, ...]) -> list[str]:
    """Texts of a record, without one that stands in it twice, and those that make up the first one.

    LangChain writes an answer into its generation, and again, in parts, into the message there.
    """
    said = [*dict.fromkeys(filter(str.strip, texts))]
    whole, parts = ("".join("".join(some).split()) for some in (said[:1], said[1:]))
    return said[:1] if whole == parts else said


def _spoken(text: str) -> str:
    """What the messages of a chat say that stand as JSON in a span's attribute; another text as it is."""
    if text.startswith(("[", "{")) and ('"role"' in text or '"tool_calls"' in text):
        with contextlib.suppress(*JSON_ERRORS):
            chat = msgspec.json.decode(text)
            if any("role" in part or "tool_calls" in part for part in _objects([chat], 0)):
                return " ".join(said for said in _below(chat, SAID, 0) if said.strip())
    return text


def _error(text: str) -> str:
    """What an error says: the type and message of one that is JSON, the last line of a traceback."""
    if text.startswith("{"):
        with contextlib.suppress(*JSON_ERRORS):
            stated = msgspec.json.decode(text, type=dict[str, Any])
            text = ": ".join(str(stated[name]) for name in ("type", "message") if stated.get(name)) or text
    return text.rstrip().rpartition("\n")[2] if text.startswith(_TRACEBACK) else text


def _lists(value: Any, depth: int) -> Iterator[list[Any]]:
    """The lists of messages within a part, in the order of the log."""
    for key, inner in value.items() if isinstance(value, dict) and depth <= DEPTH else ():
        if key in ("messages", "nodes") and isinstance(inner, list):
            yield inner
        else:
            yield from _lists(inner, depth + 1)


def _below(value: Any, keys: tuple[str, ...], depth: int) -> Iterator[str]:
    """What stands under keys of a record: under the highest ones on each way down, however the record wraps them."""
    if depth > DEPTH:  # a hostile record may be nested without end
        return
    if isinstance(value, list):
        for item in value:
            yield from _below(item, keys, depth + 1)
    elif isinstance(value, dict):
        found = False
        words = {text_key(key): inner for key, inner in reversed(value.items())}
        if keys is FAILED:
            status = words.get("status")
            why: Any = _beside_word(status)
            if isinstance(status, dict):  # of OpenTelemetry
                why = status.get("message") or status.get("description")
            words |= {"error": why} if why and not words.get("error") else {}
        for key in keys:
            if found and keys is not SAID:
                return
            inside = CALLED if key == "arguments" else keys  # which say what a call does, as text or as an object
            for text in _strings(words[key], inside, depth + 1) if key in words else ():
                found = True
                yield text
        if not found and keys is GAVE and any(words.get(key) in ([], {}) for key in keys):
            yield "[]"
        elif not found:
            for word, inner in words.items():
                if word not in ASIDE and word not in keys and isinstance(inner, dict | list):
                    yield from _below(plain_attributes(inner), keys, depth + 1)


def _strings(value: Any, keys: tuple[str, ...], depth: int) -> Iterator[str]:
    """A value under a key as texts: an object of arguments as JSON, others by the keys that they hold."""
    are_arguments = keys in (ASKED, CALLED)
    if isinstance(value, str):
        if value != REDACTED:
            yield _as_json(value) if are_arguments else value
    elif isinstance(value, list) and depth <= DEPTH:
        for item in value:
            yield from _strings(item, keys, depth + 1)
    elif isinstance(value, dict):
        texts = [] if are_arguments else list(_below(value, keys, depth)) or list(_below(value, SAID, depth))
        if are_arguments or (value and not texts and keys is not SAID):
            texts = [_as_json(value)]
        yield from texts


def plain_attributes(value: Any) -> Any:
    """OTLP's lists of `{key, value: {stringValue}}` as an object, MLflow's JSON decoded; other values as they are.

    Args:
      value: what may be the attributes of a span.
    """
    if isinstance(value, list) and value and all(isinstance(one, dict) and "key" in one for one in value):
        value = {
            str(one["key"]): one["value"].get("stringValue") for one in value if isinstance(one.get("value"), dict)
        }
    if not isinstance(value, dict) or _OF_MLFLOW.isdisjoint(value):
        return value
    return {key: _decoded(one) if key in _OF_MLFLOW else one for key, one in value.items()}


def _decoded(text: Any) -> Any:
    """What a text of JSON holds; as it is what holds null, which says that nothing was given, or was cut."""
    value = text
    with contextlib.suppress(*JSON_ERRORS):
        value = msgspec.json.decode(text) if isinstance(text, str) else text
    return text if value is None else value


def _by_name(record: Any) -> dict[str, dict[str, Any]]:
    """The objects within a record by id, the first of each: one call of a message with several."""
    parts: dict[str, dict[str, Any]] = {}
    for part in _objects(record, 0):
        for key in NAMES:
            if isinstance(name := part.get(key), str):
                parts.setdefault(name, part)
    return parts


def _value(content: bytes, offset: int) -> Any:
    """The JSON value at an offset; None where there is none."""
    if not 0 <= offset < len(content):
        return None
    end = content.find(b"\n", offset, offset + WINDOW)
    line = memoryview(content)[offset : end if end >= 0 else offset + WINDOW]
    with contextlib.suppress(*JSON_ERRORS):
        return msgspec.json.decode(line)
    is_json = content[offset : offset + WINDOWS[0]].lstrip()[:1] in (b"{", b"[", b'"')
    # Others may follow in its line; and this decoder takes NaN and halves of characters, too.
    for size in WINDOWS if is_json else ():
        with contextlib.suppress(ValueError, RecursionError):
            return _DECODER.raw_decode(content[offset : offset + size].decode(errors="ignore").lstrip())[0]
    return None


def _events(record: Any) -> dict[str, Any]:
    """The events of a record that holds a whole trace, by id; the first of each id."""
    events = record.get("events") if isinstance(record, dict) else None
    parts: dict[str, Any] = {}
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and "id" in event:  # others are a span's own
            parts.setdefault(str(event["id"]), event)
    return parts


def _objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The objects within a record, itself aside, in the order of the log."""
    if depth > DEPTH:
        return
    if isinstance(value, dict):
        if depth:
            yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict | list):
            yield from _objects(item, depth + 1)
