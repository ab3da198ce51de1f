"""Tasks of a LangGraph run as events and edges."""

from __future__ import annotations

import bisect
import collections
import dataclasses
from collections.abc import Container, Mapping
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.formats.common.chat import OpenCalls
from graphs.formats.common.input_tokens import call_counts, usage_of
from graphs.formats.langgraph.input_edges import USER, Causes, EdgeBudget, InputEdges, StepCalls
from graphs.formats.langgraph.messages import CALL, HUMAN, RESULT, Message, Response, SubGraphMessages, messages_of
from graphs.reading.documents import Place
from graphs.reading.files import name_models
from graphs.text import excerpt
from graphs.traces.record import Agent, TraceRecord, is_cut

__all__ = ["SENT", "Graph", "Run", "Step", "Task", "missing_parent"]

_Id = Annotated[str, msgspec.Meta(min_length=1)]
SENT = "__pregel_push"
"""Mark of a task that `Send` started."""


class Task(msgspec.Struct):
    """A task that begins or ends: a run of a node."""

    id: _Id
    name: _Id
    input: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    triggers: list[str] = []
    interrupts: list[msgspec.Raw] = []
    error: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def has_ended(self) -> bool:
        """Whether this result is the last: an interrupted or failed task runs again when its graph goes on."""
        return not self.interrupts and bytes(self.error) == b"null"


Graph = tuple[tuple[str, ...], ...]
"""The graph of a task, by the (node, task) pairs around it: empty for the outermost graph."""


class Step(NamedTuple):
    """Where an event of the stream stands: super-step, graph, time and place."""

    number: int
    graph: Graph
    time: float
    place: Place


class _Begun(NamedTuple):
    """A task that has begun: its agent, how often its input has messages by key, and the events that caused it.

    Tasks of one checkpoint have one input, and share the last two. A super-step has ended before the next begins, so
    the calls of the one before are known when the task ends.
    """

    agent: str
    keys: collections.Counter[str]
    answers_to: Causes | StepCalls

    @property
    def causes(self) -> Causes:
        """The events."""
        return self.answers_to.causes if isinstance(self.answers_to, StepCalls) else self.answers_to


class Run:
    """A thread: turns its tasks into events and edges.

    Attributes:
      fault: the problem that refuses the thread.
      unfinished: the problem of a task whose step has ended and whose result is not in the log; it refuses nothing.
        Both state no trace: its id is known when the file has ended.
    """

    def __init__(self, name: str, thread: str | int, place: Place, budget: EdgeBudget) -> None:
        self.record = TraceRecord(name, name, place.file, place.line, max(place.offset, 0), format="langgraph")
        self.record.system = "langgraph"
        self.thread = thread
        self.fault: Problem | None = None
        self.unfinished: Problem | None = None
        self.edges = InputEdges(self.record, budget)
        self.calls = OpenCalls()
        self.begun: dict[str, _Begun] = {}  # by task
        self.open: dict[Graph, dict[str, Step]] = {}  # tasks without a result, in the order of their steps
        self.ended: set[str] = set()  # tasks that run no more: a graph that goes on names them again, without a result
        self.inside = collections.defaultdict[str, SubGraphMessages](SubGraphMessages)  # by task that is a sub-graph
        self.position: dict[str, int | None] = {}  # message id -> event; None for one that is no event
        self.last: dict[str, int] = {}  # agent -> its last call
        self.stopped: str | None = None  # why the reply to the last call ended
        self.results: dict[str, list[int]] = {}  # agent -> results of its tools since its last call
        self.step_calls: dict[Graph, dict[int, StepCalls]] = {}  # by step
        self.steps: dict[Graph, list[int]] = {}  # steps with calls, ascending
        self._input: tuple[msgspec.Raw, collections.Counter[str], Causes] | None = None  # of the last task

    def grow(self, size: int) -> None:
        """Note that the thread has so many bytes more."""
        self.edges.size += size

    def begin(self, step: Step, task: Task) -> None:
        """Note a task, and what it was given."""
        if not self.record.run:
            # A task's id is made of its checkpoint's, which is unique: only copies of a run have its thread and task.
            self.record.run = f"{self.thread}/{task.id}"
        is_sent = SENT in task.triggers
        path = [node for node, _ in step.graph]
        agent = "/".join([*path, f"{task.name}:{task.id}" if is_sent else task.name])
        self.record.instances.setdefault(agent, Agent(name="/".join([*path, task.name]), role=task.name))
        if self._input is None or self._input[0] is not task.input:
            self._input = (task.input, *self._read_input(step, task, is_sent))
        _, keys, causes = self._input
        answers_to: Causes | StepCalls = causes
        if not causes.events:
            steps = self.steps.get(step.graph, [])
            earlier = bisect.bisect_left(steps, step.number)
            answers_to = self.step_calls[step.graph][steps[earlier - 1]] if earlier else causes
        self.begun[task.id] = _Begun(agent, keys, answers_to)
        if task.id not in self.ended:
            self.open.setdefault(step.graph, {})[task.id] = step

    def _read_input(self, step: Step, task: Task, is_sent: bool) -> tuple[collections.Counter[str], Causes]:
        """How often the input of a task has messages by key, and the events that are among them."""
        keys, causes = collections.Counter[str](), list[int]()
        messages = messages_of(task.input, **self._where(step, "payload.input"))
        for number, (message, key) in enumerate(messages):
            keys[key] += 1
            if step.graph:
                self.inside[step.graph[-1][1]].add(message)
            if message.type in HUMAN and key not in self.position and not is_sent:
                self.record.instances.setdefault(USER, Agent(name=USER, role=USER))
                self.position[key] = self._event(f"{task.id}/input-{number}", EventType.MESSAGE, USER, step)
            position = self.position.get(key)
            if position is not None:
                causes.append(position)
        return keys, Causes(causes)

    def end(self, step: Step, task: Task) -> None:
        """Append the events of a task.

        Raises:
          TraceError: kinds "unknown-task", "unknown-tool-call", those of `graphs.reading.decode.decode`.
        """
        begun = self.begun.pop(task.id, None)
        if begun is None:
            self._refuse("unknown-task", step, "payload.id", task.id, "the id of a task that has begun")
        self.open.get(step.graph, {}).pop(task.id, None)
        if task.has_ended:
            self.ended.add(task.id)
        # A task inside without a result handed over to this graph (`Command.PARENT`): the result here has what it gave.
        self.open.pop((*step.graph, (task.name, task.id)), None)
        inside = self.inside.get(task.id)
        repeated = collections.Counter[str]()
        for index, (message, key) in enumerate(messages_of(task.result, **self._where(step, "payload.result"))):
            if step.graph:
                self.inside[step.graph[-1][1]].add(message)
            if repeated[key] < begun.keys[key]:  # a node may return the whole state
                repeated[key] += 1
            elif (message.id and key in self.position) or (inside is not None and inside.has(message)):
                continue
            else:
                position = self._add(f"{task.id}/{index}", message, begun, step)
                if message.id:
                    self.position[key] = position

    def settle(self, graph: Graph, number: int) -> None:
        """Note that the steps of a graph up to this one have ended: tasks of these have a result, or none is logged."""
        tasks = self.open.get(graph, {})
        while tasks and next(iter(tasks.values())).number <= number:
            task = next(iter(tasks))
            place = tasks.pop(task).place
            if self.unfinished is None:
                shown = excerpt(task)
                expected = "a task with a result: its step has ended, and the thread reads without what it did"
                self.unfinished = Problem("unfinished-task", place.file, place.line, "payload.id", shown, expected)

    def abandon(self, graph: Graph) -> None:
        """Note that a graph begins anew, with another input: tasks that were interrupted get no result."""
        self.open.pop(graph, None)

    def _add(self, event_id: str, message: Message, begun: _Begun, step: Step) -> int | None:
        if message.type in CALL:
            return self._call(event_id, message, begun, step)
        if message.type in RESULT:
            answered = self.calls.take(message.tool_call_id)
            if answered is None:
                expected = "the id of a tool call before it without a result"
                self._refuse("unknown-tool-call", step, "payload.result", message.tool_call_id, expected)
            call, tool = answered
            agent = self.record.agents[call]
            status = "error" if message.status == "error" else None
            position = self._event(event_id, EventType.TOOL_RESULT, agent, step, tool=tool, status=status)
            self.record.edge(call, position, EdgeType.RETURN)
            self.results.setdefault(agent, []).append(position)
            return position
        if message.type in HUMAN:  # a node wrote it, and no model
            return self._event(event_id, EventType.MESSAGE, begun.agent, step)
        return None

    def _call(self, event_id: str, message: Message, begun: _Begun, step: Step) -> int:
        record, agent = self.record, begun.agent
        response = message.response_metadata or Response()
        where = self._where(step, "response_metadata")
        of_provider = (usage_of(stated, **where) for stated in (response.token_usage, response.usage))
        counts, unlike = call_counts(message.usage_metadata, *of_provider)
        record.unlike_counts += [(unlike, step.place)] if unlike else []
        position = self._event(
            event_id,
            EventType.MESSAGE,
            agent,
            step,
            **counts,
            model=response.model_name or None,
            status=response.stopped if is_cut(response.stopped) else None,
        )
        record.actions[position], self.stopped = True, response.stopped
        self.edges.add_call(agent, position, begun.causes, self.results.pop(agent, ()))
        if agent in self.last:
            record.edge(self.last[agent], position, EdgeType.TEMPORAL)
        self.last[agent] = position
        calls = self.step_calls.setdefault(step.graph, {})
        if step.number not in calls:
            bisect.insort(self.steps.setdefault(step.graph, []), step.number)
        calls.setdefault(step.number, StepCalls()).add(agent, position)
        for number, asked in enumerate(message.tool_calls):
            effect = self._event(f"{event_id}/call-{number}", EventType.TOOL_CALL, agent, step, tool=asked.name)
            record.edge(position, effect, EdgeType.TOOL_DEPENDENCY)
            self.calls.add(asked.id, effect, asked.name, position)
        return position

    def finish(self) -> TraceRecord:
        """The record, with its models and all edges.

        Raises:
          TraceError: `fault`; kind "too-many", the messages that its calls were given are more edges than the limits
            allow.
        """
        if self.fault is not None:
            raise TraceError(self.of_trace(self.fault))
        self.edges.draw()
        self.record.ended_by(self.stopped)
        name_models(self.record)
        return self.record

    def of_trace(self, problem: Problem) -> Problem:
        """A problem, with the id of this trace."""
        return dataclasses.replace(problem, trace=self.record.trace_id)

    def _event(self, event_id: str, kind: EventType, agent: str, step: Step, **columns: Any) -> int:
        return self.record.event(
            event_id, kind, agent, action=False, time=step.time, line=step.place.line,
            offset=max(step.place.offset, 0), **columns,
        )  # fmt: skip

    def _where(self, step: Step, field: str) -> dict[str, Any]:
        return {"file": self.record.file, "line": step.place.line, "field": field, "trace": self.record.trace_id}

    def _refuse(self, kind: str, step: Step, field: str, value: object, expected: str) -> NoReturn:
        raise TraceError(
            Problem(kind, self.record.file, step.place.line, field, excerpt(value), expected, self.record.trace_id)
        )


def missing_parent(follows: Mapping[str, Place], checkpoints: Container[str]) -> Problem | None:
    """The problem of a thread with a checkpoint that follows one which is not in its file; None without such.

    Args:
      follows: the ids that checkpoints of the thread follow, with their places.
      checkpoints: the ids of those in the file.
    """
    for name, place in follows.items():
        if name not in checkpoints:
            expected = "a checkpoint of this file: without it the thread lacks what came before"
            return Problem("missing-parent", place.file, place.line, "parent_config", excerpt(name), expected)
    return None
