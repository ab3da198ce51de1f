"""Rollouts of NeMo Gym: a row holds the items of OpenAI's Responses API.

Items of the model that stand side by side (reasoning, text, tool calls) are one model call; a tool's output or a
message of the user ends it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem
from graphs.readers.common.chat import Chat
from graphs.readers.common.places import Document
from graphs.readers.common.typed import decode
from graphs.readers.training.rollouts.rows import prompt_group
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, TraceRecord

__all__ = ["read_gym"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class _Item(msgspec.Struct):
    type: str = "message"
    role: str | None = None
    name: str | None = None
    call_id: str | None = None
    generation_token_ids: list[int] | None = None
    generation_log_probs: list[_Float] | None = None


class _Usage(msgspec.Struct):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None


class _Response(msgspec.Struct):
    output: list[_Item] = []
    model: str | None = None
    usage: _Usage | None = None


class _Request(msgspec.Struct):
    input: msgspec.Raw = msgspec.Raw(b"null")


class _Agent(msgspec.Struct):
    name: str = ""


class _Row(msgspec.Struct):
    responses_create_params: _Request
    response: _Response
    reward: _Float | None = None
    reward_components: dict[str, float | None] | None = None
    agent_ref: _Agent | None = None
    task: _Count | None = msgspec.field(default=None, name="_ng_task_index")
    rollout: _Count | None = msgspec.field(default=None, name="_ng_rollout_index")


_ROW = msgspec.json.Decoder(_Row)


def read_gym(document: Document, file: str) -> Iterator[TraceRecord | Problem]:
    """The record of a row.

    Raises:
      TraceError: kinds of `graphs.readers.common.typed.decode`, "unknown-tool-call", "bad-value".
    """
    raw, place = document
    row = decode(_ROW, raw, file=place.file, line=place.line)
    trace, group = f"{file}/{place.line}", prompt_group(bytes(row.responses_create_params.input), None)
    if row.task is not None:
        group = f"task-{row.task}/{group}"
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="rollouts")
    record.model = row.response.model or ""
    record.system = row.agent_ref.name if row.agent_ref is not None else ""
    if row.reward is not None:
        record.rewards["team"] = row.reward
    components = row.reward_components or {}
    record.rewards |= {name: value for name, value in components.items() if value is not None and name != "team"}
    _Responses(Chat(record, record.system or "assistant"), document).add_all(row.response)
    yield record


class _Responses:
    """Turns response items into the events of a chat."""

    def __init__(self, chat: Chat, document: Document) -> None:
        self.chat, self.place = chat, document.place
        self.items: list[_Item] = []  # of the model call that is not ended yet
        self.first = 0  # the position of its first item
        self.calls: list[int] = []  # positions of model calls

    def add_all(self, response: _Response) -> None:
        for index, item in enumerate(response.output):
            if item.type in ("reasoning", "function_call") or (item.type == "message" and item.role == "assistant"):
                self.first = index if not self.items else self.first
                self.items.append(item)
                continue
            self._end()
            if item.type == "function_call_output":
                field = f"response.output[{index}].call_id"
                self.chat.result(f"{index}", self.place, item.call_id, field)
            elif item.type == "message" and item.role == "user":
                self.chat.input(f"{index}", self.place)
            elif item.type == "message" and item.role not in ("system", "developer"):
                field = f"response.output[{index}].role"
                self.chat.refuse("bad-value", self.place, field, item.role, "assistant, user, system or developer")
        self._end()
        record = self.chat.finish()
        if len(self.calls) == 1 and response.usage is not None:  # else it is the sum over all calls
            for name, count in (
                ("tokens", response.usage.output_tokens),
                ("input_tokens", response.usage.input_tokens),
            ):
                if count is not None and name not in record.columns:
                    record.columns[name] = [None] * self.calls[0] + [count]

    def _end(self) -> None:
        """Append the model call that the items since the last one are of."""
        if not self.items:
            return
        tools = [(item.call_id, item.name or "tool") for item in self.items if item.type == "function_call"]
        ids = [item.generation_token_ids for item in self.items if item.generation_token_ids is not None]
        log_probs = [item.generation_log_probs for item in self.items if item.generation_log_probs]
        position = self.chat.reply(
            f"{self.first}", self.place, tools,
            tokens=sum(map(len, ids)) if ids else None,
            log_prob=math.fsum(number for numbers in log_probs for number in numbers) if log_probs else None,
        )  # fmt: skip
        self.calls.append(position)
        self.items = []
