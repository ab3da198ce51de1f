"""Advantages of several reward channels before they are added: how much each brings, and what pulls against another."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from graphs.errors import CreditError
from graphs.event_graph import Array
from graphs.segment import safe_divide, safe_sqrt

__all__ = ["variance_shares", "variance_weights", "without_conflicts"]


def without_conflicts(advantages: Array, valid: Array) -> jax.Array:
    """Each channel's advantages without the part that works against another channel (PCGrad's rule, on advantages).

        A_k ← A_k − min(0, A_k · A_j) / ‖A_j‖² A_j        for each other channel j in their order, A_j as given

    Products are over the valid actions of the batch. Two channels of which one praises what the other blames are left
    at right angles; channels that agree stay as they are. PCGrad projects gradients, in random order; here the numbers
    that weight the gradients are projected, and with two channels the order has no effect. Biased for the policy
    gradient of the sum, since a channel's number depends on all other traces of the batch.

    Args:
      advantages: float [C, E], of each channel, with its weight.
      valid: bool [E], the actions that have them all.

    Returns:
      float [C, E], 0 where not valid; their sum over channels is the advantage to train on.

    Raises:
      CreditError: other shapes.

    Reference: Yu et al. 2020, arXiv:2001.06782, formula.

    Examples:
      >>> import jax.numpy as jnp
      >>> without_conflicts(jnp.array([[1.0, 0.0], [-1.0, 1.0]]), jnp.array([True, True])).tolist()
      [[0.5, 0.5], [0.0, 1.0]]
    """
    given = _checked(advantages, valid)
    norms = jnp.sum(given * given, axis=1)

    def against(k: int, own: jax.Array) -> jax.Array:
        for j in range(given.shape[0]):
            if j != k:
                own = own - safe_divide(jnp.minimum(jnp.sum(own * given[j]), 0), norms[j]) * given[j]
        return own

    return jnp.stack([against(k, given[k]) for k in range(given.shape[0])])


def variance_shares(advantages: Array, valid: Array) -> jax.Array:
    """The part that each channel has in the variance of the sum: cov(A_k, Σ_j A_j) / var(Σ_j A_j), float [C].

    The shares add up to 1; one below 0 narrows the sum. All are NaN where the sum does not vary.

    Args:
      advantages, valid: as of `without_conflicts`.

    Examples:
      >>> import jax.numpy as jnp
      >>> variance_shares(jnp.array([[3.0, -3.0], [1.0, -1.0]]), jnp.array([True, True])).tolist()
      [0.75, 0.25]
    """
    centred = _centred(advantages, valid)
    whole = jnp.sum(centred, axis=0, keepdims=True)
    variance = jnp.sum(whole * whole)
    return jnp.where(variance > 0, safe_divide(jnp.sum(centred * whole, axis=1), variance), jnp.nan)


def variance_weights(advantages: Array, valid: Array, shares: Array) -> jax.Array:
    """Weights w_k = √share_k / sd(A_k), under which each channel varies by its share: float [C].

    Channels that do not vary get 0. Shares of the sum's variance are these only for channels that are uncorrelated;
    `variance_shares` of the weighted ones says what they are.

    Args:
      advantages, valid: as of `without_conflicts`.
      shares: float [C], not negative.

    Examples:
      >>> import jax.numpy as jnp
      >>> advantages = jnp.array([[3.0, -3.0], [2.0, -2.0]])
      >>> variance_weights(advantages, jnp.array([True, True]), jnp.array([0.25, 1.0])).tolist()
      [0.1667, 0.5]
    """
    centred = _centred(advantages, valid)
    deviation = safe_sqrt(safe_divide(jnp.sum(centred * centred, axis=1), jnp.sum(valid, dtype=centred.dtype)))
    return safe_divide(safe_sqrt(jnp.asarray(shares, deviation.dtype)), deviation)


def _checked(advantages: Array, valid: Array) -> jax.Array:
    """The advantages, 0 where not valid."""
    array, mask = jnp.asarray(advantages), jnp.asarray(valid)
    if array.ndim != 2 or mask.shape != array.shape[1:]:
        raise CreditError(f"advantages has shape {array.shape}, valid {mask.shape}; expected [C, E] and [E]")
    return jnp.where(mask[None], array, jnp.zeros_like(array))


def _centred(advantages: Array, valid: Array) -> jax.Array:
    """The advantages less their mean over the valid actions, 0 where not valid."""
    array, mask = _checked(advantages, valid), jnp.asarray(valid)[None]
    mean = safe_divide(jnp.sum(array, axis=1, keepdims=True), jnp.sum(mask, dtype=array.dtype))
    return jnp.where(mask, array - mean, jnp.zeros_like(array))
