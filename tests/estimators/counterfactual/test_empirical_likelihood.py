"""Empirical-likelihood intervals against their definition: a grid over probabilities, and a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from estimators.counterfactual.empirical_likelihood import least_mean, limits

LIMIT = 3.841459


def of_contexts(*values: float, size: int) -> np.ndarray:
    return np.array([*values, *[1.0] * (size - len(values))], np.float32)


@pytest.mark.parametrize(("first", "second"), [((3, 10), (2, 5)), ((0, 6), (4, 4)), ((1, 1), (0, 12))])
@pytest.mark.sampled
@pytest.mark.study
def test_two_alternatives_against_a_grid(first: tuple[int, int], second: tuple[int, int]) -> None:
    """With success or failure, the interval is that of the likelihood ratio of two binomials."""
    shares = (0.7, 0.3)
    grid = np.linspace(1e-9, 1 - 1e-9, 1501)

    def ratio(successes: int, n: int) -> np.ndarray:
        def log(p: np.ndarray | float) -> np.ndarray:
            return successes * np.log(np.maximum(p, 1e-300)) + (n - successes) * np.log(np.maximum(1 - p, 1e-300))

        return np.asarray(2 * (log(successes / n) - log(grid)))

    inside = ratio(*first)[:, None] + ratio(*second)[None, :] <= LIMIT
    mean = shares[0] * grid[:, None] + shares[1] * grid[None, :]
    expected = mean[inside].min(), mean[inside].max()

    outcome = np.concatenate([np.arange(n) < s for s, n in (first, second)]).astype(np.float32)
    n = len(outcome) + 3  # three rows of padding, with NaN
    stratum = np.array([0] * first[1] + [1] * second[1] + [0] * 3, np.int32)
    where = np.arange(n) < len(outcome)
    padded = np.where(where, np.append(outcome, [0] * 3), np.nan).astype(np.float32)
    share = np.where(where, np.asarray(shares)[stratum], np.nan).astype(np.float32)
    rest = stratum, np.zeros(n, np.int32), where, of_contexts(LIMIT, size=n)
    low, short = least_mean(share * padded, *rest), least_mean(share * (1 - padded), *rest)
    high = 1 - short
    np.testing.assert_allclose([low[0], high[0]], expected, atol=2e-3)


@pytest.mark.study
def test_parts_of_draws_against_an_optimiser() -> None:
    """The least Σ pᵢ xᵢ with −2 Σ log(n pᵢ) ≤ c, where mass may also lie on 0, which no draw had."""
    part = np.array([0.3, 0.05, 0.1, 2.0, 1.0])
    n = len(part)
    result = minimize(
        lambda p: p @ part,
        np.full(n, 0.99 / n),
        constraints=[
            {"type": "ineq", "fun": lambda p: LIMIT + 2 * np.log(n * np.maximum(p, 1e-12)).sum()},
            {"type": "ineq", "fun": lambda p: 1 - p.sum()},
        ],
        bounds=[(1e-9, 1)] * n,
        options={"ftol": 1e-12, "maxiter": 500},
    )
    of, where = np.zeros(n, np.int32), np.ones(n, bool)
    low = least_mean(part.astype(np.float32), of, of, where, of_contexts(LIMIT, size=n))
    assert float(low[0]) == pytest.approx(result.fun, rel=2e-3)


@pytest.mark.study
def test_parts_of_very_different_size_have_a_limit() -> None:
    """Squares of their weights overflowed, which gave NaN."""
    part = np.array([1.0, 1e-12, 1e-20, 0.5, 1e-30, 0.0], np.float32)
    of, where = np.zeros(6, np.int32), np.ones(6, bool)
    assert 0 < float(least_mean(part, of, of, where, of_contexts(LIMIT, size=6))[0]) < 0.25


@pytest.mark.study
def test_limit_is_chi_squared_with_its_corrections() -> None:
    rng = np.random.default_rng(0)
    x, stratum = rng.random(12), np.repeat([0, 1, 2], 4).astype(np.int32)
    psi = (x - x.reshape(3, 4).mean(axis=1)[stratum]) / 4
    squares = np.array([(psi[stratum == a] ** 2).sum() for a in range(3)])
    part = squares / squares.sum()
    tails = (psi**4).sum() / squares.sum() ** 2 / 2 - (psi**3).sum() ** 2 / squares.sum() ** 3 / 3
    found = limits(0.95, x.astype(np.float32), stratum, np.zeros(12, np.int32), np.ones(12, bool))
    assert float(found[0]) == pytest.approx(LIMIT * (1 + tails + (part * (1 - part) / 4).sum()), rel=1e-4)
