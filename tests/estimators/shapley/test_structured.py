"""Precedence, permission and Owen values against brute force in Fractions; the sampler against enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import jax
import numpy as np
import pytest

from estimators.shapley import plan_exact, plan_walks, solve, walks_from_orders
from estimators.shapley.structured import (
    ancestors_or_self,
    count_extensions,
    extensions,
    heights,
    ideals,
    owen_exact,
    owen_orders,
    permission_coalitions,
    permission_of_worth,
    precedence_exact,
    precedence_walks,
    subtree_sizes,
)
from graphs.worlds.games import activate, closure

Value = Callable[[frozenset[int]], Fraction]


pytestmark = pytest.mark.usefixtures("double_precision")


def forest(n: int, seed: int) -> np.ndarray:
    """A random forest whose units are numbered without regard to who spawned whom."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(n)
    parent = np.arange(n)
    for i in range(1, n):
        if rng.random() < 0.85:
            parent[label[i]] = label[rng.integers(0, i)]
    return parent


def grow(parent: np.ndarray) -> list[tuple[int, ...]]:
    """All orders in which each unit comes after its spawner, one by one."""
    orders: list[tuple[int, ...]] = []

    def step(done: tuple[int, ...]) -> None:
        if len(done) == len(parent):
            orders.append(done)
        for unit in range(len(parent)):
            if unit not in done and (parent[unit] == unit or parent[unit] in done):
                step((*done, unit))

    step(())
    return orders


def mean_over(orders: list[tuple[int, ...]], n: int, v: Value) -> list[Fraction]:
    total = [Fraction(0)] * n
    cache: dict[frozenset[int], Fraction] = {}

    def value(team: frozenset[int]) -> Fraction:
        if team not in cache:
            cache[team] = v(team)
        return cache[team]

    for order in orders:
        for k, unit in enumerate(order):
            total[unit] += value(frozenset(order[: k + 1])) - value(frozenset(order[:k]))
    return [t / len(orders) for t in total]


def some_game(n: int, seed: int) -> Value:
    """Terms of several units with rational coefficients."""
    rng = np.random.default_rng(seed)
    terms = [
        (
            frozenset(rng.choice(n, rng.integers(1, n + 1), replace=False).tolist()),
            Fraction(int(rng.integers(-9, 10)), 7),
        )
        for _ in range(2 * n)
    ]
    return lambda team: sum((c for needed, c in terms if needed <= team), Fraction(0))


def values_of(coalitions: np.ndarray, v: Value) -> np.ndarray:
    out = np.empty(len(coalitions), object)
    out[:] = [v(frozenset(np.flatnonzero(row).tolist())) for row in coalitions]
    return out


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 0), (4, 1), (6, 2), (7, 3), (8, 4)])
def test_precedence_values_equal_brute_force_exactly(n: int, seed: int) -> None:
    parent, v = forest(n, seed), some_game(n, seed)
    coalitions = ideals(parent)
    got = precedence_exact(parent, coalitions, values_of(coalitions, v))
    assert list(got) == mean_over(grow(parent), n, v)
    assert sum(got) == v(frozenset(range(n)))


@pytest.mark.slow
def test_precedence_values_of_nine_units() -> None:
    """A chain of three below a root with five more children: 9 units, 8! / 3! extensions."""
    parent, v = np.array([0, 0, 1, 2, 0, 0, 0, 0, 0]), some_game(9, 5)
    coalitions = ideals(parent)
    assert list(precedence_exact(parent, coalitions, values_of(coalitions, v))) == mean_over(grow(parent), 9, v)


@pytest.mark.parametrize("seed", range(20))
def test_extensions_are_uniform(seed: int) -> None:
    """χ² over all extensions of a random forest, at a fixed key; 0.1 % level, 20 forests."""
    parent = forest(5 + seed % 2, seed)
    every = {order: k for k, order in enumerate(grow(parent))}
    assert count_extensions(parent) == len(every)
    drawn = extensions(jax.random.key(seed), parent, 40 * max(len(every), 50))
    count = np.bincount([every[tuple(row)] for row in drawn.tolist()], minlength=len(every))
    expected = len(drawn) / len(every)
    freedom = len(every) - 1
    statistic = ((count - expected) ** 2 / expected).sum()
    # Wilson–Hilferty: the cube root of χ²/ν is nearly normal.
    limit = freedom * (1 - 2 / (9 * max(freedom, 1)) + 3.09 * (2 / (9 * max(freedom, 1))) ** 0.5) ** 3
    assert statistic <= limit


def test_choosing_uniformly_among_the_available_is_not_uniform() -> None:
    """Counter-example: a chain of two and a loner have three extensions; naively the loner is first half the time."""
    parent = np.array([0, 0, 2])
    assert sorted(grow(parent)) == [(0, 1, 2), (0, 2, 1), (2, 0, 1)]
    first = extensions(jax.random.key(0), parent, 30_000)[:, 0]
    assert (first == 2).mean() == pytest.approx(1 / 3, abs=0.01)


def test_extensions_never_break_precedence_at_scale() -> None:
    parent = forest(300, 1)
    ranks = np.argsort(extensions(jax.random.key(0), parent, 500), axis=1)
    root = parent == np.arange(300)
    assert (ranks[:, parent] < ranks)[:, ~root].all()


@pytest.mark.study
def test_sampled_precedence_values_agree_with_exact_ones() -> None:
    parent, v = forest(8, 4), some_game(8, 4)
    exact = [float(x) for x in mean_over(grow(parent), 8, v)]
    plan = precedence_walks(jax.random.key(1), parent, 20_000)
    got = solve(plan, values_of(plan.coalitions, v).astype(np.float64))
    assert (np.abs(got.share - np.array(exact)) <= 4 * np.asarray(got.stderr) + 1e-12).all()
    assert (
        permission_coalitions(parent, plan.coalitions).tolist() == plan.coalitions.tolist()
    )  # only teams that can exist


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("n", [3, 5, 7])
def test_permission_values_equal_their_definition(n: int) -> None:
    parent, v = forest(n, n), some_game(n, n)

    def restricted(team: frozenset[int]) -> Fraction:
        def works(unit: int) -> bool:
            return unit in team and (parent[unit] == unit or works(int(parent[unit])))

        return v(frozenset(u for u in team if works(u)))

    expected = mean_over(list(itertools.permutations(range(n))), n, restricted)
    plan = plan_exact(n)
    values = values_of(permission_coalitions(parent, plan.coalitions), v).astype(np.float64)
    np.testing.assert_allclose(solve(plan, values).share, [float(x) for x in expected], atol=1e-12)


@pytest.mark.slow
def test_permission_values_of_separate_worth_are_shared_along_the_chain() -> None:
    parent, worth = forest(7, 3), np.arange(1.0, 8)
    plan = plan_exact(7)
    values = permission_coalitions(parent, plan.coalitions) @ worth
    np.testing.assert_allclose(solve(plan, values).share, permission_of_worth(parent, worth), atol=1e-12)


def pair_game(team: frozenset[int]) -> Fraction:
    return Fraction(1 if {1, 2} <= team else 0)


@pytest.mark.slow
def test_useless_children_change_precedence_values_but_not_permission_values() -> None:
    """Documented counter-example: unit 1 spawns two children that earn nothing."""
    star, padded = np.array([0, 0, 0]), np.array([0, 0, 0, 1, 1])

    def precedence(parent: np.ndarray) -> list[Fraction]:
        coalitions = ideals(parent)
        return list(precedence_exact(parent, coalitions, values_of(coalitions, pair_game)))

    assert precedence(star) == [0, Fraction(1, 2), Fraction(1, 2)]
    assert precedence(padded) == [0, Fraction(1, 4), Fraction(3, 4), 0, 0]

    def permission(parent: np.ndarray) -> np.ndarray:
        plan = plan_exact(len(parent))
        values = values_of(permission_coalitions(parent, plan.coalitions), pair_game).astype(np.float64)
        return np.asarray(solve(plan, values).share)

    np.testing.assert_allclose(permission(star), [1 / 3, 1 / 3, 1 / 3], atol=1e-12)
    np.testing.assert_allclose(permission(padded), [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-12)


def test_precedence_values_are_symmetric_only_where_the_forest_is() -> None:
    """Documented counter-example: units 1 and 2 are equal in the game; 2 stands below 1 and gets everything."""
    coalitions = ideals(np.array([0, 0, 1]))
    got = precedence_exact(np.array([0, 0, 1]), coalitions, values_of(coalitions, pair_game))
    assert list(got) == [0, 0, 1]


def test_permission_values_pay_a_spawner_that_adds_nothing() -> None:
    """Documented counter-example: a null player of the game is none once others need it."""
    np.testing.assert_allclose(permission_of_worth(np.array([0, 0]), np.array([0.0, 1.0])), [0.5, 0.5])


@pytest.mark.parametrize("seed", [0, 1])
def test_owen_values_equal_brute_force(seed: int) -> None:
    n, blocks = 6, np.array([0, 1, 0, 2, 1, 2])
    v = some_game(n, seed)
    together = [
        order
        for order in itertools.permutations(range(n))
        if len([1 for a, b in itertools.pairwise(order) if blocks[a] != blocks[b]]) == len(set(blocks.tolist())) - 1
    ]
    values = values_of(plan_exact(n).coalitions, v)
    got = owen_exact(values, blocks)
    assert list(got) == mean_over(together, n, v)


def test_owen_shares_of_a_block_sum_to_its_share_among_blocks() -> None:
    n, blocks = 6, np.array([0, 1, 0, 2, 1, 2])
    v = some_game(n, 3)
    members = [frozenset(np.flatnonzero(blocks == b).tolist()) for b in range(3)]
    quotient = mean_over(
        list(itertools.permutations(range(3))), 3, lambda team: v(frozenset().union(*(members[b] for b in team)))
    )
    got = owen_exact(values_of(plan_exact(n).coalitions, v), blocks)
    assert [sum(got[i] for i in m) for m in members] == quotient


@pytest.mark.slow
def test_owen_orders_keep_blocks_together_and_estimate_the_value() -> None:
    levels = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
    orders = owen_orders(jax.random.key(0), levels, 4000)
    for level in levels:
        changes = (np.diff(level[orders], axis=1) != 0).sum(1)
        assert (changes == len(np.unique(level)) - 1).all()
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    v = some_game(6, 2)
    orders = owen_orders(jax.random.key(1), levels[1:], 3000)
    plan = walks_from_orders(orders)
    got = solve(plan, values_of(plan.coalitions, v).astype(np.float64))
    exact = owen_exact(values_of(plan_exact(6).coalitions, v), levels[1]).astype(np.float64)
    assert (np.abs(got.share - exact) <= 4 * np.asarray(got.stderr) + 1e-12).all()


def test_blocks_that_do_not_nest_are_refused() -> None:
    with pytest.raises(ValueError, match="nested"):
        owen_orders(jax.random.key(0), np.array([[0, 0, 1, 1], [0, 1, 1, 2]]), 3)


def test_forest_quantities() -> None:
    parent = np.array([3, 3, 0, 3, 4, 0])
    assert heights(parent).tolist() == [1, 1, 2, 0, 0, 2]
    assert subtree_sizes(parent).tolist() == [3, 1, 1, 5, 1, 1]
    assert ancestors_or_self(parent)[2].tolist() == [True, False, True, True, False, False]
    assert count_extensions(parent) == math.factorial(6) // 15
    assert len(ideals(np.arange(4))) == 16 and len(ideals(np.maximum(np.arange(9) - 1, 0))) == 10


def test_the_games_and_the_estimators_mean_the_same_by_a_forest() -> None:
    parent = forest(40, 2)
    teams = np.random.default_rng(0).random((50, 40)) < 0.8
    assert (activate(parent, teams) == permission_coalitions(parent, teams)).all()
    assert (closure(parent) == ancestors_or_self(parent)).all()


def test_broken_forests_are_refused() -> None:
    cycle = np.array([1, 0, 2])
    for function in (heights, ancestors_or_self, ideals, lambda p: extensions(jax.random.key(0), p, 2)):
        with pytest.raises(ValueError, match="cycle"):
            function(cycle)
    with pytest.raises(ValueError, match="ideals; expected at most"):
        ideals(np.zeros(40, int))
    with pytest.raises(ValueError, match="without its spawner"):
        precedence_exact(np.array([0, 0]), np.array([[False, True]]), np.zeros(1))
    with pytest.raises(ValueError, match="missing"):
        precedence_exact(np.array([0, 0]), np.array([[False, False]]), np.zeros(1))


@pytest.mark.slow
def test_plain_walks_ignore_the_forest() -> None:
    """The Shapley value of the unrestricted game differs from both, so the choice matters."""
    plan = plan_walks(jax.random.key(0), 3, 2 + 2 * 6)
    got = solve(plan, values_of(plan.coalitions, pair_game).astype(np.float64))
    np.testing.assert_allclose(got.share, [0, 0.5, 0.5], atol=1e-12)
