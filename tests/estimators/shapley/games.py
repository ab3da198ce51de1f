"""Games of known shares, their enumeration, and the error of an estimate."""

from __future__ import annotations

import itertools
import math

import numpy as np

from graphs.worlds.games import FAMILIES, Game


def game_of(family: str, n: int, seed: int = 0) -> Game:
    return FAMILIES[family](n, np.random.default_rng(seed))


def brute_force(game: Game) -> np.ndarray:
    """Mean over all orders of what each unit adds."""
    total = np.zeros(game.n)
    for order in itertools.permutations(range(game.n)):
        team = np.zeros((game.n + 1, game.n), bool)
        for k, unit in enumerate(order):
            team[k + 1 :, unit] = True
        total[list(order)] += np.diff(game.value(team))
    return total / math.factorial(game.n)


def rel(share: np.ndarray, game: Game) -> float:
    return float(((np.asarray(share) - game.shapley) ** 2).sum() / (game.shapley**2).sum())
