"""Results of tau2-bench: the simulations of a run, each a chat between an agent and a simulated user, both with tools.

    {info: {agent_info: {implementation, llm}, user_info, environment_info: {domain_name}}, tasks: [...],
     simulations: [{id, task_id, trial, reward_info: {reward, reward_breakdown}, messages: [
        {role, content, turn_idx, timestamp, usage, tool_calls: [{id, name, requestor}]}]}]}

A simulation is a trace. A message of the assistant is a model call, and an action; the greeting that every simulation
begins with is fixed, and none. The user's messages and tool calls are the environment's.
`docs/formats/tau2-bench.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat, ToolCall
from graphs.reading.decode import content, decode, decode_envelope, decode_record
from graphs.reading.documents import Place, Places
from graphs.reading.files import WrittenIds, short_names
from graphs.reading.keys import opening
from graphs.reading.repeated_runs import RepeatedRuns, Run, digest_of
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, TraceRecord

__all__ = ["read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
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
    simulations: list[msgspec.Raw]
    info: _Info | None = None


class _Reward(msgspec.Struct):
    reward: _Float | None = None
    reward_breakdown: dict[str, _Float | None] | None = None


class _Usage(msgspec.Struct):
    completion_tokens: _Count | None = None
    prompt_tokens: _Count | None = None


class _Message(msgspec.Struct):
    role: str
    id: str | None = None
    tool_calls: list[ToolCall] | None = None
    requestor: str | None = None
    error: bool | None = None
    usage: _Usage | None = None
    cost: float | None = None
    timestamp: datetime.datetime | None = None
    tool_messages: list[msgspec.Raw] | None = None


class _Simulation(msgspec.Struct):
    id: str
    task_id: str | int
    messages: msgspec.Raw
    trial: int | None = None
    reward_info: _Reward | None = None


_RESULTS = msgspec.json.Decoder(_Results)
_SIMULATION = msgspec.json.Decoder(_Simulation)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether the content begins as results of tau2-bench."""
    keys = set(opening(head).keys)
    return {"simulations", "tasks"} <= keys or (keys >= {"info", "tasks"} and b'"user_info"' in head)


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each simulation.

    Problem kinds: "unreadable" and those of `graphs.reading.json_problems` (the whole file, or one simulation);
    "bad-value", "unknown-tool-call", "ambiguous-id" (one simulation); "empty-trace" (a file without simulations). Of a
    simulation whose `id` several files have: "repeated-run", "disagreeing-rewards".
    """
    names, ids, runs = short_names(sources), WrittenIds(), _runs_of(sources)
    for source in sources:
        try:
            data = content(source)
            results = decode_envelope(_RESULTS, data, file=source.name, line=1)
        except TraceError as error:
            yield error.problem
            continue
        if not results.simulations:
            yield Problem("empty-trace", source.name, 1, "simulations", "[]", "at least one simulation")
        places = Places(data)
        for index, raw in enumerate(results.simulations):
            place = Place(source.name, *places.of(raw))
            try:
                yield _record(results, raw, place, f"simulations[{index}]", names[source.name], ids, runs)
            except TraceError as error:
                yield error.problem
        source.release()


def _runs_of(sources: list[Source]) -> RepeatedRuns:
    """The simulations of several files by their `id`, which a partial copy keeps; `read` names what cannot be read."""
    runs = RepeatedRuns()
    for source in sources if len(sources) > 1 else ():
        try:
            results = decode_envelope(_RESULTS, content(source), file=source.name, line=1)
        except TraceError:
            continue
        for raw in results.simulations:
            try:
                simulation = decode(_SIMULATION, raw, file=source.name, line=1)
                messages = len(decode(_LIST, simulation.messages, file=source.name, line=1))
            except TraceError:
                continue
            fullness = messages, len(results.simulations)
            runs.note(_key(simulation, results), Run(_outcome(simulation), fullness, source.name))
        source.release()
    return runs


def _key(simulation: _Simulation, results: _Results) -> bytes:
    """What tells a simulation among all files: its `id`, and what the run states of it."""
    info = results.info or _Info()
    domain, agent = info.environment_info or _Environment(), info.agent_info or _Agent()
    run = domain.domain_name, agent.llm, agent.implementation
    return digest_of(run, str(simulation.task_id), simulation.trial, simulation.id)


def _outcome(simulation: _Simulation) -> bytes | None:
    """A digest of the rewards; None without any."""
    reward = simulation.reward_info
    if reward is None or (reward.reward is None and not reward.reward_breakdown):
        return None
    return digest_of(reward.reward, sorted((reward.reward_breakdown or {}).items()))


def _record(
    results: _Results, raw: msgspec.Raw, place: Place, at: str, file: str, ids: WrittenIds, runs: RepeatedRuns
) -> TraceRecord:
    simulation = decode_record(_SIMULATION, raw, file=place.file, line=place.line, at=at)
    info = results.info or _Info()
    domain = info.environment_info.domain_name if info.environment_info else None
    trial = simulation.id if simulation.trial is None else f"trial-{simulation.trial}"
    task = f"task-{simulation.task_id}"
    group = f"{domain}/{task}" if domain else task
    trace = f"{file}/{task}/{trial}"
    own = Run(_outcome(simulation), (), place.file)
    repeated = runs.problem(_key(simulation, results), own, f"{at}.id", place.line, trace)
    if repeated is not None:
        raise TraceError(repeated)
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="tau2-bench")
    ids.check(record, f"{at}.task_id", simulation.task_id)
    agent = info.agent_info or _Agent()
    record.model, record.system = agent.llm or "", agent.implementation or ""
    reward = simulation.reward_info
    if reward is not None:
        parts = reward.reward_breakdown or {}
        record.rewards = {name: part for name, part in parts.items() if part is not None and name != "team"}
        if reward.reward is not None:
            record.rewards["team"] = reward.reward
    text = bytes(raw)
    start = max(text.find(bytes(simulation.messages)), 0)
    places = Places(text, start, place.line + text.count(b"\n", 0, start))
    chat = Chat(record, role="user_simulator")
    dialogue = _Dialogue(chat)
    where = {"file": place.file, "at": f"{at}.messages", "trace": trace}
    messages: list[msgspec.Raw] = decode(_LIST, simulation.messages, line=place.line, **where)
    for index, one in enumerate(messages):
        line, offset = places.of(one)
        spot, field = Place(place.file, line, place.offset + offset), f"{at}.messages[{index}]"
        message = decode(_MESSAGE, one, file=place.file, line=line, at=field, trace=trace)
        dialogue.add(str(index), message, spot, field)
    return chat.finish()


class _Dialogue:
    """Turns messages into events; both sides may call tools."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.begun = False  # whether anything but the greeting has been met
        self.users: dict[str, list[tuple[int, str]]] = {}  # open tool calls of the user by id: position and tool

    def add(self, event_id: str, message: _Message, place: Place, field: str) -> None:
        chat, time = self.chat, seconds(message.timestamp)
        calls = [(call.id, call.tool) for call in message.tool_calls or []]
        usage = message.usage or _Usage()
        if message.role == "assistant" and not self.begun and not calls and message.usage is None:
            self.begun = True  # a fixed greeting, equal in every simulation
            chat.team.fixed(chat.agent, event_id, place, time=time)
            return
        self.begun = True
        if message.role == "assistant":
            chat.reply(
                event_id, place, calls, time=time, tokens=usage.completion_tokens, input_tokens=usage.prompt_tokens
            )
        elif message.role == "user":
            chat.input(event_id, place, time=time)
            for number, (call_id, tool) in enumerate(calls):
                position = chat.team.tool_call(chat.user, f"{event_id}/call-{number}", place, tool=tool)
                self.users.setdefault(call_id or "", []).append((position, tool))
        elif message.role == "tool" and message.requestor == "user":
            self._answer_user(event_id, message, place, field)
        elif message.role == "tool" and message.tool_messages is None:
            status = "error" if message.error else None
            chat.result(event_id, place, message.id, f"{field}.id", time=time, status=status)
        elif message.role == "tool":
            for number, raw in enumerate(message.tool_messages or []):
                inner = decode(
                    _MESSAGE, raw, file=place.file, line=place.line, at=field, trace=chat.record.trace_id
                )  # fmt: skip
                self.add(f"{event_id}/{number}", inner, place, f"{field}.tool_messages[{number}]")
        elif message.role != "system":
            chat.refuse("bad-value", place, f"{field}.role", message.role, "assistant, user, tool or system")

    def _answer_user(self, event_id: str, message: _Message, place: Place, field: str) -> None:
        waiting = self.users.get(message.id or "")
        if not waiting:
            expected = "the id of a tool call of the user before it without a result"
            self.chat.refuse("unknown-tool-call", place, f"{field}.id", message.id, expected)
        position, tool = waiting.pop()
        status = "error" if message.error else None
        self.chat.team.result(self.chat.user, event_id, place, answers=position, tool=tool, status=status)
