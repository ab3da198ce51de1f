"""An error that single precision cannot hold is unknown; it is never 0, which would be certain."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import credit
from estimators.base import finish

REWARDS = np.array([1.0, 0.0, 0.5, 0.2, 0.9])


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("size", [1e-22, 1e20, 1e30])
@pytest.mark.parametrize("method", ["rloo", "turn_baseline", "reinforce_batch"])
def test_squares_beyond_single_precision_leave_no_error(method: str, size: float) -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 5, trace=range(5), reward=REWARDS * size)
    result = getattr(credit, method)(graph, reward)
    assert rows.gather(result.valid).all()
    others = (REWARDS.sum() - REWARDS) / 4
    np.testing.assert_allclose(rows.gather(result.advantage), (REWARDS - others) * size, rtol=1e-5)
    assert np.isinf(rows.gather(result.stderr)).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rloo", "turn_baseline", "reinforce_batch", "dr_grpo"])
def test_a_reward_at_the_mean_of_others_that_differ_by_little_has_an_unknown_error(method: str) -> None:
    """Its own deviation is exactly 0, the squares of the others were lost, and its error was 0: certain."""
    graph, reward, rows = credit.from_columns(group=[0] * 5, trace=range(5), reward=[1e-20, 2e-20, 3e-20, 2e-20, 2e-20])
    assert np.isinf(rows.gather(getattr(credit, method)(graph, reward).stderr)).all()
    graph, reward, rows = credit.from_columns(group=[0] * 5, trace=range(5), reward=[2e-20] * 5)
    assert rows.gather(getattr(credit, method)(graph, reward).stderr).tolist() == [0.0] * 5


def test_the_error_of_a_turns_baseline_does_not_round_with_the_size_of_rewards() -> None:
    """Rewards of 8192 are held in steps of 1/1024, and the mean was rounded to one of them."""
    step = 2.0**-10
    apart = np.array([0.0, 1.0, 1.0, 1.0]) * step
    with pytest.warns(UserWarning, match="subtract an offset"):
        graph, reward, rows = credit.from_columns(group=[0] * 4, trace=range(4), reward=8192 + apart)
    expected = [np.std(np.delete(apart, i), ddof=1) / np.sqrt(3) for i in range(4)]
    np.testing.assert_allclose(rows.gather(credit.turn_baseline(graph, reward).stderr), expected, rtol=1e-5)


def test_rewards_that_kernels_take_for_0_are_named() -> None:
    """Below the least normal number of single precision the advantages were 0, and nothing said so."""
    with pytest.warns(UserWarning, match="multiply numbers that are almost 0"):
        credit.from_columns(group=[0] * 3, trace=range(3), reward=[1e-40, 3e-40, 2e-40])


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_other_rewards_have_the_error_of_their_size(size: float) -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 5, trace=range(5), reward=REWARDS * size)
    others = [np.delete(REWARDS, i) for i in range(5)]
    expected = [size * np.std(x, ddof=1) / 2 for x in others]
    np.testing.assert_allclose(rows.gather(credit.rloo(graph, reward).stderr), expected, rtol=1e-5)


@pytest.mark.slow
def test_an_error_that_is_no_number_is_unknown_and_refuses_nothing() -> None:
    graph, _, rows = credit.from_columns(group=[0], trace=["a"], reward=[1.0])
    given: dict[str, Any] = {name: jnp.ones(graph.num_events) for name in ("credit", "baseline", "scale")}
    given |= {"unit": "event", "estimand": "score", "source": "test", "centred": False, "own_outcome": False}
    reason = jnp.zeros(graph.num_events, jnp.int8)
    result = finish(graph, stderr=jnp.full(graph.num_events, jnp.nan), reason=reason, **given)
    assert rows.gather(result.valid).all() and np.isinf(rows.gather(result.stderr)).all()
