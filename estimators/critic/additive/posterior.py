"""The posterior of an additive critic's weights, given outcomes of traces and of further runs.

Rows are means of `number` outcomes. Expectation-maximisation over the precision of each weight, with a Newton step of
the weights in each step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

__all__ = ["Outcomes", "Posterior", "fit_posterior"]

FREEDOM = 3.0
"""Degrees of freedom of the prior."""
MOST_STEPS = 300
TOLERANCE = 1e-2
"""Convergence: the largest change of a weight in a step, in posterior standard deviations."""


class Outcomes(NamedTuple):
    """The outcomes that weights are fitted to.

    Attributes:
      x: float64 [N, C], sums of numbers of events, the columns of the weights.
      intercept: float64 [N], the column of the intercept.
      mean: float64 [N], mean outcome.
      number: float64 [N], number of outcomes that the mean is of; their number over their relative variance for head
        "value".
    """

    x: np.ndarray
    intercept: np.ndarray
    mean: np.ndarray
    number: np.ndarray

    def joined(self, other: Outcomes) -> Outcomes:
        """The rows of both."""
        return Outcomes(*(np.concatenate(parts) for parts in zip(self, other, strict=True)))


class Posterior(NamedTuple):
    """Normal approximation of the weights, the intercept last.

    Attributes:
      mean: float64 [C + 1].
      draws: float64 [M, C + 1].
      noise: variance of an outcome given its row, for head "value"; 1 for "bernoulli".
      steps: how many steps the fit took.
      converged: whether the last one changed no weight by more than `TOLERANCE` standard deviations.
    """

    mean: np.ndarray
    draws: np.ndarray
    noise: float
    steps: int
    converged: bool


def fit_posterior(
    outcomes: Outcomes, level: np.ndarray, head: str, members: int, rng: np.random.Generator
) -> Posterior:
    """Fit weights and the scale of each level.

    Args:
      outcomes: N rows.
      level: int [C], the level of each column; the columns of a level share a scale.
      head: "bernoulli" or "value".
      members: M, draws from the posterior, an even number.
      rng: of the draws.
    """
    mean, count = outcomes.mean, outcomes.number
    n, columns = outcomes.x.shape
    x1 = np.column_stack([outcomes.x, outcomes.intercept])
    average = float(np.average(mean, weights=count))
    noise = spread if (spread := float(np.average((mean - average) ** 2, weights=count))) > 0 else 1.0
    edge = min(max(average, 0.5 / n), 1 - 0.5 / n)
    weights = np.zeros(columns + 1)
    weights[-1] = math.log(edge / (1 - edge)) if head == "bernoulli" else average
    unit = 1.0 if head == "bernoulli" else noise
    scale = np.full(int(level.max(initial=0)) + 1, 0.1 * unit / max(columns, 1))
    precision = np.append(1 / scale[level], 1e-8)
    converged, step = False, 0
    factor = np.eye(columns + 1)
    for step in range(1, MOST_STEPS + 1):
        score = x1 @ weights
        if head == "bernoulli":
            p = 1 / (1 + np.exp(-np.clip(score, -30, 30)))
            curve = np.maximum(p * (1 - p), 1e-4)
            target = score + (mean - p) / curve
            curve = curve * count
        else:
            curve, target = count / noise, mean
        factor = np.linalg.cholesky((x1 * curve[:, None]).T @ x1 + np.diag(precision))
        inverse = np.linalg.solve(factor, np.eye(columns + 1))  # of the factor: covariance = inverseᵀ inverse
        variance = np.sum(inverse**2, axis=0)
        new = inverse.T @ (inverse @ (x1.T @ (curve * target)))
        change = float(np.max(np.abs(new - weights) / np.sqrt(variance), initial=0))
        weights = new
        precision[:-1] = (FREEDOM + 1) / (FREEDOM * scale[level] + weights[:-1] ** 2 + variance[:-1])
        for i in range(len(scale)):
            own = precision[:-1][level == i]
            scale[i] = max(len(own) / own.sum(), 1e-10 * unit) if len(own) else scale[i]
        if head == "value":
            used = columns + 1 - float(np.sum(precision * variance))
            noise = max(float(np.sum(count * (mean - x1 @ weights) ** 2) / max(n - used, 1)), 1e-12 * unit)
        if step > 5 and change < TOLERANCE:
            converged = True
            break
    half = np.linalg.solve(factor.T, rng.normal(size=(columns + 1, members // 2))).T
    draws = weights + np.concatenate([half, -half])
    return Posterior(weights, draws, noise if head == "value" else 1.0, step, converged)
