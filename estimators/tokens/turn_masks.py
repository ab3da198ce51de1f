"""Where an agent's turns stand among the tokens of a dialogue: masks from ids, with no loop over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = ["TurnTokens", "turn_tokens"]


class TurnTokens(NamedTuple):
    """Tokens of a dialogue by whose they are; arrays [N, L].

    Attributes:
      response: bool, what the policy generated: its turns without their headers, end tokens included.
      turn_end: bool, the last token of each of its turns.
      after_prompt: bool, everything from the first generated token on, other people's words included.
      rewards: float, the reward of each turn at its last token.
    """

    response: jax.Array
    turn_end: jax.Array
    after_prompt: jax.Array
    rewards: jax.Array


def turn_tokens(ids: Array, turn_rewards: Array, *, start: int, end: int, header: Sequence[int]) -> TurnTokens:
    """Find the turns that begin with `header`, and lay their rewards on their last tokens.

    A turn runs from a `start` token to the first `end` token after it. One that a row breaks off ends with the row, at
    its last column. Tokens between an end and the next start belong to no turn.

    Args:
      ids: int [N, L], tokens.
      turn_rewards: float [N, K], rewards of the policy's turns in order; those beyond the turns of a row are not used.
      start, end: tokens that begin and end anyone's turn.
      header: the tokens with which a turn of the policy begins, the first of them `start`.

    Raises:
      CreditError: the header does not begin with `start`, or shapes do not fit.

    Reference: MARSHAL `env_manager.py` `get_masks_and_scores` at 2db0222, executed, golden `marshal_masks` (in which
    every turn is closed, and nothing stands between turns).

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens.turn_masks import turn_tokens
      >>> ids = np.array([[1, 7, 5, 2, 1, 8, 5, 2]])  # 1 begins a turn, 2 ends it; 7 is the policy, 8 another speaker
      >>> turn_tokens(ids, np.array([[0.5]]), start=1, end=2, header=[1, 7]).rewards.tolist()
      [[0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    ids, rewards = jnp.asarray(ids), jnp.asarray(turn_rewards)
    if not header or header[0] != start:
        raise CreditError(f"header is {list(header)}; expected it to begin with start, {start}")
    if ids.ndim != 2 or rewards.ndim != 2 or rewards.shape[0] != ids.shape[0]:
        raise CreditError(f"ids {ids.shape} and turn_rewards {rewards.shape}; expected [N, L] and [N, K]")
    n, width = ids.shape
    place = jnp.arange(width, dtype=jnp.int32)[None]
    matches = jnp.ones((n, width), bool)
    for offset, token in enumerate(header):
        ahead = jnp.concatenate([ids[:, offset:], jnp.full((n, offset), -1, ids.dtype)], axis=1)
        matches = matches & (ahead == token)
    none = jnp.full((n, width), -1, jnp.int32)
    began = jax.lax.cummax(jnp.where(ids == start, place, none), axis=1)  # of the turn that a token is in
    policy_turn = (began >= 0) & jnp.take_along_axis(matches, jnp.maximum(began, 0), axis=1)
    ended = jax.lax.cummax(jnp.where(ids == end, place, none), axis=1)
    before = jnp.concatenate([none[:, :1], ended[:, :-1]], axis=1)  # the last end strictly before the token
    response = policy_turn & (place - began >= len(header)) & (before < began)
    turn_end = response & ((ids == end) | (place == width - 1))
    number = jnp.cumsum(turn_end.astype(jnp.int32), axis=1, dtype=jnp.int32) - 1
    amount = jnp.take_along_axis(rewards, jnp.clip(number, 0, rewards.shape[1] - 1), axis=1)
    earned = turn_end & (number < rewards.shape[1])
    return TurnTokens(
        response,
        turn_end,
        jnp.cumsum(response.astype(jnp.int32), axis=1, dtype=jnp.int32) > 0,
        jnp.where(earned, amount, jnp.zeros_like(amount)),
    )
