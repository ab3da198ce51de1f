"""Sums and look-ups along short rows against those along any."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from estimators.short_rows import FEW, at_column, every_column, sum_of_columns


@pytest.mark.sampled
@pytest.mark.parametrize("width", [0, 1, 2, 5, FEW, FEW + 1])
def test_they_are_those_of_numpy(width: int) -> None:
    rng = np.random.default_rng(width)
    table = rng.normal(size=(7, width)).astype(np.float32)
    np.testing.assert_allclose(sum_of_columns(jnp.asarray(table)), table.sum(axis=1), atol=1e-5)
    np.testing.assert_array_equal(every_column(jnp.asarray(table > -1)), (table > -1).all(axis=1))
    if width:
        column = rng.integers(0, width, 7)
        np.testing.assert_array_equal(at_column(jnp.asarray(table), jnp.asarray(column)), table[np.arange(7), column])
