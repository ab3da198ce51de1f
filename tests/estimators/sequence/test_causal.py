"""Returns along the causal graph: means over walks, written as a recursion over each event's successors."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from credit.laws.trial_batches import SIZES, Batch, padded, ragged
from estimators import REASONS
from estimators.sequence.causal import walks

GAMMA, LAMBDA = 0.9, 0.7


def branching(seed: int) -> Batch:
    """A ragged batch whose events lead to any number of later ones of their trace; some edges stand twice."""
    batch, rng = ragged(seed, {"value": "event"}), np.random.default_rng(seed)
    trace = batch.graph.trace_ids
    pairs = [(a, b) for a in range(len(trace)) for b in range(a + 1, len(trace)) if trace[a] == trace[b]]
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[: SIZES.edges // 2] if rng.random() < 0.6]
    edges = np.array([*chosen, *chosen[::7]], np.int32)
    fields = {"edge_type": np.ones(len(edges), np.int32), "edge_mask": np.ones(len(edges), bool)}
    graph = dataclasses.replace(batch.graph, senders=edges[:, 0], receivers=edges[:, 1], **fields)
    return dataclasses.replace(batch, graph=graph)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def by_recursion(batch: Batch) -> dict[int, tuple[float, float]]:
    """Return and advantage of each action by its place; NaN where a value on the way is missing."""
    graph, value = batch.graph, batch.evidence["value"].astype(float)
    step, after = batch.event_reward.astype(float), {e: set() for e in range(graph.num_events)}
    for a, b in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        after[a].add(b)
    acts = [bool(x) for x in graph.action_mask]

    def ahead(e: int, number: Callable[[int], float]) -> float:
        """The mean over walks from an event of a number at the next action; 0 where a walk ends before."""
        return mean([number(c) if acts[c] else ahead(c, number) for c in after[e]])

    @functools.cache
    def earned(e: int) -> float:
        end = 0.0 if after[e] else float(batch.reward[graph.trace_ids[e]])
        return step[e] + end + mean([0.0 if acts[c] else earned(c) for c in after[e]])

    @functools.cache
    def total(e: int) -> float:
        return earned(e) + GAMMA * ahead(e, total)

    @functools.cache
    def advantage(e: int) -> float:
        delta = earned(e) + GAMMA * ahead(e, lambda c: value[c]) - value[e]
        return delta + GAMMA * LAMBDA * ahead(e, advantage)

    out = {}
    for t in range(graph.num_traces):
        events = np.flatnonzero(graph.trace_ids == t).tolist()
        if np.isfinite(batch.reward[t]) and (len(events) < 2 or any(after[e] for e in events)):
            out |= {e: (total(e), advantage(e)) for e in events if acts[e]}
    return out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_against_a_recursion_over_successors(seed: int) -> None:
    batch = branching(seed)
    at, expected = padded(batch, SIZES, poison=True), by_recursion(batch)
    returns = credit.discounted_return(
        at.graph, at.reward, event_reward=at.event_reward, discount=GAMMA, along="causal"
    )
    assert np.flatnonzero(returns.valid).tolist() == sorted(expected)
    for e, (total, _) in expected.items():
        assert float(returns.credit[e]) == pytest.approx(total, abs=2e-6)
    options = {"event_reward": at.event_reward, "discount": GAMMA, "lambda_": LAMBDA, "along": "causal"}
    result = credit.gae(at.graph, at.reward, value=at.evidence["value"], **options)
    known = {e: a for e, (_, a) in expected.items() if not np.isnan(a)}
    assert np.flatnonzero(result.valid).tolist() == sorted(known) and len(known) < len(expected)
    for e, a in known.items():
        assert float(result.advantage[e]) == pytest.approx(a, abs=2e-6)


@pytest.mark.study
def test_where_each_event_leads_to_the_next_it_is_the_trace() -> None:
    at = padded(ragged(0, {"value": "event"}), SIZES)
    options = {"event_reward": at.event_reward, "discount": GAMMA, "lambda_": LAMBDA}
    along = {
        kind: credit.gae(at.graph, at.reward, value=at.evidence["value"], along=kind, **options)
        for kind in ("trace", "causal")
    }
    np.testing.assert_array_equal(along["causal"].reason, along["trace"].reason)
    np.testing.assert_allclose(along["causal"].advantage, along["trace"].advantage, atol=2e-6)


@pytest.mark.slow
def test_work_side_by_side_neither_discounts_nor_counts_what_others_earn() -> None:
    """A planner starts two workers, a summary needs both: two steps after the planner, and not three."""
    graph, reward, rows = credit.from_columns(
        group=[0] * 4, trace=[0] * 4, agent=["planner", "left", "right", "summary"], reward=[1.0] * 4,
        event_reward=[0.0, 0.5, 0.25, 0.0],
    )  # fmt: skip
    e = rows.event
    pairs = [(0, 1), (0, 2), (1, 3), (2, 3)]
    fields = {name: np.asarray(getattr(graph, name)).copy() for name in ("senders", "receivers", "edge_mask")}
    for k, (a, b) in enumerate(pairs):
        fields["senders"][k], fields["receivers"][k], fields["edge_mask"][k] = e[a], e[b], True
    graph = dataclasses.replace(graph, **fields)
    result = credit.discounted_return(graph, reward, event_reward=rows.event_reward, discount=0.5, along="causal")
    assert np.asarray(rows.gather(result.credit)).tolist() == [0.25 + 0.5 * 0.375, 1.0, 0.75, 1.0]


@pytest.mark.slow
def test_a_trace_without_edges_is_refused_unless_it_is_one_event() -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 3, trace=[0, 0, 1], reward=[1.0, 1.0, 0.5])
    result = credit.discounted_return(graph, reward, along="causal")
    assert np.asarray(rows.gather(result.valid)).tolist() == [False, False, True]
    assert REASONS[int(rows.gather(result.reason)[0])].startswith("the log lacks the evidence")


@pytest.mark.study
def test_derivatives_are_those_of_differences() -> None:
    batch = padded(branching(0), SIZES)
    value, reward = np.nan_to_num(batch.evidence["value"]), np.nan_to_num(batch.reward)

    @jax.jit
    def loss(reward: jax.Array, value: jax.Array, discount: jax.Array) -> jax.Array:
        graph = batch.graph
        paths = walks(graph, graph.event_mask & graph.action_mask)
        earned = paths.arriving(jnp.zeros_like(value), reward[graph.trace_ids])
        delta = earned + discount * paths.following(value) - value
        return jnp.sum(jnp.sin(paths.backward(jnp.full_like(delta, 1) * discount, delta)))

    given = [jnp.asarray(x, jnp.float32) for x in (reward, value, 0.9)]
    slopes = jax.jit(jax.grad(loss, (0, 1, 2)))(*given)
    rng = np.random.default_rng(0)
    for i, slope in enumerate(slopes):
        way = jnp.asarray(rng.normal(size=np.shape(slope)), jnp.float32)
        ends = [loss(*[x + s * 1e-2 * way if j == i else x for j, x in enumerate(given)]) for s in (1, -1)]
        assert float(ends[0] - ends[1]) / 2e-2 == pytest.approx(float(jnp.sum(slope * way)), rel=2e-2)
