"""Rollouts of Codex CLI: JSON lines, a session a file.

    {timestamp, type: "session_meta", payload: {id, cwd, cli_version, …}}
    {timestamp, type: "turn_context", payload: {model, …}}
    {timestamp, type: "response_item", payload: {type: "message" | "reasoning" | "function_call" | …}}
    {timestamp, type: "event_msg", payload: {type: "token_count", info: {last_token_usage}}}

Until September 2025 items had no envelope, and no times, usage and model:

    {id, timestamp, instructions, git}
    {record_type: "state"}
    {type: "message" | "reasoning" | "function_call" | …}

A sub-agent has its own rollout, and so has a forked session. It may begin with a copy of the history before the fork.
Items before its own first turn are not read.

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
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    source: msgspec.Raw = msgspec.Raw()


class _Spawn(msgspec.Struct):
    parent_thread_id: str | None = None


class _Subagent(msgspec.Struct):
    thread_spawn: _Spawn | None = None


class _Source(msgspec.Struct):
    subagent: _Subagent | str | None = None


class _Context(msgspec.Struct):
    model: str | None = None
    turn_id: str | None = None


class _Info(msgspec.Struct):
    last_token_usage: Usage | None = None


class _Event(msgspec.Struct):
    type: str = ""
    info: _Info | None = None
    turn_id: str | None = None


class _Message(msgspec.Struct):
    content: list[dict[str, Any]] | str | None = None


RECORDS = (_Line, _Marker, _Session, _Context, _Event)

_MARKER = msgspec.json.Decoder(_Marker)
_LINE = msgspec.json.Decoder(_Line)
_SESSION = msgspec.json.Decoder(_Session)
_SOURCE = msgspec.json.Decoder(_Source)
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

    Problem kinds: those of `graphs.reading.json_problems`, "unknown-tool-call", "bad-value", "several-sessions" (a fork
    whose own turns nothing tells from those copied). Named while it reads: "lone-subagent".
    """
    names = short_names(sources)
    for source in sources:
        try:
            record, parent = _record(source, names[source.name])
            yield record
            if parent:
                expected = (
                    "one trace with the session that started it; a sub-agent's rollout is read as a trace of its own"
                )
                yield Problem("lone-subagent", source.name, 1, "parent_thread_id", parent, expected, record.trace_id)
        except TraceError as error:
            yield error.problem
        source.release()


def _record(source: Source, name: str) -> tuple[TraceRecord, str]:
    """The record of a session, and the session that it is a sub-agent of; "" for none."""
    record = TraceRecord(name, name, source.name, 1, 0, format="codex")
    chat = Chat(record, _AGENT)
    responses, models = Responses(chat), set[str | None]()
    has_envelopes: bool | None = None  # as the first line tells
    session: _Session | None = None
    parent, is_copied, has_history = "", False, False
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
            stated = decode(_SESSION, line.payload, **where)
            if session is not None:  # of the session that this one was forked from, or of this one again
                has_history = has_history or stated.id != session.id
                continue
            session = stated
            record.trace_id = record.group_id = session.id or record.trace_id
            record.system = f"codex {session.cli_version}".strip()
            parent = _parent(session, where)
            is_copied, has_history = bool(parent or session.forked_from_id), bool(session.forked_from_id)
            continue
        context, event = _Context(), _Event()
        if line.type == "turn_context":
            context = decode(_CONTEXT, line.payload, **where)
        elif line.type == "event_msg":
            event = decode(_EVENT, line.payload, **where)
        turn = context.turn_id or event.turn_id
        if is_copied and session is not None:
            if turn is not None:  # as `session.id` a UUID of version 7: these are in the order of time, as texts, too
                is_copied, has_history = turn <= session.id, True
            if is_copied and has_history:
                continue
        if line.type == "turn_context":
            models.add(context.model)
        elif event.type == "token_count" and event.info is not None and event.info.last_token_usage is not None:
            responses.count_last(event.info.last_token_usage)
        elif line.type == "response_item":
            _add(responses, line.payload, place, seconds(line.timestamp), where)
    responses.end()
    if is_copied and has_history and session is not None:
        expected = "a turn with an id after the session's, which tells its own lines from those copied"
        record.refuse("several-sessions", "session_meta", session.forked_from_id or parent, expected)
    record.model = model_names(models)
    return chat.finish(), parent


def _parent(session: _Session, where: dict[str, Any]) -> str:
    """The session that a sub-agent was started from; "" for none. `where` is the place of the payload, for `decode`."""
    if session.parent_thread_id or not bytes(session.source).startswith(b"{"):
        return session.parent_thread_id or ""
    subagent = decode(_SOURCE, session.source, **where | {"at": "payload.source"}).subagent
    spawn = subagent.thread_spawn if isinstance(subagent, _Subagent) else None
    return (spawn.parent_thread_id if spawn is not None else None) or ""


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
