"""The order by several keys is that of a comparison sort, however many bits the keys have."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from graphs import stable_order as module
from graphs.stable_order import stable_order

LEAST, MOST = np.iinfo(np.int32).min, np.iinfo(np.int32).max


@pytest.mark.parametrize("room", [42, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [0, 1, 1000, *(pytest.param(size, marks=pytest.mark.slow) for size in (2, 257))])
def test_it_is_the_order_of_a_comparison_sort(size: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM", room)  # 42: one key a pass, as of batches beyond 2^31
    ordered = jax.jit(lambda *keys: module.stable_order.__wrapped__(*keys))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        keys = [
            rng.integers(LEAST, MOST, size, dtype=np.int32, endpoint=True),
            rng.choice(np.array([LEAST, -1, 0, MOST], np.int32), size),
            np.sort(rng.integers(0, 9, size, dtype=np.int32)),
            rng.random(size) < 0.5,
            np.full(size, 7, np.int32),
            rng.integers(0, 9, size, dtype=np.int32),
        ]
        for chosen in ([0], [1], [2], [0, 3], [3, 1], [2, 4], [0, 1, 2, 3], [5, 2, 3], [4, 0, 1, 5, 3]):
            of = [keys[k] for k in chosen]
            np.testing.assert_array_equal(ordered(*of), np.lexsort(of))


def test_keys_that_are_in_order_together_keep_their_places() -> None:
    first, second = np.array([3, 1, 2, 0], np.int32), np.array([0, 1, 1, 2], np.int32)
    np.testing.assert_array_equal(stable_order(first, second), np.lexsort([first, second]))
    np.testing.assert_array_equal(stable_order(second, first), np.lexsort([second, first]))


def test_it_works_under_vmap() -> None:
    keys = np.random.default_rng(0).integers(0, 3, (4, 50), dtype=np.int32)
    np.testing.assert_array_equal(jax.vmap(stable_order)(keys), np.argsort(keys, axis=1, kind="stable"))
