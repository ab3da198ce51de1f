"""Corrections for how many tests were made."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from graphs.dealing import Dealt, dealt, flipped
from graphs.task_means import holm, mean_interval, shift_interval, signed_ranks, task_mean

LEVEL = 0.05


@functools.cache
def of_coins(members: int, chosen: int, ones: int, seen: int) -> Dealt:
    """The test of a fact that `ones` members have, of which so many were seen among the chosen."""
    has = np.zeros(members)
    has[:seen], has[chosen : chosen + ones - seen] = 1, 1
    return dealt(has, np.arange(members) < chosen, np.zeros(members))


def test_facts_that_few_or_almost_all_have_take_nothing_from_others() -> None:
    """Four facts of 5 or 11 traces of 16 kept a fact of 7 of 8 failed and 1 of 8 succeeded ones from its star."""
    one, few = of_coins(16, 8, 8, 7), of_coins(16, 8, 5, 3)
    p, least = [one.p, *[few.p] * 4], [one.least, *[few.least] * 4]
    assert one.p < few.least < LEVEL < holm(p)[0] == pytest.approx(5 * one.p)
    assert holm(p, least=least)[0] == one.p
    assert holm(p, [*"abbbb"], least) == holm(p[:2], least=least[:2]) + holm(p[:2], least=least[:2])[1:] * 3


@pytest.mark.slow
def test_whatever_is_dealt_a_true_nothing_is_found_in_no_more_than_the_level() -> None:
    """All dealings of small worlds are counted, so no chance of the test's own is left."""
    rng = np.random.default_rng(0)
    plain, without = [], []
    for _ in range(25):
        members, chosen = 12, int(rng.integers(4, 7))
        rates = rng.uniform(0.05, 0.95, (int(rng.integers(2, 25)), 1))
        facts = rng.random((len(rates), members)) < rates
        facts = facts[np.ptp(facts.astype(int), axis=1) > 0]
        found = []
        for members_of in itertools.combinations(range(members), chosen):
            seen = facts[:, list(members_of)].sum(axis=1).tolist()
            tests = [of_coins(members, chosen, int(fact.sum()), n) for fact, n in zip(facts, seen, strict=True)]
            p, least = [test.p for test in tests], [test.least for test in tests]
            corrected = holm(p, least=least)
            assert all(one <= other for one, other in zip(corrected, holm(p), strict=True))  # never later found
            found.append((min(corrected) < LEVEL, min(p) < LEVEL))
        plain.append(np.mean(found, axis=0)[0])
        without.append(np.mean(found, axis=0)[1])
    assert 0 < max(plain) <= LEVEL < max(without), (max(plain), max(without))


@pytest.mark.parametrize("ties", [0, 1, 2])
@pytest.mark.parametrize("tasks", [20, 23, 30])
def test_where_more_tasks_rise_the_interval_never_comes_back_to_0(tasks: int, ties: int) -> None:
    """Of 23 tasks 19 had a star, 21 none, and 22 one: a correction for skewness ran off where almost all were equal."""
    ends = []
    for falls in range(tasks // 2, 0, -1):
        values = np.array([1.0] * (tasks - falls - ties) + [0.0] * ties + [-1.0] * falls)
        found = task_mean(values)
        ends.append(bool(found.low > 0))
        assert (found.low > 0) == (found.p < LEVEL) or found.p > 0.02
    assert ends == sorted(ends) and ends[-1]


def test_two_numbers_are_coins() -> None:
    """Jeffreys' interval of 21 of 23 is .749 to .981."""
    low, high = mean_interval(np.array([1.0] * 21 + [-1.0] * 2))
    assert (low, high) == (pytest.approx(2 * 0.749 - 1, abs=2e-3), pytest.approx(2 * 0.981 - 1, abs=2e-3))


def test_skewed_numbers_on_both_sides_are_covered() -> None:
    held = []
    for seed in range(800):
        rng = np.random.default_rng(seed)
        low, high = mean_interval(rng.exponential(size=int(rng.integers(8, 21))) - 1)
        held.append(low <= 0 <= high)
    assert 0.925 < np.mean(held) < 0.965  # Student's holds .91


def test_the_middle_of_pairs_and_its_interval_are_those_of_all_means_of_two() -> None:
    """The interval leaves 0 out where Wilcoxon's test says so, but for few that are at the level itself."""
    rng, unlike = np.random.default_rng(0), 0
    for _ in range(200):
        x = rng.normal(0.3, 1, int(rng.integers(8, 30))).round(int(rng.integers(1, 9)))
        middle, (low, high) = shift_interval(x)
        means = np.sort(((x[:, None] + x) / 2)[np.triu_indices(len(x))])
        out = int(np.sum(means < low - 1e-9))
        assert middle == pytest.approx(np.median(means), abs=1e-9) and low == pytest.approx(means[out], abs=1e-9)
        assert high == pytest.approx(means[-1 - int(np.sum(means > high + 1e-9))], abs=1e-9)
        unlike += (flipped(signed_ranks(x)).p < LEVEL) != (not low <= 0 <= high)
    assert unlike <= 4
