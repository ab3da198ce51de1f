"""Run trees of LangSmith: runs as the API and the SDK give them, flat or with their children nested, and feedback.

    {id, trace_id, parent_run_id, dotted_order, name, run_type, start_time, end_time, error, prompt_tokens,
     completion_tokens, reference_example_id, feedback_stats: {KEY: {n, avg}}, extra: {metadata}, child_runs: [...]}
    {key, score, value, run_id, trace_id}                                                               (feedback)

one a line, a list, or `{"runs": [...]}`. A trace id is a trace; its group is its `reference_example_id`, or itself.
Siblings are in the order of `dotted_order` if all runs of the trace have one, else of `start_time`, else of the log.

LangSmith has no agents. A chain run is an agent if its name is the `langgraph_node` or `lc_agent_name` of its metadata
and it calls a model. Inside an agent, a further such run is an agent only below a tool. Visits to one node under one
parent are one instance. A tool called `transfer_to_X` hands over to X.

Usage rolls up into parents, so it is read from `llm` runs alone. `docs/formats/langsmith.md` has the whole mapping.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import NO_EVENTS, Problem, TraceError
from graphs.formats.common.faults import fault_of
from graphs.formats.common.graph_nodes import OfNode, asking_nodes, keep_agents, node_of
from graphs.formats.common.input_tokens import ChatUsage, InputDetails, call_counts, usage_of
from graphs.formats.common.money import stated_money
from graphs.formats.common.order_of_time import in_any_files
from graphs.formats.common.placed import nested_documents
from graphs.formats.common.scores import Score, place_scores
from graphs.formats.common.span_tree import Kind, Roots, Span, add_span, kind_of, roots_of
from graphs.formats.common.stop_reasons import stop_reason
from graphs.formats.common.team_writing import Written, write_spans
from graphs.formats.common.trace_metadata import stated_metadata
from graphs.formats.common.traced import order_by_start
from graphs.reading.decode import decode, decode_record, object_text
from graphs.reading.documents import Document, Place, documents
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_RUN_TYPE = re.compile(rb'"run_type"\s*:\s*"')
_LINEAGE = re.compile(rb'"(?:dotted_order|parent_run_id|child_runs|trace_id)"\s*:')
_TRANSFER = "transfer_to_"
_OF_RUN = re.compile(r"-[0-9a-f]{8}$")  # what LangSmith adds to the name that a user gives an experiment

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Usage(ChatUsage):
    total_cost: Any = None


class _Metadata(OfNode):
    lc_agent_name: str | None = None
    ls_model_name: str | None = None
    usage_metadata: _Usage | None = None
    revision_id: Any = None  # LANGCHAIN_REVISION_ID, else what `git describe` says


class _Extra(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"null")


class _Outputs(msgspec.Struct):
    usage_metadata: _Usage | None = None
    generations: Any = None
    llm_output: Any = None


class _Stats(msgspec.Struct):
    avg: float | None = None
    values: Any = None  # how often each word stands


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
    prompt_token_details: InputDetails | None = None
    total_cost: Any = None
    reference_example_id: str | None = None
    tags: Any = None
    session_name: str | None = None  # of the project; each run of an experiment is one
    feedback_stats: dict[str, _Stats] | None = None
    extra: _Extra | None = None
    outputs: msgspec.Raw = msgspec.Raw(b"null")
    child_runs: msgspec.Raw = msgspec.Raw(b"null")
    child_run_ids: Any = None


class _Feedback(msgspec.Struct):
    key: str
    id: str | None = None
    score: float | bool | None = None
    value: Any = None  # of a category, its word
    run_id: str | None = None
    trace_id: str | None = None
    source: Any = msgspec.field(default=None, name="feedback_source")  # of the type app where a person gave it


class _Item(msgspec.Struct):
    run_type: msgspec.Raw = msgspec.Raw()
    key: msgspec.Raw = msgspec.Raw()
    runs: msgspec.Raw = msgspec.Raw()


RECORDS = (_Run, _Feedback)

_ITEM = msgspec.json.Decoder(_Item)
_RUN = msgspec.json.Decoder(_Run)
_FEEDBACK = msgspec.json.Decoder(_Feedback)
_METADATA = msgspec.json.Decoder(_Metadata | None)
_OUTPUTS = msgspec.json.Decoder(_Outputs)

_KINDS = {"llm": Kind.CALL, "tool": Kind.TOOL, "retriever": Kind.TOOL, "embedding": Kind.TOOL} | dict.fromkeys(
    ("chain", "prompt", "parser", ""), Kind.OTHER
)


def sniff(head: bytes) -> bool:
    """Whether the first bytes begin with a run that states its place in a tree, or with feedback on a run."""
    if {"key", "score", "run_id"} <= set(opening(head).keys):
        return True
    return _RUN_TYPE.search(head) is not None and _LINEAGE.search(head) is not None


@dataclasses.dataclass(slots=True)
class _Trace:
    """The runs of a trace by id, the span of each, and its feedback."""

    place: Place
    runs: dict[str, _Run] = dataclasses.field(default_factory=dict)
    spans: dict[str, Span] = dataclasses.field(default_factory=dict)
    feedback: list[tuple[_Feedback, Place]] = dataclasses.field(default_factory=list)
    files: dict[str, None] = dataclasses.field(default_factory=dict)
    beside: dict[str, bool] = dataclasses.field(default_factory=dict)  # files of feedback alone

    def add(self, run: _Run, span: Span, trace: str) -> None:
        """Add a run; one that stands twice with equal content counts once.

        Raises:
          TraceError: "duplicate-span", another run has its id.
        """
        first = self.runs.setdefault(run.id, run)
        if not add_span(self.spans, span, "id", trace) and _read_from(run) != _read_from(first):
            expected = "the order, example and feedback that the run has elsewhere"
            raise span.refuse("duplicate-span", "id", run.id, expected, trace)
        self.files[span.place.file] = None


def _read_from(run: _Run) -> tuple[object, ...]:
    """The fields of a run that are read beside its span."""
    return run.dotted_order, run.reference_example_id, run.feedback_stats


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trace id, over all files.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems`, "missing-field", "duplicate-span",
    "parent-cycle", "missing-parent", "no-events". Alone: "unknown-item" (neither run nor
    feedback), "orphan-feedback" (on a run below the root that is not at hand, or of no trace at hand).
    """
    traces: dict[str, _Trace] = {}
    feedback: list[tuple[_Feedback, Place]] = []
    refused: set[str] = set()  # traces whose problem has been yielded
    for source in sources:
        for document in documents(source):
            for problem in _take(document, traces, feedback):
                refused.add(problem.trace)
                yield problem
        source.release()
    orphans = _place_feedback(feedback, traces)
    beside = roots_of(trace.spans.values() for trace in traces.values())
    askers = asking_nodes(trace.spans.values() for trace in traces.values())
    for trace_id in list(traces):
        trace = traces.pop(trace_id)
        if trace_id not in refused:
            yield from _record(trace_id, trace, beside, askers)
    yield from orphans  # last: they do not affect the traces that were read


def _take(document: Document, traces: dict[str, _Trace], feedback: list[tuple[_Feedback, Place]]) -> Iterator[Problem]:
    """Add a value and all runs inside it; returns their problems."""
    waiting = [(document, "", "")]  # each with the ids of the trace and the run around it
    while waiting:
        inner, trace_id, parent = waiting.pop()
        raw, place = inner
        where: dict[str, Any] = {"file": place.file, "line": place.line}
        try:
            item = decode(_ITEM, raw, trace=trace_id, **where)
            if bytes(item.run_type):
                # The outermost run is checked with all that it holds, so those inside are decoded alone.
                run = (decode if trace_id else decode_record)(_RUN, raw, trace=trace_id, **where)
                if not trace_id and run.parent_run_id and not run.trace_id:
                    expected = "the id of the trace, which a run below another has"
                    raise TraceError(Problem("missing-field", place.file, place.line, "trace_id", "absent", expected))
                trace_id = run.trace_id or trace_id or run.id
                traces.setdefault(trace_id, _Trace(place)).add(run, _span(run, place, parent, trace_id), trace_id)
                children = nested_documents(inner, run.child_runs, "child_runs", trace_id)
                waiting += [(child, trace_id, run.id) for child in reversed(children)]
            elif bytes(item.runs):
                waiting += [(run, "", "") for run in reversed(nested_documents(inner, item.runs, "runs"))]
            elif bytes(item.key):
                feedback.append((decode_record(_FEEDBACK, raw, **where), place))
            else:
                expected = "a run with a run_type, feedback with a key, or an object with runs"
                shown = excerpt(raw[:60])
                raise TraceError(Problem("unknown-item", place.file, place.line, "content", shown, expected, trace_id))
        except TraceError as error:
            yield error.problem


def _place_feedback(feedback: list[tuple[_Feedback, Place]], traces: dict[str, _Trace]) -> list[Problem]:
    """Add feedback to the trace of its run, else of its `trace_id`; returns problems of feedback on neither.

    A root run that is not at hand is known, too: its id is that of its trace.
    """
    owners = {run: trace for trace in traces.values() for run in trace.runs} if feedback else {}
    orphans = []
    for entry, place in feedback:
        owner = owners.get(entry.run_id or "") or traces.get(entry.run_id or entry.trace_id or "")
        if owner is None:
            is_of_many = not (entry.run_id or entry.trace_id)  # of a session, or a comparison of several runs
            expected = "a run or a trace, which feedback is on" if is_of_many else "feedback on a run at hand"
            kind, shown = NO_EVENTS if is_of_many else "orphan-feedback", excerpt(entry.run_id)
            orphans.append(Problem(kind, place.file, place.line, "run_id", shown, expected))
        else:
            owner.feedback.append((entry, place))
            if place.file not in owner.files:
                owner.beside[place.file] = True
    return orphans


def _span(run: _Run, place: Place, parent: str, trace: str) -> Span:
    (kind, unknown), name = kind_of(run.run_type, _KINDS), run.name
    span = Span(run.id, run.parent_run_id or parent, kind, place, name=name, unknown=unknown)
    if kind is Kind.TOOL and name.startswith(_TRANSFER) and name != _TRANSFER:
        span.kind, span.target = Kind.HANDOFF, name.removeprefix(_TRANSFER)
    where: dict[str, Any] = {"file": place.file, "line": place.line, "trace": trace}
    stated = object_text(run.extra.metadata) if run.extra else b"null"
    metadata = decode(_METADATA, stated, field="extra.metadata", **where)
    if run.run_type == "chain" and metadata and name and name in (metadata.langgraph_node, metadata.lc_agent_name):
        span.kind, span.instance, span.node = Kind.AGENT, f"{span.parent}:{name}", node_of(span.parent, metadata)
    span.start, span.end = seconds(run.start_time), seconds(run.end_time)
    span.failed, span.fault = bytes(run.error) not in (b"null", b'""'), fault_of(run.error)
    if run.run_type == "embedding":  # that of another run has those of the runs in it
        span.money = stated_money(run.total_cost)
    if kind is Kind.TOOL and not span.failed:  # LangChain hands an error that the tool handles on as its message
        text = object_text(run.outputs)
        answer = msgspec.json.decode(text) if text.startswith(b"{") else None
        span.failed = "error" in (_inside(answer, "output", "status"), _inside(answer, "output", "kwargs", "status"))
    if kind is Kind.CALL:
        text = object_text(run.outputs)
        outputs = decode(_OUTPUTS, text, field="outputs", **where) if text.startswith(b"{") else _Outputs()
        said, usage = _inside(outputs.generations, 0, 0, "message"), metadata.usage_metadata if metadata else None
        free = {
            "generations[0][0].message.usage_metadata": _inside(said, "usage_metadata"),
            "generations[0][0].message.kwargs.usage_metadata": _inside(said, "kwargs", "usage_metadata"),
            "llm_output.token_usage": _inside(outputs.llm_output, "token_usage"),
        }
        span.columns, span.unlike_counts = call_counts(
            ChatUsage(run.prompt_tokens, run.completion_tokens, prompt_tokens_details=run.prompt_token_details),
            outputs.usage_metadata,
            usage,
            *(usage_of(msgspec.json.encode(value), field=f"outputs.{field}", **where) for field, value in free.items()),
        )
        span.stopped = stop_reason(outputs.generations, outputs.llm_output, text)
        asked, answered = (metadata.ls_model_name if metadata else None) or "", _answered(said, outputs.llm_output)
        span.model, span.requested = answered or asked, asked if asked != answered else ""
        priced = (run, outputs.usage_metadata, usage)
        span.money = stated_money(*(place.total_cost for place in priced if place is not None))
    return span


def _answered(message: Any, llm_output: Any) -> str:
    """The name of the model that answered a call, in what LangChain keeps of its answer; "" of none."""
    places = (message, "response_metadata"), (message, "kwargs", "response_metadata"), (llm_output,)
    names = (_inside(value, *path, "model_name") for value, *path in places)
    return next((name for name in names if name and isinstance(name, str)), "")


def _inside(value: Any, *path: str | int) -> Any:
    """What stands at a path within a value of any form; None where nothing does."""
    for step in path:
        known: Any = dict(enumerate(value)) if isinstance(value, list) else value
        value = known.get(step) if isinstance(known, dict) else None
    return value


def _record(trace_id: str, trace: _Trace, beside: Roots, askers: frozenset[str]) -> Iterator[TraceRecord | Problem]:
    group = next((run.reference_example_id for run in trace.runs.values() if run.reference_example_id), trace_id)
    files = [*trace.files, *trace.beside]
    record = TraceRecord(trace_id, group, *trace.place, format="langsmith", sources=files, beside=trace.beside)
    record.system = _system(trace)
    for run in _roots(trace):
        stated = stated_metadata(run.extra.metadata if run.extra else b"", run.name, run.tags)
        record.metadata = stated | record.metadata
    try:
        spans = _in_order(trace, trace_id)
        keep_agents(spans, askers)
        fields = "id", "parent_run_id"
        _set_rewards(write_spans(record, spans, "workflow", fields, beside=beside), trace)
    except TraceError as error:
        yield error.problem
        yield record.without_events()
        return
    named = [run for one in trace.runs.values() if isinstance(one.child_run_ids, list) for run in one.child_run_ids]
    absent = [run for run in dict.fromkeys(map(str, named)) if run not in trace.runs]
    if absent and record.unread:
        record.unread = ()
    yield record
    if absent:
        expected, shown = f"runs at hand: {len(absent)} that others name are not", excerpt(absent[0])
        yield Problem("missing-part", record.file, record.line, "child_run_ids", shown, expected, trace_id)


def _system(trace: _Trace) -> str:
    """The version of the application, else the name of its project, else ""; its id is another in each experiment."""
    for run in _roots(trace):
        metadata = _METADATA.decode(object_text(run.extra.metadata)) if run.extra else None
        if metadata and isinstance(metadata.revision_id, str) and metadata.revision_id:
            return metadata.revision_id
    runs = trace.runs.values()
    name = next((run.session_name for run in runs if run.session_name), "")
    return _OF_RUN.sub("", name) if any(run.reference_example_id for run in runs) else name


def _roots(trace: _Trace) -> list[_Run]:
    return [run for run in trace.runs.values() if trace.spans[run.id].parent not in trace.spans]


def _in_order(trace: _Trace, name: str) -> list[Span]:
    """The spans by `dotted_order`; by `start_time` where a run has none.

    Raises:
      TraceError: as `order_by_start`.
    """
    dotted = {run.id: run.dotted_order for run in trace.runs.values() if run.dotted_order}
    if len(dotted) < len(trace.runs):
        return order_by_start(trace.spans.values(), name, "start_time")
    spans = in_any_files(list(trace.spans.values()), lambda _: True, name, "dotted_order")
    return sorted(spans, key=lambda span: dotted[span.id])


def _values(entry: _Stats) -> list[tuple[str, float | str]]:
    """The number of statistics of feedback, or without one their words, each with its field."""
    if entry.avg is not None:
        return [("avg", entry.avg)]
    return [("values", word) for word in entry.values if word] if isinstance(entry.values, dict) else []


def _set_rewards(written: Written, trace: _Trace) -> None:
    """Write feedback on the root, or on no run, as channels; feedback on a model call or a tool as rewards there.

    The only channel of the log is also the outcome; of several, the user chooses.
    """
    scores = [
        Score(key, value, trace.spans[run.id].place, run.id, field=f"feedback_stats.{key}.{name}")
        for run in _roots(trace)
        for key, entry in (run.feedback_stats or {}).items() for name, value in _values(entry)
    ]  # fmt: skip
    for entry, place in trace.feedback:
        value: float | str | None = None if entry.score is None else float(entry.score)
        if value is None and isinstance(entry.value, str | bool | int | float):
            value = str(entry.value)
        if value not in (None, ""):
            field = "value" if isinstance(value, str) else "score"
            by_person = _inside(entry.source, "type") == "app"
            about = entry.run_id if entry.run_id in trace.runs else ""  # else the root run is not at hand
            scores.append(Score(entry.key, value, place, about, entry.id or "", field=field, by_person=by_person))
    place_scores(written, scores, ("score", "run_id"))
    written.team.record.sole_channel()
