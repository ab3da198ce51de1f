"""Sessions of opencode, as `opencode export` writes them: one JSON object a session.

    {info: {id, parentID, version}, messages: [{info: MESSAGE, parts: [PART]}]}
    MESSAGE: {id, role: "user" | "assistant", time: {created}, providerID, modelID, tokens, error}
    PART: {id, type: "text", synthetic}, {type: "step-start"}, {type: "step-finish", tokens: {input, output, reasoning,
      cache: {read, write}}}, {type: "tool", callID, tool, state: {status, time: {start, end}}}

A step of an assistant's message is a model call, and an action; a message without steps is one. Tools are its effects.
`docs/formats/opencode.md` has the whole mapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat
from graphs.formats.common.placed import placed_elements
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import model_names
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

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
    start: float | None = None
    end: float | None = None


class _About(msgspec.Struct):
    id: str
    role: str
    time: _Time | None = None
    model: str | None = msgspec.field(default=None, name="modelID")
    provider: str | None = msgspec.field(default=None, name="providerID")
    tokens: _Tokens | None = None
    error: msgspec.Raw = msgspec.Raw()


class _State(msgspec.Struct):
    status: str = ""
    time: _Time | None = None


class _Part(msgspec.Struct):
    type: str
    id: str = ""
    synthetic: bool | None = None
    tool: str = "tool"
    state: _State | None = None
    tokens: _Tokens | None = None


class _Message(msgspec.Struct):
    info: _About
    parts: list[_Part]


RECORDS = (_Export, _Session, _Message, _About)
_EXPORT = msgspec.json.Decoder(_Export)
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether the first object is an exported session."""
    shown = opening(head)
    return {"info", "messages"} <= set(shown.keys) and {"info", "parts"} <= shown.first.get("messages", frozenset())


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session.

    Problem kinds: those of `graphs.reading.json_problems`, "bad-value", "no-events". Named while it reads:
    "lone-subagent".
    """
    for source in sources:
        for document in documents(source):
            try:
                record, parent = _record(document)
                yield record
                if parent:
                    expected = "one trace with the session that started it; a sub-agent's is read as a trace of its own"
                    yield Problem(
                        "lone-subagent", *document.place[:2], "info.parentID", parent, expected, record.trace_id
                    )
            except TraceError as error:
                yield error.problem
        source.release()


def _record(document: Document) -> tuple[TraceRecord, str]:
    """The record of a session, and the session that it is a sub-agent of; "" for none."""
    raw, place = document
    export = decode_record(_EXPORT, raw, file=place.file, line=place.line)
    name = export.info.id
    record = TraceRecord(name, name, *place, format="opencode", system=f"opencode {export.info.version}".strip())
    chat, models = Chat(record, _AGENT), set[str | None]()
    for index, (element, where) in enumerate(placed_elements(raw, export.messages, place, at="messages", trace=name)):
        field = f"messages[{index}]"
        message = decode(_MESSAGE, element, file=where.file, line=where.line, at=field, trace=name)
        about = message.info
        time = _seconds(about.time.created if about.time is not None else None)
        if about.role == "assistant":
            models.add("/".join(part for part in (about.provider, about.model) if part))
            _add_steps(chat, message, where, time)
        elif about.role != "user":
            chat.refuse("bad-value", where, f"{field}.info.role", about.role, "user or assistant")
        elif any(part.type == "text" and not part.synthetic for part in message.parts):
            chat.team.human(_AGENT, about.id, where, time=time)
    if not record.ids:
        record.refuse("no-events", "messages", "none", "a message of a user or of the assistant")
    record.model = model_names(models)
    return chat.finish(), export.info.parent or ""


def _add_steps(chat: Chat, message: _Message, place: Place, time: float) -> None:
    """Append the steps of an assistant's message, each with its tools and their results."""
    steps: list[list[_Part]] = [[]]
    for part in message.parts:
        if part.type == "step-start" and any(other.type in ("tool", "step-finish") for other in steps[-1]):
            steps.append([])
        steps[-1].append(part)
    for number, step in enumerate(steps):
        tools = [part for part in step if part.type == "tool"]
        used = next((part.tokens for part in step if part.type == "step-finish"), None)
        used = used or (message.info.tokens if len(steps) == 1 else None) or _Tokens()
        cache, name = used.cache or _Cache(), message.info.id if len(steps) == 1 else f"{message.info.id}/{number}"
        chat.reply(
            name, place, [(part.id, part.tool) for part in tools], time=time,
            tokens=used.output + used.reasoning or None, input_tokens=used.input + cache.read + cache.write or None,
            status="error" if bytes(message.info.error) not in (b"", b"null") else None,
        )  # fmt: skip
        for part in tools:
            state = part.state or _State()
            if state.status in _ENDED:
                end = _seconds(state.time.end if state.time is not None else None)
                chat.result(f"{name}/{part.id}", place, part.id, "parts.id", time=end, status=_ENDED[state.status])


def _seconds(milliseconds: float | None) -> float:
    return math.nan if milliseconds is None else milliseconds / 1000
