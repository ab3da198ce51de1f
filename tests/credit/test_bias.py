"""Bias by enumeration: what is unbiased is exactly so in every micro-world, and GRPO's bias is the known number."""

from __future__ import annotations

import numpy as np
import pytest

from credit.bias import measure, x64
from graphs.micro import MICRO


@pytest.mark.parametrize("world", MICRO)
def test_the_gradient_by_enumeration_is_that_of_the_expected_reward(world: str) -> None:
    micro = MICRO[world]
    assert micro.probabilities(micro.policy).sum() == pytest.approx(1, abs=1e-12)
    with x64():
        np.testing.assert_allclose(micro.gradient(), micro.gradient_by_jax(), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "method", ["rloo", "dr_grpo x K/(K-1)", "remax", "discounted_return", "gae lambda=1", "turn_baseline"]
)
def test_unbiased_methods_have_no_bias(method: str, k: int) -> None:
    for name, world in MICRO.items():
        assert measure(method, world, k).bias < 1e-6, name


def test_dividing_by_the_spread_biases_by_one_minus_one_over_root_two_at_two_traces() -> None:
    """Two traces with outcomes 0 and 1: the mean halves the signal, and the spread is 1/√2 whenever they differ."""
    for world in ("spawn-and", "delegate-bernoulli"):
        assert measure("grpo", MICRO[world], 2).bias == pytest.approx(1 - 1 / np.sqrt(2), abs=1e-5)
