"""Calls of W&B Weave: JSON lines or a list, as its API and its export of calls give them.

    {id, trace_id, parent_id, op_name: "weave:///ENTITY/PROJECT/op/NAME:DIGEST", started_at, ended_at, exception,
     attributes: {weave: {kind}}, inputs: {example}, output: {scores: {SCORER: ...}},
     summary: {usage: {MODEL: {...}}, weave: {feedback: [{id, feedback_type, payload}]}}}

`kind` says what an op is: agent, llm, tool, search, guardrail or scorer. A call without one is structure, but where it
states usage and no call inside it does, it is a model call: older versions name no kinds.

A trace of Weave is a trace, and its own group. An evaluation is one trace of Weave: each `predict_and_score` in it is a
trace here, its group the row of the dataset, its outcome the scores. What else an evaluation calls is not the team's.

Siblings are in the order of their starts. Usage rolls up into callers, so it is read from model calls alone.
`docs/formats/weave.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.graph_nodes import OfNode, asking_nodes, keep_agents, node_of
from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.money import stated_money
from graphs.formats.common.run_digest import run_digest
from graphs.formats.common.scores import Score, is_written_number, place_scores
from graphs.formats.common.span_tree import Kind, Roots, Span, kind_of, roots_of
from graphs.formats.common.stated_counts import missing_parts
from graphs.formats.common.stop_reasons import stop_reason
from graphs.formats.common.team_writing import write_spans
from graphs.formats.common.traced import Traced, order_by_start
from graphs.reading.decode import decode, decode_record, object_text
from graphs.reading.documents import Place, documents
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_REFERENCE = "weave:///"
_OP = re.compile(rb'"op_name"\s*:\s*"')
_NAME = re.compile(r"(?:.*/op/)?(?P<name>[^/:]+)(?::[^/:]*)?$")
_EVALUATION, _EXAMPLE = "Evaluation.", ("predict_and_score", "Evaluation.predict_and_score")

_Id = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


class _Call(msgspec.Struct):
    id: _Id
    trace_id: _Id
    op_name: str
    started_at: datetime.datetime | None = None
    parent_id: str | None = None
    ended_at: datetime.datetime | None = None
    exception: str | None = None
    attributes: msgspec.Raw = msgspec.Raw(b"null")
    inputs: msgspec.Raw = msgspec.Raw(b"null")
    output: msgspec.Raw = msgspec.Raw(b"null")
    summary: msgspec.Raw = msgspec.Raw(b"null")


class _Kind(msgspec.Struct):
    kind: str | None = None


class _Attributes(msgspec.Struct):
    weave: _Kind | None = None
    run: str | None = msgspec.field(default=None, name="lc_name")  # of LangChain


class _Extra(msgspec.Struct):
    metadata: OfNode | None = None


class _Feedback(msgspec.Struct):
    id: str = ""
    type: str = msgspec.field(default="", name="feedback_type")
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _OfWeave(msgspec.Struct):
    feedback: list[_Feedback] | None = None
    costs: Any = None


class _Summary(msgspec.Struct):
    usage: dict[str, ChatUsage] | None = None
    weave: _OfWeave | None = None
    status_counts: dict[str, Any] | None = None  # of the call and those below it


class _Example(msgspec.Struct):
    example: msgspec.Raw = msgspec.Raw(b"null")
    model: msgspec.Raw = msgspec.Raw(b"null")  # what is evaluated on the row


class _Scored(msgspec.Struct):
    scores: dict[str, msgspec.Raw] | None = None


class _Ran(msgspec.Struct):
    extra: _Extra | None = None


RECORDS = (_Call,)

_CALL = msgspec.json.Decoder(_Call)
_ATTRIBUTES = msgspec.json.Decoder(_Attributes | None)
_SUMMARY = msgspec.json.Decoder(_Summary | None)
_INPUTS = msgspec.json.Decoder(_Example)
_OUTPUT = msgspec.json.Decoder(_Scored)
_RAN = msgspec.json.Decoder(_Ran)
_VALUE = msgspec.json.Decoder()

# Of a scorer that was applied to a call, and of a person; reactions, notes and types of one's own state no number.
_OF_PEOPLE = "wandb.annotation."
_JUDGEMENTS = {"wandb.runnable.": "output", _OF_PEOPLE: "value"}

_KINDS = {
    "agent": Kind.AGENT, "llm": Kind.CALL, "tool": Kind.TOOL, "search": Kind.TOOL, "guardrail": Kind.GUARD,
    "scorer": Kind.JUDGE, "": Kind.OTHER,
}  # fmt: skip


_PRICED = ("prompt_tokens", "completion_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class _Stated(msgspec.Struct):
    """What a call states beside its span."""

    usage: dict[str, ChatUsage]
    has_kind: bool
    costs: Any = None
    group: str = ""
    system: str = ""
    scores: dict[str, float | str] | None = None
    calls: int = 0  # that it and those below it are
    feedback: list[tuple[str, float | str, str, int, bool]] = []  # name, number, id, place, whether of a person


def sniff(head: bytes) -> bool:
    """Whether the first bytes begin with a call of Weave."""
    return _OP.search(head) is not None and b'"trace_id"' in head and b'"started_at"' in head


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trace of Weave and each example of an evaluation, over all files.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems`, "missing-field", "duplicate-span",
    "parent-cycle", "missing-parent", "no-events". Named while the trace reads: "missing-part".
    """
    traces: dict[str, Traced[_Stated]] = {}
    refused: set[str] = set()
    for source in sources:
        for raw, place in documents(source):
            try:
                call = decode_record(_CALL, raw, file=place.file, line=place.line)
                span, stated = _span(call, place)
                traces.setdefault(call.trace_id, Traced(place)).add(span, stated, call.trace_id)
            except TraceError as error:
                refused.add(error.problem.trace)
                yield error.problem
        source.release()
    beside = roots_of(trace.spans.values() for trace in traces.values())
    for trace in traces.values():
        _find_calls(trace)
    askers = asking_nodes(trace.spans.values() for trace in traces.values())
    for trace_id, trace in traces.items():
        if trace_id not in refused:
            try:
                yield from _records(trace_id, trace, beside, askers)
            except TraceError as error:
                yield error.problem


def _span(call: _Call, place: Place) -> tuple[Span, _Stated]:
    where: dict[str, Any] = {"file": place.file, "line": place.line, "trace": call.trace_id}
    match = _NAME.match(call.op_name)
    name = match["name"] if match else call.op_name
    attributes = decode(_ATTRIBUTES, object_text(call.attributes), field="attributes", **where)
    stated_kind = (attributes.weave.kind if attributes and attributes.weave else None) or ""
    kind, unknown = kind_of(stated_kind, _KINDS)
    span = Span(call.id, call.parent_id or "", kind, place, name=name, unknown=unknown)
    span.start, span.end, span.failed = seconds(call.started_at), seconds(call.ended_at), bool(call.exception)
    span.fault = call.exception or ""
    summary = decode(_SUMMARY, object_text(call.summary), field="summary", **where)
    stated = _Stated((summary.usage if summary else None) or {}, bool(stated_kind))
    counts = (summary.status_counts if summary else None) or {}
    stated.calls = sum(count for count in counts.values() if isinstance(count, int))
    if summary and summary.weave:
        stated.feedback = list(_judgements(summary.weave.feedback or [], where))
        stated.costs = summary.weave.costs
    if attributes and attributes.run and span.kind is Kind.TOOL:  # `op_name` begins with the class of LangChain
        span.name = attributes.run
    output = object_text(call.output)
    span.stopped = stop_reason(output) if kind is Kind.CALL or stated.usage else None
    if attributes and attributes.run and span.kind is Kind.OTHER and b'"langgraph_node"' in output:
        extra = decode(_RAN, output, field="output", **where).extra
        if extra and extra.metadata and extra.metadata.langgraph_node == attributes.run:
            span.kind, span.name, span.instance = Kind.AGENT, attributes.run, f"{span.parent}:{attributes.run}"
            span.node = node_of(span.parent, extra.metadata)
    if name in _EXAMPLE:
        inputs = object_text(call.inputs)
        if inputs.startswith(b"{"):
            asked = decode(_INPUTS, inputs, field="inputs", **where)
            row, model = _VALUE.decode(asked.example), _VALUE.decode(asked.model)
            stated.group = row if isinstance(row, str) else "" if row is None else run_digest(row)
            if isinstance(model, str) and model.startswith(
                _REFERENCE
            ):  # another text may be the address of an object in memory
                stated.system = model.removeprefix(_REFERENCE)
        if output.startswith(b"{"):
            scores = decode(_OUTPUT, output, field="output", **where).scores or {}
            stated.scores = dict(_numbers({key: _VALUE.decode(value) for key, value in scores.items()}, where))
    elif name.startswith(_EVALUATION):
        span.kind = Kind.JUDGE
    return span, stated


def _judgements(feedback: list[_Feedback], where: dict[str, Any]) -> Iterator[tuple[str, float | str, str, int, bool]]:
    """The numbers of a call's feedback, by the names of scorer and key."""
    for number, item in enumerate(feedback):
        for kind, key in _JUDGEMENTS.items():
            if item.type.startswith(kind):
                payload = _VALUE.decode(object_text(item.payload))
                stated = payload.get(key) if isinstance(payload, dict) else None
                for name, value in _numbers({item.type.removeprefix(kind): stated}, where):
                    yield name, value, f"{item.id}/{name}" if item.id else "", number, kind == _OF_PEOPLE


def _numbers(scores: dict[str, Any], where: dict[str, Any]) -> Iterator[tuple[str, float | str]]:
    """The numbers among scores, true as 1, by the names of scorer and key, or the texts of a scorer without a number.

    Raises:
      TraceError: "bad-value", a scorer has no number but a text that states one. Beside a number it is a detail.
    """
    for scorer, output in scores.items():
        parts = list(_parts(scorer, output))
        numbers = [(name, float(part)) for name, part in parts if isinstance(part, bool | int | float)]
        for name, part in () if numbers else parts:
            if is_written_number(part):
                expected = "a number or a truth, not a text of one: a scorer without either gives no reward"
                raise TraceError(
                    Problem("bad-value", where["file"], where["line"], name, excerpt(part), expected, where["trace"])
                )
        yield from ((name, number) for name, number in numbers if math.isfinite(number))
        yield from ((name, part) for name, part in parts if not numbers and isinstance(part, str) and part)


def _parts(name: str, output: Any) -> Iterator[tuple[str, Any]]:
    """What a scorer returned, by the names of scorer and key."""
    if not isinstance(output, dict):
        yield name, output
        return
    for key, value in output.items():
        yield from _parts(f"{name}.{key}", value)


def _records(
    trace_id: str, trace: Traced[_Stated], beside: Roots, askers: frozenset[str]
) -> Iterator[TraceRecord | Problem]:
    """The trace, or its examples and, where it has events of its own, what is left of it.

    Raises:
      TraceError: as `order_by_start`.
    """
    spans, stated = trace.spans, trace.stated
    examples = trace.nearest(lambda span_id: spans[span_id].name in _EXAMPLE)
    parts: dict[str, list[Span]] = {}
    for span in order_by_start(spans.values(), trace_id, "started_at"):
        parts.setdefault(examples[span.id], []).append(span)
    if any(parts) and (
        lost := next((span for span in spans.values() if span.parent and span.parent not in spans), None)
    ):
        expected = "the id of a call of this log, or the calls of this evaluation cannot be told apart"
        yield lost.refuse("missing-parent", "parent_id", lost.parent, expected, trace_id).problem
        return
    tops = [stated[span.id].calls for span in spans.values() if span.parent not in spans]
    for example, within in parts.items():
        if not example and len(parts) > 1 and all(span.kind in (Kind.OTHER, Kind.JUDGE) for span in within):
            continue
        of = stated[example] if example else _Stated({}, has_kind=False)
        place = spans[example].place if example else trace.place
        name = example or trace_id
        if example:  # the evaluation around it is no caller outside the log
            spans[example].parent = ""
        keep_agents(within, askers)
        _silence_scorers(within, example, of.scores or {})
        record = TraceRecord(name, of.group or name, *place, format="weave", sources=list(trace.files))
        record.logged_as = trace_id
        record.system = of.system
        for channel, value in (of.scores or {}).items():
            if isinstance(value, str):
                record.state_word(channel, value, f"output.scores.{channel}", place)
            else:
                record.rewards[channel] = value
        try:
            written = write_spans(record, within, "workflow", ("id", "parent_id"), beside=beside)
            feedback = (
                Score(name, value, span.place, span.id, score_id, number, by_person=by_person)
                for span in within
                for name, value, score_id, number, by_person in stated[span.id].feedback
            )
            place_scores(written, feedback, ("summary.weave.feedback", "id"))
        except TraceError as error:
            yield error.problem
            yield record.without_events()
            continue
        record.sole_channel("evaluations" if example else "")
        yield record
    begun, field = sum(tops) if all(tops) else 0, "summary.status_counts"
    yield from missing_parts(begun, len(spans), "call", field, trace.place, trace_id)


def _find_calls(trace: Traced[_Stated]) -> None:
    """Give each model call its usage. One without a kind states usage, and none inside it does."""
    above: set[str] = set()
    for span_id, stated in trace.stated.items():
        outer = trace.spans[span_id].parent if stated.usage else ""
        while outer in trace.spans and outer not in above:
            above.add(outer)
            outer = trace.spans[outer].parent
    for span_id, stated in trace.stated.items():
        span = trace.spans[span_id]
        if stated.usage and not stated.has_kind and span_id not in above:
            span.kind = Kind.CALL
        if span.kind is Kind.CALL and len(stated.usage) == 1:
            ((span.model, used),) = stated.usage.items()
            span.columns = used.columns
            costs: Any = stated.costs.get(span.model) if isinstance(stated.costs, dict) else None
            parts = [stated_money((costs or {}).get(f"{part}_total_cost")) for part in _PRICED]
            if None not in parts[:2]:  # read and generated; little is read from a cache or written to one
                span.money = math.fsum(part or 0.0 for part in parts)


def _silence_scorers(spans: list[Span], example: str, scores: Iterable[str]) -> None:
    """Make judges of an example's scorers: functions by the name of a score, classes by their method `score`."""
    names = {name.partition(".")[0] for name in scores}
    for span in spans:
        if span.parent == example and (span.name in names or span.name.endswith(".score")):
            span.kind = Kind.JUDGE
