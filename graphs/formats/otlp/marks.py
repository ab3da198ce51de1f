"""Marks: attributes with the prefix `orchestration_credit.`, for content without an OpenTelemetry convention.

The writer adds marks only where no convention applies; instrumentation may also set them. `docs/formats/otlp.md` lists
them with their meaning. This module has their names and checks their types.
"""

from __future__ import annotations

import math
from typing import Any

from graphs.event_types import EdgeType, EventType
from graphs.formats.otlp.wire import is_text, number
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TEXT_COLUMNS, TRACE_EVIDENCE

__all__ = ["EDGE", "END", "EVENT", "PREFIX", "SCALARS", "BadMark", "check_mark", "is_of_trace"]

PREFIX = "orchestration_credit."
EVENT = "event."  # of the event at the start of a span, or of a span event
END = "end."  # of the event at the end of a span: a return, a tool result
EDGE = "edge."  # of the edge that a span link stands for

SCALARS: dict[str, str] = {
    "version": "text",
    "group": "text",
    "channel": "text",
    "edges": "text",
    "trace.id": "text",
    "topology": "text",
    "system": "text",
    "task_kind": "text",
    "model": "text",
    "error": "text",
    "agent.id": "text",
    "agent.index": "count",
    "agent.role": "text",
}
"""Marks of a trace, an agent or an evaluation, with the kind of their value."""

_OF_EVENT: dict[str, str] = {
    "id": "text",
    "index": "count",
    "type": "type",
    "action": "bool",
    "agent": "text",
    "turn": "count",
    "time": "float",
    "trusted": "bool",
    **dict.fromkeys(TEXT_COLUMNS, "text"),
    **{name: key.kind for name, key in EVENT_EVIDENCE.items() if name != "event_reward"},  # an evaluation carries it
    **dict.fromkeys(FLAGS, "flag"),
}
_OF_EDGE: dict[str, str] = {"index": "count", "type": "edge", "from": "text", "to": "text"}
_EXPECTED = {
    "text": "a string",
    "id": "a string",
    "bool": "a boolean",
    "flag": "a boolean, or a finite number",
    "count": "an integer, 0 or more",
    "float": "a finite number",
    "type": "one of " + ", ".join(t.name.lower() for t in EventType),
    "edge": "one of " + ", ".join(t.name.lower() for t in EdgeType),
}
_OF_TRACE = frozenset({"version", "group", "trace.id", "topology", "system", "task_kind", "model", "edges", "error"})
_NUMBERS = ("evidence.", "costs.", "metrics.")


class BadMark(ValueError):
    """A mark of the wrong type; `expected` names the right one."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


def is_of_trace(name: str) -> bool:
    """Whether the mark holds for the trace, on whichever of its spans or their resources it is."""
    return name in _OF_TRACE or name.startswith(_NUMBERS)


def check_mark(name: str, value: Any) -> Any:
    """The value of the mark `name` (without the prefix) as a Python value; types and edges as their enumerations.

    Raises:
      BadMark: the value is not of the mark's kind, or there is no such mark.
    """
    kind = _kind(name)
    if kind is None:
        raise BadMark("a mark listed in docs/formats/otlp.md")
    checked = _checked(kind, value)
    if checked is None:
        raise BadMark(_EXPECTED[kind])
    return checked


def _kind(name: str) -> str | None:
    if name in SCALARS:
        return SCALARS[name]
    family, _, rest = name.partition(".")
    if family in ("event", "end"):
        return _OF_EVENT.get(rest)
    if family == "edge":
        return _OF_EDGE.get(rest)
    if family in ("costs", "metrics") and rest:
        return "float"
    if family == "evidence" and rest in TRACE_EVIDENCE:
        return TRACE_EVIDENCE[rest].kind
    return None


def _checked(kind: str, value: Any) -> Any:
    if kind in ("text", "id"):
        return str(value) if is_text(value) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if kind == "flag" and isinstance(value, bool):
        return float(value)
    if kind in ("type", "edge"):
        known: dict[str, Any] = {t.name.lower(): t for t in (EventType if kind == "type" else EdgeType)}
        return known.get(value) if is_text(value) else None
    amount = number(value)
    if amount is None or not math.isfinite(amount):
        return None
    if kind == "count":
        return int(amount) if amount == int(amount) and 0 <= amount < 2**53 else None
    return float(amount)
