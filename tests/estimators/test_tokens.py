"""Token-level functions against loops over rows and positions."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimators.tokens import rows as tokens

ROWS, LENGTH = 7, 9
close = functools.partial(np.testing.assert_allclose, rtol=2e-6, atol=2e-6)


def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rewards, NaN and infinite outside a mask with gaps, an empty row and a row of one token."""
    rng = np.random.default_rng(seed)
    mask = np.arange(LENGTH)[None] < rng.integers(2, LENGTH + 1, (ROWS, 1))
    mask[0], mask[1] = False, np.arange(LENGTH) == 3
    mask[2:] &= rng.random((ROWS - 2, LENGTH)) < 0.8
    values = rng.normal(size=(ROWS, LENGTH)).astype(np.float32)
    values[~mask] = np.resize([np.nan, np.inf, -np.inf], (~mask).sum())
    return values, mask


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("discount", [1.0, 0.9, 0.0])
def test_token_returns(seed: int, discount: float) -> None:
    rewards, mask = draw(seed)
    expected = np.zeros(rewards.shape)
    for n in range(ROWS):
        running = 0.0
        for t in reversed(range(LENGTH)):
            running = float(rewards[n, t]) + discount * running if mask[n, t] else 0.0
            expected[n, t] = running
    close(tokens.token_returns(rewards, mask, discount), expected)


@pytest.mark.parametrize("seed", range(4))
def test_remax(seed: int) -> None:
    rewards, mask = draw(seed)
    greedy = np.linspace(-1, 1, ROWS, dtype=np.float32)
    expected = np.zeros(rewards.shape)
    for n, t in np.argwhere(mask):
        expected[n, t] = sum(float(rewards[n, s]) for s in range(t, LENGTH) if mask[n, s]) - float(greedy[n])
    close(tokens.remax(rewards, greedy, mask), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_masked_whiten(seed: int) -> None:
    values, mask = draw(seed)
    inside = [float(v) for v in values[mask]]
    mean = math.fsum(inside) / len(inside)
    variance = math.fsum((v - mean) ** 2 for v in inside) / (len(inside) - 1)
    expected = np.where(mask, (np.where(mask, values, 0) - mean) / math.sqrt(variance + 1e-8), 0)
    close(tokens.masked_whiten(values, mask), expected)
    rewarded = np.where(mask, values, 0)
    close(tokens.reinforce_pp(rewarded, mask, 0.0), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_per_rollout_mean(seed: int) -> None:
    advantages, mask = draw(seed)
    trace = [40, 7, 7, 40, 7, 999, -3]
    rows = sum(row.any() for row in mask)
    expected = np.zeros(mask.shape)
    for n, t in np.argwhere(mask):
        total = sum(int(mask[m].sum()) for m in range(ROWS) if trace[m] == trace[n])
        expected[n, t] = advantages[n, t] / (total * rows)
    close(tokens.per_rollout_mean(advantages, np.array(trace), mask), expected)


def test_spread() -> None:
    _, mask = draw(0)
    values = np.arange(ROWS, dtype=np.float32)
    values[0] = np.nan  # the row without tokens
    expected = [[float(values[n]) if mask[n, t] else 0.0 for t in range(LENGTH)] for n in range(ROWS)]
    np.testing.assert_array_equal(tokens.spread(values, mask), expected)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e4])
def test_equal_values_whiten_to_exactly_nothing(value: float) -> None:
    _, mask = draw(1)
    assert not tokens.masked_whiten(np.full(mask.shape, value, np.float32), mask).any()


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_tokens_have_no_spread(count: int) -> None:
    mask = np.arange(LENGTH)[None] < count
    assert not tokens.masked_whiten(np.full((1, LENGTH), 5.0, np.float32), mask).any()


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", ["masked_whiten", "token_returns", "reinforce_pp"])
def test_gradients_are_finite_and_stay_inside_the_mask(name: str) -> None:
    weight = np.sin(np.arange(LENGTH, dtype=np.float32))
    slope = jax.jit(jax.grad(lambda x, mask: jnp.sum(getattr(tokens, name)(x, mask) * weight[None])))
    values, mask = draw(2)
    for x, m in ((values, mask), (np.full_like(values, 0.1), mask), (values, np.zeros_like(mask))):
        found = np.asarray(slope(x, m))
        assert np.isfinite(found).all() and not found[~m].any()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.zeros((2, 3), np.float32), np.ones((2, 3), np.int64)), TypeError, "mask has dtype int"),
        ((np.zeros((2, 3), np.float32), np.ones((2, 4), bool)), ValueError, r"expected \(2, 4\), that of mask"),
        ((np.zeros((2, 3), np.int32), np.ones((2, 3), bool)), TypeError, "token_rewards holds integers"),
        ((np.zeros(3, np.float32), np.ones(3, bool)), ValueError, "two axes"),
    ],
)
def test_wrong_arrays_are_refused(arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tokens.token_returns(*arguments)


def test_wrong_numbers_of_rows_are_refused() -> None:
    x, mask = np.zeros((2, 3), np.float32), np.ones((2, 3), bool)
    with pytest.raises(ValueError, match=r"row_values has shape \(3,\); expected \(2,\)"):
        tokens.spread(np.zeros(3, np.float32), mask)
    with pytest.raises(ValueError, match="greedy_reward has shape"):
        tokens.remax(x, np.zeros(3, np.float32), mask)
    with pytest.raises(ValueError, match="trace_of_row has shape"):
        tokens.per_rollout_mean(x, np.zeros(3, np.int32), mask)


@pytest.mark.slow
def test_half_precision_is_computed_in_float32() -> None:
    x = jnp.ones((2, 3), jnp.bfloat16)
    assert tokens.masked_whiten(x, np.ones((2, 3), bool)).dtype == jnp.float32
