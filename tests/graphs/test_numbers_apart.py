"""Numbers that stand together read as different where they differ, and as equal where only rounding differs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from graphs.text import amount, apart, decimals, interval, percent, signed


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


@pytest.mark.parametrize("write", [signed, decimals])
def test_an_end_has_the_sign_of_its_side_and_is_0_only_where_it_is(write: Callable[[float, int], str]) -> None:
    """An end of 0 was `+0`, one of 1e-17 `+1e-17` or `+0.000`, and one of -4e-5 `-0.0000`."""
    for low in (-0.3, -4e-5, -1e-17, -0.0, 0.0, 1e-17, 4e-5, 0.3):
        text, above = interval(low, 0.5, write).split(" to ")
        assert text[0] == ("-" if low < -1e-9 else "+" if low > 1e-9 else "0") and above[0] == "+"
        assert float(text) == pytest.approx(low, rel=0.01, abs=1e-9)


def test_rounding_and_missing_numbers_ask_for_no_digits() -> None:
    assert apart([0.1 + 0.2, 0.3], amount, 3) == ["0.3", "0.3"]
    assert apart([math.nan, 0.5], percent, 0, beside=0.5) == ["–", "50 %"]
    assert apart([], amount, 3) == []
    assert apart([12345.2, 12345.4], amount, 3) == ["12,345.2", "12,345.4"]
