"""Exports of Langfuse: a trace with its observations, pages of the public API, observations one a line or as CSV.

    {trace: {id, name, scores: [{name, value, observationId}]}, observations: [...]}
    {id, timestamp, observations: [...], scores: [...]}                    one trace, as `GET /traces/ID` returns it
    {data: [...], meta: {page}}                                            a page of traces, observations or scores
    {id, traceId, type, name, startTime, endTime, parentObservationId, model, usageDetails, level, metadata}

Observations of type AGENT are agents, GENERATION model calls, TOOL and RETRIEVER tools, GUARDRAIL guardrails; those of
an EVALUATOR are a judge's. Langfuse's LangGraph integration writes nodes as SPAN: a node that calls a model is an
agent, and what the node `tools` holds are tools. `docs/formats/langfuse.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.foreign_parents import foreign_parents
from graphs.formats.common.lost_lines import LostLines, owners_of
from graphs.formats.common.scores import Score
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.common.team_writing import write_spans
from graphs.formats.langfuse_agents import drop_workflow, give_tools_to_callers
from graphs.formats.langfuse_bare_scores import ScoreKeys, owners_by_observation
from graphs.formats.langfuse_outcomes import set_rewards
from graphs.formats.langfuse_scores import NUMBERS, WrittenScore, number_of
from graphs.formats.langfuse_spans import span_of
from graphs.formats.langfuse_tables import begins_as_csv, csv_observations, is_csv, scores_of_row
from graphs.formats.langsmith import drop_what_is_no_agent
from graphs.reading.decode import decode, decode_envelope, decode_record
from graphs.reading.documents import Document, Place
from graphs.reading.keys import has_key, opening
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_Id = Annotated[str, msgspec.Meta(min_length=1)]

_IDS = ("id", "parentObservationId", "observationId")


class _Holder(msgspec.Struct):
    """A trace, by its id."""

    id: _Id


class _Trace(msgspec.Struct):
    id: _Id
    observations: list[msgspec.Raw] | None = None
    scores: list[msgspec.Raw] | None = None


class _Item(msgspec.Struct):
    """Any of the objects: only the fields that distinguish them."""

    trace: msgspec.Raw = msgspec.Raw()
    observations: list[msgspec.Raw] | None = None
    data: list[msgspec.Raw] | None = None
    trace_id: str | None = msgspec.field(default=None, name="traceId")
    start: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="startTime")
    type: msgspec.Raw = msgspec.Raw()  # of an observation: scores have a dataType


_ITEM = msgspec.json.Decoder(_Item)
_SCORE = msgspec.json.Decoder(WrittenScore)
_SCORE_KEYS = msgspec.json.Decoder(ScoreKeys)
_HOLDER = msgspec.json.Decoder(_Holder)
_TRACE = msgspec.json.Decoder(_Trace)
_NAME = msgspec.json.Decoder(_Id)


def sniff(head: bytes) -> bool:
    """Whether the content begins as an export of Langfuse, a page of its API, or an observation."""
    if begins_as_csv(head):
        return True
    shown = opening(head)
    keys = set(shown.keys)
    if b'"projectId"' in head and ({"trace", "observations"} <= keys or {"trace"} == keys):
        return True
    if {"id", "timestamp", "observations"} <= keys or {"id", "traceId", "type", "startTime"} <= keys:
        return True
    if not keys and head.lstrip().startswith(b"["):
        return b'"traceId"' in head and b'"parentObservationId"' in head
    if "data" not in keys or (b'"projectId"' not in head and b'"dataType"' not in head):
        return False
    return b'"traceId"' in head or b'"observations"' in head


@dataclasses.dataclass(slots=True)
class _Gathered:
    """What the files have of a trace."""

    place: Place
    spans: list[Span] = dataclasses.field(default_factory=list)
    scores: list[Score] = dataclasses.field(default_factory=list)
    met: set[str] = dataclasses.field(default_factory=set)  # ids of all scores, of categories too
    no_numbers: dict[str, Problem] = dataclasses.field(default_factory=dict)  # by name, of scores of categories
    named: dict[str, dict[str, Place]] = dataclasses.field(default_factory=dict)  # by field, ids without what they name
    problem: Problem | None = None


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trace, over all files.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems` and of
    `graphs.formats.common.scores`, "duplicate-span", "parent-cycle", "missing-parent", "missing-field" (an
    observation without its trace), "bad-value" (a score of numbers that is none), "lost-row" (a line that cannot be
    read is part of it, or may be). Named while the trace reads: "missing-part". Alone: "unreadable", and faults of an
    item whose trace is not known, such as "missing-field" of a score. Named, though nothing is wrong: "no-events", a
    trace without observations, or a score of a session; "category-score", a score of a category with a number.
    """
    traces: dict[str, _Gathered] = {}
    bare: list[tuple[WrittenScore, Place]] = []  # those that state no trace
    lost = LostLines("traceId", _IDS, "observations, or scores", first=("id", "traceId"), pages=("data",))
    for source in sources:
        for document in lost.documents(source, csv_observations(source) if is_csv(source) else None):
            if isinstance(document, Problem):
                yield document
                continue
            part_of = None if has_key(document.raw, "observations") else lost
            waiting = [(bytes(document.raw), "")]
            while waiting:
                raw, holder = waiting.pop()
                try:
                    waiting += _take(Document(raw, document.place), holder, traces, bare, part_of)
                except TraceError as error:
                    problem = error.problem
                    if holder and not problem.trace:
                        problem = dataclasses.replace(problem, trace=holder)
                        traces.setdefault(holder, _Gathered(document.place))
                    gathered = traces.get(problem.trace)
                    if gathered is None:
                        yield problem
                        lost.add_faulty(problem, raw)
                    else:
                        gathered.problem = gathered.problem or problem
        source.release()
    spans = {name: gathered.spans for name, gathered in traces.items()}
    if lost.is_open:
        lost.settle(owners_of(spans))
    torn = foreign_parents(spans, "parentObservationId")
    yield from _add_bare(bare, traces, spans)
    del spans  # each trace is forgotten once it has been handed out
    for name in list(traces):
        yield from _records(name, traces.pop(name), lost, torn.get(name))


def _take(
    document: Document,
    holder: str,
    traces: dict[str, _Gathered],
    bare: list[tuple[WrittenScore, Place]],
    part_of: LostLines | None,
) -> list[tuple[bytes, str]]:
    """Take an object in; the objects inside it, in reverse, each with its holder's id.

    `holder` is the id of the trace that holds it among its observations, or "". `bare` takes scores that state no
    trace, and `part_of` notes traces that are spread over lines.
    """
    raw, place = document
    where: dict[str, Any] = {"file": place.file, "line": place.line}
    item = decode(_ITEM, raw, **where)
    if item.data is not None or bytes(item.trace).startswith(b"{"):
        item = decode_envelope(_ITEM, raw, **where)
    if item.data is not None:
        return [(bytes(one), "") for one in reversed(item.data)]
    if bytes(item.trace).startswith(b"{"):
        holder = decode(_HOLDER, item.trace, at="trace", **where).id
        return [*((bytes(one), holder) for one in reversed(item.observations or [])), (bytes(item.trace), "")]
    if item.trace_id is not None and part_of is not None:
        part_of.part(item.trace_id)
    if item.trace_id is not None and (bytes(item.start) or bytes(item.type)):
        gathered = traces.setdefault(item.trace_id, _Gathered(place))
        span = span_of(document, item.trace_id)
        gathered.spans.append(span)
        columns = enumerate(scores_of_row(raw))
        gathered.scores += [Score(name, value, place, span.id, number=number) for number, (name, value) in columns]
    elif item.trace_id is not None:
        gathered = traces.setdefault(item.trace_id, _Gathered(place))
        _add_score(gathered, decode_record(_SCORE, raw, trace=item.trace_id, **where), item.trace_id, place)
    elif holder or bytes(item.start) or bytes(item.type):
        expected = "the id of the trace, which an observation has"
        raise TraceError(Problem("missing-field", place.file, place.line, "traceId", "absent", expected))
    elif decode(_SCORE_KEYS, raw, **where).is_of_a_trace:
        alone = decode_record(_SCORE, raw, **where)
        bare.append((alone, place))
        if alone.observation and part_of is not None:
            part_of.part(alone.observation)
    else:
        trace = decode_envelope(_TRACE, raw, **where)
        gathered = traces.setdefault(trace.id, _Gathered(place))
        for score in _held(gathered, "scores", trace.scores, trace.id, place):
            listed = decode_record(_SCORE, score, trace=trace.id, at="scores", **where)
            _add_score(gathered, listed, trace.id, place)
        held = _held(gathered, "observations", trace.observations, trace.id, place)
        return [(one, trace.id) for one in reversed(held)]
    return []


def _held(gathered: _Gathered, field: str, listed: list[msgspec.Raw] | None, trace: str, place: Place) -> list[bytes]:
    """The objects that a trace holds in a list; of others the API gives ids alone.

    Raises:
      TraceError: "bad-type", an element is something else.
    """
    held = []
    for element in map(bytes, listed or []):
        if element.startswith(b"{"):
            held.append(element)
        else:
            name = decode(_NAME, element, file=place.file, line=place.line, at=field, trace=trace)
            gathered.named.setdefault(field, {}).setdefault(name, place)
    return held


def _add_score(gathered: _Gathered, score: WrittenScore, trace: str, place: Place) -> None:
    """Take a score in; a category is no number, and is met alone.

    Langfuse writes a number for a category too: what the project maps it to, or 0 where it maps it to nothing. The log
    does not say which.
    """
    if score.id:
        gathered.met.add(score.id)
    value = score.value
    if isinstance(value, str) and score.kind in NUMBERS:
        value = number_of(score, value, trace, place)
    if not isinstance(value, bool | int | float):
        return
    if score.kind is not None and score.kind not in NUMBERS:
        expected = "NUMERIC or BOOLEAN: the number of a category is no reward, and may be 0 for every category"
        value_text = excerpt(f"{score.kind}, of the score {score.name}")
        problem = Problem("category-score", place.file, place.line, "scores.dataType", value_text, expected, trace)
        gathered.no_numbers.setdefault(score.name, problem)
    else:
        gathered.scores.append(Score(score.name, float(value), place, score.observation or "", score.id or ""))


def _add_bare(
    bare: list[tuple[WrittenScore, Place]], traces: dict[str, _Gathered], spans: dict[str, list[Span]]
) -> Iterator[Problem]:
    """Take in scores that state no trace; the problems of those that are of none at hand."""
    owners = owners_by_observation([(score.observation or "", place) for score, place in bare], spans)
    for (score, place), owner in zip(bare, owners, strict=True):
        if isinstance(owner, Problem):
            yield owner
            continue
        try:
            _add_score(traces[owner], score, owner, place)
        except TraceError as error:
            traces[owner].problem = traces[owner].problem or error.problem


def _records(trace: str, gathered: _Gathered, lost: LostLines, torn: Problem | None) -> Iterator[TraceRecord | Problem]:
    problem = gathered.problem or lost.of(trace) or torn
    if problem is not None:
        yield problem
        return
    place = gathered.place
    spans = sorted(gathered.spans, key=lambda span: (span.start != span.start, span.start))  # exports are in no order
    record = TraceRecord(trace, trace, place.file, place.line, place.offset, format="langfuse")
    drop_workflow(spans)
    give_tools_to_callers(spans)
    drop_what_is_no_agent([span for span in spans if span.instance or span.kind is not Kind.AGENT])
    try:
        absent = _absent(gathered, trace)
        set_rewards(record, spans, gathered.scores, all(problem.field != "scores" for problem in absent))
        write_spans(record, spans, "workflow", ("id", "parentObservationId"))
    except TraceError as error:
        yield error.problem
        return
    if record.ids:
        yield record
        yield from absent
        yield from gathered.no_numbers.values()
    else:
        expected = "a trace with a generation or a tool"
        yield Problem("no-events", place.file, place.line, "observations", "none of them", expected, trace)


def _absent(gathered: _Gathered, trace: str) -> list[Problem]:
    """One problem for the scores, and one for the observations, that a trace names and no file has."""
    met = {"scores": gathered.met, "observations": {span.id for span in gathered.spans}}
    problems = []
    for field, named in gathered.named.items():
        ids = [name for name in named if name not in met[field]]
        if ids:
            place, expected = named[ids[0]], f"{field} at hand, in the trace or on a page: {len(ids)} named are not"
            shown = excerpt(ids[0])
            problems.append(Problem("missing-part", place.file, place.line, field, shown, expected, trace))
    return problems
