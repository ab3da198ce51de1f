"""Orders in which a spawn forest can grow: counted, and drawn uniformly.

A linear extension of the forest is an order of its units in which every unit comes after its spawner. With h_i the size
of the subtree of i there are n! / Π h_i of them. One is drawn by exponential races: T_i = T_parent(i) + E_i / h_i with
E_i ~ Exp(1) independent, and the units sorted by T. Among available units i is next with probability h_i / Σ h, because
the races forget the past, and that is the fraction of the extensions that go on with i. Choosing uniformly among the
available is *not* uniform over extensions.

Forests are `parent` int [N], a root its own parent, as `EventGraph.agent_parent` restricted to a trace.
"""

from __future__ import annotations

import math

import jax
import numpy as np

from estimators.shapley.plan import Plan, walks_from_orders
from estimators.shapley.sampling import generator
from graphs.errors import CreditError
from graphs.event_graph import Array
from graphs.structure.host_ids import rows_of_each

__all__ = ["count_extensions", "extensions", "heights", "precedence_walks", "subtree_sizes"]


def heights(parent: Array) -> np.ndarray:
    """Spawns between a unit and its root, 0 for roots: int32 [N].

    Raises:
      CreditError: parents form a cycle or lie outside the array.
    """
    parent = np.asarray(parent)
    n = len(parent)
    if n and not ((parent >= 0) & (parent < n)).all():
        raise CreditError(f"parent has entries outside 0 to {n - 1}")
    depth: np.ndarray = (parent != np.arange(n)).astype(np.int32)
    jump = parent
    for _ in range(max(1, n).bit_length() + 1):
        depth, jump = depth + depth[jump], jump[jump]
    if (parent[jump] != jump).any():
        raise CreditError(
            f"parents of unit {int(np.flatnonzero(parent[jump] != jump)[0])} form a cycle; expected a forest"
        )
    return depth


def subtree_sizes(parent: Array) -> np.ndarray:
    """How many units descend from each, itself included: int32 [N]."""
    parent = np.asarray(parent)
    size = np.ones(len(parent), np.int32)
    by_depth = rows_of_each(heights(parent))
    for here in by_depth[:0:-1]:
        np.add.at(size, parent[here], size[here])
    return size


def count_extensions(parent: Array) -> int:
    """n! / Π h_i, exactly."""
    return math.factorial(len(parent)) // math.prod(int(h) for h in subtree_sizes(parent))


def extensions(key: jax.Array, parent: Array, count: int) -> np.ndarray:
    """Uniform linear extensions, as orders: int32 [count, N]; row w lists the units as they join.

    Vectorised over extensions: one addition per unit, in an order that has spawners first, and one sort. Arrival times
    are float32; ties, which rounding can make, go to the unit nearer the root, so no extension ever breaks precedence.
    """
    parent = np.asarray(parent)
    n = len(parent)
    near = np.argsort(heights(parent), kind="stable").astype(np.int32)
    time = generator(key).standard_exponential((n, count), dtype=np.float32)
    time /= subtree_sizes(parent)[near].astype(np.float32)[:, None]
    place = np.empty(n, np.int32)
    place[near] = np.arange(n, dtype=np.int32)
    for row, unit in enumerate(near.tolist()):
        if parent[unit] != unit:
            time[row] += time[place[parent[unit]]]
    orders: np.ndarray = near[_sorted_positions(np.ascontiguousarray(time.T))]
    return orders


def _sorted_positions(time: np.ndarray) -> np.ndarray:
    """argsort of each row of non-negative float32, equal ones by position: int64 [M, N].

    Positive floats order as their bits do, so bits and position fit one 64-bit integer: sorting those directly is
    several times faster than sorting indices.
    """
    keys = time.view(np.uint32).astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(time.shape[1], dtype=np.uint64)
    keys.sort(axis=1)
    return (keys & np.uint64(2**32 - 1)).astype(np.int64)


def precedence_walks(key: jax.Array, parent: Array, budget: int) -> Plan:
    """A plan of walks along uniform extensions; its solution is the precedence (Faigle–Kern) value of the forest.

    Raises:
      CreditError: `budget` does not reach for two extensions.
    """
    n = len(np.asarray(parent))
    number = (budget - 2) // max(n - 1, 1)
    if n < 2 or number < 2:
        raise CreditError(f"budget is {budget} for {n} units; expected n >= 2 and at least {2 * n} evaluations")
    return walks_from_orders(extensions(key, parent, number))
