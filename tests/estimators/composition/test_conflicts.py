"""Channels that pull against each other, and how much each brings to the sum, beside NumPy."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import credit
from credit.ledger.channels import by_indicator, indicator
from estimators.composition import conflicts
from graphs.errors import CreditError

without_conflicts = jax.jit(conflicts.without_conflicts)
variance_shares, variance_weights = jax.jit(conflicts.variance_shares), jax.jit(conflicts.variance_weights)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    advantages = rng.normal(size=(3, 40)).astype(np.float32)
    advantages[1] -= 0.8 * advantages[0]
    valid = rng.random(40) < 0.8
    advantages[:, ~valid] = np.nan  # what is not valid has no say
    return advantages, valid


@pytest.mark.parametrize("seed", range(3))
def test_conflicts_and_shares_are_those_of_numpy(seed: int) -> None:
    advantages, valid = drawn(seed)
    kept = advantages[:, valid].astype(np.float64)
    expected = kept.copy()
    for k in range(3):
        for j in range(3):
            product = expected[k] @ kept[j]
            if j != k and product < 0:
                expected[k] -= product / (kept[j] @ kept[j]) * kept[j]
    found = np.asarray(without_conflicts(advantages, valid))
    np.testing.assert_allclose(found[:, valid], expected, rtol=1e-4, atol=1e-5)
    assert not found[:, ~valid].any()
    shares = np.asarray(variance_shares(advantages, valid))
    whole = kept.sum(axis=0)
    np.testing.assert_allclose(shares, [np.cov(x, whole, ddof=0)[0, 1] / whole.var() for x in kept], rtol=1e-4)
    assert shares.sum() == pytest.approx(1, abs=1e-5)
    weights = np.asarray(variance_weights(advantages, valid, np.array([0.5, 0.3, 0.2])))
    np.testing.assert_allclose(weights**2 * kept.var(axis=1), [0.5, 0.3, 0.2], rtol=1e-4)


def test_channels_without_spread_and_other_shapes() -> None:
    flat = np.ones((2, 4), np.float32)
    assert variance_weights(flat, np.ones(4, bool), np.ones(2)).tolist() == [0, 0]
    assert np.isnan(variance_shares(0 * flat, np.ones(4, bool))).all()
    with pytest.raises(CreditError, match=r"expected \[C, E\] and \[E\]"):
        without_conflicts(flat, np.ones(3, bool))


def test_a_weight_follows_what_was_measured() -> None:
    _, _, rows = credit.from_columns(
        group=[0] * 5, trace=[0, 0, 1, 1, 2], agent=["m", "s", "m", "s", "m"],
        parent=[None, "m", None, "m", None], reward=[1.0] * 5,
    )  # fmt: skip
    measured = indicator(rows.traces, "spawn_rate")
    assert measured == pytest.approx(2 / 3)
    assert indicator(rows.traces, "finish_rate") == 0
    assert by_indicator(0.4, 0.0, low=0.5, high=0.75)(measured) == pytest.approx(0.4 / 3)
    with pytest.raises(CreditError, match="expected low less than high"):
        by_indicator(0.4, 0.0, low=0.5, high=0.5)
