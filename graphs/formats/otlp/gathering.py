"""All spans and evaluations of some files, brought together by trace, and the records that they make."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from graphs.errors import Problem, TraceError
from graphs.formats.common.span_tree import Kind
from graphs.formats.otlp.evaluations import Evaluation
from graphs.formats.otlp.spans import TracedSpan
from graphs.formats.otlp.traces import build
from graphs.text import counted, excerpt
from graphs.traces.record import TraceRecord

__all__ = ["Gathering"]

T = TypeVar("T")


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
        self.loose: list[Evaluation] = []  # of a response, without a trace id
        self.refused: set[str] = set()

    def take(self, add: Callable[[Gathering, T], None], item: T) -> Iterator[Problem]:
        """Let `add` take a record in; its problem, if it is the first of its trace or names none."""
        try:
            add(self, item)
        except TraceError as error:
            if error.problem.trace not in self.refused:
                yield error.problem
            self.refused |= {error.problem.trace} - {""}

    def add_span(self, trace: str, span: TracedSpan) -> None:
        self.spans.setdefault(trace, []).append(span)

    def add_evaluation(self, trace: str, evaluation: Evaluation | None) -> None:
        if evaluation is not None:
            (self.evaluations.setdefault(trace, []) if trace else self.loose).append(evaluation)

    def results(self) -> Iterator[TraceRecord | Problem]:
        """Records and problems, trace by trace; each is forgotten once it has been handed out."""
        yield from self._place_loose()
        unknown, without_events = Counter[str](), Counter[str]()  # by file, traces
        for trace in list(self.spans):
            spans, evaluations = self.spans.pop(trace), self.evaluations.pop(trace, [])
            if trace in self.refused:
                continue
            if not any(span.known for span in spans):
                unknown[spans[0].place.file] += 1
                continue
            root, loose = _orphans(spans)
            try:
                if root is not None and loose and self.attach_orphans:
                    _attach(root, loose, spans, trace)
                record = build(trace, spans, evaluations, self.format)
            except TraceError as error:
                is_advised = root is not None and loose and not self.attach_orphans
                yield _advised(error.problem) if is_advised else error.problem
                continue
            if record.ids:
                yield record
                if root is not None and loose and self.attach_orphans:
                    yield _attached(loose, trace)
            else:
                without_events[record.file] += 1
        for file, count in unknown.items():
            expected = "spans with gen_ai.operation.name or openinference.span.kind"
            yield Problem("no-agent-spans", file, 0, "attributes", f"those of {count} other traces", expected)
        for file, count in without_events.items():
            expected = "a trace with a model call, a tool or an agent started by another"
            yield Problem("no-events", file, 0, "spans", counted(count, "trace") + " of structure only", expected)
        for trace, evaluations in self.evaluations.items():
            if trace not in self.refused:
                yield _orphan(evaluations[0], trace)

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


def _orphans(spans: list[TracedSpan]) -> tuple[TracedSpan | None, list[TracedSpan]]:
    """The root of a trace, and the spans whose parents are missing; no root where there are several, or where a piece
    does not lie within it in time."""
    known = {span.id for span in spans}
    loose = [span for span in spans if span.parent and span.parent not in known]
    roots = [span for span in spans if not span.parent] if loose else []
    if len(roots) != 1:
        return None, loose
    (start, end), clocks = roots[0].clock, [span.clock for span in loose]
    lie_within = 0 <= start <= end and all(start <= first <= last <= end for first, last in clocks)
    return (roots[0] if lie_within else None), loose


def _attach(root: TracedSpan, loose: list[TracedSpan], spans: list[TracedSpan], trace: str) -> None:
    """Give each piece in the air a parent: the one agent that it can be of, or the root where none was at work.

    An agent can be meant if it was at work throughout the piece, is no part of it, and has the name that the piece
    states, if it states one.

    Raises:
      TraceError: kind "missing-parent", the piece may be of several agents, or of one that is not in the log.
    """
    inside: dict[str, list[TracedSpan]] = {}
    for span in spans:
        inside.setdefault(span.parent, []).append(span)
    agents = [span for span in spans if span.kind is Kind.AGENT]
    parents: list[str] = []
    for span in loose:
        piece = [span]
        for member in piece:  # it grows: a walk without recursion
            piece += inside.get(member.id, ())
        if all(member.kind is Kind.OTHER for member in piece):
            parents.append(root.id)
            continue
        members, (start, end) = {member.id for member in piece}, span.clock
        working = [each for each in agents if each.id not in members and each.clock[0] <= start <= end <= each.clock[1]]
        meant = [each for each in working if not span.giver or each.name == span.giver]
        if len(meant) > 1 or (working and not meant):
            file, line, _ = span.place
            names = " and ".join(excerpt(each.name) for each in working)
            stated = f", and states {excerpt(span.giver)}" if span.giver else ""
            expected = f"a span of this log, which tells whose work it is: it lies within {names} in time{stated}"
            raise TraceError(
                Problem("missing-parent", file, line, "parentSpanId", excerpt(span.parent), expected, trace)
            )
        parents.append(meant[0].id if meant else root.id)
    for span, parent in zip(loose, parents, strict=True):
        span.parent = parent


def _advised(problem: Problem) -> Problem:
    """The problem of pieces in the air, with the option that attaches them."""
    if problem.kind != "missing-parent":
        return problem
    advice = "--orphans root (in Python orphans='root') attaches those whose agent their times or names tell"
    return dataclasses.replace(problem, expected=f"{problem.expected}; {advice}")


def _attached(loose: list[TracedSpan], trace: str) -> Problem:
    """The note that pieces of a trace were attached."""
    file, line, _ = loose[0].place
    value = f"missing for {counted(len(loose), 'span')}, {excerpt(loose[0].name or loose[0].id)} first"
    expected = "spans between: each was attached to the one agent that was at work, or else to the root span"
    return Problem("attached-orphans", file, line, "parentSpanId", value, expected, trace)
