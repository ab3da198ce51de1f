"""tau-bench result files: a JSON list of runs, each a chat between an assistant with tools and a simulated user.

    {task_id, trial, reward, info: {task, reward_info: {info: {r_actions | r_outputs}}}, traj: [chat messages]}

A run is a trace, "STEM/task-ID/trial-N"; its task is "task-ID". The format names no model. A file is one run of one
model and strategy, so its name is the trace's system, and runs of two files are not compared by default.

Each message of the assistant is one action: a `message` if it has text (or nothing at all), else its first tool call.
Its other tool calls are effects. Messages of the user and results of tools are the environment's. Tool call ids repeat
within a run, so event ids are positions of messages. `docs/formats/tau-bench.md` has the whole mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_graph import EdgeType, EventType
from graphs.formats.common.chat import OpenCalls
from graphs.formats.common.money import stated_money
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.run_digest import run_digest
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import Tasks, short_names
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import Agent, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_SNIFF = re.compile(rb'"traj"\s*:\s*\[')
_ROLES = ("system", "user", "assistant", "tool")
# So tau-bench answers a call that failed, has bad arguments or names no tool.
_ERRORS = ("Error: ", "Unknown action ")


class _Components(msgspec.Struct):
    r_actions: float | None = None
    r_outputs: float | None = None


class _RewardInfo(msgspec.Struct):
    info: _Components | None = None


class _Task(msgspec.Struct):
    instruction: str | None = None


class _Info(msgspec.Struct):
    task: _Task | None = None
    reward_info: _RewardInfo | None = None
    user_cost: Any = None
    error: str | None = None


class _Run(msgspec.Struct):
    task_id: int | str
    trial: int | str
    traj: msgspec.Raw
    reward: float | None = None
    info: _Info | None = None


class _Name(msgspec.Struct):
    """What the trace's id is made of. It is decoded first, so that faults of the other fields name the trace."""

    task_id: int | str
    trial: int | str


class _Function(msgspec.Struct):
    name: str
    arguments: Any = None  # for the run's digest


class _ToolCall(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None


RECORDS = (_Run,)

_NAME = msgspec.json.Decoder(_Name)
_RUN = msgspec.json.Decoder(_Run)
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a run, or as a list of objects with a `traj` list."""
    if {"task_id", "trial", "traj"} <= set(opening(head).keys):
        return True
    start = head.lstrip()
    return start.startswith(b"[") and start[1:].lstrip().startswith(b"{") and _SNIFF.search(start) is not None


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each run.

    Problem kinds, of one run: those of `graphs.reading.json_problems`, "bad-value", "unknown-tool-call",
    "ambiguous-id".
    """
    tasks, names = Tasks(), short_names(sources)
    for source in sources:
        for document in documents(source):
            try:
                yield _record(document, names[source.name], tasks)
            except TraceError as error:
                yield error.problem
        source.release()


def _record(document: Document, name: str, tasks: Tasks) -> TraceRecord:
    raw, place = document
    # A file may be one line, so faults of the name are placed by the run's position in the list.
    named = decode(_NAME, raw, file=place.file, line=place.line, field=place.field)
    task = f"task-{named.task_id}"
    trace = f"{name}/{task}/trial-{named.trial}"
    run = decode_record(_RUN, raw, file=place.file, line=place.line, trace=trace)
    info = run.info or _Info()
    instruction = info.task.instruction if info.task else None
    # Task ids are unique within a domain only. Where two files give one id two instructions, the later file's name is
    # part of the group.
    content = b"" if instruction is None else b"=" + instruction.encode()
    group = tasks.group(task, content, f"{name}/{task}")
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="tau-bench", system=name)
    tasks.ids.check(record, "task_id", run.task_id)
    record.error = info.error or ""
    if (money := stated_money(info.user_cost)) is not None:
        record.costs["user_money"] = money
    parts = (info.reward_info.info if info.reward_info else None) or _Components()
    rewards = {"team": run.reward, "r_actions": parts.r_actions, "r_outputs": parts.r_outputs}
    record.rewards = {channel: amount for channel, amount in rewards.items() if amount is not None}
    chat, messages = _Chat(record), []
    for number, (element, where) in enumerate(placed_elements(raw, run.traj, place, field="traj", trace=trace)):
        message = decode(_MESSAGE, element, file=where.file, line=where.line, field=f"traj[{number}]", trace=trace)
        chat.add(number, message, where)
        messages.append(message)
    # Without the rewards: two files that score one conversation differently contradict each other.
    record.run = run_digest(run.task_id, run.trial, instruction, info.user_cost, messages)
    return record


class _Chat:
    """Turns chat messages into events and edges of one record."""

    def __init__(self, record: TraceRecord) -> None:
        self.record = record
        self.open = OpenCalls()
        self.causes: list[tuple[int, EdgeType]] = []  # what the assistant's next action answers
        self.action: int | None = None  # the assistant's latest action
        self.text: int | None = None  # its latest text that the user has not answered

    def add(self, index: int, message: _Message, place: Place) -> None:
        """Append the message at this position.

        Raises:
          TraceError: kinds "bad-value", "unknown-tool-call".
        """
        if message.role == "assistant":
            self._assistant(index, message, place)
        elif message.role == "user":
            self._user(index, place)
        elif message.role == "tool":
            self._result(index, message, place)
        elif message.role != "system":
            self._refuse("bad-value", place, f"traj[{index}].role", message.role, "one of " + ", ".join(_ROLES))

    def _assistant(self, index: int, message: _Message, place: Place) -> None:
        record, calls = self.record, message.tool_calls or []
        speaks = bool(message.content) or not calls
        kind, tool = (EventType.MESSAGE, None) if speaks else (EventType.TOOL_CALL, calls[0].function.name)
        action = self._event(str(index), kind, "assistant", place, action=True, tool=tool)
        for cause, edge_type in self.causes:
            record.edge(cause, action, edge_type)
        if self.action is not None:
            record.edge(self.action, action, EdgeType.TEMPORAL)
        self.causes, self.action = [], action
        if speaks:
            self.text = action
        for number, call in enumerate(calls):
            position = action  # the first call of a message without text is the action itself
            if speaks or number > 0:
                event_id, tool = f"{index}/call-{number}", call.function.name
                position = self._event(event_id, EventType.TOOL_CALL, "assistant", place, tool=tool)
                record.edge(action, position, EdgeType.TOOL_DEPENDENCY)
            self.open.add(call.id, position, call.function.name, action)

    def _user(self, index: int, place: Place) -> None:
        position = self._event(str(index), EventType.MESSAGE, "user", place)
        if self.text is not None:
            self.record.edge(self.text, position, EdgeType.MESSAGE)
            self.text = None
        self.causes.append((position, EdgeType.MESSAGE))

    def _result(self, index: int, message: _Message, place: Place) -> None:
        answered = self.open.take(message.tool_call_id)
        if answered is None:
            field, expected = f"traj[{index}].tool_call_id", "the id of a tool call before it that has no result yet"
            self._refuse("unknown-tool-call", place, field, message.tool_call_id, expected)
        call, tool = answered
        status = "error" if (message.content or "").startswith(_ERRORS) else None
        position = self._event(str(index), EventType.TOOL_RESULT, "assistant", place, tool=tool, status=status)
        self.record.edge(call, position, EdgeType.RETURN)
        self.causes.append((position, EdgeType.CAUSAL))

    def _event(
        self, event_id: str, kind: EventType, agent: str, place: Place, *, action: bool = False, **columns: Any
    ) -> int:
        if agent not in self.record.instances:
            self.record.instances[agent] = Agent(name=agent, role="user_simulator" if agent == "user" else agent)
        return self.record.event(event_id, kind, agent, action=action, line=place.line, offset=place.offset, **columns)

    def _refuse(self, kind: str, place: Place, field: str, value: object, expected: str) -> NoReturn:
        raise TraceError(Problem(kind, place.file, place.line, field, excerpt(value), expected, self.record.trace_id))
