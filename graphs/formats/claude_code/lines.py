"""Lines of Claude Code session files as typed entries: what the reader needs of them, checked, and nothing more.

A line is a JSON object with a `type`. Lines of type `user` and `assistant` become entries; of the others only the
progress lines matter that name the agent which a tool use started.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import Annotated, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import content, decode, decode_record
from graphs.reading.encodings import wide_text
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source
from graphs.text import excerpt

__all__ = [
    "Block",
    "Entry",
    "Link",
    "Message",
    "SpawnResult",
    "Transcript",
    "Usage",
    "identify",
    "read_lines",
    "spawn_result",
]

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**29)]  # so that the sum of three fits an int32
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
_HEAD = 1 << 20
_MARK = 64  # bytes that tell an encoding
_MESSAGES = ("user", "assistant")
_SYNTHETIC = "<synthetic>"  # the model name of replies that no model gave


class _Line(msgspec.Struct):
    type: str
    uuid: str | None = None
    parent: str | None = msgspec.field(default=None, name="parentUuid")
    logical_parent: str | None = msgspec.field(default=None, name="logicalParentUuid")
    session: str | None = msgspec.field(default=None, name="sessionId")
    agent: str | None = msgspec.field(default=None, name="agentId")
    time: _Time | None = msgspec.field(default=None, name="timestamp")
    sidechain: bool | None = msgspec.field(default=None, name="isSidechain")
    meta: bool | None = msgspec.field(default=None, name="isMeta")
    summary: bool | None = msgspec.field(default=None, name="isCompactSummary")
    api_error: bool | None = msgspec.field(default=None, name="isApiErrorMessage")
    tool_use: str | None = msgspec.field(default=None, name="parentToolUseID")
    message: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="toolUseResult")


class Block(msgspec.Struct):
    """A content block of a message: text, a tool use, a tool result, or another that is passed over."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str | None = None
    is_error: bool | None = None


class Usage(msgspec.Struct):
    """Token counts of a model call as known when its line was written."""

    output_tokens: _Count | None = None
    input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None

    @property
    def read(self) -> int | None:
        """Tokens that the call read, from the cache or not; None where no count is there."""
        counts = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens)
        known = [count for count in counts if count is not None]
        return sum(known) if known else None


class Message(msgspec.Struct):
    """A message of the API: of the model (with an id, a model name and usage) or to it."""

    content: str | list[Block]
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    stop_reason: str | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def blocks(self) -> list[Block]:
        """The content as blocks."""
        return [Block("text", text=self.content)] if isinstance(self.content, str) else self.content


class SpawnResult(msgspec.Struct):
    """What the harness noted beside the answer to a tool use that starts agents."""

    agent: str | None = msgspec.field(default=None, name="agentId")
    status: str | None = None


class _Progress(msgspec.Struct):
    type: str | None = None
    agent: str | None = msgspec.field(default=None, name="agentId")


_LINE = msgspec.json.Decoder(_Line)
_MESSAGE = msgspec.json.Decoder(Message)
_PROGRESS = msgspec.json.Decoder(_Progress)
_SPAWN_RESULT = msgspec.json.Decoder(SpawnResult)


@dataclasses.dataclass(slots=True)
class Entry:
    """A user or assistant line: where it stands, whose it is, and its message."""

    file: str
    line: int
    offset: int
    type: str
    uuid: str | None
    parent: str | None
    agent: str | None
    sidechain: bool
    time: float
    harness: bool  # written by the harness: meta text, a compaction's summary, an API error, a made-up reply
    message: Message
    result: msgspec.Raw

    def refuse(self, kind: str, field: str, value: object, expected: str, trace: str) -> TraceError:
        """The error that this line is at fault."""
        return TraceError(Problem(kind, self.file, self.line, field, excerpt(value), expected, trace))


class Link(NamedTuple):
    """A line of any type with a `uuid`, or a message without one: where it stands, and what it hangs on.

    `logical` is the last line before a compaction, of the line with which the conversation begins anew; `is_summary` is
    True for the text that a compaction leaves of what was before.
    """

    line: int
    session: str | None
    parent: str | None
    logical: str | None
    is_side: bool
    is_message: bool
    is_summary: bool


@dataclasses.dataclass(slots=True)
class Transcript:
    """One file: its entries in order, the agents that tool uses started, its lines, and its session's ids."""

    file: str
    entries: list[Entry]
    agents: dict[str, str]  # tool use id -> agent id, from progress lines
    links: dict[str, Link]  # by uuid, of every line
    loose: list[Link]  # messages without a uuid, on which nothing can hang
    sessions: list[str]  # in order of first appearance
    is_blank: bool = False


def read_lines(source: Source) -> Transcript:
    """All lines of a file.

    A line that repeats an earlier one byte for byte counts once.

    Raises:
      TraceError: the first line that is not as expected; "not-utf-8", kinds of `graphs.reading.decode.decode`,
        and "duplicate-id" where two different lines have one uuid.
    """
    data = content(source)
    wide = wide_text(source.name, data[:_MARK])
    if wide is not None:
        raise TraceError(wide)
    transcript = Transcript(source.name, [], {}, {}, [], [], not data or data.isspace())
    seen: dict[str, tuple[int, int, int]] = {}  # uuid -> number, start and length of its first line
    sessions: dict[str, None] = {}
    for number, offset, text in source.lines():
        line = decode_record(_LINE, text, file=source.name, line=number)
        if line.uuid is not None:
            first, start, size = seen.setdefault(line.uuid, (number, data.find(text, offset), len(text)))
            if first != number:
                if size == len(text) and data.startswith(text, start):
                    continue
                expected = f"an id that no other line has (also line {first})"
                raise TraceError(Problem("duplicate-id", source.name, number, "uuid", excerpt(line.uuid), expected))
            transcript.links[line.uuid] = _link(number, line)
        elif line.type in _MESSAGES:
            transcript.loose.append(_link(number, line))
        if line.session is not None:
            sessions[line.session] = None
        if line.type in _MESSAGES:
            transcript.entries.append(_entry(source.name, number, offset, line))
        elif line.type == "progress" and line.tool_use is not None and b"agent_progress" in text:
            progress = decode(_PROGRESS, line.data, file=source.name, line=number, at="data")
            if progress.type == "agent_progress" and progress.agent is not None:
                transcript.agents.setdefault(line.tool_use, progress.agent)
    transcript.sessions = list(sessions)
    return transcript


def _link(number: int, line: _Line) -> Link:
    return Link(
        number,
        line.session,
        line.parent,
        logical=line.logical_parent,
        is_side=bool(line.sidechain),
        is_message=line.type in _MESSAGES,
        is_summary=bool(line.summary),
    )


def _entry(file: str, number: int, offset: int, line: _Line) -> Entry:
    message = _message(file, number, line)
    return Entry(
        file=file,
        line=number,
        offset=offset,
        type=line.type,
        uuid=line.uuid,
        parent=line.parent,
        agent=line.agent,
        sidechain=bool(line.sidechain),
        time=math.nan if line.time is None else line.time.timestamp(),
        harness=_of_harness(line, message),
        message=message,
        result=line.result,
    )


def _message(file: str, number: int, line: _Line) -> Message:
    if not bytes(line.message):
        raise TraceError(Problem("missing-field", file, number, "message", "absent", "an object"))
    message = decode(_MESSAGE, line.message, file=file, line=number, at="message")
    if line.type == "assistant" and not message.id and not _of_harness(line, message):
        raise TraceError(Problem("missing-field", file, number, "message.id", "absent", "the id of the model call"))
    for index, block in enumerate(message.blocks):
        for needed in {"tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}.get(block.type, ()):
            if not getattr(block, needed):
                field = f"message.content[{index}].{needed}"
                raise TraceError(Problem("missing-field", file, number, field, "absent", "a non-empty string"))
    return message


def _of_harness(line: _Line, message: Message) -> bool:
    """Whether the harness wrote the line, in the user's or the model's name."""
    if line.type == "user":
        return bool(line.meta or line.summary)
    return bool(line.api_error) or message.model == _SYNTHETIC


def spawn_result(entry: Entry, trace: str) -> SpawnResult:
    """What a tool result's line notes of a started agent; empty where it notes text or nothing.

    Raises:
      TraceError: an agent id or status of another type than a string.
    """
    if not bytes(entry.result).startswith(b"{"):
        return SpawnResult()
    return decode(_SPAWN_RESULT, entry.result, file=entry.file, line=entry.line, at="toolUseResult", trace=trace)


def identify(source: Source) -> tuple[str | None, str | None]:
    """Session and agent id of the first line that has a session id; reads no further than it must.

    Lines that do not decode are passed over: reading the file will name them.

    Raises:
      OSError, TraceError: the file cannot be read.
    """
    return _first_session(source.head(_HEAD)) or _first_session(content(source)) or (None, None)


def _first_session(data: bytes) -> tuple[str, str | None] | None:
    for text in data.splitlines():
        if b'"sessionId"' not in text:
            continue
        try:
            line = _LINE.decode(text)
        except JSON_ERRORS:
            continue
        if line.session is not None:
            return line.session, line.agent
    return None
