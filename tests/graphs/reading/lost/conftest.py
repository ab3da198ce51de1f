"""The log whose outcomes a damaged table voids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three traces with outcomes of their own."""
    event = {"id": "1", "type": "message", "agent": "x"}
    lines = [{"trace_id": name, "task_id": "k", "events": [event], "rewards": {"team": 5.0}} for name in "abc"]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path / "log.jsonl"
