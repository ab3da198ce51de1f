"""One trace as OTLP JSON: an `invoke_workflow` span, a span for each agent, model call and tool call, and evaluations.

Content without an OpenTelemetry convention is written as marks (attributes with the prefix `orchestration_credit.`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from typing import Any

from graphs.event_graph import EdgeType, EventType
from graphs.formats.otlp.evaluations import RESULT, STEP
from graphs.formats.otlp.marks import EDGE, END, EVENT, PREFIX
from graphs.formats.otlp.spans import NOTE
from graphs.formats.otlp.traces import CALL_TYPES
from graphs.traces.record import Agent
from graphs.traces.schema import EVENT_EVIDENCE, SCHEMA_VERSION, TEXT_COLUMNS

__all__ = ["Event", "TraceToWrite", "Written", "attribute", "hex_trace_id", "state_edges", "write_trace"]

Json = dict[str, Any]
USAGE = {
    "tokens": "gen_ai.usage.output_tokens",
    "input_tokens": "gen_ai.usage.input_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
}


@dataclasses.dataclass(slots=True)
class Event:
    """An event of `Traces`: `agent` is the id of the instance; `values` has text, evidence and `trusted`."""

    id: str
    type: EventType
    agent: str
    action: bool
    turn: int
    time: float
    values: dict[str, Any]

    @property
    def end(self) -> float:
        """When it ended, as far as that is stated."""
        took: float = self.values.get("seconds", 0.0)
        return self.time + took


@dataclasses.dataclass(slots=True)
class TraceToWrite:
    """A trace of `Traces`; edges are (sender, receiver, type) by position in `events`."""

    id: str
    group: str
    topology: str
    system: str
    task_kind: str
    model: str
    instances: dict[str, Agent]
    events: list[Event]
    edges: list[tuple[int, int, EdgeType]]
    rewards: dict[str, float]
    numbers: dict[str, float]  # "evidence.NAME", "costs.NAME", "metrics.NAME"


@dataclasses.dataclass(slots=True)
class Written:
    """The spans and log records of a trace, and the span that carries each event, by position."""

    spans: list[Json]
    logs: list[Json]
    carriers: list[Json]


def hex_trace_id(trace_id: str) -> str:
    """The OTLP trace id: the id of the trace if it has that form, otherwise the start of its SHA-256."""
    if re.fullmatch("[0-9a-f]{32}", trace_id) and trace_id.strip("0"):
        return trace_id
    return hashlib.sha256(trace_id.encode()).hexdigest()[:32]


def attribute(key: str, value: str | bool | int | float) -> Json:
    """An attribute in OTLP JSON, which represents 64-bit integers as decimal strings."""
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": key, "value": {"doubleValue": value}}
    return {"key": key, "value": {"stringValue": value}}


def write_trace(trace: TraceToWrite) -> Written:
    """The spans and log records of one trace, without its edges."""
    return _Writer(trace).write()


def state_edges(written: Written, trace: TraceToWrite) -> None:
    """Add every edge as a link of its receiver's span, and mark the first span accordingly."""
    written.spans[0]["attributes"].append(attribute(PREFIX + "edges", "stated"))
    for index, (sender, receiver, edge_type) in enumerate(trace.edges):
        carrier, cause = written.carriers[receiver], written.carriers[sender]
        marks: dict[str, Any] = {
            "index": index,
            "type": edge_type.name.lower(),
            "from": trace.events[sender].id,
            "to": trace.events[receiver].id,
        }
        link = {"traceId": cause["traceId"], "spanId": cause["spanId"]}
        link["attributes"] = [attribute(PREFIX + EDGE + name, value) for name, value in marks.items()]
        carrier.setdefault("links", []).append(link)


class _Writer:
    def __init__(self, trace: TraceToWrite) -> None:
        self.trace = trace
        self.trace_id = hex_trace_id(trace.id)
        self.spans: list[Json] = []
        self.carriers: list[Json] = [{}] * len(trace.events)
        self.carried = [False] * len(trace.events)
        self.results = self._tool_results()
        self.spawners = {event.agent for event in trace.events if event.type is EventType.SPAWN}

    def write(self) -> Written:
        times = [time for event in self.trace.events for time in (event.time, event.end)]
        root = self._span("invoke_workflow", None, times, {"gen_ai.operation.name": "invoke_workflow"})
        self._marks(root, self._trace_marks())
        agents = self._agents(root)
        asked = self._asked()
        for position, event in enumerate(self.trace.events):
            if self.carried[position]:
                continue
            parent = agents[event.agent]
            if event.action and event.type in CALL_TYPES:
                self._call(position, parent, asked.get(position, []))
            elif event.type is EventType.TOOL_CALL:
                self._tool(position, parent)
            else:
                self._note(position, parent)
        return Written(self.spans, self._evaluations(root), self.carriers)

    def _span(self, name: str, parent: Json | None, times: list[float], attributes: Json, kind: int = 1) -> Json:
        """A new span from the first to the last of `times`; 0 means unknown in the protocol."""
        number = f"{self.trace.id}\0{len(self.spans)}"
        known = [time for time in (_nanoseconds(time) for time in times) if time]
        span = {
            "traceId": self.trace_id,
            "spanId": hashlib.sha256(number.encode()).hexdigest()[:16],
            "parentSpanId": parent["spanId"] if parent else "",
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(known[0] if known else 0),
            "endTimeUnixNano": str(known[-1] if known else 0),
            "attributes": [attribute(key, value) for key, value in attributes.items()],
        }
        self.spans.append(span)
        return span

    def _marks(self, carrier: Json, marks: dict[str, Any]) -> None:
        carrier["attributes"] += [attribute(PREFIX + name, value) for name, value in marks.items()]

    def _trace_marks(self) -> dict[str, Any]:
        trace = self.trace
        marks: dict[str, Any] = {"version": SCHEMA_VERSION}
        if trace.id != self.trace_id:
            marks["trace.id"] = trace.id
        if trace.group != trace.id:
            marks["group"] = trace.group
        stated = {name: getattr(trace, name) for name in ("topology", "system", "task_kind", "model")}
        marks |= {name: text for name, text in stated.items() if text}
        return marks | trace.numbers

    def _agents(self, root: Json) -> dict[str, Json]:
        """A span for each agent instance within its parent's span. The spawn and the return are its two ends."""
        trace = self.trace
        index = {agent_id: i for i, agent_id in enumerate(trace.instances)}
        times: dict[str, list[float]] = {agent_id: [] for agent_id in trace.instances}
        spawn: dict[str, int] = {}
        back: dict[str, int] = {}
        for position, event in enumerate(trace.events):
            times[event.agent] += [event.time, event.end]
            target = event.values.get("to")
            if event.type is EventType.SPAWN and target in index:
                spawn.setdefault(target, position)
            if event.type is EventType.RETURN:
                back[event.agent] = position
        span_of: dict[str, Json] = {"": root}
        for agent_id in _parents_first(trace.instances):
            agent = trace.instances[agent_id]
            attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent.name}
            span = self._span(f"invoke_agent {agent.name}", span_of[agent.parent], times[agent_id], attributes)
            span_of[agent_id] = span
            marks: dict[str, Any] = {"agent.id": agent_id, "agent.index": index[agent_id]}
            if agent.role != agent.name:
                marks["agent.role"] = agent.role
            self._marks(span, marks)
            if agent_id in spawn:
                self._open(span, spawn[agent_id], EventType.SPAWN, agent.parent, to=agent_id)
            if agent_id in back:
                self._close(span, back[agent_id], EventType.RETURN, agent_id, to=agent.parent)
        return span_of

    def _tool_results(self) -> dict[int, int]:
        """The position of the result of each tool call, by the position of the call."""
        events, taken, results = self.trace.events, set(), {}
        for sender, receiver, edge_type in self.trace.edges:
            call, result = events[sender], events[receiver]
            answers = call.type is EventType.TOOL_CALL and result.type is EventType.TOOL_RESULT
            fits = edge_type is EdgeType.RETURN and answers and call.agent == result.agent
            if fits and sender not in results and receiver not in taken:
                results[sender] = receiver
                taken.add(receiver)
        return results

    def _asked(self) -> dict[int, list[int]]:
        """The positions of the tool calls that each action emitted, by the position of the action."""
        asked: dict[int, list[int]] = {}
        for sender, receiver, edge_type in self.trace.edges:
            if edge_type is EdgeType.TOOL_DEPENDENCY and self.trace.events[receiver].type is EventType.TOOL_CALL:
                asked.setdefault(sender, []).append(receiver)
        return asked

    def _call(self, position: int, parent: Json, asked: list[int]) -> None:
        event = self.trace.events[position]
        attributes: Json = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "unknown"}
        attributes |= {key: event.values[name] for name, key in USAGE.items() if name in event.values}
        if asked:
            parts = [{"type": "tool_call", "id": self.trace.events[i].id, "name": self._tool_name(i)} for i in asked]
            message = {"role": "assistant", "parts": parts, "finish_reason": "tool_call"}
            attributes["gen_ai.output.messages"] = json.dumps([message])
        span = self._span("chat", parent, [event.time, event.end], attributes, kind=3)
        begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        read = {name: event.values.get(name) for name in USAGE}
        read["seconds"] = (end - begin) / 1e9 if end > begin else None
        default = EventType.ORCHESTRATOR_DECISION if event.agent in self.spawners else EventType.MESSAGE
        self._open(span, position, default, event.agent, action=True, **read)
        if event.values.get("status") == "error":
            span["status"] = {"code": 2}

    def _tool(self, position: int, parent: Json) -> None:
        event, result = self.trace.events[position], self.results.get(position)
        times = [event.time] if result is None else [event.time, self.trace.events[result].time]
        name = self._tool_name(position)
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": event.id,
        }
        span = self._span(f"execute_tool {name}", parent, times, attributes)
        self._open(span, position, EventType.TOOL_CALL, event.agent, tool=name)
        if result is not None:
            self._close(span, result, EventType.TOOL_RESULT, event.agent, tool=name)
            if self.trace.events[result].values.get("status") == "error":
                span["status"] = {"code": 2}

    def _tool_name(self, position: int) -> str:
        return self.trace.events[position].values.get("tool") or "tool"

    def _note(self, position: int, agent: Json) -> None:
        """Write an event that no span stands for as a note: what OpenTelemetry calls an event of a span."""
        event = self.trace.events[position]
        note: Json = {"name": NOTE, "timeUnixNano": str(_nanoseconds(event.time) or 0), "attributes": []}
        agent.setdefault("events", []).append(note)
        marks = self._event_marks(position, note["timeUnixNano"], event.type, event.agent, False, {})
        self._marks(note, {EVENT + name: value for name, value in ({"type": event.type.name.lower()} | marks).items()})
        self._carry(position, agent)

    def _open(
        self, span: Json, position: int, default: EventType, agent: str, *, action: bool = False, **columns: Any
    ) -> None:
        """Let the start of a span stand for an event."""
        span["startTimeUnixNano"] = str(_nanoseconds(self.trace.events[position].time) or 0)
        marks = self._event_marks(position, span["startTimeUnixNano"], default, agent, action, columns)
        self._marks(span, {EVENT + name: value for name, value in marks.items()})
        self._carry(position, span)

    def _close(self, span: Json, position: int, default: EventType, agent: str, **columns: Any) -> None:
        """Let the end of a span stand for an event."""
        span["endTimeUnixNano"] = str(_nanoseconds(self.trace.events[position].time) or 0)
        marks = self._event_marks(position, span["endTimeUnixNano"], default, agent, False, columns)
        self._marks(span, {END + name: value for name, value in marks.items()})
        self._carry(position, span)

    def _carry(self, position: int, span: Json) -> None:
        self.carriers[position], self.carried[position] = span, True

    def _event_marks(
        self, position: int, written_time: str, default: EventType, agent: str, action: bool, columns: dict[str, Any]
    ) -> dict[str, Any]:
        """What the reader cannot infer of an event.

        Args:
          position: of the event.
          written_time: the nanoseconds that stand in the span.
          default, agent, action, columns: the type, agent, kind and columns that the reader infers from the span.
        """
        event = self.trace.events[position]
        marks: dict[str, Any] = {"id": event.id, "index": position, "turn": event.turn}
        if event.type is not default:
            marks["type"] = event.type.name.lower()
        if event.agent != agent:
            marks["agent"] = event.agent
        if event.action != action:
            marks["action"] = event.action
        read = int(written_time) / 1_000_000_000 if int(written_time) else math.nan
        if event.time != read and not math.isnan(event.time):
            marks["time"] = event.time
        for name in (*TEXT_COLUMNS, *EVENT_EVIDENCE, "trusted"):
            value = event.values.get(name)
            if name != STEP and value != (columns.get(name) or None if name in TEXT_COLUMNS else columns.get(name)):
                marks[name] = "" if value is None else value
        return marks

    def _evaluations(self, root: Json) -> list[Json]:
        logs = []
        for channel, score in self.trace.rewards.items():
            marks = {PREFIX + "channel": channel} if channel == "reward" else {}
            logs.append(self._evaluation(root, channel, score, marks))
        for position, event in enumerate(self.trace.events):
            if STEP in event.values:
                carrier = self.carriers[position]
                known = event.action and event.type in CALL_TYPES
                marks = {} if known else {PREFIX + EVENT + "id": event.id}
                logs.append(self._evaluation(carrier, STEP, event.values[STEP], marks))
        return logs

    def _evaluation(self, span: Json, name: str, score: float, marks: dict[str, str]) -> Json:
        attributes: Json = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": score} | marks
        return {
            "timeUnixNano": span["endTimeUnixNano"],
            "eventName": RESULT,
            "traceId": self.trace_id,
            "spanId": span["spanId"],
            "attributes": [attribute(key, value) for key, value in attributes.items()],
        }


def _parents_first(instances: dict[str, Agent]) -> list[str]:
    children: dict[str, list[str]] = {}
    for agent_id, agent in instances.items():
        children.setdefault(agent.parent, []).append(agent_id)
    order: list[str] = []
    waiting = list(reversed(children.get("", [])))
    while waiting:
        current = waiting.pop()
        order.append(current)
        waiting.extend(reversed(children.get(current, [])))
    return order


def _nanoseconds(seconds: float) -> int | None:
    """The time stamp closest to a time in seconds; None if the time is absent or outside the protocol's range."""
    if not 0 <= seconds < 2**64 / 10**9:
        return None
    whole = int(seconds)
    return whole * 10**9 + round((seconds - whole) * 1e9)
