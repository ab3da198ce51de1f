"""Debug streams and checkpoints of LangGraph: tasks, sub-graphs, repeated messages, threads, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.event_types import EdgeType, EventType
from graphs.logs import read
from graphs.traces.batch import Traces

from ..samples import LANGGRAPH, RECORDINGS


def edges(traces: Traces) -> set[tuple[int, int, int]]:
    graph = traces.graph
    rows = zip(graph.senders, graph.receivers, graph.edge_type, graph.edge_mask, strict=True)
    return {(int(s), int(r), int(kind)) for s, r, kind, real in rows if real}


def write(folder: Path, items: list[Any], name: str = "run.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def stream(*tasks: tuple[int, str, str, Any, Any], thread: str = "t") -> list[dict[str, Any]]:
    """(step, task, node, input, result) of each task, one after another."""
    items: list[dict[str, Any]] = []
    for step, task, node, given, result in tasks:
        configurable = {"thread_id": thread, "checkpoint_ns": ""}
        payloads = (
            ("checkpoint", {"config": {"configurable": configurable}, "tasks": [{"id": task, "name": node}]}),
            ("task", {"id": task, "name": node, "input": given, "triggers": [f"branch:to:{node}"]}),
            ("task_result", {"id": task, "name": node, "error": None, "result": result, "interrupts": []}),
        )
        time = "2026-01-01T00:00:00+00:00"
        items += [{"step": step, "timestamp": time, "type": kind, "payload": payload} for kind, payload in payloads]
    return items


def ai(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "ai", "content": text, "id": None, "tool_calls": [], **more}


def human(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "human", "content": text, "id": None, **more}


def test_counts_of_the_recording_by_an_independent_count() -> None:
    """Messages by their own ids, over all results; no reader is used to count."""
    text = (RECORDINGS / "langgraph_team.jsonl").read_text()
    messages: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        event = json.loads(line)[1]
        values = event["payload"].get("result") or event["payload"].get("input") or {}
        messages |= {m["id"]: m for m in values.get("messages", [])}
    kinds = Counter(message["type"] for message in messages.values())
    assert kinds == {"ai": 8, "tool": 2, "human": 3}  # two of these were sent by the planner
    calls = [call for message in messages.values() for call in message.get("tool_calls", [])]
    traces = read(RECORDINGS / "langgraph_team.jsonl")
    types = Counter(EventType(int(kind)).name for kind in traces.graph.event_type[: traces.sizes.events])
    assert int(traces.graph.action_mask.sum()) == kinds["ai"]
    assert types == {"MESSAGE": kinds["ai"] + 1, "TOOL_CALL": len(calls), "TOOL_RESULT": kinds["tool"]}
    written = sum(m["usage_metadata"]["output_tokens"] for m in messages.values() if m["type"] == "ai")
    assert int(traces.evidence["tokens"].amounts.sum()) == written == 34
    assert traces.traces["model"].to_pylist() == ["stub-1"]


def test_parallel_tasks_are_instances_and_sub_graphs_have_their_nodes() -> None:
    traces = read(RECORDINGS / "langgraph_team.jsonl")
    names = traces.agents["name"].to_pylist()
    assert sorted(names) == sorted(
        ["user", "planner", "worker", "worker", "writers", "writers/drafter", "writers/editor", "critic"]
    )
    agents = traces.graph.agent_ids[: traces.sizes.events]
    first, second = (i for i, name in enumerate(names) if name == "worker")
    one, other = ({i for i, a in enumerate(agents) if a == worker} for worker in (first, second))
    assert not any((s in one and r in other) or (s in other and r in one) for s, r, _ in edges(traces))
    assert {(1, 2), (1, 6)} <= {(s, r) for s, r, kind in edges(traces) if kind == EdgeType.MESSAGE}


def test_a_loop_with_tools_in_a_node_of_their_own(tmp_path: Path) -> None:
    call = ai("", id="m1", tool_calls=[{"id": "c", "name": "search", "args": {}}])
    result = {"type": "tool", "content": "x", "id": "m2", "tool_call_id": "c", "status": "error"}
    question = human("?", id="h")
    items = stream(
        (1, "a", "agent", {"messages": [question]}, {"messages": [call]}),
        (2, "b", "tools", {"messages": [question, call]}, {"messages": [result]}),
        (3, "c", "agent", {"messages": [question, call, result]}, {"messages": [ai("done", id="m3")]}),
    )
    traces = read(write(tmp_path, items))
    assert traces.events["event"].to_pylist() == ["a/input-0", "a/0", "a/0/call-0", "b/0", "c/0"]
    assert traces.events["status"].to_pylist()[3] == "error"
    assert [traces.agents["agent"][int(a)].as_py() for a in traces.graph.agent_ids[:5]] == ["user"] + ["agent"] * 4
    assert edges(traces) == {
        (0, 1, EdgeType.MESSAGE), (1, 2, EdgeType.TOOL_DEPENDENCY), (2, 3, EdgeType.RETURN), (3, 4, EdgeType.CAUSAL),
        (1, 4, EdgeType.TEMPORAL),
    }  # fmt: skip


def test_messages_without_ids_are_told_by_their_number(tmp_path: Path) -> None:
    """A node that returns the whole state repeats its input; two nodes that write the same text wrote it twice."""
    state = [human("?"), ai("same")]
    items = stream(
        (1, "a", "first", {"messages": state[:1]}, {"messages": [ai("same")]}),
        (2, "b", "second", {"messages": state}, {"messages": [*state, ai("same")]}),
    )
    traces = read(write(tmp_path, items))
    assert traces.events["event"].to_pylist() == ["a/input-0", "a/0", "b/2"]


def test_other_forms_of_messages_and_updates(tmp_path: Path) -> None:
    """LangChain's own serialisation, a single message as a channel, pairs of channels; other values are no messages."""
    wrapped = {"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": {"type": "ai", "content": "x"}}
    items = stream(
        (1, "a", "one", {"n": 3, "notes": [{"type": "ai"}, "x", None]}, [["answer", wrapped], ["n", 4]]),
        (2, "b", "two", {}, {"answer": ai("y"), "other": {"type": 5, "content": ""}}),
        (3, "c", "three", None, None),
    )
    traces = read(write(tmp_path, items))
    assert traces.events["event"].to_pylist() == ["a/0", "b/0"]


def test_threads_are_traces(tmp_path: Path) -> None:
    def run(thread: str) -> list[dict[str, Any]]:
        return stream((1, f"task-{thread}", "agent", {}, {"messages": [ai(thread)]}), thread=thread)

    one, two = run("one"), run("two")
    mixed = [one[0], two[0], one[1], two[1], two[2], one[2]]
    traces = read(write(tmp_path, mixed))
    assert traces.traces["trace"].to_pylist() == ["run/one", "run/two"]
    assert read(write(tmp_path, one)).traces["trace"].to_pylist() == ["run"]


@pytest.mark.parametrize("as_history", [False, True])
def test_threads_whose_ids_differ_in_type_alone_are_refused(tmp_path: Path, as_history: bool) -> None:
    if as_history:
        items = [json.loads(json.dumps(item)) for item in HISTORY * 2]
        for number, item in enumerate(items):
            item["config"]["configurable"]["thread_id"] = "1" if number < len(HISTORY) else 1
    else:
        items = [
            item
            for thread in ("1", 1)
            for item in stream((1, f"{thread!r}", "agent", {}, {"messages": [ai("x")]}), thread=thread)  # type: ignore[arg-type]
        ]
    with pytest.raises(NothingReadError) as caught:
        read(write(tmp_path, items))
    assert [(p.kind, p.field) for p in caught.value.problems] == [("ambiguous-id", "thread_id")]


def test_a_file_may_be_a_list(tmp_path: Path) -> None:
    path = tmp_path / "langgraph_team.json"
    path.write_text(json.dumps(LANGGRAPH, indent=1))
    again, lines = read(path), read(RECORDINGS / "langgraph_team.jsonl")
    assert again.events["event"].equals(lines.events["event"]) and edges(again) == edges(lines)


BASE = stream((1, "a", "agent", {"messages": [human("?")]}, {"messages": [ai("x")]}))


def changed(index: int, **payload: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(json.dumps(BASE))
    items[index]["payload"] |= payload
    return items


@pytest.mark.parametrize(
    ("items", "kind", "field"),
    [
        ([BASE[0], BASE[2]], "unknown-task", "payload.id"),
        (changed(2, result={"m": [{"type": "tool", "content": "", "tool_call_id": "z"}]}), "unknown-tool-call",
         "payload.result"),
        (changed(2, result={"m": [ai("x", usage_metadata={"output_tokens": -1})]}), "out-of-range",
         "payload.result.usage_metadata.output_tokens"),
        (changed(2, result={"m": [ai("x", tool_calls=[3])]}), "bad-type", "payload.result.tool_calls[0]"),
        (changed(1, id=""), "empty-id", "payload.id"),
        ([*BASE, {**BASE[0], "type": "values"}], "bad-value", "type"),
        (BASE[:1], "empty-trace", "content"),
        (BASE[:2], "empty-trace", "events"),
    ],
)  # fmt: skip
def test_what_is_refused(items: list[Any], kind: str, field: str, tmp_path: Path) -> None:
    if items == BASE[:2]:
        items = changed(1, input={})[:2]
    with pytest.raises(NothingReadError) as caught:
        read(write(tmp_path, items))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.field) == (kind, field), problem


HISTORY = [json.loads(line) for line in (RECORDINGS / "langgraph_history.jsonl").read_text().splitlines()]


def calls(traces: Traces) -> list[tuple[str, int]]:
    """Agent and tokens of each model call."""
    names = traces.agents["name"].to_pylist()
    tokens = traces.evidence["tokens"].array
    graph = traces.graph
    return [
        (names[int(graph.agent_ids[i])], int(tokens[i])) for i in range(traces.sizes.events) if graph.action_mask[i]
    ]


def test_checkpoints_of_a_database_tell_what_the_stream_of_the_run_tells(tmp_path: Path) -> None:
    """The same graph with a SQLite checkpointer; of the sub-graph only the outer node is in the thread's history."""
    traces = read(write(tmp_path, HISTORY))
    assert traces.problems == ()
    streamed = read(RECORDINGS / "langgraph_team.jsonl")
    assert sorted(calls(traces)) == sorted((agent.split("/")[0], tokens) for agent, tokens in calls(streamed))
    types = [EventType(kind).name for kind in traces.graph.event_type[: traces.sizes.events]]
    assert Counter(types) == Counter(
        EventType(kind).name for kind in streamed.graph.event_type[: streamed.sizes.events]
    )
    assert traces.traces["model"].to_pylist() == ["stub-1"]
    workers = [name for name in traces.agents["agent"].to_pylist() if name.startswith("worker:")]
    assert len(workers) == 2
    times = [time for time in traces.events["time"].to_pylist() if time is not None]
    assert times == sorted(times)


def test_checkpoints_count_as_their_messages_do() -> None:
    messages = {}
    for snapshot in HISTORY:
        for task in snapshot["tasks"]:
            for message in (task["result"] or {}).get("messages", []):
                messages[message["id"]] = message
    expected = Counter(message["type"] for key, message in messages.items() if key)
    traces = read(RECORDINGS / "langgraph_history.jsonl")
    types = Counter(EventType(kind).name for kind in traces.graph.event_type[: traces.sizes.events])
    assert traces.graph.action_mask.sum() == expected["ai"] == 8
    assert types["TOOL_RESULT"] == expected["tool"] == 2
    assert types["TOOL_CALL"] == sum(len(m.get("tool_calls", ())) for m in messages.values())
    assert types["MESSAGE"] == expected["ai"] + 1  # and the user's


def test_the_order_of_checkpoints_and_what_is_around_them_do_not_matter(tmp_path: Path) -> None:
    first = read(write(tmp_path, HISTORY))
    again = read(write(tmp_path, HISTORY[::-1], "reversed.jsonl"))
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(HISTORY, indent=1))
    for traces in (again, read(listed)):
        assert traces.events["event"].to_pylist() == first.events["event"].to_pylist()
        assert edges(traces) == edges(first)
    other = json.loads(
        json.dumps(HISTORY).replace("run-1", "run-2").replace('id": "', 'id": "x').replace("xrun", "run")
    )
    both = read(write(tmp_path, [*HISTORY, *other], "both.jsonl"))
    assert both.traces["trace"].to_pylist() == ["both/run-1", "both/run-2"]


def test_an_interrupted_task_has_no_events_and_a_fork_is_refused(tmp_path: Path) -> None:
    waiting = json.loads(json.dumps(HISTORY))
    waiting[1]["tasks"][0]["result"] = None  # the critic, which has not answered
    assert len(calls(read(write(tmp_path, waiting[1:])))) == 7
    fork = json.loads(json.dumps(HISTORY[0]))
    fork["config"]["configurable"]["checkpoint_id"] = "f" * 36
    with pytest.raises(NothingReadError) as caught:
        read(write(tmp_path, [fork, *HISTORY]))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.field) == ("forked-thread", "parent_config")


def test_two_runs_without_threads_in_one_file_are_no_trace(tmp_path: Path) -> None:
    """They were one, with an edge from the first run to the second."""

    def run(name: str) -> list[dict[str, Any]]:
        asked = {"messages": [human("q", id=f"{name}h")]}
        tasks = [
            (step, f"{name}{step}", "plan", asked, {"messages": [ai("a", id=f"{name}a{step}")]}) for step in (1, 2)
        ]
        return [item for item in stream(*tasks) if item["type"] != "checkpoint"]

    assert read(write(tmp_path, run("x"))).sizes.traces == 1
    with pytest.raises(NothingReadError) as caught:
        read(write(tmp_path, run("x") + run("y")))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.line, problem.field, problem.value) == ("step-back", 5, "step", "1")
