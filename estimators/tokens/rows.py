"""Below events: numbers per row spread over its tokens, and the methods whose formula runs over tokens.

A trainer holds N rows of L token positions with a response mask, bool [N, L]: True for tokens that the policy
generated. Everything here reads tokens under the mask only, by selection, so that NaN elsewhere is inert, and is
exactly 0 outside it.

Event-level methods need nothing of this file but `spread`: `spread(rows.gather(credit.advantage), mask)`. Two of them
weigh rows by their tokens when they normalise over the batch (`reinforce_pp`, `reinforce_pp_baseline` in
`estimators.baselines.agentwise`); given `tokens`, the number of True per row, their spread numbers are those of the
token form.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from estimators.compared_ids import before_compiling, numbered
from graphs.errors import ArrayTypeError, CreditError
from graphs.event_graph import Array
from graphs.floats import floating
from graphs.levels import pair_ids
from graphs.segment import segment_sum

__all__ = ["gae", "masked_whiten", "per_rollout_mean", "reinforce_pp", "remax", "spread", "token_returns"]


@jax.jit
def spread(row_values: Array, mask: Array) -> jax.Array:
    """One number per row on each of its tokens: float [N] to [N, L], 0 outside `mask`.

    Args:
      row_values: float [N].
      mask: bool [N, L], tokens that the policy generated.

    Raises:
      CreditError: `row_values` is not floating, `mask` not bool, or their shapes do not fit.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens import rows
      >>> mask = np.array([[True, True], [True, False]])
      >>> rows.spread(np.array([0.5, -1.0]), mask).tolist()
      [[0.5, 0.5], [-1.0, 0.0]]
    """
    values = floating("row_values", row_values)
    mask = _response_mask(mask)
    if values.shape != mask.shape[:1]:
        raise CreditError(f"row_values has shape {values.shape}; expected {mask.shape[:1]}, one for each row")
    return jnp.where(mask, values[:, None], jnp.zeros((), values.dtype))


@jax.jit
def masked_whiten(x: Array, mask: Array, eps: float | Array = 1e-8, ddof: int | Array = 1) -> jax.Array:
    """Shift and scale to mean 0 and variance 1 over all tokens under the mask: float [N, L].

    y = (x − m) / sqrt(v + eps), m = Σ x / n and v = Σ (x − m)² / (n − ddof) over the n tokens of the whole batch.
    Values that are all equal give exactly 0. With fewer than two tokens there is no variance and all is 0; verl raises
    there. `ddof` is 1 in verl and TRL, 0 in C3.

    Sums are taken in pairs and the mean in two passes, so that one far value costs the others no digits.

    Args:
      x: float [N, L].
      mask: bool [N, L], tokens that count.
      eps: added to the variance.
      ddof: 1 divides the squares by n − 1, 0 by n.

    Raises:
      ArrayTypeError: values that are not floating, or a mask that is not bool.
      CreditError: shapes that do not fit.

    Reference: verl `masked_whiten` (`torch_functional.py`), whose Bessel factor counts the mask; TRL's is the same.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens import rows
      >>> mask = np.array([[True, True], [True, False]])
      >>> rows.masked_whiten(np.array([[1.0, 2.0], [3.0, 9.0]]), mask).tolist()
      [[-1.0, 0.0], [1.0, 0.0]]
    """
    x, mask = _tokens("x", x, mask)
    count = jnp.sum(mask).astype(x.dtype)
    n = jnp.maximum(count, 1)

    def less(values: jax.Array, centre: jax.Array) -> jax.Array:
        return jnp.where(mask, values - centre, jnp.zeros_like(values))

    # Relative to one of them: a float mean of equal values is not that value, and 1 / sqrt(eps) would enlarge the rest.
    # A second pass takes away what the sum of the first lost, where that one is far from the others.
    reference = x.ravel()[jnp.argmax(mask.ravel())]
    deviation = less(x, reference + _sum(less(x, reference)) / n)
    deviation = less(deviation, _sum(deviation) / n)
    variance = _sum(deviation * deviation) / jnp.maximum(n - ddof, 1)
    return jnp.where(count > 1, deviation / jnp.sqrt(variance + eps), jnp.zeros_like(x))


@jax.jit
def token_returns(token_rewards: Array, mask: Array, discount: float | Array = 1.0) -> jax.Array:
    """Discounted sum of the rewards from each token on, up to the end of its stretch of the mask: float [N, L].

    g_t = r_t + discount · g_{t+1} under the mask and 0 outside it. A gap in the mask (a tool's answer) ends the sum, as
    in verl, whose "reset after EOS" acts at every position outside the mask.

    Args:
      token_rewards: float [N, L].
      mask: bool [N, L], tokens that the policy generated.
      discount: of each later token.

    Raises:
      ArrayTypeError: values that are not floating, or a mask that is not bool.
      CreditError: shapes that do not fit.

    Reference: verl `compute_reinforce_plus_plus_outcome_advantage`, golden `drmas_rfpp`. As an associative scan: log L
    steps on an accelerator instead of L.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens import rows
      >>> mask = np.array([[True, True], [True, False]])
      >>> rows.token_returns(np.array([[0.0, 1.0], [2.0, 0.0]]), mask, 0.5).tolist()
      [[0.5, 1.0], [2.0, 0.0]]
    """
    rewards, mask = _tokens("token_rewards", token_rewards, mask)
    factor = jnp.where(mask, jnp.asarray(discount, rewards.dtype), jnp.zeros_like(rewards))

    def compose(later: tuple[jax.Array, jax.Array], sooner: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return sooner[0] * later[0], sooner[1] + sooner[0] * later[1]

    returns: jax.Array = jax.lax.associative_scan(compose, (factor, rewards), reverse=True, axis=1)[1]
    return returns


@jax.jit
def gae(
    token_rewards: Array,
    values: Array,
    mask: Array,
    discount: float | Array = 1.0,
    lambda_: float | Array = 1.0,
    bootstrap: Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Generalised advantage estimation over the tokens under the mask: advantages and returns, float [N, L] each.

    δ_t = r_t + γ V_next − V_t and A_t = δ_t + γλ A_next, where the next token is the next one under the mask, so that
    gaps (a tool's answer) and padding are passed over; V and A behind the last are 0. Returns are A + V. Neither is
    whitened: see `masked_whiten`. `discount` and `lambda_` are numbers.

    Args:
      token_rewards, values: float [N, L].
      mask: bool [N, L].
      discount, lambda_: γ and λ, numbers.
      bootstrap: float [N], V behind the last token of a row that was cut off; 0 where the row ended.

    Raises:
      ArrayTypeError: values that are not floating, or a mask that is not bool.
      CreditError: shapes that do not fit.

    Reference: Schulman et al. 2016, arXiv:1506.02438. Golden `verl_gae` where a row has no padding, and all of
    `marft_token_gae`; how old verl treats padding is `estimators.baselines.released.verl_gae_tokens`.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens import rows
      >>> mask = np.array([[True, True], [True, False]])
      >>> rewards, values = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[0.25, 0.5], [1.0, 0.0]])
      >>> rows.gae(rewards, values, mask)[0].tolist()
      [[0.75, 0.5], [1.0, 0.0]]
    """
    rewards, mask = _checked("token_rewards", token_rewards, mask)
    value = _checked("values", values, mask)[0].astype(rewards.dtype)
    dtype = rewards.dtype
    gamma, keep = jnp.asarray(discount, dtype), jnp.asarray(discount * lambda_, dtype)

    def step(
        later: tuple[jax.Array, jax.Array], now: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        (ahead, total), (reward, held, in_mask) = later, now
        total = jnp.where(in_mask, reward + gamma * ahead - held + keep * total, total)
        return (jnp.where(in_mask, held, ahead), total), jnp.where(in_mask, total, jnp.zeros_like(total))

    # All rows step by step: one pass over the block, where an associative scan takes several. What is not under the
    # mask is passed over on the way: to clear it before or behind the scan takes more passes, some across the rows.
    none = jnp.zeros(rewards.shape[0], dtype)
    behind = none if bootstrap is None else floating("bootstrap", bootstrap).astype(dtype)
    if behind.shape != none.shape:
        raise CreditError(f"bootstrap has shape {behind.shape}; expected {none.shape}, one for each row")
    _, totals = jax.lax.scan(step, (behind, none), (rewards.T, value.T, mask.T), reverse=True)
    advantage = totals.T
    return advantage, jnp.where(mask, advantage + value, jnp.zeros_like(value))


@jax.jit
def reinforce_pp(token_rewards: Array, mask: Array, discount: float | Array = 1.0) -> jax.Array:
    """REINFORCE++: discounted returns of tokens, whitened over the batch: float [N, L].

    Args:
      token_rewards: float [N, L].
      mask: bool [N, L], tokens that the policy generated.
      discount: of each later token.

    Raises:
      ArrayTypeError: values that are not floating, or a mask that is not bool.
      CreditError: shapes that do not fit.

    Reference: Hu 2025, arXiv:2501.03262; verl `compute_reinforce_plus_plus_outcome_advantage`, golden `drmas_rfpp`.
    At discount 1 with the reward on a row's last token it is `estimators.reinforce_pp` with `tokens`.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens import rows
      >>> mask = np.array([[True, True], [True, False]])
      >>> rows.reinforce_pp(np.array([[0.0, 1.0], [2.0, 0.0]]), mask).tolist()
      [[-0.5774, -0.5774], [1.1547, 0.0]]
    """
    whitened: jax.Array = masked_whiten(token_returns(token_rewards, mask, discount), mask)
    return whitened


@jax.jit
def remax(token_rewards: Array, greedy_reward: Array, mask: Array) -> jax.Array:
    """ReMax: sum of the rewards from each token to the end of the row, minus the greedy run's reward: float [N, L].

    A_t = Σ_{s ≥ t} r_s − greedy_reward. Gaps in the mask do not end the sum, unlike in `token_returns`.

    Args:
      token_rewards: float [N, L].
      greedy_reward: float [N], reward of a separate greedy run on the row's task.
      mask: bool [N, L].

    Raises:
      ArrayTypeError: values that are not floating, or a mask that is not bool.
      CreditError: shapes that do not fit.

    Reference: Li et al. 2023, arXiv:2310.10505; verl `compute_remax_outcome_advantage`, golden `verl_remax` (which
    leaves the returns in gaps; here they are 0).

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens import rows
      >>> mask = np.array([[True, True], [True, False]])
      >>> rows.remax(np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([0.5, 0.5]), mask).tolist()
      [[0.5, 0.5], [1.5, 0.0]]
    """
    rewards, mask = _tokens("token_rewards", token_rewards, mask)
    greedy = floating("greedy_reward", greedy_reward)
    if greedy.shape != mask.shape[:1]:
        raise CreditError(f"greedy_reward has shape {greedy.shape}; expected {mask.shape[:1]}, one for each row")
    to_go = jnp.flip(jnp.cumsum(jnp.flip(rewards, 1), 1), 1)
    return jnp.where(mask, to_go - greedy[:, None], jnp.zeros_like(rewards))


@before_compiling(trace_of_row=functools.partial(numbered, absent=False))
@jax.jit
def per_rollout_mean(advantages: Array, trace_of_row: Array, mask: Array) -> jax.Array:
    """Agent Lightning's loss weights: each trace counts once, its tokens share equally: float [N, L].

    A / max(n_u · N, 1), with n_u the tokens of all rows of the row's trace u and N the rows that have a token. The sum
    of these times the tokens' losses is the loss. The code divides by rows, not by traces.

    Args:
      advantages: float [N, L].
      trace_of_row: int [N], any integers; rows of a trace share one.
      mask: bool [N, L].

    Raises:
      ArrayTypeError: values that are not floating, or a mask that is not bool.
      CreditError: shapes that do not fit.

    Reference: Agent Lightning `per_rollout_loss.py`, golden `agl_rollout_level`, output `per_rollout_mean_adv`.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens import rows
      >>> mask = np.array([[True, True], [True, False]])
      >>> rows.per_rollout_mean(np.ones((2, 2)), np.array([0, 0]), mask).tolist()
      [[0.1667, 0.1667], [0.1667, 0.0]]
    """
    advantages, mask = _tokens("advantages", advantages, mask)
    trace = jnp.asarray(trace_of_row)
    rows = mask.shape[0]
    if trace.shape != (rows,):
        raise CreditError(f"trace_of_row has shape {trace.shape}; expected ({rows},), one for each row")
    dense = pair_ids(trace, jnp.zeros_like(trace), jnp.ones(rows, bool))
    tokens = jnp.sum(mask, axis=1).astype(advantages.dtype)
    of_trace = segment_sum(tokens, dense, rows)[dense]
    trained = jnp.sum(tokens > 0).astype(advantages.dtype)
    weighted: jax.Array = advantages / jnp.maximum(of_trace * trained, 1)[:, None]
    return weighted


def _sum(x: jax.Array) -> jax.Array:
    """Σ x in halves that are added pairwise: the rounding grows with the logarithm of the number of terms."""
    flat = x.ravel()
    while flat.shape[0] > 1:
        half = flat.shape[0] // 2
        flat = (flat[:half] + flat[half : 2 * half]) if flat.shape[0] % 2 == 0 else jnp.append(flat, 0)
    return jnp.sum(flat)


def _tokens(name: str, values: Array, mask: Array) -> tuple[jax.Array, jax.Array]:
    """Values per token as float32 or wider, 0 outside the mask, and the mask."""
    values, mask = _checked(name, values, mask)
    return jnp.where(mask, values, jnp.zeros_like(values)), mask


def _checked(name: str, values: Array, mask: Array) -> tuple[jax.Array, jax.Array]:
    """Values per token as float32 or wider, whatever they are outside the mask, and the mask."""
    values, mask = floating(name, values), _response_mask(mask)
    if values.shape != mask.shape:
        raise CreditError(f"{name} has shape {values.shape}; expected {mask.shape}, that of mask")
    return values, mask


def _response_mask(mask: Array) -> jax.Array:
    array: jax.Array = jnp.asarray(mask)
    if array.dtype != jnp.bool_:
        raise ArrayTypeError(f"mask has dtype {array.dtype}; expected bool (convert it, e.g. mask > 0)")
    if array.ndim != 2:
        raise CreditError(f"mask has shape {array.shape}; expected two axes, rows and token positions")
    return array
