"""One trace of OpenTelemetry: from its spans and evaluations to a `TraceRecord`.

A trace is read in one of two ways. By the conventions: events follow from what the spans are. *Stated*, where a span
bears the mark `version`: then there is an event exactly where a mark `event.id` or `end.id` is, and the marks say
whatever the conventions leave open. The writer states its traces. Without the marks, the conventions still tell the
team.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from graphs.errors import Problem
from graphs.event_types import EdgeType, EventType
from graphs.formats.common.graph_nodes import keep_agents
from graphs.formats.common.input_tokens import read_counts
from graphs.formats.common.order_of_time import in_any_files, placed_starts
from graphs.formats.common.span_tree import NO_ROOTS, Kind, Roots, Rules, Span, Tree
from graphs.formats.common.team import Team
from graphs.formats.common.team_writing import Written, write_events
from graphs.formats.otlp.evaluations import Evaluation, place_evaluations, state_outcome
from graphs.formats.otlp.marks import EDGE, END, EVENT, PREFIX, is_of_trace
from graphs.formats.otlp.spans import Marks, TracedSpan
from graphs.formats.otlp.wire import Attributes, is_text
from graphs.reading.files import model_names
from graphs.traces.record import Agent, TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE, SCHEMA_VERSION, TEXT_COLUMNS

__all__ = ["CALL_TYPES", "build", "unread"]

CALL_TYPES = (EventType.ORCHESTRATOR_DECISION, EventType.MESSAGE, EventType.AGGREGATE, EventType.STOP)
"""Types that a model call can have."""

_FIELDS = ("spanId", "parentSpanId")
_START = "startTimeUnixNano"
_COLUMNS = frozenset((*TEXT_COLUMNS, *EVENT_EVIDENCE, "trusted", "time"))  # marks that are columns of an event


def build(
    trace: str,
    spans: list[TracedSpan],
    evaluations: Sequence[Evaluation],
    format: str = "otlp",
    *,
    beside: Roots = NO_ROOTS,
    askers: frozenset[str] = frozenset(),
) -> TraceRecord:
    """The record of the trace with this id, read as `format`; without events where its spans are structure only.

    `beside` is what the traces of the log show of root spans, as of `Tree`, and `askers` as of `keep_agents`.

    Raises:
      TraceError: the trace is refused.
    """
    marks = _trace_marks(trace, spans)
    is_stated = "version" in marks
    if is_stated and marks["version"] != SCHEMA_VERSION:
        expected = f"{SCHEMA_VERSION!r}, the version that this library reads"
        raise spans[0].refuse("unknown-version", PREFIX + "version", marks["version"], expected, trace)
    place = spans[0].place
    record = TraceRecord(
        trace_id=marks.get("trace.id", trace),
        group_id=marks.get("group") or marks.get("trace.id", trace),
        file=place.file,
        line=place.line,
        offset=place.offset,
        format=format,
        topology=marks.get("topology", ""),
        system=marks.get("system") or _release(spans),
        model=marks.get("model", ""),
        task_kind=marks.get("task_kind", ""),
        error=marks.get("error", ""),
        evidence=_numbers(marks, "evidence."),
        costs=_numbers(marks, "costs."),
        metrics=_numbers(marks, "metrics."),
    )
    if is_stated:
        spans = in_any_files(spans, lambda _: True, trace, _START)
        written = _write_stated(record, Tree(trace, list(spans), _FIELDS, Rules.STATED))
        record.repeated = sum(span.again for span in written.tree.spans.values())
    else:
        _take_arguments(spans)
        for span in spans:
            _take_marks(span)
        if any(span.clock[0] < 0 for span in spans) and len({span.place.file for span in spans}) == 1:
            begun = placed_starts(spans, lambda span: span.clock[0] if span.clock[0] > 0 else None, trace, _START)
            for span in spans:
                span.clock = (int(begun[span.id] or -1), span.clock[1])
        keep_agents(sorted(spans, key=Span.instant), askers)
        known = {span.id for span in spans}
        roots = [span for span in spans if span.parent not in known]
        # A single root comes first without a time, too.
        spans = in_any_files(spans, lambda span: span.clock[0] > 0 or roots == [span], trace, _START)
        tree = Tree(trace, list(spans), _FIELDS, Rules.CLOCKS, beside=beside)
        written = write_events(record, tree, "agent")
        _check_types(written)
    traced = _traced(written.tree)
    if not is_stated:
        record.turns = _turns(written, traced)
    if marks.get("edges"):
        _state_edges(record, written.tree)
    all_evaluations = [*(evaluation for span in traced for evaluation in span.evaluations), *evaluations]
    if all_evaluations:
        place_evaluations(written, all_evaluations, {span.id: span.response_id for span in traced})
    files, of_scores = ({one.place.file for one in listed} for listed in (spans, evaluations))
    record.sources = sorted((files | of_scores) - {record.file})
    record.beside = dict.fromkeys(sorted(of_scores - files), True)
    return record


def unread(
    problem: Problem, spans: Sequence[TracedSpan], evaluations: Iterable[Evaluation], format: str, resource: Attributes
) -> TraceRecord:
    """The system and the outcome of a trace that is refused, as far as what was read of it tells.

    Args:
      problem: why it is.
      spans: those that could be read.
      evaluations: of the trace.
      format: what it was read as.
      resource: that of the span which could not be read; empty where all could.
    """
    record = TraceRecord(problem.trace, problem.trace, problem.file, problem.line, format=format)
    lost = resource.get("service.version")
    systems = {str(span.marks["system"]) for span in spans if span.marks.get("system")}
    systems = systems or ({_release(spans), str(lost) if is_text(lost) else ""} - {""})
    record.system = systems.pop() if len(systems) == 1 else ""
    roots = {"", *(span.id for span in spans if not span.parent)}
    for evaluation in (*(one for span in spans for one in span.evaluations), *evaluations):
        if evaluation.span in roots and not (evaluation.response_id or evaluation.event):
            state_outcome(record, evaluation)
    return record


def _traced(tree: Tree) -> list[TracedSpan]:
    """The spans in the order of the log."""
    return [span for span in map(tree.spans.__getitem__, tree.rank) if isinstance(span, TracedSpan)]


def _trace_marks(trace: str, spans: list[TracedSpan]) -> dict[str, Any]:
    """Marks that hold for the trace, on whichever of its spans, or their resources, they are."""
    found: dict[str, Any] = {}
    for span in spans:
        for name, value in span.marks.items():
            if is_of_trace(name) and value != "" and found.setdefault(name, value) != value:
                expected = f"{found[name]!r}, as on another span of the trace"
                raise span.refuse("ambiguous-mark", PREFIX + name, value, expected, trace)
    return found


def _release(spans: Sequence[TracedSpan]) -> str:
    """The version of the service that the team begins in, else that of the root span, else the one that all services
    have; "" without one.

    Other services of a run have versions of their own, and a run that was killed may lack their spans. Where a root is
    of no dialect, as a gateway's, the team begins in the first spans of one below it.
    """
    every = {span.release for span in spans if span.release}
    if len(every) < 2:
        return "".join(every)
    known = {span.id for span in spans}
    outer = [span for span in spans if span.parent not in known]
    roots = [span for span in outer if not span.parent or len(outer) == 1]  # one caller may be outside the log
    below: dict[str, list[TracedSpan]] = collections.defaultdict(list)
    for span in spans:
        below[span.parent].append(span)
    begins, waiting = set[str](), [*roots]
    while waiting:
        span = waiting.pop()
        if not span.known:
            waiting += below[span.id]
        elif span.kind not in (Kind.JUDGE, Kind.GUARD):
            begins.add(span.release)
    of_roots = {span.release for span in roots}
    return next((releases.pop() for releases in (begins - {""}, of_roots - {""}) if len(releases) == 1), "")


def _numbers(marks: dict[str, Any], family: str) -> dict[str, float]:
    return {name.removeprefix(family): value for name, value in marks.items() if name.startswith(family)}


def _state_edges(record: TraceRecord, tree: Tree) -> None:
    """Take the edges of a trace from the links of its spans."""
    position = {event_id: i for i, event_id in enumerate(record.ids)}
    edges: dict[int, tuple[int, int, EdgeType]] = {}
    for span in _traced(tree):
        for link in span.links:
            values: list[Any] = [link.get(EDGE + name) for name in ("index", "type", "from", "to")]
            index, edge_type, sender, receiver = values
            if None in values or sender not in position or receiver not in position or index in edges:
                expected = "an edge with an index of its own, a type, and two events of this trace"
                raise span.refuse("bad-mark", "links", values, expected, tree.trace)
            edges[index] = (position[sender], position[receiver], EdgeType(edge_type))
    record.senders, record.receivers, record.edge_types = [], [], []
    for index in sorted(edges):
        record.edge(*edges[index])


# By the conventions


def _take_arguments(spans: list[TracedSpan]) -> None:
    """Tell tool calls apart by the arguments with which model calls asked for them, where their own spans have none.

    An id that stands for several arguments, as one that counts anew in each answer, tells nothing, unless one model
    call beside the tool has it.
    """
    of: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for span in spans:
        for call_id, arguments in span.asked.items():
            of["", call_id].add(arguments)
            of[span.parent, call_id].add(arguments)
    for span in spans if of else ():
        if span.kind is Kind.TOOL and not span.asks:
            beside = of.get((span.parent, span.call_id)) or of.get(("", span.call_id), set())
            if len(beside) == 1:
                (span.columns["content_ref"],) = beside


def _take_marks(span: TracedSpan) -> None:
    """Add to the columns of a span's events what its status, its counts together and its marks say."""
    if span.kind is Kind.CALL:
        counts = span.columns
        counts |= read_counts(counts["input_tokens"], counts["cached_tokens"], counts["cache_write_tokens"])
    if span.failed and span.kind is Kind.GUARD:
        span.columns["status"] = "error"
    if span.marks:
        begin = _part(span.marks, EVENT)
        span.columns |= _columns(begin)
        if "type" in begin and span.kind is Kind.CALL:
            span.columns["event_type"] = begin["type"]
        span.end_columns |= _columns(_part(span.marks, END))
        span.role = span.marks.get("agent.role") or span.role


def _part(marks: Marks, family: str) -> Marks:
    """The marks of one event, without their family's name."""
    return {name.removeprefix(family): value for name, value in marks.items() if name.startswith(family)}


def _columns(marks: Marks, known: Marks | None = None) -> dict[str, Any]:
    """Columns of an event: what is known of it, overruled by its marks; an empty string takes a text away."""
    stated = (known or {}) | {name: value for name, value in marks.items() if name in _COLUMNS}
    return {name: None if value == "" and name in TEXT_COLUMNS else value for name, value in stated.items()}


def _check_types(written: Written) -> None:
    record, tree = written.team.record, written.tree
    for position, (span_id, _) in enumerate(written.events):
        if tree.kind[span_id] is Kind.CALL and record.types[position] not in CALL_TYPES:
            stated = EventType(record.types[position]).name.lower()
            expected = "a type that a model call can have: " + ", ".join(t.name.lower() for t in CALL_TYPES)
            _refuse(tree.spans[span_id], tree.trace, "event.type", stated, expected)


def _turns(written: Written, traced: list[TracedSpan]) -> list[int]:
    """The turns of all events; none where marks state none.

    Raises:
      TraceError: "bad-mark", some events have one.
    """
    spans = {span.id: span.marks for span in traced if span.marks}
    if not spans:
        return []
    turns = [spans.get(span, {}).get((END if closing else EVENT) + "turn") for span, closing in written.events]
    return _all_or_none(turns, [written.tree.spans[span] for span, _ in written.events], written.tree.trace)


def _all_or_none(turns: list[int | None], spans: list[Span], trace: str) -> list[int]:
    if all(turn is None for turn in turns):
        return []
    if None in turns:
        _refuse(spans[turns.index(None)], trace, "event.turn", None, "a turn on every event, or on none")
    return [turn for turn in turns if turn is not None]


def _refuse(span: Span, trace: str, mark: str, value: object, expected: str) -> NoReturn:
    raise span.refuse("bad-mark", PREFIX + mark, value, expected, trace)


# Stated


class _Stated(NamedTuple):
    """An event that marks of a span state. The marks go before what the span's kind, agent and times would give."""

    span: TracedSpan
    closing: bool
    type: EventType | None
    agent: str
    time: float
    columns: dict[str, Any]
    marks: Marks
    is_call: bool = False


def _write_stated(record: TraceRecord, tree: Tree) -> Written:
    """Fill a record with agent instances and events of a trace that states them, in the stated order.

    Raises:
      TraceError: kind "bad-mark": something is stated in part, twice, or of an agent that is not there.
    """
    spans = {span.id: span for span in _traced(tree)}
    agents = [span_id for span_id, kind in tree.kind.items() if kind is Kind.AGENT]
    instance = {span_id: spans[span_id].marks.get("agent.id", span_id) for span_id in agents} | {"": ""}
    agents.sort(key=lambda span_id: spans[span_id].marks.get("agent.index", 2**53))
    for span_id in agents:
        span, name = spans[span_id], instance[span_id]
        if name in record.instances:
            _refuse(span, tree.trace, "agent.id", name, "an id that no other agent of the trace has")
        role = span.marks.get("agent.role", "")
        record.instances[name] = Agent(name=span.name, role=role, parent=instance[tree.owner[span_id]])
    events = [event for span in spans.values() for event in _stated_events(tree, span, instance)]
    events.sort(key=lambda event: event.marks.get("index", -1))
    team = Team(record, "stated", sorts=True)
    calls = _Calls()
    opened: dict[str, int] = {}
    for position, (span, closing, event_type, agent, time, columns, marks, is_call) in enumerate(events):
        agent = marks.get("agent", agent)
        if marks.get("index") != position:
            _refuse(span, tree.trace, "event.index", marks.get("index"), f"{position}, the next of the trace's events")
        if agent not in record.instances:
            _refuse(span, tree.trace, "event.agent", agent, "the id of an agent of this trace")
        event_type = marks.get("type", event_type)
        if event_type is None and not is_call:
            _refuse(span, tree.trace, "event.type", None, "a type: this span has no type of its own")
        link = None
        if event_type in (EventType.SPAWN, EventType.TOOL_CALL) and not is_call:
            link = None if marks.get("action") else calls.of(span, agent, closing, event_type)
        elif event_type is EventType.TOOL_RESULT:
            link = opened.get(span.id)
        team.stated(
            agent, marks["id"], event_type, span.place, action=marks.get("action", is_call), is_call=is_call,
            link=link, **_columns(marks, {"time": time} | columns),
        )  # fmt: skip
        if is_call:
            calls.add(span, agent, position)
        elif event_type is EventType.TOOL_CALL:
            opened[span.id] = position
    record.turns = _all_or_none([e.marks.get("turn") for e in events], [e.span for e in events], tree.trace)
    team.finish()
    record.model = record.model or model_names(event.span.model for event in events if event.is_call)
    return Written(tree, team, [(event.span.id, event.closing) for event in events], opened)


class _Calls:
    """The model calls of a stated trace so far: the latest of each instance, and those that listed tool call ids."""

    def __init__(self) -> None:
        self.latest: dict[str, int] = {}
        self.asked: dict[tuple[str, str], int] = {}

    def add(self, span: Span, agent: str, position: int) -> None:
        self.latest[agent] = position
        self.asked |= dict.fromkeys(((agent, call_id) for call_id in span.emitted if call_id), position)

    def of(self, span: Span, agent: str, closing: bool, event_type: EventType) -> int | None:
        """The call that an effect came from."""
        call_id = span.call_id if event_type is EventType.TOOL_CALL and not closing else ""
        return self.asked.get((agent, call_id), self.latest.get(agent))


def _stated_events(tree: Tree, span: TracedSpan, instance: dict[str, str]) -> list[_Stated]:
    kind, owner = tree.kind[span.id], instance[tree.owner[span.id]]
    begin, end = _part(span.marks, EVENT), _part(span.marks, END)
    begins: tuple[EventType | None, dict[str, Any]] = (None, {})
    ends: tuple[EventType | None, str, dict[str, Any]] = (None, owner, {})
    if kind is Kind.AGENT:
        begins = EventType.SPAWN, {"to": instance[span.id]}
        ends = EventType.RETURN, instance[span.id], {"to": owner}
    elif kind is Kind.TOOL:
        begins = EventType.TOOL_CALL, {"tool": span.name}
        ends = EventType.TOOL_RESULT, owner, {"tool": span.name}
    elif kind is Kind.CALL:
        begins = None, {"seconds": span.seconds} | span.columns
    found: list[_Stated] = []
    if "id" in begin:
        event_type, columns = begins
        found.append(_Stated(span, False, event_type, owner, span.start, columns, begin, kind is Kind.CALL))
    if "id" in end:
        event_type, agent, columns = ends
        found.append(_Stated(span, True, event_type, agent, span.end, columns, end))
    for note in span.notes:
        marks = _part(note.marks, EVENT)
        if "id" not in marks:
            _refuse(span, tree.trace, "event.id", None, "a string: the id of the event that this span event is")
        agent = instance[span.id if kind is Kind.AGENT else tree.owner[span.id]]
        found.append(_Stated(span, False, None, agent, note.time, {}, marks))
    return found
