"""Reductions over segments give the same in blocks, as a GPU has them, and at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from graphs import segment

# Members, segments: fewer than two blocks, whole blocks, a rest, one segment, more segments than blocks.
SIZES = [(300, 4), (1024, 3), (3001, 40), (2000, 1), (4096, 2000)]


# Compiled in blocks, once for each size: only tests with `blocks` call them.
SUM = jax.jit(lambda *given: segment.segment_sum(*given), static_argnums=2)
SLOPE = jax.jit(
    jax.grad(lambda x, ids, segments, where: jnp.sum(segment.segment_sum(x, ids, segments, where) ** 2)),
    static_argnums=2,
)
LEAST = jax.jit(lambda *given: segment.segment_min(*given, empty=-1000), static_argnums=2)
FIRST = jax.jit(lambda *given: segment.segment_first(*given), static_argnums=1)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture(params=["in a row", "in any order"])
def ids_of(request, rng):
    def ids(size: int, segments: int) -> np.ndarray:
        drawn = rng.integers(0, segments, size).astype(np.int32)
        return np.sort(drawn) if request.param == "in a row" else drawn

    return ids


@pytest.fixture
def blocks(monkeypatch):
    monkeypatch.setattr(segment, "_in_blocks", lambda ids: ids.shape[0] >= 2 * segment.BLOCK)


@pytest.mark.parametrize(("size", "segments"), SIZES)
def test_sums_in_blocks_have_the_members_and_no_others(ids_of, rng, blocks, size, segments):
    ids, where = ids_of(size, segments), rng.random(size) < 0.7
    values = np.where(where, rng.integers(-9, 9, size), np.nan).astype(np.float32)
    expected = np.zeros(segments)
    np.add.at(expected, ids[where], values[where])
    total = SUM(values, ids, segments, where)
    assert total.tolist() == expected.tolist()  # whole numbers: exact in any order

    wide = np.stack([np.where(where, values, 0), 2 * np.where(where, values, 0)], axis=1)
    assert SUM(wide, ids, segments).tolist() == np.stack([expected, 2 * expected], axis=1).tolist()
    assert SLOPE(values, ids, segments, where).tolist() == np.where(where, 2 * expected[ids], 0).tolist()


@pytest.mark.parametrize(("size", "segments"), SIZES)
def test_the_least_and_the_first_in_blocks_are_of_members_alone(ids_of, rng, blocks, size, segments):
    ids, where, values = ids_of(size, segments), rng.random(size) < 0.1, rng.integers(-99, 99, size).astype(np.int32)
    least, first = [], []
    for k in range(segments):
        members = np.flatnonzero((ids == k) & where)
        least.append(int(values[members].min()) if members.size else -1000)
        first.append(int(members[0]) if members.size else 0)
    assert LEAST(values, ids, segments, where).tolist() == least
    assert FIRST(ids, segments, where).tolist() == first


def test_ids_of_eight_bits_hold_no_number_of_segments_out_of_range(blocks):
    ids = jnp.arange(1024, dtype=jnp.int32) % 127
    total = jax.jit(segment.segment_sum, static_argnums=2)(jnp.ones(1024), ids.astype(jnp.int8), 127)
    assert total.tolist() == np.bincount(ids).tolist()


def test_a_gpu_works_in_blocks_and_other_devices_do_not(monkeypatch):
    ids = jnp.zeros(1024, jnp.int32)
    whole = str(jax.make_jaxpr(lambda x: segment.segment_sum(x, ids, 2))(jnp.ones(1024)))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    parts = str(jax.make_jaxpr(lambda x: segment.segment_sum(x, ids, 2))(jnp.ones(1024)))
    assert whole.count("reduce_sum") == 0
    assert parts.count("reduce_sum") == 1
