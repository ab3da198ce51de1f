"""Edges to calls of LangGraph where many messages or tasks meet: few of their own, or a refusal by the limit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.event_types import EdgeType
from graphs.formats.langgraph import input_edges
from graphs.logs import read
from graphs.traces.limits import Limits

from ..linear.long_teams import (
    checkpoint_line,
    langgraph_of_answers_to_all,
    langgraph_of_inputs_beside_results,
    langgraph_of_nodes_that_heard_apart,
    langgraph_of_trimmed_inputs,
    sends_after_a_step,
)
from .test_langgraph import ai, edges, human, stream, write


def checkpoint(step: int, people: int, nodes: str) -> dict[str, Any]:
    """A checkpoint with messages of people, in which each node answers."""
    own = {"thread_id": "1", "checkpoint_id": f"{step}"}
    return {
        "values": {"messages": [human("?", id=f"h{i}") for i in range(people)]},
        "next": [], "config": {"configurable": own}, "metadata": {"step": step}, "parent_config": None,
        "created_at": f"2026-01-01T00:00:0{step}+00:00",
        "tasks": [
            {"id": f"{node}{step}", "name": node, "path": [], "result": {"messages": [ai("x", id=f"{node}{step}")]}}
            for node in nodes
        ],
    }  # fmt: skip


def test_of_many_messages_that_others_were_given_the_latest_have_edges(tmp_path: Path) -> None:
    """Of 70 and 10 more; all of them lead to the call of each node. A node has no edge from what it heard before."""
    traces = read(write(tmp_path, [checkpoint(0, 70, "ab"), checkpoint(1, 80, "abc")]))
    ids = traces.events["event"].to_pylist()
    people = [i for i, agent in enumerate(traces.graph.agent_ids[: len(ids)]) if agent == traces.graph.agent_ids[0]]
    assert len(people) == 80
    drawn = edges(traces)
    given = {
        call: [people.index(s) for s, r, kind in sorted(drawn) if ids[r] == f"{call}/0" and kind == EdgeType.MESSAGE]
        for call in ("a0", "b0", "a1", "b1", "c1")
    }
    assert given == {
        "a0": list(range(70)),  # the first that was given them
        "b0": list(range(5, 70)),
        "a1": list(range(70, 80)),
        "b1": list(range(70, 80)),
        "c1": list(range(15, 80)),
    }
    chain = {(people.index(s), people.index(r)) for s, r, kind in drawn if kind == EdgeType.TEMPORAL and r in people}
    assert chain == {(i, i + 1) for i in range(15)}


def test_a_task_that_was_sent_answers_to_the_last_call_of_each_node_before(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(sends_after_a_step(nodes=2, calls=3, sends=2))
    traces = read(tmp_path / "run.jsonl")
    ids = traces.events["event"].to_pylist()
    assert {(ids[s], ids[r]) for s, r, kind in edges(traces) if kind == EdgeType.MESSAGE} == {
        (f"t-n{node}/2", f"t-s{sent}/0") for node in range(2) for sent in range(2)
    }


def test_a_task_whose_input_has_no_message_answers_to_the_step_before(tmp_path: Path) -> None:
    """Nodes with a state of their own had no edge between them."""
    steps = [(1, "planner"), (2, "coder"), (2, "tester"), (3, "writer")]
    tasks = [(step, name, name, {"plan": "x"}, {"m": [ai("x", id=name)]}) for step, name in steps]
    traces = read(write(tmp_path, stream(*tasks)))
    ids = [name.partition("/")[0] for name in traces.events["event"].to_pylist()]
    assert {(ids[s], ids[r]) for s, r, kind in edges(traces) if kind == EdgeType.MESSAGE} == {
        ("planner", "coder"), ("planner", "tester"), ("coder", "writer"), ("tester", "writer"),
    }  # fmt: skip


def test_more_edges_than_the_limit_refuse_their_thread(tmp_path: Path) -> None:
    small, large = sends_after_a_step(2, 1, 2, thread="small"), sends_after_a_step(20, 1, 20, thread="large")
    (tmp_path / "run.jsonl").write_text(f"{large}\n{small}")
    traces = read(tmp_path / "run.jsonl", limits=Limits(edges=300))
    assert traces.traces["trace"].to_pylist() == ["run/small"]
    (problem,) = traces.problems
    assert (problem.kind, problem.field, problem.trace) == ("too-many", "edges", "run/large")
    assert problem.expected == "at most 300 edges in a trace"
    assert read(tmp_path / "run.jsonl", limits=Limits(edges=400)).problems == ()


@pytest.mark.study
def test_a_short_log_has_no_product_of_messages_and_tasks(tmp_path: Path) -> None:
    """Two steps of 800 tasks are read, once in a file; 10 million edges of a megabyte took 500 MB."""
    wide = langgraph_of_answers_to_all(800)
    (tmp_path / "run.jsonl").write_text(wide)
    traces = read(tmp_path / "run.jsonl")
    assert traces.problems == () and traces.sizes.edges == 800**2
    (tmp_path / "run.jsonl").write_text(f"{wide}\n{langgraph_of_answers_to_all(800, thread='again')}")
    traces = read(tmp_path / "run.jsonl")
    assert traces.traces["trace"].to_pylist() == ["run/t"]
    (problem,) = traces.problems
    assert (problem.kind, problem.field, problem.trace) == ("too-many", "edges", "run/again")
    assert problem.expected.endswith("whose log is so short; a higher --limit edges allows more")
    assert read(tmp_path / "run.jsonl", limits=Limits(edges=20_000_000)).problems == ()


@pytest.mark.slow
def test_a_log_that_states_every_input_has_an_edge_from_every_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most that a stream can state, messages with the least text, needs none of what any log may have."""
    monkeypatch.setattr(input_edges, "_ANY", 0)
    said = [{"type": "ai", "content": "", "id": str(i)} for i in range(100)]
    first = stream(*((0, f"a{i}", f"a{i}", {}, {"m": [message]}) for i, message in enumerate(said)))
    more = stream(*((1, f"b{i}", f"b{i}", {"m": said}, {"m": [ai("x", id=f"b{i}")]}) for i in range(100)))
    traces = read(write(tmp_path, [*first, *more]), limits=Limits(edges=100**2))
    assert traces.problems == () and traces.sizes.edges == 100**2


def test_a_call_whose_edges_were_too_many_refuses_its_thread_however_long_it_becomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of nodes that had heard apart were read without their edges where the log went on for long enough."""
    path = tmp_path / "run.jsonl"
    path.write_text(
        f"{langgraph_of_nodes_that_heard_apart(100)}\n{checkpoint_line(200, [human('x' * 40_000)], range(1))}"
    )
    assert read(path).problems == ()
    monkeypatch.setattr(input_edges, "_ANY", 0)
    monkeypatch.setattr(input_edges, "_PART", 10**9)
    with pytest.raises(NothingReadError, match="too-many"):
        read(path)


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("log", [langgraph_of_trimmed_inputs, langgraph_of_inputs_beside_results])
def test_what_agents_heard_is_not_kept_for_each_message_and_agent(
    log: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory grew with the square of the log, and was not counted."""
    monkeypatch.setattr(input_edges, "_ANY", 0)
    monkeypatch.setattr(input_edges, "_PART", 10**9)
    path = tmp_path / "run.jsonl"
    path.write_text(log(1500))
    tracemalloc.start()
    with pytest.raises(NothingReadError, match="too-many"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * path.stat().st_size
