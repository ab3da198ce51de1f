"""Owen values: shares where units come in blocks that join together, as agents within roles within a team.

All orders that keep blocks together are equally likely: blocks in any order, then the members of each (Owen 1977; for
several nested levels Winter 1989). The shares of a block sum to the Shapley value of the block in the game played by
blocks.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import jax
import numpy as np

from estimators.shapley.sampling import generator
from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = ["owen_exact", "owen_orders"]


def owen_orders(key: jax.Array, levels: Array, count: int) -> np.ndarray:
    """Uniform orders that keep the blocks of every level together: int32 [count, N], for `walks_from_orders`.

    Each block of each level draws a number; units are sorted by the numbers of their blocks, outermost first.

    Args:
      key: a typed JAX key.
      levels: int [L, N], the block of each unit at L nested levels, outermost first; L = 0 gives plain orders.
      count: how many.

    Raises:
      CreditError: a block of one level lies in two blocks of the level above.
    """
    levels = np.asarray(levels)
    number, n = levels.shape
    rng = generator(key)
    # Prepending the blocks above makes a block's lot its own; the check says that ids nest already.
    for upper, lower in itertools.pairwise(levels):
        for block in np.unique(lower):
            if len(np.unique(upper[lower == block])) > 1:
                raise CreditError(f"block {block} lies in several blocks of the level above; expected nested levels")
    keys = [rng.random((count, n))]
    for level in range(number - 1, -1, -1):
        blocks, index = np.unique(levels[level], return_inverse=True)
        keys.append(rng.random((count, len(blocks)))[:, index])
    return np.stack([np.lexsort([k[w] for k in keys]) for w in range(count)]).astype(np.int32)


def owen_exact(values: Array, blocks: Array) -> np.ndarray:
    """The Owen value of one level of blocks, from all 2^n values: [N], float64, or exact where values are `Fraction`s.

        φ_i = Σ_{Q blocks without i's} Σ_{T in i's block} w(|Q|, B) w(|T|, |b|) (v(Q ∪ T ∪ i) − v(Q ∪ T)),
        w(k, m) = k! (m − 1 − k)! / m!

    Args:
      values: [2^n], v of each coalition; entry c is that of the units whose bits are set in c. n ≤ 16.
      blocks: int [N], the block of each unit.

    Raises:
      CreditError: `values` has not 2^n entries, or n is above 16.
    """
    values, blocks = np.asarray(values), np.asarray(blocks)
    n = len(blocks)
    if n > 16 or values.shape != (2**n,):
        raise CreditError(f"values has shape {values.shape} for {n} units; expected (2**n,) with n <= 16")
    exact = values.dtype == object
    phi = np.zeros(n, object if exact else np.float64)
    masks = {block: sum(1 << int(i) for i in np.flatnonzero(blocks == block)) for block in np.unique(blocks).tolist()}
    for block, own in masks.items():
        others = [mask for other, mask in masks.items() if other != block]
        members = [i for i in range(n) if own >> i & 1]
        for unit in members:
            mates = [1 << i for i in members if i != unit]
            for outer in range(2 ** len(others)):
                base = sum(mask for k, mask in enumerate(others) if outer >> k & 1)
                for inner in range(2 ** len(mates)):
                    team = base + sum(bit for k, bit in enumerate(mates) if inner >> k & 1)
                    weight = _weight(outer.bit_count(), len(masks), exact) * _weight(
                        inner.bit_count(), len(members), exact
                    )
                    phi[unit] += weight * (values[team | 1 << unit] - values[team])
    return phi


def _weight(k: int, m: int, exact: bool) -> float | Fraction:
    numerator, denominator = math.factorial(k) * math.factorial(m - 1 - k), math.factorial(m)
    return Fraction(numerator, denominator) if exact else numerator / denominator
