"""Sessions of Cline 4 and its CLI: one JSON object a session, `SESSION.messages.json`.

    {version: 1, updated_at, agent: "lead" | "subagent" | "teammate", sessionId, origin: {parentThreadId, version},
     messages: [MESSAGE]}
    MESSAGE: {id, role: "user" | "assistant", content: [BLOCK], ts, modelInfo: {id, provider},
      metrics: {inputTokens, outputTokens, cost}}
    BLOCK: {type: "text", text}, {type: "tool_use", id, name, input}, {type: "tool_result", tool_use_id, is_error}

A message of the assistant is one model call, and an action; tools are its effects. A sub-agent has a file of its own
beside the lead's. `docs/formats/cline.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.input_tokens import read_counts
from graphs.formats.common.money import stated_money
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.sessions import Session, Writer, records, write_nested
from graphs.formats.common.team import Team
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import name_models
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_ASKS = ("ask_followup_question", "plan_mode_respond")  # tools that a person answers
_AGENT = "cline"
_SPAWN = "spawn_agent"


class _Origin(msgspec.Struct, rename="camel"):
    parent_thread_id: str = ""
    version: str = ""


class _File(msgspec.Struct):
    session: str = msgspec.field(name="sessionId")
    messages: msgspec.Raw
    updated_at: str = ""
    agent: str = "lead"
    origin: _Origin | None = None


class _ModelInfo(msgspec.Struct):
    id: str = ""
    provider: str = ""


class _Metrics(msgspec.Struct, rename="camel"):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    cost: Any = None


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    id: str = ""
    name: str = "tool"
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str = ""
    is_error: bool | None = None


class _Message(msgspec.Struct):
    id: str
    role: str
    content: list[_Block]
    ts: float | None = None  # milliseconds
    model_info: _ModelInfo | None = msgspec.field(default=None, name="modelInfo")
    metrics: _Metrics | None = None


class _Task(msgspec.Struct):
    """What the tool `spawn_agent` is called with: the first text of the sub-agent."""

    task: str = ""


RECORDS = (_File, _Message)
_FILE = msgspec.json.Decoder(_File)
_MESSAGE = msgspec.json.Decoder(_Message)
_TASK = msgspec.json.Decoder(_Task)


@dataclasses.dataclass(slots=True)
class _Parsed(Session):
    """A session with its messages, and the sessions that its calls started, by call.

    Attributes:
      root: the session of the lead.
      is_lead: whether it is that session.
      asked: the task of each call that starts a sub-agent.
      joined: the session that such a call started.
      answered: the calls of tools that have a result, and no error.
    """

    root: str = ""
    is_lead: bool = True
    system: str = _AGENT
    messages: list[tuple[_Message, Place]] = dataclasses.field(default_factory=list)
    asked: dict[str, str] = dataclasses.field(default_factory=dict)
    joined: dict[str, str] = dataclasses.field(default_factory=dict)
    answered: set[str] = dataclasses.field(default_factory=set)


def sniff(head: bytes) -> bool:
    """Whether the first object is a session."""
    keys = set(opening(head).keys)
    return {"sessionId", "messages", "updated_at"} <= keys and "projectHash" not in keys  # Gemini CLI's whole session


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session, with the sub-agents whose files are among the sources.

    Problem kinds: those of `graphs.reading.json_problems`, "bad-value", "unknown-tool-call", "no-events",
    "lost-row", "duplicate-trace" (two copies of a session differ). Named while it reads: "lone-subagent",
    "missing-subagent".
    """
    sessions, lost = list[_Parsed](), set[str]()
    for source in sources:
        for document in documents(source):
            try:
                sessions.append(_session(document))
            except TraceError as error:
                lost.add(error.problem.trace)
                yield error.problem
        source.release()
    _pair(sessions)
    # No call names a session, so one that is lost may be a part of its lead's trace.
    roots = {name.partition("__")[0] for name in lost}
    yield from records(sessions, roots, _record, parent="sessionId", started="messages.content.input.task")


def _session(document: Document) -> _Parsed:
    raw, place = document
    file = decode_record(_FILE, raw, file=place.file, line=place.line)
    origin, is_lead = file.origin or _Origin(), file.agent == "lead"
    # The id of a sub-agent's session is ROOT__AGENT, and older files state no origin.
    root = file.session if is_lead else file.session.partition("__")[0]
    parent = "" if is_lead else origin.parent_thread_id or root
    session = _Parsed(file.session, parent, place, raw, root=root, is_lead=is_lead)
    session.system = f"{_AGENT} {origin.version}".strip()
    elements = placed_elements(raw, file.messages, place, field="messages", trace=file.session)
    for index, (element, where) in enumerate(elements):
        place_of_message: dict[str, Any] = {"file": where.file, "line": where.line, "trace": file.session}
        message = decode(_MESSAGE, element, field=f"messages[{index}]", **place_of_message)
        session.messages.append((message, where))
        for block in message.content:
            if block.type == "tool_result" and not block.is_error:
                session.answered.add(block.tool_use_id)
            if block.type == "tool_use" and block.name == _SPAWN and bytes(block.input):
                session.asked[block.id] = decode(
                    _TASK, block.input, field=f"messages[{index}].content.input", **place_of_message
                ).task
    return session


def _pair(sessions: list[_Parsed]) -> None:
    """Find the call that started each sub-agent.

    Only its task tells it: below one lead the call must be the only one of that task, and the sub-agent the only one
    with that first text.
    """
    copies = dict[str, list[_Parsed]]()
    for session in sessions:
        copies.setdefault(session.id, []).append(session)
    calls = dict[tuple[str, str], list[tuple[str, str]]]()
    subs = dict[tuple[str, str], list[str]]()
    for first, *others in copies.values():
        for call, task in first.asked.items():
            calls.setdefault((first.root, task), []).append((first.id, call))
        openings = [session.messages[0][0] for session in (first, *others) if session.messages]
        texts = dict.fromkeys("".join(block.text for block in message.content) for message in openings)
        for text in texts if not first.is_lead else ():
            subs.setdefault((first.root, text), []).append(first.id)
    for key, found in subs.items():
        if len(found) == len(calls.get(key, ())) == 1:
            ((parent, call),) = calls[key]
            for session in copies[parent]:
                session.joined[call] = found[0]
                session.started.append(found[0])
            for session in copies[found[0]]:
                session.parent = parent
    heads = [first for first, *_ in copies.values()]
    free = Counter(first.root for first in heads if not first.is_lead)  # sessions that may be those of other calls
    free.subtract(first.root for first in heads for _ in first.joined)
    for first in heads:
        for call, task in first.asked.items():
            if call in first.answered and call not in first.joined:
                free[first.root] -= 1
                for session in copies[first.id] if free[first.root] < 0 else ():
                    session.unmatched.append(task)


def _record(session: _Parsed, parts: dict[str, _Parsed]) -> TraceRecord:
    """The record of a session and of the sub-agents that it started."""
    record = TraceRecord(session.id, session.id, *session.place, format="cline", system=session.system)
    team = Team(record, asks=_ASKS)
    team.agent(_AGENT, _AGENT)
    write_nested(_events(team, _AGENT, session, parts))
    if not record.ids:
        record.refuse("no-events", "messages", "none", "a message of a user or of the assistant")
    name_models(record)
    return team.finish()


def _events(team: Team, agent: str, session: _Parsed, parts: dict[str, _Parsed]) -> Writer:
    """Append the events of a session. The texts to a sub-agent are of the agent that started it."""
    calls: dict[str, tuple[int, str]] = {}  # tool call without a result -> its event and tool
    for message, place in session.messages:
        time = math.nan if message.ts is None else message.ts / 1000
        if message.role == "assistant":
            info, used = message.model_info or _ModelInfo(), message.metrics or _Metrics()
            position = team.call(
                agent,
                message.id,
                place,
                time=time,
                tokens=used.output_tokens,
                money=stated_money(used.cost),
                **read_counts(used.input_tokens, used.cache_read_tokens, used.cache_write_tokens),
                model="/".join(part for part in (info.provider, info.id) if part) or None,
            )
            uses = [block for block in message.content if block.type == "tool_use"]
            for number, block in enumerate(uses):
                effect, started = f"{message.id}/call-{number}", session.joined.get(block.id, "")
                if started in parts:
                    team.agent(started, "subagent", parent=agent)
                    spawn = team.spawn(agent, effect, started, place, call=position, time=time, tool=block.name)
                    calls[block.id] = spawn, block.name
                    yield _events(team, started, parts[started], parts)
                else:
                    call = team.tool_call(agent, effect, place, call=position, time=time, tool=block.name)
                    calls[block.id] = call, block.name
        elif message.role != "user":
            team.record.refuse("bad-value", "messages.role", message.role, "user or assistant")
        results = [block for block in message.content if block.type == "tool_result"]
        for number, block in enumerate(results):
            if block.tool_use_id not in calls:
                expected = "the id of a tool call before it without a result"
                team.record.refuse("unknown-tool-call", "messages.content.tool_use_id", block.tool_use_id, expected)
            effect, status = f"{message.id}/result-{number}", "error" if block.is_error else None
            position, tool = calls.pop(block.tool_use_id)
            started = session.joined.get(block.tool_use_id, "")
            if started in parts:
                team.returned(started, effect, agent, place, time=time, status=status)
            else:
                team.result(agent, effect, place, answers=position, tool=tool, time=time, status=status)
        if message.role == "user" and not results and session.is_lead:
            team.human(agent, message.id, place, time=time)
