"""Numbers of 16 bits are computed in 32: squares of small errors, and sums of many tokens, have no place in 16."""

from __future__ import annotations

from typing import Any, get_args

import jax.numpy as jnp
import numpy as np
import pytest

import credit
from estimators import combine
from estimators.baselines.released import distinct_normalised, marft_normalised, marshal_tokens, verl_gae_tokens
from estimators.tokens.losses import Aggregation, aggregate_loss

HALF = (jnp.float16, jnp.bfloat16)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALF)
def test_claims_keep_errors_whose_squares_are_too_small(dtype: Any) -> None:
    graph, _, rows = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])

    def claims(dtype: Any) -> list[credit.Credit]:
        return [
            credit.claim(
                graph, jnp.full(graph.num_events, amount, dtype), estimand="increment", source=source, stderr=stderr
            )
            for source, amount, stderr in (("a", 1.0, 1e-4), ("b", 0.0, 1e-3))
        ]

    half, single = combine(claims(dtype)), combine(claims(jnp.float32))
    assert claims(dtype)[0].credit.dtype == jnp.float32
    np.testing.assert_array_equal(rows.gather(half.amount), rows.gather(single.amount))
    np.testing.assert_array_equal(rows.gather(half.stderr), rows.gather(single.stderr))
    np.testing.assert_allclose(rows.gather(half.amount), 1 / 1.01, rtol=1e-5)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("mode", get_args(Aggregation))
def test_losses_of_many_tokens_are_summed_in_float32(mode: Aggregation, dtype: Any) -> None:
    found = aggregate_loss(jnp.ones((64, 2048), dtype), np.ones((64, 2048), bool), mode=mode)
    expected = {"token-mean": 1, "seq-mean-token-sum": 2048, "seq-mean-token-mean": 1, "seq-mean-token-sum-norm": 64}
    assert found.dtype == jnp.float32 and float(found) == expected[mode]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("dtype", HALF)
def test_released_normalisations_take_half_precision(dtype: Any) -> None:
    """A constant of 1e-8 beside a spread is 0 in float16, and 0 / 0 no number."""
    one, mask = jnp.ones((3, 2), dtype), np.ones((3, 2), bool)
    ends = np.arange(2) == np.ones((3, 1))
    for found in (
        marft_normalised(one),
        distinct_normalised(one[:, 0], np.zeros(3, np.int32), scale="std"),
        verl_gae_tokens(one, 0 * one, mask, 0.0)[0],
        marshal_tokens(one, ends, mask, np.zeros(3, np.int32)),
    ):
        assert found.dtype == jnp.float32
        np.testing.assert_array_equal(found, 0)
