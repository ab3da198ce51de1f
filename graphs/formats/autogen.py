"""Runs of AutoGen's AgentChat, Magentic-One among them: a `TaskResult`, or its messages as a list or one a line.

    {messages: [MESSAGE, …], stop_reason}
    MESSAGE: {type, source, models_usage: {prompt_tokens, completion_tokens} | null, created_at, content}

A run is a trace and a group of its own, without an outcome. A message with `models_usage`, or with tool calls, is a
model call of its `source`, and an action. Team members hear one another: a call is caused by all that was written since
its agent's last one. `docs/formats/autogen.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.formats.common.chat import OpenCalls
from graphs.reading.decode import decode, decode_envelope, decode_record
from graphs.reading.documents import Document, Place, documents, lost_row
from graphs.reading.files import short_names
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.keys import has_key, opening
from graphs.reading.repeated_runs import RepeatedRuns, Run, content_of, digest_of
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, Agent, TraceRecord

__all__ = ["read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]
_SILENT = frozenset({"ModelClientStreamingChunkEvent", "MemoryQueryEvent", "SelectSpeakerEvent", "SelectorEvent"})
_THOUGHT = "ThoughtEvent"
_SUMMARY = "ToolCallSummaryMessage"
_SHARED = 64  # latest messages that have an edge to a call although another call has heard them, too


class _Usage(msgspec.Struct):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    name: str = "tool"
    call_id: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    type: str
    source: _Id
    models_usage: _Usage | None = None
    created_at: datetime.datetime | None = None
    content: msgspec.Raw = msgspec.Raw()
    target: str | None = None


class _Result(msgspec.Struct):
    messages: list[msgspec.Raw]


class _Named(msgspec.Struct):
    """A message with an id of its own, a UUID."""

    id: _Id


_NAMED = msgspec.json.Decoder(_Named)
_RESULT = msgspec.json.Decoder(_Result)
_MESSAGE = msgspec.json.Decoder(_Message)
_CALLS = msgspec.json.Decoder(list[_Call])


def sniff(head: bytes) -> bool:
    """Whether the content begins as a result with messages of AgentChat, or as such messages."""
    shown = opening(head)
    if {"source", "models_usage"} <= shown.first.get("messages", frozenset()):
        return True
    if {"source", "models_usage", "type"} <= set(shown.keys):
        return True
    return head.lstrip().startswith(b"[") and b'"models_usage"' in head and b'"source"' in head


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each result, and for each file of messages, which a line that cannot be read refuses.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems`, "unknown-tool-call", "lost-row",
    "empty-trace". Of runs of the same messages, by their ids and all they state: "repeated-run".
    """
    names, runs = short_names(sources), _runs_of(sources)
    for source in sources:
        loose: list[Document] = []
        lost: Problem | None = None
        name, count = names[source.name], 0
        for document in documents(source):
            if isinstance(document, Problem):
                lost = lost or document
                yield document
                continue
            raw, place = document
            if not has_key(raw, "messages"):
                loose.append(document)
                continue
            count += 1
            try:
                result = decode_envelope(_RESULT, raw, file=place.file, line=place.line)
                trace = name if count == 1 else f"{name}/{place.line}"
                yield _record([Document(bytes(one), place) for one in result.messages], trace, place, runs)
            except TraceError as error:
                yield error.problem
        lost = lost or next((lost.problem for lost in source.lost.values()), None)
        if loose and lost is not None:
            yield lost_row(lost, name, "messages")
        elif loose:
            try:
                yield _record(loose, name, loose[0].place, runs)
            except TraceError as error:
                yield error.problem
        source.release()


def _runs_of(sources: list[Source]) -> RepeatedRuns:
    """The runs of all files whose messages have ids, as results and as loose messages; those that `read` can take."""
    runs = RepeatedRuns()
    for source in sources:
        loose: list[Document] = []
        is_whole = True
        for document in documents(source):
            if isinstance(document, Problem):
                is_whole = False
            elif not has_key(document.raw, "messages"):
                loose.append(document)
            else:
                try:
                    result = decode_envelope(_RESULT, document.raw, file=source.name, line=document.place.line)
                except TraceError:
                    continue
                _note(runs, [bytes(one) for one in result.messages], document.place)
        if loose and is_whole and not source.lost:
            _note(runs, [document.raw for document in loose], loose[0].place)
        source.release()
    return runs


def _note(runs: RepeatedRuns, messages: list[bytes], place: Place) -> None:
    key = _key(messages)
    if key is not None:
        runs.note(key, _run(place))


def _key(messages: list[bytes]) -> bytes | None:
    """What tells a run: all its messages. None where one has no id, as in older versions: runs may be alike."""
    try:
        for message in messages:
            _NAMED.decode(message)
    except JSON_ERRORS:
        return None
    return digest_of(*map(content_of, messages)) if messages else None


def _run(place: Place) -> Run:
    return Run(None, (), place.file, max(place.line, 1))


def _record(messages: list[Document], trace: str, place: Place, runs: RepeatedRuns) -> TraceRecord:
    key = _key([message.raw for message in messages])
    repeated = None if key is None else runs.problem(key, _run(place), "messages", place.line, trace)
    if repeated is not None:
        raise TraceError(repeated)
    record = TraceRecord(trace, trace, place.file, place.line, max(place.offset, 0), format="autogen")
    record.system = "autogen"
    run = _Run(record)
    for index, (raw, where) in enumerate(messages):
        field = f"messages[{index}]"
        message = decode_record(_MESSAGE, raw, file=where.file, line=where.line, at=field, trace=trace)
        run.add(str(index), message, where, field)
    return record


class _Run:
    """Turns messages into events and edges."""

    def __init__(self, record: TraceRecord) -> None:
        self.record, self.open = record, OpenCalls()
        self.heard: list[int] = []  # positions of messages that all agents hear
        self.heard_by: dict[str, int] = {}  # agent -> how many of these it had heard at its last call
        self.told = 0  # how many of these a call has heard
        self.chained = 0  # index of the last one to which those before it lead
        self.results: dict[str, list[int]] = {}  # agent -> results of its tools since its last call
        self.last: dict[str, int] = {}

    def add(self, event_id: str, message: _Message, place: Place, field: str) -> None:
        """Append a message.

        Raises:
          TraceError: kinds of `graphs.reading.decode.decode`, "unknown-tool-call".
        """
        kind, source = message.type, message.source
        if kind in _SILENT or (kind == _THOUGHT and message.models_usage is None):
            return
        where = {"file": place.file, "line": place.line, "at": f"{field}.content", "trace": self.record.trace_id}
        if kind == "ToolCallExecutionEvent":
            for number, result in enumerate(decode(_CALLS, message.content, **where)):  # type: ignore[arg-type]
                self._result(f"{event_id}/{number}", source, result, message, place, field)
        elif kind == "ToolCallRequestEvent":
            call = self._call(event_id, message, place)
            for number, asked in enumerate(decode(_CALLS, message.content, **where)):  # type: ignore[arg-type]
                position = self._event(f"{event_id}/call-{number}", EventType.TOOL_CALL, source, message, place,
                                       tool=asked.name)  # fmt: skip
                self.record.edge(call, position, EdgeType.TOOL_DEPENDENCY)
                self.open.add(asked.id, position, asked.name)
        elif message.models_usage is not None:
            self.heard.append(self._call(event_id, message, place))
        elif kind != _SUMMARY:  # a summary repeats the results of tools
            event_type = EventType.HUMAN_INTERVENTION if source == "user" else EventType.MESSAGE
            self.heard.append(self._event(event_id, event_type, source, message, place))

    def _event(
        self, event_id: str, kind: EventType, source: str, message: _Message, place: Place, **columns: str | int | None
    ) -> int:
        self.record.instances.setdefault(source, Agent(name=source, role=source))
        return self.record.event(
            event_id, kind, source, action=False, time=seconds(message.created_at), line=place.line,
            offset=max(place.offset, 0), **columns,
        )  # fmt: skip

    def _call(self, event_id: str, message: _Message, place: Place) -> int:
        source, usage = message.source, message.models_usage or _Usage()
        position = self._event(
            event_id, EventType.MESSAGE, source, message, place,
            tokens=usage.completion_tokens, input_tokens=usage.prompt_tokens,
        )  # fmt: skip
        self.record.actions[position] = True
        self._hear(source, position)
        for result in self.results.pop(source, ()):
            self.record.edge(result, position, EdgeType.CAUSAL)
        if source in self.last:
            self.record.edge(self.last[source], position, EdgeType.TEMPORAL)
        self.last[source] = position
        return position

    def _hear(self, source: str, position: int) -> None:
        """Draw the edges to a call from what its agent heard since its last call.

        Of what another call has heard, too, all but the latest leads here by way of the messages behind it: else edges
        would grow with messages times agents.
        """
        record, start = self.record, self.heard_by.get(source, 0)
        if self.told - start > _SHARED:
            start = self.told - _SHARED - 1
            for index in range(self.chained, start):
                self._lead(self.heard[index], self.heard[index + 1])
            self.chained = max(self.chained, start)
            if record.agents[self.heard[start]] == source and not record.actions[self.heard[start]]:
                record.edge(self.heard[start], position, EdgeType.TEMPORAL)
        for cause in self.heard[start:]:
            if record.agents[cause] != source:
                kind = EdgeType.CAUSAL if record.types[cause] == EventType.HUMAN_INTERVENTION else EdgeType.MESSAGE
                record.edge(cause, position, kind)
        self.heard_by[source] = self.told = len(self.heard)

    def _lead(self, earlier: int, later: int) -> None:
        """Draw an edge between two messages, one behind the other, unless the later is a call that has heard it."""
        record = self.record
        is_own = record.agents[earlier] == record.agents[later]
        if not record.actions[later] or (is_own and not record.actions[earlier]):
            record.edge(earlier, later, EdgeType.TEMPORAL)

    def _result(self, event_id: str, source: str, result: _Call, message: _Message, place: Place, field: str) -> None:
        answered = self.open.take(result.call_id)
        if answered is None:
            value_text, expected = excerpt(result.call_id), "the id of a tool call before it without a result"
            raise TraceError(
                Problem("unknown-tool-call", place.file, place.line, f"{field}.content", value_text, expected,
                        self.record.trace_id)
            )  # fmt: skip
        call, tool = answered
        status = "error" if result.is_error else None
        position = self._event(event_id, EventType.TOOL_RESULT, source, message, place, tool=tool, status=status)
        self.record.edge(call, position, EdgeType.RETURN)
        self.results.setdefault(source, []).append(position)
