"""Results of tau2-bench: the simulations of a run, each a chat between an agent and a simulated user, both with tools.

    {info: {agent_info: {implementation, llm}, user_info, environment_info: {domain_name}}, tasks: [...],
     simulations: [{id, task_id, trial, reward_info: {reward, reward_breakdown}, messages: [
        {role, content, turn_idx, timestamp, usage, tool_calls: [{id, name, requestor}]}]}]}

In its format "dir" each simulation has a file of its own, `simulations/ID.json`, and the results have none.

A simulation is a trace. A message of the assistant is a model call, and an action, except the fixed greeting that every
simulation begins with. The user's messages, tool calls, tokens and money are the environment's.
`docs/formats/tau2-bench.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat, ToolCall
from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.run_digest import run_digest
from graphs.formats.common.stop_reasons import stop_reason
from graphs.reading.addresses import real_folder
from graphs.reading.decode import content, decode, decode_record
from graphs.reading.documents import Document, Place
from graphs.reading.files import WrittenIds, short_names
from graphs.reading.keys import opening, opening_of
from graphs.reading.lists_in_objects import object_with_list
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Cost = Annotated[float, msgspec.Meta(ge=0, le=LARGEST_FLOAT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class _Agent(msgspec.Struct):
    implementation: str | None = None
    llm: str | None = None


class _Environment(msgspec.Struct):
    domain_name: str | None = None


class _Info(msgspec.Struct):
    agent_info: _Agent | None = None
    user_info: _Agent | None = None
    environment_info: _Environment | None = None


class _Results(msgspec.Struct):
    simulations: msgspec.Raw = msgspec.Raw(b"[]")  # absent where each has a file of its own
    info: _Info | None = None


class _Reward(msgspec.Struct):
    reward: _Float | None = None
    reward_breakdown: dict[str, _Float | None] | None = None


class _Message(msgspec.Struct):
    role: str
    id: str | None = None
    tool_calls: list[ToolCall] | None = None
    requestor: str | None = None
    error: bool | None = None
    usage: ChatUsage | None = None
    raw_data: msgspec.Raw = msgspec.Raw(b"null")  # what the model's provider gave
    timestamp: datetime.datetime | None = None
    tool_messages: list[msgspec.Raw] | None = None


# tau2-bench's own metrics leave out the first (metrics/agent_metrics.py). Its other reasons are failures of the agent
# or the user, which it scores 0.
_FAILED = ("infrastructure_error", "unexpected_error")


class _Simulation(msgspec.Struct):
    id: str
    task_id: str | int
    messages: msgspec.Raw
    trial: int | None = None
    reward_info: _Reward | None = None
    termination_reason: str | None = None
    agent_cost: _Cost | None = None
    user_cost: _Cost | None = None


RECORDS = (_Results, _Simulation)

_OWN_FILE = {"id", "task_id", "start_time", "termination_reason"}
_FOLDER = "simulations"

_RESULTS = msgspec.json.Decoder(_Results)
_SIMULATION = msgspec.json.Decoder(_Simulation)
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether the content begins as results of tau2-bench, or as one simulation."""
    keys = set(opening(head).keys)
    is_results = {"simulations", "tasks"} <= keys or (keys >= {"info", "tasks"} and b'"user_info"' in head)
    return is_results or keys >= _OWN_FILE


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each simulation.

    Problem kinds: "unreadable", those of `graphs.reading.json_problems` (of the file, or of one simulation); of one
    simulation "bad-value", "unknown-tool-call", "ambiguous-id"; "empty-trace", a run without simulations;
    "missing-result", a simulation's file without the results above it.
    """
    files_of, results = dict[str, list[Source]](), list[Source]()  # the former by the folder of their results
    for source in sources:
        try:
            is_own = set(opening_of(source).keys) >= _OWN_FILE
        except TraceError as error:
            yield error.problem
            continue
        folder = real_folder(source.name)
        if is_own:
            above = os.path.dirname(folder) if os.path.basename(folder) == _FOLDER else folder
            files_of.setdefault(above, []).append(source)
        else:
            results.append(source)
        source.release()
    names, ids = short_names(results), WrittenIds()
    for source in results:
        try:
            yield from _records(source, files_of.pop(real_folder(source.name), []), names[source.name], ids)
        except TraceError as error:
            yield error.problem
        source.release()
    for source in (source for folder in files_of.values() for source in folder):
        expected = "results.json above its folder, which states the domain and the agent"
        yield Problem("missing-result", source.name, 0, "results.json", "absent", expected)


def _records(source: Source, simulations: list[Source], name: str, ids: WrittenIds) -> Iterator[TraceRecord | Problem]:
    """The records of a run: of the simulations in its results, and of those in files of their own."""
    results, elements = object_with_list(source, _RESULTS, "simulations")
    info, is_empty = results.info or _Info(), True
    inside = ((each, f"simulations[{index}]") for index, each in enumerate(elements))
    outside = ((Document(content(each), Place(each.name, 1, 0)), "") for each in simulations)
    for document, field in itertools.chain(inside, outside):
        is_empty = False
        if isinstance(document, Problem):
            yield document
            continue
        try:
            record = _record(info, *document, field, name, ids)
            record.sources = [] if field else [source.name]
            yield record
        except TraceError as error:
            yield error.problem
    for each in simulations:
        each.release()
    if is_empty:
        yield Problem("empty-trace", source.name, 1, "simulations", "[]", "at least one simulation")


def _record(info: _Info, raw: bytes, place: Place, record_field: str, file: str, ids: WrittenIds) -> TraceRecord:
    simulation = decode_record(_SIMULATION, raw, file=place.file, line=place.line, field=record_field)
    domain = info.environment_info.domain_name if info.environment_info else None
    agent = info.agent_info or _Agent()
    trial = simulation.id if simulation.trial is None else f"trial-{simulation.trial}"
    task = f"task-{simulation.task_id}"
    trace = f"{file}/{task}/{trial}"
    group = f"{domain}/{task}" if domain else task
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="tau2-bench")
    record.run = run_digest(domain, agent, str(simulation.task_id), simulation.trial, simulation.id)
    prefix = f"{record_field}." if record_field else ""
    ids.check(record, f"{prefix}task_id", simulation.task_id)
    record.model, record.system = agent.llm or "", agent.implementation or ""
    if simulation.termination_reason in _FAILED:
        record.error = simulation.termination_reason or ""
    record.ended_by(simulation.termination_reason)
    stated = {"money": simulation.agent_cost, "user_money": simulation.user_cost}
    record.costs = {name: money for name, money in stated.items() if money}  # 0 stands for an unknown price, too
    if simulation.reward_info is not None:
        parts = simulation.reward_info.reward_breakdown or {}
        record.rewards = {name: part for name, part in parts.items() if part is not None and name != "team"}
        if simulation.reward_info.reward is not None:
            record.rewards["team"] = simulation.reward_info.reward
    chat = Chat(record, role="user_simulator")
    dialogue, record_field = _Dialogue(chat, info.user_info or _Agent()), f"{prefix}messages"
    for index, (element, where) in enumerate(
        placed_elements(raw, simulation.messages, place, field=record_field, trace=trace)
    ):
        field = f"{record_field}[{index}]"
        message = decode(_MESSAGE, element, file=place.file, line=where.line, field=field, trace=trace)
        dialogue.add(str(index), message, where, field)
    return chat.finish()


class _Dialogue:
    """Turns messages into events; both sides may call tools."""

    def __init__(self, chat: Chat, user: _Agent) -> None:
        self.chat, self.user = chat, user
        self.begun = False  # whether there was a message before
        self.open_of_user: dict[str, list[tuple[int, str]]] = {}  # its tool calls without a result: position and tool

    def add(self, event_id: str, message: _Message, place: Place, field: str) -> None:
        """Append a message.

        Raises:
          TraceError: kinds "bad-value", "unknown-tool-call".
        """
        chat, time = self.chat, seconds(message.timestamp)
        calls = [(call.id, call.tool) for call in message.tool_calls or []]
        usage = message.usage or ChatUsage()
        if message.role == "assistant" and not self.begun and not calls and message.usage is None:
            self.begun = True  # a fixed greeting, equal in every simulation
            chat.team.fixed(chat.agent, event_id, place, time=time)
            return
        self.begun = True
        if message.role == "assistant":
            chat.reply(event_id, place, calls, time=time, stopped=stop_reason(message.raw_data), **usage.columns)
        elif message.role == "user":
            model = self.user.llm if message.usage is not None else None
            chat.input(event_id, place, time=time, model=model, **usage.columns)
            for number, (call_id, tool) in enumerate(calls):
                position = chat.team.tool_call(chat.user, f"{event_id}/call-{number}", place, tool=tool)
                self.open_of_user.setdefault(call_id or "", []).append((position, tool))
        elif message.role == "tool" and message.requestor == "user":
            self._answer_user(event_id, message, place, field)
        elif message.role == "tool" and message.tool_messages is None:
            status = "error" if message.error else None
            chat.result(event_id, place, message.id, f"{field}.id", time=time, status=status)
        elif message.role == "tool":
            trace = chat.record.trace_id
            for number, raw in enumerate(message.tool_messages or []):
                inner = decode(_MESSAGE, raw, file=place.file, line=place.line, field=field, trace=trace)
                self.add(f"{event_id}/{number}", inner, place, f"{field}.tool_messages[{number}]")
        elif message.role != "system":
            chat.refuse("bad-value", place, f"{field}.role", message.role, "assistant, user, tool or system")

    def _answer_user(self, event_id: str, message: _Message, place: Place, field: str) -> None:
        waiting = self.open_of_user.get(message.id or "")
        if not waiting:
            expected = "the id of a tool call of the user before it without a result"
            self.chat.refuse("unknown-tool-call", place, f"{field}.id", message.id, expected)
        position, tool = waiting.pop()
        status = "error" if message.error else None
        self.chat.team.result(self.chat.user, event_id, place, answers=position, tool=tool, status=status)
