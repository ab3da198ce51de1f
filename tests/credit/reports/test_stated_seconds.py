"""Seconds of logs that state when a span begins and ends, against sums over these spans, in each format of spans."""

from __future__ import annotations

import collections
import datetime
import json
import random
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from credit.metrics.cost_summary import cost_rows
from credit.reports.outcome_differences import outcome_differences
from credit.reports.trace_list import trace_rows
from credit.reports.trace_numbers import TeamFacts
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.writers import native, otlp, survey

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Step(NamedTuple):
    """A span: its parent's id, its kind, the name of its agent or tool, and its begin and end in seconds."""

    id: int
    parent: int
    kind: str
    name: str
    begin: float
    end: float


LEAD = Step(1, 0, "agent", "lead", 0, 11)
SHAPES = {
    "one after another": [LEAD, Step(2, 1, "chat", "", 0, 8), Step(3, 1, "tool", "grep", 8, 9),
                          Step(4, 1, "chat", "", 9, 11)],
    "time that is nobody's": [LEAD, Step(2, 1, "chat", "", 0, 2), Step(3, 1, "tool", "grep", 3, 4),
                              Step(4, 1, "chat", "", 5, 11)],
    "tools side by side": [LEAD, Step(2, 1, "chat", "", 0, 3), Step(3, 1, "tool", "grep", 3, 5),
                           Step(4, 1, "tool", "find", 4, 9), Step(5, 1, "chat", "", 9, 11)],
    "tools in a row": [LEAD, Step(2, 1, "chat", "", 0, 3), Step(3, 1, "tool", "grep", 3, 5),
                       Step(4, 1, "tool", "grep", 5, 9), Step(5, 1, "chat", "", 9, 11)],
    "a tool that begins while the model still writes": [
        LEAD, Step(2, 1, "chat", "", 0, 6), Step(3, 1, "tool", "grep", 2, 5), Step(4, 1, "chat", "", 6, 11)],
    "an agent inside": [
        LEAD, Step(2, 1, "chat", "", 0, 2), Step(3, 1, "agent", "helper", 2, 7), Step(4, 3, "chat", "", 2, 4),
        Step(5, 3, "tool", "grep", 4, 5), Step(6, 3, "chat", "", 5, 7), Step(7, 1, "chat", "", 7, 11)],
    "agents at once": [
        LEAD, Step(2, 1, "chat", "", 0, 2), Step(3, 1, "agent", "one", 2, 8), Step(4, 3, "chat", "", 2, 8),
        Step(5, 1, "agent", "two", 2, 6), Step(6, 5, "chat", "", 2, 6), Step(7, 1, "chat", "", 8, 11)],
    "a root that begins before its steps and ends after them": [
        LEAD._replace(end=60), Step(2, 1, "chat", "", 3, 5), Step(3, 1, "tool", "grep", 5, 7),
        Step(4, 1, "chat", "", 8, 11)],
}  # fmt: skip


def clock(seconds: float) -> str:
    return (datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat()


def nanoseconds(seconds: float) -> int:
    return 1_767_225_600_000_000_000 + round(seconds * 1e9)


def genai(step: Step) -> dict[str, str]:
    if step.kind == "chat":
        return {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    word, key = ("invoke_agent", "agent") if step.kind == "agent" else ("execute_tool", "tool")
    return {"gen_ai.operation.name": word, f"gen_ai.{key}.name": step.name}


def of_otlp(steps: list[Step]) -> Any:
    spans = [
        {"traceId": TRACE, "spanId": f"{step.id:016x}", "parentSpanId": f"{step.parent:016x}" if step.parent else "",
         "name": step.name, "startTimeUnixNano": str(nanoseconds(step.begin)),
         "endTimeUnixNano": str(nanoseconds(step.end)),
         "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in genai(step).items()]}
        for step in steps
    ]  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def of_spans(steps: list[Step]) -> Any:
    return [
        {"trace_id": TRACE, "span_id": f"{step.id:016x}", "name": step.name,
         "parent_span_id": f"{step.parent:016x}" if step.parent else None,
         "start_time": nanoseconds(step.begin), "end_time": nanoseconds(step.end),
         "attributes": genai(step), "status": {"code": "OK"}}
        for step in steps
    ]  # fmt: skip


def of_langfuse(steps: list[Step]) -> Any:
    kinds = {"chat": "GENERATION", "tool": "TOOL", "agent": "AGENT"}
    observations: list[Any] = [
        {"id": f"o{step.id}", "traceId": "t", "projectId": "p", "type": kinds[step.kind], "name": step.name,
         "parentObservationId": f"o{step.parent}" if step.parent else None, "startTime": clock(step.begin),
         "endTime": clock(step.end), "level": "DEFAULT", "metadata": {}}
        for step in steps
    ]  # fmt: skip
    return {"trace": {"id": "t", "projectId": "p", "name": "run", "timestamp": clock(0), "scores": []},
            "observations": observations}  # fmt: skip


def of_langsmith(steps: list[Step]) -> Any:
    kinds = {"chat": "llm", "tool": "tool", "agent": "chain"}
    return [
        {"id": f"r{step.id}", "trace_id": "r1", "parent_run_id": f"r{step.parent}" if step.parent else None,
         "name": step.name or "model", "run_type": kinds[step.kind], "start_time": clock(step.begin),
         "end_time": clock(step.end), "extra": {"metadata": {"lc_agent_name": step.name} if step.name else {}}}
        for step in steps
    ]  # fmt: skip


def of_openai_agents(steps: list[Step]) -> Any:
    kinds = {"chat": "generation", "tool": "function", "agent": "agent"}
    spans = [
        {"object": "trace.span", "id": f"s{step.id}", "trace_id": "trace_1", "started_at": clock(step.begin),
         "parent_id": f"s{step.parent}" if step.parent else None, "ended_at": clock(step.end), "error": None,
         "span_data": {"type": kinds[step.kind], "name": step.name}}
        for step in steps
    ]  # fmt: skip
    return {"traces": [{"object": "trace", "id": "trace_1", "workflow_name": "w", "spans": spans}]}


def of_weave(steps: list[Step]) -> Any:
    kinds = {"chat": "llm", "tool": "tool", "agent": "agent"}
    return [
        {"id": f"c{step.id}", "trace_id": "t", "op_name": f"weave:///a/b/op/{step.name or 'model'}:x",
         "parent_id": f"c{step.parent}" if step.parent else None, "started_at": clock(step.begin),
         "ended_at": clock(step.end), "attributes": {"weave": {"kind": kinds[step.kind]}}, "project_id": "a/b"}
        for step in steps
    ]  # fmt: skip


def of_braintrust(steps: list[Step]) -> Any:
    kinds = {"chat": "llm", "tool": "tool", "agent": "task"}
    return [
        {"id": f"b{step.id}", "span_id": f"b{step.id}", "root_span_id": "b1", "experiment_id": "e",
         "span_parents": [f"b{step.parent}"] if step.parent else None,
         "metrics": {"start": 1_767_225_600 + step.begin, "end": 1_767_225_600 + step.end},
         "span_attributes": {"exec_counter": step.id, "name": step.name, "type": kinds[step.kind]},
         "metadata": {"agent_name": step.name} if step.kind == "agent" else {}}
        for step in steps
    ]  # fmt: skip


def of_agent_lightning(steps: list[Step]) -> Any:
    kinds = {"chat": "llm", "tool": "tool", "agent": "agent"}
    return [
        {"rollout_id": "r", "attempt_id": "0", "sequence_id": step.id, "name": step.name or "model",
         "span_id": f"s{step.id}", "parent_id": f"s{step.parent}" if step.parent else None, "trace_id": "t",
         "start_time": 1_767_225_600 + step.begin, "end_time": 1_767_225_600 + step.end,
         "status": {"status_code": "OK"}, "resource": {},
         "attributes": {"agentops.span.kind": kinds[step.kind], "operation.name": step.name}}
        for step in steps
    ]  # fmt: skip


def of_inspect_ai(steps: list[Step]) -> Any:
    events: list[dict[str, Any]] = []
    for step in steps:
        around = {"span_id": f"s{step.parent}", "timestamp": clock(step.begin), "completed": clock(step.end)}
        if step.kind == "agent":
            about = {"event": "span_begin", "id": f"s{step.id}", "name": step.name, "type": "agent"}
            events.append(
                about | {"parent_id": f"s{step.parent}" if step.parent else None, "timestamp": clock(step.begin)}
            )
        elif step.kind == "chat":
            events.append(around | {"event": "model", "model": "m", "output": {"choices": [{}]}})
        else:
            events.append(around | {"event": "tool", "id": f"c{step.id}", "function": step.name, "arguments": {}})
    agents = [step for step in steps if step.kind == "agent"]
    events += [{"event": "span_end", "id": f"s{step.id}", "timestamp": clock(step.end)} for step in reversed(agents)]
    sample = {"id": 1, "epoch": 1, "input": "x", "scores": {}, "events": events}
    return {"version": 2, "status": "success", "eval": {"task": "quiz", "model": "m"}, "samples": [sample]}


WRITERS: dict[str, Callable[[list[Step]], Any]] = {
    "otlp": of_otlp, "spans": of_spans, "langfuse": of_langfuse, "langsmith": of_langsmith,
    "openai-agents": of_openai_agents, "weave": of_weave, "braintrust": of_braintrust,
    "agent-lightning": of_agent_lightning, "inspect-ai": of_inspect_ai,
}  # fmt: skip


def summed(steps: list[Step], unit: Callable[[Step], str]) -> dict[str, float]:
    """Ends minus begins of the spans of models and tools, by unit: slow and obvious."""
    sums: dict[str, float] = collections.defaultdict(float)
    for step in steps:
        if step.kind != "agent":
            sums[unit(step)] += step.end - step.begin
    return dict(sums)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format_", WRITERS)
def test_stated_spans_add_up_to_the_seconds_of_tools_agents_and_traces(
    format_: str, shape: str, tmp_path: Path
) -> None:
    steps = SHAPES[shape]
    (tmp_path / "log.json").write_text(json.dumps(WRITERS[format_](steps)))
    traces = read(tmp_path / "log.json")
    assert traces.problems == () and set(traces.traces["format"].to_pylist()) == {format_}
    name = {step.id: step.name for step in steps}
    if format_ == "langsmith":  # an agent run inside an agent is a step of it
        name = dict.fromkeys(name, "lead")
    by_tool = {row.unit: row.seconds.total for row in cost_rows(traces, "tool")}
    assert by_tool == pytest.approx(summed(steps, lambda step: step.name or "no tool"), abs=1e-3)
    by_agent = {row.unit: row.seconds.total for row in cost_rows(traces, "agent")}
    assert by_agent == pytest.approx(summed(steps, lambda step: name[step.parent]), abs=1e-3)
    run = max(step.end for step in steps) - min(step.begin for step in steps)
    assert [row["wall_clock"] for row in trace_rows(traces)] == pytest.approx([run], abs=1e-3)
    found, ran = TeamFacts(traces).durations, [step for step in steps if step.kind != "agent"]
    assert found.event.max() == pytest.approx(max(step.end - step.begin for step in ran), abs=1e-3)
    waits = [step.begin - max(one.end for one in ran[:i]) for i, step in enumerate(ran) if i]
    assert found.idle.max() == pytest.approx(max(0, *waits), abs=1e-3)


@pytest.mark.parametrize("stated", [True, False])
def test_a_model_that_takes_long_is_no_wait(stated: bool, tmp_path: Path) -> None:
    """A call of 300 seconds, whose time is its begin, was the "longest wait", 302 against 12, with no gap above 4."""
    lines = []
    for number in range(24):
        failed = number % 3 == 0
        length, gap = (300.0, 2.0) if failed else (10.0, 4.0 if number % 2 else 3.0)
        times = [0.0, length + gap, 2 * length + gap + 1]
        more: dict[str, Any] = {"seconds": length} if stated else {}
        events = [{"id": f"m{i}", "t": t, "type": "message", "agent": "a", **more} for i, t in enumerate(times)]
        links = [{"src": f"m{i}", "dst": f"m{i + 1}", "type": "temporal"} for i in range(2)]
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number % 12}", "events": events, "edges": links,
                      "rewards": {"team": float(not failed)}, "costs": {}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = {row.what: (row.failed, row.succeeded) for row in outcome_differences(read(tmp_path / "log.jsonl")).rows}
    if stated:
        assert rows["longest event in seconds"] == (300, 10) and rows["longest wait in seconds"] == (2, 3.5)
    else:  # the time before a message is that of its model
        assert rows["longest event in seconds"] == (302, 13.5) and "longest wait in seconds" not in rows


def test_what_failed_comes_before_the_seconds_that_its_time_out_took(tmp_path: Path) -> None:
    """The seconds of a tool's time-out stood first, and the tool's errors below: more tasks differ in seconds."""
    lines, rng = [], random.Random(1)
    for number in range(96):
        failed = number % 2 == 0
        down = rng.random() < (0.6 if failed else 0.05)
        took = 30.0 if down else rng.uniform(2, 3) if failed else rng.uniform(1, 2.5)
        events = [{"id": "m", "t": 0.0, "type": "message", "agent": "a", "seconds": 1.0},
                  {"id": "c", "t": 1.0, "type": "tool_call", "agent": "a", "tool": "price", "seconds": took,
                   "status": "error" if down else "ok"}]  # fmt: skip
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 4}", "events": events, "edges": [],
                      "rewards": {"team": float(not failed)}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, *others = [row for row in outcome_differences(read(tmp_path / "log.jsonl")).rows if row.stands_out]
    assert first.what == "errors" and max(row.chance for row in others if "seconds" in row.what) > first.chance


def test_waits_are_the_same_in_long_runs(tmp_path: Path) -> None:
    """Below 1/256 of the wall clock a wait was 0: long runs, which fail, "waited less"."""
    lines, rng = [], random.Random(7)
    for number in range(40):
        events: list[dict[str, Any]] = []
        at, failed = 1.79e9, number % 2 == 0
        for i, wait in enumerate(rng.sample([0.1, 0.2, 0.3], 3)):
            took = round(rng.uniform(100, 200) if failed else rng.uniform(1, 2), 2)
            events.append({"id": f"m{i}", "t": round(at, 2), "type": "message", "agent": "a", "seconds": took})
            at += took + wait
        events.append({"id": "end", "t": round(at, 2), "type": "message", "agent": "a", "seconds": 1.0})
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 2}", "events": events, "edges": [],
                      "rewards": {"team": float(not failed)}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    idle = TeamFacts(read(tmp_path / "log.jsonl")).durations.idle.reshape(40, 4)
    assert idle.max(axis=1).tolist() == [0.3] * 40
    assert "longest wait in seconds" not in {row.what for row in outcome_differences(read(tmp_path)).rows}, "all equal"


def test_what_rounded_seconds_leave_between_events_is_no_wait(tmp_path: Path) -> None:
    """A "longest wait" of 3.87e-05 against 3.37e-05 ranked third: seconds of four decimals, times of six."""
    lines, rng = [], random.Random(7)
    for number in range(24):
        events: list[dict[str, Any]] = []
        at = 0.0
        for i in range(6):
            took = rng.uniform(1, 9)
            events.append(
                {"id": f"m{i}", "t": round(at, 6), "type": "message", "agent": "a", "seconds": round(took, 4)}
            )
            at += took + (2 * (number % 3) if i == 3 else 0)
        links = [{"src": f"m{i}", "dst": f"m{i + 1}", "type": "temporal"} for i in range(5)]
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 2}", "events": events, "edges": links,
                      "rewards": {"team": float(number % 2)}})  # fmt: skip
    waits = []
    for few in (False, True):
        kept = [line for i, line in enumerate(lines) if not few or i % 3 == 0]
        for i, line in enumerate(kept):
            line |= {"task_id": f"q{i // 2}", "rewards": {"team": float(i % 2)}}
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
        found = outcome_differences(read(tmp_path / "log.jsonl")).rows
        assert {"wall clock in seconds", "longest event in seconds"} <= {row.what for row in found}
        waits.append([round(row.failed + row.succeeded, 3) for row in found if row.what == "longest wait in seconds"])
    assert waits == [[4.0], []], "without a gap there is only what rounding leaves"


def all_seconds(traces: Traces) -> list[float | None]:
    stated = traces.evidence["seconds"]
    return [x if known else None for x, known in zip(stated.array.tolist(), stated.mask.tolist(), strict=True)]


@pytest.mark.parametrize("shape", ["agents at once", "a root that begins before its steps and ends after them"])
@pytest.mark.parametrize("writer", [otlp, native, survey])
def test_seconds_survive_a_round_trip(shape: str, writer: types.ModuleType, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(of_otlp(SHAPES[shape])))
    traces = read(tmp_path / "log.json")
    writer.write(traces, tmp_path / ("again.jsonl" if writer is native else "again"))
    again = read(tmp_path / ("again.jsonl" if writer is native else "again"))
    assert all_seconds(again) == all_seconds(traces)
    assert [row["wall_clock"] for row in trace_rows(again)] == [row["wall_clock"] for row in trace_rows(traces)]


@pytest.mark.parametrize(("shape", "work", "path"), [("agents at once", 15, 11), ("tools side by side", 12, 10)])
def test_the_path_and_the_work_of_stated_seconds(shape: str, work: float, path: float, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(of_otlp(SHAPES[shape])))
    facts = TeamFacts(read(tmp_path / "log.json"))
    assert facts.durations.work.tolist() == [work] and facts.durations.wall.tolist() == [11]
    assert facts.seconds_on_path.tolist() == [path]  # the tool that ran from 4 to 9 had waited for a second
