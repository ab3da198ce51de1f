"""Loss aggregation: the weight of each token's credit in the loss."""

from __future__ import annotations

import functools
from typing import Literal, get_args

import jax
import jax.numpy as jnp

from graphs.errors import CreditError
from graphs.event_graph import Array
from graphs.floats import at_least_float32
from graphs.segment import safe_divide

__all__ = ["Aggregation", "aggregate_loss"]

Aggregation = Literal["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


@functools.partial(jax.jit, static_argnames=("mode",))
def aggregate_loss(
    token_loss: Array,
    mask: Array,
    *,
    mode: Aggregation = "token-mean",
    sequences: int | Array | None = None,
) -> jax.Array:
    """One loss from those of tokens, by verl's names: float [N, L] and bool [N, L] to a number, in float32 or wider.

        token-mean               Σ loss / tokens: long rows weigh more
        seq-mean-token-sum       Σ loss / N
        seq-mean-token-mean      (Σ_i mean over the row's tokens) / N: a token of a long row weighs less
        seq-mean-token-sum-norm  Σ loss / L, with L the padded width

    Args:
      token_loss: float [N, L].
      mask: bool [N, L], tokens that the policy generated.
      mode: one of the four names.
      sequences: in the two modes that divide by N, what to divide by instead. MATPO divides by its planners' rows, so
        that adding workers does not shrink a task's loss; none counts as one.

    Raises:
      CreditError: `mask` is not bool [N, L], or an unknown mode.

    Reference: verl `agg_loss` in Dr. MAS at 19c632b and MATPO's at 3c41d62, executed, goldens `verl_agg_loss` and
    `matpo_agg_loss_num_valid`. ROLL uses two of the names for other things.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens.losses import aggregate_loss
      >>> loss, mask = np.array([[1.0, 1.0], [4.0, 0.0]]), np.array([[True, True], [True, False]])
      >>> float(aggregate_loss(loss, mask)), float(aggregate_loss(loss, mask, mode="seq-mean-token-mean"))
      (2.0, 2.5)
    """
    loss, mask = at_least_float32(token_loss), jnp.asarray(mask)
    if mask.dtype != jnp.bool_ or mask.shape != loss.shape or mask.ndim != 2:
        raise CreditError(f"mask is {mask.dtype} {mask.shape}; expected bool {loss.shape}, rows and token positions")
    loss = jnp.where(mask, loss, jnp.zeros_like(loss))
    rows = jnp.sum(loss, axis=1)
    tokens = jnp.sum(mask, axis=1).astype(loss.dtype)
    count = jnp.maximum(jnp.asarray(loss.shape[0] if sequences is None else sequences, loss.dtype), 1)
    if mode == "token-mean":
        return safe_divide(jnp.sum(rows), jnp.sum(tokens))
    if mode == "seq-mean-token-sum":
        return jnp.sum(rows) / count
    if mode == "seq-mean-token-mean":
        return jnp.sum(safe_divide(rows, tokens)) / count
    if mode == "seq-mean-token-sum-norm":
        return jnp.sum(rows) / loss.shape[1]
    raise CreditError(f"mode is {mode!r}; expected one of {', '.join(get_args(Aggregation))}")
