"""An exact partition in floating point: entries on a power-of-two grid that sum to the total bit for bit, in any order.

Floats do not add up: (a + b) + c differs from a + (b + c), so "the credits sum to the reward" is false for almost every
table of float credits, and differs between devices. Here entries are integers times one power of two q per trace, and
what the grid cannot hold of the total is one remainder.

With p = 24 bits (float32) or 53 (float64), if the integers k_i satisfy Σ|k_i| <= 2^p, then every partial sum of the
entries k_i q, in any order and on any device, is an integer below 2^p times q: exactly representable, so no addition
rounds. The residual entry is K − Σ k_i with K the nearest integer to R/q; the remainder ρ = R − K q is itself a float,
and adding it last gives R bit for bit. ρ is 0 whenever R lies on the grid; so the finest grid with Σ|k_i| <= 2^p is
taken.

Cells are rounded up or down by a sequence of low discrepancy over the places of a trace, so that many equal cells do
not all round the same way and leave their sum to the residual. What else the batch holds changes no cell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from graphs.event_graph import Array
from graphs.segment import segment_sum

__all__ = ["Partition", "exact_partition"]

GOLDEN = 0x9E3779B9  # 2^32 / golden ratio: its multiples are the sequence of least discrepancy


T = TypeVar("T")
_barrier: Callable[[T], T] = jax.lax.optimization_barrier


class Partition(NamedTuple):
    """Integer ledger of T totals divided among M cells. Integers are canonical; floats derive from them.

    Attributes:
      units: int [M], 0 where no cell is.
      trace_units: int [T, C], the cells that belong to whole traces.
      residual_units: int [T], the cell that takes what the others leave.
      exponent: int32 [T]; a unit of trace t is worth 2**exponent[t].
      remainder: float [T], at most half a unit: what the grid cannot hold of the total.
      exact: bool [T]: True where all of the above holds. False for totals or cells that are not finite, for magnitudes
        outside the range of normal floats: below 2e-31 in float32, where hardware may flush to 0, and for a remainder
        below that range.
    """

    units: jax.Array
    trace_units: jax.Array
    residual_units: jax.Array
    exponent: jax.Array
    remainder: jax.Array
    exact: jax.Array

    def amounts(self, trace_ids: Array) -> jax.Array:
        """The cells as floats, each exactly units * 2**exponent: [M]."""
        amounts: jax.Array = _amounts(self.units.astype(self.remainder.dtype), self.exponent, trace_ids)
        return amounts

    @property
    def trace_amounts(self) -> jax.Array:
        """The cells of whole traces as floats: [T, C]."""
        amounts: jax.Array = _scale(self.trace_units.astype(self.remainder.dtype), self.exponent[:, None])
        return amounts

    @property
    def residual(self) -> jax.Array:
        """The residual cells as floats: [T]."""
        residual: jax.Array = _scale(self.residual_units.astype(self.remainder.dtype), self.exponent)
        return residual


@functools.partial(jax.jit, static_argnames=("search",))
def exact_partition(
    cells: Array,
    trace_ids: Array,
    where: Array,
    total: Array,
    *,
    trace_cells: Array | None = None,
    search: bool = True,
) -> Partition:
    """Round cells to the finest grid on which they, and what they leave of the total, sum to the total exactly.

    Each cell moves by less than 1.5 units, mostly less than one. A unit is at
    most 4 max(Σ|cells|, |R|) / 2^p, the residual among the cells.
    Cells outside `where` are exactly 0.

    Args:
      cells: float [M], what each cell should get; finite where `where`.
      trace_ids: int [M] in [0, T), the total that a cell is part of; the cells of a trace are contiguous.
      where: bool [M], the cells that exist.
      total: float [T], same dtype as `cells`.
      trace_cells: float [T, C], further cells of each trace, such as its expectation; they move by half a unit at most.
      search: whether traces that do not fit the usual grid, or that a finer one may suit, are tried on others. Without,
        they are not exact; half of the time to compile is saved.

    Returns:
      A `Partition`; at most 2^p / 4 cells a trace.

    Source: derived and tested here against rational arithmetic; the argument is in this module's docstring.

    Examples:
      >>> import numpy as np
      >>> cells, trace = np.float32([0.1, 0.2, 0.3]), np.zeros(3, np.int32)
      >>> partition = exact_partition(cells, trace, cells > 0, np.float32([1.0]))
      >>> parts = [*partition.amounts(trace).tolist(), *partition.residual.tolist()]
      >>> print(sum(parts) + float(partition.remainder[0]), sum(reversed(parts)) + float(partition.remainder[0]))
      1.0 1.0
    """
    cells, total = jnp.asarray(cells), jnp.asarray(total)
    num, info = total.shape[0], np.finfo(cells.dtype)
    bits = info.nmant + 1
    wide = jnp.zeros((num, 0), total.dtype) if trace_cells is None else jnp.asarray(trace_cells)
    cells = jnp.where(where, cells, jnp.zeros_like(cells))
    # Both sums in one scatter: on CPU a sum waits for the one before it, and the second comes nearly free.
    both = segment_sum(jnp.stack([cells, _size(cells)], axis=1), trace_ids, num)
    size = both[:, 1]
    finite = jnp.isfinite(total) & jnp.all(jnp.isfinite(wide), axis=1) & jnp.isfinite(size)
    safe = jnp.where(finite, total, jnp.zeros_like(total))
    wide = jnp.where(finite[:, None], wide, jnp.zeros_like(wide))
    cells = jnp.where(jnp.isfinite(cells), cells, jnp.zeros_like(cells))

    left = safe - jnp.where(finite, both[:, 0], 0) - jnp.sum(wide, axis=1)
    magnitude = jnp.where(finite, size + jnp.sum(_size(wide), axis=1) + jnp.abs(left), 0)
    magnitude = jnp.maximum(magnitude, jnp.abs(safe))
    coarse = _ceil_log2(magnitude) - bits
    integer = jnp.int64 if cells.dtype == jnp.float64 else jnp.int32

    scaled = _scale(safe, -coarse)
    whole = jnp.rint(scaled)
    units = _rounded(_on_grid(cells, coarse, finite, trace_ids), jnp.asarray(trace_ids), bits).astype(integer)
    rows = jnp.rint(_scale(wide, -coarse[:, None])).astype(integer)
    usual = _grid(units, rows, whole.astype(integer), coarse, finite, trace_ids, bits)

    # A finer grid helps if the total lies on it, and can do so only within rounding of half the capacity.
    members = segment_sum(jnp.where(where, 1, 0).astype(jnp.int32), trace_ids, num)
    finer = jnp.rint(2 * scaled)
    helps = (jnp.abs(scaled - whole) > 0) & ~(jnp.abs(2 * scaled - finer) > 0)
    spare = 3 * members.astype(cells.dtype) + 4 + wide.shape[1]
    near = _scale(magnitude, -coarse) - spare <= 2.0 ** (bits - 1)
    unsettled = finite & (magnitude > 0) & (~usual.fits | (helps & near))
    grid = usual._replace(fits=usual.fits & ~unsettled)
    if search:
        grid = _searched(usual, unsettled, cells, wide, trace_ids, where, safe, members)
    exponent = jnp.where(finite, grid.exponent, 0)
    normal = ((exponent >= info.minexp) | (magnitude <= 0)) & jnp.isfinite(magnitude)
    normal = normal & ~_subnormal(total)  # which counts as 0 above where the backend flushes it
    scaled = _scale(safe, -exponent)
    rest = scaled - jnp.rint(scaled)  # the remainder in units, no subnormal number where the remainder is one
    normal = normal & ~((jnp.abs(rest) > 0) & (jnp.abs(rest) < _power_of_two(info.minexp - exponent, cells.dtype)))
    return Partition(
        units=grid.units,
        trace_units=grid.rows,
        residual_units=grid.rest,
        exponent=exponent,
        remainder=jnp.where(finite, safe - _scale(jnp.rint(_scale(safe, -exponent)), exponent), total),
        exact=grid.fits & normal,
    )


def _subnormal(x: jax.Array) -> jax.Array:
    """Where a float is neither 0 nor a normal number, from its bits."""
    info, integer = np.finfo(x.dtype), jnp.uint64 if x.dtype == jnp.float64 else jnp.uint32
    magnitude = jax.lax.bitcast_convert_type(x, integer) << integer(1)
    return jnp.logical_and(magnitude > 0, magnitude < integer(1) << integer(info.nmant + 1))


def _size(x: jax.Array) -> jax.Array:
    """|x|, and the smallest normal float for subnormal numbers, which a backend may flush to 0."""
    return jnp.where(_subnormal(x), np.finfo(x.dtype).tiny, jnp.abs(x))


class _Grid(NamedTuple):
    """Cells [M], trace cells [T, C] and residual [T] in units of 2**exponent, and whether they are within capacity."""

    units: jax.Array
    rows: jax.Array
    rest: jax.Array
    exponent: jax.Array
    fits: jax.Array


def _grid(
    units: jax.Array,
    rows: jax.Array,
    whole: jax.Array,
    exponent: jax.Array,
    finite: jax.Array,
    trace_ids: Array,
    bits: int,
) -> _Grid:
    """The residual of `whole` [T] units, and whether the weight of all is within capacity.

    Modular arithmetic makes the residual exact even where a partial sum overflows.
    """
    num = whole.shape[0]
    # A barrier keeps XLA from computing the units inside each scatter, one number at a time.
    units, absolute = _barrier((units, jnp.abs(units)))
    rest = whole - segment_sum(units, trace_ids, num) - jnp.sum(rows, axis=1, dtype=units.dtype)
    weight = segment_sum(absolute, trace_ids, num) + jnp.sum(jnp.abs(rows), axis=1, dtype=units.dtype)
    return _Grid(units, rows, rest, exponent, finite & (weight + jnp.abs(rest) <= 1 << bits))


def _choose(take: jax.Array, one: _Grid, other: _Grid, trace_ids: Array) -> _Grid:
    by_trace = (jnp.where(take, a, b) for a, b in zip(one[2:], other[2:], strict=True))
    units = jnp.where(take[trace_ids], one.units, other.units)
    return _Grid(units, jnp.where(take[:, None], one.rows, other.rows), *by_trace)


def _searched(
    usual: _Grid,
    unsettled: jax.Array,
    cells: jax.Array,
    wide: jax.Array,
    trace_ids: Array,
    where: Array,
    total: jax.Array,
    members: jax.Array,
) -> _Grid:
    """The finest grid about the usual one on which each unsettled trace fits; without such traces nothing is computed.

    Cells are rounded to nearest, the first of them moved by a unit so that the residual is what it should be: slower
    than rounding by position, and of least weight: it fits wherever the grid has room at all.
    """
    num, bits, integer = total.shape[0], np.finfo(cells.dtype).nmant + 1, usual.units.dtype
    finite = jnp.ones_like(unsettled)

    def place(exponent: jax.Array, number: jax.Array) -> _Grid:
        """`number` [M]: how many cells of its trace come before each."""
        scaled = _on_grid(cells, exponent, unsettled, trace_ids)
        scaled_rows = _scale(wide, -exponent[:, None])
        units, rows = jnp.rint(scaled), jnp.rint(scaled_rows)
        lost = segment_sum(scaled - units, trace_ids, num) + jnp.sum(scaled_rows - rows, axis=1)
        whole = jnp.rint(_scale(total, -exponent))
        owed = -jnp.rint((_scale(total, -exponent) - whole) - lost).astype(integer)
        owed_here = jnp.where(unsettled, owed, 0)[trace_ids]
        units = units.astype(integer) + jnp.where(where & (number < jnp.abs(owed_here)), jnp.sign(owed_here), 0)
        return _grid(units, rows.astype(integer), whole.astype(integer), exponent, finite, trace_ids, bits)

    def search(usual: _Grid) -> _Grid:
        count = jnp.cumsum(jnp.where(where, 1, 0), dtype=jnp.int32) - 1
        first = jax.ops.segment_min(jnp.where(where, count, np.iinfo(np.int32).max), trace_ids, num_segments=num)
        number = (count - jnp.where(members > 0, first, 0)[trace_ids]).astype(integer)

        def finer_first(state: tuple[jax.Array, jax.Array, _Grid]) -> tuple[jax.Array, jax.Array, _Grid]:
            step, waiting, best = state
            other = place(usual.exponent + step, number)
            best = _choose(waiting & other.fits, other, best, trace_ids)
            return step + 1, waiting & ~other.fits, best

        start = (jnp.int32(-1), unsettled, usual)
        return jax.lax.while_loop(lambda state: (state[0] <= 1) & jnp.any(state[1]), finer_first, start)[2]

    grid: _Grid = jax.lax.cond(jnp.any(unsettled), search, lambda usual: usual, usual)
    return grid


def _on_grid(cells: jax.Array, exponent: jax.Array, finite: jax.Array, trace_ids: Array) -> jax.Array:
    return cells * jnp.where(finite, _power_of_two(-exponent, cells.dtype), 0)[trace_ids]


def _rounded(scaled: jax.Array, trace_ids: jax.Array, bits: int) -> jax.Array:
    """Up or down by place in the trace, the first cell and those where floats have no room for halves to nearest."""
    index = jnp.arange(scaled.shape[0], dtype=jnp.int32)
    begins = jnp.concatenate([jnp.ones(1, bool), trace_ids[1:] != trace_ids[:-1]])[: scaled.shape[0]]
    place = (index - jax.lax.cummax(jnp.where(begins, index, 0))).astype(jnp.uint32) * jnp.uint32(GOLDEN)
    offset = ((place + jnp.uint32(1 << 31)) >> 9).astype(scaled.dtype) * 2.0**-23
    return jnp.where(jnp.abs(scaled) < 2.0 ** (bits - 6), jnp.floor(scaled + offset), jnp.rint(scaled))


@jax.jit
def _amounts(units: jax.Array, exponent: jax.Array, trace_ids: Array) -> jax.Array:
    return units * _power_of_two(exponent, units.dtype)[trace_ids]


def _ceil_log2(x: jax.Array) -> jax.Array:
    """Smallest integer e with x <= 2**e, 0 for x <= 0: int32, from the bits of x, since log2 rounds."""
    fraction, exponent = jnp.frexp(x)
    return jnp.where(x > 0, exponent - jnp.where(fraction <= 0.5, 1, 0), 0).astype(jnp.int32)


@functools.partial(jax.jit, inline=True)
def _scale(x: jax.Array, exponent: jax.Array) -> jax.Array:
    """x * 2**exponent without rounding: two factors built from their bits, since exp2 is not exact on all backends."""
    half = exponent // 2
    return x * _power_of_two(half, x.dtype) * _power_of_two(exponent - half, x.dtype)


def _power_of_two(exponent: jax.Array, dtype: jnp.dtype) -> jax.Array:
    info, integer = np.finfo(dtype), jnp.int64 if dtype == jnp.float64 else jnp.int32
    bias = info.maxexp - 1
    biased = jnp.clip(exponent, info.minexp, info.maxexp - 1).astype(integer) + bias
    return jax.lax.bitcast_convert_type(biased << info.nmant, dtype)
