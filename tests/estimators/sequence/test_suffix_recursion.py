"""The recursion against a float64 loop, on long chains, beside NaN and infinity, under padding, jit, vmap and grad."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from estimators.sequence.chains import linked
from estimators.sequence.suffix_recursion import suffix_recursion

SOLVE = jax.jit(suffix_recursion)


def by_loop(factor: np.ndarray, addend: np.ndarray) -> np.ndarray:
    out, behind = np.empty(len(addend)), 0.0
    for t in range(len(addend) - 1, -1, -1):
        behind = float(addend[t]) + (float(factor[t]) * behind if factor[t] else 0.0)
        out[t] = behind
    return out


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("length", "factor"), [(1, 0.9), (7, 1.0), (50, 0.95), (1000, 0.999), (100_000, 1.0), (100_000, 0.99999)]
)
def test_long_chains_are_as_exact_as_float32_allows(length: int, factor: float) -> None:
    """Errors are taken relative to the sum of the sizes of what is added, which bounds every order of summation."""
    n = max(200_003, length)
    rng = np.random.default_rng(length)
    a = np.where(np.arange(n) % length == length - 1, 0, factor).astype(np.float32)
    b = rng.normal(size=n).astype(np.float32)
    error = np.abs(np.asarray(SOLVE(a, b)) - by_loop(a, b))
    assert (error <= 4e-6 * by_loop(a, np.abs(b))).all()


@pytest.mark.slow
def test_nothing_passes_a_factor_of_zero() -> None:
    a = jnp.array([0.5, 0.0, 1.0, 0.0, 1.0, 0.5], jnp.float32)
    b = jnp.array([1.0, 2.0, jnp.inf, 4.0, jnp.nan, 1.0], jnp.float32)
    for shift in range(20):  # at every place of a block, in arrays of one length, which compile once
        y = np.asarray(SOLVE(*(jnp.asarray(np.pad(x, (shift, 19 - shift))) for x in (a, b))))
        np.testing.assert_array_equal(y[shift : shift + 6], [2.0, 2.0, np.inf, 4.0, np.nan, 1.0])


@pytest.mark.slow
def test_a_factor_that_is_no_number_ends() -> None:
    y = SOLVE(jnp.array([1.0, jnp.nan, 1.0, 1.0]), jnp.ones(4))
    np.testing.assert_array_equal(y, [np.nan, np.nan, 2.0, 1.0])


@pytest.mark.study
def test_padding_changes_no_bit_and_jit_and_vmap_none_either() -> None:
    rng = np.random.default_rng(0)
    a = jnp.asarray(np.where(rng.random(777) < 0.05, 0, rng.uniform(0.5, 1, 777)), jnp.float32).at[-1].set(0)
    b = jnp.asarray(rng.normal(size=777), jnp.float32)
    plain = np.asarray(suffix_recursion(a, b))
    for more in (1, 16, 1000):
        padded = SOLVE(jnp.pad(a, (0, more)), jnp.pad(b, (0, more), constant_values=jnp.nan))
        assert np.asarray(padded)[:777].tobytes() == plain.tobytes()
    assert np.asarray(SOLVE(a, b)).tobytes() == plain.tobytes()
    both = jax.jit(jax.vmap(suffix_recursion))(jnp.stack([a, jnp.zeros_like(a)]), jnp.stack([b, b]))
    assert np.asarray(both).tobytes() == np.stack([plain, b]).tobytes()


@pytest.mark.study
def test_derivatives_are_those_of_the_loop() -> None:
    rng = np.random.default_rng(1)
    n = 75
    a = np.where(rng.random(n) < 0.1, 0, rng.uniform(0.3, 1, n)).astype(np.float32)
    b, weight = rng.normal(size=(2, n)).astype(np.float32)
    slopes = jax.jit(jax.grad(lambda a, b: jnp.vdot(weight, suffix_recursion(a, b)), argnums=(0, 1)))
    to_factor, to_addend = slopes(a, b)
    arriving = np.zeros(n)  # what a change of y_t does to the sum
    for t in range(n):
        arriving[t] = weight[t] + (arriving[t - 1] * a[t - 1] if t else 0.0)
    np.testing.assert_allclose(to_addend, arriving, rtol=1e-5, atol=1e-5)
    behind = np.append(by_loop(a, b)[1:], 0)
    open_ = a != 0  # nothing passes a 0, so nothing is known of what would
    np.testing.assert_allclose(np.asarray(to_factor)[open_], (arriving * behind)[open_], rtol=1e-4, atol=1e-5)
    forward = jax.jit(lambda b, way: jax.jvp(lambda b: suffix_recursion(a, b), (b,), (way,))[1])
    np.testing.assert_allclose(forward(b, weight), by_loop(a, weight), rtol=1e-5, atol=1e-5)


@pytest.mark.study
def test_gradients_are_finite_beside_padding_that_holds_nan() -> None:
    graph, reward, rows = credit.from_columns(
        group=[0] * 6, trace=[0, 0, 0, 1, 1, 1], reward=[1.0] * 3 + [0.0] * 3, events=32
    )
    value = np.full(32, np.nan, np.float32)
    value[rows.event] = np.linspace(0, 1, 6)

    def total(value, reward, lambda_):  # type: ignore[no-untyped-def]
        result = credit.gae(graph, reward, value=value, lambda_=lambda_)
        return jnp.sum(jnp.where(result.valid, result.advantage, 0))

    slopes = jax.jit(jax.grad(total, argnums=(0, 1, 2)))
    for slope in slopes(value, reward, 0.9):
        assert np.isfinite(slope).all()
    slope = slopes(value, reward, 1.0)[0]
    np.testing.assert_allclose(slope[rows.event], -1, atol=1e-6)  # G − V: each value enters its own advantage only


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_members_behind_and_flags_ahead_against_loops(density: float) -> None:
    rng = np.random.default_rng(int(100 * density))
    n = 300
    chain = np.sort(rng.integers(0, 9, n))
    chain[-40:] = 0  # padding
    row = (rng.random(n) < density) & (np.arange(n) < n - 40)
    flagged = rng.random(n) < 0.1
    links = jax.jit(linked)(chain, row)
    for t in range(n):
        later = [u for u in range(t + 1, n) if row[u] and (chain[t : u + 1] == chain[t]).all()]
        assert int(links.after[t]) == (later[0] if later else n)
        assert bool(links.last[t]) == (row[t] and not later)
    reaches = np.asarray(links.reaches(jnp.asarray(flagged)))
    for t in range(n):
        ahead = [u for u in range(t, n) if row[u] and flagged[u] and (chain[t : u + 1] == chain[t]).all()]
        assert reaches[t] == (bool(row[t]) and bool(ahead))


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_members_alike_have_bits_alike_and_the_derivatives_of_the_other_solver(density: float) -> None:
    rng = np.random.default_rng(5)
    chain = np.repeat(np.arange(40), rng.integers(1, 60, 40)).astype(np.int32)
    n = len(chain)
    row = rng.random(n) < density
    links = linked(jnp.asarray(chain), jnp.asarray(row))
    a = jnp.asarray(rng.uniform(0.5, 1, n), jnp.float32)
    b, weight = (jnp.asarray(x, jnp.float32) for x in rng.normal(size=(2, n)))
    alike, plain = jax.jit(links.backward_alike), jax.jit(links.backward)
    np.testing.assert_allclose(alike(a, b), plain(a, b), rtol=1e-5, atol=1e-5)

    def slopes(solve):  # type: ignore[no-untyped-def]
        return jax.jit(jax.grad(lambda a, b: jnp.vdot(weight, solve(a, b)), argnums=(0, 1)))(a, b)

    for mine, other in zip(slopes(links.backward_alike), slopes(links.backward), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)

    ahead = np.asarray([row[t:][chain[t:] == chain[t]].sum() for t in range(n)])
    even = np.asarray(alike(jnp.full(n, 0.9, jnp.float32), jnp.full(n, 0.1, jnp.float32)))
    for steps in np.unique(ahead[row]):
        assert len(np.unique(even[row & (ahead == steps)])) == 1
