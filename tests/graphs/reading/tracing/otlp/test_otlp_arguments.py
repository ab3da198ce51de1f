"""Arguments that only the model call states, in `gen_ai.output.messages`: retries and mended errors need them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import credit
from credit.reports.tool_calls import ToolCalls


def read(folder: Path, calls: list[tuple[str, Any, bool]], **of_tools: str) -> ToolCalls:
    """The tool calls of one trace: of each the id, the arguments in the answer, and whether it failed."""
    spans: list[dict[str, Any]] = []

    def add(name: str, parent: str, about: dict[str, str], failed: bool = False) -> str:
        span_id, start = f"{len(spans) + 1:016x}", 10**18 + len(spans) * 10**9
        spans.append({
            "traceId": "1" * 32, "spanId": span_id, "parentSpanId": parent, "name": name,
            "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 5 * 10**8),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in about.items()],
            "status": {"code": 2} if failed else {},
        })  # fmt: skip
        return span_id

    root = add("solve", "", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "solver"})
    spans[0]["endTimeUnixNano"] = str(10**18 + 10**12)
    for call_id, arguments, failed in calls:
        part = {"type": "tool_call", "id": call_id, "name": "web", "arguments": arguments}
        said = json.dumps([{"role": "assistant", "parts": [part]}])
        add("chat", root, {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said})
        about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "web", "gen_ai.tool.call.id": call_id}
        add("execute_tool web", root, about | of_tools, failed)
    log = folder / "spans.jsonl"
    log.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n")
    return ToolCalls(credit.read(log))


def test_arguments_of_an_answer_are_those_of_its_tool_calls(tmp_path: Path) -> None:
    """They are compared in one spelling: text or object, keys in any order."""
    found = read(tmp_path, [("a", {"q": 1, "n": 2}, True), ("b", '{"n": 2, "q": 1}', False), ("c", {"q": 3}, True)])
    assert found.retry.tolist() == [False, True, False] and found.untold == []
    assert found.retry_counts().tolist() == [1] and found.unrecovered_counts().tolist() == [1]


@pytest.mark.parametrize("stated", [None, {}, "", "__REDACTED__"])
def test_no_arguments_are_none(tmp_path: Path, stated: Any) -> None:
    found = read(tmp_path, [("a", stated, True), ("b", stated, False)])
    assert str(found.retry_counts().tolist()) == "[nan]"


def test_an_id_that_stands_for_several_arguments_tells_nothing(tmp_path: Path) -> None:
    assert str(read(tmp_path, [("0", {"q": 1}, True), ("0", {"q": 2}, False)]).retry_counts().tolist()) == "[nan]"


def test_arguments_of_the_tool_itself_come_first(tmp_path: Path) -> None:
    own = {"gen_ai.tool.call.arguments": '{"q": "same"}'}
    found = read(tmp_path, [("a", {"q": 1}, True), ("b", {"q": 2}, False)], **own)
    assert found.retry_counts().tolist() == [1]
