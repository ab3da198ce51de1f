"""OTLP JSON written by hand, for tests: short calls in, export requests out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRACE = "0af7651916cd43dd8448eb211c80319c"


def value(given: Any) -> dict[str, Any]:
    """A Python value as an attribute value; int64 as decimal strings, as the encoding writes them."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, str):
        return {"stringValue": given}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(member) for member in given]}}
    return {"kvlistValue": {"values": pairs(given)}}


def pairs(given: dict[str, Any]) -> list[dict[str, Any]]:
    """A mapping as attributes."""
    return [{"key": key, "value": value(member)} for key, member in given.items()]


def span_id(number: int) -> str:
    """The id of span `number` (from 1)."""
    return f"{number:016x}"


def span(
    number: int,
    parent: int,
    start: float,
    end: float,
    attributes: dict[str, Any],
    *,
    trace: str = TRACE,
    name: str = "span",
    **more: Any,
) -> dict[str, Any]:
    """A span; times in seconds, written as decimal strings; parent 0 is none."""
    return {
        "traceId": trace,
        "spanId": span_id(number),
        "parentSpanId": span_id(parent) if parent else "",
        "name": name,
        "startTimeUnixNano": str(round(start * 10**9)),
        "endTimeUnixNano": str(round(end * 10**9)),
        "attributes": pairs(attributes),
        **more,
    }


def agent(number: int, parent: int, start: float, end: float, name: str, **more: Any) -> dict[str, Any]:
    """An `invoke_agent` span."""
    given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name} | more.pop("attributes", {})
    return span(number, parent, start, end, given, name=f"invoke_agent {name}", **more)


def chat(number: int, parent: int, start: float, end: float, asks: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A `chat` span that asks for tool calls with these ids."""
    parts = [{"type": "tool_call", "id": call_id, "name": "t"} for call_id in asks]
    given: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 10 + number}
    if asks:
        given["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
    return span(number, parent, start, end, given | more.pop("attributes", {}), name="chat m", **more)


def tool(number: int, parent: int, start: float, end: float, call_id: str = "", **more: Any) -> dict[str, Any]:
    """An `execute_tool` span."""
    given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"} | more.pop("attributes", {})
    if call_id:
        given["gen_ai.tool.call.id"] = call_id
    return span(number, parent, start, end, given, name="execute_tool search", **more)


def evaluation(name: str, score: Any, *, trace: str = TRACE, of: int = 0, **more: Any) -> dict[str, Any]:
    """A `gen_ai.evaluation.result` log record."""
    given = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": score} | more
    record = {"eventName": "gen_ai.evaluation.result", "traceId": trace, "attributes": pairs(given)}
    return record | ({"spanId": span_id(of)} if of else {})


def spans_request(spans: list[dict[str, Any]], resource: dict[str, Any] | None = None) -> dict[str, Any]:
    """An export request of spans."""
    return {"resourceSpans": [{"resource": {"attributes": pairs(resource or {})}, "scopeSpans": [{"spans": spans}]}]}


def logs_request(records: list[dict[str, Any]]) -> dict[str, Any]:
    """An export request of log records."""
    return {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [{"logRecords": records}]}]}


def write_lines(path: Path, *requests: dict[str, Any]) -> Path:
    """A file of requests, one a line."""
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    return path
