"""Chats between an agent with tools and a user: from messages to the events of a trace.

Several formats store a rollout as a list of chat messages. Every assistant message is one model call, and an action.
Its tool calls are effects of it. User messages and tool results are what the environment did. System messages are no
events.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.team import Team
from graphs.reading.decode import decode
from graphs.reading.documents import Place
from graphs.reading.json_problems import JSON_ERRORS
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = [
    "ROLES",
    "SILENT",
    "Chat",
    "Message",
    "OpenCalls",
    "ToolCall",
    "add_messages",
    "chat_of_text",
    "decode_messages",
]

SILENT = ("system", "developer")
"""Roles of messages that are no events."""
ROLES = "system, developer, user, assistant or tool"
"""What a message may be, for errors."""


class _Function(msgspec.Struct):
    name: str = ""


class ToolCall(msgspec.Struct):
    """A tool call of a message, in the layout of chat completions or with its name beside its id."""

    id: str | None = None
    name: str | None = None
    function: _Function | None = None

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.name or (self.function.name if self.function else "") or "tool"


class Message(msgspec.Struct):
    """The fields of a chat message that become events."""

    role: str
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    finish_reason: Any = None

    @property
    def calls(self) -> list[tuple[str | None, str]]:
        """Id and tool of each tool call."""
        return [(call.id, call.tool) for call in self.tool_calls or []]


_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_MESSAGE = msgspec.json.Decoder(Message)


class OpenCalls:
    """Tool calls that have no result yet, in the order of the chat. All operations take constant time."""

    def __init__(self) -> None:
        self._tools: dict[int, str] = {}  # position -> tool
        # Positions, by the reply that asked. A call that was answered without an id stays here, and `take` skips it.
        self._by_id: dict[str, dict[int, collections.deque[int]]] = {}

    def add(self, call_id: str | None, position: int, tool: str, reply: int) -> None:
        """Note a call that the reply at a position asked for."""
        self._tools[position] = tool
        if call_id:
            self._by_id.setdefault(call_id, {}).setdefault(reply, collections.deque()).append(position)

    def take(self, call_id: str | None) -> tuple[int, str] | None:
        """Position and tool of the call that a result answers; None if there is none.

        Ids may repeat within a chat: a result answers the first open call of its id in the latest reply that has one.
        Results without an id answer the calls in order.
        """
        if not call_id:
            position = next(iter(self._tools), None)
            return None if position is None else (position, self._tools.pop(position))
        replies = self._by_id.get(call_id, {})
        while replies:
            latest = next(reversed(replies))
            position = replies[latest].popleft()
            if not replies[latest]:
                del replies[latest]
            if position in self._tools:
                return position, self._tools.pop(position)
        return None


class Chat:
    """Appends the messages of one agent's chat to a record; call `finish` at the end."""

    def __init__(
        self,
        record: TraceRecord,
        agent: str = "assistant",
        *,
        user: str = "user",
        role: str = "user",
        team: Team | None = None,
    ) -> None:
        """Start a chat.

        Args:
          record: where to.
          agent: the agent's instance and name.
          user: the instance and name of whom it talks to, a part of the environment; `AGENT/user` if the agent itself
            has that name.
          role: the user's role.
          team: that of the chat of another agent of the record; one of its own by default.
        """
        self.record, self.agent, self.role = record, agent, role
        self.user = user if user != agent else f"{agent}/user"
        self.team = Team(record) if team is None else team
        self.team.agent(agent, agent)
        self.open_calls = OpenCalls()
        self.starts: dict[str | None, tuple[str, str]] = {}
        """Instance and name of the agent that a tool call starts, by the call's id."""

    def reply(
        self,
        event_id: str,
        place: Place,
        calls: Sequence[tuple[str | None, str]] = (),
        *,
        places: Sequence[Place] = (),
        times: Sequence[float] = (),
        sampled: bool = True,
        stopped: Any = None,
        **columns: Any,
    ) -> int:
        """Append a model call of the agent, with the ids and names of the tools that it called.

        `places` are those of the calls where they do not stand in the record of the reply, `times` when they were made.
        What is not `sampled` is a message in its name that no model call of this run wrote, such as an example.
        `stopped` is as of `Team.call`.
        """
        if sampled:
            position = self.team.call(self.agent, event_id, place, stopped=stopped, **columns)
        else:
            position = self.team.fixed(self.agent, event_id, place, **columns)
        for number, (call_id, tool) in enumerate(calls):
            effect_id, where = f"{event_id}/call-{number}", places[number] if places else place
            time = times[number] if times else math.nan
            if call_id in self.starts:
                instance, name = self.starts[call_id]
                self.team.agent(instance, name, parent=self.agent)
                self.team.spawn(self.agent, effect_id, instance, where, call=position, tool=tool, time=time)
            else:
                call = position if sampled else None
                effect = self.team.tool_call(self.agent, effect_id, where, call=call, tool=tool, time=time)
                self.open_calls.add(call_id, effect, tool, position)
        return position

    def input(self, event_id: str, place: Place, **columns: Any) -> int:
        """Append a message of the user."""
        self.team.agent(self.user, self.user, self.role, outside=True)
        return self.team.input(self.user, event_id, self.agent, place, **columns)

    def result(self, event_id: str, place: Place, call_id: str | None, field: str, **columns: Any) -> int:
        """Append a tool's result.

        Args:
          event_id: the id of its event.
          place: where it stands.
          call_id: the id of the tool call that it answers, if the log has one.
          field: where that id stands, for errors.
          columns: evidence of the event.

        Raises:
          TraceError: kind "unknown-tool-call", it answers no open call.
        """
        answered = self.open_calls.take(call_id)
        if answered is None:
            self.refuse("unknown-tool-call", place, field, call_id, "the id of a tool call before it without a result")
        call, tool = answered
        return self.team.result(self.agent, event_id, place, answers=call, tool=tool, **columns)

    def refuse(self, kind: str, place: Place, field: str, value: object, expected: str) -> NoReturn:
        """Raise a `TraceError` at a message."""
        raise TraceError(Problem(kind, place.file, place.line, field, excerpt(value), expected, self.record.trace_id))

    def finish(self) -> TraceRecord:
        """The record, with its edges."""
        return self.team.finish()


def add_messages(
    chat: Chat,
    messages: Iterable[tuple[Message, Place]],
    list_field: str,
    *,
    prefix: str = "",
    fixed: Collection[int] = (),
    **columns: Any,
) -> None:
    """Append chat messages in order; event ids are `prefix` and the message's position.

    Args:
      chat: where to.
      messages: decoded messages with their places.
      list_field: the field of the list, for errors.
      prefix: how the ids begin.
      fixed: positions of messages in the agent's name that no model call of this run wrote.
      columns: evidence of every model call.

    Raises:
      TraceError: kinds "bad-value", an unknown role; "unknown-tool-call".
    """
    for index, (message, place) in enumerate(messages):
        event_id, field = f"{prefix}{index}", f"{list_field}[{index}]"
        if message.role == "assistant":
            sampled, stopped = index not in fixed, message.finish_reason
            chat.reply(event_id, place, message.calls, sampled=sampled, stopped=stopped, **columns)
        elif message.role in ("user", "human", "environment"):
            chat.input(event_id, place)
        elif message.role in ("tool", "function"):
            chat.result(event_id, place, message.tool_call_id, f"{field}.tool_call_id")
        elif message.role not in SILENT:
            chat.refuse("bad-value", place, f"{field}.role", message.role, ROLES)


def chat_of_text(text: str) -> list[Any] | None:
    """The messages that a text is the JSON of, as tables of texts store a chat; None for any other text.

    Examples:
      >>> chat_of_text('[{"role": "assistant", "content": "4"}]'), chat_of_text('[{"x": 4}]'), chat_of_text("[4")
      ([{'role': 'assistant', 'content': '4'}], None, None)
    """
    if not text.lstrip().startswith("["):  # for speed: completions are long
        return None
    try:
        messages = _ANYTHING.decode(text)
    except JSON_ERRORS:
        return None
    is_chat = bool(messages) and all([isinstance(message, dict) and "role" in message for message in messages])
    return messages if is_chat else None


def decode_messages(
    raw: msgspec.Raw | bytes, place: Place, field: str, trace: str, record: bytes = b""
) -> Iterator[tuple[Message, Place]]:
    """The messages of a JSON list within a record, each with its place, or with the record's where `record` is absent.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    if record:
        placed = placed_elements(record, msgspec.Raw(bytes(raw)), place, field=field, trace=trace)
    else:
        elements: list[msgspec.Raw] = decode(_LIST, raw, file=place.file, line=place.line, field=field, trace=trace)
        placed = ((element, place) for element in elements)
    for index, (element, where) in enumerate(placed):
        message = decode(_MESSAGE, element, file=where.file, line=where.line, field=f"{field}[{index}]", trace=trace)
        yield message, where
