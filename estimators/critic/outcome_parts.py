"""SPA-RL: a part of the outcome for each action, learned so that the parts of a trace add up to its outcome."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, check_reward, finish
from estimators.options import checked_options
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import segment_sum

__all__ = ["outcome_parts"]


@checked_options
@jax.jit
def outcome_parts(graph: EventGraph, reward: Array, *, features: Array, ridge: float | Array = 1e-3) -> Credit:
    """The parts of the outcome that a linear model gives to actions, fitted so that they add up to it.

        c_e = w·x_e        w = argmin Σ_i (R_i − Σ_e w·x_e)² + ridge |w|²

    x_e are the features of action e, and the sum over e runs over the actions of trace i. SPA-RL trains a language
    model with a linear head on this loss by gradient steps; on given features the head has a closed form. It is a
    learned partition: the parts of a trace add up to the outcome that the model predicts, and a ledger shows the rest
    as unexplained. No error is known. The parts have no mean of 0 under the policy, and each trace is in its own fit:
    biased for the policy gradient. No |c| has a bound but that of its features.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none, which is left out of the fit.
      features: float [E, F], such as an embedding of each action; a column of ones is not added. An action with a
        number that is not finite has no part.
      ridge: the weight of |w|²; above 0, since features of few traces determine no w.

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
    outcome, scored = check_reward(graph, reward)
    if np.ndim(features) != 2 or np.shape(features)[0] != graph.num_events:
        raise CreditError(f"features has shape {np.shape(features)}; expected ({graph.num_events}, F), rows of events")
    trace = jnp.asarray(graph.trace_ids)
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    known = row & jnp.isfinite(features).all(axis=1)
    x = jnp.where(known[:, None], features, 0).astype(outcome.dtype)
    phi = segment_sum(x, trace, graph.num_traces)
    gram = phi.T @ phi + ridge * jnp.eye(x.shape[1], dtype=x.dtype)
    factor = jax.scipy.linalg.cho_factor(gram)
    w = jax.scipy.linalg.cho_solve(factor, phi.T @ jnp.where(scored, outcome, 0))
    amount = x @ w
    return finish(
        graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=jnp.full_like(amount, jnp.inf),
        reason=jnp.where(row, jnp.where(known, Reason.VALID, Reason.NO_EVIDENCE), Reason.NO_REWARD),
        unit="event",
        estimand="increment",
        source="spa_rl",
        centred=False,
        own_outcome=True,
    )
