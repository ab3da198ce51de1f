"""All spans and evaluations of some files, brought together by trace, and the records that they make."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from graphs.errors import Problem, TraceError
from graphs.formats.common.graph_nodes import asking_nodes
from graphs.formats.common.span_tree import Kind, Rules, roots_of
from graphs.formats.common.stated_counts import missing_parts
from graphs.formats.common.team_writing import structure_alone
from graphs.formats.common.trace_metadata import words_of
from graphs.formats.otlp.evaluations import Evaluation
from graphs.formats.otlp.spans import TracedSpan
from graphs.formats.otlp.traces import build, unread
from graphs.formats.otlp.wire import Attributes
from graphs.reading.documents import Place
from graphs.text import counted, excerpt
from graphs.traces.record import TraceRecord

__all__ = ["Gathering", "Stated"]

T = TypeVar("T")


class Stated(NamedTuple):
    """How many spans of a trace the log states, in which field, and where."""

    spans: int
    field: str
    place: Place


class Gathering:
    """Spans and evaluations by trace, as they come in.

    Args:
      format: what the records say they were read as.
      attach_orphans: whether pieces of a trace in the air are attached, where their agents are clear (`_attach`).
    """

    def __init__(self, format: str, attach_orphans: bool = False) -> None:
        self.format, self.attach_orphans = format, attach_orphans
        self.spans: dict[str, list[TracedSpan]] = {}
        self.evaluations: dict[str, list[Evaluation]] = {}
        self.resources: dict[str, Attributes] = {}  # of root spans, by trace
        self.loose: list[Evaluation] = []  # of a response, without a trace id
        self.stated: dict[str, Stated] = {}  # by trace
        self.refused: dict[str, tuple[Problem, Attributes]] = {}  # by trace, with the resource of what is refused

    def take(
        self, add: Callable[[Gathering, T], None], item: T, resource: Attributes | None = None
    ) -> Iterator[Problem]:
        """Let `add` take a record in; its problem, if it is the first of its trace or names none."""
        try:
            add(self, item)
        except TraceError as error:
            if error.problem.trace not in self.refused:
                yield error.problem
            if error.problem.trace:
                self.refused.setdefault(error.problem.trace, (error.problem, resource or {}))

    def add_span(self, trace: str, span: TracedSpan) -> None:
        self.spans.setdefault(trace, []).append(span)

    def add_evaluation(self, trace: str, evaluation: Evaluation | None) -> None:
        if evaluation is not None:
            (self.evaluations.setdefault(trace, []) if trace else self.loose).append(evaluation)

    def results(self) -> Iterator[TraceRecord | Problem]:
        """Records and problems, trace by trace; each is forgotten once it has been handed out."""
        yield from self._place_loose()
        unknown, without_events = Counter[str](), dict[str, list[TraceRecord]]()  # by file, traces
        beside, askers = roots_of(self.spans.values(), Rules.CLOCKS), asking_nodes(self.spans.values())
        for trace in dict.fromkeys((*self.spans, *self.refused)):
            spans, evaluations = self.spans.pop(trace, []), self.evaluations.pop(trace, [])
            if trace in self.refused:
                yield self._unread(*self.refused[trace], spans, evaluations)
                continue
            if not any(span.known for span in spans):
                unknown[spans[0].place.file] += 1
                continue
            attached = _attach(spans) if self.attach_orphans else []
            try:
                record = build(trace, spans, evaluations, self.format, beside=beside, askers=askers)
            except TraceError as error:
                yield error.problem
                yield self._unread(error.problem, {}, spans, evaluations)
                continue
            record.metadata = words_of(self.resources.pop(trace, {}))
            if record.ids:
                yield record
                if attached:
                    yield _attached(attached, trace)
                if (of := self.stated.get(trace)) is not None:
                    yield from missing_parts(of.spans, len(spans), "span", of.field, of.place, trace)
            else:
                without_events.setdefault(record.file, []).append(record)
        for file, count in unknown.items():
            expected = "spans with gen_ai.operation.name or openinference.span.kind"
            yield Problem("no-agent-spans", file, 0, "attributes", f"those of {count} other traces", expected)
        for file, empty in without_events.items():
            expected = f"a trace with a model call, a tool or an agent started by another{structure_alone(empty)}"
            yield Problem("no-events", file, 0, "spans", counted(len(empty), "trace") + " of structure only", expected)
            yield from (record.without_events() for record in empty)
        yield from (_orphan(evaluations[0], trace) for trace, evaluations in self.evaluations.items())

    def _unread(
        self, problem: Problem, resource: Attributes, spans: list[TracedSpan], evaluations: list[Evaluation]
    ) -> TraceRecord:
        """What counts of a refused trace: its system, its metadata and its outcome."""
        record = unread(problem, spans, evaluations, self.format, resource)
        record.metadata = words_of(self.resources.pop(problem.trace, resource))
        return record.without_events()

    def _place_loose(self) -> Iterator[Problem]:
        """Give evaluations that name only a response to the trace with that response."""
        if not self.loose:
            return
        traces: dict[str, set[str]] = {}
        for trace, spans in self.spans.items():
            for span in spans:
                if span.response_id:
                    traces.setdefault(span.response_id, set()).add(trace)
        for evaluation in self.loose:
            trace_ids = traces.get(evaluation.response_id, set())
            if len(trace_ids) == 1:
                self.evaluations.setdefault(next(iter(trace_ids)), []).append(evaluation)
            else:
                # Without a line: it would stand for a lost record, and refuse traces that lack nothing.
                yield dataclasses.replace(_orphan(evaluation, ""), line=0, field=f"line {evaluation.place.line}")


def _orphan(evaluation: Evaluation, trace: str) -> Problem:
    """The problem of an evaluation of a trace that is not in the log."""
    file, line, _ = evaluation.place
    name, expected = excerpt(evaluation.name), "the evaluation of a trace whose spans are in the log"
    return Problem("orphan-evaluation", file, line, "traceId", name, expected, trace)


def _attach(spans: list[TracedSpan]) -> list[TracedSpan]:
    """Give pieces in the air a parent, the one agent that each can be of, or the root where none was at work.

    An agent can be meant if it was at work throughout the piece, is no part of it, and has the name that the piece
    states, if it states one. The root can be if there is one, and the piece lies within it in time.

    Returns:
      The spans that were attached: a piece that may be of several agents, or of none that is in the log, stays apart.
    """
    known, inside = {span.id for span in spans}, dict[str, list[TracedSpan]]()
    for span in spans:
        inside.setdefault(span.parent, []).append(span)
    agents, roots = [span for span in spans if span.kind is Kind.AGENT], inside.get("", [])
    parents: list[tuple[TracedSpan, str]] = []
    for span in spans:
        if not span.parent or span.parent in known:
            continue
        piece = [span]
        for member in piece:  # it grows: a walk without recursion
            piece += inside.get(member.id, ())
        members, (start, end) = {member.id for member in piece}, span.clock
        working, within = (
            [each for each in some if each.id not in members and 0 <= each.clock[0] <= start <= end <= each.clock[1]]
            for some in (agents, roots)
        )
        meant = [each for each in working if not span.giver or each.name == span.giver] if working else within
        if len(meant) == 1:
            parents.append((span, meant[0].id))
    for span, parent in parents:
        span.parent = parent
    return [span for span, _ in parents]


def _attached(loose: list[TracedSpan], trace: str) -> Problem:
    """The note that pieces of a trace were attached."""
    file, line, _ = loose[0].place
    value = f"missing for {counted(len(loose), 'span')}, {excerpt(loose[0].name or loose[0].id)} first"
    expected = "spans between: each was attached to the one agent that was at work, or else to the root span"
    return Problem("attached-orphans", file, line, "parentSpanId", value, expected, trace)
