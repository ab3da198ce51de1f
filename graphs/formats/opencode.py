"""Sessions of opencode, as `opencode export` writes them: one JSON object a session.

    {info: {id, parentID, version}, messages: [{info: MESSAGE, parts: [PART]}]}
    MESSAGE: {id, role: "user" | "assistant", time: {created}, providerID, modelID, tokens, error}
    PART: {id, type: "text", synthetic}, {type: "step-start"}, {type: "step-finish", tokens: {input, output, reasoning,
      cache: {read, write}}}, {type: "tool", callID, tool, state: {status, time: {start, end}}}

A step of an assistant's message is a model call, and an action; a message without steps is one. Tools are its effects.
A sub-agent has a session of its own, which the tool `task` names (`state.metadata.sessionId`).
`docs/formats/opencode.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.money import stated_money
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.sessions import Session, Writer, records, write_nested
from graphs.formats.common.team import Team
from graphs.reading.decode import decode, decode_record, object_text
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import name_models
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_ASKS = ("question",)  # tools that a person answers
_AGENT = "opencode"
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT // 3)]  # so that the sum of three fits an int32
_ENDED = {"completed": None, "error": "error"}
"""States in which a tool has a result, and the status of that result."""


class _Session(msgspec.Struct):
    id: str
    parent: str | None = msgspec.field(default=None, name="parentID")
    version: str = ""


class _Export(msgspec.Struct):
    info: _Session
    messages: msgspec.Raw


class _Cache(msgspec.Struct):
    read: _Count = 0
    write: _Count = 0


class _Tokens(msgspec.Struct):
    input: _Count = 0
    output: _Count = 0
    reasoning: _Count = 0
    cache: _Cache | None = None


class _Time(msgspec.Struct):
    """Milliseconds; those of a message or of a tool."""

    created: float | None = None
    completed: float | None = None
    start: float | None = None
    end: float | None = None

    @property
    def took(self) -> float | None:
        """Seconds that a message took."""
        took = _seconds(self.completed) - _seconds(self.created)
        return took if took > 0 else None


class _About(msgspec.Struct):
    id: str
    role: str
    time: _Time | None = None
    model: str | None = msgspec.field(default=None, name="modelID")
    provider: str | None = msgspec.field(default=None, name="providerID")
    tokens: _Tokens | None = None
    cost: Any = None
    error: msgspec.Raw = msgspec.Raw()


class _State(msgspec.Struct):
    status: str = ""
    time: _Time | None = None
    input: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()


class _Input(msgspec.Struct):
    """What the tool `task` is called with."""

    agent: str = msgspec.field(default="sub-agent", name="subagent_type")


class _Metadata(msgspec.Struct):
    """What the tool `task` states: the session that it started."""

    session: str = msgspec.field(default="", name="sessionId")


class _Exit(msgspec.Struct):
    """What the tool `bash` states: how its command ended, None where it was killed."""

    exit: int | None = None


class _Part(msgspec.Struct):
    type: str
    id: str = ""
    synthetic: bool | None = None
    tool: str = "tool"
    state: _State | None = None
    tokens: _Tokens | None = None
    cost: Any = None
    reason: Any = None


class _Message(msgspec.Struct):
    info: _About
    parts: list[_Part]


RECORDS = (_Export, _Session, _Message, _About)
_EXPORT = msgspec.json.Decoder(_Export)
_MESSAGE = msgspec.json.Decoder(_Message)
_INPUT = msgspec.json.Decoder(_Input)
_METADATA = msgspec.json.Decoder(_Metadata)
_EXIT = msgspec.json.Decoder(_Exit)


def sniff(head: bytes) -> bool:
    """Whether the first object is an exported session."""
    shown = opening(head)
    return {"info", "messages"} <= set(shown.keys) and {"info", "parts"} <= shown.first.get("messages", frozenset())


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session, with the sub-agents whose exports are among the sources.

    Problem kinds: those of `graphs.reading.json_problems`, "bad-value", "no-events", "lost-row",
    "duplicate-trace" (two copies of a session differ). Named while it reads: "lone-subagent", "missing-subagent".
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
    yield from records(sessions, lost, _record, parent="info.parentID", started="parts.state.metadata.sessionId")


@dataclasses.dataclass(slots=True)
class _Parsed(Session):
    """A session with its version, its messages, each with its place, and by part what it started: session and agent."""

    system: str = ""
    messages: list[tuple[_Message, Place]] = dataclasses.field(default_factory=list)
    tasks: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


def _session(document: Document) -> _Parsed:
    """A session, and the sessions that its tool `task` names."""
    raw, place = document
    export = decode_record(_EXPORT, raw, file=place.file, line=place.line)
    info = export.info
    session = _Parsed(info.id, info.parent or "", place, raw, system=f"opencode {info.version}".strip())
    for index, (element, where) in enumerate(
        placed_elements(raw, export.messages, place, field="messages", trace=info.id)
    ):
        field = f"messages[{index}]"
        message = decode(_MESSAGE, element, file=where.file, line=where.line, field=field, trace=info.id)
        if message.info.role not in ("assistant", "user"):
            expected = "user or assistant"
            kind, role = "bad-value", excerpt(message.info.role)
            raise TraceError(Problem(kind, where.file, where.line, f"{field}.info.role", role, expected, info.id))
        session.messages.append((message, where))
        for part in message.parts:
            if part.tool == "task" and part.state is not None and bytes(part.state.metadata):
                origin: dict[str, Any] = {"file": where.file, "line": where.line, "field": field, "trace": info.id}
                started = decode(_METADATA, object_text(part.state.metadata), **origin).session
                session.tasks[part.id] = started, decode(_INPUT, bytes(part.state.input) or b"{}", **origin).agent
    session.started = [started for started, _ in session.tasks.values()]
    return session


def _record(session: _Parsed, parts: dict[str, _Parsed]) -> TraceRecord:
    """The record of a session and of the sub-agents that it started."""
    record = TraceRecord(session.id, session.id, *session.place, format="opencode", system=session.system)
    team = Team(record, asks=_ASKS)
    team.agent(_AGENT, _AGENT)
    write_nested(_events(team, _AGENT, session, parts))
    if not record.ids:
        record.refuse("no-events", "messages", "none", "a message of a user or of the assistant")
    name_models(record)
    return team.finish()


def _events(team: Team, agent: str, session: _Parsed, parts: dict[str, _Parsed]) -> Writer:
    """Append the events of a session. The texts to a sub-agent are of the agent that started it."""
    for message, place in session.messages:
        about = message.info
        time = _seconds(about.time.created if about.time is not None else None)
        if about.role == "assistant":
            joined = {part: task for part, task in session.tasks.items() if task[0] in parts}
            for started in _add_steps(team, agent, message, place, time, joined):
                yield _events(team, started, parts[started], parts)
        elif agent == _AGENT and any(part.type == "text" and not part.synthetic for part in message.parts):
            team.human(agent, about.id, place, time=time)


def _add_steps(
    team: Team, agent: str, message: _Message, place: Place, time: float, joined: dict[str, tuple[str, str]]
) -> Iterator[str]:
    """Append the steps of an assistant's message, each with its tools and their results.

    Yields the sessions that it starts, `joined` by part, whose events stand before the results.
    """
    steps: list[list[_Part]] = [[]]
    for part in message.parts:
        if part.type == "step-start" and any(other.type in ("tool", "step-finish") for other in steps[-1]):
            steps.append([])
        steps[-1].append(part)
    for number, step in enumerate(steps):
        finish = next((part for part in step if part.type == "step-finish"), None)
        whole = message.info if len(steps) == 1 else None
        used = (finish and finish.tokens) or (whole and whole.tokens) or _Tokens()
        cache, name = used.cache or _Cache(), message.info.id if len(steps) == 1 else f"{message.info.id}/{number}"
        tools = [part for part in step if part.type == "tool"]
        # A message with tools is completed after their results.
        took = None if tools or len(steps) > 1 or message.info.time is None else message.info.time.took
        call = team.call(
            agent, name, place, time=time, seconds=took,
            model="/".join(part for part in (message.info.provider, message.info.model) if part) or None,
            tokens=used.output + used.reasoning or None, input_tokens=used.input + cache.read + cache.write or None,
            cached_tokens=cache.read or None, cache_write_tokens=cache.write or None,
            money=stated_money(finish and finish.cost, whole and whole.cost),
            status="error" if bytes(message.info.error) not in (b"", b"null") else None,
            stopped=finish and finish.reason,
        )  # fmt: skip
        effects: list[int] = []
        for index, part in enumerate(tools):
            effect, ran = f"{name}/call-{index}", part.state.time if part.state is not None else None
            begun = _seconds(ran.start if ran is not None else None)
            if part.id in joined:
                started, label = joined[part.id]
                team.agent(started, label, parent=agent)
                effects.append(team.spawn(agent, effect, started, place, call=call, tool=part.tool, time=begun))
                yield started
            else:
                effects.append(team.tool_call(agent, effect, place, call=call, tool=part.tool, time=begun))
        for part, position in zip(tools, effects, strict=True):
            state = part.state or _State()
            if state.status in _ENDED:
                end, status = _seconds(state.time.end if state.time is not None else None), _ENDED[state.status]
                if part.tool == "bash" and bytes(state.metadata):
                    code = decode(
                        _EXIT, object_text(state.metadata), file=place.file, line=place.line, field="metadata"
                    ).exit
                    status = "error" if code else status
                result = f"{name}/{part.id}"
                if part.id in joined:
                    team.returned(joined[part.id][0], result, agent, place, time=end, status=status)
                else:
                    team.result(agent, result, place, answers=position, tool=part.tool, time=end, status=status)


def _seconds(milliseconds: float | None) -> float:
    return math.nan if milliseconds is None else milliseconds / 1000
