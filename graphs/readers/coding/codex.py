"""Rollouts of Codex CLI: JSON lines, a session a file.

    {timestamp, type: "session_meta", payload: {id, cwd, cli_version, …}}
    {timestamp, type: "turn_context", payload: {model, …}}
    {timestamp, type: "response_item", payload: {type: "message" | "reasoning" | "function_call" | …}}
    {timestamp, type: "event_msg", payload: {type: "token_count", info: {last_token_usage}}}

A session is a trace and a group of its own, without an outcome. Items of the model that stand side by side are one
model call, and an action. `docs/formats/codex.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.readers.common.chats.messages import Chat
from graphs.readers.common.chats.responses import Item, Responses, Usage
from graphs.readers.common.files import model_names, short_names
from graphs.readers.common.places import Place
from graphs.readers.common.source import Source
from graphs.readers.common.times import seconds
from graphs.readers.common.typed import content, decode
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_AGENT = "codex"
_KINDS = (b'"session_meta"', b'"response_item"', b'"turn_context"', b'"event_msg"')
_OF_HARNESS = ("<environment_context", "<user_instructions", "# AGENTS.md", "<permissions", "<turn_aborted")


class _Line(msgspec.Struct):
    type: str
    payload: msgspec.Raw
    timestamp: datetime.datetime | None = None


class _Session(msgspec.Struct):
    id: str = ""
    cli_version: str = ""


class _Context(msgspec.Struct):
    model: str | None = None


class _Info(msgspec.Struct):
    last_token_usage: Usage | None = None


class _Event(msgspec.Struct):
    type: str = ""
    info: _Info | None = None


class _Message(msgspec.Struct):
    content: list[dict[str, Any]] | str | None = None


_LINE = msgspec.json.Decoder(_Line)
_SESSION = msgspec.json.Decoder(_Session)
_CONTEXT = msgspec.json.Decoder(_Context)
_EVENT = msgspec.json.Decoder(_Event)
_ITEM = msgspec.json.Decoder(Item)
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether one of the first lines is of a rollout."""
    lines = head.lstrip()[:4096]
    return lines.startswith(b"{") and b'"payload"' in lines and any(kind in lines for kind in _KINDS)


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session; a line that is not as expected refuses its session.

    Problem kinds: "unreadable", those of `graphs.readers.common.json_problems`, "unknown-tool-call", "bad-value".
    """
    names = short_names(sources)
    for source in sources:
        try:
            yield _record(source, names[source.name])
        except TraceError as error:
            yield error.problem
        source.release()


def _record(source: Source, name: str) -> TraceRecord:
    content(source)
    record = TraceRecord(name, name, source.name, 1, 0, format="codex")
    chat = Chat(record, _AGENT)
    responses, models = Responses(chat), set[str | None]()
    for number, offset, text in source.lines():
        place = Place(source.name, number, offset)
        line = decode(_LINE, text, file=source.name, line=number, trace=record.trace_id)
        where: dict[str, Any] = {"file": source.name, "line": number, "at": "payload", "trace": record.trace_id}
        if line.type == "session_meta":
            session = decode(_SESSION, line.payload, **where)
            record.trace_id = record.group_id = session.id or record.trace_id
            record.system = f"codex {session.cli_version}".strip()
        elif line.type == "turn_context":
            models.add(decode(_CONTEXT, line.payload, **where).model)
        elif line.type == "event_msg":
            event = decode(_EVENT, line.payload, **where)
            if event.type == "token_count" and event.info is not None and event.info.last_token_usage is not None:
                responses.count_last(event.info.last_token_usage)
        elif line.type == "response_item":
            item = decode(_ITEM, line.payload, **where)
            if item.role != "user":
                responses.add(item, str(number), place, "payload", time=seconds(line.timestamp))
            elif not _of_harness(decode(_MESSAGE, line.payload, **where)):
                responses.end()
                chat.team.human(_AGENT, str(number), place, time=seconds(line.timestamp))
    responses.end()
    record.model = model_names(models)
    return chat.finish()


def _of_harness(message: _Message) -> bool:
    """Whether Codex itself wrote a message in the user's name."""
    first = message.content[0].get("text") if isinstance(message.content, list) and message.content else message.content
    return isinstance(first, str) and first.startswith(_OF_HARNESS)
