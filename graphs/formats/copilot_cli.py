"""Sessions of GitHub Copilot CLI: JSON lines of events, `events.jsonl`, a session a file.

    {type, id, timestamp, parentId, agentId, data}
    session.start: {sessionId, copilotVersion, selectedModel}
    user.message: {content}
    session.usage_record: {usage: {apiCallId, inputTokens, outputTokens}}
    assistant.message: {messageId, apiCallId, model, outputTokens, toolRequests: [{toolCallId, name}]}
    tool.execution_start: {toolCallId, toolName}, tool.execution_complete: {toolCallId, success}
    subagent.started, subagent.completed, subagent.failed: {toolCallId, agentName}

A message of the assistant is one model call, and an action; what it requests are effects. Events of a sub-agent name
its `agentId`, or in older versions the tool call that started it. `docs/formats/copilot-cli.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.input_tokens import ChatUsage, call_counts
from graphs.formats.common.sessions import check_session
from graphs.formats.common.team import Team
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Place, documents
from graphs.reading.files import name_models, short_names
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_ASKS = ("ask_user",)  # tools that a person answers
_MAIN = "copilot"
_ENDS = ("subagent.completed", "subagent.failed")


class _Line(msgspec.Struct, rename="camel"):
    type: str
    data: msgspec.Raw
    id: str = ""
    timestamp: datetime.datetime | None = None
    agent_id: str | None = None


class _Request(msgspec.Struct, rename="camel"):
    tool_call_id: str
    name: str


class _Usage(msgspec.Struct, rename="camel"):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    api_call_id: str | None = None
    finish_reason: Any = None


class _Command(msgspec.Struct, rename="camel"):
    exit_code: int | None = None


class _Data(msgspec.Struct, rename="camel"):
    """What is used of the data of all types of events."""

    session_id: str | None = None
    copilot_version: str | None = None
    selected_model: str | None = None
    new_model: str | None = None
    message_id: str | None = None
    model: str | None = None
    output_tokens: _Count | None = None
    tool_requests: list[_Request] | None = None
    tool_call_id: str | None = None
    parent_tool_call_id: str | None = None
    tool_name: str | None = None
    agent_name: str | None = None
    success: bool | None = None
    is_autopilot_continuation: bool | None = None
    api_call_id: str | None = None
    usage: msgspec.Raw = msgspec.Raw()
    shell_execution: _Command | None = None


RECORDS = (_Line, _Data)
_LINE = msgspec.json.Decoder(_Line)
_DATA = msgspec.json.Decoder(_Data)
_USAGE = msgspec.json.Decoder(_Usage)
_Event = tuple[_Line, _Data, Place]


def sniff(head: bytes) -> bool:
    """Whether the first object is the start of a session."""
    start = head.lstrip()[:4096]
    return {"type", "data", "timestamp"} <= set(opening(head).keys) and (
        b'"copilotVersion"' in start or b'"copilot-agent"' in start
    )


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session.

    Problem kinds: those of `graphs.reading.json_problems`, "unknown-tool-call", "several-sessions",
    "no-events".
    """
    names = short_names(sources)
    for source in sources:
        name, events = names[source.name], list[_Event]()
        try:
            for raw, place in documents(source):
                line = decode_record(_LINE, raw, file=source.name, line=place.line, trace=name)
                data = decode(_DATA, line.data, file=source.name, line=place.line, field="data", trace=name)
                events.append((line, data, place))
            yield _Session(TraceRecord(name, name, source.name, 1, 0, format="copilot-cli"), events).write()
        except TraceError as error:
            yield error.problem
        source.release()


class _Session:
    """Fills the record of a session."""

    def __init__(self, record: TraceRecord, events: list[_Event]) -> None:
        self.record, self.events, self.team = record, events, Team(record, asks=_ASKS)
        self.calls: dict[tuple[str, str], int] = {}  # agent and message -> its call
        self.tools: dict[str, tuple[int, str, str]] = {}  # tool call -> its event, agent and tool
        self.usage: dict[
            tuple[str, str | None], _Usage
        ] = {}  # agent and request -> its tokens, until its message comes
        self.callers: dict[str, str] = {}  # tool call that started an agent -> who asked for it
        # Tool calls that started an agent, with its instance and name; and those whose agent's end is stated.
        self.started = {
            data.tool_call_id or "": (line.agent_id or data.tool_call_id or "", data.agent_name or "sub-agent")
            for line, data, _ in events
            if line.type == "subagent.started"
        }
        self.ended = {data.tool_call_id for line, data, _ in events if line.type in _ENDS}

    def write(self) -> TraceRecord:
        """The record.

        Raises:
          TraceError: "unknown-tool-call", "several-sessions", "no-events".
        """
        session, model = "", None
        self.team.agent(_MAIN, _MAIN)
        for number, (line, data, place) in enumerate(self.events):
            agent, time, name = self._agent(line, data), seconds(line.timestamp), line.id or str(number)
            if line.type in ("session.start", "session.resume"):
                check_session(session, data.session_id, place, "data.sessionId")
                session = data.session_id or session
                self.record.trace_id = self.record.group_id = session or self.record.trace_id
                self.record.system = f"copilot-cli {data.copilot_version}" if data.copilot_version else _MAIN
                model = data.selected_model or model
            elif line.type == "session.model_change":
                model = data.new_model or model
            elif line.type == "user.message" and agent == _MAIN and not data.is_autopilot_continuation:
                self.team.human(agent, name, place, time=time)
            elif line.type == "session.usage_record" and bytes(data.usage):
                trace = self.record.trace_id
                used = decode(_USAGE, data.usage, file=place.file, line=place.line, field="data.usage", trace=trace)
                self.usage[agent, used.api_call_id] = used
            elif line.type == "assistant.message":
                self._message(agent, name, data, place, time, data.model or model)
            elif line.type == "session.compaction_complete":
                self.record.unlogged_call()
            elif line.type == "tool.execution_start":
                if data.tool_call_id not in self.tools and data.tool_call_id not in self.callers:
                    self._tool(agent, data.tool_call_id or name, data.tool_name or "tool", place, time, None)
            elif line.type == "tool.execution_complete" or line.type in _ENDS:
                self._end(line, data, place, time)
        if not self.record.ids:
            self.record.refuse("no-events", "type", "none", "a message of a user or of the assistant")
        name_models(self.record)
        return self.team.finish()

    def _agent(self, line: _Line, data: _Data) -> str:
        """The instance that an event is of; the start and the end of an agent are of the one that asked for it."""
        if line.agent_id:
            return line.agent_id
        above = data.parent_tool_call_id or ""
        return self.started[above][0] if above in self.started else _MAIN

    def _message(self, agent: str, name: str, data: _Data, place: Place, time: float, model: str | None) -> None:
        """Append a model call; a later part of its message adds to it."""
        key = (agent, data.message_id or name)
        if key not in self.calls:
            self.team.agent(agent, agent)
            used = self.usage.pop((agent, data.api_call_id), None) if data.api_call_id else None
            recorded = None if used is None else ChatUsage(
                used.input_tokens, used.output_tokens, cache_read_tokens=used.cache_read_tokens,
                cache_write_tokens=used.cache_write_tokens,
            )  # fmt: skip
            counts, unlike = call_counts(recorded, ChatUsage(output_tokens=data.output_tokens))
            self.record.unlike_counts += [(unlike, place)] if unlike else []
            self.calls[key] = self.team.call(
                agent, name, place, time=time, model=model or None, stopped=used and used.finish_reason, **counts,
            )  # fmt: skip
        for request in data.tool_requests or ():
            self._tool(agent, request.tool_call_id, request.name, place, time, self.calls[key])

    def _tool(self, agent: str, tool_call: str, tool: str, place: Place, time: float, call: int | None) -> None:
        if tool_call in self.started:
            instance, label = self.started[tool_call]
            self.team.agent(instance, label, parent=agent)
            self.callers[tool_call] = agent
            self.team.spawn(agent, tool_call, instance, place, call=call, time=time, tool=tool)
        else:
            effect = self.team.tool_call(agent, tool_call, place, call=call, time=time, tool=tool)
            self.tools[tool_call] = effect, agent, tool

    def _end(self, line: _Line, data: _Data, place: Place, time: float) -> None:
        """Append a tool's result, or the return of an agent: where its end is stated, else with the tool's result."""
        tool_call, command = data.tool_call_id or "", data.shell_execution or _Command()
        failed = data.success is False or line.type == "subagent.failed" or bool(command.exit_code)
        status = "error" if failed else None
        if tool_call in self.callers:
            if line.type in _ENDS or tool_call not in self.ended:
                instance, to = self.started[tool_call][0], self.callers[tool_call]
                self.team.returned(instance, f"{tool_call}.return", to, place, time=time, status=status)
        elif tool_call in self.tools:
            position, agent, tool = self.tools.pop(tool_call)
            self.team.result(agent, f"{tool_call}.result", place, answers=position, time=time, tool=tool, status=status)
        else:
            self.record.refuse("unknown-tool-call", "data.toolCallId", tool_call, "the id of an open tool call")
