"""Spans of Agent Lightning v0.1 to v0.3, written by several tracers: their kinds, and rewards.

Order is that of `sequence_id`: spans come from several machines, whose clocks differ.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.formats.agent_lightning.requests import place_rewards
from graphs.formats.common.faults import has_failed, named_fault
from graphs.formats.common.input_tokens import COUNT_ATTRIBUTES, first_count, read_counts, unlike
from graphs.formats.common.order_of_time import refuse_untimed
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.common.team_writing import write_spans
from graphs.formats.otlp.dialects import stopped_by
from graphs.reading.decode import decode, object_text
from graphs.reading.documents import Document
from graphs.reading.json_problems import not_a_number
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["TracedSpan", "write_traced"]

_ANNOTATION, _EMITTED = "agentlightning.annotation", "agentlightning.reward"
# AgentOps names a span after the function and the kind of its decorator, and `@reward` always wraps this function.
_OPERATIONS = ("agentops_reward_operation.task", "agentops_reward_operation.operation")
_REWARD = re.compile(r"agentlightning\.reward\.(\d+)\.(name|value)")
_FIELD = "attributes.agentlightning.reward"
_LINK = re.compile(r"agentlightning\.link\.(\d+)\.(key_match|value_match)")
_OUTPUTS = ("agentops.task.output", "agentops.entity.output")
_CALL = re.compile(r"openai\.chat\.completion|litellm_request|raw_gen_ai_request")
_KINDS = ("llm", "tool", "agent", "chain", "guardrail", "http", "operation", "session", "task", "team", "text",
          "unknown", "workflow")  # fmt: skip
"""AgentOps' kinds of spans."""
_TAKEN = ("team", "early")  # channels that this reader writes
_RESPONSE = ("gen_ai.response.id", "agentlightning.operation.output.id")


class _Status(msgspec.Struct):
    status_code: str | None = None
    description: Any = None


class TracedSpan(msgspec.Struct):
    """A span, with what is read of it."""

    rollout_id: str
    span_id: Annotated[str, msgspec.Meta(min_length=1)]
    sequence_id: int
    name: str
    attempt_id: str | None = None
    parent_id: str | None = None
    status: _Status | None = None
    attributes: dict[str, Any] | None = None
    start_time: float | None = None
    end_time: float | None = None


class _Output(msgspec.Struct):
    """What the decorator `@reward` returns, as AgentOps writes it; None where that was no number."""

    value: float | None


_SPAN = msgspec.json.Decoder(TracedSpan)
_OUTPUT = msgspec.json.Decoder(_Output)


class _Reward(NamedTuple):
    """A reward: its dimensions with the primary one first, its span, the call before it, its links, what orders it."""

    amounts: list[tuple[str, float]]
    span: Span
    latest: Span | None
    links: list[tuple[str, str]]
    moment: tuple[int, float]


def write_traced(record: TraceRecord, documents: list[Document]) -> None:
    """Fill the record with the spans of an attempt.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`, "bad-value" (a reward or a count that is no number),
        "unordered-events" (two calls at once in two files), "duplicate-span", "parent-cycle", "missing-parent".
    """
    spans: list[Span] = []
    rewards: list[_Reward] = []
    responses: dict[str, Span] = {}
    again: dict[str, Span] = {}  # the span of a call that was recorded before -> the first span of the call
    latest: Span | None = None
    calls: list[tuple[Span, tuple[int, float]]] = []
    for traced, document, moment in _in_order(documents, record.trace_id):
        span, attributes = _span(traced, document), traced.attributes or {}
        amounts = _amounts(traced, attributes, span, record)
        if amounts:
            rewards.append(_Reward(amounts, span, latest, _links(attributes), moment))
        elif span.kind is Kind.CALL:
            response = _first(attributes, _RESPONSE)
            if isinstance(response, str) and response in responses:
                span.kind = Kind.OTHER  # the proxy and the client both recorded it
                again[span.id] = responses[response]
            else:
                stated = {
                    field: [_count(attributes.get(name), name, span, record.trace_id) for name in names]
                    for field, names in COUNT_ATTRIBUTES.items()
                }
                tokens, *of_input = (first_count(*counts) for counts in stated.values())
                span.columns = span.columns | {"tokens": tokens} | read_counts(*of_input)
                span.unlike_counts, span.stopped = unlike(stated), stopped_by(attributes)
                latest = span
                calls.append((span, moment))
                if isinstance(response, str):
                    responses[response] = span
        spans.append(span)
    record.repeated = len(documents) - len(spans)
    for (before, earlier), (span, moment) in itertools.pairwise(calls):
        if moment == earlier and span.place.file != before.place.file:
            refuse_untimed(
                span.start if span.start > 0 else None, span.place, before.place, record.trace_id, "start_time"
            )
    if not any(span.kind is Kind.AGENT for span in spans):
        known = {span.id for span in spans}
        for span in spans:  # tracers lose parents; with a single agent it is clear whose work an orphan is
            span.parent = span.parent if span.parent in known else ""
    write_spans(record, spans, "agent", ("span_id", "parent_id"))
    _place(record, rewards, {span.id: span for span in reversed(spans)} | again, responses)


def _in_order(documents: list[Document], trace: str) -> list[tuple[TracedSpan, Document, tuple[int, float]]]:
    """The spans, decoded, by their sequence ids and then by time; one that stands twice, with equal content, once.

    The last part is what they are ordered by.
    """
    first: dict[str, TracedSpan] = {}
    spans: list[tuple[TracedSpan, Document]] = []
    for document in documents:
        raw, place = document
        traced = decode(_SPAN, raw, file=place.file, line=place.line, trace=trace)
        if first.setdefault(traced.span_id, traced) is traced or traced != first[traced.span_id]:
            spans.append((traced, document))
    are_timed = all(traced.start_time for traced, _ in spans)  # 0 is an unknown time
    moments = [(traced.sequence_id, (traced.start_time or 0.0) if are_timed else 0.0) for traced, _ in spans]
    placed = [(*pair, moment) for pair, moment in zip(spans, moments, strict=True)]
    return sorted(placed, key=lambda item: item[2])


def _span(traced: TracedSpan, document: Document) -> Span:
    attributes = traced.attributes or {}
    span = Span(traced.span_id, traced.parent_id or "", Kind.OTHER, document.place, name=traced.name)
    span.start = math.nan if traced.start_time is None else traced.start_time
    span.end = math.nan if traced.end_time is None else traced.end_time
    status = traced.status or _Status()
    if has_failed([status.status_code], attributes):
        span.failed, span.fault = True, named_fault(attributes.get("error.type"), status.description)
    kind, agent = attributes.get("agentops.span.kind"), _agent_name(traced.name, attributes)
    span.unknown = "" if kind in _KINDS else _text(kind)
    if _CALL.search(traced.name) or kind == "llm":
        span.kind = Kind.CALL
    elif kind == "tool":
        span.kind, span.name = Kind.TOOL, _text(attributes.get("operation.name")) or traced.name
    elif agent:
        span.kind, span.name = Kind.AGENT, agent
    return span


def _agent_name(name: str, attributes: dict[str, Any]) -> str:
    """The name of a span's agent, from the places where tracers put it."""
    names = [attributes.get("agent.name")]
    if attributes.get("agentops.span.kind") == "agent":
        names.append(attributes.get("operation.name"))
    names += [attributes.get(key) for key in ("recipient_agent_type", "langchain.chain.type", "executor.id")]
    if attributes.get("type") == "agent":
        names.append(attributes.get("agentlightning.operation.input.name"))
    if name.startswith("langchain.Chain."):
        names.append(attributes.get("lc_name"))
    return next((text for text in map(_text, names) if text), "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _first(attributes: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _count(value: Any, name: str, span: Span, trace: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COUNT:
        raise span.refuse("bad-value", f"attributes.{name}", value, f"a count, at most {LARGEST_COUNT}", trace)
    return value


def _amounts(
    traced: TracedSpan, attributes: dict[str, Any], span: Span, record: TraceRecord
) -> list[tuple[str, float]]:
    """The rewards that a span carries and their names, the primary one first; none where it is no reward.

    v0.3: `agentlightning.reward.N.name` and `.value` of an annotation; v0.2: `reward` of a span of that name, or of an
    annotation; v0.1: the output of the operation that `@reward` makes. Other spans state no reward, whatever their
    attributes say: a tool returns what the agent chooses.
    """
    named: list[tuple[str, Any]] = []
    if traced.name in (_ANNOTATION, _EMITTED):
        parts: dict[int, dict[str, Any]] = {}
        for key, value in attributes.items():
            match = _REWARD.fullmatch(key)
            if match and len(match[1]) < 10:
                parts.setdefault(int(match[1]), {})[match[2]] = value
        named = [(_text(parts[i].get("name")) or f"reward.{i}", parts[i].get("value")) for i in sorted(parts)]
        if not parts and attributes.get("reward") is not None:
            named = [("primary", attributes["reward"])]
    elif traced.name in _OPERATIONS:
        output = _operation_reward(attributes, span, record.trace_id)
        named = [] if output is None else [("primary", output)]
    stated: dict[str, Any] = {}
    for name, value in named:
        if not isinstance(value, bool) and not_a_number(value):  # a truth is 1 or 0, as in every format
            raise span.refuse("bad-value", _FIELD, value, "a finite number", record.trace_id)
        if stated.setdefault(name, value) != value:
            expected = f"{stated[name]!r}, which the reward has in the same span, or another name"
            record.unsettle("", _FIELD, f"{name!r} {value!r}", expected, span.place)
        if name in _TAKEN and name != named[0][0]:
            expected = "another name: the outcome and the rewards before the first call have these"
            raise span.refuse("bad-value", _FIELD, name, expected, record.trace_id)
    return [(name, float(value)) for name, value in stated.items()]


def _operation_reward(attributes: dict[str, Any], span: Span, trace: str) -> float | None:
    """The number in the output of a reward operation, an object or its JSON.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    name = next((name for name in _OUTPUTS if attributes.get(name) is not None), None)
    if name is None:
        return None
    output, (file, line, _) = attributes[name], span.place
    data = object_text(msgspec.json.encode(output))
    return decode(_OUTPUT, data, file=file, line=line, field=f"attributes.{name}", trace=trace).value


def _links(attributes: dict[str, Any]) -> list[tuple[str, str]]:
    """(attribute, value) pairs that all hold of the span which a reward is about."""
    parts: dict[str, dict[str, str]] = {}
    for key, value in attributes.items():
        match = _LINK.fullmatch(key)
        if match:
            parts.setdefault(match[1], {})[match[2]] = _text(value)
    return [(part.get("key_match", ""), part.get("value_match", "")) for part in parts.values()]


def _place(record: TraceRecord, rewards: list[_Reward], spans: dict[str, Span], responses: dict[str, Span]) -> None:
    """Write a reward that is linked to a call there; of the others the last is the outcome, with its further channels.

    One whose links lead to no span, or to several, is left out.

    Args:
      record: with its events.
      rewards: in order.
      spans: by id; of a call that was recorded twice, both ids lead to its first span.
      responses: the calls by response id.
    """
    position = {event_id: i for i, event_id in enumerate(record.ids)}
    free: list[tuple[str, float, int | None]] = []
    outcomes: list[_Reward] = []
    for reward in rewards:
        about = _linked(reward, spans, responses)
        if reward.links and about is None:
            shown = ", ".join(f"{key}={value}" for key, value in reward.links)
            expected = "the response id of a call of this attempt, or the id of one of its spans"
            record.leave_out("unknown-span", "attributes.agentlightning.link", shown, expected, reward.span.place)
            continue
        name, primary = reward.amounts[0]
        if about is not None and about.id in position:
            record.add_reward(position[about.id], primary)
            continue
        free.append((name, primary, position.get(reward.latest.id) if reward.latest else None))
        outcomes.append(reward)
    if outcomes:
        _unsettle_tied(outcomes, record)
        record.rewards |= dict(outcomes[-1].amounts[1:])
    place_rewards(record, free)


def _unsettle_tied(rewards: list[_Reward], record: TraceRecord) -> None:
    """Unsettle the outcome where two ordered rewards of two files are the last at once: their names state no order."""
    last = rewards[-1]
    for other in rewards[:-1]:
        apart = last.span.place.file != other.span.place.file
        if apart and other.moment == last.moment and other.amounts != last.amounts:
            expected = f"{other.amounts!r}, as in {other.span.place.file}, line {other.span.place.line}, or another "
            expected += "sequence_id or start_time: the last reward is the outcome"
            record.unsettle("team", _FIELD, repr(last.amounts), expected, last.span.place)


def _linked(reward: _Reward, spans: dict[str, Span], responses: dict[str, Span]) -> Span | None:
    """The span that a reward is about; None where its links lead to none, or to several."""
    linked: dict[str, Span | None] = {}
    for key, value in reward.links:
        if key in _RESPONSE or key == "span_id":
            about = spans.get(value) if key == "span_id" else responses.get(value)
            linked[about.id if about is not None else ""] = about
    return next(iter(linked.values())) if len(linked) == 1 else None
