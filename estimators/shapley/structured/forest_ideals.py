"""The precedence value of a spawn forest, exactly, by dynamic programming over its ideals.

An ideal is a team that can exist: with each unit, its spawner. The precedence value (Faigle & Kern 1992) is the mean of
what a unit adds over all orders in which the team can grow:

    φ_i = Σ_{ideals I, i can join} e(I) e(P∖I∖i) / e(P) (v(I + i) − v(I)),   e = number of linear extensions.

What remains of a forest after an ideal is again a forest, with the same subtree sizes, so e is a product each time and
the cost is O(n) per ideal. A path of n units has n + 1 ideals, a star 2^(n−1) + 1.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from estimators.shapley.structured.growth_orders import heights, subtree_sizes
from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = ["ideals", "precedence_exact"]


def ideals(parent: Array, *, limit: int = 65_536) -> np.ndarray:
    """All teams that can exist, by size: bool [C, N]. The coalitions to evaluate for `precedence_exact`.

    Raises:
      CreditError: there are more than `limit`.
    """
    parent = np.asarray(parent)
    n = len(parent)
    below = 1 + np.zeros(n, object)  # f(i) = ideals of the subtree of i that hold i; 1 + f choices with the empty one
    total = 1
    for unit in np.argsort(-heights(parent), kind="stable"):
        if parent[unit] == unit:
            total *= 1 + below[unit]
        else:
            below[parent[unit]] *= 1 + below[unit]
    if total > limit:
        raise CreditError(f"the forest has {total} ideals; expected at most {limit} (use precedence_walks)")
    closed = np.zeros((1, n), bool)
    for unit in np.argsort(heights(parent), kind="stable"):
        can = closed if parent[unit] == unit else closed[closed[:, parent[unit]]]
        joined = can.copy()
        joined[:, unit] = True
        closed = np.concatenate([closed, joined])
    return closed[np.lexsort((*closed.T, closed.sum(1)))]


def precedence_exact(parent: Array, coalitions: Array, values: Array) -> np.ndarray:
    """The precedence value from the values of all ideals: [N], float64, or exact where values are `Fraction`s.

    Args:
      parent: int [N], a root its own.
      coalitions: bool [C, N], from `ideals`, in any order.
      values: [C], floats or an object array of exact numbers.

    Raises:
      CreditError: a coalition is no ideal, or an ideal is missing.
    """
    parent, coalitions, values = np.asarray(parent), np.asarray(coalitions, bool), np.asarray(values)
    n = len(parent)
    heights(parent)  # refuses cycles
    size = subtree_sizes(parent).astype(object)
    at = {row.tobytes(): c for c, row in enumerate(coalitions)}
    total = math.factorial(n) // math.prod(size)
    phi = np.zeros(n, object if values.dtype == object else np.float64)
    for c, row in enumerate(coalitions):
        if not row[parent][row].all():
            raise CreditError(f"coalition {c} holds a unit without its spawner; expected the ideals of the forest")
        inside = np.flatnonzero(row)
        # Within an ideal a unit's subtree is what of it has joined; outside, subtrees are whole.
        local = subtree_sizes(np.searchsorted(inside, parent[inside]))
        ways = math.factorial(len(inside)) // math.prod(int(h) for h in local)
        rest = math.prod(size[~row])
        for unit in np.flatnonzero(~row & (row[parent] | (parent == np.arange(n)))):
            grown = row.copy()
            grown[unit] = True
            to = at.get(grown.tobytes())
            if to is None:
                raise CreditError(f"the ideal {np.flatnonzero(grown).tolist()} is missing; expected all ideals")
            onwards = math.factorial(n - len(inside) - 1) * size[unit] // rest
            phi[unit] += _fraction(ways * onwards, total, values) * (values[to] - values[c])
    return phi


def _fraction(numerator: int, denominator: int, like: np.ndarray) -> float | Fraction:
    return Fraction(numerator, denominator) if like.dtype == object else numerator / denominator
