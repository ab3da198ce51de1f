"""Reconciling against rational and dense least squares, and what must not change the answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimators.composition.least_squares import Claims, Reconciled, reconcile
from estimators.composition.votes import floor_variance

pytestmark = pytest.mark.optimised

SMALL = (24, 12, 12, 5, 1, 1)  # events, turns, a level that nobody claims, agents, a level of one unit, traces
SMALL_SOURCES = (2, 1, 0, 2, 1, 0)
LARGE = (120, 60, 20, 20, 3, 3)


class Case(NamedTuple):
    claims: tuple[Claims, ...]
    parents: tuple[np.ndarray, ...]
    total: np.ndarray
    scored: np.ndarray
    tau2: float
    prior: np.ndarray

    def solve(self) -> Reconciled:
        return reconcile(
            self.claims,
            self.parents,
            jnp.asarray(self.total),
            self.scored,
            unexplained_variance=self.tau2,
            prior=self.prior,
        )

    def members(self) -> list[list[np.ndarray]]:
        """Events of every unit of every level."""
        top = np.arange(len(self.prior))
        found = [[np.array([e]) for e in top]]
        for level, parent in zip(self.claims[1:], self.parents, strict=True):
            top = parent[top]
            found.append([np.flatnonzero(top == u) for u in range(level.amount.shape[1])])
        return found


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def draw(
    rng: np.random.Generator, sizes: tuple[int, ...], sources: tuple[int, ...], decades: float, exact: float = 0.1
) -> Case:
    """A random hierarchy in which units may have no events, claims may be missing, and exact claims do not disagree."""
    parents = tuple(rng.integers(0, b, a).astype(np.int32) for a, b in itertools.pairwise(sizes))

    def errors(count: int, size: int, silent: float) -> np.ndarray:
        variance = 10.0 ** rng.uniform(-decades, decades, (count, size))  # standard errors over `decades` decades
        variance[rng.random((count, size)) < exact] = 0.0
        variance[rng.random((count, size)) < silent] = np.inf
        return variance

    variances = [
        errors(s, n, 0.3 if level == 0 else 0.5) for level, (s, n) in enumerate(zip(sources, sizes, strict=True))
    ]
    heard = np.isfinite(variances[0]).any(axis=0)
    prior = np.where(rng.random(sizes[0]) < 0.5, 0.0, 10.0 ** rng.uniform(-2, 2, sizes[0]))
    truth = rng.integers(-(2**20), 2**20, sizes[0]) / 2**18  # sums of these do not round
    truth = np.where(heard | (prior > 0), truth, 0)
    claims, at = [], truth
    for level, variance in enumerate(variances):
        noise = np.sqrt(np.where(np.isfinite(variance), variance, 0)) * rng.normal(size=variance.shape)
        claims.append(Claims(np.where(np.isfinite(variance), at[None] + noise, 0), variance))
        if level < len(parents):
            at = np.bincount(parents[level], at, sizes[level + 1])
    tau2 = float(rng.choice([np.inf, 0.0, 0.3]))
    scored = rng.random(sizes[-1]) < 0.9
    total = at if tau2 == 0 else at + rng.normal(size=at.shape)
    return Case(tuple(claims), parents, total, scored, tau2, prior)


def by_rationals(case: Case) -> tuple[list[Fraction], list[Fraction]]:
    """Mean and variance of every event: independent priors, conditioned on claim after claim, without rounding."""
    n = len(case.prior)
    mean, cov = [Fraction(0)] * n, [[Fraction(0)] * n for _ in range(n)]
    events = case.claims[0]
    for e in range(n):
        said = [(Fraction(a), Fraction(v)) for a, v in zip(events.amount[:, e], events.variance[:, e]) if v < np.inf]  # noqa: B905
        exact = [a for a, v in said if v == 0]
        if exact:
            mean[e] = sum(exact, Fraction(0)) / len(exact)
        elif said:
            precision = sum(1 / v for _, v in said)
            mean[e], cov[e][e] = sum(a / v for a, v in said) / precision, 1 / precision
        else:
            cov[e][e] = Fraction(case.prior[e])

    def condition(unit: np.ndarray, amount: float, variance: float) -> None:
        nonlocal mean, cov
        gain = [sum((row[j] for j in unit), Fraction(0)) for row in cov]
        whole = sum((gain[i] for i in unit), Fraction(0)) + Fraction(variance)
        if whole == 0:
            return
        gap = Fraction(amount) - sum((mean[i] for i in unit), Fraction(0))
        mean = [m + g * gap / whole for m, g in zip(mean, gain, strict=True)]
        cov = [[c - g * h / whole for c, h in zip(row, gain, strict=True)] for row, g in zip(cov, gain, strict=True)]

    members = case.members()
    for level, units in zip(case.claims[1:], members[1:], strict=True):
        for source in range(level.amount.shape[0]):
            for unit, amount, variance in zip(units, level.amount[source], level.variance[source], strict=True):
                if variance < np.inf:
                    condition(unit, amount, variance)
    for unit, amount, known in zip(members[-1], case.total, case.scored, strict=True):
        if known and case.tau2 < np.inf:
            condition(unit, amount, case.tau2)
    return mean, [cov[e][e] for e in range(n)]


def check_by_rationals(seeds: range) -> None:
    worst = worst_spread = 0.0
    for seed in seeds:
        case = draw(np.random.default_rng(seed), SMALL, SMALL_SOURCES, decades=9)
        made, (mean, spread) = case.solve(), by_rationals(case)
        largest = max(map(abs, mean))
        for x, exact in zip(np.asarray(made.amount)[:, 0], mean, strict=True):
            worst = max(worst, float(abs(Fraction(float(x)) - exact) / largest)) if largest else worst
        for x, exact in zip(np.asarray(made.variance), spread, strict=True):
            assert (x == 0) == (exact == 0)
            worst_spread = max(worst_spread, float(abs(Fraction(float(x)) / exact - 1))) if exact else worst_spread
    assert worst < 1e-12 and worst_spread < 1e-12, (worst, worst_spread)


@pytest.mark.slow
def test_it_is_rational_least_squares_over_nine_decades_of_errors() -> None:
    """Means to 1e-12 of the largest one; variances each to 1e-12 of itself."""
    check_by_rationals(range(6))


@pytest.mark.slow
def test_it_is_rational_least_squares_in_many_more_cases() -> None:
    check_by_rationals(range(100, 220))


def by_dense_algebra(case: Case) -> tuple[np.ndarray, float]:
    """Weighted least squares with equality constraints as one linear system, and the condition of that system."""
    members, n = case.members(), len(case.prior)
    rows, amounts, variances = [], [], []

    def add(unit: np.ndarray, amount: float, variance: float) -> None:
        row = np.zeros(n)
        row[unit] = 1
        rows.append(row), amounts.append(amount), variances.append(variance)

    exact_events = (case.claims[0].variance == 0).any(axis=0)
    silent = ~np.isfinite(case.claims[0].variance).any(axis=0)
    for e in np.flatnonzero(silent):
        add(np.array([e]), 0.0, case.prior[e])
    for level, (claims, units) in enumerate(zip(case.claims, members, strict=True)):
        for amount, variance in zip(claims.amount, claims.variance, strict=True):
            for u in np.flatnonzero(np.isfinite(variance)):
                if level == 0 and exact_events[u] and variance[u] > 0:
                    continue
                if len(units[u]):
                    add(units[u], amount[u], variance[u])
    for unit, amount, known in zip(members[-1], case.total, case.scored, strict=True):
        if known and case.tau2 < np.inf:
            add(unit, amount, case.tau2)
    a, c, v = np.array(rows), np.array(amounts), np.array(variances)
    soft, hard = v > 0, v == 0
    kept, basis = [], np.zeros((0, n))
    for i in np.flatnonzero(hard):  # exact claims that others imply would make the system singular
        grown = np.vstack([basis, a[i]])
        if np.linalg.matrix_rank(grown) > len(basis):
            kept, basis = [*kept, i], grown
    weighted = a[soft] / np.sqrt(v[soft])[:, None]
    system = np.block([[weighted.T @ weighted, basis.T], [basis, np.zeros((len(kept),) * 2)]])
    right = np.concatenate([weighted.T @ (c[soft] / np.sqrt(v[soft])), c[kept]])
    return np.linalg.solve(system, right)[:n], float(np.linalg.cond(system))


def check_by_dense_algebra(seeds: range) -> int:
    used = 0
    for seed in seeds:
        case = draw(np.random.default_rng(seed), LARGE, SMALL_SOURCES, decades=1.5, exact=0.03)
        if case.tau2 == 0:  # a met total beside many exact claims depends on rounding in the dense system
            case = case._replace(tau2=0.01)
        wanted, condition = by_dense_algebra(case)
        if condition < 1e6:
            used += 1
            found = np.asarray(case.solve().amount)[:, 0]
            assert np.max(np.abs(found - wanted)) < 1e-9 * np.max(np.abs(wanted)), seed
    return used


@pytest.mark.slow
def test_it_is_dense_least_squares_on_larger_hierarchies() -> None:
    assert check_by_dense_algebra(range(4)) >= 3


@pytest.mark.slow
def test_it_is_dense_least_squares_on_five_hundred_larger_hierarchies() -> None:
    assert check_by_dense_algebra(range(1000, 1540)) >= 500


def one_level(amount: list[float], variance: list[float]) -> Claims:
    return Claims(np.array([amount]), np.array([variance]))


NOBODY = Claims(np.zeros((0, 1)), np.zeros((0, 1)))


def test_the_total_moves_claims_by_their_variances_or_not_at_all() -> None:
    events = one_level([1.0, 1.0, 1.0], [1.0, 0.01, 0.01])
    free = reconcile((events, NOBODY), (np.zeros(3, int),), jnp.array([1.0]), np.array([True]))
    assert np.asarray(free.amount)[:, 0].tolist() == [1, 1, 1]
    met = reconcile((events, NOBODY), (np.zeros(3, int),), jnp.array([1.0]), np.array([True]), unexplained_variance=0.0)
    np.testing.assert_allclose(met.amount[:, 0], 1 - 2 * np.array([1, 0.01, 0.01]) / 1.02, rtol=1e-12)


@pytest.mark.slow
def test_fitted_variance_of_the_unexplained_finds_the_luck_of_the_batch() -> None:
    rng = np.random.default_rng(0)
    traces = 4000
    truth = rng.normal(size=(traces, 3))
    luck = 0.5 * rng.normal(size=traces)
    events = Claims((truth + 0.1 * rng.normal(size=truth.shape)).reshape(1, -1), np.full((1, 3 * traces), 0.01))
    nobody = Claims(np.zeros((0, traces)), np.zeros((0, traces)))
    total = jnp.asarray(truth.sum(axis=1) + luck)
    made = reconcile((events, nobody), (np.repeat(np.arange(traces), 3),), total, np.ones(traces, bool), fit=True)
    assert float(made.unexplained_variance[0]) == pytest.approx(0.25, rel=0.1)


@pytest.mark.slow
def test_channels_split_what_each_source_and_the_total_brought() -> None:
    case = draw(np.random.default_rng(3), SMALL, SMALL_SOURCES, decades=1)._replace(tau2=0.3)
    options = {"unexplained_variance": 0.3, "prior": case.prior}
    channels = ((0, 1), (2,), (), (0, 3), (1,), ())
    split = reconcile(case.claims, case.parents, jnp.asarray(case.total), case.scored, channels=channels, **options)
    assert split.amount.shape == (24, 5)
    np.testing.assert_allclose(jnp.sum(split.amount, axis=1), case.solve().amount[:, 0], rtol=0, atol=1e-12)
    loud = Claims(2 * case.claims[1].amount, case.claims[1].variance)
    doubled = (case.claims[0], loud, *case.claims[2:])
    again = reconcile(doubled, case.parents, jnp.asarray(case.total), case.scored, channels=channels, **options)
    np.testing.assert_allclose(again.amount[:, 2], 2 * split.amount[:, 2], rtol=1e-12)  # linear in each source
    np.testing.assert_array_equal(again.amount[:, [0, 1, 3, 4]], split.amount[:, [0, 1, 3, 4]])


@pytest.mark.slow
def test_exact_claims_that_leave_no_freedom_are_reported_where_they_clash() -> None:
    events = one_level([1.0, 2.0, 5.0, 5.0], [0.0, 0.0, 0.0, 1.0])
    agents = one_level([4.0, 7.0], [0.0, 0.0])
    made = reconcile(
        (events, agents, NOBODY),
        (np.array([0, 0, 1, 1]), np.zeros(2, int)),
        jnp.array([0.0]),
        np.array([True]),
    )
    assert np.asarray(made.conflict[1]).tolist() == [1.0, 0.0]
    assert np.asarray(made.amount)[2:, 0].tolist() == [5.0, 2.0]  # the free event takes what the exact ones leave


@pytest.mark.slow
def test_the_floor_of_an_estimated_zero_is_the_spread_of_a_beta_posterior() -> None:
    for n in (1, 4, 9):
        for k in range(n + 1):
            a, b = k + 1, n - k + 1
            assert float(floor_variance(k, n)) == pytest.approx(a * b / ((a + b) ** 2 * (a + b + 1)), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("error", [1.0, 1e19, 1.8e19])
def test_a_claim_on_one_unit_is_heard_whatever_its_error(error: float) -> None:
    """One over the square of an error of 1e19 is no normal number: no event of the unit heard of the claim."""
    square = np.float32(error) ** 2
    events = Claims(np.float32([[0.5, 0.0]]), np.array([[square, np.inf]], np.float32))
    units = Claims(np.float32([[1.0]]), np.float32([[square / 4]]))
    made = reconcile((events, units), (np.zeros(2, np.int32),), np.float32([1.0]), np.array([True]))
    np.testing.assert_allclose(made.amount, [[0.9], [0.0]], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(made.variance) / square, [0.2, 0.0], rtol=1e-6)
