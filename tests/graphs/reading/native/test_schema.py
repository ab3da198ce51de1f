"""The extension and its schema: every key reads, and schema and reader agree on every value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from site_pages import page

import credit
from graphs.event_graph import ACTION_TYPES, EdgeType, EventType
from graphs.event_types import STATED_TOPOLOGIES
from graphs.formats.native.wire import EVENT_FIELDS
from graphs.logs import read
from graphs.padding import unpad
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TRACE_EVIDENCE, json_schema

from .logs import EXTENDED, agents_by_id, assert_round_trip, extended_trace, owner_of, read_one


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
    assert agents_by_id(traces)["boss"][0] == "The boss"
    assert agents_by_id(traces)["writer_1"][0] == "Writer"
    assert np.isnan(graph.time[0]) and np.isnan(graph.time[4])
    assert traces.events["time"].to_pylist()[:2] == [None, 1.0]
    assert traces.events["status"].to_pylist()[4] == "ok"
    expected: dict[str, dict[int, float]] = {
        "value": {0: 0.5}, "log_prob": {0: -1.25}, "propensity": {0: 0.75}, "stage": {0: 3}, "event_reward": {2: -0.5},
        "tokens": {3: 12, 4: 2}, "input_tokens": {3: 300}, "cached_tokens": {3: 200},
        "cache_write_tokens": {3: 50}, "seconds": {3: 1.5}, "money": {3: 0.125},
        "context": {1: 0, 2: 1, 3: 0}, "sibling_parent": {1: 0},
        "node": {1: 0, 2: 1}, "q_value": {1: 0.25}, "anchor": {1: 0, 2: 0}, "block": {1: 0}, "env_step": {2: 4},
        "agent_reward": {2: 0.5},
        "proposal": {1: 0}, "next_anchor": {1: 1}, "key": {1: 0, 2: 1}, "segment": {2: 0}, "value_high": {1: 0.25},
        "hindsight_log_prob": {1: -0.5}, "self_rating": {1: 0.5}, "is_valid": {1: 1, 2: 0},
        "env_reward": {2: 0.125}, "format_score": {2: 0.5}, "blamed": {1: 1}, "blamed_agent": {2: 1},
        "target_propensity": {1: 0.5}, "target_support": {1: 1}, "target_value": {1: 0.75}, "completion": {1: 0},
        "counterfactual_reward": {1: 0.5}, "trainable": {2: 0}, "share": {1: 0.25}, "share_stderr": {1: 0.125},
        "stop_propensity": {2: 0.25}, "spawn_propensity": {2: 0.5}, "alternative": {2: 0},
        "own_number": {1: -0.75},
        "solo_reward": {1: 0.25}, "replays": {1: 3}, "replay_stderr": {1: 0.5}, "attack_vector": {2: 3},
    }  # fmt: skip
    assert expected.keys() == EVENT_EVIDENCE.keys()
    for name, where in expected.items():
        values, mask = traces.evidence[name].array, traces.evidence[name].mask
        assert {int(i): float(values[i]) for i in np.flatnonzero(mask)} == where, name
        assert np.all(np.isnan(values[~mask]) if values.dtype.kind == "f" else values[~mask] == -1), name
    assert traces.evidence["greedy_reward"].array[0] == 0.5


def test_the_schema_is_well_formed_and_knows_every_key() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    event = schema["$defs"]["event"]["properties"]
    assert set(event) == set(EVENT_FIELDS)
    assert set(event) >= set(EVENT_EVIDENCE)
    assert event["type"]["enum"] == [t.name.lower() for t in EventType]
    assert schema["$defs"]["edge"]["properties"]["type"]["enum"] == [t.name.lower() for t in EdgeType]
    assert schema["properties"]["topology"]["enum"] == [*STATED_TOPOLOGIES, None]
    for name, key in EVENT_EVIDENCE.items():
        if name in FLAGS:
            assert event[name]["enum"] == [True, False, 1, 0, None]
        elif key.kind == "id":
            assert "#/$defs/name" in json.dumps(event[name])
        else:
            rule = schema["$defs"][event[name]["$ref"].rpartition("/")[2]]
            truth = ["boolean"] if name.endswith("reward") else []
            assert rule["type"] == ["integer" if key.kind == "count" else "number", *truth, "null"]
            assert (rule["minimum"], rule["maximum"]) == key.within[:2]
    for name, key in TRACE_EVIDENCE.items():
        rule = schema["$defs"][schema["properties"]["evidence"]["properties"][name]["$ref"].rpartition("/")[2]]
        assert (rule["minimum"], rule["maximum"]) == key.within[:2]
    named = [t.name.lower() for t in EventType if t in ACTION_TYPES]
    assert all(name in event["action"]["description"] for name in named)


def test_the_example_of_the_page_is_valid_and_reads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "formats" / "native.md").read_text()
    example = json.loads(page.partition("```json\n")[2].partition("```")[0])
    EXTENDED.validate(example)
    traces = read_one(example, tmp_path)
    assert owner_of(traces)["r"] == "w1"
    assert_round_trip(traces, tmp_path)


def test_a_number_by_name_that_is_null_is_missing_and_a_truth_is_1_or_0(tmp_path: Path) -> None:
    """A reward of null, or of true, refused its trace, though null of any other key said that it is missing."""
    traces = [
        extended_trace(trace_id=name) | {"rewards": {"team": team, "tool": tool}, "costs": {"tokens": None}}
        for name, team, tool in (("a", None, True), ("b", 0.5, None), ("c", False, None))
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    found = read(path)
    assert found.problems == () and repr(found.reward[:3].tolist()) == "[nan, 0.5, 0.0]"
    assert found.evidence["rewards.tool"].rows.tolist() == [0] and "costs.tokens" not in found.evidence


def test_the_page_names_every_kind_of_evidence() -> None:
    """The page of tables refers to it."""
    text = page("formats/native")
    assert all(f"`{name}`" in text for name in EVENT_EVIDENCE)


VALUES = (None, True, 0, 3.0, -1, 0.5, 1e30, "", "x", [], {}, ["x"], {"x": 1})

PLACES = (
    [(key,) for key in (*json_schema()["properties"], "unheard")]
    + [("events", 0, key) for key in (*EVENT_FIELDS, "unheard")]
    + [("edges", 0, key) for key in ("src", "dst", "type", "unheard")]
    + [("agents", 0, key) for key in ("id", "name", "role", "parent", "unheard")]
    + [("rewards", "team"), ("costs", "tokens"), ("metrics", "x"), ("evidence", "greedy_reward")]
)

SEMANTIC = {
    "dangling-edge",
    "duplicate-id",
    "unknown-parent",
    "mixed-turns",
    "inconsistent-reward",
}  # beyond JSON Schema


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.sampled
def test_schema_and_reader_agree_on_every_value_everywhere(place: tuple[Any, ...], tmp_path: Path) -> None:
    documents = []
    for i, value in enumerate(VALUES):
        document = extended_trace(trace_id=f"t{i}")
        for event in document["events"]:  # draws of their own: traces that share a node agree on who acted there
            event |= {"node": f"{event['node']} of {i}"} if "node" in event else {}
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


@pytest.mark.parametrize("form", ["survey's", "extended", "table"])
def test_evidence_that_is_nan_is_none(form: str, tmp_path: Path) -> None:
    """It refused the whole trace, also of methods that read no values, or took all its values; Parquet's never did."""
    events = [{"id": str(i), "type": "message", "agent": "s", "value": v} for i, v in enumerate((float("nan"), 0.5))]
    logs: list[dict[str, Any]] = [
        {"trace_id": t, "task_id": "q", "events": events, "edges": [], "rewards": {"team": r}, "costs": {}}
        | ({"schema_version": "1.0"} if form == "extended" else {})
        for t, r in (("a", 1.0), ("b", 0.0))
    ]
    if form == "table":
        outer = [{"trace": log["trace_id"], "group": "q", "reward": log["rewards"]["team"]} for log in logs]
        logs = [row | event for row in outer for event in events]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, logs)))
    traces = read(path)
    assert traces.evidence["value"].listed(0, 4) == [None, 0.5] * 2
    notes = [(note.kind, note.field, note.value, note.count, note.is_failure) for note in traces.problems]
    assert notes == ([] if form == "table" else [("nan-evidence", "value", "NaN", 2, False)])
    assert credit.run(traces, "rloo").valid[:4].all()
    valued = credit.run(traces, "gae", lambda_=1.0)
    assert valued.valid[:4].tolist() == [False, True] * 2 and "lacks the evidence" in valued.why[0]
    for name in ("event_reward", *(["agent_reward"] if form != "table" else [])):  # what was earned is not known
        path.write_text("\n".join(map(json.dumps, logs)).replace('"value": NaN', f'"{name}": NaN', 1))
        assert [problem.trace for problem in read(path).problems if problem.is_failure][:1] == ["a"]
