"""A small good trace as a document, and the faults that it can have."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from graphs.errors import NothingReadError, Problem
from graphs.logs import read

Document = dict[str, Any]


def trace(name: str = "a", reward: float = 1.0) -> Document:
    """A small good trace: an orchestrator spawns a worker, which calls a tool and returns."""
    return {
        "schema_version": "1.0",
        "trace_id": name,
        "task_id": "task",
        "events": [
            {"id": "e0", "t": 0, "type": "orchestrator_decision", "agent": "lead"},
            {"id": "e1", "t": 1, "type": "spawn", "agent": "lead", "to": "worker"},
            {"id": "e2", "t": 2, "type": "tool_call", "agent": "worker", "tool": "search"},
            {"id": "e3", "t": 3, "type": "tool_result", "agent": "search", "tool": "search"},
            {"id": "e4", "t": 4, "type": "return", "agent": "worker", "to": "lead"},
        ],
        "edges": [
            {"src": "e0", "dst": "e1", "type": "causal"},
            {"src": "e1", "dst": "e2", "type": "spawn"},
            {"src": "e2", "dst": "e3", "type": "return"},
        ],
        "rewards": {"team": reward},
        "costs": {"tokens": 1, "wall_clock_s": 2},
    }


def changed(*path: Any, to: Any) -> Callable[[], str]:
    """The good trace with the value at `path` replaced (or removed, where `to` is Ellipsis), as text."""

    def make() -> str:
        document = trace()
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        if to is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = to
        return json.dumps(document)

    return make


def with_text(old: str, new: str) -> Callable[[], str]:
    """The good trace's text with a piece replaced: for what `json.dumps` would not write."""

    def make() -> str:
        text = json.dumps(trace())
        assert old in text
        return text.replace(old, new, 1)

    return make


def edge(src: str, dst: str) -> list[Document]:
    return [{"src": src, "dst": dst, "type": "causal"}]


FAULTS: dict[str, tuple[str, str, Callable[[], str]]] = {
    # name: (kind, a piece of the field, the text)
    "truncated in the middle": ("bad-json", "content", lambda: json.dumps(trace())[:150]),
    "truncated before the end": ("bad-json", "content", lambda: json.dumps(trace())[:-1]),
    "trailing comma": ("bad-json", "content", with_text('"wall_clock_s": 2}', '"wall_clock_s": 2,}')),
    "garbage behind": ("bad-json", "content", lambda: json.dumps(trace()) + "x"),
    "trace_id missing": ("missing-field", "trace_id", changed("trace_id", to=...)),
    "trace_id null": ("bad-type", "trace_id", changed("trace_id", to=None)),
    "trace_id number": ("bad-type", "trace_id", changed("trace_id", to=7)),
    "trace_id empty": ("empty-id", "trace_id", changed("trace_id", to="")),
    "task_id missing": ("missing-field", "task_id", changed("task_id", to=...)),
    "task_id list": ("bad-type", "task_id", changed("task_id", to=["x"])),
    "task_id empty": ("empty-id", "task_id", changed("task_id", to="")),
    "group empty": ("empty-id", "group", changed("group", to="")),
    "group number": ("bad-type", "group", changed("group", to=1)),
    "schema_version number": ("bad-type", "schema_version", changed("schema_version", to=1)),
    "schema_version of the future": ("unknown-version", "schema_version", changed("schema_version", to="2.0")),
    "system number": ("bad-type", "system", changed("system", to=1)),
    "topology unknown": ("unknown-topology", "topology", changed("topology", to="ring")),
    "events missing": ("missing-field", "events", changed("events", to=...)),
    "events null": ("bad-type", "events", changed("events", to=None)),
    "events object": ("bad-type", "events", changed("events", to={})),
    "events empty": ("empty-trace", "events", changed("events", to=[])),
    "event null": ("bad-type", "events[1]", changed("events", 1, to=None)),
    "event text": ("bad-type", "events[1]", changed("events", 1, to="spawn")),
    "event id missing": ("missing-field", "events[2].id", changed("events", 2, "id", to=...)),
    "event id number": ("bad-type", "events[2].id", changed("events", 2, "id", to=2)),
    "event id empty": ("empty-id", "events[2].id", changed("events", 2, "id", to="")),
    "event id twice": ("duplicate-id", "events[2].id", changed("events", 2, "id", to="e0")),
    "type missing": ("missing-field", "events[0].type", changed("events", 0, "type", to=...)),
    "type number": ("bad-type", "events[0].type", changed("events", 0, "type", to=1)),
    "type unknown": ("unknown-event-type", "events[0].type", changed("events", 0, "type", to="think")),
    "agent missing": ("missing-field", "events[4].agent", changed("events", 4, "agent", to=...)),
    "agent null": ("bad-type", "events[4].agent", changed("events", 4, "agent", to=None)),
    "agent empty": ("empty-id", "events[4].agent", changed("events", 4, "agent", to="")),
    "mark a half": ("bad-value", "events[1].trainable", changed("events", 1, "trainable", to=0.5)),
    "t negative": ("out-of-range", "events[0].t", changed("events", 0, "t", to=-1)),
    "t text": ("bad-type", "events[0].t", changed("events", 0, "t", to="0")),
    "t bool": ("bad-type", "events[0].t", changed("events", 0, "t", to=True)),
    "t overflows": ("non-finite", "events[0].t", with_text('"t": 0', '"t": 1e999')),
    "role number": ("bad-type", "events[0].role", changed("events", 0, "role", to=1)),
    "from number": ("bad-type", "events[0].from", changed("events", 0, "from", to=1)),
    "to list": ("bad-type", "events[1].to", changed("events", 1, "to", to=["worker"])),
    "tool object": ("bad-type", "events[2].tool", changed("events", 2, "tool", to={})),
    "content_ref number": ("bad-type", "events[2].content_ref", changed("events", 2, "content_ref", to=0.5)),
    "trusted number": ("bad-type", "events[2].trusted", changed("events", 2, "trusted", to=1)),
    "action text": ("bad-type", "events[2].action", changed("events", 2, "action", to="yes")),
    "turn float": ("bad-type", "events[2].turn", changed("events", 2, "turn", to=0.5)),
    "turn at one event only": ("mixed-turns", "events[0].turn", changed("events", 2, "turn", to=1)),
    "status number": ("bad-type", "events[2].status", changed("events", 2, "status", to=1)),
    "agent_name number": ("bad-type", "events[2].agent_name", changed("events", 2, "agent_name", to=1)),
    "value text": ("bad-type", "events[2].value", changed("events", 2, "value", to="high")),
    "log_prob bool": ("bad-type", "events[2].log_prob", changed("events", 2, "log_prob", to=False)),
    "propensity list": ("bad-type", "events[2].propensity", changed("events", 2, "propensity", to=[0.5])),
    "event_reward text": ("bad-type", "events[2].event_reward", changed("events", 2, "event_reward", to="1")),
    "value beyond float32": ("out-of-range", "events[2].value", changed("events", 2, "value", to=1e39)),
    "context number": ("bad-type", "events[2].context", changed("events", 2, "context", to=1)),
    "context empty": ("empty-id", "events[2].context", changed("events", 2, "context", to="")),
    "tokens negative": ("out-of-range", "events[2].tokens", changed("events", 2, "tokens", to=-1)),
    "tokens huge": ("out-of-range", "events[2].tokens", changed("events", 2, "tokens", to=10**30)),
    "tokens of 5000 digits": (
        "non-finite",
        "events[2].tokens",
        with_text('"tool": "search"', '"tool": "search", "tokens": ' + "9" * 5000),
    ),
    "tokens fraction": ("bad-type", "events[2].tokens", changed("events", 2, "tokens", to=1.5)),
    "edges object": ("bad-type", "edges", changed("edges", to={})),
    "edge null": ("bad-type", "edges[0]", changed("edges", 0, to=None)),
    "edge without src": ("missing-field", "edges[0].src", changed("edges", 0, "src", to=...)),
    "edge type unknown": ("unknown-edge-type", "edges[0].type", changed("edges", 0, "type", to="because")),
    "edge from nowhere": ("dangling-edge", "edges[0].src", changed("edges", to=edge("zzz", "e1"))),
    "edge to nowhere": ("dangling-edge", "edges[0].dst", changed("edges", to=edge("e1", "zzz"))),
    "edge to itself": ("self-edge", "edges", changed("edges", to=edge("e1", "e1"))),
    "cycle": ("cycle", "edges", changed("edges", to=edge("e1", "e2") + edge("e2", "e3") + edge("e3", "e1"))),
    "use before spawn": ("use-before-spawn", "events[0].agent", changed("events", 0, "agent", to="worker")),
    "agents object": ("bad-type", "agents", changed("agents", to={})),
    "agents without id": ("missing-field", "agents[0].id", changed("agents", to=[{"name": "x"}])),
    "agents twice": ("duplicate-agent", "agents", changed("agents", to=[{"id": "x"}, {"id": "x"}])),
    "parent unknown": ("unknown-parent", "agents.x.parent", changed("agents", to=[{"id": "x", "parent": "y"}])),
    "parent cycle": (
        "agent-cycle",
        "parent",
        changed("agents", to=[{"id": "x", "parent": "y"}, {"id": "y", "parent": "x"}]),
    ),
    "reward NaN": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": NaN')),
    "reward Infinity": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": Infinity')),
    "reward -Infinity": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": -Infinity')),
    "reward overflows": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": 1e999')),
    "reward beyond float32": ("out-of-range", "rewards.team", changed("rewards", "team", to=1e39)),
    "reward text": ("bad-type", "rewards.team", changed("rewards", "team", to="1.0")),
    "rewards list": ("bad-type", "rewards", changed("rewards", to=[1.0])),
    "cost negative": ("out-of-range", "costs.tokens", changed("costs", "tokens", to=-1)),
    "cost bool": ("bad-type", "costs.tokens", changed("costs", "tokens", to=True)),
    "cost text": ("bad-type", "costs.tokens", changed("costs", "tokens", to="many")),
    "metrics text": ("bad-type", "metrics.x", changed("metrics", to={"x": "y"})),
    "evidence text": ("bad-type", "evidence.greedy_reward", changed("evidence", to={"greedy_reward": "1"})),
    "NaN where nobody looks": ("non-finite", "note.x[1]", changed("note", to={"x": [0, float("nan")]})),
    "deep nesting": (
        "too-deep",
        "content",
        with_text('"costs"', '"note": ' + "[" * 100_000 + "]" * 100_000 + ', "costs"'),
    ),
    "half a surrogate pair": ("bad-json", "content", with_text('"task_id": "task"', '"task_id": "\\ud800"')),
}


def only_problem(*paths: Any, **options: Any) -> Problem:
    """The one problem of input of which nothing can be read."""
    with pytest.raises(NothingReadError) as caught:
        read(*paths, **options)
    (problem,) = caught.value.problems
    return problem
