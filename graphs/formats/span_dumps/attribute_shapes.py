"""What spans mean, looked up once for all spans of one shape that say the same.

A shape is the keys of a span's attributes. It settles where counts of tokens and ids are to be found; of the texts that
decide what a span is, few combinations occur, and `otlp.dialects.meaning` is asked once for each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from msgspec import UnsetType

from graphs.formats.otlp.dialects import EMITTED, SESSIONS, BadAttribute, meaning
from graphs.formats.otlp.marks import PREFIX
from graphs.formats.otlp.wire import Attributes
from graphs.formats.span_columns.plain_spans import Codes

__all__ = ["Shape", "plan"]

_GENAI = (
    "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.response.model", "gen_ai.agent.name", "gen_ai.agent.id",
    "gen_ai.tool.name", *SESSIONS,
)  # fmt: skip
_INFERENCE = (
    "openinference.span.kind", "agent.name", "graph.node.name", "graph.node.id", "llm.model_name", "tool.name",
    *SESSIONS,
)  # fmt: skip
_PARTICULAR: dict[bool, dict[str, tuple[str, ...]]] = {
    False: {
        "tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        "call_id": ("gen_ai.tool.call.id",),
        "response": ("gen_ai.response.id",),
    },
    True: {
        "tokens": ("llm.token_count.completion",),
        "input_tokens": ("llm.token_count.prompt",),
        "call_id": ("tool.id", "tool_call.id"),
    },
}
_MESSAGES = "gen_ai.output.messages"
_MOST = 1 << 16  # remembered combinations of one shape


@dataclasses.dataclass(slots=True)
class Shape:
    """Where spans of one shape have what counts: keys of a span's own values, None where the shape has none."""

    stated: tuple[str, ...]
    tokens: str | None = None
    input_tokens: str | None = None
    call_id: str | None = None
    response: str | None = None
    messages: str | None = None
    emitted: tuple[str, ...] = ()
    pick: Callable[[Any], Any] = dict
    known: dict[Any, int] = dataclasses.field(default_factory=dict)

    def code(self, name: str | UnsetType | None, given: Attributes, meanings: Codes) -> int | None:
        """The code of what a span means, without what is its own; None where it needs a look of its own."""
        stated = {key: given[key] for key in self.stated}
        if any(type(value) is not str for value in stated.values()):
            return None
        key = name, self.pick(given)
        if key not in self.known:
            if len(self.known) >= _MOST:
                self.known.clear()
            try:
                self.known[key] = meanings[meaning(name or "", stated)]
            except BadAttribute:
                return None
        return self.known[key]


def plan(keys: tuple[str, ...]) -> Shape | None:
    """The shape of attributes with these keys; None where each span needs a look of its own."""
    together = "\n".join(keys)
    if any(sign in together for sign in (PREFIX, "evaluations.", "annotations.")):
        return None
    inference = "openinference.span.kind" in keys
    if "mlflow.spanType" in keys or (inference and any(key in keys for key in _GENAI[:2])):
        return None
    stated = tuple(key for key in (_INFERENCE if inference else _GENAI) if key in keys)
    emitted = tuple(sorted(filter(EMITTED.fullmatch, keys))) if inference else ()
    messages = _MESSAGES if not inference and _MESSAGES in keys else None
    shape = Shape(stated, messages=messages, emitted=emitted)
    for field, candidates in _PARTICULAR[inference].items():
        present = [key for key in candidates if key in keys]
        if field == "call_id" and len(present) > 1:  # the first may be empty
            return None
        setattr(shape, field, present[0] if present else None)
    shape.pick = itemgetter(*stated) if stated else _nothing
    return shape


def _nothing(_: object) -> None:
    return None
