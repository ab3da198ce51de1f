"""A sample's events as spans: model calls, tools, agents, judges.

In newer logs an event's `span_id` names the span that contains it, and spans begin with a type such as "agent", "tool"
or "scorer". A tool's event stands in the tool's span but names the span around it. Older logs have steps, which nest by
position; events inside a tool or a subtask stand in its list `events`.
"""

from __future__ import annotations

import collections
import datetime
import math
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.input_tokens import known_sum, read_counts
from graphs.formats.common.money import stated_money
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.inspect_ai.outcomes import number
from graphs.reading.decode import decode
from graphs.reading.documents import Place, Places
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT

__all__ = ["Verdict", "spans_of"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


class _Event(msgspec.Struct):
    event: str
    timestamp: datetime.datetime | None = None
    completed: datetime.datetime | None = None
    span_id: str | None = None
    id: str | None = None
    parent_id: str | None = None
    type: str | None = None
    name: str | None = None
    action: str | None = None
    function: str | None = None
    failed: bool | None = None
    decision: str | None = None
    approver: str | None = None
    source: str | None = None
    intermediate: bool | None = None
    scorer: str | None = None
    model: str | None = None
    agent_span_id: str | None = None
    output: msgspec.Raw = msgspec.Raw()
    score: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw(b"null")
    events: msgspec.Raw = msgspec.Raw()


class _LogProb(msgspec.Struct):
    logprob: Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class _LogProbs(msgspec.Struct):
    content: list[_LogProb] | None = None


class _Choice(msgspec.Struct):
    logprobs: _LogProbs | None = None
    stop_reason: Any = None


class Usage(msgspec.Struct):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    total_tokens: _Count | None = None
    input_tokens_cache_read: _Count | None = None
    input_tokens_cache_write: _Count | None = None
    total_cost: Any = None

    @property
    def columns(self) -> dict[str, Any]:
        """The counts as evidence of the call. Whether those of a cache stand beside the others, the total tells."""
        cached, written = self.input_tokens_cache_read, self.input_tokens_cache_write
        whole = known_sum(self.input_tokens, self.output_tokens, cached, written)
        beside = None if self.total_tokens is None else self.total_tokens == whole
        return {"tokens": self.output_tokens} | read_counts(self.input_tokens, cached, written, beside=beside)


class _Output(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None


class _Score(msgspec.Struct):
    value: Any = None


_SPAN_KINDS = {"agent": Kind.AGENT, "scorer": Kind.GUARD, "scorers": Kind.GUARD}

_EVENT = msgspec.json.Decoder(_Event)
_OUTPUT = msgspec.json.Decoder(_Output)
_SCORE = msgspec.json.Decoder(_Score)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


class Verdict(NamedTuple):
    """An intermediate score: what the task's scorers say of the whole at this moment.

    `scorer` is "" in logs that do not name it; `after` is the latest call or tool, "" before the first.
    """

    scorer: str
    amount: float
    after: str


def spans_of(raw: msgspec.Raw, place: Place, trace: str) -> tuple[list[Span], list[Verdict]]:
    """The spans of a sample and its intermediate scores, in the order of its events.

    Args:
      raw: the list of events.
      place: where it begins.
      trace: the trace's id, for errors.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`, "missing-field".
    """
    reading = _Reading(place, trace)
    waiting = [reading.listed(raw, place, "", "events", "")]
    while waiting:
        following = next(waiting[-1], None)
        if following is None:
            waiting.pop()
            continue
        event, event_id, where, field, parent = following
        inside = reading.add(event, event_id, where, field, parent)
        if bytes(event.events) not in (b"", b"[]", b"null"):
            # They have the place of this event, which contains them.
            waiting.append(reading.listed(event.events, where, event_id + ".", f"{field}.events", inside, nested=True))
    return reading.spans, reading.verdicts


class _Reading:
    """The spans so far, and the open steps of older logs."""

    def __init__(self, place: Place, trace: str) -> None:
        self.file, self.trace = place.file, trace
        self.spans: list[Span] = []
        self.steps: list[str] = []  # open, the innermost last
        self.tools: dict[tuple[str, str], collections.deque[Span]] = {}  # (parent, name): tools' spans without an event
        self.begun: dict[str, Span] = {}
        self.handoffs: dict[str, str] = {}  # span of a hand-over -> the span around it, which the tool's event names
        self.repeatable: dict[str, list[Span]] = {}  # parent -> its calls and tools since its last branch
        self.latest = ""  # the latest model call or tool
        self.verdicts: list[Verdict] = []

    def listed(
        self, raw: msgspec.Raw, place: Place, prefix: str, list_field: str, parent: str, *, nested: bool = False
    ) -> Any:
        """(event, its id, place, field, the span around it) of each event of a list."""
        elements: list[msgspec.Raw] = decode(
            _LIST, raw, file=self.file, line=place.line, field=list_field, trace=self.trace
        )
        places = None if nested or place.offset < 0 else Places(bytes(raw), 0, place.line)
        for index, element in enumerate(elements):
            here = place
            if places is not None:
                line, offset = places.of(element)
                here = Place(place.file, line, place.offset + offset)
            field = f"{list_field}[{index}]"
            event = decode(_EVENT, element, field=field, file=self.file, line=here.line, trace=self.trace)
            yield event, f"{prefix}{index}", here, field, parent

    def add(self, event: _Event, event_id: str, place: Place, field: str, around: str) -> str:
        """Take in an event; the id of the span around the events of its own list."""
        parent = event.span_id or around or (self.steps[-1] if self.steps else "")
        span = Span(f"event:{event_id}", parent, Kind.OTHER, place, name=event.name or "", label=event_id)
        span.start = seconds(event.timestamp)
        kind = event.event
        if kind == "span_begin":
            span.id, span.label = self._needed(event.id, "id", field, place), ""
            span.parent = event.parent_id or ""
            self.begun[span.id] = span
            span.kind = _SPAN_KINDS.get(event.type or "", Kind.OTHER)
            if span.kind is Kind.AGENT and not span.name:
                self._needed(event.name, "name", field, place)
            if event.type == "handoff":
                self.handoffs[span.id] = span.parent
            elif event.type == "tool":
                around = self.handoffs.get(span.parent, span.parent)
                self.tools.setdefault((around, span.name), collections.deque()).append(span)
        elif kind == "span_end":
            begun = self.begun.get(event.id or "")
            if begun is not None and math.isnan(begun.end):  # that of a tool is stated at its event
                begun.end = span.start
            return parent
        elif kind == "step":
            if event.action == "end":
                if self.steps:
                    self.steps.pop()
                return parent
            self.steps.append(span.id)
            span.kind = Kind.GUARD if event.type == "scorer" else Kind.OTHER
        elif kind == "model":
            self._call(event, span, field)
        elif kind == "tool":
            return self._tool(event, span, event_id, field)
        elif _is_human(event):
            span.kind = Kind.HUMAN
        elif kind == "approval" and event.decision not in ("approve", None):
            span.kind, span.failed, span.name = Kind.GUARD, True, event.approver or ""
        elif kind == "branch":
            self._forget_replay(parent)
            return parent
        elif kind == "score" and event.intermediate:
            self._judge(event, place, field)
            return parent
        elif kind != "subtask":
            return parent
        self.spans.append(span)
        return span.id

    def _needed(self, value: str | None, field: str, event_field: str, place: Place) -> str:
        if not value:
            problem = Problem(
                "missing-field", self.file, place.line, f"{event_field}.{field}", "absent", "a string", self.trace
            )
            raise TraceError(problem)
        return value

    def _call(self, event: _Event, span: Span, field: str) -> None:
        """Make a span a model call, unless it has neither a choice nor an error: then it had not ended."""
        output, line, field = _Output(), span.place.line, f"{field}.output"
        if bytes(event.output) not in (b"", b"null"):
            output = decode(_OUTPUT, event.output, file=self.file, line=line, field=field, trace=self.trace)
        span.failed = not output.choices and bytes(event.error) not in (b"null", b'""')
        if not (output.choices or span.failed):
            return
        span.kind, span.model, span.end = Kind.CALL, event.model or "", seconds(event.completed)
        self.repeatable.setdefault(span.parent, []).append(span)
        if output.usage is not None:
            span.columns |= output.usage.columns
            span.money = stated_money(output.usage.total_cost)
        chosen = output.choices[0] if output.choices else _Choice()
        span.stopped, logprobs = chosen.stop_reason, chosen.logprobs
        if logprobs is not None and logprobs.content:
            span.columns["token_log_probs"] = [token.logprob for token in logprobs.content]
            span.columns["log_prob"] = math.fsum(span.columns["token_log_probs"])
        self.latest = span.id

    def _tool(self, event: _Event, span: Span, event_id: str, field: str) -> str:
        name = self._needed(event.function, "function", field, span.place)
        waiting = self.tools.get((span.parent, name))
        if waiting:  # the tool's own span was begun just before
            begun = waiting.popleft()
            begun.kind, begun.place = Kind.TOOL, span.place
        else:
            begun = span
            begun.kind = Kind.TOOL
            self.spans.append(begun)
        self.repeatable.setdefault(begun.parent, []).append(begun)
        begun.name, begun.label = name, event_id
        begun.start, begun.end = seconds(event.timestamp), seconds(event.completed)
        begun.failed = bool(event.failed) or bytes(event.error) != b"null"
        self.latest = begun.id
        return begun.id

    def _forget_replay(self, parent: str) -> None:
        """Drop what a branch did so far: it repeats the start of the trajectory that it branches from."""
        for span in self.repeatable.pop(parent, ()):
            span.kind = Kind.OTHER

    def _judge(self, event: _Event, place: Place, field: str) -> None:
        score = decode(_SCORE, event.score, file=self.file, line=place.line, field=f"{field}.score", trace=self.trace)
        amount = number(score.value)
        if amount is not None:
            self.verdicts.append(Verdict(event.scorer or "", amount, self.latest))


def _is_human(event: _Event) -> bool:
    if event.event == "approval":
        return event.approver == "human"
    return event.event == "input" or (event.event == "interrupt" and event.source == "user_cancel")
