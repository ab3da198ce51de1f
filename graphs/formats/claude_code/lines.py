"""Decoding of the lines of Claude Code session files.

A line is an object with a `type`. Lines of type `user` and `assistant` become entries. Of the others only progress
lines are used, which may name the agent that a tool use started.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.input_tokens import known_sum
from graphs.formats.common.money import stated_money
from graphs.reading.decode import content, decode, decode_record
from graphs.reading.documents import Place, documents
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source
from graphs.text import excerpt

__all__ = [
    "Block",
    "Entry",
    "Line",
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
_HEAD = 1 << 20  # bytes that nearly always hold the first line with a session id
_MESSAGES = ("user", "assistant")
_NEEDED = {"tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}  # keys of blocks by their type
_SYNTHETIC = "<synthetic>"  # the model name of replies that the harness wrote


class Line(msgspec.Struct):
    """A line."""

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
    version: Any = None  # of Claude Code
    cost: Any = msgspec.field(default=None, name="costUSD")  # of the call, on each of its lines; until mid-2025
    message: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="toolUseResult")


DECLINED = msgspec.Raw(b'"declined"')
_BY_PERSON = re.compile(
    rb"""(?:\[\s*\{[^{}]*"text"\s*:\s*)?"(?:The user doesn't want to (?:proceed|take)|\[Request interrupted by user)"""
)


class Block(msgspec.Struct):
    """A content block of a message: text, a tool use, a tool result, or another, which is not used."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw()  # of a tool result; only whether a person declined the call is kept

    def __post_init__(self) -> None:
        self.content = DECLINED if self.is_error and _BY_PERSON.match(self.content) else msgspec.Raw()

    @property
    def status(self) -> str | None:
        """Of a tool result: "error", "declined" where a person did not allow the call, else None."""
        if not self.is_error:
            return None
        return "declined" if self.content is DECLINED else "error"


class Usage(msgspec.Struct):
    """Token counts of a model call, as known when its line was written."""

    output_tokens: _Count | None = None
    input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None

    @property
    def read(self) -> int | None:
        """Tokens that the call read, from the cache or not; None without any count."""
        return known_sum(self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens)


class Message(msgspec.Struct):
    """A message of the API, by the model (with an id, a model name and usage) or to it."""

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


_LINE = msgspec.json.Decoder(Line)
_MESSAGE = msgspec.json.Decoder(Message)
_PROGRESS = msgspec.json.Decoder(_Progress)
_SPAWN_RESULT = msgspec.json.Decoder(SpawnResult)


@dataclasses.dataclass(slots=True)
class Entry:
    """A user or assistant line."""

    place: Place
    type: str
    uuid: str | None
    parent: str | None
    agent: str | None
    sidechain: bool
    time: float
    harness: bool  # written by the harness: meta text, a compaction's summary, an API error, a made-up reply
    summary: bool  # of the lines before it, by a model call that is in no line of the session's
    message: Message
    result: msgspec.Raw
    money: float | None
    api_error: str  # what the harness wrote in place of a reply that the API refused; "" elsewhere

    def refuse(self, kind: str, field: str, value: object, expected: str, trace: str) -> TraceError:
        """An error that names this line."""
        return TraceError(Problem(kind, self.place.file, self.place.line, field, excerpt(value), expected, trace))


class Link(NamedTuple):
    """How a line of any type hangs on another.

    At the first line after a compaction, `logical` is the last line before it. `is_summary` is True for the summary
    that a compaction writes of the earlier lines.
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
    """One file."""

    file: str
    entries: list[Entry] = dataclasses.field(default_factory=list)
    agents: dict[str, str] = dataclasses.field(default_factory=dict)  # tool use id -> agent id, from progress lines
    links: dict[str, Link] = dataclasses.field(default_factory=dict)  # by uuid
    loose: list[Link] = dataclasses.field(
        default_factory=list
    )  # messages without a uuid, which no line can name as its parent
    sessions: list[str] = dataclasses.field(default_factory=list)  # ids, in order of first appearance
    version: str = ""  # of Claude Code, as the first line has it that states one

    def make_main(self) -> None:
        """Read the lines of a sub-agent as those of a main agent."""
        for entry in self.entries:
            entry.sidechain, entry.agent = False, None
        self.links = {uuid: link._replace(is_side=False) for uuid, link in self.links.items()}
        self.loose = [link._replace(is_side=False) for link in self.loose]


def read_lines(source: Source) -> Transcript:
    """The lines of a file. A line that repeats an earlier one byte for byte counts once.

    Raises:
      TraceError: the first line that is not as expected: kinds of `graphs.reading.decode.decode_record`, and
        "duplicate-id" where two different lines have one uuid.
    """
    transcript = Transcript(source.name)
    seen: dict[str, tuple[int, int]] = {}  # uuid -> line number and hash of the line, which is too long to keep
    sessions: dict[str, None] = {}
    for raw, place in documents(source):
        line = decode_record(_LINE, raw, file=place.file, line=place.line)
        link = Link(
            place.line, line.session, line.parent, line.logical_parent, bool(line.sidechain), line.type in _MESSAGES,
            bool(line.summary),
        )  # fmt: skip
        if line.uuid is not None:
            first, digest = seen.setdefault(line.uuid, (place.line, hash(raw)))
            if first != place.line and digest == hash(raw):
                continue
            if first != place.line:
                expected = f"an id that no other line has (also line {first})"
                raise TraceError(Problem("duplicate-id", place.file, place.line, "uuid", excerpt(line.uuid), expected))
            transcript.links[line.uuid] = link
        elif link.is_message:
            transcript.loose.append(link)
        if line.session is not None:
            sessions[line.session] = None
        if isinstance(line.version, str):
            transcript.version = transcript.version or line.version.strip()
        if link.is_message:
            transcript.entries.append(_entry(place, line))
        elif line.type == "progress" and line.tool_use is not None and b"agent_progress" in raw:
            progress = decode(_PROGRESS, line.data, file=place.file, line=place.line, field="data")
            if progress.type == "agent_progress" and progress.agent is not None:
                transcript.agents.setdefault(line.tool_use, progress.agent)
    transcript.sessions = list(sessions)
    return transcript


def _entry(place: Place, line: Line) -> Entry:
    message = _message(place, line)
    time = math.nan if line.time is None else line.time.timestamp()
    return Entry(
        place, line.type, line.uuid, line.parent, line.agent, bool(line.sidechain), time, _of_harness(line, message),
        bool(line.summary), message, line.result, stated_money(line.cost),
        "".join(block.text or "" for block in message.blocks) or "an error of the API" if line.api_error else "",
    )  # fmt: skip


def _message(place: Place, line: Line) -> Message:
    if not bytes(line.message):
        raise _missing(place, "message", "an object")
    message = decode(_MESSAGE, line.message, file=place.file, line=place.line, field="message")
    if line.type == "assistant" and not message.id and not _of_harness(line, message):
        raise _missing(place, "message.id", "the id of the model call")
    for index, block in enumerate(message.blocks):
        for needed in _NEEDED.get(block.type, ()):
            if not getattr(block, needed):
                raise _missing(place, f"message.content[{index}].{needed}", "a non-empty string")
    return message


def _missing(place: Place, field: str, expected: str) -> TraceError:
    return TraceError(Problem("missing-field", place.file, place.line, field, "absent", expected))


def _of_harness(line: Line, message: Message) -> bool:
    """Whether the harness wrote the line, although its type is that of the user or the model."""
    if line.type == "user":
        return bool(line.meta or line.summary)
    return bool(line.api_error) or message.model == _SYNTHETIC


def spawn_result(entry: Entry, trace: str) -> SpawnResult:
    """What the line of a tool result notes of a started agent; nothing where it notes text or nothing.

    Raises:
      TraceError: an agent id or a status that is no text.
    """
    if not bytes(entry.result).startswith(b"{"):
        return SpawnResult()
    file, line, _ = entry.place
    return decode(_SPAWN_RESULT, entry.result, file=file, line=line, field="toolUseResult", trace=trace)


def identify(source: Source) -> tuple[str | None, str | None]:
    """Session and agent id of the first line that has a session id; no more of the file is read than necessary.

    Raises:
      OSError, TraceError: the file cannot be read.
    """
    return _first_session(source.head(_HEAD)) or _first_session(content(source)) or (None, None)


def _first_session(data: bytes) -> tuple[str, str | None] | None:
    for text in data.splitlines():
        try:
            line = _LINE.decode(text) if b'"sessionId"' in text else None
        except JSON_ERRORS:  # the end of the head, or what `read_lines` names
            continue
        if line is not None and line.session is not None:
            return line.session, line.agent
    return None
