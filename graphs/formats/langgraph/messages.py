"""Messages of LangChain in the state of a graph, or in a node's update of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.stop_reasons import stop_reason
from graphs.reading.decode import decode

__all__ = ["CALL", "HUMAN", "RESULT", "Message", "Response", "SubGraphMessages", "messages_of"]

CALL, RESULT, HUMAN = ("ai", "AIMessageChunk"), ("tool", "ToolMessageChunk"), ("human", "HumanMessageChunk")
"""Types of the messages of models, tools and users."""


class Response(msgspec.Struct):
    model_name: str | None = None
    token_usage: msgspec.Raw = msgspec.Raw()  # in the words of each provider, or as the text of an object of its own
    usage: msgspec.Raw = msgspec.Raw()
    finish_reason: Any = None
    stop_reason: Any = None
    done_reason: Any = None
    of_bedrock: Any = msgspec.field(default=None, name="stopReason")
    incomplete_details: Any = None

    @property
    def stopped(self) -> str | None:
        """Why the reply ended."""
        stated = self.finish_reason or self.stop_reason or self.done_reason or self.of_bedrock
        return stop_reason({"stop_reason": stated, "incomplete_details": self.incomplete_details})


class _ToolCall(msgspec.Struct):
    id: str | None = None
    name: str = "tool"


class Message(msgspec.Struct):
    """A message: what is needed of it to place events."""

    type: str
    id: str | None = None
    content: msgspec.Raw = msgspec.Raw()
    tool_calls: list[_ToolCall] = []
    tool_call_id: str | None = None
    status: str | None = None
    usage_metadata: ChatUsage | None = None
    response_metadata: Response | None = None


class _Value(msgspec.Struct):
    """What tells a message among other values of a state; LangChain's own serialisation has it in `kwargs`."""

    type: Any = None
    content: msgspec.Raw = msgspec.Raw()
    lc: Any = None
    kwargs: msgspec.Raw = msgspec.Raw()


_MESSAGE = msgspec.json.Decoder(Message)
_VALUE = msgspec.json.Decoder(_Value)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_STATE = msgspec.json.Decoder(dict[str, msgspec.Raw])


def messages_of(state: msgspec.Raw, **where: Any) -> Iterator[tuple[Message, str]]:
    """The messages of a state in the order of its channels, and the key of each: its id, else its text.

    Other values of the state are left out. `where` has the place of the state, for `decode`.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    for channel in _channels(bytes(state), where):
        for element in decode(_LIST, channel, **where) if channel.startswith(b"[") else [channel]:
            text = bytes(element)
            value = decode(_VALUE, text, **where) if text.startswith(b"{") else _Value()
            if value.lc is not None and bytes(value.kwargs).startswith(b"{"):
                text = bytes(value.kwargs)
                value = decode(_VALUE, text, **where)
            if isinstance(value.type, str) and value.type in (*CALL, *RESULT, *HUMAN) and bytes(value.content):
                message = decode(_MESSAGE, text, **where)
                yield message, message.id or text.decode("utf-8", "replace")


def _channels(state: bytes, where: dict[str, Any]) -> list[bytes]:
    """The values of a state's channels: of an object, or of a list of pairs, as older versions write updates."""
    if state.startswith(b"{"):
        return [bytes(value) for value in decode(_STATE, state, **where).values()]
    if not state.startswith(b"["):
        return []
    items = [bytes(item) for item in decode(_LIST, state, **where)]
    pairs = [decode(_LIST, item, **where) for item in items if item.startswith(b"[")]
    return [bytes(pair[1]) for pair in pairs if len(pair) == 2]


class SubGraphMessages:
    """The messages of one sub-graph, which the task around it repeats in its own result.

    A message may have no id yet in the result of an inner task and have one in that of the outer task, or be copied
    without its id. So it is told by the call that it answers, by the calls that it asks for, or by its content. Two
    messages of the same content with ids of their own are two.
    """

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._contents: dict[_Content, bool] = {}  # whether a message of this content repeats one, whatever its id

    def add(self, message: Message) -> None:
        """Note a message."""
        content = _content(message)
        if message.id:
            self._ids.add(message.id)
        self._contents[content] = self._contents.get(content, False) or not message.id or isinstance(content, tuple)

    def has(self, message: Message) -> bool:
        """Whether a message repeats one of them."""
        with_any_id = self._contents.get(_content(message))
        return message.id in self._ids or bool(with_any_id) or (with_any_id is not None and not message.id)


_Content = bytes | tuple[str | None, ...]


def _content(message: Message) -> _Content:
    if message.type in RESULT:
        return ("result", message.tool_call_id)
    if message.tool_calls:
        return ("calls", *(call.id for call in message.tool_calls))
    return bytes(message.content)
