"""What a trace was asked, and what it came to, as the log's records of the whole trace and of its first call say it.

In logs of spans the root span holds both. The events are calls inside it, which may state neither.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np

from credit.reports.event_texts import DEPTH, REDACTED, plain_attributes, record_at
from graphs.json_errors import JSON_ERRORS
from graphs.reading.text_keys import last_word
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["task_and_result"]

# The last words of keys of a record, or of its attributes: of `input.value`, `gen_ai.input.messages`.
_ASKED = frozenset({"input", "inputs", "question", "instruction", "prompt"})
_GAVE = frozenset({"output", "outputs", "completion", "final_result"})
_WITHIN = {
    _ASKED: ("messages", "input", "inputs", "example"),
    _GAVE: ("messages", "output", "outputs", "choices", "generations", "message"),
}
"""Keys of a value that hold what is asked or given; what stands beside them is not, as a state or scores."""
_SPEAKERS = {_ASKED: frozenset({"user", "human"}), _GAVE: frozenset({"assistant", "ai", "model"})}
_ROLES = frozenset({"system", *_SPEAKERS[_ASKED], *_SPEAKERS[_GAVE]})
_FLAT = re.compile(r"(?:llm\.input_messages|gen_ai\.prompt)\.(\d+)\.(?:message\.)?(role|content)")
_IDS = ("id", "span_id", "spanId")
_PARENTS = ("parentObservationId", "parent_id")
_REFERENCE = "weave:///"  # to an object that is not in the log


def task_and_result(traces: Traces, row: int, limit: int) -> tuple[str, str]:
    """Excerpts of what a trace was asked and of what it came to; "" where the log's record of the trace has none.

    Of messages the last of the user, and the last of an assistant, that says something. A task that stands at the whole
    trace nowhere is that of its first call.

    Args:
      traces: what `credit.read` returned.
      row: of the trace.
      limit: length of the excerpts.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> task_and_result(rows.traces, 0, 20)
      ('', '')
    """
    about = traces.traces.slice(row, 1).to_pylist()[0]
    record, *held = _parts(record_at(about["file"], about["offset"]))
    parts = [record, *(one for one in held if _is_of(one, about["trace"]))]
    asked, gave = (next(filter(None, (_stated(part, keys) for part in parts)), "") for keys in (_ASKED, _GAVE))
    if not asked:
        asked = _stated(_first_call(traces, row, {(about["file"], about["offset"]): [record, *held]}), _ASKED)
    return printable(asked, limit).strip(), printable(gave, limit).strip()


def _first_call(traces: Traces, row: int, known: dict[tuple[str, int], list[dict[str, Any]]]) -> dict[str, Any]:
    """The part of a record that is the first action of a trace; empty where it has none. `known` are parts by place."""
    n, graph = traces.sizes.events, traces.graph
    first, last = np.searchsorted(np.asarray(graph.trace_ids)[:n], [row, row + 1])
    acts = np.flatnonzero(np.asarray(graph.action_mask)[first:last])
    if not len(acts):
        return {}
    event = traces.events.slice(int(first + acts[0]), 1).to_pylist()[0]
    place = event["file"], event["offset"]
    parts = known[place] if place in known else _parts(record_at(*place))
    return next((one for one in parts if any(one.get(key) == event["event"] for key in _IDS)), {})


def _is_of(value: dict[str, Any], trace: str) -> bool:
    """Whether an object is a trace, or the part of it that is in no other part."""
    of = value.get("traceId", value.get("trace_id"))
    return value.get("id") == trace or (of == trace and any(value.get(key, "") is None for key in _PARENTS))


def _parts(record: Any) -> list[dict[str, Any]]:
    """A record, and the objects in it that exports of Langfuse hold: traces, and their observations."""
    parts = [record if isinstance(record, dict) else {}]
    for part in parts:  # which grow
        for held in (part.get(key) for key in ("trace", "data", "observations")):
            parts += [one for one in (held if isinstance(held, list) else [held]) if isinstance(one, dict)]
    return parts


def _stated(record: dict[str, Any], keys: frozenset[str]) -> str:
    """What the record, or an attribute of it, says under the first of the keys that says something."""
    attributes = plain_attributes(record.get("attributes"))
    attributes = attributes if isinstance(attributes, dict) else {}
    for key, value in (*record.items(), *attributes.items()):
        word = last_word(key.removesuffix(".value").removesuffix(".messages").rpartition(".")[2])
        if word in keys and (said := _said(value, keys, 0)):
            return said
    messages: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items() if keys is _ASKED else ():
        if match := _FLAT.fullmatch(key):
            messages.setdefault(int(match[1][:9]), {})[match[2]] = value
    return _said([message for _, message in sorted(messages.items())], keys, 0)


def _said(value: Any, keys: frozenset[str], depth: int) -> str:
    """A value as text: of messages what the last speaker says, of an object what it holds of this, else all of it."""
    if isinstance(value, str):
        if depth <= DEPTH and value.startswith(("{", "[", '"')):
            try:
                return _said(msgspec.json.decode(value), keys, depth + 1)
            except JSON_ERRORS:
                return value
        return "" if value in (REDACTED, "null") or value.startswith(_REFERENCE) else value
    if depth > DEPTH or not isinstance(value, dict | list):
        return ""
    if isinstance(value, list):
        spoken = [message for one in value if (message := _message(one)) is not None]
        if not spoken:
            return " ".join(filter(None, (_said(one, keys, depth + 1) for one in value)))
        speaking = [message for message in spoken if message[0] in _SPEAKERS[keys]]
        said = (_said(content, keys, depth + 1) for _, content in (*reversed(speaking), *reversed(spoken)))
        return next(filter(None, said), "")
    if (message := _message(value)) is not None:
        return _said(message[1], keys, depth + 1)
    if inner := next(filter(None, (_said(value.get(key), keys, depth + 1) for key in _WITHIN[keys])), ""):
        return inner
    held = {key: one for key, one in value.items() if one and not (isinstance(one, str) and one.startswith(_REFERENCE))}
    if len(held) == 1:
        return _said(next(iter(held.values())), keys, depth + 1)
    return msgspec.json.encode(held).decode() if held else ""


def _message(value: Any) -> tuple[str, Any] | None:
    """Who speaks in a message, and what is said; None for what is no message."""
    if isinstance(value, list):  # as LangGraph takes them: ["user", "hello"]
        return (str(value[0]), value[1]) if len(value) == 2 and value[0] in _ROLES else None
    if isinstance(value, dict) and isinstance(value.get("kwargs"), dict):  # as LangChain serialises its objects
        value = value["kwargs"]
    if not isinstance(value, dict) or not isinstance(speaker := value.get("role", value.get("type")), str):
        return None
    return next(((speaker, value[key]) for key in ("content", "parts", "text") if key in value), None)
