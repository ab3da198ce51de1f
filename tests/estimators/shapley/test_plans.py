"""Plans of evaluations: which coalitions, how many, how two plans add, and what the rule chooses."""

from __future__ import annotations

import itertools
import math
import re

import jax
import numpy as np
import pytest

from estimators.shapley import (
    attainable_stderr,
    bound_constant,
    choose,
    least_evaluations,
    make_plan,
    merge,
    more_evaluations,
    plan_exact,
    plan_pairs,
    plan_walks,
    solve,
)
from estimators.shapley.sampling import _combinations, paired_coalitions, size_law, sobol_orders
from graphs.worlds.games import observe

from .games import game_of

pytestmark = pytest.mark.usefixtures("double_precision")


def test_sizes_follow_the_law_and_no_pair_occurs_twice() -> None:
    n, rng = 9, np.random.default_rng(0)
    drawn = paired_coalitions(rng, n, 120, distinct=True)
    assert len(drawn) == 120
    both = np.concatenate([drawn, ~drawn])
    assert len(np.unique(both, axis=0)) == 240
    everything = paired_coalitions(rng, n, 1000, distinct=True)
    assert len(everything) == 2 ** (n - 1) - 1
    many = paired_coalitions(rng, 12, 4000, distinct=False)
    sizes = np.bincount(np.concatenate([many, ~many]).sum(1), minlength=13)[1:12]
    np.testing.assert_allclose(sizes / sizes.sum(), size_law(12), atol=2e-3)


def test_members_of_a_size_are_uniform() -> None:
    """χ² over the 20 three-subsets of six, at a fixed key."""
    drawn = paired_coalitions(np.random.default_rng(3), 6, 20_000, distinct=False)
    three = drawn[drawn.sum(1) == 3]
    _, count = np.unique(three, axis=0, return_counts=True)
    assert len(count) == 20
    statistic = ((count - count.mean()) ** 2 / count.mean()).sum()
    assert statistic < 36.2  # 99 % of χ² with 19 degrees of freedom


def test_sobol_orders_are_orders_with_uniform_places() -> None:
    places = np.concatenate([np.argsort(sobol_orders(np.random.default_rng(s), 5, 16), axis=1) for s in range(200)])
    assert (np.sort(places, axis=1) == np.arange(5)).all()
    count = np.stack([np.bincount(places[:, unit], minlength=5) for unit in range(5)])
    np.testing.assert_allclose(count / len(places), 0.2, atol=0.02)


def test_sobol_orders_spread_places_more_evenly_than_chance() -> None:
    mean = [np.argsort(sobol_orders(np.random.default_rng(s), 30, 64), axis=1).mean(0) for s in range(5)]
    assert np.stack(mean).var() < 0.2 * (30**2 / 12 / 64)


def test_the_bound_is_the_sum_over_sizes() -> None:
    assert bound_constant(300) == pytest.approx(8.84, abs=0.01)
    assert bound_constant(16) == pytest.approx(5.80, abs=0.01)
    assert least_evaluations(300, 0.5, 1 / 300) == pytest.approx(2.0e5, rel=0.01)
    assert attainable_stderr(40, least_evaluations(40, 0.3, 0.01), 0.3) == pytest.approx(0.01, rel=1e-4)
    assert bound_constant(2) == 1.0  # one size of weight 1/√(1·1)


def test_a_plan_is_a_function_of_its_key() -> None:
    for make in (lambda k: plan_walks(k, 9, 60), lambda k: plan_pairs(k, 9, 60)):
        first, again, other = make(jax.random.key(1)), make(jax.random.key(1)), make(jax.random.key(2))
        assert (first.coalitions == again.coalitions).all()
        assert (first.coalitions != other.coalitions).any()


@pytest.mark.study
def test_adding_evaluations_to_a_plan() -> None:
    game = game_of("bernoulli_tree", 10)
    first, second = plan_pairs(jax.random.key(0), 10, 200), plan_pairs(jax.random.key(1), 10, 600)
    rng = np.random.default_rng(0)
    a, b = observe(game, first.coalitions, rng), observe(game, second.coalitions, rng)
    alone, both = solve(first, a, degrees=(0,)), solve(merge(first, second), np.concatenate([a, b]), degrees=(0,))
    assert int(both.evaluations) == first.evaluations + second.evaluations
    before, after = np.asarray(alone.stderr).mean(), np.asarray(both.stderr).mean()
    assert after == pytest.approx(before / 2, rel=0.3)
    assert more_evaluations(alone, before / 2) == pytest.approx(3 * first.evaluations, rel=0.1)


@pytest.mark.slow
def test_no_number_of_evaluations_helps_where_nothing_is_known_of_the_error() -> None:
    game = game_of("vote", 12)
    plan = plan_walks(jax.random.key(0), 12, 24)
    got = solve(plan, game.value(plan.coalitions))
    assert np.isinf(np.asarray(got.stderr)).all()
    assert more_evaluations(got, 0.01) is None


def test_the_rule_says_what_and_why() -> None:
    assert choose(8, 300).method == "exact"
    assert choose(8, 300, noise=0.5).method == "pairs"
    assert choose(300, 900).method == "walks" and "too few" in choose(300, 900).reason
    noisy = choose(300, 30_000, noise=0.5, forest=True)
    assert noisy.method == "pairs" and noisy.chains
    assert noisy.expected_stderr == pytest.approx(0.5 * math.sqrt(8.84 / 30_000), rel=1e-3)
    assert "at least" in noisy.reason
    with pytest.raises(ValueError, match="at least 2n = 20"):
        choose(10, 19)


def test_any_budget_of_two_evaluations_a_unit_is_planned_with_noise() -> None:
    """Of two units both endpoints took the whole budget, whatever it was: no plan could be made."""
    for n in (2, 3, 4, 7):
        for budget in range(2 * n, 8 * n):
            plan, _ = make_plan(jax.random.key(0), n, budget, noise=0.5)
            assert 2 * n <= plan.evaluations <= budget


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 2, 3, 8])
def test_the_reason_names_the_budget_that_tells_an_error_of_noisy_values(n: int) -> None:
    """Infinite errors came after everything was evaluated."""
    choice = choose(n, 2 * n, noise=0.5)
    (least,) = map(int, re.findall(r"no standard error, (\d+) evaluations do", choice.reason))
    for budget in (least - 1, least):
        plan, _ = make_plan(jax.random.key(1), n, budget, noise=0.5)
        got = solve(plan, np.random.default_rng(2).normal(size=plan.evaluations))
        assert np.isfinite(np.asarray(got.stderr)).all() == (budget == least)


def test_bad_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 to 16"):
        plan_exact(17)
    with pytest.raises(ValueError, match="at least 20 evaluations"):
        plan_walks(jax.random.key(0), 10, 19)
    with pytest.raises(TypeError, match="typed JAX key"):
        plan_walks(np.zeros(2, np.uint32), 10, 40)
    with pytest.raises(ValueError, match="differ"):
        merge(plan_walks(jax.random.key(0), 10, 40), plan_pairs(jax.random.key(0), 10, 40))


@pytest.mark.parametrize(("n", "size"), [(7, 1), (8, 4), (12, 6), (20, 5)])
def test_combinations_by_their_places_are_those_of_the_list(n: int, size: int) -> None:
    listed = np.array(list(itertools.combinations(range(n), size)))
    places = np.sort(np.random.default_rng(n).choice(len(listed), min(len(listed), 99), replace=False))
    np.testing.assert_array_equal(_combinations(n, size, places), listed[places])
