"""Rollouts of Codex CLI: JSON lines, a session a file.

    {timestamp, type: "session_meta", payload: {id, cwd, cli_version, …}}
    {timestamp, type: "turn_context", payload: {model, …}}
    {timestamp, type: "response_item", payload: {type: "message" | "reasoning" | "function_call" | …}}
    {timestamp, type: "event_msg", payload: {type: "token_count", info: {last_token_usage}}}

Until September 2025 items had no envelope, and no times, usage and model:

    {id, timestamp, instructions, git}
    {record_type: "state"}
    {type: "message" | "reasoning" | "function_call" | …}

A session is a trace and a group of its own, without an outcome. Items of the model that follow each other are one model
call, and an action. `docs/formats/codex.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat
from graphs.formats.common.responses import Item, Responses, Usage
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Place, documents
from graphs.reading.files import model_names, short_names
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_AGENT = "codex"
_KINDS = (b'"session_meta"', b'"response_item"', b'"turn_context"', b'"event_msg"')
_HEADER = {"id", "timestamp", "instructions"}
# How messages begin that Codex writes in the user's name.
_OF_HARNESS = ("<environment_context", "<user_instructions", "# AGENTS.md", "<permissions", "<turn_aborted")


class _Line(msgspec.Struct):
    type: str
    payload: msgspec.Raw
    timestamp: datetime.datetime | None = None


class _Marker(msgspec.Struct):
    """What tells lines without an item: the first line of an old session, and notes of its state."""

    type: str | None = None
    record_type: str | None = None
    id: str | None = None
    instructions: msgspec.Raw = msgspec.Raw()


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


RECORDS = (_Line, _Marker, _Session, _Context, _Event)

_MARKER = msgspec.json.Decoder(_Marker)
_LINE = msgspec.json.Decoder(_Line)
_SESSION = msgspec.json.Decoder(_Session)
_CONTEXT = msgspec.json.Decoder(_Context)
_EVENT = msgspec.json.Decoder(_Event)
_ITEM = msgspec.json.Decoder(Item)
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether one of the first lines is of a rollout."""
    lines = head.lstrip()[:4096]
    keys = set(opening(head).keys)
    if _HEADER <= keys <= _HEADER | {"git"}:
        return True
    return lines.startswith(b"{") and b'"payload"' in lines and any(kind in lines for kind in _KINDS)


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session; a line that is not as expected refuses its session.

    Problem kinds: those of `graphs.reading.json_problems`, "unknown-tool-call", "bad-value".
    """
    names = short_names(sources)
    for source in sources:
        try:
            yield _record(source, names[source.name])
        except TraceError as error:
            yield error.problem
        source.release()


def _record(source: Source, name: str) -> TraceRecord:
    record = TraceRecord(name, name, source.name, 1, 0, format="codex")
    chat = Chat(record, _AGENT)
    responses, models = Responses(chat), set[str | None]()
    has_envelopes: bool | None = None  # as the first line tells
    for raw, place in documents(source):
        where: dict[str, Any] = {"file": source.name, "line": place.line, "trace": record.trace_id}
        if not has_envelopes:
            marker = decode_record(_MARKER, raw, **where)
            if marker.type is None and marker.record_type is not None:
                continue
            if has_envelopes is None and marker.type is None and marker.id is not None and bytes(marker.instructions):
                has_envelopes = False
                record.trace_id = record.group_id = marker.id or record.trace_id
                record.system = _AGENT
                continue
            if has_envelopes is False:
                _add(responses, raw, place, math.nan, where)
                continue
            has_envelopes = True
        line = decode_record(_LINE, raw, **where)
        where["at"] = "payload"
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
            _add(responses, line.payload, place, seconds(line.timestamp), where)
    responses.end()
    record.model = model_names(models)
    return chat.finish()


def _add(responses: Responses, raw: bytes | msgspec.Raw, place: Place, time: float, where: dict[str, Any]) -> None:
    """Add an item of the model or of a tool, or what a human wrote.

    Args:
      responses: where to.
      raw: the item.
      place: its line.
      time: when it was written; NaN where the log does not say.
      where: its place for `decode`.
    """
    item = decode(_ITEM, raw, **where)
    if item.role != "user":
        responses.add(item, str(place.number), place, where.get("at", ""), time=time)
    elif not _of_harness(decode(_MESSAGE, raw, **where)):
        responses.end()
        responses.chat.team.human(_AGENT, str(place.number), place, time=time)


def _of_harness(message: _Message) -> bool:
    """Whether Codex itself wrote a message in the user's name."""
    first = message.content[0].get("text") if isinstance(message.content, list) and message.content else message.content
    return isinstance(first, str) and first.startswith(_OF_HARNESS)
