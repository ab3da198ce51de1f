"""The OTLP writer: what it writes reads back bit for bit, and without its marks still tells the team."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventType
from graphs.logs import read
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.evidence import Evidence
from graphs.traces.record import Agent, TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TEXT_COLUMNS
from graphs.writers import native, otlp

CLOCK = 1_781_000_000.0


def team(trace_id: str, *, first_time: float = CLOCK, reward: float = 0.75) -> TraceRecord:
    """A trace as `docs/data-model.md` has them: calls as actions, two agents, tools, and evidence of every kind."""
    record = TraceRecord(trace_id=trace_id, group_id="task", file="hand", topology="centralized", system="hand-made")
    record.instances = {
        "lead-1": Agent("lead"),
        "helper-1": Agent("helper", "searcher", "lead-1"),
        "helper-2": Agent("helper", "searcher", "lead-1"),
    }
    at = iter(first_time + 0.25 * i for i in range(99))

    def event(event_id: str, event_type: EventType, agent: str, action: bool = False, **columns: Any) -> int:
        return record.event(event_id, event_type, agent, action=action, time=next(at), **columns)

    plan = event("plan", EventType.ORCHESTRATOR_DECISION, "lead-1", True, tokens=40, input_tokens=7, value=0.5)
    spawns = [event(f"spawn-{i}", EventType.SPAWN, "lead-1", to=f"helper-{i}", propensity=0.5) for i in (1, 2)]
    returns = []
    for i, spawn in enumerate(spawns, start=1):
        helper = f"helper-{i}"
        ask = event(
            f"ask-{i}", EventType.MESSAGE, helper, True, tokens=5, context="same", log_prob=-1.5, event_reward=0.1
        )
        call = event(f"call-{i}", EventType.TOOL_CALL, helper, tool="search", content_ref="blob:1", trusted=True)
        result = event(f"result-{i}", EventType.TOOL_RESULT, helper, tool="search", status="error", stage=i)
        say = event(f"say-{i}", EventType.MESSAGE, helper, True, tokens=6, context="other" if i == 2 else None)
        back = event(f"back-{i}", EventType.RETURN, helper, to="lead-1", event_reward=-0.25)
        returns.append(back)
        record.edge(plan, spawn, EdgeType.CAUSAL)
        record.edge(spawn, ask, EdgeType.SPAWN)
        record.edge(ask, call, EdgeType.TOOL_DEPENDENCY)
        record.edge(call, result, EdgeType.RETURN)
        record.edge(ask, say, EdgeType.TEMPORAL)
        record.edge(result, say, EdgeType.CAUSAL)
        record.edge(say, back, EdgeType.CAUSAL)
    merge = event("merge", EventType.AGGREGATE, "lead-1", True, tokens=9)
    record.edge(plan, merge, EdgeType.TEMPORAL)
    for back in returns:
        record.edge(back, merge, EdgeType.RETURN)
    event("person", EventType.HUMAN_INTERVENTION, "lead-1", **{"from": "reviewer"})
    stop = event("stop", EventType.STOP, "lead-1", True, tokens=1)
    record.edge(merge, stop, EdgeType.TEMPORAL)
    record.rewards, record.task_kind = {"team": reward, "style": 0.1}, "theft"
    record.evidence = {"greedy_reward": 0.3}
    record.costs, record.metrics = {"tokens": 66.0}, {"accuracy": 1 / 3}
    return record


def expect_the_same(read_back: Traces, given: Traces) -> None:
    """Arrays, rewards, evidence and strings of both, bit for bit."""
    assert read_back.problems == ()
    for field in dataclasses.fields(given.graph):
        expect_equal(getattr(read_back.graph, field.name), getattr(given.graph, field.name), field.name)
    expect_equal(read_back.reward, given.reward, "reward")
    assert read_back.evidence.keys() == given.evidence.keys()
    for name, evidence in given.evidence.items():
        expect_equal(read_back.evidence[name].array, evidence.array, name)
    for name in ("event", "time", "trusted", *TEXT_COLUMNS):
        assert read_back.events[name].to_pylist() == given.events[name].to_pylist(), name
    assert read_back.agents.to_pylist() == given.agents.to_pylist()
    for name in ("trace", "group", "topology", "system", "task_kind"):
        assert read_back.traces[name].to_pylist() == given.traces[name].to_pylist()


def expect_equal(one: Any, other: Any, name: str) -> None:
    one, other = np.asarray(one), np.asarray(other)
    assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), name


def round_trip(traces: Traces, folder: Path) -> Traces:
    otlp.write(traces, folder)
    return read(folder)


def test_the_team_comes_back_bit_for_bit(tmp_path: Path) -> None:
    traces = assemble([team("first"), team("b" * 32, reward=0.1), team("third", first_time=0.0)])
    expect_the_same(round_trip(traces, tmp_path), traces)


def test_reading_gives_what_the_native_format_gives(tmp_path: Path) -> None:
    traces = assemble([team("first"), team("second", reward=0.1)])
    native.write(traces, tmp_path / "native.jsonl")
    expect_the_same(round_trip(traces, tmp_path / "otlp"), read(tmp_path / "native.jsonl"))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.sampled
def test_random_traces_come_back_bit_for_bit(
    tmp_path: Path, random_records: Callable[..., list[TraceRecord]], seed: int
) -> None:
    traces = assemble(random_records(seed))
    native.write(traces, tmp_path / "native.jsonl")
    read_back = round_trip(traces, tmp_path / "otlp")
    of_native = read(tmp_path / "native.jsonl")
    assert {p.kind for p in read_back.problems} == {p.kind for p in of_native.problems} <= {"agent-twice"}
    expect_the_same(dataclasses.replace(read_back, problems=()), traces)
    expect_the_same(dataclasses.replace(read_back, problems=()), of_native)


@pytest.mark.study
def test_real_logs_come_back_bit_for_bit(tmp_path: Path, shared_data: Path) -> None:
    for name in ("tau_bench_airline", "claude_code_subagent_files"):
        traces = dataclasses.replace(read(shared_data / name), problems=())
        expect_the_same(round_trip(traces, tmp_path / name), traces)


@pytest.mark.parametrize("time", [0.0, -0.0, 1e-9, 0.1, 0.123456789012345, 1e-300, CLOCK + 1e-6, 1e10, 7.0, math.nan])
def test_any_time_comes_back_bit_for_bit(tmp_path: Path, time: float) -> None:
    record = TraceRecord(trace_id="t", group_id="g", file="hand")
    for i, moment in enumerate((time, time + 1 / 3, math.nan)):
        record.event(f"e{i}", EventType.MESSAGE, "a", action=True, time=moment)
    traces = assemble([record])
    expect_the_same(round_trip(traces, tmp_path), traces)


def without_marks(folder: Path, into: Path) -> Path:
    """The folder's log as a tool that knows only the conventions would have written it."""
    into.mkdir()
    for path in folder.iterdir():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        waiting: list[Any] = list(lines)
        while waiting:
            current = waiting.pop()
            if isinstance(current, dict):
                kept = [p for p in current.get("attributes", []) if not p["key"].startswith("orchestration_credit.")]
                current.update({"attributes": kept} if "attributes" in current else {})
                current.pop("links", None)
            waiting += current.values() if isinstance(current, dict) else current if isinstance(current, list) else ()
        (into / path.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert "orchestration_credit." not in (into / path.name).read_text().replace('"orchestration_credit.event"', "")
    return into


def test_without_marks_the_conventions_still_tell_the_team(tmp_path: Path) -> None:
    given = assemble([team("b" * 32), team("c" * 32, reward=-1.0)])
    otlp.write(given, tmp_path / "with")
    bare = read(without_marks(tmp_path / "with", tmp_path / "without"))
    assert bare.problems == ()

    def agents(traces: Traces) -> Counter[tuple[int, str, str]]:
        rows = traces.agents.to_pylist()
        return Counter((row["trace"], row["name"], rows[row["parent"]]["name"]) for row in rows)

    assert agents(bare) == agents(given)
    for traces in (bare, given):
        assert int(traces.graph.action_mask.sum()) == 2 * 7
    for event_type in (EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.SPAWN, EventType.RETURN):
        assert (bare.graph.event_type[bare.graph.event_mask] == event_type).sum() == 4, event_type
    calls = np.flatnonzero(bare.graph.event_type == EventType.TOOL_CALL)
    assert {bare.events["tool"][int(i)].as_py() for i in calls} == {"search"}
    assert bare.reward.tolist() == given.reward.tolist()
    for name in ("tokens", "input_tokens"):
        assert sorted(bare.evidence[name].array.tolist()) == sorted(given.evidence[name].array.tolist())
    for name in ("rewards.team", "rewards.style"):
        np.testing.assert_array_equal(bare.evidence[name].array, given.evidence[name].array)
    total = [float(t.evidence["event_reward"].amounts.sum()) for t in (bare, given)]
    assert total[0] == pytest.approx(total[1])
    emitted = [
        (k, int(bare.graph.senders[k])) for k in np.flatnonzero(bare.graph.edge_type == EdgeType.TOOL_DEPENDENCY)
    ]
    assert len(emitted) == 4 and all(bare.graph.action_mask[s] for _, s in emitted)


def test_edges_that_the_reader_draws_by_itself_are_not_written(tmp_path: Path) -> None:
    record = team("b" * 32)
    otlp.write(assemble([record]), tmp_path / "a")
    recorded = round_trip(read(tmp_path / "a"), tmp_path / "b")
    derived = read(without_marks(tmp_path / "a", tmp_path / "bare"))
    otlp.write(derived, tmp_path / "c")
    assert "edge.index" not in (tmp_path / "c" / "spans.jsonl").read_text()
    record.edge(0, len(record.ids) - 1, EdgeType.AGGREGATE)
    otlp.write(assemble([record]), tmp_path / "d")
    assert "edge.index" in (tmp_path / "d" / "spans.jsonl").read_text()
    assert recorded.sizes.edges + 1 == read(tmp_path / "d").sizes.edges


def test_it_is_otlp_of_one_object_a_trace_and_line(tmp_path: Path) -> None:
    otlp.write(assemble([team("first"), team("second")]), tmp_path)
    spans, logs = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("spans", "logs")
    )
    assert len(spans) == len(logs) == 2
    of_trace = spans[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    operations = Counter(
        pair["value"]["stringValue"]
        for span in of_trace
        for pair in span["attributes"]
        if pair["key"] == "gen_ai.operation.name"
    )
    assert operations == {"invoke_workflow": 1, "invoke_agent": 3, "chat": 7, "execute_tool": 2}
    assert all(len(span["traceId"]) == 32 and len(span["spanId"]) == 16 for span in of_trace)
    assert len({span["spanId"] for span in of_trace}) == len(of_trace)
    assert all(isinstance(span["startTimeUnixNano"], str) for span in of_trace)


def test_protobuf_takes_it(tmp_path: Path) -> None:
    """The protocol's own message definitions know every field and its type (ids apart, base64 there)."""
    pytest.importorskip("opentelemetry.proto")
    from google.protobuf.json_format import Parse
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    otlp.write(assemble([team("first")]), tmp_path)
    spans = Parse((tmp_path / "spans.jsonl").read_text(), ExportTraceServiceRequest())
    logs = Parse((tmp_path / "logs.jsonl").read_text(), ExportLogsServiceRequest())
    assert len(spans.resource_spans[0].scope_spans[0].spans) == 13
    assert len(logs.resource_logs[0].scope_logs[0].log_records) == 2 + 4


def test_a_reward_that_is_no_channel_becomes_the_teams(tmp_path: Path) -> None:
    record = team("first")
    record.rewards = {}
    traces = assemble([record])
    traces = dataclasses.replace(traces, reward=np.where(traces.graph.trace_mask, 0.5, 0).astype(np.float32))
    assert round_trip(traces, tmp_path).reward[0] == 0.5


def test_channels_named_team_and_reward_stay_apart(tmp_path: Path) -> None:
    record = team("first")
    record.rewards = {"team": 1.0, "reward": 2.0}
    traces = assemble([record])
    expect_the_same(round_trip(traces, tmp_path), traces)


@pytest.mark.parametrize("case", ["unknown evidence", "infinite evidence", "infinite time", "reward"])
def test_what_cannot_be_written_is_named_and_nothing_is_written(tmp_path: Path, case: str) -> None:
    record = team("second")
    if case == "infinite time":
        record.times[3] = math.inf
    traces = assemble([team("first"), record])
    tokens = traces.evidence["tokens"]
    value = traces.evidence["value"]
    changed = {
        "unknown evidence": {"mood": tokens},
        "infinite evidence": {"value": Evidence(np.where(value.mask, np.inf, np.nan))},
    }.get(case, {})
    traces = dataclasses.replace(traces, evidence={**traces.evidence, **changed})
    if case == "reward":
        traces = dataclasses.replace(traces, reward=traces.reward + 5)
    words = {"unknown evidence": "mood", "infinite time": "second", "reward": "reward"}
    with pytest.raises(CreditError, match=words.get(case, "value")):
        otlp.write(traces, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_channel_without_a_name_is_refused(tmp_path: Path) -> None:
    """It was written, and reading refused its trace."""
    record = team("second")
    record.rewards = {"team": 0.1, "": 2.0}
    with pytest.raises(CreditError, match=r"'second' cannot be written as OTLP: .*gen_ai.evaluation.name is ''"):
        otlp.write(assemble([team("first"), record]), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_evidence_key_has_a_place(tmp_path: Path) -> None:
    record = TraceRecord(trace_id="t", group_id="g", file="hand")
    values = {"float": 0.1, "count": 3, "id": "x"}
    columns = {name: 1.0 if name in FLAGS else values[key.kind] for name, key in EVENT_EVIDENCE.items()}
    columns |= dict.fromkeys(("log_prob", "hindsight_log_prob"), -0.1)
    record.costs["money"] = 0.5  # what a reader would sum of its events otherwise
    record.event("a", EventType.MESSAGE, "one", action=True, **columns)
    record.event("b", EventType.TOOL_CALL, "one", action=False, **columns)
    record.event("c", EventType.SAFETY_EVENT, "one", action=False, **columns)
    traces = assemble([record])
    expect_the_same(round_trip(traces, tmp_path), traces)
