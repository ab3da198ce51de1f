"""Sums over the other members of a key, and the families of groups that replays connect: against plain loops."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from estimators.clusters import independent_groups
from estimators.composition.merged_others import merged_others
from tests.helpers.linear_time import assert_linear

SUMS = jax.jit(functools.partial(merged_others, merge=jnp.add))


@pytest.mark.sampled
@pytest.mark.parametrize("members", [1, 2, 7, 64, 301])
def test_sums_of_others_are_those_of_a_loop(members: int) -> None:
    rng = np.random.default_rng(members)
    key, value = rng.integers(0, 5, members), rng.integers(-9, 9, (members, 2)).astype(np.float32)
    without, total = SUMS(key, value)
    for i in range(members):
        same = key == key[i]
        np.testing.assert_array_equal(total[i], value[same].sum(axis=0))
        np.testing.assert_array_equal(without[i], value[same].sum(axis=0) - value[i])


def test_no_bit_of_a_value_is_in_the_sum_of_the_others() -> None:
    """Neither its size nor its key: whatever key it has, the others of each key add up in the same order."""
    rng = np.random.default_rng(0)
    key, value = rng.integers(0, 3, 100), rng.normal(size=100).astype(np.float32)
    for i in range(0, 100, 9):
        seen: dict[int, set[float]] = {0: set(), 1: set(), 2: set()}
        for k in range(3):
            for size in (1.0, 1e6, 1e30):
                keys, values = key.copy(), value.copy()
                keys[i], values[i] = k, size
                without, total = (np.asarray(x) for x in SUMS(keys, values))
                for other in range(3):
                    member = i if other == k else int(np.flatnonzero((keys == other) & (np.arange(100) != i))[0])
                    seen[other].add(float((without if other == k else total)[member]))
        assert [len(sums) for sums in seen.values()] == [1, 1, 1]


def connected(traces: np.ndarray, clusters: np.ndarray) -> credit.EventGraph:
    graph, _, _ = credit.from_columns(group=traces, trace=np.arange(len(traces)), reward=np.zeros(len(traces)))
    ids = np.arange(graph.num_traces, dtype=np.int32)
    ids[: len(clusters)] = clusters
    return dataclasses.replace(graph, cluster_ids=ids)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(20))
def test_families_are_the_connected_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    traces, clusters = np.sort(rng.integers(0, rng.integers(2, 60), 100)), np.arange(100)
    for _ in range(rng.integers(0, 60)):
        one, other = rng.integers(0, 100, 2)
        clusters[clusters == clusters[one]] = clusters[other]
    graph = connected(traces, clusters)
    expected, before = np.asarray(graph.group_ids)[:100], None
    while before is None or (expected != before).any():  # until no label moves
        before = expected
        for ids in (clusters, np.asarray(graph.group_ids)[:100]):
            expected = np.array([expected[ids == ids[t]].min() for t in range(100)])
    np.testing.assert_array_equal(np.asarray(independent_groups(graph))[:100], expected)


@pytest.mark.slow
def test_a_chain_of_groups_is_no_round_for_each() -> None:
    """Each holds a replay of the next one, and the least is behind the greatest: labels moved on by one a round."""
    families = jax.jit(independent_groups)

    def prepare(groups: int) -> Callable[[], object]:
        chain = np.concatenate([[0], np.arange(groups - 1, 0, -1)])
        clusters = np.arange(2 * groups)
        clusters[2 * chain[1:]] = 2 * chain[:-1] + 1
        graph = connected(np.repeat(np.arange(groups), 2), clusters)
        assert (np.asarray(families(graph))[: 2 * groups] == 0).all()
        return lambda: jax.block_until_ready(families(graph))

    assert_linear(prepare, 2**16, factor=64, most=12)
