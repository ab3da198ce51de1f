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
Items before its own first turn are not read. The output of
`spawn_agent` names the session of a sub-agent.

A session is a trace and a group of its own, without an outcome. Items of the model that follow each other are one model
call, and an action. `docs/formats/codex.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat
from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.responses import OUTPUTS, Item, Responses
from graphs.formats.common.sessions import Session, Writer, check_session, once, records, write_nested
from graphs.formats.common.team import Team
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Place, documents
from graphs.reading.files import name_models, short_names
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff", "without_header"]

_ASKS = ("request_user_input", "request_permissions")  # tools that a person answers
_AGENT = "codex"
_KINDS = (b'"session_meta"', b'"response_item"', b'"turn_context"', b'"event_msg"')
_HEADER = {"id", "timestamp", "instructions"}
# How messages begin that Codex writes in the user's name.
_OF_HARNESS = ("<environment_context", "<user_instructions", "# AGENTS.md", "<permissions", "<turn_aborted")
_NOTIFICATION = "<subagent_notification>"  # so does this, with the state of a sub-agent as JSON
_SPAWN, _WAITS = "spawn_agent", ("wait_agent", "wait", "close_agent")
_BUDGET = "budget_limited"
_OF_NO_TURN = ("thread_rollback_failed", "active_turn_not_steerable")  # errors of what a person asked of Codex
_ENDED = {"completed": None, "errored": "error"}
"""States in which a sub-agent has ended, and the status of its return."""


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
    agent_role: str | None = None


class _Subagent(msgspec.Struct):
    thread_spawn: _Spawn | None = None


class _Source(msgspec.Struct):
    subagent: _Subagent | str | None = None


class _Context(msgspec.Struct):
    model: str | None = None
    turn_id: str | None = None


class _Info(msgspec.Struct):
    last_token_usage: ChatUsage | None = None


class _Item(msgspec.Struct):
    """A part of a turn; `id` is that of the call that it is of, `result` what an MCP server answered."""

    type: str = ""
    id: str | None = None
    status: Any = None
    result: Any = None


class _Event(msgspec.Struct):
    type: str = ""
    info: _Info | None = None
    turn_id: str | None = None
    call_id: str | None = None
    item: _Item | None = None
    result: Any = None  # of an MCP server's call: {"Ok": ANSWER} or {"Err": TEXT}
    message: Any = None  # of an error, beside its name
    codex_error_info: Any = None
    error: Any = None  # by which a turn ended
    reason: Any = None  # for which it was aborted


class _Message(msgspec.Struct):
    content: list[dict[str, Any]] | str | None = None


class _Output(msgspec.Struct):
    output: Any = None


class _Stated(msgspec.Struct):
    """What JSON in an output, or in a note, says: how a command ended, a session that was started, or states."""

    agent_id: str | None = None
    metadata: Any = None
    agent_path: str | None = None
    status: Any = None
    is_error: Any = msgspec.field(default=None, name="isError")  # of an MCP server's answer, until mid-2025


class _Step(NamedTuple):
    """An item, token counts, or what became of sub-agents (`ended`: session, state and content), with its place."""

    place: Place
    time: float
    field: str = ""
    item: Item | None = None
    usage: ChatUsage | None = None
    model: str | None = None
    is_human: bool = False
    ended: tuple[tuple[str, str, str], ...] = ()
    status: str | None = None
    is_summary: bool = False  # of what came before, by a call whose counts are in no other line


@dataclasses.dataclass(slots=True)
class _Rollout(Session):
    """A session: what happened in it, the role of a sub-agent, and the session that a call started.

    `failed` has calls that failed as events say, since the text of an MCP server's answer does not. `error` is what
    ended the session, if the model said nothing after it.
    """

    role: str = "subagent"
    system: str = ""
    steps: list[_Step] = dataclasses.field(default_factory=list)
    tools: dict[str, str] = dataclasses.field(default_factory=dict)
    spawned: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: set[str] = dataclasses.field(default_factory=set)
    error: str = ""


RECORDS = (_Line, _Marker, _Session, _Context, _Event)

_MARKER = msgspec.json.Decoder(_Marker)
_LINE = msgspec.json.Decoder(_Line)
_SESSION = msgspec.json.Decoder(_Session)
_SOURCE = msgspec.json.Decoder(_Source)
_CONTEXT = msgspec.json.Decoder(_Context)
_EVENT = msgspec.json.Decoder(_Event)
_ITEM = msgspec.json.Decoder(Item)
_MESSAGE = msgspec.json.Decoder(_Message)
_OUTPUT = msgspec.json.Decoder(_Output)
_STATED = msgspec.json.Decoder(_Stated)
_DECLINED = re.compile("user (?:rejected|cancelled) ")  # by a person, which is no failure
_REFUSED = re.compile(  # how Codex's own words begin where a call could not be made; it keeps no other mark of that
    r"apply_patch (?:verification failed|handler received)|(?:exec_command|write_stdin) failed|execution error: "
    r"|err: (?!\"user (?:rejected|cancelled) )"
    r"|failed to parse [\w ]*arguments|unsupported (?:custom tool )?call: |Command blocked by PreToolUse hook"
    r"|approval policy is |patch rejected: |unable to (?:locate|read|process) image at "
)
_EXITED = re.compile(r"(?:Chunk ID: .*\n|Wall time: .*\n)*(?:Process exited with code|Exit code:) (-?\d+)")


def without_header(text: str) -> str:
    """What a command printed, without the lines that Codex writes above it; of nothing, how it ended.

    Examples:
      >>> without_header("Chunk ID: a\\nWall time: 0.9 seconds\\nProcess exited with code 1\\nOutput:\\n1 failed\\n")
      '1 failed\\n'
      >>> without_header("Wall time: 0.1 seconds\\nExit code: 2\\nOutput:\\n"), without_header("Output:\\nx")
      ('exit code 2', 'Output:\\nx')
    """
    head, found, printed = text.partition("\nOutput:\n")
    if not found or (line := _EXITED.match(head)) is None:
        return text
    return printed if printed.strip() else f"exit code {line[1]}"


def sniff(head: bytes) -> bool:
    """Whether one of the first lines is of a rollout."""
    lines = head.lstrip()[:4096]
    keys = set(opening(head).keys)
    if _HEADER <= keys <= _HEADER | {"git"}:
        return True
    return lines.startswith(b"{") and b'"payload"' in lines and any(kind in lines for kind in _KINDS)


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session, with the sub-agents whose rollouts are among the sources.

    A line that is not as expected refuses its session. Problem kinds: those of `graphs.reading.json_problems`,
    "unknown-tool-call", "bad-value", "lost-row", "several-sessions" (in one file; a fork whose own turns nothing tells
    from those copied), "duplicate-trace" (two copies of a session differ). Named while it reads: "lone-subagent",
    "missing-subagent".
    """
    names, rollouts, lost = short_names(sources), list[_Rollout](), set[str]()
    for source in sources:
        try:
            rollouts.append(_rollout(source, names[source.name]))
        except TraceError as error:
            lost.add(error.problem.trace)
            yield error.problem
        source.release()
    yield from records(rollouts, lost, _record, parent="parent_thread_id", started="payload.output.agent_id")


def _rollout(source: Source, name: str) -> _Rollout:
    """What happened in a session."""
    rollout, digest = _Rollout(name, "", Place(source.name, 1, 0), b"", is_stated=False), hashlib.sha256()
    has_envelopes: bool | None = None  # as the first line tells
    session: _Session | None = None
    is_copied, has_history = False, False
    for raw, place in once(documents(source)):
        digest.update(raw + b"\n")
        where: dict[str, Any] = {
            "file": source.name,
            "line": place.line,
            "trace": rollout.id if rollout.is_stated else "",
        }
        if not has_envelopes:
            marker = decode_record(_MARKER, raw, **where)
            if marker.type is None and marker.record_type is not None:
                continue
            if marker.type is None and marker.id is not None and bytes(marker.instructions):
                check_session(rollout.id if rollout.is_stated else "", marker.id, place, "id")
                has_envelopes = False
                rollout.id, rollout.is_stated, rollout.system = marker.id or rollout.id, bool(marker.id), _AGENT
                continue
            if has_envelopes is False and marker.type != "session_meta":
                _add(rollout, raw, place, math.nan, where)
                continue
            has_envelopes = True
        line = decode_record(_LINE, raw, **where)
        where["field"] = "payload"
        if line.type == "session_meta":
            stated = decode(_SESSION, line.payload, **where)
            if not is_copied:
                check_session(rollout.id if rollout.is_stated else "", stated.id, place, "payload.id")
            if session is not None:  # of the session that this one was forked from, or of this one again
                has_history = has_history or stated.id != session.id
                continue
            session = stated
            rollout.id, rollout.is_stated = session.id or rollout.id, bool(session.id)
            rollout.system = f"codex {session.cli_version}".strip()
            spawn = _spawn(session, where)
            rollout.parent, rollout.role = spawn.parent_thread_id or "", spawn.agent_role or rollout.role
            is_copied, has_history = bool(rollout.parent or session.forked_from_id), bool(session.forked_from_id)
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
            rollout.steps.append(_Step(place, math.nan, model=context.model))
        elif event.type == "token_count" and event.info is not None and event.info.last_token_usage is not None:
            rollout.steps.append(_Step(place, math.nan, usage=event.info.last_token_usage))
        elif (call := _failed_call(event)) is not None:
            rollout.failed.add(call)
        elif error := _ending_error(event):
            rollout.error = error
        elif line.type == "compacted":
            rollout.steps.append(_Step(place, math.nan, is_summary=True))
        elif line.type == "response_item":
            _add(rollout, line.payload, place, seconds(line.timestamp), where)
    if is_copied and has_history and session is not None:
        expected = "a turn with an id after the session's, which tells its own lines from those copied"
        value = excerpt(session.forked_from_id or rollout.parent)
        raise TraceError(Problem("several-sessions", source.name, 1, "session_meta", value, expected, rollout.id))
    rollout.content, rollout.started = digest.digest(), list(rollout.spawned.values())
    return rollout


def _record(rollout: _Rollout, parts: dict[str, _Rollout]) -> TraceRecord:
    """The record of a session and of the sub-agents that it started."""
    record = TraceRecord(rollout.id, rollout.id, *rollout.place, format="codex", system=rollout.system)
    record.error = rollout.error
    team = Team(record, asks=_ASKS)
    write_nested(_events(team, _AGENT, rollout, parts))
    name_models(record)
    return team.finish()


def _events(team: Team, agent: str, rollout: _Rollout, parts: dict[str, _Rollout]) -> Writer:
    """Append the events of a session. The texts to a sub-agent are of the agent that started it."""
    chat, texts_seen = Chat(team.record, agent, team=team), set[tuple[str, str, str]]()
    chat.starts = {call: (name, parts[name].role) for call, name in rollout.spawned.items() if name in parts}
    joined, prefix = {name for name, _ in chat.starts.values()}, "" if agent == _AGENT else f"{agent}/"
    responses = Responses(chat)
    for step in rollout.steps:
        event_id, item = f"{prefix}{step.place.number}", step.item
        for number, end in enumerate(step.ended):  # a note repeats what an agent that waits was told
            if end[0] in joined and end not in texts_seen:
                texts_seen.add(end)
                responses.end()
                team.returned(
                    end[0], f"{event_id}/return-{number}", agent, step.place, time=step.time, status=_ENDED[end[1]]
                )
        if step.is_summary:
            team.record.unlogged_call()
        elif step.usage is not None:
            responses.count_last(step.usage)
        elif step.model is not None:
            responses.end()
            responses.model = step.model
        elif item is not None and item.type in OUTPUTS and item.call_id in chat.starts:
            responses.end()
            name, _ = chat.starts[item.call_id]
            yield _events(team, name, parts[name], parts)
        elif item is not None:
            status = "error" if item.call_id in rollout.failed else step.status
            responses.add(item, event_id, step.place, step.field, time=step.time, status=status)
        elif step.is_human:
            responses.end()
            if agent == _AGENT:
                team.human(agent, event_id, step.place, time=step.time)
    responses.end()


def _spawn(session: _Session, where: dict[str, Any]) -> _Spawn:
    """Who started a sub-agent, and its role; neither for none. `where` is the place of the payload, for `decode`."""
    if not bytes(session.source).startswith(b"{"):
        return _Spawn(session.parent_thread_id)
    subagent = decode(_SOURCE, session.source, **where | {"field": "payload.source"}).subagent
    spawn = subagent.thread_spawn if isinstance(subagent, _Subagent) else None
    spawn = spawn or _Spawn()
    return _Spawn(session.parent_thread_id or spawn.parent_thread_id, spawn.agent_role)


def _add(rollout: _Rollout, raw: bytes | msgspec.Raw, place: Place, time: float, where: dict[str, Any]) -> None:
    """Add an item of the model or of a tool, or what a human wrote.

    Args:
      rollout: where to.
      raw: the item.
      place: its line.
      time: when it was written; NaN where the log does not say.
      where: its place for `decode`.
    """
    item: Item = decode(_ITEM, raw, **where)
    if item.role == "user":
        text = _first_text(decode(_MESSAGE, raw, **where))
        if text.startswith(_NOTIFICATION):
            note = _stated(text.removeprefix(_NOTIFICATION).partition("</")[0])
            rollout.steps.append(_Step(place, time, ended=_ended({note.agent_path: note.status})))
        elif not text.startswith(_OF_HARNESS):
            rollout.steps.append(_Step(place, time, is_human=True))
        return
    ended: tuple[tuple[str, str, str], ...] = ()
    status = None
    if item.call_id and item.name:
        rollout.tools[item.call_id] = item.name
    elif item.call_id and item.type in OUTPUTS:
        output = decode(_OUTPUT, raw, **where).output
        stated, tool = _stated(output), rollout.tools.get(item.call_id)
        status = _status(output, stated)
        if tool in (_SPAWN, *_WAITS):
            ended = _ended(stated.status)
            if stated.agent_id and tool == _SPAWN:
                rollout.spawned[item.call_id] = stated.agent_id
    if item.type not in OUTPUTS and item.role != "developer":
        rollout.error = ""  # the model went on
    rollout.steps.append(_Step(place, time, where.get("field", ""), item, ended=ended, status=status))


def _failed_call(event: _Event) -> str | None:
    """The call that an event ends, where it failed; None for a command, whose output says so."""
    if event.type == "mcp_tool_call_end" and isinstance(event.result, dict):
        error = event.result.get("Err")
        is_declined = isinstance(error, str) and _DECLINED.match(error) is not None
        return event.call_id if _is_error(event.result.get("Ok")) or not (error is None or is_declined) else None
    item = event.item if event.type == "item_completed" else None
    if item is None or item.type == "CommandExecution":
        return None
    return item.id if item.status == "failed" or _is_error(item.result) else None


def _ending_error(event: _Event) -> str:
    """The name and the words of the error that ended a turn, as "usage_limit_exceeded: You've hit …"; "" of none."""
    if event.type == "turn_aborted":
        return event.reason if event.reason == _BUDGET else ""
    stated = event.error if event.type == "task_complete" else {}
    if event.type == "error":
        stated = {"message": event.message, "codex_error_info": event.codex_error_info}
    if not isinstance(stated, dict):
        return str(stated or "")
    info = stated.get("codex_error_info")
    name = next(iter(info), "") if isinstance(info, dict) else info  # a name may have a code of HTTP
    if name in _OF_NO_TURN:
        return ""
    return ": ".join(str(part) for part in (name if name != "other" else "", stated.get("message")) if part)


def _is_error(answer: Any) -> bool:
    """Whether an MCP server answered that its tool failed."""
    return isinstance(answer, dict) and answer.get("isError") is True


def _status(output: Any, stated: _Stated) -> str | None:
    """ "error" for a command that ended with another code than 0 and for a call that Codex could not make.

    The code stands in `metadata.exit_code` of an output that is JSON, else in a line above the command's own output. An
    output without one begins with `_REFUSED` where the call failed. It may be the whole answer of an MCP server.
    """
    if stated.is_error is True:
        return "error"
    code = stated.metadata.get("exit_code") if isinstance(stated.metadata, dict) else None
    if isinstance(output, str) and code is None:
        line = _EXITED.match(output.partition("\nOutput:\n")[0])
        code = int(line[1]) if line is not None else int(_REFUSED.match(output) is not None)
    return "error" if isinstance(code, int) and code != 0 else None


def _stated(output: Any) -> _Stated:
    """What JSON in a text says of sub-agents; nothing where the text is none, as of a call that failed."""
    try:
        return _STATED.decode(output) if isinstance(output, str) else _Stated()
    except JSON_ERRORS:
        return _Stated()


def _ended(states: Any) -> tuple[tuple[str, str, str], ...]:
    """Sub-agents that have ended, of states by session: {"completed": TEXT}, {"errored": TEXT} or a word."""
    found = states.items() if isinstance(states, dict) else ()
    return tuple(
        (name, word, str(text))
        for name, state in found
        if isinstance(name, str) and isinstance(state, dict)
        for word, text in state.items()
        if word in _ENDED
    )


def _first_text(message: _Message) -> str:
    """The first text of a message; "" for none."""
    first = message.content[0].get("text") if isinstance(message.content, list) and message.content else message.content
    return first if isinstance(first, str) else ""
