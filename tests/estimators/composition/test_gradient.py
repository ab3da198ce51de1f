"""The policy gradient of a batch and its standard error, against repeated draws."""

from __future__ import annotations

import numpy as np
import pytest

import credit
from estimators.composition.gradient import policy_gradient

GROUPS, TRACES, STEPS = 12, 4, 3


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Choices [groups, traces, steps] of fair coins, and rewards of tasks of unequal size."""
    choices = rng.integers(0, 2, (GROUPS, TRACES, STEPS))
    size = rng.choice([0.5, 1.0, 3.0], GROUPS)[:, None]
    return choices, size * (choices[..., 0] + choices[..., 1] * choices[..., 2]) + rng.normal(size=(GROUPS, TRACES))


@pytest.mark.slow
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


def test_one_group_has_no_error_and_a_wrong_shape_is_refused() -> None:
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
    result = credit.rloo(graph, reward)
    assert np.isinf(policy_gradient(graph, result, np.ones((graph.num_events, 2), np.float32)).stderr).all()
    with pytest.raises(credit.CreditError, match="one row for each event"):
        policy_gradient(graph, result, np.ones(graph.num_events, np.float32))
