"""The policy gradient of a batch and its standard error, against repeated draws; groups that share replays."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import credit
from estimators.composition.explained import explained
from estimators.composition.gradient import policy_gradient

GROUPS, TRACES, STEPS = 12, 4, 3


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Choices [groups, traces, steps] of fair coins, and rewards of tasks of unequal size."""
    choices = rng.integers(0, 2, (GROUPS, TRACES, STEPS))
    size = rng.choice([0.5, 1.0, 3.0], GROUPS)[:, None]
    return choices, size * (choices[..., 0] + choices[..., 1] * choices[..., 2]) + rng.normal(size=(GROUPS, TRACES))


@pytest.mark.study
def test_the_stated_error_is_the_spread_of_repeated_draws() -> None:
    rng = np.random.default_rng(0)
    trace = np.repeat(np.arange(GROUPS * TRACES), STEPS)
    means, errors = [], []
    for _ in range(150):
        choices, reward = drawn(rng)
        graph, outcome, rows = credit.from_columns(group=trace // TRACES, trace=trace, reward=reward.ravel()[trace])
        score = np.zeros((graph.num_events, STEPS), np.float32)
        score[rows.event, np.tile(np.arange(STEPS), GROUPS * TRACES)] = choices.ravel() - 0.5
        made = credit.compose(graph, outcome, []).advantage("control").gradient(score)
        means.append(np.asarray(made.mean))
        errors.append(np.asarray(made.stderr))
    spread = np.std(means, axis=0)
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(errors), axis=0)), spread, rtol=0.15)
    truth = np.array([1.0, 0.5, 0.5]) * np.mean([0.5, 1.0, 3.0]) / 4
    assert np.all(np.abs(np.mean(means, axis=0) - truth) < 4 * spread / np.sqrt(150))


@pytest.mark.slow
def test_one_group_has_no_error_and_a_wrong_shape_is_refused() -> None:
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
    result = credit.rloo(graph, reward)
    assert np.isinf(policy_gradient(graph, result, np.ones((graph.num_events, 2), np.float32)).stderr).all()
    with pytest.raises(credit.CreditError, match="one row for each event"):
        policy_gradient(graph, result, np.ones(graph.num_events, np.float32))


@pytest.mark.slow
def test_groups_that_share_replays_are_one_sample() -> None:
    """Traces of groups 0, 1 and 3 form a chain of two clusters: the error is that of one group in their place."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(5), 2)
    graph, reward, rows = credit.from_columns(group=group, trace=np.arange(10), reward=rng.normal(size=10))
    score = np.zeros((graph.num_events, 2), np.float32)
    score[rows.event] = rng.normal(size=(10, 2))
    own = credit.rloo(graph, reward)
    clusters = np.arange(graph.num_traces, dtype=np.int32)
    clusters[3], clusters[7] = 1, 2  # traces 1 and 3, 2 and 7
    replayed = dataclasses.replace(graph, cluster_ids=np.where(np.asarray(graph.trace_mask), clusters, 0))
    in_one = np.asarray(graph.group_ids).copy()
    in_one[[2, 3, 6, 7]] = 0
    merged = dataclasses.replace(graph, group_ids=in_one)
    apart, together, expected = (policy_gradient(one, own, score) for one in (graph, replayed, merged))
    assert (int(apart.groups), int(together.groups)) == (5, 3)
    np.testing.assert_allclose(together.mean, apart.mean, rtol=1e-6)
    np.testing.assert_allclose(together.stderr, expected.stderr, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the batch has .* that equal earlier ones")
def test_copies_in_other_groups_do_not_shrink_the_error() -> None:
    rng = np.random.default_rng(2)
    reward, entry = rng.normal(size=8), rng.normal(size=8)

    def errors(copies: int) -> tuple[np.ndarray, float]:
        group = np.concatenate([np.repeat(np.arange(4), 2) + 4 * i for i in range(copies)])
        graph, outcome, rows = credit.from_columns(
            group=group, trace=np.arange(8 * copies), reward=np.tile(reward, copies)
        )
        shared = np.where(np.asarray(graph.trace_mask), np.arange(graph.num_traces) % 8, 0).astype(np.int32)
        made = dataclasses.replace(graph, cluster_ids=shared)
        score, cells = np.zeros((graph.num_events, 1), np.float32), np.zeros((graph.num_events, 1))
        score[rows.event, 0] = np.tile(np.linspace(-1, 1, 8), copies)
        cells[rows.event, 0] = np.tile(entry, copies)
        total, scored = np.asarray(outcome, np.float64), np.asarray(graph.trace_mask)
        known = explained(made, cells, np.ones_like(cells, bool), total, np.zeros_like(total), scored)
        return np.asarray(policy_gradient(made, credit.rloo(graph, outcome), score).stderr), known.stderr

    np.testing.assert_allclose(errors(3)[0], errors(1)[0], rtol=1e-5)
    assert errors(3)[1] == pytest.approx(errors(1)[1], rel=1e-6)
