"""Traces in the survey's form and in the extension, the survey's own schema, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from graphs.event_graph import EdgeType, EventType
from graphs.event_types import STATED_TOPOLOGIES
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.traces.schema import json_schema
from graphs.writers.native import write

__all__ = [
    "EXTENDED",
    "SURVEY",
    "SURVEY_EVENT_TYPES",
    "SURVEY_SCHEMA",
    "Document",
    "agents_by_id",
    "assert_round_trip",
    "extended_trace",
    "owner_of",
    "read_one",
    "survey_trace",
]

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
        "topology": {"enum": list(STATED_TOPOLOGIES)},
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


def extended_trace(**top: Any) -> Document:
    """A trace that uses every key of the extension."""
    document = survey_trace(
        trace_id="x1",
        schema_version="1.0",
        group="g",
        agents=[{"id": "boss", "name": "The boss", "role": "lead"}],
        evidence={"greedy_reward": 0.5},
    )
    for i, event in enumerate(document["events"]):
        event["turn"] = "first" if i < 6 else 2
    d, s1, s2, m, c, r = document["events"][:6]
    del d["t"]
    d |= {"action": True, "value": 0.5, "log_prob": -1.25, "propensity": 0.75, "stage": 3.0, "status": None}
    s1 |= {"action": False, "context": "c1", "sibling_parent": "node"}
    s2 |= {"context": "c2", "event_reward": -0.5}
    m |= {
        "tokens": 12,
        "input_tokens": 300,
        "cached_tokens": 200,
        "cache_write_tokens": 50,
        "seconds": 1.5,
        "money": 0.125,
        "agent_name": "Writer",
        "context": "c1",
    }
    c |= {"status": "ok", "t": None, "token_ids": [4, 0], "token_log_probs": [-0.5, -1.25]}
    m |= {"token_ids": [7, 8, 9], "token_mask": [False, True, True], "token_log_probs": [-0.25, -2.0]}
    m |= {"token_sums_of_squares": [0.75, 0.125]}
    r |= {"action": True}
    s1 |= {"node": "n1", "q_value": 0.25, "anchor": "o1", "block": "b1", "proposal": "p1"}
    s1 |= {
        "next_anchor": "o2",
        "key": "k1",
        "value_high": 0.25,
        "hindsight_log_prob": -0.5,
        "is_valid": True,
        "self_rating": 0.5,
    }
    s2 |= {"agent_reward": 0.5, "key": "k2", "segment": "g1", "is_valid": False}
    s1 |= {"solo_reward": 0.25, "own_number": -0.75}
    s2 |= {"alternative": "a", "stop_propensity": 0.25, "spawn_propensity": 0.5}
    s2 |= {"trainable": 0.0, "node": "n2", "anchor": "o1", "env_step": 4, "env_reward": 0.125, "format_score": 0.5}
    s1 |= {"target_propensity": 0.5, "target_support": 1, "target_value": 0.75, "completion": "y1"}
    s1 |= {"counterfactual_reward": 0.5, "share": 0.25, "share_stderr": 0.125, "replays": 3, "replay_stderr": 0.5}
    s1["blamed"] = s2["blamed_agent"] = 1
    s2["attack_vector"] = 3
    document["events"].append({"id": "z", "type": "stop", "agent": "boss", "turn": 2, "unknown": {"a": [1]}})
    return document | top


def assert_round_trip(traces: Traces, folder: Path, name: str = "out.jsonl", **options: Any) -> Traces:
    """Write, read back, and compare everything but places in files; each line is valid."""
    file = folder / name
    write(traces, file)
    again = read(file, **options)
    assert again.problems == ()
    for field, array in vars(traces.graph).items():
        np.testing.assert_array_equal(array, getattr(again.graph, field), err_msg=field)
        assert getattr(array, "dtype", None) == getattr(getattr(again.graph, field), "dtype", None)
    np.testing.assert_array_equal(traces.reward, again.reward)
    assert traces.evidence.keys() == again.evidence.keys()
    for key, evidence in traces.evidence.items():
        np.testing.assert_array_equal(evidence.array, again.evidence[key].array, err_msg=key)
        np.testing.assert_array_equal(evidence.mask, again.evidence[key].mask, err_msg=key)
    assert (traces.tokens is None) == (again.tokens is None)
    if traces.tokens is not None and again.tokens is not None:
        for field, array in vars(traces.tokens).items():
            np.testing.assert_array_equal(array, getattr(again.tokens, field), err_msg=field)
    places = ["file", "line", "offset"]
    assert traces.events.drop_columns(places).equals(again.events.drop_columns(places))
    assert traces.agents.equals(again.agents)
    places.append("format")
    assert traces.traces.drop_columns(places).equals(again.traces.drop_columns(places))
    return again
