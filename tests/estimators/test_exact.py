"""The exact partition against rational arithmetic, on adversarial totals, sizes and cancellations."""

from __future__ import annotations

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimators.exact import exact_partition

BITS = {np.float32: 24, np.float64: 53}
TOTALS = [0.0, 1.0, -1.0, 0.1, -0.3, 1 / 3, 1e30, 1e-30, 2.0**-20, np.nextafter(1, 2), 0.99999994, 1e10]
FAMILIES = ["normal", "same-sign", "cancel", "magnitudes", "pivotal", "zeros", "half-masked", "all-masked", "ties"]
LENGTH = 1024  # one padded length, so that one program serves all cases; the content varies


def draw(rng: np.random.Generator, family: str, total: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    size = max(abs(total), 1e-12)
    where = np.arange(LENGTH) < n
    x = rng.normal(size=LENGTH) * size
    if family == "same-sign":
        x = np.abs(x)
        x *= total / x[:n].sum()
    elif family == "cancel":
        x *= 1e6 if size < 1e20 else 1e4  # 1024 cells of 1e36 would not have a float32 sum
    elif family == "magnitudes":
        x = np.exp(rng.uniform(np.log(1e-12), np.log(1e3), LENGTH)) * np.sign(x) * size
    elif family == "pivotal":
        x = np.where(np.arange(LENGTH) == n // 2, total, 0.0)
    elif family == "zeros":
        x = np.zeros(LENGTH)
    elif family == "half-masked":
        where &= rng.random(LENGTH) < 0.5
    elif family == "all-masked":
        where &= False
    elif family == "ties":
        x = np.full(LENGTH, total / n)
    return x, where


def attainable(x: np.ndarray, residual: Fraction, total: Fraction, bits: int) -> bool:
    """Whether a grid within the promised unit holds the total and all cells rounded to it, decided with rationals."""
    if total == 0:
        return True
    cells = [Fraction(float(v)) for v in x] + [residual]
    denominator = total.denominator
    numerator = abs(total.numerator)
    lowest = Fraction(numerator & -numerator, denominator)  # the coarsest power of two that divides the total
    if denominator & (denominator - 1):
        return False
    # on the grid `lowest`, with cells rounded to nearest, does the sum of magnitudes stay clearly within capacity?
    weight = sum(abs(round(c / lowest)) for c in cells)
    return weight + len(cells) <= 2**bits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("residual", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_cells_sum_to_the_total_exactly_in_any_order(dtype: type, residual: bool) -> None:
    with jax.enable_x64(dtype is np.float64):
        rng = np.random.default_rng(0)
        cases = [(t, n, f) for t in TOTALS for n in (1, 2, 7, 300, LENGTH) for f in FAMILIES]
        batch = len(cases)
        xs, masks, totals = [], [], []
        for total, n, family in cases:
            x, where = draw(rng, family, total, n)
            xs.append(x.astype(dtype))
            masks.append(where)
            totals.append(dtype(total))
        ids = np.repeat(np.arange(batch), LENGTH)
        part = exact_partition(
            jnp.asarray(np.concatenate(xs)),
            ids,
            np.concatenate(masks),
            jnp.asarray(np.array(totals)),
            residual=residual,
        )
        amounts = np.asarray(part.amounts(ids)).reshape(batch, LENGTH)
        rests = np.asarray(part.residual)
        bits = BITS[dtype]
        checked = 0
        for i, (total, n, family) in enumerate(cases):
            x, where, amount = xs[i], masks[i], amounts[i]
            exact_sum = sum((Fraction(float(v)) for v in x[where]), Fraction(0))
            scale = max(sum(abs(Fraction(float(v))) for v in x[where]), abs(Fraction(float(totals[i]))))
            consistent = abs(exact_sum - Fraction(float(totals[i]))) <= scale * Fraction(n + 1, 2 ** (bits + 1))
            label = f"{dtype.__name__} R={total} n={n} {family}"
            if not residual and not consistent:
                assert not part.exact[i] or where.any(), label
                continue
            assert part.exact[i], label
            checked += 1
            unit = Fraction(2) ** int(part.exponent[i])
            rest = Fraction(float(rests[i]))
            remainder = Fraction(float(part.remainder[i]))
            cells = [Fraction(float(v)) for v in amount]
            assert sum(cells) + rest + remainder == Fraction(float(totals[i])), label
            assert all(c == 0 for c, w in zip(cells, where, strict=True) if not w), label
            assert abs(remainder) <= unit / 2, label
            wanted = Fraction(float(totals[i])) - exact_sum
            if residual:
                scale = max(scale, sum(abs(Fraction(float(v))) for v in x[where]) + abs(wanted))
            assert unit <= 4 * scale / 2**bits or scale == 0, label
            for v, c, w in zip(x, cells, where, strict=True):
                assert not w or abs(c - Fraction(float(v))) <= unit * 3 / 2, label
            if residual and where.any():
                assert abs(rest - wanted) <= unit * 3 / 2, label
                if attainable(x[where], wanted, Fraction(float(totals[i])), bits):
                    assert remainder == 0, label
            floats = np.append(amount, rests[i])
            shuffled = rng.permutation(floats)
            for order in (floats, floats[::-1], shuffled):
                assert np.cumsum(order, dtype=dtype)[-1] + dtype(part.remainder[i]) == totals[i], label
            assert np.sum(floats, dtype=dtype) + dtype(part.remainder[i]) == totals[i], label
        assert checked > (400 if residual else 100)


def test_non_finite_totals_and_cells_are_flagged() -> None:
    part = exact_partition(
        jnp.array([1.0, 2.0, jnp.nan, 1.0]), jnp.array([0, 0, 1, 2]), jnp.ones(4, bool), jnp.array([jnp.inf, 1.0, 1.0])
    )
    assert part.exact.tolist() == [False, False, True]
    assert jnp.isfinite(part.amounts(jnp.array([0, 0, 1, 2]))).all()
