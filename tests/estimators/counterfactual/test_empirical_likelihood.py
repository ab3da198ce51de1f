"""Empirical-likelihood intervals against their definition: a grid over probabilities, and a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from estimators.counterfactual.empirical_likelihood import influence_interval, limits, stratified_interval

LIMIT = 3.841459


def of_contexts(*values: float, size: int) -> np.ndarray:
    return np.array([*values, *[1.0] * (size - len(values))], np.float32)


@pytest.mark.parametrize(("first", "second"), [((3, 10), (2, 5)), ((0, 6), (4, 4)), ((1, 1), (0, 12))])
@pytest.mark.sampled
@pytest.mark.slow
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
    low, high = stratified_interval(padded, share, stratum, np.zeros(n, np.int32), where, of_contexts(LIMIT, size=n))
    np.testing.assert_allclose([low[0], high[0]], expected, atol=2e-3)


@pytest.mark.parametrize("farthest", [0.0, 3.0])
@pytest.mark.sampled
@pytest.mark.slow
def test_parts_of_draws_against_an_optimiser(farthest: float) -> None:
    """The largest Σ pᵢ xᵢ with −2 Σ log(n pᵢ) ≤ c, where mass may also lie on a point without a draw."""
    part = np.array([-1.0, -0.4, 0.1, 0.3, 1.0]) / 5
    n = len(part)
    scaled = part * n * np.sqrt(n / (n - 1))
    point = max(farthest, scaled.max() * 1.0001)

    result = minimize(
        lambda p: -(p[:n] @ scaled + (1 - p.sum()) * point),
        np.full(n, 0.99 / n),
        constraints=[
            {"type": "ineq", "fun": lambda p: LIMIT + 2 * np.log(n * np.maximum(p, 1e-12)).sum()},
            {"type": "ineq", "fun": lambda p: 1 - p.sum()},
        ],
        bounds=[(1e-9, 1)] * n,
        options={"ftol": 1e-12, "maxiter": 500},
    )
    ends = of_contexts(0.0, size=n), of_contexts(farthest, size=n)
    _, up = influence_interval(
        part.astype(np.float32), ends, np.zeros(n, np.int32), np.ones(n, bool), of_contexts(LIMIT, size=n)
    )
    assert float(up[0]) == pytest.approx(-result.fun, rel=2e-3)


@pytest.mark.slow
def test_limit_is_chi_squared_with_its_corrections() -> None:
    rng = np.random.default_rng(0)
    psi, stratum = rng.normal(size=12), np.repeat([0, 1, 2], 4).astype(np.int32)
    squares = np.array([(psi[stratum == a] ** 2).sum() for a in range(3)])
    part = squares / squares.sum()
    tails = (psi**4).sum() / squares.sum() ** 2 / 2 - (psi**3).sum() ** 2 / squares.sum() ** 3 / 3
    for strata, few in ((True, (part * (1 - part) / 4).sum()), (False, 0.0)):
        found = limits(
            0.95, psi.astype(np.float32), stratum, np.zeros(12, np.int32), np.ones(12, bool), np.full(12, strata)
        )
        assert float(found[0]) == pytest.approx(LIMIT * (1 + tails + few), rel=1e-4)
