"""The native format: the survey's form and its extension, read, written, and as its schema says."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
import zstandard

from graphs.errors import CreditError
from graphs.event_graph import ACTION_TYPES, EdgeType, EventType
from graphs.padding import unpad
from graphs.readers import FORMATS, detect, read
from graphs.readers.native import sniff
from graphs.readers.native_wire import EVENT_FIELDS, TOPOLOGIES
from graphs.schema import EVENT_EVIDENCE, json_schema
from graphs.traces import Traces
from graphs.writers.native import write

Document = dict[str, Any]

SURVEY_EVENT_TYPES = [t.name.lower() for t in EventType if t != EventType.STOP]
SURVEY_SCHEMA: Document = {  # the survey's rules, in our own words
    "type": "object",
    "required": ["trace_id", "task_id", "events", "edges", "rewards", "costs"],
    "additionalProperties": False,
    "properties": {
        "trace_id": {"type": "string", "minLength": 1},
        "task_id": {"type": "string", "minLength": 1},
        "system": {"type": "string"},
        "topology": {"enum": list(TOPOLOGIES)},
        "events": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "t", "type", "agent"],
                "properties": {
                    "id": {"type": "string", "minLength": 1},
                    "t": {"type": "number", "minimum": 0},
                    "type": {"enum": SURVEY_EVENT_TYPES},
                    "agent": {"type": "string", "minLength": 1},
                    **{key: {"type": "string"} for key in ("role", "from", "to", "tool", "content_ref")},
                    "trusted": {"type": "boolean"},
                },
            },
        },
        "edges": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["src", "dst", "type"],
                "additionalProperties": False,
                "properties": {
                    "src": {"type": "string", "minLength": 1},
                    "dst": {"type": "string", "minLength": 1},
                    "type": {"enum": [t.name.lower() for t in EdgeType]},
                },
            },
        },
        "rewards": {"type": "object", "additionalProperties": {"type": "number"}},
        "costs": {
            "type": "object",
            "required": ["tokens", "wall_clock_s"],
            "additionalProperties": {"type": "number"},
            "properties": {k: {"minimum": 0} for k in ("tokens", "wall_clock_s", "tool_calls", "messages")},
        },
        "metrics": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}
SURVEY = jsonschema.Draft202012Validator(SURVEY_SCHEMA)
EXTENDED = jsonschema.Draft202012Validator(json_schema())


def survey_trace(**top: Any) -> Document:
    """A trace with every habit of the survey's form: two workers, a tool that answers under its own name."""
    return {
        "trace_id": "s1",
        "task_id": "report",
        "system": "example",
        "topology": "centralized",
        "events": [
            {"id": "d", "t": 0, "type": "orchestrator_decision", "agent": "boss", "role": "lead"},
            {"id": "s1", "t": 1, "type": "spawn", "agent": "boss", "role": "writer", "to": "writer_1"},
            {"id": "s2", "t": 1, "type": "spawn", "agent": "boss", "role": "searcher", "to": "searcher_1"},
            {"id": "m", "t": 2, "type": "message", "agent": "writer_1", "from": "writer_1", "to": "searcher_1"},
            {"id": "c", "t": 3, "type": "tool_call", "agent": "searcher_1", "role": "seeker", "tool": "web"},
            {"id": "r", "t": 4, "type": "tool_result", "agent": "web", "tool": "web", "trusted": False},
            {"id": "b", "t": 5, "type": "return", "agent": "searcher_1", "to": "boss", "content_ref": "x9"},
            {"id": "h", "t": 5.5, "type": "human_intervention", "agent": "human"},
            {"id": "v", "t": 5.5, "type": "safety_event", "agent": "boss"},
            {"id": "k", "t": 6, "type": "despawn", "agent": "boss", "to": "searcher_1"},
            {"id": "a", "t": 7, "type": "aggregate", "agent": "boss", "role": "editor"},
        ],
        "edges": [
            {"src": "d", "dst": "s1", "type": "causal"},
            {"src": "s1", "dst": "m", "type": "spawn"},
            {"src": "s2", "dst": "c", "type": "spawn"},
            {"src": "m", "dst": "c", "type": "message"},
            {"src": "c", "dst": "r", "type": "return"},
            {"src": "b", "dst": "a", "type": "aggregate"},
        ],
        "rewards": {"team": 1.0, "tool": 0.25},
        "costs": {"tokens": 100, "wall_clock_s": 7},
        "metrics": {"task_success": 1},
    } | top


def read_one(document: Document, folder: Path, **options: Any) -> Traces:
    file = folder / "in.json"
    file.write_text(json.dumps(document))
    traces = read(file, **options)
    assert traces.problems == ()
    return traces


def agents_by_id(traces: Traces) -> dict[str, tuple[str, str, str]]:
    """Agent id to (name, role, parent's id)."""
    rows = traces.agents.to_pylist()
    return {r["agent"]: (r["name"], r["role"], rows[r["parent"]]["agent"]) for r in rows}


def owner_of(traces: Traces) -> dict[str, str]:
    """Event id to agent id."""
    names = traces.agents["agent"].to_pylist()
    return {e: names[a] for e, a in zip(traces.events["event"].to_pylist(), traces.graph.agent_ids, strict=False)}


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
    assert {k: float(traces.evidence[k].values[0]) for k in traces.evidence} == {
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


def extended_trace(**top: Any) -> Document:
    """A trace that uses every key of the extension."""
    document = survey_trace(
        trace_id="x1",
        schema_version="1.0",
        group="g",
        agents=[{"id": "boss", "name": "Boss", "role": "lead"}],
        evidence={"greedy_reward": 0.5},
    )
    for i, event in enumerate(document["events"]):
        event["turn"] = "first" if i < 6 else 2
    d, s1, s2, m, c, r = document["events"][:6]
    del d["t"]
    d |= {"action": True, "value": 0.5, "log_prob": -1.25, "propensity": 0.75, "stage": 3.0, "status": None}
    s1 |= {"action": False, "context": "c1", "sibling_parent": "node"}
    s2 |= {"context": "c2", "event_reward": -0.5}
    m |= {"tokens": 12, "input_tokens": 300, "agent_name": "Writer", "context": "c1"}
    c |= {"status": "ok", "t": None}
    r |= {"action": True}
    s1 |= {"node": "n1", "q_value": 0.25, "anchor": "o1", "block": "b1"}
    s2 |= {"node": "n2", "anchor": "o1", "env_step": 4, "env_reward": 0.125, "format_score": 0.5}
    s1 |= {"target_propensity": 0.5, "target_support": 1, "target_value": 0.75, "completion": "y1"}
    s1 |= {"counterfactual_reward": 0.5}
    s1["blamed"] = s2["blamed_agent"] = 1
    document["events"].append({"id": "z", "type": "stop", "agent": "boss", "turn": 2, "unknown": {"a": [1]}})
    return document | top


def test_the_extension_reads(tmp_path: Path) -> None:
    document = extended_trace()
    EXTENDED.validate(document)
    traces = read_one(document, tmp_path)
    graph = unpad(traces.graph)
    assert graph.action_mask.tolist() == [True, False, True, True, True, True, False, False, False, True, True, True]
    assert graph.event_type[-1] == EventType.STOP
    labels = [(owner, e["turn"]) for owner, e in zip(owner_of(traces).values(), document["events"], strict=True)]
    numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    assert graph.turn_ids.tolist() == [numbers[label] for label in labels]
    assert agents_by_id(traces)["boss"][0] == "Boss"
    assert agents_by_id(traces)["writer_1"][0] == "Writer"
    assert np.isnan(graph.time[0]) and np.isnan(graph.time[4])
    assert traces.events["time"].to_pylist()[:2] == [None, 1.0]
    assert traces.events["status"].to_pylist()[4] == "ok"
    expected: dict[str, dict[int, float]] = {
        "value": {0: 0.5}, "log_prob": {0: -1.25}, "propensity": {0: 0.75}, "stage": {0: 3}, "event_reward": {2: -0.5},
        "tokens": {3: 12}, "input_tokens": {3: 300}, "context": {1: 0, 2: 1, 3: 0}, "sibling_parent": {1: 0},
        "node": {1: 0, 2: 1}, "q_value": {1: 0.25}, "anchor": {1: 0, 2: 0}, "block": {1: 0}, "env_step": {2: 4},
        "env_reward": {2: 0.125}, "format_score": {2: 0.5}, "blamed": {1: 1}, "blamed_agent": {2: 1},
        "target_propensity": {1: 0.5}, "target_support": {1: 1}, "target_value": {1: 0.75}, "completion": {1: 0},
        "counterfactual_reward": {1: 0.5},
    }  # fmt: skip
    assert expected.keys() == EVENT_EVIDENCE.keys()
    for name, where in expected.items():
        values, mask = traces.evidence[name]
        assert {int(i): float(values[i]) for i in np.flatnonzero(mask)} == where, name
        assert not values[~mask].any(), name
    assert traces.evidence["greedy_reward"].values[0] == 0.5


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
    document["events"][1] |= {"value": 0.5, "action": True, "tokens": 6, "stage": 0.5}
    SURVEY.validate(document)
    file = tmp_path / "x.json"
    file.write_text(json.dumps(document))
    traces = read(file)
    assert sorted((p.kind, p.field) for p in traces.problems) == [
        ("foreign-key", "events[0].action"),
        ("foreign-key", "events[0].value"),
        ("foreign-key", "events[1].stage"),
        ("foreign-key", "events[1].turn"),
    ]
    assert "value" not in traces.evidence
    assert traces.evidence["tokens"].values[:2].tolist() == [5, 6]
    plain = read_one(survey_trace(), tmp_path)
    np.testing.assert_array_equal(traces.graph.action_mask, plain.graph.action_mask)
    np.testing.assert_array_equal(traces.graph.turn_ids, plain.graph.turn_ids)
    file.write_text(json.dumps(document | {"schema_version": "1.0"}))
    with pytest.raises(CreditError, match="bad-type"):
        read(file)


@pytest.mark.parametrize("layout", ["line", "pretty", "list", "pretty list", "event a line"])
def test_every_layout_gives_the_same_batch_and_points_at_its_traces(layout: str, tmp_path: Path) -> None:
    documents = [survey_trace(trace_id="a", rewards={"team": 0.5}), extended_trace(trace_id="b")]
    single = layout in {"pretty", "event a line"}
    if layout == "line":
        text = "\n" + "\r\n".join(json.dumps(d) for d in documents) + "\n\n"
    elif layout == "pretty":
        text = "\n" + json.dumps(documents[0], indent=2)
    elif layout == "event a line":
        text = json.dumps(documents[0]).replace('{"id"', '\n{"id"')
    else:
        text = " " + json.dumps(documents, indent=3 if layout == "pretty list" else None)
    file = tmp_path / "x.json"
    file.write_bytes(text.encode())
    traces = read(file)
    assert traces.problems == ()
    assert traces.traces["trace"].to_pylist() == (["a"] if single else ["a", "b"])
    for row in traces.traces.to_pylist():
        place = text[row["offset"] :]
        assert json.JSONDecoder().raw_decode(place.lstrip())[0]["trace_id"] == row["trace"]
        assert row["line"] == 1 + text.count("\n", 0, row["offset"])


def test_sniffing_knows_its_own_by_any_order_of_keys() -> None:
    document = extended_trace()
    for text in (
        json.dumps(document),
        json.dumps(document, indent=2),
        json.dumps(document, sort_keys=True),
        json.dumps([document]),
        json.dumps(dict(reversed(document.items()))),
        json.dumps(document)[:300],
        "oops\n" + json.dumps(document),
        json.dumps(document)[:100] + "\n" + json.dumps(document),
    ):
        assert sniff(text.encode()), text[:80]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[", "[]", "{}", "trace_id,task_id,events\na,b,c\n", '"trace_id"', '{"text": "trace_id events"}',
        '{"trace_id": "a", "task_id": "b", "reward": 1.0}',  # a trainer's row
        '{"resourceSpans": [{"scopeSpans": [{"spans": [{"trace_id": "a", "events": []}]}]}]}',
        '{"trace_id": "a", "span_id": "b", "events": [{"name": "e", "timestamp": 1}]}',  # a flat span
        '{"trace_id": "a", "run_type": "llm", "events": [{"name": "start", "time": "x"}]}',
        '{"id": "s", "epoch": 1, "events": [{"event": "model"}]}',
        '[{"task_id": 0, "reward": 0.0, "traj": [{"role": "user"}]}]',
        '{"type": "user", "message": {"trace_id": 1, "task_id": 2, "events": []}}',
    ],
)  # fmt: skip
def test_sniffing_leaves_others_alone(text: str) -> None:
    assert not sniff(text.encode())


def test_sniffing_claims_no_real_log_of_another_format(shared_data: Path) -> None:
    files = [f for f in shared_data.rglob("*") if f.suffix in {".json", ".jsonl"}]
    assert len(files) > 70
    for file in files:
        head = file.read_bytes()[: 1 << 16]
        assert not sniff(head), file
        if "atif" in str(file) or "who_and_when" in str(file) or "inspect" in str(file):
            assert detect(head) in {None, *FORMATS} - {"native", "table"}, file


def assert_round_trip(traces: Traces, folder: Path, name: str = "out.jsonl", **options: Any) -> Traces:
    """Write, read back, and compare everything but places in files; each line is valid."""
    file = folder / name
    write(traces, file)
    again = read(file, **options)
    assert again.problems == ()
    for field, array in vars(traces.graph).items():
        np.testing.assert_array_equal(array, getattr(again.graph, field), err_msg=field)
        assert array.dtype == getattr(again.graph, field).dtype
    np.testing.assert_array_equal(traces.reward, again.reward)
    assert traces.evidence.keys() == again.evidence.keys()
    for key, evidence in traces.evidence.items():
        np.testing.assert_array_equal(evidence.values, again.evidence[key].values, err_msg=key)
        np.testing.assert_array_equal(evidence.mask, again.evidence[key].mask, err_msg=key)
    places = ["file", "line", "offset"]
    assert traces.events.drop_columns(places).equals(again.events.drop_columns(places))
    assert traces.agents.equals(again.agents)
    places.append("format")
    assert traces.traces.drop_columns(places).equals(again.traces.drop_columns(places))
    return again


def lines_of(file: Path) -> list[Document]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        EXTENDED.validate(line)
    return lines


def test_a_trace_of_the_survey_form_is_written_in_it(tmp_path: Path) -> None:
    assert_round_trip(read_one(survey_trace(), tmp_path), tmp_path)
    (line,) = lines_of(tmp_path / "out.jsonl")
    SURVEY.validate(line)
    assert "schema_version" not in line


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_the_extension_survives_a_round_trip(name: str, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    documents = [
        extended_trace(trace_id="x"),
        survey_trace(trace_id="y", task_id="t2", rewards={}),
        extended_trace(trace_id="z", rewards={"team": 1 / 3, "other": 0}),
        survey_trace(trace_id="w", edges=[]),
    ]
    file.write_text("\n".join(map(json.dumps, documents)))
    traces = read(file)
    assert traces.problems == ()
    assert_round_trip(traces, tmp_path, name)
    content = (tmp_path / name).read_bytes()
    if name.endswith(".gz"):
        content = gzip.decompress(content)
        first = (tmp_path / name).read_bytes()
        write(traces, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    elif name.endswith(".zst"):
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    lines = [json.loads(line) for line in content.splitlines()]
    for line in lines:
        EXTENDED.validate(line)
        assert ("schema_version" in line) != SURVEY.is_valid(line)
    assert ["schema_version" in line for line in lines] == [True, False, True, False]


def test_real_logs_of_other_formats_survive_a_round_trip(shared_data: Path, tmp_path: Path) -> None:
    for folder in ("tau_bench_airline", "claude_code_inline", "claude_code_subagent_files"):
        traces = read(shared_data / folder)
        assert traces.sizes.events > 50
        assert_round_trip(traces, tmp_path)
        lines_of(tmp_path / "out.jsonl")


def test_a_reward_that_is_no_channel_is_written_as_team(tmp_path: Path) -> None:
    traces = read_one(survey_trace(rewards={"score": 0.5}), tmp_path, reward="score")
    assert_round_trip(traces, tmp_path, reward="score")
    assert lines_of(tmp_path / "out.jsonl")[0]["rewards"] == {"score": 0.5}
    other = dataclasses.replace(traces, reward=np.where(traces.graph.trace_mask, np.float32(2), 0).astype(np.float32))
    write(other, tmp_path / "other.jsonl")
    np.testing.assert_array_equal(read(tmp_path / "other.jsonl").reward, other.reward)
    taken = dataclasses.replace(read_one(survey_trace(), tmp_path), reward=other.reward)
    with pytest.raises(CreditError, match="team"):
        write(taken, tmp_path / "no.jsonl")
    assert not (tmp_path / "no.jsonl").exists()
    assert [f.name for f in tmp_path.iterdir() if "part" in f.name] == []


def test_what_the_format_cannot_say_is_not_written(tmp_path: Path) -> None:
    traces = read_one(survey_trace(), tmp_path)
    times = traces.events["time"].to_pylist()
    column = traces.events.column_names.index("time")
    early = traces.events.set_column(column, "time", pa.array([-1.0, *times[1:]]))
    ring = traces.traces.set_column(traces.traces.column_names.index("topology"), "topology", pa.array(["ring"]))
    nameless = traces.events.set_column(0, "event", pa.array(["", *traces.events["event"].to_pylist()[1:]]))
    for changed, words in (
        (dataclasses.replace(traces, events=early), "time -1"),
        (dataclasses.replace(traces, traces=ring), "'ring'"),
        (dataclasses.replace(traces, events=nameless), "length >= 1"),
    ):
        with pytest.raises(CreditError, match=words):
            write(changed, tmp_path / "no.jsonl")
        assert not (tmp_path / "no.jsonl").exists()


def test_the_schema_is_well_formed_and_knows_every_key() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    event = schema["$defs"]["event"]["properties"]
    assert set(event) == set(EVENT_FIELDS)
    assert set(event) >= set(EVENT_EVIDENCE)
    assert event["type"]["enum"] == [t.name.lower() for t in EventType]
    assert schema["$defs"]["edge"]["properties"]["type"]["enum"] == [t.name.lower() for t in EdgeType]
    assert schema["properties"]["topology"]["enum"] == [*TOPOLOGIES, None]
    for name, key in EVENT_EVIDENCE.items():
        rule = {"float": "#/$defs/number", "count": "#/$defs/count", "id": "#/$defs/name"}[key.kind]
        assert rule in json.dumps(event[name]), name
    named = [t.name.lower() for t in EventType if t in ACTION_TYPES]
    assert all(name in event["action"]["description"] for name in named)


def test_the_example_of_the_page_is_valid_and_reads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats" / "native.md").read_text()
    example = json.loads(page.partition("```json\n")[2].partition("```")[0])
    EXTENDED.validate(example)
    traces = read_one(example, tmp_path)
    assert owner_of(traces)["r"] == "w1"
    assert_round_trip(traces, tmp_path)


@pytest.mark.parametrize("page", ["native.md", "table.md"])
def test_the_pages_name_every_kind_of_evidence(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "formats" / page).read_text()
    assert all(f"`{name}`" in text for name in EVENT_EVIDENCE)


VALUES = (None, True, 0, 3.0, -1, 0.5, 1e30, "", "x", [], {}, ["x"], {"x": 1})
PLACES = (
    [(key,) for key in (*json_schema()["properties"], "unheard")]
    + [("events", 0, key) for key in (*EVENT_FIELDS, "unheard")]
    + [("edges", 0, key) for key in ("src", "dst", "type", "unheard")]
    + [("agents", 0, key) for key in ("id", "name", "role", "parent", "unheard")]
    + [("rewards", "team"), ("costs", "tokens"), ("metrics", "x"), ("evidence", "greedy_reward")]
)
SEMANTIC = {"dangling-edge", "duplicate-id", "unknown-parent", "mixed-turns"}  # beyond JSON Schema


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_schema_and_reader_agree_on_every_value_everywhere(place: tuple[Any, ...], tmp_path: Path) -> None:
    documents = []
    for i, value in enumerate(VALUES):
        document = extended_trace(trace_id=f"t{i}")
        target: Any = document
        for step in place[:-1]:
            target = target[step]
        target[place[-1]] = value
        documents.append(document)
    file = tmp_path / "x.jsonl"
    good = extended_trace(trace_id="good")  # so that a file always has something to read
    file.write_text("\n".join(map(json.dumps, [*documents, good])))
    traces = read(file, format="native")
    kinds = {p.line - 1: p.kind for p in traces.problems}
    for i, document in enumerate(documents):
        kind = kinds.get(i)
        if kind in SEMANTIC | {"duplicate-trace"}:
            continue
        assert EXTENDED.is_valid(document) == (kind is None), (VALUES[i], kind)
