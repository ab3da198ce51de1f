"""An exact partition in floating point: entries on a power-of-two grid that sum to the total bit for bit, in any order.

Floats do not add up: (a + b) + c differs from a + (b + c), so "the credits sum to the reward" is false for almost every
table of float credits, and differs between devices. Here entries are integers times one power of two q per trace, and
what the grid cannot hold of the total is one remainder.

With p = 24 bits (float32) or 53 (float64), if the integers k_i satisfy Σ|k_i| <= 2^p, then every partial sum of the
entries k_i q, in any order and on any device, is an integer below 2^p times q: exactly representable, so no addition
rounds. With K = Σ k_i the nearest integer to R/q, the remainder ρ = R − K q is itself a float, and adding it last gives
R bit for bit. ρ is 0 whenever R lies on the grid; so the finest grid with Σ|k_i| <= 2^p is taken.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from graphs.event_graph import Array
from graphs.segment import segment_min, segment_sum

__all__ = ["Partition", "exact_partition"]


class Partition(NamedTuple):
    """Integer ledger of T totals divided among M cells. Integers are canonical; floats derive from them.

    Attributes:
      units: int [M], 0 where no cell is.
      trace_units: int [T, C], the cells that belong to whole traces.
      residual_units: int [T], the cell that takes what the others leave; 0 where none was asked for.
      exponent: int32 [T]; a unit of trace t is worth 2**exponent[t].
      remainder: float [T], at most half a unit: what the grid cannot hold of the total.
      exact: bool [T]: True where all of the above holds. False for totals that are not finite, for magnitudes outside
        the range of normal floats, and where cells without a residual do not sum to their total.
    """

    units: jax.Array
    trace_units: jax.Array
    residual_units: jax.Array
    exponent: jax.Array
    remainder: jax.Array
    exact: jax.Array

    def amounts(self, trace_ids: Array) -> jax.Array:
        """The cells as floats, each exactly units * 2**exponent: [M]."""
        return _scale(self.units.astype(self.remainder.dtype), self.exponent[trace_ids])

    @property
    def trace_amounts(self) -> jax.Array:
        """The cells of whole traces as floats: [T, C]."""
        return _scale(self.trace_units.astype(self.remainder.dtype), self.exponent[:, None])

    @property
    def residual(self) -> jax.Array:
        """The residual cells as floats: [T]."""
        return _scale(self.residual_units.astype(self.remainder.dtype), self.exponent)


@functools.partial(jax.jit, static_argnames=("residual",))
def exact_partition(
    cells: Array,
    trace_ids: Array,
    where: Array,
    total: Array,
    *,
    trace_cells: Array | None = None,
    residual: bool = True,
) -> Partition:
    """Round cells to the finest grid on which they, and what they leave of the total, sum to the total exactly.

    Each cell moves by at most 1.5 units: half by rounding, one where it takes a unit of the rounding of the others. A
    unit is at most 4 max(Σ|cells|, |R|) / 2^p. Cells outside `where` are exactly 0.

    Args:
      cells: float [M], what each cell should get; finite where `where`.
      trace_ids: int [M] in [0, T), the total that a cell is part of; the cells of a trace are contiguous.
      where: bool [M], the cells that exist.
      total: float [T], same dtype as `cells`.
      trace_cells: float [T, C], further cells of each trace, such as its expectation; they move by half a unit at most.
      residual: whether one more cell per trace takes total − Σ cells. Without it the cells must sum to the total up to
        float rounding, or `exact` is False.

    Returns:
      A `Partition`; at most 2^p / 4 cells a trace.

    Source: derived and tested here against rational arithmetic; the argument is in this module's docstring.
    """
    cells, total = jnp.asarray(cells), jnp.asarray(total)
    num = total.shape[0]
    wide = jnp.zeros((num, 0), total.dtype) if trace_cells is None else jnp.asarray(trace_cells)
    cells = jnp.where(where, cells, jnp.zeros_like(cells))
    bad = segment_sum(jnp.where(jnp.isfinite(cells), 0, 1), trace_ids, num)
    finite = jnp.isfinite(total) & jnp.all(jnp.isfinite(wide), axis=1) & (bad == 0)
    cells = jnp.where(finite[trace_ids], cells, jnp.zeros_like(cells))
    wide = jnp.where(finite[:, None], wide, jnp.zeros_like(wide))
    safe = jnp.where(finite, total, jnp.zeros_like(total))

    magnitude = segment_sum(jnp.abs(cells), trace_ids, num) + jnp.sum(jnp.abs(wide), axis=1)
    if residual:
        magnitude = magnitude + jnp.abs(safe - segment_sum(cells, trace_ids, num) - jnp.sum(wide, axis=1))
    magnitude = jnp.maximum(magnitude, jnp.abs(safe))
    bits = jnp.finfo(cells.dtype).nmant + 1
    coarse = _ceil_log2(magnitude) - bits

    rank = _rank_in_trace(trace_ids, where)
    result = _attempt(cells, wide, trace_ids, where, rank, safe, coarse - 1, residual)
    for step in (0, 1):  # coarser where the finer grid overflows
        other = _attempt(cells, wide, trace_ids, where, rank, safe, coarse + step, residual)
        keep = result.exact
        result = Partition(
            units=jnp.where(keep[trace_ids], result.units, other.units),
            trace_units=jnp.where(keep[:, None], result.trace_units, other.trace_units),
            residual_units=jnp.where(keep, result.residual_units, other.residual_units),
            exponent=jnp.where(keep, result.exponent, other.exponent),
            remainder=jnp.where(keep, result.remainder, other.remainder),
            exact=keep | other.exact,
        )
    smallest = jnp.finfo(cells.dtype).minexp
    normal = ((result.exponent >= smallest) | (magnitude <= 0)) & jnp.isfinite(magnitude)
    return result._replace(exact=result.exact & finite & normal, remainder=jnp.where(finite, result.remainder, total))


def _attempt(
    cells: jax.Array,
    wide: jax.Array,
    trace_ids: Array,
    where: Array,
    rank: jax.Array,
    total: jax.Array,
    exponent: jax.Array,
    residual: bool,
) -> Partition:
    """The partition on the grids 2**exponent; `exact` says where it is one."""
    num, integer = total.shape[0], jnp.int64 if cells.dtype == jnp.float64 else jnp.int32
    capacity = 1 << (jnp.finfo(cells.dtype).nmant + 1)
    scaled = _scale(cells, -exponent[trace_ids])
    rounded = jnp.rint(scaled)
    scaled_wide = _scale(wide, -exponent[:, None])
    rounded_wide = jnp.rint(scaled_wide)
    leftover = segment_sum(scaled - rounded, trace_ids, num) + jnp.sum(scaled_wide - rounded_wide, axis=1)
    units, trace_units = rounded.astype(integer), rounded_wide.astype(integer)
    used = segment_sum(units, trace_ids, num) + jnp.sum(trace_units, axis=1, dtype=integer)

    exact_total = _scale(total, -exponent)
    whole = jnp.rint(exact_total)
    target = whole.astype(integer)
    remaining = target - used  # modular arithmetic makes this exact even where a partial sum overflows
    if residual:
        # The residual's own target is total - Σ cells, with the integer part of that sum taken exactly.
        rest = jnp.rint((exact_total - whole) - leftover).astype(integer)
        residual_units = remaining + rest
        owed = -rest
    else:
        residual_units, owed = jnp.zeros(num, integer), remaining
    takes = where & (rank < jnp.abs(owed)[trace_ids])
    units = units + jnp.where(takes, jnp.sign(owed)[trace_ids], 0).astype(integer)
    members = segment_sum(jnp.where(where, 1, 0).astype(integer), trace_ids, num)
    if residual:  # what no cell is left to take stays in the residual
        residual_units = residual_units + jnp.sign(owed) * jnp.maximum(jnp.abs(owed) - members, 0)
        placed = jnp.ones(num, bool)
    else:
        placed = jnp.abs(owed) <= members
    weight = segment_sum(jnp.abs(units), trace_ids, num) + jnp.sum(jnp.abs(trace_units), axis=1, dtype=integer)
    weight = weight + jnp.abs(residual_units)
    return Partition(
        units=units,
        trace_units=trace_units,
        residual_units=residual_units,
        exponent=exponent,
        remainder=total - _scale(whole, exponent),
        exact=placed & (weight <= capacity),
    )


def _rank_in_trace(trace_ids: Array, where: Array) -> jax.Array:
    """0, 1, 2, ... over the members of each trace in order of position: int32 [M]."""
    count = jnp.cumsum(jnp.where(where, 1, 0), dtype=jnp.int32) - 1
    first = segment_min(count, trace_ids, trace_ids.shape[0], where, empty=0)
    return count - first[trace_ids]


def _ceil_log2(x: jax.Array) -> jax.Array:
    """Smallest integer e with x <= 2**e, 0 for x <= 0: int32, from the bits of x, since log2 rounds."""
    fraction, exponent = jnp.frexp(x)
    return jnp.where(x > 0, exponent - jnp.where(fraction <= 0.5, 1, 0), 0).astype(jnp.int32)


def _scale(x: jax.Array, exponent: jax.Array) -> jax.Array:
    """x * 2**exponent without rounding: two factors built from their bits, since exp2 is not exact on all backends."""
    half = exponent // 2
    return x * _power_of_two(half, x.dtype) * _power_of_two(exponent - half, x.dtype)


def _power_of_two(exponent: jax.Array, dtype: jnp.dtype) -> jax.Array:
    info, integer = jnp.finfo(dtype), jnp.int64 if dtype == jnp.float64 else jnp.int32
    bias = info.maxexp - 1
    biased = jnp.clip(exponent, info.minexp, info.maxexp - 1).astype(integer) + bias
    return jax.lax.bitcast_convert_type(biased << info.nmant, dtype)
