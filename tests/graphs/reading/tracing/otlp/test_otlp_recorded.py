"""A team recorded by the official OpenTelemetry SDK, live and from files, in both dialects."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from graphs.event_graph import EdgeType, EventType
from graphs.logs import read
from graphs.traces.batch import Traces

from .span_records import load

RECORDINGS = Path(__file__).parents[4] / "recordings"


def expect_the_team(traces: Traces) -> None:
    """What `recordings/record.py` ran: counts, agents, parents, tokens once, rewards."""
    assert traces.problems == () and traces.sizes.traces == 1
    assert traces.traces["group"].to_pylist() == ["task-7"]
    graph, n = traces.graph, traces.sizes
    types = Counter(EventType(int(t)).name.lower() for t in graph.event_type[: n.events])
    assert types == {
        "orchestrator_decision": 3,
        "message": 5,
        "tool_call": 2,
        "tool_result": 2,
        "spawn": 3,
        "return": 3,
    }
    assert int(graph.action_mask.sum()) == 8
    names = traces.agents["name"].to_pylist()
    parents = {(name, names[parent]) for name, parent in zip(names, traces.agents["parent"].to_pylist(), strict=True)}
    assert Counter(names) == {"lead": 1, "researcher": 2, "critic": 1}
    assert parents == {("lead", "lead"), ("researcher", "lead"), ("critic", "lead")}
    assert int(traces.evidence["tokens"].amounts.sum()) == 40 + 30 + 50 + 2 * (20 + 25) + 15
    assert int(traces.evidence["input_tokens"].amounts.sum()) == 2 * (40 + 30 + 50 + 2 * (20 + 25) + 15)
    assert traces.reward[0] == np.float32(0.75)
    stepped = np.flatnonzero(traces.evidence["event_reward"].mask)
    assert traces.evidence["event_reward"].array[stepped].tolist() == [0.25]
    assert names[graph.agent_ids[stepped[0]]] == "researcher" and graph.action_mask[stepped[0]]
    edge_types = Counter(EdgeType(int(t)).name.lower() for t in graph.edge_type[: n.edges])
    assert edge_types == {
        "spawn": 3,
        "tool_dependency": 2,
        "temporal": 4,
        "return": 5,  # two tool results, three agents
        "causal": 3 + 2 + 3,  # a call to each spawn, a tool result to the next call, a last call to its return
    }
    spawned_by = {
        int(graph.senders[k]) for k in range(n.edges)
        if graph.edge_type[k] == EdgeType.CAUSAL and graph.event_type[graph.receivers[k]] == EventType.SPAWN
    }  # fmt: skip
    calls = [int(i) for i in np.flatnonzero(graph.action_mask) if names[graph.agent_ids[i]] == "lead"]
    assert spawned_by == set(calls[:2])  # the critic by the tool call that the second call asked for


@pytest.mark.parametrize("dialect", ["genai", "openinference"])
def test_the_recorded_files_read(dialect: str) -> None:
    expect_the_team(read(RECORDINGS / f"team_{dialect}.jsonl"))


@pytest.mark.parametrize("dialect", ["genai", "openinference"])
def test_a_live_recording_reads(dialect: str, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.common")
    requests = load("record").record(dialect)
    load("spans").write_lines(tmp_path / "team.jsonl", *requests)
    expect_the_team(read(tmp_path))


def test_both_dialects_tell_the_same_team() -> None:
    one, other = (read(RECORDINGS / f"team_{dialect}.jsonl") for dialect in ("genai", "openinference"))
    for field in ("event_type", "action_mask", "edge_type", "agent_parent"):  # sorted, since threads raced
        first, second = np.sort(getattr(one.graph, field)), np.sort(getattr(other.graph, field))
        np.testing.assert_array_equal(first, second, field)
    assert Counter(one.agents["name"].to_pylist()) == Counter(other.agents["name"].to_pylist())
