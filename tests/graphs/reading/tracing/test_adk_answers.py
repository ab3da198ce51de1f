"""What tools of Google's ADK answer: a response that says it failed is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from credit.reports.event_errors import error_mask
from graphs.logs import read


@pytest.mark.parametrize(
    ("response", "failed"),
    [
        ({"error": "Invoking `add()` failed as the following mandatory input parameters are not present: a"}, True),
        ({"status": "error", "error_message": "no such city"}, True),
        ({"content": [{"type": "text", "text": "timed out"}], "isError": True}, True),
        ({"status": "success", "report": "sunny, 0 errors"}, False), ({"content": [], "isError": False}, False),
        ({"result": "error"}, False), ({"error": None}, False), ({"error": ""}, False), (None, False), ("error", False),
    ],
)  # fmt: skip
def test_a_tool_that_answers_with_an_error_failed(response: Any, failed: bool, tmp_path: Path) -> None:
    """Errors of tools were 0 beside counted errors of models: no answer was looked at."""
    parts = [
        {"functionCall": {"id": "c", "name": "add", "args": {}}},
        {"functionResponse": {"id": "c", "name": "add", "response": response}},
        {"text": "done"},
    ]
    roles = ("model", "user", "model")
    events = [
        {"id": f"e{at}", "author": "lead", "timestamp": 1.0 + at, "content": {"role": role, "parts": [part]}}
        for at, (role, part) in enumerate(zip(roles, parts, strict=True))
    ]
    session = {"id": "s-1", "appName": "team", "userId": "u", "state": {}, "events": events}
    (tmp_path / "s.session.json").write_text(json.dumps(session))
    assert error_mask(read(tmp_path / "s.session.json")).tolist() == [False, False, failed, False]
