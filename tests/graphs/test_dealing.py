"""Chance by dealing: the same as by counting all ways, on sums of integers, of ties, and of other numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphs import dealing
from graphs.dealing import dealt, flipped
from graphs.task_means import signed_ranks


def counted_ways(scores: np.ndarray, chosen: np.ndarray, stratum: np.ndarray) -> tuple[float, float]:
    """Chances of a sum at most and at least that of the chosen."""
    sums = np.zeros(1)
    for one in np.unique(stratum):
        members = np.flatnonzero(stratum == one)
        ways = itertools.combinations(scores[members], int(chosen[members].sum()))
        sums = np.add.outer(sums, [sum(way) for way in ways]).ravel()
    seen = scores[chosen].sum()
    return float(np.mean(sums <= seen + 1e-9)), float(np.mean(sums >= seen - 1e-9))


@pytest.mark.parametrize("ties", [True, False])
def test_all_ways_are_counted(ties: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        stratum = np.repeat(np.arange(rng.integers(1, 5)), rng.integers(1, 5))
        scores = rng.integers(-2, 3, len(stratum)).astype(float) if ties else rng.normal(size=len(stratum))
        chosen = rng.random(len(stratum)) < 0.5
        p, least = dealt(scores, chosen, stratum)
        assert p == pytest.approx(min(1, 2 * min(counted_ways(scores, chosen, stratum))), abs=1e-9 if ties else 0.02)
        assert least <= p


def test_ranks_of_ties_have_the_chance_of_all_ways() -> None:
    """Ranks of 1.5 and 3.5 were rounded to a grid on which equal sums differ: p = 0.22 where it is 0.34."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        ranks = signed_ranks(rng.choice([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0], rng.integers(3, 10)))
        ways = np.array([*itertools.product(*((0.0, rank) for rank in ranks))]).sum(axis=1)
        at_most, at_least = np.mean(ways <= ranks.sum() + 1e-9), np.mean(ways >= ranks.sum() - 1e-9)
        assert flipped(ranks).p == pytest.approx(min(1, 2 * min(at_most, at_least)))


def test_a_perfect_separation_has_its_own_chance() -> None:
    """Nine tasks of nine gave p = 0.0077 by the normal distribution, twice that of all ways."""
    for tasks in (8, 9, 10, 30):
        assert flipped(np.full(tasks, -6.0)).p == pytest.approx(2 / 2**tasks)
    apart = dealt(np.arange(18.0), np.arange(18) > 8, np.zeros(18))
    assert apart.p == apart.least == pytest.approx(2 / 48620)
    assert dealt(np.ones(4), np.array([True, False] * 2), np.zeros(4)) == (1, 1)
    assert dealt(np.zeros(0), np.zeros(0, bool), np.zeros(0)) == (1, 1)


def test_many_members_have_the_chance_of_a_normal_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for tasks in (50, 100):
        stratum = np.repeat(np.arange(tasks), 4)
        chosen = np.tile([True, False, False, True], tasks)
        scores = rng.poisson(0.5, len(stratum)) + 0.2 * chosen * rng.integers(0, 2, len(stratum))
        exact = dealt(scores, chosen, stratum)
        monkeypatch.setattr(dealing, "WORK", 0)
        normal = dealt(scores, chosen, stratum)
        monkeypatch.undo()
        assert normal.p == pytest.approx(exact.p, rel=0.1) and normal.least < 1e-6 > exact.least


@pytest.mark.parametrize("rate", [0.05, 0.5, 3.0])
def test_alike_kinds_seldom_stand_out(rate: float) -> None:
    """Four of 30 tasks that differ do so alike by chance in 1 of 8 cases, and Student's p was 0.04."""
    rng, found = np.random.default_rng(2), []
    for _ in range(600):
        size = rng.integers(2, 6, rng.integers(8, 40))
        stratum = np.repeat(np.arange(len(size)), size)
        scores = rng.poisson(rate * rng.lognormal(size=len(size))[stratum]).astype(float)
        found.append(dealt(scores, rng.random(len(stratum)) < 0.3, stratum).p < 0.05)
    assert np.mean(found) < 0.07  # 0.05 and two standard errors
