"""A total split from the top down: by shares of a coalition game, by scores, by budgets, or evenly.

    x_child = x_parent w_child / Σ_siblings w          scores and budgets, w >= 0
    x_child = φ_child + (x_parent − Σ φ) / n           shares of n siblings: Owen shares of nested unions stay as is

An amount whose units all have weight 0 is given to no unit. Below the finest level that is
weighed, a unit's amount is divided evenly among its actions.

A split states who is paid by a rule, not what changed the expected outcome. It is a partition and no advantage, except
for the even split of R − b.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from graphs.event_graph import Array
from graphs.segment import safe_divide, segment_count, segment_sum

__all__ = ["Weights", "split_down"]


class Weights(NamedTuple):
    """How the units of one level divide what their parents got.

    Attributes:
      weight: float [N]; not negative, unless they are shares.
      unit_mask: bool [N], the units among which to divide.
      parent: int [N], the unit of the level above, or the trace.
    """

    weight: Array
    unit_mask: Array
    parent: Array


@functools.partial(jax.jit, static_argnames=("additive",))
def split_down(levels: tuple[Weights, ...], total: Array, additive: tuple[bool, ...]) -> jax.Array:
    """The share of each unit of the last level in the totals, float [N]; units outside `unit_mask` get exactly 0.

    Args:
      levels: coarsest first; the parents of the first are traces.
      total: float [T].
      additive: for each level, whether its weights are shares: amounts in units of reward. Of the first level they are
        taken as they are, and what they leave of the total goes to no unit.

    Examples:
      >>> import numpy as np
      >>> agents = Weights(np.float32([3, 1]), np.array([True, True]), np.array([0, 0]))
      >>> print(split_down((agents,), np.float32([1.0]), (False,)))
      [0.75 0.25]
    """
    amount, first = jnp.asarray(total), True
    for (weight, unit_mask, parent), shares in zip(levels, additive, strict=True):
        num = amount.shape[0]
        weight = jnp.where(unit_mask, jnp.asarray(weight, amount.dtype), 0)
        whole = segment_sum(weight, parent, num)
        if shares and first:
            amount = weight
        elif shares:
            count = segment_count(parent, num, jnp.asarray(unit_mask), amount.dtype)
            amount = weight + safe_divide(amount - whole, count)[parent]
        else:
            amount = weight * safe_divide(amount, whole)[parent]
        amount, first = jnp.where(unit_mask, amount, 0), False
    return amount
