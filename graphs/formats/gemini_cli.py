"""Sessions of Gemini CLI: JSON lines, or one object in older versions, a session a file.

    {sessionId, projectHash, startTime, kind: "main" | "subagent"}
    {id, timestamp, type: "user" | "info" | "error" | "warning", content}
    {id, timestamp, type: "gemini", content, model, tokens: {input, output, thoughts},
     toolCalls: [{id, name, status, result, timestamp, agentId}]}
    {$set: {…}}, {$rewindTo: ID}

A message is written again when its tokens or tool calls are known. Lines with one id are one message. A message of the
model is one call, and an action. A sub-agent has its own file. The session id of that file is the `agentId` of the tool
call that started the sub-agent. `docs/formats/gemini-cli.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.sessions import Session, check_session, once, records
from graphs.formats.common.team import Team
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Place, documents
from graphs.reading.files import name_models, short_names
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT // 2)]  # so that the sum of two fits an int32
_ASKS = ("ask_user", "enter_plan_mode", "exit_plan_mode")  # tools that a person answers
_MAIN = "gemini"
_INVOKE = "invoke_agent"  # the one tool that starts all agents since 2026; before, each agent was a tool
# How texts of the user begin that the CLI writes, and its commands, which no model reads.
_OF_HARNESS = ("/", "?", "<session_context>", "<hook_context>")


class _Tokens(msgspec.Struct):
    input: _Count = 0
    output: _Count = 0
    cached: _Count | None = None
    thoughts: _Count | None = None


class _ToolCall(msgspec.Struct, rename="camel"):
    name: str
    status: str = ""
    timestamp: datetime.datetime | None = None
    agent_id: str | None = None
    args: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()

    @property
    def ended(self) -> str | None:
        """The status of its result: a command that ended with another code than 0 is a "success", too."""
        codes = _EXIT.findall(self.result) if self.name == "run_shell_command" else []
        return "error" if codes and codes[-1] != b"0" else _ENDED[self.status]


class _Invocation(msgspec.Struct):
    """What the tool `invoke_agent` is called with."""

    agent_name: str = _INVOKE


class _Line(msgspec.Struct, rename="camel"):
    session_id: str | None = None
    project_hash: str | None = None
    kind: str | None = None
    id: str | None = None
    type: str | None = None
    timestamp: datetime.datetime | None = None
    content: Any = None
    model: str | None = None
    tokens: _Tokens | None = None
    tool_calls: list[_ToolCall] | None = None
    messages: msgspec.Raw = msgspec.Raw()


@dataclasses.dataclass(slots=True)
class _Session(Session):
    """A session with its messages by id, in the order of their first lines."""

    is_sub: bool = False
    messages: dict[str, tuple[_Line, Place]] = dataclasses.field(default_factory=dict)


RECORDS = (_Line,)
_LINE = msgspec.json.Decoder(_Line)
_INVOCATION = msgspec.json.Decoder(_Invocation)
_ENDED = {"success": None, "error": "error", "cancelled": "error"}
"""States in which a tool call has a result, and the status of that result."""
_EXIT = re.compile(rb"\\nExit Code: (-?\d+)")  # a line of the result's text, behind the command's output


def sniff(head: bytes) -> bool:
    """Whether the first object is the head of a session, or a whole one."""
    return {"sessionId", "projectHash"} <= set(opening(head).keys)


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session, with the sub-agents whose files are among the sources.

    Problem kinds: those of `graphs.reading.json_problems`, "no-events", "lost-row", "several-sessions" (in one
    file), "duplicate-trace" (two copies of a session differ). Named while it reads: "missing-subagent".
    """
    names, sessions, lost = short_names(sources), list[_Session](), set[str]()
    for source in sources:
        try:
            sessions.append(_session(source, names[source.name]))
        except TraceError as error:
            lost.add(error.problem.trace)
            yield error.problem
        source.release()
    parents: dict[str, set[str]] = {}  # the file of a sub-agent does not say what started it
    for session in sessions:
        for started in session.started:
            parents.setdefault(started, set()).add(session.id)
    for session in sessions:
        if session.is_sub and len(parents.get(session.id, ())) == 1:
            (session.parent,) = parents[session.id]
    yield from records(sessions, lost, _record, parent="sessionId", started="toolCalls.agentId")


def _session(source: Source, name: str) -> _Session:
    """The messages of a file.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode_record`.
    """
    session, digest = _Session(name, "", Place(source.name, 1, 0), b"", is_stated=False), hashlib.sha256()
    for raw, place in once(documents(source)):
        digest.update(raw + b"\n")
        trace = session.id if session.is_stated else ""
        line = decode_record(_LINE, raw, file=source.name, line=place.line, trace=trace)
        if line.session_id is not None:
            check_session(trace, line.session_id, place, "sessionId")
            session.id, session.is_sub, session.is_stated = line.session_id, line.kind == "subagent", True
        if line.id is not None:
            known = session.messages.get(line.id)
            session.messages[line.id] = (line if known is None else _merged(known[0], line)), place
        if bytes(line.messages):
            for element, where in placed_elements(raw, line.messages, place, field="messages", trace=session.id):
                message = decode(_LINE, element, file=source.name, line=where.line, field="messages", trace=session.id)
                session.messages[message.id or str(where.offset)] = message, where
    calls = (call for message, _ in session.messages.values() for call in message.tool_calls or ())
    session.started = list(dict.fromkeys(call.agent_id for call in calls if call.agent_id))  # a call may resume one
    session.content = digest.digest()
    return session


def _merged(known: _Line, line: _Line) -> _Line:
    """A message that is written again. The recorder adds tokens and tool calls, and removes none."""
    line.tokens = line.tokens or known.tokens
    line.tool_calls = max(line.tool_calls or [], known.tool_calls or [], key=len)
    return line


def _record(session: _Session, parts: dict[str, _Session]) -> TraceRecord:
    """The record of a session and of the sub-agents that it started.

    A stack takes the place of recursion: agents may nest deeper than Python's stack.
    """
    record = TraceRecord(session.id, session.id, *session.place, format="gemini-cli", system="gemini-cli")
    team = Team(record, asks=_ASKS)
    team.agent(_MAIN, _MAIN)
    taken, positions = {session.id}, dict[str, int]()  # tool call -> its event
    stack = [(_MAIN, _steps(session, spawned=False))]
    while stack:
        agent, steps = stack[-1]
        step = next(steps, None)
        if step is None:
            stack.pop()
            continue
        name, message, place, call, is_result = step
        time = seconds(message.timestamp if call is None or not is_result else call.timestamp)
        if call is None:
            if message.type == "user":
                team.human(agent, name, place, time=time)
                continue
            used = message.tokens
            tokens = None if used is None else used.output + (used.thoughts or 0)
            read, cached = (None, None) if used is None else (used.input, used.cached)
            team.call(
                agent, name, place, time=time, tokens=tokens, input_tokens=read, cached_tokens=cached,
                model=message.model or None,
            )  # fmt: skip
        elif is_result:
            status = call.ended
            if name in positions:
                team.result(
                    agent, f"{name}.result", place, answers=positions[name], tool=call.name, time=time, status=status
                )
            else:
                team.returned(call.agent_id or "", f"{name}.return", agent, place, time=time, status=status)
        elif call.agent_id in parts and call.agent_id not in taken:
            taken.add(call.agent_id)
            label = call.name
            if call.name == _INVOKE and bytes(call.args):
                file, line = place.file, place.line
                called = decode(_INVOCATION, call.args, file=file, line=line, field="toolCalls.args", trace=session.id)
                label = called.agent_name
            team.agent(call.agent_id, label, parent=agent)
            team.spawn(agent, name, call.agent_id, place, time=time, tool=call.name)
            stack.append((call.agent_id, _steps(parts[call.agent_id], spawned=True)))
        else:
            positions[name] = team.tool_call(agent, name, place, time=time, tool=call.name)
    if not record.ids:
        record.refuse("no-events", "messages", "none", "a message of a user or a model")
    name_models(record)
    return team.finish()


def _steps(session: _Session, *, spawned: bool) -> Iterator[tuple[str, _Line, Place, _ToolCall | None, bool]]:
    """What happened in order: a message, then its tool calls, then their results, each with the id of its event.

    The first text of a sub-agent is the prompt that started it.
    """
    for key, (message, place) in session.messages.items():
        if message.type == "user" and not _of_harness(message.content):
            if not spawned:
                yield key, message, place, None, False
            spawned = False
        elif message.type == "gemini":
            yield key, message, place, None, False
            calls = list(enumerate(message.tool_calls or ()))
            for number, call in calls:
                yield f"{key}/call-{number}", message, place, call, False
            for number, call in calls:
                if call.status in _ENDED:
                    yield f"{key}/call-{number}", message, place, call, True


def _of_harness(content: Any) -> bool:
    """Whether a message of the user has no text, a text of the CLI, or a command."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    text = "".join(text for text in texts if isinstance(text, str)).strip()
    return not text or text.startswith(_OF_HARNESS)
