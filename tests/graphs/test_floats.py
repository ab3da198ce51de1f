"""Numbers whose differences single precision changes: by the definition, on sizes from the least to the largest."""

from __future__ import annotations

import numpy as np

from graphs.floats import KEPT, RELATIVE, rounded_differences, single_sums


def by_definition(exact: np.ndarray) -> bool:
    """One key's answer: what rounding moves differences from means by, against the largest of them."""
    least = 2.0**-126  # a difference may be below the least normal number, and lost
    size, coarse = np.abs(exact).max(), False
    with np.errstate(over="ignore", invalid="ignore"):
        single = exact.astype(np.float32).astype(np.float64)
        for own in (1, 0):  # the mean of all, and that of the others
            means, got = (
                np.array([(x.sum() - (1 - own) * one) / (len(x) - 1 + own) for one in x]) for x in (exact, single)
            )
            true = exact - means
            moved = np.abs(single - got.astype(np.float32) - true).max()
            coarse |= not max(moved, least) <= KEPT * np.abs(true).max()
    noise = 0 if (exact == np.floor(exact)).all() else RELATIVE * size  # of sums; integers are what was meant
    return bool(coarse and (exact.max() - exact.min() > noise or size >= 2**53))


def test_single_precision_is_compared_with_the_differences_of_any_size() -> None:
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(400):
        offset, step = 10.0 ** rng.uniform(-46, 38.5), 10.0 ** rng.uniform(-12, 2)
        exact = rng.choice([-1, 1]) * offset * (1 + step * rng.choice([0.0, 0.5, 1.0, 2.0], size=5))
        exact = np.round(exact) if rng.random() < 0.3 else exact
        wanted = by_definition(exact)
        assert rounded_differences(exact, np.zeros(5, np.int64), 1).tolist() == [wanted], exact
        found.add(wanted)
    assert found == {False, True}


def test_equal_numbers_whose_sums_differ_in_single_precision_are_told() -> None:
    """Ten rewards of 0.1 and five of 0.2: a method that divides by the spread made 0.1 to 1.4 of nothing."""
    ids, terms = np.repeat([0, 1], [10, 5]), np.repeat([0.1, 0.2], [10, 5])
    exact, both = np.bincount(ids, terms), np.zeros(2, np.int64)
    assert rounded_differences(exact, both, 1, single_sums(np.zeros(2), terms, ids)).tolist() == [True]
    halves = single_sums(np.zeros(2), np.repeat([0.125, 0.25], [10, 5]), ids)
    assert rounded_differences(halves.astype(np.float64), both, 1, halves).tolist() == [False]
    beside = single_sums(np.array([1.0, 0.0]), terms, ids)  # a rounding beside a difference of 1
    assert rounded_differences(exact + np.array([1, 0]), both, 1, beside).tolist() == [False]
    same = single_sums(np.zeros(2), np.tile(np.full(10, 0.1), 2), np.repeat([0, 1], 10))
    assert rounded_differences(np.ones(2), both, 1, same).tolist() == [False]


def test_long_sums_that_drift_are_told() -> None:
    """Of ten thousand rewards a difference of 0.05 in returns of 1,000 was lost without a word."""
    ids, terms = np.repeat([0, 1], [10_000, 5_000]), np.repeat([0.1, 0.2], [10_000, 5_000])
    start = np.array([0.05, 0.0])
    exact = start + np.bincount(ids, terms)
    assert not rounded_differences(exact, np.zeros(2, np.int64), 1).any()
    assert rounded_differences(exact, np.zeros(2, np.int64), 1, single_sums(start, terms, ids)).all()
