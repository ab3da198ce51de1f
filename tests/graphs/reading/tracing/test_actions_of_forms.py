"""One run means the same actions in each form: an agent without model calls acts by its tool calls and spawns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.event_types import EventType
from graphs.logs import read
from tests.recordings.spans import agent, chat, spans_request, tool

from ..samples import observation

RUN = [("r", "", "agent", "router"), ("f", "r", "tool", "find"), ("h", "r", "agent", "helper"),
       ("c", "h", "call", "model"), ("g", "h", "tool", "look")]  # fmt: skip
"""Spans: id, parent, kind and name. Code of the router finds something and asks the helper, which calls a model."""


def of_otlp() -> Any:
    return spans_request([agent(1, 0, 1, 9, "router"), tool(2, 1, 2, 3), agent(3, 1, 4, 8, "helper"),
                          chat(4, 3, 5, 6), tool(5, 3, 6, 7)])  # fmt: skip


def of_langfuse() -> Any:
    kinds = {"agent": "AGENT", "tool": "TOOL", "call": "GENERATION"}
    return {"trace": {"id": "t", "projectId": "p", "name": "run", "timestamp": "2026-01-01T00:00:00.000Z"},
            "observations": [observation(one, kinds[kind], name, above or None, at)
                             for at, (one, above, kind, name) in enumerate(RUN, 1)]}  # fmt: skip


def of_braintrust() -> Any:
    kinds = {"agent": "task", "tool": "tool", "call": "llm"}
    return [{"id": one, "span_id": one, "root_span_id": "r", "span_parents": [above] if above else None,
             "span_attributes": {"name": name, "type": kinds[kind]}, "metrics": {"start": at},
             "metadata": {"agent_name": name} if kind == "agent" else None}
            for at, (one, above, kind, name) in enumerate(RUN, 1)]  # fmt: skip


def of_openai_agents() -> Any:
    kinds = {"agent": "agent", "tool": "function", "call": "generation"}
    return [{"object": "trace", "id": "t", "workflow_name": "run"},
            *({"object": "trace.span", "id": one, "trace_id": "t", "parent_id": above or None, "error": None,
               "started_at": f"2026-01-01T00:00:0{at}+00:00", "ended_at": f"2026-01-01T00:00:0{at}+00:00",
               "span_data": {"type": kinds[kind], "name": name}}
              for at, (one, above, kind, name) in enumerate(RUN, 1))]  # fmt: skip


@pytest.mark.parametrize("form", [of_otlp, of_langfuse, of_braintrust, of_openai_agents])
def test_an_agent_without_model_calls_acts_by_its_effects(tmp_path: Path, form: Callable[[], Any]) -> None:
    """In OTLP it had no action where another agent of the trace called a model."""
    log = form()
    rows = log if isinstance(log, list) else [log]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    traces = read(tmp_path)
    names = traces.agents["name"].to_pylist()
    n = traces.sizes.events
    acts = [(names[agent], EventType(kind).name.lower())
            for agent, kind, acts in zip(traces.graph.agent_ids[:n].tolist(), traces.graph.event_type[:n].tolist(),
                                         traces.graph.action_mask[:n].tolist(), strict=True) if acts]  # fmt: skip
    assert acts == [("router", "tool_call"), ("router", "spawn"), ("helper", "message")]
