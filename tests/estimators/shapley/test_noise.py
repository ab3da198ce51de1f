"""What noise of values and of endpoints does to shares, and to the errors that are stated."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from credit.replay.shapley_game import shapley_plan
from estimators.shapley import (
    attainable_stderr,
    choose,
    merge,
    pad_plan,
    plan_exact,
    plan_pairs,
    solve,
)
from graphs.errors import CreditError
from graphs.worlds.games import observe

from .games import game_of

pytestmark = pytest.mark.usefixtures("double_precision")


@pytest.mark.study
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


@pytest.mark.study
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


@pytest.mark.sampled
@pytest.mark.study
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


@pytest.mark.slow
def test_noise_enters_the_shares_and_the_total_of_a_planned_game() -> None:
    game = shapley_plan(["a", "b"], budget=4)
    got = game.solve([0.0, 0.5, 0.25, 1.0], noise=0.5)
    np.testing.assert_allclose(got.total_stderr, 0.5 * 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(got.stderr, 0.5, rtol=1e-6)
    known = solve(plan_exact(2), np.array([0.0, 0.5, 0.25, 1.0]), empty=0.0, full=1.0, noise=0.5)
    np.testing.assert_allclose(known.stderr, 0.125**0.5, rtol=1e-12)
    assert known.total_stderr == 0


@pytest.mark.study
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


@pytest.mark.study
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


@pytest.mark.parametrize(
    ("units", "budget", "noise"),
    [(4, 16, 0.0), *(pytest.param(8, *case, marks=pytest.mark.slow) for case in ((60, 0.0), (40, 0.0), (60, 0.5)))],
)
def test_shares_and_errors_are_those_of_the_unit_of_the_values(units: int, budget: int, noise: float) -> None:
    """Times 1e12 the shares of a game with interactions were NaN, times 1e-9 their errors too wide by a half."""
    game = shapley_plan([f"u{i}" for i in range(units)], budget, noise=noise)
    value = np.random.default_rng(0).normal(size=game.plan.evaluations)
    plain = game.solve(value, noise=0.1)
    for factor in (2.0**100, 2.0**-100, 1e12, 1e-9):
        found = game.solve(value * factor, noise=0.1 * factor)
        # A power of two changes no digit; other factors round the values, and few pairs fit them.
        room = {"rtol": 0.0} if factor in (2.0**100, 2.0**-100) else {"rtol": 2e-3, "atol": 1e-4}
        np.testing.assert_allclose(np.asarray(found.share, np.float64) / factor, plain.share, **room)
        np.testing.assert_allclose(np.asarray(found.stderr, np.float64) / factor, plain.stderr, **room)
    for beyond in (1e40, 1e-40):
        with pytest.raises(CreditError, match=r"values differ by .*; expected 1e-38 to 3e\+38, or no difference"):
            game.solve(value * beyond)


def test_small_shares_beside_one_of_a_trillion_keep_their_digits() -> None:
    """Shares of 0.1 and 0.2 were 9,934 with errors of 0: shares were solved in single precision."""
    game = shapley_plan(["a", "b", "c"], budget=8)
    shares = game.solve(np.asarray(game.plan.coalitions) @ np.array([1e12, 0.1, 0.2]))
    np.testing.assert_allclose(shares.share, [1e12, 0.1, 0.2], atol=1e-3)


@pytest.mark.slow
def test_a_constant_changes_neither_shares_nor_their_errors() -> None:
    """On top of 100,000, values in single precision said that nothing was left to fit: every error was 0."""
    game = shapley_plan([f"u{i}" for i in range(7)], budget=64)
    value = np.random.default_rng(0).normal(size=game.plan.evaluations)
    plain, shifted = game.solve(value), game.solve(value + 1e5)
    assert np.asarray(plain.stderr).min() > 0
    np.testing.assert_allclose(shifted.share, plain.share, atol=1e-4)
    np.testing.assert_allclose(shifted.stderr, plain.stderr, rtol=1e-3)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0])
def test_a_noise_that_is_no_standard_error_promises_no_precision(wrong: float) -> None:
    """A noise of NaN stated errors of 0."""
    assert np.isinf(solve(plan_exact(2), np.array([0.0, 0.5, 0.25, 1.0]), noise=wrong).stderr).all()
    with pytest.raises(CreditError, match=f"noise is {wrong}; expected a finite number"):
        choose(8, 100, noise=wrong)
