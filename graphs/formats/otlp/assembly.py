"""One trace: from its spans and evaluations to a `TraceRecord`."""

from __future__ import annotations

from typing import Any

from graphs.errors import Problem
from graphs.event_graph import EdgeType
from graphs.formats.otlp.drafts import Draft, conventional, stated
from graphs.formats.otlp.edges import Edge, derived_edges
from graphs.formats.otlp.evaluations import Evaluation
from graphs.formats.otlp.marks import EDGE, PREFIX
from graphs.formats.otlp.order import emitters, in_order
from graphs.formats.otlp.rewards import place_evaluations
from graphs.formats.otlp.spans import Span
from graphs.formats.otlp.tree import Tree
from graphs.reading.files import model_names
from graphs.text import excerpt
from graphs.traces.record import TraceRecord
from graphs.traces.schema import SCHEMA_VERSION

__all__ = ["build", "unplaced"]


def build(trace: str, spans: list[Span], evaluations: list[Evaluation], format: str = "otlp") -> TraceRecord:
    """The record of the trace with this id, read as `format`.

    Raises:
      TraceError: the trace is refused.
    """
    marks = _trace_marks(trace, spans)
    is_stated = "version" in marks
    if is_stated and marks["version"] != SCHEMA_VERSION:
        expected = f"{SCHEMA_VERSION!r}, the version that this library reads"
        raise spans[0].refuse("unknown-version", PREFIX + "version", marks["version"], expected, trace)
    tree = Tree(trace, spans, stated=is_stated)
    instances, drafts = (stated if is_stated else conventional)(tree)
    if not is_stated:
        drafts = in_order(tree, drafts)
    emitted_by = emitters(tree, drafts)
    edges = _stated_edges(trace, spans, drafts) if marks.get("edges") else derived_edges(drafts, emitted_by)
    all_evaluations = [*(e for span in spans for e in span.evaluations), *evaluations]
    rewards, steps = place_evaluations(tree, drafts, emitted_by, all_evaluations)

    place = spans[0].place
    record = TraceRecord(
        trace_id=marks.get("trace.id", trace),
        group_id=marks.get("group") or marks.get("trace.id", trace),
        file=place.file,
        line=place.line,
        offset=place.offset,
        format=format,
        instances=instances,
        rewards=rewards,
        topology=marks.get("topology", ""),
        system=marks.get("system", ""),
        model=marks.get("model") or model_names(draft.span.meaning.model for draft in drafts if draft.call),
        evidence=_numbers(marks, "evidence."),
        costs=_numbers(marks, "costs."),
        metrics=_numbers(marks, "metrics."),
    )
    _add_events(record, drafts, steps)
    record.turns = _turns(trace, drafts)
    if edges:
        record.senders, record.receivers, edge_types = map(list, zip(*edges, strict=True))
        record.edge_types = list(map(int, edge_types))
    return record


def _add_events(record: TraceRecord, drafts: list[Draft], steps: dict[int, float]) -> None:
    """Set the columns of the events; `steps` are rewards by position."""
    record.ids = [draft.id for draft in drafts]
    record.types = [int(draft.type) for draft in drafts]
    record.agents = [draft.agent for draft in drafts]
    record.actions = [draft.action for draft in drafts]
    record.times = [draft.time for draft in drafts]
    places = [draft.span.place for draft in drafts]
    record.lines = [place.line for place in places]
    record.offsets = [place.offset for place in places]
    if any(place.file != record.file for place in places):
        record.files = [place.file for place in places]
    for position, draft in enumerate(drafts):
        for name, value in draft.columns.items():
            if value is not None:
                column = record.columns.setdefault(name, [])
                column.extend([None] * (position - len(column)))
                column.append(value)
    for position, amount in sorted(steps.items()):
        column = record.columns.setdefault("event_reward", [])
        column.extend([None] * (position - len(column)))
        column.append(amount)


def _trace_marks(trace: str, spans: list[Span]) -> dict[str, Any]:
    """Marks that hold for the trace, on whichever of its spans they are; the group may be its resource's."""
    trace_marks: dict[str, Any] = {}
    for span in spans:
        if not span.marks and not span.group:
            continue
        given = {name: value for name, value in span.marks.items() if _of_trace(name)}
        if span.group:
            given["group"] = span.group
        for name, value in given.items():
            if trace_marks.setdefault(name, value) != value:
                expected = f"{trace_marks[name]!r}, as on another span of the trace"
                raise span.refuse("ambiguous-mark", PREFIX + name, value, expected, trace)
    return trace_marks


def _of_trace(name: str) -> bool:
    whole = ("version", "trace.id", "topology", "system", "model", "edges")
    return name in whole or name.startswith(("evidence.", "costs.", "metrics."))


def _numbers(marks: dict[str, Any], family: str) -> dict[str, float]:
    return {name.removeprefix(family): value for name, value in marks.items() if name.startswith(family)}


def _turns(trace: str, drafts: list[Draft]) -> list[int]:
    turns = [draft.marks["turn"] for draft in drafts if "turn" in draft.marks]
    if turns and len(turns) < len(drafts):
        draft = next(draft for draft in drafts if "turn" not in draft.marks)
        raise draft.span.refuse("bad-mark", PREFIX + "event.turn", None, "a turn on every event, or on none", trace)
    return turns


def _stated_edges(trace: str, spans: list[Span], drafts: list[Draft]) -> list[Edge]:
    position = {draft.id: i for i, draft in enumerate(drafts)}
    edges: dict[int, Edge] = {}
    for span in spans:
        for link in span.links:
            values: list[Any] = [link.marks.get(EDGE + name) for name in ("index", "type", "from", "to")]
            index, edge_type, sender, receiver = values
            if None in values or sender not in position or receiver not in position or index in edges:
                expected = "an edge with an index of its own, a type, and two events of this trace"
                raise span.refuse("bad-mark", "links", values, expected, trace)
            edges[index] = (position[sender], position[receiver], EdgeType(edge_type))
    return [edges[index] for index in sorted(edges)]


def unplaced(evaluation: Evaluation, trace: str) -> Problem:
    """The problem that an evaluation of a trace that is not in the log is."""
    file, line, _ = evaluation.place
    name, expected = excerpt(evaluation.name), "the evaluation of a trace whose spans are in the log"
    return Problem("orphan-evaluation", file, line, "traceId", name, expected, trace)
