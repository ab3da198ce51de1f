"""Each invariant of an event graph, broken once, is named; what readers build breaks none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphs.event_graph import EventGraph
from graphs.invariants import INVARIANTS, InvariantError, validate
from graphs.traces.assembling import assemble
from graphs.traces.record import TraceRecord

Records = Callable[..., list[TraceRecord]]


@pytest.fixture
def graph(random_records: Records) -> EventGraph:
    return assemble(random_records(7)).graph


def changed(graph: EventGraph, **rows: dict[int, Any]) -> EventGraph:
    """A copy with single entries overwritten."""
    arrays = {}
    for name, entries in rows.items():
        array = getattr(graph, name).copy()
        for row, value in entries.items():
            array[row] = value
        arrays[name] = array
    return dataclasses.replace(graph, **arrays)


def first_of(graph: EventGraph, trace: int) -> int:
    return int(np.flatnonzero(graph.event_mask & (graph.trace_ids == trace))[0])


BROKEN: dict[str, tuple[str, Callable[[EventGraph], EventGraph]]] = {
    "events of another length": ("shape", lambda g: dataclasses.replace(g, turn_ids=g.turn_ids[1:])),
    "a matrix": ("shape", lambda g: dataclasses.replace(g, group_ids=g.group_ids[None])),
    "a mask of numbers": ("dtype", lambda g: dataclasses.replace(g, edge_mask=g.edge_mask.astype(np.float32))),
    "ids of floats": ("dtype", lambda g: dataclasses.replace(g, agent_ids=g.agent_ids.astype(np.float32))),
    "integer time": ("dtype", lambda g: dataclasses.replace(g, time=np.zeros(g.num_events, np.int32))),
    "an agent beyond the array": ("id-range", lambda g: changed(g, agent_ids={0: g.num_agents})),
    "a negative name": ("id-range", lambda g: changed(g, agent_name_ids={0: -1})),
    "an id out of range in padding": ("id-range", lambda g: changed(g, senders={-1: g.num_events})),
    "an unknown type": ("unknown-type", lambda g: changed(g, event_type={0: 11})),
    "an unknown edge type": ("unknown-type", lambda g: changed(g, edge_type={0: 8})),
    "a hole": ("packed", lambda g: changed(g, trace_mask={0: False}, group_ids={0: 0})),
    "padding with a type": ("padding", lambda g: changed(g, event_type={-1: 3})),
    "padding that acts": ("padding", lambda g: changed(g, action_mask={-1: True})),
    "a padded edge that runs": ("padding", lambda g: changed(g, receivers={-1: 1})),
    "an event of a padded agent": ("masked-reference", lambda g: changed(g, agent_ids={0: g.num_agents - 1})),
    "an edge into padding": ("masked-reference", lambda g: changed(g, receivers={0: g.num_events - 1})),
    "traces mixed up": ("trace-order", lambda g: changed(g, trace_ids={0: 1})),
    "an event of another trace's agent": (
        "agent-trace",
        lambda g: changed(g, agent_ids={0: int(g.agent_ids[first_of(g, 1)])}),
    ),
    "an edge backwards": (
        "edge-order",
        lambda g: changed(g, senders={0: int(g.receivers[0])}, receivers={0: int(g.senders[0])}),
    ),
    "an edge onto itself": ("edge-order", lambda g: changed(g, receivers={0: int(g.senders[0])})),
    "an edge between traces": ("edge-trace", lambda g: changed(g, receivers={0: first_of(g, 3)})),
    "a turn of two agents": ("turn-agent", lambda g: changed(g, turn_ids={0: int(g.turn_ids[first_of(g, 1)])})),
    "a parent in another trace": (
        "parent-trace",
        lambda g: changed(g, agent_parent={0: int(np.flatnonzero(g.agent_trace == 1)[0])}),
    ),
    "parents in a circle": ("parent-cycle", lambda g: changed(g, agent_parent={0: 1, 1: 0})),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_invariant_is_named(graph: EventGraph, case: str) -> None:
    invariant, break_it = BROKEN[case]
    with pytest.raises(InvariantError, match=rf"\[{invariant}\]$") as error:
        validate(break_it(graph))
    assert error.value.invariant == invariant
    assert error.value.field in vars(graph)


def test_every_invariant_has_a_case() -> None:
    assert {invariant for invariant, _ in BROKEN.values()} == set(INVARIANTS)


def test_graphs_of_readers_are_valid(random_records: Records) -> None:
    for seed in range(20):
        validate(assemble(random_records(seed)).graph)


def test_a_cycle_points_at_a_member_of_it(random_records: Records) -> None:
    graph = assemble(random_records(7)).graph
    members = np.flatnonzero(graph.agent_mask & (graph.agent_trace == 0)).tolist()
    assert len(members) >= 3
    circle = changed(graph, agent_parent={members[0]: members[1], members[1]: members[2], members[2]: members[1]})
    with pytest.raises(InvariantError) as error:
        validate(circle)
    assert error.value.row in members[1:3]
