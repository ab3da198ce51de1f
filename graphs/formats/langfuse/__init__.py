"""Exports of Langfuse: traces with observations, pages of its public API, observations one a line or as CSV.

    {trace: {id, name, observations: [...], scores: [{name, value, observationId}]}, observations: [...]}   (a download)
    {observations: [...], scores: [...]}                                                                   (a newer one)
    {id, timestamp, observations: [...], scores: [...]}                    one trace, as `GET /traces/ID` returns it
    {data: [...], meta: {page}}                                            a page of traces, observations or scores
    {id, traceId, type, name, startTime, endTime, parentObservationId, model, usageDetails, level, metadata}

Observations of type AGENT are agents, GENERATION model calls, TOOL and RETRIEVER tools, GUARDRAIL guardrails; those of
an EVALUATOR are a judge's. Langfuse's LangGraph integration writes nodes as SPAN: a node that calls a model is an
agent, and what the node `tools` holds are tools. `observations` has this, `scoring` which scores are rewards,
`exported_tables` the CSV; `docs/formats/langfuse.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.graph_nodes import asking_nodes
from graphs.formats.common.money import stated_money
from graphs.formats.common.span_tree import Roots, roots_of
from graphs.formats.common.team_writing import write_spans
from graphs.formats.common.trace_metadata import stated_metadata
from graphs.formats.common.traced import order_by_start
from graphs.formats.langfuse.exported_tables import begins_as_csv, is_csv, rows_as_json, scores_of_row
from graphs.formats.langfuse.observations import Observation, Statement, settle_agents, span_of, statement_of
from graphs.formats.langfuse.scoring import Subject, TraceScores, WrittenScore
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Trace(msgspec.Struct):
    id: _Id
    observations: list[msgspec.Raw] | None = None
    scores: list[msgspec.Raw] | None = None
    version: str | None = None  # "used to understand how changes to the trace type affect metrics"
    release: str | None = None  # of the application
    cost: Any = msgspec.field(default=None, name="totalCost")
    metadata: msgspec.Raw = msgspec.Raw()
    name: Any = None
    tags: Any = None


class _Item(msgspec.Struct):
    """Any object: the fields that tell pages, downloads, observations, scores and traces apart."""

    id: msgspec.Raw = msgspec.Raw()
    trace: msgspec.Raw = msgspec.Raw()
    scores: msgspec.Raw = msgspec.Raw(b"null")
    observations: list[msgspec.Raw] | None = None
    data: list[msgspec.Raw] | None = None
    trace_id: str | None = msgspec.field(default=None, name="traceId")
    start: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="startTime")
    type: msgspec.Raw = msgspec.Raw()  # of an observation: scores have a dataType
    trace_name: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="traceName")  # of a row with columns of scores
    subject: Subject | None = None  # of a score

    @property
    def is_observation(self) -> bool:
        return len(self.start) > 0 or len(self.type) > 0


class _ScoreKeys(msgspec.Struct):
    """What tells a score without a `traceId` from a trace, which has an id and a name as well."""

    value: msgspec.Raw = msgspec.Raw()
    kind: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="dataType")
    observation: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="observationId")
    session: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="sessionId")
    run: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="datasetRunId")
    subject: Subject | None = None

    @property
    def is_of_a_trace(self) -> bool:
        """Whether it is a score of one trace; a score of a session or of a data set's run is of many."""
        if self.subject:
            return self.subject.kind in ("trace", "observation")
        if bytes(self.observation) not in (b"", b"null"):
            return True
        is_of_many = any(bytes(field) not in (b"", b"null") for field in (self.session, self.run))
        return not is_of_many and bool(bytes(self.value) or bytes(self.kind) or bytes(self.observation))


RECORDS = (Observation, WrittenScore)

_ITEM = msgspec.json.Decoder(_Item)
_SCORES = msgspec.json.Decoder(list[msgspec.Raw] | None)
_SCORE = msgspec.json.Decoder(WrittenScore)
_SCORE_KEYS = msgspec.json.Decoder(_ScoreKeys)
_TRACE = msgspec.json.Decoder(_Trace)
_NAME = msgspec.json.Decoder(_Id)
_KEYS = (  # of a trace, also one that is read without its observations, of an observation, of a score
    {"id", "timestamp", "observations"},
    {"id", "projectId", "observations"},
    {"id", "timestamp", "htmlPath"},
    {"id", "traceId", "type", "startTime"},
    {"id", "name", "value", "dataType"},
)


def sniff(head: bytes) -> bool:
    """Whether the content begins as an export of Langfuse, a page of its API, or an observation."""
    if begins_as_csv(head):
        return True
    shown = opening(head)
    keys = set(shown.keys)
    is_own = b'"projectId"' in head or b'"parentObservationId"' in head
    if (is_own or b'"traceId"' in head) and (
        {"trace", "observations"} <= keys or keys in ({"trace"}, {"observations", "scores"})
    ):
        return True
    if not keys and head.lstrip().startswith(b"["):
        return b'"traceId"' in head and b'"parentObservationId"' in head
    of_page = shown.first.get("data", frozenset())
    is_empty_page = keys == {"data", "meta"} and not of_page and b'"totalItems"' in head
    return is_empty_page or any(known <= keys or known <= of_page for known in _KEYS)


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trace, over all files.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems`, "duplicate-span", "parent-cycle",
    "missing-parent", "missing-field" (an observation without its trace), "bad-value" (a score of numbers that is none).
    Named while the trace reads: "missing-part", "unknown-span". Alone: faults of an item whose trace is not
    known, such as "missing-field" of a score. Named, though nothing is wrong: "no-events", a trace without
    observations, or a score of a session; "category-score", a score of a category with a number.
    """
    log = _Log()
    for source in sources:
        for document in rows_as_json(source) if is_csv(source) else documents(source):
            yield from log.add(document)
        source.release()
    yield from log.records()


_SCORED, _HEADED, _OBSERVED = range(3)


@dataclasses.dataclass(slots=True)
class _Parts:
    """What the files have of a trace."""

    place: Place
    scores: TraceScores
    stated: dict[str, Statement] = dataclasses.field(default_factory=dict)  # by id, what all copies of it state
    named: dict[str, dict[str, Place]] | None = None  # by field, ids without what they name
    holds: int = 0  # the file of that place: what there is at most, of _SCORED, _HEADED and _OBSERVED
    others: dict[str, int] | None = None  # files that more of it stands in, each with what there is at most
    own: Place | None = None  # of the trace itself, which states input and output
    system: str = ""  # as the trace itself states it
    metadata: dict[str, str] | None = None  # likewise
    money: float | None = None  # likewise


class _Log:
    """The parts of all traces, as they come."""

    def __init__(self) -> None:
        self.traces: dict[str, _Parts] = {}
        self.refused: set[str] = set()  # traces whose problem has been yielded
        self.loose: list[tuple[WrittenScore, Place]] = []  # scores that state no trace
        self.columns: dict[tuple[str, str], list[tuple[str, float]]] = {}  # scores of rows, by trace and span

    def add(self, document: Document) -> Iterator[Problem]:
        """Take in a value with all objects inside it; what is wrong with them."""
        waiting = [(document.raw, "")]  # objects, each with the id of the trace that lists it as its observation
        while waiting:
            raw, holder = waiting.pop()
            try:
                waiting += reversed(self._add(Document(raw, document.place), holder))
            except TraceError as error:
                problem = dataclasses.replace(error.problem, trace=error.problem.trace or holder)
                self.refused.add(problem.trace)
                yield problem

    def _add(self, document: Document, holder: str) -> list[tuple[bytes, str]]:
        """Take in an object; the objects inside it, each with its holder."""
        raw, place = document
        where: dict[str, Any] = {"file": place.file, "line": place.line}
        item = decode(_ITEM, raw, **where)
        if item.data is not None:
            return [(bytes(element), "") for element in item.data]
        if bytes(item.trace).startswith(b"{") and not bytes(item.id) and item.trace_id is None:  # scores hold one, too
            of = decode(_TRACE, item.trace, field="trace", **where).id
            return [(bytes(item.trace), ""), *((bytes(element), of) for element in item.observations or [])]
        if item.observations is not None and not bytes(item.id):  # a download, whose parts state their trace
            scores = decode(_SCORES, item.scores, field="scores", **where) or []
            return [(bytes(element), "") for element in (*item.observations, *scores)]
        if item.trace_id is not None and item.is_observation:
            self._add_observation(document, item.trace_id, scores_of_row(raw) if item.trace_name else [])
        elif of_trace := item.trace_id or (item.subject.of_trace if item.subject else None):
            score = decode_record(_SCORE, raw, trace=of_trace, **where)
            self._parts(of_trace, place, _SCORED).scores.add(score, place)
        elif holder or item.is_observation:
            expected = "the id of the trace, which an observation has"
            raise TraceError(Problem("missing-field", place.file, place.line, "traceId", "absent", expected))
        elif decode(_SCORE_KEYS, raw, **where).is_of_a_trace:
            self.loose.append((decode_record(_SCORE, raw, **where), place))
        else:
            return self._add_trace(document)
        return []

    def _parts(self, trace: str, place: Place, holds: int) -> _Parts:
        """The parts of a trace, of which one stands here."""
        parts = self.traces.get(trace)
        if parts is None:
            parts = self.traces[trace] = _Parts(place, TraceScores(trace))
        if place.file == parts.place.file:
            parts.holds = max(parts.holds, holds)
        else:
            parts.others = {} if parts.others is None else parts.others
            parts.others[place.file] = max(parts.others.get(place.file, 0), holds)
        return parts

    def _add_observation(self, document: Document, trace: str, columns: list[tuple[str, float]]) -> None:
        parts, stated = self._parts(trace, document.place, _OBSERVED), statement_of(document, trace)
        first = parts.stated.setdefault(stated.id, stated)
        if first is stated:
            if columns:
                parts.scores.add_columns(columns, stated.id, stated.place)
                self.columns[trace, stated.id] = columns
            return
        parts.stated[stated.id] = first.filled(stated)
        span = span_of(stated.filled(first))
        if span != span_of(parts.stated[stated.id]):
            expected = f"an id with one content: {first.place.file}:{first.place.line} has another"
            raise span.refuse("duplicate-span", "id", span.id, expected, trace)
        if columns != self.columns.get((trace, span.id), []):
            expected = "the scores that the row of the same observation has elsewhere"
            raise span.refuse("duplicate-span", "id", span.id, expected, trace)

    def _add_trace(self, document: Document) -> list[tuple[bytes, str]]:
        """Take in a trace with its scores; the observations that it holds."""
        raw, place = document
        where: dict[str, Any] = {"file": place.file, "line": place.line}
        trace = decode(_TRACE, raw, **where)
        parts = self._parts(trace.id, place, _HEADED)
        parts.own, parts.system = parts.own or place, parts.system or trace.version or trace.release or ""
        parts.metadata = stated_metadata(trace.metadata, trace.name, trace.tags) | (parts.metadata or {})
        parts.money = parts.money or stated_money(trace.cost)
        for score in _objects(parts, "scores", trace.scores, trace.id, place):
            parts.scores.add(decode_record(_SCORE, score, trace=trace.id, field="scores", **where), place)
        return [(held, trace.id) for held in _objects(parts, "observations", trace.observations, trace.id, place)]

    def records(self) -> Iterator[TraceRecord | Problem]:
        """The traces, each forgotten once it has been handed out, and the problems of what is of no trace."""
        orphans: list[Problem] = []
        for (score, place), owner in zip(self.loose, self._owners(), strict=True):
            if isinstance(owner, Problem):
                orphans.append(owner)
                continue
            try:
                self._parts(owner, place, _SCORED).scores.add(score, place)
            except TraceError as error:
                self.refused.add(owner)
                yield error.problem
        beside = roots_of(map(span_of, parts.stated.values()) for parts in self.traces.values())
        of_graphs = (each.stated.values() for each in self.traces.values() if _has_nodes(each))
        askers = asking_nodes(map(span_of, stated) for stated in of_graphs)
        for trace in list(self.traces):
            parts = self.traces.pop(trace)
            if trace not in self.refused:
                yield from _records(trace, parts, beside, askers)
        yield from orphans  # last: the traces at hand are whole without what is of none of them

    def _owners(self) -> Iterator[str | Problem]:
        """For each loose score the trace of its observation, which may stand in another file."""
        wanted = {score.observation for score, _ in self.loose if score.observation}
        owners: dict[str, list[str]] = {}
        for trace, parts in self.traces.items() if wanted else ():
            for span in wanted & parts.stated.keys():
                owners.setdefault(span, []).append(trace)
        for score, place in self.loose:
            traces = owners.get(score.observation or "", [])
            if len(traces) == 1:
                yield traces[0]
                continue
            expected = (
                "the id of the trace, which a score has, or the observationId of an observation of one trace at hand"
            )
            shown = f"absent; observationId {excerpt(score.observation)}" if score.observation else "absent"
            yield Problem("missing-field", place.file, place.line, "traceId", shown, expected)


def _objects(parts: _Parts, field: str, listed: list[msgspec.Raw] | None, trace: str, place: Place) -> list[bytes]:
    """The objects of a trace's list; where the API gives ids instead, these are noted in `parts.named`.

    Raises:
      TraceError: "bad-type", an element is something else.
    """
    objects = []
    for element in map(bytes, listed or []):
        if element.startswith(b"{"):
            objects.append(element)
        else:
            name = decode(_NAME, element, file=place.file, line=place.line, field=field, trace=trace)
            parts.named = {} if parts.named is None else parts.named
            parts.named.setdefault(field, {}).setdefault(name, place)
    return objects


def _has_nodes(parts: _Parts) -> bool:
    return any(stated.node is not None and stated.node.langgraph_node for stated in parts.stated.values())


def _records(trace: str, parts: _Parts, beside: Roots, askers: frozenset[str]) -> Iterator[TraceRecord | Problem]:
    place = parts.own or next((stated.place for stated in parts.stated.values()), parts.place)
    record = TraceRecord(trace, trace, *place, format="langfuse")
    files = {parts.place.file: parts.holds, **(parts.others or {})}
    record.sources = list(files)
    record.beside = {file: holds == _SCORED for file, holds in files.items() if holds != _OBSERVED}
    absent = _absent(parts, trace)
    record.metadata, record.total_money, record.system = parts.metadata or {}, parts.money, parts.system
    try:
        spans = order_by_start(map(span_of, parts.stated.values()), trace, "startTime")
        roots = (parts.stated[span.id].system for span in spans if span.parent not in parts.stated)
        record.system = record.system or next(roots, None) or ""
        settle_agents(spans, askers)
        are_all = all(problem.field != "scores" for problem in absent)
        written = write_spans(record, spans, "workflow", ("id", "parentObservationId"), beside=beside)
        if record.unread and any(problem.field == "observations" for problem in absent):
            record.unread = ()
        parts.scores.set_rewards(written, are_all=are_all)
    except TraceError as error:
        yield error.problem
        yield record.without_events()
        return
    yield record
    yield from absent
    yield from (parts.scores.categories or {}).values()


def _absent(parts: _Parts, trace: str) -> list[Problem]:
    """One problem for the scores, and one for the observations, that a trace names and no file has."""
    if not parts.named:
        return []
    met = {"scores": parts.scores.ids, "observations": parts.stated.keys()}
    problems = []
    for field, named in parts.named.items():
        ids = [name for name in named if name not in met[field]]
        if ids:
            place, expected = named[ids[0]], f"{field} at hand, in the trace or on a page: {len(ids)} named are not"
            shown = excerpt(ids[0])
            problems.append(Problem("missing-part", place.file, place.line, field, shown, expected, trace))
    return problems
