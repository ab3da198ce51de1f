"""Spans of Agent Lightning v0.1 to v0.3, written by several tracers: their kinds, and rewards.

Order is that of `sequence_id`: spans come from several machines, whose clocks differ.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.formats.agent_lightning.requests import add_reward, place_rewards
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.common.team_writing import write_spans
from graphs.reading.decode import decode
from graphs.reading.documents import Document
from graphs.reading.json_problems import not_a_number, untyped
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["write_traced"]

_ANNOTATION = "agentlightning.annotation"
_REWARD = re.compile(r"agentlightning\.reward\.(\d+)\.(name|value)")
_LINK = re.compile(r"agentlightning\.link\.(\d+)\.(key_match|value_match)")
_OUTPUTS = ("agentops.task.output", "agentops.entity.output")
_CALL = re.compile(r"openai\.chat\.completion|litellm_request|raw_gen_ai_request")
_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_TAKEN = ("team", "early")  # channels that this reader writes
_RESPONSE = ("gen_ai.response.id", "agentlightning.operation.output.id")


class _Status(msgspec.Struct):
    status_code: str | None = None


class _Wire(msgspec.Struct):
    span_id: Annotated[str, msgspec.Meta(min_length=1)]
    sequence_id: int
    name: str
    parent_id: str | None = None
    status: _Status | None = None
    attributes: dict[str, Any] | None = None
    start_time: float | None = None
    end_time: float | None = None


_WIRE = msgspec.json.Decoder(_Wire)


class _Given(NamedTuple):
    """A reward: its dimensions with the primary one first, its span, the call before it, and its links."""

    amounts: list[tuple[str, float]]
    span: Span
    latest: Span | None
    links: list[tuple[str, str]]


def write_traced(record: TraceRecord, documents: list[Document]) -> None:
    """Fill the record with the spans of an attempt.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`, "bad-value" (a reward or a count that is no number),
        "disagreeing-rewards" (two numbers of one name), "unknown-span" (a reward linked to none), "duplicate-span",
        "parent-cycle", "missing-parent".
    """
    read = [(_decode(document, record.trace_id), document) for document in documents]
    timed = all(wire.start_time for wire, _ in read)  # 0 is an unknown time
    read.sort(key=lambda pair: (pair[0].sequence_id, (pair[0].start_time or 0.0) if timed else 0.0))
    spans: list[Span] = []
    rewards: list[_Given] = []
    responses: dict[str, Span] = {}
    again: dict[str, Span] = {}  # the span of a call that was recorded before -> the first span of the call
    latest: Span | None = None
    for wire, document in read:
        span, given = _span(wire, document), wire.attributes or {}
        amounts = _amounts(wire, given, span, record.trace_id)
        if amounts:
            rewards.append(_Given(amounts, span, latest, _links(given)))
        elif span.kind is Kind.CALL:
            response = _first(given, _RESPONSE)
            if isinstance(response, str) and response in responses:
                span.kind = Kind.OTHER  # the proxy and the client both recorded it
                again[span.id] = responses[response]
            else:
                for key, names in (("tokens", _TOKENS), ("input_tokens", _INPUT_TOKENS)):
                    span.columns[key] = _count(_first(given, names), names[0], span, record.trace_id)
                latest = span
                if isinstance(response, str):
                    responses[response] = span
        spans.append(span)
    if not any(span.kind is Kind.AGENT for span in spans):
        known = {span.id for span in spans}
        for span in spans:  # tracers lose parents; with a single agent it is clear whose work an orphan is
            span.parent = span.parent if span.parent in known else ""
    write_spans(record, spans, "agent", ("span_id", "parent_id"))
    _place(record, rewards, {span.id: span for span in reversed(spans)} | again, responses)


def _decode(document: Document, trace: str) -> _Wire:
    return decode(_WIRE, document.raw, file=document.place.file, line=document.place.line, trace=trace)


def _span(wire: _Wire, document: Document) -> Span:
    given = wire.attributes or {}
    span = Span(wire.span_id, wire.parent_id or "", Kind.OTHER, document.place, name=wire.name)
    span.start = math.nan if wire.start_time is None else wire.start_time
    span.end = math.nan if wire.end_time is None else wire.end_time
    span.failed = wire.status is not None and wire.status.status_code == "ERROR"
    kind, agent = given.get("agentops.span.kind"), _agent_name(wire.name, given)
    if _CALL.search(wire.name) or kind == "llm":
        span.kind = Kind.CALL
    elif kind == "tool":
        span.kind, span.name = Kind.TOOL, _text(given.get("operation.name")) or wire.name
    elif agent:
        span.kind, span.name = Kind.AGENT, agent
    return span


def _agent_name(name: str, given: dict[str, Any]) -> str:
    """The name of the agent that a span is of, in the places where the tracers put it."""
    names = [given.get("agent.name")]
    if given.get("agentops.span.kind") == "agent":
        names.append(given.get("operation.name"))
    names += [given.get("recipient_agent_type"), given.get("langchain.chain.type"), given.get("executor.id")]
    if given.get("type") == "agent":
        names.append(given.get("agentlightning.operation.input.name"))
    if name.startswith("langchain.Chain."):
        names.append(given.get("lc_name"))
    return next((text for text in map(_text, names) if text), "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _first(given: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _count(value: Any, name: str, span: Span, trace: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COUNT:
        raise span.refuse("bad-value", f"attributes.{name}", value, f"a count, at most {LARGEST_COUNT}", trace)
    return value


def _amounts(wire: _Wire, given: dict[str, Any], span: Span, trace: str) -> list[tuple[str, float]]:
    """The rewards that a span carries and their names, the primary one first; none where it is no reward.

    v0.3: `agentlightning.reward.N.name` and `.value`; v0.2: `reward` of an annotation; v0.1: the JSON
    `{"type": "reward", "value": ...}` as the output of an operation.
    """
    parts: dict[int, dict[str, Any]] = {}
    for key, value in given.items():
        match = _REWARD.fullmatch(key)
        if match and len(match[1]) < 10:
            parts.setdefault(int(match[1]), {})[match[2]] = value
    if parts:
        named = [(_text(parts[i].get("name")) or f"reward.{i}", parts[i].get("value")) for i in sorted(parts)]
    elif wire.name == _ANNOTATION and given.get("reward") is not None:
        named = [("primary", given["reward"])]
    else:
        named = [("primary", value) for value in [_operation_reward(given)] if value is not None]
    stated: dict[str, Any] = {}
    for name, value in named:
        if not_a_number(value):
            raise span.refuse("bad-value", "attributes.agentlightning.reward", value, "a finite number", trace)
        if stated.setdefault(name, value) != value:
            expected = f"{stated[name]!r}, which the reward has in the same span, or another name"
            raise span.refuse(
                "disagreeing-rewards", f"attributes.agentlightning.reward {name!r}", value, expected, trace
            )
        if name in _TAKEN and name != named[0][0]:
            expected = "another name: the outcome and the rewards before the first call have these"
            raise span.refuse("bad-value", "attributes.agentlightning.reward", name, expected, trace)
    return [(name, float(value)) for name, value in stated.items()]


def _operation_reward(given: dict[str, Any]) -> Any:
    output = _first(given, _OUTPUTS)
    if isinstance(output, str):
        output = untyped(output.encode("utf-8", "replace"))
    return output.get("value") if isinstance(output, dict) and output.get("type") == "reward" else None


def _links(given: dict[str, Any]) -> list[tuple[str, str]]:
    """(attribute, value) pairs that all hold of the span which a reward is about."""
    parts: dict[str, dict[str, str]] = {}
    for key, value in given.items():
        match = _LINK.fullmatch(key)
        if match:
            parts.setdefault(match[1], {})[match[2]] = _text(value)
    return [(part.get("key_match", ""), part.get("value_match", "")) for part in parts.values()]


def _place(record: TraceRecord, rewards: list[_Given], spans: dict[str, Span], responses: dict[str, Span]) -> None:
    """A reward linked to a call is a reward there; of the others the last is the outcome, with its further channels."""
    position = {event_id: i for i, event_id in enumerate(record.ids)}
    free: list[tuple[float, int | None]] = []
    outcome: list[tuple[str, float]] = []
    for given in rewards:
        about = _linked(given, spans, responses, record.trace_id)
        primary = given.amounts[0][1]
        if about is not None and about.id in position:
            add_reward(record, position[about.id], primary)
            continue
        free.append((primary, position.get(given.latest.id) if given.latest else None))
        outcome = given.amounts
    record.rewards |= dict(outcome[1:])
    place_rewards(record, free)


def _linked(given: _Given, spans: dict[str, Span], responses: dict[str, Span], trace: str) -> Span | None:
    """The span that a reward is about; None without a link.

    Raises:
      TraceError: "unknown-span", its links lead to no span or to several.
    """
    linked: dict[str, Span | None] = {}
    for key, value in given.links:
        if key in _RESPONSE or key == "span_id":
            about = spans.get(value) if key == "span_id" else responses.get(value)
            linked[about.id if about is not None else ""] = about
    if len(linked) == 1 and "" not in linked:
        return next(iter(linked.values()))
    if given.links:
        shown = ", ".join(f"{key}={value}" for key, value in given.links)
        expected = "the response id of a call of this attempt, or the id of one of its spans"
        raise given.span.refuse("unknown-span", "attributes.agentlightning.link", shown, expected, trace)
    return None
