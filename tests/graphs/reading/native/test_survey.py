"""The survey's form: agents, owners, spawns, edges, what may be missing and what is reported."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventType
from graphs.logs import read
from graphs.padding import unpad

from .logs import EXTENDED, SURVEY, Document, agents_by_id, owner_of, read_one, survey_trace


def test_the_survey_form_reads(tmp_path: Path) -> None:
    document = survey_trace()
    SURVEY.validate(document)
    EXTENDED.validate(document)
    traces = read_one(document, tmp_path)
    graph = unpad(traces.graph)
    ids = [e["id"] for e in document["events"]]
    assert traces.events["event"].to_pylist() == ids
    assert [EventType(t).name.lower() for t in graph.event_type] == [e["type"] for e in document["events"]]
    assert graph.action_mask.tolist() == [
        e["type"] not in {"tool_result", "return", "human_intervention", "safety_event"} for e in document["events"]
    ]
    stated = [(e["src"], e["dst"], e["type"]) for e in document["edges"]]
    found = zip(graph.senders, graph.receivers, graph.edge_type, strict=True)
    assert [(ids[s], ids[r], EdgeType(k).name.lower()) for s, r, k in found] == stated
    np.testing.assert_array_equal(graph.time, np.array([e["t"] for e in document["events"]], np.float32))
    assert traces.reward[0] == 1.0
    assert {k: float(traces.evidence[k].array[0]) for k in traces.evidence} == {
        "rewards.team": 1.0, "rewards.tool": 0.25, "costs.tokens": 100, "costs.wall_clock_s": 7,
        "metrics.task_success": 1,
    }  # fmt: skip
    assert traces.events["to"].to_pylist()[1] == "writer_1"
    assert traces.events["trusted"].to_pylist()[5] is False
    assert traces.events["content_ref"].to_pylist()[6] == "x9"
    row = traces.traces.to_pylist()[0]
    assert (row["trace"], row["group"], row["topology"], row["system"]) == ("s1", "report", "centralized", "example")


def test_tools_are_no_agents_and_roles_of_spawns_are_the_childrens(tmp_path: Path) -> None:
    traces = read_one(survey_trace(), tmp_path)
    assert agents_by_id(traces) == {
        "boss": ("boss", "lead", "boss"),  # its first own event that is no spawn, not "writer", not "editor"
        "writer_1": ("writer_1", "writer", "boss"),  # from the spawn
        "searcher_1": ("searcher_1", "seeker", "boss"),  # its own event's goes before the spawn's
        "human": ("human", "human", "human"),
    }
    assert owner_of(traces)["r"] == "searcher_1"


def test_a_tool_result_goes_to_the_caller_by_edge_else_to_the_latest_call_of_the_tool(tmp_path: Path) -> None:
    def call(i: str, agent: str, tool: str) -> Document:
        return {"id": i, "type": "tool_call", "agent": agent, "tool": tool}

    def result(i: str, agent: str, tool: str | None) -> Document:
        return {"id": i, "type": "tool_result", "agent": agent, **({"tool": tool} if tool else {})}

    document = survey_trace(
        events=[
            call("c1", "x", "web"),
            call("c2", "y", "web"),
            call("c3", "z", "shell"),
            result("r1", "web", "web"),  # an edge from c1
            result("r2", "web", "web"),  # the latest call of web is y's
            result("r3", "shell", None),  # only the agent names the tool
            result("r4", "browser", "web"),  # a name that is neither the tool nor anybody else
            result("r5", "z", "web"),  # an agent that acts: stays
            result("r6", "oracle", "oracle"),  # nobody called it: stays as stated
        ],
        edges=[{"src": "c1", "dst": "r1", "type": "return"}, {"src": "c2", "dst": "r1", "type": "temporal"}],
    )
    traces = read_one(document, tmp_path)
    owner = owner_of(traces)
    assert [owner[f"r{i}"] for i in range(1, 7)] == ["x", "y", "z", "y", "z", "oracle"]
    assert set(agents_by_id(traces)) == {"x", "y", "z", "oracle"}


def test_a_spawn_without_target_and_the_parents_that_edges_tell(tmp_path: Path) -> None:
    document = survey_trace(
        events=[
            {"id": "s", "t": 0, "type": "spawn", "agent": "boss", "role": "planner"},
            {"id": "m", "t": 1, "type": "message", "agent": "p"},
            {"id": "n", "t": 2, "type": "message", "agent": "boss"},
            {"id": "o", "t": 3, "type": "message", "agent": "q"},
        ],
        edges=[
            {"src": "s", "dst": "m", "type": "spawn"},
            {"src": "m", "dst": "n", "type": "spawn"},  # the boss was there before: spawned by nobody
            {"src": "n", "dst": "o", "type": "causal"},
        ],
    )
    traces = read_one(document, tmp_path)
    assert agents_by_id(traces) == {
        "boss": ("boss", "boss", "boss"),
        "p": ("p", "planner", "boss"),
        "q": ("q", "q", "q"),
    }


def test_what_agents_says_goes_first(tmp_path: Path) -> None:
    agents = [
        {"id": "web", "name": "Web", "role": "tool-user"},
        {"id": "searcher_1", "name": "searcher", "role": "S", "parent": "writer_1"},
        {"id": "writer_1", "parent": "writer_1"},
        {"id": "idle"},
    ]
    traces = read_one(survey_trace(agents=agents, schema_version="1.0", group="all reports"), tmp_path)
    assert agents_by_id(traces) == {
        "web": ("Web", "tool-user", "web"),
        "searcher_1": ("searcher", "S", "writer_1"),
        "writer_1": ("writer_1", "writer", "writer_1"),
        "idle": ("idle", "idle", "idle"),
        "boss": ("boss", "lead", "boss"),
        "human": ("human", "human", "human"),
    }
    assert owner_of(traces)["r"] == "web"  # it is listed as an agent
    assert traces.traces["group"].to_pylist() == ["all reports"]


def test_edges_against_the_log_reorder_the_events(tmp_path: Path) -> None:
    document = survey_trace()
    document["events"][3], document["events"][4] = document["events"][4], document["events"][3]
    traces = read_one(document, tmp_path)
    assert traces.events["event"].to_pylist() == [e["id"] for e in survey_trace()["events"]]
    assert np.all(unpad(traces.graph).senders < unpad(traces.graph).receivers)


def test_edges_rewards_costs_and_times_may_be_missing(tmp_path: Path) -> None:
    document = {"trace_id": "a", "task_id": "k", "events": [{"id": "1", "type": "message", "agent": "x"}]}
    EXTENDED.validate(document)
    for extra in ({}, dict.fromkeys(("edges", "rewards", "costs", "metrics", "agents", "evidence"))):
        traces = read_one(document | extra, tmp_path)
        assert traces.sizes.edges == 0
        assert np.isnan(traces.reward[0])
        EXTENDED.validate(document | extra)


def test_a_foreign_key_of_the_survey_form_is_left_out_and_reported(tmp_path: Path) -> None:
    """The survey lets events have any key: a text under `value` is valid there, and none of our evidence."""
    document = survey_trace()
    document["events"][0] |= {"value": "high", "action": "click", "turn": 1, "tokens": 5}
    document["events"][1] |= {"value": 0.5, "action": True, "tokens": 6, "stage": 0.5, "token_ids": [1, "x"]}
    SURVEY.validate(document)
    file = tmp_path / "x.json"
    file.write_text(json.dumps(document))
    traces = read(file)
    assert sorted((p.kind, p.field) for p in traces.problems) == [
        ("foreign-key", "events[0].action"),
        ("foreign-key", "events[0].value"),
        ("foreign-key", "events[1].stage"),
        ("foreign-key", "events[1].token_ids[1]"),
        ("foreign-key", "events[1].turn"),
    ]
    assert "value" not in traces.evidence
    assert traces.evidence["tokens"].array[:2].tolist() == [5, 6]
    plain = read_one(survey_trace(), tmp_path)
    np.testing.assert_array_equal(traces.graph.action_mask, plain.graph.action_mask)
    np.testing.assert_array_equal(traces.graph.turn_ids, plain.graph.turn_ids)
    file.write_text(json.dumps(document | {"schema_version": "1.0"}))
    with pytest.raises(CreditError, match="bad-type"):
        read(file)
