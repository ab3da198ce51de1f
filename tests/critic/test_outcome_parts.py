"""Parts of the outcome that add up to it, against NumPy's least squares."""

from __future__ import annotations

import numpy as np
import pytest

import credit
from estimators import Reason
from estimators.critic.outcome_parts import outcome_parts


@pytest.mark.slow
def test_parts_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(3)
    trace = np.sort(rng.integers(0, 12, 48))
    outcome = rng.normal(size=12)
    outcome[4] = np.nan
    graph, reward, rows = credit.from_columns(group=[0] * 48, trace=trace, reward=outcome[trace], events=64)
    x = rng.normal(size=(64, 3))
    x[5, 1] = np.nan
    result = outcome_parts(graph, reward, features=x, ridge=0.5)
    scored = ~np.isnan(outcome[trace])
    known = scored & np.isfinite(x[:48]).all(axis=1)
    sums = np.zeros((12, 3))
    np.add.at(sums, trace[known], x[:48][known])
    # Ridge is least squares with rows of its root below, whose targets are 0.
    whole = np.vstack([sums[~np.isnan(outcome)], np.sqrt(0.5) * np.eye(3)])
    w = np.linalg.lstsq(whole, np.r_[outcome[~np.isnan(outcome)], np.zeros(3)], rcond=None)[0]
    np.testing.assert_allclose(rows.gather(result.credit), np.where(known, np.nan_to_num(x[:48]) @ w, 0), atol=1e-5)
    reasons = np.where(known, Reason.VALID, np.where(scored, Reason.NO_EVIDENCE, Reason.NO_REWARD))
    assert rows.gather(result.reason).tolist() == reasons.tolist()
    # What the parts do not add up to is left for the ledger to show.
    ledger = credit.compose(graph, reward, [result], expected=np.zeros(graph.num_traces))
    left = np.where(np.isnan(outcome), 0, outcome - np.bincount(trace, rows.gather(result.credit), 12))
    np.testing.assert_allclose(ledger.unexplained[:12], left, atol=1e-5)


@pytest.mark.parametrize(
    ("columns", "scale", "offset"), [(256, 1.0, 0.0), (3, 1.0, 1000.0), (3, 1e12, 0.0), (20, 1e20, 0.0)]
)
def test_parts_have_no_rounding_of_single_precision(columns: int, scale: float, offset: float) -> None:
    """A Cholesky factor of the features' squares in float32 finished with other numbers, all of them valid."""
    rng = np.random.default_rng(1)
    trace = np.repeat(np.arange(16), 4)
    outcome = rng.integers(0, 2, 16).astype(float)
    graph, reward, rows = credit.from_columns(group=[0] * 64, trace=trace, reward=outcome[trace], events=64)
    x = rng.normal(size=(64, columns)) * scale + offset
    result = outcome_parts(graph, reward, features=x)
    # Features and the root of the ridge in other units are the same parts.
    whole = np.vstack([x.reshape(16, 4, columns).sum(1) / scale, np.sqrt(1e-3) / scale * np.eye(columns)])
    w = np.linalg.lstsq(whole, np.r_[outcome, np.zeros(columns)], rcond=None)[0]
    got = rows.gather(result.credit)
    np.testing.assert_allclose(got, x / scale @ w, atol=1e-6)
    assert np.asarray(result.valid).all()
    permuted = outcome_parts(graph, reward, features=x[:, rng.permutation(columns)])
    np.testing.assert_allclose(rows.gather(permuted.credit), got, atol=1e-6)


def test_columns_too_far_apart_for_double_precision_are_refused() -> None:
    """The part of a small column beside one of 1e20 would be rounding."""
    rng = np.random.default_rng(1)
    graph, reward, _ = credit.from_columns(
        group=[0] * 8, trace=np.arange(8), reward=rng.normal(size=8).astype(np.float32), events=8
    )
    near, far = (outcome_parts(graph, reward, features=rng.normal(size=(8, 2)) * [1, size]) for size in (1e6, 1e20))
    assert np.asarray(near.valid).all() and (np.asarray(far.reason) == Reason.OUT_OF_RANGE).all()


def test_features_of_another_shape_are_refused() -> None:
    graph, reward, _ = credit.from_columns(group=[0], trace=["a"], reward=[1.0], events=2)
    for features in (np.zeros(2), np.zeros((3, 1))):
        with pytest.raises(credit.CreditError, match="features has shape"):
            outcome_parts(graph, reward, features=features)
    with pytest.raises(credit.CreditError, match="ridge is 0; expected a finite positive number"):
        outcome_parts(graph, reward, features=np.zeros((2, 1)), ridge=0)
