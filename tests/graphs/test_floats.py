"""Numbers whose differences single precision changes: by the definition, on sizes from the least to the largest."""

from __future__ import annotations

import numpy as np

from graphs.floats import KEPT, RELATIVE, rounded_differences


def by_definition(exact: np.ndarray) -> bool:
    """One key's answer: what rounding moves its numbers and means by, against its largest difference."""
    others = [(exact.sum() - x) / max(len(exact) - 1, 1) for x in exact]
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = [float(x) for x in (*exact, exact.sum() / len(exact), *others)]
        moved = [abs(float(np.float32(x)) - x) for x in numbers]
    spread = exact.max() - exact.min()
    moved.append(2.0**-126)  # a difference of any two, or a part of one, may be below the least normal number, and lost
    size = np.abs(exact).max()
    noise = 0 if (exact == np.floor(exact)).all() else RELATIVE * size  # of sums; integers are what was meant
    return bool(max(moved) > KEPT * spread and (spread > noise or size >= 2**53))


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
