"""What a span is, read from its attributes: OpenTelemetry GenAI or OpenInference, detected for each span.

OpenTelemetry GenAI conventions: `gen_ai.operation.name` decides; spellings from 1.27 to the present are taken. Where
the operation is missing, a span that names a requested model is a model call, as it was before 1.27. OpenInference:
`openinference.span.kind` decides. A span of neither dialect, or of an operation unknown here, only gives structure.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from graphs.formats.otlp.wire import Attributes, is_text, number, plain
from graphs.reading.json_problems import JSON_ERRORS

__all__ = ["EMITTED", "SESSIONS", "BadAttribute", "Kind", "Meaning", "emitted_ids", "is_session", "meaning"]


class Kind(enum.Enum):
    """The role of a span in the event graph."""

    AGENT = "agent"  # one activation of an agent: an agent instance
    CALL = "call"  # a model call, or a plan
    TOOL = "tool"  # a tool, a retriever, a memory, an embedding
    GUARD = "guard"  # a guardrail: a safety event
    JUDGE = "judge"  # an evaluator: outside the team, like all that happens inside it
    OTHER = "other"  # structure only


class BadAttribute(ValueError):
    """An attribute of the wrong type: `key`, its `value`, and what was `expected`."""

    def __init__(self, key: str, value: Any, expected: str) -> None:
        super().__init__(key)
        self.key, self.value, self.expected = key, value, expected


class Meaning(NamedTuple):
    """The parts of a span that belong to no dialect.

    `name` is the agent's or the tool's; `named` is True if an agent's came from an attribute. `call_id` is the tool
    call that a tool span answers, `emitted` those that a model call asked for. `known` is False for a span of neither
    dialect.
    """

    kind: Kind
    known: bool = True
    name: str = ""
    named: bool = False
    agent_id: str = ""
    role: str = ""
    call_id: str = ""
    emitted: tuple[str, ...] = ()
    decides: bool = False
    tokens: int | None = None
    input_tokens: int | None = None
    response_id: str = ""
    model: str = ""


_CALLS = frozenset({"chat", "generate_content", "text_completion", "plan", "call_llm"})  # the last is any-agent's
_TOOLS = frozenset({"execute_tool", "retrieval", "embeddings"})
_INFERENCE = {
    "AGENT": Kind.AGENT,
    "LLM": Kind.CALL,
    "TOOL": Kind.TOOL,
    "RETRIEVER": Kind.TOOL,
    "RERANKER": Kind.TOOL,
    "EMBEDDING": Kind.TOOL,
    "GUARDRAIL": Kind.GUARD,
    "EVALUATOR": Kind.JUDGE,
    "CHAIN": Kind.OTHER,
    "PROMPT": Kind.OTHER,
}
SESSIONS = ("gen_ai.conversation.id", "session.id", "gen_ai.session.id")
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
EMITTED = re.compile(r"llm\.output_messages\.\d+\.message\.tool_calls\.\d+\.tool_call\.id")


def meaning(span_name: str, given: Attributes) -> Meaning:
    """The meaning of a span with this name and these attributes.

    Raises:
      BadAttribute: an attribute that matters here has the wrong type.
    """
    operation = _text(given, "gen_ai.operation.name")
    if operation:
        return _genai(operation, span_name, given)
    kind = _text(given, "openinference.span.kind")
    if kind:
        return _openinference(kind.upper(), span_name, given)
    if _text(given, "gen_ai.request.model"):
        return _genai("chat", span_name, given)
    return Meaning(Kind.OTHER, known=False)


def _genai(operation: str, span_name: str, given: Attributes) -> Meaning:
    if operation == "invoke_agent":
        name, agent_id = _text(given, "gen_ai.agent.name"), _text(given, "gen_ai.agent.id")
        fallback = span_name.removeprefix("invoke_agent").strip()
        stated = next((word for word in (name, agent_id) if word and not is_session(word, given)), "")
        name = stated or ("agent" if not fallback or is_session(fallback, given) else fallback)
        return Meaning(Kind.AGENT, name=name, named=bool(stated), agent_id=agent_id)
    if operation in _CALLS:
        return Meaning(
            Kind.CALL,
            decides=operation == "plan",
            tokens=_count(given, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
            input_tokens=_count(given, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
            response_id=_text(given, "gen_ai.response.id"),
            model=_text(given, "gen_ai.response.model", "gen_ai.request.model"),
            emitted=emitted_ids(given.get("gen_ai.output.messages")),
        )
    if operation in _TOOLS or operation.endswith(("_memory", "_memory_store")):
        name = _text(given, "gen_ai.tool.name") or span_name.removeprefix("execute_tool").strip() or operation
        return Meaning(Kind.TOOL, name=name, call_id=_text(given, "gen_ai.tool.call.id"))
    return Meaning(Kind.OTHER)


def _openinference(inference_kind: str, span_name: str, given: Attributes) -> Meaning:
    kind = _INFERENCE.get(inference_kind, Kind.OTHER)
    if kind is Kind.AGENT:
        words = _text(given, "agent.name"), span_name
        stated, fallback = ("" if is_session(word, given) else word for word in words)
        role = _text(given, "graph.node.name", "graph.node.id")
        return Meaning(kind, name=stated or fallback or "agent", named=bool(stated), role=role)
    if kind is Kind.CALL:
        keys = sorted(filter(EMITTED.fullmatch, given))
        return Meaning(
            kind,
            tokens=_count(given, "llm.token_count.completion"),
            input_tokens=_count(given, "llm.token_count.prompt"),
            emitted=tuple(_text(given, key) for key in keys),
            model=_text(given, "llm.model_name"),
        )
    if kind is Kind.TOOL:
        name = _text(given, "tool.name") or span_name or inference_kind.lower()
        return Meaning(kind, name=name, call_id=_text(given, "tool.id", "tool_call.id"))
    return Meaning(kind)


def is_session(word: str, given: Attributes) -> bool:
    """Whether what stands for an agent's name is the id of one run of it, which would name every run differently."""
    return _UUID.fullmatch(word) is not None or word in [given.get(key) for key in SESSIONS]


def _text(given: Attributes, *keys: str) -> str:
    """The first of these attributes that is there and not empty."""
    for key in keys:
        value = given.get(key)
        if type(value) is str:
            if value:
                return value
        elif value is not None:
            if not is_text(value):
                raise BadAttribute(key, plain_or_text(value), "a string")
            if value:
                return str(value)
    return ""


def _count(given: Attributes, *keys: str) -> int | None:
    """The first of these attributes that is there; a double that is a whole number counts, as collectors write some."""
    for key in keys:
        value = given.get(key)
        if value is not None:
            if type(value) is int and 0 <= value < 2**31:
                return value
            amount = number(value)
            if amount is None or not 0 <= amount < 2**31 or amount != int(amount):
                raise BadAttribute(key, plain_or_text(value), "an integer in [0, 2147483648)")
            return int(amount)
    return None


def plain_or_text(value: Any) -> Any:
    """A value for an error message: unpacked where that is possible."""
    try:
        return plain(value)
    except JSON_ERRORS:
        return "malformed"


def emitted_ids(messages: Any) -> tuple[str, ...]:
    """Ids of the tool calls in a list of messages: `gen_ai.output.messages`, as JSON text or as a structure.

    Content is opt-in and often cut off by exporters' length limits; what does not parse counts as not there.
    """
    if messages is None:
        return ()
    try:
        unpacked = msgspec.json.decode(messages) if is_text(messages) else plain(messages)
    except JSON_ERRORS:
        return ()
    return tuple(_ids_in(unpacked))


def _ids_in(messages: Any) -> Iterable[str]:
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_call":
                call_id = part.get("id")
                if isinstance(call_id, str) and call_id:
                    yield call_id
