"""Micro-orchestrations: their truths by another road, and that between them they hold what they promise."""

from __future__ import annotations

import itertools
import math

import jax
import numpy as np
import pytest

from credit.bench.bias import x64
from graphs.event_graph import EventType
from graphs.invariants import validate
from graphs.padding import unpad
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import History, Micro

WORLDS = [pytest.param(world, id=name) for name, world in MICRO.items()]


def expected_rest(world: Micro, history: History) -> float:
    """Expected reward from a history on, steps and outcome, by recursion; the step of the history itself is past."""
    decision = world.decide(history)
    if decision is None:
        return sum(p * reward for p, reward in world.outcome(history))
    state = list(world.states).index(history)
    return sum(
        world.policy[state, c] * (world.earned((*history, c)) + expected_rest(world, (*history, c)))
        for c in range(decision.choices)
    )


@pytest.mark.parametrize("world", WORLDS)
def test_values_and_increments_are_those_of_the_recursion(world: Micro) -> None:
    assert world.probabilities().sum() == pytest.approx(1, abs=1e-12)
    for state, (history, decision) in enumerate(world.states.items()):
        assert world.v[state] == pytest.approx(expected_rest(world, history), abs=1e-12)
        for c in range(decision.choices):
            after = (*history, c)
            assert world.q[state, c] == pytest.approx(world.earned(after) + expected_rest(world, after), abs=1e-12)
        assert world.policy[state] @ world.increments[state] == pytest.approx(0, abs=1e-12)
    # Increments and luck make up the return of every trace.
    where = world.state >= 0
    explained = world.v[0] + np.sum(np.where(where, world.increments[world.state, world.choice], 0), axis=1)
    luck = world.total - explained
    ends = [end for end, _, _ in world.ends]
    for end in set(ends):
        rows = [i for i, other in enumerate(ends) if other == end]
        assert world.probabilities()[rows] @ luck[rows] == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("world", WORLDS)
def test_the_gradient_is_the_slope_of_the_expected_return(world: Micro) -> None:
    logits = np.where(np.isfinite(world.logits), world.logits, 0.0)
    with x64():
        mean, slope = jax.jit(jax.value_and_grad(world.mean))(logits, world.total)
        assert float(mean) == pytest.approx(world.v[0], abs=1e-12)
    np.testing.assert_allclose(world.gradient(), slope, atol=1e-12)
    # The policy-gradient theorem: every state's visits times π times Q − V.
    visits = np.array([sum(p for p, (end, _, _) in zip(world.probabilities(), world.ends, strict=True)
                           if end[: len(h)] == h) for h in world.states])  # fmt: skip
    np.testing.assert_allclose(slope, visits[:, None] * world.policy * world.increments, atol=1e-12)


@pytest.mark.parametrize("world", WORLDS)
def test_shapley_values_are_means_over_orders(world: Micro) -> None:
    shares = dict.fromkeys(world.agents, 0.0)
    for order in itertools.permutations(world.agents):
        for i, agent in enumerate(order):
            before = frozenset(order[:i])
            shares[agent] += (world.worth(before | {agent}) - world.worth(before)) / math.factorial(len(order))
    assert world.shapley() == pytest.approx(shares, abs=1e-12)
    assert sum(shares.values()) == pytest.approx(world.v[0] - world.worth(frozenset()), abs=1e-12)


@pytest.mark.parametrize("world", WORLDS)
def test_replaced_decisions_are_run_again_or_kept(world: Micro) -> None:
    for trace, (end, _, _) in enumerate(world.ends):
        for at in range(len(end)):
            replaced = (*end[:at], 0)
            past = sum(world.earned(end[: i + 1]) for i in range(at)) + world.earned(replaced)
            mean = sum(p * reward for p, reward in world.rest(replaced))
            assert mean == pytest.approx(past + expected_rest(world, replaced), abs=1e-9)
            if at == len(end) - 1 and replaced not in world.states:  # nothing comes later: both are the same
                kept, again = sorted(world.frozen(trace, at)), sorted(world.rest(replaced))
                np.testing.assert_allclose(kept, again, atol=1e-9)
            for lottery in (world.frozen(trace, at), world.greedy()):
                assert sum(p for p, _ in lottery) == pytest.approx(1, abs=1e-12)


def test_what_is_kept_is_what_each_agent_did_later() -> None:
    stop = MICRO["stop-rewards"]
    trace = [end for end, _, _ in stop.ends].index((1, 1, 1, 0))
    # Another first answer: asked again, and the second answer as it was.
    assert stop.frozen(trace, 1) == stop.ended((1, 0, 1, 0))
    # Not asked at all: nothing comes later.
    assert stop.frozen(trace, 0) == stop.ended((0,))
    spawn = MICRO["spawn-and"]
    trace = [end for end, _, _ in spawn.ends].index((1, 1, 1, 1))
    # Had the lead not spawned, it would have worked alone, and it repeats its one later choice there.
    assert spawn.frozen(trace, 0) == spawn.ended((0, 1))


def test_between_them_the_worlds_hold_every_kind_of_decision() -> None:
    decisions = [d for world in MICRO.values() for d in world.states.values()]
    assert {d.type for d in decisions} == {
        EventType.ORCHESTRATOR_DECISION, EventType.SPAWN, EventType.MESSAGE, EventType.AGGREGATE, EventType.STOP,
    }  # fmt: skip
    assert {d.choices for d in decisions} == {2, 3}
    acting = {
        name: {len({list(w.states.values())[s].agent for s in row[row >= 0]}) for row in w.state}
        for name, w in MICRO.items()
    }
    assert acting == {
        "hire-additive": {2, 3, 4}, "spawn-and": {1, 3}, "delegate-luck": {2}, "stop-rewards": {1, 2}, "relay-and": {3},
    }  # fmt: skip
    for world in MICRO.values():
        assert world.total.min() >= 0 and world.total.max() <= 1 + 1e-12
        assert sum(p * reward for p, reward in world.greedy()) > 0


@pytest.mark.parametrize("world", WORLDS)
def test_its_log_is_a_graph(world: Micro) -> None:
    traces = world.batch()
    validate(traces.graph)
    graph = unpad(traces.graph)
    assert graph.num_traces == len(world.ends) and not traces.problems
    np.testing.assert_array_equal(np.bincount(graph.trace_ids), (world.state >= 0).sum(1))
    np.testing.assert_allclose(traces.reward[: graph.num_traces], world.outcomes, atol=1e-7)
    per_turn = np.bincount(graph.turn_ids)
    assert per_turn.max() == (2 if world.name == "spawn-and" else 1)  # the lead decides to work alone, and works
