"""Items of OpenAI's Responses API as the events of a chat.

Items of the model that follow each other (reasoning, text, tool calls) are one model call. A tool's output, a message
of the user, or the end of the list ends it.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from graphs.formats.common.chat import Chat
from graphs.formats.common.input_tokens import ChatUsage
from graphs.reading.documents import Place
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT

__all__ = ["OUTPUTS", "Item", "Responses"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]

OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OF_MODEL = ("reasoning", "web_search_call", *_CALLS)


class Item(msgspec.Struct):
    """The fields of an item that become events."""

    type: str = "message"
    role: str | None = None
    name: str | None = None
    call_id: str | None = None
    generation_token_ids: list[_Count] | None = None
    generation_log_probs: list[_Float] | None = None


class Responses:
    """Appends items in order to a chat; call `end` after the last one."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.calls: list[int] = []  # positions of model calls
        self.model: str | None = None  # that they ask from here on
        self._items: list[tuple[Item, Place, float]] = []  # of the model call that is open, with their times
        self._begun = ("", Place("", 0, -1))  # event id and place of the first of them

    def add(
        self, item: Item, event_id: str, place: Place, field: str, *, time: float = math.nan, status: str | None = None
    ) -> None:
        """Append an item.

        Args:
          item: the item.
          event_id: the id of its event, if it becomes one.
          place: where it stands.
          field: its field in the log, for errors.
          time: when it was written.
          status: of a tool's output.

        Raises:
          TraceError: kinds "unknown-tool-call", "bad-value".
        """
        if item.type in _OF_MODEL or (item.type == "message" and item.role == "assistant"):
            self._begun = self._begun if self._items else (event_id, place)
            self._items.append((item, place, time))
            return
        self.end()
        if item.type in OUTPUTS:
            self.chat.result(event_id, place, item.call_id, f"{field}.call_id", time=time, status=status)
        elif item.type == "message" and item.role == "user":
            self.chat.input(event_id, place, time=time)
        elif item.type == "message" and item.role not in ("system", "developer"):
            expected = "assistant, user, system or developer"
            self.chat.refuse("bad-value", place, f"{field}.role", item.role, expected)

    def end(self, usage: ChatUsage | None = None) -> None:
        """Append the model call that the items since the last call are, with its token counts.

        An item was written when it was complete, so the time is that of the last one up to the first tool call.
        """
        if not self._items:
            return
        event_id, place = self._begun
        items = [item for item, _, _ in self._items]
        first = next((i for i, item in enumerate(items) if item.type in _CALLS), len(items) - 1)
        time = self._items[first][2]
        called = [step for step in self._items if step[0].type in _CALLS]
        tools = [(item.call_id, item.name or item.type) for item, _, _ in called]
        ids = [item.generation_token_ids for item in items if item.generation_token_ids is not None]
        log_probs = [number for item in items for number in item.generation_log_probs or ()]
        generated = [token for of_item in ids for token in of_item]
        fit = len(log_probs) == len(generated)  # an item may have only one of the two
        counts = (usage or ChatUsage()).columns | ({"tokens": len(generated)} if ids else {})
        self.calls.append(
            self.chat.reply(
                event_id, place, tools, places=[where for _, where, _ in called], times=[at for _, _, at in called],
                time=time,
                model=self.model, **counts,
                log_prob=math.fsum(log_probs) if log_probs else None,
                token_ids=generated or None, token_log_probs=log_probs if log_probs and fit else None,
            )
        )  # fmt: skip
        self._items = []

    def count_last(self, usage: ChatUsage) -> None:
        """Write the token counts that a log states after a call, or after the results of its tools."""
        if self._items:
            self.end(usage)
            return
        for name, count in usage.columns.items():
            column = self.chat.record.columns.setdefault(name, [])
            if self.calls and count is not None:
                position = self.calls[-1]
                column.extend([None] * (position + 1 - len(column)))
                column[position] = count if column[position] is None else column[position]
