"""Fitted coefficients against their definition in plain loops over traces and families, and how their work grows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import pytest

import credit
from estimators.composition.coefficients import ENOUGH_TRACES, fitted_coefficients
from estimators.composition.control import control_advantage
from tests.helpers.linear_time import assert_linear

TRACES = 240
SOURCES = 2


class Batch(NamedTuple):
    """What `fitted_coefficients` takes."""

    graph: credit.EventGraph
    outcome: np.ndarray
    rows: np.ndarray
    target: np.ndarray
    others: np.ndarray


def drawn(seed: int, padded: int = 256, order: np.ndarray | None = None, groups: np.ndarray | None = None) -> Batch:
    """240 traces in groups of unequal size and spread; replays, equal and missing rewards as the seed has them.

    Traces stand in `order`, and groups are named by `groups`.
    """
    rng = np.random.default_rng(seed)
    most = (120, 60, 20, 4)[seed % 4]
    group = rng.integers(0, most, TRACES)
    group[:: 8 if seed % 3 else TRACES] = most + np.arange(len(group[:: 8 if seed % 3 else TRACES]))  # one trace each
    size = np.exp((0.5, 2.0, 8.0)[seed % 3] * rng.normal(size=group.max() + 1))
    size[rng.random(len(size)) < 0.2] = 0  # no spread
    reward = rng.normal(size=TRACES) * size[group]
    if seed % 5 == 1:
        reward = rng.integers(0, 2, TRACES) * 1.0
    if seed % 5 == 2:
        reward = np.ones(TRACES)
    scored, steps = rng.random(TRACES) < (0.8 if seed % 2 else 1), rng.integers(1, 4, TRACES)
    cluster = np.arange(TRACES)
    if seed % 4 in (1, 2):
        for trace in rng.choice(TRACES, 40 if seed % 4 == 1 else 12):
            kin = np.flatnonzero(group == group[trace]) if seed % 4 == 1 else np.arange(TRACES)
            cluster[trace] = cluster[rng.choice(kin)]
    claims = [rng.normal(size=(SOURCES, n)) * (rng.random() < 0.9) for n in steps]
    returns = [0.4 * claim.sum(axis=0) + size[group[t]] * rng.normal(size=steps[t]) for t, claim in enumerate(claims)]

    order = np.arange(TRACES) if order is None else order
    names = group if groups is None else groups[group]
    event = np.repeat(np.arange(TRACES), steps[order])
    graph, _, rows = credit.from_columns(
        group=names[order][event],
        trace=event,
        reward=reward[order][event],
        traces=padded,
        events=4 * padded,
        agents=2 * padded,
    )
    if not (cluster == np.arange(TRACES)).all():
        at, clusters = np.argsort(order), np.arange(padded)
        clusters[:TRACES] = at[cluster[order]]
        graph = dataclasses.replace(graph, cluster_ids=clusters.astype(np.int32))
    place, speaks = rows.event, scored[order][event]
    found = Batch(
        graph,
        np.zeros(padded),
        np.zeros(graph.num_events, bool),
        np.zeros(graph.num_events),
        np.zeros((SOURCES, graph.num_events)),
    )
    found.outcome[:TRACES] = np.where(scored, reward, 0)[order]
    found.rows[place] = speaks
    found.target[place] = np.where(speaks, np.concatenate([returns[t] for t in order]), 0)
    found.others[:, place] = np.where(speaks, np.concatenate([claims[t] for t in order], axis=1), 0)
    return found


def slowly(batch: Batch) -> np.ndarray:
    """The definition in the docstring of the module, trace by trace: O(T²)."""
    graph, trace = batch.graph, np.asarray(batch.graph.trace_ids)
    group = np.asarray(graph.group_ids)[:TRACES]
    cluster = np.arange(TRACES) if graph.cluster_ids is None else np.asarray(graph.cluster_ids)[:TRACES]
    acted = np.isin(np.arange(TRACES), trace[batch.rows])
    family, before = group.copy(), None
    while before is None or (family != before).any():  # until no label moves
        before = family
        for ids in (cluster, group):
            family = np.array([family[ids == ids[t]].min() for t in range(TRACES)])

    def samples(of: int, without: int = -1) -> list[float]:
        inside = acted & (group == of) & (cluster != without)
        return [batch.outcome[:TRACES][inside & (cluster == c)].mean() for c in np.unique(cluster[inside])]

    families, spread = np.unique(family), {}
    for name in families:
        parts = [samples(g) for g in np.unique(group[family == name])]
        freedom = sum(max(len(part) - 1, 0) for part in parts)
        squares = sum(np.sum((np.array(part) - np.mean(part)) ** 2) for part in parts if part)
        spread[name] = freedom, squares / freedom if freedom and squares > 1e-25 else 0.0

    def bucket(freedom: int, variance: float, p: float | None) -> int:
        ratio = 1.0 if p is None else variance / p
        return round(float(np.clip(np.round(4 * np.log2((freedom * ratio + 2) / (freedom + 2))), -512, 511)))

    beta = np.zeros((len(batch.others), TRACES))
    for t in range(TRACES):
        stated = sorted(spread[f][1] for f in families if f != family[t] and spread[f][1] > 0)
        p = stated[(len(stated) - 1) // 2] if stated else None
        left = samples(group[t], cluster[t])
        ours = bucket(max(len(left) - 1, 0), np.var(left, ddof=1) if len(left) > 1 else 0.0, p)
        near = [f for f in families if f != family[t] and abs(bucket(*spread[f], p) - ours) <= 8]
        events = np.isin(trace, np.flatnonzero(np.isin(family, near))) & np.asarray(graph.event_mask)
        x, y = batch.others[:, events], batch.target[events]
        if acted[t] and len(np.unique(trace[events][(x != 0).any(axis=0)])) >= ENOUGH_TRACES:
            gram = x @ x.T
            beta[:, t] = np.linalg.solve(gram + 1e-6 * np.diag(np.diag(gram)), x @ y)
    return beta


def quickly(batch: Batch) -> np.ndarray:
    return np.asarray(jax.jit(fitted_coefficients)(*batch))[:, :TRACES]


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_coefficients_are_those_of_a_loop(seed: int) -> None:
    batch = drawn(seed)
    with jax.enable_x64(True):
        found = quickly(batch)
    expected = slowly(batch)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    if seed != 3:  # five large groups of very unequal spread
        assert (expected != 0).mean() > 0.3


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("seed", [1, 0, 2, 3])
def test_padding_changes_no_bit_of_a_coefficient(seed: int) -> None:
    found = [quickly(drawn(seed, padded)) for padded in (256, 384, 4096)]
    for more in found[1:]:
        np.testing.assert_array_equal(more, found[0])


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_traces_and_the_names_of_groups_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(TRACES)
    with jax.enable_x64(True):
        found = quickly(drawn(seed))
        again = quickly(drawn(seed, order=order, groups=rng.permutation(10 * TRACES)))
    np.testing.assert_allclose(again, found[:, order], rtol=1e-8, atol=1e-12)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_no_bit_of_the_own_family_enters_a_coefficient(seed: int) -> None:
    """But for the spread of the trace's group without it, which stays: with replays in other groups, too."""
    batch = drawn(seed)
    group, trace = np.asarray(batch.graph.group_ids)[:TRACES], np.asarray(batch.graph.trace_ids)
    clusters = batch.graph.cluster_ids
    cluster = np.arange(TRACES) if clusters is None else np.asarray(clusters)[:TRACES]
    found, moved = quickly(batch), 0
    for t in range(0, TRACES, 7):
        kin = np.flatnonzero(np.isin(group, group[cluster == cluster[t]]))
        kin = kin[(group[kin] != group[t]) | (cluster[kin] == cluster[t])]
        own = np.isin(trace, kin) & np.asarray(batch.graph.event_mask)
        outcome = batch.outcome.copy()
        outcome[kin] += 1e4 * (1 + np.arange(len(kin)))
        changed = batch._replace(
            outcome=outcome,
            target=np.where(own, 1e4 * batch.target, batch.target),
            others=np.where(own, 1e3 * batch.others, batch.others),
        )
        np.testing.assert_array_equal(quickly(changed)[:, t], found[:, t])
        moved += (found[:, t] != 0).any()
    assert moved > 0


@pytest.mark.study
def test_work_grows_as_the_number_of_traces() -> None:
    """A row of a number for every group for each trace took 20 minutes at 1,000,000 traces."""

    def prepare(traces: int) -> Callable[[], object]:
        rng = np.random.default_rng(0)
        trace = np.repeat(np.arange(traces), 2)
        graph, reward, _ = credit.from_columns(group=trace // 2, trace=trace, reward=rng.normal(size=traces)[trace])
        amount = np.where(graph.action_mask, rng.normal(size=graph.num_events), 0)
        made = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
        return lambda: jax.block_until_ready(control_advantage(graph, reward, [made]).beta)

    assert_linear(prepare, 2**14)
