"""Numbers that stand together read as different where they differ, and as equal where only rounding differs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphs.text import amount, apart, percent


@pytest.mark.parametrize("seed", range(20))
def test_numbers_that_differ_never_read_alike(seed: int) -> None:
    """A difference with a star stood beside `50 % against 50 %`, and an interval as `+0.000 to +0.000`."""
    random = np.random.default_rng(seed)
    middle = float(random.uniform(0.01, 0.99))
    numbers = [middle, *(middle + float(random.choice([-1, 1])) * 10.0 ** -random.uniform(2, 6, 3) / 200)]
    for write, digits in ((percent, 0), (amount, 3)):
        texts = apart(numbers, write, digits, beside=0.5)
        assert len({*texts}) == len({*numbers}) and write(0.5, 12) not in texts
        for number, text in zip(numbers, texts, strict=True):
            size = 100 if write is percent else 1
            assert float(text.removesuffix(" %").strip("<>")) == pytest.approx(size * number, rel=0.005, abs=0.5)
    plain = [0.31, 0.78]
    assert apart(plain, percent, 0) == ["31 %", "78 %"] and apart(plain, amount, 3) == ["0.31", "0.78"]


def test_rounding_and_missing_numbers_ask_for_no_digits() -> None:
    assert apart([0.1 + 0.2, 0.3], amount, 3) == ["0.3", "0.3"]
    assert apart([math.nan, 0.5], percent, 0, beside=0.5) == ["–", "50 %"]
    assert apart([], amount, 3) == []
    assert apart([12345.2, 12345.4], amount, 3) == ["12,345.2", "12,345.4"]
