"""What a span is, read from its attributes, by tables of their names.

OpenTelemetry GenAI: `gen_ai.operation.name` decides; spellings from 1.27 to the present are taken. Where the operation
is missing, a span that names the tool call that it answers is a tool, as Koog writes it, and one that names a requested
model is a model call, as it was before 1.27. any-agent writes `call_llm`.
A span with `gen_ai.handoff.to_agent` is a hand-off, whatever its operation: OpenTelemetry's and OpenLLMetry's
instrumentations give it different ones, and older ones none.
OpenInference: `openinference.span.kind` decides. A span of neither dialect, or of an operation unknown here, only gives
structure.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from graphs.formats.common.graph_nodes import OfNode
from graphs.formats.common.input_tokens import COUNT_ATTRIBUTES, first_count, unlike
from graphs.formats.common.money import stated_money
from graphs.formats.common.span_tree import Kind, kind_of
from graphs.formats.common.stop_reasons import states_reason, stop_reason
from graphs.formats.otlp.wire import Attributes, is_text, number, plain
from graphs.reading.json_problems import JSON_ERRORS

__all__ = [
    "BadAttribute", "Meaning", "graph_node", "meaning", "plain_or_text", "stopped_by", "without_session",
]  # fmt: skip


class _Names(NamedTuple):
    """Names of a dialect's attributes, the first that is there counts."""

    kinds: dict[str, Kind]
    operations: dict[Kind, str]  # with which the names of agents' and tools' spans begin
    agent: tuple[str, ...]
    agent_id: tuple[str, ...]
    role: tuple[str, ...]
    tool: tuple[str, ...]
    call_id: tuple[str, ...]
    model: tuple[str, ...]
    response_id: tuple[str, ...]


class _Settings(msgspec.Struct):
    """What a call of OpenInference states of its settings."""

    model: str | None = None


_GENAI = _Names(
    kinds={
        "invoke_agent": Kind.AGENT,
        **dict.fromkeys(("chat", "generate_content", "text_completion", "plan", "call_llm"), Kind.CALL),
        **dict.fromkeys(("execute_tool", "retrieval", "embeddings"), Kind.TOOL),
        # OpenTelemetry's, and those of Strands.
        **dict.fromkeys(("create_agent", "invoke_workflow"), Kind.OTHER),
        **dict.fromkeys(("execute_event_loop_cycle", "invoke_graph", "invoke_swarm"), Kind.OTHER),
    },
    operations={Kind.AGENT: "invoke_agent", Kind.TOOL: "execute_tool"},
    agent=("gen_ai.agent.name", "gen_ai.agent.id"),
    agent_id=("gen_ai.agent.id",),
    role=(),
    tool=("gen_ai.tool.name",),
    call_id=("gen_ai.tool.call.id",),
    model=("gen_ai.response.model", "gen_ai.request.model"),
    response_id=("gen_ai.response.id",),
)
_OPENINFERENCE = _Names(
    kinds={
        "AGENT": Kind.AGENT,
        "LLM": Kind.CALL,
        **dict.fromkeys(("TOOL", "RETRIEVER", "RERANKER", "EMBEDDING"), Kind.TOOL),
        "GUARDRAIL": Kind.GUARD,
        "EVALUATOR": Kind.JUDGE,
        **dict.fromkeys(("CHAIN", "PROMPT", "UNKNOWN"), Kind.OTHER),
    },
    operations={},
    agent=("agent.name",),
    agent_id=(),
    role=("graph.node.name", "graph.node.id"),
    tool=("tool.name",),
    call_id=("tool.id", "tool_call.id"),
    model=("llm.model_name",),
    response_id=(),
)
_EMBEDDING = ("embeddings", "EMBEDDING")
_REQUESTED = "gen_ai.request.model"
_TARGET = ("gen_ai.handoff.to_agent", "gen_ai.handoff.to_agent.name")  # which alone make a span a hand-off
_GIVER = ("gen_ai.handoff.from_agent", "gen_ai.handoff.from_agent.name")
_HANDOFF = (
    "handoff to "  # with which OpenInference's instrumentation of the OpenAI Agents SDK names a span of kind TOOL
)
_MEMORY = ("_memory", "_memory_store")  # ends of GenAI operations on memories, which are tools
_SESSIONS = ("gen_ai.conversation.id", "session.id", "gen_ai.session.id")
_COSTS = ("llm.cost.total", "gen_ai.usage.cost", "operation.cost")
_PARTS_OF_COST = ("llm.cost.prompt", "llm.cost.completion")
_REPLIES = ("gen_ai.output.messages", "output.value")
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_SETTINGS = msgspec.json.Decoder(_Settings)
_OF_NODE = msgspec.json.Decoder(OfNode)
_EMITTED = re.compile(r"llm\.output_messages\.\d+\.message\.tool_calls\.\d+\.tool_call\.id")


class BadAttribute(ValueError):
    """An attribute of the wrong type: `key`, its `value`, and what was `expected`."""

    def __init__(self, key: str, value: Any, expected: str) -> None:
        super().__init__(key)
        self.key, self.value, self.expected = key, value, expected


class Meaning(msgspec.Struct, frozen=True):
    """What a span says in a dialect; the fields are those of `graphs.formats.common.span_tree.Span`.

    `known` is False for a span of neither dialect; `response_id` is that of a model call. `asked` are
    digests of the arguments of the tool calls that it asked for, by their ids.
    """

    kind: Kind
    known: bool = True
    name: str = ""
    named: bool | None = None
    agent_id: str = ""
    role: str = ""
    target: str = ""
    giver: str = ""
    call_id: str = ""
    emitted: tuple[str, ...] = ()
    asked: dict[str, str] = {}
    decides: bool = False
    counts: dict[str, int | None] = {}
    unlike_counts: str = ""
    embedded: tuple[str, int] = ("", 0)
    response_id: str = ""
    stopped: Any = None
    model: str = ""
    requested: str = ""
    money: float | None = None
    unknown: str = ""


_UNKNOWN = Meaning(Kind.OTHER, known=False)
_STRUCTURE = Meaning(Kind.OTHER)


def meaning(span_name: str, attributes: Attributes) -> Meaning:
    """The meaning of a span with this name and these attributes.

    Raises:
      BadAttribute: an attribute that matters here has the wrong type.
    """
    target = _text(attributes, _TARGET)
    if target:
        return Meaning(Kind.HANDOFF, target=target, giver=_text(attributes, _GIVER))
    names, word = _GENAI, _text(attributes, ("gen_ai.operation.name",))
    if not word:
        names, word = _OPENINFERENCE, _text(attributes, ("openinference.span.kind",)).upper()
    if not word:
        is_tool = bool(_text(attributes, _GENAI.call_id))
        if not is_tool and not _text(attributes, (_REQUESTED,)):
            return _UNKNOWN
        names, word = _GENAI, "execute_tool" if is_tool else "chat"
    kind, unknown = kind_of(word, names.kinds)
    if unknown and names is _GENAI and word.endswith(_MEMORY):
        kind = Kind.TOOL
    if kind is Kind.CALL:
        found = {
            field: [_count(key, attributes.get(key)) for key in keys if key in attributes]
            for field, keys in COUNT_ATTRIBUTES.items()
        }
        listed = _emitted(attributes) if names is _OPENINFERENCE else _listed(attributes.get("gen_ai.output.messages"))
        counts, model = {field: first_count(*of) for field, of in found.items()}, _text(attributes, names.model)
        return Meaning(
            kind,
            giver=_text(attributes, names.agent[:1]),
            decides=word == "plan",
            counts=counts,
            unlike_counts=unlike(found),
            response_id=_text(attributes, names.response_id),
            stopped=stopped_by(attributes),
            model=model,
            requested=_requested(attributes, names, model, any(counts.values())),
            money=_money(attributes),
            emitted=tuple(listed),
            asked={call_id: arguments for call_id, arguments in listed.items() if arguments},
        )
    if names is _OPENINFERENCE and word == "TOOL" and span_name.startswith(_HANDOFF):
        return Meaning(Kind.HANDOFF, target=span_name.removeprefix(_HANDOFF))
    operation = names.operations.get(kind, "")
    rest = span_name.removeprefix(operation).strip() if operation else span_name
    if kind is Kind.TOOL:
        name = _text(attributes, names.tool) or rest or (word if operation else word.lower())
        return Meaning(
            kind,
            name=name,
            giver=_text(attributes, names.agent[:1]),
            call_id=_text(attributes, names.call_id),
            money=_money(attributes),
            embedded=_embedded(attributes, names) if word.startswith(_EMBEDDING) else ("", 0),
        )
    if kind is Kind.AGENT:
        agent_id, role = _text(attributes, names.agent_id), _text(attributes, names.role)
        words = [without_session(_text(attributes, (key,)), attributes) for key in names.agent]
        stated = next((word for word in words if word), "")
        return Meaning(
            kind,
            name=stated or without_session(rest, attributes) or "agent",
            named=bool(stated),
            agent_id=agent_id,
            role=role,
        )
    return Meaning(kind, unknown=unknown) if unknown else _STRUCTURE if kind is Kind.OTHER else Meaning(kind)


def _embedded(attributes: Attributes, names: _Names) -> tuple[str, int]:
    """The model of an embedding, and the tokens that it read."""
    read = first_count(*(_count(key, attributes.get(key)) for key in COUNT_ATTRIBUTES["input_tokens"]))
    return _text(attributes, (*names.model, "embedding.model_name")), read or 0


def _requested(attributes: Attributes, names: _Names, model: str, answered: bool) -> str:
    """The name by which a call asked for its model; "" where the answer names the same.

    OpenInference has one name, the answer's where there is one, and the requested one among the call's settings.
    """
    asked = attributes.get(_REQUESTED)
    if names is _OPENINFERENCE:
        settings, asked = attributes.get("llm.invocation_parameters"), None
        if isinstance(settings, str) and '"model"' in settings:
            with contextlib.suppress(*JSON_ERRORS):
                asked = _SETTINGS.decode(settings).model
    else:
        model, answered = _text(attributes, names.model[:1]), True
    return str(asked) if asked and is_text(asked) and not (answered and asked == model) else ""


def graph_node(attributes: Attributes) -> OfNode:
    """What a span states in its metadata, which may be JSON, of the node of LangGraph that it is within."""
    stated = attributes.get("metadata")
    if isinstance(stated, str) and "langgraph_node" in stated:
        with contextlib.suppress(*JSON_ERRORS):
            return _OF_NODE.decode(stated)
    name = attributes.get("metadata.langgraph_node")
    parts = (plain_or_text(attributes.get(f"metadata.langgraph_{part}")) for part in ("step", "triggers"))
    return OfNode(name, *parts) if isinstance(name, str) else OfNode()


def without_session(word: str, attributes: Attributes) -> str:
    """An agent's name without the id of one run, with which every run would have another name; "" for the id alone."""
    if not word:
        return ""
    return "" if word in [attributes.get(key) for key in _SESSIONS] else _UUID.sub("", word).strip(" .:_-/")


def _text(attributes: Attributes, keys: tuple[str, ...]) -> str:
    """The first of these attributes that is there and not empty."""
    for key in keys:
        value = attributes.get(key)
        if type(value) is str:
            if value:
                return value
        elif value is not None:
            if not is_text(value):
                raise BadAttribute(key, plain_or_text(value), "a string")
            if value:
                return str(value)
    return ""


def _count(key: str, value: Any) -> int | None:
    """A count; a double that is a whole number counts, as collectors write some."""
    if value is None or (type(value) is int and 0 <= value < 2**31):
        return value
    amount = number(value)
    if amount is None or not 0 <= amount < 2**31 or amount != int(amount):
        raise BadAttribute(key, plain_or_text(value), "an integer in [0, 2147483648)")
    return int(amount)


def stopped_by(attributes: Mapping[str, Any]) -> str | None:
    """Why a call's reply ended, by an attribute of whatever convention, else by what it gave."""
    stated = filter(
        states_reason, attributes if "eason" in "\n".join(attributes) else ()
    )  # one text is searched faster
    found = stop_reason({key: plain_or_text(attributes[key]) for key in stated})
    return found or stop_reason(*(plain_or_text(attributes.get(key)) for key in _REPLIES))


def _money(attributes: Attributes) -> float | None:
    """What a call cost: OpenInference has a sum or its two parts, OpenLIT and Pydantic AI a sum."""
    if "cost" not in "\n".join(attributes):  # one text is searched faster than each key
        return None
    amount = {key: stated_money(number(attributes.get(key))) for key in (*_COSTS, *_PARTS_OF_COST)}
    parts = [amount[key] for key in _PARTS_OF_COST]
    return stated_money(*(amount[key] for key in _COSTS), None if None in parts else sum(filter(None, parts)))


def plain_or_text(value: Any) -> Any:
    """A value for an error message: unpacked where that is possible."""
    try:
        return plain(value)
    except JSON_ERRORS:
        return "malformed"


def _emitted(attributes: Attributes) -> dict[str, str]:
    keys = [key for key in attributes if key.startswith("llm.output_messages.") and _EMITTED.fullmatch(key)]
    said = (attributes.get(f"{key.removesuffix('id')}function.arguments") for key in sorted(keys))
    return {_text(attributes, (key,)): _arguments(of) for key, of in zip(sorted(keys), said, strict=True)}


def _listed(messages: Any) -> dict[str, str]:
    """The tool calls in a list of messages, `gen_ai.output.messages`, as JSON text or as a structure: digests by id.

    Content is opt-in and often cut off by exporters' length limits; what does not parse counts as not there.
    """
    if messages is None:
        return {}
    try:
        unpacked = msgspec.json.decode(messages) if is_text(messages) else plain(messages)
    except JSON_ERRORS:
        return {}
    return dict(_calls_in(unpacked))


def _calls_in(messages: Any) -> Iterable[tuple[str, str]]:
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_call":
                call_id = part.get("id")
                if isinstance(call_id, str) and call_id:
                    yield call_id, _arguments(part.get("arguments"))


def _arguments(stated: Any) -> str:
    """A digest of arguments, whatever their spelling; "" without any, or where an exporter took them out."""
    if isinstance(stated, str):
        with contextlib.suppress(*JSON_ERRORS):
            stated = msgspec.json.decode(stated)
    if not isinstance(stated, str | dict) or not stated or stated == "__REDACTED__":
        return ""
    return hashlib.blake2b(msgspec.json.encode(stated, order="sorted"), digest_size=16).hexdigest()
