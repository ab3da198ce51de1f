"""Coefficients of control variates, fitted by least squares on the steps before: β = argmin Σ (R − b − Σ β others)².

`estimators.control_advantage` fits them on other groups of the batch, which takes 64 traces; the batches here are
smaller. A coefficient of earlier steps does not depend on the traces that it is used for, so that the policy gradient
stays unbiased.

Legend: S sources of claims, n traces, D decisions.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from estimators.composition.control import Control

__all__ = ["CoefficientSums", "Decided", "fresh_coefficients", "learn_coefficients", "solved_coefficients"]

MEMORY = 0.95
"""What is left of earlier sums after a step."""


class Decided(Protocol):
    """The part of a rollout that this module reads."""

    @property
    def reward(self) -> jax.Array:
        """float [n]."""
        ...

    def of_decisions(self, events: jax.Array) -> jax.Array:
        """Numbers of events as numbers of decisions, [n, D]."""
        ...


class CoefficientSums(NamedTuple):
    """Sums over actions of products of the other actions' claims, [S, S], and of these with R − b, [S]."""

    gram: jax.Array
    moment: jax.Array


def fresh_coefficients(sources: int) -> CoefficientSums:
    """The sums before the first step.

    Examples:
      >>> fresh_coefficients(2).gram.shape
      (2, 2)

    Args:
      sources: S.
    """
    return CoefficientSums(jnp.zeros((sources, sources)), jnp.zeros(sources))


def solved_coefficients(sums: CoefficientSums) -> jax.Array:
    """β of each source, float [S], between 0 and 1; 0 before the first step.

    Examples:
      >>> import jax.numpy as jnp
      >>> solved_coefficients(CoefficientSums(jnp.eye(1), jnp.full(1, 0.5)))
      Array([0.5], dtype=float32)

    Args:
      sums: of earlier steps.
    """
    size = jnp.diagonal(sums.gram) * 1e-3
    ridge = jnp.diag(jnp.where(size > 0, size, 1))
    factor = jnp.linalg.cholesky(sums.gram + ridge)  # positive: no pivots, which XLA finds by a loop
    return jnp.clip(jax.scipy.linalg.cho_solve((factor, True), sums.moment), 0, 1)


def learn_coefficients(sums: CoefficientSums, rollout: Decided, composed: Control) -> CoefficientSums:
    """The sums after a step.

    Args:
      sums: before it.
      rollout: the traces of the step.
      composed: their advantages; b, and the other actions' claims of each source, are read.
    """
    baseline = rollout.of_decisions(jnp.where(composed.credit.valid, composed.credit.baseline, jnp.nan))[:, :1]
    left = jnp.where(jnp.isfinite(baseline), rollout.reward[:, None] - baseline, 0)
    table = jnp.stack([rollout.of_decisions(amount) for amount in composed.others])
    # XLA multiplies long thin matrices slowly on a CPU, and sums over two axes, too.
    gram = jnp.stack([jnp.stack([jnp.vdot(row, other) for other in table]) for row in table])
    return CoefficientSums(
        MEMORY * sums.gram + gram, MEMORY * sums.moment + jnp.sum(table.sum(axis=2) * left.T, axis=1)
    )
