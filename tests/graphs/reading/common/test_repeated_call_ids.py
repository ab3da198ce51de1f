"""Tool calls with one id, as some servers and models give them: each result answers its own call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.event_types import EdgeType
from graphs.logs import read


def asks(*tools: str) -> dict[str, Any]:
    calls = [{"id": "0", "type": "function", "function": {"name": tool, "arguments": "{}"}} for tool in tools]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(tool: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "0", "name": tool, "content": tool}


CHAT = [
    {"role": "user", "content": "?"}, asks("search", "bash", "search"), answer("search"), answer("bash"),
    asks("read", "write"), answer("read"), answer("write"), {"role": "assistant", "content": "done"},
]  # fmt: skip
"""One call of the first reply has no result, and the ids of the second reply are the same."""

LOGS = {
    "tau-bench": [{"task_id": 3, "trial": 0, "reward": 1.0, "info": {}, "traj": CHAT}],
    "art": {"trajectories": [{"reward": 1.0, "metrics": {}, "metadata": {}, "messages_and_choices": [
        {"finish_reason": "stop", "index": 0, "message": one} if one["role"] == "assistant" else one for one in CHAT
    ], "tools": None, "additional_histories": [], "logs": []}]},
    "verifiers": {"example_id": 3, "prompt": CHAT[:1], "completion": CHAT[1:], "answer": "2", "info": {},
                  "reward": 1.0, "error": None, "is_completed": True, "metrics": {}},
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_results_answer_the_calls_of_the_latest_reply_in_their_order(tmp_path: Path, name: str) -> None:
    """The first result answered the last call of its id: an error was that of another tool."""
    path = tmp_path / ("results.jsonl" if name == "verifiers" else "0007.jsonl")
    path.write_text(json.dumps(LOGS[name]) + "\n")
    traces = read(path)
    ids, tools, count = traces.events["event"].to_pylist(), traces.events["tool"].to_pylist(), traces.sizes.edges
    ends = zip(np.asarray(traces.graph.senders)[:count], np.asarray(traces.graph.receivers)[:count], strict=True)
    kinds = np.asarray(traces.graph.edge_type)[:count]
    returns = [(tools[s], tools[r]) for (s, r), kind in zip(ends, kinds, strict=True) if kind == EdgeType.RETURN]
    assert returns == [(tool, tool) for tool in ("search", "bash", "read", "write")], ids
