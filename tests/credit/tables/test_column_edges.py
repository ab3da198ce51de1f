"""Columns of parents, types and edges: who spawned whom, and what came from what."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import credit
import graphs
from credit.tables.columns import ColumnError, from_columns

from .eight_rows import AGENT, TRACE, example

PARENT = [None, None, "S", "S", None, None, "S", None]

TEXTS = [  # the lowest pyarrow that is allowed makes no dictionary of large texts by `pa.array` alone
    *(functools.partial(pa.array, type=text) for text in (pa.string(), pa.large_string(), pa.string_view())),
    lambda texts: pa.array(texts, pa.large_string()).dictionary_encode(),
]


@pytest.mark.slow
def test_parents_are_agents_of_the_same_trace() -> None:
    graph, reward, rows = example(parent=PARENT)
    owner = np.asarray(graph.agent_ids)[rows.event]
    for i, name in enumerate(PARENT):
        parent = int(graph.agent_parent[owner[i]])
        if name is None:
            assert parent == owner[i]
        else:
            assert graph.agent_trace[parent] == graph.agent_trace[owner[i]]
            assert parent == next(owner[j] for j in range(8) if TRACE[j] == TRACE[i] and AGENT[j] == name)
    plain, _, _ = example()
    assert plain.agent_parent[:7].tolist() == list(range(7))
    # A sub-agent is no longer compared with main agents.
    main, sub = ([i for i in range(4) if (PARENT[i] is None) == kind] for kind in (True, False))
    extra = np.zeros(16, np.float32)
    extra[rows.event[sub]] = 1
    result = rows.gather(credit.mgrpo(graph, reward, event_reward=extra).baseline)
    assert np.asarray(result)[main].tolist() == [0.5, 0.5] and np.asarray(result)[sub].tolist() == [1.5, 1.5]


@pytest.mark.parametrize("container", [list, pa.array, lambda x: pa.array(x).dictionary_encode()])
def test_parents_in_any_container(container: Any) -> None:
    expected = example(parent=PARENT)[0].agent_parent
    assert np.array_equal(example(parent=container(PARENT))[0].agent_parent, expected)


@pytest.mark.parametrize("of_agent", TEXTS)
@pytest.mark.parametrize("of_parent", TEXTS)
def test_parents_are_named_by_texts_of_any_layout(of_agent: Any, of_parent: Any) -> None:
    agent, parent = of_agent(AGENT), of_parent(PARENT)
    expected = example(parent=PARENT)[0].agent_parent
    assert np.array_equal(example(agent=agent, parent=parent)[0].agent_parent, expected)


def test_parents_may_be_integers_with_holes() -> None:
    pandas = pytest.importorskip("pandas")
    agent = [1 if name == "S" else 2 for name in AGENT]
    parent = pandas.Series([None if name is None else 1 for name in PARENT]).astype("Int64")
    expected = example(parent=PARENT)[0].agent_parent
    assert np.array_equal(example(agent=agent, parent=parent)[0].agent_parent, expected)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parent": [None, None, "X", "S", None, None, "S", None]}, "'X' is no agent of the row's trace (rows 2)"),
        ({"parent": [None, None, "S", "S", "V", None, "S", "V"]}, "'V' is no agent of the row's trace (rows 4)"),
        ({"parent": [None, None, "S", "S", None, None, "S", "S"]}, "an agent has one parent within a trace"),
        ({"parent": ["V", None, "S", None, None, None, None, None]}, "spawned each other in a circle"),
        ({"parent": [None, None, 1, 1, None, None, 1, None]}, "names agents by int64, column 'agent' by string"),
        ({"parent": PARENT, "agent": None}, "there is no agent= column"),
    ],
)
def test_wrong_parents_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ColumnError) as caught:
        example(**changes)
    assert words in str(caught.value)


def test_types_and_edges_are_those_of_a_log(tmp_path: Path) -> None:
    """The same two traces as columns and as a native log: equal graphs but for the ids of turns, which logs derive."""
    kinds = ["spawn", "message", "tool_call", "tool_result", "message", "stop"]
    agents = ["boss", "solver", "solver", "solver", "boss", "boss"]
    trace = ["a", "a", "a", "b", "b", "b"]
    pairs = [(0, 1, "spawn"), (1, 2, "causal"), (3, 4, "message"), (4, 5, "temporal")]
    graph, reward, _ = from_columns(
        group=["q"] * 6,
        trace=trace,
        agent=agents,
        reward=[1.0] * 3 + [0.0] * 3,
        event_type=kinds,
        edges={"sender": [p[0] for p in pairs], "receiver": [p[1] for p in pairs], "type": [p[2] for p in pairs]},
        turn=[0, 0, 0, 0, 0, 0],
    )
    lines = []
    for name in "ab":
        rows = [i for i in range(6) if trace[i] == name]
        events = [{"id": f"{i}", "type": kinds[i], "agent": agents[i]} for i in rows]
        edges = [{"src": f"{s}", "dst": f"{d}", "type": kind} for s, d, kind in pairs if s in rows]
        rewards = {"team": float(name == "a")}
        lines.append(
            json.dumps({"trace_id": name, "task_id": "q", "events": events, "edges": edges, "rewards": rewards})
        )
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    read = credit.read(tmp_path / "log.jsonl")
    for field in dataclasses.fields(graph):
        if field.name in ("turn_ids", "agent_parent"):
            continue
        ours, theirs = (np.asarray(getattr(graphs.unpad(g), field.name)) for g in (graph, read.graph))
        assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), field.name
    assert np.array_equal(reward[:2], read.reward[:2])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"event_type": ["message", "massage", "stop"]},
            "'massage' is no type; expected one of orchest",
        ),
        ({"event_type": [3, 99, 10]}, r"99 is no type"),
        ({"edges": {"sender": [0]}}, "has columns sender; expected sender, receiver and type"),
        ({"edges": {"sender": [0], "receiver": [3]}}, "3 is no row; expected 0 to 2"),
        ({"edges": {"sender": [1], "receiver": [0]}}, "the receiver does not come after the sender"),
        ({"edges": {"sender": [0], "receiver": [2]}}, "the two ends lie in different traces"),
        ({"action": [0, 1, 2]}, "values are not all True or False"),
    ],
)
def test_wrong_types_and_edges_are_named(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(ColumnError, match=words):
        from_columns(group=[0] * 3, trace=["a", "a", "b"], reward=[1.0, 1.0, 0.0], **columns)
