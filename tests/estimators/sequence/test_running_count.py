"""Counts by blocks against NumPy's running sum, at lengths about a block's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimators.sequence.running_count import running_count
from estimators.sequence.suffix_recursion import BLOCK


@pytest.mark.slow
def test_counts_of_two_blocks() -> None:
    mask = np.arange(BLOCK + 3) % 3 != 1
    assert jax.jit(running_count)(mask).tolist() == np.cumsum(mask).tolist()


@pytest.mark.study
def test_counts_are_those_of_a_running_sum() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 16, 33, 700):
        mask = rng.random(size) < 0.6
        found = jax.jit(running_count)(mask)
        assert found.dtype == jnp.int32 and found.tolist() == np.cumsum(mask).tolist()
