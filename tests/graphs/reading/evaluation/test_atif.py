"""Reading ATIF trajectories: sub-agents nested and in files, token evidence, copied context, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from linear_time import assert_linear

from graphs.errors import NothingReadError, Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.atif import read as read_atif
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord, check


def trajectory(steps: list[dict[str, Any]], name: str = "lead", **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": i, "message": "", **step} for i, step in enumerate(steps, start=1)]
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": name}, "steps": numbered} | more


def acts(*calls: str, results: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"source": "agent"}
    if calls:
        step["tool_calls"] = [{"tool_call_id": c, "function_name": f"do_{c}", "arguments": {}} for c in calls]
    if results is not None:
        step["observation"] = {"results": results}
    return step | more


def answer(call: str | None, **reference: str) -> dict[str, Any]:
    extra = {"subagent_trajectory_ref": [reference]} if reference else {"content": "x"}
    return {"source_call_id": call, **extra}


USER = {"source": "user"}


def items(folder: Path, **files: Any) -> list[TraceRecord | Problem]:
    sources = []
    for name, value in files.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(value, indent=1))
        sources.append(Source(str(path), path))
    return [check(item) if isinstance(item, TraceRecord) else item for item in read_atif(sources)]


def only(folder: Path, value: Any) -> TraceRecord:
    (record,) = items(folder, log=value)
    assert isinstance(record, TraceRecord), record
    return record


def shape(record: TraceRecord) -> list[tuple[str, str, str]]:
    rows = zip(record.ids, record.types, record.agents, strict=True)
    return [(event, EventType(kind).name.lower(), record.instances[agent].name) for event, kind, agent in rows]


def edges(record: TraceRecord) -> set[tuple[str, str, str]]:
    found = zip(record.senders, record.receivers, record.edge_types, strict=True)
    return {(record.ids[s], record.ids[r], EdgeType(kind).name.lower()) for s, r, kind in found}


NESTED = trajectory(
    [USER, acts("a", "b", results=[answer("a", trajectory_id="sub"), answer("b")]), acts()],
    subagent_trajectories=[
        trajectory([USER, acts("c", results=[answer("c", trajectory_id="deep")])], "worker", trajectory_id="sub"),
        trajectory([acts()], "helper", trajectory_id="deep"),
    ],
)


def test_nested_sub_agents(tmp_path: Path) -> None:
    """References are resolved in the trajectory itself and in the outermost one."""
    record = only(tmp_path, NESTED)
    assert shape(record) == [
        ("1", "human_intervention", "lead"),
        ("2", "orchestrator_decision", "lead"),
        ("2/call-1", "tool_call", "lead"),
        ("2/agent-0.spawn", "spawn", "lead"),
        ("2/agent-0/2", "orchestrator_decision", "worker"),
        ("2/agent-0/2/agent-0.spawn", "spawn", "worker"),
        ("2/agent-0/2/agent-0/1", "message", "helper"),
        ("2/agent-0/2/agent-0.return", "return", "helper"),
        ("2/agent-0.return", "return", "worker"),
        ("2/result-1", "tool_result", "lead"),
        ("3", "orchestrator_decision", "lead"),
    ]
    assert edges(record) == {
        ("1", "2", "causal"),
        ("2", "2/call-1", "tool_dependency"),
        ("2", "2/agent-0.spawn", "causal"),
        ("2/agent-0.spawn", "2/agent-0/2", "spawn"),
        ("2/agent-0/2", "2/agent-0/2/agent-0.spawn", "causal"),
        ("2/agent-0/2/agent-0.spawn", "2/agent-0/2/agent-0/1", "spawn"),
        ("2/agent-0/2/agent-0/1", "2/agent-0/2/agent-0.return", "causal"),
        ("2/agent-0/2", "2/agent-0.return", "causal"),
        ("2/call-1", "2/result-1", "return"),
        ("2/agent-0.return", "3", "return"),
        ("2/result-1", "3", "causal"),
        ("2", "3", "temporal"),
    }
    assert record.columns["tool"][3] == "do_a"
    parents = {agent.name: agent.parent for agent in record.instances.values()}
    assert parents == {"lead": "", "worker": "main", "helper": "2/agent-0"}


def test_tokens_and_log_probabilities_are_evidence(tmp_path: Path) -> None:
    steps = [
        acts(metrics={"prompt_tokens": 9, "completion_token_ids": [4, 5, 6], "logprobs": [-0.5, -0.25, -1.0]}),
        acts(metrics={"completion_tokens": 7}),
        acts(),
    ]
    record = only(tmp_path, trajectory(steps))
    assert record.columns["tokens"] == [3, 7]
    assert record.columns["input_tokens"] == [9]
    assert record.columns["log_prob"] == [-1.75]
    assert record.columns["token_ids"] == [[4, 5, 6]]
    assert record.columns["token_log_probs"] == [[-0.5, -0.25, -1.0]]


def test_copied_context_is_no_event(tmp_path: Path) -> None:
    old = acts("x", results=[answer("x")], is_copied_context=True, metrics={"completion_tokens": 99})
    record = only(
        tmp_path, trajectory([{**USER, "is_copied_context": True}, old, acts(metrics={"completion_tokens": 1})])
    )
    assert record.ids == ["3"] and record.columns["tokens"] == [1]


def test_a_step_without_a_model_is_no_action(tmp_path: Path) -> None:
    record = only(tmp_path, trajectory([acts(llm_call_count=1), acts("a", results=[answer("a")], llm_call_count=0)]))
    assert list(zip(record.ids, record.actions, strict=True)) == [
        ("1", True),
        ("2/call-0", False),
        ("2/result-0", False),
    ]


def test_feedback_without_a_tool_call_answers_the_call(tmp_path: Path) -> None:
    record = only(tmp_path, trajectory([acts(results=[answer(None)]), acts()]))
    assert edges(record) == {("1", "1/result-0", "return"), ("1/result-0", "2", "causal"), ("1", "2", "temporal")}


def test_sub_agents_and_continuations_in_files(tmp_path: Path) -> None:
    """A trajectory that another one refers to or goes on in is part of its trace."""
    lead = trajectory(
        [USER, acts("a", results=[answer("a", trajectory_path="sub.json")])], continued_trajectory_ref="more.json"
    )
    sub = trajectory([USER, acts()], "worker")
    more = trajectory([{**acts(), "is_copied_context": True}, acts()])
    record = items(tmp_path, lead=lead, sub=sub, more=more)
    assert len(record) == 1 and isinstance(record[0], TraceRecord)
    assert [row[0] for row in shape(record[0])] == ["1", "2", "2/agent-0.spawn", "2/agent-0/2", "2/agent-0.return", "4"]
    assert [name.split("/")[-1] for name in record[0].files] == ["lead.json"] * 3 + [
        "sub.json",
        "lead.json",
        "more.json",
    ]


def test_sessions_name_sub_agents_in_older_versions(tmp_path: Path) -> None:
    sub = trajectory([acts()], "worker", session_id="w")
    lead = trajectory([acts("a", results=[answer("a", session_id="w")])])
    (record,) = items(tmp_path, lead=lead, sub=sub)
    assert isinstance(record, TraceRecord) and {a.name for a in record.instances.values()} == {"lead", "worker"}


def test_a_missing_sub_agent_is_named_and_the_trace_reads(tmp_path: Path) -> None:
    record, problem = items(tmp_path, log=trajectory([acts("a", results=[answer("a", trajectory_id="gone")]), acts()]))
    assert isinstance(record, TraceRecord) and isinstance(problem, Problem)
    assert (problem.kind, problem.value) == ("missing-subagent", "'gone'")
    assert record.metrics == {"lost_parts": 1}
    assert [row[1] for row in shape(record)] == ["orchestrator_decision", "spawn", "return", "orchestrator_decision"]


def test_a_nested_trajectory_without_reference_is_named(tmp_path: Path) -> None:
    loose = trajectory([acts()], "worker", trajectory_id="loose")
    record, problem = items(tmp_path, log=trajectory([acts()], subagent_trajectories=[loose]))
    assert isinstance(record, TraceRecord) and len(record.ids) == 1
    assert isinstance(problem, Problem) and (problem.kind, problem.value) == ("unlinked-subagent", "'loose'")


def test_references_in_a_circle_end(tmp_path: Path) -> None:
    one = trajectory([acts("a", results=[answer("a", trajectory_path="two.json")])], session_id="1")
    two = trajectory([acts("a", results=[answer("a", trajectory_path="one.json")])], session_id="2")
    (record,) = items(tmp_path, one=one, two=two)
    assert isinstance(record, TraceRecord) and sum(record.actions) == 2


BAD = {
    "call": (
        trajectory([acts(results=[answer("z")])]),
        "unknown-tool-call",
        "steps[0].observation.results[0].source_call_id",
    ),
    "two steps": (trajectory([acts(), acts(step_id=1)]), "duplicate-id", "steps[1].step_id"),
    "a number and a text": (trajectory([acts(), acts(step_id="1")]), "ambiguous-id", "steps[1].step_id"),
    "two calls": (trajectory([acts("a", "a")]), "duplicate-id", "steps[0].tool_calls[1].tool_call_id"),
    "log_probs": (
        trajectory([acts(metrics={"completion_token_ids": [1, 2], "logprobs": [-1.0]})]),
        "bad-value",
        "steps[0].metrics.logprobs",
    ),
    "source": (trajectory([{"source": "robot"}]), "bad-value", "steps[0].source"),
    "steps": (trajectory([]) | {"steps": 3}, "bad-type", "steps"),
    "agent": (trajectory([acts()]) | {"agent": {}}, "missing-field", "agent.name"),
    "nothing": (trajectory([{"source": "system"}]), "empty-trace", "events"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_trajectory_is_named_and_the_others_read(tmp_path: Path, name: str) -> None:
    bad, kind, field = BAD[name]
    (tmp_path / "bad.json").write_text(json.dumps(bad | {"session_id": "bad"}))
    (tmp_path / "good.json").write_text(json.dumps(NESTED))
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["s"]
    (problem,) = traces.problems
    assert (problem.kind, problem.field) == (kind, field)


def test_nesting_is_bounded(tmp_path: Path) -> None:
    deep: dict[str, Any] = trajectory([acts()], trajectory_id="t0")
    text = json.dumps(deep)
    for i in range(1, 2000):
        outer = trajectory([acts("a", results=[answer("a", trajectory_id=f"t{i - 1}")])], trajectory_id=f"t{i}")
        text = json.dumps(outer)[:-1] + ', "subagent_trajectories": [' + text + "]}"
    (tmp_path / "deep.json").write_text(text)
    with pytest.raises(NothingReadError, match="too-deep"):
        read(tmp_path)


def test_a_missing_continuation_is_named(tmp_path: Path) -> None:
    first, problem = items(tmp_path, log=trajectory([USER, acts()], continued_trajectory_ref="more.json"))
    assert isinstance(first, TraceRecord) and isinstance(problem, Problem)
    assert (problem.kind, problem.field, problem.value) == (
        "missing-continuation", "continued_trajectory_ref", "'more.json'",
    )  # fmt: skip
    assert problem.is_failure


def test_empty_tool_call_ids_are_answered_in_order(tmp_path: Path) -> None:
    record = only(tmp_path, trajectory([acts("", "", results=[answer(""), answer(None)])]))
    edges = zip(record.senders, record.receivers, record.edge_types, strict=True)
    found = {(record.ids[s], record.ids[r]) for s, r, kind in edges if kind == EdgeType.RETURN}
    assert found == {("1/call-0", "1/result-0"), ("1/call-1", "1/result-1")}
    assert record.columns["tool"] == [None, "do_", "do_", "do_", "do_"]


def chain(folder: Path, count: int, link: Any) -> list[Source]:
    """Trajectories in files of their own, each of which leads to the next."""
    sources = []
    for i in range(count):
        path = folder / f"t{i}.json"
        path.write_text(json.dumps(link(i, f"t{i + 1}.json" if i + 1 < count else None)))
        sources.append(Source(str(path), path))
    return sources


@pytest.mark.sampled
@pytest.mark.parametrize("way", ["continued", "sub-agent"])
@pytest.mark.study
def test_chains_of_trajectories_take_linear_time_and_memory(tmp_path: Path, way: str) -> None:
    def link(i: int, following: str | None) -> Any:
        if following is None:
            return trajectory([acts()], name=f"a{i}")
        if way == "continued":
            return trajectory([acts()], name=f"a{i}", continued_trajectory_ref=following)
        return trajectory([acts("a", results=[answer("a", trajectory_path=following)])], name=f"a{i}")

    def prepare(links: int) -> Callable[[], object]:
        (tmp_path / str(links)).mkdir()
        sources = chain(tmp_path / str(links), links, link)
        return lambda: whole(read_atif(sources), links)

    def whole(records: Iterator[Any], links: int) -> None:
        (record,) = records
        assert isinstance(record, TraceRecord)
        check(record)
        assert sum(record.actions) == links
        assert sum(map(len, record.ids)) < 200 * len(record.ids)

    assert_linear(prepare, 3200, runs=1)
