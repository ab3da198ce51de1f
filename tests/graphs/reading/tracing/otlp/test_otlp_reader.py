"""The OTLP reader on spans written by hand: one rule a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import CreditError, NothingReadError, Problem
from graphs.event_graph import EventType
from graphs.formats import otlp
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.batch import Traces
from graphs.traces.record import TraceRecord

from .span_records import LEAD, WORKER, column, edges, make, read_files, read_one, refused, shape


def team() -> list[dict[str, Any]]:
    """A lead that calls a worker as a tool and a search beside it, children before parents."""
    return [
        make.chat(3, 2, 1, 2, ("c1", "c2")),
        make.chat(6, 5, 3, 4),
        make.agent(5, 4, 2.5, 6, "worker"),
        make.tool(7, 2, 2.2, 3.3, "c2"),
        make.tool(4, 2, 2.1, 6.1, "c1"),
        make.chat(8, 2, 7, 8),
        make.agent(2, 1, 0.5, 9, "lead", attributes={"gen_ai.usage.output_tokens": 999}),
        make.span(1, 0, 0, 10, {"gen_ai.operation.name": "invoke_workflow"}),
    ]


def test_a_team_reads_as_calls_with_effects(tmp_path: Path) -> None:
    record = read_one(tmp_path, team())
    assert shape(record) == [
        ("orchestrator_decision", "lead", True),
        ("tool_call", "lead", False),
        ("spawn", "lead", False),
        ("message", "worker", True),
        ("tool_result", "lead", False),
        ("return", "worker", False),
        ("orchestrator_decision", "lead", True),
    ]
    assert edges(record) == {
        (0, 1, "tool_dependency"),
        (0, 2, "causal"),
        (2, 3, "spawn"),
        (1, 4, "return"),
        (3, 5, "causal"),
        (0, 6, "temporal"),
        (4, 6, "causal"),
        (5, 6, "return"),
    }
    assert record.instances[WORKER].parent == LEAD
    assert record.instances[LEAD].parent == ""
    assert column(record, "to") == [None, None, WORKER, None, None, LEAD, None]
    assert record.times == [1, 2.2, 2.5, 3, 3.3, 6, 7]
    assert record.group_id == record.trace_id == make.TRACE


def test_usage_repeated_on_agents_counts_once(tmp_path: Path) -> None:
    assert column(read_one(tmp_path, team()), "tokens") == [13, None, None, 16, None, None, 18]


def test_the_place_of_an_event_is_its_span(tmp_path: Path) -> None:
    path = tmp_path / "indented.jsonl"
    path.write_text(f"\n  {json.dumps(make.spans_request(team()))}\n")
    (record,) = otlp.read([Source(str(path), path)])
    assert isinstance(record, TraceRecord)
    data = path.read_bytes()
    for event_id, offset, line in zip(record.ids, record.offsets, record.lines, strict=True):
        span, _ = json.JSONDecoder().raw_decode(data[offset:].decode())
        assert span["spanId"] == event_id.split(".")[0] and line == 2


def test_a_pretty_printed_file_reads_the_same_with_lines(tmp_path: Path) -> None:
    path = tmp_path / "pretty.json"
    path.write_text(json.dumps(make.spans_request(team()), indent=2))
    (record,) = otlp.read([Source(str(path), path)])
    assert isinstance(record, TraceRecord)
    assert shape(record) == shape(read_one(tmp_path, team()))
    lines = path.read_text().splitlines()
    assert all(lines[line - 1].strip() == "{" for line in record.lines) and len(set(record.lines)) == 5


def test_a_trace_may_be_spread_over_files(tmp_path: Path) -> None:
    spans = team()
    halves = [make.spans_request(spans[:4]), make.spans_request(spans[4:])]
    (record,) = read_files(tmp_path, *halves)
    assert isinstance(record, TraceRecord)
    assert shape(record) == shape(read_one(tmp_path, spans))
    assert len(set(record.files)) == 2


def test_two_traces_in_one_request(tmp_path: Path) -> None:
    other = "f" * 32
    spans = [make.chat(1, 0, 0, 1), make.chat(1, 0, 0, 1, trace=other)]
    first, second = read_files(tmp_path, make.spans_request(spans))
    assert isinstance(first, TraceRecord) and isinstance(second, TraceRecord)
    assert (first.trace_id, second.trace_id) == (make.TRACE, other)


def test_a_call_without_agent_belongs_to_the_service(tmp_path: Path) -> None:
    spans = [make.chat(1, 0, 0, 1), make.tool(2, 1, 1, 2)]
    assert shape(read_one(tmp_path, spans, resource={"service.name": "shop"}))[0] == ("message", "shop", True)
    unknown = read_one(tmp_path, spans, resource={"service.name": "unknown_service:python"})
    assert shape(unknown) == [
        ("message", "agent", True),
        ("tool_call", "agent", False),
        ("tool_result", "agent", False),
    ]


def test_without_model_calls_tool_calls_and_spawns_are_the_actions(tmp_path: Path) -> None:
    spans = [
        make.agent(1, 0, 0, 9, "lead"),
        make.tool(2, 1, 1, 2),
        make.agent(3, 1, 3, 6, "worker"),
        make.tool(4, 3, 4, 5),
    ]
    record = read_one(tmp_path, spans)
    assert shape(record) == [
        ("tool_call", "lead", True),
        ("tool_result", "lead", False),
        ("spawn", "lead", True),
        ("tool_call", "worker", True),
        ("tool_result", "worker", False),
        ("return", "worker", False),
    ]
    assert edges(record) == {
        (0, 1, "return"),
        (0, 2, "temporal"),
        (1, 2, "causal"),
        (2, 3, "spawn"),
        (3, 4, "return"),
        (3, 5, "causal"),
    }


def test_old_spellings(tmp_path: Path) -> None:
    old = {"gen_ai.system": "x", "gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": 3.0}
    nameless = make.span(2, 0, 2, 3, {"gen_ai.system": "x", "gen_ai.request.model": "m"})
    named = make.span(1, 0, 0, 1, {"gen_ai.operation.name": "text_completion", **old})
    record = read_one(tmp_path, [named, nameless])
    assert column(record, "tokens") == [3, None] and column(record, "input_tokens") == [7, None]


def test_openinference(tmp_path: Path) -> None:
    def kind(name: str, **more: Any) -> dict[str, Any]:
        return {"openinference.span.kind": name} | {key.replace("__", "."): v for key, v in more.items()}

    calls = {f"llm.output_messages.0.message.tool_calls.{i}.tool_call.id": f"c{i}" for i in range(2)}
    spans = [
        make.span(1, 0, 0, 20, kind("CHAIN")),
        make.span(2, 1, 0, 20, kind("AGENT", agent__name="lead", graph__node__id="n1")),
        make.span(3, 2, 1, 2, kind("LLM", llm__token_count__completion=5, llm__token_count__prompt=9) | calls),
        make.span(4, 2, 3, 4, kind("TOOL", tool__name="calc", tool__id="c0")),
        make.span(5, 2, 5, 8, kind("RETRIEVER"), name="docs"),
        make.span(6, 5, 6, 7, kind("EMBEDDING")),
        make.span(7, 2, 9, 10, kind("GUARDRAIL")),
        make.span(8, 7, 9, 10, kind("LLM")),
        make.span(9, 1, 11, 12, kind("EVALUATOR")),
        make.span(10, 9, 11, 12, kind("LLM", llm__token_count__completion=500)),
    ]
    record = read_one(tmp_path, spans)
    assert shape(record) == [
        ("message", "lead", True),
        ("tool_call", "lead", False),
        ("tool_result", "lead", False),
        ("tool_call", "lead", False),
        ("tool_result", "lead", False),
        ("safety_event", "lead", False),
    ]
    assert column(record, "tool") == [None, "calc", "calc", "docs", "docs", None]
    assert column(record, "tokens") == [5, None, None, None, None, None]
    assert record.instances[make.span_id(2)].role == "n1"


def test_both_dialects_in_one_trace(tmp_path: Path) -> None:
    spans = [make.agent(1, 0, 0, 9, "lead"), make.span(2, 1, 1, 2, {"openinference.span.kind": "LLM"})]
    assert shape(read_one(tmp_path, spans)) == [("message", "lead", True)]


def test_a_wrapper_of_a_model_call_counts_once(tmp_path: Path) -> None:
    chain = make.span(2, 1, 0, 5, {"openinference.span.kind": "CHAIN"})
    record = read_one(tmp_path, [make.chat(1, 0, 0, 5), chain, make.chat(3, 2, 1, 4)])
    assert column(record, "tokens") == [13]


def test_a_model_call_around_its_tools_is_no_wrapper(tmp_path: Path) -> None:
    record = read_one(tmp_path, [make.chat(1, 0, 0, 5), make.tool(2, 1, 1, 4), make.chat(3, 2, 2, 3)])
    assert column(record, "tokens") == [11, None, 13, None]


def test_a_plan_is_a_decision(tmp_path: Path) -> None:
    plan = {"gen_ai.operation.name": "plan"}
    alone = read_one(tmp_path, [make.span(1, 0, 0, 1, plan)])
    around = read_one(tmp_path, [make.span(1, 0, 0, 5, plan), make.chat(2, 1, 1, 2)])
    assert shape(alone) == shape(around) == [("orchestrator_decision", "agent", True)]
    assert column(around, "tokens") == [12]


def test_create_agent_is_no_event(tmp_path: Path) -> None:
    created = make.span(2, 1, 0, 1, {"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "worker"})
    record = read_one(tmp_path, [make.agent(1, 0, 0, 9, "lead"), created, make.chat(3, 1, 2, 3)])
    assert shape(record) == [("message", "lead", True)] and len(record.instances) == 1


@pytest.mark.parametrize(
    ("outer", "inner", "instances"),
    [
        ({"gen_ai.agent.id": "a7"}, {"gen_ai.agent.id": "a7"}, 2),
        ({}, {}, 2),
        ({"gen_ai.agent.id": "a7"}, {"gen_ai.agent.id": "a8"}, 3),
    ],
)
def test_the_two_spans_of_a_remote_agent_are_one_instance(
    tmp_path: Path, outer: dict[str, str], inner: dict[str, str], instances: int
) -> None:
    http = make.span(4, 3, 2, 7, {"http.request.method": "POST"})
    spans = [
        make.agent(1, 0, 0, 9, "lead"),
        make.chat(2, 1, 0, 1),
        make.agent(3, 1, 2, 8, "far", attributes=outer),
        http,
        make.agent(5, 4, 3, 6, "far", attributes=inner),
        make.chat(6, 5, 4, 5),
    ]
    assert len(read_one(tmp_path, spans).instances) == instances


def test_an_agent_that_works_before_it_delegates_to_its_like_is_not_merged(tmp_path: Path) -> None:
    spans = [make.agent(1, 0, 0, 9, "a"), make.chat(2, 1, 1, 2), make.agent(3, 1, 3, 5, "a"), make.chat(4, 3, 4, 5)]
    assert len(read_one(tmp_path, spans).instances) == 2


def test_equal_tool_call_ids_go_to_the_latest_call_that_asked(tmp_path: Path) -> None:
    spans = [
        make.chat(1, 0, 0, 1, ("x",)),
        make.tool(2, 0, 2, 3, "x"),
        make.chat(3, 0, 4, 5, ("x",)),
        make.chat(4, 0, 6, 7),
        make.tool(5, 0, 8, 9, "x"),
        make.tool(6, 0, 10, 11, "lost"),
    ]
    asked = {(s, r) for s, r, name in edges(read_one(tmp_path, spans)) if name == "tool_dependency"}
    assert asked == {(0, 1), (3, 5), (4, 7)}


def test_messages_as_structure_and_cut_off(tmp_path: Path) -> None:
    parts = [{"type": "text", "content": "hm"}, {"type": "tool_call", "id": "c9", "name": "t"}]
    given = {"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]}
    spans = [
        make.chat(1, 0, 0, 1, attributes=given),
        make.chat(2, 0, 2, 3, attributes={"gen_ai.output.messages": '[{"role":"assistant","pa'}),
        make.tool(3, 0, 4, 5, "c9"),
        make.tool(4, 0, 6, 7, "c0"),
    ]
    asked = {(s, r) for s, r, name in edges(read_one(tmp_path, spans)) if name == "tool_dependency"}
    assert asked == {(0, 2), (1, 4)}


def test_clocks_never_contradict_the_tree(tmp_path: Path) -> None:
    spans = [
        make.chat(3, 2, 50, 60, ("c1",)),
        make.tool(4, 2, 1, 2, "c1"),  # starts before the call that asked for it
        make.chat(5, 2, 70, 80),
        make.agent(2, 1, 90, 10, "worker"),  # starts after its children, ends before it starts
        make.agent(1, 0, 0, 100, "lead"),
    ]
    assert [name for name, _, _ in shape(read_one(tmp_path, spans))] == [
        "spawn",
        "message",
        "tool_call",
        "tool_result",
        "message",
        "return",
    ]


def test_without_times_file_order_holds(tmp_path: Path) -> None:
    spans = [make.chat(2, 1, 0, 0), make.tool(3, 1, 0, 0), make.chat(4, 1, 0, 0), make.agent(1, 0, 0, 0, "lead")]
    record = read_one(tmp_path, spans)
    assert [name for name, _, _ in shape(record)] == ["message", "tool_call", "tool_result", "message"]
    assert all(time != time for time in record.times)


def test_groups(tmp_path: Path) -> None:
    mark, session = {"orchestration_credit.group": "t1"}, {"gen_ai.conversation.id": "s", "session.id": "s"}
    assert read_one(tmp_path, [make.chat(1, 0, 0, 1)], resource=mark).group_id == "t1"
    assert read_one(tmp_path, [make.chat(1, 0, 0, 1, attributes=mark)]).group_id == "t1"
    assert read_one(tmp_path, [make.chat(1, 0, 0, 1, attributes=session)]).group_id == make.TRACE
    two = [make.chat(i, 0, 0, 1, attributes={"orchestration_credit.group": f"t{i}"}) for i in (1, 2)]
    assert refused(tmp_path, two).kind == "ambiguous-mark"


def test_a_mark_of_the_trace_is_read_on_a_resource_as_on_a_span(tmp_path: Path) -> None:
    """`orchestration_credit.system` on a resource was passed over without a word."""
    names = {"system": "v2", "topology": "star", "error": "killed", "costs.usd": 0.5, "metrics.steps": 3.0}
    marks = {f"orchestration_credit.{name}": value for name, value in names.items()}
    spans = [make.chat(1, 0, 0, 1), make.chat(2, 0, 1, 2)]
    on_resource, on_span = read_one(tmp_path, spans, resource=marks), make.chat(1, 0, 0, 1, attributes=marks)
    for record in (on_resource, read_one(tmp_path, [on_span, spans[1]])):
        assert (record.system, record.topology, record.error) == ("v2", "star", "killed")
        assert (record.costs, record.metrics) == ({"usd": 0.5}, {"steps": 3.0})
    both = read_one(tmp_path, [on_span], resource={"orchestration_credit.system": "v1"})
    assert both.system == "v2"  # the nearer one
    for name, value in (("event.type", "stop"), ("agent.role", "boss"), ("sytem", "v2")):
        problem = refused(tmp_path, spans, resource={f"orchestration_credit.{name}": value})
        assert (problem.kind, problem.field) == ("bad-mark", f"orchestration_credit.{name}")


def test_the_version_of_the_service_that_a_trace_begins_in_is_its_system(tmp_path: Path) -> None:
    """Two versions of one service were one group, and no side could be told."""

    def system(*requests: tuple[list[dict[str, Any]], dict[str, Any]]) -> str:
        (record,) = read_files(tmp_path, *(make.spans_request(spans, resource=of) for spans, of in requests))
        assert isinstance(record, TraceRecord), record
        return record.system

    team, tools = {"service.name": "team", "service.version": "1.9.0"}, {"service.version": "3.0"}
    root, call = make.agent(1, 0, 0, 9, "lead"), make.chat(2, 1, 1, 2)
    assert system(([root, call], team)) == "1.9.0"
    assert system(([root], team), ([call], tools)) == system(([call], tools), ([root], team)) == "1.9.0"
    assert system(([root], {}), ([call], tools)) == "3.0"
    assert system(([root, call], {"service.name": "team"})) == system(([root, call], {"service.version": 7})) == ""
    assert system(([root, call], team | {"orchestration_credit.system": "pilot"})) == "pilot"
    assert system(([make.chat(2, 1, 1, 2)], team), ([make.chat(3, 1, 1, 2)], tools)) == ""  # cut short, of either


def test_the_version_of_a_gateway_is_no_system_of_the_team_behind_it(tmp_path: Path) -> None:
    """With a root of HTTP all traces were of system 9.1.0, and no side could be told."""

    def system(*requests: tuple[list[dict[str, Any]], str]) -> str:
        of = (make.spans_request(spans, resource={"service.version": version}) for spans, version in requests)
        (record,) = read_files(tmp_path, *of)
        assert isinstance(record, TraceRecord), record
        return record.system

    gateway = [make.span(1, 0, 1, 9, {"http.request.method": "POST"})]
    route, lead = make.span(2, 1, 2, 9, {"http.route": "/x"}), make.agent(3, 2, 3, 9, "lead")
    worker = ([make.agent(4, 3, 4, 6, "worker"), make.chat(5, 4, 5, 6)], "1.7")
    assert system((gateway, "9.1.0"), ([route, lead], "2.3.1"), worker) == "2.3.1"
    assert system((gateway, "9.1.0"), ([route], ""), ([lead], "2.3.1"), worker) == "2.3.1"
    assert system(([lead], "2.3.1"), worker) == "2.3.1"  # whose caller is outside the log
    assert system((gateway, "9.1.0"), ([route, lead], ""), worker) == "9.1.0"
    guard = ([make.span(8, 2, 2, 3, {"openinference.span.kind": "GUARDRAIL"})], "4.0")
    assert system((gateway, "9.1.0"), ([route, lead], "2.3.1"), worker, guard) == "2.3.1"
    other = ([make.agent(6, 2, 4, 6, "reviewer"), make.chat(7, 6, 5, 6)], "1.8")
    assert system((gateway, "9.1.0"), ([route, lead], "2.3.1"), other) == "9.1.0"


def test_marks_set_by_hand(tmp_path: Path) -> None:
    names = {"event.type": "stop", "event.log_prob": -1.5, "event.context": "h", "agent.role": "unused"}
    given = {f"orchestration_credit.{name}": value for name, value in names.items()}
    role = {"orchestration_credit.agent.role": "boss"}
    record = read_one(
        tmp_path, [make.agent(1, 0, 0, 2, "lead", attributes=role), make.chat(2, 1, 0, 1, attributes=given)]
    )
    assert record.types == [EventType.STOP] and record.instances[make.span_id(1)].role == "boss"
    assert column(record, "log_prob") == [-1.5] and column(record, "context") == ["h"]
    spawn = {"orchestration_credit.event.type": "spawn"}
    assert refused(tmp_path, [make.chat(2, 0, 0, 1, attributes=spawn)]).kind == "bad-mark"


def test_sniff() -> None:
    assert otlp.sniff(b'{"resourceSpans" : [{')
    assert otlp.sniff(b'\n{"resourceLogs":[')
    assert otlp.sniff(b'{"resource":{},"scopeSpans":[')
    assert not otlp.sniff(b'{"message":"{\\"resourceSpans\\":[]}"}')
    assert not otlp.sniff(b"")


def test_the_console_dump_of_the_sdk_is_not_otlp(shared_data: Path) -> None:
    (dump,) = (shared_data / "openai_agents_sdk").glob("otel_traces_*.json")
    assert not otlp.sniff(Source("dump", dump).head(1 << 16))


def test_the_span_of_a_workflow_is_no_agent(tmp_path: Path) -> None:
    """OpenInference's instrumentation of the OpenAI Agents SDK makes the run an AGENT without `agent.name`."""

    def kind(name: str, **more: Any) -> dict[str, Any]:
        return {"openinference.span.kind": name} | {key.replace("__", "."): v for key, v in more.items()}

    spans = [
        make.span(1, 0, 0, 20, kind("AGENT"), name="Agent workflow"),
        make.span(2, 1, 0, 9, kind("AGENT", graph__node__id="lead"), name="lead"),
        make.span(3, 2, 1, 2, kind("LLM")),
    ]
    record = read_one(tmp_path, spans)
    assert [agent.name for agent in record.instances.values()] == ["lead"]
    assert shape(record) == [("message", "lead", True)]
    works_itself = [*spans, make.span(4, 1, 15, 16, kind("LLM"))]
    assert len(read_one(tmp_path, works_itself).instances) == 2
    served = [make.span(9, 0, 0, 21, {}, name="POST /invocations"), make.span(1, 9, 0, 20, kind("AGENT")), *spans[1:]]
    assert [agent.name for agent in read_one(tmp_path, served).instances.values()] == ["lead"]


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"gen_ai.agent.id": "s-77", "gen_ai.conversation.id": "s-77"}, "invoke_agent s-77"),
        ({"gen_ai.agent.id": "3f2b8a1e-6c1d-4f0e-9a59-0a8a53f6d2aa"}, "invoke_agent"),
        ({"session.id": "s-77"}, "invoke_agent s-77"),
    ],
)
def test_an_unnamed_agent_is_not_named_after_its_session(tmp_path: Path, attributes: dict[str, Any], name: str) -> None:
    agent = make.span(1, 0, 0, 9, {"gen_ai.operation.name": "invoke_agent", **attributes}, name=name)
    record = read_one(tmp_path, [agent, make.chat(2, 1, 1, 2)])
    assert [agent.name for agent in record.instances.values()] == ["agent"]


def test_a_trace_without_events_is_no_failure(tmp_path: Path) -> None:
    chain = make.span(1, 0, 0, 9, {"openinference.span.kind": "CHAIN"}, trace="b" * 32)
    record, note, empty = read_files(tmp_path, make.spans_request([chain, make.chat(1, 0, 0, 1)]))
    assert isinstance(record, TraceRecord) and isinstance(empty, TraceRecord) and empty.unread == ()
    assert isinstance(note, Problem)
    assert note.kind == "no-events" and not note.is_failure


BOTH = {"gen_ai.handoff.from_agent": "triage", "gen_ai.handoff.to_agent": "expert"}
HANDOFFS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "OpenTelemetry": ("agent_handoff triage", 2, BOTH | {"gen_ai.operation.name": "agent_handoff"}),
    "OpenLLMetry": ("triage → expert.handoff", 2, BOTH | {"traceloop.span.kind": "handoff"}),
    "beside its agent": ("handoff", 1, BOTH | {"gen_ai.operation.name": "handoff"}),
    "names apart": ("handoff", 2, {f"{key}.name": name for key, name in BOTH.items()}),
    "OpenInference": ("handoff to expert", 2, {"openinference.span.kind": "TOOL", "output.value": "expert"}),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("dialect", HANDOFFS)
def test_a_handoff_starts_the_agent_that_it_names(tmp_path: Path, dialect: str, order: int) -> None:
    """The agent that took over was a second root, at work beside the first."""
    name, parent, attributes = HANDOFFS[dialect]
    spans = [
        make.span(1, 0, 0, 10, {"gen_ai.operation.name": "invoke_workflow"}),
        make.agent(2, 1, 0.5, 4, "triage"),
        make.chat(3, 2, 1, 2),
        make.span(4, parent, 3, 3, attributes, name=name),
        make.agent(5, 1, 5, 9, "expert"),
        make.chat(6, 5, 6, 7),
    ]
    record = read_one(tmp_path, spans[::order])
    assert shape(record) == [
        ("orchestrator_decision", "triage", True),
        ("spawn", "triage", False),
        ("message", "expert", True),
    ]
    assert edges(record) == {(0, 1, "causal"), (1, 2, "spawn")}
    assert record.instances[WORKER].parent == LEAD and column(record, "to") == [None, WORKER, None]


def test_a_handoff_back_wakes_the_agent(tmp_path: Path) -> None:
    back = {"gen_ai.handoff.from_agent": "expert", "gen_ai.handoff.to_agent": "triage"}
    spans = [
        make.agent(2, 1, 0.5, 4, "triage"),
        make.chat(3, 2, 1, 2),
        make.span(4, 2, 3, 3, BOTH),
        make.agent(5, 1, 5, 9, "expert"),
        make.chat(6, 5, 6, 7),
        make.span(7, 5, 8, 8, back),
        make.agent(8, 1, 10, 12, "triage"),
        make.chat(9, 8, 11, 12),
        make.span(1, 0, 0, 13, {}),
    ]
    record = read_one(tmp_path, spans)
    assert [agent.name for agent in record.instances.values()] == ["triage", "expert"]
    assert shape(record) == [
        ("orchestrator_decision", "triage", True),
        ("spawn", "triage", False),
        ("orchestrator_decision", "expert", True),
        ("message", "expert", False),
        ("orchestrator_decision", "triage", True),
    ]
    assert {(1, 2, "spawn"), (3, 4, "message")} <= edges(record)
    assert record.instances[WORKER].parent == LEAD


def test_a_handoff_of_no_known_agent_is_structure(tmp_path: Path) -> None:
    spans = [make.span(1, 0, 0, 9, BOTH), make.agent(5, 1, 5, 9, "expert"), make.chat(6, 5, 6, 7)]
    assert shape(read_one(tmp_path, spans)) == [("message", "expert", True)]


def pieces(end: float = 4) -> list[dict[str, Any]]:
    """A root, and two pieces that hung on spans which were not exported."""
    return [make.agent(2, 0, 0.5, 9, "lead"), make.chat(3, 77, 1, 2), make.chat(6, 78, 3, end)]


def acting(traces: Traces) -> list[str]:
    """The agent's name of each action."""
    names = traces.agents["name"].to_pylist()
    return [names[agent] for agent in traces.graph.agent_ids[traces.graph.action_mask]]


def test_pieces_within_the_root_are_attached_on_request(tmp_path: Path) -> None:
    """An exporter that drops the spans of a framework left traces that were refused whole."""
    path = make.write_lines(tmp_path / "log.jsonl", make.spans_request(pieces()))
    with pytest.raises(NothingReadError, match="missing-parent") as caught:
        read(path, orphans="refuse")
    kept = read(path)
    assert acting(kept) == ["unknown", "unknown"] and kept.sizes.agents == 3
    assert "--orphans root" in str(caught.value) and "--orphans root" in kept.problems[0].expected
    traces = read(path, orphans="root")
    assert acting(traces) == ["lead", "lead"] and traces.sizes.agents == 1
    (note,) = traces.problems
    told = (note.kind, note.is_failure, note.trace)
    assert told == ("attached-orphans", False, make.TRACE) and "2 spans" in note.value
    with pytest.raises(CreditError, match="orphans is 'x'"):
        read(path, orphans="x")


def test_a_piece_outside_the_root_is_never_attached(tmp_path: Path) -> None:
    path = make.write_lines(tmp_path / "log.jsonl", make.spans_request(pieces(end=10)))
    traces = read(path, orphans="root")
    assert acting(traces) == ["lead", "unknown"]
    assert [(note.kind, note.is_failure) for note in traces.problems] == [
        ("cut-short", False),
        ("attached-orphans", False),
    ]


WORKER_IN_LEAD = [make.agent(2, 0, 0.5, 9, "lead"), make.chat(3, 2, 1, 2), make.agent(4, 2, 3, 8, "worker")]


def test_a_piece_goes_to_the_one_agent_at_work_or_to_the_one_that_it_names(tmp_path: Path) -> None:
    """The lost child of a running worker became an action of the lead."""
    named = make.chat(6, 77, 4, 5, attributes={"gen_ai.agent.name": "worker"})
    alone = make.chat(7, 78, 8.2, 8.8)
    path = make.write_lines(tmp_path / "log.jsonl", make.spans_request([*WORKER_IN_LEAD, named, alone]))
    assert acting(read(path, orphans="root")) == ["lead", "worker", "lead"]
    assert acting(read(path)) == ["lead", "worker", "unknown"]


@pytest.mark.parametrize("stated", [{}, {"gen_ai.agent.name": "third"}])
def test_a_piece_of_several_agents_or_of_an_unknown_one_stays_apart(tmp_path: Path, stated: dict[str, Any]) -> None:
    spans = [*WORKER_IN_LEAD, make.chat(6, 77, 4, 5, attributes=stated)]
    path = make.write_lines(tmp_path / "log.jsonl", make.spans_request(spans))
    for orphans in ("keep", "root"):
        traces = read(path, orphans=orphans)
        assert acting(traces) == ["lead", stated.get("gen_ai.agent.name", "unknown")]
        assert [note.kind for note in traces.problems] == ["cut-short"]


TRACES = ["a" * 32, "b" * 32]
WHOLE = [
    make.agent(2, 0, 0.5, 9, "lead", trace=TRACES[0]),
    make.chat(3, 2, 1, 2, trace=TRACES[0]),
    make.agent(5, 2, 3, 8, "worker", trace=TRACES[0]),
    make.chat(6, 5, 4, 5, trace=TRACES[0]),
]
SERVICE = {"service.name": "crew"}


def after_kill(*ids: int) -> list[dict[str, Any]]:
    """The spans of the whole trace, as another, that a process which was killed had exported."""
    return [span | {"traceId": TRACES[1]} for span in WHOLE if span["spanId"] in map(make.span_id, ids)]


KILLED = {  # what was exported: who acts, of how many missing parents the note tells
    "the root is missing": (after_kill(3, 5, 6), ["unknown", "worker"], "no root span: 1 span above 2 spans"),
    "the root and an agent are": (after_kill(3, 6), ["unknown", "unknown"], "no root span: 2 spans above 2 spans"),
    "an agent is": (after_kill(2, 3, 6), ["lead", "unknown"], "1 span above 1 span"),
}


@pytest.mark.parametrize("name", KILLED)
@pytest.mark.parametrize("orphans", ["keep", "root", "refuse"])
def test_a_killed_run_is_read_as_cut_short_beside_whole_ones(tmp_path: Path, name: str, orphans: str) -> None:
    """Killed processes export no open span: such runs, all failures, were refused, or had an agent of the service."""
    spans, names, told = KILLED[name]
    requests = [make.spans_request(each, resource=SERVICE) for each in (WHOLE, spans)]
    path = make.write_lines(tmp_path / "log.jsonl", *requests)
    traces = read(path, orphans=orphans)
    if orphans == "refuse":
        assert traces.sizes.traces == 1 and [p.kind for p in traces.problems] == ["missing-parent"]
        return
    attached = orphans == "root" and name == "an agent is"  # else nothing that is known was at work
    assert acting(traces) == ["lead", "worker", *(["lead", "lead"] if attached else names)]
    (note,) = traces.problems
    assert (note.trace, note.is_failure) == (TRACES[1], False)
    assert note.kind == ("attached-orphans" if attached else "cut-short")
    assert attached or told in note.value


def test_without_a_whole_trace_a_missing_root_is_a_caller_outside_the_log(tmp_path: Path) -> None:
    path = make.write_lines(tmp_path / "log.jsonl", make.spans_request(after_kill(3, 5, 6), resource=SERVICE))
    traces = read(path)
    assert acting(traces) == ["crew", "worker"]
    assert [(note.kind, note.is_failure) for note in traces.problems] == [("outside-caller", False)]
