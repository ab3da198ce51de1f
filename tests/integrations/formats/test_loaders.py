"""The official loaders of OTLP JSON, Inspect logs and verifiers episodes: they accept what is written and agree."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.writers import inspect_logs, otlp, verifiers

RECORDINGS = Path(__file__).parents[2] / "recordings"
TRACE = {
    "schema_version": "1.1",
    "trace_id": "t",
    "task_id": "q",
    "agents": [{"id": "lead"}, {"id": "worker", "parent": "lead"}],
    "events": [
        {"id": "a", "type": "orchestrator_decision", "agent": "lead", "t": 1.5, "tokens": 7},
        {"id": "b", "type": "spawn", "agent": "lead", "to": "worker"},
        {"id": "c", "type": "message", "agent": "worker", "t": 2.25, "log_prob": -0.5},
        {"id": "d", "type": "tool_call", "agent": "worker", "tool": "search"},
        {"id": "e", "type": "tool_result", "agent": "worker", "tool": "search", "status": "error"},
        {"id": "f", "type": "return", "agent": "worker", "to": "lead"},
        {"id": "g", "type": "stop", "agent": "lead", "t": 4.0},
    ],
    "edges": [
        {"src": "a", "dst": "b", "type": "causal"},
        {"src": "b", "dst": "c", "type": "spawn"},
        {"src": "c", "dst": "d", "type": "tool_dependency"},
        {"src": "d", "dst": "e", "type": "return"},
        {"src": "f", "dst": "g", "type": "return"},
    ],
    "rewards": {"team": 0.75, "style": -2.0},
}


def same(one: Traces, other: Traces) -> None:
    for name in ("event_type", "action_mask", "agent_ids", "trace_ids", "senders", "receivers", "edge_type"):
        assert np.array_equal(getattr(one.graph, name), getattr(other.graph, name)), name
    assert np.array_equal(one.reward, other.reward, equal_nan=True)
    assert one.evidence.keys() == other.evidence.keys()


@pytest.mark.parametrize("log", ["native", "team_genai.jsonl", "openai_agents_team.jsonl", "langgraph_team.jsonl"])
def test_otlp_that_is_written_parses_strictly(tmp_path: Path, log: str) -> None:
    """By OpenTelemetry's own parser of OTLP JSON, whose reading, written again, reads as the same traces."""
    reason = "opentelemetry-proto-json is not installed here; `make integrations` runs this"
    logs = pytest.importorskip("opentelemetry.proto_json.collector.logs.v1.logs_service", reason=reason)
    spans = pytest.importorskip("opentelemetry.proto_json.collector.trace.v1.trace_service", reason=reason)
    path = RECORDINGS / log
    if log == "native":
        path = tmp_path / "native.jsonl"
        path.write_text(json.dumps(TRACE) + "\n")
    traces = read(path)
    otlp.write(traces, tmp_path / "written")
    again = tmp_path / "again"
    again.mkdir()
    events = 0
    for name, request in (
        ("spans.jsonl", spans.ExportTraceServiceRequest),
        ("logs.jsonl", logs.ExportLogsServiceRequest),
    ):
        lines = (tmp_path / "written" / name).read_text().splitlines()
        parsed = [request.from_json(line) for line in lines]
        assert len(parsed) == traces.sizes.traces
        (again / name).write_text("".join(one.to_json() + "\n" for one in parsed))
        if name == "spans.jsonl":
            own = [s for one in parsed for r in one.resource_spans for scope in r.scope_spans for s in scope.spans]
            events = len(own)
            assert len({(span.trace_id, span.span_id) for span in own}) == events
            assert {(len(span.trace_id), len(span.span_id)) for span in own} == {(16, 8)}
    assert events
    same(read(again), traces)


def test_inspect_counts_what_the_reader_counts(tmp_path: Path) -> None:
    """`read_eval_log` has the same samples, scores and model calls; the JSON it writes reads as the same traces."""
    reason = "inspect_ai is not installed here; `make integrations` runs this"
    log = pytest.importorskip("inspect_ai.log", reason=reason)
    number = pytest.importorskip("inspect_ai.scorer", reason=reason).value_to_float()
    path = RECORDINGS / "inspect_team.eval"
    traces, loaded = read(path, reward="match"), log.read_eval_log(str(path))
    assert len(loaded.samples) == traces.sizes.traces
    scores = [number(sample.scores["match"].value) for sample in loaded.samples]
    assert sorted(scores) == sorted(np.asarray(traces.reward)[: traces.sizes.traces].tolist())
    calls = sum(event.event == "model" for sample in loaded.samples for event in sample.events)
    assert calls == int(traces.graph.action_mask.sum())
    log.write_eval_log(loaded, str(tmp_path / "log.json"), format="json")
    same(read(tmp_path / "log.json", reward="match"), traces)


def test_inspect_loads_the_advantages_that_are_written(tmp_path: Path) -> None:
    """`read_eval_log` has each advantage in the metadata of its model event, and keeps it when it writes the log."""
    reason = "inspect_ai is not installed here; `make integrations` runs this"
    log = pytest.importorskip("inspect_ai.log", reason=reason)
    traces = read(RECORDINGS / "inspect_team.eval", reward="match")
    count = traces.sizes.events
    amounts = np.arange(count) / 4
    filled = inspect_logs.write(traces, amounts, np.ones(count, bool), tmp_path)
    loaded = log.read_eval_log(str(tmp_path / "inspect_team.json"))
    log.write_eval_log(loaded, str(tmp_path / "again.eval"), format="eval")
    expected = sorted(amounts[np.asarray(traces.graph.action_mask)[:count]].tolist())
    for one in (loaded, log.read_eval_log(str(tmp_path / "again.eval"))):
        calls = [event for sample in one.samples for event in sample.events if event.event == "model"]
        assert sorted(event.metadata[inspect_logs.KEY] for event in calls) == expected
        assert len(calls) == filled
    same(read(tmp_path / "inspect_team.json", reward="match"), traces)


def test_verifiers_loads_the_advantages_that_are_written(tmp_path: Path) -> None:
    """Each sampled token of the file has the advantage of its call, in the trainer's own form of an episode."""
    reason = "verifiers is not installed here; `make integrations` runs this"
    form = pytest.importorskip("verifiers.v1.episode", reason=reason).WireEpisode
    traces = read(RECORDINGS / "verifiers_episodes.jsonl")
    count = traces.sizes.events
    filled = verifiers.write(traces, np.full(count, 0.5), np.ones(count, bool), tmp_path / "out.jsonl")
    episodes = [form.model_validate_json(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(episodes) == traces.sizes.traces
    nodes = [node for one in episodes for trace in one.traces for node in trace.nodes if node.advantages is not None]
    assert len(nodes) == filled > 0
    for node in nodes:
        assert node.advantages == [0.5] * len(node.logprobs) and len(node.logprobs) == sum(node.mask)
