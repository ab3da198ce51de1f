"""Shapley estimators against enumeration, closed forms and each other."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import jax
import numpy as np
import pytest

from credit.replay.shapley_game import shapley_plan
from estimators.shapley import (
    attainable_stderr,
    bound_constant,
    choose,
    least_evaluations,
    make_plan,
    mean_of_marginals,
    merge,
    more_evaluations,
    pad_plan,
    plan_exact,
    plan_pairs,
    plan_walks,
    solve,
    walks_from_orders,
)
from estimators.shapley.sampling import paired_coalitions, size_law, sobol_orders
from estimators.shapley.structured import ancestors_or_self
from graphs.worlds.games import FAMILIES, Game, observe, two_additive


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield


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


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "unanimity"])
def test_closed_forms_and_enumeration_equal_brute_force(family: str) -> None:
    game = game_of(family, 6)
    plan = plan_exact(6)
    got = solve(plan, game.value(plan.coalitions))
    np.testing.assert_allclose(got.share, brute_force(game), atol=1e-12)
    np.testing.assert_allclose(game.shapley, brute_force(game), atol=1e-12)
    assert not np.asarray(got.stderr).any()


def test_unanimity_gives_the_needed_units_equal_parts() -> None:
    game = game_of("unanimity", 10)
    plan = plan_exact(10)
    np.testing.assert_allclose(solve(plan, game.value(plan.coalitions)).share, game.shapley, atol=1e-12)


@pytest.mark.parametrize("method", ["walks", "pairs"])
def test_games_of_pairs_are_exact_from_few_evaluations(method: str) -> None:
    game = game_of("two_additive", 40)
    if method == "walks":
        plan = plan_walks(jax.random.key(1), 40, 80)
        assert plan.evaluations == 80  # 2n
    else:
        plan = plan_pairs(jax.random.key(1), 40, 200, noisy=False)
    got = solve(plan, game.value(plan.coalitions), degrees=(0,))
    assert rel(got.share, game) < 1e-20


def test_a_single_order_does_not_solve_a_game_of_pairs() -> None:
    game = game_of("two_additive", 40)
    plan = plan_walks(jax.random.key(1), 40, 80, antithetic=False)
    assert rel(solve(plan, game.value(plan.coalitions)).share, game) > 1e-4


@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[pytest.mark.slow] * (i % 3 > 0)) for i, f in enumerate(FAMILIES)]
)
def test_what_the_rule_chooses_lies_within_its_errors(family: str) -> None:
    """Shares within 4.5 standard errors for 30 units; they sum to v(N) − v(∅)."""
    n, game = 30, game_of(family, 30, 3)
    noise = 0.5 if game.noisy else 0.0
    plan, choice = make_plan(jax.random.key(5), n, 30 * n, noise=noise, parent=game.parent)
    values = observe(game, plan.coalitions, np.random.default_rng(8))
    above = ancestors_or_self(game.parent) if choice.chains else None
    got = solve(plan, values, above=above, degrees=choice.degrees)
    error = np.abs(np.asarray(got.share) - game.shapley)
    assert (error <= 4.5 * np.asarray(got.stderr) + 1e-10).all()
    np.testing.assert_allclose(np.asarray(got.share).sum(), float(got.total), atol=1e-9)


@pytest.mark.parametrize("method", ["walks", "pairs", "exact"])
def test_axioms(method: str) -> None:
    """Efficiency, linearity, null player, symmetry. The last two hold per draw for null terms and in enumeration."""
    n = 8
    plan = {
        "walks": lambda: plan_walks(jax.random.key(0), n, 100),
        "pairs": lambda: plan_pairs(jax.random.key(0), n, 100, noisy=False),
        "exact": lambda: plan_exact(n),
    }[method]()
    s = plan.coalitions
    v = (s @ np.arange(1.0, n + 1) > 14) * 1.0 + s[:, 0] * s[:, 1]
    w = np.sin(s @ np.arange(n))

    def share(values: np.ndarray) -> np.ndarray:
        return np.asarray(solve(plan, values, degrees=(1,)).share)

    np.testing.assert_allclose(share(v).sum(), v[s.all(1)][0] - v[~s.any(1)][0], atol=1e-10)
    np.testing.assert_allclose(share(2 * v - 3 * w), 2 * share(v) - 3 * share(w), atol=1e-9)
    null = s[:, 0] * s[:, 1] * 1.0  # nobody but 0 and 1 adds anything
    np.testing.assert_allclose(share(null), [0.5, 0.5, 0, 0, 0, 0, 0, 0], atol=1e-9)
    if method == "exact":
        majority = (s.sum(1) > 4) * 1.0
        np.testing.assert_allclose(share(majority), np.full(n, 1 / n), atol=1e-12)


@pytest.mark.slow
def test_estimates_lack_the_null_player_axiom_that_their_mean_has() -> None:
    """Documented counter-example: by regression a null player gets a share of the error, within its standard error."""
    game = game_of("unanimity", 20)
    plan = plan_pairs(jax.random.key(0), 20, 120, noisy=False)
    got = solve(plan, game.value(plan.coalitions), degrees=(0,))
    null = game.shapley == 0
    assert np.abs(np.asarray(got.share)[null]).max() > 1e-3
    assert (np.abs(np.asarray(got.share)[null]) < 4 * np.asarray(got.stderr)[null]).all()


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


@pytest.mark.slow
def test_one_noisy_endpoint_leaves_a_floor_that_replicates_remove() -> None:
    n, m = 8, 6000
    game = game_of("bernoulli_logistic", n)
    full, empty = np.ones((1, n), bool), np.zeros((1, n), bool)

    def squared(endpoints: int | None, known: bool) -> float:
        errors = []
        for seed in range(20):
            plan = plan_pairs(jax.random.key(seed), n, m, endpoints=endpoints)
            values = observe(game, plan.coalitions, np.random.default_rng(seed))
            ends = {"full": game.value(full)[0], "empty": game.value(empty)[0]} if known else {}
            got = solve(plan, values, degrees=(0,), **ends)
            errors.append(((np.asarray(got.share) - game.shapley) ** 2).mean())
        return float(np.mean(errors))

    one, replicated, known = squared(1, False), squared(None, False), squared(1, True)
    assert one > 5 * replicated
    assert replicated < 3 * known


@pytest.mark.slow
def test_noise_enters_the_standard_error_and_meets_the_bound() -> None:
    n, m, game = 12, 4000, game_of("bernoulli_logistic", 12)
    ends = {"full": game.value(np.ones((1, n), bool))[0], "empty": game.value(np.zeros((1, n), bool))[0]}
    errors, predicted = [], []
    for seed in range(30):
        plan = plan_pairs(jax.random.key(seed), n, m, endpoints=1)
        got = solve(plan, observe(game, plan.coalitions, np.random.default_rng(seed)), degrees=(0,), **ends)
        errors.append(((np.asarray(got.share) - game.shapley) ** 2).mean())
        predicted.append((np.asarray(got.stderr) ** 2).mean())
    assert np.mean(errors) == pytest.approx(np.mean(predicted), rel=0.25)
    assert np.mean(errors) < 1.25 * attainable_stderr(n, m, 0.5) ** 2


@pytest.mark.parametrize("given", [(), ("empty",), ("full",), ("empty", "full")], ids=str)
def test_noise_of_an_enumeration_is_that_of_the_endpoints_that_were_evaluated(given: tuple[str, ...]) -> None:
    """Errors of shares and of the total against 20,000 noisy repetitions, on a plan as it is and padded."""
    game, n, rng = game_of("logistic", 3), 3, np.random.default_rng(0)
    exact = plan_exact(n)
    for plan in (exact, pad_plan(exact, rows=11, units=5, samples=0)):
        value = np.zeros(len(plan.coalitions))
        value[: 2**n] = game.value(exact.coalitions)
        noise = np.linspace(0.2, 0.9, len(value))
        ends = {name: value[{"empty": 0, "full": 2**n - 1}[name]] for name in given}
        drawn = value + noise * rng.standard_normal((20_000, len(value)))
        got = solve(plan, value, noise=noise, **ends)
        share, total = jax.vmap(lambda v, p=plan, e=ends: (solve(p, v, **e).share, solve(p, v, **e).total))(drawn)
        np.testing.assert_allclose(np.std(share, axis=0)[:n], np.asarray(got.stderr)[:n], rtol=0.03)
        assert not np.asarray(got.stderr)[n:].any()
        np.testing.assert_allclose(np.std(total), got.total_stderr, rtol=0.03, atol=1e-12)
        apart = np.sqrt(sum(noise[row] ** 2 for row, end in ((0, "empty"), (2**n - 1, "full")) if end not in given))
        np.testing.assert_allclose(got.total_stderr, apart, rtol=1e-12)


def test_noise_enters_the_shares_and_the_total_of_a_planned_game() -> None:
    game = shapley_plan(["a", "b"], budget=4)
    got = game.solve([0.0, 0.5, 0.25, 1.0], noise=0.5)
    np.testing.assert_allclose(got.total_stderr, 0.5 * 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(got.stderr, 0.5, rtol=1e-6)
    known = solve(plan_exact(2), np.array([0.0, 0.5, 0.25, 1.0]), empty=0.0, full=1.0, noise=0.5)
    np.testing.assert_allclose(known.stderr, 0.125**0.5, rtol=1e-12)
    assert known.total_stderr == 0


@pytest.mark.slow
def test_a_merged_plan_states_the_noise_of_its_total() -> None:
    """The mean of the stated variances is that of the total itself, over 300 noisy runs of endpoints and pairs."""
    game = game_of("bernoulli_logistic", 6)
    first, second = plan_pairs(jax.random.key(0), 6, 60, endpoints=3), plan_pairs(jax.random.key(1), 6, 60, endpoints=3)
    plan, totals, stated = merge(first, second), [], []
    for seed in range(300):
        got = solve(plan, observe(game, plan.coalitions, np.random.default_rng(seed)), degrees=(0,))
        totals.append(float(got.total))
        stated.append(float(got.total_stderr) ** 2)
    assert np.mean(stated) == pytest.approx(np.var(totals), rel=0.25)


@pytest.mark.parametrize("worth", [0.1, 10000.1])
def test_a_game_of_equal_values_has_no_shares(worth: float) -> None:
    got = solve(plan_exact(5), np.full(32, worth, np.float32))
    assert not np.asarray(got.share).any() and float(got.total) == 0


@pytest.mark.slow
def test_endpoints_of_exact_values_add_no_error() -> None:
    """Given or evaluated once, the same standard errors; of noisy values, evaluated once, larger ones."""
    n, game = 10, game_of("logistic", 10)
    ends = {"full": game.value(np.ones((1, n), bool))[0], "empty": game.value(np.zeros((1, n), bool))[0]}
    ends["degrees"] = once = (0,)
    plan = plan_pairs(jax.random.key(0), n, 100, noisy=False)
    values = game.value(plan.coalitions)
    np.testing.assert_allclose(solve(plan, values, degrees=once).stderr, solve(plan, values, **ends).stderr, rtol=1e-12)
    noisy = plan_pairs(jax.random.key(0), n, 100, endpoints=1)
    values = observe(game_of("bernoulli_logistic", 10), noisy.coalitions, np.random.default_rng(0))
    assert (
        np.asarray(solve(noisy, values, degrees=once).stderr) > np.asarray(solve(noisy, values, **ends).stderr)
    ).all()
    unknown = solve(plan_pairs(jax.random.key(0), n, 100, endpoints=0), np.zeros(100), degrees=once)
    assert np.isnan(np.asarray(unknown.share)).all() and np.isinf(np.asarray(unknown.stderr)).all()


@pytest.mark.parametrize("n", [pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow), 4])
def test_small_teams(n: int) -> None:
    game = game_of("logistic", n)
    plan = plan_pairs(jax.random.key(0), n, 60, noisy=False)
    assert plan.evaluations == 2**n
    got = solve(plan, game.value(plan.coalitions), degrees=(0, 1, 2) if n == 4 else (0,))
    np.testing.assert_allclose(got.share, game.shapley, atol=1e-9)
    walks = plan_walks(jax.random.key(0), n, 40)
    got = solve(walks, game.value(walks.coalitions))
    assert (np.abs(got.share - game.shapley) < 4 * np.asarray(got.stderr) + 1e-12).all()


def test_the_bound_is_the_sum_over_sizes() -> None:
    assert bound_constant(300) == pytest.approx(8.84, abs=0.01)
    assert bound_constant(16) == pytest.approx(5.80, abs=0.01)
    assert least_evaluations(300, 0.5, 1 / 300) == pytest.approx(2.0e5, rel=0.01)
    assert attainable_stderr(40, least_evaluations(40, 0.3, 0.01), 0.3) == pytest.approx(0.01, rel=1e-4)
    assert bound_constant(2) == 1.0  # one size of weight 1/√(1·1)


@pytest.mark.slow
def test_padding_changes_no_share() -> None:
    game = game_of("logistic", 12)
    for plan in (
        plan_walks(jax.random.key(0), 12, 100),
        plan_pairs(jax.random.key(0), 12, 100, noisy=False),
        plan_exact(6),
    ):
        small = game if plan.method != "exact" else game_of("logistic", 6)
        values = small.value(plan.coalitions)
        wide = pad_plan(plan, rows=len(values) + 7, units=15, samples=len(plan.sample_mask) + 4)
        padded = np.full(len(values) + 7, np.nan)
        padded[: len(values)] = values
        a, b = solve(plan, values, degrees=(1,)), solve(wide, padded, degrees=(1,))
        np.testing.assert_allclose(b.share[: small.n], a.share, atol=1e-12)
        np.testing.assert_allclose(b.stderr[: small.n], a.stderr, rtol=1e-6, atol=1e-12)
        assert not np.asarray(b.share)[small.n :].any()
        assert int(a.evaluations) == int(b.evaluations)


def test_a_plan_is_a_function_of_its_key() -> None:
    for make in (lambda k: plan_walks(k, 9, 60), lambda k: plan_pairs(k, 9, 60)):
        first, again, other = make(jax.random.key(1)), make(jax.random.key(1)), make(jax.random.key(2))
        assert (first.coalitions == again.coalitions).all()
        assert (first.coalitions != other.coalitions).any()


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


def test_no_number_of_evaluations_helps_where_nothing_is_known_of_the_error() -> None:
    game = game_of("vote", 12)
    plan = plan_walks(jax.random.key(0), 12, 24)
    got = solve(plan, game.value(plan.coalitions))
    assert np.isinf(np.asarray(got.stderr)).all()
    assert more_evaluations(got, 0.01) is None


def test_a_missing_value_refuses_all_shares() -> None:
    game = game_of("additive", 6)
    plan = plan_exact(6)
    values = game.value(plan.coalitions)
    values[5] = np.nan
    got = solve(plan, values)
    assert np.isnan(np.asarray(got.share)).all() and np.isinf(np.asarray(got.stderr)).all()


@pytest.mark.slow
def test_chains_that_repeat_the_indicators_leave_the_regression_solvable() -> None:
    """The chain of a root is its indicator: a regression that holds both failed on about one plan in two hundred."""
    game = game_of("bernoulli_tree", 16)
    assert game.parent is not None
    chains = ancestors_or_self(game.parent)
    ends = np.zeros((1, 16), bool), np.ones((1, 16), bool)
    low, high = (float(game.value(end)[0]) for end in ends)
    for seed in (91, *range(12)):
        plan, choice = make_plan(jax.random.key(seed), 16, 480, noise=0.5, parent=game.parent, endpoints=1)
        values = observe(game, plan.coalitions, np.random.default_rng(10_000 + seed))
        got = solve(plan, values, empty=low, full=high, above=chains, degrees=choice.degrees or (0,))
        assert np.isfinite(np.asarray(got.share)).all() and (np.asarray(got.stderr) > 0).all(), seed


def test_an_error_that_overflows_is_infinite_not_zero() -> None:
    game = game_of("logistic", 8)
    plan = plan_pairs(jax.random.key(0), 8, 60)
    got = solve(plan, game.value(plan.coalitions) * 1e300, empty=0.0, full=1e300)
    assert np.isinf(np.asarray(got.stderr)).all()


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


def test_marginals_along_orders_equal_walks() -> None:
    orders = np.array([[2, 0, 1], [1, 0, 2], [0, 1, 2], [2, 1, 0]], np.int32)
    game = two_additive(3, np.random.default_rng(0))
    plan = walks_from_orders(orders, antithetic=True)
    values = game.value(plan.coalitions)
    added = np.zeros((4, 3))
    for w, order in enumerate(orders):
        added[w, order] = np.diff(values[plan.samples[w]])
    share, variance = mean_of_marginals(added, antithetic=True)
    got = solve(plan, values)
    np.testing.assert_allclose(got.share, share, atol=1e-12)
    np.testing.assert_allclose(np.asarray(got.stderr) ** 2, variance, atol=1e-12)


@pytest.mark.slow
def test_single_precision_is_enough_for_training() -> None:
    game = game_of("logistic", 24)
    plan = plan_pairs(jax.random.key(0), 24, 720, noisy=False)
    values = game.value(plan.coalitions)
    double = solve(plan, values, degrees=(1,))
    with jax.enable_x64(False):
        single = solve(plan, values.astype(np.float32), degrees=(1,))
    assert single.share.dtype == np.float32
    np.testing.assert_allclose(single.share, double.share, atol=2e-5)


def test_enumeration_weighs_as_the_formula_says() -> None:
    """Coefficients from factorials, in Fractions."""
    n = 5
    plan = plan_exact(n)
    values = np.random.default_rng(0).integers(-9, 9, 2**n)
    expected = [
        sum(
            Fraction(math.factorial(k.bit_count()) * math.factorial(n - 1 - k.bit_count()), math.factorial(n))
            * int(values[k | 1 << i] - values[k])
            for k in range(2**n)
            if not k >> i & 1
        )
        for i in range(n)
    ]
    np.testing.assert_allclose(solve(plan, values.astype(np.float64)).share, [float(x) for x in expected], atol=1e-12)


@pytest.mark.parametrize(
    ("values", "error"),
    [(np.zeros(64, int), TypeError), (np.zeros(63), ValueError)],
)
def test_bad_values_are_refused(values: np.ndarray, error: type[Exception]) -> None:
    with pytest.raises(error):
        solve(plan_exact(6), values)


def test_bad_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 to 16"):
        plan_exact(17)
    with pytest.raises(ValueError, match="at least 20 evaluations"):
        plan_walks(jax.random.key(0), 10, 19)
    with pytest.raises(TypeError, match="typed JAX key"):
        plan_walks(np.zeros(2, np.uint32), 10, 40)
    with pytest.raises(ValueError, match="differ"):
        merge(plan_walks(jax.random.key(0), 10, 40), plan_pairs(jax.random.key(0), 10, 40))
