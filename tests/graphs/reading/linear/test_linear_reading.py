"""Reading takes time linear in a log, whatever the log has many of."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from linear_time import assert_linear

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.traces.limits import Limits

from .long_teams import TEAMS, sends_after_a_step

LARGE = 6000


def attributes(**given: str) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in given.items()]


def otlp_span(i: int, parent: str = "", **given: str) -> dict[str, Any]:
    return {
        "traceId": "a" * 32,
        "spanId": f"{i + 1:016x}",
        "parentSpanId": parent,
        "name": "step",
        "startTimeUnixNano": str(10**18 + i),
        "attributes": attributes(**given),
    }


def otlp_logs_before_spans(size: int) -> str:
    score = {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 1.0}}
    logs = [
        {
            "traceId": "a" * 32,
            "spanId": f"{i + 1:016x}",
            "eventName": "gen_ai.evaluation.result",
            "attributes": [*attributes(gen_ai__evaluation__name="q"), score],
        }
        for i in range(size)
    ]
    spans = [otlp_span(i, gen_ai__operation__name="chat") for i in range(size)]
    whole = {"scopeLogs": [{"logRecords": logs}], "scopeSpans": [{"spans": spans}]}
    return json.dumps({"resourceLogs": [{"scopeLogs": whole.pop("scopeLogs")}], "resourceSpans": [whole]})


def otlp_calls_of_one_id(size: int) -> str:
    asked = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "id": "x", "name": "f"}]}])
    spans = [otlp_span(0, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="a")]
    for i in range(1, 2 * size, 2):
        call = {"gen_ai__operation__name": "chat", "gen_ai__output__messages": asked}
        tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__call__id": "x", "gen_ai__tool__name": "f"}
        spans += [otlp_span(i, f"{1:016x}", **call), otlp_span(i + 1, f"{1:016x}", **tool)]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def dumped(size: int, **given: object) -> list[dict[str, Any]]:
    return [
        {
            "trace_id": "a" * 32,
            "span_id": f"{i + 1:016x}",
            "name": "chat",
            "start_time": i,
            "end_time": i + 1,
            "attributes": {"gen_ai.operation.name": "chat", **given},
        }
        for i in range(size)
    ]


def dump_of_two_lists(size: int) -> str:
    spans = dumped(4 * size)
    return json.dumps({"traces": spans[: 2 * size], "spans": spans[2 * size :]})


def mlflow_of_many_assessments(size: int) -> str:
    listed = [{"assessment_name": f"q{i}", "feedback": {"value": 1.0}} for i in range(size // 4)]
    return json.dumps({"data": {"spans": dumped(size // 4)}, "info": {"trace_id": "t", "assessments": listed}})


def langfuse_of_many_roots(size: int) -> str:
    one = {"traceId": "t", "startTime": "2025-01-01T00:00:00Z", "projectId": "p"}
    marked = {"attributes": {"openinference.span.kind": "AGENT"}}
    agent = {"type": "AGENT", "name": "run", "parentObservationId": None, "metadata": marked, **one}
    spans = [{"id": f"s{i}", **agent} for i in range(size)]
    return json.dumps([*spans, {"id": "c", "type": "GENERATION", "name": "g", "parentObservationId": None, **one}])


def agent_lightning_of_many_linked_rewards(size: int) -> str:
    def line(number: int, span: int, name: str, **given: object) -> str:
        one = {"rollout_id": "r", "attempt_id": "a", "sequence_id": number, "trace_id": "a" * 32, "parent_id": None}
        return json.dumps({**one, "span_id": f"{span:016x}", "name": name, "attributes": given, "start_time": number})

    calls = [line(i, i + 1, "openai.chat.completion", **{"gen_ai.response.id": f"x{i}"}) for i in range(size)]
    rewards = [
        line(
            size + i,
            size + i + 1,
            "agentlightning.annotation",
            **{
                "agentlightning.reward.0.name": "q",
                "agentlightning.reward.0.value": 1.0,
                "agentlightning.link.0.key_match": "span_id",
                "agentlightning.link.0.value_match": f"{size - i:016x}",
            },
        )
        for i in range(size)
    ]
    return "\n".join(calls + rewards)


def langgraph_event(step: int, kind: str, payload: dict[str, Any]) -> str:
    return json.dumps({"step": step, "timestamp": "2025-01-01T00:00:00+00:00", "type": kind, "payload": payload})


def langgraph_of_many_sends(size: int) -> str:
    lines = []
    for i in range(size):
        triggers = ["__pregel_push"] if i % 2 else ["x"]
        lines.append(langgraph_event(i, "task", {"id": f"a{i}", "name": "n", "input": {}, "triggers": triggers}))
        answer = [["messages", [{"type": "ai", "content": "y", "id": f"m{i}"}]]]
        lines.append(langgraph_event(i, "task_result", {"id": f"a{i}", "name": "n", "result": answer}))
    return "\n".join(lines)


def langgraph_checkpoint_of_many_tasks(size: int) -> str:
    """Its values, longer than what tells a format, stand first."""
    state = {"messages": [{"type": "human", "content": "hi", "id": f"m{i}"} for i in range(size)]}
    tasks = [{"id": f"t{i}", "name": "n", "path": ["__pregel_pull"], "result": {"messages": []}} for i in range(size)]

    def checkpoint(step: int, held: list[dict[str, Any]]) -> str:
        own = {"thread_id": "1", "checkpoint_ns": "", "checkpoint_id": str(step)}
        before = {"configurable": own | {"checkpoint_id": str(step - 1)}} if step else None
        more = {"created_at": "2025-01-01T00:00:00+00:00", "parent_config": before, "tasks": held, "next": []}
        return json.dumps({"values": state, "config": {"configurable": own}, "metadata": {"step": step}, **more})

    answered = {"type": "ai", "content": "y", "id": "answer"}
    tasks[0]["result"] = {"messages": [*state["messages"][::-1], answered]}
    return f"{checkpoint(0, tasks)}\n{checkpoint(1, [])}"


LOGS: dict[str, Callable[[int], str]] = {
    function.__name__: function
    for function in (
        otlp_logs_before_spans,
        otlp_calls_of_one_id,
        dump_of_two_lists,
        mlflow_of_many_assessments,
        langfuse_of_many_roots,
        agent_lightning_of_many_linked_rewards,
        langgraph_of_many_sends,
        langgraph_checkpoint_of_many_tasks,
    )
} | TEAMS


TIMES = {"otlp_calls_of_one_id": 2, "langfuse_of_many_roots": 4, "agent_lightning_of_many_linked_rewards": 4}
"""How much larger a log has to be for what is quadratic to show."""


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", LOGS)
def test_reading_is_linear(name: str, tmp_path: Path) -> None:
    def prepare(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.json"
        path.write_text(LOGS[name](size))
        return lambda: one(read(path))

    def one(traces: Traces) -> None:
        assert len(traces.traces) == 1

    assert_linear(prepare, LARGE * TIMES.get(name, 1), runs=1)


@pytest.mark.slow
def test_refusing_more_edges_than_the_limit_is_linear(tmp_path: Path) -> None:
    """Calls of n agents before n tasks, each of which any of them may have sent: no edge is drawn."""

    def prepare(size: int) -> Callable[[], object]:
        path = tmp_path / f"{size}.jsonl"
        path.write_text(sends_after_a_step(size, 1, size))
        return lambda: refuse(path)

    def refuse(path: Path) -> None:
        with pytest.raises(NothingReadError, match="too-many"):
            read(path, limits=Limits(edges=10_000))

    assert_linear(prepare, LARGE // 2, runs=1)


def test_assessments_of_a_trace_count_once(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(mlflow_of_many_assessments(12))
    metrics = read(path).evidence
    assert [name for name in metrics if name.startswith("rewards.")] == ["rewards.q0", "rewards.q1", "rewards.q2"]


def test_places_are_those_of_the_records_whatever_the_order_of_lists(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    content = json.dumps(json.loads(otlp_logs_before_spans(3)), indent=1)
    path.write_text(content)
    for i, row in enumerate(read(path).events.to_pylist()):
        span, _ = json.JSONDecoder().raw_decode(content, row["offset"])
        assert span["spanId"] == f"{i + 1:016x}" and row["line"] == content.count("\n", 0, row["offset"]) + 1


def test_bytes_that_are_no_text_in_what_surrounds_spans_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    content = json.dumps({"info": {"trace_id": "t"}, "data": {"spans": dumped(1)}}).encode()
    path.write_bytes(content.replace(b'"t"', b'"\xa0"'))
    with pytest.raises(NothingReadError, match="not-utf-8"):
        read(path)


@pytest.mark.parametrize("searches", [True, False])
@pytest.mark.parametrize(
    "log", ['{"trace_id":"t","task_id":"q","events":[{"id":"e","type":"stop","agent":"a"}]}', "{}"]
)
def test_reading_does_not_search_for_cycles(searches: bool, log: str, tmp_path: Path) -> None:
    """Each search passes over all that was read so far; afterwards it is switched on or off as before."""
    path = tmp_path / "x.jsonl"
    path.write_text(log)
    met = []

    def watch(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            met.append(gc.isenabled())
            yield item

    try:
        (gc.enable if searches else gc.disable)()
        with contextlib.suppress(NothingReadError):
            read(path, format="native", watch=watch)
        after = gc.isenabled()
    finally:
        gc.enable()
    assert met == [False] and after == searches


@pytest.mark.slow
def test_reading_many_files_is_linear(tmp_path: Path) -> None:
    """Of a format whose traces may be spread over files: what is lost in one of them may be of any trace."""

    def prepare(size: int) -> Callable[[], object]:
        folder = tmp_path / str(size)
        folder.mkdir()
        call = otlp_span(0, gen_ai__operation__name="chat")
        for i in range(size):
            spans = [call | {"traceId": f"{i + 1:032x}"}]
            (folder / f"{i}.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
        return lambda: len(read(folder).traces) == size

    assert_linear(prepare, LARGE, runs=1, most=2.0)
