"""Cooperative games whose Shapley values are known in closed form: ground truth for estimators of shares.

A game gives the reward v(S) of a team with only the units in the coalition S, out of n units. The families differ in
difficulty: additive games are trivial, votes depend on one unit, unanimity needs eight units at once, spawn trees need
every ancestor. Values are computed in NumPy on the host, in float64.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs.errors import CreditError

__all__ = [
    "FAMILIES",
    "Game",
    "activate",
    "additive",
    "closure",
    "logistic",
    "observe",
    "pivot_max",
    "random_forest",
    "spawn_tree",
    "two_additive",
    "unanimity",
    "vote",
]


@dataclasses.dataclass(frozen=True)
class Game:
    """A game and its exact Shapley values.

    Attributes:
      name: the family.
      value: bool [C, n] coalitions to float64 [C].
      shapley: float64 [n].
      parent: int [n], the unit that spawned each unit; a root is its own parent. None for games without spawns.
      noisy: True if values are probabilities and one evaluation (`observe`) is a draw of success or failure.
    """

    name: str
    value: Callable[[np.ndarray], np.ndarray]
    shapley: np.ndarray
    parent: np.ndarray | None = None
    noisy: bool = False

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.shapley)


def observe(game: Game, coalitions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One evaluation of each coalition: the value, or a 0/1 outcome with that probability: float64 [C]."""
    value = game.value(coalitions)
    return (rng.random(len(value)) < value).astype(np.float64) if game.noisy else value


def additive(n: int, rng: np.random.Generator) -> Game:
    """v(S) = Σ_{i in S} w_i, so φ_i = w_i."""
    w = rng.random(n)
    return Game("additive", lambda s: s @ w, w)


def two_additive(n: int, rng: np.random.Generator) -> Game:
    """v(S) = Σ w_i + Σ c_ij [i, j in S] over 3n random pairs, so φ_i = w_i + Σ_j c_ij / 2."""
    w, (i, j) = rng.random(n), _pairs(n, 3 * n, rng)
    c = rng.normal(size=len(i))
    phi = w + (np.bincount(i, c, n) + np.bincount(j, c, n)) / 2
    return Game("two_additive", lambda s: s @ w + (s[:, i] & s[:, j]) @ c, phi)


def vote(n: int, rng: np.random.Generator) -> Game:
    """v(S) = [Σ_{i in S} w_i > half of the weight], integer weights 1 to 5: one unit turns the vote."""
    w = rng.integers(1, 6, n)
    half = w.sum() / 2
    return Game(
        "vote", lambda s: (s @ w > half).astype(np.float64), _weighted_sum_shapley(w, lambda t: 1.0 * (t > half))
    )


def logistic(n: int, rng: np.random.Generator, *, noisy: bool = False) -> Game:
    """v(S) = σ(8 (Σ_{i in S} w_i / W − 1/2)), integer weights 1 to 5 of sum W: a smooth game."""
    w = rng.integers(1, 6, n)
    total = w.sum()

    def sigmoid(t: Any) -> Any:
        return 1 / (1 + np.exp(-8 * (t / total - 0.5)))

    return Game("logistic", lambda s: sigmoid(s @ w), _weighted_sum_shapley(w, sigmoid), noisy=noisy)


def unanimity(n: int, rng: np.random.Generator, *, size: int = 8) -> Game:
    """v(S) = [T is contained in S] for `size` random units T, so φ_i = 1/size in T and 0 elsewhere."""
    needed = rng.choice(n, size, replace=False)
    phi = np.zeros(n)
    phi[needed] = 1 / size
    return Game("unanimity", lambda s: np.all(s[:, needed], axis=1).astype(np.float64), phi)


def pivot_max(n: int, rng: np.random.Generator) -> Game:
    """v(S) = [unit 0 in S] max_{j in S, j > 0} w_j: a solver without which nothing works, and its best helper.

    With the weights sorted downwards, v = Σ_t (w_(t) − w_(t+1)) [0 in S and S meets the t best]; such a term gives
    t/(t+1) to unit 0 and 1/(t(t+1)) to each of the t.
    """
    w = np.concatenate([[0.0], rng.random(n - 1)])
    order = np.argsort(-w[1:]) + 1
    steps = w[order] - np.append(w[order][1:], 0.0)
    t = np.arange(1, n)
    phi = np.zeros(n)
    phi[order] = np.cumsum((steps / (t * (t + 1)))[::-1])[::-1]
    phi[0] = (steps * t / (t + 1)).sum()
    return Game("pivot_max", lambda s: np.where(s[:, 0], np.where(s, w, 0.0).max(1), 0.0), phi)


def spawn_tree(n: int, rng: np.random.Generator, *, noisy: bool = False) -> Game:
    """A team where an agent works only if all its ancestors do: a_i(S) = [i and its ancestors in S].

    v(S) = Σ w_i a_i + Σ c_ij a_i a_j over n random pairs, c a tenth of w, scaled to v(N) = 1. Each term is the
    unanimity game of a set of units and is shared among them equally.
    """
    parent = random_forest(n, rng)
    above = closure(parent)
    depth = above.sum(1)
    w, (i, j) = rng.random(n), _pairs(n, n, rng)
    c = rng.random(len(i)) / 10
    w, c = w / (w.sum() + c.sum()), c / (w.sum() + c.sum())
    both = above[i] | above[j]
    phi = above.T @ (w / depth) + both.T @ (c / both.sum(1))

    def value(s: np.ndarray) -> np.ndarray:
        active = activate(parent, s)
        result: np.ndarray = active @ w + (active[:, i] & active[:, j]) @ c
        return result

    return Game("spawn_tree", value, phi, parent, noisy)


def random_forest(n: int, rng: np.random.Generator) -> np.ndarray:
    """Parents of a random spawn forest: unit 0 is a root, i > 0 is spawned by an earlier unit or, rarely, a root."""
    parent = np.arange(n)
    for i in range(1, n):
        parent[i] = i if rng.random() < 0.02 else rng.integers(max(0, i - 1 - n // 3), i)
    return parent


def closure(parent: np.ndarray) -> np.ndarray:
    """bool [n, n], row i marks unit i and its ancestors."""
    above = np.eye(len(parent), dtype=bool)
    at = parent.copy()
    for _ in range(len(parent)):
        above[np.arange(len(parent)), at] = True
        if (parent[at] == at).all():
            return above
        at = parent[at]
    raise CreditError("parents form a cycle; expected a forest")


def activate(parent: np.ndarray, coalitions: np.ndarray) -> np.ndarray:
    """The greatest set within each coalition that holds the parents of its members: bool [C, n]."""
    active, at = coalitions, parent
    while True:
        active = active & active[:, at]
        if (at[at] == at).all():
            result: np.ndarray = active & active[:, at]
            return result
        at = at[at]


def _pairs(n: int, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    i = rng.integers(0, n, count)
    return i, (i + rng.integers(1, n, count)) % n


def _weighted_sum_shapley(w: np.ndarray, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Shapley values of v(S) = f(Σ_{i in S} w_i), integer weights: count coalitions by size and weight.

    φ_i = 1/n Σ_s E[f(t + w_i) − f(t)], t the weight of a random s-subset of the others. Units of equal weight have
    equal values, so one table for each distinct weight suffices.
    """
    n, total = len(w), int(w.sum())
    phi = np.zeros(n)
    size = np.arange(n)
    subsets = np.array([math.comb(n - 1, int(s)) for s in size], dtype=np.float64)
    for weight in np.unique(w):
        others = np.delete(w, np.flatnonzero(w == weight)[0])
        count = np.zeros((n, total + 1))
        count[0, 0] = 1
        for k in others:
            count[1:, k:] += count[:-1, : total + 1 - k].copy()
        t = np.arange(total + 1)
        gain = f(t + weight) - f(t)
        phi[w == weight] = ((count @ gain) / subsets).mean()
    return phi


FAMILIES: dict[str, Callable[[int, np.random.Generator], Game]] = {
    "additive": additive,
    "two_additive": two_additive,
    "vote": vote,
    "logistic": logistic,
    "unanimity": unanimity,
    "pivot_max": pivot_max,
    "spawn_tree": spawn_tree,
    "bernoulli_logistic": lambda n, rng: logistic(n, rng, noisy=True),
    "bernoulli_tree": lambda n, rng: spawn_tree(n, rng, noisy=True),
}
"""The families by name; each function draws a game of n units with a random generator."""
