"""Trajectories of mini-swe-agent, which the reader `swe-agent` reads with the predictions and results beside them.

    {info: {exit_status, mini_version, config: {model: {model_name}}}, messages: [MESSAGE], trajectory_format,
     instance_id}                                                                       INSTANCE.traj.json
    MESSAGE: {role: system | user | assistant | tool | exit, content, tool_call_id, extra: {actions: [{command,
      tool_call_id}], response: {usage}, timestamp}}; of the Responses API {object: "response", output, usage, extra},
      and {type: "function_call_output", call_id}

A reply of the model is a call, and an action; each command is its effect. Versions before 2 write the command as a
block of code in the reply. `docs/formats/swe-agent.md` has the whole mapping.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

import msgspec

from graphs.formats.common.chat import Chat
from graphs.formats.common.input_tokens import ChatUsage, call_counts
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.run_digest import run_digest
from graphs.formats.common.stop_reasons import stop_reason
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Place
from graphs.reading.files import canonical
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, TraceRecord

__all__ = ["Info", "Stats", "Trajectory", "is_mini", "read_mini"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Cost = Annotated[float, msgspec.Meta(ge=0, le=LARGEST_FLOAT)]
_ENDED = frozenset({"", "Submitted", "LimitsExceeded", "TimeExceeded", "RepeatedFormatError", "UserInterruption"})
"""States in which a run ends by itself; any other is the name of an exception."""
_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)[ \t]*\n(.*?)\n```", re.DOTALL)  # one of them is the command
_WORD = re.compile(r"[\w./-]+")  # the first word of a command, with its path


class _Model(msgspec.Struct):
    model_name: str | None = None


class _Config(msgspec.Struct):
    model: _Model | None = None


class Stats(msgspec.Struct):
    """What the models of a run were asked, and what they cost."""

    tokens_sent: _Count | None = None
    tokens_received: _Count | None = None
    instance_cost: _Cost | None = None

    def costs(self) -> dict[str, float]:
        """The costs of the trace that are stated. SWE-agent writes 0 for a model whose price it does not know."""
        stated = {"tokens": self.tokens_received, "input_tokens": self.tokens_sent, "money": self.instance_cost or None}
        return {name: float(amount) for name, amount in stated.items() if amount is not None}


class Info(msgspec.Struct):
    """What a run says of itself."""

    exit_status: str | None = None
    mini_version: str | None = None
    model_stats: Stats | None = None
    config: _Config | None = None


class Trajectory(msgspec.Struct):
    """A file."""

    info: Info
    messages: msgspec.Raw
    trajectory_format: str = ""
    instance_id: str | None = None


class _Response(msgspec.Struct):
    usage: ChatUsage | None = None


class _Action(msgspec.Struct):
    command: str = ""
    tool_call_id: str | None = None


class _Extra(msgspec.Struct):
    actions: list[_Action] | None = None
    response: msgspec.Raw = msgspec.Raw(b"null")
    timestamp: float | None = None
    interrupt_type: str | None = None
    exception_info: str | None = None


class _Message(msgspec.Struct):
    role: str | None = None
    type: str | None = None
    object: str | None = None
    content: Any = None
    tool_call_id: str | None = None
    call_id: str | None = None
    usage: ChatUsage | None = None
    extra: _Extra | None = None


_TRAJECTORY = msgspec.json.Decoder(Trajectory)
_MESSAGE = msgspec.json.Decoder(_Message)
_RESPONSE = msgspec.json.Decoder(_Response)
_NO_EXTRA = _Extra()


def is_mini(keys: frozenset[str]) -> bool:
    """Whether a file with these top-level keys is a trajectory of mini-swe-agent."""
    return {"info", "messages", "trajectory_format"} <= keys


def read_mini(data: bytes, place: Place, name: str, instance: str) -> TraceRecord:
    """The record of a trajectory, without what other files say of it.

    Args:
      data: the file's content.
      place: where it begins.
      name: the trace's id.
      instance: the instance by the file's name, where the file does not state it.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`, "bad-value", "unknown-tool-call".
    """
    wire = decode_record(_TRAJECTORY, data, file=place.file, line=place.line, trace=name)
    record = TraceRecord(name, wire.instance_id or instance, *place, format="swe-agent")
    record.system = f"mini-swe-agent {wire.info.mini_version or ''}".strip()
    model = wire.info.config.model if wire.info.config else None
    record.costs = wire.info.model_stats.costs() if wire.info.model_stats else {}
    record.model = (model.model_name if model else None) or ""
    ended = wire.info.exit_status or ""
    record.error = "" if ended in _ENDED else ended
    record.ended_by(ended)
    chat, waiting = Chat(record, "agent"), 0  # commands of the last reply without an observation
    for index, (raw, where) in enumerate(placed_elements(data, wire.messages, place, field="messages", trace=name)):
        field = f"messages[{index}]"
        message = decode(_MESSAGE, raw, file=where.file, line=where.line, field=field, trace=name)
        extra = message.extra or _NO_EXTRA
        time = math.nan if extra.timestamp is None else extra.timestamp
        if message.role == "assistant" or message.object == "response":
            calls = [(action.tool_call_id, _tool(action.command)) for action in _actions(message, extra)]
            counts, unlike = call_counts(message.usage, _usage(extra, where, field, name))
            record.unlike_counts += [(unlike, where)] if unlike else []
            chat.reply(str(index), where, calls, time=time, stopped=stop_reason(extra.response), **counts)
            waiting = len(calls)
        elif message.role == "tool" or message.type == "function_call_output" or (message.role == "user" and waiting):
            if extra.interrupt_type is None:
                call_id, status = message.tool_call_id or message.call_id, "error" if extra.exception_info else None
                chat.result(str(index), where, call_id, f"{field}.tool_call_id", time=time, status=status)
                waiting -= 1
        elif message.role not in ("system", "user", "developer", "exit"):
            expected = "system, user, assistant, tool or exit"
            chat.refuse("bad-value", where, f"{field}.role", message.role, expected)
    times = [time for time in record.times if math.isfinite(time)]
    # A file's name may be the instance alone, but its content has the task: what is equal is a copy under another name.
    record.run = run_digest(record.model, times or canonical(data).decode())
    return chat.finish()


def _actions(message: _Message, extra: _Extra) -> list[_Action]:
    """The commands of a reply; before version 2, the one block of code in its text."""
    if extra.actions is not None:
        return extra.actions
    blocks = _BLOCK.findall(message.content) if isinstance(message.content, str) else []
    return [_Action(blocks[0])] if len(blocks) == 1 else []


def _tool(command: str) -> str:
    found = _WORD.search(command)
    return found.group().rsplit("/", 1)[-1] if found else "bash"


def _usage(extra: _Extra, place: Place, field: str, trace: str) -> ChatUsage | None:
    """The tokens of a reply; a response that could not be written as JSON is a text."""
    if not bytes(extra.response).startswith(b"{"):
        return None
    response_field = f"{field}.extra.response"
    response = decode(_RESPONSE, extra.response, file=place.file, line=place.line, field=response_field, trace=trace)
    return response.usage
