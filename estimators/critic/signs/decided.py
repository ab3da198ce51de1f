"""Which increments differ from 0 by more than their spread explains, all actions of a trace taken together.

A critic gives one estimate to all actions of one place, in every trace. With a limit for each action alone, ± 1.96
spreads, an action without an effect is beyond it in one fit of twenty, and all traces of that fit then show its sign.
A trace has many actions, so the limit is Bonferroni's: the chance of a sign for any action without an effect in a trace
is 5 % or less, as far as spreads are the errors.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from graphs.event_graph import Array

__all__ = ["LEVEL", "decided_actions"]

LEVEL = 0.05
"""The chance of one or more actions without an effect being decided in a trace."""


def decided_actions(amount: Array, spread: Array, trace: Array, action_mask: Array) -> jax.Array:
    """Which actions have a sign: bool [E].

    |D̂| > z · spread, with 1 − 0.025 / n = Φ(z) and n the number of actions of the trace: 1.96 for one action, 3.0 for
    20, 3.3 for 60.

    Args:
      amount: float [E], increments.
      spread: float [E], how far members disagree, scaled so that ± 1.96 spreads are a 95 % interval; may be infinite.
      trace: int [E] in [0, E).
      action_mask: bool [E], the actions.

    Reference: Dunn 1961, Journal of the American Statistical Association 56, 52 (Bonferroni).

    Examples:
      >>> import numpy as np
      >>> amount, trace = np.array([2.0, 2.0, 2.6, 2.0]), np.array([0, 1, 1, 1])
      >>> decided_actions(amount, np.ones(4), trace, np.ones(4, bool)).tolist()
      [True, False, True, False]
    """
    acts, trace = jnp.asarray(action_mask), jnp.asarray(trace)
    count = jax.ops.segment_sum(acts.astype(jnp.int32), trace, num_segments=len(trace))[trace]
    limit = -jax.scipy.special.ndtri(LEVEL / 2 / jnp.maximum(count, 1).astype(jnp.float32))
    return acts & (jnp.abs(jnp.asarray(amount)) > limit * jnp.asarray(spread))
