"""Walks along causes: exact whether many events are taken together or one by one, and linear in a long chain."""

from __future__ import annotations

import json
import tracemalloc
import unittest.mock
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from linear_time import assert_linear, seconds

from estimators.composition.nesting import prior_variance
from estimators.shapley.structured import subtree_sizes
from graphs.errors import CreditError
from graphs.logs import read
from graphs.structure.edge_order import EdgeOrder
from graphs.structure.forest import ancestors, descendants, spawn_forest
from graphs.structure.prefix import agent_births
from graphs.structure.topology import _spawned


@pytest.mark.parametrize("compiled_from", [0, 1 << 30])
@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 65])
def test_longest_paths_and_bits_are_those_of_a_slow_reading(
    width: int, kind: type, compiled_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphs.structure.edge_order.COMPILED", compiled_from)
    rng = np.random.default_rng(width)
    num = 40 * width
    senders = rng.integers(0, num - width, 3 * num)
    receivers = rng.integers(senders + 1, np.minimum(senders + 2 * width, num - 1) + 1)
    weight: np.ndarray = (10 * rng.random(num)).astype(kind)
    causes: list[list[int]] = [[] for _ in range(num)]
    for s, r in zip(senders, receivers, strict=True):
        causes[r].append(s)
    before, total = np.zeros_like(weight), weight.copy()
    start = (rng.integers(0, 2**32, num) * (rng.random(num) < 0.1)).astype(np.uint32)
    bits = start.copy()
    for event in range(num):
        before[event] = max(total[causes[event]], default=kind(0))
        total[event] = before[event] + weight[event]
        bits[event] |= np.bitwise_or.reduce(bits[causes[event]], initial=np.uint32(0))
    edges = EdgeOrder(senders, receivers)
    found, spread = edges.longest(weight), edges.spread(start)
    np.testing.assert_array_equal(found, (total, before))
    np.testing.assert_array_equal(spread, bits)
    assert found[0].dtype == weight.dtype and spread.dtype == np.uint32
    with pytest.raises(CreditError, match="cycle"):
        EdgeOrder(np.append(receivers, senders), np.append(senders, receivers))


@pytest.mark.study
def test_walks_along_a_long_chain_are_linear(tmp_path: Path) -> None:
    """A round for each event took 3 seconds for paths, and the square of the chain for descendants."""
    events = 50_000
    senders, receivers, ones = np.arange(events - 1), np.arange(1, events), np.ones(events, np.int64)
    assert EdgeOrder(senders, receivers).longest(ones)[0][-1] == events
    # A plain loop takes 0.3 microseconds an event; a round of NumPy takes 60.
    assert seconds(lambda: EdgeOrder(senders, receivers).longest(ones)) < 30 * seconds(lambda: loop(events))
    listed = [{"id": f"e{i}", "type": "message", "agent": "a"} for i in range(events)]
    edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "causal"} for i in range(events - 1)]
    log = {"trace_id": "t", "task_id": "q", "events": listed, "edges": edges, "rewards": {"team": 1.0}}
    (tmp_path / "x.json").write_text(json.dumps(log))
    graph = read(tmp_path).graph
    assert descendants(graph, 0).sum() == ancestors(graph, events - 1).sum() == events - 1
    walks = seconds(lambda: (descendants(graph, 0), ancestors(graph, events - 1)), runs=1)
    assert walks < 100 * seconds(lambda: loop(events))


def loop(events: int) -> list[int]:
    """Longest paths along a chain, one event after the other."""
    total = [1] * events
    for event in range(1, events):
        total[event] = max(total[event], total[event - 1] + 1)
    return total


def chain(agents: int) -> Any:
    """A graph of one trace whose agents spawned one another, without what a walk along spawns does not read."""
    one = np.ones(agents, bool)
    none = np.zeros(0, np.int32)
    plain = {"senders": none, "receivers": none, "edge_mask": none.astype(bool), "edge_type": none}
    above = np.maximum(np.arange(agents, dtype=np.int32) - 1, 0)
    here = np.arange(agents, dtype=np.int32)
    shape = {"num_traces": 1, "num_events": agents, "num_agents": agents, "agent_mask": one, "event_mask": one}
    of_trace = {"agent_trace": 0 * here, "trace_ids": 0 * here, "event_type": 0 * here}
    return SimpleNamespace(**shape, **of_trace, **plain, agent_parent=above, agent_ids=here, turn_ids=here)


def test_births_along_a_chain_of_agents_take_no_search_for_each_depth() -> None:
    graph = chain(5_000)
    with unittest.mock.patch("numpy.flatnonzero", wraps=np.flatnonzero) as searches:
        assert agent_births(graph).tolist() == list(range(5_000))
    assert searches.call_count < 10


def test_ancestors_of_pairs_take_a_round_for_each_doubling() -> None:
    """A round for each spawn took pairs times depth: 3 seconds for 20,000 pairs in a chain as deep."""
    agents = 20_000
    rng = np.random.default_rng(0)

    def prepare(agents: int) -> Callable[[], object]:
        graph = chain(agents)
        forest, pairs = spawn_forest(graph), rng.integers(0, agents, (2, agents))
        return lambda: _spawned(graph, forest, *pairs)

    assert_linear(prepare, agents)
    graph = chain(agents)
    forest = spawn_forest(graph)
    above, below = rng.integers(0, agents, (2, agents))
    np.testing.assert_array_equal(_spawned(graph, forest, above, below), above < below)
    here = np.arange(agents, dtype=np.int32)
    graph.agent_parent = np.where(here < 2, here, here - 2)  # two chains: of even and of odd agents
    related = (above < below) & ((above - below) % 2 == 0)
    np.testing.assert_array_equal(_spawned(graph, spawn_forest(graph), above, below), related)


@pytest.mark.study
def test_prior_variance_of_a_deep_team_needs_no_table_of_agents_by_depth() -> None:
    """A row of all agents for each depth took 100 megabytes for 5,000 agents in a chain."""
    agents = 5_000
    graph = chain(agents)
    tracemalloc.start()
    variance = prior_variance(graph, np.ones(agents, bool), 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6
    np.testing.assert_allclose(
        variance[:20], 0.5 ** np.arange(1, 21)
    )  # half for an agent's own work, half for the next
    assert len(variance) == agents


def test_sizes_of_subtrees_take_no_search_for_each_depth() -> None:
    with unittest.mock.patch("numpy.flatnonzero", wraps=np.flatnonzero) as searches:
        sizes = subtree_sizes(np.maximum(np.arange(5_000) - 1, 0))
    assert sizes.tolist() == list(range(5_000, 0, -1))
    assert searches.call_count < 10
