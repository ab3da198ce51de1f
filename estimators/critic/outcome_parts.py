"""SPA-RL: a part of the outcome for each action, learned so that the parts of a trace add up to its outcome."""

from __future__ import annotations

import numpy as np

from estimators.base import Credit, Reason, check_reward, finish
from estimators.options import checked_options
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph

__all__ = ["outcome_parts"]


@checked_options
def outcome_parts(graph: EventGraph, reward: Array, *, features: Array, ridge: float = 1e-3) -> Credit:
    """The parts of the outcome that a linear model gives to actions, fitted so that they add up to it.

        c_e = w·x_e        w = argmin Σ_i (R_i − Σ_e w·x_e)² + ridge |w|²

    x_e are the features of action e, and the sum over e runs over the actions of trace i. SPA-RL trains a language
    model with a linear head on this loss by gradient steps; on given features the head has a closed form. It is a
    learned partition: the parts of a trace add up to the outcome that the model predicts, and a ledger shows the rest
    as unexplained. No error is known. The parts have no mean of 0 under the policy, and each trace is in its own fit:
    biased for the policy gradient. No |c| has a bound but that of its features.

    The fit is computed on the host in double precision, so `jax.jit` cannot trace this function.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none, which is left out of the fit.
      features: float [E, F], such as an embedding of each action; a column of ones is not added. An action with a
        number that is not finite has no part. Where sizes of columns lie too far apart for double precision, all
        actions are refused as out of range.
      ridge: the weight of |w|², in units of features squared; above 0, since features of few traces determine no w.

    Returns:
      `Credit` at level "event", estimand "increment": a claim for `credit.compose`, or rewards at events.

    Raises:
      CreditError: wrong shapes or dtypes, or a ridge that is not a positive number.

    Reference: Wang et al. 2025, arXiv:2505.20732; SPA-RL-Agent `prm/` at ed20087 (MIT), read, not executed.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("aabb"), reward=[1.0, 1.0, 0.5, 0.5], events=4)
      >>> kinds = np.array([[1.0, 0], [0, 1], [1, 0], [1, 0]])  # of the four actions
      >>> parts = outcome_parts(graph, reward, features=kinds, ridge=1e-6)
      >>> rows.gather(parts.credit).round(3).tolist()
      [0.25, 0.75, 0.25, 0.25]
    """
    outcome, scored = (np.asarray(array) for array in check_reward(graph, reward))
    if np.ndim(features) != 2 or np.shape(features)[0] != graph.num_events:
        raise CreditError(f"features has shape {np.shape(features)}; expected ({graph.num_events}, F), rows of events")
    x, trace = np.asarray(features).astype(np.float64), np.asarray(graph.trace_ids)
    row = np.asarray(graph.event_mask) & np.asarray(graph.trained_mask) & scored[trace]
    known = row & np.isfinite(x).all(axis=1)
    amount = np.zeros(len(x), outcome.dtype)
    if known.any():
        traces, of_row = np.unique(trace[known], return_inverse=True)
        with np.errstate(over="ignore"):  # a part beyond the type of rewards is infinite, which `finish` refuses
            amount[known] = _parts(x[known], of_row, outcome[traces].astype(np.float64), ridge)
    zeros = np.zeros_like(amount)
    return finish(
        graph,
        credit=amount,
        baseline=zeros,
        scale=zeros + 1,
        stderr=zeros + np.inf,
        reason=np.where(row, np.where(known, Reason.VALID, Reason.NO_EVIDENCE), Reason.NO_REWARD),
        unit="event",
        estimand="increment",
        source="spa_rl",
        centred=False,
        own_outcome=True,
    )


RESOLVED = 1e-5
"""Of the largest part, by how much one more Newton step along a single feature may change a part."""


def _parts(x: np.ndarray, trace: np.ndarray, outcome: np.ndarray, ridge: float) -> np.ndarray:
    """The parts of actions with features [N, F] in traces [N] of outcomes [T]: float64 [N]. NaN where not resolved.

    With P, the sums of features by trace, as U S Vᵀ, w is V S / (S² + ridge) Uᵀ R. No matrix is squared: PᵀP has no
    inverse in floats where features outnumber traces, and PPᵀ has none where traces outnumber features.
    """
    exponent = int(np.frexp(np.abs(x).max(initial=0))[1])  # a power of two changes no digit, and 1e200² is no float
    x = np.ldexp(x, -exponent)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        ridge = float(np.ldexp(np.float64(ridge), -2 * exponent))
        sums = np.zeros((len(outcome), x.shape[1]))
        np.add.at(sums, trace, x)
        left, size, right = np.linalg.svd(sums, full_matrices=False)
        # What a matrix of lower rank has beyond its rank is rounding, which a small ridge would leave to explode.
        real = size > size.max(initial=0) * np.finfo(np.float64).eps * max(sums.shape)
        w = right.T @ (np.where(real, size / np.where(real, size**2 + ridge, 1), 0) * (left.T @ outcome))
        amount: np.ndarray = x @ w
        # Features much smaller than others drown in rounding with their singular values: their slopes are then not 0.
        slope = sums.T @ (outcome - sums @ w) - ridge * w
        step = slope / ((sums**2).sum(0) + ridge)
        missed = np.abs(x).max(0, initial=0) * np.abs(step) > RESOLVED * np.abs(amount).max(initial=0)
    return np.full(len(x), np.nan) if missed.any() else amount
