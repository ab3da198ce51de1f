"""No key of evidence makes biased what is called unbiased: exact enumeration in worlds drawn by seed."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from benchmarks.bias_under_evidence import METHODS, REPLAYED, Batches, World, bias, combinations


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("keys", [("alternative", "context", "propensity", "target_propensity"), ("trainable",)])
def test_no_key_makes_leave_one_out_biased(keys: tuple[str, ...]) -> None:
    """Traces that chose alike are no replays, and outcomes of a frozen agent alone are samples, too."""
    world = World.drawn(0)
    for name in ("rloo", "turn_baseline"):
        assert bias(name, world, Batches.independent(world, 2), frozenset(keys)) < 1e-12


@pytest.mark.study
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.study)])
def test_no_combination_of_keys_makes_a_method_biased(seed: int) -> None:
    world = World.drawn(seed)
    batches = Batches.independent(world, 2)
    for keys in combinations(seed):
        for name in ("rloo", "turn_baseline"):
            assert bias(name, world, batches, keys) < 1e-12, (name, keys)
    for keys in list(combinations(seed))[:: 11 + seed]:
        for name in set(METHODS) - {"rloo", "turn_baseline", "c3"}:
            assert bias(name, world, batches, keys) < 1e-12, (name, keys)


@pytest.mark.study
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.study)])
def test_no_combination_of_keys_that_shows_replays_makes_a_method_biased(seed: int) -> None:
    world = World.drawn(seed)
    batches = Batches.siblings(world, 2)
    for keys in combinations(seed, REPLAYED):
        for name in ("rloo", "turn_baseline", "c3"):
            assert bias(name, world, batches, keys, replayed=True) < 1e-12, (name, keys)
