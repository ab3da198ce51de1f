"""Random games of known Shapley values that have interactions: what estimators of shares are compared on.

Each function draws a game of n units. Terms are unanimity games, [T within S], or leaves of trees, [P within S, Q
outside]: such a leaf gives (p − 1)! q!/(p + q)! to each unit of P and −p! (q − 1)!/(p + q)! to each of Q.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from graphs.worlds.games import FAMILIES, Game

Leaf = tuple[Sequence[int], Sequence[int], float]


def of_terms(name: str, n: int, terms: Sequence[Sequence[int]], worth: np.ndarray) -> Game:
    """v(S) = Σ_T c_T [T within S], φ_i = Σ_{T with i} c_T / |T|."""
    phi = np.zeros(n)
    of_size: dict[int, list[int]] = {}
    for k, term in enumerate(terms):
        phi[list(term)] += worth[k] / len(term)
        of_size.setdefault(len(term), []).append(k)
    parts = [(np.array([terms[k] for k in group]).T, worth[group]) for group in of_size.values()]

    def value(s: np.ndarray) -> np.ndarray:
        x, out = s.astype(np.float64), np.zeros(len(s))
        for units, c in parts:
            for block in range(0, len(s), 256):  # of rows, so that 20,000 terms fit into memory
                product = x[block : block + 256][:, units[0]]
                for unit in units[1:]:
                    product = product * x[block : block + 256][:, unit]
                out[block : block + 256] += product @ c
        return out

    return Game(name, value, phi)


def order_three(n: int, rng: np.random.Generator) -> Game:
    """All terms of one, two and three units, standard normal."""
    terms = [t for k in (1, 2, 3) for t in itertools.combinations(range(n), k)]
    return of_terms("order three", n, terms, rng.normal(size=len(terms)))


def few_triples(n: int, rng: np.random.Generator) -> Game:
    """Each unit, 2n random pairs and 2n random triples, standard normal."""
    terms = _singles(n) + _random_terms(n, 2 * n, 2, rng) + _random_terms(n, 2 * n, 3, rng)
    return of_terms("few triples", n, terms, rng.normal(size=len(terms)))


def sparse(n: int, rng: np.random.Generator) -> Game:
    """Each unit and 2n random terms of two to five units, standard normal."""
    terms = _singles(n) + [t for _ in range(2 * n) for t in _random_terms(n, 1, int(rng.integers(2, 6)), rng)]
    return of_terms("sparse", n, terms, rng.normal(size=len(terms)))


def spotlight(n: int, rng: np.random.Generator) -> Game:
    """Four units with all their interactions, twenty times as strong as 2n pairs and 2n triples of all units."""
    lit = rng.choice(n, 4, replace=False)
    strong = [t for k in range(1, 5) for t in itertools.combinations(lit.tolist(), k)]
    weak = _random_terms(n, 2 * n, 2, rng) + _random_terms(n, 2 * n, 3, rng)
    scale = np.concatenate([np.full(len(strong), 2.0), np.full(n, 0.2), np.full(len(weak), 0.1)])
    return of_terms("spotlight", n, strong + _singles(n) + weak, scale * rng.normal(size=len(scale)))


def trees(n: int, rng: np.random.Generator) -> Game:
    """Twenty random decision trees of depth four, whose splits prefer some units."""
    prefer = rng.dirichlet(np.full(n, 0.7)) + 1e-3 / n
    leaves: list[Leaf] = []

    def grow(inside: list[int], outside: list[int], worth: float) -> None:
        if len(inside) + len(outside) == 4:
            leaves.append((inside, outside, worth + rng.normal() / 2))
            return
        free = [i for i in range(n) if i not in inside and i not in outside]
        unit = int(rng.choice(free, p=prefer[free] / prefer[free].sum()))
        step = rng.normal()
        grow([*inside, unit], outside, worth + step)
        grow(inside, [*outside, unit], worth - step)

    for _ in range(20):
        grow([], [], 0.0)
    phi, f = np.zeros(n), math.factorial
    for inside, outside, worth in leaves:
        p, q = len(inside), len(outside)
        phi[inside] += worth * f(max(p - 1, 0)) * f(q) / f(p + q)
        phi[outside] -= worth * f(p) * f(max(q - 1, 0)) / f(p + q)

    def value(s: np.ndarray) -> np.ndarray:
        out = np.zeros(len(s))
        for inside, outside, worth in leaves:
            out += worth * (s[:, inside].all(1) & ~s[:, outside].any(1))
        return out

    return Game("trees", value, phi)


def _singles(n: int) -> list[tuple[int, ...]]:
    return [(i,) for i in range(n)]


def _random_terms(n: int, count: int, size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    return [tuple(rng.choice(n, size, replace=False).tolist()) for _ in range(count)]


GAMES: dict[str, Callable[[int, np.random.Generator], Game]] = {
    "order three": order_three,
    "few triples": few_triples,
    "sparse": sparse,
    "spotlight": spotlight,
    "trees": trees,
    "vote": FAMILIES["vote"],
    "logistic": FAMILIES["logistic"],
    "pivot_max": FAMILIES["pivot_max"],
}
