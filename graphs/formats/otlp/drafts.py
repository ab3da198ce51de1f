"""Events of one trace before they have positions: what each span opens and closes.

A trace is read in one of two ways. By the conventions: events follow from what the spans are. *Stated*, where a span
bears the mark `version`: then there is an event exactly where a mark `event.id` or `end.id` is, and the marks say
whatever the conventions leave open. The writer states its traces; strip the marks, and the conventions still tell the
team.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NoReturn

from graphs.event_graph import EventType
from graphs.formats.otlp.dialects import Kind
from graphs.formats.otlp.marks import END, EVENT, PREFIX
from graphs.formats.otlp.spans import Marks, Note, Span
from graphs.formats.otlp.tree import Tree
from graphs.traces.record import Agent
from graphs.traces.schema import EVENT_EVIDENCE, TEXT_COLUMNS

__all__ = ["Draft", "conventional", "stated"]

CALL_TYPES = (EventType.ORCHESTRATOR_DECISION, EventType.MESSAGE, EventType.AGGREGATE, EventType.STOP)


@dataclasses.dataclass(slots=True)
class Draft:
    """An event to be: `nanoseconds` order it in a conventional trace, `index` in a stated one; `call`: a model call."""

    span: Span
    id: str
    type: EventType
    agent: str
    action: bool
    nanoseconds: int | None
    closing: bool = False
    call: bool = False
    index: int | None = None
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)
    marks: Marks = dataclasses.field(default_factory=dict)

    @property
    def time(self) -> float:
        """Seconds, as the double that is closest to the time stamp; NaN without one."""
        if "time" in self.marks:
            return float(self.marks["time"])
        return math.nan if self.nanoseconds is None else self.nanoseconds / 1_000_000_000


def conventional(tree: Tree) -> tuple[dict[str, Agent], list[Draft]]:
    """Agent instances and events, parents before children, as the conventions tell them.

    Raises:
      TraceError: kind "bad-mark", a mark `event.type` that no model call can have.
    """
    instances: dict[str, Agent] = {}
    drafts: list[Draft] = []
    agents = [span_id for span_id, kind in tree.kind.items() if kind is Kind.AGENT]
    top = [span_id for span_id in agents if not tree.owner[span_id]]
    spawners = {tree.owner[span_id] for span_id in agents}
    any_call = any(kind is Kind.CALL for kind in tree.kind.values())
    for span_id, span in tree.spans.items():
        kind, owner = tree.kind[span_id], tree.owner[span_id]
        if kind is Kind.OTHER:
            continue
        if kind is Kind.AGENT:
            role = span.marks.get("agent.role") or span.meaning.role
            instances[span_id] = Agent(name=span.meaning.name, role=role, parent=owner)
            if owner:
                drafts += _spawn_and_return(span, owner, action=not any_call)
            continue
        if not owner and kind is Kind.GUARD and len(top) == 1:
            owner = top[0]
        elif not owner:
            name = span.service or "agent"
            owner = f"service:{name}"
            instances.setdefault(owner, Agent(name=name))
        if kind is Kind.CALL:
            drafts.append(_call(tree, span, owner, spawns=owner in spawners))
        elif kind is Kind.TOOL:
            drafts += _tool_call_and_result(span, owner, action=not any_call)
        else:
            marks = _part(span.marks, EVENT)
            safety = Draft(span, span_id, EventType.SAFETY_EVENT, owner, False, span.start, marks=marks)
            safety.columns = _columns(marks, status="error" if span.failed else None)
            drafts.append(safety)
    return instances, drafts


def _spawn_and_return(span: Span, owner: str, *, action: bool) -> list[Draft]:
    begin, end = _part(span.marks, EVENT), _part(span.marks, END)
    status = "error" if span.failed else None
    return [
        Draft(
            span, f"{span.id}.spawn", EventType.SPAWN, owner, action, span.start,
            columns=_columns(begin, to=span.id), marks=begin,
        ),
        Draft(
            span, f"{span.id}.return", EventType.RETURN, span.id, False, span.end, closing=True,
            columns=_columns(end, to=owner, status=status), marks=end,
        ),
    ]  # fmt: skip


def _tool_call_and_result(span: Span, owner: str, *, action: bool) -> list[Draft]:
    begin, end = _part(span.marks, EVENT), _part(span.marks, END)
    tool, status = span.meaning.name, "error" if span.failed else None
    return [
        Draft(
            span, span.id, EventType.TOOL_CALL, owner, action, span.start,
            columns=_columns(begin, tool=tool), marks=begin,
        ),
        Draft(
            span, f"{span.id}.result", EventType.TOOL_RESULT, owner, False, span.end, closing=True,
            columns=_columns(end, tool=tool, status=status), marks=end,
        ),
    ]  # fmt: skip


def _call(tree: Tree, span: Span, owner: str, *, spawns: bool) -> Draft:
    marks = _part(span.marks, EVENT)
    decides = spawns or span.id in tree.planned
    event_type = marks.get("type", EventType.ORCHESTRATOR_DECISION if decides else EventType.MESSAGE)
    if event_type not in CALL_TYPES:
        expected = "a type that a model call can have: " + ", ".join(t.name.lower() for t in CALL_TYPES)
        _refuse(span, tree.trace, f"{EVENT}type", event_type.name.lower(), expected)
    columns = _columns(
        marks,
        tokens=span.meaning.tokens,
        input_tokens=span.meaning.input_tokens,
        status="error" if span.failed else None,
    )
    return Draft(span, span.id, event_type, owner, True, span.start, call=True, columns=columns, marks=marks)


def _part(marks: Marks, family: str) -> Marks:
    """The marks of one event, without their family's name."""
    if not marks:
        return {}
    return {name.removeprefix(family): value for name, value in marks.items() if name.startswith(family)}


def _columns(marks: Marks, **defaults: Any) -> dict[str, Any]:
    """Columns of the event: what the span says by itself, overruled by its marks; an empty string takes a text away."""
    columns = {**defaults, **{name: marks[name] for name in marks if name in _COLUMNS}} if marks else defaults
    if "" not in columns.values():
        return columns
    return {name: None if value == "" and name in TEXT_COLUMNS else value for name, value in columns.items()}


_COLUMNS = frozenset((*TEXT_COLUMNS, *EVENT_EVIDENCE, "trusted"))


def stated(tree: Tree) -> tuple[dict[str, Agent], list[Draft]]:
    """Agent instances and events of a trace that states them, in the stated order.

    Raises:
      TraceError: kind "bad-mark": something is stated in part, twice, or of an agent that is not there.
    """
    spans = tree.spans
    agents = [span_id for span_id, kind in tree.kind.items() if kind is Kind.AGENT]
    instance = {span_id: spans[span_id].marks.get("agent.id", span_id) for span_id in agents}
    instance[""] = ""
    agents.sort(key=lambda span_id: spans[span_id].marks.get("agent.index", 2**53))
    instances: dict[str, Agent] = {}
    for span_id in agents:
        span, name = spans[span_id], instance[span_id]
        if name in instances:
            _refuse(span, tree.trace, "agent.id", name, "an id that no other agent of the trace has")
        role = span.marks.get("agent.role", "")
        instances[name] = Agent(name=span.meaning.name, role=role, parent=instance[tree.owner[span_id]])
    drafts = [draft for span_id in spans for draft in _stated_events(tree, spans[span_id], instance)]
    drafts.sort(key=lambda draft: -1 if draft.index is None else draft.index)
    for position, draft in enumerate(drafts):
        if draft.index != position:
            _refuse(draft.span, tree.trace, "event.index", draft.index, f"{position}, the next of the trace's events")
        if draft.agent not in instances:
            _refuse(draft.span, tree.trace, "event.agent", draft.agent, "the id of an agent of this trace")
    spawners = {draft.agent for draft in drafts if draft.type is EventType.SPAWN}
    for draft in drafts:
        if draft.call and "type" not in draft.marks and draft.agent in spawners:
            draft.type = EventType.ORCHESTRATOR_DECISION
    return instances, drafts


def _stated_events(tree: Tree, span: Span, instance: dict[str, str]) -> list[Draft]:
    kind, owner = tree.kind[span.id], instance[tree.owner[span.id]]
    begin, end = _part(span.marks, EVENT), _part(span.marks, END)
    drafts: list[Draft] = []
    if "id" in begin:
        if kind is Kind.AGENT:
            draft = _stated(tree, span, begin, EventType.SPAWN, owner, span.start, to=instance[span.id])
        elif kind is Kind.TOOL:
            draft = _stated(tree, span, begin, EventType.TOOL_CALL, owner, span.start, tool=span.meaning.name)
        elif kind is Kind.CALL:
            tokens, read = span.meaning.tokens, span.meaning.input_tokens
            draft = _stated(tree, span, begin, EventType.MESSAGE, owner, span.start, tokens=tokens, input_tokens=read)
            draft.call, draft.action = True, begin.get("action", True)
        else:
            draft = _stated(tree, span, begin, None, owner, span.start)
        drafts.append(draft)
    if "id" in end:
        if kind is Kind.AGENT:
            draft = _stated(tree, span, end, EventType.RETURN, instance[span.id], span.end, to=owner)
        elif kind is Kind.TOOL:
            draft = _stated(tree, span, end, EventType.TOOL_RESULT, owner, span.end, tool=span.meaning.name)
        else:
            draft = _stated(tree, span, end, None, owner, span.end)
        draft.closing = True
        drafts.append(draft)
    return drafts + [
        _stated_note(tree, span, note, instance[span.id if kind is Kind.AGENT else tree.owner[span.id]])
        for note in span.notes
    ]


def _stated_note(tree: Tree, span: Span, note: Note, agent: str) -> Draft:
    marks = _part(note.marks, EVENT)
    if "id" not in marks:
        _refuse(span, tree.trace, "event.id", None, "a string: the id of the event that this span event is")
    return _stated(tree, span, marks, None, agent, note.time)


def _stated(
    tree: Tree, span: Span, marks: Marks, default: EventType | None, agent: str, time: int | None, **columns: Any
) -> Draft:
    event_type = marks.get("type", default)
    if event_type is None:
        _refuse(span, tree.trace, "event.type", None, "a type: this span has no type of its own")
    return Draft(
        span,
        marks["id"],
        event_type,
        marks.get("agent", agent),
        marks.get("action", False),
        time,
        index=marks.get("index"),
        columns=_columns(marks, **columns),
        marks=marks,
    )


def _refuse(span: Span, trace: str, mark: str, value: object, expected: str) -> NoReturn:
    raise span.refuse("bad-mark", PREFIX + mark, value, expected, trace)
