"""Logs of Inspect AI as tapes: each sample's model calls by agent and number, and whose call it is while a sample runs.

An agent is a span of type "agent"; what is in none belongs to "main". A call's id is the path of agents and the number
of the call there, as in "researcher/0" or "planner>coder.2/1" for the second coder that the planner started. In the
log, and in a plan made from it, the call is the position of its event.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from credit.replay.drivers.call_tape import Call, Tape, digest
from credit.replay.replayer import Prefix, PrefixError
from graphs.errors import CreditError
from graphs.reading.documents import stem
from graphs.text import excerpt

__all__ = ["MAIN", "Agent", "AgentSpans", "SampleTape", "asked", "read_sample_tape"]

MAIN = "main"
_JUDGES = ("scorer", "scorers")
_WIDTH = 200  # characters of an excerpt


@dataclasses.dataclass(frozen=True)
class Agent:
    """An instance of an agent: its path, its name, and whether it judges instead of acting."""

    path: str
    name: str
    judge: bool = False


class AgentSpans:
    """Which agent a span belongs to, by the events that begin spans."""

    def __init__(self) -> None:
        self._root = Agent("", MAIN)
        self._of: dict[str, Agent] = {}
        self._count: dict[str, int] = {}
        self._seen = 0

    def follow(self, events: Sequence[Any]) -> None:
        """Take in what was added to a list of events."""
        new = events[self._seen :]
        self._seen += len(new)
        for event in new:
            if event.event == "span_begin":
                self._of[event.id] = self._begun(event)

    def agent(self, span: str | None) -> Agent:
        """The agent that acts in a span."""
        return self._of.get(span or "", self._root)

    def _begun(self, event: Any) -> Agent:
        around = self.agent(event.parent_id)
        if event.type in _JUDGES:
            return dataclasses.replace(around, judge=True)
        if event.type != "agent":
            return around
        path = f"{around.path}>{event.name}" if around.path else event.name
        number = self._count[path] = self._count.get(path, 0) + 1
        return Agent(path if number == 1 else f"{path}.{number}", event.name, around.judge)


@dataclasses.dataclass(frozen=True)
class ToolAnswer:
    """The result of a tool, or its error; "" where there was none."""

    result: Any
    error: str


@dataclasses.dataclass(frozen=True)
class SampleTape:
    """A sample of a log.

    Attributes:
      sample: its id in the dataset.
      tape: its model calls.
      requests: what each call asked, as `asked` states it.
      places: ids of calls by the positions of their events.
      tools: answers of tools, by "tool:PATH/FUNCTION/NUMBER".
      header: the log without its samples.
    """

    sample: int | str
    tape: Tape
    requests: Mapping[str, list[dict[str, Any]]]
    places: Mapping[str, str]
    tools: Mapping[str, ToolAnswer]
    header: Any

    def prefix(self, prefix: Prefix) -> Prefix:
        """A prefix of events as one of calls.

        Raises:
          PrefixError: the decision is no model call of this sample.
        """
        decision = prefix.decision
        if decision is not None and decision not in self.places:
            raise PrefixError(f"event {decision!r} of {prefix.trace!r} is no model call of the log")
        places = tuple(self.places[event] for event in prefix.events if event in self.places)
        return dataclasses.replace(prefix, events=places, decision=None if decision is None else self.places[decision])

    def difference(self, call: str, request: list[dict[str, Any]]) -> str:
        """How a request differs from the recorded one, in words."""
        for number, (new, old) in enumerate(itertools.zip_longest(request, self.requests[call])):
            if new == old:
                continue
            if new is None or old is None:
                return f"it has {len(request)} messages; the log has {len(self.requests[call])}"
            if new.get("role") == old.get("role") == "tool":
                return f"tool {old['function']!r} answered {_said(new)}; the log has {_said(old)}"
            return f"message {number} is {_said(new)}; the log has {_said(old)}"
        return "its messages are the same"


def asked(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """The text of a request, without ids, costs and the model's name."""
    out = []
    for message in messages:
        content = message.content
        if not isinstance(content, str):
            content = [part.model_dump(mode="json", exclude_none=True, exclude={"internal"}) for part in content]
        plain: dict[str, Any] = {"role": message.role, "content": content}
        if getattr(message, "tool_calls", None):
            plain["tool_calls"] = [[call.function, call.arguments] for call in message.tool_calls]
        if message.role == "tool":
            plain["function"] = message.function
            plain["error"] = message.error.message if message.error else None
        out.append(plain)
    return json.loads(json.dumps(out, default=str))  # type: ignore[no-any-return]


def read_sample_tape(trace: str, logs: Iterable[str | Path]) -> SampleTape:
    """The sample that a trace was read from.

    Args:
      trace: "STEM/ID/EPOCH", as the reader names it.
      logs: where to look.

    Raises:
      CreditError: no log of this stem, or no such sample in it.
    """
    from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

    files = {stem(str(path), ".eval"): str(path) for path in logs}
    name = next((name for name in files if trace.startswith(f"{name}/")), None)
    if name is None:
        raise CreditError(f"trace is {trace!r}; expected STEM/ID/EPOCH of one of the logs {excerpt(sorted(files))}")
    path = files[name]
    number, _, epoch = trace[len(name) + 1 :].rpartition("/")
    summaries = [s for s in read_eval_log_sample_summaries(path) if str(s.id) == number and str(s.epoch) == epoch]
    if not summaries:
        raise CreditError(f"{path} has no sample {number!r} of epoch {epoch!r}, which trace {trace!r} names")
    header = read_eval_log(path, header_only=True)
    sample = read_eval_log_sample(path, summaries[0].id, summaries[0].epoch, resolve_attachments=True)
    spans, calls, count = AgentSpans(), list[Call](), dict[str, int]()
    requests, places, tools = dict[str, list[dict[str, Any]]](), dict[str, str](), dict[str, ToolAnswer]()
    spans.follow(sample.events)
    for position, event in enumerate(sample.events):
        agent = spans.agent(event.span_id)
        if agent.judge:
            continue
        if event.event == "model" and event.error is None and event.output.choices:
            name = _numbered(count, agent.path or MAIN)
            requests[name], places[str(position)] = asked(event.input), name
            calls.append(Call(name, agent.path or MAIN, digest(requests[name]), event.output.model_dump(mode="json")))
        elif event.event == "tool":
            name = _numbered(count, f"tool:{agent.path or MAIN}/{event.function}")
            tools[name] = ToolAnswer(event.result, event.error.message if event.error else "")
    tape = Tape(trace, f"{header.eval.task}/{number}", tuple(calls), 0.0)
    return SampleTape(sample.id, tape, requests, places, tools, header)


def _numbered(count: dict[str, int], key: str) -> str:
    number = count[key] = count.get(key, -1) + 1
    return f"{key}/{number}"


def _said(message: Mapping[str, Any]) -> str:
    content = message["content"]
    text = content if isinstance(content, str) else json.dumps(content)
    if message.get("error"):
        text = str(message["error"])
    if not text and "tool_calls" in message:
        text = json.dumps(message["tool_calls"])
    return excerpt(text[:_WIDTH])
