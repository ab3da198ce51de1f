"""Runs of AutoGen's AgentChat, Magentic-One among them: a `TaskResult`, or its messages as a list or one a line.

    {messages: [MESSAGE, …], stop_reason}
    MESSAGE: {type, source, models_usage: {prompt_tokens, completion_tokens} | null, created_at, content}

A run is a trace and a group of its own, without an outcome. A message with `models_usage`, or with tool calls, is a
model call of its `source`, and an action. Members of a team are given what the others write: a call is caused by all
that was written since its agent's last one. `docs/formats/autogen.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.formats.common.chat import OpenCalls
from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.placed import nested_documents
from graphs.formats.common.run_digest import run_digest
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import canonical, short_names
from graphs.reading.keys import has_key, opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, Agent, TraceRecord

__all__ = ["RECORDS", "Message", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]
_SILENT = frozenset({"ModelClientStreamingChunkEvent", "MemoryQueryEvent", "SelectSpeakerEvent", "SelectorEvent"})
_THOUGHT = "ThoughtEvent"
_SUMMARY = "ToolCallSummaryMessage"
_SHARED = 64  # latest messages that have an edge to a call although another call was given them, too


class _Call(msgspec.Struct):
    id: str | None = None
    name: str = "tool"
    call_id: str | None = None
    is_error: bool | None = None


class Message(msgspec.Struct):
    """A message, with what is read of it."""

    type: str
    source: _Id
    id: str | None = None
    models_usage: ChatUsage | None = None
    created_at: datetime.datetime | None = None
    content: msgspec.Raw = msgspec.Raw()


class _Result(msgspec.Struct):
    messages: msgspec.Raw
    stop_reason: Any = None


class _Usage(msgspec.Struct):
    """The keys of `models_usage` as AutoGen writes them, by which its files are told; they are read as any chat's."""

    prompt_tokens: int
    completion_tokens: int


RECORDS = (Message, _Result, _Usage)

_RESULT = msgspec.json.Decoder(_Result)
_MESSAGE = msgspec.json.Decoder(Message)
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
    """A record for each result, and for each file of messages; a message that is not as expected refuses its run.

    Problem kinds: those of `graphs.reading.json_problems`, "unknown-tool-call", "empty-trace".
    """
    names = short_names(sources)
    for source in sources:
        name, results = names[source.name], 0
        messages: list[Document] = []  # that stand in no result
        for document in documents(source):
            if not has_key(document.raw, "messages"):
                messages.append(document)
                continue
            results += 1
            raw, place = document
            trace = name if results == 1 else f"{name}/{place.number}"
            try:
                result = decode(_RESULT, raw, file=place.file, line=place.line, trace=trace)
                record = _record(nested_documents(document, result.messages, "messages", trace), trace, place)
                record.ended_by(result.stop_reason)
                yield record
            except TraceError as error:
                yield error.problem
        if messages:
            try:
                yield _record(messages, name, messages[0].place)
            except TraceError as error:
                yield error.problem
        source.release()


def _record(messages: list[Document], trace: str, place: Place) -> TraceRecord:
    record = TraceRecord(trace, trace, place.file, place.line, max(place.offset, 0), format="autogen")
    record.system = "autogen"
    chat, ids = _GroupChat(record), list[str]()
    for index, (raw, where) in enumerate(messages):
        field = f"messages[{index}]"
        message = decode_record(_MESSAGE, raw, file=where.file, line=where.line, field=field, trace=trace)
        ids.append(message.id or "")
        chat.add(str(index), message, where, field)
    # Of all ids: runs that go on from one state, or were given one message as their task, have some in common.
    record.run = run_digest(ids if all(ids) else [canonical(raw).decode() for raw, _ in messages])
    return record


class _GroupChat:
    """Turns messages into events and edges. All agents get the messages in `said`."""

    def __init__(self, record: TraceRecord) -> None:
        self.record, self.open = record, OpenCalls()
        self.said: list[int] = []  # positions
        self.known: dict[str, int] = {}  # agent -> how many of these it had been given at its last call
        self.known_to_any = 0  # how many of these some call was given
        self.chained = 0  # index of the last one to which those before it lead
        self.results: dict[str, list[int]] = {}  # agent -> results of its tools since its last call
        self.last: dict[str, int] = {}

    def add(self, event_id: str, message: Message, place: Place, field: str) -> None:
        """Append a message.

        Raises:
          TraceError: kinds of `graphs.reading.decode.decode`, "unknown-tool-call".
        """
        kind, source = message.type, message.source
        if kind in _SILENT or (kind == _THOUGHT and message.models_usage is None):
            return
        where: dict[str, Any] = {"file": place.file, "line": place.line, "trace": self.record.trace_id}
        where["field"] = f"{field}.content"
        if kind == "ToolCallExecutionEvent":
            results: list[_Call] = decode(_CALLS, message.content, **where)
            for number, result in enumerate(results):
                self._result(f"{event_id}/{number}", result, message, place, field)
        elif kind == "ToolCallRequestEvent":
            call = self._call(event_id, message, place)
            calls: list[_Call] = decode(_CALLS, message.content, **where)
            for number, asked in enumerate(calls):
                position = self._event(
                    f"{event_id}/call-{number}", EventType.TOOL_CALL, message, place, tool=asked.name
                )
                self.record.edge(call, position, EdgeType.TOOL_DEPENDENCY)
                self.open.add(asked.id, position, asked.name, call)
        elif message.models_usage is not None:
            self.said.append(self._call(event_id, message, place))
        elif kind != _SUMMARY:  # a summary repeats the results of tools
            event_type = EventType.HUMAN_INTERVENTION if source == "user" else EventType.MESSAGE
            self.said.append(self._event(event_id, event_type, message, place))

    def _event(
        self, event_id: str, kind: EventType, message: Message, place: Place, **columns: str | int | None
    ) -> int:
        source = message.source
        self.record.instances.setdefault(source, Agent(name=source, role=source))
        return self.record.event(
            event_id, kind, source, action=False, time=seconds(message.created_at), line=place.line,
            offset=max(place.offset, 0), **columns,
        )  # fmt: skip

    def _call(self, event_id: str, message: Message, place: Place) -> int:
        source, usage = message.source, message.models_usage or ChatUsage()
        position = self._event(event_id, EventType.MESSAGE, message, place, **usage.columns)
        self.record.actions[position] = True
        self._draw_causes(source, position)
        for result in self.results.pop(source, ()):
            self.record.edge(result, position, EdgeType.CAUSAL)
        if source in self.last:
            self.record.edge(self.last[source], position, EdgeType.TEMPORAL)
        self.last[source] = position
        return position

    def _draw_causes(self, source: str, position: int) -> None:
        """Draw the edges to a call from what others said since its agent's last call.

        Of what another call was given, too, only the latest `_SHARED` messages and the one before them have an edge
        here. The others lead to that one, each to the next: else edges would grow with messages times agents.
        """
        record, start = self.record, self.known.get(source, 0)
        if self.known_to_any - start > _SHARED:
            start = self.known_to_any - _SHARED - 1
            for index in range(self.chained, start):
                self._chain(self.said[index], self.said[index + 1])
            self.chained = max(self.chained, start)
            if record.agents[self.said[start]] == source and not record.actions[self.said[start]]:
                record.edge(self.said[start], position, EdgeType.TEMPORAL)
        for cause in self.said[start:]:
            if record.agents[cause] != source:
                kind = EdgeType.CAUSAL if record.types[cause] == EventType.HUMAN_INTERVENTION else EdgeType.MESSAGE
                record.edge(cause, position, kind)
        self.known[source] = self.known_to_any = len(self.said)

    def _chain(self, earlier: int, later: int) -> None:
        """Draw an edge between two messages, one behind the other, unless the later is a call that was given it."""
        record = self.record
        is_same_agent = record.agents[earlier] == record.agents[later]
        if not record.actions[later] or (is_same_agent and not record.actions[earlier]):
            record.edge(earlier, later, EdgeType.TEMPORAL)

    def _result(self, event_id: str, result: _Call, message: Message, place: Place, field: str) -> None:
        answered = self.open.take(result.call_id)
        if answered is None:
            shown, expected = excerpt(result.call_id), "the id of a tool call before it without a result"
            raise TraceError(
                Problem("unknown-tool-call", place.file, place.line, f"{field}.content", shown, expected,
                        self.record.trace_id)
            )  # fmt: skip
        call, tool = answered
        status = "error" if result.is_error else None
        position = self._event(event_id, EventType.TOOL_RESULT, message, place, tool=tool, status=status)
        self.record.edge(call, position, EdgeType.RETURN)
        self.results.setdefault(message.source, []).append(position)
