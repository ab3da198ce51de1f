"""Comparison keys against dictionaries, and what is refused."""

from __future__ import annotations

import collections
from typing import Any

import jax
import numpy as np
import pytest

import credit
from credit.tables.batch_rows import Rows
from graphs.event_graph import EventGraph
from graphs.keys import PARTS, column_of_key, decided_by, event_keys, evidence_of_key, key_of, scope_of_key

PARENTS = {"lead": None, "one": "lead", "two": "lead", "deep": "one"}  # depths 0, 1, 1, 2
SHIFT = [7, 7, -1, 2**40]  # ids beyond 32 bits; -1 is none
KEYS: tuple[Any, ...] = (("turn", "task", "agent"), ("episode", "step"), ("agent", "length"), ("depth", "role"))


def drawn(seed: int) -> tuple[EventGraph, Rows, dict[str, list[Any]]]:
    """Rows in which agents take turns, some rows are no actions, and every part of each row, counted in loops."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = collections.defaultdict(list)
    parts: dict[str, list[Any]] = collections.defaultdict(list)
    for trace in range(12):
        steps, turns = 0, collections.defaultdict[str, list[int]](list)
        rows = int(rng.integers(1, 12))
        acts = (rng.random(rows) < 0.7).tolist()
        for row in range(rows):
            agent = list(PARENTS)[0 if row == 0 else int(rng.integers(len(PARENTS)))]
            turn = int(rng.integers(3))
            if acts[row] and turn not in turns[agent]:
                turns[agent].append(turn)
            parts["task"].append(trace // 3)
            parts["episode"].append(trace)
            parts["agent"].append(agent)
            parts["role"].append(agent[0])
            parts["depth"].append(0 if agent == "lead" else 2 if agent == "deep" else 1)
            parts["turn"].append(turns[agent].index(turn) if acts[row] else None)
            parts["step"].append(steps)
            parts["length"].append(max(sum(acts), 1).bit_length())
            steps += acts[row]
            for name, value in (("group", trace // 3), ("trace", trace), ("agent", agent), ("role", agent[0])):
                columns[name].append(value)
            columns["turn"].append("xyz"[turn])
            columns["action"].append(acts[row])
    named = [set(np.asarray(columns["agent"])[np.asarray(columns["trace"]) == t]) for t in range(12)]
    columns["parent"] = [
        PARENTS[a] if PARENTS[a] in named[t] else None for a, t in zip(columns["agent"], columns["trace"], strict=True)
    ]
    lost = [a == "deep" and "one" not in named[t] for a, t in zip(columns["agent"], columns["trace"], strict=True)]
    parts["depth"] = [0 if away else depth for away, depth in zip(lost, parts["depth"], strict=True)]
    graph, _, rows_ = credit.from_columns(**columns, reward=[0.0] * len(lost), events=128, traces=32, agents=64)
    parts["acts"] = columns["action"]
    return graph, rows_, parts


@jax.jit  # compiled once
def _keys(graph: EventGraph) -> list[jax.Array]:
    return [event_keys(graph, by) for by in KEYS]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(3))
def test_keys_are_those_of_dictionaries(seed: int) -> None:
    graph, rows, parts = drawn(seed)
    acts = np.array(parts["acts"])
    for by, found in zip(KEYS, _keys(graph), strict=True):
        ids = rows.gather(found)[acts].tolist()
        expected = [tuple(parts[name][row] for name in by) for row in np.flatnonzero(acts)]
        assert len(set(zip(ids, expected, strict=True))) == len(set(ids)) == len(set(expected)), by
        assert min(ids) >= 0 and max(ids) < len(set(rows.gather(found).tolist()))
        assert (np.asarray(found)[~np.asarray(graph.event_mask)] == -1).all()


@pytest.mark.slow
def test_a_part_that_the_log_states_is_taken_from_its_evidence() -> None:
    graph, _, rows = credit.from_columns(group=[0] * 4, trace=list("aabb"), reward=[1.0] * 4, events=8, traces=4)
    stated = [name for name, part in PARTS.items() if part.evidence]
    assert len(PARTS) == 16 and {"stage", "proposal", "tree", "model", "policy_version"} < set(stated)
    for name in stated:
        of_traces = PARTS[name].level == "trace"
        ids = np.full(graph.num_traces if of_traces else graph.num_events, -1)
        ids[: 2 if of_traces else 4] = [9, 5] if of_traces else [9, 5, -1, 9]
        found = rows.gather(event_keys(graph, ("task", name), {PARTS[name].evidence: ids})).tolist()
        assert found == ([found[0]] * 2 + [found[2]] * 2 if of_traces else [found[0], found[1], -1, found[0]]), name
        assert found[0] != found[2] and -1 not in found[:2] and (of_traces or found[0] != found[1])


@pytest.mark.slow
def test_arrays_of_any_width_are_parts_and_minus_one_is_none() -> None:
    graph, _, rows = credit.from_columns(
        group=[0] * 4,
        trace=list("abcd"),
        reward=[0.0] * 4,
        events=4,
        evidence={"key": ["x", "y", None, "x"], "anchor": list("ppqq"), "policy_version": [1, 1, 2, 2]},
    )
    version = {"policy_version": rows.evidence["policy_version"]}
    keys = (
        key_of(np.array(SHIFT)),
        key_of(["task", np.array(SHIFT)]),
        key_of("key", rows.evidence),
        key_of("policy_version,anchor", version | rows.evidence),
    )
    found = jax.jit(lambda graph, keys: [event_keys(graph, key) for key in keys])(graph, keys)
    assert [ids.tolist() for ids in found] == [[0, 0, -1, 1], [0, 0, -1, 1], [0, 1, -1, 0], [0, 0, 1, 1]]


@pytest.mark.parametrize(
    ("by", "evidence", "message"),
    [
        ("task,trun", {}, "by names 'trun'; did you mean 'turn'"),
        ("", {}, "by names ''; expected names among task, "),
        ((), {}, r"by is \(\); expected one name or more"),
        ("task,task", {}, "by names 'task' twice"),
        ("anchor", None, "by names 'anchor', and a graph does not hold it: call credit.run"),
        ("anchor", {"stage": np.zeros(3, int)}, "by names 'anchor', and the log lacks it: add \"anchor\""),
        ("model", None, "by names 'model', and a graph does not hold it"),
        (np.array([0.5]), {}, "of dtype float64; expected names, or an array of integers"),
        (("task", np.zeros(3, int)), {}, r"by has part 2 of shape \(3,\); expected \(4,\), one entry for each event"),
    ],
)
def test_refusals(by: Any, evidence: dict[str, Any] | None, message: str) -> None:
    graph, _, _ = credit.from_columns(group=[0], trace=["a"], reward=[0.0], events=4)
    with pytest.raises(credit.CreditError, match=message):
        event_keys(graph, by, evidence)


def test_an_unknown_name_is_a_column_whatever_it_resembles() -> None:
    assert column_of_key("task,trun") == ("task,key", "trun") and column_of_key("mykey") == ("key", "mykey")
    for by in ("task,trun,shift", "key,mykey", "task,"):
        with pytest.raises(credit.CreditError, match="by names"):
            column_of_key(by)


def test_what_a_key_says_of_scope_bias_and_evidence() -> None:
    assert [scope_of_key(by) for by in (None, "agent_name", "agent", "episode,agent")] == [
        *("group", "group", "batch", "trace"),
    ]
    assert [decided_by(by)[0] for by in ("task,step", "task,length,mine", "task,mine", np.zeros(1, int))] == [
        *("before", "by the action", "by the log", "by the log"),
    ]
    assert evidence_of_key("task,prefix,key") == ["context", "node", "key"]
    assert [key_of(by).unit for by in (None, "role_name", "task,agent,role", "agent,turn", "task,turn,step")] == [
        *("trace", "role", "agent", "turn", "event"),
    ]
