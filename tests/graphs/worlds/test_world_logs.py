"""Logs that a world writes: their edges, times and evidence, and that they read back as the same graph."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import jax
import numpy as np
import pytest

from graphs.event_graph import EdgeType, EventType
from graphs.logs import read
from graphs.traces.record import TraceRecord, check
from graphs.worlds import Episodes, World
from graphs.writers import native

from .planned_oracle import good_probability, plan_probability, qualities, start_value


@pytest.fixture(scope="module")
def logged() -> tuple[World, Episodes, list[TraceRecord]]:
    world = World()
    episodes = world.sample(jax.random.key(0), 80)
    return world, episodes, world.records(episodes, world.increments(episodes))


def expected_edges(record: TraceRecord) -> set[tuple[int, int, int]]:
    """The edges of the table in docs/data-model.md, found by looking through the whole log for each."""
    n = len(record.ids)
    sender = record.columns["to"] + [None] * n

    def next_call(agent: str, after: int) -> int | None:
        return next((j for j in range(after + 1, n) if record.agents[j] == agent and record.actions[j]), None)

    def last_call(agent: str, before: int) -> int:
        return max(j for j in range(before) if record.agents[j] == agent and record.actions[j])

    edges: list[tuple[int | None, int | None, EdgeType]] = []
    for i in range(n):
        agent, kind = record.agents[i], record.types[i]
        if record.actions[i]:
            edges.append((i, next_call(agent, i), EdgeType.TEMPORAL))
        elif kind == EventType.SPAWN:
            first = next(j for j in range(i, n) if record.agents[j] == sender[i])
            edges += [(last_call(agent, i), i, EdgeType.CAUSAL), (i, first, EdgeType.SPAWN)]
        elif kind == EventType.TOOL_CALL:
            result = next(j for j in range(i, n) if record.agents[j] == agent and record.types[j] == 5)
            edges += [(last_call(agent, i), i, EdgeType.TOOL_DEPENDENCY), (i, result, EdgeType.RETURN)]
        elif kind == EventType.TOOL_RESULT:
            edges.append((i, next_call(agent, i), EdgeType.CAUSAL))
        elif kind == EventType.RETURN:
            edges += [(last_call(agent, i), i, EdgeType.CAUSAL), (i, next_call("lead", i), EdgeType.RETURN)]
        elif kind == EventType.MESSAGE:
            edges += [(last_call(agent, i), i, EdgeType.CAUSAL), (i, next_call(sender[i], i), EdgeType.MESSAGE)]
    return {(a, b, int(k)) for a, b, k in edges if a is not None and b is not None}


@pytest.mark.study
def test_logs_have_the_edges_and_actions_of_the_data_model(
    logged: tuple[World, Episodes, list[TraceRecord]],
) -> None:
    calls = {EventType.ORCHESTRATOR_DECISION, EventType.AGGREGATE, EventType.STOP, EventType.MESSAGE}
    effects = {EventType.SPAWN, EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.RETURN, EventType.MESSAGE}
    messages = 0
    for record in logged[2]:
        assert check(record) is record  # nothing refused, nothing put into another order
        edges = list(zip(record.senders, record.receivers, record.edge_types, strict=True))
        assert len(edges) == len(set(edges))
        assert set(edges) == expected_edges(record)
        for kind, action in zip(record.types, record.actions, strict=True):
            assert kind in (calls if action else effects)
            messages += kind == EventType.MESSAGE and not action
    assert messages > 0


@pytest.mark.slow
def test_workers_run_in_parallel_at_times_that_nanoseconds_keep(
    logged: tuple[World, Episodes, list[TraceRecord]],
) -> None:
    interleaved = 0
    for record in logged[2]:
        times = np.array(record.times)
        assert np.all(np.diff(times) > 0)
        nanoseconds = [int(t * 512) * 1_953_125 for t in record.times]
        assert [ns / 10**9 for ns in nanoseconds] == record.times
        workers = [a for a in record.agents if a != "lead"]
        interleaved += len([1 for a, b in itertools.pairwise(workers) if a != b]) >= len(set(workers))
    assert interleaved > len(logged[2]) / 2


@pytest.mark.slow
def test_logs_carry_evidence_that_is_true(logged: tuple[World, Episodes, list[TraceRecord]]) -> None:
    world, episodes, records = logged
    for row, record in enumerate(records[:8]):
        columns = {name: column + [None] * (len(record.ids) - len(column)) for name, column in record.columns.items()}
        task, size = int(episodes.task[row]), int(episodes.size[row])
        actions = qualities(world, episodes, row, record)
        plan = actions[0][2]
        expected = [plan_probability(world, task, size, plan)]
        for agent, call, good in actions[1:-1]:
            p = good_probability(world, task, plan, agent, call)
            expected.append(p if good else 1 - p)
        given = [p for p in columns["propensity"] if p is not None]
        np.testing.assert_allclose(given, expected, rtol=1e-12)
        assert columns["propensity"][-1] is None  # the stop was certain
        for i, action in enumerate(record.actions):
            assert (columns["tokens"][i] is not None) == action
        assert sum(t for t in columns["tokens"] if t is not None) == record.costs["tokens"]
        assert sorted(set(columns["stage"])) == [0, 1]
        assert columns["value"][0] == pytest.approx(start_value(world, task), abs=1e-6)


def test_a_batch_has_several_tasks_groups_of_eight_and_both_outcomes(
    logged: tuple[World, Episodes, list[TraceRecord]],
) -> None:
    world, episodes, records = logged
    traces = world.traces(episodes)
    assert traces.sizes.traces == 80
    assert set(np.asarray(traces.reward)[:80]) == {0.0, 1.0}
    _, counts = np.unique([r.group_id for r in records], return_counts=True)
    assert set(counts) == {8}
    assert len(set(np.asarray(episodes.task).tolist())) == len(world.difficulties)
    assert set(np.asarray(episodes.size).tolist()) == {1, 2, 3, 4}
    greedy = traces.evidence["greedy_reward"]
    assert greedy.mask[:80].all()
    groups = np.asarray(episodes.group)
    assert all(len(set(greedy.array[:80][groups == g])) == 1 for g in range(10))


def test_writing_and_reading_gives_the_same_graph(tmp_path: Path) -> None:
    world = World()
    episodes = world.sample(jax.random.key(4), 80)
    traces = world.traces(episodes, world.increments(episodes))
    native.write(traces, tmp_path / "traces.jsonl")
    again = read(tmp_path / "traces.jsonl")
    for field in dataclasses.fields(traces.graph):
        np.testing.assert_array_equal(getattr(again.graph, field.name), getattr(traces.graph, field.name))
    np.testing.assert_array_equal(again.reward, traces.reward)
    assert set(again.evidence) == set(traces.evidence)
    for name, evidence in traces.evidence.items():
        np.testing.assert_array_equal(again.evidence[name].array, evidence.array)
        np.testing.assert_array_equal(again.evidence[name].mask, evidence.mask)
