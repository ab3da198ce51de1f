"""The exact partition against rational arithmetic: adversarial totals, sizes, cancellations and orders of summing."""

from __future__ import annotations

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimators.composition.exact import exact_partition

pytestmark = pytest.mark.optimised

BITS = {np.float32: 24, np.float64: 53}
TOTALS = [0.0, 1.0, -1.0, 0.1, -0.3, 1 / 3, 1e30, 1e-30, 2.0**-20, np.nextafter(1, 2), 0.99999994, 1e10]
FAMILIES = ["normal", "same-sign", "cancel", "magnitudes", "pivotal", "zeros", "half-masked", "all-masked", "ties"]


def draw(rng: np.random.Generator, family: str, total: float, n: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Wanted cells and the mask of the first n of them, or fewer."""
    size = max(abs(total), 1e-12)
    where = np.arange(length) < n
    x = rng.normal(size=length) * size
    if family == "same-sign":
        x = np.abs(x)
        x *= total / x[:n].sum()
    elif family == "cancel":
        x *= 1e6 if size < 1e20 else 1e3  # 65,536 cells of 1e36 would not have a float32 sum
    elif family == "magnitudes":
        x = np.exp(rng.uniform(np.log(1e-12), np.log(1e3), length)) * np.sign(x) * size
    elif family == "pivotal":
        x = np.where(np.arange(length) == n // 2, total, 0.0)
    elif family == "zeros":
        x = np.zeros(length)
    elif family == "half-masked":
        where &= rng.random(length) < 0.5
    elif family == "all-masked":
        where &= False
    elif family == "ties":
        x = np.full(length, total / n)
    return x, where


def check(dtype: type, cases: list[tuple[float, int, str]], length: int, seed: int) -> int:
    """Partition all cases as one batch, under jit, and hold every promise of the docstring on each; how many held."""
    rng, bits, count = np.random.default_rng(seed), BITS[dtype], len(cases)
    drawn = [draw(rng, family, total, n, length) for total, n, family in cases]
    x, where = (np.stack(part) for part in zip(*drawn, strict=True))
    x, totals = x.astype(dtype), np.array([dtype(total) for total, _, _ in cases])
    ids = np.repeat(np.arange(count), length)
    part = exact_partition(jnp.asarray(x.ravel()), ids, where.ravel(), jnp.asarray(totals))
    amount = np.asarray(part.amounts(ids)).reshape(count, length)
    rest, remainder, exponent = (np.asarray(a) for a in (part.residual, part.remainder, part.exponent))
    assert np.array_equal(amount == 0, (amount == 0) | ~where)  # exactly 0 where no cell is

    # In units of the grid everything is a whole number below 2^53, which float64 holds exactly.
    units = np.ldexp(amount.astype(np.float64), -exponent[:, None])
    assert np.array_equal(units, np.rint(units))
    moved = np.abs(units - np.ldexp(np.where(where, x, 0).astype(np.float64), -exponent[:, None]))
    rest_units = np.ldexp(rest.astype(np.float64), -exponent)
    assert np.all(np.abs(units).sum(axis=1) + np.abs(rest_units) <= 2.0**bits)

    cells = np.concatenate([amount, rest[:, None]], axis=1)
    orders = [cells, cells[:, ::-1], cells[:, rng.permutation(length + 1)]]
    sums = [np.cumsum(order, axis=1, dtype=dtype)[:, -1] for order in orders] + [np.sum(cells, axis=1, dtype=dtype)]

    held = 0
    for i, case in enumerate(cases):
        wanted = x[i, where[i]]
        exact_sum = rational_sum(wanted)
        total = Fraction(float(totals[i]))
        scale = max(Fraction(math.fsum(np.abs(wanted))), abs(total))
        assert part.exact[i], case
        held += 1
        unit = Fraction(2) ** int(exponent[i])
        stored = sum(map(int, units[i])) * unit
        assert stored + Fraction(float(rest[i])) + Fraction(float(remainder[i])) == total, case
        assert all(s[i] + dtype(remainder[i]) == totals[i] for s in sums), case
        assert moved[i, where[i]].max(initial=0) <= 1.5, case
        assert abs(Fraction(float(remainder[i]))) <= unit / 2, case
        left = total - exact_sum
        scale = max(scale, Fraction(math.fsum(np.abs(wanted))) + abs(left))
        assert abs(Fraction(float(rest[i])) - left) <= unit * (1 + len(wanted)), case
        if case[2] == "ties" and case[1] > 100:  # roundings of many equal cells cancel
            assert abs(Fraction(float(rest[i])) - left) <= unit * 6, case
        assert unit <= 4 * scale / 2**bits or scale == 0, case
        if where[i].any() and attainable(wanted, left, total, bits):
            assert remainder[i] == 0, case
    return held


def rational_sum(x: np.ndarray) -> Fraction:
    """The sum of floats without rounding: mantissas are integers, added up for each exponent."""
    mantissa, power = np.frexp(x.astype(np.float64))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    parts = ((int(p), sum(map(int, whole[power == p]))) for p in np.unique(power))
    return sum((Fraction(total) * Fraction(2) ** (p - 53) for p, total in parts), Fraction(0))


def attainable(wanted: np.ndarray, left: Fraction, total: Fraction, bits: int) -> bool:
    """Whether the total lies on a grid that holds all cells, rounded to it, and the units that rounding owes."""
    if total == 0:
        return True
    denominator = total.denominator
    numerator = abs(total.numerator)
    lowest = Fraction(numerator & -numerator, denominator)  # the coarsest power of two that divides the total
    power = lowest.numerator.bit_length() - lowest.denominator.bit_length()
    scaled = np.ldexp(wanted.astype(np.float64), -power)
    if not np.all(np.abs(scaled) < 2.0**bits):
        return False
    whole = [*map(int, np.rint(scaled)), round(left / lowest)]
    owed = abs(int(total / lowest) - sum(whole))
    return sum(map(abs, whole)) + owed <= 2**bits


def every(sizes: tuple[int, ...]) -> list[tuple[float, int, str]]:
    return [(total, n, family) for total in TOTALS for n in sizes for family in FAMILIES]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow
def test_cells_sum_to_the_total_exactly_in_any_order(dtype: type) -> None:
    with jax.enable_x64(dtype is np.float64):
        assert check(dtype, every((1, 2, 7, 200)), 200, seed=0) == 432


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ten_thousand_more_cases(dtype: type) -> None:
    with jax.enable_x64(dtype is np.float64):
        held = sum(check(dtype, every((1, 2, 7, 300, 1024)), 1024, seed) for seed in range(1, 11))
        assert held == 5400
        large = [(total, 65536, family) for total in TOTALS for family in ("normal", "cancel", "magnitudes", "pivotal")]
        assert check(dtype, large, 65536, seed=11) == 48


def test_without_a_search_the_traces_that_need_none_are_the_same_and_the_others_not_exact() -> None:
    """A ledger searches, which takes as long to compile as all else, only where a trace needs it."""
    rng, count = np.random.default_rng(3), 200
    cells = (rng.normal(size=3 * count) / 8).astype(np.float32)
    total = np.where(np.arange(count) % 2, 1, rng.normal(size=count)).astype(np.float32)
    total[::8] = 0.75 + 2.0**-24  # on a grid half as coarse as the usual one, which the cells nearly reach
    cells.reshape(count, 3)[::8] = (0.875, -0.125 - 2.0**-23, 0)
    given = (cells, np.repeat(np.arange(count), 3), np.ones(3 * count, bool), total)
    searched, usual = exact_partition(*given), exact_partition(*given, search=False)
    same = np.asarray(usual.exact)
    assert np.array_equal(~same, np.arange(count) % 8 == 0)
    assert np.asarray(searched.exact).all()
    for one, other in zip(searched[1:5], usual[1:5], strict=True):
        assert np.array_equal(np.asarray(one)[same], np.asarray(other)[same])
    assert np.array_equal(searched.units.reshape(count, 3)[same], usual.units.reshape(count, 3)[same])


def test_a_trace_has_the_entries_that_it_has_alone() -> None:
    """Cells were rounded by place in the batch, so that a ledger in parts was another one in its last digit."""
    cells, total = np.float32([0.003, -0.007, 0.011]), np.float32([1.0])
    alone = exact_partition(cells, np.zeros(3, np.int32), np.ones(3, bool), total)
    batch = exact_partition(np.tile(cells, 9), np.repeat(np.arange(9), 3), np.ones(27, bool), np.tile(total, 9))
    assert batch.units.reshape(9, 3).tolist() == [alone.units.tolist()] * 9


def test_non_finite_totals_and_cells_are_flagged() -> None:
    part = exact_partition(
        jnp.array([1.0, 2.0, jnp.nan, 1.0]), jnp.array([0, 0, 1, 2]), jnp.ones(4, bool), jnp.array([jnp.inf, 1.0, 1.0])
    )
    assert part.exact.tolist() == [False, False, True]
    assert jnp.isfinite(part.amounts(jnp.array([0, 0, 1, 2]))).all()


@pytest.mark.parametrize(("total", "cell"), [(1e-40, 0.0), (1.0, 1e-40), (0.0, 1e-40), (1e-40, 1.0), (1e-40, 1e-40)])
def test_numbers_that_a_backend_may_flush_to_zero_are_never_called_exact(total: float, cell: float) -> None:
    """Rewards of 1e-40 gave entries that sum to 0 with `exact` True."""
    cells = jnp.array([cell, 0.0], jnp.float32)
    part = exact_partition(cells, jnp.zeros(2, jnp.int32), jnp.ones(2, bool), jnp.array([total], jnp.float32))
    assert bool(part.exact[0]) is (total >= 1)  # beside a normal total a subnormal cell is less than a unit


@pytest.mark.slow
def test_a_remainder_that_a_backend_flushes_to_zero_is_never_called_exact() -> None:
    """A reward of 3.3e-33 beside claims of 3e-31 was summed to 3.2999888e-33, with `exact` True."""
    rng = np.random.default_rng(0)
    count, ids = 200, np.repeat(np.arange(200), 2)
    cells = (rng.normal(size=2 * count) * 10.0 ** rng.uniform(-32, -29, 2 * count)).astype(np.float32)
    total = (rng.normal(size=count) * 10.0 ** rng.uniform(-34, -29, count)).astype(np.float32)
    cells[:2], total[0] = (3e-31, -1e-31), 3.3e-33
    part = exact_partition(jnp.asarray(cells), ids, np.ones(2 * count, bool), jnp.asarray(total))
    amount, rest, remainder = (np.asarray(x, np.float64) for x in (part.amounts(ids), part.residual, part.remainder))
    held = (amount.reshape(count, 2).sum(axis=1) + rest) + remainder == total
    assert not part.exact[0] and 50 < np.asarray(part.exact).sum() < count
    assert held[np.asarray(part.exact)].all()
