"""The text of what failed is the log's error, in every format whose logs state one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from credit.reports.event_texts import event_texts
from graphs.logs import read
from tests.definitions.samples import SAMPLES

SAID = "boom: no such table"
FAULT = json.dumps(SAID)
RAISED = json.dumps(f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f()\n{SAID}\n')
FRAMES = json.dumps(json.dumps({"type": "boom", "message": "no such table", "traceback": [{"filename": "a.py"}]}))

# Of each format: what stands in its sample, and what its project writes there of a call that failed.
WRITTEN = {
    "adk": [('\\"error_code\\": \\"SAFETY\\"', f'\\"error_code\\": \\"SAFETY\\", \\"error_message\\": \\"{SAID}\\"')],
    "autogen": [('"content": "2", "name": "add"', f'"content": {FAULT}, "name": "add"')],
    "braintrust": [('"ValueError"', FAULT), ('"ValueError"', RAISED)],
    "claude-code": [('"content": "x", "is_error": true', f'"content": {FAULT}, "is_error": true')],
    "cline": [('"content": "x",\n     "is_error"', f'"content": {FAULT},\n     "is_error"')],
    "copilot-cli": [('{"message": "x"}', f'{{"message": {FAULT}, "code": "failure"}}')],
    "gemini-cli": [('"result": null', f'"result": [{{"functionResponse": {{"response": {{"error": {FAULT}}}}}}}]')],
    "inspect-ai": [('"message": "x"', f'"message": {FAULT}')],
    "langfuse": [('4.000Z", "level": "ERROR"', f'4.000Z", "level": "ERROR", "output": "x", "statusMessage": {FAULT}')],
    "langgraph": [('"content": "x", "tool_call_id"', f'"content": {FAULT}, "tool_call_id"')],
    "langsmith": [('"error": "x"', f'"inputs": {{"input": "?"}}, "outputs": null, "error": {FAULT}')],
    "openai-agents": [('"message": "x", "data": null', f'"message": "Error running", "data": {{"error": {FAULT}}}')],
    "opencode": [('"input": {}, "error": "x"', f'"input": {{"command": "make test"}}, "error": {FAULT}')],
    "openhands": [('"observation": "error", "content": "x"', f'"observation": "error", "content": {FAULT}')],
    "openhands-sdk": [('"is_error": true', f'"is_error": true, "content": [{{"type": "text", "text": {FAULT}}}]')],
    "otlp": [
        ('"status": {"code": 2}', f'"status": {{"code": 2, "message": {FAULT}}}'),
        (
            '"status": {"code": 2}',
            '"status": {"code": 2}, "events": [{"name": "exception", "attributes": [{"key": "exception.message", '
            f'"value": {{"stringValue": {FAULT}}}}}]}}]',
        ),
    ],
    "spans": [
        ('{"code": "ERROR"}', f'{{"status_code": "ERROR", "description": {FAULT}}}'),
        ('{"code": "ERROR"}', f'"ERROR", "status_message": {FAULT}'),
    ],
    "tau-bench": [('"Error: full"', f'"Error: {SAID}"')],
    "tau2-bench": [('"content": "y"', f'"content": {FAULT}')],
    "weave": [('"exception": "Traceback"', f'"exception": {text}') for text in (FAULT, RAISED, FRAMES)],
}  # fmt: skip
CASES = [(name, *change) for name, changes in WRITTEN.items() for change in changes]


@pytest.mark.parametrize(("name", "stated", "written"), CASES)
def test_the_text_of_what_failed_is_the_error(tmp_path: Path, name: str, stated: str, written: str) -> None:
    """`make test -> make test` was what a report showed of a command that ended in a time-out."""
    sample = SAMPLES[name]
    files = {file: text.replace(stated, written, 1) for file, text in sample.files.items()}
    assert files != sample.files
    traces = read(sample._replace(files=files).write(tmp_path), format=sample.format)
    rows = [row for row, status in enumerate(traces.events["status"].to_pylist()) if status == "error"]
    assert SAID in [text.removeprefix("Error: ") for text in event_texts(traces, np.array(rows), 200)]


def test_every_format_whose_results_fail_is_tried() -> None:
    failing = {name for name, sample in SAMPLES.items() if "| status error" in sample.meaning}
    assert failing == set(WRITTEN)


def test_a_result_is_no_text_of_its_call(tmp_path: Path) -> None:
    """`ExportError: document lock held ← "lock"` stood there, whose log has no arguments."""
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "export",
        "gen_ai.tool.call.result": '["lock"]',
    }
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    span = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "2",
        "name": "execute_tool export",
        "attributes": attributes,
    }
    span |= {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    for status, result in (({"code": 2, "message": SAID}, SAID), ({}, '["lock"]')):
        log = {"resourceSpans": [{"scopeSpans": [{"spans": [span | {"status": status}]}]}]}
        (tmp_path / "log.jsonl").write_text(json.dumps(log) + "\n")
        traces = read(tmp_path / "log.jsonl")
        assert event_texts(traces, np.arange(2), 200) == ["", result]
