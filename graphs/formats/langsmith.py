"""Run trees of LangSmith: runs as the API and the SDK give them, flat or with their children nested, and feedback.

    {id, trace_id, parent_run_id, dotted_order, name, run_type, start_time, end_time, error, prompt_tokens,
     completion_tokens, reference_example_id, feedback_stats: {KEY: {n, avg}}, extra: {metadata}, child_runs: [...]}
    {key, score, run_id, trace_id}                                                                      (feedback)

one a line, a list, or `{"runs": [...]}`. A trace id is a trace; its group is its `reference_example_id`, or itself.
Siblings stand in the order of `dotted_order` where all runs of the trace have one, else in that of the log.

LangSmith has no agents. A chain run is one where LangGraph or LangChain says so in its metadata: it has the name of its
own `langgraph_node` or `lc_agent_name` and calls a model; inside it another one is an agent of its own only below a
tool. Visits to one node under one parent are one instance. A tool called `transfer_to_X` hands over to X.

Usage rolls up into parents, so it is read from `llm` runs alone. `docs/formats/langsmith.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.foreign_parents import foreign_parents
from graphs.formats.common.lost_lines import LostLines, owners_of
from graphs.formats.common.scores import Score, place_scores
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.common.team_writing import write_spans
from graphs.reading.decode import check_record, decode, decode_envelope, decode_record
from graphs.reading.documents import Document, Place, Places
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["drop_what_is_no_agent", "read", "sniff"]

_RUN_TYPE = re.compile(rb'"run_type"\s*:\s*"')
_LINEAGE = re.compile(rb'"(?:dotted_order|parent_run_id|child_runs|trace_id)"\s*:')
_TRANSFER = "transfer_to_"

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Metadata(msgspec.Struct):
    langgraph_node: str | None = None
    lc_agent_name: str | None = None
    ls_model_name: str | None = None


class _Extra(msgspec.Struct):
    metadata: _Metadata | None = None


class _Usage(msgspec.Struct):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None


class _Outputs(msgspec.Struct):
    usage_metadata: _Usage | None = None


class _Stats(msgspec.Struct):
    avg: float | None = None


class _Run(msgspec.Struct):
    id: _Id
    name: str
    run_type: str
    trace_id: str | None = None
    parent_run_id: str | None = None
    dotted_order: str | None = None
    start_time: datetime.datetime | None = None
    end_time: datetime.datetime | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    reference_example_id: str | None = None
    feedback_stats: dict[str, _Stats] | None = None
    extra: _Extra | None = None
    outputs: msgspec.Raw = msgspec.Raw(b"null")
    child_runs: msgspec.Raw = msgspec.Raw(b"null")


class _Feedback(msgspec.Struct):
    key: str
    id: str | None = None
    score: float | bool | None = None
    run_id: str | None = None
    trace_id: str | None = None


class _Item(msgspec.Struct):
    run_type: msgspec.Raw = msgspec.Raw()
    key: msgspec.Raw = msgspec.Raw()
    runs: msgspec.Raw = msgspec.Raw()


_ITEM = msgspec.json.Decoder(_Item)
_RUN = msgspec.json.Decoder(_Run)
_FEEDBACK = msgspec.json.Decoder(_Feedback)
_OUTPUTS = msgspec.json.Decoder(_Outputs)
_LIST = msgspec.json.Decoder(list[msgspec.Raw] | None)

_KINDS = {"llm": Kind.CALL, "tool": Kind.TOOL, "retriever": Kind.TOOL, "embedding": Kind.TOOL}


def sniff(head: bytes) -> bool:
    """Whether a run with its place in a tree begins in the first bytes."""
    return _RUN_TYPE.search(head) is not None and _LINEAGE.search(head) is not None


@dataclasses.dataclass(slots=True)
class _Trace:
    """The runs of a trace, its feedback, and what spoils it."""

    place: Place
    runs: list[tuple[_Run, Span]] = dataclasses.field(default_factory=list)
    feedback: list[tuple[_Feedback, Place]] = dataclasses.field(default_factory=list)
    problem: Problem | None = None


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trace id, over all files.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems` and of
    `graphs.formats.common.scores`, "missing-field", "duplicate-span", "parent-cycle", "missing-parent",
    "no-events", "lost-row" (a line that cannot be read is part of it, or may be). Alone: "unreadable", "unknown-item"
    (neither run nor feedback), "orphan-feedback" (on a run that is not at hand, or of no trace at hand).
    """
    traces: dict[str, _Trace] = {}
    loose: list[tuple[_Feedback, Place]] = []
    keys, first = ("id", "parent_run_id", "run_id"), ("id", "run_id", "key")
    lost = LostLines("trace_id", keys, "runs, or feedback", first=first, pages=("runs",))
    for source in sources:
        for document in lost.documents(source):
            yield from [document] if isinstance(document, Problem) else _take(document, traces, loose, lost)
        source.release()
    spans = {name: [span for _, span in trace.runs] for name, trace in traces.items()}
    if lost.is_open:
        lost.settle(owners_of(spans))
    torn = foreign_parents(spans, "parent_run_id")
    owners = {span.id: trace for trace in traces.values() for _, span in trace.runs}
    for feedback, place in loose:
        owner = owners.get(feedback.run_id) if feedback.run_id else traces.get(feedback.trace_id or "")
        if owner is None:
            expected = "feedback on a run at hand"
            yield Problem("orphan-feedback", place.file, place.line, "run_id", excerpt(feedback.run_id), expected)
        else:
            owner.feedback.append((feedback, place))
    for trace_id in list(traces):
        trace = traces.pop(trace_id)
        yield trace.problem or lost.of(trace_id) or torn.get(trace_id) or _record(trace_id, trace)


def _take(
    document: Document, traces: dict[str, _Trace], loose: list[tuple[_Feedback, Place]], lost: LostLines
) -> Iterator[Problem]:
    """Take in an item with all the runs inside it; `trace` and `parent` are those of the run around a nested one."""
    waiting = [(document, "", "")]
    while waiting:
        (raw, place), trace_id, parent = waiting.pop()
        try:
            item = decode(_ITEM, raw, file=place.file, line=place.line, trace=trace_id)
            if bytes(item.run_type):
                run = decode(_RUN, raw, file=place.file, line=place.line, trace=trace_id)
                whole = not trace_id
                if whole and run.parent_run_id and not run.trace_id:
                    expected = "the id of the trace, which a run below another has"
                    raise TraceError(Problem("missing-field", place.file, place.line, "trace_id", "absent", expected))
                trace_id = run.trace_id or trace_id or run.id
                if whole:
                    check_record(raw, file=place.file, line=place.line, trace=trace_id)
                trace = traces.setdefault(trace_id, _Trace(place))
                trace.runs.append((run, _span(run, place, parent, trace_id)))
                inner = _inside(raw, run.child_runs, "child_runs", place, trace_id)
                if whole and not inner:
                    lost.part(trace_id)
                waiting += [(child, trace_id, run.id) for child in reversed(inner)]
            elif bytes(item.runs):
                decode_envelope(_ITEM, raw, file=place.file, line=place.line)
                waiting += [(run, "", "") for run in reversed(_inside(raw, item.runs, "runs", place, ""))]
            elif bytes(item.key):
                loose.append((decode_record(_FEEDBACK, raw, file=place.file, line=place.line), place))
                lost.part(loose[-1][0].run_id or loose[-1][0].trace_id or "")
            else:
                expected = "a run with a run_type, feedback with a key, or an object with runs"
                raise TraceError(
                    Problem("unknown-item", place.file, place.line, "content", excerpt(raw[:60]), expected, trace_id)
                )
        except TraceError as error:
            problem = error.problem
            if not problem.trace:
                yield problem
                lost.add_faulty(problem, raw)
                continue
            trace = traces.setdefault(problem.trace, _Trace(place))
            trace.problem = trace.problem or problem


def _inside(raw: bytes, held: msgspec.Raw, field: str, place: Place, trace: str) -> list[Document]:
    elements = decode(_LIST, held, file=place.file, line=place.line, at=field, trace=trace) or []
    start = max(raw.find(bytes(held)), 0)
    places = Places(raw, start, place.line + raw.count(b"\n", 0, start))
    located = ((element, *places.of(element)) for element in elements)
    return [Document(bytes(e), Place(place.file, line, place.offset + offset)) for e, line, offset in located]


def _span(run: _Run, place: Place, parent: str, trace: str) -> Span:
    kind, name = _KINDS.get(run.run_type, Kind.OTHER), run.name
    span = Span(run.id, run.parent_run_id or parent, kind, place, name=name)
    if kind is Kind.TOOL and name.startswith(_TRANSFER) and name != _TRANSFER:
        span.kind, span.target = Kind.HANDOFF, name.removeprefix(_TRANSFER)
    metadata = run.extra.metadata if run.extra else None
    if run.run_type == "chain" and metadata and name and name in (metadata.langgraph_node, metadata.lc_agent_name):
        span.kind, span.instance = Kind.AGENT, f"{span.parent}:{name}"
    span.start, span.end = seconds(run.start_time), seconds(run.end_time)
    span.failed = bytes(run.error) not in (b"null", b'""')
    if kind is Kind.CALL:
        tokens, read = run.completion_tokens, run.prompt_tokens
        if tokens is None and read is None and bytes(run.outputs).startswith(b"{"):
            outputs = decode(_OUTPUTS, run.outputs, file=place.file, line=place.line, at="outputs", trace=trace)
            usage = outputs.usage_metadata or _Usage()
            tokens, read = usage.output_tokens, usage.input_tokens
        span.columns = {"tokens": tokens, "input_tokens": read}
        span.model = (metadata.ls_model_name if metadata else None) or ""
    return span


def _record(trace_id: str, trace: _Trace) -> TraceRecord | Problem:
    runs = trace.runs
    if all(run.dotted_order for run, _ in runs):
        runs = sorted(runs, key=lambda pair: pair[0].dotted_order or "")
    spans = [span for _, span in runs]
    drop_what_is_no_agent(spans)
    group = next((run.reference_example_id for run, _ in runs if run.reference_example_id), trace_id)
    record = TraceRecord(trace_id, group, *trace.place, format="langsmith")
    try:
        _reward(record, runs, trace.feedback)
        write_spans(record, spans, "workflow", ("id", "parent_run_id"))
    except TraceError as error:
        return error.problem
    return record


def drop_what_is_no_agent(spans: list[Span]) -> None:
    """A node that calls no model is no agent, and a node inside another, with no tool between, is a step of it."""
    by_id = {span.id: span for span in spans}
    calling: set[str] = set()
    for span in spans:
        current = by_id.get(span.parent) if span.kind is Kind.CALL else None
        while current is not None and current.id not in calling:
            calling.add(current.id)
            current = by_id.get(current.parent)
    agents = [span for span in spans if span.kind is Kind.AGENT]
    for span in agents:
        if span.id not in calling:
            span.kind = Kind.OTHER
    outer = {span.id for span in agents if span.kind is Kind.AGENT}
    within: dict[str, bool] = {}  # whether a span is inside an agent, with no tool between
    for span in agents:
        path: set[str] = set()
        current = by_id.get(span.parent)
        while current is not None and current.id not in within and current.id not in path:
            if current.kind is Kind.TOOL or current.id in outer:
                break
            path.add(current.id)
            current = by_id.get(current.parent)
        inside = current is not None and (current.id in outer or within.get(current.id, False))
        within |= dict.fromkeys(path, inside)
        if inside:
            span.kind = Kind.OTHER


def _reward(record: TraceRecord, runs: list[tuple[_Run, Span]], feedback: list[tuple[_Feedback, Place]]) -> None:
    """Feedback on the root, or on no run, are channels; on a model call or a tool it is a reward at that event.

    The only channel is the outcome too; which of several is meant, the user says.
    """
    spans = {span.id: span for _, span in runs}
    scores = [
        Score(key, entry.avg, span.place, span.id)
        for run, span in runs if span.parent not in spans
        for key, entry in (run.feedback_stats or {}).items() if entry.avg is not None
    ]  # fmt: skip
    for given, place in feedback:
        if given.score is not None:
            scores.append(Score(given.key, float(given.score), place, given.run_id or "", given.id or ""))
    place_scores(record, spans, scores, ("score", "run_id"))
    if len(record.rewards) == 1:
        record.rewards["team"] = next(iter(record.rewards.values()))
