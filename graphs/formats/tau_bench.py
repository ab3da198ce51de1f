"""tau-bench result files: a JSON list of runs, each a chat between an assistant with tools and a simulated user.

    {task_id, trial, reward, info: {task, reward_info: {info: {r_actions | r_outputs}}}, traj: [chat messages]}

A run is a trace, "STEM/task-ID/trial-N"; its task is "task-ID". The format names no model: a file is one run of one
model and strategy, so the file's name stands for them (`system`), and runs of two files are no group by default. Where
two files give one task id two different instructions (another domain), the later file's task is "STEM/task-ID".

Events. Only the assistant acts, once a message: a `message` where it wrote text (or nothing at all), else its first
tool call. Its other tool calls are effects of that one decision. The user's messages and the tools' results are what
the environment did; the system prompt is no event. Tool call ids repeat within a run, so event ids are the positions of
messages. There are no times and no token counts.

`docs/formats/tau-bench.md` has the whole mapping.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_graph import EdgeType, EventType
from graphs.formats.common.chat import OpenCalls
from graphs.reading.decode import content, decode, decode_record
from graphs.reading.documents import Place, Places
from graphs.reading.files import Tasks, short_names
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.repeated_runs import RepeatedRuns, Run, content_of, digest_of
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import Agent, TraceRecord

__all__ = ["read", "sniff"]

_SNIFF = re.compile(rb'"traj"\s*:\s*\[')
_ROLES = ("system", "user", "assistant", "tool")
# How tau-bench's environment answers a call that raised or names no tool, and its tools arguments that do not fit.
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


class _Run(msgspec.Struct):
    task_id: int | str
    trial: int | str
    traj: msgspec.Raw
    reward: float | None = None
    info: _Info | None = None


class _Name(msgspec.Struct):
    """What names a run whose other fields are wrong."""

    task_id: int | str
    trial: int | str


class _Function(msgspec.Struct):
    name: str


class _ToolCall(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None


_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_RUN = msgspec.json.Decoder(_Run)
_NAME = msgspec.json.Decoder(_Name)
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a list of objects with a `traj` list."""
    start = head.lstrip()
    return start.startswith(b"[") and start[1:].lstrip().startswith(b"{") and _SNIFF.search(start) is not None


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each run; a run that is not as expected is a problem, and the others read.

    Problem kinds: "unreadable", "bad-json", "too-deep" (the whole file); "bad-type", "missing-field", "bad-value",
    "unknown-tool-call", "ambiguous-id" (one run). Of a run whose whole content several files have: "repeated-run".
    """
    tasks, names, copies = Tasks(), short_names(sources), _runs_of(sources)
    for source in sources:
        try:
            data = content(source)
            runs = decode(_LIST, data, file=source.name, line=0)
        except TraceError as error:
            yield error.problem
            continue
        if not runs:
            yield Problem("empty-trace", source.name, 1, "content", "[]", "at least one run")
        place = Places(data)
        for index, raw in enumerate(runs):
            line, offset = place.of(raw)
            try:
                yield _read_run(raw, index, data, Place(source.name, line, offset), names[source.name], tasks, copies)
            except TraceError as error:
                yield error.problem
        source.release()


def _runs_of(sources: list[Source]) -> RepeatedRuns:
    """The runs of several files by all that they state; `read` names what cannot be read.

    A run has no id of its own. Two trials of one task may have one conversation, but each states its own number.
    """
    runs = RepeatedRuns()
    for source in sources if len(sources) > 1 else ():
        try:
            raws = decode(_LIST, content(source), file=source.name, line=0)
        except TraceError:
            continue
        for raw in raws:
            with contextlib.suppress(TraceError):
                decode(_RUN, raw, file=source.name, line=0)
                runs.note(digest_of(content_of(raw)), Run(None, (len(raws),), source.name))
        source.release()
    return runs


def _named_run(raw: msgspec.Raw, index: int, at: Place, name: str) -> _Run:
    """A run; its problem names the trace, or the position where that is unknown, for a file may be one line."""
    try:
        return decode_record(_RUN, raw, file=at.file, line=at.line)
    except TraceError:
        field, trace = f"[{index}]", ""
        with contextlib.suppress(*JSON_ERRORS):
            named = _NAME.decode(raw)
            field, trace = "", f"{name}/task-{named.task_id}/trial-{named.trial}"
    return decode_record(_RUN, raw, file=at.file, line=at.line, at=field, trace=trace)  # fails again


def _read_run(
    raw: msgspec.Raw, index: int, data: bytes, at: Place, name: str, tasks: Tasks, copies: RepeatedRuns
) -> TraceRecord:
    source, line, offset = at
    run = _named_run(raw, index, at, name)
    task = f"task-{run.task_id}"
    trace = f"{name}/{task}/trial-{run.trial}"
    if copies:
        repeated = copies.problem(digest_of(content_of(raw)), Run(None, (), source), f"[{index}].traj", line, trace)
        if repeated is not None:
            raise TraceError(repeated)
    instruction = run.info.task.instruction if run.info and run.info.task else None
    stated = b"" if instruction is None else b"=" + instruction.encode()
    record = TraceRecord(
        trace_id=trace,
        group_id=tasks.group(task, stated, f"{name}/{task}"),
        file=source,
        line=line,
        offset=offset,
        format="tau-bench",
        system=name,
    )
    tasks.ids.check(record, "task_id", run.task_id)
    components = run.info.reward_info.info if run.info and run.info.reward_info else None
    for channel, amount in (
        ("team", run.reward),
        ("r_actions", components.r_actions if components else None),
        ("r_outputs", components.r_outputs if components else None),
    ):
        if amount is not None:
            record.rewards[channel] = amount
    # An equal list may stand in front of the run's own `traj`; its text is then the same, and so is the raw record.
    start = data.find(bytes(run.traj), offset)
    messages = decode(_LIST, run.traj, file=source, line=line, at="traj", trace=record.trace_id)
    place = Places(data, start, line + data.count(b"\n", offset, start))
    _Chat(record).add_all(messages, place)
    return record


class _Chat:
    """Turns chat messages into events and edges of one record."""

    def __init__(self, record: TraceRecord) -> None:
        self.record = record
        self.open = OpenCalls()
        self.causes: list[tuple[int, EdgeType]] = []  # what the next action of the assistant answers to
        self.action: int | None = None  # the assistant's latest action
        self.text: int | None = None  # its latest text that the user has not answered

    def add_all(self, messages: list[msgspec.Raw], place: Places) -> None:
        record = self.record
        for index, raw in enumerate(messages):
            line, offset = place.of(raw)
            at = f"traj[{index}]"
            message = decode(_MESSAGE, raw, file=record.file, line=line, at=at, trace=record.trace_id)
            if message.role == "assistant":
                self._assistant(index, message, line, offset)
            elif message.role == "user":
                self._user(index, line, offset)
            elif message.role == "tool":
                self._result(index, message, line, offset)
            elif message.role != "system":
                expected = "one of " + ", ".join(_ROLES)
                value_text = excerpt(message.role)
                raise TraceError(
                    Problem("bad-value", record.file, line, f"{at}.role", value_text, expected, record.trace_id)
                )

    def _agent(self, instance: str, role: str) -> str:
        self.record.instances.setdefault(instance, Agent(name=instance, role=role))
        return instance

    def _assistant(self, index: int, message: _Message, line: int, offset: int) -> None:
        record, agent = self.record, self._agent("assistant", "assistant")
        calls = message.tool_calls or []
        speaks = bool(message.content) or not calls
        action = record.event(
            str(index),
            EventType.MESSAGE if speaks else EventType.TOOL_CALL,
            agent,
            action=True,
            line=line,
            offset=offset,
            tool=None if speaks else calls[0].function.name,
        )
        for cause, edge_type in self.causes:
            record.edge(cause, action, edge_type)
        if self.action is not None:
            record.edge(self.action, action, EdgeType.TEMPORAL)
        self.causes, self.action = [], action
        if speaks:
            self.text = action
        for number, call in enumerate(calls):
            position = action
            if speaks or number > 0:
                position = record.event(
                    f"{index}/call-{number}",
                    EventType.TOOL_CALL,
                    agent,
                    action=False,
                    line=line,
                    offset=offset,
                    tool=call.function.name,
                )
                record.edge(action, position, EdgeType.TOOL_DEPENDENCY)
            self.open.add(call.id, position, call.function.name)

    def _user(self, index: int, line: int, offset: int) -> None:
        agent = self._agent("user", "user_simulator")
        position = self.record.event(str(index), EventType.MESSAGE, agent, action=False, line=line, offset=offset)
        if self.text is not None:
            self.record.edge(self.text, position, EdgeType.MESSAGE)
            self.text = None
        self.causes.append((position, EdgeType.MESSAGE))

    def _result(self, index: int, message: _Message, line: int, offset: int) -> None:
        record, wanted = self.record, message.tool_call_id
        answered = self.open.take(wanted)
        if answered is None:
            field, expected = f"traj[{index}].tool_call_id", "the id of a tool call before it that has no result yet"
            raise TraceError(
                Problem("unknown-tool-call", record.file, line, field, excerpt(wanted), expected, record.trace_id)
            )
        call, tool = answered
        agent = self._agent("assistant", "assistant")
        position = record.event(
            str(index),
            EventType.TOOL_RESULT,
            agent,
            action=False,
            line=line,
            offset=offset,
            tool=tool,
            status="error" if (message.content or "").startswith(_ERRORS) else None,
        )
        record.edge(call, position, EdgeType.RETURN)
        self.causes.append((position, EdgeType.CAUSAL))
