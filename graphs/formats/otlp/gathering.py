"""All spans and evaluations of some files, brought together by trace, and the records that they make."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.foreign_parents import foreign_parents
from graphs.formats.common.lost_lines import LostLines
from graphs.formats.otlp.assembly import build, unplaced
from graphs.formats.otlp.evaluations import RESULT, Evaluation
from graphs.formats.otlp.requests import Item
from graphs.formats.otlp.spans import Span, log_evaluation, make_span, trace_id_of
from graphs.formats.otlp.strays import Strays, stray_in
from graphs.formats.otlp.wire import (
    Attributes,
    Place,
    TraceIdOnly,
    WireLog,
    WireSpan,
    attributes,
    conflicting,
)
from graphs.reading.decode import refuse_repeated
from graphs.reading.documents import lost_row
from graphs.reading.json_problems import JSON_ERRORS, json_problem
from graphs.reading.repeated_keys import repeated_anywhere
from graphs.reading.source import Lost
from graphs.text import counted
from graphs.traces.record import TraceRecord

__all__ = ["LACKS", "Gathering", "Without"]

_FIRST = ("resourceSpans", "resourceLogs", "resource", "scopeSpans", "scopeLogs")  # keys of a request
_LISTS = ("resourceSpans", "resourceLogs", "scopeSpans", "scopeLogs", "spans", "logRecords")

LACKS = "spans, or evaluations"
"""What a line that cannot be read may be."""

_SPAN = msgspec.json.Decoder(WireSpan)
_LOG = msgspec.json.Decoder(WireLog)
_TRACE_ID = msgspec.json.Decoder(TraceIdOnly)


@dataclasses.dataclass
class Without:
    """How many traces of each file have no span of a dialect, and no event."""

    meaning: Counter[str] = dataclasses.field(default_factory=Counter)
    events: Counter[str] = dataclasses.field(default_factory=Counter)

    def problems(self) -> Iterator[Problem]:
        """One problem for each file and lack."""
        for file, count in self.meaning.items():
            expected = "spans with gen_ai.operation.name or openinference.span.kind"
            yield Problem("no-agent-spans", file, 0, "attributes", f"those of {count} other traces", expected)
        for file, count in self.events.items():
            expected = "a trace with a model call, a tool or an agent started by another"
            yield Problem("no-events", file, 0, "spans", counted(count, "trace") + " of structure only", expected)


class Gathering:
    """Spans and evaluations by trace, as they come in; `format` is what the records say they were read as.

    `lost` has the traces of lines that cannot be read, by default as OTLP writes their ids.
    """

    is_by_span = False
    """Whether the spans of a file stand by themselves, not in requests."""

    def __init__(self, format: str, lost: LostLines | None = None) -> None:
        self.format = format
        self.lost = lost or LostLines(
            "traceId", ("traceId",), LACKS, first=_FIRST, plain=str.lower, is_deep=True, lists=_LISTS
        )
        self.spans: dict[str, list[Span]] = {}
        self.evaluations: dict[str, list[Evaluation]] = {}
        self.loose: list[Evaluation] = []  # of a response, without a trace id
        self.spoiled: dict[str, Problem] = {}  # the first thing that was wrong with a trace
        self.count = 0
        self.strays = Strays()
        self._request: Place | None = None
        self._here: set[str] = set()  # the traces of the request

    def add(self, item: Item) -> Problem | None:
        """Add a record; returns a problem only if the trace of a faulty record is unknown."""
        if item.request is not self._request:
            self._request, self._here = item.request, set()
        try:
            if item.is_span:
                self._add_span(item)
            else:
                self._add_log(item)
        except TraceError as error:
            return self._spoil(error.problem, item)
        except JSON_ERRORS as error:
            try:
                trace = trace_id_of(_TRACE_ID.decode(item.raw), item.place)
            except (TraceError, *JSON_ERRORS):
                trace = ""
            problem = json_problem(error, bytes(item.raw), item.place.file, item.place.line)
            return self._spoil(dataclasses.replace(problem, trace=trace), item)
        return None

    def _spoil(self, problem: Problem, item: Item) -> Problem | None:
        if problem.trace:
            self._here.add(problem.trace)
        elif item.is_span or RESULT.encode() in bytes(item.raw):
            self.strays.note(problem, stray_in(item.raw, is_span=item.is_span), self._here)
        return self.spoil(problem)

    def add_span(self, wire: WireSpan, resource: Attributes, place: Place) -> None:
        """Take a decoded span in.

        Raises:
          TraceError: kinds "bad-id", "bad-time", "bad-attribute", "bad-mark".
        """
        trace = wire.trace_id
        if trace is None or trace not in self.spans or trace in self.spoiled:  # those known are lower-case ids
            trace = trace_id_of(wire, place)
        span = make_span(wire, resource, place, self.count, trace)
        self.spans.setdefault(trace, []).append(span)
        self._here.add(trace)
        self.count += 1

    def lose(self, line: Lost) -> Problem:
        """Note what cannot be read; returns its problem."""
        self.lost.add_to_file(line)
        return line.problem

    def lines_of(self) -> Iterator[tuple[str, str, int]]:
        """Traces with the files and lines that have spans or evaluations of them."""
        for trace, spans in self.spans.items():
            places = [span.place for span in spans] + [one.place for one in self.evaluations.get(trace, ())]
            yield from ((trace, place.file, place.line) for place in places)

    def ids_of(self) -> Iterator[tuple[str, str, str]]:
        """Traces with the id and the parent's id of each span."""
        for trace, spans in self.spans.items():
            yield from ((trace, span.id, span.parent) for span in spans)

    def spoil_lost(self) -> None:
        """Refuse the traces of what cannot be read, or states no trace, when all files have been read."""
        if self.lost.is_open:
            self._settle(self.lost.files)
        if self.lost.is_stated:
            for trace in self.spans:
                problem = self.lost.of(trace)
                if problem is not None:
                    self.spoiled.setdefault(trace, problem)
        if self.strays:
            for trace, problem in self.strays.traces(self.ids_of(), self.lines_of()):
                if trace in self.spans:
                    self.spoiled.setdefault(trace, lost_row(problem, trace, LACKS))
        for problem in self.torn():
            self.spoiled.setdefault(problem.trace, problem)

    def torn(self) -> Iterable[Problem]:
        """Problems of traces with a span below one of another trace, and of that other."""
        return foreign_parents(self.spans, "parentSpanId").values()

    def _settle(self, unstated: Mapping[str, list[str]]) -> None:
        """Lines that state nothing may be of any trace of their file, if one of these is or may be spread over lines.

        It may be where a span of it has a parent that is not at hand. So it may where a dump has one span only: nothing
        tells that the next one, which is cut, was not of its trace; a request of OTLP has spans together.
        So may what is cut of a line that holds parts of several traces.
        """
        first: dict[str, tuple[str, int]] = {}
        spread: set[str] = set()
        traces: dict[str, dict[str, None]] = {}
        spans_of: Counter[str] = Counter()  # by file
        places = list(self.lines_of())
        for trace, file, line in places:
            traces.setdefault(file, {})[trace] = None
            spans_of[file] += 1
            if first.setdefault(trace, (file, line)) != (file, line):
                spread.add(trace)
        if unstated:
            links = list(self.ids_of())
            known = {(trace, own) for trace, own, _ in links}
            spread |= {trace for trace, _, parent in links if parent and (trace, parent) not in known}
        for file, names in unstated.items():
            here = traces.get(file, {})
            is_first = self.is_by_span and spans_of[file] == 1
            names += here if is_first or not spread.isdisjoint(here) else []
        self.lost.settle({}, places)

    def _add_span(self, item: Item) -> None:
        wire = _SPAN.decode(item.raw)
        _refuse_repeated(wire, item)
        self.add_span(wire, item.resource, item.place)

    def _add_log(self, item: Item) -> None:
        wire = _LOG.decode(item.raw)
        _refuse_repeated(wire, item)
        if RESULT not in (wire.event_name, attributes(wire.attributes).get("event.name")):
            return
        trace = trace_id_of(wire, item.place) if wire.trace_id else ""
        evaluation = log_evaluation(wire, item.place, trace)
        if evaluation is not None and trace:
            self.evaluations.setdefault(trace, []).append(evaluation)
            self._here.add(trace)
        elif evaluation is not None:
            self.loose.append(evaluation)

    def spoil(self, problem: Problem) -> Problem | None:
        """Refuse the trace that the problem names, when its turn comes; a problem that names none comes back."""
        if not problem.trace:
            return problem
        self.spoiled.setdefault(problem.trace, problem)
        self.spans.setdefault(problem.trace, [])
        return None

    def results(self) -> Iterator[TraceRecord | Problem]:
        """Records and problems, trace by trace; each is forgotten once it has been handed out."""
        self.spoil_lost()
        yield from self._place_loose()
        without = Without()
        for trace in list(self.spans):
            yield from self.result(trace, self.spans.pop(trace), without)
        yield from without.problems()
        for trace, evaluations in self.evaluations.items():
            yield unplaced(evaluations[0], trace)

    def result(self, trace: str, spans: list[Span], without: Without) -> Iterator[TraceRecord | Problem]:
        """The record of a trace, its problem, or neither where it has nothing to tell."""
        evaluations = self.evaluations.pop(trace, [])
        if trace in self.spoiled:
            yield self.spoiled[trace]
            return
        if not any(span.meaning.known for span in spans):
            without.meaning[spans[0].place.file] += 1
            return
        try:
            record = build(trace, spans, evaluations, self.format)
        except TraceError as error:
            yield error.problem
            return
        if record.ids:
            yield record
        else:
            without.events[record.file] += 1

    def _place_loose(self) -> Iterator[Problem]:
        """Give evaluations that name only a response to the trace with that response."""
        if not self.loose:
            return
        traces: dict[str, set[str]] = {}
        for trace, spans in self.spans.items():
            for span in spans:
                if span.meaning.response_id:
                    traces.setdefault(span.meaning.response_id, set()).add(trace)
        for evaluation in self.loose:
            trace_ids = traces.get(evaluation.response_id, set())
            if len(trace_ids) == 1:
                self.evaluations.setdefault(next(iter(trace_ids)), []).append(evaluation)
            else:
                yield unplaced(evaluation, "")


def _refuse_repeated(wire: WireSpan | WireLog, item: Item) -> None:
    """Refuse a record that states a key twice, or an attribute twice with two values.

    Raises:
      TraceError: "repeated-key".
    """
    field = repeated_anywhere(bytes(item.raw)) or conflicting(wire.attributes)
    if field is not None:
        trace = trace_id_of(wire, item.place) if wire.trace_id else ""
        refuse_repeated(field, file=item.place.file, line=item.place.line, trace=trace)
