"""The lead of the best trace over the second, where some traces are replays of another."""

from __future__ import annotations

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import credit

SCORES = [1.0, 0.75, 0.5, 0.5, 0.25]


def leads(cluster: list[int], scores: list[float]) -> list[float]:
    graph, reward, rows = credit.from_columns(group=[0] * 5, trace=list("abcde"), reward=scores)
    ids = np.arange(graph.num_traces, dtype=np.int32)
    ids[:5] = cluster
    result = credit.pass_at_k(dataclasses.replace(graph, cluster_ids=jnp.asarray(ids)), reward)
    kept: list[float] = rows.gather(result.credit - result.baseline).tolist()
    return kept


@pytest.mark.slow
def test_the_second_is_no_replay_of_the_best() -> None:
    for cluster in itertools.product([0, 1, 2], repeat=5):
        if len(set(cluster)) < 2:
            continue
        best = int(np.argmax(SCORES))
        others = [score for score, own in zip(SCORES, cluster, strict=True) if own != cluster[best]]
        expected = [SCORES[i] - max(others) if i == best else 0.0 for i in range(5)]
        assert leads(list(cluster), SCORES) == expected, cluster


@pytest.mark.slow
def test_a_tie_with_a_replay_of_its_own_is_no_tie() -> None:
    assert leads([0, 0, 1, 2, 3], [1.0, 1.0, 0.5, 0.5, 0.5]) == [0.5, 0.0, 0.0, 0.0, 0.0]
    assert leads([0, 1, 2, 3, 4], [1.0, 1.0, 0.5, 0.5, 0.5]) == [0.0] * 5
