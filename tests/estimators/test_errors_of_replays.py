"""The standard error of a baseline over clusters of replays, against the spread that it has over many groups."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import credit

GROUPS = 4000
SIZES = (3, 1, 1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rloo", "dr_grpo"])
def test_the_error_of_a_mean_over_replays_is_that_of_its_clusters(method: str) -> None:
    """That of `dr_grpo` held the spread within clusters, too: its square was 1.2 times as large."""
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(len(SIZES)), SIZES)
    count = len(cluster)
    luck = rng.normal(size=(GROUPS, len(SIZES)))[:, cluster] + rng.normal(size=(GROUPS, count))
    graph, reward, rows = credit.from_columns(
        group=np.repeat(np.arange(GROUPS), count), trace=np.arange(GROUPS * count), reward=luck.reshape(-1)
    )
    first = np.concatenate([[0], np.cumsum(SIZES)[:-1]])[cluster]
    linked = np.arange(graph.num_traces, dtype=np.int32)
    linked[: GROUPS * count] = (np.arange(GROUPS)[:, None] * count + first[None]).reshape(-1)
    result = getattr(credit, method)(dataclasses.replace(graph, cluster_ids=linked), reward)
    assert rows.gather(result.valid).all()
    baseline, stderr = (rows.gather(x).reshape(GROUPS, count) for x in (result.baseline, result.stderr))
    np.testing.assert_allclose((stderr**2).mean(axis=0), baseline.var(axis=0), rtol=0.06)
