"""Messages of LangChain in the state of a graph, or in a node's update of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.reading.decode import decode
from graphs.traces.record import LARGEST_COUNT

__all__ = ["CALL", "HUMAN", "RESULT", "Message", "Usage", "messages_of"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
CALL, RESULT, HUMAN = ("ai", "AIMessageChunk"), ("tool", "ToolMessageChunk"), ("human", "HumanMessageChunk")
"""Types of the messages of models, tools and users."""


class Usage(msgspec.Struct):
    """Token counts of a model call."""

    input_tokens: _Count | None = None
    output_tokens: _Count | None = None


class _Model(msgspec.Struct):
    model_name: str | None = None


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
    usage_metadata: Usage | None = None
    response_metadata: _Model | None = None


class _Loose(msgspec.Struct):
    """The marks of a message among other values of a state; LangChain's own serialisation has it in `kwargs`."""

    type: Any = None
    content: msgspec.Raw = msgspec.Raw()
    lc: Any = None
    kwargs: msgspec.Raw = msgspec.Raw()


_MESSAGE = msgspec.json.Decoder(Message)
_LOOSE = msgspec.json.Decoder(_Loose)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_STATE = msgspec.json.Decoder(dict[str, msgspec.Raw])


def messages_of(state: msgspec.Raw, **where: Any) -> Iterator[tuple[Message, str]]:
    """The messages of a state in the order of its channels, and the key of each: its id, else its text.

    Other values of the state are left out. `where` has the place of the state, for `decode`.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    for channel in _channels(bytes(state), where):
        for value in decode(_LIST, channel, **where) if channel.startswith(b"[") else [channel]:
            text = bytes(value)
            loose = decode(_LOOSE, text, **where) if text.startswith(b"{") else _Loose()
            if loose.lc is not None and bytes(loose.kwargs).startswith(b"{"):
                text = bytes(loose.kwargs)
                loose = decode(_LOOSE, text, **where)
            if isinstance(loose.type, str) and loose.type in (*CALL, *RESULT, *HUMAN) and bytes(loose.content):
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
