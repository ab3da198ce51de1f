"""A small native trace as text, and what damages it."""

from __future__ import annotations

import json
from typing import Any

from graphs.traces.limits import Limits

MIB = 1 << 20
SMALL = Limits(file_bytes=4 * MIB, record_bytes=MIB, string_bytes=MIB // 2, depth=50, events=1000, edges=2000)


def trace(name: str = "good", **more: Any) -> dict[str, Any]:
    return {
        "trace_id": name,
        "task_id": "task",
        "events": [
            {"id": "e0", "t": 0, "type": "message", "agent": "a"},
            {"id": "e1", "t": 1, "type": "message", "agent": "b"},
        ],
        "edges": [{"src": "e0", "dst": "e1", "type": "message"}],
        "rewards": {"team": 1.0},
        "costs": {"tokens": 1, "wall_clock_s": 2},
        **more,
    }


def text(name: str = "bad", **more: Any) -> bytes:
    return json.dumps(trace(name, **more)).encode()


def noted(note: bytes) -> bytes:
    """The trace "bad" with a key that nobody reads, whose value is the given JSON."""
    return text()[:-1] + b', "note": ' + note + b"}"


def replaced(old: bytes, new: bytes) -> bytes:
    whole = text()
    assert old in whole
    return whole.replace(old, new, 1)


def events(n: int) -> list[dict[str, Any]]:
    return [{"id": f"e{i}", "t": i, "type": "message", "agent": "a"} for i in range(n)]


def edges(n: int) -> list[dict[str, str]]:
    return [{"src": "e0", "dst": "e1", "type": "causal"}] * n
