"""Ragged batches meet few shapes, and padding does not cost more than it saves."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import jax
import numpy as np
import pytest

import credit
import estimators
from estimators.group import _compared
from graphs import Sizes, bucket, pad
from graphs.event_graph import EdgeType, EventGraph

BATCHES = 200
COMPILATIONS, WASTE = 6, 0.60
Kind = Callable[[np.random.Generator, int], Sizes]


def batch(rng: np.random.Generator, events: int, traces: int, agents: int, edges: int) -> EventGraph:
    """A graph of these sizes; ids are drawn, so that every trace and agent need not occur."""
    trace_ids = np.sort(rng.integers(0, traces, events)).astype(np.int32)
    agent_trace = np.sort(np.concatenate([np.arange(traces), rng.integers(0, traces, agents - traces)])).astype(
        np.int32
    )
    senders = rng.integers(0, events - 1, edges).astype(np.int32)
    return EventGraph(
        event_type=np.full(events, int(credit.EventType.MESSAGE), np.int32),
        action_mask=np.ones(events, bool),
        event_mask=np.ones(events, bool),
        time=np.full(events, np.nan, np.float32),
        trace_ids=trace_ids,
        agent_ids=np.searchsorted(agent_trace, trace_ids).astype(np.int32),
        turn_ids=np.arange(events, dtype=np.int32),
        senders=senders,
        receivers=senders + np.int32(1),
        edge_type=np.full(edges, int(EdgeType.CAUSAL), np.int32),
        edge_mask=np.ones(edges, bool),
        agent_name_ids=(np.arange(agents) % 5).astype(np.int32),
        agent_role_ids=(np.arange(agents) % 2).astype(np.int32),
        agent_parent=np.arange(agents, dtype=np.int32),
        agent_trace=agent_trace,
        agent_mask=np.ones(agents, bool),
        group_ids=(np.arange(traces) // 4).astype(np.int32),
        trace_mask=np.ones(traces, bool),
    )


def teams(rng: np.random.Generator, events: int) -> Sizes:
    """Long traces of several agents, one to three edges an event: what logs of teams look like."""
    traces = int(rng.integers(2, max(3, events // 8)))
    agents = int(traces * rng.uniform(1, 4))
    return Sizes(events, int(events * rng.uniform(0.5, 2.0)), max(traces, min(agents, events // 2)), traces)


def rows(rng: np.random.Generator, events: int) -> Sizes:
    """A trainer's rows: no edges, a few rows a trace, up to one agent instance a row, or single-turn traces."""
    traces = events if rng.random() < 0.3 else int(events / rng.uniform(1.5, 6.0))
    return Sizes(events, 0, max(traces, int(events * rng.uniform(0.3, 1.0))), traces)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", [teams, rows], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("method", ["rloo", pytest.param("dr_mas", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_ragged_batches_compile_a_bounded_number_of_times(kind: Kind, method: str) -> None:
    rng = np.random.default_rng(7)
    traced: list[tuple[int, ...]] = []

    @jax.jit
    def compiled(graph: EventGraph, reward: jax.Array) -> jax.Array:
        traced.append((graph.num_events, graph.num_edges, graph.num_agents, graph.num_traces))
        return credit.METHODS[method](graph, reward).advantage

    counts = np.exp(rng.uniform(np.log(250), np.log(4000), BATCHES)).astype(int)
    counts[:2] = 250, 4000
    real = padded = 0
    for count in counts:
        graph = pad(batch(rng, *_in_order(kind(rng, int(count)))))
        reward = rng.normal(size=graph.num_traces).astype(np.float32)
        assert np.isfinite(compiled(graph, reward)).all()
        real, padded = real + int(count), padded + graph.num_events
    waste = (padded - real) / padded
    told = f"{len(traced)} compilations of {method} for {BATCHES} batches, {waste:.1%} of the events padding: {traced}"
    assert len(traced) <= COMPILATIONS, told
    assert waste <= WASTE, told


def _in_order(size: Sizes) -> tuple[int, int, int, int]:
    return size.events, size.traces, size.agents, size.edges


def shapes(kind: Kind, seed: int) -> set[Sizes]:
    rng = np.random.default_rng(seed)
    counts = np.exp(rng.uniform(np.log(250), np.log(4000), BATCHES)).astype(int)
    return {bucket(kind(rng, int(count))) for count in counts}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [teams, rows], ids=lambda kind: kind.__name__)
def test_batches_meet_one_shape_for_each_power_of_two(kind: Kind, seed: int) -> None:
    found = shapes(kind, seed)
    assert len(found) <= COMPILATIONS, f"{len(found)} shapes: {sorted(found)}"


def test_rows_read_by_columns_keep_to_the_same_shapes() -> None:
    rng = np.random.default_rng(3)
    found = set()
    for _ in range(40):
        count = int(np.exp(rng.uniform(np.log(250), np.log(4000))))
        trace = rng.integers(0, rows(rng, count).traces, count)
        graph, _, _ = credit.from_columns(group=trace // 4, trace=trace, agent=rng.integers(0, 5, count), reward=trace)
        found.add((graph.num_events, graph.num_edges, graph.num_agents, graph.num_traces))
    assert len(found) <= COMPILATIONS, f"{len(found)} shapes: {sorted(found)}"


def test_options_that_nobody_sets_are_constants_of_the_kernel() -> None:
    """Numbers that equalled their defaults were passed all the same, and copied to the device at every call."""
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])

    def numbers(**options: float) -> int:
        program = jax.make_jaxpr(lambda r: estimators.group_relative(graph, r, **options).advantage)(reward)
        calls = [call for call in program.eqns if "jit" in call.primitive.name]
        assert calls
        return sum(value.aval.shape == () for value in calls[0].invars)

    assert numbers() == 0 and numbers(eps=0.5, ddof=0) == 2
    public, kernel = (inspect.signature(function).parameters for function in (estimators.group_relative, _compared))
    assert all(kernel[name].default == public[name].default for name in ("eps", "ddof", "filter_ratio"))
