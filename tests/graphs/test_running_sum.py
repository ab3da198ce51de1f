"""Sums by blocks against NumPy's running sum, at lengths about a block's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from graphs.running_sum import BLOCK, FEW, running_sum


@pytest.mark.slow
def test_sums_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, FEW - 1, FEW, FEW + 1, BLOCK * FEW + 3):
        mask = rng.random(size) < 0.6
        found = jax.jit(running_sum)(mask)
        assert found.dtype == jnp.int32 and found.tolist() == np.cumsum(mask).tolist()
    numbers = rng.integers(-9, 2**31 - 9, FEW + 5, dtype=np.int32)  # which overflow, as in `jnp.cumsum`
    assert jax.jit(running_sum)(numbers).tolist() == np.cumsum(numbers, dtype=np.int32).tolist()
