"""Observations of Langfuse as spans, and which of them are agents.

Langfuse has the type AGENT. Integrations use it also for a whole run or a session, which are no agents. The integration
of LangGraph writes nodes as SPAN, with the name of the node in the metadata.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from graphs.formats.common.faults import has_failed, named_fault
from graphs.formats.common.graph_nodes import OfNode, keep_agents, node_of
from graphs.formats.common.input_tokens import first_count, known_sum
from graphs.formats.common.money import stated_money
from graphs.formats.common.span_tree import Kind, Span, kind_of
from graphs.formats.common.stop_reasons import stop_reason
from graphs.formats.otlp.dialects import without_session
from graphs.reading.decode import decode, decode_record, object_text
from graphs.reading.documents import Document, Place
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT

__all__ = ["Observation", "Statement", "settle_agents", "span_of", "statement_of"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]

_TOOL_NODE = "tools"  # the node of LangGraph in which each SPAN is a tool
# Steps of LangGraph.js that write a node's result and choose the next node; they stand beside the tools in their node.
_OF_LANGGRAPH = re.compile(r"(?:ChannelWrite|ChannelRead|Branch)<")
_CACHES = ("input_cache", "cache_", "cached_")
_KINDS_OF_TOKENS = ("input", "output", *_CACHES)  # how their names begin
_WORKFLOW = "workflow"  # `target` of an agent's span that may be a whole run, until `settle_agents`

_EMBEDDING = "EMBEDDING"
_KINDS = {
    "AGENT": Kind.AGENT,
    "GENERATION": Kind.CALL,
    "TOOL": Kind.TOOL,
    "RETRIEVER": Kind.TOOL,
    _EMBEDDING: Kind.TOOL,
    "GUARDRAIL": Kind.GUARD,
    "EVALUATOR": Kind.GUARD,
    **dict.fromkeys(("SPAN", "EVENT", "CHAIN", ""), Kind.OTHER),
}


class _Total(msgspec.Struct):
    """Usage as older servers state it, of all kinds together."""

    input: _Count | None = None
    output: _Count | None = None
    unit: str | None = None


def _counts(kinds: Mapping[str, int | None]) -> dict[str, int | None]:
    """Tokens by the words that kinds of them begin with, as Langfuse adds them up: none is part of another."""
    of_cache = {kind for kind in kinds if kind.startswith(_CACHES)}
    written = {kind for kind in of_cache if "creation" in kind or "write" in kind}
    read = {kind for kind in kinds if kind.startswith("input")} | of_cache

    def total(names: Iterable[str]) -> int | None:
        return known_sum(*(kinds[name] for name in names))

    output = (kind for kind in kinds if kind.startswith("output"))
    return {
        "tokens": total(output),
        "input_tokens": total(read),
        "cached_tokens": total(of_cache - written),
        "cache_write_tokens": total(written),
    }


def _positive(count: Any) -> int | None:
    return count if type(count) is int and 0 < count <= LARGEST_COUNT else None


class _Metadata(OfNode):
    attributes: msgspec.Raw = msgspec.Raw(b"null")


class Observation(msgspec.Struct):
    """An observation, with what is read of it."""

    id: _Id
    trace: _Id = msgspec.field(name="traceId")
    type: str
    name: str | None = None
    parent: str | None = msgspec.field(default=None, name="parentObservationId")
    start: datetime.datetime | None = msgspec.field(default=None, name="startTime")
    end: datetime.datetime | None = msgspec.field(default=None, name="endTime")
    level: str | None = None
    message: Any = msgspec.field(default=None, name="statusMessage")
    model: str | None = None
    usage: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="usageDetails")
    total: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="usage")
    prompt: Any = msgspec.field(default=None, name="promptTokens")
    completion: Any = msgspec.field(default=None, name="completionTokens")
    costs: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="costDetails")
    cost: Any = msgspec.field(default=None, name="totalCost")
    calculated: Any = msgspec.field(default=None, name="calculatedTotalCost")  # before version 3 of the server
    metadata: msgspec.Raw = msgspec.Raw()
    output: msgspec.Raw = msgspec.Raw()
    version: str | None = None
    release: str | None = None


_OBSERVATION = msgspec.json.Decoder(Observation)
_METADATA = msgspec.json.Decoder(_Metadata)
_ATTRIBUTES = msgspec.json.Decoder(dict[str, Any])
_PATH, _BY_PATH = "attributes.", b'"attributes.'  # version 4 of the server keeps each value of metadata by its path
_DETAILS = msgspec.json.Decoder(dict[str, Any] | None)
_USAGE = msgspec.json.Decoder(dict[str, _Count | None])
_TOTAL = msgspec.json.Decoder(_Total)


class Statement(msgspec.Struct, gc=False):
    """The fields of one copy of an observation, with its place; None where the copy leaves a field out.

    Langfuse's download lists each observation twice, one copy without metadata.
    """

    id: str
    place: Place
    type: str
    name: str | None
    parent: str | None
    start: float | None
    end: float | None
    level: str | None
    message: str | None
    model: str | None
    tokens: int | None
    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    money: float | None
    node: OfNode | None
    attributes: dict[str, Any] | None
    stopped: str | None
    system: str | None  # the version, which a trace without one of its own has from its root, or the release

    def filled(self, other: Statement) -> Statement:
        """This copy, with the fields that it leaves out taken from another copy."""
        absent = (name for name in self.__struct_fields__ if getattr(self, name) is None)
        return msgspec.structs.replace(self, **{name: getattr(other, name) for name in absent})


def statement_of(document: Document, trace: str) -> Statement:
    """What an observation of a trace states.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    raw, place = document
    where: dict[str, Any] = {"file": place.file, "line": place.line, "trace": trace}
    observation = decode_record(_OBSERVATION, raw, **where)
    node, attributes, stopped = None, None, None
    counts: dict[str, int | None] = {}
    metadata = object_text(observation.metadata) if observation.metadata else b""
    if metadata.startswith(b"{"):
        of_node = decode(_METADATA, metadata, field="metadata", **where)
        node = OfNode(of_node.langgraph_node, of_node.langgraph_step, of_node.langgraph_triggers)
        asked = observation.type in ("AGENT", "SPAN") or b"error.type" in metadata
        text = object_text(of_node.attributes) if asked else b""
        if text.startswith(b"{"):
            attributes = decode(_ATTRIBUTES, text, field="metadata.attributes", **where)
        elif text and _BY_PATH in metadata:
            values = decode(_ATTRIBUTES, metadata, field="metadata", **where).items()
            attributes = {name.removeprefix(_PATH): value for name, value in values if name.startswith(_PATH)}
    if observation.type in ("GENERATION", _EMBEDDING):
        details = object_text(observation.usage) if observation.usage else b"null"
        stated = decode(_DETAILS, details, field="usageDetails", **where) or {}
        known = {kind: count for kind, count in stated.items() if kind.startswith(_KINDS_OF_TOKENS)}
        if any(type(count) is not int or not 0 <= count <= LARGEST_COUNT for count in known.values()):
            known = decode(_USAGE, msgspec.json.encode(known), field="usageDetails", **where)
        counts = _counts(known)
        text = object_text(observation.total) if observation.total else b""
        whole = decode(_TOTAL, text, field="usage", **where) if text.startswith(b"{") else _Total()
        whole = _Total() if whole.unit not in (None, "TOKENS") else whole
        # Servers write 0 for what they do not know, and their sums leave out what Anthropic names beside the input.
        counts["tokens"] = first_count(counts["tokens"], whole.output or _positive(observation.completion))
        counts["input_tokens"] = first_count(counts["input_tokens"], whole.input or _positive(observation.prompt))
        stopped = stop_reason(object_text(observation.output) if observation.output else b"", metadata)
    text = object_text(observation.costs) if observation.costs else b""
    costs = decode(_ATTRIBUTES, text, field="costDetails", **where) if text.startswith(b"{") else {}
    money = stated_money(observation.cost, costs.get("total"), observation.calculated)
    return Statement(
        observation.id,
        place,
        sys.intern(observation.type),  # texts that most observations share
        None if observation.name is None else sys.intern(observation.name),
        observation.parent,
        None if observation.start is None else seconds(observation.start),
        None if observation.end is None else seconds(observation.end),
        observation.level,
        observation.message if observation.level == "ERROR" and isinstance(observation.message, str) else None,
        observation.model,
        counts.get("tokens"),
        counts.get("input_tokens"),
        counts.get("cached_tokens"),
        counts.get("cache_write_tokens"),
        money,
        node,
        attributes,
        stopped,
        observation.version or observation.release,
    )


def span_of(stated: Statement) -> Span:
    """The span that an observation is."""
    kind, unknown = kind_of(stated.type, _KINDS)
    span = Span(stated.id, stated.parent or "", kind, stated.place, name=stated.name or "", unknown=unknown)
    node = stated.node or OfNode()
    if kind in (Kind.OTHER, Kind.AGENT) and span.name and node.langgraph_node == span.name:
        span.kind, span.instance, span.node = Kind.AGENT, f"{span.parent}:{span.name}", node_of(span.parent, node)
    elif kind is Kind.OTHER and node.langgraph_node == _TOOL_NODE and not _OF_LANGGRAPH.match(span.name):
        span.kind = Kind.TOOL
    elif kind is Kind.AGENT and not span.name:
        span.name = "agent"
    if stated.attributes is not None:
        _read_attributes(span, stated.attributes)
    span.start = math.nan if stated.start is None else stated.start
    span.end = math.nan if stated.end is None else stated.end
    of_otel = stated.attributes or {}
    if has_failed([stated.level], of_otel):
        span.failed, span.fault = True, named_fault(of_otel.get("error.type"), stated.message)
    if kind is Kind.CALL:
        span.columns = {
            "tokens": stated.tokens,
            "input_tokens": stated.input_tokens,
            "cached_tokens": stated.cached_tokens,
            "cache_write_tokens": stated.cache_write_tokens,
        }
        span.model, span.stopped = stated.model or "", stated.stopped
    if stated.type == _EMBEDDING:
        span.embedded = stated.model or "", stated.input_tokens or 0
    if kind is Kind.CALL or span.kind is Kind.TOOL:
        span.money = stated.money
    return span


def _read_attributes(span: Span, attributes: dict[str, Any]) -> None:
    """What the attributes of OpenTelemetry say: a span may be a tool, an agent a whole run, or its name a session's id.

    OpenInference marks the root of a run as an agent; of its agents only that root has neither a name nor a node.
    Langfuse makes the creation of an agent an agent, too; in Koog it holds the run of that agent.
    """
    if span.kind is Kind.OTHER and attributes.get("gen_ai.tool.call.id"):
        span.kind, span.name = Kind.TOOL, str(attributes.get("gen_ai.tool.name") or span.name)
    if span.kind is not Kind.AGENT:
        return
    if attributes.get("gen_ai.operation.name") == "create_agent":
        span.kind = Kind.OTHER
    if "openinference.span.kind" in attributes and not span.parent:
        is_named = attributes.get("agent.name") or attributes.get("graph.node.id")
        span.target = "" if is_named else _WORKFLOW
    operation = "invoke_agent " if span.name.startswith("invoke_agent ") else ""
    name = without_session(span.name.removeprefix(operation), attributes)
    span.name = f"{operation}{name}" if name else "agent"


def settle_agents(spans: list[Span], askers: frozenset[str]) -> None:
    """Decide, from all spans of a trace in the order of their times, which are agents and whose the tools are.

    `askers` is as of `keep_agents`.
    """
    runs = [span for span in spans if span.kind is Kind.AGENT and span.target == _WORKFLOW]
    parents = {span.parent for span in spans} if runs else set()
    acting = {span.parent for span in spans if span.kind is not Kind.AGENT} if runs else set()
    for span in runs:
        if span.id in parents and span.id not in acting:  # it holds agents, and nothing else
            span.kind = Kind.OTHER
        span.target = ""
    keep_agents(spans, askers)
