"""Reading exports of the OpenAI Agents SDK: hand-offs, agents as tools, usage counted once, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.openai_agents import read as read_openai
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord, check

RECORDED = Path(__file__).parents[3] / "recordings" / "openai_agents_team.jsonl"
TRACE = {"object": "trace", "id": "t", "workflow_name": "flow"}


def span(span_id: str, parent: str | None, kind: str, **data: Any) -> dict[str, Any]:
    return {
        "object": "trace.span",
        "id": span_id,
        "trace_id": "t",
        "parent_id": parent,
        "span_data": {"type": kind, **data},
    }


def agent(span_id: str, name: str, parent: str | None = None) -> dict[str, Any]:
    return span(span_id, parent, "agent", name=name)


def items(path: Path) -> list[TraceRecord | Problem]:
    return [check(item) if isinstance(item, TraceRecord) else item for item in read_openai([Source(str(path), path)])]


def only(folder: Path, spans: list[Any]) -> TraceRecord:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in [TRACE, *spans]))
    (record,) = items(path)
    assert isinstance(record, TraceRecord), record
    return record


def shape(record: TraceRecord) -> list[tuple[str, str, bool]]:
    """(type, agent's name, whether it is an action) of each event."""
    named = (
        (EventType(t).name.lower(), record.instances[a].name) for t, a in zip(record.types, record.agents, strict=True)
    )
    return [(*pair, action) for pair, action in zip(named, record.actions, strict=True)]


def edges(record: TraceRecord) -> set[tuple[int, int, str]]:
    found = zip(record.senders, record.receivers, record.edge_types, strict=True)
    return {(s, r, EdgeType(kind).name.lower()) for s, r, kind in found}


def test_the_recorded_team() -> None:
    """Triage hands over to billing; it looks up, has the writer draft, and hands back to the triage that was there."""
    (record,) = items(RECORDED)
    assert isinstance(record, TraceRecord)
    assert shape(record) == [
        ("orchestrator_decision", "triage", True),
        ("spawn", "triage", False),
        ("orchestrator_decision", "billing", True),
        ("tool_call", "billing", False),
        ("tool_result", "billing", False),
        ("spawn", "billing", False),
        ("message", "writer", True),
        ("return", "writer", False),
        ("orchestrator_decision", "billing", True),
        ("message", "billing", False),
        ("orchestrator_decision", "triage", True),
    ]
    assert edges(record) == {
        (0, 1, "causal"),
        (1, 2, "spawn"),
        (2, 3, "tool_dependency"),
        (3, 4, "return"),
        (2, 5, "causal"),
        (5, 6, "spawn"),
        (6, 7, "causal"),
        (4, 8, "causal"),
        (7, 8, "return"),
        (2, 8, "temporal"),
        (8, 9, "causal"),
        (9, 10, "message"),
        (0, 10, "temporal"),
    }
    parents = {a.name: record.instances[a.parent].name if a.parent else "" for a in record.instances.values()}
    assert parents == {"triage": "", "billing": "triage", "writer": "billing"}


def test_usage_is_counted_once() -> None:
    """The task's span says what the team used in all; turns, tasks and generations repeat it."""
    raw = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    task = next(s["span_data"]["data"] for s in raw if s["object"] == "trace.span" and s["parent_id"] is None)
    assert task["usage"]["output_tokens"] == 18 and task["usage"]["input_tokens"] == 50
    everywhere = [s["span_data"].get("usage") or s["span_data"].get("data", {}).get("usage") for s in raw[1:]]
    assert sum(u["output_tokens"] for u in everywhere if u) == 60  # calls, turns and tasks
    traces = read(RECORDED)
    assert traces.evidence["tokens"].amounts.sum() == 18
    assert traces.evidence["input_tokens"].amounts.sum() == 50


def test_agents_that_python_calls_in_turn_are_roots(tmp_path: Path) -> None:
    spans = [agent("a", "one"), span("r1", "a", "response"), agent("b", "two"), span("r2", "b", "response")]
    record = only(tmp_path, spans)
    assert {a.name: a.parent for a in record.instances.values()} == {"one": "", "two": ""}
    assert edges(record) == set()


def test_a_wrapped_call_counts_at_the_inner_one(tmp_path: Path) -> None:
    outer = span("o", "a", "response", usage={"output_tokens": 9})
    inner = span("i", "o", "generation", usage={"completion_tokens": 9, "prompt_tokens": 4})
    record = only(tmp_path, [agent("a", "one"), outer, inner])
    assert record.ids == ["i"]
    assert (record.columns["tokens"], record.columns["input_tokens"]) == ([9], [4])


def test_a_chain_inside_a_tool_returns_from_its_last_agent(tmp_path: Path) -> None:
    spans = [
        agent("boss", "boss"),
        span("c0", "boss", "generation"),
        span("f", "boss", "function", name="ask"),
        agent("x", "first", "f"),
        span("c1", "x", "generation"),
        span("h", "x", "handoff", from_agent="first", to_agent="second"),
        agent("y", "second", "f"),
        span("c2", "y", "generation"),
        span("c3", "boss", "generation"),
    ]
    record = only(tmp_path, spans)
    assert [(kind, name) for kind, name, _ in shape(record)] == [
        ("orchestrator_decision", "boss"),
        ("spawn", "boss"),
        ("orchestrator_decision", "first"),
        ("spawn", "first"),
        ("message", "second"),
        ("return", "second"),
        ("orchestrator_decision", "boss"),
    ]
    assert (4, 5, "causal") in edges(record) and (5, 6, "return") in edges(record)


def test_guardrails_are_events_only_when_triggered(tmp_path: Path) -> None:
    quiet, loud = (
        span("g", "a", "guardrail", name="g", triggered=False),
        span("l", "a", "guardrail", name="l", triggered=True),
    )
    record = only(
        tmp_path, [agent("a", "one"), quiet, span("judge", "g", "generation"), loud, span("c", "a", "generation")]
    )
    assert shape(record) == [("safety_event", "one", False), ("message", "one", True)]


def test_an_agent_without_calls_acts_by_its_tools(tmp_path: Path) -> None:
    record = only(
        tmp_path, [agent("a", "one"), span("f", "a", "function", name="x"), span("g", "a", "function", name="y")]
    )
    assert shape(record) == [("tool_call", "one", True), ("tool_result", "one", False)] * 2
    assert edges(record) == {(0, 1, "return"), (1, 2, "causal"), (0, 2, "temporal"), (2, 3, "return")}


def test_events_outside_agents_belong_to_the_workflow(tmp_path: Path) -> None:
    record = only(tmp_path, [span("c", None, "generation")])
    assert shape(record) == [("message", "flow", True)]


@pytest.mark.parametrize("wrap", [lambda i: i, lambda i: {"data": i}, lambda i: {"traces": [{**i[0], "spans": i[1:]}]}])
def test_wrappings_read_alike(tmp_path: Path, wrap: Any) -> None:
    raw = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(wrap(raw), indent=2))
    (record,), (recorded,) = items(path), items(RECORDED)
    assert isinstance(record, TraceRecord) and isinstance(recorded, TraceRecord)
    assert (record.ids, record.types, edges(record)) == (recorded.ids, recorded.types, edges(recorded))


def test_a_trace_may_be_spread_over_files(tmp_path: Path) -> None:
    text = RECORDED.read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(text[:8]))
    (tmp_path / "b.jsonl").write_text("".join(text[8:]))
    traces = read(tmp_path)
    assert traces.sizes.events == 11 and traces.problems == ()
    assert len(set(traces.events["file"].to_pylist())) == 2


def test_a_span_that_stands_twice_counts_once(tmp_path: Path) -> None:
    text = RECORDED.read_text()
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "b.jsonl").write_text(text[: text.index("\n") + 1] + text[text.rindex("\n", 0, -1) + 1 :])
    traces = read(tmp_path)
    assert traces.sizes.events == 11 and [p.kind for p in traces.problems] == ["repeated-run"]


@pytest.mark.parametrize("first", ["t-9", "t-09"])
def test_files_of_any_name_are_one_order(tmp_path: Path, first: str) -> None:
    """`t-10` sorts before `t-9`: billing was a root, and the hand-off started an agent that no span is of."""
    pages = {
        first: [agent("a1", "triage"), span("g1", "a1", "generation"), span("h", "a1", "handoff", to_agent="billing")],
        "t-10": [agent("a2", "billing"), span("g2", "a2", "generation")],
    }
    started = (f"2026-01-01T00:00:0{second}+00:00" for second in range(5))
    for name, spans in pages.items():
        lines = [json.dumps(one | {"started_at": next(started)}) + "\n" for one in spans]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines[1:] + lines[:1]))  # a span is logged when it ends
    sources = [Source(str(path), path) for path in sorted(tmp_path.iterdir())]
    (record,) = read_openai(sources)
    assert isinstance(record, TraceRecord) and check(record).ids == ["g1", "h", "g2"]
    assert {name: one.parent for name, one in record.instances.items()} == {"a1": "", "a2": "a1"}


def test_spans_without_times_keep_the_order_of_the_log(tmp_path: Path) -> None:
    late, early = (
        span(name, "a", "generation") | {"started_at": f"2026-01-01T00:00:0{second}Z"}
        for name, second in (("late", 2), ("early", 1))
    )
    whole = agent("a", "x") | {"started_at": "2026-01-01T00:00:00Z"}
    assert only(tmp_path, [late, early, whole]).ids == ["early", "late"]
    assert only(tmp_path, [late, early, agent("a", "x")]).ids == ["early", "late"], "the agent's start orders nothing"
    plain = {name: span(name, "a", "generation") for name in ("late", "early", "other")}
    assert only(tmp_path, [plain["late"], plain["early"], whole]).ids == ["late", "early"]
    assert only(tmp_path, [early, plain["other"], late, whole]).ids == ["early", "other", "late"]
    path = tmp_path / "backwards.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (late, plain["other"], early, whole)))
    (problem,) = read_openai([Source(str(path), path)])
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.line, problem.field) == ("unordered-events", 2, "started_at")
    assert problem.expected == "a time of its own: other times run against the order of the file"


def test_files_whose_times_contradict_their_order_are_named(tmp_path: Path) -> None:
    """One span without a time left the files in the order of their names: g3 g4 g1 g2."""
    seconds = {"g1": 1, "g2": 2, "g3": 3, "g4": 4}
    for name, ids in {"x-9": ["g1", "g2"], "x-10": ["g3", "g4"]}.items():
        spans = [span(one, "a", "generation") | {"started_at": f"2026-01-01T00:00:0{seconds[one]}Z"} for one in ids]
        spans += [agent("a", "x") | {"started_at": None}] if name == "x-9" else []
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in spans))
    (problem,) = read_openai([Source(str(path), path) for path in sorted(tmp_path.iterdir())])
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.trace, problem.field) == ("unordered-events", "t", "started_at")
    assert (Path(problem.file).name, problem.line, problem.value) == ("x-9.jsonl", 3, "absent")


BAD = {
    "twice": ([agent("a", "x"), agent("a", "y")], "duplicate-span", "id"),
    "own parent": ([span("a", "a", "generation")], "parent-cycle", "parent_id"),
    "no events": ([agent("a", "x")], "no-events", "events"),
    "no name": ([span("a", None, "agent")], "missing-field", "span_data.name"),
    "no target": (
        [agent("a", "x"), span("h", "a", "handoff", from_agent="x", to_agent=None)],
        "missing-field",
        "span_data.to_agent",
    ),
    "tokens": (
        [span("a", None, "generation", usage={"output_tokens": -1})],
        "out-of-range",
        "span_data.usage.output_tokens",
    ),
    "time": ([span("a", None, "generation") | {"started_at": "noon"}], "bad-type", "started_at"),
    "data": ([span("a", None, "generation") | {"span_data": 3}], "bad-type", "span_data"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_trace_is_named_and_the_others_read(tmp_path: Path, name: str) -> None:
    spans, kind, field = BAD[name]
    path = tmp_path / "log.jsonl"
    path.write_text(RECORDED.read_text() + "".join(json.dumps(item) + "\n" for item in spans))
    traces = read(path)
    assert traces.sizes.events == 11
    (problem,) = traces.problems
    assert (problem.kind, problem.field, problem.trace) == (kind, field, "t")
    assert problem.is_failure == (kind != "no-events")


def test_a_caller_that_was_not_recorded_is_no_fault(tmp_path: Path) -> None:
    record = only(tmp_path, [agent("a", "x", "outside"), span("c", "a", "generation")])
    assert shape(record) == [("message", "x", True)]


@pytest.mark.parametrize(("lost", "alone"), [(["x"], ""), (["x", "y"], "missing-parent")])
def test_a_killed_run_without_its_agent_is_cut_short_beside_whole_ones(
    tmp_path: Path, lost: list[str], alone: str
) -> None:
    """A process that is killed exports no open span: the run seemed to be called from outside, and to have ended."""
    cut = [TRACE, *(span(f"c{one}", one, "generation") for one in lost)]
    (tmp_path / "alone.jsonl").write_text("".join(json.dumps(item) + "\n" for item in cut))
    assert [item.kind for item in items(tmp_path / "alone.jsonl") if isinstance(item, Problem)] == [alone] * bool(alone)
    path = tmp_path / "both.jsonl"
    path.write_text(RECORDED.read_text() + "".join(json.dumps(item) + "\n" for item in cut))
    (note,) = read(path).problems
    assert (note.kind, note.trace, note.is_failure) == ("cut-short", "t", False)
