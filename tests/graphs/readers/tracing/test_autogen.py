"""AutoGen: who wrote what with a model, and who heard it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.event_types import EdgeType, EventType
from graphs.readers import read

from ..samples import RECORDINGS, SAMPLES


def test_a_recorded_run(tmp_path: Path) -> None:
    traces = read(SAMPLES["autogen"].write(tmp_path))
    graph, n = traces.graph, traces.sizes.events
    names = traces.agents["name"].to_pylist()
    assert [
        (EventType(int(graph.event_type[i])).name.lower(), names[int(graph.agent_ids[i])], bool(graph.action_mask[i]))
        for i in range(n)
    ] == [
        ("human_intervention", "user", False), ("message", "solver", True), ("tool_call", "solver", False),
        ("tool_result", "solver", False), ("message", "solver", True), ("message", "critic", True),
    ]  # fmt: skip
    rows = zip(graph.senders, graph.receivers, graph.edge_type, graph.edge_mask, strict=True)
    assert {(int(s), int(r), EdgeType(int(k)).name.lower()) for s, r, k, real in rows if real} == {
        (0, 1, "causal"), (1, 2, "tool_dependency"), (2, 3, "return"), (3, 4, "causal"), (1, 4, "temporal"),
        (0, 5, "causal"), (4, 5, "message"),
    }  # fmt: skip
    assert traces.evidence["tokens"].amounts.tolist() == [3, 3, 3]


def test_magentic_one_tells_what_its_members_did() -> None:
    """Recorded with the package: of the orchestrator's messages no usage is told, so they are no calls."""
    path = RECORDINGS / "magentic_one_result.json"
    messages = json.loads(path.read_text())["messages"]
    traces = read(path)
    graph, n = traces.graph, traces.sizes.events
    names = traces.agents["name"].to_pylist()
    assert traces.problems == ()
    assert traces.traces["format"].to_pylist() == ["autogen"]
    assert [
        (EventType(int(graph.event_type[i])).name.lower(), names[int(graph.agent_ids[i])], bool(graph.action_mask[i]))
        for i in range(n)
    ] == [
        ("human_intervention", "user", False), ("message", "MagenticOneOrchestrator", False),
        ("message", "MagenticOneOrchestrator", False), ("message", "solver", True), ("tool_call", "solver", False),
        ("tool_result", "solver", False), ("message", "solver", True), ("message", "MagenticOneOrchestrator", False),
    ]  # fmt: skip
    used = [message["models_usage"]["completion_tokens"] for message in messages if message["models_usage"]]
    assert traces.evidence["tokens"].amounts.tolist() == used == [3, 3]


def test_a_result_without_its_call_is_refused(tmp_path: Path) -> None:
    value = json.loads(SAMPLES["autogen"].text)
    value["messages"][2]["content"][0]["call_id"] = "other"
    (tmp_path / "run.json").write_text(json.dumps(value))
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path / "run.json")
    assert caught.value.problems[0].kind == "unknown-tool-call"
